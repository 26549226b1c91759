//! How much may be inferred from what a capture holds.

use crate::{Analysis, WorkloadError};
use std::net::IpAddr;

/// A packet that is in the file vouches for at most so many bytes that are not: 180 full segments, as in a sample of one packet in 180, or four
/// acknowledgements' worth of the largest that a receive offload merges.
const VOUCHED_BYTES: u64 = 256 * 1024;

impl Analysis {
    /// Refuses traffic to `aggregator` that is inferred rather than captured: a few packets whose sequence numbers jump by gigabytes would be replayed as
    /// gigabytes.
    pub(crate) fn enough_of(&self, aggregator: IpAddr) -> Result<(), WorkloadError> {
        let (mut packets, mut bytes, mut missing) = (0u64, 0u64, 0u64);
        for c in self.connections.iter().filter(|c| c.client_ip == aggregator || c.server_ip == aggregator) {
            for side in [&c.to_server, &c.to_client] {
                packets += side.packets;
                bytes += side.unique_bytes;
                missing = missing.saturating_add(side.missing_bytes);
            }
        }
        match missing > packets.saturating_mul(VOUCHED_BYTES) {
            true => Err(WorkloadError::Unseen { ip: aggregator, packets, bytes, missing }),
            false => Ok(()),
        }
    }
}
