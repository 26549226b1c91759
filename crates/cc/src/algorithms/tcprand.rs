//! TCPRand: the payload of each new segment is a random number of bytes between rMin and the mss, so that flows entering a port
//! together do not stay in step and lose their packets in runs. The congestion control underneath is untouched.
//!
//! *Source*: "Randomizing TCP Payload Size for TCP Fairness in Data Center Networks" (Computer Networks 129), section 4, Algorithm 1.
//!
//! *Departures*: sizes are full while the curve below has no maximum yet, which Algorithm 1 leaves undefined. Where its epoch began above
//! that maximum, Algorithm 1 is followed by its letter (`rand_no_rise`).

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::model::tcprand::{Adaptive, NoRise, payload};
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Gate, GrowthCurve, Kind, Needs, Probe, Setting,
    SettingError, Setup, Window,
};
use fanin_units::Duration;

const RMIN: Setting = Setting::parameter("rand_rmin", 0.0, 0.0, 65_495.0).unit("bytes").doc(
    "section 4",
    "least payload; the mss and more is ordinary TCP; 0 adapts it to the growth curve of the sender below (CUBIC)",
);
const CWND_UNIT: Setting = Setting::choice("rand_cwnd_unit", &["packets", "bytes"])
    .doc("section 5", "what the window counts: packets as in Linux, or bytes as in ns-3, where more small packets fit");
const SIGMA2: Setting =
    Setting::parameter("rand_sigma2", 1.0, 1e-6, 1e6).doc("Algorithm 1", "adaptive: variance of the normal curve");
const MU: Setting = Setting::parameter("rand_mu", 1.0, -100.0, 100.0).doc("Algorithm 1", "adaptive: mean of the normal curve");
const V_TAU: Setting = Setting::parameter("rand_v_tau", 1.0, 1.0, f64::INFINITY)
    .doc("equation 2", "adaptive: start of randomisation, from 1 (the epoch's first window) to inf (the last maximum)");
const V_OMEGA: Setting = Setting::parameter("rand_v_omega", 1.0, 0.0, f64::INFINITY).doc(
    "equation 3",
    "adaptive: end of randomisation, 1 as far above the last maximum as the epoch began below it, 0 never",
);
const THETA: Setting =
    Setting::parameter("rand_theta", 200.0, 1.0, 65_495.0).unit("bytes").doc("section 4.2", "adaptive: least rMin");
const NO_RISE: Setting = Setting::choice("rand_no_rise", &["algorithm", "full"]).doc(
    "Algorithm 1, equations 2 and 3",
    "adaptive: sizes where an epoch begins above the last maximum: Algorithm 1 by its letter (random where rand_v_omega = 0), or full",
);

/// `tcprand`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "tcprand",
    title: "TCPRand: random payload sizes against runs of losses; as in tcprand+cubic, or tcprand+newreno with rand_rmin set",
    source: "Lee et al., Computer Networks 2017",
    deploy: &[Place::SenderShim],
    params: &[RMIN, CWND_UNIT, SIGMA2, MU, V_TAU, V_OMEGA, THETA, NO_RISE],
    ..Algorithm::of(Kind::Wrapper(|setup, args, inner| Ok(Box::new(TcpRand::new(setup, args, inner)?))))
}];

/// How rMin is found.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Least {
    Static(f64),
    Adaptive(Adaptive),
}

/// A sender whose segments have random sizes.
#[derive(Debug)]
pub struct TcpRand {
    inner: Box<dyn CongestionControl>,
    least: Least,
    bytes: bool,
    mss: u32,
}

impl TcpRand {
    fn new(setup: &Setup, args: &Args, inner: Box<dyn CongestionControl>) -> Result<TcpRand, SettingError> {
        let number = |param| args.number(param, setup.profile);
        let adaptive = Adaptive {
            sigma2: number(&SIGMA2)?,
            mu: number(&MU)?,
            v_tau: number(&V_TAU)?,
            v_omega: number(&V_OMEGA)?,
            theta: number(&THETA)?,
            no_rise: if args.word(&NO_RISE, setup.profile)? == "full" { NoRise::Full } else { NoRise::Algorithm },
        };
        let r_min = number(&RMIN)?;
        // A given rMin is the static form; 0 asks for the adaptive one, which follows CUBIC's curve (Algorithm 1).
        let least = if r_min > 0.0 {
            Least::Static(r_min)
        } else if inner.growth_curve() != GrowthCurve::None {
            Least::Adaptive(adaptive)
        } else {
            return Err(SettingError::BadValue {
                name: RMIN.name,
                value: "0 (adaptive)".to_owned(),
                expected: "1 byte or more here: the adaptive rule follows a growth curve that only cubic has, as in \
                           `tcprand+cubic`"
                    .to_owned(),
            });
        };
        if let (Least::Static(_), Some(name)) = (least, args.names().find(|n| ADAPTIVE_ONLY.contains(n))) {
            return Err(SettingError::BadValue {
                name: RMIN.name,
                value: r_min.to_string(),
                expected: format!("0 (adaptive) for `{name}` to have a meaning"),
            });
        }
        let bytes = args.word(&CWND_UNIT, setup.profile)? == "bytes";
        Ok(TcpRand { inner, least, bytes, mss: setup.mss })
    }

    /// Least payload now, in bytes.
    fn r_min(&self, mss: u32) -> f64 {
        let mss = f64::from(mss);
        match self.least {
            Least::Static(r_min) => r_min.min(mss),
            Least::Adaptive(rule) => match self.inner.growth_curve() {
                // Algorithm 1: rMin by where the window stands on CUBIC's curve from `start` to Wmax.
                // rMin = MSS (1 - Phi(x)), x = (cwnd - a)/(Wmax - a): 85 between 70 and 100 has 1009 of 1460 bytes.
                GrowthCurve::Towards { start, w_max } => rule.r_min(self.inner.control().cwnd, start, w_max, mss),
                // Without a maximum there is no curve: full segments.
                GrowthCurve::None | GrowthCurve::Undefined => mss,
            },
        }
    }
}

/// Parameters that mean nothing while rMin is static: setting one then is a mistake to be told.
const ADAPTIVE_ONLY: [&str; 6] = [SIGMA2.name, MU.name, V_TAU.name, V_OMEGA.name, THETA.name, NO_RISE.name];

impl CongestionControl for TcpRand {
    fn needs(&self) -> Needs {
        // Section 5: a card that cuts bursts into segments (TSO) would undo the sizes.
        Needs { randomness: true, segment_sizes: true, byte_window: self.bytes, ..self.inner.needs() }
    }
    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        self.inner.on_ack(conn, ack);
    }
    fn on_empty_ack(&mut self, conn: &Conn) {
        self.inner.on_empty_ack(conn);
    }
    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        self.inner.on_congestion(conn, cause);
    }
    fn on_loss_in_cwr(&mut self, conn: &Conn, window: f64) {
        self.inner.on_loss_in_cwr(conn, window);
    }
    fn on_recovered(&mut self, conn: &Conn, limit: Option<f64>) {
        self.inner.on_recovered(conn, limit);
    }
    fn on_undo(&mut self, conn: &Conn) {
        self.inner.on_undo(conn);
    }
    fn on_restart(&mut self, conn: &Conn, idle: Duration, to: Window) {
        self.inner.on_restart(conn, idle, to);
    }
    fn before_send(&mut self, conn: &Conn, since_last: Option<Duration>) -> Gate {
        self.inner.before_send(conn, since_last)
    }
    fn segment_size(&mut self, conn: &Conn) -> u32 {
        // Section 4: the payload of each new segment is drawn, uniform on [rMin, MSS].
        payload(self.r_min(conn.mss), conn.mss, conn.uniform)
    }
    fn control(&self) -> Control {
        self.inner.control()
    }
    fn growth_curve(&self) -> GrowthCurve {
        self.inner.growth_curve()
    }
    fn observe(&self, probe: &mut dyn Probe) {
        probe.value("rand_rmin_bytes", self.r_min(self.mss));
        self.inner.observe(probe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, registry};

    /// A sender at a chosen point of a CUBIC curve.
    #[derive(Debug)]
    struct OnCurve {
        cwnd: f64,
        epoch: Option<(f64, f64)>,
    }

    impl CongestionControl for OnCurve {
        fn on_ack(&mut self, _conn: &Conn, _ack: &Ack) {
            self.cwnd += 1.0;
        }
        fn on_congestion(&mut self, _conn: &Conn, _cause: Cause) {}
        fn on_restart(&mut self, _conn: &Conn, _idle: Duration, _to: Window) {}
        fn control(&self) -> Control {
            Window { cwnd: self.cwnd, ssthresh: 1.0 }.into()
        }
        fn growth_curve(&self) -> GrowthCurve {
            self.epoch.map_or(GrowthCurve::Undefined, |(start, w_max)| GrowthCurve::Towards { start, w_max })
        }
    }

    fn args(settings: &[(&str, f64)]) -> Args {
        let mut args = Args::default();
        for &(name, value) in settings {
            args.set(name, Value::Number(value));
        }
        args
    }

    fn on_curve(cwnd: f64, epoch: Option<(f64, f64)>, settings: &[(&str, f64)]) -> TcpRand {
        TcpRand::new(&Setup::default(), &args(settings), Box::new(OnCurve { cwnd, epoch })).unwrap()
    }

    fn sizes(rand: &mut TcpRand) -> (u32, u32, f64) {
        let mut conn = Conn::new(1460);
        let mut all = Vec::new();
        for i in 0..10_000 {
            conn.uniform = f64::from(i) / 10_000.0;
            all.push(rand.segment_size(&conn));
        }
        let mean = all.iter().map(|&s| f64::from(s)).sum::<f64>() / 1e4;
        (all[0], all[9_999], mean)
    }

    #[test]
    fn half_way_up_the_curve_sizes_start_at_1009_bytes() {
        let (least, most, mean) = sizes(&mut on_curve(85.0, Some((70.0, 100.0)), &[]));
        assert_eq!((least, most), (1009, 1460));
        assert!((mean - 1234.5).abs() < 0.5, "{mean}");
    }

    #[test]
    fn the_conservative_setting_waits_for_the_last_maximum() {
        let conservative = [("rand_v_tau", f64::INFINITY)];
        assert_eq!(sizes(&mut on_curve(85.0, Some((70.0, 100.0)), &conservative)).0, 1460);
        assert_eq!(sizes(&mut on_curve(100.0, Some((70.0, 100.0)), &conservative)).0, 730);
    }

    #[test]
    fn the_aggressive_setting_never_ends_and_stops_at_theta() {
        let aggressive = [("rand_mu", 0.0), ("rand_v_omega", 0.0)];
        assert_eq!(sizes(&mut on_curve(85.0, Some((70.0, 100.0)), &aggressive)).0, 450);
        assert_eq!(sizes(&mut on_curve(500.0, Some((70.0, 100.0)), &aggressive)).0, 200);
        assert_eq!(sizes(&mut on_curve(131.0, Some((70.0, 100.0)), &[])).0, 1460);
    }

    #[test]
    fn sizes_are_full_without_a_maximum_and_below_the_epochs_start() {
        for epoch in [None, Some((100.0, 90.0)), Some((100.0, 100.0)), Some((90.0, 100.0))] {
            assert_eq!(sizes(&mut on_curve(85.0, epoch, &[])).0, 1460, "{epoch:?}");
        }
    }

    #[test]
    fn r_min_follows_the_window_underneath() {
        let mut rand = on_curve(84.0, Some((70.0, 100.0)), &[]);
        rand.on_ack(&Conn::new(1460), &Ack::of(1, 1460, 1460, None));
        assert_eq!(sizes(&mut rand).0, 1009);
    }

    #[test]
    fn static_sizes_work_on_any_sender() {
        let setup = Setup { mss: 1448, ..Setup::default() };
        let mut sender = registry::build("tcprand+newreno", &setup, &args(&[("rand_rmin", 600.0)])).unwrap().sender;
        let mut conn = Conn::new(1448);
        assert_eq!(sender.segment_size(&conn), 600);
        conn.uniform = 0.999_999;
        assert_eq!(sender.segment_size(&conn), 1448);
        assert_eq!(
            sender.needs(),
            Needs {
                randomness: true,
                segment_sizes: true,
                recovery: Some(crate::RecoveryKind::NewReno),
                ..Needs::default()
            }
        );
    }

    #[test]
    fn a_static_r_min_of_the_mss_is_ordinary_tcp() {
        for r_min in [1460.0, 9000.0] {
            let (least, most, _) = sizes(&mut on_curve(85.0, Some((70.0, 100.0)), &[("rand_rmin", r_min)]));
            assert_eq!((least, most), (1460, 1460));
        }
    }

    #[test]
    fn the_window_counts_bytes_when_asked() {
        let mut args = args(&[("rand_rmin", 200.0)]);
        args.set("rand_cwnd_unit", Value::Word("bytes".into()));
        let sender = registry::build("tcprand+newreno", &Setup::default(), &args).unwrap().sender;
        assert!(sender.needs().byte_window);
    }

    #[test]
    fn adaptive_on_a_sender_without_a_curve_says_what_to_do() {
        let error = registry::build("tcprand+newreno", &Setup::default(), &Args::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "parameter `rand_rmin` = 0 (adaptive): it must be 1 byte or more here: the adaptive rule follows a growth \
             curve that only cubic has, as in `tcprand+cubic`"
        );
    }

    #[test]
    fn an_adaptive_setting_with_static_sizes_is_an_error() {
        let args = args(&[("rand_rmin", 200.0), ("rand_mu", 0.0)]);
        let error = registry::build("tcprand+newreno", &Setup::default(), &args).unwrap_err();
        assert_eq!(
            error.to_string(),
            "parameter `rand_rmin` = 200: it must be 0 (adaptive) for `rand_mu` to have a meaning"
        );
    }
}
