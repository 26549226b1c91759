//! Rounds that are whole requests but for what some of them ask again or besides.
//!
//! What a few requests ask for when their round is over, or try anew a while after an answer, is in no round, and requests without it would be too short.
//! Independent messages leave at any time. What leaves by far mostly while its round goes on, or sooner after it than the user goes on, is of that request.
//! So is what a timer tries anew, however long it waits: it leaves as long after its own connection's answer each time, or the user's usual pause follows it.

use super::Talk;
use super::bursts::{Ask, TOGETHER};
use super::checks::LITTLE;
use super::class::Class;
use super::groups::{BEYOND_CHANCE, FOLLOWS};
use super::joined::FEWEST;
use super::requests::{Cut, IN_THE_VALLEY, RARELY, Request};
use super::steady::{Excess, between, by_chance, median, most_alike, quantile};

/// The class with whole requests, if what its rounds leave over is of these.
pub(super) fn class(class: &Class, talks: &[Talk], asks: &[Ask]) -> Option<Class> {
    let (requests, rest) = requests(class, talks, asks)?;
    let cut = Cut { requests, ..Cut::default() };
    Some(Class { rest, ..Class::of_requests(class.connections.clone(), &cut, talks, asks) })
}

/// The whole requests, and what is in none of them.
fn requests(class: &Class, talks: &[Talk], asks: &[Ask]) -> Option<(Vec<Request>, Vec<u32>)> {
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
    // Calls of a service of its own leave as soon after the end of a round as such moments do.
    let by_chance: Vec<u64> =
        between(&starts).zip(&ends).filter_map(|(at, &end)| Some(at.saturating_sub(end?))).collect();
    let excess = Excess::of(soon(&waited), waited.len(), soon(&by_chance), by_chance.len());
    if nearly_all < goes_on && excess.share >= FOLLOWS && excess.deviations >= BEYOND_CHANCE {
        // Of the rest a few waited for as long as the user does, as a retry with a long backoff: of which request is open.
        for &(_, of, n) in waits.iter().filter(|&&(wait, ..)| wait >= goes_on) {
            requests[of].retain(|&other| other != n);
            over.push(n);
        }
    } else {
        let anew = Anew { class, talks, asks, starts: &starts, ends: &ends, requests: &requests };
        if !anew.is_told(&waits) {
            return None;
        }
    }
    requests.iter_mut().for_each(|request| request.sort_unstable());
    over.sort_unstable();
    Some((requests, over))
}

/// Rounds with what is left over behind each, which may be what a timer tries anew.
struct Anew<'a> {
    class: &'a Class,
    talks: &'a [Talk],
    asks: &'a [Ask],
    /// Of each round, its begin and its end.
    starts: &'a [u64],
    ends: &'a [Option<u64>],
    /// With what is left over.
    requests: &'a [Request],
}

impl Anew<'_> {
    fn is_told(&self, waits: &[(u64, usize, u32)]) -> bool {
        self.is_like_its_round(waits) && (self.follows_its_own_answer(waits) || self.is_paused_after())
    }

    /// It is answered as its round is: a check of an idle connection brings hardly anything.
    fn is_like_its_round(&self, waits: &[(u64, usize, u32)]) -> bool {
        let bytes = |n: u32| {
            let ask = &self.asks[n as usize];
            self.talks[ask.conn as usize].times[ask.msg as usize].bytes
        };
        let usual =
            median(&self.class.bursts.iter().flat_map(|burst| &burst.asks).map(|&n| bytes(n)).collect::<Vec<_>>());
        median(&waits.iter().map(|&(.., n)| bytes(n)).collect::<Vec<_>>()) * LITTLE > usual
    }

    /// Most leave as long after the answer of their round on their own connection, and moments of no meaning do not.
    fn follows_its_own_answer(&self, waits: &[(u64, usize, u32)]) -> bool {
        let since = |of: usize, conn: u32, at: u64| {
            let mine = self.requests[of].iter().map(|&n| &self.asks[n as usize]).filter(|ask| ask.conn == conn);
            let answers = mine.filter_map(|ask| ask.answered).filter(|&answered| answered < at);
            answers.max().map(|answered| at - answered)
        };
        let (mut known, mut chance) = (Vec::new(), Vec::new());
        for (k, &(_, of, n)) in waits.iter().enumerate() {
            let ask = &self.asks[n as usize];
            known.extend(since(of, ask.conn, ask.at));
            if let (Some(end), Some(&next)) = (self.ends[of], self.starts.get(of + 1)) {
                chance.extend(since(of, ask.conn, by_chance(k, end.min(next), next)));
            }
        }
        let (from, alike) = most_alike(&known);
        let excess = Excess::of(alike, waits.len(), most_alike(&chance).1, chance.len());
        from > TOGETHER && excess.share >= FOLLOWS && excess.deviations >= BEYOND_CHANCE
    }

    /// After the last of them the user pauses as he does after other rounds, and not as after a moment in the same time.
    fn is_paused_after(&self) -> bool {
        let (mut usual, mut behind, mut chance) = (Vec::new(), Vec::new(), Vec::new());
        for (of, request) in self.requests.iter().enumerate() {
            let (Some(end), Some(&next)) = (self.ends[of], self.starts.get(of + 1)) else { continue };
            if request.len() == self.class.bursts[of].asks.len() {
                usual.push(next.saturating_sub(end));
                continue;
            }
            let last = request.iter().filter_map(|&n| self.asks[n as usize].answered).max().unwrap_or(end);
            behind.push(next.saturating_sub(last));
            chance.push(next.saturating_sub(by_chance(of, end.min(next), next)));
        }
        let nearly_all = quantile(&usual, IN_THE_VALLEY)..=quantile(&usual, 1.0 - IN_THE_VALLEY);
        let paused = |pauses: &[u64]| pauses.iter().filter(|&pause| nearly_all.contains(pause)).count();
        let excess = Excess::of(paused(&behind), behind.len(), paused(&chance), chance.len());
        usual.len() >= FEWEST && behind.len() >= FEWEST && excess.share >= FOLLOWS && excess.deviations >= BEYOND_CHANCE
    }
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

    /// A hundred rounds of four servers that answer within 2 ms. After 40 of them the first server is asked anew, so long after its answer, and the user
    /// goes on 6 to 13 ms after that, or as if it were none of his. It brings so many bytes, as all others do 10,000. How many messages the requests have.
    fn anew(bytes: u64, user_waits: bool, after: impl Fn(u64) -> u64) -> usize {
        let mut talks: Vec<Talk> = (0..4).map(|server| Talk { server, ..Talk::default() }).collect();
        let mut start = MS;
        for n in 0..100 {
            let mut end = start + 2 * MS;
            let mut ask = |conn: usize, asked, answered, bytes| {
                let times = Times { asked: Some(asked), answered: Some(answered), bytes, ..Times::default() };
                talks[conn].times.push(times);
            };
            (0..4).for_each(|conn| ask(conn, start + conn as u64 * 10_000, end - (4 - conn as u64) * 100_000, 10_000));
            let tried = n * 37 % 100 < 40;
            let asked = start + 2 * MS + after(n);
            if tried {
                ask(0, asked, asked + MS, bytes);
            }
            end = if user_waits && tried { asked + MS } else { end };
            let pause = 6 * MS + n * 7_919 % 701 * 10_000;
            start = if user_waits { end + pause } else { (end + pause).max(start + 44 * MS) };
        }
        let found = infer(&talks);
        let requests = found.rounds.iter().filter(|round| !round.requests.is_empty());
        requests.map(|round| round.requests.len().max(round.answers.len())).sum()
    }

    #[test]
    fn what_a_timer_tries_anew_is_of_its_request_however_long_it_waits() {
        assert_eq!(anew(10_000, true, |n| 10 * MS + n % 9 * 50_000), 440, "10 ms");
        assert_eq!(anew(10_000, true, |n| 10 * MS + n * 7_919 % 300 * 100_000), 440, "10 to 40 ms");
        assert_eq!(anew(10_000, false, |n| 10 * MS + n * 7_919 % 300 * 100_000), 400, "the user does not wait for it");
        assert_eq!(anew(199, true, |_| 10 * MS), 400, "a check of an idle connection");
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
