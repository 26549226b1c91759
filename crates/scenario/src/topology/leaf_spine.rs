//! Leaf switches with hosts, every leaf joined to every spine.

use super::{ROUTING, Topology, link_keys, link_params};
use crate::error::ScenarioError;
use crate::net::{Common, Net};
use crate::reader::Reader;
use fanin_sim::spec::NodeId;
use fanin_units::Setting;

pub const TOPOLOGY: Topology = Topology {
    name: "leaf_spine",
    title: "two tiers: every leaf joined to every spine",
    source: "common practice; TRIM section IV.B calls its multi-hop network a part of one",
    names: "hosts h0, h1, ... leaf by leaf; groups leaf0, leaf1, ..., receiver (h0), senders (all others); ports such as leaf0->h0, leaf0->spine1",
    keys: KEYS,
    build,
};

const FABRIC: [Setting; 4] = link_keys!("fabric_", "the links between leaves and spines");
const KEYS: &[Setting] = &[
    Setting::count_to("leaves", 1, 4096, "leaf switches").default("4"),
    Setting::count_to("spines", 1, 4096, "spine switches").default("2"),
    Setting::count_to("hosts_per_leaf", 1, 4096, "hosts at each leaf").default("4"),
    FABRIC[0],
    FABRIC[1],
    FABRIC[2],
    FABRIC[3],
    ROUTING,
];

/// More links than this are a mistake.
const MAX_LINKS: u64 = 1_000_000;

fn build(reader: &Reader<'_>, common: &Common) -> Result<Net, ScenarioError> {
    let edge = link_params(reader, "", None)?;
    let fabric = link_params(reader, "fabric_", Some(&edge))?;
    let (leaves, spines, per_leaf): (u64, u64, u64) =
        (reader.get("leaves")?, reader.get("spines")?, reader.get("hosts_per_leaf")?);
    if leaves * per_leaf < 2 {
        return Err(reader.refuse("hosts_per_leaf", "a single host has no peer; use at least two"));
    }
    for (key, count) in [("hosts_per_leaf", leaves * per_leaf), ("spines", leaves * spines)] {
        if count > MAX_LINKS {
            return Err(reader
                .refuse(key, format!("with {leaves} leaves that makes {count} links, and {MAX_LINKS} are the most")));
        }
    }
    let mut net = Net::new(common);
    let spine_switches: Vec<NodeId> = (0..spines).map(|i| net.switch(format!("spine{i}"), common)).collect();
    for leaf in 0..leaves {
        let switch = net.switch(format!("leaf{leaf}"), common);
        for &spine in &spine_switches {
            net.cable(switch, spine, &fabric, common);
        }
        let hosts: Vec<NodeId> = (0..per_leaf).map(|i| net.host(format!("h{}", leaf * per_leaf + i))).collect();
        for &host in &hosts {
            net.cable(host, switch, &edge, common);
        }
        net.group(format!("leaf{leaf}"), hosts);
    }
    net.first_receives();
    Ok(net)
}
