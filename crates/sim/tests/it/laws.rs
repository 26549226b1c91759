//! What holds in every run, whatever the scenario: conservation, order, rates, limits, determinism, scale.

use crate::common::*;
use fanin_sim::queue;
use fanin_sim::results::Results;
use fanin_sim::rng::Stream;
use fanin_sim::spec::*;
use fanin_sim::stack::Stack;
use fanin_units::{Bytes, Duration, QueueLimit, Rate, Time};
use proptest::prelude::*;

/// A random star with random traffic.
#[derive(Clone, Debug)]
struct Scene {
    senders: u32,
    mbps: u64,
    delay_us: u64,
    buffer: QueueLimit,
    /// Bytes that all ports of the switch share instead.
    shared: Option<u64>,
    mark: Option<u32>,
    discipline: &'static str,
    cc: &'static str,
    profile: &'static str,
    messages: Vec<(u32, u64, u64)>,
    cbr: bool,
    seed: u64,
}

impl Scene {
    fn spec(&self) -> Spec {
        let mark = self.mark.map(QueueLimit::Packets);
        let mut spec = star(self.senders, Rate::mbps(self.mbps), Duration::us(self.delay_us), Some(self.buffer), mark);
        for link in spec.links.iter_mut().filter(|l| l.from == NodeId(1)) {
            link.queue.discipline = queue::find(self.discipline).unwrap();
            if self.shared.is_some() {
                link.queue.limit = None;
            }
        }
        spec.nodes[1].shared_buffer = self.shared.map(|size| SharedBuffer { size: Bytes::new(size), alpha: 1.0 });
        let stack = match self.profile {
            "ns2" => Stack::ns2(),
            "rfc" => Stack::rfc(),
            _ => Stack::linux(),
        };
        let t = transport(&mut spec, self.cc, stack);
        let flows: Vec<FlowId> = (0..self.senders).map(|i| flow(&mut spec, i, t)).collect();
        for &(sender, bytes, at_us) in &self.messages {
            message(&mut spec, flows[(sender % self.senders) as usize], bytes, Duration::us(at_us));
        }
        if self.cbr {
            spec.cbr.push(Cbr {
                src: NodeId(2),
                dst: NodeId(0),
                rate: Rate::mbps(self.mbps / 5),
                packet: Bytes::new(1000),
                start: Time::ZERO,
                stop: Time::ZERO + Duration::ms(20),
                class: 0,
            });
        }
        spec.trace.packets = (0..spec.links.len() as u32).map(LinkId).collect();
        spec.seed = self.seed;
        spec.end = Time::ZERO + Duration::ms(300);
        spec
    }
}

fn scenes() -> impl Strategy<Value = Scene> {
    let buffer = prop_oneof![
        (1u32..60).prop_map(QueueLimit::Packets),
        (2000u64..100_000).prop_map(|b| QueueLimit::Bytes(Bytes::new(b)))
    ];
    (
        (1u32..9, prop_oneof![Just(100u64), Just(1000), Just(1100), Just(10_000)], 1u64..100, buffer),
        (proptest::option::of(1u32..40), proptest::option::of(10_000u64..200_000)),
        prop_oneof![Just("droptail"), Just("red"), Just("sfq")],
        prop_oneof![Just("reno"), Just("newreno"), Just("sack")],
        prop_oneof![Just("ns2"), Just("rfc"), Just("linux")],
        proptest::collection::vec((0u32..9, 1u64..200_000, 0u64..5000), 1..12),
        any::<bool>(),
        any::<u64>(),
    )
        .prop_map(
            |((senders, mbps, delay_us, buffer), (mark, shared), discipline, cc, profile, messages, cbr, seed)| Scene {
                senders,
                mbps,
                delay_us,
                buffer,
                shared,
                mark,
                discipline,
                cc,
                profile,
                messages,
                cbr,
                seed,
            },
        )
}

fn fingerprint(r: &Results) -> String {
    format!("{r:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_created_or_lost_unnoticed_and_no_limit_is_broken(scene in scenes()) {
        let spec = scene.spec();
        let r = run(&spec);
        let drops: u64 = r.ports.iter().map(|p| p.drops).sum();
        prop_assert_eq!(r.packets_created, r.packets_arrived + drops + r.packets_in_flight);
        for (port, link) in r.ports.iter().zip(&spec.links) {
            prop_assert_eq!(port.offered_packets, port.packets + port.drops, "{}", port.name);
            prop_assert!(port.busy_ps <= r.end_ps, "{}", port.name);
            prop_assert!(u128::from(port.sent_bytes) * 8_000_000_000_000 <= u128::from(link.rate.bps() + link.rate.bps() / 10_000) * u128::from(r.end_ps));
            match link.queue.limit {
                Some(QueueLimit::Packets(n)) => prop_assert!(port.max_queue_packets <= u64::from(n)),
                Some(QueueLimit::Bytes(b)) => prop_assert!(port.max_queue_bytes <= b.get()),
                None => match scene.shared.filter(|_| link.from == NodeId(1)) {
                    // What a port holds with alpha 1 is at most what was free before its last packet: (size + packet) / 2.
                    Some(size) => prop_assert!(port.max_queue_bytes <= (size + 1500) / 2, "{}: {:?}", port.name, port),
                    None => prop_assert_eq!(port.drops, 0),
                },
            }
        }
        let flow_drops: u64 = r.flows.iter().map(|f| f.drops + f.ack_drops).sum();
        prop_assert_eq!(drops, flow_drops + r.cbr.iter().map(|c| c.dropped).sum::<u64>());
        for (i, f) in r.flows.iter().enumerate() {
            let asked: u64 = spec.messages.iter().filter(|m| m.flow.index() == i).map(|m| m.bytes).sum();
            prop_assert!(f.bytes_delivered <= asked && f.bytes_acked <= f.bytes_delivered);
            let in_runs: u64 = f.drop_runs.iter().enumerate().map(|(n, c)| (n as u64 + 1) * c).sum();
            let clipped = f.drop_runs.last().is_some_and(|&c| c > 0);
            prop_assert!(in_runs == f.drops || (clipped && in_runs < f.drops), "{:?}", f);
        }
    }

    #[test]
    fn every_fifo_port_delivers_in_the_order_it_accepted(scene in scenes()) {
        let scene = Scene { discipline: "droptail", ..scene };
        let r = run(&scene.spec());
        let p = &r.traces.packets;
        let key = |i: usize| (p.flow[i], p.flags[i], p.seq[i], p.timestamp_ps[i]);
        for link in 0..r.ports.len() as u32 {
            let of = |event: u8| (0..p.time_ps.len()).filter(move |&i| p.link[i] == link && p.event[i] == event);
            // CE is set on acceptance, so accepted packets are compared without their flags.
            let strip = |k: (u32, u16, u64, u64)| (k.0, k.2, k.3);
            let accepted: Vec<_> = of(0).map(|i| strip(key(i))).collect();
            let delivered: Vec<_> = of(3).map(|i| strip(key(i))).collect();
            prop_assert_eq!(&accepted[..delivered.len()], &delivered[..]);
        }
    }

    #[test]
    fn the_same_scenario_and_seed_give_the_same_bytes_on_any_thread(scene in scenes()) {
        let spec = scene.spec();
        let here = fingerprint(&run(&spec));
        let there = std::thread::scope(|s| {
            let threads: Vec<_> = (0..2).map(|_| s.spawn(|| fingerprint(&run(&spec)))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
        });
        prop_assert!(there.iter().all(|t| *t == here));
    }

    #[test]
    fn times_scaled_up_and_rates_down_give_the_same_packets(scene in scenes(), k in prop_oneof![Just(2u64), Just(4), Just(5)]) {
        // Random queues draw per packet and RED measures idle time in packets: only the deterministic ones scale to the bit. Rates
        // must divide evenly for serialisation times to scale exactly. RFC 7661 has a second of its own.
        let scene = Scene { discipline: "droptail", cbr: false, mbps: 1000, ..scene };
        // Linux's probes wait 2 ms of their own, and its jitter draws whole picoseconds.
        let scene = Scene { profile: if scene.profile == "linux" { "ns2" } else { scene.profile }, ..scene };
        let mut base = scene.spec();
        base.transports[0].stack.cwnd_validation = fanin_sim::stack::CwndValidation::None;
        let mut slow = base.clone();
        for link in &mut slow.links {
            link.rate = Rate::from_bps(link.rate.bps() / k);
            link.delay = link.delay * k;
        }
        for m in &mut slow.messages {
            let Release::At(t) = m.release else { unreachable!("all messages here are timed") };
            m.release = Release::At(Time::ZERO + (t - Time::ZERO) * k);
        }
        for t in &mut slow.transports {
            let s = &mut t.stack;
            for d in [&mut s.min_rto, &mut s.max_rto, &mut s.initial_rto, &mut s.clock_granularity, &mut s.delack_timeout, &mut s.tsq_limit] {
                *d = *d * k;
            }
        }
        slow.end = Time::from_ps(base.end.ps() * k);
        let (a, b) = (run(&base), run(&slow));
        let (p, q) = (&a.traces.packets, &b.traces.packets);
        prop_assert_eq!(&p.seq, &q.seq);
        prop_assert_eq!(&p.event, &q.event);
        prop_assert_eq!(&p.link, &q.link);
        // Smoothed round trips are rounded to whole ps, which does not scale: timers may differ by a few.
        prop_assert!(p.time_ps.iter().zip(&q.time_ps).all(|(x, y)| (x * k).abs_diff(*y) < 1000));
    }
}

/// Mean wait of M/D/1 is rho/(2(1-rho)) service times (Pollaczek and Khinchine).
#[test]
fn a_poisson_source_waits_as_long_as_md1_says() {
    for load in [0.3, 0.6, 0.9] {
        let service = Duration::us(12);
        let mut spec = star(1, Rate::gbps(1), Duration::us(1), None, None);
        fast_access(&mut spec, Rate::from_bps(1_000_000_000_000_000));
        let t = transport(&mut spec, "newreno", open_ns2());
        let mut random = fanin_sim::rng::Stream::new(11, "poisson", 0);
        let mut at = 0.0;
        for _ in 0..200_000 {
            at += -(1.0 - random.uniform()).ln() * service.as_secs() / load;
            let f = flow(&mut spec, 0, t);
            message(&mut spec, f, 1460, Duration::from_secs(at));
        }
        spec.end = Time::ZERO + Duration::s(60);
        let r = run(&spec);
        let port = &r.ports[1];
        assert_eq!(port.packets, 200_000);
        let wait = port.wait_ps as f64 / port.packets as f64 / service.ps() as f64;
        let theory = load / (2.0 * (1.0 - load));
        assert!((wait / theory - 1.0).abs() < 0.05, "load {load}: waits {wait} services, M/D/1 {theory}");
        // Little: packets in the system = arrival rate x (wait + service).
        let rate = port.packets as f64 / r.end_ps as f64;
        let in_system = rate * (port.wait_ps as f64 / port.packets as f64 + service.ps() as f64);
        assert!((port.mean_queue_packets / in_system - 1.0).abs() < 1e-6);
    }
}

#[test]
fn every_bit_of_seed_index_and_name_makes_another_random_stream() {
    let base = Stream::seed(2, "flow", 2);
    for bit in 0..64 {
        assert_ne!(base, Stream::seed(2 ^ (1 << bit), "flow", 2), "bit {bit} of the seed");
        assert_ne!(base, Stream::seed(2, "flow", 2 ^ (1 << bit)), "bit {bit} of the index");
    }
    assert_ne!(base, Stream::seed(2, "flows", 2));
    assert_ne!(base, Stream::seed(2, "acks", 2));
}

#[test]
fn neighbouring_seeds_are_different_runs() {
    let times = |seed: u64| {
        let mut spec = star(4, Rate::gbps(1), Duration::us(25), Some(QueueLimit::Packets(20)), None);
        spec.seed = seed;
        let t = transport(&mut spec, "newreno", Stack { send_jitter: Duration::us(10), ..Stack::ns2() });
        for sender in 0..4 {
            let f = flow(&mut spec, sender, t);
            message(&mut spec, f, 200_000, Duration::ZERO);
        }
        run(&spec).messages.iter().map(|m| m.done_ps).collect::<Vec<_>>()
    };
    let runs: Vec<_> = (0..8).map(times).collect();
    for (a, b) in (0..8).flat_map(|a| (0..a).map(move |b| (a, b))) {
        assert_ne!(runs[a], runs[b], "seeds {a} and {b}");
    }
}
