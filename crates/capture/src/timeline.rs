//! One clock for the whole capture: packets in order of time, times in nanoseconds from the first.

use crate::decode::Segment;
use std::collections::VecDeque;

/// Packets held back to put them in order. Captures from several queues or ports are out of order by a few packets.
const HELD: usize = 32;
/// A step back beyond this, and behind packets already used, is a wrong clock, not a wrong order.
const JUMP: i64 = 1_000_000_000;
/// As long as no packet was used, stamps may lie this far before the first one.
const BEFORE_FIRST: i64 = 60_000_000_000;
/// After so many packets in a row on the other side of a jump, the clock was set rather than a stamp spoilt.
const SETTLED: u32 = 8;

/// Nothing lasts longer than this (73 years), whatever a damaged stamp says; so sums of a few times cannot overflow.
const LONGEST: u64 = 1 << 61;

/// A segment on its way to its connection.
#[derive(Clone, Copy)]
pub(crate) struct Timed {
    /// Since the start of the capture.
    pub at: u64,
    /// Number of the packet, from one.
    pub packet: u64,
    pub segment: Segment,
}

/// Puts stamps right.
#[derive(Default)]
pub(crate) struct Clock {
    first: Option<i64>,
    latest: i64,
    /// The time of the packet before, corrected.
    last: i64,
    correction: i64,
    behind: u32,
    pub jumps: Noted,
    pub unsorted: Noted,
    /// How far the first jump went back.
    pub first_jump: u64,
}

/// How many packets something happened to, and which was the first.
#[derive(Clone, Copy, Default)]
pub(crate) struct Noted {
    pub packets: u64,
    pub first: u64,
}

impl Noted {
    /// It happened to packet number `packet`.
    pub fn note(&mut self, packet: u64) {
        if self.packets == 0 {
            self.first = packet;
        }
        self.packets += 1;
    }
}

impl Clock {
    /// The wall-clock time of a packet; `None` stands for "as the packet before". `released` is the time of the last packet that can no
    /// longer be preceded by a late one.
    #[inline]
    pub fn at(&mut self, stamp: Option<i64>, packet: u64, released: Option<i64>) -> i64 {
        let stamp = stamp.unwrap_or_else(|| self.last.saturating_sub(self.correction));
        let first = *self.first.get_or_insert_with(|| {
            (self.latest, self.last) = (stamp, stamp);
            stamp
        });
        let mut t = stamp.saturating_add(self.correction);
        if t >= self.last {
            self.behind = 0;
        } else if t < released.unwrap_or(first.saturating_sub(BEFORE_FIRST)) && self.last.saturating_sub(t) > JUMP {
            let back = self.last.saturating_sub(t);
            if self.jumps.packets == 0 {
                self.first_jump = back.unsigned_abs();
            }
            self.jumps.note(packet);
            t = self.last;
            self.behind += 1;
            if self.behind == SETTLED {
                self.correction = self.correction.saturating_add(back);
                self.behind = 0;
            }
        } else {
            self.unsorted.note(packet);
            self.behind = 0;
        }
        self.last = t;
        self.latest = self.latest.max(t);
        t
    }

    /// The time of the first packet in the file.
    pub fn first(&self) -> Option<i64> {
        self.first
    }

    /// The latest time.
    pub fn latest(&self) -> i64 {
        self.latest
    }
}

/// A short queue in which late packets find their place.
pub(crate) struct Sorter {
    held: VecDeque<Held>,
    start: Option<i64>,
    released: i64,
}

struct Held {
    t: i64,
    packet: u64,
    segment: Segment,
}

impl Sorter {
    /// Empty.
    pub fn new() -> Sorter {
        Sorter { held: VecDeque::with_capacity(HELD + 1), start: None, released: 0 }
    }

    /// Takes a packet of wall-clock time `t` in; gives back the earliest when enough are held. Times never go back; equal times keep their
    /// order.
    #[inline]
    pub fn push(&mut self, t: i64, packet: u64, segment: Segment, clock: &Clock) -> Option<Timed> {
        let new = Held { t, packet, segment };
        match self.held.back() {
            Some(back) if t < back.t => {
                let place = self.held.partition_point(|held| held.t <= t);
                self.held.insert(place, new);
            }
            _ => self.held.push_back(new),
        }
        if self.held.len() > HELD { self.pop(clock) } else { None }
    }

    /// The earliest packet held.
    pub fn pop(&mut self, clock: &Clock) -> Option<Timed> {
        let first = self.held.pop_front()?;
        let start = *self.start.get_or_insert_with(|| clock.first().map_or(first.t, |t| t.min(first.t)));
        self.released = self.released.max(first.t);
        let at = self.released.abs_diff(start).min(LONGEST);
        Some(Timed { at, packet: first.packet, segment: first.segment })
    }

    /// The time of the last packet given back.
    #[inline]
    pub fn released(&self) -> Option<i64> {
        self.start.map(|_| self.released)
    }

    /// Where all times count from, once a packet was given back.
    pub fn start(&self) -> Option<i64> {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes stamps through clock and sorter; what comes out as (packet, time).
    fn through(stamps: &[i64]) -> (Vec<(u64, u64)>, Clock) {
        let (mut clock, mut sorter, mut out) = (Clock::default(), Sorter::new(), Vec::new());
        for (i, &stamp) in stamps.iter().enumerate() {
            let t = clock.at(Some(stamp), i as u64 + 1, sorter.released());
            out.extend(sorter.push(t, i as u64 + 1, Segment::default(), &clock));
        }
        out.extend(std::iter::from_fn(|| sorter.pop(&clock)));
        (out.iter().map(|t| (t.packet, t.at)).collect(), clock)
    }

    const HOUR: i64 = 3_600_000_000_000;

    #[test]
    fn one_stamp_an_hour_back_takes_the_time_before_it() {
        let mut stamps: Vec<i64> = (0..100).map(|i| HOUR + i * 10).collect();
        stamps[50] = 490;
        let (out, clock) = through(&stamps);
        assert_eq!(out[49..52], [(50, 490), (51, 490), (52, 510)]);
        assert_eq!((clock.jumps.packets, clock.jumps.first, clock.first_jump), (1, 51, 3_600_000_000_000));
    }

    #[test]
    fn one_stamp_an_hour_ahead_leaves_the_others_alone() {
        let mut stamps: Vec<i64> = (0..100).map(|i| i * 10).collect();
        stamps[50] = HOUR;
        let (out, clock) = through(&stamps);
        assert_eq!(clock.jumps.packets, 0);
        assert_eq!(out[50], (52, 510));
        assert_eq!(out[99], (51, HOUR as u64));
    }

    #[test]
    fn a_clock_that_was_set_back_goes_on_from_there() {
        let stamps: Vec<i64> = (0..100).map(|i| if i < 50 { HOUR + i * 10 } else { i * 10 }).collect();
        let (out, clock) = through(&stamps);
        assert_eq!(clock.jumps.packets, 8);
        assert_eq!(out[60].1 - out[59].1, 10);
        assert!(out[99].1 < 1_000);
    }

    #[test]
    fn late_packets_find_their_place_and_equal_times_keep_their_order() {
        let (out, clock) = through(&[5, 3, 5, 4]);
        assert_eq!(out, [(2, 0), (4, 1), (1, 2), (3, 2)]);
        assert_eq!(clock.unsorted.packets, 2);
    }

    #[test]
    fn swapped_neighbours_seconds_apart_are_put_in_order() {
        let (out, clock) = through(&[10, 2_000_000_000, 20, 2_000_000_010]);
        assert_eq!(out.iter().map(|o| o.0).collect::<Vec<_>>(), [1, 3, 2, 4]);
        assert_eq!(clock.jumps.packets, 0);
    }
}
