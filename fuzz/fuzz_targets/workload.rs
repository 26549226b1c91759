//! Whatever is written in a workload file (traces of an application become one): a replay that can be planned or a sentence, never a panic.
#![no_main]

use fanin_capture::Workload;
use fanin_scenario::{Rack, Replay};
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::LazyLock;

mod small;

static RACK: LazyLock<Rack> = LazyLock::new(|| Rack::from_text(small::RACK, "rack").unwrap_or_else(|e| panic!("{e}")));

fuzz_target!(|text: &str| {
    if let Ok(workload) = Workload::parse(text, Path::new("fuzz")) {
        let replay = Replay::from(&workload);
        let _ = (replay.span(), replay.waiting_answers(), replay.in_trees(), replay.independent());
        let _ = RACK.plan(&replay, "cubic", 1, false);
    }
});
