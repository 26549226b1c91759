//! IA-TCP: the window that a receiving host gives each of n connections, and how long it holds their ACKs.
//!
//! Source: "A Delay-Based TCP for Data Center Networks" (DCVegas), equations 3 and 4; the original paper was not available.

#[cfg(not(feature = "std"))]
use crate::bare::*;

/// The window of each of `n` connections before rounding, in packets (equation 4): `c` packets/s, `rtt_min` s.
pub fn fair_share(c: f64, rtt_min: f64, n: f64) -> f64 {
    c * rtt_min / n
}

/// How a share becomes whole packets. None is stated; see docs/algorithms/iatcp.md for what the published figures say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rounding {
    /// The nearest whole number.
    #[default]
    Nearest,
    /// Never more than the share: idle capacity up to one packet per connection.
    Down,
    /// Never less than the share: held ACKs keep the sum within capacity.
    Up,
}

/// The window that is advertised, in packets: at least 1.
pub fn window(c: f64, rtt_min: f64, n: f64, rounding: Rounding) -> f64 {
    let share = fair_share(c, rtt_min, n);
    match rounding {
        Rounding::Nearest => share.round(),
        Rounding::Down => share.floor(),
        Rounding::Up => share.ceil(),
    }
    .max(1.0)
}

/// How long each ACK is held, in seconds, so that `n` windows of `w` packets stay within `c` (equation 3).
pub fn ack_delay(c: f64, rtt_min: f64, n: f64, w: f64) -> f64 {
    (n * w / c - rtt_min).max(0.0)
}

/// Packets per second of all connections together (equation 3).
pub fn aggregate_rate(c: f64, rtt_min: f64, n: f64, w: f64) -> f64 {
    n * w / (rtt_min + ack_delay(c, rtt_min, n, w))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{close, packets_per_second};

    #[test]
    fn a_few_connections_share_the_pipe_and_many_are_throttled() {
        let (c, rtt) = (packets_per_second(1e9, 1500.0), 224.64e-6);
        for rounding in [Rounding::Nearest, Rounding::Down] {
            close(fair_share(c, rtt, 8.0), 2.34);
            assert_eq!((window(c, rtt, 8.0, rounding), ack_delay(c, rtt, 8.0, 2.0)), (2.0, 0.0));
            close(fair_share(c, rtt, 64.0), 0.2925);
            assert_eq!(window(c, rtt, 64.0, rounding), 1.0);
            close(ack_delay(c, rtt, 64.0, 1.0), 543.36e-6);
            close(aggregate_rate(c, rtt, 64.0, 1.0), 83333.33333333333);
        }
    }

    #[test]
    fn the_connections_together_never_exceed_the_link_and_rounding_up_fills_it() {
        let (c, rtt) = (packets_per_second(10e9, 1000.0), 104e-6);
        for n in (1..=128).map(f64::from) {
            for rounding in [Rounding::Nearest, Rounding::Down, Rounding::Up] {
                let rate = aggregate_rate(c, rtt, n, window(c, rtt, n, rounding));
                assert!(rate <= c * (1.0 + 1e-12));
                assert!(rounding != Rounding::Up || rate >= c * (1.0 - 1e-12));
            }
        }
    }
}
