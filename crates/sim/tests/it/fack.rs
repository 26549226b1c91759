//! Linux 3.2's sender: losses by forward acknowledgement.

use crate::common::*;
use crate::linux::{linux, sprayed};
use fanin_cc::RecoveryKind::{Fack, Rack, Sack};
use fanin_cc::{RecoveryKind, Value};
use fanin_sim::queue;
use fanin_sim::results::Results;
use fanin_sim::spec::*;
use fanin_sim::stack::Stack;
use fanin_units::{Duration, Rate};

/// A message of so many segments, of whose packets some are lost.
fn repaired(recovery: RecoveryKind, segments: u64, lost: &str) -> Results {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word(lost.to_owned()));
    let t = transport(&mut spec, "reno", Stack { recovery, ..linux() });
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, segments * 1448, Duration::ZERO);
    spec.trace.packets = vec![LinkId(1)];
    let r = run(&spec);
    assert!(r.complete);
    r
}

/// Mathis and Mahdavi, section 2.2: recovery begins when the highest SACK lies more than three segments ahead, also where one ACK alone says so.
#[test]
fn a_single_sack_beyond_three_holes_is_enough() {
    let after = |lost: &str| {
        let f = &repaired(Fack, 4, lost).flows.row(0);
        (f.fast_recoveries, f.timeouts)
    };
    assert_eq!(after("1, 2, 3"), (1, 0));
    // The fourth is the highest of three: three segments ahead at most, and nothing more is to come.
    assert_eq!(after("1, 2, 4"), (0, 1));
    assert_eq!(repaired(Sack, 4, "1, 2, 3").flows.row(0).timeouts, 1, "by RFC 6675 one duplicate ACK is too few");
}

/// A hole within three segments of the highest SACK is not lost, unless a duplicate ACK comes while others are repaired.
#[test]
fn the_segments_that_lie_far_enough_below_the_highest_sack_are_sent_again() {
    let f = &repaired(Fack, 10, "1, 2, 3, 4").flows.row(0);
    assert_eq!((f.retransmissions, f.timeouts, f.fast_recoveries), (4, 0, 1), "{f:?}");
}

/// `tcp_mark_lost_retrans`: what was sent again is lost again once new data that left after it are reported. RFC 6675 waits for the timer.
#[test]
fn a_retransmission_that_newer_data_passed_is_lost() {
    let p = repaired(Fack, 40, "1").traces.packets;
    let sent = (0..p.seq.len()).filter(|&i| p.event[i] <= 1 && p.payload[i] > 0);
    let again = 1 + sent.enumerate().skip(1).find(|&(_, i)| p.seq[i] == 0).expect("it is sent again").0;
    let with = |recovery| {
        let f = &repaired(recovery, 40, &format!("1, {again}")).flows.row(0);
        assert_eq!(f.drops, 2, "the retransmission was lost");
        (f.timeouts, f.fast_recoveries)
    };
    assert_eq!((with(Fack), with(Rack)), ((0, 1), (0, 1)));
    assert_eq!(with(Sack).0, 1);
}

/// `tcp_update_reordering`: once a packet has overtaken others the distance means nothing, and as many reports as it overtook are waited for.
#[test]
fn packets_that_overtake_others_end_it_on_their_connection() {
    let with = |recovery| sprayed(Duration::us(55), Stack { recovery, ..linux() }).flows.row(0);
    let (fack, sack) = (with(Fack), with(Sack));
    assert!(fack.drops == 0 && fack.fast_recoveries * 3 < sack.fast_recoveries, "{fack:?} {sack:?}");
}
