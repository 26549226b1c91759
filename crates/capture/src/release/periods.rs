//! The times in which a group waits for answers, and the pauses between them, in which nothing is under way.

#[cfg(test)]
mod edges;

use super::SEEN;
use super::bursts::{Ask, TOGETHER};
use super::requests::{RARELY, Request, STEADY, VALLEY, steadiness, usual};
use super::steady::median;
use std::collections::BTreeMap;

/// Repeated bursts to the same servers are stages of one request only if there are always as many, in so many of the requests.
const AS_MANY: f64 = 0.8;

/// A time in which answers are missing, and the pause before it.
pub(super) struct Period {
    pub asks: Vec<u32>,
    /// Since the last answer before.
    pub pause: u64,
    /// All its servers were asked in the period before.
    again: bool,
}

/// Those of a group, in order.
pub(super) struct Periods(Vec<Period>);

impl Periods {
    pub fn of(mine: &[u32], asks: &[Ask]) -> Periods {
        let mut all: Vec<Period> = Vec::new();
        let (mut answered, mut surely, mut last) = (0, 0, 0);
        for &n in mine {
            let ask = &asks[n as usize];
            // What was asked and answered in this period is asked again, and all that is missing may have come: an application that goes on at once
            // acknowledges the last answer with its next request to that server, which need not be the first that it asks.
            let anew = |period: &Period| {
                surely <= ask.at + SEEN && ask.own.is_some_and(|own| own > asks[period.asks[0] as usize].at)
            };
            match all.last_mut() {
                // Answered, as far as the tap knows: it may see that late.
                Some(period) if answered > ask.at + SEEN && !anew(period) => period.asks.push(n),
                // The loop over the servers goes on, though the first has answered already.
                Some(period)
                    if ask.at - last <= TOGETHER
                        && ask.own.is_none_or(|own| own <= asks[period.asks[0] as usize].at) =>
                {
                    period.asks.push(n);
                }
                _ => {
                    let since = if answered > ask.at { surely } else { answered };
                    all.push(Period { asks: vec![n], pause: ask.at.saturating_sub(since), again: false });
                }
            }
            // For what was never answered the application does not wait.
            let came = ask.answered.unwrap_or(ask.at);
            (answered, surely) = (answered.max(came), surely.max(came.saturating_sub(ask.unsure)));
            last = ask.at;
        }
        let servers = |period: &Period| {
            let mut all: Vec<u32> = period.asks.iter().map(|&n| asks[n as usize].server).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        // Who asks the same servers at once again does so in a loop, or begins anew.
        let mut before: Vec<u32> = Vec::new();
        for period in &mut all {
            let mine = servers(period);
            period.again = mine.iter().all(|server| before.binary_search(server).is_ok());
            before = mine;
        }
        Periods(all)
    }

    pub fn pauses(&self) -> Vec<u64> {
        self.0.iter().skip(1).map(|period| period.pause).collect()
    }

    /// Requests: a period goes on with the one before it if `joins` says so.
    pub fn cut(&self, mut joins: impl FnMut(&Period) -> bool) -> Vec<Request> {
        let mut all: Vec<Request> = Vec::new();
        for period in &self.0 {
            match all.last_mut() {
                Some(request) if joins(period) => request.extend(&period.asks),
                _ => all.push(period.asks.clone()),
            }
        }
        all
    }

    /// Periods with short pauses between them are stages, and not requests one after another: what was asked together is not asked together again, or
    /// always so many times.
    pub fn are_stages(&self, joined: &[Request], valley: u64) -> bool {
        let short = || self.0.iter().skip(1).filter(|period| period.pause <= valley);
        let again = short().filter(|period| period.again && period.asks.len() > 1).count();
        // Other servers mostly than in the period before: stages, as of authentication, search and rendering.
        if 2 * again <= short().count() {
            return true;
        }
        steadiness(joined) >= AS_MANY
    }

    /// The same requests, but where a pause may be of either kind: a stage may be late, and a user quick. What makes a request of the usual size of it
    /// is taken, unless the pause is as long as most of those between requests.
    pub fn mended(&self, requests: &[Request], asks: &[Ask]) -> Vec<Request> {
        let Some(usual) = usual(requests) else { return requests.to_vec() };
        let starts: Vec<u32> = requests.iter().map(|request| request[0]).collect();
        let begins = |period: &Period| starts.binary_search(&period.asks[0]).is_ok();
        let between: Vec<u64> = self.0.iter().skip(1).filter(|period| begins(period)).map(|p| p.pause).collect();
        let within: Vec<u64> = self.0.iter().skip(1).filter(|period| !begins(period)).map(|p| p.pause).collect();
        // Half of the pauses between requests are longer, half of those within are shorter: in between a pause may be either.
        let (longest, shortest) = (median(&between), median(&within));
        let server = |n: u32| asks[n as usize].server;
        let mut begun: BTreeMap<u32, usize> = BTreeMap::new();
        requests.iter().for_each(|request| *begun.entry(server(request[0])).or_default() += 1);
        // The aggregator itself may stall for as long as its users pause; but whom no request begins with is asked by none that begins.
        let never_first = |period: &Period| {
            let times = begun.get(&server(period.asks[0])).copied().unwrap_or(0);
            times as f64 <= RARELY * requests.len() as f64
        };
        let rest = self.rest(begins);
        let mut all: Vec<Request> = Vec::with_capacity(requests.len());
        let mut servers: Vec<u32> = Vec::new();
        let mut longest_inside = 0;
        for (period, &(more, pause_of_more)) in self.0.iter().zip(&rest) {
            let mine = || period.asks.iter().map(|&n| asks[n as usize].server);
            let again = mine().any(|server| servers.contains(&server));
            // Two whole requests, and the longest pause by far is the one between them: who draws his servers need not ask one again.
            let inside = longest_inside.max(pause_of_more);
            let parts = more == usual && period.pause > inside && period.pause as f64 >= VALLEY * shortest as f64;
            let goes_on = all.last().is_some_and(|request| {
                let completed = request.len() + period.asks.len() <= usual;
                match begins(period) {
                    true => !again && completed && (period.pause < longest || never_first(period)),
                    false => !((again && period.pause > shortest || parts) && request.len() == usual),
                }
            });
            match all.last_mut() {
                Some(request) if goes_on => {
                    request.extend(&period.asks);
                    longest_inside = longest_inside.max(period.pause);
                }
                _ => {
                    all.push(period.asks.clone());
                    servers.clear();
                    longest_inside = 0;
                }
            }
            servers.extend(mine());
        }
        complements(all, asks)
    }

    /// Of each period, how many messages its request has from there on, and the longest pause between these.
    fn rest(&self, begins: impl Fn(&Period) -> bool) -> Vec<(usize, u64)> {
        let mut rest = vec![(0, 0); self.0.len()];
        let mut next: Option<(usize, u64, &Period)> = None;
        for (period, mine) in self.0.iter().zip(&mut rest).rev() {
            let (more, longest) = match next {
                Some((more, longest, after)) if !begins(after) => (more, longest.max(after.pause)),
                _ => (0, 0),
            };
            *mine = (period.asks.len() + more, longest);
            next = Some((mine.0, mine.1, period));
        }
        rest
    }
}

/// Joins two neighbours that ask together what nearly each request asks, and no whole one by themselves: between them the aggregator stalled.
fn complements(requests: Vec<Request>, asks: &[Ask]) -> Vec<Request> {
    let servers_of = |parts: &[&Request]| {
        let mut servers: Vec<u32> = parts.iter().copied().flatten().map(|&n| asks[n as usize].server).collect();
        servers.sort_unstable();
        servers
    };
    let mut often: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    requests.iter().for_each(|request| *often.entry(servers_of(&[request])).or_default() += 1);
    let usual = often.into_iter().max_by_key(|&(_, times)| times);
    let Some((usual, _)) = usual.filter(|&(_, times)| times as f64 >= STEADY * requests.len() as f64) else {
        return requests;
    };
    let mut all: Vec<Request> = Vec::with_capacity(requests.len());
    for request in requests {
        match all.last_mut() {
            // As many messages are no proof, and soon told.
            Some(before) if before.len() + request.len() == usual.len() && servers_of(&[before, &request]) == usual => {
                before.extend(&request);
            }
            _ => all.push(request),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Two servers are asked at 0 and at 12 ms, and the second answers after 10 ms; a tap at the switch sees that acknowledged with the next request to it, at
    /// 13 ms, and knows that it may have come so much earlier. The messages of each period.
    fn acknowledged_by_the_next_request(unsure: u64) -> Vec<usize> {
        let ask = |conn: u32, at: u64, answered: u64, own: Option<u64>, unsure: u64| Ask {
            at: at * MS,
            sent: at * MS,
            conn,
            server: conn,
            own: own.map(|own| own * MS),
            answered: Some(answered * MS),
            unsure: unsure * MS,
            ..Ask::default()
        };
        let asks = [
            ask(0, 0, 4, None, 0),
            ask(1, 0, 13, None, unsure),
            ask(0, 12, 14, Some(4), 0),
            ask(1, 13, 15, Some(13), 0),
        ];
        Periods::of(&[0, 1, 2, 3], &asks).cut(|_| false).iter().map(Vec::len).collect()
    }

    #[test]
    fn an_answer_that_the_next_request_acknowledges_may_have_come_before_others_were_asked_again() {
        assert_eq!(acknowledged_by_the_next_request(3), [2, 2]);
        assert_eq!(acknowledged_by_the_next_request(0), [4], "it came after them");
    }

    /// Requests of two calls to each of two servers, all at once. In one of so many, which asks these servers, the aggregator stalls before its last call, for
    /// longer than users pause. The messages of each request.
    fn stalled(one_in: u32, servers: [u32; 4]) -> Vec<usize> {
        let (mut asks, mut at) = (Vec::new(), 0);
        for request in 0..30_u32 {
            at += 10 * MS;
            let stalls = request % one_in == 2;
            for (n, server) in (0..).zip(if stalls { servers } else { [0, 0, 1, 1] }) {
                at += if stalls && n == 3 { 40 * MS } else { 10_000 };
                asks.push(Ask { at, sent: at, conn: n, server, answered: Some(at + 2 * MS), ..Ask::default() });
            }
            at += 2 * MS;
        }
        let all: Vec<u32> = (0..120).collect();
        let periods = Periods::of(&all, &asks);
        periods.mended(&periods.cut(|_| false), &asks).iter().map(Vec::len).collect()
    }

    #[test]
    fn a_request_in_which_the_aggregator_stalls_is_whole_with_both_parts() {
        assert_eq!(stalled(30, [0, 0, 1, 1]), [4; 30]);
        // Where that is so in more than one of ten, or together they are like no other, each may be what the application does.
        let whole = |sizes: Vec<usize>| sizes.into_iter().filter(|&n| n == 4).count();
        assert_eq!((whole(stalled(6, [0, 0, 1, 1])), whole(stalled(30, [0, 0, 1, 0]))), (25, 29));
    }

    /// Chains of three calls, 0.1 ms after the answer before each, to servers of twelve in turn, with a user's pause of 20 ms between them; before the fourth
    /// chain he pauses so long only, and 0.3 ms before its second call. The messages of each request.
    fn chains(pause: u64) -> Vec<usize> {
        let (mut asks, mut at) = (Vec::new(), 0);
        for n in 0..30_u32 {
            at += match n {
                9 => pause,
                10 => 300,
                n if n % 3 == 0 => 20_000,
                _ => 100,
            };
            let (sent, server) = (at * 1_000, n % 12);
            at += 2_000;
            asks.push(Ask { at: sent, sent, conn: server, server, answered: Some(at * 1_000), ..Ask::default() });
        }
        let all: Vec<u32> = (0..30).collect();
        let periods = Periods::of(&all, &asks);
        let begun = periods.cut(|period| period.pause <= 1_000_000);
        periods.mended(&begun, &asks).iter().map(Vec::len).collect()
    }

    #[test]
    fn two_whole_requests_are_parted_at_a_pause_that_is_the_longest_in_them_by_far() {
        assert_eq!(chains(900), [3; 10]);
        assert_eq!(chains(301), [3; 10], "three times as long as most");
        assert_eq!(chains(299), [3, 3, 6, 3, 3, 3, 3, 3, 3], "another one is as long");
    }
}
