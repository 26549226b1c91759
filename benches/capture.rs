//! `fanin trains` on a large capture against `tshark -q -z conv,tcp`, whole process against whole library call, in one run.
//! `cargo bench -p fanin-benches --bench capture`. Without tshark it prints our rate alone.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/captures/http_onoff_8to1.pcap.gz");
/// Copies of the shipped capture in the large one.
const COPIES: u32 = 60;

fn main() -> std::io::Result<()> {
    let dir = std::env::temp_dir().join("fanin-bench-capture");
    std::fs::create_dir_all(&dir)?;
    let file = dir.join("large.pcap");
    let bytes = enlarge(Path::new(SHIPPED), &file)?;
    println!("{:.0} MB capture", bytes as f64 / 1e6);

    let start = Instant::now();
    let options = fanin_capture::Options::default();
    let analysis = fanin_capture::analyse(&file, &options, &mut |_| ControlFlow::Continue(()));
    let ours = start.elapsed().as_secs_f64();
    let analysis = match analysis {
        Ok(analysis) => analysis,
        Err(e) => return Err(std::io::Error::other(e.to_string())),
    };
    let before_mb = peak_mb();
    println!("fanin: {ours:.2} s, {:.0} MB/s, {} trains", bytes as f64 / 1e6 / ours, analysis.trains.len());

    // Who waits for what: beside the time for the capture itself, and per response, which must not grow with the capture.
    let small = fanin_capture::analyse(SHIPPED.as_ref(), &options, &mut |_| ControlFlow::Continue(()))
        .map_err(|e| std::io::Error::other(e.to_string()))?;
    let infer = |analysis: &fanin_capture::Analysis| {
        let start = Instant::now();
        let workload = analysis.workload(None).unwrap();
        let responses: usize = workload.connections.iter().map(|c| c.messages.len()).sum();
        (start.elapsed().as_secs_f64(), responses as f64)
    };
    let (seconds, responses) = infer(&analysis);
    let (few_seconds, few) = infer(&small);
    println!(
        "workload with what requests wait for: x{:.3} of the time without, {} of the peak memory; {:.2} us per response of {responses}, {:.2} us of {few}",
        (ours + seconds) / ours,
        peak_mb().zip(before_mb).map_or("?".to_owned(), |(with, without)| format!("x{:.2}", with / without)),
        seconds / responses * 1e6,
        few_seconds / few * 1e6
    );

    let start = Instant::now();
    let tshark = Command::new("tshark")
        .args(["-q", "-z", "conv,tcp", "-r"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match tshark {
        Ok(status) if status.success() => {
            let theirs = start.elapsed().as_secs_f64();
            println!("tshark: {theirs:.2} s; fanin is {:.0} times as fast", theirs / ours);
        }
        Ok(status) => println!("tshark ended with {status}"),
        Err(e) => println!("tshark was not run: {e}"),
    }
    std::fs::remove_file(&file)
}

/// The most memory that this process has had, where the system tells (Linux).
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kb| kb / 1024.0)
}

/// Writes the capture's records `COPIES` times, each copy later than the one before.
fn enlarge(from: &Path, to: &Path) -> std::io::Result<u64> {
    let unzipped = Command::new("gzip").arg("-dc").arg(from).output()?;
    let data = unzipped.stdout;
    let mut out = BufWriter::new(File::create(to)?);
    out.write_all(&data[..24])?;
    let mut written = 24;
    for copy in 0..COPIES {
        let mut rest = &data[24..];
        let mut header = [0u8; 16];
        while rest.read_exact(&mut header).is_ok() {
            let word = |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
            let (seconds, length) = (word(0), word(8) as usize);
            if rest.len() < length {
                break;
            }
            header[..4].copy_from_slice(&(seconds + copy * 60).to_le_bytes());
            out.write_all(&header)?;
            out.write_all(&rest[..length])?;
            rest = &rest[length..];
            written += 16 + length as u64;
        }
    }
    out.flush()?;
    Ok(written)
}
