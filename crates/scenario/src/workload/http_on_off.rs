//! Servers that answer in trains: responses with pauses between them, then optionally one long train (TRIM section II).

use super::{PATTERN, WorkloadKind};
use crate::draw::Draw;
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::spec::{FlowId, NodeId, Release};
use fanin_units::{Bytes, Duration, Setting, Time};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "http_on_off",
    title: "HTTP responses as packet trains with gaps between them, then a long train if wanted",
    source: "TRIM sections II.A, II.B, IV.C (base case and normal case)",
    keys: KEYS,
    tcp: true,
    one_class: true,
    build,
};

/// Class of the long trains.
const TRAIN_CLASS: &str = "train";

const KEYS: &[Setting] = &[
    PATTERN,
    Setting::count_to("responses", 1, 10_000_000, "responses per connection, before the long train").default("200"),
    Setting::sizes("size", "bytes of a response").default("trim_http_train_size"),
    Setting::times("gap", "time from the start of a response to the next, the first counted from `start`; with `closed_loop`, from its end")
        .default("trim_http_train_gap"),
    Setting::flag("closed_loop", "the next response waits for the end of the one before").default("false"),
    Setting::count_to("connections", 1, 100_000, "connections per server").default("1"),
    Setting::flag("new_connection", "a new connection with its handshake for every response (TRIM's base case), not one that stays")
        .default("false"),
    Setting::size("request", "the client asks for each response with a message of this size; servers start by themselves unless set").positive(),
    Setting::sizes("train", "bytes of one long train per connection after the responses, in class `train`; none unless set"),
    Setting::size("total", "responses and long train together carry this much per connection: the train gets the rest").positive(),
    Setting::time("train_start", "when the long trains begin"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let plan = Trains {
        responses: reader.get("responses")?,
        size: reader.get("size")?,
        gap: reader.get("gap")?,
        closed_loop: reader.get("closed_loop")?,
        new_connection: reader.get("new_connection")?,
        request: reader.opt::<Bytes>("request")?.map(Bytes::get),
        train: train(reader, workload)?,
    };
    if plan.new_connection {
        let mut spec = workload.plan.transports[workload.transport as usize].clone();
        spec.stack.handshake = true;
        workload.transport = workload.plan.transport(spec);
    }
    let connections: usize = reader.get("connections")?;
    let pairs = workload.pairs(reader)?;
    workload.room_for(reader, "responses", &[plan.responses, connections as u64, pairs.len() as u64])?;
    for (n, pair) in pairs.into_iter().flat_map(|p| std::iter::repeat_n(p, connections)).enumerate() {
        plan.add(reader, workload, n as u64, pair)?;
    }
    Ok(())
}

/// The long train's start and what decides its size.
fn train(reader: &Reader<'_>, workload: &Workload<'_>) -> Result<Option<(Time, LongTrain)>, ScenarioError> {
    let size = match (reader.opt::<Draw>("train")?, reader.opt::<Bytes>("total")?) {
        (None, None) => return Ok(None),
        (Some(draw), None) => LongTrain::Drawn(draw),
        (None, Some(total)) => LongTrain::Rest(total),
        (Some(_), Some(_)) => return Err(reader.refuse("total", "`train` is set too; remove one of the two")),
    };
    let Some(start) = reader.opt::<Duration>("train_start")? else {
        return Err(reader
            .fail_here("scenario::missing-key", "`train_start` must be set: when the long trains begin")
            .expected("a time such as \"500ms\""));
    };
    Ok(Some((workload.within(reader, "train_start", Time::ZERO + start)?, size)))
}

enum LongTrain {
    Drawn(Draw),
    Rest(Bytes),
}

struct Trains {
    responses: u64,
    size: Draw,
    gap: Draw,
    closed_loop: bool,
    new_connection: bool,
    request: Option<u64>,
    train: Option<(Time, LongTrain)>,
}

impl Trains {
    /// One connection, or the succession of connections that stands for it.
    fn add(
        &self,
        reader: &Reader<'_>,
        workload: &mut Workload<'_>,
        n: u64,
        pair: (NodeId, NodeId),
    ) -> Result<(), ScenarioError> {
        let (mut sizes, mut gaps) = (workload.stream("size", n), workload.stream("gap", n));
        let mut flows = self.open(workload, pair);
        let mut time = workload.start;
        let mut sent = 0_u64;
        let mut before = None;
        for number in 0..self.responses {
            if number > 0 && self.new_connection {
                flows = self.open(workload, pair);
            }
            let (bytes, gap) = (self.size.bytes(&mut sizes), self.gap.time(&mut gaps));
            time += gap;
            let release = before.map_or(Release::At(time), |b| Release::After(b, gap));
            let done = self.closed_loop.then(|| workload.plan.barrier());
            workload.ask(flows, bytes, release, Duration::ZERO, done);
            before = done;
            sent = sent.saturating_add(bytes);
        }
        let Some((start, train)) = &self.train else { return Ok(()) };
        let bytes = match train {
            LongTrain::Drawn(draw) => draw.bytes(&mut workload.stream("train", n)),
            LongTrain::Rest(total) if total.get() > sent => total.get() - sent,
            LongTrain::Rest(total) => {
                return Err(reader.refuse(
                    "total",
                    format!(
                        "the {} responses alone carry {sent} B of the {total}; nothing is left for the train",
                        self.responses
                    ),
                ));
            }
        };
        let class = std::mem::replace(&mut workload.class, 0);
        workload.class = workload.plan.class(TRAIN_CLASS);
        if self.new_connection {
            flows = self.open(workload, pair);
        }
        workload.ask(flows, bytes, Release::At(*start), Duration::ZERO, None);
        workload.class = class;
        Ok(())
    }

    fn open(&self, workload: &mut Workload<'_>, (server, client): (NodeId, NodeId)) -> (Option<(FlowId, u64)>, FlowId) {
        super::incast::answering(workload, server, client, self.request)
    }
}
