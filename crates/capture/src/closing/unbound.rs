//! Messages that belong to no request, though they leave together: something in the application binds them, and it was not found.
//!
//! Connections that go their own way meet by chance. Messages that leave with others more often than chance gives are of requests whose ends are not
//! known, so that neither their count nor their times are.

use super::SEEN;
use crate::release::{BEYOND_CHANCE, Excess, FOLLOWS, LITTLE, ON_A_TICK, SELDOM, TOGETHER, by_chance, most_alike};
use crate::stages::Request;
use crate::waiting::{Company, Edge, OWN_ANSWER, Release};
use crate::workload::Workload;

/// With fewer messages a share says nothing.
pub(super) const FEWEST: usize = 20;

/// A message in no request.
#[derive(Clone, Copy)]
struct Loose {
    at: u64,
    conn: u32,
    company: usize,
    /// When the aggregator had the answer.
    answered: Option<u64>,
    /// When the next one on its connection leaves.
    next: Option<u64>,
    /// It follows the answer before on its connection, as soon as a loop over servers asks the next: as in a poll or a transfer.
    goes_on: bool,
}

impl Workload {
    /// Of each company, how many messages of it are in no request and yet leave together with others like them, so long after others each time, or
    /// as soon as others were answered.
    ///
    /// None of those that are few beside the requests, as health checks are, and none of those that keep time after their own answers: these keep step where
    /// their periods are the same.
    pub(super) fn unbound(&self, requests: &[Request]) -> Vec<u64> {
        let mut counts = vec![0_u64; self.companies.len()];
        let (loose, matter) = self.loose(requests);
        let mine: Vec<&Loose> = loose.iter().filter(|message| !message.goes_on).collect();
        if mine.len() < FEWEST || !matter {
            return counts;
        }
        together(&loose, &mine, &mut counts);
        for others in [after_the_same_time, after_answers] {
            if counts.iter().all(|&count| count == 0) {
                others(&loose, &mine, &mut counts);
            }
        }
        counts
    }

    /// Messages to servers that are in no request, in order of time, and whether they are more than a little beside those that are: health checks are not.
    fn loose(&self, requests: &[Request]) -> (Vec<Loose>, bool) {
        let mut bound: Vec<Vec<bool>> = self.connections.iter().map(|c| vec![false; c.messages.len()]).collect();
        requests.iter().flat_map(Request::messages).for_each(|(c, m)| bound[c as usize][m as usize] = true);
        let mut all: Vec<Loose> = Vec::new();
        let (mut of_requests, mut of_others) = ((0_u64, 0_u64), (0_u64, 0_u64));
        for (n, company) in self.companies.iter().enumerate().filter(|(_, company)| !company.upstream) {
            let by_a_clock = keeps_time(company);
            for &c in &company.connections {
                let Some(connection) = self.connections.get(c as usize) else { continue };
                let asked: Vec<usize> =
                    (0..connection.messages.len()).filter(|&m| connection.messages[m].request_bytes > 0).collect();
                let mut answered: Option<u64> = None;
                for (place, &m) in asked.iter().enumerate() {
                    let message = &connection.messages[m];
                    let at = message.start_ns;
                    let goes_on = answered.is_some_and(|before| at.abs_diff(before) <= TOGETHER);
                    let mine = message.took_ns.map(|took| at.saturating_add(took));
                    answered = mine;
                    let next = asked.get(place + 1).map(|&next| connection.messages[next].start_ns);
                    let is_bound = bound[c as usize][m];
                    let sum = if is_bound { &mut of_requests } else { &mut of_others };
                    (sum.0, sum.1) = (sum.0 + 1, sum.1.saturating_add(message.response_bytes));
                    let by_a_clock = by_a_clock || matches!(message.release, Some(Release::Clock { .. }));
                    if !is_bound && !by_a_clock {
                        all.push(Loose { at, conn: c, company: n, answered: mine, next, goes_on });
                    }
                }
            }
        }
        all.sort_unstable_by_key(|message| message.at);
        let matter =
            of_others.0.saturating_mul(SELDOM) > of_requests.0 || of_others.1.saturating_mul(LITTLE) > of_requests.1;
        (all, matter)
    }
}

/// Counts those that leave together with others.
fn together(loose: &[Loose], mine: &[&Loose], counts: &mut [u64]) {
    count_beyond_chance(mine, counts, |at, conn| {
        let from = loose.partition_point(|other| other.at + TOGETHER < at);
        loose[from..].iter().take_while(|other| other.at <= at + TOGETHER).any(|other| other.conn != conn)
    });
}

/// Counts those that leave as soon as a message of another connection was answered: the next call of a chain whose connections are new each time.
fn after_answers(loose: &[Loose], mine: &[&Loose], counts: &mut [u64]) {
    let mut answers: Vec<(u64, u32)> = loose.iter().filter_map(|other| Some((other.answered?, other.conn))).collect();
    answers.sort_unstable();
    count_beyond_chance(mine, counts, |at, conn| {
        let from = answers.partition_point(|&(answered, _)| answered + TOGETHER < at);
        answers[from..].iter().take_while(|&&(answered, _)| answered <= at + SEEN).any(|&(_, other)| other != conn)
    });
}

/// Counts the messages that are `bound` to others at the time when they leave, if that is so more often than at other times of their connections.
fn count_beyond_chance(mine: &[&Loose], counts: &mut [u64], bound: impl Fn(u64, u32) -> bool) {
    let found: Vec<&&Loose> = mine.iter().filter(|message| bound(message.at, message.conn)).collect();
    let moments = mine.iter().enumerate().filter_map(|(n, message)| {
        message.next.map(|next| (by_chance(n, message.at, next.max(message.at)), message.conn))
    });
    let (mut tried, mut met) = (0_usize, 0_usize);
    for (at, conn) in moments {
        tried += 1;
        met += usize::from(bound(at, conn));
    }
    let excess = Excess::of(found.len(), mine.len(), met, tried);
    if excess.share >= FOLLOWS && excess.deviations >= BEYOND_CHANCE {
        found.iter().for_each(|message| counts[message.company] += 1);
    }
}

/// Counts those that leave so long after a message of another connection, where that time is the same for more of them than chance gives: by a timer of the
/// application, as in a request that asks the next server while the first has not answered.
fn after_the_same_time(loose: &[Loose], mine: &[&Loose], counts: &mut [u64]) {
    let since = |at: u64, conn: u32| {
        let to = loose.partition_point(|other| other.at < at);
        let before = loose[..to].iter().rev().take(FEWEST).find(|other| other.conn != conn);
        before.map(|other| at - other.at)
    };
    let known: Vec<(u64, usize)> =
        mine.iter().filter_map(|message| Some((since(message.at, message.conn)?, message.company))).collect();
    let moments = mine.iter().enumerate().filter_map(|(n, message)| {
        let next = message.next?;
        since(by_chance(n, message.at, next.max(message.at)), message.conn)
    });
    let chance: Vec<u64> = moments.collect();
    let times: Vec<u64> = known.iter().map(|&(time, _)| time).collect();
    let (from, alike) = most_alike(&times);
    let (_, alike_by_chance) = most_alike(&chance);
    let excess = Excess::of(alike, mine.len(), alike_by_chance, chance.len());
    if excess.share >= FOLLOWS && excess.deviations >= BEYOND_CHANCE {
        let of_these = known.iter().filter(|&&(time, _)| time >= from && time - from <= TOGETHER);
        of_these.for_each(|&(_, company)| counts[company] += 1);
    }
}

/// Each message follows the answer before on its connection after about the same time, as a check does whose application sleeps in between: what it waits
/// for is known.
fn keeps_time(company: &Company) -> bool {
    let own = |edge: &&Edge| edge.event == OWN_ANSWER;
    // The first message of a connection follows nothing that was seen.
    let others: u64 = company.released_by.iter().filter(|edge| !own(edge)).map(|edge| edge.requests).sum();
    let steady = |edge: &Edge| {
        let spread = edge.delay.p90_ns.saturating_sub(edge.delay.p10_ns);
        edge.delay.median_ns > TOGETHER && spread as f64 <= ON_A_TICK * edge.delay.median_ns as f64
    };
    let edge = company.released_by.iter().find(own);
    company.rounds == 0 && others <= company.connections.len() as u64 && edge.is_some_and(steady)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hundred messages at times of no order, each followed by one to another server after `after(n)` microseconds; how many are told.
    fn followed(after: impl Fn(u64) -> u64) -> u64 {
        const US: u64 = 1_000;
        let first = |n: u64| n * 40_000 + n * n * 7_919 % 23_000;
        let mut loose: Vec<Loose> = Vec::new();
        for n in 0..200 {
            let on = |at: u64, next: u64, conn: u32| Loose {
                at: at * US,
                conn,
                company: 0,
                answered: None,
                next: Some(next * US),
                goes_on: false,
            };
            loose.push(on(first(n), first(n + 1), (n % 3) as u32));
            loose.push(on(first(n) + after(n), first(n + 1) + after(n + 1), 3 + (n % 3) as u32));
        }
        loose.sort_unstable_by_key(|message| message.at);
        let mine: Vec<&Loose> = loose.iter().collect();
        let mut counts = vec![0];
        after_the_same_time(&loose, &mine, &mut counts);
        counts[0]
    }

    /// Two hundred calls at times of no order, each answered after 2 ms and followed by one on another connection so many microseconds later; how many
    /// are told.
    fn chained(after: impl Fn(u64) -> u64) -> u64 {
        const US: u64 = 1_000;
        let first = |n: u64| n * 40_000 + n * n * 7_919 % 23_000;
        let second = |n: u64| first(n) + 2_000 + after(n);
        let call = |at: u64, next: u64, conn: u64| Loose {
            at: at * US,
            conn: conn as u32,
            company: 0,
            answered: Some((at + 2_000) * US),
            next: Some(next * US),
            goes_on: false,
        };
        let both = |n: u64| [call(first(n), first(n + 3), n % 3), call(second(n), second(n + 3), 3 + n % 3)];
        let mut loose: Vec<Loose> = (0..200).flat_map(both).collect();
        loose.sort_unstable_by_key(|message| message.at);
        let mine: Vec<&Loose> = loose.iter().collect();
        let mut counts = vec![0];
        after_answers(&loose, &mine, &mut counts);
        counts[0]
    }

    #[test]
    fn what_is_asked_as_soon_as_another_connection_was_answered_is_of_its_request() {
        assert_eq!((chained(|_| 60), chained(|_| 500), chained(|_| 501)), (200, 200, 0));
    }

    #[test]
    fn what_is_asked_so_long_after_another_server_each_time_is_of_its_request() {
        assert_eq!(followed(|n| 3_000 + n * 37 % 500), 200, "by a timer of 3 ms");
        assert_eq!(followed(|n| 1_000 + n * 7_919 % 16_000), 0, "at times of no order");
    }
}
