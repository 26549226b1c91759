//! N senders, a bottleneck between two switches, N receivers.

use super::{Topology, link_keys, link_params};
use crate::error::ScenarioError;
use crate::net::{Common, Net};
use crate::reader::Reader;
use fanin_units::Setting;

pub const TOPOLOGY: Topology = Topology {
    name: "dumbbell",
    title: "N pairs of hosts across one bottleneck",
    source: "common practice",
    names: "hosts s1..sN and r1..rN; groups senders, receivers; bottleneck port left->right",
    keys: KEYS,
    build,
};

const BOTTLENECK: [Setting; 4] = link_keys!("bottleneck_", "the link between the two switches");
const KEYS: &[Setting] = &[
    Setting::count_to("pairs", 1, 100_000, "how many pairs of hosts").default("2"),
    BOTTLENECK[0],
    BOTTLENECK[1],
    BOTTLENECK[2],
    BOTTLENECK[3],
];

fn build(reader: &Reader<'_>, common: &Common) -> Result<Net, ScenarioError> {
    let edge = link_params(reader, "", None)?;
    let bottleneck = link_params(reader, "bottleneck_", Some(&edge))?;
    let mut net = Net::new(common);
    net.default_to = "receivers";
    let (left, right) = (net.switch("left", common), net.switch("right", common));
    net.cable(left, right, &bottleneck, common);
    let pairs: u64 = reader.get("pairs")?;
    let senders: Vec<_> = (1..=pairs).map(|i| net.host(format!("s{i}"))).collect();
    let receivers: Vec<_> = (1..=pairs).map(|i| net.host(format!("r{i}"))).collect();
    for (&s, &r) in senders.iter().zip(&receivers) {
        net.cable(s, left, &edge, common);
        net.cable(right, r, &edge, common);
    }
    net.group("senders", senders);
    net.group("receivers", receivers);
    Ok(net)
}
