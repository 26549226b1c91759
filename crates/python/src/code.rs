//! Algorithms that a scenario or command line names as code, in C or Python. This process never loads them: it makes plans with what a worker process says of
//! them (`fanin.confined`), and a worker, which has given its rights away, loads and runs them.

use crate::algorithm;
use crate::error::{Class, keep_interruption, raise};
use fanin_cc::extension::StandIn;
use fanin_cc::registry::{self, BuildError};
use fanin_cc::{Algorithm, Kind, Needs, RecoveryKind, Setting};
use fanin_confine::Rights;
use fanin_kernelcc::Object;
use fanin_sim::spec::Spec;
use fanin_units::{Domain, Preset};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What the name of a class begins with that is found by its module.
const CLASS: &str = "py:";

/// Objects by name, in a process that has given its rights away and therefore runs code itself.
static ADMITTED: OnceLock<BTreeMap<String, (PathBuf, String)>> = OnceLock::new();

/// What was said of code, by its name. Names are few and live as long as the process.
static KNOWN: Mutex<Vec<(String, String, &'static Algorithm)>> = Mutex::new(Vec::new());

/// The registry's line for code in a file; `None` for a name of another kind.
pub fn resolve(name: &str) -> Result<Option<&'static Algorithm>, String> {
    let file = fanin_kernelcc::file_of(name);
    match (ADMITTED.get(), &file) {
        (_, None) if !name.starts_with(CLASS) => Ok(None),
        (None, _) => Python::attach(|py| described(py, name).map(Some).map_err(|error| sentence(py, &error))),
        (Some(_), None) => Python::attach(|py| algorithm::class(py, name)),
        (Some(objects), Some(_)) => match objects.get(name) {
            Some((path, version)) => {
                let object = Object { path: path.clone(), version: version.clone(), headers: Vec::new() };
                fanin_kernelcc::resolve_object(name, object).map(Some)
            }
            None => Ok(None),
        },
    }
}

/// The sentence of an error of fanin's, or what was raised and where.
fn sentence(py: Python<'_>, error: &PyErr) -> String {
    keep_interruption(py, error);
    let ours = py.import("fanin.errors").and_then(|module| module.getattr("FaninError"));
    match ours.and_then(|class| error.value(py).is_instance(&class)) {
        Ok(true) => error.value(py).to_string(),
        _ => algorithm::describe(py, error),
    }
}

/// A line that stands for code which is not loaded here.
fn described(py: Python<'_>, name: &str) -> PyResult<&'static Algorithm> {
    let said = py.import("fanin.confined")?.call_method1("describe", (name,))?;
    let key = said.repr()?.to_string();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., algorithm)) = known.iter().find(|(n, k, _)| n == name && *k == key) {
        return Ok(algorithm);
    }
    let made: &'static Algorithm = Box::leak(Box::new(line(name, &said)?));
    known.push((name.to_owned(), key, made));
    Ok(made)
}

/// What a worker says of one parameter: name, whether it is a flag, default, least, most, source, help.
type Param = (String, bool, f64, f64, f64, String, String);

fn line(name: &str, said: &Bound<'_, PyAny>) -> PyResult<Algorithm> {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let text = |key: &str| -> PyResult<String> { said.get_item(key)?.extract() };
    let params = said.get_item("params")?.extract::<Vec<Param>>()?.into_iter().map(
        |(name, is_flag, default, least, most, source, help)| {
            let setting = match is_flag {
                true => Setting::switch(leak(name), default != 0.0),
                false => Setting::parameter(leak(name), default, least, most),
            };
            setting.doc(leak(source), leak(help))
        },
    );
    let words: Vec<String> = said.get_item("needs")?.extract()?;
    let needs = NEEDS.iter().fold(Needs::default(), |mut needs, (word, part)| {
        *part(&mut needs) = words.iter().any(|w| w == word);
        needs
    });
    let recovery: Option<String> = said.get_item("recovery")?.extract()?;
    let recovery = recovery.and_then(|word| RECOVERIES.iter().find(|(w, _)| *w == word)).map(|(_, kind)| *kind);
    Ok(Algorithm {
        name: leak(name.to_owned()),
        title: leak(text("title")?),
        source: leak(text("source")?),
        needs_ecn: said.get_item("needs_ecn")?.extract()?,
        params: Box::leak(params.collect()),
        ..Algorithm::of(Kind::Extension(Box::leak(Box::new(StandIn {
            version: text("version")?,
            linux_name: said.get_item("linux_name")?.extract()?,
            needs: Needs { recovery, ..needs },
            is_known: said.get_item("known")?.extract()?,
        }))))
    })
}

/// Words for [`Needs`].
type Need = (&'static str, fn(&mut Needs) -> &mut bool);

/// Every one that an algorithm from outside may have.
const NEEDS: &[Need] = &[
    ("dctcp_ecn", |n| &mut n.dctcp_ecn),
    ("randomness", |n| &mut n.randomness),
    ("rate_samples", |n| &mut n.rate_samples),
    ("send_hook", |n| &mut n.send_hook),
    ("segment_sizes", |n| &mut n.segment_sizes),
    ("empty_acks", |n| &mut n.empty_acks),
    ("byte_window", |n| &mut n.byte_window),
    ("quickack", |n| &mut n.quickack),
    ("handles_idle", |n| &mut n.handles_idle),
    ("controls_recovery", |n| &mut n.controls_recovery),
    ("settled_acks", |n| &mut n.settled_acks),
];

const RECOVERIES: &[(&str, RecoveryKind)] = &[
    ("reno", RecoveryKind::Reno),
    ("newreno", RecoveryKind::NewReno),
    ("sack", RecoveryKind::Sack),
    ("fack", RecoveryKind::Fack),
    ("rack", RecoveryKind::Rack),
];

/// Compiles the C file of a name in the empty folder `work` without loading it: the object, its version, and the files that it was made from.
#[pyfunction]
pub fn compile_c(py: Python<'_>, name: &str, work: PathBuf) -> PyResult<(PathBuf, String, Vec<PathBuf>)> {
    let Some(path) = fanin_kernelcc::file_of(name) else {
        return Err(raise(py, Class::Algorithm, format!("`{name}` is no C file")));
    };
    let object =
        py.detach(|| fanin_kernelcc::compile_file(&path, Some(&work))).map_err(|e| raise(py, Class::Algorithm, e))?;
    let files = [path].into_iter().chain(object.headers).collect();
    Ok((object.path, object.version, files))
}

/// Where the C files of names are compiled to, made if it is missing, and the file of this name.
#[pyfunction]
pub fn c_places(py: Python<'_>, name: &str) -> PyResult<(PathBuf, PathBuf)> {
    let Some(path) = fanin_kernelcc::file_of(name) else {
        return Err(raise(py, Class::Algorithm, format!("`{name}` is no C file")));
    };
    let cache = fanin_kernelcc::cache().map_err(|e| raise(py, Class::Algorithm, e))?;
    Ok((cache, path))
}

/// Takes the rights of this process for good: it may read what is in `readable`, write into the folders of `writable`, start `programs` that are
/// in `readable` if that is said, and compute. Copies of the compiled files `copied` are kept, for their sets of parameters.
#[pyfunction]
#[pyo3(signature = (readable, writable, memory=None, *, programs=false, copied=Vec::new()))]
pub fn confine(
    py: Python<'_>,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    memory: Option<u64>,
    programs: bool,
    copied: Vec<PathBuf>,
) -> PyResult<()> {
    if !programs {
        let cannot = |error| raise(py, Class::Algorithm, format!("no copies of compiled files can be kept: {error}"));
        fanin_kernelcc::keep_copies(&copied).map_err(cannot)?;
    }
    let rights = Rights { readable, writable, memory, programs };
    fanin_confine::confine(&rights).map_err(|error| raise(py, Class::Engine, error))
}

/// When `parent`, which forked this process, ends without a word, so does this process (`PR_SET_PDEATHSIG`, prctl(2)); with `group`, its process
/// group too, which a compiler that it started belongs to.
#[pyfunction]
#[allow(unsafe_code)]
pub fn end_with_parent(parent: i32, group: bool) {
    extern "C" fn end_group(_signal: libc::c_int) {
        // SAFETY: system calls that a signal handler may make; none returns where the first is allowed.
        unsafe {
            libc::kill(0, libc::SIGKILL);
            libc::_exit(2);
        }
    }
    // SAFETY: system calls; the handler is a function of this module.
    unsafe {
        if group {
            libc::signal(libc::SIGTERM, end_group as *const () as libc::sighandler_t);
        }
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_PDEATHSIG, if group { libc::SIGTERM } else { libc::SIGKILL });
        if libc::getppid() != parent {
            // It ended before it was asked for.
            libc::_exit(2);
        }
    }
}

/// From now on this process loads code by itself: C from these objects (path and version by name), classes by their modules.
#[pyfunction]
pub fn admit_code(objects: BTreeMap<String, (PathBuf, String)>) {
    // The first call counts: a process that has no rights gets no more.
    let _ = ADMITTED.set(objects);
}

/// What code says of itself, loaded into this process, which was told to (`admit_code`).
#[pyfunction]
pub fn describe_code<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let found = py.detach(|| registry::parts(name)).map_err(|error| refused(py, name, &error))?;
    let Some(&Algorithm { kind: Kind::Extension(code), title, source, needs_ecn, params, .. }) = found.last() else {
        return Err(raise(py, Class::Algorithm, format!("`{name}` is no code")));
    };
    let mut needs = code.needs();
    let words: Vec<&str> = NEEDS.iter().filter(|(_, part)| *part(&mut needs)).map(|(word, _)| *word).collect();
    let recovery = RECOVERIES.iter().find(|(_, kind)| Some(*kind) == needs.recovery).map(|(word, _)| *word);
    let said = PyDict::new(py);
    said.set_item("title", title)?;
    said.set_item("source", source)?;
    said.set_item("version", code.version())?;
    said.set_item("linux_name", code.linux_name())?;
    said.set_item("needs_ecn", needs_ecn)?;
    said.set_item("needs", words)?;
    said.set_item("recovery", recovery)?;
    said.set_item("params", params.iter().map(param).collect::<Vec<_>>())?;
    said.set_item("known", true)?;
    Ok(said)
}

fn param(setting: &Setting) -> (&'static str, bool, f64, f64, f64, &'static str, &'static str) {
    let (is_flag, default) = match setting.default {
        Some(Preset::Flag(on)) => (true, f64::from(u8::from(on))),
        Some(Preset::Number(number)) => (false, number),
        _ => (false, 0.0),
    };
    let (least, most) = match setting.domain {
        Domain::Number { min, max, .. } => (min, max),
        _ => (0.0, 1.0),
    };
    (setting.name, is_flag, default, least, most, setting.source, setting.help)
}

/// The sentence without the name, which the caller puts before it.
fn refused(py: Python<'_>, name: &str, error: &BuildError) -> PyErr {
    let whole = error.to_string();
    let why = whole.strip_prefix(&format!("`{name}`: ")).unwrap_or(&whole);
    raise(py, Class::Algorithm, why)
}

/// Names of code that a plan uses and that is not loaded here.
pub fn stand_ins(spec: &Spec) -> Vec<&'static str> {
    let mut names: Vec<&str> = spec.transports.iter().flat_map(|t| t.cc.stand_ins()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Raises when a plan cannot run here, because it uses code that is not loaded.
pub fn check_runnable(py: Python<'_>, spec: &Spec) -> PyResult<()> {
    match stand_ins(spec).first() {
        None => Ok(()),
        Some(name) => Err(raise(py, Class::Engine, format!("`{name}` is not loaded: it runs in a worker process"))),
    }
}

/// The same with its code loaded.
pub fn loaded(py: Python<'_>, spec: &Spec) -> PyResult<Spec> {
    let mut spec = spec.clone();
    for transport in &mut spec.transports {
        let name = transport.cc.name().to_owned();
        let before = transport.cc.fingerprint();
        let cc = registry::resolve(&name).map_err(|error| raise(py, Class::Algorithm, error))?;
        if cc.fingerprint() != before {
            let message = format!("`{name}` was changed while its runs were under way; give the command again");
            return Err(raise(py, Class::Algorithm, message));
        }
        transport.cc = cc;
    }
    Ok(spec)
}
