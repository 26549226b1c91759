//! Paths, made once: every flow and direction knows its links before the first packet.

use crate::rng::mix;
use crate::spec::{Link, LinkId, Node, NodeId, NodeKind, Routing};
use std::collections::HashMap;

/// Ends a path in the table.
pub const END: u32 = u32::MAX;
/// Most equally short paths kept per pair of hosts for spraying.
const SPRAY_PATHS: usize = 64;

/// Shortest paths over the switches of a network; hosts do not forward.
#[derive(Debug)]
pub struct Router<'a> {
    nodes: &'a [Node],
    links: &'a [Link],
    out: Vec<Vec<LinkId>>,
    into: Vec<Vec<LinkId>>,
    /// Hops to a destination, per destination asked for.
    distances: HashMap<NodeId, Vec<u32>>,
    core: Vec<NodeId>,
    routing: Routing,
    seed: u64,
}

impl<'a> Router<'a> {
    /// For a network; `seed` decides the flow hashes.
    pub fn new(nodes: &'a [Node], links: &'a [Link], routing: Routing, seed: u64) -> Router<'a> {
        let mut out = vec![Vec::new(); nodes.len()];
        let mut into = vec![Vec::new(); nodes.len()];
        for (i, link) in links.iter().enumerate() {
            out[link.from.index()].push(LinkId(i as u32));
            into[link.to.index()].push(LinkId(i as u32));
        }
        let mut router = Router { nodes, links, out, into, distances: HashMap::new(), core: Vec::new(), routing, seed };
        if routing == Routing::EqualLength {
            router.core = router.find_core();
        }
        router
    }

    /// The switches farthest from any host.
    fn find_core(&self) -> Vec<NodeId> {
        let hosts: Vec<NodeId> = self.of_kind(NodeKind::Host).collect();
        let mut level = vec![u32::MAX; self.nodes.len()];
        let mut wave = hosts;
        for &h in &wave {
            level[h.index()] = 0;
        }
        let mut depth = 0;
        while !wave.is_empty() {
            depth += 1;
            let mut next = Vec::new();
            for node in wave {
                for &l in &self.out[node.index()] {
                    let to = self.links[l.index()].to;
                    if level[to.index()] == u32::MAX {
                        level[to.index()] = depth;
                        next.push(to);
                    }
                }
            }
            wave = next;
        }
        let top = self.of_kind(NodeKind::Switch).map(|s| level[s.index()]).filter(|&l| l != u32::MAX).max();
        self.of_kind(NodeKind::Switch).filter(|s| Some(level[s.index()]) == top).collect()
    }

    fn of_kind(&self, kind: NodeKind) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len() as u32).map(NodeId).filter(move |n| self.nodes[n.index()].kind == kind)
    }

    /// Hops from every node to `to`.
    fn distances(&mut self, to: NodeId) -> &[u32] {
        let (nodes, links, into) = (self.nodes, self.links, &self.into);
        self.distances.entry(to).or_insert_with(|| {
            let mut hops = vec![u32::MAX; nodes.len()];
            hops[to.index()] = 0;
            let mut wave = vec![to];
            while !wave.is_empty() {
                let mut next = Vec::new();
                for node in wave {
                    for &l in &into[node.index()] {
                        let from = links[l.index()].from;
                        if hops[from.index()] == u32::MAX {
                            hops[from.index()] = hops[node.index()] + 1;
                            // A host may start a path but not lie within one.
                            if nodes[from.index()].kind == NodeKind::Switch {
                                next.push(from);
                            }
                        }
                    }
                }
                wave = next;
            }
            hops
        })
    }

    /// Links from `at` that lie on a shortest path to `to`.
    fn candidates(&mut self, at: NodeId, to: NodeId) -> Vec<LinkId> {
        let out = self.out[at.index()].clone();
        let links = self.links;
        let hops = self.distances(to);
        let here = hops[at.index()];
        if here == u32::MAX || here == 0 {
            return Vec::new();
        }
        out.into_iter().filter(|l| hops[links[l.index()].to.index()] == here - 1).collect()
    }

    fn walk(&mut self, from: NodeId, to: NodeId, key: u64, path: &mut Vec<LinkId>) -> bool {
        let mut at = from;
        while at != to {
            let candidates = self.candidates(at, to);
            let Some(count) = std::num::NonZeroU64::new(candidates.len() as u64) else { return false };
            let hash = mix(self.seed ^ mix(key) ^ mix(u64::from(at.0) << 32));
            let link = candidates[(hash % count) as usize];
            path.push(link);
            at = self.links[link.index()].to;
        }
        true
    }

    /// The links that packets with this key take from one host to another; `None` if there is no way.
    pub fn path(&mut self, from: NodeId, to: NodeId, key: u64) -> Option<Vec<LinkId>> {
        let mut path = Vec::new();
        if self.routing == Routing::EqualLength && !self.core.is_empty() {
            let core = self.core[(mix(self.seed ^ mix(key ^ 0xc0fe)) % self.core.len() as u64) as usize];
            if self.walk(from, core, key, &mut path) && self.walk(core, to, key, &mut path) {
                return Some(path);
            }
            path.clear();
        }
        self.walk(from, to, key, &mut path).then_some(path)
    }

    /// Every shortest path, up to a limit, in a fixed order.
    pub fn all_paths(&mut self, from: NodeId, to: NodeId) -> Vec<Vec<LinkId>> {
        let mut found = Vec::new();
        let mut open = vec![(from, Vec::new())];
        while let Some((at, path)) = open.pop() {
            if at == to {
                found.push(path);
                if found.len() == SPRAY_PATHS {
                    break;
                }
                continue;
            }
            for link in self.candidates(at, to) {
                let mut longer = path.clone();
                longer.push(link);
                open.push((self.links[link.index()].to, longer));
            }
        }
        found
    }
}
