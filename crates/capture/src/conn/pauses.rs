//! Which silence of a sender is its application's, and which ends a train.

use super::{Conn, LARGEST_ON_WIRE};
use crate::Gap;
use crate::decode::Segment;

/// A shorter pause inside a response cannot be told from waiting for acknowledgements behind a queue that the tap does not see, or from the
/// scheduling of a busy host.
const SHORTEST_PAUSE: u64 = 2_000_000;

impl Conn {
    /// If the sender of `d` sends new data now: how long had nothing but its application held it back?
    ///
    /// None when something else may have: the last segment before did not end what the application had written, unacknowledged data beyond one
    /// segment (any window has room for two), a hole or a repair in progress, a closed window, packets lost before the tap, an
    /// acknowledgement that came just now (unless Nagle's rule waited for it), or a queue or a busy host, by which round trips differed as much
    /// (`spread`).
    #[inline]
    pub(super) fn application_pause(&self, s: &Segment, d: usize, at: u64, gap: Gap, spread: u64) -> Option<u64> {
        let (dir, peer) = (&self.dirs[d], &self.dirs[1 - d]);
        let last = dir.last_data?;
        let threshold =
            (2 * self.threshold(d, gap) + merged_duration(dir.last_payload)).max(SHORTEST_PAUSE).max(spread);
        // By its own clock the sender was not silent: its packets were held up before the tap.
        let busy = s
            .stamp
            .and_then(|stamp| dir.clock.silent_for(stamp))
            .is_some_and(|silent| silent < (at - last).div_ceil(2));
        let lost = dir.seq.has_open_holes() || dir.lost_behind || lost_before_the_tap(dir.last_ip_id, s.ip_id);
        if at - last <= threshold || !dir.pushed || lost || busy {
            return None;
        }
        let idle_since = if peer.stats.packets == 0 {
            // One direction only: acknowledgements cannot be seen.
            Some(last)
        } else {
            let in_flight = dir.seq.in_flight();
            let segment = u64::from(dir.stats.largest_segment);
            let room = !peer.window_exact || peer.window >= in_flight + segment;
            let repaired = dir.seq.acked() >= dir.repair;
            // Nagle's rule keeps a short segment until the short one before it is acknowledged (RFC 9293, section 3.7.4), which its receiver delays by its
            // own clock whichever TCP sends. A full one may have waited for a window of one segment.
            let full = u64::from(self.largest_packet(d, s)).min(segment);
            let last_payload = u64::from(dir.last_payload);
            let held = last_payload.max(u64::from(s.payload)) < full && dir.acknowledged <= last_payload;
            // While nothing of the last segments is acknowledged, only their sending counts.
            (in_flight <= segment && room && repaired).then_some(if in_flight == 0 && !held {
                last.max(dir.progress)
            } else {
                last
            })
        }?;
        Some(at - idle_since).filter(|&pause| pause > threshold)
    }

    /// Packets of `d` were lost before this one reached the tap, by the sender's count of its packets. Where an offload merges packets, one
    /// packet stands for several numbers, which says nothing.
    pub(super) fn skipped(&self, d: usize, ip_id: u16) -> bool {
        let merged = self.dirs[1 - d].stats.mss_option.map_or(LARGEST_ON_WIRE, u32::from);
        self.dirs[d].stats.largest_segment <= merged && lost_before_the_tap(self.dirs[d].last_ip_id, ip_id)
    }

    /// The gap that ends a train of `d`, in nanoseconds.
    #[inline]
    pub(super) fn threshold(&self, d: usize, gap: Gap) -> u64 {
        match gap {
            Gap::Fixed(gap) => gap.ps() / 1_000,
            Gap::SmoothedRtt { floor } => {
                self.smoothed_rtt(d).unwrap_or(0).max(floor.ps() / 1_000) + merged_duration(self.dirs[d].last_payload)
            }
        }
    }

    /// The smoothed round trip of `d`'s data: what the tap sees behind it, and the least it saw before it.
    #[inline]
    pub(super) fn smoothed_rtt(&self, d: usize) -> Option<u64> {
        self.dirs[d].half.smoothed().map(|behind| behind + self.dirs[1 - d].half.least().unwrap_or(0))
    }
}

/// How long a segment merged by an offload takes on a 1 Gb/s link, the slowest in a data centre: its packets are still leaving long after
/// the one time stamp it has.
fn merged_duration(payload: u32) -> u64 {
    if payload > LARGEST_ON_WIRE { u64::from(payload) * 8 } else { 0 }
}

/// The sender counts its packets in the IP identification, and between these two some never passed: what looks like a pause behind the
/// loss is the retransmission timer.
fn lost_before_the_tap(last: u16, now: u16) -> bool {
    last != 0 && now != 0 && (2..4096).contains(&now.wrapping_sub(last))
}
