//! fanin's algorithms inside real Linux TCP: what Linux's callbacks (`tcp_congestion_ops`) mean as events of [`fanin_cc`], and what the
//! algorithm's decision means as `snd_cwnd`, `snd_ssthresh` and a pacing rate.
//!
//! It is linked into the virtual kernel behind `kernel/net/cc.c`, so it has no clock, no I/O and no standard library.
//!
//! | room | what is in it |
//! |---|---|
//! | [`Program`] | an algorithm with its settings and what it knows of the path; its encoding |
//! | [`Socket`] | one connection's algorithm between Linux's callbacks |
//! | [`receiver`] | policies of receiving hosts, and what they are told |
//! | [`event`] | what an algorithm was told, as data: recorded in the kernel, replayed anywhere ([`replay`]) |

#![no_std]

extern crate alloc;

pub mod event;
mod program;
pub mod receiver;
pub mod replay;
mod socket;

pub use program::{Path, Program};
pub use socket::{Hold, Out, Sample, Socket, View};
