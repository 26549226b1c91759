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
}
