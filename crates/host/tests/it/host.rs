//! `fanin-host` in network namespaces that each test makes and removes: what it changes, and that its undo leaves nothing.

use crate::net::{Net, PROGRAM, same, sh};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PLAN: &str = r#"
format = 1
title = "a floor"
[servers]
hosts = ["10.9.0.1"]
peers = ["10.9.0.2", "10.9.0.7", "10.9.0.8", "fd00::9"]
route = { congctl = "reno", rto_min = "7ms", initcwnd = "3" }
sysctl = { "net.ipv4.tcp_slow_start_after_idle" = "0", "net.ipv4.tcp_rmem" = "4096 65536 131072" }
[aggregator]
hosts = ["10.9.0.99"]
peers = ["10.9.0.1"]
route = { quickack = "1" }
"#;

#[test]
fn a_plan_is_applied_shown_by_other_programs_and_taken_back_byte_for_byte() {
    let Some(net) = Net::new("plan") else { return };
    let before = net.all();
    std::fs::create_dir_all(&net.folder).unwrap();
    let plan = std::env::temp_dir().join(format!("{}.toml", net.near));
    std::fs::write(&plan, PLAN).unwrap();
    let told = net.done(&["apply", &plan.display().to_string()]);
    assert_eq!(told["changes"].as_array().unwrap().len(), 6);
    let near = &net.near;
    let routes = sh(&format!("ip -n {near} route; ip -n {near} -6 route")).unwrap();
    for line in [
        "10.9.0.2 dev d0 proto kernel scope link src 10.9.0.1 initcwnd 3 rto_min lock 7ms congctl reno",
        "10.9.0.7 dev d0 scope link mtu 1400 initcwnd 3 rto_min lock 7ms congctl reno",
        "fd00::9 dev d0 proto kernel metric 256 initcwnd 3 rto_min lock 7ms congctl reno",
        "nexthop via 10.9.0.3 dev d0 weight 2",
    ] {
        assert!(routes.contains(line), "{line}\n{routes}");
    }
    assert_eq!(sh(&format!("ip netns exec {near} sysctl -n net.ipv4.tcp_rmem")).unwrap(), "4096\t65536\t131072");
    // Again: what is kept is still what was there at first.
    net.done(&["apply", &plan.display().to_string()]);
    net.done(&["route", "10.9.0.7", "initcwnd", "9"]);
    assert_eq!(net.done(&["undo"])["undone"], 6);
    same(&net.all(), &before, "afterwards");
    assert_eq!(net.done(&["undo"])["undone"], 0);
    let _ = std::fs::remove_file(plan);
}

#[test]
fn what_is_given_twice_is_refused_before_anything_is_done() {
    for (words, twice) in [
        ("capture x.pcap --for 5s --for 60s", "--for"),
        ("status --state=/nowhere --state /nowhere/else", "--state"),
        ("load trim --hold --hold", "--hold"),
        ("load trim --param trim_alpha=1 --param trim_alpha=2", "trim_alpha"),
        ("route 10.9.0.2 initcwnd 3 rto_min 5ms initcwnd 10", "initcwnd"),
        ("trial 10.9.0.2 congctl reno congctl cubic", "congctl"),
        ("set net.ipv4.tcp_ecn=1 net.ipv4.tcp_ecn=0", "net.ipv4.tcp_ecn"),
    ] {
        let done = Command::new(PROGRAM)
            .env("FANIN_STATE", "/nowhere")
            .args(words.split(' '))
            .current_dir(std::env::temp_dir())
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(2), "{words}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(said, format!("fanin-host: `{twice}` is given twice; give it once\n"), "{words}");
    }
}

#[test]
fn a_new_connection_has_what_the_route_says() {
    let Some(net) = Net::new("conn") else { return };
    net.done(&["route", "10.9.0.2", "congctl", "reno", "rto_min", "7ms"]);
    let traffic = Traffic::start(&net);
    let shown = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        let shown = sh(&format!("ip netns exec {} ss -tin dst 10.9.0.2", net.near)).unwrap_or_default();
        shown.contains("rtt:").then_some(shown)
    });
    drop(traffic);
    let shown = shown.expect("a connection");
    assert!(shown.contains(" reno "), "{shown}");
    let rto: f64 = shown.split("rto:").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((7.0..200.0).contains(&rto), "a floor of 7 ms, where Linux's own is 200 ms: {shown}");
}

/// A connection over which bytes go, from `near` to `far`, while this lives.
struct Traffic([Child; 2]);

impl Traffic {
    fn start(net: &Net) -> Traffic {
        let again = std::env::current_exe().unwrap();
        let start = |namespace: &str, test: &str| {
            let words = ["netns", "exec", namespace, &again.display().to_string(), "--ignored", "--exact", test];
            Command::new("ip").args(words).spawn().unwrap()
        };
        Traffic([start(&net.far, "host::answers"), start(&net.near, "host::asks")])
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn a_trial_leaves_nothing_at_its_end_after_an_interrupt_and_after_a_kill() {
    let Some(net) = Net::new("trial") else { return };
    // What an earlier command changed stays through a trial.
    net.done(&["route", "10.9.0.2", "initcwnd", "5"]);
    let before = net.all();
    let told = net.done(&["trial", "10.9.0.2", "congctl", "reno", "--for", "0.2s"]);
    assert_eq!((&told["stopped"], &told["interrupted"]), (&serde_json::Value::Null, &serde_json::Value::Bool(false)));
    same(&net.all(), &before, "at its end");
    let folder = net.folder.display().to_string();
    for signal in ["INT", "TERM", "KILL"] {
        let words = [PROGRAM, "--state", &folder, "trial", "10.9.0.2", "congctl", "reno", "--for", "60s"];
        let mut child = net.within(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_tried = || sh(&format!("ip -n {} route", net.near)).unwrap().contains("congctl reno");
        assert!(comes(is_tried), "{signal}");
        refused(&net, &["trial", "10.9.0.9", "congctl", "reno"], "runs a trial here already");
        refused(&net, &["route", "10.9.0.2", "initcwnd", "9"], "tries a change of 10.9.0.2");
        sh(&format!("kill -{signal} {}", child.id())).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, (signal != "KILL").then_some(130), "{signal}");
        assert!(comes(|| !is_tried()), "after {signal}");
        same(&net.all(), &before, signal);
    }
    assert_eq!(net.done(&["undo"])["undone"], 1);
    refused(&net, &["trial", "10.9.0.2"], "a trial takes options of the route, or --twin NAME");
    refused(&net, &["trial", "10.9.0.2", "--twin", "trimm"], "nothing to load for `trimm`");
}

/// It becomes true within ten seconds.
fn comes(is_so: impl Fn() -> bool) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        is_so()
    })
}

#[test]
fn one_route_is_taken_back_and_the_other_stays() {
    let Some(net) = Net::new("one") else { return };
    net.done(&["route", "10.9.0.2", "initcwnd", "5"]);
    let with_one = net.all();
    net.done(&["route", "10.9.0.7", "initcwnd", "6"]);
    assert_eq!(net.done(&["undo", "10.9.0.7"])["undone"], 1);
    same(&net.all(), &with_one, "afterwards");
    refused(&net, &["undo", "10.9.0.7"], "no route to 10.9.0.7 is changed");
}

/// Source, destination and length of what is kept of each packet of a pcap file of Ethernet.
fn packets(file: &[u8]) -> Vec<([u8; 4], [u8; 4], usize)> {
    let mut rest = &file[24..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let frame = &rest[16..16 + length];
        found.push((frame[26..30].try_into().unwrap(), frame[30..34].try_into().unwrap(), length));
        rest = &rest[16 + length..];
    }
    found
}

#[test]
fn a_capture_has_headers_of_both_ways_no_payload_and_no_rights_while_it_runs() {
    let Some(net) = Net::new("capture") else { return };
    let traffic = Traffic::start(&net);
    let file = std::env::temp_dir().join(format!("{}.pcap", net.near));
    let name = file.display().to_string();
    let mut child = net
        .within(&[PROGRAM, "capture", &name, "--host", "10.9.0.2", "--for", "30s"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let is_nobody = || std::fs::read_to_string(&status).unwrap().contains("Uid:\t65534\t65534\t65534\t65534");
    assert!(comes(is_nobody));
    std::thread::sleep(Duration::from_secs(1));
    sh(&format!("kill -INT {}", child.id())).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let plain = std::fs::read(&file).unwrap();
    let all = packets(&plain);
    let (near, far) = ([10, 9, 0, 1], [10, 9, 0, 2]);
    for way in [(near, far), (far, near)] {
        assert!(all.iter().filter(|(from, to, _)| (*from, *to) == way).count() > 5, "{way:?} of {}", all.len());
    }
    assert!(all.iter().all(|(_, _, length)| (54..=134).contains(length)));
    assert!(!plain.windows(5).any(|bytes| bytes == b"again"), "payload");
    let told = net.done(&["capture", &name, "--device", "d0", "--for", "1s", "--key", "words"]);
    assert_eq!((&told["dropped"], &told["addresses"], &told["ended"]), (&0.into(), &2.into(), &"time".into()));
    let hidden = packets(&std::fs::read(&file).unwrap());
    assert!(
        hidden.len() > 10
            && hidden.iter().all(|(from, to, _)| ![near, far].contains(from) && ![near, far].contains(to))
    );
    let told = net.done(&["capture", &name, "--device", "d0", "--for", "1s", "--bytes", "1KB", "--last"]);
    assert!(told["bytes"].as_u64().unwrap() <= 1_000 && told["packets"].as_u64().unwrap() >= 5, "{told}");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), told["bytes"].as_u64().unwrap());
    let told = net.done(&["capture", &name, "--device", "d0", "--bytes", "2KB"]);
    assert_eq!(told["ended"], "size");
    drop(traffic);
    refused(&net, &["capture", &name, "--device", "eth9"], "there is no network device `eth9`");
    let _ = std::fs::remove_file(file);
}

#[test]
fn a_measured_host_is_a_file_of_hosts() {
    let Some(net) = Net::new("measure") else { return };
    let file = std::env::temp_dir().join(format!("{}-hosts.toml", net.near));
    let told = net.done(&["measure", &file.display().to_string(), "--device", "d0"]);
    let table: toml::Table = std::fs::read_to_string(&file).unwrap().parse().unwrap();
    for key in ["wakeup", "read_time", "copy_time", "processors", "gro", "tso"] {
        let told = told["hosts"][key]["value"].as_str().unwrap();
        let written = match &table[key] {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            other => other.as_bool().unwrap().to_string(),
        };
        assert_eq!(written, told, "{key}");
    }
    sh(&format!("ip netns exec {} sysctl -w net.ipv4.tcp_rmem='1 2 3'", net.near)).unwrap();
    refused(&net, &["measure"], "TCP over the loopback");
    sh(&format!("ip -n {} link set lo down", net.near)).unwrap();
    refused(&net, &["measure"], "TCP over the loopback");
    let _ = std::fs::remove_file(file);
}

#[test]
#[ignore = "the far end of a_new_connection_has_what_the_route_says"]
fn answers() {
    let listener = TcpListener::bind("10.9.0.2:7000").unwrap();
    for stream in listener.incoming() {
        std::io::copy(&mut stream.unwrap(), &mut std::io::sink()).unwrap();
    }
}

#[test]
#[ignore = "the near end of a_new_connection_has_what_the_route_says"]
fn asks() {
    use std::io::Write;
    let connected = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        TcpStream::connect("10.9.0.2:7000").ok()
    });
    let mut stream = connected.unwrap();
    loop {
        stream.write_all(b"again").unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// After each, the state is as before: `FANIN_HOST_CYCLES=1000` for many.
#[test]
fn killed_at_any_moment_it_is_taken_back_byte_for_byte() {
    let Some(net) = Net::new("kill") else { return };
    let cycles: u64 = std::env::var("FANIN_HOST_CYCLES").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let before = net.all();
    let plan = std::env::temp_dir().join(format!("{}.toml", net.near));
    std::fs::write(&plan, PLAN).unwrap();
    let folder = net.folder.display().to_string();
    let mut interrupted = 0;
    for cycle in 0..cycles {
        for words in [&["apply", &*plan.display().to_string()][..], &["undo"]] {
            let mut child = net
                .within(&[&[PROGRAM, "--state", &folder], words].concat())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            // From before it began to after it ended.
            std::thread::sleep(Duration::from_micros(700 * (cycle % 20)));
            child.kill().unwrap();
            interrupted += u64::from(!child.wait().unwrap().success());
        }
        net.done(&["undo"]);
        same(&net.all(), &before, &format!("cycle {cycle}"));
    }
    assert!(interrupted > 0);
    let _ = std::fs::remove_file(plan);
}

#[test]
fn what_went_with_its_device_is_named_and_keeps_nobody_from_an_undo() {
    let Some(net) = Net::new("gone") else { return };
    let near = &net.near;
    net.done(&["set", "net.ipv4.conf.d0.rp_filter=2", "net.ipv4.tcp_ecn=1"]);
    for host in ["10.9.0.2", "10.9.0.7", "10.9.0.8"] {
        net.done(&["route", host, "initcwnd", "9"]);
    }
    sh(&format!("ip -n {near} link del d0")).unwrap();
    let shown = net.done(&["status"]);
    assert!(shown["changes"][0]["now"].is_null(), "{shown}");
    let told = net.done(&["undo"]);
    assert_eq!(told["undone"], 5);
    assert_eq!(told["gone"], serde_json::json!(["10.9.0.8", "10.9.0.7", "net.ipv4.conf.d0.rp_filter"]));
    assert_eq!(sh(&format!("ip netns exec {near} sysctl -n net.ipv4.tcp_ecn")).unwrap(), "2");
    assert_eq!(net.done(&["undo"]), serde_json::json!({ "undone": 0 }));
    assert!(net.all().ends_with("[]"), "the state is not removed");
}

#[test]
fn a_state_for_which_there_is_no_room_changes_nothing_and_leaves_no_part_of_a_file() {
    let Some(net) = Net::new("full") else { return };
    let folder = net.folder.display().to_string();
    std::fs::create_dir_all(&net.folder).unwrap();
    if sh(&format!("mount -t tmpfs -o size=4k none {folder} && head -c 4096 /dev/zero > {folder}/fill")).is_err() {
        println!("skipped: nothing can be mounted here");
        return;
    }
    refused(&net, &["set", "net.ipv4.tcp_ecn=1"], ".new: No space left on device");
    assert!(net.all().ends_with(r#"["fill"]"#), "{}", net.all());
    assert_eq!(sh(&format!("ip netns exec {} sysctl -n net.ipv4.tcp_ecn", net.near)).unwrap(), "2");
    sh(&format!("umount {folder}")).unwrap();
}

#[test]
fn a_state_that_is_a_pipe_is_a_sentence_and_waits_for_nobody() {
    let Some(net) = Net::new("pipe") else { return };
    let folder = net.folder.display().to_string();
    let number = sh(&format!("ip netns exec {} stat -L -c %i /proc/self/ns/net", net.near)).unwrap();
    for name in [format!("net-{number}.json"), "lock".to_owned()] {
        sh(&format!("rm -rf {folder} && mkdir {folder} && mkfifo {folder}/{name}")).unwrap();
        for words in [&["status"][..], &["undo"], &["set", "net.ipv4.tcp_ecn=1"]] {
            let output =
                net.within(&[&["timeout", "20", PROGRAM, "--state", &folder], words].concat()).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
            assert!(told.ends_with(&format!("/{name}: it is no regular file; remove it\n")), "{told}");
        }
    }
    assert_eq!(sh(&format!("ip netns exec {} sysctl -n net.ipv4.tcp_ecn", net.near)).unwrap(), "2");
}

#[test]
fn what_is_wrong_is_a_sentence_and_changes_nothing() {
    let Some(net) = Net::new("wrong") else { return };
    let before = net.all();
    let plan = std::env::temp_dir().join(format!("{}.toml", net.near));
    let file = plan.display().to_string();
    for (text, said) in [
        ("format = 2", "format = 2: this fanin-host reads format 1"),
        ("format = 1\nsevers = 3", "line 2: unknown field `severs`"),
        ("format = 1\n[servers]\nhosts = [\"10.9.0.77\"]", "no address of this host is among its `hosts`"),
        (&PLAN.replace("7ms", "7"), "`rto_min 7`: it must be whole milliseconds"),
        (
            "format = 1\n[servers]\nhosts = [\"10.9.0.1\"]\nparams = { rate_pps = 5 }",
            "the plan has `params` and no `twin` whose they are",
        ),
        (
            "format = 1\n[servers]\nhosts = [\"10.9.0.1\"]\nsysctl = { \"kernel.core_pattern\" = \"x\" }",
            "it must be a sysctl of the network",
        ),
    ] {
        std::fs::write(&plan, text).unwrap();
        refused(&net, &["apply", &file], said);
    }
    refused(&net, &["apply", "/dev/zero"], "/dev/zero: it is larger than 16 MB, which no plan is");
    // A plan is another's text: it must not steer the terminal of who applies it.
    refused(&net, &["set", "net.\u{1b}]0;x\u{7}\n\u{202e}=1"], r"`net.\u{1b}]0;x\u{7}\n\u{202e}`: it must be a sysctl");
    let long = format!("net.ipv4.tcp_ecn={}", "x".repeat(100_000));
    let told = net.host(&["set", &long]).stderr;
    assert!(told.len() < 1_100 && told.ends_with(b" ...\n"), "{} bytes", told.len());
    refused(&net, &["route", "10.9.0.2", "congctl", "nobody"], "the kernel has no congestion control `nobody`");
    refused(&net, &["route", "host", "initcwnd", "3"], "`host` is no IP address");
    refused(&net, &["set", "net.ipv4.tcp_ecn"], "it must be NAME=VALUE");
    refused(&net, &["set", "net.ipv4.tcp_no_such=1"], "this host has no sysctl `net.ipv4.tcp_no_such`");
    refused(&net, &["set", "net.ipv4.tcp_ecn=1\n2"], r"net.ipv4.tcp_ecn = 1\n2: it must be one line of text");
    refused(&net, &["set", "net.ipv4.tcp_ecn=never"], "Invalid argument");
    refused(&net, &["sett"], "`sett`: no command");
    same(&net.all(), &before, "afterwards");
    let _ = std::fs::remove_file(plan);
}

#[test]
fn an_output_that_is_closed_or_full_is_no_panic() {
    let ended = |output: Stdio| Command::new(PROGRAM).arg("check").stdout(output).output().unwrap();
    // As behind `| head`.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let broken = ended(writer.into());
    assert_eq!((broken.status.code(), broken.stderr.as_slice()), (Some(0), &b""[..]));
    let full = ended(std::fs::File::create("/dev/full").unwrap().into());
    assert_eq!(full.status.code(), Some(2));
    assert_eq!(full.stderr, b"fanin-host: standard output: No space left on device (os error 28)\n");
}

fn refused(net: &Net, words: &[&str], said: &str) {
    let output = net.host(words);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
    assert!(told.contains(said), "{words:?}: {told}");
    assert_eq!(told.trim().lines().count(), 1, "{told}");
}
