//! What Linux's endpoint takes back when nothing was lost, and what a repaired tail costs it.

use crate::common::*;
use fanin_cc::RecoveryKind::{self, Fack, Rack};
use fanin_cc::Value;
use fanin_sim::packet::flags;
use fanin_sim::queue;
use fanin_sim::results::Results;
use fanin_sim::spec::*;
use fanin_sim::stack::{RtoRestart, Stack};
use fanin_units::{Bytes, Duration, MaybeTime, QueueLimit, Rate, Time};

pub(crate) fn linux() -> Stack {
    Stack { handshake: false, send_jitter: Duration::ZERO, ..Stack::linux() }
}

/// How many packets waited in the sender's own port at most: a slow connection whose window grows, two segments per ACK of two.
fn most_in_the_host(tsq_limit: Duration) -> u64 {
    let mut spec = star(1, Rate::mbps(2), Duration::us(50), None, None);
    fast_access(&mut spec, Rate::gbps(1));
    let t = transport(&mut spec, "reno", Stack { tsq_limit, initial_window: 2.0, ..linux() });
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 300_000, Duration::ZERO);
    let r = run(&spec);
    assert!(r.complete);
    r.ports[2].max_queue_packets
}

#[test]
fn the_host_of_a_slow_connection_holds_two_of_its_segments() {
    assert_eq!(most_in_the_host(Stack::linux().tsq_limit), 2);
    assert!(most_in_the_host(Duration::ZERO) > 2);
}

/// The virtual kernel hands over seven of the first ten segments of 536 bytes at once, 1.06 ms after the SYN, and three as those leave.
#[test]
fn a_first_flight_waits_for_the_rate_that_the_handshake_showed() {
    let mut spec = star(1, Rate::gbps(10), Duration::us(264), None, None);
    let t = transport(&mut spec, "reno", Stack { handshake: true, mss: 536, ..linux() });
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 5360, Duration::ZERO);
    spec.trace.packets = vec![LinkId(2)];
    let r = run(&spec);
    let p = &r.traces.packets;
    let handed: Vec<u64> =
        (0..p.seq.len()).filter(|&i| p.event[i] == 0 && p.payload[i] > 0).map(|i| p.time_ps[i]).collect();
    assert_eq!((handed.len(), handed.iter().filter(|&&at| at == handed[0]).count()), (10, 7), "{handed:?}");
}

/// A timer of a few milliseconds, and a burst of datagrams that fills the port for 50 ms once the flow is under way.
fn delayed(stack: Stack) -> Results {
    delayed_and_marked(stack, None)
}

pub(crate) fn delayed_and_marked(stack: Stack, mark: Option<QueueLimit>) -> Results {
    let mut spec = star(2, Rate::mbps(100), Duration::us(50), None, mark);
    fast_access(&mut spec, Rate::gbps(100));
    let t = transport(&mut spec, "reno", stack);
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 400_000, Duration::ZERO);
    spec.trace.windows.push(f);
    spec.cbr.push(Cbr {
        src: NodeId(3),
        dst: NodeId(0),
        rate: Rate::gbps(100),
        packet: Bytes::new(1500),
        start: Time::ZERO + Duration::us(1000),
        stop: Time::ZERO + Duration::us(1050),
        class: 0,
    });
    spec.end = Time::ZERO + Duration::s(5);
    run(&spec)
}

/// When the packet that begins at `seq` entered the first recorded port, in us, once for each time it was sent.
fn sent_at(r: &Results, seq: u64) -> Vec<u64> {
    let p = &r.traces.packets;
    (0..p.seq.len()).filter(|&i| p.event[i] == 0 && p.seq[i] == seq).map(|i| p.time_ps[i] / 1_000_000).collect()
}

/// RFC 5682: the ACK of an original after the timer expired tells that nothing was lost.
#[test]
fn a_timeout_for_nothing_is_taken_back() {
    let stack = Stack { min_rto: Duration::ms(4), ..linux() };
    let r = delayed(stack.clone());
    let f = &r.flows.row(0);
    assert!(r.complete && f.drops == 0, "{f:?}");
    assert!(f.timeouts >= 1 && f.undos >= 1, "{f:?}");
    let w = &r.traces.window;
    let last = w.ssthresh.len() - 1;
    assert!(w.ssthresh[last].is_infinite(), "ssthresh is what it was before: {}", w.ssthresh[last]);

    // Without Linux's sender the same timeout keeps the reduction, and the message takes longer.
    let plain = delayed(Stack { recovery: fanin_cc::RecoveryKind::Sack, ..stack });
    assert!(plain.flows.row(0).timeouts >= 1 && plain.flows.row(0).undos == 0);
    assert!(plain.traces.window.ssthresh.last().unwrap().is_finite());
    assert!(
        plain.messages.row(0).done_ps > r.messages.row(0).done_ps,
        "{:?} {:?}",
        plain.messages.row(0),
        r.messages.row(0)
    );
}

#[test]
fn a_timeout_for_a_loss_is_not() {
    // All of the first window is lost, and what the probe sends: only the timer is left.
    let all: Vec<String> = (1..=11).map(|n: u32| n.to_string()).collect();
    let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word(all.join(",")));
    let t = transport(&mut spec, "reno", linux());
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 100_000, Duration::ZERO);
    spec.trace.windows.push(f);
    let r = run(&spec);
    assert!(r.complete);
    assert_eq!((r.flows.row(0).timeouts, r.flows.row(0).undos), (1, 0), "{:?}", r.flows.row(0));
}

/// F-RTO needs no time stamps: after the ACK of an original new data leave instead of retransmissions, and their ACKs prove that nothing
/// was lost (RFC 5682 section 3.1; `tcp_process_loss`).
#[test]
fn without_time_stamps_new_data_show_that_a_timeout_was_for_nothing() {
    let r = delayed(Stack { min_rto: Duration::ms(4), timestamps: false, ..linux() });
    let f = &r.flows.row(0);
    assert!(r.complete && f.drops == 0 && f.timeouts >= 1 && f.undos >= 1, "{f:?}");
    let w = &r.traces.window;
    let end = (1..w.state.len()).find(|&i| (w.state[i - 1], w.state[i]) == (4, 0)).expect("the repair ended");
    assert!(w.ssthresh[end].is_infinite(), "{}", w.ssthresh[end]);
}

/// New data left just before the timer expired: the first segment is sent again at once, whatever is still on its way.
#[test]
fn a_timeout_sends_the_first_segment_though_later_ones_are_young() {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word("5, 6".to_owned()));
    let stack = Stack { min_rto: Duration::ms(5), initial_window: 4.0, timer_wheel: false, ..linux() };
    let t = transport(&mut spec, "reno", stack);
    let f = flow(&mut spec, 0, t);
    // Four segments give a round trip of 4 ms; then one is lost, so is its probe, and before the timer is due the application writes on.
    message(&mut spec, f, 4 * 1448, Duration::ZERO);
    message(&mut spec, f, 1448, Duration::ms(10));
    message(&mut spec, f, 1448, Duration::ms(33));
    spec.trace.packets.push(LinkId(2));
    spec.trace.windows.push(f);
    let r = run(&spec);
    let w = &r.traces.window;
    let repair = w.state.iter().position(|&s| s == 4).expect("a timeout");
    // One is on its way, and one more may be (`tcp_enter_loss`).
    assert_eq!(w.cwnd[repair], 2.0);
    let fifth = sent_at(&r, 4 * 1448);
    assert_eq!((r.complete, r.flows.row(0).timeouts, r.flows.row(0).tail_probes), (true, 1, 1), "{:?}", r.flows.row(0));
    // Sent at 10 ms; the probe a timer of three round trips later, as after a first sample, the timeout as long after that.
    assert!(fifth.len() == 3 && fifth[2] - fifth[1] < 12_200, "us: {fifth:?}");
}

/// RFC 8985 section 6.2: without three segments delivered out of order, the one before them is lost a quarter of the least round trip
/// after the first of them was acknowledged.
#[test]
fn the_reordering_window_is_a_quarter_of_the_least_round_trip() {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(10), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word("5".to_owned()));
    let t = transport(&mut spec, "reno", Stack { initial_window: 4.0, timer_wheel: false, ..linux() });
    let f = flow(&mut spec, 0, t);
    // Four segments give a round trip of 40 ms; of the next three the first is lost.
    message(&mut spec, f, 4 * 1448, Duration::ZERO);
    message(&mut spec, f, 3 * 1448, Duration::ms(100));
    spec.trace.packets.push(LinkId(2));
    let r = run(&spec);
    let fifth = sent_at(&r, 4 * 1448);
    assert_eq!((r.complete, r.flows.row(0).timeouts, r.flows.row(0).tail_probes), (true, 0, 0), "{:?}", r.flows.row(0));
    // One round trip until the ACK, ten milliseconds of window; the timer has a granularity of its own.
    let &[first, second] = fifth.as_slice() else { panic!("us: {fifth:?}") };
    assert!((50_000..53_000).contains(&(second - first)), "us: {fifth:?}");
}

/// Two paths of different length, packets spread over both.
pub(crate) fn sprayed(difference: Duration, stack: Stack) -> Results {
    run(&two_paths(difference, "reno", stack))
}

fn two_paths(difference: Duration, cc: &str, stack: Stack) -> Spec {
    let node = |name: &str, kind| Node { name: name.into(), kind, processing: Duration::ZERO, shared_buffer: None };
    let names = ["client", "s1", "a", "b", "c", "d"];
    let nodes = (0..6).map(|i| node(names[i], if i < 2 { NodeKind::Host } else { NodeKind::Switch })).collect();
    let mut links = Vec::new();
    for (from, to, extra) in [(1, 2, 0), (2, 3, 0), (2, 4, 1), (3, 5, 0), (4, 5, 0), (5, 0, 0)] {
        for (from, to) in [(from, to), (to, from)] {
            let delay = Duration::us(25) + if extra == 1 { difference } else { Duration::ZERO };
            let (from, to, rate) = (NodeId(from), NodeId(to), Rate::gbps(1));
            links.push(Link { from, to, rate, delay, queue: Queue::drop_tail(None) });
        }
    }
    let mut spec = star(1, Rate::gbps(1), Duration::us(25), None, None);
    (spec.nodes, spec.links, spec.routing) = (nodes, links, Routing::Spray);
    let t = transport(&mut spec, cc, stack);
    spec.flows.push(Flow {
        src: NodeId(1),
        dst: NodeId(0),
        transport: t,
        class: 0,
        reverse: None,
        open: MaybeTime::NONE,
        stop: MaybeTime::NONE,
    });
    message(&mut spec, FlowId(0), 5_000_000, Duration::ZERO);
    spec.end = Time::ZERO + Duration::s(5);
    spec
}

/// Nothing sticks, nothing runs away: losses, reordering and timers shorter than the delays they wait for, all at once.
#[test]
fn everything_arrives_whatever_is_lost_overtaken_or_timed_out_for_nothing() {
    for (seed, cc) in (1..).zip(["reno", "cubic", "dctcp", "bbr", "vegas", "trim"]) {
        for min_rto in [Duration::us(200), Duration::ms(1), Duration::ms(20)] {
            for (lost, recovery) in [0.0, 0.002, 0.05].into_iter().flat_map(|lost| [(lost, Rack), (lost, Fack)]) {
                let stack = Stack { min_rto, recovery, send_jitter: Duration::us(10), ..Stack::linux() };
                let mut spec = two_paths(Duration::us(200), cc, stack);
                spec.messages[0].bytes = 300_000;
                for link in [4, 10] {
                    spec.links[link].queue.discipline = queue::find("lossy").unwrap();
                    spec.links[link].queue.args.set("loss_probability", Value::Number(lost));
                }
                spec.seed = seed;
                spec.end = Time::ZERO + Duration::s(300);
                let r = run(&spec);
                let f = &r.flows.row(0);
                assert!(r.complete && f.bytes_delivered == 300_000, "{cc} {min_rto:?} {lost}: {f:?}");
                assert!(f.undos <= f.timeouts + f.fast_recoveries, "{cc} {min_rto:?} {lost}: {f:?}");
                assert!(f.segments < 4000, "{cc} {min_rto:?} {lost}: {f:?}");
            }
        }
    }
}

/// RFC 8985 section 6.2: once packets overtake each other, a quarter of a round trip passes before one counts as lost.
#[test]
fn reordering_within_a_quarter_of_a_round_trip_costs_next_to_nothing() {
    let r = sprayed(Duration::us(55), linux());
    let f = &r.flows.row(0);
    assert!(r.complete && f.drops == 0, "{f:?}");
    assert!(f.fast_recoveries <= 3 && f.undos == f.fast_recoveries && f.retransmissions <= 10, "{f:?}");
    assert!(f.goodput_share(&r) > 0.9, "{f:?}");

    // The duplicate threshold alone takes every third packet for lost.
    let sack = sprayed(Duration::us(55), Stack { recovery: fanin_cc::RecoveryKind::Sack, ..linux() });
    assert!(sack.flows.row(0).fast_recoveries > 10, "{:?}", sack.flows.row(0));
}

/// RFC 8985 section 6.2 step 4: D-SACKs widen the window, and take the reductions back.
#[test]
fn reordering_beyond_that_is_learnt_from_duplicates() {
    let r = sprayed(Duration::us(120), linux());
    let f = &r.flows.row(0);
    assert!(r.complete && f.drops == 0, "{f:?}");
    assert!(f.undos >= 1 && f.undos <= f.fast_recoveries, "{f:?}");
    assert!(f.retransmissions < f.segments / 20, "{f:?}");
}

/// RFC 8985 section 7.4: the loss that a probe repaired reduces the window once, when later data is acknowledged.
#[test]
fn a_tail_repaired_by_the_probe_costs_one_reduction() {
    let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word("10".to_owned()));
    let t = transport(&mut spec, "reno", linux());
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 14_480, Duration::ZERO);
    message(&mut spec, f, 14_480, Duration::ms(500));
    spec.trace.windows.push(f);
    let r = run(&spec);
    assert!(r.complete);
    let row = &r.flows.row(0);
    assert_eq!((row.tail_probes, row.timeouts, row.fast_recoveries, row.retransmissions), (1, 0, 0, 1), "{row:?}");
    let w = &r.traces.window;
    let before = w.time_ps.iter().position(|&t| t > Duration::ms(500).ps()).unwrap() - 1;
    assert!(w.ssthresh[before].is_infinite(), "nothing beyond the probe was acknowledged yet");
    // The silence brought the window back to ten. The second answer's first ACK tells of the loss, the others of nothing more.
    let mut reduced: Vec<f64> = w.ssthresh[before..].to_vec();
    reduced.dedup();
    assert_eq!(reduced, [f64::INFINITY, 5.0]);
}

/// Responses of 10 and, after 10 ms, of 2 segments, and of 10 at `third`. From 10 ms less `before` to 10 ms plus `after` datagrams fill the receiver's
/// port, which holds so many packets, a hundred times as fast as it sends.
fn acks_behind_datagrams(stack: Stack, third: Duration, port: u32, before: Duration, after: Duration) -> Spec {
    let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
    spec.links[0].queue = Queue::drop_tail(Some(QueueLimit::Packets(port)));
    let t = transport(&mut spec, "reno", stack);
    let f = flow(&mut spec, 0, t);
    for (segments, at) in [(10, Duration::ZERO), (2, Duration::ms(10)), (10, third)] {
        message(&mut spec, f, segments * 1448, at);
    }
    let second = Time::ZERO + Duration::ms(10);
    let (rate, packet) = (Rate::gbps(100), Bytes::new(1500));
    let (start, stop) = (second - before, second + after);
    spec.cbr.push(Cbr { src: NodeId(0), dst: NodeId(2), rate, packet, start, stop, class: 0 });
    spec.trace.windows.push(f);
    spec.trace.packets = vec![LinkId(2)];
    spec
}

/// One probe, which repeats what had arrived, and no reduction.
fn assert_a_probe_costs_nothing(spec: &Spec) {
    let r = run(spec);
    let row = &r.flows.row(0);
    assert_eq!((row.drops, row.tail_probes, row.timeouts, row.retransmissions), (0, 1, 0, 1), "{row:?}");
    let w = &r.traces.window;
    assert!(r.complete && w.ssthresh.iter().all(|s| s.is_infinite()), "{:?}", w.ssthresh);
}

/// The ACKs of the second response find the port full, so that the answer to the probe is the first ACK of it.
#[test]
fn a_probe_of_what_had_arrived_costs_nothing() {
    let (third, after) = (Duration::ms(500), Duration::us(400));
    assert_a_probe_costs_nothing(&acks_behind_datagrams(linux(), third, 5, Duration::ZERO, after));
}

/// The ACK waits ten milliseconds in the port. The probe leaves within eight (two round trips and 2 ms, in ticks of 4 ms), so its answer, a D-SACK, comes
/// when nothing is outstanding any more (`tcp_ack`, label no_queue).
#[test]
fn a_probe_costs_nothing_whose_answer_comes_after_everything_was_acknowledged() {
    let (third, after) = (Duration::ms(500), Duration::us(150));
    assert_a_probe_costs_nothing(&acks_behind_datagrams(linux(), third, 10_000, Duration::ZERO, after));
}

/// A D-SACK while new data are out tells that nothing is missing: the state stays Open (`tcp_try_keep_open`), in which a tail may be probed.
#[test]
fn a_d_sack_alone_is_no_disorder() {
    let (third, after) = (Duration::ms(24), Duration::us(150));
    let r = run(&acks_behind_datagrams(linux(), third, 10_000, Duration::ZERO, after));
    let row = &r.flows.row(0);
    assert_eq!((row.drops, row.tail_probes, row.timeouts, row.retransmissions), (0, 1, 0, 1), "{row:?}");
    let w = &r.traces.window;
    let told: Vec<_> = (0..w.state.len()).map(|i| (w.time_ps[i] / 1_000_000, w.state[i])).collect();
    assert!(w.state.iter().all(|&state| state == 0), "us, state: {told:?}");
}

/// The ACK waits sixty milliseconds in the port, and without time stamps it does not say what it answers. The D-SACKs for what the timer sent again do,
/// when nothing is outstanding any more (`tcp_try_undo_dsack`).
#[test]
fn a_needless_timeout_is_taken_back_after_everything_was_acknowledged() {
    let stack = Stack { timestamps: false, min_rto: Duration::ms(20), ..linux() };
    let (third, before) = (Duration::ms(80), Duration::us(600));
    let r = run(&acks_behind_datagrams(stack, third, 10_000, before, Duration::ZERO));
    let row = &r.flows.row(0);
    assert_eq!((row.drops, row.timeouts, row.undos), (0, 1, 1), "{row:?}");
    let p = &r.traces.packets;
    let at = third.ps()..(third + Duration::us(200)).ps();
    let at_once = (0..p.seq.len()).filter(|&i| p.event[i] == 0 && p.payload[i] > 0 && at.contains(&p.time_ps[i]));
    assert_eq!(at_once.count(), 10, "in the window before the timeout");
}

/// Linux reduces for it by way of CWR, so that DCTCP takes alpha's part of the window and not half (`tcp_process_tlp_ack`).
#[test]
fn a_tail_repaired_by_the_probe_costs_dctcp_what_a_mark_does() {
    let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word("10".to_owned()));
    let t = transport(&mut spec, "dctcp", linux());
    spec.transports[0].args.set("dctcp_alpha0", Value::Number(0.0));
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 14_480, Duration::ZERO);
    message(&mut spec, f, 14_480, Duration::ms(500));
    spec.trace.windows.push(f);
    let r = run(&spec);
    assert!(r.complete && r.flows.row(0).tail_probes == 1 && r.flows.row(0).timeouts == 0, "{:?}", r.flows.row(0));
    let w = &r.traces.window;
    let reduced = w.ssthresh.iter().position(|s| s.is_finite()).expect("a reduction");
    // Of an alpha of nothing: nothing.
    assert!(w.ssthresh[reduced] >= w.cwnd[reduced - 1], "{} {}", w.ssthresh[reduced], w.cwnd[reduced - 1]);
}

/// A retransmission that is lost again and again, with enough behind it to tell: each time it goes the timer starts anew.
#[test]
fn the_timer_starts_anew_whenever_the_first_segment_goes_again() {
    let timeouts = |restart: RtoRestart| {
        let (mut lost, mut timeouts) = (vec![1_usize], 0);
        for _ in 0..5 {
            let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
            spec.links[1].queue.discipline = queue::find("lossy").unwrap();
            let list: Vec<String> = lost.iter().map(ToString::to_string).collect();
            spec.links[1].queue.args.set("loss_of", Value::Word(list.join(",")));
            let stack = Stack {
                initial_window: 10.0,
                timer_wheel: false,
                min_rto: Duration::ms(6),
                rto_restart: restart,
                ..linux()
            };
            let t = transport(&mut spec, "reno", stack);
            let f = flow(&mut spec, 0, t);
            message(&mut spec, f, 1_000_000, Duration::ZERO);
            spec.trace.packets = vec![LinkId(1)];
            spec.trace.windows.push(f);
            let r = run(&spec);
            timeouts = r.flows.row(0).timeouts;
            // The last time that the first segment came to the port is lost, too, in the next run.
            let p = &r.traces.packets;
            let offered: Vec<u64> = (0..p.seq.len()).filter(|&i| p.event[i] <= 1).map(|i| p.seq[i]).collect();
            let last = offered.iter().rposition(|&seq| seq == 0).unwrap() + 1;
            if timeouts > 0 {
                break;
            }
            lost.push(last);
        }
        timeouts
    };
    assert!(timeouts(RtoRestart::Impatient) > 0);
    assert_eq!(timeouts(RtoRestart::EveryAck), 0);
}

/// `tcp_fastretrans_alert`: a lost retransmission after a timeout begins a recovery.
#[test]
fn a_retransmission_lost_after_a_timeout_begins_a_recovery() {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    // The first flight and its probe are lost. The timer sends the first segment again, two new ones show that the timeout was right (F-RTO), and
    // of what goes again then the first is lost, too.
    spec.links[1].queue.args.set("loss_of", Value::Word("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15".to_owned()));
    let t = transport(&mut spec, "reno", linux());
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 40 * 1448, Duration::ZERO);
    spec.trace.windows.push(f);
    let r = run(&spec);
    assert_eq!((r.complete, r.flows.row(0).timeouts), (true, 1), "{:?}", r.flows.row(0));
    let states = &r.traces.window.state;
    assert!(states.windows(2).any(|s| s == [4, 3]), "{states:?}");
}

/// `tcp_time_to_recover`: the first of 20 segments is lost, and so are its repetition and the first new one of the recovery. That ends while the latter
/// is on its way again: another recovery begins at once, and the window is halved a second time.
#[test]
fn a_recovery_that_ends_while_a_retransmission_is_out_begins_another() {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    let t = transport(&mut spec, "reno", Stack { initial_window: 20.0, ..linux() });
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 100 * 1448, Duration::ZERO);
    spec.trace.windows.push(f);
    // Two new ones leave before the loss is known.
    spec.links[1].queue.args.set("loss_of", Value::Word("1, 23, 24".to_owned()));
    let r = run(&spec);
    let row = &r.flows.row(0);
    assert_eq!((row.timeouts, row.fast_recoveries, row.retransmissions), (0, 2, 3), "{row:?}");
    assert_eq!(r.traces.window.ssthresh.last(), Some(&5.0));
}

/// Many losses, one repaired per round trip: the impatient NewReno of RFC 6582 runs into its timer, Linux's goes on.
#[test]
fn every_partial_ack_restarts_the_timer() {
    let many: Vec<String> = (1..=39).step_by(2).map(|n: u32| n.to_string()).collect();
    let with = |stack: Stack| {
        let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
        spec.links[1].queue.discipline = queue::find("lossy").unwrap();
        spec.links[1].queue.args.set("loss_of", Value::Word(many.join(",")));
        let t = transport(&mut spec, "reno", stack);
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 100_000, Duration::ZERO);
        run(&spec).flows.row(0)
    };
    let stack = Stack {
        initial_window: 40.0,
        min_rto: Duration::ms(20),
        initial_rto: Duration::ms(20),
        recovery: fanin_cc::RecoveryKind::NewReno,
        ..linux()
    };
    let patient = with(stack.clone());
    assert_eq!((patient.timeouts, patient.fast_recoveries, patient.retransmissions), (0, 1, 20), "{patient:?}");
    let impatient = with(Stack { rto_restart: RtoRestart::Impatient, ..stack });
    assert!(impatient.timeouts >= 1, "{impatient:?}");
}

trait Share {
    fn goodput_share(&self, r: &Results) -> f64;
}

impl Share for fanin_sim::results::FlowStats {
    /// Of 1 Gbps.
    fn goodput_share(&self, r: &Results) -> f64 {
        let done = r.messages.row(0).done_ps.unwrap_or(r.end_ps);
        self.bytes_delivered as f64 * 8.0 / (done as f64 / 1e12) / 1e9
    }
}

/// `tcp_schedule_loss_probe`: two round trips, and where a single segment is out the timer's floor on top, since its ACK may be delayed.
#[test]
fn the_probe_of_a_lone_segment_waits_200_ms_longer() {
    let done_ms = |segments: u64| {
        let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
        spec.links[1].queue.discipline = queue::find("lossy").unwrap();
        spec.links[1].queue.args.set("loss_of", Value::Word(if segments == 1 { "21" } else { "21, 22" }.to_owned()));
        let t = transport(&mut spec, "cubic", linux());
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 20 * 1448, Duration::ZERO);
        message(&mut spec, f, segments * 1448, Duration::ms(50));
        let r = run(&spec);
        assert!(r.complete && r.flows.row(0).drops == segments && r.flows.row(0).timeouts == 0, "{:?}", r.flows.row(0));
        (r.messages.row(1).done_ps.unwrap() - Duration::ms(50).ps()) as f64 / 1e9
    };
    // In jiffies of 4 ms, one to two late.
    let (lone, two) = (done_ms(1), done_ms(2));
    assert!((200.0..213.0).contains(&lone) && (0.4..13.0).contains(&two), "{lone} {two}");
}

/// `tcp_pacing_delay`: with a window of two segments in 400 ms Linux paces at twice that, so that the next waits for 100 ms, 25 jiffies. A timer of
/// 600 ms is on the wheel's second level, whose step is 32 ms.
#[test]
fn a_timer_waits_longer_by_the_whole_jiffies_for_which_pacing_holds_the_next_segment_back() {
    let repaired_ms = |pacing: bool| {
        let mut spec = star(1, Rate::mbps(100), Duration::ms(100), None, None);
        spec.links[1].queue.discipline = queue::find("lossy").unwrap();
        spec.links[1].queue.args.set("loss_of", Value::Word("2".to_owned()));
        let recovery = RecoveryKind::NewReno;
        let stack = Stack { common_ticks: true, pacing, unpaced_segments: 0, recovery, initial_window: 1.0, ..linux() };
        let t = transport(&mut spec, "reno", stack);
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 1448, Duration::ZERO);
        message(&mut spec, f, 1448, Duration::ms(900));
        spec.trace.packets = vec![LinkId(1)];
        sent_at(&run(&spec), 1448)[0] / 1000
    };
    let later = repaired_ms(true) - repaired_ms(false);
    assert!((64..=128).contains(&later), "{later}");
}

/// Windows and what is in flight, in the order they were in force, of a DCTCP flow that loses all of its first window, probe included, and whose packets
/// are all marked.
fn marked_after_a_timeout(initial_window: f64, lost: &str) -> Vec<(f64, f64, f64)> {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, Some(QueueLimit::Packets(0)));
    let queue = &mut spec.links[1].queue;
    queue.discipline = queue::find("lossy").unwrap();
    queue.args.set("loss_of", Value::Word(lost.to_owned()));
    let t = transport(&mut spec, "dctcp", Stack { initial_window, ..linux() });
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, Message::UNLIMITED, Duration::ZERO);
    spec.trace.windows.push(f);
    spec.end = Time::ZERO + Duration::ms(5000);
    let r = run(&spec);
    assert_eq!(r.flows.row(0).timeouts, 1, "{:?}", r.flows.row(0));
    let w = &r.traces.window;
    (0..w.time_ps.len()).map(|i| (w.cwnd[i], w.ssthresh[i], w.in_flight[i])).collect()
}

/// An echo reduces nothing while a timeout is repaired: the window grows as in slow start to the threshold of five (`tcp_may_raise_cwnd`).
#[test]
fn echoes_do_not_hold_the_repair_of_a_timeout_back() {
    let steps = marked_after_a_timeout(10.0, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11");
    let grown: Vec<f64> = steps.iter().filter(|s| s.1 == 5.0).map(|s| s.0).collect();
    assert!(grown.starts_with(&[1.0, 1.0, 2.0]) && grown.contains(&5.0), "{grown:?}");
}

/// The ACK that ends the repair of a lone segment is an echo: the reduction begins with a window of one, and ends with Linux's least threshold, two
/// (`tcp_end_cwnd_reduction`).
#[test]
fn a_reduction_of_one_segment_ends_with_two() {
    let steps = marked_after_a_timeout(1.0, "1, 2");
    assert!(steps.contains(&(1.0, 2.0, 0.0)), "{steps:?}");
    assert_eq!(steps.iter().rev().take(50).fold(0.0, |most: f64, s| most.max(s.2)), 2.0);
    assert!(steps.iter().skip(8).all(|s| s.2 <= 2.0), "{steps:?}");
}

/// `bbr_quantization_budget`: three bursts of a millisecond of data each are in flight beside the product. With eight senders of 256 KB
/// they do not fit a hundred packets, and a share of the rounds stalls, as in real Linux.
#[test]
fn bursts_of_bbr_overflow_a_shallow_buffer() {
    let lost = |quantum: f64| {
        let mut spec = star(8, Rate::gbps(1), Duration::us(10), Some(QueueLimit::Packets(100)), None);
        let t = transport(&mut spec, "bbr", Stack::linux());
        spec.transports[0].args.set("bbr_send_quantum", Value::Number(quantum));
        for i in 0..8 {
            let f = flow(&mut spec, i, t);
            for round in 0..20 {
                message(&mut spec, f, 256_000, Duration::ms(500 * round));
            }
        }
        spec.end = Time::ZERO + Duration::s(20);
        let r = run(&spec);
        r.flows.iter().map(|f| f.retransmissions).sum::<u64>()
    };
    let (kernel, single) = (lost(0.0), lost(1.0));
    assert!(kernel > 2 * single, "{kernel} {single}");
}

/// Linux's receive window starts at 45 segments and is enlarged by what arrives; meanwhile every segment is acknowledged at once
/// (`tcp_grow_window`), so that a receiver's sixteen quick ACKs are 19, as on the virtual kernel, and a window that grows later brings ACKs for
/// single segments back.
#[test]
fn while_the_receive_window_grows_every_segment_is_acknowledged_at_once() {
    let acks = |stack: Stack| {
        let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
        let t = transport(&mut spec, "reno", stack);
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 60 * 1448, Duration::ZERO);
        spec.trace.packets = vec![LinkId(0)];
        let r = run(&spec);
        let p = &r.traces.packets;
        let mut seqs: Vec<u64> = (0..p.seq.len()).filter(|&i| p.event[i] == 0).map(|i| p.seq[i] / 1448).collect();
        seqs.dedup();
        seqs
    };
    let tuned = acks(linux());
    let single: Vec<u64> = (1..=19).collect();
    assert_eq!(tuned[..19], single, "{tuned:?}");
    assert_eq!(tuned[19..23], [21, 23, 25, 27], "{tuned:?}");
    // What was read in the first round trips has enlarged the buffer.
    assert_eq!(tuned[27..32], [37, 38, 39, 40, 41], "{tuned:?}");
    let fixed = acks(Stack { receive_buffer: Bytes::ZERO, ..linux() });
    assert_eq!(fixed[14..18], [15, 16, 18, 20], "{fixed:?}");
}

/// `tcp_event_data_recv`: quick ACKs come back after a gap longer than the receiving host's own timer, SRTT + floor, not than the floor alone.
#[test]
fn a_gap_longer_than_the_receivers_timer_brings_quick_acks() {
    // The handshake takes 4 ms and the floor is 20 ms. The first message has arrived after 10.2 ms, the second begins to 2 ms after it leaves.
    let acks_of_the_second = |leaves: u64| {
        let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
        let stack = Stack { handshake: true, min_rto: Duration::ms(20), receive_buffer: Bytes::ZERO, ..linux() };
        let t = transport(&mut spec, "reno", stack);
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 20 * 1448, Duration::ZERO);
        message(&mut spec, f, 10 * 1448, Duration::ms(leaves));
        spec.trace.packets = vec![LinkId(0)];
        let r = run(&spec);
        let p = &r.traces.packets;
        (0..p.seq.len()).filter(|&i| p.event[i] == 0 && p.seq[i] > 20 * 1448).count()
    };
    assert_eq!([acks_of_the_second(15), acks_of_the_second(30), acks_of_the_second(45)], [5, 5, 10]);
}

/// A sender that may have more than 45 segments out waits for the window to grow.
#[test]
fn an_initial_window_of_100_segments_is_held_to_the_45_that_a_receiver_first_offers() {
    let first_flight = |stack: Stack| {
        let mut spec = star(1, Rate::gbps(10), Duration::ms(1), None, None);
        let t = transport(&mut spec, "reno", Stack { initial_window: 100.0, ..stack });
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 200 * 1448, Duration::ZERO);
        spec.trace.packets.push(LinkId(2));
        let r = run(&spec);
        let p = &r.traces.packets;
        (0..p.seq.len()).filter(|&i| p.event[i] == 0 && p.time_ps[i] < Duration::ms(2).ps()).count()
    };
    assert_eq!(first_flight(linux()), 45);
    assert_eq!(first_flight(Stack { receive_buffer: Bytes::ZERO, ..linux() }), 100);
}

/// Two flows from equal links into an equal link: with equal clocks one of them holds the full queue for ever, because its packets arrive
/// just when a place becomes free. No two real clocks are equal. (A sender that is slower than the port by some ppm still holds on for long.)
#[test]
fn two_flows_on_links_of_equal_rate_share_a_full_queue() {
    let least = |clock_error_ppm: f64, seed: u64| {
        let mut spec = star(2, Rate::mbps(100), Duration::us(25), Some(QueueLimit::Packets(400)), None);
        let stack = Stack { clock_error_ppm, read_size: Bytes::ZERO, ..Stack::linux() };
        let t = transport(&mut spec, "reno", stack);
        for i in 0..2 {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, Message::UNLIMITED, Duration::ZERO);
        }
        (spec.seed, spec.stop_when_done) = (seed, false);
        let r = run(&spec);
        let all: u64 = r.flows.iter().map(|f| f.bytes_delivered).sum();
        r.flows.iter().map(|f| f.bytes_delivered as f64 / all as f64).fold(1.0, f64::min)
    };
    let of_twelve = |ppm: f64, is: fn(f64) -> bool| (1..=12).filter(|&seed| is(least(ppm, seed))).count();
    let locked = of_twelve(0.0, |share| share < 0.05);
    let shared = of_twelve(50.0, |share| share > 0.15);
    assert!(locked >= 6, "{locked} of 12 locked out with equal clocks, {shared} share with 50 ppm");
    assert!(shared >= 10, "{shared} of 12 share with clocks of 50 ppm");
}

/// `tcp_xmit_retransmit_queue` asks for pacing as new data do: the first repair of a recovery waits for its turn, too.
#[test]
fn what_bbr_sends_again_keeps_to_its_pacing() {
    let mut spec = star(2, Rate::mbps(100), Duration::us(25), Some(QueueLimit::Packets(20)), None);
    fast_access(&mut spec, Rate::gbps(1));
    let t = transport(&mut spec, "bbr", Stack { send_jitter: Duration::ZERO, ..Stack::linux() });
    for i in 0..2 {
        let f = flow(&mut spec, i, t);
        message(&mut spec, f, 1_000_000_000, Duration::us(300 * u64::from(i)));
    }
    spec.end = Time::ZERO + Duration::s(2);
    spec.trace.packets = vec![LinkId(2), LinkId(4)];
    let r = run(&spec);
    // One of the two takes most of the link and never waits for its timer, on the virtual kernel too.
    let flow = r.flows.iter().position(|f| f.timeouts == 0).expect("one without a timeout");
    assert!(r.flows.row(flow).fast_recoveries > 5, "{:?}", r.flows.row(flow));
    let p = &r.traces.packets;
    let mine = |i: usize| p.flow[i] == flow as u32;
    let late = |i: &usize| {
        mine(*i) && p.event[*i] == 0 && p.time_ps[*i] > Duration::ms(500).ps() && p.flags[*i] & flags::ACK == 0
    };
    let sent: Vec<u64> = (0..p.time_ps.len()).filter(late).map(|i| p.time_ps[i]).collect();
    let close = sent.windows(2).filter(|w| w[1] - w[0] < Duration::us(40).ps()).count();
    assert_eq!(close, 0, "of {}", sent.len());
}
