//! The shipped examples are right, and overrides reach them.

use fanin_scenario::{Override, Scenario, Warning, warnings};
use fanin_sim::spec::Release;
use fanin_units::Duration;
use std::ops::ControlFlow;
use std::path::PathBuf;

fn examples() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    found.sort();
    found
}

fn is_rack(path: &std::path::Path) -> bool {
    path.file_name().is_some_and(|n| n == "rack.toml")
}

#[test]
fn every_example_plans_for_each_of_its_seeds() {
    assert!(!examples().is_empty());
    for path in examples().into_iter().filter(|p| !is_rack(p)) {
        let scenario = Scenario::from_file(&path).unwrap();
        for seed in scenario.seeds().unwrap().into_iter().take(2) {
            let spec = scenario.plan(seed).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(spec.seed, seed);
            assert!(!spec.flows.is_empty() && !spec.messages.is_empty());
        }
        assert!(scenario.title().unwrap().is_some(), "{} has no title", path.display());
    }
}

#[test]
fn overrides_change_the_plan_as_if_they_stood_in_the_file() {
    let path = examples().into_iter().find(|p| p.ends_with("incast.toml")).unwrap();
    let set = |s: &str| Override::set(s).unwrap();
    let scenario = Scenario::from_file(path)
        .unwrap()
        .with(&[
            set("topology.senders=3"),
            Override::Cc("reno".to_owned()),
            Override::Seed(9),
            set("workload[0].bytes=1KB"),
            set("stack.mss=1000"),
            set("measure.windows=[\"incast\"]"),
        ])
        .unwrap();
    assert_eq!(scenario.seeds().unwrap(), [9]);
    let spec = scenario.plan(9).unwrap();
    assert_eq!(spec.flows.len(), 3);
    assert_eq!(spec.transports[0].cc.name(), "reno");
    assert_eq!(spec.transports[0].stack.mss, 1000);
    assert!(spec.messages.iter().all(|m| m.bytes == 1000));
    assert_eq!(spec.trace.windows.len(), 3);
}

#[test]
fn the_engine_accepts_every_example_and_carries_its_traffic() {
    for path in examples().into_iter().filter(|p| !is_rack(p)) {
        let mut spec = Scenario::from_file(&path).unwrap().plan(1).unwrap();
        // The beginning is enough: 20 ms after the first release.
        let first = spec.messages.iter().filter_map(|m| match m.release {
            Release::At(time) => Some(time),
            Release::After(..) | Release::NotBefore(..) => None,
        });
        spec.end = spec.end.min(first.min().unwrap() + Duration::ms(20));
        let results = fanin_sim::run(&spec, &mut |_| ControlFlow::Continue(())).unwrap_or_else(|e| panic!("{e}"));
        assert!(results.flows.iter().any(|f| f.bytes_delivered > 0), "{}", path.display());
        // TRIM's K by equation 22 leaves its senders of 1 Gbps four packets of queue: so the paper's own setting, and the note says so.
        let expected = |w: &Warning| matches!(w, Warning::Algorithm { caution, .. } if caution.kind == "delay-threshold-without-queue");
        let unexpected: Vec<Warning> = warnings(&spec).into_iter().filter(|w| !expected(w)).collect();
        assert_eq!(unexpected, [], "{}", path.display());
    }
}
