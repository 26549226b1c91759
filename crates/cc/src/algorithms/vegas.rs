//! Vegas: compares the window's throughput with what an empty path would give, and keeps between alpha and beta packets queued.
//!
//! *Source*: Brakmo and Peterson, "TCP Vegas" (JSAC 13, 1995), as NS2's `tcp-vegas.cc` has it; `vegas_form = linux` is the kernel's
//! `tcp_vegas.c` (`vegas/kernel.rs`), which differs in every particular.
//!
//! *Departures* (docs/algorithms/vegas.md): retransmission after a fine-grained timeout belongs to loss recovery and is left to the
//! sender, and with it the rule to halve where the lost packet had been retransmitted before; no decisions during fast recovery.

mod kernel;

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Counting, Kind, Needs, Setting, SettingError, Probe, Setup,
    SlowStart, State, Window,
};
use fanin_units::Duration;

const FORM: Setting = Setting::choice("vegas_form", &["ns2", "linux"])
    .linux_word("linux")
    .doc("tcp-vegas.cc; tcp_vegas.c", "whose Vegas: NS2's, or the kernel's");
const ALPHA: Setting = Setting::parameter("vegas_alpha", 1.0, 0.0, 1000.0)
    .linux(2.0)
    .unit("packets")
    .doc("section III-C", "fewer queued: one packet more per round trip");
const BETA: Setting = Setting::parameter("vegas_beta", 3.0, 0.0, 1000.0)
    .linux(4.0)
    .unit("packets")
    .doc("section III-C", "more queued: one packet less");
const GAMMA: Setting = Setting::parameter("vegas_gamma", 1.0, 0.0, 1000.0)
    .unit("packets")
    .doc("section III-D", "more queued: slow start ends");
const INTEGER: Setting = Setting::switch("vegas_integer_delta", true)
    .doc("tcp-vegas.cc", "round the packets queued to a whole number before comparing, as both codes do (the kernel down)");
const CHECK: Setting = Setting::switch("vegas_window_check", true)
    .doc("tcp-vegas.cc", "ns2 form: grow only while the window is used up to two packets");

/// `vegas`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "vegas",
    title: "Vegas: keeps a few packets queued, by the round trip",
    source: "Brakmo and Peterson, JSAC 1995",
    deploy: &[Place::Kernel("vegas"), Place::Twin("fanin_vegas")],
    params: &[FORM, ALPHA, BETA, GAMMA, INTEGER, CHECK],
    ..Algorithm::of(Kind::Sender(build))
}];

/// Least window in packets.
const MIN_CWND: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
struct Thresholds {
    alpha: f64,
    beta: f64,
    gamma: f64,
    integer: bool,
}

fn build(
    setup: &Setup,
    args: &Args,
    slow_start: Box<dyn SlowStart>,
) -> Result<Box<dyn CongestionControl>, SettingError> {
    let number = |param| args.number(param, setup.profile);
    let (alpha, beta) = (number(&ALPHA)?, number(&BETA)?);
    if alpha > beta {
        return Err(SettingError::BadValue {
            name: ALPHA.name,
            value: alpha.to_string(),
            expected: format!("at most vegas_beta, {beta} packets"),
        });
    }
    let t = Thresholds { alpha, beta, gamma: number(&GAMMA)?, integer: args.flag(&INTEGER, setup.profile)? };
    let check = args.flag(&CHECK, setup.profile)?;
    if args.word(&FORM, setup.profile)? == "linux" {
        return Ok(Box::new(kernel::KernelVegas::new(setup, t, slow_start)));
    }
    Ok(Box::new(Vegas {
        thresholds: t,
        check,
        counting: setup.counting,
        slow_start,
        window: Window { cwnd: setup.initial_window, ssthresh: setup.initial_ssthresh },
        before_reduction: None,
        base_rtt: f64::INFINITY,
        samples: (0.0, 0),
        mark: None,
        grow_this_round: true,
        incr: 0.0,
        delta: 0.0,
    }))
}

/// NS2's Vegas.
#[derive(Debug)]
pub struct Vegas {
    thresholds: Thresholds,
    check: bool,
    counting: Counting,
    slow_start: Box<dyn SlowStart>,
    window: Window,
    before_reduction: Option<Window>,
    /// Smallest sample in seconds.
    base_rtt: f64,
    /// Sum and number of the samples since the last decision.
    samples: (f64, u32),
    /// First byte not sent at the last decision: the next one comes with the first ACK of data from here on.
    mark: Option<u64>,
    /// Slow start doubles every other round trip: whether in this one. NS2's `v_inc_flag_`, which the first ACK turns off.
    grow_this_round: bool,
    /// Packets to add per ACK until the next decision; 1 means slow start.
    incr: f64,
    /// Packets queued by this connection at the last decision.
    delta: f64,
}

impl Vegas {
    /// Once per round trip. `window` packets could be outstanding now, `sent` were sent since the last decision.
    fn decide(&mut self, window: f64, sent: f64) {
        let (sum, count) = core::mem::take(&mut self.samples);
        if count > 0 {
            // tcp-vegas.cc: the mean of the samples since the last decision.
            let rtt = sum / f64::from(count);
            // One packet on its own sees the path as it is now.
            if rtt < self.base_rtt || sent <= 1.0 {
                self.base_rtt = rtt;
            }
            // Delta = (expected - actual) baseRTT, the packets queued; what was sent in this round trip is the actual rate.
            let queued = window - sent * self.base_rtt / rtt;
            // int((expected - actual) v_baseRTT_ + 0.5): 20 packets, 200 us at least and 250 now are 4 in the queue.
            self.delta = if self.thresholds.integer { (queued + 0.5).trunc() } else { queued };
        }
        let Thresholds { alpha, beta, gamma, .. } = self.thresholds;
        let cwnd = self.window.cwnd;
        self.incr = 0.0;
        if self.window.in_slow_start() {
            // Section III-D: slow start grows every other round trip; in between expected and actual rate can be compared.
            self.grow_this_round = !self.grow_this_round;
            if !self.grow_this_round {
                return;
            }
            // More than gamma queued: slow start ends with an eighth less (tcp-vegas.cc).
            if self.delta > gamma {
                // ssthresh has no use but to end slow start.
                self.window = Window { cwnd: (cwnd - cwnd / 8.0).max(MIN_CWND), ssthresh: MIN_CWND };
            } else {
                self.incr = 1.0;
            }
        // Section III-C: above beta a packet less, below alpha one more, 1/cwnd for each ACK of the next round trip.
        } else if self.delta > beta {
            self.window.cwnd = (cwnd - 1.0).max(MIN_CWND.min(cwnd));
        } else if self.delta < alpha {
            self.incr = 1.0 / cwnd;
        }
    }

    fn grow(&mut self, conn: &Conn, ack: &Ack) {
        let slow_start = self.incr == 1.0;
        if slow_start && !self.window.in_slow_start() {
            self.incr = 0.0;
        }
        // An ACK frees as many places as it covers; those count as used.
        let unused = self.window.cwnd - (conn.in_flight + f64::from(ack.acked_segments));
        let allowed = ack.may_grow && self.incr > 0.0 && !(self.check && unused > 2.0);
        if self.window.in_slow_start() {
            self.slow_start.on_ack(conn, ack, &mut self.window, allowed);
            return;
        }
        self.slow_start.on_ack(conn, ack, &mut self.window, false);
        if allowed {
            self.window.cwnd += self.incr * self.counting.worth(self.counting.segments(ack));
        }
    }

    fn set(&mut self, conn: &Conn, window: Window) {
        self.window = window;
        self.incr = 0.0;
        self.slow_start.reset(conn);
    }
}

impl CongestionControl for Vegas {
    fn needs(&self) -> Needs {
        // The kernel's form takes the smallest sample of a window and can do without.
        Needs { quickack: true, ..Needs::default() }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        if ack.acked_bytes == 0 {
            return;
        }
        if self.mark.is_none_or(|mark| ack.ack_seq > mark) {
            let sent = (conn.snd_nxt - self.mark.unwrap_or(0).min(conn.snd_nxt)) as f64 / f64::from(conn.mss);
            self.mark = Some(conn.snd_nxt);
            if conn.state == State::Recovery {
                self.samples = (0.0, 0);
                self.incr = 0.0;
            } else {
                self.decide(conn.in_flight + 1.0, sent);
            }
        }
        self.grow(conn, ack);
        // The sample of the ACK that ends a round trip belongs to the next: its packet was the first of it.
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.as_secs();
            self.base_rtt = self.base_rtt.min(rtt);
            self.samples = (self.samples.0 + rtt, self.samples.1 + 1);
        }
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        if !cause.is_repeated() {
            self.before_reduction = Some(self.window);
        }
        let Window { cwnd, ssthresh } = self.window;
        let whole = cwnd.floor();
        let half = (conn.loss_basis / 2.0).max(MIN_CWND);
        // tcp-vegas.cc: a loss takes a quarter of the window; of three packets or fewer it leaves two.
        let to = match cause {
            Cause::Loss if whole <= 3.0 => Window { cwnd: cwnd.min(MIN_CWND), ssthresh: MIN_CWND },
            Cause::Loss => Window { cwnd: whole - (whole / 4.0).floor(), ssthresh: MIN_CWND },
            Cause::Ecn => Window { cwnd: cwnd.min(half), ssthresh: half },
            // Vegas slow-starts from 2.
            Cause::Timeout { repeated } => {
                Window { cwnd: cwnd.min(MIN_CWND), ssthresh: if repeated { ssthresh } else { half } }
            }
        };
        self.set(conn, to);
    }

    fn on_recovered(&mut self, _conn: &Conn, limit: Option<f64>) {
        self.window = self.window.capped(limit);
    }

    fn on_undo(&mut self, _conn: &Conn) {
        if let Some(before) = self.before_reduction.take() {
            self.window = self.window.restored(before);
        }
    }

    fn on_restart(&mut self, conn: &Conn, _idle: Duration, to: Window) {
        self.set(conn, to);
    }

    fn control(&self) -> Control {
        self.window.into()
    }

    fn observe(&self, probe: &mut dyn Probe) {
        if self.base_rtt.is_finite() {
            probe.value("vegas_base_rtt_s", self.base_rtt);
        }
        probe.value("vegas_delta", self.delta);
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithms::testing::{Driver, set};
    use crate::model::close;
    use crate::{Args, Cause, Setup, Value};
    use fanin_units::Duration;

    fn avoiding(cwnd: f64, args: &Args) -> Driver {
        Driver::new("vegas", Setup { initial_window: cwnd, initial_ssthresh: 2.0, ..Setup::default() }, args)
    }

    fn acks(s: &mut Driver, count: u32, us: u64) {
        for _ in 0..count {
            s.ack(Some(Duration::us(us)));
        }
    }

    /// As [`acks`], with growth forbidden by the sender.
    fn held(s: &mut Driver, count: u32, us: u64) {
        for _ in 0..count {
            s.ack_with(1, |a| (a.rtt, a.may_grow) = (Some(Duration::us(us)), false));
        }
    }

    /// 20 packets; a window at 200 us, one at `us`, and the ACK that judges it.
    fn judged(us: u64, args: &Args) -> (f64, f64) {
        let mut s = avoiding(20.0, args);
        held(&mut s, 20, 200);
        held(&mut s, 21, us);
        (s.observed("vegas_delta"), s.cc.control().cwnd)
    }

    #[test]
    fn four_packets_queued_are_one_too_many() {
        assert_eq!(judged(250, &Args::default()), (4.0, 19.0));
        // 20 x (1 - 200/240) = 3.3 is three whole packets, which is not more than three.
        assert_eq!(judged(240, &Args::default()), (3.0, 20.0));
    }

    #[test]
    fn delta_can_be_real() {
        let real = set("vegas_integer_delta", Value::Flag(false));
        let (delta, cwnd) = judged(250, &real);
        close(delta, 3.999999999999999);
        assert_eq!(cwnd, 19.0);
        let (delta, cwnd) = judged(240, &real);
        close(delta, 20.0 * (1.0 - 200.0 / 240.0));
        assert_eq!(cwnd, 19.0);
    }

    #[test]
    fn an_idle_path_adds_one_packet_per_round_trip_spread_over_its_acks() {
        let mut s = avoiding(20.0, &Args::default());
        held(&mut s, 20, 200);
        acks(&mut s, 1, 200);
        close(s.cc.control().cwnd, 20.05);
        acks(&mut s, 19, 200);
        close(s.cc.control().cwnd, 21.0);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let grown = |check| {
            let mut s = avoiding(20.0, &set("vegas_window_check", Value::Flag(check)));
            acks(&mut s, 21, 200);
            // Four places stay free.
            s.conn.snd_nxt -= 4 * 1460;
            s.conn.in_flight -= 4.0;
            s.conn.snd_una += 1460;
            s.conn.in_flight -= 1.0;
            let before = s.cc.control().cwnd;
            s.cc.on_ack(&s.conn, &crate::Ack::of(1, 1460, s.conn.snd_una, None));
            s.cc.control().cwnd > before
        };
        assert!(!grown(true));
        assert!(grown(false));
    }

    #[test]
    fn slow_start_doubles_every_other_round_trip_and_ends_an_eighth_lower() {
        let mut s = Driver::new("vegas", Setup::default(), &Args::default());
        let mut windows = Vec::new();
        for _ in 0..8 {
            let outstanding = (s.conn.snd_nxt - s.conn.snd_una) / 1460;
            acks(&mut s, outstanding as u32, 200);
            windows.push(s.cc.control().cwnd);
        }
        assert_eq!(windows, [2.0, 4.0, 4.0, 8.0, 8.0, 16.0, 16.0, 32.0]);
        // A round trip without growth and with a quarter more delay, 6 of 32 packets; the ACK after it would start a doubling.
        held(&mut s, 33, 250);
        assert_eq!((s.cc.control().cwnd, s.cc.control().ssthresh), (28.0, 2.0));
    }

    #[test]
    fn a_loss_costs_a_quarter_and_a_timeout_leaves_two() {
        for (cwnd, left) in [(21.0, 16.0), (20.0, 15.0), (4.0, 3.0), (3.0, 2.0), (2.0, 2.0)] {
            let mut s = avoiding(cwnd, &Args::default());
            s.congestion(Cause::Loss);
            assert_eq!((s.cc.control().cwnd, s.cc.control().ssthresh), (left, 2.0));
        }
        let mut s = avoiding(20.0, &Args::default());
        s.congestion(Cause::Timeout { repeated: false });
        assert_eq!((s.cc.control().cwnd, s.cc.control().ssthresh), (2.0, 10.0));
    }
}
