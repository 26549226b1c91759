//! Messages of real services against what their application logged (`tests/data/services`).

use crate::common::csv;
use fanin_capture::{Analysis, Protocol, Workload};
use std::collections::BTreeMap;

const SECOND: f64 = 1e9;

fn service(name: &str) -> (Analysis, Workload) {
    let found = crate::common::run(&format!("../services/{name}.pcap.gz")).unwrap();
    let workload = found.workload(None).unwrap();
    (found, workload)
}

/// When the answers of each server were complete: in the capture, and as logged, those of the last moments left out.
fn ends(workload: &Workload, name: &str, until: f64) -> BTreeMap<String, (Vec<f64>, Vec<f64>)> {
    let mut all: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for connection in &workload.connections {
        let server = workload.servers[connection.server as usize].to_string();
        let mine = &mut all.entry(server).or_default().0;
        let answered = connection.messages.iter().filter(|m| m.response_bytes > 1_000);
        mine.extend(answered.filter_map(|m| Some((m.start_ns + m.took_ns?) as f64 / SECOND)).filter(|&at| at < until));
    }
    for row in csv(&format!("../services/{name}_responses.csv")) {
        let end: f64 = row["end_s"].parse().unwrap();
        if end < until {
            all.entry(row["server"].clone()).or_default().1.push(end);
        }
    }
    for (seen, logged) in all.values_mut() {
        seen.sort_by(f64::total_cmp);
        logged.sort_by(f64::total_cmp);
    }
    all
}

fn hold(name: &str, until: f64, late: f64) {
    let (_, workload) = service(name);
    let all = ends(&workload, name, until);
    let (seen, logged) = all.values().fold((0, 0), |(a, b), (seen, logged)| (a + seen.len(), b + logged.len()));
    assert!(seen.abs_diff(logged) * 100 <= logged, "{name}: {seen} answers, {logged} logged");
    for (server, (seen, logged)) in &all {
        // The application's log is later than the last byte by what it took to read it.
        let mut later: Vec<f64> = seen.iter().zip(logged).map(|(seen, logged)| logged - seen).collect();
        later.sort_by(f64::total_cmp);
        let half = later[later.len() / 2];
        assert!((-3e-3..late).contains(&half), "{name} {server}: {half} s");
    }
}

#[test]
fn calls_of_grpc_on_one_channel_are_the_application_s() {
    let (found, _) = service("grpc");
    assert!(found.connections.iter().all(|c| c.messages.protocol == Some(Protocol::Http2) && c.messages.unread == 0));
    assert!(!found.warnings.iter().any(|w| w.kind() == "messages-unread"));
    hold("grpc", 0.9, 10e-3);
}

#[test]
fn sets_of_memcached_are_told_apart_though_their_answers_are_in_one_packet() {
    let (found, workload) = service("mc");
    assert!(found.connections.iter().all(|c| c.messages.protocol == Some(Protocol::Memcached)));
    for connection in &workload.connections {
        let sets = connection.messages.iter().filter(|m| (1_019..=1_020).contains(&m.request_bytes));
        assert_eq!(sets.clone().count(), 20);
        assert_eq!(sets.map(|m| m.response_bytes).sum::<u64>(), 20 * 8);
    }
    hold("mc", 0.85, 2e-3);
}
