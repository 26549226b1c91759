//! What is known of each host over all its connections: how long data has been coming to it without a break, which is what a response may
//! have queued behind on its way, and how far its round trips spread.

use crate::decode::Addr;
use std::collections::HashMap;

/// Ethernet with preamble, FCS and gap (38 bytes), IPv4 and TCP with time stamps (52).
const HEADERS: u64 = 90;
/// Bytes over which a rate is taken: fewer, and the stamps of packets that were polled together would make it.
const WINDOW_BYTES: u64 = 16_384;
/// The least time over which a rate is taken, for the same reason.
const WINDOW_TIME: u64 = 50_000;
/// A pause that is none of a link's: a full packet takes 120 us at 100 Mb/s. A rate is taken between such pauses.
const PAUSE: u64 = 200_000;
/// Links that a packet crosses, those of its sender and of its receiver, which are taken to be equally fast: the packet has to be received
/// whole before it is sent on.
const LINKS: f64 = 2.0;
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
    /// The window in progress: when it began, and what had come before.
    since: u64,
    before: u64,
    fastest_bps: u64,
    /// Since when the link to it can have been busy, and until when it is with what has come, at the fastest rate seen: a bucket that leaks,
    /// so that packets that were polled together and have one stamp count for the time that they took.
    busy_since: u64,
    free_at: f64,
    last: u64,
    /// Runs whose senders were still sending when their last packet came.
    live: i32,
    /// The packet that came last can have entered the queue no earlier than this; a queue keeps the order, so later ones cannot either.
    entered: u64,
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

    /// A packet passed on its way to `host`; it can have entered the queue in front of it from `entered` on, and `live` runs more than before
    /// it have a next packet right behind.
    #[inline]
    pub fn packet(&mut self, host: u32, payload: u32, at: u64, entered: u64, live: i32) {
        let host = &mut self.hosts[host as usize];
        let transmission = host.transmission(payload);
        if host.idle(transmission, at) {
            (host.busy_since, host.free_at, host.entered) = (at, at as f64, at);
            host.live = 0;
        } else {
            // A packet passes when the link has sent its last bit: the time since the one before is its own.
            host.free_at += transmission;
        }
        host.entered = host.entered.max(entered.min(at));
        host.live = (host.live + live).max(0);
        host.bytes += u64::from(payload) + HEADERS;
        if at - host.last > PAUSE || host.last == 0 {
            // The first packet of a window took its time before the window began.
            (host.before, host.since) = (host.bytes, at);
        }
        let (bytes, time) = (host.bytes - host.before, at - host.since);
        if bytes >= WINDOW_BYTES && time >= WINDOW_TIME {
            host.fastest_bps = host.fastest_bps.max((u128::from(bytes) * 8_000_000_000 / u128::from(time)) as u64);
            (host.before, host.since) = (host.bytes, at);
        }
        host.last = at;
    }

    /// The earliest and the latest that a packet with `payload` that comes to `host` at `at` can have entered the queue in front of it: not before
    /// data came without a break, and not before those that came earlier; but before what their senders sent next, which is still to come.
    #[inline]
    pub fn between(&self, host: u32, payload: u32, at: u64) -> (u64, u64) {
        let host = &self.hosts[host as usize];
        let transmission = host.transmission(payload);
        if host.idle(transmission, at) {
            return (at, at);
        }
        let earliest = host.busy_since.max(host.entered);
        (earliest, if host.live > 0 { at.min(earliest + transmission as u64) } else { at })
    }

    /// How long `bytes` take on the link to `host`, at the fastest rate seen.
    #[inline]
    pub fn time_for(&self, host: u32, bytes: u64) -> u64 {
        (bytes as f64 * self.hosts[host as usize].per_byte()) as u64
    }

    /// How much later a packet with `payload` comes than an empty one that was sent with it: links take longer for it.
    #[inline]
    pub fn drag_ns(&self, host: u32, payload: u32) -> u64 {
        (f64::from(payload) * self.hosts[host as usize].per_byte() * LINKS) as u64
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
    /// The queue was empty before a packet that takes so long came at `at`.
    #[inline]
    fn idle(&self, transmission: f64, at: u64) -> bool {
        at as f64 > self.free_at + 1.5 * transmission + STAMPS
    }

    /// How long a packet takes on the link to the host, at the fastest rate seen.
    #[inline]
    fn transmission(&self, payload: u32) -> f64 {
        (u64::from(payload) + HEADERS) as f64 * self.per_byte()
    }

    /// Nanoseconds.
    #[inline]
    fn per_byte(&self) -> f64 {
        8.0 / if self.fastest_bps == 0 { PRESUMED } else { self.fastest_bps as f64 / 1e9 }
    }
}
