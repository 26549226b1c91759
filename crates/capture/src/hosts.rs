//! Who receives from whom, and who therefore is the aggregator.

use crate::{Connection, Host};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

#[derive(Default)]
struct Seen {
    received: u64,
    sent: u64,
    senders: BTreeSet<IpAddr>,
    connections: u32,
}

/// What each host sent and received.
#[derive(Default)]
pub(crate) struct Hosts(BTreeMap<IpAddr, Seen>);

impl Hosts {
    /// One more connection.
    pub fn add(&mut self, c: &Connection) {
        let sides = [
            (c.client_ip, c.server_ip, c.to_server.unique_bytes, c.to_client.unique_bytes),
            (c.server_ip, c.client_ip, c.to_client.unique_bytes, c.to_server.unique_bytes),
        ];
        for (me, other, sent, received) in sides {
            let host = self.0.entry(me).or_default();
            host.sent += sent;
            host.received += received;
            host.connections += 1;
            if received > 0 {
                host.senders.insert(other);
            }
        }
    }

    /// All hosts, the likeliest aggregator first: by payload received times the number of hosts it came from.
    ///
    /// Bytes alone would name one client of many when a server was captured, peers alone a server with many askers; the product asks for both.
    /// Ties go to more bytes, then to the lower address, so the order never depends on chance.
    pub fn ranked(self) -> Vec<Host> {
        let mut ranked: Vec<Host> = self
            .0
            .into_iter()
            .map(|(ip, h)| Host {
                ip,
                received_bytes: h.received,
                sent_bytes: h.sent,
                senders: h.senders.len() as u32,
                connections: h.connections,
            })
            .collect();
        ranked.sort_by_key(|h| {
            let score = u128::from(h.received_bytes) * u128::from(h.senders);
            (Reverse(score), Reverse(h.received_bytes), h.ip)
        });
        ranked
    }
}
