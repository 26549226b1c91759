//! The command `fanin`: blocks SIGINT and becomes `fanin-python`, the Python entry beside it.
//!
//! Python answers Ctrl-C with a traceback while it starts. A blocked signal stays pending across `execve` (POSIX), and `fanin/__init__.py` lets it
//! through once its own handler stands. The standard library cannot do this: it resets the signal mask before it replaces a process.
#![no_main]
#![allow(unsafe_code)]

use libc::{c_char, c_int};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// What this process becomes, in the folder of this program.
const ENTRY: &str = "fanin-python";

/// As everywhere in fanin: bad input, or an installation that is none.
const FAILED: c_int = 2;

/// # Safety
/// The C library calls it with the words of the command line, and a null pointer after them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(_count: c_int, words: *const *const c_char) -> c_int {
    // SAFETY: the set is made before it is used, and both are of this function.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
    // The link's target where the command is a link, as `uv tool` and `pipx` make it.
    let entry = match std::fs::read_link("/proc/self/exe").or_else(|_| std::env::current_exe()) {
        Ok(own) => own.parent().unwrap_or(Path::new(".")).join(ENTRY),
        Err(error) => return failed(&format!("its own place is unknown ({error})")),
    };
    let Ok(path) = CString::new(OsString::from(&entry).into_vec()) else {
        return failed("its own place has a zero byte");
    };
    // SAFETY: a path that ends in zero, and the words as they came.
    unsafe { libc::execv(path.as_ptr(), words) };
    let error = std::io::Error::last_os_error();
    failed(&format!("{}: cannot be started ({error}); install fanin anew", entry.display()))
}

fn failed(why: &str) -> c_int {
    eprintln!("fanin: error: {why}");
    FAILED
}
