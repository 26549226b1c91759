//! What one request of the application's user caused: a group's messages cut where the user paused.
//!
//! A user waits for all that he caused before he goes on, so a request goes on as long as one of its answers is missing. When none is, what comes next
//! is either the next stage, which the aggregator asks for as soon as it can, or the user's next request after his pause. The times from one to the other
//! are of two kinds, and the valley between them parts them. Where there is no valley, a stage is told by the servers that it asks: those that were
//! not asked yet, shortly after.
//!
//! Several users may share connections. Then a request starts while another is going on, and asks servers that are busy with that; what was found is
//! judged by how steady the number of messages of a request is.

use super::SEEN;
use super::bursts::{Ask, TOGETHER};
use super::counted;
use super::even;
use super::groups::Group;
use super::joined;
use super::like::{self, Shape};
use super::periods::Periods;
use super::{CLEAR, LEAST_ROUNDS};
use std::collections::BTreeSet;

/// Pauses of two kinds: nearly none lies between the longest of the one and the shortest of the other, which is so many times as long.
pub(crate) const VALLEY: f64 = 3.0;
/// Nearly none: this share. A few answers come late or never, and a user is quick now and then.
pub(crate) const IN_THE_VALLEY: f64 = 0.04;
/// Each kind has at least this share of all pauses: the shortest tenth of exponential pauses has no valley above it.
const KIND: f64 = 0.1;
/// A stage that follows later than this, where no valley tells, is the next request.
const AT_ONCE: u64 = TOGETHER;
/// So much more of the messages must be in requests of the most frequent size where a reading needs more faith.
pub(super) const STEADIER: f64 = 0.05;
/// Requests of which more messages than this are of one size need no other reading.
pub(super) const STEADY: f64 = 0.9;

/// The usual messages of a request are so many times as many as a timer sends at once.
const FEW: usize = 3;
/// Requests that are looked at for one that is going on.
pub(super) const BESIDE: usize = 16;

/// What at most this share of the requests does is none of the application's design: to begin with a server, or before half of the answers to the one before.
pub(super) const RARELY: f64 = 0.1;

/// With at most this share of odd requests none is told apart: users who share connections meet more often.
pub(super) const AS_ONE: f64 = 0.01;

/// Messages of one request: positions of asks, in order of time.
pub(super) type Request = Vec<u32>;

/// The requests of a group and how sure they are.
#[derive(Debug, Default)]
pub(super) struct Cut {
    pub requests: Vec<Request>,
    /// Requests run beside each other.
    pub concurrent: bool,
    /// What tells that pauses are of two kinds, if they are.
    pub told: Option<By>,
    /// Messages that left by a timer while their request went on, in order: the same call to another server.
    pub late: Vec<u32>,
    /// When the user of each request went on, if that is known.
    pub until: Vec<u64>,
}

/// Cuts a group into requests.
pub(super) fn cut(group: &Group, asks: &[Ask]) -> Cut {
    let mine = group.asks.as_slice();
    let periods = Periods::of(mine, asks);
    let (requests, told) = by_pauses(&periods, asks);
    let steady = steadiness(&requests);
    let mut cut = Cut { requests, told, ..Cut::default() };
    // On one lane nothing runs beside anything: a call that came late in its request is no second user's.
    if !group.several {
        return cut;
    }
    if steady < STEADY {
        cut = side_by_side(steady, mine, asks).unwrap_or(cut);
    }
    // Where nothing shows without that, none has requests, and a size alone would make them. Where hardly any is odd there is one user: a cache that is
    // filled at the start, or an answer that seems to come late, is no second one's.
    let left = odd(&cut.requests) as f64;
    if left > AS_ONE * cut.requests.len() as f64 && steadiness(&cut.requests) >= CLEAR {
        // The stages of requests are steady, too, but the order of the pauses says that they are parts.
        let most = if told == Some(By::Order) { cut.requests.len() * 3 / 2 } else { usize::MAX };
        cut = alike(cut, most, &periods, mine, asks);
    }
    even::cut(&cut, mine, asks).unwrap_or(cut)
}

/// What tells that pauses are of two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Their lengths.
    Valley,
    /// Their order.
    Order,
}

/// Cuts where nothing is under way, and joins what makes requests of a steadier size; also what tells it, if pauses are of two kinds.
fn by_pauses(periods: &Periods, asks: &[Ask]) -> (Vec<Request>, Option<By>) {
    let apart = periods.cut(|_| false);
    let mut best = (steadiness(&apart), apart);
    let mut told = None;
    if let Some(valley) = valley(&periods.pauses()) {
        // Stages that turn in 0.1 ms and users who pause for 5 ms: a request goes on over all pauses up to the valley.
        let joined = periods.cut(|next| next.pause <= valley);
        if periods.are_stages(&joined, valley) {
            best = (steadiness(&joined), joined);
            told = Some(By::Valley);
        }
    }
    // A stage asks servers that were not asked yet.
    let more = joined(&best.1, asks, |next, servers| next.iter().all(|&n| !servers.contains(&asks[n as usize].server)));
    let steady = steadiness(&more);
    if more.len() < best.1.len() && steady >= best.0 {
        best = (steady, more);
    }
    // Or a request comes in several messages on each connection, and for a moment all are answered.
    // A cursor that is read page by page, a transaction of several statements: the server is the same each time.
    let more = joined(&best.1, asks, |next, _| asks[next[0] as usize].goes_on());
    let steady = steadiness(&more);
    if more.len() < best.1.len() && 2 * more.len() > best.1.len() && steady > best.0 {
        best = (steady, more);
    }
    // Or the order of the pauses tells, where each request has as many stages: two of what was found so far, or more.
    if told.is_none()
        && let Some(joined) = counted::requests(periods)
        && steadiness(&joined) >= STEADY
        && 3 * joined.len() <= 2 * best.1.len()
    {
        best = (steadiness(&joined), joined);
        told = Some(By::Order);
    }
    // A stage may be late, and a user quick.
    let mended = periods.mended(&best.1, asks);
    if steadiness(&mended) > best.0 {
        best.1 = mended;
    }
    (best.1, told)
}

/// Several users at once, or one who does not wait for all: requests that run beside each other, if they are steadier than `told`.
fn side_by_side(told: f64, mine: &[u32], asks: &[Ask]) -> Option<Cut> {
    let (mut cut, mut best) = (None, told + STEADIER);
    for again in [false, true] {
        // First as a fan-out, which asks each server once; then as Elasticsearch's query then fetch, whose second stage
        // asks some of the shards again.
        let (beside, late) = hedged(beside(mine, asks, again), asks);
        let steady = steadiness(&beside);
        if steady > best && !like::begin_together(&beside, asks) {
            // Who goes on without the last answers is one user.
            let concurrent = !like::some_will_do(&beside, asks);
            cut = Some(Cut { requests: beside, concurrent, late, ..Cut::default() });
            best = steady + STEADIER;
        }
    }
    cut
}

/// What the requests that run alone are like tells those apart that do not; at most so many.
fn alike(mut cut: Cut, most: usize, periods: &Periods, mine: &[u32], asks: &[Ask]) -> Cut {
    // Fewer odd requests win; of as few, those that follow each other most as usual.
    let mut left = odd(&cut.requests);
    let mut misfit = 0.0;
    let alone = joined(&periods.cut(|_| false), asks, |_, _| true);
    let like = |requests: &Vec<Request>| Some(Shape::of(requests, asks)?.requests(mine, asks));
    let paired = joined::paired(&cut.requests, asks);
    for seed in [cut.requests.clone(), alone].into_iter().chain(paired) {
        // Those that were told apart tell it better. Of readings that leave as few odd ones, that counts whose messages follow each other most steadily.
        let once = like(&seed);
        let twice = once.as_ref().and_then(like);
        for requests in [once, twice].into_iter().flatten() {
            let (odd, steady) = (odd(&requests), steadiness(&requests));
            let far = Shape::of(&requests, asks).map_or(f64::INFINITY, |shape| shape.misfit(&requests, asks));
            let better = odd < left || odd == left && far < misfit;
            let better = better && steady >= STEADY.max(steadiness(&cut.requests)) && requests.len() <= most;
            if better && !like::are_parts(&requests, asks) && !like::some_will_do(&requests, asks) {
                (left, misfit) = (odd, far);
                cut = Cut { requests, concurrent: true, ..Cut::default() };
            }
        }
    }
    cut
}

/// Messages that left alone, while answers to a whole request were missing, are no requests but of that one: a timer of it sent them. Also returned are
/// these messages.
fn hedged(requests: Vec<Request>, asks: &[Ask]) -> (Vec<Request>, Vec<u32>) {
    let Some(usual) = usual(&requests) else { return (requests, Vec::new()) };
    let (mut all, mut late): (Vec<Request>, Vec<u32>) = (Vec::with_capacity(requests.len()), Vec::new());
    let missing =
        |request: &Request, at: u64| request.iter().any(|&n| asks[n as usize].answered.is_none_or(|a| a > at + SEEN));
    for request in requests {
        let at = asks[request[0] as usize].at;
        // Hedged requests (Dean and Barroso, "The Tail at Scale", 2013) go to another server when an answer is late. As
        // requests of their own they would be many, of one message each and fast.
        let whole = |before: &&mut Request| before.len() >= usual && missing(before, at);
        match all.iter_mut().rev().take(BESIDE).find(whole) {
            Some(before) if FEW * request.len() <= usual => {
                late.extend(&request);
                before.extend(request);
                // It may have asked more since.
                before.sort_unstable();
            }
            _ => all.push(request),
        }
    }
    late.sort_unstable();
    (all, late)
}

/// The share of messages that are in requests of the most frequent size. The first and the last may be cut off by the capture, or the application
/// warms up in the first; they count only if one has more messages than all between them: it swallowed others.
pub(super) fn steadiness(requests: &[Request]) -> f64 {
    let (ends, inner) = match requests {
        [first, inner @ .., last] if !inner.is_empty() => ([first.len(), last.len()], inner),
        _ => ([0; 2], requests),
    };
    let mut sizes: Vec<usize> = inner.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    // One that swallowed most of the others is not steady, and one message alone shows nothing.
    // Plus two: the first and the last were left out.
    let often = sizes.chunk_by(|a, b| a == b).filter(|same| same[0] > 1 && same.len() + 2 >= LEAST_ROUNDS);
    let of_one_size = often.map(|same| same.len() * same[0]).max().unwrap_or(0);
    let all: usize = sizes.iter().sum();
    let swallowed: usize = ends.into_iter().filter(|&end| end > all).sum();
    of_one_size as f64 / (all + swallowed).max(1) as f64
}

/// How many requests are not of the size that holds most messages.
pub(super) fn odd(requests: &[Request]) -> usize {
    let mut sizes: Vec<usize> = requests.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    // Of most messages, not of most requests: polls of one message each may be the more.
    let usual = sizes.chunk_by(|a, b| a == b).max_by_key(|same| same.len() * same[0]);
    sizes.len() - usual.map_or(0, <[usize]>::len)
}

/// The size of most requests.
pub(super) fn usual(requests: &[Request]) -> Option<usize> {
    let mut sizes: Vec<usize> = requests.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    let same = sizes.chunk_by(|a, b| a == b).max_by_key(|same| same.len())?;
    (2 * same.len() > sizes.len()).then_some(same[0])
}

/// Joins requests that follow each other at once where `joins` says so of the next one and the servers that were asked so far.
fn joined(requests: &[Request], asks: &[Ask], joins: impl Fn(&[u32], &[u32]) -> bool) -> Vec<Request> {
    let mut all: Vec<Request> = Vec::with_capacity(requests.len());
    let mut servers: Vec<u32> = Vec::new();
    let mut answered = 0;
    for request in requests {
        let start = asks[request[0] as usize].at;
        match all.last_mut() {
            Some(before) if start.saturating_sub(answered) <= AT_ONCE && joins(request, &servers) => {
                before.extend(request);
            }
            _ => {
                all.push(request.clone());
                servers.clear();
            }
        }
        for &n in request {
            let ask = &asks[n as usize];
            answered = answered.max(ask.answered.unwrap_or(ask.at));
            servers.push(ask.server);
        }
    }
    all
}

/// The longest of the short pauses, if pauses are of two kinds.
pub(super) fn valley(pauses: &[u64]) -> Option<u64> {
    // At least a microsecond, or the error of the clock would make a valley between 1 and 10 ns.
    let mut sorted: Vec<u64> = pauses.iter().map(|&pause| pause.max(1_000)).collect();
    sorted.sort_unstable();
    let n = sorted.len();
    let least = ((n as f64 * KIND).ceil() as usize).max(LEAST_ROUNDS - 1);
    let inside = (n as f64 * IN_THE_VALLEY) as usize;
    let mut best: Option<(f64, usize)> = None;
    // Of 100 pauses each kind has 10 or more, and 4 may lie between: from the 10th to the 86th shortest.
    for from in least.saturating_sub(1)..(n + 1).saturating_sub(least + inside + 1) {
        let width = sorted[from + inside + 1] as f64 / sorted[from] as f64;
        if width >= VALLEY && best.is_none_or(|(widest, _)| width > widest) {
            best = Some((width, from));
        }
    }
    // What lies in the valley belongs to the nearer side: the widest step in it.
    let (_, from) = best?;
    let step = |i: &usize| sorted[i + 1] as f64 / sorted[*i] as f64;
    let place = (from..=from + inside).max_by(|a, b| step(a).total_cmp(&step(b)))?;
    Some(sorted[place])
}

/// A request that is going on, where several do beside each other.
#[derive(Default)]
struct Open {
    /// Position among the requests.
    number: usize,
    /// Servers that it asked.
    servers: Vec<u32>,
    last_ask: u64,
    /// The last of its answers that had come when it was looked at.
    came: Option<u64>,
    /// When the others come.
    coming: Vec<u64>,
}

impl Open {
    /// What has come by a time, which grows from call to call: a request may go on through a whole capture.
    fn look(&mut self, by: u64) {
        let came = &mut self.came;
        self.coming.retain(|&at| {
            if at <= by {
                *came = (*came).max(Some(at));
            }
            at > by
        });
    }

    /// When the last of what it asked and was answered happens.
    fn last(&self) -> u64 {
        self.coming.iter().copied().chain(self.came).max().unwrap_or(0).max(self.last_ask)
    }
}

/// Requests beside each other on shared connections: what leaves together asks each server once, and what follows an answer at once is of its request if
/// that has not asked this server yet; with `again`, also if all that it asked was answered: then the next stage asks some of them a second time.
fn beside(mine: &[u32], asks: &[Ask], again: bool) -> Vec<Request> {
    let mut all: Vec<Request> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for &n in mine {
        let ask = &asks[n as usize];
        open.retain_mut(|request| {
            request.look(ask.at + SEEN);
            // Answers that are missing lie ahead: it stays open until they have come, and for a loop's time after that.
            request.last() + TOGETHER >= ask.at
        });
        // How long ago something happened that this may follow.
        let since = |request: &Open| {
            let burst = Some(ask.at - request.last_ask).filter(|&since| since <= TOGETHER);
            let answer = request.came.map(|at| ask.at.saturating_sub(at)).filter(|&since| since <= AT_ONCE);
            match (burst, answer) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            }
        };
        let all_came = |request: &Open| again && request.coming.is_empty();
        let free = |request: &Open| !request.servers.contains(&ask.server) || all_came(request);
        let candidates = open.iter().enumerate().filter(|(_, request)| free(request));
        let follows = candidates.filter_map(|(place, request)| since(request).map(|since| (since, place))).min();
        let place = follows.map_or_else(
            || {
                all.push(Vec::new());
                open.push(Open { number: all.len() - 1, ..Open::default() });
                open.len() - 1
            },
            |(_, place)| place,
        );
        let request = &mut open[place];
        // The next stage begins: it asks each of them once more.
        if request.servers.contains(&ask.server) {
            request.servers.clear();
        }
        request.servers.push(ask.server);
        request.last_ask = ask.at;
        request.coming.extend(ask.answered);
        all[request.number].push(n);
    }
    all
}

/// A request within its request: the answers that release it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Position among the asks.
    pub ask: u32,
    /// It waits for so many answers
    pub need: u32,
    /// of these asks; for none: it follows the only one of these, the first of the request, after a time.
    pub of: Vec<u32>,
    /// When they had come.
    pub at: u64,
}

/// How messages inside the requests of a group follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// So many answers may be missing at once, and the next message waits for one of them. One: a chain.
    Semaphore(usize),
    /// Each stage waits for all answers before it.
    Stages,
    /// The same, but what leaves late, while answers are missing, waits for those that have come.
    Early,
}

/// Where at least this share of the requests has a message that leaves late while answers are missing, it waits for some of them. Where fewer have,
/// the loop over the servers was held up: a thread that woke late.
const LATE: f64 = 0.5;

/// A request is no semaphore's unless so many of its messages, beyond the first that fill it, leave it full again.
const FULL_AGAIN: f64 = 0.6;
/// A semaphore's next message waits for answers of so many before it at most: those before them had come long ago.
pub(super) const LOOK_BACK: usize = 64;

/// How messages inside the requests of a group follow each other.
pub(super) fn inside(requests: &[Request], asks: &[Ask]) -> Inside {
    let mut most: Vec<usize> = requests.iter().map(|r| missing(r, asks).max().unwrap_or(0)).collect();
    let middle = most.len() / 2;
    // A pool of threads, asyncio.Semaphore and errgroup.SetLimit keep so many calls in flight. A request that was held
    // up had fewer, and one whose answer the tap saw late had more: the middle one counts.
    let width = *most.select_nth_unstable(middle).1;
    let beyond = || requests.iter().flat_map(|r| missing(r, asks).skip(width));
    let (all, full) = (beyond().count(), beyond().filter(|&missing| missing == width).count());
    if all > 0 && full as f64 >= FULL_AGAIN * all as f64 {
        return Inside::Semaphore(width);
    }
    let at = |n: u32| asks[n as usize].at;
    let late = |request: &&Request| {
        let apart = request.windows(2).map(|pair| at(pair[1]) - at(pair[0]) > TOGETHER);
        apart.zip(missing(request, asks).skip(1)).any(|(apart, missing)| apart && missing > 1)
    };
    match requests.iter().filter(late).count() as f64 >= LATE * requests.len() as f64 {
        true => Inside::Early,
        false => Inside::Stages,
    }
}

/// How many answers are missing after each ask of a request.
fn missing<'a>(request: &'a [u32], asks: &'a [Ask]) -> impl Iterator<Item = usize> + 'a {
    let mut open: Vec<u64> = Vec::new();
    request.iter().map(move |&n| {
        let ask = &asks[n as usize];
        open.retain(|&answered| answered > ask.at + SEEN);
        open.push(ask.over().unwrap_or(ask.at));
        open.len()
    })
}

/// Parts a request into what its user's turn releases, so many messages, and the steps inside it.
pub(super) fn steps(request: &[u32], asks: &[Ask], inside: Inside, late: &[u32]) -> (usize, Vec<Step>) {
    let (mut first, mut steps): (usize, Vec<Step>) = (request.len(), Vec::new());
    // All before these had come before something that was asked.
    let mut base = 0;
    let mut last = asks[request[0] as usize].at;
    for (place, &n) in request.iter().enumerate().skip(1) {
        let at = asks[n as usize].at;
        // A timer sent it, which began with the request that it repeats or with the first.
        let failed = asks[n as usize].retries.filter(|failed| request[..place].contains(failed));
        if let Some(timed) = failed.or(late.binary_search(&n).is_ok().then_some(request[0])) {
            first = first.min(place);
            steps.push(Step { ask: n, need: 0, of: vec![timed], at: asks[timed as usize].sent });
            last = at;
            continue;
        }
        let answered = |&n: &u32| asks[n as usize].over().unwrap_or(0);
        let mut of: Vec<u32> = request[base..place].to_vec();
        of.sort_by_key(answered);
        let come = of.iter().filter(|&n| answered(n) <= at + SEEN).count();
        let goes_on = come < of.len()
            && match inside {
                Inside::Semaphore(width) => place < width,
                Inside::Early => at - last <= TOGETHER,
                Inside::Stages => true,
            };
        last = at;
        if goes_on {
            // Of a step or of the first messages.
            if let Some(before) = steps.last().cloned() {
                steps.push(Step { ask: n, ..before });
            }
            continue;
        }
        first = first.min(place);
        let need = match inside {
            Inside::Semaphore(width) if come < of.len() || width > 1 => {
                // Two at a time: the third message waits for one answer, the fourth for two.
                (place + 1).saturating_sub(width + base).clamp(1, come.max(1))
            }
            _ => come,
        };
        if come == 0 {
            steps.push(Step { ask: n, need: 0, of: vec![request[0]], at: asks[request[0] as usize].sent });
            continue;
        }
        let at = answered(&of[need - 1]).min(at);
        let skipped = of.len().saturating_sub(LOOK_BACK).min(need - 1);
        let of_all = need == of.len();
        of.drain(..skipped);
        of.sort_unstable();
        steps.push(Step { ask: n, need: (need - skipped) as u32, of, at });
        if of_all {
            base = place;
        }
    }
    (first, steps)
}

/// The request before each one: of the same user. Where requests run beside each other, nothing says whose is whose: the user that had been idle longest.
pub(super) fn before(cut: &Cut, asks: &[Ask]) -> Vec<Option<usize>> {
    if !cut.concurrent {
        // One user, who does one thing after another.
        return (0..cut.requests.len()).map(|n| n.checked_sub(1)).collect();
    }
    let end = |request: &Request| {
        let over = |&n: &u32| asks[n as usize].over().unwrap_or(asks[n as usize].at);
        request.iter().map(over).max().unwrap_or(0)
    };
    let mut ended: BTreeSet<(u64, usize)> = BTreeSet::new();
    let follow = |(n, request): (usize, &Request)| {
        let start = asks[request[0] as usize].at;
        let free = ended.first().copied().filter(|&(end, _)| end <= start + SEEN);
        if let Some(free) = free {
            ended.remove(&free);
        }
        ended.insert((end(request), n));
        free.map(|(_, n)| n)
    };
    cut.requests.iter().enumerate().map(follow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many pauses of each length in microseconds.
    fn parted(pauses: &[(usize, u64)]) -> Option<u64> {
        let all: Vec<u64> = pauses.iter().flat_map(|&(count, us)| vec![us * 1_000; count]).collect();
        valley(&all).map(|longest| longest / 1_000)
    }

    #[test]
    fn pauses_are_of_two_kinds_where_one_is_three_times_as_long_as_the_other() {
        assert_eq!((parted(&[(10, 1_000), (10, 2_990)]), parted(&[(10, 1_000), (10, 3_000)])), (None, Some(1_000)));
    }

    #[test]
    fn a_kind_of_pauses_has_a_tenth_of_all() {
        assert_eq!((parted(&[(3, 100), (37, 1_000)]), parted(&[(4, 100), (36, 1_000)])), (None, Some(100)));
        assert_eq!((parted(&[(37, 100), (3, 1_000)]), parted(&[(36, 100), (4, 1_000)])), (None, Some(100)));
    }

    /// 4 % of 50 are two.
    #[test]
    fn at_most_one_pause_in_25_lies_between_the_kinds() {
        let between = |count| parted(&[(20, 1_000), (count, 2_000), (30 - count, 4_000)]);
        assert_eq!((between(2), between(3)), (Some(2_000), None));
    }

    /// Five requests of `usual` messages, each answered after 5 ms, and one message group of `few` that leaves 1 ms after the third began.
    fn late(usual: u32, few: u32) -> usize {
        let ask = |at: u64, conn: u32| Ask {
            at,
            conn,
            msg: 0,
            server: conn,
            answered: Some(at + 5_000_000),
            ..Ask::default()
        };
        let (mut asks, mut requests) = (Vec::new(), Vec::new());
        let mut add = |count: u32, at: u64| {
            requests.push((asks.len() as u32..asks.len() as u32 + count).collect::<Request>());
            asks.extend((0..count).map(|conn| ask(at, conn)));
        };
        for n in 0..5 {
            add(usual, n * 20_000_000);
            if n == 2 {
                add(few, n * 20_000_000 + 1_000_000);
            }
        }
        hedged(requests, &asks).1.len()
    }

    #[test]
    fn a_timer_sends_at_most_a_third_of_a_request() {
        assert_eq!((late(6, 2), late(5, 2)), (2, 0));
        assert_eq!((late(3, 1), late(2, 1)), (1, 0));
    }

    /// One request after another of four messages, 200 busy times, in the last of which two are beside each other so many times: how many are found.
    fn beside(pairs: u64) -> usize {
        let mut asks = Vec::new();
        let mut add = |at: u64, first: u32| {
            asks.extend((first..first + 4).map(|conn| Ask {
                at: at + u64::from(conn % 4) * 1_000,
                conn,
                server: conn % 4,
                answered: Some(at + 5_000_000 + u64::from(conn % 4) * 100_000),
                ..Ask::default()
            }));
        };
        for n in 0..200 {
            add(n * 20_000_000, 0);
            if n >= 200 - pairs {
                add(n * 20_000_000 + 2_000_000 + n * 7_919 % 2_000_000, 4);
            }
        }
        let mine = (0..asks.len() as u32).collect();
        let group = Group { connections: (0..8).collect(), asks: mine, companies: Vec::new(), several: true };
        cut(&group, &asks).requests.len()
    }

    #[test]
    fn one_message_alone_shows_no_request() {
        let requests = |sizes: [u32; 2]| sizes.map(|size| vec![(0..size).collect::<Request>(); 30]).concat();
        assert_eq!((steadiness(&requests([1, 1])), steadiness(&requests([1, 3]))), (0.0, 0.75));
    }

    #[test]
    fn a_first_or_last_request_of_more_messages_than_all_between_swallowed_others() {
        let steady = |first: u32, last: u32| {
            let sizes = [first, 6, 6, 6, last];
            steadiness(&sizes.map(|size| (0..size).collect::<Request>()))
        };
        assert_eq!((steady(6, 6), steady(1, 5), steady(6, 54), steady(18, 6)), (1.0, 1.0, 0.25, 1.0));
    }

    #[test]
    fn one_odd_request_in_a_hundred_is_no_second_users() {
        assert_eq!((beside(2), beside(3)), (200, 203));
    }
}

#[cfg(test)]
mod edges;
