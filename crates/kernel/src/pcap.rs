//! The packets of a run as hosts and ports saw them, with the headers that the kernel wrote.
//!
//! The kernel leaves checksums to its network card, and a port that marks changes the IP header: both checksums are made here, over a
//! payload of zeros, which is what the player sends.

use crate::traffic::{Packet, Traffic};
use crate::{KernelError, host_numbers, ports};
use fanin_capture::write::Endpoint;
use fanin_fabric::record::Fate;
use fanin_scenario::ScenarioError;
use fanin_scenario::pcap::{Files, chosen};
use fanin_sim::spec::Spec;
use fanin_units::Time;
use std::path::Path;

/// Where to write captures, and of which places.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// A folder that exists.
    pub folder: &'a Path,
    /// Hosts, ports and switches, as [`fanin_scenario::pcap::run`] takes them.
    pub places: &'a [String],
}

/// Checks the places before anything runs.
///
/// # Errors
/// [`ScenarioError`] when a pattern stands for none.
pub fn check(spec: &Spec, places: &[String]) -> Result<(), ScenarioError> {
    chosen(spec, places).map(drop)
}

pub(crate) fn write(spec: &Spec, traffic: &Traffic, start: u64, capture: &Capture<'_>) -> Result<(), KernelError> {
    let places = chosen(spec, capture.places).map_err(|e| KernelError::Record(e.to_string()))?;
    let mut files = Files::new(capture.folder);
    let hosts: Vec<Option<usize>> =
        spec.nodes.iter().zip(&places.nodes).map(|(n, &wanted)| wanted.then(|| files.add(&n.name))).collect();
    let mut ports_of: Vec<Option<usize>> = Vec::new();
    for (link, &wanted) in spec.links.iter().zip(&places.links) {
        let name = format!("{}-{}", spec.nodes[link.from.index()].name, spec.nodes[link.to.index()].name);
        ports_of.push(wanted.then(|| files.add(&name)));
    }
    let delays = ports::delays(spec);
    // Time, file, packet, marked.
    let mut seen: Vec<(u64, usize, u32, bool)> = Vec::new();
    let mut marked = vec![false; traffic.packets.len()];
    for hop in traffic.hops.iter().filter(|h| h.time_ps >= start) {
        let link = usize::from(hop.link);
        let (from, to) = (spec.links[link].from.index(), spec.links[link].to.index());
        let is_host = |node: usize| spec.nodes[node].kind == fanin_sim::spec::NodeKind::Host;
        if let Some(file) = hosts[from].filter(|_| is_host(from) && hop.fate != Fate::Dropped) {
            seen.push((hop.time_ps, file, hop.packet, false));
        }
        marked[hop.packet as usize] |= hop.fate == Fate::Marked;
        if hop.fate == Fate::Dropped {
            continue;
        }
        let ce = marked[hop.packet as usize];
        if let Some(file) = ports_of[link] {
            seen.push((hop.departure_ps, file, hop.packet, ce));
        }
        if let Some(file) = hosts[to].filter(|_| is_host(to)) {
            seen.push((hop.departure_ps + delays[link], file, hop.packet, ce));
        }
    }
    seen.sort_by_key(|s| s.0);
    let numbers = host_numbers(spec);
    let address: Vec<[u8; 6]> = numbers.iter().flatten().map(|&n| Endpoint::host(n, 0).mac).collect();
    let mut frame = Vec::new();
    for (time, file, number, ce) in seen {
        let packet = &traffic.packets[number as usize];
        headers(packet, &traffic.bytes[packet.headers.clone()], ce, &address, &mut frame);
        let length = packet.length + 14;
        files
            .packet(file, Time::from_ps(time - start), &frame, length)
            .map_err(|(path, error)| KernelError::File { path, error })?;
    }
    files.finish().map(drop).map_err(|(path, error)| KernelError::File { path, error })
}

/// Ethernet header, and the packet's own with checksums.
fn headers(packet: &Packet, ip: &[u8], ce: bool, macs: &[[u8; 6]], out: &mut Vec<u8>) {
    out.clear();
    let mac = |at: usize| {
        let host = ip.get(at + 1..at + 4).map_or(0, |b| u32::from_be_bytes([0, b[0], b[1], b[2]]));
        macs.get(host.wrapping_sub(1) as usize).copied().unwrap_or([0; 6])
    };
    out.extend_from_slice(&mac(16));
    out.extend_from_slice(&mac(12));
    out.extend_from_slice(&[8, 0]);
    out.extend_from_slice(ip);
    let header = 4 * usize::from(ip.first().copied().unwrap_or(0) & 15);
    let frame = &mut out[14..];
    if frame.len() < header + 8 || header < 20 {
        return;
    }
    if ce {
        frame[1] |= 3;
    }
    frame[10..12].fill(0);
    let sum = checksum(0, &frame[..header]);
    frame[10..12].copy_from_slice(&sum.to_be_bytes());
    let at = header + if packet.tcp.is_some() { 16 } else { 6 };
    if at + 2 > frame.len() {
        return;
    }
    frame[at..at + 2].fill(0);
    let pseudo = u32::from(frame[9]) + packet.length - header as u32;
    let addresses = u32::from(!checksum(0, &frame[12..20]));
    let sum = checksum(pseudo + addresses, &frame[header..]);
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum (RFC 1071) over `bytes`, with `sum` already in it.
fn checksum(mut sum: u32, bytes: &[u8]) -> u16 {
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
