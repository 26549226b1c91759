//! How long servers took to begin their answers, where the tap can tell it from what the network did.
//!
//! A tap at the aggregator sees an answer when it has come through the queue, behind the answers of others, or after its first packets were
//! lost and sent again. Replaying that as the server's own time would make it wait twice.

use crate::Front;
use crate::workload::Message;

/// The fractional parts of its multiples are spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// If by how much the time in the queue is unsure is more than this share of the wait, the server's time was not seen.
const QUEUED: f64 = 0.02;
/// A server with at least so many waits that were seen is judged by its own; another one by those of all.
const OWN: usize = 4;
/// Passes of the estimate over all answers, unless it changes by no more than [`SETTLED`] before: those that are hardly bounded leave only slowly what
/// no other answer makes likely.
const PASSES: usize = 200;
/// Change of a pass, as a share of all answers, with which the estimate stands.
const SETTLED: f64 = 1e-4;
/// Passes of the estimate for one server, which begins with that of all.
const OWN_PASSES: usize = 12;
/// So many answers that met no others in the queue tell how long after a first write the next one comes.
const ALONE: usize = 8;
/// The estimate over all rests on so many answers at most, evenly taken: enough for its classes, and linear in answers.
const SAMPLE: usize = 4_096;

/// What is known of one wait for an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wait {
    pub lost: bool,
    /// In the queue for so long, at least and at most.
    pub queued: (u64, u64),
    /// What the links took for the size of the answer's first packet.
    pub drag_ns: u64,
    /// How long the server wrote nothing after its first write.
    pub went_on_ns: Option<u32>,
}

impl Wait {
    /// By what came before and behind the answer's first packet, and by its sender's time stamps where they tell. Where both do and disagree, the link was
    /// busy though it seemed not to be, and the sender knows better.
    pub fn of(front: Front, stamped: Option<(u64, u64)>) -> Wait {
        let order = (front.queued_ns, front.queued_ns + front.busy_ns);
        let both =
            stamped.map(|(least, most)| (least.max(order.0), most.min(order.1))).filter(|(least, most)| least <= most);
        Wait {
            lost: front.lost,
            queued: both.or(stamped).unwrap_or(order),
            drag_ns: front.drag_ns,
            went_on_ns: front.went_on_ns,
        }
    }

    /// Where the server's time lies, of an answer that came after `waited_ns`.
    fn bounds(&self, waited_ns: u64) -> Bounds {
        let most = waited_ns.saturating_sub(self.drag_ns + self.queued.0);
        let unsure = self.queued.1 - self.queued.0;
        let least = match (self.lost, unsure as f64 <= QUEUED * most as f64) {
            (true, _) => 0,
            (false, true) => most,
            // It was in the queue no longer than that.
            (false, false) => most.saturating_sub(unsure),
        };
        Bounds { least, most }
    }
}

/// Where the server's time lies: between the two, ends included.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: u64,
    most: u64,
}

/// Puts the service times right whose front was queued or lost. Each lies between two bounds; which values between them are likely is estimated
/// from all waits of the same server together, those that were seen and those that are bounded (Turnbull, "The empirical distribution function
/// with arbitrarily grouped, censored and truncated data", JRSS B 38, 1976), and each is set to a value between its bounds by that distribution.
/// Taking the values that were seen alone would be wrong: the first answer of a busy time is seen, and it is the quickest.
pub(crate) fn unqueue(messages: &mut [(u32, Message, Wait)]) {
    let asked = |m: &Message| m.request_bytes > 0 && m.response_bytes > 0;
    let of = |messages: &[(u32, Message, Wait)]| -> Vec<Bounds> {
        messages.iter().filter(|(_, m, _)| asked(m)).map(|(_, m, w)| w.bounds(m.service_ns)).collect()
    };
    let all = of(messages);
    if all.iter().all(|b| b.least == b.most) {
        // Everything was seen.
        let seen = messages.iter_mut().filter(|(_, m, _)| asked(m)).zip(all);
        seen.for_each(|((_, message, _), bounds)| message.service_ns = bounds.most);
        return;
    }
    let sample: Vec<Bounds> = all.iter().copied().step_by(all.len().div_ceil(SAMPLE)).collect();
    let everybody = Likely::of(&sample, &Likely::nothing_known(), PASSES);
    let mut number = 0;
    for connection in messages.chunk_by_mut(|a, b| a.0 == b.0) {
        let mine = of(connection);
        let own = (mine.iter().filter(|b| b.least == b.most).count() >= OWN)
            .then(|| Likely::of(&mine, &everybody, OWN_PASSES));
        let likely = own.as_ref().unwrap_or(&everybody);
        for (_, message, wait) in connection.iter_mut().filter(|(_, m, _)| asked(m)) {
            let bounds = wait.bounds(message.service_ns);
            message.service_ns = bounds.most;
            if bounds.least < bounds.most {
                number += 1;
                message.service_ns = likely.between(bounds, number);
                message.service_between_ns = Some((bounds.least, bounds.most));
            }
        }
    }
}

/// Sets how long after a first write the next one came to the median of what was seen of answers that met no others in the queue, or of all: elsewhere
/// packets of others came in between.
pub(crate) fn go_on(messages: &mut [(u32, Message, Wait)]) {
    let seen = |alone: bool| -> Vec<u32> {
        let of = messages.iter().filter(|(_, _, w)| !alone || (!w.lost && w.queued == (0, 0)));
        of.filter_map(|(_, _, w)| w.went_on_ns).collect()
    };
    let mut waits = Some(seen(true)).filter(|waits| waits.len() >= ALONE).unwrap_or_else(|| seen(false));
    waits.sort_unstable();
    let median = waits.get(waits.len() / 2).copied().unwrap_or(0);
    let pieces = messages.iter_mut().flat_map(|(_, message, _)| &mut message.pieces);
    pieces.filter(|piece| piece.straight_on).for_each(|piece| piece.pause_ns = u64::from(median));
}

/// How likely each service time is, in classes that are a fifth wider from one to the next.
struct Likely {
    share: Vec<f64>,
}

/// Classes of times: 0, then four to an octave from 1 us on, up to hours.
const CLASSES: usize = 140;
/// The shortest time that has a class of its own.
const FINEST_NS: f64 = 1_000.0;

fn class(ns: u64) -> usize {
    let octaves = (ns as f64 / FINEST_NS).log2();
    if octaves < 0.0 { 0 } else { (1 + (octaves * 4.0) as usize).min(CLASSES - 1) }
}

fn class_begins(class: usize) -> f64 {
    if class == 0 { 0.0 } else { FINEST_NS * ((class - 1) as f64 / 4.0).exp2() }
}

/// The share of a class that lies between bounds.
fn covered(class: usize, b: Bounds) -> f64 {
    let (from, to) = (class_begins(class), class_begins(class + 1));
    let inside = (b.most as f64).min(to) - (b.least as f64).max(from);
    if b.least == b.most { 1.0 } else { (inside / (to - from)).clamp(0.0, 1.0) }
}

/// The classes between two bounds. Those between the first and the last are covered whole.
struct Span {
    first: usize,
    last: usize,
    first_covered: f64,
    last_covered: f64,
}

impl Span {
    fn of(b: Bounds) -> Span {
        let (first, last) = (class(b.least), class(b.most));
        Span { first, last, first_covered: covered(first, b), last_covered: covered(last, b) }
    }

    fn covered(&self, class: usize) -> f64 {
        match class {
            c if c == self.first => self.first_covered,
            c if c == self.last => self.last_covered,
            _ => 1.0,
        }
    }
}

impl Likely {
    fn nothing_known() -> Likely {
        Likely { share: vec![1.0 / CLASSES as f64; CLASSES] }
    }

    fn of(all: &[Bounds], before: &Likely, passes: usize) -> Likely {
        let mut share = before.share.clone();
        let spans: Vec<Span> = all.iter().map(|&b| Span::of(b)).collect();
        for _ in 0..passes {
            let mut next = vec![0.0; CLASSES];
            for span in &spans {
                let total: f64 = (span.first..=span.last).map(|c| share[c] * span.covered(c)).sum();
                for (c, next) in next.iter_mut().enumerate().take(span.last + 1).skip(span.first) {
                    // Nothing in between is likely any more: what is bounded there counts for the lowest.
                    let lowest = f64::from(u8::from(c == span.first));
                    *next += if total > 0.0 { share[c] * span.covered(c) / total } else { lowest };
                }
            }
            let count = all.len() as f64;
            next.iter_mut().for_each(|n| *n /= count);
            let changed = share.iter().zip(&next).map(|(before, now)| (before - now).abs()).fold(0.0, f64::max);
            share = next;
            if changed <= SETTLED {
                break;
            }
        }
        Likely { share }
    }

    /// A value between the bounds; those of many numbers are distributed as the likely ones are.
    fn between(&self, b: Bounds, number: usize) -> u64 {
        let (first, last) = (class(b.least), class(b.most));
        let weight = |c: usize| self.share[c] * covered(c, b);
        let total: f64 = (first..=last).map(weight).sum();
        if total <= 0.0 {
            return b.least;
        }
        let mut left = (number as f64 * GOLDEN).fract() * total;
        for c in first..=last {
            let mine = weight(c);
            if left < mine {
                let (from, to) = (class_begins(c).max(b.least as f64), class_begins(c + 1).min(b.most as f64));
                return ((from + (to - from) * left / mine) as u64).clamp(b.least, b.most);
            }
            left -= mine;
        }
        b.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Piece;

    fn answer(service_ns: u64, wait: Wait) -> (u32, Message, Wait) {
        let message = Message {
            start_ns: 0,
            think_ns: 0,
            request_bytes: 100,
            service_ns,
            service_between_ns: None,
            response_bytes: 8_000,
            pieces: smallvec::smallvec![Piece::whole(8_000)],
            took_ns: None,
            given_up: false,
            overlapped: false,
            release: None,
        };
        (0, message, wait)
    }

    #[test]
    fn answers_that_are_hardly_bounded_follow_those_that_were_seen() {
        // Every third is seen, spread over 50 us; the others lost their first packets, some for milliseconds.
        let mut all: Vec<(u32, Message, Wait)> = (0..600)
            .map(|n| match n % 3 {
                0 => answer(n * 50_000 / 600, Wait::default()),
                _ => answer(400_000 + n * 10_000, Wait { lost: true, ..Wait::default() }),
            })
            .collect();
        unqueue(&mut all);
        let mut set: Vec<u64> = all.iter().filter(|(_, _, w)| w.lost).map(|(_, m, _)| m.service_ns).collect();
        set.sort_unstable();
        let at = |q: f64| set[(q * set.len() as f64) as usize];
        assert!((20_000..30_000).contains(&at(0.5)) && at(0.97) < 60_000, "{} {}", at(0.5), at(0.97));
        assert!(all.iter().all(|(_, m, w)| m.service_between_ns.is_some() == w.lost));
    }

    /// Rounds of twelve answers, 16 us each on the link, whose servers take 1 to 20 us: all but the first of a round wait for up to 160 us there, and
    /// the first may have waited for half of one. None was seen, and what waited last was taken for what its server took.
    #[test]
    fn answers_none_of_which_was_seen_are_bounded_by_each_other() {
        let mut all = Vec::new();
        for round in 0..20_u64 {
            let first = (0..12).map(|n| 1_000 + (12 * round + n) * 7_919 % 19_000).min().unwrap_or(0);
            for place in 0..12 {
                let queued = 16_000 * place;
                all.push(answer(first + queued, Wait { queued: (0, queued + 500), ..Wait::default() }));
            }
        }
        unqueue(&mut all);
        let mut set: Vec<u64> = all.iter().map(|(_, m, _)| m.service_ns).collect();
        set.sort_unstable();
        assert!(set[120] < 10_000 && set[239] < 20_000, "{} {}", set[120], set[239]);
        assert!(all.iter().all(|(_, m, _)| m.service_between_ns.is_some()));
    }

    #[test]
    fn data_that_came_for_a_fiftieth_of_the_wait_hide_nothing_of_it() {
        let busy = |busy_ns| answer(1_000_000, Wait { queued: (0, busy_ns), ..Wait::default() });
        let mut all = [busy(20_000), busy(20_001)];
        unqueue(&mut all);
        let between = all.iter().map(|(_, m, _)| m.service_between_ns).collect::<Vec<_>>();
        assert_eq!(between, [None, Some((979_999, 1_000_000))]);
        assert_eq!(all[0].1.service_ns, 1_000_000);
    }

    #[test]
    fn classes_of_times_begin_at_a_microsecond_and_are_four_to_an_octave() {
        assert_eq!([999, 1_000, 1_190, 2_000].map(class), [0, 1, 2, 5]);
    }

    /// One wait of `of` was seen to take nothing, and of the others only that they took less than an hour: each pass leaves (of - 1) / of of what is
    /// likely elsewhere.
    fn left_elsewhere(of: i32) -> f64 {
        let mut all = vec![Bounds { least: 0, most: 3_600_000_000_000 }; of as usize - 1];
        all.push(Bounds { least: 0, most: 0 });
        1.0 - Likely::of(&all, &Likely::nothing_known(), PASSES).share[0]
    }

    #[test]
    fn the_estimate_takes_two_hundred_passes_or_until_it_changes_by_no_more_than_a_ten_thousandth() {
        let after = |of: i32, passes: i32| (1.0 - 1.0 / f64::from(of)).powi(passes);
        let left = left_elsewhere(64);
        assert!(after(64, 205) < left && left < after(64, 195), "{left}");
        // A sixteenth of what is left moves: 1e-4 of all when 16e-4 are left.
        let left = left_elsewhere(16);
        assert!(0.0014 < left && left < 0.0016, "{left}");
    }

    /// One server takes 9 ms, and another was seen to take 1 ms a hundred times of four hundred: twelve passes leave (3/4)^12 of what the others make
    /// likely, 2 % of three hundred.
    #[test]
    fn twelve_passes_tell_a_server_s_own_times() {
        let lost = Wait { lost: true, ..Wait::default() };
        let (of, other) = (|ns, wait| answer(ns, wait), (0..200).map(|_| answer(9_000_000, Wait::default())));
        let mut all: Vec<_> = other.map(|(_, m, w)| (1, m, w)).collect();
        all.extend((0..100).map(|_| of(1_000_000, Wait::default())).map(|(_, m, w)| (2, m, w)));
        all.extend((0..300).map(|_| of(10_000_000, lost)).map(|(_, m, w)| (2, m, w)));
        unqueue(&mut all);
        let slow = all[300..].iter().filter(|(_, m, _)| m.service_ns > 5_000_000).count();
        assert!((3..=12).contains(&slow), "{slow}");
    }

    /// Every second answer was seen to take 1 ms, and nothing is known of the others but that they took less than a second. Where more than 4096 are
    /// thinned out, those that were seen go.
    #[test]
    fn the_estimate_over_all_rests_on_4096_answers_at_most() {
        let set = |count: u32| {
            let one = |n: u32| {
                let (_, m, w) = match n % 2 {
                    0 => answer(1_000_000_000, Wait { lost: true, ..Wait::default() }),
                    _ => answer(1_000_000, Wait::default()),
                };
                (n, m, w)
            };
            let mut all: Vec<_> = (0..count).map(one).collect();
            unqueue(&mut all);
            all.iter().filter(|(n, m, _)| n % 2 == 0 && m.service_ns <= 1_200_000).count() as u32
        };
        assert!(set(4_096) > 2_000 && set(4_098) < 1_800, "{} {}", set(4_096), set(4_098));
    }

    /// One server takes 9 ms; another was seen to take 1 ms so many times, and once nothing was seen but that it took no more than 10 ms.
    #[test]
    fn a_server_that_was_seen_four_times_is_judged_by_its_own_times() {
        let unseen = |times: usize| {
            let other = (0..200).map(|_| answer(9_000_000, Wait::default()));
            let mut all: Vec<_> = other.map(|(_, m, w)| (1, m, w)).collect();
            all.extend((0..times).map(|_| answer(1_000_000, Wait::default())).map(|(_, m, w)| (2, m, w)));
            let (_, message, wait) = answer(10_000_000, Wait { lost: true, ..Wait::default() });
            all.push((2, message, wait));
            unqueue(&mut all);
            all[200 + times].1.service_ns / 1_000_000
        };
        assert!(unseen(3) >= 8 && unseen(4) <= 1, "{} {}", unseen(3), unseen(4));
    }

    #[test]
    fn times_of_six_hours_are_told_apart_and_longer_ones_are_of_one_class() {
        let hours = |hours: f64| class((hours * 3.6e12) as u64);
        assert!(hours(5.5) < hours(6.5) && hours(6.5) < hours(7.0) && hours(7.0) == hours(1_000.0));
    }

    /// Answers with a header and a body: `alone` whose next packet came 20 us later, and 20 among others that came 90 us later.
    fn gone_on(alone: usize) -> Vec<u64> {
        let pieces = [Piece::whole(200), Piece { straight_on: true, ..Piece::whole(7_800) }];
        let one = |n: usize| {
            let (queued, went_on) = if n < alone { ((0, 0), 20_000) } else { ((0, 500_000), 90_000) };
            let wait = Wait { queued, went_on_ns: Some(went_on), ..Wait::default() };
            let (connection, message, wait) = answer(1_000_000, wait);
            (connection, Message { pieces: pieces.into_iter().collect(), ..message }, wait)
        };
        let mut all: Vec<_> = (0..alone + 20).map(one).collect();
        go_on(&mut all);
        let mut pauses: Vec<u64> = all.iter().flat_map(|(_, m, _)| m.pieces.iter().map(|p| p.pause_ns)).collect();
        pauses.sort_unstable();
        pauses.dedup();
        pauses
    }

    #[test]
    fn eight_answers_that_met_no_others_tell_when_a_body_follows_its_header() {
        assert_eq!((gone_on(8), gone_on(7)), (vec![0, 20_000], vec![0, 90_000]));
    }
}
