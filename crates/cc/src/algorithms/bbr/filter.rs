//! BBR's filters: the greatest rate of the last rounds, and how much more than expected was acknowledged.

use fanin_units::Time;

/// Greatest sample of the last rounds, of three kept: the best, the best since, and the best since that. A later one moves up when an
/// earlier one leaves the window, and is renewed when a quarter and a half of the window have passed without it (Kathleen Nichols'
/// filter, lib/win_minmax.c). A sample outlives its window until another one is taken: silence is no evidence.
#[derive(Debug)]
pub(super) struct MaxRate {
    window: u64,
    round: u64,
    /// Round and rate, the best first.
    best: [(u64, f64); 3],
}

impl MaxRate {
    pub fn new(window: u64) -> MaxRate {
        MaxRate { window, round: 0, best: [(0, 0.0); 3] }
    }

    pub fn next_round(&mut self) {
        self.round += 1;
    }

    pub fn add(&mut self, rate: f64) {
        let (round, window) = (self.round, self.window);
        let sample = (round, rate);
        let [first, second, third] = &mut self.best;
        if rate >= first.1 || round - third.0 > window {
            self.best = [sample; 3];
            return;
        }
        if rate >= second.1 {
            (*second, *third) = (sample, sample);
        } else if rate >= third.1 {
            *third = sample;
        }
        let age = round - first.0;
        if age > window {
            (*first, *second, *third) = (*second, *third, sample);
            if round - first.0 > window {
                (*first, *second, *third) = (*second, *third, sample);
            }
        } else if second.0 == first.0 && age > window / 4 {
            (*second, *third) = (sample, sample);
        } else if third.0 == second.0 && age > window / 2 {
            *third = sample;
        }
    }

    /// Packets per second; 0 before the first sample.
    pub fn get(&self) -> f64 {
        self.best[0].1
    }
}

/// Rounds until the older of two maxima is forgotten, so that one lives 5 to 10 rounds.
const ROUNDS: u32 = 5;
/// A count of this many packets starts anew.
const LONGEST_EPOCH: f64 = (1 << 20) as f64;
/// At most what the bottleneck delivers in this time, s.
const MOST: f64 = 0.1;

/// Packets acknowledged beyond rate x time (`bbr_update_ack_aggregation`).
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    epoch_at: Option<Time>,
    epoch_acked: f64,
    /// Maxima of the present and the previous window of rounds.
    extra: [f64; 2],
    present: usize,
    rounds: u32,
}

impl Aggregation {
    pub fn update(&mut self, now: Time, acked: f64, bw: f64, cwnd: f64, round_start: bool) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.present ^= 1;
                self.extra[self.present] = 0.0;
            }
        }
        let start = self.epoch_at.unwrap_or(now);
        let mut expected = bw * now.since(start).as_secs();
        if self.epoch_at.is_none() || self.epoch_acked <= expected || self.epoch_acked + acked >= LONGEST_EPOCH {
            self.epoch_at = Some(now);
            self.epoch_acked = 0.0;
            expected = 0.0;
        }
        self.epoch_acked += acked;
        let extra = (self.epoch_acked - expected).min(cwnd);
        self.extra[self.present] = self.extra[self.present].max(extra);
    }

    /// The sender was idle: counting begins anew.
    pub fn restart(&mut self, now: Time) {
        self.epoch_at = Some(now);
        self.epoch_acked = 0.0;
    }

    /// Packets to allow beyond the product.
    pub fn extra(&self, bw: f64) -> f64 {
        self.extra[0].max(self.extra[1]).min(bw * MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Duration;

    #[test]
    fn a_rate_counts_for_ten_more_rounds() {
        let mut max = MaxRate::new(10);
        max.add(100.0);
        for _ in 0..10 {
            max.next_round();
            max.add(50.0);
            assert_eq!(max.get(), 100.0);
        }
        max.next_round();
        max.add(40.0);
        assert_eq!(max.get(), 50.0);
    }

    #[test]
    fn acks_in_bunches_of_ten_are_ten_beyond_the_rate() {
        let mut a = Aggregation::default();
        for i in 0..20 {
            a.update(Time::ZERO + Duration::ms(10 * i), 10.0, 1000.0, 50.0, true);
        }
        assert_eq!(a.extra(1000.0), 10.0);
        assert_eq!(a.extra(50.0), 5.0);
        // Even ACKs: what is beyond the rate is the one packet just acknowledged. Ten rounds forget the bunches.
        for i in 0..20 {
            a.update(Time::ZERO + Duration::ms(200 + i), 1.0, 1000.0, 50.0, true);
        }
        assert_eq!(a.extra(1000.0), 1.0);
    }
}
