//! Plays a plan's workload on real sockets: one process for the hosts of a whole network.
//!
//! A socket belongs to the network namespace it was made in, so one process can hold the sockets of all hosts and wait for them in one
//! place. It speaks sockets and nothing else: the virtual kernel and namespaces of a running kernel are the same to it.
//!
//! | room | what is in it |
//! |---|---|
//! | [`plan`] | what to play, as a file |
//! | [`log`] | what was seen, as a file |
//! | `http` | requests and responses of HTTP, if the plan says so |
//! | [`play`] | the loop |

mod http;
pub mod log;
mod messages;
pub mod plan;
mod player;
mod socket;
pub mod sys;

pub use player::play;
