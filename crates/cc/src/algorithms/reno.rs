//! Reno's window: slow start, additive increase, halving (RFC 5681). NewReno (RFC 6582) and SACK (RFC 6675) share it and differ in
//! how the sender repairs losses, which they say through [`Needs::recovery`].

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::{
    Ack, Algorithm, Args, Avoidance, Cause, CongestionControl, Conn, Control, Counting, Profile, Kind, Needs, PriorWindow,
    RecoveryKind, SettingError, Setup, SlowStart, Window,
};
use fanin_units::Duration;

/// `reno`, `newreno`, `sack`.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "reno",
        title: "Reno: halve on loss, leave recovery at the first new ACK (profile linux: with RACK and PRR)",
        source: "RFC 5681",
        deploy: &[Place::Kernel("reno")],
        ..Algorithm::of(Kind::Sender(|setup, args, ss| build(setup, args, ss, RecoveryKind::Reno)))
    },
    Algorithm {
        name: "newreno",
        title: "NewReno: stays in recovery until the whole window is repaired",
        source: "RFC 6582",
        deploy: &[Place::Kernel("reno")],
        ..Algorithm::of(Kind::Sender(|setup, args, ss| build(setup, args, ss, RecoveryKind::NewReno)))
    },
    Algorithm {
        name: "sack",
        title: "Reno's window with selective acknowledgements",
        source: "RFC 5681, RFC 6675",
        deploy: &[Place::Kernel("reno")],
        ..Algorithm::of(Kind::Sender(|setup, args, ss| build(setup, args, ss, RecoveryKind::Sack)))
    },
];

fn build(
    setup: &Setup,
    _args: &Args,
    slow_start: Box<dyn SlowStart>,
    recovery: RecoveryKind,
) -> Result<Box<dyn CongestionControl>, SettingError> {
    // Linux's module of this name decides the window alone; how losses are repaired is its stack's business (RACK-TLP, PRR).
    let stack_decides = recovery == RecoveryKind::Reno && setup.profile == Profile::Linux;
    Ok(Box::new(Reno { core: RenoCore::new(setup, slow_start), recovery: (!stack_decides).then_some(recovery) }))
}

/// The conventional sender.
#[derive(Debug)]
pub struct Reno {
    core: RenoCore,
    recovery: Option<RecoveryKind>,
}

impl CongestionControl for Reno {
    fn needs(&self) -> Needs {
        Needs { recovery: self.recovery, ..Needs::default() }
    }
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        self.core.on_ack(conn, ack, 1.0);
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
    }
}

/// The window that Reno, DCTCP, D2TCP, L2DCT and TRIM have in common.
#[derive(Debug)]
pub struct RenoCore {
    /// cwnd and ssthresh.
    pub window: Window,
    slow_start: Box<dyn SlowStart>,
    avoidance: Avoidance,
    /// Half of a window is a whole number (`tcp_reno_ssthresh`).
    whole_packets: bool,
    prior: PriorWindow,
}

impl RenoCore {
    /// At the initial window.
    pub fn new(setup: &Setup, slow_start: Box<dyn SlowStart>) -> RenoCore {
        RenoCore {
            window: Window { cwnd: setup.initial_window, ssthresh: setup.initial_ssthresh },
            slow_start,
            avoidance: Avoidance::new(setup.counting),
            whole_packets: setup.counting == Counting::Linux,
            prior: PriorWindow::default(),
        }
    }

    /// Grows by `step` packets per window above ssthresh, by slow start below.
    pub fn on_ack(&mut self, conn: &Conn, ack: &Ack, step: f64) {
        let mut segments = self.avoidance.segments(ack);
        if self.window.in_slow_start() {
            // RFC 5681 section 3.1, equation 2, or the slow start that was asked for; what is beyond ssthresh counts below.
            segments = self.slow_start.on_ack(conn, ack, &mut self.window, ack.may_grow);
        } else {
            self.slow_start.on_ack(conn, ack, &mut self.window, false);
        }
        // RFC 5681 section 3.1, equation 3: one packet (`step`) per window of acknowledged data.
        if ack.may_grow && !self.window.in_slow_start() {
            self.avoidance.grow(&mut self.window.cwnd, conn.mss, segments, step);
        }
    }

    /// Halves what `conn.loss_basis` counts, at least to 2; a timeout goes on from 1 (RFC 5681 section 3.1, equation 4).
    pub fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        // RFC 5681 equation 4: ssthresh = max(FlightSize / 2, 2 SMSS).
        let half = conn.loss_basis / 2.0;
        // `tcp_reno_ssthresh`: max(snd_cwnd >> 1, 2).
        let half = if self.whole_packets { half.floor() } else { half }.max(2.0);
        match cause {
            Cause::Loss | Cause::Ecn => {
                let cwnd = self.window.cwnd;
                self.reduce(conn, half);
                // ns-2's `slowdown`: ssthresh is the whole part of half of the window, cwnd all of it.
                if conn.keeps_fraction {
                    self.window.cwnd = (cwnd / 2.0).max(1.0);
                }
            }
            Cause::Timeout { repeated } => self.timeout(conn, (!repeated).then_some(half)),
        }
    }

    /// Sets ssthresh, and cwnd unless it is smaller already (1 after a timeout), to `packets`.
    pub fn reduce(&mut self, conn: &Conn, packets: f64) {
        self.prior.remember(self.window, false);
        self.window = Window { cwnd: packets.min(self.window.cwnd), ssthresh: packets };
        self.avoidance.reset();
        self.slow_start.reset(conn);
    }

    /// One packet, and a new ssthresh unless this is a repeated timeout of the same segment.
    pub fn timeout(&mut self, conn: &Conn, ssthresh: Option<f64>) {
        self.prior.remember(self.window, ssthresh.is_none());
        // RFC 5681 section 3.1: the loss window is one segment; a repeated timeout keeps ssthresh.
        self.window = Window { cwnd: 1.0, ssthresh: ssthresh.unwrap_or(self.window.ssthresh) };
        self.avoidance.reset();
        self.slow_start.reset(conn);
    }

    /// Caps cwnd at the end of a recovery.
    pub fn on_recovered(&mut self, limit: Option<f64>) {
        self.window = self.window.capped(limit);
    }

    /// Takes the last reduction back.
    pub fn on_undo(&mut self) {
        // `tcp_undo_cwnd_reduction`: max(snd_cwnd, prior_cwnd), and of ssthresh the larger, too.
        self.prior.restore(&mut self.window);
    }

    /// Window validation's verdict.
    pub fn on_restart(&mut self, conn: &Conn, to: Window) {
        self.window = to;
        // `tcp_cwnd_restart` leaves the credit (`snd_cwnd_cnt`).
        if !self.whole_packets {
            self.avoidance.reset();
        }
        self.slow_start.reset(conn);
    }
}
