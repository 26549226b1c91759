//! The TCP endpoint: byte-sequence sender and receiver around a [`fanin_cc::CongestionControl`].
//!
//! | file | what |
//! |---|---|
//! | `sender.rs` | what to send and when; state machine Open, Disorder, CWR, Recovery, Loss |
//! | `recovery.rs` | finding and repairing losses: Reno, NewReno, SACK, RACK-TLP with PRR |
//! | `scoreboard.rs` | what is outstanding |
//! | `rtt.rs` | RTT estimation and the retransmission timer |
//! | `validation.rs` | idle and application-limited periods |
//! | `receiver.rs` | reassembly, ACKs, ECN echo, advertised window |

mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod validation;

pub use receiver::Receiver;
pub use sender::{Config, Sender};
