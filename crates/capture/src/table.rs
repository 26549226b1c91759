//! From segments to connections: who belongs to whom, and which packets are copies.

use crate::arrivals::Arrivals;
use crate::conn::Conn;
use crate::conns::Conns;
use crate::decode::{Addr, Segment, flag};
use crate::limit::{Answer, Sent};
use crate::rack::{Link, Links};
use crate::timeline::{Noted, Timed};
use crate::{Gap, Options, Sink};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Both ends, the lower one first: addresses and ports alone, like tshark. VLAN tags differ between the directions of real captures.
type Key = [(Addr, u16); 2];

/// All connections of a capture.
pub(crate) struct Table {
    /// The latest connection between two ends. Hash order is never used for anything, so the hasher's seed cannot show.
    by_ends: HashMap<Key, u32, foldhash::fast::RandomState>,
    conns: Conns,
    arrivals: Arrivals,
    copies: Copies,
    links: Links,
    pub mirrored: Noted,
    gap: Gap,
}

impl Table {
    /// Empty.
    pub fn new(options: &Options) -> Table {
        Table {
            by_ends: HashMap::default(),
            conns: Conns::default(),
            arrivals: Arrivals::new(options.links),
            copies: Copies::new(),
            links: Links::default(),
            mirrored: Noted::default(),
            gap: options.gap,
        }
    }

    /// Hands a segment to its connection, a new one if need be.
    #[inline]
    pub fn segment(&mut self, timed: &Timed, sink: &mut dyn Sink) {
        let Timed { at, packet, segment: s, payload } = timed;
        let (a, b) = ((s.src, s.sport), (s.dst, s.dport));
        let key = if a <= b { [a, b] } else { [b, a] };
        let fresh = self.conns.len() as u32;
        let index = *self.by_ends.entry(key).or_insert(fresh);
        let mut index = index as usize;
        if index == self.conns.len() {
            self.conns.push(Conn::new(fresh, s, key, self.arrivals.hosts(key), *at));
        }
        let mut d = self.conns.at(index).direction(s);
        if self.conns.at(index).is_reused_by(s, d) {
            // A copy of the SYN must not open yet another connection: it has the same number, which the rule above knows.
            index = self.conns.len();
            self.conns.push(Conn::new(fresh, s, key, self.arrivals.hosts(key), *at));
            self.by_ends.insert(key, fresh);
            d = self.conns.at(index).direction(s);
        }
        let conn = self.conns.at(index);
        if self.copies.is_copy(s, index, d, *at, conn) {
            self.mirrored.note(*packet);
            conn.mirrored(d, s.payload);
        } else {
            if s.payload > 0 {
                let most = conn.largest_packet(d, s);
                self.links.data(s, *at, s.payload > most);
                let sent = Sent { flow: (index as u64) << 1 | d as u64, from: conn.host(d), segment: most };
                self.links.passed(s, sent, *at);
            }
            let (before, repaired) = conn.acknowledged(1 - d);
            conn.segment(s, payload, d, *at, self.gap, &mut self.arrivals, sink);
            if let Some(rtt) = conn.take_round_trip(1 - d) {
                self.links.round_trip(s.src, rtt);
            }
            // What fills a hole acknowledges at once what arrived long before.
            let news = conn.acknowledged(1 - d).0.saturating_sub(before);
            if news > 0 || s.twice.is_some() {
                let flow = (index as u64) << 1 | (1 - d) as u64;
                let answer = Answer { flow, least: conn.shortest_way(1 - d), sacks: conn.sacks() };
                self.links.confirmed(s, answer, *at);
            }
            if news > 0 && repaired {
                self.links.acknowledged(s.src, news, u64::from(conn.largest_packet(1 - d, s)), *at);
            }
        }
    }

    /// Connections so far.
    pub fn len(&self) -> usize {
        self.conns.len()
    }

    /// What the spacing of packets says, once all are seen.
    pub fn take_links(&mut self) -> Vec<Link> {
        std::mem::take(&mut self.links).finish()
    }

    /// All connections, in order of their first packet. What has been taken is freed on the way.
    pub fn into_connections(self) -> impl Iterator<Item = Conn> {
        self.conns.into_all()
    }
}

/// The packets of the last moments, to know a second copy when it comes.
///
/// A mirror port that sends what enters and what leaves delivers every packet twice, a few microseconds or a queue apart. Copies are equal in
/// all that a retransmission would change: most senders number their IPv4 packets, and the checksum covers the TCP time stamps.
struct Copies {
    hasher: foldhash::fast::FixedState,
    recent: Vec<(u64, u64)>,
}

/// Slots; each keeps the last packet that hashed there.
const SLOTS: usize = 4096;
/// How far apart copies with an IP identification may be: a queue lies between the two mirrored ports.
const COPY_WINDOW: u64 = 1_000_000;
/// How far apart without: no sender repeats itself that soon.
const COPY_WINDOW_UNNUMBERED: u64 = 10_000;

impl Copies {
    fn new() -> Copies {
        Copies { hasher: foldhash::fast::FixedState::with_seed(0), recent: vec![(0, 0); SLOTS] }
    }

    #[inline]
    fn is_copy(&mut self, s: &Segment, index: usize, d: usize, at: u64, conn: &Conn) -> bool {
        let identity = self.hasher.hash_one(Identity {
            conn: (index as u64) << 1 | d as u64,
            place: u64::from(s.seq) << 32 | u64::from(s.ack),
            rest: u64::from(s.payload) << 32 | u64::from(s.ip_id) << 16 | u64::from(s.checksum),
            more: u64::from(s.window) << 8 | u64::from(s.flags),
        });
        let slot = &mut self.recent[identity as usize % SLOTS];
        let (seen, before) = std::mem::replace(slot, (identity, at));
        if seen != identity {
            return false;
        }
        let apart = at - before;
        if s.ip_id != 0 {
            return apart <= COPY_WINDOW;
        }
        // Duplicate ACKs without an identification may be equal to the last bit, and at 10 Gb/s a microsecond apart. Only where data is
        // delivered twice as well are they copies.
        let bare = s.payload == 0 && s.flags & flag::SYN == 0;
        apart <= COPY_WINDOW_UNNUMBERED && (!bare || conn.is_mirrored())
    }
}

#[derive(Hash)]
struct Identity {
    conn: u64,
    place: u64,
    rest: u64,
    more: u64,
}
