//! What the tests share: where the captures are, and the table of what tshark found in them.

use fanin_capture::{Analysis, CaptureError, Options, analyse, analyse_reader};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// `tests/data/pcap` of the repository.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pcap")
}

/// Analyses a test capture with the defaults.
pub fn run(name: &str) -> Result<Analysis, CaptureError> {
    run_with(name, &Options::default())
}

/// Analyses a test capture.
pub fn run_with(name: &str, options: &Options) -> Result<Analysis, CaptureError> {
    analyse(&data().join(name), options, &mut |_| ControlFlow::Continue(()))
}

/// Analyses bytes.
pub fn run_bytes(bytes: &[u8]) -> Result<Analysis, CaptureError> {
    analyse_reader(bytes, Path::new("bytes"), None, &Options::default(), &mut |_| ControlFlow::Continue(()))
}

/// Rows of a CSV file by column name. Quoted fields may hold commas; none holds a quote or a line break.
pub fn csv(name: &str) -> Vec<HashMap<String, String>> {
    let text = std::fs::read_to_string(data().join(name)).unwrap();
    let mut lines = text.lines().map(fields);
    let head = lines.next().unwrap();
    lines.map(|row| head.iter().cloned().zip(row).collect()).collect()
}

fn fields(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => all.last_mut().unwrap().push(c),
        }
    }
    all
}
