//! Streams of one connection that were said before: which of them are over.

use super::Part;
use super::calls::MOST;
use super::http2::SAYS;
use serde::{Deserialize, Serialize};

/// Of HTTP/2 (RFC 9113, section 5.1): clients number their streams one after the other, and either side may keep one open.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Streams {
    /// What comes on streams up to this one, if it is not under way and not open, was over before.
    pub last: u32,
    /// Streams up to it that no side was seen to end: what was said on them ended where nothing more was missing. Of more than may be under way the oldest
    /// are forgotten.
    open: Vec<u32>,
}

impl Streams {
    pub fn is_over(&self, stream: u32) -> bool {
        stream <= self.last && !self.is_open(stream)
    }

    pub fn is_open(&self, stream: u32) -> bool {
        stream != 0 && self.open.contains(&stream)
    }

    /// A message of this stream was said; `ended`: its response was the last.
    pub fn said(&mut self, stream: u32, ended: bool) {
        self.last = self.last.max(stream);
        self.open.retain(|&open| open != stream);
        if !ended && stream != 0 {
            if self.open.len() >= MOST {
                self.open.remove(0);
            }
            self.open.push(stream);
        }
    }

    /// A request on a stream that is not under way begins with this; on an open one with what its client says next.
    pub fn begins(&mut self, part: Part) -> bool {
        let goes_on = self.is_open(part.stream);
        if goes_on && (part.ends || part.aborts) {
            self.open.retain(|&open| open != part.stream);
        }
        if goes_on { part.note == SAYS } else { !self.is_over(part.stream) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_no_side_ended_goes_on_though_later_ones_are_over() {
        let mut streams = Streams::default();
        streams.said(1, false);
        streams.said(3, true);
        assert_eq!([1, 3, 5].map(|stream| streams.is_over(stream)), [false, true, false]);
        let part = |stream, note, ends| Part { note, ends, ..Part::message(stream) };
        assert!(streams.begins(part(1, SAYS, false)) && !streams.begins(part(1, 0, false)), "a head says nothing");
        assert!(!streams.begins(part(3, SAYS, false)) && streams.begins(part(5, 0, false)));
        assert!(!streams.begins(part(1, 0, true)) && streams.is_over(1), "its client ended it");
    }

    #[test]
    fn of_more_than_1024_open_streams_the_oldest_are_forgotten() {
        let mut streams = Streams::default();
        (0..1_025).for_each(|n| streams.said(2 * n + 1, false));
        assert_eq!([1, 3, 2_049].map(|stream| streams.is_open(stream)), [false, true, true]);
    }
}
