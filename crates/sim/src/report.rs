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
    let cbr = (0..)
        .zip(&spec.cbr)
        .map(|(source, c)| {
            let dropped = run.net.datagram_drops[source as usize];
            let mut row = CbrStats { class: c.class, dropped, ..CbrStats::default() };
            run.endpoints.of_datagrams().close_source(source, &mut row);
            row
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

/// One row per flow.
fn flow_table(run: &mut Run<'_>, names: &[Arc<str>]) -> Vec<FlowStats> {
    let mut rows = Vec::with_capacity(run.spec.flows.len());
    for (number, flow) in (0..run.spec.flows.len() as u32).zip(&run.spec.flows).rev() {
        let mut row = FlowStats {
            src: names[flow.src.index()].clone(),
            dst: names[flow.dst.index()].clone(),
            class: flow.class,
            ..FlowStats::default()
        };
        run.endpoints.of_flow(number).close(number, &mut row);
        let counters = &mut run.net.flows[number as usize];
        counters.close_run();
        row.drops = u64::from(counters.drops);
        row.ack_drops = u64::from(counters.ack_drops);
        row.marks = u64::from(counters.marks);
        row.drop_runs = counters.runs.as_ref().map_or_else(Vec::new, |r| r.iter().map(|&n| u64::from(n)).collect());
        rows.push(row);
    }
    rows.reverse();
    rows
}
