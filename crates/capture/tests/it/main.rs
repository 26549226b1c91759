//! The crate from outside, as one binary: each of these files would be linked on its own otherwise.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
mod connections;
mod damaged;
mod formats;
mod fuzz;
mod index;
mod long;
mod merged;
mod messages;
mod trains;
mod truth;
mod workload;
mod writer;
mod writes;
