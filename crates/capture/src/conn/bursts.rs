//! Bursts that a sender handed to its network card as one: Linux ends each with PSH (tcp_output.c, `__tcp_transmit_skb`), also where the response
//! goes on behind it.

use serde::{Deserialize, Serialize};

/// A burst of full segments inside a response or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub segments: u32,
    /// It passed the tap as one packet of several segments.
    pub whole: bool,
}

/// One direction's burst in progress.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Bursts {
    bytes: u32,
    /// All of it was seen, in order.
    known: bool,
    /// A packet of it has several segments and no PSH: its receiver merged what the network had carried one by one.
    merged: bool,
    /// The one before, which ended with PSH: bytes, and whether it was one packet.
    ended: Option<(u32, bool)>,
}

impl Bursts {
    /// New data in order, of an application's message that this packet `begins` or goes on with; full segments carry `segment` bytes. What the burst
    /// before was, if that is known and the message went on behind it: what a message ends with says nothing of the card.
    #[inline]
    pub fn data(&mut self, payload: u32, begins: bool, pushed: bool, segment: u32) -> Option<Cut> {
        if begins {
            *self = Bursts { known: true, ..Bursts::default() };
        }
        let ended = self.ended.take().filter(|&(bytes, _)| bytes.is_multiple_of(segment));
        self.bytes = self.bytes.saturating_add(payload);
        if pushed {
            // A segment that left alone has no PSH: those before a packet of several are no part of its burst.
            let whole = payload > segment && !self.merged;
            self.ended = self.known.then_some((if whole { payload } else { self.bytes }, whole));
            (self.bytes, self.merged, self.known) = (0, false, true);
        } else {
            self.merged |= payload > segment;
        }
        ended.map(|(bytes, whole)| Cut { segments: bytes / segment, whole })
    }

    /// Something was lost, sent again or out of order: the burst in progress is not known.
    #[inline]
    pub fn disturbed(&mut self) {
        *self = Bursts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u32 = 1448;

    /// Hands over (payload, begins, pushed) and tells the bursts.
    fn told(packets: &[(u32, bool, bool)]) -> Vec<(u32, bool)> {
        let mut bursts = Bursts::default();
        let cut = packets.iter().filter_map(|&(payload, begins, pushed)| bursts.data(payload, begins, pushed, S));
        cut.map(|cut| (cut.segments, cut.whole)).collect()
    }

    #[test]
    fn a_burst_that_a_card_cut_counts_once_its_message_goes_on() {
        let message = [(S, true, false), (S, false, false), (S, false, true), (2 * S, false, true), (200, false, true)];
        assert_eq!(told(&message), [(3, false), (2, true)]);
    }

    #[test]
    fn the_end_of_a_message_is_no_burst() {
        assert_eq!(told(&[(S, true, false), (S, false, true), (S, true, false), (90, false, true)]), []);
    }

    #[test]
    fn what_an_application_wrote_in_pieces_of_other_sizes_is_no_burst() {
        assert_eq!(
            told(&[(S, true, false), (600, false, true), (S, false, false), (S, false, true), (S, false, false)]),
            [(2, false)]
        );
    }

    #[test]
    fn segments_that_left_alone_are_no_part_of_the_burst_behind_them() {
        let message = [(S, true, false), (2 * S, false, true), (S, false, false)];
        assert_eq!(told(&message), [(2, true)]);
    }

    #[test]
    fn what_a_receiver_merged_of_a_burst_is_not_the_burst() {
        let message = [(3 * S, true, false), (2 * S, false, true), (S, false, false)];
        assert_eq!(told(&message), [(5, false)]);
    }

    #[test]
    fn a_burst_with_a_loss_in_it_is_not_known() {
        let mut bursts = Bursts::default();
        bursts.data(S, true, false, S);
        bursts.disturbed();
        assert_eq!(bursts.data(S, false, true, S), None);
        assert_eq!(bursts.data(S, false, true, S), None);
        assert_eq!(bursts.data(S, false, false, S), Some(Cut { segments: 1, whole: false }));
    }
}
