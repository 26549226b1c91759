//! Which bytes a receiver has: those in order, and the runs of bytes ahead of a hole.

/// A run of bytes that arrived ahead of a hole.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    /// Greater is more recent: SACK reports the latest first (RFC 2018 section 4).
    stamp: u64,
}

/// What has arrived of a stream of bytes.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Next byte expected.
    pub nxt: u64,
    /// In order of bytes, with holes between them.
    ahead: Vec<Range>,
    stamp: u64,
}

impl Reassembly {
    /// Nothing is ahead of a hole.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Bytes ahead of the first hole.
    pub fn bytes_ahead(&self) -> u64 {
        self.ahead.iter().map(|r| r.end - r.start).sum()
    }

    /// Whether these bytes have arrived ahead of a hole.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        // Runs are apart and in order: only the last one that begins at or before `start` can reach over it.
        let after = self.ahead.partition_point(|r| r.start <= start);
        after > 0 && end <= self.ahead[after - 1].end
    }

    /// These bytes arrived out of order, or there is a hole: it may be filled.
    #[inline(never)]
    pub fn add(&mut self, start: u64, end: u64) {
        if end <= self.nxt {
            return;
        }
        if start <= self.nxt {
            self.nxt = end;
        } else {
            self.stamp += 1;
            let mut merged = Range { start, end, stamp: self.stamp };
            // Runs that the new one touches become one with it.
            let from = self.ahead.partition_point(|r| r.end < start);
            let mut to = from;
            while to < self.ahead.len() && self.ahead[to].start <= end {
                merged.start = merged.start.min(self.ahead[to].start);
                merged.end = merged.end.max(self.ahead[to].end);
                to += 1;
            }
            self.ahead.splice(from..to, [merged]);
            return;
        }
        // The hole is filled up to the next one.
        let reached = self.ahead.iter().take_while(|r| r.start <= self.nxt).count();
        if reached > 0 {
            self.nxt = self.nxt.max(self.ahead[reached - 1].end);
            self.ahead.drain(..reached);
        }
    }

    /// These bytes belong to none of the two runs of which an ACK has told last, and there are two (`tcp_sack_new_ofo_skb`,
    /// `TCP_SACK_BLOCKS_EXPECTED`): ACKs that wait then leave, so that no run is lost with one ACK.
    pub fn is_another_block(&self, start: u64, end: u64) -> bool {
        let newer = |than: u64| self.ahead.iter().filter(|r| r.stamp > than).count();
        match self.ahead.iter().find(|r| r.start <= end && start <= r.end) {
            Some(run) => newer(run.stamp) >= 2,
            None => start > self.nxt && self.ahead.len() >= 2,
        }
    }

    /// The three most recent runs, relative to the next byte expected, the latest first (RFC 2018 section 4).
    pub fn most_recent_blocks(&self) -> [u32; 6] {
        let mut blocks = [0; 6];
        // Each run goes down the three places, and takes that of the first older one, which goes on in its stead.
        let mut latest: [Option<&Range>; 3] = [None; 3];
        for range in &self.ahead {
            let mut newer = Some(range);
            for place in &mut latest {
                if newer.map(|r| r.stamp) > place.map(|r| r.stamp) {
                    std::mem::swap(place, &mut newer);
                }
            }
        }
        for (block, range) in blocks.chunks_exact_mut(2).zip(latest.into_iter().flatten()) {
            block[0] = u32::try_from(range.start - self.nxt).unwrap_or(u32::MAX);
            block[1] = u32::try_from(range.end - self.nxt).unwrap_or(u32::MAX);
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has 0 to 1000, and then these runs in this order.
    fn arrived(runs: &[(u64, u64)]) -> Reassembly {
        let mut all = Reassembly::default();
        all.add(0, 1_000);
        for &(start, end) in runs {
            all.add(start, end);
        }
        all
    }

    #[test]
    fn a_filled_hole_brings_the_runs_that_it_joins_and_no_others() {
        let mut all = arrived(&[(2_000, 3_000), (3_000, 4_000), (6_000, 7_000)]);
        assert_eq!((all.nxt, all.bytes_ahead(), all.is_whole()), (1_000, 3_000, false));
        all.add(1_000, 2_000);
        assert_eq!((all.nxt, all.bytes_ahead()), (4_000, 1_000));
        all.add(4_000, 6_000);
        assert_eq!((all.nxt, all.bytes_ahead(), all.is_whole()), (7_000, 0, true));
    }

    #[test]
    fn a_segment_that_reaches_into_a_run_counts_each_byte_once() {
        let mut all = arrived(&[(3_000, 5_000), (2_000, 4_000), (4_500, 6_000)]);
        assert_eq!(all.bytes_ahead(), 4_000);
        // All the runs lie within what fills the hole, or the last one reaches beyond.
        all.add(500, 2_500);
        assert_eq!((all.nxt, all.is_whole()), (6_000, true));
        let mut all = arrived(&[(2_000, 2_500)]);
        all.add(1_000, 4_000);
        assert_eq!((all.nxt, all.is_whole()), (4_000, true));
    }

    #[test]
    fn old_bytes_change_nothing() {
        let mut all = arrived(&[(2_000, 3_000)]);
        all.add(0, 1_000);
        all.add(200, 700);
        assert_eq!((all.nxt, all.bytes_ahead()), (1_000, 1_000));
    }

    #[test]
    fn bytes_are_held_only_if_one_run_has_all_of_them() {
        let all = arrived(&[(2_000, 3_000), (4_000, 5_000)]);
        for (start, end, held) in [
            (2_000, 3_000, true),
            (2_400, 2_600, true),
            (4_000, 5_000, true),
            (1_999, 3_000, false),
            (2_000, 3_001, false),
            (2_500, 4_500, false),
            (1_000, 1_500, false),
            (5_000, 6_000, false),
        ] {
            assert_eq!(all.holds(start, end), held, "{start} to {end}");
        }
    }

    /// RFC 2018 section 4: the first block has the segment that triggered the ACK, the others those reported last.
    #[test]
    fn the_three_runs_that_grew_last_are_told_the_latest_first() {
        let runs = [(2_000, 3_000), (4_000, 5_000), (6_000, 7_000), (8_000, 9_000)];
        assert_eq!(arrived(&runs).most_recent_blocks(), [7_000, 8_000, 5_000, 6_000, 3_000, 4_000]);
        let mut all = arrived(&runs);
        all.add(3_000, 3_500);
        assert_eq!(all.most_recent_blocks(), [1_000, 2_500, 7_000, 8_000, 5_000, 6_000]);
        assert_eq!(arrived(&runs[..1]).most_recent_blocks(), [1_000, 2_000, 0, 0, 0, 0]);
    }

    /// `tcp_sack_new_ofo_skb` looks for the segment's run among `TCP_SACK_BLOCKS_EXPECTED` = 2.
    #[test]
    fn a_block_is_another_where_two_newer_ones_are_told() {
        let all = arrived(&[(2_000, 3_000), (4_000, 5_000), (6_000, 7_000)]);
        // The first run is the third latest; its neighbours count as it.
        assert!(all.is_another_block(3_000, 3_500));
        assert!(all.is_another_block(1_500, 2_000));
        assert!(!all.is_another_block(5_000, 5_500));
        assert!(!all.is_another_block(7_000, 7_500));
        // A new run, but not what fills the hole.
        assert!(all.is_another_block(8_000, 9_000));
        assert!(!all.is_another_block(1_000, 1_500));
        assert!(!arrived(&[(2_000, 3_000)]).is_another_block(8_000, 9_000));
        assert!(arrived(&[(2_000, 3_000), (4_000, 5_000)]).is_another_block(8_000, 9_000));
    }
}
