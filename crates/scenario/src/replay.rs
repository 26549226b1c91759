//! Traffic of a capture as a workload: requests, think times and responses, in the order of each connection.

use crate::plan::Workload;
use fanin_sim::rng::Stream;
use fanin_sim::spec::{BarrierId, FlowId, MessageId, NodeId, Release};
use fanin_units::{Duration, Time};

/// What is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Where it came from.
    pub source: String,
    /// Names of the sending hosts.
    pub servers: Vec<String>,
    /// In order of start.
    pub connections: Vec<Connection>,
}

/// One connection between a server and the aggregator.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Position in [`Replay::servers`].
    pub server: u32,
    /// Its number in the capture.
    pub number: u32,
    /// It begins with a handshake, if the stack has one.
    pub opened: bool,
    /// In order.
    pub turns: Vec<Turn>,
}

/// A request and its response.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// When it began, for the first of a connection and for those that overlap.
    pub start: Time,
    /// The aggregator's pause after it had the response before.
    pub think: Duration,
    /// What it asked with; 0: the server spoke unasked.
    pub request: u64,
    /// The server's pause before it answered.
    pub service: Duration,
    /// What the server wrote, each piece after a pause from the delivery of the piece before; none: there was no response.
    pub pieces: Vec<(Duration, u64)>,
    /// Begun before the response before was complete, so it does not wait for it.
    pub overlapped: bool,
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

impl Replay {
    /// When the last turn of the capture began.
    pub fn span(&self) -> Duration {
        let starts = self.connections.iter().flat_map(|c| c.turns.iter().map(|t| t.start));
        starts.max().map_or(Duration::ZERO, |last| last.since(Time::ZERO))
    }

    /// Adds it to a plan: server `n` is `hosts[n % hosts.len()]`; each release is late by a random time on [0, `jitter`).
    pub(crate) fn add(
        &self,
        workload: &mut Workload<'_>,
        hosts: &[NodeId],
        client: NodeId,
        jitter: Duration,
    ) -> Vec<ReplayedResponse> {
        let opening = workload.transport;
        let mut spec = workload.plan.transports[opening as usize].clone();
        spec.stack.handshake = false;
        let open = workload.plan.transport(spec);
        let mut responses = Vec::new();
        for (n, connection) in self.connections.iter().enumerate() {
            workload.transport = if connection.opened { opening } else { open };
            let host = hosts[connection.server as usize % hosts.len()];
            let flows = workload.connection(client, host);
            let late = Late { stream: workload.stream("jitter", n as u64), most: jitter.ps() };
            connection.add(workload, flows, late, &mut responses);
        }
        workload.transport = opening;
        responses
    }
}

struct Late {
    stream: Stream,
    most: u64,
}

impl Late {
    fn next(&mut self) -> Duration {
        Duration::from_ps(self.stream.below(self.most))
    }
}

impl Connection {
    fn add(
        &self,
        workload: &mut Workload<'_>,
        (there, back): (FlowId, FlowId),
        mut late: Late,
        responses: &mut Vec<ReplayedResponse>,
    ) {
        let start = workload.start;
        let at = |time: Time, late: Duration| Release::At(start + time.since(Time::ZERO) + late);
        // The end of the turn before.
        let mut done: Option<BarrierId> = None;
        let mut number = 0;
        for turn in &self.turns {
            let begin = |pause: Duration, late: Duration| match done {
                Some(barrier) if !turn.overlapped => Release::After(barrier, pause + late),
                _ => at(turn.start, late),
            };
            let mut request = None;
            let mut release = if turn.request > 0 {
                let asked = workload.plan.barrier();
                let asking = begin(turn.think, late.next());
                request = Some(workload.request(there, turn.request, asking, asked));
                done = Some(asked);
                Release::After(asked, turn.service + late.next())
            } else {
                begin(turn.think + turn.service, late.next())
            };
            let mut ids = Vec::with_capacity(turn.pieces.len());
            for &(pause, bytes) in &turn.pieces {
                if !ids.is_empty() {
                    // Set by the piece before.
                    let Some(before) = done else { break };
                    release = Release::After(before, pause + late.next());
                }
                let barrier = workload.plan.barrier();
                ids.push(workload.message(back, bytes, release, Some(barrier)));
                done = Some(barrier);
            }
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
    }
}

impl From<&fanin_capture::Workload> for Replay {
    fn from(capture: &fanin_capture::Workload) -> Replay {
        let connections = capture.connections.iter().map(|c| Connection {
            server: c.server,
            number: c.connection,
            opened: c.opened,
            turns: c
                .messages
                .iter()
                .map(|m| Turn {
                    start: Time::ZERO + from_ns(m.start_ns),
                    think: from_ns(m.think_ns),
                    request: m.request_bytes,
                    service: from_ns(m.service_ns),
                    pieces: m.pieces.iter().filter(|p| p.bytes > 0).map(|p| (from_ns(p.pause_ns), p.bytes)).collect(),
                    overlapped: m.overlapped,
                })
                .collect(),
        });
        Replay {
            source: capture.source.clone(),
            servers: capture.servers.iter().map(ToString::to_string).collect(),
            connections: connections.collect(),
        }
    }
}

/// A file may say anything.
fn from_ns(ns: u64) -> Duration {
    Duration::from_ps(ns.saturating_mul(1000))
}
