//! Takes the rights of the calling thread, and of the threads and code that it starts from then on, for good.
//!
//! What is left is computing, reading the named folders, and writing to descriptors that are already open. Files are Landlock's, so they need
//! Linux 5.13; a kernel without it leaves reading as it is, and the filter of system calls refuses to open anything for writing.
//!
//! | file | what it does |
//! |---|---|
//! | `calls.rs` | the filter of system calls (seccomp): no processes, sockets, signals to others, changed modes |
//! | `files.rs` | which folders may be read and written (Landlock) |

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod files;

use std::path::PathBuf;

/// What the code may still do.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// Files and folders that it may read, with what is in them; those that do not exist are passed over.
    pub readable: Vec<PathBuf>,
    /// Folders in which it may make and write files.
    pub writable: Vec<PathBuf>,
    /// Address space in bytes; `None`: as much as before.
    pub memory: Option<u64>,
}

/// Why the rights could not be taken.
#[derive(Debug, thiserror::Error)]
#[error("this system cannot take a process's rights, so it runs no code that a scenario names: {0}")]
pub struct Error(String);

/// Bytes of a file that lies in memory alone (`memfd_create`), in which copies of a library are loaded; no other can be written.
#[cfg(target_os = "linux")]
const MOST_IN_MEMORY: u64 = 64 << 20;

/// Takes them.
///
/// # Errors
/// [`Error`]: nothing may be run then.
#[cfg(target_os = "linux")]
pub fn confine(rights: &Rights) -> Result<(), Error> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = |resource, most| {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).map_err(|e| Error(e.to_string()))
    };
    limit(Resource::Core, 0)?;
    if let Some(memory) = rights.memory {
        limit(Resource::As, memory)?;
    }
    if rights.writable.is_empty() {
        limit(Resource::Fsize, MOST_IN_MEMORY)?;
    }
    let covered = files::restrict(rights)?;
    if !covered && !rights.writable.is_empty() {
        return Err(Error("captures want a kernel with Landlock (Linux 5.13 or later)".to_owned()));
    }
    calls::restrict(!covered)
}

/// Only Linux has the means.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn confine(_rights: &Rights) -> Result<(), Error> {
    Err(Error("it has neither seccomp nor Landlock".to_owned()))
}
