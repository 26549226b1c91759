//! A knob that changes nothing is a bug: each one, turned, must change the results of some run. And every algorithm must run on every
//! topology.

use fanin_cc::algorithms::ALGORITHMS;
use fanin_cc::{Domain, Profile, Setting, Value};
use fanin_scenario::{Override, Scenario};
use fanin_sim::knobs::KNOBS;
use fanin_sim::queue::DISCIPLINES;
use std::ops::ControlFlow;

/// Runs that between them use everything an endpoint can do: fan-in over a shallow buffer, trains with pauses, random loss, small and
/// odd writes, requests, a slow path, marks.
const SCENES: [&str; 5] = [
    r#"
[topology]
kind = "star"
senders = 12
rate = "1Gbps"
delay = "20us"
buffer = "24p"
mark = "8p"
[[workload]]
kind = "incast"
bytes = "50KB"
rounds = 4
gap = "300ms"
request = "300B"
deadline = "2ms"
[run]
duration = "20s"
"#,
    r#"
[topology]
kind = "star"
senders = 3
rate = "1Gbps"
delay = "100us"
buffer = "60p"
mark = "15p"
[[workload]]
kind = "http_on_off"
start = "10ms"
responses = 60
size = { uniform = ["300B", "9KB"] }
gap = { exponential = "700us" }
train = "900KB"
train_start = "400ms"
[run]
duration = "20s"
"#,
    r#"
[topology]
kind = "star"
senders = 4
rate = "100Mbps"
delay = "2ms"
buffer = "40p"
mark = "10p"
queue = { name = "lossy", loss_probability = 0.01 }
[[workload]]
kind = "incast"
bytes = "201B"
rounds = 200
gap = "0s"
barrier = false
[[workload]]
kind = "long"
count = 2
[run]
duration = "3s"
"#,
    r#"
[topology]
kind = "dumbbell"
pairs = 6
rate = "1Gbps"
delay = "50us"
bottleneck_rate = "500Mbps"
buffer = "30p"
mark = "6p"
[[workload]]
kind = "long"
stagger = "11ms"
[run]
duration = "12s"
"#,
    r#"
[topology]
kind = "star"
senders = 2
rate = "10Gbps"
delay = "5us"
buffer = "400p"
mark = "60p"
[[workload]]
kind = "long"
bytes = "3MB"
start = "1ms"
[[workload]]
kind = "long"
bytes = "700B"
start = "400ms"
[run]
duration = "20s"
"#,
];

/// The outcome of a scene under these settings, or why it could not run.
fn outcome(scene: &str, settings: &[String]) -> Result<String, String> {
    let overrides: Result<Vec<Override>, _> = settings.iter().map(|s| Override::set(s)).collect();
    let scenario = Scenario::from_text(scene, "scene").map_err(|e| e.to_string())?;
    let scenario = scenario.with(&overrides.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    let spec = scenario.plan(1).map_err(|e| e.to_string())?;
    let r = fanin_sim::run(&spec, &mut |_| ControlFlow::Continue(())).map_err(|e| e.to_string())?;
    Ok(format!("{:?} {:?} {:?}", r.messages, r.flows, r.ports))
}

/// Whether some pair of values of `key` gives different results in some scene; `base` comes with both.
fn matters(key: &str, values: &[String], base: &[String]) -> bool {
    SCENES.iter().any(|scene| {
        let mut seen = values.iter().filter_map(|value| {
            let mut settings = base.to_vec();
            settings.push(format!("{key}={value}"));
            outcome(scene, &settings).ok()
        });
        let Some(first) = seen.next() else { return false };
        seen.any(|other| other != first)
    })
}

fn quoted(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| format!("\"{w}\"")).collect()
}

#[test]
fn every_knob_of_the_stack_changes_some_result() {
    // Knobs that need company: which algorithm and what else must be on.
    let company = |name: &str| -> Vec<Vec<&'static str>> {
        match name {
            "quantise_rtt" => vec![vec!["stack.clock_granularity=\"10ms\""]],
            "clock_granularity" => vec![vec!["stack.quantise_rtt=true"]],
            "ect_on_control" | "grow_in_cwr" => vec![vec!["cc.name=\"dctcp\""]],
            // SYNs must be lost.
            "ecn_fallback" => vec![vec![
                "stack.profile=\"linux\"",
                "cc.name=\"dctcp\"",
                "topology.buffer=\"2p\"",
                "topology.mark=\"1p\"",
            ]],
            "ack_on_cwr" => vec![vec!["stack.profile=\"linux\"", "cc.name=\"dctcp\""]],
            "receive_buffer" | "read_size" | "coalesce" | "comp_sack_nr" | "comp_sack_delay" | "comp_sack_slack" => {
                vec![vec!["stack.profile=\"linux\"", "cc.name=\"cubic\""]]
            }
            // Fewer quick ACKs where few jumbo frames fill half of the window.
            "delack_bytes" => vec![vec!["stack.profile=\"linux\"", "stack.mss=8948"]],
            "delack_timeout" | "initial_quickacks" | "route_quickack" => {
                vec![vec!["stack.delack_segments=2"], vec!["stack.delack_segments=2", "cc.name=\"dcvegas\""]]
            }
            "delack_below_rto" | "receiver_min_rto" => {
                vec![vec!["stack.profile=\"linux\"", "stack.min_rto=\"5ms\""], vec!["stack.profile=\"linux\""]]
            }
            "dupacks_deliver" | "grow_after_recovery" | "rto_restart" | "exit_to_flight" => vec![
                vec!["cc.name=\"newreno\""],
                vec!["cc.name=\"newreno\"", "stack.profile=\"linux\""],
                vec!["cc.name=\"newreno\"", "stack.profile=\"linux\"", "stack.min_rto=\"1ms\""],
            ],
            "repeat_recovery" => vec![vec!["cc.name=\"reno\""], vec!["cc.name=\"reno\"", "stack.min_rto=\"1ms\""]],
            "hz" => vec![vec!["stack.profile=\"linux\""]],
            "cc_profile" => vec![vec!["cc.name=\"dctcp\""]],
            "cc_rtt" => vec![vec!["cc.name=\"bbr\"", "stack.delack_segments=2"]],
            "unpaced_segments" | "pacing_credit" => vec![vec!["cc.name=\"bbr\"", "stack.profile=\"linux\""]],
            "initial_rto" => vec![vec!["stack.handshake=true", "stack.initial_window=40"]],
            "recovery" => vec![vec!["cc.name=\"cubic\""]],
            // Only timeouts of timeouts reach the ceiling.
            "max_rto" => vec![vec![
                "stack.min_rto=\"1ms\"",
                "stack.initial_rto=\"1ms\"",
                "topology.buffer=\"2p\"",
                "topology.mark=\"1p\"",
            ]],
            "limited_transmit" | "dup_thresh" => vec![vec![], vec!["stack.min_rto=\"1ms\""]],
            "tsq_limit" | "send_jitter" | "clock_error_ppm" => vec![vec![]],
            "tso_whole" => vec![vec!["stack.tso=true"]],
            "bucket_latency" => vec![vec!["stack.tso=true", "stack.tso_whole=\"3200B\""]],
            _ => vec![vec![], vec!["stack.profile=\"rfc\""], vec!["stack.profile=\"linux\""]],
        }
    };
    let mut idle = Vec::new();
    for knob in KNOBS {
        let values: Vec<String> = match knob.domain {
            Domain::Flag => vec!["false".into(), "true".into()],
            Domain::Word(words) => quoted(words),
            Domain::Time => quoted(&["0s", "1us", "300us", "5ms", "50ms", "2s"]),
            Domain::Size => quoted(&["0B", "20B", "60B", "3KB", "20KB"]),
            Domain::Count { min, .. } => [min, 1, 2, 3, 5, 700].iter().map(u64::to_string).collect(),
            Domain::Number { .. } => ["1", "3", "12"].iter().map(|s| (*s).to_owned()).collect(),
            other => unreachable!("no knob is {other:?}"),
        };
        let key = format!("stack.{}", knob.name);
        let found = company(knob.name).iter().any(|with| {
            let base: Vec<String> = with.iter().map(|s| (*s).to_owned()).collect();
            matters(&key, &values, &base)
        });
        if !found {
            idle.push(knob.name);
        }
    }
    assert!(idle.is_empty(), "turned, and nothing changed: {idle:?}");
}

/// A profile is its knobs and nothing else: with all knobs of another it is the other, for every algorithm.
#[test]
fn a_profile_with_the_knobs_of_another_is_the_other() {
    for algorithm in ALGORITHMS.iter() {
        let cc = if algorithm.stands_alone() { algorithm.name.to_owned() } else { format!("{}+cubic", algorithm.name) };
        for (profile, other) in [("linux", "rfc"), ("rfc", "ns2"), ("ns2", "linux")] {
            let settings = [format!("stack.profile=\"{profile}\""), format!("cc.name=\"{cc}\"")];
            let overrides: Vec<Override> = settings.iter().map(|s| Override::set(s).unwrap()).collect();
            let scenario = Scenario::from_text(SCENES[0], "scene").unwrap().with(&overrides).unwrap();
            let spec = scenario.plan(1).unwrap();
            let mut same = spec.clone();
            for transport in &mut same.transports {
                let mut stack = (fanin_sim::knobs::profile(other).unwrap().stack)();
                for knob in KNOBS {
                    (knob.set)(&mut stack, &(knob.get)(&transport.stack)).unwrap();
                }
                transport.stack = stack;
            }
            let results = |spec| {
                let r = fanin_sim::run(spec, &mut |_| ControlFlow::Continue(())).unwrap();
                format!("{:?} {:?} {:?}", r.messages, r.flows, r.ports)
            };
            assert!(results(&spec) == results(&same), "{cc}: {profile} is not {other} with its knobs");
        }
    }
}

fn values_of(param: &Setting) -> Vec<String> {
    match param.domain {
        Domain::Number { min, max } => {
            let Value::Number(default) = param.default_under(Profile::Rfc) else { unreachable!("a number's default") };
            let finite = |x: f64| if x.is_finite() { x } else { default.max(1.0) * 8.0 };
            let (low, high) = (finite(min), finite(max));
            [default, low, high, (low + default) / 2.0, default * 2.0, default / 3.0]
                .iter()
                .filter(|x| (min..=max).contains(*x))
                .flat_map(|x| match param.unit {
                    "s" => vec![format!("\"{x}s\""), format!("\"{}s\"", x * 1e-4)],
                    "bytes" => vec![format!("\"{}B\"", x.min(1e3).floor())],
                    "bit/s" => vec![format!("\"{}bps\"", x.floor())],
                    _ if x.fract() == 0.0 => vec![format!("{x:.1}")],
                    _ => vec![x.to_string()],
                })
                .collect()
        }
        Domain::Flag => vec!["false".into(), "true".into()],
        Domain::Word(words) => quoted(words),
        Domain::Text => quoted(&["", "2", "5, 9"]),
        other => unreachable!("no parameter is {other:?}"),
    }
}

/// What must be on for a parameter to have a say.
fn companions(name: &str) -> Vec<&'static str> {
    match name {
        // Only packets that may be trimmed leave headers.
        "trim_size" | "trim_headers" => vec!["cc.name=\"ndp\""],
        "trim_k_fixed" => vec!["cc.trim_k=\"fixed\""],
        // A target below the empty path: the window falls as far as it may.
        "swift_min_cwnd" => vec!["cc.swift_base_target=\"1us\""],
        "rand_no_rise" => vec!["cc.rand_v_omega=0.0", "cc.rand_mu=0.0"],
        // 10 s is longer than the scenes: PROBE_RTT must come within them.
        "bbr_probe_rtt_time" => vec!["cc.bbr_min_rtt_window=\"50ms\""],
        "red_min" | "red_max" | "red_max_p" => vec!["topology.queue.red_weight=0.5"],
        _ => Vec::new(),
    }
}

#[test]
fn every_parameter_of_every_algorithm_changes_some_result() {
    let mut idle = Vec::new();
    for algorithm in ALGORITHMS.iter() {
        let spec =
            if algorithm.stands_alone() { algorithm.name.to_owned() } else { format!("{}+cubic", algorithm.name) };
        for param in algorithm.params {
            let values = values_of(param);
            let found = ["ns2", "linux"].iter().any(|profile| {
                let mut base = vec![format!("stack.profile=\"{profile}\""), format!("cc.name=\"{spec}\"")];
                base.extend(companions(param.name).iter().map(|s| (*s).to_owned()));
                matters(&format!("cc.{}", param.name), &values, &base)
            });
            if !found {
                idle.push(format!("{spec}: {}", param.name));
            }
        }
    }
    assert!(idle.is_empty(), "turned, and nothing changed: {idle:?}");
}

#[test]
fn every_parameter_of_every_queue_changes_some_result() {
    let mut idle = Vec::new();
    for discipline in DISCIPLINES {
        for param in discipline.params {
            let mut base = vec![format!("topology.queue.name=\"{}\"", discipline.name), "cc.name=\"dctcp\"".to_owned()];
            base.extend(companions(param.name).iter().map(|s| (*s).to_owned()));
            if !matters(&format!("topology.queue.{}", param.name), &values_of(param), &base) {
                idle.push(format!("{}: {}", discipline.name, param.name));
            }
        }
    }
    assert!(idle.is_empty(), "turned, and nothing changed: {idle:?}");
}

#[test]
fn every_algorithm_runs_on_every_topology() {
    let topologies = [
        "kind = \"star\"\nsenders = 5",
        "kind = \"dumbbell\"\npairs = 5",
        "kind = \"multihop\"",
        "kind = \"dctcp_multihop\"",
        "kind = \"testbed\"",
        "kind = \"leaf_spine\"",
        "kind = \"fat_tree\"\nk = 4",
    ];
    for topology in topologies {
        for algorithm in ALGORITHMS.iter() {
            let cc =
                if algorithm.stands_alone() { algorithm.name.to_owned() } else { format!("{}+cubic", algorithm.name) };
            for profile in ["ns2", "rfc", "linux"] {
                let text = format!(
                    "[topology]\n{topology}\n[stack]\nprofile = \"{profile}\"\n[cc]\nname = \"{cc}\"\n\
                     [[workload]]\nkind = \"long\"\nbytes = \"60KB\"\n[run]\nduration = \"30s\"\n"
                );
                let spec =
                    Scenario::from_text(&text, "t").and_then(|s| s.plan(3)).unwrap_or_else(|e| panic!("{text}\n{e}"));
                let r =
                    fanin_sim::run(&spec, &mut |_| ControlFlow::Continue(())).unwrap_or_else(|e| panic!("{text}\n{e}"));
                assert!(r.complete, "{cc} with {profile} did not finish on\n{topology}");
                let drops: u64 = r.ports.iter().map(|p| p.drops).sum();
                assert_eq!(
                    r.packets_created,
                    r.packets_arrived + drops + r.packets_in_flight,
                    "{cc} {profile} {topology}"
                );
            }
        }
    }
}
