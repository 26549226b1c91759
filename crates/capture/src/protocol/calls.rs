//! Which response answers which request, from the time that a connection was idle to the next.

use super::http2::SAYS;
use super::in_flight::{BY_THE_WAY, InFlight, Span};
use super::streams::Streams;
use super::{CLIENT, Part, SERVER};
use crate::again::Again;
use crate::way::Way;
use crate::{Call, Protocol, ReadCounts, Stretch};
use serde::{Deserialize, Serialize};

/// Of a connection that is never idle, what is complete is said after so many requests.
pub(super) const MOST: usize = 1_024;
/// So many requests at most are thought to be in bytes that were not seen.
const SKIPPED: u32 = 64;
/// Streams are numbered one after the other: what is further ahead of the last than this is none.
const AHEAD: u32 = 2_048;
/// A response that begins within this after another one's bytes may have waited behind them, which says nothing of its server's time.
const BEHIND: u64 = 50_000;
/// What comes so much later than the end of a response makes its receiver speak by itself.
const LATER: u64 = 1_000_000;

/// Requests and responses that are under way, in the order in which the requests began.
#[derive(Serialize, Deserialize)]
pub(super) struct Calls {
    protocol: Protocol,
    /// The turn in which the first began.
    turn: u32,
    all: Vec<InFlight>,
    /// Of a protocol that has one message at a time in a direction: the one in progress,
    open: [Option<usize>; 2],
    /// and how many requests have been answered, at least in part.
    answered: usize,
    /// Which message the last bytes belonged to.
    last: [Option<usize>; 2],
    /// Bytes whose messages were not seen.
    unseen: [Vec<Unseen>; 2],
    /// So many from the first on are complete; so many are complete and acknowledged.
    complete: usize,
    acknowledged: usize,
    /// First and last data packet of each direction.
    packets: [Option<(u64, u64)>; 2],
    /// The same of those that the client has sent since the server last did.
    goes_on: Option<(u64, u64)>,
    /// When the server last sent a part of a message.
    spoke: Option<u64>,
    /// Those that were said before.
    streams: Streams,
    /// The smallest request so far.
    least: u64,
    /// Some were said before their turns were over.
    shortened: bool,
    /// The messages do not fit together.
    odd: bool,
    /// It is another protocol.
    given_up: bool,
    counts: ReadCounts,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Unseen {
    at: u64,
    to: u64,
    bytes: u64,
    /// Which message has its bytes,
    owner: Option<usize>,
    /// and how many others are thought to be in it.
    others: u64,
}

impl Calls {
    pub fn new(protocol: Protocol, turn: u32) -> Calls {
        Calls {
            protocol,
            turn,
            all: Vec::new(),
            open: [None; 2],
            answered: 0,
            last: [None; 2],
            unseen: Default::default(),
            complete: 0,
            acknowledged: 0,
            packets: [None; 2],
            goes_on: None,
            spoke: None,
            streams: Streams::default(),
            least: u64::MAX,
            shortened: false,
            odd: false,
            given_up: false,
            counts: ReadCounts { protocol: Some(protocol), ..ReadCounts::default() },
        }
    }

    fn is_multiplexed(&self) -> bool {
        self.protocol == Protocol::Http2
    }

    /// Where messages begin is not readable: a direction says something until the other one does.
    fn is_by_turns(&self) -> bool {
        matches!(self.protocol, Protocol::Tls | Protocol::MySql)
    }

    /// A data packet passed.
    pub fn packet(&mut self, side: usize, at: u64) {
        let since = |first: Option<(u64, u64)>| Some((first.map_or(at, |(first, _)| first), at));
        self.packets[side] = since(self.packets[side]);
        self.goes_on = if side == CLIENT { since(self.goes_on) } else { None };
    }

    /// What the request said that the next bytes of a server answer.
    pub fn asked(&self, side: usize) -> Option<u8> {
        if side == CLIENT {
            return None;
        }
        self.all.get(self.open[SERVER].unwrap_or(self.answered)).map(|call| call.note)
    }

    /// A message, or a frame of this stream, may begin behind bytes that were not seen.
    pub fn may_begin(&self, side: usize, stream: u32) -> bool {
        if self.is_multiplexed() {
            let last = self.all.iter().map(|call| call.stream).fold(self.streams.last, u32::max);
            let unseen = side == CLIENT || !self.unseen[CLIENT].is_empty();
            let new = !stream.is_multiple_of(2) && stream > last && stream - last <= AHEAD;
            return stream <= self.streams.last
                || self.all.iter().any(|call| call.stream == stream)
                || unseen && (new || stream < last);
        }
        side == CLIENT || self.is_by_turns() || self.answered < self.all.len() || !self.unseen[CLIENT].is_empty()
    }

    /// Messages of `side` are recognised again.
    pub fn found_again(&mut self, side: usize) {
        if !self.is_by_turns()
            && let Some(span) = self.open[side].take().and_then(|open| self.span(side, open))
        {
            span.ended = true;
        }
    }

    fn span(&mut self, side: usize, call: usize) -> Option<&mut Span> {
        let call = self.all.get_mut(call)?;
        if side == CLIENT { call.request.as_mut() } else { call.response.as_mut() }
    }

    /// So many bytes of a part passed; it is `done` with them.
    pub fn part(&mut self, side: usize, part: Part, from: u64, to: u64, at: u64, done: bool) {
        if !part.message || self.given_up {
            return;
        }
        let found = if side == CLIENT { self.request_of(part, at) } else { self.response_of(part.stream, at) };
        let Some(call) = found else { return };
        if side == SERVER {
            self.spoke = Some(at);
        }
        if part.aborts {
            let aborted = &mut self.all[call].aborted;
            *aborted = aborted.or(done.then_some(at));
            return;
        }
        self.last[side] = Some(call);
        let ended = done && part.ends;
        self.open[side] = if ended || self.is_multiplexed() { None } else { Some(call) };
        if side == CLIENT {
            self.all[call].note = self.all[call].note.max(part.note);
        } else {
            self.all[call].acked_at = None;
            self.all[call].said |= part.note == SAYS;
        }
        if let Some(span) = self.span(side, call) {
            span.extend(from, to, at);
            span.ended |= ended;
        }
    }

    fn request_of(&mut self, part: Part, at: u64) -> Option<usize> {
        let found = if self.is_multiplexed() {
            // Streams of even number are the server's (RFC 9113, section 5.1.1).
            let known = self.all.iter().rposition(|call| call.stream == part.stream);
            if let Some(before) = known.filter(|_| part.note == SAYS) {
                // Both sides keep the stream open, and the client speaks again: this is its next request, or the first one.
                if self.all[before].goes_on() {
                    return Some(self.begin(part, at));
                }
                self.all[before].opened(at);
            }
            if known.is_none() {
                if part.aborts || part.stream.is_multiple_of(2) || !self.streams.begins(part) {
                    return None;
                }
                self.skipped(part.stream);
            }
            known
        } else if self.is_by_turns() {
            let last = self.all.len().checked_sub(1);
            // What comes while a response is under way cannot be told from a request.
            self.odd |= last.is_some_and(|last| self.all[last].response.is_some());
            last
        } else {
            self.open[CLIENT]
        };
        Some(found.unwrap_or_else(|| self.begin(part, at)))
    }

    fn begin(&mut self, part: Part, at: u64) -> usize {
        let request = Some(Span::begin(at));
        self.all.push(InFlight { stream: part.stream, note: part.note, request, ..InFlight::default() });
        self.all.len() - 1
    }

    fn response_of(&mut self, stream: u32, at: u64) -> Option<usize> {
        let known = if self.is_multiplexed() {
            self.all.iter().rposition(|call| call.stream == stream)
        } else if self.is_by_turns() {
            self.all.len().checked_sub(1)
        } else {
            self.open[SERVER].or_else(|| (self.answered < self.all.len()).then_some(self.answered))
        };
        if known.is_none() && self.is_multiplexed() && stream <= self.streams.last {
            return None;
        }
        let call = match known.or_else(|| self.unseen_request(stream)) {
            Some(call) => call,
            None => {
                // No request for it is in the file.
                self.odd |= stream % 2 == 1 || !self.is_multiplexed();
                return None;
            }
        };
        if self.all[call].response.is_none() {
            self.all[call].behind = self.spoke.is_some_and(|spoke| at <= spoke.saturating_add(BEHIND));
            self.all[call].response = Some(Span::begin(at));
            self.answered = self.answered.max(call + 1);
        }
        Some(call)
    }

    /// Clients number their streams one after the other: those that are missing before this one were opened in bytes that were not seen.
    fn skipped(&mut self, stream: u32) {
        let last = self.all.iter().map(|call| call.stream).fold(self.streams.last, u32::max);
        if last > 0 && stream > last && stream - last <= 2 * SKIPPED {
            for missing in (last + 2..stream).step_by(2) {
                let _ = self.unseen_request(missing);
            }
        }
    }

    /// A request among bytes that were not seen, which is answered now.
    fn unseen_request(&mut self, stream: u32) -> Option<usize> {
        if self.is_multiplexed() && stream.is_multiple_of(2) {
            return None;
        }
        let unseen = self.unseen[CLIENT].last_mut()?;
        unseen.others += 1;
        let span = Span::unseen(unseen.at, unseen.to);
        self.all.push(InFlight { stream, request: Some(span), ..InFlight::default() });
        Some(self.all.len() - 1)
    }

    /// Bytes from `from` to `to` passed again: who waits for them has none of what is behind them yet.
    pub fn again(&mut self, side: usize, from: u64, to: u64, at: u64) {
        for call in &mut self.all[self.acknowledged..] {
            let open = if side == CLIENT { call.response.is_none() } else { call.acked_at.is_none() };
            let span = if side == CLIENT { &mut call.request } else { &mut call.response };
            if let Some(span) = span.as_mut().filter(|span| open && span.to > from) {
                span.again = Some(Again::with(span.again, from, to, span.end));
                span.end = span.end.max(at);
            }
        }
    }

    /// Bytes passed whose heads are not stored.
    pub fn unseen(&mut self, side: usize, from: u64, to: u64, at: u64) {
        if self.given_up || from >= to {
            return;
        }
        self.counts.hidden += u32::from(side == CLIENT && self.came_together(at));
        let owner = if self.is_multiplexed() {
            self.last[side]
        } else if self.is_by_turns() {
            // They may be a part of a handshake: they begin nothing.
            self.last[side].filter(|_| side == SERVER || self.last[SERVER].is_none())
        } else {
            let part = Part::message(0);
            if side == CLIENT { self.request_of(part, at) } else { self.unseen_response(at) }
        };
        let mut owned = None;
        if let Some(call) = owner
            && let Some(span) = self.span(side, call).filter(|span| !span.ended)
        {
            span.extend(from, to, at);
            span.guessed = true;
            owned = Some(call);
            if side == SERVER {
                self.all[call].acked_at = None;
            }
            if !self.is_multiplexed() {
                self.open[side] = owned;
            }
        }
        if side == SERVER {
            self.spoke = Some(at);
        }
        self.counts.unseen_bytes += to - from;
        match self.unseen[side].last_mut() {
            // A body of many packets, whose end is not known.
            Some(last) if last.owner == owned && last.others == 0 && owned.is_some() => {
                (last.at, last.to, last.bytes) = (at, to, last.bytes + to - from);
            }
            _ => self.unseen[side].push(Unseen { at, to, bytes: to - from, owner: owned, others: 0 }),
        }
    }

    /// The packet of just now has begun two requests: there may be more in the rest of it.
    fn came_together(&self, at: u64) -> bool {
        let began = |call: &InFlight| call.request.as_ref().is_some_and(|request| request.start == at);
        !self.is_multiplexed() && !self.is_by_turns() && self.all.len() > 1 && self.all.iter().rev().take(2).all(began)
    }

    fn unseen_response(&mut self, at: u64) -> Option<usize> {
        let outstanding = self.open[SERVER].is_some() || self.answered < self.all.len();
        if outstanding { self.response_of(0, at) } else { None }
    }

    /// The receiver of responses has all before this place, whose last byte the tap saw at `passed`. `by_itself`: it sent a packet for nothing else, and
    /// so said it as soon as it acknowledges; but of a response long before that byte it may have held its word back (RFC 9293, section 3.8.6.3), as it did
    /// of what it has `twice`.
    pub fn acknowledged(
        &mut self,
        acked: u64,
        passed: Option<u64>,
        at: u64,
        by_itself: bool,
        twice: Option<(u64, u64)>,
        way: Way,
    ) {
        for call in &mut self.all[self.acknowledged..] {
            if let (Some(response), None) = (&mut call.response, call.acked_at)
                && response.to <= acked
            {
                let first = response.again.and_then(|again| again.needless(twice));
                response.end = first.unwrap_or(response.end);
                let held_back =
                    first.is_some() || passed.is_some_and(|passed| passed > response.end.saturating_add(LATER));
                call.acked_at = Some(if by_itself && !held_back { at } else { BY_THE_WAY });
                call.way = way;
            }
        }
        while self.acknowledged < self.complete && self.all[self.acknowledged].acked_at.is_some() {
            self.acknowledged += 1;
        }
    }

    /// The server has said something since the connection was idle.
    pub fn is_answered(&self) -> bool {
        self.odd || self.answered > 0
    }

    /// The server sent bytes whose messages were not seen.
    pub fn has_unseen_answers(&self) -> bool {
        !self.unseen[SERVER].is_empty()
    }

    /// Its messages do not fit together.
    pub fn is_odd(&self) -> bool {
        self.odd
    }

    /// All that was asked has been answered, as far as can be seen. `written`: the server's last packet ended a write.
    pub fn is_idle(&mut self, written: bool) -> bool {
        // What is not seen may hold a whole request: the number of the next stream says.
        let least = self.all.iter().map(InFlight::request_bytes).fold(self.least, u64::min);
        let hidden = |unseen: &&Unseen| least <= unseen.bytes;
        let hidden =
            self.unseen[CLIENT].last().filter(|_| self.is_multiplexed()).filter(hidden).map(|unseen| unseen.at);
        if hidden.is_some_and(|at| !self.all.iter().any(|call| call.asked_after(at))) {
            return false;
        }
        while self.complete < self.all.len() {
            if !self.is_complete(self.complete, written) {
                return false;
            }
            self.complete += 1;
        }
        self.resolve();
        true
    }

    fn is_complete(&self, place: usize, written: bool) -> bool {
        let call = &self.all[place];
        let unseen = |at: u64| self.unseen[SERVER].iter().rev().find(|unseen| unseen.at >= at).map(|unseen| unseen.at);
        let (Some(request), None) = (&call.request, call.aborted) else { return true };
        match &call.response {
            Some(response) => response.ended || self.is_by_turns() || written && unseen(response.start).is_some(),
            // It was answered within bytes that were not seen,
            None if !self.is_multiplexed() => written && unseen(request.may_be_answered()).is_some(),
            // where answers may come in any order: if what was asked after these is answered too.
            None => unseen(request.may_be_answered()).is_some_and(|at| {
                self.all[place..].iter().any(|later| later.response.is_some() && later.asked_after(at))
            }),
        }
    }

    /// Requests that nothing was seen to answer were answered within the bytes that were not seen.
    pub fn resolve(&mut self) {
        for call in 0..self.all.len() {
            let Some(asked) = self.all[call].request.as_ref().map(Span::may_be_answered) else { continue };
            if self.all[call].response.is_some() || self.all[call].aborted.is_some() {
                continue;
            }
            let Some(unseen) = self.unseen_answer(asked) else { continue };
            unseen.others += 1;
            let (at, to) = (unseen.at, unseen.to);
            // Who has the last of these bytes has it.
            let ends_there = |call: &&InFlight| call.response.as_ref().is_some_and(|response| response.to == to);
            let acknowledged = self.all.iter().find(ends_there).map(|last| (last.acked_at, last.way));
            (self.all[call].acked_at, self.all[call].way) = acknowledged.unwrap_or_default();
            self.all[call].response = Some(Span::unseen(at, to));
            self.all[call].behind = true;
        }
        for side in [CLIENT, SERVER] {
            self.share(side);
        }
    }

    /// The bytes that were not seen after this time, and before the client asked again, of which a message more gets the largest share.
    fn unseen_answer(&mut self, asked: u64) -> Option<&mut Unseen> {
        let first = self.unseen[SERVER].iter().find(|unseen| unseen.at >= asked)?.at;
        let begins = self.all.iter().filter_map(|call| call.request.as_ref()).map(|request| request.start);
        let next = begins.filter(|&start| start > first).min().unwrap_or(u64::MAX);
        let candidates = self.unseen[SERVER].iter_mut().filter(|unseen| (asked..next).contains(&unseen.at));
        // Of as much the first.
        candidates.rev().max_by_key(|unseen| unseen.bytes / (unseen.others + 1 + u64::from(unseen.owner.is_some())))
    }

    /// Bytes of several messages that were not seen are shared out evenly.
    fn share(&mut self, side: usize) {
        for unseen in std::mem::take(&mut self.unseen[side]) {
            if unseen.others == 0 {
                continue;
            }
            let each = unseen.bytes / (unseen.others + u64::from(unseen.owner.is_some()));
            let mut left = unseen.bytes;
            let mine = |span: &&mut Span| span.bytes == 0 && span.to == unseen.to;
            for call in &mut self.all {
                let span = if side == CLIENT { call.request.as_mut() } else { call.response.as_mut() };
                if let Some(span) = span.filter(mine) {
                    span.bytes = each;
                    left -= each.min(left);
                }
            }
            if let Some(span) = unseen.owner.and_then(|owner| self.span(side, owner)) {
                span.bytes = span.bytes.saturating_sub(unseen.bytes) + left;
            }
        }
    }

    /// It is another protocol: nothing is said any more.
    pub fn give_up(&mut self) {
        if !self.given_up {
            self.counts.unread += 1;
        }
        self.given_up = true;
        self.all = Vec::new();
        (self.open, self.last, self.answered) = ([None; 2], [None; 2], 0);
        (self.complete, self.acknowledged) = (0, 0);
        self.unseen = Default::default();
    }

    /// Of a connection that is not idle: what is complete, if it is much. `turn` is in progress.
    pub fn shorten(&mut self, turn: u32) -> Option<Stretch> {
        if self.all.len() < MOST {
            return None;
        }
        let _ = self.is_idle(false);
        let complete = self.complete.min(self.acknowledged);
        if complete < MOST / 2 {
            if self.all.len() >= 8 * MOST {
                // Requests that are never answered: these are no messages.
                self.give_up();
            }
            return None;
        }
        let said: Vec<InFlight> = self.all.drain(..complete).collect();
        said.iter().for_each(|call| self.streams.said(call.stream, call.is_the_last()));
        let less = |place: &mut Option<usize>| *place = place.and_then(|place| place.checked_sub(complete));
        self.open.iter_mut().for_each(less);
        self.last.iter_mut().for_each(less);
        self.unseen.iter_mut().flatten().for_each(|unseen| less(&mut unseen.owner));
        (self.complete, self.acknowledged) = (self.complete - complete, self.acknowledged - complete);
        self.answered = self.answered.saturating_sub(complete);
        let stretch = self.stretch(said, turn);
        self.shortened = true;
        stretch
    }

    /// The connection is idle before turn number `turn`, or the capture is over.
    pub fn close(&mut self, turn: u32) -> Option<Stretch> {
        if self.given_up {
            return None;
        }
        let all = std::mem::take(&mut self.all);
        all.iter().for_each(|call| self.streams.said(call.stream, call.is_the_last()));
        self.least = all.iter().map(InFlight::request_bytes).fold(self.least, u64::min);
        // What is no message, as a window's update, has begun the turn that a request goes on with.
        let begun = all.is_empty() && (turn == self.turn || self.is_multiplexed());
        let trivial = !self.odd && self.is_the_turn(&all, turn);
        if trivial {
            self.counts.read += all.len() as u32;
        }
        let stretch = if trivial { None } else { self.stretch(all, turn) };
        let goes_on = self.goes_on;
        let packets = if begun { self.packets } else { [goes_on, None] };
        let (counts, streams, least) = (self.counts, std::mem::take(&mut self.streams), self.least);
        *self = Calls { counts, streams, least, packets, goes_on, ..Calls::new(self.protocol, turn) };
        stretch
    }

    /// One request, one response, and nothing else: the turn says the same and more.
    fn is_the_turn(&self, all: &[InFlight], turn: u32) -> bool {
        let same = |span: &Option<Span>, side: usize| span.as_ref().map(|s| (s.start, s.end)) == self.packets[side];
        match all {
            [] => turn == self.turn,
            [call] => {
                let one = !self.shortened && turn == self.turn + 1;
                one && same(&call.request, CLIENT) && same(&call.response, SERVER)
            }
            _ => false,
        }
    }

    fn stretch(&mut self, all: Vec<InFlight>, turn: u32) -> Option<Stretch> {
        let (first, count) = (std::mem::replace(&mut self.turn, turn), all.len() as u32);
        let stray = all.is_empty() && !self.is_by_turns() && self.unseen.iter().any(|unseen| !unseen.is_empty());
        if self.odd || stray {
            self.counts.unread += count.max(1);
            return None;
        }
        let guessed = |call: &&InFlight| [&call.request, &call.response].into_iter().flatten().any(|span| span.guessed);
        self.counts.guessed += all.iter().filter(guessed).count() as u32;
        self.counts.read += count;
        let mut calls: Vec<Call> = all.into_iter().filter_map(InFlight::row).collect();
        calls.sort_by_key(|call| call.request_start_ns);
        Some(Stretch { connection: 0, turn: first, turns: turn - first, calls })
    }

    pub fn counts(&self) -> ReadCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Part = Part { message: true, ends: true, stream: 0, aborts: false, note: 0 };

    fn of(stream: u32) -> Part {
        Part { stream, ..WHOLE }
    }

    /// Requests and their responses, each of a hundred bytes, all of them acknowledged.
    fn answered(count: u64) -> Calls {
        let mut calls = Calls::new(Protocol::Http1, 0);
        for n in 0..count {
            calls.part(CLIENT, WHOLE, n * 100, (n + 1) * 100, n * 2_000, true);
            calls.part(SERVER, WHOLE, n * 100, (n + 1) * 100, n * 2_000 + 1_000, true);
        }
        assert!(calls.is_idle(false));
        calls.acknowledged(count * 100, None, count * 2_000, true, None, Way::default());
        calls
    }

    #[test]
    fn of_a_connection_that_is_never_idle_1024_calls_are_said_at_once() {
        let said = |count: u64| answered(count).shorten(1).map_or(0, |stretch| stretch.calls.len());
        assert_eq!((said(1_023), said(1_024)), (0, 1_024));
    }

    /// Streams 1, 3 and 5 are asked for at 1, 2 and 3 us. Of the answers the heads of the first two are seen, with a hundred and 30,000 bytes behind them that
    /// are not, at 11 and 21 us; stream 7 is asked for at 30 us, and answered at 41 us with 90,000 such bytes. Of the client's last packet before, at 25 us,
    /// some bytes may not be seen. When stream 5 was answered, and with how many bytes.
    fn answered_among_unseen(client: u64) -> (u64, u64) {
        let mut calls = Calls::new(Protocol::Http2, 0);
        let head = |stream: u32| Part { ends: false, ..of(stream) };
        for (n, stream) in (0_u64..).zip([1, 3, 5]) {
            calls.part(CLIENT, head(stream), n * 100, n * 100 + 100, 1_000 * (n + 1), true);
        }
        for (stream, from, bytes, at) in [(1, 0, 100, 10_000), (3, 200, 30_000, 20_000)] {
            calls.part(SERVER, head(stream), from, from + 100, at, true);
            calls.unseen(SERVER, from + 100, from + 100 + bytes, at + 1_000);
        }
        calls.unseen(CLIENT, 300, 300 + client, 25_000);
        calls.part(CLIENT, head(7), 400, 500, 30_000, true);
        calls.part(SERVER, head(7), 40_000, 40_100, 40_000, true);
        calls.unseen(SERVER, 40_100, 130_100, 41_000);
        calls.resolve();
        let response = calls.all[2].response.as_ref().unwrap();
        (response.end, response.bytes)
    }

    #[test]
    fn an_answer_that_was_not_seen_is_in_the_bytes_with_most_for_it_before_the_client_asks_again() {
        assert_eq!(answered_among_unseen(0), (21_000, 15_000));
    }

    #[test]
    fn what_the_client_sends_without_a_head_that_is_seen_does_not_make_its_request_later() {
        assert_eq!(answered_among_unseen(20), (21_000, 15_000));
    }

    /// Stream 1 begins, some bytes are not seen, and a stream begins whose number is higher by so much.
    #[test]
    fn bytes_that_were_not_seen_hold_at_most_64_streams() {
        let under_way = |further: u32| {
            let mut calls = Calls::new(Protocol::Http2, 0);
            calls.part(CLIENT, of(1), 0, 100, 1_000, true);
            calls.unseen(CLIENT, 100, 10_000, 2_000);
            calls.part(CLIENT, of(1 + further), 10_000, 10_100, 3_000, true);
            calls.all.len()
        };
        // Two numbers for each stream: 63 between the two.
        assert_eq!((under_way(128), under_way(130)), (65, 2));
    }

    #[test]
    fn a_stream_that_is_2048_numbers_ahead_of_the_last_may_begin_and_none_further() {
        let mut calls = Calls::new(Protocol::Http2, 0);
        calls.part(CLIENT, of(1), 0, 100, 1_000, true);
        assert!(calls.may_begin(CLIENT, 2_049) && !calls.may_begin(CLIENT, 2_051));
    }

    #[test]
    fn a_response_within_50_us_of_another_one_s_bytes_says_nothing_of_its_server() {
        let behind = |later: u64| {
            let mut calls = Calls::new(Protocol::Http1, 0);
            [0, 100].into_iter().for_each(|from| calls.part(CLIENT, WHOLE, from, from + 100, 1_000, true));
            calls.part(SERVER, WHOLE, 0, 100, 500_000, true);
            calls.part(SERVER, WHOLE, 100, 200, 500_000 + later, true);
            calls.all[1].behind
        };
        assert_eq!((behind(50_000), behind(50_001)), (true, false));
    }

    /// A response ends, and of what the acknowledgement covers the last byte passed so much later.
    #[test]
    fn an_acknowledgement_of_what_came_a_millisecond_later_was_held_back() {
        let acked = |later: u64| {
            let mut calls = Calls::new(Protocol::Http1, 0);
            calls.part(CLIENT, WHOLE, 0, 100, 1_000, true);
            calls.part(SERVER, WHOLE, 0, 100, 500_000, true);
            calls.acknowledged(200, Some(500_000 + later), 9_000_000, true, None, Way::default());
            calls.all[0].acked_at
        };
        assert_eq!((acked(1_000_000), acked(1_000_001)), (Some(9_000_000), Some(BY_THE_WAY)));
    }
}
