//! The BPF file system where pins lie: mounted where this host has not done so, and taken away when nothing of ours is there any more.
//!
//! The mount's own source name says that it is ours, so that nothing else has to be kept: a kill at any moment leaves no doubt.

use super::error::Error;
use super::kernel;
use super::loader::cannot_pin;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// The source by which our mount is known in `/proc/mounts`.
const SOURCE: &str = "fanin-host";

/// Mounts it over an empty folder where it is missing.
///
/// Not in a mount namespace of its own, as `ip netns exec` makes one: the pins there, and so the load, would be gone with this process.
pub fn ensure() -> Result<(), Error> {
    let place = kernel::pin_mount();
    if kernel::has_pin_mount() || !is_empty(&place) || !is_machines_namespace() {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(SOURCE, &place, "bpf", flags, c"mode=700").map_err(|why| cannot_pin(&place, std::io::Error::from(why)))
}

/// Takes away what `ensure` mounted, unless another program has pinned something there.
pub fn remove() {
    let place = kernel::pin_mount();
    let is_ours = |line: &str| line.split(' ').take(3).eq([SOURCE, &place.to_string_lossy(), "bpf"]);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if mounts.lines().any(is_ours) && is_empty(&place) {
        // One that another process uses stays, and does no harm.
        let _ = unmount(&place, UnmountFlags::NOFOLLOW);
    }
}

/// Nothing is there but what the kernel itself puts into each BPF file system (`CONFIG_BPF_PRELOAD`).
fn is_empty(place: &Path) -> bool {
    let is_kernels = |name: &OsStr| name == "maps.debug" || name == "progs.debug";
    fs::read_dir(place).is_ok_and(|entries| entries.flatten().all(|entry| is_kernels(&entry.file_name())))
}

/// The mounts that this process sees are those of its furthest ancestor: the machine's, or the container's. That of another user is not told.
fn is_machines_namespace() -> bool {
    let namespace = |process: u32| fs::read_link(format!("/proc/{process}/ns/mnt"));
    let mut process = std::process::id();
    let Ok(ours) = namespace(process) else { return false };
    let mut furthest = ours.clone();
    while let Some(parent) = parent(process) {
        furthest = namespace(parent).unwrap_or(furthest);
        process = parent;
    }
    furthest == ours
}

fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|&parent| parent > 0)
}
