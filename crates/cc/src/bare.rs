//! What the standard library puts in scope, for builds without it (the virtual kernel).
//!
//! Roots and whole numbers are the same everywhere (IEEE 754); powers may differ from the standard library's in the last bit.

pub(crate) use alloc::borrow::ToOwned;
pub(crate) use alloc::boxed::Box;
pub(crate) use alloc::format;
pub(crate) use alloc::string::{String, ToString};
pub(crate) use alloc::vec;
pub(crate) use alloc::vec::Vec;

/// The methods of `f64` that need a mathematical library.
pub(crate) trait Float {
    fn floor(self) -> f64;
    fn ceil(self) -> f64;
    fn round(self) -> f64;
    fn trunc(self) -> f64;
    fn sqrt(self) -> f64;
    fn cbrt(self) -> f64;
    fn exp(self) -> f64;
    fn powf(self, exponent: f64) -> f64;
    fn powi(self, exponent: i32) -> f64;
}

impl Float for f64 {
    fn floor(self) -> f64 {
        libm::floor(self)
    }
    fn ceil(self) -> f64 {
        libm::ceil(self)
    }
    fn round(self) -> f64 {
        libm::round(self)
    }
    fn trunc(self) -> f64 {
        libm::trunc(self)
    }
    fn sqrt(self) -> f64 {
        libm::sqrt(self)
    }
    fn cbrt(self) -> f64 {
        libm::cbrt(self)
    }
    fn exp(self) -> f64 {
        libm::exp(self)
    }
    fn powf(self, exponent: f64) -> f64 {
        libm::pow(self, exponent)
    }
    fn powi(self, exponent: i32) -> f64 {
        libm::pow(self, f64::from(exponent))
    }
}
