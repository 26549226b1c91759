//! L2DCT: DCTCP that favours flows which have sent little: they grow faster and give up less at a mark than those that have sent much.
//!
//! *Source*: Munir et al., "Minimizing Flow Completion Times in Data Centers" (INFOCOM 2013), as public simulator code has it.
//!
//! *Departures* (docs/algorithms/l2dct.md): attained service is counted in segments (`l2dct_unit`) and never starts again on a persistent
//! connection (`l2dct_per_message`).

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

const UNIT: Setting = Setting::choice("l2dct_unit", &["segments", "bytes"])
    .doc("not certain in the paper", "the weight falls between 200 and 1000 segments, or between 200 and 1000 kB");
const PER_MESSAGE: Setting = Setting::switch("l2dct_per_message", false)
    .doc("not in the paper", "count anew from the start of each message, so that a persistent connection is not always old");
const W_MAX: Setting = Setting::parameter("l2dct_w_max", 2.5, 0.01, 100.0).doc("section III", "weight of a young flow");
const W_MIN: Setting = Setting::parameter("l2dct_w_min", 0.125, 0.001, 100.0).doc("section III", "weight of an old flow");

/// `l2dct`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "l2dct",
    title: "L2DCT: DCTCP that favours flows which have sent little",
    source: "Munir et al., INFOCOM 2013",
    needs_ecn: true,
    deploy: &[Place::Twin("fanin_l2dct")],
    params: &[dctcp::G, dctcp::ALPHA0, dctcp::FLOOR, dctcp::FORM, UNIT, PER_MESSAGE, W_MAX, W_MIN],
    ..Algorithm::of(Kind::Sender(|setup, args, ss| Ok(Box::new(L2dct::new(setup, args, ss)?))))
}];

/// The weight falls between these, in segments or in kB.
const YOUNG: f64 = 200.0;
const OLD: f64 = 1000.0;

/// The sender.
#[derive(Debug)]
pub struct L2dct {
    core: RenoCore,
    fraction: MarkedFraction,
    w_max: f64,
    w_min: f64,
    bytes: bool,
    per_message: bool,
    /// Segments acknowledged so far: with what is outstanding, the new segments sent.
    acked: u64,
    /// Start in the stream of the last message seen, and the segments acknowledged by then.
    message: Option<(u64, u64)>,
    /// w_c at the last event.
    weight: f64,
}

impl L2dct {
    fn new(setup: &Setup, args: &Args, slow_start: Box<dyn SlowStart>) -> Result<L2dct, SettingError> {
        let (w_max, w_min) = (args.number(&W_MAX, setup.profile)?, args.number(&W_MIN, setup.profile)?);
        if w_min > w_max {
            return Err(SettingError::BadValue {
                name: W_MIN.name,
                value: w_min.to_string(),
                expected: format!("at most l2dct_w_max, {w_max}"),
            });
        }
        Ok(L2dct {
            core: RenoCore::new(setup, slow_start),
            fraction: MarkedFraction::new(setup, args)?,
            w_max,
            w_min,
            bytes: args.word(&UNIT, setup.profile)? == "bytes",
            per_message: args.flag(&PER_MESSAGE, setup.profile)?,
            acked: 0,
            message: None,
            weight: w_max,
        })
    }

    /// Attained service: segments or kB of new data sent, on the connection or for the message.
    fn service(&mut self, conn: &Conn) -> f64 {
        // s counts new data that were sent, acknowledged or not; what is sent again does not count.
        let outstanding = (conn.snd_nxt - conn.snd_una) as f64 / f64::from(conn.mss);
        let segments = self.acked as f64 + outstanding;
        let (mut first_byte, mut first_segment) = (0, 0.0);
        if self.per_message {
            // A message that was not seen before: s begins with its first byte (`l2dct_per_message`).
            if let Some(m) = conn.message.filter(|m| self.message.is_none_or(|(start, _)| start != m.start)) {
                let before = segments - m.sent as f64 / f64::from(conn.mss);
                self.message = Some((m.start, before.round().max(0.0) as u64));
            }
            if let Some((byte, segment)) = self.message {
                (first_byte, first_segment) = (byte, segment as f64);
            }
        }
        if self.bytes { conn.snd_nxt.saturating_sub(first_byte) as f64 / 1000.0 } else { segments - first_segment }
    }

    fn weigh(&mut self, conn: &Conn) {
        // w_c falls in a straight line from w_max at 200 to w_min at 1000 of attained service (section III).
        // Half way, at 600: 2.5 - 2.375/2 = 1.3125.
        let old = ((self.service(conn) - YOUNG) / (OLD - YOUNG)).clamp(0.0, 1.0);
        self.weight = self.w_max - (self.w_max - self.w_min) * old;
    }
}

impl CongestionControl for L2dct {
    fn needs(&self) -> Needs {
        Needs { dctcp_ecn: true, empty_acks: self.fraction.counts_empty_acks(), ..Needs::default() }
    }
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        self.acked += u64::from(ack.acked_segments);
        self.fraction.on_ack(conn, ack);
        self.weigh(conn);
        // cwnd + k per window with k = w_c/w_max: a young flow grows as Reno does (section III).
        // An old one has k = 0.125/2.5 = 0.05: a packet in twenty windows.
        self.core.on_ack(conn, ack, self.weight / self.w_max);
    }
    fn on_empty_ack(&mut self, conn: &Conn) {
        self.fraction.on_empty_ack(conn);
    }
    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        if cause != Cause::Ecn {
            return self.core.on_congestion(conn, cause);
        }
        self.weigh(conn);
        // cwnd (1 - b/2) with b = alpha^w_c (section III).
        // alpha 0.25 and 40 packets: a young flow (w_c = 2.5) keeps 39.4, an old one (0.125) 23.2.
        let left = self.fraction.cut_by(self.core.window.cwnd, self.weight);
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
        probe.value("l2dct_weight", self.weight);
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithms::testing::{Driver, set};
    use crate::model::close;
    use crate::{Args, Cause, Message, Setup, Value};

    /// `sent` packets sent, a window of 40, and alpha 0.25 kept by marking every fourth packet of each window.
    fn sender(sent: u32, mut args: Args) -> Driver {
        args.set("dctcp_g", Value::Number(1.0));
        let setup = Setup { initial_window: 41.0, initial_ssthresh: 41.0, ..Setup::default() };
        let mut s = Driver::new("l2dct", setup, &args);
        s.echo(false, false);
        for i in 0..40 {
            s.echo(i % 4 == 0, false);
        }
        while (s.conn.snd_nxt / 1460) < u64::from(sent) {
            s.echo((s.conn.snd_una / 1460).is_multiple_of(4), false);
        }
        assert_eq!(s.observed("dctcp_alpha"), 0.25);
        s.restart(40.0, 40.0);
        s
    }

    #[test]
    fn a_young_flow_grows_fully_and_gives_up_little() {
        for (sent, weight, left, grown) in [
            (100, 2.5, 39.375, 40.025),
            (400, 1.90625, 38.57651420655414, 40.0190625),
            (600, 1.3125, 36.757901113372476, 40.013125),
            (1000, 0.125, 23.18207169492571, 40.00125),
        ] {
            let mut s = sender(sent, Args::default());
            s.congestion(Cause::Ecn);
            close(s.observed("l2dct_weight"), weight);
            close(s.observed("dctcp_alpha"), 0.25);
            close(s.cc.control().cwnd, left);
            // One more ACK, with nothing new sent.
            let mut s = sender(sent, Args::default());
            s.ack(None);
            close(s.cc.control().cwnd, grown);
        }
    }

    #[test]
    fn a_persistent_connection_stays_old_unless_told() {
        let next = Some(Message { unsent: 146_000, sent: 0, deadline: None, start: 1000 * 1460 });
        for (per_message, weight) in [(false, 0.125), (true, 2.5)] {
            let mut s = sender(1000, set("l2dct_per_message", Value::Flag(per_message)));
            s.conn.message = next;
            s.ack(None);
            close(s.observed("l2dct_weight"), weight);
        }
        // 400 packets into the message.
        let mut s = sender(1000, set("l2dct_per_message", Value::Flag(true)));
        s.conn.message = next;
        s.ack(None);
        while s.conn.snd_nxt < 1400 * 1460 {
            s.echo(false, false);
        }
        s.congestion(Cause::Ecn);
        close(s.observed("l2dct_weight"), 1.90625);
    }

    #[test]
    fn the_thresholds_can_be_bytes() {
        // 400 packets of 1460 bytes are 584 kB.
        let mut s = sender(400, set("l2dct_unit", Value::Word("bytes".into())));
        s.congestion(Cause::Ecn);
        close(s.observed("l2dct_weight"), 2.5 - 2.375 * 0.48);
    }

    #[test]
    fn a_loss_halves() {
        let mut s = sender(1000, Args::default());
        s.congestion(Cause::Loss);
        assert_eq!(s.cc.control().cwnd, 20.0);
    }
}
