//! What can go wrong, each as one sentence that says what to do next.

/// Why a command failed. Nothing is left loaded when `load` does.
#[derive(Debug, thiserror::Error)]
// A program without BPF says fewer of them.
#[allow(dead_code, missing_docs)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    #[error(
        "this fanin-host was built without BPF; apt install clang libbpf-dev libelf-dev zlib1g-dev pkg-config, then `make host`"
    )]
    NotBuilt,
    #[error("fanin has nothing to load for `{name}`; it has {twins}")]
    NoTwin { name: String, twins: String },
    #[error("{0}")]
    BadParam(String),
    #[error("loading into the kernel needs root: give the command as root (sudo)")]
    NotRoot,
    #[error(
        "this kernel has no BTF ({0} is missing), by which programs find its fields; use a kernel with CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf(String),
    #[error(
        "this kernel cannot take congestion control by BPF: its BTF has no `{0}`; it needs Linux 6.4 or later with CONFIG_BPF_JIT"
    )]
    NoStructOps(String),
    #[error("{0} is already loaded; unload it first, to load it anew")]
    Loaded(String),
    #[error(
        "another congestion control is registered as `{0}`, not by fanin; remove it first (bpftool struct_ops list)"
    )]
    NameClash(String),
    #[error("{0} is not loaded; `status` shows what is")]
    NotLoaded(String),
    #[error("{path}: {why}; it must be a writable BPF file system (mount -t bpf bpf /sys/fs/bpf); a trial needs none")]
    Pins { path: String, why: String },
    #[error("there is no network device `{0}` here; `ip link` lists them")]
    NoDevice(String),
    #[error("{0} works on a device: --device NAME, such as eth0")]
    NeedsDevice(String),
    #[error("{0} is for senders and takes no --device; it is given to a destination by its route")]
    NoDeviceWanted(String),
    #[error("the kernel refuses {name}: {why}")]
    Refused { name: String, why: String },
}
