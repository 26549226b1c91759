//! What can go wrong, each as one sentence that says what to do next.

/// Why a command failed. Nothing is left loaded when `load` does.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    #[error(
        "fanin was built without BPF; apt install clang libbpf-dev libelf-dev zlib1g-dev pkg-config, then `make linux`"
    )]
    #[cfg_attr(feature = "bpf", allow(dead_code))]
    NotBuilt,
    #[error("fanin has nothing to load for `{name}`; it has {twins}")]
    NoTwin { name: String, twins: String },
    #[error("{0}")]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    BadParam(String),
    #[error("loading into the kernel needs root: sudo fanin linux ...")]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    NotRoot,
    #[error(
        "this kernel has no BTF ({0} is missing), by which programs find its fields; use a kernel with CONFIG_DEBUG_INFO_BTF"
    )]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    NoBtf(String),
    #[error(
        "this kernel cannot take congestion control by BPF: its BTF has no `{0}`; it needs Linux 6.4 or later with CONFIG_BPF_JIT"
    )]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    NoStructOps(String),
    #[error("{0} is already loaded; `fanin linux unload {0}` first, to load it anew")]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    Loaded(String),
    #[error(
        "another congestion control is registered as `{0}`, not by fanin; remove it first (bpftool struct_ops list)"
    )]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    NameClash(String),
    #[error("{0} is not loaded; `fanin linux status` shows what is")]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    NotLoaded(String),
    #[error(
        "{path}: {why}; it must be a writable BPF file system (mount -t bpf bpf /sys/fs/bpf); a trial (fanin linux trial ADDRESS NAME) needs none"
    )]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    Pins { path: String, why: String },
    #[error("there is no network device `{0}` here; `ip link` lists them")]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    NoDevice(String),
    #[error("{0} works on a device: --device NAME, such as eth0")]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    NeedsDevice(String),
    #[error("{0} is for senders and takes no --device; it is given to a destination by `fanin linux route`")]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    NoDeviceWanted(String),
    #[error("the kernel refuses {name}: {why}")]
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    Refused { name: String, why: String },
}
