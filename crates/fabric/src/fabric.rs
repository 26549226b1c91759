//! Packets on their way from host to host.

use crate::link::{Link, Packet};
use crate::network::{self, FIRST_CLIENT_PORT, Network};
use crate::record::{self, Fate, Hop, Sent};
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use fanin_switch::SharedBuffer;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// No connection has this local port.
const NONE: u32 = u32::MAX;
/// The record is handed out in pieces of about this size.
const PIECE: usize = 1 << 18;

/// A packet as a host's kernel hands it to its network card.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// What the kernel calls it.
    pub handle: usize,
    /// Sending host.
    pub host: u32,
    /// Receiving host.
    pub to: u32,
    /// Ports of the transport.
    pub ports: (u16, u16),
    /// Length of the IP packet.
    pub length: u32,
    /// Payload of the transport.
    pub payload: u32,
    /// Segments of it that no card cuts; 1 of any other packet.
    pub segments: u16,
    /// It follows the packet before it, with which the host handed it down: a card sends a burst back to back.
    pub continues: bool,
    /// ECN bits of the IP header.
    pub ecn: u8,
    /// Headers from IP on.
    pub headers: Headers<'a>,
    /// The sending socket.
    pub sender: Option<Sender>,
}

impl Datagram<'_> {
    /// Bytes on the wire, where each segment has its headers and `overhead` beside them. An IP packet has 16 bits for its length, and
    /// `limits` keep the frame within them.
    fn wire(&self, overhead: u32) -> u16 {
        let segments = u32::from(self.segments.max(1));
        let headers = self.length.saturating_sub(self.payload);
        (self.payload + segments * (headers + overhead)).min(u32::from(u16::MAX)) as u16
    }
}

/// Headers of a packet.
pub type Headers<'a> = &'a [u8];

/// State of a sending socket (`struct tcp_sock`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// snd_cwnd, packets.
    pub cwnd: u32,
    /// snd_ssthresh, packets.
    pub ssthresh: u32,
    /// tcp_packets_in_flight.
    pub in_flight: u32,
    /// srtt_us, without its eight times.
    pub srtt_us: u32,
    /// icsk_ca_state: 0 open, 1 disorder, 2 cwr, 3 recovery, 4 loss.
    pub state: u8,
}

/// What the kernel has to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Nothing before the next event.
    Idle,
    /// This packet has left its host: it no longer counts against its socket.
    Departed(usize),
    /// This packet was dropped on its way: free it.
    Dropped(usize),
    /// This packet has arrived.
    Arrived {
        /// What the kernel calls it.
        handle: usize,
        /// At this host.
        host: u32,
        /// Marked CE on its way.
        marked: bool,
    },
}

/// What happens on a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Departure,
    Arrival,
}

/// A network with packets in it.
#[derive(Debug)]
pub struct Fabric {
    links: Vec<Link>,
    pools: Vec<SharedBuffer>,
    /// Position in `pools` of each link.
    pool_of: Vec<Option<u32>>,
    connections: Vec<Connection>,
    /// Connection by client and local port, [`NONE`] where there is none.
    by_port: Vec<Vec<u32>>,
    /// Time, rank, link: what happens next. A link has at most one arrival and one departure in it.
    events: BinaryHeap<Reverse<(u64, u32, u32, Kind)>>,
    scheduled: Vec<[bool; 2]>,
    packets: u32,
    strays: u32,
    record: Vec<u8>,
}

#[derive(Debug)]
struct Connection {
    client: u32,
    server: u32,
    overhead: u32,
    ways: [Way; 2],
}

#[derive(Debug)]
struct Way {
    links: Vec<u32>,
    jitter: u64,
    random: [Pcg64Mcg; 2],
}

impl Fabric {
    /// An empty network.
    pub fn new(network: Network) -> Fabric {
        let mut by_port = vec![Vec::new(); network.hosts as usize];
        for (number, connection) in network.connections.iter().enumerate() {
            let ports: &mut Vec<u32> = &mut by_port[connection.client as usize];
            let at = usize::from(connection.port - FIRST_CLIENT_PORT);
            if ports.len() <= at {
                ports.resize(at + 1, NONE);
            }
            ports[at] = number as u32;
        }
        let way = |way: crate::network::Way| Way {
            links: way.links,
            jitter: way.jitter_ps,
            random: way.seeds.map(Pcg64Mcg::from_seed),
        };
        // Who decides about admission to a link; they come in the order of the links.
        let mut disciplines = network.disciplines.iter().peekable();
        let mut order = |number: u32, link: &network::Link| {
            let found = disciplines.next_if(|d| d.link == number);
            found.and_then(|d| d.order(link.rate_bps)).unwrap_or_default()
        };
        Fabric {
            scheduled: vec![[false; 2]; network.links.len()],
            pool_of: network.links.iter().map(|l| l.pool).collect(),
            links: (0..).zip(&network.links).map(|(n, l)| Link::new(l, order(n, l))).collect(),
            pools: network.pools.into_iter().map(|p| SharedBuffer::new(p.links, p.size, p.alpha)).collect(),
            connections: network
                .connections
                .into_iter()
                .map(|c| Connection { client: c.client, server: c.server, overhead: c.overhead, ways: c.ways.map(way) })
                .collect(),
            by_port,
            events: BinaryHeap::new(),
            packets: 0,
            strays: 0,
            record: Vec::with_capacity(PIECE + 4096),
        }
    }

    /// A host sends a packet; false when it was dropped on the spot.
    pub fn send(&mut self, now: u64, datagram: &Datagram<'_>) -> bool {
        let Some((number, backward)) = self.connection(datagram) else {
            self.strays += 1;
            return false;
        };
        let connection = &mut self.connections[number as usize];
        let way = &mut connection.ways[usize::from(backward)];
        let lag = match way.jitter {
            0 => 0,
            _ if datagram.continues => 0,
            jitter => way.random[usize::from(datagram.payload == 0)].random_range(0..jitter),
        };
        let first = way.links[0];
        let sent =
            Sent { connection: number, backward, length: datagram.length, time_ps: now, sender: datagram.sender };
        record::write_sent(&mut self.record, &sent, datagram.headers);
        let packet = Packet {
            handle: datagram.handle,
            number: self.packets,
            connection: number,
            backward,
            hop: 0,
            wire: datagram.wire(connection.overhead),
            empty: datagram.payload == 0,
            ect: datagram.ecn != 0,
            ce: datagram.ecn == 3,
        };
        self.packets = self.packets.wrapping_add(1);
        self.offer(now, first, packet, lag)
    }

    /// Whose packet it is, and whether it goes from server to client.
    fn connection(&self, datagram: &Datagram<'_>) -> Option<(u32, bool)> {
        let (source, destination) = datagram.ports;
        let backward = destination >= FIRST_CLIENT_PORT;
        let (client, port) = if backward { (datagram.to, destination) } else { (datagram.host, source) };
        let at = usize::from(port.checked_sub(FIRST_CLIENT_PORT)?);
        let number = *self.by_port.get(client as usize)?.get(at)?;
        let connection = self.connections.get(number as usize)?;
        let server = if backward { datagram.host } else { datagram.to };
        (connection.server == server && connection.client == client).then_some((number, backward))
    }

    fn offer(&mut self, now: u64, link: u32, packet: Packet, lag: u64) -> bool {
        let room = self.room(now, link);
        let (fate, departure) = self.links[link as usize].offer(now, packet, room, lag);
        let hop = Hop { packet: packet.number, link: link as u16, fate, time_ps: now, departure_ps: departure };
        record::write_hop(&mut self.record, &hop);
        if fate == Fate::Dropped {
            return false;
        }
        self.schedule(link, Kind::Arrival);
        if self.links[link as usize].begins_at_host() {
            self.schedule(link, Kind::Departure);
        }
        true
    }

    /// Bytes that a shared buffer leaves a port, those in it included.
    fn room(&mut self, now: u64, link: u32) -> u64 {
        let Some(pool) = self.pool_of[link as usize] else { return u64::MAX };
        let links = &mut self.links;
        self.pools[pool as usize].room(link, |l| links[l as usize].port.queue(now).1)
    }

    fn schedule(&mut self, link: u32, kind: Kind) {
        let waiting = &mut self.scheduled[link as usize][kind as usize];
        let port = &mut self.links[link as usize];
        let time = if kind == Kind::Arrival { port.arrival() } else { port.departure() };
        if let Some(time) = time.filter(|_| !*waiting) {
            *waiting = true;
            self.events.push(Reverse((time, port.next_rank(), link, kind)));
        }
    }

    /// When the next thing happens, ps.
    pub fn next(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((time, ..))| *time)
    }

    /// Does what is due by `now` until the kernel has something to do.
    pub fn step(&mut self, now: u64) -> Step {
        while let Some(&Reverse((time, _, link, kind))) = self.events.peek() {
            if time > now {
                break;
            }
            self.events.pop();
            self.scheduled[link as usize][kind as usize] = false;
            if kind == Kind::Departure {
                let handle = self.links[link as usize].depart();
                self.schedule(link, kind);
                if let Some(handle) = handle {
                    return Step::Departed(handle);
                }
                continue;
            }
            let Some(mut packet) = self.links[link as usize].arrive(time) else { continue };
            self.schedule(link, kind);
            let connection = &self.connections[packet.connection as usize];
            packet.hop += 1;
            let way = &connection.ways[usize::from(packet.backward)];
            match way.links.get(usize::from(packet.hop)).copied() {
                Some(next) => {
                    if !self.offer(time, next, packet, 0) {
                        return Step::Dropped(packet.handle);
                    }
                }
                None => {
                    let host = if packet.backward { connection.client } else { connection.server };
                    return Step::Arrived { handle: packet.handle, host, marked: packet.ce };
                }
            }
        }
        Step::Idle
    }

    /// The record so far, when it is worth writing or `all` of it is asked for; it begins anew.
    pub fn take_record(&mut self, all: bool) -> Option<Vec<u8>> {
        let worth = self.record.len() >= if all { 1 } else { PIECE };
        worth.then(|| core::mem::replace(&mut self.record, Vec::with_capacity(PIECE + 4096)))
    }

    /// Packets that belong to no connection; they were dropped.
    pub fn strays(&self) -> u32 {
        self.strays
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Discipline, Threshold};
    use crate::record::Record;
    use fanin_switch::Order;
    use fanin_units::{Args, Value};

    /// Two hosts behind one switch; 1 Gbps, 10 us per link, so a byte takes 8000 ps.
    fn network_of(limit: Threshold, mark: Threshold) -> Network {
        let link = |from_host, limit, mark| network::Link {
            rate_bps: 1_000_000_000,
            delay_ps: 10_000_000,
            limit,
            mark,
            pool: None,
            from_host,
            rank: 1,
            bucket: None,
        };
        let (open, way) = (Threshold::None, |links| network::Way { links, ..network::Way::default() });
        let connection = network::Connection {
            client: 0,
            server: 1,
            port: FIRST_CLIENT_PORT + 3,
            overhead: 0,
            ways: [way(vec![0, 1]), way(vec![2, 3])],
        };
        let links =
            vec![link(true, open, open), link(false, limit, mark), link(true, open, open), link(false, open, open)];
        Network { hosts: 2, links, connections: vec![connection], ..Network::default() }
    }

    fn star(limit: Threshold, mark: Threshold) -> Fabric {
        made(&network_of(limit, mark))
    }

    fn made(network: &Network) -> Fabric {
        Fabric::new(Network::decode(&network.encode()).unwrap())
    }

    fn packet(handle: usize, length: u32, ecn: u8) -> Datagram<'static> {
        let ports = (FIRST_CLIENT_PORT + 3, 5000);
        Datagram {
            handle,
            host: 0,
            to: 1,
            ports,
            length,
            payload: length,
            segments: 1,
            continues: false,
            ecn,
            headers: b"",
            sender: None,
        }
    }

    fn run(fabric: &mut Fabric) -> Vec<(u64, Step)> {
        let mut steps = Vec::new();
        while let Some(now) = fabric.next() {
            loop {
                match fabric.step(now) {
                    Step::Idle => break,
                    step => steps.push((now, step)),
                }
            }
        }
        steps
    }

    #[test]
    fn each_segment_of_a_burst_that_no_card_cuts_has_its_headers_on_the_wire() {
        let burst = Datagram { payload: 2896, segments: 2, ..packet(1, 2948, 0) };
        assert_eq!(burst.wire(14), 2 * (1448 + 52 + 14));
        let alone = Datagram { payload: 1448, ..packet(1, 1500, 0) };
        assert_eq!(alone.wire(14), 1514);
    }

    #[test]
    fn a_packet_takes_its_bits_and_the_delay_on_each_link() {
        let mut fabric = star(Threshold::None, Threshold::None);
        assert!(fabric.send(5, &packet(7, 1000, 0)));
        // 1000 bytes at 1 Gbps are 8 us; then 10 us, and both again.
        let arrived = Step::Arrived { handle: 7, host: 1, marked: false };
        assert_eq!(run(&mut fabric), [(8_000_005, Step::Departed(7)), (36_000_005, arrived)]);
    }

    /// Ten segments of one burst leave back to back, however late the host is with the first; as packets of their own each is late by itself.
    #[test]
    fn a_host_is_late_with_a_burst_as_a_whole() {
        let mut network = network_of(Threshold::None, Threshold::None);
        let way = &mut network.connections[0].ways[0];
        (way.jitter_ps, way.seeds) = (1_000_000_000, [[7; 16]; 2]);
        let spread = |bursts: bool| {
            let mut fabric = made(&network);
            for n in 0..10 {
                assert!(fabric.send(0, &Datagram { continues: bursts && n > 0, ..packet(n, 1000, 0) }));
            }
            let left = |(at, step): (u64, Step)| matches!(step, Step::Departed(_)).then_some(at);
            let times: Vec<u64> = run(&mut fabric).into_iter().filter_map(left).collect();
            times[9] - times[0]
        };
        assert_eq!(spread(true), 9 * 8_000_000);
        assert!(spread(false) > 9 * 8_000_000);
    }

    #[test]
    fn the_packet_in_transmission_counts_against_buffer_and_threshold() {
        // Three packets at once through a port that holds two and marks above one: the second is marked, the third dropped.
        let mut fabric = star(Threshold::Packets(2), Threshold::Packets(1));
        fabric.links[0] = Link::new(&network::Link { rate_bps: 1_000_000_000_000, ..rules() }, Order::Fifo);
        for handle in 1..=3 {
            assert!(fabric.send(0, &packet(handle, 1000, 2)));
        }
        let fates: Vec<Step> =
            run(&mut fabric).into_iter().map(|(_, s)| s).filter(|s| !matches!(s, Step::Departed(_))).collect();
        let arrived = |handle, marked| Step::Arrived { handle, host: 1, marked };
        assert_eq!(fates, [Step::Dropped(3), arrived(1, false), arrived(2, true)]);
        let bytes = fabric.take_record(true).unwrap();
        let mut rest = bytes.as_slice();
        let mut dropped = Vec::new();
        while let Some(record) = record::read(&mut rest) {
            if let Record::Hop(Hop { fate: Fate::Dropped, packet, link, .. }) = record {
                dropped.push((packet, link));
            }
        }
        assert_eq!(dropped, [(2, 1)]);
    }

    fn rules() -> network::Link {
        let none = Threshold::None;
        network::Link {
            rate_bps: 1,
            delay_ps: 0,
            limit: none,
            mark: none,
            pool: None,
            from_host: true,
            rank: 0,
            bucket: None,
        }
    }

    #[test]
    fn a_discipline_decides_about_data_alone_and_is_encoded_behind_the_rest() {
        let plain = network_of(Threshold::None, Threshold::None);
        let mut settings = Args::default();
        settings.set("loss_of", Value::Word("2".into()));
        let lossy = Discipline { link: 1, name: "lossy".into(), settings, seed: [0; 16] };
        let network = Network { disciplines: vec![lossy.clone()], ..plain.clone() };
        // One discipline, of link 1, with one setting, whose value is of the third kind.
        let encoded = [&plain.encode()[..], b"\x01\x01\x05lossy\x01\x07loss_of\x02\x012", &[0; 16]].concat();
        assert_eq!(network.encode(), encoded);
        let mut fabric = made(&network);
        for (handle, payload) in [(1, 960), (2, 0), (3, 960), (4, 960)] {
            assert!(fabric.send(0, &Datagram { payload, ..packet(handle, 1000, 2) }));
        }
        let dropped: Vec<Step> =
            run(&mut fabric).into_iter().map(|(_, s)| s).filter(|s| matches!(s, Step::Dropped(_))).collect();
        // The second of the packets with data: the one without payload does not count.
        assert_eq!(dropped, [Step::Dropped(3)]);
        // A link has one discipline, and they come in the order of the links.
        let after = Discipline { link: 2, ..lossy.clone() };
        for disciplines in [vec![after, lossy.clone()], vec![lossy.clone(), lossy.clone()]] {
            assert!(Network::decode(&Network { disciplines, ..plain.clone() }.encode()).is_none());
        }
        // What is no discipline, or is no admission, is no network.
        for name in ["rod", "sfq"] {
            let unknown = Discipline { name: name.into(), ..lossy.clone() };
            assert!(Network::decode(&Network { disciplines: vec![unknown], ..plain.clone() }.encode()).is_none());
        }
    }

    #[test]
    fn a_packet_of_no_connection_is_a_stray() {
        let mut fabric = star(Threshold::None, Threshold::None);
        assert!(!fabric.send(0, &Datagram { ports: (FIRST_CLIENT_PORT, 5000), ..packet(1, 60, 0) }));
        assert!(!fabric.send(0, &Datagram { to: 0, ..packet(1, 60, 0) }));
        assert_eq!(fabric.strays(), 2);
    }
}
