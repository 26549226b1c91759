//! A packet in the simulated network: at most 64 bytes, written once where it is sent, never allocated.

pub use fanin_switch::flags;

/// Time stamps of TCP, in Linux, tick once a millisecond.
pub(crate) const TICK_PS: u64 = 1_000_000_000;

/// A data segment or an acknowledgement: one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Packet {
    /// Data: first byte. ACK: next byte expected.
    pub seq: u64,
    /// Data: when it was sent, ps. ACK: echo of the time of the segment that advanced it.
    pub timestamp: u64,
    /// ACK: up to three SACK blocks, (left, right) as distances from `seq`; zeros when absent. D-SACK blocks lie below `seq` and are
    /// only flagged. Data that carry an ACK: its number and echo in two words each, and its first block.
    pub sack: [u32; 6],
    /// Index of the flow.
    pub flow: u32,
    /// Payload bytes.
    pub len: u16,
    /// Bytes on the wire.
    pub wire: u16,
    /// Bits of [`flags`].
    pub flags: u16,
    /// ACK: advertised window in bytes, counted from the acknowledgement number.
    pub window: u32,
    /// Number of the packet in the run, counted from 1 (it wraps): the same at every port. The network sets it.
    pub id: u32,
    /// Time stamps as they stand in the header, ms: of an ACK when it left, of data when what their sender had heard of last had left.
    pub tick: u32,
}

impl Packet {
    /// Whether any of the bits is set.
    pub fn has(&self, bits: u16) -> bool {
        self.flags & bits != 0
    }

    /// A segment without payload: an ACK, or the last packet of a handshake.
    pub fn is_pure_ack(&self) -> bool {
        self.has(flags::ACK | flags::EMPTY)
    }

    /// Puts the ACK that would have left alone into this data segment. Of its SACK blocks the most recent fits.
    pub fn carry(&mut self, ack: &Packet) {
        let halves = |x: u64| [x as u32, (x >> 32) as u32];
        let ([number, number_high], [echo, echo_high]) = (halves(ack.seq), halves(ack.timestamp));
        self.sack = [number, number_high, echo, echo_high, ack.sack[0], ack.sack[1]];
        self.window = ack.window;
        self.flags |= flags::CARRIES_ACK | (ack.flags & (flags::ECE | flags::DSACK));
    }

    /// The ACK for the data of `flow` that this segment of the opposite direction carries, if it does.
    pub fn carried(&self, flow: u32) -> Option<Packet> {
        let whole = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [number, number_high, echo, echo_high, left, right] = self.sack;
        self.has(flags::CARRIES_ACK).then(|| Packet {
            seq: whole(number, number_high),
            timestamp: whole(echo, echo_high),
            sack: [left, right, 0, 0, 0, 0],
            flow,
            len: 0,
            tick: (self.timestamp / TICK_PS) as u32,
            flags: flags::ACK | flags::CARRIES_ACK | (self.flags & (flags::ECE | flags::DSACK)),
            ..*self
        })
    }
}

const _: () = assert!(size_of::<Packet>() <= 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_segment_gives_back_the_ack_it_carries() {
        let ack = Packet {
            seq: 5 << 40,
            timestamp: 7 << 33,
            sack: [1448, 2896, 0, 0, 0, 0],
            flow: 3,
            flags: flags::ACK | flags::ECE,
            window: 65_000,
            ..Packet::default()
        };
        // It left at 7 ms, and so does the ACK; its own tick is of what its sender had heard of before.
        let mut data = Packet { seq: 1000, len: 100, flow: 4, timestamp: 7 * TICK_PS, tick: 5, ..Packet::default() };
        assert!(data.carried(3).is_none());
        data.carry(&ack);
        let back = data.carried(3).unwrap();
        assert_eq!((back.seq, back.timestamp, back.sack, back.window), (ack.seq, ack.timestamp, ack.sack, ack.window));
        assert_eq!((back.tick, back.flow, back.len), (7, 3, 0));
        assert!(back.has(flags::ACK) && back.has(flags::ECE) && !data.is_pure_ack());
        assert_eq!((data.seq, data.len), (1000, 100));
    }
}
