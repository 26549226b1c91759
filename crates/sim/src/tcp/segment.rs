//! A segment on its way, and the 16 bytes that are kept of it.

/// A segment that was sent and is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// First byte.
    pub seq: u64,
    /// Last transmission, ps.
    pub sent_at: u64,
    /// Payload bytes.
    pub len: u32,
    /// Selectively acknowledged.
    pub sacked: bool,
    /// Declared lost.
    pub lost: bool,
    /// Retransmitted since it was last declared lost.
    pub retransmitted: bool,
    /// Sent more than once.
    pub ever_retransmitted: bool,
    /// A message ends with it: it carries PSH, also when it is sent again.
    pub pushes: bool,
    /// The first that the host holds in one buffer with those behind it, up to the next of these.
    pub starts_burst: bool,
}

impl Segment {
    /// Sent for the first time at `now`.
    pub fn new(seq: u64, len: u32, now: u64) -> Segment {
        Segment { seq, sent_at: now, len, ..Segment::default() }
    }
    /// One past the last byte.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// A segment as the scoreboard keeps it: 16 bytes, since a thousand connections have hundreds each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    pub sent_at: u64,
    /// The low half of its first byte's number: what is outstanding is less than 4 GiB, as windows and SACK blocks are.
    pub seq: u32,
    pub len: u16,
    /// Bits of [`is`].
    pub state: u16,
}

const _: () = assert!(size_of::<Kept>() == 16);

/// What has become of a segment: see [`Segment`].
pub(super) mod is {
    pub const SACKED: u16 = 1;
    pub const LOST: u16 = 2;
    pub const RETRANSMITTED: u16 = 4;
    pub const EVER_RETRANSMITTED: u16 = 8;
    pub const PUSHING: u16 = 16;
    pub const STARTS_BURST: u16 = 32;
}

impl Kept {
    #[inline]
    pub fn has(&self, bits: u16) -> bool {
        self.state & bits != 0
    }
    /// Sent once, and nothing else has become of it.
    #[inline]
    pub fn is_untouched(&self) -> bool {
        !self.has(!(is::PUSHING | is::STARTS_BURST))
    }
    /// Its first byte, where `start` is that of the first segment outstanding.
    #[inline]
    pub fn seq(&self, start: u64) -> u64 {
        start + u64::from(self.seq.wrapping_sub(start as u32))
    }
    /// One past its last byte.
    #[inline]
    pub fn end(&self, start: u64) -> u64 {
        self.seq(start) + u64::from(self.len)
    }
    /// All of it.
    #[inline]
    pub fn whole(&self, start: u64) -> Segment {
        Segment {
            seq: self.seq(start),
            sent_at: self.sent_at,
            len: u32::from(self.len),
            sacked: self.has(is::SACKED),
            lost: self.has(is::LOST),
            retransmitted: self.has(is::RETRANSMITTED),
            ever_retransmitted: self.has(is::EVER_RETRANSMITTED),
            pushes: self.has(is::PUSHING),
            starts_burst: self.has(is::STARTS_BURST),
        }
    }
    /// Counted as being in the network.
    #[inline]
    pub fn in_pipe(&self) -> bool {
        !self.has(is::SACKED) && (!self.has(is::LOST) || self.has(is::RETRANSMITTED))
    }
    /// Lost and not sent again, so far as is known.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.state & (is::LOST | is::RETRANSMITTED | is::SACKED) == is::LOST
    }
}
