//! Positions on a flow's stream, from sequence numbers of 32 bits.

use crate::traffic::Tcp;
use std::collections::BTreeMap;

/// One direction of a connection. The first byte of data is at position 0; a FIN takes the position after the last.
#[derive(Debug, Default)]
pub struct Stream {
    /// Sequence number of the first byte.
    first: Option<u32>,
    /// Up to where everything was sent once.
    sent_to: u64,
    /// The largest acknowledgement sent for it.
    acked_to: u64,
    /// What the receiver has in order, and what lies beyond holes.
    delivered_to: u64,
    beyond: BTreeMap<u64, u64>,
}

impl Stream {
    /// Its SYN was sent.
    pub fn opened(&mut self, syn: Tcp) {
        self.first = Some(syn.seq.wrapping_add(1));
    }

    /// Where a segment starts; segments come in the order in which they were sent.
    pub fn sent(&mut self, tcp: Tcp, payload: u32) -> u64 {
        let start = self.near(tcp.seq, self.sent_to);
        self.sent_to = self.sent_to.max(start + u64::from(payload));
        start
    }

    /// Up to where an acknowledgement says that it has everything; acknowledgements come in the order in which they were sent.
    pub fn acknowledged(&mut self, tcp: Tcp) -> u64 {
        let to = self.near(tcp.ack, self.acked_to);
        self.acked_to = self.acked_to.max(to);
        to
    }

    /// A segment that starts at a position arrived; how many bytes became deliverable with it.
    pub fn arrived(&mut self, start: u64, payload: u32) -> u64 {
        let before = self.delivered_to;
        let end = self.beyond.entry(start).or_insert(0);
        *end = (*end).max(start + u64::from(payload));
        while let Some(entry) = self.beyond.first_entry().filter(|e| *e.key() <= self.delivered_to) {
            self.delivered_to = self.delivered_to.max(entry.remove());
        }
        self.delivered_to - before
    }

    /// What the receiver has in order.
    pub fn delivered(&self) -> u64 {
        self.delivered_to
    }

    /// The position within 2^31 of `about` that a number stands for: numbers wrap after 4 GB, a window is at most 1 GB (RFC 7323, 2.3).
    fn near(&mut self, number: u32, about: u64) -> u64 {
        let first = *self.first.get_or_insert(number);
        let ahead = number.wrapping_sub(first).wrapping_sub(about as u32) as i32;
        about.saturating_add_signed(i64::from(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(seq: u32, ack: u32) -> Tcp {
        Tcp { seq, ack, flags: Tcp::ACK, window: 0, timestamps: None, sack: [0; 6] }
    }

    /// A stream opened with `isn` after its first `segments` of `size` bytes were sent; where they start.
    fn sent(isn: u32, segments: u64, size: u32) -> (Stream, Vec<u64>) {
        let mut stream = Stream::default();
        stream.opened(tcp(isn, 0));
        let number = |n: u64| isn.wrapping_add(1).wrapping_add((n * u64::from(size)) as u32);
        let starts = (0..segments).map(|n| stream.sent(tcp(number(n), 0), size)).collect();
        (stream, starts)
    }

    const SIZE: u32 = 60_000;
    /// 12 GB: almost three times around.
    const MANY: u64 = 200_000;
    const ISN: u32 = u32::MAX - 100_000;

    #[test]
    fn all_of_a_stream_that_wraps_is_delivered_when_read_after_all_was_sent() {
        let (mut stream, starts) = sent(ISN, MANY, SIZE);
        assert!(starts.iter().zip(0..).all(|(&start, n)| start == n * u64::from(SIZE)));
        let bytes: Vec<u64> = starts.iter().map(|&start| stream.arrived(start, SIZE)).collect();
        assert!(bytes.iter().all(|&b| b == u64::from(SIZE)));
        assert_eq!(stream.delivered(), MANY * u64::from(SIZE));
    }

    #[test]
    fn acknowledgements_of_a_stream_that_wraps_rise() {
        let (mut stream, starts) = sent(ISN, MANY, SIZE);
        for &start in &starts {
            let end = start + u64::from(SIZE);
            assert_eq!(stream.acknowledged(tcp(0, ISN.wrapping_add(1).wrapping_add(end as u32))), end);
        }
    }

    #[test]
    fn a_retransmission_is_where_it_was() {
        let (mut stream, starts) = sent(ISN, MANY, SIZE);
        let hole = starts[150_000];
        let again = stream.sent(tcp(ISN.wrapping_add(1).wrapping_add(starts[MANY as usize - 9_000] as u32), 0), SIZE);
        assert_eq!(again, starts[MANY as usize - 9_000]);
        for &start in starts.iter().filter(|&&s| s != hole) {
            stream.arrived(start, SIZE);
        }
        assert_eq!(stream.delivered(), hole);
        assert_eq!(stream.arrived(hole, SIZE), starts[MANY as usize - 1] + u64::from(SIZE) - hole);
    }

    #[test]
    fn a_probe_before_the_first_byte_is_at_the_first_byte() {
        let (mut stream, _) = sent(7, 0, SIZE);
        assert_eq!(stream.sent(tcp(7, 0), 0), 0);
    }
}
