//! TCPRand's testbed: the part of a fat-tree that shows outcast. The receiver and the near sender S1 share a switch; S2 and S4 reach
//! it through another switch, so that their flows come in by one port and S1's by another. (The figure is not in the paper's text: this
//! is our reading of its caption and of section 7, where S1's flows are the outcast ones.)

use super::{Topology, link_keys, link_params};
use crate::error::ScenarioError;
use crate::net::{Common, Net};
use crate::reader::Reader;
use fanin_units::Setting;

pub const TOPOLOGY: Topology = Topology {
    name: "testbed",
    title: "three senders at two switches: one near the receiver, two behind one port",
    source: "TCPRand Fig. 7",
    names: "hosts s1, s2, s4 and r; groups senders, receiver; bottleneck port edge->r",
    keys: KEYS,
    build,
};

const UPLINK: [Setting; 4] = link_keys!("uplink_", "the link between the two switches");
const KEYS: &[Setting] = &UPLINK;

fn build(reader: &Reader<'_>, common: &Common) -> Result<Net, ScenarioError> {
    let host = link_params(reader, "", None)?;
    let uplink = link_params(reader, "uplink_", Some(&host))?;
    let mut net = Net::new(common);
    let (edge, upper) = (net.switch("edge", common), net.switch("upper", common));
    net.cable(upper, edge, &uplink, common);
    let receiver = net.host("r");
    net.cable(edge, receiver, &host, common);
    let senders = [("s1", edge), ("s2", upper), ("s4", upper)].map(|(name, switch)| {
        let sender = net.host(name);
        net.cable(sender, switch, &host, common);
        sender
    });
    net.group("senders", senders.to_vec());
    net.group("receiver", vec![receiver]);
    Ok(net)
}
