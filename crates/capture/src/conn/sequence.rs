//! Which bytes of one direction have been seen: sequence numbers unwrapped, holes kept, everything else a number.

use serde::{Deserialize, Serialize};

/// More holes than this in one direction, and the oldest is given up as missing: memory per connection stays bounded.
const MOST_HOLES: usize = 64;
/// Unwrapped offsets start here, so that there is room below.
const ORIGIN: u64 = 1 << 40;
/// No window is larger (RFC 7323), so no honest segment or acknowledgement jumps further.
const LARGEST_WINDOW: i64 = 1 << 30;

/// The bytes of one direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sequence {
    /// `max` corresponds to `max32`; before that nothing is known.
    known: bool,
    /// The sender itself has shown where it is, not only its peer's acknowledgements.
    anchored: bool,
    /// The SYN was seen (or acknowledged): there are no bytes below `base`.
    exact: bool,
    base: u64,
    /// One past the highest byte known to have been sent.
    max: u64,
    max32: u32,
    /// One past the highest byte known to have been received.
    acked: u64,
    holes: Vec<Hole>,
    given_up: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Hole {
    start: u64,
    end: u64,
    /// When, and by which IP identification, the hole was noticed.
    at: u64,
    ip_id: u16,
}

impl Default for Sequence {
    /// Nothing is known, and nothing is sent: what the first packet of a connection moves is its payload, not the distance to the origin.
    fn default() -> Sequence {
        Sequence {
            known: false,
            anchored: false,
            exact: false,
            base: ORIGIN,
            max: ORIGIN,
            max32: 0,
            acked: ORIGIN,
            holes: Vec::new(),
            given_up: 0,
        }
    }
}

/// What a data packet turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Continues behind everything seen before.
    Forward,
    /// Fills a hole, and was sent before the packet that showed the hole.
    Reordered,
    /// Fills a hole, and was sent after the packet that showed the hole: its first copy was lost before the tap.
    Refill,
    /// Brings nothing new.
    Again,
    /// A probe with an old byte on a connection where everything is acknowledged.
    KeepAlive,
}

/// How a data packet changed what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub kind: Kind,
    /// Bytes seen for the first time.
    pub fresh: u64,
    /// Bytes seen before.
    pub old: u64,
    /// The highest byte moved.
    pub extends: bool,
}

impl Sequence {
    /// One past the highest byte sent.
    pub fn max(&self) -> u64 {
        self.max
    }
    /// Where a byte that was seen just now is.
    pub fn place_of(&self, seq: u32) -> u64 {
        self.max.wrapping_add_signed(i64::from(seq.wrapping_sub(self.max32) as i32))
    }
    /// Sent, as far as seen, and not yet acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.max.saturating_sub(self.acked)
    }
    /// One past the highest byte acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }
    /// Bytes are missing below the highest one, and their receiver has not acknowledged them: the tap did not just overlook them.
    pub fn has_open_holes(&self) -> bool {
        self.holes.iter().any(|hole| hole.end > self.acked)
    }
    /// Bytes between `from` and `to` that have not been seen.
    pub fn unseen(&self, from: u64, to: u64) -> u64 {
        self.holes.iter().map(|h| h.end.min(to).saturating_sub(h.start.max(from))).sum()
    }
    /// Bytes that never showed up.
    pub fn missing(&self) -> u64 {
        self.given_up + self.unseen(0, u64::MAX)
    }

    /// A SYN: data begins behind it.
    pub fn syn(&mut self, seq: u32) {
        if !self.known {
            self.place(seq.wrapping_add(1));
        }
        (self.anchored, self.exact) = (true, true);
    }

    /// A packet without data says where its sender is: true if that is ahead of all data that passed. One number may be a FIN's.
    pub fn bare(&mut self, seq: u32) -> bool {
        if !self.known {
            self.place(seq);
        }
        let ahead = i64::from(seq.wrapping_sub(self.max32) as i32);
        std::mem::replace(&mut self.anchored, true) && (2..=LARGEST_WINDOW).contains(&ahead)
    }

    /// True for an empty packet just below the highest byte, when everything is acknowledged: a keep-alive probe.
    pub fn is_empty_probe(&self, seq: u32) -> bool {
        self.known && self.acked >= self.max && self.max32.wrapping_sub(seq) == 1
    }

    /// A packet with data. `reordering` is how late (in ns) a packet may be and still count as reordered where the IP identification does not tell.
    pub fn data(&mut self, seq: u32, length: u32, at: u64, ip_id: u16, reordering: u64) -> Arrival {
        if !self.known {
            self.place(seq);
        }
        let mut ahead = i64::from(seq.wrapping_sub(self.max32) as i32);
        if !self.anchored && ahead > 0 || ahead.abs() > LARGEST_WINDOW {
            // Known from acknowledgements alone, or another connection with the same ports: what lies between is not missing.
            self.given_up += self.unseen(0, u64::MAX);
            self.holes.clear();
            (self.max32, self.base, ahead) = (seq, self.max, 0);
            self.acked = self.acked.min(self.max);
        }
        self.anchored = true;
        let length = u64::from(length);
        // Offsets start at 2^40 and a step back is at most 2^30 below the maximum: no wrap.
        let start = self.max.wrapping_add_signed(ahead);
        let end = start + length;
        let (max, acked) = (self.max, self.acked);

        if start >= max {
            if start > max {
                self.add_hole(Hole { start: max, end: start, at, ip_id });
            }
            self.extend(end);
            return Arrival { kind: Kind::Forward, fresh: length, old: 0, extends: true };
        }
        if length <= 1 && end == max && acked >= max {
            return Arrival { kind: Kind::KeepAlive, fresh: 0, old: length, extends: false };
        }
        let mut fresh = 0;
        let mut late = None;
        if start < self.base && !self.exact {
            // In the middle of a connection, the first packet seen need not be the first sent.
            fresh += end.min(self.base) - start;
            if end < self.base {
                self.add_hole(Hole { start: end, end: self.base, at, ip_id });
            }
            self.base = start;
            late = Some(Kind::Reordered);
        }
        let (filled, hole) = self.fill(start, end);
        fresh += filled;
        if let Some(hole) = hole {
            late = Some(sent_earlier(hole, at, ip_id, reordering));
        }
        let extends = end > max;
        if extends {
            fresh += end - max;
            self.extend(end);
        }
        let kind = match late {
            Some(kind) => kind,
            None if extends => Kind::Forward,
            None => Kind::Again,
        };
        Arrival { kind, fresh, old: length - fresh, extends }
    }

    /// An acknowledgement number from the peer. Says how many bytes it covers that were never seen.
    ///
    /// One byte beyond the highest is the FIN's place, seen or not.
    pub fn ack_reveals(&mut self, ack: u32, at: u64) -> u64 {
        if !self.known {
            self.place(ack);
            return 0;
        }
        let ahead = i64::from(ack.wrapping_sub(self.max32) as i32);
        if !(2..=LARGEST_WINDOW).contains(&ahead) {
            return 0;
        }
        let revealed = ahead as u64;
        let end = self.max + revealed;
        self.add_hole(Hole { start: self.max, end, at, ip_id: 0 });
        self.extend(end);
        revealed
    }

    /// Notes an acknowledgement; true if it covers something new.
    pub fn ack(&mut self, ack: u32) -> bool {
        let ahead = i64::from(ack.wrapping_sub(self.max32) as i32).min(0);
        if ahead < -LARGEST_WINDOW {
            return false;
        }
        let acked = self.max.wrapping_add_signed(ahead);
        let news = acked > self.acked;
        self.acked = self.acked.max(acked);
        news
    }

    /// The peer's acknowledgement covers all that was sent.
    pub fn covers_all(&self, ack: u32) -> bool {
        ack.wrapping_sub(self.max32) as i32 >= 0
    }

    fn place(&mut self, seq: u32) {
        (self.known, self.max32) = (true, seq);
    }

    fn extend(&mut self, end: u64) {
        self.max32 = self.max32.wrapping_add((end - self.max) as u32);
        self.max = end;
    }

    fn add_hole(&mut self, hole: Hole) {
        if self.holes.len() == MOST_HOLES {
            let oldest = self.holes.remove(0);
            self.given_up += oldest.end - oldest.start;
        }
        let place = self.holes.partition_point(|h| h.start < hole.start);
        self.holes.insert(place, hole);
    }

    /// Takes `start..end` out of the holes; says how much that was, and of which hole first.
    fn fill(&mut self, start: u64, end: u64) -> (u64, Option<Hole>) {
        let (mut filled, mut first) = (0, None);
        let mut i = 0;
        while i < self.holes.len() {
            let h = self.holes[i];
            let (from, to) = (h.start.max(start), h.end.min(end));
            if from >= to {
                i += 1;
                continue;
            }
            filled += to - from;
            first = first.or(Some(h));
            match (h.start < from, to < h.end) {
                (false, false) => {
                    self.holes.remove(i);
                    continue;
                }
                (true, false) => self.holes[i].end = from,
                (false, true) => self.holes[i].start = to,
                (true, true) => {
                    self.holes[i].end = from;
                    self.holes.insert(i + 1, Hole { start: to, ..h });
                    i += 1;
                }
            }
            i += 1;
        }
        (filled, first)
    }
}

/// Was the packet that fills `hole` sent before the one that showed it?
///
/// Most senders count their IPv4 packets in the identification field, which settles it; otherwise only the delay speaks.
fn sent_earlier(hole: Hole, at: u64, ip_id: u16, reordering: u64) -> Kind {
    let step = ip_id.wrapping_sub(hole.ip_id) as i16;
    let counted = ip_id != 0 && hole.ip_id != 0 && step != 0 && step.unsigned_abs() < 4096;
    let earlier = if counted { step < 0 } else { at - hole.at <= reordering };
    if earlier { Kind::Reordered } else { Kind::Refill }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOON: u64 = 100_000;

    fn space(isn: u32) -> Sequence {
        let mut s = Sequence::default();
        s.syn(isn);
        s
    }

    #[test]
    fn bytes_across_the_wrap_are_counted_once() {
        let mut s = space(u32::MAX - 999);
        assert_eq!(s.data(u32::MAX - 998, 1500, 0, 0, SOON).fresh, 1500);
        assert_eq!(s.data(501, 100, 0, 0, SOON), Arrival { kind: Kind::Forward, fresh: 100, old: 0, extends: true });
        let again = s.data(u32::MAX - 998, 1500, 9, 0, SOON);
        assert_eq!((again.kind, again.old), (Kind::Again, 1500));
    }

    #[test]
    fn a_hole_filled_by_a_packet_sent_later_is_a_refill_and_by_one_sent_earlier_is_reordering() {
        let mut s = space(0);
        s.data(1, 100, 0, 10, SOON);
        s.data(201, 100, 1_000, 12, SOON);
        assert_eq!(s.data(101, 100, 2_000, 11, SOON).kind, Kind::Reordered);
        s.data(401, 100, 3_000, 14, SOON);
        assert_eq!(s.data(301, 100, 4_000, 15, SOON).kind, Kind::Refill);
        assert_eq!(s.missing(), 0);
    }

    #[test]
    fn without_identification_the_delay_tells_reordering_from_repair() {
        let mut s = space(0);
        s.data(101, 100, 0, 0, SOON);
        assert_eq!(s.data(1, 50, 99_000, 0, SOON).kind, Kind::Reordered);
        assert_eq!(s.data(51, 50, 101_000, 0, SOON).kind, Kind::Refill);
    }

    #[test]
    fn the_first_packet_of_a_connection_already_under_way_moves_the_end_by_its_payload() {
        let mut s = Sequence::default();
        let before = s.max();
        s.data(3_000_000_000, 80_000, 0, 0, SOON);
        assert_eq!((s.max() - before, s.missing()), (80_000, 0));
    }

    #[test]
    fn an_acknowledgement_reveals_what_was_never_captured() {
        let mut s = space(0);
        s.data(1, 100, 0, 0, SOON);
        assert_eq!(s.ack_reveals(102, 1), 0, "one beyond is the FIN");
        assert_eq!(s.ack_reveals(301, 1), 200);
        assert_eq!((s.missing(), s.max() - ORIGIN), (200, 300));
        assert_eq!(s.data(101, 50, 2, 0, SOON).fresh, 50);
        assert_eq!(s.missing(), 150);
    }

    #[test]
    fn a_probe_of_an_old_byte_is_a_keep_alive_only_when_all_is_acknowledged() {
        let mut s = space(0);
        s.data(1, 100, 0, 0, SOON);
        assert_eq!(s.data(100, 1, 1, 0, SOON).kind, Kind::Again);
        s.ack(101);
        assert_eq!(s.data(100, 1, 1, 0, SOON).kind, Kind::KeepAlive);
        assert!(s.is_empty_probe(100));
    }

    #[test]
    fn in_the_middle_of_a_connection_earlier_bytes_are_new_as_well() {
        let mut s = Sequence::default();
        s.data(1000, 100, 0, 0, SOON);
        assert_eq!(s.data(800, 100, 1, 0, SOON).fresh, 100);
        assert_eq!(s.missing(), 100);
        assert_eq!(
            s.data(850, 200, 2, 0, SOON),
            Arrival { kind: Kind::Reordered, fresh: 100, old: 100, extends: false }
        );
    }

    /// 65 holes of 10 bytes: the first is given up, and what fills it later is no news; it stays missing.
    #[test]
    fn of_more_than_64_holes_the_first_is_given_up() {
        let holes = |count: u32| {
            let mut s = space(0);
            for n in 0..count {
                s.data(1 + 10 + n * 20, 10, u64::from(n), 0, SOON);
            }
            let filled = s.data(1, 10, 100, 0, SOON).fresh;
            (s.holes.len(), filled, s.missing())
        };
        assert_eq!(holes(64), (63, 10, 630));
        assert_eq!(holes(65), (64, 0, 650));
    }

    /// RFC 7323 section 2.3: a window is at most 2^30 bytes.
    #[test]
    fn a_jump_beyond_the_largest_window_is_another_connection() {
        let jump = |by: u32| {
            let mut s = space(0);
            s.data(1, 100, 0, 0, SOON);
            let told = (s.clone().bare(101 + by), s.clone().ack_reveals(101 + by, 1));
            s.data(101 + by, 100, 1, 0, SOON);
            (told, s.missing())
        };
        assert_eq!(jump(1 << 30), ((true, 1 << 30), 1 << 30));
        assert_eq!(jump((1 << 30) + 1), ((false, 0), 0));
        // Nor does an acknowledgement reach further back.
        let mut s = space(0);
        s.data(1, 100, 0, 0, SOON);
        assert!(!s.ack(101_u32.wrapping_sub((1 << 30) + 1)));
    }

    proptest! {
        /// Against a bitmap of every byte.
        #[test]
        fn coverage_is_exact_whatever_the_order(isn: u32, pieces in prop::collection::vec((0u32..2000, 1u32..300), 1..60)) {
            let mut s = space(isn);
            let mut seen = vec![false; 2400];
            for (i, &(at, length)) in pieces.iter().enumerate() {
                let here = &mut seen[at as usize..(at + length) as usize];
                let fresh = here.iter().filter(|&&b| !b).count() as u64;
                here.fill(true);
                let a = s.data(isn.wrapping_add(1).wrapping_add(at), length, i as u64, 0, SOON);
                prop_assert_eq!((a.fresh, a.old), (fresh, u64::from(length) - fresh));
            }
            let high = seen.iter().rposition(|&b| b).map_or(0, |i| i + 1);
            prop_assert_eq!(s.missing(), seen[..high].iter().filter(|&&b| !b).count() as u64);
            prop_assert_eq!(s.max() - ORIGIN, high as u64);
        }
    }
}
