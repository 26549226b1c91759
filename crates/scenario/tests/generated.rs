//! Files made from the tables are up to date. `FANIN_BLESS=1 cargo test -p fanin-scenario --test generated` makes them anew.
#![allow(clippy::unwrap_used)]

use fanin_scenario::{reference, schema};
use std::path::PathBuf;

fn check(path: &str, made: &str) {
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    if std::env::var_os("FANIN_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, made).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    let hint = "run `FANIN_BLESS=1 cargo test -p fanin-scenario --test generated` and commit what it wrote";
    assert!(there == made, "{path} is not what the tables say; {hint}");
}

fn pretty(schema: &serde_json::Value) -> String {
    serde_json::to_string_pretty(schema).unwrap() + "\n"
}

#[test]
fn the_schemas_are_up_to_date() {
    check("schema/scenario.schema.json", &pretty(&schema::scenario()));
    check("schema/rack.schema.json", &pretty(&schema::rack()));
}

#[test]
fn the_reference_page_is_up_to_date() {
    check("docs/reference/scenario.md", &reference::page());
}
