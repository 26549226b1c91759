//! One clock for the whole capture: packets in order of time, times in nanoseconds from the first.

use crate::decode::Segment;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Packets held back to put them in order. A capture of one interface with several queues is out of order by a few packets.
const HELD: usize = 32;
/// Packets held back at most where a tool wrote several interfaces: it empties the buffer of one after another, and each of `dumpcap`'s 2 MiB
/// holds some 10,000 cut packets. For longer than [`JUMP`] none is held.
const HELD_WIDELY: usize = 1 << 17;
/// So much payload is kept of each of these.
const KEPT_WIDELY: usize = 256;
/// A step back beyond this, and behind packets already used, is a wrong clock, not a wrong order.
const JUMP: i64 = 1_000_000_000;
/// As long as no packet was used, stamps may lie this far before the first one.
const BEFORE_FIRST: i64 = 60_000_000_000;
/// After so many packets in a row on the other side of a jump, the clock was set rather than a stamp spoilt.
const SETTLED: u32 = 8;

/// Nothing lasts longer than this (73 years), whatever a damaged stamp says; so sums of a few times cannot overflow.
const LONGEST: u64 = 1 << 61;

/// A segment on its way to its connection.
pub(crate) struct Timed {
    /// Since the start of the capture.
    pub at: u64,
    /// Number of the packet, from one.
    pub packet: u64,
    pub segment: Segment,
    /// What is stored of its payload, or the front of it.
    pub payload: Vec<u8>,
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

/// A queue in which late packets find their place: a short one, until the file has several interfaces or a packet comes too late for it.
pub(crate) struct Sorter {
    held: VecDeque<Held>,
    wide: Option<Wide>,
    start: Option<i64>,
    released: i64,
    /// Packets that came too late for their place.
    pub late: Noted,
    /// Room for payload that was used up.
    room: Vec<Vec<u8>>,
}

struct Held {
    t: i64,
    packet: u64,
    segment: Segment,
    payload: Vec<u8>,
}

/// Many packets by time: small keys in a heap, segments where they were put.
#[derive(Default)]
struct Wide {
    keys: BinaryHeap<Reverse<(i64, u64, u32)>>,
    segments: Vec<(Segment, Vec<u8>)>,
    free: Vec<u32>,
}

impl Wide {
    fn push(&mut self, held: Held) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.segments.push(Default::default());
            self.segments.len() as u32 - 1
        });
        self.segments[slot as usize] = (held.segment, held.payload);
        self.keys.push(Reverse((held.t, held.packet, slot)));
    }

    /// The earliest, if it is to be given back now that a packet of time `t` came.
    fn ripe(&mut self, t: i64) -> Option<Held> {
        let &Reverse((first, ..)) = self.keys.peek()?;
        (self.keys.len() > HELD_WIDELY || t.saturating_sub(first) > JUMP).then(|| self.pop()).flatten()
    }

    fn pop(&mut self) -> Option<Held> {
        let Reverse((t, packet, slot)) = self.keys.pop()?;
        self.free.push(slot);
        let (segment, payload) = std::mem::take(&mut self.segments[slot as usize]);
        Some(Held { t, packet, segment, payload })
    }
}

impl Sorter {
    /// Empty.
    pub fn new() -> Sorter {
        let held = VecDeque::with_capacity(HELD + 1);
        Sorter { held, wide: None, start: None, released: 0, late: Noted::default(), room: Vec::new() }
    }

    /// From now on holds back as many packets as several interfaces need.
    #[cold]
    pub fn widen(&mut self) {
        if self.wide.is_none() {
            let mut wide = Wide::default();
            self.held.drain(..).for_each(|held| wide.push(held));
            self.wide = Some(wide);
        }
    }

    /// Takes a packet of wall-clock time `t` in; [`Sorter::ripe`] gives back what has waited long enough. Times never go back; equal times keep
    /// their order.
    #[inline]
    pub fn push(&mut self, t: i64, packet: u64, segment: Segment, payload: &[u8]) {
        if self.start.is_some() && t < self.released {
            self.widen();
        }
        let kept = if self.wide.is_some() { payload.len().min(KEPT_WIDELY) } else { payload.len() };
        let payload = if kept == 0 {
            Vec::new()
        } else {
            let mut room = self.room.pop().unwrap_or_default();
            room.extend_from_slice(&payload[..kept]);
            room
        };
        let new = Held { t, packet, segment, payload };
        if let Some(wide) = &mut self.wide {
            wide.push(new);
            return;
        }
        match self.held.back() {
            Some(back) if t < back.t => {
                let place = self.held.partition_point(|held| held.t <= t);
                self.held.insert(place, new);
            }
            _ => self.held.push_back(new),
        }
    }

    /// The earliest packet, if it is to be used now that a packet of time `t` came.
    #[inline]
    pub fn ripe(&mut self, t: i64, clock: &Clock) -> Option<Timed> {
        let first = match &mut self.wide {
            Some(wide) => wide.ripe(t),
            None if self.held.len() > HELD => self.held.pop_front(),
            None => None,
        }?;
        Some(self.released(first, clock))
    }

    /// The earliest packet held.
    pub fn pop(&mut self, clock: &Clock) -> Option<Timed> {
        let first = match &mut self.wide {
            Some(wide) => wide.pop(),
            None => self.held.pop_front(),
        }?;
        Some(self.released(first, clock))
    }

    #[inline]
    fn released(&mut self, first: Held, clock: &Clock) -> Timed {
        if self.start.is_some() && first.t < self.released {
            self.late.note(first.packet);
        }
        let start = *self.start.get_or_insert_with(|| clock.first().map_or(first.t, |t| t.min(first.t)));
        self.released = self.released.max(first.t);
        let at = self.released.abs_diff(start).min(LONGEST);
        Timed { at, packet: first.packet, segment: first.segment, payload: first.payload }
    }

    /// Takes back the room of a packet that was used.
    #[inline]
    pub fn used(&mut self, timed: Timed) {
        let mut room = timed.payload;
        if room.capacity() > 0 && self.room.len() <= HELD {
            room.clear();
            self.room.push(room);
        }
    }

    /// The time of the last packet given back.
    #[inline]
    pub fn last_released(&self) -> Option<i64> {
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
        let (out, clock, _) = sorted(stamps, Sorter::new());
        (out, clock)
    }

    fn sorted(stamps: &[i64], mut sorter: Sorter) -> (Vec<(u64, u64)>, Clock, u64) {
        let (mut clock, mut out) = (Clock::default(), Vec::new());
        for (i, &stamp) in stamps.iter().enumerate() {
            let t = clock.at(Some(stamp), i as u64 + 1, sorter.last_released());
            sorter.push(t, i as u64 + 1, Segment::default(), &[]);
            out.extend(std::iter::from_fn(|| sorter.ripe(t, &clock)));
        }
        out.extend(std::iter::from_fn(|| sorter.pop(&clock)));
        (out.iter().map(|t| (t.packet, t.at)).collect(), clock, sorter.late.packets)
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

    /// The first packet has the stamp `first`, the second lies `back` before it; what was used already ends at `released`.
    fn jumps(first: i64, back: i64, released: Option<i64>) -> u64 {
        let mut clock = Clock::default();
        clock.at(Some(first), 1, None);
        clock.at(Some(first - back), 2, released);
        clock.jumps.packets
    }

    #[test]
    fn a_step_back_by_more_than_a_second_behind_what_was_used_is_a_wrong_clock() {
        let back = |ns: i64| jumps(HOUR, ns, Some(HOUR - 1));
        assert_eq!((back(1_000_000_000), back(1_000_000_001)), (0, 1));
    }

    #[test]
    fn before_any_packet_was_used_a_stamp_may_lie_a_minute_before_the_first() {
        let back = |ns: i64| jumps(HOUR, ns, None);
        assert_eq!((back(60_000_000_000), back(60_000_000_001)), (0, 1));
    }

    /// Eight interfaces, whose buffers of 500 packets (500 us each) are written one after another.
    fn several_interfaces() -> Vec<i64> {
        let packets = (0..20).flat_map(|turn| (0..8).flat_map(move |port| (0..500).map(move |n| (turn, port, n))));
        packets.map(|(turn, port, n)| turn * 500_000 + n * 1_000 + port).collect()
    }

    #[test]
    fn buffers_of_several_interfaces_are_put_in_order() {
        let mut sorter = Sorter::new();
        sorter.widen();
        let (out, clock, late) = sorted(&several_interfaces(), sorter);
        let mut expected = several_interfaces();
        expected.sort_unstable();
        assert_eq!(out.iter().map(|o| o.1 as i64).collect::<Vec<_>>(), expected);
        assert_eq!((late, clock.jumps.packets), (0, 0));
    }

    #[test]
    fn packets_that_were_too_late_are_counted_and_those_after_them_are_put_in_order() {
        let (out, _, late) = sorted(&several_interfaces(), Sorter::new());
        // When the second buffer began, the first had been used up to its packet 467: of each other buffer, 467 packets lie before that.
        assert_eq!(late, 7 * 467);
        let mut expected = several_interfaces();
        expected.sort_unstable();
        assert_eq!(out[4_000..].iter().map(|o| o.1 as i64).collect::<Vec<_>>(), expected[4_000..]);
    }

    /// Of so many packets of one moment, of several interfaces or of one, those that are not held back.
    fn ripe_of(packets: u64, several: bool) -> usize {
        let mut sorter = Sorter::new();
        if several {
            sorter.widen();
        }
        (1..=packets).for_each(|packet| sorter.push(0, packet, Segment::default(), &[]));
        std::iter::from_fn(|| sorter.ripe(0, &Clock::default())).count()
    }

    #[test]
    fn of_one_interface_32_packets_are_held_back_and_of_several_131072() {
        assert_eq!((ripe_of(32, false), ripe_of(33, false)), (0, 1));
        assert_eq!((ripe_of(131_072, true), ripe_of(131_073, true)), (0, 1));
    }

    #[test]
    fn of_what_is_held_back_of_several_interfaces_256_bytes_are_kept() {
        let kept = |bytes: usize| {
            let mut sorter = Sorter::new();
            sorter.widen();
            sorter.push(0, 1, Segment::default(), &vec![7; bytes]);
            sorter.pop(&Clock::default()).map_or(0, |timed| timed.payload.len())
        };
        assert_eq!((kept(256), kept(257)), (256, 256));
    }

    /// The first stamp is of 1970, the last the latest that a file can hold: the time between is 2^63 nanoseconds, of which a quarter counts.
    #[test]
    fn nothing_lasts_longer_than_73_years() {
        let (out, _) = through(&[0, i64::MAX]);
        assert_eq!(out[1], (2, 2_305_843_009_213_693_952));
    }
}
