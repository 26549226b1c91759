//! What a port counts.

use crate::prefetch::prefetch;
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

/// How long the queue was longer than each length: a change touches one entry, and none has to know when the last one was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// For each length n the sum of the times at which the queue fell to n less the sum of those at which it rose above n; it wraps.
    above: Vec<u64>,
    /// The greatest length, where that is more than there are entries.
    longest: u32,
}

impl Levels {
    /// A queue of this length becomes longer by a packet.
    #[inline]
    pub fn rise(&mut self, from: u32, now: u64) {
        match self.above.get_mut(from as usize) {
            Some(sum) => *sum = sum.wrapping_sub(now),
            None => self.rise_higher(from, now),
        }
    }

    /// It never was as long.
    #[cold]
    #[inline(never)]
    fn rise_higher(&mut self, from: u32, now: u64) {
        // Beyond the histogram only the greatest length is kept.
        if self.above.len() < HISTOGRAM - 1 {
            self.above.push(now.wrapping_neg());
        }
        self.longest = self.longest.max(from + 1);
    }

    /// A queue becomes shorter by a packet and has this length then.
    #[inline]
    pub fn fall(&mut self, to: u32, now: u64) {
        if let Some(sum) = self.above.get_mut(to as usize) {
            *sum = sum.wrapping_add(now);
        }
    }

    /// The greatest length so far.
    pub fn longest(&self) -> u32 {
        self.longest.max(self.above.len() as u32)
    }

    /// Time spent with each length until now, when the length is `present`; the last entry collects everything longer.
    pub fn times(&self, present: u32, now: u64) -> Vec<u64> {
        // The queue has been longer than each length below the present one up to now.
        // Empty to 10, one packet from 10 to 30, now 50: above[0] = 30 - 10, and the times are [50 - 20, 20].
        let open = |length: usize| if length < present as usize { now } else { 0 };
        let above = self.above.iter().enumerate().map(|(length, sum)| sum.wrapping_add(open(length)));
        // Time at n is the time above n - 1 less the time above n.
        let mut longer = now;
        let mut times: Vec<u64> = above.map(|next| core::mem::replace(&mut longer, next) - next).collect();
        times.push(longer);
        times
    }

    /// Starts to load the entry of a queue that becomes longer than this.
    #[inline]
    pub fn prefetch(&self, length: u32) {
        if let Some(sum) = self.above.get(length as usize) {
            prefetch(sum, 1);
        }
    }
}
