//! Routes by rtnetlink(7). A route is kept as the kernel's own bytes, so that what this program does not know comes back as it was.

use crate::error::Error;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::net::IpAddr;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const DUMP: u16 = 0x300;
const REPLACE: u16 = 0x100;
const CREATE: u16 = 0x400;

/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// `struct rtmsg`.
const RTMSG: usize = 12;
/// `struct rtnexthop`.
const NEXT_HOP: usize = 8;

const RTM_F_CLONED: u32 = 0x200;
const RTM_F_FIB_MATCH: u32 = 0x2000;
/// The only flag of a next hop that is the operator's; the others tell how its link is.
const RTNH_F_ONLINK: u8 = 4;
/// The table of a host's own addresses.
const LOCAL: u8 = 255;

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
/// The metrics of a route, themselves attributes (`RTAX_*`).
pub const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_CACHEINFO: u16 = 12;
const RTA_VIA: u16 = 18;
const RTA_NH_ID: u16 = 30;

/// One attribute: its kind, without the bit that says that it is nested, and its bytes.
pub type Attribute = (u16, Vec<u8>);

/// The attributes in some bytes; a cut one ends them.
pub fn attributes(mut bytes: &[u8]) -> Vec<Attribute> {
    let mut found = Vec::new();
    while let [a, b, c, d, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let Some(value) = bytes.get(4..length) else { break };
        found.push((u16::from_ne_bytes([c, d]) & 0x3fff, value.to_vec()));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// Attributes as bytes.
pub fn written(attributes: &[Attribute]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, value) in attributes {
        bytes.extend(((value.len() + 4) as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

/// A route as the kernel writes it: `struct rtmsg` and attributes, without what tells how its links are and how it was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route(Vec<u8>);

impl Route {
    /// Of bytes that were saved.
    pub fn saved(bytes: Vec<u8>) -> Option<Route> {
        (bytes.len() >= RTMSG).then_some(Route(bytes))
    }

    /// To be saved.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn of_kernel(payload: &[u8]) -> Route {
        let mut head = payload[..RTMSG].to_vec();
        head[8..12].copy_from_slice(&[RTNH_F_ONLINK & payload[8], 0, 0, 0]);
        let mut all = attributes(&payload[RTMSG..]);
        all.retain(|(kind, _)| *kind != RTA_CACHEINFO);
        // Where a route has a next-hop object, the kernel shows what it stands for as well, and takes one of them.
        if all.iter().any(|(kind, _)| *kind == RTA_NH_ID) {
            all.retain(|(kind, _)| ![RTA_OIF, RTA_GATEWAY, RTA_MULTIPATH, RTA_VIA].contains(kind));
        }
        for (_, hops) in all.iter_mut().filter(|(kind, _)| *kind == RTA_MULTIPATH) {
            let mut at = 0;
            while at + NEXT_HOP <= hops.len() {
                hops[at + 2] &= RTNH_F_ONLINK;
                let length = usize::from(u16::from_ne_bytes([hops[at], hops[at + 1]]));
                at += length.max(NEXT_HOP).next_multiple_of(4);
            }
        }
        head.extend(written(&all));
        Route(head)
    }

    /// The attributes.
    pub fn attributes(&self) -> Vec<Attribute> {
        attributes(&self.0[RTMSG..])
    }

    /// The metrics.
    pub fn metrics(&self) -> Vec<Attribute> {
        let all = self.attributes();
        all.iter().find(|(kind, _)| *kind == RTA_METRICS).map(|(_, value)| attributes(value)).unwrap_or_default()
    }

    /// The same way for one host alone, with these metrics.
    pub fn to_host(&self, host: IpAddr, metrics: &[Attribute]) -> Route {
        let address = octets(host);
        let mut head = self.0[..RTMSG].to_vec();
        head[1] = (address.len() * 8) as u8;
        let mut all = self.attributes();
        all.retain(|(kind, _)| ![RTA_DST, RTA_METRICS].contains(kind));
        all.insert(0, (RTA_DST, address));
        if !metrics.is_empty() {
            all.push((RTA_METRICS, written(metrics)));
        }
        head.extend(written(&all));
        Route(head)
    }

    fn is_exactly(&self, host: IpAddr) -> bool {
        let address = octets(host);
        let flags = u32::from_ne_bytes([self.0[8], self.0[9], self.0[10], self.0[11]]);
        usize::from(self.0[1]) == address.len() * 8
            && self.0[4] != LOCAL
            && flags & RTM_F_CLONED == 0
            && self.attributes().iter().any(|(kind, value)| *kind == RTA_DST && *value == address)
    }
}

fn octets(host: IpAddr) -> Vec<u8> {
    match host {
        IpAddr::V4(host) => host.octets().to_vec(),
        IpAddr::V6(host) => host.octets().to_vec(),
    }
}

fn family(host: IpAddr) -> u8 {
    // AF_INET and AF_INET6 of Linux.
    if host.is_ipv4() { 2 } else { 10 }
}

/// The kernel's routes.
pub struct Routes {
    socket: Socket,
    sequence: u32,
}

impl Routes {
    /// Asks the kernel of this network namespace.
    pub fn open() -> Result<Routes, Error> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        Ok(Routes { socket: open().map_err(Error::kernel("rtnetlink"))?, sequence: 0 })
    }

    /// Routes to this host alone, in any table, in the kernel's order.
    pub fn exactly(&mut self, host: IpAddr) -> Result<Vec<Route>, Error> {
        let mut ask = vec![0; RTMSG];
        ask[0] = family(host);
        let all = self.ask(RTM_GETROUTE, DUMP, &ask).map_err(Error::kernel("listing routes"))?;
        Ok(all.into_iter().filter(|route| route.is_exactly(host)).collect())
    }

    /// The route that packets to this host take.
    pub fn used(&mut self, host: IpAddr) -> Result<Route, Error> {
        let address = octets(host);
        let mut ask = vec![0; RTMSG];
        (ask[0], ask[1]) = (family(host), (address.len() * 8) as u8);
        ask[8..12].copy_from_slice(&RTM_F_FIB_MATCH.to_ne_bytes());
        ask.extend(written(&[(RTA_DST, address)]));
        let what = || format!("the route to {host}");
        let found = self.ask(RTM_GETROUTE, 0, &ask).map_err(Error::kernel(what()))?;
        let none = || Error::kernel(what())(io::Error::from(io::ErrorKind::NotFound));
        found.into_iter().next().ok_or_else(none)
    }

    /// Puts a route in place of the one of the same destination, table, metric and type of service.
    pub fn replace(&mut self, route: &Route) -> Result<(), Error> {
        self.ask(RTM_NEWROUTE, CREATE | REPLACE | ACK, &route.0).map(drop).map_err(Error::kernel("setting a route"))
    }

    /// Removes a route.
    pub fn remove(&mut self, route: &Route) -> Result<(), Error> {
        self.ask(RTM_DELROUTE, ACK, &route.0).map(drop).map_err(Error::kernel("removing a route"))
    }

    fn ask(&mut self, kind: u16, flags: u16, payload: &[u8]) -> io::Result<Vec<Route>> {
        self.sequence += 1;
        let mut message = Vec::with_capacity(HEADER + payload.len());
        message.extend(((HEADER + payload.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((REQUEST | flags).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(payload);
        self.socket.send(&message, 0)?;
        let mut found = Vec::new();
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let mut rest = answer.as_slice();
            while rest.len() >= HEADER {
                let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
                let Some(body) = rest.get(HEADER..length) else { break };
                let sequence = u32::from_ne_bytes([rest[8], rest[9], rest[10], rest[11]]);
                match u16::from_ne_bytes([rest[4], rest[5]]) {
                    _ if sequence != self.sequence => {}
                    NLMSG_ERROR => {
                        let code = body.get(..4).map_or(0, |c| i32::from_ne_bytes([c[0], c[1], c[2], c[3]]));
                        return if code == 0 { Ok(found) } else { Err(io::Error::from_raw_os_error(-code)) };
                    }
                    NLMSG_DONE => return Ok(found),
                    RTM_NEWROUTE if body.len() >= RTMSG => {
                        found.push(Route::of_kernel(body));
                        if flags & (DUMP | ACK) == 0 {
                            return Ok(found);
                        }
                    }
                    _ => {}
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}
