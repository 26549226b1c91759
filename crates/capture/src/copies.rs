//! Which packets are copies of one that was seen before: of a mirror port, of a capture on several interfaces, of several taps merged.
//!
//! A retransmission is another packet than what it repeats: Linux gives it the connection's next IPv4 identification, and by the time that it is
//! sent the sender's time stamp has moved on. A copy has the identification, the sequence number and the time stamp of the first, however much
//! later it is: a mirror port delivers it some microseconds later, an egress interface after the queue, a second tap by what its clock differs.
//! Offloads may have merged one copy and not the other (GRO, TSO): packet k of a merged one has the identification k higher.

use crate::decode::{Segment, flag};
use std::hash::{BuildHasher, Hash};

/// Buckets of four packets, a cache line each. At 500 Mbps two taps 20 ms apart have 1,000 packets between two copies, at 10 Gbps 20,000.
const BUCKETS: usize = 1 << 14;
/// Packets in a bucket: what fills a cache line.
const WAYS: usize = 4;
/// How far apart copies may be whose sender counts its packets and stamps them: a wrong clock or the deepest queue lies between.
const COPY_WINDOW_STAMPED: u64 = 1_000_000_000;
/// How far apart copies with an IP identification may be whose sender has no time stamps: a queue lies between two mirrored ports.
const COPY_WINDOW: u64 = 1_000_000;
/// How far apart without: no sender repeats itself that soon.
const COPY_WINDOW_UNNUMBERED: u64 = 10_000;
/// From how far apart a packet without identification but with the time stamp of the first is a copy: Linux's time stamps count
/// milliseconds (`tcp_clock_ms`, tcp_output.c), older kernels' with HZ=100 ten of them.
const STAMP_MOVED: u64 = 12_000_000;
/// Equal packets in the file from which it may be said that packets come twice: with fewer, a host may have repaired as many losses.
const FEWEST_TWINS: u64 = 32;
/// Share of packets that equal one before, from which they come twice; where all do it is a half.
const TWINS: f64 = 0.25;
/// Wire packets of one merged segment that are remembered: 64 KiB at Ethernet's size.
const MOST_PIECES: u32 = 48;

/// Slots for packets that may come again under other addresses, microseconds later.
const ANYWHERE: usize = 1 << 12;
/// Numbers of real hosts begin anywhere (RFC 6528); those of simulators at zero, and are equal on many connections: below this they tell nothing.
const BEGINNING: u32 = 1 << 20;

/// The packets of the last moments, to know a second copy when it comes.
pub(crate) struct Copies {
    hasher: foldhash::fast::FixedState,
    recent: Vec<[(u64, u64); WAYS]>,
    /// Packets that only their bits tell apart, and those of them that equal one before.
    plain: u64,
    twins: u64,
    /// The longest time between a packet and its copy.
    pub longest: u64,
    /// Data packets by what a translation of addresses leaves alone, with their direction of a connection.
    anywhere: Vec<(u64, u64)>,
    /// Data packets that had been seen on another connection.
    pub translated: u64,
}

#[derive(Hash)]
struct Identity {
    flow: u64,
    place: u64,
    rest: u64,
    more: u64,
}

impl Copies {
    pub fn new() -> Copies {
        Copies {
            hasher: foldhash::fast::FixedState::with_seed(0),
            recent: vec![[(0, 0); WAYS]; BUCKETS],
            plain: 0,
            twins: 0,
            longest: 0,
            anywhere: vec![(0, 0); ANYWHERE],
            translated: 0,
        }
    }

    /// Whether `s`, of this direction of a connection, repeats a packet that was seen. `most` is what one packet on the wire carries;
    /// `mirrored`: copies of data were seen on this connection; `numbered`: its sender gives each packet another IP identification.
    #[inline]
    pub fn is_copy(&mut self, s: &Segment, flow: u64, most: u32, at: u64, mirrored: bool, numbered: bool) -> bool {
        if s.ip_id != 0 && s.stamp.is_some() && numbered {
            return self.is_numbered_copy(s, flow, most, at);
        }
        let identity = self.hasher.hash_one(Identity {
            flow,
            place: u64::from(s.seq) << 32 | u64::from(s.ack),
            rest: u64::from(s.payload) << 32 | u64::from(s.ip_id) << 16 | u64::from(s.checksum),
            more: u64::from(s.window) << 8 | u64::from(s.flags),
        });
        let before = self.seen(identity, at);
        self.plain += u64::from(s.payload > 0);
        let Some(before) = before else {
            return false;
        };
        let apart = at - before;
        if apart > COPY_WINDOW_STAMPED {
            return false;
        }
        self.twins += u64::from(s.payload > 0);
        let twice = self.twins >= FEWEST_TWINS && self.twins as f64 >= TWINS * self.plain as f64;
        // Duplicate ACKs without an identification may be equal to the last bit, and at 10 Gb/s a microsecond apart. Only where data is
        // delivered twice as well are they copies.
        let bare = s.payload == 0 && s.flags & flag::SYN == 0;
        let copy = if s.ip_id != 0 {
            apart <= COPY_WINDOW || (twice && numbered)
        } else {
            let soon = apart <= COPY_WINDOW_UNNUMBERED && (!bare || mirrored);
            // The checksum is equal, and covers a time stamp that has moved since.
            let stamped = s.stamp.is_some() && (twice || (STAMP_MOVED..=COPY_WINDOW_STAMPED).contains(&apart));
            soon || stamped
        };
        self.told(copy, apart)
    }

    #[inline]
    fn is_numbered_copy(&mut self, s: &Segment, flow: u64, most: u32, at: u64) -> bool {
        let stamp = u64::from(s.stamp.unwrap_or(0));
        let identity = |hasher: &foldhash::fast::FixedState, seq: u32, id: u16| {
            // What carries data is known by its place; of what carries none, many have the same one.
            let (ack, more) = if s.payload > 0 {
                (0, 1 << 32)
            } else {
                (u64::from(s.ack), u64::from(s.window) << 8 | u64::from(s.flags))
            };
            hasher.hash_one(Identity {
                flow,
                place: u64::from(seq) << 32 | ack,
                rest: stamp << 16 | u64::from(id),
                more,
            })
        };
        let first = identity(&self.hasher, s.seq, s.ip_id);
        if let Some(before) = self.seen(first, at).filter(|before| at - before <= COPY_WINDOW_STAMPED) {
            return self.told(true, at - before);
        }
        let most = most.max(1);
        for piece in 1..s.payload.div_ceil(most).min(MOST_PIECES) {
            let next = identity(&self.hasher, s.seq.wrapping_add(piece * most), s.ip_id.wrapping_add(piece as u16));
            self.seen(next, at);
        }
        false
    }

    /// The direction of another connection that a data packet of `flow` was seen on: it passed a translation of addresses in between.
    #[inline]
    pub fn elsewhere(&mut self, s: &Segment, flow: u64) -> Option<u64> {
        if s.payload == 0 || s.seq < BEGINNING || s.ack < BEGINNING {
            return None;
        }
        // Sequence, acknowledgement and both clocks are equal by chance on no two connections.
        let place = u64::from(s.seq) << 32 | u64::from(s.ack);
        let rest = u64::from(s.stamp.unwrap_or(0)) << 32 | u64::from(s.echo.unwrap_or(0));
        let everywhere = self.hasher.hash_one(Identity { flow: 0, place, rest, more: u64::from(s.payload) });
        let slot = &mut self.anywhere[everywhere as usize % ANYWHERE];
        let (seen, other) = std::mem::replace(slot, (everywhere, flow));
        let found = (seen == everywhere && other >> 1 != flow >> 1).then_some(other);
        self.translated += u64::from(found.is_some());
        found
    }

    /// When a packet of this identity was seen last. The oldest of its bucket makes room for it.
    #[inline]
    fn seen(&mut self, identity: u64, at: u64) -> Option<u64> {
        let bucket = &mut self.recent[identity as usize % BUCKETS];
        if let Some(slot) = bucket.iter_mut().find(|slot| slot.0 == identity) {
            return Some(std::mem::replace(&mut slot.1, at));
        }
        let mut oldest = 0;
        for way in 1..WAYS {
            if bucket[way].1 < bucket[oldest].1 {
                oldest = way;
            }
        }
        bucket[oldest] = (identity, at);
        None
    }

    #[inline]
    fn told(&mut self, copy: bool, apart: u64) -> bool {
        if copy {
            self.longest = self.longest.max(apart);
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    fn data(seq: u32, ip_id: u16, stamp: u32) -> Segment {
        Segment { seq, ip_id, stamp: Some(stamp), payload: MSS, flags: flag::ACK, ..Segment::default() }
    }

    #[test]
    fn a_copy_twenty_milliseconds_later_is_known_and_a_retransmission_with_a_number_of_its_own_is_none() {
        let mut copies = Copies::new();
        assert!(!copies.is_copy(&data(1, 10, 5), 0, MSS, 0, false, true));
        assert!(copies.is_copy(&data(1, 10, 5), 0, MSS, 20_000_000, false, true));
        assert!(!copies.is_copy(&data(1, 11, 5), 0, MSS, 20_100_000, false, true));
        assert!(!copies.is_copy(&data(1, 10, 6), 0, MSS, 20_200_000, false, true), "the clock has moved");
        assert_eq!(copies.longest, 20_000_000);
    }

    #[test]
    fn the_packets_of_a_merged_segment_are_copies_of_it() {
        let mut copies = Copies::new();
        let merged = Segment { payload: 4 * MSS, ..data(1, 10, 5) };
        assert!(!copies.is_copy(&merged, 0, MSS, 0, false, true));
        for piece in 0..4 {
            let one = data(1 + piece * MSS, 10 + piece as u16, 5);
            assert!(copies.is_copy(&one, 0, MSS, 3_000_000, false, true), "{piece}");
        }
        assert!(!copies.is_copy(&data(1 + MSS, 14, 5), 0, MSS, 3_000_000, false, true), "sent again");
    }

    #[test]
    fn of_a_merged_segment_48_packets_are_known_which_is_more_than_an_offload_merges() {
        let mut copies = Copies::new();
        assert!(!copies.is_copy(&Segment { payload: 60 * MSS, ..data(1, 10, 5) }, 0, MSS, 0, false, true));
        let mut known =
            |piece: u32| copies.is_copy(&data(1 + piece * MSS, 10 + piece as u16, 5), 0, MSS, 3_000_000, false, true);
        assert_eq!([47, 48].map(&mut known), [true, false]);
    }

    #[test]
    fn a_packet_under_other_addresses_is_known_with_and_without_time_stamps_and_identification() {
        const HIGH: u32 = 1 << 20;
        const LOW: u32 = HIGH - 1;
        for (stamp, ip_id) in [(Some(5), 7), (None, 7), (Some(5), 0), (None, 0)] {
            let mut copies = Copies::new();
            let packet = |seq, ack| Segment { ack, stamp, ..data(seq, ip_id, 0) };
            assert_eq!(copies.elsewhere(&packet(HIGH, HIGH), 2), None);
            assert_eq!(copies.elsewhere(&packet(HIGH, HIGH), 2), None, "sent again");
            assert_eq!(copies.elsewhere(&packet(HIGH, HIGH), 4), Some(2));
            assert_eq!(copies.elsewhere(&packet(HIGH, HIGH + 1), 2), None);
            // Connections of a simulator, whose numbers begin at zero.
            assert_eq!(
                (copies.elsewhere(&packet(LOW, HIGH), 2), copies.elsewhere(&packet(LOW, HIGH), 4)),
                (None, None)
            );
            assert_eq!(
                (copies.elsewhere(&packet(HIGH, LOW), 2), copies.elsewhere(&packet(HIGH, LOW), 4)),
                (None, None)
            );
            assert_eq!(copies.translated, 1);
        }
    }

    #[test]
    fn acknowledgements_with_numbers_of_their_own_are_no_copies_however_equal() {
        let mut copies = Copies::new();
        for n in 0..10 {
            let ack = Segment { payload: 0, ..data(1, 10 + n, 5) };
            assert!(!copies.is_copy(&ack, 0, MSS, u64::from(n) * 1_000, true, true));
        }
    }

    #[test]
    fn a_sender_with_one_number_for_all_packets_repeats_itself_after_a_millisecond() {
        let mut copies = Copies::new();
        assert!(!copies.is_copy(&data(1, 1, 5), 0, MSS, 0, false, false));
        assert!(!copies.is_copy(&data(1, 1, 5), 0, MSS, 2_000_000, false, false));
    }

    #[test]
    fn without_a_number_an_equal_packet_whose_time_stamp_should_have_moved_is_a_copy() {
        let mut copies = Copies::new();
        assert!(!copies.is_copy(&data(1, 0, 5), 0, MSS, 0, false, true));
        assert!(!copies.is_copy(&data(1, 0, 5), 0, MSS, 200_000, false, true), "repaired within the same tick");
        assert!(copies.is_copy(&data(1, 0, 5), 0, MSS, 20_200_000, false, true));
    }

    /// Whether the second of two equal packets so far apart is a copy, after as many pairs and single packets of another connection.
    fn second(first: &Segment, apart: u64, numbered: bool, (pairs, alone): (u32, u32)) -> bool {
        let mut copies = Copies::new();
        for n in 0..pairs + alone {
            let other = Segment { stamp: None, ..data(n * MSS, 0, 0) };
            copies.is_copy(&other, 2, MSS, u64::from(n) * 1_000, false, true);
            if n < pairs {
                copies.is_copy(&other, 2, MSS, u64::from(n) * 1_000 + 500_000, false, true);
            }
        }
        let at = 10_000_000_000;
        assert!(!copies.is_copy(first, 0, MSS, at, false, numbered));
        copies.is_copy(first, 0, MSS, at + apart, false, numbered)
    }

    #[test]
    fn a_copy_is_no_later_than_its_window_allows() {
        let plain = data(1, 0, 5);
        let unstamped = Segment { stamp: None, ..data(1, 7, 0) };
        for (first, numbered, window) in
            [(data(1, 7, 5), true, 1_000_000_000), (unstamped, true, 1_000_000), (data(1, 7, 5), false, 1_000_000)]
        {
            assert!(second(&first, window, numbered, (0, 0)), "{window}");
            assert!(!second(&first, window + 1, numbered, (0, 0)), "{window}");
        }
        assert!(second(&plain, 10_000, true, (0, 0)));
        assert!(!second(&plain, 10_001, true, (0, 0)));
        assert!(!second(&plain, 11_999_999, true, (0, 0)));
        assert!(second(&plain, 12_000_000, true, (0, 0)));
        assert!(!second(&plain, 1_000_000_001, true, (0, 0)));
    }

    #[test]
    fn where_a_quarter_of_the_packets_come_twice_others_without_a_number_do_so_too() {
        let plain = data(1, 0, 5);
        assert!(second(&plain, 3_000_000, true, (40, 0)));
        assert!(!second(&plain, 3_000_000, true, (20, 0)), "so many may have been repaired");
        // Of each pair both packets count: 40 of 150 equal one before, or of 170.
        assert!(second(&plain, 3_000_000, true, (40, 70)));
        assert!(!second(&plain, 3_000_000, true, (40, 90)));
    }

    /// Two taps at 10 Gb/s, 20 ms apart. Each of 16,384 buckets gets 1.22 packets in between on average, and four or more by chance (a Poisson
    /// distribution) in 3.6 of a hundred cases.
    #[test]
    fn a_copy_is_known_behind_20000_other_packets() {
        let mut copies = Copies::new();
        let packet = |n: u32| data(n * MSS, 1 + n as u16, 5);
        (0..20_500).for_each(|n| assert!(!copies.is_copy(&packet(n), 0, MSS, u64::from(n) * 1_000, false, true)));
        // They have 20,499 to 20,000 packets behind them.
        let known = (0..500).filter(|&n| copies.is_copy(&packet(n), 0, MSS, 20_500_000, false, true)).count();
        assert!((470..490).contains(&known), "{known}");
    }

    /// Each of 4,096 slots has the latest of its packets: one before n others is still there in exp(-n / 4096) of all cases, 89 % on average.
    #[test]
    fn a_translated_packet_is_known_behind_a_thousand_others() {
        let mut copies = Copies::new();
        let packet = |n: u32| Segment { ack: BEGINNING, ..data(BEGINNING + n * MSS, 1, 5) };
        (0..1_000).for_each(|n| assert!(copies.elsewhere(&packet(n), 0).is_none()));
        // The latest first, since one that is not known takes the slot of a later one.
        let known = (0..1_000).rev().filter(|&n| copies.elsewhere(&packet(n), 2) == Some(0)).count();
        assert!((870..910).contains(&known), "{known}");
    }
}
