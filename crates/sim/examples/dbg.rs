#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use fanin_sim::spec::*;
use fanin_sim::stack::Stack;
use fanin_units::*;
fn main() {
    let cc = std::env::args().nth(1).unwrap();
    let seed: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let mut spec = star(8, Rate::gbps(1), Duration::us(10), Some(QueueLimit::Packets(40)), None);
    let t = transport(&mut spec, &cc, Stack{handshake:false,..Stack::linux()});
    let mut rng = fanin_sim::rng::Stream::new(seed, "x", 0);
    for i in 0..8 {
        let f = flow(&mut spec, i, t);
        for k in 0..20 {
            message(&mut spec, f, 10_000 + rng.below(150_000), Duration::us(k * 8000 + rng.below(1000)));
        }
        spec.trace.windows.push(f);
    }
    spec.trace.packets = (0..spec.links.len() as u32).map(LinkId).collect();
    spec.end = fanin_units::Time::ZERO + Duration::ms(3000);
    let r = run(&spec);
    println!(
        "timeouts {} drops {} rtx {} recov {} tlp {} max {}",
        r.flows.iter().map(|f| f.timeouts).sum::<u64>(),
        r.ports[1].drops,
        r.flows.iter().map(|f| f.retransmissions).sum::<u64>(),
        r.flows.iter().map(|f| f.fast_recoveries).sum::<u64>(),
        r.flows.iter().map(|f| f.tail_probes).sum::<u64>(),
        r.messages.iter().map(|m| m.done_ps.unwrap_or(0) - m.release_ps.unwrap_or(0)).max().unwrap()
    );
    if let Some(f) = r.flows.iter().position(|f| f.timeouts > 0) {
        println!("flow {f} {:?}", r.flows[f]);
        let m = r
            .messages
            .iter()
            .filter(|m| m.flow == f as u32)
            .max_by_key(|m| m.done_ps.unwrap_or(u64::MAX) - m.release_ps.unwrap())
            .unwrap();
        println!("{m:?}");
        let (t0, t1) = (m.release_ps.unwrap(), m.done_ps.unwrap_or(u64::MAX));
        let p = &r.traces.packets;
        for i in 0..p.time_ps.len() {
            if p.flow[i] == f as u32
                && p.time_ps[i] >= t0
                && p.time_ps[i] <= t1
                && (p.link[i] == 1 && p.event[i] != 3 || p.link[i] == 0 && p.event[i] == 0)
            {
                println!(
                    "{:.6} link {} ev {} flags {:x} seq {} len {} sack {:?}",
                    p.time_ps[i] as f64 / 1e9,
                    p.link[i],
                    p.event[i],
                    p.flags[i],
                    p.seq[i],
                    p.payload[i],
                    p.sack[i]
                );
            }
        }
        let w = &r.traces.window;
        for i in 0..w.time_ps.len() {
            if w.flow[i] == f as u32 && w.time_ps[i] >= t0 && w.time_ps[i] <= t1 {
                println!(
                    "  {:.6} cwnd {:.2} ss {:.2} fl {} st {}",
                    w.time_ps[i] as f64 / 1e9,
                    w.cwnd[i],
                    w.ssthresh[i],
                    w.in_flight[i],
                    w.state[i]
                );
            }
        }
    }
}
