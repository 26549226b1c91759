//! A handle on work in progress: Python reads how far it is and asks it to stop, from another thread.

use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Share of the work done, and a way to stop it.
#[pyclass(frozen, from_py_object, module = "fanin._native")]
#[derive(Clone, Default)]
pub struct Watch(Arc<State>);

#[derive(Default)]
struct State {
    stop: AtomicBool,
    /// Bits of an f64 from 0 to 1.
    fraction: AtomicU64,
}

impl Watch {
    /// Notes how far the work is and says whether to go on.
    pub fn report(&self, fraction: f64) -> ControlFlow<()> {
        self.0.fraction.store(fraction.clamp(0.0, 1.0).to_bits(), Ordering::Relaxed);
        if self.0.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[pymethods]
impl Watch {
    #[new]
    fn new() -> Watch {
        Watch::default()
    }
    /// Asks the work to stop soon; it then raises `fanin.Interrupted`.
    fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
    /// Notes how far work outside the engine is; false when it is to stop.
    fn advance(&self, fraction: f64) -> bool {
        self.report(fraction).is_continue()
    }
    /// How much is done, from 0 to 1; 0 while that is not known.
    #[getter]
    fn fraction(&self) -> f64 {
        f64::from_bits(self.0.fraction.load(Ordering::Relaxed))
    }
}
