//! What holds at every switch, whatever arrives: conservation, limits, rates, order.
#![allow(missing_docs, clippy::unwrap_used)]

use fanin_switch::random::Stream;
use fanin_switch::{Order, Packet, Port, SharedBuffer, Switch, disciplines, flags};
use fanin_units::{Args, Bytes, QueueLimit, Rate};
use proptest::prelude::*;

/// An arrival: ps after the one before, port, flow, bytes, whether it is ECN-capable.
type Arrival = (u64, usize, u32, u16, bool);

const PORTS: usize = 3;
const RATE: Rate = Rate::gbps(1);
const DELAY: u64 = 5000;
/// After everything.
const END: u64 = 1 << 60;

fn order(name: &str) -> Order {
    let context = disciplines::Context { rate: RATE, random: Stream::new(3, "queue", 0) };
    match disciplines::find(name).unwrap().build {
        disciplines::Build::Plain => Order::Fifo,
        disciplines::Build::Admission(make) => Order::Admission(make(&context, &Args::default()).unwrap()),
        disciplines::Build::Scheduler(make) => Order::Scheduler(make(&context, &Args::default()).unwrap()),
    }
}

fn switch(discipline: &str, limit: Option<QueueLimit>, shared: Option<u64>) -> Switch {
    let mark = Some(QueueLimit::Packets(3));
    let ports = (0..PORTS).map(|_| Port::new(RATE, DELAY, limit, mark, order(discipline))).collect();
    Switch::new(ports, shared.map(|size| SharedBuffer::new((0..PORTS as u32).collect(), size, 1.0)))
}

/// Everything that left, in order, with its time; everything that did not.
fn run(switch: &mut Switch, arrivals: &[Arrival]) -> (Vec<(u64, usize, Packet)>, Vec<u64>) {
    let (mut out, mut lost, mut now) = (Vec::new(), Vec::new(), 0);
    let mut drain = |switch: &mut Switch, until: u64| {
        while let Some(at) = switch.next_event().filter(|&at| at <= until) {
            while let Some((port, packet)) = switch.poll(at) {
                out.push((at, port, packet));
            }
        }
    };
    for (n, &(gap, port, flow, bytes, ect)) in arrivals.iter().enumerate() {
        now += gap;
        drain(switch, now);
        let packet = Packet { handle: n as u64, flow, bytes, flags: if ect { flags::ECT } else { 0 } };
        if !switch.offer(now, port, packet).accepted {
            lost.push(packet.handle);
        }
        while let Some(victim) = switch.evicted(port) {
            lost.push(victim.handle);
        }
    }
    drain(switch, u64::MAX);
    (out, lost)
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    proptest::collection::vec((0u64..20_000_000, 0..PORTS, 0u32..5, 40u16..9000, any::<bool>()), 1..150)
}

fn names() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(disciplines::DISCIPLINES.iter().map(|d| d.name).collect::<Vec<_>>())
}

fn limits() -> impl Strategy<Value = Option<QueueLimit>> {
    prop_oneof![
        Just(None),
        (1u32..20).prop_map(|n| Some(QueueLimit::Packets(n))),
        (9000u64..60_000).prop_map(|b| Some(QueueLimit::Bytes(Bytes::new(b)))),
    ]
}

proptest! {
    #[test]
    fn every_packet_leaves_once_or_is_dropped_once(
        name in names(), limit in limits(), shared in proptest::option::of(9000u64..80_000), arrivals in arrivals(),
    ) {
        let mut switch = switch(name, limit, shared);
        let (out, lost) = run(&mut switch, &arrivals);
        let mut seen: Vec<u64> = out.iter().map(|(_, _, p)| p.handle).chain(lost.iter().copied()).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..arrivals.len() as u64).collect::<Vec<_>>());
        for port in 0..PORTS {
            let totals = switch.port(port).totals(END);
            let left = out.iter().filter(|(_, p, _)| *p == port);
            prop_assert_eq!(totals.accepted, left.clone().count() as u64);
            prop_assert_eq!(totals.marks >= left.filter(|(_, _, p)| p.has(flags::CE)).count() as u64, true);
            match limit {
                Some(QueueLimit::Packets(n)) => prop_assert!(totals.max_packets <= n),
                Some(QueueLimit::Bytes(b)) => prop_assert!(totals.max_bytes <= b.get()),
                None => {}
            }
        }
    }

    /// What ports hold is summed over those that may hold something: the sum over all is the same.
    #[test]
    fn the_room_of_a_shared_buffer_is_what_all_ports_leave(
        name in names(), size in 9000u64..80_000, alpha in 0.25f64..4.0, arrivals in arrivals(),
    ) {
        let mut ports: Vec<Port> = (0..PORTS).map(|_| Port::new(RATE, DELAY, None, None, order(name))).collect();
        let mut shared = SharedBuffer::new((0..PORTS as u32).collect(), size, alpha);
        let mut now = 0;
        for (handle, &(gap, port, flow, bytes, ect)) in (0..).zip(&arrivals) {
            now += gap / 10;
            for each in &mut ports {
                while let Some(at) = each.next_event().filter(|&at| at <= now) {
                    each.poll(at);
                }
            }
            let free = size.saturating_sub(ports.iter_mut().map(|p| p.queue(now).1).sum());
            let room = shared.room(port as u32, |p| ports[p as usize].queue(now).1);
            prop_assert_eq!(room, ((alpha * free as f64) as u64).min(ports[port].queue(now).1 + free));
            let flags = if ect { flags::ECT } else { 0 };
            let _ = ports[port].offer(now, Packet { handle, flow, bytes, flags }, room);
            while ports[port].evicted().is_some() {}
        }
    }

    /// With alpha 1 a port takes a packet only if all it then holds is at most what was free before: (size + packet) / 2.
    #[test]
    fn a_shared_buffer_limits_every_discipline(name in names(), size in 9000u64..80_000, arrivals in arrivals()) {
        let to_one: Vec<Arrival> = arrivals.iter().map(|&(gap, _, flow, bytes, ect)| (gap / 50, 0, flow, bytes, ect)).collect();
        let mut switch = switch(name, None, Some(size));
        run(&mut switch, &to_one);
        let (most, largest) = (switch.port(0).totals(END).max_bytes, 9000);
        prop_assert!(most <= (size + largest) / 2, "{name}: {most} of {size} bytes");
    }

    /// The histogram and the integral of bytes hold each packet from its arrival to its departure.
    #[test]
    fn the_time_at_each_length_adds_up_to_the_packets_stays(name in names(), limit in limits(), arrivals in arrivals()) {
        let mut switch = switch(name, limit, None);
        let (out, lost) = run(&mut switch, &arrivals);
        // What a scheduler gave up or cut was in the queue too, but for how long is not told.
        prop_assume!(lost.is_empty() || matches!(order(name), Order::Fifo | Order::Admission(_)));
        prop_assume!(out.iter().all(|(_, _, p)| p.bytes == arrivals[p.handle as usize].3));
        let mut came = Vec::new();
        for &(gap, ..) in &arrivals {
            came.push(gap + came.last().unwrap_or(&0));
        }
        for port in 0..PORTS {
            let totals = switch.port(port).totals(END);
            let stays = || out.iter().filter(|(_, p, _)| *p == port).map(|(at, _, p)| (at - DELAY - came[p.handle as usize], p));
            prop_assert_eq!(totals.time_at.iter().sum::<u64>(), END);
            let by_length: u128 = (0..).zip(&totals.time_at).map(|(n, &time): (u128, _)| n * u128::from(time)).sum();
            prop_assert_eq!(by_length, stays().map(|(stay, _)| u128::from(stay)).sum::<u128>());
            prop_assert_eq!(totals.byte_time, stays().map(|(stay, p)| u128::from(stay) * u128::from(p.bytes)).sum::<u128>());
        }
    }

    #[test]
    fn no_port_sends_faster_than_its_rate(name in names(), limit in limits(), arrivals in arrivals()) {
        let (out, _) = run(&mut switch(name, limit, None), &arrivals);
        for port in 0..PORTS {
            let left: Vec<_> = out.iter().filter(|(_, p, _)| *p == port).collect();
            for pair in left.windows(2) {
                let least = (Bytes::new(u64::from(pair[1].2.bytes)) / RATE).ps();
                prop_assert!(pair[1].0 >= pair[0].0 + least);
            }
        }
    }

    #[test]
    fn a_flow_keeps_its_order_and_marks_are_for_those_that_understand_them(name in names(), arrivals in arrivals()) {
        let (out, _) = run(&mut switch(name, None, None), &arrivals);
        for port in 0..PORTS {
            for flow in 0..5 {
                let handles: Vec<u64> =
                    out.iter().filter(|(_, p, k)| *p == port && k.flow == flow).map(|(_, _, k)| k.handle).collect();
                prop_assert!(handles.is_sorted(), "{name}: {handles:?}");
            }
        }
        prop_assert!(out.iter().all(|(_, _, p)| p.has(flags::ECT) || !p.has(flags::CE)));
    }
}
