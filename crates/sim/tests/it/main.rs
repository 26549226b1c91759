//! The crate from outside, as one binary: each of these files would be linked on its own otherwise.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
mod connections;
mod endpoint;
mod fack;
mod hosts;
mod laws;
mod linux;
mod linux_ecn;
mod linux_without_sack;
mod long;
mod ndp;
mod offload;
mod opening;
mod paths;
mod recovery;
mod swift;
mod theory;
