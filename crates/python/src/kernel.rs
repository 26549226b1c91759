//! The engine `kernel` for Python: what to put into a run's folder, and what was left in it.

use crate::error::{Class, raise, run_error, scenario_error};
use crate::results::Run;
use crate::simulate::{Plan, Scenario};
use fanin_kernel::algorithms::Whose;
use fanin_kernel::pcap::Capture;
use fanin_kernel::{KernelError, limits};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Raises, with the key's line, when a kernel cannot do what the plan of this scenario asks for.
#[pyfunction]
#[pyo3(signature = (scenario, plan, whose="twin"))]
pub fn kernel_check(py: Python<'_>, scenario: &Scenario, plan: &Plan, whose: &str) -> PyResult<()> {
    let whose = whose_of(py, whose)?;
    py.detach(|| limits::check(&plan.0, whose)).map_err(|limit| {
        let problem = scenario.0.problem(&limit.key, "scenario::not-in-kernel", limit.message);
        scenario_error(py, &problem)
    })
}

/// What a kernel cannot do of what a plan asks for: `(key, sentence)`; none when it can all of it.
#[pyfunction]
#[pyo3(signature = (plan, whose="twin"))]
pub fn kernel_limit(py: Python<'_>, plan: &Plan, whose: &str) -> PyResult<Option<(String, String)>> {
    let whose = whose_of(py, whose)?;
    Ok(py.detach(|| limits::check(&plan.0, whose)).err().map(|limit| (limit.key, limit.message)))
}

/// Whose algorithms run: `twin`, `rust` or `rust-always` ([`Whose`]).
fn whose_of(py: Python<'_>, name: &str) -> PyResult<Whose> {
    match name {
        "twin" => Ok(Whose::Twin),
        "rust" => Ok(Whose::Rust),
        "rust-always" => Ok(Whose::RustAlways),
        _ => Err(raise(py, Class::Engine, format!("whose algorithms: `{name}` is none of twin, rust, rust-always"))),
    }
}

/// Writes what the virtual kernel needs into a folder that exists.
#[pyfunction]
#[pyo3(signature = (plan, folder, whose="twin", notes=false))]
pub fn kernel_prepare(py: Python<'_>, plan: &Plan, folder: PathBuf, whose: &str, notes: bool) -> PyResult<()> {
    let whose = whose_of(py, whose)?;
    py.detach(|| fanin_kernel::prepare(&plan.0, &folder, whose, notes)).map_err(|e| kernel_error(py, &e))
}

/// Reads what the virtual kernel left there; with `pcap`, writes captures of `places` into that folder.
#[pyfunction]
#[pyo3(signature = (plan, folder, pcap=None, places=Vec::new()))]
pub fn kernel_results(
    py: Python<'_>,
    plan: &Plan,
    folder: PathBuf,
    pcap: Option<PathBuf>,
    places: Vec<String>,
) -> PyResult<Run> {
    let capture = pcap.as_deref().map(|folder| Capture { folder, places: &places });
    let results = py.detach(|| fanin_kernel::read(&plan.0, &folder, capture.as_ref()));
    results.map(|r| Run::new(r, plan.0.trace.classes.clone())).map_err(|e| kernel_error(py, &e))
}

/// Tells fresh algorithms what those of a run in this folder were told (it was prepared with `notes`), and compares their decisions:
/// `(connections' ends, events, ACKs, the first difference)`.
#[pyfunction]
pub fn kernel_replay(py: Python<'_>, folder: PathBuf) -> PyResult<(usize, usize, usize, Option<String>)> {
    let replayed = py.detach(|| fanin_kernel::replay(&folder)).map_err(|e| kernel_error(py, &e))?;
    Ok((replayed.sockets, replayed.events, replayed.acks, replayed.difference))
}

/// Raises when a place to capture at does not exist.
#[pyfunction]
pub fn kernel_check_places(py: Python<'_>, plan: &Plan, places: Vec<String>) -> PyResult<()> {
    fanin_kernel::pcap::check(&plan.0, &places).map_err(|e| scenario_error(py, &e))
}

fn kernel_error(py: Python<'_>, error: &KernelError) -> PyErr {
    match error {
        KernelError::Limit(limit) => raise(py, Class::Scenario, limit),
        KernelError::Run(error) => run_error(py, error),
        KernelError::File { .. } => raise(py, Class::Output, error),
        KernelError::Guest(_) | KernelError::Record(_) => raise(py, Class::Engine, error),
    }
}
