//! The crate from outside, as one binary: each of these files would be linked on its own otherwise.
#![allow(missing_docs, clippy::unwrap_used)]

mod bursts;
mod distributions;
mod errors;
mod every_key;
mod every_knob;
mod examples;
mod hosts;
mod never_panics;
mod parallel;
mod pcap;
mod rack;
mod topologies;
mod warnings;
mod workloads;
