//! Stochastic fairness queueing (McKenney 1990): flows hashed into buckets that are served in turn; when the buffer is full the
//! longest bucket loses its last packet.

use super::{Build, Context, Discipline, Scheduler};
use crate::packet::{Packet, flags};
use crate::random::mix;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use fanin_units::{Args, Profile, Setting, SettingError};

const BUCKETS: Setting = Setting::parameter("sfq_buckets", 128.0, 1.0, 65_536.0)
    .doc("McKenney 1990", "number of queues flows are hashed into");

/// `sfq`.
pub const DISCIPLINE: Discipline = Discipline {
    name: "sfq",
    title: "Stochastic fairness queueing: hashed queues served packet by packet in turn",
    source: "McKenney 1990",
    params: &[BUCKETS],
    marks: false,
    build: Build::Scheduler(build),
};

fn build(context: &Context, args: &Args) -> Result<Box<dyn Scheduler>, SettingError> {
    let buckets = args.number(&BUCKETS, Profile::Rfc)? as usize;
    let mut random = context.random.clone();
    Ok(Box::new(Sfq { queues: vec![VecDeque::new(); buckets], turns: VecDeque::new(), salt: random.below(u64::MAX) }))
}

#[derive(Debug)]
struct Sfq {
    queues: Vec<VecDeque<Packet>>,
    /// Non-empty queues, the next to serve first.
    turns: VecDeque<usize>,
    /// Makes the hash differ between ports and seeds.
    salt: u64,
}

impl Scheduler for Sfq {
    fn enqueue(&mut self, packet: Packet) -> u16 {
        // A flow's data, its ACKs and datagrams are flows of their own.
        let [ack, datagram] = [flags::ACK, flags::DATAGRAM].map(|flag| u64::from(packet.flags & flag != 0));
        let key = u64::from(packet.flow) << 2 | datagram << 1 | ack;
        let slot = (mix(key ^ self.salt) % self.queues.len() as u64) as usize;
        // `turns` holds each queue that is not empty once: a flow that is alone in its bucket waits one round at most.
        if self.queues[slot].is_empty() {
            self.turns.push_back(slot);
        }
        self.queues[slot].push_back(packet);
        0
    }

    fn evict(&mut self) -> Option<Packet> {
        // The longest queue pays; of equally long ones the lowest-numbered, so that the choice depends on nothing else.
        let longest = (0..self.queues.len()).max_by_key(|&i| (self.queues[i].len(), core::cmp::Reverse(i)))?;
        let dropped = self.queues[longest].pop_back()?;
        if self.queues[longest].is_empty() {
            self.turns.retain(|&t| t != longest);
        }
        Some(dropped)
    }

    fn dequeue(&mut self) -> Option<Packet> {
        // Round robin, a packet a turn.
        let slot = self.turns.pop_front()?;
        let packet = self.queues[slot].pop_front()?;
        if !self.queues[slot].is_empty() {
            self.turns.push_back(slot);
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_a_source_do_not_share_the_queue_of_a_connection() {
        let share = |salt: u64| {
            let mut sfq = Sfq { queues: vec![VecDeque::new(); 1024], turns: VecDeque::new(), salt };
            sfq.enqueue(Packet { flow: 1, flags: flags::DATAGRAM, ..Packet::default() });
            sfq.enqueue(Packet { flow: 33, ..Packet::default() });
            sfq.turns.len() == 1
        };
        // One pair in 1024 has one slot by chance.
        assert!((0..100).filter(|&salt| share(salt)).count() < 3);
    }
}
