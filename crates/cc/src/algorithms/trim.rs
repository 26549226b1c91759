//! TCP-TRIM: a connection that starts a new train of packets on an inherited window first sends two probes and lets their round trip
//! decide how much of that window it may use; in between, delay above a threshold K shrinks the window before the queue overflows.
//!
//! *Source*: "Tuning the Aggressive TCP Behavior for Highly Concurrent HTTP Connections in Intra-datacenter" (ToN 2017), section
//! III, Algorithms 1 and 2, equations 1 to 3 and 22 to 33 (those in [`crate::model::trim`]).
//!
//! *Departures*, each a switch where the paper can be read both ways (docs/algorithms/trim.md):
//! - The delay cut comes once per window, as the analysis has it, not on every ACK (`trim_cut`).
//! - Slow start stays, but a cut or a probe's verdict lowers ssthresh to the window it sets (`trim_growth`).
//! - The minimum round trip starts as the configured base of the path (`trim_min_rtt`).
//! - No probing and no delay cut in fast recovery, which has just halved the window; ACKs of older data leave the window alone
//!   while probes are out; the end of a verdict's wait counts as a transmission, so that resuming a train is not a new train.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::algorithms::reno::RenoCore;
use crate::model::trim as model;
use crate::{
    Ack, Algorithm, Args, Cause, Caution, CongestionControl, Conn, Control, Profile, Gate, Kind, Needs, PathKnowledge, Probe,
    Setting, SettingError, Setup, SlowStart, State, Window,
};
use fanin_units::{Bytes, Duration, Time};

const CUT: Setting = Setting::choice("trim_cut", &["per_window", "per_ack"])
    .doc("Algorithm 2 line 18, equation 10", "how often a round trip above K shrinks the window");
const GROWTH: Setting = Setting::choice("trim_growth", &["standard", "literal"]).doc(
    "Algorithm 2 line 20",
    "standard: slow start below an ssthresh that cuts and probes lower; literal: +1/cwnd per ACK always",
);
const K: Setting = Setting::choice("trim_k", &["lower", "upper", "fixed"]).doc(
    "equations 22 to 26",
    "delay threshold: an end of the paper's interval (the upper one where the interval is empty) or trim_k_fixed",
);
const K_FIXED: Setting =
    Setting::parameter("trim_k_fixed", 0.0, 0.0, 10.0).unit("s").doc("equation 26", "the threshold when trim_k is fixed");
const PROBE_TEST: Setting = Setting::choice("trim_probe_test", &["any", "mean"]).doc(
    "Algorithm 2 line 8",
    "what must come back within the smoothed round trip for the old window to count: every probe, or their mean",
);
const TOLERANCE: Setting = Setting::parameter("trim_probe_tolerance", 0.0, 0.0, 1000.0).unit("packet times").doc(
    "section III-A, Algorithm 2 line 8",
    "what a probe, and the gap that starts probing, may exceed the smoothed round trip by: 1 is a probe's own serialisation at the \
     bottleneck, 2 adds as much host jitter",
);
const TRIGGER: Setting = Setting::choice("trim_trigger", &["any_gap", "idle_only"]).doc(
    "Algorithm 1, section III-A",
    "what starts probing: any gap above the smoothed round trip, or one in which nothing was outstanding and the application was silent",
);
const ASYNC: Setting = Setting::switch("trim_async", true)
    .doc("section III-B", "random waits before the probes (AD) and before the rest of the train (AS)");
const MIN_RTT: Setting = Setting::choice("trim_min_rtt", &["preset", "measured"])
    .doc("Algorithm 2 line 4", "the minimum round trip starts at the path's configured base, or at the first sample");
const WEIGHT: Setting = Setting::parameter("trim_rtt_weight", 0.25, 0.001, 1.0)
    .doc("section IV", "weight of a new sample in the smoothed round trip");

/// Packets of queue below which a caution says that the threshold leaves next to none: host jitter and the bursts of a few windows of 2 are
/// as large, so TRIM cuts its window while the path is all but empty.
const LEAST_QUEUE: f64 = 5.0;

/// A threshold K below the round trip D of an empty path, where every ACK says "congested", or hardly above it. The paper's fallback
/// (equation 25) comes to the first where the buffer is smaller than C*D; so does a fixed threshold that is too small.
/// docs/algorithms/trim.md, "A trap in the guideline".
fn without_a_queue(cc: &str, paths: &[PathKnowledge], wire: Bytes, args: &Args) -> Option<Caution> {
    let fixed = args.number(&K_FIXED, Profile::Rfc).ok().filter(|&k| k > 0.0);
    let upper = args.word(&K, Profile::Rfc).is_ok_and(|word| word == "upper");
    let (mut starved, mut short, mut worst) = (0, 0, None);
    for path in paths {
        // C in packets per second, D the round trip without queueing.
        let (c, d) = (path.rate.bps() as f64 / (8.0 * wire.get() as f64), path.base_rtt.as_secs());
        let k = fixed.unwrap_or_else(|| {
            let interval = model::KInterval::new(c, d, path.buffer_packets);
            if upper { interval.upper } else { interval.lower_choice() }
        });
        let queue = model::queue_at(c, d, k);
        // Equation 25, (B + CD)/(2C), is below D where B < CD.
        starved += usize::from(k < d);
        if queue < LEAST_QUEUE {
            short += 1;
            if worst.is_none_or(|(w, _, _, _)| queue < w) {
                worst = Some((queue, k, path, c));
            }
        }
    }
    let (queue, k, path, c) = worst?;
    let d = path.base_rtt.as_secs();
    let on = |n: usize| if n == paths.len() { String::new() } else { format!(" on {n} of {} flows", paths.len()) };
    if starved == 0 {
        let message = format!(
            "`{cc}`: its delay threshold K of {} leaves {queue:.1} packets of queue above the empty round trip of {}{}, as little as host \
             jitter makes; a larger K: `cc.trim_k = \"upper\"`, or `cc.trim_k = \"fixed\"` with `cc.trim_k_fixed`",
            time(k),
            time(d),
            on(short)
        );
        return Some(Caution { kind: "delay-threshold-without-queue", message });
    }
    let what = format!(
        "`{cc}`: its delay threshold K of {} lies below the empty round trip of {}{}, so windows sink to 2 even on an idle network",
        time(k),
        time(d),
        on(starved)
    );
    let message = if fixed.is_some() {
        format!("{what}; set `cc.trim_k_fixed` above that round trip")
    } else {
        format!(
            "{what}: the bottleneck's buffer of {:.0} packets is smaller than C*D = {:.0}; give it {:.0} or more, or set \
             `cc.trim_k = \"fixed\"` and `cc.trim_k_fixed = \"{}\"` (equation 22)",
            path.buffer_packets,
            c * d,
            model::buffer_needed(c, d).max(c * d).ceil(),
            time(model::k_lower(c, d)).replace(' ', "")
        )
    };
    Some(Caution { kind: "delay-threshold-below-rtt", message })
}

/// A time with three digits or so.
fn time(seconds: f64) -> String {
    match seconds * 1e6 {
        us if us < 100.0 => format!("{us:.1} us"),
        us if us < 10_000.0 => format!("{us:.0} us"),
        us => format!("{:.1} ms", us / 1e3),
    }
}

/// `trim`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "trim",
    title: "TCP-TRIM: probes before reusing an old window, keeps the delay below a threshold",
    source: "Zhang et al., ToN 2017",
    deploy: &[Place::Twin("fanin_trim")],
    params: &[CUT, GROWTH, K, K_FIXED, TRIGGER, PROBE_TEST, TOLERANCE, ASYNC, MIN_RTT, WEIGHT],
    check: Some(without_a_queue),
    ..Algorithm::of(Kind::Sender(|setup, args, ss| Ok(Box::new(Trim::new(setup, args, ss)?))))
}];

/// Least window that TRIM itself sets (section III-C); a timeout still goes on from 1.
const MIN_CWND: f64 = 2.0;
/// Probes of a train.
const PROBES: usize = 2;

/// Which point of the paper's interval K is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum KChoice {
    Lower,
    Upper,
    Fixed(f64),
}

/// What the operator knows of the bottleneck: packets/s (infinite where unknown) and packets.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bottleneck {
    c: f64,
    b: f64,
}

/// The conventional sender with TRIM's probing and delay control.
#[derive(Debug)]
pub struct Trim {
    core: RenoCore,
    cut_per_ack: bool,
    additive_only: bool,
    k_choice: KChoice,
    compare_mean: bool,
    idle_only: bool,
    /// Seconds above the smoothed round trip that are not called late.
    tolerance: f64,
    waits: bool,
    weight: f64,
    path: Bottleneck,
    /// Smallest round trip in seconds, the paper's D; infinite before anything is known.
    min_rtt: f64,
    /// Greatest sample in seconds; never reset (section III-B).
    max_rtt: f64,
    /// Smoothed round trip in seconds.
    smooth_rtt: Option<f64>,
    /// Delay threshold in seconds.
    k: f64,
    /// Set while a train start is being probed.
    probing: Option<Probing>,
    /// No new segment before this time: the AD or the AS wait.
    hold: Time,
    /// When the last verdict let the train go on; takes the place of a transmission (spec 9.6.7).
    resumed: Option<Time>,
    /// First byte that was not sent at the last delay cut: the next cut waits until data from here on is acknowledged.
    cut_mark: Option<u64>,
    /// When everything sent had been acknowledged; `None` while something is outstanding.
    emptied: Option<Time>,
}

/// A train start under test.
#[derive(Debug)]
struct Probing {
    /// The inherited window in packets.
    saved_cwnd: f64,
    /// What a probe may take, in seconds: the smoothed round trip when the train started, and the tolerance.
    deadline: f64,
    /// First byte of each probe, in the order sent.
    probes: [u64; PROBES],
    sent: usize,
    acked: usize,
    /// Sum of the round trips of acknowledged probes in seconds; NaN once one has none (retransmitted).
    rtt_sum: f64,
}

impl Trim {
    fn new(setup: &Setup, args: &Args, slow_start: Box<dyn SlowStart>) -> Result<Trim, SettingError> {
        let word = |param| args.word(param, setup.profile);
        let fixed = args.number(&K_FIXED, setup.profile)?;
        let k_choice = match word(&K)?.as_str() {
            "upper" => KChoice::Upper,
            "fixed" => KChoice::Fixed(fixed),
            _ => KChoice::Lower,
        };
        let is_fixed = matches!(k_choice, KChoice::Fixed(_));
        if is_fixed != (fixed > 0.0) {
            return Err(SettingError::BadValue {
                name: K_FIXED.name,
                value: fixed.to_string(),
                expected: if is_fixed {
                    "above 0 s when `trim_k` is fixed"
                } else {
                    "left out unless `trim_k` is fixed"
                }
                .to_owned(),
            });
        }
        let preset = word(&MIN_RTT)? == "preset";
        let path = match setup.path {
            Some(p) => Bottleneck { c: p.rate.bps() as f64 / (8.0 * setup.wire.get() as f64), b: p.buffer_packets },
            None => Bottleneck { c: f64::INFINITY, b: f64::INFINITY },
        };
        let mut trim = Trim {
            core: RenoCore::new(setup, slow_start),
            cut_per_ack: word(&CUT)? == "per_ack",
            additive_only: word(&GROWTH)? == "literal",
            k_choice,
            compare_mean: word(&PROBE_TEST)? == "mean",
            idle_only: word(&TRIGGER)? == "idle_only",
            // On a path of unknown rate a packet takes no time, as in the limit of equation 22.
            tolerance: args.number(&TOLERANCE, setup.profile)? / path.c,
            waits: args.flag(&ASYNC, setup.profile)?,
            weight: args.number(&WEIGHT, setup.profile)?,
            path,
            min_rtt: setup.path.filter(|_| preset).map_or(f64::INFINITY, |p| p.base_rtt.as_secs()),
            max_rtt: 0.0,
            smooth_rtt: None,
            k: f64::INFINITY,
            probing: None,
            hold: Time::ZERO,
            resumed: None,
            cut_mark: None,
            emptied: None,
        };
        trim.update_k();
        Ok(trim)
    }

    /// K for the present minimum round trip (Algorithm 2 line 5).
    fn update_k(&mut self) {
        let Bottleneck { c, b } = self.path;
        // Equation 22: max((sqrt(2CD) - 1)^2/C, D); equation 25: (B + CD)/(2C). 1 Gbps of 1500 bytes, D = 200 us and
        // B = 100: from 273 us, which leaves 6 packets in the queue, to 700 us, which leaves 42.
        self.k = match self.k_choice {
            KChoice::Fixed(k) => k,
            _ if self.min_rtt.is_infinite() => f64::INFINITY,
            // The interval's upper end needs a known buffer; without one there is only the limit of the lower.
            _ if c.is_infinite() => model::k_lower(c, self.min_rtt),
            KChoice::Lower => model::KInterval::new(c, self.min_rtt, b).lower_choice(),
            KChoice::Upper => model::k_upper(c, self.min_rtt, b),
        };
    }

    /// Algorithm 2 lines 2 to 6.
    fn sample(&mut self, rtt: f64) {
        let w = self.weight;
        // Algorithm 2 line 2: smooth_RTT = (1 - w) smooth_RTT + w RTT.
        self.smooth_rtt = Some(self.smooth_rtt.map_or(rtt, |s| (1.0 - w) * s + w * rtt));
        self.max_rtt = self.max_rtt.max(rtt);
        // Algorithm 2 lines 3 to 6: a smaller D moves K.
        if rtt < self.min_rtt {
            self.min_rtt = rtt;
            self.update_k();
        }
    }

    /// Sets the window, not below the floor, and what has to follow from that.
    fn set_cwnd(&mut self, conn: &Conn, packets: f64) {
        let cwnd = packets.max(MIN_CWND);
        let ssthresh = self.core.window.ssthresh.min(cwnd);
        self.core.on_restart(conn, Window { cwnd, ssthresh });
    }

    /// Passes an ACK that must not grow the window to the estimators below.
    fn keep_estimates(&mut self, conn: &Conn, ack: &Ack) {
        let quiet = Ack { may_grow: false, ..*ack };
        self.core.on_ack(conn, &quiet, 1.0);
    }

    fn start_probing(&mut self, conn: &Conn, deadline: f64) {
        // Algorithm 1: save the window, go on with two packets, after the AD wait of at most the largest round trip.
        let saved_cwnd = self.core.window.cwnd;
        self.probing =
            Some(Probing { saved_cwnd, deadline, probes: [0; PROBES], sent: 0, acked: 0, rtt_sum: 0.0 });
        self.core.window.cwnd = MIN_CWND;
        self.wait(conn, self.max_rtt);
    }

    /// A random wait of at most `most` seconds for the next new segment.
    fn wait(&mut self, conn: &Conn, most: f64) {
        if self.waits {
            self.hold = conn.now + Duration::from_secs(conn.uniform * most);
        }
    }

    /// Whether the sender had nothing outstanding for a while: the application was silent. A sender that waits for ACKs sends at the
    /// instant the last of them comes.
    fn was_silent(&self, conn: &Conn) -> bool {
        conn.snd_una == conn.snd_nxt && self.emptied.is_some_and(|at| at < conn.now)
    }

    /// Counts what this ACK says about the probes; true if it settles them, with the verdict "on time".
    fn verdict(&mut self, ack: &Ack) -> Option<bool> {
        let probing = self.probing.as_mut()?;
        let newly = probing.probes[probing.acked..probing.sent].iter().filter(|&&start| start < ack.ack_seq).count();
        if newly == 0 {
            return None;
        }
        probing.acked += newly;
        let rtt = ack.rtt.map_or(f64::NAN, |r| r.as_secs());
        probing.rtt_sum += newly as f64 * rtt;
        let mean = probing.rtt_sum / probing.acked as f64;
        let in_time = |rtt: f64| rtt <= probing.deadline;
        // A late probe settles it at once; the mean is known only when the last is back. NaN is never in time.
        if (!self.compare_mean && !in_time(rtt)) || mean.is_nan() {
            return Some(false);
        }
        (probing.acked == probing.sent).then(|| in_time(if self.compare_mean { mean } else { rtt }))
    }

    /// Algorithm 2 lines 8 to 14, and the AS wait.
    fn resolve(&mut self, conn: &Conn, on_time: bool) {
        let Some(probing) = self.probing.take() else { return };
        // Equation 1: the window comes back by how little the probes queued; a late one leaves the least.
        let probe_rtt = probing.rtt_sum / probing.acked as f64;
        // 30 saved, 225 us at least, probes of 246 us on average: 30 (1 - 21/225) = 27.2.
        let cwnd =
            if on_time { model::resumed_window(probing.saved_cwnd, probe_rtt, self.min_rtt) } else { MIN_CWND };
        self.set_cwnd(conn, cwnd);
        self.hold = Time::ZERO;
        if probe_rtt.is_finite() && self.path.c.is_finite() {
            // Equations 30 to 33: the rest of the train waits a random part of what N probers' windows take.
            // With those numbers and 83,333 packets/s: N = 10.25 probe, and the wait is 3.0 ms at most.
            let n = model::concurrent_probers(self.path.c, probe_rtt);
            self.wait(conn, model::as_upper(self.path.c, n, self.core.window.cwnd));
        }
        self.resumed = Some(self.hold.max(conn.now));
    }

    /// Algorithm 2 lines 16 to 21.
    fn control_queue(&mut self, conn: &Conn, ack: &Ack) {
        match ack.rtt.map(|r| r.as_secs()) {
            Some(rtt) if rtt >= self.k => {
                self.keep_estimates(conn, ack);
                let due = self.cut_per_ack || self.cut_mark.is_none_or(|mark| ack.ack_seq > mark);
                if due && conn.state != State::Recovery {
                    // Equations 2 and 3: cwnd (1 - ep / 2), with ep = (RTT - K) / RTT.
                    // 400 us at K = 300 us: ep = 0.25, and 20 packets become 17.5.
                    self.set_cwnd(conn, self.core.window.cwnd * (1.0 - model::excess(rtt, self.k) / 2.0));
                    self.cut_mark = Some(conn.snd_nxt);
                }
            }
            _ if self.additive_only => {
                self.keep_estimates(conn, ack);
                if ack.may_grow {
                    // Algorithm 2 by its letter: 1 / cwnd on each ACK below K.
                    self.core.window.cwnd += 1.0 / self.core.window.cwnd;
                }
            }
            _ => self.core.on_ack(conn, ack, 1.0),
        }
    }

    /// Seconds since this connection last sent or was let go on (Algorithm 1's ti).
    fn gap(&self, conn: &Conn, since_last: Option<Duration>) -> Option<f64> {
        // The end of an AS wait counts as a transmission: else the wait would be a gap above smooth_RTT, and a new train.
        let since_resumed = self.resumed.map_or(Duration::MAX, |t| conn.now.since(t));
        since_last.map(|d| d.min(since_resumed).as_secs())
    }
}

impl CongestionControl for Trim {
    fn needs(&self) -> Needs {
        Needs { send_hook: true, randomness: self.waits, quickack: true, ..Needs::default() }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        if ack.acked_bytes == 0 {
            return;
        }
        self.emptied = (ack.ack_seq >= conn.snd_nxt).then_some(conn.now);
        // The probe's deadline was taken before its own sample: the same test, since s + w (rtt - s) >= rtt iff s >= rtt.
        let verdict = self.verdict(ack);
        if let Some(rtt) = ack.rtt {
            self.sample(rtt.as_secs());
        }
        match (verdict, &self.probing) {
            (Some(on_time), _) => {
                self.keep_estimates(conn, ack);
                self.resolve(conn, on_time);
            }
            (None, Some(_)) => self.keep_estimates(conn, ack),
            (None, None) => self.control_queue(conn, ack),
        }
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        let probing = self.probing.take().is_some();
        self.core.on_congestion(conn, cause);
        if probing {
            // A lost probe is a late one.
            self.core.window.cwnd = self.core.window.cwnd.min(MIN_CWND);
            self.hold = Time::ZERO;
            self.resumed = Some(conn.now);
        }
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

    fn before_send(&mut self, conn: &Conn, since_last: Option<Duration>) -> Gate {
        if self.probing.is_none() {
            let repairing = matches!(conn.state, State::Recovery | State::Loss);
            if let (Some(gap), Some(smooth)) = (self.gap(conn, since_last), self.smooth_rtt)
                // Algorithm 1: the gap ti since the last transmission above smooth_RTT starts a new train.
                && gap > smooth + self.tolerance
                && !repairing
                && (!self.idle_only || self.was_silent(conn))
            {
                self.start_probing(conn, smooth + self.tolerance);
            }
        }
        if conn.now < self.hold {
            return Gate::HoldUntil(self.hold);
        }
        let Some(probing) = &mut self.probing else { return Gate::Go };
        // The window is 2 whatever the caller read before it asked.
        if conn.in_flight >= MIN_CWND {
            return Gate::HoldForAck;
        }
        if probing.sent > 0 && probing.probes[probing.sent - 1] == conn.snd_nxt {
            // Let go before, but kept back by something else (host jitter, a window in bytes).
            return Gate::Go;
        }
        // Algorithm 1: behind the probes everything waits for their ACKs.
        if probing.sent == PROBES {
            return Gate::HoldForAck;
        }
        probing.probes[probing.sent] = conn.snd_nxt;
        probing.sent += 1;
        Gate::Go
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.value("trim_k_s", self.k);
        probe.value("trim_smooth_rtt_s", self.smooth_rtt.unwrap_or(0.0));
        probe.value("trim_min_rtt_s", self.min_rtt);
        probe.value("trim_probing", f64::from(u8::from(self.probing.is_some())));
        probe.value("trim_saved_cwnd", self.probing.as_ref().map_or(0.0, |p| p.saved_cwnd));
    }
}

#[cfg(test)]
#[path = "trim_tests.rs"]
mod tests;
