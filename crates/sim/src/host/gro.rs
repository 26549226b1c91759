//! Generic receive offload: segments of a connection that follow each other become one before TCP sees them.
//!
//! *Source*: Linux 6.12 `net/core/gro.c` (`dev_gro_receive`, `skb_gro_receive`, `gro_normal_one`), `net/ipv4/tcp_offload.c` (`tcp_gro_receive`),
//! `net/ipv4/af_inet.c` (`inet_gro_receive`).

use crate::packet::{Packet, TICK_PS, flags};

/// Lists of segments that are held, to which connections are hashed (`GRO_HASH_BUCKETS`).
const BUCKETS: usize = 8;
/// Segments that a list holds (`MAX_GRO_SKBS`).
const MOST_HELD: usize = 8;
/// An IP packet is shorter than this (`gro_max_size`), of which headers with time stamps take so much.
const MOST_BYTES: u32 = 65_536 - 52;
/// So many segments that are handed up wait to go together (`gro_normal_batch`).
const BATCH: u32 = 8;

/// What differs between the segments of one packet without harm: the rest of the header must be the same.
const MAY_DIFFER: u16 = flags::CWR | flags::PUSH | flags::RETRANSMISSION;

/// A segment that waits for more.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// All that it has become.
    packet: Packet,
    /// Whose it is.
    connection: u32,
    /// Payload of the first (`gso_size`).
    size: u16,
    /// How many it is.
    segments: u32,
    /// The host's jiffy when the first came.
    age: u64,
}

/// What one receive queue of a host holds.
#[derive(Debug, Default)]
pub struct Gro {
    held: [Vec<Held>; BUCKETS],
    /// Handed up, and to go together (`napi->rx_list`).
    batch: Vec<Packet>,
    batched: u32,
}

impl Gro {
    /// A packet of this connection came in this jiffy; `merges`: its transport is one that GRO knows. What goes up is added to `up`.
    pub fn receive(&mut self, packet: Packet, connection: u32, merges: bool, tick: u64, up: &mut impl Extend<Packet>) {
        if !merges || packet.has(flags::DATAGRAM) {
            return self.hand_up(packet, 1, up);
        }
        let bucket = connection as usize % BUCKETS;
        let ends = packet.has(flags::SYN | flags::PUSH) || packet.len == 0;
        let mut waits = !ends;
        if let Some(place) = self.held[bucket].iter().position(|held| held.connection == connection) {
            let held = &mut self.held[bucket][place];
            let merged = held.takes(&packet);
            if merged {
                held.add(&packet);
                if !ends && packet.len >= held.size {
                    return;
                }
                waits = false;
            }
            let whole = self.held[bucket].remove(place);
            self.hand_up(whole.packet, whole.segments, up);
            if merged {
                return;
            }
        }
        if !waits {
            return self.hand_up(packet, 1, up);
        }
        if self.held[bucket].len() >= MOST_HELD {
            let oldest = self.held[bucket].remove(0);
            self.hand_up(oldest.packet, oldest.segments, up);
        }
        self.held[bucket].push(Held { packet, connection, size: packet.len, segments: 1, age: tick });
    }

    /// Whether something waits for more.
    pub fn holds(&self) -> bool {
        self.held.iter().any(|bucket| !bucket.is_empty())
    }

    /// What waits goes up (`napi_gro_flush`), the oldest of a list first: all of it, or what has waited since a jiffy before `than`.
    pub fn flush(&mut self, than: Option<u64>, up: &mut impl Extend<Packet>) {
        for bucket in 0..BUCKETS {
            let young = self.held[bucket].iter().position(|held| than == Some(held.age));
            let old: Vec<Held> =
                self.held[bucket].drain(..young.unwrap_or(usize::MAX).min(self.held[bucket].len())).collect();
            for held in old {
                self.hand_up(held.packet, held.segments, up);
            }
        }
    }

    /// What was to go together goes (`gro_normal_list`).
    pub fn end_batch(&mut self, up: &mut impl Extend<Packet>) {
        self.batched = 0;
        up.extend(self.batch.drain(..));
    }

    fn hand_up(&mut self, packet: Packet, segments: u32, up: &mut impl Extend<Packet>) {
        self.batch.push(packet);
        self.batched += segments;
        if self.batched >= BATCH {
            self.end_batch(up);
        }
    }
}

impl Held {
    /// Whether the next packet of the connection can become part of it (`tcp_gro_receive`).
    fn takes(&self, next: &Packet) -> bool {
        let first = &self.packet;
        let follows = first.seq + u64::from(first.len) == next.seq && next.len > 0 && next.len <= self.size;
        let same_flags = (first.flags ^ next.flags) & !MAY_DIFFER == 0 && !next.has(flags::CWR);
        let fits = u32::from(first.len) + u32::from(next.len) < MOST_BYTES;
        follows && fits && same_flags && self.has_options_of(next)
    }

    /// The same number acknowledged, time stamps and selective acknowledgements.
    fn has_options_of(&self, next: &Packet) -> bool {
        let first = &self.packet;
        let acknowledges = |p: &Packet| {
            let [number, number_high, _, _, left, right] = p.sack;
            if p.has(flags::CARRIES_ACK) { [number, number_high, left, right] } else { [0; 4] }
        };
        first.timestamp / TICK_PS == next.timestamp / TICK_PS
            && first.tick == next.tick
            && acknowledges(first) == acknowledges(next)
    }

    fn add(&mut self, next: &Packet) {
        self.segments += 1;
        self.packet.len += next.len;
        // More than 65,535 bytes with headers occur; whoever counts them does so by segments.
        self.packet.wire = self.packet.wire.saturating_add(next.wire);
        self.packet.flags |= next.flags & flags::PUSH;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1448;

    fn segment(number: u64) -> Packet {
        Packet { seq: number * u64::from(MSS), len: MSS, wire: MSS + 90, flags: flags::ECT, ..Packet::default() }
    }

    /// What comes up of these, each with the number of its connection; after the end of a poll.
    fn up(packets: &[(u32, Packet)]) -> Vec<(u64, u16)> {
        let (mut gro, mut up) = (Gro::default(), Vec::new());
        for &(connection, packet) in packets {
            gro.receive(packet, connection, true, 0, &mut up);
        }
        gro.flush(None, &mut up);
        gro.end_batch(&mut up);
        up.iter().map(|p| (p.seq / u64::from(MSS), p.len / MSS)).collect()
    }

    #[test]
    fn segments_in_order_of_one_connection_are_merged_and_others_are_not_in_the_way() {
        let packets = [(1, segment(0)), (2, segment(7)), (1, segment(1)), (2, segment(8)), (1, segment(2))];
        assert_eq!(up(&packets), [(0, 3), (7, 2)]);
        // Connections of one list (8 lists) stay apart, too.
        assert_eq!(up(&[(1, segment(0)), (9, segment(1))]), [(0, 1), (1, 1)]);
    }

    #[test]
    fn a_gap_or_an_older_segment_ends_what_is_merged() {
        let all = |numbers: [u64; 4]| up(&numbers.map(|n| (1, segment(n))));
        assert_eq!(all([0, 1, 3, 4]), [(0, 2), (3, 2)]);
        assert_eq!(all([2, 3, 0, 1]), [(2, 2), (0, 2)]);
    }

    #[test]
    fn push_is_merged_and_ends_it() {
        let mut packets = [0, 1, 2, 3].map(|n| (1, segment(n)));
        packets[1].1.flags |= flags::PUSH;
        assert_eq!(up(&packets), [(0, 2), (2, 2)]);
    }

    #[test]
    fn a_shorter_segment_is_merged_and_ends_it() {
        let mut packets = [0, 1, 2].map(|n| (1, segment(n)));
        packets[1].1.len = 100;
        let (mut gro, mut all) = (Gro::default(), Vec::new());
        packets.iter().for_each(|&(c, p)| gro.receive(p, c, true, 0, &mut all));
        gro.end_batch(&mut all);
        assert_eq!(all.iter().map(|p| p.len).collect::<Vec<_>>(), [MSS + 100]);
    }

    #[test]
    fn another_ecn_mark_a_cwr_or_another_time_stamp_is_not_merged() {
        let with = |change: fn(&mut Packet)| {
            let mut packets = [0, 1].map(|n| (1, segment(n)));
            change(&mut packets[1].1);
            up(&packets).len()
        };
        assert_eq!(with(|_| {}), 1);
        assert_eq!(with(|p| p.flags |= flags::CE), 2);
        assert_eq!(with(|p| p.flags |= flags::CWR), 2);
        assert_eq!(with(|p| p.timestamp = TICK_PS), 2);
        assert_eq!(with(|p| p.tick = 1), 2);
        assert_eq!(with(|p| p.timestamp = TICK_PS - 1), 1);
    }

    /// 45 segments of 1448 bytes are 65,160 bytes; another would make more than an IP packet.
    #[test]
    fn what_is_merged_is_an_ip_packet() {
        assert_eq!(up(&(0..50).map(|n| (1, segment(n))).collect::<Vec<_>>()), [(0, 45), (45, 5)]);
    }

    #[test]
    fn acknowledgements_are_not_merged_and_end_what_waits_of_their_connection() {
        let ack = Packet { flags: flags::ACK, seq: 99 * u64::from(MSS), ..Packet::default() };
        assert_eq!(up(&[(1, segment(0)), (1, ack), (1, segment(1))]), [(0, 1), (99, 0), (1, 1)]);
    }

    #[test]
    fn what_came_in_this_jiffy_waits_where_only_older_goes() {
        let (mut gro, mut all) = (Gro::default(), Vec::new());
        gro.receive(segment(0), 1, true, 7, &mut all);
        gro.receive(segment(1), 9, true, 8, &mut all);
        gro.flush(Some(8), &mut all);
        gro.end_batch(&mut all);
        assert_eq!(all.iter().map(|p| p.seq).collect::<Vec<_>>(), [0]);
        gro.flush(None, &mut all);
        assert!(!gro.holds());
    }

    #[test]
    fn eight_segments_go_up_before_the_poll_ends() {
        let (mut gro, mut all) = (Gro::default(), Vec::new());
        (0..8).for_each(|n| gro.receive(Packet { flags: flags::PUSH, ..segment(2 * n) }, 1, true, 0, &mut all));
        assert_eq!((all.len(), gro.holds()), (8, false));
    }
}
