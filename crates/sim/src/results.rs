//! What a run leaves behind: totals per port, flow and message, and the traces that were asked for, as columns.

use serde::Serialize;
use std::sync::Arc;

/// Everything measured in one run. Times are picoseconds since the start of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Results {
    /// The seed it ran with.
    pub seed: u64,
    /// When the run stopped.
    pub end_ps: u64,
    /// Every finite message was delivered.
    pub complete: bool,
    /// Packets accepted by output ports: the engine's unit of work.
    pub packet_hops: u64,
    /// Packets that hosts put into the network.
    pub packets_created: u64,
    /// Packets that reached their destination.
    pub packets_arrived: u64,
    /// Packets queued or on a wire at the end.
    pub packets_in_flight: u64,
    /// Per output port, in the order of the scenario's links.
    pub ports: Vec<PortStats>,
    /// Per flow.
    pub flows: Vec<FlowStats>,
    /// Per message.
    pub messages: Vec<MessageStats>,
    /// Per constant-bit-rate source.
    pub cbr: Vec<CbrStats>,
    /// What was traced.
    pub traces: Traces,
}

/// One output port over the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PortStats {
    /// `switch->client`.
    pub name: String,
    /// Packets offered: accepted and dropped.
    pub offered_packets: u64,
    /// Packets accepted.
    pub packets: u64,
    /// Wire bytes accepted.
    pub bytes: u64,
    /// Packets whose last bit left before the end.
    pub sent_packets: u64,
    /// Wire bytes of those.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Wire bytes dropped.
    pub dropped_bytes: u64,
    /// Packets marked CE here.
    pub marks: u64,
    /// Greatest queue in packets, the one in transmission included.
    pub max_queue_packets: u64,
    /// Greatest queue in bytes.
    pub max_queue_bytes: u64,
    /// Time-weighted mean queue in packets, the one in transmission included.
    pub mean_queue_packets: f64,
    /// Time-weighted mean queue in bytes.
    pub mean_queue_bytes: f64,
    /// 99th percentile over time of the queue in packets.
    pub p99_queue_packets: u64,
    /// Time the port was transmitting.
    pub busy_ps: u64,
    /// Sum over sent packets of the wait between acceptance and the start of transmission.
    pub wait_ps: u64,
}

/// One flow over the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowStats {
    /// Sending host.
    pub src: Arc<str>,
    /// Receiving host.
    pub dst: Arc<str>,
    /// Group.
    pub class: u16,
    /// Data segments sent, retransmissions included.
    pub segments: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes delivered in order to the application.
    pub bytes_delivered: u64,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Segments retransmitted for any reason.
    pub retransmissions: u64,
    /// Fast recoveries entered.
    pub fast_recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Time between the last transmission of new progress and each timeout that followed.
    pub timeout_ps: u64,
    /// Data segments of this flow dropped anywhere.
    pub drops: u64,
    /// ACKs of this flow dropped anywhere.
    pub ack_drops: u64,
    /// Lengths of runs of consecutive drops of this flow's data at one port: how many of 1, 2, 3, ... (the last: that long or longer).
    pub drop_runs: Vec<u64>,
    /// Data segments of this flow marked CE.
    pub marks: u64,
    /// ACKs received with ECN-Echo.
    pub ece_acks: u64,
    /// Window reductions for ECN.
    pub ecn_reductions: u64,
    /// Tail-loss probes sent.
    pub tail_probes: u64,
    /// Reductions taken back because nothing had been lost (profile `linux`).
    pub undone: u64,
    /// First data transmission.
    pub first_send_ps: Option<u64>,
    /// Last in-order delivery.
    pub last_delivery_ps: Option<u64>,
    /// Congestion window at the end, packets.
    pub cwnd: f64,
    /// Greatest congestion window, packets.
    pub max_cwnd: f64,
    /// Smoothed round trip at the end.
    pub srtt_ps: u64,
    /// Smallest round-trip sample.
    pub min_rtt_ps: u64,
}

/// One message.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MessageStats {
    /// Its flow.
    pub flow: u32,
    /// Group.
    pub class: u16,
    /// Payload bytes; `u64::MAX` for unlimited.
    pub bytes: u64,
    /// When the application handed it to TCP; `None`: never.
    pub release_ps: Option<u64>,
    /// First transmission of its first byte.
    pub first_send_ps: Option<u64>,
    /// Its last byte was delivered in order; `None`: not within the run.
    pub done_ps: Option<u64>,
    /// Deadline as a time of the run.
    pub deadline_ps: Option<u64>,
    /// Timeouts of the flow between release and delivery.
    pub timeouts: u32,
    /// What it would have taken alone on empty links, without slow start or losses.
    pub ideal_ps: u64,
}

/// One constant-bit-rate source.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CbrStats {
    /// Group.
    pub class: u16,
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets dropped.
    pub dropped: u64,
}

/// Traces as columns of equal length per table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Traces {
    /// Queue lengths.
    pub queue: QueueTrace,
    /// Windows.
    pub window: WindowTrace,
    /// Packet events.
    pub packets: PacketTrace,
    /// Delivered bytes per interval.
    pub throughput: ThroughputTrace,
    /// An algorithm's named internals.
    pub internals: InternalTrace,
}

/// Queue length of traced ports: a row per change or sample.
#[derive(Clone, Debug, Default, Serialize)]
pub struct QueueTrace {
    /// When.
    pub time_ps: Vec<u64>,
    /// Port.
    pub link: Vec<u32>,
    /// Packets, the one in transmission included.
    pub packets: Vec<u32>,
    /// Bytes.
    pub bytes: Vec<u64>,
}

/// State of traced senders: a row per change.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WindowTrace {
    /// When.
    pub time_ps: Vec<u64>,
    /// Flow.
    pub flow: Vec<u32>,
    /// Window in force in packets: cwnd, or the recovery's allowance.
    pub cwnd: Vec<f64>,
    /// Slow-start threshold in packets.
    pub ssthresh: Vec<f64>,
    /// Packets outstanding.
    pub in_flight: Vec<f64>,
    /// Smoothed round trip.
    pub srtt_ps: Vec<u64>,
    /// 0 open, 1 disorder, 2 cwr, 3 recovery, 4 loss.
    pub state: Vec<u8>,
}

/// What happened to packets at traced ports, or to dropped and marked ones anywhere.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PacketTrace {
    /// When.
    pub time_ps: Vec<u64>,
    /// Port.
    pub link: Vec<u32>,
    /// 0 accepted, 1 dropped, 2 marked, 3 delivered to the link's far end.
    pub event: Vec<u8>,
    /// Flow; for an ACK the flow it acknowledges; `u32::MAX` for background datagrams.
    pub flow: Vec<u32>,
    /// Bit set of [`crate::packet::flags`].
    pub flags: Vec<u16>,
    /// First byte of the data, or the acknowledgement number.
    pub seq: Vec<u64>,
    /// Payload bytes.
    pub payload: Vec<u32>,
    /// Advertised window (ACKs).
    pub window: Vec<u32>,
    /// Up to three SACK blocks as (left, right) relative to the acknowledgement number; zeros when absent.
    pub sack: Vec<[u32; 6]>,
    /// Timestamp value (data) or echo (ACKs).
    pub timestamp_ps: Vec<u64>,
}

/// Delivered payload per flow and interval; only intervals with data.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ThroughputTrace {
    /// End of the interval.
    pub time_ps: Vec<u64>,
    /// Flow.
    pub flow: Vec<u32>,
    /// Payload bytes delivered in it.
    pub bytes: Vec<u64>,
}

/// Values reported by an algorithm's `observe`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InternalTrace {
    /// When.
    pub time_ps: Vec<u64>,
    /// Flow.
    pub flow: Vec<u32>,
    /// Name of the value.
    pub name: Vec<&'static str>,
    /// Value.
    pub value: Vec<f64>,
}
