//! `[measure]`: what to record.

use crate::error::{ScenarioError, nearest};
use crate::net::matches;
use crate::plan::Draft;
use crate::reader::{Context, Reader};
use crate::tree::Node;
use fanin_sim::spec::{FlowId, LinkId, TraceSpec};
use fanin_units::{Duration, Setting};

/// Keys of `[measure]`.
pub static KEYS: &[Setting] = &[
    Setting::texts("queues", "queue length of these ports, as in \"switch->client\"; `*` stands for anything"),
    Setting::time("queue_interval", "sample queues this often; every change unless set").positive(),
    Setting::texts(
        "windows",
        "cwnd, ssthresh and srtt of the flows of these classes; \"flow 3\" is one flow, counted from 0",
    ),
    Setting::texts("packets", "every packet event at these ports"),
    Setting::time("throughput", "delivered bytes per flow in intervals of this length").positive(),
    Setting::flag("drops", "every drop and every mark").default("false"),
];

/// Resolves names against what was planned.
pub(crate) fn read(context: Context<'_>, node: Option<&Node>, plan: &Draft) -> Result<TraceSpec, ScenarioError> {
    let reader = Reader::new(context, "measure", node, &[KEYS])?;
    let queues = ports(&reader, "queues", plan)?;
    if queues.is_empty() && reader.has("queue_interval") {
        return Err(reader.refuse("queue_interval", "no queue is recorded; name ports in `queues`"));
    }
    let trace = TraceSpec {
        classes: plan.classes.clone(),
        queue_interval: reader.opt::<Duration>("queue_interval")?,
        queues,
        windows: flows(&reader, plan)?,
        packets: ports(&reader, "packets", plan)?,
        slowest: None,
        most: None,
        internals: true,
        throughput_interval: reader.opt("throughput")?,
        drops_and_marks: reader.get("drops")?,
    };
    reader.finish()?;
    Ok(trace)
}

fn ports(reader: &Reader<'_>, key: &str, plan: &Draft) -> Result<Vec<LinkId>, ScenarioError> {
    let mut found: Vec<LinkId> = Vec::new();
    let all = || (0..plan.net.links.len() as u32).map(LinkId);
    for pattern in reader.opt::<Vec<String>>(key)?.unwrap_or_default() {
        let ports: Vec<LinkId> = all().filter(|&l| matches(&pattern, &plan.net.port_name(l))).collect();
        if ports.is_empty() {
            let names: Vec<String> = all().take(10_000).map(|l| plan.net.port_name(l)).collect();
            let near = nearest(&pattern, names.iter().map(String::as_str));
            let example = names.first().map_or("", String::as_str);
            return Err(reader
                .fail(
                    key,
                    "scenario::unknown-port",
                    format!("no port is named `{pattern}`; ports are named like `{example}`"),
                )
                .nearest(near));
        }
        found.extend(ports);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn flows(reader: &Reader<'_>, plan: &Draft) -> Result<Vec<FlowId>, ScenarioError> {
    let mut found: Vec<FlowId> = Vec::new();
    for name in reader.opt::<Vec<String>>("windows")?.unwrap_or_default() {
        if let Some(number) = name.strip_prefix("flow ") {
            match number.trim().parse::<u32>() {
                Ok(n) if (n as usize) < plan.flows.len() => found.push(FlowId(n)),
                _ => {
                    let message = format!("there is no `{name}`: there are {} flows, counted from 0", plan.flows.len());
                    return Err(reader.fail("windows", "scenario::unknown-flow", message));
                }
            }
            continue;
        }
        let classes: Vec<bool> = plan.classes.iter().map(|c| matches(&name, c)).collect();
        if !classes.contains(&true) {
            let near = nearest(&name, plan.classes.iter().map(String::as_str));
            let message = format!("no class of flows is named `{name}`; there are {}", plan.classes.join(", "));
            return Err(reader.fail("windows", "scenario::unknown-class", message).nearest(near));
        }
        let of_class = plan.flows.iter().enumerate().filter(|(_, f)| classes[usize::from(f.class)]);
        let before = found.len();
        found.extend(of_class.map(|(n, _)| FlowId(n as u32)));
        if found.len() == before {
            let message =
                format!("the class `{name}` has messages but no flows of its own; name the class of their flows");
            return Err(reader.fail("windows", "scenario::unknown-class", message));
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}
