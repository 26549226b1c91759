//! Chains that draw whom they ask next: each connection follows the answer of another one, but of no certain one.
//!
//! A user who asks one server after another in an order that changes is followed on each connection by any of the others. None of them comes before often
//! enough to tell, and all together do.

use super::LEAST_ROUNDS;
use super::groups::{BEYOND_CHANCE, Event, FOLLOWS, SHORTLY, join, moments};
use super::steady::Excess;
use std::collections::BTreeMap;

/// What connections that are linked to none follow: of each the starts of its own, and how many of these the answer of another one came shortly before.
struct Followed {
    starts: Vec<(u64, u32)>,
    /// By follower.
    times: BTreeMap<u32, usize>,
    /// By follower and by whom it follows.
    pairs: BTreeMap<(u32, u32), usize>,
}

/// Joins each connection that is in no group, and follows the answers of others that are in none more often than chance has it, to the one that it follows
/// most. True if there are such. The events are in order of time; a group goes by the number of its first connection.
pub(super) fn link(events: &[Event], group: &[u32], root: &mut [u32]) -> bool {
    let mut lanes = vec![0_u32; group.len()];
    group.iter().for_each(|&of| lanes[of as usize] += 1);
    // Only what no sign has joined yet: a group of one lane.
    let single = |of: u32| lanes[of as usize] == 1;
    let seen = followed(events, group, &single, None);
    // On a busy host something was answered lately at nearly any moment: that much says nothing.
    let chance = followed(events, group, &single, Some(&moments(&seen.starts)));
    let counted = |starts: &[(u64, u32)]| {
        let mut count = vec![0_usize; group.len()];
        starts.iter().for_each(|&(_, of)| count[of as usize] += 1);
        count
    };
    let (starts, tried) = (counted(&seen.starts), counted(&chance.starts));
    let mut changed = false;
    // Keys that are hashed to shards, as those of memcached and Redis Cluster, are asked one after another, each of
    // another server. Taken pair by pair each of twelve shards is followed by any other one time in twelve.
    for (&me, &times) in &seen.times {
        let by_chance = chance.times.get(&me).copied().unwrap_or(0);
        let excess = Excess::of(times, starts[me as usize], by_chance, tried[me as usize]);
        let mine = seen.pairs.range((me, 0)..=(me, u32::MAX));
        if let Some((&(_, most), _)) = mine.max_by_key(|&(&(_, other), &times)| (times, other))
            && times >= LEAST_ROUNDS
            && excess.share >= FOLLOWS
            && excess.deviations >= BEYOND_CHANCE
        {
            changed |= join(root, me, most);
        }
    }
    changed
}

/// What is followed at the starts of connections that are in no group; with `moments`, at these instead. What something of its own came shortly before
/// follows that.
fn followed(events: &[Event], group: &[u32], single: &dyn Fn(u32) -> bool, moments: Option<&[(u64, u32)]>) -> Followed {
    let mut found = Followed { starts: Vec::new(), times: BTreeMap::new(), pairs: BTreeMap::new() };
    let mut last_own: Vec<Option<u64>> = vec![None; group.len()];
    let mut last: Option<(u64, u32)> = None;
    let mut look = |at: u64, me: u32, last_own: &[Option<u64>], last: Option<(u64, u32)>| {
        // A row of calls on one connection goes on with itself, whoever was answered beside it.
        if last_own[me as usize].is_some_and(|before| at - before <= SHORTLY) {
            return;
        }
        found.starts.push((at, me));
        if let Some((_, other)) = last.filter(|&(before, other)| at - before <= SHORTLY && other != me) {
            *found.times.entry(me).or_default() += 1;
            *found.pairs.entry((me, other)).or_default() += 1;
        }
    };
    let mut next = 0;
    for event in events.iter().filter(|event| single(group[event.conn as usize])) {
        let mine = group[event.conn as usize];
        match moments {
            Some(moments) => {
                while let Some(&(at, me)) = moments.get(next).filter(|&&(at, _)| at < event.at) {
                    look(at, me, &last_own, last);
                    next += 1;
                }
            }
            None if event.asked => look(event.at, mine, &last_own, last),
            None => {}
        }
        last_own[mine as usize] = Some(event.at);
        // Answers alone: of two requests that leave together neither released the other.
        if !event.asked {
            last = Some((event.at, mine));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::numbers::Numbers;
    use crate::release::bursts::asks;
    use crate::release::groups::groups;
    use crate::release::steady::by_chance;
    use crate::release::{Talk, Times};

    const MS: u64 = 1_000_000;

    /// Users with connections of their own to six servers, who ask four of them one after another in an order that changes, each `turn` after the answer
    /// before; then they pause. The groups' connections.
    fn chains(users: usize, turn: u64) -> Vec<Vec<u32>> {
        let mut talks: Vec<Talk> = (0..6 * users).map(|n| Talk { server: n as u32 % 6, ..Talk::default() }).collect();
        let mut numbers = Numbers(7);
        for user in 0..users {
            let mut at = user as u64 * 7 * MS;
            for request in 0..200_usize {
                // Four of six, drawn (Knuth 1997, section 3.4.2, algorithm P).
                let mut drawn = [0, 1, 2, 3, 4, 5];
                for place in 0..4 {
                    drawn.swap(place, place + numbers.below(6 - place as u64) as usize);
                }
                for (step, server) in drawn[..4].iter().enumerate() {
                    let took = MS + by_chance(request * 4 + step, 0, 4 * MS);
                    let times = Times { asked: Some(at), answered: Some(at + took), ..Times::default() };
                    talks[6 * user + *server].times.push(times);
                    at += took + turn;
                }
                at += 5 * MS + by_chance(request * 3 + user, 0, 40 * MS);
            }
        }
        groups(&talks, &asks(&talks), &[]).into_iter().map(|group| group.connections).collect()
    }

    #[test]
    fn a_chain_that_draws_whom_it_asks_next_follows_any_of_the_others() {
        assert_eq!(chains(1, MS / 5), [vec![0, 1, 2, 3, 4, 5]]);
        assert_eq!(chains(2, MS / 5), [vec![0, 1, 2, 3, 4, 5], vec![6, 7, 8, 9, 10, 11]]);
        // Later than an application turns round: each its own.
        assert_eq!(chains(1, MS + 1).len(), 6);
    }
}
