//! The schema that editors use accepts what fanin accepts, and refuses what a schema can refuse.

use fanin_scenario::{Rack, Scenario, schema};
use serde_json::Value;

fn json(text: &str) -> Value {
    toml::from_str(text).unwrap()
}

#[test]
fn every_example_fits_its_schema() {
    let (scenario, rack) =
        (jsonschema::validator_for(&schema::scenario()).unwrap(), jsonschema::validator_for(&schema::rack()).unwrap());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let instance = json(&std::fs::read_to_string(&path).unwrap());
        let validator = if instance.get("rack").is_some() { &rack } else { &scenario };
        if let Err(error) = validator.validate(&instance) {
            panic!("{}: {error} at {}", path.display(), error.instance_path());
        }
    }
}

#[test]
fn schema_and_reader_agree_about_mistakes() {
    let validator = jsonschema::validator_for(&schema::scenario()).unwrap();
    let incast = "[[workload]]\nkind = \"incast\"\nbytes = \"64KB\"\n";
    for mistake in [
        "[topology]\nsender = 4",
        "[topology]\nkind = \"ring\"",
        "[topology]\nkind = \"dumbbell\"\nsenders = 4",
        "[topology]\nbuffer = 100",
        "[topology]\nrouting = \"ecmp\"",
        "[topology]\nsenders = 0",
        "[topology]\ndelay = \"-5us\"",
        "[stack]\nminrto = \"1ms\"",
        "[stack]\nmss = 0",
        "[cc]\ng = 0.1",
        "[cc]\nname = \"newreno\"\nno_such_parameter = 1",
        "[run]\nseeds = []",
        "[measure]\ndrops = 1",
    ] {
        let text = format!("{mistake}\n{incast}");
        assert!(Scenario::from_text(&text, "x").and_then(|s| s.plan(1).and(s.seeds())).is_err(), "{mistake}");
        assert!(!validator.is_valid(&json(&text)), "{mistake}");
    }
    assert!(validator.is_valid(&json(incast)));
    let rack = jsonschema::validator_for(&schema::rack()).unwrap();
    for mistake in ["", "[rack]\nrate = \"1Gbps\"", "[rack]\nrate = 1\ndelay = \"1us\"\nbuffer = \"9p\""] {
        assert!(Rack::from_text(mistake, "x").is_err() && !rack.is_valid(&json(mistake)), "{mistake}");
    }
}
