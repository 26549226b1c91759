//! The papers' closed forms for Python.

use fanin_cc::model::trim;
use pyo3::prelude::*;

/// Where TRIM's delay threshold must lie and the buffer that needs: (lower K in s, upper K in s, buffer in packets), from capacity in
/// packets/s, round trip without queueing in s, and the port's buffer in packets (equations 22 to 29).
#[pyfunction]
pub fn trim_k(c: f64, d: f64, b: f64) -> (f64, f64, f64) {
    let k = trim::KInterval::new(c, d, b);
    (k.lower, k.upper, trim::buffer_needed(c, d))
}
