//! Every packet under way, in one place. Ports pass labels on, so a packet is written once and read once however many hops it takes:
//! with a thousand hosts each touch of a packet is a cache miss.

use crate::packet::Packet;

/// What a port needs to know of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// Where the packet is in the [`Store`].
    pub slot: u32,
    /// Where it is on its way: index into the table of paths.
    pub path: u32,
    /// Index of its flow.
    pub flow: u32,
    /// Bytes on the wire.
    pub wire: u16,
    /// Bits of [`crate::packet::flags`].
    pub flags: u16,
}

impl Label {
    /// Whether any of the bits is set.
    #[inline]
    pub fn has(&self, bits: u16) -> bool {
        self.flags & bits != 0
    }
}

/// Packets by slot. A freed slot is the first to be used again, since it is still in the cache.
#[derive(Debug, Default)]
pub struct Store {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Store {
    /// Puts a packet, that starts on this path, into a free slot.
    #[inline]
    pub fn insert(&mut self, packet: Packet, path: u32) -> Label {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.packets[slot as usize] = packet;
                slot
            }
            None => {
                self.packets.push(packet);
                self.packets.len() as u32 - 1
            }
        };
        Label { slot, path, flow: packet.flow, wire: packet.wire, flags: packet.flags }
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
        self.free.push(slot);
        self.packets[slot as usize]
    }
}
