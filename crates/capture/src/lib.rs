//! Packet captures: read them once, in memory that does not grow with the file, and say what the applications did.
//!
//! [`analyse`] streams a pcap or pcapng file (either byte order, micro- or nanoseconds, gzip or plain) and returns, for
//! every TCP connection, what tshark's `tcp.stream` would number: counts, retransmissions by sequence coverage, round trips
//! as far as the tap can see them, request/response [`Turn`]s, and packet [`Train`]s after Jain and Routhier. From those,
//! [`Analysis::workload`] extracts what the simulator's `replay` needs: who asked whom for how much, and when the
//! *application* paused, as opposed to when the network made it wait.
//!
//! The `write` module is the way out: nanosecond pcap files of simulated packets that Wireshark reads.
//!
//! ```no_run
//! use fanin_capture::{Options, analyse};
//! use std::{ops::ControlFlow, path::Path};
//!
//! let found = analyse(Path::new("traffic.pcap.gz"), &Options::default(), &mut |_| ControlFlow::Continue(()))?;
//! for train in &found.trains {
//!     println!("{} {} B in {} packets", train.connection, train.bytes, train.packets);
//! }
//! # Ok::<(), fanin_capture::CaptureError>(())
//! ```

mod again;
mod analyse;
mod arrivals;
mod closing;
mod conn;
mod connections;
mod conns;
mod copies;
mod counts;
mod decode;
mod delivered;
mod error;
mod exchange;
mod file;
mod fitness;
mod gather;
mod hosts;
mod inflight;
mod kept;
mod limit;
#[cfg(test)]
mod numbers;
mod offload;
mod options;
mod ports;
mod protocol;
mod rack;
mod release;
mod results;
mod rhythm;
mod sent;
mod service;
mod silence;
mod stages;
mod table;
mod text;
mod ticks;
mod timeline;
mod unseen;
mod vantage;
mod waiting;
mod warning;
mod way;
mod workload;
pub mod write;

pub use analyse::{analyse, analyse_into, analyse_reader};
pub use closing::{Closing, Faults, Spread};
pub use connections::{Connections, Packed};
pub use error::{CaptureError, Damage, Partial, WorkloadError};
pub use fitness::{Aspect, Fitness, Reason, Verdict};
pub use kept::Kept;
pub use limit::Limit;
pub use offload::Offload;
pub use options::{Gap, LinkRates, Options, Progress};
pub use rack::Link;
pub use results::{
    Analysis, Burst, Call, Connection, Direction, DirectionStats, Front, Host, Protocol, ReadCounts, Sink, Stretch,
    Summary, Train, Turn, Write, WriteCounts,
};
pub use sent::{Late, Queued};
pub use stages::{Place, Request};
pub use text::{open_text, read_text};
pub use ticks::Ticks;
pub use waiting::{Company, Delay, Edge, Release, Round, Rounds};
pub use warning::Warning;
pub use workload::{Message, Piece, ReplayConnection, WORKLOAD_VERSION, Workload};
