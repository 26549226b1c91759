//! What a sender tells its congestion control.

use fanin_units::{Duration, Time};

/// Where the sender's loss machine stands (the kernel's names).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Duplicate or selective ACKs were seen, nothing is declared lost yet.
    Disorder,
    /// The window was reduced for ECN and one window of data has not passed since.
    Cwr,
    /// Fast recovery: losses are being repaired.
    Recovery,
    /// A retransmission timeout is being repaired.
    Loss,
}

/// The connection as it is at this instant; read-only.
///
/// Sequence numbers are byte offsets in the stream. "Packets" are real numbers of segments of `mss` bytes: the unit of cwnd.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Conn {
    /// Now.
    pub now: Time,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Duration,
    /// Smallest sample of the connection; zero before the first.
    pub min_rtt: Duration,
    /// First byte that is not acknowledged.
    pub snd_una: u64,
    /// First byte never sent.
    pub snd_nxt: u64,
    /// Packets outstanding: sent and not acknowledged, and with SACK the `pipe` of RFC 6675.
    pub in_flight: f64,
    /// What a loss halves, in packets: flight (RFC 5681) or the window (NS2, Linux), as the stack profile says.
    pub loss_basis: f64,
    /// A loss leaves cwnd half of the window, fraction and all, whatever ssthresh is (NS2).
    pub keeps_fraction: bool,
    /// Segments declared lost so far; one that was sent again and is lost again counts again (`tp->lost`).
    pub lost: u64,
    /// Whether the window, not the application, held the sender back in the last window of data.
    pub cwnd_limited: bool,
    /// What is being delivered was sent while the application had no more to send (`tp->app_limited`); known where
    /// [`crate::Needs::rate_samples`] is set.
    pub app_limited: bool,
    /// State of the loss machine.
    pub state: State,
    /// The message being sent, where the application said so.
    pub message: Option<Message>,
    /// When pacing lets the next segment leave; in the past where it does not hold it.
    pub next_send: Time,
    /// A fresh number uniform on [0, 1), drawn from this connection's own stream when [`crate::Needs::randomness`] asks for it;
    /// otherwise 0.
    pub uniform: f64,
}

impl Conn {
    /// A connection at rest, for driving an algorithm by hand.
    ///
    /// ```
    /// let conn = fanin_cc::Conn::new(1460);
    /// assert_eq!((conn.mss, conn.in_flight), (1460, 0.0));
    /// ```
    #[inline]
    pub fn new(mss: u32) -> Conn {
        Conn {
            now: Time::ZERO,
            mss,
            srtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            snd_una: 0,
            snd_nxt: 0,
            in_flight: 0.0,
            loss_basis: 0.0,
            lost: 0,
            keeps_fraction: false,
            cwnd_limited: true,
            app_limited: false,
            state: State::Open,
            message: None,
            next_send: Time::ZERO,
            uniform: 0.0,
        }
    }
}

/// The application message a sender is working on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// Bytes of it that were never sent.
    pub unsent: u64,
    /// Bytes of it sent so far, counted once.
    pub sent: u64,
    /// When it should be complete.
    pub deadline: Option<Time>,
    /// Its first byte in the stream: changes when the next message starts.
    pub start: u64,
}

/// One acknowledgement that delivered something (cumulatively or by SACK).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ack {
    /// Bytes newly acknowledged by the cumulative number.
    pub acked_bytes: u64,
    /// Segments newly acknowledged by the cumulative number.
    pub acked_segments: u32,
    /// Bytes newly delivered, cumulatively or by SACK: what DCTCP's fraction and delivery rates count.
    pub delivered_bytes: u64,
    /// Segments newly delivered, cumulatively or by SACK.
    pub delivered_segments: u32,
    /// The ACK carries ECN-Echo.
    pub ece: bool,
    /// Round-trip sample; `None` where Karn's rule forbids one.
    pub rtt: Option<Duration>,
    /// It answers a lone segment shorter than the MSS, so that its receiver may have delayed it (`FLAG_ACK_MAYBE_DELAYED`).
    pub maybe_delayed: bool,
    /// First byte not yet acknowledged, after this ACK.
    pub ack_seq: u64,
    /// Whether the window may grow on this ACK: false in CWR, recovery and loss repair of the fast kind, on an ACK with ECE, and where
    /// window validation (RFC 2861, RFC 7661, Linux's cwnd-limited test) forbids it.
    pub may_grow: bool,
    /// Segments declared lost by this ACK.
    pub newly_lost: u32,
    /// Packets outstanding before it (`rs->prior_in_flight`).
    pub prior_in_flight: f64,
    /// Delivery-rate sample, when [`crate::Needs::rate_samples`] asks for it.
    pub rate: Option<RateSample>,
}

impl Ack {
    /// One cumulative ACK of `segments` full segments, with permission to grow.
    ///
    /// ```
    /// let ack = fanin_cc::Ack::of(1, 1460, 1460, None);
    /// assert_eq!(ack.acked_bytes, 1460);
    /// ```
    #[inline]
    pub fn of(segments: u32, mss: u32, ack_seq: u64, rtt: Option<Duration>) -> Ack {
        let bytes = u64::from(segments) * u64::from(mss);
        Ack {
            acked_bytes: bytes,
            acked_segments: segments,
            delivered_bytes: bytes,
            delivered_segments: segments,
            ece: false,
            rtt,
            maybe_delayed: false,
            ack_seq,
            may_grow: true,
            newly_lost: 0,
            prior_in_flight: 0.0,
            rate: None,
        }
    }
}

/// A delivery-rate sample: BBR's input (`tcp_rate.c`, draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Segments delivered between the sending and the acknowledging of the sampled segment.
    pub delivered: u32,
    /// Total segments delivered on the connection when the sampled segment was sent.
    pub prior_delivered: u64,
    /// Total segments delivered now.
    pub total_delivered: u64,
    /// The longer of the send and the ACK interval.
    pub interval: Duration,
    /// The sampled segment was sent while the application had nothing more to send.
    pub app_limited: bool,
}

/// Why to send less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// ECN-Echo, at most once per window of data.
    Ecn,
    /// Loss found by duplicate or selective ACKs, once per recovery.
    Loss,
    /// Retransmission timeout; repeated backoffs of the same segment come with `repeated`.
    Timeout {
        /// The window was reduced for this loss already, by a timeout since the last new ACK (RFC 5681 section 3.1) or, with Linux's
        /// sender, by the recovery that it ends: ssthresh must not fall again.
        repeated: bool,
    },
}

impl Cause {
    /// A timeout for a loss that reduced the window before: what an undo goes back to stays.
    pub fn is_repeated(self) -> bool {
        self == Cause::Timeout { repeated: true }
    }
}
