//! What a receiver takes for a full segment of its sender's, and which segments end what an application wrote.
//!
//! *Source*: Linux 6.12 `tcp_input.c` (`tcp_initialize_rcv_mss`, `tcp_measure_rcv_mss`, `tcp_incr_quickack`).

use crate::stack::Stack;

/// `TCP_MSS_DEFAULT`: the most that it is taken for before one has come.
const FIRST: u32 = 536;
/// `TCP_MIN_MSS`.
const LEAST: u32 = 88;
/// Of TCP alone.
const HEADER: u32 = 20;

/// `icsk_ack.rcv_mss`.
#[derive(Debug)]
pub(super) struct FullSegment {
    /// Payload of a full segment, bytes.
    pub size: u32,
    /// Payload of the last one, if it was shorter and may be full (`last_seg_size`).
    last: u32,
    /// Header of TCP with its options, bytes.
    header: u32,
}

/// What a segment says about the write that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ends {
    /// More may follow.
    No,
    /// It is full, and pushed.
    Pushed,
    /// It is short.
    Short,
}

impl FullSegment {
    /// Before anything has come.
    pub fn new(stack: &Stack) -> FullSegment {
        let header = (stack.header.get() as u32).saturating_sub(HEADER);
        let size = if stack.delack_bytes { stack.mss.clamp(LEAST, FIRST) } else { stack.mss };
        FullSegment { size, last: 0, header }
    }

    /// A segment with so many bytes came, of its sender's size if it is merged (`tcp_measure_rcv_mss`).
    pub fn measure(&mut self, len: u32, push: bool) -> Ends {
        let before = std::mem::take(&mut self.last);
        // A segment as long as any before is full, or longer than was thought.
        if len >= self.size {
            self.size = len;
            return if push { Ends::Pushed } else { Ends::No };
        }
        let whole = len + self.header;
        // A shorter one may be full if it is not tiny, or tiny and not pushed: two alike in a row are (`icsk_ack.last_seg_size`).
        if whole >= FIRST + HEADER || (whole >= LEAST + HEADER && !push) {
            self.last = len;
            if len == before {
                self.size = len;
                return Ends::No;
            }
        }
        Ends::Short
    }

    /// So many segments are acknowledged at once as a connection begins or goes on after a pause, of at most `most` (`tcp_incr_quickack`):
    /// half of the window that was told.
    pub fn initial_quickacks(&self, window: u64, most: u32) -> u32 {
        // quickacks = rcv_wnd / (2 * rcv_mss), 2 where that is none.
        let half = window / (2 * u64::from(self.size));
        let least = if half == 0 { 2 } else { half };
        least.min(u64::from(most)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux() -> FullSegment {
        FullSegment::new(&Stack::linux())
    }

    #[test]
    fn the_first_segment_that_is_larger_than_the_default_is_taken_for_a_full_one() {
        let mut full = linux();
        assert_eq!(full.size, 536);
        assert_eq!((full.measure(1448, false), full.size), (Ends::No, 1448));
        assert_eq!((full.measure(1448, true), full.size), (Ends::Pushed, 1448));
    }

    #[test]
    fn two_segments_of_one_length_in_a_row_are_full_ones() {
        let mut full = linux();
        full.measure(1448, false);
        assert_eq!((full.measure(600, true), full.size), (Ends::Short, 1448));
        assert_eq!((full.measure(600, true), full.size), (Ends::No, 600));
        assert_eq!((full.measure(1448, false), full.size), (Ends::No, 1448));
        // Below 536 bytes only without PSH.
        assert_eq!((full.measure(100, true), full.measure(100, true), full.size), (Ends::Short, Ends::Short, 1448));
        assert_eq!((full.measure(100, false), full.measure(100, false), full.size), (Ends::Short, Ends::No, 100));
    }

    /// 65,160 bytes are 22 times two segments of 1448, and 3 times two of 8948.
    #[test]
    fn a_connection_begins_with_an_ack_for_each_segment_of_half_of_its_window() {
        let mut full = linux();
        full.measure(1448, false);
        assert_eq!(full.initial_quickacks(65_160, 16), 16);
        full.measure(8948, false);
        assert_eq!((full.initial_quickacks(65_160, 16), full.initial_quickacks(10_000, 16)), (3, 2));
    }
}
