//! What a reader of the numbers should know, though the file could be read.

use crate::Protocol;
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
    /// Packets that came so late that those after them in time had been used.
    TooLate {
        /// Packets like that.
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
    /// Requests whose messages could not be told apart.
    MessagesUnread {
        /// Of which protocol; none: of one that is not known, which has several under way on a connection.
        protocol: Option<Protocol>,
        /// How many.
        unread: u64,
        /// Of how many.
        of: u64,
        /// Payload that would tell them is not stored.
        cut: bool,
    },
}

impl Warning {
    /// A stable name for programs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Warning::Mirrored { .. } => "mirrored",
            Warning::Unsorted { .. } => "unsorted",
            Warning::TooLate { .. } => "too-late",
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
            Warning::MessagesUnread { .. } => "messages-unread",
        }
    }
}

/// `1 packet`, `2 packets`.
fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `packet 7 has`, or `3 packets (the first is packet 7) have`.
fn packets(n: u64, first: u64, one: &str, several: &str) -> String {
    if n == 1 {
        format!("packet {first} {one}")
    } else {
        format!("{n} packets (the first is packet {first}) {several}")
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Mirrored { packets: n, first } => write!(
                f,
                "{} an earlier packet exactly, as a mirror port makes them; each packet is counted once",
                packets(*n, *first, "repeats", "repeat")
            ),
            Warning::Unsorted { packets: n, first } => write!(
                f,
                "{} earlier than the packet before in the file; packets were analysed in order of time",
                packets(*n, *first, "is", "are")
            ),
            Warning::TooLate { packets: n, first } => write!(
                f,
                "{} too far from {} place in time, so {} a later time: sort the file (`reordercap IN OUT`) and read it again",
                packets(*n, *first, "is", "are"),
                if *n == 1 { "its" } else { "their" },
                if *n == 1 { "it took" } else { "they took" }
            ),
            Warning::ClockJump { packets: n, first, back_ns } => write!(
                f,
                "the time jumps back by {:.3} s at packet {first}; {} the time of the packet before, so check the gaps around there",
                *back_ns as f64 / 1e9,
                if *n == 1 { "it took".to_owned() } else { format!("{n} packets took") }
            ),
            Warning::BadFraction { packets: n, first } => write!(
                f,
                "{} a time stamp whose fraction is a second or more; the excess was carried into the seconds, so do not trust these times",
                packets(*n, *first, "has", "have")
            ),
            Warning::NoTime { packets: n, first } => write!(
                f,
                "{} no time stamp and took the time of the packet before; capture with enhanced packet blocks to have times",
                packets(*n, *first, "has", "have")
            ),
            Warning::StoredMoreThanOriginal { packets: n, first } => write!(
                f,
                "{} fewer bytes on the wire than the file holds; lengths were taken from the IP headers",
                packets(*n, *first, "claims", "claim")
            ),
            Warning::BadHeaders { packets: n, first } => write!(
                f,
                "{} header lengths that contradict each other; what could be read was counted, the payload was not trusted",
                packets(*n, *first, "has", "have")
            ),
            Warning::HeadersCut { packets: n, first } => write!(
                f,
                "{} before the end of the headers and left out; capture with a snaplen of 128 or more",
                packets(*n, *first, "is cut", "are cut")
            ),
            Warning::Fragments { packets: n, first } => write!(
                f,
                "{} without a TCP header and left out",
                packets(*n, *first, "is an IP fragment", "are IP fragments")
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
            Warning::MessagesUnread { protocol: None, unread, of, .. } => write!(
                f,
                "{unread} of {of} times one side spoke on connections of a protocol that fanin does not know, several requests were under way: which answer is whose is not told, and messages and requests are fewer and longer than they were; give the application's traces (`--spans`)"
            ),
            Warning::MessagesUnread { protocol: Some(protocol), unread, of, cut } => write!(
                f,
                "{unread} of {of} requests in {} could not be told from those in flight with them, {}",
                protocol.name(),
                match (protocol, cut) {
                    (Protocol::Tls, false) =>
                        "because they are encrypted; counts and times of requests on these connections are not reliable: give the application's traces (`--spans`)",
                    (Protocol::WebSocket, _) =>
                        "because its servers send what no request asks for, or several messages for one request; times of requests on these connections are not reliable: give the application's traces (`--spans`)",
                    (_, true) =>
                        "because the stored part of each packet does not hold their heads; capture with a larger snaplen (`tcpdump -s 256` or more)",
                    (_, false) =>
                        "so that requests on these connections are counted by turns; give the application's traces (`--spans`) to know them",
                }
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
