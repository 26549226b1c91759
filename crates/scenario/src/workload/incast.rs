//! Many senders answer one receiver at once, round after round.

use super::{JITTER, WorkloadKind};
use crate::error::ScenarioError;
use crate::plan::Workload;
use crate::reader::Reader;
use fanin_sim::spec::{BarrierId, FlowId, NodeId, Release};
use fanin_units::{Bytes, Duration, Setting, Time};

pub const WORKLOAD: WorkloadKind = WorkloadKind {
    name: "incast",
    title: "every sender answers one receiver at once, in rounds with or without a barrier",
    source: "GSS section 2, DCVegas section IV (server request units)",
    keys: KEYS,
    tcp: true,
    one_class: true,
    build,
};

/// For workloads in rounds.
pub(super) const OPEN: Setting = Setting::word(
    "open",
    &["first-use", "before", "each-round"],
    "when connections open: with the first message on them, before the first round (which waits `lead` for them), or anew in every round",
)
.default("first-use");

/// Beside [`OPEN`].
pub(super) const LEAD: Setting = Setting::time(
    "lead",
    "with `open = \"before\"`: time from the handshakes to the first round; no RTT of a data centre is longer",
)
.default("10ms");

const KEYS: &[Setting] = &[
    Setting::size("bytes", "what each sender sends per round (the server request unit)").positive(),
    Setting::size("total", "what all senders send together per round, in equal parts, instead of `bytes`").positive(),
    Setting::count_to("rounds", 1, 1_000_000, "how many rounds").default("1"),
    Setting::flag(
        "barrier",
        "a round begins when every answer of the one before is complete, not each sender for itself",
    )
    .default("true"),
    Setting::time("gap", "pause between the end of a round and the next").default("0s"),
    JITTER,
    Setting::size(
        "request",
        "the receiver asks each sender with a message of this size; senders start by themselves unless set",
    )
    .positive(),
    OPEN,
    LEAD,
    Setting::count_to("connections", 1, 10_000, "connections per sender, each with its answer").default("1"),
];

fn build(reader: &Reader<'_>, workload: &mut Workload<'_>) -> Result<(), ScenarioError> {
    let (senders, receiver) = workload.many_to_one(reader)?;
    let connections: usize = reader.get("connections")?;
    workload.room_for(reader, "connections", &[connections as u64, senders.len() as u64])?;
    let senders: Vec<NodeId> = senders.into_iter().flat_map(|s| std::iter::repeat_n(s, connections)).collect();
    let rounds = Rounds {
        bytes: per_answer(reader, senders.len() as u64)?,
        rounds: reader.get("rounds")?,
        gap: reader.get("gap")?,
        barrier: reader.get("barrier")?,
        jitter: reader.get("jitter")?,
        request: reader.opt::<Bytes>("request")?.map(Bytes::get),
        open: Open::read(reader)?,
    };
    workload.room_for(reader, "rounds", &[rounds.rounds, senders.len() as u64])?;
    rounds.add(workload, &senders, receiver);
    Ok(())
}

/// When connections open.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Open {
    /// With the first message.
    FirstUse,
    /// All at the start; the first round so much later.
    Before { lead: Duration },
    /// Anew for every round (GSS Fig. 5).
    EachRound,
}

impl Open {
    /// From the keys [`OPEN`] and [`LEAD`].
    pub fn read(reader: &Reader<'_>) -> Result<Open, ScenarioError> {
        Ok(match reader.get::<String>("open")?.as_str() {
            "before" => Open::Before { lead: reader.get("lead")? },
            "each-round" => Open::EachRound,
            _ => Open::FirstUse,
        })
    }

    /// Connections of a first round that would begin at `start`, and when it begins.
    pub fn first(self, workload: &mut Workload<'_>, flows: &[Answering], start: Time) -> Time {
        let Open::Before { lead } = self else { return start };
        for (request, answer) in flows {
            // Who sends first opens the connection.
            let first = request.map_or(*answer, |r| r.0);
            workload.plan.flows[first.index()].open = start.into();
        }
        start + lead
    }
}

/// Answers of many connections to one receiver, round after round.
pub(super) struct Rounds {
    pub bytes: u64,
    pub rounds: u64,
    pub gap: Duration,
    pub barrier: bool,
    pub jitter: Duration,
    pub request: Option<u64>,
    pub open: Open,
}

impl Rounds {
    /// One connection for each entry of `senders`.
    pub fn add(&self, workload: &mut Workload<'_>, senders: &[NodeId], receiver: NodeId) {
        let mut flows = self.connect(workload, senders, receiver);
        let start = self.open.first(workload, &flows, workload.start);
        let mut streams: Vec<_> = (0..flows.len() as u64).map(|n| workload.stream("jitter", n)).collect();
        // What the next round of each connection waits for.
        let mut before: Vec<Option<BarrierId>> = vec![None; flows.len()];
        for round in 0..self.rounds {
            if round > 0 && self.open == Open::EachRound {
                flows = self.connect(workload, senders, receiver);
            }
            let all = self.barrier.then(|| workload.plan.barrier());
            for (n, &flow) in flows.iter().enumerate() {
                let late = Duration::from_ps(streams[n].below(self.jitter.ps()));
                let done = all.unwrap_or_else(|| workload.plan.barrier());
                let release = match before[n] {
                    None => Release::At(start),
                    Some(b) => Release::After(b, self.gap),
                };
                workload.ask(flow, self.bytes, release, late, Some(done));
                before[n] = Some(done);
            }
        }
    }
}

impl Rounds {
    fn connect(&self, workload: &mut Workload<'_>, senders: &[NodeId], receiver: NodeId) -> Vec<Answering> {
        senders.iter().map(|&sender| answering(workload, sender, receiver, self.request)).collect()
    }
}

/// What asks, with the size of a request, and what answers.
pub(super) type Answering = (Option<(FlowId, u64)>, FlowId);

/// The flow of a sender's answers, and the one that asks for them, with the size of a request.
pub(super) fn answering(
    workload: &mut Workload<'_>,
    sender: NodeId,
    receiver: NodeId,
    request: Option<u64>,
) -> Answering {
    match request {
        Some(size) => {
            let (ask, answer) = workload.connection(receiver, sender);
            (Some((ask, size)), answer)
        }
        None => (None, workload.flow(sender, receiver)),
    }
}

/// Bytes of one answer.
pub(super) fn per_answer(reader: &Reader<'_>, answers: u64) -> Result<u64, ScenarioError> {
    match (reader.opt::<Bytes>("bytes")?, reader.opt::<Bytes>("total")?) {
        (Some(bytes), None) => Ok(bytes.get()),
        (None, Some(total)) if total.get() >= answers => Ok(total.get() / answers),
        (None, Some(total)) => {
            Err(reader.refuse("total", format!("{total} cannot be shared by {answers} answers of at least one byte")))
        }
        (Some(_), Some(_)) => Err(reader.refuse("total", "`bytes` is set too; remove one of the two")),
        (None, None) => Err(reader
            .fail_here("scenario::missing-key", "`bytes` per sender or `total` must be set")
            .expected("a size such as \"256KB\"")),
    }
}
