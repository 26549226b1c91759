//! One large run: a fat-tree of 8192 hosts, on one thread and on two. `cargo bench -p fanin-benches --bench large`.
//!
//! `FANIN_BENCH_K` is the fat-tree's k (32), `FANIN_BENCH_THREADS` the threads to compare with one (2). `FANIN_BENCH_SETUP=1` ends after a
//! nanosecond: what is measured then is the set-up.
#![allow(missing_docs)]

use fanin_benches::plan;
use fanin_sim::results::Results;
use fanin_sim::spec::Spec;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::time::Instant;

/// Every host sends 1 MiB to another: 100 Gbps, 1 us per link, 200 packets of buffer, Reno.
fn scene(k: usize, duration: &str) -> String {
    format!(
        r#"
[topology]
kind = "fat_tree"
k = {k}
rate = "100Gbps"
delay = "1us"
buffer = "200p"
[stack]
profile = "ns2"
[cc]
name = "reno"
[[workload]]
kind = "long"
pattern = "permutation"
bytes = "1MiB"
[run]
duration = "{duration}"
"#
    )
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() {
    let (k, threads) = (number("FANIN_BENCH_K", 32), number("FANIN_BENCH_THREADS", 2));
    if number("FANIN_BENCH_SETUP", 0) > 0 {
        let start = Instant::now();
        let spec = plan(&scene(k, "1ns"));
        timed(&spec, 1);
        println!("set-up of {} hosts: {:.2} s, {} MB", k * k * k / 4, start.elapsed().as_secs_f64(), peak_megabytes());
        return;
    }
    let spec = plan(&scene(k, "10s"));
    println!("fat-tree of {} hosts, 1 MiB each, 100 Gbps, Reno", k * k * k / 4);
    let (alone, seconds) = timed(&spec, 1);
    if threads < 2 {
        return;
    }
    let (together, with_threads) = timed(&spec, threads);
    assert_eq!(digest(&alone), digest(&together), "any number of threads gives the same results");
    println!("{threads} threads are {:.2} times as fast, with the same results", seconds / with_threads);
}

/// A run's results and seconds, and its rates in print.
fn timed(spec: &Spec, threads: usize) -> (Results, f64) {
    let (start, busy) = (Instant::now(), processor_seconds());
    let results =
        fanin_sim::run_on(spec, threads, &mut |_| ControlFlow::Continue(())).unwrap_or_else(|e| panic!("{e}"));
    let (seconds, busy) = (start.elapsed().as_secs_f64(), processor_seconds() - busy);
    let segments: u64 = results.flows.iter().map(|f| f.segments).sum();
    println!(
        "  {threads} thread(s): {seconds:.1} s ({busy:.1} s of processor time), {:.1} M hops at {:.2} M/s, {:.2} M segments/s, {} MB at the peak",
        results.packet_hops as f64 / 1e6,
        results.packet_hops as f64 / 1e6 / seconds,
        segments as f64 / 1e6 / seconds,
        peak_megabytes()
    );
    (results, seconds)
}

fn digest(results: &Results) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{results:?}").hash(&mut hasher);
    hasher.finish()
}

/// User and system time of this process so far. Linux counts in hundredths of a second.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    fields.get(11..13).map_or(0.0, |times| times.iter().filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

fn peak_megabytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("VmHWM:"));
    line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse::<u64>().ok()).map_or(0, |kb| kb / 1024)
}
