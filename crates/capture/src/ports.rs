//! Which end of a connection is the server where its beginning is not in the capture: the ports tell.
//!
//! Servers have the lower, better known port. Where both are ports that a client's kernel gives out, as gRPC's 50051 is, the server's is the one that other
//! connections have, too.

use crate::decode::{Segment, flag};
use std::collections::HashMap;

/// Linux gives clients ports from here on (`net.ipv4.ip_local_port_range`).
const EPHEMERAL: u16 = 32_768;

/// The ports of connections whose beginning was not seen.
#[derive(Default)]
pub(crate) struct Ports {
    /// How many have each, and the first of these.
    of: HashMap<u16, (u32, u32)>,
}

/// What the ports of a connection say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The server's.
    pub server: Option<u16>,
    /// The only connection so far that has this port: nothing told its server before.
    pub first: Option<u32>,
}

impl Ports {
    /// Of a connection with this number that begins with this segment.
    pub fn tell(&mut self, s: &Segment, number: u32) -> Told {
        let (a, b) = (s.sport, s.dport);
        if s.flags & flag::SYN != 0 || a.min(b) < EPHEMERAL || a == b {
            return Told::default();
        }
        let seen = [a, b].map(|port| self.of.get(&port).copied().unwrap_or_default());
        for port in [a, b] {
            self.of.entry(port).or_insert((0, number)).0 += 1;
        }
        let (server, (count, first)) = match seen[0].0.cmp(&seen[1].0) {
            std::cmp::Ordering::Greater => (a, seen[0]),
            std::cmp::Ordering::Less => (b, seen[1]),
            std::cmp::Ordering::Equal => return Told::default(),
        };
        Told { server: Some(server), first: (count == 1).then_some(first) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What connections between these ports say, one after another.
    fn told<const N: usize>(ports: [(u16, u16); N]) -> [(Option<u16>, Option<u32>); N] {
        let mut all = Ports::default();
        let mut number = 0;
        ports.map(|(sport, dport)| {
            let told = all.tell(&Segment { sport, dport, ..Segment::default() }, number);
            number += 1;
            (told.server, told.first)
        })
    }

    #[test]
    fn a_port_that_several_connections_have_is_the_server_s() {
        let found = told([(40_000, 50_051), (50_051, 55_000), (41_000, 50_051)]);
        assert_eq!(found, [(None, None), (Some(50_051), Some(0)), (Some(50_051), None)]);
    }

    #[test]
    fn a_port_below_32768_is_known_without_others() {
        assert_eq!(told([(40_000, 32_767), (40_000, 32_766)]), [(None, None), (None, None)]);
        assert_eq!(told([(40_000, 32_768), (41_000, 32_768)])[1].0, Some(32_768));
    }
}
