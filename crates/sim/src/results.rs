//! What a run leaves behind: totals per port, flow and message, and the traces that were asked for, as columns.
//!
//! A line in a table below is a column everywhere: in Arrow, frames, the reference page, the JSON Schema and the stubs.

use crate::columns::{Cell, Class, Codes, Column, Table, rows, trace};
use crate::packed::{Pack, Packed};
use std::sync::Arc;

/// Everything measured in one run. Times are picoseconds since the start of the run.
#[derive(Clone, Debug, Default)]
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
    pub flows: Flows,
    /// Per message.
    pub messages: Messages,
    /// Per constant-bit-rate source.
    pub cbr: Vec<CbrStats>,
    /// What was traced.
    pub traces: Traces,
}

/// Every table of [`Results`], in the order of the manual.
pub static TABLES: &[Table] = &[
    MessageStats::TABLE,
    FlowStats::TABLE,
    PortStats::TABLE,
    Table { name: "background", ..CbrStats::TABLE },
    QueueTrace::TABLE,
    WindowTrace::TABLE,
    PacketTrace::TABLE,
    ThroughputTrace::TABLE,
    InternalTrace::TABLE,
];

/// States of a sender, by their code.
pub const STATES: &[&str] = &["open", "disorder", "cwr", "recovery", "loss"];

/// Packet events, by their code.
pub const EVENTS: &[&str] = &["accepted", "dropped", "marked", "delivered"];

rows! {
    /// One message.
    messages: MessageStats numbered "message" packed as Messages {
        /// Its flow.
        flow: u32, "";
        /// Group.
        class: u16, "" = |row| Class(row.class);
        /// Payload; null: endless (`u64::MAX` in Rust).
        bytes: u64, "bytes" = |row| row.is_finite().then_some(row.bytes);
        /// When the application handed it to TCP; null: never.
        release_ps: Option<u64>, "ps";
        /// First transmission of its first byte.
        first_send_ps: Option<u64>, "ps";
        /// Its last byte was delivered in order; null: not within the run.
        done_ps: Option<u64>, "ps";
        /// Deadline as a time of the run; null: none.
        deadline_ps: Option<u64>, "ps";
        /// What it would have taken alone on empty links, without slow start or losses; null: endless.
        ideal_ps: u64, "ps" = |row| row.is_finite().then_some(row.ideal_ps);
        /// Timeouts of the flow between release and delivery.
        timeouts: u32, "";
    }
    and {
        /// From release to delivery.
        completion_ps, "ps" = |row| row.completion();
        /// Completion time over the ideal one.
        slowdown, "" = |row| match row.completion() {
            Some(completion) if row.is_finite() => completion as f64 / row.ideal_ps as f64,
            _ => f64::NAN,
        };
    }
}

impl MessageStats {
    fn is_finite(&self) -> bool {
        self.bytes != u64::MAX
    }

    fn completion(&self) -> Option<u64> {
        Some(self.done_ps?.saturating_sub(self.release_ps?))
    }
}

rows! {
    /// One flow, a one-way byte stream, over the run.
    flows: FlowStats numbered "flow" packed as Flows {
        /// Sending host.
        src: Arc<str>, "";
        /// Receiving host.
        dst: Arc<str>, "";
        /// Group.
        class: u16, "" = |row| Class(row.class);
        /// Data segments sent, retransmissions included.
        segments: u64, "segments";
        /// Payload sent, retransmissions included.
        bytes_sent: u64, "bytes";
        /// Payload delivered in order to the application.
        bytes_delivered: u64, "bytes";
        /// Payload acknowledged.
        bytes_acked: u64, "bytes";
        /// Segments retransmitted for any reason.
        retransmissions: u64, "segments";
        /// Fast recoveries entered.
        fast_recoveries: u64, "";
        /// Retransmission timeouts.
        timeouts: u64, "";
        /// Time between the last transmission of new progress and each timeout that followed.
        timeout_ps: u64, "ps";
        /// Data segments of this flow dropped anywhere, and the SYN that opens it.
        drops: u64, "segments";
        /// ACKs of this flow dropped anywhere.
        ack_drops: u64, "packets";
        /// Runs of consecutive drops of this flow's data at one port. In Rust: how many of 1, 2, 3, ... drops (the last: that long or longer).
        drop_runs: Vec<u64>, "" = |row| row.drop_runs.iter().sum::<u64>();
        /// Data segments of this flow marked CE.
        marks: u64, "segments";
        /// ACKs received with ECN-Echo.
        ece_acks: u64, "packets";
        /// Window reductions for ECN.
        ecn_reductions: u64, "";
        /// Tail-loss probes sent.
        tail_probes: u64, "segments";
        /// Reductions taken back because nothing had been lost (profile `linux`).
        undos: u64, "";
        /// First data transmission.
        first_send_ps: Option<u64>, "ps";
        /// Last in-order delivery.
        last_delivery_ps: Option<u64>, "ps";
        /// Congestion window at the end.
        cwnd: f64, "packets";
        /// Greatest congestion window.
        max_cwnd: f64, "packets";
        /// Smoothed round trip at the end.
        srtt_ps: u64, "ps";
        /// Smallest round-trip sample.
        min_rtt_ps: u64, "ps";
    }
    and {
        /// Those runs of drops that are one drop long.
        single_drops, "" = |row| row.drop_runs.first().copied().unwrap_or(0);
        /// Delivered payload from the first transmission to the last delivery.
        goodput_bps, "bit/s" = |row| row.goodput();
    }
}

impl FlowStats {
    fn goodput(&self) -> f64 {
        match (self.first_send_ps, self.last_delivery_ps) {
            (Some(first), Some(last)) if last > first => {
                self.bytes_delivered as f64 * 8e12 / (last as f64 - first as f64)
            }
            _ => f64::NAN,
        }
    }
}

rows! {
    /// One output port over the run.
    ports: PortStats {
        /// `from->to`, as in `switch->client`.
        name: String, "";
        /// Packets offered: accepted and dropped.
        offered_packets: u64, "packets";
        /// Packets accepted.
        packets: u64, "packets";
        /// Wire bytes accepted.
        bytes: u64, "bytes";
        /// Packets whose last bit left before the end.
        sent_packets: u64, "packets";
        /// Wire bytes of those.
        sent_bytes: u64, "bytes";
        /// Packets dropped.
        drops: u64, "packets";
        /// Wire bytes dropped.
        dropped_bytes: u64, "bytes";
        /// Packets marked CE here.
        marks: u64, "packets";
        /// Greatest queue, the packet in transmission included.
        max_queue_packets: u64, "packets";
        /// Greatest queue.
        max_queue_bytes: u64, "bytes";
        /// Time-weighted mean queue, the packet in transmission included.
        mean_queue_packets: f64, "packets";
        /// Time-weighted mean queue.
        mean_queue_bytes: f64, "bytes";
        /// 99th percentile over time of the queue.
        p99_queue_packets: u64, "packets";
        /// Time the port was transmitting.
        busy_ps: u64, "ps";
        /// Share of the run in which the port was transmitting.
        utilisation: f64, "";
        /// Sum over sent packets of the wait between acceptance and the start of transmission.
        wait_ps: u64, "ps";
    }
}

rows! {
    /// One source of constant-bit-rate datagrams.
    cbr: CbrStats {
        /// Group.
        class: u16, "" = |row| Class(row.class);
        /// Packets sent.
        sent: u64, "packets";
        /// Packets received.
        received: u64, "packets";
        /// Packets dropped.
        dropped: u64, "packets";
    }
}

/// Traces as columns of equal length per table.
#[derive(Clone, Debug, Default)]
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

trace! {
    /// Queue length of the ports that `[measure]` names: a row per change or sample.
    queue: QueueTrace {
        /// When.
        time_ps: u64, "ps";
        /// Port.
        link: u32, "" as "port" = Codes::Ports;
        /// Packets, the one in transmission included.
        packets: u32, "packets";
        /// Bytes.
        bytes: u64, "bytes";
    }
}

trace! {
    /// State of the senders that `[measure]` names: a row per change.
    window: WindowTrace {
        /// When.
        time_ps: u64, "ps";
        /// Flow.
        flow: u32, "";
        /// Window in force: cwnd, or the recovery's allowance.
        cwnd: f64, "packets";
        /// Slow-start threshold; null while infinite.
        ssthresh: f64, "packets";
        /// Packets outstanding.
        in_flight: f64, "packets";
        /// Smoothed round trip.
        srtt_ps: u64, "ps";
        /// State of the sender.
        state: u8, "" = Codes::Words(STATES);
    }
}

trace! {
    /// What happened to packets at the ports that `[measure]` names, or to dropped and marked ones anywhere.
    packets: PacketTrace {
        /// When.
        time_ps: u64, "ps";
        /// Port.
        link: u32, "" as "port" = Codes::Ports;
        /// What happened; `delivered` is at the link's far end.
        event: u8, "" = Codes::Words(EVENTS);
        /// Flow; for an ACK the flow it acknowledges; 4294967295 for constant-bit-rate datagrams.
        flow: u32, "";
        /// Bit set of `fanin_sim::packet::flags`.
        flags: u16, "";
        /// First byte of the data, or the acknowledgement number.
        seq: u64, "bytes";
        /// Payload.
        payload: u32, "bytes";
    }
    and {
        /// Advertised window (ACKs).
        window: u32;
        /// Up to three SACK blocks as (left, right) relative to the acknowledgement number; zeros when absent.
        sack: [u32; 6];
        /// Timestamp value (data) or echo (ACKs).
        timestamp_ps: u64;
    }
}

trace! {
    /// Delivered payload per flow and interval; only intervals with data.
    throughput: ThroughputTrace {
        /// End of the interval.
        time_ps: u64, "ps";
        /// Flow.
        flow: u32, "";
        /// Payload delivered in it.
        bytes: u64, "bytes";
    }
}

trace! {
    /// Named values of the algorithms in the senders that `[measure]` names.
    internals: InternalTrace {
        /// When.
        time_ps: u64, "ps";
        /// Flow.
        flow: u32, "";
        /// Name of the value.
        name: &'static str, "";
        /// Value.
        value: f64, "";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Values;

    /// 1000 bytes in 2 us are 4 Gbit/s.
    #[test]
    fn goodput_is_of_the_time_between_the_first_transmission_and_the_last_delivery() {
        let of = |first_send_ps, last_delivery_ps| {
            FlowStats { bytes_delivered: 1000, first_send_ps, last_delivery_ps, ..FlowStats::default() }.goodput()
        };
        assert!((of(Some(1_000_000), Some(3_000_000)) - 4e9).abs() < 1.0);
        assert!(of(Some(5), Some(5)).is_nan() && of(Some(5), None).is_nan() && of(None, Some(5)).is_nan());
    }

    #[test]
    fn every_column_has_a_name_of_its_own_a_sentence_and_a_unit_that_its_name_agrees_with() {
        for table in TABLES {
            for (n, column) in table.columns.iter().enumerate() {
                let place = format!("{}.{}", table.name, column.name);
                assert!(table.columns[..n].iter().all(|c| c.name != column.name), "{place} twice");
                assert!(column.doc().ends_with('.'), "{place}: {}", column.doc());
                assert_eq!(column.name.ends_with("_ps"), column.unit == "ps", "{place}");
                assert!(!column.name.contains("bytes") || column.unit == "bytes", "{place}");
            }
        }
    }

    #[test]
    fn a_line_is_a_field_and_a_column() {
        let results = Results {
            flows: [FlowStats { retransmissions: 3, drop_runs: vec![2, 1], ..FlowStats::default() }]
                .into_iter()
                .collect(),
            messages: [MessageStats { bytes: u64::MAX, ..MessageStats::default() }].into_iter().collect(),
            ..Results::default()
        };
        let cells = |table: &str, name: &str| {
            let table = TABLES.iter().find(|t| t.name == table).unwrap();
            let column = table.columns.iter().find(|c| c.name == name).unwrap();
            (column.read)(&results)
        };
        assert_eq!(cells("flows", "retransmissions"), Values::U64(vec![3]));
        assert_eq!(cells("flows", "drop_runs"), Values::U64(vec![3]));
        assert_eq!(cells("flows", "single_drops"), Values::U64(vec![2]));
        assert_eq!(cells("flows", "src"), Values::Shared(vec!["".into()]));
        assert_eq!(cells("messages", "bytes"), Values::OptionalU64(vec![None]));
        assert_eq!(cells("messages", "class"), Values::Class(vec![0]));
    }

    #[test]
    fn a_message_of_one_segment_takes_35_bytes() {
        let row = |n: u64| MessageStats {
            flow: 2 * n as u32,
            bytes: 1460,
            release_ps: Some(20_000_000 * n),
            first_send_ps: Some(20_000_000 * n),
            done_ps: Some(20_000_000 * n + 200_000_000),
            ideal_ps: 101_000_000,
            ..MessageStats::default()
        };
        let rows = 1_000;
        let messages: Messages = (0..rows).map(row).collect();
        // The class, the deadline that there is none of, and the timeouts, one each; the flow, which ends at 1998, and the payload, two each; what it
        // takes alone, four; three times that go beyond 4.3 ms, eight each.
        assert_eq!(messages.bytes(), rows as usize * (3 + 2 * 2 + 4 + 3 * 8));
        let all = |rows: Vec<MessageStats>| format!("{rows:?}");
        assert_eq!(all(messages.iter().collect()), all((0..rows).map(row).collect()));
    }

    #[test]
    fn a_flow_of_one_segment_takes_53_bytes() {
        let row = |n: u64| FlowStats {
            src: ["a", "b"][n as usize % 2].into(),
            dst: "c".into(),
            segments: 1,
            bytes_sent: 1460,
            bytes_delivered: 1460,
            bytes_acked: 1460,
            first_send_ps: Some(20_000_000 * n),
            last_delivery_ps: Some(20_000_000 * n + 5_000_000_000_000),
            cwnd: 11.0,
            max_cwnd: 11.0,
            srtt_ps: 201_000_000 + n,
            min_rtt_ps: 200_000_000 + n,
            ..FlowStats::default()
        };
        let rows = 1_000;
        let flows: Flows = (0..rows).map(row).collect();
        // 15 columns of names, classes and counts below 255, one byte each; three of payload, two each; the windows and the round trips, four each; the
        // last delivery, eight, and the first transmission, which is below 4.3 ms only in the first 215 rows, too.
        assert_eq!(flows.bytes(), rows as usize * (15 + 3 * 2 + 4 * 4 + 2 * 8));
        assert!(4 * flows.bytes() < rows as usize * size_of::<FlowStats>());
        let all = |rows: Vec<FlowStats>| format!("{rows:?}");
        assert_eq!(all(flows.iter().collect()), all((0..rows).map(row).collect()));
    }
}
