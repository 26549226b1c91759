//! From the bytes of a frame to a TCP segment.
//!
//! By hand rather than with `etherparse`: the frames are cut by snaplen, so lengths must come from the IP header while the bytes behind are
//! missing, and one frame must cost tens of nanoseconds. Nothing here allocates or can index past the end: every read asks.

mod tcp;

pub(crate) use tcp::{Addr, Segment, WIRE_OVERHEAD, flag};
use tcp::{Ip, tcp};

/// What a frame is.
pub(crate) enum Decoded {
    /// A TCP segment.
    Tcp(Segment),
    /// Something else, whole or at least recognisably so.
    Other,
    /// A fragment of an IP packet, not the first.
    Fragment,
    /// Cut before it could be recognised as TCP, or before ports and sequence numbers end.
    Cut,
    /// Headers whose lengths contradict each other; not usable.
    Bad,
    /// A link type that is not supported.
    UnknownLink,
}

/// Link types (https://www.tcpdump.org/linktypes.html) that [`decode`] knows.
pub(crate) fn knows_linktype(linktype: u32) -> bool {
    matches!(linktype, 0 | 1 | 12 | 14 | 101 | 108 | 113 | 228 | 229 | 276)
}

/// Decodes a frame of `original` bytes on the wire, of which `bytes` are stored.
#[inline]
pub(crate) fn decode(linktype: u32, bytes: &[u8], original: u32) -> Decoded {
    let (ethertype, at) = match linktype {
        1 => return ethernet(bytes, 0, original, 0),
        0 | 108 => {
            // The address family of the capturing host, in its byte order (0) or the network's (108).
            let Some(&family) = bytes.first_chunk::<4>() else { return Decoded::Cut };
            match u32::from_le_bytes(family).min(u32::from_be_bytes(family)) {
                2 => (0x0800, 4),
                // IPv6 has a different number in every BSD: 24, 28, 30; Linux and Windows have 10 and 23.
                10 | 23 | 24 | 28 | 30 => (0x86dd, 4),
                _ => return Decoded::Other,
            }
        }
        12 | 14 | 101 | 228 | 229 => match bytes.first().map(|b| b >> 4) {
            Some(4) => (0x0800, 0),
            Some(6) => (0x86dd, 0),
            Some(_) => return Decoded::Other,
            None => return Decoded::Cut,
        },
        113 => match be16(bytes, 14) {
            Some(protocol) => (protocol, 16),
            None => return Decoded::Cut,
        },
        276 => match be16(bytes, 0) {
            Some(protocol) if bytes.len() >= 20 => (protocol, 20),
            _ => return Decoded::Cut,
        },
        _ => return Decoded::UnknownLink,
    };
    network(ethertype, bytes, at, original, 0)
}

/// An Ethernet frame that begins at `at`; `depth` counts the tunnels around it.
#[inline]
fn ethernet(bytes: &[u8], at: usize, original: u32, depth: u8) -> Decoded {
    match be16(bytes, at + 12) {
        Some(ethertype) => network(ethertype, bytes, at + 14, original, depth),
        None => Decoded::Cut,
    }
}

/// What an EtherType announces at `at`, VLAN tags first.
#[inline]
fn network(mut ethertype: u16, bytes: &[u8], mut at: usize, original: u32, depth: u8) -> Decoded {
    // 802.1Q, 802.1ad, and two older numbers for stacked tags; no network stacks more than a handful.
    for _ in 0..8 {
        if !matches!(ethertype, 0x8100 | 0x88a8 | 0x9100 | 0x9200) {
            break;
        }
        match be16(bytes, at + 2) {
            Some(inner) => ethertype = inner,
            None => return Decoded::Cut,
        }
        at += 4;
    }
    match ethertype {
        0x0800 => ipv4(bytes, at, original, depth),
        0x86dd => ipv6(bytes, at, original, depth),
        0x8847 | 0x8848 => mpls(bytes, at, original, depth),
        // PPPoE (RFC 2516): 6 bytes, then what PPP carries.
        0x8864 => match be16(bytes, at + 6) {
            Some(0x0021) => ipv4(bytes, at + 8, original, depth),
            Some(0x0057) => ipv6(bytes, at + 8, original, depth),
            Some(_) => Decoded::Other,
            None => Decoded::Cut,
        },
        _ => Decoded::Other,
    }
}

/// Labels (RFC 3032) up to the bottom of their stack; the first bits behind it say what they carry.
#[cold]
fn mpls(bytes: &[u8], mut at: usize, original: u32, depth: u8) -> Decoded {
    loop {
        let Some(label) = be32(bytes, at) else { return Decoded::Cut };
        at += 4;
        if label & 0x100 != 0 {
            break;
        }
    }
    match bytes.get(at).map(|b| b >> 4) {
        Some(4) => ipv4(bytes, at, original, depth),
        Some(6) => ipv6(bytes, at, original, depth),
        // A pseudowire, with its control word (RFC 4448).
        Some(0) => ethernet(bytes, at + 4, original, depth),
        Some(_) => Decoded::Other,
        None => Decoded::Cut,
    }
}

#[inline]
fn ipv4(bytes: &[u8], at: usize, original: u32, depth: u8) -> Decoded {
    let Some(h) = bytes.get(at..at + 20) else {
        // Of a packet that short on the wire nothing is missing: it is just not IP.
        return if (original as usize) < at + 20 { Decoded::Bad } else { Decoded::Cut };
    };
    let header = usize::from(h[0] & 0x0f) * 4;
    if h[0] >> 4 != 4 || header < 20 {
        return Decoded::Bad;
    }
    let total = match u16::from_be_bytes([h[2], h[3]]) {
        // A packet beyond 64 KiB that the host itself merged (BIG TCP): only the frame knows its length.
        0 => (original as usize).saturating_sub(at),
        n => usize::from(n),
    };
    if total < header {
        return Decoded::Bad;
    }
    let fragment = u16::from_be_bytes([h[6], h[7]]) & 0x1fff;
    if fragment != 0 {
        return if h[9] == 6 { Decoded::Fragment } else { Decoded::Other };
    }
    let ip = Ip {
        src: Addr::v4([h[12], h[13], h[14], h[15]]),
        dst: Addr::v4([h[16], h[17], h[18], h[19]]),
        id: u16::from_be_bytes([h[4], h[5]]),
        ce: h[1] & 3 == 3,
        ect: h[1] & 3 != 0,
    };
    transport(h[9], &ip, bytes, at + header, total - header, original, depth)
}

#[inline]
fn ipv6(bytes: &[u8], at: usize, original: u32, depth: u8) -> Decoded {
    let Some(h) = bytes.get(at..at + 40) else {
        return if (original as usize) < at + 40 { Decoded::Bad } else { Decoded::Cut };
    };
    if h[0] >> 4 != 6 {
        return Decoded::Bad;
    }
    let address = |i: usize| Addr(h[i..i + 16].iter().fold(0, |a, &b| a << 8 | u128::from(b)));
    let ip = Ip { src: address(8), dst: address(24), id: 0, ce: h[1] & 0x30 == 0x30, ect: h[1] & 0x30 != 0 };
    // Zero: a jumbogram, or BIG TCP with its jumbo header already taken away. The frame's length is right for both.
    let mut left = match u16::from_be_bytes([h[4], h[5]]) {
        0 => (original as usize).saturating_sub(at + 40),
        n => usize::from(n),
    };
    let (mut next, mut at) = (h[6], at + 40);
    for _ in 0..16 {
        let length = match next {
            0 | 43 | 60 | 135 | 139 | 140 => bytes.get(at + 1).map(|&n| (usize::from(n) + 1) * 8),
            51 => bytes.get(at + 1).map(|&n| (usize::from(n) + 2) * 4),
            44 => match be16(bytes, at + 2) {
                Some(n) if n & 0xfff8 != 0 => {
                    return if bytes[at] == 6 { Decoded::Fragment } else { Decoded::Other };
                }
                Some(_) => Some(8),
                None => None,
            },
            _ => return transport(next, &ip, bytes, at, left, original, depth),
        };
        let Some(length) = length else { return Decoded::Cut };
        if length > left {
            return Decoded::Bad;
        }
        next = bytes[at];
        at += length;
        left -= length;
    }
    Decoded::Other
}

/// Tunnels within tunnels that are followed.
const TUNNELS: u8 = 4;

/// What an IP packet carries: TCP, or a tunnel, in which the inner TCP is what counts.
#[inline]
fn transport(protocol: u8, ip: &Ip, bytes: &[u8], at: usize, length: usize, original: u32, depth: u8) -> Decoded {
    match protocol {
        6 => tcp(ip, bytes, at, length),
        _ if depth >= TUNNELS => Decoded::Other,
        17 => match be16(bytes, at + 2) {
            // VXLAN (RFC 7348): UDP to this port, 8 bytes of its own, then an Ethernet frame.
            Some(4789) if length >= 16 => ethernet(bytes, at + 16, original, depth + 1),
            // Geneve (RFC 8926): with options, whose length counts four bytes each.
            Some(6081) if length >= 16 => match (bytes.get(at + 8), be16(bytes, at + 10)) {
                (Some(first), Some(kind)) => {
                    carried(kind, bytes, at + 16 + usize::from(first & 0x3f) * 4, original, depth + 1)
                }
                _ => Decoded::Cut,
            },
            _ => Decoded::Other,
        },
        4 => ipv4(bytes, at, original, depth + 1),
        41 => ipv6(bytes, at, original, depth + 1),
        47 => gre(bytes, at, original, depth + 1),
        _ => Decoded::Other,
    }
}

/// What a tunnel carries by its EtherType.
fn carried(kind: u16, bytes: &[u8], at: usize, original: u32, depth: u8) -> Decoded {
    match kind {
        0x6558 => ethernet(bytes, at, original, depth),
        kind => network(kind, bytes, at, original, depth),
    }
}

/// GRE (RFC 2784, RFC 2890), and the mirror ports that use it (ERSPAN, draft-foschiano-erspan).
#[cold]
fn gre(bytes: &[u8], at: usize, original: u32, depth: u8) -> Decoded {
    let (Some(flags), Some(kind)) = (be16(bytes, at), be16(bytes, at + 2)) else { return Decoded::Cut };
    if flags & 7 != 0 {
        return Decoded::Other;
    }
    let numbered = flags & 0x1000 != 0;
    // Checksum, key and sequence number take four bytes each.
    let at = at + 4 + [0x8000, 0x2000, 0x1000].iter().filter(|&&field| flags & field != 0).count() * 4;
    match kind {
        // Type I has no header of its own, type II one of 8 bytes.
        0x88be => ethernet(bytes, at + if numbered { 8 } else { 0 }, original, depth),
        // Type III has 12, and 8 more where its last bit says so.
        0x22eb => match bytes.get(at + 11) {
            Some(last) => ethernet(bytes, at + 12 + usize::from(last & 1) * 8, original, depth),
            None => Decoded::Cut,
        },
        kind => carried(kind, bytes, at, original, depth),
    }
}

#[inline]
fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[inline]
fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    /// Twenty bytes of TCP with a payload of 3.
    const TCP: [u8; 23] = [0, 80, 1, 0, 0, 0, 0, 9, 0, 0, 0, 7, 0x50, 0x18, 1, 0, 0xaa, 0xbb, 0, 0, b'a', b'b', b'c'];

    fn segment(linktype: u32, bytes: &[u8], original: usize) -> Option<Segment> {
        match decode(linktype, bytes, original as u32) {
            Decoded::Tcp(s) => Some(s),
            _ => None,
        }
    }

    fn ipv4_packet(options: usize, total: u16) -> Vec<u8> {
        let mut p = vec![0x45 + (options / 4) as u8, 3];
        p.extend(total.to_be_bytes());
        p.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        p.resize(20 + options, 1);
        p.extend(TCP);
        p
    }

    #[test]
    fn ipv4_options_shift_the_tcp_header_and_the_ce_mark_is_seen() {
        let p = ipv4_packet(8, 51);
        let s = segment(101, &p, p.len()).unwrap();
        assert_eq!((s.sport, s.seq, s.payload, s.ip_id, s.ce), (80, 9, 3, 0x1234, true));
        assert_eq!(s.src.ip(), IpAddr::from([10, 0, 0, 1]));
    }

    #[test]
    fn the_length_comes_from_ip_however_little_is_stored_and_padding_is_not_payload() {
        let p = ipv4_packet(0, 1500);
        assert_eq!(segment(228, &p, 1500).unwrap().payload, 1460);
        let mut padded = ipv4_packet(0, 43);
        padded.resize(46, 0);
        assert_eq!(segment(101, &padded, 46).unwrap().payload, 3);
    }

    #[test]
    fn an_ip_length_of_zero_means_the_length_of_the_frame() {
        let p = ipv4_packet(0, 0);
        assert_eq!(segment(101, &p, 80_040).unwrap().payload, 80_000);
    }

    #[test]
    fn ipv6_extension_headers_are_walked_and_later_fragments_are_told_apart() {
        let packet = |offset: u8| {
            let mut p = vec![0x60, 0, 0, 0];
            p.extend((8 + 8 + TCP.len() as u16).to_be_bytes());
            p.extend([0, 64]);
            p.extend([0xfd; 16]);
            p.extend([0xfe; 16]);
            p.extend([44, 0, 1, 4, 0, 0, 0, 0]); // hop-by-hop, then a fragment header
            p.extend([6, 0, 0, offset, 0, 0, 0, 1]);
            p.extend(TCP);
            p
        };
        assert_eq!(segment(229, &packet(0), packet(0).len()).unwrap().payload, 3);
        assert!(matches!(decode(229, &packet(8), 79), Decoded::Fragment));
    }

    #[test]
    fn loopback_families_of_either_byte_order_are_understood() {
        let ip = ipv4_packet(0, 43);
        for family in [[2, 0, 0, 0], [0, 0, 0, 2]] {
            let p = [&family[..], &ip].concat();
            assert_eq!(segment(0, &p, p.len()).unwrap().payload, 3);
        }
    }

    #[test]
    fn cooked_version_two_has_its_protocol_in_front() {
        let mut p = vec![0x08, 0];
        p.resize(20, 0);
        p.extend(ipv4_packet(0, 43));
        assert_eq!(segment(276, &p, p.len()).unwrap().payload, 3);
    }

    #[test]
    fn a_tcp_header_longer_than_its_packet_has_no_payload() {
        let mut p = ipv4_packet(0, 43);
        p[20 + 12] = 0xf0;
        let s = segment(101, &p, p.len()).unwrap();
        assert!(s.bad && s.payload == 0);
    }

    /// An IPv4 header in front of what a tunnel carries.
    fn outer(protocol: u8, inside: &[u8]) -> Vec<u8> {
        let mut p = vec![0x45, 0];
        p.extend((20 + inside.len() as u16).to_be_bytes());
        p.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        p.extend(inside);
        p
    }

    fn udp(port: u16, inside: &[u8]) -> Vec<u8> {
        let length = 8 + inside.len() as u16;
        outer(17, &[&[0x12, 0x34], &port.to_be_bytes()[..], &length.to_be_bytes(), &[0, 0], inside].concat())
    }

    fn framed(ethertype: u16, inside: &[u8]) -> Vec<u8> {
        [&[0; 12], &ethertype.to_be_bytes()[..], inside].concat()
    }

    /// Every tunnel in which the TCP of a service may pass a tap.
    fn tunnels() -> Vec<(&'static str, Vec<u8>)> {
        let (ip, frame) = (ipv4_packet(0, 43), framed(0x0800, &ipv4_packet(0, 43)));
        let gre = |head: &[u8], inside: &[u8]| outer(47, &[head, inside].concat());
        vec![
            ("VXLAN", udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &frame[..]].concat())),
            ("Geneve", udp(6081, &[&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 4], &frame[..]].concat())),
            ("Geneve of IP", udp(6081, &[&[0, 0, 0x08, 0x00, 0, 0, 7, 0], &ip[..]].concat())),
            ("GRE", gre(&[0, 0, 8, 0], &ip)),
            ("GRE with key and number", gre(&[0x30, 0, 8, 0, 0, 0, 0, 1, 0, 0, 0, 2], &ip)),
            ("NVGRE", gre(&[0x20, 0, 0x65, 0x58, 0, 0, 7, 0], &frame)),
            ("ERSPAN I", gre(&[0, 0, 0x88, 0xbe], &frame)),
            ("ERSPAN II", gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 0, 0, 0, 0, 0], &frame)),
            ("ERSPAN III", gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &frame)),
            ("IP in IP", outer(4, &ip)),
            ("GRE in IP in IP", outer(4, &gre(&[0, 0, 8, 0], &ip))),
        ]
    }

    #[test]
    fn tcp_is_found_in_tunnels_and_behind_labels() {
        for (name, p) in tunnels() {
            let s = segment(101, &p, p.len()).expect(name);
            assert_eq!((s.seq, s.payload, s.stored(&p)), (9, 3, &b"abc"[..]), "{name}");
        }
        let ip = ipv4_packet(0, 43);
        let labels = |inside: &[u8]| framed(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64], inside].concat());
        let control_word = [&[0; 4], &framed(0x0800, &ip)[..]].concat();
        let session = framed(0x8864, &[&[0x11, 0, 0, 1, 0, 45, 0, 0x21], &ip[..]].concat());
        for p in [labels(&ip), labels(&control_word), session] {
            assert_eq!(segment(1, &p, p.len()).unwrap().stored(&p), b"abc");
        }
    }

    #[test]
    fn tunnels_within_tunnels_end() {
        let nested = |levels: usize| (0..levels).fold(ipv4_packet(0, 43), |p, _| outer(4, &p));
        assert!(segment(101, &nested(4), 200).is_some() && segment(101, &nested(5), 200).is_none());
    }

    #[test]
    fn no_cut_of_a_packet_is_read_past_its_end() {
        let p = ipv4_packet(40, 83);
        for end in 0..p.len() {
            let _ = decode(101, &p[..end], 83);
            let _ = decode(1, &p[..end], 83);
        }
        for (_, p) in tunnels() {
            for end in 0..p.len() {
                let _ = decode(101, &p[..end], p.len() as u32);
            }
        }
    }
}
