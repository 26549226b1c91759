//! One TCP connection, followed packet by packet in constant memory.

mod acks;
mod arrival;
mod bursts;
mod clock;
mod clocking;
mod data;
mod finish;
mod handshake;
mod pauses;
mod rtt;
mod run;
mod sequence;
mod writes;

use crate::arrivals::Arrivals;
use crate::decode::{Addr, Segment, flag};
use crate::protocol::{self, Reader};
use crate::rack::{BURST, Spacing};
use crate::{Direction, DirectionStats, Gap, Sink, Train};
pub(crate) use bursts::Cut;
use clock::Clock;
use clocking::Clocking;
use handshake::Handshake;
use rtt::Half;
use run::{PayloadRun, Place};
use sequence::Sequence;
use serde::{Deserialize, Serialize};
use writes::Writes;

/// How late a packet may be and still count as reordered, where neither the IP identification nor a handshake says better; tshark's value.
const REORDERING: u64 = 3_000_000;

/// Segments that any sender sends without waiting for an acknowledgement (RFC 6928).
const INITIAL_WINDOW: u64 = 10;

/// What time stamps take of each packet's payload, with their padding.
const TIMESTAMPS: u32 = 12;
/// Payload beyond this was merged by an offload: not even jumbo frames carry it.
pub(crate) const LARGEST_ON_WIRE: u32 = 9_000;

/// A connection in progress. Directions are numbered: 0 is from `ends[0]` to `ends[1]`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Conn {
    id: u32,
    ends: [(Addr, u16); 2],
    /// The same hosts as [`Arrivals`] numbers them.
    hosts: [u32; 2],
    /// Which of the ends is the client.
    client: usize,
    role_known: bool,
    /// A SYN said it: no other connection knows better.
    role_sure: bool,
    start: u64,
    end: u64,
    handshake: Handshake,
    dirs: [Dir; 2],
    turns: u32,
    request: Option<PayloadRun>,
    run: Option<PayloadRun>,
    writes: Writes,
    reader: Reader,
    /// Data packets that an older connection had too, under other addresses, and the last such.
    translated: (u64, u32),
}

/// What the first packet of a run says about it.
#[derive(Clone, Copy, Default)]
struct Front {
    /// It was sent before its sender had all of the run before.
    overlapped: bool,
    /// Packets before it were lost on their way to the tap.
    lost: bool,
    /// Its number as [`Arrivals`] counts those that may have queued.
    number: Option<u64>,
    /// Its size.
    payload: u32,
    /// When it can have entered the queue in front of its receiver, not before.
    earliest: u64,
    /// How much later it came to its receiver than an empty packet that was sent alone, by what its host sent before it and by its size.
    held: u64,
}

/// One direction: counts, bytes seen, round trips of its data, the train in progress.
#[derive(Default, Serialize, Deserialize)]
struct Dir {
    stats: DirectionStats,
    seq: Sequence,
    /// From the tap to the receiver of this direction's data and back.
    half: Half,
    /// Its sender's.
    clock: Clock,
    clocking: Clocking,
    train: Option<Train>,
    spacing: Spacing,
    bursts: bursts::Bursts,
    /// The burst that ended before the packet of just now.
    #[serde(skip)]
    cut: Option<Cut>,
    /// The packet of just now was sent by a timer.
    #[serde(skip)]
    timer: bool,
    last_data: Option<u64>,
    last_payload: u32,
    /// The packet with the highest byte so far was flagged PSH: with it its sender had sent all that its application had written.
    pushed: bool,
    /// When the peer last acknowledged something new, or opened its window.
    progress: u64,
    /// How much it acknowledged with that.
    acknowledged: u64,
    /// Everything below must be acknowledged before a pause can be the application's: data up to here was being repaired.
    repair: u64,
    /// When it was repaired, by the sender's count more had left than the tap had seen: what comes behind it was lost with it, or after it.
    lost_behind: bool,
    /// What its sender is known to send without an acknowledgement, at least, since it last had a reason to send less; none: it never had one.
    unasked: Option<u64>,
    /// Packets whose bytes had been acknowledged before they were sent again, and how often their receiver said that bytes came twice (D-SACK).
    needless: [u64; 2],
    /// Of the former those that did not cross the acknowledgement of the first copy.
    held_up: u64,
    /// Of `needless` those that followed a change of order by the network.
    reordered: [u64; 2],
    /// The first byte of the run in progress that its receiver missed when it had later ones, and whether it is known to have only come behind these.
    overtaken: Option<(u64, bool)>,
    /// What this direction's sender last announced, for the other direction.
    window: u64,
    window_exact: bool,
    /// A packet without data showed that its sender had sent more than passed the tap since data last did.
    ahead: bool,
    last_ip_id: u16,
    last_seq: u32,
    /// Two packets with different data had one IP identification: its sender does not count.
    unnumbered: bool,
    /// The packet before was empty.
    bare_before: bool,
    /// Empty packets whose identification followed that of the packet before, and the numbers that were left out before such.
    counted: [u32; 2],
    last_ack: u32,
    last_window: u16,
    /// The sequence number before the first byte, by tshark's rule.
    base: Option<u32>,
}

impl Conn {
    /// `server`: its port, where other connections tell it.
    pub fn new(
        id: u32,
        first: &Segment,
        ends: [(Addr, u16); 2],
        server: Option<u16>,
        hosts: [u32; 2],
        at: u64,
    ) -> Conn {
        let from = usize::from((first.src, first.sport) != ends[0]);
        let syn = first.flags & flag::SYN != 0;
        let client = match (syn, first.flags & flag::ACK != 0, server) {
            (true, false, _) => from,
            (true, true, _) => 1 - from,
            (false, _, Some(server)) => usize::from(ends[0].1 == server),
            // Servers have the lower, better known port; between equals, who speaks first asks.
            _ if first.sport == first.dport => from,
            _ => usize::from(ends[1].1 > ends[0].1),
        };
        Conn {
            id,
            ends,
            hosts,
            client,
            role_known: syn,
            role_sure: syn,
            start: at,
            end: at,
            handshake: Handshake::default(),
            dirs: Default::default(),
            turns: 0,
            request: None,
            run: None,
            writes: Writes::default(),
            reader: Reader::default(),
            translated: (0, 0),
        }
    }

    /// Others show that this is the server's port. What was taken for a request that waits was an answer.
    pub fn is_served_at(&mut self, port: u16) {
        if !self.role_sure && self.ends[self.client].1 == port {
            self.request = None;
            self.client = 1 - self.client;
            self.reader = Reader::default();
        }
    }

    /// Which direction a segment belongs to.
    #[inline]
    pub fn direction(&self, s: &Segment) -> usize {
        usize::from((s.src, s.sport) != self.ends[0])
    }

    /// A SYN that does not belong to this connection any more begins another one between the same ports, as tshark decides it: its
    /// number is another than this connection's, or this one is over.
    pub fn is_reused_by(&self, s: &Segment, d: usize) -> bool {
        s.flags & (flag::SYN | flag::ACK) == flag::SYN
            && self.dirs[d]
                .base
                .is_some_and(|base| base != s.seq || self.dirs.iter().any(|d| d.stats.fin + d.stats.rst > 0))
    }

    /// A second copy of a packet.
    pub fn mirrored(&mut self, d: usize, payload: u32) {
        self.dirs[d].stats.mirrored_packets += 1;
        self.dirs[d].stats.mirrored_bytes += u64::from(payload);
    }

    /// Copies of data packets have been seen here.
    pub fn is_mirrored(&self) -> bool {
        self.dirs.iter().any(|d| d.stats.mirrored_bytes > 0)
    }

    /// The sender of direction `d` gives each packet an IP identification of its own, as far as is known.
    #[inline]
    pub fn numbers(&self, d: usize) -> bool {
        !self.dirs[d].unnumbered
    }

    /// The most payload that one packet of direction `d` carries on the wire; what is larger was merged by an offload.
    /// `s` is any packet of the connection.
    #[inline]
    pub fn largest_packet(&self, d: usize, s: &Segment) -> u32 {
        self.told_segment(d, s).unwrap_or(LARGEST_ON_WIRE)
    }

    /// What a full segment of `d` carries, as its receiver offered: its MSS without the time stamps (RFC 6691) that packets like `s` have.
    #[inline]
    fn told_segment(&self, d: usize, s: &Segment) -> Option<u32> {
        let stamps = if s.stamp.is_some() { TIMESTAMPS } else { 0 };
        self.dirs[1 - d].stats.mss_option.map(|mss| u32::from(mss).saturating_sub(stamps).max(1))
    }

    /// The host that sends direction `d`, as [`Arrivals`] numbers it.
    #[inline]
    pub fn host(&self, d: usize) -> u32 {
        self.hosts[d]
    }

    /// A data packet of direction `d` passed: the rate of a train of its packets that it ends, bit/s.
    #[inline]
    pub fn spacing(&mut self, d: usize, payload: u32, at: u64, merged: bool) -> Option<f64> {
        self.dirs[d].spacing.packet(payload, at, merged, BURST)
    }

    /// Both ends use SACK, or the handshake is not in the file: most do.
    #[inline]
    pub fn sacks(&self) -> bool {
        self.handshake.syns == 0 || self.dirs.iter().all(|d| d.stats.sack_option)
    }

    /// The least that the way of direction `d` from the tap to its receiver and back takes.
    #[inline]
    pub fn shortest_way(&self, d: usize) -> u64 {
        self.dirs[d].half.least().unwrap_or(0)
    }

    /// How much of direction `d` is acknowledged.
    #[inline]
    pub fn acknowledged(&self, d: usize) -> u64 {
        self.dirs[d].seq.acked()
    }

    /// How much of direction `d` was sent and is not acknowledged.
    #[inline]
    pub fn in_flight(&self, d: usize) -> u64 {
        self.dirs[d].seq.in_flight()
    }

    /// When its last packet passed, copies left out.
    #[inline]
    pub fn last(&self) -> u64 {
        self.end
    }

    /// How much either side sent that is not acknowledged, where both are in the file.
    pub fn unacknowledged(&self) -> u64 {
        let both = self.dirs.iter().all(|d| d.stats.packets > 0);
        if both { self.in_flight(0) + self.in_flight(1) } else { 0 }
    }

    /// The round trip behind the tap that the last acknowledgement of direction `d` measured.
    #[inline]
    pub fn take_round_trip(&mut self, d: usize) -> Option<u64> {
        self.dirs[d].half.take_fresh()
    }

    /// The burst that the last data packet of direction `d` showed to have ended before it.
    #[inline]
    pub fn take_burst(&mut self, d: usize) -> Option<Cut> {
        self.dirs[d].cut.take()
    }

    /// Whether the last data packet of direction `d` was sent by its sender's timer.
    #[inline]
    pub fn take_timer(&mut self, d: usize) -> bool {
        std::mem::take(&mut self.dirs[d].timer)
    }

    #[inline]
    fn note_burst(&mut self, s: &Segment, d: usize, begins: bool, disturbed: bool) {
        let segment = self.largest_packet(d, s);
        let dir = &mut self.dirs[d];
        if disturbed {
            dir.bursts.disturbed();
            return;
        }
        dir.cut = dir.bursts.data(s.payload, begins, s.flags & flag::PSH != 0, segment);
    }

    /// Follows one segment, of whose payload `stored` is in the file.
    #[inline]
    #[allow(clippy::too_many_arguments)] // what one packet and its surroundings are
    pub fn segment(
        &mut self,
        s: &Segment,
        stored: &[u8],
        d: usize,
        at: u64,
        gap: Gap,
        arrivals: &mut Arrivals,
        sink: &mut dyn Sink,
    ) {
        self.end = at;
        self.count(s, d, at);
        if s.bad {
            return;
        }
        let acks = s.flags & flag::ACK != 0 && s.flags & flag::RST == 0;
        self.tshark_base(s, d);
        if s.flags & flag::SYN != 0 {
            self.syn(s, d, at);
        } else if acks {
            self.handshake_ends(d, at);
        }
        if acks {
            let revealed = self.dirs[1 - d].seq.ack_reveals(s.ack, at);
            if revealed > 0 {
                self.advance(1 - d, revealed, None, Front::default(), sink);
            }
        }
        self.recall_front(arrivals);
        let queued = self.may_have_queued(s, d, at, arrivals);
        if s.payload > 0 {
            self.data(s, stored, d, at, acks, gap, arrivals, sink);
            let entered = self.entered(d, at, arrivals);
            arrivals.packet(self.hosts[1 - d], self.id, s.payload, at, entered);
        } else {
            arrivals.packet(self.hosts[1 - d], self.id, 0, at, 0);
            if s.flags & (flag::SYN | flag::RST) == 0 {
                self.dirs[d].ahead |= self.dirs[d].seq.bare(s.seq);
            }
        }
        if acks && let Some(excess) = self.acknowledge(s, d, at, queued) {
            arrivals.round_trip(self.hosts[d], excess, at);
        }
        self.number(s, d);
    }

    /// Follows the sender's count of its packets.
    #[inline]
    fn number(&mut self, s: &Segment, d: usize) {
        let dir = &mut self.dirs[d];
        if s.ip_id != 0 && dir.last_ip_id != 0 {
            dir.unnumbered |= s.ip_id == dir.last_ip_id && s.payload > 0 && s.seq != dir.last_seq;
            // What follows data is left out: an offload may have merged it, and it took a number for each packet on the wire.
            if s.payload == 0 && dir.bare_before {
                match s.ip_id.wrapping_sub(dir.last_ip_id) {
                    1 => dir.counted[0] += 1,
                    step if step < 64 => {
                        dir.counted[0] += 1;
                        dir.counted[1] += u32::from(step.saturating_sub(1));
                    }
                    _ => {}
                }
            }
        }
        (dir.last_ip_id, dir.last_seq, dir.bare_before) = (s.ip_id, s.seq, s.payload == 0);
    }

    fn count(&mut self, s: &Segment, d: usize, at: u64) {
        let probe = s.payload == 0
            && s.flags & (flag::SYN | flag::FIN | flag::RST) == 0
            && self.dirs[d].seq.is_empty_probe(s.seq);
        let n = &mut self.dirs[d].stats;
        n.packets += 1;
        n.payload_bytes += u64::from(s.payload);
        n.data_packets += u64::from(s.payload > 0);
        n.keepalive_packets += u64::from(probe);
        n.ce_packets += u64::from(s.ce);
        n.ece_packets += u64::from(s.flags & (flag::ECE | flag::SYN) == flag::ECE);
        n.syn += u32::from(s.flags & flag::SYN != 0);
        n.fin += u32::from(s.flags & flag::FIN != 0);
        n.rst += u32::from(s.flags & flag::RST != 0);
        n.largest_segment = n.largest_segment.max(s.payload);
        if s.flags & (flag::FIN | flag::RST) != 0 {
            n.closed_ns.get_or_insert(at);
        }
        n.first_ns.get_or_insert(at);
        n.last_ns = Some(at);
        if s.ce {
            self.slowed(d);
        }
        if s.flags & (flag::ECE | flag::SYN) == flag::ECE {
            self.slowed(1 - d);
        }
    }

    fn tshark_base(&mut self, s: &Segment, d: usize) {
        if self.dirs[d].base.is_none() {
            self.dirs[d].base = Some(if s.flags & flag::SYN != 0 { s.seq } else { s.seq.wrapping_sub(1) });
        }
        if self.dirs[1 - d].base.is_none() && s.flags & flag::ACK != 0 {
            self.dirs[1 - d].base = Some(s.ack.wrapping_sub(1));
        }
    }

    /// What the applications say in a data packet of `d` that begins at `seq`.
    #[inline]
    fn read_messages(&mut self, s: &Segment, stored: &[u8], d: usize, seq: u32, at: u64, sink: &mut dyn Sink) {
        let place = &self.dirs[d].seq;
        let from = place.place_of(seq);
        let over = self.reader.data(protocol::Data {
            side: if d == self.client { protocol::CLIENT } else { protocol::SERVER },
            from,
            to: from + u64::from(s.payload),
            other: self.dirs[1 - d].seq.max(),
            stored,
            at,
            pushed: s.flags & flag::PSH != 0,
            acked: place.acked(),
            turn: self.turns,
            has_all: s.flags & flag::ACK == 0 || self.dirs[1 - d].seq.covers_all(s.ack),
        });
        if let Some(stretch) = over {
            sink.stretch(self.timed(stretch));
        }
    }

    /// The payload of `d` got longer by `bytes`, seen at `at` or known from an acknowledgement.
    #[inline]
    fn advance(&mut self, d: usize, bytes: u64, at: Option<u64>, front: Front, sink: &mut dyn Sink) {
        let to = self.dirs[d].seq.max();
        if self.run.as_ref().is_none_or(|r| r.dir != d) {
            let mut next = PayloadRun::new(d, to - bytes, at, front.overlapped);
            (next.front_lost, next.front, next.first_payload) = (front.lost, front.number, front.payload);
            (next.first_bytes, next.entered, next.entered_by) = (bytes, front.earliest, at.unwrap_or(0));
            if let Some(before) = &self.run {
                let had = self.delivered(before).map(|(had, _)| had);
                next.waited = had.zip(at).map(|(had, at)| at.saturating_sub(had));
                // An acknowledgement of its own says when it had come, with all that held it.
                next.drag += if had == before.acked_at {
                    0
                } else {
                    before
                        .acked_at
                        .zip(had)
                        .map_or(before.held, |(acked, had)| before.held.min(acked.saturating_sub(had)))
                };
            }
            self.end_run(sink);
            match d == self.client {
                true if front.overlapped => self.writes.overlaps(),
                true => self.writes.begin(self.id, self.turns, self.dirs[1 - d].pushed, sink),
                false => {}
            }
            self.dirs[d].half.begins();
            self.run = Some(next);
        }
        if let Some(run) = &mut self.run {
            run.extend(to, at);
            run.held = front.held;
        }
    }

    /// The other side speaks, or the capture is over.
    fn end_run(&mut self, sink: &mut dyn Sink) {
        let Some(mut run) = self.run.take() else { return };
        (run.delivered, run.unsure) = self.delivered(&run).unzip();
        let dir = &mut self.dirs[run.dir];
        if !run.slowed {
            dir.unasked = dir.unasked.map(|window| window.max(run.burst));
        }
        let place = Place { connection: self.id, direction: direction(run.dir, self.client), turn: self.turns };
        run.close(place, sink);
        self.role_known = true;
        if run.dir == self.client {
            self.request = Some(run);
        } else {
            let request = self.request.take();
            self.tell_turn(request.as_ref(), Some(&run), sink);
        }
    }

    fn tell_turn(&mut self, request: Option<&PayloadRun>, response: Option<&PayloadRun>, sink: &mut dyn Sink) {
        let with_seq = |run: Option<&PayloadRun>| run.map(|r| (*r, r.dir));
        let (q, a) = (with_seq(request), with_seq(response));
        let q = q.as_ref().map(|(r, d)| (r, &self.dirs[*d].seq));
        let a = a.as_ref().map(|(r, d)| (r, &self.dirs[*d].seq));
        sink.turn(run::turn(self.id, self.turns, q, a));
        self.turns += 1;
    }

    /// Puts a data packet into its train.
    #[inline]
    fn train(&mut self, d: usize, at: u64, fresh: u64, old: u64, gap: Gap, sink: &mut dyn Sink) {
        let idle = self.dirs[d].last_data.map(|last| at - last);
        let threshold = self.threshold(d, gap);
        let (connection, client, turn) = (self.id, self.client, self.turns);
        let dir = &mut self.dirs[d];
        (dir.last_data, dir.last_payload) = (Some(at), (fresh + old) as u32);
        if let (Some(train), Some(false)) = (&mut dir.train, idle.map(|i| i > threshold)) {
            train.end_ns = at;
            train.packets += 1;
            train.bytes += fresh;
            train.retransmitted_bytes += old;
            train.turns = turn - train.turn + 1;
            return;
        }
        let next = Train {
            connection,
            direction: direction(d, client),
            start_ns: at,
            end_ns: at,
            packets: 1,
            bytes: fresh,
            retransmitted_bytes: old,
            gap_before_ns: idle,
            threshold_ns: threshold,
            turn,
            turns: 1,
        };
        if let Some(done) = dir.train.replace(next) {
            sink.train(done);
        }
    }
}

/// The role of direction `d` when `client` is the end with that number.
fn direction(d: usize, client: usize) -> Direction {
    if d == client { Direction::ToServer } else { Direction::ToClient }
}
