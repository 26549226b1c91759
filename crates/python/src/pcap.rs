//! Runs whose packets are written as captures.

use crate::algorithm;
use crate::code;
use crate::error::{internal, pcap_error};
use crate::results::Run;
use crate::simulate::{Plan, go_on};
use crate::watch::Watch;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// Runs a plan and writes what its hosts and ports saw into a folder, which exists; returns the results and the files.
///
/// `places` are hosts, ports (`switch->client`) and switches; `*` stands for anything, and none for all.
#[pyfunction]
#[pyo3(signature = (plan, folder, places, watch=None))]
pub fn run_with_pcap(
    py: Python<'_>,
    plan: &Plan,
    folder: PathBuf,
    places: Vec<String>,
    watch: Option<Watch>,
) -> PyResult<(Run, Vec<PathBuf>)> {
    let watch = watch.unwrap_or_default();
    code::check_runnable(py, &plan.0)?;
    let run = || fanin_scenario::pcap::run(&plan.0, &folder, &places, &mut |p| go_on(&watch, &p));
    algorithm::forget_failure();
    let outcome = py
        .detach(|| catch_unwind(AssertUnwindSafe(run)))
        .map_err(|_| internal("the engine gave up on this run; please report it with the message above"))?;
    algorithm::check_failure(py)?;
    let (results, files) = outcome.map_err(|error| pcap_error(py, &error))?;
    Ok((Run::new(results, plan.0.trace.classes.clone()), files))
}
