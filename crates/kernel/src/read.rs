//! From the files that a run left to results.

use crate::flows::{Flows, Throughput, complete};
use crate::guest::openings;
use crate::traffic::Traffic;
use crate::{KernelError, connections, pcap, ports};
use fanin_fabric::record::Fate;
use fanin_guest::files;
use fanin_player::log::Log;
use fanin_sim::ideal_times;
use fanin_sim::results::{CbrStats, Results, Traces};
use fanin_sim::spec::{NodeKind, Spec};
use std::io;
use std::path::Path;

/// Results of the run whose files are in `folder`; with `capture`, its packets are written there as pcap files.
///
/// # Errors
/// [`KernelError`] when the run failed or its record is not whole.
pub fn read(spec: &Spec, folder: &Path, capture: Option<&pcap::Capture<'_>>) -> Result<Results, KernelError> {
    if let Ok(why) = std::fs::read_to_string(folder.join(files::FAILURE)) {
        return Err(KernelError::Guest(why));
    }
    let mut log: Log = serde_json::from_slice(&file(folder, files::LOG)?)
        .map_err(|e| KernelError::Record(format!("{}: {e}", files::LOG)))?;
    if log.messages.len() != spec.messages.len() + openings(spec).count() || log.flows.len() != spec.flows.len() {
        return Err(KernelError::Record("the player lost messages or flows".to_owned()));
    }
    log.messages.truncate(spec.messages.len());
    let traffic = Traffic::parse(file(folder, files::RECORD)?)?;
    let results = results(spec, &log, &traffic)?;
    if let Some(capture) = capture {
        pcap::write(spec, &traffic, log.start_ns * 1000, capture)?;
    }
    Ok(results)
}

fn file(folder: &Path, name: &str) -> Result<Vec<u8>, KernelError> {
    let path = folder.join(name);
    std::fs::read(&path).map_err(|error: io::Error| KernelError::File { path, error })
}

fn results(spec: &Spec, log: &Log, traffic: &Traffic) -> Result<Results, KernelError> {
    let connections = connections(spec);
    let (start, end) = (log.start_ns * 1000, log.end_ns * 1000);
    let delays = ports::delays(spec);
    let wire: Vec<u64> = traffic.packets.iter().map(|p| wire(spec, &connections, p)).collect();
    let (rows, queue) = ports::ports(spec, traffic, start, end, &wire);

    let mut flows = Flows::new(spec, &connections, log, &ideal_times(spec)?);
    let created = sent(&mut flows, traffic, start);
    let datagrams = offered(spec, &mut flows, traffic, start, connections.len());
    let mut arrivals = arrivals(spec, traffic, &delays, start);
    // Sockets are asked after the end: what they saw acknowledged may have arrived by then.
    let late = arrivals.split_off(arrivals.partition_point(|&(time, _)| time <= end));
    let throughput = arrived(spec, &mut flows, traffic, start, &arrivals);
    flows.ended();
    let packets = flows.packet_trace(traffic, start, &delays);
    let packet_hops = rows.iter().map(|p| p.packets).sum();
    let drops: u64 = rows.iter().map(|p| p.drops).sum();
    let cbr = spec.cbr.iter().zip(&log.datagrams).zip(datagrams).map(|((c, seen), dropped)| CbrStats {
        class: c.class,
        sent: seen.sent,
        received: seen.received,
        dropped,
    });
    let cbr = cbr.collect();
    late.iter().for_each(|&(_, number)| flows.late(number, &traffic.packets[number as usize]));
    let (flow_rows, messages, window) = flows.finish()?;
    Ok(Results {
        seed: spec.seed,
        end_ps: end - start,
        complete: complete(&messages),
        packet_hops,
        packets_created: created,
        packets_arrived: arrivals.len() as u64,
        packets_in_flight: created.saturating_sub(arrivals.len() as u64 + drops),
        ports: rows,
        flows: flow_rows.into_iter().collect(),
        messages: messages.into_iter().collect(),
        cbr,
        traces: Traces { queue, window, packets, throughput: throughput.finish(), ..Traces::default() },
    })
}

/// Counts what was sent; how many packets from `start` on.
fn sent(flows: &mut Flows<'_>, traffic: &Traffic, start: u64) -> u64 {
    let mut created = 0;
    for packet in &traffic.packets {
        // Handshakes of connections that are open before the run count in nothing, but they say where the stream begins.
        flows.place(packet);
        if packet.time >= start {
            created += 1;
            flows.sent(packet.time - start, packet);
        }
    }
    created
}

/// Counts what ports were offered from `start` on; drops of each stream of datagrams, which are numbered after the connections.
fn offered(spec: &Spec, flows: &mut Flows<'_>, traffic: &Traffic, start: u64, connections: usize) -> Vec<u64> {
    let mut datagrams = vec![0_u64; spec.cbr.len()];
    for hop in traffic.hops.iter().filter(|h| h.time_ps >= start) {
        let packet = &traffic.packets[hop.packet as usize];
        flows.offered(packet, hop.link, hop.fate);
        if hop.fate == Fate::Dropped
            && let Some(dropped) = (packet.connection as usize).checked_sub(connections)
        {
            datagrams[dropped] += 1;
        }
    }
    datagrams
}

/// When packets came to hosts from `start` on, and which, in order.
fn arrivals(spec: &Spec, traffic: &Traffic, delays: &[u64], start: u64) -> Vec<(u64, u32)> {
    let hosts: Vec<bool> = spec.links.iter().map(|l| spec.nodes[l.to.index()].kind == NodeKind::Host).collect();
    let mut arrivals: Vec<(u64, u32)> = traffic
        .arrivals(delays)
        .filter(|(time, hop)| *time >= start && hosts[usize::from(hop.link)])
        .map(|(time, hop)| (time, hop.packet))
        .collect();
    arrivals.sort_unstable();
    arrivals
}

/// Counts what came to hosts; the throughput of flows, if the scenario asks for it.
fn arrived(spec: &Spec, flows: &mut Flows<'_>, traffic: &Traffic, start: u64, arrivals: &[(u64, u32)]) -> Throughput {
    let mut throughput = Throughput::default();
    let interval = spec.trace.throughput_interval.map(|d| d.ps().max(1));
    for &(time, number) in arrivals {
        let delivered = flows.arrived(time - start, number, &traffic.packets[number as usize]);
        if let (Some((flow, bytes)), Some(interval)) = (delivered, interval) {
            throughput.add(time - start, flow, bytes, interval);
        }
    }
    throughput
}

/// Bytes of a packet on the wire: each segment of a burst that no card cut has its headers.
fn wire(spec: &Spec, connections: &[crate::Connection], packet: &crate::traffic::Packet) -> u64 {
    let (length, payload) = (u64::from(packet.length), u64::from(packet.payload));
    let Some(connection) = connections.get(packet.connection as usize) else { return length };
    let stack = &spec.transports[spec.flows[connection.there.index()].transport as usize].stack;
    let segments = if stack.tso { payload.div_ceil(u64::from(stack.mss)).max(1) } else { 1 };
    payload + segments * (length - payload + stack.frame_overhead.get())
}

#[cfg(test)]
mod tests;
