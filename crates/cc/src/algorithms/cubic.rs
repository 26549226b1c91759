//! CUBIC: after a reduction the window follows a cubic curve of real time towards the window of the last loss and beyond it, but
//! never slower than an AIMD sender of the same average would.
//!
//! *Source*: RFC 9438; for `cubic_form = linux` the fixed-point arithmetic of `tcp_cubic.c` (`cubic/kernel.rs`).
//!
//! *Departures* (docs/algorithms/cubic.md): in the Reno-friendly region the window never falls to W_est; the curve's clock stops while
//! nothing is outstanding (the kernel moves it by the time since the last transmission, which includes a round trip more).

mod kernel;
#[cfg(test)]
mod tests;

#[cfg(not(feature = "std"))]
use crate::bare::*;
use self::kernel::Kernel;
use crate::deploy::Place;
use crate::algorithms::hystart::{self, HyStart};
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Counting, GrowthCurve, Kind, Probe, Setting,
    SettingError, Setup, SlowStart, Window,
};
use fanin_units::{Duration, Time};

const FORM: Setting = Setting::choice("cubic_form", &["rfc", "linux"])
    .linux_word("linux")
    .doc("RFC 9438; tcp_cubic.c", "real numbers as in the RFC, or the kernel's integers, jiffies and growth counter");
const C: Setting = Setting::parameter("cubic_c", 0.4, 0.01, 100.0)
    .unit("packets/s^3")
    .doc("RFC 9438 section 5", "steepness of the curve (the linux form rounds it to a multiple of 10/1024)");
const BETA: Setting = Setting::parameter("cubic_beta", 0.7, 0.1, 0.99)
    .doc("RFC 9438 section 4.6", "what a loss leaves of the window (the linux form rounds it to 1/1024)");
const FAST_CONVERGENCE: Setting = Setting::switch("cubic_fast_convergence", true)
    .doc("RFC 9438 section 4.7", "aim lower when a loss came below the last maximum, to make room for others");
const FRIENDLY: Setting = Setting::switch("cubic_friendliness", true)
    .doc("RFC 9438 section 4.3", "grow at least as AIMD with the same average would; this decides at data-center round trips");
const HYSTART: Setting = Setting::switch("cubic_hystart", false)
    .linux(1.0)
    .doc("tcp_cubic.c", "leave slow start by HyStart's tests, as hystart+cubic does");

/// `cubic`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "cubic",
    title: "CUBIC: grows along a cubic curve of time since the last loss",
    source: "RFC 9438",
    deploy: &[Place::Kernel("cubic")],
    params: &[
        FORM,
        C,
        BETA,
        FAST_CONVERGENCE,
        FRIENDLY,
        HYSTART,
        hystart::DETECT,
        hystart::LOW_WINDOW,
        hystart::PACED,
    ],
    ..Algorithm::of(Kind::Sender(|setup, args, ss| Ok(Box::new(Cubic::new(setup, args, ss)?))))
}];

/// What both forms are made from.
#[derive(Clone, Copy, Debug)]
struct Constants {
    c: f64,
    /// β: what a loss leaves.
    beta: f64,
    fast_convergence: bool,
    friendly: bool,
    hz: u64,
    counting: Counting,
}

/// The sender.
#[derive(Debug)]
pub struct Cubic {
    window: Window,
    slow_start: Box<dyn SlowStart>,
    curve: Curve,
    /// When the last outstanding byte was acknowledged, while none is outstanding.
    idle_since: Option<Time>,
    /// Window and curve before the last reduction. Set by `on_congestion`, taken by `on_undo`.
    before_reduction: Option<(Window, Curve)>,
}

#[derive(Clone, Debug)]
enum Curve {
    Rfc(Rfc),
    Kernel(Kernel),
}

impl Cubic {
    fn new(setup: &Setup, args: &Args, slow_start: Box<dyn SlowStart>) -> Result<Cubic, SettingError> {
        let profile = setup.profile;
        let constants = Constants {
            c: args.number(&C, profile)?,
            beta: args.number(&BETA, profile)?,
            fast_convergence: args.flag(&FAST_CONVERGENCE, profile)?,
            friendly: args.flag(&FRIENDLY, profile)?,
            hz: u64::from(setup.hz),
            counting: setup.counting,
        };
        let exit = HyStart::around(slow_start, setup, args)?;
        Ok(Cubic {
            window: Window { cwnd: setup.initial_window, ssthresh: setup.initial_ssthresh },
            slow_start: if args.flag(&HYSTART, profile)? { Box::new(exit) } else { exit.into_inner() },
            curve: if args.word(&FORM, profile)? == "linux" {
                Curve::Kernel(Kernel::new(&constants))
            } else {
                Curve::Rfc(Rfc::new(constants))
            },
            idle_since: None,
            before_reduction: None,
        })
    }

    /// Stops the curve's clock while nothing is outstanding (RFC 9438 section 5.8).
    fn skip_idle_time(&mut self, conn: &Conn, ack: &Ack) {
        if let (Some(since), Some(rtt)) = (self.idle_since, ack.rtt) {
            // What left first after the silence is acknowledged a round trip later.
            let sent = Time::from_ps(conn.now.ps().saturating_sub(rtt.ps()));
            if sent > since {
                self.curve.shift(sent.since(since), conn.now);
            }
        }
        self.idle_since = (conn.snd_una == conn.snd_nxt).then_some(conn.now);
    }
}

impl Curve {
    fn shift(&mut self, by: Duration, now: Time) {
        let start = match self {
            Curve::Rfc(c) => c.epoch.as_mut().map(|e| &mut e.start),
            Curve::Kernel(c) => c.epoch_start_mut(),
        };
        if let Some(start) = start {
            // `cubictcp_cwnd_event`, CA_EVENT_TX_START
            *start = (*start + by).min(now);
        }
    }

    /// ssthresh after a loss or mark at this window, of which `basis` packets count; the epoch ends.
    fn reduce(&mut self, cwnd: f64, basis: f64) -> f64 {
        match self {
            Curve::Rfc(c) => c.reduce(cwnd, basis),
            Curve::Kernel(c) => c.reduce(cwnd, basis),
        }
    }

    /// A timeout: nothing of the curve is worth keeping.
    fn forget(&mut self) {
        match self {
            Curve::Rfc(c) => c.w_max = 0.0,
            Curve::Kernel(c) => c.reset(),
        }
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        self.skip_idle_time(conn, ack);
        if let Curve::Kernel(c) = &mut self.curve {
            c.sample(conn.now, ack.rtt);
        }
        let mut segments = match &self.curve {
            Curve::Rfc(c) => c.constants.counting.segments(ack),
            Curve::Kernel(_) => Counting::Linux.segments(ack),
        };
        if self.window.in_slow_start() {
            // As `tcp_slow_start`: what is beyond ssthresh grows along the curve.
            segments = self.slow_start.on_ack(conn, ack, &mut self.window, ack.may_grow);
        } else {
            self.slow_start.on_ack(conn, ack, &mut self.window, false);
        }
        if ack.may_grow && segments > 0 && !self.window.in_slow_start() {
            match &mut self.curve {
                Curve::Rfc(c) => c.grow(&mut self.window.cwnd, conn, segments),
                Curve::Kernel(c) => c.grow(&mut self.window.cwnd, conn.now, segments),
            }
        }
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        if !cause.is_repeated() {
            self.before_reduction = Some((self.window, self.curve.clone()));
        }
        let Window { cwnd, ssthresh } = self.window;
        let reduced = self.curve.reduce(cwnd, conn.loss_basis);
        self.window = match cause {
            Cause::Loss | Cause::Ecn => Window { cwnd: cwnd.min(reduced), ssthresh: reduced },
            // Section 4.8: the next epoch begins at a W_max of its own, with K = 0.
            Cause::Timeout { repeated } => {
                self.curve.forget();
                Window { cwnd: 1.0, ssthresh: if repeated { ssthresh } else { reduced } }
            }
        };
        self.slow_start.reset(conn);
    }

    fn on_recovered(&mut self, _conn: &Conn, limit: Option<f64>) {
        self.window = self.window.capped(limit);
    }

    fn on_undo(&mut self, _conn: &Conn) {
        let Some((window, curve)) = self.before_reduction.take() else { return };
        self.window = self.window.restored(window);
        // RFC 9438 section 4.9 restores the curve too; the kernel only the window.
        if let Curve::Rfc(_) = curve {
            self.curve = curve;
        }
    }

    fn on_restart(&mut self, conn: &Conn, _idle: Duration, to: Window) {
        self.window = to;
        self.slow_start.reset(conn);
    }

    fn control(&self) -> Control {
        self.window.into()
    }

    fn growth_curve(&self) -> GrowthCurve {
        let (start, w_max) = match &self.curve {
            Curve::Rfc(c) => (c.epoch.map(|e| e.cwnd), c.w_max),
            Curve::Kernel(c) => c.epoch(),
        };
        if w_max <= 0.0 {
            return GrowthCurve::Undefined;
        }
        // Between a loss and the first growth after it the window stands where the curve will begin.
        GrowthCurve::Towards { start: start.unwrap_or(self.window.cwnd), w_max }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        match &self.curve {
            Curve::Rfc(c) => c.observe(probe),
            Curve::Kernel(c) => c.observe(probe),
        }
    }
}

/// W(t) of RFC 9438 equation 1, in packets; `t` and `k` in seconds.
fn w_cubic(c: f64, w_max: f64, k: f64, t: f64) -> f64 {
    c * (t - k).powi(3) + w_max
}

/// The RFC's form.
#[derive(Clone, Debug)]
struct Rfc {
    constants: Constants,
    /// Window of the last loss after fast convergence; 0 before the first and after a timeout.
    w_max: f64,
    /// Window just before the last reduction.
    cwnd_prior: f64,
    /// Set by the first growth in congestion avoidance, cleared by every reduction.
    epoch: Option<Epoch>,
    /// W(t) at the last ACK.
    w: f64,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Window at the start.
    cwnd: f64,
    /// Seconds until the curve is back at W_max.
    k: f64,
    w_est: f64,
}

impl Rfc {
    fn new(constants: Constants) -> Rfc {
        Rfc { constants, w_max: 0.0, cwnd_prior: 0.0, epoch: None, w: 0.0 }
    }

    fn begin(&mut self, cwnd: f64, now: Time) -> Epoch {
        // RFC 9438 section 4.2: K = cbrt((W_max - cwnd_epoch) / C), and 0 where the epoch begins at W_max or above.
        let k = if cwnd >= self.w_max {
            self.w_max = cwnd;
            0.0
        } else {
            // From 70 to 100: K = cbrt(30/0.4) = 4.22 s.
            ((self.w_max - cwnd) / self.constants.c).cbrt()
        };
        Epoch { start: now, cwnd, k, w_est: cwnd }
    }

    fn grow(&mut self, cwnd: &mut f64, conn: &Conn, segments: u32) {
        let acked = self.constants.counting.worth(segments);
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(*cwnd, conn.now),
        };
        let Constants { c, beta, friendly, .. } = self.constants;
        let t = conn.now.since(epoch.start).as_secs();
        // Section 4.3: α makes the average window that of Reno with 1 and 1/2; it is Reno's own 1 beyond the last maximum.
        // beta 0.7: 3 x 0.3/1.7 = 0.53 packets per window.
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        // Section 4.3: W_est += alpha segments_acked / cwnd.
        epoch.w_est += alpha * acked / *cwnd;
        self.w = w_cubic(c, self.w_max, epoch.k, t);
        // Section 4.3, the Reno-friendly region; the window does not fall to W_est.
        if friendly && self.w < epoch.w_est {
            *cwnd = cwnd.max(epoch.w_est);
        } else {
            // Section 4.2: the target is W_cubic(t + RTT), from cwnd to 1.5 cwnd; sections 4.4 and 4.5: each ACK adds
            // (target - cwnd) / cwnd.
            let target = w_cubic(c, self.w_max, epoch.k, t + conn.srtt.as_secs()).clamp(*cwnd, 1.5 * *cwnd);
            *cwnd += (target - *cwnd) * (acked / *cwnd).min(1.0);
        }
        self.epoch = Some(epoch);
    }

    fn reduce(&mut self, cwnd: f64, basis: f64) -> f64 {
        let Constants { beta, fast_convergence, .. } = self.constants;
        // Section 4.7: who has less than at the loss before makes room, W_max = cwnd (1 + beta) / 2.
        self.w_max = if fast_convergence && cwnd < self.w_max { cwnd * (1.0 + beta) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        // Section 4.6: ssthresh = flight_size beta, at least 2.
        (basis * beta).max(2.0)
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.value("cubic_w_max", self.w_max);
        probe.value("cubic_w", self.w);
        if let Some(epoch) = self.epoch {
            probe.value("cubic_k_s", epoch.k);
            probe.value("cubic_w_est", epoch.w_est);
        }
    }
}
