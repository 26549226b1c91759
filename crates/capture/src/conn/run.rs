//! Runs: payload of one direction until the other side speaks. Two runs make a turn.

use super::sequence::Sequence;
use crate::again::Again;
use crate::sent::Late;
use crate::{Burst, Direction, Front, Sink, Turn};
use serde::{Deserialize, Serialize};

/// The run in progress, or the request waiting for its response.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct PayloadRun {
    /// 0 or 1, as [`super::Conn`] numbers directions.
    pub dir: usize,
    /// First and last packet; none while its bytes are known from acknowledgements alone.
    pub start: Option<u64>,
    pub end: Option<u64>,
    /// Its place in the sequence space.
    pub from: u64,
    pub to: u64,
    /// When all of it was acknowledged.
    pub acked_at: Option<u64>,
    /// By a FIN, or for a needless repetition, which says nothing of when it had come.
    pub acked_by_the_way: bool,
    /// For how long that acknowledgement may have been in a queue.
    pub ack_queued: u64,
    pub retransmitted: u64,
    /// What of it passed once more since its last byte.
    pub again: Option<Again>,
    /// How long its application waited after it had the run before.
    pub waited: Option<u64>,
    pub overlapped: bool,
    /// When its receiver had all of it, and by how much earlier that may have been; known once it has ended.
    pub delivered: Option<u64>,
    pub unsure: Option<u64>,
    /// Packets before its first were lost on their way to the tap.
    pub front_lost: bool,
    /// Its first packet as [`crate::arrivals::Arrivals`] numbers those that may have queued.
    pub front: Option<u64>,
    /// What that packet carried, and how much later it came than one without payload on empty links.
    pub first_payload: u32,
    pub size_drag: u64,
    /// How much later the run before came than it seems, which its sender waited for.
    pub drag: u64,
    /// How much later its last packet came to its receiver than an empty one that was sent alone.
    pub held: u64,
    /// What its first packet brought.
    pub first_bytes: u64,
    /// When that packet can have entered the queue in front of its receiver: not before, and not after.
    pub entered: u64,
    pub entered_by: u64,
    /// What was written first, where a packet that is not full ended with it; otherwise 0.
    pub written: u32,
    /// How long after that more was written.
    went_on: Option<u32>,
    /// How much later than their ticks its packets passed, by their time stamps.
    pub late: Option<Late>,
    /// What came before its sender can have had an acknowledgement of it.
    pub burst: u64,
    /// Its sender had a reason to send less: a loss, or a mark.
    pub slowed: bool,
    /// When its last packet but the present one came.
    pub before: Option<u64>,
    /// What had come with it.
    pub sent: u64,
    pieces: u32,
    piece: Piece,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Piece {
    start: u64,
    from: u64,
    pause: u64,
}

impl PayloadRun {
    /// Begins at `from`; `at` is none when the tap did not see it.
    pub fn new(dir: usize, from: u64, at: Option<u64>, overlapped: bool) -> PayloadRun {
        let piece = Piece { start: at.unwrap_or(0), from, pause: 0 };
        PayloadRun {
            dir,
            start: at,
            end: at,
            from,
            to: from,
            acked_at: None,
            acked_by_the_way: false,
            ack_queued: 0,
            retransmitted: 0,
            again: None,
            waited: None,
            overlapped,
            delivered: None,
            unsure: None,
            front_lost: false,
            front: None,
            first_payload: 0,
            size_drag: 0,
            drag: 0,
            held: 0,
            first_bytes: 0,
            entered: 0,
            entered_by: 0,
            written: 0,
            went_on: None,
            late: None,
            burst: 0,
            slowed: false,
            before: None,
            sent: 0,
            pieces: 1,
            piece,
        }
    }

    /// Goes on up to `to`.
    #[inline]
    pub fn extend(&mut self, to: u64, at: Option<u64>) {
        self.to = to;
        (self.acked_at, self.again) = (None, None);
        if at.is_some() {
            if self.start.is_none() {
                (self.start, self.piece.start) = (at, at.unwrap_or(0));
            }
            self.end = at;
        }
    }

    /// A packet comes that takes `link` on its way, when it reached up to `to`. A shaper lets a few packets through at once.
    pub fn goes_on(&mut self, to: u64, at: u64, link: u64) {
        if self.written > 0 && self.went_on.is_none() && to == self.from + u64::from(self.written) {
            let later = at.saturating_sub(self.start.unwrap_or(at));
            let waited = if later < link { later } else { later - link };
            self.went_on = Some(waited.try_into().unwrap_or(u32::MAX));
        }
    }

    /// Bytes of it pass again. Until all of it is acknowledged, these belong to it.
    pub fn repeat(&mut self, from: u64, bytes: u64, at: u64) {
        if self.acked_at.is_none() {
            self.again = Some(Again::with(self.again, from, from + bytes, self.end.unwrap_or(at)));
            self.end = Some(at);
        }
    }

    /// Its application went on after a pause: a new piece begins at `from`. Called before [`PayloadRun::extend`].
    pub fn split(&mut self, from: u64, at: u64, pause: u64, place: Place, sink: &mut dyn Sink) {
        if self.start.is_none() {
            return;
        }
        self.finish_piece(place, sink);
        self.pieces += 1;
        self.piece = Piece { start: at, from, pause };
    }

    /// Nothing more will come: the last of several pieces is told.
    pub fn close(&self, place: Place, sink: &mut dyn Sink) {
        if self.pieces > 1 {
            self.finish_piece(place, sink);
        }
    }

    fn finish_piece(&self, place: Place, sink: &mut dyn Sink) {
        sink.burst(Burst {
            connection: place.connection,
            direction: place.direction,
            turn: place.turn,
            piece: self.pieces - 1,
            start_ns: self.piece.start,
            end_ns: self.end.unwrap_or(self.piece.start),
            bytes: self.to - self.piece.from,
            pause_ns: self.piece.pause,
        });
    }

    fn bytes(&self) -> u64 {
        self.to - self.from
    }

    /// What its first packet says of its wait: in the queue it was from the latest moment that it can have entered on, and perhaps from the earliest.
    fn front(&self) -> Front {
        Front {
            lost: self.front_lost,
            queued_ns: self.start.unwrap_or(0).saturating_sub(self.entered_by),
            busy_ns: self.entered_by.saturating_sub(self.entered),
            drag_ns: self.drag + self.size_drag,
            written_bytes: if u64::from(self.written) < self.bytes() { self.written } else { 0 },
            went_on_ns: self.went_on,
            late: self.late,
        }
    }
}

/// Where a row belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub connection: u32,
    pub direction: Direction,
    pub turn: u32,
}

/// The row for a request and its response, either of which may be absent.
pub(super) fn turn(
    connection: u32,
    number: u32,
    request: Option<(&PayloadRun, &Sequence)>,
    response: Option<(&PayloadRun, &Sequence)>,
) -> Turn {
    let unseen = |r: Option<(&PayloadRun, &Sequence)>| r.map_or(0, |(run, seq)| seq.unseen(run.from, run.to));
    let (q, a) = (request.map(|r| r.0), response.map(|r| r.0));
    Turn {
        connection,
        turn: number,
        request_start_ns: q.and_then(|r| r.start),
        request_end_ns: q.and_then(|r| r.end),
        request_bytes: q.map_or(0, PayloadRun::bytes),
        response_start_ns: a.and_then(|r| r.start),
        response_end_ns: a.and_then(|r| r.end),
        response_acked_ns: a.and_then(|r| r.acked_at),
        response_bytes: a.map_or(0, PayloadRun::bytes),
        missing_bytes: unseen(request) + unseen(response),
        retransmitted_bytes: a.map_or(0, |r| r.retransmitted),
        think_ns: q.and_then(|r| r.waited),
        service_ns: a.and_then(|r| r.waited),
        request_pieces: q.map_or(0, |r| r.pieces),
        response_pieces: a.map_or(0, |r| r.pieces),
        overlapped: q.is_some_and(|r| r.overlapped),
        request_delivered_ns: q.and_then(|r| r.delivered),
        response_delivered_ns: a.and_then(|r| r.delivered),
        request_unsure_ns: q.and_then(|r| r.unsure).unwrap_or(0),
        response_unsure_ns: a.and_then(|r| r.unsure).unwrap_or(0),
        request_front: q.map_or(Front::default(), PayloadRun::front),
        response_front: a.map_or(Front::default(), PayloadRun::front),
    }
}
