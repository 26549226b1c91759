//! An output port and the link behind it.
//!
//! A FIFO port knows a packet's departure when it accepts it: `start = max(now, free_at)`, `free_at = start + size/rate`,
//! arrival = `free_at + delay`. Queue lengths follow from the ring of packets under way; there is no dequeue event.

use crate::packet::{Packet, flags};
use crate::queue::{Admission, Scheduler, Verdict, View};
use crate::store::{Label, Store};
use fanin_units::{Bytes, QueueLimit, Rate};
use std::collections::VecDeque;

/// What became of a packet offered to a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Accepted; `first` tells that the link was empty, so that its head must be scheduled at this time.
    Accepted {
        /// The new head's arrival, if there was none.
        head: Option<u64>,
        /// The port marked it.
        marked: bool,
    },
    /// Dropped.
    Dropped,
}

/// What became of a packet offered to a scheduled port.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The packets that were dropped, perhaps others.
    pub victims: Vec<Packet>,
    /// The link's new head arrives then, if it had none.
    pub head: Option<u64>,
    /// The offered packet was marked.
    pub marked: bool,
    /// The port chooses again at this time.
    pub free_at: u64,
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

/// Rules beyond drop-tail and step marking.
#[derive(Debug)]
pub enum Rules {
    /// None.
    Plain,
    /// First in, first out with a say on admission.
    Admission(Box<dyn Admission>),
    /// Order decided elsewhere; `waiting` counts the packets it holds.
    Scheduler(Box<dyn Scheduler>),
}

/// A packet under way and when it arrives.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    arrival: u64,
    label: Label,
}

/// Totals of a port; the queue's histogram is in time.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub accepted: u64,
    pub accepted_bytes: u64,
    pub busy: u64,
    pub wait: u64,
    /// Time spent with each queue length in packets; the last entry collects everything longer.
    pub time_at: Vec<u64>,
    /// Integral of bytes over time, byte-ps.
    pub byte_time: u128,
    pub max_bytes: u64,
    pub max_packets: u32,
    pub drops: u64,
    pub dropped_bytes: u64,
    pub marks: u64,
}

const HISTOGRAM: usize = 16_384;

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
    rules: Rules,
    rate: Rate,
    changes: Vec<(u64, u32, u64)>,
}

impl Port {
    /// A port whose packets arrive `delay_ps` after their last bit has left.
    pub fn new(rate: Rate, delay_ps: u64, limit: Option<QueueLimit>, mark: Option<QueueLimit>, rules: Rules) -> Port {
        let scheduled = matches!(rules, Rules::Scheduler(_));
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
            rules,
            rate,
            last_change: 0,
            lag: 0,
            totals: Totals::default(),
            scheduled,
            traced: false,
            changes: Vec::new(),
        }
    }

    #[inline]
    fn serialisation(&self, wire: u16) -> u64 {
        if self.ps_per_byte != 0 {
            u64::from(wire) * self.ps_per_byte
        } else {
            (Bytes::new(u64::from(wire)) / self.rate).ps()
        }
    }

    /// Accounts the time at the present queue length up to `now`.
    #[inline]
    fn account(&mut self, now: u64) {
        let dt = now - self.last_change;
        if dt != 0 {
            let slot = (self.packets as usize).min(HISTOGRAM - 1);
            if slot >= self.totals.time_at.len() {
                self.totals.time_at.resize((slot + 1).next_power_of_two(), 0);
            }
            self.totals.time_at[slot] += dt;
            self.totals.byte_time += u128::from(self.bytes) * u128::from(dt);
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
            let wire = u64::from(head.label.wire);
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
        self.traced.then(|| std::mem::take(&mut self.changes))
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

    /// Offers a packet. `room` is what a shared buffer leaves this port, in bytes.
    #[inline]
    pub fn offer(&mut self, now: u64, mut label: Label, room: u64, store: &mut Store) -> Outcome {
        self.advance(now);
        let wire = u64::from(label.wire);
        let (packets, bytes) = (self.packets + 1, self.bytes + wire);
        let mut marked = false;
        if let Rules::Plain = self.rules {
            if self.limit.exceeded_by(packets, bytes) || bytes > room {
                return self.drop(wire);
            }
        } else if let Rules::Admission(admission) = &mut self.rules {
            if self.limit.exceeded_by(packets, bytes) || bytes > room {
                return self.drop(wire);
            }
            let view = View { now, packets: self.packets, bytes: self.bytes, free_at: self.free_at };
            match admission.admit(store.get(label.slot), view) {
                Verdict::Accept => {}
                Verdict::Mark => marked = true,
                Verdict::Drop => return self.drop(wire),
            }
        }
        if self.marks_at_all && label.has(flags::ECT) && self.mark.exceeded_by(packets, bytes) {
            marked = true;
        }
        if marked && !label.has(flags::CE) {
            label.flags |= flags::CE;
            store.get_mut(label.slot).flags = label.flags;
            self.totals.marks += 1;
        } else {
            marked = false;
        }
        self.account(now);
        self.packets = packets;
        self.bytes = bytes;
        self.totals.accepted += 1;
        self.totals.accepted_bytes += wire;
        self.totals.max_packets = self.totals.max_packets.max(packets);
        self.totals.max_bytes = self.totals.max_bytes.max(bytes);
        if self.traced {
            self.changes.push((now, packets, bytes));
        }
        Outcome::Accepted { head: self.transmit(now, label), marked }
    }

    /// Offers a packet to a port whose scheduler decides the order.
    pub fn offer_scheduled(&mut self, now: u64, mut packet: Packet, store: &mut Store) -> Scheduled {
        self.advance(now);
        let wire = u64::from(packet.wire);
        let mut marked = false;
        if self.marks_at_all
            && packet.has(flags::ECT)
            && !packet.has(flags::CE)
            && self.mark.exceeded_by(self.packets + 1, self.bytes + wire)
        {
            packet.flags |= flags::CE;
            self.totals.marks += 1;
            marked = true;
        }
        self.account(now);
        self.packets += 1;
        self.bytes += wire;
        self.totals.accepted += 1;
        self.totals.accepted_bytes += wire;
        let mut victims = Vec::new();
        if let Rules::Scheduler(scheduler) = &mut self.rules {
            scheduler.enqueue(packet);
            while self.limit.exceeded_by(self.packets, self.bytes) {
                let Some(victim) = scheduler.evict() else { break };
                let wire = u64::from(victim.wire);
                self.packets -= 1;
                self.bytes -= wire;
                self.totals.accepted -= 1;
                self.totals.accepted_bytes -= wire;
                self.totals.drops += 1;
                self.totals.dropped_bytes += wire;
                victims.push(victim);
            }
        }
        self.totals.max_packets = self.totals.max_packets.max(self.packets);
        self.totals.max_bytes = self.totals.max_bytes.max(self.bytes);
        if self.traced {
            self.changes.push((now, self.packets, self.bytes));
        }
        let head = if self.free_at <= now { self.serve(now, store) } else { None };
        Scheduled { victims, head, marked, free_at: self.free_at }
    }

    /// The port is free: transmits what its scheduler chooses; the new head's arrival if the link was empty.
    pub fn serve(&mut self, now: u64, store: &mut Store) -> Option<u64> {
        let next = match &mut self.rules {
            Rules::Scheduler(scheduler) => scheduler.dequeue()?,
            Rules::Plain | Rules::Admission(_) => return None,
        };
        self.transmit(now, store.insert(next, next.path))
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
    fn transmit(&mut self, now: u64, label: Label) -> Option<u64> {
        let start = self.free_at.max(now + std::mem::take(&mut self.lag));
        let time = self.serialisation(label.wire);
        self.free_at = start + time;
        self.totals.busy += time;
        self.totals.wait += start - now;
        let arrival = self.free_at + self.delay;
        let was_empty = self.ring.is_empty();
        self.ring.push_back(UnderWay { arrival, label });
        was_empty.then_some(arrival)
    }

    #[inline]
    fn drop(&mut self, wire: u64) -> Outcome {
        self.totals.drops += 1;
        self.totals.dropped_bytes += wire;
        Outcome::Dropped
    }

    /// The head reaches the far end; also the arrival of the next one.
    #[inline]
    pub fn deliver(&mut self, now: u64) -> Option<(Label, Option<u64>)> {
        if self.on_wire == 0 {
            self.advance(now);
        }
        let head = self.ring.pop_front()?;
        debug_assert_eq!(head.arrival, now, "a link delivers its head when the calendar says so");
        self.on_wire -= 1;
        Some((head.label, self.ring.front().map(|p| p.arrival)))
    }

    /// The label at the front of the ring.
    #[inline]
    pub fn head(&self) -> Option<Label> {
        self.ring.front().map(|u| u.label)
    }

    /// Reads a word of each line that the next packet needs.
    #[inline]
    pub fn touch(&self) {
        std::hint::black_box((
            self.ring.get(self.on_wire as usize).map(|u| u.arrival),
            self.free_at,
            self.totals.accepted,
            self.totals.byte_time as u64,
        ));
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
