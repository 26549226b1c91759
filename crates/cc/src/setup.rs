//! What an algorithm knows before the first packet.

use crate::{Counting, Profile};
use fanin_units::{Bytes, Duration, Rate};

/// What the operator configured about the path: TRIM's C, D and B, IA-TCP's capacity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathKnowledge {
    /// Rate of the bottleneck.
    pub rate: Rate,
    /// Round trip of a full-size packet through empty queues, serialisation included.
    pub base_rtt: Duration,
    /// Buffer of the bottleneck port in packets of full size.
    pub buffer_packets: f64,
}

/// Constants of a connection.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Bytes a full segment takes on the wire.
    pub wire: Bytes,
    /// Initial window in packets.
    pub initial_window: f64,
    /// Initial slow-start threshold in packets.
    pub initial_ssthresh: f64,
    /// How an ACK is turned into growth.
    pub counting: Counting,
    /// Jiffies per second, for kernel forms that count in them.
    pub hz: u32,
    /// Whose defaults.
    pub profile: Profile,
    /// What is known of the path; always present in a simulation.
    pub path: Option<PathKnowledge>,
}

impl Default for Setup {
    /// The RFC's sender on an unknown path, with the papers' initial window of 2.
    fn default() -> Setup {
        Setup {
            mss: 1460,
            wire: Bytes::new(1500),
            initial_window: 2.0,
            initial_ssthresh: f64::INFINITY,
            counting: Counting::PerAck,
            hz: 250,
            profile: Profile::Rfc,
            path: None,
        }
    }
}
