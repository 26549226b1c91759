//! Stages that the application computes between, for longer than it turns from an answer to the next request.
//!
//! What is asked as often as others, and each time about as long after a whole round of their answers, is a stage of their requests: their user waits for
//! it. Unless these follow it as steadily: then two requests take turns.

use super::SEEN;
use super::Talk;
use super::bursts::Ask;
use super::candidates::{self, COVERAGE, Choice, Need, Streams};
use super::class::Class;
use super::groups::{FOLLOWS, Group};
use super::requests::{BESIDE, Cut, RARELY, Request};

/// A request has no more stages with pauses between them than this.
const STAGES: usize = 16;
/// Fewer rounds show no steadiness.
const FEWEST: usize = 20;
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
    let plain = |class: &Class| {
        let whole = class.rest.is_empty() && class.spare.iter().all(Vec::is_empty);
        !class.upstream && whole && class.bursts.len() >= FEWEST
    };
    let second = &classes[n];
    if !plain(second) {
        return None;
    }
    for other in streams.answered_before(n) {
        let first = &classes[other];
        let few = first.bursts.len().abs_diff(second.bursts.len()) as f64 > RARELY * first.bursts.len() as f64;
        if !plain(first) || few {
            continue;
        }
        let (Some(after), None) = (Follows::of(first, second, asks), Follows::of(second, first, asks)) else {
            continue;
        };
        let mut requests = first.requests();
        for (mine, of) in second.requests().into_iter().zip(after.round) {
            match of {
                Some(of) => requests[of].extend(mine),
                None => requests.push(mine),
            }
        }
        requests.iter_mut().for_each(|request| request.sort_unstable());
        requests.sort_unstable_by_key(|request| request[0]);
        return Some((other, n, requests));
    }
    None
}

/// Rounds of one class that follow those of another after a steady time.
struct Follows {
    /// Of each, the other's.
    round: Vec<Option<usize>>,
}

impl Follows {
    /// None: they do not, or no more than chance has it.
    fn of(first: &Class, second: &Class, asks: &[Ask]) -> Option<Follows> {
        let ended = |i: usize| Some((first.answered(i, Need::AllBut(0))?.0, i));
        let mut ends: Vec<(u64, usize)> = (0..first.bursts.len()).filter_map(ended).collect();
        ends.sort_unstable();
        let starts: Vec<u64> = (0..second.bursts.len()).map(|i| second.start(i, asks)).collect();
        let lately = |start: u64| {
            let before = ends.partition_point(|&(end, _)| end <= start + SEEN);
            ends[before.saturating_sub(BESIDE)..before].iter()
        };
        let mut delays: Vec<u64> =
            starts.iter().flat_map(|&at| lately(at).map(move |e| at.saturating_sub(e.0))).collect();
        delays.sort_unstable();
        let most = |delay: u64| (delay as f64 * ABOUT) as u64 + SEEN;
        let gap = ends.last()?.0.saturating_sub(ends.first()?.0).max(1) as f64 / ends.len() as f64;
        let by_chance = |least: u64| (most(least) - least) as f64 / gap;
        // How many more there are than by chance.
        let beyond = |least: u64| {
            let within = delays.partition_point(|&d| d <= most(least)) - delays.partition_point(|&d| d < least);
            within as f64 - by_chance(least) * starts.len() as f64
        };
        let least = delays.iter().copied().map(|d| (beyond(d), d)).max_by(|a, b| a.0.total_cmp(&b.0))?.1;
        if by_chance(least) > FOLLOWS {
            return None;
        }
        let mut taken = vec![false; first.bursts.len()];
        let round: Vec<Option<usize>> = starts
            .iter()
            .map(|&at| {
                let fits =
                    |&&(end, i): &&(u64, usize)| !taken[i] && (least..=most(least)).contains(&at.saturating_sub(end));
                let (_, i) = *lately(at).find(fits)?;
                taken[i] = true;
                Some(i)
            })
            .collect();
        let known = round.iter().flatten().count() as f64;
        (known >= COVERAGE * second.bursts.len() as f64).then_some(Follows { round })
    }
}

fn merged(stages: [&Class; 2], requests: Vec<Request>, talks: &[Talk], asks: &[Ask]) -> Class {
    let mut connections = [stages[0].connections.as_slice(), &stages[1].connections].concat();
    connections.sort_unstable();
    let mut all = requests.concat();
    all.sort_unstable();
    let group = Group { connections, asks: all, companies: Vec::new(), several: true };
    Class::of_requests(&group, &Cut { requests, concurrent: true, ..Cut::default() }, talks, asks)
}
