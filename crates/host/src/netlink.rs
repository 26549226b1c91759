//! Netlink: one question to the kernel, and its answers; attributes in and out.

use netlink_sys::{Socket, SocketAddr};
use std::io;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const REQUEST: u16 = 0x1;
/// The kernel says that it is done.
pub const ACK: u16 = 0x4;
/// Everything, not one thing.
pub const DUMP: u16 = 0x300;

/// `struct nlmsghdr`.
const HEADER: usize = 16;

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

/// Questions to one part of the kernel in this network namespace.
pub struct Channel {
    socket: Socket,
    sequence: u32,
}

impl Channel {
    /// `protocol`: `NETLINK_ROUTE` and its like.
    pub fn open(protocol: isize) -> io::Result<Channel> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Channel { socket, sequence: 0 })
    }

    /// The bodies of the answers of one kind.
    pub fn ask(&mut self, kind: u16, flags: u16, payload: &[u8], answered: u16) -> io::Result<Vec<Vec<u8>>> {
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
                    kind if kind == answered => {
                        found.push(body.to_vec());
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
