//! Sockets of the application: which are TCP, and where each one's current record ends.
#![allow(unsafe_code)]

use crate::records::{Least, Random, Window};
use crate::settings::Settings;
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Descriptors above this are left alone.
const MOST: usize = 65_536;
/// TCP_ESTABLISHED, TCP_CLOSE_WAIT: a peer may have closed its half.
const MAY_SEND: [u8; 2] = [1, 8];

/// include/uapi/linux/sockios.h.
const SIOCOUTQNSD: libc::c_ulong = 0x894B;

/// What is known of a descriptor.
#[derive(Clone, Copy, Debug, Default)]
pub enum Known {
    /// Nothing yet.
    #[default]
    Nothing,
    /// It is no TCP socket.
    Other,
    /// It is one: its random numbers, and how much of the open record (not yet ended by `MSG_EOR`) is still to be written.
    Tcp(Random, usize),
}

/// What the environment sets; what it cannot is said on standard error, once.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let (settings, faults) = Settings::read(|name| std::env::var(name).ok());
        for fault in faults {
            let line = format!("libfanin_tcprand: {fault}\n");
            // SAFETY: the line is readable and as long as said. Not `write`, which this library stands in front of.
            unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, line.as_ptr(), line.len()) };
        }
        settings
    })
}

/// What is known of a descriptor, to be changed; none: it is out of the table.
pub fn entry(fd: RawFd) -> Option<MutexGuard<'static, Known>> {
    static TABLE: OnceLock<Box<[Mutex<Known>]>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (0..MOST).map(|_| Mutex::new(Known::Nothing)).collect());
    let cell = table.get(usize::try_from(fd).ok()?)?;
    Some(cell.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Forgets a descriptor that is closed.
pub fn forget(fd: RawFd) {
    if let Some(mut known) = entry(fd) {
        *known = Known::Nothing;
    }
}

fn option<T>(fd: RawFd, level: libc::c_int, name: libc::c_int, value: &mut T) -> bool {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is writable and as long as said.
    unsafe { libc::getsockopt(fd, level, name, (&raw mut *value).cast(), &mut length) == 0 }
}

fn set(fd: RawFd, name: libc::c_int, value: u32) {
    let length = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the value is as long as said. Where it is refused, records are as they are, only later or in larger batches.
    unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, name, (&raw const value).cast(), length) };
}

/// The state of a connected TCP socket; none while it cannot send.
pub fn window(fd: RawFd) -> Option<Window> {
    let mut info = [0_u8; 104];
    if !option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info) || !MAY_SEND.contains(&info[0]) {
        return None;
    }
    // Offsets in struct tcp_info (include/uapi/linux/tcp.h).
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    Some(Window { mss: word(16), ssthresh: word(76), cwnd: word(80) }).filter(|w| w.mss >= 64)
}

/// The kernel holds bytes of the socket that it has not sent (`SIOCOUTQNSD`); so it is taken to, where it does not say.
pub fn holds_unsent(fd: RawFd) -> bool {
    let mut bytes: libc::c_int = 1;
    // SAFETY: the answer is written to `bytes`.
    unsafe { libc::ioctl(fd, SIOCOUTQNSD, &raw mut bytes) };
    bytes > 0
}

/// Looks at a descriptor for the first time, and prepares it if it is a TCP socket that can send.
pub fn first_look(fd: RawFd) -> Known {
    let mut protocol: libc::c_int = 0;
    if !option(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL, &mut protocol) || protocol != libc::IPPROTO_TCP {
        return Known::Other;
    }
    let Some(window) = window(fd) else { return Known::Nothing };
    let settings = settings();
    set(fd, libc::TCP_NODELAY, 1);
    if matches!(settings.least, Least::Adaptive(_)) {
        set(fd, libc::TCP_NOTSENT_LOWAT, 2 * window.mss);
    }
    Known::Tcp(Random::new(settings.seed, fd as u64), 0)
}
