//! What is known of each host over all its connections: how long data has been coming to it without a break, which is what a response may
//! have queued behind on its way, and how far its round trips spread.

use crate::LinkRates;
use crate::decode::{Addr, WIRE_OVERHEAD};
use std::collections::{HashMap, VecDeque};

/// Around the payload on the wire.
const HEADERS: u64 = WIRE_OVERHEAD as u64;
/// Bytes over which a rate is taken: fewer, and the stamps of packets that were polled together would make it.
const WINDOW_BYTES: u64 = 16_384;
/// The least time over which a rate is taken, for the same reason.
const WINDOW_TIME: u64 = 50_000;
/// A pause that is none of a link's: a full packet takes 120 us at 100 Mb/s. A rate is taken between such pauses.
const PAUSE: u64 = 200_000;
/// Links that a packet crosses, those of its sender and of its receiver, which are taken to be equally fast where their rates are not known: the
/// packet has to be received whole before it is sent on.
const LINKS: f64 = 2.0;
/// Data that comes so much faster than a link is said to be does not come over that link.
const FASTER: f64 = 1.5;
/// Rate of a link before anything is known of it, bits per nanosecond: 1 Gb/s.
const PRESUMED: f64 = 1.0;
/// A packet that comes so many times its own time on the link after the one before came without a break.
const NO_BREAK: f64 = 1.5;
/// A break shorter than this beside that is within the error of time stamps.
const STAMPS: f64 = 2_000.0;

/// For how long, in nanoseconds, a round trip speaks for those that follow it: queues and busy hosts come and go.
const SPREAD_HOLDS: u64 = 1_000_000_000;

/// So many packets show the pace of the senders: the mean of so many times that are uniform from 0 on is within a seventh, more often than not.
const FEWEST_PACED: u32 = 8;

/// So many first packets are remembered per host: more than answer at once.
const FRONTS: usize = 1_024;

/// Received bytes and spread of round trips per host.
#[derive(Default)]
pub(crate) struct Arrivals {
    numbers: HashMap<Addr, u32, foldhash::fast::RandomState>,
    hosts: Vec<Received>,
    known: Option<LinkRates>,
}

#[derive(Default)]
struct Received {
    bytes: u64,
    /// The window in progress: when it began, and what had come before.
    since: u64,
    before: u64,
    fastest_bps: u64,
    /// What the link to the aggregator is known to carry. A host that is none has little coming to it that could queue.
    known_bps: Option<u64>,
    /// What most trains of full packets to it passed at: not what a few did that the tap or the host stamped late together.
    usual_bps: Option<u64>,
    /// Since when the link to it can have been busy, and until when it is with what has come, at the fastest rate seen: a bucket that leaks,
    /// so that packets that were polled together and have one stamp count for the time that they took.
    busy_since: u64,
    free_at: f64,
    last: u64,
    /// Until when its own link is busy with what it sent, and when it sent last.
    sends_until: f64,
    sent: u64,
    /// First packets of the latest runs that may have queued, and how many were forgotten before them.
    fronts: VecDeque<Entry>,
    forgotten: u64,
    /// The packet that came last can have entered the queue no earlier than this; a queue keeps the order, so later ones cannot either.
    entered: u64,
    /// The connection whose packet came last, if that packet found the queue empty.
    alone: Option<u32>,
    pace: Pace,
    spread: Spread,
}

/// How fast those who send to a host do so when nothing holds them back: by what comes next behind a packet that did not queue.
#[derive(Default)]
struct Pace {
    packets: u32,
    time: u64,
    bytes: u64,
}

/// The first packet of a run.
struct Entry {
    at: u64,
    /// When it can have entered the queue.
    earliest: u64,
    latest: u64,
}

/// By how much round trips exceeded their connections' shortest, at most, in the present span of [`SPREAD_HOLDS`] and in the one before.
#[derive(Default)]
struct Spread {
    span: u64,
    now: u64,
    before: u64,
}

impl Arrivals {
    /// Of a capture whose links have these rates, where that is known.
    pub fn new(known: Option<LinkRates>) -> Arrivals {
        Arrivals { known, ..Arrivals::default() }
    }

    /// Numbers of both ends of a connection.
    pub fn hosts(&mut self, ends: [(Addr, u16); 2]) -> [u32; 2] {
        ends.map(|(addr, _)| {
            let fresh = self.numbers.len() as u32;
            let number = *self.numbers.entry(addr).or_insert(fresh);
            if number == fresh {
                self.hosts.push(Received { known_bps: self.known.map(|l| l.aggregator.bps()), ..Received::default() });
            }
            number
        })
    }

    /// Most trains of full packets to a host passed at this rate: its link's.
    pub fn usual(&mut self, host: Addr, bps: u64) {
        if let Some(&number) = self.numbers.get(&host) {
            self.hosts[number as usize].usual_bps = Some(bps);
        }
    }

    /// A packet passed on its way to `host`; it can have entered the queue in front of it from `entered` on.
    #[inline]
    pub fn packet(&mut self, host: u32, connection: u32, payload: u32, at: u64, entered: u64) {
        let host = &mut self.hosts[host as usize];
        let transmission = host.transmission(payload);
        let idle = host.idle(transmission, at);
        host.alone = idle.then_some(connection);
        if idle {
            (host.busy_since, host.free_at, host.entered) = (at, at as f64, at);
        } else {
            // A packet passes when the link has sent its last bit: the time since the one before is its own. What came late without a break makes
            // none: hosts and shapers are late by that, the rate is not known exactly, and the errors of many packets would add up to one.
            host.free_at = (host.free_at + transmission).max(at as f64);
        }
        host.entered = host.entered.max(entered.min(at));
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

    /// The earliest that a packet with `payload` that comes to `host` at `at` can have entered the queue in front of it: not before data came without
    /// a break, and not before those that came earlier.
    #[inline]
    pub fn earliest(&self, host: u32, payload: u32, at: u64) -> u64 {
        let host = &self.hosts[host as usize];
        if host.idle(host.transmission(payload), at) { at } else { host.busy_since.max(host.entered) }
    }

    /// The first packet of a run came to `host` at `at`, and entered the queue in front of it from `earliest` on: its number, to ask for
    /// [`Arrivals::latest`]. None if it did not wait.
    #[inline]
    pub fn front(&mut self, host: u32, earliest: u64, at: u64) -> Option<u64> {
        let host = &mut self.hosts[host as usize];
        if earliest >= at {
            return None;
        }
        if host.fronts.len() == FRONTS {
            host.fronts.pop_front();
            host.forgotten += 1;
        }
        host.fronts.push_back(Entry { at, earliest, latest: at });
        Some(host.forgotten + host.fronts.len() as u64 - 1)
    }

    /// The latest that the first packet with that number can have entered the queue, by what is known now; none once it is forgotten.
    #[inline]
    pub fn latest(&self, host: u32, front: u64) -> Option<u64> {
        let host = &self.hosts[host as usize];
        let place = front.checked_sub(host.forgotten)?;
        host.fronts.get(place as usize).map(|e| e.latest)
    }

    /// A packet to `host` that just came had entered the queue by `by`, and the one of its sender before it came at `since`. A queue keeps the
    /// order, so first packets that came in between had entered it by then too.
    #[inline]
    pub fn entered_by(&mut self, host: u32, since: u64, by: u64) {
        for entry in self.hosts[host as usize].fronts.iter_mut().rev().take_while(|e| e.at > since) {
            entry.latest = entry.latest.min(by.max(entry.earliest));
        }
    }

    /// A packet of a connection with so many bytes comes to `host` so long after the one before, both sent without waiting for an acknowledgement. If that
    /// one did not queue and no other came in between, it is how long its sender took.
    #[inline]
    pub fn follows(&mut self, host: u32, connection: u32, bytes: u64, gap: u64) {
        let host = &mut self.hosts[host as usize];
        if host.alone == Some(connection) {
            let pace = &mut host.pace;
            (pace.packets, pace.time, pace.bytes) =
                (pace.packets.saturating_add(1), pace.time + gap, pace.bytes + bytes);
        }
    }

    /// How long senders take for `bytes` on their way to `host`: as its link does, or longer where they were seen to.
    #[inline]
    pub fn sent_in(&self, host: u32, bytes: u64) -> u64 {
        let pace = &self.hosts[host as usize].pace;
        let seen = if pace.packets < FEWEST_PACED { 0.0 } else { pace.time as f64 / pace.bytes.max(1) as f64 };
        self.time_for(host, bytes).max((bytes as f64 * seen) as u64)
    }

    /// How long `bytes` take on the link to `host`, at the fastest rate seen.
    #[inline]
    pub fn time_for(&self, host: u32, bytes: u64) -> u64 {
        (bytes as f64 * self.hosts[host as usize].per_byte()) as u64
    }

    /// How much later a packet with `payload` comes than an empty one that was sent with it: links take longer for it.
    #[inline]
    pub fn drag_ns(&self, host: u32, payload: u32) -> u64 {
        let host = &self.hosts[host as usize];
        let links = match self.known {
            Some(links) if host.is_as_known() => 1.0 + links.aggregator.bps() as f64 / links.servers.bps() as f64,
            _ => LINKS,
        };
        (f64::from(payload) * host.per_byte() * links) as u64
    }

    /// `host` sent a packet with `payload` at `at`, as a tap on it says: how much later than an empty one that was sent alone it comes to its receiver.
    /// It waits for what the host sent before it, and links take longer for its size. A link is taken to be as fast in both directions; 0 while
    /// nothing is known of its rate.
    #[inline]
    pub fn held(&mut self, host: u32, payload: u32, at: u64) -> u64 {
        let drag = self.drag_ns(host, payload);
        let host = &mut self.hosts[host as usize];
        if host.fastest_bps == 0 && host.known_bps.is_none() {
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
        at as f64 > self.free_at.max(self.last as f64) + NO_BREAK * transmission + STAMPS
    }

    /// How long a packet takes on the link to the host, at the fastest rate seen.
    #[inline]
    fn transmission(&self, payload: u32) -> f64 {
        (u64::from(payload) + HEADERS) as f64 * self.per_byte()
    }

    /// Nanoseconds.
    #[inline]
    fn per_byte(&self) -> f64 {
        8.0 / match self.known_bps {
            Some(known) if self.is_as_known() => known as f64 / 1e9,
            _ => {
                let fastest = if self.fastest_bps == 0 { PRESUMED } else { self.fastest_bps as f64 / 1e9 };
                // Trains whose packets were stamped together are no faster than what came in longer than that.
                self.usual_bps.map_or(fastest, |usual| fastest.min(usual as f64 / 1e9))
            }
        }
    }

    /// The rate of its link is known, and nothing came faster.
    #[inline]
    fn is_as_known(&self) -> bool {
        self.known_bps.is_some_and(|known| self.fastest_bps as f64 <= FASTER * known as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Rate;

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
            arrivals.packet(host, 0, payload, at, 0);
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
        let earliest = arrivals.earliest(a, 700, at + 6_016);
        assert!(earliest <= first, "what came at {at} may have waited since {first}, not since {earliest}");
        // Half a packet more than its own time after the one before: the link had nothing to send.
        let pause = at + 12_000 + 9_000;
        assert_eq!(arrivals.earliest(a, 1448, pause), pause);
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

    #[test]
    fn known_rates_say_what_a_packet_takes_before_any_data_came() {
        let known = |servers, aggregator| {
            let rates = LinkRates { servers: Rate::mbps(servers), aggregator: Rate::mbps(aggregator) };
            let mut arrivals = Arrivals::new(Some(rates));
            let [a, _] = arrivals.hosts([(Addr(1), 1), (Addr(2), 2)]);
            (arrivals, a)
        };
        // 1000 bytes take 8 us at 1 Gb/s, which is presumed of both links, 0.8 us at 10 Gb/s and 80 us at 100 Mb/s.
        let (presumed, a, _) = two_hosts();
        assert_eq!(presumed.drag_ns(a, 1000), 16_000);
        let (fast, a) = known(10_000, 10_000);
        assert_eq!(fast.drag_ns(a, 1000), 1_600);
        let (mut narrow, a) = known(10_000, 100);
        assert_eq!(narrow.drag_ns(a, 1000), 80_800);
        assert_eq!(narrow.held(a, 1000, MS), 80_800, "a link of that rate");
        // It is known better than what one busy time shows, 1.05 Gb/s here, unless data came far faster.
        let (mut close, a) = known(750, 750);
        busy(&mut close, a, MS, std::iter::repeat_n(700, 100));
        assert_eq!(close.drag_ns(a, 750), 16_000);
        let (mut other, a) = known(600, 600);
        busy(&mut other, a, MS, std::iter::repeat_n(700, 100));
        assert!(other.drag_ns(a, 1000).abs_diff(15_228) < 40, "{}", other.drag_ns(a, 1000));
    }

    #[test]
    fn senders_that_are_slower_than_the_link_are_not_taken_to_send_at_its_rate() {
        let (mut arrivals, a, _) = two_hosts();
        busy(&mut arrivals, a, MS, std::iter::repeat_n(1448, 40));
        assert_eq!(arrivals.sent_in(a, 14_480), arrivals.time_for(a, 14_480), "no sender was seen alone");
        // One that sends a packet every 30 us to an idle link; its second follows one that did not queue.
        let pair = |arrivals: &mut Arrivals, n: u64, other: bool| {
            let at = (10 + n) * MS;
            arrivals.packet(a, 7, 1448, at, 0);
            if other {
                arrivals.packet(a, 8, 1448, at + 12_000, 0);
            }
            arrivals.follows(a, 7, 1448, 30_000);
        };
        (0..20).for_each(|n| pair(&mut arrivals, n, true));
        assert_eq!(
            arrivals.sent_in(a, 14_480),
            arrivals.time_for(a, 14_480),
            "another came in between, and it may have queued"
        );
        (20..27).for_each(|n| pair(&mut arrivals, n, false));
        assert_eq!(arrivals.sent_in(a, 14_480), arrivals.time_for(a, 14_480), "too few");
        pair(&mut arrivals, 27, false);
        assert_eq!(arrivals.sent_in(a, 14_480), 300_000);
    }

    #[test]
    fn what_came_before_a_packet_entered_the_queue_before_it() {
        let (mut arrivals, a, _) = two_hosts();
        let at = busy(&mut arrivals, a, MS, std::iter::repeat_n(1448, 40));
        let earliest = arrivals.earliest(a, 1448, at + 12_000);
        let early = arrivals.front(a, earliest, at).unwrap();
        let late = arrivals.front(a, earliest, at + 12_000).unwrap();
        // The packet that came at `at` + 24 us had entered 100 us earlier, and the one of its sender before it came at `at`.
        arrivals.entered_by(a, at, at - 76_000);
        assert_eq!((arrivals.latest(a, early), arrivals.latest(a, late)), (Some(at), Some(at - 76_000)));
        // Never before the earliest; and nothing is known any more of what was forgotten.
        arrivals.entered_by(a, at, 0);
        assert_eq!(arrivals.latest(a, late), Some(earliest));
        (0..1_022).for_each(|_| assert!(arrivals.front(a, earliest, at + 12_000).is_some()));
        assert_eq!(arrivals.latest(a, early), Some(at), "one of 1024");
        assert!(arrivals.front(a, earliest, at + 12_000).is_some());
        assert_eq!(arrivals.latest(a, early), None);
        assert_eq!(arrivals.front(a, at, at), None, "it did not wait");
    }

    /// The rate of a link that so many packets of `payload` bytes and 90 around it passed, `gap` ns apart; Mb/s.
    fn rate(packets: u64, payload: u32, gap: u64) -> u64 {
        let (mut arrivals, a, _) = two_hosts();
        (0..packets).for_each(|n| arrivals.packet(a, 0, payload, MS + n * gap, 0));
        arrivals.hosts[a as usize].fastest_bps / 1_000_000
    }

    #[test]
    fn a_rate_is_taken_over_16_kib_and_50_us_without_a_pause_of_200() {
        // 1024 bytes every 8 us, behind the first packet.
        assert_eq!((rate(16, 934, 8_000), rate(17, 934, 8_000)), (0, 1_024));
        assert_eq!((rate(50, 934, 1_000), rate(51, 934, 1_000)), (0, 8_192));
        // 2 x 8192 bytes in 400 us, or each behind a pause.
        assert_eq!((rate(3, 8_102, 200_000), rate(3, 8_102, 200_001)), (327, 0));
    }

    /// 250 bytes take 2 us at 1 Gb/s: 1.5 times that and 2 us after the packet before, the link may have been busy.
    #[test]
    fn a_break_is_longer_than_one_and_a_half_packets_and_2_us() {
        let idle = |after: u64| {
            let (mut arrivals, a, _) = two_hosts();
            arrivals.packet(a, 0, 160, MS, 0);
            arrivals.earliest(a, 160, MS + after) == MS + after
        };
        assert_eq!((idle(5_000), idle(5_001)), (false, true));
    }

    /// 1250 bytes take 10 us. However many pass every 14 us, there is no break; 17 us after the last there may be none, and later there is one. The second
    /// of two that were stamped together took its time after that.
    #[test]
    fn a_link_whose_packets_come_late_by_less_than_half_of_their_time_stays_busy() {
        let since = |times: &[u64], then: u64| {
            let rate = Rate::mbps(1_000);
            let mut arrivals = Arrivals::new(Some(LinkRates { servers: rate, aggregator: rate }));
            let [a, _] = arrivals.hosts([(Addr(1), 1), (Addr(2), 2)]);
            times.iter().for_each(|after| arrivals.packet(a, 0, 1_160, MS + after, 0));
            arrivals.earliest(a, 1_160, MS + then) - MS
        };
        let paced: Vec<u64> = (0..50).map(|n| n * 14_000).collect();
        assert_eq!([703_000, 703_001].map(|then| since(&paced, then)), [0, 703_001]);
        assert_eq!([27_000, 27_001].map(|then| since(&[0, 0], then)), [0, 27_001]);
    }

    /// Forty packets came at 2 Gb/s, stamped late together; what most trains show is 1 Gb/s.
    #[test]
    fn what_most_trains_passed_at_is_the_link_s_rate() {
        let (mut arrivals, a, _) = two_hosts();
        (0..40).for_each(|n| arrivals.packet(a, 0, 1_160, MS + n * 5_000, 0));
        assert_eq!(arrivals.time_for(a, 1_000_000), 4_000_000);
        arrivals.usual(Addr(1), 1_000_000_000);
        assert_eq!(arrivals.time_for(a, 1_000_000), 8_000_000);
        arrivals.usual(Addr(1), 1_000_000_000_000);
        assert_eq!(arrivals.time_for(a, 1_000_000), 4_000_000, "trains of one time stamp");
    }

    #[test]
    fn a_round_trip_speaks_for_its_second_and_the_next() {
        let spread = |at: u64| {
            let (mut arrivals, a, _) = two_hosts();
            arrivals.round_trip(a, 5, 0);
            arrivals.spread(a, at)
        };
        assert_eq!((spread(1_999_999_999), spread(2_000_000_000)), (5, 0));
    }
}
