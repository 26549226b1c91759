//! What a packet with payload changes: the counts of its direction, what follows its round trips and windows, and the run that it lengthens.

use super::run::Place;
use super::sequence::{Arrival, Kind};
use super::{Conn, Dir, Front, REORDERING, direction};
use crate::arrivals::Arrivals;
use crate::decode::{Segment, flag};
use crate::sent::Late;
use crate::ticks::SILENT;
use crate::{Gap, Sink};

/// A data packet, as its connection stood before it came.
struct Came {
    /// Its direction, and when it came.
    d: usize,
    at: u64,
    /// One past the highest byte that was sent, and bytes in flight.
    before: u64,
    in_flight: u64,
    /// Since the last data packet of its direction, ns.
    idle: u64,
    /// How long the application paused before it.
    pause: Option<u64>,
    /// When it can have entered the queue in front of its receiver, not before.
    earliest: u64,
    /// It acknowledges.
    acks: bool,
}

impl Dir {
    /// A needless repetition of these bytes follows a change of order: what is sent later and acknowledged sooner makes a sender repeat the earlier, and in that
    /// recovery more (`tcp_rack_detect_loss`).
    pub(super) fn repeats_what_was_overtaken(&mut self, from: u64, to: u64) -> bool {
        let Some((begin, known)) = &mut self.overtaken else { return false };
        // What its receiver had missed had come.
        *known |= from <= *begin && *begin < to;
        *known && *begin < to
    }

    /// Bytes passed the tap behind later ones.
    fn was_overtaken(&mut self, from: u64) {
        self.overtaken = Some((self.overtaken.map_or(from, |(begin, _)| begin.min(from)), true));
    }

    /// Its receiver has later bytes than these; whether they were lost is not known.
    pub(super) fn misses(&mut self, begin: u64) {
        if self.overtaken.is_none_or(|(_, known)| !known) {
            self.overtaken = Some((begin, false));
        }
    }
}

impl Conn {
    #[inline]
    #[allow(clippy::too_many_arguments)] // what one packet and its surroundings are
    pub(super) fn data(
        &mut self,
        s: &Segment,
        stored: &[u8],
        d: usize,
        at: u64,
        acks: bool,
        gap: Gap,
        arrivals: &mut Arrivals,
        sink: &mut dyn Sink,
    ) {
        let seq = if s.flags & flag::SYN != 0 { s.seq.wrapping_add(1) } else { s.seq };
        let spread = arrivals.spread(self.hosts[1 - d], at) + arrivals.spread(self.hosts[d], at);
        let pause = self.application_pause(s, d, at, gap, spread);
        let reordering = self.reordering();
        let dir = &mut self.dirs[d];
        let (before, in_flight) = (dir.seq.max(), dir.seq.in_flight());
        let idle = dir.last_data.map_or(u64::MAX, |last| at - last);
        let arrival = dir.seq.data(seq, s.payload, at, s.ip_id, reordering);
        if let Some(stamp) = s.stamp {
            dir.clock.passed(stamp, at);
        }
        let late = s.stamp.and_then(|stamp| dir.clock.late(stamp, at));
        let earliest = arrivals.earliest(self.hosts[1 - d], s.payload, at);
        let came = Came { d, at, before, in_flight, idle, pause, earliest, acks };
        dir.stats.unique_bytes += arrival.fresh;
        if arrival.kind == Kind::KeepAlive {
            dir.stats.keepalive_packets += 1;
            dir.stats.keepalive_bytes += arrival.old;
            return;
        }
        self.count_data(s, seq, &arrival, &came);
        self.follow(s, &arrival, &came);
        if arrival.extends {
            self.extended(s, &arrival, came, arrivals, sink);
        } else if let Some(run) = self.run.as_mut().filter(|r| r.dir == d) {
            run.repeat(self.dirs[d].seq.place_of(seq), u64::from(s.payload), at);
            run.retransmitted += arrival.old;
        }
        if let Some((run, late)) = self.run.as_mut().filter(|r| r.dir == d && r.start.is_some()).zip(late) {
            let waited = at - earliest;
            run.late = Some(run.late.map_or(Late::new(late, waited), |run| run.with(late, waited)));
        }
        if s.flags & flag::PSH != 0 {
            self.first_write_ended(s, d, seq);
            if arrival.fresh > 0 {
                self.write_ended(s, d, seq, at);
            }
        }
        self.read_messages(s, stored, d, seq, at, sink);
        self.train(d, at, arrival.fresh, arrival.old, gap, sink);
    }

    /// What comes out of order later than that was sent again: half a round trip on either side of the tap, where they are known.
    #[inline]
    fn reordering(&self) -> u64 {
        match (self.dirs[0].half.least(), self.dirs[1].half.least()) {
            (Some(a), Some(b)) => REORDERING.min(a + b),
            _ => REORDERING,
        }
    }

    /// Counts what a data packet repeats, and whether that was needed.
    #[inline]
    fn count_data(&mut self, s: &Segment, seq: u32, arrival: &Arrival, came: &Came) {
        let segment = u64::from(self.largest_packet(came.d, s));
        let dir = &mut self.dirs[came.d];
        let from = dir.seq.place_of(seq);
        let to = from + u64::from(s.payload);
        let acked = to <= dir.seq.acked();
        // What an offload merged was so many packets on the wire.
        let again = arrival.old.div_ceil(segment);
        dir.stats.retransmitted_bytes += arrival.old;
        dir.stats.retransmitted_packets += again;
        dir.needless[0] += if acked { again } else { 0 };
        let crosses = came.at.saturating_sub(dir.progress) <= dir.half.echo().unwrap_or(0);
        dir.held_up += if acked && !crosses { again } else { 0 };
        dir.reordered[0] += if acked && again > 0 && dir.repeats_what_was_overtaken(from, to) { again } else { 0 };
        match arrival.kind {
            Kind::Reordered => {
                dir.stats.out_of_order_packets += 1;
                dir.was_overtaken(from);
            }
            Kind::Refill => dir.stats.refilled_packets += arrival.fresh.div_ceil(segment),
            Kind::Forward | Kind::Again | Kind::KeepAlive => {}
        }
    }

    /// What times round trips, and what tells windows, follows the packet: a repair ends what they had begun to measure.
    #[inline]
    fn follow(&mut self, s: &Segment, arrival: &Arrival, came: &Came) {
        let turnaround = self.dirs[1 - came.d].half.least();
        let skipped = self.skipped(came.d, s.ip_id);
        let dir = &mut self.dirs[came.d];
        if arrival.old > 0 || arrival.kind == Kind::Refill {
            dir.unasked = Some(0);
            if let Some(run) = self.run.as_mut().filter(|r| r.dir == came.d) {
                run.slowed = true;
            }
            dir.timer = came.idle >= SILENT;
            dir.half.cancel();
            dir.bursts.disturbed();
            dir.repair = dir.seq.max();
            dir.lost_behind |= skipped;
            let largest = u64::from(dir.stats.largest_segment);
            dir.clocking.repaired(dir.seq.max(), came.in_flight, largest, came.idle);
        } else if arrival.extends {
            dir.half.sent(dir.seq.max(), came.at);
            dir.clocking.sent(dir.seq.max(), came.at, came.idle, came.in_flight, turnaround);
        }
    }

    /// The packet brought new payload: the run in progress goes on, or another begins.
    #[inline]
    fn extended(&mut self, s: &Segment, arrival: &Arrival, came: Came, arrivals: &mut Arrivals, sink: &mut dyn Sink) {
        let Came { d, at, before, earliest, .. } = came;
        let overlapped = came.acks && !self.dirs[1 - d].seq.covers_all(s.ack);
        self.dirs[d].pushed = s.flags & flag::PSH != 0;
        self.dirs[d].lost_behind = false;
        if let (Some(pause), Some(run)) = (came.pause, self.run.as_mut().filter(|r| r.dir == d)) {
            let place = Place { connection: self.id, direction: direction(d, self.client), turn: self.turns };
            run.split(before, at, pause, place, sink);
        }
        if let Some(run) = self.run.as_mut().filter(|r| r.dir == d) {
            run.goes_on(before, at, arrivals.time_for(self.hosts[1 - d], u64::from(s.payload)));
        }
        let bytes = self.dirs[d].seq.max() - before;
        let ahead = std::mem::take(&mut self.dirs[d].ahead);
        let lost = ahead || bytes > u64::from(s.payload) || self.skipped(d, s.ip_id);
        let held = arrivals.held(self.hosts[d], s.payload, at);
        let begins = self.run.as_ref().is_none_or(|r| r.dir != d);
        if begins {
            self.dirs[d].overtaken = None;
        }
        self.note_burst(s, d, begins, lost || arrival.old > 0);
        let number = if begins { arrivals.front(self.hosts[1 - d], earliest, at) } else { None };
        let front = Front { overlapped, lost, number, payload: s.payload, earliest, held };
        self.advance(d, bytes, Some(at), front, sink);
        let segment = self.largest_packet(d, s);
        if begins && s.payload > segment {
            let dir = &mut self.dirs[d];
            let last = dir.seq.max();
            dir.half.begins_merged(last - u64::from(s.payload - segment), last, at);
        }
    }
}
