//! Any network, written out.

use super::{ROUTING, Topology, link_params};
use crate::error::ScenarioError;
use crate::net::{Common, Net};
use crate::reader::{FromNode, Reader};
use crate::tree::{Item, Node};
use fanin_sim::spec::{NodeId, NodeKind};
use fanin_units::{Domain, Setting};

pub const TOPOLOGY: Topology = Topology {
    name: "graph",
    title: "nodes and links written out one by one",
    source: "",
    names: "as written; groups as in `groups`, else receiver (the last host) and senders (all others); ports such as x->y",
    keys: KEYS,
    build,
};

const LINK: &[Setting] = &[
    Setting::texts("between", "the two nodes it joins").required(),
    Setting::rate("rate", "its rate; as `rate` of the topology unless set"),
    Setting::time("delay", "its delay; as `delay` of the topology unless set"),
    Setting::queue("buffer", "its drop-tail limit at switches; as `buffer` of the topology unless set").positive(),
    Setting::queue("mark", "its K at switches; as `mark` of the topology unless set").positive(),
];

const KEYS: &[Setting] = &[
    Setting::texts("hosts", "names of the hosts").required(),
    Setting::texts("switches", "names of the switches").required(),
    Setting::of("link", Domain::Tables(LINK), "cables, as `[[topology.link]]`"),
    Setting::of("groups", Domain::Groups, "named lists of hosts"),
    ROUTING,
];

fn build(reader: &Reader<'_>, common: &Common) -> Result<Net, ScenarioError> {
    let base = link_params(reader, "", None)?;
    let mut net = Net::new(common);
    for name in reader.get::<Vec<String>>("hosts")? {
        net.host(name);
    }
    for name in reader.get::<Vec<String>>("switches")? {
        net.switch(name, common);
    }
    super::check_names(reader, &net)?;
    let links = match reader.node("link") {
        Some(Node { item: Item::List(list), .. }) => list.as_slice(),
        Some(other) => {
            let message = format!("it is {}; write each cable as `[[topology.link]]`", other.item.what());
            return Err(reader.fail("link", "scenario::wrong-kind", message));
        }
        None => {
            return Err(reader
                .fail_here("scenario::missing-key", "there are no links: add a `[[topology.link]]` for each cable"));
        }
    };
    for (n, node) in links.iter().enumerate() {
        let link = Reader::new(reader.context, format!("{}.link[{n}]", reader.path), Some(node), &[LINK])?;
        let ends: Vec<String> = link.get("between")?;
        let [a, b] = ends.as_slice() else {
            return Err(link
                .refuse("between", format!("it names {} nodes; a cable joins two, as in [\"a\", \"x\"]", ends.len())));
        };
        let (a, b) = (find(&net, &link, "between", a)?, find(&net, &link, "between", b)?);
        if a == b {
            return Err(link.refuse("between", "a node cannot be joined to itself"));
        }
        if net.links.iter().any(|l| (l.from, l.to) == (a, b) || (l.from, l.to) == (b, a)) {
            return Err(link.refuse("between", "these two are joined already; give the one link more rate instead"));
        }
        if common.shared_buffer.is_some() && link.has("buffer") {
            let message = "with `shared_buffer` the ports have no limits of their own; remove one of the two";
            return Err(link.refuse("buffer", message));
        }
        net.cable(a, b, &link_params(&link, "", Some(&base))?, common);
        link.finish()?;
    }
    groups(reader, &mut net)?;
    connected(reader, &net)?;
    Ok(net)
}

fn find(net: &Net, reader: &Reader<'_>, key: &str, name: &str) -> Result<NodeId, ScenarioError> {
    let at = net.nodes.iter().position(|n| n.name == name);
    at.map(|n| NodeId(n as u32)).ok_or_else(|| {
        let near = crate::error::nearest(name, net.nodes.iter().map(|n| n.name.as_str()));
        reader.fail(key, "scenario::unknown-host", format!("no node is named `{name}`")).nearest(near)
    })
}

fn groups(reader: &Reader<'_>, net: &mut Net) -> Result<(), ScenarioError> {
    let hosts = net.hosts();
    let Some((&last, others)) = hosts.split_last().filter(|(_, others)| !others.is_empty()) else {
        return Err(reader.refuse("hosts", "there must be at least two hosts"));
    };
    if let Some(node) = reader.node("groups") {
        let Item::Table(table) = &node.item else {
            return Err(reader.fail(
                "groups",
                "scenario::wrong-kind",
                format!("it is {}, not a table", node.item.what()),
            ));
        };
        let key = Setting::texts("groups", "");
        for entry in &table.entries {
            let mut members = Vec::new();
            for name in Vec::<String>::from_node(reader, &key, &entry.node)? {
                let host = find(net, reader, "groups", &name)?;
                if net.nodes[host.index()].kind != NodeKind::Host {
                    return Err(reader.refuse("groups", format!("`{name}` is a switch; groups hold hosts")));
                }
                members.push(host);
            }
            net.group(entry.key.clone(), members);
        }
    }
    for (name, hosts) in [("senders", others.to_vec()), ("receiver", vec![last])] {
        if !net.groups.iter().any(|(n, _)| n == name) {
            net.group(name, hosts);
        }
    }
    Ok(())
}

/// Hosts do not forward, so every host must reach every other over switches alone.
fn connected(reader: &Reader<'_>, net: &Net) -> Result<(), ScenarioError> {
    let hosts = net.hosts();
    let Some(&first) = hosts.first() else { return Ok(()) };
    let hops = net.hops(first);
    match hosts.iter().find(|h| hops[h.index()].is_none()) {
        Some(lost) => {
            let (a, b) = (&net.nodes[first.index()].name, &net.nodes[lost.index()].name);
            Err(reader.fail(
                "link",
                "scenario::not-possible",
                format!("no way leads from `{a}` to `{b}` over switches; hosts do not forward"),
            ))
        }
        None => Ok(()),
    }
}
