//! A plan as a graph: what `fanin draw` draws.

use fanin_sim::spec::{NodeKind, Spec};
use serde::Serialize;
use std::collections::BTreeMap;

/// Nodes, links, and who sends to whom.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// In the order of the plan.
    pub nodes: Vec<DrawnNode>,
    /// In the order of the plan; a cable is two of them.
    pub links: Vec<DrawnLink>,
    /// Flows by class and pair of hosts.
    pub traffic: Vec<DrawnTraffic>,
}

/// A host or a switch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrawnNode {
    /// Its name.
    pub name: String,
    /// `host` or `switch`.
    pub kind: &'static str,
    /// Links between it and the nearest host: 0 for hosts, 1 for the switches they hang on, and so on up.
    pub tier: u32,
}

/// One direction of a cable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrawnLink {
    /// Position of the sending node.
    pub from: u32,
    /// Position of the receiving node.
    pub to: u32,
    /// Bits per second.
    pub rate_bps: u64,
    /// As people write it.
    pub rate: String,
    /// As people write it.
    pub delay: String,
    /// Limit of the port's queue; `None` is unlimited.
    pub buffer: Option<String>,
    /// Marks above this.
    pub mark: Option<String>,
    /// Name of the discipline.
    pub queue: String,
}

/// Flows of one class between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrawnTraffic {
    /// Class.
    pub class: String,
    /// Position of the sending host.
    pub from: u32,
    /// Position of the receiving host.
    pub to: u32,
    /// How many flows.
    pub flows: u32,
}

/// The graph of a plan.
pub fn describe(spec: &Spec) -> Description {
    let tiers = tiers(spec);
    let nodes = spec.nodes.iter().zip(tiers).map(|(node, tier)| DrawnNode {
        name: node.name.clone(),
        kind: if node.kind == NodeKind::Host { "host" } else { "switch" },
        tier,
    });
    let links = spec.links.iter().map(|link| DrawnLink {
        from: link.from.0,
        to: link.to.0,
        rate_bps: link.rate.bps(),
        rate: link.rate.to_string(),
        delay: link.delay.to_string(),
        buffer: link.queue.limit.map(|l| l.to_string()),
        mark: link.queue.mark_above.map(|l| l.to_string()),
        queue: link.queue.discipline.name.to_owned(),
    });
    let mut pairs: BTreeMap<(u16, u32, u32), u32> = BTreeMap::new();
    let flows = spec.flows.iter().map(|f| (f.class, f.src.0, f.dst.0));
    for pair in flows.chain(spec.cbr.iter().map(|c| (c.class, c.src.0, c.dst.0))) {
        *pairs.entry(pair).or_default() += 1;
    }
    let traffic = pairs.into_iter().map(|((class, from, to), flows)| DrawnTraffic {
        class: spec.trace.classes.get(usize::from(class)).cloned().unwrap_or_default(),
        from,
        to,
        flows,
    });
    Description { nodes: nodes.collect(), links: links.collect(), traffic: traffic.collect() }
}

fn tiers(spec: &Spec) -> Vec<u32> {
    let mut out = vec![Vec::new(); spec.nodes.len()];
    for link in &spec.links {
        out[link.from.index()].push(link.to.index());
    }
    let mut tier = vec![u32::MAX; spec.nodes.len()];
    let mut wave: Vec<usize> = (0..spec.nodes.len()).filter(|&n| spec.nodes[n].kind == NodeKind::Host).collect();
    let mut depth = 0;
    while !wave.is_empty() {
        for &node in &wave {
            tier[node] = depth;
        }
        depth += 1;
        let mut next: Vec<usize> =
            wave.iter().flat_map(|&n| out[n].iter().copied()).filter(|&n| tier[n] == u32::MAX).collect();
        next.sort_unstable();
        next.dedup();
        wave = next;
    }
    tier
}
