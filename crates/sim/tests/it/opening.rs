//! How connections open, and what is left of a handshake that lost a packet.

use crate::common::*;
use fanin_sim::packet::flags;
use fanin_sim::results::Results;
use fanin_sim::spec::*;
use fanin_sim::stack::{EcnMode, Stack};
use fanin_units::{Duration, MaybeTime, QueueLimit, Rate, Time};

/// Sixteen endless flows into ten packets, the first at once and the others when its slow start has filled the port: some lose their SYN.
fn into_a_full_port(stack: Stack) -> (Spec, Results) {
    let marks = Some(QueueLimit::Packets(5));
    let mut spec = star(16, Rate::mbps(10), Duration::us(25), Some(QueueLimit::Packets(10)), marks);
    fast_access(&mut spec, Rate::gbps(1));
    let t = transport(&mut spec, "dctcp", Stack { send_jitter: Duration::ZERO, ..stack });
    for i in 0..16 {
        let f = flow(&mut spec, i, t);
        message(&mut spec, f, 10_000_000, Duration::us(u64::from(i) * 200));
    }
    spec.end = Time::ZERO + Duration::s(4);
    spec.trace.packets = vec![LinkId(1)];
    let r = run(&spec);
    (spec, r)
}

/// Of a flow's packets at the client's port: SYNs that were lost, and data that were ECN-capable and not.
fn seen(r: &Results, flow: u32) -> (usize, usize, usize) {
    let p = &r.traces.packets;
    let count = |want: &dyn Fn(u16, u8) -> bool| {
        (0..p.time_ps.len()).filter(|&i| p.flow[i] == flow && want(p.flags[i], p.event[i])).count()
    };
    let is_data = |f: u16| f & (flags::SYN | flags::ACK | flags::EMPTY) == 0;
    (
        count(&|f, e| f & flags::SYN != 0 && e == 1),
        count(&|f, e| is_data(f) && e == 0 && f & flags::ECT != 0),
        count(&|f, e| is_data(f) && e == 0 && f & flags::ECT == 0),
    )
}

/// `tcp_ecn_clear_syn` and `dctcp_init`: a SYN that is sent again asks for no ECN, and DCTCP goes on as Reno.
#[test]
fn a_connection_whose_syn_was_lost_does_without_ecn_in_linux() {
    let (spec, r) = into_a_full_port(Stack::linux());
    let (mut without, mut with) = (0, 0);
    for flow in 0..spec.flows.len() as u32 {
        let (lost, capable, incapable) = seen(&r, flow);
        if lost > 0 {
            without += usize::from(incapable > 0);
            assert_eq!(capable, 0, "flow {flow}");
        } else {
            with += usize::from(capable > 0);
            assert_eq!(incapable, 0, "flow {flow}");
        }
    }
    assert!(without > 1 && with > 1, "{without} {with}");

    let (_, r) = into_a_full_port(Stack { ecn_fallback: false, ..Stack::linux() });
    assert!((0..16).all(|flow| seen(&r, flow).2 == 0));
    assert!((0..16).any(|flow| seen(&r, flow).0 > 0));
}

/// A connection that sends `n` SYNs in vain, as far as it can tell: the answer comes half a second after the last of them.
fn after_lost_syns(n: u64, stack: Stack) -> Results {
    let mut spec = star(1, Rate::gbps(1), Duration::us(25), None, None);
    let t = transport(&mut spec, "reno", Stack { ecn: EcnMode::Off, send_jitter: Duration::ZERO, ..stack });
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, 100 * 1448, Duration::ZERO);
    spec.links[0].delay = Duration::ms(1000 * n + 500);
    spec.trace.packets = vec![LinkId(2)];
    run(&spec)
}

/// RFC 5681 section 3.1 begins with one segment after one lost SYN, `tcp_init_transfer` after the second. The first four timeouts are a second
/// each (`tcp_syn_linear_timeouts`).
#[test]
fn linux_forgives_one_lost_syn_and_waits_as_long_for_the_next() {
    let first = |n, stack| {
        let r = after_lost_syns(n, stack);
        let p = &r.traces.packets;
        let data = |i: &usize| p.event[*i] == 0 && p.flags[*i] & (flags::SYN | flags::ACK | flags::EMPTY) == 0;
        let sent: Vec<u64> = (0..p.time_ps.len()).filter(data).map(|i| p.time_ps[i]).collect();
        let timeouts = (0..p.time_ps.len()).filter(|&i| p.event[i] == 0 && p.flags[i] & flags::SYN != 0).count() - 1;
        (timeouts, sent.iter().filter(|&&t| t < sent[0] + Duration::ms(100).ps()).count())
    };
    let linux = Stack { cwnd_validation: Stack::ns2().cwnd_validation, ..Stack::linux() };
    assert_eq!(first(1, linux.clone()), (1, 10));
    assert_eq!(first(3, linux), (3, 1));
    assert_eq!(first(1, Stack { initial_rto: Duration::s(1), ..Stack::rfc() }).1, 1);
}

/// A host opens one connection after another.
#[test]
fn connections_of_one_instant_open_one_after_another() {
    let syns = |stack: Stack| -> Vec<u64> {
        let mut spec = star(4, Rate::gbps(10), Duration::us(10), None, None);
        let t = transport(&mut spec, "reno", Stack { send_jitter: Duration::ZERO, clock_error_ppm: 0.0, ..stack });
        for i in 0..4 {
            spec.flows.push(Flow {
                src: NodeId(0),
                dst: NodeId(2 + i),
                transport: t,
                class: 0,
                reverse: None,
                open: MaybeTime::NONE,
                stop: MaybeTime::NONE,
            });
            message(&mut spec, FlowId(i), 100, Duration::us(7));
        }
        spec.trace.packets = vec![LinkId(0)];
        let p = run(&spec).traces.packets;
        (0..p.time_ps.len())
            .filter(|&i| p.event[i] == 0 && p.flags[i] & flags::SYN != 0)
            .map(|i| p.time_ps[i])
            .collect()
    };
    assert_eq!(syns(Stack::linux()), [7, 8, 9, 10].map(|us| Duration::us(us).ps()));
    assert_eq!(syns(Stack::rfc()), [Duration::us(7).ps(); 4]);
}
