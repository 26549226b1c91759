//! The network between real TCP stacks: what the simulator's ports and links do, done to packets of a real kernel.
//!
//! It is linked into the virtual kernel behind `kernel/net/fanin.c`, so it has no clock, no I/O and no standard library: the kernel says
//! what time it is, takes the packets that have arrived, and writes out the record. A port accepts, drops or marks as the simulator's does:
//! a FIFO port knows when a packet leaves as soon as it accepts it (`start = max(now, free_at)`).
//!
//! | room | what is in it |
//! |---|---|
//! | [`network`] | what a network is made of, and its encoding |
//! | [`Fabric`] | packets on their way |
//! | [`record`] | what is written about them, and its decoding |
//!
//! Times are picoseconds of the kernel's monotonic clock. The kernel's timers have nanoseconds: an arrival is handed over at the next
//! whole nanosecond.

#![no_std]

extern crate alloc;

mod fabric;
mod link;
pub mod network;
pub mod record;

pub use fabric::{Datagram, Fabric, Headers, Sender, Step};
