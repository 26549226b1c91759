//! Packets in and out of a namespace's devices: an AF_PACKET ring (TPACKET_V2) with the kernel's time stamps, and batches to send.
#![allow(unsafe_code)]

use crate::frame::ETHERNET;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a ring: 25 ms of 10 Gbps, or a quarter of a second of 1 Gbps.
const RING: usize = 1 << 25;
const BLOCK: usize = 1 << 20;
/// Packets that leave with one system call.
pub const BATCH: usize = 32;
/// ETH_P_IP, as the kernel wants it.
const IPV4: u16 = (libc::ETH_P_IP as u16).to_be();
/// ETH_P_ALL: what leaves as well.
const EVERY: u16 = (libc::ETH_P_ALL as u16).to_be();

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn option<T>(fd: RawFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value is as long as said, and plain numbers.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), size_of::<T>() as libc::socklen_t) })
        .map(drop)
}

fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers; what it opens belongs to the result. Protocol 0: nothing comes before `bind`.
    unsafe {
        let fd = check(libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// A packet in the ring.
#[derive(Debug)]
pub struct Received<'a> {
    /// Number of the device.
    pub device: i32,
    /// Arrival by the wall clock, ns.
    pub time_ns: u64,
    /// From Ethernet on, as much as was asked for.
    pub frame: &'a [u8],
    /// Bytes that it has on the wire.
    pub length: u32,
    /// It leaves this host.
    pub is_outgoing: bool,
}

/// Which packets a ring takes.
#[derive(Debug, Default)]
pub struct Taken<'a> {
    /// Those of one device, both ways; none: every IPv4 packet that arrives at any device of this namespace.
    pub device: Option<i32>,
    /// A classic BPF program (socket(7), `SO_ATTACH_FILTER`) that says how many bytes of a packet are kept.
    pub filter: &'a [libc::sock_filter],
}

/// Packets of this namespace's devices.
#[derive(Debug)]
pub struct Ring {
    fd: OwnedFd,
    memory: *mut u8,
    slot: usize,
    slots: usize,
    next: usize,
}

impl Ring {
    /// For IP packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// What the kernel says: it takes CAP_NET_RAW.
    pub fn open(mtu: usize, taken: &Taken<'_>) -> io::Result<Ring> {
        let fd = packet_socket()?;
        let raw = fd.as_raw_fd();
        option(raw, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        if !taken.filter.is_empty() {
            let program = libc::sock_fprog { len: taken.filter.len() as u16, filter: taken.filter.as_ptr().cast_mut() };
            // The kernel copies the program.
            option(raw, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        }
        // The stamp is made where the device takes the packet, not where this socket sees it.
        option(raw, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
        let room = size_of::<libc::tpacket2_hdr>() + size_of::<libc::sockaddr_ll>() + 64 + ETHERNET + mtu;
        let slot = room.next_power_of_two();
        let slots = RING / slot;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (RING / BLOCK) as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: slots as u32,
        };
        option(raw, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: the kernel chooses the place; the ring is as long as asked for above.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), RING, access, flags, raw, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = Ring { fd, memory: memory.cast(), slot, slots, next: 0 };
        // SAFETY: an all-zero address is valid; index 0 is every device of the namespace.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let protocol = taken.device.map_or(IPV4, |_| EVERY);
        (address.sll_family, address.sll_protocol) = (libc::AF_PACKET as u16, protocol);
        address.sll_ifindex = taken.device.unwrap_or_default();
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is as long as said.
        check(unsafe { libc::bind(raw, (&raw const address).cast(), length) })?;
        Ok(ring)
    }

    /// To wait for packets.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// The first packet that has not been dropped from the ring.
    pub fn peek(&self) -> Option<Received<'_>> {
        // SAFETY: `next` is a slot of the ring. The kernel writes a slot before it sets the status (acquire pairs with that), and not
        // again until `pop` has given it back, which takes `&mut self`.
        unsafe {
            let slot = self.memory.add(self.next * self.slot);
            let status = AtomicU32::from_ptr(slot.cast()).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                return None;
            }
            let header = &*slot.cast::<libc::tpacket2_hdr>();
            let from = &*slot.add(size_of::<libc::tpacket2_hdr>()).cast::<libc::sockaddr_ll>();
            let room = self.slot.saturating_sub(usize::from(header.tp_mac));
            let length = (header.tp_snaplen as usize).min(room);
            Some(Received {
                device: from.sll_ifindex,
                time_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
                frame: std::slice::from_raw_parts(slot.add(usize::from(header.tp_mac)), length),
                length: header.tp_len,
                is_outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
            })
        }
    }

    /// Gives that packet's slot back.
    pub fn pop(&mut self) {
        // SAFETY: as in `peek`; nothing of the slot is borrowed any more.
        unsafe {
            let slot = self.memory.add(self.next * self.slot);
            AtomicU32::from_ptr(slot.cast()).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + 1) % self.slots;
    }

    /// Packets that found no slot since the last call.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn drops(&self) -> io::Result<u64> {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        // SAFETY: the value is writable and as long as said.
        check(unsafe { libc::getsockopt(self.fd(), level, name, (&raw mut stats).cast(), &mut length) })?;
        Ok(u64::from(stats.tp_drops))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing borrows it.
        unsafe { libc::munmap(self.memory.cast(), RING) };
    }
}

/// A socket that puts packets on devices of this namespace.
#[derive(Debug)]
pub struct Sender(OwnedFd);

impl Sender {
    /// Opens one.
    pub fn open() -> io::Result<Sender> {
        let fd = packet_socket()?;
        option(fd.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)?;
        Ok(Sender(fd))
    }

    /// Sends up to [`BATCH`] frames, each to its device; how many were refused.
    pub fn send(&self, frames: &[(i32, &[u8])]) -> u64 {
        let count = frames.len().min(BATCH);
        // SAFETY: all-zero headers, addresses and vectors are valid. Those in use point to one another and to the frames, which live
        // until the calls are over; the kernel only reads the frames.
        unsafe {
            let mut addresses: [libc::sockaddr_ll; BATCH] = std::mem::zeroed();
            let mut vectors: [libc::iovec; BATCH] = std::mem::zeroed();
            let mut messages: [libc::mmsghdr; BATCH] = std::mem::zeroed();
            for (i, (device, frame)) in frames.iter().take(count).enumerate() {
                addresses[i].sll_family = libc::AF_PACKET as u16;
                addresses[i].sll_protocol = IPV4;
                addresses[i].sll_ifindex = *device;
                addresses[i].sll_halen = 6;
                vectors[i] = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
                let header = &mut messages[i].msg_hdr;
                header.msg_name = (&raw mut addresses[i]).cast();
                header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
                header.msg_iov = &raw mut vectors[i];
                header.msg_iovlen = 1;
            }
            let (mut done, mut refused) = (0, 0);
            while done < count {
                let left = (count - done) as libc::c_uint;
                match libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr().add(done), left, 0) {
                    sent if sent > 0 => done += sent as usize,
                    _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                    // The first of them was refused; the others have not been tried.
                    _ => (done, refused) = (done + 1, refused + 1),
                }
            }
            refused
        }
    }
}
