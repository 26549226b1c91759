//! The endpoint's knobs and the named sets of them: honest about which TCP it is.
//!
//! Every knob is declared once, in [`KNOBS`], with what it means and who says so; profiles are values for them.

use fanin_cc::{Counting, Flavour, RecoveryKind};
use fanin_units::{Bytes, Duration};

/// All knobs of a TCP endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The profile the values started from.
    pub flavour: Flavour,
    /// Payload of a full segment.
    pub mss: u32,
    /// IP and TCP headers with options, on data and on ACKs.
    pub header: Bytes,
    /// Link-layer bytes per frame (Ethernet header, FCS, preamble, gap: 38).
    pub frame_overhead: Bytes,
    /// Initial window in segments.
    pub initial_window: f64,
    /// Initial slow-start threshold in segments.
    pub initial_ssthresh: f64,
    /// The window counts packets or bytes.
    pub window_unit: WindowUnit,
    /// Turning ACKs into growth.
    pub counting: Counting,
    /// Finding and repairing losses, unless the algorithm's name says.
    pub recovery: RecoveryKind,
    /// What a loss halves.
    pub halve: HalveBasis,
    /// Duplicate ACKs that mean loss.
    pub dup_thresh: u32,
    /// One new segment on each of the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Segments per ACK; 1 acknowledges every packet.
    pub ack_every: u32,
    /// Longest an ACK is delayed.
    pub ack_timeout: Duration,
    /// Segments acknowledged at once at the start of a connection (Linux quick-ACK mode).
    pub quick_acks: u32,
    /// Holding small segments.
    pub nagle: Nagle,
    /// Receive window.
    pub receive_window: Bytes,
    /// Floor of the retransmission timer.
    pub min_rto: Duration,
    /// Ceiling of the retransmission timer.
    pub max_rto: Duration,
    /// Timer before the first sample.
    pub initial_rto: Duration,
    /// G of RFC 6298, and the grid RTT samples are rounded to when `quantise_rtt` is set.
    pub clock_granularity: Duration,
    /// Round RTT samples up to whole clock ticks (NS2's tcpTick_).
    pub quantise_rtt: bool,
    /// RTO = SRTT + max(4*mdev, min_rto) with the deviation's windowed maximum (Linux) instead of max(min_rto, SRTT + 4*RTTVAR).
    pub linux_rto: bool,
    /// Timestamps: a sample from every ACK, also of retransmissions.
    pub timestamps: bool,
    /// ECN as the endpoint does it, unless the algorithm needs DCTCP's.
    pub ecn: EcnMode,
    /// ECT also on SYN, pure ACKs and retransmissions.
    pub ect_on_control: bool,
    /// Idle and application-limited periods.
    pub cwnd_validation: CwndValidation,
    /// Three-way handshake before the first data.
    pub handshake: bool,
    /// Segments may join bytes of different application writes.
    pub merge_writes: bool,
    /// Most segments sent in answer to one ACK (NS2's burst limit in recovery is separate); 0 is unlimited.
    pub max_burst: u32,
    /// Random processing time before each data packet leaves the host, uniform on [0, this) (NS2's overhead_).
    pub send_jitter: Duration,
    /// Pace an algorithm that does not ask for it at Linux's 2.0/1.2 x cwnd/srtt.
    pub pacing: bool,
    /// Minimal RTT seeds: `min_rtt` known before the first packet, from the path.
    pub know_path: bool,
}

/// What cwnd and flight count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowUnit {
    /// Segments, whatever their size (Linux, NS2).
    Packets,
    /// Bytes (RFC 5681, ns-3).
    Bytes,
}

/// What a loss or timeout halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalveBasis {
    /// The data outstanding (RFC 5681 equation 4).
    Flight,
    /// The window (NS2, Linux).
    Window,
}

/// Holding small segments back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nagle {
    /// Never.
    Off,
    /// While anything is unacknowledged (RFC 896).
    Rfc896,
    /// Only while a small segment is unacknowledged (Minshall, Linux).
    Minshall,
}

/// The endpoint's use of ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnMode {
    /// Not negotiated.
    Off,
    /// RFC 3168: ECE until CWR.
    Classic,
    /// RFC 8257: ECE mirrors CE.
    Dctcp,
}

/// What happens to cwnd in idle and application-limited periods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CwndValidation {
    /// Nothing: kept through idleness, grown by every ACK.
    None,
    /// Back to the initial window after one RTO of silence (RFC 5681 section 4.1).
    Rfc5681,
    /// Halved per RTO of silence, decays while application-limited (RFC 2861).
    Rfc2861,
    /// No growth while not validated; kept for five minutes (RFC 7661).
    Rfc7661,
    /// cwnd 1 after a timer expires with nothing outstanding (NS2's one-way agents with slow_start_restart_).
    Ns2Oneway,
    /// Initial window after a silence longer than the raw RTO estimate (NS2's FullTcp).
    Ns2Full,
    /// Linux: cwnd-limited test and slow-start-after-idle.
    Linux,
}
