//! Whatever the bytes of a capture: an error or results, never a panic, and a replay that can be planned.
#![no_main]

use fanin_capture::{Options, analyse_reader};
use fanin_scenario::{Rack, Replay};
use libfuzzer_sys::fuzz_target;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

static RACK: LazyLock<Rack> = LazyLock::new(|| {
    Rack::from_text("[rack]\nrate = \"1Gbps\"\ndelay = \"25us\"\nbuffer = \"100p\"", "rack").unwrap_or_else(|e| panic!("{e}"))
});

fuzz_target!(|bytes: &[u8]| {
    let go_on = &mut |_| ControlFlow::Continue(());
    let Ok(found) = analyse_reader(bytes, Path::new("bytes"), None, &Options::default(), go_on) else { return };
    if let Ok(workload) = found.workload(None) {
        let _ = RACK.plan(&Replay::from(&workload), "cubic", 1, false);
    }
});
