//! Vegas as the kernel has it: the smallest round trip of a window decides, in whole packets and microseconds.
//!
//! *Source*: `net/ipv4/tcp_vegas.c`. The base round trip is forgotten whenever nothing is outstanding, and while the loss machine is not
//! open it is Reno. Its own growth does not ask whether the window is the limit (`tcp_vegas_cong_avoid`), as Reno's does: between short
//! responses it grows on.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use super::{MIN_CWND, Thresholds};
use crate::algorithms::reno::RenoCore;
use crate::{Ack, Cause, CongestionControl, Conn, Control, Probe, Setup, SlowStart, State, Window};
use fanin_units::Duration;

/// The kernel's Vegas.
#[derive(Debug)]
pub(super) struct KernelVegas {
    core: RenoCore,
    thresholds: Thresholds,
    /// Smallest sample in us, one added, since something has been outstanding.
    base_rtt: Option<u64>,
    /// Smallest sample of this window in us, one added, and the number of samples.
    min_rtt: Option<u64>,
    samples: u32,
    /// First byte not sent when the window began.
    begin: u64,
    /// Was the loss machine open at the last ACK?
    open: bool,
    delta: f64,
}

impl KernelVegas {
    pub fn new(setup: &Setup, thresholds: Thresholds, slow_start: Box<dyn SlowStart>) -> KernelVegas {
        KernelVegas {
            core: RenoCore::new(setup, slow_start),
            thresholds,
            base_rtt: None,
            min_rtt: None,
            samples: 0,
            begin: 0,
            open: true,
            delta: 0.0,
        }
    }

    /// `vegas_enable`: a window begins.
    fn begin_window(&mut self, conn: &Conn) {
        self.begin = conn.snd_nxt;
        self.samples = 0;
        self.min_rtt = None;
    }

    fn sample(&mut self, rtt: Duration) {
        // `tcp_vegas_pkts_acked`: one is added, so that no round trip is zero.
        let us = rtt.ps() / 1_000_000 + 1;
        self.base_rtt = Some(self.base_rtt.map_or(us, |b| b.min(us)));
        self.min_rtt = Some(self.min_rtt.map_or(us, |m| m.min(us)));
        self.samples += 1;
    }

    /// Packets queued, and the window that would queue none, by the window's smallest round trip.
    fn estimate(&self, base: u64, rtt: u64) -> (f64, f64) {
        let cwnd = self.core.window.cwnd.floor();
        let (base, rtt) = (base as f64, rtt as f64);
        // `tcp_vegas_cong_avoid`: diff = cwnd (rtt - baseRTT) / baseRTT, target_cwnd = cwnd baseRTT / rtt.
        let delta = cwnd * (rtt - base) / base;
        (if self.thresholds.integer { delta.floor() } else { delta }, (cwnd * base / rtt).floor())
    }

    fn decide(&mut self, conn: &Conn, ack: &Ack, base: u64, rtt: u64) {
        let (delta, target) = self.estimate(base, rtt);
        self.delta = delta;
        let Thresholds { alpha, beta, gamma, .. } = self.thresholds;
        let grows = raises(conn, ack);
        // Up to gamma queued slow start goes on as Reno's.
        if self.core.window.in_slow_start() && delta <= gamma {
            self.core.on_ack(conn, &Ack { may_grow: grows, ..*ack }, 1.0);
            return;
        }
        self.core.on_ack(conn, &Ack { may_grow: false, ..*ack }, 1.0);
        let Window { cwnd, ssthresh } = &mut self.core.window;
        // Slow start ends at min(cwnd, target_cwnd + 1); in avoidance more than beta takes one packet, fewer than alpha give one.
        // A smaller window takes ssthresh with it (`tcp_vegas_ssthresh`).
        let shrunk = if *cwnd < *ssthresh { cwnd.min(target + 1.0) } else { *cwnd - 1.0 };
        if *cwnd < *ssthresh || delta > beta {
            *cwnd = shrunk.max(MIN_CWND.min(*cwnd));
            *ssthresh = ssthresh.min(*cwnd);
        } else if delta < alpha && grows {
            *cwnd += 1.0;
        }
        // `tcp_current_ssthresh`.
        *ssthresh = ssthresh.max((*cwnd / 2.0).floor() + (*cwnd / 4.0).floor());
    }
}

/// The kernel asks the algorithm for growth (`tcp_may_raise_cwnd`), whether or not the window is the limit.
fn raises(conn: &Conn, ack: &Ack) -> bool {
    let state = matches!(conn.state, State::Open | State::Disorder | State::Loss);
    ack.may_grow || (state && !ack.ece && ack.acked_bytes > 0)
}

impl CongestionControl for KernelVegas {
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample(rtt);
        }
        // The kernel leaves a recovery, and begins a window, between the sample and the growth of the ACK that ends it.
        let open = conn.state == State::Open || (conn.state == State::Recovery && ack.may_grow);
        let was_open = core::mem::replace(&mut self.open, open);
        if self.open && !was_open {
            self.begin_window(conn);
        }
        if !self.open {
            self.core.on_ack(conn, ack, 1.0);
        } else if ack.ack_seq > self.begin {
            match (self.base_rtt, self.min_rtt) {
                (Some(base), Some(rtt)) if self.samples > 2 => self.decide(conn, ack, base, rtt),
                // Too few samples for a judgement: Reno.
                _ => self.core.on_ack(conn, ack, 1.0),
            }
            self.begin_window(conn);
        } else {
            // Within a round trip slow start alone grows.
            let grow = raises(conn, ack) && self.core.window.in_slow_start();
            self.core.on_ack(conn, &Ack { may_grow: grow, ..*ack }, 1.0);
        }
        if conn.snd_una == conn.snd_nxt {
            // The next transmission starts a flight: everything is measured anew (`CA_EVENT_TX_START`).
            self.base_rtt = None;
            self.begin_window(conn);
        }
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        self.core.on_congestion(conn, cause);
    }
    fn on_recovered(&mut self, _conn: &Conn, limit: Option<f64>) {
        self.core.on_recovered(limit);
    }
    fn on_undo(&mut self, _conn: &Conn) {
        self.core.on_undo();
    }
    fn control(&self) -> Control {
        self.core.window.into()
    }
    fn on_restart(&mut self, conn: &Conn, _idle: Duration, to: Window) {
        self.core.on_restart(conn, to);
        self.base_rtt = None;
        self.begin_window(conn);
    }
    fn observe(&self, probe: &mut dyn Probe) {
        if let Some(base) = self.base_rtt {
            probe.value("vegas_base_rtt_s", base as f64 * 1e-6);
        }
        probe.value("vegas_delta", self.delta);
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithms::testing::Driver;
    use crate::{Args, Cause, Counting, Profile, Setup, State};
    use fanin_units::Duration;

    fn sender(cwnd: f64, ssthresh: f64) -> Driver {
        let setup = Setup {
            initial_window: cwnd,
            initial_ssthresh: ssthresh,
            profile: Profile::Linux,
            counting: Counting::Linux,
            ..Setup::default()
        };
        Driver::new("vegas", setup, &Args::default())
    }

    fn acks(s: &mut Driver, count: u32, us: u64) {
        for _ in 0..count {
            s.ack(Some(Duration::us(us)));
        }
    }

    #[test]
    fn the_smallest_round_trip_of_a_window_decides() {
        // First ACK: one sample, Reno. Then a window whose smallest is 250 us: 20 x 50/201 is 4 whole packets, between 2 and 4.
        let mut s = sender(20.0, 10.0);
        acks(&mut s, 1, 200);
        acks(&mut s, 19, 250);
        acks(&mut s, 1, 300);
        assert_eq!(s.observed("vegas_delta"), 4.0);
        assert_eq!(s.cc.control().cwnd, 20.0);
        acks(&mut s, 20, 255);
        // 20 x 55/201 = 5.47.
        assert_eq!(s.observed("vegas_delta"), 5.0);
        assert_eq!(s.cc.control().cwnd, 19.0);
        acks(&mut s, 20, 210);
        assert_eq!(s.cc.control().cwnd, 20.0);
    }

    #[test]
    fn slow_start_ends_at_the_window_that_would_queue_nothing() {
        let mut s = sender(20.0, f64::INFINITY);
        acks(&mut s, 1, 200);
        let cwnd_before = 21.0 + 19.0;
        acks(&mut s, 19, 250);
        assert_eq!(s.cc.control().cwnd, cwnd_before);
        acks(&mut s, 1, 250);
        // 40 x 201/251 = 32, plus one; ssthresh is then the window (`tcp_vegas_ssthresh`).
        assert_eq!((s.cc.control().cwnd, s.cc.control().ssthresh), (33.0, 33.0));
    }

    #[test]
    fn an_empty_pipe_forgets_the_base_round_trip() {
        let mut s = sender(20.0, 10.0);
        acks(&mut s, 1, 200);
        s.conn.snd_una = s.conn.snd_nxt;
        s.conn.in_flight = 0.0;
        s.cc.on_ack(&s.conn, &crate::Ack::of(19, 1460, s.conn.snd_una, Some(Duration::us(200))));
        s.conn.snd_nxt += 20 * 1460;
        acks(&mut s, 1, 400);
        assert_eq!(s.observed("vegas_base_rtt_s"), 401e-6);
    }

    #[test]
    fn while_losses_are_repaired_it_is_reno() {
        let mut s = sender(20.0, 10.0);
        acks(&mut s, 1, 200);
        s.congestion(Cause::Timeout { repeated: false });
        s.conn.state = State::Loss;
        acks(&mut s, 9, 900);
        assert_eq!((s.cc.control().cwnd, s.cc.control().ssthresh), (10.0, 10.0));
    }
}
