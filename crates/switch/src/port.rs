//! An output port and the link behind it.
//!
//! A FIFO port knows a packet's departure when it accepts it: `start = max(now, free_at)`, `free_at = start + size/rate`,
//! arrival = `free_at + delay`. Queue lengths follow from the ring of packets under way; there is no dequeue event.

use crate::bucket::TokenBucket;
use crate::disciplines::{Admission, Decision, Scheduler, View};
use crate::packet::{Packet, flags};
use crate::prefetch::prefetch;
use crate::random::Stream;
use crate::ring::Ring;
use crate::totals::{Levels, Totals};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;
use fanin_units::{Bytes, QueueLimit, Rate};

/// What became of a packet offered to a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Offer {
    /// The port took it. (A scheduler may give it up at once: then it is among the evicted.)
    pub accepted: bool,
    /// The port marked it CE.
    pub marked: bool,
    /// A scheduler gave up packets, perhaps this one: [`Port::evicted`] hands them over.
    pub evicted: bool,
    /// The link was empty: its first packet reaches the far end then.
    pub head: Option<u64>,
}

impl Offer {
    const DROPPED: Offer = Offer { accepted: false, marked: false, evicted: false, head: None };
}

/// A limit resolved to plain numbers.
#[derive(Clone, Copy, Debug)]
struct Threshold {
    packets: u32,
    bytes: u64,
}

impl Threshold {
    /// No packet is within it.
    const NOTHING: Threshold = Threshold { packets: 0, bytes: 0 };

    fn new(limit: Option<QueueLimit>) -> Threshold {
        match limit {
            None => Threshold { packets: u32::MAX, bytes: u64::MAX },
            Some(QueueLimit::Packets(n)) => Threshold { packets: n, bytes: u64::MAX },
            Some(QueueLimit::Bytes(b)) => Threshold { packets: u32::MAX, bytes: b.get() },
        }
    }
    /// What is within both.
    fn and(self, other: Threshold) -> Threshold {
        Threshold { packets: self.packets.min(other.packets), bytes: self.bytes.min(other.bytes) }
    }
    #[inline]
    fn exceeded_by(self, packets: u32, bytes: u64) -> bool {
        packets > self.packets || bytes > self.bytes
    }
}

/// Who decides about admission and order. Drop-tail and the marking step are every port's own.
#[derive(Debug, Default)]
pub enum Order {
    /// First in, first out.
    #[default]
    Fifo,
    /// First in, first out with a say on admission.
    Admission(Box<dyn Admission>),
    /// Holds the waiting packets and decides their order.
    Scheduler(Box<dyn Scheduler>),
}

/// A packet under way and when it arrives.
#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    arrival: u64,
    packet: Packet,
}

/// What few ports have.
#[derive(Debug, Default)]
struct Special {
    order: Order,
    /// What the scheduler gave up, until the caller has taken it.
    evicted: Vec<Packet>,
    traced: bool,
    changes: Vec<(u64, u32, u64)>,
}

/// An output port with its link.
///
/// The order of the fields matters: with thousands of ports each hop waits for a port's cache lines, and what every packet needs is in
/// the first ones.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Port {
    /// Departed packets on the wire, then the queue; the first queued one may be in transmission.
    ring: Ring<UnderWay>,
    /// Number of the first packet in the ring that has not departed.
    queue: u32,
    /// Packets that a scheduler holds: in the queue, but without a time of departure.
    held: u32,
    /// Bytes in the queue.
    bytes: u64,
    free_at: u64,
    delay: u64,
    /// ps per byte where that is whole, the clock is right and no token bucket shapes the link, else 0.
    ps_per_byte: u64,
    // ---- the next line
    levels: Levels,
    /// Up to here nothing has to be asked about a packet: no mark, no drop, no discipline.
    easy: Threshold,
    /// The next packet's transmission starts no earlier than so long after it was offered: processing in the host.
    pub lag: u64,
    busy: u64,
    // ---- the next line
    wait: u64,
    accepted: u64,
    /// Bytes times the ps at which they left the queue, less bytes times the ps at which they came; it wraps.
    byte_time: u128,
    accepted_bytes: u64,
    max_bytes: u64,
    // ---- and the rest
    limit: Threshold,
    mark: Threshold,
    drops: u64,
    dropped_bytes: u64,
    marks: u64,
    rate: Rate,
    /// What the port's clock adds to the time of a byte, ps / 2^16.
    skew: i64,
    /// An order other than first in, first out, or a record of changes.
    special: Option<Box<Special>>,
    /// What sends in place of a line.
    bucket: Option<Box<TokenBucket>>,
}

impl Port {
    /// A port whose packets arrive `delay_ps` after their last bit has left.
    pub fn new(rate: Rate, delay_ps: u64, limit: Option<QueueLimit>, mark: Option<QueueLimit>, order: Order) -> Port {
        let special = match order {
            Order::Fifo => None,
            order => Some(Box::new(Special { order, ..Special::default() })),
        };
        let (limit, mark) = (Threshold::new(limit), Threshold::new(mark));
        Port {
            ps_per_byte: whole_ps_per_byte(rate),
            free_at: 0,
            delay: delay_ps,
            ring: Ring::default(),
            queue: 0,
            held: 0,
            bytes: 0,
            easy: if special.is_some() { Threshold::NOTHING } else { limit.and(mark) },
            limit,
            mark,
            rate,
            skew: 0,
            lag: 0,
            levels: Levels::default(),
            busy: 0,
            wait: 0,
            byte_time: 0,
            accepted: 0,
            accepted_bytes: 0,
            max_bytes: 0,
            drops: 0,
            dropped_bytes: 0,
            marks: 0,
            special,
            bucket: None,
        }
    }

    /// Gives the port a clock that is off by this part: 50e-6 sends 50 ppm faster than the nominal rate.
    pub fn set_clock_error(&mut self, part: f64) {
        // To first order in `part`, of which the square is nothing.
        // 8e12 / rate is a byte in ps: at 1 Gbps and 50 ppm the skew is -8000 x 50e-6 = -0.4 ps per byte, here -26,214.
        self.skew = (-part * 8e12 / self.rate.bps() as f64 * 65_536.0) as i64;
        let even = self.skew == 0 && self.bucket.is_none();
        self.ps_per_byte = if even { whole_ps_per_byte(self.rate) } else { 0 };
    }

    /// Has a token bucket of so many bytes shape the link; its timer is `latency_ps` late on average.
    pub fn shape(&mut self, burst: u16, latency_ps: u64, stream: Stream) {
        let depth = self.uneven_serialisation(burst);
        self.bucket = Some(Box::new(TokenBucket::new(depth, latency_ps, stream)));
        self.ps_per_byte = 0;
    }

    #[inline]
    fn serialisation(&self, wire: u16) -> u64 {
        if self.ps_per_byte != 0 { u64::from(wire) * self.ps_per_byte } else { self.uneven_serialisation(wire) }
    }

    #[cold]
    fn uneven_serialisation(&self, wire: u16) -> u64 {
        // size/rate, and what the clock adds to each byte.
        let nominal = (Bytes::new(u64::from(wire)) / self.rate).ps();
        nominal.saturating_add_signed((i64::from(wire) * self.skew) >> 16)
    }

    /// When a packet of `time` leaves that the link could begin at `start`.
    #[cold]
    fn uneven_departure(&mut self, start: u64, time: u64) -> u64 {
        self.bucket.as_mut().map_or(start + time, |bucket| bucket.departure(start, time))
    }

    /// Lets everything depart that has by `now`.
    #[inline(always)]
    pub fn advance(&mut self, now: u64) {
        if self.in_ring() == 1 && self.easy.packets != 0 {
            // The only packet: most ports never have two.
            if self.free_at <= now {
                self.queue = self.ring.tail();
                self.bytes = 0;
                self.levels.fall(0, self.free_at);
            }
            return;
        }
        while self.queue != self.ring.tail() {
            let Some(&UnderWay { arrival, packet }) = self.ring.at(self.queue) else { break };
            // A packet leaves the queue with its last bit, and is on the wire for the link's delay.
            let departure = arrival - self.delay;
            if departure > now {
                break;
            }
            self.bytes -= u64::from(packet.bytes);
            self.queue = self.queue.wrapping_add(1);
            self.levels.fall(self.queued_packets(), departure);
            if self.easy.packets == 0 {
                self.note_change(departure);
            }
        }
    }

    /// Writes down the queue's length if changes are recorded.
    #[inline(never)]
    fn note_change(&mut self, now: u64) {
        let change = (now, self.queued_packets(), self.bytes);
        if let Some(special) = self.special.as_mut().filter(|s| s.traced) {
            special.changes.push(change);
        }
    }

    /// Records every change of the queue from now on.
    pub fn record_changes(&mut self) {
        // From now on every packet is asked about, so that each change is seen.
        self.easy = Threshold::NOTHING;
        self.special.get_or_insert_default().traced = true;
    }

    /// Every change of the queue since recording began: (time, packets, bytes); `None` if nothing is recorded.
    pub fn take_changes(&mut self) -> Option<Vec<(u64, u32, u64)>> {
        self.special.as_mut().filter(|s| s.traced).map(|s| mem::take(&mut s.changes))
    }

    /// Queue length now: packets, bytes.
    pub fn queue(&mut self, now: u64) -> (u32, u64) {
        self.advance(now);
        (self.queued_packets(), self.bytes)
    }

    /// Packets in the queue that have a time of departure.
    #[inline]
    fn in_ring(&self) -> u32 {
        self.ring.tail().wrapping_sub(self.queue)
    }

    /// Packets queued as of the last change; call [`Self::advance`] first.
    #[inline]
    pub fn queued_packets(&self) -> u32 {
        self.in_ring() + self.held
    }

    /// Bytes queued as of the last change; call [`Self::advance`] first.
    pub fn queued_bytes(&self) -> u64 {
        self.bytes
    }

    /// Offers a packet at `now`; times must not go backwards. `room` is what a shared buffer leaves this port, in bytes.
    pub fn offer(&mut self, now: u64, packet: Packet, room: u64) -> Offer {
        if room != u64::MAX {
            self.advance(now);
        } else if let Some(head) = self.offer_easily(now, packet) {
            return Offer { accepted: true, marked: false, evicted: false, head };
        }
        self.offer_strictly(now, packet, room)
    }

    /// Offers a packet where no shared buffer has a say. `None`: something is to be asked about it, which [`Self::offer_strictly`] does.
    /// Else the port took it as it is, and says when the link's first packet reaches the far end if the link was empty.
    #[inline(always)]
    pub fn offer_easily(&mut self, now: u64, packet: Packet) -> Option<Option<u64>> {
        self.advance(now);
        let (packets, bytes) = (self.queued_packets(), self.bytes + u64::from(packet.bytes));
        // Below the limit and K, in a FIFO without a discipline, nothing can happen to it.
        if self.easy.exceeded_by(packets + 1, bytes) {
            return None;
        }
        Some(self.accept(now, packet, packets, bytes))
    }

    /// Asks everything about a packet, at the time of the last [`Self::advance`] or [`Self::offer_easily`].
    #[inline(never)]
    pub fn offer_strictly(&mut self, now: u64, mut packet: Packet, room: u64) -> Offer {
        let (before, bytes) = (self.queued_packets(), self.bytes + u64::from(packet.bytes));
        let mut marked = false;
        let scheduled = self.is_scheduled();
        if !scheduled {
            // Drop-tail: with this packet the queue were longer than its limit, or than a shared buffer leaves it.
            if self.limit.exceeded_by(before + 1, bytes) || bytes > room {
                return self.drop(packet.bytes);
            }
            if let Some(Order::Admission(admission)) = self.special.as_mut().map(|s| &mut s.order) {
                let view = View { now, packets: before, bytes: self.bytes, free_at: self.free_at };
                match admission.admit(&packet, view) {
                    Decision::Accept => {}
                    Decision::Mark => marked = true,
                    Decision::Drop => return self.drop(packet.bytes),
                }
            }
        }
        // The step is asked after admission: what a discipline has marked is counted once.
        // DCTCP's step: the queue with this packet exceeds K (RFC 8257 section 3.1). CE that is there is not marked again.
        marked |= packet.has(flags::ECT) && self.mark.exceeded_by(before + 1, bytes);
        marked &= !packet.has(flags::CE);
        if marked {
            packet.flags |= flags::CE;
            self.marks += 1;
        }
        let evicted = scheduled && self.hold(now, packet, room);
        let head = if !scheduled { self.accept(now, packet, before, bytes) } else { None };
        if self.special.is_some() {
            self.note_change(now);
        }
        let head = if scheduled && self.free_at <= now { self.serve(now) } else { head };
        Offer { accepted: true, marked, evicted, head }
    }

    fn drop(&mut self, wire: u16) -> Offer {
        self.drops += 1;
        self.dropped_bytes += u64::from(wire);
        Offer::DROPPED
    }

    /// Takes a packet, with which the queue, of `before` packets, becomes `bytes` long.
    #[inline(always)]
    fn accept(&mut self, now: u64, packet: Packet, before: u32, bytes: u64) -> Option<u64> {
        let wire = u64::from(packet.bytes);
        self.levels.rise(before, now);
        self.bytes = bytes;
        self.max_bytes = self.max_bytes.max(bytes);
        self.accepted += 1;
        self.accepted_bytes += wire;
        let head = self.transmit(now, packet);
        // The packet is in the queue until its last bit has left, at `free_at`.
        self.byte_time = self.byte_time.wrapping_add(u128::from(wire) * u128::from(self.free_at - now));
        head
    }

    /// Hands a packet to the scheduler, and has it give up others until the rest fits; true if it gave up any.
    #[cold]
    fn hold(&mut self, now: u64, packet: Packet, room: u64) -> bool {
        let (packets, bytes, in_ring) = (self.queued_packets(), self.bytes, self.in_ring());
        let Some(Special { order: Order::Scheduler(scheduler), evicted, .. }) = self.special.as_deref_mut() else {
            return false;
        };
        // What is cut may be another packet, and longer than this one.
        let (wire, cut) = (u64::from(packet.bytes), u64::from(scheduler.enqueue(packet)));
        self.held += 1;
        self.bytes = self.bytes + wire - cut;
        self.accepted += 1;
        self.accepted_bytes = self.accepted_bytes + wire - cut;
        // The scheduler gives up packets until all fits, perhaps this one.
        while self.limit.exceeded_by(in_ring + self.held, self.bytes) || self.bytes > room || scheduler.overflows() {
            let Some(victim) = scheduler.evict() else { break };
            let wire = u64::from(victim.bytes);
            self.held -= 1;
            self.bytes -= wire;
            self.accepted -= 1;
            self.accepted_bytes -= wire;
            self.drops += 1;
            self.dropped_bytes += wire;
            evicted.push(victim);
        }
        let evicts = !evicted.is_empty();
        // Each length between before and after was passed, at this instant.
        let after = self.queued_packets();
        // A packet that came and one that was given up cancel out: one of these two ranges is empty.
        (packets..after).for_each(|length| self.levels.rise(length, now));
        (after..packets).rev().for_each(|length| self.levels.fall(length, now));
        self.max_bytes = self.max_bytes.max(self.bytes);
        let [came, left] = [self.bytes.saturating_sub(bytes), bytes.saturating_sub(self.bytes)];
        self.note_bytes(now, came, left);
        evicts
    }

    /// So many bytes came into the queue, so many left it.
    #[inline]
    fn note_bytes(&mut self, now: u64, came: u64, left: u64) {
        // Integral of bytes over time: a byte adds its departure and takes off its arrival.
        let at = |bytes: u64| u128::from(bytes) * u128::from(now);
        self.byte_time = self.byte_time.wrapping_add(at(left)).wrapping_sub(at(came));
    }

    /// A packet that the scheduler gave up for another, in the order in which it gave them up.
    pub fn evicted(&mut self) -> Option<Packet> {
        let evicted = &mut self.special.as_mut()?.evicted;
        if evicted.is_empty() { None } else { Some(evicted.remove(0)) }
    }

    /// The port is free: transmits what its scheduler chooses; the first arrival at the far end if the link was empty.
    pub fn serve(&mut self, now: u64) -> Option<u64> {
        let Some(Order::Scheduler(scheduler)) = self.special.as_mut().map(|s| &mut s.order) else { return None };
        let next = scheduler.dequeue()?;
        self.held -= 1;
        let head = self.transmit(now, next);
        // Its last bit leaves at `free_at`, which may lie ahead: `totals` takes back what is not over yet.
        self.note_bytes(self.free_at, 0, u64::from(next.bytes));
        head
    }

    /// When everything handed to the link so far has left.
    #[inline]
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// The order is a scheduler's.
    pub fn is_scheduled(&self) -> bool {
        self.special.as_ref().is_some_and(|s| matches!(s.order, Order::Scheduler(_)))
    }

    /// Puts a packet behind everything that is being sent.
    #[inline(always)]
    fn transmit(&mut self, now: u64, packet: Packet) -> Option<u64> {
        // start = max(now, free_at), or later where the host still works at the packet.
        let start = self.free_at.max(now + mem::take(&mut self.lag));
        let time = self.serialisation(packet.bytes);
        self.busy += time;
        self.free_at = if self.ps_per_byte != 0 { start + time } else { self.uneven_departure(start, time) };
        self.wait += start - now;
        // arrival = free_at + delay; a link delivers in order, so only the first of a link has to be called.
        let arrival = self.free_at + self.delay;
        let was_empty = self.ring.is_empty();
        self.ring.push(UnderWay { arrival, packet });
        was_empty.then_some(arrival)
    }

    /// The head reaches the far end; also the arrival of the next one.
    #[inline]
    pub fn deliver(&mut self, now: u64) -> Option<(Packet, Option<u64>)> {
        // What arrives has left the queue, which may not have been advanced since.
        if self.queue == self.ring.head() {
            self.advance(now);
            if self.queue == self.ring.head() {
                return None;
            }
        }
        let head = *self.ring.front()?;
        debug_assert_eq!(head.arrival, now, "a link delivers its head when the calendar says so");
        self.ring.drop_front();
        Some((head.packet, self.ring.front().map(|next| next.arrival)))
    }

    /// The packets in the ring: on the wire, in transmission, or with a time of departure.
    pub fn under_way(&self) -> usize {
        self.ring.len()
    }

    /// The packet that was put behind all others, and when it reaches the far end.
    pub fn newest(&self) -> Option<(u64, Packet)> {
        self.ring.back().map(|u| (u.arrival, u.packet))
    }

    /// The earliest that a packet of so many bytes, offered at `now` to the idle port, reaches the far end.
    pub fn earliest_arrival(&self, now: u64, bytes: u16) -> u64 {
        let line = if self.bucket.is_none() { self.serialisation(bytes) } else { 0 };
        now + line + self.delay
    }

    /// Forgets the packets on the wire: whoever has the link's far end knows when they arrive.
    pub fn forget_departed(&mut self, now: u64) {
        self.advance(now);
        self.ring.drop_before(self.queue);
    }

    /// Takes over a packet that a port elsewhere, of the same delay, has put on this link; when it arrives if the link was empty.
    pub fn take_over(&mut self, arrival: u64, packet: Packet) -> Option<u64> {
        // Its last bit left a delay before it arrives.
        self.free_at = arrival - self.delay;
        self.bytes += u64::from(packet.bytes);
        let was_empty = self.ring.is_empty();
        self.ring.push(UnderWay { arrival, packet });
        was_empty.then_some(arrival)
    }

    /// When [`Self::poll`] has something to do: a packet reaches the far end, or the scheduler may choose again.
    pub fn next_event(&self) -> Option<u64> {
        let arrival = self.ring.front().map(|head| head.arrival);
        // The scheduler chooses when the link is free.
        let choice = (self.held > 0).then_some(self.free_at);
        // Of two at one time `poll` delivers first, and is asked again for the choice.
        match (arrival, choice) {
            (Some(a), Some(c)) => Some(a.min(c)),
            (a, c) => a.or(c),
        }
    }

    /// Does what is due at `now`, which must be [`Self::next_event`]'s answer; the packet that reaches the far end, if one does.
    pub fn poll(&mut self, now: u64) -> Option<Packet> {
        if self.next_event() != Some(now) {
            return None;
        }
        if self.ring.front().is_some_and(|head| head.arrival == now) {
            return self.deliver(now).map(|(packet, _)| packet);
        }
        self.advance(now);
        self.serve(now);
        None
    }

    /// The packet at the front of the ring.
    #[inline]
    pub fn head(&self) -> Option<Packet> {
        self.ring.front().map(|u| u.packet)
    }

    /// Starts to load the place of the packet at the front of the ring.
    #[inline]
    pub fn prefetch_head(&self) {
        if let Some(head) = self.ring.front() {
            prefetch(head, 1);
        }
    }

    /// Starts to load what the next packet offered here needs beside the port itself.
    #[inline]
    pub fn prefetch_queue(&self) {
        for number in [self.queue, self.ring.tail()] {
            if let Some(slot) = self.ring.at(number) {
                prefetch(slot, 1);
            }
        }
        self.levels.prefetch(self.queued_packets());
    }

    /// Lets everything depart that has by the end of the run; returns packets still queued or on the wire.
    pub fn finish(&mut self, end: u64) -> usize {
        self.advance(end);
        // A scheduler's waiting packets are in the queue but not in the ring.
        self.ring.len() + self.held as usize
    }

    /// What was counted until `now`, the time of the last call.
    pub fn totals(&self, now: u64) -> Totals {
        // A ring's last `in_ring` packets are the queue: those before them are on the wire.
        let queue = self.ring.iter().skip(self.ring.len() - self.in_ring() as usize);
        let waiting: u128 = queue.map(|u| u128::from(u.packet.bytes) * u128::from(u.arrival - self.delay)).sum();
        Totals {
            accepted: self.accepted,
            accepted_bytes: self.accepted_bytes,
            // Transmission time that lies beyond this was counted when the packets were accepted.
            busy: self.busy - self.free_at.saturating_sub(now).min(self.busy),
            wait: self.wait,
            time_at: self.levels.times(self.queued_packets(), now),
            // So were the departures of what is in the ring's queue; all that is queued is so until now.
            byte_time: self.byte_time.wrapping_sub(waiting).wrapping_add(u128::from(self.bytes) * u128::from(now)),
            max_bytes: self.max_bytes,
            max_packets: self.levels.longest(),
            drops: self.drops,
            dropped_bytes: self.dropped_bytes,
            marks: self.marks,
        }
    }
}

/// How long a byte takes, ps, where that is a whole number; else 0.
fn whole_ps_per_byte(rate: Rate) -> u64 {
    const BYTE: u64 = 8_000_000_000_000;
    // 800 ps at 10 Gbps; at 3 Gbps 2666.67, which `uneven_serialisation` rounds once per packet, not per byte.
    if BYTE.is_multiple_of(rate.bps()) { BYTE / rate.bps() } else { 0 }
}
