//! The traffic of a capture, from a workload file.

use super::WorkloadKind;
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use crate::replay::Replay;
use fanin_units::{Duration, Setting};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "replay",
    title: "what the applications of a capture sent, with their think times and waits kept",
    source: "a file written by `fanin trains CAPTURE --workload FILE`",
    keys: KEYS,
    tcp: true,
    one_class: true,
    build,
};

const KEYS: &[Setting] = &[
    Setting::text("file", "the workload file; relative paths start from the scenario's folder").required(),
    Setting::time(
        "jitter",
        "each release is late by a random time, uniform on [0, this), beside the noise that the capture has and the profile adds: what seeds differ in",
    )
    .default("2us"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let file: String = reader.get("file")?;
    let read = fanin_capture::Workload::read(&reader.context.folder.join(&file));
    let replay = Replay::from(&read.map_err(|e| reader.fail("file", "scenario::file", e.to_string()))?);
    if replay.connections.is_empty() {
        return Err(reader.refuse("file", format!("`{file}` has no connections to replay")));
    }
    let (hosts, client) = workload.many_to_one(reader)?;
    replay.add(workload, &hosts, client, reader.get::<Duration>("jitter")?);
    Ok(())
}
