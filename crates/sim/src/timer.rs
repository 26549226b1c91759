//! Who asked to be called at a time.

/// A timer's owner. At one instant timers come in the order of this list, and those of one kind in the order of their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Timer {
    /// The port of this link, which has a scheduler, has become free.
    Port(u32),
    /// The sending end of this flow.
    Source(u32),
    /// The receiving end of this flow.
    Sink(u32),
    /// The application hands over this message.
    Message(u32),
    /// This source of datagrams sends its next.
    Datagram(u32),
    /// This flow sends nothing new from now on.
    Stop(u32),
    /// This flow's connection is opened.
    Open(u32),
    /// Queues are sampled.
    Sample,
    /// This receive queue of a host, or its processor.
    Receive(u32),
    /// The application of this host has read something.
    Read(u32),
}

impl Timer {
    /// Its kind, by the order of kinds, and its number.
    pub fn rank(self) -> (u32, u32) {
        match self {
            Timer::Port(n) => (0, n),
            Timer::Source(n) => (1, n),
            Timer::Sink(n) => (2, n),
            Timer::Message(n) => (3, n),
            Timer::Datagram(n) => (4, n),
            Timer::Stop(n) => (5, n),
            Timer::Open(n) => (6, n),
            Timer::Sample => (7, 0),
            Timer::Receive(n) => (8, n),
            Timer::Read(n) => (9, n),
        }
    }
}
