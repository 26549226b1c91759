//! Requests that lack a server that others of their kind ask: connections to it may be missing in the capture.
//!
//! A tap that samples by connection, or that loses one of them, leaves no hole in any connection that is there. But an application's requests are alike:
//! a server that nearly each of them asks, and for a long time none, and one that a group of connections lacks where another group like it has it, are
//! missing either in the application or in the file.

use super::unbound::FEWEST;
use crate::release::{BEYOND_CHANCE, Excess};
use crate::stages::Request;
use crate::workload::Workload;
use std::collections::BTreeSet;

impl Workload {
    /// Of each company, how many of its requests lack a server that its others, or those of another company like it, ask.
    /// `servers` are those of each request.
    pub(super) fn lacking(&self, requests: &[Request], servers: &[Vec<u32>]) -> Vec<u64> {
        let mut asked: Vec<Vec<&[u32]>> = vec![Vec::new(); self.companies.len()];
        for (request, servers) in requests.iter().zip(servers) {
            asked[request.company as usize].push(servers);
        }
        let whole: Vec<Option<Vec<u32>>> = asked.iter().map(|mine| always(mine)).collect();
        let less = |n: usize| {
            let mine = whole[n].as_deref()?;
            whole.iter().flatten().any(|others| lacks(mine, others)).then_some(asked[n].len())
        };
        (0..asked.len()).map(|n| less(n).unwrap_or_else(|| absent(&asked[n])) as u64).collect()
    }

    /// Whom a request asks, in order.
    pub(super) fn servers_of(&self, request: &Request) -> Vec<u32> {
        let mut servers: Vec<u32> = request.messages().map(|(c, _)| self.connections[c as usize].server).collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    }
}

/// Every server that one of the requests asks.
fn all(asked: &[impl AsRef<[u32]>]) -> BTreeSet<u32> {
    asked.iter().flat_map(AsRef::as_ref).copied().collect()
}

/// All the servers of a company most of whose requests ask each of them.
fn always(asked: &[impl AsRef<[u32]>]) -> Option<Vec<u32>> {
    let servers = all(asked);
    let whole = asked.iter().filter(|mine| mine.as_ref().len() == servers.len()).count();
    (asked.len() >= FEWEST && servers.len() > 1 && 2 * whole > asked.len()).then(|| servers.into_iter().collect())
}

/// Whether these are others' servers, but for some: both are users of one service, and not of services of their own.
fn lacks(mine: &[u32], others: &[u32]) -> bool {
    let common = mine.iter().filter(|server| others.binary_search(server).is_ok()).count();
    common < others.len() && 2 * common >= mine.len().max(others.len())
}

/// How many requests in order of time lack a server in a row in which chance would not leave it out.
fn absent(asked: &[impl AsRef<[u32]>]) -> usize {
    let mut lacking = vec![false; asked.len()];
    for server in all(asked) {
        let has: Vec<bool> = asked.iter().map(|mine| mine.as_ref().binary_search(&server).is_ok()).collect();
        let (mut begin, mut longest) = (0, 0..0);
        for run in has.chunk_by(|a, b| a == b) {
            if !run[0] && run.len() > longest.len() {
                longest = begin..begin + run.len();
            }
            begin += run.len();
        }
        let (row, present) = (longest.len(), has.iter().filter(|&&has| has).count());
        let rest = has.len() - row;
        if row < FEWEST || present < FEWEST {
            continue;
        }
        if Excess::of(row, row, rest - present, rest).deviations >= BEYOND_CHANCE {
            lacking[longest].fill(true);
        }
    }
    lacking.into_iter().filter(|&lacks| lacks).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests to the servers that `asks` says of each.
    fn requests(count: u32, asks: impl Fn(u32, u32) -> bool) -> Vec<Vec<u32>> {
        (0..count).map(|n| (0..4).filter(|&server| asks(n, server)).collect()).collect()
    }

    #[test]
    fn a_server_that_twenty_requests_in_a_row_lack_is_missing() {
        let row = |from: u32, to: u32| absent(&requests(100, |n, server| server != 3 || n < from || n >= to));
        assert_eq!((row(40, 59), row(40, 60), row(0, 30), row(70, 100)), (0, 20, 30, 30));
        assert_eq!((row(20, 100), row(19, 100)), (80, 0), "whom fewer than twenty ask is no member");
    }

    #[test]
    fn servers_that_are_drawn_are_not_missing() {
        // One in four, at moments of no order: the longest row without a server has some twenty requests.
        let drawn = requests(600, |n, server| {
            (u64::from(n) * u64::from(n) * 7_919 / 13 + u64::from(n)) % 4 == u64::from(server)
        });
        assert_eq!(absent(&drawn), 0);
        assert_eq!(always(&drawn), None);
        // Nine in ten.
        assert_eq!(absent(&requests(400, |n, server| !(n * 7 + server).is_multiple_of(10))), 0);
    }

    #[test]
    fn users_of_one_service_ask_the_same_servers_and_other_services_do_not() {
        let all = [0, 1, 2, 3];
        assert!(lacks(&[0, 1, 3], &all) && lacks(&[0, 1], &all) && lacks(&[0, 1, 2], &[1, 2, 3]));
        assert!(!lacks(&all, &[0, 1, 3]) && !lacks(&all, &all), "it lacks nothing");
        assert!(!lacks(&[0], &all) && !lacks(&[0, 1, 2], &[2, 3, 4]) && !lacks(&[4, 5], &all));
    }

    #[test]
    fn a_group_asks_its_servers_always_where_most_of_its_requests_ask_each() {
        let most = |whole: u32| always(&requests(40, |n, server| server != 3 || n < whole));
        assert_eq!((most(20), most(21)), (None, Some(vec![0, 1, 2, 3])));
        assert_eq!(always(&requests(19, |_, _| true)), None);
    }
}
