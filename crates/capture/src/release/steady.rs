//! How steady a delay is, and how steady it would be by chance.

use super::TOGETHER;

/// Delays that differ by less than this are equal: hosts wake and time stamps are taken with such an error.
pub(super) const RESOLUTION: f64 = 20_000.0;

/// The cost of writing delays down when their median is known: the mean of ln(1 + |d - median| / resolution).
///
/// Logarithmic, so that one round with a timeout or a step of the clock does not outweigh all others, and yet counts.
pub(super) fn cost(delays: &[u64], resolution: f64) -> f64 {
    if delays.is_empty() {
        return 0.0;
    }
    let median = median(delays);
    // 20 us from the median cost 0.7, a timeout of 200 ms 9.2: as much as thirteen of the others.
    let each = delays.iter().map(|&d| (d.abs_diff(median) as f64 / resolution).ln_1p());
    each.sum::<f64>() / delays.len() as f64
}

/// A time between two ticks of a timer as the time of one tick: some in between may have been missed.
pub(super) fn one_tick(time: u64, period: u64) -> u64 {
    // To the nearest number of periods; all but one were missed.
    let missed = (time + period / 2).checked_div(period).unwrap_or(0).saturating_sub(1);
    time - (missed * period).min(time)
}

/// The middle value, the lower of two.
pub(super) fn median(values: &[u64]) -> u64 {
    quantile(values, 0.5)
}

/// The value of that rank; 0 of none.
pub(crate) fn quantile(values: &[u64], q: f64) -> u64 {
    let mut sorted = values.to_vec();
    let rank = ((sorted.len().saturating_sub(1)) as f64 * q) as usize;
    if sorted.is_empty() { 0 } else { *sorted.select_nth_unstable(rank).1 }
}

/// A moment between two others that has nothing to do with anything: the fractional parts of multiples of the golden ratio are spread evenly.
pub(crate) fn by_chance(n: usize, from: u64, to: u64) -> u64 {
    let share = (n as f64 * 0.618_033_988_749_894_8).fract();
    from + (to.saturating_sub(from) as f64 * share) as u64
}

/// Such a moment between each two of some times.
pub(crate) fn between(times: &[u64]) -> impl Iterator<Item = u64> {
    times.windows(2).enumerate().map(|(n, pair)| by_chance(n, pair[0], pair[1]))
}

/// The times that most are like, to what one loop takes: the least of these, and how many there are.
pub(crate) fn most_alike(times: &[u64]) -> (u64, usize) {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let alike = |(n, &from): (usize, &u64)| (from, sorted.partition_point(|&time| time <= from + TOGETHER) - n);
    sorted.iter().enumerate().map(alike).max_by_key(|&(_, count)| count).unwrap_or_default()
}

/// How much more often something is seen than at moments that have nothing to do with it: as a share of what chance leaves, and in standard deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Excess {
    pub share: f64,
    pub deviations: f64,
}

impl Excess {
    /// `seen` times of `all`, and at so many of the moments.
    pub fn of(seen: usize, all: usize, at_moments: usize, moments: usize) -> Excess {
        let (share, all) = (seen as f64 / all as f64, all as f64);
        // A moment without any chance still had one.
        let expected = (at_moments as f64 + 0.5) / (moments as f64 + 1.0);
        let deviations = (share - expected) * all / (all * expected * (1.0 - expected)).max(0.25).sqrt();
        // 40 of 100 where 10 of 99 moments had it: expected 0.105, a share of 0.33 and 9.6 standard deviations.
        Excess { share: (share - expected) / (1.0 - expected), deviations }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_alike_to_half_a_millisecond() {
        assert_eq!(most_alike(&[3_000_000, 9_000_000, 3_500_000, 3_100_000, 3_600_001]), (3_000_000, 3));
    }

    #[test]
    fn equal_delays_cost_nothing_and_an_outlier_costs_its_logarithm() {
        assert_eq!(cost(&[5, 5, 5], RESOLUTION), 0.0);
        // (e - 1) times 20 us away from the median of four: ln(e) / 4.
        assert!((cost(&[0, 0, 0, 34_366], RESOLUTION) - 0.25).abs() < 1e-4);
    }

    #[test]
    fn a_missed_tick_is_a_longer_time_and_half_a_tick_is_none() {
        assert_eq!([99, 201, 298, 152, 30, 0].map(|time| one_tick(time, 100)), [99, 101, 98, 52, 30, 0]);
        assert_eq!(one_tick(7, 0), 7, "no period");
    }

    #[test]
    fn moments_by_chance_fill_the_time_between_evenly() {
        let quarter = (0..1000).filter(|&n| by_chance(n, 1000, 2000) < 1250).count();
        assert!((248..=252).contains(&quarter));
    }
}
