//! BBR's filters: the greatest rate of the last rounds, and how much more than expected was acknowledged.

use super::fixed::{Bw, US_PER_S, delivered_in};

/// Greatest sample of the last rounds, of three kept: the best, the best since, and the best since that. A later one moves up when an
/// earlier one leaves the window, and is renewed when a quarter and a half of the window have passed without it (Kathleen Nichols'
/// filter, lib/win_minmax.c). A sample outlives its window until another one is taken: silence is no evidence.
#[derive(Debug)]
pub(super) struct MaxRate {
    window: u64,
    round: u64,
    /// Round and rate, the best first.
    best: [(u64, Bw); 3],
}

impl MaxRate {
    pub fn new(window: u64) -> MaxRate {
        MaxRate { window, round: 0, best: [(0, 0); 3] }
    }

    pub fn next_round(&mut self) {
        self.round += 1;
    }

    pub fn add(&mut self, rate: Bw) {
        let (round, window) = (self.round, self.window);
        let sample = (round, rate);
        let [first, second, third] = &mut self.best;
        // `minmax_running_max`: a new greatest, or nothing left within the window: earlier samples are forgotten.
        if rate >= first.1 || round - third.0 > window {
            self.best = [sample; 3];
            return;
        }
        // A new second takes the third's place, too.
        if rate >= second.1 {
            (*second, *third) = (sample, sample);
        } else if rate >= third.1 {
            *third = sample;
        }
        // `minmax_subwin_update`: the greatest is older than the window: the others move up, this sample becomes the third,
        // and once more where the second is too old as well.
        let age = round - first.0;
        if age > window {
            (*first, *second, *third) = (*second, *third, sample);
            if round - first.0 > window {
                (*first, *second, *third) = (*second, *third, sample);
            }
        // A quarter of the window without another second, or half without another third: this sample is it.
        } else if second.0 == first.0 && age > window / 4 {
            (*second, *third) = (sample, sample);
        } else if third.0 == second.0 && age > window / 2 {
            *third = sample;
        }
    }

    /// 0 before the first sample.
    pub fn get(&self) -> Bw {
        self.best[0].1
    }
}

/// Rounds until the older of two maxima is forgotten, so that one lives 5 to 10 rounds.
const ROUNDS: u32 = 5;
/// A count of this many packets starts anew.
const LONGEST_EPOCH: u64 = 1 << 20;
/// At most what the bottleneck delivers in this time.
const MOST_US: u64 = US_PER_S / 10;

/// Packets acknowledged beyond rate x time (`bbr_update_ack_aggregation`).
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    epoch_us: u64,
    epoch_acked: u64,
    /// Maxima of the present and the previous window of rounds.
    extra: [u64; 2],
    present: usize,
    rounds: u32,
}

impl Aggregation {
    pub fn update(&mut self, now_us: u64, acked: u64, bw: Bw, cwnd: u64, round_start: bool) {
        // Two windows of five rounds: the older one is forgotten when a new one begins.
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.present ^= 1;
                self.extra[self.present] = 0;
            }
        }
        // What was expected since the epoch began is bw x time; not more acknowledged than that: it begins anew.
        let mut expected = delivered_in(bw, now_us - self.epoch_us);
        if self.epoch_acked <= expected || self.epoch_acked + acked >= LONGEST_EPOCH {
            self.restart(now_us);
            expected = 0;
        }
        self.epoch_acked += acked;
        // extra_acked, at most cwnd.
        let extra = (self.epoch_acked - expected).min(cwnd);
        self.extra[self.present] = self.extra[self.present].max(extra);
    }

    /// The sender was idle: counting begins anew.
    pub fn restart(&mut self, now_us: u64) {
        (self.epoch_us, self.epoch_acked) = (now_us, 0);
    }

    /// Packets to allow beyond the product.
    pub fn extra(&self, bw: Bw) -> u64 {
        // At most what 100 ms deliver (bbr_extra_acked_max_us).
        self.extra[0].max(self.extra[1]).min(delivered_in(bw, MOST_US))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::bbr::fixed::rate_of;

    #[test]
    fn a_rate_counts_for_ten_more_rounds() {
        let mut max = MaxRate::new(10);
        max.add(100);
        for _ in 0..10 {
            max.next_round();
            max.add(50);
            assert_eq!(max.get(), 100);
        }
        max.next_round();
        max.add(40);
        assert_eq!(max.get(), 50);
    }

    #[test]
    fn acks_in_bunches_of_ten_are_ten_beyond_the_rate() {
        let per_second = |packets| rate_of(packets, US_PER_S) + 1;
        let mut a = Aggregation::default();
        for i in 1..20 {
            a.update(10_000 * i, 10, per_second(1000), 50, true);
        }
        assert_eq!(a.extra(per_second(1000)), 10);
        assert_eq!(a.extra(per_second(50)), 5);
        // Even ACKs: what is beyond the rate is the one packet just acknowledged. Ten rounds forget the bunches.
        for i in 0..20 {
            a.update(200_000 + 1000 * i, 1, per_second(1000), 50, true);
        }
        assert_eq!(a.extra(per_second(1000)), 1);
    }
}
