//! The endpoint's habits, seen from outside: ACKs, ECN echo, Nagle, handshake, windows, idleness, barriers.

use crate::common::*;
use fanin_cc::Value;
use fanin_cc::registry;
use fanin_sim::packet::flags;
use fanin_sim::queue;
use fanin_sim::results::Results;
use fanin_sim::spec::*;
use fanin_sim::stack::{CwndValidation, EcnMode, Nagle, Stack};
use fanin_units::{Bytes, Duration, QueueLimit, Rate, Time};

/// ACKs as they leave the client: (acknowledged packets, ECE, time).
fn acks(r: &Results) -> Vec<(u64, bool, u64)> {
    let p = &r.traces.packets;
    (0..p.time_ps.len())
        .filter(|&i| p.link[i] == 0 && p.event[i] == 0 && p.flags[i] & flags::ACK != 0)
        .map(|i| (p.seq[i] / 1460, p.flags[i] & flags::ECE != 0, p.time_ps[i]))
        .collect()
}

/// Data as it leaves the first sender: (first byte, payload, time).
fn data(r: &Results) -> Vec<(u64, u32, u64)> {
    let p = &r.traces.packets;
    (0..p.time_ps.len())
        .filter(|&i| p.link[i] == 2 && p.event[i] == 0 && p.flags[i] & (flags::ACK | flags::SYN) == 0)
        .map(|i| (p.seq[i], p.payload[i], p.time_ps[i]))
        .collect()
}

fn one_flow(stack: Stack, messages: &[(u64, Duration)]) -> Spec {
    let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
    let t = transport(&mut spec, "newreno", stack);
    let f = flow(&mut spec, 0, t);
    for &(bytes, at) in messages {
        message(&mut spec, f, bytes, at);
    }
    spec.trace.packets = vec![LinkId(0), LinkId(2)];
    spec.trace.windows = vec![f];
    spec.stop_when_done = false;
    spec.end = Time::ZERO + Duration::s(1);
    spec
}

fn marked(which: &str, stack: Stack, packets: u64) -> Vec<(u64, bool)> {
    let mut spec = one_flow(Stack { initial_window: 20.0, ..stack }, &[(packets * 1460, Duration::ZERO)]);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("mark_of", Value::Word(which.to_owned()));
    acks(&run(&spec)).into_iter().map(|(n, ece, _)| (n, ece)).collect()
}

/// RFC 8257 section 3.2 by hand: CE bits 0,0,1,1,1,0 with an ACK for every second packet.
#[test]
fn dctcps_receiver_acknowledges_every_change_of_ce_at_once() {
    let stack = Stack { ecn: EcnMode::Dctcp, delack_segments: 2, ..open_ns2() };
    assert_eq!(marked("3,4,5", stack.clone(), 6), [(2, false), (3, true), (5, true), (6, false)]);
    assert_eq!(marked("2", stack, 2), [(1, false), (2, true)]);
}

#[test]
fn the_classic_receiver_echoes_until_cwr() {
    let stack = Stack { ecn: EcnMode::Classic, ..open_ns2() };
    let echo = marked("1", stack, 40);
    assert!(echo[0].1 && echo[19].1, "every ACK of the window carries ECE: {echo:?}");
    assert!(echo[20..].iter().any(|a| !a.1), "CWR on the first new packet ends it: {echo:?}");
}

#[test]
fn delayed_acks_cover_two_packets_and_a_lone_one_waits_for_the_timer() {
    let stack = Stack { delack_segments: 2, initial_window: 10.0, ..open_ns2() };
    let r = run(&one_flow(stack, &[(3 * 1460, Duration::ZERO)]));
    let a = acks(&r);
    assert_eq!(a.iter().map(|x| x.0).collect::<Vec<_>>(), [2, 3]);
    // The third packet arrives 36 + 12 + 100 us after the start, its ACK leaves 100 ms later.
    assert_eq!(a[1].2, (Duration::us(148) + Duration::ms(100)).ps());
}

#[test]
fn a_hole_and_its_repair_are_acknowledged_at_once() {
    let stack = Stack { delack_segments: 2, initial_window: 20.0, ..open_ns2() };
    let mut spec = one_flow(stack, &[(6 * 1460, Duration::ZERO)]);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word("2".to_owned()));
    let r = run(&spec);
    let numbers: Vec<u64> = acks(&r).iter().map(|x| x.0).collect();
    // Packet 1 is held (delayed), 3 to 6 are duplicates at once, the repair is acknowledged at once.
    assert_eq!(numbers, [1, 1, 1, 1, 6]);
}

#[test]
fn a_segment_never_joins_two_writes_unless_told() {
    let sizes = |merge| {
        let stack = Stack { merge_writes: merge, initial_window: 1.0, ..open_ns2() };
        // The second and third write wait behind the first packet's ACK.
        let r = run(&one_flow(stack, &[(1460, Duration::ZERO), (1000, Duration::us(1)), (700, Duration::us(2))]));
        data(&r).iter().map(|d| d.1).collect::<Vec<_>>()
    };
    assert_eq!(sizes(false), [1460, 1000, 700]);
    assert_eq!(sizes(true), [1460, 1460, 240]);
}

#[test]
fn nagle_holds_a_small_segment_and_minshall_only_behind_another() {
    let second = |nagle| {
        let stack = Stack { nagle, initial_window: 10.0, ..open_ns2() };
        let r = run(&one_flow(stack, &[(1560, Duration::ZERO)]));
        data(&r)[1].2
    };
    assert_eq!(second(Nagle::Off), 0);
    assert_eq!(second(Nagle::Minshall), 0, "no small segment is outstanding before it");
    assert!(second(Nagle::Rfc896) > Duration::us(200).ps(), "waits for the first ACK");
    let third = |nagle| {
        let stack = Stack { nagle, initial_window: 10.0, ..open_ns2() };
        let r = run(&one_flow(stack, &[(100, Duration::ZERO), (100, Duration::us(1))]));
        data(&r)[1].2
    };
    assert_eq!(third(Nagle::Off), Duration::us(1).ps());
    assert!(third(Nagle::Minshall) > Duration::us(200).ps());
}

#[test]
fn a_handshake_costs_one_round_trip_of_empty_packets() {
    let done = |handshake| {
        let r = run(&one_flow(Stack { handshake, ..open_ns2() }, &[(1460, Duration::ZERO)]));
        r.messages.row(0).done_ps.unwrap()
    };
    // Four hops of 50 us and 0.32 us.
    assert_eq!(done(true) - done(false), Duration::ns(201_280).ps());
}

/// Linux's SYNs carry eight bytes of options more than other packets, and an ACK that tells of one hole twelve: at 1 Gbps each takes that much
/// longer on either hop.
#[test]
fn syns_and_selective_acks_are_as_long_as_their_options() {
    let sent = |option_bytes, handshake| {
        let stack =
            Stack { option_bytes, handshake, send_jitter: Duration::ZERO, clock_error_ppm: 0.0, ..Stack::linux() };
        let mut spec = one_flow(stack, &[(14_480, Duration::ZERO)]);
        spec.transports[0].cc = registry::resolve("reno").unwrap();
        spec.links[1].queue.discipline = queue::find("lossy").unwrap();
        spec.links[1].queue.args.set("loss_of", Value::Word("2".to_owned()));
        data(&run(&spec))
    };
    let (long, short) = (sent(true, true), sent(false, true));
    // SYN and SYN/ACK: four hops of 8 bytes.
    assert_eq!(long[0].2 - short[0].2, Duration::ns(256).ps());
    // What the first holes' ACKs say comes back 12 bytes later on two hops.
    let (long, short) = (sent(true, false), sent(false, false));
    let resent = |sent: &[(u64, u32, u64)]| sent.iter().filter(|s| s.0 == 1448).nth(1).unwrap().2;
    assert_eq!(resent(&long) - resent(&short), Duration::ns(192).ps());
}

/// NS2's `syn_` is on: what loses nothing ends one round trip of empty packets later than on a connection that is open.
#[test]
fn the_agents_of_ns2_begin_with_a_syn() {
    let done = |stack| run(&one_flow(stack, &[(1460, Duration::ZERO)])).messages.row(0).done_ps.unwrap();
    assert_eq!(done(Stack::ns2()) - done(open_ns2()), Duration::ns(201_280).ps());
}

#[test]
fn the_receive_window_bounds_what_is_in_flight() {
    let stack = Stack { receive_window: Bytes::new(4 * 1460), initial_window: 20.0, ..open_ns2() };
    let r = run(&one_flow(stack, &[(100 * 1460, Duration::ZERO)]));
    assert!(r.complete);
    assert_eq!(r.traces.window.in_flight.iter().fold(0.0, |a: f64, &b| a.max(b)), 4.0);
}

#[test]
fn only_validation_keeps_an_idle_connection_from_bursting() {
    let burst_after_idle = |mode| {
        let stack = Stack { cwnd_validation: mode, ..open_ns2() };
        // 60 packets grow the window to 62; then half a second of silence, then 60 more.
        let r = run(&one_flow(stack, &[(60 * 1460, Duration::ZERO), (60 * 1460, Duration::ms(500))]));
        data(&r).iter().filter(|d| d.2 == Duration::ms(500).ps()).count()
    };
    assert_eq!(burst_after_idle(CwndValidation::None), 60);
    assert_eq!(burst_after_idle(CwndValidation::LinuxKeep), 60);
    assert_eq!(burst_after_idle(CwndValidation::Rfc5681), 2);
    assert_eq!(burst_after_idle(CwndValidation::Ns2Oneway), 1);
    assert_eq!(burst_after_idle(CwndValidation::Ns2Full), 2);
    assert_eq!(burst_after_idle(CwndValidation::Linux), 15, "62 halved twice in 2.5 RTOs, rounded down");
}

#[test]
fn an_application_limited_window_grows_only_without_validation() {
    let window = |mode| {
        let stack = Stack { cwnd_validation: mode, ..open_ns2() };
        let messages: Vec<(u64, Duration)> = (0..200).map(|n| (3 * 1460, Duration::ms(n))).collect();
        let r = run(&one_flow(stack, &messages));
        r.flows.row(0).cwnd
    };
    // Every ACK adds one: 2 + 600.
    assert_eq!(window(CwndValidation::None), 602.0);
    use CwndValidation::{Linux, LinuxKeep, Rfc2861, Rfc7661};
    for mode in [Linux, LinuxKeep, Rfc2861, Rfc7661] {
        let w = window(mode);
        assert!(w < 13.0, "{mode:?}: {w}");
    }
}

#[test]
fn messages_behind_a_barrier_wait_for_all_of_it_and_the_delay() {
    let mut spec = star(2, Rate::gbps(1), Duration::us(50), None, None);
    let t = transport(&mut spec, "newreno", open_ns2());
    let (a, b) = (flow(&mut spec, 0, t), flow(&mut spec, 1, t));
    spec.barriers = 1;
    for f in [a, b] {
        let m = message(&mut spec, f, 10_000, Duration::ZERO);
        spec.messages[m.index()].completes = Some(BarrierId(0));
    }
    let next = message(&mut spec, a, 1460, Duration::ZERO);
    spec.messages[next.index()].release = Release::After(BarrierId(0), Duration::us(30));
    let r = run(&spec);
    let last = r.messages.iter().take(2).map(|m| m.done_ps.unwrap()).max().unwrap();
    assert_eq!(r.messages.row(2).release_ps, Some(last + Duration::us(30).ps()));
    assert!(r.complete);
}

#[test]
fn a_full_buffer_drops_and_a_threshold_marks_what_is_capable() {
    let run_with = |ecn| {
        let mut spec =
            star(10, Rate::gbps(1), Duration::us(50), Some(QueueLimit::Packets(30)), Some(QueueLimit::Packets(5)));
        let t = transport(&mut spec, "newreno", Stack { initial_window: 10.0, ecn, ..open_ns2() });
        for i in 0..10 {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, 30_000, Duration::ZERO);
        }
        run(&spec)
    };
    let off = run_with(EcnMode::Off);
    assert!(off.ports[1].drops > 0 && off.ports[1].marks == 0);
    let on = run_with(EcnMode::Dctcp);
    assert!(on.ports[1].marks > 0 && on.flows.iter().any(|f| f.ecn_reductions > 0));
    assert_eq!(off.ports[1].max_queue_packets, 30);
}

#[test]
fn receiver_control_works_through_the_window_from_the_first_packet() {
    let run_with = |cc: &str| {
        let mut spec = star(16, Rate::gbps(1), Duration::us(50), Some(QueueLimit::Packets(40)), None);
        let t = transport(&mut spec, cc, Stack { initial_window: 10.0, ..Stack::linux() });
        for i in 0..16 {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, 100_000, Duration::ZERO);
        }
        let r = run(&spec);
        assert!(r.complete, "{cc}");
        (r.ports[1].drops, r.end_ps)
    };
    let (plain, _) = run_with("newreno");
    assert!(plain > 0);
    for cc in ["iatcp", "ictcp"] {
        let (drops, end) = run_with(cc);
        assert_eq!(drops, 0, "{cc}");
        // 16 x 100 KB at 1 Gbps take 13 ms; no delayed ACK is waited for.
        assert!(end < Duration::ms(30).ps(), "{cc}: {end}");
    }
}

/// RFC 9293 section 3.8.6.2.1: a receiver does not shrink the window. IA-TCP shares the pipe among its connections: when fifteen more come, the first
/// one's window gets shorter, but only by what arrives.
#[test]
fn no_acknowledgement_takes_back_a_window_that_was_offered() {
    let mut spec = star(16, Rate::gbps(1), Duration::us(500), None, None);
    let t = transport(&mut spec, "iatcp", Stack { initial_window: 10.0, ..Stack::linux() });
    for i in 0..16 {
        let f = flow(&mut spec, i, t);
        message(&mut spec, f, 1_000_000, Duration::ms(if i == 0 { 0 } else { 8 }));
    }
    spec.trace.packets = vec![LinkId(0)];
    let p = run(&spec).traces.packets;
    let acks = (0..p.time_ps.len()).filter(|&i| p.event[i] == 0 && p.flow[i] == 0 && p.flags[i] & flags::ACK != 0);
    let told: Vec<(u64, u32)> = acks.map(|i| (p.seq[i] + u64::from(p.window[i]), p.window[i])).collect();
    let shrank = told.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
    assert!(shrank > 10, "{shrank}: the policy takes windows back here: {told:?}");
    assert!(told.windows(2).all(|pair| pair[1].0 >= pair[0].0), "{told:?}");
}

/// Linux's sender would send half segments for ever to a receiver that has never offered two.
#[test]
fn under_receiver_control_linux_is_offered_two_segments_at_first_and_others_what_the_policy_says() {
    let ends = [Stack::linux(), Stack::rfc()].map(|stack| {
        let mss = u64::from(stack.mss);
        let mut spec = star(40, Rate::gbps(1), Duration::us(50), Some(QueueLimit::Packets(100)), None);
        let t = transport(&mut spec, "iatcp", Stack { handshake: false, initial_window: 10.0, ..stack });
        for i in 0..40 {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, 2 * mss, Duration::ZERO);
        }
        run(&spec).end_ps
    });
    // 80 packets take 1 ms. A share of one segment is one, and then there is an ACK to wait for, which is held.
    assert!(ends[0] < Duration::us(1_200).ps(), "{ends:?}");
    assert!(ends[1] > Duration::us(1_300).ps(), "{ends:?}");
}

/// RFC 7661 keeps the window of a sender that does not use it, and only of such a one: data without a break is slow start as RFC 5681 has it.
#[test]
fn validation_holds_no_sender_back_that_uses_its_window() {
    let ends = |messages: &[(u64, Duration)]| {
        [CwndValidation::Rfc7661, CwndValidation::None].map(|cwnd_validation| {
            let r = run(&one_flow(Stack { cwnd_validation, ..Stack::rfc() }, messages));
            assert!(r.complete && r.flows.row(0).retransmissions == 0);
            r.messages.iter().last().and_then(|m| m.done_ps).unwrap()
        })
    };
    let [with, without] = ends(&[(100 * 1460, Duration::ZERO)]);
    assert_eq!(with, without, "a fresh connection");
    // Sixty answers of two segments leave a window of ten as it is; without validation it would have grown by them.
    let mut little: Vec<(u64, Duration)> = (0..60).map(|n| (2 * 1460, Duration::ms(2) * n)).collect();
    little.push((100 * 1460, Duration::ms(121)));
    let [with, without] = ends(&little);
    assert!(with > without + Duration::us(200).ps(), "{with} {without}");
}

/// A held ACK is a packet of its host as any other: a host's processing delays it, too.
#[test]
fn an_ack_that_receiver_control_holds_waits_for_its_host_as_well() {
    let ends = [Duration::ZERO, Duration::us(100)].map(|send_jitter| {
        let stack = Stack { handshake: false, send_jitter, ..Stack::linux() };
        let mut spec = star(40, Rate::gbps(1), Duration::us(50), Some(QueueLimit::Packets(200)), None);
        let t = transport(&mut spec, "iatcp", stack);
        for i in 0..40 {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, 101 * 1448, Duration::ZERO);
        }
        run(&spec).end_ps
    });
    // A hundred cycles of a segment and its ACK, each late by 50 us in the mean.
    let later = (ends[1] - ends[0]) / 100 / Duration::us(1).ps();
    assert!((80..130).contains(&later), "{later} us a cycle");
}

/// RFC 8257 section 3.3 and RFC 3168 section 6.1.2: one reduction per window of data, also when its very last packet is marked.
#[test]
fn one_window_of_marks_costs_one_reduction() {
    let stack = Stack { initial_window: 10.0, initial_ssthresh: 5.0, ..open_ns2() };
    let mut spec = one_flow(stack, &[(1_000_000, Duration::ZERO)]);
    spec.transports[0].cc = registry::resolve("dctcp").unwrap();
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("mark_of", Value::Word("1,2,3,4,5,6,7,8,9,10".to_owned()));
    let r = run(&spec);
    assert_eq!(r.flows.row(0).ecn_reductions, 1, "{:?}", r.flows.row(0));
}
