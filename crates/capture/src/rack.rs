//! What a capture says about the link to each receiver: how densely its packets follow each other.
//!
//! Packets that queue for one link leave it back to back, so the time between them is what the link takes for one (packet-pair dispersion;
//! Dovrolis, Ramanathan and Moore, "Packet-dispersion techniques and a capacity-estimation methodology", ToN 2004). Single gaps carry the
//! time stamps' jitter; here a sample is a train of [`TRAIN`] full packets, and the capacity is the most frequent rate of such trains.

use crate::conn::Cut;
use crate::counts::{Counts, quantile, sum};
use crate::decode::{Addr, Segment, WIRE_OVERHEAD};
use crate::delivered::{Delivered, Highest, INTERVAL};
use crate::limit::{Answer, Limit, Passed, Room, Sent};
use crate::offload::Offload;
use crate::rhythm::{Gaps, Pairs};
use crate::ticks::{Moments, Ticks};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

/// Packets of one sample. Gaps are one fewer.
const TRAIN: u32 = 8;
/// Packets that a token bucket lets through at the line's rate before it paces: tc's smallest burst is two.
pub(crate) const BURST: u32 = 3;
/// Smaller packets are no evidence: their overhead and the host's time per packet weigh too much.
const FULL: u32 = 1_000;
/// A pause that certainly is none of a link's: 1500 bytes take 1.2 ms at 10 Mb/s.
pub(crate) const PAUSE: u64 = 2_000_000;
/// Around the payload on the wire.
const OVERHEAD: u64 = WIRE_OVERHEAD as u64;
/// After so many more trains their most frequent rate is asked for, while packets pass,
const ASKED_EVERY: u64 = 32;
/// and so large a share of them at one rate makes it the link's.
const MOST: f64 = 0.5;
/// Bins per doubling of the rate: each is 5% wide.
const PER_DOUBLING: f64 = 14.0;
/// The least rate told, bit/s.
const LEAST: f64 = 1e6;
/// Bins: up to 1 Tb/s.
const BINS: usize = 280;
/// A link is at least about as fast as its busiest ten milliseconds, and rarely so much faster that none of these are full.
const PAIRED: Range<f64> = 0.8..2.5;
/// From this share of the trains of single senders on that pass at one rate it is that of their own links,
const OWN_LINKS: f64 = 0.4;
/// unless all together are hardly faster, by less than this: then one sends after another.
const TOGETHER: f64 = 1.2;
/// Receivers followed; more are the clients of a busy server, each with little traffic.
const MOST_RECEIVERS: usize = 256;

/// What packets towards one host say about the link to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// The receiver.
    pub receiver: IpAddr,
    /// Trains of full packets that were measured.
    pub samples: u64,
    /// The most frequent rate of such trains, bit/s on the wire; none without a sample.
    pub rate_bps: Option<u64>,
    /// Share of the samples within 10% of it.
    pub share: f64,
    /// Half of the samples around the median lie between these rates, bit/s.
    pub quartiles_bps: Option<(u64, u64)>,
    /// The mean time between full packets that follow each other at the link's rate, and how unevenly late they are: a line's are exact but for the
    /// time stamps, a token bucket's as late as its timer. None where too few do.
    pub rhythm_ns: Option<(u64, u64)>,
    /// What a full packet is later by, on average, after a burst that passed as one packet, by the length of the burst in segments, from one to
    /// ten. None where too few are.
    pub after_burst_ns: Vec<Option<u64>>,
    /// Trains of full packets of one connection: what its sender's link, or a shaper on it, lets through.
    pub sender_samples: u64,
    /// The most frequent rate of such trains, bit/s on the wire; none without one.
    pub sender_rate_bps: Option<u64>,
    /// Share of them within 10% of it.
    pub sender_share: f64,
    /// Full packets of two senders, one behind the other; none where no distance between them stands out, or senders have slower links of their own.
    pub pairs: Option<Pairs>,
    /// The most that passed in each of a few intervals of ten milliseconds, bit/s on the wire: the link is at least as fast as that, but for what
    /// a tap stamps late.
    pub busiest_bps: u64,
    /// The most that was sent and acknowledged in each of as many intervals of ten milliseconds or more, bit/s on the wire: a tap before the queue
    /// sees packets arrive faster than the link takes them, but what is acknowledged passed it after it was sent.
    pub delivered_bps: u64,
    /// Round trips behind the tap, nanoseconds: the shortest, the median, the 95th and the 99th percentile, the longest. What they grow
    /// by was spent in queues behind the tap; the longest ones also in the hosts.
    pub round_trips_ns: Option<[u64; 5]>,
    /// Data packets that were merged by an offload before the tap saw them: their spacing is no evidence.
    pub merged_packets: u64,
    /// Bursts of its senders.
    pub offload: Offload,
    /// Ticks of their timers.
    pub ticks: Ticks,
    #[serde(skip)]
    passed: Passed,
}

impl Link {
    /// What losses say of the limit of the queue to the receiver, where its link has this rate, bit/s; none where there are too few.
    pub fn limit(&self, bps: u64) -> Option<Limit> {
        self.passed.limit(bps)
    }
}

/// All receivers of a capture.
#[derive(Default)]
pub(crate) struct Links {
    known: HashMap<Addr, usize, foldhash::fast::RandomState>,
    receivers: Vec<Receiver>,
    /// The receiver of the last packet: most have the same.
    last: usize,
    room: Room,
}

struct Receiver {
    addr: Addr,
    together: Spacing,
    /// Who sent the last packet.
    sender: Addr,
    gaps: Gaps,
    /// Of those the ones between packets of two senders.
    pairs: Gaps,
    /// Times from a burst that passed as one packet to the next packet, by segments of the burst. A token bucket that lets ten through holds 15 KB.
    after_bursts: [Gaps; 10],
    /// Where those after the last packet belong; nowhere after a single segment.
    whole: Option<usize>,
    all: Rates,
    senders: Rates,
    passed: Busiest,
    merged: u64,
    acked: Delivered,
    passed_by: Passed,
    offload: Offload,
    timers: Moments,
    /// For how long no data packet had passed before the last one.
    quiet: u64,
    round_trips: Rates,
    shortest: u64,
    longest: u64,
}

/// Full packets that follow each other, as trains of [`TRAIN`].
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Spacing {
    began: u64,
    last: u64,
    bytes: u32,
    /// Packets so far; none: the next one begins a train.
    held: u32,
    /// Packets that are still left out: the burst of a token bucket.
    left_out: u32,
}

impl Spacing {
    /// A packet with so much payload passed. Says the rate of a train that it ends, bit/s on the wire; infinite where all came at once. The first
    /// `burst` packets after a pause are left out.
    #[inline]
    pub fn packet(&mut self, payload: u32, at: u64, merged: bool, burst: u32) -> Option<f64> {
        if merged || payload < FULL {
            (self.held, self.left_out, self.last) = (0, 0, at);
            return None;
        }
        if self.last == 0 || at - self.last > PAUSE {
            (self.held, self.left_out) = (0, burst);
        }
        self.last = at;
        if self.left_out > 0 {
            self.left_out -= 1;
            return None;
        }
        if self.held == 0 {
            (self.began, self.bytes, self.held) = (at, 0, 1);
            return None;
        }
        self.bytes += payload + OVERHEAD as u32;
        self.held += 1;
        if self.held < TRAIN {
            return None;
        }
        let rate = f64::from(self.bytes) * 8e9 / (at - self.began) as f64;
        // The last packet of a train is the first of the next, so that none of the spacing is lost.
        (self.began, self.bytes, self.held) = (at, 0, 1);
        Some(rate)
    }
}

/// How often each rate was seen, in bins 5% wide.
#[derive(Default)]
struct Rates(Counts);

impl Rates {
    #[inline]
    fn count(&mut self, rate: f64) {
        self.0.add(bin(rate), BINS);
    }

    /// The five bins around one.
    fn around(&self, i: usize) -> impl Iterator<Item = (usize, u64)> + Clone {
        self.0.within(i.saturating_sub(2)..i + 3)
    }

    /// The most frequent rate and its share.
    fn mode(&self) -> (Option<u64>, f64) {
        let Some((mode, _)) = self.0.all().max_by_key(|&(i, n)| (sum(self.around(i)), n)) else { return (None, 0.0) };
        // Where the samples of the mode lie: it is five bins wide, and its middle one need not have the most.
        let found = quantile(self.around(mode), 0.5);
        (found.map(middle), sum(self.around(mode)) as f64 / self.0.total as f64)
    }

    fn quantile(&self, share: f64) -> Option<u64> {
        quantile(self.0.all(), share).map(middle)
    }
}

/// The bytes of the busiest intervals.
#[derive(Default)]
struct Busiest {
    interval: u64,
    bytes: u64,
    highest: Highest,
}

impl Busiest {
    #[inline]
    fn count(&mut self, bytes: u64, at: u64) {
        if at / INTERVAL != self.interval {
            self.highest.interval(std::mem::take(&mut self.bytes));
            self.interval = at / INTERVAL;
        }
        self.bytes += bytes;
    }

    /// What each of the busiest intervals reached, bit/s.
    fn rate(mut self) -> u64 {
        self.highest.interval(self.bytes);
        self.highest.reached() * 8 * (1_000_000_000 / INTERVAL)
    }
}

impl Links {
    /// A data packet passed, whose connection puts `segment` bytes into each. Says now and then the rate of its receiver's link, bit/s, where most
    /// trains had one.
    #[inline]
    pub fn data(&mut self, s: &Segment, segment: u32, at: u64) -> Option<u64> {
        self.receiver(s.dst)?.data(s.src, s.payload, segment, at)
    }

    /// Packets of one connection to `receiver` followed each other at this rate, bit/s.
    #[inline]
    pub fn sender(&mut self, receiver: Addr, rate: f64) {
        if let Some(receiver) = self.receiver(receiver) {
            receiver.senders.count(rate);
        }
    }

    /// A data packet entered the queue to its receiver.
    #[inline]
    pub fn passed(&mut self, s: &Segment, sent: Sent, at: u64) {
        let room = self.room.left();
        if let Some(receiver) = self.receiver(s.dst) {
            let more = receiver.passed_by.data(s, sent, at, room);
            self.room.take(more);
        }
    }

    /// What a receiver acknowledged, or had twice.
    #[inline]
    pub fn confirmed(&mut self, s: &Segment, answer: Answer, at: u64) {
        if let Some(receiver) = self.receiver(s.src) {
            receiver.passed_by.acknowledged(s, answer, at);
        }
    }

    /// So many bytes more than before, or fewer, are on their way to `receiver`, in packets of `segment` bytes.
    #[inline]
    pub fn in_flight(&mut self, receiver: Addr, bytes: i64, segment: u32, at: u64) {
        if let Some(receiver) = self.receiver(receiver) {
            receiver.acked.moved(bytes, u64::from(segment), OVERHEAD, at);
        }
    }

    /// A burst to `receiver` ended.
    #[inline]
    pub fn burst(&mut self, receiver: Addr, cut: Cut) {
        if let Some(receiver) = self.receiver(receiver) {
            receiver.offload.burst(cut);
        }
    }

    /// The last data packet to a receiver was sent by its sender's timer.
    #[inline]
    pub fn timer(&mut self, s: &Segment, at: u64) {
        if let Some(receiver) = self.receiver(s.dst) {
            receiver.timers.sent_again(s.src, receiver.quiet, at);
        }
    }

    /// A packet to `receiver` was acknowledged after so many nanoseconds.
    #[inline]
    pub fn round_trip(&mut self, receiver: Addr, ns: u64) {
        if let Some(receiver) = self.receiver(receiver) {
            receiver.round_trip(ns);
        }
    }

    #[inline]
    fn receiver(&mut self, addr: Addr) -> Option<&mut Receiver> {
        if self.receivers.get(self.last).is_none_or(|r| r.addr != addr) {
            self.last = match self.known.get(&addr) {
                Some(&index) => index,
                None if self.receivers.len() == MOST_RECEIVERS => return None,
                None => {
                    self.known.insert(addr, self.receivers.len());
                    self.receivers.push(Receiver::new(addr));
                    self.receivers.len() - 1
                }
            };
        }
        self.receivers.get_mut(self.last)
    }

    /// What was found, in order of first appearance.
    pub fn finish(self) -> Vec<Link> {
        self.receivers.into_iter().map(Receiver::finish).collect()
    }
}

impl Receiver {
    fn new(addr: Addr) -> Receiver {
        Receiver {
            addr,
            together: Spacing::default(),
            sender: Addr::default(),
            gaps: Gaps::default(),
            pairs: Gaps::default(),
            after_bursts: Default::default(),
            whole: None,
            all: Rates::default(),
            senders: Rates::default(),
            passed: Busiest::default(),
            merged: 0,
            acked: Delivered::default(),
            passed_by: Passed::default(),
            offload: Offload::default(),
            timers: Moments::default(),
            quiet: 0,
            round_trips: Rates::default(),
            shortest: u64::MAX,
            longest: 0,
        }
    }

    #[inline]
    fn data(&mut self, sender: Addr, payload: u32, segment: u32, at: u64) -> Option<u64> {
        let wire = u64::from(payload) + OVERHEAD;
        self.passed.count(wire, at);
        self.quiet = at.saturating_sub(self.together.last);
        let merged = payload > segment;
        if merged {
            self.merged += 1;
            self.acked.merged(u64::from(payload), u64::from(segment), OVERHEAD);
        }
        if payload >= FULL && !merged {
            if self.together.held > 0 {
                self.gaps.count(self.quiet);
                if sender != self.sender {
                    self.pairs.count(self.quiet);
                }
            } else if let Some(after) = self.whole.and_then(|place| self.after_bursts.get_mut(place)) {
                after.count(self.quiet);
            }
        }
        self.sender = sender;
        self.whole = merged.then(|| payload.div_ceil(segment.max(1)) as usize - 1);
        let rate = self.together.packet(payload, at, merged, 0)?;
        self.all.count(rate);
        let (mode, share) = if self.all.0.total.is_multiple_of(ASKED_EVERY) { self.all.mode() } else { (None, 0.0) };
        mode.filter(|_| share >= MOST)
    }

    /// Counted in bins 5% wide from one microsecond.
    fn round_trip(&mut self, ns: u64) {
        self.round_trips.count(ns as f64 * LEAST / 1_000.0);
        self.shortest = self.shortest.min(ns);
        self.longest = self.longest.max(ns);
    }

    fn round_trips(&self) -> Option<[u64; 5]> {
        let at = |share: f64| {
            let ns = (self.round_trips.quantile(share)? as f64 / LEAST * 1_000.0) as u64;
            Some(ns.clamp(self.shortest, self.longest))
        };
        Some([self.shortest, at(0.5)?, at(0.95)?, at(0.99)?, self.longest])
    }

    fn finish(self) -> Link {
        let (rate_bps, share) = self.all.mode();
        let (sender_rate_bps, sender_share) = self.senders.mode();
        let round_trips_ns = self.round_trips();
        let busiest_bps = self.passed.rate();
        let likely = PAIRED.start * busiest_bps as f64..PAIRED.end * busiest_bps as f64;
        let together = rate_bps.zip(sender_rate_bps).is_some_and(|(all, one)| all as f64 > TOGETHER * one as f64);
        let own_links = sender_share >= OWN_LINKS && together;
        let pairs = self.pairs.pairs(likely, &self.gaps).filter(|_| !own_links);
        let rhythm_ns = rate_bps.and_then(|bps| self.gaps.rhythm(bps));
        let later = |after: &Gaps| after.longer_than(rhythm_ns?.0, rate_bps?);
        Link {
            round_trips_ns,
            receiver: self.addr.ip(),
            samples: self.all.0.total,
            rate_bps,
            share,
            quartiles_bps: self.all.quantile(0.25).zip(self.all.quantile(0.75)),
            after_burst_ns: self.after_bursts.iter().map(later).collect(),
            rhythm_ns,
            sender_samples: self.senders.0.total,
            sender_rate_bps,
            sender_share,
            pairs,
            busiest_bps,
            delivered_bps: self.acked.rate(),
            merged_packets: self.merged,
            offload: self.offload,
            ticks: self.timers.ticks(),
            passed: self.passed_by.finished(),
        }
    }
}

fn bin(rate: f64) -> usize {
    ((rate.max(LEAST) / LEAST).log2() * PER_DOUBLING).min((BINS - 1) as f64) as usize
}

fn middle(bin: usize) -> u64 {
    (LEAST * ((bin as f64 + 0.5) / PER_DOUBLING).exp2()) as u64
}

#[cfg(test)]
mod tests;
