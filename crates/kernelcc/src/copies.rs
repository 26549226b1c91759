//! Copies of compiled files, in memory: the loader gives one set of globals per file, so another set of parameters needs another file.
//!
//! A process that runs a user's code may make none, since files in memory have no limit together; it keeps some before it gives its rights away.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Copies that are kept of a file, at most: a run gives it one set of parameters, or one for each path (`rate_pps`, `base_rtt_us`).
pub const MOST: usize = 64;

static KEPT: Mutex<Vec<(PathBuf, OwnedFd)>> = Mutex::new(Vec::new());

static LOADED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Notes a file that is loaded in this process.
pub fn is_loaded(path: &Path) {
    LOADED.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
}

/// Keeps copies of these files, and of those that are loaded, for a process that can make none from then on; they cannot be written to. They are
/// fewer where the process may open few files.
///
/// # Errors
/// The system's, when there is not even one of a file.
pub fn keep(paths: &[PathBuf]) -> io::Result<()> {
    let loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    paths.iter().chain(&loaded).try_for_each(|path| keep_some(path))
}

fn keep_some(path: &Path) -> io::Result<()> {
    let files = getrlimit(Resource::Nofile).current.map_or(MOST, |files| usize::try_from(files / 4).unwrap_or(MOST));
    for nth in 0..files.clamp(1, MOST) {
        match made(path) {
            Ok(copy) => KEPT.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), copy)),
            Err(error) if nth == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(())
}

/// A copy that was kept, or a new one.
pub fn take(path: &Path) -> io::Result<OwnedFd> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match kept.iter().position(|(of, _)| of == path) {
        Some(at) => Ok(kept.swap_remove(at).1),
        None => made(path),
    }
}

fn made(path: &Path) -> io::Result<OwnedFd> {
    let copy = File::from(memfd_create(c"fanin", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    io::copy(&mut File::open(path)?, &mut &copy)?;
    fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(copy.into())
}
