//! Whatever is written in a plan for `fanin-host apply`: the part of an end or a sentence, never a panic.
#![no_main]

#[path = "../../crates/host/src/plan.rs"]
mod plan;

mod error {
    //! As the program's own, of which a plan needs no more.

    pub enum Error {
        Usage(String),
        File(String),
    }

    impl Error {
        pub fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
            move |why| Error::File(format!("{}: {why}", path.display()))
        }
    }
}

use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    let name = Path::new("plan.toml");
    for end in [None, Some("servers"), Some("aggregator")] {
        let _ = plan::parse(text, name, end, |address| address.is_loopback());
    }
});
