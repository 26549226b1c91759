//! Connections that are asked together, and the rounds in which they are.

use super::bursts::{AT_ONCE, Ask, Burst, Company};
use super::candidates::Need;
use super::requests::{self, Cut, Request, Step};
use super::steady::{RESOLUTION, median, one_tick};
use super::{FULL, FULL_SHARE, LEAST_ROUNDS, NEARLY_ALL, ON_A_TICK, SEEN, Talk};
use std::collections::BTreeSet;

/// An answer, by when it had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Answer {
    /// `u64::MAX`: not in the capture.
    pub at: u64,
    pub conn: u32,
    pub msg: u32,
}

/// A company with its rounds, which have one kind of cause.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub connections: Vec<u32>,
    pub upstream: bool,
    pub bursts: Vec<Burst>,
    /// Answers of each burst that had been asked for before the next one, in order of time.
    pub answers: Vec<Vec<Answer>>,
    /// Those that came after the same call to another server had been answered: the application does not wait for them.
    pub spare: Vec<Vec<Answer>>,
    /// Requests between full rounds.
    pub rest: Vec<u32>,
    /// Rounds that are full hold nearly everything.
    pub full: bool,
    /// It has rounds that are full; else each of its connections may go its own way.
    pub shown: bool,
    /// How well the tap knows when its rounds were complete: delays that differ by less, in nanoseconds, are equal.
    pub resolution: f64,
    /// The round before each one, of the same user.
    pub before: Vec<Option<usize>>,
    /// Its rounds are whole requests: of each, what is asked inside it. None: they are what leaves together.
    pub inside: Option<Vec<Vec<Step>>>,
    /// Its requests are what clients of the aggregator caused: of each, the connection and message of the client.
    pub served: Option<Vec<(u32, u32)>>,
}

impl Class {
    /// Connections whose requests are known. Their first messages are its bursts, all their answers end them.
    pub fn of_requests(connections: Vec<u32>, cut: &Cut, talks: &[Talk], asks: &[Ask]) -> Class {
        let how = requests::inside(&cut.requests, asks);
        let (mut bursts, mut inside, mut answers, mut spare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (n, request) in cut.requests.iter().enumerate() {
            // What leaves first is the burst; what follows inside the request are its steps.
            let (first, steps) = requests::steps(request, asks, how, &cut.late);
            bursts.push(Burst { asks: request[..first].to_vec() });
            inside.push(steps);
            // A late copy of a call and its original are answered once for the application.
            let hedges = request.iter().filter(|ask| cut.late.binary_search(ask).is_ok()).count();
            let answer = |&n: &u32| {
                let ask = &asks[n as usize];
                Answer { at: ask.over().unwrap_or(u64::MAX), conn: ask.conn, msg: ask.msg }
            };
            // One user at a time asks on when he has what he waits for.
            let next = cut.requests.get(n + 1).filter(|_| !cut.concurrent).map(|next| asks[next[0] as usize].at);
            let waited = |n: &&u32| {
                let ask = &asks[**n as usize];
                // What is tried anew is waited for there.
                ask.given_up.is_none_or(|at| ask.answered.is_none() && next.is_none_or(|next| at <= next))
            };
            let mut all: Vec<Answer> = request.iter().filter(waited).map(answer).collect();
            // All were given up: the user waited until then.
            if all.is_empty() {
                all = request.iter().map(answer).collect();
            }
            // Of two that were asked for the same, the first answer counts; and who has gone on has not waited for more.
            let unsure = |answer: &Answer| talks[answer.conn as usize].times[answer.msg as usize].unsure;
            let had = cut.until.get(n).map_or(u64::MAX, |&until| until.saturating_add(SEEN));
            let came_later = |answer: &Answer| answer.at.saturating_sub(unsure(answer)) > had;
            all.sort_unstable_by_key(|answer| (came_later(answer), *answer));
            let later = all.iter().filter(|answer| came_later(answer)).count();
            spare.push(all.split_off(all.len() - hedges.max(later).min(all.len() - 1)));
            answers.push(all);
        }
        let class = Class {
            connections,
            upstream: false,
            bursts,
            answers,
            spare,
            rest: Vec::new(),
            full: true,
            shown: true,
            resolution: RESOLUTION,
            before: requests::before(cut, asks),
            inside: Some(inside),
            served: None,
        };
        class.resolved(talks)
    }

    pub fn of(company: &Company, talks: &[Talk], asks: &[Ask]) -> Class {
        let several = company.connections.len() > 1 && !company.upstream;
        let total: usize = company.bursts.iter().map(|b| b.asks.len()).sum();
        let sizes = || company.bursts.iter().map(|b| b.asks.len());
        let held = |least: usize| sizes().filter(|&n| n >= least).sum::<usize>() as f64 / total.max(1) as f64;
        // Rounds of that size hold most of the messages, and there are enough of them.
        let shows = |least: usize| held(least) >= FULL_SHARE && sizes().filter(|&n| n >= least).count() >= LEAST_ROUNDS;
        let size = company.connections.len();
        // All of them, if that happens often enough; else nearly all of them.
        let nearly = ((size as f64 * FULL).ceil() as usize).max(2);
        let least = if !several {
            1
        } else if shows(size) {
            size
        } else {
            nearly
        };
        let full = shows(least);
        let (mut bursts, mut rest) = (Vec::new(), Vec::new());
        for burst in &company.bursts {
            // Less than a round: what a connection asks by itself.
            if full && burst.asks.len() < least {
                rest.extend(&burst.asks);
            } else {
                bursts.push(burst.clone());
            }
        }
        let mut class = Class {
            connections: company.connections.clone(),
            upstream: company.upstream,
            spare: vec![Vec::new(); bursts.len()],
            bursts,
            answers: Vec::new(),
            rest,
            full: held(least) >= NEARLY_ALL,
            shown: full,
            resolution: RESOLUTION,
            before: Vec::new(),
            inside: None,
            served: None,
        };
        class.answers = (0..class.bursts.len()).map(|i| class.answers_of(i, talks, asks)).collect();
        // One user: each round follows the one before.
        class.before = (0..class.bursts.len()).map(|i| i.checked_sub(1)).collect();
        class.resolved(talks)
    }

    /// With how well the tap knows its ends.
    fn resolved(mut self, talks: &[Talk]) -> Class {
        // The tap knows the end of a round as well as the arrival of its last answer.
        let last = self.answers.iter().filter_map(|answers| answers.last().filter(|last| last.at < u64::MAX));
        let unsure: Vec<u64> = last.map(|last| talks[last.conn as usize].times[last.msg as usize].unsure).collect();
        self.resolution = RESOLUTION.max(median(&unsure) as f64);
        self
    }

    /// Its messages by request, and each that is in none of them for itself.
    pub fn requests(&self) -> Vec<Vec<u32>> {
        let inside = |i: usize| self.inside.iter().flat_map(move |all| &all[i]).map(|step| step.ask);
        // With what is asked inside each, in that order.
        let whole = self.bursts.iter().enumerate().map(|(i, b)| b.asks.iter().copied().chain(inside(i)).collect());
        whole.chain(self.rest.iter().map(|&ask| vec![ask])).collect()
    }

    /// Whether all requests are alike, and are its rounds and more of the same that it leaves over. Where the loop over its servers was held up, the first
    /// answers had come before the last messages left, and no burst shows that round.
    pub fn is_surpassed(&self, requests: &[Request]) -> bool {
        if !self.shown || requests.len() <= self.bursts.len() || requests::odd(requests) > 0 {
            return false;
        }
        let known: BTreeSet<&[u32]> = requests.iter().map(Vec::as_slice).collect();
        self.bursts.iter().all(|round| known.contains(round.asks.as_slice()))
    }

    /// All its messages are of its rounds, and all answers are waited for: it may be a part of other requests.
    pub fn is_plain(&self) -> bool {
        !self.upstream && self.served.is_none() && self.rest.is_empty() && self.spare.iter().all(Vec::is_empty)
    }

    /// Several connections that are asked together, or one on which each request has several messages.
    pub fn is_company(&self) -> bool {
        (self.connections.len() > 1 || self.inside.is_some()) && !self.upstream
    }

    pub fn start(&self, i: usize, asks: &[Ask]) -> u64 {
        asks[self.bursts[i].asks[0] as usize].at
    }

    /// When the first connection was opened for burst `i`, where its user waited for that before he asked anybody.
    pub fn opened(&self, i: usize, asks: &[Ask]) -> Option<u64> {
        let mine = || self.bursts[i].asks.iter().map(|&ask| &asks[ask as usize]);
        // A connection that was opened for a message leaves later than its SYN.
        let opened = mine().filter(|ask| ask.at < ask.sent).map(|ask| ask.at).min();
        opened.filter(|&opened| mine().all(|ask| opened < ask.sent))
    }

    /// A moment is a whole number of periods away from the burst before it.
    pub fn on_a_tick(&self, at: u64, period: u64, asks: &[Ask]) -> bool {
        let before = self.bursts.partition_point(|burst| asks[burst.asks[0] as usize].at <= at);
        let since = before.checked_sub(1).map(|before| at - self.start(before, asks));
        since.is_some_and(|since| one_tick(since, period).abs_diff(period) as f64 <= ON_A_TICK * period as f64)
    }

    /// The last answers on the connections of burst `i` that were asked for before the next one: a request may come in several messages, each as soon as
    /// the one before is answered. What comes later is no part of a request that was answered.
    fn answers_of(&self, i: usize, talks: &[Talk], asks: &[Ask]) -> Vec<Answer> {
        let until = if i + 1 < self.bursts.len() { self.start(i + 1, asks) } else { u64::MAX };
        let mut all: Vec<Answer> = Vec::with_capacity(self.bursts[i].asks.len());
        for &ask in &self.bursts[i].asks {
            let ask = &asks[ask as usize];
            let times = &talks[ask.conn as usize].times;
            // Who asks again has waited for no more than that.
            let given_up = ask.given_up.filter(|&at| at <= until);
            let at = ask.answered.or(given_up).unwrap_or(u64::MAX);
            let mut last = Answer { at, conn: ask.conn, msg: ask.msg };
            if self.is_company() {
                let at_once = |asked: u64, before: u64| asked <= before.saturating_add(AT_ONCE);
                for (msg, times) in times.iter().enumerate().skip(ask.msg as usize + 1) {
                    // Within the same burst a connection comes once.
                    match (times.asked, times.answered) {
                        (Some(asked), answered) if asked < until && at_once(asked, last.at) => {
                            last = Answer { at: answered.unwrap_or(u64::MAX), conn: ask.conn, msg: msg as u32 };
                        }
                        // An answer in several messages: the server went on unasked.
                        (None, Some(answered)) if answered < until => {
                            last = Answer { at: answered, conn: ask.conn, msg: msg as u32 };
                        }
                        _ => break,
                    }
                }
            }
            all.push(last);
        }
        all.sort_unstable();
        all
    }

    /// When so many answers of burst `i` had arrived.
    pub fn answered(&self, i: usize, need: Need) -> Option<(u64, u32)> {
        let answers = &self.answers[i];
        // Answers are in order of time, so the k-th is when k of them had come.
        let k = need.of(answers.len())?;
        answers.get(k - 1).map(|a| a.at).filter(|&at| at < u64::MAX).map(|at| (at, k as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Times;

    /// A company of eight connections: of its bursts so many ask as many of them as it is said, and the others one.
    fn of_bursts(bursts: [(usize, u32); 2]) -> Class {
        let (mut asks, mut all) = (Vec::new(), Vec::new());
        for (count, size) in bursts {
            for _ in 0..count {
                all.push(Burst { asks: (0..size).map(|conn| asks.len() as u32 + conn).collect() });
                asks.extend((0..size).map(|conn| Ask { conn, server: conn, ..Ask::default() }));
            }
        }
        let company = Company { connections: (0..8).collect(), bursts: all, upstream: false };
        let talks = vec![Talk { times: vec![Times::default(); 200], ..Talk::default() }; 8];
        Class::of(&company, &talks, &asks)
    }

    #[test]
    fn a_round_asks_three_quarters_of_a_company() {
        let shown = |size: u32| of_bursts([(10, size), (0, 1)]).shown;
        assert_eq!((shown(6), shown(5)), (true, false));
    }

    /// Five rounds of eight are forty messages.
    #[test]
    fn rounds_are_shown_by_a_fifth_of_the_messages() {
        let shown = |others: usize| of_bursts([(5, 8), (others, 1)]).shown;
        assert_eq!((shown(160), shown(161)), (true, false));
    }

    /// Ten rounds of eight are eighty messages.
    #[test]
    fn asking_together_is_what_connections_are_for_where_rounds_hold_four_fifths_of_the_messages() {
        let full = |others: usize| of_bursts([(10, 8), (others, 1)]).full;
        assert_eq!((full(20), full(21)), (true, false));
    }
}
