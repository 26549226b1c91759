//! Linux's sender where the other end has no SACK.

use crate::common::*;
use crate::linux::linux;
use fanin_cc::Value;
use fanin_sim::queue;
use fanin_sim::spec::*;
use fanin_sim::stack::Stack;
use fanin_units::{Duration, Rate, Time};

/// Without SACK duplicate ACKs count as deliveries, so that the ACK that closes the hole opens the window by what it tells alone.
#[test]
fn the_end_of_a_recovery_without_sack_does_not_count_the_duplicates_again() {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word("1".to_owned()));
    let stack = Stack { initial_window: 40.0, recovery: fanin_cc::RecoveryKind::NewReno, ..linux() };
    let t = transport(&mut spec, "reno", stack);
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, Message::UNLIMITED, Duration::ZERO);
    spec.trace.windows.push(f);
    spec.end = Time::ZERO + Duration::ms(15);
    let r = run(&spec);
    let w = &r.traces.window;
    assert_eq!(r.flows.row(0).fast_recoveries, 1);
    let recovered = (1..w.state.len()).find(|&i| w.state[i - 1] == 3 && w.state[i] == 0).expect("a recovery ended");
    // ssthresh 20; what was sent on duplicates after the retransmission is what it adds at most: one packet per window of 20.
    assert!((20.0..21.5).contains(&w.cwnd[recovered]), "{} {:?}", recovered, w.cwnd[recovered]);
}

/// `tcp_is_non_sack_preventing_reopen`: a repair without SACK is over when data beyond its window are acknowledged. If the first of those
/// is lost, duplicate ACKs start nothing, and the timer decides. With SACK the next recovery begins at once.
#[test]
fn without_sack_a_loss_right_behind_a_repaired_window_waits_for_the_timer() {
    let with = |recovery: fanin_cc::RecoveryKind| {
        let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
        spec.links[1].queue.discipline = queue::find("lossy").unwrap();
        // 20 segments out; two more leave on duplicate ACKs, then the first again, and the 24th packet is the first beyond that window.
        spec.links[1].queue.args.set("loss_of", Value::Word("1, 24".to_owned()));
        let t = transport(&mut spec, "reno", Stack { initial_window: 20.0, recovery, ..linux() });
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 200 * 1448, Duration::ZERO);
        let r = run(&spec);
        assert!(r.complete && r.flows.row(0).drops == 2, "{:?}", r.flows.row(0));
        r.flows.row(0).timeouts
    };
    assert_eq!((with(fanin_cc::RecoveryKind::NewReno), with(fanin_cc::RecoveryKind::Rack)), (1, 0));
}

/// A window of 20 without SACK of which the first 13 are lost, packet by packet as the virtual kernel's sender does it. Each partial ACK finds the next
/// loss: it lets that repair out and nothing new (`newly_lost` in `tcp_cwnd_reduction`), though fewer than ssthresh are out.
#[test]
fn a_partial_ack_without_sack_lets_nothing_out_but_the_next_repair() {
    let lost: Vec<String> = (1..=13).map(|n: u32| n.to_string()).collect();
    let mut spec = without_sack(&lost.join(","), 20.0);
    spec.messages[0].bytes = Message::UNLIMITED;
    spec.end = Time::ZERO + Duration::ms(300);
    let r = run(&spec);
    let p = &r.traces.packets;
    let data = (0..p.seq.len()).filter(|&i| p.event[i] == 0 && p.payload[i] > 0);
    let sent: Vec<u64> = data.map(|i| p.seq[i] / 1448 + 1).collect();
    let expected: Vec<u64> = (1..=22).chain([1, 23, 24, 2, 25, 3, 4, 5, 6]).collect();
    assert_eq!(&sent[..expected.len()], expected, "{sent:?}");
    assert_eq!((r.flows.row(0).fast_recoveries, r.flows.row(0).timeouts), (1, 1), "{:?}", r.flows.row(0));
}

/// The window of a SYN is not scaled, and the next ACK tells it rounded up: if the first segment is lost, the first ACK of nothing new tells of a
/// larger window, and is no duplicate (`FLAG_WIN_UPDATE`). Of four segments two duplicates are left then, and the timer repairs; of five three, as
/// when the second of five is lost.
#[test]
fn an_ack_that_tells_of_a_larger_window_is_no_duplicate() {
    let of = |lost: &str, window| {
        let r = run(&without_sack(lost, window));
        (r.flows.row(0).fast_recoveries, r.flows.row(0).timeouts)
    };
    assert_eq!([of("1", 4.0), of("1", 5.0), of("2", 5.0)], [(0, 1), (1, 0), (1, 0)]);
}

/// The first segment and its repair are lost: each duplicate ACK lets a new segment out until the socket is full, though the receiver would take more.
/// Two windows of ten take 2 * 10 * 4352 bytes, which 37 buffers of 2408 fill (`tcp_sndbuf_expand`); the virtual kernel's sender stops there, too.
#[test]
fn a_sender_whose_repair_is_lost_sends_no_more_than_its_socket_holds() {
    let mut spec = without_sack("1, 13", 10.0);
    spec.messages[0].bytes = Message::UNLIMITED;
    spec.end = Time::ZERO + Duration::ms(150);
    let r = run(&spec);
    assert_eq!((r.flows.row(0).segments, r.flows.row(0).retransmissions, r.flows.row(0).timeouts), (38, 1, 0));
}

/// One sender without SACK, a message of its first window, and what the switch's port loses.
fn without_sack(lost: &str, window: f64) -> Spec {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
    spec.links[1].queue.discipline = queue::find("lossy").unwrap();
    spec.links[1].queue.args.set("loss_of", Value::Word(lost.to_owned()));
    let stack = Stack { handshake: true, initial_window: window, recovery: fanin_cc::RecoveryKind::NewReno, ..linux() };
    let t = transport(&mut spec, "reno", stack);
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, (window as u64) * 1448, Duration::ZERO);
    spec.trace.packets.push(LinkId(2));
    spec.end = Time::ZERO + Duration::s(5);
    spec
}
