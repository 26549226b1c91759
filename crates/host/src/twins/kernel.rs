//! What this host has: detected, never assumed from a version.

use serde_json::{Value, json};
use std::path::PathBuf;

#[cfg(feature = "bpf")]
use super::error::Error;

/// The kernel's types; FANIN_BTF names another file, for tests.
pub fn btf() -> PathBuf {
    std::env::var_os("FANIN_BTF").map_or_else(|| PathBuf::from("/sys/kernel/btf/vmlinux"), PathBuf::from)
}

/// Where the file system of pins belongs; FANIN_BPFFS names another folder, for tests.
pub fn pin_mount() -> PathBuf {
    std::env::var_os("FANIN_BPFFS").map_or_else(|| PathBuf::from("/sys/fs/bpf"), PathBuf::from)
}

/// Whether it is there.
pub fn has_pin_mount() -> bool {
    // `f_type` of a BPF file system (linux/magic.h: BPF_FS_MAGIC).
    rustix::fs::statfs(pin_mount()).is_ok_and(|found| found.f_type == 0xcafe_4a11)
}

/// Where loads that outlive the command are pinned.
#[cfg(feature = "bpf")]
pub fn pins() -> PathBuf {
    pin_mount().join("fanin")
}

/// A name of the kernel's BTF, by its string table: enough to tell whether a type or function exists at all.
fn knows(types: &[u8], name: &str) -> bool {
    let mut wanted = vec![0];
    wanted.extend_from_slice(name.as_bytes());
    wanted.push(0);
    types.windows(wanted.len()).any(|w| w == wanted)
}

/// What a twin cannot do without, and what for.
const NEEDED: &[(&str, &str)] = &[
    ("bpf_struct_ops_tcp_congestion_ops", "congestion control by BPF"),
    ("bpf_struct_ops_link", "loads that end with the process"),
    ("tcp_reno_cong_avoid", "Reno's growth, which twins call"),
    ("tcp_slow_start", "slow start, which twins call"),
];

pub fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|s| s.lines().find_map(|l| l.strip_prefix("Uid:").map(|u| u.split_whitespace().nth(1) == Some("0"))))
        .unwrap_or(false)
}

/// Names in `tcp_available_congestion_control`.
pub fn available() -> Vec<String> {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[cfg(feature = "bpf")]
pub fn need_root() -> Result<(), Error> {
    if is_root() { Ok(()) } else { Err(Error::NotRoot) }
}

#[cfg(feature = "bpf")]
pub fn need_struct_ops() -> Result<(), Error> {
    let path = btf();
    let types = std::fs::read(&path).map_err(|_| Error::NoBtf(path.display().to_string()))?;
    match NEEDED.iter().find(|(name, _)| !knows(&types, name)) {
        Some((name, _)) => Err(Error::NoStructOps((*name).to_owned())),
        None => Ok(()),
    }
}

/// Whether a least RTO on a route bounds the delay of ACKs as well (Linux 6.7, `tcp_delack_max`).
fn rto_min_delays_acks(release: &str) -> bool {
    release.split(['.', '-']).take(2).filter_map(|n| n.parse::<u32>().ok()).collect::<Vec<_>>() >= vec![6, 7]
}

/// Everything that a plan, loading and measuring want, each with whether it is there and why it matters.
pub fn check() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).map(|s| s.trim().to_owned()).unwrap_or_default();
    let types = std::fs::read(btf()).unwrap_or_default();
    let mut checks = Vec::new();
    let mut add = |what: &str, ok: bool, why: String| checks.push(json!({ "what": what, "ok": ok, "why": why }));
    add(
        "built with BPF",
        cfg!(feature = "bpf"),
        "apt install clang libbpf-dev libelf-dev zlib1g-dev pkg-config, then `make linux`".into(),
    );
    add("root", is_root(), "loading, routes and namespaces need it: give the command as root".into());
    add(
        "BTF",
        !types.is_empty(),
        format!("{}: the kernel's own types, by which programs find its fields", btf().display()),
    );
    for (name, why) in NEEDED {
        add(name, knows(&types, name), (*why).to_owned());
    }
    let place = pin_mount();
    add(
        "bpffs",
        has_pin_mount(),
        format!("{}: where loads outlive the command; `load` mounts it, `undo` takes that back", place.display()),
    );
    let ecn = read("/proc/sys/net/ipv4/tcp_ecn");
    add(
        "ECN",
        ecn != "0",
        format!("net.ipv4.tcp_ecn = {ecn}: dctcp, d2tcp, l2dct and gss+dctcp negotiate it themselves on both ends"),
    );
    let hz = read("/proc/sys/net/ipv4/tcp_rto_min_us");
    add("tcp_rto_min_us", !hz.is_empty(), "a smaller least timeout without patching".into());
    let kernel = read("/proc/sys/kernel/osrelease");
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "kernel": kernel,
        "root": is_root(),
        "rto_min_delays_acks": rto_min_delays_acks(&kernel),
        "default": read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "available": available(),
        "checks": checks,
        "note": "if this kernel skips BPF on top of PID 1, `status` counts skipped callbacks: process ACKs in a kernel thread \
                 (ethtool -K DEV gro on; echo 1 > /sys/class/net/DEV/threaded)",
    })
}
