//! Every packet under way, in one place. Ports pass on 16 bytes, so a packet is written once and read once however many hops it takes:
//! with a thousand hosts each touch of a packet is a cache miss.

use crate::packet::Packet;

/// The slot of a packet that ports pass on.
#[inline]
pub fn slot(label: fanin_switch::Packet) -> u32 {
    label.handle as u32
}

/// Where such a packet is on its way: index into the table of paths.
#[inline]
pub fn path(label: fanin_switch::Packet) -> usize {
    (label.handle >> 32) as usize
}

/// Such a packet one link further on.
#[inline]
pub fn next_hop(mut label: fanin_switch::Packet) -> fanin_switch::Packet {
    label.handle += 1 << 32;
    label
}

/// Packets by slot. A freed slot is the first to be used again, since it is still in the cache.
#[derive(Debug)]
pub struct PacketPool {
    packets: Vec<Packet>,
    /// The slot freed last. The `id` of a freed packet is the slot freed before it.
    free: u32,
}

/// No slot.
const NONE: u32 = u32::MAX;

impl Default for PacketPool {
    fn default() -> PacketPool {
        PacketPool { packets: Vec::new(), free: NONE }
    }
}

impl PacketPool {
    /// Puts a packet, that starts on this path, into a free slot. Inlined up to where the packet is made, it is written once, into its slot.
    #[inline(always)]
    pub fn insert(&mut self, packet: Packet, path: u32) -> fanin_switch::Packet {
        let slot = match self.packets.get_mut(self.free as usize) {
            Some(place) => {
                let slot = std::mem::replace(&mut self.free, place.id);
                *place = packet;
                slot
            }
            None => self.insert_new(packet),
        };
        let handle = u64::from(path) << 32 | u64::from(slot);
        fanin_switch::Packet { handle, flow: packet.flow, bytes: packet.wire, flags: packet.flags }
    }

    #[cold]
    fn insert_new(&mut self, packet: Packet) -> u32 {
        self.packets.push(packet);
        self.packets.len() as u32 - 1
    }

    /// The packet in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> &Packet {
        &self.packets[slot as usize]
    }

    /// The packet in a slot, to change.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut Packet {
        &mut self.packets[slot as usize]
    }

    /// Takes the packet out and frees its slot.
    #[inline]
    pub fn take(&mut self, slot: u32) -> Packet {
        let place = &mut self.packets[slot as usize];
        let packet = *place;
        place.id = std::mem::replace(&mut self.free, slot);
        packet
    }

    /// The flows of all packets under way, in order.
    pub fn flows(&self) -> Vec<u32> {
        let mut used = vec![true; self.packets.len()];
        let mut free = self.free;
        while let Some(packet) = self.packets.get(free as usize) {
            used[free as usize] = false;
            free = packet.id;
        }
        let mut flows: Vec<u32> =
            self.packets.iter().zip(used).filter(|(_, used)| *used).map(|(p, _)| p.flow).collect();
        flows.sort_unstable();
        flows
    }
}
