//! An algorithm as the kernel is told it: written by `fanin-kernel`, read inside the kernel.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use fanin_cc::{Args, BuildError, Counting, PathKnowledge, Profile, ReceiverControl, Setup, Transport, registry};
use fanin_units::{Bytes, Duration, Rate};
use serde::{Deserialize, Serialize};

/// An algorithm with its constants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// What Linux calls it (`TCP_CONGESTION`); at most 15 bytes.
    pub name: String,
    /// As fanin names it: `gss+dctcp`.
    pub algorithm: String,
    /// Parameters that were set.
    pub settings: Args,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Bytes a full segment takes on the wire.
    pub wire: u64,
    /// Initial window in packets.
    pub initial_window: f64,
    /// Initial slow-start threshold in packets; infinite where none is set.
    pub initial_ssthresh: f64,
    /// Jiffies per second.
    pub hz: u32,
    /// What the operator knows of the path.
    pub path: Option<Path>,
    /// Seeds the random numbers of its connections.
    pub seed: u64,
}

/// See [`PathKnowledge`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Rate of the bottleneck.
    pub rate_bps: u64,
    /// Round trip of a full segment through empty queues.
    pub base_rtt_ps: u64,
    /// Buffer of the bottleneck port.
    pub buffer_packets: f64,
}

impl Program {
    /// All programs of a kernel as bytes.
    pub fn encode(programs: &[Program]) -> Vec<u8> {
        // Plain data into growing memory: nothing in it can fail.
        postcard::to_allocvec(programs).unwrap_or_default()
    }

    /// What [`Program::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Option<Vec<Program>> {
        postcard::from_bytes(bytes).ok()
    }

    /// A new connection's algorithm.
    ///
    /// # Errors
    /// As [`registry::build`].
    pub fn build(&self) -> Result<Transport, BuildError> {
        registry::build(&self.algorithm, &self.setup(), &self.settings)
    }

    /// A receiving host's policy.
    ///
    /// # Errors
    /// As [`registry::build_receiver`]; also where no part of it acts at the receiver.
    pub fn build_receiver(&self) -> Result<Box<dyn ReceiverControl>, BuildError> {
        let built = registry::build_receiver(&self.algorithm, &self.setup(), &self.settings)?;
        built.ok_or_else(|| BuildError::BadComposition {
            spec: self.algorithm.clone(),
            why: "it names no receiver policy".to_owned(),
        })
    }

    fn setup(&self) -> Setup {
        Setup {
            mss: self.mss,
            wire: Bytes::new(self.wire),
            initial_window: self.initial_window,
            initial_ssthresh: self.initial_ssthresh,
            counting: Counting::Linux,
            hz: self.hz,
            profile: Profile::Linux,
            path: self.path.map(|path| PathKnowledge {
                rate: Rate::from_bps(path.rate_bps),
                base_rtt: Duration::from_ps(path.base_rtt_ps),
                buffer_packets: path.buffer_packets,
            }),
        }
    }
}
