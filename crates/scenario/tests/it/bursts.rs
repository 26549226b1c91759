//! Bursts of a data centre in the background.

use fanin_scenario::Scenario;
use fanin_scenario::distribution::{Dimension, Distribution};
use fanin_sim::spec::{Cbr, Spec};
use std::path::Path;

const WORKLOAD: &str = "[[workload]]\nkind = \"bursts\"\n";

fn scenario(text: &str) -> Scenario {
    Scenario::from_text(text, "bursts.toml").unwrap()
}

fn spec(text: &str) -> Spec {
    scenario(text).plan(1).unwrap_or_else(|e| panic!("{e}"))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Kolmogorov and Smirnov: the largest distance is below 1.95 / sqrt(n) in 999 of 1000 cases.
fn follows(mut values: Vec<f64>, name: &str) {
    let distribution = Distribution::load(name, Path::new(""), Dimension::Time).unwrap();
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let far = |(i, &x): (usize, &f64)| (distribution.cdf(x) - (i + 1) as f64 / n).abs();
    let worst = values.iter().enumerate().map(far).fold(0.0, f64::max);
    assert!(worst < 1.95 / n.sqrt(), "{name}: {worst} of {n}");
}

/// Smallest packets, so that the shortest bursts are no shorter than one.
#[test]
fn lengths_and_gaps_are_those_of_the_study() {
    let text = format!("[topology]\nrate = \"10Gbps\"\n[run]\nduration = \"60s\"\n{WORKLOAD}packet = \"64B\"");
    let bursts = spec(&text).cbr;
    assert!(bursts.len() > 5000, "{}", bursts.len());
    // The last one may be cut short by the end of the run.
    let whole = &bursts[..bursts.len() - 1];
    follows(whole.iter().map(|b| b.stop.since(b.start).ps() as f64).collect(), "imc17_burst_length");
    let gaps: Vec<f64> = bursts.windows(2).map(|b| b[1].start.since(b[0].stop).ps() as f64).collect();
    follows(gaps.clone(), "imc17_burst_gap");
    // Table 2: a port of a rack of web servers becomes hot in 3 of 1000 periods of 25 us.
    assert!((mean(&gaps) / 8.33e9 - 1.0).abs() < 0.15, "{}", mean(&gaps));
}

#[test]
fn each_burst_comes_from_one_sender_and_all_have_their_turn() {
    let bursts = spec(&format!("[topology]\nsenders = 4\n[run]\nduration = \"2s\"\n{WORKLOAD}")).cbr;
    let mut sources: Vec<u32> = bursts.iter().map(|b| b.src.0).collect();
    sources.sort_unstable();
    sources.dedup();
    assert_eq!(sources.len(), 4);
    assert!(bursts.windows(2).all(|b| b[0].stop <= b[1].start), "one after another");
}

#[test]
fn a_burst_has_the_rate_that_both_ends_can_carry() {
    let links = |sender: &str, receiver: &str| {
        format!(
            "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\nlink = [{{ between = [\"a\", \"x\"], rate = \"{sender}\" }}, {{ between = [\"b\", \"x\"], rate = \"{receiver}\" }}]\n\
             [run]\nduration = \"1s\"\n{WORKLOAD}from = \"a\"\nto = \"b\"\n"
        )
    };
    let rate = |text: &str| spec(text).cbr[0].rate.to_string();
    assert_eq!(rate(&links("1Gbps", "10Gbps")), "1Gbps");
    assert_eq!(rate(&links("10Gbps", "1Gbps")), "1Gbps");
    assert_eq!(rate(&(links("10Gbps", "1Gbps") + "rate = \"2Gbps\"")), "2Gbps");
    let refused = scenario(&(links("1Gbps", "10Gbps") + "rate = \"2Gbps\"")).plan(1).unwrap_err().to_string();
    assert!(refused.contains("it is 2Gbps, and the link of `a` carries 1Gbps"), "{refused}");
}

#[test]
fn more_bursts_than_memory_holds_are_refused() {
    let text = format!("[run]\nduration = \"60s\"\n{WORKLOAD}gap = \"1us\"\nlength = \"1us\"");
    let refused = scenario(&text).plan(1).unwrap_err().to_string();
    assert!(refused.contains("bursts would be sent, and 1000000 are the most"), "{refused}");
}

/// What is sent is what lengths and rate say, and all of it arrives or is dropped, beside a flow that fills the port.
#[test]
fn every_datagram_arrives_or_is_dropped() {
    let text = format!(
        "[topology]\nsenders = 3\nbuffer = \"20p\"\n[run]\nduration = \"500ms\"\n{WORKLOAD}stop = \"450ms\"\n[[workload]]\nkind = \"long\"\nstop = \"450ms\""
    );
    let spec = spec(&text);
    let packets = |b: &Cbr| b.stop.since(b.start).ps().div_ceil((b.packet / b.rate).ps());
    let expected: u64 = spec.cbr.iter().map(packets).sum();
    let results = fanin_sim::run(&spec, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let sum = |of: fn(&fanin_sim::results::CbrStats) -> u64| results.cbr.iter().map(of).sum::<u64>();
    let (sent, received, dropped) = (sum(|c| c.sent), sum(|c| c.received), sum(|c| c.dropped));
    assert_eq!((sent, received + dropped), (expected, sent));
    assert!(dropped > 0 && received > 0);
}
