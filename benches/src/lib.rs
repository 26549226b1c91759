//! Scenarios that several benches run.

use fanin_scenario::Scenario;
use fanin_sim::results::Results;
use fanin_sim::spec::Spec;
use std::ops::ControlFlow;

/// The plan of a scenario text under its first seed.
///
/// # Panics
/// When the text is not a scenario: a bench can only stop.
pub fn plan(text: &str) -> Spec {
    let planned = Scenario::from_text(text, "bench").and_then(|s| s.plan(1));
    planned.unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a plan to its end.
///
/// # Panics
/// As [`plan`].
pub fn run(spec: &Spec) -> Results {
    fanin_sim::run(spec, &mut |_| ControlFlow::Continue(())).unwrap_or_else(|e| panic!("{e}"))
}

/// 40 long flows into one 10 Gbps port: the aim is 10 M packet-hops per second and core with full TCP on.
pub fn star(cc: &str, duration: &str) -> String {
    format!(
        r#"
[topology]
kind = "star"
senders = 40
rate = "10Gbps"
delay = "25us"
buffer = "250p"
mark = "65p"
[stack]
profile = "ns2"
[cc]
name = "{cc}"
[[workload]]
kind = "long"
[run]
duration = "{duration}"
"#
    )
}

/// A k-ary fat-tree in which every host sends to one other.
pub fn fat_tree(k: u32, cc: &str, duration: &str) -> String {
    format!(
        r#"
[topology]
kind = "fat_tree"
k = {k}
rate = "10Gbps"
delay = "1us"
buffer = "250p"
mark = "65p"
[stack]
profile = "ns2"
[cc]
name = "{cc}"
[[workload]]
kind = "long"
pattern = "permutation"
[run]
duration = "{duration}"
"#
    )
}

/// The same fat-tree with datagrams only: what the engine does without TCP.
pub fn forwarding(k: u32, hosts: u32, duration: &str) -> String {
    let mut text = format!(
        r#"
[topology]
kind = "fat_tree"
k = {k}
rate = "10Gbps"
delay = "1us"
buffer = "250p"
[run]
duration = "{duration}"
"#
    );
    for h in 0..hosts {
        let to = (h * 7 + hosts / 2 + 1) % hosts;
        text.push_str(&format!(
            "[[workload]]\nkind = \"cbr\"\nfrom = \"h{h}\"\nto = \"h{to}\"\nrate = \"6Gbps\"\npacket = \"1500B\"\n"
        ));
    }
    text
}
