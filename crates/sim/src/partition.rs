//! Cuts a network into parts that threads simulate side by side, and says which plans cannot be cut.

use crate::spec::{NodeId, NodeKind, Release, Routing, Spec};
use fanin_cc::Kind;

/// Which part each node belongs to. A rack, hosts and their switch, stays whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    of_node: Vec<u32>,
    /// How many parts.
    pub parts: usize,
}

impl Partition {
    /// Cuts a network into at most so many parts; `None` if it has one rack only.
    ///
    /// Racks go to the parts in the order of their numbers, about equally many hosts to each; so a fat-tree's pods stay whole where their
    /// number allows. Other switches go where most of their neighbours are.
    pub fn new(spec: &Spec, parts: usize) -> Option<Partition> {
        const NOWHERE: u32 = u32::MAX;
        let is_switch = |n: NodeId| spec.nodes[n.index()].kind == NodeKind::Switch;
        let mut home = vec![None; spec.nodes.len()];
        let mut hosts = vec![0usize; spec.nodes.len()];
        for link in spec.links.iter().filter(|l| !is_switch(l.from) && is_switch(l.to)) {
            if home[link.from.index()].is_none() {
                home[link.from.index()] = Some(link.to);
                hosts[link.to.index()] += 1;
            }
        }
        let racks = hosts.iter().filter(|&&n| n > 0).count();
        let (parts, all) = (parts.min(racks), hosts.iter().sum::<usize>());
        if parts < 2 {
            return None;
        }
        let mut of_node = vec![NOWHERE; spec.nodes.len()];
        let mut before = 0;
        for (node, &count) in hosts.iter().enumerate().filter(|(_, n)| **n > 0) {
            of_node[node] = (before * parts / all) as u32;
            before += count;
        }
        let mut switches = vec![0usize; parts];
        loop {
            let mut votes = vec![vec![]; spec.nodes.len()];
            for link in &spec.links {
                if is_switch(link.from) && is_switch(link.to) && of_node[link.from.index()] == NOWHERE {
                    votes[link.from.index()].push(of_node[link.to.index()]);
                }
            }
            let mut changed = false;
            for (node, votes) in votes.iter().enumerate() {
                let count = |part: usize| votes.iter().filter(|&&v| v == part as u32).count();
                let best = (0..parts).max_by_key(|&p| (count(p), std::cmp::Reverse((switches[p], p))));
                if let Some(part) = best.filter(|&p| count(p) > 0) {
                    of_node[node] = part as u32;
                    switches[part] += 1;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        for (node, home) in home.iter().enumerate() {
            if let Some(home) = home {
                of_node[node] = of_node[home.index()];
            }
        }
        of_node.iter_mut().filter(|part| **part == NOWHERE).for_each(|part| *part = 0);
        Some(Partition { of_node, parts })
    }

    /// The part of a node.
    #[inline]
    pub fn of(&self, node: NodeId) -> usize {
        self.of_node[node.index()] as usize
    }
}

/// The part of a network that one run simulates.
#[derive(Clone, Copy, Debug)]
pub struct Here<'a> {
    /// The cut; `None`: the run simulates all.
    pub partition: Option<&'a Partition>,
    /// The part.
    pub part: usize,
}

impl Here<'_> {
    /// The whole network.
    pub const ALL: Here<'static> = Here { partition: None, part: 0 };

    /// Whether a node belongs to it.
    #[inline]
    pub fn has(&self, node: NodeId) -> bool {
        self.partition.is_none_or(|p| p.of(node) == self.part)
    }
}

/// Why a plan is simulated by one thread whatever the number asked for; `None` if it can be cut.
///
/// Parts hear of each other after a link's delay. What must be known at once elsewhere keeps a run whole.
pub fn why_serial(spec: &Spec, threads: usize) -> Option<&'static str> {
    let any = |test: fn(&Kind) -> bool| spec.transports.iter().flat_map(|t| t.cc.parts()).any(|p| test(&p.kind));
    let sends = {
        let mut sends = vec![false; spec.flows.len()];
        for m in &spec.messages {
            sends[m.flow.index()] = true;
        }
        sends
    };
    let answers = |f: &crate::spec::Flow| {
        f.reverse.is_some_and(|r| sends[r.index()] || spec.flows[r.index()].open.get().is_some())
    };
    if spec.barriers > 0 || !spec.gates.is_empty() || spec.messages.iter().any(|m| !matches!(m.release, Release::At(_)))
    {
        Some("messages wait for others (a closed loop)")
    } else if spec.flows.iter().zip(&sends).any(|(f, &sends)| (sends || f.open.get().is_some()) && answers(f)) {
        Some("connections carry messages both ways")
    } else if spec.messages.iter().any(|m| m.bytes == 0) {
        Some("there are messages without bytes")
    } else if spec.routing == Routing::Spray {
        Some("every packet draws its path")
    } else if spec.transports.iter().any(|t| t.cc.has_receiver()) {
        Some("receiving hosts decide about windows")
    } else if any(|k| matches!(k, Kind::Endpoint(_))) {
        Some("the transport is not TCP")
    } else if any(|k| matches!(k, Kind::Extension(_))) {
        Some("the algorithm comes from outside")
    } else if !spec.hosts.is_ideal() {
        Some("hosts cost processor time")
    } else if Partition::new(spec, threads.max(2)).is_none() {
        Some("there is one rack only")
    } else {
        None
    }
}
