//! Swift's own incast result (SIGCOMM 2020, section 4.4): with windows below one packet many more flows than the path and its buffer
//! hold packets share a port and lose next to nothing.

use crate::common::*;
use fanin_sim::stack::Stack;
use fanin_units::{Duration, QueueLimit, Rate, Time};

/// 300 long flows into one port at 1 Gbps with 250 packets of buffer, for two seconds: share of packets lost there, and of the time it
/// was busy.
fn three_hundred_to_one(cc: &str) -> (f64, f64) {
    let mut spec = star(300, Rate::gbps(1), Duration::us(50), Some(QueueLimit::Packets(250)), None);
    let t = transport(&mut spec, cc, Stack::linux());
    for i in 0..300 {
        let f = flow(&mut spec, i, t);
        message(&mut spec, f, 1 << 40, Duration::us(u64::from(i) * 700));
    }
    spec.end = Time::ZERO + Duration::s(2);
    let r = run(&spec);
    let port = &r.ports[1];
    (port.drops as f64 / port.offered_packets as f64, port.busy_ps as f64 / r.end_ps as f64)
}

#[test]
fn windows_below_one_packet_share_a_port_among_more_flows_than_it_holds_packets() {
    let (lost, busy) = three_hundred_to_one("swift");
    let (reno_lost, _) = three_hundred_to_one("newreno");
    assert!(lost < 0.002 && busy > 0.95, "swift loses {lost} and keeps the port busy {busy}");
    assert!(reno_lost > 20.0 * lost.max(0.001), "newreno loses {reno_lost}, swift {lost}");
}
