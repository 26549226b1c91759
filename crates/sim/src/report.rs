//! Closing the books of a run.

use crate::build::port_name;
use crate::engine::Run;
use crate::results::{CbrStats, FlowStats, PortStats, Results};
use fanin_switch::Totals;
use std::sync::Arc;

/// Collects everything measured until `end`, ps.
pub(crate) fn report(mut run: Run<'_>, end: u64) -> Results {
    let spec = run.spec;
    let mut ports = Vec::with_capacity(spec.links.len());
    let mut in_flight = 0;
    for (i, link) in spec.links.iter().enumerate() {
        let port = &mut run.net.ports[i];
        in_flight += port.finish(end) as u64;
        if let Some(changes) = port.take_changes() {
            let t = &mut run.net.trace.out.queue;
            for (time, packets, bytes) in changes {
                t.time_ps.push(time);
                t.link.push(i as u32);
                t.packets.push(packets);
                t.bytes.push(bytes);
            }
        }
        let queued = (u64::from(port.queued_packets()), port.queued_bytes());
        ports.push(port_stats(port_name(spec, link), &port.totals, queued, end));
    }
    let names: Vec<Arc<str>> = spec.nodes.iter().map(|n| n.name.as_str().into()).collect();
    let flows = flow_table(&mut run, &names);
    let cbr = spec
        .cbr
        .iter()
        .enumerate()
        .map(|(i, c)| CbrStats {
            class: c.class,
            sent: run.cbr_sent[i],
            received: run.cbr_received[i],
            dropped: run.net.datagram_drops[i],
        })
        .collect();
    let (delivered, finite) = run.app.delivered();
    Results {
        seed: spec.seed,
        end_ps: end,
        complete: delivered == finite,
        packet_hops: run.net.hops,
        packets_created: run.net.created,
        packets_arrived: run.net.arrived,
        packets_in_flight: in_flight,
        ports,
        flows,
        messages: run.app.into_rows(),
        cbr,
        traces: run.net.trace.finish(),
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

/// One row per flow. Endpoints are given up as their rows are written: with a million flows both together would not fit.
fn flow_table(run: &mut Run<'_>, names: &[Arc<str>]) -> Vec<FlowStats> {
    const CHUNK: usize = 1 << 16;
    let mut rows = Vec::with_capacity(run.senders.len());
    while let Some(i) = run.senders.len().checked_sub(1) {
        rows.push(flow_stats(run, names, i));
        run.senders.truncate(i);
        run.receivers.truncate(i);
        if i.is_multiple_of(CHUNK) {
            run.senders.shrink_to_fit();
            run.receivers.shrink_to_fit();
        }
    }
    rows.reverse();
    rows
}

fn flow_stats(run: &mut Run<'_>, names: &[Arc<str>], i: usize) -> FlowStats {
    let flow = &run.spec.flows[i];
    let mut row = FlowStats {
        src: names[flow.src.index()].clone(),
        dst: names[flow.dst.index()].clone(),
        class: flow.class,
        ..FlowStats::default()
    };
    run.senders[i].report(&mut row);
    row.bytes_delivered = run.receivers[i].delivered();
    row.last_delivery_ps = run.receivers[i].last_delivery();
    let counters = &mut run.net.flows[i];
    counters.close_run();
    row.drops = u64::from(counters.drops);
    row.ack_drops = u64::from(counters.ack_drops);
    row.marks = u64::from(counters.marks);
    row.drop_runs = counters.runs.as_ref().map_or_else(Vec::new, |r| r.iter().map(|&n| u64::from(n)).collect());
    row
}
