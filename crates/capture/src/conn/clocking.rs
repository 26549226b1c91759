//! What makes a sender send: an acknowledgement, or a clock of its own; and how much of its window a loss leaves.
//!
//! A sender whose window is full sends when an acknowledgement comes (Jacobson, "Congestion Avoidance and Control", 1988); one that paces, as
//! BBR does, sends in between. Reno's window is halved by a loss (RFC 5681), CUBIC's keeps 0.7 (RFC 9438 section 4.6), BBR's stays.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Acknowledgements that are remembered: those under way between tap and sender must be among them.
const REMEMBERED: usize = 16;
/// A shorter pause between two packets may be that of a slow link or of a host's interrupts.
const APART: u64 = 30_000;
/// A longer one is the application's or a timer's.
const IDLE: u64 = 2_000_000;
/// A packet this near to what an acknowledgement would have caused was caused by it.
const NEAR: u64 = 25_000;
/// Where acknowledgements follow each other faster than this, every packet is near to one.
const SPARSE: u64 = 4 * NEAR;
/// Smaller windows in segments tell shares badly.
const FEWEST_SEGMENTS: u64 = 16;

/// What one direction's sender was seen to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// New data after a pause, with data outstanding.
    pub releases: u64,
    /// Of these, what came when an acknowledgement had just reached the sender.
    pub prompted: u64,
    /// Of these, what no acknowledgement since the packet before can have caused.
    pub unprompted: u64,
    /// Losses of one packet or more that were repaired without a timeout, behind which the sender went on at its window.
    pub backoffs: u64,
    /// Of these, with more than 0.55 of the data in flight left: Reno leaves half.
    pub kept_over_half: u64,
    /// Of these, with more than 0.8 left: CUBIC leaves 0.7.
    pub kept_most: u64,
}

/// One direction's data and what acknowledges it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Clocking {
    acks: VecDeque<u64>,
    /// A repair: what was sent when it began, and how many bytes of it were outstanding.
    repair: Option<(u64, u64)>,
    /// A repair that is over: the share in thousandths that it left, and how far the sender must go on at once for that to be its window.
    ended: Option<(u64, u64)>,
    counts: Counts,
}

impl Clocking {
    /// New data up to `end` passed, `idle` after the packet before, with `in_flight` bytes outstanding before it. `turnaround`: from the tap
    /// to the sender and back.
    #[inline]
    pub fn sent(&mut self, end: u64, at: u64, idle: u64, in_flight: u64, turnaround: Option<u64>) {
        if self.ended.is_some_and(|(_, until)| end >= until)
            && let Some((left, _)) = self.ended.take()
        {
            self.counts.backoffs += 1;
            self.counts.kept_over_half += u64::from(left > 550);
            self.counts.kept_most += u64::from(left > 800);
        }
        if in_flight == 0 || idle >= IDLE {
            self.ended = None;
            return;
        }
        let Some(turnaround) = turnaround.filter(|_| idle > APART && self.repair.is_none()) else { return };
        // When an acknowledgement that caused this packet passed the tap.
        let caused = at.saturating_sub(turnaround);
        let mut before = self.acks.iter().rev().skip_while(|&&ack| ack > caused + NEAR);
        let (Some(&ack), Some(&other)) = (before.next(), before.next()) else { return };
        if ack - other <= SPARSE {
            return;
        }
        self.counts.releases += 1;
        self.counts.prompted += u64::from(ack.abs_diff(caused) <= NEAR);
        self.counts.unprompted += u64::from(ack + idle <= caused);
    }

    /// Something was sent again, with `in_flight` bytes of at most `segment` outstanding, up to `max`.
    #[inline]
    pub fn repaired(&mut self, max: u64, in_flight: u64, segment: u64, idle: u64) {
        self.ended = None;
        if self.repair.is_none() && in_flight >= FEWEST_SEGMENTS * segment.max(1) && idle < IDLE {
            self.repair = Some((max, in_flight));
        }
    }

    /// Everything below `acked` has arrived, `in_flight` bytes are outstanding.
    #[inline]
    pub fn acknowledged(&mut self, acked: u64, at: u64, in_flight: u64) {
        if self.acks.len() == REMEMBERED {
            self.acks.pop_front();
        }
        self.acks.push_back(at);
        if let Some((max, flight)) = self.repair.filter(|&(max, _)| acked >= max) {
            self.repair = None;
            self.ended = Some((in_flight * 1_000 / flight, max + in_flight + flight));
        }
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1_000;

    /// A window of 20 segments whose acknowledgements come every 200 us; each causes a packet 50 us later, or packets leave every 130 us.
    fn seen(paced: bool) -> Counts {
        let mut c = Clocking::default();
        let (mut end, mut acked, mut last) = (20 * SEGMENT, 0, 0);
        for us in 1..100_000_u64 {
            if us % 200 == 0 {
                acked += SEGMENT;
                c.acknowledged(acked, us * 1_000, end - acked);
            }
            if (paced && us % 130 == 0) || (!paced && us > 200 && us % 200 == 50) {
                end += SEGMENT;
                c.sent(end, us * 1_000, us * 1_000 - last, 20 * SEGMENT, Some(50_000));
                last = us * 1_000;
            }
        }
        c.counts()
    }

    #[test]
    fn a_sender_that_waits_for_acknowledgements_is_prompted_and_one_that_paces_is_not() {
        let clocked = seen(false);
        assert!(clocked.releases > 400);
        assert_eq!((clocked.prompted, clocked.unprompted), (clocked.releases, 0));
        let paced = seen(true);
        assert!(paced.releases > 600);
        // Near one: 50 of 200 us. None since the packet before, 130 us ago, nor 25 us ahead: 45 of 200 us.
        assert!((paced.prompted * 100 / paced.releases).abs_diff(25) <= 3, "{paced:?}");
        assert!((paced.unprompted * 1000 / paced.releases).abs_diff(225) <= 30, "{paced:?}");
    }

    /// A repair with 20 segments outstanding that leaves `after`, and the sender going on for so many segments.
    fn left(after: u64, on: u64) -> Counts {
        let mut c = Clocking::default();
        c.sent(20 * SEGMENT, 1_000, 100, SEGMENT, None);
        c.repaired(20 * SEGMENT, 20 * SEGMENT, SEGMENT, 100);
        c.acknowledged(20 * SEGMENT, 500_000, after * SEGMENT);
        for n in 1..=on {
            c.sent((20 + after + n) * SEGMENT, 500_000 + n, 100, after * SEGMENT, None);
        }
        c.counts()
    }

    #[test]
    fn what_a_loss_leaves_counts_where_the_sender_goes_on() {
        let counted = |c: Counts| (c.backoffs, c.kept_over_half, c.kept_most);
        assert_eq!(counted(left(10, 25)), (1, 0, 0));
        assert_eq!(counted(left(14, 25)), (1, 1, 0));
        assert_eq!(counted(left(19, 25)), (1, 1, 1));
        // It had little left to send: the flight is no window.
        assert_eq!(counted(left(4, 5)), (0, 0, 0));
    }

    /// What a packet counts as: a release, a prompted one, an unprompted one. Acknowledgements passed at `acks`, the sender is 50 us away and
    /// back, and the packet passes at `at`, `idle` after the one before.
    fn counted(acks: &[u64], at: u64, idle: u64) -> (u64, u64, u64) {
        let mut c = Clocking::default();
        for &ack in acks {
            c.acknowledged(0, ack, SEGMENT);
        }
        c.sent(SEGMENT, at, idle, SEGMENT, Some(50_000));
        (c.counts.releases, c.counts.prompted, c.counts.unprompted)
    }

    #[test]
    fn a_packet_is_released_after_more_than_30_us_and_less_than_2_ms() {
        let at = |idle| counted(&[0, 1_000_000], 1_050_000, idle);
        assert_eq!((at(30_000), at(30_001)), ((0, 0, 0), (1, 1, 0)));
        assert_eq!((at(1_999_999), at(2_000_000)), ((1, 1, 0), (0, 0, 0)));
    }

    #[test]
    fn an_acknowledgement_prompts_what_follows_it_within_25_us() {
        let after = |late: u64| counted(&[0, 1_000_000], 1_050_000 + late, 100_000);
        assert_eq!((after(25_000), after(25_001)), ((1, 1, 0), (1, 0, 0)));
        // And what seems to come before it by as much. Before that, the acknowledgement at 0 is the last, and none came since.
        let before = |early: u64| counted(&[0, 500_000, 1_000_000], 1_050_000 - early, 100_000);
        assert_eq!((before(25_000), before(25_001)), ((1, 1, 0), (1, 0, 1)));
    }

    #[test]
    fn acknowledgements_within_100_us_of_each_other_tell_nothing() {
        let apart = |ns: u64| counted(&[1_000_000 - ns, 1_000_000], 1_050_000, 50_000);
        assert_eq!((apart(100_000), apart(100_001)), ((0, 0, 0), (1, 1, 0)));
    }

    #[test]
    fn sixteen_acknowledgements_are_remembered() {
        let acks: Vec<u64> = (1..=20).map(|n| n * 200_000).collect();
        // The fifth to the twentieth: one before the sixth is known, none before the fifth.
        assert_eq!(counted(&acks, 6 * 200_000 + 50_000, 100_000), (1, 1, 0));
        assert_eq!(counted(&acks, 5 * 200_000 + 50_000, 100_000), (0, 0, 0));
    }

    #[test]
    fn a_loss_tells_of_windows_of_16_segments_or_more() {
        let backoffs = |flight: u64| {
            let mut c = Clocking::default();
            c.repaired(flight * SEGMENT, flight * SEGMENT, SEGMENT, 100);
            c.acknowledged(flight * SEGMENT, 500_000, flight / 2 * SEGMENT);
            c.sent(3 * flight * SEGMENT, 500_001, 100, SEGMENT, None);
            c.counts.backoffs
        };
        assert_eq!((backoffs(15), backoffs(16)), (0, 1));
    }
}
