//! Connections of this network namespace by sock_diag(7), as `ss -ti` shows them.

use crate::error::Error;
use crate::netlink::{Channel, DUMP, attributes};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::collections::BTreeMap;
use std::net::IpAddr;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET: u8 = 2;
const INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const ESTABLISHED: u32 = 1 << 1;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// `struct inet_diag_msg`, and where its `struct inet_diag_sockid` lies.
const MESSAGE: usize = 72;
const ID: std::ops::Range<usize> = 4..52;
/// The remote address in `struct inet_diag_sockid`.
const REMOTE: usize = 20;

/// Places in `struct tcp_info` (linux/tcp.h).
const RTT_US: usize = 68;
const TOTAL_RETRANS: usize = 100;
const DATA_SEGS_OUT: usize = 156;

/// One connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Smoothed round trip, microseconds.
    pub rtt_us: u32,
    /// Segments that were sent again, since it opened.
    pub retransmitted: u32,
    /// Segments with data that were sent, since it opened.
    pub sent: u32,
    /// Its congestion control.
    pub congestion_control: String,
}

/// The connected sockets to a host, by the kernel's name of each.
pub fn to(host: IpAddr) -> Result<BTreeMap<Vec<u8>, Connection>, Error> {
    let ask = || -> std::io::Result<Vec<Vec<u8>>> {
        let mut channel = Channel::open(NETLINK_SOCK_DIAG)?;
        let mut all = Vec::new();
        for family in [INET, INET6] {
            let mut request = vec![0; 56];
            request[0] = family;
            request[1] = IPPROTO_TCP;
            request[2] = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
            request[4..8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
            all.extend(channel.ask(SOCK_DIAG_BY_FAMILY, DUMP, &request, SOCK_DIAG_BY_FAMILY)?);
        }
        Ok(all)
    };
    let all = ask().map_err(Error::kernel("listing connections"))?;
    Ok(all.iter().filter_map(|message| connection(message, host)).collect())
}

fn connection(message: &[u8], host: IpAddr) -> Option<(Vec<u8>, Connection)> {
    let id = message.get(ID)?;
    let remote: [u8; 16] = id.get(REMOTE..REMOTE + 16)?.try_into().ok()?;
    // A socket of IPv6 may talk to an address of IPv4.
    let is_it = match (host, message[0]) {
        (IpAddr::V4(host), INET) => remote[..4] == host.octets(),
        (IpAddr::V4(host), _) => remote == host.to_ipv6_mapped().octets(),
        (IpAddr::V6(host), _) => remote == host.octets(),
    };
    let all = attributes(message.get(MESSAGE..).filter(|_| is_it)?);
    let of = |kind: u16| all.iter().find(|(other, _)| *other == kind).map(|(_, value)| value.as_slice());
    let info = of(INET_DIAG_INFO)?;
    // An older kernel has a shorter `struct tcp_info`.
    let number = |at: usize| info.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    let name = of(INET_DIAG_CONG).unwrap_or_default();
    Some((
        id.to_vec(),
        Connection {
            rtt_us: number(RTT_US),
            retransmitted: number(TOTAL_RETRANS),
            sent: number(DATA_SEGS_OUT),
            congestion_control: String::from_utf8_lossy(name).trim_end_matches('\0').to_owned(),
        },
    ))
}
