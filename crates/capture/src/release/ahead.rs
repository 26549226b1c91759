//! Calls that some requests begin with: a token that ran out, a session of those users who have one.
//!
//! What every request begins with is told by [`super::groups`] and [`super::joined`]. What only some begin with is a class of its own, and their user waits
//! for it: nearly each of its answers is followed at once by a request of another class, and moments that have nothing to do with it are not.

use super::bursts::Ask;
use super::candidates::{COVERAGE, Need};
use super::class::Class;
use super::groups::{BEYOND_CHANCE, SHORTLY};
use super::joined::{STAGES, merged, together};
use super::requests::{BESIDE, RARELY, Request, VALLEY};
use super::steady::{Excess, between};
use super::{LEAST_ROUNDS, SEEN, Talk};

/// Joins such classes with those whose requests begin with them.
pub(super) fn joined(mut classes: Vec<Class>, talks: &[Talk], asks: &[Ask]) -> Vec<Class> {
    // Each time there is one class less.
    for _ in 0..STAGES {
        let Some((n, m, requests)) = pair(&classes, asks) else { break };
        classes[n.min(m)] = merged([&classes[n], &classes[m]], requests, talks, asks);
        classes.remove(n.max(m));
    }
    classes
}

/// A class that leads requests of another one, and the requests of both.
fn pair(classes: &[Class], asks: &[Ask]) -> Option<(usize, usize, Vec<Request>)> {
    let plain = (0..classes.len()).filter(|&n| classes[n].is_plain());
    let (mut whole, single): (Vec<usize>, Vec<usize>) = plain.partition(|&n| classes[n].is_company());
    // Of thousands of classes those with most requests.
    whole.retain(|&n| classes[n].full);
    whole.sort_by_key(|&n| std::cmp::Reverse(classes[n].bursts.len()));
    whole.truncate(BESIDE);
    let starts = |&m: &usize| (0..classes[m].bursts.len()).map(|i| classes[m].start(i, asks)).collect();
    let starts: Vec<Vec<u64>> = whole.iter().map(starts).collect();
    let leads = |n: usize| {
        let of = |(&m, starts): (&usize, &Vec<u64>)| Some((n, m, led_by(&classes[n], starts)?));
        whole.iter().zip(&starts).find_map(of)
    };
    let (n, m, led) = single.into_iter().find_map(leads)?;
    Some((n, m, together(&classes[m], &classes[n], led)))
}

/// The start that each message of a class leads, if nearly all lead one and the class is no stage of all requests.
fn led_by(ahead: &Class, starts: &[u64]) -> Option<Vec<Option<usize>>> {
    let few = ahead.bursts.len() < LEAST_ROUNDS;
    if few || ahead.bursts.len() as f64 >= (1.0 - RARELY) * starts.len() as f64 || !starts.is_sorted() {
        return None;
    }
    let next = |at: u64, most: u64| {
        let next = starts.partition_point(|&start| start + SEEN < at);
        starts.get(next).filter(|&&start| start <= at + most).map(|_| next)
    };
    let followed = |at: &u64| next(*at, SHORTLY).is_some();
    let ends: Vec<Option<u64>> = (0..ahead.bursts.len()).map(|i| Some(ahead.answered(i, Need::AllBut(0))?.0)).collect();
    let known: Vec<u64> = ends.iter().flatten().copied().collect();
    let count = known.iter().filter(|at| followed(at)).count();
    let met = between(&known).filter(followed).count();
    let excess = Excess::of(count, ends.len(), met, known.len().saturating_sub(1));
    let nearly_all = count as f64 >= COVERAGE * ends.len() as f64;
    // A host that is busy with something else turns later now and then.
    let led = |end: Option<u64>| next(end?, (VALLEY * SHORTLY as f64) as u64);
    (nearly_all && excess.deviations >= BEYOND_CHANCE).then(|| ends.into_iter().map(led).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;
    use crate::release::{Times, infer};

    const MS: u64 = 1_000_000;

    /// Two hundred requests of four servers, ten of which a fifth one is asked before, and how long behind its answer each of these begins, in microseconds:
    /// how many requests are found, and how many of them have five messages.
    fn found(begins_after: impl Fn(u64) -> u64) -> (usize, usize) {
        let mut talks: Vec<Talk> = (0..5).map(|server| Talk { server, ..Talk::default() }).collect();
        let (mut numbers, mut now) = (Numbers(31), MS);
        let mut ask = |conn: usize, asked: u64, took: u64| {
            talks[conn].times.push(Times { asked: Some(asked), answered: Some(asked + took), ..Times::default() });
            asked + took
        };
        for n in 0..200 {
            if n % 20 == 7 {
                now = ask(4, now, 2 * MS + numbers.below(3 * MS)) + begins_after(n / 20) * 1_000;
            }
            let took: Vec<u64> = (0..4).map(|_| MS + numbers.below(4 * MS)).collect();
            let answered = (0..4).map(|conn| ask(conn, now + 10_000 * conn as u64, took[conn]));
            now = answered.max().unwrap_or(0) + 10 * MS + numbers.below(30 * MS);
        }
        let rounds = infer(&talks).rounds.into_iter().filter(|round| !round.is_gate());
        let sizes: Vec<usize> = rounds.map(|round| round.answers().len()).collect();
        (sizes.len(), sizes.iter().filter(|&&size| size == 5).count())
    }

    #[test]
    fn a_call_that_a_few_requests_begin_with_is_of_these() {
        assert_eq!(found(|_| 40), (200, 10));
    }

    #[test]
    fn nine_of_ten_such_calls_are_followed_by_a_request_within_a_millisecond() {
        let late = |most: u64| move |n: u64| if n < most { 1_100 } else { 990 };
        assert_eq!((found(late(1)).1, found(late(2)).1), (10, 0));
    }

    #[test]
    fn the_tenth_may_be_followed_within_three_milliseconds() {
        let late = |us: u64| move |n: u64| if n < 1 { us } else { 40 };
        assert_eq!((found(late(2_990)).1, found(late(3_100)).1), (10, 9));
    }
}
