//! What packets to a receiver show of its senders' network cards.
//!
//! A sender with segmentation offload (TSO, GSO) hands its card up to 64 KB at once, as much as it sends in a millisecond or two segments
//! (tcp_output.c, `tcp_tso_autosize`), and ends each such burst with PSH. Between namespaces and containers nothing cuts them but a token bucket,
//! which cuts those above its burst (sch_tbf.c, `tbf_enqueue`).

use crate::conn::Cut;
use serde::Serialize;

/// Rows of a table: a burst has at most 64 KiB, 45 segments of Ethernet. What is longer, of smaller segments, counts as this.
const LONGEST: usize = 64;

/// Bursts of full segments to a receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Offload {
    /// By length in segments, from one: bursts that ended with PSH though their message went on.
    pub bursts: Vec<u32>,
    /// Of these, those that passed as one packet.
    pub whole: Vec<u32>,
}

impl Offload {
    /// A burst that is known to have ended.
    #[inline]
    pub(crate) fn burst(&mut self, cut: Cut) {
        count(&mut self.bursts, cut.segments);
        if cut.whole {
            count(&mut self.whole, cut.segments);
        }
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
    fn bursts_are_counted_by_their_segments() {
        let mut seen = Offload::default();
        seen.burst(Cut { segments: 2, whole: true });
        seen.burst(Cut { segments: 3, whole: false });
        seen.burst(Cut { segments: 1_000, whole: false });
        assert_eq!((&seen.bursts[..3], &seen.whole[..]), (&[0, 1, 1][..], &[0, 1][..]));
        assert_eq!((seen.bursts.len(), seen.bursts[LONGEST - 1]), (LONGEST, 1));
    }
}
