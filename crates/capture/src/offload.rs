//! What packets to a receiver show of its senders' network cards and of its own.
//!
//! A sender with segmentation offload (TSO, GSO) hands its card up to 64 KB at once, as much as it sends in a millisecond or two segments
//! (tcp_output.c, `tcp_tso_autosize`), and ends each such burst with PSH. Between namespaces and containers nothing cuts them but a token bucket,
//! which cuts those above its burst (sch_tbf.c, `tbf_enqueue`). A receiver that merges segments (GRO), or whose interrupts wait for several,
//! acknowledges more than two with one ACK.

use crate::conn::Cut;
use serde::Serialize;

/// Rows of a table: a burst has at most 64 KiB, 45 segments of Ethernet. What is longer, of smaller segments, counts as this.
const LONGEST: usize = 64;

/// Bursts of full segments and acknowledgements of a receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Offload {
    /// Full segments inside messages that passed in order: what bursts could be seen in.
    pub segments: u64,
    /// By length in segments, from one: bursts that ended with PSH though their message went on.
    pub bursts: Vec<u32>,
    /// Of these, those that passed as one packet.
    pub whole: Vec<u32>,
    /// By length in segments, from one: what one acknowledgement covered while nothing was being repaired.
    pub acknowledged: Vec<u32>,
}

impl Offload {
    /// A data packet of a message that goes on or begins, and the burst that is known to have ended before it.
    #[inline]
    pub(crate) fn data(&mut self, segments: u32, cut: Option<Cut>) {
        self.segments += u64::from(segments);
        if let Some(cut) = cut {
            count(&mut self.bursts, cut.segments);
            if cut.whole {
                count(&mut self.whole, cut.segments);
            }
        }
    }

    /// One acknowledgement covered so many segments.
    #[inline]
    pub(crate) fn acknowledged(&mut self, segments: u64) {
        count(&mut self.acknowledged, segments.min(LONGEST as u64) as u32);
    }
}

#[inline]
fn count(by_length: &mut Vec<u32>, segments: u32) {
    let place = (segments.max(1) as usize).min(LONGEST) - 1;
    if by_length.len() <= place {
        by_length.resize(place + 1, 0);
    }
    by_length[place] = by_length[place].saturating_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_and_acknowledgements_are_counted_by_their_segments() {
        let mut seen = Offload::default();
        seen.data(2, None);
        seen.data(1, Some(Cut { segments: 2, whole: true }));
        seen.data(1, Some(Cut { segments: 3, whole: false }));
        seen.acknowledged(2);
        seen.acknowledged(1_000);
        assert_eq!((seen.segments, &seen.bursts[..], &seen.whole[..]), (4, &[0, 1, 1][..], &[0, 1][..]));
        assert_eq!((seen.acknowledged.len(), seen.acknowledged[1], seen.acknowledged[LONGEST - 1]), (LONGEST, 1, 1));
    }
}
