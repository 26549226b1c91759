//! A rack and a capture's traffic that targets have in common.
#![allow(dead_code)]

use fanin_capture::Workload;
use fanin_scenario::Replay;
use std::path::Path;

pub const RACK: &str = "[rack]\nrate = \"1Gbps\"\ndelay = \"25us\"\nbuffer = \"100p\"";

const WORKLOAD: &str = include_str!("workload.json");

/// Of two connections with two messages each.
pub fn replay() -> Replay {
    Replay::from(&Workload::parse(WORKLOAD, Path::new("small")).unwrap_or_else(|e| panic!("{e}")))
}

/// Other files are not a fuzzer's to read.
pub fn names_a_file(text: &str) -> bool {
    text.contains('/') || text.contains(".csv") || text.contains(".toml")
}
