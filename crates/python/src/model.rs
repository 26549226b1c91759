//! The papers' closed forms for Python. Capacities are packets per second, times seconds, buffers and windows packets.

use crate::error::{Class, raise};
use fanin_cc::model::{dctcp as dctcp_forms, gss, iatcp as iatcp_forms, tcprand, trim};
use fanin_sim::rng::Stream;
use fanin_units::{Bytes, Duration, QueueLimit, Rate};
use pyo3::prelude::*;

/// Where TRIM's delay threshold must lie and the buffer that needs: (lower K in s, upper K in s, buffer in packets), from capacity in
/// packets/s, round trip without queueing in s, and the port's buffer in packets (equations 22 to 29).
#[pyfunction]
pub fn trim_k(c: f64, d: f64, b: f64) -> (f64, f64, f64) {
    let k = trim::KInterval::new(c, d, b);
    (k.lower, k.upper, trim::buffer_needed(c, d))
}

/// Bounds of the greatest wait of TRIM's asynchronous timers: (lower, upper) in s, for `n` connections that resume with `w` packets
/// (equations 32 and 33).
#[pyfunction]
pub fn trim_as(c: f64, b: f64, n: f64, w: f64) -> (f64, f64) {
    (trim::as_lower(c, b, n, w), trim::as_upper(c, n, w))
}

/// Probability that one of `n` flows loses a whole window after growing by (doubling, one packet), `served` packets per round trip.
#[pyfunction]
pub fn gss_incast(served: f64, n: f64) -> (f64, f64) {
    let of = |growth| gss::incast_after_growth(served, n, growth);
    (of(gss::Growth::Doubling), of(gss::Growth::Additive))
}

/// How often the second packets of two flows at a full queue find room: (X2, Y2, both, neither), by Monte Carlo.
#[pyfunction]
pub fn rand_enqueue(py: Python<'_>, r_min: u32, mss: u32, trials: u32, seed: u64) -> (f64, f64, f64, f64) {
    py.detach(|| {
        let mut stream = Stream::new(seed, "model rand-enqueue", 0);
        let found = tcprand::enqueue_probability(r_min, mss, trials, &mut || stream.uniform());
        (found.x2, found.y2, found.both, found.neither)
    })
}

/// TCPRand's least payload in bytes for each window of `cwnds`.
#[pyfunction]
#[pyo3(signature = (cwnds, epoch_cwnd, w_max, mss, *, sigma2, mu, v_tau, v_omega, theta))]
#[expect(clippy::too_many_arguments, reason = "they are the paper's parameters, named in every call")]
pub fn rand_rmin(
    cwnds: Vec<f64>,
    epoch_cwnd: f64,
    w_max: f64,
    mss: f64,
    sigma2: f64,
    mu: f64,
    v_tau: f64,
    v_omega: f64,
    theta: f64,
) -> Vec<f64> {
    let rule = tcprand::Adaptive { sigma2, mu, v_tau, v_omega, theta, ..tcprand::Adaptive::default() };
    cwnds.into_iter().map(|cwnd| rule.r_min(cwnd, epoch_cwnd, w_max, mss)).collect()
}

/// DCTCP: (least K, alpha, greatest queue, amplitude of the queue) of `n` flows with threshold `k`, in packets.
#[pyfunction]
pub fn dctcp(c: f64, rtt: f64, k: f64, n: f64) -> (f64, f64, f64, f64) {
    (
        dctcp_forms::k_least(c, rtt),
        dctcp_forms::steady_alpha(c, rtt, k, n),
        dctcp_forms::queue_max(k, n),
        dctcp_forms::queue_amplitude(c, rtt, k, n),
    )
}

/// IA-TCP for `n` connections: (share in packets, window in packets, wait of each ACK in s, all connections in packets/s).
#[pyfunction]
pub fn iatcp(c: f64, rtt_min: f64, n: f64, rounding: &str) -> (f64, f64, f64, f64) {
    let rounding = match rounding {
        "down" => iatcp_forms::Rounding::Down,
        "up" => iatcp_forms::Rounding::Up,
        _ => iatcp_forms::Rounding::Nearest,
    };
    let w = iatcp_forms::window(c, rtt_min, n, rounding);
    (
        iatcp_forms::fair_share(c, rtt_min, n),
        w,
        iatcp_forms::ack_delay(c, rtt_min, n, w),
        iatcp_forms::aggregate_rate(c, rtt_min, n, w),
    )
}

/// A quantity with its unit as a number: `rate` in bit/s, `time` in s, `size` in bytes. `option` is named when it is none.
#[pyfunction]
pub fn quantity(py: Python<'_>, kind: &str, text: &str, option: &str) -> PyResult<f64> {
    let parsed = match kind {
        "rate" => text.parse::<Rate>().map(|r| r.bps() as f64),
        "time" => text.parse::<Duration>().map(Duration::as_secs),
        _ => text.parse::<Bytes>().map(|b| b.get() as f64),
    };
    parsed.map_err(|error| raise(py, Class::Scenario, format!("command line `{option} {text}`: {error}")))
}

/// A buffer such as `100p` or `64KB` in packets of `wire` bytes.
#[pyfunction]
pub fn limit(py: Python<'_>, text: &str, wire: f64, option: &str) -> PyResult<f64> {
    match text.parse::<QueueLimit>() {
        Ok(QueueLimit::Packets(n)) => Ok(f64::from(n)),
        Ok(QueueLimit::Bytes(b)) => Ok(b.get() as f64 / wire),
        Err(error) => Err(raise(py, Class::Scenario, format!("command line `{option} {text}`: {error}"))),
    }
}
