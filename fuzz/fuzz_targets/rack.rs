//! Whatever is written in a rack file: a plan of a small replay or a sentence, never a panic.
#![no_main]

use fanin_scenario::{Rack, Replay};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

mod small;

static REPLAY: LazyLock<Replay> = LazyLock::new(small::replay);

fuzz_target!(|text: &str| {
    if small::names_a_file(text) {
        return;
    }
    if let Ok(rack) = Rack::from_text(text, "fuzz") {
        let _ = rack.plan(&REPLAY, "cubic", 1, false);
    }
});
