//! N senders and one receiver around one switch: the incast topology of every paper here.

use super::{Topology, lane, lane_keys};
use crate::error::ScenarioError;
use crate::keys::Key;
use crate::net::{Common, Net};
use crate::reader::Reader;

pub const TOPOLOGY: Topology = Topology {
    name: "star",
    title: "N senders and one receiver around one switch",
    source: "TRIM section II.B, GSS section 2, DCVegas section IV",
    names: "hosts s1..sN and client; groups senders, receiver; bottleneck port switch->client",
    keys: KEYS,
    build,
};

const RECEIVER: [Key; 4] = lane_keys!("receiver_", "the link between switch and receiver");
const KEYS: &[Key] = &[
    Key::count_to("senders", 1, 100_000, "how many senders").default("8"),
    RECEIVER[0],
    RECEIVER[1],
    RECEIVER[2],
    RECEIVER[3],
];

fn build(reader: &Reader<'_>, common: &Common) -> Result<Net, ScenarioError> {
    let sender_lane = lane(reader, "", None)?;
    let receiver_lane = lane(reader, "receiver_", Some(&sender_lane))?;
    let mut net = Net::new(common);
    let switch = net.switch("switch", common);
    let client = net.host("client");
    net.cable(switch, client, &receiver_lane, common);
    let senders: Vec<_> = (1..=reader.get::<u64>("senders")?).map(|i| net.host(format!("s{i}"))).collect();
    for &sender in &senders {
        net.cable(sender, switch, &sender_lane, common);
    }
    net.group("senders", senders);
    net.group("receiver", vec![client]);
    Ok(net)
}
