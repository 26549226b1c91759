//! `fanin._native`: the engine for Python. Conversions and error mapping only; what things mean is said in the crates below
//! and in `python/fanin`.

mod capture;
mod columns;
mod error;
mod model;
mod registries;
mod results;
mod simulate;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::capture::{Capture, Replay, analyse};
    #[pymodule_export]
    use crate::columns::Table;
    #[pymodule_export]
    use crate::model::trim_k;
    #[pymodule_export]
    use crate::registries::registry_json;
    #[pymodule_export]
    use crate::results::Run;
    #[pymodule_export]
    use crate::simulate::{Plan, Rack, RackPlan, Scenario, needs_switch};
    #[pymodule_export]
    use crate::watch::Watch;
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
