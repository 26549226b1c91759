//! The engine `kernel`: a plan on the TCP of a real Linux, in virtual time.
//!
//! [`prepare`] writes what the virtual kernel needs into a folder, `python/fanin/kernel` starts it there, [`read`] makes of what
//! it left the results that the simulator gives for the same plan: the same columns.
//!
//! | room | what is in it |
//! |---|---|
//! | [`algorithms`] | Linux's own congestion control, a twin, or fanin's Rust |
//! | [`limits`] | what a kernel cannot do, as a sentence about a key |
//! | `guest` | hosts, settings and workload for the guest |
//! | `network` | ports, links and paths for the fabric |
//! | `traffic`, `stream`, `ports`, `flows` | from records to results |
//! | [`pcap`] | the same packets for Wireshark |

pub mod algorithms;
mod flows;
mod guest;
pub mod limits;
mod network;
pub mod pcap;
mod ports;
mod read;
mod stream;
mod traffic;

pub use read::read;

use algorithms::{Hosts, Whose};
use fanin_guest::{Guest, files};
use fanin_linuxcc::Program;
use fanin_linuxcc::event::Noted;
use fanin_linuxcc::receiver::Receivers;
use fanin_linuxcc::replay::Replayed;
use fanin_sim::RunError;
use fanin_sim::spec::{FlowId, NodeKind, Spec};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why there are no results.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The plan is not one for a kernel.
    #[error(transparent)]
    Limit(#[from] limits::Limit),
    /// The plan itself.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of the run's folder.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The kernel's program stopped.
    #[error("the virtual kernel gave up: {0}")]
    Guest(String),
    /// The records do not make sense.
    #[error("the virtual kernel's record is incomplete: {0}; please report it")]
    Record(String),
}

/// Parameters for the kernel's command line, by words; read by whoever starts it.
pub const BOOT: &str = "boot";

/// A connection of the plan: a flow, and the one in the opposite direction if it has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    /// From the end that connects.
    pub there: FlowId,
    /// From the end that listens.
    pub back: Option<FlowId>,
}

/// The connections of a plan. The end that connects is the one that has the first message to send, of two that have none the first flow's.
pub(crate) fn connections(spec: &Spec) -> Vec<Connection> {
    let mut first = vec![usize::MAX; spec.flows.len()];
    for (number, message) in spec.messages.iter().enumerate().rev() {
        first[message.flow.index()] = number;
    }
    let mut made = Vec::new();
    for (number, flow) in spec.flows.iter().enumerate() {
        let there = FlowId(number as u32);
        match flow.reverse {
            Some(other) if other.index() < number => {}
            Some(other) if first[other.index()] < first[number] => {
                made.push(Connection { there: other, back: Some(there) });
            }
            back => made.push(Connection { there, back }),
        }
    }
    made
}

/// Number of each node among the hosts; switches have none.
pub(crate) fn host_numbers(spec: &Spec) -> Vec<Option<u32>> {
    let mut hosts = 0;
    let mut number = |kind: NodeKind| {
        (kind == NodeKind::Host).then(|| {
            hosts += 1;
            hosts - 1
        })
    };
    spec.nodes.iter().map(|n| number(n.kind)).collect()
}

/// Writes what the virtual kernel needs into a folder that exists; with `notes`, fanin's algorithms there will write down what they are
/// told and decide, for [`replay`].
///
/// # Errors
/// [`KernelError::Limit`] when a kernel cannot do what the plan asks for, or the folder cannot be written.
pub fn prepare(spec: &Spec, folder: &Path, hosts: Hosts, notes: bool) -> Result<(), KernelError> {
    limits::check(spec, hosts)?;
    let network = network::network(spec)?;
    let (programs, names) = algorithms::programs(spec, hosts)?;
    let mut guest = Guest { notes, ..guest::guest(spec, &names)? };
    guest.plan.options = hosts.whose != Whose::Twin && algorithms::asks_applications(spec);
    let receivers = match hosts.whose {
        Whose::Twin => None,
        _ => algorithms::receivers(spec, hosts, |flow| guest::receiving_end(&guest.plan, flow))?,
    };
    let text = serde_json::to_vec(&guest).map_err(|e| KernelError::Guest(e.to_string()))?;
    write(folder, BOOT, guest::boot(spec, hosts.whose)?.as_bytes())?;
    write(folder, files::NETWORK, &network.encode())?;
    if !programs.is_empty() {
        write(folder, files::PROGRAMS, &Program::encode(&programs))?;
    }
    if let Some(receivers) = receivers {
        write(folder, files::RECEIVERS, &receivers.encode())?;
    }
    write(folder, files::GUEST, &text)
}

/// Tells fresh algorithms what those of a run were told, and compares their decisions.
///
/// # Errors
/// [`KernelError`] when the run left no notes, or they are not whole.
pub fn replay(folder: &Path) -> Result<Replayed, KernelError> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| KernelError::File { path, error })
    };
    let bad = |name: &str| KernelError::Record(format!("`{name}` makes no sense"));
    // A run has either or both.
    let has = |name: &str| folder.join(name).exists();
    let programs = match has(files::PROGRAMS) {
        true => Program::decode(&read(files::PROGRAMS)?).ok_or_else(|| bad(files::PROGRAMS))?,
        false => Vec::new(),
    };
    let receivers = match has(files::RECEIVERS) {
        true => Receivers::decode(&read(files::RECEIVERS)?).ok_or_else(|| bad(files::RECEIVERS))?,
        false => Receivers::default(),
    };
    let notes = Noted::read_all(&read(files::NOTES)?).ok_or_else(|| bad(files::NOTES))?;
    Ok(fanin_linuxcc::replay::replay(&programs, &receivers, &notes))
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), KernelError> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).map_err(|error| KernelError::File { path, error })
}
