//! Packet trains against a second, independent reading of the definition.

use crate::common::{run, run_bytes, run_with};
use fanin_capture::write::{Endpoint, Flags, PcapWriter, Segment};
use fanin_capture::{Analysis, Direction, Gap, Options, Train};
use fanin_units::{Duration, Time};

fn fixed(gap: Duration) -> Options {
    Options { gap: Gap::Fixed(gap), ..Options::default() }
}

#[test]
fn trains_are_separated_by_more_than_the_gap_and_their_sums_are_the_connections() {
    let gap = Duration::ms(1);
    for capture in ["http_onoff_8to1.pcap.gz", "zeek_http_206_example_b.pcap", "formats/one_direction.pcap"] {
        let a = run_with(capture, &fixed(gap)).unwrap();
        for c in a.connections.iter() {
            for (direction, n) in [(Direction::ToServer, &c.to_server), (Direction::ToClient, &c.to_client)] {
                let of = |t: &&Train| (t.connection, t.direction) == (c.connection, direction);
                let trains: Vec<&Train> = a.trains.iter().filter(of).collect();
                for pair in trains.windows(2) {
                    let idle = pair[1].start_ns - pair[0].end_ns;
                    assert!(Duration::ns(idle) > gap);
                    assert_eq!(pair[1].gap_before_ns, Some(idle));
                }
                assert_eq!(trains.iter().map(|t| t.packets).sum::<u64>(), n.data_packets - n.keepalive_bytes);
                assert_eq!(trains.iter().map(|t| t.bytes).sum::<u64>(), n.unique_bytes);
                assert_eq!(trains.iter().map(|t| t.retransmitted_bytes).sum::<u64>(), n.retransmitted_bytes);
            }
        }
    }
}

#[test]
fn a_longer_gap_never_makes_more_trains() {
    let counts = [1_u64, 50, 200, 1_000, 10_000, 1_000_000]
        .map(|us| run_with("http_onoff_8to1.pcap.gz", &fixed(Duration::us(us))).unwrap().trains.len());
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    // At the far end: each direction of each connection is one train.
    assert_eq!(counts[5], 16);
}

#[test]
fn a_gap_of_exactly_the_threshold_does_not_end_a_train() {
    let a = run_with("formats/same400_le_usec.pcap", &fixed(Duration::us(1))).unwrap();
    let idle = a.trains.iter().filter_map(|t| t.gap_before_ns).min().unwrap();
    let at = run_with("formats/same400_le_usec.pcap", &fixed(Duration::ns(idle))).unwrap();
    let below = run_with("formats/same400_le_usec.pcap", &fixed(Duration::ns(idle - 1))).unwrap();
    assert!(at.trains.len() < below.trains.len());
}

#[test]
fn with_the_default_most_responses_are_one_train() {
    let a = run("http_onoff_8to1.pcap.gz").unwrap();
    let exact = |t: &&fanin_capture::Turn| {
        a.trains.iter().any(|r| (r.connection, r.turn, r.turns, r.bytes) == (t.connection, t.turn, 1, t.response_bytes))
    };
    let exact = a.turns.iter().filter(exact).count();
    assert!(exact >= 1500, "only {exact} of {} responses are one train", a.turns.len());
    let floor = Gap::DEFAULT_FLOOR.ps() / 1000;
    assert!(a.trains.iter().all(|t| t.threshold_ns >= floor));
}

/// More connections than are kept at hand, each with a host of its own, speak in turn: each looks as if a few of them had been alone.
#[test]
fn connections_that_rest_while_many_others_speak_go_on_where_they_were() {
    let few = capture_of_many(50);
    let many = capture_of_many(33_000);
    assert_eq!(many.connections.len(), 33_000);
    assert!(many.connections.iter().take(50).eq(few.connections.iter()));
    assert!(
        few.connections.iter().all(|c| c.to_client.unique_bytes == 4_500 && c.turns == 3),
        "{:?}",
        few.connections.get(0).unwrap()
    );
    let of_few = |connection: u32| connection < 50;
    assert_eq!(many.trains.iter().filter(|t| of_few(t.connection)).copied().collect::<Vec<_>>(), few.trains);
    assert_eq!(many.turns.iter().filter(|t| of_few(t.connection)).copied().collect::<Vec<_>>(), few.turns);
}

/// So many clients ask a server each for 1500 bytes, all once a second, three times.
fn capture_of_many(count: u32) -> Analysis {
    let mut file = PcapWriter::new(Vec::new(), None).unwrap();
    let mut bytes = Vec::new();
    for round in 0..3 {
        for n in 0..count {
            let (client, server) = (Endpoint::host(2 * n, 40_000), Endpoint::host(2 * n + 1, 80));
            let at = Duration::s(u64::from(round)) + Duration::us(u64::from(20 * n));
            let (flags, ip_id) = (Flags::ACK | Flags::PSH, round as u16 + 1);
            let ask = Segment {
                seq: 1 + 100 * round,
                ack: 1 + 1500 * round,
                flags,
                ip_id,
                payload: 100,
                ..Segment::between(client, server)
            };
            let answer = Segment {
                seq: 1 + 1500 * round,
                ack: 101 + 100 * round,
                flags,
                ip_id,
                payload: 1500,
                ..Segment::between(server, client)
            };
            for (late, segment) in [(0, ask), (10, answer)] {
                bytes.clear();
                let length = segment.headers(&mut bytes);
                file.packet(Time::ZERO + at + Duration::us(late), &bytes, length).unwrap();
            }
        }
    }
    run_bytes(&file.finish().unwrap()).unwrap()
}
