//! The rhythm in which full packets leave a link.
//!
//! A line sends back to back, exactly. A token bucket sends when its timer wakes up, and each packet is late by another time. Its tokens make up
//! for that with the next packet, but for what they grow beyond its burst (tc-tbf): a burst of segments that it lets through as one packet needs
//! nearly all that it holds, so the packet after it is late for good.

use crate::counts::{Counts, mean, quantile, sum};
use crate::decode::WIRE_OVERHEAD;
use crate::rack::PAUSE;
use serde::Serialize;
use std::ops::Range;

/// Bins per doubling of a gap.
const GAPS_PER_DOUBLING: usize = 64;
/// Gaps between half and one and a half times what a packet takes follow the link's rhythm: two packets at once, or a missing one, do not.
const IN_RHYTHM: Range<f64> = 0.5..1.5;
/// Fewer gaps tell no rhythm.
const FEWEST_GAPS: u64 = 100;
/// The same after a burst, which makes the next packet late. From two on a packet is missing in between.
const AFTER_BURST: Range<f64> = 0.5..1.75;
/// How far a length may be off that stands out,
const NEAR: Range<f64> = 0.9..1.1;
/// and the lengths on either side, above which it must.
const BELOW: Range<f64> = 0.5..0.7;
const ABOVE: Range<f64> = 1.3..1.5;
/// So many times as many. Of 80 racks in real time, and of services in 33 kinds of software, it is 1.8 or more at the aggregator where both waited, and
/// 1.5 or less before the queue where senders have no links of their own.
const STANDS_OUT: f64 = 1.7;
/// Bytes on the wire of a full packet.
const ETHERNET: u32 = 1_448 + WIRE_OVERHEAD;

/// What full packets of two senders that follow each other say of the link that they share: both wait for it, as soon as there is a queue, so their
/// distance is what it takes for a packet. Links of their own, however slow, leave them at any distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pairs {
    /// Pairs within a tenth of the distance that stands out.
    pub count: u64,
    /// The rate for which that is a packet's time, bit/s on the wire.
    pub rate_bps: u64,
    /// How many times as many pairs have this distance as have half as much again, or half as much less, whichever are more.
    pub height: f64,
}

/// How often each time between two full packets was seen.
#[derive(Default)]
pub(crate) struct Gaps(Counts);

impl Gaps {
    /// A full packet came so many nanoseconds after the one before.
    #[inline]
    pub fn count(&mut self, ns: u64) {
        if ns < PAUSE {
            self.0.add(Gaps::bin(ns), Gaps::bin(PAUSE) + 1);
        }
    }

    /// Linear up to [`GAPS_PER_DOUBLING`] nanoseconds, then so many bins from each power of two to the next.
    fn bin(ns: u64) -> usize {
        let bits = GAPS_PER_DOUBLING.trailing_zeros();
        let doublings = (u64::BITS - ns.leading_zeros()).saturating_sub(bits + 1);
        ((doublings as usize) << bits) + (ns >> doublings) as usize
    }

    /// The middle of a bin.
    fn middle(bin: usize) -> f64 {
        let doublings = (bin / GAPS_PER_DOUBLING).saturating_sub(1);
        ((bin - doublings * GAPS_PER_DOUBLING) as f64 + 0.5) * (1_u64 << doublings) as f64
    }

    /// The mean of the gaps in the rhythm of a link with this rate, and how unevenly late its packets are.
    ///
    /// What two packets are late by, each exponentially distributed, differs by as much on average.
    pub fn rhythm(&self, bps: u64) -> Option<(u64, u64)> {
        let packet = Gaps::packet(bps);
        let inside = self.between(IN_RHYTHM.start * packet..IN_RHYTHM.end * packet);
        let count = sum(inside.clone());
        let median = quantile(inside.clone(), 0.5).filter(|_| count >= FEWEST_GAPS)?;
        let off = mean(inside.clone().map(|(ns, n)| ((ns - median).abs(), n)));
        let late = untruncated(off, (IN_RHYTHM.end - 1.0) * packet).min(packet);
        Some((mean(inside) as u64, late as u64))
    }

    /// The time between packets of two senders that stands out of these, where the link has one of these rates, bit/s. `all` are those of any sender:
    /// their median tells the rate more exactly.
    pub fn pairs(&self, bps: Range<f64>, all: &Gaps) -> Option<Pairs> {
        let near = |ns: f64, range: Range<f64>| self.between(range.start * ns..range.end * ns);
        let lengths = self.0.all().map(|(bin, _)| Gaps::middle(bin)).filter(|&ns| bps.contains(&Gaps::rate(ns)));
        let (ns, count, height) = lengths
            .map(|ns| (ns, sum(near(ns, NEAR))))
            .filter(|&(_, count)| count >= FEWEST_GAPS)
            .map(|(ns, count)| (ns, count, count as f64 / sum(near(ns, BELOW)).max(sum(near(ns, ABOVE))).max(1) as f64))
            .max_by(|(.., one), (.., other)| one.total_cmp(other))
            .filter(|&(.., height)| height >= STANDS_OUT)?;
        let median = quantile(all.between(IN_RHYTHM.start * ns..IN_RHYTHM.end * ns), 0.5)?;
        Some(Pairs { count, rate_bps: Gaps::rate(median) as u64, height })
    }

    /// What these gaps, each after a burst that passed as one packet, are longer by on average than `usual`, that after one segment.
    pub fn longer_than(&self, usual: u64, bps: u64) -> Option<u64> {
        let packet = Gaps::packet(bps);
        let inside = self.between(AFTER_BURST.start * packet..AFTER_BURST.end * packet);
        (sum(inside.clone()) >= FEWEST_GAPS).then(|| (mean(inside) as u64).saturating_sub(usual))
    }

    /// Middles of the bins in this range, each with its count.
    fn between(&self, ns: Range<f64>) -> impl Iterator<Item = (f64, u64)> + Clone {
        self.0.all().map(|(bin, n)| (Gaps::middle(bin), n)).filter(move |(middle, _)| ns.contains(middle))
    }

    /// What a full packet takes, nanoseconds.
    fn packet(bps: u64) -> f64 {
        f64::from(ETHERNET) * 8e9 / bps as f64
    }

    /// The rate of a link that takes so many nanoseconds for a full packet, bit/s.
    fn rate(ns: f64) -> f64 {
        f64::from(ETHERNET) * 8e9 / ns
    }
}

/// The mean of an exponential distribution that has the mean `seen` below `most`.
fn untruncated(seen: f64, most: f64) -> f64 {
    let below = |mean: f64| mean - most / (most / mean).exp_m1();
    // With a mean of ten times the limit the distribution below it is all but flat.
    let (mut low, mut high) = (seen, 10.0 * most);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        *(if below(middle) < seen { &mut low } else { &mut high }) = middle;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_within_a_hundredth_of_the_middle_of_its_bin() {
        for ns in (64..PAUSE).step_by(997) {
            let middle = Gaps::middle(Gaps::bin(ns));
            assert!((middle / ns as f64 - 1.0).abs() <= 0.01, "{ns}: {middle}");
        }
    }

    #[test]
    fn a_mean_below_a_limit_tells_the_mean_of_all() {
        // By hand: of an exponential distribution with mean 1 what is below 2 has the mean 1 - 2 / (e^2 - 1) = 0.6870.
        assert!((untruncated(0.687_0, 2.0) - 1.0).abs() < 1e-3);
        assert!((untruncated(0.1, 2.0) - 0.1).abs() < 1e-3);
    }

    #[test]
    fn gaps_from_one_power_of_two_to_the_next_have_64_bins() {
        assert_eq!([64, 1_024, 1 << 20].map(|ns| Gaps::bin(2 * ns) - Gaps::bin(ns)), [64; 3]);
    }

    /// What so many equal gaps say of a link of 1 Gb/s, which takes 12,304 ns for a full packet.
    fn rhythm(count: u64, ns: u64) -> Option<u64> {
        let mut gaps = Gaps::default();
        (0..count).for_each(|_| gaps.count(ns));
        gaps.rhythm(1_000_000_000).map(|(median, _)| median)
    }

    #[test]
    fn a_hundred_gaps_tell_a_rhythm() {
        assert!(rhythm(99, 12_304).is_none());
        assert!(rhythm(100, 12_304).is_some_and(|median| median.abs_diff(12_304) < 123));
    }

    /// What so many equal gaps after bursts are longer by than the usual one, where a full packet takes 12,304 ns.
    fn longer(count: u64, ns: u64) -> Option<u64> {
        let mut gaps = Gaps::default();
        (0..count).for_each(|_| gaps.count(ns));
        gaps.longer_than(12_304, 1_000_000_000)
    }

    #[test]
    fn a_hundred_gaps_after_bursts_tell_what_the_packet_after_one_is_late_by() {
        assert!(longer(99, 19_304).is_none());
        assert!(longer(100, 19_304).is_some_and(|late| late.abs_diff(7_000) < 193));
        assert_eq!(longer(100, 11_000), Some(0));
    }

    #[test]
    fn gaps_after_bursts_of_less_than_half_or_more_than_seven_quarters_of_a_packet_are_none_of_the_link_s() {
        assert!(longer(100, 6_300).is_some() && longer(100, 21_300).is_some());
        assert!(longer(100, 6_000).is_none() && longer(100, 21_800).is_none());
    }

    #[test]
    fn gaps_between_half_and_one_and_a_half_times_what_a_full_packet_takes_follow_the_rhythm() {
        let follows = |ns: u64| rhythm(100, ns).is_some();
        assert!(follows(6_300) && follows(18_200));
        assert!(!follows(6_000) && !follows(18_800));
    }

    /// Pairs of two senders on a link that takes 12,304 ns for a packet, 1 Gb/s: so many that wait for it, within a twentieth, and so many at any
    /// distance up to twice that.
    fn pairs(waited: u64, others: u64) -> Option<Pairs> {
        let mut gaps = Gaps::default();
        (0..waited).for_each(|n| gaps.count(11_700 + 1_200 * n / waited));
        (0..others).for_each(|n| gaps.count(500 + 24_000 * n / others));
        gaps.pairs(3e8..3e9, &gaps)
    }

    #[test]
    fn a_hundred_pairs_of_two_senders_tell_the_link_that_both_waited_for() {
        assert!(pairs(98, 0).is_none());
        let found = pairs(102, 0).unwrap();
        assert!((100..=102).contains(&found.count) && (found.rate_bps as f64 / 1e9 - 1.0).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn the_distance_of_pairs_that_waited_stands_out_of_any_others() {
        assert!(pairs(0, 2_000).is_none() && pairs(120, 2_000).is_none());
        let found = pairs(200, 2_000).unwrap();
        assert!((1.8..2.3).contains(&found.height) && (found.rate_bps as f64 / 1e9 - 1.0).abs() < 0.05, "{found:?}");
    }
}
