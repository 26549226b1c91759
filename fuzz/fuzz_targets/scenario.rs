//! Whatever is written in a scenario: a plan or a sentence, never a panic.
#![no_main]

use fanin_scenario::{Scenario, describe, warnings};
use libfuzzer_sys::fuzz_target;

/// A scenario may rightly ask for more than a fuzzer's memory holds: large numbers are left to `tests/never_panics.rs`.
const LONGEST_NUMBER: usize = 3;

fuzz_target!(|text: &str| {
    let digits = text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
    if digits > LONGEST_NUMBER || text.contains('/') || text.contains(".csv") {
        return;
    }
    let Ok(scenario) = Scenario::from_text(text, "fuzz") else { return };
    if let Ok(spec) = scenario.plan(1) {
        let _ = (warnings(&spec), describe(&spec));
    }
});
