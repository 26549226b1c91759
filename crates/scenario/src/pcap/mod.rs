//! What hosts and ports saw of a run, as nanosecond pcap files.
//!
//! It stands here because it speaks both of the engine's packets and of captures: no crate below knows the two.
//!
//! A host's file holds what tcpdump on that host would: packets it hands to its network card, when it does, and packets that arrive.
//! A port's file holds what left through the port, at the time the last bit left; what was dropped is missing there and present in the
//! files upstream. A packet has the same headers and IP identification in every file, but for the CE mark. Nothing is kept in memory but
//! what is under way, so a run may be long.
//!
//! The engine knows less than a TCP header says; `headers` has what is added and why.

mod files;
mod headers;

use crate::error::{Place, ScenarioError, nearest};
use crate::net::matches;
use fanin_cc::{Composition, Kind};
use fanin_sim::packet::{Packet, flags};
use fanin_sim::results::Results;
use fanin_sim::spec::{LinkId, NodeId, NodeKind, Spec};
use fanin_sim::{PacketEvent, Progress, RunError, Tap};
use fanin_units::{Duration, Time};
pub use files::Files;
use headers::{Connections, Sent, ecn};
use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// Why a run left no captures.
#[derive(Debug, Error)]
pub enum PcapError {
    /// A place to capture at does not exist.
    #[error(transparent)]
    Place(#[from] ScenarioError),
    /// The run itself.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file cannot be written.
    #[error("{}: {error}; choose another folder with --pcap", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

/// Runs a simulation and writes what was seen at `places` into `folder`, which exists; returns the files in order of their names.
///
/// A place is a host (`client`, its both directions), a port (`switch->client`), or a switch (all its ports); `*` stands for anything.
/// Without places, the ports that `[measure] packets` names, or where it names none every host and every port. Where nothing was seen
/// there is no file. The results are those of [`fanin_sim::run`].
///
/// # Errors
/// [`PcapError`]; files may be left incomplete then.
pub fn run(
    spec: &Spec,
    folder: &Path,
    places: &[String],
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(Results, Vec<PathBuf>), PcapError> {
    if let Some(other) = spec.transports.iter().find(|t| is_not_tcp(&t.cc)) {
        let message = format!("`{}` is not TCP, and these captures hold TCP; run it without --pcap", other.cc);
        return Err(ScenarioError::new("scenario::not-possible", message).at("--pcap", &Place::Nowhere, "cc").into());
    }
    let recorder = Arc::new(Mutex::new(Recorder::new(spec, folder, &chosen(spec, places)?)?));
    let lock = || recorder.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = fanin_sim::run_with_tap(spec, Box::new(SharedTap(recorder.clone())), &mut |p| {
        if lock().failed.is_some() { ControlFlow::Break(()) } else { progress(p) }
    });
    let mut recorder = lock();
    if let Some((path, error)) = recorder.failed.take() {
        return Err(PcapError::Write { path, error });
    }
    let results = outcome?;
    let written = recorder.files.finish().map_err(|(path, error)| PcapError::Write { path, error })?;
    Ok((results, written))
}

fn is_not_tcp(cc: &Composition) -> bool {
    cc.parts().iter().any(|part| matches!(part.kind, Kind::Endpoint(_)))
}

/// Hosts and ports to write files of.
#[derive(Debug)]
pub struct Places {
    /// By node.
    pub nodes: Vec<bool>,
    /// By link.
    pub links: Vec<bool>,
}

/// The hosts and ports that patterns stand for, as [`run`] takes them.
///
/// # Errors
/// [`ScenarioError`] when a pattern stands for none.
pub fn chosen(spec: &Spec, patterns: &[String]) -> Result<Places, ScenarioError> {
    let mut places = Places { nodes: vec![false; spec.nodes.len()], links: vec![false; spec.links.len()] };
    if patterns.is_empty() {
        let all = spec.trace.packets.is_empty();
        for (place, node) in places.nodes.iter_mut().zip(&spec.nodes) {
            *place = all && node.kind == NodeKind::Host;
        }
        for (n, place) in places.links.iter_mut().enumerate() {
            *place = all || spec.trace.packets.contains(&LinkId(n as u32));
        }
        return Ok(places);
    }
    let names: Vec<String> = (0..spec.links.len()).map(|l| port_name(spec, l)).collect();
    for pattern in patterns {
        let mut found = false;
        for (l, name) in names.iter().enumerate() {
            let from = &spec.nodes[spec.links[l].from.index()];
            let of_switch = from.kind == NodeKind::Switch && !pattern.contains("->") && matches(pattern, &from.name);
            if of_switch || matches(pattern, name) && pattern.contains("->") {
                (places.links[l], found) = (true, true);
            }
        }
        for (n, node) in spec.nodes.iter().enumerate() {
            if node.kind == NodeKind::Host && matches(pattern, &node.name) {
                (places.nodes[n], found) = (true, true);
            }
        }
        if !found {
            let near =
                nearest(pattern, spec.nodes.iter().map(|n| n.name.as_str()).chain(names.iter().map(String::as_str)));
            let example = names.first().map_or("", String::as_str);
            let message = format!("no host, switch or port is named so; ports are named like `{example}`");
            let place = Place::CommandLine(format!("--pcap-at {pattern}"));
            return Err(ScenarioError::new("scenario::unknown-port", message).at("", &place, "").nearest(near));
        }
    }
    Ok(places)
}

fn port_name(spec: &Spec, link: usize) -> String {
    let link = &spec.links[link];
    format!("{}->{}", spec.nodes[link.from.index()].name, spec.nodes[link.to.index()].name)
}

/// A link as the recorder sees it.
#[derive(Debug)]
struct Wire {
    /// It begins at a host: packets enter the network here.
    entry: bool,
    /// From the last bit's departure to the arrival.
    delay: Duration,
    /// Where to write its port, its sending host and its receiving host.
    port: Option<usize>,
    from: Option<usize>,
    to: Option<usize>,
    /// The receiving node.
    end: NodeId,
}

#[derive(Debug)]
struct Recorder {
    wires: Vec<Wire>,
    connections: Connections,
    /// Packets under way, by number.
    under_way: HashMap<u32, Sent>,
    files: Files,
    buffer: Vec<u8>,
    failed: Option<(PathBuf, io::Error)>,
}

#[derive(Debug)]
struct SharedTap(Arc<Mutex<Recorder>>);

impl Tap for SharedTap {
    fn packet(&mut self, now: Time, link: LinkId, event: PacketEvent, packet: &Packet) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).packet(now, link, event, packet);
    }
}

impl Recorder {
    fn new(spec: &Spec, folder: &Path, places: &Places) -> Result<Recorder, RunError> {
        let mut files = Files::new(folder);
        let hosts: Vec<Option<usize>> =
            spec.nodes.iter().zip(&places.nodes).map(|(n, wanted)| wanted.then(|| files.add(&n.name))).collect();
        let wires = spec.links.iter().enumerate().map(|(l, link)| {
            let end = &spec.nodes[link.to.index()];
            // The engine lengthens a link by the processing time of the switch it leads to.
            let processing = if end.kind == NodeKind::Switch { end.processing } else { Duration::ZERO };
            Wire {
                entry: spec.nodes[link.from.index()].kind == NodeKind::Host,
                delay: link.delay + processing,
                port: places.links[l].then(|| files.add(&port_name(spec, l).replace("->", "-"))),
                from: hosts[link.from.index()],
                to: hosts[link.to.index()],
                end: link.to,
            }
        });
        Ok(Recorder {
            wires: wires.collect(),
            connections: Connections::new(spec)?,
            under_way: HashMap::new(),
            files,
            buffer: Vec::new(),
            failed: None,
        })
    }

    fn packet(&mut self, now: Time, link: LinkId, event: PacketEvent, packet: &Packet) {
        let wire = &self.wires[link.index()];
        match event {
            PacketEvent::Accepted if wire.entry => {
                let sent = self.connections.send(packet, now);
                if let Some(file) = wire.from {
                    self.write(file, now, &sent, packet);
                }
                self.under_way.insert(packet.id, sent);
            }
            PacketEvent::Dropped => {
                if self.under_way.remove(&packet.id).is_none() && wire.entry {
                    // Dropped before it left its host: no link carried it, but its sender knows of it.
                    self.connections.send(packet, now);
                }
            }
            PacketEvent::Delivered => {
                let (port, to, end, departed) = (wire.port, wire.to, wire.end, now.ps() - wire.delay.ps());
                let here = self.connections.destination(packet) == end;
                let known =
                    if here { self.under_way.remove(&packet.id) } else { self.under_way.get(&packet.id).cloned() };
                let Some(sent) = known else { return };
                if let Some(file) = port {
                    self.write(file, Time::from_ps(departed), &sent, packet);
                }
                if here {
                    if let Some(file) = to {
                        self.write(file, now, &sent, packet);
                    }
                    self.connections.receive(packet, &sent);
                }
            }
            PacketEvent::Accepted | PacketEvent::Marked => {}
        }
    }

    fn write(&mut self, file: usize, at: Time, sent: &Sent, packet: &Packet) {
        if self.failed.is_none() {
            let length = sent.headers(ecn(packet), &mut self.buffer);
            self.failed = self.files.packet(file, at, &self.buffer, length).err();
        }
    }
}

/// The packet is an acknowledgement, or the answer to a SYN.
fn acknowledges(packet: &Packet) -> bool {
    packet.has(flags::ACK)
}
