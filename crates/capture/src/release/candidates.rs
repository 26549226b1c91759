//! The events that may have released a round, and which of them it follows most steadily.

use super::bursts::{Ask, Burst};
use super::class::Class;
use super::steady::{by_chance, cost, median, one_tick, quantile};
use super::{LEAST_ROUNDS, ON_A_TICK, SEEN, Talk};

/// So much cheaper than by chance, in the unit of [`cost`], must a cause be that is not the closed loop itself: its delays are spread over a
/// share 1/e of the time that chance would spread them over.
pub(super) const GAIN: f64 = 1.0;
/// So much cheaper must a cause be than one that needs less faith.
const MARGIN: f64 = 0.2;
/// A cause must precede at least this share of the rounds.
pub(super) const COVERAGE: f64 = 0.9;
/// A pause may be so many times as far below the middle one as the steadiest, but for so few of them.
const EARLY: u64 = 2;
/// Share of the pauses that may be further below.
const FEW: f64 = 0.03;
/// Where it is so many times as far below if all answers are waited for, some of them will do,
const SOME_WILL_DO: u64 = 4;
/// if a part of them is cheaper by so much, in the unit of [`cost`].
const CLEARLY: f64 = 0.5;
/// Pauses after one answer more or less are as steady if they differ by less, in the unit of [`cost`]: half of what a hundred rounds give by chance.
const AS_STEADY: f64 = 0.05;
/// Others whose events are tried as causes of a class: those that come last before its rounds most often.
const OTHERS: usize = 3;

/// How many answers of the round before are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// All but so many.
    AllBut(usize),
    /// More than half.
    Majority,
    /// The first.
    First,
}

impl Need {
    const ALL: [Need; 6] =
        [Need::AllBut(0), Need::AllBut(1), Need::AllBut(2), Need::AllBut(3), Need::Majority, Need::First];

    /// How many of so many; none: there are too few.
    pub fn of(self, answers: usize) -> Option<usize> {
        match self {
            Need::AllBut(late) => answers.checked_sub(late).filter(|&k| k > 0),
            Need::Majority => (answers > 0).then_some(answers / 2 + 1),
            Need::First => (answers > 0).then_some(1),
        }
    }

    pub fn late(self) -> crate::waiting::Waits {
        match self {
            Need::AllBut(0) => crate::waiting::Waits::All,
            Need::AllBut(late) => crate::waiting::Waits::AllBut(late as u32),
            Need::Majority => crate::waiting::Waits::Majority,
            Need::First => crate::waiting::Waits::First,
        }
    }
}

/// What a round may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Answers of the round before in the same class; alone in it, the own response.
    Answers(Need),
    /// The last answer of the latest complete round of another class.
    OthersAnswers(usize),
    /// The latest request of another class.
    OthersRequests(usize),
    /// The beginning of the round before, by a clock.
    Timer,
}

/// What a release refers to, and when it happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    pub at: u64,
    pub what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Round { class: usize, burst: usize, need: u32 },
    Answer { conn: u32, msg: u32 },
    Request { conn: u32, msg: u32 },
}

/// Events of every class in order of time.
pub(super) struct Streams {
    pub answers: Vec<Vec<Cause>>,
    requests: Vec<Vec<Cause>>,
    /// When each burst begins.
    pub starts: Vec<Vec<u64>>,
    /// Of each burst, since when its cause may have happened: since its user's last one began, and of an answer to a client since that had asked.
    since: Vec<Vec<Option<u64>>>,
    /// Everything: time, class.
    all_answers: Vec<(u64, u32)>,
    all_requests: Vec<(u64, u32)>,
}

impl Streams {
    pub fn of(classes: &[Class], talks: &[Talk], asks: &[Ask]) -> Streams {
        let answers: Vec<Vec<Cause>> =
            classes.iter().enumerate().map(|(n, class)| answer_events(n, class, talks)).collect();
        let requests: Vec<Vec<Cause>> = classes.iter().map(|class| request_events(class, asks)).collect();
        let flat = |streams: &[Vec<Cause>]| {
            let each = streams.iter().enumerate().flat_map(|(n, s)| s.iter().map(move |c| (c.at, n as u32)));
            let mut all: Vec<(u64, u32)> = each.collect();
            all.sort_unstable();
            all
        };
        let since = |class: &Class, i: usize| match class.upstream {
            true => asks[class.bursts[i].asks[0] as usize].own,
            false => class.before[i].map(|before| class.start(before, asks)),
        };
        Streams {
            all_answers: flat(&answers),
            all_requests: flat(&requests),
            starts: classes.iter().map(|c| (0..c.bursts.len()).map(|i| c.start(i, asks)).collect()).collect(),
            since: classes.iter().map(|c| (0..c.bursts.len()).map(|i| since(c, i)).collect()).collect(),
            answers,
            requests,
        }
    }

    /// The event of this kind that burst `i` of class `n` followed; none if it had not happened since the burst before.
    pub fn cause(&self, kind: Kind, n: usize, i: usize, classes: &[Class]) -> Option<Cause> {
        let before = classes[n].before[i];
        let (start, since) = (self.starts[n][i], self.since[n][i]);
        match kind {
            Kind::Answers(need) => {
                let burst = before?;
                let (at, k) = classes[n].answered(burst, need)?;
                // One answer: the release names it, and no round has to be written down for it.
                let what = match classes[n].answers[burst].as_slice() {
                    [only] => What::Answer { conn: only.conn, msg: only.msg },
                    _ => What::Round { class: n, burst, need: k },
                };
                // Away from the aggregator an answer has come when its ACK passes the tap. That may be after the request
                // which it released: without SEEN such an answer would be no cause.
                (at <= start + SEEN).then_some(Cause { at: at.min(start), what })
            }
            Kind::Timer => {
                let burst = before?;
                Some(Cause { at: self.starts[n][burst], what: What::Round { class: n, burst, need: 0 } })
            }
            Kind::OthersAnswers(other) => last_before(&self.answers[other], start, since),
            Kind::OthersRequests(other) => last_before(&self.requests[other], start, since),
        }
    }

    /// As [`Streams::cause`], at a moment after burst `i` that has nothing to do with anything: how long ago it had happened.
    fn age(&self, kind: Kind, n: usize, i: usize, at: u64, classes: &[Class]) -> Option<u64> {
        let latest = |stream: &[Cause]| last_before(stream, at, None).map(|c| at - c.at);
        match kind {
            Kind::Answers(need) => {
                let of = |i: usize| classes[n].answered(i, need).map(|(event, _)| event).filter(|&event| event <= at);
                // At a moment inside a round its own answers are to come yet: the last are those of the round before.
                of(i).or_else(|| of(classes[n].before[i]?)).map(|event| at - event)
            }
            Kind::Timer => Some(at - self.starts[n][i]),
            Kind::OthersAnswers(other) => latest(&self.answers[other]),
            Kind::OthersRequests(other) => latest(&self.requests[other]),
        }
    }

    /// The other classes whose answers come last before the bursts of class `n` most often.
    pub fn answered_before(&self, n: usize) -> Vec<usize> {
        self.others(n, &self.all_answers)
    }

    /// The other classes whose events come last before the bursts of class `n` most often.
    fn others(&self, n: usize, all: &[(u64, u32)]) -> Vec<usize> {
        let mut count: Vec<(u32, u32)> = Vec::new();
        for &start in &self.starts[n] {
            // Strictly before: of what leaves at one instant nothing released the other.
            let before = all.partition_point(|&(at, _)| at < start);
            // Its own answers may come in between, a few.
            let last = all[..before].iter().rev().take(2 + 2 * OTHERS).find(|&&(_, class)| class as usize != n);
            if let Some(&(_, class)) = last {
                match count.iter().position(|(c, _)| *c == class) {
                    Some(place) => count[place].1 += 1,
                    // So many are enough for the three most frequent, in a capture of thousands of classes, too.
                    None if count.len() < 64 => count.push((class, 1)),
                    None => {}
                }
            }
        }
        count.sort_by_key(|&(class, times)| (std::cmp::Reverse(times), class));
        count.iter().take(OTHERS).map(|&(class, _)| class as usize).collect()
    }
}

/// The latest event strictly before a moment, and after another one.
fn last_before(stream: &[Cause], at: u64, since: Option<u64>) -> Option<Cause> {
    let before = stream.partition_point(|c| c.at < at);
    let last = stream[..before].last()?;
    since.is_none_or(|since| last.at > since).then_some(*last)
}

/// When the rounds of a company were complete; of a single connection and of clients, when each answer had arrived.
fn answer_events(n: usize, class: &Class, talks: &[Talk]) -> Vec<Cause> {
    let mut all: Vec<Cause> = Vec::new();
    if class.is_company() {
        for burst in 0..class.bursts.len() {
            if let Some((at, need)) = class.answered(burst, Need::AllBut(0)) {
                all.push(Cause { at, what: What::Round { class: n, burst, need } });
            }
        }
    } else {
        for &conn in &class.connections {
            for (msg, times) in talks[conn as usize].times.iter().enumerate() {
                if let Some(at) = times.answered {
                    all.push(Cause { at, what: What::Answer { conn, msg: msg as u32 } });
                }
            }
        }
    }
    all.sort_by_key(|c| c.at);
    all
}

fn request_events(class: &Class, asks: &[Ask]) -> Vec<Cause> {
    let event = |burst: &Burst| {
        let ask = &asks[burst.asks[0] as usize];
        Cause { at: ask.sent, what: What::Request { conn: ask.conn, msg: ask.msg } }
    };
    let mut all: Vec<Cause> = class.bursts.iter().map(event).collect();
    all.sort_by_key(|cause| cause.at);
    all
}

/// How well a kind of cause explains some bursts of a class.
#[derive(Clone, Debug)]
struct Score {
    kind: Kind,
    cost: f64,
    /// How much cheaper than by chance.
    gain: f64,
    coverage: f64,
    median: u64,
    /// Per burst.
    delays: Vec<Option<u64>>,
}

impl Score {
    /// By how much the shortest delays, but for a few, are shorter than the middle one.
    fn early(&self) -> u64 {
        let known: Vec<u64> = self.delays.iter().flatten().copied().collect();
        self.median - quantile(&known, FEW).min(self.median)
    }

    /// Of a timer: it may be late, and hardly ever early.
    fn is_regular(&self) -> bool {
        self.early() as f64 <= ON_A_TICK * self.median as f64
    }
}

/// What was chosen for a class: a kind of cause per burst, or each connection alone.
pub(super) struct Choice {
    first: Option<Score>,
    /// For bursts that do not follow the first.
    second: Option<Score>,
    /// The user goes on without some of the answers.
    some_will_do: bool,
}

impl Choice {
    /// Each request waits for the own response before.
    pub fn alone(&self) -> bool {
        self.first.is_none() && self.second.is_none()
    }

    /// The kind of cause that burst `i` follows.
    pub fn of(&self, i: usize) -> Option<Kind> {
        // Of two causes that a burst may follow, the one whose usual delay is nearer to its own.
        let fits = |score: &Option<Score>| {
            let score = score.as_ref()?;
            score.delays[i].map(|d| (d.abs_diff(score.median), score.kind))
        };
        match (fits(&self.first), fits(&self.second)) {
            (Some((a, _)), Some((b, kind))) if b < a => Some(kind),
            (Some((_, kind)), _) | (None, Some((_, kind))) => Some(kind),
            (None, None) => None,
        }
    }

    /// The kind of cause that most bursts follow.
    pub fn mostly(&self) -> Option<Kind> {
        self.first.as_ref().map(|first| first.kind)
    }

    /// How long after a cause of this kind bursts usually follow, and at most.
    pub fn usually(&self, kind: Kind) -> Option<(u64, u64)> {
        let chosen = [&self.first, &self.second].into_iter().flatten().find(|score| score.kind == kind);
        chosen.map(|score| (score.median, score.median + stray(score.median)))
    }

    /// How many of so many answers the user of a round waits for, where the next round follows these.
    pub fn waited(&self, answers: usize) -> Option<usize> {
        match self.first.as_ref()?.kind {
            Kind::Answers(need) if self.some_will_do => need.of(answers),
            _ => None,
        }
    }

    /// The period of the timer that releases most bursts.
    pub fn ticks(&self) -> Option<u64> {
        self.first.as_ref().filter(|first| first.kind == Kind::Timer).map(|first| first.median)
    }

    /// Time since the burst before, of what a timer releases.
    pub fn period(&self, i: usize) -> Option<u64> {
        [&self.first, &self.second].into_iter().flatten().find(|s| s.kind == Kind::Timer).and_then(|s| s.delays[i])
    }
}

/// Chooses the cause of a class's bursts.
pub(super) fn choose(n: usize, classes: &[Class], streams: &Streams, asks: &[Ask]) -> Choice {
    let class = &classes[n];
    let nothing = Choice { first: None, second: None, some_will_do: false };
    if class.bursts.len() < LEAST_ROUNDS {
        return if class.inside.is_some() { unexplained(class) } else { nothing };
    }
    let all: Vec<usize> = (1..class.bursts.len()).filter(|&i| class.before[i].is_some()).collect();
    let score = |kind: Kind, of: &[usize]| score(kind, n, of, classes, streams);
    // Each connection by its own answer, as if none had to do with another.
    let own = own(class, asks);
    // Closed loops: the round before. Open ones: a timer, and what others were answered or asked.
    let mut loops: Vec<Score> = Vec::new();
    if class.is_company() {
        loops.extend(Need::ALL.iter().map(|&need| score(Kind::Answers(need), &all)));
    }
    // A scraper or a load generator of a fixed rate follows its clock, a proxy the requests of its clients, the later
    // stage of a pipeline the answers of the one before.
    let mut others: Vec<Score> = vec![score(Kind::Timer, &all)];
    others.extend(streams.others(n, &streams.all_answers).into_iter().map(|c| score(Kind::OthersAnswers(c), &all)));
    others.extend(streams.others(n, &streams.all_requests).into_iter().map(|c| score(Kind::OthersRequests(c), &all)));

    // Of causes that are as steady, the nearest in time.
    let steadiest = |scores: &[Score]| {
        let least = scores.iter().map(|s| s.cost).fold(f64::INFINITY, f64::min);
        scores.iter().filter(|s| s.cost <= least + MARGIN).min_by_key(|s| s.median).cloned()
    };
    let mut closed: Vec<Score> = loops.iter().filter(|s| s.coverage >= COVERAGE).cloned().collect();
    // Requests that are known, of which many begin before all answers to the one before have come, do not wait for these, however long their user pauses.
    let all_come = closed.first().is_none_or(|s| s.kind == Kind::Answers(Need::AllBut(0)));
    let some_will_do = class.is_company() && (closed_by_some(&closed, class) || class.inside.is_some() && !all_come);
    if some_will_do {
        closed = hardly_early(closed, class);
    }
    let closed = match some_will_do {
        // One answer more or less is told by the steadiness of the pauses alone.
        true => latest(closed),
        false => steadiest(&closed),
    };
    let open: Vec<Score> = others.iter().filter(|s| s.coverage >= COVERAGE && s.gain >= GAIN).cloned().collect();
    let open = steadiest(&open);
    let first = cause(closed, open);
    let Some(first) = first else {
        return if class.is_company() && class.full { unexplained(class) } else { nothing };
    };
    if class.inside.is_some() {
        let candidates: Vec<Score> = loops.into_iter().chain(others).collect();
        let second = second(&first, class, &candidates, &score);
        return Choice { first: Some(first), second, some_will_do };
    }
    let alone_is_better = alone_is_better(class, &own, &first);
    if alone_is_better && !class.is_company() {
        // A single connection may follow something else now and then: a hedged request.
        let second = second(&own, class, &others, &score);
        return Choice { first: None, second, some_will_do: false };
    }
    if alone_is_better {
        return nothing;
    }
    let candidates: Vec<Score> = loops.into_iter().chain(others).collect();
    let second = second(&first, class, &candidates, &score);
    Choice { first: Some(first), second, some_will_do }
}

/// A round waits for the round before unless something else is clearly steadier.
fn cause(closed: Option<Score>, open: Option<Score>) -> Option<Score> {
    let (closed, open) = match (closed, open) {
        (Some(closed), Some(open)) => (closed, open),
        (closed, open) => return closed.or(open),
    };
    // What comes later and is as steady is nearer to the cause.
    let as_steady = open.cost <= closed.cost + MARGIN;
    // A stage in between is answered after the round before, and as steadily: it is what the next request waits for.
    let nearer = open.kind != Kind::Timer && open.median < closed.median && as_steady;
    // A part of the answers comes nearly as long after every round, so that what a timer sends seems to follow it: after a wait that is most of the
    // period.
    let part = closed.kind != Kind::Answers(Need::AllBut(0));
    let period = open.kind == Kind::Timer && open.is_regular() && part && as_steady && 2 * closed.median > open.median;
    Some(if nearer || period || open.cost < closed.cost - MARGIN { open } else { closed })
}

/// Each connection alone needs the least faith; that all are asked together, again and again, speaks against it.
fn alone_is_better(class: &Class, own: &Score, first: &Score) -> bool {
    if class.is_company() && class.full {
        own.gain >= GAIN && own.cost < first.cost - MARGIN
    } else if class.is_company() {
        first.gain < GAIN || own.cost < first.cost - MARGIN
    } else {
        let nearer = first.kind != Kind::Timer && first.median < own.median && first.cost <= own.cost + MARGIN;
        !(nearer || first.cost < own.cost - MARGIN)
    }
}

/// Of pauses that are as steady, those after most answers: who is taken to wait for fewer than he does is said to have waited for less.
fn latest(closed: Vec<Score>) -> Option<Score> {
    let least = closed.iter().map(|s| s.cost).fold(f64::INFINITY, f64::min);
    closed.into_iter().find(|s| s.cost <= least + AS_STEADY)
}

/// By how much the shortest pauses are shorter than the middle one, of the steadiest cause.
fn earliest(closed: &[Score], class: &Class) -> u64 {
    closed.iter().map(Score::early).min().unwrap_or(0) + SEEN.max(class.resolution as u64)
}

/// Without those of which the shortest pauses are far shorter than the steadiest cause has them.
fn hardly_early(mut closed: Vec<Score>, class: &Class) -> Vec<Score> {
    let earliest = earliest(&closed, class);
    closed.retain(|s| s.early() <= EARLY * earliest);
    closed
}

/// Whether rounds follow a part of the answers before, and not all. That all had come when the next began is no evidence for all: they may have come in
/// the user's pause. But who is taken to wait for more answers than he does seems to pause for less, now and then, than he ever does; and after the
/// answers that he does wait for he pauses more steadily. Where many rounds begin before all answers have come, the application did not wait for these.
fn closed_by_some(closed: &[Score], class: &Class) -> bool {
    let least = closed.iter().map(|s| s.cost).fold(f64::INFINITY, f64::min);
    if !closed.iter().any(|s| s.cost <= least + MARGIN && s.gain >= GAIN) {
        return false;
    }
    // After all answers the pauses are clearly less steady, and now and then far shorter than after some.
    let of_all = closed.iter().find(|s| s.kind == Kind::Answers(Need::AllBut(0)));
    of_all.is_none_or(|all| all.cost > least + CLEARLY && all.early() > SOME_WILL_DO * earliest(closed, class))
}

/// Asked together, but after nothing that can be seen: on the clock.
fn unexplained(class: &Class) -> Choice {
    let delays = vec![None; class.bursts.len()];
    let first = Score { kind: Kind::Answers(Need::AllBut(0)), cost: 0.0, gain: 0.0, coverage: 0.0, median: 0, delays };
    Choice { first: Some(first), second: None, some_will_do: false }
}

/// Delays that are further from the middle one than half of it and a millisecond are of another cause.
fn stray(median: u64) -> u64 {
    1_000_000 + median / 2
}

/// A cause for the bursts that `first` does not explain: it had not happened, or much earlier or later than it does mostly.
fn second(
    first: &Score,
    class: &Class,
    candidates: &[Score],
    score: &dyn Fn(Kind, &[usize]) -> Score,
) -> Option<Score> {
    // What `first` does not explain.
    let strays: Vec<usize> = (1..class.bursts.len())
        .filter(|&i| first.delays[i].is_none_or(|d| d.abs_diff(first.median) > stray(first.median)))
        .collect();
    if strays.len() < LEAST_ROUNDS - 1 {
        return None;
    }
    let fits = |s: &Score| s.coverage >= COVERAGE && s.gain >= GAIN;
    // An answer to a client that comes late after those of the servers waited for the application, not for what it asked of them.
    let others = candidates.iter().filter(|s| {
        let of_same = matches!((first.kind, s.kind), (Kind::OthersAnswers(a), Kind::OthersRequests(b)) if a == b);
        s.kind != first.kind && !(class.upstream && of_same)
    });
    let mut found: Vec<Score> = others.map(|s| score(s.kind, &strays)).filter(fits).collect();
    found.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let best = found.into_iter().next()?;
    let of_first: Vec<u64> = strays.iter().filter_map(|&i| first.delays[i]).collect();
    (of_first.len() < strays.len() || best.cost < cost(&of_first, class.resolution) - MARGIN).then_some(best)
}

fn score(kind: Kind, n: usize, of: &[usize], classes: &[Class], streams: &Streams) -> Score {
    let mut delays = vec![None; classes[n].bursts.len()];
    let (mut known, mut chance) = (Vec::new(), Vec::new());
    for &i in of {
        let start = streams.starts[n][i];
        if let Some(cause) = streams.cause(kind, n, i, classes) {
            delays[i] = Some(start - cause.at);
            known.push(start - cause.at);
        }
        // The same delay at a moment between this burst and the next, by chance.
        if let Some(&next) = streams.starts[n].get(i + 1) {
            chance.extend(streams.age(kind, n, i, by_chance(i, start, next), classes));
        }
    }
    if kind == Kind::Timer && classes[n].is_company() {
        // Rounds that are not full are not in this list. Of a connection alone all are.
        let period = median(&known);
        // A poll that was missed or sent to some servers only leaves a gap of two periods, which is as regular as one.
        let ticks = known.iter_mut().chain(delays.iter_mut().flatten());
        ticks.for_each(|time| *time = one_tick(*time, period));
    }
    let spent = cost(&known, classes[n].resolution);
    Score {
        kind,
        cost: spent,
        gain: cost(&chance, classes[n].resolution) - spent,
        coverage: known.len() as f64 / of.len().max(1) as f64,
        median: median(&known),
        delays,
    }
}

/// Each connection alone: every request against the response before it on its own connection.
fn own(class: &Class, asks: &[Ask]) -> Score {
    let mut mine: Vec<(u32, u32, usize)> = Vec::new();
    for (i, burst) in class.bursts.iter().enumerate() {
        mine.extend(burst.asks.iter().map(|&a| (asks[a as usize].conn, a, i)));
    }
    mine.sort_unstable();
    let mut delays = vec![None; class.bursts.len()];
    let (mut all, mut few, mut asked) = (Vec::new(), (Vec::new(), Vec::new()), 0_usize);
    for connection in mine.chunk_by(|a, b| a.0 == b.0) {
        let (mut known, mut chance) = (Vec::new(), Vec::new());
        for (k, &(_, ask, burst)) in connection.iter().enumerate() {
            let ask = &asks[ask as usize];
            asked += usize::from(k > 0);
            if let Some(own) = ask.own {
                known.push(ask.at - own);
                delays[burst] = Some(ask.at - own);
            }
            if let Some(&(_, next, _)) = connection.get(k + 1) {
                let at = by_chance(k, ask.at, asks[next as usize].at);
                let latest = ask.answered.filter(|&answered| answered <= at).or(ask.own);
                chance.extend(latest.map(|event| at - event));
            }
        }
        // One or two delays are near their median, whatever they are: connections that have no more are taken together.
        if known.len() < LEAST_ROUNDS {
            few.0.extend(known);
            few.1.extend(chance);
        } else {
            all.push((known, chance));
        }
    }
    all.push(few);
    // The mean over all requests, each against the median of its own connection. Those by chance are weighed as these are, so that both costs are means over
    // the same number.
    let (mut own, mut by_chance, mut count) = (0.0, 0.0, 0_usize);
    for (known, chance) in &all {
        own += cost(known, class.resolution) * known.len() as f64;
        by_chance += cost(chance, class.resolution) * known.len() as f64;
        count += known.len();
    }
    let count_f = count.max(1) as f64;
    let medians: Vec<u64> = all.iter().filter(|(known, _)| !known.is_empty()).map(|(known, _)| median(known)).collect();
    Score {
        kind: Kind::Answers(Need::AllBut(0)),
        cost: own / count_f,
        gain: (by_chance - own) / count_f,
        coverage: count as f64 / asked.max(1) as f64,
        median: median(&medians),
        delays,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_pauses_that_are_as_steady_those_after_most_answers_count() {
        let score = |(late, cost): (usize, f64)| {
            let kind = Kind::Answers(Need::AllBut(late));
            Score { kind, cost, gain: 2.0, coverage: 1.0, median: 0, delays: Vec::new() }
        };
        let chosen = |costs: [f64; 3]| latest(costs.into_iter().enumerate().map(score).collect()).map(|s| s.kind);
        assert_eq!(chosen([5.06, 5.04, 5.0]), Some(Kind::Answers(Need::AllBut(1))));
        assert_eq!(chosen([5.04, 5.0, 5.02]), Some(Kind::Answers(Need::AllBut(0))));
    }

    #[test]
    fn a_timer_is_hardly_ever_early() {
        let timer = |early: u64| {
            let delays = (0..100).map(|n| Some(if n < 5 { 100 - early } else { 100 })).collect();
            Score { kind: Kind::Timer, cost: 0.0, gain: 2.0, coverage: 1.0, median: 100, delays }
        };
        assert!(timer(5).is_regular() && !timer(6).is_regular());
    }
}

#[cfg(test)]
mod edges;
