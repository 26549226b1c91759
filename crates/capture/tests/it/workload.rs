//! From a capture to a workload file and back.

use crate::common::{csv, run};
use fanin_capture::{Analysis, Workload, WorkloadError};

fn http() -> Analysis {
    run("http_onoff_8to1.pcap.gz").unwrap()
}

fn temporary(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("fanin-{}-{name}", std::process::id()))
}

#[test]
fn the_workload_of_the_http_run_is_what_its_clients_asked_for() {
    let w = http().workload(None).unwrap();
    assert_eq!(w.aggregator.to_string(), "10.77.0.1");
    assert_eq!(w.servers.len(), 8);
    let truth = csv("http_onoff_8to1_responses.csv");
    for c in &w.connections {
        assert!(c.opened);
        let server = w.servers[c.server as usize].to_string();
        let asked: Vec<(u64, u64)> = truth
            .iter()
            .filter(|r| r["server_ip"] == server)
            .map(|r| (r["request_bytes"].parse().unwrap(), r["response_bytes"].parse().unwrap()))
            .collect();
        let found: Vec<(u64, u64)> = c.messages.iter().map(|m| (m.request_bytes, m.response_bytes)).collect();
        assert_eq!(found, asked);
        // Persistent connections with sessions every 0.55 s: absolute starts are in order and think times are short of a session.
        assert!(c.messages.is_sorted_by_key(|m| m.start_ns));
        assert!(c.messages.iter().all(|m| m.think_ns < 600_000_000));
    }
}

#[test]
fn seen_from_the_other_side_the_answers_are_the_requests() {
    let a = run("memcached_incast_8to1.pcap.gz").unwrap();
    let server = a.connections.get(0).unwrap().server_ip;
    let there = a.workload(Some(server)).unwrap();
    let here = a.workload(None).unwrap();
    let c = &there.connections[0].messages;
    let twin = &here.connections.iter().find(|c| here.servers[c.server as usize] == server).unwrap().messages;
    assert_eq!((c[0].request_bytes, c[0].response_bytes), (0, twin[0].request_bytes));
    for (pair, next) in twin.windows(2).zip(&c[1..]) {
        assert_eq!((next.request_bytes, next.response_bytes), (pair[0].response_bytes, pair[1].request_bytes));
        // This tap is in front of the queue: what it sees of a server's time is the server's.
        assert_eq!((next.service_ns, pair[0].service_ns), (pair[1].think_ns, next.think_ns));
    }
    assert_eq!(c.last().unwrap().response_bytes, 0);
}

#[test]
fn behind_the_queue_servers_take_as_long_as_in_front_of_it() {
    // The same rounds of 12 answers, 49 KB each, that queue for up to 5 ms; the servers answer at once.
    let services = |tap: &str| {
        let a = run(&format!("virtual_kernel/incast12_cubic_1g.{tap}.pcap.gz")).unwrap();
        let w = a.workload(None).unwrap();
        let waited: Vec<u64> = a.turns.iter().filter_map(|t| t.service_ns).collect();
        let served = w.connections.iter().flat_map(|c| &c.messages).map(|m| m.service_ns).collect();
        (a.behind_the_queue(w.aggregator), median(waited), median(served))
    };
    let (there, seen, served) = services("switch");
    assert_eq!((there, seen), (Some(false), served));
    let (here, waited, own) = services("client");
    assert_eq!(here, Some(true));
    assert!(waited > own + 50_000, "of {waited} ns, {own} ns are the server's");
    assert!(own.abs_diff(served) < 20_000, "{own} behind the queue, {served} in front of it");
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn one_direction_alone_becomes_messages_with_the_gaps_between() {
    let a = run("formats/one_direction.pcap").unwrap();
    let w = a.workload(None).unwrap();
    let bytes: u64 = w.connections.iter().flat_map(|c| &c.messages).map(|m| m.response_bytes).sum();
    assert_eq!(bytes, a.connections.iter().map(|c| c.to_client.unique_bytes).sum::<u64>());
    let waits = w.connections.iter().flat_map(|c| &c.messages[1..]).filter(|m| m.think_ns > 0).count();
    assert!(waits > 150);
}

#[test]
fn a_workload_survives_its_file() {
    let w = http().workload(None).unwrap();
    let path = temporary("workload.json");
    w.write(&path).unwrap();
    let again = Workload::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(again, w);
}

#[test]
fn a_wrong_aggregator_is_answered_with_the_hosts_there_are() {
    let error = http().workload(Some("192.0.2.1".parse().unwrap())).unwrap_err();
    insta::assert_snapshot!(error, @"no host 192.0.2.1 received TCP payload in this capture; choose one of 10.77.0.1, 10.77.0.18, 10.77.0.12, 10.77.0.16, 10.77.0.17");
    let silent = run("tcpdump_tcp_handshake_nsec.pcap").unwrap().workload(None).unwrap_err();
    assert!(matches!(silent, WorkloadError::NoPayload));
}

#[test]
fn a_workload_file_that_is_none_or_of_another_version_is_refused_in_one_sentence() {
    let path = temporary("bad.json");
    let mut messages = Vec::new();
    for text in [
        "",
        "{}",
        r#"{"format":"something","version":1}"#,
        r#"{"format":"fanin-workload","version":3}"#,
        r#"{"format":"fanin-workload","version":1,"source":"x","aggregator":"10.0.0.1","servers":[],"connections":[],"more":1}"#,
        r#"{"format":"fanin-workload","version":1,"source":"x","aggregator":"10.0.0.1","servers":[],"connections":[{"server":0,"connection":0,"start_ns":0,"opened":true,"messages":[]}]}"#,
        r#"{"format":"fanin-workload","version":1,"source":"x","aggregator":"10.0.0.1","servers":["10.0.0.2"],"connections":[{"server":0,"connection":0,"start_ns":0,"opened":true,"messages":[{"start_ns":0,"think_ns":0,"request_bytes":1,"service_ns":0,"response_bytes":5,"pieces":[{"pause_ns":0,"bytes":4}],"overlapped":false}]}]}"#,
    ] {
        std::fs::write(&path, text).unwrap();
        messages.push(Workload::read(&path).unwrap_err().to_string().replace(&path.display().to_string(), "FILE"));
    }
    std::fs::remove_file(&path).unwrap();
    messages.push(Workload::read(&path).unwrap_err().to_string().replace(&path.display().to_string(), "FILE"));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_wrong_value_of_a_workload_file_is_quoted_in_part_and_its_place_is_said() {
    let long = "x".repeat(3_000);
    let head = r#"{"format":"fanin-workload","version":2,"source":"x","aggregator":"10.0.0.1","servers":[],"#;
    for (text, begins, ends) in [
        (
            format!(r#"{head}"connections":"{long}"}}"#),
            "invalid type: string \"xxx",
            format!("xxx\", expected a sequence at line 1 column {}", head.len() + 3_016),
        ),
        (format!(r#"{head}"{long}":1}}"#), "unknown field `xxx", format!("at line 1 column {}", head.len() + 3_002)),
        (format!(r#"{{"format":"{long}","version":2}}"#), "its format is \"xxx", "xxx\"".to_owned()),
    ] {
        let said = Workload::parse(&text, std::path::Path::new("w.json")).unwrap_err().to_string();
        let reason = said.strip_prefix("w.json: not a workload file: ").unwrap();
        let reason = reason.strip_suffix("; make one with `fanin trains CAPTURE --workload FILE`").unwrap();
        assert!(reason.starts_with(begins) && reason.ends_with(&ends), "{reason}");
        assert_eq!(reason.len(), 200 + " ... ".len() + 400);
    }
}
