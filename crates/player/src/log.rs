//! What was seen. Times are nanoseconds of the kernel's monotonic clock.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that the sockets told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// Time zero of the plan.
    pub start_ns: u64,
    /// When the last thing was done.
    pub end_ns: u64,
    /// One per message of the plan.
    pub messages: Vec<Message>,
    /// One per flow of the plan.
    pub flows: Vec<Flow>,
    /// One per stream of datagrams.
    pub datagrams: Vec<Datagrams>,
    /// One per host in a network namespace of its own: how its timers expired, by the names of `/proc/net/netstat`.
    #[serde(default)]
    pub timeouts: Vec<BTreeMap<String, u64>>,
}

/// Counters of the retransmission timer's expiries: `TCPTimeouts` has all, the others say in which state the first of a row struck
/// (tcp_retransmit_timer).
pub const TIMEOUTS: [&str; 6] = [
    "TCPTimeouts",
    "TCPSackRecoveryFail",
    "TCPSackFailures",
    "TCPLossFailures",
    "TCPRenoRecoveryFail",
    "TCPRenoFailures",
];

/// The counters of [`TIMEOUTS`] in the text of `/proc/net/netstat`: pairs of lines, names and values.
pub fn timeouts_of(netstat: &str) -> BTreeMap<String, u64> {
    let lines: Vec<&str> = netstat.lines().collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| pair[0].split_whitespace().zip(pair[1].split_whitespace()));
    let wanted = pairs.filter(|(name, _)| TIMEOUTS.contains(name));
    wanted.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// When it was handed to TCP.
    pub release_ns: Option<u64>,
    /// When its last byte was read.
    pub done_ns: Option<u64>,
    /// Retransmission timeouts of the sender's socket in between.
    pub timeouts: u32,
}

/// A flow at the end of the run, by its sender's and receiver's `TCP_INFO`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// tcpi_bytes_acked.
    pub bytes_acked: u64,
    /// tcpi_bytes_sent: retransmissions included.
    pub bytes_sent: u64,
    /// tcpi_data_segs_out.
    pub segments: u64,
    /// tcpi_total_retrans.
    pub retransmissions: u64,
    /// tcpi_total_rto: every expiry of the retransmission timer, also the second and later ones of a row.
    pub timeouts: u64,
    /// tcpi_total_rto_time, milliseconds.
    pub timeout_ms: u64,
    /// tcpi_snd_cwnd, packets.
    pub cwnd: u32,
    /// tcpi_rtt, microseconds.
    pub srtt_us: u32,
    /// tcpi_min_rtt, microseconds; none: never measured.
    pub min_rtt_us: Option<u32>,
    /// tcpi_delivered_ce: packets that the receiver said were marked.
    pub delivered_ce: u64,
}

/// A stream of datagrams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Sent.
    pub sent: u64,
    /// Received.
    pub received: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_names() {
        let text = "TcpExt: SyncookiesSent TCPTimeouts TCPLossFailures\nTcpExt: 9 3 2\nIpExt: InNoRoutes\nIpExt: 7\n";
        let found = timeouts_of(text);
        assert_eq!(found.get("TCPTimeouts"), Some(&3));
        assert_eq!(found.get("TCPLossFailures"), Some(&2));
        assert_eq!(found.len(), 2);
    }
}
