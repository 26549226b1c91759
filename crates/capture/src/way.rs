//! When the receiver of what a tap sees has it: the way from the tap to the receiver and back.

use serde::{Deserialize, Serialize};

/// An acknowledgement this much later than the round trip was held back by a delayed-ACK timer (Linux 40 ms at least, others up to 200 ms),
/// so its sender had the data long before.
pub(crate) const DELAYED_ACK: u64 = 30_000_000;

/// The half round trip behind the tap, as it was at some moment.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Way {
    /// How long after a packet its receiver's answer passes,
    pub echo: u64,
    /// and the least that was seen.
    pub least: u64,
}

impl Way {
    /// When the receiver had what ended at the tap at `end` and was acknowledged at `acked`, by what was in a queue for up to `queued`, and by how much
    /// earlier it may have had it.
    pub fn had(self, end: u64, acked: Option<u64>, queued: u64) -> (u64, u64) {
        let half = self.echo;
        // It had the data when it said so; if it said so only now, or held its word back, half a round trip after the tap saw the last byte. What it
        // said may have waited behind the answers of others, and then the half round trip is nearer.
        let said = acked.filter(|&acked| acked >= end && acked - end <= half + DELAYED_ACK);
        match said {
            Some(acked) => ((acked - queued.min(acked - end)).max(end + half).min(acked), 0),
            // The queue behind the tap, which made the last round trip longer than the shortest, may have been empty by then.
            None => (end + half, half - half.min(self.least)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_acknowledged_by_the_way_had_come_after_the_way_to_its_receiver() {
        let way = Way { echo: 3 * MS, least: MS };
        assert_eq!(way.had(10 * MS, Some(13 * MS), 0), (13 * MS, 0));
        assert_eq!(way.had(10 * MS, None, 0), (13 * MS, 2 * MS), "and up to 2 ms before, if no queue was left");
        assert_eq!(way.had(10 * MS, Some(43 * MS), 0), (43 * MS, 0));
        assert_eq!(way.had(10 * MS, Some(43 * MS + 1), 0), (13 * MS, 2 * MS), "a delayed-ACK timer held it back");
    }
}
