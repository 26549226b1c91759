//! The event structure: a bucketed calendar of links and a heap of timers.
//!
//! A link delivers in order, so only the head of its ring can be the next event: at most one entry per link, kept as intrusive
//! lists (no allocation). Timers are fewer, move lazily, and live in a heap, four below each.
//!
//! Total order: (time, links by rank, then timers by kind and number). Each link draws the rank of each of its events from a sequence of its own that
//! starts from the seed. So the order depends on scenario and seed alone, never on the order of insertion, and no link is favoured: with
//! equal links packets do arrive at the same instant, and if the same one always came first, it alone would find the one free place
//! in a full buffer.

use crate::rng::Stream;
use crate::timer::Timer;
use dary_heap::QuaternaryHeap;
use fanin_switch::prefetch;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NIL: u32 = u32::MAX;
const BUCKETS: usize = 8192;
/// Words of a bit per bucket.
const WORDS: usize = BUCKETS / 64;

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The packet at the head of this link's ring reaches the far end.
    Link(u32),
    /// This timer may be due.
    Timer(Timer),
}

/// Where an event stands in the total order of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Place {
    /// When, ps.
    pub time: u64,
    /// Not a link's.
    timer: bool,
    /// A link's rank; a timer's kind.
    rank: u32,
    number: u32,
}

impl Place {
    fn of_link(due: Due) -> Place {
        Place { time: due.time, timer: false, rank: due.rank, number: due.link }
    }
    fn of_timer(time: u64, timer: Timer) -> Place {
        let (rank, number) = timer.rank();
        Place { time, timer: true, rank, number }
    }
}

/// A link's event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Due {
    time: u64,
    rank: u32,
    link: u32,
}

impl Due {
    /// The rank of the link's event after this one (a linear congruential sequence of full period).
    #[inline]
    fn next_rank(self) -> u32 {
        self.rank.wrapping_mul(747_796_405).wrapping_add(2_891_336_453)
    }
}

/// Events in their total order.
#[derive(Debug)]
pub struct Calendar {
    /// log2 of a bucket's width in ps.
    shift: u32,
    /// The bucket being emptied, as an absolute number (time >> shift).
    today: u64,
    /// Events of today and before, latest first, so that the next is popped from the end.
    current: Vec<Due>,
    /// First link of each future bucket within the year.
    heads: Box<[u32; BUCKETS]>,
    /// A bit per non-empty bucket.
    occupied: Box<[u64; WORDS]>,
    /// Each link's event and the next link in the same bucket.
    links: Vec<(Due, u32)>,
    /// Links in buckets.
    in_buckets: usize,
    /// When the first of `timers` is due, ps; `u64::MAX` if there is none.
    next_timer: u64,
    /// Bucket of the first of `far`; `u64::MAX` if there is none.
    next_far: u64,
    /// Events beyond the year.
    far: BinaryHeap<Reverse<Due>>,
    timers: QuaternaryHeap<Reverse<(u64, Timer)>>,
}

impl Calendar {
    /// For `links` links, with buckets about `spacing_ps` wide: a little more than the mean time between events, and wide enough
    /// that `horizon_ps`, the longest usual time until a scheduled event, lies within the year.
    pub fn new(links: usize, spacing_ps: u64, horizon_ps: u64, seed: u64) -> Calendar {
        let width = spacing_ps.max(horizon_ps / (BUCKETS as u64 - 1)).max(1);
        Calendar {
            shift: width.next_power_of_two().trailing_zeros(),
            today: 0,
            current: Vec::with_capacity(64),
            heads: Box::new([NIL; BUCKETS]),
            occupied: Box::new([0; WORDS]),
            links: (0..links as u32)
                .map(|link| {
                    let rank = Stream::new(seed, "ties", u64::from(link)).below(1 << 32) as u32;
                    (Due { time: 0, rank, link }, NIL)
                })
                .collect(),
            in_buckets: 0,
            next_timer: u64::MAX,
            next_far: u64::MAX,
            far: BinaryHeap::new(),
            timers: QuaternaryHeap::new(),
        }
    }

    /// The head of `link`'s ring arrives at `time`. The link must have no other entry.
    #[inline]
    pub fn schedule_link(&mut self, time: u64, link: u32) {
        // Field by field: a load of all that follows stores of parts waits for them.
        let known = &mut self.links[link as usize].0;
        let rank = known.next_rank();
        (known.time, known.rank) = (time, rank);
        // Today and before wraps to more than a year.
        let ahead = (time >> self.shift).wrapping_sub(self.today + 1);
        if ahead < BUCKETS as u64 - 1 {
            self.put(time >> self.shift, link);
        } else {
            self.schedule_elsewhere(Due { time, rank, link });
        }
    }

    /// An event that belongs into no bucket.
    #[inline(never)]
    fn schedule_elsewhere(&mut self, due: Due) {
        let bucket = due.time >> self.shift;
        if bucket <= self.today {
            let at = self.current.iter().rposition(|&e| e > due).map_or(0, |i| i + 1);
            self.current.insert(at, due);
        } else {
            self.next_far = self.next_far.min(bucket);
            self.far.push(Reverse(due));
        }
    }

    /// `timer` may be due at `time`. Earlier entries stay; who pops one checks whether it still means something.
    #[inline]
    pub fn schedule_timer(&mut self, time: u64, timer: Timer) {
        self.next_timer = self.next_timer.min(time);
        self.timers.push(Reverse((time, timer)));
    }

    #[inline]
    fn put(&mut self, bucket: u64, link: u32) {
        let slot = (bucket as usize) & (BUCKETS - 1);
        self.links[link as usize].1 = self.heads[slot];
        self.heads[slot] = link;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.in_buckets += 1;
    }

    /// The next event, if it is not after `end`.
    #[inline(always)]
    pub fn pop(&mut self, end: u64) -> Option<(u64, Event)> {
        // Links come before the timers of an instant.
        match self.pop_link(end.min(self.next_timer)) {
            Some((time, link)) => Some((time, Event::Link(link))),
            None => self.pop_timer(end),
        }
    }

    #[inline(always)]
    fn pop_link(&mut self, limit: u64) -> Option<(u64, u32)> {
        if self.current.is_empty() {
            if self.in_buckets > 0 {
                let day = self.next_occupied();
                let slot = (day as usize) & (BUCKETS - 1);
                let (due, next) = &self.links[self.heads[slot] as usize];
                if *next == NIL && self.next_far > day {
                    let (time, link) = (due.time, due.link);
                    // The only event of its bucket needs no sorting.
                    if time > limit {
                        return None;
                    }
                    self.today = day;
                    self.heads[slot] = NIL;
                    self.occupied[slot / 64] &= !(1 << (slot % 64));
                    self.in_buckets -= 1;
                    return Some((time, link));
                }
            }
            self.turn_page();
        }
        let due = self.current.last()?;
        let (time, link) = (due.time, due.link);
        if time > limit {
            return None;
        }
        self.current.pop();
        Some((time, link))
    }

    #[cold]
    fn pop_timer(&mut self, end: u64) -> Option<(u64, Event)> {
        if self.next_timer > end {
            return None;
        }
        let Reverse((time, timer)) = self.timers.pop()?;
        self.next_timer = self.timers.peek().map_or(u64::MAX, |first| first.0.0);
        Some((time, Event::Timer(timer)))
    }

    /// Where an event stands that was popped just now.
    pub fn place(&self, time: u64, event: Event) -> Place {
        match event {
            Event::Link(link) => Place::of_link(self.links[link as usize].0),
            Event::Timer(timer) => Place::of_timer(time, timer),
        }
    }

    /// Where the next event stands.
    pub fn peek(&mut self) -> Option<Place> {
        if self.current.is_empty() {
            self.turn_page();
        }
        let link = self.current.last().map(|&due| Place::of_link(due));
        let timer = self.timers.peek().map(|r| Place::of_timer(r.0.0, r.0.1));
        [link, timer].into_iter().flatten().min()
    }

    /// When the next event is, ps; `u64::MAX` if there is none.
    pub fn next_time(&mut self) -> u64 {
        self.peek().map_or(u64::MAX, |place| place.time)
    }

    /// The link whose event comes `ahead` link events after the next one, if that is today.
    #[inline]
    pub fn upcoming(&self, ahead: usize) -> Option<u32> {
        self.current.len().checked_sub(1 + ahead).map(|i| self.current[i].link)
    }

    /// Starts to load what scheduling `link` needs.
    #[inline]
    pub fn prefetch(&self, link: u32) {
        prefetch(&self.links[link as usize], 1);
    }

    /// Makes the next non-empty bucket today's. Events scheduled later for an earlier time still come first: they are inserted into
    /// `current`.
    #[inline(never)]
    fn turn_page(&mut self) {
        let near = if self.in_buckets > 0 { self.next_occupied() } else { u64::MAX };
        let day = near.min(self.next_far);
        if day == u64::MAX {
            return;
        }
        self.today = day;
        if self.next_far - day < BUCKETS as u64 {
            self.bring_near();
        }
        let slot = (day as usize) & (BUCKETS - 1);
        let mut link = std::mem::replace(&mut self.heads[slot], NIL);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        while link != NIL {
            let (due, next) = self.links[link as usize];
            self.current.push(due);
            link = next;
            self.in_buckets -= 1;
        }
        if let [first, second] = &mut self.current[..] {
            if *first < *second {
                std::mem::swap(first, second);
            }
        } else {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Puts what is less than a year ahead now into buckets.
    #[cold]
    fn bring_near(&mut self) {
        while let Some(&Reverse(Due { time, link, .. })) = self.far.peek() {
            let bucket = time >> self.shift;
            if bucket - self.today >= BUCKETS as u64 {
                break;
            }
            self.far.pop();
            self.put(bucket, link);
        }
        self.next_far = self.far.peek().map_or(u64::MAX, |first| first.0.time >> self.shift);
    }

    /// Absolute number of the first non-empty bucket after today. There must be one.
    #[inline]
    fn next_occupied(&self) -> u64 {
        let start = ((self.today + 1) as usize) & (BUCKETS - 1);
        let mut word = start / 64;
        let mut bits = self.occupied[word] & (u64::MAX << (start % 64));
        for _ in 0..=WORDS {
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                let ahead = slot.wrapping_sub(start) & (BUCKETS - 1);
                return self.today + 1 + ahead as u64;
            }
            word = (word + 1) % WORDS;
            bits = self.occupied[word];
        }
        unreachable!("in_buckets says that a bucket is occupied")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_the_order_of_time_then_kind(
            times in proptest::collection::vec(0u64..5_000_000_000, 1..200),
            timers in proptest::collection::vec(0u64..5_000_000_000, 0..50),
        ) {
            let mut calendar = Calendar::new(times.len(), 1000, 100_000, 1);
            for (link, &t) in times.iter().enumerate() {
                calendar.schedule_link(t, link as u32);
            }
            for (n, &t) in timers.iter().enumerate() {
                calendar.schedule_timer(t, Timer::Source(n as u32));
            }
            let mut expected: Vec<(u64, bool, u32)> = times.iter().enumerate().map(|(l, &t)| (t, false, l as u32)).collect();
            expected.extend(timers.iter().enumerate().map(|(n, &t)| (t, true, n as u32)));
            expected.sort_unstable();
            let mut got = Vec::new();
            while let Some((time, event)) = calendar.pop(u64::MAX) {
                got.push(match event {
                    Event::Link(l) => (time, false, l),
                    Event::Timer(Timer::Source(t)) => (time, true, t),
                    Event::Timer(other) => panic!("{other:?} was not scheduled"),
                });
            }
            // In order of time, links first; among links of one instant any order.
            prop_assert!(got.windows(2).all(|w| (w[0].0, w[0].1) <= (w[1].0, w[1].1)), "{got:?}");
            got.sort_unstable();
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn links_rescheduled_from_now_never_go_back_in_time(delays in proptest::collection::vec(1u64..200_000_000, 500)) {
            let links = 7;
            let mut calendar = Calendar::new(links, 1000, 100_000, 1);
            for (l, &delay) in delays.iter().take(links).enumerate() {
                calendar.schedule_link(delay, l as u32);
            }
            let mut now = 0;
            for &d in &delays {
                let (time, event) = calendar.pop(u64::MAX).unwrap();
                prop_assert!(time >= now);
                now = time;
                let Event::Link(l) = event else { panic!("no timers here") };
                calendar.schedule_link(now + d, l);
            }
        }
    }

    /// Which of two links comes first at the same instant: about half of the time either, whatever their numbers.
    #[test]
    fn no_link_is_favoured_at_the_same_instant() {
        for seed in 0..5 {
            let mut calendar = Calendar::new(3, 1000, 100_000, seed);
            let mut first = [0; 3];
            for round in 1..=3000 {
                for link in 0..3 {
                    calendar.schedule_link(round * 5000, link);
                }
                for place in 0..3 {
                    let Some((_, Event::Link(link))) = calendar.pop(u64::MAX) else { panic!("three links are due") };
                    first[link as usize] += u32::from(place == 0);
                }
            }
            assert!(first.iter().all(|&n| (850..1150).contains(&n)), "seed {seed}: {first:?}");
        }
    }
}
