//! Round trips as a tap can see them: data to its acknowledgement, which is the part of the path behind the tap.

use crate::way::{DELAYED_ACK, Way};
use serde::{Deserialize, Serialize};

/// The half of a round trip from the tap to the receiver of one direction's data and back.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Half {
    least: Option<u64>,
    most: Option<u64>,
    fresh: Option<u64>,
    smoothed: Option<u64>,
    /// From the packet that an acknowledgement answers to the acknowledgement, smoothed: without the wait for the second segment. One of each run: the queue
    /// that its first packets met. What is behind these waits in its own.
    echo: Option<u64>,
    /// This run has given its own.
    echoed: bool,
    /// A packet that an offload merged and that this run began with: where its first segment ends and where the last, and when it passed.
    merged: Option<(u64, u64, u64)>,
    samples: u64,
    /// One packet at a time is timed, as RFC 6298 senders without time stamps do: constant state, about one sample per round trip.
    timed: Option<Timed>,
    /// The latest packets: up to which byte, and when. And how long after its packet the last acknowledgement passed that answered one of them.
    latest: [(u64, u64); LATEST],
    place: usize,
    answer: Option<u64>,
}

/// Packets whose times are kept: the acknowledgement that comes before a run's last, which a delayed-ACK timer may hold back, is for one of them.
const LATEST: usize = 4;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Timed {
    end: u64,
    at: u64,
    /// More data went out behind it. The acknowledgement of the very last segment may wait for a delayed-ACK timer or ride on the next
    /// request, and then says nothing about the network.
    followed: bool,
    /// The packet behind it: a receiver that acknowledges every second segment answers that one.
    second: Option<(u64, u64)>,
}

impl Half {
    /// A part of the handshake.
    pub fn handshake(&mut self, ns: u64) {
        self.least = Some(self.least.map_or(ns, |l| l.min(ns)));
    }

    /// New data up to `end` passed.
    #[inline]
    pub fn sent(&mut self, end: u64, at: u64) {
        self.latest[self.place % LATEST] = (end, at);
        self.place += 1;
        match &mut self.timed {
            Some(t) => {
                t.followed |= end > t.end;
                t.second.get_or_insert((end, at));
            }
            None => self.timed = Some(Timed { end, at, followed: false, second: None }),
        }
    }

    /// The run begins with segments that an offload merged, of which the first ends at `first` and the last at `last`. They passed at once, and the link
    /// brings one after the other (a shaper cuts them, Linux `tbf_segment`): when all are acknowledged says how long they are, and the first how long the
    /// queue is.
    #[inline]
    pub fn begins_merged(&mut self, first: u64, last: u64, at: u64) {
        self.merged = Some((first, last, at));
    }

    /// Data was repaired: acknowledgements are ambiguous now (Karn's rule).
    pub fn cancel(&mut self) {
        (self.timed, self.merged) = (None, None);
        self.latest = Default::default();
        self.answer = None;
    }

    /// A run begins: what was answered before says nothing of its queue.
    pub fn begins(&mut self) {
        (self.answer, self.merged) = (None, None);
        self.echoed = false;
    }

    /// When the packet passed that ends at this place, if it is one of the latest.
    pub fn passed_at(&self, end: u64) -> Option<u64> {
        self.latest.iter().find(|&&(to, at)| to == end && at > 0).map(|&(_, at)| at)
    }

    /// Everything below `acked` has arrived; `by_itself`: a packet was sent for nothing but to say so. By how much a sample that this gives exceeds the shortest, if no delayed-ACK timer can have made it.
    #[inline]
    pub fn acknowledged(&mut self, acked: u64, at: u64, by_itself: bool) -> Option<u64> {
        if by_itself && let Some(sent) = self.passed_at(acked) {
            self.answer = Some(at - sent).filter(|&answer| answer < DELAYED_ACK);
        }
        if let Some((_, last, sent)) = self.merged.take_if(|&mut (first, ..)| acked >= first)
            && acked < last
        {
            self.echoes(at - sent);
        }
        let t = self.timed.take_if(|t| acked >= t.end)?;
        if !t.followed {
            return None;
        }
        let sample = at - t.at;
        self.samples += 1;
        self.least = Some(self.least.map_or(sample, |l| l.min(sample)));
        // An acknowledgement that a timer held back says nothing about the network.
        if sample < DELAYED_ACK {
            self.most = Some(self.most.map_or(sample, |m| m.max(sample)));
            self.fresh = Some(sample);
        }
        let answered = match t.second {
            Some((end, sent)) if acked >= end => sent,
            _ => t.at,
        };
        self.echoes(at - answered);
        // TRIM section 9.1: smooth_RTT = (1 - a) smooth_RTT + a RTT with a = 0.25.
        self.smoothed = Some(self.smoothed.map_or(sample, |s| s - s / 4 + sample / 4));
        let excess = sample - self.least.unwrap_or(sample);
        (sample < DELAYED_ACK).then_some(excess)
    }

    /// The first packet of a run was answered after so long.
    #[inline]
    fn echoes(&mut self, echo: u64) {
        if !std::mem::replace(&mut self.echoed, true) {
            self.echo = Some(self.echo.map_or(echo, |s| s - s / 4 + echo / 4));
        }
    }

    /// The least seen.
    pub fn least(&self) -> Option<u64> {
        self.least
    }
    /// The sample taken since the last call, as far as no delayed-ACK timer can have made it.
    #[inline]
    pub fn take_fresh(&mut self) -> Option<u64> {
        self.fresh.take()
    }
    /// The most seen, as far as no delayed-ACK timer can have made it.
    pub fn most(&self) -> Option<u64> {
        self.most
    }
    /// The smoothed estimate; before any sample, the handshake's.
    pub fn smoothed(&self) -> Option<u64> {
        self.smoothed.or(self.least)
    }
    /// How long after a packet its receiver's answer passes, once the receiver has it: as with the last of this run, smoothed over those before it, or
    /// as in the handshake.
    pub fn echo(&self) -> Option<u64> {
        self.answer.or(self.echo).or(self.least)
    }
    /// The way to the receiver and back, as it is now.
    pub fn way(&self) -> Way {
        Way { echo: self.echo().unwrap_or(0), least: self.least.unwrap_or(0) }
    }
    /// Samples from data.
    pub fn samples(&self) -> u64 {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_acknowledgement_of_the_last_segment_is_no_sample() {
        let mut h = Half::default();
        h.sent(100, 0);
        h.acknowledged(100, 40_000_000, true);
        assert_eq!(h.samples(), 0);
        h.sent(200, 50_000_000);
        h.sent(300, 50_000_010);
        h.acknowledged(300, 50_000_500, true);
        assert_eq!((h.samples(), h.smoothed()), (1, Some(500)));
    }

    #[test]
    fn the_times_of_the_last_four_packets_are_known() {
        let mut h = Half::default();
        (1..=5).for_each(|n| h.sent(n * 100, n));
        assert_eq!([100, 200, 500].map(|end| h.passed_at(end)), [None, Some(2), Some(5)]);
    }

    #[test]
    fn one_quarter_of_a_new_sample_counts() {
        let mut h = Half::default();
        for (i, rtt) in [400, 800].into_iter().enumerate() {
            let t = i as u64 * 10_000;
            h.sent(t + 1, t);
            h.sent(t + 2, t);
            h.acknowledged(t + 2, t + rtt, true);
        }
        assert_eq!((h.least(), h.smoothed()), (Some(400), Some(500)));
    }

    #[test]
    fn what_took_thirty_milliseconds_a_timer_may_have_held_back() {
        let most = |rtt: u64| {
            let mut h = Half::default();
            h.sent(1, 0);
            h.sent(2, 0);
            h.acknowledged(2, rtt, true);
            h.most()
        };
        assert_eq!((most(29_999_999), most(30_000_000)), (Some(29_999_999), None));
    }

    #[test]
    fn an_answer_to_two_segments_is_one_to_the_second() {
        let mut h = Half::default();
        h.sent(100, 0);
        h.sent(200, 700);
        h.sent(300, 1000);
        h.acknowledged(200, 720, true);
        assert_eq!((h.smoothed(), h.echo()), (Some(720), Some(20)));
    }

    #[test]
    fn the_answer_to_the_segment_before_the_last_tells_how_long_the_queue_is_now() {
        let mut h = Half::default();
        // A queue of a millisecond that drains; only one packet in a round trip is timed.
        for n in 1..=10 {
            h.sent(n * 100, n * 10);
        }
        h.acknowledged(100, 1_010, true);
        assert_eq!(h.echo(), Some(1_000));
        h.acknowledged(900, 90 + 200, true);
        assert_eq!((h.smoothed(), h.echo()), (Some(1_000), Some(200)));
        // Another run, another queue.
        h.begins();
        assert_eq!(h.echo(), Some(1_000));
    }

    #[test]
    fn a_short_answer_meets_the_queue_of_others_and_not_that_of_a_long_one_before() {
        let mut h = Half::default();
        // A transfer that fills the queue: 0.1 ms, then 3 ms.
        for (n, took) in [100_000, 3_000_000, 3_000_000, 3_000_000].into_iter().enumerate() {
            let at = n as u64 * 10_000_000;
            h.sent(at + 1, at);
            h.sent(at + 2, at);
            h.acknowledged(at + 2, at + took, false);
        }
        h.begins();
        assert_eq!((h.smoothed().map(|ns| ns / 100_000), h.echo()), (Some(17), Some(100_000)));
        h.sent(50_000_001, 50_000_000);
        h.sent(50_000_002, 50_000_000);
        h.acknowledged(50_000_002, 50_500_000, false);
        assert_eq!(h.echo(), Some(200_000), "one quarter of the next run's");
    }

    /// 45 segments that an offload merged pass the tap at once. The link brings one in 40 us and each second is acknowledged, the first after 0.2 ms.
    #[test]
    fn how_long_a_merged_packet_is_says_nothing_of_the_queue_in_front_of_a_short_one() {
        let told = |merged: bool| {
            let mut h = Half::default();
            h.sent(45 * 1_448, 0);
            h.begins();
            if merged {
                h.begins_merged(1_448, 45 * 1_448, 0);
            }
            h.sent(90 * 1_448, 10_000);
            for n in (2..=90).step_by(2) {
                h.acknowledged(n * 1_448, 120_000 + n * 40_000, true);
            }
            h.begins();
            (h.echo(), h.least())
        };
        // 46 segments cover the first of two such packets.
        assert_eq!(told(false), (Some(1_960_000), Some(1_960_000)));
        assert_eq!(told(true), (Some(200_000), Some(1_960_000)), "its round trip is what it was");
        // A receiver that merges segments itself acknowledges all at once, and may hold that back.
        let mut h = Half::default();
        h.begins_merged(1_448, 2 * 1_448, 0);
        h.acknowledged(2 * 1_448, 20_000_000, false);
        assert_eq!(h.echo(), None);
    }

    #[test]
    fn a_retransmission_spoils_the_sample() {
        let mut h = Half::default();
        h.sent(100, 0);
        h.sent(200, 1);
        h.cancel();
        h.acknowledged(200, 9, true);
        assert_eq!(h.samples(), 0);
    }
}
