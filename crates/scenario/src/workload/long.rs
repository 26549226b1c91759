//! Long-lived flows, with start and stop times.

use super::{PATTERN, WorkloadKind};
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::spec::{Message, Release};
use fanin_units::{Bytes, Duration, Setting};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "long",
    title: "long-lived flows from every sender, starting and stopping together or one after another",
    source: "TRIM section IV.B (long trains), GSS section 4 (background flows)",
    keys: KEYS,
    tcp: true,
    one_class: true,
    build,
};

const KEYS: &[Setting] = &[
    PATTERN,
    Setting::count_to("count", 1, 1_000_000, "flows per sender").default("1"),
    Setting::size("bytes", "each flow ends after this much; without an end unless set").positive(),
    Setting::time("stop", "nothing new is sent from here on; never unless set"),
    Setting::time("stagger", "each flow starts this much after the one before").default("0s"),
    Setting::time("stop_stagger", "each flow stops this much after the one before").default("0s"),
    Setting::time("jitter", "each start is delayed by a random time, uniform on [0, this)").default("0s"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let pairs = workload.pairs(reader)?;
    let count: usize = reader.get("count")?;
    let bytes = reader.opt::<Bytes>("bytes")?.map_or(Message::UNLIMITED, Bytes::get);
    let first_stop = workload.stop(reader, "stop", workload.start)?;
    let stagger: Duration = reader.get("stagger")?;
    let stop_stagger = if first_stop.is_some() { reader.get("stop_stagger")? } else { Duration::ZERO };
    let jitter: Duration = reader.get("jitter")?;
    workload.room_for(reader, "count", &[count as u64, pairs.len() as u64])?;
    for (n, (src, dst)) in pairs.into_iter().flat_map(|p| std::iter::repeat_n(p, count)).enumerate() {
        let n = n as u64;
        let late = Duration::from_ps(workload.stream("jitter", n).below(jitter.ps()));
        let start = workload.start + stagger * n + late;
        let stop = first_stop.map(|s| s + stop_stagger * n);
        if stop.is_some_and(|stop| stop <= start) {
            return Err(reader.refuse("stop", format!("flow {} would stop before it starts at {start}", n + 1)));
        }
        workload.within(reader, "stagger", start)?;
        let flow = workload.flow(src, dst);
        workload.plan.flows[flow.index()].stop = stop.into();
        workload.message(flow, bytes, Release::At(start), None);
    }
    Ok(())
}
