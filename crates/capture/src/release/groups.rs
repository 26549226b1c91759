//! Which connections serve the same user of the application: groups of lanes that release each other.
//!
//! A *lane* is a connection, or all connections to one server that carry hardly anything each, as where every request opens its own. Lanes belong
//! together that are asked together (see [`super::bursts`]), or of which one is asked shortly after something happened on another, more often
//! than something happens there shortly before a moment that has nothing to do with it.

use super::bursts::{Ask, Company, TOGETHER, find};
use super::drawn;
use super::requests::RARELY;
use super::steady::{Excess, by_chance};
use super::{LEAST_ROUNDS, SEEN, Talk};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A connection of fewer requests is no lane of its own: there is nothing to learn from it.
const LASTING: usize = 3;
/// An aggregator turns from an answer to the next request in less than this. What comes later may be told by [`super::candidates`].
pub(super) const SHORTLY: u64 = 1_000_000;
/// A pool takes another connection where so many of the requests on it find a first one busy.
pub(super) const OVERFLOW: f64 = 0.9;
/// A connection that is asked so many times as often as the one in the middle, or as seldom, may have nothing to do with the group.
const ODD: usize = 3;
/// Counts of requests to servers that are drawn each time differ by chance: by no more than so many standard deviations.
const BY_CHANCE: f64 = 3.0;
/// And it is used so many times less often than those before it.
const FEWER: u32 = 3;
/// Neighbours in time that are looked at for a group's.
pub(super) const NEIGHBOURS: usize = 16;
/// Chance is tried at so many moments of each lane at least: the few between a dozen requests tell little.
const MOMENTS: usize = 200;
/// A lane follows another if so much of what chance leaves of its requests does: a stage or a chain has nearly all, a semaphore its part.
pub(crate) const FOLLOWS: f64 = 0.3;
/// And more often than chance gives by so many standard deviations: of the pairs of a hundred lanes one in ten million.
pub(crate) const BEYOND_CHANCE: f64 = 5.0;

/// Connections of one user or of one shared pool, and all that was asked on them.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub connections: Vec<u32>,
    /// Positions of asks, in order of time.
    pub asks: Vec<u32>,
    /// Companies that its connections are of.
    pub companies: Vec<u32>,
    /// It has several lanes.
    pub several: bool,
}

impl Group {
    /// One lane, a lasting connection or a new one for each request, on which nearly every request but a user's first follows the answer before at once.
    pub fn is_one_chain(&self, asks: &[Ask]) -> bool {
        if self.several || self.asks.len() < LASTING * LEAST_ROUNDS {
            return false;
        }
        2 * self.one_by_one(asks) >= self.asks.len()
    }

    /// Requests that are asked when the one before them in the group was answered, as soon as an aggregator turns to the next.
    fn one_by_one(&self, asks: &[Ask]) -> usize {
        let follows = |pair: &&[u32]| {
            let (before, at) = (asks[pair[0] as usize].answered, asks[pair[1] as usize].at);
            before.is_some_and(|answered| answered <= at + SEEN && at.saturating_sub(answered) <= SHORTLY)
        };
        self.asks.windows(2).filter(follows).count()
    }

    /// Each of its connections asks again as soon as it was answered, as a poll or a transfer does: what leaves together does so by chance.
    /// The first request of a connection follows nothing.
    pub fn goes_on_by_itself(&self, asks: &[Ask]) -> bool {
        let (going_on, all) = (self.going_on(asks), self.asks.len());
        let following = self.asks.iter().filter(|&&ask| asks[ask as usize].own.is_some()).count();
        2 * going_on >= all && going_on as f64 >= OVERFLOW * following as f64
    }

    /// Requests that follow the answer before on their connection as soon as a loop over servers asks the next.
    fn going_on(&self, asks: &[Ask]) -> usize {
        self.asks.iter().filter(|&&ask| asks[ask as usize].goes_on()).count()
    }

    /// Most messages leave while others are unanswered: several connections at once, though they may be to one address.
    fn asks_at_once(&self, asks: &[Ask]) -> bool {
        let (mut until, mut beside) = (0, 0);
        for ask in self.asks.iter().map(|&ask| &asks[ask as usize]) {
            beside += usize::from(ask.at < until);
            // What is never answered holds nothing up.
            until = until.max(ask.answered.unwrap_or(ask.at));
        }
        2 * beside >= self.asks.len()
    }

    /// Who is asked, in order.
    pub fn servers(&self, asks: &[Ask]) -> Vec<u32> {
        let mut all: Vec<u32> = self.asks.iter().map(|&ask| asks[ask as usize].server).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// From its first message to its last answer.
    pub fn span(&self, asks: &[Ask]) -> Range<u64> {
        let each = || self.asks.iter().map(|&ask| &asks[ask as usize]);
        let last = each().map(|ask| ask.answered.unwrap_or(ask.at)).max();
        each().next().map_or(0, |first| first.at)..last.unwrap_or(0)
    }

    /// Groups as one.
    pub fn whole<'a>(parts: impl ExactSizeIterator<Item = &'a Group> + Clone) -> Group {
        let merged = |of: fn(&Group) -> &Vec<u32>| {
            let mut all: Vec<u32> = parts.clone().flat_map(of).copied().collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        Group {
            connections: merged(|group| &group.connections),
            asks: merged(|group| &group.asks),
            companies: merged(|group| &group.companies),
            several: parts.len() > 1 || parts.clone().any(|group| group.several),
        }
    }

    /// Both as one.
    pub fn with(&self, other: &Group) -> Group {
        Group::whole([self, other].into_iter())
    }

    /// Each of its connections as a group of its own, in order.
    pub fn each(&self, asks: &[Ask]) -> Vec<Group> {
        let conn = |n: u32| asks[n as usize].conn;
        let mut sorted = self.asks.clone();
        sorted.sort_unstable_by_key(|&n| (conn(n), n));
        let alone = |mine: &[u32]| Group {
            connections: vec![conn(mine[0])],
            asks: mine.to_vec(),
            companies: Vec::new(),
            several: false,
        };
        sorted.chunk_by(|&a, &b| conn(a) == conn(b)).map(alone).collect()
    }

    /// The same without connections that are asked much more often, or less, than the one that the message in the middle is on, if these have hardly any of the
    /// messages: of checks that open a connection each there may be many. Else without those that are odd beside the connection in the middle. None where
    /// there are no such, or too many.
    pub fn without_odd(&self, asks: &[Ask]) -> Option<Group> {
        let mut count: BTreeMap<u32, usize> = BTreeMap::new();
        self.asks.iter().for_each(|&ask| *count.entry(asks[ask as usize].conn).or_default() += 1);
        let times = |conn: u32| count.get(&conn).copied().unwrap_or(0);
        let mut of_messages: Vec<usize> = self.asks.iter().map(|&ask| times(asks[ask as usize].conn)).collect();
        of_messages.sort_unstable();
        let mut of_connections: Vec<usize> = count.values().copied().collect();
        of_connections.sort_unstable();
        let like = |sorted: &[usize]| {
            // The median: a few odd ones do not move it.
            let middle = *sorted.get(sorted.len() / 2)?;
            let usual = |conn: u32| times(conn) < ODD * middle && ODD * times(conn) > middle;
            let connections: Vec<u32> = self.connections.iter().copied().filter(|&conn| usual(conn)).collect();
            let asks: Vec<u32> = self.asks.iter().copied().filter(|&ask| usual(asks[ask as usize].conn)).collect();
            let group = Group { connections, asks, companies: self.companies.clone(), several: self.several };
            (group.connections.len() < self.connections.len()).then_some(group)
        };
        let hardly_any = |rest: usize| rest as f64 <= RARELY * self.asks.len() as f64;
        let by_messages = like(&of_messages).filter(|group| hardly_any(self.asks.len() - group.asks.len()));
        by_messages
            .or_else(|| like(&of_connections).filter(|group| 2 * group.connections.len() > self.connections.len()))
    }
}

/// Groups, in the order of their first connections.
pub(super) fn groups(talks: &[Talk], asks: &[Ask], companies: &[Company]) -> Vec<Group> {
    let mut count = vec![0_usize; talks.len()];
    asks.iter().for_each(|ask| count[ask.conn as usize] += 1);
    let lasts = |conn: u32| count[conn as usize] >= LASTING;
    // From the surest sign to the weakest: who follows whom, who asks together, who stands in for a busy one, who comes along.
    let lane = lanes(talks, lasts);
    let mut root: Vec<u32> = lane.clone();
    link(talks, asks, &mut root);
    unlinked(talks, companies, &lane, &count, &mut root);
    pooled(talks, asks, &mut root);
    accompanied(talks, asks, &mut root);
    // Roots get numbers in the order of their first connections.
    let mut number = vec![u32::MAX; talks.len()];
    let mut all: Vec<Group> = Vec::new();
    for conn in (0..talks.len() as u32).filter(|&c| !talks[c as usize].upstream) {
        let mine = find(&mut root, conn) as usize;
        if number[mine] == u32::MAX {
            number[mine] = all.len() as u32;
            all.push(Group { connections: Vec::new(), asks: Vec::new(), companies: Vec::new(), several: false });
        }
        let group = &mut all[number[mine] as usize];
        // New connections to one server, one for each request, are one lane.
        group.several |= group.connections.first().is_some_and(|&first| lane[first as usize] != lane[conn as usize]);
        group.connections.push(conn);
    }
    for (n, ask) in asks.iter().enumerate().filter(|(_, ask)| !talks[ask.conn as usize].upstream) {
        all[number[find(&mut root, ask.conn) as usize] as usize].asks.push(n as u32);
    }
    // Unless they are open at once, or it has several calls under way: then they are several users', or one request's.
    for group in &mut all {
        group.several = group.several || group.asks_at_once(asks);
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

/// Joins what is asked together, about as often, though none follows a certain other: each request asks some of them, always others.
fn unlinked(talks: &[Talk], companies: &[Company], lane: &[u32], count: &[usize], root: &mut [u32]) {
    // How many lanes are joined to each root: counted once, since there may be as many companies as requests.
    let mut linked = vec![0_usize; root.len()];
    for conn in (0..root.len() as u32).filter(|&conn| lane[conn as usize] == conn) {
        linked[find(root, conn) as usize] += 1;
    }
    for company in companies.iter().filter(|company| !company.upstream) {
        // A pool has several connections to a server, of which some are rarely needed.
        let mut often: BTreeMap<u32, usize> = BTreeMap::new();
        for &conn in &company.connections {
            *often.entry(talks[conn as usize].server).or_default() += count[conn as usize];
        }
        let (most, least) = (often.values().max().copied().unwrap_or(0), often.values().min().copied().unwrap_or(0));
        // Asked much more often than others, and not by the chance of a draw: it does something beside.
        if most > ODD * least && !by_draw(&often) {
            continue;
        }
        // What was linked already is left as it is, unless that is a pair or two of them by chance, and with none outside.
        let mut inside: BTreeMap<u32, usize> = BTreeMap::new();
        for &conn in company.connections.iter().filter(|&&conn| lane[conn as usize] == conn) {
            *inside.entry(find(root, conn)).or_default() += 1;
        }
        let roots = company.connections.iter().map(|&conn| find(root, lane[conn as usize]));
        let joined: Vec<u32> = roots.filter(|&to| linked[to as usize] > 1).collect();
        let foreign = joined.iter().any(|to| linked[*to as usize] > inside.get(to).copied().unwrap_or(0));
        if !foreign && 2 * joined.len() <= company.connections.len() {
            for &conn in &company.connections {
                let (first, other) = (find(root, company.connections[0]), find(root, conn));
                if join(root, first, other) {
                    linked[first.min(other) as usize] += linked[first.max(other) as usize];
                }
            }
        }
    }
}

/// Counts that differ by no more than they do where each request draws its servers: a chi-square test of equal shares (Pearson 1900), whose statistic
/// has mean `n` and variance `2n`.
fn by_draw(often: &BTreeMap<u32, usize>) -> bool {
    let n = often.len() as f64;
    let mean = often.values().sum::<usize>() as f64 / n;
    // Sum of (observed - expected)^2 / expected.
    let statistic: f64 = often.values().map(|&count| (count as f64 - mean).powi(2) / mean).sum();
    // Eight servers: 8 + 3 x 4 = 20 at most.
    statistic <= n + BY_CHANCE * (2.0 * n).sqrt()
}

/// Joins a connection that is asked only while others of a group to the same server are busy, which is no chance: one pool has them all.
fn pooled(talks: &[Talk], asks: &[Ask], root: &mut [u32]) {
    let mut open: BTreeMap<u32, Vec<(u64, u32)>> = BTreeMap::new();
    let (mut count, mut pairs) = (vec![0_u32; talks.len()], Vec::new());
    // For how long a group had an answer missing from a server.
    let mut busy_for: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for ask in asks.iter().filter(|ask| !talks[ask.conn as usize].upstream) {
        let busy = open.entry(ask.server).or_default();
        // What is unanswered now, on other connections to the same server.
        busy.retain(|&(until, conn)| until > ask.at && conn != ask.conn);
        let me = find(root, ask.conn);
        count[me as usize] += 1;
        let mut others: Vec<u32> = busy.iter().map(|&(_, conn)| find(root, conn)).collect();
        others.sort_unstable();
        others.dedup();
        pairs.extend(others.into_iter().map(|other| ((me, other), ask.server)));
        // A connection without an answer is busy for no time that is known.
        let until = ask.answered.unwrap_or(ask.at);
        busy.push((until, ask.conn));
        let time = busy_for.entry((ask.server, me)).or_default();
        *time = time.saturating_add(until.saturating_sub(ask.at));
    }
    let whole = asks.last().map_or(0, |last| last.at.saturating_sub(asks[0].at)).max(1) as f64;
    let share = |server: u32, of: u32| busy_for.get(&(server, of)).map_or(0.0, |&time| (time as f64 / whole).min(1.0));
    // Of each pair, how often the one was asked while the other was busy.
    pairs.sort_unstable();
    for same in pairs.chunk_by(|a, b| a.0 == b.0) {
        let ((me, other), times) = (same[0].0, same.len() as f64);
        let all = f64::from(count[me as usize]);
        // A binomial of `all` requests, each with the share of the time for which the other is busy.
        let chance = same.iter().map(|&(_, server)| share(server, other)).sum::<f64>() / times;
        let beyond = times - all * chance >= BEYOND_CHANCE * (all * chance * (1.0 - chance)).sqrt();
        if same.len() >= LEAST_ROUNDS && times >= OVERFLOW * all && beyond {
            join(root, me, other);
        }
    }
}

/// Joins what leaves with a group's messages nearly always and asks one of the same servers: connections of a pool that are used now and then.
fn accompanied(talks: &[Talk], asks: &[Ask], root: &mut [u32]) {
    let mine: Vec<u32> = (0..talks.len() as u32).map(|conn| find(root, conn)).collect();
    let group = |ask: &Ask| mine[ask.conn as usize];
    let mut count = vec![0_u32; talks.len()];
    let mut servers: Vec<(u32, u32)> = Vec::new();
    for ask in asks {
        count[group(ask) as usize] += 1;
        servers.push((group(ask), ask.server));
    }
    servers.sort_unstable();
    servers.dedup();
    let mut pairs = Vec::new();
    // Only what is used now and then comes along; two that are used as often are told by the signs before.
    let most = count.iter().copied().max().unwrap_or(0);
    let few = |ask: &Ask| !talks[ask.conn as usize].upstream && FEWER * count[group(ask) as usize] <= most;
    for (n, ask) in asks.iter().enumerate().filter(|(_, ask)| few(ask)) {
        let with = |other: &&Ask| group(other) != group(ask) && !talks[other.conn as usize].upstream;
        let near = |other: &&Ask| other.at.abs_diff(ask.at) <= TOGETHER;
        let before = asks[..n].iter().rev().take(NEIGHBOURS).take_while(near);
        let behind = asks[n + 1..].iter().take(NEIGHBOURS).take_while(near);
        // Several connections of a pool may be used now and then, two of them at once: each leaves with the same group.
        let mut others: Vec<u32> = before.chain(behind).filter(with).map(group).collect();
        others.sort_unstable();
        others.dedup();
        pairs.extend(others.into_iter().map(|other| ((group(ask), other), 1)));
    }
    let whole = asks.last().map_or(0, |last| last.at - asks[0].at);
    for ((me, other), times) in super::bursts::counted(pairs) {
        let (my, others) = (count[me as usize], count[other as usize]);
        let mut of_me = servers[servers.partition_point(|&(of, _)| of < me)..].iter().take_while(|(of, _)| *of == me);
        // A pool's connections lead to the same servers.
        let shared = of_me.any(|&(_, server)| servers.binary_search(&(other, server)).is_ok());
        // What is asked all the time is near at any moment: before and behind each of its messages, for more than half of the time.
        let rare = 2 * u64::from(others) * 2 * TOGETHER <= whole;
        if shared && rare && FEWER * my <= others && f64::from(times) >= OVERFLOW * f64::from(my) {
            join(root, me, other);
        }
    }
}

/// The lane of each connection, as the number of its first connection.
fn lanes(talks: &[Talk], lasts: impl Fn(u32) -> bool + Copy) -> Vec<u32> {
    let mut short: Vec<(u32, u32)> = (0..talks.len() as u32)
        .filter(|&c| !lasts(c) && !talks[c as usize].upstream)
        .map(|c| (talks[c as usize].server, c))
        .collect();
    short.sort_unstable();
    let mut lane: Vec<u32> = (0..talks.len() as u32).collect();
    // Where every request opens its own connection, none of them has a second request that would show whom it follows.
    for of_server in short.chunk_by(|a, b| a.0 == b.0) {
        of_server.iter().for_each(|&(_, c)| lane[c as usize] = of_server[0].1);
    }
    // nginx closes a connection after keepalive_requests (1000), Apache after MaxKeepAliveRequests (100): the next one
    // to that server goes on in its place.
    for row in one_after_another(talks, lasts).iter().filter(|row| row.len() >= LEAST_ROUNDS) {
        let first = row.iter().copied().min().unwrap_or(0);
        row.iter().for_each(|&c| lane[c as usize] = first);
    }
    lane
}

/// Rows of connections to one server, each opened after the last answer on the one before: a server closes a connection after so many requests, and a pool
/// opens the next. Of several that were idle by then, it stands in for the last to become so.
fn one_after_another(talks: &[Talk], lasts: impl Fn(u32) -> bool) -> Vec<Vec<u32>> {
    let mine = (0..talks.len() as u32).filter(|&c| lasts(c) && !talks[c as usize].upstream);
    let mut order: Vec<(u32, Option<u64>, u32)> =
        mine.map(|c| (talks[c as usize].server, talks[c as usize].opened, c)).collect();
    order.sort_unstable();
    let mut rows: Vec<Vec<u32>> = Vec::new();
    for of_server in order.chunk_by(|a, b| a.0 == b.0) {
        // When each row's last connection had its last answer.
        let mut idle: BTreeSet<(u64, usize)> = BTreeSet::new();
        for &(_, opened, conn) in of_server {
            let before = opened.and_then(|opened| idle.range(..(opened, 0)).next_back().copied());
            let row = match before {
                Some((_, row)) => row,
                None => {
                    rows.push(Vec::new());
                    rows.len() - 1
                }
            };
            before.map(|before| idle.remove(&before));
            rows[row].push(conn);
            let times = talks[conn as usize].times.iter();
            let last = times.filter_map(|t| t.answered.max(t.asked)).max();
            idle.insert((last.unwrap_or(u64::MAX), row));
        }
    }
    rows
}

pub(super) fn join(root: &mut [u32], a: u32, b: u32) -> bool {
    let (a, b) = (find(root, a), find(root, b));
    root[a.max(b) as usize] = a.min(b);
    a != b
}

/// What happened: when, and on which connection.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub at: u64,
    pub conn: u32,
    pub asked: bool,
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
        let (chance, moments) = preceded(&events, &group, Some(&moments(&starts)));
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
            let place = chance.binary_search_by_key(&(me, other), |c| c.0);
            let by_chance = place.map_or(0, |place| chance[place].1 as usize);
            let (all, of_chance) = (starts[me as usize] as usize, moments[me as usize] as usize);
            let excess = Excess::of(times as usize, all, by_chance, of_chance);
            if times as usize >= LEAST_ROUNDS && excess.share >= FOLLOWS && excess.deviations >= BEYOND_CHANCE {
                changed |= join(root, me, other);
            }
        }
        if !changed && !drawn::link(&events, &group, root) {
            return;
        }
    }
}

/// Moments between the starts of each group that have nothing to do with them, in order.
pub(super) fn moments(starts: &[(u64, u32)]) -> Vec<(u64, u32)> {
    let mut of_group = starts.to_vec();
    of_group.sort_unstable_by_key(|&(at, group)| (group, at));
    let mut moments: Vec<(u64, u32)> = Vec::with_capacity(of_group.len());
    for mine in of_group.chunk_by(|a, b| a.1 == b.1) {
        // A dozen requests are tried at 17 moments of each gap between them.
        let each = MOMENTS.div_ceil(mine.len());
        let between = mine.windows(2).enumerate();
        let several = between.flat_map(|(n, pair)| (0..each).map(move |k| (n * each + k, pair)));
        moments.extend(several.map(|(n, pair)| (by_chance(n, pair[0].0, pair[1].0), pair[0].1)));
    }
    moments.sort_unstable();
    moments
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Times;

    /// Of connections that are asked so many times, those that are left.
    fn usual(counts: &[usize]) -> Option<Vec<u32>> {
        let mut asks = Vec::new();
        for (conn, &count) in counts.iter().enumerate() {
            let conn = conn as u32;
            asks.extend((0..count as u32).map(|msg| Ask {
                at: u64::from(msg),
                conn,
                msg,
                server: conn,
                ..Ask::default()
            }));
        }
        let connections = (0..counts.len() as u32).collect();
        let group = Group { connections, asks: (0..asks.len() as u32).collect(), companies: Vec::new(), several: true };
        group.without_odd(&asks).map(|group| group.connections)
    }

    /// A loop over two servers, of which the first takes so many of a hundred milliseconds, and a long poll to it: a hundred messages, sent at times
    /// that have to do with nothing. The groups' connections.
    fn beside_a_long_poll(took: u64) -> Vec<Vec<u32>> {
        const MS: u64 = 1_000_000;
        let mut talks = [0, 1, 0].map(|server| Talk { server, ..Talk::default() });
        for round in 0..400 {
            let at = round * 100 * MS;
            let times = |asked, took| Times { asked: Some(asked), answered: Some(asked + took), ..Times::default() };
            talks[0].times.push(times(at, took * MS));
            talks[1].times.push(times(at + (took + 1) * MS, MS));
            if round % 4 == 0 {
                talks[2].times.push(times(at + by_chance(round as usize, 0, 100 * MS), 380 * MS));
            }
        }
        let asks = crate::release::bursts::asks(&talks);
        groups(&talks, &asks, &[]).into_iter().map(|group| group.connections).collect()
    }

    #[test]
    fn who_asks_a_server_that_is_nearly_always_busy_is_of_no_pool_with_it() {
        assert_eq!(beside_a_long_poll(96), [vec![0, 1], vec![2]]);
    }

    /// Connections to one server, of five messages each, and two of them beside each other; each opened so long after the last answer on the one before.
    fn closed_after_five(connections: u64, opened: i64) -> Vec<usize> {
        const MS: u64 = 1_000_000;
        let mut talks = Vec::new();
        for n in 0..connections {
            for _ in 0..2 {
                let begin = n * 100 * MS;
                let times = (0..5).map(|k| begin + k * 10 * MS);
                let times = times.map(|at| Times { asked: Some(at), answered: Some(at + 5 * MS), ..Times::default() });
                // The one before had its last answer 55 ms before.
                let opened = (n > 0).then(|| (begin - 55 * MS).saturating_add_signed(opened));
                talks.push(Talk { opened, times: times.collect(), ..Talk::default() });
            }
        }
        let lane = lanes(&talks, |_| true);
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        lane.iter().for_each(|&lane| *sizes.entry(lane).or_default() += 1);
        sizes.into_values().collect()
    }

    #[test]
    fn connections_that_replace_each_other_are_one_lane() {
        assert_eq!(closed_after_five(6, 50_000_000), [6, 6], "one for each user");
        assert_eq!(closed_after_five(6, -1), [1; 12], "two take turns: each row has three");
        assert_eq!(closed_after_five(3, 50_000_000), [1; 6], "two restarts");
    }

    #[test]
    fn a_connection_that_is_asked_three_times_as_often_as_the_middle_one_is_odd() {
        assert_eq!((usual(&[10, 10, 10, 29]), usual(&[10, 10, 10, 30])), (None, Some(vec![0, 1, 2])));
        assert_eq!((usual(&[10, 10, 10, 4]), usual(&[10, 10, 10, 3])), (None, Some(vec![0, 1, 2])));
    }

    #[test]
    fn of_checks_that_open_a_connection_each_there_may_be_more_than_the_service_has() {
        let beside = |checks: usize| usual(&[vec![150; 8], vec![1; checks]].concat()).map(|left| left.len());
        // A tenth of all messages, and more: then they are the most connections.
        assert_eq!((beside(133), beside(134)), (Some(8), Some(134)));
    }

    /// Twelve servers, of which one is asked so much more often than twenty times and one as much less: a statistic of `d * d / 10`, where 26.7 are by chance.
    #[test]
    fn servers_that_are_drawn_are_asked_about_as_often() {
        let often = |d: usize| -> BTreeMap<u32, usize> {
            (0..12).map(|n| (n, [20 + d, 20 - d].get(n as usize).copied().unwrap_or(20))).collect()
        };
        assert!(by_draw(&often(16)) && !by_draw(&often(17)));
    }
}

#[cfg(test)]
mod edges;
