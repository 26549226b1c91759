//! What a port counts.

use alloc::vec::Vec;

/// Longer queues share one entry of the histogram.
const HISTOGRAM: usize = 16_384;

/// Totals of a port; times in ps.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Packets accepted, without those that a scheduler gave up later.
    pub accepted: u64,
    /// Their bytes.
    pub accepted_bytes: u64,
    /// Time of transmission of everything that was put on the wire.
    pub busy: u64,
    /// Sum over those packets of the wait between arrival and start of transmission (with a scheduler: between its choice and the start).
    pub wait: u64,
    /// Time spent with each queue length in packets; the last entry collects everything longer.
    pub time_at: Vec<u64>,
    /// Integral of bytes over time, byte-ps.
    pub byte_time: u128,
    /// Longest queue in bytes.
    pub max_bytes: u64,
    /// Longest queue in packets.
    pub max_packets: u32,
    /// Packets dropped.
    pub drops: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Packets marked CE.
    pub marks: u64,
}

impl Totals {
    /// The queue had this length for `dt`.
    #[inline]
    pub(crate) fn account(&mut self, dt: u64, packets: u32, bytes: u64) {
        let slot = (packets as usize).min(HISTOGRAM - 1);
        if slot >= self.time_at.len() {
            self.time_at.resize((slot + 1).next_power_of_two(), 0);
        }
        self.time_at[slot] += dt;
        self.byte_time += u128::from(bytes) * u128::from(dt);
    }

    #[inline]
    pub(crate) fn drop(&mut self, bytes: u64) {
        self.drops += 1;
        self.dropped_bytes += bytes;
    }
}
