//! A sender with unlimited data for the algorithms' tests: it sends what the window allows and makes the events of its ACKs.

use crate::{Ack, Args, Cause, CongestionControl, Conn, Probe, Setup, Value, Window, registry};
use fanin_units::{Duration, Time};

/// One connection driven by hand.
pub(crate) struct Driver {
    pub cc: Box<dyn CongestionControl>,
    pub conn: Conn,
}

/// One parameter set.
pub(crate) fn set(name: &str, value: Value) -> Args {
    let mut args = Args::default();
    args.set(name, value);
    args
}

impl Driver {
    pub fn new(spec: &str, setup: Setup, args: &Args) -> Driver {
        let cc = registry::build(spec, &setup, args).unwrap().sender;
        let mut driver = Driver { cc, conn: Conn::new(setup.mss) };
        driver.fill();
        driver
    }

    /// Sends what the window allows.
    fn fill(&mut self) {
        let edge = self.conn.snd_una + self.cc.control().cwnd.floor() as u64 * u64::from(self.conn.mss);
        self.conn.snd_nxt = self.conn.snd_nxt.max(edge);
        self.flight();
    }

    fn flight(&mut self) {
        self.conn.in_flight = ((self.conn.snd_nxt - self.conn.snd_una) / u64::from(self.conn.mss)) as f64;
        self.conn.loss_basis = self.cc.control().cwnd;
    }

    /// The clock moves.
    pub fn wait(&mut self, d: Duration) {
        self.conn.now += d;
    }

    /// The clock stands at this many seconds.
    pub fn at(&mut self, seconds: f64) {
        self.conn.now = Time::ZERO + Duration::from_secs(seconds);
    }

    /// An ACK of `segments`, changed by `with`; the window may grow unless that says otherwise.
    pub fn ack_with(&mut self, segments: u32, with: impl FnOnce(&mut Ack)) {
        let bytes = u64::from(segments) * u64::from(self.conn.mss);
        self.conn.snd_una += bytes;
        self.conn.snd_nxt = self.conn.snd_nxt.max(self.conn.snd_una);
        self.flight();
        let mut ack = Ack::of(segments, self.conn.mss, self.conn.snd_una, None);
        with(&mut ack);
        self.cc.on_ack(&self.conn, &ack);
        self.fill();
    }

    /// An ACK of one packet.
    pub fn ack(&mut self, rtt: Option<Duration>) {
        self.ack_with(1, |a| a.rtt = rtt);
    }

    /// An ACK of `segments` with or without ECE and permission to grow; no reaction follows (CWR, or validation).
    pub fn echo_many(&mut self, segments: u32, ece: bool, may_grow: bool) {
        self.ack_with(segments, |a| {
            a.ece = ece;
            a.may_grow = may_grow && !ece;
        });
    }

    /// As [`Self::echo_many`] for one packet.
    pub fn echo(&mut self, ece: bool, may_grow: bool) {
        self.echo_many(1, ece, may_grow);
    }

    /// The first ACK with ECE of a window: counted, then answered.
    pub fn ece_ack(&mut self) {
        self.echo(true, false);
        self.congestion(Cause::Ecn);
    }

    /// The sender asks for less.
    pub fn congestion(&mut self, cause: Cause) {
        self.cc.on_congestion(&self.conn, cause);
        self.fill();
    }

    /// Window validation sets the window.
    pub fn restart(&mut self, cwnd: f64, ssthresh: f64) {
        self.cc.on_restart(&self.conn, Duration::ZERO, Window { cwnd, ssthresh });
        self.fill();
    }

    /// A named internal.
    pub fn observed(&self, name: &str) -> f64 {
        struct Reader<'a>(&'a str, Option<f64>);
        impl Probe for Reader<'_> {
            fn value(&mut self, name: &'static str, value: f64) {
                if name == self.0 {
                    self.1 = Some(value);
                }
            }
        }
        let mut reader = Reader(name, None);
        self.cc.observe(&mut reader);
        reader.1.unwrap()
    }
}
