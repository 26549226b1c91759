//! Output ports, queue disciplines and shared buffers of a switch, as pure state machines.
//!
//! Nothing here has a clock, a calendar or an operating system (`no_std` with `alloc`). The caller says "this packet arrives at t" and
//! asks "when is the next departure?". The simulator, a queue discipline in a kernel and a switch in real time run the same code.
//!
//! | you want to | look at |
//! |---|---|
//! | run a switch of your own | [`Switch`] |
//! | drive ports from a calendar | [`Port`], [`SharedBuffer`] |
//! | add a queue discipline | one file in `disciplines/` and one line in `disciplines/mod.rs` |
//! | draw random numbers as the simulator does | [`random::Stream`] |
//!
//! Times are picoseconds since a start that the caller chooses.
//!
//! ```
//! use fanin_switch::{Order, Packet, Port, Switch, flags};
//! use fanin_units::{QueueLimit, Rate};
//! let port = Port::new(Rate::gbps(1), 0, Some(QueueLimit::Packets(2)), None, Order::Fifo);
//! let mut switch = Switch::new(vec![port], None);
//! let packet = |handle| Packet { handle, flow: 0, bytes: 1500, flags: flags::ECT };
//! let taken = (1..=3).map(|n| switch.offer(0, 0, packet(n)).accepted).collect::<Vec<_>>();
//! assert_eq!(taken, [true, true, false]);
//! // 1500 bytes at 1 Gbps last 12 us.
//! assert_eq!(switch.next_event(), Some(12_000_000));
//! assert_eq!(switch.poll(12_000_000).map(|(_, packet)| packet.handle), Some(1));
//! assert_eq!(switch.poll(12_000_000), None);
//! ```

#![no_std]

extern crate alloc;

mod bucket;
pub mod disciplines;
mod packet;
mod port;
mod prefetch;
pub mod random;
mod ring;
mod shared;
mod switch;
mod totals;

pub use bucket::TokenBucket;
pub use packet::{Packet, flags};
pub use port::{Offer, Order, Port};
pub use prefetch::prefetch;
pub use ring::Ring;
pub use shared::SharedBuffer;
pub use switch::Switch;
pub use totals::Totals;
