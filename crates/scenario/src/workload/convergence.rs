//! Flows that join one after another and leave one after another.

use super::WorkloadKind;
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::spec::{Message, Release};
use fanin_units::{Duration, Setting};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "convergence",
    title: "one long flow per sender: they start one after another, then stop one after another",
    source: "DCTCP Fig. 16, TRIM Fig. 9, TCPRand Fig. 16",
    keys: KEYS,
    tcp: true,
    one_class: true,
    build,
};

const KEYS: &[Setting] = &[
    Setting::time("step", "time between starts, and between stops; the first stop is one step after the last start")
        .default("2s")
        .positive(),
    Setting::word(
        "first_to_stop",
        &["first", "last"],
        "the flow that started first stops first, or the one that started last",
    )
    .default("first"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let (senders, receiver) = workload.many_to_one(reader)?;
    let step: Duration = reader.get("step")?;
    let last_stops_first = reader.get::<String>("first_to_stop")? == "last";
    let count = senders.len() as u64;
    for (n, sender) in (0..count).zip(senders) {
        let start = workload.within(reader, "step", workload.start + step * n)?;
        let leaves = if last_stops_first { count - 1 - n } else { n };
        let flow = workload.flow(sender, receiver);
        workload.plan.flows[flow.index()].stop = (workload.start + step * (count + leaves)).into();
        workload.message(flow, Message::UNLIMITED, Release::At(start), None);
    }
    Ok(())
}
