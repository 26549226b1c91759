//! Nanoseconds per ACK of every registered algorithm, told as the sender tells it. `cargo bench -p fanin-benches --bench ack`.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, criterion_group, criterion_main};
use fanin_cc::algorithms::ALGORITHMS;
use fanin_cc::{Ack, Args, Conn, PathKnowledge, RateSample, Setup, registry};
use fanin_units::{Duration, Rate, Time};
use std::hint::black_box;

fn per_ack(c: &mut Criterion) {
    let mut group = c.benchmark_group("ack");
    group.warm_up_time(std::time::Duration::from_millis(300)).measurement_time(std::time::Duration::from_secs(1));
    let path = PathKnowledge { rate: Rate::gbps(10), base_rtt: Duration::us(100), buffer_packets: 250.0 };
    let setup = Setup { path: Some(path), initial_ssthresh: 30.0, ..Setup::default() };
    for algorithm in ALGORITHMS.iter() {
        let spec =
            if algorithm.stands_alone() { algorithm.name.to_owned() } else { format!("{}+cubic", algorithm.name) };
        let mut sender = match registry::build(&spec, &setup, &Args::default()) {
            Ok(transport) => transport.sender,
            Err(e) => panic!("{spec}: {e}"),
        };
        let mut conn = Conn::new(1460);
        conn.srtt = Duration::us(120);
        conn.min_rtt = Duration::us(100);
        conn.in_flight = 30.0;
        conn.loss_basis = 30.0;
        let mut n: u64 = 0;
        group.bench_function(&spec, |b| {
            b.iter(|| {
                n += 1;
                conn.now = Time::from_ps(n * 4_000_000);
                conn.snd_una = n * 1460;
                conn.snd_nxt = conn.snd_una + 30 * 1460;
                let mut ack = Ack::of(1, 1460, conn.snd_una, Some(Duration::ns(100_000 + (n * 7919) % 40_000)));
                ack.ece = n.is_multiple_of(16);
                ack.may_grow = !ack.ece;
                ack.rate = Some(RateSample {
                    delivered: 30,
                    prior_delivered: n.saturating_sub(30),
                    total_delivered: n,
                    interval: Duration::us(120),
                    app_limited: false,
                });
                sender.on_ack(&conn, &ack);
                black_box(sender.control())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, per_ack);
criterion_main!(benches);
