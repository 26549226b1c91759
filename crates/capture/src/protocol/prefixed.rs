//! Frames of an unknown protocol, each of which begins with its own length: as RPC of many houses has it (Erlang's `packet 4`, Finagle's Mux, length-prefixed
//! protocol buffers). Several may be in one write, which turns and ends of writes do not tell.
//!
//! A length may be there by chance, so the frames are believed only once both sides have shown them: until then a connection whose server stands within a
//! frame, or has said what was not asked for, as its client goes on speaks another protocol.

use super::frames::{LARGEST, be32, le32};
use super::{Head, Part};
use serde::{Deserialize, Serialize};

/// What the length does not count: nothing, itself, or a number behind it as well.
const HEADS: [u8; 3] = [0, 4, 8];
/// Frames that are not stored are not shorter.
const SHORTEST: usize = 16;
/// More frames are not sought in a packet.
const MOST: usize = 4_096;
/// So often a client may go on with requests unanswered before its server has once answered them all.
const PATIENCE: u8 = 3;

/// Where a frame ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Form {
    little_endian: bool,
    head: u8,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Prefixed {
    form: Form,
    /// All requests so far have been answered, frame by frame.
    proven: bool,
    unsettled: u8,
}

/// What the connection shows as its client goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// All that was asked has been answered, with as many frames.
    Settled,
    /// Answers are missing.
    Unsettled,
    /// The server is within a frame, or has said what nothing asked for.
    Another,
}

/// How the frames of which a client's packet consists, `payload` bytes in all, are told; None where it does not end with one.
pub(super) fn is_client(bytes: &[u8], payload: usize) -> Option<Form> {
    let forms = [false, true].into_iter().flat_map(|little_endian| HEADS.map(|head| Form { little_endian, head }));
    forms.into_iter().find(|form| form.fills(bytes, payload))
}

impl Form {
    /// Bytes of the frame that begins here.
    fn frame(self, bytes: &[u8]) -> Option<u64> {
        let told = if self.little_endian { le32(bytes, 0) } else { be32(bytes, 0) }?;
        // A length that counts itself is four at least.
        let least = if self.head == 0 { 5 } else { 1 };
        (least..LARGEST).contains(&told).then_some(u64::from(told) + u64::from(self.head))
    }

    /// Frames fill a client's packet: all that are stored, and, where the second is not, as many as long as the first.
    fn fills(self, bytes: &[u8], payload: usize) -> bool {
        let first = self.frame(bytes).map_or(0, |frame| frame as usize);
        if bytes.len() < payload && first >= bytes.len() {
            return first >= SHORTEST && payload.is_multiple_of(first);
        }
        let mut at = 0;
        for _ in 0..MOST {
            let Some(frame) = bytes.get(at..).and_then(|rest| self.frame(rest)) else { return false };
            at = at.saturating_add(frame as usize);
            if at >= payload {
                return at == payload;
            }
        }
        false
    }
}

impl Prefixed {
    pub fn new(form: Form) -> Prefixed {
        Prefixed { form, proven: false, unsettled: 0 }
    }

    pub fn head(&self, bytes: &[u8]) -> Head {
        if bytes.len() < 4 {
            return Head::More;
        }
        self.form
            .frame(bytes)
            .map_or(Head::Bad, |bytes| Head::Unit { bytes, part: Part { ends: true, ..Part::message(0) } })
    }

    /// Until then what stands where a frame should begin denies the protocol.
    pub fn is_proven(&self) -> bool {
        self.proven
    }

    /// The client goes on, of a connection that is not proven: true where it speaks another protocol.
    pub fn is_disproved(&mut self, shows: Shows) -> bool {
        match shows {
            Shows::Settled => self.proven = true,
            Shows::Unsettled => self.unsettled += 1,
            Shows::Another => return true,
        }
        self.unsettled >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;
    use crate::protocol::tests::{self, Write};
    use crate::protocol::{CLIENT, SERVER};

    /// A frame of so many bytes, of which its length does not count `head`.
    fn frame(bytes: u32, head: u32, little_endian: bool) -> Vec<u8> {
        let told = bytes - head;
        let mut all = if little_endian { told.to_le_bytes() } else { told.to_be_bytes() }.to_vec();
        all.resize(bytes as usize, 0xee);
        all
    }

    /// Turns of a client that asks for three frames in one write, and of a server that answers each in its own.
    fn three_at_once(head: u32, little_endian: bool) -> Vec<Write> {
        let asked = (CLIENT, [56; 3].map(|bytes| frame(bytes, head, little_endian)).concat());
        let answers = [4_698, 8_949, 3_528].map(|bytes| (SERVER, frame(bytes, head, little_endian)));
        (0..4).flat_map(|_| [vec![asked.clone()], answers.to_vec()].concat()).collect()
    }

    #[test]
    fn several_requests_in_one_write_are_told_by_their_lengths() {
        for (head, little_endian) in [(0, true), (0, false), (4, true), (4, false), (8, false)] {
            for kept in [30, 1_448] {
                let (calls, counts) = tests::read(&three_at_once(head, little_endian), 1_448, kept);
                let sizes: Vec<u64> = calls.iter().take(3).map(|call| call.response_bytes).collect();
                assert_eq!(
                    (calls.len(), counts.protocol),
                    (12, Some(Protocol::Prefixed)),
                    "{head} {little_endian} {kept}"
                );
                assert_eq!(sizes, [4_698, 8_949, 3_528]);
            }
        }
    }

    #[test]
    fn lengths_that_only_the_client_has_are_none() {
        let told = |answer: Vec<u8>| {
            let pair = || [(CLIENT, frame(56, 0, true)), (SERVER, answer.clone())];
            let writes: Vec<Write> = (0..12).flat_map(|_| pair()).collect();
            [1_448, 30].map(|kept| tests::read(&writes, 1_448, kept).1.protocol)
        };
        assert_eq!(told(frame(4_000, 0, true)), [Some(Protocol::Prefixed); 2]);
        assert_eq!(told(vec![0; 4_000]), [None; 2], "zeros are no length");
        assert_eq!(told([frame(400, 0, true), vec![0xee; 3_600]].concat()), [None; 2], "a frame that more follows");
        assert_eq!(told(frame(4_000, 0, true)[..3_999].to_vec()), [None; 2], "a frame that has not ended");
    }

    /// Each request has two frames, and its answer one: then there are no calls of one frame each.
    #[test]
    fn a_server_that_has_not_answered_all_frames_when_its_client_goes_on_for_the_third_time_has_others() {
        let turns = |late: usize| {
            let begun = (0..late).flat_map(|_| [(CLIENT, frame(56, 0, true).repeat(2)), (SERVER, frame(400, 0, true))]);
            let rest = vec![(CLIENT, frame(56, 0, true)), (SERVER, frame(400, 0, true).repeat(1 + late))];
            let settled = (0..9).flat_map(|_| [(CLIENT, frame(56, 0, true)), (SERVER, frame(400, 0, true))]);
            let writes: Vec<Write> = begun.chain(rest).chain(settled).collect();
            tests::read(&writes, 1_448, 1_448).1.protocol
        };
        assert_eq!([turns(2), turns(3)], [Some(Protocol::Prefixed), None]);
    }

    #[test]
    fn a_packet_of_frames_ends_with_one() {
        let is = |bytes: &[u8], payload: usize| is_client(bytes, payload).map(|form| (form.little_endian, form.head));
        assert_eq!(is(&frame(56, 0, true).repeat(3), 168), Some((true, 0)));
        assert_eq!(is(&frame(56, 0, true).repeat(3)[..167], 167), None);
        assert_eq!(is(&frame(56, 4, false).repeat(4_096), 56 * 4_096), Some((false, 4)));
        assert_eq!(is(&frame(56, 4, false).repeat(4_097), 56 * 4_097), None);
        assert_eq!(is(&frame(16, 0, true), 48), Some((true, 0)), "two more are not stored");
        assert_eq!([is(&frame(16, 0, true), 47), is(&frame(15, 0, true), 45)], [None; 2]);
    }

    #[test]
    fn a_frame_of_128_mebibytes_is_none() {
        let head = |told: u32| Prefixed::new(Form { little_endian: false, head: 0 }).head(&told.to_be_bytes());
        assert!(matches!(head((1 << 27) - 1), Head::Unit { .. }) && head(1 << 27) == Head::Bad);
        assert_eq!(head(4), Head::Bad, "its own length alone");
    }
}
