//! Whether a capture is fit to judge a service by: what it lacks, measured before anything is inferred from it.
//!
//! A sampled capture, a tap that drops, a clock that counts ten milliseconds and a tap on one direction all give numbers, and wrong ones. What can
//! be mended is (copies count once, see `copies`); of the rest it is said what the capture cannot be used for.

use crate::Connection;
use Aspect::{Losses, Rack, Sizes, Times};
use serde::Serialize;

/// Share of missing payload, or of packets that the tap dropped, from which losses and queues cannot be told: an incast may lose as little.
const MISSING_SOME: f64 = 0.003;
/// Share of missing payload from which the beginnings and ends of messages are missing too.
const MISSING_MUCH: f64 = 0.25;
/// Share of packets that the tap dropped from which requests are missing or cut.
const DROPPED_REQUESTS: f64 = 0.01;
/// What to do about it.
const LARGER_BUFFER: &str =
    "capture all packets, with a larger buffer and a smaller snaplen (`tcpdump -B 65536 -s 128`)";
/// With fewer data packets a share says nothing.
const FEWEST_PACKETS: u64 = 40;
/// Resolution of time stamps, ns, from which the spacing of packets and a rack's delay do not show.
const COARSE: u64 = 50_000;
/// Resolution of time stamps, ns, from which requests that left together cannot be told from others.
const VERY_COARSE: u64 = 1_000_000;
/// By how much the capture's clock may differ from the hosts'. Crystals differ by 1e-4; a queue of 20 ms over [`LONG`] is 2e-3.
const CLOCK_OFF: f64 = 0.01;
/// How long a connection must last to compare its hosts' clock, ns.
const LONG: u64 = 5_000_000_000;
/// Ticks per second of hosts' time stamps: BSD (2), Windows and old kernels (10, 100), HZ of 250 and 300, Linux (`tcp_clock_ms`), and its
/// microseconds.
const TICK_RATES: [f64; 7] = [2.0, 10.0, 100.0, 250.0, 300.0, 1_000.0, 1e6];
/// Connections of several hosts that agree within [`CLOCK_OFF`] on a rate that none of these is, from which the capture's clock is wrong.
const AGREEING: usize = 4;
/// How near to one of these a rate must be to be meant by it.
const NEAR: f64 = 0.12;
/// Share of acknowledgements that were sent and are not in the file, from which the file was thinned: every second one. Hosts with one count for
/// all their connections leave out up to a third on each, and busy ones number out of order.
const ACKS_MISSING: f64 = 0.45;
/// Data packets for each acknowledgement: an offload that merges packets (GRO) acknowledges 64 KiB, 45 of Ethernet's, at once.
const DATA_PER_ACK: u64 = 200;
/// Data packets for each packet of the other direction, from which requests are no acknowledgements in between.
const DATA_PER_ANSWER: u64 = 4;
/// With fewer acknowledgements in a row their count says nothing.
const FEWEST_ACKS: u64 = 100;
/// Share of payload on connections of which only one direction is in the file.
const ONE_SIDED: f64 = 0.1;
/// Share of packets that were cut or came too late for their place in time.
const SPOILT: f64 = 0.01;
/// Share of data packets that appear under other addresses too.
const TRANSLATED: f64 = 0.1;

/// What a capture can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// Bytes per message.
    Sizes,
    /// When requests and responses began and ended.
    Times,
    /// Which packets were lost.
    Losses,
    /// Rate, delay and buffer of the rack.
    Rack,
}

impl Aspect {
    const ALL: [Aspect; 4] = [Aspect::Sizes, Aspect::Times, Aspect::Losses, Aspect::Rack];

    const fn name(self) -> &'static str {
        match self {
            Aspect::Sizes => "sizes",
            Aspect::Times => "times",
            Aspect::Losses => "losses",
            Aspect::Rack => "the rack",
        }
    }
}

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing was found that spoils it.
    Fit,
    /// Fit for some aspects only.
    Limited,
    /// Fit for none.
    Unfit,
}

/// Why a capture is not fit for something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// A stable name for programs.
    pub kind: &'static str,
    /// What the capture cannot be used for.
    pub lacks: Vec<Aspect>,
    /// A sentence: what was measured, and what to do.
    pub message: String,
}

/// Whether a capture is fit to judge a service by, with what was measured of the capture itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitness {
    /// The verdict.
    pub verdict: Verdict,
    /// A recommendation can rest on it: sizes, times and losses are all to be seen.
    pub advisable: bool,
    /// What it can be used for.
    pub fit_for: Vec<Aspect>,
    /// The verdict and its reasons in one line.
    pub line: String,
    /// One for each thing that is amiss.
    pub reasons: Vec<Reason>,
    /// Share of the payload that was acknowledged or skipped and is not in the file.
    pub missing_share: f64,
    /// Packets that the program that captured states it dropped.
    pub dropped_packets: u64,
    /// All time stamps are multiples of this, ns; none of a capture with too few packets to say.
    pub resolution_ns: Option<u64>,
    /// Seconds of the capture's clock per second of the hosts' own (RFC 7323 time stamps); none where no connection is long enough.
    pub clock_speed: Option<f64>,
    /// Copies of packets that were left out.
    pub copied_packets: u64,
    /// The longest time between a packet and its copy, ns.
    pub copies_apart_ns: u64,
    /// Share of data packets that an offload merged before the tap saw them: their spacing says nothing of the link.
    pub merged_share: f64,
    /// Packets that were sent again, and of them those whose first copy had arrived: they are no losses.
    pub retransmitted_packets: u64,
    /// Of `retransmitted_packets`, those that were not lost.
    pub spurious_packets: u64,
    /// Share of bare acknowledgements that their senders counted and that are not in the file.
    pub missing_acks_share: f64,
    /// Share of the payload on connections of which only one direction is in the file.
    pub one_sided_share: f64,
    /// Share of data packets that appear under other addresses too.
    pub translated_share: f64,
}

/// What is counted of the file on the way.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    /// TCP packets.
    pub packets: u64,
    /// Packets of any kind, and those that the program that captured says it dropped.
    pub in_file: u64,
    pub dropped: u64,
    /// Cut before their headers end.
    pub cut: u64,
    /// Out of their place in time.
    pub late: u64,
    /// Steps back of the capture's clock.
    pub jumps: u64,
    /// The longest step forward that no silence explains, ns.
    pub leap: u64,
    /// Data packets that an offload merged.
    pub merged: u64,
    pub copies: u64,
    pub copies_apart: u64,
    /// Data packets seen under other addresses before.
    pub translated: u64,
}

/// All time stamps are multiples of what is kept here.
#[derive(Clone, Copy, Default)]
pub(crate) struct Resolution {
    first: Option<i64>,
    divisor: u64,
    /// Those that are not the first's.
    stamps: u64,
    /// All of them.
    packets: u64,
}

impl Resolution {
    #[inline]
    pub fn stamp(&mut self, t: i64) {
        let first = *self.first.get_or_insert(t);
        let since = t.abs_diff(first);
        self.stamps += u64::from(since > 0);
        self.packets += 1;
        if self.divisor > 1 && since.is_multiple_of(self.divisor) {
            return;
        }
        let (mut a, mut b) = (self.divisor, since);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        self.divisor = a;
    }

    fn ns(self) -> Option<u64> {
        (self.stamps >= FEWEST_PACKETS).then_some(self.divisor)
    }

    /// There is no clock at all, or it stands where 64 bits of nanoseconds end.
    fn stands(self) -> bool {
        self.packets >= FEWEST_PACKETS && self.stamps == 0
    }
}

/// What one connection shows of the capture, beside its row.
#[derive(Clone, Copy, Default)]
pub(crate) struct Quality {
    /// Per direction: bare acknowledgements in the file, and those that its sender counted and that are not.
    pub acks: [[u32; 2]; 2],
    /// Per direction: ticks of the sender's clock, and the nanoseconds of the capture's that they took.
    pub clocks: [Option<(u32, u64)>; 2],
}

/// Sums over connections.
#[derive(Default)]
pub(crate) struct Measured {
    /// Payload that is in the file, and that is not.
    bytes: [u64; 2],
    data_packets: u64,
    /// Payload in all, and on connections with one direction.
    sided: [u64; 2],
    acks: [u64; 2],
    /// Where one side hardly says more than acknowledgements: data packets of the other, and the bare acknowledgements.
    answered: [u64; 2],
    again: [u64; 2],
    rates: Vec<f64>,
}

impl Measured {
    pub fn add(&mut self, quality: &Quality, c: &Connection) {
        for (side, peer) in [(&c.to_server, &c.to_client), (&c.to_client, &c.to_server)] {
            if peer.packets > 0 && side.data_packets > DATA_PER_ANSWER * peer.packets {
                self.answered[0] += side.data_packets;
                self.answered[1] += peer.packets - peer.data_packets;
            }
            self.again[0] += side.retransmitted_packets + side.refilled_packets;
            self.again[1] += side.spurious_packets;
            self.sided[0] += side.unique_bytes + side.missing_bytes;
            if side.packets > 0 {
                self.bytes[0] += side.unique_bytes;
                self.bytes[1] += side.missing_bytes;
                self.data_packets += side.data_packets;
            }
        }
        if c.to_server.packets == 0 || c.to_client.packets == 0 {
            self.sided[1] += [c.to_server, c.to_client].iter().map(|s| s.unique_bytes + s.missing_bytes).sum::<u64>();
        }
        for [seen, missing] in quality.acks {
            self.acks[0] += u64::from(seen);
            self.acks[1] += u64::from(missing);
        }
        self.clocks(quality);
    }

    /// Ticks per second of the capture, of clocks that were seen for long.
    fn clocks(&mut self, quality: &Quality) {
        let long = quality.clocks.iter().flatten().filter(|&&(_, ns)| ns >= LONG);
        self.rates.extend(long.map(|&(ticks, ns)| f64::from(ticks) * 1e9 / ns as f64));
    }

    pub fn judged(mut self, counted: Counted, resolution: Resolution) -> Fitness {
        let missing = share(self.bytes[1], self.bytes[0] + self.bytes[1]);
        let missing_acks =
            if self.acks[0] < FEWEST_ACKS { 0.0 } else { share(self.acks[1], self.acks[0] + self.acks[1]) };
        let one_sided = share(self.sided[1], self.sided[0]);
        let translated = share(counted.translated, self.data_packets);
        let (clock, odd) = self.clock();
        let stands = resolution.stands();
        let resolution = resolution.ns();
        let enough = self.data_packets >= FEWEST_PACKETS;
        let reasons: Vec<Reason> = [
            payload_missing(missing).filter(|_| enough),
            packets_dropped(counted.dropped, counted.in_file),
            coarse_clock(resolution),
            stopped_clock(stands),
            wrong_clock(clock),
            odd_clock(odd),
            clock_steps(counted.jumps),
            clock_leaps(counted.leap),
            self.acknowledgements_missing(missing_acks, missing),
            one_direction(one_sided).filter(|_| enough),
            translated_copies(translated),
            headers_cut(counted.cut, counted.packets),
            too_late(counted.late, counted.packets),
        ]
        .into_iter()
        .flatten()
        .collect();
        let fit_for: Vec<_> =
            Aspect::ALL.into_iter().filter(|a| !reasons.iter().any(|r| r.lacks.contains(a))).collect();
        let verdict = match fit_for.len() {
            0 => Verdict::Unfit,
            4 => Verdict::Fit,
            _ => Verdict::Limited,
        };
        Fitness {
            verdict,
            advisable: fit_for.starts_with(&[Sizes, Times, Losses]),
            line: line(verdict, &fit_for, &reasons),
            fit_for,
            reasons,
            missing_share: missing,
            dropped_packets: counted.dropped,
            resolution_ns: resolution,
            clock_speed: clock,
            copied_packets: counted.copies,
            copies_apart_ns: counted.copies_apart,
            merged_share: share(counted.merged, self.data_packets),
            retransmitted_packets: self.again[0],
            spurious_packets: self.again[1],
            missing_acks_share: missing_acks,
            one_sided_share: one_sided,
            translated_share: translated,
        }
    }

    /// Receivers acknowledge every 64 KiB at least, and count what they send (IP identification).
    fn acknowledgements_missing(&self, missing_acks: f64, missing: f64) -> Option<Reason> {
        let [data, bare] = self.answered;
        let message = if data > DATA_PER_ACK * (bare + 1) {
            format!(
                "{data} data packets have {bare} acknowledgements, and receivers send one for every 64 KiB at least: capture without a filter on flags \
                 or lengths"
            )
        } else if missing_acks >= ACKS_MISSING && missing < MISSING_MUCH {
            format!(
                "{:.0}% of the acknowledgements that receivers sent, by their own count (IP identification), are not in the file: capture without a \
                 filter on flags or lengths",
                missing_acks * 100.0
            )
        } else {
            return None;
        };
        Some(Reason::new("acknowledgements-missing", &[Losses, Rack], message))
    }

    /// Seconds of the capture per second of the hosts' clocks; and their ticks per second, where that is a rate of none.
    fn clock(&mut self) -> (Option<f64>, Option<f64>) {
        self.rates.sort_by(f64::total_cmp);
        let ratio = |rate: f64| {
            TICK_RATES.into_iter().map(|known| known / rate).find(|ratio: &f64| (ratio - 1.0).abs() <= NEAR)
        };
        let known: Vec<_> = self.rates.iter().filter_map(|&rate| ratio(rate)).collect();
        // Ascending rates of one kind of clock are descending ratios; of two kinds either median will do.
        let speed = known.get(known.len() / 2).copied();
        let odd = self.rates.get(self.rates.len() / 2).copied().filter(|&middle| {
            let agreeing = self.rates.iter().filter(|&rate| (rate / middle - 1.0).abs() <= CLOCK_OFF).count();
            ratio(middle).is_none() && agreeing >= AGREEING.max(self.rates.len() * 3 / 4)
        });
        (speed, odd)
    }
}

/// Of what is there.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Reason {
    fn new(kind: &'static str, lacks: &[Aspect], message: String) -> Reason {
        Reason { kind, lacks: lacks.to_vec(), message }
    }
}

fn payload_missing(missing: f64) -> Option<Reason> {
    let lacks: &[_] = if missing >= MISSING_MUCH { &[Sizes, Times, Losses, Rack] } else { &[Losses, Rack] };
    let message = format!(
        "{:.1}% of the payload is not in the file, though its receivers acknowledged it: the file is a sample, or the tap dropped packets; {LARGER_BUFFER}",
        missing * 100.0
    );
    (missing >= MISSING_SOME).then(|| Reason::new("payload-missing", lacks, message))
}

/// Whole connections may be among them, which nothing else in the file tells of.
fn packets_dropped(dropped: u64, in_file: u64) -> Option<Reason> {
    let lost = share(dropped, dropped.saturating_add(in_file));
    let lacks: &[_] = if lost >= DROPPED_REQUESTS { &[Times, Losses, Rack] } else { &[Losses, Rack] };
    let message = format!(
        "the program that captured states that it dropped {dropped} packets, {:.1}% of all; {LARGER_BUFFER}",
        lost * 100.0
    );
    (lost >= MISSING_SOME).then(|| Reason::new("packets-dropped", lacks, message))
}

fn coarse_clock(resolution: Option<u64>) -> Option<Reason> {
    let ns = resolution.filter(|&ns| ns >= COARSE)?;
    let lacks: &[_] = if ns >= VERY_COARSE { &[Times, Losses, Rack] } else { &[Rack] };
    let message = format!(
        "all time stamps are multiples of {}: capture with a clock of microseconds or better",
        fanin_units::Duration::from_ps(ns.saturating_mul(1_000))
    );
    Some(Reason::new("coarse-clock", lacks, message))
}

fn stopped_clock(stands: bool) -> Option<Reason> {
    let message = "all packets have the same time stamp: the file was rewritten, or the tap has no clock; capture with a clock of microseconds or better";
    stands.then(|| Reason::new("stopped-clock", &[Times, Losses, Rack], message.to_owned()))
}

fn wrong_clock(speed: Option<f64>) -> Option<Reason> {
    let speed = speed.filter(|speed| (speed - 1.0).abs() > CLOCK_OFF)?;
    let message = format!(
        "the capture's clock runs {speed:.3} times as fast as the hosts' own (their TCP time stamps): the file was rewritten, or the tap's clock is wrong; \
         capture on a host or a switch whose clock is right"
    );
    Some(Reason::new("wrong-clock", &[Times, Rack], message))
}

fn odd_clock(ticks: Option<f64>) -> Option<Reason> {
    let message = format!(
        "the hosts' time stamps count {:.0} ticks in a second of the capture, as no system's do: the file was rewritten, or the tap's clock is wrong; \
         capture on a host or a switch whose clock is right",
        ticks?
    );
    Some(Reason::new("wrong-clock", &[Times, Rack], message))
}

fn clock_steps(jumps: u64) -> Option<Reason> {
    let message = format!("the capture's clock went back {jumps} times: stop what sets it while you capture");
    (jumps > 0).then(|| Reason::new("clock-steps", &[Times, Losses, Rack], message))
}

fn clock_leaps(leap: u64) -> Option<Reason> {
    let message = format!(
        "the capture's clock went forward by {} s at once, for which TCP is not silent: stop what sets it while you capture, and join no files of \
         different times",
        leap / 1_000_000_000
    );
    (leap > 0).then(|| Reason::new("clock-steps", &[Times, Losses, Rack], message))
}

fn one_direction(one_sided: f64) -> Option<Reason> {
    let message = format!(
        "{:.0}% of the payload is on connections of which only one direction is in the file: mirror both directions of the port",
        one_sided * 100.0
    );
    (one_sided >= ONE_SIDED).then(|| Reason::new("one-direction", &[Times, Losses, Rack], message))
}

fn translated_copies(translated: f64) -> Option<Reason> {
    let message = format!(
        "{:.0}% of the data packets appear under other addresses too (NAT): capture one interface only",
        translated * 100.0
    );
    (translated >= TRANSLATED).then(|| Reason::new("translated-copies", &[Losses, Rack], message))
}

fn headers_cut(cut: u64, packets: u64) -> Option<Reason> {
    let message = format!("{cut} packets are cut before their headers end: capture with a snaplen of 128 or more");
    let spoilt = share(cut, packets + cut) >= SPOILT;
    spoilt.then(|| Reason::new("headers-cut", &[Sizes, Times, Losses, Rack], message))
}

fn too_late(late: u64, packets: u64) -> Option<Reason> {
    let message = format!("{late} packets are too far from their place in time: sort the file (`reordercap IN OUT`)");
    (share(late, packets) >= SPOILT).then(|| Reason::new("too-late", &[Times, Losses, Rack], message))
}

fn line(verdict: Verdict, fit_for: &[Aspect], reasons: &[Reason]) -> String {
    let names: Vec<_> = fit_for.iter().map(|a| a.name()).collect();
    let begin = match (verdict, names.as_slice()) {
        (Verdict::Fit, _) => return "fit to judge".to_owned(),
        (Verdict::Unfit, _) | (_, []) => "not fit to judge".to_owned(),
        (Verdict::Limited, [one]) => format!("fit for {one} only"),
        (Verdict::Limited, [many @ .., last]) => format!("fit for {} and {last} only", many.join(", ")),
    };
    let why: Vec<_> = reasons.iter().map(|r| r.message.as_str()).collect();
    format!("{begin}: {}", why.join("; "))
}

#[cfg(test)]
mod tests;
