//! An output port and the link behind it.
//!
//! A FIFO port knows a packet's departure when it accepts it: `start = max(now, free_at)`, `free_at = start + size/rate`,
//! arrival = `free_at + delay`. Queue lengths follow from the ring of packets under way; there is no dequeue event.

use crate::disciplines::{Admission, Decision, Scheduler, View};
use crate::packet::{Packet, flags};
use crate::prefetch::prefetch;
use crate::totals::Totals;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
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
    fn new(limit: Option<QueueLimit>) -> Threshold {
        match limit {
            None => Threshold { packets: u32::MAX, bytes: u64::MAX },
            Some(QueueLimit::Packets(n)) => Threshold { packets: n, bytes: u64::MAX },
            Some(QueueLimit::Bytes(b)) => Threshold { packets: u32::MAX, bytes: b.get() },
        }
    }
    #[inline]
    fn exceeded_by(self, packets: u32, bytes: u64) -> bool {
        packets > self.packets || bytes > self.bytes
    }
}

/// Who decides about admission and order. Drop-tail and the marking step are every port's own.
#[derive(Debug)]
pub enum Order {
    /// First in, first out.
    Fifo,
    /// First in, first out with a say on admission.
    Admission(Box<dyn Admission>),
    /// Holds the waiting packets and decides their order.
    Scheduler(Box<dyn Scheduler>),
}

/// A packet under way and when it arrives.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    arrival: u64,
    packet: Packet,
}

/// An output port with its link.
///
/// The order of the fields matters: with thousands of ports each hop waits for a port's cache lines, and what every packet needs is in
/// the first ones.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Port {
    /// Departed packets on the wire, then the queue; the first queued one may be in transmission.
    ring: VecDeque<UnderWay>,
    /// How many at the front of `ring` have departed.
    on_wire: u32,
    packets: u32,
    bytes: u64,
    delay: u64,
    last_change: u64,
    // ---- the next line
    free_at: u64,
    /// ps per byte where that is whole, else 0.
    ps_per_byte: u64,
    /// The next packet's transmission starts no earlier than so long after it was offered: processing in the host.
    pub lag: u64,
    limit: Threshold,
    mark: Threshold,
    scheduled: bool,
    marks_at_all: bool,
    traced: bool,
    // ---- and the rest
    /// Totals so far.
    pub totals: Totals,
    order: Order,
    /// What the scheduler gave up, until the caller has taken it.
    evicted: Vec<Packet>,
    rate: Rate,
    /// What the port's clock adds to the time of a byte, ps / 2^16.
    skew: i64,
    changes: Vec<(u64, u32, u64)>,
}

impl Port {
    /// A port whose packets arrive `delay_ps` after their last bit has left.
    pub fn new(rate: Rate, delay_ps: u64, limit: Option<QueueLimit>, mark: Option<QueueLimit>, order: Order) -> Port {
        let scheduled = matches!(order, Order::Scheduler(_));
        let exact = 8_000_000_000_000 % rate.bps() == 0;
        Port {
            ps_per_byte: if exact { 8_000_000_000_000 / rate.bps() } else { 0 },
            free_at: 0,
            delay: delay_ps,
            ring: VecDeque::new(),
            on_wire: 0,
            packets: 0,
            bytes: 0,
            limit: Threshold::new(limit),
            mark: Threshold::new(mark),
            marks_at_all: mark.is_some(),
            order,
            evicted: Vec::new(),
            rate,
            skew: 0,
            last_change: 0,
            lag: 0,
            totals: Totals::default(),
            scheduled,
            traced: false,
            changes: Vec::new(),
        }
    }

    /// Gives the port a clock that is off by this part: 50e-6 sends 50 ppm faster than the nominal rate.
    pub fn set_clock_error(&mut self, part: f64) {
        // To first order in `part`, of which the square is nothing.
        self.skew = (-part * 8e12 / self.rate.bps() as f64 * 65_536.0) as i64;
    }

    #[inline]
    fn serialisation(&self, wire: u16) -> u64 {
        let nominal = if self.ps_per_byte != 0 {
            u64::from(wire) * self.ps_per_byte
        } else {
            (Bytes::new(u64::from(wire)) / self.rate).ps()
        };
        nominal.saturating_add_signed((i64::from(wire) * self.skew) >> 16)
    }

    /// Accounts the time at the present queue length up to `now`.
    #[inline]
    fn account(&mut self, now: u64) {
        let dt = now - self.last_change;
        if dt != 0 {
            self.totals.account(dt, self.packets, self.bytes);
            self.last_change = now;
        }
    }

    /// Lets everything depart that has by `now`.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        while let Some(head) = self.ring.get(self.on_wire as usize) {
            let departure = head.arrival - self.delay;
            if departure > now {
                break;
            }
            let wire = u64::from(head.packet.bytes);
            self.account(departure);
            self.on_wire += 1;
            self.packets -= 1;
            self.bytes -= wire;
            if self.traced {
                self.changes.push((departure, self.packets, self.bytes));
            }
        }
    }

    /// Records every change of the queue from now on.
    pub fn record_changes(&mut self) {
        self.traced = true;
    }

    /// Every change of the queue since recording began: (time, packets, bytes); `None` if nothing is recorded.
    pub fn take_changes(&mut self) -> Option<Vec<(u64, u32, u64)>> {
        self.traced.then(|| mem::take(&mut self.changes))
    }

    /// Queue length now: packets, bytes.
    pub fn queue(&mut self, now: u64) -> (u32, u64) {
        self.advance(now);
        (self.packets, self.bytes)
    }

    /// Packets queued as of the last change; call [`Self::advance`] first.
    pub fn queued_packets(&self) -> u32 {
        self.packets
    }

    /// Bytes queued as of the last change; call [`Self::advance`] first.
    pub fn queued_bytes(&self) -> u64 {
        self.bytes
    }

    /// Offers a packet at `now`; times must not go backwards. `room` is what a shared buffer leaves this port, in bytes.
    #[inline]
    pub fn offer(&mut self, now: u64, mut packet: Packet, room: u64) -> Offer {
        self.advance(now);
        let wire = u64::from(packet.bytes);
        let (packets, bytes) = (self.packets + 1, self.bytes + wire);
        let mut marked = false;
        if !self.scheduled {
            if self.limit.exceeded_by(packets, bytes) || bytes > room {
                self.totals.drop(wire);
                return Offer::DROPPED;
            }
            if let Order::Admission(admission) = &mut self.order {
                let view = View { now, packets: self.packets, bytes: self.bytes, free_at: self.free_at };
                match admission.admit(&packet, view) {
                    Decision::Accept => {}
                    Decision::Mark => marked = true,
                    Decision::Drop => {
                        self.totals.drop(wire);
                        return Offer::DROPPED;
                    }
                }
            }
        }
        if self.marks_at_all && packet.has(flags::ECT) && self.mark.exceeded_by(packets, bytes) {
            marked = true;
        }
        marked &= !packet.has(flags::CE);
        if marked {
            packet.flags |= flags::CE;
            self.totals.marks += 1;
        }
        self.account(now);
        self.packets = packets;
        self.bytes = bytes;
        self.totals.accepted += 1;
        self.totals.accepted_bytes += wire;
        let evicted = self.scheduled && self.schedule(packet, room);
        self.totals.max_packets = self.totals.max_packets.max(self.packets);
        self.totals.max_bytes = self.totals.max_bytes.max(self.bytes);
        if self.traced {
            self.changes.push((now, self.packets, self.bytes));
        }
        let head = if !self.scheduled {
            self.transmit(now, packet)
        } else if self.free_at <= now {
            self.serve(now)
        } else {
            None
        };
        Offer { accepted: true, marked, evicted, head }
    }

    /// Hands a packet to the scheduler, and has it give up others until the rest fits; true if it gave up any.
    #[cold]
    fn schedule(&mut self, packet: Packet, room: u64) -> bool {
        let Order::Scheduler(scheduler) = &mut self.order else { return false };
        let cut = u64::from(scheduler.enqueue(packet));
        self.bytes -= cut;
        self.totals.accepted_bytes -= cut;
        while self.limit.exceeded_by(self.packets, self.bytes) || self.bytes > room || scheduler.overflows() {
            let Some(victim) = scheduler.evict() else { break };
            let wire = u64::from(victim.bytes);
            self.packets -= 1;
            self.bytes -= wire;
            self.totals.accepted -= 1;
            self.totals.accepted_bytes -= wire;
            self.totals.drop(wire);
            self.evicted.push(victim);
        }
        !self.evicted.is_empty()
    }

    /// A packet that the scheduler gave up for another, in the order in which it gave them up.
    pub fn evicted(&mut self) -> Option<Packet> {
        if self.evicted.is_empty() { None } else { Some(self.evicted.remove(0)) }
    }

    /// The port is free: transmits what its scheduler chooses; the first arrival at the far end if the link was empty.
    pub fn serve(&mut self, now: u64) -> Option<u64> {
        match &mut self.order {
            Order::Scheduler(scheduler) => {
                let next = scheduler.dequeue()?;
                self.transmit(now, next)
            }
            Order::Fifo | Order::Admission(_) => None,
        }
    }

    /// When everything handed to the link so far has left.
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// The order is a scheduler's.
    pub fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    /// Puts a packet behind everything that is being sent.
    #[inline]
    fn transmit(&mut self, now: u64, packet: Packet) -> Option<u64> {
        let start = self.free_at.max(now + mem::take(&mut self.lag));
        let time = self.serialisation(packet.bytes);
        self.free_at = start + time;
        self.totals.busy += time;
        self.totals.wait += start - now;
        let arrival = self.free_at + self.delay;
        let was_empty = self.ring.is_empty();
        self.ring.push_back(UnderWay { arrival, packet });
        was_empty.then_some(arrival)
    }

    /// The head reaches the far end; also the arrival of the next one.
    #[inline]
    pub fn deliver(&mut self, now: u64) -> Option<(Packet, Option<u64>)> {
        if self.on_wire == 0 {
            self.advance(now);
        }
        let head = self.ring.pop_front()?;
        debug_assert_eq!(head.arrival, now, "a link delivers its head when the calendar says so");
        self.on_wire -= 1;
        Some((head.packet, self.ring.front().map(|p| p.arrival)))
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
        now + self.serialisation(bytes) + self.delay
    }

    /// Forgets the packets on the wire: whoever has the link's far end knows when they arrive.
    pub fn forget_departed(&mut self, now: u64) {
        self.advance(now);
        self.ring.drain(..self.on_wire as usize);
        self.on_wire = 0;
    }

    /// Takes over a packet that a port elsewhere, of the same delay, has put on this link; when it arrives if the link was empty.
    pub fn take_over(&mut self, arrival: u64, packet: Packet) -> Option<u64> {
        self.packets += 1;
        self.bytes += u64::from(packet.bytes);
        let was_empty = self.ring.is_empty();
        self.ring.push_back(UnderWay { arrival, packet });
        was_empty.then_some(arrival)
    }

    /// When [`Self::poll`] has something to do: a packet reaches the far end, or the scheduler may choose again.
    pub fn next_event(&self) -> Option<u64> {
        let arrival = self.ring.front().map(|head| head.arrival);
        // The scheduler holds what is in the queue but not in the ring.
        let waiting = self.scheduled && (self.on_wire + self.packets) as usize > self.ring.len();
        let choice = waiting.then_some(self.free_at);
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

    /// Starts to load what the next packet offered here needs beside the port itself: the packets that may have departed since the last
    /// one, the end of the ring, and the place of the present length in the histogram.
    #[inline]
    pub fn prefetch_queue(&self) {
        if let Some(next) = self.ring.get(self.on_wire as usize) {
            prefetch(next, 1);
        }
        if let Some(last) = self.ring.back() {
            prefetch(last, 1);
        }
        if let Some(time) = self.totals.time_at.get(self.packets as usize) {
            prefetch(time, 1);
        }
    }

    /// Closes the books at the end of the run; returns packets still queued or on the wire.
    pub fn finish(&mut self, end: u64) -> usize {
        self.advance(end);
        self.account(end);
        // Transmission time that lies beyond the end was counted when the packets were accepted.
        self.totals.busy -= self.free_at.saturating_sub(end).min(self.totals.busy);
        // A scheduler's waiting packets are in the count but not in the ring.
        (self.on_wire + self.packets) as usize
    }
}
