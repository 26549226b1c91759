//! What is known of each host over all its connections: how long data has been coming to it without a break, which is what a response may
//! have queued behind on its way, and how far its round trips spread.

use crate::decode::Addr;
use std::collections::HashMap;

/// Ethernet with preamble, FCS and gap (38 bytes), IPv4 and TCP with time stamps (52).
const HEADERS: u64 = 90;
/// Bytes over which a rate is taken: fewer, and the stamps of packets that were polled together would make it.
const WINDOW_BYTES: u64 = 65_536;
/// The least time over which a rate is taken, for the same reason.
const WINDOW_TIME: u64 = 50_000;
/// Rate of a link before anything is known of it, bits per nanosecond: 1 Gb/s.
const PRESUMED: f64 = 1.0;
/// A break shorter than this, beside half a packet, is within the error of time stamps.
const STAMPS: f64 = 2_000.0;

/// For how long, in nanoseconds, a round trip speaks for those that follow it: queues and busy hosts come and go.
const SPREAD_HOLDS: u64 = 1_000_000_000;

/// Received bytes and spread of round trips per host.
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
    /// Since when the link to it can have been busy, and until when it is with what has come, at the fastest rate seen: a bucket that leaks,
    /// so that packets that were polled together and have one stamp count for the time that they took.
    busy_since: u64,
    free_at: f64,
    spread: Spread,
}

/// By how much round trips exceeded their connections' shortest, at most, in the present span of [`SPREAD_HOLDS`] and in the one before.
#[derive(Default)]
struct Spread {
    span: u64,
    now: u64,
    before: u64,
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
        let transmission = host.transmission(payload);
        if at as f64 > host.free_at + transmission / 2.0 + STAMPS {
            (host.busy_since, host.free_at) = (at, at as f64);
        }
        host.free_at += transmission;
        host.bytes += u64::from(payload) + HEADERS;
        let (bytes, time) = (host.bytes - host.before, at - host.since);
        if host.before == 0 || (bytes >= WINDOW_BYTES && time >= WINDOW_TIME) {
            if host.before > 0 {
                host.fastest_bps = host.fastest_bps.max((u128::from(bytes) * 8_000_000_000 / u128::from(time)) as u64);
            }
            (host.before, host.since) = (host.bytes, at);
        }
    }

    /// For how long data has come to `host` without a break when a packet with `payload` comes at `at`: it was in the queue for at most so long.
    #[inline]
    pub fn busy_ns(&self, host: u32, payload: u32, at: u64) -> u64 {
        let host = &self.hosts[host as usize];
        let broken = at as f64 > host.free_at + host.transmission(payload) / 2.0 + STAMPS;
        if broken { 0 } else { at - host.busy_since }
    }

    /// Data that `host` acknowledged at `at` was `excess` longer under way than its connection's shortest.
    #[inline]
    pub fn round_trip(&mut self, host: u32, excess: u64, at: u64) {
        let spread = &mut self.hosts[host as usize].spread;
        spread.turn(at);
        spread.now = spread.now.max(excess);
    }

    /// By how much round trips to `host` exceeded the shortest, at most, in the last second or two before `at`.
    #[inline]
    pub fn spread(&mut self, host: u32, at: u64) -> u64 {
        let spread = &mut self.hosts[host as usize].spread;
        spread.turn(at);
        spread.now.max(spread.before)
    }
}

impl Spread {
    /// Begins the span that `at` is in.
    #[inline]
    fn turn(&mut self, at: u64) {
        let span = at / SPREAD_HOLDS;
        if span != self.span {
            (self.before, self.now) = (if span == self.span + 1 { self.now } else { 0 }, 0);
            self.span = span;
        }
    }
}

impl Received {
    /// How long a packet takes on the link to the host, at the fastest rate seen.
    #[inline]
    fn transmission(&self, payload: u32) -> f64 {
        let rate = if self.fastest_bps == 0 { PRESUMED } else { self.fastest_bps as f64 / 1e9 };
        (u64::from(payload) + HEADERS) as f64 * 8.0 / rate
    }
}
