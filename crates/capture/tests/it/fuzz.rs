//! Whatever the bytes: an error or results, never a panic, never results that contradict themselves.

use crate::common::{data, run_bytes};
use fanin_capture::Analysis;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::sync::LazyLock;

/// One small capture of every container, link type and oddity.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    [
        "formats/same400_le_usec.pcap",
        "formats/same400_be_nsec.pcap",
        "formats/same400_le.pcapng",
        "formats/same400_be.pcapng",
        "formats/same400_le_usec.pcap.gz",
        "formats/same400_raw_ip.pcap",
        "formats/same400_sll.pcap",
        "formats/duplicated_packets.pcap",
        "formats/one_direction.pcap",
        "pcapngtest_be_202.pcapng",
        "pcapngtest_le_202.pcapng",
        "zeek_vxlan_http.pcap",
        "zeek_http_qinq.pcap",
        "suricata_http_range_multiflows_loopback.pcap",
        "suricata_sll2_gro_snap128.pcap",
        "tcpdump_redis_benchmark.pcap",
        "zeek_tcp_truncated_header.pcap",
    ]
    .iter()
    .map(|name| std::fs::read(data().join(name)).unwrap())
    .collect()
});

fn check(a: &Analysis) -> Result<(), TestCaseError> {
    let of = a.connections.len() as u32;
    let sides = a.connections.iter().flat_map(|c| [c.to_server, c.to_client]);
    for n in sides {
        prop_assert_eq!(n.payload_bytes, n.unique_bytes + n.retransmitted_bytes + n.keepalive_bytes);
    }
    let unique: u64 = a.connections.iter().map(|c| c.to_server.unique_bytes + c.to_client.unique_bytes).sum();
    prop_assert_eq!(a.trains.iter().map(|t| t.bytes).sum::<u64>(), unique);
    for t in &a.trains {
        prop_assert!(t.connection < of && t.start_ns <= t.end_ns && t.packets > 0 && t.turns > 0);
    }
    for t in &a.turns {
        prop_assert!(
            t.connection < of && t.request_start_ns <= t.request_end_ns && t.response_start_ns <= t.response_end_ns
        );
        prop_assert!(t.missing_bytes <= t.request_bytes + t.response_bytes);
    }
    if let Ok(w) = a.workload(None) {
        for m in w.connections.iter().flat_map(|c| &c.messages) {
            prop_assert_eq!(m.pieces.iter().map(|p| p.bytes).sum::<u64>(), m.response_bytes);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(11), ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_and_cuts_never_panic(
        seed in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = seed.get(&SEEDS).clone();
        for (place, value) in flips {
            let i = place.index(bytes.len());
            bytes[i] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(a) = run_bytes(&bytes) {
            check(&a)?;
        }
    }

    #[test]
    fn flips_in_the_first_headers_never_panic(
        seed in any::<prop::sample::Index>(),
        flips in prop::collection::vec((0_usize..200, any::<u8>()), 1..12),
    ) {
        let mut bytes = seed.get(&SEEDS).clone();
        for (i, value) in flips {
            let i = i % bytes.len();
            bytes[i] = value;
        }
        if let Ok(a) = run_bytes(&bytes) {
            check(&a)?;
        }
    }

    /// The records stay whole, so every packet is reached; headers, stamps and payload lie.
    #[test]
    fn lies_in_stamps_and_headers_never_panic(
        seed in prop::sample::select(vec![0_usize, 5, 6, 7, 8, 13, 14, 15]),
        lies in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..90, any::<u8>()), 1..120),
    ) {
        let mut bytes = SEEDS[seed].clone();
        let mut records = Vec::new();
        let mut at = 24;
        while at + 16 <= bytes.len() {
            let stored = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
            records.push((at, stored));
            at += 16 + stored;
        }
        for (record, offset, value) in lies {
            let &(at, stored) = record.get(&records);
            match offset {
                0..8 => bytes[at + offset] = value,
                8..12 => bytes[at + 4 + offset] = value,
                _ if offset - 12 < stored => bytes[at + 4 + offset] = value,
                _ => {}
            }
        }
        if let Ok(a) = run_bytes(&bytes) {
            prop_assert_eq!(a.summary.packets, records.len() as u64);
            check(&a)?;
        }
    }

    #[test]
    fn noise_behind_a_file_header_never_panics(header in 0_usize..4, noise in prop::collection::vec(any::<u8>(), 0..3000)) {
        let bytes = [&SEEDS[header][..if header < 2 { 24 } else { 200 }], &noise].concat();
        let _ = run_bytes(&bytes);
    }
}
