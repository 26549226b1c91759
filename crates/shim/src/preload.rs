//! The calls by which applications send, in front of those of the C library.
#![allow(unsafe_code)]

use crate::records::{self, Least};
use crate::socket::{self, Known};
use libc::{c_char, c_int, c_void, iovec, msghdr, off_t, size_t, ssize_t};
use std::sync::OnceLock;

/// How much of a file is read at a time.
const PIECE: usize = 65_536;

/// The next definition of a call of the C library.
macro_rules! next {
    ($name:literal, $kind:ty) => {{
        static FOUND: OnceLock<usize> = OnceLock::new();
        let address = *FOUND.get_or_init(|| {
            // SAFETY: the name ends with a zero.
            unsafe { libc::dlsym(libc::RTLD_NEXT, $name.as_ptr().cast::<c_char>()) as usize }
        });
        // SAFETY: the C library defines it with this type.
        unsafe { std::mem::transmute::<usize, $kind>(address) }
    }};
}

type Send = unsafe extern "C" fn(c_int, *const c_void, size_t, c_int) -> ssize_t;
type Write = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
type Writev = unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
type Sendmsg = unsafe extern "C" fn(c_int, *const msghdr, c_int) -> ssize_t;
type Sendfile = unsafe extern "C" fn(c_int, c_int, *mut off_t, size_t) -> ssize_t;
type Close = unsafe extern "C" fn(c_int) -> c_int;

fn real_send() -> Send {
    next!(c"send", Send)
}
fn real_write() -> Write {
    next!(c"write", Write)
}
fn real_writev() -> Writev {
    next!(c"writev", Writev)
}
fn real_sendmsg() -> Sendmsg {
    next!(c"sendmsg", Sendmsg)
}
fn real_sendfile() -> Sendfile {
    next!(c"sendfile", Sendfile)
}
fn real_close() -> Close {
    next!(c"close", Close)
}

/// It is a TCP socket whose writes are to be cut.
fn is_cut(fd: c_int) -> bool {
    let Some(mut known) = socket::entry(fd) else { return false };
    if matches!(*known, Known::Nothing) {
        // SAFETY: errno is this thread's own. The first look must not change it.
        unsafe {
            let error = *libc::__errno_location();
            *known = socket::first_look(fd);
            *libc::__errno_location() = error;
        }
    }
    matches!(*known, Known::Tcp(..))
}

/// Sends `count` bytes as records; as send(2).
///
/// # Safety
/// `bytes` are `count` readable ones.
unsafe fn cut(fd: c_int, bytes: *const c_void, count: size_t, flags: c_int) -> ssize_t {
    let (mut done, adaptive) = (0, matches!(socket::settings().least, Least::Adaptive(_)));
    let Some(mut window) = socket::window(fd) else {
        // SAFETY: as the caller says.
        return unsafe { real_send()(fd, bytes, count, flags) };
    };
    while done < count {
        let Some(Known::Tcp(mut random, left)) = socket::entry(fd).map(|k| *k) else { break };
        if adaptive && done > 0 {
            window = socket::window(fd).unwrap_or(window);
        }
        // An open record goes on as long as its beginning waits in the kernel; once that has left, a segment of its own was sent.
        let goes_on = left > 0 && socket::holds_unsent(fd);
        let record = if goes_on { left } else { records::next(&socket::settings().least, window, &mut random) };
        let length = record.min(count - done);
        // The kernel ends a record only when it has taken all that was given with the flag.
        let end = if length == record { libc::MSG_EOR } else { 0 };
        // SAFETY: `done + length` is at most `count`.
        let sent = unsafe { real_send()(fd, bytes.cast::<u8>().add(done).cast(), length, flags | end) };
        if sent < 0 {
            return if done > 0 { done as ssize_t } else { sent };
        }
        if let Some(mut known) = socket::entry(fd) {
            *known = Known::Tcp(random, record - sent as usize);
        }
        done += sent as usize;
        if (sent as usize) < length {
            break;
        }
    }
    done as ssize_t
}

/// send(2).
///
/// # Safety
/// As send(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(fd: c_int, bytes: *const c_void, count: size_t, flags: c_int) -> ssize_t {
    // SAFETY: both get what we were given.
    unsafe {
        if count > 0 && flags & libc::MSG_OOB == 0 && is_cut(fd) {
            cut(fd, bytes, count, flags & !libc::MSG_MORE)
        } else {
            real_send()(fd, bytes, count, flags)
        }
    }
}

/// write(2).
///
/// # Safety
/// As write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: both get what we were given.
    unsafe { if count > 0 && is_cut(fd) { cut(fd, bytes, count, 0) } else { real_write()(fd, bytes, count) } }
}

/// writev(2).
///
/// # Safety
/// As writev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: `parts` are `count` parts, each readable over its length, as the caller says.
    unsafe {
        if count <= 0 || !is_cut(fd) {
            return real_writev()(fd, parts, count);
        }
        let all = std::slice::from_raw_parts(parts, count as usize);
        let mut bytes = Vec::with_capacity(all.iter().map(|p| p.iov_len).sum());
        for part in all {
            bytes.extend_from_slice(std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len));
        }
        cut(fd, bytes.as_ptr().cast(), bytes.len(), 0)
    }
}

/// sendmsg(2).
///
/// # Safety
/// As sendmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the message is readable, as the caller says. Control messages go to the kernel untouched.
    unsafe {
        if (*message).msg_controllen == 0 && flags & libc::MSG_OOB == 0 && is_cut(fd) {
            writev(fd, (*message).msg_iov, (*message).msg_iovlen as c_int)
        } else {
            real_sendmsg()(fd, message, flags)
        }
    }
}

/// sendfile(2).
///
/// # Safety
/// As sendfile(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(fd: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    // SAFETY: `offset` is null or writable, as the caller says; the buffer is as long as said.
    unsafe {
        if !is_cut(fd) {
            return real_sendfile()(fd, from, offset, count);
        }
        let at = if offset.is_null() { libc::lseek(from, 0, libc::SEEK_CUR) } else { *offset };
        let mut bytes = vec![0_u8; count.min(PIECE)];
        let read = libc::pread(from, bytes.as_mut_ptr().cast(), bytes.len(), at);
        if read <= 0 {
            return read;
        }
        let sent = cut(fd, bytes.as_ptr().cast(), read as size_t, 0);
        if sent > 0 {
            let next = at + sent as off_t;
            if offset.is_null() {
                libc::lseek(from, next, libc::SEEK_SET);
            } else {
                *offset = next;
            }
        }
        sent
    }
}

/// sendfile(2) with 64-bit offsets, which all are here.
///
/// # Safety
/// As sendfile(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(fd: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    // SAFETY: gets what we were given.
    unsafe { sendfile(fd, from, offset, count) }
}

/// close(2): the number may be another socket's next.
///
/// # Safety
/// As close(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    socket::forget(fd);
    // SAFETY: gets what we were given.
    unsafe { real_close()(fd) }
}
