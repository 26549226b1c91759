//! The workload file: what the applications asked for and when, without what the network made of it.

use crate::release::{self, Talk, Times};
use crate::sent::Soonest;
use crate::service::{self, Wait};
use crate::waiting::{Company, Release, Round, TIMER};
use crate::{Analysis, Connection, Direction, Front, Turn, WorkloadError, inflight};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// First field of every workload file.
const FORMAT: &str = "fanin-workload";
/// Version of the file format written and read here.
pub const WORKLOAD_VERSION: u32 = 2;
/// An application that writes as soon as its connection is open needs less than this to wake and do so.
const AT_ONCE: u64 = 100_000;
/// Longer than a host needs to acknowledge what it has. A delayed ACK waits for a jiffy at least, which is 1 ms where Linux has most of them (HZ=1000).
const HELD_BACK: u64 = 1_000_000;
/// The oldest version that is read: without releases and rounds, so that each connection is replayed alone.
const OLDEST_VERSION: u32 = 1;

/// Traffic towards one aggregator, ready to be replayed over another network and another TCP.
///
/// Times are whole nanoseconds. Everything is seen from the aggregator: a *request* is what it sends, a *response* is what comes back,
/// whoever opened the connection. A replay sends a request when its [`Release`] says so; without one, `think_ns` after the response before
/// on the same connection. The server waits `service_ns` after it has the request, and sends the pieces. Absolute starts are for the first
/// message of a connection, for what is released by the clock, and for reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Always `fanin-workload`.
    pub format: String,
    /// See [`WORKLOAD_VERSION`].
    pub version: u32,
    /// Name of the capture it came from.
    pub source: String,
    /// Who receives.
    pub aggregator: IpAddr,
    /// Who sends, in order of first appearance.
    pub servers: Vec<IpAddr>,
    /// One per TCP connection with the aggregator that carried payload, in order of start.
    pub connections: Vec<ReplayConnection>,
    /// Requests that left together, in no order.
    #[serde(default)]
    pub rounds: Vec<Round>,
    /// What was found about who waits for what.
    #[serde(default, rename = "groups", alias = "companies")]
    pub companies: Vec<Company>,
    /// Requests that were in flight with others on their connection and could not be told apart from these: each stands for one or several.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untold: u64,
    /// Its requests are those of the application's traces, and last as long as these say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traced: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// What one connection carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayConnection {
    /// Index of the other side in [`Workload::servers`].
    pub server: u32,
    /// Number of the connection in the capture.
    pub connection: u32,
    /// First packet of the connection, from the start of the capture.
    pub start_ns: u64,
    /// The connection was opened within the capture, so a replay should open it too.
    pub opened: bool,
    /// Who opened it wrote as soon as it was open: a replay hands over the first message with the SYN, and the handshake's end sends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writes_at_once: bool,
    /// The other side opened it: a client of the aggregator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upstream: bool,
    /// Where the aggregator never asked: so many writes of the other side ended on short segments with PSH. More than there are messages were written
    /// one behind the other, and are one message each with those before them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unasked_writes: u32,
    /// In order.
    pub messages: Vec<Message>,
}

/// A request and the response to it, as the applications wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// When it began at the tap, from the start of the capture.
    pub start_ns: u64,
    /// How long the aggregator waited after it had the previous response; zero in the first message.
    pub think_ns: u64,
    /// What the aggregator sent; zero when the server spoke unasked.
    pub request_bytes: u64,
    /// How long the server took to begin its answer.
    pub service_ns: u64,
    /// What the capture shows of that: at least and at most so long, where it lay in a queue or lost its first packets. For readers: a replay
    /// takes `service_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_between_ns: Option<(u64, u64)>,
    /// What the server sent in all.
    pub response_bytes: u64,
    /// How the server wrote it: at least one piece unless there was no response.
    pub pieces: Vec<Piece>,
    /// From the request to the last byte of the response at the aggregator, in the capture. For readers: a replay takes its own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ns: Option<u64>,
    /// The aggregator sent this request before it had all of the previous response.
    pub overlapped: bool,
    /// What it waited for; nothing: the response before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
}

/// Bytes written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// How long the application paused after the piece before had been delivered; zero for the first.
    pub pause_ns: u64,
    /// How much it wrote.
    pub bytes: u64,
}

impl Analysis {
    /// What the hosts sent to one of them, ready to be replayed.
    ///
    /// `aggregator` is the receiver; without one, the likeliest is taken ([`Analysis::hosts`]). A stall from loss or from waiting for
    /// acknowledgements is no pause; what was sent without being asked for becomes one message per piece.
    ///
    /// # Errors
    /// When the host received nothing, or no host did.
    pub fn workload(&self, aggregator: Option<IpAddr>) -> Result<Workload, WorkloadError> {
        let receivers = || self.hosts.iter().filter(|h| h.received_bytes > 0);
        let aggregator = match aggregator {
            Some(ip) if receivers().any(|h| h.ip == ip) => ip,
            Some(ip) => {
                let known: Vec<String> = receivers().take(5).map(|h| h.ip.to_string()).collect();
                return Err(match known.is_empty() {
                    true => WorkloadError::NoPayload,
                    false => WorkloadError::UnknownAggregator { ip, known: known.join(", ") },
                });
            }
            None => receivers().next().ok_or(WorkloadError::NoPayload)?.ip,
        };
        self.enough_of(aggregator)?;
        let mut turns: BTreeMap<u32, Vec<&Turn>> = BTreeMap::new();
        for turn in &self.turns {
            turns.entry(turn.connection).or_default().push(turn);
        }
        let mut pieces: BTreeMap<(u32, Direction, u32), Vec<TimedPiece>> = BTreeMap::new();
        for b in &self.bursts {
            let piece = Piece { pause_ns: b.pause_ns, bytes: b.bytes };
            pieces
                .entry((b.connection, b.direction, b.turn))
                .or_default()
                .push(TimedPiece { start_ns: b.start_ns, piece });
        }
        let mine = |c: &Connection| c.client_ip == aggregator;
        let writes_tell = inflight::writes_tell(self.connections.iter().filter(mine));
        let mut servers: Vec<IpAddr> = Vec::new();
        let mut connections = Vec::new();
        let mut talks: Vec<Talk> = Vec::new();
        let mut all: Vec<(u32, Message, Wait)> = Vec::new();
        let mut untold = 0;
        let behind = self.behind_the_queue(aggregator);
        for c in self.connections.iter() {
            let server = match (c.client_ip == aggregator, c.server_ip == aggregator) {
                (true, _) => c.server_ip,
                (_, true) => c.client_ip,
                _ => continue,
            };
            if self.is_another_copy(&c, aggregator) {
                continue;
            }
            let Some(turns) = turns.get_mut(&c.connection) else { continue };
            turns.sort_by_key(|t| t.turn);
            let mut asked = exchanges(&c, turns, aggregator);
            by_time_stamps(&mut asked);
            let read = mine(&c) && c.messages.protocol.is_some() && c.messages.unread == 0;
            if mine(&c) {
                asked = inflight::by_protocol(asked, self.stretches_of(c.connection));
            }
            if writes_tell && mine(&c) && !read {
                asked = inflight::by_writes(asked, self.writes_of(c.connection));
            }
            let mut asked = if read { asked } else { inflight::separate(asked) };
            if behind == Some(true) {
                come_as_seen(&mut asked);
            }
            give_up(&mut asked, &c);
            untold += match writes_tell && mine(&c) && !read && inflight::tell_nothing(c.writes, asked.len()) {
                true => asked.len() as u64,
                false => asked.iter().filter(|e| e.overlapped && !e.told).count() as u64,
            };
            let index = servers.iter().position(|&s| s == server).unwrap_or_else(|| {
                servers.push(server);
                servers.len() - 1
            });
            let written = messages(asked, &pieces);
            let mut talk = Talk {
                upstream: c.server_ip == aggregator,
                server: index as u32,
                opened: Some(c.start_ns).filter(|_| mine(&c) && c.to_server.syn > 0),
                closed: c.to_server.closed_ns.filter(|_| mine(&c)),
                times: Vec::with_capacity(written.len()),
            };
            for (message, times, wait) in written {
                if let (Some(asked), false, Some(before)) = (times.asked, times.overlapped, talk.times.last_mut()) {
                    // A tap away from the aggregator may think that an answer came later than it did; a request that followed it says.
                    let late = before.answered.map_or(0, |answered| answered.saturating_sub(asked));
                    before.answered = before.answered.map(|answered| answered - late);
                    before.unsure = before.unsure.saturating_sub(late);
                }
                talk.times.push(times);
                all.push((connections.len() as u32, message, wait));
            }
            // Exactly as many as there are: of a million connections most have one.
            let messages = Vec::with_capacity(talk.times.len());
            talks.push(talk);
            let written = turns.first().and_then(|t| t.request_start_ns);
            let mine = talks.last().map_or(0, |talk| talk.times.len());
            let all_unasked = all[all.len() - mine..].iter().all(|(_, m, _)| m.request_bytes == 0);
            let open = c.handshake_rtt_ns.map(|took| c.start_ns + took);
            connections.push(ReplayConnection {
                server: index as u32,
                connection: c.connection,
                start_ns: c.start_ns,
                opened: c.to_server.syn > 0,
                writes_at_once: written.zip(open).is_some_and(|(written, open)| written <= open + AT_ONCE),
                upstream: c.server_ip == aggregator,
                unasked_writes: if mine > 0 && all_unasked { c.writes.unasked } else { 0 },
                messages,
            });
        }
        if behind == Some(false) {
            // What arrives together here meets in the queue later.
            all.iter_mut().for_each(|(_, _, wait)| *wait = Wait { lost: wait.lost, ..Wait::default() });
        }
        service::unqueue(&mut all);
        let mut found = release::infer(&talks);
        for company in &mut found.companies {
            let mut hosts: Vec<u32> = company.connections.iter().map(|&c| connections[c as usize].server).collect();
            hosts.sort_unstable();
            hosts.dedup();
            company.servers = hosts.len() as u32;
        }
        for (connection, mut message, _) in all {
            let mine: &mut ReplayConnection = &mut connections[connection as usize];
            message.release = found.releases[connection as usize][mine.messages.len()];
            let times = &talks[connection as usize].times[mine.messages.len()];
            message.took_ns = times.asked.zip(times.answered).and_then(|(asked, at)| at.checked_sub(asked));
            mine.messages.push(message);
        }
        Ok(Workload {
            format: FORMAT.to_owned(),
            version: WORKLOAD_VERSION,
            source: self.summary.file.clone(),
            aggregator,
            servers,
            connections,
            rounds: found.rounds,
            companies: found.companies,
            untold,
            traced: false,
        })
    }
}

impl Analysis {
    fn stretches_of(&self, connection: u32) -> &[crate::Stretch] {
        let from = self.stretches.partition_point(|s| s.connection < connection);
        let to = self.stretches.partition_point(|s| s.connection <= connection);
        &self.stretches[from..to]
    }

    fn writes_of(&self, connection: u32) -> &[crate::Write] {
        let from = self.writes.partition_point(|w| w.connection < connection);
        let to = self.writes.partition_point(|w| w.connection <= connection);
        &self.writes[from..to]
    }
}

/// Tells how long first packets were in queues, where their sender's time stamps say when they were sent.
fn by_time_stamps(asked: &mut [Exchange]) {
    let runs = asked.iter().filter_map(|e| e.response_start.zip(e.front.late));
    let Some(soonest) = Soonest::of(runs) else { return };
    for exchange in asked {
        exchange.queued =
            exchange.response_start.zip(exchange.front.late).map(|(at, late)| soonest.waited(at, late.first));
    }
}

/// Behind the queue an answer has come as the tap sees it. An acknowledgement that is later than the receiver's own time was held back by a timer, which
/// may be short: 4 ms behind an RTO floor of 5 ms (`tcp_delack_max`).
fn come_as_seen(asked: &mut [Exchange]) {
    let mut late = 0;
    for exchange in asked {
        // The pause after the answer before was taken to begin when that had come.
        exchange.waited = exchange.waited.map(|waited| waited + late);
        late = 0;
        if let (Some(end), Some(come)) = (exchange.response_end, exchange.delivered)
            && come.saturating_sub(end) > HELD_BACK
        {
            late = come - end;
            (exchange.delivered, exchange.unsure) = (Some(end), 0);
        }
    }
}

/// What comes after the aggregator closed a connection, and which its kernel refuses, is no answer: the application had given up waiting for it.
fn give_up(asked: &mut [Exchange], c: &Connection) {
    let Some(closed) = c.to_server.closed_ns.filter(|_| c.to_server.rst > 0) else { return };
    for exchange in asked.iter_mut().rev() {
        if exchange.response_end.is_none_or(|end| end <= closed) {
            return;
        }
        exchange.delivered = None;
    }
}

struct TimedPiece {
    start_ns: u64,
    piece: Piece,
}

/// A request by the aggregator and what came back, whoever opened the connection.
#[derive(Default)]
pub(crate) struct Exchange {
    pub request_start: Option<u64>,
    pub request_end: Option<u64>,
    pub request_bytes: u64,
    pub waited: Option<u64>,
    pub response_start: Option<u64>,
    pub response_end: Option<u64>,
    pub response_bytes: u64,
    pub service: Option<u64>,
    pub overlapped: bool,
    /// It is one request with its answer, though others were in flight with it.
    pub told: bool,
    /// When the aggregator had all of the response.
    pub delivered: Option<u64>,
    /// By how much earlier that may have been.
    pub unsure: u64,
    pub front: Front,
    /// For how long the first packet of the response was in queues, at least and at most, by its sender's time stamps.
    pub queued: Option<(u64, u64)>,
    /// Where to find the pieces of the response.
    pub pieces: Option<(u32, Direction, u32)>,
}

/// The turns of a connection as the aggregator sees them. Where it is the server, what it answers is its request, and the client's next request
/// is the response to that.
fn exchanges(c: &Connection, turns: &[&Turn], aggregator: IpAddr) -> Vec<Exchange> {
    if c.client_ip == aggregator {
        let exchange = |t: &&Turn| Exchange {
            request_start: t.request_start_ns,
            request_end: t.request_end_ns,
            request_bytes: t.request_bytes,
            waited: t.think_ns,
            response_start: t.response_start_ns,
            response_end: t.response_end_ns,
            response_bytes: t.response_bytes,
            service: t.service_ns,
            overlapped: t.overlapped,
            told: false,
            delivered: t.response_delivered_ns,
            unsure: t.response_unsure_ns,
            front: t.response_front,
            queued: None,
            pieces: Some((t.connection, Direction::ToClient, t.turn)),
        };
        return turns.iter().map(exchange).collect();
    }
    let mut all = Vec::with_capacity(turns.len() + 1);
    let mut open = Exchange::default();
    for t in turns {
        (open.response_start, open.response_end) = (t.request_start_ns, t.request_end_ns);
        (open.response_bytes, open.service) = (t.request_bytes, t.think_ns);
        (open.delivered, open.unsure, open.front) = (t.request_delivered_ns, t.request_unsure_ns, t.request_front);
        open.pieces = Some((t.connection, Direction::ToServer, t.turn));
        all.push(std::mem::take(&mut open));
        (open.request_start, open.request_end) = (t.response_start_ns, t.response_end_ns);
        open.request_bytes = t.response_bytes;
        open.waited = t.service_ns;
    }
    all.push(open);
    all.retain(|e| e.request_bytes > 0 || e.response_bytes > 0);
    all
}

fn messages(
    exchanges: Vec<Exchange>,
    pieces: &BTreeMap<(u32, Direction, u32), Vec<TimedPiece>>,
) -> Vec<(Message, Times, Wait)> {
    let mut all: Vec<(Message, Times, Wait)> = Vec::with_capacity(exchanges.len());
    let mut ended: Option<u64> = None;
    for e in exchanges {
        let start_ns = e.request_start.or(e.response_start).or(ended).unwrap_or(0);
        let first = all.is_empty();
        // A request that is not in the file was sent somewhere in the gap between two responses: all of the gap becomes think time.
        let gap = e.response_start.zip(ended).map(|(start, end)| start.saturating_sub(end));
        let think_ns = if first { 0 } else { e.waited.or(gap.filter(|_| e.request_start.is_none())).unwrap_or(0) };
        ended = e.response_end.or(ended);
        let written = e.pieces.and_then(|key| pieces.get(&key)).map_or(&[][..], |p| p);
        if e.request_bytes == 0 && written.len() > 1 {
            // No request came before: each piece stands for itself.
            let last = written.len() - 1;
            all.extend(written.iter().enumerate().map(|(i, p)| {
                let message = Message {
                    start_ns: p.start_ns,
                    think_ns: if i == 0 { think_ns } else { p.piece.pause_ns },
                    request_bytes: 0,
                    service_ns: 0,
                    service_between_ns: None,
                    response_bytes: p.piece.bytes,
                    pieces: vec![Piece { pause_ns: 0, bytes: p.piece.bytes }],
                    took_ns: None,
                    overlapped: false,
                    release: None,
                };
                let answered = e.delivered.filter(|_| i == last);
                (message, Times { answered, ..Times::default() }, Wait::default())
            }));
            continue;
        }
        let pieces = match written {
            [] if e.response_bytes == 0 => vec![],
            [] => vec![Piece { pause_ns: 0, bytes: e.response_bytes }],
            several => several.iter().map(|p| p.piece).collect(),
        };
        let message = Message {
            start_ns,
            think_ns,
            request_bytes: e.request_bytes,
            service_ns: e.service.filter(|_| e.request_bytes > 0).unwrap_or(0),
            service_between_ns: None,
            response_bytes: e.response_bytes,
            pieces,
            took_ns: None,
            overlapped: e.overlapped,
            release: None,
        };
        let times = Times {
            asked: e.request_start.filter(|_| e.request_bytes > 0),
            answered: e.delivered.filter(|_| e.response_bytes > 0),
            overlapped: e.overlapped,
            unsure: e.unsure,
            bytes: e.response_bytes,
        };
        all.push((message, times, Wait::of(e.front, e.queued)));
    }
    all
}

impl Workload {
    /// The same traffic with the servers' times that the capture only bounds put elsewhere between these bounds, as far from the one as they are from
    /// the other: the capture cannot tell it from this one. None where it shows all of them.
    pub fn otherwise(&self) -> Option<Workload> {
        let mut other = self.clone();
        let mut moved = false;
        for message in other.connections.iter_mut().flat_map(|c| &mut c.messages) {
            if let Some((least, most)) = message.service_between_ns {
                let mirrored = least.saturating_add(most).saturating_sub(message.service_ns);
                moved |= mirrored != message.service_ns;
                message.service_ns = mirrored;
            }
        }
        moved.then_some(other)
    }

    /// The same traffic with timers that ask though the answer before is missing. None where no request leaves by a timer, and where the capture shows
    /// what its timers do: they were seen not to wait, or an answer took longer than the period and was waited for.
    pub fn unwaiting(&self) -> Option<Workload> {
        let mut other = self.clone();
        let mut moved = false;
        for company in &self.companies {
            let Some(timer) = company.released_by.iter().find(|edge| edge.event == TIMER) else { continue };
            let mine = || company.connections.iter().filter_map(|&c| self.connections.get(c as usize));
            let waited_long = |m: &Message| m.took_ns.is_some_and(|took| took >= timer.delay.median_ns);
            let told = |m: &Message| waited_long(m) || m.release == Some(Release::Clock { regardless: true });
            if mine().flat_map(|c| &c.messages).any(told) {
                continue;
            }
            for connection in company.connections.iter().map(|&c| c as usize) {
                let Some(connection) = other.connections.get_mut(connection) else { continue };
                for message in connection.messages.iter_mut().skip(1) {
                    if message.release == Some(Release::Clock { regardless: false }) {
                        message.release = Some(Release::Clock { regardless: true });
                        moved = true;
                    }
                }
            }
        }
        moved.then_some(other)
    }

    /// Reads a workload file and checks that it is consistent.
    ///
    /// # Errors
    /// When it cannot be read, is not a workload, or is of another version.
    pub fn read(path: &Path) -> Result<Workload, WorkloadError> {
        let text = crate::read_text(path).map_err(|source| WorkloadError::Read { path: path.to_path_buf(), source })?;
        Workload::parse(&text, path)
    }

    /// Reads the text of a workload file; `path` stands for the file in messages.
    ///
    /// # Errors
    /// When it is not a workload, or is of another version.
    pub fn parse(text: &str, path: &Path) -> Result<Workload, WorkloadError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let format = |reason: String| WorkloadError::Format { path: path.to_path_buf(), reason };
        let head: Head = serde_json::from_str(text).map_err(|e| format(e.to_string()))?;
        if head.format != FORMAT {
            return Err(format(format!("its format is {:?}", head.format)));
        }
        if !(OLDEST_VERSION..=WORKLOAD_VERSION).contains(&head.version) {
            let (found, supported) = (head.version, WORKLOAD_VERSION);
            return Err(WorkloadError::Version { path: path.to_path_buf(), found, supported });
        }
        let mut workload: Workload = serde_json::from_str(text).map_err(|e| format(e.to_string()))?;
        workload.check().and_then(|()| workload.check_waiting()).map_err(format)?;
        workload.version = WORKLOAD_VERSION;
        Ok(workload)
    }

    fn check(&self) -> Result<(), String> {
        for (i, c) in self.connections.iter().enumerate() {
            if c.server as usize >= self.servers.len() {
                return Err(format!("connections[{i}].server is {} of {} servers", c.server, self.servers.len()));
            }
            for (j, m) in c.messages.iter().enumerate() {
                let written = m.pieces.iter().try_fold(0_u64, |sum, p| sum.checked_add(p.bytes));
                if written != Some(m.response_bytes) {
                    return Err(format!(
                        "connections[{i}].messages[{j}]: its pieces do not add up to its response_bytes"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Writes the workload as JSON. The file appears whole or not at all.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, path: &Path) -> Result<(), WorkloadError> {
        let failed = |source: std::io::Error| WorkloadError::Write { path: path.to_path_buf(), source };
        let mut text = serde_json::to_vec(self).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = PathBuf::from(beside);
        let written =
            fs::File::create(&beside).and_then(|mut f| f.write_all(&text)).and_then(|()| fs::rename(&beside, path));
        written.map_err(|e| {
            // Best effort: the first error is the one to tell.
            let _ = fs::remove_file(&beside);
            failed(e)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer that ends at 10 ms and is acknowledged so much later, and the next, whose request the aggregator was taken to write 2 ms after that.
    fn acknowledged(later: u64) -> (Option<u64>, u64, Option<u64>) {
        let end = 10_000_000;
        let answer =
            Exchange { response_end: Some(end), delivered: Some(end + later), unsure: 1_000, ..Exchange::default() };
        let mut asked = [answer, Exchange { waited: Some(2_000_000), ..Exchange::default() }];
        come_as_seen(&mut asked);
        (asked[0].delivered.map(|at| at - end), asked[0].unsure, asked[1].waited)
    }

    #[test]
    fn an_answer_seen_behind_the_queue_has_come_however_late_its_delayed_ack_is() {
        assert_eq!(acknowledged(1_000_000), (Some(1_000_000), 1_000, Some(2_000_000)));
        assert_eq!(acknowledged(1_000_001), (Some(0), 0, Some(3_000_001)));
        assert_eq!(acknowledged(4_100_000), (Some(0), 0, Some(6_100_000)));
    }
}
