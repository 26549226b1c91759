//! `hosts`: a preset's name, a file or a table, in scenarios and racks.

use fanin_scenario::{Rack, Replay, Scenario};
use fanin_sim::hosts::{HOST_KNOBS, HOST_PRESETS, HostModel};
use fanin_units::{Domain, Duration};

const WORKLOAD: &str = "[stack]\nprofile = \"linux\"\n[[workload]]\nkind = \"incast\"\nbytes = \"64KB\"";

fn scenario(hosts: &str) -> Scenario {
    Scenario::from_text(&format!("{hosts}\n{WORKLOAD}"), "hosts.toml").unwrap()
}

fn model(hosts: &str) -> HostModel {
    scenario(hosts).plan(1).unwrap_or_else(|e| panic!("{e}")).hosts
}

fn error(hosts: &str) -> String {
    scenario(hosts).plan(1).unwrap_err().to_string()
}

#[test]
fn a_preset_is_named_alone_or_in_a_table_that_changes_it() {
    for preset in HOST_PRESETS {
        assert_eq!(model(&format!("hosts = \"{}\"", preset.name)), (preset.model)());
        assert_eq!(model(&format!("hosts = {{ preset = \"{}\" }}", preset.name)), (preset.model)());
    }
    let changed = model("[hosts]\npreset = \"25g\"\nwakeup = \"5us\"");
    assert_eq!(changed, HostModel { wakeup: Duration::us(5), ..HostModel::of_25g() });
    assert_eq!(model(""), HostModel::ideal());
}

#[test]
fn every_knob_of_hosts_can_be_turned_and_changes_the_hash() {
    let plain = scenario("").hash().unwrap();
    assert_eq!(scenario("hosts = \"ideal\"").hash().unwrap(), plain);
    for knob in HOST_KNOBS {
        let value = match knob.domain {
            Domain::Count { min, .. } => (min + 7).to_string(),
            Domain::Time => "\"450us\"".to_owned(),
            Domain::Flag => "true".to_owned(),
            other => unreachable!("no knob of hosts is {other:?}"),
        };
        let line = format!("hosts = {{ {} = {value} }}", knob.name);
        assert_ne!((knob.get)(&model(&line)), (knob.get)(&HostModel::ideal()), "{line}");
        assert_ne!(scenario(&line).hash().unwrap(), plain, "{line}");
    }
}

#[test]
fn a_file_of_measured_hosts_is_read_beside_the_scenario_and_named_in_its_errors() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let plan = |text: &str| {
        std::fs::write(folder.join("measured.toml"), text).unwrap();
        scenario("hosts = \"measured.toml\"").in_folder(folder).plan(1)
    };
    let measured = plan("preset = \"10g\"\nwakeup = \"7us\"").unwrap().hosts;
    assert_eq!(measured, HostModel { wakeup: Duration::us(7), ..HostModel::of_10g() });
    let wrong = plan("preset = \"10g\"\nwakup = \"7us\"").unwrap_err().to_string();
    assert!(wrong.contains("measured.toml:2:1: wakup: hosts have no `wakup`"), "{wrong}");
    assert!(wrong.contains("did you mean `wakeup`"), "{wrong}");
    let missing = scenario("hosts = \"other.toml\"").in_folder(folder).plan(1).unwrap_err().to_string();
    assert!(missing.contains("other.toml") && missing.contains("there is no such file"), "{missing}");
}

#[test]
fn what_hosts_cannot_be_is_said_with_its_line() {
    assert!(error("hosts = \"26g\"").contains("hosts.toml:1:9: hosts: no hosts are named `26g`"));
    assert!(error("[hosts]\npreset = 3").contains("hosts.toml:2:10: hosts.preset: it is a bare number"));
    assert!(error("[hosts]\nwakeup = \"5\"").contains("hosts.toml:2:10: hosts.wakeup: "));
    assert!(error("hosts = 3").contains("hosts.toml:1:9: hosts: it is a bare number"));
}

/// Cards cut what Linux hands down at once, and fill buffers of the receiver's own; the stacks of simulators know neither.
#[test]
fn hosts_of_a_preset_have_segmentation_offload_under_linux() {
    let stack = |text: &str| scenario(text).plan(1).unwrap().transports[0].stack.tso;
    assert!(
        stack("hosts = \"10g\"") && !stack("hosts = \"ideal\"") && !stack("hosts = { preset = \"10g\", tso = false }")
    );
    let ns2 = "hosts = \"10g\"\n[[workload]]\nkind = \"incast\"\nbytes = \"64KB\"";
    assert!(!Scenario::from_text(ns2, "ns2").unwrap().plan(1).unwrap().transports[0].stack.tso);
}

#[test]
fn racks_have_hosts_as_scenarios_do() {
    let rack = |hosts: &str| {
        Rack::from_text(&format!("{hosts}\n[rack]\nrate = \"10Gbps\"\ndelay = \"5us\"\nbuffer = \"100p\""), "rack.toml")
    };
    let plan = rack("hosts = \"25g\"").unwrap().plan(&Replay::default(), "cubic", 1, false).unwrap();
    assert_eq!(plan.spec.hosts, HostModel::of_25g());
    assert!(rack("hosts = \"25\"").unwrap_err().to_string().contains("rack.toml:1:9: hosts: no hosts are named `25`"));
}
