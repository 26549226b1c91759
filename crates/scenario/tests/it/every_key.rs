//! Every declared key is read, and a different value makes a different plan: nothing that can be written is without effect.

use fanin_scenario::Scenario;
use fanin_scenario::topology::{self, TOPOLOGIES};
use fanin_scenario::workload::{self, WORKLOADS};
use fanin_sim::knobs::{KNOBS, PROFILES};
use fanin_units::{Domain, Setting};

/// Keys that need others beside them, and values that no rule finds.
const SPECIAL: &[(&str, &str, &str, &str)] = &[
    // where, key, what stands there already, value
    ("fat_tree", "k", "", "6"),
    ("*", "shared_alpha", "shared_buffer = \"1MB\"", "2.5"),
    ("graph", "hosts", "", "[\"a\", \"b\", \"c\", \"d\"]"),
    ("graph", "switches", "", "[\"x\", \"y\"]"),
    ("graph", "link", "", "[{ between = [\"a\", \"x\"] }, { between = [\"c\", \"x\"] }, { between = [\"b\", \"x\"] }]"),
    ("graph", "groups", "", "{ senders = [\"b\"] }"),
    ("incast", "total", "", "\"77KB\""),
    ("incast", "barrier", "rounds = 2", "false"),
    ("incast", "gap", "rounds = 2", "\"1ms\""),
    ("long", "stop_stagger", "stop = \"1s\"", "\"1ms\""),
    (
        "http_on_off",
        "train",
        "train = \"9KB\"
train_start = \"1s\"",
        "\"7KB\"",
    ),
    (
        "http_on_off",
        "total",
        "total = \"2GB\"
train_start = \"1s\"",
        "\"1GB\"",
    ),
    (
        "http_on_off",
        "train_start",
        "train = \"7KB\"
train_start = \"2s\"",
        "\"1s\"",
    ),
    ("web_search", "gap", "queries = 2", "\"1ms\""),
    ("web_search", "interval", "queries = 2", "\"3us\""),
    ("poisson", "load", "", "0.02"),
    ("poisson", "to_one", "", "true"),
    ("poisson", "short_below", "", "\"200KB\""),
    ("poisson", "long_from", "", "\"100KB\""),
    ("bursts", "gap", "", "\"5ms\""),
    ("bursts", "rate", "", "\"300Mbps\""),
    ("outcast", "middle", "", "0"),
    ("outcast", "from", "", "\"s2\""),
    ("*", "from", "", "[\"s1\", \"s2\"]"),
    ("poisson", "to", "", "[\"s1\", \"s2\", \"s3\"]"),
    ("*", "to", "", "\"s1\""),
    ("*", "pattern", "", "\"permutation\""),
    ("*", "deadline", "bytes = \"1MB\"", "\"5ms\""),
];

fn sample(place: &str, key: &Setting) -> (String, String) {
    if let Some((_, _, beside, value)) = SPECIAL.iter().find(|(p, k, ..)| (*p == place || *p == "*") && *k == key.name)
    {
        return ((*beside).to_owned(), (*value).to_owned());
    }
    let value = match key.domain {
        Domain::Count { min, .. } => (key.default_text().map_or(min, |d| d.parse().unwrap()) + 1).to_string(),
        Domain::Number { .. } => "0.5".to_owned(),
        Domain::Time | Domain::Times => "\"3us\"".to_owned(),
        Domain::Rate => "\"3Gbps\"".to_owned(),
        Domain::Size | Domain::Sizes => "\"7KB\"".to_owned(),
        Domain::Queue => "\"57p\"".to_owned(),
        Domain::Flag => (key.default_text() == Some("false")).to_string(),
        Domain::Word(words) => format!("\"{}\"", words.iter().find(|w| Some(**w) != key.default_text()).unwrap()),
        Domain::Text | Domain::Texts => "\"other\"".to_owned(),
        Domain::Discipline => "{ name = \"sfq\" }".to_owned(),
        Domain::Cc => "{ name = \"reno\" }".to_owned(),
        Domain::Stack => "{ mss = 700 }".to_owned(),
        Domain::Hosts => "\"10g\"".to_owned(),
        other => panic!("{place}.{}: no sample for {other:?}", key.name),
    };
    (String::new(), value)
}

/// Sets `key` on top of `lines`, which may set it too.
fn with(lines: &str, key: &str, value: &str) -> String {
    let kept: Vec<&str> = lines.lines().filter(|l| l.split('=').next().map(str::trim) != Some(key)).collect();
    format!("{}\n{key} = {value}", kept.join("\n"))
}

fn hash(text: &str) -> String {
    Scenario::from_text(text, "every-key").unwrap().hash().unwrap_or_else(|e| panic!("{text}\n{e}"))
}

#[test]
fn every_key_of_every_topology_changes_the_plan() {
    for kind in TOPOLOGIES {
        let needed = match kind.name {
            "graph" => {
                "hosts = [\"a\", \"b\", \"c\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\", \"x\"] }, { between = [\"b\", \"x\"] }, { between = [\"c\", \"x\"], rate = \"2Gbps\" }]"
            }
            _ => "",
        };
        for key in topology::COMMON.iter().chain(kind.keys) {
            let (beside, value) = sample(kind.name, key);
            let base = format!("kind = \"{}\"\n{needed}\n{beside}", kind.name);
            // Groups are for naming, a permutation for using every link.
            let pattern = if key.name == "groups" { "fixed" } else { "permutation" };
            let scenario =
                |lines: &str| format!("[topology]\n{lines}\n[[workload]]\nkind = \"long\"\npattern = \"{pattern}\"");
            let changed = match (kind.name, key.name) {
                // A fourth host needs its cable.
                ("graph", "hosts") => {
                    with(&base, "hosts", &value).replace("link = [", "link = [{ between = [\"d\", \"x\"] }, ")
                }
                _ => with(&base, key.name, &value),
            };
            assert_ne!(hash(&scenario(&base)), hash(&scenario(&changed)), "{}: {} = {value}", kind.name, key.name);
        }
    }
}

#[test]
fn every_key_of_every_workload_changes_the_plan() {
    for kind in WORKLOADS.iter().filter(|w| w.name != "replay") {
        let needed = match kind.name {
            "incast" => "bytes = \"64KB\"",
            "poisson" => "load = 0.01\nsize = \"100KB\"\nfrom = [\"s1\", \"s2\", \"s3\", \"s4\"]",
            "outcast" => "far = 0",
            "cbr" => "rate = \"1Mbps\"",
            _ => "",
        };
        for key in kind.all_keys().into_iter().flatten().filter(|k| k.name != "kind") {
            let (beside, value) = sample(kind.name, key);
            let beside = if key.name == "deadline" && kind.name != "long" { String::new() } else { beside };
            // Those without an end have no deadline; a star has no middle and no far hosts; they are tried below.
            let endless = matches!(kind.name, "convergence" | "outcast");
            if (endless && key.name == "deadline")
                || (kind.name == "outcast" && matches!(key.name, "far" | "middle" | "class"))
            {
                continue;
            }
            let mut base = format!("kind = \"{}\"\n{needed}\n{beside}", kind.name);
            if kind.name == "incast" && key.name == "total" {
                base = base.replace("bytes = \"64KB\"", "total = \"1MB\"");
            }
            if key.name == "lead" {
                base += "\nopen = \"before\"";
            }
            let changed = with(&base, key.name, &value);
            assert_ne!(hash(&file(&base)), hash(&file(&changed)), "{}: {} = {value}", kind.name, key.name);
        }
    }
}

fn file(workload: &str) -> String {
    format!("[run]\nduration = \"60s\"\n[[workload]]\n{workload}")
}

#[test]
fn near_middle_and_far_are_counted_in_links() {
    let plan = |lines: &str| {
        let text = format!("[topology]\nkind = \"fat_tree\"\n[[workload]]\nkind = \"outcast\"\n{lines}");
        Scenario::from_text(&text, "outcast").unwrap().plan(1).unwrap()
    };
    let spec = plan("near = 1\nmiddle = 2\nfar = 13");
    let hosts = |class: &str| -> Vec<&str> {
        let class = spec.trace.classes.iter().position(|c| c == class).unwrap();
        let flows = spec.flows.iter().filter(|f| usize::from(f.class) == class);
        flows.map(|f| spec.nodes[f.src.index()].name.as_str()).collect()
    };
    assert_eq!(hosts("near"), ["h1"]);
    assert_eq!(hosts("middle"), ["h2", "h3"]);
    // Twelve hosts in the other three pods, the thirteenth flow begins again.
    assert_eq!((hosts("far").len(), hosts("far")[0], hosts("far")[12]), (13, "h4", "h4"));
}

#[test]
fn every_knob_of_the_stack_can_be_turned() {
    for profile in PROFILES {
        let plan = |line: &str| {
            let text = format!("[stack]\nprofile = \"{}\"\n{line}\n[[workload]]\nkind = \"long\"", profile.name);
            Scenario::from_text(&text, "knobs").unwrap().plan(1).unwrap_or_else(|e| panic!("{e}")).transports[0]
                .stack
                .clone()
        };
        let base = plan("");
        assert_eq!(base, (profile.stack)());
        for knob in KNOBS {
            let now = (knob.get)(&base);
            let value = match knob.domain {
                Domain::Count { min, .. } => (min + 7).to_string(),
                Domain::Number { min, .. } => (min + 6.5).to_string(),
                // The ceiling stays above the others.
                Domain::Time if knob.name == "max_rto" => "\"90s\"".to_owned(),
                Domain::Time => "\"450ms\"".to_owned(),
                Domain::Size => "\"77B\"".to_owned(),
                Domain::Flag => (now == "false").to_string(),
                Domain::Word(words) => format!("\"{}\"", words.iter().find(|w| **w != now).unwrap()),
                other => unreachable!("no knob is {other:?}"),
            };
            let turned = plan(&format!("{} = {value}", knob.name));
            assert_ne!((knob.get)(&turned), now, "{} = {value}", knob.name);
            let mut back = turned.clone();
            (knob.set)(&mut back, &now).unwrap();
            assert_eq!(back, base, "{} turned something else", knob.name);
        }
    }
}

#[test]
fn every_workload_plans_on_every_topology() {
    for topology in TOPOLOGIES.iter().filter(|t| t.name != "graph") {
        for kind in WORKLOADS.iter().filter(|w| w.name != "replay") {
            let needed = match kind.name {
                "incast" => "bytes = \"64KB\"",
                "poisson" => "load = 0.01\nsize = \"100KB\"",
                "outcast" if topology.name == "star" => "far = 0",
                "cbr" => "rate = \"1Mbps\"",
                _ => "",
            };
            // Two receivers need a choice of one where a workload is about one.
            let one = !matches!(kind.name, "long" | "http_on_off" | "poisson" | "cbr" | "bursts");
            let to = if topology.name == "dumbbell" && one { "to = \"r1\"" } else { "" };
            let text = format!(
                "[run]\nduration = \"90s\"\n[topology]\nkind = \"{}\"\n[[workload]]\nkind = \"{}\"\n{needed}\n{to}",
                topology.name, kind.name
            );
            let far = text.contains("outcast") && topology.name == "dumbbell";
            let text = if far { text + "\nfar = 0" } else { text };
            let spec = Scenario::from_text(&text, "pair").unwrap().plan(1).unwrap_or_else(|e| panic!("{text}\n{e}"));
            assert!(!spec.messages.is_empty() || !spec.cbr.is_empty(), "{text}");
        }
    }
    assert!(workload::find("incast").is_some() && topology::find("star").is_some());
}
