//! Requests of a connection with what came back, as the tap saw them, and the messages that a replay takes from them.

use crate::release::Times;
use crate::sent::Soonest;
use crate::service::Wait;
use crate::workload::{Message, Piece};
use crate::{Connection, Direction, DirectionStats, Front, Turn};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Longer than a host needs to acknowledge what it has. A delayed ACK waits for a jiffy at least, which is 1 ms where Linux has most of them (HZ=1000).
const HELD_BACK: u64 = 1_000_000;

/// A host that opened its connection to the aggregator, and then writes more pieces than this with pauses between them, does not answer the last message.
/// It pushes what another connection asked for, as workers push to a ZeroMQ socket or a message broker.
const PUSHED: usize = 20;

/// What an application wrote at once, and when it began to.
pub(crate) struct TimedPiece {
    pub start_ns: u64,
    pub piece: Piece,
}

/// The pieces of each turn's two directions.
pub(crate) type Pieces = BTreeMap<(u32, Direction, u32), Vec<TimedPiece>>;

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
    /// When the aggregator gave up waiting for it.
    pub given_up: Option<u64>,
    pub front: Front,
    /// For how long the first packet of the response was in queues, at least and at most, by its sender's time stamps.
    pub queued: Option<(u64, u64)>,
    /// Where to find the pieces of the response.
    pub pieces: Option<(u32, Direction, u32)>,
}

/// The turns of a connection as the aggregator sees them. Where it is the server, what it answers is its request, and the client's next request
/// is the response to that.
pub(crate) fn exchanges(c: &Connection, turns: &[&Turn], aggregator: IpAddr) -> Vec<Exchange> {
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
            given_up: None,
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

/// Tells how long first packets were in queues, where their sender's time stamps say when they were sent.
pub(crate) fn by_time_stamps(asked: &mut [Exchange]) {
    let runs = asked.iter().filter_map(|e| e.response_start.zip(e.front.late));
    let Some(soonest) = Soonest::of(runs) else { return };
    for exchange in asked {
        exchange.queued =
            exchange.response_start.zip(exchange.front.late).map(|(at, late)| soonest.waited(at, late.first));
    }
}

/// Behind the queue an answer has come as the tap sees it. An acknowledgement that is later than the receiver's own time was held back by a timer, which
/// may be short: 4 ms behind an RTO floor of 5 ms (`tcp_delack_max`).
pub(crate) fn come_as_seen(asked: &mut [Exchange]) {
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

/// The aggregator has given up what it waits for when it closes the connection: what comes after that, and which its kernel refuses, is no answer.
pub(crate) fn give_up(asked: &mut [Exchange], aggregator: &DirectionStats) {
    let Some(closed) = aggregator.closed_ns else { return };
    for exchange in asked.iter_mut().rev() {
        let refused = |at: u64| at > closed && aggregator.rst > 0;
        if exchange.response_end.is_some_and(|end| !refused(end)) {
            return;
        }
        (exchange.delivered, exchange.given_up) = (None, Some(closed));
        if exchange.response_start.is_some_and(refused) {
            (exchange.response_start, exchange.response_end) = (None, None);
            (exchange.response_bytes, exchange.pieces) = (0, None);
        }
    }
}

/// The messages of a connection, which the other host opened where it is `upstream`: exchanges as a replay takes them, each with its times in the capture
/// and what is known of its wait.
pub(crate) fn messages(exchanges: Vec<Exchange>, pieces: &Pieces, upstream: bool) -> Vec<(Message, Times, Wait)> {
    let mut all: Vec<(Message, Times, Wait)> = Vec::with_capacity(exchanges.len());
    let mut ended: Option<u64> = None;
    let last = exchanges.len().saturating_sub(1);
    for (n, mut e) in exchanges.into_iter().enumerate() {
        // A request that is not in the file was sent somewhere in the gap between two responses: all of the gap becomes think time.
        let gap = e.response_start.zip(ended).map(|(start, end)| start.saturating_sub(end));
        let waited = e.waited.or(gap.filter(|_| e.request_start.is_none()));
        let think_ns = waited.filter(|_| !all.is_empty()).unwrap_or(0);
        let start_ns = e.request_start.or(e.response_start).or(ended).unwrap_or(0);
        ended = e.response_end.or(ended);
        let written = e.pieces.and_then(|key| pieces.get(&key)).map_or(&[][..], |p| p);
        if e.request_bytes == 0 && written.len() > 1 {
            all.extend(unasked(&e, written, think_ns));
        } else if upstream && n == last && written.len() > PUSHED {
            let (answer, pushed) = written.split_at(1);
            let pause_ns = pushed[0].piece.pause_ns;
            let pushes = unasked(&e, pushed, pause_ns).collect::<Vec<_>>();
            e.response_bytes = answer[0].piece.bytes;
            e.delivered = Some(pushed[0].start_ns.saturating_sub(pause_ns));
            all.push(asked(&e, answer, start_ns, think_ns));
            all.extend(pushes);
        } else {
            all.push(asked(&e, written, start_ns, think_ns));
        }
    }
    all
}

/// No request came before: each piece stands for itself.
fn unasked(e: &Exchange, written: &[TimedPiece], think_ns: u64) -> impl Iterator<Item = (Message, Times, Wait)> {
    let last = written.len() - 1;
    written.iter().enumerate().map(move |(i, p)| {
        let message = Message {
            start_ns: p.start_ns,
            think_ns: if i == 0 { think_ns } else { p.piece.pause_ns },
            request_bytes: 0,
            service_ns: 0,
            service_between_ns: None,
            response_bytes: p.piece.bytes,
            pieces: smallvec![Piece::whole(p.piece.bytes)],
            took_ns: None,
            given_up: false,
            overlapped: false,
            release: None,
        };
        let answered = e.delivered.filter(|_| i == last);
        (message, Times { answered, ..Times::default() }, Wait::default())
    })
}

/// One message with its answer in pieces.
fn asked(e: &Exchange, written: &[TimedPiece], start_ns: u64, think_ns: u64) -> (Message, Times, Wait) {
    let mut pieces = match written {
        [] if e.response_bytes == 0 => smallvec![],
        [] => smallvec![Piece::whole(e.response_bytes)],
        several => several.iter().map(|p| p.piece).collect(),
    };
    part_header(&mut pieces, u64::from(e.front.written_bytes));
    // For so long the server said nothing at all.
    let waited = e.given_up.zip(e.request_end).map(|(at, asked)| at.saturating_sub(asked));
    let silent = waited.filter(|_| e.response_bytes == 0);
    let message = Message {
        start_ns,
        think_ns,
        request_bytes: e.request_bytes,
        service_ns: silent.or(e.service).filter(|_| e.request_bytes > 0).unwrap_or(0),
        service_between_ns: None,
        response_bytes: e.response_bytes,
        pieces,
        took_ns: None,
        given_up: e.given_up.is_some(),
        overlapped: e.overlapped,
        release: None,
    };
    let times = Times {
        asked: e.request_start.filter(|_| e.request_bytes > 0),
        answered: e.delivered.filter(|_| e.response_bytes > 0),
        overlapped: e.overlapped,
        unsure: e.unsure,
        given_up: e.given_up,
        bytes: e.response_bytes,
    };
    (message, times, Wait::of(e.front, e.queued))
}

/// What was written first leaves by itself, and what goes on behind it as a piece of its own.
fn part_header(pieces: &mut SmallVec<[Piece; 1]>, written: u64) {
    if let Some(first) = pieces.first_mut().filter(|first| 0 < written && written < first.bytes) {
        let body = Piece { pause_ns: 0, bytes: first.bytes - written, straight_on: true };
        first.bytes = written;
        pieces.insert(1, body);
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

    #[test]
    fn what_a_host_pushes_that_opened_the_connection_is_no_answer_from_the_twenty_first_piece_on() {
        // Told something at 0 ms, it writes so many times 1,000 bytes, one each 5 ms.
        let written = |count: u64, upstream: bool| {
            let piece = |n: u64| TimedPiece {
                start_ns: n * 5_000_000,
                piece: Piece { pause_ns: if n == 0 { 0 } else { 4_000_000 }, ..Piece::whole(1_000) },
            };
            let key = (0, Direction::ToServer, 0);
            let told = Exchange {
                request_start: Some(0),
                request_bytes: 28,
                response_bytes: count * 1_000,
                delivered: Some(count * 5_000_000),
                pieces: Some(key),
                ..Exchange::default()
            };
            let read = messages(vec![told], &Pieces::from([(key, (0..count).map(piece).collect())]), upstream);
            let answered = read[0].1.answered;
            let bytes: u64 = read.iter().map(|(message, ..)| message.response_bytes).sum();
            assert_eq!(bytes, count * 1_000);
            (read.len(), answered, read.iter().filter(|(message, ..)| message.request_bytes == 0).count())
        };
        assert_eq!(written(20, true), (1, Some(100_000_000), 0));
        assert_eq!(written(21, true), (21, Some(1_000_000), 20));
        assert_eq!(written(21, false), (1, Some(105_000_000), 0), "the aggregator asked for it");
    }

    /// Of a call that was asked for until 2 ms, and whose answer passed from `answered` on for 3 ms, on a connection that was closed at 20 ms.
    fn closed(answered: Option<u64>) -> (Option<u64>, u64, u64) {
        let aggregator = DirectionStats { closed_ns: Some(20_000_000), rst: 1, ..DirectionStats::default() };
        let mut asked = [Exchange {
            request_start: Some(1_000_000),
            request_end: Some(2_000_000),
            request_bytes: 100,
            response_start: answered,
            response_end: answered.map(|at| at + 3_000_000),
            response_bytes: answered.map_or(0, |_| 5_000),
            delivered: answered.map(|at| at + 3_000_000),
            ..Exchange::default()
        }];
        give_up(&mut asked, &aggregator);
        let given_up = asked[0].given_up;
        let (message, _, _) = messages(asked.into(), &Pieces::new(), false).remove(0);
        (given_up, message.response_bytes, message.service_ns)
    }

    #[test]
    fn who_closes_a_connection_gives_up_what_has_not_come() {
        assert_eq!(closed(None), (Some(20_000_000), 0, 18_000_000), "for so long the server said nothing");
        assert_eq!(closed(Some(20_000_001)), (Some(20_000_000), 0, 18_000_000), "what comes then is refused");
        assert_eq!(closed(Some(17_000_001)), (Some(20_000_000), 5_000, 0), "a part has come");
        assert_eq!(closed(Some(17_000_000)), (None, 5_000, 0));
    }
}
