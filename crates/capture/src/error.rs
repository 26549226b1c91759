//! What can go wrong: one sentence each, with the file, the place and what to do next.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use std::path::PathBuf;
use thiserror::Error;

/// Why a capture gave no results.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// Nothing there.
    #[error("{path}: there is no such file; check the name", path = .path.display())]
    NotFound {
        /// As given.
        path: PathBuf,
    },
    /// A folder.
    #[error("{path}: this is a directory, not a capture; name a file in it", path = .path.display())]
    IsDirectory {
        /// As given.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("{path}: cannot be read ({source}); check its permissions", path = .path.display())]
    Io {
        /// As given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Zero bytes.
    #[error("{path}: the file is empty; was the capture stopped before its first packet?", path = .path.display())]
    Empty {
        /// As given.
        path: PathBuf,
    },
    /// Neither pcap nor pcapng.
    #[error("{path}: not a packet capture: the file begins with {begins}; give a pcap or pcapng file, plain or gzip", path = .path.display())]
    NotACapture {
        /// As given.
        path: PathBuf,
        /// What its first bytes are.
        begins: String,
    },
    /// Compressed, but not with gzip.
    #[error("{path}: compressed with {with}, and only gzip can be read; decompress it first", path = .path.display())]
    Compressed {
        /// As given.
        path: PathBuf,
        /// Name of the compression.
        with: &'static str,
    },
    /// A version of the format that is undefined or too new.
    #[error(
        "{path}: {format} version {major}.{minor} is not supported (only {supported}); save it again with `editcap` or check that the file is not damaged",
        path = .path.display()
    )]
    UnsupportedVersion {
        /// As given.
        path: PathBuf,
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// As in the file.
        major: u16,
        /// As in the file.
        minor: u16,
        /// What can be read.
        supported: &'static str,
    },
    /// Packets of a kind that cannot be decoded.
    #[error(
        "{path}: link type {linktype} is not supported (Ethernet, Linux cooked, raw IP and loopback are); capture on an Ethernet interface or convert the file",
        path = .path.display()
    )]
    UnknownLinktype {
        /// As given.
        path: PathBuf,
        /// Its number in the registry of link types.
        linktype: u32,
    },
    /// A whole capture without any packet.
    #[error("{path}: the capture holds no packets; check the capture filter and interface", path = .path.display())]
    NoPackets {
        /// As given.
        path: PathBuf,
    },
    /// Packets, but no TCP among them.
    #[error("{path}: {}; check the capture filter and interface", no_tcp(*.packets, *.cut, .partial), path = .path.display())]
    NoTcp {
        /// As given.
        path: PathBuf,
        /// Packets in the file.
        packets: u64,
        /// How many of them are cut before the end of their headers.
        cut: u64,
        /// Set when the file is damaged as well.
        partial: Option<Partial>,
    },
    /// Damaged before the first packet.
    #[error("{path}: {damage} (byte {at_byte}, before the first packet); nothing could be read, so capture again or try `pcapfix`", path = .path.display())]
    Damaged {
        /// As given.
        path: PathBuf,
        /// What is wrong.
        damage: Damage,
        /// Where, in the (uncompressed) data.
        at_byte: u64,
    },
    /// The caller's callback asked to stop.
    #[error("{path}: stopped after {packets} packets, as asked", path = .path.display())]
    Interrupted {
        /// As given.
        path: PathBuf,
        /// Packets read so far.
        packets: u64,
    },
}

fn no_tcp(packets: u64, cut: u64, partial: &Option<Partial>) -> String {
    let s = if packets == 1 { "" } else { "s" };
    let mut text = format!("no TCP in its {packets} packet{s}");
    if cut > 0 {
        text += &format!(" ({cut} cut before the end of the headers)");
    }
    if let Some(p) = partial {
        text += &format!(", and {} (byte {})", p.damage, p.at_byte);
    }
    text
}

/// What is wrong with the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Damage {
    /// Fewer bytes than a file header has.
    #[error("the file ends inside its own header")]
    CutInFileHeader,
    /// Reserved bits of the link type are set.
    #[error("the file header's link type field 0x{0:08x} has reserved bits set")]
    ReservedLinktype(u32),
    /// The end of the file is in a packet's record header.
    #[error("the file ends inside the record header of packet {packet}")]
    CutInRecordHeader {
        /// Number of the packet, from one.
        packet: u64,
    },
    /// The end of the file is in a packet.
    #[error("the file ends inside packet {packet}")]
    CutInPacket {
        /// Number of the packet, from one.
        packet: u64,
    },
    /// The end of the file is in a pcapng block.
    #[error("the file ends inside a block")]
    CutInBlock,
    /// A packet longer than any capture tool stores.
    #[error("packet {packet} claims {length} stored bytes, more than any capture tool writes")]
    ImpossibleLength {
        /// Number of the packet, from one.
        packet: u64,
        /// Its claim.
        length: u32,
    },
    /// A pcapng block whose length cannot be.
    #[error("a block claims a length of {0} bytes, which cannot be")]
    BlockLength(u32),
    /// The two lengths of a pcapng block differ.
    #[error("a block says it has {first} bytes at its beginning and {second} at its end")]
    BlockTrailer {
        /// Length in front.
        first: u32,
        /// Length behind.
        second: u32,
    },
    /// A pcapng option longer than its block.
    #[error("an option claims {0} bytes, more than its block has left")]
    OptionLength(u16),
    /// Neither byte order.
    #[error("a section header has the byte-order mark 0x{0:08x}, which is none")]
    ByteOrder(u32),
    /// A later section of a version that cannot be read.
    #[error("a section of version {0}.{1} follows, which is not supported")]
    SectionVersion(u16, u16),
    /// A packet of an interface that was never described.
    #[error("packet {packet} belongs to interface {interface}, which the file does not describe")]
    UnknownInterface {
        /// Number of the packet, from one.
        packet: u64,
        /// Its claim.
        interface: u32,
    },
    /// The gzip stream stops.
    #[error("the gzip data end too early")]
    GzipCut,
    /// The gzip stream is wrong.
    #[error("the gzip data are corrupt: {0}")]
    GzipCorrupt(String),
    /// The system could not read on.
    #[error("reading failed: {0}")]
    Read(String),
}

/// Only the front of the file could be read; the results are about that part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Whole packets before the damage.
    pub packets: u64,
    /// Where the damage begins, in the (uncompressed) data.
    pub at_byte: u64,
    /// What it is.
    pub damage: Damage,
}

impl std::fmt::Display for Partial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} (byte {}); the results are about the {} packets before it, so capture again to have the rest",
            self.damage, self.at_byte, self.packets
        )
    }
}

impl Serialize for Partial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut s = serializer.serialize_struct("Partial", 3)?;
        s.serialize_field("packets", &self.packets)?;
        s.serialize_field("at_byte", &self.at_byte)?;
        s.serialize_field("message", &self.to_string())?;
        s.end()
    }
}

/// Why a workload could not be made, read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// Cannot be read.
    #[error("{path}: cannot be read ({source}); check the name and its permissions", path = .path.display())]
    Read {
        /// As given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Cannot be written.
    #[error("{path}: cannot be written ({source}); choose another place", path = .path.display())]
    Write {
        /// As given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not JSON, or not ours.
    #[error("{path}: not a workload file: {reason}; make one with `fanin trains CAPTURE --workload FILE`", path = .path.display())]
    Format {
        /// As given.
        path: PathBuf,
        /// Line, column and what was expected.
        reason: String,
    },
    /// Made by a later fanin.
    #[error("{path}: workload version {found}, and this fanin reads version {supported}; make it again from the capture", path = .path.display())]
    Version {
        /// As given.
        path: PathBuf,
        /// As in the file.
        found: u32,
        /// What can be read.
        supported: u32,
    },
    /// The chosen aggregator is not in the capture.
    #[error("no host {ip} received TCP payload in this capture; choose one of {known}")]
    UnknownAggregator {
        /// As asked.
        ip: std::net::IpAddr,
        /// Who did, best first.
        known: String,
    },
    /// Nearly all of the traffic would be inferred.
    #[error(
        "{packets} packets with {bytes} bytes of payload to and from {ip} are in the file, and {missing} more bytes would have to be inferred from jumps of \
         sequence numbers; capture again, all packets and at the host itself"
    )]
    Unseen {
        /// The aggregator.
        ip: std::net::IpAddr,
        /// In the file.
        packets: u64,
        /// In the file, seen for the first time.
        bytes: u64,
        /// Not in the file.
        missing: u64,
    },
    /// Nothing to replay.
    #[error("no TCP payload in this capture, so there is nothing to replay; check the capture filter")]
    NoPayload,
}
