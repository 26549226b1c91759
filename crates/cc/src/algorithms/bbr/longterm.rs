//! BBR's detector of token-bucket policers ("long-term" bandwidth): intervals that begin and end with a loss and lose a fifth of what they
//! deliver; two in a row of nearly the same rate are taken for a policer's, and that rate is used for 48 rounds (`bbr_lt_bw_sampling`).

use fanin_units::Time;

/// Rounds of an interval: at least, and at most.
const ROUNDS: core::ops::RangeInclusive<u32> = 4..=16;
/// Lost per delivered packet.
const LOSSY: f64 = 50.0 / 256.0;
/// Two rates are the same within this share of the former, or within this many bytes per second.
const SAME_SHARE: f64 = 1.0 / 8.0;
const SAME_BYTES: f64 = 4000.0 / 8.0;
/// Rounds for which the rate is used.
const USED_ROUNDS: u32 = 48;
/// The kernel counts the interval's time in whole milliseconds.
const TICK_PS: u64 = 1_000_000_000;

/// What an ACK or a timeout tells it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub now: Time,
    /// Packets newly lost, and in all.
    pub losses: u32,
    pub lost: u64,
    /// Packets delivered in all.
    pub delivered: u64,
    pub app_limited: bool,
    pub round_start: bool,
    pub probes_bandwidth: bool,
    pub mss: f64,
}

/// The detector. Rates are packets per second.
#[derive(Debug, Default)]
pub(super) struct LongTerm {
    sampling: bool,
    rounds: u32,
    /// Of the last interval; 0 if there was none.
    rate: f64,
    used: bool,
    start_ms: u64,
    start_delivered: u64,
    start_lost: u64,
}

impl LongTerm {
    /// The rate to use instead of the measured maximum.
    pub fn rate(&self) -> Option<f64> {
        self.used.then_some(self.rate)
    }

    /// Forgets everything.
    pub fn reset(&mut self, event: &Event) {
        *self = LongTerm::default();
        self.begin(event);
    }

    fn begin(&mut self, event: &Event) {
        self.start_ms = event.now.ps() / TICK_PS;
        self.start_delivered = event.delivered;
        self.start_lost = event.lost;
        self.rounds = 0;
    }

    /// True when the rate has been used long enough: probing for bandwidth begins anew.
    pub fn update(&mut self, event: &Event) -> bool {
        if self.used {
            if event.probes_bandwidth && event.round_start {
                self.rounds += 1;
                if self.rounds >= USED_ROUNDS {
                    self.reset(event);
                    return true;
                }
            }
            return false;
        }
        if !self.sampling {
            if event.losses == 0 {
                return false;
            }
            self.begin(event);
            self.sampling = true;
        }
        if event.app_limited {
            self.reset(event);
            return false;
        }
        self.rounds += u32::from(event.round_start);
        if self.rounds < *ROUNDS.start() {
            return false;
        }
        if self.rounds > *ROUNDS.end() {
            self.reset(event);
            return false;
        }
        let (lost, delivered) = (event.lost - self.start_lost, event.delivered - self.start_delivered);
        let ms = (event.now.ps() / TICK_PS).saturating_sub(self.start_ms);
        if event.losses == 0 || delivered == 0 || (lost as f64) < LOSSY * delivered as f64 || ms == 0 {
            return false;
        }
        self.end_interval(delivered as f64 / (ms as f64 * 1e-3), event);
        false
    }

    fn end_interval(&mut self, rate: f64, event: &Event) {
        let differs = (rate - self.rate).abs();
        if self.rate > 0.0 && (differs <= SAME_SHARE * self.rate || differs * event.mss <= SAME_BYTES) {
            self.rate = (self.rate + rate) / 2.0;
            self.used = true;
            self.rounds = 0;
            return;
        }
        self.rate = rate;
        self.begin(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Duration;

    /// A path that delivers 100 packets and loses `lost` in each round of 10 ms.
    fn after(rounds: u64, lost: u64) -> LongTerm {
        let mut detector = LongTerm::default();
        for n in 1..=rounds {
            detector.update(&Event {
                now: Time::ZERO + Duration::ms(10 * n),
                losses: lost as u32,
                lost: lost * n,
                delivered: 100 * n,
                app_limited: false,
                round_start: true,
                probes_bandwidth: true,
                mss: 1448.0,
            });
        }
        detector
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_are_a_policer() {
        assert_eq!(after(4, 30).rate(), None);
        let found = after(20, 30).rate().unwrap();
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
}
