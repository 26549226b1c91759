//! The TCP endpoint: byte-sequence sender and receiver around a [`fanin_cc::CongestionControl`].
//!
//! | file | what |
//! |---|---|
//! | `endpoint.rs` | all connections, as the engine sees them |
//! | `demand.rs` | many connections: ends that are made at first use and given up when it is over |
//! | `ended.rs` | what is left of these |
//! | `handshake.rs` | how connections open |
//! | `sender.rs` | the connection's sender: what the application and ACKs do to it |
//! | `timers.rs` | what a sender does without an ACK: its entry in the calendar, timeouts |
//! | `transmit.rs` | what may leave now |
//! | `bursts.rs` | the same where the network card cuts |
//! | `writes.rs` | what the application has written there so far |
//! | `window.rs` | the window in force, and what the algorithm is told |
//! | `recovery.rs` | the state machine Open, Disorder, CWR, Recovery, Loss; finding and repairing losses: Reno, NewReno, SACK |
//! | `prr.rs` | proportional rate reduction |
//! | `fack.rs` | Linux 3.2: losses by distance below the highest SACK |
//! | `rack.rs` | RACK-TLP: losses by time, tail-loss probes |
//! | `plain.rs` | Linux's recovery without SACK |
//! | `undo.rs` | taking reductions back: D-SACK, Eifel, F-RTO |
//! | `scoreboard.rs` | what is outstanding |
//! | `delivered.rs` | what an ACK delivered of that |
//! | `rates.rs` | delivery-rate samples |
//! | `rtt.rs` | RTT estimation and the retransmission timer |
//! | `validation.rs` | idle and application-limited periods |
//! | `receiver.rs` | reassembly, ACKs, ECN echo, advertised window |
//! | `full_segment.rs` | what the receiver takes for a full segment, and when an ACK is due by it |
//! | `reading.rs` | when the application reads, and which ACKs wait for that |
//! | `tuning.rs` | the receive buffer, and the window that follows from it |
//! | `uplink.rs` | what a sender touches when it acts |

mod bursts;
mod delivered;
mod demand;
mod ended;
mod endpoint;
mod fack;
mod full_segment;
mod handshake;
mod plain;
mod prr;
mod rack;
mod rates;
mod reading;
mod reassembly;
mod receiver;
mod recovery;
mod report;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod timers;
mod transmit;
mod tuning;
mod undo;
mod uplink;
mod validation;
mod window;
mod writes;

pub use endpoint::{Tcp, resolved_stack};
