//! A plan's network for `fanin draw`.

use crate::error::internal;
use crate::simulate::Plan;
use fanin_sim::spec::NodeKind;
use pyo3::prelude::*;
use serde_json::json;

/// Nodes and directed links of a plan as JSON: `nodes` with `name`, `kind`, `sends`, `receives`, `processing`, `shared_buffer`, and `links`
/// with `from` and `to` (positions in `nodes`), `rate`, `delay`, `buffer`, `mark`, `discipline`. Quantities are texts with units, null where
/// there is none.
#[pyfunction]
pub fn graph_json(plan: &Plan) -> PyResult<String> {
    let spec = &plan.0;
    let mut sends = vec![false; spec.nodes.len()];
    let mut receives = vec![false; spec.nodes.len()];
    let answered = |flow: &fanin_sim::spec::Flow| flow.reverse.is_some();
    for (f, flow) in spec.flows.iter().enumerate() {
        // Of a request and its answer, the answer is the traffic.
        if !answered(flow) || flow.reverse.is_some_and(|r| r.index() < f) {
            sends[flow.src.index()] = true;
            receives[flow.dst.index()] = true;
        }
    }
    for cbr in &spec.cbr {
        sends[cbr.src.index()] = true;
        receives[cbr.dst.index()] = true;
    }
    let nodes: Vec<_> = spec
        .nodes
        .iter()
        .enumerate()
        .map(|(n, node)| {
            json!({
                "name": node.name,
                "kind": if node.kind == NodeKind::Host { "host" } else { "switch" },
                "sends": sends[n],
                "receives": receives[n],
                "processing": (!node.processing.is_zero()).then(|| node.processing.to_string()),
                "shared_buffer": node.shared_buffer.map(|b| b.size.to_string()),
            })
        })
        .collect();
    let links: Vec<_> = spec
        .links
        .iter()
        .map(|link| {
            json!({
                "from": link.from.0,
                "to": link.to.0,
                "rate": link.rate.to_string(),
                "delay": link.delay.to_string(),
                "buffer": link.queue.limit.map(|l| l.to_string()),
                "mark": link.queue.mark_above.map(|l| l.to_string()),
                "discipline": link.queue.discipline.name,
            })
        })
        .collect();
    serde_json::to_string(&json!({ "nodes": nodes, "links": links })).map_err(internal)
}
