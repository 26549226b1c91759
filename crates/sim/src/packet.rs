//! A packet in the simulated network: at most 64 bytes, written once where it is sent, never allocated.

pub use fanin_switch::flags;

/// A data segment or an acknowledgement: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// Data: first byte. ACK: next byte expected.
    pub seq: u64,
    /// Data: when it was sent, ps. ACK: echo of the time of the segment that advanced it.
    pub timestamp: u64,
    /// ACK: up to three SACK blocks, (left, right) as distances from `seq`; zeros when absent. D-SACK blocks lie below `seq` and are
    /// only flagged.
    pub sack: [u32; 6],
    /// Index of the flow.
    pub flow: u32,
    /// Not in use.
    pub path: u32,
    /// Payload bytes.
    pub len: u16,
    /// Bytes on the wire.
    pub wire: u16,
    /// Bits of [`flags`].
    pub flags: u16,
    /// ACK: advertised window in bytes, counted from `seq`.
    pub window: u32,
    /// Number of the packet in the run, counted from 1 (it wraps): the same at every port. The network sets it.
    pub id: u32,
}

impl Packet {
    /// Whether any of the bits is set.
    pub fn has(&self, bits: u16) -> bool {
        self.flags & bits != 0
    }
}

const _: () = assert!(size_of::<Packet>() <= 64);
