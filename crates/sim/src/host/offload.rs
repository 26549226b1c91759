//! Segmentation offload at the sender: TCP hands many segments to the network card at once, which cuts them and sends them back to back.
//!
//! *Source*: Linux 6.12 `tcp_output.c` (`tcp_tso_autosize`, `tcp_cwnd_test`, `tcp_tso_should_defer`, `tcp_mss_split_point`, `tcp_grow_skb`,
//! `tso_fragment`), `tcp.c` (`tcp_sendmsg_locked`, `tcp_xmit_size_goal`).
//!
//! *Departures*: what an application writes last is pushed at once, though the host holds earlier data (`tcp_should_autocork`), which changes no
//! order on one link; buffers that SACKs or retransmissions join or cut take the memory that they took when they were sent.

use super::send_buffer::Socket;
use super::small_queue::BUFFER;
use std::collections::VecDeque;

const US_PS: u64 = 1_000_000;
const MS_PS: u64 = 1_000_000_000;
/// Payload of the largest burst: 64 KB less the room for headers (`sk_dst_gso_max_size`, `MAX_TCP_HEADER` 320).
const MOST_BYTES: u64 = 65_536 - 1 - 320;
/// `tcp_tso_rtt_log`: a round trip's share of a burst halves with each so many microseconds, as a power of two.
const RTT_LOG: u32 = 9;
/// `sk_pacing_shift`: a burst is at least what the pacing rate sends in 1/1024 s.
const BURSTS_PER_SECOND: f64 = 1024.0;
/// `tcp_min_tso_segs`.
const LEAST_SEGMENTS: u32 = 2;
/// Below this rate, bytes of payload per second, BBR sends single segments (`bbr_min_tso_rate`, 1.2 Mbps).
const BBR_SINGLE: f64 = 1.2e6 / 8.0;
/// `tcp_tso_win_divisor`: this part of the window is worth sending.
const WINDOW_DIVISOR: u64 = 3;
/// `TCP_MSS_DEFAULT`: windows below it are not halved.
const SMALL_WINDOW: u64 = 536;

/// Segments that a burst should have (`tcp_tso_segs`): what the pacing rate (payload bytes per second, infinite before the first sample) sends in a
/// millisecond, and more the shorter the least round trip is, ps. `single`: an algorithm that asks for single segments at low rates.
pub fn goal(mss: u32, pacing: f64, min_rtt: u64, single: bool) -> u32 {
    let mut bytes = (pacing / BURSTS_PER_SECOND).min(MOST_BYTES as f64) as u64;
    let halvings = if min_rtt == 0 { u64::MAX } else { (min_rtt / US_PS) >> RTT_LOG };
    if halvings < 32 {
        bytes += MOST_BYTES >> halvings;
    }
    let least = if single && pacing < BBR_SINGLE { 1 } else { LEAST_SEGMENTS };
    ((bytes.min(MOST_BYTES) / u64::from(mss.max(1))) as u32).max(least)
}

/// Segments that the window lets out at once: what is left of it, and no more than half, so that two bursts are under way (`tcp_cwnd_test`).
pub fn quota(window: f64, in_flight: f64) -> u32 {
    let (window, in_flight) = (window.max(0.0) as u32, in_flight.max(0.0) as u32);
    window.saturating_sub(in_flight).min((window / 2).max(1))
}

/// The first buffer of a connection's write queue, as far as bursts ask.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its bytes.
    pub first: u64,
    /// No other is behind it: it may grow yet.
    pub is_last: bool,
}

/// What the wait for a larger burst depends on; bytes and ps.
#[derive(Clone, Copy, Debug)]
pub struct Chance {
    pub now: u64,
    /// Congestion window, and what of it is free.
    pub window: u64,
    pub free: u64,
    /// The receiver's window, and what of it is free.
    pub told: u64,
    pub open: u64,
    /// A burst of the wanted size.
    pub wanted: u64,
    pub waiting: Waiting,
    /// When something was last sent, or will be with pacing.
    pub last_send: u64,
    /// When the first segment outstanding left, if one is.
    pub front_sent: Option<u64>,
    pub srtt: u64,
    /// The connection repairs losses.
    pub recovers: bool,
}

/// What comes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Send,
    Wait {
        /// The congestion window is why.
        cwnd_limited: bool,
    },
}

impl Chance {
    /// Whether it is worth to wait for the next ACK, which will let a larger burst out (`tcp_tso_should_defer`).
    pub fn judge(&self) -> Verdict {
        let limit = self.free.min(self.open);
        let chunk = self.told.min(self.window) / WINDOW_DIVISOR;
        let Some(front_sent) = self.front_sent else { return Verdict::Send };
        let ack_in = (front_sent + self.srtt).saturating_sub(self.now);
        if self.recovers
            || self.now > self.last_send + MS_PS
            || limit >= self.wanted
            || !self.waiting.is_last && limit >= self.waiting.first
            || limit >= chunk
            || ack_in > (self.srtt / 2).min(MS_PS)
        {
            return Verdict::Send;
        }
        Verdict::Wait { cwnd_limited: self.free < self.open && self.free <= self.waiting.first }
    }
}

/// The write queue of one connection's socket: buffers (Linux's skbs), which are cut when the application writes, and end where they end.
#[derive(Debug)]
pub struct Offload {
    /// Where each buffer that is not sent ends in the stream; the first begins with the next byte to send.
    ends: VecDeque<u64>,
    /// Where each buffer that is sent and not acknowledged ends.
    sent: VecDeque<u64>,
    /// Its last buffer ends at the frontier.
    pub socket: Socket,
    /// Up to where it was told to push (`pushed_seq`).
    pushed: u64,
    /// The largest window that was told.
    most_told: u64,
}

impl Offload {
    /// Of a connection whose receiver told this window first.
    pub fn new(window: u64) -> Offload {
        Offload {
            ends: VecDeque::new(),
            sent: VecDeque::new(),
            socket: Socket::default(),
            pushed: 0,
            most_told: window,
        }
    }

    /// The receiver told a window.
    pub fn note_window(&mut self, window: u64) {
        self.most_told = self.most_told.max(window);
    }

    /// Bytes that TCP puts into a buffer: whole segments, of at most half of the largest window seen (`tcp_bound_to_half_wnd`).
    pub fn buffer(&self, mss: u32) -> u64 {
        let half = if self.most_told > SMALL_WINDOW { self.half_window() } else { self.most_told };
        let mss = u64::from(mss);
        (MOST_BYTES.min(half) / mss * mss).max(mss)
    }

    /// Half of the largest window seen.
    fn half_window(&self) -> u64 {
        self.most_told / 2
    }

    // ---- what the application writes (`tcp_sendmsg_locked`) ---------------------------------------------------------

    /// Bytes of the last buffer, where the stream is sent up to `nxt`.
    pub fn last(&self, nxt: u64) -> u64 {
        let before = self.ends.len().checked_sub(2).map_or(nxt, |i| self.ends[i]);
        if self.ends.is_empty() { 0 } else { self.socket.frontier - before }
    }

    /// The last buffer, or one of its own if that holds `goal` bytes, takes what it has room for of what is written up to `end`; false if the
    /// socket has no memory for one more. `apart`: it joins no buffer that is there.
    pub fn fill(&mut self, acked: u64, nxt: u64, end: u64, goal: u64, apart: bool) -> bool {
        let mut held = self.last(nxt);
        if self.ends.is_empty() || held >= goal || apart {
            let taken = self.held(acked);
            if !self.socket.takes(taken) {
                return false;
            }
            self.ends.push_back(self.socket.frontier);
            held = 0;
        }
        self.socket.frontier = end.min(self.socket.frontier + (goal - held));
        if let Some(last) = self.ends.back_mut() {
            *last = self.socket.frontier;
        }
        true
    }

    /// So much is written since it was pushed last that it is pushed again (`forced_push`).
    pub fn must_push(&self) -> bool {
        self.socket.frontier > self.pushed + self.half_window()
    }

    /// What is written is to leave (`tcp_mark_push`).
    pub fn mark_push(&mut self) {
        self.pushed = self.socket.frontier;
    }

    // ---- what leaves (`tcp_write_xmit`) -----------------------------------------------------------------------------

    /// The first buffer takes from the one behind it, which ends where it did, until it holds `wanted` bytes (`tcp_grow_skb`); how many it holds
    /// then. It takes nothing from beyond `border`.
    pub fn grow(&mut self, nxt: u64, wanted: u64, border: u64) -> u64 {
        let Some(&first) = self.ends.front() else { return 0 };
        let missing = wanted.saturating_sub(first - nxt);
        if missing > 0
            && first < border
            && let Some(&second) = self.ends.get(1)
        {
            let grown = second.min(first + missing);
            self.ends[0] = grown;
            if grown == second {
                self.ends.remove(1);
            }
            return grown - nxt;
        }
        first - nxt
    }

    /// The first buffer is the last one.
    pub fn is_last(&self) -> bool {
        self.ends.len() <= 1
    }

    /// The first buffer is cut at `end` (`tso_fragment`), whether it leaves or not.
    pub fn cut(&mut self, end: u64) {
        if self.ends.front().is_some_and(|&first| end < first) {
            self.ends.push_front(end);
        }
    }

    /// All up to `nxt` has left.
    pub fn note_sent(&mut self, nxt: u64) {
        while self.ends.front().is_some_and(|&first| first <= nxt) {
            self.ends.pop_front();
        }
        self.sent.push_back(nxt);
    }

    /// Nothing new is sent.
    pub fn stop(&mut self, nxt: u64) {
        self.ends.clear();
        self.socket.stop(nxt);
    }

    // ---- memory -----------------------------------------------------------------------------------------------------

    /// Memory of what the socket holds (`sk_wmem_queued`), all below `acked` being acknowledged.
    pub fn held(&mut self, acked: u64) -> u64 {
        while self.sent.front().is_some_and(|&end| end <= acked) {
            self.sent.pop_front();
        }
        self.socket.frontier - acked + BUFFER * (self.ends.len() + self.sent.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    /// 65,215 bytes are 45 segments of 1448.
    #[test]
    fn a_round_trip_below_half_a_millisecond_makes_every_burst_the_largest() {
        assert_eq!(goal(MSS, 1e6, 511 * US_PS, false), 45);
        assert_eq!(goal(MSS, 1e6, 512 * US_PS, false), (976 + 65_215 / 2) / MSS);
    }

    /// 100 MB/s for 1/1024 s are 97,656 bytes, 10 MB/s 9,765, six whole segments; a round trip of a second adds nothing.
    #[test]
    fn a_burst_is_a_millisecond_of_data_and_two_segments_at_least() {
        let second = 1_000_000 * US_PS;
        assert_eq!(goal(MSS, 100e6, second, false), 45);
        assert_eq!(goal(MSS, 10e6, second, false), 6);
        assert_eq!(goal(MSS, 1e5, second, false), 2);
        assert_eq!(goal(MSS, 1e5, second, true), 1);
        assert_eq!(goal(MSS, f64::INFINITY, 0, false), 45);
    }

    #[test]
    fn a_burst_takes_at_most_half_of_the_window() {
        assert_eq!(quota(10.0, 0.0), 5);
        assert_eq!(quota(10.0, 7.0), 3);
        assert_eq!(quota(10.0, 10.0), 0);
        assert_eq!(quota(1.0, 0.0), 1);
    }

    fn chance() -> Chance {
        Chance {
            now: 100 * US_PS,
            window: 30_000,
            free: 5_000,
            told: 60_000,
            open: 50_000,
            wanted: 65_160,
            waiting: Waiting { first: 40_000, is_last: false },
            last_send: 90 * US_PS,
            front_sent: Some(10 * US_PS),
            srtt: 100 * US_PS,
            recovers: false,
        }
    }

    #[test]
    fn a_burst_waits_for_an_ack_that_is_near_and_would_let_more_out() {
        let waits = Verdict::Wait { cwnd_limited: true };
        assert_eq!(chance().judge(), waits);
        // A third of the window is worth sending, and what a buffer ends with.
        assert_eq!(Chance { free: 10_000, ..chance() }.judge(), Verdict::Send);
        assert_eq!(Chance { waiting: Waiting { first: 4_000, is_last: false }, ..chance() }.judge(), Verdict::Send);
        // The last buffer may grow yet.
        let last = Waiting { first: 4_000, is_last: true };
        assert_eq!(Chance { waiting: last, ..chance() }.judge(), Verdict::Wait { cwnd_limited: false });
        // The ACK is 60 us away, more than half of the round trip.
        assert_eq!(Chance { front_sent: Some(60 * US_PS), ..chance() }.judge(), Verdict::Send);
        assert_eq!(Chance { recovers: true, ..chance() }.judge(), Verdict::Send);
        assert_eq!(Chance { now: 2 * MS_PS, ..chance() }.judge(), Verdict::Send);
        assert_eq!(Chance { front_sent: None, ..chance() }.judge(), Verdict::Send);
    }

    /// So many whole segments, bytes.
    fn segments(n: u64) -> u64 {
        n * u64::from(MSS)
    }

    /// A socket whose application writes up to `end` with one call, as far as it has room, while nothing leaves.
    fn write(offload: &mut Offload, nxt: u64, end: u64) {
        let goal = offload.buffer(MSS);
        while offload.socket.frontier < end && offload.fill(0, nxt, end, goal, false) {}
    }

    /// Of an open connection with an initial window of ten: 2 * 10 * 4,352 = 87,040 bytes of memory.
    fn open(window: u64) -> Offload {
        let mut offload = Offload::new(window);
        offload.socket.expand(2, 10.0, MSS);
        assert_eq!(offload.socket.limit, 87_040);
        offload
    }

    /// Half of a window of 65,160 bytes are 22 whole segments; half of a larger one is more than 64 KB hold.
    #[test]
    fn buffers_are_whole_segments_of_at_most_half_of_the_largest_window() {
        let mut offload = open(65_160);
        write(&mut offload, 0, 65_536);
        assert_eq!(offload.ends, [segments(22), segments(44), 65_536]);
        let mut offload = open(1 << 20);
        write(&mut offload, 0, 65_536);
        assert_eq!(offload.ends, [segments(45), 65_536]);
    }

    /// The window grows when three buffers of 22 are written: these stay as long as they are, but the last, which has no more than 376 bytes.
    #[test]
    fn a_buffer_ends_where_it_was_written_to_though_the_window_grows() {
        let mut offload = open(65_160);
        write(&mut offload, 0, segments(44) + 376);
        offload.note_window(1 << 20);
        write(&mut offload, 0, segments(89));
        assert_eq!(offload.ends, [segments(22), segments(44), segments(89)]);
    }

    /// 22 segments, of which five leave, and five after that: what an application still writes has room behind them.
    #[test]
    fn what_leaves_of_a_buffer_while_it_is_written_makes_room_in_it() {
        let mut offload = open(65_160);
        let (goal, end) = (offload.buffer(MSS), 65_536);
        for sent in [0, 5, 10] {
            offload.cut(segments(sent));
            offload.note_sent(segments(sent));
            assert!(offload.fill(0, segments(sent), end, goal, false));
            assert_eq!(offload.ends, [segments(22 + sent)]);
        }
        assert_eq!(offload.last(segments(10)), segments(22));
    }

    /// Buffers of 22, 22 and 1: the first takes eight of the second, which ends where it did; and all of it, but nothing of the third.
    #[test]
    fn a_buffer_grows_by_what_the_next_holds_which_ends_where_it_did() {
        let mut offload = open(65_160);
        write(&mut offload, 0, segments(45));
        assert_eq!(offload.grow(0, segments(20), u64::MAX), segments(22));
        assert_eq!(offload.grow(0, segments(30), u64::MAX), segments(30));
        assert_eq!(offload.ends, [segments(30), segments(44), segments(45)]);
        assert_eq!(offload.grow(0, segments(45), u64::MAX), segments(44));
        assert!(!offload.is_last());
        // A message of its own begins there.
        assert_eq!(offload.grow(0, segments(45), segments(44)), segments(44));
        assert_eq!(offload.grow(0, segments(45), u64::MAX), segments(45));
        assert!(offload.is_last());
    }

    /// A burst that the host holds back is a buffer of its own from then on (`tso_fragment` stands before `tcp_small_queue_check`).
    #[test]
    fn a_buffer_that_is_cut_and_does_not_leave_stays_cut() {
        let mut offload = open(65_160);
        write(&mut offload, 0, segments(22));
        offload.cut(segments(10));
        assert_eq!(offload.ends, [segments(10), segments(22)]);
        offload.note_sent(segments(10));
        assert_eq!(offload.ends, [segments(22)]);
    }

    /// Twice five segments have left of 32; with 22 more, 78,192 + 4 * 960 = 82,032 bytes are less than 87,040, so that another 22 begin; then no more.
    #[test]
    fn a_socket_begins_a_buffer_while_its_memory_is_below_its_limit() {
        let mut offload = open(65_160);
        for end in [5, 10, 32] {
            write(&mut offload, 0, segments(end));
            if end < 32 {
                offload.note_sent(segments(end));
            }
        }
        write(&mut offload, segments(10), 1 << 20);
        assert_eq!(offload.ends, [segments(32), segments(54), segments(76)]);
        assert_eq!(offload.held(0), segments(76) + 5 * 960);
        assert!(offload.socket.waits());
    }

    /// 76 segments are written, eight acknowledged, and seven buffers are left: 105,184 bytes. A window of 17 gives 147,968, of which less than half as
    /// much is free. When the ninth is acknowledged, 103,736 bytes are left of 165,376, as a window of 19 gives. As on Linux in virtual time.
    #[test]
    fn an_application_is_woken_when_a_third_of_the_memory_is_free() {
        let mut offload = open(65_160);
        for end in [5, 10, 32] {
            write(&mut offload, 0, segments(end));
            if end < 32 {
                offload.note_sent(segments(end));
            }
        }
        write(&mut offload, segments(10), 1 << 20);
        [14, 20, 26].iter().for_each(|&n| offload.note_sent(segments(n)));
        offload.socket.expand(2, 17.0, MSS);
        assert_eq!((offload.socket.limit, offload.held(segments(8))), (147_968, 105_184));
        assert!(!offload.socket.wakes(105_184));
        offload.socket.expand(2, 19.0, MSS);
        assert_eq!((offload.socket.limit, offload.held(segments(9))), (165_376, 103_736));
        assert!(offload.socket.wakes(103_736));
        assert!(!offload.socket.waits());
    }

    /// Half of 65,160 bytes are written since the last push.
    #[test]
    fn half_a_window_that_was_not_pushed_is_pushed() {
        let mut offload = open(65_160);
        write(&mut offload, 0, 32_580);
        assert!(!offload.must_push());
        write(&mut offload, 0, 32_581);
        assert!(offload.must_push());
        offload.mark_push();
        assert!(!offload.must_push());
    }

    /// 2 * 1000 * 4,352 are more than `tcp_wmem` allows; jumbo frames take 16 KB each and 256 bytes.
    #[test]
    fn a_socket_takes_two_windows_of_memory_and_four_mebibytes_at_most() {
        let mut offload = open(65_160);
        offload.socket.expand(2, 1000.0, MSS);
        assert_eq!(offload.socket.limit, 4 << 20);
        let mut offload = Offload::new(65_160);
        offload.socket.expand(2, 1.0, 8948);
        assert_eq!(offload.socket.limit, 2 * 10 * (16_384 + 256));
    }
}
