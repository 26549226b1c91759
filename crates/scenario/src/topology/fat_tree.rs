//! The k-ary fat-tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts.

use super::{ROUTING, Topology, link_keys, link_params};
use crate::error::ScenarioError;
use crate::net::{Common, Net};
use crate::reader::Reader;
use fanin_sim::spec::NodeId;
use fanin_units::Setting;

pub const TOPOLOGY: Topology = Topology {
    name: "fat_tree",
    title: "k-ary fat-tree for any even k: k^3/4 hosts with full bisection",
    source: "Al-Fares et al., SIGCOMM 2008; TRIM section IV.D, TCPRand Fig. 1",
    names: "hosts h0, h1, ... edge by edge and pod by pod; switches edgeP_I, aggP_I, coreI_J; groups pod0, pod1, ..., receiver (h0), \
            senders (all others); ports such as edge0_0->h0",
    keys: KEYS,
    build,
};

const FABRIC: [Setting; 4] = link_keys!("fabric_", "the links between switches");
const KEYS: &[Setting] = &[
    Setting::count_to("k", 2, 64, "ports per switch, even").default("4"),
    FABRIC[0],
    FABRIC[1],
    FABRIC[2],
    FABRIC[3],
    ROUTING,
];

fn build(reader: &Reader<'_>, common: &Common) -> Result<Net, ScenarioError> {
    let edge_link = link_params(reader, "", None)?;
    let fabric = link_params(reader, "fabric_", Some(&edge_link))?;
    let k: u64 = reader.get("k")?;
    if !k.is_multiple_of(2) {
        return Err(reader.refuse("k", format!("it is {k}; a fat-tree's switches have an even number of ports")));
    }
    let half = k / 2;
    let mut net = Net::new(common);
    // Core switch (i, j) is the j-th that aggregation switch i of every pod reaches.
    let core: Vec<Vec<NodeId>> =
        (0..half).map(|i| (0..half).map(|j| net.switch(format!("core{i}_{j}"), common)).collect()).collect();
    for pod in 0..k {
        let aggregation: Vec<NodeId> = (0..half).map(|i| net.switch(format!("agg{pod}_{i}"), common)).collect();
        for (&switch, above) in aggregation.iter().zip(&core) {
            for &core in above {
                net.cable(switch, core, &fabric, common);
            }
        }
        let mut hosts = Vec::new();
        for i in 0..half {
            let edge = net.switch(format!("edge{pod}_{i}"), common);
            for &above in &aggregation {
                net.cable(edge, above, &fabric, common);
            }
            for h in 0..half {
                let host = net.host(format!("h{}", (pod * half + i) * half + h));
                net.cable(host, edge, &edge_link, common);
                hosts.push(host);
            }
        }
        net.group(format!("pod{pod}"), hosts);
    }
    net.first_receives();
    Ok(net)
}
