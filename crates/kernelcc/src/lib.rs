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

mod abi;
mod adapter;
mod bpf;
mod compile;
pub mod twins;

pub use adapter::{KernelFile, load_file, load_twin};

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

/// Whether a name asks for C: `NAME@linux` or a path that ends in `.c`.
///
/// ```
/// assert!(fanin_kernelcc::is_c("trim@linux") && fanin_kernelcc::is_c("./my_cc.c") && !fanin_kernelcc::is_c("trim"));
/// ```
pub fn is_c(name: &str) -> bool {
    name.ends_with(twins::SUFFIX) || name.ends_with(".c")
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

fn file_named(name: &str) -> Option<PathBuf> {
    let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.iter().find(|(n, _)| n == name).map(|(_, path)| path.clone())
}

/// The registry's line for a C file, or `None` for a name of another kind: a [`fanin_cc::extension::Resolver`].
///
/// # Errors
/// One sentence: why the file is no algorithm.
pub fn resolve(name: &str) -> Result<Option<&'static Algorithm>, String> {
    let named = if is_c(name) { None } else { file_named(name) };
    let file = match (name.strip_suffix(twins::SUFFIX), named) {
        (Some(twin), _) => load_twin(twin),
        (None, Some(path)) => load_file(&path),
        (None, None) if is_c(name) => load_file(Path::new(name)),
        (None, None) => return Ok(None),
    }
    .map_err(|error| error.to_string())?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., algorithm)) = known.iter().find(|(n, v, _)| n == name && *v == file.version) {
        return Ok(Some(algorithm));
    }
    let version = file.version.clone();
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let title = match name.strip_suffix(twins::SUFFIX) {
        Some(twin) => format!("{twin}: the C that fanin loads into Linux"),
        None => format!("{} of {name}", file.name),
    };
    let algorithm: &'static Algorithm = Box::leak(Box::new(Algorithm {
        name: leak(name.to_owned()),
        title: leak(title),
        source: "C (tcp_congestion_ops)",
        needs_ecn: file.needs_ecn,
        deploy: file.places(),
        params: file.params(),
        ..Algorithm::of(Kind::Extension(Box::leak(Box::new(file))))
    }));
    known.push((name.to_owned(), version, algorithm));
    Ok(Some(algorithm))
}
