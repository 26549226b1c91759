//! What the virtual kernel's only program is told: the hosts, and what they play.

use fanin_player::plan::Plan;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Hosts and workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Guest {
    /// Settings of the whole machine, as paths below `/proc/sys` and values.
    pub sysctls: Vec<(String, String)>,
    /// As many as the plan has hosts.
    pub hosts: Vec<Host>,
    /// What to play.
    pub plan: Plan,
    /// Note what fanin's own congestion controls are told and decide.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notes: bool,
}

/// Settings of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Settings of its namespace, as paths below `/proc/sys` and values.
    pub sysctls: Vec<(String, String)>,
    /// Initial congestion window (`ip route ... initcwnd`), segments.
    pub initial_window: u32,
    /// Acknowledge every packet (`ip route ... quickack 1`).
    pub quickack: bool,
    /// TCP may hand many segments at once to the device (`ethtool -K eth0 tso on`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tso: bool,
    /// Segments that TCP hands down together cross the network as one packet up to so many bytes on the wire; 0: none do.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub whole: u32,
    /// Bytes of a frame on the wire beside its IP packet, where `whole` is not 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overhead: u32,
    /// The receive queue of its network card; without one a packet is with IP the instant that it arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Card>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A network card that interrupts (`ethtool -C`), and the poll that follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Segments that follow each other are merged.
    pub gro: bool,
    /// Packets of one poll.
    pub budget: u32,
    /// It interrupts at once when so many packets wait; 0: never.
    pub frames: u32,
    /// It interrupts so long after a packet has come, ns.
    pub delay_ns: u64,
    /// Least time between two interrupts, ns.
    pub gap_ns: u64,
    /// How long merged segments may wait for more (`gro_flush_timeout`), ns.
    pub flush_ns: u64,
}

/// Where the namespace of a host is, while the kernel runs.
pub fn namespace(host: usize) -> PathBuf {
    Path::new("/run/netns").join(host.to_string())
}

/// What it leaves behind, beside the player's log: one counter of one host.
pub type Counter = (u32, String, u64);

/// Files in the folder that both sides see.
pub mod files {
    /// What to do.
    pub const GUEST: &str = "guest.json";
    /// The network, as `fanin-fabric` encodes it.
    pub const NETWORK: &str = "network";
    /// Fanin's own congestion controls of this run, as `fanin-linuxcc` encodes them; only where there are any.
    pub const PROGRAMS: &str = "programs";
    /// Those of receiving hosts, and whom they control; only where there are any.
    pub const RECEIVERS: &str = "receivers";
    /// What each of them was told and decided, if that is asked for.
    pub const NOTES: &str = "notes";
    /// Every packet.
    pub const RECORD: &str = "record";
    /// What the player saw.
    pub const LOG: &str = "log.json";
    /// Counters of the hosts' kernels.
    pub const COUNTERS: &str = "counters.json";
    /// Share of the run's time that has passed.
    pub const PROGRESS: &str = "progress";
    /// Why there is no log.
    pub const FAILURE: &str = "failure";
}
