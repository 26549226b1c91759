//! A whole switch, for callers without a calendar of their own.

use crate::packet::Packet;
use crate::port::{Offer, Port};
use crate::shared::SharedBuffer;
use alloc::vec::Vec;

/// Ports, and the buffer they may share.
#[derive(Debug)]
pub struct Switch {
    ports: Vec<Port>,
    shared: Option<SharedBuffer>,
}

impl Switch {
    /// Of these ports. `shared` names them by their positions here.
    pub fn new(ports: Vec<Port>, shared: Option<SharedBuffer>) -> Switch {
        Switch { ports, shared }
    }

    /// A packet arrives at `now` (ps) and is to leave by this port. Times must not go backwards.
    ///
    /// What a scheduler gave up for it waits in [`Self::evicted`].
    pub fn offer(&mut self, now: u64, port: usize, packet: Packet) -> Offer {
        let ports = &mut self.ports;
        // A shared buffer's threshold depends on what its ports hold at this instant.
        let room = match &mut self.shared {
            Some(shared) if shared.is_for(port as u32) => shared.room(port as u32, |p| ports[p as usize].queue(now).1),
            _ => u64::MAX,
        };
        self.ports[port].offer(now, packet, room)
    }

    /// A packet that the scheduler of this port gave up for another.
    pub fn evicted(&mut self, port: usize) -> Option<Packet> {
        self.ports[port].evicted()
    }

    /// When [`Self::poll`] has something to do next, ps.
    pub fn next_event(&self) -> Option<u64> {
        self.ports.iter().filter_map(Port::next_event).min()
    }

    /// A packet that has left by `now`, and its port. Call it until there is none.
    pub fn poll(&mut self, now: u64) -> Option<(usize, Packet)> {
        let due = |port: &Port| port.next_event().filter(|&at| at <= now);
        // A scheduler's choice is an event without a packet.
        while let Some((at, index)) = self.ports.iter().enumerate().filter_map(|(i, p)| due(p).map(|at| (at, i))).min()
        {
            if let Some(packet) = self.ports[index].poll(at) {
                return Some((index, packet));
            }
        }
        None
    }

    /// A port, to read its totals.
    pub fn port(&self, port: usize) -> &Port {
        &self.ports[port]
    }
}
