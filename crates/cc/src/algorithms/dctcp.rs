//! DCTCP: the receiver echoes every mark, the sender smooths the fraction of marked bytes and cuts the window in proportion to it.
//!
//! *Source*: RFC 8257 section 3.3; "Data Center TCP (DCTCP)" (SIGCOMM 2010); for the integer form `tcp_dctcp.c`.
//!
//! *Departures* (docs/algorithms/dctcp.md): under NS2's profile alpha starts at 0 and the floor is 1, as in the ns-2 code of
//! the authors; a window ends at the first ACK for what was sent when the last one ended, where the RFC waits for one beyond.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::algorithms::reno::RenoCore;
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Kind, Needs, Setting, SettingError, Probe, Setup,
    SlowStart, Window,
};
use fanin_units::Duration;

pub(crate) const G: Setting =
    Setting::parameter("dctcp_g", 0.0625, 1e-4, 1.0).doc("RFC 8257 section 4.2", "weight of a window's fraction of marks");
pub(crate) const ALPHA0: Setting = Setting::parameter("dctcp_alpha0", 1.0, 0.0, 1.0)
    .ns2(0.0)
    .doc("RFC 8257 section 3.3", "alpha before the first window: 1 halves at the first mark");
pub(crate) const FLOOR: Setting = Setting::parameter("dctcp_floor", 2.0, 1.0, 1000.0)
    .unit("packets")
    .ns2(1.0)
    .doc("tcp_dctcp.c", "least window a mark leaves: decides how many senders an incast can hold");
pub(crate) const FORM: Setting = Setting::choice("dctcp_form", &["rfc", "linux"])
    .linux_word("linux")
    .doc("tcp_dctcp.c", "real numbers over bytes, or the kernel's integers over packets (g is 1/16 there)");

/// `dctcp`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "dctcp",
    title: "DCTCP: cuts the window by the fraction of marked bytes",
    source: "RFC 8257",
    needs_ecn: true,
    deploy: &[Place::Kernel("dctcp"), Place::Twin("fanin_dctcp")],
    params: &[G, ALPHA0, FLOOR, FORM],
    ..Algorithm::of(Kind::Sender(|setup, args, ss| Ok(Box::new(Dctcp::new(setup, args, ss)?))))
}];

/// alpha, counted and smoothed once per window of data; shared by the family.
#[derive(Clone, Debug)]
pub struct MarkedFraction {
    arithmetic: Arithmetic,
    /// Least window a cut leaves, packets.
    pub floor: f64,
    /// Delivered and delivered under ECE in this window: bytes, or packets in the integer form.
    total: u64,
    marked: u64,
    /// First byte not sent when the window began.
    window_end: u64,
    /// F of the last window.
    fraction: f64,
}

#[derive(Clone, Copy, Debug)]
enum Arithmetic {
    /// α and g.
    Real { alpha: f64, g: f64 },
    /// α in 1/1024, g = 1/16.
    Integer { alpha: u64 },
}

impl MarkedFraction {
    /// Before the first ACK.
    ///
    /// # Errors
    /// [`SettingError::BadValue`] for a parameter outside its range.
    pub fn new(setup: &Setup, args: &Args) -> Result<MarkedFraction, SettingError> {
        let alpha = args.number(&ALPHA0, setup.profile)?;
        let g = args.number(&G, setup.profile)?;
        let integer = args.word(&FORM, setup.profile)? == "linux";
        if integer && g != 0.0625 {
            return Err(SettingError::BadValue {
                name: G.name,
                value: g.to_string(),
                expected: "0.0625 with dctcp_form = linux; dctcp_form = rfc takes any".to_owned(),
            });
        }
        Ok(MarkedFraction {
            arithmetic: if integer {
                Arithmetic::Integer { alpha: (alpha * 1024.0).round() as u64 }
            } else {
                Arithmetic::Real { alpha, g }
            },
            floor: args.number(&FLOOR, setup.profile)?,
            total: 0,
            marked: 0,
            window_end: 0,
            fraction: 0.0,
        })
    }

    /// Counts this ACK, and updates alpha when it ends the window.
    pub fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        let delivered = match self.arithmetic {
            Arithmetic::Real { .. } => ack.delivered_bytes,
            Arithmetic::Integer { .. } => u64::from(ack.delivered_segments),
        };
        // RFC 8257 section 3.3: DCTCP.BytesAcked and DCTCP.BytesMarked; in the kernel tp->delivered and tp->delivered_ce.
        self.total += delivered;
        if ack.ece {
            self.marked += delivered;
        }
        self.end_window(conn, ack.ack_seq);
    }

    /// The kernel's module ends a window at ACKs that deliver nothing, too (`dctcp_update_alpha` in `in_ack_event`): a request that comes
    /// while nothing is outstanding ends one without marks.
    pub fn on_empty_ack(&mut self, conn: &Conn) {
        if self.counts_empty_acks() {
            self.end_window(conn, conn.snd_una);
        }
    }

    /// Whether [`Self::on_empty_ack`] does anything.
    pub fn counts_empty_acks(&self) -> bool {
        matches!(self.arithmetic, Arithmetic::Integer { .. })
    }

    fn end_window(&mut self, conn: &Conn, acked: u64) {
        // RFC 8257 section 3.3: an observation window ends where what was sent when it began is acknowledged.
        if acked < self.window_end {
            return;
        }
        self.window_end = conn.snd_nxt;
        let (total, marked) = (core::mem::take(&mut self.total).max(1), core::mem::take(&mut self.marked));
        self.fraction = marked as f64 / total as f64;
        match &mut self.arithmetic {
            // RFC 8257 section 3.3: alpha = alpha (1 - g) + g M.
            Arithmetic::Real { alpha, g } => *alpha = (1.0 - *g) * *alpha + *g * self.fraction,
            Arithmetic::Integer { alpha } => {
                // `dctcp_update_alpha`: alpha -= min_not_zero(alpha, alpha >> 4), then + (delivered_ce << (10 - 4)) / delivered, at most 1024.
                // Below 1/64 the shift is zero: alpha goes straight to 0 (`min_not_zero`).
                // From 1024: 960 after 40 packets without a mark, 916 after 40 with 10 marks, 891 after 40 with 20.
                *alpha -= if *alpha >> 4 == 0 { *alpha } else { *alpha >> 4 };
                *alpha = 1024.min(*alpha + (marked << 6) / total);
            }
        }
    }

    /// The kernel's module halves what it finds whenever a recovery begins (`dctcp_state`, `dctcp_react_to_loss`).
    pub fn on_loss_in_cwr(&self, core: &mut RenoCore, conn: &Conn, window: f64) {
        if matches!(self.arithmetic, Arithmetic::Integer { .. }) {
            // `dctcp_react_to_loss`: snd_ssthresh = max(snd_cwnd >> 1, 2).
            core.reduce(conn, (window / 2.0).floor().max(2.0));
        }
    }

    /// α, 0 to 1.
    pub fn alpha(&self) -> f64 {
        match self.arithmetic {
            Arithmetic::Real { alpha, .. } => alpha,
            Arithmetic::Integer { alpha } => alpha as f64 / 1024.0,
        }
    }

    /// What DCTCP leaves of `cwnd` packets: cwnd (1 - α/2), not below the floor.
    pub fn cut(&self, cwnd: f64) -> f64 {
        match self.arithmetic {
            // RFC 8257 section 3.3: cwnd = cwnd (1 - alpha/2).
            Arithmetic::Real { alpha, .. } => cwnd * (1.0 - alpha / 2.0),
            Arithmetic::Integer { alpha } => {
                // `dctcp_ssthresh`: max(cwnd - ((cwnd * alpha) >> 11), 2); alpha has ten bits, and half of it is one more.
                // alpha 891 leaves 40 - (35,640 >> 11) = 23 of 40; (1 - 0.87/2) 40 is 22.6.
                let whole = cwnd.floor() as u64;
                (whole - ((whole * alpha) >> 11)) as f64
            }
        }
        .max(self.floor)
    }

    /// What α raised to `exponent` leaves: cwnd (1 - α^exponent/2), not below the floor. There is no kernel form of this.
    pub fn cut_by(&self, cwnd: f64, exponent: f64) -> f64 {
        (cwnd * (1.0 - self.alpha().powf(exponent) / 2.0)).max(self.floor)
    }

    /// alpha and the last window's fraction, for traces.
    pub fn observe(&self, probe: &mut dyn Probe) {
        probe.value("dctcp_alpha", self.alpha());
        probe.value("dctcp_fraction", self.fraction);
    }
}

/// The sender of RFC 8257.
#[derive(Debug)]
pub struct Dctcp {
    core: RenoCore,
    fraction: MarkedFraction,
}

impl Dctcp {
    fn new(setup: &Setup, args: &Args, slow_start: Box<dyn SlowStart>) -> Result<Dctcp, SettingError> {
        Ok(Dctcp { core: RenoCore::new(setup, slow_start), fraction: MarkedFraction::new(setup, args)? })
    }
}

impl CongestionControl for Dctcp {
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
        match cause {
            Cause::Ecn => self.core.reduce(conn, self.fraction.cut(self.core.window.cwnd)),
            // RFC 8257 section 3.5: a loss is answered as by any TCP.
            Cause::Loss | Cause::Timeout { .. } => self.core.on_congestion(conn, cause),
        }
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
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithms::testing::{Driver, set};
    use crate::model::close;
    use crate::{Args, Cause, Profile, Setup, Value};

    /// Self-clocked: an ACK sees one packet less than the window outstanding, so 41 makes windows of 40 ACKs.
    fn sender(profile: Profile, args: &Args) -> Driver {
        Driver::new("dctcp", Setup { initial_window: 41.0, profile, ..Setup::default() }, args)
    }

    /// One window of ACKs without growth, the last `marked` with ECE.
    fn window(s: &mut Driver, marked: u32) {
        for i in 0..40 {
            s.echo(i >= 40 - marked, false);
        }
    }

    #[test]
    fn alpha_starts_at_one_and_follows_the_fraction_of_marked_bytes() {
        let mut s = sender(Profile::Rfc, &Args::default());
        assert_eq!(s.observed("dctcp_alpha"), 1.0);
        // The first ACK ends a window of its own.
        s.echo(false, false);
        close(s.observed("dctcp_alpha"), 0.9375);
        window(&mut s, 10);
        close(s.observed("dctcp_alpha"), 0.89453125);
        window(&mut s, 20);
        close(s.observed("dctcp_alpha"), 0.869873046875);
        s.restart(40.0, 40.0);
        s.congestion(Cause::Ecn);
        close(s.cc.control().cwnd, 22.6025390625);
        close(s.cc.control().ssthresh, 22.6025390625);
    }

    #[test]
    fn the_kernels_integers_give_960_916_891_and_a_threshold_of_23() {
        let mut s = sender(Profile::Linux, &Args::default());
        s.echo(false, false);
        assert_eq!(s.observed("dctcp_alpha") * 1024.0, 960.0);
        for (marked, alpha) in [(10, 916.0), (20, 891.0)] {
            window(&mut s, marked);
            assert_eq!(s.observed("dctcp_alpha") * 1024.0, alpha);
        }
        s.restart(40.0, 40.0);
        s.congestion(Cause::Ecn);
        assert_eq!((s.cc.control().cwnd, s.cc.control().ssthresh), (23.0, 23.0));
    }

    #[test]
    fn an_ack_that_delivers_nothing_ends_a_window_of_the_kernels_module_alone() {
        for (profile, alpha) in [(Profile::Linux, 900.0), (Profile::Rfc, 960.0)] {
            let mut s = sender(profile, &Args::default());
            s.echo(false, false);
            assert_eq!(s.observed("dctcp_alpha") * 1024.0, 960.0);
            // Within the window: no end. With all of it acknowledged: one, without marks.
            s.cc.on_empty_ack(&s.conn);
            assert_eq!(s.observed("dctcp_alpha") * 1024.0, 960.0);
            s.conn.snd_una = s.conn.snd_nxt;
            s.cc.on_empty_ack(&s.conn);
            assert_eq!(s.observed("dctcp_alpha") * 1024.0, alpha);
        }
    }

    #[test]
    fn a_small_integer_alpha_falls_to_zero() {
        let mut s = sender(Profile::Linux, &set("dctcp_alpha0", Value::Number(10.0 / 1024.0)));
        s.echo(false, false);
        assert_eq!(s.observed("dctcp_alpha"), 0.0);
    }

    #[test]
    fn bytes_are_counted_not_acks() {
        let mut s = sender(Profile::Rfc, &set("dctcp_g", Value::Number(1.0)));
        s.echo(false, false);
        // Ten ACKs of one packet without a mark, ten of three with: 30 of 40 packets, 10 of 20 ACKs.
        for _ in 0..10 {
            s.echo(false, false);
        }
        for _ in 0..10 {
            s.echo_many(3, true, false);
        }
        close(s.observed("dctcp_alpha"), 0.75);
    }

    #[test]
    fn the_update_comes_before_the_reaction_of_the_same_ack() {
        // g = 1 makes alpha the last window's fraction: the ACK that ends the window is the first with ECE.
        let mut s = sender(Profile::Rfc, &set("dctcp_g", Value::Number(1.0)));
        s.echo(false, false);
        for _ in 0..39 {
            s.echo(false, false);
        }
        s.ece_ack();
        close(s.cc.control().cwnd, 41.0 * (1.0 - 1.0 / 80.0));
    }

    #[test]
    fn ns2_starts_with_alpha_zero_and_may_fall_to_one_packet() {
        let mut s = sender(Profile::Ns2, &Args::default());
        s.ece_ack();
        close(s.observed("dctcp_alpha"), 0.0625);
        close(s.cc.control().cwnd, 41.0 * (1.0 - 0.03125));
        for (profile, least) in [(Profile::Ns2, 1.0), (Profile::Rfc, 2.0), (Profile::Linux, 2.0)] {
            let mut s = sender(profile, &Args::default());
            for _ in 0..400 {
                        s.ece_ack();
            }
            assert_eq!(s.cc.control().cwnd, least);
        }
    }

    #[test]
    fn a_loss_halves_and_a_timeout_leaves_one_packet() {
        let mut s = sender(Profile::Rfc, &Args::default());
        s.congestion(Cause::Loss);
        assert_eq!((s.cc.control().cwnd, s.cc.control().ssthresh), (20.5, 20.5));
        s.conn.loss_basis = 20.0;
        s.congestion(Cause::Timeout { repeated: false });
        assert_eq!((s.cc.control().cwnd, s.cc.control().ssthresh), (1.0, 10.0));
        // A mark must not lift the window of one packet to the floor of two.
        s.congestion(Cause::Ecn);
        assert_eq!(s.cc.control().cwnd, 1.0);
    }

    #[test]
    fn between_marks_the_window_grows_as_renos() {
        let mut s = Driver::new(
            "dctcp",
            Setup { initial_window: 10.0, initial_ssthresh: 5.0, ..Setup::default() },
            &Args::default(),
        );
        for _ in 0..10 {
            s.ack(None);
        }
        close(s.cc.control().cwnd, 10.958647968473018);
    }
}
