//! What becomes of cwnd when the application, not the network, is the limit. One file, because this decides whether the papers'
//! problem exists at all.

use super::rtt::RttEstimator;
use crate::host::clock::Clock;
use crate::stack::{CwndValidation, Stack};
use fanin_cc::Window;

/// Five minutes: RFC 7661's non-validated period.
const NON_VALIDATED_PERIOD_PS: u64 = 300_000_000_000_000;
const SECOND_PS: u64 = 1_000_000_000_000;

/// What validation asks of the window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Restart {
    /// The window to go on from.
    pub window: Window,
    /// How long nothing was sent, ps.
    pub idle: u64,
}

/// The sender's state that congestion window validation judges by; times in ps, windows in packets.
#[derive(Clone, Copy, Debug)]
pub struct CwvInput {
    pub now: u64,
    pub clock: Clock,
    pub window: Window,
    pub initial_window: f64,
    pub in_flight: f64,
    pub srtt: u64,
    pub una: u64,
    pub nxt: u64,
}

/// The retransmission timer as it is now, ps.
#[derive(Clone, Copy, Debug)]
pub struct Rto {
    /// Floored, with backoff.
    pub timer: u64,
    /// The estimate before the floor.
    pub raw: u64,
}

impl Rto {
    /// Of this estimator.
    pub fn of(rtt: &RttEstimator, stack: &Stack) -> Rto {
        Rto { timer: rtt.timer(stack).ps(), raw: rtt.raw_rto(stack).ps() }
    }
}

/// Bookkeeping of one sender.
#[derive(Clone, Debug)]
pub struct Validation {
    mode: CwndValidation,
    /// Last transmission of data.
    last_send: u64,
    /// Last ACK of new data.
    last_ack: u64,
    /// The window was the limit at the last transmission, over the current window of data (Linux).
    limited: bool,
    /// Most packets out in the current window of data, and where it ends (Linux).
    max_out: f64,
    usage_end: u64,
    /// Most used since the window was last full, and when that was (RFC 2861, Linux).
    used: f64,
    stamp: u64,
    /// RFC 7661's own, in its mode.
    pipe_ack: Option<Box<PipeAck>>,
}

/// RFC 7661: volume acknowledged in the current round (packets), where the round ends, the best of this and the last period.
#[derive(Clone, Debug)]
struct PipeAck {
    round: f64,
    round_end: u64,
    best: [f64; 2],
    period_start: u64,
    not_validated_since: Option<u64>,
}

impl Validation {
    /// For a connection that starts now, in this mode.
    pub fn new(mode: CwndValidation) -> Validation {
        Validation {
            mode,
            last_send: 0,
            last_ack: 0,
            limited: false,
            max_out: 0.0,
            usage_end: 0,
            used: 0.0,
            stamp: 0,
            pipe_ack: (mode == CwndValidation::Rfc7661).then(|| {
                Box::new(PipeAck {
                    round: 0.0,
                    round_end: 0,
                    best: [f64::INFINITY, 0.0],
                    period_start: 0,
                    not_validated_since: None,
                })
            }),
        }
    }

    /// When data was last sent; ps.
    pub fn last_send(&self) -> u64 {
        self.last_send
    }

    /// The window held the sender back in the last window of data (Linux's test, used by every mode for information).
    #[inline]
    pub fn cwnd_limited(&self, window: Window) -> bool {
        // `tcp_is_cwnd_limited`: in slow start also where less than twice of what was out is the window.
        self.limited || (window.in_slow_start() && window.cwnd < 2.0 * self.max_out)
    }

    /// Data was sent; `limited` tells that the window stopped the sender after it. `rto` computes the timer: seldom needed.
    #[inline(always)]
    pub fn on_send(&mut self, s: &CwvInput, limited: bool, rto: impl FnOnce() -> Rto) -> Option<Restart> {
        self.note_sent(s.now);
        self.note_use(s, limited, rto)
    }

    /// Data was sent.
    #[inline]
    pub fn note_sent(&mut self, now: u64) {
        self.last_send = now;
    }

    /// The rest of [`Self::on_send`]: how far the window is used.
    #[inline(always)]
    pub fn note_use(&mut self, s: &CwvInput, limited: bool, rto: impl FnOnce() -> Rto) -> Option<Restart> {
        // `tcp_cwnd_validate`: max_packets_out, cwnd_usage_seq and is_cwnd_limited of the current window of data.
        if s.una >= self.usage_end || limited || (!self.limited && s.in_flight > self.max_out) {
            self.limited = limited;
            self.max_out = s.in_flight;
            self.usage_end = s.nxt;
        }
        let tracks_use = matches!(self.mode, CwndValidation::Linux | CwndValidation::Rfc2861);
        if !tracks_use {
            return None;
        }
        if self.cwnd_limited(s.window) {
            self.used = 0.0;
            self.stamp = s.now;
            return None;
        }
        self.used = self.used.max(s.in_flight);
        // Times are compared in jiffies. Mostly they are so far apart that the ticks do not matter, which spares three divisions per packet.
        let timer = rto().timer;
        if s.now - self.stamp + s.clock.step() < timer || s.clock.between(self.stamp, s.now) < s.clock.rounded_up(timer)
        {
            return None;
        }
        // Application-limited for an RTO (RFC 2861 section 3.2; tcp_cwnd_application_limited).
        let used = self.used.max(s.initial_window);
        self.used = 0.0;
        self.stamp = s.now;
        (used < s.window.cwnd).then(|| Restart {
            window: Window { cwnd: (s.window.cwnd + used) / 2.0, ssthresh: raised(s.window) },
            idle: 0,
        })
    }

    /// New data is about to leave and nothing is outstanding.
    pub fn on_start(&mut self, s: &CwvInput, rto: impl FnOnce() -> Rto) -> Option<Restart> {
        if self.last_send == 0 {
            self.stamp = s.now;
            return None;
        }
        if matches!(self.mode, CwndValidation::None | CwndValidation::LinuxKeep) {
            return None;
        }
        let Rto { timer, raw } = rto();
        // `tcp_slow_start_after_idle_check`: tcp_jiffies32 - lsndtime > icsk_rto, which is in jiffies as well.
        let (timer, idle) = (s.clock.rounded_up(timer), s.clock.between(self.last_send, s.now));
        let restart_window = s.initial_window.min(s.window.cwnd);
        let window = match self.mode {
            CwndValidation::None | CwndValidation::LinuxKeep => return None,
            // RFC 5681 section 4.1: after an RTO of silence the restart window is min(IW, cwnd).
            CwndValidation::Rfc5681 if idle > timer => Window { cwnd: restart_window, ..s.window },
            CwndValidation::Ns2Full if idle > raw => Window { cwnd: s.initial_window, ..s.window },
            CwndValidation::Ns2Oneway if s.now - self.last_ack >= timer => Window { cwnd: 1.0, ..s.window },
            // RFC 2861 section 3.2, `tcp_cwnd_restart`: half of the window for each RTO of silence.
            CwndValidation::Rfc2861 | CwndValidation::Linux if idle > timer => {
                let window = decayed(s, idle, timer, restart_window, self.mode == CwndValidation::Linux);
                self.stamp = s.now;
                self.used = 0.0;
                window
            }
            CwndValidation::Rfc7661 => {
                let p = self.pipe_ack.as_mut()?;
                if s.now - p.not_validated_since? < NON_VALIDATED_PERIOD_PS {
                    return None;
                }
                // RFC 7661 section 4.4.3: at the end of the non-validated period max(cwnd / 2, IW).
                p.not_validated_since = Some(s.now);
                Window { cwnd: (s.window.cwnd / 2.0).max(s.initial_window), ssthresh: raised(s.window) }
            }
            CwndValidation::Rfc5681
            | CwndValidation::Ns2Full
            | CwndValidation::Ns2Oneway
            | CwndValidation::Rfc2861
            | CwndValidation::Linux => return None,
        };
        Some(Restart { window, idle })
    }

    /// New data was acknowledged.
    #[inline]
    pub fn note_ack(&mut self, now: u64) {
        self.last_ack = now;
    }

    /// Whether [`Self::on_ack`] may say no.
    #[inline]
    pub fn judges_acks(&self) -> bool {
        use CwndValidation::{Linux, LinuxKeep, Rfc2861, Rfc7661};
        matches!(self.mode, Linux | LinuxKeep | Rfc2861 | Rfc7661)
    }

    /// Whether the window may grow on an ACK of new data.
    pub fn on_ack(&mut self, s: &CwvInput, acked: f64) -> bool {
        match self.mode {
            CwndValidation::Linux | CwndValidation::LinuxKeep | CwndValidation::Rfc2861 => self.cwnd_limited(s.window),
            // What was sent with a full window may enlarge it also where it is not validated (RFC 7661 section 4.4): in slow start pipeACK is behind.
            CwndValidation::Rfc7661 => self.pipe_ack.as_mut().is_none_or(|p| p.on_ack(s, acked)) || self.limited,
            CwndValidation::None | CwndValidation::Rfc5681 | CwndValidation::Ns2Oneway | CwndValidation::Ns2Full => {
                true
            }
        }
    }
}

impl PipeAck {
    /// Whether the window is validated. RFC 7661 section 4.2: pipeACK is the largest volume acknowledged in a round trip over the last max(3 RTT, 1 s), here kept as the
    /// best of the present and the previous period of that length.
    fn on_ack(&mut self, s: &CwvInput, acked: f64) -> bool {
        self.round += acked;
        if self.round_end == 0 {
            // The first ACK ends no round trip: pipeACK stays undefined for as long as one takes.
            self.round_end = s.nxt;
        }
        if s.una >= self.round_end {
            self.best[1] = self.best[1].max(self.round);
            if self.best[0].is_infinite() {
                // "Undefined", which counts as validated, lasts until there is a measurement.
                self.best[0] = 0.0;
            }
            self.round = 0.0;
            self.round_end = s.nxt;
        }
        if s.now - self.period_start >= (3 * s.srtt).max(SECOND_PS) {
            self.best = [self.best[1], 0.0];
            self.period_start = s.now;
        }
        // RFC 7661 section 4.3: validated while pipeACK is at least half of cwnd.
        let validated = self.best[0].max(self.best[1]) >= s.window.cwnd / 2.0;
        if validated {
            self.not_validated_since = None;
        } else {
            self.not_validated_since.get_or_insert(s.now);
        }
        validated
    }
}

/// 3/4 of cwnd, but never lower than before.
fn raised(w: Window) -> f64 {
    // `tcp_current_ssthresh`: max(ssthresh, cwnd / 2 + cwnd / 4).
    w.ssthresh.max(0.75 * w.cwnd)
}

/// Halved once per whole RTO of silence. RFC 2861 section 3.2 halves for every RTO that passed, Linux while more than one remains.
fn decayed(s: &CwvInput, idle: u64, rto: u64, floor: f64, linux: bool) -> Window {
    let mut cwnd = s.window.cwnd;
    let mut left = idle as i128;
    let rto = i128::from(rto.max(1));
    loop {
        left -= rto;
        // `tcp_cwnd_restart`: while ((delta -= icsk_rto) > 0 && cwnd > restart_cwnd) cwnd >>= 1.
        let go_on = if linux { left > 0 && cwnd > floor } else { left >= 0 && cwnd > floor };
        if !go_on {
            break;
        }
        cwnd /= 2.0;
        if linux {
            cwnd = cwnd.floor();
        }
    }
    Window { cwnd: cwnd.max(floor), ssthresh: raised(s.window) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_for(mode: CwndValidation, initial_window: f64, rtos: f64) -> Window {
        idle_on(Clock::EXACT, mode, initial_window, rtos)
    }

    fn idle_on(clock: Clock, mode: CwndValidation, initial_window: f64, rtos: f64) -> Window {
        let rto = 200_000_000_000;
        let mut v = Validation::new(mode);
        let window = Window { cwnd: 64.0, ssthresh: 10.0 };
        let at =
            |now| CwvInput { now, clock, window, initial_window, in_flight: 64.0, srtt: 1_000_000_000, una: 0, nxt: 1 };
        let timers = || Rto { timer: rto, raw: 1_000_000_000 };
        v.on_send(&at(1), true, timers);
        let later = at(1 + (rtos * rto as f64) as u64);
        v.on_start(&later, timers).map_or(window, |r| r.window)
    }

    #[test]
    fn rfc_2861_halves_once_per_rto_of_silence() {
        let w = idle_for(CwndValidation::Rfc2861, 2.0, 3.4);
        assert_eq!((w.cwnd, w.ssthresh), (8.0, 48.0));
    }

    #[test]
    fn linux_halves_per_rto_but_not_below_the_initial_window() {
        let w = idle_for(CwndValidation::Linux, 10.0, 3.4);
        assert_eq!((w.cwnd, w.ssthresh), (10.0, 48.0));
    }

    /// 202 ms after an RTO of 200 ms: a tick of 4 ms more has passed, or not yet.
    #[test]
    fn linux_counts_its_silence_in_jiffies() {
        let stack = Stack { common_ticks: true, ..Stack::linux() };
        let jiffies = Clock::new(&Stack { hz: 250, ..stack }, 1, 0);
        let window = |rtos| idle_on(jiffies, CwndValidation::Linux, 10.0, rtos).cwnd;
        assert_eq!([window(1.01), window(1.021)], [64.0, 32.0]);
    }

    /// From 1 ms on 20 packets of 64 are used, under a timer of 200 ms. Of ticks of 4 ms the fiftieth begins at 200 ms: (64 + 20) / 2 and 3/4 of 64.
    #[test]
    fn linux_gives_up_half_of_what_was_not_used_for_a_timer_in_jiffies() {
        let stack = Stack { common_ticks: true, ..Stack::linux() };
        let clock = Clock::new(&Stack { hz: 250, ..stack }, 1, 0);
        let reduced = |us: u64, in_flight: f64| {
            let mut v = Validation::new(CwndValidation::Linux);
            let window = Window { cwnd: 64.0, ssthresh: 10.0 };
            let (initial_window, srtt) = (10.0, 1_000_000_000);
            let at = |us: u64| CwvInput {
                now: us * 1_000_000,
                clock,
                window,
                initial_window,
                in_flight,
                srtt,
                una: 0,
                nxt: 1,
            };
            let timers = || Rto { timer: 200_000_000_000, raw: 1_000_000_000 };
            assert_eq!(v.on_start(&at(1_000), timers), None);
            v.note_use(&at(us), false, timers).map(|r| (r.window.cwnd, r.window.ssthresh, r.idle))
        };
        let used_20 = [199_999, 200_000, 204_000].map(|us| reduced(us, 20.0));
        assert_eq!(used_20, [None, Some((42.0, 48.0, 0)), Some((42.0, 48.0, 0))]);
        assert_eq!([reduced(204_000, 63.0), reduced(204_000, 64.0)], [Some((63.5, 48.0, 0)), None], "all is used");
    }

    /// The window of data ends where what is to be sent next began when it was judged last.
    #[test]
    fn what_was_used_holds_until_its_window_of_data_is_acknowledged_or_more_is_used() {
        let mut v = Validation::new(CwndValidation::None);
        let avoidance = Window { cwnd: 10.0, ssthresh: 5.0 };
        let slow_start = |cwnd| Window { cwnd, ssthresh: 100.0 };
        let mut use_of = |una: u64, nxt: u64, in_flight: f64, limited: bool| {
            let (clock, window) = (Clock::EXACT, avoidance);
            let s = CwvInput { now: 1, clock, window, initial_window: 10.0, in_flight, srtt: 1, una, nxt };
            v.note_use(&s, limited, || Rto { timer: 1, raw: 1 });
            // The window was full, or less than twice of what was out.
            [v.cwnd_limited(avoidance), v.cwnd_limited(slow_start(5.9)), v.cwnd_limited(slow_start(7.9))]
        };
        assert_eq!(use_of(0, 10, 10.0, true), [true; 3]);
        assert_eq!(use_of(9, 15, 12.0, false), [true; 3], "the window was full within these ten");
        assert_eq!(use_of(10, 20, 3.0, false), [false, true, false], "of the next three are out");
        assert_eq!(use_of(11, 21, 2.0, false), [false, true, false], "three were");
        assert_eq!(use_of(12, 22, 4.0, false), [false, true, true], "now four are");
    }

    #[test]
    fn the_other_modes_do_as_their_names_say() {
        assert_eq!(idle_for(CwndValidation::None, 2.0, 3.4).cwnd, 64.0);
        assert_eq!(idle_for(CwndValidation::LinuxKeep, 10.0, 3.4).cwnd, 64.0);
        assert_eq!(idle_for(CwndValidation::Rfc5681, 2.0, 1.5).cwnd, 2.0);
        assert_eq!(idle_for(CwndValidation::Rfc5681, 2.0, 0.5).cwnd, 64.0);
        assert_eq!(idle_for(CwndValidation::Ns2Oneway, 2.0, 1.5).cwnd, 1.0);
        assert_eq!(idle_for(CwndValidation::Ns2Full, 2.0, 0.02).cwnd, 2.0);
        assert_eq!(idle_for(CwndValidation::Rfc7661, 2.0, 3.4).cwnd, 64.0);
    }
}
