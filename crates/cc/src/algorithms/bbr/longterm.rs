//! BBR's detector of token-bucket policers ("long-term" bandwidth): intervals that begin and end with a loss and lose a fifth of what they
//! deliver; two in a row of nearly the same rate are taken for a policer's, and that rate is used for 48 rounds (`bbr_lt_bw_sampling`).

use super::fixed::{Bw, UNIT, bytes_per_second, rate_of};

/// Rounds of an interval: at least, and at most.
const ROUNDS: core::ops::RangeInclusive<u32> = 4..=16;
/// Lost per 256 delivered packets.
const LOSSY: u64 = 50;
/// Two rates are the same within this share of the former, or within this many bytes per second.
const SAME_SHARE: u64 = 8;
const SAME_BYTES: u64 = 4000 / 8;
/// Rounds for which the rate is used.
const USED_ROUNDS: u32 = 48;
/// An interval's time is counted in whole milliseconds.
const US_PER_MS: u64 = 1000;

/// What an ACK or a timeout tells it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// When something was last delivered: a timeout comes long after it.
    pub delivered_us: u64,
    /// Packets newly lost, and in all.
    pub losses: u32,
    pub lost: u64,
    /// Packets delivered in all.
    pub delivered: u64,
    pub app_limited: bool,
    pub round_start: bool,
    pub probes_bandwidth: bool,
    pub mss: u64,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Finding {
    None,
    /// A policer's rate is used from now on.
    Policed,
    /// The rate has been used long enough: probing for bandwidth begins anew.
    Expired,
}

/// The detector.
#[derive(Debug, Default)]
pub(super) struct LongTerm {
    sampling: bool,
    rounds: u32,
    /// Of the last interval; 0 if there was none.
    rate: Bw,
    used: bool,
    start_ms: u64,
    start_delivered: u64,
    start_lost: u64,
}

impl LongTerm {
    /// The rate to use instead of the measured maximum.
    pub fn rate(&self) -> Option<Bw> {
        self.used.then_some(self.rate)
    }

    /// Forgets everything.
    pub fn reset(&mut self, event: &Event) {
        *self = LongTerm::default();
        self.begin(event);
    }

    fn begin(&mut self, event: &Event) {
        self.start_ms = event.delivered_us / US_PER_MS;
        self.start_delivered = event.delivered;
        self.start_lost = event.lost;
        self.rounds = 0;
    }

    pub fn update(&mut self, event: &Event) -> Finding {
        // `bbr_lt_bw_sampling`, first part: a policer's rate is used for bbr_lt_bw_max_rtts = 48 rounds of PROBE_BW.
        if self.used {
            if event.probes_bandwidth && event.round_start {
                self.rounds += 1;
                if self.rounds >= USED_ROUNDS {
                    self.reset(event);
                    return Finding::Expired;
                }
            }
            return Finding::None;
        }
        // Wait for a first loss: the policer's tokens are used up then.
        if !self.sampling {
            if event.losses == 0 {
                return Finding::None;
            }
            self.begin(event);
            self.sampling = true;
        }
        // What the application left unused would underestimate the rate.
        if event.app_limited {
            self.reset(event);
            return Finding::None;
        }
        self.rounds += u32::from(event.round_start);
        if self.rounds < *ROUNDS.start() {
            return Finding::None;
        }
        // 4 bbr_lt_intvl_min_rtts: "interval is too long".
        if self.rounds > *ROUNDS.end() {
            self.reset(event);
            return Finding::None;
        }
        // An interval of 4 to 16 rounds ends with a loss if lost/delivered >= 50/256 (bbr_lt_loss_thresh).
        let (lost, delivered) = (event.lost - self.start_lost, event.delivered - self.start_delivered);
        let ms = (event.delivered_us / US_PER_MS).saturating_sub(self.start_ms);
        if event.losses == 0 || delivered == 0 || lost * UNIT < LOSSY * delivered || ms == 0 {
            return Finding::None;
        }
        self.end_interval(rate_of(delivered, ms * US_PER_MS), event)
    }

    fn end_interval(&mut self, rate: Bw, event: &Event) -> Finding {
        // `bbr_lt_bw_interval_done`: two intervals alike, within an eighth or 4 Kbit/s, are a policer; their mean is its rate.
        // bbr_lt_bw_ratio = BBR_UNIT / 8, bbr_lt_bw_diff = 4000 / 8 bytes per second.
        let differs = rate.abs_diff(self.rate);
        if self.rate > 0
            && (differs * SAME_SHARE <= self.rate || bytes_per_second(differs, event.mss, UNIT) <= SAME_BYTES)
        {
            self.rate = (self.rate + rate) / 2;
            self.used = true;
            self.rounds = 0;
            return Finding::Policed;
        }
        self.rate = rate;
        self.begin(event);
        Finding::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::bbr::fixed::packets_per_second;

    /// Round `n` of a path that delivers 100 packets and loses `lost` in each round of 10 ms.
    fn round(n: u64, lost: u64) -> Event {
        Event {
            delivered_us: 10_000 * n,
            losses: lost as u32,
            lost: lost * n,
            delivered: 100 * n,
            app_limited: false,
            round_start: true,
            probes_bandwidth: true,
            mss: 1448,
        }
    }

    fn after(rounds: u64, lost: u64) -> LongTerm {
        let mut detector = LongTerm::default();
        for n in 1..=rounds {
            detector.update(&round(n, lost));
        }
        detector
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_are_a_policer() {
        assert_eq!(after(4, 30).rate(), None);
        let found = packets_per_second(after(20, 30).rate().unwrap());
        assert!((found / 10_000.0 - 1.0).abs() < 0.05, "{found}");
    }

    #[test]
    fn a_tenth_lost_is_no_policer() {
        assert_eq!(after(40, 10).rate(), None);
    }

    #[test]
    fn the_rate_is_used_for_48_rounds() {
        let first = (1..100).find(|&n| after(n, 30).rate().is_some()).unwrap();
        assert!(after(first + 47, 30).rate().is_some());
        assert!(after(first + 48, 30).rate().is_none());
    }

    #[test]
    fn what_a_timeout_ends_lasted_until_the_last_delivery() {
        let mut detector = LongTerm::default();
        for n in 1..=3 {
            detector.update(&round(n, 30));
        }
        // Whenever the timer expires: nothing has been delivered since round 3.
        assert_eq!(detector.update(&Event { losses: 1, lost: 120, ..round(3, 30) }), Finding::None);
        assert_eq!(packets_per_second(detector.rate).round(), 10_000.0);
    }
}
