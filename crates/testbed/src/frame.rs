//! What the switch reads and writes in a packet: Ethernet, IPv4, and the ports of TCP or UDP.

use fanin_fabric::Datagram;
use std::net::Ipv4Addr;

/// Length of an Ethernet header.
pub const ETHERNET: usize = 14;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The parts of a packet that a switch needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Sender and receiver.
    pub addresses: (Ipv4Addr, Ipv4Addr),
    ports: (u16, u16),
    length: u32,
    payload: u32,
    ecn: u8,
    /// Length of the headers from IP on.
    headers: usize,
}

impl Parsed {
    /// Of an Ethernet frame; `None` unless it is whole, IPv4, not a fragment, and TCP or UDP.
    pub fn of(frame: &[u8]) -> Option<Parsed> {
        let ip = frame.get(ETHERNET..)?;
        let half = |at: usize| Some(u16::from_be_bytes([*ip.get(at)?, *ip.get(at + 1)?]));
        let first = *ip.first()?;
        let header = 4 * usize::from(first & 15);
        // More fragments, or an offset.
        if first >> 4 != 4 || header < 20 || half(6)? & 0x3fff != 0 {
            return None;
        }
        let length = usize::from(half(2)?);
        let headers = match *ip.get(9)? {
            TCP => header + 4 * usize::from(*ip.get(header + 12)? >> 4),
            UDP => header + 8,
            _ => return None,
        };
        if headers > length || length > ip.len() {
            return None;
        }
        let address =
            |at: usize| Some(Ipv4Addr::new(*ip.get(at)?, *ip.get(at + 1)?, *ip.get(at + 2)?, *ip.get(at + 3)?));
        Some(Parsed {
            addresses: (address(12)?, address(16)?),
            ports: (half(header)?, half(header + 2)?),
            length: length as u32,
            payload: (length - headers) as u32,
            ecn: ip[1] & 3,
            headers,
        })
    }

    /// For the fabric.
    pub fn datagram<'a>(&self, frame: &'a [u8], handle: usize, host: u32, to: u32) -> Datagram<'a> {
        Datagram {
            handle,
            host,
            to,
            ports: self.ports,
            length: self.length,
            payload: self.payload,
            segments: 1,
            continues: false,
            ecn: self.ecn,
            headers: &frame[ETHERNET..ETHERNET + self.headers],
            sender: None,
        }
    }

    /// Length of the whole frame without padding.
    pub fn frame_length(&self) -> usize {
        ETHERNET + self.length as usize
    }
}

/// Writes congestion experienced into an IPv4 header and adapts its checksum (RFC 1624, equation 3).
pub fn mark(frame: &mut [u8]) {
    let Some(ip) = frame.get_mut(ETHERNET..ETHERNET + 20) else { return };
    let word = |ip: &[u8], at: usize| u32::from(u16::from_be_bytes([ip[at], ip[at + 1]]));
    let (old, sum) = (word(ip, 0), word(ip, 10));
    ip[1] |= 3;
    let mut new = (!sum & 0xffff) + (!old & 0xffff) + word(ip, 0);
    while new > 0xffff {
        new = (new & 0xffff) + (new >> 16);
    }
    ip[10..12].copy_from_slice(&(!new as u16).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header with a right checksum, and 20 bytes of TCP with 4 bytes of payload.
    fn packet(tos: u8) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET];
        frame.extend([0x45, tos, 0, 44, 0, 9, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x27, 0x10, 0x13, 0x88, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        let sum = checksum(&frame[ETHERNET..ETHERNET + 20]);
        frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    fn checksum(header: &[u8]) -> u16 {
        let mut sum: u32 = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn a_mark_leaves_the_checksum_right() {
        for tos in [1, 2, 0xb9] {
            let mut frame = packet(tos);
            mark(&mut frame);
            assert_eq!(frame[ETHERNET + 1], tos | 3);
            assert_eq!(checksum(&frame[ETHERNET..ETHERNET + 20]), 0, "of a header with its own checksum");
        }
    }

    #[test]
    fn headers_and_payload_are_told_apart() {
        let frame = packet(2);
        let parsed = Parsed::of(&frame).unwrap();
        assert_eq!(parsed.addresses, (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)));
        let datagram = parsed.datagram(&frame, 3, 0, 1);
        assert_eq!((datagram.ports, datagram.length, datagram.payload, datagram.ecn), ((10_000, 5_000), 44, 4, 2));
        assert_eq!(datagram.headers.len(), 40);
        assert_eq!(parsed.frame_length(), frame.len());
    }

    #[test]
    fn what_is_cut_or_foreign_is_no_packet() {
        let whole = packet(0);
        for length in 0..whole.len() {
            assert_eq!(Parsed::of(&whole[..length]), None, "{length} bytes");
        }
        let mut fragment = whole.clone();
        fragment[ETHERNET + 6] = 0x20;
        let mut icmp = whole;
        icmp[ETHERNET + 9] = 1;
        assert_eq!((Parsed::of(&fragment), Parsed::of(&icmp)), (None, None));
    }
}
