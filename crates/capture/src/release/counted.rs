//! Requests that always have as many stages, told by the order of their pauses.
//!
//! An interpreter turns to the next stage after 0.1 to 2 ms, and a user's pause may be as short: then no pause tells by itself where a request ends. But
//! where each request has k stages, one pause in k is of the longer kind, and always the k-th. A hidden Markov model says how much likelier that order makes
//! the pauses than any order of as many (Rabiner, "A Tutorial on Hidden Markov Models", Proc. IEEE 77, 1989): its states are the stages of a request, and
//! what is seen is the logarithm of the pause before each, normal with one mean and deviation inside requests and with another between them.

use super::periods::Periods;
use super::requests::Request;
use super::steady::RESOLUTION;

/// More stages than this are no design.
const MOST_STAGES: usize = 12;
/// So many pauses tell the number of stages.
const LOOKED_AT: usize = 2_000;
/// How often a stage is no whole one: its host stalled inside it, or answers came so late that the next one seems to be of it.
const SLIP: f64 = 0.02;
/// The order makes the pauses so much likelier, in nats for each: a coin's order would be worth 0.7, and that of pauses of one kind costs `SLIP`.
const BY_ORDER: f64 = 0.1;
/// And so much in all: of a thousand groups of some sixty pauses without an order the luckiest had 19.
const SURE: f64 = 25.0;
/// Pauses between requests are so many times as long as those inside, by their means: less may be a user's habit.
const LONGER: f64 = 2.0;
/// Stamps and ticks spread pauses by a third at least.
const LEAST_DEVIATION: f64 = 0.3;

/// Normal logarithms of pauses.
#[derive(Clone, Copy, Debug)]
struct Kind {
    mean: f64,
    deviation: f64,
}

impl Kind {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Kind {
        let n = values.clone().count().max(1) as f64;
        let mean = values.clone().sum::<f64>() / n;
        let variance = values.map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        Kind { mean, deviation: variance.sqrt().max(LEAST_DEVIATION) }
    }

    fn log_density(self, x: f64) -> f64 {
        let from_mean = (x - self.mean) / self.deviation;
        -0.5 * from_mean * from_mean - self.deviation.ln() - 0.5 * std::f64::consts::TAU.ln()
    }
}

/// Requests of `stages` stages.
#[derive(Clone, Copy, Debug)]
struct Model {
    stages: usize,
    between: Kind,
    inside: Kind,
}

impl Model {
    /// The first guess: the longest pauses are between requests.
    fn new(pauses: &[f64], stages: usize) -> Model {
        let mut sorted = pauses.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (inside, between) = sorted.split_at(sorted.len() - sorted.len() / stages);
        Model { stages, between: Kind::of(between.iter().copied()), inside: Kind::of(inside.iter().copied()) }
    }

    /// Both kinds fitted to the stages that they tell, until these make the pauses no likelier; none where all pauses are of one kind.
    fn fitted(pauses: &[f64], stages: usize) -> Option<Model> {
        let mut model = Model::new(pauses, stages);
        let mut known = f64::NEG_INFINITY;
        loop {
            let (likelihood, begins) = model.likeliest(pauses);
            if likelihood <= known || !begins.contains(&true) || !begins.contains(&false) {
                return known.is_finite().then_some(model);
            }
            let of = |kind: bool| pauses.iter().zip(&begins).filter(move |&(_, &begin)| begin == kind).map(|(&x, _)| x);
            model = Model { between: Kind::of(of(true)), inside: Kind::of(of(false)), ..model };
            known = likelihood;
        }
    }

    /// The likeliest stages (Viterbi's algorithm): their log likelihood, and which pauses are before the first stage of a request.
    fn likeliest(&self, pauses: &[f64]) -> (f64, Vec<bool>) {
        let k = self.stages;
        let (goes_on, slips) = ((1.0 - SLIP).ln(), (SLIP / k as f64).ln());
        let mut likely = vec![-(k as f64).ln(); k];
        // By pause and stage, the stage before.
        let mut before: Vec<u8> = Vec::with_capacity(k * pauses.len());
        for &x in pauses {
            let (between, inside) = (self.between.log_density(x), self.inside.log_density(x));
            let best = (0..k).max_by(|&a, &b| likely[a].total_cmp(&likely[b])).unwrap_or(0);
            let next = (0..k).map(|stage| {
                let last = (stage + k - 1) % k;
                let (from, reached) = match likely[last] + goes_on >= likely[best] + slips {
                    true => (last, likely[last] + goes_on),
                    false => (best, likely[best] + slips),
                };
                before.push(from as u8);
                reached + if stage == 0 { between } else { inside }
            });
            likely = next.collect();
        }
        let mut stage = (0..k).max_by(|&a, &b| likely[a].total_cmp(&likely[b])).unwrap_or(0);
        let likelihood = likely[stage];
        let mut begins = vec![false; pauses.len()];
        for (n, begin) in begins.iter_mut().enumerate().rev() {
            *begin = stage == 0;
            stage = before[n * k + stage].into();
        }
        (likelihood, begins)
    }

    /// The log likelihood of the pauses in their order, and how much of it is the order's: beyond that of as many of these kinds in any.
    fn likelihood(&self, pauses: &[f64]) -> (f64, f64) {
        let share = 1.0 / self.stages as f64;
        let in_any_order = |&x: &f64| {
            let (between, inside) = (self.between.log_density(x), self.inside.log_density(x));
            (share * between.exp() + (1.0 - share) * inside.exp()).ln()
        };
        let (in_order, _) = self.likeliest(pauses);
        (in_order, in_order - pauses.iter().map(in_any_order).sum::<f64>())
    }
}

/// The requests of so many stages each, where the order of pauses tells them.
pub(super) fn requests(periods: &Periods) -> Option<Vec<Request>> {
    let pauses: Vec<f64> = periods.pauses().iter().map(|&pause| (pause as f64).max(RESOLUTION).ln()).collect();
    let begins = begins(&pauses)?;
    let mut begin = begins.iter();
    Some(periods.cut(|_| !begin.next().copied().unwrap_or(true)))
}

/// Which pauses, of these logarithms, are before a request.
fn begins(pauses: &[f64]) -> Option<Vec<bool>> {
    let some = &pauses[..pauses.len().min(LOOKED_AT)];
    let models = (2..=MOST_STAGES.min(some.len())).filter_map(|stages| Model::fitted(some, stages));
    let likely = models.filter_map(|model| {
        let (likelihood, by_order) = model.likelihood(some);
        let longer = model.between.mean - model.inside.mean >= LONGER.ln();
        (longer && is_sure(by_order, some.len())).then_some((likelihood, model))
    });
    let (_, best) = likely.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(best.likeliest(pauses).1)
}

/// The order of so many pauses is no chance.
fn is_sure(by_order: f64, pauses: usize) -> bool {
    by_order >= SURE + BY_ORDER * pauses as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;

    /// How many requests begin in so many pauses, of which those are between requests: these of 1 to 16 ms, those inside of 0.2 to 2 ms.
    fn found(pauses: usize, mut between: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut numbers = Numbers(7);
        let mut pause = |n| {
            let (least, times) = if between(n) { (1.0, 16.0_f64) } else { (0.2, 10.0) };
            (least * 1e6 * times.powf(numbers.share())).ln()
        };
        let pauses: Vec<f64> = (0..pauses).map(&mut pause).collect();
        Some(begins(&pauses)?.into_iter().filter(|&begin| begin).count())
    }

    #[test]
    fn every_third_pause_is_between_requests_though_some_inside_are_longer() {
        let requests = found(600, |n| n % 3 == 2);
        assert!(requests.is_some_and(|n| n.abs_diff(200) <= 4), "{requests:?}");
        let mut numbers = Numbers(3);
        assert_eq!(found(600, |_| numbers.below(3) == 0), None, "as many, in no order");
    }

    #[test]
    fn pauses_between_requests_are_twice_as_long_as_those_inside() {
        // Alike to a hundredth, so that their order is plain.
        let found = |times: f64| {
            let mut numbers = Numbers(7);
            let pause = |n: usize| if n % 3 == 2 { times.ln() } else { 0.0 } + 0.01 * numbers.share();
            begins(&(0..600).map(pause).collect::<Vec<f64>>()).is_some()
        };
        assert_eq!([1.9, 2.1].map(found), [false, true]);
    }

    #[test]
    fn a_request_has_at_most_twelve_stages() {
        assert_eq!(found(1_200, |n| n % 12 == 11), Some(100));
        assert_eq!(found(1_300, |n| n % 13 == 12), None);
    }

    #[test]
    fn two_thousand_pauses_tell() {
        let with_order = |from: usize, to: usize| {
            let mut numbers = Numbers(3);
            found(6_000, move |n| if (from..to).contains(&n) { n % 2 == 1 } else { numbers.below(2) == 0 })
        };
        assert!(with_order(0, 1_900).is_some(), "what comes later is as the first");
        assert!(with_order(600, 6_000).is_some(), "though the first have no order");
        assert!(with_order(1_200, 6_000).is_none());
    }

    #[test]
    fn an_order_of_hundred_pauses_is_worth_sixty_seven_nats() {
        let kind = |mean: f64| Kind { mean, deviation: LEAST_DEVIATION };
        let model = Model { stages: 2, between: kind(16.0), inside: kind(12.0) };
        let pauses: Vec<f64> = (0..100).map(|n| if n % 2 == 1 { 16.0 } else { 12.0 }).collect();
        // 100 (ln 2 + ln 0.98), and any stage may be the first.
        assert_eq!(model.likelihood(&pauses).1.round(), 67.0);
    }

    #[test]
    fn a_thousand_pauses_must_be_likelier_by_a_hundred_and_twenty_five_nats() {
        assert!(is_sure(125.1, 1_000) && !is_sure(124.9, 1_000));
        assert!(is_sure(25.1, 0) && !is_sure(24.9, 0));
    }

    #[test]
    fn pauses_that_are_all_alike_are_spread_by_a_third() {
        assert_eq!(Kind::of([12.0; 9].into_iter()).deviation, 0.3);
    }
}
