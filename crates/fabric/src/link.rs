//! One output port and the wire behind it: the port of `fanin-switch`, and the packets that are in it.

use crate::network::{self, Threshold};
use crate::record::Fate;
use alloc::collections::VecDeque;
use fanin_switch::{Order, Port, flags, random::Stream};
use fanin_units::{Bytes, QueueLimit, Rate};

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// What the kernel calls it.
    pub handle: usize,
    /// Its number in the record.
    pub number: u32,
    pub connection: u32,
    pub backward: bool,
    /// The link it is on, as a position on its way.
    pub hop: u16,
    /// Bytes on the wire.
    pub wire: u16,
    /// It has no payload.
    pub empty: bool,
    /// ECN-capable transport, and congestion experienced.
    pub ect: bool,
    pub ce: bool,
}

/// A packet and when its last bit leaves.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    departure: u64,
    packet: Packet,
}

/// A directed link.
#[derive(Debug)]
pub struct Link {
    pub port: Port,
    delay: u64,
    from_host: bool,
    /// In order: departed packets on the wire, then the queue.
    ring: VecDeque<UnderWay>,
    /// How many at the front the kernel knows to have departed.
    told: usize,
    /// Rank of its next event.
    rank: u32,
}

impl Link {
    pub fn new(rules: &network::Link, order: Order) -> Link {
        let rate = Rate::from_bps(rules.rate_bps);
        let (limit, mark) = (queue_limit(rules.limit), queue_limit(rules.mark));
        let mut port = Port::new(rate, rules.delay_ps, limit, mark, order);
        if let Some(bucket) = &rules.bucket {
            port.shape(bucket.size, bucket.latency_ps, Stream::from_seed(bucket.seed));
        }
        Link {
            port,
            delay: rules.delay_ps,
            from_host: rules.from_host,
            ring: VecDeque::new(),
            told: 0,
            rank: rules.rank,
        }
    }

    pub fn begins_at_host(&self) -> bool {
        self.from_host
    }

    /// Offers a packet; `room` is what a shared buffer leaves this port in bytes, and transmission starts `lag` ps from now at the earliest.
    pub fn offer(&mut self, now: u64, mut packet: Packet, room: u64, lag: u64) -> (Fate, u64) {
        let ect = if packet.ect { flags::ECT } else { 0 };
        let ce = if packet.ce { flags::CE } else { 0 };
        let ack = if packet.empty { flags::ACK } else { 0 };
        let bits = ect | ce | ack;
        let seen = fanin_switch::Packet { handle: 0, flow: packet.connection, bytes: packet.wire, flags: bits };
        self.port.lag = lag;
        let offer = self.port.offer(now, seen, room);
        if !offer.accepted {
            self.port.lag = 0;
            return (Fate::Dropped, now);
        }
        packet.ce |= offer.marked;
        let departure = self.port.free_at();
        self.ring.push_back(UnderWay { departure, packet });
        (if offer.marked { Fate::Marked } else { Fate::Accepted }, departure)
    }

    /// When the first packet on the link reaches the far end.
    pub fn arrival(&self) -> Option<u64> {
        self.ring.front().map(|p| p.departure + self.delay)
    }

    /// When the first packet departs whose departure the kernel has not been told.
    pub fn departure(&self) -> Option<u64> {
        self.ring.get(self.told).map(|p| p.departure)
    }

    /// That packet departs: what the kernel calls it.
    pub fn depart(&mut self) -> Option<usize> {
        let handle = self.ring.get(self.told)?.packet.handle;
        self.told += 1;
        Some(handle)
    }

    /// The first packet reaches the far end, at the time that [`Self::arrival`] said.
    pub fn arrive(&mut self, now: u64) -> Option<Packet> {
        self.port.deliver(now)?;
        let head = self.ring.pop_front()?;
        self.told = self.told.saturating_sub(1);
        Some(head.packet)
    }

    /// The rank of the event after this one (a linear congruential sequence of full period, as the simulator's calendar has).
    pub fn next_rank(&mut self) -> u32 {
        let rank = self.rank;
        self.rank = rank.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        rank
    }
}

fn queue_limit(threshold: Threshold) -> Option<QueueLimit> {
    match threshold {
        Threshold::None => None,
        Threshold::Packets(n) => Some(QueueLimit::Packets(n)),
        Threshold::Bytes(n) => Some(QueueLimit::Bytes(Bytes::new(n))),
    }
}
