//! DCTCP: the marking threshold, and the queue and fraction it settles at.
//!
//! Source: "Data Center TCP (DCTCP)" (SIGCOMM 2010), section 3.3, and RFC 8257 section 4.1. `c` is packets/s, `rtt` s, `k` packets.

#[cfg(not(feature = "std"))]
use crate::bare::*;

/// Least marking threshold in packets that keeps the link busy: C x RTT / 7 (equation 13).
///
/// ```
/// // The published sweep: 100 Mbps, 10 ms.
/// let c = fanin_cc::model::packets_per_second(100e6, 1500.0);
/// assert!((fanin_cc::model::dctcp::k_least(c, 10e-3) - 11.9).abs() < 0.01);
/// ```
pub fn k_least(c: f64, rtt: f64) -> f64 {
    c * rtt / 7.0
}

/// Fraction of marked packets of `n` synchronised long flows, from alpha^2 (1 - alpha/4) = (2W + 1)/(W + 1)^2 (equation 6), where
/// W = (C x RTT + K)/n is the window at which marking starts. Capped at 1, which small windows would exceed.
pub fn steady_alpha(c: f64, rtt: f64, k: f64, n: f64) -> f64 {
    let w = (c * rtt + k) / n;
    let target = (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0));
    if target >= 0.75 {
        return 1.0;
    }
    // The left side rises from 0 to 3/4 on [0, 1]: bisection always ends at the only root.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if middle * middle * (1.0 - middle / 4.0) < target { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Greatest queue in packets: every flow overshoots by one (equation 10).
pub fn queue_max(k: f64, n: f64) -> f64 {
    k + n
}

/// Amplitude of the queue's oscillation in packets, n (W + 1) alpha / 2 (equations 7 and 8, with alpha not approximated).
pub fn queue_amplitude(c: f64, rtt: f64, k: f64, n: f64) -> f64 {
    let w = (c * rtt + k) / n;
    n * (w + 1.0) * steady_alpha(c, rtt, k, n) / 2.0
}

/// The paper's approximation of [`queue_amplitude`] for small alpha: sqrt(2 n (C x RTT + K)) / 2 (equation 8).
pub fn queue_amplitude_approximate(c: f64, rtt: f64, k: f64, n: f64) -> f64 {
    0.5 * (2.0 * n * (c * rtt + k)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{close, packets_per_second};

    #[test]
    fn the_threshold_of_the_published_sweep_is_11_9() {
        close(k_least(packets_per_second(100e6, 1500.0), 10e-3), 100e6 * 10e-3 / 12000.0 / 7.0);
    }

    #[test]
    fn alpha_solves_the_papers_equation() {
        let (c, rtt, k) = (packets_per_second(10e9, 1500.0), 100e-6, 40.0);
        for n in [2.0, 10.0, 40.0] {
            let (alpha, w) = (steady_alpha(c, rtt, k, n), (c * rtt + k) / n);
            close(alpha * alpha * (1.0 - alpha / 4.0), (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0)));
        }
        assert_eq!(steady_alpha(c, rtt, k, 1e6), 1.0);
    }

    #[test]
    fn large_windows_approach_the_square_root() {
        let (c, rtt, k) = (packets_per_second(100e9, 1500.0), 1e-3, 100.0);
        let ratio = queue_amplitude(c, rtt, k, 2.0) / queue_amplitude_approximate(c, rtt, k, 2.0);
        assert!((ratio - 1.0).abs() < 0.01);
        assert_eq!(queue_max(20.0, 2.0), 22.0);
    }
}
