//! IA-TCP: the window that a receiving host gives each of n connections, and how long it holds their ACKs.
//!
//! Source: "A Delay-Based TCP for Data Center Networks" (DCVegas), equations 3 and 4; the original paper was not available.

/// The window of each of `n` connections before rounding, in packets (equation 4): `c` packets/s, `rtt_min` s.
pub fn fair_share(c: f64, rtt_min: f64, n: f64) -> f64 {
    c * rtt_min / n
}

/// The window that is advertised, in packets: at least 1.
pub fn window(c: f64, rtt_min: f64, n: f64) -> f64 {
    fair_share(c, rtt_min, n).floor().max(1.0)
}

/// How long each ACK is held, in seconds, so that the connections together stay within `c` (equation 3).
pub fn ack_delay(c: f64, rtt_min: f64, n: f64) -> f64 {
    (n * window(c, rtt_min, n) / c - rtt_min).max(0.0)
}

/// Packets per second of all connections together (equation 3).
pub fn aggregate_rate(c: f64, rtt_min: f64, n: f64) -> f64 {
    n * window(c, rtt_min, n) / (rtt_min + ack_delay(c, rtt_min, n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{close, packets_per_second};

    #[test]
    fn a_few_connections_share_the_pipe_and_many_are_throttled() {
        let (c, rtt) = (packets_per_second(1e9, 1500.0), 224.64e-6);
        close(fair_share(c, rtt, 8.0), 2.34);
        assert_eq!((window(c, rtt, 8.0), ack_delay(c, rtt, 8.0)), (2.0, 0.0));
        close(fair_share(c, rtt, 64.0), 0.2925);
        assert_eq!(window(c, rtt, 64.0), 1.0);
        close(ack_delay(c, rtt, 64.0), 543.36e-6);
        close(aggregate_rate(c, rtt, 64.0), 83333.33333333333);
    }

    #[test]
    fn the_connections_together_never_exceed_the_link() {
        let c = packets_per_second(10e9, 1000.0);
        for n in 1..=128 {
            assert!(aggregate_rate(c, 104e-6, f64::from(n)) <= c * (1.0 + 1e-12));
        }
    }
}
