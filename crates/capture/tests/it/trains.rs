//! Packet trains against a second, independent reading of the definition.

use crate::common::{run, run_with};
use fanin_capture::{Direction, Gap, Options, Train};
use fanin_units::Duration;

fn fixed(gap: Duration) -> Options {
    Options { gap: Gap::Fixed(gap) }
}

#[test]
fn trains_are_separated_by_more_than_the_gap_and_their_sums_are_the_connections() {
    let gap = Duration::ms(1);
    for capture in ["http_onoff_8to1.pcap.gz", "zeek_http_206_example_b.pcap", "formats/one_direction.pcap"] {
        let a = run_with(capture, &fixed(gap)).unwrap();
        for c in &a.connections {
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
