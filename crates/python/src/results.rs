//! What a run leaves behind, as tables. Times stay whole picoseconds here; Python gives them their display units.

use crate::columns::{Table, f64s, optional_u64s, texts, u8s, u32s, u64s};
use fanin_sim::results::Results;
use pyo3::prelude::*;

/// The results of one simulation.
#[pyclass(frozen, module = "fanin._native")]
pub struct Run {
    results: Results,
    classes: Vec<String>,
}

impl Run {
    /// `classes` are the names that flows and messages refer to.
    pub fn new(results: Results, classes: Vec<String>) -> Run {
        Run { results, classes }
    }

    fn class(&self, number: u16) -> &str {
        self.classes.get(usize::from(number)).map_or("", String::as_str)
    }
}

macro_rules! table {
    ($($name:literal: $column:expr),+ $(,)?) => { Table::new(vec![$(($name, $column)),+]) };
}

#[pymethods]
impl Run {
    /// The seed it ran with.
    #[getter]
    fn seed(&self) -> u64 {
        self.results.seed
    }
    /// When it stopped.
    #[getter]
    fn end_ps(&self) -> u64 {
        self.results.end_ps
    }
    /// Every finite message was delivered.
    #[getter]
    fn complete(&self) -> bool {
        self.results.complete
    }
    /// Packets accepted by output ports: the engine's unit of work.
    #[getter]
    fn packet_hops(&self) -> u64 {
        self.results.packet_hops
    }

    /// One row per message, in the order of the plan.
    fn messages(&self) -> PyResult<Table> {
        let rows = &self.results.messages;
        table! {
            "flow": u32s(rows.iter().map(|m| m.flow)),
            "class": texts(rows.iter().map(|m| self.class(m.class))),
            // An unlimited message has no size.
            "bytes": optional_u64s(rows.iter().map(|m| (m.bytes != u64::MAX).then_some(m.bytes))),
            "release_ps": optional_u64s(rows.iter().map(|m| m.release_ps)),
            "first_send_ps": optional_u64s(rows.iter().map(|m| m.first_send_ps)),
            "done_ps": optional_u64s(rows.iter().map(|m| m.done_ps)),
            "deadline_ps": optional_u64s(rows.iter().map(|m| m.deadline_ps)),
            "ideal_ps": optional_u64s(rows.iter().map(|m| (m.bytes != u64::MAX).then_some(m.ideal_ps))),
            "timeouts": u32s(rows.iter().map(|m| m.timeouts)),
        }
    }

    /// One row per flow, in the order of the plan.
    fn flows(&self) -> PyResult<Table> {
        let rows = &self.results.flows;
        table! {
            "src": texts(rows.iter().map(|f| &f.src)),
            "dst": texts(rows.iter().map(|f| &f.dst)),
            "class": texts(rows.iter().map(|f| self.class(f.class))),
            "segments": u64s(rows.iter().map(|f| f.segments)),
            "bytes_sent": u64s(rows.iter().map(|f| f.bytes_sent)),
            "bytes_delivered": u64s(rows.iter().map(|f| f.bytes_delivered)),
            "bytes_acked": u64s(rows.iter().map(|f| f.bytes_acked)),
            "retransmissions": u64s(rows.iter().map(|f| f.retransmissions)),
            "fast_recoveries": u64s(rows.iter().map(|f| f.fast_recoveries)),
            "timeouts": u64s(rows.iter().map(|f| f.timeouts)),
            "timeout_ps": u64s(rows.iter().map(|f| f.timeout_ps)),
            "drops": u64s(rows.iter().map(|f| f.drops)),
            "ack_drops": u64s(rows.iter().map(|f| f.ack_drops)),
            "drop_runs": u64s(rows.iter().map(|f| f.drop_runs.iter().sum())),
            "single_drops": u64s(rows.iter().map(|f| f.drop_runs.first().copied().unwrap_or(0))),
            "marks": u64s(rows.iter().map(|f| f.marks)),
            "ece_acks": u64s(rows.iter().map(|f| f.ece_acks)),
            "ecn_reductions": u64s(rows.iter().map(|f| f.ecn_reductions)),
            "tail_probes": u64s(rows.iter().map(|f| f.tail_probes)),
            "undone": u64s(rows.iter().map(|f| f.undone)),
            "first_send_ps": optional_u64s(rows.iter().map(|f| f.first_send_ps)),
            "last_delivery_ps": optional_u64s(rows.iter().map(|f| f.last_delivery_ps)),
            "cwnd": f64s(rows.iter().map(|f| f.cwnd)),
            "max_cwnd": f64s(rows.iter().map(|f| f.max_cwnd)),
            "srtt_ps": u64s(rows.iter().map(|f| f.srtt_ps)),
            "min_rtt_ps": u64s(rows.iter().map(|f| f.min_rtt_ps)),
        }
    }

    /// One row per output port, in the order of the plan's links.
    fn ports(&self) -> PyResult<Table> {
        let rows = &self.results.ports;
        table! {
            "name": texts(rows.iter().map(|p| &p.name)),
            "offered_packets": u64s(rows.iter().map(|p| p.offered_packets)),
            "packets": u64s(rows.iter().map(|p| p.packets)),
            "bytes": u64s(rows.iter().map(|p| p.bytes)),
            "sent_packets": u64s(rows.iter().map(|p| p.sent_packets)),
            "sent_bytes": u64s(rows.iter().map(|p| p.sent_bytes)),
            "drops": u64s(rows.iter().map(|p| p.drops)),
            "dropped_bytes": u64s(rows.iter().map(|p| p.dropped_bytes)),
            "marks": u64s(rows.iter().map(|p| p.marks)),
            "max_queue_packets": u64s(rows.iter().map(|p| p.max_queue_packets)),
            "max_queue_bytes": u64s(rows.iter().map(|p| p.max_queue_bytes)),
            "mean_queue_packets": f64s(rows.iter().map(|p| p.mean_queue_packets)),
            "mean_queue_bytes": f64s(rows.iter().map(|p| p.mean_queue_bytes)),
            "p99_queue_packets": u64s(rows.iter().map(|p| p.p99_queue_packets)),
            "busy_ps": u64s(rows.iter().map(|p| p.busy_ps)),
            "wait_ps": u64s(rows.iter().map(|p| p.wait_ps)),
        }
    }

    /// One row per source of background datagrams.
    fn background(&self) -> PyResult<Table> {
        let rows = &self.results.cbr;
        table! {
            "class": texts(rows.iter().map(|c| self.class(c.class))),
            "sent": u64s(rows.iter().map(|c| c.sent)),
            "received": u64s(rows.iter().map(|c| c.received)),
            "dropped": u64s(rows.iter().map(|c| c.dropped)),
        }
    }

    /// Queue lengths of the traced ports, a row per change or sample.
    fn queue(&self) -> PyResult<Table> {
        let t = &self.results.traces.queue;
        table! {
            "time_ps": u64s(t.time_ps.iter().copied()),
            "port": u32s(t.link.iter().copied()),
            "packets": u32s(t.packets.iter().copied()),
            "bytes": u64s(t.bytes.iter().copied()),
        }
    }

    /// State of the traced senders, a row per change.
    fn window(&self) -> PyResult<Table> {
        let t = &self.results.traces.window;
        table! {
            "time_ps": u64s(t.time_ps.iter().copied()),
            "flow": u32s(t.flow.iter().copied()),
            "cwnd": f64s(t.cwnd.iter().copied()),
            "ssthresh": f64s(t.ssthresh.iter().copied()),
            "in_flight": f64s(t.in_flight.iter().copied()),
            "srtt_ps": u64s(t.srtt_ps.iter().copied()),
            "state": u8s(t.state.iter().copied()),
        }
    }

    /// Packet events at the traced ports; with traced drops and marks, those of every port.
    fn packets(&self) -> PyResult<Table> {
        let t = &self.results.traces.packets;
        table! {
            "time_ps": u64s(t.time_ps.iter().copied()),
            "port": u32s(t.link.iter().copied()),
            "event": u8s(t.event.iter().copied()),
            "flow": u32s(t.flow.iter().copied()),
            "flags": u32s(t.flags.iter().map(|&f| u32::from(f))),
            "seq": u64s(t.seq.iter().copied()),
            "payload": u32s(t.payload.iter().copied()),
        }
    }

    /// Delivered payload per flow and interval.
    fn throughput(&self) -> PyResult<Table> {
        let t = &self.results.traces.throughput;
        table! {
            "time_ps": u64s(t.time_ps.iter().copied()),
            "flow": u32s(t.flow.iter().copied()),
            "bytes": u64s(t.bytes.iter().copied()),
        }
    }

    /// Named values of the algorithms in the traced senders.
    fn internals(&self) -> PyResult<Table> {
        let t = &self.results.traces.internals;
        table! {
            "time_ps": u64s(t.time_ps.iter().copied()),
            "flow": u32s(t.flow.iter().copied()),
            "name": texts(t.name.iter()),
            "value": f64s(t.value.iter().copied()),
        }
    }
}
