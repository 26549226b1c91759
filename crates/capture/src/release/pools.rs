//! Groups that are one pool: connections to the same servers that different requests of the same users took.
//!
//! [`super::groups`] joins what follows each other. Which connection of a pool a request takes is an accident, so that a few of them may follow none, or
//! each other alone. They are of one pool if their messages, taken together, make whole requests that they do not make alone.

use super::CLEAR;
use super::bursts::Ask;
use super::groups::Group;
use super::requests;

/// Joins groups to the same servers.
pub(super) fn pools(groups: Vec<Group>, asks: &[Ask]) -> Vec<Group> {
    let servers: Vec<Vec<u32>> = groups.iter().map(|group| group.servers(asks)).collect();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&n| (std::cmp::Reverse(groups[n].asks.len()), n));
    let mut into: Vec<usize> = (0..groups.len()).collect();
    let mut joined: Vec<Option<Group>> = vec![None; groups.len()];
    let mut known: Vec<Option<f64>> = vec![None; groups.len()];
    let mut alone = |n: usize| *known[n].get_or_insert_with(|| messages_of_whole(&groups[n], asks));
    for (place, &base) in order.iter().enumerate() {
        if into[base] != base || !groups[base].several {
            continue;
        }
        let shared = |n: usize| servers[n].iter().any(|server| servers[base].binary_search(server).is_ok());
        let free = |&n: &usize| into[n] == n && joined[n].is_none() && shared(n);
        let others = order[place + 1..].iter().copied().filter(free).take(requests::BESIDE);
        // Polls and transfers are not of a pool.
        let mut loose: Vec<usize> = others.filter(|&n| !groups[n].goes_on_by_itself(asks)).collect();
        if loose.is_empty() {
            continue;
        }
        let mut mine = groups[base].clone();
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
                let all = mine.with(&groups[n]);
                let of_all = messages_of_whole(&all, asks);
                if of_all < whole + own + CLEAR * groups[n].asks.len() as f64 {
                    return true;
                }
                (mine, whole, into[n]) = (all, of_all, base);
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

/// How many messages are in requests of the most frequent size. One connection alone has none.
fn messages_of_whole(group: &Group, asks: &[Ask]) -> f64 {
    if !group.several {
        return 0.0;
    }
    requests::steadiness(&requests::cut(&group.asks, asks).requests) * group.asks.len() as f64
}
