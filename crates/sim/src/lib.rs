//! A packet-level simulator of data-center TCP: one event per packet-hop, exact integer time, the same result everywhere.
//!
//! [`run`] takes a [`spec::Spec`] and gives [`results::Results`]. Most people write a scenario file and let `fanin-scenario` make the
//! spec; by hand it looks like the tests in `tests/`.
//!
//! | room | what is in it |
//! |---|---|
//! | [`spec`], [`stack`], [`hosts`], [`knobs`] | what a run is made of |
//! | [`results`] | what it leaves behind |
//! | `partition`, `parallel` | one run on several threads |
//! | `engine`, `build`, `report`, `app`, `timer` | the run itself |
//! | [`envelope`], `thinned`, `slowest` | what is kept of traces where not all is |
//! | `endpoint` | what ends a packet's way: `tcp`, `datagram`, `ndp` |
//! | `host` | what a host does with packets before its link and after it |
//! | `net`, `store`, `routing`, `calendar` | the network; ports and [`queue`] disciplines are `fanin-switch` |

mod app;
mod barrier;
mod build;
mod calendar;
pub mod columns;
mod datagram;
mod endpoint;
mod engine;
pub mod envelope;
mod host;
pub mod knobs;
mod ndp;
mod net;
mod packed;
pub mod packet;
mod parallel;
mod partition;
mod policies;
mod report;
pub mod results;
mod routing;
mod slowest;
pub mod spec;
pub mod stack;
mod store;
mod tcp;
mod thinned;
mod timer;
mod trace;

pub use fanin_switch::{disciplines as queue, random as rng};

pub use build::{Bucket, check_disciplines, clock_error, ideal_times, known_paths, routes, token_bucket};
pub use engine::{Progress, RunError, run, run_with_tap};
pub use host::model as hosts;
pub use parallel::run_on;
pub use partition::why_serial;
pub use tcp::resolved_stack;
pub use trace::{PacketEvent, Tap};
