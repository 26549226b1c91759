//! Traffic of a capture as a workload: requests and responses, each request after what it waited for.

use crate::lists::Lists;
use crate::plan::Workload;
use fanin_capture::{Piece, Release as Waits, Round, Rounds};
use fanin_sim::rng::Stream;
use fanin_sim::spec::{BarrierId, FlowId, Gate, GateEvent, MessageId, NodeId, Release};
use fanin_units::{Duration, Time};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// What is replayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// Where it came from.
    pub source: String,
    /// Names of the sending hosts.
    pub servers: Vec<String>,
    /// In order of start.
    pub connections: Vec<Connection>,
    /// Requests that left together.
    pub rounds: Rounds,
    /// Stages of the requests, in order.
    pub stages: Stages,
}

/// Messages that left together, by stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages {
    companies: Vec<u32>,
    messages: Lists<(u32, u32)>,
}

impl Stages {
    /// Each one: the company, and its messages as (connection, turn).
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[(u32, u32)])> {
        self.companies.iter().copied().zip(self.messages.iter())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.companies.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.companies.is_empty()
    }
}

/// One connection between a server and the aggregator.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Position in [`Replay::servers`].
    pub server: u32,
    /// Its number in the capture.
    pub number: u32,
    /// Its first packet.
    pub start: Time,
    /// It begins with a handshake, if the stack has one.
    pub opened: bool,
    /// Who opened it wrote as soon as it was open.
    pub writes_at_once: bool,
    /// The server opened it: it is a client of the aggregator.
    pub upstream: bool,
    /// In order.
    pub turns: SmallVec<[Turn; 1]>,
}

/// A request and its response.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// When it began, for the first of a connection, for those that overlap, and for those that the clock releases.
    pub start: Time,
    /// The aggregator's pause after it had the response before.
    pub think: Duration,
    /// What it asked with; 0: the server spoke unasked.
    pub request: u64,
    /// The server's pause before it answered; where it did not, the aggregator's before it gave up.
    pub service: Duration,
    /// What the server wrote, and what each piece but the first follows; none: there was no response.
    pub pieces: SmallVec<[(Follows, u64); 1]>,
    /// Begun before the response before was complete, so it does not wait for it.
    pub overlapped: bool,
    /// What the request waits for; none: the response before, `think` long.
    pub release: Option<Waits>,
}

/// How long a piece of a response follows the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Follows {
    /// After that was delivered.
    Delivered(Duration),
    /// After that was written.
    Written(Duration),
}

/// Where a response went in the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedResponse {
    /// Number of the connection in the capture.
    pub connection: u32,
    /// Position in [`Replay::servers`].
    pub server: u32,
    /// Number of the response within the connection, from 0.
    pub number: u32,
    /// Its flow.
    pub flow: FlowId,
    /// The request, if there was one.
    pub request: Option<MessageId>,
    /// Its first piece.
    pub first: MessageId,
    /// Its last piece: the response is complete when this is.
    pub last: MessageId,
    /// All pieces.
    pub bytes: u64,
}

/// Where a round went in the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReplayedRound<'a> {
    /// The company that was asked.
    pub company: u32,
    /// It begins when the first of these is released.
    pub requests: &'a [MessageId],
    /// It is complete when all of these are delivered,
    pub answers: &'a [MessageId],
    /// or so many.
    pub waits_for: Option<u32>,
}

/// Where rounds went in the plan, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayedRounds {
    /// The company, and how many answers complete the round.
    kinds: Vec<(u32, Option<u32>)>,
    requests: Lists<MessageId>,
    answers: Lists<MessageId>,
}

impl ReplayedRounds {
    /// Adds one.
    pub fn add(
        &mut self,
        company: u32,
        waits_for: Option<u32>,
        requests: impl IntoIterator<Item = MessageId>,
        answers: impl IntoIterator<Item = MessageId>,
    ) {
        self.kinds.push((company, waits_for));
        self.requests.add(requests);
        self.answers.add(answers);
    }

    /// Each one.
    pub fn iter(&self) -> impl Iterator<Item = ReplayedRound<'_>> {
        let lists = self.requests.iter().zip(self.answers.iter());
        self.kinds.iter().zip(lists).map(|(&(company, waits_for), (requests, answers))| ReplayedRound {
            company,
            requests,
            answers,
            waits_for,
        })
    }

    fn shrunk(mut self) -> ReplayedRounds {
        self.kinds.shrink_to_fit();
        self.requests.shrink();
        self.answers.shrink();
        self
    }
}

/// Where a request tree went in the plan: a client asked the aggregator, which asked others before it answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayedTree {
    /// Number of the client's connection in the capture.
    pub connection: u32,
    /// Number of the aggregator's answer within that connection, from 0: a position in its turns.
    pub turn: u32,
    /// It begins when the client writes this.
    pub request: MessageId,
    /// It is complete when the client has this.
    pub answer: MessageId,
}

/// What a replay adds to a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Added {
    /// Where each response went.
    pub responses: Vec<ReplayedResponse>,
    /// Where each round went.
    pub rounds: ReplayedRounds,
    /// Where each stage of a request went.
    pub stages: ReplayedRounds,
    /// Where each request tree went.
    pub trees: Vec<ReplayedTree>,
}

/// What became of one turn.
#[derive(Clone, Copy, Default)]
struct Placed {
    /// What the aggregator sent.
    request: Option<MessageId>,
    /// The first of what it received.
    first: Option<MessageId>,
    /// The last of what it sent or received, of this turn or, when that had nothing, of the turn before.
    last: Option<MessageId>,
}

impl Replay {
    /// When the last turn of the capture began.
    pub fn span(&self) -> Duration {
        let starts = self.connections.iter().flat_map(|c| c.turns.iter().map(|t| t.start));
        starts.max().map_or(Duration::ZERO, |last| last.since(Time::ZERO))
    }

    /// The same traffic with every connection for itself: a request waits for the response before on its own connection and nothing else.
    #[must_use]
    pub fn independent(&self) -> Replay {
        let mut alone = self.clone();
        alone.rounds = Rounds::default();
        alone.stages = Stages::default();
        alone.connections.iter_mut().flat_map(|c| &mut c.turns).for_each(|t| t.release = None);
        alone
    }

    /// The same traffic, of `capture`, with the servers' times of [`fanin_capture::Workload::otherwise`].
    #[must_use]
    pub fn otherwise(mut self, capture: &fanin_capture::Workload) -> Replay {
        for (connection, seen) in self.connections.iter_mut().zip(&capture.connections) {
            for (turn, message) in connection.turns.iter_mut().zip(&seen.messages) {
                turn.service = from_ns(message.other_service_ns());
            }
        }
        self
    }

    /// Adds it to a plan: server `n` is `hosts[n % hosts.len()]`; each release is late by a random time on [0, `jitter`), the requests of a round by one:
    /// they leave one after another in a loop over the servers, and keep their order and spacing.
    pub(crate) fn add(&self, workload: &mut Workload<'_>, hosts: &[NodeId], client: NodeId, jitter: Duration) -> Added {
        let opening = workload.transport;
        let noise = workload.plan.transports[opening as usize].stack.send_jitter / 2;
        let mut spec = workload.plan.transports[opening as usize].clone();
        spec.stack.handshake = false;
        let open = workload.plan.transport(spec);
        let mut responses = Vec::new();
        let mut gates = Gates::default();
        let mut placed = Lists::default();
        let together = self.late_together(workload, jitter);
        let mut left = &together[..];
        for (n, connection) in (0..).zip(&self.connections) {
            let (mine, later) = left.split_at(left.partition_point(|t| t.connection <= n));
            left = later;
            workload.transport = if connection.opened { opening } else { open };
            let host = hosts[connection.server as usize % hosts.len()];
            let flows = workload.connection(client, host);
            let late = Late { stream: workload.stream("jitter", n.into()), most: jitter.ps(), together: mine };
            placed.add(connection.add(workload, flows, late, noise, &mut gates, &mut responses));
        }
        workload.transport = opening;
        let at = |&(c, m): &(u32, u32)| placed.get(c as usize).and_then(|turns| turns.get(m as usize));
        let asked = |place: &(u32, u32)| at(place).and_then(|p| p.request.or(p.last));
        let answered = |place: &(u32, u32)| at(place).and_then(|p| p.last);
        let answers =
            |round: &Round| -> SmallVec<[MessageId; 4]> { round.answers().iter().filter_map(answered).collect() };
        for (wait, barrier) in gates.barriers {
            let (of, need, event) = match wait {
                Wait::Round(round, need) => {
                    (self.rounds.get(round as usize).map(&answers).unwrap_or_default(), need, GateEvent::Delivered)
                }
                Wait::Answer(c, m) => (answered(&(c, m)).into_iter().collect(), 1, GateEvent::Delivered),
                Wait::Request(c, m) => (asked(&(c, m)).into_iter().collect(), 1, GateEvent::Released),
            };
            // Nothing is left to wait for where a message of the capture had no payload: the barrier is open from the start.
            let need = need.min(of.len() as u32);
            workload.plan.gates.push(Gate { barrier, of, need, event });
        }
        let mut rounds = ReplayedRounds::default();
        for round in self.rounds.iter().filter(|round| !round.is_gate()) {
            let requests = round.requests.iter().filter_map(asked);
            rounds.add(round.company, round.waits_for, requests, round.answers().iter().filter_map(answered));
        }
        let mut stages = ReplayedRounds::default();
        for (company, messages) in self.stages.iter() {
            stages.add(company, None, messages.iter().filter_map(asked), messages.iter().filter_map(answered));
        }
        Added { responses, rounds: rounds.shrunk(), stages: stages.shrunk(), trees: self.trees(&placed) }
    }

    /// The messages whose requests leave in rounds and how late, in order of connection and message.
    fn late_together(&self, workload: &Workload<'_>, jitter: Duration) -> Vec<Together> {
        let mut all = Vec::with_capacity(self.rounds.iter().map(|round| round.requests.len()).sum());
        for (n, round) in (0..).zip(&self.rounds) {
            let late = Duration::from_ps(workload.stream("round jitter", n).below(jitter.ps()));
            all.extend(round.requests.iter().map(|&(connection, message)| Together { connection, message, late }));
        }
        all.sort_unstable();
        all
    }

    /// Answers to clients that waited for the answers of others: the answer's place (connection, turn), in order.
    pub fn waiting_answers(&self) -> Vec<(u32, u32)> {
        let asked = |connection: u32| self.connections.get(connection as usize).is_some_and(|c| !c.upstream);
        let waited = |release: Option<Waits>| match release {
            Some(Waits::Round { round, .. }) => {
                self.rounds.get(round as usize).is_some_and(|r| r.requests.iter().all(|&(c, _)| asked(c)))
            }
            Some(Waits::Answer { connection, .. }) => asked(connection),
            _ => false,
        };
        let mut places = Vec::new();
        for (c, connection) in (0..).zip(&self.connections).filter(|(_, c)| c.upstream) {
            for (m, (before, turn)) in (1..).zip(connection.turns.iter().zip(connection.turns.iter().skip(1))) {
                if turn.request > 0 && !before.pieces.is_empty() && waited(turn.release) {
                    places.push((c, m));
                }
            }
        }
        places
    }

    /// How many of the messages to the aggregator belong to request trees: the clients' requests, and the answers that were waited for, in
    /// whatever stages.
    pub fn in_trees(&self) -> usize {
        let mut members = BTreeSet::new();
        for (c, m) in self.waiting_answers() {
            members.insert((c, m - 1));
            let mut left = vec![(c, m)];
            while let Some((c, m)) = left.pop() {
                let turn = self.connections.get(c as usize).and_then(|of| of.turns.get(m as usize));
                let waited_for = match turn.and_then(|t| t.release) {
                    Some(Waits::Round { round, .. }) => {
                        self.rounds.get(round as usize).map(|r| r.answers().to_vec()).unwrap_or_default()
                    }
                    Some(Waits::Answer { connection, message, .. }) => vec![(connection, message)],
                    _ => Vec::new(),
                };
                let inside = |&(c, _): &(u32, u32)| self.connections.get(c as usize).is_some_and(|of| !of.upstream);
                left.extend(waited_for.into_iter().filter(inside).filter(|&place| members.insert(place)));
            }
        }
        let answers = |&(c, m): &(u32, u32)| {
            let turn = self.connections.get(c as usize).and_then(|of| of.turns.get(m as usize));
            turn.is_some_and(|t| !t.pieces.is_empty())
        };
        members.iter().filter(|&place| answers(place)).count()
    }

    /// Where the request trees went, each with the client's request before it on its connection.
    fn trees(&self, placed: &Lists<Placed>) -> Vec<ReplayedTree> {
        let at = |c: u32, m: u32| placed.get(c as usize).and_then(|turns| turns.get(m as usize));
        let trees = self.waiting_answers().into_iter().filter_map(|(c, turn)| {
            let (request, answer) = (at(c, turn - 1)?.first?, at(c, turn)?.request?);
            Some(ReplayedTree { connection: self.connections.get(c as usize)?.number, turn, request, answer })
        });
        trees.collect()
    }
}

/// What a barrier stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    Round(u32, u32),
    Answer(u32, u32),
    Request(u32, u32),
}

/// Barriers that were asked for so far.
#[derive(Default)]
struct Gates {
    barriers: BTreeMap<Wait, BarrierId>,
}

impl Gates {
    fn barrier(&mut self, wait: Wait, workload: &mut Workload<'_>) -> BarrierId {
        *self.barriers.entry(wait).or_insert_with(|| workload.plan.barrier())
    }
}

/// A message whose request leaves together with others, and how late they are.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Together {
    connection: u32,
    message: u32,
    late: Duration,
}

struct Late<'a> {
    stream: Stream,
    most: u64,
    /// Those of the connection.
    together: &'a [Together],
}

impl Late<'_> {
    /// Of the request of a message.
    fn asking(&mut self, message: u32) -> Duration {
        let own = self.next();
        self.together.binary_search_by_key(&message, |t| t.message).map_or(own, |place| self.together[place].late)
    }

    fn next(&mut self) -> Duration {
        Duration::from_ps(self.stream.below(self.most))
    }
}

impl Connection {
    /// How long before its first message the connection was opened, if that message opens it: it is handed over with the SYN and leaves with the
    /// handshake's last packet, however long that takes. None if it came later by itself, or the connection was opened before what the message
    /// waited for.
    fn opening(&self) -> Option<Duration> {
        let first = self.turns.first()?;
        let mine = self.opened && self.writes_at_once && self.upstream == (first.request == 0);
        let lead = first.start.since(self.start);
        let waited = match first.release {
            Some(Waits::Round { delay_ns, .. } | Waits::Answer { delay_ns, .. } | Waits::Request { delay_ns, .. }) => {
                from_ns(delay_ns)
            }
            Some(Waits::Clock { .. }) | None => lead,
        };
        (mine && self.start <= first.start && lead <= waited).then_some(lead)
    }

    fn add(
        &self,
        workload: &mut Workload<'_>,
        (there, back): (FlowId, FlowId),
        late: Late<'_>,
        noise: Duration,
        gates: &mut Gates,
        responses: &mut Vec<ReplayedResponse>,
    ) -> Vec<Placed> {
        let opening = self.opening();
        if self.opened && opening.is_none() && self.turns.first().is_some_and(|first| self.start < first.start) {
            // No bytes: the handshake goes on its way, by whoever opened the connection in the capture.
            let (opener, opened) = (if self.upstream { back } else { there }, workload.plan.barrier());
            workload.request(opener, 0, Release::At(workload.start + self.start.since(Time::ZERO)), opened);
        }
        let mut placing = Placing { opened: self.opened, opening, workload, gates, late, noise, done: None };
        let mut number = 0;
        let mut placed: Vec<Placed> = Vec::with_capacity(self.turns.len());
        for (m, turn) in (0..).zip(&self.turns) {
            let (request, release) = placing.request(there, m, turn);
            let ids = placing.pieces(back, turn, release);
            let over = ids.last().copied().or_else(|| placing.given_up(back, turn, release)).or(request);
            let before = placed.last().and_then(|p| p.last);
            placed.push(Placed { request, first: ids.first().copied(), last: over.or(before) });
            if let (Some(&first), Some(&last)) = (ids.first(), ids.last()) {
                responses.push(ReplayedResponse {
                    connection: self.number,
                    server: self.server,
                    number,
                    flow: back,
                    request,
                    first,
                    last,
                    bytes: turn.pieces.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes)),
                });
                number += 1;
            }
        }
        placed
    }
}

/// The messages of one connection on their way into the plan.
struct Placing<'a, 'w> {
    /// See [`Connection::opened`] and [`Connection::opening`].
    opened: bool,
    opening: Option<Duration>,
    workload: &'a mut Workload<'w>,
    gates: &'a mut Gates,
    late: Late<'a>,
    /// A pause in the capture has the host's own time for the packet in it, and the host of the replay takes such a time too.
    noise: Duration,
    /// The end of what was placed last.
    done: Option<BarrierId>,
}

impl Placing<'_, '_> {
    /// The request of a turn, if it has one, and when its response is released.
    fn request(&mut self, there: FlowId, m: u32, turn: &Turn) -> (Option<MessageId>, Release) {
        if turn.request == 0 {
            let late = self.late.next();
            return (None, self.begin(turn, turn.service, late));
        }
        let late = self.late.asking(m);
        let release = self.begin(turn, Duration::ZERO, late);
        let asked = self.workload.plan.barrier();
        let request = self.workload.request(there, turn.request, release, asked);
        self.done = Some(asked);
        (Some(request), Release::After(asked, turn.service - self.noise + self.late.next()))
    }

    /// The pieces of a response, the first of them released so.
    fn pieces(&mut self, back: FlowId, turn: &Turn, mut release: Release) -> Vec<MessageId> {
        let mut ids = Vec::with_capacity(turn.pieces.len());
        for &(follows, bytes) in &turn.pieces {
            match (follows, self.done) {
                _ if ids.is_empty() => {}
                (Follows::Written(pause), _) => release = release.later(pause),
                (Follows::Delivered(pause), Some(before)) => release = Release::After(before, pause + self.late.next()),
                (Follows::Delivered(_), None) => break,
            }
            let barrier = self.workload.plan.barrier();
            ids.push(self.workload.message(back, bytes, release, Some(barrier)));
            self.done = Some(barrier);
        }
        ids
    }

    /// The end of a turn that was not answered, if the aggregator waited: a message of no bytes, which is complete as soon as it is written.
    fn given_up(&mut self, back: FlowId, turn: &Turn, release: Release) -> Option<MessageId> {
        if turn.request == 0 || turn.service.is_zero() {
            return None;
        }
        let over = self.workload.plan.barrier();
        self.done = Some(over);
        Some(self.workload.request(back, 0, release, over))
    }

    /// When the first message of a turn is released.
    fn begin(&mut self, turn: &Turn, pause: Duration, late: Duration) -> Release {
        // What leaves with the handshake's last acknowledgement does so without a pause.
        let (late, lead) = match self.opening {
            _ if self.done.is_some() => (late, Duration::ZERO),
            Some(lead) => (Duration::ZERO, lead),
            None if self.opened => (Duration::ZERO, Duration::ZERO),
            None => (late, Duration::ZERO),
        };
        let at = |time: Time| self.workload.start + time.since(Time::ZERO);
        let (wait, delay_ns) = match (turn.release, self.done) {
            (None, Some(barrier)) if !turn.overlapped => {
                return Release::After(barrier, turn.think - self.noise + pause + late);
            }
            (Some(Waits::Clock { regardless: false }), Some(barrier)) if !turn.overlapped => {
                return Release::NotBefore(at(turn.start) + late, barrier);
            }
            (None | Some(Waits::Clock { .. }), _) => return Release::At(at(turn.start - lead) + late),
            (Some(Waits::Round { round, answers, delay_ns }), _) => (Wait::Round(round, answers), delay_ns),
            (Some(Waits::Answer { connection, message, delay_ns }), _) => (Wait::Answer(connection, message), delay_ns),
            (Some(Waits::Request { connection, message, delay_ns }), _) => {
                (Wait::Request(connection, message), delay_ns)
            }
        };
        let waited = from_ns(delay_ns) - lead;
        Release::After(self.gates.barrier(wait, self.workload), waited - self.noise + pause + late)
    }
}

impl From<&fanin_capture::Workload> for Replay {
    fn from(capture: &fanin_capture::Workload) -> Replay {
        let connections = capture.connections.iter().map(|c| Connection {
            server: c.server,
            number: c.connection,
            start: Time::ZERO + from_ns(c.start_ns),
            opened: c.opened,
            writes_at_once: c.writes_at_once,
            upstream: c.upstream,
            turns: c
                .messages
                .iter()
                .map(|m| Turn {
                    start: Time::ZERO + from_ns(m.start_ns),
                    think: from_ns(m.think_ns),
                    request: m.request_bytes,
                    service: from_ns(m.service_ns),
                    pieces: pieces(&m.pieces),
                    overlapped: m.overlapped,
                    release: m.release,
                })
                .collect(),
        });
        let mut stages = Stages::default();
        for request in capture.requests() {
            for messages in request.stages {
                stages.companies.push(request.company);
                stages.messages.add(messages);
            }
        }
        Replay {
            source: capture.source.clone(),
            servers: capture.servers.iter().map(ToString::to_string).collect(),
            connections: connections.collect(),
            rounds: capture.rounds.clone(),
            stages,
        }
    }
}

/// What is not empty.
fn pieces(written: &[Piece]) -> SmallVec<[(Follows, u64); 1]> {
    let follows = |p: &Piece| match p.straight_on {
        true => Follows::Written(from_ns(p.pause_ns)),
        false => Follows::Delivered(from_ns(p.pause_ns)),
    };
    written.iter().filter(|p| p.bytes > 0).map(|p| (follows(p), p.bytes)).collect()
}

/// A file may say anything.
fn from_ns(ns: u64) -> Duration {
    Duration::from_ps(ns.saturating_mul(1000))
}
