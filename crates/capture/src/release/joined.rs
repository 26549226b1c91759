//! Stages that the application computes between, for longer than it turns from an answer to the next request.
//!
//! What is asked as often as others, and each time about as long after a whole round of their answers, is a stage of their requests: their user waits for
//! it. Unless these follow it as steadily: then two requests take turns.

use super::Talk;
use super::bursts::Ask;
use super::candidates::{self, COVERAGE, Choice, Need, Streams};
use super::class::Class;
use super::groups::FOLLOWS;
use super::requests::{BESIDE, Cut, RARELY, Request, VALLEY};
use super::steady::{RESOLUTION, cost, median};
use super::{CLEAR, SEEN};

/// A request has no more stages with pauses between them than this.
pub(super) const STAGES: usize = 16;
/// Fewer rounds show no steadiness.
pub(super) const FEWEST: usize = 20;
/// What takes up to half as long again each time takes about as long.
const ABOUT: f64 = 1.5;

/// Joins classes that are stages of one request.
pub(super) fn stages(mut classes: Vec<Class>, talks: &[Talk], asks: &[Ask]) -> (Vec<Class>, Streams, Vec<Choice>) {
    let mut left = STAGES;
    loop {
        let streams = Streams::of(&classes, talks, asks);
        let pair = (0..classes.len()).find_map(|n| stage_of(n, &classes, &streams, asks)).filter(|_| left > 0);
        let Some((first, second, requests)) = pair else {
            let choose = |n| candidates::choose(n, &classes, &streams, asks);
            let choices = (0..classes.len()).map(choose).collect();
            return (classes, streams, choices);
        };
        left -= 1;
        let whole = merged([&classes[first], &classes[second]], requests, talks, asks);
        classes[first.min(second)] = whole;
        classes.remove(first.max(second));
    }
}

/// The class of which class `n` is the next stage, and the requests of both.
fn stage_of(n: usize, classes: &[Class], streams: &Streams, asks: &[Ask]) -> Option<(usize, usize, Vec<Request>)> {
    // Requests that are known already, or of which something is left over, are no stage of others.
    let plain = |class: &Class| class.is_plain() && class.bursts.len() >= FEWEST;
    let second = &classes[n];
    if !plain(second) {
        return None;
    }
    for other in streams.answered_before(n) {
        let first = &classes[other];
        // A stage is left out now and then, as by a hit in a cache: in a tenth of the requests at most.
        let few = first.bursts.len().abs_diff(second.bursts.len()) as f64 > RARELY * first.bursts.len() as f64;
        if !plain(first) || few {
            continue;
        }
        let after = match (of_rounds(first, second, asks), of_rounds(second, first, asks)) {
            (Some(after), None) => after,
            // Each follows the other as steadily: two requests take turns.
            (Some(_), Some(_)) => continue,
            (None, _) => match in_turn(first, second, asks) {
                Some(after) => after,
                None => continue,
            },
        };
        if goes_by_its_own_clock(second, first, &after, asks) {
            continue;
        }
        return Some((other, n, together(first, second, after)));
    }
    None
}

/// Whether a class follows its own rounds more steadily than those of another: checks whose periods are the same keep step with each other, and are no
/// stages.
fn goes_by_its_own_clock(second: &Class, first: &Class, after: &[Option<usize>], asks: &[Ask]) -> bool {
    let start = |i: usize| second.start(i, asks);
    let since = |end: Option<u64>, i: usize| Some(start(i).saturating_sub(end?));
    let answered = |class: &Class, i: usize| class.answered(i, Need::AllBut(0)).map(|answer| answer.0);
    let others = after.iter().enumerate().filter_map(|(i, of)| since(answered(first, (*of)?), i)).collect::<Vec<_>>();
    let own = (1..second.bursts.len()).filter_map(|i| since(answered(second, i - 1), i)).collect::<Vec<_>>();
    // A timer may also count from one request to the next.
    let ticks = (1..second.bursts.len()).map(|i| start(i).saturating_sub(start(i - 1))).collect::<Vec<_>>();
    cost(&own, RESOLUTION).min(cost(&ticks, RESOLUTION)) < cost(&others, RESOLUTION)
}

/// The round of one class that each round of another follows, where the two take turns and nothing of the one goes on beside the other. A stage follows
/// sooner than its user goes on, however long the application computes in between; where the pauses are alike, two requests take turns.
fn in_turn(first: &Class, second: &Class, asks: &[Ask]) -> Option<Vec<Option<usize>>> {
    let of = |class: &Class, stage: bool| {
        let span = |i: usize| Some((class.start(i, asks), class.answered(i, Need::AllBut(0))?.0, stage, i));
        (0..class.bursts.len()).filter_map(span).collect::<Vec<_>>()
    };
    let mut all = [of(first, false), of(second, true)].concat();
    all.sort_unstable();
    let mut after = vec![None; second.bursts.len()];
    let (mut within, mut between) = (Vec::new(), Vec::new());
    // One of the first, one of the second behind it, and the next of the first behind that: nothing in between.
    for three in all.windows(3) {
        let &[(_, ended, false, of), (start, end, true, i), (next, _, false, _)] = three else { continue };
        if ended <= start + SEEN && end <= next + SEEN {
            after[i] = Some(of);
            within.push(start.saturating_sub(ended));
            between.push(next.saturating_sub(end));
        }
    }
    // The last one has none behind it.
    if let &[.., (_, ended, false, of), (start, _, true, i)] = all.as_slice()
        && ended <= start + SEEN
    {
        after[i] = Some(of);
    }
    let mostly = |count: usize| count as f64 >= (1.0 - RARELY) * second.bursts.len() as f64;
    let sooner = within.iter().zip(&between).filter(|(within, between)| within < between).count();
    let two_kinds = median(&between) as f64 >= VALLEY * median(&within) as f64;
    (mostly(sooner) && two_kinds).then_some(after)
}

/// The round of one class that each round of another follows.
fn of_rounds(first: &Class, second: &Class, asks: &[Ask]) -> Option<Vec<Option<usize>>> {
    // A stage waits for all answers of the one before.
    let ended = |i: usize| Some((first.answered(i, Need::AllBut(0))?.0, i));
    let starts: Vec<u64> = (0..second.bursts.len()).map(|i| second.start(i, asks)).collect();
    follows((0..first.bursts.len()).filter_map(ended).collect(), &starts, COVERAGE)
}

/// Requests of two sizes as stages of one, where those of one size follow the others: what most requests are like, though some are mixed up.
pub(super) fn paired(requests: &[Request], asks: &[Ask]) -> Option<Vec<Request>> {
    let mut sizes: Vec<usize> = requests.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    let mut often: Vec<&[usize]> = sizes.chunk_by(|a, b| a == b).collect();
    often.sort_by_key(|same| std::cmp::Reverse(same.len()));
    let [a, b, ..] = often.as_slice() else { return None };
    let of = |size: usize| requests.iter().filter(move |request| request.len() == size).collect::<Vec<_>>();
    let end = |request: &Request| {
        request.iter().map(|&n| asks[n as usize].answered.unwrap_or(asks[n as usize].at)).max().unwrap_or(0)
    };
    let after = |first: &[&Request], second: &[&Request]| {
        let ends = first.iter().enumerate().map(|(i, request)| (end(request), i)).collect();
        let starts: Vec<u64> = second.iter().map(|request| asks[request[0] as usize].at).collect();
        follows(ends, &starts, CLEAR)
    };
    let (one, other) = (of(a[0]), of(b[0]));
    if one.len().min(other.len()) < FEWEST {
        return None;
    }
    let (first, second, round) = match (after(&one, &other), after(&other, &one)) {
        (Some(round), None) => (one, other, round),
        (None, Some(round)) => (other, one, round),
        _ => return None,
    };
    let pair = |(mine, of): (&&Request, Option<usize>)| {
        let mut request = [first[of?].as_slice(), mine].concat();
        request.sort_unstable();
        Some(request)
    };
    Some(second.iter().zip(round).filter_map(pair).collect())
}

/// Of each start, which of the ends it follows, if enough do after a steady time, each one of its own, and more than chance has it.
fn follows(mut ends: Vec<(u64, usize)>, starts: &[u64], enough: f64) -> Option<Vec<Option<usize>>> {
    ends.sort_unstable();
    // The latest ends before a start.
    let lately = |start: u64| {
        let before = ends.partition_point(|&(end, _)| end <= start + SEEN);
        ends[before.saturating_sub(BESIDE)..before].iter()
    };
    let mut delays: Vec<u64> = starts.iter().flat_map(|&at| lately(at).map(move |e| at.saturating_sub(e.0))).collect();
    delays.sort_unstable();
    let most = |delay: u64| (delay as f64 * ABOUT) as u64 + SEEN;
    let gap = ends.last()?.0.saturating_sub(ends.first()?.0).max(1) as f64 / ends.len() as f64;
    // Ends come one in `gap` on average; so many lie in a window of that width, wherever it is (a Poisson process).
    // Ends each 100 ms, and delays from 10 to 15 ms: one of twenty by chance.
    let by_chance = |least: u64| (most(least) - least) as f64 / gap;
    // Of which delay there are most, beyond chance: both ends of the window move on only.
    let (mut end, mut best) = (0, (0.0, 0));
    for (begin, &least) in delays.iter().enumerate() {
        while delays.get(end).is_some_and(|&d| d <= most(least)) {
            end += 1;
        }
        let beyond = (end - begin) as f64 - by_chance(least) * starts.len() as f64;
        if beyond > best.0 {
            best = (beyond, least);
        }
    }
    let least = best.1;
    // Half as long again is a wide window behind a long delay: 60 ms with ends each 100 ms hold 0.3 by chance.
    if by_chance(least) > FOLLOWS {
        return None;
    }
    // Each end is followed by one start: the first that fits takes it.
    let mut taken = vec![false; ends.len()];
    let mut next = |at: u64| {
        let before = ends.partition_point(|&(end, _)| end <= at + SEEN);
        let mine = before.saturating_sub(BESIDE)..before;
        let fits = |&n: &usize| !taken[n] && (least..=most(least)).contains(&at.saturating_sub(ends[n].0));
        let place = mine.into_iter().find(fits)?;
        taken[place] = true;
        Some(ends[place].1)
    };
    let round: Vec<Option<usize>> = starts.iter().map(|&at| next(at)).collect();
    let known = round.iter().flatten().count() as f64;
    (known >= enough * starts.len() as f64).then_some(round)
}

/// The requests of a class, each with those of another one that are `of` it, and the others of that one; in order of time.
pub(super) fn together(class: &Class, other: &Class, of: Vec<Option<usize>>) -> Vec<Request> {
    let mut requests = class.requests();
    for (mine, of) in other.requests().into_iter().zip(of) {
        match of {
            Some(of) => requests[of].extend(mine),
            None => requests.push(mine),
        }
    }
    requests.iter_mut().for_each(|request| request.sort_unstable());
    requests.sort_unstable_by_key(|request| request[0]);
    requests
}

/// Both classes as one, with their requests together.
pub(super) fn merged(stages: [&Class; 2], requests: Vec<Request>, talks: &[Talk], asks: &[Ask]) -> Class {
    let mut connections = [stages[0].connections.as_slice(), &stages[1].connections].concat();
    connections.sort_unstable();
    Class::of_requests(connections, &Cut { requests, concurrent: true, ..Cut::default() }, talks, asks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Times;
    use crate::release::steady::by_chance;

    const MS: u64 = 1_000_000;

    /// Whether 40 starts follow ends that are 100 ms apart, each so many milliseconds after its own.
    fn after(delay: impl Fn(u64) -> u64) -> bool {
        let ends = (0..40).map(|n| (n * 100 * MS, n as usize)).collect();
        let starts: Vec<u64> = (0..40).map(|n| n * 100 * MS + delay(n) * MS).collect();
        follows(ends, &starts, COVERAGE).is_some_and(|round| round == (0..40).map(Some).collect::<Vec<_>>())
    }

    #[test]
    fn what_takes_up_to_half_as_long_again_takes_about_as_long() {
        assert!(after(|n| 10 + n % 6) && !after(|n| 10 + n % 8));
        assert!(after(|_| 3) && !after(|n| n * 37 % 100), "a pause that is drawn");
    }

    /// Two connections, the first of which is asked every quarter of a second and a little, and the second in a rhythm of its own or so long after the
    /// answers of the first: how many companies there are.
    fn beside_a_check(of_its_own: bool) -> usize {
        let mut talks = [0, 1].map(|server| Talk { server, ..Talk::default() });
        let mut at = [0, 57 * MS];
        for n in 0..40_usize {
            let times = |asked, took| Times { asked: Some(asked), answered: Some(asked + took), ..Times::default() };
            // The answers take up to 2 ms, and the drift of the one against the other is the sum of these.
            let took = [by_chance(n, 0, 2 * MS), by_chance(n * 7 + 3, 0, 2 * MS)];
            talks[0].times.push(times(at[0], took[0]));
            if !of_its_own {
                at[1] = at[0] + took[0] + 57 * MS;
            }
            talks[1].times.push(times(at[1], took[1]));
            at = [at[0] + took[0] + 250 * MS, at[1] + took[1] + 250 * MS];
        }
        crate::release::infer(&talks).companies.len()
    }

    #[test]
    fn a_check_that_keeps_step_with_another_one_follows_its_own_clock_and_is_no_stage() {
        assert_eq!((beside_a_check(true), beside_a_check(false)), (2, 1));
    }

    /// Two servers are asked, and two of three others when both have answered and the application has computed for 1 to 4 ms; then the user pauses for up
    /// to so many milliseconds: how many companies there are.
    fn computed_between(pause: u64) -> usize {
        let mut talks: Vec<Talk> = (0..5).map(|server| Talk { server, ..Talk::default() }).collect();
        let mut at = 0;
        for n in 0..100_usize {
            for (stage, conns) in [[0, 1], [2 + n % 3, 2 + (n + 1) % 3]].into_iter().enumerate() {
                let took = |k: usize| MS + by_chance(4 * n + 2 * stage + k, 0, 3 * MS);
                for (k, &conn) in conns.iter().enumerate() {
                    let times = Times { asked: Some(at), answered: Some(at + took(k)), ..Times::default() };
                    talks[conn].times.push(times);
                }
                at += took(0).max(took(1));
                at += if stage == 0 {
                    MS + by_chance(5 * n + 1, 0, 3 * MS)
                } else {
                    MS + by_chance(3 * n, 0, pause * MS)
                };
            }
        }
        crate::release::infer(&talks).companies.len()
    }

    #[test]
    fn what_takes_turns_with_another_and_follows_it_sooner_than_its_user_goes_on_is_a_stage() {
        assert_eq!((computed_between(50), computed_between(3)), (1, 2));
    }

    #[test]
    fn twenty_pairs_show_what_a_request_is_like() {
        let pairs = |count: u64| {
            let ask = |at: u64| Ask { at: at * MS, answered: Some((at + 2) * MS), ..Ask::default() };
            let one = |n: u64| [n * 100, n * 100, n * 100 + 5].map(ask);
            let asks: Vec<Ask> = (0..count).flat_map(one).collect();
            let parts: Vec<Request> =
                (0..count as u32).flat_map(|n| [vec![3 * n, 3 * n + 1], vec![3 * n + 2]]).collect();
            paired(&parts, &asks).map(|whole| whole.len())
        };
        assert_eq!((pairs(19), pairs(20)), (None, Some(20)));
    }

    /// Twenty servers that are asked one after another, thirty times, each 5 ms after the one before was answered; the user pauses for up to two seconds.
    #[test]
    fn sixteen_stages_with_pauses_between_them_are_joined() {
        let (mut talks, mut now) = (vec![Talk::default(); 20], 0);
        for round in 0..30 {
            now += super::super::steady::by_chance(round, 0, 2_000 * MS);
            for talk in &mut talks {
                let times = super::super::Times { asked: Some(now), answered: Some(now + MS), ..Default::default() };
                talk.times.push(times);
                now += 6 * MS;
            }
        }
        let asks = super::super::bursts::asks(&talks);
        let alone = super::super::bursts::Company::alone((0..asks.len() as u32).collect(), &asks);
        let classes: Vec<Class> = alone.iter().map(|company| Class::of(company, &talks, &asks)).collect();
        assert_eq!(classes.len(), 20);
        assert_eq!(stages(classes, &talks, &asks).0.len(), 4);
    }
}
