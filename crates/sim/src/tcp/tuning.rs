//! Linux's tuning of the receive buffer, and with it of the window: it starts small, grows with what arrives, and while it grows every
//! segment is acknowledged at once.
//!
//! *Source*: `tcp_input.c` (`tcp_init_buffer_space`, `tcp_grow_window`, `tcp_rcv_space_adjust`, `tcp_rcv_rtt_measure`, `tcp_rcv_rtt_measure_ts`),
//! `tcp_output.c` (`tcp_select_initial_window`, `__tcp_select_window`).
//!
//! *Departures*: a reading takes all that has come (`stack.read_size`); nothing is dropped for want of memory.

use crate::stack::{Coalesce, Stack};
use fanin_units::Duration;

/// Kernel memory that a segment takes beside its data: `sk_buff`, the head that its sender allocates, `skb_shared_info`, which hang on how a kernel is
/// configured. Measured: Linux 6.12 in virtual time advertises 78,336 of 131,072 bytes once it has seen full segments, a share of 153/256, so
/// that 1448 bytes of data take 2408 to 2422 of memory, and all these sizes are multiples of 64. A card's driver may take more or less.
const SEGMENT_OVERHEAD: u64 = 960;
/// Half of the memory is window until a segment has shown the true share, in 1/256 (`TCP_DEFAULT_SCALING_RATIO`).
const FIRST_RATIO: u64 = 128;
/// The largest window without scaling, which a SYN's never has.
const UNSCALED: u64 = 65_535;
/// `TCP_MAX_WSCALE`.
const MOST_SCALING: u32 = 14;
/// `TCP_MSS_DEFAULT`: what a receiver takes for the segment size until it has seen a larger one.
const FIRST_MSS: u64 = 536;
/// Smaller segments do not enlarge the window (`tcp_event_data_recv`).
const LEAST_TO_GROW: u64 = 128;
/// A buffer has so many pieces of pages (`MAX_SKB_FRAGS`), a segment one.
const MOST_JOINED: u64 = 17;
/// Least buffer, in segments.
const LEAST_SEGMENTS: u64 = 8;
/// Time stamps tick once a millisecond.
const TICK_US: u64 = 1000;

/// What arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub len: u64,
    /// It was the next one.
    pub in_order: bool,
    /// When the segment left that its sender had heard of last, in ticks.
    pub echo: u32,
    /// Next byte expected, the segment counted.
    pub nxt: u64,
    /// Bytes ahead of a hole.
    pub ahead: u64,
    /// What the application waits for is complete with it.
    pub complete: bool,
    /// The window that was told last.
    pub window: u64,
    pub now: u64,
    /// When the application has read it, ps: `now` where that takes no time.
    pub read_at: u64,
}

/// The buffer of one connection.
#[derive(Debug)]
pub(super) struct ReceiveBuffer {
    /// `sk_rcvbuf`, and the most that it can become.
    size: u64,
    most: u64,
    /// `window_clamp` and `rcv_ssthresh`.
    clamp: u64,
    threshold: u64,
    ratio: u64,
    mss: u64,
    seen_mss: u64,
    /// Estimate of the round trip in eighths of a microsecond, 0 before the first; the byte whose arrival ends the present measurement, and
    /// when that began.
    rtt: u64,
    measured_to: u64,
    measured_since: Option<u64>,
    last_echo: u32,
    /// The application reads so many bytes at a time; up to where it has read, and what waits for it.
    read_size: u64,
    read_to: u64,
    unread: u64,
    /// When it reads, ps, if it has something to read: then, or when the host is done with what came then.
    due: Option<u64>,
    queue: Queue,
    /// Bytes that the application read in the last round trip, and where and when the present one began.
    space: u64,
    space_from: u64,
    space_since: u64,
}

impl ReceiveBuffer {
    /// Of a connection that opens; `None` where the window is fixed.
    pub fn of(stack: &Stack, ack_time: Duration) -> Option<Box<ReceiveBuffer>> {
        let first = first_window(stack)?;
        let (size, mss) = (size_of(stack), u64::from(stack.mss));
        // `tcp_win_from_space` with the first ratio.
        let full = (size * FIRST_RATIO) >> 8;
        // One segment is reserved.
        let clamp = full.saturating_sub(mss).max(2 * mss);
        let threshold = first.min(clamp);
        Some(Box::new(ReceiveBuffer {
            size,
            most: stack.receive_window.get().max(size),
            clamp,
            threshold,
            ratio: FIRST_RATIO,
            mss,
            seen_mss: FIRST_MSS,
            rtt: 0,
            measured_to: 0,
            measured_since: None,
            last_echo: 0,
            read_size: stack.read_size.get(),
            read_to: 0,
            unread: 0,
            due: None,
            queue: Queue::of(stack, ack_time),
            // min3(rcv_ssthresh, rcv_wnd, TCP_INIT_CWND * advmss).
            space: threshold.min(10 * mss),
            space_from: 0,
            space_since: 0,
        }))
    }

    /// A segment arrived; whether the window grew.
    pub fn on_segment(&mut self, s: &Segment) -> bool {
        self.read_before(s.now);
        if s.echo != self.last_echo {
            self.last_echo = s.echo;
            // `tcp_rcv_rtt_measure_ts`: only of segments as long as the longest seen.
            let ticks = (s.now / crate::packet::TICK_PS).saturating_sub(u64::from(s.echo));
            if s.len >= self.seen_mss && ticks > 0 {
                self.sample(ticks * TICK_US, false);
            }
        }
        if s.in_order {
            self.measure_segment(s.len);
            self.measure_round_trip(s);
        }
        if s.nxt - self.read_to > self.unread {
            // What the segment brings is a buffer; what had been ahead of the hole that it closes follows in others.
            let end = (self.read_to + self.unread + s.len).min(s.nxt);
            self.queue.push(end, s.now);
            self.queue.push_run(end, s.nxt, self.mss, s.now);
        }
        self.unread = s.nxt - self.read_to;
        let grew = s.len >= LEAST_TO_GROW && self.grow(s);
        // Where reading takes time the application wakes up for all that comes (`Machines::wake`).
        let wakes = s.read_at > s.now || s.complete || self.unread >= self.read_size;
        if self.unread > 0 && wakes {
            self.due = self.due.or(Some(s.read_at));
        }
        grew
    }

    /// The application has read by `now` what came before; whether it has. It runs when the softirq that brought the data is over, all segments of
    /// one poll are with TCP, and ACKs of them have left.
    pub fn read_before(&mut self, now: u64) -> bool {
        let Some(at) = self.due.filter(|&at| at < now) else { return false };
        self.read(at);
        true
    }

    /// It reads at `now`, all there is, if it has something to read.
    pub fn read(&mut self, now: u64) {
        if self.due.take().is_none() {
            return;
        }
        // The first buffer that is copied decides, with the others still in the queue.
        let first = self.queue.read();
        (self.read_to, self.unread) = (self.read_to + self.unread, 0);
        self.adjust(first, now);
    }

    /// `tcp_measure_rcv_mss`: how much of a segment's memory is data, of all that GRO has merged with it, too.
    fn measure_segment(&mut self, len: u64) {
        if len.min(self.mss) <= self.seen_mss {
            return;
        }
        self.seen_mss = len.min(self.mss);
        // `tcp_scaling_ratio`: (len << TCP_RMEM_TO_WIN_SCALE) / truesize.
        // 1448 bytes in 2408 of memory: 153/256.
        let ratio = (len << 8) / (len + SEGMENT_OVERHEAD);
        if ratio != self.ratio {
            self.ratio = ratio;
            self.clamp = self.window_of(self.size);
            self.space = self.space.min(self.clamp);
        }
    }

    /// The time in which a window of data arrives.
    fn measure_round_trip(&mut self, s: &Segment) {
        if let Some(since) = self.measured_since {
            if s.nxt < self.measured_to {
                return;
            }
            // "if (!delta_us) delta_us = 1": two segments of one poll.
            self.sample(((s.now - since) / 1_000_000).max(1), true);
        }
        // `tcp_rcv_rtt_measure`: the next one ends where the window that is told now has come.
        self.measured_to = s.nxt + s.window;
        self.measured_since = Some(s.now);
    }

    fn sample(&mut self, us: u64, by_window: bool) {
        let eighths = us << 3;
        // `tcp_rcv_rtt_update`: time stamps are smoothed by an eighth; a window of data, an upper bound, can lower the estimate alone.
        if self.rtt == 0 || eighths < self.rtt {
            self.rtt = eighths;
        } else if !by_window {
            self.rtt = self.rtt - (self.rtt >> 3) + us;
        }
    }

    fn grow(&mut self, s: &Segment) -> bool {
        // `tcp_grow_window`: rcv_ssthresh grows by two segments, within window_clamp and what is free.
        let limit = self.clamp.min(self.free(s.ahead));
        let room = limit.saturating_sub(self.threshold);
        // incr = max(2 advmss, 2 skb->len); that such segments fit the buffer (Check #2) is taken for granted.
        self.threshold += room.min(2 * self.mss.max(s.len));
        room > 0
    }

    /// Once per round trip: room for twice what the application read in it, up to `read`, less what waits then, and more where that grew.
    fn adjust(&mut self, read: u64, now: u64) {
        let us = (now - self.space_since) / 1_000_000;
        if self.rtt == 0 || us < self.rtt >> 3 {
            return;
        }
        // `tcp_rcv_space_adjust`: rcvwin = 2 copied + 16 advmss, and twice its part by which copied has grown.
        let copied = (read - self.space_from).saturating_sub(self.read_to - read);
        if copied > self.space {
            // Twice against losses, and twice the growth: "the ACK we are sending now is for the next RTT".
            let base = (copied << 1) + 16 * self.mss;
            let grown = base * (copied - self.space) / self.space.max(1);
            let size = (((base + (grown << 1)) << 8) / self.ratio).min(self.most);
            if size > self.size {
                self.size = size;
                self.clamp = self.window_of(size);
            }
            self.space = copied;
        }
        self.space_from = read;
        self.space_since = now;
    }

    /// When the application reads, ps; `None` if it has nothing to read.
    pub fn reads_at(&self) -> Option<u64> {
        self.due
    }

    /// The application has read all that came in order, or is about to.
    pub fn is_read(&self) -> bool {
        self.unread == 0 || self.due.is_some()
    }

    /// The window to tell, with so many bytes ahead of a hole.
    pub fn window(&self, ahead: u64) -> u64 {
        self.threshold.min(self.free(ahead))
    }

    /// The window as a header tells it: rounded up to what window scaling leaves (`tcp_select_window`, `tcp_select_initial_window`).
    pub fn told(&self, window: u64) -> u64 {
        // ilog2(space) - 15: 7 for tcp_rmem[2] = 6 MB, so that windows are told in units of 128 bytes.
        let scale = self.most.max(UNSCALED + 1).ilog2() - UNSCALED.ilog2();
        window.next_multiple_of(1 << scale.min(MOST_SCALING))
    }

    /// An ACK leaves: its sender will give up what it acknowledges.
    pub fn note_ack(&mut self, number: u64, now: u64) {
        self.queue.note_ack(number, now);
    }

    /// The round trip as the receiver sees it (`rcv_rtt_est`); zero before the first sample.
    pub fn round_trip(&self) -> Duration {
        Duration::from_ps(self.rtt * 1_000_000 / 8)
    }

    /// Room for data beside what was not read and so many bytes ahead of a hole.
    fn free(&self, ahead: u64) -> u64 {
        let buffers = self.queue.buffers + ahead.div_ceil(self.mss);
        let used = self.unread + ahead + buffers * SEGMENT_OVERHEAD;
        self.window_of(self.size.saturating_sub(used))
    }

    fn window_of(&self, memory: u64) -> u64 {
        // `tcp_win_from_space`.
        (memory * self.ratio) >> 8
    }
}

/// The receive queue, of which Linux joins segments to one buffer (`tcp_try_coalesce`, `skb_try_coalesce`) unless the sender still holds what the
/// first of them shares with it.
#[derive(Debug)]
struct Queue {
    /// So long after an ACK has left its sender has given up what it acknowledges, ps; `u64::MAX` where nothing is joined.
    wait: u64,
    /// Buffers in the queue, and where the first of them ends.
    buffers: u64,
    first_end: u64,
    /// Of the last one: segments, where the first of them ends, and from when on others may join it.
    joined: u64,
    own_end: u64,
    open_from: u64,
}

impl Queue {
    fn of(stack: &Stack, ack_time: Duration) -> Queue {
        let wait = match stack.coalesce {
            Coalesce::Never => u64::MAX,
            // What a card or the kernel has cut shares nothing with its sender.
            Coalesce::Acknowledged if !stack.tso => ack_time.ps(),
            Coalesce::Acknowledged | Coalesce::Always => 0,
        };
        Queue { wait, buffers: 0, first_end: 0, joined: 0, own_end: 0, open_from: u64::MAX }
    }

    /// The next segment arrived, which ends there.
    fn push(&mut self, end: u64, now: u64) {
        if !self.joins(1, end, now) {
            self.append(1, end, if self.wait == 0 { 0 } else { u64::MAX });
        }
    }

    /// So many segments that end there become part of the last buffer, if that is open and has room for them.
    fn joins(&mut self, segments: u64, end: u64, now: u64) -> bool {
        // Linux joins what shares nothing with its sender any more, up to MAX_SKB_FRAGS pieces.
        let joins = self.buffers > 0 && now >= self.open_from && self.joined + segments <= MOST_JOINED;
        if joins {
            self.joined += segments;
            self.note_end(end);
        }
        joins
    }

    /// They are a buffer of their own, which others may join from then on.
    fn append(&mut self, segments: u64, end: u64, open_from: u64) {
        self.buffers += 1;
        (self.joined, self.own_end, self.open_from) = (segments, end, open_from);
        self.note_end(end);
    }

    fn note_end(&mut self, end: u64) {
        if self.buffers == 1 {
            self.first_end = end;
        }
    }

    /// It closed a hole, and what was ahead of that follows (`tcp_ofo_queue`), joined there already: a sender gives up what it shares of segments
    /// that SACK told of (`tcp_shift_skb_data`). The first of these buffers joins the one before it as a segment would.
    fn push_run(&mut self, start: u64, end: u64, mss: u64, now: u64) {
        let (most, open_from) = if self.wait == u64::MAX { (1, u64::MAX) } else { (MOST_JOINED, 0) };
        let mut from = start;
        while from < end {
            let to = end.min(from + most * mss);
            let segments = (to - from).div_ceil(mss);
            if !self.joins(segments, to, now) {
                self.append(segments, to, open_from);
            }
            from = to;
        }
    }

    /// An ACK leaves.
    fn note_ack(&mut self, number: u64, now: u64) {
        if self.open_from == u64::MAX && self.wait < u64::MAX && self.own_end <= number {
            self.open_from = now + self.wait;
        }
    }

    /// All is read; where the first buffer ended.
    fn read(&mut self) -> u64 {
        self.buffers = 0;
        self.first_end
    }
}

/// The first buffer: room for some segments in any case, as there is no zero window to probe.
fn size_of(stack: &Stack) -> u64 {
    stack.receive_buffer.get().max(LEAST_SEGMENTS * (u64::from(stack.mss) + SEGMENT_OVERHEAD))
}

/// The window that a connection opens with; `None` where it is fixed.
pub(super) fn first_window(stack: &Stack) -> Option<u64> {
    let mss = u64::from(stack.mss);
    let full = (size_of(stack) * FIRST_RATIO) >> 8;
    (stack.receive_buffer.get() > 0).then(|| (full / mss * mss).clamp(mss.min(UNSCALED), UNSCALED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Bytes;

    fn buffer() -> Box<ReceiveBuffer> {
        ReceiveBuffer::of(&Stack { read_size: Bytes::ZERO, ..Stack::linux() }, Duration::ZERO).unwrap()
    }

    fn segment(number: u64, us: u64, window: u64) -> Segment {
        let now = us * 1_000_000;
        let echo = (now / crate::packet::TICK_PS) as u32;
        Segment {
            len: 1448,
            in_order: true,
            echo,
            nxt: number * 1448,
            ahead: 0,
            complete: false,
            window,
            now,
            read_at: now,
        }
    }

    /// 128 KiB: half of it in whole segments is 45; less one segment until the first shows that 153/256 of the memory is data.
    #[test]
    fn the_window_starts_at_45_segments_and_grows_by_two_per_segment_to_what_the_buffer_holds() {
        let mut b = buffer();
        assert_eq!((first_window(&Stack::linux()), b.window(0)), (Some(65_160), 65_536 - 1448));
        let mut grown = 0;
        for n in 1..=20 {
            grown += u32::from(b.on_segment(&segment(n, 100 + n, 65_160)));
        }
        // 78336, which Linux advertises. One segment is in the buffer when the window grows: 76896 by 2896 from 64088, the last step a short one.
        assert_eq!((b.clamp, grown, b.window(0)), (78_336, 5, 76_896));
    }

    #[test]
    fn a_round_trip_in_which_more_was_read_enlarges_the_buffer() {
        let mut b = buffer();
        for n in 1..=46 {
            let s = segment(n, 100 + 10 * n, 65_160);
            b.on_segment(&s);
            b.read(s.now);
        }
        // The first window of 65160 bytes took 450 us: twice what was read, 16 segments, and twice the growth on top.
        let copied = 46 * 1448;
        let base = 2 * copied + 16 * 1448;
        let wanted = base + 2 * (base * (copied - 14_480) / 14_480);
        assert_eq!((b.rtt, b.size), (450 << 3, (wanted << 8) / 153));
    }

    /// The round trip is known from the 46th on. The fourth reading of twelve begins with the 37th: eleven are still in the queue then.
    #[test]
    fn what_waits_while_an_application_reads_does_not_count_as_read() {
        let b = read_twelve_at_a_time(Coalesce::Never, Duration::ZERO);
        let copied = (37 - 11) * 1448;
        let base = 2 * copied + 16 * 1448;
        let wanted = base + 2 * (base * (copied - 14_480) / 14_480);
        assert_eq!((b.rtt, b.size, b.space_from), (450 << 3, (wanted << 8) / 153, 37 * 1448));
    }

    /// 48 segments, ten microseconds and an ACK each; the application reads twelve at a time.
    fn read_twelve_at_a_time(coalesce: Coalesce, ack_time: Duration) -> Box<ReceiveBuffer> {
        let mut b = ReceiveBuffer::of(&Stack { coalesce, ..Stack::linux() }, ack_time).unwrap();
        for n in 1..=48 {
            let s = segment(n, 100 + 10 * n, 65_160);
            b.on_segment(&s);
            b.note_ack(s.nxt, s.now);
            b.read(s.now);
        }
        b
    }

    /// Joined, the twelve are one buffer, and all of them are read when it is: the fourth reading is of the 37th to the 48th, the round trip known
    /// from the 46th on.
    #[test]
    fn joined_segments_count_as_read_together() {
        let copied = 48 * 1448;
        let base = 2 * copied + 16 * 1448;
        let wanted = base + 2 * (base * (copied - 14_480) / 14_480);
        let b = read_twelve_at_a_time(Coalesce::Always, Duration::ms(1));
        assert_eq!((b.size, b.space_from), ((wanted << 8) / 153, copied));
    }

    /// `skb_cloned`: a segment joins the one before it if the sender has had its ACK, here after ten microseconds, not after eleven.
    #[test]
    fn a_segment_that_its_sender_still_holds_is_joined_by_no_other() {
        let ends = |us| read_twelve_at_a_time(Coalesce::Acknowledged, Duration::us(us)).space_from;
        assert_eq!([10, 200].map(ends), [48 * 1448, 37 * 1448]);
    }

    /// 17 pieces fill a buffer; what is joined takes no memory beside its data.
    #[test]
    fn a_buffer_takes_17_segments_whose_overhead_is_that_of_one() {
        let stack = Stack { coalesce: Coalesce::Always, read_size: Bytes::mb(1), ..Stack::linux() };
        let mut b = ReceiveBuffer::of(&stack, Duration::ZERO).unwrap();
        for n in 1..=18 {
            b.on_segment(&segment(n, 10 * n, 65_160));
        }
        assert_eq!((b.queue.buffers, b.queue.first_end), (2, 17 * 1448));
        assert_eq!(b.free(0), ((131_072 - 18 * 1448 - 2 * SEGMENT_OVERHEAD) * 153) >> 8);
        // A hole was filled behind which twenty had been joined: two buffers more.
        let filler = Segment { nxt: 39 * 1448, ..segment(19, 200, 65_160) };
        b.on_segment(&filler);
        assert_eq!((b.queue.buffers, b.queue.first_end), (4, 17 * 1448));
    }

    /// The sender has had the ACK of the first segment: the second joins it, the third, which fills a hole, too, and so does what follows the hole,
    /// as long as a buffer has pieces for all of that.
    #[test]
    fn what_follows_a_filled_hole_joins_the_last_buffer() {
        let stack = Stack { coalesce: Coalesce::Acknowledged, read_size: Bytes::mb(1), ..Stack::linux() };
        let behind = |run: u64| {
            let mut b = ReceiveBuffer::of(&stack, Duration::us(10)).unwrap();
            b.on_segment(&segment(1, 10, 65_160));
            b.note_ack(1448, 10_000_000);
            b.on_segment(&segment(2, 30, 65_160));
            b.on_segment(&Segment { nxt: (3 + run) * 1448, ..segment(3, 40, 65_160) });
            (b.queue.buffers, b.queue.first_end / 1448)
        };
        assert_eq!([10, 14, 15].map(behind), [(1, 13), (1, 17), (2, 3)]);
    }

    /// `tcp_rmem`'s 6 MiB are scaled by 7 bits.
    #[test]
    fn a_window_is_told_in_steps_of_128_bytes() {
        assert_eq!([65_160, 66_984, 67_072].map(|w| buffer().told(w)), [65_280, 67_072, 67_072]);
    }

    /// Twelve segments are more than 16 KiB: until then they wait, and take up the buffer.
    #[test]
    fn what_an_application_has_not_read_yet_takes_up_the_buffer() {
        let mut b = ReceiveBuffer::of(&Stack { coalesce: Coalesce::Never, ..Stack::linux() }, Duration::ZERO).unwrap();
        let told: Vec<u64> = (1..=12)
            .map(|n| {
                b.on_segment(&segment(n, 120 * n, 65_535));
                b.window(0)
            })
            .collect();
        assert!(told[10] < told[3], "{told:?}");
        // What an ACK of the twelfth tells is from before the reading.
        assert!(told[11] < told[10] && b.read_to == 0, "{told:?}");
        assert!(!b.read_before(1440 * 1_000_000) && b.read_before(1441 * 1_000_000));
        assert!(b.window(0) > told[11] && b.read_to == 12 * 1448, "{told:?}");
        let last = Segment { complete: true, ..segment(13, 1600, 65_535) };
        b.on_segment(&last);
        b.read(last.now);
        assert_eq!((b.read_to, b.unread), (13 * 1448, 0));
    }
}
