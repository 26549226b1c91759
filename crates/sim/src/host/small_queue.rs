//! TCP small queues: a connection keeps little in its own host, so that a burst does not pass the others there.
//!
//! *Source*: Linux `tcp_small_queue_check` (net/ipv4/tcp_output.c): what a socket has in its host (`sk_wmem_alloc`) stays below the larger of two
//! segments and what its pacing rate sends in 1/1024 s, which `tcp_update_pacing_rate` finds for connections that are not paced, too, and which is
//! 1 MiB at most for these (`tcp_limit_output_bytes`); twice that for retransmissions. What the network card has sent counts no more.

use std::collections::VecDeque;

/// Memory of a buffer beside its payload, bytes, whether it is a segment or cut into several (segmentation offload). Linux 6.12 takes the room for
/// headers from a cache of its own, whose parts also hold what GRO pulls (`SKB_SMALL_HEAD_SIZE`): `struct sk_buff` 256, room 384, `struct
/// skb_shared_info` 320. In virtual time 28 segments wait for 35 in the host, and leave when it has 34.
pub const BUFFER: u64 = 256 + 384 + 320;

/// `tcp_limit_output_bytes`.
const MOST_UNPACED: f64 = 16.0 * 65_536.0;

/// However slow a connection is, its host may hold so many segments.
pub const LEAST: usize = 2;

/// Segments of one connection that its host has not sent yet.
#[derive(Debug, Default)]
pub struct SmallQueue {
    /// When each leaves, ps, in order.
    departures: VecDeque<u64>,
}

impl SmallQueue {
    /// A segment was handed to the host, which will have sent it at `departure`, ps.
    #[inline]
    pub fn push(&mut self, departure: u64) {
        self.departures.push_back(departure);
    }

    /// How many the host holds at `now`.
    #[inline]
    pub fn held(&mut self, now: u64) -> usize {
        while self.departures.front().is_some_and(|&at| at <= now) {
            self.departures.pop_front();
        }
        self.departures.len()
    }

    /// It holds as much as the limit, with so many bytes of memory each.
    fn holds(&self, each: u64, limit: f64) -> bool {
        // The socket's counter is never 0, so what equals the limit is above it.
        (self.departures.len() as u64 * each) as f64 >= limit
    }

    /// Whether a buffer of `bytes` waits: the limit is twice its memory, or `share` if that is more, which has a limit of its own where the connection
    /// is not paced; twice all that for retransmissions. `segment` is the payload of one, `share` what the pacing rate sends in the limit's time, bytes.
    pub fn is_full(&self, segment: u32, bytes: u64, share: f64, paced: bool, resends: bool) -> bool {
        let share = if paced { share } else { share.min(MOST_UNPACED) };
        let limit = share.max((LEAST as u64 * (bytes + BUFFER)) as f64);
        self.holds(u64::from(segment) + BUFFER, if resends { 2.0 * limit } else { limit })
    }

    /// Whether it holds more memory at `now` than a buffer of `bytes` takes.
    pub fn holds_more_than(&mut self, segment: u32, bytes: u64, now: u64) -> bool {
        self.held(now);
        self.holds(u64::from(segment) + BUFFER, (bytes + BUFFER) as f64)
    }

    /// When the host will have sent the next one, ps.
    pub fn next_departure(&self) -> u64 {
        self.departures.front().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_has_sent_counts_no_more() {
        let mut queue = SmallQueue::default();
        assert_eq!((queue.held(0), queue.next_departure()), (0, 0));
        queue.push(10);
        queue.push(20);
        assert_eq!((queue.held(9), queue.next_departure()), (2, 10));
        assert_eq!((queue.held(10), queue.next_departure()), (1, 20));
        assert_eq!(queue.held(20), 0);
    }

    #[test]
    fn a_fast_connection_holds_what_it_sends_in_the_limits_time() {
        let mut queue = SmallQueue::default();
        (1..=10).for_each(|at| queue.push(at));
        let memory = 10.0 * 2408.0;
        assert!(queue.is_full(1448, 1448, memory, false, false));
        assert!(!queue.is_full(1448, 1448, memory + 1.0, false, false));
    }

    /// 1 MiB hold 435 segments of 2408 bytes, however fast the connection is; as Linux 6.12 has it in virtual time.
    #[test]
    fn a_connection_that_is_not_paced_holds_no_more_than_tcp_limit_output_bytes() {
        let mut queue = SmallQueue::default();
        (1..=435).for_each(|at| queue.push(at));
        assert!(!queue.is_full(1448, 1448, 1e9, false, false));
        queue.push(436);
        assert!(queue.is_full(1448, 1448, 1e9, false, false));
        assert!(!queue.is_full(1448, 1448, 1e9, true, false) && !queue.is_full(1448, 1448, 1e9, false, true));
    }

    /// 2 * (28 * 1448 + 960) = 83,008 bytes: 35 * 2408 = 84,280 are more, 34 * 2408 = 81,872 less. As Linux 6.12 has it in virtual time.
    #[test]
    fn a_burst_waits_while_the_host_holds_twice_its_memory() {
        let mut queue = SmallQueue::default();
        (1..=34).for_each(|at| queue.push(at));
        let is_full = |queue: &SmallQueue, resends| queue.is_full(1448, 28 * 1448, 0.0, false, resends);
        assert!(!is_full(&queue, false));
        queue.push(35);
        assert!(is_full(&queue, false) && !is_full(&queue, true));
    }

    /// 376 bytes at the end of a call take 1,336: one segment of 2408 is more.
    #[test]
    fn a_short_buffer_is_less_than_a_segment_in_the_host() {
        let mut queue = SmallQueue::default();
        assert!(!queue.holds_more_than(1448, 376, 0));
        queue.push(10);
        assert!(queue.holds_more_than(1448, 376, 0));
        assert!(!queue.holds_more_than(1448, 376, 10));
        assert!(!queue.holds_more_than(1448, 2000, 0));
    }
}
