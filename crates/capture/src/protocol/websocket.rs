//! WebSocket (RFC 6455), which an HTTP/1.1 connection goes on with after `101 Switching Protocols`: its frames.
//!
//! Where each message of the server answers one of the client, in order, that is who answers whom. What a server sends of its own accord, or in several
//! messages, answers nothing that can be read: such a stretch is left to turns, and said to be unread.

use super::{CLIENT, Head, Part};

/// RFC 6455, section 5.2: the last frame of its message, and the bits that only extensions set, of which compression has the first (RFC 7692).
const FIN: u8 = 0x80;
const RESERVED: u8 = 0x30;
/// What a client sends is masked, what a server sends is not (section 5.1).
const MASK: u8 = 0x80;
/// Opcodes: text and binary after continuation; from close on, frames are the protocol's own.
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PONG: u8 = 10;
/// Lengths that do not fit in seven bits follow in two bytes, or in eight.
const IN_TWO: u8 = 126;
const IN_EIGHT: u8 = 127;

/// A client's packet begins with a frame.
pub(super) fn is_client(bytes: &[u8]) -> bool {
    bytes.len() >= 2 && !matches!(head(CLIENT, bytes), Head::Bad)
}

pub(super) fn head(side: usize, bytes: &[u8]) -> Head {
    let &[first, second, ..] = bytes else { return Head::More };
    let opcode = first & 0x0f;
    let masked = second & MASK != 0;
    if first & RESERVED != 0 || !matches!(opcode, 0..=BINARY | CLOSE..=PONG) || masked != (side == CLIENT) {
        return Head::Bad;
    }
    let long = |length: Option<u64>, of: u64| length.map(|length| (2 + of, length));
    let told = match second & !MASK {
        IN_TWO => long(bytes[2..].first_chunk().map(|b| u64::from(u16::from_be_bytes(*b))), 2),
        IN_EIGHT => long(bytes[2..].first_chunk().map(|b| u64::from_be_bytes(*b)), 8),
        short => Some((2, u64::from(short))),
    };
    let Some((head, length)) = told else { return Head::More };
    // The mask is four bytes.
    let bytes = (head + if masked { 4 } else { 0 }).saturating_add(length.min(u64::MAX >> 8));
    let part = match opcode {
        CLOSE.. => Part::CONTROL,
        _ => Part { ends: first & FIN != 0, ..Part::message(0) },
    };
    Head::Unit { bytes, part }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SERVER;
    use crate::protocol::tests::read;
    use crate::{Protocol, ReadCounts};

    /// After an upgrade three requests, each answered by so many messages; of each packet so much is stored. How many calls other than
    /// turns there are, and what is counted.
    fn pushed(messages: usize, kept: usize) -> (usize, ReadCounts) {
        let asked = b"GET /feed HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
        let agreed = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
        let mut writes = vec![(CLIENT, asked.to_vec()), (SERVER, agreed.to_vec())];
        for _ in 0..3 {
            writes.push((CLIENT, [[0x82, MASK | 20].as_slice(), &[7; 24]].concat()));
            let answer = [[0x82, 126, 1, 44].as_slice(), &[7; 300]].concat();
            writes.extend((0..messages).map(|_| (SERVER, answer.clone())));
        }
        let (calls, counts) = read(&writes, 1_448, kept);
        (calls.len(), counts)
    }

    #[test]
    fn an_upgrade_is_a_handshake_and_no_request() {
        // Of the first two turns one is read as a call; the other turns are calls.
        assert_eq!((pushed(1, 1_448).0, pushed(1, 30).0), (1, 1));
    }

    #[test]
    fn a_message_that_answers_none_is_pushed_and_its_requests_are_not_read() {
        for kept in [1_448, 30] {
            let told = |counts: ReadCounts| (counts.protocol, counts.read, counts.unread);
            assert_eq!(told(pushed(1, kept).1), (Some(Protocol::WebSocket), 3, 0), "{kept} bytes of each packet");
            assert_eq!(told(pushed(2, kept).1), (Some(Protocol::WebSocket), 0, 3), "{kept} bytes of each packet");
        }
    }

    #[test]
    fn a_frame_tells_its_length_in_seven_bits_or_in_two_bytes_or_in_eight() {
        let unit = |bytes, ends| Head::Unit { bytes, part: Part { ends, ..Part::message(0) } };
        assert_eq!(head(SERVER, &[0x82, 125]), unit(2 + 125, true));
        assert_eq!(head(SERVER, &[0x82, 126, 1, 0]), unit(4 + 256, true));
        assert_eq!(head(SERVER, &[0x02, 127, 0, 0, 0, 0, 0, 1, 0, 0]), unit(10 + 65_536, false));
        assert_eq!(head(SERVER, &[0x82, 126, 1]), Head::More);
        // With its mask, and compressed.
        assert_eq!(head(CLIENT, &[0xc1, 0x80 | 5]), unit(2 + 4 + 5, true));
        assert_eq!(head(CLIENT, &[0x89, 0x80]), Head::Unit { bytes: 6, part: Part::CONTROL });
        assert_eq!((head(CLIENT, &[0x82, 5]), head(SERVER, &[0x83, 5])), (Head::Bad, Head::Bad));
    }
}
