//! Loss recovery through the real sender, step by step as the RFCs' arithmetic gives it.

use crate::common::*;
use fanin_cc::Value;
use fanin_cc::registry;
use fanin_sim::queue;
use fanin_sim::results::Results;
use fanin_sim::spec::{Message, Spec};
use fanin_sim::stack::{GrowAfterRecovery, LossBasis, RttTiming, Stack};
use fanin_units::{Bytes, Duration, Rate, Time};

/// One sender with window 20 that loses the packets of these numbers at the switch's port; unlimited data.
fn lose(cc: &str, stack: Stack, packets: &str) -> Spec {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
    fast_access(&mut spec, Rate::gbps(10));
    let queue = &mut spec.links[1].queue;
    queue.discipline = queue::find("lossy").unwrap();
    queue.args.set("loss_of", Value::Word(packets.to_owned()));
    let t = transport(&mut spec, cc, stack);
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, Message::UNLIMITED, Duration::ZERO);
    spec.trace.windows.push(f);
    spec.trace.packets.push(fanin_sim::spec::LinkId(2));
    spec.end = Time::ZERO + Duration::ms(30);
    spec
}

/// Sequence numbers (in packets from 1) accepted at the sender's port, with the time.
fn sent(r: &Results) -> Vec<(u64, u64)> {
    let p = &r.traces.packets;
    (0..p.time_ps.len()).filter(|&i| p.event[i] == 0).map(|i| (p.time_ps[i], p.seq[i] / 1460 + 1)).collect()
}

/// Distinct (cwnd, ssthresh) in the order they were in force.
fn windows(r: &Results) -> Vec<(f64, f64)> {
    let w = &r.traces.window;
    let mut rows: Vec<(f64, f64)> = (0..w.time_ps.len()).map(|i| (w.cwnd[i], w.ssthresh[i])).collect();
    rows.dedup();
    rows
}

/// Window 20 in congestion avoidance from the start, so that ACKs before the loss move it as little as possible.
fn window_of_20(stack: Stack) -> Stack {
    Stack { initial_window: 20.0, ..stack }
}

/// The oracle of RFC 6582 by hand: packets 1..20 outstanding, 1 and 5 lost.
#[test]
fn newreno_repairs_two_losses_in_one_recovery_packet_by_packet() {
    let stack = Stack { grow_after_recovery: GrowAfterRecovery::Never, ..window_of_20(open_ns2()) };
    let r = run(&lose("newreno", stack, "1, 5"));
    let order: Vec<u64> = sent(&r).iter().map(|s| s.1).collect();
    // 1..20 at once; limited transmit sends 21 and 22; the third duplicate resends 1; the window of 10 inflated to 30 lets 23..30
    // leave; the partial ACK up to 4 resends 5 and, with 27 against a flight of 26, sends 31; 8 more duplicates send 32..39.
    let expected: Vec<u64> = (1..=22).chain([1]).chain(23..=30).chain([5]).chain(31..=39).collect();
    assert_eq!(&order[..expected.len()], expected, "{order:?}");
    let w = windows(&r);
    for step in [(20.0, f64::INFINITY), (13.0, 10.0), (30.0, 10.0), (27.0, 10.0), (35.0, 10.0), (10.0, 10.0)] {
        assert!(w.contains(&step), "{step:?} not in {w:?}");
    }
    assert_eq!((r.flows.row(0).fast_recoveries, r.flows.row(0).timeouts, r.flows.row(0).retransmissions), (1, 0, 2));
}

#[test]
fn reno_halves_inflates_and_leaves_at_the_first_new_ack() {
    let stack = Stack { grow_after_recovery: GrowAfterRecovery::Never, ..window_of_20(open_ns2()) };
    let r = run(&lose("reno", stack, "1"));
    let w = windows(&r);
    let at = w.iter().position(|&s| s == (13.0, 10.0)).expect("third duplicate ACK: ssthresh 10, cwnd 13");
    // 19 duplicates in all for packets 2..20, two more for the limited transmits: 13 + 18 at the end.
    assert_eq!(w[at + 16], (29.0, 10.0), "16 further duplicates");
    let after = w[at..].iter().position(|&s| s == (10.0, 10.0)).expect("the new ACK deflates to ssthresh");
    assert!(after > 16);
    assert_eq!((r.flows.row(0).fast_recoveries, r.flows.row(0).timeouts), (1, 0));
}

#[test]
fn a_whole_lost_window_waits_for_the_timeout_and_goes_on_from_one_packet() {
    let all: Vec<String> = (1..=20).map(|n: u32| n.to_string()).collect();
    let mut spec = lose("newreno", window_of_20(open_ns2()), &all.join(","));
    spec.transports[0].stack.initial_rto = Duration::ms(5);
    let r = run(&spec);
    assert_eq!(windows(&r)[1], (1.0, 10.0), "{:?}", windows(&r));
    assert_eq!(r.flows.row(0).timeouts, 1);
    let s = sent(&r);
    assert_eq!((s[20].1, s[20].0), (1, Duration::ms(5).ps()), "the first packet goes again when the timer expires");
    // Slow start from 1 in the second life: 2 and 3 leave together one round trip later.
    assert_eq!((s[21].1, s[22].1), (2, 3));
    assert_eq!(s[21].0, s[22].0);
}

#[test]
fn successive_timeouts_double_and_reduce_ssthresh_once() {
    let all: Vec<String> = (1..=23).map(|n: u32| n.to_string()).collect();
    let mut spec = lose("newreno", window_of_20(open_ns2()), &all.join(","));
    spec.transports[0].stack.initial_rto = Duration::ms(1);
    spec.transports[0].stack.min_rto = Duration::ms(1);
    spec.transports[0].stack.loss_basis = LossBasis::Window;
    let r = run(&spec);
    let times: Vec<u64> = sent(&r)[20..24].iter().map(|s| s.0 / 1_000_000_000).collect();
    assert_eq!(times, [1, 3, 7, 15], "1, then 2, 4, 8 ms later");
    assert_eq!(windows(&r)[1], (1.0, 10.0));
    assert_eq!(windows(&r)[2].1, 10.0, "ssthresh falls once, not with every backoff");
    spec.transports[0].stack.loss_basis = LossBasis::WholeWindow;
    assert_eq!(windows(&run(&spec))[2], (1.0, 2.0), "NS2 halves the window of one packet, too");
}

/// ns-2 2.35, 5 packets at first, packet 1 lost: 5 dups, `cwnd_ 5 -> 2.5` and `ssthresh_ 2`, and the ACK that repairs it enlarges the window of
/// NewReno and Reno (`recv_newack_helper`), not that of Sack1.
#[test]
fn ns2_keeps_the_fraction_of_a_halved_window_and_grows_on_the_ack_that_ends_the_recovery() {
    for (cc, last) in [("newreno", 2.9), ("reno", 2.9), ("sack", 2.5)] {
        let w = windows(&run(&lose(cc, Stack { initial_window: 5.0, ..open_ns2() }, "1")));
        assert!(w.iter().any(|&(_, ssthresh)| ssthresh == 2.0), "{cc}: {w:?}");
        let end = w.iter().position(|&step| step == (last, 2.0));
        assert!(end.is_some(), "{cc}: {last} not in {w:?}");
    }
}

/// Where one segment is timed, ACKs of what was sent again end no back-off (Karn): a second loss waits for twice the first timer.
#[test]
fn a_timer_stays_backed_off_until_a_round_trip_is_known() {
    // The window of two is lost, packet 1 is repaired by the timer, and what its ACK lets out is lost, too.
    let second_wait = |timing| {
        let mut spec = lose("newreno", Stack { initial_window: 2.0, ..open_ns2() }, "1, 2, 4, 5");
        let stack = &mut spec.transports[0].stack;
        (stack.initial_rto, stack.min_rto, stack.rtt_timing) = (Duration::ms(50), Duration::ms(50), timing);
        spec.end = Time::ZERO + Duration::s(1);
        let s = sent(&run(&spec));
        assert_eq!(s[..6].iter().map(|x| x.1).collect::<Vec<_>>(), [1, 2, 1, 2, 3, 2]);
        Duration::from_ps(s[5].0 - s[3].0).as_secs()
    };
    assert!((second_wait(RttTiming::EachAck) - 0.050).abs() < 0.001);
    assert!((second_wait(RttTiming::OneSegment) - 0.100).abs() < 0.001);
}

#[test]
fn sack_repairs_many_losses_of_a_window_within_one_round_trip() {
    let r = run(&lose("sack", window_of_20(open_ns2()), "1,3,5,7"));
    let s = sent(&r);
    let resent: Vec<(u64, u64)> =
        [1, 3, 5, 7].iter().map(|&n| *s.iter().filter(|x| x.1 == n).nth(1).unwrap()).collect();
    let first = resent[0].0;
    assert!(resent.iter().all(|x| x.0 - first < Duration::ms(4).ps()), "{resent:?}");
    assert_eq!((r.flows.row(0).fast_recoveries, r.flows.row(0).timeouts, r.flows.row(0).retransmissions), (1, 0, 4));
    assert!(windows(&r).contains(&(10.0, 10.0)));
}

#[test]
fn the_linux_endpoint_repairs_a_lost_tail_by_a_probe_without_a_timeout() {
    // The probe repeats packet 10; its SACK tells that 9 is lost too. (Of a lone packet Linux waits 200 ms longer.)
    // Without jitter, or the probe's round trip may be the shortest of the connection, and then proves nothing.
    let stack = Stack { handshake: false, timer_wheel: false, send_jitter: Duration::ZERO, ..Stack::linux() };
    let mut spec = lose("newreno", stack, "9, 10");
    spec.transports[0].cc = registry::resolve("dctcp").unwrap();
    spec.messages[0].bytes = 14_480;
    spec.end = Time::ZERO + Duration::s(2);
    let r = run(&spec);
    assert!(r.complete);
    assert_eq!((r.flows.row(0).timeouts, r.flows.row(0).tail_probes), (0, 1), "{:?}", r.flows.row(0));
    // The last ACK after one round trip of 4.1 ms, the probe 2 srtt + 2 ms later, its SACK a round trip later, half of one for packet 9.
    let done = r.messages.row(0).done_ps.unwrap();
    assert!((Duration::ms(20).ps()..Duration::ms(21).ps()).contains(&done), "{:?}", r.messages.row(0));
}

/// The probe repeats the ninth segment, which ends the message, and PSH with it: the host that reads it acknowledges it at once, not when
/// the delayed ACK is due.
#[test]
fn the_end_of_a_message_that_is_sent_again_is_acknowledged_at_once() {
    let stack = Stack { handshake: false, send_jitter: Duration::ZERO, initial_quickacks: 0, ..Stack::linux() };
    let stack = Stack { receive_buffer: Bytes::ZERO, ..stack };
    let mut spec = lose("newreno", stack, "9");
    spec.transports[0].cc = registry::resolve("dctcp").unwrap();
    spec.messages[0].bytes = 9 * 1448;
    spec.trace.packets = vec![fanin_sim::spec::LinkId(0)];
    spec.stop_when_done = false;
    spec.end = Time::ZERO + Duration::s(2);
    let r = run(&spec);
    let (done, acks) = (r.messages.row(0).done_ps.unwrap(), &r.traces.packets);
    assert_eq!(
        (r.flows.row(0).drops, r.flows.row(0).tail_probes, r.flows.row(0).timeouts),
        (1, 1, 0),
        "{:?}",
        r.flows.row(0)
    );
    assert_eq!(acks.time_ps.iter().filter(|&&time| time >= done).collect::<Vec<_>>()[0], &done);
}

#[test]
fn every_recovery_delivers_everything_under_random_loss() {
    for cc in ["reno", "newreno", "sack", "rack"] {
        for seed in 1..6 {
            let mut stack = Stack { min_rto: Duration::ms(10), initial_rto: Duration::ms(20), ..open_ns2() };
            let name = if cc == "rack" {
                stack.recovery = fanin_cc::RecoveryKind::Rack;
                "dctcp"
            } else {
                cc
            };
            let mut spec = star(3, Rate::gbps(1), Duration::us(50), None, None);
            let queue = &mut spec.links[1].queue;
            queue.discipline = queue::find("lossy").unwrap();
            queue.args.set("loss_probability", Value::Number(0.05));
            let t = transport(&mut spec, name, stack);
            for i in 0..3 {
                let f = flow(&mut spec, i, t);
                message(&mut spec, f, 500_000, Duration::ZERO);
            }
            spec.seed = seed;
            spec.end = Time::ZERO + Duration::s(100);
            let r = run(&spec);
            assert!(r.complete, "{cc} seed {seed}: {:?}", r.flows);
            for f in &r.flows {
                assert_eq!(f.bytes_delivered, 500_000);
                assert!(f.drops > 0 && f.retransmissions >= f.drops, "{cc}: {f:?}");
            }
        }
    }
}
