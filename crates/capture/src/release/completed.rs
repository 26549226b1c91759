//! Rounds that are whole requests but for what some of them ask again or besides.
//!
//! What a few requests ask for when their round is over, or try anew a while after an answer, is in no round, and requests without it would be too short.
//! Independent messages leave at any time. What leaves by far mostly while its round goes on, or sooner after it than the user goes on, is of that request.

use super::Talk;
use super::bursts::Ask;
use super::class::Class;
use super::groups::{BEYOND_CHANCE, FOLLOWS};
use super::joined::FEWEST;
use super::requests::{Cut, IN_THE_VALLEY, RARELY, Request};
use super::steady::{Excess, by_chance, quantile};

/// The class with whole requests, if what its rounds leave over is of these.
pub(super) fn class(class: &Class, talks: &[Talk], asks: &[Ask]) -> Option<Class> {
    let (requests, rest) = requests(class, asks)?;
    let cut = Cut { requests, ..Cut::default() };
    Some(Class { rest, ..Class::of_requests(class.connections.clone(), &cut, talks, asks) })
}

/// The whole requests, and what is in none of them.
fn requests(class: &Class, asks: &[Ask]) -> Option<(Vec<Request>, Vec<u32>)> {
    let rounds = class.inside.is_none() && class.shown && class.is_company();
    if !rounds || class.rest.len() < FEWEST || class.bursts.len() < FEWEST {
        return None;
    }
    let at = |n: u32| asks[n as usize].at;
    let starts: Vec<u64> = (0..class.bursts.len()).map(|i| class.start(i, asks)).collect();
    // None where an answer is not in the capture: then it is not known when the round was over.
    let end = |request: &Request| request.iter().try_fold(0, |end, &n| Some(end.max(asks[n as usize].answered?)));
    let mut requests: Vec<Request> = class.bursts.iter().map(|burst| burst.asks.clone()).collect();
    let ends: Vec<Option<u64>> = requests.iter().map(end).collect();
    // What leaves before the first round is of a request that began before the capture.
    let (mut over, rest): (Vec<u32>, Vec<u32>) = class.rest.iter().partition(|&&n| at(n) < starts[0]);
    let mut after: Vec<(u64, u32)> = rest.iter().map(|&n| (at(n), n)).collect();
    after.sort_unstable();
    // How long nothing had been missing before each, and before the user goes on.
    let mut waits: Vec<(u64, usize, u32)> = Vec::with_capacity(after.len());
    for (at, n) in after {
        let of = starts.partition_point(|&start| start <= at) - 1;
        waits.push((at.saturating_sub(end(&requests[of])?), of, n));
        requests[of].push(n);
    }
    let until = starts[1..].iter().zip(&requests);
    let pauses: Vec<u64> = until.filter_map(|(next, request)| Some(next.saturating_sub(end(request)?))).collect();
    // Nine of ten pauses of the user are longer; what comes later than that may begin a request of his.
    let goes_on = quantile(&pauses, RARELY);
    let waited: Vec<u64> = waits.iter().map(|&(wait, ..)| wait).collect();
    let nearly_all = quantile(&waited, 1.0 - IN_THE_VALLEY);
    let soon = |waits: &[u64]| waits.iter().filter(|&&wait| wait <= nearly_all).count();
    let moments = starts.windows(2).enumerate().map(|(n, pair)| (n, by_chance(n, pair[0], pair[1])));
    // Calls of a service of its own leave as soon after the end of a round as such moments do.
    let by_chance: Vec<u64> = moments.filter_map(|(n, at)| Some(at.saturating_sub(ends[n]?))).collect();
    let excess = Excess::of(soon(&waited), waited.len(), soon(&by_chance), by_chance.len());
    if nearly_all >= goes_on || excess.share < FOLLOWS || excess.deviations < BEYOND_CHANCE {
        return None;
    }
    // Of the rest a few waited for as long as the user does, as a retry with a long backoff: of which request is open.
    for &(_, of, n) in waits.iter().filter(|&&(wait, ..)| wait >= goes_on) {
        requests[of].retain(|&other| other != n);
        over.push(n);
    }
    requests.iter_mut().for_each(|request| request.sort_unstable());
    over.sort_unstable();
    Some((requests, over))
}

#[cfg(test)]
mod tests {
    use crate::release::{Talk, Times, infer};

    const MS: u64 = 1_000_000;

    /// A hundred rounds of four servers that answer within 2 ms, each 6 to 13 ms after the request before. In `again` of them the first server is asked once
    /// more, so long after the round began. How many messages the requests have together, and how long the longest takes.
    fn read(again: u64, after: impl Fn(u64) -> u64) -> (usize, u64) {
        let mut talks: Vec<Talk> = (0..4).map(|server| Talk { server, ..Talk::default() }).collect();
        let mut start = MS;
        for n in 0..100 {
            let mut end = start + 2 * MS;
            let mut ask = |conn: usize, asked, answered| {
                talks[conn].times.push(Times { asked: Some(asked), answered: Some(answered), ..Times::default() });
            };
            (0..4).for_each(|conn| ask(conn, start + conn as u64 * 10_000, end - (4 - conn as u64) * 100_000));
            if n * 37 % 100 < again {
                let asked = start + after(n);
                ask(0, asked, asked + MS);
                end = end.max(asked + MS);
            }
            start = end + 6 * MS + n * 7_919 % 701 * 10_000;
        }
        let found = infer(&talks);
        let requests = || found.rounds.iter().filter(|round| !round.requests.is_empty());
        let messages = requests().map(|round| round.requests.len().max(round.answers.len())).sum();
        (messages, requests().filter_map(|round| round.took_ns).max().unwrap_or(0))
    }

    #[test]
    fn what_follows_a_round_sooner_than_its_user_goes_on_is_of_its_request() {
        assert_eq!(read(40, |n| 2 * MS + n % 7 * 300_000), (440, 2 * MS + 6 * 300_000 + MS));
    }

    #[test]
    fn what_follows_as_late_as_the_next_request_is_of_none() {
        assert_eq!(read(40, |n| if n == 0 { 9 * MS } else { 2 * MS }).0, 439);
    }

    #[test]
    fn what_leaves_at_any_time_is_of_no_request() {
        assert_eq!(read(40, |n| 2 * MS + n * 7_919 % 60 * 100_000).0, 400);
    }

    #[test]
    fn twenty_messages_show_whose_they_are() {
        assert_eq!([19, 20].map(|again| read(again, |_| 2_300_000).0), [400, 420]);
    }
}
