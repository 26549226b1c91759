//! TCP-TRIM: where the delay threshold K must lie, the buffer that needs, and the bounds of the asynchronous timers.
//!
//! Source: "Tuning the Aggressive TCP Behavior for Highly Concurrent HTTP Connections in Intra-datacenter", section III, equations
//! 16 to 33. `c` is the bottleneck's capacity in packets/s, `d` the round trip without queueing in s, `b` the port's buffer in packets.

#[cfg(not(feature = "std"))]
use crate::bare::*;

/// Least K that keeps `n` synchronised connections from draining the queue, in seconds (equation 16).
pub fn k_for_connections(c: f64, d: f64, n: f64) -> f64 {
    2.0 * n * d / (n + 1.0) - n / c
}

/// The number of connections for which equation 16 asks most (equation 19).
pub fn worst_connections(c: f64, d: f64) -> f64 {
    (2.0 * c * d).sqrt() - 1.0
}

/// Lower bound of K for any number of connections, in seconds (equation 22). An unlimited `c` gives the limit, 2D.
///
/// ```
/// let k = fanin_cc::model::trim::k_lower(1e9 / 12_000.0, 200e-6);
/// assert!((k - 273.4359353944899e-6).abs() < 1e-15);
/// ```
pub fn k_lower(c: f64, d: f64) -> f64 {
    if c.is_infinite() {
        return 2.0 * d;
    }
    // Below one connection equation 19 asks for none.
    let root = ((2.0 * c * d).sqrt() - 1.0).max(0.0);
    (root * root / c).max(d)
}

/// Upper bound of K in seconds: a slow start that doubles what K allows still fits the buffer (equation 25).
pub fn k_upper(c: f64, d: f64, b: f64) -> f64 {
    (b + c * d) / (2.0 * c)
}

/// The two ends of the paper's interval for K, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KInterval {
    /// No underflow above this.
    pub lower: f64,
    /// No overflow below this.
    pub upper: f64,
}

impl KInterval {
    /// Equation 26.
    pub fn new(c: f64, d: f64, b: f64) -> KInterval {
        KInterval { lower: k_lower(c, d), upper: k_upper(c, d, b) }
    }
    /// No K does both: the buffer is smaller than [`buffer_needed`].
    pub fn is_empty(&self) -> bool {
        self.lower > self.upper
    }
    /// The paper's K near the lower end: the lower bound, or the upper one where the interval is empty.
    pub fn lower_choice(&self) -> f64 {
        self.lower.min(self.upper)
    }
}

/// Packets a K leaves standing in the queue (equation 4).
pub fn queue_at(c: f64, d: f64, k: f64) -> f64 {
    c * (k - d)
}

/// Least buffer in packets for which a K exists (equations 28 and 29).
pub fn buffer_needed(c: f64, d: f64) -> f64 {
    let cd = c * d;
    if k_lower(c, d) > d { 3.0 * cd - 4.0 * (2.0 * cd).sqrt() + 2.0 } else { cd }
}

/// Least maximum of the AS timer without loss, in seconds, at least zero (equation 32). `w` is the window each of `n` resumes with.
///
/// The paper counts the packets in flight as (arrival rate - C) times the period (equation 31) and then compares them with B plus C
/// times the period: the service is subtracted twice, so this bound is half of what it should be. The algorithm does not use it.
pub fn as_lower(c: f64, b: f64, n: f64, w: f64) -> f64 {
    (((n - 2.0) * w - b) / (2.0 * c)).max(0.0)
}

/// Greatest maximum of the AS timer that keeps the link busy, in seconds (equation 33): what TRIM waits at most.
pub fn as_upper(c: f64, n: f64, w: f64) -> f64 {
    (n - 1.0) * w / c
}

/// How many connections probe at once, from what was in flight during the probes' round trip; at least 1 (section III-C).
pub fn concurrent_probers(c: f64, probe_rtt: f64) -> f64 {
    (probe_rtt * c / 2.0).max(1.0)
}

/// Share of the window that a round trip above K says is too much (equation 2).
pub fn excess(rtt: f64, k: f64) -> f64 {
    (rtt - k) / rtt
}

/// The window to resume with after probes on time, before the floor of 2 (equation 1).
pub fn resumed_window(saved: f64, probe_rtt: f64, min_rtt: f64) -> f64 {
    saved * (1.0 - (probe_rtt - min_rtt) / min_rtt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{close, packets_per_second};

    /// 1 Gbps and 10 Gbps in packets of 1500 B.
    fn c(gbps: f64) -> f64 {
        packets_per_second(gbps * 1e9, 1500.0)
    }

    #[test]
    fn k_lies_between_the_bounds_of_equations_22_and_25() {
        for (rate, d, b, lower, upper) in [
            (1.0, 200e-6, 100.0, 273.4359353944899e-6, 700e-6),
            (1.0, 224.64e-6, 100.0, 314.4282380085278e-6, 712.32e-6),
            (10.0, 100e-6, 350e3 / 1500.0, 170.2161332303407e-6, 190e-6),
        ] {
            let k = KInterval::new(c(rate), d, b);
            close(k.lower, lower);
            close(k.upper, upper);
            assert!(!k.is_empty());
        }
    }

    #[test]
    fn the_table_of_the_third_setting_counts_kibibytes() {
        // 193.36 us and 77.8 packets need 350 KiB = 238.93 packets.
        let upper = k_upper(c(10.0), 100e-6, 350.0 * 1024.0 / 1500.0);
        close(upper, 193.36e-6);
        assert!((queue_at(c(10.0), 100e-6, upper) - 77.8).abs() < 0.01);
    }

    #[test]
    fn queues_and_buffers_are_those_of_the_table() {
        for (rate, d, at_lower, needed) in
            [(1.0, 200e-6, 6.12, 28.906), (1.0, 224.64e-6, 7.48, 33.685), (10.0, 100e-6, 58.5, 200.36)]
        {
            assert!((queue_at(c(rate), d, k_lower(c(rate), d)) - at_lower).abs() < 0.02);
            assert!((buffer_needed(c(rate), d) - needed).abs() < 0.005);
        }
        assert!((queue_at(c(1.0), 200e-6, 700e-6) - 41.67).abs() < 0.01);
    }

    #[test]
    fn the_lower_bound_is_the_worst_case_over_the_number_of_connections() {
        let (c, d) = (c(1.0), 224.64e-6);
        let worst = worst_connections(c, d);
        close(k_for_connections(c, d, worst), k_lower(c, d));
        for n in 1..60 {
            assert!(k_for_connections(c, d, f64::from(n)) <= k_lower(c, d) + 1e-15);
        }
    }

    #[test]
    fn an_interval_exists_exactly_from_the_needed_buffer_on() {
        for (c, d) in [(c(1.0), 200e-6), (c(1.0), 50e-6)] {
            let needed = buffer_needed(c, d);
            assert!(!KInterval::new(c, d, needed * 1.000001).is_empty());
            assert!(KInterval::new(c, d, needed * 0.999999).is_empty());
        }
        let tight = KInterval::new(c(1.0), 200e-6, 20.0);
        close(tight.lower_choice(), k_upper(c(1.0), 200e-6, 20.0));
    }

    #[test]
    fn the_small_pipe_takes_the_second_branch() {
        // CD = 4.17 packets, below 5.83: D itself is the bound.
        close(k_lower(c(1.0), 50e-6), 50e-6);
        close(buffer_needed(c(1.0), 50e-6), c(1.0) * 50e-6);
        // CD = 0.08 packets: equation 19 gives less than one connection, and its square 0.35 packets.
        close(k_lower(c(0.01), 100e-6), 100e-6);
        close(buffer_needed(c(0.01), 100e-6), c(0.01) * 100e-6);
    }

    #[test]
    fn the_stream_timer_waits_for_the_other_probers() {
        let n = concurrent_probers(c(1.0), 246e-6);
        close(n, 10.25);
        close(as_upper(c(1.0), n, 27.0), 2.997e-3);
        assert_eq!(concurrent_probers(c(1.0), 1e-6), 1.0);
        close(as_lower(c(1.0), 100.0, 40.0, 5.0), 90.0 / (2.0 * c(1.0)));
        assert_eq!(as_lower(c(1.0), 100.0, 3.0, 5.0), 0.0);
    }

    #[test]
    fn without_a_known_capacity_the_bound_is_its_limit() {
        close(k_lower(f64::INFINITY, 200e-6), 400e-6);
        assert!(k_lower(1e15, 200e-6) < 400e-6);
    }
}
