//! The traffic of a capture, from a workload file.

use super::WorkloadKind;
use crate::error::{ScenarioError, nearest};
use crate::net::{Net, matches};
use crate::plan::Workload;
use crate::reader::{FromNode, Reader};
use crate::replay::Replay;
use crate::tree::{Item, Node};
use crate::warnings::Warning;
use fanin_sim::spec::NodeId;
use fanin_units::{Domain, Duration, Setting};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "replay",
    title: "what the applications of a capture sent, with their think times and waits kept",
    source: "a file written by `fanin trains CAPTURE --workload FILE`",
    keys: KEYS,
    tcp: true,
    one_class: true,
    build,
};

const KEYS: &[Setting] = &[
    Setting::text("file", "the workload file; relative paths start from the scenario's folder").required(),
    Setting::of(
        "hosts",
        Domain::Groups,
        "which servers of the capture each host stands for: `hosts = { h1 = \"10.0.0.2\", h2 = [\"10.0.0.3\", \"10.0.1.*\"] }`; else the hosts of `from` take them in the order of the capture",
    ),
    Setting::time("jitter", "each release is late by a random time, uniform on [0, this): what seeds differ in")
        .default("2us"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let file: String = reader.get("file")?;
    let read = fanin_capture::Workload::read(&reader.context.folder.join(&file));
    let replay = Replay::from(&read.map_err(|e| reader.fail("file", "scenario::file", e.to_string()))?);
    if replay.connections.is_empty() {
        return Err(reader.refuse("file", format!("`{file}` has no connections to replay")));
    }
    let (hosts, client) = match reader.node("hosts") {
        Some(node) => {
            if reader.has("from") {
                return Err(reader.refuse("from", "`hosts` says where each server is; remove one of the two"));
            }
            let client = workload.one_receiver(reader)?;
            (placed(reader, node, &workload.plan.net, client, &replay.servers)?, client)
        }
        None => {
            let (hosts, client) = workload.many_to_one(reader)?;
            workload.plan.notes.extend(assumed(&workload.plan.net, &hosts, &replay.servers));
            (hosts, client)
        }
    };
    replay.add(workload, &hosts, client, reader.get::<Duration>("jitter")?);
    Ok(())
}

/// The host of each server, as `hosts` says.
fn placed(
    reader: &Reader<'_>,
    node: &Node,
    net: &Net,
    client: NodeId,
    servers: &[String],
) -> Result<Vec<NodeId>, ScenarioError> {
    let Item::Table(table) = &node.item else {
        let message = format!("it is {}; write `hosts = {{ h1 = \"10.0.0.2\" }}`", node.item.what());
        return Err(reader.fail("hosts", "scenario::wrong-kind", message));
    };
    let key = Setting::texts("hosts", "");
    let name = |host: NodeId| net.nodes[host.index()].name.as_str();
    let mut places: Vec<Option<NodeId>> = vec![None; servers.len()];
    for entry in &table.entries {
        let hosts = net.hosts();
        let Some(&host) = hosts.iter().find(|&&h| name(h) == entry.key) else {
            let near = nearest(&entry.key, hosts.iter().map(|&h| name(h)));
            let message = format!("no host is named `{}`", entry.key);
            return Err(reader.fail("hosts", "scenario::unknown-host", message).nearest(near));
        };
        if host == client {
            let message = format!("`{}` is the receiver, which stands for the capture's aggregator", entry.key);
            return Err(reader.refuse("hosts", message));
        }
        for address in Vec::<String>::from_node(reader, &key, &entry.node)? {
            let such: Vec<usize> = (0..servers.len()).filter(|&n| matches(&address, &servers[n])).collect();
            if such.is_empty() {
                let message = format!("the capture has no server `{address}`; it has {}", some(servers));
                return Err(reader.refuse("hosts", message));
            }
            for n in such {
                if let Some(other) = places[n].replace(host) {
                    let message = format!("{} is on `{}` and on `{}`", servers[n], name(other), entry.key);
                    return Err(reader.refuse("hosts", message));
                }
            }
        }
    }
    let lost: Vec<String> =
        servers.iter().zip(&places).filter(|(_, place)| place.is_none()).map(|(server, _)| server.clone()).collect();
    match places.into_iter().collect::<Option<Vec<NodeId>>>() {
        Some(hosts) => Ok(hosts),
        None => Err(reader.refuse("hosts", format!("no host stands for {}: add each to one", some(&lost)))),
    }
}

/// What was assumed where nothing says which server is which host: hosts that differ, and hosts that stand for several servers.
fn assumed(net: &Net, hosts: &[NodeId], servers: &[String]) -> Vec<Warning> {
    let mut found = Vec::new();
    if servers.len() > hosts.len() {
        found.push(Warning::SharedHosts { servers: servers.len(), hosts: hosts.len() });
    }
    // Hosts are alike that have the same links to the same switches.
    let links = |host: NodeId| {
        let mine = net.links.iter().filter(move |l| l.from == host || l.to == host);
        let mine = mine.map(|l| (l.from == host, if l.from == host { l.to } else { l.from }, l.rate, l.delay));
        mine.collect::<Vec<_>>()
    };
    let first = hosts.first().map(|&host| links(host));
    if hosts.iter().any(|&host| Some(links(host)) != first) {
        let name = |n: usize| net.nodes[hosts[n % hosts.len()].index()].name.clone();
        let places = servers.iter().enumerate().map(|(n, server)| format!("{server} on {}", name(n)));
        found.push(Warning::AssumedPlaces { places: some(&places.collect::<Vec<_>>()) });
    }
    found
}

/// The first few of a list.
fn some(names: &[String]) -> String {
    const MOST: usize = 4;
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown} and {} more", names.len() - MOST) } else { shown }
}
