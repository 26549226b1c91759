//! Where a capture was taken: in front of the queue to the aggregator, or behind it.

use crate::{Analysis, Connection};
use std::net::IpAddr;

/// Repairs from which on they say where packets were lost.
const FEWEST_LOSSES: u64 = 10;
/// Where at least this share of what was only late was held up before the tap, the queue is there. In the laboratory it is 0.91 or more behind the queue; before
/// it 0.67 or less, where the hosts have shapers of their own, in which a repetition waits while the acknowledgement passes.
const HELD_UP: f64 = 0.8;
/// A tap whose way to the aggregator takes less of the handshake than this is at the aggregator: 0.28 or less in the laboratory, and at a switch 0.33 or more.
const NEAR_SHARE: f64 = 0.3;

impl Analysis {
    /// Whether the tap is between the queue and the host that the responses go to; none where the capture does not show it.
    ///
    /// A packet that was lost before the tap is seen once, when it fills the hole; one lost behind it is seen twice. One that was only late is seen
    /// twice too: where its acknowledgement has passed before, it was held up before the tap, as behind a shaper until its sender's timer was over; where
    /// not, behind it, in a queue or in its receiver, which tells nothing. Behind the queue nearly all were held up before the tap. Without any of these
    /// the packets of two senders tell, which behind a queue follow each other as its link lets them; else the handshake: its part between the tap and a
    /// host is hardly longer than that host's own time when the tap is on it.
    pub fn behind_the_queue(&self, aggregator: IpAddr) -> Option<bool> {
        let (mut seen, mut soonest) = (Repairs::default(), None::<(u64, u64)>);
        let mine = |c: &Connection| c.client_ip == aggregator || c.server_ip == aggregator;
        for c in self.connections.iter().filter(mine) {
            let opened = c.client_ip == aggregator;
            let towards = if opened { &c.to_client } else { &c.to_server };
            seen.filled += towards.refilled_packets;
            seen.again += towards.retransmitted_packets.saturating_sub(towards.spurious_packets);
            seen.late += towards.spurious_packets;
            seen.held_up += towards.held_up_packets;
            if let (Some(client), Some(server)) = (c.handshake_client_ns, c.handshake_server_ns) {
                let (near, far) = if opened { (client, server) } else { (server, client) };
                let (nearest, farthest) = soonest.unwrap_or((near, far));
                soonest = Some((nearest.min(near), farthest.min(far)));
            }
        }
        let queued = self.links.iter().any(|link| link.receiver == aggregator && link.pairs.is_some());
        told(seen, soonest, queued)
    }
}

/// Packets that were sent again.
#[derive(Clone, Copy, Debug, Default)]
struct Repairs {
    /// That filled a hole.
    filled: u64,
    /// That were seen before and had been lost.
    again: u64,
    /// That had been late only,
    late: u64,
    /// and whose acknowledgement had passed before.
    held_up: u64,
}

/// What repairs tell; where they are too few, whether packets of two senders are as far apart as a queue leaves them; else the shortest parts of the
/// handshakes: from the tap to the aggregator and back, and to a server and back. What is longer waited for a host.
fn told(seen: Repairs, soonest: Option<(u64, u64)>, queued: bool) -> Option<bool> {
    let held_up = if seen.held_up as f64 >= HELD_UP * seen.late as f64 { seen.held_up } else { 0 };
    let (behind, before) = (seen.filled + held_up, seen.again);
    if behind + before >= FEWEST_LOSSES {
        return Some(behind > before);
    }
    if queued {
        return Some(true);
    }
    soonest.map(|(near, far)| near as f64 / ((near + far).max(1) as f64) < NEAR_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(filled: u64, again: u64, near: u64) -> Option<bool> {
        told(Repairs { filled, again, ..Repairs::default() }, Some((near, 10 - near)), false)
    }

    #[test]
    fn ten_losses_tell_where_the_tap_is_and_fewer_leave_it_to_the_handshakes() {
        assert_eq!((lost(9, 0, 5), lost(10, 0, 5)), (Some(false), Some(true)));
        assert_eq!((lost(5, 5, 1), lost(6, 4, 5)), (Some(false), Some(true)));
        assert_eq!(told(Repairs { filled: 9, ..Repairs::default() }, None, false), None);
    }

    #[test]
    fn the_queue_is_before_the_tap_where_four_of_five_late_packets_were_held_up_there() {
        let late = |held_up| told(Repairs { late: 20, held_up, ..Repairs::default() }, Some((5, 5)), false);
        assert_eq!((late(15), late(16), late(20)), (Some(false), Some(true), Some(true)));
    }

    #[test]
    fn a_tap_with_less_than_three_tenths_of_the_shortest_handshake_is_at_the_aggregator() {
        let near = |near| told(Repairs::default(), Some((near, 100 - near)), false);
        assert_eq!((near(29), near(31)), (Some(true), Some(false)));
    }

    #[test]
    fn packets_of_two_senders_as_far_apart_as_a_queue_leaves_them_are_behind_it_unless_losses_say_otherwise() {
        assert_eq!(told(Repairs::default(), Some((5, 5)), true), Some(true));
        assert_eq!(told(Repairs { again: 10, ..Repairs::default() }, Some((5, 5)), true), Some(false));
    }
}
