//! An address and a route with metrics, by rtnetlink: what `ip address add` and `ip route add` send.
#![allow(unsafe_code)]

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// All hosts are in 10.0.0.0/8.
const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
const PREFIX: u8 = 8;

// linux/rtnetlink.h, linux/if_link.h and linux/if_addr.h.
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTAX_INITCWND: u16 = 11;
const RTAX_QUICKACK: u16 = 15;

/// A netlink socket of the present namespace.
pub struct Socket(OwnedFd);

impl Socket {
    /// Opens one.
    pub fn open() -> Result<Socket, String> {
        // SAFETY: takes numbers; what it opens belongs to the result.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(format!("netlink: {}", io::Error::last_os_error()));
        }
        // SAFETY: it was opened just now.
        Ok(Socket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Gives a device an address, sets it up, and makes it the way to all hosts.
    pub fn configure(&mut self, device: &str, address: Ipv4Addr, initcwnd: u32, quickack: bool) -> Result<(), String> {
        let name = std::ffi::CString::new(device).map_err(|e| e.to_string())?;
        // SAFETY: the name ends with a zero.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let link = (u32::from(libc::AF_UNSPEC as u8), index, libc::IFF_UP as u32);
        let mut up = Message::new(libc::RTM_NEWLINK, 0);
        // struct ifinfomsg: family, type, index, flags, mask.
        for word in [link.0, link.1, link.2, libc::IFF_UP as u32] {
            up.word(word);
        }
        let create = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        let mut local = Message::new(libc::RTM_NEWADDR, create);
        // struct ifaddrmsg: family, prefix, flags, scope, index. /32: the route comes below.
        local.bytes(&[libc::AF_INET as u8, 32, 0, 0]);
        local.word(index);
        local.attribute(IFA_LOCAL, &address.octets());
        local.attribute(IFA_ADDRESS, &address.octets());
        let mut route = Message::new(libc::RTM_NEWROUTE, create);
        // struct rtmsg: family, prefix of destination and source, tos, table, protocol, scope, type, flags.
        let (main, boot) = (libc::RT_TABLE_MAIN, libc::RTPROT_BOOT);
        route.bytes(&[libc::AF_INET as u8, PREFIX, 0, 0, main, boot, libc::RT_SCOPE_LINK, libc::RTN_UNICAST]);
        route.word(0);
        route.attribute(RTA_DST, &NETWORK.octets());
        route.attribute(RTA_OIF, &index.to_ne_bytes());
        route.attribute(RTA_PREFSRC, &address.octets());
        let mut metrics = Vec::new();
        for (kind, value) in [(RTAX_INITCWND, initcwnd), (RTAX_QUICKACK, u32::from(quickack))] {
            if value != 0 {
                attribute(&mut metrics, kind, &value.to_ne_bytes());
            }
        }
        route.attribute(RTA_METRICS, &metrics);
        for (what, message) in [("address", local), (device, up), ("route", route)] {
            self.ask(&message).map_err(|e| format!("{what}: {e}"))?;
        }
        Ok(())
    }

    fn ask(&mut self, message: &Message) -> io::Result<()> {
        let bytes = message.finished();
        let mut answer = [0_u8; 512];
        // SAFETY: both buffers are as long as said.
        let received = unsafe {
            if libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::recv(self.0.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0)
        };
        // struct nlmsghdr of 16 bytes, then the error as a negative number.
        match usize::try_from(received) {
            Ok(n) if n >= 20 => match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(-error)),
            },
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

/// A request in the making: struct nlmsghdr and what follows.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16) -> Message {
        let mut message = Message(vec![0; 4]);
        message.bytes(&kind.to_ne_bytes());
        message.bytes(&(flags | (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16).to_ne_bytes());
        message.bytes(&[0; 8]);
        message
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn word(&mut self, word: u32) {
        self.bytes(&word.to_ne_bytes());
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        attribute(&mut self.0, kind, value);
    }

    fn finished(&self) -> Vec<u8> {
        let mut bytes = self.0.clone();
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    }
}

/// struct rtattr and its value, padded to four bytes.
fn attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}
