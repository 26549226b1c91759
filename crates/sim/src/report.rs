//! Closing the books of a run.

use crate::build::port_name;
use crate::engine::Run;
use crate::net::DropEvent;
use crate::partition::Partition;
use crate::results::{CbrStats, FlowStats, Flows, PortStats, QueueTrace, Results};
use crate::spec::NodeId;
use crate::store::PacketPool;
use crate::trace;
use fanin_switch::Totals;
use std::sync::Arc;

/// A queue's length from a time on: ps, packets, bytes.
type Change = (u64, u32, u64);

/// Collects everything measured until `end`, ps, from all parts of a run.
pub(crate) fn report(mut runs: Vec<Run<'_>>, partition: Option<&Partition>, end: u64) -> Results {
    let spec = runs[0].spec;
    let part_of = |node: NodeId| partition.map_or(0, |p| p.of(node));
    // The results find room where what was under way had its: at the end of a run memory is at its peak.
    for run in &mut runs {
        run.net.store = PacketPool::default();
        run.net.ways = Arc::default();
    }
    let mut changes = Vec::new();
    let mut ports = Vec::with_capacity(spec.links.len());
    let mut in_flight = 0;
    for (i, link) in spec.links.iter().enumerate() {
        let (from, to) = (part_of(link.from), part_of(link.to));
        let port = &mut runs[from].net.ports[i];
        if from != to {
            // What has a time of arrival is counted at the far end.
            port.forget_departed(end);
            in_flight += port.finish(end) as u64 - port.under_way() as u64;
        } else {
            in_flight += port.finish(end) as u64;
        }
        let rows = port.take_changes();
        let queued = (u64::from(port.queued_packets()), port.queued_bytes());
        ports.push(port_stats(port_name(spec, link), &port.totals(end), queued, end));
        if let Some(rows) = rows {
            match runs[from].net.trace.thinned() {
                Some(thinned) => thinned.queue(i as u32, &rows),
                None => changes.push((i as u32, rows)),
            }
        }
        if from != to {
            in_flight += runs[to].net.ports[i].finish(end) as u64;
        }
    }
    // Before the rows of flows find room: of the messages only the rows are left.
    let mut apps = runs.iter_mut().map(|run| std::mem::take(&mut run.app));
    let mut app = apps.next().unwrap_or_default();
    apps.for_each(|other| app.absorb(other));
    let (delivered, finite) = app.delivered();
    let messages = app.into_rows(spec);
    let names: Vec<Arc<str>> = spec.nodes.iter().map(|n| n.name.as_str().into()).collect();
    let flows = flow_table(&mut runs, &names);
    let cbr = (0..)
        .zip(&spec.cbr)
        .map(|(source, c)| {
            let mut row = CbrStats { class: c.class, ..CbrStats::default() };
            for run in &mut runs {
                row.dropped += run.net.datagram_drops[source as usize];
                run.endpoints.of_datagrams().close_source(source, &mut row);
            }
            row
        })
        .collect();
    let sum = |of: fn(&Run<'_>) -> u64| runs.iter().map(of).sum();
    let (packet_hops, packets_created) = (sum(|r| r.net.hops), sum(|r| r.net.created));
    let packets_arrived = sum(|r| r.net.arrived);
    let mut tracers = Vec::with_capacity(runs.len());
    tracers.extend(runs.into_iter().map(|run| run.net.trace));
    let mut traces = match tracers.len() {
        1 => tracers[0].finish(),
        _ => trace::merge(tracers, &spec.trace.queues),
    };
    // Samples were asked for, or changes.
    if !changes.is_empty() {
        traces.queue = queue_trace(changes);
    }
    Results {
        seed: spec.seed,
        end_ps: end,
        complete: delivered == finite,
        packet_hops,
        packets_created,
        packets_arrived,
        packets_in_flight: in_flight,
        ports,
        flows,
        messages,
        cbr,
        traces,
    }
}

fn port_stats(name: String, t: &Totals, queued: (u64, u64), end: u64) -> PortStats {
    let weighted: u128 = t.time_at.iter().enumerate().map(|(q, &ps)| q as u128 * u128::from(ps)).sum();
    PortStats {
        name,
        offered_packets: t.accepted + t.drops,
        packets: t.accepted,
        bytes: t.accepted_bytes,
        sent_packets: t.accepted - queued.0,
        sent_bytes: t.accepted_bytes - queued.1,
        drops: t.drops,
        dropped_bytes: t.dropped_bytes,
        marks: t.marks,
        max_queue_packets: u64::from(t.max_packets),
        max_queue_bytes: t.max_bytes,
        mean_queue_packets: if end == 0 { 0.0 } else { weighted as f64 / end as f64 },
        mean_queue_bytes: if end == 0 { 0.0 } else { t.byte_time as f64 / end as f64 },
        p99_queue_packets: percentile_over_time(&t.time_at, 0.99),
        busy_ps: t.busy,
        utilisation: if end == 0 { 0.0 } else { t.busy as f64 / end as f64 },
        wait_ps: t.wait,
    }
}

/// The least queue length that is not exceeded for `share` of the time.
fn percentile_over_time(time_at: &[u64], share: f64) -> u64 {
    let total: u64 = time_at.iter().sum();
    let mut below = 0;
    for (length, &time) in time_at.iter().enumerate() {
        below += time;
        if below as f64 >= share * total as f64 {
            return length as u64;
        }
    }
    0
}

/// Changes of queues, each with its port, as a trace. From the back, so that what they took is given back meanwhile: a long run has millions.
fn queue_trace(mut changes: Vec<(u32, Vec<Change>)>) -> QueueTrace {
    const PIECE: usize = 1 << 20;
    let mut end = changes.iter().map(|(_, rows)| rows.len()).sum();
    let mut trace =
        QueueTrace { time_ps: vec![0; end], link: vec![0; end], packets: vec![0; end], bytes: vec![0; end] };
    while let Some((link, mut rows)) = changes.pop() {
        while !rows.is_empty() {
            let from = rows.len().saturating_sub(PIECE);
            end -= rows.len() - from;
            for (n, (time, packets, bytes)) in (end..).zip(rows.drain(from..)) {
                trace.time_ps[n] = time;
                trace.link[n] = link;
                trace.packets[n] = packets;
                trace.bytes[n] = bytes;
            }
            rows.shrink_to_fit();
        }
    }
    trace
}

/// Memory of flows goes back in steps of so many.
const FLOWS_AT_ONCE: u32 = 1 << 16;

/// One row per flow.
fn flow_table(runs: &mut [Run<'_>], names: &[Arc<str>]) -> Flows {
    let spec = runs[0].spec;
    let mut drops: Vec<DropEvent> = Vec::new();
    for run in runs.iter_mut() {
        drops.extend(run.net.split.iter_mut().flat_map(|split| split.drops.drain(..)));
    }
    drops.sort_by_key(|&(place, flow, _, _)| (flow, place));
    let mut rows = Flows::with_capacity(spec.flows.len());
    for (number, flow) in (0..spec.flows.len() as u32).zip(&spec.flows).rev() {
        let mut row = FlowStats {
            src: names[flow.src.index()].clone(),
            dst: names[flow.dst.index()].clone(),
            class: flow.class,
            ..FlowStats::default()
        };
        for run in runs.iter_mut() {
            run.endpoints.of_flow(number).close(number, &mut row);
            let counters = &run.net.flows[number as usize];
            row.drops += u64::from(counters.drops);
            row.ack_drops += u64::from(counters.ack_drops);
            row.marks += u64::from(counters.marks);
        }
        let several = runs.len() > 1;
        let counters = &mut runs[0].net.flows[number as usize];
        if several {
            let of = |until: u32| drops.partition_point(|&(_, flow, _, _)| flow < until);
            counters.replay(&drops[of(number)..of(number + 1)]);
        }
        counters.close_run();
        row.drop_runs = counters.runs.as_ref().map_or_else(Vec::new, |r| r.iter().map(|&n| u64::from(n)).collect());
        rows.push(row);
        // As with the ends of flows: what rows are made from goes as they come.
        if number.is_multiple_of(FLOWS_AT_ONCE) {
            for run in runs.iter_mut() {
                run.net.flows.truncate(number as usize);
                run.net.flows.shrink_to_fit();
            }
        }
    }
    rows.reverse();
    rows
}
