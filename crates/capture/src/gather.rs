//! From the analysis of a capture to the workload: every connection's messages, then who waits for whom.

use crate::exchange::{Exchange, Pieces, TimedPiece, by_time_stamps, come_as_seen, exchanges, give_up, messages};
use crate::release::{self, Talk, Times};
use crate::service::{self, Wait};
use crate::workload::{FORMAT, Message, Piece, ReplayConnection, WORKLOAD_VERSION, Workload};
use crate::{Analysis, Connection, Turn, WorkloadError, inflight};
use std::net::IpAddr;

/// An application that writes as soon as its connection is open needs less than this to wake and do so.
const AT_ONCE: u64 = 100_000;

impl Analysis {
    /// What the hosts sent to one of them, ready to be replayed.
    ///
    /// `aggregator` is the receiver; without one, the likeliest is taken ([`Analysis::hosts`]). A stall from loss or from waiting for
    /// acknowledgements is no pause; what was sent without being asked for becomes one message per piece.
    ///
    /// # Errors
    /// When the host received nothing, or no host did.
    pub fn workload(&self, aggregator: Option<IpAddr>) -> Result<Workload, WorkloadError> {
        self.workload_of(&self.turns, aggregator)
    }

    /// The same, of these turns.
    pub(crate) fn workload_of(&self, turns: &[Turn], aggregator: Option<IpAddr>) -> Result<Workload, WorkloadError> {
        let aggregator = self.receiver(aggregator)?;
        self.enough_of(aggregator)?;
        // A list of all, since a million connections with one of their own take more.
        let mut turns: Vec<&Turn> = turns.iter().collect();
        turns.sort_by_key(|t| (t.connection, t.turn));
        let mut gathered = Gathered::new(self, aggregator);
        for turns in turns.chunk_by(|a, b| a.connection == b.connection) {
            if let Some(c) = self.connections.get(turns[0].connection as usize)
                && !self.is_another_copy(&c, aggregator)
            {
                gathered.connection(&c, turns);
            }
        }
        Ok(gathered.workload())
    }

    /// The receiver that was named, or else the likeliest.
    fn receiver(&self, named: Option<IpAddr>) -> Result<IpAddr, WorkloadError> {
        let receivers = || self.hosts.iter().filter(|h| h.received_bytes > 0);
        match named {
            Some(ip) if receivers().any(|h| h.ip == ip) => Ok(ip),
            Some(ip) => {
                let known: Vec<String> = receivers().take(5).map(|h| h.ip.to_string()).collect();
                Err(match known.is_empty() {
                    true => WorkloadError::NoPayload,
                    false => WorkloadError::UnknownAggregator { ip, known: known.join(", ") },
                })
            }
            None => Ok(receivers().next().ok_or(WorkloadError::NoPayload)?.ip),
        }
    }

    fn pieces(&self) -> Pieces {
        let mut pieces = Pieces::new();
        for b in &self.bursts {
            let piece = Piece { pause_ns: b.pause_ns, bytes: b.bytes, straight_on: false };
            let of = pieces.entry((b.connection, b.direction, b.turn)).or_default();
            of.push(TimedPiece { start_ns: b.start_ns, piece });
        }
        pieces
    }

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

/// The connections of an aggregator, as far as they have been gone through.
struct Gathered<'a> {
    analysis: &'a Analysis,
    aggregator: IpAddr,
    pieces: Pieces,
    /// Ends of writes tell messages apart.
    writes_tell: bool,
    /// The tap is behind the queue; nothing where it cannot be told.
    behind: Option<bool>,
    servers: Vec<IpAddr>,
    connections: Vec<ReplayConnection>,
    talks: Vec<Talk>,
    /// Messages with the index of their connection.
    all: Vec<(u32, Message, Wait)>,
    untold: u64,
}

impl<'a> Gathered<'a> {
    fn new(analysis: &'a Analysis, aggregator: IpAddr) -> Gathered<'a> {
        let mine = analysis.connections.iter().filter(|c| c.client_ip == aggregator);
        Gathered {
            writes_tell: inflight::writes_tell(mine),
            behind: analysis.behind_the_queue(aggregator),
            pieces: analysis.pieces(),
            analysis,
            aggregator,
            servers: Vec::new(),
            connections: Vec::new(),
            talks: Vec::new(),
            all: Vec::new(),
            untold: 0,
        }
    }

    /// Adds a connection, if it is one of the aggregator's, with its turns in order.
    fn connection(&mut self, c: &Connection, turns: &[&Turn]) {
        let server = match (c.client_ip == self.aggregator, c.server_ip == self.aggregator) {
            (true, _) => c.server_ip,
            (_, true) => c.client_ip,
            _ => return,
        };
        let mine = c.client_ip == self.aggregator;
        let written = messages(self.asked(c, turns), &self.pieces, !mine);
        let index = self.servers.iter().position(|&s| s == server).unwrap_or_else(|| {
            self.servers.push(server);
            self.servers.len() - 1
        });
        let mut talk = Talk {
            upstream: c.server_ip == self.aggregator,
            server: index as u32,
            opened: Some(c.start_ns).filter(|_| mine && c.to_server.syn > 0),
            times: Vec::with_capacity(written.len()),
        };
        let all_unasked = !written.is_empty() && written.iter().all(|(message, _, _)| message.request_bytes == 0);
        for (message, times, wait) in written {
            note(times, &mut talk.times);
            self.all.push((self.connections.len() as u32, message, wait));
        }
        let first = turns.first().and_then(|t| t.request_start_ns);
        let open = c.handshake_rtt_ns.map(|took| c.start_ns + took);
        self.connections.push(ReplayConnection {
            server: index as u32,
            connection: c.connection,
            start_ns: c.start_ns,
            opened: c.to_server.syn > 0,
            writes_at_once: first.zip(open).is_some_and(|(written, open)| written <= open + AT_ONCE),
            upstream: talk.upstream,
            unasked_writes: if all_unasked { c.writes.unasked } else { 0 },
            // Exactly as many as there are: of a million connections most have one.
            messages: smallvec::SmallVec::with_capacity(talk.times.len()),
        });
        self.talks.push(talk);
    }

    /// The requests of a connection, those that were in flight together told apart by what tells: the protocol, ends of writes, sizes.
    fn asked(&mut self, c: &Connection, turns: &[&Turn]) -> Vec<Exchange> {
        let mine = c.client_ip == self.aggregator;
        let mut asked = exchanges(c, turns, self.aggregator);
        by_time_stamps(&mut asked);
        let read = mine && c.messages.protocol.is_some() && c.messages.unread == 0;
        let by_writes = self.writes_tell && mine && !read;
        if mine {
            asked = inflight::by_protocol(asked, self.analysis.stretches_of(c.connection));
        }
        if by_writes {
            asked = inflight::by_writes(asked, self.analysis.writes_of(c.connection));
        }
        if !read {
            asked = inflight::separate(asked);
        }
        if self.behind == Some(true) {
            come_as_seen(&mut asked);
        }
        if mine {
            give_up(&mut asked, &c.to_server);
        }
        self.untold += match by_writes && inflight::tell_nothing(c.writes, asked.len()) {
            true => asked.len() as u64,
            false => asked.iter().filter(|e| e.overlapped && !e.told).count() as u64,
        };
        asked
    }

    /// Who waits for whom, over all connections.
    fn workload(mut self) -> Workload {
        if self.behind == Some(false) {
            // What arrives together here meets in the queue later.
            self.all.iter_mut().for_each(|(_, _, wait)| {
                *wait = Wait { lost: wait.lost, went_on_ns: wait.went_on_ns, ..Wait::default() }
            });
        }
        service::unqueue(&mut self.all);
        service::go_on(&mut self.all);
        let mut found = release::infer(&self.talks);
        for company in &mut found.companies {
            let mut hosts: Vec<u32> =
                company.connections.iter().map(|&c| self.connections[c as usize].server).collect();
            hosts.sort_unstable();
            hosts.dedup();
            company.servers = hosts.len() as u32;
        }
        for (connection, mut message, _) in self.all {
            let mine = &mut self.connections[connection as usize];
            message.release = found.releases[connection as usize][mine.messages.len()];
            let times = &self.talks[connection as usize].times[mine.messages.len()];
            let over = times.answered.or(times.given_up);
            message.took_ns = times.asked.zip(over).and_then(|(asked, at)| at.checked_sub(asked));
            mine.messages.push(message);
        }
        let mut workload = Workload {
            format: FORMAT.to_owned(),
            version: WORKLOAD_VERSION,
            source: self.analysis.summary.file.clone(),
            aggregator: self.aggregator,
            servers: self.servers,
            connections: self.connections,
            rounds: found.rounds.into(),
            companies: found.companies,
            untold: self.untold,
            traced: false,
        };
        workload.forget_halves();
        workload
    }
}

/// Adds the times of a message to those of its connection. A tap away from the aggregator may think that the answer before came later than it did; a
/// request that followed it says.
fn note(times: Times, all: &mut Vec<Times>) {
    if let (Some(asked), false, Some(before)) = (times.asked, times.overlapped, all.last_mut()) {
        let late = before.answered.map_or(0, |answered| answered.saturating_sub(asked));
        before.answered = before.answered.map(|answered| answered - late);
        before.unsure = before.unsure.saturating_sub(late);
    }
    all.push(times);
}
