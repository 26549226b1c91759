//! Units of work fetched from all workers, with some workers busy with long flows instead.

use super::incast::{LEAD, OPEN, Open, Rounds};
use super::{JITTER, WorkloadKind};
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::spec::{Message, Release};
use fanin_units::{Bytes, Setting};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "mapreduce",
    title: "a server request unit from every worker, while others send long flows",
    source: "GSS section 4.3",
    keys: KEYS,
    tcp: true,
    one_class: true,
    build,
};

/// Class of the long flows.
const BACKGROUND_CLASS: &str = "background";

const KEYS: &[Setting] = &[
    Setting::size("unit", "what each worker answers (the server request unit)").default("256KB").positive(),
    Setting::count_to("rounds", 1, 1_000_000, "how many units are fetched one after another").default("1"),
    Setting::size("request", "size of the request to each worker; with 0B the workers start by themselves")
        .default("100B"),
    JITTER,
    OPEN,
    LEAD,
    Setting::count(
        "background",
        0,
        "how many of the senders, counted from the last, send one long flow instead, in class `background`",
    )
    .default("0"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let (mut workers, receiver) = workload.many_to_one(reader)?;
    let background: usize = reader.get("background")?;
    if background >= workers.len() {
        let message =
            format!("it is {background}, and there are {} senders; at least one must be a worker", workers.len());
        return Err(reader.refuse("background", message));
    }
    let busy = workers.split_off(workers.len() - background);
    let rounds = Rounds {
        bytes: reader.get::<Bytes>("unit")?.get(),
        rounds: reader.get("rounds")?,
        gap: fanin_units::Duration::ZERO,
        barrier: true,
        jitter: reader.get("jitter")?,
        request: Some(reader.get::<Bytes>("request")?.get()).filter(|&size| size > 0),
        open: Open::read(reader)?,
    };
    workload.room_for(reader, "rounds", &[rounds.rounds, workers.len() as u64])?;
    rounds.add(workload, &workers, receiver);
    if !busy.is_empty() {
        let class = workload.class;
        workload.class = workload.plan.class(BACKGROUND_CLASS);
        for host in busy {
            let flow = workload.flow(host, receiver);
            workload.message(flow, Message::UNLIMITED, Release::At(workload.start), None);
        }
        workload.class = class;
    }
    Ok(())
}
