//! The header of a TCP segment.

use super::{Decoded, be32};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes around the payload of a segment on the wire: preamble 8, Ethernet header 14, check sequence 4, gap 12; IPv4 20, TCP with time stamps 32.
pub(crate) const WIRE_OVERHEAD: u32 = 90;

/// An IP address of either family; IPv4 as `::ffff:a.b.c.d`, which no packet on the wire carries as IPv6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Addr(pub u128);

impl Addr {
    const V4: u128 = 0xffff_0000_0000;

    pub(super) fn v4(bytes: [u8; 4]) -> Addr {
        Addr(Addr::V4 | u128::from(u32::from_be_bytes(bytes)))
    }

    /// For people and tables.
    pub fn ip(self) -> IpAddr {
        if self.0 >> 32 == Addr::V4 >> 32 {
            Ipv4Addr::from_bits(self.0 as u32).into()
        } else {
            Ipv6Addr::from_bits(self.0).into()
        }
    }
}

/// TCP flags as in byte 13 of the header.
pub(crate) mod flag {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const ECE: u8 = 0x40;
}

/// One TCP segment, as far as its headers are stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    pub src: Addr,
    pub dst: Addr,
    pub sport: u16,
    pub dport: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub checksum: u16,
    /// The IPv4 identification; zero for IPv6, and where the sender does not count.
    pub ip_id: u16,
    /// Marked CE in the IP header.
    pub ce: bool,
    /// Sent as ECN-capable, marked or not (ECT or CE in the IP header).
    pub ect: bool,
    /// The header lengths make no sense, so the payload length is not known.
    pub bad: bool,
    /// Payload on the wire, stored or not.
    pub payload: u32,
    /// Where it begins in the frame.
    pub payload_at: u32,
    /// From a SYN: maximum segment size.
    pub mss: Option<u16>,
    /// From a SYN: window shift.
    pub window_scale: Option<u8>,
    /// From a SYN: SACK permitted (RFC 2018).
    pub sack: bool,
    /// From a SYN: time stamps (RFC 7323).
    pub timestamps: bool,
    /// The sender's clock (RFC 7323), from a segment that is no SYN and has the usual order of options.
    pub stamp: Option<u32>,
    /// The clock of the segment that this one answers, from the same option.
    pub echo: Option<u32>,
    /// Bytes that came twice (D-SACK, RFC 2883), from the first two blocks of a SACK option in its usual place.
    pub twice: Option<(u32, u32)>,
}

impl Segment {
    /// What is stored of its payload, of its frame's bytes.
    #[inline]
    pub fn stored<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let from = self.payload_at as usize;
        let to = frame.len().min(from.saturating_add(self.payload as usize));
        frame.get(from..to).unwrap_or(&[])
    }
}

/// What the header of an IP packet says of the segment in it.
pub(super) struct Ip {
    pub src: Addr,
    pub dst: Addr,
    pub id: u16,
    pub ce: bool,
    pub ect: bool,
}

/// Reads the header of a segment that begins at `at`, in an IP packet with `length` bytes behind the IP header.
#[inline]
pub(super) fn tcp(ip: &Ip, bytes: &[u8], at: usize, length: usize) -> Decoded {
    let Some(h) = bytes.get(at..at + 20) else {
        return if length < 20 { Decoded::Bad } else { Decoded::Cut };
    };
    let header = usize::from(h[12] >> 4) * 4;
    let bad = header < 20 || header > length;
    let mut segment = Segment {
        src: ip.src,
        dst: ip.dst,
        sport: u16::from_be_bytes([h[0], h[1]]),
        dport: u16::from_be_bytes([h[2], h[3]]),
        seq: u32::from_be_bytes([h[4], h[5], h[6], h[7]]),
        ack: u32::from_be_bytes([h[8], h[9], h[10], h[11]]),
        flags: h[13],
        window: u16::from_be_bytes([h[14], h[15]]),
        checksum: u16::from_be_bytes([h[16], h[17]]),
        ip_id: ip.id,
        ce: ip.ce,
        ect: ip.ect,
        bad,
        payload: if bad { 0 } else { (length - header) as u32 },
        payload_at: (at + header) as u32,
        mss: None,
        window_scale: None,
        sack: false,
        timestamps: false,
        stamp: None,
        echo: None,
        twice: None,
    };
    if !bad {
        let end = bytes.len().min(at + header);
        let options = &bytes[at + 20..end];
        if segment.flags & flag::SYN != 0 {
            syn_options(&mut segment, options);
        } else if let [1, 1, 8, 10, rest @ ..] = options {
            // Two bytes that do nothing, then the time stamps: RFC 7323 appendix A, and what hosts do.
            (segment.stamp, segment.echo) = (be32(rest, 0), be32(rest, 4));
            segment.twice = rest.get(8..).and_then(|sack| came_twice(segment.ack, sack));
        } else {
            segment.twice = came_twice(segment.ack, options);
        }
    }
    Decoded::Tcp(segment)
}

/// The block of a SACK option that stands for bytes that came twice: its first, where it is below what is acknowledged or within the second.
fn came_twice(ack: u32, options: &[u8]) -> Option<(u32, u32)> {
    let [1, 1, 5, length, blocks @ ..] = options else { return None };
    let within = |a: u32, b: u32| a.wrapping_sub(b) as i32 <= 0;
    let (from, to) = (be32(blocks, 0)?, be32(blocks, 4)?);
    let inside = || {
        *length >= 18
            && Some(true) == be32(blocks, 8).zip(be32(blocks, 12)).map(|(a, b)| within(a, from) && within(to, b))
    };
    (within(to, ack) || inside()).then_some((from, to))
}

/// Reads what a SYN announces, as far as it is stored.
fn syn_options(segment: &mut Segment, mut rest: &[u8]) {
    while let [kind, tail @ ..] = rest {
        match (kind, tail) {
            (0, _) => return,
            (1, _) => rest = tail,
            (2, [4, a, b, ..]) => {
                segment.mss = Some(u16::from_be_bytes([*a, *b]));
                rest = &tail[3..];
            }
            (3, [3, shift, ..]) => {
                // RFC 7323: a shift above 14 is used as 14.
                segment.window_scale = Some((*shift).min(14));
                rest = &tail[2..];
            }
            (4, [2, ..]) => {
                segment.sack = true;
                rest = &tail[1..];
            }
            (8, [10, ..]) if tail.len() >= 9 => {
                segment.timestamps = true;
                rest = &tail[9..];
            }
            (_, [length, ..]) if *length >= 2 && usize::from(*length) - 1 <= tail.len() => {
                rest = &tail[usize::from(*length) - 1..]
            }
            _ => return,
        }
    }
}
