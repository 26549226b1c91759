//! The only list of queue disciplines: a new one is a file here and a line below.
//!
//! Drop-tail and step marking are part of every port (`port.rs`); what is listed here decides more than that. An [`Admission`]
//! keeps the port first-in-first-out and decides about each arriving packet; a [`Scheduler`] owns the packets and decides their order.

use crate::packet::Packet;
use crate::random::Stream;
use alloc::boxed::Box;
use fanin_units::{Args, Rate, Setting, SettingError};

mod lossy;
mod red;
mod sfq;
mod trimming;

/// What every port does unless told otherwise.
pub const DROP_TAIL: Discipline = Discipline {
    name: "droptail",
    title: "First in, first out; drops what does not fit; marks above a step if told to",
    source: "RFC 8257 section 3.1 for the step",
    params: &[],
    marks: false,
    build: Build::Plain,
};

/// Every discipline.
pub static DISCIPLINES: &[Discipline] =
    &[DROP_TAIL, red::DISCIPLINE, sfq::DISCIPLINE, lossy::DISCIPLINE, trimming::DISCIPLINE];

/// One registry line.
#[derive(Debug)]
pub struct Discipline {
    /// The name people type.
    pub name: &'static str,
    /// One line for `fanin list queue`.
    pub title: &'static str,
    /// Who defined it.
    pub source: &'static str,
    /// Declared parameters.
    pub params: &'static [Setting],
    /// It marks by itself, without a step.
    pub marks: bool,
    /// How to make one.
    pub build: Build,
}

/// Makes an [`Admission`] from what is known of the port and the settings.
pub type BuildAdmission = fn(&Context, &Args) -> Result<Box<dyn Admission>, SettingError>;
/// Makes a [`Scheduler`] likewise.
pub type BuildScheduler = fn(&Context, &Args) -> Result<Box<dyn Scheduler>, SettingError>;

/// How to make a discipline.
#[derive(Debug)]
pub enum Build {
    /// The port does it alone.
    Plain,
    /// Decides about arriving packets.
    Admission(BuildAdmission),
    /// Decides about order.
    Scheduler(BuildScheduler),
}

/// What a discipline knows of its port.
pub struct Context {
    /// The port's rate.
    pub rate: Rate,
    /// The port's own random stream.
    pub random: Stream,
}

/// The queue as an arriving packet finds it, itself not included.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Now, ps.
    pub now: u64,
    /// Packets, the one in transmission included.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
    /// When the port will have sent everything, ps; in the past if it is idle.
    pub free_at: u64,
}

/// What happens to an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Goes into the queue.
    Accept,
    /// Goes into the queue, marked.
    Mark,
    /// Dropped.
    Drop,
}

/// Decides about arriving packets; the port stays first in, first out.
pub trait Admission: core::fmt::Debug + Send {
    /// Called for every packet that fits; only ECN-capable packets may be answered with [`Decision::Mark`].
    fn admit(&mut self, packet: &Packet, view: View) -> Decision;
}

/// Owns the waiting packets and decides their order.
pub trait Scheduler: core::fmt::Debug + Send {
    /// Takes a packet. Returns how many bytes it cut off this packet or another for it: mostly none.
    fn enqueue(&mut self, packet: Packet) -> u16;
    /// It holds more than it should and is to give packets up, whatever room the buffer has.
    fn overflows(&self) -> bool {
        false
    }
    /// The buffer is over its limit, or [`Self::overflows`]: gives up one packet, perhaps the one that was just taken.
    fn evict(&mut self) -> Option<Packet>;
    /// The next to transmit.
    fn dequeue(&mut self) -> Option<Packet>;
}

/// The registered discipline of this exact name.
pub fn find(name: &str) -> Option<&'static Discipline> {
    DISCIPLINES.iter().find(|d| d.name == name)
}
