//! System calls of an init. The only unsafe code here beside netlink's: every call gets strings that end with a zero.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;

fn text(value: &str) -> Result<CString, String> {
    CString::new(value).map_err(|_| format!("{value:?} has a zero in it"))
}

/// Mounts a file system.
pub fn mount(source: &str, target: &str, kind: &str, options: &str) -> Result<(), String> {
    call_mount(source, target, kind, options, 0)
}

/// Makes a file appear elsewhere, too.
pub fn bind(source: &str, target: &str) -> Result<(), String> {
    call_mount(source, target, "none", "", libc::MS_BIND)
}

fn call_mount(source: &str, target: &str, kind: &str, options: &str, flags: libc::c_ulong) -> Result<(), String> {
    let (from, to, kind, data) = (text(source)?, text(target)?, text(kind)?, text(options)?);
    // SAFETY: four strings, as mount(2) wants them.
    let result = unsafe { libc::mount(from.as_ptr(), to.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast()) };
    if result == 0 { Ok(()) } else { Err(format!("mounting {source} at {target}: {}", io::Error::last_os_error())) }
}

/// Moves this process into a new network namespace.
pub fn new_network() -> Result<(), String> {
    // SAFETY: takes a number.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if result == 0 { Ok(()) } else { Err(format!("a new network namespace: {}", io::Error::last_os_error())) }
}

/// Lets this process open as many files as a kernel gives to anyone: two sockets for every connection. Init begins with 1024.
pub fn many_files() -> Result<(), String> {
    const MOST: libc::rlim_t = 1 << 20;
    let limit = libc::rlimit { rlim_cur: MOST, rlim_max: MOST };
    // SAFETY: a limit that lives as long as the call.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    if result == 0 { Ok(()) } else { Err(format!("a limit of {MOST} open files: {}", io::Error::last_os_error())) }
}

/// The end.
pub fn power_off() -> ! {
    // SAFETY: take numbers. Process 1 of a kernel of its own may do so; where it may not, it exits.
    unsafe {
        libc::sync();
        libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF);
    }
    std::process::exit(1)
}
