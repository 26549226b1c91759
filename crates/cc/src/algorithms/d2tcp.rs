//! D2TCP: DCTCP whose cut depends on the deadline: a flow that is late gives up less than its marks ask for, one with time to spare
//! gives up more.
//!
//! *Source*: Vamanan, Hasan and Vijaykumar, "Deadline-Aware Datacenter TCP (D2TCP)" (SIGCOMM 2012), section 3.
//!
//! *Departures* (docs/algorithms/d2tcp.md): Tc is taken in seconds (the paper has round trips, which cannot be compared with a
//! deadline); a deadline that has passed counts as none unless `d2tcp_missed_d` says otherwise. Without deadlines this is DCTCP.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::algorithms::dctcp::{self, MarkedFraction};
use crate::algorithms::reno::RenoCore;
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Kind, Needs, Setting, SettingError, Probe, Setup,
    SlowStart, Window,
};
use fanin_units::Duration;

const LEAST_D: Setting = Setting::parameter("d2tcp_least_d", 0.5, 0.01, 1.0)
    .doc("section 3.2", "least exponent: a far deadline, backing off more than DCTCP");
const MOST_D: Setting = Setting::parameter("d2tcp_most_d", 2.0, 1.0, 100.0)
    .doc("section 3.2", "greatest exponent: a near deadline, backing off less than DCTCP");
const MISSED_D: Setting = Setting::parameter("d2tcp_missed_d", 1.0, 0.01, 100.0)
    .doc("not in the paper; public ports take 1 or 0.5", "exponent once the deadline has passed");

/// `d2tcp`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "d2tcp",
    title: "D2TCP: DCTCP that backs off less the nearer the deadline",
    source: "Vamanan et al., SIGCOMM 2012",
    needs_ecn: true,
    deploy: &[Place::Twin("fanin_d2tcp")],
    params: &[dctcp::G, dctcp::ALPHA0, dctcp::FLOOR, dctcp::FORM, LEAST_D, MOST_D, MISSED_D],
    ..Algorithm::of(Kind::Sender(|setup, args, ss| Ok(Box::new(D2tcp::new(setup, args, ss)?))))
}];

/// The sender.
#[derive(Debug)]
pub struct D2tcp {
    core: RenoCore,
    fraction: MarkedFraction,
    least_d: f64,
    most_d: f64,
    missed_d: f64,
    /// d of the last reaction.
    d: f64,
}

impl D2tcp {
    fn new(setup: &Setup, args: &Args, slow_start: Box<dyn SlowStart>) -> Result<D2tcp, SettingError> {
        Ok(D2tcp {
            core: RenoCore::new(setup, slow_start),
            fraction: MarkedFraction::new(setup, args)?,
            least_d: args.number(&LEAST_D, setup.profile)?,
            most_d: args.number(&MOST_D, setup.profile)?,
            missed_d: args.number(&MISSED_D, setup.profile)?,
            d: 1.0,
        })
    }

    /// d = Tc/D: how much of the remaining time the rest of the message takes at three quarters of the window, the mean of a
    /// sawtooth between half of it and all.
    fn urgency(&self, conn: &Conn) -> f64 {
        // Without a deadline d = 1, which is DCTCP.
        let Some((message, deadline)) = conn.message.and_then(|m| m.deadline.map(|d| (m, d))) else { return 1.0 };
        if deadline <= conn.now {
            return self.missed_d;
        }
        // Tc = B / (3/4 W) round trips (section 3.2): B is what the message has left, 3/4 W the mean of a sawtooth from W/2 to W.
        // 200 packets at W = 40 are 6.67 windows of 30; at 300 us each 2 ms, so that a deadline in 1 ms has d = 2.
        let windows = message.unsent as f64 / f64::from(conn.mss) / (0.75 * self.core.window.cwnd);
        let needed = windows * conn.srtt.as_secs();
        // d = Tc/D, bounded to 0.5 to 2 (section 3.2).
        (needed / deadline.since(conn.now).as_secs()).clamp(self.least_d, self.most_d)
    }
}

impl CongestionControl for D2tcp {
    fn needs(&self) -> Needs {
        Needs { dctcp_ecn: true, empty_acks: self.fraction.counts_empty_acks(), ..Needs::default() }
    }
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        self.fraction.on_ack(conn, ack);
        self.core.on_ack(conn, ack, 1.0);
    }
    fn on_empty_ack(&mut self, conn: &Conn) {
        self.fraction.on_empty_ack(conn);
    }
    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        if cause != Cause::Ecn {
            return self.core.on_congestion(conn, cause);
        }
        self.d = self.urgency(conn);
        let cwnd = self.core.window.cwnd;
        // W (1 - p/2) with the penalty p = alpha^d (section 3); d = 1 is DCTCP, in its own arithmetic.
        // alpha 0.25 and 40 packets: d = 2 keeps 38.75, d = 1 keeps 35, d = 1/2 keeps 30.
        let left = if self.d == 1.0 { self.fraction.cut(cwnd) } else { self.fraction.cut_by(cwnd, self.d) };
        self.core.reduce(conn, left);
    }
    fn on_loss_in_cwr(&mut self, conn: &Conn, window: f64) {
        self.fraction.on_loss_in_cwr(&mut self.core, conn, window);
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
    fn observe(&self, probe: &mut dyn Probe) {
        self.fraction.observe(probe);
        probe.value("d2tcp_d", self.d);
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithms::testing::{Driver, set};
    use crate::model::close;
    use crate::{Args, Cause, Message, Setup, Value};
    use fanin_units::{Duration, Time};

    /// 40 packets of window, alpha 0.25 from one window with a quarter of its packets marked, 300 us.
    fn sender(mut args: Args) -> Driver {
        args.set("dctcp_g", Value::Number(1.0));
        let mut s = Driver::new("d2tcp", Setup { initial_window: 41.0, ..Setup::default() }, &args);
        s.conn.srtt = Duration::us(300);
        s.echo(false, false);
        for i in 0..40 {
            s.echo(i % 4 == 0, false);
        }
        assert_eq!(s.observed("dctcp_alpha"), 0.25);
        s.restart(40.0, 40.0);
        s.at(1.0);
        s
    }

    fn message(unsent: u64, deadline: Option<Duration>) -> Option<Message> {
        let now = Time::ZERO + Duration::s(1);
        Some(Message { unsent, sent: 0, deadline: deadline.map(|d| now + d), start: 0 })
    }

    fn cut(args: Args, message: Option<Message>) -> (f64, f64) {
        let mut s = sender(args);
        s.conn.message = message;
        s.congestion(Cause::Ecn);
        (s.observed("d2tcp_d"), s.cc.control().cwnd)
    }

    #[test]
    fn the_nearer_the_deadline_the_smaller_the_cut() {
        for (unsent, deadline, d, cwnd) in [
            (292_000, Some(Duration::ms(2)), 1.0, 35.0),
            (292_000, Some(Duration::ms(1)), 2.0, 38.75),
            (29_200, Some(Duration::ms(20)), 0.5, 30.0),
            (29_200, None, 1.0, 35.0),
        ] {
            let got = cut(Args::default(), message(unsent, deadline));
            close(got.0, d);
            close(got.1, cwnd);
        }
        close(cut(Args::default(), None).1, 35.0);
    }

    #[test]
    fn between_the_clamps_the_exponent_is_the_quotient() {
        // 200 packets at 30 per 300 us: 2 ms of 1.25.
        let (d, cwnd) = cut(Args::default(), message(292_000, Some(Duration::us(1250))));
        close(d, 1.6);
        close(cwnd, 40.0 * (1.0 - 0.25f64.powf(1.6) / 2.0));
    }

    #[test]
    fn a_missed_deadline_counts_as_none_unless_set() {
        let missed = Some(Message { unsent: 1460, sent: 0, deadline: Some(Time::ZERO), start: 0 });
        close(cut(Args::default(), missed).1, 35.0);
        close(cut(set("d2tcp_missed_d", Value::Number(0.5)), missed).1, 30.0);
    }

    #[test]
    fn nothing_left_to_send_backs_off_most() {
        close(cut(Args::default(), message(0, Some(Duration::ms(2)))).1, 30.0);
    }

    #[test]
    fn without_deadlines_it_is_dctcp() {
        let run = |name| {
            let mut s = Driver::new(name, Setup { initial_window: 10.0, ..Setup::default() }, &Args::default());
            (0..500)
                .map(|i| {
                    if i % 37 == 0 { s.ece_ack() } else { s.ack(None) }
                    s.cc.control().cwnd
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(run("d2tcp"), run("dctcp"));
    }
}
