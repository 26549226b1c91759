//! What a switch knows of a packet.

/// What a packet is, as a bit set.
pub mod flags {
    /// Acknowledges; without it the packet carries data.
    pub const ACK: u16 = 1;
    /// Opens a connection.
    pub const SYN: u16 = 1 << 1;
    /// Sent before.
    pub const RETRANSMISSION: u16 = 1 << 2;
    /// ECN-capable transport.
    pub const ECT: u16 = 1 << 3;
    /// Congestion experienced.
    pub const CE: u16 = 1 << 4;
    /// ECN-Echo (ACKs).
    pub const ECE: u16 = 1 << 5;
    /// Congestion window reduced (data).
    pub const CWR: u16 = 1 << 6;
    /// Background datagram: `flow` is the number of its source.
    pub const DATAGRAM: u16 = 1 << 7;
    /// Last segment of what the application handed over.
    pub const PUSH: u16 = 1 << 8;
    /// Repeats data the receiver already had (on an ACK: the first SACK block is a D-SACK).
    pub const DSACK: u16 = 1 << 9;
    /// Data that acknowledge the opposite direction of their connection too.
    pub const CARRIES_ACK: u16 = 1 << 10;
    /// The last packet of a handshake: on its way like data, without payload.
    pub const EMPTY: u16 = 1 << 11;
    /// A switch may cut the payload off: the transport understands what is left.
    pub const TRIMMABLE: u16 = 1 << 12;
    /// A switch has cut the payload off.
    pub const TRIMMED: u16 = 1 << 13;
    /// Goes ahead of data where a switch has two queues.
    pub const URGENT: u16 = 1 << 14;
}

/// A packet as a port sees it: 16 bytes by value; the rest of it stays with whoever owns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Packet {
    /// The owner's: where the packet itself is. No port looks at it.
    pub handle: u64,
    /// Which flow it belongs to, as far as fair queueing tells flows apart.
    pub flow: u32,
    /// Bytes on the wire. A host that offloads segmentation must split first.
    pub bytes: u16,
    /// Bits of [`flags`].
    pub flags: u16,
}

impl Packet {
    /// Whether any of the bits is set.
    #[inline]
    pub fn has(&self, bits: u16) -> bool {
        self.flags & bits != 0
    }
}

const _: () = assert!(size_of::<Packet>() == 16);
