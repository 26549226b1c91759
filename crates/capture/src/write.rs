//! The way out: packets that never were on a wire, as nanosecond pcap files that Wireshark reads.
//!
//! [`Segment::headers`] builds Ethernet, IPv4 and TCP with correct lengths and checksums; [`PcapWriter`] stores them. The payload is all zeros and
//! by default not stored: the original length says how much there was, exactly as a capture with a small snaplen does.
//!
//! ```
//! use fanin_capture::write::{Endpoint, Flags, PcapWriter, Segment};
//! use fanin_units::Time;
//!
//! let (client, server) = (Endpoint::host(0, 40_000), Endpoint::host(1, 80));
//! let mut file = PcapWriter::new(Vec::new(), None)?;
//! let mut bytes = Vec::new();
//! let syn = Segment { flags: Flags::SYN, ..Segment::between(client, server) };
//! let length = syn.headers(&mut bytes);
//! file.packet(Time::from_ps(1_000), &bytes, length)?;
//! assert_eq!(file.finish()?.len(), 24 + 16 + 54);
//! # Ok::<(), std::io::Error>(())
//! ```

use fanin_units::Time;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::ops::BitOr;

/// Ethernet, IPv4 and TCP without options.
const PLAIN_HEADERS: usize = 14 + 20 + 20;
/// Where the transport's header begins.
const TRANSPORT: usize = 14 + 20;
/// Room for TCP options.
const OPTION_SPACE: usize = 40;
/// What readers accept at most (libpcap's limit).
const LARGEST_SNAPLEN: u32 = 262_144;

/// A little-endian nanosecond pcap file in the making, link type Ethernet.
pub struct PcapWriter<W: Write> {
    out: W,
    snaplen: Option<u32>,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header. With a `snaplen`, up to that many bytes of every packet are stored, payload as zeros; without, headers only.
    ///
    /// # Errors
    /// What the writer says.
    pub fn new(mut out: W, snaplen: Option<u32>) -> io::Result<PcapWriter<W>> {
        let snaplen = snaplen.map(|n| n.min(LARGEST_SNAPLEN));
        out.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?;
        out.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        out.write_all(&snaplen.unwrap_or(LARGEST_SNAPLEN).to_le_bytes())?;
        out.write_all(&1_u32.to_le_bytes())?;
        Ok(PcapWriter { out, snaplen })
    }

    /// Stores a packet seen at `at` (time zero is 1970-01-01), of which `headers` are known and which was `original` bytes long.
    ///
    /// # Errors
    /// What the writer says.
    pub fn packet(&mut self, at: Time, headers: &[u8], original: u32) -> io::Result<()> {
        let known = u32::try_from(headers.len()).unwrap_or(u32::MAX).min(original);
        let stored = self.snaplen.map_or(known, |n| n.min(original));
        let ns = at.ps() / 1_000;
        // 2^64 ps are 213 days, far below 2^32 s.
        let (seconds, fraction) = ((ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32);
        for word in [seconds, fraction, stored, original] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        let from_headers = stored.min(known);
        self.out.write_all(&headers[..from_headers as usize])?;
        let mut zeros = (stored - from_headers) as usize;
        while zeros > 0 {
            let some = zeros.min(1024);
            self.out.write_all(&[0; 1024][..some])?;
            zeros -= some;
        }
        Ok(())
    }

    /// Flushes, and gives the writer back.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// One end of a connection, down to its network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// TCP port.
    pub port: u16,
}

impl Endpoint {
    /// Host number `index` of a simulation: 10.0.0.1, 10.0.0.2 and so on (up to 2^24 hosts), with a locally administered Ethernet address.
    pub const fn host(index: u32, port: u16) -> Endpoint {
        let [_, a, b, c] = (index + 1).to_be_bytes();
        Endpoint { mac: [2, 0, 10, a, b, c], ip: Ipv4Addr::new(10, a, b, c), port }
    }
}

/// TCP flags, to be combined with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// No more data.
    pub const FIN: Flags = Flags(0x01);
    /// Opens a connection.
    pub const SYN: Flags = Flags(0x02);
    /// Refuses or breaks a connection.
    pub const RST: Flags = Flags(0x04);
    /// The application wrote no more than this.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// ECN echo (RFC 3168), or with SYN: I can.
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced.
    pub const CWR: Flags = Flags(0x80);
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The two ECN bits of the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable, codepoint 1.
    Ect1 = 1,
    /// ECN-capable, codepoint 0: the usual one.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// TCP options. Written in Linux's order, padded with no-operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions<'a> {
    /// Maximum segment size (SYN only).
    pub mss: Option<u16>,
    /// Window shift (SYN only).
    pub window_scale: Option<u8>,
    /// SACK permitted (SYN only).
    pub sack_permitted: bool,
    /// Time stamp and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements as (first, one past last) sequence numbers; as many as fit (three beside time stamps, else four).
    pub sack: &'a [(u32, u32)],
}

impl TcpOptions<'_> {
    /// Appends the options; their length is a multiple of four and at most 40.
    fn put(&self, out: &mut Vec<u8>) {
        const NOP: u8 = 1;
        let begin = out.len();
        if let Some(mss) = self.mss {
            out.extend([2, 4]);
            out.extend(mss.to_be_bytes());
        }
        match (self.sack_permitted, self.timestamps.is_some()) {
            (true, _) => out.extend([4, 2]),
            (false, true) => out.extend([NOP, NOP]),
            (false, false) => {}
        }
        if let Some((value, echo)) = self.timestamps {
            out.extend([8, 10]);
            out.extend(value.to_be_bytes());
            out.extend(echo.to_be_bytes());
        } else if self.sack_permitted {
            out.extend([NOP, NOP]);
        }
        if let Some(shift) = self.window_scale {
            out.extend([NOP, 3, 3, shift]);
        }
        let room = (OPTION_SPACE - (out.len() - begin)).saturating_sub(4) / 8;
        let blocks = &self.sack[..self.sack.len().min(room)];
        if !blocks.is_empty() {
            out.extend([NOP, NOP, 5, 2 + 8 * blocks.len() as u8]);
            for (first, end) in blocks {
                out.extend(first.to_be_bytes());
                out.extend(end.to_be_bytes());
            }
        }
    }
}

/// A TCP segment to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Who sends.
    pub from: Endpoint,
    /// Who receives.
    pub to: Endpoint,
    /// Sequence number of the first payload byte (or of the SYN).
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// TCP flags.
    pub flags: Flags,
    /// Window field as sent: already shifted right by the sender's window scale.
    pub window: u16,
    /// ECN bits.
    pub ecn: Ecn,
    /// IP identification; count it per sender and connection, and readers can tell a retransmission from a copy.
    pub ip_id: u16,
    /// Options.
    pub options: TcpOptions<'a>,
    /// Bytes of payload.
    pub payload: u32,
}

impl Segment<'static> {
    /// An empty segment without flags, to be completed by struct update.
    pub const fn between(from: Endpoint, to: Endpoint) -> Segment<'static> {
        Segment {
            from,
            to,
            seq: 0,
            ack: 0,
            flags: Flags::NONE,
            window: u16::MAX,
            ecn: Ecn::NotEct,
            ip_id: 0,
            options: TcpOptions { mss: None, window_scale: None, sack_permitted: false, timestamps: None, sack: &[] },
            payload: 0,
        }
    }
}

impl Segment<'_> {
    /// Puts Ethernet, IPv4 and TCP headers into `out` (which is cleared) and returns the length of the whole frame.
    ///
    /// Checksums are those of a payload of zeros. An IP packet beyond 65 535 bytes gets length zero, as Linux writes BIG TCP.
    pub fn headers(&self, out: &mut Vec<u8>) -> u32 {
        put_frame(&self.from, &self.to, Protocol::Tcp, self.ecn, self.ip_id, out);
        out.extend(self.seq.to_be_bytes());
        out.extend(self.ack.to_be_bytes());
        out.extend([0, self.flags.0]);
        out.extend(self.window.to_be_bytes());
        out.extend([0; 4]);
        self.options.put(out);
        let tcp_header = out.len() - TRANSPORT;
        // At most 60 bytes: fifteen words.
        out[TRANSPORT + 12] = ((tcp_header / 4) << 4) as u8;
        let tcp_length = tcp_header as u32 + self.payload;
        let sum = close_frame(Protocol::Tcp, tcp_length, out);
        out[TRANSPORT + 16..TRANSPORT + 18].copy_from_slice(&sum.to_be_bytes());
        TRANSPORT as u32 + tcp_length
    }
}

/// A UDP datagram to be written. Its checksum is that of a payload of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Who sends.
    pub from: Endpoint,
    /// Who receives.
    pub to: Endpoint,
    /// IP identification.
    pub ip_id: u16,
    /// ECN bits.
    pub ecn: Ecn,
    /// Bytes of payload, at most 65 507.
    pub payload: u16,
}

impl Datagram {
    /// Puts Ethernet, IPv4 and UDP headers into `out` (which is cleared) and returns the length of the whole frame.
    pub fn headers(&self, out: &mut Vec<u8>) -> u32 {
        put_frame(&self.from, &self.to, Protocol::Udp, self.ecn, self.ip_id, out);
        let length = self.payload.min(65_507) + 8;
        out.extend(length.to_be_bytes());
        out.extend([0; 2]);
        // A sum of zero is sent as its other form: zero says that there is none (RFC 768).
        let sum = match close_frame(Protocol::Udp, u32::from(length), out) {
            0 => u16::MAX,
            sum => sum,
        };
        out[TRANSPORT + 6..TRANSPORT + 8].copy_from_slice(&sum.to_be_bytes());
        TRANSPORT as u32 + u32::from(length)
    }
}

#[derive(Clone, Copy)]
enum Protocol {
    Tcp = 6,
    Udp = 17,
}

/// Ethernet, IPv4 without length and checksum, and ports into `out`, which is cleared.
fn put_frame(from: &Endpoint, to: &Endpoint, protocol: Protocol, ecn: Ecn, ip_id: u16, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(PLAIN_HEADERS + OPTION_SPACE);
    out.extend(to.mac);
    out.extend(from.mac);
    out.extend([0x08, 0x00]);
    out.extend([0x45, ecn as u8, 0, 0]);
    out.extend(ip_id.to_be_bytes());
    // Do not fragment; 64 hops.
    out.extend([0x40, 0, 64, protocol as u8, 0, 0]);
    out.extend(from.ip.octets());
    out.extend(to.ip.octets());
    out.extend(from.port.to_be_bytes());
    out.extend(to.port.to_be_bytes());
}

/// Completes IPv4 for a transport header with payload of this length, and returns the checksum over pseudo header and header.
fn close_frame(protocol: Protocol, length: u32, out: &mut [u8]) -> u16 {
    let total = u16::try_from(length + 20).unwrap_or(0);
    out[16..18].copy_from_slice(&total.to_be_bytes());
    let sum = checksum(0, &out[14..TRANSPORT]);
    out[24..26].copy_from_slice(&sum.to_be_bytes());
    // The pseudo header: addresses, protocol, length.
    let pseudo = words(&out[26..TRANSPORT]) + protocol as u64 + u64::from(length);
    checksum(pseudo, &out[TRANSPORT..])
}

/// Sum of big-endian 16-bit words; `bytes` is of even length.
fn words(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(2).map(|w| u64::from(u16::from_be_bytes([w[0], w[1]]))).sum()
}

/// The Internet checksum (RFC 1071) over `bytes` and what was summed before.
fn checksum(before: u64, bytes: &[u8]) -> u16 {
    let mut sum = before + words(bytes);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // Folded above to sixteen bits.
    !(sum as u16)
}
