//! Queries that a front end spreads over many workers, each of which answers with its share.

use super::incast::{Answering, LEAD, OPEN, Open, Rounds, answering};
use super::{JITTER, WorkloadKind};
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
        "time from a query to the next; unless set a query waits for the answers to the one before",
    ),
    Setting::time("gap", "pause between the last answer and the next query").default("0s"),
    JITTER,
    OPEN,
    LEAD,
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
    let open = Open::read(reader)?;
    let Some(interval) = reader.opt::<Draw>("interval")? else {
        let gap = reader.get("gap")?;
        let rounds = Rounds { bytes, rounds: queries, gap, barrier: true, jitter, request: Some(request.get()), open };
        rounds.add(workload, &workers, front_end);
        return Ok(());
    };
    let connect = |workload: &mut Workload<'_>| -> Vec<Answering> {
        workers.iter().map(|&w| answering(workload, w, front_end, Some(request.get()))).collect()
    };
    let mut flows = connect(workload);
    let mut late: Vec<_> = (0..flows.len() as u64).map(|n| workload.stream("jitter", n)).collect();
    let mut intervals = workload.stream("interval", 0);
    let mut time = open.first(workload, &flows, workload.start);
    for n in 0..queries {
        if n > 0 && open == Open::EachRound {
            flows = connect(workload);
        }
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
