//! How honest a run was: what the switch did later than it should have, and what it missed.

use serde::{Deserialize, Serialize};

/// A release later than this counts as late, ns.
pub const LATE_NS: u64 = 50_000;
/// So long without the CPU is a stall, ns.
pub const STALL_NS: u64 = 1_000_000;

/// Counts of one run, from the first packet to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Packets that hosts sent.
    pub received: u64,
    /// Packets handed to their host.
    pub released: u64,
    /// Bytes of these, from Ethernet on.
    pub released_bytes: u64,
    /// Released more than [`LATE_NS`] after their time.
    pub late: u64,
    /// How late, over all releases: sum and maximum, ns.
    pub lateness_sum_ns: u64,
    /// The largest.
    pub lateness_max_ns: u64,
    /// Times that the switch was without the CPU for more than [`STALL_NS`].
    pub stalls: u64,
    /// How long, together and at most, ns.
    pub stall_sum_ns: u64,
    /// The longest.
    pub stall_max_ns: u64,
    /// Packets that were seen so late that other packets had been decided for later times: they were taken as of then.
    pub misordered: u64,
    /// By how much at most, ns.
    pub misordered_max_ns: u64,
    /// Packets that the ring had no room for.
    pub ring_drops: u64,
    /// Packets that belong to no connection of the plan.
    pub strays: u64,
    /// Packets that a host's device refused.
    pub refused: u64,
    /// Time between which and the last packet's the figures are, ns of the monotonic clock.
    pub first_ns: u64,
    /// The last packet's release.
    pub last_ns: u64,
    /// Steps of the wall clock during the run, which make its time stamps wrong.
    pub clock_steps: u64,
    /// The switch decides so long after the fact, ns: what the last links' delays allow.
    pub lookback_ns: u64,
    /// Processor time of the switch, ns.
    pub cpu_ns: u64,
}

impl Figures {
    /// A packet was handed to its host `late` ns after its time.
    pub fn released(&mut self, bytes: usize, late: u64) {
        self.released += 1;
        self.released_bytes += bytes as u64;
        self.late += u64::from(late > LATE_NS);
        self.lateness_sum_ns += late;
        self.lateness_max_ns = self.lateness_max_ns.max(late);
    }

    /// The switch was so long without the CPU, if that is worth counting.
    pub fn absent(&mut self, time: u64) {
        if time > STALL_NS {
            self.stalls += 1;
            self.stall_sum_ns += time;
            self.stall_max_ns = self.stall_max_ns.max(time);
        }
    }

    /// A packet of `arrived` was taken as of `taken`.
    pub fn misordered(&mut self, arrived_ps: u64, taken_ps: u64) {
        if taken_ps > arrived_ps {
            self.misordered += 1;
            self.misordered_max_ns = self.misordered_max_ns.max((taken_ps - arrived_ps) / 1000);
        }
    }
}
