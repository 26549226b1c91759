//! System calls that the standard library does not have. The only unsafe code of this crate: each call is given memory that lives longer.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The monotonic clock, ns.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable. The monotonic clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A BPF map of sockets in which a congestion control looks for deadlines (`kernel/cc/d2tcp.c`).
#[derive(Debug)]
pub struct Deadlines(OwnedFd);

/// `struct deadline` of that file.
#[repr(C)]
struct Deadline {
    at_ns: u64,
    unsent: u64,
}

impl Deadlines {
    /// The map of this id.
    ///
    /// # Errors
    /// What the system says: there is none, or it is not allowed.
    pub fn open(id: u32) -> io::Result<Deadlines> {
        const GET_FD_BY_ID: libc::c_long = 14;
        // The kernel takes shorter structs for those that it knows with zeros behind.
        let attributes = [id, 0, 0, 0];
        // SAFETY: the attributes are readable and as long as they are said to be.
        let fd = unsafe { libc::syscall(libc::SYS_bpf, GET_FD_BY_ID, attributes.as_ptr(), size_of_val(&attributes)) };
        // SAFETY: a new descriptor, which only this owns.
        check(fd as libc::c_int).map(|fd| Deadlines(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// What is sent on a socket from now on should be delivered by `at`, and `unsent` bytes of it are still to be written.
    ///
    /// # Errors
    /// What the system says.
    pub fn tell(&self, socket: RawFd, at: Option<u64>, unsent: u64) -> io::Result<()> {
        const UPDATE_ELEM: libc::c_long = 2;
        let value = Deadline { at_ns: at.unwrap_or(0), unsent };
        let attributes: [u64; 4] = [self.0.as_raw_fd() as u64, &raw const socket as u64, &raw const value as u64, 0];
        // SAFETY: the attributes, the key and the value are readable; the kernel keeps none of their addresses.
        let done = unsafe { libc::syscall(libc::SYS_bpf, UPDATE_ELEM, attributes.as_ptr(), size_of_val(&attributes)) };
        check(done as libc::c_int).map(drop)
    }
}

/// Socket options of the virtual kernel's own (`kernel/net/receiver.c`), at the level of TCP.
mod own {
    pub const EXPECT: i32 = 0x4641_4e01;
    pub const MESSAGE: i32 = 0x4641_4e02;
}

/// The application expects data up to this offset of the stream; the run began at `zero`.
///
/// # Errors
/// What the system says: only the virtual kernel knows this option.
pub fn expect(socket: RawFd, up_to: u64, zero: u64) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, own::EXPECT, &two(up_to, zero))
}

/// What is written next is a message of so many bytes, to be delivered by `deadline`.
///
/// # Errors
/// What the system says: only the virtual kernel knows this option, and only on a connection that is established.
pub fn message(socket: RawFd, bytes: u64, deadline: Option<u64>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, own::MESSAGE, &two(bytes, deadline.unwrap_or(0)))
}

fn two(first: u64, second: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_ne_bytes());
    bytes[8..].copy_from_slice(&second.to_ne_bytes());
    bytes
}

/// Moves the calling thread into a network namespace.
///
/// # Errors
/// What the system says: there is none at this path, or it is not allowed.
pub fn enter_namespace(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: the descriptor is open.
    check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Timers of this thread fire at their nanosecond instead of up to 50 us late.
pub fn exact_timers() {
    // SAFETY: takes a number. Where it is refused, timerfd is still exact.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// This process is killed when the thread that started it ends, also when that was killed.
pub fn end_with_parent() {
    // SAFETY: takes numbers. Where it is refused, the process ends with its plan.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

fn address(to: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*to.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

const ADDRESS_LENGTH: libc::socklen_t = size_of::<libc::sockaddr_in>() as libc::socklen_t;

/// A socket that does not block.
///
/// # Errors
/// What the system says.
pub fn socket(kind: libc::c_int) -> io::Result<OwnedFd> {
    let flags = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers.
    let fd = check(unsafe { libc::socket(libc::AF_INET, flags, 0) })?;
    // SAFETY: it was opened just now.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Names a socket.
///
/// # Errors
/// What the system says.
pub fn bind(fd: RawFd, to: SocketAddrV4) -> io::Result<()> {
    let to = address(to);
    // SAFETY: the address is as long as said.
    check(unsafe { libc::bind(fd, (&raw const to).cast(), ADDRESS_LENGTH) }).map(drop)
}

/// Begins to listen.
///
/// # Errors
/// What the system says.
pub fn listen(fd: RawFd) -> io::Result<()> {
    // SAFETY: takes numbers.
    check(unsafe { libc::listen(fd, 65_535) }).map(drop)
}

/// Connects, or begins to.
///
/// # Errors
/// What the system says.
pub fn connect(fd: RawFd, to: SocketAddrV4) -> io::Result<()> {
    let to = address(to);
    // SAFETY: the address is as long as said.
    match check(unsafe { libc::connect(fd, (&raw const to).cast(), ADDRESS_LENGTH) }) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        result => result.map(drop),
    }
}

/// The next connection of a listening socket, and its other end.
///
/// # Errors
/// `WouldBlock` when there is none, or what the system says.
pub fn accept(fd: RawFd) -> io::Result<(OwnedFd, SocketAddrV4)> {
    let mut from = address(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
    let mut length = ADDRESS_LENGTH;
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: address and length are writable and fit each other.
    let fd = check(unsafe { libc::accept4(fd, (&raw mut from).cast(), &mut length, flags) })?;
    let from = SocketAddrV4::new(u32::from_be(from.sin_addr.s_addr).into(), u16::from_be(from.sin_port));
    // SAFETY: it was opened just now.
    Ok((unsafe { OwnedFd::from_raw_fd(fd) }, from))
}

/// Sets an option to bytes.
///
/// # Errors
/// What the system says.
pub fn set_option(fd: RawFd, level: libc::c_int, name: libc::c_int, value: &[u8]) -> io::Result<()> {
    // SAFETY: the value is as long as said.
    check(unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), value.len() as libc::socklen_t) }).map(drop)
}

/// The error that a socket has met, if any.
///
/// # Errors
/// That error.
pub fn take_error(fd: RawFd) -> io::Result<()> {
    let mut error: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value is writable and as long as said.
    check(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut error).cast(), &mut length) })?;
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// `TCP_INFO` as far as this kernel fills it; the rest is zero.
///
/// # Errors
/// What the system says.
pub fn tcp_info(fd: RawFd) -> io::Result<[u8; 256]> {
    let mut info = [0; 256];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the value is writable and as long as said.
    check(unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut length) })?;
    Ok(info)
}

fn size(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Sends bytes.
///
/// # Errors
/// `WouldBlock` when the send buffer is full, or what the system says.
pub fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are as many as said.
    size(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) })
}

/// Sends a datagram.
///
/// # Errors
/// What the system says.
pub fn send_to(fd: RawFd, bytes: &[u8], to: SocketAddrV4) -> io::Result<usize> {
    let to = address(to);
    // SAFETY: bytes and address are as long as said.
    size(unsafe {
        libc::sendto(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL, (&raw const to).cast(), ADDRESS_LENGTH)
    })
}

/// Takes up to `most` bytes out of the receive buffer without looking at them; 0: the other end has closed.
///
/// # Errors
/// `WouldBlock` when there are none, or what the system says.
pub fn discard(fd: RawFd, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC TCP writes nothing to the buffer (tcp(7)).
    size(unsafe { libc::recv(fd, std::ptr::null_mut(), most, libc::MSG_TRUNC) })
}

/// Copies what is in the receive buffer, and leaves it there; 0: the other end has closed.
///
/// # Errors
/// `WouldBlock` when there is nothing, or what the system says.
pub fn peek(fd: RawFd, bytes: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is as long as said.
    size(unsafe { libc::recv(fd, bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_PEEK) })
}

/// Takes a datagram.
///
/// # Errors
/// `WouldBlock` when there is none, or what the system says.
pub fn discard_datagram(fd: RawFd) -> io::Result<usize> {
    let mut byte = [0_u8; 1];
    // SAFETY: the buffer is as long as said.
    size(unsafe { libc::recv(fd, byte.as_mut_ptr().cast(), 1, libc::MSG_TRUNC) })
}

/// Closes a connection with a reset: nothing unsent is sent.
pub fn reset(fd: OwnedFd) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the value is as long as said. If it is refused the connection closes the usual way.
    unsafe {
        let length = size_of::<libc::linger>() as libc::socklen_t;
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), length);
    }
}

/// An epoll instance with a timer in it, whose events have the token [`Poll::TIMER`].
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed: u64,
}

impl Poll {
    /// Token of the timer.
    pub const TIMER: u64 = u64::MAX;

    /// An empty one.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Poll> {
        // SAFETY: both take numbers and open a descriptor.
        let (epoll, timer) = unsafe {
            let epoll = OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?);
            let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
            (epoll, OwnedFd::from_raw_fd(check(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?))
        };
        let poll = Poll { epoll, timer, armed: 0 };
        poll.watch(poll.timer.as_raw_fd(), libc::EPOLLIN as u32, Poll::TIMER, true)?;
        Ok(poll)
    }

    /// Waits for events of a descriptor, newly or otherwise than before.
    ///
    /// # Errors
    /// What the system says.
    pub fn watch(&self, fd: RawFd, events: u32, token: u64, new: bool) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        let operation = if new { libc::EPOLL_CTL_ADD } else { libc::EPOLL_CTL_MOD };
        // SAFETY: the event is readable.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) }).map(drop)
    }

    /// The timer fires at this time of the monotonic clock.
    ///
    /// # Errors
    /// What the system says.
    pub fn wake_at(&mut self, time: u64) -> io::Result<()> {
        if self.armed == time {
            return Ok(());
        }
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let at = libc::timespec {
            tv_sec: (time / 1_000_000_000) as libc::time_t,
            tv_nsec: (time % 1_000_000_000).max(1) as libc::c_long,
        };
        let value = libc::itimerspec { it_interval: zero, it_value: at };
        // SAFETY: the value is readable.
        check(unsafe {
            libc::timerfd_settime(self.timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &value, std::ptr::null_mut())
        })?;
        self.armed = time;
        Ok(())
    }

    /// Blocks until something happens; gives (events, token).
    ///
    /// # Errors
    /// What the system says.
    pub fn wait(&mut self, out: &mut Vec<(u32, u64)>) -> io::Result<()> {
        const MOST: usize = 256;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST];
        // SAFETY: there is room for as many events as said.
        let count =
            check(unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), MOST as libc::c_int, -1) })?;
        out.clear();
        for event in &events[..count as usize] {
            if event.u64 == Poll::TIMER {
                let mut expired = [0_u8; 8];
                // SAFETY: there is room for the 8 bytes of a timerfd.
                unsafe { libc::read(self.timer.as_raw_fd(), expired.as_mut_ptr().cast(), 8) };
                self.armed = 0;
            }
            out.push((event.events, event.u64));
        }
        Ok(())
    }
}
