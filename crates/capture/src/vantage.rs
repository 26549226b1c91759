//! Where a capture was taken: in front of the queue to the aggregator, or behind it.

use crate::{Analysis, Connection};
use std::net::IpAddr;

/// Repairs from which on they say where packets were lost.
const FEWEST_LOSSES: u64 = 10;
/// A tap whose way to the aggregator takes less of the handshake than this is at the aggregator.
const NEAR_SHARE: f64 = 0.3;

impl Analysis {
    /// Whether the tap is between the queue and the host that the responses go to; none where the capture does not show it.
    ///
    /// A packet that was lost before the tap is seen once, when it fills the hole; one lost behind it is seen twice. One that was only late is seen
    /// twice too: where its acknowledgement has passed before, it was held up before the tap, as behind a shaper until its sender's timer was over; where
    /// not, behind it, in a queue or in its receiver, which tells nothing. Without any of these the handshake tells: its part between the tap and a
    /// host is hardly longer than that host's own time when the tap is on it.
    pub fn behind_the_queue(&self, aggregator: IpAddr) -> Option<bool> {
        // What speaks for a tap behind the queue, and before it.
        let (mut behind, mut before, mut near) = (0, 0, Vec::new());
        let mine = |c: &Connection| c.client_ip == aggregator || c.server_ip == aggregator;
        for c in self.connections.iter().filter(mine) {
            let opened = c.client_ip == aggregator;
            let towards = if opened { &c.to_client } else { &c.to_server };
            behind += towards.refilled_packets + towards.held_up_packets;
            before += towards.retransmitted_packets.saturating_sub(towards.spurious_packets);
            if let (Some(client), Some(server)) = (c.handshake_client_ns, c.handshake_server_ns) {
                near.push(if opened { client } else { server } as f64 / (client + server).max(1) as f64);
            }
        }
        told(behind, before, near)
    }
}

/// What so many losses tell, `behind` and `before` the tap's place; where they are too few, the tap's shares of the handshakes.
fn told(behind: u64, before: u64, mut near: Vec<f64>) -> Option<bool> {
    if behind + before >= FEWEST_LOSSES {
        return Some(behind > before);
    }
    near.sort_by(f64::total_cmp);
    near.get(near.len() / 2).map(|&share| share < NEAR_SHARE)
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn ten_losses_tell_where_the_tap_is_and_fewer_leave_it_to_the_handshakes() {
        assert_eq!((told(9, 0, vec![0.5]), told(10, 0, vec![0.5])), (Some(false), Some(true)));
        assert_eq!((told(5, 5, vec![0.1]), told(6, 4, vec![0.5])), (Some(false), Some(true)));
        assert_eq!(told(9, 0, vec![]), None);
    }

    #[test]
    fn a_tap_with_less_than_three_tenths_of_the_middle_handshake_is_at_the_aggregator() {
        assert_eq!((told(0, 0, vec![0.9, 0.29, 0.0]), told(0, 0, vec![0.9, 0.31, 0.0])), (Some(true), Some(false)));
    }
}
