//! Paths, made once: every flow and direction knows its links before the first packet.

use crate::rng::mix;
use crate::spec::{Link, LinkId, Node, NodeId, NodeKind, Routing};
use std::collections::HashMap;

/// Ends a path in the table.
pub const END: u32 = u32::MAX;
/// Most equally short paths kept per pair of hosts for spraying.
const SPRAY_PATHS: usize = 64;

/// Hops that no path has: there is none.
const UNREACHABLE: u16 = u16::MAX;

/// Shortest paths over the switches of a network; hosts do not forward.
///
/// Distances are kept by switch: hosts at the same switch share them, and there are far fewer switches than hosts.
#[derive(Debug)]
pub struct Router<'a> {
    nodes: &'a [Node],
    links: &'a [Link],
    out: Vec<Vec<LinkId>>,
    /// Number of each switch among the switches; `u32::MAX` for a host.
    switch: Vec<u32>,
    /// Per switch, the switches with a link to it.
    before: Vec<Vec<u32>>,
    /// Per node, the switches with a link to it, in order and once each.
    homes: Vec<Vec<u32>>,
    /// Hops from every switch to the nearest of a set of switches, per set asked for.
    distances: HashMap<Vec<u32>, Vec<u16>>,
    core: Vec<NodeId>,
    routing: Routing,
    seed: u64,
    /// Several links were equally short somewhere on the path that was walked last, so that its key decided.
    chose: bool,
}

impl<'a> Router<'a> {
    /// For a network; `seed` decides the flow hashes.
    pub fn new(nodes: &'a [Node], links: &'a [Link], routing: Routing, seed: u64) -> Router<'a> {
        let mut out = vec![Vec::new(); nodes.len()];
        for (i, link) in links.iter().enumerate() {
            out[link.from.index()].push(LinkId(i as u32));
        }
        let mut switch = vec![u32::MAX; nodes.len()];
        let switches = switch.iter_mut().zip(nodes).filter(|(_, node)| node.kind == NodeKind::Switch);
        for (number, (slot, _)) in switches.enumerate() {
            *slot = number as u32;
        }
        let mut homes = vec![Vec::new(); nodes.len()];
        for link in links.iter().filter(|link| switch[link.from.index()] != u32::MAX) {
            homes[link.to.index()].push(switch[link.from.index()]);
        }
        for homes in &mut homes {
            homes.sort_unstable();
            homes.dedup();
        }
        let is_switch = |n: &usize| switch[*n] != u32::MAX;
        let before = (0..nodes.len()).filter(is_switch).map(|n| homes[n].clone()).collect();
        let distances = HashMap::new();
        let mut router = Router {
            nodes,
            links,
            out,
            switch,
            before,
            homes,
            distances,
            core: Vec::new(),
            routing,
            seed,
            chose: false,
        };
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

    /// Hops from every switch to the nearest of `targets`.
    fn hops(before: &[Vec<u32>], targets: &[u32]) -> Vec<u16> {
        let mut hops = vec![UNREACHABLE; before.len()];
        let mut wave = targets.to_vec();
        for &switch in targets {
            hops[switch as usize] = 0;
        }
        for depth in 1..UNREACHABLE {
            let mut next = Vec::new();
            for switch in wave {
                for &from in &before[switch as usize] {
                    if hops[from as usize] == UNREACHABLE {
                        hops[from as usize] = depth;
                        next.push(from);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            wave = next;
        }
        hops
    }

    /// Links from `at` that lie on a shortest path to `to`, in the order of their numbers, appended to `found`.
    fn candidates(&mut self, at: NodeId, to: NodeId, found: &mut Vec<LinkId>) {
        found.clear();
        let (links, out) = (self.links, &self.out[at.index()]);
        found.extend(out.iter().filter(|l| links[l.index()].to == to));
        if !found.is_empty() {
            return;
        }
        let homes = &self.homes[to.index()];
        if !self.distances.contains_key(homes) {
            self.distances.insert(homes.clone(), Self::hops(&self.before, homes));
        }
        let hops = &self.distances[homes];
        let distance = |l: &LinkId| match self.switch[links[l.index()].to.index()] {
            u32::MAX => UNREACHABLE,
            switch => hops[switch as usize],
        };
        let least = out.iter().map(distance).min().unwrap_or(UNREACHABLE);
        if least != UNREACHABLE {
            found.extend(out.iter().filter(|l| distance(l) == least));
        }
    }

    fn walk(&mut self, from: NodeId, to: NodeId, key: u64, path: &mut Vec<LinkId>) -> bool {
        let mut at = from;
        let mut candidates = Vec::new();
        while at != to {
            self.candidates(at, to, &mut candidates);
            let Some(count) = std::num::NonZeroU64::new(candidates.len() as u64) else { return false };
            self.chose |= count.get() > 1;
            let hash = mix(self.seed ^ mix(key) ^ mix(u64::from(at.0) << 32));
            let hashed = candidates[(hash % count) as usize];
            let link = if self.routing == Routing::Lowest {
                // Equal costs never replace a route that is known, and nodes are looked at in the order of their numbers.
                candidates.iter().copied().min_by_key(|l| self.links[l.index()].to.0).unwrap_or(hashed)
            } else {
                hashed
            };
            path.push(link);
            at = self.links[link.index()].to;
        }
        true
    }

    /// The links that packets with this key take from one host to another; `None` if there is no way.
    pub fn path(&mut self, from: NodeId, to: NodeId, key: u64) -> Option<Vec<LinkId>> {
        let mut path = Vec::new();
        self.chose = false;
        if self.routing == Routing::EqualLength && !self.core.is_empty() {
            self.chose = self.core.len() > 1;
            let core = self.core[(mix(self.seed ^ mix(key ^ 0xc0fe)) % self.core.len() as u64) as usize];
            if self.walk(from, core, key, &mut path) && self.walk(core, to, key, &mut path) {
                return Some(path);
            }
            path.clear();
        }
        self.walk(from, to, key, &mut path).then_some(path)
    }

    /// Whether the key decided on the path that was asked for last: another key may have another path between the same hosts.
    pub fn key_decided(&self) -> bool {
        self.chose
    }

    /// Every shortest path, up to a limit, in a fixed order.
    pub fn all_paths(&mut self, from: NodeId, to: NodeId) -> Vec<Vec<LinkId>> {
        let (mut found, mut candidates) = (Vec::new(), Vec::new());
        let mut open = vec![(from, Vec::new())];
        while let Some((at, path)) = open.pop() {
            if at == to {
                found.push(path);
                if found.len() == SPRAY_PATHS {
                    break;
                }
                continue;
            }
            self.candidates(at, to, &mut candidates);
            for &link in &candidates {
                let mut longer = path.clone();
                longer.push(link);
                open.push((self.links[link.index()].to, longer));
            }
        }
        found
    }
}
