//! Segmentation offload at the sender: TCP hands many segments to the network card at once, which cuts them and sends them back to back.
//!
//! *Source*: Linux 6.12 `tcp_output.c` (`tcp_tso_autosize`, `tcp_cwnd_test`, `tcp_tso_should_defer`, `tcp_mss_split_point`, `tcp_grow_skb`),
//! `tcp.c` (`tcp_xmit_size_goal`).
//!
//! *Departures*: what a buffer takes from the one behind it leaves that one as long as it was; corking of small writes while the host holds earlier
//! data (`tcp_should_autocork`) changes no order on one link and is left out.

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

/// What waits in a connection's write queue, as far as bursts ask.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Bytes of its first buffer.
    pub first: u64,
    /// Bytes of all.
    pub all: u64,
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
        let is_last = self.waiting.first == self.waiting.all;
        let chunk = self.told.min(self.window) / WINDOW_DIVISOR;
        let Some(front_sent) = self.front_sent else { return Verdict::Send };
        let ack_in = (front_sent + self.srtt).saturating_sub(self.now);
        if self.recovers
            || self.now > self.last_send + MS_PS
            || limit >= self.wanted
            || !is_last && limit >= self.waiting.first
            || limit >= chunk
            || ack_in > (self.srtt / 2).min(MS_PS)
        {
            return Verdict::Send;
        }
        Verdict::Wait { cwnd_limited: self.free < self.open && self.free <= self.waiting.first }
    }
}

/// The cutting of one connection's stream into buffers and bursts.
#[derive(Debug)]
pub struct Offload {
    /// Where the first unsent buffer ends in the stream.
    buffer_end: u64,
    /// The largest window that was told.
    most_told: u64,
}

impl Offload {
    /// Of a connection whose receiver told this window first.
    pub fn new(window: u64) -> Offload {
        Offload { buffer_end: 0, most_told: window }
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
    pub fn half_window(&self) -> u64 {
        self.most_told / 2
    }

    /// The first buffer, of which all up to `nxt` is sent, is the last one, and takes what it has room for of what is written up to `written`;
    /// where it ends then.
    pub fn fill(&mut self, nxt: u64, written: u64, mss: u32) -> u64 {
        self.buffer_end = written.min(nxt.saturating_add(self.buffer(mss))).max(self.buffer_end);
        self.buffer_end
    }

    /// Bytes that the first buffer holds, where the stream is sent up to `nxt` and written up to `written`.
    pub fn first(&mut self, nxt: u64, written: u64, mss: u32) -> u64 {
        if self.buffer_end <= nxt {
            self.buffer_end = written.min(nxt.saturating_add(self.buffer(mss)));
        }
        self.buffer_end - nxt
    }

    /// Bytes were written behind `before`: the last buffer takes what it has room for.
    pub fn append(&mut self, nxt: u64, before: u64, written: u64, mss: u32) {
        if self.buffer_end == before && before > nxt {
            self.buffer_end = written.min(nxt.saturating_add(self.buffer(mss))).max(before);
        }
    }

    /// The first buffer takes from the one behind it until it holds so many bytes (`tcp_grow_skb`); how many it holds then.
    pub fn grow(&mut self, nxt: u64, written: u64, bytes: u64, mss: u32) -> u64 {
        let first = self.first(nxt, written, mss);
        if first < bytes {
            let behind = (written - self.buffer_end).min(self.buffer(mss));
            self.buffer_end += (bytes - first).min(behind);
        }
        self.buffer_end - nxt
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
            waiting: Waiting { first: 40_000, all: 80_000 },
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
        assert_eq!(Chance { waiting: Waiting { first: 4_000, all: 80_000 }, ..chance() }.judge(), Verdict::Send);
        // The last buffer may grow yet.
        let last = Waiting { first: 4_000, all: 4_000 };
        assert_eq!(Chance { waiting: last, ..chance() }.judge(), Verdict::Wait { cwnd_limited: false });
        // The ACK is 60 us away, more than half of the round trip.
        assert_eq!(Chance { front_sent: Some(60 * US_PS), ..chance() }.judge(), Verdict::Send);
        assert_eq!(Chance { recovers: true, ..chance() }.judge(), Verdict::Send);
        assert_eq!(Chance { now: 2 * MS_PS, ..chance() }.judge(), Verdict::Send);
        assert_eq!(Chance { front_sent: None, ..chance() }.judge(), Verdict::Send);
    }

    /// Half of a window of 65,160 bytes are 22 whole segments.
    #[test]
    fn buffers_are_whole_segments_of_at_most_half_of_the_largest_window() {
        let mut offload = Offload::new(65_160);
        assert_eq!(offload.buffer(MSS), 22 * 1448);
        assert_eq!(offload.first(0, 100_000, MSS), 22 * 1448);
        offload.note_window(1 << 20);
        assert_eq!(offload.first(1448, 100_000, MSS), 21 * 1448);
        assert_eq!(offload.first(22 * 1448, 100_000, MSS), 45 * 1448);
    }

    /// 22 segments, of which five leave, and five after that: what an application still writes has room behind them.
    #[test]
    fn what_leaves_of_a_buffer_while_it_is_written_makes_room_in_it() {
        let mut offload = Offload::new(65_160);
        let segments = |n: u64| n * 1448;
        assert_eq!(offload.fill(0, 1 << 20, MSS), segments(22));
        assert_eq!(offload.fill(segments(5), 1 << 20, MSS), segments(27));
        assert_eq!(offload.fill(segments(10), 1 << 20, MSS), segments(32));
        assert_eq!(offload.first(segments(10), 1 << 20, MSS), segments(22));
        assert_eq!(offload.fill(segments(20), segments(40), MSS), segments(40));
    }

    #[test]
    fn a_buffer_grows_by_what_is_behind_it_and_the_last_by_what_is_written() {
        let mut offload = Offload::new(1 << 20);
        assert_eq!(offload.first(0, 1000, MSS), 1000);
        offload.append(0, 1000, 3000, MSS);
        assert_eq!(offload.first(0, 3000, MSS), 3000);
        assert_eq!(offload.grow(0, 3000, 1 << 30, MSS), 3000);
        let mut offload = Offload::new(1 << 20);
        assert_eq!(offload.first(0, 200_000, MSS), 65_160);
        assert_eq!(offload.grow(60_000, 200_000, 14_480, MSS), 14_480);
    }
}
