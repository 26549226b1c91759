//! Groups whose messages leave in step: parts of one request.
//!
//! [`super::groups`] joins what follows each other at once. Where a request draws its servers, or an ordinary client library computes between its messages,
//! each lane follows now this one and now that one, none often enough, and what belongs to one request falls into several groups. Services of their own
//! meet by chance. Where they meet more often, one loop of the application asks the servers of both; where they are asked equally often, each request may
//! ask both. They are one if together their messages make larger requests of one size than they do alone.

use super::bursts::{Ask, TOGETHER, counted};
use super::groups::{BEYOND_CHANCE, Group, NEIGHBOURS};
use super::pools;
use super::requests::{self, AS_ONE, BESIDE};
use super::steady::{Excess, by_chance};
use std::collections::{BTreeMap, BTreeSet};

/// With fewer messages on either side a share says nothing.
const FEWEST: usize = 20;
/// So much of what chance leaves. Of the laboratory's services that are read right, with users, polls, transfers and health checks beside each other, none
/// has more than 0.08; of those that were read in parts, the least had 0.16.
pub(crate) const IN_STEP: f64 = 0.1;

/// Joins groups that are parts of one request.
pub(super) fn joined(groups: Vec<Group>, asks: &[Ask]) -> Vec<Group> {
    let mut found = together(&groups, asks);
    found.extend(as_often(&groups, asks));
    if found.is_empty() {
        return groups;
    }
    // What goes on or keeps time by itself is in step with others by its own clock.
    let mut clocked: Vec<Option<bool>> = vec![None; groups.len()];
    let mut free = |n: usize| !*clocked[n].get_or_insert_with(|| pools::is_clocked(&groups[n], asks));
    found.retain(|&(a, b)| free(a) && free(b));
    let mut sizes: Vec<Option<usize>> = vec![None; groups.len()];
    let mut into: Vec<usize> = (0..groups.len()).collect();
    for parts in components(&found, groups.len()).iter().take(BESIDE) {
        // Where its own requests have no size, one message each is taken: any size that both have together is larger.
        let mut alone = |n: usize| *sizes[n].get_or_insert_with(|| size(&groups[n], asks).unwrap_or(1));
        let most = parts.iter().map(|&n| alone(n)).max();
        let is_larger = |parts: &Vec<usize>| larger(most, &whole(&groups, parts), asks);
        let of_pool = || Some(with_few(&groups, parts, asks)).filter(|all| all.len() > parts.len() && is_larger(all));
        if let Some(parts) = Some(parts.clone()).filter(is_larger).or_else(of_pool) {
            parts.iter().for_each(|&n| into[n] = parts[0]);
            continue;
        }
        // One of them may be of no request.
        for &(a, b) in &found {
            let (a, b) = (into[a].min(into[b]), into[a].max(into[b]));
            let pair: Vec<usize> = parts.iter().copied().filter(|&n| into[n] == a || into[n] == b).collect();
            if a < b && !pair.is_empty() && larger(pair.iter().map(|&n| alone(n)).max(), &whole(&groups, &pair), asks) {
                pair.iter().for_each(|&n| into[n] = a);
            }
        }
    }
    let members = |n: usize| (0..groups.len()).filter(|&m| into[m] == n).collect::<Vec<usize>>();
    (0..groups.len()).filter(|&n| into[n] == n).map(|n| whole(&groups, &members(n))).collect()
}

/// Whether a group makes requests of one size, which are larger.
fn larger(than: Option<usize>, group: &Group, asks: &[Ask]) -> bool {
    size(group, asks) > than
}

/// The size of nearly all requests of a group; none where they are not steady.
fn size(group: &Group, asks: &[Ask]) -> Option<usize> {
    let cut = requests::cut(group, asks);
    (requests::steadiness(&cut.requests) >= requests::STEADY).then(|| requests::usual(&cut.requests)).flatten()
}

/// The parts, and the groups to the same servers whose messages are too few to show a step: which connection of a pool a request takes is an accident.
fn with_few(groups: &[Group], parts: &[usize], asks: &[Ask]) -> Vec<usize> {
    let servers = whole(groups, parts).servers(asks);
    let few = |&n: &usize| {
        let mine = &groups[n];
        mine.asks.len() < FEWEST && mine.servers(asks).iter().all(|server| servers.binary_search(server).is_ok())
    };
    parts.iter().copied().chain((0..groups.len()).filter(few)).collect()
}

fn whole(groups: &[Group], parts: &[usize]) -> Group {
    Group::whole(parts.iter().map(|&n| &groups[n]))
}

/// Groups that are bound by pairs, each in order.
fn components(pairs: &[(usize, usize)], count: usize) -> Vec<Vec<usize>> {
    let mut root: Vec<u32> = (0..count as u32).collect();
    for &(a, b) in pairs {
        let (a, b) = (super::bursts::find(&mut root, a as u32), super::bursts::find(&mut root, b as u32));
        root[a.max(b) as usize] = a.min(b);
    }
    let mut of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for n in 0..count {
        of.entry(super::bursts::find(&mut root, n as u32)).or_default().push(n);
    }
    of.into_values().filter(|parts| parts.len() > 1).collect()
}

/// Pairs of groups that ask servers of their own, each server equally often: each of their requests may be of both, however long the application computes
/// between. Groups to the same servers count together: which connection of a pool a request takes is an accident.
fn as_often(groups: &[Group], asks: &[Ask]) -> Vec<(usize, usize)> {
    let mut of: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
    for n in (0..groups.len()).filter(|&n| groups[n].asks.len() >= FEWEST) {
        of.entry(groups[n].servers(asks)).or_default().push(n);
    }
    let often = |(servers, mine): (Vec<u32>, Vec<usize>)| {
        let all: usize = mine.iter().map(|&n| groups[n].asks.len()).sum();
        (all / servers.len().max(1), mine, servers)
    };
    let mut all: Vec<(usize, Vec<usize>, Vec<u32>)> =
        of.into_iter().map(often).filter(|each| each.0 >= FEWEST).collect();
    all.sort_unstable();
    let mut pairs = Vec::new();
    // In order of their counts: only neighbours can be asked as often.
    for next in all.windows(2) {
        let [(least, a, mine), (most, b, others)] = next else { continue };
        // Two groups to the same servers are users of one pool or of their own, which `pools` tells.
        let apart = !mine.iter().any(|server| others.binary_search(server).is_ok());
        // As often, but for the share that requests of one size may differ by.
        let equal = (most - least) as f64 <= (AS_ONE * *most as f64).max(1.0);
        if apart && equal {
            let rest = a[1..].iter().chain(b);
            pairs.extend(rest.map(|&n| (a[0].min(n), a[0].max(n))));
        }
    }
    pairs
}

/// Pairs of groups of which one leaves together with the other more often than chance gives, those that do so most often first.
fn together(groups: &[Group], asks: &[Ask]) -> Vec<(usize, usize)> {
    let mut group = vec![u32::MAX; asks.len()];
    for (n, mine) in groups.iter().enumerate().filter(|(_, mine)| mine.asks.len() >= FEWEST) {
        mine.asks.iter().for_each(|&ask| group[ask as usize] = n as u32);
    }
    // The other groups that ask within that time of a moment, before and after it.
    let near = |at: u64, me: u32, place: usize| {
        let of = |n: usize| Some(group[n]).filter(|&of| of != me && of != u32::MAX);
        // A loop over thousands of servers has thousands of neighbours; the nearest tell enough.
        let before = (0..place).rev().take(NEIGHBOURS).take_while(|&n| at - asks[n].at <= TOGETHER);
        let after = (place..asks.len()).take(NEIGHBOURS).take_while(|&n| asks[n].at - at <= TOGETHER);
        let mut others: Vec<u32> = before.chain(after).filter_map(of).collect();
        others.sort_unstable();
        others.dedup();
        others
    };
    let (mut seen, mut chance) = (Vec::new(), Vec::new());
    for (me, mine) in (0..).zip(groups).filter(|(_, mine)| mine.asks.len() >= FEWEST) {
        for (k, &n) in mine.asks.iter().enumerate() {
            let at = asks[n as usize].at;
            seen.extend(near(at, me, n as usize).into_iter().map(|other| ((me, other), 1)));
            if let Some(&next) = mine.asks.get(k + 1) {
                // What is near at a moment that has nothing to do with either.
                let moment = by_chance(k, at, asks[next as usize].at);
                let place = asks.partition_point(|ask| ask.at < moment);
                chance.extend(near(moment, me, place).into_iter().map(|other| ((me, other), 1)));
            }
        }
    }
    let chance = counted(chance);
    let mut found: Vec<(u32, (usize, usize))> = Vec::new();
    for (pair, times) in counted(seen) {
        let all = groups[pair.0 as usize].asks.len();
        let met = chance.binary_search_by_key(&pair, |c| c.0).map_or(0, |place| chance[place].1 as usize);
        // As many moments as gaps between its messages: one less than messages.
        let excess = Excess::of(times as usize, all, met, all - 1);
        if excess.share >= IN_STEP && excess.deviations >= BEYOND_CHANCE {
            let (a, b) = (pair.0 as usize, pair.1 as usize);
            found.push((times, (a.min(b), a.max(b))));
        }
    }
    found.sort_unstable_by_key(|&(times, pair)| (std::cmp::Reverse(times), pair));
    let mut known = BTreeSet::new();
    found.into_iter().map(|(_, pair)| pair).filter(|&pair| known.insert(pair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Groups of one server each; of each message its server and when it is asked, in microseconds. All are answered after 2 ms.
    fn groups(mut messages: Vec<(u32, u64)>) -> (Vec<Group>, Vec<Ask>) {
        messages.sort_by_key(|&(_, us)| us);
        let ask = |&(server, us): &(u32, u64)| Ask {
            at: us * 1_000,
            sent: us * 1_000,
            answered: Some(us * 1_000 + 2 * MS),
            server,
            conn: server,
            ..Ask::default()
        };
        let asks: Vec<Ask> = messages.iter().map(ask).collect();
        let servers = messages.iter().map(|&(server, _)| server).max().unwrap_or(0);
        let group = |server| Group {
            connections: vec![server],
            asks: (0..asks.len() as u32).filter(|&n| asks[n as usize].server == server).collect(),
            companies: Vec::new(),
            several: false,
        };
        ((0..=servers).map(group).collect(), asks)
    }

    fn parts(messages: Vec<(u32, u64)>) -> Vec<Vec<u32>> {
        let (groups, asks) = groups(messages);
        joined(groups, &asks).into_iter().map(|group| group.connections).collect()
    }

    /// So many requests after pauses of 6 to 56 ms, each to two of four servers.
    fn drawn(count: u64) -> Vec<(u32, u64)> {
        let pairs = [(0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2)];
        let mut at = 0;
        let one = |n: u64| {
            at += 6_000 + n * n * 7_919 % 50_000;
            let (a, b) = pairs[(n * 5 % 6) as usize];
            [(a, at), (b, at + 20)]
        };
        (0..count).flat_map(one).collect()
    }

    #[test]
    fn servers_that_each_request_draws_are_of_one_request() {
        assert_eq!(parts(drawn(120)), [[0, 1, 2, 3]]);
    }

    #[test]
    fn twenty_messages_of_each_group_show_a_step() {
        // One of the servers is in 19 of 40 requests, and in 20 of 41; the others are in more.
        assert_eq!((parts(drawn(40)), parts(drawn(41))), (vec![vec![0, 1, 3], vec![2]], vec![vec![0, 1, 2, 3]]));
    }

    #[test]
    fn a_connection_with_too_few_messages_to_show_a_step_is_of_the_pool_to_its_server() {
        // Forty requests of two servers, of the second on another connection in the last ten.
        let mut at = 0;
        let one = |n: u64| {
            at += 6_000 + n * n * 7_919 % 50_000;
            [(0, at), (1, at + 20)]
        };
        let (mut groups, asks) = groups((0..40).flat_map(one).collect());
        let rest = groups[1].asks.split_off(30);
        groups.push(Group { connections: vec![2], asks: rest, ..groups[1].clone() });
        let found: Vec<Vec<u32>> = joined(groups, &asks).into_iter().map(|group| group.connections).collect();
        assert_eq!(found, [[0, 1, 2]]);
    }

    /// Two servers, each asked 400 times, of which so many together, and the others at times of their own.
    fn beside(together: u64) -> usize {
        let alone = |n: u64| 3_000 + n * 37 % 14_000;
        let second = |n: u64| n * 20_000 + if n < together { 100 } else { alone(n) };
        let messages = (0..400).flat_map(|n| [(0, n * 20_000), (1, second(n))]).collect();
        let (groups, asks) = groups(messages);
        super::together(&groups, &asks).len()
    }

    #[test]
    fn a_tenth_of_what_chance_leaves_is_in_step() {
        assert_eq!((beside(0), beside(40), beside(80)), (0, 0, 1));
    }

    #[test]
    fn stages_that_the_application_computes_between_for_now_more_and_now_less_are_of_one_request() {
        // Two servers, and 3 to 9 ms after their answers two others; the user pauses for 10 to 40.
        let mut at = 0;
        let mut one = |n: u64| {
            let second = at + 2_000 + 3_000 + n * 7_919 % 6_000;
            let request = [(0, at), (1, at + 20), (2, second), (3, second + 20)];
            at = second + 2_000 + 10_000 + n * n * 37 % 30_000;
            request
        };
        let (mut groups, asks) = groups((0..80).flat_map(&mut one).collect());
        let (last, third) = (groups.pop().unwrap(), groups.pop().unwrap());
        let second = groups.pop().unwrap();
        let stages = vec![groups[0].with(&second), third.with(&last)];
        assert_eq!(joined(stages, &asks).len(), 1);
    }

    #[test]
    fn users_of_their_own_who_meet_are_no_parts_of_one_request() {
        // Each asks two servers of his own; every third time both begin at once. One is slower.
        let user = |first: u32, at: u64| [(first, at), (first + 1, at + 20)];
        let second = |n: u64| n * 22 / 20 * 20_000 + if n.is_multiple_of(3) { 100 } else { 5_000 + n * 7_919 % 9_000 };
        let messages = (0..120).flat_map(|n| [user(0, n * 20_000), user(2, second(n))].concat()).collect();
        let (mut groups, asks) = groups(messages);
        let (last, third) = (groups.pop().unwrap(), groups.pop().unwrap());
        let second = groups.pop().unwrap();
        let users = vec![groups[0].with(&second), third.with(&last)];
        assert_eq!((super::together(&users, &asks).len(), joined(users, &asks).len()), (1, 2));
    }
}
