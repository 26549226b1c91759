//! Packet events of the slowest answers alone: what explains them, and little beside all that passed a port.

use crate::columns::milliseconds;
use crate::packet::Packet;
use crate::results::PacketTrace;
use crate::spec::SlowestSpec;
use crate::trace::PacketEvent;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// One packet event, numbered as they come.
#[derive(Clone, Copy, Debug)]
struct Row {
    number: u64,
    time: u64,
    link: u32,
    event: PacketEvent,
    packet: Packet,
}

/// An answer that is complete, and its events so far.
#[derive(Debug)]
struct Kept {
    /// As reports have it, so that both order answers alike.
    took_ms: f64,
    answer: usize,
    flow: u32,
    done: u64,
    rows: Vec<Row>,
}

/// A flow with answers under way.
#[derive(Debug, Default)]
struct Held {
    /// Their number and their release.
    open: Vec<(usize, u64)>,
    /// Events since the first of those releases.
    rows: VecDeque<Row>,
}

/// Holds the events of answers under way, and keeps those of the slowest.
#[derive(Debug)]
pub struct Slowest {
    most: usize,
    /// Answers by the message that begins each, and by the one that ends it.
    first: BTreeMap<u32, usize>,
    last: BTreeMap<u32, usize>,
    held: BTreeMap<u32, Held>,
    /// Events of this instant on flows without an answer under way: one may be released yet.
    instant: Vec<Row>,
    /// Slowest first.
    kept: Vec<Kept>,
    count: u64,
}

impl Slowest {
    /// Nothing has happened yet.
    pub fn new(spec: &SlowestSpec) -> Slowest {
        let numbered = || spec.answers.iter().enumerate();
        Slowest {
            most: spec.most,
            first: numbered().map(|(n, &(first, _))| (first.0, n)).collect(),
            last: numbered().map(|(n, &(_, last))| (last.0, n)).collect(),
            held: BTreeMap::new(),
            instant: Vec::new(),
            kept: Vec::new(),
            count: 0,
        }
    }

    /// An application wrote this message.
    pub fn released(&mut self, now: u64, message: u32, flow: u32) {
        let Some(&answer) = self.first.get(&message) else { return };
        let held = self.held.entry(flow).or_default();
        if held.open.is_empty() {
            held.rows.extend(self.instant.extract_if(.., |row| row.packet.flow == flow && row.time == now));
        }
        held.open.push((answer, now));
    }

    /// A packet event at a port.
    pub fn record(&mut self, time: u64, link: u32, event: PacketEvent, packet: &Packet) {
        let row = Row { number: self.count, time, link, event, packet: *packet };
        self.count += 1;
        // What follows an answer's end at the same instant belongs to it.
        for kept in self.kept.iter_mut().filter(|k| k.flow == packet.flow && k.done == time) {
            kept.rows.push(row);
        }
        match self.held.get_mut(&packet.flow) {
            Some(held) => held.rows.push_back(row),
            None => self.wait(row),
        }
    }

    /// Keeps an event as long as its instant lasts.
    fn wait(&mut self, row: Row) {
        if self.instant.last().is_some_and(|last| last.time < row.time) {
            self.instant.clear();
        }
        self.instant.push(row);
    }

    /// This message was delivered.
    pub fn completed(&mut self, now: u64, message: u32, flow: u32) {
        let (Some(&answer), Some(held)) = (self.last.get(&message), self.held.get_mut(&flow)) else { return };
        let Some(position) = held.open.iter().position(|&(open, _)| open == answer) else { return };
        let (_, release) = held.open.remove(position);
        let took_ms = milliseconds(now) - milliseconds(release);
        // Of equal ones the first.
        let place = self.kept.partition_point(|k| k.took_ms > took_ms || (k.took_ms == took_ms && k.answer < answer));
        if place < self.most {
            let rows = held.rows.iter().filter(|row| row.time >= release).copied().collect();
            self.kept.insert(place, Kept { took_ms, answer, flow, done: now, rows });
            self.kept.truncate(self.most);
        }
        let since = held.open.iter().map(|&(_, release)| release).min().unwrap_or(now).min(now);
        let before = held.rows.partition_point(|row| row.time < since);
        held.rows.drain(..before);
        if held.open.is_empty() {
            // Of a million flows few have an answer under way.
            let over = self.held.remove(&flow).map(|held| held.rows);
            over.into_iter().flatten().for_each(|row| self.wait(row));
        }
    }

    /// Hands over the events of the slowest answers, in their order.
    pub fn finish(&mut self) -> PacketTrace {
        let rows: BTreeMap<u64, Row> =
            self.kept.drain(..).flat_map(|kept| kept.rows).map(|row| (row.number, row)).collect();
        let mut trace = PacketTrace::default();
        for row in rows.into_values() {
            trace.add(row.time, row.link, row.event, &row.packet);
        }
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MessageId;

    fn packet(flow: u32, seq: u64) -> Packet {
        Packet { flow, seq, ..Packet::default() }
    }

    /// Messages 0 to 5, one answer each, the even ones on flow 0 and the odd ones on flow 1.
    fn two_flows(most: usize) -> Slowest {
        let answers = (0..6).map(|n| (MessageId(n), MessageId(n))).collect();
        Slowest::new(&SlowestSpec { most, answers })
    }

    fn times(slowest: &mut Slowest) -> Vec<u64> {
        slowest.finish().time_ps
    }

    #[test]
    fn only_events_of_the_slowest_answers_are_kept_in_their_order() {
        let mut slowest = two_flows(2);
        for (message, release, took) in [(0, 100, 50), (2, 200, 10), (4, 300, 70)] {
            slowest.released(release, message, 0);
            slowest.record(release, 0, PacketEvent::Accepted, &packet(0, release));
            slowest.record(release + 5, 0, PacketEvent::Accepted, &packet(9, 0));
            slowest.record(release + took, 0, PacketEvent::Delivered, &packet(0, release));
            slowest.completed(release + took, message, 0);
        }
        assert_eq!(times(&mut slowest), [100, 150, 300, 370]);
    }

    #[test]
    fn what_happens_at_the_instant_of_release_or_delivery_belongs_to_the_answer() {
        let mut slowest = two_flows(1);
        slowest.record(90, 0, PacketEvent::Accepted, &packet(0, 0));
        slowest.record(100, 0, PacketEvent::Accepted, &packet(0, 1));
        slowest.released(100, 0, 0);
        slowest.completed(150, 0, 0);
        slowest.record(150, 0, PacketEvent::Delivered, &packet(0, 2));
        slowest.record(151, 0, PacketEvent::Delivered, &packet(0, 3));
        assert_eq!(times(&mut slowest), [100, 150]);
    }

    #[test]
    fn answers_that_overlap_on_a_flow_have_their_events_once() {
        let mut slowest = two_flows(2);
        slowest.released(100, 0, 0);
        slowest.record(110, 0, PacketEvent::Accepted, &packet(0, 1));
        slowest.released(120, 2, 0);
        slowest.record(130, 0, PacketEvent::Accepted, &packet(0, 2));
        slowest.completed(140, 0, 0);
        slowest.record(150, 0, PacketEvent::Accepted, &packet(0, 3));
        slowest.completed(160, 2, 0);
        assert_eq!(times(&mut slowest), [110, 130, 150]);
    }

    #[test]
    fn of_equally_slow_answers_the_first_is_kept_and_nothing_of_what_is_over_is_held() {
        let mut slowest = two_flows(1);
        for message in [1, 0] {
            slowest.released(1000, message, message);
            slowest.record(1001, message, PacketEvent::Accepted, &packet(message, 0));
            slowest.completed(1002, message, message);
        }
        assert!(slowest.held.is_empty());
        assert_eq!(slowest.finish().flow, [0]);
    }
}
