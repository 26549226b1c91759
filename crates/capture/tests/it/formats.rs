//! The same traffic in many containers gives the same rows.

use crate::common::{data, run, run_bytes};
use fanin_capture::{Analysis, CaptureError, Front, Turn, Warning};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

const REFERENCE: &str = "formats/same400_le_usec.pcap";

fn assert_same(a: &Analysis, b: &Analysis, what: &str) {
    assert_eq!(a.connections, b.connections, "{what}");
    // Which of two packets with one stamp came first is not known, and what a response may have queued behind depends on it.
    let turns = |a: &Analysis| -> Vec<Turn> {
        let plain = Front::default();
        a.turns.iter().map(|t| Turn { request_front: plain, response_front: plain, ..*t }).collect()
    };
    assert_eq!(turns(a), turns(b), "{what}");
    assert_eq!(a.trains, b.trains, "{what}");
    assert_eq!(a.bursts, b.bursts, "{what}");
    assert_eq!(a.hosts, b.hosts, "{what}");
    assert_eq!(a.summary.start_epoch_ns, b.summary.start_epoch_ns, "{what}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

#[test]
fn every_container_byte_order_and_link_type_gives_identical_rows() {
    let reference = run(REFERENCE).unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(data().join("formats")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("same400_") {
            assert_same(&run(&format!("formats/{name}")).unwrap(), &reference, &name);
            seen += 1;
        }
    }
    assert_eq!(seen, 10);
}

#[test]
fn swapped_neighbours_are_put_back_in_order() {
    let unsorted = run("formats/unsorted_timestamps.pcap").unwrap();
    assert_same(&unsorted, &run(REFERENCE).unwrap(), "unsorted");
    assert!(matches!(unsorted.warnings[..], [Warning::Unsorted { first: 2, .. }]));
}

#[test]
fn a_mirror_ports_copies_count_once() {
    let mut doubled = run("formats/duplicated_packets.pcap").unwrap();
    assert!(matches!(doubled.warnings[0], Warning::Mirrored { packets: 400, first: 2 }));
    let reference = run(REFERENCE).unwrap();
    let mut connections: Vec<_> = doubled.connections.iter().collect();
    for c in &mut connections {
        for n in [&mut c.to_server, &mut c.to_client] {
            assert_eq!((n.mirrored_packets, n.mirrored_bytes), (n.packets, n.payload_bytes));
            (n.mirrored_packets, n.mirrored_bytes) = (0, 0);
        }
    }
    doubled.connections = connections.into_iter().collect();
    assert_same(&doubled, &reference, "doubled");
}

#[test]
fn gzip_of_several_members_is_read_to_its_end() {
    let plain = std::fs::read(data().join(REFERENCE)).unwrap();
    let (front, back) = plain.split_at(12_345);
    let members = [gzip(front), gzip(back)].concat();
    let found = run_bytes(&members).unwrap();
    assert_eq!(found.summary.format, "pcap (gzip)");
    assert_same(&found, &run(REFERENCE).unwrap(), "two members");
}

/// A pcapng file of our own: sections of both byte orders, several interfaces with their own clocks, all three packet blocks.
#[test]
fn sections_interfaces_clocks_and_old_packet_blocks_are_all_understood() {
    let reference = run(REFERENCE).unwrap();
    let plain = std::fs::read(data().join(REFERENCE)).unwrap();
    let mut file = Vec::new();
    let mut rest = &plain[24..];
    for i in 0..400_usize {
        let word = |i: usize| u32::from_le_bytes([rest[i], rest[i + 1], rest[i + 2], rest[i + 3]]);
        let (us, stored, original) = (u64::from(word(0)) * 1_000_000 + u64::from(word(4)), word(8), word(12));
        let packet = rest[16..16 + stored as usize].to_vec();
        rest = &rest[16 + stored as usize..];
        let big = i / 100 % 2 == 1;
        let w = Words { big };
        if i % 100 == 0 {
            // 10^-9 s; 2^-30 s would round, so 2^-6 with an offset is only described; microseconds shifted by an offset in seconds.
            file.extend(w.section());
            file.extend(w.interface(1, &[(9, vec![9])]));
            file.extend(w.interface(147, &[(9, vec![0x86])]));
            file.extend(w.interface(1, &[(9, vec![6]), (14, w.u64(1_000_000))]));
            file.extend(w.interface(1, &[(9, vec![12]), (14, w.u64(us / 1_000_000))]));
            file.extend(w.block(5, &[0; 12]));
        }
        let (interface, stamp) = match i % 3 {
            0 => (0_u32, us * 1_000),
            1 => (2, us - 1_000_000 * 1_000_000),
            // Picoseconds since the section's own epoch.
            _ => (3, (us - section_start(&plain, i / 100 * 100)) * 1_000_000),
        };
        let (high, low) = ((stamp >> 32) as u32, stamp as u32);
        let body = match i % 2 {
            0 => [w.u32(interface), w.u32(high), w.u32(low), w.u32(stored), w.u32(original), packet].concat(),
            _ => [
                w.u16(interface as u16),
                w.u16(u16::MAX),
                w.u32(high),
                w.u32(low),
                w.u32(stored),
                w.u32(original),
                packet,
            ]
            .concat(),
        };
        file.extend(w.block(if i % 2 == 0 { 6 } else { 2 }, &body));
    }
    let found = run_bytes(&file).unwrap();
    assert_eq!(found.partial, None);
    assert_same(&found, &reference, "built");
}

/// Whole seconds, in microseconds, of packet `n` of a little-endian microsecond file.
fn section_start(plain: &[u8], n: usize) -> u64 {
    let mut at = 24;
    for _ in 0..n {
        at += 16 + u32::from_le_bytes(plain[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    u64::from(u32::from_le_bytes(plain[at..at + 4].try_into().unwrap())) * 1_000_000
}

struct Words {
    big: bool,
}

impl Words {
    fn u16(&self, n: u16) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }
    fn u32(&self, n: u32) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }
    fn u64(&self, n: u64) -> Vec<u8> {
        if self.big { n.to_be_bytes().to_vec() } else { n.to_le_bytes().to_vec() }
    }
    fn block(&self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut padded = body.to_vec();
        padded.resize(body.len().next_multiple_of(4), 0);
        let length = self.u32(padded.len() as u32 + 12);
        [self.u32(kind), length.clone(), padded, length].concat()
    }
    fn section(&self) -> Vec<u8> {
        self.block(0x0a0d_0d0a, &[self.u32(0x1a2b_3c4d), self.u16(1), self.u16(0), vec![0xff; 8]].concat())
    }
    fn interface(&self, linktype: u16, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let body = [self.u16(linktype), self.u16(0), self.u32(0)].concat();
        self.block(1, &self.with(body, options))
    }
    fn statistics(&self, interface: u32, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let body = [self.u32(interface), self.u64(0)].concat();
        self.block(5, &self.with(body, options))
    }
    fn with(&self, mut body: Vec<u8>, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
        for (code, value) in options {
            body.extend(self.u16(*code));
            body.extend(self.u16(value.len() as u16));
            body.extend(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        body
    }
}

/// Sections of two interfaces each, in either byte order. Statistics are since the capture began: the last ones of an interface hold. Those of an
/// interface that is not described, those whose options are cut, and a block that is too short say nothing.
#[test]
fn packets_that_interfaces_and_system_dropped_are_added_up() {
    let plain = std::fs::read(data().join(REFERENCE)).unwrap();
    let mut file = Vec::new();
    for big in [false, true] {
        let w = Words { big };
        file.extend([w.section(), w.interface(1, &[]), w.interface(1, &[])].concat());
        file.extend(w.statistics(0, &[(4, w.u64(9_000)), (5, w.u64(1))]));
        file.extend(w.statistics(0, &[(4, w.u64(9_999)), (5, w.u64(3)), (7, w.u64(20))]));
        file.extend(w.statistics(1, &[(5, w.u64(100))]));
        file.extend(w.statistics(1, &[]));
        file.extend(w.statistics(2, &[(5, w.u64(7_000))]));
        file.extend(w.block(5, &[w.u32(0), w.u64(0), w.u16(5), w.u16(80)].concat()));
        file.extend(w.block(5, &[0; 4]));
    }
    let w = Words { big: true };
    file.extend(packets(&plain, |_, head, packet| w.block(6, &[w.u32(0), head(&w), packet].concat())));
    let found = run_bytes(&file).unwrap();
    assert_eq!(found.fitness.dropped_packets, 2 * (3 + 20 + 100));
    assert!(found.fitness.line.contains("it dropped 246 packets, 38.1% of all"), "{}", found.fitness.line);
    assert_eq!((found.summary.packets, found.partial), (400, None));
}

/// The blocks that `block` makes of a little-endian microsecond file's packets: of the number of each, of time stamp and lengths, and of its bytes.
fn packets(plain: &[u8], block: impl Fn(usize, &dyn Fn(&Words) -> Vec<u8>, Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut rest = &plain[24..];
    for n in 0.. {
        if rest.is_empty() {
            break;
        }
        let word = |i: usize| u32::from_le_bytes([rest[i], rest[i + 1], rest[i + 2], rest[i + 3]]);
        let (stamp, stored, original) = (u64::from(word(0)) * 1_000_000 + u64::from(word(4)), word(8), word(12));
        let head = |w: &Words| [(stamp >> 32) as u32, stamp as u32, stored, original].map(|n| w.u32(n)).concat();
        file.extend(block(n, &head, rest[16..16 + stored as usize].to_vec()));
        rest = &rest[16 + stored as usize..];
    }
    file
}

/// Each of three interfaces has what was dropped between its packets, one of them in its statistics too: in the first those of the last packets are
/// lacking, in the second there are packets that were dropped behind the last one.
#[test]
fn packets_that_were_dropped_between_others_are_added_up_and_not_counted_twice() {
    let plain = std::fs::read(data().join(REFERENCE)).unwrap();
    for big in [false, true] {
        let w = Words { big };
        let mut file = [w.section(), w.interface(1, &[]), w.interface(1, &[]), w.interface(1, &[])].concat();
        file.extend(packets(&plain, |n, head, packet| {
            let dropped = if n < 30 { 2 } else { 0 };
            match n % 3 {
                // Comment, flags and queue are no count; neither is one that is cut.
                interface @ (0 | 1) => {
                    let mut body = [w.u32(interface as u32), head(&w), packet].concat();
                    body.resize(body.len().next_multiple_of(4), 0);
                    let options = [(1, vec![9; 7]), (4, w.u64(dropped)), (2, w.u32(9)), (4, vec![9; 4]), (6, w.u32(9))];
                    w.block(6, &w.with(body, &options))
                }
                _ => {
                    let dropped = if n < 30 { 2 } else { u16::MAX };
                    w.block(2, &[w.u16(2), w.u16(dropped), head(&w), packet].concat())
                }
            }
        }));
        file.extend(w.statistics(0, &[(5, w.u64(15)), (7, w.u64(1))]));
        file.extend(w.statistics(1, &[(5, w.u64(21)), (7, w.u64(2))]));
        let found = run_bytes(&file).unwrap();
        assert_eq!((found.summary.packets, found.partial), (400, None));
        assert_eq!(found.fitness.dropped_packets, 20 + 23 + 20, "{big}");
        assert!(found.fitness.line.contains("it dropped 63 packets"), "{}", found.fitness.line);
    }
}

#[test]
fn simple_packet_blocks_count_though_they_have_no_time() {
    let plain = std::fs::read(data().join(REFERENCE)).unwrap();
    let w = Words { big: false };
    let mut file = [w.section(), w.interface(1, &[])].concat();
    let mut rest = &plain[24..];
    while !rest.is_empty() {
        let stored = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        file.extend(w.block(3, &[&rest[12..16], &rest[16..16 + stored]].concat()));
        rest = &rest[16 + stored..];
    }
    let found = run_bytes(&file).unwrap();
    assert_eq!((found.summary.payload_bytes, found.summary.duration_ns), (316_712, 0));
    assert!(found.warnings.contains(&Warning::NoTime { packets: 400, first: 1 }));
}

/// An interface is described in a block of so many bytes, most of them behind the end of its options; then nothing comes.
#[test]
fn a_block_of_pcapng_has_at_most_a_mebibyte() {
    let read = |bytes: usize| {
        let words = Words { big: false };
        let mut body = [words.u16(1), words.u16(0), words.u32(0)].concat();
        body.resize(bytes - 12, 0);
        run_bytes(&[words.section(), words.block(1, &body)].concat())
    };
    assert!(matches!(read(1 << 20), Err(CaptureError::NoPackets { .. })), "{:?}", read(1 << 20));
    assert!(matches!(read((1 << 20) + 4), Err(CaptureError::Damaged { .. })), "{:?}", read((1 << 20) + 4));
}
