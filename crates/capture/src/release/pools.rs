//! Groups that are one pool: connections to the same servers that different requests of the same users took.
//!
//! [`super::groups`] joins what follows each other. Which connection of a pool a request takes is an accident, so that a few of them may follow none, or
//! each other alone. They are of one pool if their messages, taken together, make whole requests that they do not make alone.

use super::bursts::Ask;
use super::candidates::GAIN;
use super::groups::{Group, OVERFLOW};
use super::requests;
use super::steady::{RESOLUTION, between, cost};
use super::{CLEAR, LEAST_ROUNDS, NEARLY_ALL};
use std::collections::BTreeMap;
use std::ops::Range;

/// Joins groups to the same servers.
pub(super) fn pools(groups: Vec<Group>, asks: &[Ask]) -> Vec<Group> {
    pools_by(of_one_host(groups, asks), asks, |group| messages_of_whole(group, asks))
}

/// With connections to one host as a group, where none of them follows another and all together make whole requests: of threads that share a pool to a load
/// balancer each turns when it gets to run.
fn of_one_host(groups: Vec<Group>, asks: &[Ask]) -> Vec<Group> {
    let all: usize = groups.iter().map(|group| group.asks.len()).sum();
    let mut hosts: BTreeMap<u32, usize> = BTreeMap::new();
    for group in &groups {
        if let &[host] = group.servers(asks).as_slice() {
            *hosts.entry(host).or_default() += group.asks.len();
        }
    }
    let mostly = |&(_, &messages): &(&u32, &usize)| messages as f64 >= NEARLY_ALL * all as f64;
    let Some((&host, _)) = hosts.iter().find(mostly) else { return groups };
    let is_alone = |group: &Group| !group.several && group.servers(asks) == [host] && !is_clocked(group, asks);
    let (alone, mut others): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(is_alone);
    let whole = Group::whole(alone.iter());
    let is_whole = whole.several && messages_of_whole(&whole, asks) >= requests::STEADY * whole.asks.len() as f64;
    if is_whole {
        others.push(whole)
    } else {
        others.extend(alone)
    }
    others.sort_by_key(|group| group.connections.first().copied());
    others
}

fn pools_by(groups: Vec<Group>, asks: &[Ask], messages_of_whole: impl Fn(&Group) -> f64) -> Vec<Group> {
    let servers: Vec<Vec<u32>> = groups.iter().map(|group| group.servers(asks)).collect();
    // Which connection a request takes is an accident, so one that is asked by a clock of its own is of no pool: a check, a poll, a transfer.
    let clocked: Vec<bool> = groups.iter().map(|group| is_clocked(group, asks)).collect();
    let mut order: Vec<usize> = (0..groups.len()).filter(|&n| !clocked[n]).collect();
    // The largest first: it has most of the pool's messages, and the others are what it lacks.
    order.sort_by_key(|&n| (std::cmp::Reverse(groups[n].asks.len()), n));
    let mut into: Vec<usize> = (0..groups.len()).collect();
    let mut joined: Vec<Option<Group>> = vec![None; groups.len()];
    let mut known: Vec<Option<f64>> = vec![None; groups.len()];
    let spans: Vec<Range<u64>> = groups.iter().map(|group| group.span(asks)).collect();
    let mut alone = |n: usize| *known[n].get_or_insert_with(|| messages_of_whole(&groups[n]));
    for (place, &base) in order.iter().enumerate() {
        if into[base] != base || !groups[base].several {
            continue;
        }
        let shared = |n: usize| servers[n].iter().any(|server| servers[base].binary_search(server).is_ok());
        let free = |&n: &usize| into[n] == n && joined[n].is_none() && shared(n);
        let mut loose: Vec<usize> = order[place + 1..].iter().copied().filter(free).take(requests::BESIDE).collect();
        if loose.is_empty() {
            continue;
        }
        let (mut mine, mut while_asked) = (groups[base].clone(), spans[base].clone());
        let mut whole = alone(base);
        let steady = |whole: f64, group: &Group| whole >= requests::STEADY * group.asks.len() as f64;
        // What needs another one first is tried again.
        loop {
            let before = loose.len();
            loose.retain(|&n| {
                let own = alone(n);
                // Users with connections of their own.
                if groups[n].several && steady(whole, &mine) && steady(own, &groups[n]) {
                    return true;
                }
                // Over before the other begins, as before a restart: requests that it shows are of none of the other's messages.
                let apart = spans[n].start > while_asked.end || while_asked.start > spans[n].end;
                if apart && own > 0.0 {
                    return true;
                }
                let all = mine.with(&groups[n]);
                let of_all = messages_of_whole(&all);
                // More messages in whole requests than they have apart, by half of what is added.
                if of_all < whole + own + CLEAR * groups[n].asks.len() as f64 {
                    return true;
                }
                (mine, whole, into[n]) = (all, of_all, base);
                while_asked = while_asked.start.min(spans[n].start)..while_asked.end.max(spans[n].end);
                false
            });
            if loose.is_empty() || loose.len() == before {
                break;
            }
        }
        joined[base] = Some(mine);
    }
    let kept = groups.into_iter().enumerate().filter(|&(n, _)| into[n] == n);
    kept.map(|(n, group)| joined[n].take().unwrap_or(group)).collect()
}

/// Each of its connections goes on by itself, or keeps time.
pub(super) fn is_clocked(group: &Group, asks: &[Ask]) -> bool {
    group.goes_on_by_itself(asks) || keeps_time(&group.asks, asks)
}

/// Whether nearly all messages follow the one before to their server after a time that is as steady as a cause's: those of a timer.
pub(super) fn keeps_time(mine: &[u32], asks: &[Ask]) -> bool {
    let mut of_server: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    mine.iter().map(|&n| &asks[n as usize]).for_each(|ask| of_server.entry(ask.server).or_default().push(ask.at));
    let steady = |times: &Vec<u64>| {
        let known: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let chance: Vec<u64> = between(times).zip(times).map(|(moment, at)| moment - at).collect();
        known.len() >= LEAST_ROUNDS && cost(&chance, RESOLUTION) - cost(&known, RESOLUTION) >= GAIN
    };
    // Health checks (HAProxy: each 2 s), heartbeats, scrapes. In a pool's requests they would be messages too many.
    let by_a_clock: usize = of_server.values().filter(|times| steady(times)).map(Vec::len).sum();
    by_a_clock as f64 >= OVERFLOW * mine.len() as f64
}

/// How many messages are in requests of the most frequent size. One connection alone has none.
fn messages_of_whole(group: &Group, asks: &[Ask]) -> f64 {
    if !group.several {
        return 0.0;
    }
    requests::steadiness(&requests::cut(group, asks).requests) * group.asks.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;
    use std::cell::Cell;

    const MS: u64 = 1_000_000;

    /// An application that was started so many times, a minute from one start to the next, and asks two servers 50 times each: how many groups, and of how
    /// many it was tried what requests they make.
    fn restarted(times: u64) -> (usize, usize) {
        let ask = |start: u64, n: u64, server: u32| {
            let at = start * 60_000 * MS + n * 100 * MS + n * n * 7_919 % 50 * MS;
            Ask { at, answered: Some(at + MS), conn: 2 * start as u32 + server, server, ..Ask::default() }
        };
        let asks: Vec<Ask> = (0..times)
            .flat_map(|start| (0..50).flat_map(move |n| [0, 1].map(|server| ask(start, n, server))))
            .collect();
        let group = |start: u32| Group {
            connections: vec![2 * start, 2 * start + 1],
            asks: (100 * start..100 * (start + 1)).collect(),
            companies: Vec::new(),
            several: true,
        };
        let tried = Cell::new(0);
        // Not steady: they may be parts of others' requests.
        let whole = |group: &Group| {
            tried.set(tried.get() + 1);
            0.8 * group.asks.len() as f64
        };
        (pools_by((0..times as u32).map(group).collect(), &asks, whole).len(), tried.get())
    }

    #[test]
    fn what_is_over_before_another_group_begins_is_not_tried_with_it() {
        assert_eq!([2, 30].map(restarted), [(2, 2), (30, 30)]);
    }

    /// Requests of eight calls to one host on any free connection of a pool, by threads that turn within `spread` of each other, and so many calls to
    /// another host; of how many connections the groups are.
    fn to_one_host(spread: u64, others: u64) -> Vec<usize> {
        let (mut numbers, mut asks) = (Numbers(61), Vec::new());
        let (mut free, mut now) = ([0_u64; 12], 0);
        for _ in 0..60 {
            now += 30 * MS + numbers.exponential(50 * MS);
            let mut at = now;
            for _ in 0..8 {
                at += numbers.below(spread);
                let any = numbers.below(12) as usize;
                let conn = (any..any + 12).map(|conn| conn % 12).find(|&conn| free[conn] <= at).unwrap_or(any);
                free[conn] = at + 2 * MS + numbers.below(6 * MS);
                asks.push(Ask { at, answered: Some(free[conn]), conn: conn as u32, ..Ask::default() });
            }
        }
        for n in 0..others {
            let at = n * 30 * MS + numbers.below(25 * MS);
            asks.push(Ask { at, answered: Some(at + MS), conn: 12, server: 1, ..Ask::default() });
        }
        asks.sort_unstable_by_key(|ask| ask.at);
        let alone = |conn: u32| Group {
            connections: vec![conn],
            asks: (0..asks.len() as u32).filter(|&n| asks[n as usize].conn == conn).collect(),
            companies: Vec::new(),
            several: false,
        };
        let groups = (0..12 + u32::from(others > 0)).map(alone).collect();
        pools(groups, &asks).iter().map(|group| group.connections.len()).collect()
    }

    #[test]
    fn connections_to_one_host_are_a_pool_if_all_together_make_whole_requests() {
        assert_eq!(to_one_host(2 * MS, 0), [12]);
        assert_eq!(to_one_host(40 * MS, 0), [1; 12], "requests run into each other");
    }

    /// Of 600 messages 120 are a fifth.
    #[test]
    fn one_host_has_four_fifths_of_all_messages() {
        assert_eq!((to_one_host(2 * MS, 120), to_one_host(2 * MS, 121)), (vec![12, 1], vec![1; 13]));
    }

    /// Of one server that is asked after so long each time.
    fn asked_after(times: impl Iterator<Item = u64>) -> bool {
        let asks: Vec<Ask> =
            times.scan(0, |at, time| (*at += time, Some(Ask { at: *at, ..Ask::default() })).1).collect();
        keeps_time(&(0..asks.len() as u32).collect::<Vec<u32>>(), &asks)
    }

    #[test]
    fn a_check_keeps_time_though_its_answers_take_a_few_milliseconds_and_the_accidents_of_a_pool_do_not() {
        assert!(asked_after((0..10).map(|n| 200 * MS + n * 7 % 10 * MS / 2)));
        // As often, and the times between them are spread as exponential ones are.
        let accident = |n: u64| (-(((n * 7 % 20) as f64 + 0.5) / 20.0).ln() * 200.0 * MS as f64) as u64;
        assert!(!asked_after((0..20).map(accident)));
        assert!(
            !asked_after((0..4).map(|_| 200 * MS)) && asked_after((0..5).map(|_| 200 * MS)),
            "three times tell nothing"
        );
    }
}
