//! The one place where Rust errors become Python exceptions (`fanin.errors`).

use fanin_capture::{CaptureError, WorkloadError};
use fanin_scenario::ScenarioError;
use fanin_scenario::pcap::PcapError;
use fanin_sim::RunError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::cell::Cell;
use std::fmt::Display;

/// The exception classes of `fanin.errors`.
#[derive(Clone, Copy)]
pub enum Class {
    /// The scenario or the rack is wrong.
    Scenario,
    /// The capture cannot be used.
    Capture,
    /// The algorithm is unknown or cannot be run so.
    Algorithm,
    /// A fault of fanin itself.
    Engine,
    /// Results cannot be written.
    Output,
    /// Stopped on request.
    Interrupted,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Class::Scenario => "ScenarioError",
            Class::Capture => "CaptureError",
            Class::Algorithm => "AlgorithmError",
            Class::Engine => "EngineError",
            Class::Output => "OutputError",
            Class::Interrupted => "Interrupted",
        }
    }
}

thread_local! {
    /// What Python raised while Rust asked it something whose errors are sentences, and what no sentence may stand for: Ctrl-C, or a signal to end.
    static INTERRUPTION: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Keeps an interruption, which the next [`raise`] of this thread raises in place of its own; whether `error` is one.
pub fn keep_interruption(py: Python<'_>, error: &PyErr) -> bool {
    let stopped = py.import("fanin.errors").and_then(|errors| errors.getattr(Class::Interrupted.name()));
    let stopped = stopped.is_ok_and(|class| error.value(py).is_instance(&class).unwrap_or(false));
    let is_one = stopped || !error.is_instance_of::<PyException>(py);
    if is_one {
        INTERRUPTION.set(Some(error.clone_ref(py)));
    }
    is_one
}

/// An exception of `class` that says `message`.
pub fn raise(py: Python<'_>, class: Class, message: impl Display) -> PyErr {
    if let Some(interruption) = INTERRUPTION.take() {
        return interruption;
    }
    let class = py.import("fanin.errors").and_then(|errors| errors.getattr(class.name()));
    match class.and_then(|class| class.call1((message.to_string(),))) {
        Ok(exception) => PyErr::from_value(exception),
        // `fanin.errors` is part of the package: it cannot be missing, but if it were, this says so.
        Err(error) => error,
    }
}

/// A scenario or rack that is wrong.
pub fn scenario_error(py: Python<'_>, error: &ScenarioError) -> PyErr {
    let class = match error.code {
        "scenario::unknown-cc" => Class::Algorithm,
        _ => Class::Scenario,
    };
    let raised = raise(py, class, error);
    if let Some(shown) = error.with_source() {
        // An exception that cannot take it is still the exception.
        let _ = raised.value(py).setattr("with_source", shown);
    }
    raised
}

/// A run that could not start or was stopped.
pub fn run_error(py: Python<'_>, error: &RunError) -> PyErr {
    let class = match error {
        RunError::CongestionControl(_) => Class::Algorithm,
        RunError::NoPath { .. }
        | RunError::Discipline { .. }
        | RunError::SegmentTooLarge { .. }
        | RunError::TooManySamples { .. } => Class::Scenario,
        RunError::Interrupted { .. } => Class::Interrupted,
    };
    raise(py, class, error)
}

/// A run that left no captures.
pub fn pcap_error(py: Python<'_>, error: &PcapError) -> PyErr {
    match error {
        PcapError::Place(error) => scenario_error(py, error),
        PcapError::Run(error) => run_error(py, error),
        PcapError::Write { .. } => raise(py, Class::Output, error),
    }
}

/// A capture that cannot be used.
pub fn capture_error(py: Python<'_>, error: &CaptureError) -> PyErr {
    let class = match error {
        CaptureError::Interrupted { .. } => Class::Interrupted,
        _ => Class::Capture,
    };
    raise(py, class, error)
}

/// A capture whose traffic cannot be replayed, or a workload file that cannot be used.
pub fn workload_error(py: Python<'_>, error: &WorkloadError) -> PyErr {
    raise(py, Class::Capture, error)
}

/// A fault of fanin itself.
pub fn internal(error: impl Display) -> PyErr {
    Python::attach(|py| raise(py, Class::Engine, format!("internal error: {error}")))
}
