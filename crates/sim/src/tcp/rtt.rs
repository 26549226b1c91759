//! Round-trip estimation and the retransmission timer (RFC 6298).

use super::delivered::Delivered;
use super::handshake::coarse_round_trip;
use super::sender::Sender;
use crate::packet::Packet;
use crate::stack::{CcRtt, RtoRestart, RttTiming, Stack};
use fanin_units::Duration;

/// No timer is shorter, whatever the knobs say.
const LEAST_TIMER: Duration = Duration::us(1);

/// Linux notes when it sent a segment, and when an ACK arrived, in whole microseconds (`tcp_skb_timestamp_us`, `tcp_mstamp`).
const TICK_PS: u64 = 1_000_000;
/// `tcp_rtt_estimator`: one of the eighths of a microsecond in which SRTT is kept, where both were in the same.
const LEAST_ROUND_TRIP_PS: u64 = TICK_PS / 8;

/// A time as Linux's TCP reads it.
pub(super) fn ticked(time: u64) -> u64 {
    time - time % TICK_PS
}

/// What a host takes for the time from one moment to another: Linux the difference of two readings (`tcp_stamp_us_delta`).
pub(super) fn elapsed(from: u64, to: u64, stack: &Stack) -> Duration {
    Duration::from_ps(if stack.linux_rto { (ticked(to) - ticked(from)).max(LEAST_ROUND_TRIP_PS) } else { to - from })
}

/// SRTT, RTTVAR and RTO of one connection.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    srtt: Duration,
    rttvar: Duration,
    min: Duration,
    /// Consecutive timeouts without an acknowledgement of new data: the timer doubles for each.
    pub backoff: u32,
    /// Linux (`tcp_rtt_estimator`): what the timer allows for, the greatest mean deviation of the current window of data, and where that
    /// window ends.
    linux_rttvar: Duration,
    mdev_max: Duration,
    mdev: Duration,
    window_end: u64,
    /// The end of the segment that is timed, where one at a time is, and when it was sent; 0: none.
    timed: u64,
    timed_at: u64,
}

impl RttEstimator {
    /// Before the first sample.
    pub fn new() -> RttEstimator {
        RttEstimator {
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            min: Duration::ZERO,
            backoff: 0,
            mdev_max: Duration::ZERO,
            linux_rttvar: Duration::ZERO,
            mdev: Duration::ZERO,
            window_end: 0,
            timed: 0,
            timed_at: 0,
        }
    }

    /// A new segment up to `end` leaves: it is timed, unless one is.
    #[inline]
    pub fn start_timing(&mut self, end: u64, now: u64) {
        if self.timed == 0 {
            (self.timed, self.timed_at) = (end, now);
        }
    }

    /// A loss is repaired: what was timed may be what was lost (Karn).
    pub fn cancel_timing(&mut self) {
        self.timed = 0;
    }

    /// The round trip of the timed segment, if data up to `una` include it.
    pub fn end_timing(&mut self, una: u64, now: u64) -> Option<Duration> {
        if self.timed == 0 || una < self.timed {
            return None;
        }
        self.timed = 0;
        Some(Duration::from_ps(now - self.timed_at))
    }

    /// Smoothed round trip; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        self.srtt
    }

    /// Smallest sample; zero before the first.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// A round trip that only the least of all is told of (`tcp_update_rtt_min`).
    #[inline]
    pub fn note_shorter(&mut self, rtt: Duration) {
        self.min = if self.min.is_zero() { rtt } else { self.min.min(rtt) };
    }

    /// A sample, when `una` was acknowledged and `nxt` is the next byte to send.
    #[inline(always)]
    pub fn sample(&mut self, rtt: Duration, una: u64, nxt: u64, stack: &Stack) {
        self.note_shorter(rtt);
        let rtt = if stack.quantise_rtt {
            let tick = stack.clock_granularity.ps().max(1);
            Duration::from_ps(rtt.ps().div_ceil(tick).max(1) * tick)
        } else {
            rtt
        };
        if self.srtt.is_zero() {
            // RFC 6298 section 2.2: SRTT = R, RTTVAR = R/2. `tcp_rtt_estimator`: mdev_us = 2 m, rttvar_us = max(mdev_us, tcp_rto_min).
            self.srtt = rtt;
            self.rttvar = rtt / 2;
            self.mdev = rtt / 2;
            self.mdev_max = self.rttvar.max(stack.min_rto / 4);
            self.linux_rttvar = self.mdev_max;
            self.window_end = nxt;
            return;
        }
        let deviation = if rtt > self.srtt { rtt - self.srtt } else { self.srtt - rtt };
        // RFC 6298 section 2.3, RTTVAR before SRTT: beta = 1/4, alpha = 1/8.
        self.rttvar = weighted(self.rttvar, 3, deviation, 1, 4);
        if stack.linux_rto {
            self.mdev = self.linux_mdev(rtt, deviation);
            self.mdev_max = self.mdev_max.max(self.mdev);
            self.linux_rttvar = self.linux_rttvar.max(self.mdev_max);
            // It falls by a quarter of the way to what the window of data had.
            if una > self.window_end {
                self.linux_rttvar = self.linux_rttvar - (self.linux_rttvar - self.mdev_max) / 4;
                self.window_end = nxt;
                self.mdev_max = stack.min_rto / 4;
            }
        }
        self.srtt = weighted(self.srtt, 7, rtt, 1, 8);
    }

    /// Linux gives a falling RTT's deviation an eighth of the usual weight (`tcp_rtt_estimator`).
    fn linux_mdev(&self, rtt: Duration, deviation: Duration) -> Duration {
        if rtt < self.srtt && deviation > self.mdev {
            weighted(self.mdev, 31, deviation, 1, 32)
        } else {
            weighted(self.mdev, 3, deviation, 1, 4)
        }
    }

    /// The timer without backoff.
    pub fn rto(&self, stack: &Stack) -> Duration {
        if stack.linux_rto && !self.srtt.is_zero() {
            // `__tcp_set_rto`: (srtt_us >> 3) + rttvar_us, which is four deviations and at least tcp_rto_min.
            return self.srtt + (self.linux_rttvar * 4).max(stack.min_rto);
        }
        self.raw_rto(stack).max(if self.srtt.is_zero() { Duration::ZERO } else { stack.min_rto })
    }

    /// The estimate before any floor.
    pub fn raw_rto(&self, stack: &Stack) -> Duration {
        if self.srtt.is_zero() {
            return stack.initial_rto;
        }
        // RFC 6298 section 2.3: RTO = SRTT + max(G, K * RTTVAR) with K = 4.
        self.srtt + (self.rttvar * 4).max(stack.clock_granularity)
    }

    /// The timer in force, backoff included.
    #[inline]
    pub fn timer(&self, stack: &Stack) -> Duration {
        // A timer of nothing would expire again at the same instant, for ever, and doubled be nothing still.
        let rto = self.rto(stack).max(LEAST_TIMER);
        // RFC 6298 section 5.5: RTO = RTO * 2 for each timeout without new data acknowledged, at most section 2.5's maximum.
        let backed_off = if self.backoff == 0 { rto } else { rto.saturating_mul(1 << self.backoff.min(20)) };
        backed_off.min(stack.max_rto).max(LEAST_TIMER)
    }
}

/// (a*na + b*nb)/d rounded to the nearest picosecond.
fn weighted(a: Duration, na: u64, b: Duration, nb: u64, d: u64) -> Duration {
    Duration::from_ps((a.ps() * na + b.ps() * nb + d / 2) / d)
}

impl Sender {
    /// The round-trip sample of this ACK, and its effect on the estimator.
    pub(super) fn round_trip(&mut self, packet: &Packet, advanced: bool, d: &Delivered, now: u64) -> Option<Duration> {
        if !advanced && self.config.stack.linux_rto && self.recovery.uses_sack() {
            // SACKs are samples, too (`tcp_ack_update_rtt`).
            let stack = &self.config.stack;
            let rtt = elapsed(d.newest.filter(|n| !n.ever_retransmitted)?.sent_at, now, stack);
            self.rtt.sample(rtt, self.una, self.nxt, stack);
            self.rtt.backoff = 0;
            return Some(rtt);
        }
        // Karn: without time stamps the ACK of a retransmission is no sample (RFC 6298 section 3).
        if !advanced || (!self.config.stack.timestamps && d.any_retransmitted) {
            return None;
        }
        let stack = &self.config.stack;
        if stack.coarse_timestamps && (d.any_retransmitted || d.newest.is_none()) {
            // What is selectively acknowledged besides still tells when it was sent (`tcp_ack_update_rtt`).
            let ahead = d.newest.filter(|n| !n.ever_retransmitted && n.end() > self.una);
            let rtt = match ahead {
                Some(segment) => elapsed(segment.sent_at, now, stack),
                None => coarse_round_trip(now, packet.timestamp),
            };
            self.rtt.sample(rtt, self.una, self.nxt, stack);
            self.rtt.backoff = 0;
            return Some(rtt);
        }
        let rtt = elapsed(packet.timestamp, now, stack);
        let learnt = match stack.rtt_timing {
            RttTiming::EachAck => Some(rtt),
            RttTiming::OneSegment => self.rtt.end_timing(self.una, now),
        };
        if let Some(learnt) = learnt {
            self.rtt.sample(learnt, self.una, self.nxt, stack);
            // A timer that was backed off stays so until a round trip is known again (RFC 6298 section 5; `tcp_ack_update_rtt`).
            self.rtt.backoff = 0;
        }
        if self.config.stack.cc_rtt == CcRtt::Ack {
            return Some(rtt);
        }
        // Linux tells congestion control the round trip of the newest delivered segment (`ca_rtt_us`), which delayed ACKs inflate
        // least, and takes the least of all from these (`tcp_update_rtt_min`).
        let newest = elapsed(d.newest.filter(|n| !n.ever_retransmitted)?.sent_at, now, &self.config.stack);
        self.rtt.note_shorter(newest);
        Some(newest)
    }

    /// This ACK delivers ahead of a hole what had been sent before the hole's first segment last left: Linux restarts the timer then too
    /// (`tcp_clean_rtx_queue`).
    pub(super) fn sacks_what_is_older_than_the_front(&self, d: &Delivered) -> bool {
        let Some((newest, front)) = d.newest.as_ref().zip(self.board.front()) else { return false };
        self.config.stack.rto_restart == RtoRestart::EveryAck
            && !newest.ever_retransmitted
            && newest.sent_at < front.sent_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6298 by hand for samples 225, 400, 310 us with G = 1 us.
    #[test]
    fn the_estimator_follows_rfc_6298_step_by_step() {
        let stack = Stack { min_rto: Duration::ms(1), ..Stack::ns2() };
        let mut e = RttEstimator::new();
        let mut states = Vec::new();
        for us in [225, 400, 310] {
            e.sample(Duration::us(us), 0, 0, &stack);
            states.push((e.srtt.as_secs(), e.rttvar.as_secs()));
            assert_eq!(e.rto(&stack), Duration::ms(1));
            assert_eq!(e.rto(&Stack::ns2()), Duration::ms(200));
        }
        let expected = [(0.000225, 0.0001125), (0.000246875, 0.000128125), (0.000254765625, 0.000111875)];
        for (got, want) in states.iter().zip(expected) {
            assert!((got.0 / want.0 - 1.0).abs() < 1e-9 && (got.1 / want.1 - 1.0).abs() < 1e-9, "{got:?} {want:?}");
        }
        let unfloored = Stack { min_rto: Duration::ZERO, ..Stack::ns2() };
        assert!((e.rto(&unfloored).as_secs() / 0.000702265625 - 1.0).abs() < 1e-8);
    }

    #[test]
    fn timeouts_back_off_to_the_ceiling() {
        let stack = Stack::ns2();
        let mut e = RttEstimator::new();
        e.sample(Duration::us(225), 0, 0, &stack);
        let timers: Vec<f64> = (0..10)
            .map(|n| {
                e.backoff = n;
                e.timer(&stack).as_secs()
            })
            .collect();
        assert_eq!(timers, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0]);
    }

    /// `tcp_rtt_estimator` by hand: half a second's jump is remembered, and a quarter of what is above the floor forgotten per window.
    #[test]
    fn linux_forgets_a_great_deviation_window_by_window() {
        let stack = Stack::linux();
        let mut e = RttEstimator::new();
        e.sample(Duration::ms(10), 0, 100, &stack);
        e.sample(Duration::ms(510), 50, 100, &stack);
        // mdev 3/4 of 5 ms and 1/4 of 500 ms; four of it above srtt.
        assert_eq!(e.rto(&stack), Duration::us(72_500 + 4 * 128_750));
        // Samples of srtt take a quarter of mdev each: 96.6, 72.4, 54.3 ms. The first window still has the jump.
        for (una, nxt, variation) in [(101, 200, 515_000), (201, 300, 458_671), (301, 400, 398_320)] {
            e.sample(e.srtt(), una, nxt, &stack);
            let above = e.rto(&stack) - e.srtt();
            assert!(
                above.ps().abs_diff(Duration::us(variation).ps()) < 3 * Duration::us(1).ps(),
                "{above} {variation}"
            );
        }
    }

    /// `after(tp->snd_una, tp->rtt_seq)`: the jump makes 3/4 of 5 ms and 1/4 of 500 ms, 128.75 ms, and the next sample three quarters of that.
    #[test]
    fn linux_ends_a_window_of_data_with_the_first_byte_beyond_it() {
        let stack = Stack::linux();
        let falls = |una: u64| {
            let mut e = RttEstimator::new();
            e.sample(Duration::ms(10), 0, 100, &stack);
            e.sample(Duration::ms(510), 101, 200, &stack);
            let before = e.linux_rttvar;
            e.sample(e.srtt(), una, 300, &stack);
            e.linux_rttvar < before
        };
        assert_eq!([200, 201].map(falls), [false, true]);
    }

    /// Times in ps: 0.9 us that a tick ends, 0.9 us within one, and 1.1 us from one reading to the next.
    #[test]
    fn linux_measures_between_two_readings_of_a_clock_of_microseconds() {
        let ps = |from, to| [Stack::linux(), Stack::ns2()].map(|s| elapsed(from, to, &s).ps());
        assert_eq!(ps(4_500_000, 5_400_000), [1_000_000, 900_000]);
        assert_eq!(ps(4_050_000, 4_950_000), [125_000, 900_000]);
        assert_eq!(ps(4_800_000, 5_900_000), [1_000_000, 1_100_000]);
    }

    #[test]
    fn linux_adds_the_floor_to_srtt() {
        let stack = Stack::linux();
        let mut e = RttEstimator::new();
        e.sample(Duration::us(300), 0, 0, &stack);
        assert_eq!(e.rto(&stack), Duration::us(200_300));
    }
}
