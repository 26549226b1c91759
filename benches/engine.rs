//! Packet-hops per second and core. `cargo bench -p fanin-benches --bench engine`.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use fanin_benches::{fat_tree, forwarding, plan, run, star};
use std::time::Duration;

fn hops(c: &mut Criterion) {
    let mut group = c.benchmark_group("packet-hops");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).warm_up_time(Duration::from_millis(500));
    group.measurement_time(Duration::from_secs(6));
    let cases = [
        ("star 40 to 1, newreno", star("newreno", "1s")),
        ("star 40 to 1, dctcp", star("dctcp", "1s")),
        ("star 40 to 1, cubic", star("cubic", "1s")),
        ("fat-tree 128 hosts, newreno", fat_tree(8, "newreno", "5ms")),
        ("fat-tree 128 hosts, dctcp", fat_tree(8, "dctcp", "5ms")),
        ("fat-tree 128 hosts, forwarding only", forwarding(8, 128, "5ms")),
    ];
    for (name, text) in cases {
        let spec = plan(&text);
        group.throughput(Throughput::Elements(run(&spec).packet_hops));
        group.bench_function(name, |b| b.iter(|| run(&spec).packet_hops));
    }
    group.finish();
}

criterion_group!(benches, hops);
criterion_main!(benches);
