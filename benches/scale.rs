//! Time per hop from 16 to 1024 hosts, all cores against one, and the memory of idle flows.
//! `cargo bench -p fanin-benches --bench scale`.
#![allow(missing_docs, clippy::unwrap_used)]

use fanin_benches::{fat_tree, plan, run, star};
use std::time::{Duration, Instant};

fn main() {
    println!("time per packet-hop, fat-tree, 10 Gbps, permutation, DCTCP");
    let mut first = None;
    for (k, duration) in [(4, "40ms"), (8, "5ms"), (16, "1ms")] {
        let spec = plan(&fat_tree(k, "dctcp", duration));
        let (time, hops) = best_of_three(|| run(&spec).packet_hops);
        let ns = time.as_secs_f64() * 1e9 / hops as f64;
        let base = *first.get_or_insert(ns);
        println!(
            "  {:5} hosts: {ns:6.1} ns per hop, {:5.1} M hops/s, {:.2} times 16 hosts",
            k * k * k / 4,
            1e3 / ns,
            ns / base
        );
    }

    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let spec = plan(&star("newreno", "500ms"));
    let (alone, _) = best_of_three(|| (0..cores).map(|_| run(&spec).packet_hops).sum());
    let (together, _) = best_of_three(|| {
        std::thread::scope(|s| {
            let runs: Vec<_> = (0..cores).map(|_| s.spawn(|| run(&spec).packet_hops)).collect();
            runs.into_iter().map(|r| r.join().unwrap_or(0)).sum()
        })
    });
    println!(
        "{cores} replicas on {cores} cores: {:.2} times as fast as one after the other",
        alone.as_secs_f64() / together.as_secs_f64()
    );

    idle_flows(1_000_000);
}

fn best_of_three(mut work: impl FnMut() -> u64) -> (Duration, u64) {
    let mut best = (Duration::MAX, 0);
    for _ in 0..3 {
        let start = Instant::now();
        let hops = work();
        best = best.min((start.elapsed(), hops));
    }
    best
}

/// Flows that never send, on the star: resident memory of the run divided by their number.
fn idle_flows(count: u32) {
    let mut spec = plan(&star("newreno", "1ms"));
    let like = spec.flows[0].clone();
    spec.messages.truncate(1);
    spec.flows = vec![like; count as usize];
    let before = resident();
    // The peak is what a run of them needs; the spec itself was there before.
    let results = run(&spec);
    let peak = peak_resident();
    println!(
        "{count} idle flows: {:.0} B each at the peak, {:.2} GiB in all ({} rows of results)",
        (peak.saturating_sub(before)) as f64 / f64::from(count),
        peak.saturating_sub(before) as f64 / f64::from(1 << 30),
        results.flows.len()
    );
}

fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with(field));
    line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse::<u64>().ok()).map_or(0, |kb| kb * 1024)
}

fn resident() -> u64 {
    status("VmRSS:")
}

fn peak_resident() -> u64 {
    status("VmHWM:")
}
