//! The workload file: what the applications asked for and when, without what the network made of it.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Version of the file format written and read here.
pub const WORKLOAD_VERSION: u32 = 1;

/// Traffic towards one aggregator, ready to be replayed over another network and another TCP.
///
/// Times are whole nanoseconds. Everything is seen from the aggregator: a *request* is what it sends, a *response* is what comes back,
/// whoever opened the connection. A replay should keep the order within a connection: wait `think_ns`, send the request, let the server
/// wait `service_ns`, send the pieces; the next message begins when all of that has arrived. Absolute starts are for the first message of
/// a connection and for reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Always `fanin-workload`.
    pub format: String,
    /// See [`WORKLOAD_VERSION`].
    pub version: u32,
    /// Name of the capture it came from.
    pub source: String,
    /// Who receives.
    pub aggregator: IpAddr,
    /// Who sends, in order of first appearance.
    pub servers: Vec<IpAddr>,
    /// One per TCP connection with the aggregator that carried payload, in order of start.
    pub connections: Vec<ReplayConnection>,
}

/// What one connection carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayConnection {
    /// Index of the other side in [`Workload::servers`].
    pub server: u32,
    /// Number of the connection in the capture.
    pub connection: u32,
    /// First packet of the connection, from the start of the capture.
    pub start_ns: u64,
    /// The connection was opened within the capture, so a replay should open it too.
    pub opened: bool,
    /// In order.
    pub messages: Vec<Message>,
}

/// A request and the response to it, as the applications wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// When it began at the tap, from the start of the capture.
    pub start_ns: u64,
    /// How long the aggregator waited after it had the previous response; zero in the first message.
    pub think_ns: u64,
    /// What the aggregator sent; zero when the server spoke unasked.
    pub request_bytes: u64,
    /// How long the server took to begin its answer.
    pub service_ns: u64,
    /// What the server sent in all.
    pub response_bytes: u64,
    /// How the server wrote it: at least one piece unless there was no response.
    pub pieces: Vec<Piece>,
    /// The aggregator sent this request before it had all of the previous response.
    pub overlapped: bool,
}

/// Bytes written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// How long the application paused after the piece before had been delivered; zero for the first.
    pub pause_ns: u64,
    /// How much it wrote.
    pub bytes: u64,
}
