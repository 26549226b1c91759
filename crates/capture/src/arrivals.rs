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
/// The rate is known to this share: what a link adds to a packet (38 bytes on Ethernet, nothing on others) is a twentieth of one of 760 bytes.
const RATE_ERROR: f64 = 0.05;

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
    /// Until when its own link is busy with what it sent, and when it sent last.
    sends_until: f64,
    sent: u64,
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
            // A packet passes when the link has sent its last bit: the time since the one before is its own. A busy link that seems to fall behind
            // by no more than the error of its rate has not: the errors of many packets would add up to a break.
            let behind = at as f64 - host.free_at - transmission;
            host.free_at += transmission + behind.clamp(0.0, RATE_ERROR * (at - host.last) as f64);
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

    /// `host` sent a packet with `payload` at `at`, as a tap on it says: how much later than an empty one that was sent alone it comes to its receiver.
    /// It waits for what the host sent before it, and links take longer for its size. A link is taken to be as fast in both directions; 0 while
    /// nothing is known of its rate.
    #[inline]
    pub fn held(&mut self, host: u32, payload: u32, at: u64) -> u64 {
        let drag = self.drag_ns(host, payload);
        let host = &mut self.hosts[host as usize];
        if host.fastest_bps == 0 {
            return 0;
        }
        // A clock that was set back says nothing of what is still waiting.
        let waits = if at < host.sent { 0.0 } else { (host.sends_until - at as f64).max(0.0) };
        host.sends_until = at as f64 + waits + host.transmission(payload);
        host.sent = at;
        waits as u64 + drag
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn two_hosts() -> (Arrivals, u32, u32) {
        let mut arrivals = Arrivals::default();
        let [a, b] = arrivals.hosts([(Addr(1), 1), (Addr(2), 2)]);
        (arrivals, a, b)
    }

    /// Packets back to back on 1 Gb/s where nothing is added to a packet but its headers; the time after the last.
    fn busy(arrivals: &mut Arrivals, host: u32, mut at: u64, payloads: impl Iterator<Item = u32>) -> u64 {
        for payload in payloads {
            at += (u64::from(payload) + 52) * 8;
            arrivals.packet(host, payload, at, 0, 0);
        }
        at
    }

    #[test]
    fn a_busy_link_stays_busy_though_its_rate_is_not_known_exactly() {
        let (mut arrivals, a, _) = two_hosts();
        // A window of small packets: with 38 bytes that this link does not add, its rate seems 1.05 Gb/s, and a full packet 4 % too short.
        let at = busy(&mut arrivals, a, MS, std::iter::repeat_n(700, 30)) + MS;
        let first = at + 12_000;
        let at = busy(&mut arrivals, a, at, std::iter::repeat_n(1448, 200));
        let (earliest, _) = arrivals.between(a, 700, at + 6_016);
        assert!(earliest <= first, "what came at {at} may have waited since {first}, not since {earliest}");
        // Half a packet more than its own time after the one before: the link had nothing to send.
        let pause = at + 12_000 + 9_000;
        assert_eq!(arrivals.between(a, 1448, pause), (pause, pause));
    }

    #[test]
    fn what_leaves_a_host_at_once_comes_to_its_receivers_one_after_another() {
        let (mut arrivals, a, b) = two_hosts();
        assert_eq!(arrivals.held(a, 300, MS), 0, "nothing is known of the link yet");
        busy(&mut arrivals, a, MS, std::iter::repeat_n(1448, 30));
        // 1500 bytes in 12 us and 38 counted on top: 1538 bytes in 12 us; 390 bytes take 3.04 us, 300 bytes on two links 4.68 us.
        let held: Vec<u64> = (0..4).map(|_| arrivals.held(a, 300, 9 * MS)).collect();
        let apart: Vec<u64> = held.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(held[0].abs_diff(4_680) < 20 && apart.iter().all(|d| d.abs_diff(3_043) < 20), "{held:?}");
        assert!(arrivals.held(a, 300, 10 * MS).abs_diff(4_680) < 20, "a millisecond later the link is free");
        assert!(arrivals.held(a, 300, MS).abs_diff(4_680) < 20, "a clock that was set back keeps nothing waiting");
        assert_eq!(arrivals.held(b, 300, 9 * MS), 0);
    }
}
