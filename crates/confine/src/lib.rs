//! Takes the rights of the calling thread, and of the threads and code that it starts from then on, for good.
//!
//! What is left is computing, reading the named folders, and writing to descriptors that are already open. Files are Landlock's, so they need
//! Linux 5.13; a kernel without it leaves reading as it is, and the filter of system calls refuses to open anything for writing. A compiler has to
//! write, so there it keeps its user's rights to files.
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
    /// It may start the programs that it may read, as a compiler does, and take more of its own rights later.
    pub programs: bool,
}

/// Why the rights could not be taken.
#[derive(Debug, thiserror::Error)]
#[error("this system cannot take a process's rights, so it runs no code that a scenario names: {0}")]
pub struct Error(String);

/// Descriptors that code may have: each may stand for memory that no other limit counts, 64 KB of a pipe.
#[cfg(target_os = "linux")]
const MOST_OPEN: u64 = 1024;

/// Bytes of a file that a program writes: a file of C that includes itself over and over must not fill the disk.
#[cfg(target_os = "linux")]
const MOST_WRITTEN: u64 = 256 << 20;

/// Takes them.
///
/// # Errors
/// [`Error`]: nothing may be run then.
#[cfg(target_os = "linux")]
pub fn confine(rights: &Rights) -> Result<(), Error> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = |resource, most: u64| {
        // What is limited already stays so: to raise it takes a right that a user has not.
        let most = getrlimit(resource).maximum.map_or(most, |before| before.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).map_err(|e| Error(e.to_string()))
    };
    limit(Resource::Core, 0)?;
    if let Some(memory) = rights.memory {
        limit(Resource::As, memory)?;
    }
    match rights.programs {
        true => limit(Resource::Fsize, MOST_WRITTEN)?,
        false => limit(Resource::Nofile, MOST_OPEN)?,
    }
    let covered = files::restrict(rights)?;
    if !covered && !rights.writable.is_empty() && !rights.programs {
        return Err(Error("captures want a kernel with Landlock (Linux 5.13 or later)".to_owned()));
    }
    if !rights.programs {
        drop_capabilities()?;
    }
    calls::restrict(!covered && !rights.programs, rights.programs)
}

/// Root keeps what it needs to read the named folders of other users.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> Result<(), Error> {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
    let held = capabilities(None).map_err(|e| Error(e.to_string()))?;
    let kept = held.permitted & CapabilitySet::DAC_READ_SEARCH;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: none })
        .map_err(|e| Error(e.to_string()))
}

/// Only Linux has the means.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn confine(_rights: &Rights) -> Result<(), Error> {
    Err(Error("it has neither seccomp nor Landlock".to_owned()))
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Rights are a thread's, so the test's own thread keeps them.
    #[test]
    fn a_compiler_compiles_what_it_may_read_and_then_starts_nothing() {
        if Command::new("cc").arg("--version").output().is_err() {
            return;
        }
        let top = std::env::temp_dir().join(format!("fanin-confine-{}", std::process::id()));
        let (own, other) = (top.join("own"), top.join("other"));
        for folder in [&own, &other] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("a.c"), "int one(void) { return 1; }\n").unwrap();
        }
        let (confined, beside) = (own.clone(), other.clone());
        let ended = std::thread::spawn(move || {
            let mut readable: Vec<PathBuf> =
                ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null"].map(PathBuf::from).into();
            readable.push(confined.clone());
            let compile = |from: &std::path::Path, to: &std::path::Path| {
                let made = Command::new("cc")
                    .args(["-shared", "-fPIC", "-o"])
                    .arg(to)
                    .arg(from)
                    .env("TMPDIR", &confined)
                    .output();
                made.map(|done| (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned()))
            };
            let rights = Rights { readable, writable: vec![confined.clone()], memory: None, programs: true };
            confine(&rights).unwrap();
            let first = compile(&confined.join("a.c"), &confined.join("a.so")).unwrap();
            let covered = std::fs::read(beside.join("a.c")).is_err();
            let read = compile(&beside.join("a.c"), &confined.join("b.so")).unwrap();
            let written = compile(&confined.join("a.c"), &beside.join("a.so")).unwrap();
            confine(&Rights { writable: Vec::new(), programs: false, ..rights }).unwrap();
            (first, covered, read, written, compile(&confined.join("a.c"), &confined.join("c.so")).is_err())
        });
        let (first, covered, read, written, refused) = ended.join().unwrap();
        std::fs::remove_dir_all(&top).unwrap();
        assert!(first.0, "{}", first.1);
        // Where there is no Landlock, a compiler keeps its user's rights to files.
        assert_eq!((read.0, written.0), (!covered, !covered), "{} {}", read.1, written.1);
        assert!(refused);
    }
}
