//! Whether the senders' retransmission timers go off in the same ticks.
//!
//! Linux's timers count in jiffies and expire when a tick begins (`run_timer_softirq`). Servers that are namespaces, containers or processes of one
//! machine share its ticks. Separate hosts do not: the ticks of each begin at other times. A retransmission after silence shows when its timer
//! expired, if the queue to the receiver was empty.

use crate::decode::Addr;
use serde::Serialize;
use std::collections::BTreeMap;

/// A connection that was silent for so long, ns, did not repair a loss by an acknowledgement but by a timer: two ticks at least
/// (`TCP_TIMEOUT_MIN`), of which one may have begun.
pub(crate) const SILENT: u64 = 3_000_000;
/// Nothing else passed to the receiver for so long, ns: the queue holds no packet back.
const QUIET: u64 = 300_000;
/// Ticks per second that kernels are built with (`CONFIG_HZ`): the usual one, then the longest first. Timers that were set together meet in ticks of any
/// length, and what meets in long ticks meets in their parts, too.
const RATES: [u32; 4] = [250, 100, 300, 1000];
/// Moments that are alike lie within this part of a tick; by chance one in ten does.
const ALIKE: f64 = 0.1;
/// So many senders at least are alike,
const FEWEST: usize = 5;
/// and this share of all that were seen: six of six by chance in one of 100,000 captures, five of six in one of 300.
const MOST: f64 = 0.75;
/// Moments that are kept per receiver.
const KEPT: usize = 512;

/// Moments at which timers went off, towards one receiver.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments(Vec<(Addr, u64)>);

/// What they show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ticks {
    /// Retransmissions by timers whose moment shows, and their senders.
    pub moments: u32,
    /// Senders of these.
    pub senders: u32,
    /// Senders whose timers go off in the same ticks.
    pub together: u32,
    /// Ticks per second, where most senders share them.
    pub hz: Option<u32>,
}

impl Moments {
    /// A connection of `sender` that was silent sent again; nothing else had passed for `quiet` ns.
    #[inline]
    pub fn sent_again(&mut self, sender: Addr, quiet: u64, at: u64) {
        if quiet >= QUIET && self.0.len() < KEPT {
            self.0.push((sender, at));
        }
    }

    /// The ticks that most senders share; of several those in which most moments are alike.
    pub fn ticks(&self) -> Ticks {
        let mut of: BTreeMap<Addr, Vec<u64>> = BTreeMap::new();
        for &(sender, at) in &self.0 {
            of.entry(sender).or_default().push(at);
        }
        let shared = RATES.into_iter().rev().map(|hz| (self.alike(hz, &of), hz));
        let clear = |&((n, _), _): &((usize, usize), u32)| n >= FEWEST && n as f64 >= MOST * of.len() as f64;
        // The last of equal ones, and so the first rate.
        let shared = shared.filter(clear).max_by_key(|&((_, moments), _)| moments);
        Ticks {
            moments: self.0.len() as u32,
            senders: of.len() as u32,
            together: shared.map_or(0, |((n, _), _)| n as u32),
            hz: shared.map(|(_, hz)| hz),
        }
    }

    /// For the part of a tick that most senders have half and more of their moments in: how many such senders, and how many moments it has.
    fn alike(&self, hz: u32, of: &BTreeMap<Addr, Vec<u64>>) -> (usize, usize) {
        let place = |at: u64| (at as f64 * f64::from(hz) / 1e9).fract();
        let inside = |from: f64, at: u64| (place(at) - from).rem_euclid(1.0) < ALIKE;
        let count = |from: f64| {
            let each = of.values().map(|all| (all.iter().filter(|&&at| inside(from, at)).count(), all.len()));
            each.fold((0, 0), |(senders, moments), (within, all)| {
                (senders + usize::from(2 * within >= all), moments + within)
            })
        };
        self.0.iter().map(|&(_, at)| count(place(at))).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many senders, each of whose timers goes off three times, `apart` ns further into a tick of 4 ms than the one before.
    fn seen(senders: u32, apart: u64) -> Ticks {
        let mut moments = Moments::default();
        for n in 0..senders {
            for tick in [51, 104, 302] {
                moments.sent_again(
                    Addr(u128::from(n)),
                    300_000,
                    (tick + u64::from(n)) * 4_000_000 + 1_400_000 + u64::from(n) * apart,
                );
            }
        }
        moments.ticks()
    }

    #[test]
    fn servers_of_one_machine_share_its_ticks() {
        assert_eq!(seen(6, 10_000), Ticks { moments: 18, senders: 6, together: 6, hz: Some(250) });
    }

    #[test]
    fn ticks_are_those_in_which_most_moments_are_alike_and_the_usual_ones_where_all_are() {
        // Eight senders whose timers were set together, one after another by 5 us; two have a second moment, in another tick of that length.
        let rate = |length: u64, again: u64| {
            let mut moments = Moments::default();
            for n in 0..8 {
                moments.sent_again(Addr(u128::from(n)), 300_000, 80 * length + 400_000 + n * 5_000);
            }
            for n in 0..2_u64 {
                let at = (80 + again + 2 * n) * length + 405_000;
                moments.sent_again(Addr(u128::from(n)), 300_000, at);
            }
            moments.ticks().hz
        };
        assert_eq!(rate(4_000_000, 7), Some(250));
        assert_eq!((rate(10_000_000, 7), rate(1_000_000, 7)), (Some(100), Some(1000)));
        assert_eq!(rate(10_000_000, 2), Some(250), "20 and 40 ms are ticks of 10 ms as of 4");
    }

    #[test]
    fn hosts_that_each_stand_elsewhere_in_a_tick_share_none() {
        assert_eq!(seen(8, 467_000).hz, None);
    }

    #[test]
    fn four_senders_may_be_alike_by_chance() {
        assert_eq!((seen(4, 10_000).hz, seen(5, 10_000).hz), (None, Some(250)));
    }

    #[test]
    fn moments_a_tenth_of_a_tick_apart_are_not_alike() {
        // Six senders over 0.375 ms are within a tenth of 4 ms; over 0.5 ms four are.
        assert_eq!((seen(6, 75_000).hz, seen(6, 100_000).hz), (Some(250), None));
        // Over 0.25 ms all are.
        assert_eq!(seen(6, 50_000).together, 6);
    }

    #[test]
    fn two_machines_of_three_servers_share_no_ticks() {
        let mut moments = Moments::default();
        let mut of = |from: u32, to: u32, phase: u64| {
            (from..to)
                .for_each(|n| moments.sent_again(Addr(u128::from(n)), 300_000, u64::from(n) * 36_000_000 + phase));
            moments.ticks().hz
        };
        assert_eq!((of(0, 6, 0), of(6, 8, 2_300_000), of(8, 9, 3_100_000)), (Some(250), Some(250), None));
    }

    #[test]
    fn a_queue_that_is_not_empty_moves_what_is_sent() {
        let mut moments = Moments::default();
        (0..8).for_each(|n| moments.sent_again(Addr(n), 299_999, n as u64 * 4_000_000));
        assert_eq!(moments.ticks(), Ticks::default());
    }

    #[test]
    fn ticks_of_a_millisecond_are_found_where_no_longer_ones_are() {
        let mut moments = Moments::default();
        (0..8).for_each(|n| moments.sent_again(Addr(n), 300_000, 1_234_000_000 + n as u64 * n as u64 * 37_000_000));
        assert_eq!(moments.ticks().hz, Some(1000));
    }

    #[test]
    fn no_more_moments_are_kept_than_are_needed() {
        let mut moments = Moments::default();
        (0..2_000).for_each(|n| moments.sent_again(Addr(0), 300_000, n));
        assert_eq!(moments.ticks().moments, 512);
    }
}
