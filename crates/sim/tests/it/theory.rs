//! Where theory is exact or nearly so, through the real sender: the numbers of docs/validation.md.

use crate::common::*;
use fanin_cc::{RecoveryKind, Value};
use fanin_sim::queue;
use fanin_sim::results::Results;
use fanin_sim::spec::Message;
use fanin_sim::stack::Stack;
use fanin_units::{Duration, QueueLimit, Rate, Time};

/// Alizadeh et al., SIGMETRICS 2011: N synchronised flows swing the queue between K + N - A and K + N, where
/// A = sqrt(2 N (C RTT + K)) / 2, and alpha settles near sqrt(2/W), W = (C RTT + K)/N.
#[test]
fn dctcps_queue_and_alpha_settle_where_the_fluid_model_has_them() {
    for n in [2u32, 10] {
        let (k, rate) = (20u32, Rate::gbps(1));
        let mut spec = star(n, rate, Duration::us(50), Some(QueueLimit::Packets(400)), Some(QueueLimit::Packets(k)));
        fast_access(&mut spec, Rate::gbps(10));
        let t = transport(&mut spec, "dctcp", Stack { initial_ssthresh: 20.0, ..open_ns2() });
        for i in 0..n {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, Message::UNLIMITED, Duration::us(u64::from(i) * 37));
            spec.trace.windows.push(f);
        }
        spec.trace.internals = true;
        spec.trace.queues.push(fanin_sim::spec::LinkId(1));
        spec.end = Time::ZERO + Duration::ms(400);
        let r = run(&spec);
        let late = Duration::ms(100).ps();
        let q = &r.traces.queue;
        let settled: Vec<u32> = (0..q.time_ps.len()).filter(|&i| q.time_ps[i] > late).map(|i| q.packets[i]).collect();
        // C RTT without queueing: 12.64 us of it are at the fast access, 12 at the bottleneck.
        let bdp = rate.bps() as f64 / (8.0 * 1500.0) * r.flows.row(0).min_rtt_ps as f64 / 1e12;
        let swing = (2.0 * f64::from(n) * (bdp + f64::from(k))).sqrt() / 2.0;
        let highest = f64::from(*settled.iter().max().unwrap());
        let top = f64::from(k + n);
        assert!(highest <= top + f64::from(n) + 2.0, "N = {n}: queue up to {highest}, model {top}");
        let mean = r.ports[1].mean_queue_packets;
        assert!(
            mean > top - swing - 2.0 && mean < top + 2.0,
            "N = {n}: mean queue {mean}, model between {} and {top}",
            top - swing
        );
        let t = &r.traces.internals;
        let alphas: Vec<f64> = (0..t.time_ps.len())
            .filter(|&i| t.name[i] == "dctcp_alpha" && t.time_ps[i] > late)
            .map(|i| t.value[i])
            .collect();
        let alpha = alphas.iter().sum::<f64>() / alphas.len() as f64;
        let model = (2.0 * f64::from(n) / (bdp + f64::from(k))).sqrt().min(1.0);
        // The model is for synchronised flows with windows of many packets; ten flows have four packets each and do not stay in step.
        let within = if n == 2 { 0.35 } else { 0.6 };
        assert!((alpha / model - 1.0).abs() < within, "N = {n}: alpha {alpha}, model {model}");
        println!(
            "N = {n}: mean queue {mean:.1}, highest {highest}, alpha {alpha:.3}; model {:.1} to {top}, {model:.3}",
            top - swing
        );
        assert!(r.ports[1].busy_ps as f64 / r.end_ps as f64 > 0.985, "N = {n}");
        assert_eq!(r.ports[1].drops, 0);
    }
}

/// Mathis et al. 1997: the mean window of a loss-limited Reno sender is sqrt(3/2)/sqrt(p) packets when every packet is acknowledged.
#[test]
fn renos_window_follows_the_inverse_square_root_of_the_loss_rate() {
    for p in [0.002, 0.0005] {
        let mut spec = star(1, Rate::gbps(10), Duration::us(250), None, None);
        let queue = &mut spec.links[1].queue;
        queue.discipline = queue::find("lossy").unwrap();
        queue.args.set("loss_probability", Value::Number(p));
        let t = transport(&mut spec, "sack", Stack { initial_ssthresh: 30.0, ..open_ns2() });
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, Message::UNLIMITED, Duration::ZERO);
        spec.end = Time::ZERO + Duration::s(40);
        let r = run(&spec);
        let rtt = r.flows.row(0).min_rtt_ps as f64;
        let window = r.flows.row(0).bytes_delivered as f64 / 1460.0 * rtt / r.end_ps as f64;
        let model = (1.5 / p).sqrt();
        assert!((window / model - 1.0).abs() < 0.1, "p = {p}: mean window {window}, model {model}");
    }
}

fn window_at(r: &Results, seconds: f64) -> f64 {
    let w = &r.traces.window;
    let at = w.time_ps.partition_point(|&t| (t as f64) < seconds * 1e12);
    w.cwnd[at - 1]
}

/// RFC 9438: after a loss at Wmax the window is C (t - K)^3 + Wmax with C = 0.4 and K = cbrt(0.3 Wmax / C).
#[test]
fn cubic_follows_its_curve_after_a_loss() {
    let mut spec = star(1, Rate::gbps(1), Duration::ms(25), None, None);
    let queue = &mut spec.links[1].queue;
    queue.discipline = queue::find("lossy").unwrap();
    queue.args.set("loss_of", Value::Word("3000".to_owned()));
    let stack = Stack { initial_ssthresh: 400.0, recovery: RecoveryKind::Sack, ..open_ns2() };
    let t = transport(&mut spec, "cubic", stack);
    let f = flow(&mut spec, 0, t);
    message(&mut spec, f, Message::UNLIMITED, Duration::ZERO);
    spec.trace.windows.push(f);
    spec.end = Time::ZERO + Duration::s(16);
    let r = run(&spec);
    let w = &r.traces.window;
    let entered = (0..w.state.len()).find(|&i| w.state[i] == 3).unwrap();
    let left = (entered..w.state.len()).find(|&i| w.state[i] == 0).unwrap();
    let (top, low, start) = (w.cwnd[entered - 1], w.cwnd[left], w.time_ps[left] as f64 / 1e12);
    assert!((low / top - 0.7).abs() < 0.01, "from {top} to {low}");
    let k = ((top - low) / 0.4f64).cbrt();
    for t in [1.0, 3.0, k, 9.0, 11.0] {
        let curve = 0.4 * (t - k).powi(3) + top;
        let got = window_at(&r, start + t);
        assert!((got / curve - 1.0).abs() < 0.02, "{t} s after: {got}, curve {curve} (K = {k})");
    }
}

/// DCTCP 2010 section 2.3, GSS Fig. 6, DCVegas Fig. 3: many senders answering at once overrun a shallow buffer, whole windows are
/// lost, and goodput falls to a few per cent until the retransmission timeouts are over.
#[test]
fn incast_collapses_newreno_by_timeouts_and_not_few_senders() {
    let goodput = |n: u32| {
        let mut spec = star(n, Rate::gbps(1), Duration::us(25), Some(QueueLimit::Packets(40)), None);
        let t = transport(&mut spec, "newreno", Stack { send_jitter: Duration::us(5), ..open_ns2() });
        for i in 0..n {
            let f = flow(&mut spec, i, t);
            message(&mut spec, f, 256_000, Duration::ZERO);
        }
        let r = run(&spec);
        assert!(r.complete);
        let timeouts: u64 = r.flows.iter().map(|f| f.timeouts).sum();
        (f64::from(n) * 256_000.0 * 8.0 / (r.end_ps as f64 / 1e12) / 1e9, timeouts)
    };
    let (few, none) = goodput(1);
    assert!(few > 0.85 && none == 0, "one sender: {few} Gbps, {none} timeouts");
    let (many, timeouts) = goodput(30);
    assert!(many < 0.3 && timeouts > 0, "30 senders: {many} Gbps, {timeouts} timeouts");
}
