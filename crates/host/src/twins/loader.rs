//! Loading, listing and taking back. A load lives as long as its link: pinned under `/sys/fs/bpf/fanin/NAME`, or held by this process.
//!
//! Whenever the process is killed, the kernel drops what is not pinned, and the pin of the link is the last thing made: a folder without
//! it is a remainder, which the next command removes.

use super::error::Error;
use super::{kernel, mounted, params};
use fanin_kernelcc::twins::{TWINS, Twin};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, ObjectBuilder, PrintLevel};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Names of the counters in `kernel/cc/fanin_cc.h`; the last two are TRIM's.
const COUNTERS: [&str; 6] = ["sockets", "acks", "cuts", "skipped_callbacks", "probes_on_time", "probes_late"];

/// Bytes at an address that an ELF header may have.
#[repr(C)]
struct Aligned<T: ?Sized> {
    at: [u64; 0],
    bytes: T,
}

macro_rules! aligned {
    ($file:literal) => {{
        const FILE: &Aligned<[u8]> = &Aligned { at: [], bytes: *include_bytes!($file) };
        let _ = FILE.at;
        &FILE.bytes
    }};
}

/// The compiled programs, by the name of their source: the build script lists what it compiled.
const OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The compiled program of this source file.
pub fn object_of(file: &str) -> Result<&'static [u8], Error> {
    let found = OBJECTS.iter().find(|(name, _)| *name == file);
    found
        .map(|(_, bytes)| *bytes)
        .ok_or_else(|| Error::Refused { name: file.to_owned(), why: "it was not compiled".to_owned() })
}

/// What libbpf and the verifier said, for the sentence of a refusal.
static LOG: Mutex<String> = Mutex::new(String::new());

fn keep(_level: PrintLevel, text: String) {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
}

pub fn refused(name: &str, error: impl std::fmt::Display) -> Error {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    // The line that names the cause; the verifier's own is the one before its statistics.
    let telling = log
        .lines()
        .rev()
        .find(|l| {
            !l.is_empty() && !l.starts_with("libbpf: failed") && !l.contains("processed") && !l.contains("END PROG")
        })
        .unwrap_or("")
        .trim_start_matches("libbpf: ");
    Error::Refused { name: name.to_owned(), why: format!("{error} ({telling})") }
}

/// The folder of what is loaded under this name.
pub fn folder(linux: &str) -> PathBuf {
    kernel::pins().join(linux)
}

/// Files of a pin folder besides its `link`.
const BESIDE: [&str; 4] = ["counters", "deadlines", "ingress", "host"];

/// Removes what a killed `load` left: folders without a link, and ours when empty, with the file system if we mounted it.
pub fn tidy() {
    for entry in std::fs::read_dir(kernel::pins()).into_iter().flatten().flatten() {
        if !entry.path().join("link").exists() {
            // A remainder that cannot be removed does no harm.
            for file in BESIDE {
                let _ = std::fs::remove_file(entry.path().join(file));
            }
            let _ = std::fs::remove_dir(entry.path());
        }
    }
    let _ = std::fs::remove_dir(kernel::pins());
    mounted::remove();
}

pub fn is_loaded(linux: &str) -> bool {
    folder(linux).join("link").exists()
}

/// Loads a twin; `wait`: it is gone when this process ends, which it does when its standard input closes.
pub fn load(twin: &'static Twin, settings: &[(String, u32)], wait: bool) -> Result<Value, Error> {
    let place = folder(twin.linux);
    let pins = (!wait).then_some(place.as_path());
    let (held, deadlines) = place_twin(twin, settings, pins)?;
    let answer = json!({ "loaded": twin.linux, "algorithm": twin.algorithm, "pinned": pins, "deadlines": deadlines });
    if !wait {
        return Ok(answer);
    }
    until_let_go(&answer);
    Ok(json!({ "unloaded": [twin.linux], "counters": counts(&held.counters, twin) }))
}

/// A twin that is gone from the kernel with this.
pub struct Held {
    twin: &'static Twin,
    counters: MapHandle,
    _link: Link,
}

impl Held {
    /// What Linux calls it.
    pub fn name(&self) -> &str {
        self.twin.linux
    }
}

/// Loads a twin for as long as the answer lives.
pub fn hold(twin: &'static Twin, settings: &[(String, u32)]) -> Result<Held, Error> {
    place_twin(twin, settings, None).map(|(held, _)| held)
}

/// A twin in the kernel, pinned or not, and the id of the map of deadlines, by which applications find it.
fn place_twin(
    twin: &'static Twin,
    settings: &[(String, u32)],
    pins: Option<&Path>,
) -> Result<(Held, Option<u32>), Error> {
    tidy();
    if is_loaded(twin.linux) {
        return Err(Error::Loaded(twin.linux.to_owned()));
    }
    if kernel::available().iter().any(|n| n == twin.linux) {
        return Err(Error::NameClash(twin.linux.to_owned()));
    }
    let (counters, deadlines, link) = kept(pins, || {
        let (mut counters, mut deadlines, mut link) = attach(twin, settings)?;
        if let Some(place) = pins {
            counters.pin(place.join("counters")).map_err(|e| cannot_pin(place, e))?;
            if let Some(map) = &mut deadlines {
                map.pin(place.join("deadlines")).map_err(|e| cannot_pin(place, e))?;
            }
            link.pin(place.join("link")).map_err(|e| cannot_pin(place, e))?;
        }
        Ok((counters, deadlines, link))
    })?;
    let deadlines = deadlines.and_then(|map| map.info().ok().map(|about| about.info.id));
    Ok((Held { twin, counters, _link: link }, deadlines))
}

pub fn cannot_pin(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::Pins { path: path.display().to_string(), why: why.to_string() }
}

/// Loads, with a folder for its pins where it is to outlive this process; nothing is left when it fails.
pub fn kept<T>(pins: Option<&Path>, load: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    if let Some(place) = pins {
        mounted::ensure()?;
        std::fs::create_dir_all(place).map_err(|e| cannot_pin(place, e))?;
    }
    let loaded = load();
    if loaded.is_err() {
        tidy();
    }
    loaded
}

/// Says what is loaded, and waits until whoever holds our standard input lets go, or a signal ends us.
pub fn until_let_go(answer: &Value) {
    // Whether or not anybody reads it.
    let _ = crate::tell(answer);
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

/// The programs of a source file in the kernel, with these parameters; `name` is what a refusal calls them.
pub fn in_kernel(name: &str, file: &str, settings: &[(String, u32)]) -> Result<libbpf_rs::Object, Error> {
    libbpf_rs::set_print(Some((PrintLevel::Info, keep)));
    let bytes = object_of(file)?;
    let declared = params::of(bytes)?;
    let mut open = ObjectBuilder::default().open_memory(bytes).map_err(|e| refused(name, e))?;
    for mut map in open.maps_mut() {
        if map.name().to_string_lossy().ends_with(".rodata") {
            let mut data = map.initial_value_mut().map(|d| d.to_vec()).unwrap_or_default();
            params::write(&mut data, &declared, settings, name)?;
            map.set_initial_value(&data).map_err(|e| refused(name, e))?;
        }
    }
    open.load().map_err(|e| refused(name, e))
}

fn attach(twin: &Twin, settings: &[(String, u32)]) -> Result<(MapHandle, Option<MapHandle>, Link), Error> {
    let mut object = in_kernel(twin.linux, twin.file, settings)?;
    let mut counters = None;
    let mut deadlines = None;
    let mut link = None;
    for mut map in object.maps_mut() {
        if map.map_type() == MapType::StructOps {
            link = Some(map.attach_struct_ops().map_err(|e| refused(twin.linux, e))?);
        } else if map.name() == "counters" {
            counters = Some(MapHandle::try_from(&map).map_err(|e| refused(twin.linux, e))?);
        } else if map.name() == "deadlines" {
            deadlines = Some(MapHandle::try_from(&map).map_err(|e| refused(twin.linux, e))?);
        }
    }
    match (counters, link) {
        (Some(counters), Some(link)) => Ok((counters, deadlines, link)),
        _ => Err(refused(twin.linux, "its object lacks counters or operations")),
    }
}

/// The counters of a twin.
fn counts(map: &MapHandle, twin: &Twin) -> serde_json::Map<String, Value> {
    let mut counts = serde_json::Map::new();
    for (i, name) in COUNTERS.iter().enumerate() {
        let value = map.lookup(&(i as u32).to_ne_bytes(), MapFlags::ANY).ok().flatten();
        let count = value.and_then(|v| v.try_into().ok()).map_or(0, u64::from_ne_bytes);
        if i < 4 || twin.algorithm == "trim" {
            counts.insert((*name).to_owned(), json!(count));
        }
    }
    counts
}

/// What is loaded, with its counters.
pub fn status() -> Vec<Value> {
    tidy();
    let mut loaded = Vec::new();
    for twin in TWINS.iter().filter(|t| is_loaded(t.linux)) {
        let pinned = MapHandle::from_pinned_path(folder(twin.linux).join("counters"));
        let counts = pinned.map(|map| counts(&map, twin)).unwrap_or_default();
        loaded.push(json!({ "twin": twin.linux, "algorithm": twin.algorithm, "counters": counts }));
    }
    loaded
}

/// Takes one back, or all; sockets that use it keep it until they close.
pub fn unload(linux: Option<&str>) -> Result<Vec<String>, Error> {
    let mut gone = Vec::new();
    for twin in TWINS.iter().filter(|t| linux.is_none_or(|l| l == t.linux)) {
        if !is_loaded(twin.linux) {
            continue;
        }
        let link = folder(twin.linux).join("link");
        std::fs::remove_file(&link).map_err(|e| cannot_pin(&link, e))?;
        gone.push(twin.linux.to_owned());
    }
    tidy();
    // The kernel frees a link in its own time, within milliseconds: an answer that says "gone" should be true.
    for _ in 0..200 {
        if !kernel::available().iter().any(|n| gone.contains(n)) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    match linux {
        Some(name) if gone.is_empty() => Err(Error::NotLoaded(name.to_owned())),
        _ => Ok(gone),
    }
}
