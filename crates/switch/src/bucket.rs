//! A token bucket in place of a line, as `tc-tbf` shapes the links between containers and namespaces (Linux, `sch_tbf.c`).
//!
//! A packet leaves as soon as the bucket has a token for each of its bytes, and at once where it has. For one that finds too few a timer is set. It
//! wakes up late, by what the host is busy with, but the tokens of that time are kept: the rate is the link's, its rhythm is not.

use crate::random::Stream;

/// Tokens, counted in the time that the link's rate takes for them, picoseconds.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    /// The most that it holds.
    depth: u64,
    /// Mean of what the timer is late by, exponentially distributed: a memoryless wait for the processor.
    latency: u64,
    /// It held nothing then.
    empty_at: u64,
    stream: Stream,
}

impl TokenBucket {
    /// A bucket that holds what the link sends in `depth` picoseconds and is empty at the start, with a timer that is `latency` late on average.
    pub fn new(depth: u64, latency: u64, stream: Stream) -> TokenBucket {
        TokenBucket { depth, latency, empty_at: 0, stream }
    }

    /// When a packet of `time` leaves that the link could begin at `start`; never before an earlier one.
    ///
    /// ```
    /// use fanin_switch::{TokenBucket, random::Stream};
    /// let mut two = TokenBucket::new(25, 0, Stream::new(1, "bucket", 0));
    /// // After a pause two packets of 10 leave at once, and the third when its missing five tokens have come.
    /// assert_eq!([two.departure(1000, 10), two.departure(1000, 10), two.departure(1000, 10)], [1000, 1000, 1005]);
    /// ```
    pub fn departure(&mut self, start: u64, time: u64) -> u64 {
        // tbf_dequeue: toks = min(now - t_c, buffer) + tokens - l2t(len) is negative until then.
        let enough = self.empty_at + time;
        let leaves = if enough <= start { start } else { enough + self.late() };
        // What the bucket could not hold is gone.
        self.empty_at = self.empty_at.max(leaves.saturating_sub(self.depth)) + time;
        leaves
    }

    fn late(&mut self) -> u64 {
        // The inverse of the exponential distribution; 1 - u is never 0.
        (-libm::log(1.0 - self.stream.uniform()) * self.latency as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn bucket(depth: u64, latency: u64) -> TokenBucket {
        TokenBucket::new(depth, latency, Stream::new(1, "bucket", 0))
    }

    /// Departures of `count` packets that all wait.
    fn queued(bucket: &mut TokenBucket, count: usize, time: u64) -> Vec<u64> {
        let mut free = 1_000_000;
        let mut leave = || {
            free = bucket.departure(free, time);
            free
        };
        (0..count).map(|_| leave()).collect()
    }

    #[test]
    fn a_late_timer_does_not_lower_the_rate() {
        let (on_time, late) =
            (queued(&mut bucket(30_000, 0), 10_000, 10_000), queued(&mut bucket(30_000, 1_000), 10_000, 10_000));
        let whole = |leaves: &[u64]| (leaves[9_999] - leaves[0]) as f64;
        assert!((whole(&late) / whole(&on_time) - 1.0).abs() < 1e-3, "{} {}", whole(&late), whole(&on_time));
    }

    #[test]
    fn waiting_packets_leave_in_order_each_late_by_the_latency_on_average() {
        let mut late = bucket(30_000, 1_000);
        let leaves = queued(&mut late, 10_000, 10_000);
        assert!(leaves.is_sorted());
        // The fourth packet is the first that waits, 10,000 after the bucket's 30,000 were used up.
        let due = |i: usize| 1_000_000 + 10_000 * (i as u64 + 1) - 30_000;
        let sum: u64 = leaves.iter().enumerate().skip(3).map(|(i, &at)| at - due(i)).sum();
        let mean = sum as f64 / (leaves.len() - 3) as f64;
        assert!((950.0..1_050.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_pause_fills_no_more_than_the_bucket() {
        let mut two = bucket(20_000, 0);
        let first = queued(&mut two, 50, 10_000);
        let after = first[49] + 1_000_000;
        let leaves: Vec<u64> = (0..4).map(|_| two.departure(after, 10_000)).collect();
        assert_eq!(leaves, [after, after, after + 10_000, after + 20_000]);
    }

    #[test]
    fn a_packet_longer_than_the_bucket_leaves_once_its_bytes_have_come() {
        let mut short = bucket(5_000, 0);
        assert_eq!(short.departure(1_000_000, 10_000), 1_000_000, "the bucket fills from its last emptiness");
        assert_eq!(short.departure(1_000_000, 10_000), 1_015_000);
    }
}
