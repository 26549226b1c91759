//! Captures of simulated runs: tshark finds nothing wrong with them and counts what the engine counted.

use fanin_scenario::{Scenario, pcap};
use fanin_sim::packet::flags;
use fanin_sim::results::Results;
use fanin_sim::spec::{LinkId, NodeKind, Spec};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Seen {
    spec: Spec,
    results: Results,
    folder: PathBuf,
}

impl Seen {
    /// Runs `toml` with every packet recorded too, and captures at `places`.
    fn of(name: &str, toml: &str, places: &[&str]) -> Seen {
        let mut spec = Scenario::from_text(toml, name).unwrap().plan(1).unwrap();
        let folder = std::env::temp_dir().join(format!("fanin-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let places: Vec<String> = places.iter().map(|&p| p.to_owned()).collect();
        let all = places.is_empty();
        if !all {
            spec.trace.packets = (0..spec.links.len() as u32).map(LinkId).collect();
        }
        let (results, files) = pcap::run(&spec, &folder, &places, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(files.iter().all(|f| f.is_file()) && !files.is_empty());
        Seen { spec, results, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Numbers of the hosts with flows, by name.
    fn hosts(&self) -> BTreeMap<String, String> {
        let hosts = self.spec.nodes.iter().filter(|n| n.kind == NodeKind::Host).enumerate();
        hosts.map(|(i, n)| (n.name.clone(), format!("10.0.{}.{}", (i + 1) / 256, (i + 1) % 256))).collect()
    }

    /// Pure ACKs that say nothing new, per host that sent them: the same number and window as the last segment that way.
    fn duplicate_acks(&self) -> BTreeMap<String, u64> {
        let t = &self.results.traces.packets;
        let mut last = BTreeMap::new();
        let mut found = BTreeMap::new();
        for i in 0..t.time_ps.len() {
            let link = &self.spec.links[t.link[i] as usize];
            let from = &self.spec.nodes[link.from.index()];
            if t.event[i] != 0 || from.kind != NodeKind::Host || t.flags[i] & (flags::ACK | flags::SYN) != flags::ACK {
                continue;
            }
            let now = (t.seq[i], t.window[i]);
            if last.insert(t.flow[i], now) == Some(now) {
                *found.entry(from.name.clone()).or_default() += 1;
            }
        }
        found
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        // A test that fails leaves its captures for whoever looks into it.
        if !std::thread::panicking() {
            std::fs::remove_dir_all(&self.folder).unwrap();
        }
    }
}

/// Runs tshark on a file; `None` where there is none.
fn tshark(file: &Path, arguments: &[&str]) -> Option<String> {
    let Ok(out) = Command::new("tshark").arg("-r").arg(file).args(arguments).output() else {
        println!("skipped: tshark is not installed");
        return None;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8(out.stdout).unwrap())
}

/// Packets of a file that match.
fn count(file: &Path, filter: &str) -> Option<u64> {
    tshark(file, &["-Y", filter, "-T", "fields", "-e", "frame.number"]).map(|text| text.lines().count() as u64)
}

/// A packet, as tshark sees it.
struct Row(Vec<String>);

const FIELDS: [&str; 14] = [
    "ip.src",
    "tcp.len",
    "tcp.flags.syn",
    "tcp.flags.ece",
    "_ws.malformed",
    "ip.checksum.status",
    "_ws.expert.severity",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
    "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment",
];

impl Row {
    fn text(&self, field: &str) -> &str {
        &self.0[FIELDS.iter().position(|f| *f == field).unwrap()]
    }
    fn has(&self, field: &str) -> bool {
        !matches!(self.text(field), "" | "0" | "False")
    }
    fn repeats(&self) -> bool {
        let kinds = ["retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order"];
        !self.has("tcp.flags.syn") && kinds.iter().any(|k| self.has(&format!("tcp.analysis.{k}")))
    }
    /// Something that Wireshark shows in red.
    fn is_wrong(&self) -> bool {
        let errors =
            self.text("_ws.expert.severity").split(',').any(|s| s.parse::<u32>().is_ok_and(|s| s >= 0x80_0000));
        self.has("_ws.malformed") || self.text("ip.checksum.status") == "0" || errors
    }
}

/// All packets of a file.
fn packets(file: &Path) -> Option<Vec<Row>> {
    let mut arguments = vec!["-o", "ip.check_checksum:TRUE", "-T", "fields"];
    arguments.extend(FIELDS.iter().flat_map(|f| ["-e", f]));
    let text = tshark(file, &arguments)?;
    Some(text.lines().map(|line| Row(line.split('\t').map(str::to_owned).collect())).collect())
}

/// What must hold of every run, at every host.
fn agrees(seen: &Seen) -> Option<()> {
    let mut sums = BTreeMap::<&str, [u64; 3]>::new();
    for (flow, row) in seen.spec.flows.iter().zip(&seen.results.flows) {
        let sum = sums.entry(&seen.spec.nodes[flow.src.index()].name).or_default();
        for (sum, count) in sum.iter_mut().zip([row.segments, row.retransmissions, row.ece_acks]) {
            *sum += count;
        }
    }
    let duplicates = seen.duplicate_acks();
    for (host, ip) in seen.hosts() {
        let rows = packets(&seen.file(&format!("{host}.pcap")))?;
        assert!(!rows.iter().any(|r| r.is_wrong() || r.has("tcp.analysis.ack_lost_segment")), "{host}");
        let sent: Vec<&Row> = rows.iter().filter(|r| r.text("ip.src") == ip).collect();
        let count = |test: &dyn Fn(&Row) -> bool| sent.iter().filter(|r| test(r)).count() as u64;
        let received_echoes =
            rows.iter().filter(|r| r.text("ip.src") != ip && r.has("tcp.flags.ece") && !r.has("tcp.flags.syn"));
        assert_eq!(
            [count(&|r| r.has("tcp.len")), count(&Row::repeats), received_echoes.count() as u64],
            sums.get(host.as_str()).copied().unwrap_or_default(),
            "{host}: data segments, retransmissions, ECN echoes"
        );
        assert_eq!(count(&|r| r.has("tcp.analysis.lost_segment")), 0, "{host}: everything it sent was seen");
        let wanted = duplicates.get(&host).copied().unwrap_or_default();
        assert_eq!(count(&|r| r.has("tcp.analysis.duplicate_ack")), wanted, "{host}: duplicate ACKs");
    }
    Some(())
}

const LOSSES: &str = r#"
[topology]
senders = 6
rate = "1Gbps"
delay = "25us"
buffer = "20p"
[[workload]]
kind = "incast"
bytes = "200KB"
request = "400B"
rounds = 3
[run]
duration = "5s"
"#;

fn with(cc: &str, profile: &str, more: &str) -> String {
    format!("[cc]\nname = \"{cc}\"\n[stack]\nprofile = \"{profile}\"\n{more}\n{LOSSES}")
}

#[test]
fn a_linux_connection_with_losses_is_seen_as_the_engine_counted_it() {
    let seen = Seen::of("linux", &with("cubic", "linux", ""), &["client", "s*"]);
    assert!(seen.results.flows.iter().map(|f| f.retransmissions).sum::<u64>() > 10);
    if agrees(&seen).is_none() {
        return;
    }
    let client = seen.file("client.pcap");
    assert_eq!(count(&client, "tcp.flags.syn == 1 && tcp.flags.ack == 0"), Some(6));
    let opening =
        "tcp.flags.syn == 1 && tcp.options.mss_val == 1460 && tcp.options.wscale.shift == 7 && tcp.options.sack_perm";
    assert_eq!(count(&client, opening), Some(12));
    assert!(count(&client, "tcp.options.sack_le").unwrap() > 10);
    assert_eq!(count(&client, "tcp.len > 0 && !tcp.options.timestamp.tsval"), Some(0));
    // What the port dropped left gaps behind it, and none before it.
    assert!(count(&seen.file("switch-client.pcap"), "tcp.analysis.lost_segment").unwrap() > 0);
}

#[test]
fn a_connection_without_handshake_is_one_whose_beginning_was_not_captured() {
    let seen = Seen::of("ns2", &with("newreno", "ns2", "handshake = false"), &["client", "s*"]);
    assert!(seen.results.flows.iter().map(|f| f.retransmissions).sum::<u64>() > 10);
    if agrees(&seen).is_some() {
        assert_eq!(count(&seen.file("client.pcap"), "tcp.flags.syn == 1 || tcp.options.sack_le"), Some(0));
    }
}

#[test]
fn marks_and_echoes_are_in_the_headers() {
    let marks = with("dctcp", "linux", "").replace("buffer = \"20p\"", "buffer = \"100p\"\nmark = \"10p\"");
    let seen = Seen::of("dctcp", &marks, &["client", "s*"]);
    if agrees(&seen).is_none() {
        return;
    }
    let marked: u64 = seen.results.ports.iter().map(|p| p.marks).sum();
    assert!(marked > 10);
    let client = seen.file("client.pcap");
    assert_eq!(count(&client, "ip.dsfield.ecn == 3"), Some(marked));
    assert_eq!(count(&client, "tcp.flags.syn == 1 && tcp.flags.ece == 1"), Some(12));
    let reductions: u64 = seen.results.flows.iter().map(|f| f.ecn_reductions).sum();
    assert!(count(&client, "tcp.flags.cwr == 1 && tcp.flags.syn == 0").unwrap() <= reductions);
}

#[test]
fn a_spurious_retransmission_is_answered_with_the_block_that_came_twice() {
    // The timer is shorter than the round trip: everything is sent twice.
    let stack = "min_rto = \"1ms\"\ninitial_rto = \"1ms\"\nhandshake = false\ntimer_wheel = false";
    let text = with("cubic", "linux", stack).replace("25us", "5ms").replace("20p", "1000p");
    let seen = Seen::of("spurious", &text, &["client", "s*"]);
    if agrees(&seen).is_none() {
        return;
    }
    let client = seen.file("client.pcap");
    let t = &seen.results.traces.packets;
    let from_client = |i: usize| seen.spec.links[t.link[i] as usize].from == seen.spec.flows[0].src;
    let is_flagged = |&i: &usize| t.event[i] == 0 && t.flags[i] & flags::DSACK != 0 && from_client(i);
    let flagged = (0..t.flags.len()).filter(is_flagged).count() as u64;
    assert!(flagged > 10);
    let named = format!("tcp.options.sack.dsack_le && ip.src == {}", seen.hosts()["client"]);
    assert_eq!(count(&client, &named), Some(flagged), "tshark names the block that came twice");
}

#[test]
fn windows_that_the_receiver_controls_are_to_be_read() {
    let seen = Seen::of("iatcp", &with("iatcp", "ns2", ""), &["client", "s*"]);
    if agrees(&seen).is_some() {
        assert_eq!(count(&seen.file("client.pcap"), "tcp.analysis.zero_window"), Some(0));
    }
}

#[test]
fn datagrams_are_there_too() {
    let text =
        "[topology]\nsenders = 2\n[[workload]]\nkind = \"cbr\"\nrate = \"10Mbps\"\n[run]\nduration = \"100ms\"\n";
    let seen = Seen::of("cbr", text, &[]);
    let sent: u64 = seen.results.cbr.iter().map(|c| c.received).sum();
    assert!(sent > 10);
    let port = seen.file("switch-client.pcap");
    if let Some(found) = count(&port, "udp && !_ws.malformed && udp.checksum.status != 0") {
        assert!(found.abs_diff(sent) <= 1);
    }
}

#[test]
fn watching_changes_nothing_and_the_same_run_gives_the_same_bytes() {
    let text = with("trim", "ns2", "");
    let spec = Scenario::from_text(&text, "same").unwrap().plan(1).unwrap();
    let alone = fanin_sim::run(&spec, &mut |_| ControlFlow::Continue(())).unwrap();
    let (a, b) = (Seen::of("same-a", &text, &[]), Seen::of("same-b", &text, &[]));
    assert_eq!(format!("{alone:?}"), format!("{:?}", a.results));
    let mut names: Vec<_> = std::fs::read_dir(&a.folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    // Every host, and every port that sent something.
    assert_eq!(names.len(), 7 + 14);
    for name in names {
        assert_eq!(
            std::fs::read(a.folder.join(&name)).unwrap(),
            std::fs::read(b.folder.join(&name)).unwrap(),
            "{name:?}"
        );
    }
}

#[test]
fn a_place_that_does_not_exist_is_answered_with_the_nearest() {
    let spec = Scenario::from_text(&with("reno", "ns2", ""), "place").unwrap().plan(1).unwrap();
    let places = ["switch->clint".to_owned()];
    let error = pcap::run(&spec, Path::new("."), &places, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "command line `--pcap-at switch->clint`: no host, switch or port is named so; ports are named like `switch->client`; \
         did you mean `switch->client`?"
    );
}

#[test]
fn a_folder_that_cannot_be_written_ends_the_run_with_its_name() {
    let spec = Scenario::from_text(&with("reno", "ns2", ""), "place").unwrap().plan(1).unwrap();
    let error = pcap::run(&spec, Path::new("/nonexistent"), &[], &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(error.to_string().starts_with("/nonexistent/"), "{error}");
}
