//! Messages of requests that leave together with messages of other groups, or as soon as these are answered: the groups are parts of one request, whose
//! messages were not joined.
//!
//! Services of their own meet by chance. Where they meet more often, one loop of the application asks the servers of both. What begins at once when another
//! group was answered is a stage that only some requests have, as when a cache does not hold what they want.

use crate::release::{BEYOND_CHANCE, Excess, IN_STEP, TOGETHER, between};
use crate::stages::Request;
use crate::waiting::{Company, Release};
use crate::workload::Workload;
use std::collections::{BTreeMap, BTreeSet};

/// With fewer messages on either side a share says nothing.
const FEWEST: usize = 20;

impl Workload {
    /// Of each company, how many of its messages leave together with messages of others; 0 where chance gives about as many, and as many requests that
    /// begin so. What leaves behind the first message of a request is near to what is near to that one, and so are the moments between the two. Who asks the
    /// same servers is another user, whom a busy host lets go on with this one: begins tell of those who share none.
    pub(super) fn beside(&self, requests: &[Request]) -> Vec<u64> {
        let asked = |company: &Company| {
            let connections = company.connections.iter().filter_map(|&c| self.connections.get(c as usize));
            let messages = connections.flat_map(|c| &c.messages).filter(|message| message.request_bytes > 0);
            let mut starts: Vec<u64> = messages.map(|message| message.start_ns).collect();
            starts.sort_unstable();
            starts
        };
        let mine: Vec<Vec<u64>> =
            self.companies.iter().map(|company| if company.upstream { Vec::new() } else { asked(company) }).collect();
        let of_each = mine.iter().enumerate();
        let mut all: Vec<(u64, usize)> =
            of_each.flat_map(|(n, starts)| starts.iter().map(move |&at| (at, n))).collect();
        all.sort_unstable();
        let mut begins: Vec<Vec<u64>> = vec![Vec::new(); mine.len()];
        for request in requests {
            let sent = request.messages().filter_map(|place| Some(self.message(place)?.start_ns)).min();
            begins[request.company as usize].extend(sent);
        }
        begins.iter_mut().for_each(|begins| begins.sort_unstable());
        let servers: Vec<BTreeSet<u32>> = self.companies.iter().map(|company| self.asked_by(company)).collect();
        let of = |(n, starts): (usize, &Vec<u64>)| {
            if self.companies[n].rounds == 0 || starts.len().min(all.len() - starts.len()) < FEWEST {
                return 0;
            }
            let other = |of: usize| of != n;
            let apart: Vec<bool> = servers.iter().map(|others| others.is_disjoint(&servers[n])).collect();
            let told = in_step(starts, &all, other) || in_step(&begins[n], &all, |of| apart[of]);
            if told { together(starts, &all, other) as u64 } else { 0 }
        };
        mine.iter().enumerate().map(of).collect()
    }

    /// Of each company, how many messages its requests have that begin as another group was answered, as steadily as a cause must be: a busy event loop
    /// takes milliseconds for its turn. 0 where that is fewer than half of its requests, or where those of the other group begin so, too: then two
    /// requests take turns.
    pub(super) fn behind(&self, requests: &[Request]) -> Vec<u64> {
        let mut company_of = vec![u32::MAX; self.connections.len()];
        for (n, company) in (0..).zip(&self.companies).filter(|(_, company)| !company.upstream) {
            for &c in &company.connections {
                company_of.get_mut(c as usize).into_iter().for_each(|of| *of = n);
            }
        }
        let follows = |request: &Request| {
            let of = match self.message(request.messages().next()?)?.release? {
                Release::Answer { connection, .. } => *company_of.get(connection as usize)?,
                Release::Round { round, .. } => self.rounds.get(round as usize)?.company,
                Release::Request { .. } | Release::Clock { .. } => return None,
            };
            (of != request.company && of != u32::MAX).then_some(of)
        };
        let mut all = vec![0; self.companies.len()];
        let mut pairs: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for request in requests {
            all[request.company as usize] += 1;
            if let Some(of) = follows(request) {
                let (count, messages) = pairs.entry((request.company, of)).or_default();
                (*count, *messages) = (*count + 1, *messages + request.messages().count() as u64);
            }
        }
        let mostly = |(n, of): (u32, u32)| {
            let count = pairs.get(&(n, of)).map_or(0, |pair| pair.0);
            count >= FEWEST as u64 && 2 * count >= all[n as usize]
        };
        let told = |n: u32| pairs.iter().filter(move |&(&(a, b), _)| a == n && mostly((a, b)) && !mostly((b, a)));
        (0..self.companies.len() as u32).map(|n| told(n).map(|(_, pair)| pair.1).sum()).collect()
    }

    /// Whom a company asks.
    fn asked_by(&self, company: &Company) -> BTreeSet<u32> {
        let connections = company.connections.iter().filter_map(|&c| self.connections.get(c as usize));
        connections.map(|connection| connection.server).collect()
    }
}

/// How many of these moments are near to a message of one of the others, of all messages in order of time.
fn together(of: &[u64], all: &[(u64, usize)], other: impl Fn(usize) -> bool) -> usize {
    let near = |at: u64| {
        let from = all.partition_point(|&(other, _)| other + TOGETHER < at);
        all[from..].iter().take_while(|&&(other, _)| other <= at + TOGETHER).any(|&(_, of)| other(of))
    };
    of.iter().filter(|&&at| near(at)).count()
}

/// More of these moments, in order, are near to a message of the others than chance gives.
fn in_step(of: &[u64], all: &[(u64, usize)], other: impl Fn(usize) -> bool + Copy) -> bool {
    if of.len() < FEWEST {
        return false;
    }
    let moments: Vec<u64> = between(of).collect();
    let excess = Excess::of(together(of, all, other), of.len(), together(&moments, all, other), moments.len());
    excess.share >= IN_STEP && excess.deviations >= BEYOND_CHANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A company of so many messages, one each 10 ms, and another of which so many leave so long after one of these, and the others at times of their own.
    fn beside(count: u64, together: u64, after: u64) -> u64 {
        let mine: Vec<u64> = (0..count).map(|n| n * 10_000_000).collect();
        let mut all: Vec<(u64, usize)> = mine.iter().map(|&at| (at, 0)).collect();
        let alone = |n: u64| 1_000_000 + n * 37_000 % 7_400_000;
        all.extend((0..count).map(|n| (n * 10_000_000 + if n < together { after } else { alone(n) }, 1)));
        all.sort_unstable();
        let other = |of| of != 0;
        if in_step(&mine, &all, other) { super::together(&mine, &all, other) as u64 } else { 0 }
    }

    /// Requests of two groups of four messages within 0.9 ms, at times of no order; of the other group so many begin with one of this, the others by
    /// themselves.
    #[test]
    fn requests_that_begin_together_more_often_than_chance_gives_are_in_step_whatever_follows_in_them() {
        let told = |together: u64| {
            let begin = |n: u64| n * 20_000_000 + n * n * 7_919 % 9_000_000;
            let each = |at: u64| (0..4).map(move |k| at + k * 300_000);
            let begins: Vec<u64> = (0..200).map(begin).collect();
            let mine: Vec<u64> = begins.iter().copied().flat_map(each).collect();
            let other = |n: u64| begin(n) + if n < together { 60_000 } else { 10_000_000 };
            let mut all: Vec<(u64, usize)> = mine.iter().map(|&at| (at, 0)).collect();
            all.extend((0..200).flat_map(|n| each(other(n))).map(|at| (at, 1)));
            all.sort_unstable();
            let other = |of| of != 0;
            (in_step(&mine, &all, other), in_step(&begins, &all, other))
        };
        assert_eq!((told(0), told(60)), ((false, false), (false, true)));
    }

    #[test]
    fn messages_that_leave_together_more_often_than_chance_gives_are_in_step() {
        let together = |count| beside(200, count, 100_000);
        assert_eq!((together(0), together(100), together(200)), (0, 100, 200));
    }

    #[test]
    fn half_a_millisecond_apart_is_together() {
        assert_eq!((beside(200, 200, 500_000), beside(200, 200, 501_000)), (200, 0));
    }

    #[test]
    fn a_tenth_of_what_chance_leaves_is_in_step() {
        assert_eq!((beside(2_000, 340, 100_000), beside(2_000, 420, 100_000)), (0, 420));
    }

    #[test]
    fn twenty_messages_show_a_step() {
        assert_eq!((beside(19, 19, 100_000), beside(20, 20, 100_000)), (0, 20));
    }
}
