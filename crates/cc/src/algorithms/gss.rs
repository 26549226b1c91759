//! Gentle Slow Start: grows by cwnd^(1 - alpha) once per window, where alpha says how far the round trip is from its least to its
//! greatest value: doubling on an idle path, one packet per round trip on a full one.
//!
//! *Source*: "Gentle Slow Start to Alleviate TCP Incast in Data Center Networks" (Symmetry 11, 138), section 3.2, Algorithm 1.
//!
//! *Departures*: after a timeout the window that must be acknowledged is the one packet of the new cwnd, not what was outstanding when
//! the timer fired. A window that the stack restarts after idle time is the stack's (`cwnd_validation`).

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::model::gss::{congestion, increment};
use crate::{Ack, Algorithm, Args, Conn, Kind, Setting, SettingError, Setup, SlowStart, Window};

const SPREAD: Setting = Setting::switch("gss_spread", false)
    .doc("Algorithm 1", "spread a window's growth over the ACKs of the next one instead of adding it at once");
const RTT: Setting = Setting::choice("gss_rtt", &["latest", "mean"])
    .doc("Algorithm 1", "round trip that enters alpha: the sample that completes the window, or the mean of the window's samples");
const INITIAL: Setting = Setting::choice("gss_initial_window", &["algorithm", "stack"]).doc(
    "Algorithm 1, section 3.3",
    "first window of a connection: 2 segments, as Algorithm 1 begins, or the stack's `initial_window`",
);

/// `cwnd <- 2` of Algorithm 1, in packets.
const FIRST_WINDOW: f64 = 2.0;

/// Twins of kernel/cc/gss.c, one over each sender; the three names of Reno's window are one in Linux.
const GSS_PLACES: &[Place] = &[
    Place::With { sender: "reno", kernel: false, name: "fanin_gss_reno" },
    Place::With { sender: "newreno", kernel: false, name: "fanin_gss_reno" },
    Place::With { sender: "sack", kernel: false, name: "fanin_gss_reno" },
    Place::With { sender: "cubic", kernel: false, name: "fanin_gss_cubic" },
    Place::With { sender: "dctcp", kernel: false, name: "fanin_gss_dctcp" },
];
/// `gss`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "gss",
    title: "Gentle Slow Start: slow start that slows down as the round trip grows; as in gss+newreno",
    source: "Memon, Huang, Saajid, Symmetry 2019",
    deploy: GSS_PLACES,
    params: &[SPREAD, RTT, INITIAL],
    ..Algorithm::of(Kind::SlowStart(|setup, args| Ok(Box::new(Gss::new(setup, args)?))))
}];

/// The slow start of one connection.
#[derive(Debug)]
pub struct Gss {
    spread: bool,
    mean: bool,
    /// First window in packets; `None`: the stack's.
    initial: Option<f64>,
    /// Least and greatest sample of the connection in seconds.
    range: Option<(f64, f64)>,
    /// Latest sample in seconds.
    latest: f64,
    /// Sum and number of the samples of this window.
    sum: (f64, u32),
    /// First byte after the window whose ACKs are awaited; `None` until its first ACK, which sees all of it sent.
    mark: Option<u64>,
    /// Packets to add per acknowledged segment of this window when growth is spread.
    per_segment: f64,
}

impl Gss {
    fn new(setup: &Setup, args: &Args) -> Result<Gss, SettingError> {
        Ok(Gss {
            spread: args.flag(&SPREAD, setup.profile)?,
            mean: args.word(&RTT, setup.profile)? == "mean",
            initial: (args.word(&INITIAL, setup.profile)? == "algorithm").then_some(FIRST_WINDOW),
            range: None,
            latest: 0.0,
            sum: (0.0, 0),
            mark: None,
            // Nothing is known before the first window: alpha = 0, doubling.
            per_segment: 1.0,
        })
    }

    fn sample(&mut self, ack: &Ack) {
        let Some(rtt) = ack.rtt.map(|r| r.as_secs()) else { return };
        let (min, max) = self.range.unwrap_or((rtt, rtt));
        self.range = Some((min.min(rtt), max.max(rtt)));
        self.latest = rtt;
        self.sum = (self.sum.0 + rtt, self.sum.1 + 1);
    }

    fn alpha(&self) -> f64 {
        let Some((min, max)) = self.range else { return 0.0 };
        let rtt = if self.mean && self.sum.1 > 0 { self.sum.0 / f64::from(self.sum.1) } else { self.latest };
        // Equation 7.
        congestion(rtt, min, max)
    }
}

impl SlowStart for Gss {
    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, grow: bool) -> u32 {
        self.sample(ack);
        if ack.acked_bytes == 0 {
            return 0;
        }
        let sent = (window.cwnd.floor().max(1.0) as u64).saturating_mul(u64::from(conn.mss));
        // A round trip ends where the window that was sent when it began is acknowledged.
        let mark = *self.mark.get_or_insert(conn.snd_nxt.min((ack.ack_seq - ack.acked_bytes.min(ack.ack_seq)) + sent));
        let grow = grow && window.in_slow_start();
        if grow && self.spread {
            // The last window's step, a part for each segment that this one's ACKs acknowledge (`gss_spread`).
            window.cwnd = (window.cwnd + self.per_segment * f64::from(ack.acked_segments)).min(window.ssthresh);
        }
        if ack.ack_seq >= mark {
            // Algorithm 1 with equations 7 and 8: cwnd + cwnd^(1 - alpha), alpha = (RTT - RTTmin)/(RTTmax - RTTmin).
            // 160 us between 100 and 340: alpha = 0.25, and 16 packets grow by 16^0.75 = 8.
            let step = increment(window.cwnd.max(1.0), self.alpha());
            if grow && !self.spread {
                window.cwnd = (window.cwnd + step).min(window.ssthresh);
            }
            self.per_segment = step / window.cwnd.max(1.0);
            self.sum = (0.0, 0);
            self.mark = None;
        }
        0
    }

    fn reset(&mut self, _conn: &Conn) {
        self.mark = None;
        self.sum = (0.0, 0);
        // A timeout goes on from one packet, where 1 + 1^(1 - alpha) = 2 whatever alpha is.
        self.per_segment = 1.0;
    }

    fn needs_quickack(&self) -> bool {
        true
    }

    fn initial_window(&self) -> Option<f64> {
        self.initial
    }
}

#[cfg(test)]
mod tests {
    use crate::model::close;
    use crate::{Ack, Args, Cause, CongestionControl, Conn, Setup, Value, registry};
    use fanin_units::Duration;

    const MSS: u32 = 1460;

    /// A sender with unlimited data that fills the window after every ACK.
    struct Sender {
        cc: Box<dyn CongestionControl>,
        conn: Conn,
    }

    impl Sender {
        /// Begins at `initial`, by the switch for the stack's initial window.
        fn new(spec: &str, initial: f64, args: &Args) -> Sender {
            let setup = Setup { initial_window: initial, ..Setup::default() };
            let mut args = args.clone();
            args.set("gss_initial_window", Value::Word("stack".into()));
            let cc = registry::build(spec, &setup, &args).unwrap().sender;
            let mut sender = Sender { cc, conn: Conn::new(MSS) };
            sender.fill();
            sender
        }
        fn fill(&mut self) {
            let edge = self.conn.snd_una + self.cc.control().cwnd.floor() as u64 * u64::from(MSS);
            self.conn.snd_nxt = self.conn.snd_nxt.max(edge);
            self.conn.in_flight = ((self.conn.snd_nxt - self.conn.snd_una) / u64::from(MSS)) as f64;
            self.conn.loss_basis = self.conn.in_flight;
        }
        fn ack(&mut self, us: u64) -> f64 {
            self.conn.snd_una += u64::from(MSS);
            self.cc.on_ack(&self.conn, &Ack::of(1, MSS, self.conn.snd_una, Some(Duration::us(us))));
            self.fill();
            self.cc.control().cwnd
        }
        /// Acknowledges everything outstanding, one packet per ACK.
        fn window(&mut self, us: u64) -> f64 {
            let outstanding = (self.conn.snd_nxt - self.conn.snd_una) / u64::from(MSS);
            (0..outstanding).map(|_| self.ack(us)).last().unwrap()
        }
    }

    fn args(name: &str, value: Value) -> Args {
        let mut args = Args::default();
        args.set(name, value);
        args
    }

    #[test]
    fn a_connection_begins_with_two_segments_whatever_the_stacks_initial_window() {
        for sender in ["newreno", "dctcp", "d2tcp", "l2dct", "cubic"] {
            let setup = Setup { initial_window: 10.0, ..Setup::default() };
            let begins = |spec: &str, args: &Args| registry::build(spec, &setup, args).unwrap().sender.control().cwnd;
            let spec = format!("gss+{sender}");
            assert_eq!(begins(&spec, &Args::default()), 2.0, "{spec}");
            assert_eq!(begins(&spec, &args("gss_initial_window", Value::Word("stack".into()))), 10.0, "{spec}");
            assert_eq!(begins(sender, &Args::default()), 10.0);
        }
    }

    #[test]
    fn the_window_waits_until_all_of_it_is_acknowledged() {
        let mut s = Sender::new("gss+newreno", 8.0, &Args::default());
        for _ in 0..7 {
            assert_eq!(s.ack(100), 8.0);
        }
        assert_eq!(s.ack(100), 16.0);
    }

    #[test]
    fn an_idle_path_doubles_once_per_round_trip() {
        let mut s = Sender::new("gss+newreno", 2.0, &Args::default());
        let grown: Vec<f64> = (0..4).map(|_| s.window(100)).collect();
        assert_eq!(grown, [4.0, 8.0, 16.0, 32.0]);
    }

    #[test]
    fn a_full_path_adds_one_packet() {
        let mut s = Sender::new("gss+newreno", 8.0, &Args::default());
        for us in [100, 340, 220, 220, 220, 220, 220] {
            s.ack(us);
        }
        assert_eq!(s.ack(340), 9.0);
    }

    #[test]
    fn growth_follows_the_round_trip_that_completes_the_window() {
        for (initial, last, grown) in [(8, 220, 10.82842712474619), (10, 160, 15.623413251903491), (16, 160, 24.0)] {
            let mut s = Sender::new("gss+newreno", f64::from(initial), &Args::default());
            s.ack(100);
            for _ in 0..initial - 2 {
                s.ack(340);
            }
            close(s.ack(last), grown);
        }
    }

    #[test]
    fn the_mean_of_the_window_is_a_switch() {
        // Samples 100, 340 and 220 in equal parts: mean 220, alpha 0.5.
        let mut s = Sender::new("gss+newreno", 9.0, &args("gss_rtt", Value::Word("mean".into())));
        let grown = [340, 100, 220, 100, 340, 220, 340, 220, 100].map(|us| s.ack(us))[8];
        close(grown, 9.0 + 3.0);
    }

    #[test]
    fn spreading_adds_the_same_over_the_next_window() {
        let mut s = Sender::new("gss+newreno", 16.0, &args("gss_spread", Value::Flag(true)));
        for us in [100].into_iter().chain([340; 14]).chain([160]) {
            s.ack(us);
        }
        let before = s.cc.control().cwnd;
        close(s.ack(160) - before, increment_per_packet(before));
    }

    fn increment_per_packet(cwnd: f64) -> f64 {
        cwnd.powf(0.75) / cwnd
    }

    #[test]
    fn growth_stops_at_ssthresh_and_avoidance_follows() {
        let setup = Setup { initial_window: 8.0, initial_ssthresh: 10.0, ..Setup::default() };
        let mut s = Sender {
            cc: registry::build("gss+newreno", &setup, &args("gss_initial_window", Value::Word("stack".into())))
                .unwrap()
                .sender,
            conn: Conn::new(MSS),
        };
        s.fill();
        assert_eq!(s.window(100), 10.0);
        close(s.ack(100), 10.1);
    }

    #[test]
    fn after_a_timeout_one_packet_becomes_two_and_two_become_four() {
        let mut s = Sender::new("gss+newreno", 32.0, &Args::default());
        s.ack(100);
        s.ack(340);
        s.cc.on_congestion(&s.conn, Cause::Timeout { repeated: false });
        assert_eq!(s.cc.control().cwnd, 1.0);
        // 340 us is alpha = 1, for which 1^(1-alpha) is 1 as for any alpha.
        assert_eq!(s.ack(340), 2.0);
        assert_eq!((s.ack(100), s.ack(100)), (2.0, 4.0));
    }

    #[test]
    fn an_ack_without_permission_to_grow_only_keeps_the_estimates() {
        let mut s = Sender::new("gss+newreno", 2.0, &Args::default());
        s.conn.snd_una += 2 * u64::from(MSS);
        let mut ack = Ack::of(2, MSS, s.conn.snd_una, Some(Duration::us(100)));
        ack.may_grow = false;
        s.cc.on_ack(&s.conn, &ack);
        assert_eq!(s.cc.control().cwnd, 2.0);
        s.fill();
        assert_eq!(s.window(100), 4.0);
    }
}
