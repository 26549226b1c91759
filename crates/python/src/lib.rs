//! `fanin._native`: the engine for Python. Conversions and error mapping only; what things mean is said in the crates below
//! and in `python/fanin`.

mod algorithm;
mod aside;
mod capture;
mod code;
mod columns;
mod envelope;
mod error;
mod graph;
mod kernel;
mod memory;
mod model;
mod pcap;
mod registries;
mod results;
mod simulate;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::*;
    #[pymodule_export]
    use crate::algorithm::{PyAck, PyConn, PySetup, name_c_file, named_c_files};
    #[pymodule_export]
    use crate::aside::mapped;
    #[pymodule_export]
    use crate::capture::{Capture, Replay, analyse};
    #[pymodule_export]
    use crate::code::{admit_code, c_places, compile_c, confine, describe_code, end_with_parent};
    #[pymodule_export]
    use crate::columns::Table;
    #[pymodule_export]
    use crate::envelope::Lines;
    #[pymodule_export]
    use crate::graph::graph_json;
    #[pymodule_export]
    use crate::kernel::{
        kernel_check, kernel_check_places, kernel_limit, kernel_prepare, kernel_replay, kernel_results,
    };
    #[pymodule_export]
    use crate::memory::{clean_and_end, clean_without_memory, end_without_memory, give_back, say_without_memory};
    #[pymodule_export]
    use crate::model::{dctcp, gss_incast, iatcp, limit, quantity, rand_enqueue, rand_rmin, trim_as, trim_k};
    #[pymodule_export]
    use crate::pcap::run_with_pcap;
    #[pymodule_export]
    use crate::registries::registry_json;
    #[pymodule_export]
    use crate::results::{Run, results_schema_json};
    #[pymodule_export]
    use crate::simulate::{
        Deployment, Plan, Rack, RackPlan, Replayed, Scenario, deployment, needs_ecn, needs_quickack,
    };
    #[pymodule_export]
    use crate::watch::Watch;
    #[pymodule_export]
    const MOST_TEXT: u64 = fanin_scenario::MOST_TEXT;
    #[pymodule_export]
    const SLOWEST: usize = fanin_scenario::SLOWEST;
    #[pymodule_export]
    const TRACED_ROWS: usize = fanin_scenario::TRACED_ROWS;
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::algorithm::install();
        Ok(())
    }
}
