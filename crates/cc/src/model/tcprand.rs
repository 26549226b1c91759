//! TCPRand: the least payload it draws, and what random sizes do to two flows that arrive in step at a full queue.
//!
//! Source: "Randomizing TCP Payload Size for TCP Fairness in Data Center Networks", sections 3.2 and 4, figure 5, equations 2 and 3.

#[cfg(not(feature = "std"))]
use crate::bare::*;

/// The adaptive rule's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Adaptive {
    /// Variance of the normal curve.
    pub sigma2: f64,
    /// Mean of the normal curve.
    pub mu: f64,
    /// Start of randomisation: 1 at the epoch's first window, infinite at Wmax (equation 2).
    pub v_tau: f64,
    /// End of randomisation: 1 as far beyond Wmax as the epoch began below it, 0 never (equation 3).
    pub v_omega: f64,
    /// Least rMin, bytes.
    pub theta: f64,
    /// What happens where an epoch begins at or above Wmax.
    pub no_rise: NoRise,
}

/// Where an epoch of the growth curve begins at or above Wmax, equations 2 and 3 have no rise to place a window on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NoRise {
    /// Algorithm 1 by its letter. With v_omega = 0 randomisation never ends (omega is infinite), and the distance x from the epoch's first
    /// window falls below 0 as the window grows. With v_omega = 1 the end lies below the start: sizes are full.
    #[default]
    Algorithm,
    /// Full segments: ordinary TCP until the curve has a rise again.
    Full,
}

impl Default for Adaptive {
    /// The paper's moderate setting, its default: (1, 1, 1, 1) and 200 bytes.
    fn default() -> Adaptive {
        Adaptive { sigma2: 1.0, mu: 1.0, v_tau: 1.0, v_omega: 1.0, theta: 200.0, no_rise: NoRise::Algorithm }
    }
}

impl Adaptive {
    /// The windows between which sizes are random (equations 2 and 3), in packets.
    pub fn range(&self, epoch_cwnd: f64, w_max: f64) -> (f64, f64) {
        let rise = w_max - epoch_cwnd;
        // Equation 3 is infinite for v_omega -> 0 whatever the sign of the rise: "if v_omega -> 0, omega -> infinity".
        let end = if self.v_omega == 0.0 { f64::INFINITY } else { w_max + rise / self.v_omega };
        (w_max - rise / self.v_tau, end)
    }

    /// rMin at the normalised distance `x` from the epoch's first window (0) by way of Wmax (1), in bytes (Algorithm 1).
    pub fn r_min_at(&self, x: f64, mss: f64) -> f64 {
        let phi = normal_cdf((x - self.mu) / self.sigma2.sqrt());
        (mss * (1.0 - phi)).max(self.theta).min(mss)
    }

    /// rMin for a window of `cwnd` packets in an epoch that began at `epoch_cwnd` and aims at `w_max` (Algorithm 1), in bytes.
    ///
    /// `mss`, which is ordinary TCP, outside [`Self::range`]; where the curve has no rise (`w_max < epoch_cwnd`) as
    /// [`NoRise`] says, and at `w_max == epoch_cwnd`, where the distance is undefined, `mss` too.
    ///
    /// ```
    /// let rule = fanin_cc::model::tcprand::Adaptive::default();
    /// assert_eq!(rule.r_min(85.0, 70.0, 100.0, 1460.0).floor(), 1009.0);
    /// ```
    pub fn r_min(&self, cwnd: f64, epoch_cwnd: f64, w_max: f64, mss: f64) -> f64 {
        let rise = w_max - epoch_cwnd;
        if rise == 0.0 || (rise < 0.0 && self.no_rise == NoRise::Full) {
            return mss;
        }
        let (tau, omega) = self.range(epoch_cwnd, w_max);
        if cwnd < tau || cwnd > omega { mss } else { self.r_min_at((cwnd - epoch_cwnd) / rise, mss) }
    }
}

/// Whole bytes from `r_min` to `mss` with equal probability, from `uniform` on [0, 1).
pub fn payload(r_min: f64, mss: u32, uniform: f64) -> u32 {
    let least = (r_min.floor() as u32).clamp(1, mss.max(1));
    let sizes = f64::from(mss - least) + 1.0;
    least + ((uniform * sizes) as u32).min(mss - least)
}

/// Distribution function of the standard normal.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * (1.0 + erf(z / core::f64::consts::SQRT_2))
}

/// The error function, to about 15 digits: the series whose terms are all positive (DLMF 7.6.2), so nothing cancels.
pub fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return 1f64.copysign(x);
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > 1e-17 * sum.abs() {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    core::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// How often the second packets of two flows find room, out of all trials.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Enqueued {
    /// X2, whose flow just lost a packet.
    pub x2: f64,
    /// Y2, whose flow just took the last place.
    pub y2: f64,
    /// Both.
    pub both: f64,
    /// Neither.
    pub neither: f64,
}

/// Bytes that pass during the 0.096 us between two frames of gigabit Ethernet.
const GAP: f64 = 12.0;

/// Figure 5 by Monte Carlo: two back-to-back flows X and Y enter one output of the same speed, Y1 has taken the last place of its
/// queue and X1 was dropped; do X2 and Y2 find room? `uniform` gives numbers on [0, 1); payloads are whole bytes on [r_min, mss].
///
/// Times are in byte times. What the paper leaves open is read so: the packet that leaves the output while Y1 arrives is one
/// of the flows' random packets, and a uniformly random part of it is still to be sent; X1 comes one inter-frame gap after Y1; if
/// that packet has left by then, X1 would have found room, so the trial is drawn again. Headers are not counted.
///
/// With rMin 1 the part still to be sent is a product of two uniform numbers, whose mean square, 1/9, is the published probability
/// that neither finds room (0.11). The other readings we tried are further off: a part drawn as a random instant would find it
/// (length-biased) gives 0.55, 0.55 and 0.17; a queue that was full for long gives 0.43, 0.44 and 0.27.
pub fn enqueue_probability(r_min: u32, mss: u32, trials: u32, uniform: &mut dyn FnMut() -> f64) -> Enqueued {
    let mut count = Enqueued::default();
    for _ in 0..trials {
        let (x2, y2) = second_packets(r_min, mss, uniform);
        count.x2 += f64::from(u8::from(x2));
        count.y2 += f64::from(u8::from(y2));
        count.both += f64::from(u8::from(x2 && y2));
        count.neither += f64::from(u8::from(!x2 && !y2));
    }
    let share = |n: f64| if trials == 0 { 0.0 } else { n / f64::from(trials) };
    Enqueued { x2: share(count.x2), y2: share(count.y2), both: share(count.both), neither: share(count.neither) }
}

/// One trial: whether X2 and Y2 are queued. Y1 arrives at time 0, when the queue becomes full.
fn second_packets(r_min: u32, mss: u32, uniform: &mut dyn FnMut() -> f64) -> (bool, bool) {
    let frame = |uniform: &mut dyn FnMut() -> f64| f64::from(payload(f64::from(r_min), mss, uniform())) + GAP;
    let x1 = GAP;
    let mut departure = loop {
        let left = frame(uniform) * uniform();
        if left > x1 {
            break left;
        }
    };
    let (x2, y2) = (x1 + frame(uniform), frame(uniform));
    let mut places = 0;
    let mut arrive = |at: f64, uniform: &mut dyn FnMut() -> f64| {
        while departure < at {
            places += 1;
            departure += frame(uniform);
        }
        let room = places > 0;
        places -= i32::from(room);
        room
    };
    if y2 <= x2 {
        let y = arrive(y2, uniform);
        (arrive(x2, uniform), y)
    } else {
        let x = arrive(x2, uniform);
        (x, arrive(y2, uniform))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::close;

    const AGGRESSIVE: Adaptive =
        Adaptive { sigma2: 1.0, mu: 0.0, v_tau: 1.0, v_omega: 0.0, theta: 200.0, no_rise: NoRise::Algorithm };
    const CONSERVATIVE: Adaptive =
        Adaptive { sigma2: 1.0, mu: 1.0, v_tau: f64::INFINITY, v_omega: 1.0, theta: 200.0, no_rise: NoRise::Algorithm };

    /// A small seeded generator (splitmix64): the crate itself has no randomness.
    fn generator(mut state: u64) -> impl FnMut() -> f64 {
        move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn the_normal_curve_and_r_min_are_those_of_the_table() {
        for (x, phi_moderate, r_moderate, phi_aggressive, r_aggressive) in [
            (0.0, 0.15865525393145707, 1228.3633292600728, 0.5, 730.0),
            (0.5, 0.3085375387259869, 1009.5351934600592, 0.6914624612740131, 450.46480653994087),
            (1.0, 0.5, 730.0, 0.8413447460685429, 231.63667073992733),
            (1.5, 0.6914624612740131, 450.46480653994087, 0.9331927987311419, 200.0),
            (2.0, 0.8413447460685429, 231.63667073992733, 0.9772498680518208, 200.0),
        ] {
            close(normal_cdf(x - 1.0), phi_moderate);
            close(normal_cdf(x), phi_aggressive);
            close(Adaptive::default().r_min_at(x, 1460.0), r_moderate);
            close(AGGRESSIVE.r_min_at(x, 1460.0), r_aggressive);
        }
    }

    #[test]
    fn the_error_function_holds_far_out() {
        close(erf(0.5), 0.5204998778130465);
        close(erf(3.0), 0.9999779095030014);
        close(erf(-1.0), -0.8427007929497149);
        assert_eq!((erf(0.0), erf(7.0), erf(-7.0), erf(f64::INFINITY)), (0.0, 1.0, -1.0, 1.0));
    }

    #[test]
    fn the_named_settings_differ_in_where_they_begin_and_end() {
        assert_eq!(Adaptive::default().range(70.0, 100.0), (70.0, 130.0));
        assert_eq!(CONSERVATIVE.range(70.0, 100.0), (100.0, 130.0));
        assert_eq!(AGGRESSIVE.range(70.0, 100.0), (70.0, f64::INFINITY));
        assert_eq!(CONSERVATIVE.r_min(85.0, 70.0, 100.0, 1460.0), 1460.0);
        close(CONSERVATIVE.r_min(100.0, 70.0, 100.0, 1460.0), 730.0);
        assert_eq!(Adaptive::default().r_min(131.0, 70.0, 100.0, 1460.0), 1460.0);
        assert_eq!(AGGRESSIVE.r_min(1000.0, 70.0, 100.0, 1460.0), 200.0);
    }

    #[test]
    fn without_a_rise_sizes_are_full() {
        assert_eq!(Adaptive::default().r_min(70.0, 100.0, 100.0, 1460.0), 1460.0);
        assert_eq!(CONSERVATIVE.r_min(70.0, 100.0, 80.0, 1460.0), 1460.0);
    }

    #[test]
    fn an_epoch_above_the_last_maximum_is_random_only_where_randomisation_never_ends() {
        // It begins at 100 where the last maximum was 80: tau = 100, omega infinite, x = 0 and then -0.5.
        close(AGGRESSIVE.r_min(100.0, 100.0, 80.0, 1460.0), 730.0);
        close(AGGRESSIVE.r_min(110.0, 100.0, 80.0, 1460.0), 1460.0 * 0.6914624612740131);
        assert_eq!(AGGRESSIVE.r_min(99.0, 100.0, 80.0, 1460.0), 1460.0);
        let full = Adaptive { no_rise: NoRise::Full, ..AGGRESSIVE };
        assert_eq!(full.r_min(100.0, 100.0, 80.0, 1460.0), 1460.0);
        // omega = 2 x 80 - 100 lies below tau: the interval is empty.
        assert_eq!(Adaptive::default().r_min(100.0, 100.0, 80.0, 1460.0), 1460.0);
        assert_eq!(AGGRESSIVE.r_min(100.0, 100.0, 100.0, 1460.0), 1460.0);
    }

    #[test]
    fn payloads_cover_the_whole_range_evenly() {
        assert_eq!((payload(1009.5, 1460, 0.0), payload(1009.5, 1460, 0.999_999_999)), (1009, 1460));
        assert_eq!((payload(1460.0, 1460, 0.7), payload(0.0, 1460, 0.0), payload(9000.0, 1460, 0.3)), (1460, 1, 1460));
        let mut u = generator(1);
        let mean = (0..100_000).map(|_| f64::from(payload(1009.0, 1460, u()))).sum::<f64>() / 1e5;
        assert!((mean - 1234.5).abs() < 1.5, "{mean}");
    }

    #[test]
    fn equal_sizes_never_let_the_second_flow_in() {
        let p = enqueue_probability(1448, 1448, 1000, &mut generator(2));
        assert_eq!((p.x2, p.y2, p.both, p.neither), (0.0, 1.0, 0.0, 0.0));
    }

    #[test]
    fn random_sizes_share_the_queue_as_in_figure_5() {
        let p = enqueue_probability(1, 1448, 100_000, &mut generator(3));
        for (ours, published) in [(p.x2, 0.63), (p.y2, 0.58), (p.neither, 0.11)] {
            assert!((ours - published).abs() <= 0.04, "{ours} against {published}: {p:?}");
        }
        assert!((p.x2 + p.y2 - p.both + p.neither - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_flow_that_lost_gains_with_randomness() {
        let x2: Vec<f64> = [1, 400, 800, 1200, 1400, 1448]
            .map(|r_min| enqueue_probability(r_min, 1448, 50_000, &mut generator(4)).x2)
            .to_vec();
        assert!(x2.windows(2).all(|p| p[0] > p[1]), "{x2:?}");
    }
}
