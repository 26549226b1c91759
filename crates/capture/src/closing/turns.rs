//! Requests between which short and long pauses take turns: some of them are the stages of others, with an application that computes between these.
//!
//! Users pause as they like: how long one pause is says nothing of the next. After a user's pause comes the application's, before the next stage, and where
//! each request has as many stages its pauses come back in steps of as many. Both show in how pauses are correlated with those that follow, by their ranks
//! (Spearman), which for pauses in no order is normal about zero with a deviation of one by the square root of their number.

use super::Places;

/// Fewer pauses show no order.
const FEWEST_PAUSES: usize = 60;
/// Where a larger share of requests begins before the one before was answered, pauses are not between these.
const OVERLAP: f64 = 0.05;
/// A short pause after a long one, and a long one after a short, so many deviations more often than by chance: of 622 groups of requests whose pauses have
/// no order the luckiest had 3.1.
const IN_TURN: f64 = 3.5;
/// Pauses come back in steps, so many deviations more than by chance: of the same groups the luckiest had 3.5.
const IN_STEPS: f64 = 6.0;
/// So many pauses further is looked at, or a quarter of all.
const LAGS: usize = 24;

impl Places<'_> {
    /// How many requests a company has, if pauses between them take turns; else 0.
    pub(super) fn in_turns(&self, company: u32) -> u64 {
        let times = self.times(company).into_iter();
        let mine: Vec<(u64, u64)> = times.filter_map(|(begin, end)| Some((begin, end?))).collect();
        let pauses: Vec<Option<u64>> = mine.windows(2).map(|pair| pair[1].0.checked_sub(pair[0].1)).collect();
        if take_turns(&pauses) { mine.len() as u64 } else { 0 }
    }
}

/// Short and long pauses take turns, or come back in steps; none where the next request began before the one before was answered.
fn take_turns(pauses: &[Option<u64>]) -> bool {
    let overlapping = pauses.iter().filter(|pause| pause.is_none()).count();
    if pauses.len() < FEWEST_PAUSES || overlapping as f64 > OVERLAP * pauses.len() as f64 {
        return false;
    }
    let ranks = ranks(pauses);
    let by_lag: Vec<f64> = (1..=LAGS.min(pauses.len() / 4)).map(|lag| correlation(&ranks, lag)).collect();
    let steps = (2..=by_lag.len() / 2).map(|step| in_steps(&by_lag, step));
    by_lag[0] <= -IN_TURN || steps.fold(f64::NEG_INFINITY, f64::max) >= IN_STEPS
}

/// The rank of each value, from the middle one; values that are the same share one.
fn ranks(values: &[Option<u64>]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by_key(|&place| values[place]);
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for same in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = before as f64 + (same.len() as f64 - 1.0) / 2.0 - middle;
        same.iter().for_each(|&place| ranks[place] = rank);
        before += same.len();
    }
    ranks
}

/// How ranks are correlated with those `lag` places later, in deviations of what chance gives.
fn correlation(ranks: &[f64], lag: usize) -> f64 {
    let variance: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let product: f64 = ranks.iter().zip(&ranks[lag..]).map(|(a, b)| a * b).sum();
    if variance > 0.0 { product / variance * (ranks.len() as f64).sqrt() } else { 0.0 }
}

/// How much more pauses are correlated with those whole steps later than with others, in deviations of what chance gives.
fn in_steps(by_lag: &[f64], step: usize) -> f64 {
    let mean = |whole: bool| {
        let of = || by_lag.iter().zip(1_usize..).filter(|(_, lag)| lag.is_multiple_of(step) == whole).map(|(x, _)| x);
        let count = of().count().max(1) as f64;
        (of().sum::<f64>() / count, 1.0 / count)
    };
    let ((whole, a), (others, b)) = (mean(true), mean(false));
    (whole - others) / (a + b).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;

    /// Pauses of 0.5 to 2 ms, or so many times as long.
    fn pauses(count: usize, times: impl Fn(usize) -> f64) -> Vec<Option<u64>> {
        let mut numbers = Numbers(7);
        (0..count).map(|n| Some((times(n) * 500_000.0 * 4.0_f64.powf(numbers.share())) as u64)).collect()
    }

    /// Every so many pauses one is longer.
    fn every(step: usize, times: f64, count: usize) -> Vec<Option<u64>> {
        pauses(count, |n| if n % step == step - 1 { times } else { 1.0 })
    }

    /// Some pauses are longer.
    fn longer(long: &[bool], times: f64) -> Vec<Option<u64>> {
        pauses(long.len(), |n| if long[n] { times } else { 1.0 })
    }

    #[test]
    fn pauses_in_no_order_do_not_take_turns_whatever_their_kinds() {
        let mut numbers = Numbers(11);
        for seed in 0..200 {
            let drawn: Vec<bool> = (0..300).map(|_| numbers.share() < 0.5).collect();
            assert!(!take_turns(&longer(&drawn, 3.0)), "{seed}");
        }
    }

    #[test]
    fn a_long_pause_after_each_short_one_or_after_some() {
        assert!(take_turns(&every(2, 3.0, 100)));
        // One to three stages, drawn.
        let (mut numbers, mut left) = (Numbers(3), 0);
        let next = |_| {
            let between = left == 0;
            left = if between { numbers.below(3) } else { left - 1 };
            between
        };
        assert!(take_turns(&longer(&(0..600).map(next).collect::<Vec<bool>>(), 6.0)));
    }

    #[test]
    fn every_third_pause_is_longer_by_half() {
        assert!(take_turns(&every(3, 1.5, 300)));
    }

    #[test]
    fn steps_are_looked_for_up_to_twelve() {
        assert!(take_turns(&every(12, 100.0, 1_200)) && !take_turns(&every(13, 100.0, 1_300)));
    }

    #[test]
    fn sixty_pauses_show_an_order_and_fewer_do_not() {
        assert_eq!([60, 59].map(|count| take_turns(&every(2, 8.0, count))), [true, false]);
    }

    #[test]
    fn where_more_than_one_request_in_twenty_begins_amid_another_nothing_is_said() {
        let overlapping = |from: usize| {
            let mut pauses = every(2, 8.0, 200);
            pauses[from..].fill(None);
            take_turns(&pauses)
        };
        assert_eq!([190, 189].map(overlapping), [true, false]);
    }

    #[test]
    fn deviations_are_counted_in_those_of_chance() {
        // Ranks that go up and down: each is as far from the middle as the one before, on the other side.
        let ranks: Vec<f64> = (0..100).map(|n| if n % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!((correlation(&ranks, 1), correlation(&ranks, 2)), (-9.9, 9.8));
        // Of four lags two are whole steps: the difference of the means by a deviation of one.
        assert_eq!(in_steps(&[-3.0, 3.0, -3.0, 3.0], 2), 6.0);
    }
}
