//! Every message a scenario can be answered with, in one snapshot: what was written, and what it says.

use fanin_scenario::{Override, Rack, Scenario};
use std::fmt::Write as _;

const INCAST: &str = "[[workload]]\nkind = \"incast\"\nbytes = \"64KB\"\n";

/// A scenario that is right but for `text`, which goes in front of a good workload.
fn with_incast(text: &str) -> String {
    format!("{text}\n{INCAST}")
}

fn message(text: &str, overrides: &[Override]) -> String {
    let result = Scenario::from_text(text, "x.toml").and_then(|s| s.with(overrides)).and_then(|s| {
        s.plan(1)?;
        s.seeds()
    });
    match result {
        Ok(_) => "(accepted)".to_owned(),
        Err(e) => format!("[{}] {e}", e.code),
    }
}

#[test]
fn a_text_or_a_key_without_end_is_refused_in_a_short_sentence() {
    let titled = |count: usize| message(&with_incast(&format!("title = \"{}\"", "ä".repeat(count))), &[]);
    assert_eq!(titled(4_096), "(accepted)");
    assert_eq!(titled(4_097), "[scenario::too-long] x.toml:1:9: this text has 4097 characters; 4096 are the most");
    let long = "k".repeat(1_000_000);
    assert_eq!(
        message(&with_incast(&format!("[topology]\n{long} = 4")), &[]),
        "[scenario::too-long] x.toml:2:1: this key has 1000000 characters; 4096 are the most"
    );
}

#[test]
fn every_mistake_is_answered_with_one_clear_sentence() {
    let front = [
        // Syntax and structure.
        "[topology",
        "[topology]\nkind = \"star\"\nkind = \"star\"",
        "topology = \"star\"",
        "[topolgy]\nkind = \"star\"",
        "when = 2020-01-01",
        // Keys.
        "[topology]\nsender = 4",
        "[topology]\ncolour = 4",
        "[topology]\nkind = \"ring\"",
        "[topology]\nkind = \"starr\"",
        "[topology]\nkind = 4",
        "[topology]\nkind = \"dumbbell\"\nsenders = 4",
        "[topology]\nshared_alpha = 2.0",
        // Kinds and units.
        "[topology]\nbuffer = 100",
        "[topology]\nrate = \"fast\"",
        "[topology]\nrate = \"10\"",
        "[topology]\nrate = \"10Gb\"",
        "[topology]\nrate = \"10GBps\"",
        "[topology]\nbuffer = \"64kb\"",
        "[topology]\nhost_buffer = \"64Kb\"",
        "[topology]\ndelay = \"5Gbps\"",
        "[topology]\nsenders = \"four\"",
        "[topology]\nsenders = 4.5",
        "[topology]\nrouting = \"ecmp\"",
        "[topology]\nrouting = \"spry\"",
        // Impossible values.
        "[topology]\nrate = \"0Gbps\"",
        "[topology]\ndelay = \"-5us\"",
        "[topology]\nsenders = 0",
        "[topology]\nbuffer = \"0p\"",
        "[topology]\nbuffer = \"20p\"\nmark = \"65p\"",
        "[topology]\nbuffer = \"30KB\"\nmark = \"40KB\"",
        "[topology]\nmark = \"65p\"\nreceiver_buffer = \"50p\"",
        "[topology]\nbuffer = \"100p\"\nshared_buffer = \"1MB\"",
        "[topology.queue]\nred_min = 5",
        "[topology.queue]\nname = \"rod\"",
        "[topology.queue]\nname = \"red\"\nred_mim = 5",
        "[topology.queue]\nname = \"red\"\nred_max_p = 5.0",
        "[topology.queue]\nname = \"red\"\nred_min = 50\nred_max = 20",
        // Stack.
        "[stack]\nprofile = \"linus\"",
        "[stack]\nminrto = \"1ms\"",
        "[stack]\nquick_acks = 4",
        "[stack]\nmin_rto = 0.2",
        "[stack]\nmin_rto = \"0.2\"",
        "[stack]\nmin_rto = \"90s\"",
        "[stack]\nmss = 0",
        "[stack]\nmss = 65496",
        "[stack]\nmss = 65495\nheader = \"52B\"",
        "[stack]\ninitial_window = 0",
        "[stack]\nnagle = \"minshal\"",
        "[stack]\nhandshake = \"yes\"",
        // Congestion control.
        "[cc]\nname = \"newrino\"",
        "[cc]\nname = \"quick\"",
        "[cc]\nnme = \"newreno\"",
        "[cc]\nname = \"newreno\"\ng = 0.0625",
        "[cc]\nname = \"newreno+reno\"",
        "cc = \"newreno\"",
        // Run and measure.
        "[run]\nduration = \"0s\"",
        "[run]\nduration = 10",
        "[run]\nseed = -1",
        "[run]\nseed = 99999999999999999999999",
        "[run]\nseed = -99999999999999999999999",
        "[run]\nseeds = 99999999999999999999999",
        "[run]\nseeds = [1, 0xfffffffffffffffff]",
        "[run]\nduration = 99999999999999999999999",
        "[cc]\nname = \"dctcp\"\ndctcp_g = 99999999999999999999999",
        "[stack]\ninitial_window = 99999999999999999999999",
        "[run]\nseeds = 0",
        "[run]\nseeds = []",
        "[run]\nseeds = [1, 1]",
        "[run]\nseed = 1\nseeds = 2",
        "[measure]\nqueues = [\"switch->clint\"]",
        "[measure]\nwindows = [\"incest\"]",
        "[measure]\nwindows = [\"flow 8\"]",
        "[measure]\nqueue_interval = \"1ms\"",
        "[measure]\ndrops = 1",
    ];
    let whole = [
        // Workloads.
        "",
        "workload = 3",
        "[workload]\nkind = \"incast\"",
        "[[workload]]\nbytes = \"64KB\"",
        "[[workload]]\nkind = \"incats\"",
        "[[workload]]\nkind = \"incast\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"0B\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\ntotal = \"1MB\"",
        "[[workload]]\nkind = \"incast\"\ntotal = \"7B\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nround = 3",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nfrom = \"s9\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nfrom = \"sender\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nto = \"senders\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nfrom = \"client\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nstart = \"20s\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\n[workload.cc]\nname = \"newrino\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\n[workload.stack]\nmss = 70000",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\ndeadline = \"websearch_pfabrik\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\ndeadline = \"websearch_pfabric\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\ndeadline = \"none.csv\"",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\ndeadline = { uniform = [\"2ms\"] }",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\ndeadline = { uniform = [\"2ms\", \"1ms\"] }",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\ndeadline = { exponental = \"1ms\" }",
        "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\ndeadline = 5",
        "[[workload]]\nkind = \"long\"\nstart = \"2s\"\nstop = \"1s\"",
        "[[workload]]\nkind = \"long\"\nstop = \"1s\"\nstagger = \"1s\"",
        "[[workload]]\nkind = \"long\"\nstagger = \"5s\"",
        "[[workload]]\nkind = \"long\"\nstop_stagger = \"1s\"",
        "[topology]\nkind = \"dumbbell\"\n[[workload]]\nkind = \"long\"\nfrom = \"s1\"",
        "[topology]\nkind = \"dumbbell\"\n[[workload]]\nkind = \"long\"\nto = \"senders\"",
        "[[workload]]\nkind = \"long\"\ndeadline = \"5ms\"",
        "[[workload]]\nkind = \"long\"\npattern = \"permutation\"\nto = \"client\"",
        "[[workload]]\nkind = \"http_on_off\"\ntrain = \"1MB\"",
        "[[workload]]\nkind = \"http_on_off\"\ntrain_start = \"1s\"",
        "[[workload]]\nkind = \"http_on_off\"\ntrain = \"1MB\"\ntotal = \"2MB\"\ntrain_start = \"1s\"",
        "[[workload]]\nkind = \"http_on_off\"\ntotal = \"1KB\"\ntrain_start = \"1s\"",
        "[[workload]]\nkind = \"http_on_off\"\ntrain = \"1MB\"\ntrain_start = \"20s\"",
        "[[workload]]\nkind = \"http_on_off\"\nsize = \"trim_http_train_gap\"",
        "[[workload]]\nkind = \"web_search\"\ntotal = \"7B\"",
        "[[workload]]\nkind = \"web_search\"\ninterval = \"1ms\"\ngap = \"1ms\"",
        "[[workload]]\nkind = \"mapreduce\"\nbackground = 8",
        "[[workload]]\nkind = \"poisson\"",
        "[[workload]]\nkind = \"poisson\"\nload = 1.2",
        "[[workload]]\nkind = \"poisson\"\nload = 0",
        "[[workload]]\nkind = \"poisson\"\nload = 0.5\nto = \"client\"",
        "[[workload]]\nkind = \"poisson\"\nload = 0.5\nlong_from = \"1KB\"",
        "[[workload]]\nkind = \"poisson\"\nload = 0.5\nclass = \"all\"\nlong_from = \"1MB\"",
        "[[workload]]\nkind = \"poisson\"\nload = 1.0\nsize = \"1B\"\n[run]\nduration = \"10min\"",
        "[[workload]]\nkind = \"convergence\"",
        "[[workload]]\nkind = \"outcast\"",
        "[[workload]]\nkind = \"outcast\"\nclass = \"x\"\nfar = 0",
        "[[workload]]\nkind = \"cbr\"",
        "[[workload]]\nkind = \"cbr\"\nrate = \"1Mbps\"\npacket = \"70KB\"",
        "[[workload]]\nkind = \"cbr\"\nrate = \"1Mbps\"\ndeadline = \"1ms\"",
        "[[workload]]\nkind = \"replay\"",
        "[[workload]]\nkind = \"replay\"\nfile = \"none.json\"",
        // Networks.
        "[topology]\nkind = \"fat_tree\"\nk = 5\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"leaf_spine\"\nleaves = 1\nhosts_per_leaf = 1\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"star\"\nrouting = \"spray\"\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\", \"x\"] }]\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\", \"x\"] }]\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\"] }]\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\", \"y\"] }]\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\", \"a\"] }]\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\", \"x\"] }, { between = [\"x\", \"a\"] }]\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\", \"x\"], rte = \"1Gbps\" }]\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"a\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\", \"x\"] }]\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"x\"]\nlink = [{ between = [\"a\", \"x\"] }, { between = [\"b\", \"x\"] }]\ngroups = { web = [\"x\"] }\n[[workload]]\nkind = \"long\"",
        "[topology]\nsenders = 1000\n[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nrounds = 1000000",
        "[topology]\nsenders = 10000\n[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nconnections = 10000",
        "[[workload]]\nkind = \"web_search\"\nqueries = 10000000",
        "[[workload]]\nkind = \"mapreduce\"\nrounds = 1000000\nfrom = \"s*\"\n[topology]\nsenders = 100",
        "[topology]\nsenders = 100\n[[workload]]\nkind = \"long\"\ncount = 1000000",
        "[[workload]]\nkind = \"http_on_off\"\nresponses = 10000000",
        "[topology]\nkind = \"leaf_spine\"\nleaves = 4000\nhosts_per_leaf = 4000\n[[workload]]\nkind = \"long\"",
        "[topology]\nkind = \"leaf_spine\"\nleaves = 4000\nspines = 4000\n[[workload]]\nkind = \"long\"",
        "[stack]\nheader = \"18000000TB\"\nframe_overhead = \"18000000TB\"\n[[workload]]\nkind = \"long\"",
        "[run]\nstop_when_done = true\n[[workload]]\nkind = \"long\"",
    ];
    let mut shown = String::new();
    for text in front.map(with_incast).iter().zip(front).chain(whole.map(str::to_owned).iter().zip(whole)) {
        let said = message(text.0, &[]);
        assert_ne!(said, "(accepted)", "{}", text.1);
        let _ = writeln!(shown, "{}\n  {said}\n", text.1);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_mistake_in_an_option_names_the_option() {
    let set = |argument: &str| {
        Override::set(argument).map_or_else(|e| format!("[{}] {e}", e.code), |o| message(&with_incast(""), &[o]))
    };
    let mut shown = String::new();
    for argument in [
        "topology.buffer",
        "=3",
        "topology.buffer=100",
        "topology.bufer=100p",
        "topology..buffer=100p",
        "topology.rate.x=1",
        "topolgy.buffer=100p",
        "workload[1].bytes=1KB",
        "workload.0.bytes=fast",
        "workload.bytes=0B",
        "cc.g=0.1",
        "stack.mss=big",
        "run.seed=99999999999999999999999",
        "topology.senders=99999999999999999999999",
    ] {
        let _ = writeln!(shown, "--set {argument}\n  {}\n", set(argument));
    }
    let _ = writeln!(shown, "--cc newrino\n  {}\n", message(&with_incast(""), &[Override::Cc("newrino".to_owned())]));
    let _ = writeln!(shown, "--seed 2^63\n  {}\n", message(&with_incast(""), &[Override::Seed(1 << 63)]));
    assert!(!shown.contains("(accepted)"), "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn a_file_that_cannot_be_a_scenario_says_why() {
    let folder = std::env::temp_dir().join(format!("fanin-scenario-errors-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("empty.toml"), "").unwrap();
    std::fs::write(folder.join("binary.toml"), [0xff, 0xfe, 0x00]).unwrap();
    let mut shown = String::new();
    std::fs::write(folder.join("capture.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]).unwrap();
    std::fs::write(folder.join("rack.toml"), "[rack]\nrate = \"1Gbps\"").unwrap();
    std::fs::write(folder.join("sweep.toml"), "scenario = \"incast.toml\"\n[axis]\n").unwrap();
    for name in ["", "missing.toml", "empty.toml", "binary.toml", "capture.pcap", "rack.toml", "sweep.toml"] {
        let path = if name.is_empty() { folder.clone() } else { folder.join(name) };
        let read = Scenario::from_file(&path).and_then(|s| s.title());
        let said = read.unwrap_err().to_string();
        let _ = writeln!(shown, "{}", said.replace(&folder.display().to_string(), "FOLDER"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
    insta::assert_snapshot!(shown);
}

#[test]
fn a_scenario_given_as_a_rack_is_named_and_a_key_of_no_table_is_told_the_tables() {
    let said = Rack::from_text("title = \"incast\"\n[topology]\nsenders = 2\n", "incast.toml").unwrap_err().to_string();
    assert_eq!(said, "incast.toml: it looks like a scenario, not a rack: `fanin run FILE` takes it");
    let rack =
        || Rack::from_text("[rack]\nrate = \"1Gbps\"\ndelay = \"25us\"\nbuffer = \"100p\"\n", "rack.toml").unwrap();
    let set = |key: &str| Override::Set { path: key.into(), value: "5".into() };
    let said = rack().with(&[set("buffer")]).unwrap_err().to_string();
    assert_eq!(
        said,
        "command line `--set buffer=5`: buffer: unknown key `buffer`; name its table too: the tables here are rack, hosts, stack, cc, replay"
    );
    // A rack with one key too many is still a rack.
    let said = Rack::from_text("topology = 1\n[rack]\nrate = \"1Gbps\"\n", "rack.toml").unwrap_err().to_string();
    assert!(said.contains("unknown key `topology`"), "{said}");
}

#[test]
fn more_workloads_than_a_scenario_may_have_are_refused_with_their_number() {
    let said = message(&INCAST.repeat(10_001), &[]);
    assert!(said.contains("workload: 10001 of them, and 10000 are the most"), "{said}");
}
