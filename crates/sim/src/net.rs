//! The network: ports, paths and the clock. Endpoints send into it; the engine takes arrivals out of it.

use crate::calendar::{Calendar, Place};
use crate::host::machines::Machines;
use crate::host::work::Opening;
use crate::packet::{Packet, flags};
use crate::rng::Stream;
use crate::routing::END;
use crate::store::{self, PacketPool};
use crate::timer::Timer;
use crate::trace::{PacketEvent, Tracer};
use fanin_switch::{Offer, Packet as PacketHandle, Port, SharedBuffer, prefetch};
use fanin_units::Duration;
use std::sync::Arc;

/// From so many ports on they do not fit into a core's nearest caches.
pub const MANY_PORTS: usize = 256;

/// Cache lines of a port that an accepted packet needs.
const PORT_LINES: usize = 3;

/// What the network knows of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowCounters {
    /// Data segments dropped.
    pub drops: u32,
    /// ACKs dropped.
    pub ack_drops: u32,
    /// Data segments marked.
    pub marks: u32,
    /// Port and length of the run of drops that is open, if one is.
    run: Option<(u32, u32)>,
    /// Closed runs by length (1, 2, ..., 16 or more). Boxed: most flows never lose.
    pub runs: Option<Box<[u32; 16]>>,
}

impl FlowCounters {
    /// Counts a drop into the run at `port`; true if that opened the flow's only run.
    fn dropped_at(&mut self, port: u32) -> bool {
        let was_open = self.run.is_some();
        self.run = match self.run {
            Some((p, n)) if p == port => Some((p, n + 1)),
            _ => {
                self.close_run();
                Some((port, 1))
            }
        };
        !was_open
    }

    /// The runs of drops of one flow, from all that happened in several parts of a run, in order.
    pub fn replay(&mut self, events: &[DropEvent]) {
        (self.run, self.runs) = (None, None);
        for &(_, _, port, dropped) in events {
            if dropped {
                self.dropped_at(port);
            } else if self.run.is_some_and(|(at, _)| at == port) {
                self.close_run();
            }
        }
    }

    /// Ends the open run of drops.
    pub fn close_run(&mut self) {
        if let Some((_, n)) = self.run.take() {
            let runs = self.runs.get_or_insert_default();
            runs[(n as usize).min(16) - 1] += 1;
        }
    }
}

/// Where a flow's packets may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathSet {
    /// First path, as an index into `Net::choices` when spraying, else into the path table.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// What one part of a run tells another.
#[derive(Clone, Copy, Debug)]
pub enum Mail {
    /// A packet is on its way over a link.
    Packet {
        /// When it reaches the far end, ps.
        arrival: u64,
        /// The link.
        link: u32,
        /// The link's place in the packet's path.
        path: u32,
        /// As it is on the link.
        packet: Packet,
    },
    /// A message was handed over where its flow begins.
    Message {
        /// Of this flow.
        flow: u32,
        /// Number of the message.
        id: u32,
        /// Its last byte ends there in the stream.
        end: u64,
    },
}

impl Mail {
    /// When it makes something happen there, ps, if it does.
    pub fn arrival(&self) -> Option<u64> {
        match self {
            Mail::Packet { arrival, .. } => Some(*arrival),
            Mail::Message { .. } => None,
        }
    }
}

/// A drop, or the end of a run of drops: when, flow, port, and which of the two.
pub type DropEvent = (Place, u32, u32, bool);

/// What a part of a run knows of the others.
#[derive(Debug)]
pub struct Split {
    /// Part at the far end of each link that leaves this one; [`INSIDE`] for all other links.
    pub beyond: Vec<u32>,
    /// Part in which each flow ends.
    pub sinks: Vec<u32>,
    /// To the other parts.
    pub outgoing: Vec<Vec<Mail>>,
    /// Arrival of the last packet that was handed over, by link.
    pub handed: Vec<u64>,
    /// Drops in this part: a flow's runs of them may extend over several.
    pub drops: Vec<DropEvent>,
}

/// A link that does not leave its part.
pub const INSIDE: u32 = u32::MAX;

/// Ports, links, paths, the calendar.
#[derive(Debug)]
pub struct Net {
    /// Now, ps.
    pub now: u64,
    /// What happens next.
    pub calendar: Calendar,
    /// All ports, by link.
    pub ports: Vec<Port>,
    /// The packets that ports hold.
    pub store: PacketPool,
    /// Links of all paths, each closed by [`END`].
    pub paths: Arc<[u32]>,
    /// Starts of paths, for spraying.
    pub choices: Arc<[u32]>,
    /// Draws a path per packet.
    pub spray: Option<Stream>,
    /// Forward and backward ways per flow, then those of each source of datagrams.
    pub ways: Arc<[[PathSet; 2]]>,
    /// Per flow.
    pub flows: Vec<FlowCounters>,
    /// Per background source.
    pub datagram_drops: Vec<u64>,
    /// Shared buffers.
    pub pools: Vec<SharedBuffer>,
    /// The pool of each port.
    pub pool_of: Vec<Option<u32>>,
    /// No port has a scheduler or a shared buffer, none is traced, hosts cost nothing, and no other part of the run exists: [`Self::offer`] is
    /// shorter.
    pub plain: bool,
    /// Packets accepted by ports.
    pub hops: u64,
    /// Packets that hosts put into the network, and that reached their destination.
    pub created: u64,
    /// See `created`.
    pub arrived: u64,
    /// Flows with an open run of drops: while zero, accepted packets need no look at their flow.
    pub open_runs: u32,
    /// Hosts that open connections.
    pub opening: Opening,
    /// Hosts, where they cost something.
    pub hosts: Option<Box<Machines>>,
    /// What it knows of other parts of the run, if it is one of several.
    pub split: Option<Box<Split>>,
    /// What is being recorded.
    pub trace: Tracer,
}

impl Net {
    /// Sends a packet of a flow on its way: data forward, ACKs back.
    #[inline(always)]
    pub fn send(&mut self, packet: Packet) {
        self.send_by(packet.flow, packet);
    }

    /// Sends a packet on one of the ways in this place of the table.
    #[inline(always)]
    pub fn send_by(&mut self, ways: u32, mut packet: Packet) {
        self.created += 1;
        packet.id = self.created as u32;
        let way = self.ways[ways as usize][usize::from(packet.has(flags::ACK))];
        let path = self.choose(way);
        let label = self.store.insert(packet, path);
        self.offer_first(label);
    }

    /// When the port of the host that sends `flow` will have sent everything it holds, ps.
    pub fn host_port_free_at(&self, flow: u32) -> u64 {
        self.ports[self.first_port(self.ways[flow as usize][0])].free_at()
    }

    /// When the host that sends `flow` gets to opening a connection, ps; each takes it `time`.
    pub fn turn_to_connect(&mut self, flow: u32, time: Duration) -> u64 {
        if time.is_zero() {
            return self.now;
        }
        let port = self.first_port(self.ways[flow as usize][0]);
        self.opening.turn(port, self.now, time)
    }

    /// The port of the sending host: the same whichever of the ways a packet takes.
    #[inline]
    fn first_port(&self, way: PathSet) -> usize {
        let path = if self.spray.is_some() { self.choices[way.first as usize] } else { way.first };
        self.paths[path as usize] as usize
    }

    /// Where the next packet that has these ways goes.
    #[inline]
    fn choose(&mut self, way: PathSet) -> u32 {
        match &mut self.spray {
            None => way.first,
            Some(stream) => self.choices[way.first as usize + stream.below(u64::from(way.count)) as usize],
        }
    }

    /// Sends a packet that the host needs `lag` ps more to process; packets of a host keep their order and its port its rate.
    #[inline(always)]
    pub fn send_late(&mut self, packet: Packet, lag: u64) {
        // By value: a packet whose address is taken would be written twice.
        let lag = match &mut self.hosts {
            None => lag,
            Some(hosts) => lag + hosts.send(packet.flow, packet.has(flags::ACK), self.now),
        };
        if lag > 0 {
            let way = self.ways[packet.flow as usize][usize::from(packet.has(flags::ACK))];
            let port = self.first_port(way);
            self.ports[port].lag = lag;
        }
        self.send(packet);
    }

    /// Offers a packet to the first port of its path.
    #[inline(always)]
    fn offer_first(&mut self, label: PacketHandle) {
        self.offer::<false>(self.paths[store::path(label)], label);
    }

    /// Offers a packet to a port. `PLAIN`: the caller knows that [`Self::plain`] holds.
    #[inline(always)]
    fn offer<const PLAIN: bool>(&mut self, link: u32, label: PacketHandle) {
        if !PLAIN && !self.plain {
            return self.offer_with_all(link, label);
        }
        let Some(head) = self.ports[link as usize].offer_easily(self.now, label) else {
            return self.offer_strictly(link, label);
        };
        self.hops += 1;
        if let Some(time) = head {
            self.calendar.schedule_link(time, link);
        }
        if self.open_runs != 0 {
            self.close_run(link, label);
        }
    }

    /// A port that [`Self::plain`] speaks of is to mark or drop a packet, or to ask its discipline.
    #[inline(never)]
    fn offer_strictly(&mut self, link: u32, label: PacketHandle) {
        let offer = self.ports[link as usize].offer_strictly(self.now, label, u64::MAX);
        if !offer.accepted {
            return self.drop(link, label);
        }
        self.hops += 1;
        if let Some(time) = offer.head {
            self.calendar.schedule_link(time, link);
        }
        if self.open_runs != 0 {
            self.close_run(link, label);
        }
        if offer.marked {
            if self.trace.sees_marks() {
                self.note_accepted(link, label, true);
            } else {
                // The mark is on the label, and the packet is not read before the end of its path.
                self.count_mark(label);
            }
        }
    }

    /// Whether [`Self::plain`] holds.
    pub fn is_plain(&self) -> bool {
        let watched = self.trace.sees_any() || self.split.is_some() || !self.pools.is_empty() || self.hosts.is_some();
        !watched && !self.ports.iter().any(Port::is_scheduled)
    }

    /// A port did not accept a packet.
    #[inline(never)]
    fn drop(&mut self, link: u32, label: PacketHandle) {
        let packet = self.store.take(store::slot(label));
        self.count_drop(link, &packet);
    }

    /// The same with schedulers, shared buffers, traces and other parts of the run.
    #[inline(never)]
    fn offer_with_all(&mut self, link: u32, label: PacketHandle) {
        let easily = match &self.pools[..] {
            [] => self.ports[link as usize].offer_easily(self.now, label),
            _ => None,
        };
        if let Some(head) = easily {
            return self.after_offer(link, label, head, false);
        }
        let room = self.room(link);
        let port = &mut self.ports[link as usize];
        let offer = port.offer(self.now, label, room);
        if !offer.accepted {
            return self.drop(link, label);
        }
        if port.is_scheduled() {
            self.hops += 1;
            return self.offer_scheduled(link, label, offer);
        }
        self.after_offer(link, label, offer.head, offer.marked);
    }

    /// A port has accepted a packet, and knows when it arrives.
    #[inline]
    fn after_offer(&mut self, link: u32, label: PacketHandle, head: Option<u64>, marked: bool) {
        self.hops += 1;
        let crosses = self.crosses(link);
        if let Some(time) = head
            && !crosses
        {
            self.calendar.schedule_link(time, link);
        }
        if self.open_runs != 0 {
            self.close_run(link, label);
        }
        if marked || self.trace.sees(link) {
            self.note_accepted(link, label, marked);
        }
        if crosses {
            self.hand_over(link);
        }
    }

    /// The far end of this link is in another part.
    #[inline]
    fn crosses(&self, link: u32) -> bool {
        self.split.as_ref().is_some_and(|split| split.beyond[link as usize] != INSIDE)
    }

    /// Tells the part at the far end of a link of the packet that was put on it last, once.
    fn hand_over(&mut self, link: u32) {
        let Some(split) = &mut self.split else { return };
        let port = &mut self.ports[link as usize];
        let Some((arrival, label)) = port.newest() else { return };
        if split.handed[link as usize] == arrival {
            return;
        }
        split.handed[link as usize] = arrival;
        port.forget_departed(self.now);
        let packet = Packet { flags: label.flags, wire: label.bytes, ..self.store.take(store::slot(label)) };
        let path = store::path(label) as u32;
        split.outgoing[split.beyond[link as usize] as usize].push(Mail::Packet { arrival, link, path, packet });
    }

    /// A packet from another part is on its way over a link that ends here.
    pub fn take_over(&mut self, arrival: u64, link: u32, path: u32, packet: Packet) {
        let label = self.store.insert(packet, path);
        if let Some(time) = self.ports[link as usize].take_over(arrival, label) {
            self.calendar.schedule_link(time, link);
        }
    }

    /// Tells the part in which a flow ends of a message.
    pub fn announce(&mut self, flow: u32, id: u32, end: u64) {
        if let Some(split) = &mut self.split {
            split.outgoing[split.sinks[flow as usize] as usize].push(Mail::Message { flow, id, end });
        }
    }

    /// What is to be told to each of the parts.
    pub fn outgoing(&mut self) -> &mut [Vec<Mail>] {
        self.split.as_mut().map_or(&mut [], |split| &mut split.outgoing)
    }

    /// What seldom happens to an accepted packet.
    #[inline(never)]
    fn note_accepted(&mut self, link: u32, label: PacketHandle, marked: bool) {
        let packet = self.store.get_mut(store::slot(label));
        if marked {
            packet.flags |= flags::CE;
        }
        let packet = *packet;
        if marked {
            self.count_mark(label);
            self.trace.lost_or_marked(self.now, link, PacketEvent::Marked, &packet);
        }
        if self.trace.sees(link) {
            self.trace.packet(self.now, link, PacketEvent::Accepted, &packet);
        }
    }

    /// What a port that has a scheduler needs beyond that.
    #[cold]
    fn offer_scheduled(&mut self, link: u32, label: PacketHandle, offer: Offer) {
        if offer.marked || self.trace.sees(link) {
            self.note_accepted(link, label, offer.marked);
        }
        while let Some(victim) = self.ports[link as usize].evicted() {
            self.hops -= 1;
            let packet = self.store.take(store::slot(victim));
            self.count_drop(link, &packet);
        }
        self.after_serving(link, offer.head);
    }

    /// A scheduler may have put a packet on the link.
    fn after_serving(&mut self, link: u32, head: Option<u64>) {
        if self.crosses(link) {
            self.hand_over(link);
        } else if let Some(time) = head {
            self.calendar.schedule_link(time, link);
        }
        let free_at = self.ports[link as usize].free_at();
        if free_at > self.now {
            self.calendar.schedule_timer(free_at, Timer::Port(link));
        }
    }

    /// Bytes a shared buffer leaves to `link`'s port.
    fn room(&mut self, link: u32) -> u64 {
        let (ports, now) = (&mut self.ports, self.now);
        match self.pool_of[link as usize] {
            Some(pool) => self.pools[pool as usize].room(link, |port| ports[port as usize].queue(now).1),
            None => u64::MAX,
        }
    }

    /// The host at the end of this link had no room for a packet that had arrived.
    pub fn overrun(&mut self, link: u32, packet: &Packet) {
        self.arrived -= 1;
        self.count_drop(link, packet);
    }

    fn count_drop(&mut self, link: u32, packet: &Packet) {
        if packet.has(flags::DATAGRAM) {
            self.datagram_drops[packet.flow as usize] += 1;
        } else {
            let flow = &mut self.flows[packet.flow as usize];
            if packet.is_pure_ack() {
                flow.ack_drops += 1;
            } else {
                flow.drops += 1;
                if flow.dropped_at(link) {
                    self.open_runs += 1;
                }
                if let Some(split) = &mut self.split {
                    split.drops.push((self.trace.place, packet.flow, link, true));
                }
            }
        }
        self.trace.lost_or_marked(self.now, link, PacketEvent::Dropped, packet);
    }

    fn count_mark(&mut self, label: PacketHandle) {
        if !label.has(flags::DATAGRAM | flags::ACK | flags::EMPTY) {
            self.flows[label.flow as usize].marks += 1;
        }
    }

    /// A packet that gets through ends its flow's run of drops at this port.
    #[inline]
    fn close_run(&mut self, link: u32, label: PacketHandle) {
        if !label.has(flags::DATAGRAM | flags::ACK | flags::EMPTY) {
            let flow = &mut self.flows[label.flow as usize];
            if flow.run.is_some_and(|(port, _)| port == link) {
                flow.close_run();
                self.open_runs -= 1;
                if let Some(split) = &mut self.split {
                    split.drops.push((self.trace.place, label.flow, link, false));
                }
            }
        }
    }

    /// The packet at the head of `link` reaches the far end: returns it if that is its destination, else passes it on. `PLAIN`: the caller
    /// knows that [`Self::plain`] holds.
    #[inline(always)]
    pub fn arrive<const PLAIN: bool>(&mut self, link: u32) -> Option<PacketHandle> {
        let (label, next) = self.ports[link as usize].deliver(self.now)?;
        if let Some(time) = next {
            self.calendar.schedule_link(time, link);
        }
        if !PLAIN && !self.plain && self.trace.sees(link) {
            self.trace.packet(self.now, link, PacketEvent::Delivered, self.store.get(store::slot(label)));
        }
        let label = store::next_hop(label);
        let next = self.paths[store::path(label)];
        if next == END {
            self.arrived += 1;
            return Some(label);
        }
        self.offer::<PLAIN>(next, label);
        None
    }

    /// Takes a packet that has arrived at its destination out of the network.
    #[inline]
    pub fn take(&mut self, label: PacketHandle) -> Packet {
        let mut packet = self.store.take(store::slot(label));
        // Switches have marked or trimmed it.
        packet.flags = label.flags;
        packet.wire = label.bytes;
        packet
    }

    /// Whether ports are too many for a core's nearest caches.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.ports.len() >= MANY_PORTS
    }

    /// Starts to load what the coming events need, a step of each chain of addresses at a time: a port, the head of its ring, where that
    /// packet goes, the port or endpoint there. The packet that reaches its destination soon, if one does: its endpoint is the caller's.
    pub fn look_ahead(&self) -> Option<PacketHandle> {
        if let Some(link) = self.calendar.upcoming(7) {
            prefetch(&self.ports[link as usize], 1);
            self.calendar.prefetch(link);
        }
        if let Some(link) = self.calendar.upcoming(5) {
            self.ports[link as usize].prefetch_head();
        }
        if let Some(label) = self.head(4) {
            prefetch(&self.paths[store::path(label) + 1], 1);
            prefetch(self.store.get(store::slot(label)), 1);
        }
        if let Some(label) = self.head(1)
            && let Some(port) = self.ports.get(self.paths[store::path(label) + 1] as usize)
        {
            port.prefetch_queue();
        }
        let label = self.head(2)?;
        // The end of a path is the number of no port.
        match self.ports.get(self.paths[store::path(label) + 1] as usize) {
            Some(port) => {
                prefetch(port, PORT_LINES);
                None
            }
            None => Some(label),
        }
    }

    /// The packet that arrives `ahead` link events after the next one.
    #[inline]
    fn head(&self, ahead: usize) -> Option<PacketHandle> {
        self.ports[self.calendar.upcoming(ahead)? as usize].head()
    }

    /// A scheduled port has become free.
    pub fn port_free(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        if port.free_at() > self.now {
            return;
        }
        let head = port.serve(self.now);
        self.after_serving(link, head);
    }
}
