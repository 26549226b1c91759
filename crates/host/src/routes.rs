//! Routes by rtnetlink(7). A route is kept as the kernel's own bytes, so that what this program does not know comes back as it was.

use crate::device;
use crate::error::Error;
use crate::netlink::{ACK, Attribute, Channel, DUMP, attributes, written};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
const REPLACE: u16 = 0x100;
const CREATE: u16 = 0x400;

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

/// A route as the kernel writes it: `struct rtmsg` and attributes, without what tells how its links are and how it was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route(Vec<u8>);

impl Route {
    /// Of bytes that were saved.
    pub fn saved(bytes: Vec<u8>) -> Option<Route> {
        (bytes.len() >= RTMSG).then_some(Route(bytes))
    }

    /// The device that it leaves by, where there is one.
    pub fn device(&self) -> Option<u32> {
        let all = self.attributes();
        all.iter()
            .find(|(kind, _)| *kind == RTA_OIF)
            .and_then(|(_, value)| value.as_slice().try_into().ok())
            .map(u32::from_ne_bytes)
    }

    /// All devices that it may leave by: its own, and those of its next hops (`rtnh_ifindex`).
    fn devices(&self) -> Vec<u32> {
        let mut found: Vec<u32> = self.device().into_iter().collect();
        for (_, hops) in self.attributes().iter().filter(|(kind, _)| *kind == RTA_MULTIPATH) {
            found.extend(next_hops(hops).iter().map(|at| {
                let number = [hops[at + 4], hops[at + 5], hops[at + 6], hops[at + 7]];
                u32::from_ne_bytes(number)
            }));
        }
        found
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
            for at in next_hops(hops) {
                hops[at + 2] &= RTNH_F_ONLINK;
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

/// Where each `struct rtnexthop` of a multipath attribute begins.
fn next_hops(hops: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + NEXT_HOP <= hops.len() {
        found.push(at);
        let length = usize::from(u16::from_ne_bytes([hops[at], hops[at + 1]]));
        at += length.max(NEXT_HOP).next_multiple_of(4);
    }
    found
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
pub struct Routes(Channel);

impl Routes {
    /// Asks the kernel of this network namespace.
    pub fn open() -> Result<Routes, Error> {
        Channel::open(NETLINK_ROUTE).map(Routes).map_err(Error::kernel("rtnetlink"))
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

    /// Puts back a route that was kept; false where a network device of it is gone, and the route with it.
    pub fn restore(&mut self, route: &Route) -> Result<bool, Error> {
        match self.replace(route) {
            Err(_) if route.devices().into_iter().any(|number| device::name(number).is_none()) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Removes a route.
    pub fn remove(&mut self, route: &Route) -> Result<(), Error> {
        self.ask(RTM_DELROUTE, ACK, &route.0).map(drop).map_err(Error::kernel("removing a route"))
    }

    fn ask(&mut self, kind: u16, flags: u16, payload: &[u8]) -> io::Result<Vec<Route>> {
        let answers = self.0.ask(kind, flags, payload, RTM_NEWROUTE)?;
        Ok(answers.iter().filter(|body| body.len() >= RTMSG).map(|body| Route::of_kernel(body)).collect())
    }
}
