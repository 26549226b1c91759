//! Written captures are read by others without complaint.

use crate::common::run_bytes;
use etherparse::{SlicedPacket, TcpOptionElement, TransportSlice};
use fanin_capture::write::{Datagram, Ecn, Endpoint, Flags, PcapWriter, Segment, TcpOptions};
use fanin_units::{Duration, Time};
use std::process::Command;

const CLIENT: Endpoint = Endpoint::host(0, 40_000);
const SERVER: Endpoint = Endpoint::host(1, 80);

/// Request and response with a lost segment, SACK, a CE mark and its echo. The response's bytes: 1 to 4345.
fn conversation() -> Vec<(u64, Segment<'static>)> {
    let up = Segment { flags: Flags::ACK, ack: 1, seq: 1, ..Segment::between(CLIENT, SERVER) };
    let down = Segment { flags: Flags::ACK, ack: 101, seq: 1, payload: 1448, ..Segment::between(SERVER, CLIENT) };
    let stamped = |value, echo| TcpOptions { timestamps: Some((value, echo)), ..TcpOptions::default() };
    let opening = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some((1, 0)),
        sack: &[],
    };
    let ect = Segment { ecn: Ecn::Ect0, options: stamped(9, 5), ..down };
    vec![
        (0, Segment { seq: 0, ack: 0, flags: Flags::SYN | Flags::ECE | Flags::CWR, options: opening, ip_id: 1, ..up }),
        (
            40,
            Segment {
                seq: 0,
                ack: 1,
                flags: Flags::SYN | Flags::ACK | Flags::ECE,
                payload: 0,
                options: opening,
                ip_id: 1,
                ..down
            },
        ),
        (50, Segment { ip_id: 2, options: stamped(2, 1), ..up }),
        (
            60,
            Segment {
                ip_id: 3,
                payload: 100,
                flags: Flags::ACK | Flags::PSH,
                ecn: Ecn::Ect0,
                options: stamped(5, 1),
                ..up
            },
        ),
        (200, Segment { ip_id: 2, ecn: Ecn::Ce, ..ect }),
        (212, Segment { ip_id: 4, seq: 2897, flags: Flags::ACK | Flags::PSH, ..ect }),
        (230, Segment { ip_id: 4, seq: 101, ack: 1449, flags: Flags::ACK | Flags::ECE, options: stamped(6, 9), ..up }),
        (
            240,
            Segment {
                ip_id: 5,
                seq: 101,
                ack: 1449,
                flags: Flags::ACK | Flags::ECE,
                options: TcpOptions { sack: &[(2897, 4345)], ..stamped(6, 9) },
                ..up
            },
        ),
        (900, Segment { ip_id: 5, seq: 1449, flags: Flags::ACK | Flags::CWR, ..ect }),
        (940, Segment { ip_id: 6, seq: 101, ack: 4345, options: stamped(7, 9), ..up }),
        (950, Segment { ip_id: 7, seq: 101, ack: 4345, flags: Flags::ACK | Flags::FIN, ..up }),
    ]
}

fn file(snaplen: Option<u32>) -> Vec<u8> {
    let mut file = PcapWriter::new(Vec::new(), snaplen).unwrap();
    let mut bytes = Vec::new();
    for (us, segment) in conversation() {
        let length = segment.headers(&mut bytes);
        file.packet(Time::ZERO + Duration::us(us) + Duration::ns(3), &bytes, length).unwrap();
    }
    file.finish().unwrap()
}

#[test]
fn what_is_written_is_what_is_read_whatever_is_stored_of_it() {
    for snaplen in [None, Some(96), Some(65_535)] {
        let a = run_bytes(&file(snaplen)).unwrap();
        assert_eq!((a.summary.packets, a.summary.connections, a.summary.duration_ns), (11, 1, 950_000));
        assert_eq!((a.warnings.len(), &a.partial), (0, &None));
        let c = a.connections.get(0).unwrap();
        assert_eq!((c.client_ip, c.client_port), (CLIENT.ip.into(), 40_000));
        assert_eq!((c.handshake_server_ns, c.handshake_client_ns), (Some(40_000), Some(10_000)));
        assert_eq!((c.to_server.mss_option, c.to_server.window_scale), (Some(1460), Some(7)));
        assert_eq!((c.to_client.unique_bytes, c.to_client.refilled_packets, c.to_client.ce_packets), (4344, 1, 1));
        assert_eq!((c.to_server.ece_packets, c.to_server.duplicate_acks, c.to_server.fin), (2, 1, 1));
        let t = &a.turns[0];
        assert_eq!((t.request_bytes, t.response_bytes, t.response_acked_ns), (100, 4344, Some(940_000)));
    }
}

#[test]
fn headers_agree_with_an_independent_parser_and_its_checksums() {
    let mut bytes = Vec::new();
    for (_, segment) in conversation() {
        let length = segment.headers(&mut bytes);
        bytes.resize(length as usize, 0);
        let packet = SlicedPacket::from_ethernet(&bytes).unwrap();
        let Some(etherparse::NetSlice::Ipv4(ip)) = &packet.net else { panic!("no IPv4") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert_eq!(header.ecn.value(), segment.ecn as u8);
        let Some(TransportSlice::Tcp(tcp)) = &packet.transport else { panic!("no TCP") };
        assert_eq!(tcp.checksum(), tcp.calc_checksum_ipv4(segment.from.ip.octets(), segment.to.ip.octets()).unwrap());
        assert_eq!(tcp.payload().len(), segment.payload as usize);
        assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (segment.seq, segment.ack));
        let options: Vec<TcpOptionElement> = tcp.options_iterator().map(Result::unwrap).collect();
        let sack = options.iter().find_map(|o| match o {
            TcpOptionElement::SelectiveAcknowledgement(first, _) => Some(*first),
            _ => None,
        });
        assert_eq!(sack, segment.options.sack.first().copied());
    }
}

#[test]
fn a_datagram_agrees_with_an_independent_parser_and_its_checksums() {
    for payload in [0, 1, 1472, 65_507] {
        let datagram = Datagram { from: CLIENT, to: SERVER, ip_id: 7, ecn: Ecn::NotEct, payload };
        let mut bytes = Vec::new();
        let length = datagram.headers(&mut bytes);
        assert_eq!((bytes.len(), length), (42, 42 + u32::from(payload)));
        bytes.resize(length as usize, 0);
        let packet = SlicedPacket::from_ethernet(&bytes).unwrap();
        let Some(TransportSlice::Udp(udp)) = &packet.transport else { panic!("no UDP") };
        let (from, to) = (CLIENT.ip.octets(), SERVER.ip.octets());
        let checksum = udp.to_header().calc_checksum_ipv4_raw(from, to, udp.payload()).unwrap();
        assert_eq!((udp.checksum(), udp.payload().len()), (checksum, usize::from(payload)));
    }
}

#[test]
fn as_many_sack_blocks_are_written_as_fit() {
    let blocks = [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)];
    let length = |timestamps| {
        let options = TcpOptions { sack: &blocks, timestamps, ..TcpOptions::default() };
        let mut bytes = Vec::new();
        Segment { options, ..Segment::between(CLIENT, SERVER) }.headers(&mut bytes) - 54
    };
    assert_eq!(length(None), 4 + 4 * 8);
    assert_eq!(length(Some((1, 2))), 12 + 4 + 3 * 8);
}

#[test]
fn a_packet_beyond_64_kib_has_ip_length_zero_and_is_read_back_whole() {
    let mut bytes = Vec::new();
    let length = Segment { payload: 80_000, ..Segment::between(SERVER, CLIENT) }.headers(&mut bytes);
    let mut file = PcapWriter::new(Vec::new(), None).unwrap();
    file.packet(Time::ZERO, &bytes, length).unwrap();
    assert_eq!(run_bytes(&file.finish().unwrap()).unwrap().summary.payload_bytes, 80_000);
}

#[test]
fn tshark_finds_nothing_malformed_and_counts_what_we_count() {
    let path = std::env::temp_dir().join(format!("fanin-{}-written.pcap", std::process::id()));
    // Whole packets, or tshark would not verify the checksums.
    std::fs::write(&path, file(Some(65_535))).unwrap();
    let matching = |filter: &str| -> Option<usize> {
        let mut tshark = Command::new("tshark");
        tshark
            .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-r"])
            .arg(&path)
            .args(["-Y", filter]);
        let out = tshark.output().ok()?;
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Some(out.stdout.split(|&b| b == b'\n').filter(|l| !l.is_empty()).count())
    };
    let Some(all) = matching("tcp") else {
        println!("skipped: tshark is not installed");
        return;
    };
    assert_eq!(all, 11);
    for (filter, wanted) in [
        ("_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0", 0),
        ("tcp.checksum.status == 1 && ip.checksum.status == 1", 11),
        ("_ws.expert.severity >= 8388608", 0),
        ("tcp.analysis.duplicate_ack", 1),
        ("tcp.analysis.retransmission || tcp.analysis.out_of_order || tcp.analysis.fast_retransmission", 1),
        ("tcp.options.sack_le == 2897", 1),
        ("ip.dsfield.ecn == 3", 1),
        ("tcp.flags.ece == 1 && tcp.flags.syn == 0", 2),
        ("tcp.options.mss_val == 1460 && tcp.options.wscale.shift == 7 && tcp.options.sack_perm", 2),
        ("frame.time_epoch == 0.000950003", 1),
    ] {
        assert_eq!(matching(filter), Some(wanted), "{filter}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// Readers refuse a file that allows more (libpcap's `MAXIMUM_SNAPLEN`).
#[test]
fn a_file_never_says_that_it_stores_more_than_256_kib_of_a_packet() {
    let says = |snaplen: Option<u32>| {
        let file = PcapWriter::new(Vec::new(), snaplen).unwrap().finish().unwrap();
        u32::from_le_bytes(file[16..20].try_into().unwrap())
    };
    assert_eq!([None, Some(96), Some(1 << 20)].map(says), [262_144, 96, 262_144]);
}
