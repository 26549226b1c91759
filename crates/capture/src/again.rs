//! What passed the tap once more: a sender repeats what it thinks lost, and its receiver says where it had that already (D-SACK, RFC 2883).

use serde::{Deserialize, Serialize};

/// Bytes of a message that passed once more, and when its last byte had passed before.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Again {
    from: u64,
    to: u64,
    end: u64,
}

impl Again {
    /// The bytes from `from` to `to` passed once more, as others may have before; the message ended at `end` until then.
    #[inline]
    pub fn with(again: Option<Again>, from: u64, to: u64, end: u64) -> Again {
        again.map_or(Again { from, to, end }, |a| Again { from: a.from.min(from), to: a.to.max(to), end: a.end })
    }

    /// When the message ended, if its receiver had all that was repeated: these came twice. It had held its word back until then (a delayed acknowledgement,
    /// RFC 9293, section 3.8.6.3), which therefore does not say when the message had come.
    #[inline]
    pub fn needless(&self, twice: Option<(u64, u64)>) -> Option<u64> {
        twice.filter(|&(from, to)| from <= self.from && self.to <= to).map(|_| self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ended_with_its_first_copy_where_all_that_was_repeated_came_twice() {
        let again = Again::with(None, 100, 107, 5);
        assert_eq!([again.needless(Some((100, 107))), again.needless(Some((90, 107)))], [Some(5); 2]);
        assert_eq!([again.needless(None), again.needless(Some((101, 107)))], [None; 2]);
        let both = Again::with(Some(again), 40, 100, 9);
        assert_eq!([both.needless(Some((100, 107))), both.needless(Some((40, 107)))], [None, Some(5)]);
    }
}
