//! What the switch is told, as a file.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Where the packets are, and what to do with them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Path of the network namespace that has the hosts' other ends.
    pub namespace: PathBuf,
    /// The network, as `fanin-fabric` encodes it.
    pub network: PathBuf,
    /// Where the record of every packet goes.
    pub record: PathBuf,
    /// Where the [`crate::figures::Figures`] go.
    pub figures: PathBuf,
    /// One per host, in the order of the network's hosts.
    pub hosts: Vec<Host>,
    /// Largest IP packet of any host, bytes.
    pub mtu: u32,
    /// The CPU that the switch has to itself.
    pub cpu: usize,
    /// Real-time priority (SCHED_FIFO), 1 to 99; 0: an ordinary process.
    pub priority: i32,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The switch's end of its veth.
    pub device: String,
    /// Its address.
    pub address: Ipv4Addr,
}
