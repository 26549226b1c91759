//! Two switches and two bottlenecks: group A crosses both, B and C one each.

use super::{Topology, link_params};
use crate::error::ScenarioError;
use crate::net::{Common, Net};
use crate::reader::Reader;
use fanin_sim::spec::NodeId;
use fanin_units::Setting;

pub const TOPOLOGY: Topology = Topology {
    name: "multihop",
    title: "two bottlenecks in a row, three groups of senders",
    source: "TRIM Fig. 10",
    names: "hosts a1.., b1.., c1.., d1.. and frontend; groups A, B, C, D, senders (A and B), receiver (frontend); \
            bottleneck ports switch1->switch2 and switch2->frontend",
    keys: KEYS,
    build,
};

const KEYS: &[Setting] = &[
    Setting::count_to("group_size", 1, 10_000, "hosts in each of A, B, C and D").default("10"),
    Setting::rate("bottleneck_rate", "rate between the switches and to the front end").default("10Gbps"),
    Setting::time("bottleneck_delay", "delay of those two links; as `delay` unless set"),
    Setting::queue("bottleneck_buffer", "drop-tail limit at those two links; as `buffer` unless set").positive(),
    Setting::queue("bottleneck_mark", "K at those two links; as `mark` unless set").positive(),
];

fn build(reader: &Reader<'_>, common: &Common) -> Result<Net, ScenarioError> {
    let edge = link_params(reader, "", None)?;
    let bottleneck = link_params(reader, "bottleneck_", Some(&edge))?;
    let size: u64 = reader.get("group_size")?;
    let mut net = Net::new(common);
    let (switch1, switch2) = (net.switch("switch1", common), net.switch("switch2", common));
    let frontend = net.host("frontend");
    net.cable(switch1, switch2, &bottleneck, common);
    net.cable(switch2, frontend, &bottleneck, common);
    let mut senders: Vec<NodeId> = Vec::new();
    for (group, switch) in [("A", switch1), ("B", switch2), ("C", switch1), ("D", switch2)] {
        let hosts: Vec<NodeId> = (1..=size).map(|i| net.host(format!("{}{i}", group.to_lowercase()))).collect();
        for &host in &hosts {
            net.cable(host, switch, &edge, common);
        }
        if group == "A" || group == "B" {
            senders.extend(&hosts);
        }
        net.group(group, hosts);
    }
    net.group("senders", senders);
    net.group("receiver", vec![frontend]);
    Ok(net)
}
