//! What a link delivered at least, as a tap before its queue sees it.
//!
//! A receiver that stalled acknowledges at once what came during the stall, and what fills a hole acknowledges what came long before it. So
//! what was acknowledged in an interval may have passed the link before. What was both sent and acknowledged in it passed in it: its sum over the
//! interval's length is no more than the rate of the link. Where the interval begins with nothing in flight and the link stays busy, it is no less.
//! A shaper lets a packet through whole as soon as it has any credit, and waits afterwards (Linux `htb_dequeue_tree`; `qdisc_pkt_len` is that of all
//! segments): in any interval one packet that an offload merged, up to 64 KB, may pass beyond the rate, and counts as one segment.

use std::collections::VecDeque;

/// Length of the shortest interval, and of the steps at whose ends others begin.
pub(crate) const INTERVAL: u64 = 10_000_000;
/// How many intervals speak together, of a hundred or more: in one alone, packets may have been counted that a stalled host had kept. Of a
/// short capture fewer do.
const INTERVALS: usize = 5;
/// Of how many intervals each one more speaks.
const IN: u64 = 20;
/// Beginnings of intervals that are remembered: of the last third of a second.
const BEGINNINGS: usize = 32;
/// After so long without news, nanoseconds, what is in flight was given up with its connection.
const GIVEN_UP: u64 = 1_000_000_000;

/// The highest of the values of intervals, but for a few.
#[derive(Default)]
pub(crate) struct Highest {
    intervals: u64,
    /// The least first.
    most: [u64; INTERVALS],
}

impl Highest {
    /// An interval had this value.
    pub fn interval(&mut self, value: u64) {
        self.intervals += u64::from(value > 0);
        if value > self.most[0] {
            self.most[0] = value;
            self.most.sort_unstable();
        }
    }

    /// What each of the highest intervals reached.
    pub fn reached(&self) -> u64 {
        let speak = (1 + self.intervals / IN).min(INTERVALS as u64) as usize;
        self.most[INTERVALS - speak]
    }
}

/// A moment, and how many bytes had been sent by then, on the wire.
#[derive(Clone, Copy, Default)]
struct Beginning {
    at: u64,
    sent: u64,
}

/// What was sent to a receiver and acknowledged.
#[derive(Default)]
pub(crate) struct Delivered {
    /// Payload that is not acknowledged yet.
    in_flight: u64,
    /// Bytes on the wire that are.
    acked: u64,
    acked_at: u64,
    last: u64,
    /// When something was sent while nothing was in flight.
    idle: Beginning,
    beginnings: VecDeque<Beginning>,
    /// What the largest packet has on the wire beyond one segment.
    beyond: u64,
    /// The most in an interval that ended in this step, bit/s.
    best: u64,
    highest: Highest,
}

impl Delivered {
    /// A packet of so many bytes that an offload merged is on its way.
    #[inline]
    pub fn merged(&mut self, payload: u64, segment: u64, overhead: u64) {
        let more = payload.saturating_sub(segment);
        self.beyond = self.beyond.max(more + more.div_ceil(segment.max(1)) * overhead);
    }

    /// So many bytes more were in flight than before, or fewer, in packets that carry `segment` bytes and `overhead`.
    #[inline]
    pub fn moved(&mut self, bytes: i64, segment: u64, overhead: u64, at: u64) {
        let segment = segment.max(1);
        let wire = |payload: u64| payload + payload.div_ceil(segment) * overhead;
        if at / INTERVAL > self.last / INTERVAL {
            self.step();
            if at - self.last > GIVEN_UP {
                self.in_flight = 0;
            }
            if self.beginnings.len() == BEGINNINGS {
                self.beginnings.pop_front();
            }
            self.beginnings.push_back(Beginning { at, sent: self.acked + wire(self.in_flight) });
        }
        self.last = self.last.max(at);
        if bytes > 0 {
            if self.in_flight == 0 {
                self.idle = Beginning { at, sent: self.acked };
            }
            self.in_flight += bytes.unsigned_abs();
            return;
        }
        let acked = bytes.unsigned_abs().min(self.in_flight);
        self.in_flight -= acked;
        self.acked += wire(acked);
        self.acked_at = at;
        self.best = self.best.max(self.since(self.idle));
    }

    /// What was sent and acknowledged since then, bit/s.
    #[inline]
    fn since(&self, from: Beginning) -> u64 {
        let ns = self.acked_at.saturating_sub(from.at).max(INTERVAL);
        (u128::from(self.acked.saturating_sub(from.sent + self.beyond)) * 8_000_000_000 / u128::from(ns)) as u64
    }

    /// Ten milliseconds ended.
    fn step(&mut self) {
        let best = self.beginnings.iter().map(|&from| self.since(from)).max().unwrap_or(0);
        self.highest.interval(std::mem::take(&mut self.best).max(best));
    }

    /// The most that was delivered in each of the best intervals of ten milliseconds or more, bit/s.
    pub fn rate(mut self) -> u64 {
        self.step();
        self.highest.reached()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1_448;
    const OVERHEAD: u64 = 90;
    /// A packet at 100 Mb/s, nanoseconds.
    const TAKES: u64 = (SEGMENT + OVERHEAD) * 80;

    /// Rounds of so many packets that are sent at once, a link that takes 100 Mb/s, and what of the acknowledgements comes when.
    fn told(rounds: u64, packets: u64, acknowledged: impl Fn(u64) -> u64) -> f64 {
        let mut events = Vec::new();
        for round in 0..rounds {
            let begin = 1_000_000 + round * (packets * TAKES + 60_000_000);
            for n in 0..packets {
                events.push((begin + n, SEGMENT as i64));
                events.push((acknowledged(begin + (n + 1) * TAKES), -(SEGMENT as i64)));
            }
        }
        events.sort_by_key(|&(at, bytes)| (at, -bytes));
        let mut seen = Delivered::default();
        for (at, bytes) in events {
            seen.moved(bytes, SEGMENT, OVERHEAD, at);
        }
        seen.rate() as f64 / 1e6
    }

    #[test]
    fn a_busy_link_is_as_fast_as_what_is_acknowledged() {
        let found = told(20, 400, |at| at);
        assert!((99.0..=100.1).contains(&found), "{found}");
    }

    /// Every 40 ms the receiver stalls for 15 ms and acknowledges at once what came by then: in ten milliseconds up to 2.5 times what its link takes.
    #[test]
    fn what_a_stalled_receiver_acknowledges_at_once_is_no_rate() {
        let found =
            told(20, 400, |at| if at % 40_000_000 < 15_000_000 { at - at % 40_000_000 + 15_000_000 } else { at });
        assert!((90.0..=100.1).contains(&found), "{found}");
    }

    /// Each packet of 64 KB takes 5.6 ms at 100 Mb/s, leaves whole when the one before has been waited for, and is acknowledged at once.
    #[test]
    fn a_merged_packet_that_leaves_whole_is_no_rate() {
        let packet = 45 * SEGMENT;
        let mut seen = Delivered::default();
        for round in 0..40 {
            let begin = round * 200_000_000;
            for n in 0..20 {
                seen.merged(packet, SEGMENT, OVERHEAD);
                seen.moved(packet as i64, SEGMENT, OVERHEAD, begin + n);
            }
            for n in 0..20 {
                seen.moved(-(packet as i64), SEGMENT, OVERHEAD, begin + 100 + n * 45 * TAKES);
            }
        }
        let found = seen.rate() as f64 / 1e6;
        assert!((95.0..=103.0).contains(&found), "{found}");
    }

    /// The queue never empties: what is in flight at the beginning is no part of an interval.
    #[test]
    fn of_a_link_that_is_always_busy_the_longest_intervals_speak() {
        let mut seen = Delivered::default();
        for n in 0..20_000 {
            seen.moved(SEGMENT as i64, SEGMENT, OVERHEAD, n * TAKES);
            if n >= 100 {
                seen.moved(-(SEGMENT as i64), SEGMENT, OVERHEAD, n * TAKES + 1);
            }
        }
        let found = seen.rate() as f64 / 1e6;
        assert!((95.0..=100.1).contains(&found), "{found}");
    }

    /// A connection ends with 64 KB that are never acknowledged.
    #[test]
    fn what_was_given_up_is_no_longer_in_flight_after_a_second() {
        let after = |pause: u64| {
            let mut seen = Delivered::default();
            seen.moved(65_536, SEGMENT, OVERHEAD, 1);
            for n in 0..81 {
                seen.moved(SEGMENT as i64, SEGMENT, OVERHEAD, pause + n);
                seen.moved(-(SEGMENT as i64), SEGMENT, OVERHEAD, pause + (n + 1) * TAKES);
            }
            seen.rate() as f64 / 1e6
        };
        assert!((99.0..=100.1).contains(&after(1_100_000_000)), "{}", after(1_100_000_000));
        assert!(after(900_000_000) < 50.0, "{}", after(900_000_000));
    }

    #[test]
    fn each_twentieth_interval_more_of_a_hundred_speaks_and_no_more_than_five() {
        let reached = |count: u64| {
            let mut highest = Highest::default();
            (1..=count).for_each(|value| highest.interval(value));
            count - highest.reached()
        };
        assert_eq!([1, 19, 20, 40, 80, 100, 1_000].map(reached), [0, 0, 1, 2, 4, 4, 4]);
    }

    /// One packet that is acknowledged after 100 us: 1538 bytes in ten milliseconds.
    #[test]
    fn the_shortest_interval_has_ten_milliseconds() {
        let mut seen = Delivered::default();
        seen.moved(SEGMENT as i64, SEGMENT, OVERHEAD, 1);
        seen.moved(-(SEGMENT as i64), SEGMENT, OVERHEAD, 100_000);
        assert_eq!(seen.rate(), 1_230_400);
    }

    /// 100 Mb/s behind 400 packets that are always in flight, after two seconds in which hardly anything passed: in the third of a second before, 4.9 of 32
    /// megabits had been sent before that.
    #[test]
    fn a_third_of_a_second_is_remembered() {
        let mut seen = Delivered::default();
        seen.moved(400 * SEGMENT as i64, SEGMENT, OVERHEAD, 1);
        let mut pass = |at: u64| {
            seen.moved(SEGMENT as i64, SEGMENT, OVERHEAD, at);
            seen.moved(-(SEGMENT as i64), SEGMENT, OVERHEAD, at + 1);
        };
        (1..=200).for_each(|n| pass(n * 10_000_000));
        (1..=16_000).for_each(|n| pass(2_000_000_000 + n * TAKES));
        let found = seen.rate() as f64 / 1e6;
        assert!((83.0..86.0).contains(&found), "{found}");
    }
}
