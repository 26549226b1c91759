//! Gentle Slow Start: the probability that at least one of n flows times out in the round trip after the buffer filled.
//!
//! Source: "Gentle Slow Start to Alleviate TCP Incast in Data Center Networks", sections 2.3 and 3.1, equations 1 to 8, which the
//! available text garbles. The loss rate is read as 1 - B/(nw), because the paper says it becomes 0.5 when windows that fill the
//! buffer double; the printed order of the symbols would make it negative there.

#[cfg(not(feature = "std"))]
use crate::bare::*;

/// Share of packets lost when `n` flows send windows of `w` packets into room for `room` packets (equation 1); 0 if they fit.
pub fn loss_rate(room: f64, n: f64, w: f64) -> f64 {
    (1.0 - room / (n * w)).max(0.0)
}

/// Probability that at least one of `n` flows loses every one of `w` packets at this loss rate (equations 2 and 3).
pub fn incast_probability(loss: f64, n: f64, w: f64) -> f64 {
    1.0 - (1.0 - loss.powf(w)).powf(n)
}

/// Packets that one round trip serves plus those the buffer holds (equation 4): `rate` in bit/s, `rtt` in s, `buffer` and
/// `packet` in bytes.
pub fn served_packets(rate: f64, rtt: f64, buffer: f64, packet: f64) -> f64 {
    (rate / 8.0 * rtt + buffer) / packet
}

/// How windows grow in the round trip after they fill pipe and buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// Ordinary slow start.
    Doubling,
    /// One packet per flow: GSS under full congestion (alpha = 1).
    Additive,
}

/// Probability of incast with `n` flows whose windows together fill `served` packets and then grow (equations 5 and 6; figure 3).
///
/// ```
/// use fanin_cc::model::gss::{Growth, incast_after_growth, served_packets};
/// let served = served_packets(1e9, 100e-6, 250.0 * 1500.0, 1500.0);
/// assert!((incast_after_growth(served, 65.0, Growth::Doubling) - 0.9860566862904054).abs() < 1e-9);
/// ```
pub fn incast_after_growth(served: f64, n: f64, growth: Growth) -> f64 {
    let w = served / n;
    let grown = match growth {
        Growth::Doubling => 2.0 * w,
        Growth::Additive => w + 1.0,
    };
    incast_probability(loss_rate(served, n, grown), n, w)
}

/// How congested the round trip says the path is, 0 to 1 (equation 7); 0 while there is only one value.
pub fn congestion(rtt: f64, min: f64, max: f64) -> f64 {
    if max > min { ((rtt - min) / (max - min)).clamp(0.0, 1.0) } else { 0.0 }
}

/// Packets to add to a window of `cwnd` after one of its round trips (equation 8): cwnd when idle, 1 when congested.
pub fn increment(cwnd: f64, alpha: f64) -> f64 {
    cwnd.powf(1.0 - alpha)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::close;

    fn probability(rate: f64, n: f64, growth: Growth) -> f64 {
        incast_after_growth(served_packets(rate, 100e-6, 250.0 * 1500.0, 1500.0), n, growth)
    }

    #[test]
    fn incast_is_almost_certain_at_the_papers_numbers_of_flows() {
        close(probability(1e9, 65.0, Growth::Doubling), 0.9860566862904054);
        close(probability(10e9, 78.0, Growth::Doubling), 0.9840951956261029);
    }

    #[test]
    fn gentle_growth_makes_it_rare_there() {
        close(probability(1e9, 65.0, Growth::Additive), 0.10480462027212745);
        close(probability(10e9, 78.0, Growth::Additive), 0.06202243325744827);
    }

    #[test]
    fn more_flows_never_make_incast_less_likely() {
        for growth in [Growth::Doubling, Growth::Additive] {
            let curve: Vec<f64> = (1..=250).map(|n| probability(1e9, f64::from(n), growth)).collect();
            assert!(curve.windows(2).all(|p| p[0] <= p[1] + 1e-12));
        }
    }

    #[test]
    fn windows_that_fit_lose_nothing() {
        assert_eq!(loss_rate(250.0, 10.0, 25.0), 0.0);
        assert_eq!(loss_rate(250.0, 10.0, 50.0), 0.5);
        assert_eq!(incast_probability(0.0, 10.0, 25.0), 0.0);
    }

    #[test]
    fn the_increment_goes_from_doubling_to_one_packet() {
        for (cwnd, alpha, next) in [
            (8.0, 0.0, 16.0),
            (8.0, 0.5, 10.82842712474619),
            (8.0, 1.0, 9.0),
            (10.0, 0.25, 15.623413251903491),
            (16.0, congestion(160e-6, 100e-6, 340e-6), 24.0),
        ] {
            close(cwnd + increment(cwnd, alpha), next);
        }
        assert_eq!(congestion(100e-6, 100e-6, 100e-6), 0.0);
    }
}
