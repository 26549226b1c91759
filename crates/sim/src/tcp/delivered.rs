//! What an ACK delivered, and what RACK takes of that.

use super::rtt::ticked;
use super::scoreboard::RateSnapshot;
use super::segment::Segment;
use crate::packet::TICK_PS;

/// What an ACK delivered.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// Cumulatively acknowledged.
    pub acked_bytes: u64,
    pub acked_segments: u32,
    /// Delivered for the first time, cumulatively or selectively.
    pub bytes: u64,
    pub segments: u32,
    /// One of them had been sent more than once (Karn).
    pub any_retransmitted: bool,
    /// The least end of those that had been sent once; `u64::MAX` if there are none. The greatest end of all. These and what follows only
    /// where the scoreboard notes them: see [`super::scoreboard::Scoreboard::new`].
    pub lowest_original: u64,
    pub highest: u64,
    /// The most recently sent of the newly delivered ones.
    pub newest: Option<Segment>,
    /// Its rate snapshot, where those are kept.
    pub newest_rate: Option<RateSnapshot>,
    /// What RACK takes of it.
    pub evidence: Evidence,
}

impl Default for Delivered {
    fn default() -> Delivered {
        Delivered {
            acked_bytes: 0,
            acked_segments: 0,
            bytes: 0,
            segments: 0,
            any_retransmitted: false,
            lowest_original: u64::MAX,
            highest: 0,
            newest: None,
            newest_rate: None,
            evidence: Evidence::default(),
        }
    }
}

/// What `tcp_rack_advance` keeps of the segments that an ACK delivered: it is told of every one, and does not believe some.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// A retransmission that left after this time, ps, was answered sooner than in the least round trip: the answer was to the original
    /// (RFC 8985 section 6.2 step 2). `u64::MAX` if no round trip is known.
    doubted_after: u64,
    /// When what the ACK echoes was sent, in ticks of time stamps: a retransmission that is acknowledged in order and left later was
    /// spurious (`tcp_skb_spurious_retrans`). `u64::MAX` without time stamps.
    echoed: u64,
    /// When the most recently sent one left, whole microseconds, ps; and its end: of a burst that is acknowledged in part, the burst's.
    latest: Option<(u64, u64)>,
    /// The one that Linux looks at last: SACKs come first, then what is acknowledged in order, such as a segment whose ACK was delayed.
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    sent_at: u64,
    end: u64,
    sacked: bool,
}

impl Default for Evidence {
    fn default() -> Evidence {
        Evidence::new(u64::MAX, u64::MAX)
    }
}

impl Evidence {
    /// Before anything is known to be delivered.
    pub fn new(doubted_after: u64, echoed: u64) -> Evidence {
        Evidence { doubted_after, echoed, latest: None, last: None }
    }

    /// When the most recently sent segment that is believed left and where it ends, and when the one left whose round trip counts; ps.
    pub fn advance(&self) -> Option<((u64, u64), u64)> {
        Some((self.latest?, self.last?.sent_at))
    }

    fn note(&mut self, s: &Segment) {
        let sent_at = ticked(s.sent_at);
        // Time stamps count ticks: one that left in the tick of the echo may have been answered.
        let spurious = !s.sacked && s.sent_at / TICK_PS > self.echoed;
        // `tcp_rack_advance` returns without a word: min RTT or the time stamp says that the original was answered.
        if s.ever_retransmitted && (sent_at > self.doubted_after || spurious) {
            return;
        }
        // RACK.xmit_ts and RACK.end_seq: the latest sent, and of those that left at one instant the last (`tcp_rack_sent_after`).
        self.latest = self.latest.max(Some((sent_at, s.end())));
        if !(s.sacked && self.last.is_some_and(|last| !last.sacked || last.end > s.end())) {
            self.last = Some(Last { sent_at, end: s.end(), sacked: s.sacked });
        }
    }

    /// What was acknowledged up to `end` is the first part of a buffer that ends at `whole`: `tcp_clean_rtx_queue` shortens it from the front,
    /// and tells RACK of its end all the same.
    pub(super) fn extend_last(&mut self, end: u64, whole: u64) {
        if let Some(last) = self.last.filter(|last| !last.sacked && last.end == end) {
            self.latest = self.latest.max(Some((last.sent_at, whole)));
        }
    }
}

/// A segment was delivered, and not before.
#[inline]
pub(super) fn note_delivery(s: &Segment, rate: Option<RateSnapshot>, notes_newest: bool, d: &mut Delivered) {
    d.bytes += u64::from(s.len);
    d.segments += 1;
    if !notes_newest {
        return;
    }
    // F-RTO asks for what was sent once (RFC 5682).
    if !s.ever_retransmitted {
        d.lowest_original = d.lowest_original.min(s.end());
    }
    d.highest = d.highest.max(s.end());
    // `tcp_rate_skb_delivered`: the latest sent is the sample; of those of one time the last in the stream.
    if d.newest.is_none_or(|n| (ticked(s.sent_at), s.end()) > (ticked(n.sent_at), n.end())) {
        d.newest = Some(*s);
        d.newest_rate = rate;
    }
    d.evidence.note(s);
}

#[cfg(test)]
mod tests {
    use super::super::scoreboard::Scoreboard;
    use super::*;

    const US: u64 = 1_000_000;

    /// Ten segments, a microsecond apart.
    fn ten_packets(bursts: bool) -> Scoreboard {
        let mut board = Scoreboard::new(true);
        for n in 0..10 {
            board.push(
                Segment { starts_burst: !bursts || n % 5 == 0, ..Segment::new(n * 1000, 1000, n / 5 * US) },
                None,
            );
        }
        board
    }

    /// Linux looks at SACKs first and at what is acknowledged in order afterwards, each in the order of the stream.
    #[test]
    fn the_last_one_looked_at_is_the_highest_acknowledged_else_the_highest() {
        let last = |ack: u64, blocks: [(u64, u64); 3]| {
            let (mut board, mut d) = (ten_packets(false), Delivered::default());
            board.acknowledge(ack, &mut d);
            board.sack(blocks, &mut d);
            d.evidence.last.map(|s| s.end)
        };
        assert_eq!(last(2000, [(3000, 4000), (0, 0), (0, 0)]), Some(2000));
        assert_eq!(last(0, [(5000, 6000), (3000, 4000), (0, 0)]), Some(6000));
        assert_eq!(last(0, [(0, 0); 3]), None);
    }

    #[test]
    fn of_a_burst_that_is_acknowledged_in_part_rack_takes_the_end_of_the_whole() {
        let latest = |bursts, ack, probe: bool| {
            let (mut board, mut d) = (ten_packets(bursts), Delivered::default());
            if probe {
                board.cut(9);
            }
            board.acknowledge(ack, &mut d);
            d.evidence.advance()
        };
        assert_eq!(latest(true, 7000, false), Some(((US, 10_000), US)));
        assert_eq!(latest(true, 7000, true), Some(((US, 9000), US)), "the probe's segment is a buffer of its own");
        assert_eq!(latest(true, 5000, false), Some(((0, 5000), 0)));
        assert_eq!(latest(false, 7000, false), Some(((US, 7000), US)));
    }

    /// What an original tells counts though the ACK answers a retransmission as well that came back too soon.
    #[test]
    fn a_retransmission_that_is_answered_too_soon_hides_no_original() {
        let (mut board, mut d) = (ten_packets(false), Delivered::default());
        board.retransmit(9, 50 * US);
        d.evidence.doubted_after = 49 * US;
        board.acknowledge(2000, &mut d);
        board.sack([(9000, 10_000), (0, 0), (0, 0)], &mut d);
        assert_eq!(d.evidence.advance(), Some(((0, 2000), 0)));
        assert_eq!(d.newest.map(|s| s.seq), Some(9000));
    }

    #[test]
    fn what_a_time_stamp_shows_to_answer_the_original_is_not_believed() {
        let latest = |echoed| {
            let (mut board, mut d) = (ten_packets(false), Delivered::default());
            board.retransmit(0, 3 * TICK_PS);
            d.evidence.echoed = echoed;
            board.acknowledge(1000, &mut d);
            d.evidence.advance().map(|(latest, _)| latest)
        };
        assert_eq!((latest(2), latest(3)), (None, Some((3 * TICK_PS, 1000))));
    }
}
