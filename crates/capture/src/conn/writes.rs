//! Where writes of the applications ended, by PSH: a host sets it on the last segment of what was written.
//!
//! A request that leaves while an answer is on its way cannot be told from one that follows the answer by what it acknowledges, if the tap is next to
//! its host. An answer that has not ended shows it: requests are in flight together until there are as many ends of answers as of requests.
//! An answer has never ended before it was asked for, so an end too many is no end of an answer. Hosts set PSH within an answer too (Linux at every
//! half of the largest window), on full segments; where there are too many ends, those with a short segment count alone.

use super::Conn;
use crate::decode::Segment;
use crate::{Direction, Sink, Write, WriteCounts};
use serde::{Deserialize, Serialize};

/// So many in flight together with as many ends of answers, each after its request, are no chance.
const LONG: usize = 8;
/// Parts of a request follow each other within this, and within a round trip.
const TOGETHER: u64 = 50_000;
/// At most one request of more than so many leaves within a round trip of the one before and is answered by itself all the same.
const RARE: usize = 4;
/// More requests than this in one stretch are not kept,
const MOST: usize = 1024;
/// and so many without an answer show that answers have no ends here.
const UNANSWERED: usize = 64;

/// What every host takes in a segment (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u32 = 536;

impl Conn {
    /// A segment of `d` with PSH, whose payload begins at `seq`, brought something new.
    pub(super) fn write_ended(&mut self, s: &Segment, d: usize, seq: u32, at: u64) {
        let short = !s.payload.is_multiple_of(self.segment_size(d, s));
        if short && self.dirs[1 - d].stats.payload_bytes == 0 {
            self.writes.unasked();
        }
        let to = self.dirs[d].seq.place_of(seq.wrapping_add(s.payload));
        let together = self.dirs.iter().filter_map(|d| d.half.least()).sum::<u64>().min(TOGETHER);
        self.writes.ended(d == self.client, End { to, at, short, part: false }, together);
    }

    /// A segment of `d` with PSH: where its payload begins its run and is no full segment, that is what its application wrote first. TCP keeps the
    /// border when it sends again.
    pub(super) fn first_write_ended(&mut self, s: &Segment, d: usize, seq: u32) {
        let (from, short) = (self.dirs[d].seq.place_of(seq), s.payload < self.segment_size(d, s));
        if let Some(run) = self.run.as_mut().filter(|run| short && run.dir == d && run.from == from) {
            run.written = s.payload;
        }
    }

    /// What a full segment of `d` carries: what its receiver offered, else the largest seen, and no less than any host takes.
    fn segment_size(&self, d: usize, s: &Segment) -> u32 {
        self.told_segment(d, s).unwrap_or(self.dirs[d].stats.largest_segment.max(DEFAULT_MSS))
    }
}

/// Ends of writes since the connection was last idle.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Writes {
    turn: u32,
    requests: Vec<End>,
    answers: Vec<End>,
    /// Requests that are parts of those before them,
    parts: usize,
    /// and some that turned out to be none.
    wholes: usize,
    /// Answers that were missing when the last request began, if the answer before it seemed to be whole.
    in_step: Option<usize>,
    /// Ends on full segments do not count.
    short_only: bool,
    /// The ends are no messages.
    spoilt: bool,
    counts: WriteCounts,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct End {
    to: u64,
    at: u64,
    short: bool,
    /// It left together with the request before, and is a part of it as far as the answers show.
    part: bool,
}

impl Writes {
    /// A request begins, turn number `turn`, and its client has all that passed the tap; the last of it was the `end` of a write, or not. A connection
    /// that asks once for each answer as if nothing were missing has lost count, by a request in two parts or an end that was not seen.
    pub fn begin(&mut self, connection: u32, turn: u32, end: bool, sink: &mut dyn Sink) {
        let waiting = self.asked().saturating_sub(self.answers.len());
        self.spoilt |= end && waiting > 0 && self.in_step == Some(waiting);
        self.in_step = Some(waiting).filter(|_| end);
        if self.spoilt || waiting == 0 {
            self.close(connection, turn, true, sink);
            self.turn = turn;
        }
    }

    /// A write ended, and the other side has never said anything.
    fn unasked(&mut self) {
        self.counts.unasked += 1;
    }

    /// A request begins before its client has all that passed the tap.
    pub fn overlaps(&mut self) {
        self.in_step = None;
    }

    /// A segment with PSH. An application may write a request in parts: those within `together` of each other are one.
    fn ended(&mut self, request: bool, mut end: End, together: u64) {
        if self.spoilt {
            return;
        }
        let answered = self.answers.last().map_or(0, |e| e.at);
        let ends = if request { &mut self.requests } else { &mut self.answers };
        // Nearly always behind all others.
        let place = ends.partition_point(|e| e.to < end.to);
        if ends.get(place).is_some_and(|e| e.to == end.to) {
            return;
        }
        end.part = request && ends.last().is_some_and(|last| last.at > answered && last.at + together >= end.at);
        self.parts += usize::from(end.part);
        ends.insert(place, end);
        if self.answers.len() > self.asked() {
            // An answer too many: a request that seemed to be a part of another one was answered by itself, if that is rare.
            let rare = RARE * (self.wholes + 1) < self.asked();
            let part = self.requests.iter_mut().find(|e| e.part).filter(|_| rare);
            match part {
                Some(whole) => {
                    whole.part = false;
                    (self.parts, self.wholes) = (self.parts - 1, self.wholes + 1);
                }
                None => self.short_only = true,
            }
        }
        if self.short_only && !request {
            self.answers.retain(|e| e.short);
        }
        let (asked, answered) = (self.asked(), self.answers.len());
        self.spoilt = answered > asked || self.requests.len() > MOST || asked > answered + UNANSWERED;
    }

    /// Requests, each with all its parts.
    fn asked(&self) -> usize {
        self.requests.len() - self.parts
    }

    /// What was in flight together is over before turn number `turn`, or the capture is (`whole` is false then).
    fn close(&mut self, connection: u32, turn: u32, whole: bool, sink: &mut dyn Sink) {
        if let ([asked], [answered], false) = (self.requests.as_slice(), self.answers.as_slice(), self.spoilt)
            && asked.at <= answered.at
        {
            // Nearly all are so.
            self.counts.shown += 1;
        } else {
            self.tell(connection, turn, whole, sink);
        }
        self.requests.clear();
        self.answers.clear();
        self.requests.shrink_to(8);
        self.answers.shrink_to(8);
        (self.parts, self.wholes, self.in_step) = (0, 0, None);
        (self.short_only, self.spoilt) = (false, false);
    }

    fn tell(&mut self, connection: u32, turn: u32, whole: bool, sink: &mut dyn Sink) {
        if self.are_cut() {
            // What follows an end on a full segment goes on with its request.
            let full: Vec<bool> = self.requests.iter().map(|end| !end.short).collect();
            self.requests.iter_mut().skip(1).zip(full).for_each(|(end, goes_on)| end.part |= goes_on);
            self.answers.retain(|end| end.short);
        }
        // Each request ends with its last part.
        let starts: Vec<u64> = self.requests.iter().filter(|e| !e.part).map(|e| e.at).collect();
        let next = self.requests.iter().skip(1).map(|e| e.part).chain([false]);
        let asked: Vec<End> = self.requests.iter().zip(next).filter(|(_, part)| !part).map(|(e, _)| *e).collect();
        let caused = || asked.iter().zip(&self.answers).all(|(asked, answered)| asked.at <= answered.at);
        let apart = !self.spoilt && asked.len() == self.answers.len() && caused();
        match (apart, asked.len()) {
            (_, 0) if self.answers.is_empty() => {}
            (true, 1) => self.counts.shown += 1,
            (true, count) => {
                self.counts.apart += 1;
                if count >= LONG {
                    self.counts.shown += count as u32;
                }
                let (turn, turns) = (self.turn, turn - self.turn);
                for (ends, direction) in [(&asked, Direction::ToServer), (&self.answers, Direction::ToClient)] {
                    for (&End { to, at, .. }, &start_ns) in ends.iter().zip(&starts) {
                        sink.write(Write { connection, direction, turn, turns, to, start_ns, at_ns: at });
                    }
                }
            }
            (false, count) => {
                self.counts.odd += u32::from(whole);
                self.counts.several += u32::from(whole && count > 1);
            }
        }
    }

    /// Both sides have ends on full segments, and without these there are as many requests as answers, too: an upload and an answer that offload cut, and
    /// no messages of whole segments.
    fn are_cut(&self) -> bool {
        let short = |ends: &[End]| ends.iter().filter(|end| end.short).count();
        let (requests, answers) = (short(&self.requests), short(&self.answers));
        requests == answers && 0 < requests && requests < self.requests.len() && answers < self.answers.len()
    }

    /// The capture is over, after so many turns.
    pub fn finish(&mut self, connection: u32, turns: u32, sink: &mut dyn Sink) -> WriteCounts {
        self.close(connection, turns, false, sink);
        self.counts
    }
}
