//! The block format (draft-ietf-opsawg-pcapng): sections, interfaces, and packets in three kinds of block.

use super::input::BUFFER;
use super::pcap::{u16_of, u32_of};
use super::{Frame, Input, MAX_STORED};
use crate::Damage;

/// The type of a section header block; reads the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Options of an interface: resolution and offset of its time stamps.
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
/// Options of an interface's statistics: packets that it dropped, and that the system dropped behind it, since the capture began.
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;
/// Option of a packet: packets of its interface that were dropped since the one before.
const EPB_DROPCOUNT: u16 = 4;

/// State between blocks.
pub(super) struct Pcapng {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Dropped by the interfaces of the sections before.
    dropped_before: u64,
}

struct Interface {
    linktype: u32,
    snaplen: u32,
    clock: Clock,
    offset_s: i64,
    /// Packets that were dropped before they reached the file, by the interface and by the system, as was stated last.
    dropped: [u64; 2],
    /// The same, as its packets state it one by one.
    dropped_between: u64,
}

/// Length of one time-stamp unit.
#[derive(Clone, Copy)]
enum Clock {
    /// This many nanoseconds.
    Ns(u64),
    /// This many make a nanosecond.
    PerNs(u128),
    /// 2^-n seconds.
    Binary(u8),
}

impl Clock {
    /// From the option if_tsresol: a negative power of ten, or of two when the top bit is set.
    fn from_option(value: u8) -> Clock {
        let n = value & 0x7f;
        match value & 0x80 {
            0 if n <= 9 => Clock::Ns(10_u64.pow(u32::from(9 - n))),
            // Finer than 10^-38 s no 64-bit stamp reaches a nanosecond.
            0 => Clock::PerNs(10_u128.checked_pow(u32::from(n) - 9).unwrap_or(u128::MAX)),
            _ => Clock::Binary(n),
        }
    }

    fn ns(self, stamp: u64) -> i128 {
        match self {
            Clock::Ns(n) => i128::from(stamp) * i128::from(n),
            // A 64-bit stamp fits whatever it is divided by.
            Clock::PerNs(n) => (u128::from(stamp) / n) as i128,
            Clock::Binary(n) => ((u128::from(stamp) * 1_000_000_000) >> n) as i128,
        }
    }
}

impl Interface {
    fn time(&self, stamp: u64) -> i64 {
        let ns = self.clock.ns(stamp) + i128::from(self.offset_s) * 1_000_000_000;
        i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
    }
}

impl Pcapng {
    /// Reads the first section header.
    pub fn open(input: &mut Input<'_>) -> Result<Pcapng, Damage> {
        let mut file = Pcapng { big_endian: false, interfaces: Vec::new(), dropped_before: 0 };
        if input.fill(12) < 12 {
            return Err(Damage::CutInFileHeader);
        }
        file.section(input)?;
        Ok(file)
    }

    /// The next packet, in whatever block.
    pub fn next(&mut self, input: &mut Input<'_>, number: u64) -> Result<Option<Frame>, Damage> {
        loop {
            match input.fill(12) {
                0 => return Ok(None),
                have if have < 12 => return Err(Damage::CutInBlock),
                _ => {}
            }
            let ahead = input.ahead();
            if ahead.starts_with(&SECTION_HEADER) {
                self.section(input)?;
                continue;
            }
            let kind = self.u32_at(ahead, 0);
            let length = self.block_length(ahead)?;
            match kind {
                ENHANCED_PACKET | OBSOLETE_PACKET | SIMPLE_PACKET => {
                    self.whole_block(input, length)?;
                    return self.packet(input, kind, length as usize, number).map(Some);
                }
                INTERFACE => {
                    self.whole_block(input, length)?;
                    let described = self.interface(&input.ahead()[..length as usize])?;
                    self.interfaces.push(described);
                    input.advance(length as usize);
                }
                INTERFACE_STATISTICS if length as usize <= BUFFER => {
                    self.whole_block(input, length)?;
                    self.statistics(&input.ahead()[..length as usize]);
                    input.advance(length as usize);
                }
                // Names, secrets, custom blocks: none of our business, but their end must be where they say.
                _ => {
                    if !input.skip(u64::from(length) - 4) || input.fill(4) < 4 {
                        return Err(Damage::CutInBlock);
                    }
                    let second = self.u32_at(input.ahead(), 0);
                    if second != length {
                        return Err(Damage::BlockTrailer { first: length, second });
                    }
                    input.advance(4);
                }
            }
        }
    }

    /// More than one interface is described so far.
    #[inline]
    pub fn several_interfaces(&self) -> bool {
        self.interfaces.len() > 1
    }

    /// Packets that did not reach the file, as the program that captured states in it.
    pub fn dropped(&self) -> u64 {
        // A program that states both states the same packets twice.
        let of = |i: &Interface| i.dropped[0].saturating_add(i.dropped[1]).max(i.dropped_between);
        self.interfaces.iter().map(of).fold(self.dropped_before, u64::saturating_add)
    }

    /// A section begins: its byte order holds until the next, its interfaces count from zero.
    fn section(&mut self, input: &mut Input<'_>) -> Result<(), Damage> {
        let mark = [8, 9, 10, 11].map(|i| input.ahead()[i]);
        self.big_endian = match u32::from_le_bytes(mark) {
            0x1a2b_3c4d => false,
            0x4d3c_2b1a => true,
            other => return Err(Damage::ByteOrder(other)),
        };
        let length = self.block_length(input.ahead())?;
        if length < 28 {
            return Err(Damage::BlockLength(length));
        }
        if input.fill(length.min(BUFFER as u32) as usize) < length as usize {
            return Err(if length as usize > BUFFER { Damage::BlockLength(length) } else { Damage::CutInBlock });
        }
        let block = &input.ahead()[..length as usize];
        let version = (self.u16_at(block, 12), self.u16_at(block, 14));
        // 1.2 is 1.0 written by mistake; the draft says to accept it.
        if !matches!(version, (1, 0) | (1, 2)) {
            return Err(Damage::SectionVersion(version.0, version.1));
        }
        self.options(&block[24..length as usize - 4], |_, _| ())?;
        self.whole_block(input, length)?;
        self.dropped_before = self.dropped();
        self.interfaces.clear();
        input.advance(length as usize);
        Ok(())
    }

    fn interface(&self, block: &[u8]) -> Result<Interface, Damage> {
        if block.len() < 20 {
            return Err(Damage::BlockLength(block.len() as u32));
        }
        let mut found = Interface {
            linktype: u32::from(self.u16_at(block, 8)),
            snaplen: self.u32_at(block, 12),
            clock: Clock::Ns(1_000),
            offset_s: 0,
            dropped: [0; 2],
            dropped_between: 0,
        };
        self.options(&block[16..block.len() - 4], |code, value| match (code, value) {
            (IF_TSRESOL, &[resolution, ..]) => found.clock = Clock::from_option(resolution),
            (IF_TSOFFSET, value) => {
                if let Some(offset) = self.u64_of(value) {
                    found.offset_s = offset.cast_signed();
                }
            }
            _ => {}
        })?;
        Ok(found)
    }

    /// What an interface dropped, so far. A block that makes no sense says nothing: no packet depends on it.
    fn statistics(&mut self, block: &[u8]) {
        if block.len() < 24 {
            return;
        }
        let mut dropped = [None; 2];
        let _ = self.options(&block[20..block.len() - 4], |code, value| match code {
            ISB_IFDROP => dropped[0] = self.u64_of(value),
            ISB_OSDROP => dropped[1] = self.u64_of(value),
            _ => {}
        });
        let id = self.u32_at(block, 8) as usize;
        if let Some(interface) = self.interfaces.get_mut(id) {
            interface.dropped = [0, 1].map(|i| dropped[i].unwrap_or(interface.dropped[i]));
        }
    }

    /// A packet block, which is buffered whole.
    #[inline]
    fn packet(&mut self, input: &mut Input<'_>, kind: u32, length: usize, number: u64) -> Result<Frame, Damage> {
        let block = &input.ahead()[..length];
        let header = if kind == SIMPLE_PACKET { 12 } else { 28 };
        if length < header + 4 {
            return Err(Damage::BlockLength(length as u32));
        }
        let id = match kind {
            ENHANCED_PACKET => self.u32_at(block, 8),
            OBSOLETE_PACKET => u32::from(self.u16_at(block, 8)),
            _ => 0,
        };
        let Some(interface) = self.interfaces.get(id as usize) else {
            return Err(Damage::UnknownInterface { packet: number, interface: id });
        };
        let (t_ns, stored, original) = if kind == SIMPLE_PACKET {
            // Its stored length is not written down: it follows from the snaplen (zero: no limit).
            let original = self.u32_at(block, 8);
            let limit = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
            (None, original.min(limit).min((length - header - 4) as u32), original)
        } else {
            let stamp = u64::from(self.u32_at(block, 12)) << 32 | u64::from(self.u32_at(block, 16));
            (Some(interface.time(stamp)), self.u32_at(block, 20), self.u32_at(block, 24))
        };
        if stored > MAX_STORED || stored as usize > length - header - 4 {
            return Err(Damage::ImpossibleLength { packet: number, length: stored });
        }
        let linktype = interface.linktype;
        let dropped = self.dropped_before(block, kind, header + stored as usize);
        if dropped > 0 {
            let between = &mut self.interfaces[id as usize].dropped_between;
            *between = between.saturating_add(dropped);
        }
        input.mark_frame(header, stored as usize);
        input.advance(length);
        Ok(Frame { t_ns, original, stored, linktype, bad_fraction: false })
    }

    /// Packets of its interface that a packet, which ends at `end` of its block, says were dropped since the one before. Options that make no sense
    /// say nothing.
    #[inline]
    fn dropped_before(&self, block: &[u8], kind: u32, end: usize) -> u64 {
        match kind {
            ENHANCED_PACKET => {
                let mut dropped = 0;
                let options = block.get(end.next_multiple_of(4)..block.len() - 4).unwrap_or(&[]);
                let _ = self.options(options, |code, value| {
                    if code == EPB_DROPCOUNT {
                        dropped = self.u64_of(value).unwrap_or(dropped);
                    }
                });
                dropped
            }
            // All ones: not known.
            OBSOLETE_PACKET => Some(self.u16_at(block, 10)).filter(|&n| n != u16::MAX).map_or(0, u64::from),
            _ => 0,
        }
    }

    /// The length in front of a block, checked for what is possible at all.
    fn block_length(&self, ahead: &[u8]) -> Result<u32, Damage> {
        let length = self.u32_at(ahead, 4);
        if length < 12 || !length.is_multiple_of(4) { Err(Damage::BlockLength(length)) } else { Ok(length) }
    }

    /// Buffers a block and compares its two lengths.
    fn whole_block(&self, input: &mut Input<'_>, length: u32) -> Result<(), Damage> {
        if length as usize > BUFFER {
            return Err(Damage::BlockLength(length));
        }
        if input.fill(length as usize) < length as usize {
            return Err(Damage::CutInBlock);
        }
        let second = self.u32_at(input.ahead(), length as usize - 4);
        if second == length { Ok(()) } else { Err(Damage::BlockTrailer { first: length, second }) }
    }

    /// Calls `each` with code and value of every option.
    fn options(&self, mut rest: &[u8], mut each: impl FnMut(u16, &[u8])) -> Result<(), Damage> {
        while rest.len() >= 4 {
            let (code, length) = (self.u16_at(rest, 0), self.u16_at(rest, 2));
            if code == 0 {
                break;
            }
            let padded = usize::from(length).next_multiple_of(4);
            let Some(value) = rest.get(4..4 + usize::from(length)) else { return Err(Damage::OptionLength(length)) };
            each(code, value);
            rest = rest.get(4 + padded..).unwrap_or(&[]);
        }
        Ok(())
    }

    fn u64_of(&self, value: &[u8]) -> Option<u64> {
        let &bytes = value.first_chunk::<8>()?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    #[inline]
    fn u16_at(&self, b: &[u8], i: usize) -> u16 {
        u16_of(self.big_endian, [b[i], b[i + 1]])
    }

    #[inline]
    fn u32_at(&self, b: &[u8], i: usize) -> u32 {
        u32_of(self.big_endian, [b[i], b[i + 1], b[i + 2], b[i + 3]])
    }
}
