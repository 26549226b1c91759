//! Recording what was asked for. Off means free: one branch per packet.

use crate::calendar::Place;
use crate::packet::Packet;
use crate::results::{InternalTrace, PacketTrace, QueueTrace, ThroughputTrace, Traces, WindowTrace};
use crate::slowest::Slowest;
use crate::spec::{LinkId, Spec};
use crate::thinned::Thinned;
use fanin_units::Time;
use std::collections::BTreeMap;

/// What happened to a packet at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketEvent {
    /// Taken into the queue.
    Accepted = 0,
    /// Not taken.
    Dropped = 1,
    /// Taken and marked.
    Marked = 2,
    /// Reached the link's far end.
    Delivered = 3,
}

/// Is shown every packet event at every port while the run goes on; nothing is kept for it.
pub trait Tap: std::fmt::Debug + Send {
    /// An event as it happens. A packet that is marked on acceptance is shown as marked, then as accepted without the mark, and from
    /// its delivery on with it.
    fn packet(&mut self, now: Time, link: LinkId, event: PacketEvent, packet: &Packet);
}

/// State of a sender worth a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowRow {
    /// Window in force, packets.
    pub cwnd: f64,
    /// Slow-start threshold, packets.
    pub ssthresh: f64,
    /// Outstanding, packets.
    pub in_flight: f64,
    /// Smoothed round trip, ps.
    pub srtt: u64,
    /// State of the loss machine, as in the results' table.
    pub state: u8,
}

/// The event of each row.
#[derive(Debug, Default)]
struct Places {
    window: Vec<Place>,
    packets: Vec<Place>,
    internals: Vec<Place>,
}

/// Collects traces.
#[derive(Debug, Default)]
pub struct Tracer {
    ports: Vec<bool>,
    /// Some port is recorded, or all are tapped.
    any_port: bool,
    tap: Option<Box<dyn Tap>>,
    lost_and_marked: bool,
    slowest: Option<Box<Slowest>>,
    thinned: Option<Box<Thinned>>,
    flows: Vec<bool>,
    /// Their algorithms' internals are recorded, too.
    pub internals: bool,
    /// Last row per traced flow, so that only changes are written.
    last: BTreeMap<u32, WindowRow>,
    interval: Option<u64>,
    /// Bytes delivered in the current interval by flow.
    delivered: BTreeMap<u32, u64>,
    interval_end: u64,
    /// The event that is happening, and that of each row, in one of several parts of a run.
    pub place: Place,
    places: Option<Box<Places>>,
    /// The columns.
    pub out: Traces,
}

impl Tracer {
    /// As asked.
    pub fn new(spec: &Spec) -> Tracer {
        let (ports, flows) = (spec.links.len(), spec.flows.len());
        let spec = &spec.trace;
        let mut tracer = Tracer {
            any_port: !spec.packets.is_empty(),
            lost_and_marked: spec.drops_and_marks,
            internals: spec.internals,
            slowest: spec.slowest.as_ref().map(|s| Box::new(Slowest::new(s))),
            thinned: spec.most.map(|most| Box::new(Thinned::new(most))),
            interval: spec.throughput_interval.map(|d| d.ps().max(1)),
            interval_end: spec.throughput_interval.map_or(u64::MAX, |d| d.ps().max(1)),
            ..Tracer::default()
        };
        if tracer.any_port {
            tracer.ports = vec![false; ports];
            for link in &spec.packets {
                tracer.ports[link.index()] = true;
            }
        }
        if !spec.windows.is_empty() {
            tracer.flows = vec![false; flows];
            for flow in &spec.windows {
                tracer.flows[flow.index()] = true;
            }
        }
        tracer
    }

    /// Notes the event of each row from now on, so that the rows of several parts can be merged. No part knows which answers are slowest,
    /// or how fine an envelope fits.
    pub fn note_places(&mut self) {
        self.places = Some(Box::default());
        self.slowest = None;
        self.thinned = None;
    }

    /// Shows every packet event to `tap`.
    pub fn connect(&mut self, tap: Box<dyn Tap>) {
        self.any_port = true;
        self.tap = Some(tap);
    }

    /// Whether packets at this port are traced.
    #[inline]
    pub fn sees(&self, link: u32) -> bool {
        self.any_port && (self.tap.is_some() || self.records(link))
    }

    /// Whether packets at some port are traced.
    pub fn sees_any(&self) -> bool {
        self.any_port
    }

    /// Whether each mark is traced at some port.
    pub fn sees_marks(&self) -> bool {
        self.any_port || self.lost_and_marked
    }

    fn records(&self, link: u32) -> bool {
        self.ports.get(link as usize).is_some_and(|&asked| asked)
    }

    /// Whether this flow's window is recorded.
    #[inline]
    pub fn watches(&self, flow: u32) -> bool {
        !self.flows.is_empty() && self.flows[flow as usize]
    }

    /// A packet event at a port that [`Self::sees`].
    pub fn packet(&mut self, now: u64, link: u32, event: PacketEvent, packet: &Packet) {
        self.show(now, link, event, packet);
        if self.records(link) {
            self.record(now, link, event, packet);
        }
    }

    fn show(&mut self, now: u64, link: u32, event: PacketEvent, packet: &Packet) {
        if let Some(tap) = &mut self.tap {
            tap.packet(Time::from_ps(now), LinkId(link), event, packet);
        }
    }

    fn record(&mut self, now: u64, link: u32, event: PacketEvent, packet: &Packet) {
        if let Some(slowest) = &mut self.slowest {
            slowest.record(now, link, event, packet);
            return;
        }
        if let Some(places) = &mut self.places {
            places.packets.push(self.place);
        }
        self.out.packets.add(now, link, event, packet);
    }

    /// An application wrote a message.
    pub fn released(&mut self, now: u64, message: u32, flow: u32) {
        if let Some(slowest) = &mut self.slowest {
            slowest.released(now, message, flow);
        }
    }

    /// A message was delivered.
    pub fn completed(&mut self, now: u64, message: u32, flow: u32) {
        if let Some(slowest) = &mut self.slowest {
            slowest.completed(now, message, flow);
        }
    }

    /// A drop or mark anywhere.
    pub fn lost_or_marked(&mut self, now: u64, link: u32, event: PacketEvent, packet: &Packet) {
        self.show(now, link, event, packet);
        if self.lost_and_marked || self.records(link) {
            self.record(now, link, event, packet);
        }
    }

    /// The state of a watched sender; writes a row if something changed.
    pub fn window(&mut self, now: u64, flow: u32, row: WindowRow) {
        if self.last.insert(flow, row) == Some(row) {
            return;
        }
        if let Some(thinned) = &mut self.thinned {
            thinned.window(now, flow, row);
            return;
        }
        if let Some(places) = &mut self.places {
            places.window.push(self.place);
        }
        self.out.window.add(now, flow, row);
    }

    /// What takes the changes of queues while the run goes on, where not all are kept.
    pub fn thinned(&mut self) -> Option<&mut Thinned> {
        self.thinned.as_deref_mut()
    }

    /// One value of an algorithm's internals.
    pub fn internal(&mut self, now: u64, flow: u32, name: &'static str, value: f64) {
        if let Some(places) = &mut self.places {
            places.internals.push(self.place);
        }
        let t = &mut self.out.internals;
        t.time_ps.push(now);
        t.flow.push(flow);
        t.name.push(name);
        t.value.push(value);
    }

    /// Payload delivered in order to a flow's application.
    #[inline]
    pub fn delivered(&mut self, now: u64, flow: u32, bytes: u64) {
        let Some(interval) = self.interval else { return };
        if now >= self.interval_end {
            self.close_interval();
            self.interval_end = (now / interval + 1) * interval;
        }
        *self.delivered.entry(flow).or_insert(0) += bytes;
    }

    fn close_interval(&mut self) {
        for (flow, bytes) in std::mem::take(&mut self.delivered) {
            self.out.throughput.time_ps.push(self.interval_end);
            self.out.throughput.flow.push(flow);
            self.out.throughput.bytes.push(bytes);
        }
    }

    /// Hands over the columns.
    pub fn finish(&mut self) -> Traces {
        self.close_interval();
        if let Some(slowest) = &mut self.slowest {
            self.out.packets = slowest.finish();
        }
        if let Some(thinned) = self.thinned.take() {
            // Samples are few, and stand there.
            if self.out.queue.time_ps.is_empty() {
                self.out.queue = thinned.queue_trace();
            }
            self.out.window = thinned.window_trace();
        }
        std::mem::take(&mut self.out)
    }
}

impl WindowTrace {
    /// A row more.
    pub(crate) fn add(&mut self, now: u64, flow: u32, row: WindowRow) {
        self.time_ps.push(now);
        self.flow.push(flow);
        self.cwnd.push(row.cwnd);
        self.ssthresh.push(row.ssthresh);
        self.in_flight.push(row.in_flight);
        self.srtt_ps.push(row.srtt);
        self.state.push(row.state);
    }
}

impl PacketTrace {
    /// A row more.
    pub(crate) fn add(&mut self, now: u64, link: u32, event: PacketEvent, packet: &Packet) {
        self.time_ps.push(now);
        self.link.push(link);
        self.event.push(event as u8);
        self.flow.push(packet.flow);
        self.flags.push(packet.flags);
        self.seq.push(packet.seq);
        self.payload.push(u32::from(packet.len));
        self.window.push(packet.window);
        self.sack.push(packet.sack);
        self.timestamp_ps.push(packet.timestamp);
    }
}

/// Puts the rows of several tables into one, in this order of (table, row).
macro_rules! gather {
    ($from:expr, $order:expr, $type:ident { $($column:ident),* }) => {
        $type { $($column: $order.iter().map(|&(part, row)| $from(part).$column[row].clone()).collect()),* }
    };
}

/// The rows of all parts of a run, in the order of the whole run. `queues` are the links whose queues are sampled, in their order.
pub fn merge(tracers: Vec<Tracer>, queues: &[LinkId]) -> Traces {
    let mut places = Vec::new();
    let mut parts = Vec::new();
    for mut tracer in tracers {
        parts.push(tracer.finish());
        places.push(tracer.places.take().unwrap_or_default());
    }
    let by_event = |of: fn(&Places) -> &Vec<Place>| {
        let mut rows: Vec<(Place, usize, usize)> = Vec::new();
        for (part, places) in places.iter().enumerate() {
            rows.extend(of(places).iter().enumerate().map(|(row, &place)| (place, part, row)));
        }
        rows.sort();
        rows.into_iter().map(|(_, part, row)| (part, row)).collect::<Vec<_>>()
    };
    let by_time = |rows: fn(&Traces) -> (&Vec<u64>, &Vec<u32>), order: &dyn Fn(u32) -> usize| {
        let mut all = Vec::new();
        for (part, traces) in parts.iter().enumerate() {
            let (times, numbers) = rows(traces);
            all.extend(times.iter().zip(numbers).enumerate().map(|(row, (&t, &n))| (t, order(n), part, row)));
        }
        all.sort_unstable();
        all.into_iter().map(|(_, _, part, row)| (part, row)).collect::<Vec<_>>()
    };
    let position = |link: u32| queues.iter().position(|q| q.0 == link).unwrap_or(usize::MAX);
    let queue = by_time(|t| (&t.queue.time_ps, &t.queue.link), &position);
    let throughput = by_time(|t| (&t.throughput.time_ps, &t.throughput.flow), &|flow| flow as usize);
    let (window, packets) = (by_event(|p| &p.window), by_event(|p| &p.packets));
    let internals = by_event(|p| &p.internals);
    Traces {
        queue: gather!(|part: usize| &parts[part].queue, queue, QueueTrace { time_ps, link, packets, bytes }),
        window: gather!(
            |part: usize| &parts[part].window,
            window,
            WindowTrace { time_ps, flow, cwnd, ssthresh, in_flight, srtt_ps, state }
        ),
        packets: gather!(
            |part: usize| &parts[part].packets,
            packets,
            PacketTrace { time_ps, link, event, flow, flags, seq, payload, window, sack, timestamp_ps }
        ),
        throughput: gather!(
            |part: usize| &parts[part].throughput,
            throughput,
            ThroughputTrace { time_ps, flow, bytes }
        ),
        internals: gather!(
            |part: usize| &parts[part].internals,
            internals,
            InternalTrace { time_ps, flow, name, value }
        ),
    }
}
