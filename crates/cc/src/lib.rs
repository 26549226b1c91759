//! Congestion control as pure state machines: one file per algorithm, no clock, no randomness, no I/O, no simulator.
//!
//! A sender (the one in `fanin-sim`, a test, or another stack) tells a [`CongestionControl`] what happened and reads
//! back its [`Control`]: how much may be in flight and, for some, how fast. Everything an algorithm may know is in the event,
//! so a run is a function of its events and can be replayed against a kernel twin.
//!
//! | you want to | look at |
//! |---|---|
//! | add an algorithm | one file in `algorithms/` and one line in `algorithms/mod.rs` |
//! | add a slow start that any algorithm can use | [`SlowStart`], `algorithms/gss.rs` |
//! | act from the receiver's side | [`ReceiverControl`] |
//! | bring one from another language | [`extension`] |
//! | know where one can run on real hosts | [`registry::deployment`] |
//! | build one by name | [`registry::build`] |
//!
//! ```
//! use fanin_cc::{registry, Setup};
//! let transport = registry::build("newreno", &Setup::default(), &Default::default()).unwrap();
//! assert_eq!(transport.sender.control().cwnd, 2.0);
//! ```
//!
//! Without the feature `std` it runs where there is only an allocator, as in the virtual kernel: the same algorithms, no
//! [`extension`]s from outside, no suggestions for misspelt names.

#![cfg_attr(not(feature = "std"), no_std)]
// Where another crate of the same build links the standard library, its methods of f64 are found without `bare`.
#![cfg_attr(not(feature = "std"), allow(unused_imports, dead_code))]

extern crate alloc;

pub mod algorithms;
#[cfg(not(feature = "std"))]
mod bare;
mod control;
pub mod deploy;
mod event;
pub mod extension;
mod growth;
pub mod model;
mod names;
mod receiver;
pub mod registry;
mod setup;

pub use control::{
    CongestionControl, Control, Gate, GrowthCurve, Needs, PriorWindow, Probe, RecoveryKind, SlowStart, Window,
};
pub use event::{Ack, Cause, Conn, Message, RateSample, State};
pub use fanin_units::{Args, Domain, Profile, Setting, SettingError, Value};
pub use growth::{Avoidance, Counting, Credit, StandardSlowStart};
pub use names::nearest;
pub use receiver::{Advice, Arrival, ReceiverControl, RoundTrips};
pub use registry::{Algorithm, BuildError, Caution, Composition, Kind, Transport};
pub use setup::{PathKnowledge, Setup};
