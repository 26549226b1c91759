//! What a host does with packets before its link and after it, whatever the transport: its clock, the work of its processor, what it holds of a
//! connection, and how its network card sends what it was handed at once.
//!
//! | file | what |
//! |---|---|
//! | `clock.rs` | when a host's timers expire |
//! | `work.rs` | what takes a host's processor time: packets that leave, connections that it opens |
//! | `small_queue.rs` | how much of a connection its host holds |
//! | `send_buffer.rs` | how much of what an application writes a socket takes |
//! | `offload.rs` | segmentation offload: how much TCP hands to the network card at once |
//! | `model.rs` | what hosts are made of and what they cost: what users set under `[hosts]` |
//! | `machines.rs` | the hosts of a run, where they cost something |
//! | `receive.rs` | a receive queue and its processor: interrupts and NAPI polls |
//! | `gro.rs` | which segments become one before TCP sees them |
//!
//! With the knobs of profiles `ns2` and `rfc`, and `hosts = "ideal"`, a host costs nothing, and none of this is asked.

pub mod clock;
pub mod gro;
pub mod machines;
pub mod model;
pub mod offload;
pub mod receive;
pub mod send_buffer;
pub mod small_queue;
pub mod work;
