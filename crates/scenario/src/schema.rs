//! JSON Schemas of scenario and rack files, made from the same tables that read them, so that editors complete and check.

use crate::{hosts, measure, rack, scenario, topology, workload};
use fanin_cc::algorithms::ALGORITHMS;
use fanin_sim::hosts::{HOST_KNOBS, HOST_PRESETS};
use fanin_sim::knobs::{KNOBS, PROFILES};
use fanin_sim::queue::DISCIPLINES;
use fanin_units::{Domain, Setting};
use serde_json::{Map, Value, json};

/// The schema of a scenario file.
pub fn scenario() -> Value {
    let mut root = object(scenario::ROOT);
    let properties = &mut root["properties"];
    properties["topology"] = kinds(topology::TOPOLOGIES.iter().map(|t| {
        let kind = Setting::of("kind", Domain::Text, t.title);
        (t.name, t.title, kind.default("star"), vec![topology::COMMON, t.keys])
    }));
    let workloads = workload::WORKLOADS.iter().map(|w| (w.name, w.title, workload::COMMON[0], w.all_keys()));
    properties["workload"] = json!({ "type": "array", "minItems": 1, "items": kinds(workloads) });
    properties["run"] = object(scenario::RUN);
    properties["measure"] = object(measure::KEYS);
    root["required"] = json!(["workload"]);
    document(root, "fanin scenario")
}

/// The schema of a rack file.
pub fn rack() -> Value {
    let mut root = object(rack::ROOT);
    let properties = &mut root["properties"];
    properties["rack"] = object(rack::RACK);
    properties["replay"] = object(rack::REPLAY);
    let parameters: Map<String, Value> = parameters(ALGORITHMS.iter().flat_map(|a| a.params.iter()));
    properties["cc"] = json!({ "type": "object", "properties": parameters, "additionalProperties": false });
    root["required"] = json!(["rack"]);
    document(root, "fanin rack")
}

fn document(mut root: Value, title: &str) -> Value {
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!(title);
    let shared = [
        ("cc", Domain::Cc),
        ("stack", Domain::Stack),
        ("hosts", Domain::Hosts),
        ("sizes", Domain::Sizes),
        ("times", Domain::Times),
        ("queue", Domain::Discipline),
    ];
    let definitions: Map<String, Value> = shared.iter().map(|(name, kind)| ((*name).to_owned(), whole(kind))).collect();
    root["$defs"] = Value::Object(definitions);
    root
}

/// One of several tables, told apart by `kind`.
fn kinds<'a>(kinds: impl Iterator<Item = (&'a str, &'a str, Setting, Vec<&'static [Setting]>)>) -> Value {
    let tables = kinds.map(|(name, title, kind, keys)| {
        let keys: Vec<Setting> = keys.into_iter().flatten().filter(|k| k.name != "kind").copied().collect();
        let mut table = object(&keys);
        table["properties"]["kind"] = json!({ "const": name, "description": kind.help });
        table["title"] = json!(name);
        table["description"] = json!(title);
        // The default kind may be left out.
        if kind.default_text() != Some(name)
            && let Value::Array(required) = &mut table["required"]
        {
            required.insert(0, json!("kind"));
        }
        table
    });
    json!({ "oneOf": tables.collect::<Vec<_>>() })
}

fn object(keys: &[Setting]) -> Value {
    let properties: Map<String, Value> = keys.iter().map(|k| (k.name.to_owned(), key(k))).collect();
    let required: Vec<&str> = keys.iter().filter(|k| k.required).map(|k| k.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn key(key: &Setting) -> Value {
    let mut schema = kind(&key.domain);
    schema["description"] = json!(key.help);
    if let Some(default) = key.default_text() {
        schema["default"] = serde_json::from_str(default).unwrap_or_else(|_| json!(default));
    }
    schema
}

/// A number and a unit. Which units there are is checked by fanin itself.
const QUANTITY: &str = "^\\s*\\+?[0-9.][0-9_.eE+-]*\\s*[A-Za-zµ]+\\s*$";

/// What a value looks like; the large ones are written once and referred to.
fn kind(kind: &Domain) -> Value {
    match kind {
        Domain::Cc => json!({ "$ref": "#/$defs/cc" }),
        Domain::Stack => json!({ "$ref": "#/$defs/stack" }),
        Domain::Hosts => json!({ "$ref": "#/$defs/hosts" }),
        Domain::Sizes => json!({ "$ref": "#/$defs/sizes" }),
        Domain::Times => json!({ "$ref": "#/$defs/times" }),
        Domain::Discipline => json!({ "$ref": "#/$defs/queue" }),
        other => whole(other),
    }
}

fn whole(kind: &Domain) -> Value {
    let quantity = |example: &str| json!({ "type": "string", "pattern": QUANTITY, "examples": [example] });
    let names = json!({ "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] });
    match *kind {
        Domain::Count { min, max: u64::MAX } => json!({ "type": "integer", "minimum": min }),
        Domain::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Domain::Number { min, max } if max.is_finite() => json!({ "type": "number", "minimum": min, "maximum": max }),
        Domain::Number { min, .. } => json!({ "type": "number", "minimum": min }),
        Domain::Time => quantity("50us"),
        Domain::Rate => quantity("10Gbps"),
        Domain::Size => quantity("256KB"),
        Domain::Queue => quantity("100p"),
        Domain::Flag => json!({ "type": "boolean" }),
        Domain::Word(words) => json!({ "enum": words }),
        Domain::Text => json!({ "type": "string" }),
        Domain::Texts => names,
        Domain::Seeds => json!({ "oneOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "array", "minItems": 1, "uniqueItems": true, "items": { "type": "integer", "minimum": 0 } },
        ] }),
        Domain::Sizes => drawn("8KB"),
        Domain::Times => drawn("1ms"),
        Domain::Tables(keys) => json!({ "type": "array", "items": object(keys) }),
        Domain::Groups => json!({ "type": "object", "additionalProperties": names }),
        Domain::Cc => named(ALGORITHMS.iter().flat_map(|a| a.params.iter()), json!({ "type": "string" })),
        Domain::Stack => {
            let mut properties: Map<String, Value> = KNOBS.iter().map(|k| (k.name.to_owned(), key(k))).collect();
            let profiles: Vec<&str> = PROFILES.iter().map(|p| p.name).collect();
            properties.insert("profile".to_owned(), json!({ "enum": profiles, "description": "named set of knobs" }));
            json!({ "type": "object", "properties": properties, "additionalProperties": false })
        }
        Domain::Hosts => {
            let mut properties: Map<String, Value> = HOST_KNOBS.iter().map(|k| (k.name.to_owned(), key(k))).collect();
            let presets: Vec<&str> = HOST_PRESETS.iter().map(|p| p.name).collect();
            let preset = json!({ "enum": presets, "description": "named set that the other keys change" });
            properties.insert(hosts::PRESET.to_owned(), preset);
            json!({ "oneOf": [
                { "enum": presets },
                { "type": "string", "pattern": "\\.toml$" },
                { "type": "object", "properties": properties, "additionalProperties": false },
            ] })
        }
        Domain::Discipline => {
            let names: Vec<&str> = DISCIPLINES.iter().map(|d| d.name).collect();
            named(DISCIPLINES.iter().flat_map(|d| d.params.iter()), json!({ "enum": names }))
        }
    }
}

fn drawn(example: &str) -> Value {
    let quantity = json!({ "type": "string", "pattern": QUANTITY });
    json!({ "oneOf": [
        { "type": "string", "examples": [example] },
        { "type": "object", "additionalProperties": false, "required": ["uniform"],
          "properties": { "uniform": { "type": "array", "items": quantity, "minItems": 2, "maxItems": 2 } } },
        { "type": "object", "additionalProperties": false, "required": ["exponential"],
          "properties": { "exponential": quantity } },
    ] })
}

/// A `name` with parameters beside it.
fn named<'a>(params: impl Iterator<Item = &'a Setting>, name: Value) -> Value {
    let mut properties = parameters(params);
    properties.insert("name".to_owned(), name);
    json!({ "type": "object", "properties": properties, "required": ["name"], "additionalProperties": false })
}

fn parameters<'a>(params: impl Iterator<Item = &'a Setting>) -> Map<String, Value> {
    params.map(|p| (p.name.to_owned(), parameter(p))).collect()
}

fn parameter(param: &Setting) -> Value {
    let mut schema = kind(&param.quantity().unwrap_or(param.domain));
    schema["description"] = json!(format!("{} ({})", param.help, param.source));
    schema
}
