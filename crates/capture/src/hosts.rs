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
    /// It opened one of them.
    opened: bool,
}

impl Seen {
    /// Less: likelier the aggregator.
    fn order(&self, ip: IpAddr) -> (Reverse<u128>, Reverse<u64>, IpAddr) {
        let score = u128::from(self.received) * self.senders.len() as u128;
        (Reverse(score), Reverse(self.received), ip)
    }
}

/// What each host sent and received.
#[derive(Default)]
pub(crate) struct Hosts(BTreeMap<IpAddr, Seen>);

impl Hosts {
    /// One more connection.
    pub fn add(&mut self, c: &Connection) {
        self.connection([c.client_ip, c.server_ip], [c.to_server.unique_bytes, c.to_client.unique_bytes]);
    }

    /// Of these hosts, the one that opened it first, and what each of them sent.
    fn connection(&mut self, hosts: [IpAddr; 2], sent: [u64; 2]) {
        for (me, other) in [(0, 1), (1, 0)] {
            let host = self.0.entry(hosts[me]).or_default();
            host.sent += sent[me];
            host.received += sent[other];
            host.connections += 1;
            host.opened |= me == 0;
            if sent[other] > 0 {
                host.senders.insert(hosts[other]);
            }
        }
    }

    /// All hosts, the likeliest aggregator first: by payload received times the number of hosts it came from.
    ///
    /// Bytes alone would name one client of many when a server was captured, peers alone a server with many askers; the product asks for both.
    /// Who only takes what one other brings, who brings more to others, is a server of that one: replicas that are written to, stores that are
    /// uploaded to. Ties go to more bytes, then to the lower address, so the order never depends on chance.
    pub fn ranked(self) -> Vec<Host> {
        let most = self.0.iter().min_by_key(|(ip, h)| h.order(**ip));
        let only =
            most.filter(|(_, h)| !h.opened && h.senders.len() == 1).and_then(|(_, h)| h.senders.first().copied());
        let first = only.filter(|ip| self.0.get(ip).is_some_and(|asks| asks.senders.len() > 1));
        let mut ranked: Vec<(IpAddr, Seen)> = self.0.into_iter().collect();
        ranked.sort_by_key(|(ip, h)| (Some(*ip) != first, h.order(*ip)));
        let host = |(ip, h): (IpAddr, Seen)| Host {
            ip,
            received_bytes: h.received,
            sent_bytes: h.sent,
            senders: h.senders.len() as u32,
            connections: h.connections,
        };
        ranked.into_iter().map(host).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(host: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, host])
    }

    /// The first of the hosts of these connections: who opened it, to whom, and what either sent.
    fn likeliest(connections: &[(u8, u8, u64, u64)]) -> IpAddr {
        let mut hosts = Hosts::default();
        for &(client, server, up, down) in connections {
            hosts.connection([ip(client), ip(server)], [up, down]);
        }
        hosts.ranked()[0].ip
    }

    #[test]
    fn who_receives_most_from_most_hosts_is_the_aggregator() {
        assert_eq!(likeliest(&[(1, 2, 100, 9_000), (1, 3, 100, 9_000), (4, 1, 100, 17_000)]), ip(1));
    }

    #[test]
    fn who_uploads_to_several_and_has_their_words_for_it_is_the_aggregator() {
        assert_eq!(likeliest(&[(1, 2, 9_000, 100), (1, 3, 9_000, 100)]), ip(1));
        assert_eq!(likeliest(&[(1, 2, 9_000, 100)]), ip(2), "to one host alone");
    }

    #[test]
    fn a_server_with_several_askers_is_none() {
        assert_eq!(likeliest(&[(2, 1, 100, 9_000), (3, 1, 100, 9_000)]), ip(2));
    }

    #[test]
    fn to_whom_several_upload_is_the_aggregator() {
        assert_eq!(likeliest(&[(2, 1, 9_000, 100), (3, 1, 9_000, 100)]), ip(1));
    }
}
