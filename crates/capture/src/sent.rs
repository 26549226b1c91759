//! When a sender sent what passed the tap, by its time stamps (RFC 7323).
//!
//! A tap behind a queue sees packets late, and their time stamps say when they were sent: to a tick, and by a clock that the tap does not know. The packet
//! that passes soonest after its tick was sent as the clock ticked, and waited no longer than data had come without a break; how much later another one
//! passes is what it waited more, and up to one tick. Two clocks drift apart, so the soonest are a line below all packets (Moon, Skelly and Towsley,
//! "Estimation and removal of clock skew from network delay measurements", INFOCOM 1999).

use crate::{Analysis, Connection, Front, Turn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A tick of Linux, FreeBSD and macOS, nanoseconds. A clock with other ticks seems to run away, and says nothing here.
pub(crate) const TICK: u64 = 1_000_000;
/// The soonest of so many runs passed within a sixteenth of a tick after the soonest that there can be, at the average.
const FEWEST: usize = 16;
/// By how much the soonest of them is late, at the average.
const AMISS: u64 = TICK / FEWEST as u64;
/// Clocks of computers are no further apart than this share of the time.
const SKEW: f64 = 200e-6;
/// Over so short a time ticks of another length are not told from a drift.
const SHORT: u64 = 300_000_000;

/// How much later than their ticks packets of a run passed, on a scale of the connection's own, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// The first.
    pub first: i64,
    /// The soonest of all.
    pub soonest: i64,
    /// The soonest of all, each without what it may have waited in the queue.
    pub sent: i64,
}

impl Late {
    /// Of a first packet that may have waited in the queue for so long, nanoseconds.
    pub(crate) fn new(late: i64, waited: u64) -> Late {
        Late { first: late, soonest: late, sent: late - waited as i64 }
    }

    /// Another packet of the run.
    #[inline]
    pub(crate) fn with(self, late: i64, waited: u64) -> Late {
        Late { soonest: self.soonest.min(late), sent: self.sent.min(late - waited as i64), ..self }
    }
}

/// The line of the soonest packets of one direction of a connection.
pub(crate) struct Soonest {
    at: i64,
    late: f64,
    slope: f64,
    /// By how much sooner a packet may pass that waited nowhere.
    sooner: f64,
    /// By how much the slope may be amiss.
    drift: f64,
}

impl Soonest {
    /// Of runs, each with the time of its first packet, in their order; none where they do not tell.
    pub fn of(runs: impl Iterator<Item = (u64, Late)>) -> Option<Soonest> {
        let runs: Vec<(i64, Late)> = runs.map(|(at, late)| (at as i64, late)).collect();
        let (&(began, _), &(ended, _)) = runs.first().zip(runs.last())?;
        if runs.len() < FEWEST || (ended - began) as u64 <= SHORT {
            return None;
        }
        let points: Vec<(i64, i64)> = runs.iter().map(|&(at, late)| (at, late.soonest)).collect();
        let seen = below(&points)?;
        // Packets leave anywhere within their ticks: over a short time the soonest of them seem to drift by up to a tick.
        if seen.slope.abs() > SKEW + TICK as f64 / (ended - began) as f64 {
            return None;
        }
        let line = if seen.slope.abs() > SKEW { level(&points)? } else { seen };
        // What each may have waited is known too badly to tell the drift.
        let sooner = runs.iter().map(|&(at, late)| -line.later(at, late.sent)).fold(0.0, f64::max);
        Some(Soonest { sooner, ..line })
    }

    /// How much later than the line a packet passed at `at`, nanoseconds.
    fn later(&self, at: i64, late: i64) -> f64 {
        late as f64 - self.late - self.slope * (at - self.at) as f64
    }

    /// How much longer than the soonest a packet that passed at `at` was under way, if it was sent behind its tick. So the longest of many waits of one
    /// length were.
    fn least(&self, at: u64, late: i64) -> u64 {
        (self.later(at as i64, late) - TICK as f64).max(0.0) as u64
    }

    /// For how long, at least and at most, that packet was under way beside the least.
    pub fn waited(&self, at: u64, late: i64) -> (u64, u64) {
        let drifted = (self.drift * (at as i64 - self.at).unsigned_abs() as f64) as u64;
        let most = (self.later(at as i64, late) + self.sooner).max(0.0) as u64;
        (self.least(at, late).saturating_sub(drifted), most + drifted + AMISS)
    }
}

/// The line below all points that is nearest to them: the side of their lower hull at the mean of their times.
fn below(points: &[(i64, i64)]) -> Option<Soonest> {
    let mut hull: Vec<(i64, i64)> = Vec::new();
    for &p in points {
        if hull.last().is_some_and(|last| last.0 >= p.0) {
            continue;
        }
        while let [.., a, b] = hull[..]
            && (i128::from(b.1 - a.1)) * i128::from(p.0 - a.0) >= i128::from(p.1 - a.1) * i128::from(b.0 - a.0)
        {
            hull.pop();
        }
        hull.push(p);
    }
    let mean = points.iter().map(|p| i128::from(p.0)).sum::<i128>() / points.len() as i128;
    let side = hull.windows(2).find(|side| i128::from(side[1].0) >= mean)?;
    let slope = (side[1].1 - side[0].1) as f64 / (side[1].0 - side[0].0) as f64;
    Some(Soonest { at: side[0].0, late: side[0].1 as f64, slope, sooner: 0.0, drift: 0.0 })
}

/// The level line below all points, of clocks whose drift is not known.
fn level(points: &[(i64, i64)]) -> Option<Soonest> {
    let &(at, late) = points.iter().min_by_key(|point| point.1)?;
    Some(Soonest { at, late: late as f64, slope: 0.0, sooner: 0.0, drift: SKEW })
}

/// What time stamps say of the queue before a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Queued {
    /// First packets of answers whose time stamps tell.
    pub answers: u64,
    /// One in twenty of them waited at least so long,
    pub p95_ns: u64,
    /// and one in a hundred so long.
    pub p99_ns: u64,
}

impl Analysis {
    /// How long first packets of answers to `aggregator` waited before the tap, in queues, by their senders' time stamps; none where too few tell.
    pub fn queued_before(&self, aggregator: IpAddr) -> Option<Queued> {
        self.queued_before_of(&self.turns, aggregator)
    }

    /// The same, of these turns.
    pub(crate) fn queued_before_of(&self, all: &[Turn], aggregator: IpAddr) -> Option<Queued> {
        let mut turns: BTreeMap<u32, Vec<&Turn>> = BTreeMap::new();
        all.iter().for_each(|turn| turns.entry(turn.connection).or_default().push(turn));
        let mut waits: Vec<u64> = Vec::new();
        for c in self.connections.iter() {
            let mut runs: Vec<(u64, Late)> =
                turns.get(&c.connection).into_iter().flatten().filter_map(|turn| told(&c, turn, aggregator)).collect();
            runs.sort_unstable_by_key(|&(at, _)| at);
            if let Some(soonest) = Soonest::of(runs.iter().copied()) {
                waits.extend(runs.iter().map(|&(at, late)| soonest.least(at, late.first)));
            }
        }
        waits.sort_unstable();
        let waited = |percent: usize| waits.get(waits.len() * percent / 100).copied();
        Some(Queued { answers: waits.len() as u64, p95_ns: waited(95)?, p99_ns: waited(99)? })
    }
}

/// The first packet of what came to the aggregator in a turn, and its run.
fn told(c: &Connection, turn: &Turn, aggregator: IpAddr) -> Option<(u64, Late)> {
    let (at, front): (Option<u64>, Front) = match (c.client_ip == aggregator, c.server_ip == aggregator) {
        (true, _) => (turn.response_start_ns, turn.response_front),
        (_, true) => (turn.request_start_ns, turn.request_front),
        _ => return None,
    };
    at.zip(front.late)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Packets of a sender whose clock is `ppm` faster than the tap's, one each 7.3 ms; each waits as `wait` says.
    fn runs(ppm: f64, count: u64, wait: impl Fn(u64) -> u64) -> Vec<(u64, Late)> {
        let one = |n: u64| {
            let sent = n * 7_300_000;
            let ticks = (sent as f64 * (1.0 + ppm / 1e6) / TICK as f64) as u64;
            let at = sent + wait(n);
            (at, Late::new(at as i64 - (ticks * TICK) as i64, 0))
        };
        (0..count).map(one).collect()
    }

    /// Every fourth waits 6 ms: it is told to a tick, however the clocks drift.
    #[test]
    fn a_wait_is_told_to_one_tick_under_a_drift_of_fifty_millionths() {
        for ppm in [-50.0, 0.0, 50.0] {
            let all = runs(ppm, 2_000, |n| if n % 4 == 0 { 6 * MS } else { 0 });
            let soonest = Soonest::of(all.iter().copied()).expect("a clock of milliseconds");
            for (n, &(at, late)) in all.iter().enumerate() {
                let (least, most) = soonest.waited(at, late.first);
                let truth = if n % 4 == 0 { 6 * MS } else { 0 };
                assert!(least <= truth && truth <= most && most - least <= TICK + AMISS, "{ppm} {n} {least} {most}");
            }
        }
    }

    #[test]
    fn a_packet_waited_for_up_to_a_tick_less_and_a_sixteenth_of_a_tick_more_than_it_passed_beyond_the_soonest() {
        let soonest = Soonest { at: 0, late: 0.0, slope: 0.0, sooner: 0.0, drift: 0.0 };
        assert_eq!(soonest.waited(0, 3_000_000), (2_000_000, 3_062_500));
    }

    /// Twenty answers 25 ms apart, each sent anywhere within its tick; one waits 3 ms. The soonest of them seem to drift by up to a tick in half a second.
    #[test]
    fn twenty_answers_tell_a_wait_of_two_ticks_or_more_wherever_they_were_sent_in_theirs() {
        let within = |n: u64| (n * 2_654_435_761) % TICK;
        for first in 0..200 {
            let one = |n: u64| {
                let sent = n * 25 * MS + within(first * 20 + n);
                let at = sent + if n == 7 { 3 * MS } else { 0 };
                (at, Late::new(at as i64 - (sent / TICK * TICK) as i64, 0))
            };
            let all: Vec<_> = (0..20).map(one).collect();
            let soonest = Soonest::of(all.iter().copied()).expect("a clock of milliseconds");
            for (n, &(at, late)) in all.iter().enumerate() {
                let (least, most) = soonest.waited(at, late.first);
                assert!(least <= if n == 7 { 3 * MS } else { 0 }, "{first} {n} {least}");
                assert!(n != 7 || least >= MS && most >= 3 * MS, "{first} {least} {most}");
            }
        }
    }

    /// An answer behind others of its request waits for 200 us at least, and data came for so long before it that it may have been 300 us.
    #[test]
    fn the_soonest_packet_is_not_taken_to_have_waited_nowhere_where_data_came_without_a_break() {
        let wait = |n: u64| 200_000 + n % 5 * 20_000;
        let all = runs(50.0, 500, wait).into_iter().map(|(at, late)| (at, Late::new(late.first, 300_000)));
        let soonest = Soonest::of(all.clone()).expect("a clock of milliseconds");
        for (n, (at, late)) in all.enumerate() {
            let (least, most) = soonest.waited(at, late.first);
            assert!(
                least <= wait(n as u64) && wait(n as u64) <= most && most <= TICK + AMISS + 300_000,
                "{n} {least} {most}"
            );
        }
    }

    #[test]
    fn sixteen_runs_tell_a_clock_and_fewer_do_not() {
        // 29 ms apart, so that sixteen take more than 300 ms and are spread over their ticks.
        let all: Vec<_> = runs(0.0, 64, |_| 0).into_iter().step_by(4).collect();
        assert!(Soonest::of(all.iter().copied()).is_some() && Soonest::of(all[..15].iter().copied()).is_none());
    }

    #[test]
    fn clocks_drift_by_two_ten_thousandths_at_most() {
        // Within 15 seconds they seem to drift by up to 68 millionths where they do not.
        let tells = |ppm: f64| Soonest::of(runs(ppm, 2_000, |_| 0).into_iter()).is_some();
        assert_eq!([-300.0, -190.0, 190.0, 300.0].map(tells), [false, true, true, false]);
    }

    #[test]
    fn three_tenths_of_a_second_tell_a_clock_and_less_does_not() {
        let over = |spacing: u64| {
            let one = |n: u64| (n * spacing, Late::new((n * spacing % TICK) as i64, 0));
            Soonest::of((0..31).map(one)).is_some()
        };
        assert!(over(10_100_000) && !over(9_900_000));
    }

    /// Ticks of 4 ms and of 1 us, taken for milliseconds.
    #[test]
    fn a_clock_with_other_ticks_tells_nothing() {
        for tick in [4 * MS, 1_000] {
            for count in [50_u64, 2_000] {
                let all = (0..count).map(|n| {
                    let at = n * 7_300_000;
                    (at, Late::new(at as i64 - (at / tick * TICK) as i64, 0))
                });
                assert!(Soonest::of(all).is_none(), "{tick} {count}");
            }
        }
    }
}
