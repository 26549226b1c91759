//! One direction of a connection in the order of its bytes: heads where they are stored, bodies by their lengths.

use super::calls::Calls;
use super::{Begins, Grammar, Head, Part};
use serde::{Deserialize, Serialize};

/// Packets behind a hole that wait for it to be filled: a large window.
const WAITING: usize = 4_096;
/// What is kept of each once there are many.
const MANY: usize = 64;
/// Bytes that are kept of each then: a head.
const KEPT: usize = 64;
/// No head of a message is longer.
const LONGEST_HEAD: usize = 1 << 18;

/// A data packet, or what is left of it behind bytes that were read before.
#[derive(Clone, Copy)]
pub(super) struct Packet<'a> {
    pub from: u64,
    pub to: u64,
    pub stored: &'a [u8],
    pub at: u64,
    pub pushed: bool,
}

#[derive(Serialize, Deserialize)]
struct Waiting {
    from: u64,
    to: u64,
    stored: Box<[u8]>,
    at: u64,
    pushed: bool,
}

/// What one direction is read with.
pub(super) struct Reading<'a> {
    pub side: usize,
    pub grammar: &'a mut Grammar,
    pub calls: &'a mut Calls,
    /// Places that are no message though they are stored.
    pub misread: u32,
    /// What a server answers shows that it is another protocol.
    pub denied: bool,
}

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Lane {
    /// The first byte that was not read; none before the first packet.
    next: Option<u64>,
    /// What is left of the unit in progress, and what it is.
    left: u64,
    part: Part,
    /// A head that goes on in the next packet, and when it began.
    begun: Vec<u8>,
    begun_at: u64,
    /// Where messages begin is not known: a head was not stored.
    lost: bool,
    /// The packet before ended a write.
    pushed: bool,
    /// In order of their places.
    waiting: Vec<Waiting>,
}

impl Lane {
    /// The first byte that was not read.
    pub fn place(&self) -> u64 {
        self.next.unwrap_or(0)
    }

    /// No head and no body is in progress, as far as it is known.
    pub fn is_between(&self) -> bool {
        self.left == 0 && self.begun.is_empty() && self.waiting.is_empty()
    }

    /// The last packet ended a write.
    pub fn has_written(&self) -> bool {
        self.pushed
    }

    pub fn packet(&mut self, packet: Packet<'_>, acked: u64, reading: &mut Reading<'_>) {
        let next = *self.next.get_or_insert(packet.from);
        if packet.from > next {
            self.wait(packet);
            self.go_on(acked, packet.at, reading);
        } else if packet.to > next {
            self.read(packet, reading);
            self.go_on(acked, packet.at, reading);
        } else {
            reading.calls.again(reading.side, packet.from, packet.to, packet.at);
        }
    }

    /// The first byte that comes.
    pub fn begins_at(&mut self, place: u64) {
        self.next = Some(place);
    }

    #[cold]
    fn wait(&mut self, p: Packet<'_>) {
        let place = self.waiting.partition_point(|w| w.from < p.from);
        let kept = if self.waiting.len() < MANY { p.stored.len() } else { p.stored.len().min(KEPT) };
        let stored = p.stored[..kept].into();
        self.waiting.insert(place, Waiting { from: p.from, to: p.to, stored, at: p.at, pushed: p.pushed });
    }

    /// Reads what waited for a hole that is filled, or that never will be: its receiver has it, or too much waits.
    fn go_on(&mut self, acked: u64, now: u64, reading: &mut Reading<'_>) {
        while let Some(first) = self.waiting.first() {
            let next = self.place();
            if first.from > next {
                if acked < first.from && self.waiting.len() <= WAITING {
                    return;
                }
                let unseen = Packet { from: next, to: first.from, stored: &[], at: now, pushed: false };
                self.read(unseen, reading);
                continue;
            }
            let w = self.waiting.remove(0);
            if w.to > next {
                // What came behind a hole is had once the hole is filled.
                self.read(
                    Packet { from: w.from, to: w.to, stored: &w.stored, at: w.at.max(now), pushed: w.pushed },
                    reading,
                );
            }
        }
    }

    fn read(&mut self, packet: Packet<'_>, reading: &mut Reading<'_>) {
        let already = self.place().saturating_sub(packet.from);
        let stored = packet.stored.get(already as usize..).unwrap_or(&[]);
        let packet = Packet { from: packet.from + already, stored, ..packet };
        self.next = Some(packet.to);
        self.units(packet, already == 0, reading);
        self.pushed = packet.pushed;
    }

    fn units(&mut self, p: Packet<'_>, at_front: bool, reading: &mut Reading<'_>) {
        let side = reading.side;
        if self.lost && !self.finds_again(p, at_front, reading) {
            reading.calls.unseen(side, p.from, p.to, p.at);
            return;
        }
        let mut at = p.from;
        while at < p.to {
            if self.left > 0 {
                let now = self.left.min(p.to - at);
                self.left -= now;
                reading.calls.part(side, self.part, at, at + now, p.at, self.left == 0);
                at += now;
                continue;
            }
            let held = self.begun.len() as u64;
            let Some(stored) = p.stored.get((at - p.from) as usize..).filter(|stored| !stored.is_empty()) else {
                self.lose(at - held, p, reading);
                return;
            };
            if held > 0 {
                self.begun.extend_from_slice(stored);
            }
            let bytes = if held > 0 { self.begun.as_slice() } else { stored };
            let asked = reading.calls.asked(side);
            match reading.grammar.head(side, bytes, asked) {
                Head::Unit { bytes, part } if bytes > held => {
                    self.left = bytes - held;
                    self.unit(part, at - held, at, reading);
                }
                Head::Rest(part) => {
                    self.left = u64::MAX;
                    self.unit(part, at - held, at, reading);
                }
                Head::More if p.stored.len() as u64 == p.to - p.from && bytes.len() <= LONGEST_HEAD => {
                    if held == 0 {
                        (self.begun, self.begun_at) = (stored.to_vec(), p.at);
                    }
                    return;
                }
                Head::More => {
                    if let Some(bytes) = reading.grammar.cut_control(bytes).filter(|&bytes| bytes > held) {
                        self.left = bytes - held;
                        self.unit(Part::CONTROL, at - held, at, reading);
                        continue;
                    }
                    if held == 0
                        && let Some(part) = reading.grammar.cut(side, bytes)
                    {
                        reading.calls.part(side, part, at, at + 1, p.at, false);
                        at += 1;
                    }
                    self.lose(at - held, p, reading);
                    return;
                }
                Head::Bad | Head::Unit { .. } => {
                    reading.denied |= reading.grammar.is_denied(side);
                    reading.misread += u32::from(p.stored.len() as u64 == p.to - p.from);
                    self.lose(at - held, p, reading);
                    return;
                }
            }
        }
    }

    /// A message begins with this packet, after what could not be read.
    fn finds_again(&mut self, p: Packet<'_>, at_front: bool, reading: &mut Reading<'_>) -> bool {
        let side = reading.side;
        let found = match reading.grammar.begins(side, p.stored) {
            Begins::Surely(stream) => at_front && reading.calls.may_begin(side, stream),
            Begins::BehindAWrite => at_front && self.pushed && reading.calls.may_begin(side, 0),
            Begins::Not => false,
        };
        if found {
            self.lost = false;
            reading.grammar.resynchronise(side);
            reading.calls.found_again(side);
        }
        found
    }

    /// A unit whose head began at `from`, in packets before the one at hand if that is not `at`.
    fn unit(&mut self, part: Part, from: u64, at: u64, reading: &mut Reading<'_>) {
        self.part = part;
        if from < at {
            reading.calls.part(reading.side, part, from, at, self.begun_at, false);
        }
        self.begun = Vec::new();
    }

    /// What a packet holds from `from` on cannot be read; a head that began there may have begun in packets before.
    fn lose(&mut self, from: u64, p: Packet<'_>, reading: &mut Reading<'_>) {
        self.lost = true;
        self.begun = Vec::new();
        reading.calls.unseen(reading.side, from, p.to, p.at);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CLIENT, http1};
    use super::*;
    use crate::Protocol;

    /// A head that has not ended after so many bytes: how many are kept.
    fn begun(bytes: usize) -> usize {
        let mut lane = Lane::default();
        let (mut grammar, mut calls) = (Grammar::Http1(http1::Http1::default()), Calls::new(Protocol::Http1, 0));
        let mut reading = Reading { side: CLIENT, grammar: &mut grammar, calls: &mut calls, misread: 0, denied: false };
        let head = [b"GET / HTTP/1.1\r\nA: ".as_slice(), &vec![b'a'; bytes - 19]].concat();
        for (n, stored) in head.chunks(65_536).enumerate() {
            let from = n as u64 * 65_536;
            let to = from + stored.len() as u64;
            lane.packet(Packet { from, to, stored, at: from, pushed: false }, 0, &mut reading);
        }
        lane.begun.len()
    }

    #[test]
    fn a_head_of_more_than_256_kib_is_none() {
        assert_eq!((begun(262_144), begun(262_145)), (262_144, 0));
    }

    /// A lane of which the first hundred bytes passed, the next hundred did not, and so many packets of 200 bytes behind them.
    fn behind_a_hole(packets: u64) -> Lane {
        let mut lane = Lane::default();
        let (mut grammar, mut calls) = (Grammar::Http1(http1::Http1::default()), Calls::new(Protocol::Http1, 0));
        let mut reading = Reading { side: CLIENT, grammar: &mut grammar, calls: &mut calls, misread: 0, denied: false };
        let stored = [b'x'; 200];
        let mut pass = |from: u64, to: u64| {
            let stored = &stored[..(to - from) as usize];
            lane.packet(Packet { from, to, stored, at: from, pushed: false }, 0, &mut reading);
        };
        pass(0, 100);
        (0..packets).for_each(|n| pass(200 + n * 200, 400 + n * 200));
        lane
    }

    #[test]
    fn behind_a_hole_4096_packets_wait_for_it_to_be_filled() {
        assert_eq!((behind_a_hole(4_096).place(), behind_a_hole(4_097).place()), (100, 200 + 4_097 * 200));
    }

    #[test]
    fn of_each_packet_that_waits_behind_64_others_the_first_64_bytes_are_kept() {
        let lane = behind_a_hole(70);
        let kept: Vec<usize> = lane.waiting.iter().map(|waiting| waiting.stored.len()).collect();
        assert_eq!(kept, [vec![200; 64], vec![64; 6]].concat());
    }
}
