#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use fanin_sim::stack::Stack;
use fanin_units::*;
fn main() {
    let cc = std::env::args().nth(1).unwrap();
    let mut spec = star(2, Rate::gbps(1), Duration::us(50), Some(QueueLimit::Packets(100)), None);
    let t = transport(&mut spec, &cc, Stack::ns2());
    for i in 0..2 {
        let f = flow(&mut spec, i, t);
        message(&mut spec, f, fanin_sim::spec::Message::UNLIMITED, Duration::us(u64::from(i) * 30));
        spec.trace.windows.push(f);
    }
    spec.end = fanin_units::Time::ZERO + Duration::s(2);
    let r = run(&spec);
    for f in &r.flows {
        println!("{f:?}");
    }
    let w = &r.traces.window;
    let mut n = 0;
    for i in 0..w.time_ps.len() {
        if w.flow[i] == 0 {
            n += 1;
            if (n < 900 && n % 12 == 0) || n % 4000 == 0 {
                println!(
                    "{:.6} cwnd {} ss {} fl {} st {}",
                    w.time_ps[i] as f64 / 1e12,
                    w.cwnd[i],
                    w.ssthresh[i],
                    w.in_flight[i],
                    w.state[i]
                );
            }
        }
    }
}
