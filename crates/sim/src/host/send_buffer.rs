//! How much of what an application writes a socket takes, and when one that waits for room is woken.
//!
//! *Source*: Linux 6.12 `tcp_input.c` (`tcp_sndbuf_expand`), `tcp.c` (`tcp_sendmsg_locked`), `stream.c` (`sk_stream_write_space`).

use super::small_queue::BUFFER;

/// `tcp_wmem`: what a socket's send buffer begins with, and the most it becomes.
const LEAST_LIMIT: u64 = 16_384;
const MOST_LIMIT: u64 = 4 << 20;
/// `TCP_INIT_CWND`
const LEAST_WINDOW: u64 = 10;
/// What the send buffer counts beside a segment's payload: the time stamp option (`mss_clamp` is without it), `MAX_TCP_HEADER` and
/// `struct skb_shared_info`, and, beyond the power of two that these take, `struct sk_buff`.
const OPTIONS: u64 = 12;
const HEADERS: u64 = 320 + 320;
const STRUCT: u64 = 256;

/// A socket as the application that writes into it sees it.
#[derive(Clone, Copy, Debug)]
pub struct Socket {
    /// Memory that it may take, bytes (`sk_sndbuf`).
    pub(super) limit: u64,
    /// One past the last byte that the application has written (`write_seq`).
    pub frontier: u64,
    /// The application found no room, and sleeps (`SOCK_NOSPACE`).
    waits: bool,
}

impl Default for Socket {
    fn default() -> Socket {
        Socket { limit: LEAST_LIMIT, frontier: 0, waits: false }
    }
}

impl Socket {
    /// It may take as much memory as so many windows of `window` segments need (`tcp_sndbuf_expand`).
    pub fn expand(&mut self, windows: u64, window: f64, mss: u32) {
        let per_segment = (u64::from(mss) + OPTIONS + HEADERS).next_power_of_two() + STRUCT;
        let segments = (window.max(0.0) as u64).max(LEAST_WINDOW);
        self.limit = self.limit.max((windows * segments * per_segment).min(MOST_LIMIT));
    }

    /// Whether there is room for one more buffer beside what is held; where not, the application sleeps.
    pub fn takes(&mut self, held: u64) -> bool {
        self.waits |= held >= self.limit;
        held < self.limit
    }

    /// The application writes up to `end` what leaves as single segments, as far as there is memory beside what is held.
    pub fn fill(&mut self, held: Held, end: u64) {
        while self.frontier < end && self.takes(held.memory(self.frontier)) {
            self.frontier = end.min(self.frontier + u64::from(held.mss));
        }
    }

    /// The application sleeps until there is room.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Whether the application that sleeps is woken: a third of the memory is free (`sk_stream_write_space`).
    pub fn wakes(&mut self, held: u64) -> bool {
        let wakes = self.waits && held < self.limit && self.limit - held >= held / 2;
        self.waits &= !wakes;
        wakes
    }

    /// Nothing is written any more, and what had not left by `nxt` does not leave.
    pub fn stop(&mut self, nxt: u64) {
        (self.frontier, self.waits) = (nxt, false);
    }
}

/// What is written as single segments and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// All below is acknowledged.
    pub acked: u64,
    /// So many segments beyond are known to have arrived: Linux joins them to one buffer (`tcp_shift_skb_data`).
    pub sacked: u32,
    pub mss: u32,
}

impl Held {
    /// Its memory, where the stream is written up to `frontier` (`sk_wmem_queued`).
    pub fn memory(&self, frontier: u64) -> u64 {
        let bytes = frontier.saturating_sub(self.acked);
        let buffers = bytes.div_ceil(u64::from(self.mss)).saturating_sub(u64::from(self.sacked));
        bytes + BUFFER * buffers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(acked: u64, sacked: u32) -> Held {
        Held { acked: acked * 1448, sacked, mss: 1448 }
    }

    /// (1448 + 12 + 640 -> 4096) + 256 bytes a segment: twenty take 87,040, which 37 of 2408 bytes exceed and 36 do not.
    #[test]
    fn a_socket_begins_with_room_for_two_initial_windows() {
        let mut socket = Socket::default();
        socket.expand(2, 10.0, 1448);
        socket.fill(held(0, 0), u64::MAX);
        assert_eq!(socket.frontier, 37 * 1448);
    }

    /// 24 of 37 buffers take 57,792 bytes and leave 29,248, more than half as much; 25 take 60,200 and leave 26,840.
    #[test]
    fn the_application_is_woken_once_a_third_is_free() {
        let mut socket = Socket::default();
        socket.expand(2, 10.0, 1448);
        socket.fill(held(0, 0), u64::MAX);
        assert!(!socket.wakes(held(12, 0).memory(socket.frontier)));
        assert!(socket.wakes(held(13, 0).memory(socket.frontier)));
        assert!(!socket.wakes(held(14, 0).memory(socket.frontier)), "it is awake");
    }

    /// Seven buffers of 1448 and 960 bytes are more than the 16,384 bytes that a socket begins with, six are less.
    #[test]
    fn a_socket_takes_a_buffer_while_its_memory_is_below_its_limit() {
        let mut socket = Socket::default();
        socket.fill(held(0, 0), 100_000);
        assert_eq!((socket.frontier, socket.waits()), (7 * 1448, true));
    }

    /// 87,040 bytes less 20 of 1448: 24 buffers of 2408 are less than 58,080, 25 are more.
    #[test]
    fn segments_that_have_arrived_take_the_memory_of_their_bytes() {
        let mut socket = Socket::default();
        socket.expand(2, 10.0, 1448);
        socket.fill(held(0, 20), u64::MAX);
        assert_eq!(socket.frontier, 45 * 1448);
    }

    #[test]
    fn an_application_that_has_written_all_waits_for_nothing() {
        let mut socket = Socket::default();
        socket.fill(held(0, 0), 5000);
        assert_eq!((socket.frontier, socket.waits()), (5000, false));
    }

    /// 4 MiB, of which each segment takes 2408 bytes: 1742.
    #[test]
    fn a_socket_never_holds_more_than_tcp_wmem_allows() {
        let mut socket = Socket::default();
        socket.expand(2, 1e6, 1448);
        socket.fill(held(0, 0), u64::MAX);
        assert_eq!(socket.frontier, 1742 * 1448);
    }
}
