//! The tests of this crate from outside, in one binary.
#![allow(clippy::unwrap_used)]

mod host;
mod net;
mod receivers;
