//! What a reader of the numbers should know, though the file could be read.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use std::fmt;

/// One remark about a capture. `Display` is a sentence for people; as data it is `{kind, message}`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A mirror port (or a capture on several interfaces) delivered packets more than once.
    Mirrored {
        /// Copies, beyond the first of each packet.
        packets: u64,
        /// Number of the first copy, from one.
        first: u64,
    },
    /// Time stamps went back a little; packets were put in order of time.
    Unsorted {
        /// Packets that came too early in time.
        packets: u64,
        /// Number of the first, from one.
        first: u64,
    },
    /// Time stamps jumped back by more than a second; these packets were taken at the time of the packet before them.
    ClockJump {
        /// Packets so treated.
        packets: u64,
        /// Number of the first, from one.
        first: u64,
        /// How far the first went back.
        back_ns: u64,
    },
    /// The fraction of a second is a second or more.
    BadFraction {
        /// Packets with such a stamp.
        packets: u64,
        /// Number of the first, from one.
        first: u64,
    },
    /// Packets without a time stamp (pcapng simple packet blocks); they took the time of the packet before.
    NoTime {
        /// Packets without.
        packets: u64,
        /// Number of the first, from one.
        first: u64,
    },
    /// More bytes stored than the packet is said to have had.
    StoredMoreThanOriginal {
        /// Packets like that.
        packets: u64,
        /// Number of the first, from one.
        first: u64,
    },
    /// Headers whose lengths contradict each other.
    BadHeaders {
        /// Packets like that.
        packets: u64,
        /// Number of the first, from one.
        first: u64,
    },
    /// Snaplen so small that the TCP header is not complete.
    HeadersCut {
        /// Packets whose ports or sequence numbers are cut off and that were left out.
        packets: u64,
        /// Number of the first, from one.
        first: u64,
    },
    /// IP fragments behind the first were left out.
    Fragments {
        /// Fragments left out.
        packets: u64,
        /// Number of the first, from one.
        first: u64,
    },
    /// Packets on an interface whose link type is not supported.
    UnknownLinktype {
        /// The link type's number.
        linktype: u32,
        /// Packets left out.
        packets: u64,
    },
    /// Segments larger than any link carries: merged by segmentation or receive offload.
    MergedSegments {
        /// Payload of the largest.
        largest: u32,
    },
    /// Connections of which only one direction is in the file.
    OneSided {
        /// How many.
        connections: u64,
        /// Of how many.
        of: u64,
    },
    /// Connections whose beginning is not in the file.
    NoHandshake {
        /// How many.
        connections: u64,
        /// Of how many.
        of: u64,
    },
    /// Payload that was acknowledged or skipped but never captured.
    MissingData {
        /// Bytes.
        bytes: u64,
        /// Connections concerned.
        connections: u64,
    },
}

impl Warning {
    /// A stable name for programs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Warning::Mirrored { .. } => "mirrored",
            Warning::Unsorted { .. } => "unsorted",
            Warning::ClockJump { .. } => "clock-jump",
            Warning::BadFraction { .. } => "bad-fraction",
            Warning::NoTime { .. } => "no-time",
            Warning::StoredMoreThanOriginal { .. } => "stored-more-than-original",
            Warning::BadHeaders { .. } => "bad-headers",
            Warning::HeadersCut { .. } => "headers-cut",
            Warning::Fragments { .. } => "fragments",
            Warning::UnknownLinktype { .. } => "unknown-linktype",
            Warning::MergedSegments { .. } => "merged-segments",
            Warning::OneSided { .. } => "one-sided",
            Warning::NoHandshake { .. } => "no-handshake",
            Warning::MissingData { .. } => "missing-data",
        }
    }
}

/// `1 packet`, `2 packets`.
fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Mirrored { packets, first } => write!(
                f,
                "{} (the first is packet {first}) repeat an earlier packet exactly, as a mirror port makes them; each is counted once",
                count(*packets, "packet")
            ),
            Warning::Unsorted { packets, first } => write!(
                f,
                "the time goes back at {} (the first is packet {first}); packets were analysed in order of time",
                count(*packets, "packet")
            ),
            Warning::ClockJump { packets, first, back_ns } => write!(
                f,
                "the time jumps back by {:.3} s at packet {first}; {} taken at the time of the packet before, so check gaps around there",
                *back_ns as f64 / 1e9,
                if *packets == 1 { "1 packet was".to_owned() } else { format!("{packets} packets were") }
            ),
            Warning::BadFraction { packets, first } => write!(
                f,
                "the time stamps of {} (the first is packet {first}) have a fraction of a second or more; the excess was carried into the seconds, so do not trust these times",
                count(*packets, "packet")
            ),
            Warning::NoTime { packets, first } => write!(
                f,
                "{} (the first is packet {first}) have no time stamp and took the time of the packet before; capture with enhanced packet blocks to have times",
                count(*packets, "packet")
            ),
            Warning::StoredMoreThanOriginal { packets, first } => write!(
                f,
                "{} (the first is packet {first}) claim fewer bytes than the file holds of them; lengths were taken from the IP headers",
                count(*packets, "packet")
            ),
            Warning::BadHeaders { packets, first } => write!(
                f,
                "{} (the first is packet {first}) have header lengths that contradict each other; what could be read was counted, their payload was not trusted",
                count(*packets, "packet")
            ),
            Warning::HeadersCut { packets, first } => write!(
                f,
                "{} (the first is packet {first}) are cut before the end of the TCP header and were left out; capture with a snaplen of 128 or more",
                count(*packets, "packet")
            ),
            Warning::Fragments { packets, first } => write!(
                f,
                "{} (the first is packet {first}) are IP fragments without a TCP header and were left out",
                count(*packets, "packet")
            ),
            Warning::UnknownLinktype { linktype, packets } => write!(
                f,
                "{} on interfaces of link type {linktype}, which fanin cannot read, were left out",
                count(*packets, "packet")
            ),
            Warning::MergedSegments { largest } => write!(
                f,
                "packets of up to {largest} B of payload were merged by segmentation offload, so packets per train are not packets on the wire; turn offloads off (ethtool -K) to count those"
            ),
            Warning::OneSided { connections, of } => write!(
                f,
                "{connections} of {of} connections show one direction only; requests and round trips are inferred from acknowledgement numbers where they can be"
            ),
            Warning::NoHandshake { connections, of } => write!(
                f,
                "the beginning of {connections} of {of} connections is not in the file; who is client and who is server was guessed from the ports"
            ),
            Warning::MissingData { bytes, connections } => write!(
                f,
                "{bytes} B of payload of {} were acknowledged or skipped but are not in the file; they are counted where their place is known",
                count(*connections, "connection")
            ),
        }
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut s = serializer.serialize_struct("Warning", 2)?;
        s.serialize_field("kind", self.kind())?;
        s.serialize_field("message", &self.to_string())?;
        s.end()
    }
}
