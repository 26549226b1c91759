#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use fanin_sim::stack::Stack;
use fanin_units::*;
fn main() {
    let cc = std::env::args().nth(1).unwrap();
    let ms: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let mut spec = star(40, Rate::gbps(10), Duration::us(25), Some(QueueLimit::Packets(250)), None);
    let t = transport(&mut spec, &cc, Stack::ns2());
    for i in 0..40 {
        let f = flow(&mut spec, i, t);
        message(&mut spec, f, fanin_sim::spec::Message::UNLIMITED, Duration::us(u64::from(i) * 30));
    }
    spec.end = fanin_units::Time::ZERO + Duration::ms(ms);
    let t0 = std::time::Instant::now();
    let r = run(&spec);
    let dt = t0.elapsed().as_secs_f64();
    println!(
        "{} hops in {:.3} s = {:.2} M/s; timeouts {} drops {} util {:.3}",
        r.packet_hops,
        dt,
        r.packet_hops as f64 / dt / 1e6,
        r.flows.iter().map(|f| f.timeouts).sum::<u64>(),
        r.ports[1].drops,
        r.ports[1].busy_ps as f64 / r.end_ps as f64
    );
}
