//! The law of runs on several threads: any number of them gives the same bytes.

use fanin_scenario::Scenario;
use fanin_sim::results::Results;
use fanin_sim::spec::Spec;
use std::ops::ControlFlow;

/// A small generator, so that each case is the same on every machine.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Fat-trees and leaf-spines with open-loop traffic, every trace on, buffers so small that much is lost.
fn random(number: u64) -> String {
    let mut d = Draw(number * 7919 + 1);
    let topology = match d.below(3) {
        0 => "kind = \"fat_tree\"\nk = 4\n".to_owned(),
        1 => format!(
            "kind = \"leaf_spine\"\nleaves = {}\nspines = {}\nhosts_per_leaf = {}\n",
            2 + d.below(4),
            1 + d.below(3),
            2 + d.below(3)
        ),
        _ => "kind = \"fat_tree\"\nk = 6\n".to_owned(),
    };
    let queue = d.one(&["", "", "queue = { name = \"red\" }\n", "queue = { name = \"sfq\" }\n"]);
    let (buffer, delay) = (d.one(&["5p", "12p", "60p", "30KB"]), d.one(&["0us", "1us", "7us"]));
    let (profile, cc) = (
        d.one(&["ns2", "rfc", "linux"]),
        d.one(&["newreno", "dctcp", "cubic", "trim", "bbr", "swift", "tcprand+cubic"]),
    );
    let mark = if buffer.ends_with('p') { "mark = \"4p\"\n" } else { "mark = \"6KB\"\n" };
    let mut text = format!(
        "[topology]\n{topology}rate = \"1Gbps\"\ndelay = \"{delay}\"\nbuffer = \"{buffer}\"\n{mark}{queue}[stack]\nprofile = \"{profile}\"\n[cc]\nname = \"{cc}\"\n"
    );
    let endless = d.below(3) == 0;
    match d.below(2) {
        _ if endless => text.push_str("[[workload]]\nkind = \"long\"\npattern = \"permutation\"\n"),
        0 => text.push_str("[[workload]]\nkind = \"long\"\npattern = \"permutation\"\nbytes = \"200KB\"\n"),
        _ => text.push_str("[[workload]]\nkind = \"poisson\"\nload = 0.6\nsize = \"20KB\"\nstop = \"4ms\"\n"),
    }
    if d.below(2) == 0 {
        text.push_str(
            "[[workload]]\nkind = \"cbr\"\nfrom = \"h0\"\nto = \"h3\"\nrate = \"300Mbps\"\npacket = \"700B\"\n",
        );
    }
    let end = if endless { d.one(&["2ms", "6ms"]) } else { d.one(&["6ms", "700ms"]) };
    text.push_str(&format!("[run]\nduration = \"{end}\"\nseed = {number}\n"));
    text.push_str("[measure]\nqueues = [\"*\"]\nwindows = [\"*\"]\ndrops = true\nthroughput = \"1ms\"\n");
    if d.below(3) == 0 {
        text.push_str("queue_interval = \"100us\"\n");
    }
    if d.below(3) == 0 {
        text.push_str("packets = [\"*\"]\n");
    }
    text
}

fn plan(text: &str) -> Spec {
    Scenario::from_text(text, "parallel").and_then(|s| s.plan(1)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn on(spec: &Spec, threads: usize) -> Results {
    fanin_sim::run_on(spec, threads, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn bytes(results: &Results) -> String {
    format!("{results:?}")
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let (mut cut, mut stopped, mut lost) = (0, 0, 0);
    for number in 0..24 {
        let text = random(number);
        let mut spec = plan(&text);
        // Hosts with a clock and a stop at the last delivery are the harder cases.
        spec.stop_when_done = number % 2 == 0;
        let alone = on(&spec, 1);
        cut += u32::from(fanin_sim::why_serial(&spec, 2).is_none());
        stopped += u32::from(alone.end_ps < spec.end.ps());
        lost += alone.ports.iter().map(|p| p.drops).sum::<u64>();
        let expected = bytes(&alone);
        for threads in [2, [3, 4, 9][number as usize % 3]] {
            let results = on(&spec, threads);
            if bytes(&results) == expected {
                continue;
            }
            for (one, many) in alone.flows.iter().zip(&results.flows) {
                assert_eq!(format!("{one:?}"), format!("{many:?}"), "scenario {number} on {threads} threads\n{text}");
            }
            panic!("scenario {number} on {threads} threads: other than the flows\n{text}");
        }
    }
    assert!(cut >= 20 && stopped >= 3 && lost > 1000, "{cut} cut, {stopped} stopped early, {lost} packets lost");
}

/// No thread waits for ever when the caller interrupts.
#[test]
fn an_interrupted_run_ends_on_all_threads() {
    let spec = plan(&random(1).replace("[run]", "[run] # long\n"));
    let error = fanin_sim::run_on(&spec, 2, &mut |_| ControlFlow::Break(())).err();
    let serial = fanin_sim::run_on(&spec, 1, &mut |_| ControlFlow::Break(())).err();
    assert!(error.is_some() && serial.is_some());
}

#[test]
fn what_cannot_be_cut_says_why_and_runs_on_one_thread() {
    let closed = "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\n[[workload]]\nkind = \"incast\"\nbytes = \"20KB\"\n";
    let spec = plan(closed);
    assert!(fanin_sim::why_serial(&spec, 2).is_some());
    assert_eq!(bytes(&on(&spec, 4)), bytes(&on(&spec, 1)));
    let star =
        plan("[topology]\nkind = \"star\"\nsenders = 4\n[[workload]]\nkind = \"long\"\n[run]\nduration = \"1ms\"\n");
    assert_eq!(fanin_sim::why_serial(&star, 2), Some("there is one rack only"));
}
