//! What the host had before the first change: written to disk before the change is made, and removed when all is as it was.
//!
//! A state belongs to a boot and a network namespace. After a reboot the settings are gone, and with them `/run`.

use crate::error::Error;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Where it lies unless told otherwise.
pub const FOLDER: &str = "/run/fanin-host";

/// What was changed, and what was there before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// Routes to one host alone, as the kernel's bytes in hexadecimal; none: there was none.
    Routes {
        /// That host.
        host: IpAddr,
        /// Them.
        routes: Vec<String>,
    },
    /// A sysctl.
    Sysctl {
        /// `net.ipv4.tcp_ecn`.
        name: String,
        /// Its text.
        value: String,
    },
    /// A twin or a receiver's algorithm, which was not loaded.
    Loaded {
        /// As `load` takes it.
        name: String,
        /// Its network device.
        device: Option<String>,
        /// Its parameters.
        #[serde(default)]
        params: Vec<(String, u32)>,
    },
}

/// A trial that runs: its process takes it back, or whoever finds that process gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its process, and when that began (clock ticks since boot): a number may be another's by now.
    pub process: u32,
    /// See `process`.
    pub began: Option<u64>,
    /// The routes to its destination before it.
    pub before: Before,
}

impl Trial {
    /// Its process is gone.
    pub fn is_abandoned(&self) -> bool {
        began(self.process) != self.began
    }
}

/// When a process began; `None`: there is none of this number.
pub fn began(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

impl Before {
    fn is_of(&self, other: &Before) -> bool {
        match (self, other) {
            (Before::Routes { host: a, .. }, Before::Routes { host: b, .. }) => a == b,
            (Before::Sysctl { name: a, .. }, Before::Sysctl { name: b, .. }) => a == b,
            (Before::Loaded { name: a, device: on, .. }, Before::Loaded { name: b, device, .. }) => {
                (a, on) == (b, device)
            }
            _ => false,
        }
    }
}

/// The number of this network namespace, which no other has before the next boot (`SO_NETNS_COOKIE`).
#[allow(unsafe_code)]
fn namespace_cookie() -> Option<u64> {
    let socket = UnixDatagram::unbound().ok()?;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `cookie`, which is as long.
    let done = unsafe {
        let to = (&raw mut cookie).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, to, &raw mut length)
    };
    (done == 0).then_some(cookie)
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    boot: String,
    /// The network namespace's cookie: its inode may be another's by now. Zero in files of before, and where the kernel has none (Linux 5.14).
    #[serde(default)]
    cookie: u64,
    before: Vec<Before>,
    #[serde(default)]
    trial: Option<Trial>,
}

/// The state of this network namespace, locked against other commands.
pub struct State {
    path: PathBuf,
    kept: Kept,
    _lock: File,
}

impl State {
    /// What was kept in a folder.
    pub fn open(folder: &Path) -> Result<State, Error> {
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let namespace = Path::new("/proc/self/ns/net");
        let number = fs::metadata(namespace).map_err(Error::file(namespace))?.ino();
        let path = folder.join(format!("net-{number}.json"));
        let lock = folder.join("lock");
        let mut made = OpenOptions::new();
        let file =
            regular(&lock, made.read(true).write(true).create(true).truncate(false)).map_err(Error::file(&lock))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|e| Error::file(&lock)(e.into()))?;
        // Of a command that was killed while it wrote.
        let _ = fs::remove_file(path.with_extension("new"));
        let boot = Path::new("/proc/sys/kernel/random/boot_id");
        let boot = fs::read_to_string(boot).map_err(Error::file(boot))?.trim().to_owned();
        let mut text = Vec::new();
        let read = |mut file: File| file.read_to_end(&mut text);
        let kept = match regular(&path, OpenOptions::new().read(true)).and_then(read) {
            Ok(_) => serde_json::from_slice(&text)
                .map_err(|why| Error::State { path: path.display().to_string(), why: wrong(&why, &text) })?,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Kept::default(),
            Err(why) => return Err(Error::file(&path)(why)),
        };
        let cookie = namespace_cookie().unwrap_or(0);
        if kept.boot == boot && (kept.cookie == cookie || kept.cookie == 0) {
            return Ok(State { path, kept: Kept { cookie, ..kept }, _lock: file });
        }
        // What an earlier boot had, or a namespace that is gone, is no state of this one.
        let _ = fs::remove_file(&path);
        Ok(State { path, kept: Kept { boot, cookie, ..Kept::default() }, _lock: file })
    }

    /// That the file has what this program does not write.
    pub fn spoilt(&self, why: String) -> Error {
        Error::State { path: self.path.display().to_string(), why }
    }

    /// Everything that was changed, in the order of the changes.
    pub fn before(&self) -> &[Before] {
        &self.kept.before
    }

    /// The trial that runs, or that was left behind.
    pub fn trial(&self) -> Option<&Trial> {
        self.kept.trial.as_ref()
    }

    /// Notes a trial before it begins, or that none runs.
    pub fn set_trial(&mut self, trial: Option<Trial>) -> Result<(), Error> {
        self.kept.trial = trial;
        self.write()
    }

    /// Keeps what is there, before it is changed; whether this is the first change of it.
    pub fn keep(&mut self, before: &Before) -> Result<bool, Error> {
        let is_first = !self.kept.before.iter().any(|kept| kept.is_of(before));
        if is_first {
            self.kept.before.push(before.clone());
            self.write()?;
        }
        Ok(is_first)
    }

    /// Forgets what has been set back.
    pub fn forget(&mut self, before: &Before) -> Result<(), Error> {
        self.kept.before.retain(|kept| kept != before);
        self.write()
    }

    /// The whole file or the former one, also if the machine stops here.
    fn write(&self) -> Result<(), Error> {
        if self.kept.before.is_empty() && self.kept.trial.is_none() {
            return match fs::remove_file(&self.path) {
                Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(Error::file(&self.path)(why)),
                _ => Ok(()),
            };
        }
        let new = self.path.with_extension("new");
        let text = serde_json::to_string(&self.kept).map_err(|why| Error::file(&new)(why.into()))?;
        let put = || -> std::io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.path)
        };
        put().map_err(|why| {
            // What a full disk took of it.
            let _ = fs::remove_file(&new);
            Error::file(&new)(why)
        })
    }
}

/// What is wrong with a file that is no state. Names of fields and types mean nothing to who reads it: the place does.
fn wrong(why: &serde_json::Error, text: &[u8]) -> String {
    let place = format!("line {}, column {}", why.line(), why.column());
    match why.classify() {
        Category::Eof if text.is_empty() => "it is empty".to_owned(),
        Category::Eof => format!("it ends too early, after {} bytes", text.len()),
        Category::Syntax => format!("it is no JSON at {place}"),
        Category::Data | Category::Io => format!("a value is missing or of another kind at {place}"),
    }
}

/// Opens a file that is one: a pipe would have the command wait for its other end.
fn regular(path: &Path, how: &mut OpenOptions) -> std::io::Result<File> {
    let file = how.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("it is no regular file; remove it")) }
}

/// Bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text as bytes; `None` where it is no such text.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..text.len()).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spoilt_state_is_said_with_its_file_the_place_and_what_to_do_next() {
        let folder = std::env::temp_dir().join(format!("fanin-host-spoilt-{}", std::process::id()));
        drop(State::open(&folder).unwrap());
        let number = fs::metadata("/proc/self/ns/net").unwrap().ino();
        let path = folder.join(format!("net-{number}.json"));
        for (text, why) in [
            (&b""[..], "it is empty"),
            (b"{\"boot\": \"x\", \"before\": [", "it ends too early, after 25 bytes"),
            (b"{\n\"boot\": x", "it is no JSON at line 2, column 9"),
            (b"{\"boot\": \"\xff\"}", "it is no JSON at line 1, column 11"),
            (b"{\"boot\": \"x\"}", "a value is missing or of another kind at line 1, column 13"),
            (b"{\"boot\": 7}", "a value is missing or of another kind at line 1, column 10"),
        ] {
            fs::write(&path, text).unwrap();
            let Err(error) = State::open(&folder) else { panic!("{why}") };
            let name = path.display();
            let said = format!(
                "{name}: not as fanin-host has saved it: {why}; set back by hand what it names (`cat {name}`) or restart the host, then remove the file"
            );
            assert_eq!(error.shown(), said);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_state_of_a_namespace_that_is_gone_is_none_of_the_one_that_has_its_number() {
        let folder = std::env::temp_dir().join(format!("fanin-host-cookie-{}", std::process::id()));
        let before = Before::Sysctl { name: "net.ipv4.tcp_ecn".to_owned(), value: "2".to_owned() };
        let mut state = State::open(&folder).unwrap();
        assert!(state.keep(&before).unwrap());
        let path = state.path.clone();
        drop(state);
        assert_eq!(State::open(&folder).unwrap().before(), std::slice::from_ref(&before));
        let mut kept: Kept = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        kept.cookie += 1;
        fs::write(&path, serde_json::to_vec(&kept).unwrap()).unwrap();
        assert_eq!(State::open(&folder).unwrap().before(), &[]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
