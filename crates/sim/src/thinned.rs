//! Queues and windows of a run of which at most so many rows are kept: packed as they come, and thinned when the run has ended, since how fine
//! an envelope fits depends on all of them. A row takes 7 bytes of a queue and about 20 of a window, where columns have 24 and 45.

use crate::columns::milliseconds;
use crate::envelope::{Point, fitted};
use crate::results::{QueueTrace, WindowTrace};
use crate::trace::WindowRow;
use std::collections::BTreeMap;

/// Numbers of any size, small ones in few bytes: seven bits each, the lowest first, the eighth says that more follow.
#[derive(Debug, Default)]
struct Packed(Vec<u8>);

impl Packed {
    fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    /// The step from one number to another, up or down.
    fn step(&mut self, from: u64, to: u64) {
        let step = to.wrapping_sub(from) as i64;
        self.number(((step << 1) ^ (step >> 63)) as u64);
    }

    /// A real. Whole ones and infinity end in zeros, which come first here.
    fn real(&mut self, x: f64) {
        self.number(x.to_bits().swap_bytes());
    }
}

/// Reads them again.
#[derive(Clone)]
struct Reader<'a>(std::slice::Iter<'a, u8>);

impl Reader<'_> {
    /// The next number; none at the end.
    fn number(&mut self) -> Option<u64> {
        let (mut n, mut shift) = (0, 0);
        loop {
            let byte = *self.0.next()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(n);
            }
            shift += 7;
        }
    }

    fn step(&mut self, from: u64) -> Option<u64> {
        let n = self.number()?;
        Some(from.wrapping_add((n >> 1) ^ (n & 1).wrapping_neg()))
    }

    fn real(&mut self) -> Option<f64> {
        self.number().map(|n| f64::from_bits(n.swap_bytes()))
    }
}

/// A queue's length from a time on: ps, packets, bytes.
type Change = (u64, u32, u64);

/// Changes of one queue.
#[derive(Debug, Default)]
struct Queue {
    packed: Packed,
    last: Change,
}

impl Queue {
    fn add(&mut self, change: Change) {
        let (time, packets, bytes) = std::mem::replace(&mut self.last, change);
        self.packed.step(time, change.0);
        self.packed.step(u64::from(packets), u64::from(change.1));
        self.packed.step(bytes, change.2);
    }

    fn rows(&self) -> impl Iterator<Item = Change> + '_ {
        let mut reader = Reader(self.packed.0.iter());
        let (mut time, mut packets, mut bytes) = (0, 0, 0);
        std::iter::from_fn(move || {
            (time, packets, bytes) = (reader.step(time)?, reader.step(packets)?, reader.step(bytes)?);
            Some((time, packets as u32, bytes))
        })
    }
}

/// What is kept.
#[derive(Debug)]
pub struct Thinned {
    most: u64,
    queues: BTreeMap<u32, Queue>,
    windows: Packed,
    /// Of the last row of a window, ps.
    time: u64,
}

impl Thinned {
    /// At most so many rows of each trace.
    pub fn new(most: usize) -> Thinned {
        Thinned { most: most as u64, queues: BTreeMap::new(), windows: Packed::default(), time: 0 }
    }

    /// Changes of a port's queue, after those before.
    pub fn queue(&mut self, link: u32, changes: &[Change]) {
        let queue = self.queues.entry(link).or_default();
        changes.iter().for_each(|&change| queue.add(change));
    }

    /// The state of a sender.
    pub fn window(&mut self, now: u64, flow: u32, row: WindowRow) {
        let packed = &mut self.windows;
        packed.step(std::mem::replace(&mut self.time, now), now);
        packed.number(u64::from(flow));
        packed.real(row.cwnd);
        packed.real(row.ssthresh);
        packed.real(row.in_flight);
        packed.number(row.srtt);
        packed.number(u64::from(row.state));
    }

    fn changes(&self) -> impl Iterator<Item = (u32, Change)> + '_ {
        self.queues.iter().flat_map(|(&link, queue)| queue.rows().map(move |change| (link, change)))
    }

    fn states(&self) -> impl Iterator<Item = (u64, u32, WindowRow)> + '_ {
        let mut reader = Reader(self.windows.0.iter());
        let mut now = 0;
        std::iter::from_fn(move || {
            now = reader.step(now)?;
            let flow = reader.number()? as u32;
            let (cwnd, ssthresh, in_flight) = (reader.real()?, reader.real()?, reader.real()?);
            let (srtt, state) = (reader.number()?, reader.number()? as u8);
            Some((now, flow, WindowRow { cwnd, ssthresh, in_flight, srtt, state }))
        })
    }

    /// The rows that show the queues, port by port.
    pub fn queue_trace(&self) -> QueueTrace {
        let point = |(line, (time, packets, _)): (u32, Change)| Point {
            line,
            time: milliseconds(time),
            value: f64::from(packets),
        };
        let shown = fitted(|| self.changes().map(point), self.most);
        let mut trace = QueueTrace::default();
        for (link, (time, packets, bytes)) in at(self.changes(), &shown) {
            trace.time_ps.push(time);
            trace.link.push(link);
            trace.packets.push(packets);
            trace.bytes.push(bytes);
        }
        trace
    }

    /// The rows that show the windows, in the order of time.
    pub fn window_trace(&self) -> WindowTrace {
        let point =
            |(time, line, row): (u64, u32, WindowRow)| Point { line, time: milliseconds(time), value: row.cwnd };
        let shown = fitted(|| self.states().map(point), self.most);
        let mut trace = WindowTrace::default();
        for (time, flow, row) in at(self.states(), &shown) {
            trace.add(time, flow, row);
        }
        trace
    }
}

/// Of all rows those of these numbers, which ascend.
fn at<T>(all: impl Iterator<Item = T>, numbers: &[u32]) -> impl Iterator<Item = T> {
    let mut wanted = numbers.iter().peekable();
    (0..).zip(all).filter_map(move |(number, row)| wanted.next_if(|&&n| n == number).map(|_| row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_read_again() {
        let mut kept = Thinned::new(10);
        let changes = [(0, 0, 0), (u64::MAX, 3, 4500), (5, u32::MAX, u64::MAX), (12_000_000, 2, 3000)];
        kept.queue(7, &changes[..2]);
        kept.queue(7, &changes[2..]);
        assert_eq!(kept.changes().collect::<Vec<_>>(), changes.map(|change| (7, change)));
        let state = |cwnd, ssthresh| WindowRow { cwnd, ssthresh, in_flight: 0.0, srtt: 123_456_789, state: 4 };
        let rows =
            [(9, 1, state(10.0, f64::INFINITY)), (9, 70_000, state(1.0 / 3.0, 2.5)), (8, 0, state(1e-300, -0.0))];
        rows.iter().for_each(|&(now, flow, row)| kept.window(now, flow, row));
        assert_eq!(kept.states().collect::<Vec<_>>(), rows);
        assert_eq!(kept.queue_trace().bytes, [0, 4500, u64::MAX, 3000]);
        assert_eq!(kept.window_trace().flow, [1, 70_000, 0]);
    }

    #[test]
    fn a_long_trace_keeps_its_peaks_and_its_bound() {
        let mut kept = Thinned::new(100);
        let at = |n: u64| (n * 1000, if n == 777 { 50 } else { (n % 7) as u32 }, n);
        kept.queue(0, &(0..5000).map(at).collect::<Vec<_>>());
        let trace = kept.queue_trace();
        assert!((25..=100).contains(&trace.time_ps.len()), "{}", trace.time_ps.len());
        assert_eq!((trace.time_ps[0], *trace.time_ps.last().unwrap()), (0, 4_999_000));
        assert!(trace.packets.contains(&50));
        assert!(trace.time_ps.is_sorted());
    }
}
