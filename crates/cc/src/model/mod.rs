//! The papers' closed forms: pure functions of numbers, for `fanin model`, for the algorithms that evaluate them, and for tests that
//! hold a simulation against theory.
//!
//! Capacities are packets (or bytes, where said) per second, times are seconds, buffers and windows are packets: the papers' units.
//! Every function is total: outside a formula's domain it returns the limit or the value its documentation names, never NaN for
//! finite positive input.

pub mod dctcp;
pub mod gss;
pub mod iatcp;
pub mod tcprand;
pub mod trim;

/// Capacity in packets per second: the papers' C (`rate` in bit/s, `wire_bytes` per packet).
///
/// ```
/// assert!((fanin_cc::model::packets_per_second(1e9, 1500.0) - 83333.33333333333).abs() < 1e-6);
/// ```
pub fn packets_per_second(rate: f64, wire_bytes: f64) -> f64 {
    rate / (8.0 * wire_bytes)
}

#[cfg(test)]
pub(crate) fn close(ours: f64, oracle: f64) {
    let error = (ours - oracle).abs() / oracle.abs().max(1e-300);
    assert!(error <= 1e-9, "{ours} is not {oracle}");
}
