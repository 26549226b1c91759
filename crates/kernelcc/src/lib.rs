//! Congestion control in C, as the kernel takes it, in the simulator: `--cc trim@linux` and `--cc ./my_cc.c`.
//!
//! A file with a `tcp_congestion_ops` is compiled by the host's C compiler at first use, against a shim of the kernel's headers
//! (`shim/`), into a shared object in the user's cache; `adapter.rs` makes it a [`fanin_cc::CongestionControl`]. The same files load into
//! a running kernel by BPF (`fanin linux load`) and into the virtual kernel.
//!
//! | file | what it does |
//! |---|---|
//! | `twins.rs` | the twins of `kernel/cc`, by the names they go by |
//! | `compile.rs` | source -> cached shared object, compiler errors -> one sentence |
//! | `abi.rs` | the only unsafe code: loading an object and calling it |
//! | `adapter.rs` | the sender's events in the kernel's order |
//! | `copies.rs` | a file for each set of parameters |

mod abi;
mod adapter;
mod bpf;
mod compile;
mod copies;
pub mod twins;

pub use adapter::{KernelFile, compile_file, load_file, load_twin};
pub use compile::{Object, cache};
pub use copies::keep as keep_copies;

use fanin_cc::Algorithm;
use fanin_cc::registry::Kind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Why a C file is no algorithm. Each message is one sentence that says what to do next.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// No such file, or it cannot be read.
    #[error("cannot read it: {0}")]
    Unreadable(String),
    /// No twin is called so.
    #[error("there is no twin of that name; the twins are {0}")]
    NoTwin(String),
    /// There is no C compiler.
    #[error(
        "it must be compiled and `{compiler}` does not start ({why}); install a C compiler (apt install gcc) or name one in CC"
    )]
    NoCompiler {
        /// The command that was tried.
        compiler: String,
        /// What the system said.
        why: String,
    },
    /// The file uses a kernel function that the shim has not.
    #[error(
        "line {line}: `{helper}` is not among the kernel's helpers that fanin offers to congestion control (docs/linux.md lists them)"
    )]
    NoHelper {
        /// Line of the file.
        line: u32,
        /// Name of the function.
        helper: String,
    },
    /// The file includes a header that the shim has not.
    #[error(
        "line {line}: the header {header} is not among those that fanin offers to congestion control (docs/linux.md lists them)"
    )]
    NoHeader {
        /// Line of the file.
        line: u32,
        /// As included.
        header: String,
    },
    /// The compiler refuses it for another reason.
    #[error("{place}: the C compiler says: {message}")]
    Compiler {
        /// `line 12`, or `FILE:12` for a header of the user.
        place: String,
        /// Its first error.
        message: String,
    },
    /// It compiles and is no congestion control.
    #[error("{0}")]
    NotCongestionControl(String),
    /// The cache or the shared object cannot be used.
    #[error("{0}")]
    Cache(String),
}

/// Files that were asked for, by name and version. They are few and live as long as the process.
static KNOWN: Mutex<Vec<(String, String, &'static Algorithm)>> = Mutex::new(Vec::new());

/// Names for C files, told by whoever built them into a kernel.
static NAMED: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());

/// Gives a C file a name for `cc`, beside its path. The last one told of a name counts; a name of the registry stays the registry's.
pub fn name_file(name: &str, path: &Path) {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.retain(|(other, _)| other != name);
    named.push((name.to_owned(), path.to_owned()));
}

/// Every name that was told, with its file.
pub fn named_files() -> Vec<(String, PathBuf)> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The C file of a name: a path that ends in `.c`, or the name that stands for it; `None` for names of another kind.
pub fn file_of(name: &str) -> Option<PathBuf> {
    if name.ends_with(".c") {
        return Some(PathBuf::from(name));
    }
    let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.iter().find(|(n, _)| n == name).map(|(_, path)| path.clone())
}

/// The registry's line for a twin, `NAME@linux`, or `None` for a name of another kind. Twins are fanin's own code.
///
/// # Errors
/// One sentence: why it cannot be had.
pub fn resolve_twin(name: &str) -> Result<Option<&'static Algorithm>, String> {
    let Some(twin) = name.strip_suffix(twins::SUFFIX) else { return Ok(None) };
    if let Some(algorithm) = known(name, None) {
        return Ok(Some(algorithm));
    }
    let file = load_twin(twin).map_err(|error| error.to_string())?;
    Ok(Some(entry(name, format!("{twin}: the C that fanin loads into Linux"), file)))
}

/// The registry's line for a compiled file of a user's. Loading it runs its author's code.
///
/// # Errors
/// One sentence: why it is no algorithm.
pub fn resolve_object(name: &str, object: Object) -> Result<&'static Algorithm, String> {
    if let Some(algorithm) = known(name, Some(&object.version)) {
        return Ok(algorithm);
    }
    let file = KernelFile::new(object, &[]).map_err(|error| error.to_string())?;
    Ok(entry(name, format!("{} of {name}", file.name), file))
}

/// The line that was made before, of this version if one is given.
fn known(name: &str, version: Option<&str>) -> Option<&'static Algorithm> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().find(|(n, v, _)| n == name && version.is_none_or(|version| version == v)).map(|(.., a)| *a)
}

fn entry(name: &str, title: String, file: KernelFile) -> &'static Algorithm {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let version = file.version.clone();
    let algorithm: &'static Algorithm = Box::leak(Box::new(Algorithm {
        name: leak(name.to_owned()),
        title: leak(title),
        source: "C (tcp_congestion_ops)",
        needs_ecn: file.needs_ecn,
        deploy: file.places(),
        params: file.params(),
        ..Algorithm::of(Kind::Extension(Box::leak(Box::new(file))))
    }));
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), version, algorithm));
    algorithm
}
