//! What a network is made of: written by `fanin-kernel`, read inside the kernel.

use alloc::string::String;
use alloc::vec::Vec;
use fanin_switch::disciplines::{self, Build, Context};
use fanin_switch::{Order, random::Stream};
use fanin_units::{Args, Rate};
use serde::{Deserialize, Serialize};

/// Local ports of connecting ends start here; listening ports lie below.
pub const FIRST_CLIENT_PORT: u16 = 10_000;

/// Hosts, links, and who talks to whom.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Network {
    /// How many hosts there are.
    pub hosts: u32,
    /// Directed links, each with the output port that feeds it.
    pub links: Vec<Link>,
    /// Buffers that ports share.
    pub pools: Vec<Pool>,
    /// TCP connections and datagram streams; a packet of anything else is an error of the run.
    pub connections: Vec<Connection>,
    /// Ports that are more than drop-tail with a step of marking, in the order of their links. They are encoded behind the rest, where
    /// there are any.
    #[serde(skip)]
    pub disciplines: Vec<Discipline>,
}

/// A directed link and the port that feeds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Link {
    /// Bits per second.
    pub rate_bps: u64,
    /// From the last bit's departure to the arrival, with the processing of the switch it leads to; ps.
    pub delay_ps: u64,
    /// Drop what would exceed this.
    pub limit: Threshold,
    /// Mark an ECN-capable packet when the queue with it exceeds this.
    pub mark: Threshold,
    /// Position in [`Network::pools`].
    pub pool: Option<u32>,
    /// Begins at a host: the kernel is told when a packet has left (TCP small queues count what has not).
    pub from_host: bool,
    /// Order among arrivals at the same instant.
    pub rank: u32,
    /// What shapes the link in place of its line.
    pub bucket: Option<Bucket>,
}

/// A token bucket ([`fanin_switch::TokenBucket`]).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Bucket {
    /// Bytes that it holds.
    pub size: u16,
    /// What its timer is late by on average, ps.
    pub latency_ps: u64,
    /// What the stream that draws this starts from.
    pub seed: [u8; 16],
}

/// A queue length that must not be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Threshold {
    /// No such length.
    None,
    /// Packets, the one in transmission included.
    Packets(u32),
    /// Bytes on the wire.
    Bytes(u64),
}

impl Threshold {
    /// A queue of this length is longer.
    pub fn exceeded_by(self, packets: u32, bytes: u64) -> bool {
        match self {
            Threshold::None => false,
            Threshold::Packets(most) => packets > most,
            Threshold::Bytes(most) => bytes > most,
        }
    }
}

/// A registered queue discipline at a port: first in, first out, with a say on admission.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Discipline {
    /// Position of its link.
    pub link: u32,
    /// Its name in [`fanin_switch::disciplines`].
    pub name: String,
    /// Its settings that are not left at their defaults.
    pub settings: Args,
    /// Seed of the port's random stream.
    pub seed: [u8; 16],
}

impl Discipline {
    /// The order of a port of this rate; `None` where there is no such discipline, or it does not take these settings.
    pub fn order(&self, rate_bps: u64) -> Option<Order> {
        let Build::Admission(make) = disciplines::find(&self.name)?.build else { return None };
        let context = Context { rate: Rate::from_bps(rate_bps), random: Stream::from_seed(self.seed) };
        make(&context, &self.settings).ok().map(Order::Admission)
    }
}

/// A buffer that several ports share: a port may hold `alpha` times what is free (Choudhury and Hahne).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pool {
    /// Bytes.
    pub size: u64,
    /// Share of the free part.
    pub alpha: f64,
    /// Positions of its links.
    pub links: Vec<u32>,
}

/// A connection, or a stream of datagrams: `port` is local at `client`, and unique there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    /// Host number of the end that connects.
    pub client: u32,
    /// Host number of the end that listens.
    pub server: u32,
    /// Local port at the client, [`FIRST_CLIENT_PORT`] or above.
    pub port: u16,
    /// Bytes on the wire beside the IP packet.
    pub overhead: u32,
    /// From client to server, and back.
    pub ways: [Way; 2],
}

/// One direction of a connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Way {
    /// Links to cross, in order.
    pub links: Vec<u32>,
    /// Processing time in the sending host is uniform on [0, this); ps.
    pub jitter_ps: u64,
    /// Seeds of the random streams that draw it: for packets with data, and without.
    pub seeds: [[u8; 16]; 2],
}

impl Network {
    /// For the kernel.
    pub fn encode(&self) -> Vec<u8> {
        // A vector grows as needed, and nothing here has a fallible encoding.
        let mut bytes = postcard::to_allocvec(self).unwrap_or_default();
        if !self.disciplines.is_empty() {
            bytes.extend(postcard::to_allocvec(&self.disciplines).unwrap_or_default());
        }
        bytes
    }

    /// As it was encoded; `None` if these bytes are no network, or name hosts and links that it does not have.
    pub fn decode(bytes: &[u8]) -> Option<Network> {
        let (mut network, rest): (Network, &[u8]) = postcard::take_from_bytes(bytes).ok()?;
        if !rest.is_empty() {
            network.disciplines = postcard::from_bytes(rest).ok()?;
        }
        network.is_whole().then_some(network)
    }

    fn is_whole(&self) -> bool {
        let link = |l: &u32| (*l as usize) < self.links.len();
        let pool = |p: u32| (p as usize) < self.pools.len();
        let connection = |c: &Connection| {
            c.client < self.hosts
                && c.server < self.hosts
                && c.port >= FIRST_CLIENT_PORT
                && c.ways.iter().all(|w| !w.links.is_empty() && w.links.iter().all(link))
        };
        self.links.iter().all(|l| l.rate_bps > 0 && l.pool.is_none_or(pool))
            && self.pools.iter().all(|p| p.links.iter().all(link))
            && self.connections.iter().all(connection)
            && self.disciplines.iter().all(|d| link(&d.link) && d.order(1).is_some())
            && self.disciplines.is_sorted_by(|a, b| a.link < b.link)
    }
}
