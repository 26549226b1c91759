//! Control from the receiver's side: IA-TCP, ICTCP.

use fanin_units::{Duration, Time};

/// Data reached the receiver (or, with zero bytes, the connection opened).
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Now.
    pub now: Time,
    /// Which of the host's incoming connections.
    pub conn: u32,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Bytes on the wire that arrived.
    pub wire_bytes: u32,
    /// New payload bytes.
    pub payload_bytes: u32,
    /// The receiver's own round-trip sample (timestamps echoed in data).
    pub rtt: Option<Duration>,
}

/// What the receiver puts into its next ACK.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Advice {
    /// Advertised window in bytes. The endpoint never moves the right edge back.
    pub window: u64,
    /// Hold this ACK for so long.
    pub ack_delay: Duration,
}

/// One receiving host's policy over all its incoming connections.
pub trait ReceiverControl: core::fmt::Debug + Send {
    /// A connection to this host opened, with the path's base round trip; `uniform` is a fresh number on [0, 1).
    fn on_open(&mut self, now: Time, conn: u32, base_rtt: Duration, uniform: f64);
    /// A connection has no more data outstanding or expected.
    fn on_close(&mut self, now: Time, conn: u32);
    /// A connection that was closed has data again.
    fn on_reopen(&mut self, now: Time, conn: u32);
    /// Data arrived; says what to put into the ACK.
    fn on_data(&mut self, arrival: &Arrival) -> Advice;
}
