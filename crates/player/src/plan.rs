//! What to play. Times are nanoseconds from the start of the run.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// A workload with every choice made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// Connections between them.
    pub connections: Vec<Connection>,
    /// One-way byte streams; one or both directions of a connection.
    pub flows: Vec<Flow>,
    /// What is sent on them.
    pub messages: Vec<Message>,
    /// How many barriers there are: one opens when every message that completes it is delivered, or as its gate says.
    pub barriers: u32,
    /// Barriers that open otherwise.
    pub gates: Vec<Gate>,
    /// Datagrams at a constant rate.
    pub datagrams: Vec<Datagrams>,
    /// The run ends here at the latest.
    pub end_ns: u64,
    /// It ends when every message of finite size is delivered.
    pub stop_when_done: bool,
    /// An application reads when so many bytes have come, or its message is complete; 1 reads at once.
    pub read_lowat: u32,
    /// Clients speak HTTP to servers that are there already; nothing listens here.
    #[serde(default)]
    pub http: bool,
    /// A BPF map of sockets that a congestion control reads deadlines from; by its id.
    #[serde(default)]
    pub deadline_map: Option<u32>,
    /// Sockets have the virtual kernel's own options, by which applications say what they expect and send.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub options: bool,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Path of its network namespace; empty: the player's own.
    pub namespace: String,
    /// Its address.
    pub address: Ipv4Addr,
}

/// A TCP connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Position of the host that connects.
    pub client: u32,
    /// Position of the host that listens.
    pub server: u32,
    /// Local port at the client.
    pub client_port: u16,
    /// Port that the server listens on.
    pub server_port: u16,
    /// Congestion control as the kernel names it.
    pub cc: String,
    /// Congestion control of the end that listens, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cc: Option<String>,
    /// Open before the run begins.
    pub early: bool,
    /// TCP_NODELAY at both ends.
    pub nodelay: bool,
}

/// A one-way byte stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Position of its connection.
    pub connection: u32,
    /// From client to server.
    pub from_client: bool,
    /// Sends nothing new from here on: the connection is reset.
    pub stop_ns: Option<u64>,
}

/// Something that an application sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Position of its flow.
    pub flow: u32,
    /// Payload; none: endless; 0: the connection is opened with it, and nothing is sent.
    pub bytes: Option<u64>,
    /// When the application hands it to TCP.
    pub release: Release,
    /// Delivering it counts towards this barrier.
    pub completes: Option<u32>,
    /// It should be delivered so long after its release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
}

/// When an application hands a message to TCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// At this time.
    At(u64),
    /// So long after this barrier has opened.
    After(u32, u64),
    /// At this time, or when this barrier opens if that is later.
    NotBefore(u64, u32),
}

/// A barrier that opens when some of several messages have come so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// What opens.
    pub barrier: u32,
    /// The messages.
    pub of: Vec<u32>,
    /// How many of them it takes.
    pub need: u32,
    /// It is enough that they are handed to TCP; otherwise they must be delivered.
    pub released: bool,
}

/// Datagrams at a constant rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Position of the sending host.
    pub from: u32,
    /// Position of the receiving host.
    pub to: u32,
    /// Local port at the sender.
    pub port: u16,
    /// Port at the receiver.
    pub to_port: u16,
    /// Payload of each.
    pub bytes: u32,
    /// From one to the next, ps.
    pub interval_ps: u64,
    /// The first.
    pub start_ns: u64,
    /// None from here on.
    pub stop_ns: u64,
}
