//! Sizes, reach and bisection of the topologies.

use fanin_scenario::Scenario;
use fanin_scenario::topology::TOPOLOGIES;
use fanin_sim::spec::{NodeKind, Spec};
use fanin_units::{Bytes, Duration, QueueLimit, Rate};
use std::collections::VecDeque;

fn plan(topology: &str) -> Spec {
    let text = format!("[topology]\n{topology}\n[[workload]]\nkind = \"long\"\npattern = \"permutation\"");
    Scenario::from_text(&text, "topology").unwrap().plan(1).unwrap_or_else(|e| panic!("{e}"))
}

fn count(spec: &Spec, kind: NodeKind) -> usize {
    spec.nodes.iter().filter(|n| n.kind == kind).count()
}

/// Links on a shortest way between two nodes.
fn hops(spec: &Spec, from: &str, to: &str) -> usize {
    let at = |name: &str| spec.nodes.iter().position(|n| n.name == name).unwrap();
    let mut seen = vec![usize::MAX; spec.nodes.len()];
    seen[at(from)] = 0;
    let mut queue = VecDeque::from([at(from)]);
    while let Some(node) = queue.pop_front() {
        for link in spec.links.iter().filter(|l| l.from.index() == node) {
            if seen[link.to.index()] == usize::MAX {
                seen[link.to.index()] = seen[node] + 1;
                queue.push_back(link.to.index());
            }
        }
    }
    seen[at(to)]
}

#[test]
fn a_fat_tree_has_the_sizes_of_its_paper() {
    for k in [2_usize, 4, 6, 8, 10] {
        let spec = plan(&format!("kind = \"fat_tree\"\nk = {k}"));
        assert_eq!(count(&spec, NodeKind::Host), k * k * k / 4);
        assert_eq!(count(&spec, NodeKind::Switch), 5 * k * k / 4);
        // Three layers of k^3/4 cables, two directions each.
        assert_eq!(spec.links.len(), 2 * 3 * k * k * k / 4);
        let degree = |n: usize| spec.links.iter().filter(|l| l.from.index() == n).count();
        let switches = (0..spec.nodes.len()).filter(|&n| spec.nodes[n].kind == NodeKind::Switch);
        assert!(switches.into_iter().all(|n| degree(n) == k));
    }
    let spec = plan("kind = \"fat_tree\"\nk = 4");
    assert_eq!((hops(&spec, "h0", "h1"), hops(&spec, "h0", "h2"), hops(&spec, "h0", "h4")), (2, 4, 6));
}

#[test]
fn every_host_sends_as_much_up_as_it_may_in_a_fat_tree() {
    // Full bisection: as much rate leaves each layer as enters it.
    let spec = plan("kind = \"fat_tree\"\nk = 6");
    let between = |a: &str, b: &str| -> u64 {
        let is = |n: usize, prefix: &str| spec.nodes[n].name.starts_with(prefix);
        spec.links.iter().filter(|l| is(l.from.index(), a) && is(l.to.index(), b)).map(|l| l.rate.bps()).sum()
    };
    assert_eq!(between("h", "edge"), between("edge", "agg"));
    assert_eq!(between("edge", "agg"), between("agg", "core"));
}

#[test]
fn leaves_and_spines_are_fully_joined() {
    let spec = plan("kind = \"leaf_spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 5\nfabric_rate = \"40Gbps\"");
    assert_eq!((count(&spec, NodeKind::Host), count(&spec, NodeKind::Switch)), (15, 5));
    assert_eq!(spec.links.iter().filter(|l| l.rate == Rate::gbps(40)).count(), 2 * 6);
    assert_eq!((hops(&spec, "h0", "h4"), hops(&spec, "h0", "h5")), (2, 4));
}

#[test]
fn the_papers_networks_have_their_bottlenecks_where_the_papers_have_them() {
    let spec = plan("kind = \"multihop\"");
    let port = |from: &str, to: &str| {
        let name = |n: fanin_sim::spec::NodeId| spec.nodes[n.index()].name.as_str();
        spec.links.iter().find(|l| name(l.from) == from && name(l.to) == to).unwrap().rate
    };
    assert_eq!(port("switch1", "switch2"), Rate::gbps(10));
    assert_eq!(port("switch2", "frontend"), Rate::gbps(10));
    assert_eq!((port("a1", "switch1"), port("c10", "switch1")), (Rate::gbps(1), Rate::gbps(1)));
    assert_eq!((hops(&spec, "a1", "frontend"), hops(&spec, "b1", "frontend"), hops(&spec, "c1", "d1")), (3, 2, 3));

    let spec = plan("kind = \"dctcp_multihop\"");
    assert_eq!(count(&spec, NodeKind::Host), 10 + 20 + 10 + 1 + 20);
    assert_eq!((hops(&spec, "s1_1", "r1"), hops(&spec, "s3_1", "r1"), hops(&spec, "s2_20", "r2_20")), (4, 2, 4));

    let spec = plan("kind = \"testbed\"");
    assert_eq!((hops(&spec, "s1", "r"), hops(&spec, "s2", "r"), hops(&spec, "s4", "r")), (2, 3, 3));
}

#[test]
fn switches_and_hosts_queue_by_what_they_are() {
    let spec = plan(
        "kind = \"star\"\nsenders = 2\nbuffer = \"250p\"\nmark = \"20p\"\nprocessing = \"25us\"\nreceiver_buffer = \"1MB\"\nreceiver_mark = \"30KB\"",
    );
    for link in &spec.links {
        let from_switch = spec.nodes[link.from.index()].kind == NodeKind::Switch;
        let to_client = spec.nodes[link.to.index()].name == "client";
        let (limit, mark) = match (from_switch, to_client) {
            (false, _) => (None, None),
            (true, true) => (Some(QueueLimit::Bytes(Bytes::mb(1))), Some(QueueLimit::Bytes(Bytes::kb(30)))),
            (true, false) => (Some(QueueLimit::Packets(250)), Some(QueueLimit::Packets(20))),
        };
        assert_eq!((link.queue.limit, link.queue.mark_above), (limit, mark));
    }
    let processing = |n: &fanin_sim::spec::Node| n.processing;
    assert!(
        spec.nodes
            .iter()
            .all(|n| processing(n) == if n.kind == NodeKind::Switch { Duration::us(25) } else { Duration::ZERO })
    );
    let shared = plan("kind = \"star\"\nshared_buffer = \"1MB\"");
    assert!(shared.links.iter().all(|l| l.queue.limit.is_none()));
    assert_eq!(shared.nodes[0].shared_buffer.unwrap().size, Bytes::mb(1));
}

#[test]
fn a_permutation_gives_each_host_one_to_send_to_and_one_to_receive_from() {
    let spec = plan("kind = \"fat_tree\"\nk = 4");
    let (mut sources, mut targets): (Vec<_>, Vec<_>) = spec.flows.iter().map(|f| (f.src, f.dst)).unzip();
    sources.sort_unstable();
    targets.sort_unstable();
    assert_eq!((sources.len(), &sources), (16, &targets));
    assert!(spec.flows.iter().all(|f| f.src != f.dst) && sources.windows(2).all(|w| w[0] != w[1]));
}

#[test]
fn every_topology_carries_traffic_between_any_two_hosts() {
    for topology in TOPOLOGIES {
        let written = match topology.name {
            "graph" => {
                "hosts = [\"a\", \"b\"]\nswitches = [\"x\", \"y\"]\nlink = [{ between = [\"a\", \"x\"] }, { between = [\"x\", \"y\"] }, { between = [\"y\", \"b\"] }]"
            }
            _ => "",
        };
        let text = format!(
            "[topology]\nkind = \"{}\"\n{written}\n[[workload]]\nkind = \"long\"\nbytes = \"3KB\"\npattern = \"permutation\"",
            topology.name
        );
        let spec = Scenario::from_text(&text, "carry").unwrap().plan(1).unwrap();
        let results = fanin_sim::run(&spec, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
        assert!(results.complete, "{}", topology.name);
    }
}

#[test]
fn static_routes_send_what_leaves_a_pod_through_the_first_switches_alone() {
    let spec = plan("kind = \"fat_tree\"\nk = 4\nrouting = \"lowest\"");
    let crossed = |to: &str| {
        let routes = fanin_sim::routes(&spec).unwrap();
        let to = spec.nodes.iter().position(|n| n.name == to).unwrap();
        routes.iter().flatten().flatten().filter(|l| spec.links[l.index()].to.index() == to).count()
    };
    // ns-2 keeps the first of equally short routes, nodes in the order of their numbers.
    assert!(crossed("core0_0") > 0 && crossed("agg0_0") > 0);
    for other in ["core0_1", "core1_0", "core1_1", "agg0_1", "agg3_1"] {
        assert_eq!(crossed(other), 0, "{other}");
    }
}

#[test]
fn a_description_names_tiers_rates_and_who_sends_to_whom() {
    let text = "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\nmark = \"20p\"\n\
                [[workload]]\nkind = \"long\"\ncount = 3\n[[workload]]\nkind = \"cbr\"\nrate = \"1Mbps\"\nfrom = \"h1\"";
    let drawn = fanin_scenario::describe(&Scenario::from_text(text, "drawn").unwrap().plan(1).unwrap());
    let tiers: Vec<(&str, u32)> = drawn.nodes.iter().map(|n| (n.name.as_str(), n.tier)).collect();
    assert_eq!(tiers, [("spine0", 2), ("leaf0", 1), ("h0", 0), ("h1", 0), ("leaf1", 1), ("h2", 0), ("h3", 0)]);
    assert_eq!(drawn.links.len(), 12);
    let up = drawn.links.iter().find(|l| l.from == 1 && l.to == 0).unwrap();
    assert_eq!((up.rate.as_str(), up.delay.as_str()), ("1Gbps", "50us"));
    assert_eq!((up.buffer.as_deref(), up.mark.as_deref()), (Some("100p"), Some("20p")));
    let traffic: Vec<(&str, u32, u32, u32)> =
        drawn.traffic.iter().map(|t| (t.class.as_str(), t.from, t.to, t.flows)).collect();
    assert_eq!(traffic, [("long", 3, 2, 3), ("long", 5, 2, 3), ("long", 6, 2, 3), ("cbr", 3, 2, 1)]);
}
