//! A network under construction: nodes, cables, and names for groups of hosts.

use crate::error::{ScenarioError, nearest};
use crate::reader::Reader;
use fanin_sim::spec::{Link, LinkId, Node, NodeId, NodeKind, Queue, Routing, SharedBuffer};
use fanin_units::{Duration, Rate};

/// What a topology builds.
pub(crate) struct Net {
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    pub routing: Routing,
    /// Named sets of hosts.
    pub groups: Vec<(String, Vec<NodeId>)>,
    /// Where workloads send from and to unless told.
    pub default_from: &'static str,
    pub default_to: &'static str,
}

/// One direction of a cable.
#[derive(Clone)]
pub(crate) struct LinkParams {
    pub rate: Rate,
    pub delay: Duration,
    /// The switch port's queue where the sending side is a switch.
    pub queue: Queue,
}

/// What all switches of a topology have in common.
pub(crate) struct Common {
    pub processing: Duration,
    pub shared_buffer: Option<SharedBuffer>,
    /// Queue of a host's port.
    pub host_queue: Queue,
    pub routing: Routing,
}

impl Net {
    pub fn new(common: &Common) -> Net {
        Net {
            nodes: Vec::new(),
            links: Vec::new(),
            routing: common.routing,
            groups: Vec::new(),
            default_from: "senders",
            default_to: "receiver",
        }
    }

    pub fn host(&mut self, name: impl Into<String>) -> NodeId {
        self.node(Node { name: name.into(), kind: NodeKind::Host, processing: Duration::ZERO, shared_buffer: None })
    }

    pub fn switch(&mut self, name: impl Into<String>, common: &Common) -> NodeId {
        self.node(Node {
            name: name.into(),
            kind: NodeKind::Switch,
            processing: common.processing,
            shared_buffer: common.shared_buffer,
        })
    }

    fn node(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// A cable with the same rate and delay both ways; each side queues by what it is.
    pub fn cable(&mut self, a: NodeId, b: NodeId, link: &LinkParams, common: &Common) {
        for (from, to) in [(a, b), (b, a)] {
            let queue = match self.nodes[from.index()].kind {
                NodeKind::Switch => link.queue.clone(),
                NodeKind::Host => common.host_queue.clone(),
            };
            self.links.push(Link { from, to, rate: link.rate, delay: link.delay, queue });
        }
    }

    pub fn group(&mut self, name: impl Into<String>, hosts: Vec<NodeId>) {
        self.groups.push((name.into(), hosts));
    }

    pub fn hosts(&self) -> Vec<NodeId> {
        (0..self.nodes.len() as u32).map(NodeId).filter(|n| self.nodes[n.index()].kind == NodeKind::Host).collect()
    }

    /// The first host receives, all others send.
    pub fn first_receives(&mut self) {
        let hosts = self.hosts();
        if let Some((&first, others)) = hosts.split_first() {
            self.group("senders", others.to_vec());
            self.group("receiver", vec![first]);
        }
    }

    /// Links on a shortest way from `host` to each node; hosts do not forward.
    pub fn hops(&self, host: NodeId) -> Vec<Option<u32>> {
        let mut out = vec![Vec::new(); self.nodes.len()];
        for link in &self.links {
            out[link.from.index()].push(link.to);
        }
        let mut hops = vec![None; self.nodes.len()];
        hops[host.index()] = Some(0);
        let (mut wave, mut depth) = (vec![host], 0);
        while !wave.is_empty() {
            depth += 1;
            let mut next = Vec::new();
            for node in wave {
                for &to in &out[node.index()] {
                    if hops[to.index()].is_none() {
                        hops[to.index()] = Some(depth);
                        if self.nodes[to.index()].kind == NodeKind::Switch {
                            next.push(to);
                        }
                    }
                }
            }
            wave = next;
        }
        hops
    }

    /// Rate of the first link into (`incoming`) or out of a host.
    pub fn host_rate(&self, host: NodeId, incoming: bool) -> Rate {
        let own = |l: &&Link| if incoming { l.to == host } else { l.from == host };
        self.links.iter().find(own).map_or(Rate::from_bps(0), |l| l.rate)
    }

    /// Results call a port after its two ends.
    pub fn port_name(&self, link: LinkId) -> String {
        let link = &self.links[link.index()];
        format!("{}->{}", self.nodes[link.from.index()].name, self.nodes[link.to.index()].name)
    }

    /// Hosts by group name, host name, or pattern with `*`; in the order of the list, each once.
    pub fn select(&self, reader: &Reader<'_>, key: &str, default: &str) -> Result<Vec<NodeId>, ScenarioError> {
        let wanted = reader.opt::<Vec<String>>(key)?.unwrap_or_else(|| vec![default.to_owned()]);
        let mut found = Vec::new();
        for name in &wanted {
            let group = self.groups.iter().find(|(n, _)| n == name).map(|(_, hosts)| hosts.clone());
            let hosts = group.unwrap_or_else(|| {
                self.hosts().into_iter().filter(|h| matches(name, &self.nodes[h.index()].name)).collect()
            });
            if hosts.is_empty() {
                let names = || {
                    let hosts = self.nodes.iter().filter(|n| n.kind == NodeKind::Host).map(|n| n.name.as_str());
                    self.groups.iter().map(|(n, _)| n.as_str()).chain(hosts)
                };
                let near = nearest(name, names());
                let mut message = format!("no host or group is named `{name}`");
                if near.is_none() {
                    let groups: Vec<_> = self.groups.iter().map(|(n, _)| n.as_str()).collect();
                    message += &format!("; the groups are {}", groups.join(", "));
                }
                return Err(reader.fail(key, "scenario::unknown-host", message).nearest(near));
            }
            found.extend(hosts.into_iter().filter(|h| !found.contains(h)).collect::<Vec<_>>());
        }
        Ok(found)
    }
}

/// Whether `text` fits a pattern in which `*` stands for anything.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return false };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last: Option<&str> = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            match rest.find(middle) {
                Some(at) => rest = &rest[at + middle.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |end| rest.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(matches("s*", "s12") && matches("*->client", "switch->client") && matches("a*b*c", "a1b2c"));
        assert!(!matches("s*", "client") && !matches("s1", "s12") && !matches("a*b", "a1bc"));
    }
}
