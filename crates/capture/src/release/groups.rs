//! Which connections serve the same user of the application: groups of lanes that release each other.
//!
//! A *lane* is a connection, or all connections to one server that carry hardly anything each, as where every request opens its own. Lanes belong
//! together that are asked together (see [`super::bursts`]), or of which one is asked shortly after something happened on another, more often
//! than something happens there shortly before a moment that has nothing to do with it.

use super::bursts::{Ask, Company, find};
use super::steady::by_chance;
use super::{LEAST_ROUNDS, Talk};

/// A connection of fewer requests is no lane of its own: there is nothing to learn from it.
const LASTING: usize = 3;
/// An aggregator turns from an answer to the next request in less than this. What comes later may be told by [`super::candidates`].
const SHORTLY: u64 = 1_000_000;
/// A lane follows another if so much of what chance leaves of its requests does: a stage or a chain has nearly all, a semaphore its part.
const FOLLOWS: f64 = 0.3;
/// And more often than chance gives by so many standard deviations: of the pairs of a hundred lanes one in ten million.
const BEYOND_CHANCE: f64 = 5.0;

/// Connections of one user or of one shared pool, and all that was asked on them.
#[derive(Debug)]
pub(super) struct Group {
    pub connections: Vec<u32>,
    /// Positions of asks, in order of time.
    pub asks: Vec<u32>,
    /// Companies that its connections are of.
    pub companies: Vec<u32>,
    /// It has several lanes.
    pub several: bool,
}

/// Groups, in the order of their first connections.
pub(super) fn groups(talks: &[Talk], asks: &[Ask], companies: &[Company]) -> Vec<Group> {
    let mut count = vec![0_usize; talks.len()];
    asks.iter().for_each(|ask| count[ask.conn as usize] += 1);
    let lasts = |conn: u32| count[conn as usize] >= LASTING;
    let lane = lanes(talks, lasts);
    let mut root: Vec<u32> = lane.clone();
    link(talks, asks, &mut root);
    let mut number = vec![u32::MAX; talks.len()];
    let mut all: Vec<Group> = Vec::new();
    for conn in (0..talks.len() as u32).filter(|&c| !talks[c as usize].upstream) {
        let mine = find(&mut root, conn) as usize;
        if number[mine] == u32::MAX {
            number[mine] = all.len() as u32;
            all.push(Group { connections: Vec::new(), asks: Vec::new(), companies: Vec::new(), several: false });
        }
        let group = &mut all[number[mine] as usize];
        group.several |= group.connections.first().is_some_and(|&first| lane[first as usize] != lane[conn as usize]);
        group.connections.push(conn);
    }
    for (n, ask) in asks.iter().enumerate().filter(|(_, ask)| !talks[ask.conn as usize].upstream) {
        all[number[find(&mut root, ask.conn) as usize] as usize].asks.push(n as u32);
    }
    for (n, company) in companies.iter().enumerate().filter(|(_, c)| !c.upstream) {
        for &conn in &company.connections {
            let group = &mut all[number[find(&mut root, conn) as usize] as usize];
            if group.companies.last() != Some(&(n as u32)) {
                group.companies.push(n as u32);
            }
        }
    }
    all
}

/// The lane of each connection, as the number of its first connection.
fn lanes(talks: &[Talk], lasts: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut short: Vec<(u32, u32)> = (0..talks.len() as u32)
        .filter(|&c| !lasts(c) && !talks[c as usize].upstream)
        .map(|c| (talks[c as usize].server, c))
        .collect();
    short.sort_unstable();
    let mut lane: Vec<u32> = (0..talks.len() as u32).collect();
    for of_server in short.chunk_by(|a, b| a.0 == b.0) {
        of_server.iter().for_each(|&(_, c)| lane[c as usize] = of_server[0].1);
    }
    lane
}

fn join(root: &mut [u32], a: u32, b: u32) -> bool {
    let (a, b) = (find(root, a), find(root, b));
    root[a.max(b) as usize] = a.min(b);
    a != b
}

/// What happened: when, and on which connection.
#[derive(Clone, Copy)]
struct Event {
    at: u64,
    conn: u32,
    asked: bool,
}

/// Joins groups of which one follows the other, until none does. Each pass at least halves what is joined in it, so there are few.
fn link(talks: &[Talk], asks: &[Ask], root: &mut [u32]) {
    let mut events: Vec<Event> = Vec::with_capacity(2 * asks.len());
    for ask in asks.iter().filter(|ask| !talks[ask.conn as usize].upstream) {
        events.push(Event { at: ask.at, conn: ask.conn, asked: true });
        events.extend(ask.answered.map(|at| Event { at, conn: ask.conn, asked: false }));
    }
    // Answers first, where both happened at once: they may be the cause.
    events.sort_unstable_by_key(|e| (e.at, e.asked, e.conn));
    loop {
        let group: Vec<u32> = (0..talks.len() as u32).map(|c| find(root, c)).collect();
        let (seen, starts) = preceded(&events, &group, None);
        let mut of_group = starts.clone();
        of_group.sort_unstable_by_key(|&(at, group)| (group, at));
        let between = of_group.windows(2).enumerate().filter(|(_, pair)| pair[0].1 == pair[1].1);
        let mut moments: Vec<(u64, u32)> =
            between.map(|(n, pair)| (by_chance(n, pair[0].0, pair[1].0), pair[0].1)).collect();
        moments.sort_unstable();
        let (chance, moments) = preceded(&events, &group, Some(&moments));
        let counted = |all: &[(u64, u32)]| {
            let mut count = vec![0_u32; talks.len()];
            all.iter().for_each(|&(_, group)| count[group as usize] += 1);
            count
        };
        let (starts, moments) = (counted(&starts), counted(&moments));
        let mut changed = false;
        for mine in seen.chunk_by(|a, b| a.0.0 == b.0.0) {
            let Some(&((me, other), times)) = mine.iter().max_by_key(|&&((_, other), times)| (times, other)) else {
                continue;
            };
            let (all, of_chance) = (f64::from(starts[me as usize]), f64::from(moments[me as usize]));
            let place = chance.binary_search_by_key(&(me, other), |c| c.0);
            // A moment without any chance still had one.
            let by_chance = place.map_or(0.0, |place| f64::from(chance[place].1)) + 0.5;
            let expected = by_chance / (of_chance + 1.0);
            let share = f64::from(times) / all;
            let beyond = (share - expected) * all / (all * expected * (1.0 - expected)).max(0.25).sqrt();
            if times as usize >= LEAST_ROUNDS
                && share - expected >= FOLLOWS * (1.0 - expected)
                && beyond >= BEYOND_CHANCE
            {
                changed |= join(root, me, other);
            }
        }
        if !changed {
            return;
        }
    }
}

/// How often something of another group came last, shortly before a request of a group that nothing of its own came shortly before; and these
/// requests. With `moments`, before these instead of requests.
#[expect(clippy::type_complexity, reason = "two lists of pairs")]
fn preceded(
    events: &[Event],
    group: &[u32],
    moments: Option<&[(u64, u32)]>,
) -> (Vec<((u32, u32), u32)>, Vec<(u64, u32)>) {
    let mut last_own: Vec<Option<u64>> = vec![None; group.len()];
    // The last request and the last answer of all.
    let (mut last, mut pairs, mut looked) = ([None::<(u64, u32)>; 2], Vec::new(), Vec::new());
    let mut look = |at: u64, me: u32, last_own: &[Option<u64>], last: &[Option<(u64, u32)>; 2]| {
        let shortly = |before: u64| at - before <= SHORTLY;
        if last_own[me as usize].is_some_and(shortly) {
            return;
        }
        looked.push((at, me));
        let near = |n: usize| last[n].filter(|&(before, _)| shortly(before)).map(|(_, other)| other);
        let (first, second) = (near(0), near(1));
        pairs.extend(first.map(|other| ((me, other), 1)));
        pairs.extend(second.filter(|_| first != second).map(|other| ((me, other), 1)));
    };
    let mut next = 0;
    for event in events {
        let mine = group[event.conn as usize];
        match moments {
            Some(moments) => {
                while let Some(&(at, me)) = moments.get(next).filter(|&&(at, _)| at < event.at) {
                    look(at, me, &last_own, &last);
                    next += 1;
                }
            }
            None if event.asked => look(event.at, mine, &last_own, &last),
            None => {}
        }
        last_own[mine as usize] = Some(event.at);
        last[usize::from(event.asked)] = Some((event.at, mine));
    }
    (super::bursts::counted(pairs), looked)
}
