//! The hosts of a run that cost something: who serves which packet, and what an application reads when.

use super::clock::Clock;
use super::model::HostModel;
use super::receive::{Arrived, Due, Queue};
use crate::packet::{Packet, flags};
use crate::spec::Spec;
use std::collections::VecDeque;

/// Bytes that [`HostModel::copy_time`] is of.
const KIB: u64 = 1024;

/// An application: one thread, which sleeps until there is something to read.
#[derive(Debug, Default)]
struct Reader {
    /// Messages that it has read once the time (ps) has come.
    reads: VecDeque<(u64, u32)>,
    /// Whose data it reads or has read last.
    connection: u32,
    /// Until when it reads, ps.
    busy_until: u64,
}

/// Where a flow's packets end.
#[derive(Clone, Copy, Debug)]
struct Ends {
    src: u32,
    dst: u32,
    /// Both directions have the same.
    connection: u32,
    /// GRO knows its transport.
    merges: bool,
}

/// All hosts.
#[derive(Debug)]
pub struct Machines {
    model: HostModel,
    seed: u64,
    /// By host, then by processor.
    queues: Vec<Queue>,
    readers: Vec<Reader>,
    flows: Vec<Ends>,
    /// Hosts that datagrams go to, by their source.
    datagrams: Vec<u32>,
}

impl Machines {
    /// Of a plan; `None` if its hosts cost nothing. `is_tcp` of each transport.
    pub fn new(spec: &Spec, is_tcp: &[bool]) -> Option<Box<Machines>> {
        let model = spec.hosts.clone();
        if model.is_ideal() {
            return None;
        }
        let ends = |(number, flow): (u32, &crate::spec::Flow)| Ends {
            src: flow.src.0,
            dst: flow.dst.0,
            connection: flow.reverse.map_or(number, |reverse| number.min(reverse.0)),
            merges: is_tcp[flow.transport as usize],
        };
        let processors = model.processors as usize;
        // A host ticks as its first transport says.
        let clock = |host| spec.transports.first().map_or(Clock::EXACT, |t| Clock::new(&t.stack, spec.seed, host));
        let queues =
            (0..spec.nodes.len()).flat_map(|host| std::iter::repeat_n(clock(host as u64), processors)).map(Queue::new);
        Some(Box::new(Machines {
            seed: spec.seed,
            queues: queues.collect(),
            readers: (0..spec.nodes.len()).map(|_| Reader::default()).collect(),
            flows: (0..).zip(&spec.flows).map(ends).collect(),
            datagrams: spec.cbr.iter().map(|source| source.dst.0).collect(),
            model,
        }))
    }

    /// A packet has come off the last link of its path; the queue whose timer is to be set, and when, ps. An error: its host has no room.
    pub fn arrive(&mut self, packet: Packet, now: u64) -> Result<Option<(u64, u32)>, Packet> {
        let (host, connection, merges) = if packet.has(flags::DATAGRAM) {
            (self.datagrams[packet.flow as usize], packet.flow, false)
        } else {
            let ends = self.flows[packet.flow as usize];
            (if packet.has(flags::ACK) { ends.src } else { ends.dst }, ends.connection, ends.merges)
        };
        let queue = self.queue(host, connection);
        let arrived = Arrived { packet, connection, merges };
        let timer = self.queues[queue as usize].arrive(arrived, &self.model, now)?;
        Ok(timer.map(|at| (at, queue)))
    }

    /// A queue's timer: whether it means something, and the packet that its transport is to get now. [`Self::go_on`] follows.
    pub fn on_timer(&mut self, queue: u32, now: u64) -> Due {
        let due = self.queues[queue as usize].on_timer(&self.model, now);
        if let Due::Now(Some(packet)) = &due
            && !packet.has(flags::ACK | flags::DATAGRAM)
            && packet.len > 0
        {
            self.wake(packet, now);
        }
        due
    }

    /// A queue's processor goes on; when its timer is to be set, ps.
    pub fn go_on(&mut self, queue: u32, now: u64) -> Option<u64> {
        self.queues[queue as usize].go_on(&self.model, now)
    }

    /// A host hands a packet or burst of this flow, or an ACK of it, to its card; how long that takes from `now` on, ps.
    #[inline(never)]
    pub fn send(&mut self, flow: u32, ack: bool, now: u64) -> u64 {
        let ends = self.flows[flow as usize];
        let host = if ack { ends.dst } else { ends.src };
        let queue = self.queue(host, ends.connection) as usize;
        let busy_until = &mut self.queues[queue].busy_until;
        *busy_until = (*busy_until).max(now) + self.model.send_time.ps();
        *busy_until - now
    }

    /// Until when the application that gets this flow reads what has come, ps.
    pub fn reads_until(&self, flow: u32, now: u64) -> u64 {
        self.readers[self.flows[flow as usize].dst as usize].busy_until.max(now)
    }

    /// A message of this flow is complete: when its application has read it, ps, and at which host.
    pub fn read(&mut self, flow: u32, message: u32, now: u64) -> (u64, u32) {
        let host = self.flows[flow as usize].dst;
        let reader = &mut self.readers[host as usize];
        let at = reader.busy_until.max(now);
        reader.reads.push_back((at, message));
        (at, host)
    }

    /// The next message that the application of this host has read by `now`.
    pub fn take_read(&mut self, host: u32, now: u64) -> Option<u32> {
        let reads = &mut self.readers[host as usize].reads;
        reads.front().filter(|read| read.0 <= now)?;
        reads.pop_front().map(|(_, message)| message)
    }

    /// TCP has data for the application. While it reads it finds what comes meanwhile; what has come of another connection takes another read.
    fn wake(&mut self, packet: &Packet, now: u64) {
        let model = &self.model;
        let ends = self.flows[packet.flow as usize];
        let last = ends.dst * model.processors + model.processors - 1;
        let softirqs_until = self.queues[last as usize].busy_until;
        let reader = &mut self.readers[ends.dst as usize];
        let copy = u64::from(packet.len) * model.copy_time.ps() / KIB;
        let (begins, work) = if reader.busy_until <= now {
            (now + model.wakeup.ps(), model.read_time.ps() + copy)
        } else if reader.connection != ends.connection {
            (reader.busy_until, model.read_time.ps() + copy)
        } else {
            (reader.busy_until, copy)
        };
        reader.connection = ends.connection;
        // Softirqs of its processor go first.
        reader.busy_until = begins.max(softirqs_until) + work;
    }

    /// Receive-side scaling: the queue of a connection at a host.
    fn queue(&self, host: u32, connection: u32) -> u32 {
        let processors = self.model.processors;
        // The finalizer of MurmurHash3 spreads numbers that follow each other.
        let mut hash = u64::from(connection) ^ self.seed.rotate_left(32);
        hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        host * processors + ((hash >> 33) % u64::from(processors)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(processors: u32, seed: u64) -> Machines {
        Machines {
            model: HostModel { processors, ..HostModel::ideal() },
            seed,
            queues: Vec::new(),
            readers: Vec::new(),
            flows: Vec::new(),
            datagrams: Vec::new(),
        }
    }

    /// It makes b456bcfc34c2cb2c of 1 and 3abf2a20650683e7 of 2; its last step changes no bit above the 33rd.
    #[test]
    fn a_queue_is_drawn_by_the_finalizer_of_murmurhash3() {
        let machines = machines(1000, 0);
        let queue = |hash: u64| ((hash >> 33) % 1000) as u32;
        let expected = [0xb456_bcfc_34c2_cb2c, 0x3abf_2a20_6506_83e7].map(queue);
        assert_eq!([1, 2].map(|connection| machines.queue(0, connection)), expected);
    }

    #[test]
    fn connections_are_spread_over_the_queues_of_their_own_host() {
        let machines = machines(4, 1);
        for host in [0, 3] {
            let mut taken: Vec<u32> = (0..64).map(|connection| machines.queue(host, connection)).collect();
            taken.sort_unstable();
            taken.dedup();
            assert_eq!(taken, (4 * host..4 * host + 4).collect::<Vec<_>>());
        }
    }
}
