//! Flows and messages: what the sockets told, and what the record shows.

use crate::stream::Stream;
use crate::traffic::{Packet, Tcp, Traffic};
use crate::{Connection, KernelError};
use fanin_fabric::record::Fate;
use fanin_player::log;
use fanin_sim::packet::flags;
use fanin_sim::results::{FlowStats, MessageStats, PacketTrace, ThroughputTrace, WindowTrace};
use fanin_sim::spec::{FlowId, Message, Spec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs of drops are counted by length up to this.
const LONGEST_RUN: usize = 16;

/// A flow while the record is read.
#[derive(Default)]
struct Reading {
    row: FlowStats,
    stream: Stream,
    state: u8,
    last_window: Option<(u32, u32, u32, u32, u8)>,
    /// Port and length of the open run of drops.
    run: Option<(u16, usize)>,
    /// Bytes of all messages that were handed over.
    written: u64,
    /// Start of each message on the stream, in order of release, and its number.
    starts: Vec<(u64, u32)>,
    started: usize,
}

/// Flows of a run.
pub struct Flows<'a> {
    spec: &'a Spec,
    connections: &'a [Connection],
    flows: Vec<Reading>,
    /// Of each packet that was placed: where its data starts on its flow's stream, or up to where it acknowledges the other's.
    positions: Vec<u64>,
    pub messages: Vec<MessageStats>,
    pub windows: WindowTrace,
    traced: Vec<bool>,
}

impl<'a> Flows<'a> {
    pub fn new(spec: &'a Spec, connections: &'a [Connection], log: &log::Log, ideal: &[u64]) -> Flows<'a> {
        let names: Vec<Arc<str>> = spec.nodes.iter().map(|n| n.name.as_str().into()).collect();
        let mut flows: Vec<Reading> = spec.flows.iter().map(|_| Reading::default()).collect();
        for (reading, (flow, seen)) in flows.iter_mut().zip(spec.flows.iter().zip(&log.flows)) {
            reading.row = flow_row(seen);
            (reading.row.src, reading.row.dst) = (names[flow.src.index()].clone(), names[flow.dst.index()].clone());
            reading.row.class = flow.class;
        }
        let since = |ns: Option<u64>| ns.map(|ns| ns.saturating_sub(log.start_ns) * 1000);
        let mut order: Vec<u32> = (0..spec.messages.len() as u32).collect();
        order.retain(|&m| log.messages[m as usize].release_ns.is_some());
        order.sort_by_key(|&m| (log.messages[m as usize].release_ns, m));
        let mut ends = vec![0_u64; spec.flows.len()];
        for number in order {
            let message = &spec.messages[number as usize];
            let end = &mut ends[message.flow.index()];
            flows[message.flow.index()].starts.push((*end, number));
            *end = end.saturating_add(message.bytes);
        }
        flows.iter_mut().zip(ends).for_each(|(flow, end)| flow.written = end);
        let rows = spec.messages.iter().zip(&log.messages).zip(ideal).map(|((m, seen), &ideal_ps)| {
            let release_ps = since(seen.release_ns);
            MessageStats {
                flow: m.flow.0,
                class: m.class,
                bytes: m.bytes,
                release_ps,
                first_send_ps: None,
                done_ps: since(seen.done_ns),
                deadline_ps: release_ps.zip(m.deadline).map(|(at, d)| at + d.ps()),
                timeouts: seen.timeouts,
                ideal_ps,
            }
        });
        let mut traced = vec![false; spec.flows.len()];
        spec.trace.windows.iter().for_each(|f| traced[f.index()] = true);
        Flows {
            spec,
            connections,
            messages: rows.collect(),
            flows,
            positions: Vec::new(),
            windows: WindowTrace::default(),
            traced,
        }
    }

    /// The flow of a packet's data, and the one that its acknowledgement is for.
    fn of(&self, packet: &Packet) -> (Option<FlowId>, Option<FlowId>) {
        match self.connections.get(packet.connection as usize) {
            Some(c) if packet.backward => (c.back, Some(c.there)),
            Some(c) => (Some(c.there), c.back),
            None => (None, None),
        }
    }

    /// Says where the next packet of the record is on its stream. All are placed before one arrives: by then a stream has moved on by more than
    /// sequence numbers tell apart.
    pub fn place(&mut self, packet: &Packet) {
        let (data, acked) = self.of(packet);
        let position = match (packet.tcp, data, acked) {
            (Some(tcp), Some(flow), _) if tcp.is_syn() => {
                self.flows[flow.index()].stream.opened(tcp);
                0
            }
            (Some(tcp), Some(flow), _) if packet.payload > 0 => {
                self.flows[flow.index()].stream.sent(tcp, packet.payload)
            }
            (Some(tcp), _, Some(flow)) if tcp.flags & Tcp::ACK != 0 => {
                self.flows[flow.index()].stream.acknowledged(tcp)
            }
            _ => 0,
        };
        self.positions.push(position);
    }

    /// A host sent the packet that was placed last, `now` ps into the run.
    pub fn sent(&mut self, now: u64, packet: &Packet) {
        let (Some(tcp), (Some(flow), _)) = (packet.tcp, self.of(packet)) else { return };
        let reading = &mut self.flows[flow.index()];
        if tcp.is_syn() {
            return;
        }
        if let Some(sender) = packet.sender {
            let entered = |state: u8| sender.state == state && reading.state != state;
            reading.row.fast_recoveries += u64::from(entered(3));
            reading.row.ecn_reductions += u64::from(entered(2));
            reading.state = sender.state;
            reading.row.max_cwnd = reading.row.max_cwnd.max(f64::from(sender.cwnd));
            let window = (sender.cwnd, sender.ssthresh, sender.in_flight, sender.srtt_us, sender.state);
            if self.traced[flow.index()] && reading.last_window != Some(window) {
                reading.last_window = Some(window);
                let t = &mut self.windows;
                t.time_ps.push(now);
                t.flow.push(flow.0);
                t.cwnd.push(f64::from(sender.cwnd));
                // TCP_INFINITE_SSTHRESH.
                t.ssthresh.push(if sender.ssthresh >= 0x7fff_ffff {
                    f64::INFINITY
                } else {
                    f64::from(sender.ssthresh)
                });
                t.in_flight.push(f64::from(sender.in_flight));
                t.srtt_ps.push(u64::from(sender.srtt_us) * 1_000_000);
                t.state.push(sender.state);
            }
        }
        if packet.payload == 0 {
            return;
        }
        reading.row.segments += 1;
        reading.row.bytes_sent += u64::from(packet.payload);
        reading.row.first_send_ps.get_or_insert(now);
        let end = self.positions.last().copied().unwrap_or(0) + u64::from(packet.payload);
        while let Some(&(_, message)) = reading.starts.get(reading.started).filter(|(start, _)| *start < end) {
            self.messages[message as usize].first_send_ps.get_or_insert(now);
            reading.started += 1;
        }
    }

    /// A port took, marked or dropped a packet.
    pub fn offered(&mut self, packet: &Packet, link: u16, fate: Fate) {
        let (data, acked) = self.of(packet);
        // A SYN counts as a segment of its own flow, as in the simulator.
        let asks = packet.tcp.is_some_and(|t| t.is_syn() && t.flags & Tcp::ACK == 0);
        if packet.payload == 0 && !asks {
            if let (Fate::Dropped, Some(flow)) = (fate, acked) {
                self.flows[flow.index()].row.ack_drops += 1;
            }
            return;
        }
        let Some(flow) = data else { return };
        let reading = &mut self.flows[flow.index()];
        match fate {
            Fate::Dropped => {
                reading.row.drops += 1;
                reading.run = match reading.run {
                    Some((at, length)) if at == link => Some((at, length + 1)),
                    _ => {
                        reading.close_run();
                        Some((link, 1))
                    }
                };
            }
            Fate::Accepted | Fate::Marked => {
                reading.row.marks += u64::from(fate == Fate::Marked);
                if reading.run.is_some_and(|(at, _)| at == link) {
                    reading.close_run();
                }
            }
        }
    }

    /// Packet `number` reached its host, `now` ps into the run; the bytes that became deliverable with it, and whose.
    pub fn arrived(&mut self, now: u64, number: u32, packet: &Packet) -> Option<(FlowId, u64)> {
        let (data, acked) = self.of(packet);
        let tcp = packet.tcp.filter(|t| !t.is_syn())?;
        if tcp.flags & Tcp::ECE != 0
            && let Some(flow) = acked
        {
            self.flows[flow.index()].row.ece_acks += 1;
        }
        let flow = data.filter(|_| packet.payload > 0)?;
        let reading = &mut self.flows[flow.index()];
        let bytes = reading.stream.arrived(self.positions[number as usize], packet.payload);
        if bytes > 0 {
            reading.row.last_delivery_ps = Some(now);
        }
        Some((flow, bytes))
    }

    /// Packet `number` reached its host after the end.
    pub fn late(&mut self, number: u32, packet: &Packet) {
        if let (Some(flow), _) = self.of(packet) {
            self.flows[flow.index()].stream.arrived(self.positions[number as usize], packet.payload);
        }
    }

    /// The run ended: what arrives later counts only against what was acknowledged.
    pub fn ended(&mut self) {
        for reading in &mut self.flows {
            // As the simulator counts: what the host has in order. The player reads a part of that, so as not to be woken for each segment.
            reading.row.bytes_delivered = reading.stream.delivered().min(reading.written);
        }
    }

    /// The rows, and whatever they still need.
    ///
    /// # Errors
    /// [`KernelError::Record`] when less arrived than a socket saw acknowledged: the record lacks packets, or they were misread.
    pub fn finish(self) -> Result<(Vec<FlowStats>, Vec<MessageStats>, WindowTrace), KernelError> {
        debug_assert_eq!(self.flows.len(), self.spec.flows.len());
        let mut rows = Vec::with_capacity(self.flows.len());
        for (number, mut reading) in self.flows.into_iter().enumerate() {
            reading.close_run();
            // A FIN counts as a byte (tcp_snd_una_update).
            let (acked, arrived) = (reading.row.bytes_acked, reading.stream.delivered());
            if acked > arrived + 1 {
                let what = format!("flow {number} saw {acked} bytes acknowledged, and {arrived} arrived");
                return Err(KernelError::Record(what));
            }
            rows.push(reading.row);
        }
        Ok((rows, self.messages, self.windows))
    }

    /// Packet events at the traced ports, and every drop and mark if those are asked for.
    pub fn packet_trace(&self, traffic: &Traffic, start: u64, delays: &[u64]) -> PacketTrace {
        let mut at = vec![false; self.spec.links.len()];
        self.spec.trace.packets.iter().for_each(|l| at[l.index()] = true);
        let everywhere = self.spec.trace.drops_and_marks;
        let mut events: Vec<(u64, u8, u16, u32, bool)> = Vec::new();
        let mut marked = vec![false; traffic.packets.len()];
        for hop in traffic.hops.iter().filter(|h| h.time_ps >= start) {
            let here = at.get(usize::from(hop.link)).copied().unwrap_or(false);
            let (time, before) = (hop.time_ps - start, marked[hop.packet as usize]);
            marked[hop.packet as usize] |= hop.fate == Fate::Marked;
            match hop.fate {
                Fate::Dropped if here || everywhere => events.push((time, 1, hop.link, hop.packet, before)),
                Fate::Marked if here || everywhere => events.push((time, 2, hop.link, hop.packet, before)),
                _ => {}
            }
            if here && hop.fate != Fate::Dropped {
                events.push((time, 0, hop.link, hop.packet, before));
                let arrival = hop.departure_ps - start + delays[usize::from(hop.link)];
                events.push((arrival, 3, hop.link, hop.packet, marked[hop.packet as usize]));
            }
        }
        events.sort_by_key(|e| e.0);
        let mut t = PacketTrace::default();
        for (time, event, link, number, ce) in events {
            let packet = &traffic.packets[number as usize];
            let (data, acked) = self.of(packet);
            let flow = if packet.payload > 0 { data } else { acked.or(data) };
            t.time_ps.push(time);
            t.link.push(u32::from(link));
            t.event.push(event);
            t.flow.push(flow.map_or(u32::MAX, |f| f.0));
            t.flags.push(packet_flags(packet, traffic, ce));
            t.payload.push(packet.payload);
            let tcp = packet.tcp;
            t.seq.push(self.positions[number as usize]);
            t.window.push(tcp.map_or(0, |t| u32::from(t.window)));
            t.sack.push(tcp.map_or([0; 6], |t| t.sack));
            // Time stamps of Linux count milliseconds.
            let stamp = tcp.and_then(|t| t.timestamps).map_or(0, |(v, e)| if packet.payload > 0 { v } else { e });
            t.timestamp_ps.push(u64::from(stamp) * 1_000_000_000);
        }
        t
    }
}

impl Reading {
    fn close_run(&mut self) {
        if let Some((_, length)) = self.run.take() {
            self.row.drop_runs.resize(LONGEST_RUN, 0);
            self.row.drop_runs[length.min(LONGEST_RUN) - 1] += 1;
        }
    }
}

/// What the sockets at both ends told at the end of the run.
fn flow_row(seen: &log::Flow) -> FlowStats {
    FlowStats {
        bytes_acked: seen.bytes_acked,
        retransmissions: seen.retransmissions,
        timeouts: seen.timeouts,
        timeout_ps: seen.timeout_ms * 1_000_000_000,
        cwnd: f64::from(seen.cwnd),
        max_cwnd: f64::from(seen.cwnd),
        srtt_ps: u64::from(seen.srtt_us) * 1_000_000,
        min_rtt_ps: u64::from(seen.min_rtt_us.unwrap_or(0)) * 1_000_000,
        ..FlowStats::default()
    }
}

fn packet_flags(packet: &Packet, traffic: &Traffic, ce: bool) -> u16 {
    let tos = traffic.bytes.get(packet.headers.start + 1).copied().unwrap_or(0);
    let mut bits = 0;
    let mut set = |flag: u16, on: bool| {
        if on {
            bits |= flag;
        }
    };
    set(flags::ECT, tos & 3 != 0);
    set(flags::CE, ce || tos & 3 == 3);
    match packet.tcp {
        None => set(flags::DATAGRAM, true),
        Some(tcp) => {
            set(flags::ACK, packet.payload == 0);
            set(flags::SYN, tcp.is_syn());
            set(flags::ECE, tcp.flags & Tcp::ECE != 0);
        }
    }
    bits
}

/// Sums delivered bytes over intervals.
#[derive(Default)]
pub struct Throughput {
    sums: BTreeMap<(u64, u32), u64>,
}

impl Throughput {
    pub fn add(&mut self, now: u64, flow: FlowId, bytes: u64, interval: u64) {
        if bytes > 0 {
            *self.sums.entry(((now / interval + 1) * interval, flow.0)).or_insert(0) += bytes;
        }
    }

    pub fn finish(self) -> ThroughputTrace {
        let mut t = ThroughputTrace::default();
        for ((time, flow), bytes) in self.sums {
            t.time_ps.push(time);
            t.flow.push(flow);
            t.bytes.push(bytes);
        }
        t
    }
}

/// Every message of finite size was delivered.
pub fn complete(messages: &[MessageStats]) -> bool {
    messages.iter().all(|m| m.done_ps.is_some() || m.bytes == Message::UNLIMITED)
}
