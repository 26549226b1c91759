//! JSON Schemas of scenario and rack files, made from the same tables that read them, so that editors complete and check.

use crate::keys::{Key, Kind};
use crate::{measure, rack, scenario, topology, transport, workload};
use fanin_cc::algorithms::ALGORITHMS;
use fanin_cc::{Domain, Param};
use fanin_sim::knobs::{KNOBS, PROFILES};
use fanin_sim::queue::DISCIPLINES;
use serde_json::{Map, Value, json};

/// The schema of a scenario file.
pub fn scenario() -> Value {
    let mut root = object(scenario::ROOT);
    let properties = &mut root["properties"];
    properties["topology"] = kinds(topology::TOPOLOGIES.iter().map(|t| {
        let kind = Key::of("kind", Kind::Text, t.title);
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
        ("cc", Kind::Cc),
        ("stack", Kind::Stack),
        ("sizes", Kind::Sizes),
        ("times", Kind::Times),
        ("queue", Kind::Discipline),
    ];
    let definitions: Map<String, Value> = shared.iter().map(|(name, kind)| ((*name).to_owned(), whole(kind))).collect();
    root["$defs"] = Value::Object(definitions);
    root
}

/// One of several tables, told apart by `kind`.
fn kinds<'a>(kinds: impl Iterator<Item = (&'a str, &'a str, Key, Vec<&'static [Key]>)>) -> Value {
    let tables = kinds.map(|(name, title, kind, keys)| {
        let keys: Vec<Key> = keys.into_iter().flatten().filter(|k| k.name != "kind").copied().collect();
        let mut table = object(&keys);
        table["properties"]["kind"] = json!({ "const": name, "description": kind.help });
        table["title"] = json!(name);
        table["description"] = json!(title);
        // The default kind may be left out.
        if kind.default != Some(name)
            && let Value::Array(required) = &mut table["required"]
        {
            required.insert(0, json!("kind"));
        }
        table
    });
    json!({ "oneOf": tables.collect::<Vec<_>>() })
}

fn object(keys: &[Key]) -> Value {
    let properties: Map<String, Value> = keys.iter().map(|k| (k.name.to_owned(), key(k))).collect();
    let required: Vec<&str> = keys.iter().filter(|k| k.required).map(|k| k.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn key(key: &Key) -> Value {
    let mut schema = kind(&key.kind);
    schema["description"] = json!(key.help);
    if let Some(default) = key.default {
        schema["default"] = serde_json::from_str(default).unwrap_or_else(|_| json!(default));
    }
    schema
}

/// A number and a unit. Which units there are is checked by fanin itself.
const QUANTITY: &str = "^\\s*\\+?[0-9.][0-9_.eE+-]*\\s*[A-Za-zµ]+\\s*$";

/// What a value looks like; the large ones are written once and referred to.
fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::Cc => json!({ "$ref": "#/$defs/cc" }),
        Kind::Stack => json!({ "$ref": "#/$defs/stack" }),
        Kind::Sizes => json!({ "$ref": "#/$defs/sizes" }),
        Kind::Times => json!({ "$ref": "#/$defs/times" }),
        Kind::Discipline => json!({ "$ref": "#/$defs/queue" }),
        other => whole(other),
    }
}

fn whole(kind: &Kind) -> Value {
    let quantity = |example: &str| json!({ "type": "string", "pattern": QUANTITY, "examples": [example] });
    let names = json!({ "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] });
    match *kind {
        Kind::Count { min, max: u64::MAX } => json!({ "type": "integer", "minimum": min }),
        Kind::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, max } if max.is_finite() => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Number { min, .. } => json!({ "type": "number", "minimum": min }),
        Kind::Time => quantity("50us"),
        Kind::Rate => quantity("10Gbps"),
        Kind::Size => quantity("256KB"),
        Kind::Queue => quantity("100p"),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Text => json!({ "type": "string" }),
        Kind::Texts => names,
        Kind::Seeds => json!({ "oneOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "array", "minItems": 1, "uniqueItems": true, "items": { "type": "integer", "minimum": 0 } },
        ] }),
        Kind::Sizes => drawn("8KB"),
        Kind::Times => drawn("1ms"),
        Kind::Tables(keys) => json!({ "type": "array", "items": object(keys) }),
        Kind::Groups => json!({ "type": "object", "additionalProperties": names }),
        Kind::Cc => named(ALGORITHMS.iter().flat_map(|a| a.params.iter()), json!({ "type": "string" })),
        Kind::Stack => {
            let mut properties: Map<String, Value> = KNOBS
                .iter()
                .map(|k| (k.name.to_owned(), key(&Key::of(k.name, transport::knob_kind(k.kind), k.help))))
                .collect();
            let profiles: Vec<&str> = PROFILES.iter().map(|p| p.name).collect();
            properties.insert("profile".to_owned(), json!({ "enum": profiles, "description": "named set of knobs" }));
            json!({ "type": "object", "properties": properties, "additionalProperties": false })
        }
        Kind::Discipline => {
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
fn named<'a>(params: impl Iterator<Item = &'a Param>, name: Value) -> Value {
    let mut properties = parameters(params);
    properties.insert("name".to_owned(), name);
    json!({ "type": "object", "properties": properties, "required": ["name"], "additionalProperties": false })
}

fn parameters<'a>(params: impl Iterator<Item = &'a Param>) -> Map<String, Value> {
    params.map(|p| (p.name.to_owned(), parameter(p))).collect()
}

fn parameter(param: &Param) -> Value {
    let mut schema = match (transport::quantity(param), param.domain) {
        (Some(quantity), _) => kind(&quantity),
        (None, Domain::Number { min, max, .. }) => kind(&Kind::Number { min, max }),
        (None, Domain::Flag { .. }) => kind(&Kind::Flag),
        (None, Domain::Word(words)) => kind(&Kind::Word(words)),
        (None, Domain::Text) => kind(&Kind::Text),
    };
    schema["description"] = json!(format!("{} ({})", param.help, param.source));
    schema
}
