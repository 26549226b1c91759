//! IA-TCP and ICTCP on this host: two tc programs on a device, one that measures what arrives, one that rewrites the windows that leave.
//!
//! Both are tcx links: gone with the process that holds them, kept where they are pinned under `/sys/fs/bpf/fanin/NAME@DEVICE`.
#![allow(unsafe_code)]

use super::error::Error;
use super::loader::{cannot_pin, folder, in_kernel, is_loaded, kept, refused, tidy, until_let_go};
use super::{RECEIVERS, kernel};
use libbpf_rs::{AsRawLibbpf, Link, MapCore, MapFlags, MapHandle, Object, libbpf_sys};
use serde_json::{Map, Value, json};
use std::ffi::CString;
use std::ptr::{self, NonNull};

/// Names of the counters at the end of `struct host`, in the order of `kernel/receiver/receiver.h`.
const COUNTERS: [&str; 6] =
    ["connections", "packets", "windows_rewritten", "of_unknown_connections", "increases", "decreases"];

/// Loads a policy onto a device; `hold` as for twins.
pub fn load(algorithm: &str, file: &str, device: &str, settings: &[(String, u32)], hold: bool) -> Result<Value, Error> {
    tidy();
    // Two policies on one device would rewrite each other's windows.
    if let Some((other, _)) = RECEIVERS.into_iter().find(|(other, _)| is_loaded(&pin_name(other, device))) {
        return Err(Error::Loaded(pin_name(other, device)));
    }
    let index = index_of(device)?;
    let name = pin_name(algorithm, device);
    let place = folder(&name);
    let pins = (!hold).then_some(place.as_path());
    let (host, links) = kept(pins, || {
        let object = in_kernel(&name, file, settings)?;
        let mut host = host_map(&object).ok_or_else(|| refused(&name, "its object has no map `host`"))?;
        let mut ingress = attach(&object, "fanin_in", index).map_err(|e| refused(&name, e))?;
        let mut egress = attach(&object, "fanin_out", index).map_err(|e| refused(&name, e))?;
        if let Some(place) = pins {
            host.pin(place.join("host")).map_err(|e| cannot_pin(place, e))?;
            ingress.pin(place.join("ingress")).map_err(|e| cannot_pin(place, e))?;
            egress.pin(place.join("link")).map_err(|e| cannot_pin(place, e))?;
        }
        Ok((host, [ingress, egress]))
    })?;
    let answer = json!({ "loaded": name, "algorithm": algorithm, "device": device, "pinned": pins });
    if hold {
        until_let_go(&answer);
    }
    let counts = counts(&host);
    drop(links);
    Ok(if hold { json!({ "unloaded": [name], "counters": counts }) } else { answer })
}

fn pin_name(algorithm: &str, device: &str) -> String {
    format!("{algorithm}@{device}")
}

fn host_map(object: &Object) -> Option<MapHandle> {
    object.maps().find(|map| map.name() == "host").and_then(|map| MapHandle::try_from(&map).ok())
}

/// The device's number in this network namespace.
fn index_of(device: &str) -> Result<i32, Error> {
    let missing = || Error::NoDevice(device.to_owned());
    let name = CString::new(device).map_err(|_| missing())?;
    // SAFETY: the name is a C string that lives through the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(missing()),
        index => i32::try_from(index).map_err(|_| missing()),
    }
}

/// A program of a loaded object on a device; libbpf-rs has no call of its own for tcx.
fn attach(object: &Object, program: &str, index: i32) -> Result<Link, String> {
    let program = object.progs().find(|p| p.name() == program).ok_or_else(|| format!("no program `{program}`"))?;
    // SAFETY: the program belongs to `object`, which is alive; null options are the defaults.
    let link = unsafe { libbpf_sys::bpf_program__attach_tcx(program.as_libbpf_object().as_ptr(), index, ptr::null()) };
    let error = std::io::Error::last_os_error();
    let link = NonNull::new(link).ok_or_else(|| format!("no tcx on its devices (Linux 6.6 has it): {error}"))?;
    // SAFETY: libbpf made this link, and nothing else owns it.
    Ok(unsafe { Link::from_ptr(link) })
}

/// The counters that end `struct host`.
fn counts(host: &MapHandle) -> Map<String, Value> {
    let value = host.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
    let all: Vec<u64> = value.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
    let begin = all.len().saturating_sub(COUNTERS.len());
    COUNTERS.iter().zip(&all[begin..]).map(|(name, count)| ((*name).to_owned(), json!(count))).collect()
}

/// What is pinned, with its counters.
pub fn status() -> Vec<Value> {
    let pinned = loaded().into_iter().map(|(algorithm, device)| {
        let host = MapHandle::from_pinned_path(folder(&pin_name(algorithm, &device)).join("host"));
        let counts = host.map(|host| counts(&host)).unwrap_or_default();
        json!({ "algorithm": algorithm, "device": device, "counters": counts })
    });
    pinned.collect()
}

/// Algorithm and device of each that is pinned.
pub fn loaded() -> Vec<(&'static str, String)> {
    let names = std::fs::read_dir(kernel::pins()).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_loaded(name));
    let split = names.filter_map(|name| {
        let (algorithm, device) = name.split_once('@')?;
        let (known, _) = RECEIVERS.into_iter().find(|(known, _)| *known == algorithm)?;
        Some((known, device.to_owned()))
    });
    split.collect()
}

/// Takes back one algorithm's programs, or all, from one device or every one.
pub fn unload(algorithm: Option<&str>, device: Option<&str>) -> Result<Vec<String>, Error> {
    let mut gone = Vec::new();
    for (name, at) in loaded() {
        if algorithm.is_some_and(|a| a != name) || device.is_some_and(|d| d != at) {
            continue;
        }
        let pinned = pin_name(name, &at);
        // What rewrites first: the other one only measures.
        for link in ["link", "ingress"] {
            let link = folder(&pinned).join(link);
            std::fs::remove_file(&link).map_err(|e| cannot_pin(&link, e))?;
        }
        gone.push(pinned);
    }
    tidy();
    match algorithm {
        Some(name) if gone.is_empty() => Err(Error::NotLoaded(name.to_owned())),
        _ => Ok(gone),
    }
}
