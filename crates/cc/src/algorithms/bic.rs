//! BIC: after a loss the window is searched for by halving the distance to the window of the last loss, in steps of at most
//! Smax, and beyond it by ever larger steps.
//!
//! *Source*: Xu, Harfoush and Rhee, "Binary Increase Congestion Control" (INFOCOM 2004), in the integers of `tcp_bic.c`.
//!
//! *Departures* (docs/algorithms/bic.md): the kernel's correction for delayed ACKs is on under Linux's profile only.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Counting, Credit, Kind, PriorWindow, Probe, Setting,
    SettingError, Setup, SlowStart, State, Window,
};
use fanin_units::{Duration, Time};

const LOW_WINDOW: Setting = Setting::parameter("bic_low_window", 14.0, 0.0, 1e6)
    .unit("packets")
    .doc("tcp_bic.c low_window", "up to this window it is Reno");
const MAX_INCREMENT: Setting = Setting::parameter("bic_max_increment", 16.0, 1.0, 1e6)
    .unit("packets")
    .doc("tcp_bic.c max_increment", "Smax: greatest growth per round trip");
const SMOOTH_PART: Setting = Setting::parameter("bic_smooth_part", 20.0, 1.0, 1000.0).doc(
    "tcp_bic.c smooth_part",
    "round trips from one packet below the last maximum to it, in a quarter of them (ns-3 has 5)",
);
const BETA: Setting = Setting::parameter("bic_beta", 819.0 / 1024.0, 0.1, 0.99)
    .doc("tcp_bic.c beta", "what a loss leaves of the window, rounded to 1/1024");
const FAST_CONVERGENCE: Setting = Setting::switch("bic_fast_convergence", true)
    .doc("tcp_bic.c fast_convergence", "aim lower when a loss came below the last maximum, to make room for others");
const DELAYED_ACK: Setting = Setting::switch("bic_delayed_ack", false)
    .linux(1.0)
    .doc("tcp_bic.c bictcp_acked", "grow faster by the measured number of packets per ACK (the kernel does, ns-3 does not)");

/// `bic`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "bic",
    title: "BIC: binary search for the window of the last loss",
    source: "Xu et al., INFOCOM 2004; tcp_bic.c",
    deploy: &[Place::Kernel("bic")],
    params: &[LOW_WINDOW, MAX_INCREMENT, SMOOTH_PART, BETA, FAST_CONVERGENCE, DELAYED_ACK],
    ..Algorithm::of(Kind::Sender(|setup, args, ss| Ok(Box::new(Bic::new(setup, args, ss)?))))
}];

/// Divisor of the distance to the last maximum (`BICTCP_B`).
const SEARCH: u64 = 4;
/// Packets per ACK are kept in 1/16.
const RATIO: u64 = 16;
/// Acknowledged packets per packet of growth at most, while no loss has been seen.
const MOST_BEFORE_LOSS: u64 = 20;
/// How long a growth step is kept while the window stands (HZ/32 jiffies).
const KEEP: Duration = Duration::us(31_250);

/// The sender.
#[derive(Debug)]
pub struct Bic {
    window: Window,
    slow_start: Box<dyn SlowStart>,
    low_window: u64,
    max_increment: u64,
    smooth_part: u64,
    /// β in 1/1024.
    beta: u64,
    fast_convergence: bool,
    correct: bool,
    /// Window of the last loss after fast convergence; 0 before the first and after a timeout.
    last_max: u64,
    /// Packets per ACK in 1/16.
    delayed_ack: u64,
    /// Acknowledged packets per packet of growth, with the window and the time it was found for.
    cnt: u64,
    found: Option<(u64, Time)>,
    credit: Credit,
    prior: PriorWindow,
}

impl Bic {
    fn new(setup: &Setup, args: &Args, slow_start: Box<dyn SlowStart>) -> Result<Bic, SettingError> {
        let whole = |param| args.number(param, setup.profile).map(|x| x.round() as u64);
        Ok(Bic {
            window: Window { cwnd: setup.initial_window, ssthresh: setup.initial_ssthresh },
            slow_start,
            low_window: whole(&LOW_WINDOW)?,
            max_increment: whole(&MAX_INCREMENT)?,
            smooth_part: whole(&SMOOTH_PART)?,
            beta: (args.number(&BETA, setup.profile)? * 1024.0).round() as u64,
            fast_convergence: args.flag(&FAST_CONVERGENCE, setup.profile)?,
            correct: args.flag(&DELAYED_ACK, setup.profile)?,
            last_max: 0,
            delayed_ack: 2 * RATIO,
            cnt: 0,
            found: None,
            credit: Credit::default(),
            prior: PriorWindow::default(),
        })
    }

    /// `bictcp_update`: acknowledged packets per packet of growth at this window.
    fn step(&self, cwnd: u64) -> u64 {
        // Small windows grow as Reno's: a packet per window.
        if cwnd <= self.low_window {
            return cwnd;
        }
        // Close to the last maximum: smooth_part round trips for the last BICTCP_B packets.
        // 100 packets below 200: distance 25 is above Smax = 16, so cnt = 6; at 198 distance 0, so cnt = 990.
        let smooth = cwnd * self.smooth_part / SEARCH;
        let mut cnt = if cwnd < self.last_max {
            // Below the last maximum: binary search, a quarter of the distance per round trip, at most Smax and at least smoothly.
            match (self.last_max - cwnd) / SEARCH {
                distance if distance > self.max_increment => cwnd / self.max_increment,
                0 | 1 => smooth,
                distance => cwnd / distance,
            }
        } else if cwnd < self.last_max + SEARCH {
            smooth
        // Beyond the last maximum max probing: faster with the distance, until Smax per round trip.
        } else if cwnd < self.last_max + self.max_increment * (SEARCH - 1) {
            cwnd * (SEARCH - 1) / (cwnd - self.last_max)
        } else {
            cwnd / self.max_increment
        };
        // Before the first loss at least 5 % per round trip.
        if self.last_max == 0 {
            cnt = cnt.min(MOST_BEFORE_LOSS);
        }
        if self.correct {
            // Receivers that delay ACKs send fewer than there are packets: (ca->cnt << ACK_RATIO_SHIFT) / ca->delayed_ack.
            cnt = cnt * RATIO / self.delayed_ack.max(1);
        }
        cnt.max(1)
    }

    fn grow(&mut self, now: Time, segments: u32) {
        let cwnd = self.window.cwnd.max(1.0) as u64;
        // `bictcp_update` computes anew where the window has changed, or 1/32 s have passed.
        if self.found.is_none_or(|(window, at)| window != cwnd || now.since(at) > KEEP) {
            self.found = Some((cwnd, now));
            self.cnt = self.step(cwnd);
        }
        self.credit.grow(&mut self.window.cwnd, self.cnt, segments);
    }

    /// `bictcp_recalc_ssthresh`.
    fn reduced(&mut self, basis: f64) -> f64 {
        let cwnd = self.window.cwnd as u64;
        let basis = basis.max(0.0) as u64;
        self.found = None;
        // Fast convergence: a loss below the last one gives room to others, last_max = cwnd (1 + beta) / 2.
        let lower = self.fast_convergence && cwnd < self.last_max;
        self.last_max = if lower { cwnd * (1024 + self.beta) / 2048 } else { cwnd };
        // Up to low_window half as in Reno, else beta.
        let left = if cwnd <= self.low_window { basis / 2 } else { basis * self.beta / 1024 };
        left.max(2) as f64
    }
}

impl CongestionControl for Bic {
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        if conn.state == State::Open && ack.acked_segments > 0 {
            // `bictcp_acked`: a mean over 16 ACKs, in the state Open alone.
            self.delayed_ack = self.delayed_ack - self.delayed_ack / RATIO + u64::from(ack.acked_segments);
        }
        let mut segments = Counting::Linux.segments(ack);
        if self.window.in_slow_start() {
            segments = self.slow_start.on_ack(conn, ack, &mut self.window, ack.may_grow);
        } else {
            self.slow_start.on_ack(conn, ack, &mut self.window, false);
        }
        if ack.may_grow && segments > 0 && !self.window.in_slow_start() {
            self.grow(conn.now, segments);
        }
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        self.prior.remember(self.window, cause.is_repeated());
        let Window { cwnd, ssthresh } = self.window;
        let reduced = self.reduced(conn.loss_basis);
        self.window = match cause {
            Cause::Loss | Cause::Ecn => Window { cwnd: cwnd.min(reduced), ssthresh: reduced },
            Cause::Timeout { repeated } => {
                // `bictcp_reset`: a timeout forgets the curve.
                self.last_max = 0;
                self.delayed_ack = 2 * RATIO;
                self.credit = Credit::default();
                Window { cwnd: 1.0, ssthresh: if repeated { ssthresh } else { reduced } }
            }
        };
        self.slow_start.reset(conn);
    }

    fn on_recovered(&mut self, _conn: &Conn, limit: Option<f64>) {
        self.window = self.window.capped(limit);
    }

    fn on_undo(&mut self, _conn: &Conn) {
        self.prior.restore(&mut self.window);
    }

    fn on_restart(&mut self, conn: &Conn, _idle: Duration, to: Window) {
        self.window = to;
        self.slow_start.reset(conn);
    }

    fn control(&self) -> Control {
        self.window.into()
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.value("bic_last_max", self.last_max as f64);
        probe.value("bic_cnt", self.cnt as f64);
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithms::testing::{Driver, set};
    use crate::{Args, Cause, Profile, Setup, Value};

    fn sender(cwnd: f64, profile: Profile, args: &Args) -> Driver {
        let setup = Setup { initial_window: cwnd, initial_ssthresh: 1.0, profile, ..Setup::default() };
        Driver::new("bic", setup, args)
    }

    /// Lost at `last_max`, now at `cwnd`.
    fn after_loss(last_max: f64, cwnd: f64, profile: Profile, args: &Args) -> Driver {
        let mut s = sender(last_max, profile, args);
        s.congestion(Cause::Loss);
        s.restart(cwnd, cwnd);
        s
    }

    const TABLE: [(f64, f64, f64); 7] =
        [(10.0, 10.0, 10.0), (100.0, 6.0, 3.0), (180.0, 36.0, 18.0), (198.0, 990.0, 495.0), (201.0, 1005.0, 502.0), (210.0, 63.0, 31.0), (260.0, 16.0, 8.0)];

    #[test]
    fn the_step_searches_for_the_last_maximum() {
        for (cwnd, one_per_ack, two_per_ack) in TABLE {
            let mut s = after_loss(200.0, cwnd, Profile::Rfc, &Args::default());
            s.ack(None);
            assert_eq!(s.observed("bic_cnt"), one_per_ack, "{cwnd}");
            // An ACK for two packets leaves the kernel's estimate at its start, two per ACK.
            let mut s = after_loss(200.0, cwnd, Profile::Linux, &Args::default());
            s.ack_with(2, |_| {});
            assert_eq!(s.observed("bic_cnt"), two_per_ack, "{cwnd}");
        }
    }

    #[test]
    fn the_window_grows_by_one_packet_per_step() {
        let mut s = after_loss(200.0, 100.0, Profile::Rfc, &Args::default());
        for _ in 0..5 {
            s.ack(None);
        }
        assert_eq!(s.cc.control().cwnd, 100.0);
        s.ack(None);
        assert_eq!(s.cc.control().cwnd, 101.0);
    }

    #[test]
    fn ns3_creeps_faster_at_the_last_maximum() {
        let mut s = after_loss(200.0, 198.0, Profile::Rfc, &set("bic_smooth_part", Value::Number(5.0)));
        s.ack(None);
        assert_eq!(s.observed("bic_cnt"), 247.0);
    }

    #[test]
    fn a_loss_leaves_four_fifths_and_remembers_where() {
        let mut s = sender(90.0, Profile::Rfc, &Args::default());
        s.congestion(Cause::Loss);
        s.restart(100.0, 50.0);
        s.congestion(Cause::Loss);
        assert_eq!((s.observed("bic_last_max"), s.cc.control().ssthresh), (100.0, 79.0));
        s.restart(80.0, 50.0);
        s.congestion(Cause::Ecn);
        assert_eq!((s.observed("bic_last_max"), s.cc.control().ssthresh), (71.0, 63.0));
        let mut s = sender(12.0, Profile::Rfc, &Args::default());
        s.congestion(Cause::Loss);
        assert_eq!((s.observed("bic_last_max"), s.cc.control().ssthresh), (12.0, 6.0));
    }

    #[test]
    fn a_timeout_forgets_the_last_maximum() {
        let mut s = after_loss(200.0, 100.0, Profile::Rfc, &Args::default());
        s.congestion(Cause::Timeout { repeated: false });
        assert_eq!((s.cc.control().cwnd, s.cc.control().ssthresh, s.observed("bic_last_max")), (1.0, 79.0, 0.0));
        s.restart(400.0, 10.0);
        s.ack(None);
        assert_eq!(s.observed("bic_cnt"), 20.0);
    }
}
