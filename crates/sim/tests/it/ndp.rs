//! NDP's own incast result (SIGCOMM 2017, sections 6.1 and 6.2): many flows to one host finish about as soon as its link allows,
//! whatever their number, and the last not long after the first; NewReno's wait for timeouts.

use crate::common::*;
use fanin_cc::Args;
use fanin_sim::queue;
use fanin_sim::results::Results;
use fanin_sim::spec::{Queue, Spec};
use fanin_sim::stack::Stack;
use fanin_units::{Duration, QueueLimit, Rate, Time};

/// `n` senders answer one host at once with `bytes` each, over 10 Gbps links.
fn incast(n: u32, bytes: u64, cc: &str, trims: bool) -> Results {
    let mut spec = star(n, Rate::gbps(10), Duration::us(1), Some(QueueLimit::Packets(100)), None);
    if trims {
        trim_everywhere(&mut spec);
    }
    let t = transport(&mut spec, cc, Stack::ns2());
    for i in 0..n {
        let f = flow(&mut spec, i, t);
        message(&mut spec, f, bytes, Duration::ZERO);
    }
    spec.end = Time::ZERO + Duration::s(20);
    run(&spec)
}

fn trim_everywhere(spec: &mut Spec) {
    for link in &mut spec.links {
        link.queue =
            Queue { discipline: queue::find("trimming").unwrap(), args: Args::default(), ..Queue::drop_tail(None) };
    }
}

/// When the last message was delivered, as a multiple of the time that its link needs for all.
fn slowdown(r: &Results, n: u32, bytes: u64) -> f64 {
    let last = r.messages.iter().map(|m| m.done_ps.expect("all are delivered")).max().unwrap();
    let wire = bytes as f64 * 1500.0 / 1460.0;
    last as f64 / (f64::from(n) * wire * 8.0 / 10e9 * 1e12)
}

#[test]
fn an_incast_of_any_size_finishes_about_as_soon_as_the_link_allows() {
    for n in [2, 10, 40, 70] {
        let r = incast(n, 65_700, "ndp", true);
        let slow = slowdown(&r, n, 65_700);
        assert!((1.0..1.25).contains(&slow), "{n} flows take {slow} times as long as their bytes");
        let timeouts: u64 = r.flows.iter().map(|f| f.timeouts).sum();
        assert_eq!(timeouts, 0, "{n} flows");
        let reno = incast(n, 65_700, "newreno", false);
        assert!(
            n < 40 || slowdown(&reno, n, 65_700) > 3.0 * slow,
            "{n} flows of NewReno: {}",
            slowdown(&reno, n, 65_700)
        );
    }
}

/// Two hundred first windows are more headers than the paper's switch holds: those senders hear nothing and wait for their timeout of 1 ms.
#[test]
fn where_even_headers_are_lost_a_short_timeout_repairs_it() {
    let r = incast(200, 65_700, "ndp", true);
    assert!(r.flows.iter().map(|f| f.drops + f.timeouts).sum::<u64>() > 0);
    assert!(slowdown(&r, 200, 65_700) < 1.5, "{}", slowdown(&r, 200, 65_700));
}

#[test]
fn flows_share_the_link_evenly_and_finish_together() {
    let r = incast(20, 1_460_000, "ndp", true);
    let done: Vec<u64> = r.messages.iter().map(|m| m.done_ps.unwrap()).collect();
    let (first, last) = (done.iter().min().unwrap(), done.iter().max().unwrap());
    assert!((*first as f64) > 0.9 * *last as f64, "first {first}, last {last}");
    assert!(slowdown(&r, 20, 1_460_000) < 1.05);
}

#[test]
fn trimmed_packets_are_sent_again_and_nothing_is_delivered_twice_or_lost() {
    let r = incast(40, 65_700, "ndp", true);
    assert!(r.flows.iter().all(|f| f.bytes_delivered == 65_700));
    assert!(r.flows.iter().map(|f| f.retransmissions).sum::<u64>() > 100);
    assert_eq!(r.flows.iter().map(|f| f.drops).sum::<u64>(), 0);
}

#[test]
fn without_trimming_switches_timeouts_repair_what_is_lost() {
    let r = incast(40, 65_700, "ndp", false);
    assert!(r.complete && r.flows.iter().map(|f| f.timeouts).sum::<u64>() > 0);
}

#[test]
fn a_flow_goes_on_with_messages_that_come_later_and_shares_hosts_with_tcp() {
    let mut spec = star(2, Rate::gbps(10), Duration::us(1), None, None);
    trim_everywhere(&mut spec);
    let (ndp, tcp) = (transport(&mut spec, "ndp", Stack::ns2()), transport(&mut spec, "newreno", Stack::ns2()));
    let (a, b) = (flow(&mut spec, 0, ndp), flow(&mut spec, 1, tcp));
    for (n, at) in [0, 3, 200, 2000, 2000, 2001].into_iter().enumerate() {
        message(&mut spec, a, 1 + 10_000 * n as u64, Duration::us(at));
        message(&mut spec, b, 1 + 10_000 * n as u64, Duration::us(at));
    }
    let r = run(&spec);
    assert!(r.complete, "{:?}", r.messages);
    assert_eq!(r.flows.iter().map(|f| f.bytes_delivered).collect::<Vec<_>>(), [150_006, 150_006]);
}
