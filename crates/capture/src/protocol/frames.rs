//! Protocols whose messages are frames of told length, one request and one response each: Kafka, MongoDB, framed Thrift.

use super::{Head, Part, SERVER};
use serde::{Deserialize, Serialize};

/// Longer frames are none: Kafka's brokers take 100 MiB, MongoDB's servers 48 MB.
pub(super) const LARGEST: u32 = 1 << 27;
/// Requests whose numbers are kept until they are answered.
const MOST: usize = 1_024;
/// Kafka's requests: their kinds, and the versions of them.
const KINDS: u16 = 100;
/// Versions of a kind of Kafka's requests; what has a higher number is none.
const VERSIONS: u16 = 30;
/// MongoDB's codes, as far as they are in use: OP_REPLY, OP_QUERY, OP_GET_MORE, OP_COMPRESSED, OP_MSG.
const OP_REPLY: u32 = 1;
const CODES: [u32; 5] = [OP_REPLY, 2004, 2005, 2012, OP_MSG];
const OP_MSG: u32 = 2013;
/// OP_MSG: another one follows without being asked for.
const MORE_TO_COME: u32 = 2;
/// Strict binary Thrift: its version, and the kinds of its messages.
const THRIFT: u32 = 0x8001_0000;
const CALL: u32 = 1;
const ONEWAY: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Kafka,
    MongoDb,
    Thrift,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Frames {
    pub kind: Kind,
    /// Numbers of requests that have not been answered, in order.
    asked: Vec<u32>,
    /// A server has answered with a frame of it.
    answered: bool,
}

pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
}

pub(super) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    be32(bytes, at).map(u32::swap_bytes)
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
}

/// A client's packet of so many bytes begins with a request of one of these.
pub(super) fn is_client(bytes: &[u8], payload: usize) -> Option<Kind> {
    // A frame that ends with its packet, or fills it.
    let fits = |length: u32| length as usize == payload || length as usize > payload.max(1_000);
    let told = be32(bytes, 0)?.saturating_add(4);
    if fits(told) && kafka_asks(bytes) {
        return Some(Kind::Kafka);
    }
    if fits(told) && thrift(bytes).is_some_and(|kind| kind == CALL || kind == ONEWAY) {
        return Some(Kind::Thrift);
    }
    (fits(le32(bytes, 0)?) && le32(bytes, 8) == Some(0) && mongo_code(bytes).is_some_and(|code| code != OP_REPLY))
        .then_some(Kind::MongoDb)
}

/// Kind, version, number, and the client's name: its length, or -1 for none.
fn kafka_asks(bytes: &[u8]) -> bool {
    let (Some(kind), Some(version), Some(name)) = (be16(bytes, 4), be16(bytes, 6), be16(bytes, 12)) else {
        return false;
    };
    let text = bytes.get(14..14 + usize::from(name).min(8)).unwrap_or(&[]);
    let named = name == u16::MAX || name <= 255 && text.iter().all(u8::is_ascii_graphic);
    kind <= KINDS && version <= VERSIONS && named
}

fn mongo_code(bytes: &[u8]) -> Option<u32> {
    le32(bytes, 12).filter(|code| CODES.contains(code))
}

/// The kind of a Thrift message.
fn thrift(bytes: &[u8]) -> Option<u32> {
    be32(bytes, 4)
        .filter(|word| word & 0xffff_ff00 == THRIFT)
        .map(|word| word & 0xff)
        .filter(|kind| (1..=4).contains(kind))
}

impl Frames {
    pub fn new(kind: Kind) -> Frames {
        Frames { kind, asked: Vec::new(), answered: false }
    }

    /// A place of `side` that is no frame denies the protocol, where no server has answered with one: a client's packet may look like a request by chance,
    /// as a length before zeros does.
    pub fn is_denied(&self, side: usize) -> bool {
        side == SERVER && !self.answered
    }

    /// A message of `side` may begin so; a Kafka broker's only if its number was asked for.
    pub fn begins(&self, side: usize, bytes: &[u8]) -> bool {
        match self.kind {
            Kind::Kafka if side == SERVER => be32(bytes, 4).is_some_and(|number| self.asked.contains(&number)),
            Kind::Kafka => kafka_asks(bytes),
            Kind::MongoDb => {
                let answers = le32(bytes, 8).is_some_and(|to| to != 0);
                mongo_code(bytes).is_some() && answers == (side == SERVER)
            }
            Kind::Thrift => thrift(bytes).is_some(),
        }
    }

    pub fn head(&mut self, side: usize, bytes: &[u8]) -> Head {
        let enough = match self.kind {
            Kind::Kafka if side == SERVER => 8,
            Kind::Kafka => 14,
            Kind::MongoDb => 20,
            Kind::Thrift => 8,
        };
        if bytes.len() < enough {
            return Head::More;
        }
        let length = match self.kind {
            Kind::MongoDb => le32(bytes, 0),
            _ => be32(bytes, 0).map(|length| length.saturating_add(4)),
        };
        let Some(length) = length.filter(|length| (enough as u32..LARGEST).contains(length)) else { return Head::Bad };
        if !self.begins(side, bytes) {
            return Head::Bad;
        }
        self.answered |= side == SERVER;
        let part = Part { ends: self.ends(side, bytes), ..Part::message(0) };
        Head::Unit { bytes: u64::from(length), part }
    }

    fn ends(&mut self, side: usize, bytes: &[u8]) -> bool {
        match self.kind {
            Kind::Kafka => {
                let number = be32(bytes, 8).unwrap_or(0);
                if side != SERVER {
                    if self.asked.len() >= MOST {
                        self.asked.remove(0);
                    }
                    self.asked.push(number);
                } else if let Some(place) = self.asked.iter().position(|&asked| Some(asked) == be32(bytes, 4)) {
                    self.asked.drain(..=place);
                }
                true
            }
            Kind::MongoDb => {
                mongo_code(bytes) != Some(OP_MSG) || le32(bytes, 16).is_some_and(|f| f & MORE_TO_COME == 0)
            }
            Kind::Thrift => thrift(bytes) != Some(ONEWAY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;
    use crate::protocol::CLIENT;
    use crate::protocol::tests::{self, Write};

    /// A request of Kafka, of so many bytes behind its length.
    fn kafka(kind: u16, version: u16, number: u32, length: u32) -> Vec<u8> {
        let mut all = length.to_be_bytes().to_vec();
        all.extend([kind.to_be_bytes(), version.to_be_bytes()].concat());
        all.extend(number.to_be_bytes());
        all.extend([0, 3, b'a', b'b', b'c']);
        all.resize(4 + length as usize, 0xee);
        all
    }

    #[test]
    fn a_packet_that_one_frame_fills_is_of_its_protocol_and_another_is_of_none() {
        let is = |bytes: &[u8]| is_client(bytes, bytes.len());
        let request = kafka(1, 11, 7, 60);
        assert!(is(&request) == Some(Kind::Kafka));
        assert!(is_client(&request, 80).is_none() && is(&request[..50]).is_none());
        assert!(is(&kafka(100, 30, 7, 60)).is_some());
        assert!(is(&kafka(101, 11, 7, 60)).is_none() && is(&kafka(1, 31, 7, 60)).is_none());
        let thrift = [&[0, 0, 0, 16, 0x80, 1, 0, 1], &[7; 12][..]].concat();
        assert!(is(&thrift) == Some(Kind::Thrift));
        let mut mongo = [36_u32, 9, 0, OP_MSG, 0].map(u32::to_le_bytes).concat();
        mongo.resize(36, 1);
        assert!(is(&mongo) == Some(Kind::MongoDb));
        mongo[8] = 1;
        assert!(is(&mongo).is_none(), "an answer");
    }

    /// A length before what it counts, three times there and back: the client's holds zeros, as a request of Kafka's may, and the server's whatever it has.
    #[test]
    fn lengths_whose_answers_have_no_number_that_was_asked_for_are_none_of_kafka() {
        let counted = |body: u8, length: u32| [length.to_be_bytes().to_vec(), vec![body; length as usize]].concat();
        let read = |answer: u8, kept: usize| {
            let pair = || [(CLIENT, counted(0, 300)), (SERVER, counted(answer, 9_000))];
            let writes: Vec<Write> = (0..3).flat_map(|_| pair()).collect();
            let (calls, counts) = tests::read(&writes, 1_448, kept);
            (calls.len(), counts.protocol, counts.read, counts.unread)
        };
        let kafka = Some(Protocol::Kafka);
        assert_eq!([read(7, 1_448), read(7, 30)], [(0, None, 0, 0); 2]);
        assert_eq!([read(0, 1_448), read(0, 30)], [(0, kafka, 3, 0); 2], "zeros answer number zero");
    }

    #[test]
    fn a_broker_answers_what_was_asked_of_the_last_thousand_requests() {
        let answer = |number: u32| [20_u32.to_be_bytes(), number.to_be_bytes()].concat();
        let mut frames = Frames::new(Kind::Kafka);
        for number in 0..1_025 {
            assert!(matches!(frames.head(CLIENT, &kafka(1, 11, number, 60)), Head::Unit { bytes: 64, .. }));
        }
        assert_eq!(frames.head(SERVER, &answer(0)), Head::Bad);
        assert!(matches!(frames.head(SERVER, &answer(1)), Head::Unit { bytes: 24, .. }));
        assert_eq!(frames.head(SERVER, &answer(1)), Head::Bad, "it was answered");
    }

    #[test]
    fn a_frame_of_128_mebibytes_is_none() {
        let of = |length: u32| Frames::new(Kind::Kafka).head(CLIENT, &longer(kafka(1, 11, 7, 60), length));
        assert!(matches!(of((1 << 27) - 5), Head::Unit { .. }));
        assert_eq!(of((1 << 27) - 4), Head::Bad);
    }

    fn longer(mut frame: Vec<u8>, length: u32) -> Vec<u8> {
        frame[..4].copy_from_slice(&length.to_be_bytes());
        frame
    }
}
