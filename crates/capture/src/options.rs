//! What a caller may choose.

use fanin_units::{Duration, Rate};

/// What ends a packet train: a gap between two data packets of one direction longer than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The connection's smoothed round trip (weight 0.25 per sample, as TCP-TRIM's `smooth_RTT`), never below `floor`.
    ///
    /// The floor matters: a tap sees round trips at its own place in the path. In front of an empty queue, or behind the
    /// full one, they are far shorter than what the sender experiences, and used alone they cut one response into many
    /// trains.
    SmoothedRtt {
        /// The shortest gap that may end a train.
        floor: Duration,
    },
    /// The same gap for every connection.
    Fixed(Duration),
}

impl Gap {
    /// The default floor of [`Gap::SmoothedRtt`].
    ///
    /// Of the floors 0, 100, 200, 300, 500, 700 us, 1 and 2 ms this one makes most responses of the four captures with a logging client
    /// (`tests/data/pcap`) one train exactly: 4785 of 6237 (at 0: 4628, at 500 us: 4578, at 1 ms: 3329). Their think times are mostly
    /// below 1 ms, and a full 40-packet queue at 1 Gb/s delays by 0.5 ms.
    pub const DEFAULT_FLOOR: Duration = Duration::us(300);
}

impl Default for Gap {
    fn default() -> Gap {
        Gap::SmoothedRtt { floor: Gap::DEFAULT_FLOOR }
    }
}

/// How to analyse a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What ends a packet train. A pause of the application inside a response (see [`crate::Burst`]) is at least twice as long, and 2 ms.
    pub gap: Gap,
    /// The rates of the links, where they are known. They say how much of the wait for an answer is the network's; without them the fastest that
    /// the capture shows counts, and 1 Gb/s where it shows too little.
    pub links: Option<LinkRates>,
}

/// How fast the links of a rack are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRates {
    /// Between the servers and the switch.
    pub servers: Rate,
    /// Between the switch and the aggregator.
    pub aggregator: Rate,
}

/// How far the reader has come; handed to the caller's callback every few megabytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file as stored (compressed bytes for a `.gz`).
    pub bytes_read: u64,
    /// Size of the file as stored, where it is known (not for a pipe).
    pub bytes_total: Option<u64>,
    /// Packets read.
    pub packets: u64,
}
