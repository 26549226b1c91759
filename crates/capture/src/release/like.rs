//! Requests that run beside each other, told apart by those that run alone: how many messages they have, whom they ask first and next, and how soon
//! each message follows what it waits for.
//!
//! One application does the same thing again and again, so what a request is like is known from those that none disturbs. Where two share a pool, a
//! message is of the request whose next message it can be: its place asks that server, no more answers are missing than mostly are there, and
//! it comes about as long after the last answer, or after the message before, as such messages do.

use super::bursts::{AT_ONCE, Ask, TOGETHER};
use super::groups::FOLLOWS;
use super::requests::{BESIDE, RARELY, Request};
use super::steady::{RESOLUTION, median, quantile};
use std::ops::RangeInclusive;

/// What is known of fewer requests is no rule.
const KNOWN: usize = 20;
/// So few of them may be mixed up: no more than that ask a server at its place, come later or with more answers missing.
const MIXED_UP: f64 = 0.02;
/// The application may be held up for so many times as long as it mostly is.
const HELD_UP: u64 = 50;
/// What the requests of an application have in common.
#[derive(Debug)]
pub(super) struct Shape {
    /// By place in a request.
    places: Vec<Place>,
    /// A request may ask a server twice.
    again: bool,
}

#[derive(Debug)]
struct Place {
    /// Who is asked, in order.
    servers: Vec<u32>,
    /// At most so many answers are missing.
    missing: usize,
    /// What it follows is the message before it, in a loop over the servers; else the last answer.
    loops: bool,
    /// After so long,
    usual: u64,
    /// and at most.
    longest: u64,
}

impl Shape {
    /// Of the requests of the most frequent size, those that run alone where these are enough.
    pub fn of(requests: &[Request], asks: &[Ask]) -> Option<Shape> {
        let mut sizes: Vec<usize> = requests.iter().map(Vec::len).filter(|&size| size > 1).collect();
        sizes.sort_unstable();
        let often = sizes.chunk_by(|a, b| a == b).max_by_key(|same| same.len())?;
        let (size, count) = (often[0], often.len());
        if count < KNOWN {
            return None;
        }
        let mut ends: Vec<(u64, u64, usize)> =
            requests.iter().enumerate().map(|(n, r)| (first(r, asks), last(r, asks), n)).collect();
        ends.sort_unstable();
        // In order of their beginnings: alone is who begins after all before have ended, and ends before the next begins.
        let mut until = 0;
        let mut alone = Vec::new();
        for (place, &(begin, end, n)) in ends.iter().enumerate() {
            let next = ends.get(place + 1).map_or(u64::MAX, |next| next.0);
            if begin > until && end < next && requests[n].len() == size {
                alone.push(n);
            }
            until = until.max(end);
        }
        // Too few run alone: the usual size, which chance seldom makes, has to do.
        if alone.len() < KNOWN {
            alone = (0..requests.len()).filter(|&n| requests[n].len() == size).collect();
        }
        let known: Vec<Request> = alone.iter().map(|&n| in_order(&requests[n], asks)).collect();
        let again = known.iter().filter(|request| asks_again(request, asks)).count();
        let mut places: Vec<Place> = (0..size).map(|place| Place::of(place, &known, asks)).collect();
        // A loop over the servers waits for no answer: where the network is held up all of them are missing, more than ever else.
        // The first answer may come before the second message.
        let looped = places.iter().skip(2).take_while(|place| place.loops).count();
        places.iter_mut().enumerate().skip(2).take(looped).for_each(|(before, place)| place.missing = before);
        Some(Shape { places, again: again as f64 > MIXED_UP * known.len() as f64 })
    }

    /// The messages of a group as requests of this shape; what does not fit is a request of fewer messages.
    pub fn requests(&self, mine: &[u32], asks: &[Ask]) -> Vec<Request> {
        let mut all: Vec<Request> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for &n in &in_order(mine, asks) {
            let ask = &asks[n as usize];
            let at = ask.at;
            // What is whole, or was left for too long, takes no more messages.
            open.retain(|&number| all[number].len() < self.places.len() && self.goes_on(&all[number], at, asks));
            let fits = |&number: &usize| {
                let (far, late) = self.fits(&all[number], ask, asks)?;
                Some((late, far, number))
            };
            // Who begins no request goes on with one, however late.
            let begins = self.places[0].asks(ask.server);
            let best = open
                .iter()
                .filter_map(fits)
                .filter(|(late, ..)| !(begins && *late))
                .min_by(|a, b| (a.0, a.1, a.2).partial_cmp(&(b.0, b.1, b.2)).unwrap_or(std::cmp::Ordering::Equal));
            // In time before late, then nearest to usual, then the one that began first.
            match best {
                Some((_, _, number)) => all[number].push(n),
                None if !begins && let Some(both) = self.parted(n, &mut all, asks) => {
                    open.retain(|number| !both.contains(number));
                    open.extend(both);
                }
                None => {
                    open.push(all.len());
                    all.push(vec![n]);
                }
            }
        }
        self.complete(&mut all, asks);
        all.iter_mut().for_each(|request| request.sort_unstable());
        all.sort_unstable_by_key(|request| request[0]);
        all
    }

    /// Who begins no request and goes on with none shows that one has begun whose first messages were taken for the last of another: parts the two, and adds
    /// the message to the one that it goes on with. Both take messages again.
    fn parted(&self, n: u32, all: &mut Vec<Request>, asks: &[Ask]) -> Option<[usize; 2]> {
        let ask = &asks[n as usize];
        let next = |request: &[u32]| {
            let goes_on = request.len() < self.places.len() && self.goes_on(request, ask.at, asks);
            goes_on && self.fits(request, ask, asks).is_some_and(|(_, late)| !late)
        };
        for number in (all.len().saturating_sub(BESIDE)..all.len()).rev() {
            // From the end: as few messages as may be change their request.
            for place in (1..all[number].len()).rev() {
                let (kept, begun) = all[number].split_at(place);
                let which = [next(begun), next(kept)];
                if which == [false; 2] || !self.is_beginning(begun, asks) {
                    continue;
                }
                let begun = all[number].split_off(place);
                all.push(begun);
                let both = [number, all.len() - 1];
                all[if which[0] { both[1] } else { both[0] }].push(n);
                return Some(both);
            }
        }
        None
    }

    /// Whether messages are the first of a request, each in time.
    fn is_beginning(&self, messages: &[u32], asks: &[Ask]) -> bool {
        let follows = |(place, &n): (usize, &u32)| {
            place == 0 || self.fits(&messages[..place], &asks[n as usize], asks).is_some_and(|(_, late)| !late)
        };
        self.places[0].asks(asks[messages[0] as usize].server) && messages.iter().enumerate().all(follows)
    }

    /// A message that was taken for another request's leaves its own incomplete, and one over: what is left over at that time completes it.
    fn complete(&self, all: &mut Vec<Request>, asks: &[Ask]) {
        let size = self.places.len();
        let mut incomplete: Vec<usize> = (0..all.len()).filter(|&n| all[n].len() < size).collect();
        incomplete.sort_by_key(|&n| (first(&all[n], asks), n));
        for place in 0..incomplete.len() {
            let n = incomplete[place];
            let begin = first(&all[n], asks);
            let fits = |&before: &usize| {
                let request = &all[before];
                let asked = |&n: &u32| request.iter().any(|&of| asks[of as usize].server == asks[n as usize].server);
                !request.is_empty()
                    && request.len() + all[n].len() <= size
                    && self.goes_on(request, begin, asks)
                    && (self.again || !all[n].iter().any(asked))
            };
            // Rather where each message is at a place at which its server is asked.
            let in_place = |&before: &usize| {
                let whole = in_order(&[all[before].as_slice(), &all[n]].concat(), asks);
                whole.iter().zip(&self.places).all(|(&n, place)| place.asks(asks[n as usize].server))
            };
            let beside = || incomplete[place.saturating_sub(BESIDE)..place].iter().copied().filter(fits);
            let before = beside().find(in_place).or_else(|| beside().next());
            if let Some(before) = before {
                let mut rest = std::mem::take(&mut all[n]);
                all[before].append(&mut rest);
            }
        }
        all.retain(|request| !request.is_empty());
    }

    /// How far from usual the messages of whole requests follow each other: the mean over them, in the unit of [`super::steady::cost`].
    pub fn misfit(&self, requests: &[Request], asks: &[Ask]) -> f64 {
        let (mut sum, mut count) = (0.0, 0_usize);
        for request in requests.iter().filter(|request| request.len() == self.places.len()) {
            let request = in_order(request, asks);
            for (n, place) in self.places.iter().enumerate().skip(1) {
                sum += place.far(&place.since(&request[..n], asks[request[n] as usize].at, asks));
                count += 1;
            }
        }
        sum / count.max(1) as f64
    }

    /// Answers are missing, or came lately.
    fn goes_on(&self, request: &[u32], at: u64, asks: &[Ask]) -> bool {
        let Some(place) = self.places.get(request.len()) else { return false };
        last(request, asks).saturating_add(HELD_UP * place.longest) >= at
    }

    /// How far from usual it would be that this message is the next of a request, and whether it would be later than such messages are.
    fn fits(&self, request: &[u32], ask: &Ask, asks: &[Ask]) -> Option<(f64, bool)> {
        let place = &self.places[request.len()];
        let at = ask.at;
        place.asks(ask.server).then_some(())?;
        if !self.again && request.iter().any(|&n| asks[n as usize].server == ask.server) {
            return None;
        }
        // Who waits for all but so many answers does not ask while more are missing.
        let missing = missing(request, at, asks);
        (missing <= place.missing).then_some(())?;
        let since = place.since(request, at, asks);
        Some((place.far(&since), *since.start() > place.longest))
    }
}

impl Place {
    fn of(place: usize, known: &[Request], asks: &[Ask]) -> Place {
        let mut servers: Vec<u32> = known.iter().map(|request| asks[request[place] as usize].server).collect();
        servers.sort_unstable();
        // A server that is asked at this place once in a while was another request's.
        let often = |same: &&[u32]| same.len() as f64 > MIXED_UP * known.len() as f64;
        let servers = servers.chunk_by(|a, b| a == b).filter(often).map(|same| same[0]).collect();
        let before = |request: &Request| (request[..place].to_vec(), asks[request[place] as usize].at);
        let each = || known.iter().map(before);
        // Answers that were missing when the place's message left.
        let short: Vec<u64> = each().map(|(before, at)| missing(&before, at, asks) as u64).collect();
        let mut told =
            Place { servers, missing: quantile(&short, 1.0 - MIXED_UP) as usize, loops: false, usual: 0, longest: 0 };
        if place == 0 {
            return told;
        }
        let since =
            |told: &Place| each().map(|(before, at)| *told.since(&before, at, asks).start()).collect::<Vec<u64>>();
        let after_answers = since(&told);
        told.loops = true;
        let after_asks = since(&told);
        // What follows in a loop is steadier after the message before than after answers, which come in the meantime or have not come.
        told.loops = median(&short) > 0 && median(&after_asks) <= median(&after_answers)
            || quantile(&after_asks, 1.0 - MIXED_UP) <= AT_ONCE;
        let known = if told.loops { after_asks } else { after_answers };
        (told.usual, told.longest) = (median(&known), quantile(&known, 1.0 - MIXED_UP).max(AT_ONCE));
        told
    }

    fn asks(&self, server: u32) -> bool {
        self.servers.binary_search(&server).is_ok()
    }

    /// How long ago what this place follows had happened in a request, at least and at most.
    fn since(&self, request: &[u32], at: u64, asks: &[Ask]) -> RangeInclusive<u64> {
        let asked = request.last().map_or(0, |&n| asks[n as usize].at);
        let come = request.iter().map(|&n| &asks[n as usize]).filter(|ask| !ask.is_missing(at));
        let answer = come.filter_map(|ask| Some((ask.answered?, ask.unsure))).max();
        match answer {
            // The tap may know an arrival only to within `unsure`: the nearest time between both bounds counts.
            Some((answered, unsure)) if !self.loops => {
                at.saturating_sub(answered)..=at.saturating_sub(answered.saturating_sub(unsure))
            }
            _ => at.saturating_sub(asked)..=at.saturating_sub(asked),
        }
    }

    /// How far from usual that is, in the unit of [`super::steady::cost`]. Logarithmic: twice as far is a step, whatever the scale.
    fn far(&self, since: &RangeInclusive<u64>) -> f64 {
        let nearest = self.usual.clamp(*since.start(), *since.end());
        // 20 us from usual cost ln 2 = 0.7, 2 ms 4.6.
        (nearest.abs_diff(self.usual) as f64 / RESOLUTION).ln_1p()
    }
}

/// Whether so many requests begin at once after something that one of another request would have followed: these are parts of requests.
pub(super) fn are_parts(requests: &[Request], asks: &[Ask]) -> bool {
    let mut events: Vec<u64> = Vec::new();
    for &n in requests.iter().flatten() {
        let ask = &asks[n as usize];
        events.push(ask.at);
        events.extend(ask.answered);
    }
    events.sort_unstable();
    begin_after(requests, &events, asks)
}

/// Whether so many requests begin at once after another one does: one loop of the application began them, and they are one.
pub(super) fn begin_together(requests: &[Request], asks: &[Ask]) -> bool {
    let mut begun: Vec<u64> = requests.iter().map(|request| first(request, asks)).collect();
    begun.sort_unstable();
    begin_after(requests, &begun, asks)
}

/// Whether requests begin at once after one of the moments, which are in order, more often than chance has it.
fn begin_after(requests: &[Request], moments: &[u64], asks: &[Ask]) -> bool {
    let (Some(&begin), Some(&end)) = (moments.first(), moments.last()) else { return false };
    // Chance: the share of the time that lies shortly behind one of the moments.
    // Behind each moment 500 us, or less where the next one comes before that.
    let near: u64 = moments.windows(2).map(|pair| (pair[1] - pair[0]).min(TOGETHER)).sum();
    let by_chance = near as f64 / (end - begin).max(1) as f64;
    let follows = |request: &&Request| {
        let at = first(request, asks);
        let before = moments.partition_point(|&moment| moment < at);
        before > 0 && at - moments[before - 1] <= TOGETHER
    };
    let share = requests.iter().filter(follows).count() as f64 / requests.len().max(1) as f64;
    // The excess over chance, of what chance leaves.
    share - by_chance > FOLLOWS * (1.0 - by_chance)
}

/// Whether requests begin before all answers to the one before have come, and hardly ever before half of them have: so does one user who goes on without
/// the last of them, or whose last answer seems to come late, and no second one, who begins at any time.
pub(super) fn some_will_do(requests: &[Request], asks: &[Ask]) -> bool {
    let (mut early, mut very_early) = (0_usize, 0_usize);
    for pair in requests.windows(2) {
        let missing = missing(&pair[0], first(&pair[1], asks), asks);
        early += usize::from(missing > 0);
        // A second user begins at any time, before half of the answers as often as after.
        very_early += usize::from(2 * missing > pair[0].len());
    }
    early > 0 && very_early as f64 <= RARELY * early as f64
}

/// In the order in which the application decided to ask: what waits for a handshake leaves after those that came later.
fn in_order(request: &[u32], asks: &[Ask]) -> Request {
    let mut all = request.to_vec();
    all.sort_unstable_by_key(|&n| (asks[n as usize].at, n));
    all
}

/// When the first message of a request left.
fn first(request: &[u32], asks: &[Ask]) -> u64 {
    request.iter().map(|&n| asks[n as usize].at).min().unwrap_or(0)
}

/// When the last answer of a request had come, or its last message left.
fn last(request: &[u32], asks: &[Ask]) -> u64 {
    request.iter().map(|&n| asks[n as usize].answered.unwrap_or(asks[n as usize].at)).max().unwrap_or(0)
}

/// Answers that are missing at a moment.
fn missing(request: &[u32], at: u64, asks: &[Ask]) -> usize {
    request.iter().filter(|&&n| asks[n as usize].is_missing(at)).count()
}

fn asks_again(request: &[u32], asks: &[Ask]) -> bool {
    let mut servers: Vec<u32> = request.iter().map(|&n| asks[n as usize].server).collect();
    servers.sort_unstable();
    servers.windows(2).any(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    /// Of each request, when its messages leave and are answered, in microseconds; the first goes to server 0, the next to server 1.
    fn asks(requests: &[[(u64, u64); 2]]) -> Vec<Ask> {
        let message = |(server, &(at, answered)): (usize, &(u64, u64))| Ask {
            at: at * US,
            answered: Some(answered * US),
            server: server as u32,
            ..Ask::default()
        };
        let mut all: Vec<Ask> = requests.iter().flat_map(|request| request.iter().enumerate().map(message)).collect();
        all.sort_by_key(|ask| ask.at);
        all
    }

    /// So many requests that run alone: a call of 300 us, and 200 us later another.
    fn alone(count: u64) -> Vec<[(u64, u64); 2]> {
        (0..count).map(|n| n * 10_000).map(|at| [(at, at + 300), (at + 500, at + 800)]).collect()
    }

    fn shape(count: u64) -> Option<Shape> {
        let asks = asks(&alone(count));
        Shape::of(&(0..count as u32).map(|n| vec![2 * n, 2 * n + 1]).collect::<Vec<_>>(), &asks)
    }

    #[test]
    fn twenty_requests_tell_what_they_are_like() {
        assert!(shape(19).is_none() && shape(20).is_some());
    }

    #[test]
    fn whom_two_of_a_hundred_requests_ask_at_a_place_is_not_asked_there() {
        let servers = |odd: usize| {
            let mut asks = asks(&alone(100));
            asks.iter_mut().take(2 * odd).skip(1).step_by(2).for_each(|ask| ask.server = 7);
            let requests: Vec<Request> = (0..100).map(|n| vec![2 * n, 2 * n + 1]).collect();
            Shape::of(&requests, &asks).unwrap().places[1].servers.clone()
        };
        assert_eq!((servers(2), servers(3)), (vec![1], vec![1, 7]));
    }

    #[test]
    fn the_answer_that_came_first_is_followed_first() {
        // The answers of two requests come 60 us apart, and each is followed 200 us later.
        let two = asks(&[[(0, 300), (500, 700)], [(40, 360), (560, 760)]]);
        assert_eq!(shape(20).unwrap().requests(&[0, 1, 2, 3], &two), [[0, 2], [1, 3]]);
    }

    #[test]
    fn a_call_that_waits_for_an_answer_is_not_made_before_it() {
        let two = asks(&[[(0, 900), (1_100, 1_300)], [(40, 300), (500, 700)]]);
        assert_eq!(shape(20).unwrap().requests(&[0, 1, 2, 3], &two), [[0, 3], [1, 2]]);
    }

    #[test]
    fn a_loop_over_the_servers_waits_for_none_of_its_answers_and_a_chain_for_each() {
        // Of twenty requests of four messages, one each so many microseconds, answered after so many, the first one sooner: how many answers may be missing
        // at each.
        let missing = |every: u64, first: u64, took: u64| {
            let message = |n: u32| {
                let at = u64::from(n / 4) * 10_000 + u64::from(n % 4) * every;
                let took = if n.is_multiple_of(4) { first } else { took };
                Ask { at: at * US, answered: Some((at + took) * US), server: n % 4, ..Ask::default() }
            };
            let known: Vec<Request> = (0..20).map(|n| (4 * n..4 * n + 4).collect()).collect();
            let shape = Shape::of(&known, &(0..80).map(message).collect::<Vec<_>>()).unwrap();
            shape.places.iter().map(|place| place.missing).collect::<Vec<_>>()
        };
        assert_eq!((missing(200, 100, 1_000), missing(900, 800, 800)), (vec![0, 0, 2, 3], vec![0; 4]));
    }

    #[test]
    fn an_answer_whose_time_is_unsure_may_have_come_before_the_call_that_waits_for_it() {
        // The answer of the first came after 900 us, or up to so much before; the other's call is made late.
        let told = |unsure: u64| {
            let mut two = asks(&[[(0, 900), (500, 1_000)], [(40, 340), (1_100, 1_300)]]);
            two[0].unsure = unsure * US;
            shape(20).unwrap().requests(&[0, 1, 2, 3], &two)
        };
        assert_eq!((told(0), told(600)), (vec![vec![0, 3], vec![1, 2]], vec![vec![0, 2], vec![1, 3]]));
    }

    #[test]
    fn who_begins_no_request_shows_that_those_before_it_began_one() {
        // Servers 0 and 1 at once, and 200 us after their answers one of the two again.
        let message = |server: u32, at: u64, answered: u64| Ask {
            at: at * US,
            answered: Some(answered * US),
            server,
            ..Ask::default()
        };
        let one = |n: u32| {
            let at = u64::from(n) * 10_000;
            [message(0, at, at + 280), message(1, at + 20, at + 300), message(n % 2, at + 500, at + 700)]
        };
        let all: Vec<Ask> = (0..20).flat_map(one).collect();
        let known: Vec<Request> = (0..20).map(|n| vec![3 * n, 3 * n + 1, 3 * n + 2]).collect();
        let shape = Shape::of(&known, &all).unwrap();
        // Another request begins where the first is about to ask again: its second message begins none.
        let two = [
            message(0, 0, 280),
            message(1, 20, 300),
            message(0, 500, 780),
            message(1, 520, 800),
            message(1, 540, 740),
            message(0, 1_000, 1_200),
        ];
        assert_eq!(shape.requests(&[0, 1, 2, 3, 4, 5], &two), [[0, 1, 4], [2, 3, 5]]);
    }

    #[test]
    fn who_is_held_up_fifty_times_as_long_goes_on_and_not_later() {
        let parts = |after: u64| {
            let one = asks(&[[(0, 300), (300 + after, 400 + after)]]);
            shape(20).unwrap().requests(&[0, 1], &one).len()
        };
        assert_eq!((parts(10_000), parts(10_001)), (1, 2));
    }

    #[test]
    fn who_begins_after_half_of_the_answers_goes_on_without_the_others() {
        // Of twenty requests so many begin before the second answer of the one before, and so many before both.
        let told = |early: u64, very_early: u64| {
            let each = |n: u64| {
                let at = n * 10_000;
                let second = if n < early { at + 12_000 } else { at + 800 };
                let first = if n < very_early { at + 11_000 } else { at + 300 };
                [(at, first), (at + 20, second)]
            };
            let asks = asks(&(0..20).map(each).collect::<Vec<_>>());
            let mut of: Vec<Request> = vec![Vec::new(); 20];
            for (n, ask) in asks.iter().enumerate() {
                of[(ask.at / US / 10_000) as usize].push(n as u32);
            }
            some_will_do(&of, &asks)
        };
        assert!(!told(0, 0) && told(1, 0) && told(10, 1) && !told(9, 1));
    }

    #[test]
    fn halves_of_requests_are_parts_for_they_follow_each_other() {
        let asks = asks(&alone(40));
        let halves: Vec<Request> = (0..80).map(|n| vec![n]).collect();
        let whole: Vec<Request> = (0..40).map(|n| vec![2 * n, 2 * n + 1]).collect();
        assert!(are_parts(&halves, &asks) && !are_parts(&whole, &asks));
    }

    #[test]
    fn requests_that_one_loop_begins_are_one() {
        // Of a hundred requests so many begin 20 us after another one, the others at times of their own.
        let told = |together: u64| {
            let at = |n: u64| if n % 2 == 1 && n / 2 < together { (n - 1) * 10_000 + 20 } else { n * 10_000 };
            let asks = asks(&(0..100).map(|n| [(at(n), at(n) + 300), (at(n) + 40, at(n) + 800)]).collect::<Vec<_>>());
            let mut of: Vec<Request> = vec![Vec::new(); 100];
            for (n, ask) in asks.iter().enumerate() {
                let mine = (0..100).find(|&n| ask.at / US == at(n) || ask.at / US == at(n) + 40);
                of[mine.unwrap() as usize].push(n as u32);
            }
            begin_together(&of, &asks)
        };
        assert!(!told(0) && !told(30) && told(40));
    }
}
