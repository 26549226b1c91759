//! DCTCP's multi-hop, multi-bottleneck test: two rack switches and a fabric switch between them.

use super::{Topology, link_params};
use crate::error::ScenarioError;
use crate::net::{Common, Net};
use crate::reader::Reader;
use fanin_sim::spec::NodeId;
use fanin_units::Setting;

pub const TOPOLOGY: Topology = Topology {
    name: "dctcp_multihop",
    title: "two racks and a fabric switch; S1 crosses both bottlenecks, S2 and S3 one each",
    source: "Alizadeh et al., DCTCP, SIGCOMM 2010, Fig. 17",
    names: "hosts s1_1..s1_10, s2_1..s2_20, s3_1..s3_10, r1, r2_1..r2_20; groups S1, S2, S3, R1, R2, senders (S1 and S3), receiver (R1); \
            bottleneck ports rack1->fabric and rack2->r1",
    keys: KEYS,
    build,
};

const KEYS: &[Setting] = &[
    Setting::count_to("group_size", 1, 10_000, "hosts in S1 and in S3; S2 and R2 have twice as many").default("10"),
    Setting::rate("fabric_rate", "rate between the switches").default("10Gbps"),
    Setting::time("fabric_delay", "delay between the switches; as `delay` unless set"),
    Setting::queue("fabric_buffer", "drop-tail limit at those links; as `buffer` unless set").positive(),
    Setting::queue("fabric_mark", "K at those links (DCTCP: 65p at 10Gbps, 20p at 1Gbps); as `mark` unless set")
        .positive(),
];

fn build(reader: &Reader<'_>, common: &Common) -> Result<Net, ScenarioError> {
    let edge = link_params(reader, "", None)?;
    let fabric_link = link_params(reader, "fabric_", Some(&edge))?;
    let size: u64 = reader.get("group_size")?;
    let mut net = Net::new(common);
    let (rack1, fabric, rack2) =
        (net.switch("rack1", common), net.switch("fabric", common), net.switch("rack2", common));
    net.cable(rack1, fabric, &fabric_link, common);
    net.cable(fabric, rack2, &fabric_link, common);
    let receiver = net.host("r1");
    net.cable(rack2, receiver, &edge, common);
    let mut senders: Vec<NodeId> = Vec::new();
    for (group, switch, count) in
        [("S1", rack1, size), ("S2", rack1, 2 * size), ("S3", rack2, size), ("R2", rack2, 2 * size)]
    {
        let hosts: Vec<NodeId> = (1..=count).map(|i| net.host(format!("{}_{i}", group.to_lowercase()))).collect();
        for &host in &hosts {
            net.cable(host, switch, &edge, common);
        }
        if group == "S1" || group == "S3" {
            senders.extend(&hosts);
        }
        net.group(group, hosts);
    }
    net.group("R1", vec![receiver]);
    net.group("senders", senders);
    net.group("receiver", vec![receiver]);
    Ok(net)
}
