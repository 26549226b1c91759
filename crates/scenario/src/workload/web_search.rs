//! Queries that a front end spreads over many workers, each of which answers with its share.

use super::WorkloadKind;
use super::incast::{Open, Rounds, answering};
use crate::draw::Draw;
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::spec::Release;
use fanin_units::{Bytes, Duration, Setting};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "web_search",
    title: "queries answered by all workers together, total / n each",
    source: "GSS section 4.2; DCTCP section 4.2.2",
    keys: KEYS,
    tcp: true,
    one_class: true,
    build,
};

const KEYS: &[Setting] = &[
    Setting::size("total", "what all workers together answer to a query").default("1024KiB").positive(),
    Setting::count_to("queries", 1, 10_000_000, "how many queries").default("1"),
    Setting::size("request", "size of the query to each worker").default("100B").positive(),
    Setting::times(
        "interval",
        "time from a query to the next, whether it is answered or not; unless set a query waits for the answers to the one before",
    ),
    Setting::time("gap", "pause between the last answer and the next query").default("0s"),
    Setting::time("jitter", "each answer is delayed by a random time, uniform on [0, this)").default("0s"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let (workers, front_end) = workload.many_to_one(reader)?;
    let total: Bytes = reader.get("total")?;
    let bytes = total.get() / workers.len() as u64;
    if bytes == 0 {
        return Err(reader.refuse("total", format!("{total} cannot be shared by {} workers", workers.len())));
    }
    let (queries, request): (u64, Bytes) = (reader.get("queries")?, reader.get("request")?);
    workload.room_for(reader, "queries", &[queries, workers.len() as u64])?;
    let jitter: Duration = reader.get("jitter")?;
    let Some(interval) = reader.opt::<Draw>("interval")? else {
        let gap = reader.get("gap")?;
        let rounds = Rounds {
            bytes,
            rounds: queries,
            gap,
            barrier: true,
            jitter,
            request: Some(request.get()),
            open: Open::FirstUse,
        };
        rounds.add(workload, &workers, front_end);
        return Ok(());
    };
    let flows: Vec<_> = workers.iter().map(|&w| answering(workload, w, front_end, Some(request.get()))).collect();
    let mut late: Vec<_> = (0..flows.len() as u64).map(|n| workload.stream("jitter", n)).collect();
    let mut intervals = workload.stream("interval", 0);
    let mut time = workload.start;
    for _ in 0..queries {
        // No message waits for it: it says which answers belong together.
        let query = workload.plan.barrier();
        for (n, &flow) in flows.iter().enumerate() {
            let service = Duration::from_ps(late[n].below(jitter.ps()));
            workload.ask(flow, bytes, Release::At(time), service, Some(query));
        }
        time += interval.time(&mut intervals);
    }
    Ok(())
}
