//! From segments to connections: who belongs to whom, and which packets are copies.

use crate::arrivals::Arrivals;
use crate::conn::Conn;
use crate::conns::Conns;
use crate::copies::Copies;
use crate::decode::{Addr, flag};
use crate::limit::{Answer, Sent};
use crate::ports::Ports;
use crate::rack::{Link, Links};
use crate::silence::Silence;
use crate::timeline::{Noted, Timed};
use crate::{Gap, Options, Sink};
use std::collections::HashMap;

/// Both ends, the lower one first: addresses and ports alone, like tshark. VLAN tags differ between the directions of real captures.
type Key = [(Addr, u16); 2];

/// All connections of a capture.
pub(crate) struct Table {
    /// The latest connection between two ends. Hash order is never used for anything, so the hasher's seed cannot show.
    by_ends: HashMap<Key, u32, foldhash::fast::RandomState>,
    conns: Conns,
    ports: Ports,
    arrivals: Arrivals,
    pub copies: Copies,
    links: Links,
    pub mirrored: Noted,
    pub silence: Silence,
    gap: Gap,
}

impl Table {
    /// Empty.
    pub fn new(options: &Options) -> Table {
        Table {
            by_ends: HashMap::default(),
            conns: Conns::default(),
            ports: Ports::default(),
            arrivals: Arrivals::new(options.links),
            copies: Copies::new(),
            links: Links::default(),
            mirrored: Noted::default(),
            silence: Silence::default(),
            gap: options.gap,
        }
    }

    /// Hands a segment to its connection, a new one if need be.
    #[inline]
    pub fn segment(&mut self, timed: &Timed, sink: &mut dyn Sink) {
        let Timed { at, packet, segment: s, payload } = timed;
        self.silence.segment(*at);
        let (a, b) = ((s.src, s.sport), (s.dst, s.dport));
        let key = if a <= b { [a, b] } else { [b, a] };
        let fresh = self.conns.len() as u32;
        let index = *self.by_ends.entry(key).or_insert(fresh);
        let mut index = index as usize;
        if index == self.conns.len() {
            let told = self.ports.tell(s, fresh);
            self.conns.push(Conn::new(fresh, s, key, told.server, self.arrivals.hosts(key), *at));
            if let (Some(port), Some(first)) = (told.server, told.first) {
                self.conns.at(first as usize).is_served_at(port);
            }
        }
        let mut d = self.conns.at(index).direction(s);
        if self.conns.at(index).is_reused_by(s, d) {
            // A copy of the SYN must not open yet another connection: it has the same number, which the rule above knows.
            index = self.conns.len();
            self.conns.push(Conn::new(fresh, s, key, None, self.arrivals.hosts(key), *at));
            self.by_ends.insert(key, fresh);
            d = self.conns.at(index).direction(s);
        }
        let conn = self.conns.at(index);
        let most = conn.largest_packet(d, s);
        if self.copies.is_copy(s, (index as u64) << 1 | d as u64, most, *at, conn.is_mirrored(), conn.numbers(d)) {
            self.mirrored.note(*packet);
            conn.mirrored(d, s.payload);
        } else {
            if let Some(other) = self.copies.elsewhere(s, (index as u64) << 1 | d as u64) {
                let other = (other >> 1) as usize;
                self.conns.at(index.max(other)).translates(index.min(other) as u32);
            }
            let conn = self.conns.at(index);
            self.silence.goes_on(conn.last(), || conn.unacknowledged());
            if s.payload > 0 {
                let merged = s.payload > most;
                if let Some(bps) = self.links.data(s, most, *at) {
                    self.arrivals.usual(s.dst, bps);
                }
                if let Some(rate) = conn.spacing(d, s.payload, *at, merged) {
                    self.links.sender(s.dst, rate);
                }
                let sent = Sent { flow: (index as u64) << 1 | d as u64, from: conn.host(d), segment: most };
                self.links.passed(s, sent, *at);
            }
            let (before, flying) = (conn.acknowledged(1 - d), [0, 1].map(|d| conn.in_flight(d)));
            conn.segment(s, payload, d, *at, self.gap, &mut self.arrivals, sink);
            if let Some(cut) = conn.take_burst(d) {
                self.links.burst(s.dst, cut);
            }
            if conn.take_timer(d) {
                self.links.timer(s, *at);
            }
            if let Some(rtt) = conn.take_round_trip(1 - d) {
                self.links.round_trip(s.src, rtt);
            }
            let news = conn.acknowledged(1 - d).saturating_sub(before);
            if news > 0 || s.twice.is_some() {
                let flow = (index as u64) << 1 | (1 - d) as u64;
                let answer = Answer { flow, least: conn.shortest_way(1 - d), sacks: conn.sacks() };
                self.links.confirmed(s, answer, *at);
            }
            let over = s.flags & flag::RST != 0;
            for (way, receiver) in [(d, s.dst), (1 - d, s.src)] {
                let left = if over { 0 } else { conn.in_flight(way) };
                let moved = left as i64 - flying[way] as i64;
                if moved != 0 {
                    self.links.in_flight(receiver, moved, conn.largest_packet(way, s), *at);
                }
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
