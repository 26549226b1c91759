//! `fanin._native`: the engine for Python. Conversions and error mapping only; what things mean is said in the crates below
//! and in `python/fanin`.

mod columns;
mod error;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::columns::Table;
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
