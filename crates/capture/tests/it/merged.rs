//! Segments that an offload merged before the tap saw them.

use crate::connections::Script;
use fanin_capture::write::{Endpoint, Flags, Segment, TcpOptions};

const CLIENT: Endpoint = Endpoint::host(0, 40_000);
const SERVER: Endpoint = Endpoint::host(1, 80);
const ACK: Flags = Flags::ACK;
/// Of 1500 bytes, where both ends use time stamps.
const FULL: u32 = 1_448;

/// A burst of 20 packets, 20 times, each burst one packet at the tap, to a port that sends one and has room for 11: the last 8 of a burst are sent
/// again 5 ms later, one by one.
#[test]
fn what_was_merged_is_cut_as_it_left_so_that_each_packet_sent_again_is_one_loss() {
    let mut script = Script::new();
    let stamp = |us: u64| {
        let now = 1 + us as u32 / 1_000;
        TcpOptions { timestamps: Some((now, now)), ..TcpOptions::default() }
    };
    let hello = |us| TcpOptions { mss: Some(1_460), sack_permitted: true, ..stamp(us) };
    let up = |ack, payload, flags, options| Segment {
        seq: 1,
        ack,
        payload,
        flags,
        options,
        ..Segment::between(CLIENT, SERVER)
    };
    let down = |seq, payload, options| Segment {
        seq,
        ack: 1,
        payload,
        flags: ACK,
        options,
        ..Segment::between(SERVER, CLIENT)
    };
    script.packet(0, Segment { seq: 0, ..up(0, 0, Flags::SYN, hello(0)) });
    script.packet(20, Segment { flags: Flags::SYN | ACK, seq: 0, ..down(0, 0, hello(20)) });
    script.packet(30, up(1, 0, ACK, stamp(30)));
    for round in 0..20_u32 {
        let (at, seq) = (10_000 + 20_000 * u64::from(round), 1 + 20 * FULL * round);
        script.packet(at, down(seq, 20 * FULL, stamp(at)));
        script.packet(at + 200, up(seq + 12 * FULL, 0, ACK, stamp(at + 200)));
        for n in 12..20_u32 {
            let again = at + 5_000 + 40 * u64::from(n);
            script.packet(again, down(seq + n * FULL, FULL, stamp(again)));
            script.packet(again + 30, up(seq + (n + 1) * FULL, 0, ACK, stamp(again + 30)));
        }
    }
    let found = script.analyse();
    let limit =
        found.links.iter().filter_map(|link| link.limit(1_000_000_000)).max_by_key(|limit| limit.losses).unwrap();
    assert_eq!((limit.losses, limit.packets), (160, 11));
}

/// Ten packets that an offload sends again as one.
#[test]
fn what_is_sent_again_as_one_merged_segment_counts_as_the_packets_that_it_was_on_the_wire() {
    let again = |lost_before_the_tap: bool| {
        let mut script = Script::new();
        let hello = |ack| TcpOptions { mss: Some(1_460), sack_permitted: ack, ..TcpOptions::default() };
        let up = |ack, flags, options| Segment { seq: 1, ack, flags, options, ..Segment::between(CLIENT, SERVER) };
        let down = |seq, payload, flags, options| Segment {
            seq,
            ack: 1,
            payload,
            flags,
            options,
            ..Segment::between(SERVER, CLIENT)
        };
        let plain = TcpOptions::default();
        script.packet(0, Segment { seq: 0, ..up(0, Flags::SYN, hello(true)) });
        script.packet(20, down(0, 0, Flags::SYN | ACK, hello(true)));
        script.packet(30, up(1, ACK, plain));
        script.packet(100, down(1, 1_460, ACK, plain));
        // Ten segments, the last of 100 bytes, and one behind them.
        let (from, bytes) = (1 + 1_460, 9 * 1_460 + 100);
        if !lost_before_the_tap {
            script.packet(110, down(from, bytes, ACK, plain));
        }
        script.packet(400, down(from + bytes, 1_460, ACK, plain));
        script.packet(420, up(from, ACK, plain));
        script.packet(30_000, down(from, bytes, ACK, plain));
        script.packet(30_020, up(from + bytes + 1_460, ACK, plain));
        let found = script.analyse();
        let side = found.connections.iter().next().unwrap().to_client;
        (side.retransmitted_packets, side.refilled_packets)
    };
    assert_eq!(again(false), (10, 0));
    assert_eq!(again(true), (0, 10));
}
