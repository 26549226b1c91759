//! What each host has received so far, and how fast it came at the fastest: what a response may have queued behind on its way.

use crate::decode::Addr;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// Ethernet with preamble, FCS and gap (38 bytes), IPv4 and TCP with time stamps (52).
const HEADERS: u64 = 90;
/// Bytes over which a rate is taken: fewer, and the stamps of packets that were polled together would make it.
const WINDOW_BYTES: u64 = 65_536;
/// The least time over which a rate is taken, for the same reason.
const WINDOW_TIME: u64 = 50_000;

/// Received bytes per host.
#[derive(Default)]
pub(crate) struct Arrivals {
    numbers: HashMap<Addr, u32, foldhash::fast::RandomState>,
    hosts: Vec<Received>,
}

#[derive(Default)]
struct Received {
    bytes: u64,
    /// The window in progress: when its first packet passed, and what had come with it.
    since: u64,
    before: u64,
    fastest_bps: u64,
}

impl Arrivals {
    /// Numbers of both ends of a connection.
    pub fn hosts(&mut self, ends: [(Addr, u16); 2]) -> [u32; 2] {
        ends.map(|(addr, _)| {
            let fresh = self.numbers.len() as u32;
            let number = *self.numbers.entry(addr).or_insert(fresh);
            if number == fresh {
                self.hosts.push(Received::default());
            }
            number
        })
    }

    /// A packet with payload passed on its way to `host`.
    #[inline]
    pub fn data(&mut self, host: u32, payload: u32, at: u64) {
        let host = &mut self.hosts[host as usize];
        host.bytes += u64::from(payload) + HEADERS;
        let (bytes, time) = (host.bytes - host.before, at - host.since);
        if host.before == 0 || (bytes >= WINDOW_BYTES && time >= WINDOW_TIME) {
            if host.before > 0 {
                host.fastest_bps = host.fastest_bps.max((u128::from(bytes) * 8_000_000_000 / u128::from(time)) as u64);
            }
            (host.before, host.since) = (host.bytes, at);
        }
    }

    /// What `host` has received so far, bytes on the wire.
    #[inline]
    pub fn received(&self, host: u32) -> u64 {
        self.hosts[host as usize].bytes
    }

    /// The fastest that each host received, bits per second.
    pub fn rates(&self) -> BTreeMap<IpAddr, u64> {
        let known = |(addr, &number): (&Addr, &u32)| {
            let fastest = self.hosts[number as usize].fastest_bps;
            (fastest > 0).then(|| (addr.ip(), fastest))
        };
        self.numbers.iter().filter_map(known).collect()
    }
}
