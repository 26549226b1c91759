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
    /// The receiver's own round-trip sample ([`RoundTrips`]).
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

/// Round trips as a receiver can see them: one has passed when data fill what an ACK offered. One is measured at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrips {
    /// Right edge of an offer, and when the ACK with it left.
    mark: Option<(u64, Time)>,
}

impl RoundTrips {
    /// All data up to `nxt` of the stream are there.
    pub fn on_data(&mut self, nxt: u64, now: Time) -> Option<Duration> {
        let (edge, since) = self.mark?;
        if nxt < edge {
            return None;
        }
        self.mark = None;
        // The edge was known from an earlier ACK when data reach it before the held ACK has left: no sample.
        now.ps().checked_sub(since.ps()).map(Duration::from_ps)
    }

    /// An ACK of everything up to `nxt` leaves at `leaves` and offers room up to `edge`.
    pub fn on_ack(&mut self, nxt: u64, edge: u64, leaves: Time) {
        if self.mark.is_none() && edge > nxt {
            self.mark = Some((edge, leaves));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::us(us)
    }

    #[test]
    fn a_round_trip_is_from_an_offer_to_the_data_that_fill_it() {
        let mut seen = RoundTrips::default();
        seen.on_ack(1_000, 3_000, at(10));
        // Only the first of several offers is measured.
        seen.on_ack(2_000, 4_000, at(20));
        assert_eq!(seen.on_data(2_000, at(30)), None);
        assert_eq!(seen.on_data(3_000, at(40)), Some(Duration::us(30)));
        assert_eq!(seen.on_data(4_000, at(50)), None);
    }

    #[test]
    fn what_fills_an_offer_before_its_ack_has_left_is_no_sample() {
        let mut seen = RoundTrips::default();
        seen.on_ack(0, 1_000, at(100));
        assert_eq!(seen.on_data(1_000, at(90)), None);
        seen.on_ack(1_000, 1_000, at(100));
        assert_eq!(seen.on_data(1_000, at(110)), None);
    }
}
