//! Totals of the ports, from what was offered to them and when it left: as the simulator's ports count.

use crate::network;
use crate::traffic::Traffic;
use fanin_fabric::record::Fate;
use fanin_sim::results::{PortStats, QueueTrace};
use fanin_sim::spec::{LinkId, Spec};
use std::collections::VecDeque;

/// A port while its record is read.
#[derive(Default)]
struct Meter {
    row: PortStats,
    /// Departure and wire bytes of what is queued.
    queue: VecDeque<(u64, u64)>,
    bytes: u64,
    last_change: u64,
    last_departure: u64,
    /// Time spent with each queue length in packets.
    time_at: Vec<u64>,
    byte_time: u128,
    changes: Option<Vec<(u64, u32, u64)>>,
}

impl Meter {
    fn account(&mut self, now: u64) {
        let (length, time) = (self.queue.len(), now.saturating_sub(self.last_change));
        if self.time_at.len() <= length {
            self.time_at.resize(length + 1, 0);
        }
        self.time_at[length] += time;
        self.byte_time += u128::from(self.bytes) * u128::from(time);
        self.last_change = now;
    }

    fn note(&mut self, now: u64) {
        let (packets, bytes) = (self.queue.len() as u32, self.bytes);
        if let Some(changes) = &mut self.changes {
            changes.push((now, packets, bytes));
        }
    }

    fn advance(&mut self, now: u64) {
        while let Some(&(departure, wire)) = self.queue.front().filter(|(d, _)| *d <= now) {
            self.account(departure);
            self.queue.pop_front();
            self.bytes -= wire;
            self.row.sent_packets += 1;
            self.row.sent_bytes += wire;
            self.note(departure);
        }
    }

    fn accept(&mut self, now: u64, departure: u64, wire: u64, transmission: u64) {
        self.advance(now);
        self.account(now);
        self.queue.push_back((departure, wire));
        self.bytes += wire;
        let row = &mut self.row;
        row.packets += 1;
        row.bytes += wire;
        row.max_queue_packets = row.max_queue_packets.max(self.queue.len() as u64);
        row.max_queue_bytes = row.max_queue_bytes.max(self.bytes);
        row.busy_ps += transmission;
        row.wait_ps += departure.saturating_sub(transmission).saturating_sub(now);
        self.last_departure = departure;
        self.note(now);
    }

    fn finish(&mut self, end: u64) {
        self.advance(end);
        self.account(end);
        self.row.busy_ps -= self.last_departure.saturating_sub(end).min(self.row.busy_ps);
        self.row.offered_packets = self.row.packets + self.row.drops;
        if end > 0 {
            self.row.utilisation = self.row.busy_ps as f64 / end as f64;
            let weighted: u128 = self.time_at.iter().zip(0_u128..).map(|(&ps, n)| n * u128::from(ps)).sum();
            self.row.mean_queue_packets = weighted as f64 / end as f64;
            self.row.mean_queue_bytes = self.byte_time as f64 / end as f64;
        }
        let total: u64 = self.time_at.iter().sum();
        let mut below = 0;
        let reached = self.time_at.iter().position(|&time| {
            below += time;
            below as f64 >= 0.99 * total as f64
        });
        self.row.p99_queue_packets = reached.unwrap_or(0) as u64;
    }
}

/// Rows of all ports, and the traced queues. `start` and `end` are ps of the kernel's clock; `wire` gives a packet's bytes on the wire.
pub fn ports(spec: &Spec, traffic: &Traffic, start: u64, end: u64, wire: &[u64]) -> (Vec<PortStats>, QueueTrace) {
    let mut meters: Vec<Meter> = spec.links.iter().map(|_| Meter::default()).collect();
    for link in &spec.trace.queues {
        meters[link.index()].changes = Some(Vec::new());
    }
    for hop in traffic.hops.iter().filter(|h| h.time_ps >= start && h.time_ps <= end) {
        let Some(meter) = meters.get_mut(usize::from(hop.link)) else { continue };
        let bytes = wire[hop.packet as usize];
        if hop.fate == Fate::Dropped {
            meter.row.drops += 1;
            meter.row.dropped_bytes += bytes;
            continue;
        }
        meter.row.marks += u64::from(hop.fate == Fate::Marked);
        let rate = spec.links[usize::from(hop.link)].rate;
        let transmission = (fanin_units::Bytes::new(bytes) / rate).ps();
        meter.accept(hop.time_ps - start, hop.departure_ps - start, bytes, transmission);
    }
    let mut trace = QueueTrace::default();
    let node = |n: fanin_sim::spec::NodeId| &spec.nodes[n.index()].name;
    let mut rows = Vec::with_capacity(meters.len());
    for (number, (mut meter, link)) in meters.into_iter().zip(&spec.links).enumerate() {
        meter.finish(end - start);
        meter.row.name = format!("{}->{}", node(link.from), node(link.to));
        if let Some(changes) = meter.changes.take() {
            write_queue(&mut trace, number as u32, &changes, spec, end - start);
        }
        rows.push(meter.row);
    }
    (rows, trace)
}

/// Every change, or samples at an interval.
fn write_queue(trace: &mut QueueTrace, link: u32, changes: &[(u64, u32, u64)], spec: &Spec, end: u64) {
    let mut push = |time: u64, packets: u32, bytes: u64| {
        trace.time_ps.push(time);
        trace.link.push(link);
        trace.packets.push(packets);
        trace.bytes.push(bytes);
    };
    let Some(interval) = spec.trace.queue_interval else {
        changes.iter().for_each(|&(time, packets, bytes)| push(time, packets, bytes));
        return;
    };
    let (mut next, mut now) = (changes.iter().peekable(), (0, 0));
    for sample in (0..=end).step_by(interval.ps().max(1) as usize) {
        while let Some(&(_, packets, bytes)) = next.next_if(|(time, ..)| *time <= sample) {
            now = (packets, bytes);
        }
        push(sample, now.0, now.1);
    }
}

/// Propagation and processing of each link, ps.
pub fn delays(spec: &Spec) -> Vec<u64> {
    (0..spec.links.len() as u32).map(|l| network::delay(spec, LinkId(l)).ps()).collect()
}
