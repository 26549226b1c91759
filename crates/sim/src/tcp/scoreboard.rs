//! What is outstanding: one record per segment, with the flags that recovery needs and the pipe of RFC 6675 kept up to date.

use super::delivered::{Delivered, note_delivery};
use super::rtt::ticked;
use super::segment::{Kept, Segment, is};
use fanin_switch::Ring;

/// What a delivery-rate sample needs from the time when its segment was sent (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSnapshot {
    /// Segments delivered on the connection.
    pub delivered: u64,
    /// When the last of those was delivered, ps.
    pub delivered_at: u64,
    /// When the first segment of the sample's window was sent, ps.
    pub first_sent_at: u64,
    /// The application limited the connection.
    pub app_limited: bool,
}

/// Snapshots in the order of the segments.
#[derive(Clone, Debug, Default)]
struct Rates {
    snapshots: Ring<RateSnapshot>,
}

/// Outstanding segments in order of sequence.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    segments: Ring<Kept>,
    /// First byte of the first of them.
    start: u64,
    /// [`Delivered`] says which segments were delivered, not only how many.
    notes_newest: bool,
    /// A snapshot per segment, for algorithms that ask for rate samples. Boxed: most do not.
    rates: Option<Box<Rates>>,
    /// Number of the front segment, counting from the first ever sent.
    base: u64,
    /// Segments and bytes in the network.
    pipe: u32,
    pipe_bytes: u64,
    /// Lost and not retransmitted yet.
    pending: u32,
    sacked: u32,
    /// Declared lost and not delivered yet, whether they were sent again or not (`lost_out`).
    lost: u32,
    /// How often one was declared so.
    lost_in_all: u64,
    /// Without SACK: segments that duplicate ACKs tell of, no one knows which (Linux's `sacked_out` of a connection without SACK).
    assumed: u32,
    /// No lost segment below this number, or below `base`, awaits retransmission.
    hint: u64,
    /// Everything unsacked below this number, or below `base`, has been declared lost.
    lost_below: u64,
    /// Number of the highest sacked segment + 1; 0 if none.
    top_sacked: u64,
    /// SACK blocks of the last ACK, so that only what is new in a block is walked. Boxed: most connections never see one.
    seen: Option<Box<[(u64, u64); 3]>>,
}

impl Scoreboard {
    /// Of a connection that has sent nothing. `notes_newest`: what RACK, F-RTO and rate samples need of [`Delivered`] is noted too.
    pub fn new(notes_newest: bool) -> Scoreboard {
        Scoreboard { notes_newest, ..Scoreboard::default() }
    }
    /// Nothing outstanding.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
    /// Outstanding segments, lost ones included.
    pub fn outstanding(&self) -> u32 {
        self.segments.len() as u32
    }
    /// Segments believed to be in the network.
    pub fn pipe(&self) -> u32 {
        self.pipe.saturating_sub(self.assumed)
    }
    /// Bytes believed to be in the network.
    pub fn pipe_bytes(&self) -> u64 {
        self.pipe_bytes
    }
    /// Lost segments that wait for retransmission.
    pub fn pending(&self) -> u32 {
        self.pending
    }
    /// How often a segment was declared lost so far (`tp->lost`).
    pub fn lost_in_all(&self) -> u64 {
        self.lost_in_all
    }
    /// Segments that were declared lost and not delivered yet, those that were sent again included (`lost_out`).
    pub fn lost(&self) -> u32 {
        self.lost
    }
    /// Selectively acknowledged segments.
    pub fn sacked(&self) -> u32 {
        self.sacked + self.assumed
    }
    /// A duplicate ACK tells of one more segment that has left the network, unless none can have (`tcp_add_reno_sack`). False if none can.
    pub fn assume_delivered(&mut self) -> bool {
        self.assumed += 1;
        self.limit_assumed()
    }
    /// Of so many segments that were acknowledged one closed the hole, the others are what duplicate ACKs told of
    /// (`tcp_remove_reno_sacks`). False if more had been assumed than can be.
    pub fn take_assumed(&mut self, acked: u32) -> bool {
        self.assumed = self.assumed.saturating_sub(acked.saturating_sub(1));
        self.limit_assumed()
    }
    /// What duplicate ACKs told of is forgotten (`tcp_reset_reno_sack`).
    pub fn forget_assumed(&mut self) {
        self.assumed = 0;
    }
    /// `tcp_limit_reno_sacked`: at least one segment is missing, and all that are lost.
    fn limit_assumed(&mut self) -> bool {
        if self.assumed == 0 {
            return true;
        }
        let out = self.outstanding();
        let lost = self.segments.iter().filter(|s| s.has(is::LOST)).count() as u32;
        // holes = min(max(lost_out, 1), packets_out); sacked_out is at most the rest.
        let most = out - lost.clamp(1, out.max(1)).min(out);
        let fits = self.assumed <= most;
        self.assumed = self.assumed.min(most);
        fits
    }
    /// Declares the first segment lost, unless it has been before.
    pub fn lose_front(&mut self) -> u32 {
        u32::from(self.segments.front().is_some_and(|s| !s.has(is::LOST)) && self.lose(0))
    }
    /// The first outstanding one.
    pub fn front(&self) -> Option<Segment> {
        self.segments.front().map(|s| s.whole(self.start))
    }
    /// The one at a position from the front.
    pub fn get(&self, index: usize) -> Segment {
        self.segments[index].whole(self.start)
    }

    /// A new segment leaves, which begins where the one before ends. A connection gives each a snapshot, or none.
    #[inline(always)]
    pub fn push(&mut self, segment: Segment, rate: Option<RateSnapshot>) {
        if let Some(rate) = rate {
            self.rates.get_or_insert_default().snapshots.push(rate);
        }
        // RFC 6675 SetPipe: what was sent and is neither SACKed nor lost.
        self.pipe += 1;
        self.pipe_bytes += u64::from(segment.len);
        if self.segments.is_empty() {
            self.start = segment.seq;
        }
        debug_assert!(segment.len <= u32::from(u16::MAX), "a segment is a packet");
        debug_assert!(
            self.segments.back().is_none_or(|last| last.end(self.start) == segment.seq),
            "segments leave in order, without holes"
        );
        let (seq, len) = (segment.seq as u32, segment.len as u16);
        let mut state = if segment.pushes { is::PUSHING } else { 0 };
        if segment.starts_burst {
            state |= is::STARTS_BURST;
        }
        self.segments.push(Kept { sent_at: segment.sent_at, seq, len, state });
    }

    /// Everything below `ack` is acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64, d: &mut Delivered) {
        let (mut segments, before, mut start) = (0, self.start, self.start);
        // What was sent once and not SACKed goes this short way; from the first other segment on, the long one.
        let simple = !self.notes_newest && self.rates.is_none();
        while let Some(front) = self.segments.front() {
            let end = start + u64::from(front.len);
            if end > ack {
                break;
            }
            // Sent again, SACKed or lost: it stands in other counts, too.
            if !(simple && front.is_untouched()) {
                self.start = start;
                self.acknowledge_rest(ack, d);
                break;
            }
            start = end;
            segments += 1;
            self.segments.drop_front();
        }
        let bytes = start - before;
        self.start = self.start.max(start);
        // Untouched segments were all in the pipe.
        self.base += u64::from(segments);
        self.pipe -= segments;
        self.pipe_bytes -= bytes;
        d.acked_segments += segments;
        d.acked_bytes += bytes;
        d.segments += segments;
        d.bytes += bytes;
    }

    /// The same where something has become of segments, or more is to be noted of them.
    #[inline(never)]
    fn acknowledge_rest(&mut self, ack: u64, d: &mut Delivered) {
        while let Some(front) = self.segments.front() {
            let s = *front;
            let end = self.start + u64::from(s.len);
            // Acknowledged in part: outstanding as long as its last byte is.
            if end > ack {
                break;
            }
            let segment = s.whole(self.start);
            self.start = end;
            self.segments.drop_front();
            let rate = self.rates.as_mut().and_then(|rates| {
                let rate = rates.snapshots.front().copied()?;
                rates.snapshots.drop_front();
                Some(rate)
            });
            self.base += 1;
            d.acked_bytes += u64::from(s.len);
            d.acked_segments += 1;
            // RFC 6675 SetPipe: what is acknowledged has left the network.
            if s.in_pipe() {
                self.pipe -= 1;
                self.pipe_bytes -= u64::from(s.len);
            }
            if s.is_pending() {
                self.pending -= 1;
            }
            // What was SACKed counted as delivered then.
            if segment.sacked {
                self.sacked -= 1;
            } else {
                self.lost -= u32::from(segment.lost);
                note_delivery(&segment, rate, self.notes_newest, d);
            }
            d.any_retransmitted |= segment.ever_retransmitted;
        }
        if self.notes_newest && self.segments.front().is_some_and(|s| !s.has(is::STARTS_BURST | is::SACKED)) {
            d.evidence.extend_last(self.start, self.get(self.burst_until(0) - 1).end());
        }
    }

    /// Position after the last segment of what the host holds as one buffer with the one at `index`: a burst that was handed to the network
    /// card, less what has been cut off by SACKs, retransmissions and probes (`tcp_fragment`).
    pub fn burst_until(&self, index: usize) -> usize {
        let sacked = self.segments[index].has(is::SACKED);
        let rest = self.segments.iter().skip(index + 1);
        index + 1 + rest.take_while(|s| !s.has(is::STARTS_BURST) && s.has(is::SACKED) == sacked).count()
    }

    /// Marks what the blocks (absolute, left inclusive, right exclusive) cover; true if anything was new.
    pub fn sack(&mut self, blocks: [(u64, u64); 3], d: &mut Delivered) -> bool {
        let mut news = false;
        for (left, right) in blocks {
            // No block (RFC 2018: a SACK option has up to four, here three beside time stamps).
            if left == right {
                continue;
            }
            let (mut from, mut to) = (left, right);
            // Of a block that has grown since the last ACK only the new part is walked.
            for (l, r) in self.seen.as_deref().copied().unwrap_or_default() {
                if l == left && r <= right && r > l {
                    from = from.max(r);
                } else if r == right && l >= left && r > l {
                    to = to.min(l);
                }
            }
            let start = self.start;
            let mut i = self.segments.partition_point(|s| s.seq(start) < from);
            while let Some(s) = self.segments.get_mut(i) {
                // Covered in part: as if not at all, since receivers have whole packets.
                if s.end(start) > to {
                    break;
                }
                if !s.has(is::SACKED) {
                    if s.in_pipe() {
                        self.pipe -= 1;
                        self.pipe_bytes -= u64::from(s.len);
                    }
                    if s.is_pending() {
                        self.pending -= 1;
                    }
                    // It was not lost after all (`tcp_sacktag_one`).
                    self.lost -= u32::from(s.has(is::LOST));
                    // A segment counts as delivered once, at its first SACK.
                    s.state |= is::SACKED;
                    self.sacked += 1;
                    let rate = self.rates.as_ref().and_then(|r| r.snapshots.get(i).copied());
                    note_delivery(&s.whole(start), rate, self.notes_newest, d);
                    d.any_retransmitted |= s.has(is::EVER_RETRANSMITTED);
                    // HighACK of RFC 6675: the highest that is known to have arrived.
                    self.top_sacked = self.top_sacked.max(self.base + i as u64 + 1);
                    news = true;
                }
                i += 1;
            }
        }
        if self.seen.is_some() || news {
            **self.seen.get_or_insert_default() = blocks;
        }
        news
    }

    /// RFC 6675's IsLost for all segments at once: declares lost what has enough SACKed above it; returns how many.
    ///
    /// Enough: `threshold` discontiguous ranges, or more than `threshold - 1` segments' worth of bytes; by segments alone when
    /// `by_count`, as segments of random size demand.
    pub fn detect_losses(&mut self, threshold: u32, mss: u32, by_count: bool) -> u32 {
        // Losses are known by what arrived above them alone.
        if self.sacked == 0 || self.top_sacked <= self.base {
            return 0;
        }
        // RFC 6675 IsLost: DupThresh discontiguous SACKed ranges above it, or more than (DupThresh - 1) SMSS bytes.
        let enough_bytes = u64::from(threshold - 1) * u64::from(mss);
        let (mut ranges, mut bytes, mut count, mut in_range) = (0, 0u64, 0, false);
        let mut at = self.top_sacked;
        // From the highest SACK down: where it is enough, everything below is lost, too.
        while at > self.lost_below.max(self.base) {
            at -= 1;
            let s = &self.segments[(at - self.base) as usize];
            if !s.has(is::SACKED) {
                in_range = false;
                continue;
            }
            if !in_range {
                ranges += 1;
                in_range = true;
            }
            bytes += u64::from(s.len);
            count += 1;
            let enough = if by_count { count >= threshold } else { ranges >= threshold || bytes > enough_bytes };
            if enough {
                return self.lose_range(self.lost_below.max(self.base), at);
            }
        }
        0
    }

    /// Segments from the first outstanding to the highest selectively acknowledged one (`fackets_out`).
    pub fn forward(&self) -> u32 {
        self.top_sacked.saturating_sub(self.base) as u32
    }

    /// Declares lost those of the first `count` segments that end at `end` or before and are neither delivered nor sent again; returns how many.
    pub fn lose_first(&mut self, count: u32, end: u64) -> u32 {
        // `tcp_mark_head_lost`: from the front on, not beyond what had been sent at the loss.
        let within = self.segments.partition_point(|s| s.end(self.start) <= end);
        let to = self.base + u64::from(count).min(within as u64);
        self.lose_range(self.lost_below.max(self.base), to)
    }

    /// Declares lost again what was sent again before the highest selectively acknowledged segment left for the first time
    /// (`tcp_mark_lost_retrans`); returns how many.
    pub fn lose_passed_retransmissions(&mut self) -> u32 {
        let Some(top) = self.forward().checked_sub(1).map(|at| self.segments[at as usize]) else { return 0 };
        // Which of its transmissions arrived is not known, so neither is when that left.
        if top.has(is::EVER_RETRANSMITTED) {
            return 0;
        }
        let passed = |s: &Kept| s.has(is::RETRANSMITTED) && s.sent_at <= top.sent_at;
        (0..self.forward() as usize).filter(|&i| passed(&self.segments[i]) && self.lose(i)).count() as u32
    }

    fn lose_range(&mut self, from: u64, to: u64) -> u32 {
        let mut lost = 0;
        for at in from..to {
            let index = (at - self.base) as usize;
            // A retransmission is not judged by what was SACKed for the original (RFC 6675 section 5).
            if !self.segments[index].has(is::RETRANSMITTED) {
                lost += u32::from(self.lose(index));
            }
        }
        self.lost_below = self.lost_below.max(to);
        lost
    }

    /// Declares the segment at `index` lost (again, if it was retransmitted); false if it is delivered or already waiting.
    pub fn lose(&mut self, index: usize) -> bool {
        let s = &mut self.segments[index];
        if s.has(is::SACKED) || s.is_pending() {
            return false;
        }
        // RFC 6675 SetPipe: what is lost and not sent again is in no pipe; a retransmission that is lost waits again.
        self.lost += u32::from(!s.has(is::LOST));
        self.lost_in_all += 1;
        s.state = (s.state | is::LOST) & !is::RETRANSMITTED;
        self.pipe -= 1;
        self.pipe_bytes -= u64::from(s.len);
        self.pending += 1;
        // The search for the next to be sent again begins here.
        self.hint = self.hint.min(self.base + index as u64);
        true
    }

    /// A retransmission timeout: nothing is believed to be in the network any more.
    pub fn lose_all(&mut self) {
        for i in 0..self.segments.len() {
            self.lose(i);
        }
        self.hint = self.base;
    }

    /// A timeout that gives up the first buffer and what was sent before `time` (`tcp_timeout_mark_lost`).
    pub fn lose_older_than(&mut self, time: u64) {
        // The first buffer is given up however young it is: its timer ended.
        let front = if self.is_empty() { 0 } else { self.burst_until(0) };
        for i in 0..self.segments.len() {
            if i < front || ticked(self.segments[i].sent_at) <= time {
                self.lose(i);
            }
        }
    }

    /// It was a mistake: nothing is lost, what waited for retransmission is in the network after all.
    pub fn find_all(&mut self) {
        for i in 0..self.segments.len() {
            let s = &mut self.segments[i];
            if s.is_pending() {
                self.pipe += 1;
                self.pipe_bytes += u64::from(s.len);
                self.pending -= 1;
            }
            // `tcp_undo_cwnd_reduction` clears TCPCB_LOST of every buffer, and forgets the hint.
            s.state &= !is::LOST;
        }
        self.lost = 0;
        self.lost_below = self.base;
    }

    /// A segment that was sent again is neither acknowledged nor given up.
    pub fn any_retransmission_outstanding(&self) -> bool {
        self.segments.iter().any(|s| s.state & (is::RETRANSMITTED | is::SACKED) == is::RETRANSMITTED)
    }

    /// Position of the first lost segment that waits for retransmission.
    pub fn next_lost(&mut self) -> Option<usize> {
        if self.pending == 0 {
            return None;
        }
        let mut i = (self.hint.max(self.base) - self.base) as usize;
        while i < self.segments.len() {
            let s = &self.segments[i];
            if s.is_pending() {
                self.hint = self.base + i as u64;
                return Some(i);
            }
            i += 1;
        }
        None
    }

    /// How many segments from a lost one on, at most `most`, are lost and left as part of the same burst.
    pub fn lost_run(&self, first: usize, most: u32) -> u32 {
        let rest = self.segments.iter().skip(first + 1).take(most.saturating_sub(1) as usize);
        1 + rest.take_while(|s| s.is_pending() && !s.has(is::STARTS_BURST)).count() as u32
    }

    /// What the host holds as one buffer ends before this position.
    pub fn cut(&mut self, index: usize) {
        if index < self.segments.len() {
            self.segments[index].state |= is::STARTS_BURST;
        }
    }

    /// Nothing, or one burst is outstanding.
    pub fn is_one_burst(&self) -> bool {
        !self.segments.iter().skip(1).any(|s| s.has(is::STARTS_BURST))
    }

    /// Position of the first unsacked segment above everything retransmitted and below something sacked (RFC 6675 NextSeg rule 3).
    pub fn next_hole(&self) -> Option<usize> {
        // Rule 3 (1.b): below the highest SACKed byte.
        let top = self.top_sacked.checked_sub(self.base)? as usize;
        // HighRxt: above everything that was sent again.
        let after = self.segments.iter().take(top).rposition(|s| s.has(is::RETRANSMITTED)).map_or(0, |i| i + 1);
        (after..top.min(self.segments.len())).find(|&i| !self.segments[i].has(is::SACKED | is::RETRANSMITTED))
    }

    /// Position of the highest unsacked segment below `limit` (RFC 6675 NextSeg rule 4).
    pub fn highest_unsacked_below(&self, limit: u64) -> Option<usize> {
        self.segments.iter().rposition(|s| !s.has(is::SACKED) && s.seq(self.start) < limit)
    }

    /// The segment at `index` is sent again at `now`; returns it.
    pub fn retransmit(&mut self, index: usize, now: u64) -> Segment {
        // In and out again: it leaves the pipe as lost and comes back as a retransmission.
        let was_lost = self.segments[index].has(is::LOST);
        self.lose(index);
        let s = &mut self.segments[index];
        if !was_lost {
            // A tail-loss probe does not declare anything lost.
            self.lost -= 1;
            s.state &= !is::LOST;
        }
        // RFC 6675 SetPipe: a retransmission is in the pipe.
        s.state |= is::RETRANSMITTED | is::EVER_RETRANSMITTED;
        s.sent_at = now;
        self.pending -= 1;
        self.pipe += 1;
        self.pipe_bytes += u64::from(s.len);
        s.whole(self.start)
    }

    /// Rewrites the rate snapshot of the segment at `index`.
    pub fn stamp(&mut self, index: usize, rate: RateSnapshot) {
        if let Some(place) = self.rates.as_mut().and_then(|r| r.snapshots.get_mut(index)) {
            *place = rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ten_packets() -> Scoreboard {
        let mut board = Scoreboard::new(true);
        for n in 0..10 {
            board.push(Segment::new(n * 1000, 1000, n), None);
        }
        board
    }

    /// Linux's times of sending are whole microseconds: a segment that goes again in the one in which a later one left counts as sent before it.
    #[test]
    fn of_what_left_in_one_microsecond_the_later_in_the_stream_is_the_newest() {
        let newest = |again: u64| {
            let (mut board, mut d) = (ten_packets(), Delivered::default());
            board.retransmit(0, again);
            board.acknowledge(1000, &mut d);
            board.sack([(9000, 10_000), (0, 0), (0, 0)], &mut d);
            d.newest.map(|s| s.seq)
        };
        assert_eq!((newest(999_999), newest(1_000_000)), (Some(9000), Some(0)));
    }

    /// RFC 6675 by hand: packets 1..10 outstanding, SACK covers {2, 4, 5}.
    #[test]
    fn three_sacked_segments_above_mean_lost_and_two_do_not() {
        let mut board = ten_packets();
        let mut d = Delivered::default();
        board.sack([(3000, 5000), (1000, 2000), (0, 0)], &mut d);
        assert_eq!(board.detect_losses(3, 1000, false), 1);
        assert!(board.get(0).lost && !board.get(2).lost);
        assert_eq!(board.pipe(), 6);
        assert_eq!(board.next_lost(), Some(0));
        board.retransmit(0, 99);
        assert_eq!((board.pipe(), board.pending()), (7, 0));
        assert_eq!(d.segments, 3);
    }

    #[test]
    fn a_growing_block_is_walked_only_where_it_is_new_and_counts_once() {
        let mut board = ten_packets();
        let mut d = Delivered::default();
        assert!(board.sack([(1000, 2000), (0, 0), (0, 0)], &mut d));
        assert!(board.sack([(1000, 4000), (0, 0), (0, 0)], &mut d));
        assert!(!board.sack([(1000, 4000), (0, 0), (0, 0)], &mut d));
        assert_eq!((d.segments, board.pipe(), board.sacked()), (3, 7, 3));
        let mut d = Delivered::default();
        board.acknowledge(4000, &mut d);
        assert_eq!((d.acked_segments, d.segments, board.sacked()), (4, 1, 0));
    }

    /// Of a segment's number the low half is kept.
    #[test]
    fn numbers_go_on_beyond_32_bits() {
        let (first, mut d) = ((1 << 32) - 1500, Delivered::default());
        let mut board = Scoreboard::new(true);
        (0..4).for_each(|n| board.push(Segment::new(first + n * 1000, 1000, n), None));
        assert!(board.sack([(first + 2000, first + 3000), (0, 0), (0, 0)], &mut d));
        assert_eq!((d.highest, board.highest_unsacked_below(first + 3000)), (first + 3000, Some(1)));
        board.acknowledge(first + 2000, &mut d);
        assert_eq!((board.front().map(|s| (s.seq, s.sacked)), d.bytes), (Some((first + 2000, true)), 3000));
        board.acknowledge(first + 3000, &mut d);
        assert_eq!((board.get(0).seq, board.get(0).end(), board.pipe()), (first + 3000, first + 4000, 1));
    }

    #[test]
    fn a_timeout_empties_the_pipe_and_spares_what_was_sacked() {
        let mut board = ten_packets();
        let mut d = Delivered::default();
        board.sack([(5000, 6000), (0, 0), (0, 0)], &mut d);
        board.lose_all();
        assert_eq!((board.pipe(), board.pending()), (0, 9));
    }
}
