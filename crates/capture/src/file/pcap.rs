//! The classic format: a 24-byte file header, then records (draft-ietf-opsawg-pcap).

use super::{Frame, Input, MAX_STORED};
use crate::Damage;

/// Length of the file header.
pub(super) const FILE_HEADER: usize = 24;

/// State between records.
pub(super) struct Pcap {
    big_endian: bool,
    /// Nanoseconds in one unit of the fraction.
    fraction_ns: u32,
    /// 16, or 24 in Kuznetsov's variant, which adds interface, protocol and packet type.
    record_header: usize,
    /// Before 2.4 some writers put the two lengths in the other order.
    lengths_may_be_swapped: bool,
    pub linktype: u32,
}

/// Why a file header is not accepted.
pub(super) enum Refusal {
    Version(u16, u16),
    Damage(Damage),
}

/// Byte order, fraction, record header; by the first four bytes.
fn variant(magic: [u8; 4]) -> Option<(bool, u32, usize)> {
    let read = |big| if big { u32::from_be_bytes(magic) } else { u32::from_le_bytes(magic) };
    [false, true].into_iter().find_map(|big| match read(big) {
        0xa1b2_c3d4 => Some((big, 1_000, 16)),
        0xa1b2_3c4d => Some((big, 1, 16)),
        0xa1b2_cd34 => Some((big, 1_000, 24)),
        _ => None,
    })
}

/// True for the first four bytes of a pcap file.
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    variant(magic).is_some()
}

impl Pcap {
    /// Reads the file header, which is buffered.
    pub fn open(input: &mut Input<'_>) -> Result<Pcap, Refusal> {
        let cut = Refusal::Damage(Damage::CutInFileHeader);
        let Some(&h) = input.ahead().first_chunk::<FILE_HEADER>() else { return Err(cut) };
        let Some((big_endian, fraction_ns, record_header)) = variant([h[0], h[1], h[2], h[3]]) else { return Err(cut) };
        let u16_at = |i| u16_of(big_endian, [h[i], h[i + 1]]);
        let (major, minor) = (u16_at(4), u16_at(6));
        if major != 2 || minor > 4 {
            return Err(Refusal::Version(major, minor));
        }
        // The upper bits: frame check sequence (31-28, 26) and reserved ones (27, 25-16), which must be zero.
        let field = u32_of(big_endian, [h[20], h[21], h[22], h[23]]);
        if field & 0x0bff_0000 != 0 {
            return Err(Refusal::Damage(Damage::ReservedLinktype(field)));
        }
        input.advance(FILE_HEADER);
        Ok(Pcap { big_endian, fraction_ns, record_header, lengths_may_be_swapped: minor < 4, linktype: field & 0xffff })
    }

    /// The next record.
    #[inline]
    pub fn next(&mut self, input: &mut Input<'_>, number: u64) -> Result<Option<Frame>, Damage> {
        let have = input.fill(self.record_header);
        if have < self.record_header {
            return if have == 0 { Ok(None) } else { Err(Damage::CutInRecordHeader { packet: number }) };
        }
        let h = input.ahead();
        let u32_at = |i: usize| u32_of(self.big_endian, [h[i], h[i + 1], h[i + 2], h[i + 3]]);
        let (seconds, fraction) = (u32_at(0), u32_at(4));
        let (mut stored, mut original) = (u32_at(8), u32_at(12));
        if self.lengths_may_be_swapped && stored > original {
            std::mem::swap(&mut stored, &mut original);
        }
        if stored > MAX_STORED {
            return Err(Damage::ImpossibleLength { packet: number, length: stored });
        }
        let whole = self.record_header + stored as usize;
        if input.fill(whole) < whole {
            return Err(Damage::CutInPacket { packet: number });
        }
        input.mark_frame(self.record_header, stored as usize);
        input.advance(whole);
        // u32 seconds and a u32 of microseconds stay below 2^63 ns.
        let within_second = i64::from(fraction) * i64::from(self.fraction_ns);
        Ok(Some(Frame {
            t_ns: Some(i64::from(seconds) * 1_000_000_000 + within_second),
            original,
            stored,
            linktype: self.linktype,
            bad_fraction: within_second >= 1_000_000_000,
        }))
    }
}

/// Two bytes as a number.
#[inline]
pub(super) fn u16_of(big_endian: bool, bytes: [u8; 2]) -> u16 {
    if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
}

/// Four bytes as a number.
#[inline]
pub(super) fn u32_of(big_endian: bool, bytes: [u8; 4]) -> u32 {
    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}
