//! Swift: keeps the delay at a target by adding a packet per round trip below it and cutting in proportion to the excess above it. The
//! window may be less than one packet: then packets are paced.
//!
//! *Source*: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter" (SIGCOMM 2020), Algorithm 1
//! and sections 3.1 to 3.5.
//!
//! *Departures* (docs/algorithms/swift.md): one delay, the round trip, and so one window (hosts here have no queue that Swift's second
//! window would see); the path's own base round trip stands for the paper's count of hops; slow start until the first delay above
//! the target, since the paper does not say how a connection starts.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Gate, Kind, Needs, PriorWindow, Probe, Setting,
    SettingError, Setup, SlowStart, Window,
};
use fanin_units::{Duration, Time};

const BASE: Setting = Setting::parameter("swift_base_target", 0.0, 0.0, 10.0)
    .unit("s")
    .doc("section 3.5", "target delay of a connection with a large window; 0 computes it from the path's base round trip");
const SLACK: Setting = Setting::parameter("swift_slack", 1.0, 0.0, 100.0)
    .doc("section 3.5", "computed target: so many base round trips above the base round trip");
const AI: Setting =
    Setting::parameter("swift_ai", 1.0, 0.001, 1000.0).unit("packets").doc("Algorithm 1", "added per round trip below the target");
const BETA: Setting =
    Setting::parameter("swift_beta", 0.8, 0.0, 1.0).doc("Algorithm 1", "share of the excess delay that is cut from the window");
const MAX_MDF: Setting =
    Setting::parameter("swift_max_mdf", 0.5, 0.0, 1.0).doc("Algorithm 1", "greatest cut, and the cut after a loss");
const FS_RANGE: Setting = Setting::parameter("swift_fs_range", 5.0, 0.0, 100.0)
    .unit("base round trips")
    .doc("section 3.5", "most that flow scaling adds to the target");
const FS_MIN: Setting = Setting::parameter("swift_fs_min_cwnd", 0.1, 1e-6, 1e6)
    .unit("packets")
    .doc("section 3.5", "window from which on flow scaling adds all of it");
const FS_MAX: Setting = Setting::parameter("swift_fs_max_cwnd", 100.0, 1e-6, 1e9)
    .unit("packets")
    .doc("section 3.5", "window from which on it adds nothing");
const MIN_CWND: Setting =
    Setting::parameter("swift_min_cwnd", 0.001, 1e-6, 1.0).unit("packets").doc("Algorithm 1", "least window");

/// Timeouts in a row that reset the window (Algorithm 1, RETX_RESET_THRESHOLD).
const RESET_AFTER: u32 = 4;
/// Base target where neither it nor the path is known.
const UNKNOWN_PATH: f64 = 25e-6;

/// `swift`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "swift",
    title: "Swift: holds the round trip at a target, with windows below one packet",
    source: "Kumar et al., SIGCOMM 2020",
    params: &[BASE, SLACK, AI, BETA, MAX_MDF, FS_RANGE, FS_MIN, FS_MAX, MIN_CWND],
    ..Algorithm::of(Kind::Sender(build))
}];

fn build(setup: &Setup, args: &Args, slow_start: Box<dyn SlowStart>) -> Result<Box<dyn CongestionControl>, SettingError> {
    let number = |param| args.number(param, setup.profile);
    let (fs_min, fs_max) = (number(&FS_MIN)?, number(&FS_MAX)?);
    if fs_min >= fs_max {
        return Err(SettingError::BadValue {
            name: FS_MIN.name,
            value: fs_min.to_string(),
            expected: format!("below swift_fs_max_cwnd, {fs_max} packets"),
        });
    }
    let base_rtt = setup.path.map_or(UNKNOWN_PATH, |path| path.base_rtt.as_secs());
    let base_target = match number(&BASE)? {
        0.0 => base_rtt * (1.0 + number(&SLACK)?),
        set => set,
    };
    let range = number(&FS_RANGE)? * base_rtt;
    // Section 3.5: flow scaling adds all of its range at fs_min_cwnd and nothing from fs_max_cwnd on.
    let alpha = range / (1.0 / fs_min.sqrt() - 1.0 / fs_max.sqrt());
    Ok(Box::new(Swift {
        base_target,
        range,
        alpha,
        beta_fs: -alpha / fs_max.sqrt(),
        ai: number(&AI)?,
        beta: number(&BETA)?,
        max_mdf: number(&MAX_MDF)?,
        min_cwnd: number(&MIN_CWND)?,
        slow_start,
        window: Window { cwnd: setup.initial_window, ssthresh: setup.initial_ssthresh },
        prior: PriorWindow::default(),
        last_decrease: None,
        rtt: Duration::ZERO,
        timeouts: 0,
    }))
}

/// One connection.
#[derive(Debug)]
struct Swift {
    /// Seconds.
    base_target: f64,
    /// Most that flow scaling adds, and its two constants; seconds.
    range: f64,
    alpha: f64,
    beta_fs: f64,
    ai: f64,
    beta: f64,
    max_mdf: f64,
    min_cwnd: f64,
    slow_start: Box<dyn SlowStart>,
    /// The real window, which may be below 1.
    window: Window,
    prior: PriorWindow,
    /// When the window last became smaller.
    last_decrease: Option<Time>,
    /// The last sample.
    rtt: Duration,
    /// In a row.
    timeouts: u32,
}

impl Swift {
    /// Target delay in seconds (section 3.5): more for smaller windows, since many flows queue more by chance.
    fn target(&self) -> f64 {
        // base + max(0, min(alpha / sqrt(cwnd) + beta, fs_range)).
        // Base 25 us: alpha = 125/(1/sqrt(0.1) - 0.1) = 40.8 us, and a window of 4 has 16.3 us more than one of 100.
        let scaling = self.alpha / self.window.cwnd.sqrt() + self.beta_fs;
        self.base_target + scaling.clamp(0.0, self.range)
    }

    fn cut_for(&mut self, conn: &Conn, cause: Cause) {
        match cause {
            Cause::Timeout { .. } => {
                self.timeouts += 1;
                // Algorithm 1: after RETX_RESET_THRESHOLD timeouts in a row the least window.
                if self.timeouts >= RESET_AFTER {
                    return self.cut(conn, 0.0);
                }
            }
            Cause::Loss | Cause::Ecn => self.timeouts = 0,
        }
        if self.can_decrease(conn.now) {
            // At most once per round trip, as the delay's own cuts: can_decrease of Algorithm 1.
            // Algorithm 1: a loss cuts by max_mdf.
            self.cut(conn, 1.0 - self.max_mdf);
        }
    }

    /// At most one cut per round trip.
    fn can_decrease(&self, now: Time) -> bool {
        self.last_decrease.is_none_or(|last| now - last >= self.rtt)
    }

    fn cut(&mut self, conn: &Conn, factor: f64) {
        let cwnd = (self.window.cwnd * factor).max(self.min_cwnd);
        self.window = Window { cwnd, ssthresh: cwnd };
        self.last_decrease = Some(conn.now);
        self.slow_start.reset(conn);
    }
}

impl CongestionControl for Swift {
    fn needs(&self) -> Needs {
        // Delays are of single packets (section 3.1), and a window below 1 is a wait before each packet.
        Needs { quickack: true, send_hook: true, ..Needs::default() }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        self.timeouts = 0;
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt;
        }
        let (delay, target) = (self.rtt.as_secs(), self.target());
        if delay < target {
            if self.window.in_slow_start() {
                self.slow_start.on_ack(conn, ack, &mut self.window, ack.may_grow);
            } else if ack.may_grow {
                // Algorithm 1 lines 5 to 9.
                let acked = f64::from(ack.acked_segments);
                // cwnd + ai num_acked / cwnd from 1 packet on, and + ai num_acked below.
                self.window.cwnd += self.ai * acked / self.window.cwnd.max(1.0);
                self.window.ssthresh = self.window.cwnd;
            }
        } else if self.can_decrease(conn.now) {
            // Algorithm 1 lines 10 to 12.
            self.cut(conn, (1.0 - self.beta * (delay - target) / delay).max(1.0 - self.max_mdf));
        }
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        // An undo goes back to the window before the first of several timeouts; delay's own cuts are never undone.
        // Repeated timeouts leave ssthresh alone (RFC 5681 section 3.1; Swift has none).
        let ssthresh = self.window.ssthresh;
        let repeated = matches!(cause, Cause::Timeout { repeated: true });
        self.prior.remember(self.window, repeated);
        self.cut_for(conn, cause);
        if repeated {
            self.window.ssthresh = ssthresh;
        }
    }

    fn on_recovered(&mut self, _conn: &Conn, limit: Option<f64>) {
        self.window = self.window.capped(limit);
    }

    fn on_undo(&mut self, _conn: &Conn) {
        self.prior.restore(&mut self.window);
    }

    fn on_restart(&mut self, conn: &Conn, _idle: Duration, to: Window) {
        self.window = Window { cwnd: self.window.cwnd.min(to.cwnd), ssthresh: to.ssthresh };
        self.slow_start.reset(conn);
    }

    /// A window below 1: a packet every RTT / cwnd (Algorithm 1 line 29).
    fn before_send(&mut self, conn: &Conn, since_last: Option<Duration>) -> Gate {
        let Some(since_last) = since_last.filter(|_| self.window.cwnd < 1.0) else { return Gate::Go };
        let gap = Duration::from_secs(self.rtt.as_secs() / self.window.cwnd);
        if since_last >= gap { Gate::Go } else { Gate::HoldUntil(conn.now + (gap - since_last)) }
    }

    fn control(&self) -> Control {
        let Window { cwnd, ssthresh } = self.window;
        Window { cwnd: cwnd.max(1.0), ssthresh: ssthresh.max(1.0) }.into()
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.value("swift_cwnd", self.window.cwnd);
        probe.value("swift_target_s", self.target());
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithms::testing::{Driver, set};
    use crate::model::close;
    use crate::{Args, Cause, Gate, Setup, Value};
    use fanin_units::Duration;

    /// Ten packets in congestion avoidance, target 100 us whatever the window.
    fn steady(cwnd: f64) -> Driver {
        let mut args: Args = set("swift_base_target", Value::Number(100e-6));
        args.set("swift_fs_range", Value::Number(0.0));
        Driver::new("swift", Setup { initial_window: cwnd, initial_ssthresh: 2.0, ..Setup::default() }, &args)
    }

    #[test]
    fn below_the_target_a_window_grows_by_a_packet_per_round_trip() {
        let mut s = steady(10.0);
        s.ack(Some(Duration::us(99)));
        close(s.observed("swift_cwnd"), 10.1);
        for _ in 0..9 {
            s.ack(Some(Duration::us(99)));
        }
        assert!((10.9..11.0).contains(&s.observed("swift_cwnd")));
    }

    #[test]
    fn above_it_the_cut_is_in_proportion_once_per_round_trip() {
        let mut s = steady(10.0);
        s.wait(Duration::ms(1));
        // 1 - 0.8 (160 - 100)/160 = 0.7.
        s.ack(Some(Duration::us(160)));
        close(s.observed("swift_cwnd"), 7.0);
        s.wait(Duration::us(159));
        s.ack(Some(Duration::us(160)));
        close(s.observed("swift_cwnd"), 7.0);
        s.wait(Duration::us(841));
        // 1 - 0.8 x 900/1000 = 0.28 is less than half: half it is.
        s.ack(Some(Duration::us(1000)));
        close(s.observed("swift_cwnd"), 3.5);
    }

    #[test]
    fn a_window_below_one_is_a_wait_between_packets() {
        let mut s = steady(1.0);
        s.wait(Duration::ms(1));
        s.ack(Some(Duration::us(1000)));
        close(s.observed("swift_cwnd"), 0.5);
        assert_eq!(s.cc.control().cwnd, 1.0);
        let gate = s.cc.before_send(&s.conn, Some(Duration::us(500)));
        assert_eq!(gate, Gate::HoldUntil(s.conn.now + Duration::us(1500)));
        assert_eq!(s.cc.before_send(&s.conn, Some(Duration::us(2000))), Gate::Go);
    }

    #[test]
    fn small_windows_have_a_higher_target() {
        // Base 25 us doubled; range 125 us; alpha = 125/(1/sqrt(0.1) - 0.1) = 40.82 us.
        let target = |cwnd| {
            let setup = Setup { initial_window: cwnd, initial_ssthresh: 2.0, ..Setup::default() };
            Driver::new("swift", setup, &Args::default()).observed("swift_target_s") * 1e6
        };
        close(target(100.0), 50.0);
        let alpha = 125.0 / (1.0 / 0.1f64.sqrt() - 0.1);
        close(target(4.0), 50.0 + alpha * 0.4);
    }

    #[test]
    fn the_fourth_timeout_in_a_row_resets_the_window() {
        let mut s = steady(64.0);
        for expected in [32.0, 16.0, 8.0, 0.001] {
            s.wait(Duration::ms(10));
            s.congestion(Cause::Timeout { repeated: expected < 32.0 });
            close(s.observed("swift_cwnd"), expected);
        }
    }
}
