//! What Linux's endpoint does with marks: CWR, what of its packets is ECN-capable, and reductions that meet.

use crate::common::*;
use crate::linux::{delayed_and_marked, linux};
use fanin_cc::Value;
use fanin_sim::queue;
use fanin_sim::spec::*;
use fanin_sim::stack::{EcnMode, Stack};
use fanin_units::{Duration, QueueLimit, Rate, Time};

/// `tcp_ecn_accept_cwr`: a segment with CWR is acknowledged at once. At windows of two packets that decides how much is in the queue:
/// with twenty flows Linux keeps 29.4 packets (`results/kernel.csv`: long, 20 senders, 100Mbps, 400p).
#[test]
fn a_segment_with_cwr_is_acknowledged_at_once() {
    let mean_queue = |stack: Stack| {
        let k = Some(QueueLimit::Packets(20));
        let mut spec = star(20, Rate::gbps(1), Duration::us(25), Some(QueueLimit::Packets(400)), k);
        spec.links[1].rate = Rate::mbps(100);
        let t = transport(&mut spec, "dctcp", stack);
        for i in 0..20 {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, Message::UNLIMITED, Duration::ZERO);
        }
        spec.end = Time::ZERO + Duration::s(5);
        spec.stop_when_done = false;
        run(&spec).ports[1].mean_queue_packets
    };
    let with = mean_queue(Stack::linux());
    let without = mean_queue(Stack { ack_on_cwr: false, ..Stack::linux() });
    assert!((29.0..32.0).contains(&with), "{with}");
    assert!(without > with + 5.0, "{without} {with}");
}

/// `tcp_fastretrans_alert`, step A: `prior_ssthresh` is 0 after an echo. The timeout was for nothing, but the queue that caused it is there.
#[test]
fn a_timeout_for_nothing_keeps_its_reduction_where_congestion_is_echoed() {
    let stack = Stack { min_rto: Duration::ms(4), ecn: EcnMode::Classic, ..linux() };
    let r = delayed_and_marked(stack.clone(), Some(QueueLimit::Packets(5)));
    let f = r.flows.row(0);
    assert!(r.complete && f.drops == 0 && f.timeouts >= 1 && f.undos >= 1 && f.marks > 0, "{f:?}");
    assert!(r.traces.window.ssthresh.last().unwrap().is_finite());
    // Without marks the same timeout leaves nothing.
    assert!(delayed_and_marked(stack, None).traces.window.ssthresh.last().unwrap().is_infinite());
}

/// DCTCP's control packets are ECN-capable in Linux, classic ECN's are not (`tcp_ecn_send`).
#[test]
fn acks_of_dctcp_are_ecn_capable_and_of_classic_ecn_not() {
    let ect = |ecn: EcnMode| {
        let mut spec = star(1, Rate::gbps(1), Duration::us(10), None, None);
        let t = transport(&mut spec, "reno", Stack { ecn, ..Stack::linux() });
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 30_000, Duration::ZERO);
        spec.trace.packets = vec![LinkId(0)];
        let r = run(&spec);
        let p = &r.traces.packets;
        let acks: Vec<u16> = (0..p.flags.len()).filter(|&i| p.event[i] == 0).map(|i| p.flags[i]).collect();
        assert!(acks.len() > 3);
        acks.iter().filter(|&&f| f & fanin_sim::packet::flags::ECT != 0).count() == acks.len()
    };
    assert!(ect(EcnMode::Dctcp));
    assert!(!ect(EcnMode::Classic));
}

/// What DCTCP sends again is ECN-capable in Linux, too; with classic ECN a retransmission is not (RFC 3168 section 6.1.5).
#[test]
fn retransmissions_of_dctcp_are_ecn_capable_and_of_classic_ecn_not() {
    let ect = |ecn: EcnMode| {
        let mut spec = star(1, Rate::gbps(1), Duration::us(10), Some(QueueLimit::Packets(10)), None);
        fast_access(&mut spec, Rate::gbps(10));
        let t = transport(&mut spec, "reno", Stack { ecn, initial_window: 40.0, ..Stack::linux() });
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 40 * 1460, Duration::ZERO);
        spec.trace.packets = vec![LinkId(2)];
        let r = run(&spec);
        let p = &r.traces.packets;
        let data = (0..p.flags.len()).filter(|&i| p.event[i] == 0 && p.payload[i] > 0);
        let mut seen = std::collections::HashSet::new();
        let again: Vec<u16> = data.filter(|&i| !seen.insert(p.seq[i])).map(|i| p.flags[i]).collect();
        assert!(again.len() > 3, "{} retransmissions", again.len());
        let capable = again.iter().filter(|&&f| f & fanin_sim::packet::flags::ECT != 0).count();
        (capable, again.len())
    };
    let (capable, all) = ect(EcnMode::Dctcp);
    assert_eq!(capable, all);
    assert_eq!(ect(EcnMode::Classic).0, 0);
}

/// `dctcp_state`: the kernel's DCTCP halves the window that it finds when a recovery begins, also within an ECN reduction.
#[test]
fn dctcp_halves_again_when_a_loss_follows_a_mark_within_the_window() {
    let least_ssthresh = |form: &str| {
        let mut spec =
            star(8, Rate::gbps(1), Duration::us(25), Some(QueueLimit::Packets(40)), Some(QueueLimit::Packets(20)));
        let t = transport(&mut spec, "dctcp", linux());
        spec.transports[t as usize].args.set("dctcp_form", Value::Word(form.to_owned()));
        for i in 0..8 {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, 60_000, Duration::ZERO);
            spec.trace.windows.push(f);
        }
        let r = run(&spec);
        assert!(r.flows.iter().any(|f| f.drops > 0 && f.ecn_reductions > 0));
        let w = &r.traces.window;
        // From CWR (2) straight to Recovery (3): ssthresh before and after.
        let mut last: Vec<Option<(u8, f64)>> = vec![None; 8];
        let mut fell = Vec::new();
        for i in 0..w.state.len() {
            let place = &mut last[w.flow[i] as usize];
            if let Some((2, before)) = *place
                && w.state[i] == 3
            {
                fell.push(w.ssthresh[i] < before);
            }
            *place = Some((w.state[i], w.ssthresh[i]));
        }
        assert!(!fell.is_empty(), "no recovery within an ECN reduction");
        fell.iter().any(|&f| f)
    };
    assert!(least_ssthresh("linux"));
    assert!(!least_ssthresh("rfc"));
}

/// `tcp_enter_loss`: a timeout within an ECN reduction's window of data does not reduce again.
#[test]
fn a_timeout_within_an_ecn_reduction_leaves_the_threshold() {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
    // The sender's own port marks the initial window; of what its ACKs let out nothing arrives, nor do probes.
    spec.links[2].queue.mark_above = Some(QueueLimit::Packets(1));
    let lost: Vec<String> = (11..=60).map(|n: u32| n.to_string()).collect();
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word(lost.join(",")));
    let t = transport(&mut spec, "dctcp", linux());
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 100 * 1448, Duration::ZERO);
    spec.trace.windows.push(f);
    let r = run(&spec);
    let w = &r.traces.window;
    let expired = (1..w.state.len()).find(|&i| w.state[i] == 4).expect("a timeout");
    assert_eq!((w.state[expired - 1], w.ssthresh[expired]), (2, w.ssthresh[expired - 1]));
}
