//! A request that is under way, and its response.

use crate::Call;
use crate::again::Again;
use crate::way::Way;
use serde::{Deserialize, Serialize};

/// Acknowledged by a packet that was sent for something else: when the acknowledged had come is not said.
pub(super) const BY_THE_WAY: u64 = u64::MAX;

/// A request and its response, as far as they have come.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct InFlight {
    pub stream: u32,
    pub note: u8,
    pub request: Option<Span>,
    pub response: Option<Span>,
    /// Or [`BY_THE_WAY`].
    pub acked_at: Option<u64>,
    /// The way to the client and back as it was then.
    pub way: Way,
    /// The response begins right behind another one.
    pub behind: bool,
    /// The server has said more than a head.
    pub said: bool,
    /// When a side reset its stream before the answer was whole: nothing will answer it.
    pub aborted: Option<u64>,
}

/// One message: when and where its bytes passed.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Span {
    pub start: u64,
    pub end: u64,
    /// Place of its last byte.
    pub to: u64,
    pub bytes: u64,
    /// What of it passed once more since its last byte.
    pub again: Option<Again>,
    pub ended: bool,
    /// Its end was not seen.
    pub guessed: bool,
}

impl Span {
    pub fn begin(at: u64) -> Span {
        Span { start: at, ..Span::default() }
    }

    /// Of a message among bytes whose messages were not seen.
    pub fn unseen(at: u64, to: u64) -> Span {
        Span { start: at, end: at, to, ended: true, guessed: true, ..Span::default() }
    }

    /// From when on an answer to it may come: what its end is taken for, where it was not seen, may be another message.
    pub fn may_be_answered(&self) -> u64 {
        if self.guessed { self.start } else { self.end }
    }

    pub fn extend(&mut self, from: u64, to: u64, at: u64) {
        (self.end, self.again) = (self.end.max(at), None);
        self.to = self.to.max(to);
        self.bytes += to - from;
    }
}

impl InFlight {
    /// It has been answered, in part at least, though the client has not ended its side: ends it.
    pub fn goes_on(&mut self) -> bool {
        match (&mut self.request, &mut self.response) {
            (Some(request), Some(response)) if self.said && !request.ended => {
                (request.ended, response.ended) = (true, true);
                true
            }
            _ => false,
        }
    }

    /// Heads alone have opened the stream, of both sides, and its client has something to say: its request begins.
    pub fn opened(&mut self, at: u64) {
        if self.response.is_some() && !self.said && self.request.as_ref().is_some_and(|request| !request.ended) {
            (self.request, self.response, self.acked_at) = (Some(Span::begin(at)), None, None);
        }
    }

    /// A side has ended the stream, as far as was seen: its response, or its client's last request whose answer is done.
    pub fn is_the_last(&self) -> bool {
        let ended = |span: &Option<Span>| span.as_ref().is_some_and(|span| span.ended);
        self.aborted.is_some() || ended(&self.request) || ended(&self.response)
    }

    pub fn request_bytes(&self) -> u64 {
        self.request.as_ref().map_or(u64::MAX, |request| request.bytes)
    }

    pub fn asked_after(&self, at: u64) -> bool {
        self.request.as_ref().is_some_and(|request| request.start > at)
    }

    pub fn row(self) -> Option<Call> {
        let request = self.request?;
        let response = self.response;
        let waited = response.as_ref().map(|r| r.start.saturating_sub(request.end));
        let acked = |acked: u64| Some(acked).filter(|&at| at != BY_THE_WAY);
        let given_up_ns = self.aborted.filter(|_| response.as_ref().is_none_or(|response| !response.ended));
        let come = response.as_ref().filter(|_| given_up_ns.is_none());
        let had = come.zip(self.acked_at).map(|(r, at)| self.way.had(r.end, acked(at), 0));
        Some(Call {
            stream: self.stream,
            request_start_ns: request.start,
            request_end_ns: request.end,
            request_bytes: request.bytes,
            response_start_ns: response.as_ref().map(|r| r.start),
            response_end_ns: response.as_ref().map(|r| r.end),
            response_bytes: response.as_ref().map_or(0, |r| r.bytes),
            delivered_ns: had.map(|(had, _)| had),
            unsure_ns: had.map_or(0, |(_, unsure)| unsure),
            given_up_ns,
            service_ns: waited.filter(|_| !self.behind),
        })
    }
}
