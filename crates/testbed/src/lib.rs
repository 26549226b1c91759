//! The switch of the engine `testbed`: packets of network namespaces on a running kernel, through the ports of `fanin-switch`, in real time.
//!
//! Each host is a namespace with one veth; the other ends lie in one namespace, where this process takes every packet out of a ring with
//! the kernel's time stamp of its arrival. What happens to it follows from these time stamps alone, by the code of the simulator: when
//! this process gets the CPU does not matter, except that a packet may be released late. [`figures`] says how late.
//!
//! | room | what is in it |
//! |---|---|
//! | [`config`] | what the switch is told |
//! | [`figures`] | how honest a run was |
//! | `load` | what one CPU can carry |
//! | [`ring`] | packets in and out (AF_PACKET) |
//! | `frame` | headers of a packet, and its ECN mark |
//! | `switch` | the loop |

pub mod config;
pub mod figures;
mod frame;
mod load;
mod record;
pub mod ring;
mod switch;
mod sys;

pub use load::check;
pub use switch::run;
