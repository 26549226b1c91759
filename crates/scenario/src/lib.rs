//! What users write, checked and resolved for the engine: TOML in, [`fanin_sim::spec::Spec`] out.
//!
//! | you want to | look at |
//! |---|---|
//! | read a scenario | [`Scenario`] |
//! | replay a capture on a rack | [`Rack`], [`Replay`] |
//! | see a run as Wireshark would | [`pcap::run`] |
//! | add a topology | one file in `topology/` and one line in `topology/mod.rs` |
//! | add a workload | one file in `workload/` and one line in `workload/mod.rs` |
//! | know what a file may contain | `docs/reference/scenario.md`, made from the same tables |
//!
//! ```
//! let text = "[[workload]]\nkind = \"incast\"\nbytes = \"64KB\"";
//! let spec = fanin_scenario::Scenario::from_text(text, "example").unwrap().plan(1).unwrap();
//! assert_eq!(spec.flows.len(), 8);
//! ```

mod describe;
pub mod distribution;
mod draw;
mod error;
mod hash;
mod hosts;
mod kind;
mod lists;
mod measure;
mod net;
pub mod outcome;
pub mod pcap;
mod plan;
mod rack;
mod reader;
pub mod reference;
pub mod replay;
mod scenario;
pub mod schema;
pub mod topology;
mod transport;
mod tree;
mod warnings;
pub mod workload;

pub use describe::{Description, DrawnLink, DrawnNode, DrawnTraffic, describe};
pub use error::{Place, Report, ScenarioError};
pub use hash::identity;
pub use plan::REQUEST_CLASS;
pub use rack::{Rack, RackPlan, Record, SLOWEST, TRACED_ROWS};
pub use replay::{Replay, ReplayedResponse, ReplayedRounds, ReplayedTree};
pub use scenario::{MOST_TEXT, Scenario};
pub use transport::{DEFAULT_CC, DEFAULT_PROFILE};
pub use tree::Override;
pub use warnings::{Warning, starving, warnings};
