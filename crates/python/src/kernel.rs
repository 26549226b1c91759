//! The engine `kernel` for Python: what to put into a run's folder, and what was left in it.

use crate::error::{Class, raise, run_error, scenario_error};
use crate::results::Run;
use crate::simulate::{Plan, Scenario};
use fanin_kernel::algorithms::{Hosts, Whose};
use fanin_kernel::pcap::Capture;
use fanin_kernel::{KernelError, limits};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Raises, with the key's line, when a kernel cannot do what the plan of this scenario asks for.
#[pyfunction]
#[pyo3(signature = (scenario, plan, whose="twin", hz=None))]
pub fn kernel_check(py: Python<'_>, scenario: &Scenario, plan: &Plan, whose: &str, hz: Option<u32>) -> PyResult<()> {
    let hosts = hosts(py, whose, hz)?;
    py.detach(|| limits::check(&plan.0, hosts)).map_err(|limit| {
        let problem = scenario.0.problem(&limit.key, "scenario::not-in-kernel", limit.message);
        scenario_error(py, &problem)
    })
}

/// What a kernel cannot do of what a plan asks for: `(key, sentence)`; none when it can all of it.
#[pyfunction]
#[pyo3(signature = (plan, whose="twin", hz=None))]
pub fn kernel_limit(py: Python<'_>, plan: &Plan, whose: &str, hz: Option<u32>) -> PyResult<Option<(String, String)>> {
    let hosts = hosts(py, whose, hz)?;
    Ok(py.detach(|| limits::check(&plan.0, hosts)).err().map(|limit| (limit.key, limit.message)))
}

/// Whose algorithms run, `twin`, `rust` or `rust-always` ([`Whose`]), and the HZ of the kernel that is to run them, if it is known.
fn hosts(py: Python<'_>, whose: &str, hz: Option<u32>) -> PyResult<Hosts> {
    let whose = match whose {
        "twin" => Whose::Twin,
        "rust" => Whose::Rust,
        "rust-always" => Whose::RustAlways,
        _ => {
            let message = format!("whose algorithms: `{whose}` is none of twin, rust, rust-always");
            return Err(raise(py, Class::Engine, message));
        }
    };
    Ok(Hosts { whose, hz })
}

/// Writes what the virtual kernel needs into a folder that exists.
#[pyfunction]
#[pyo3(signature = (plan, folder, whose="twin", hz=None, notes=false))]
pub fn kernel_prepare(
    py: Python<'_>,
    plan: &Plan,
    folder: PathBuf,
    whose: &str,
    hz: Option<u32>,
    notes: bool,
) -> PyResult<()> {
    let hosts = hosts(py, whose, hz)?;
    py.detach(|| fanin_kernel::prepare(&plan.0, &folder, hosts, notes)).map_err(|e| kernel_error(py, &e))
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
