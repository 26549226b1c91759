//! N senders and one receiver around one switch: the incast topology of every paper here.

use super::{Topology, link_keys, link_params};
use crate::error::ScenarioError;
use crate::net::{Common, Net};
use crate::reader::Reader;
use fanin_units::Setting;

pub const TOPOLOGY: Topology = Topology {
    name: "star",
    title: "N senders and one receiver around one switch",
    source: "TRIM section II.B, GSS section 2, DCVegas section IV",
    names: "hosts s1..sN and client; groups senders, receiver; bottleneck port switch->client",
    keys: KEYS,
    build,
};

const RECEIVER: [Setting; 4] = link_keys!("receiver_", "the link between switch and receiver");
const KEYS: &[Setting] = &[
    Setting::count_to("senders", 1, 100_000, "how many senders").default("8"),
    RECEIVER[0],
    RECEIVER[1],
    RECEIVER[2],
    RECEIVER[3],
];

fn build(reader: &Reader<'_>, common: &Common) -> Result<Net, ScenarioError> {
    let sender_link = link_params(reader, "", None)?;
    let receiver_link = link_params(reader, "receiver_", Some(&sender_link))?;
    let mut net = Net::new(common);
    let switch = net.switch("switch", common);
    let client = net.host("client");
    net.cable(switch, client, &receiver_link, common);
    let senders: Vec<_> = (1..=reader.get::<u64>("senders")?).map(|i| net.host(format!("s{i}"))).collect();
    for &sender in &senders {
        net.cable(sender, switch, &sender_link, common);
    }
    net.group("senders", senders);
    net.group("receiver", vec![client]);
    Ok(net)
}
