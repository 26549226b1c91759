//! The registries as JSON, for `fanin list`.

use crate::error::{Class, internal, raise};
use fanin_cc::algorithms::ALGORITHMS;
use fanin_cc::deploy::Place;
use fanin_cc::{Algorithm, Kind, Profile, Setting, Value, registry};

use fanin_scenario::{topology, workload};
use fanin_sim::{hosts, knobs, queue};
use pyo3::prelude::*;
use serde_json::json;

/// The entries of a registry (`cc`, `queue`, `topology`, `workload` or `stack`) as a JSON list of objects with `name` and `title`.
#[pyfunction]
pub fn registry_json(py: Python<'_>, kind: &str) -> PyResult<String> {
    let entries: Vec<serde_json::Value> = match kind {
        "cc" => ALGORITHMS
            .iter()
            .map(|a| {
                json!({
                    "name": a.name, "title": a.title, "source": a.source, "needs_ecn": a.needs_ecn,
                    "stands_alone": a.stands_alone(), "role": role(&a.kind), "deploy": deployment(a), "keys": params(a.params),
                })
            })
            .collect(),
        "queue" => queue::DISCIPLINES
            .iter()
            .map(|d| json!({ "name": d.name, "title": d.title, "source": d.source, "keys": params(d.params) }))
            .collect(),
        "topology" => topology::TOPOLOGIES
            .iter()
            .map(|t| json!({ "name": t.name, "title": t.title, "source": t.source, "keys": keys(&[topology::COMMON, t.keys]) }))
            .collect(),
        "workload" => workload::WORKLOADS
            .iter()
            .map(|w| json!({ "name": w.name, "title": w.title, "source": w.source, "keys": keys(&w.all_keys()) }))
            .collect(),
        "stack" => knobs::PROFILES
            .iter()
            .map(|profile| {
                let stack = (profile.stack)();
                let keys: Vec<_> = knobs::KNOBS
                    .iter()
                    .map(|k| json!({ "name": k.name, "default": (k.get)(&stack), "help": k.help }))
                    .collect();
                json!({ "name": profile.name, "title": profile.title, "source": "", "keys": keys })
            })
            .collect(),
        "hosts" => hosts::HOST_PRESETS
            .iter()
            .map(|preset| {
                let model = (preset.model)();
                let keys: Vec<_> = hosts::HOST_KNOBS
                    .iter()
                    .map(|k| json!({ "name": k.name, "default": (k.get)(&model), "help": k.help }))
                    .collect();
                json!({ "name": preset.name, "title": preset.title, "source": preset.source, "keys": keys })
            })
            .collect(),
        other => return Err(raise(py, Class::Scenario, format!("no registry is named `{other}`"))),
    };
    serde_json::to_string(&entries).map_err(internal)
}

/// Where it can run on real hosts, in words: a slow start names the senders that a kernel has it with.
fn deployment(algorithm: &Algorithm) -> String {
    let with: Vec<&str> = algorithm
        .deploy
        .iter()
        .filter_map(|place| if let Place::With { sender, .. } = place { Some(*sender) } else { None })
        .collect();
    if !with.is_empty() {
        let how = if algorithm.deploy.iter().any(|p| matches!(p, Place::With { kernel: true, .. })) {
            "kernel"
        } else {
            "twin"
        };
        return format!("{how}, with {}", with.join(", "));
    }
    match algorithm.deploy {
        [Place::SenderShim] => "application shim".to_owned(),
        [Place::ReceiverShim] => "receiver shim over reno".to_owned(),
        _ => registry::deployment(algorithm.name).unwrap_or_default().to_string(),
    }
}

fn role(kind: &Kind) -> &'static str {
    match kind {
        Kind::Sender(_) | Kind::Extension(_) => "sender",
        Kind::SlowStart(_) => "slow start",
        Kind::Wrapper(_) => "wrapper",
        Kind::Receiver(_) => "receiver",
        Kind::Endpoint(_) => "transport",
    }
}

fn params(params: &[Setting]) -> Vec<serde_json::Value> {
    params
        .iter()
        .map(|p| {
            let default = match p.default_under(Profile::Rfc) {
                Value::Number(x) if p.unit.is_empty() => x.to_string(),
                Value::Number(x) => format!("{x} {}", p.unit),
                Value::Flag(x) => x.to_string(),
                Value::Word(x) => x,
            };
            json!({ "name": p.name, "default": default, "help": p.help, "source": p.source })
        })
        .collect()
}

fn keys(tables: &[&[Setting]]) -> Vec<serde_json::Value> {
    tables
        .iter()
        .rev()
        .flat_map(|table| table.iter())
        .filter(|k| k.name != "kind")
        .map(|k| json!({ "name": k.name, "default": k.default_text(), "help": k.help, "expects": k.domain.expects(), "required": k.required }))
        .collect()
}
