//! DCVegas: Vegas with a faster start (2.5 times per round trip) and a step that grows with every round trip the path stays idle.
//!
//! *Source*: "A Delay-Based TCP for Data Center Networks", section III, equations 1 and 5 to 7. Where the paper is silent (loss,
//! timeout, whose round trip, what a round trip is) it is NS2's `tcp-vegas.cc`, the code base it names.
//!
//! *Departures*: NS2's retransmission on the first duplicate ACK after a fine-grained timeout belongs to loss recovery and is left
//! to the sender, with its rule to halve instead of cutting a quarter when the lost packet had been retransmitted before.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Counting, Kind, Needs, PriorWindow, Probe, Setting,
    SettingError, Setup, SlowStart, Window,
};
use fanin_units::Duration;

const ALPHA: Setting =
    Setting::parameter("dcvegas_alpha", 1.0, 0.0, 1000.0).unit("packets").doc("section III-B", "fewer queued: speed up");
const BETA: Setting =
    Setting::parameter("dcvegas_beta", 2.0, 0.0, 1000.0).unit("packets").doc("section III-B", "more queued: slow down by more than 1");
const GAMMA: Setting = Setting::parameter("dcvegas_gamma", 0.5, 0.0, 1000.0)
    .unit("packets")
    .doc("section III-A", "more queued: slow start ends");
const START_STEP: Setting = Setting::parameter("dcvegas_start_step", 1.5, 0.1, 100.0)
    .unit("packets")
    .doc("equation 5", "growth per ACK in slow start");
const CHECK: Setting = Setting::switch("dcvegas_window_check", true)
    .doc("NS2 tcp-vegas.cc", "grow only while the window is used up to two packets");
const RTT: Setting = Setting::choice("dcvegas_rtt", &["mean", "ewma"]).doc(
    "equation 1",
    "the smoothed round trip: the mean of the samples since the last decision, as in NS2, or a moving average with RFC 6298's weight of 1/8",
);

/// `dcvegas`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "dcvegas",
    title: "DCVegas: delay-based, fast start and accelerating steps",
    source: "Chan and Chang, A Delay-Based TCP for Data Center Networks",
    deploy: &[Place::Twin("fanin_dcvegas")],
    params: &[ALPHA, BETA, GAMMA, START_STEP, CHECK, RTT],
    ..Algorithm::of(Kind::Sender(|setup, args, slow_start| Ok(Box::new(DcVegas::new(setup, args, slow_start)?))))
}];

/// Least window in packets.
const MIN_CWND: f64 = 2.0;
/// Two values of the queue estimate this close are the same (spec 12.4).
const EQUAL: f64 = 1e-9;

/// The delay-based sender.
#[derive(Debug)]
pub struct DcVegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    start_step: f64,
    check: bool,
    counting: Counting,
    /// Set when another slow start was asked for (`gss+dcvegas`).
    start: Option<Box<dyn SlowStart>>,
    window: Window,
    prior: PriorWindow,
    /// Smallest sample in seconds.
    base_rtt: f64,
    /// Sum and number of the samples since the last decision.
    samples: (f64, u32),
    /// First byte not sent at the last decision: the next one comes with the first ACK of data from here on.
    mark: Option<u64>,
    /// Packets to add per ACK until the next decision.
    incr: f64,
    /// Decisions in a row that found the path idle.
    succ: f64,
    /// Packets queued by this connection at the last decision (equation 1).
    delta: f64,
    /// The smoothed round trip is a moving average of all samples, in seconds once there is one.
    ewma: Option<Option<f64>>,
}

impl DcVegas {
    fn new(setup: &Setup, args: &Args, slow_start: Box<dyn SlowStart>) -> Result<DcVegas, SettingError> {
        let number = |param| args.number(param, setup.profile);
        let (alpha, beta) = (number(&ALPHA)?, number(&BETA)?);
        if alpha > beta {
            return Err(SettingError::BadValue {
                name: ALPHA.name,
                value: alpha.to_string(),
                expected: format!("at most dcvegas_beta, {beta} packets"),
            });
        }
        Ok(DcVegas {
            alpha,
            beta,
            gamma: number(&GAMMA)?,
            start_step: number(&START_STEP)?,
            check: args.flag(&CHECK, setup.profile)?,
            counting: setup.counting,
            start: (!slow_start.is_standard()).then_some(slow_start),
            window: Window { cwnd: setup.initial_window, ssthresh: setup.initial_ssthresh },
            prior: PriorWindow::default(),
            base_rtt: f64::INFINITY,
            samples: (0.0, 0),
            mark: None,
            incr: 0.0,
            succ: 0.0,
            delta: 0.0,
            ewma: (args.word(&RTT, setup.profile)? == "ewma").then_some(None),
        })
    }

    /// Once per round trip (section III).
    fn decide(&mut self) {
        let (sum, count) = core::mem::take(&mut self.samples);
        if count == 0 {
            return;
        }
        let cwnd = self.window.cwnd;
        let smoothed = self.ewma.flatten().unwrap_or(sum / f64::from(count));
        // Equation 1: Delta = cwnd (1 - baseRTT / RTT), packets of its own in the queue.
        self.delta = cwnd * (1.0 - self.base_rtt / smoothed);
        if self.window.in_slow_start() {
            if self.delta > self.gamma {
                // NS2: ssthresh has no use but to end slow start.
                self.window.ssthresh = MIN_CWND;
            }
            return;
        }
        self.avoid();
    }

    /// Congestion avoidance (section III-B).
    fn avoid(&mut self) {
        let (delta, cwnd) = (self.delta, self.window.cwnd);
        let middle = (self.alpha + self.beta) / 2.0;
        self.incr = 0.0;
        if delta < self.alpha {
            self.succ += 1.0;
            // Equation 6: (beta - Delta) succ in all, at most the window, spread over the next round trip.
            // 20 packets, 204 us where 200 are the least: Delta = 0.39, and succ = 1 adds 1.61 in the next round trip.
            self.incr = ((self.beta - delta) * self.succ).min(cwnd) / cwnd;
            return;
        }
        self.succ = 0.0;
        if (delta - middle).abs() <= EQUAL {
            return;
        }
        if delta < middle {
            self.incr = 1.0 / cwnd;
        } else if delta <= self.beta {
            self.window.cwnd = (cwnd - 1.0).max(MIN_CWND);
        } else {
            // Equation 7: what is queued beyond the middle goes at once.
            // 240 us there: Delta = 3.33, and 20 - (3.33 - 1.5) = 18.17 packets are left.
            self.window.cwnd = (cwnd - (delta - middle)).max(MIN_CWND);
        }
    }

    fn grow(&mut self, conn: &Conn, ack: &Ack) {
        let growing = ack.may_grow && self.window.in_slow_start();
        if let Some(start) = &mut self.start {
            start.on_ack(conn, ack, &mut self.window, growing);
            if growing {
                return;
            }
        }
        if !ack.may_grow {
            return;
        }
        let segments = f64::from(ack.acked_segments);
        // NS2 demands cwnd - flight <= 2 after one packet was acknowledged; an ACK for more may leave that much more room.
        if self.check && self.window.cwnd - (conn.in_flight + segments) > 1.0 {
            return;
        }
        let worth = self.counting.worth(self.counting.segments(ack));
        // Equation 5: 1.5 packets for each ACK of slow start.
        self.window.cwnd += worth * if self.window.in_slow_start() { self.start_step } else { self.incr };
    }

    fn restart(&mut self, conn: &Conn, window: Window) {
        if let Some(start) = &mut self.start {
            start.reset(conn);
        }
        self.window = window;
        self.incr = 0.0;
        self.succ = 0.0;
    }
}

impl CongestionControl for DcVegas {
    fn needs(&self) -> Needs {
        Needs { quickack: true, ..Needs::default() }
    }
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        if ack.acked_bytes == 0 {
            return;
        }
        if self.mark.is_none_or(|mark| ack.ack_seq > mark) {
            if ack.may_grow {
                self.decide();
            } else {
                // A window in repair says nothing about the path; its samples are dropped.
                self.samples = (0.0, 0);
                self.incr = 0.0;
            }
            self.mark = Some(conn.snd_nxt);
        }
        self.grow(conn, ack);
        // As in NS2 the sample of the ACK that ends a round trip belongs to the next: its packet was the first of it.
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.as_secs();
            self.base_rtt = self.base_rtt.min(rtt);
            self.samples = (self.samples.0 + rtt, self.samples.1 + 1);
            if let Some(smoothed) = &mut self.ewma {
                *smoothed = Some(smoothed.map_or(rtt, |s| s + (rtt - s) / 8.0));
            }
        }
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        let cwnd = self.window.cwnd;
        let half = (conn.loss_basis / 2.0).max(MIN_CWND);
        self.prior.remember(self.window, cause.is_repeated());
        let reduced = match cause {
            // NS2: a quarter on a fast retransmit, and 2 from windows up to 3.
            Cause::Loss if cwnd.floor() <= 3.0 => Window { cwnd: MIN_CWND, ssthresh: MIN_CWND },
            Cause::Loss => Window { cwnd: cwnd * 0.75, ssthresh: MIN_CWND },
            Cause::Ecn => Window { cwnd: half, ssthresh: half },
            // NS2: Vegas slow-starts from 2.
            Cause::Timeout { repeated } => {
                Window { cwnd: MIN_CWND, ssthresh: if repeated { self.window.ssthresh } else { half } }
            }
        };
        // No cause leads up to the floor from a window below it.
        self.restart(conn, Window { cwnd: reduced.cwnd.min(cwnd), ..reduced });
    }

    fn on_recovered(&mut self, _conn: &Conn, limit: Option<f64>) {
        self.window = self.window.capped(limit.map(|l| l.max(MIN_CWND)));
    }

    fn on_undo(&mut self, _conn: &Conn) {
        self.prior.restore(&mut self.window);
    }

    fn on_restart(&mut self, conn: &Conn, _idle: Duration, to: Window) {
        self.restart(conn, to);
    }

    fn control(&self) -> Control {
        self.window.into()
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.value("dcvegas_delta_packets", self.delta);
        probe.value("dcvegas_incr_packets", self.incr);
        probe.value("dcvegas_succ", self.succ);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::close;
    use crate::{Value, registry};

    const MSS: u32 = 1460;

    /// A sender with unlimited data that fills its window after every ACK.
    struct Sender {
        cc: Box<dyn CongestionControl>,
        conn: Conn,
    }

    impl Sender {
        fn new(cwnd: f64, ssthresh: f64, settings: &[(&str, Value)]) -> Sender {
            let setup = Setup { initial_window: cwnd, initial_ssthresh: ssthresh, ..Setup::default() };
            let mut args = Args::default();
            for (name, value) in settings {
                args.set(*name, value.clone());
            }
            let cc = registry::build("dcvegas", &setup, &args).unwrap().sender;
            let mut sender = Sender { cc, conn: Conn::new(MSS) };
            sender.fill();
            sender
        }
        fn cwnd(&self) -> f64 {
            self.cc.control().cwnd
        }
        fn fill(&mut self) {
            let edge = self.conn.snd_una + self.cwnd().floor() as u64 * u64::from(MSS);
            self.conn.snd_nxt = self.conn.snd_nxt.max(edge);
        }
        /// One packet is acknowledged.
        fn ack(&mut self, us: u64) -> f64 {
            self.conn.snd_una += u64::from(MSS);
            self.conn.in_flight = ((self.conn.snd_nxt - self.conn.snd_una) / u64::from(MSS)) as f64;
            self.cc.on_ack(&self.conn, &Ack::of(1, MSS, self.conn.snd_una, Some(Duration::us(us))));
            self.fill();
            self.cwnd()
        }
        fn acks(&mut self, n: usize, us: u64) -> f64 {
            (0..n).map(|_| self.ack(us)).last().unwrap()
        }
        /// In avoidance at 20 packets with a base of 200 us, a round trip of `us` measured, the next ACK decides.
        fn at_decision(us: u64) -> Sender {
            let mut s = Sender::new(20.0, 2.0, &[]);
            // No permission to grow on the first ACK: it opens the round trip and brings the base sample.
            s.conn.snd_una += u64::from(MSS);
            let mut first = Ack::of(1, MSS, s.conn.snd_una, Some(Duration::us(200)));
            first.may_grow = false;
            s.cc.on_ack(&s.conn, &first);
            s.fill();
            // The mark closes with no decision once more, so that only samples of `us` remain.
            for _ in 0..19 {
                s.ack(us);
            }
            s.conn.snd_una += u64::from(MSS);
            let mut last = Ack::of(1, MSS, s.conn.snd_una, Some(Duration::us(us)));
            last.may_grow = false;
            s.cc.on_ack(&s.conn, &last);
            s.fill();
            assert_eq!(s.cwnd(), 20.0);
            for _ in 0..19 {
                assert_eq!(s.ack(us), 20.0);
            }
            s
        }
    }

    /// The algorithm without a sender around it.
    fn bare(cwnd: f64) -> DcVegas {
        let setup = Setup { initial_window: cwnd, ..Setup::default() };
        DcVegas::new(&setup, &Args::default(), Box::new(crate::StandardSlowStart::new(setup.counting))).unwrap()
    }

    #[test]
    fn the_smoothed_round_trip_is_a_windows_mean_or_a_moving_average() {
        // One sample of 200 us and 19 of 300 us before the first decision. Mean: 295 us. Average: 300 - 100 x (7/8)^19 = 292.1 us.
        for (reading, smoothed) in [("mean", 295.0), ("ewma", 300.0 - 100.0 * 0.875_f64.powi(19))] {
            let mut s = Sender::new(20.0, 2.0, &[("dcvegas_rtt", Value::Word(reading.into()))]);
            s.ack(200);
            assert_eq!(s.acks(19, 300), 20.0);
            let delta = 20.0 * (1.0 - 200.0 / smoothed);
            close(s.ack(300), 20.0 - (delta - 1.5));
        }
    }

    #[test]
    fn a_slow_start_that_is_asked_for_replaces_its_own() {
        let cc = registry::build("gss+dcvegas", &Setup::default(), &Args::default()).unwrap().sender;
        let mut s = Sender { cc, conn: Conn::new(MSS) };
        s.fill();
        assert_eq!((s.acks(2, 200), s.acks(4, 200)), (4.0, 8.0));
    }

    #[test]
    fn slow_start_adds_one_and_a_half_per_ack() {
        let mut s = Sender::new(2.0, f64::INFINITY, &[]);
        assert_eq!(s.acks(2, 200), 5.0);
        assert_eq!(s.acks(5, 200), 12.5);
    }

    #[test]
    fn half_a_packet_queued_ends_slow_start_and_keeps_the_window() {
        let mut s = Sender::new(10.0, f64::INFINITY, &[]);
        // The first ACK opens the round trip, whose samples are 200 us and then 215 us: mean 213.5, delta 0.63 of 10 packets.
        assert_eq!(s.ack(200), 11.5);
        let cwnd = s.acks(9, 215);
        assert_eq!(cwnd, 25.0);
        assert_eq!(s.ack(215), 25.0);
        assert_eq!(s.cc.control().ssthresh, 2.0);
    }

    #[test]
    fn an_idle_path_speeds_up_by_the_missing_packets() {
        let mut s = Sender::at_decision(204);
        close(s.ack(204), 20.0 + 0.08039215686274517);
        close(s.acks(19, 204), 21.607843137254903);
    }

    #[test]
    fn idle_round_trips_in_a_row_speed_up_more_each_time() {
        let mut s = Sender::at_decision(200);
        // Delta 0: 2 x 1, 2 x 2, 2 x 3 packets, each spread over the window it is decided for.
        let mut steps: Vec<f64> = Vec::new();
        let mut last = 0.0;
        for _ in 0..60 {
            let (before, after) = (s.cwnd(), s.ack(200));
            if (after - before - last).abs() > 1e-12 {
                last = after - before;
                steps.push(last * before);
            }
        }
        assert_eq!(steps.len(), 3);
        steps.into_iter().zip([2.0, 4.0, 6.0]).for_each(|(step, oracle)| close(step, oracle));
    }

    #[test]
    fn one_step_never_more_than_doubles() {
        let mut vegas = bare(40.0);
        vegas.succ = 24.0;
        vegas.delta = 0.0;
        vegas.avoid();
        assert_eq!((vegas.succ, vegas.incr), (25.0, 1.0));
    }

    #[test]
    fn many_queued_packets_are_taken_back_at_once() {
        // Delta 3.333: cwnd - (delta - 1.5).
        close(Sender::at_decision(240).ack(240), 18.166666666666668);
    }

    #[test]
    fn between_the_bounds_the_window_drifts_by_one() {
        let decide = |delta: f64| {
            let mut vegas = bare(20.0);
            (vegas.succ, vegas.delta) = (7.0, delta);
            vegas.avoid();
            (vegas.window.cwnd, vegas.incr, vegas.succ)
        };
        assert_eq!(decide(1.2), (20.0, 0.05, 0.0));
        assert_eq!(decide(1.5 + 1e-10), (20.0, 0.0, 0.0));
        assert_eq!(decide(1.7), (19.0, 0.0, 0.0));
        assert_eq!(decide(2.0), (19.0, 0.0, 0.0));
        assert_eq!(decide(1.0), (20.0, 0.05, 0.0));
    }

    #[test]
    fn the_window_drifts_through_the_sender_too() {
        close(Sender::at_decision(213).acks(20, 213), 21.0);
        close(Sender::at_decision(219).ack(219), 19.0);
    }

    #[test]
    fn an_unused_window_does_not_grow_unless_told_so() {
        for (check, cwnd) in [(true, 10.0), (false, 11.5)] {
            let mut s = Sender::new(10.0, f64::INFINITY, &[("dcvegas_window_check", Value::Flag(check))]);
            s.conn.snd_nxt = 2 * u64::from(MSS);
            s.conn.snd_una = u64::from(MSS);
            s.conn.in_flight = 1.0;
            s.cc.on_ack(&s.conn, &Ack::of(1, MSS, s.conn.snd_una, Some(Duration::us(200))));
            assert_eq!(s.cwnd(), cwnd);
        }
    }

    #[test]
    fn a_loss_takes_a_quarter_and_a_timeout_starts_from_two() {
        let mut s = Sender::new(20.0, f64::INFINITY, &[]);
        s.conn.loss_basis = 20.0;
        s.cc.on_congestion(&s.conn, Cause::Loss);
        assert_eq!((s.cwnd(), s.cc.control().ssthresh), (15.0, 2.0));
        s.cc.on_congestion(&s.conn, Cause::Timeout { repeated: false });
        assert_eq!((s.cwnd(), s.cc.control().ssthresh), (2.0, 10.0));
        s.cc.on_congestion(&s.conn, Cause::Loss);
        assert_eq!(s.cwnd(), 2.0);
    }

    #[test]
    fn bounds_in_the_wrong_order_are_told() {
        let mut args = Args::default();
        args.set("dcvegas_alpha", Value::Number(3.0));
        let error = registry::build("dcvegas", &Setup::default(), &args).unwrap_err();
        assert_eq!(error.to_string(), "parameter `dcvegas_alpha` = 3: it must be at most dcvegas_beta, 2 packets");
    }
}
