//! PostgreSQL's protocol, version 3: messages of a type and a length. A request ends with a query or a Sync, and its response with ReadyForQuery.

use super::{CLIENT, Head, Part, SERVER};
use serde::{Deserialize, Serialize};

/// Longer messages than this are none: a row of a gigabyte is the server's limit, and none comes near.
const LARGEST: u32 = 1 << 28;
/// Numbers in the place of a version: what a client says before its first message.
const VERSION_3: u32 = 3 << 16;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
/// What a request says of its response: it ended with Flush, so that nothing says that the server is ready.
const FLUSHED: u8 = 1;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Postgres {
    /// The client asked whether it may encrypt, and the server has not answered.
    asked_to_encrypt: bool,
    /// It may: what follows is TLS.
    pub encrypted: bool,
    /// Startup and passwords pass: no requests.
    opening: bool,
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
}

fn is_sound(length: u32) -> bool {
    (4..LARGEST).contains(&length)
}

/// What a client says first.
fn opens(bytes: &[u8]) -> bool {
    let (Some(length), Some(version)) = (be32(bytes, 0), be32(bytes, 4)) else { return false };
    match version {
        SSL | GSS => length == 8,
        _ => version >> 16 == VERSION_3 >> 16 && (9..1 << 14).contains(&length),
    }
}

/// A client's packet begins so: with what opens a connection, or with queries that fill it to its end, as far as it is stored.
pub(super) fn is_client(bytes: &[u8], payload: usize) -> bool {
    if opens(bytes) {
        return be32(bytes, 0).is_some_and(|length| length as usize <= payload);
    }
    let mut at = 0;
    while at < payload {
        let (Some(kind), Some(length)) = (bytes.get(at), be32(bytes, at + 1)) else { return at > 0 };
        let first = at == 0;
        if !is_sound(length) || !(if first { b"QPB".contains(kind) } else { is_of(CLIENT, *kind) }) {
            return false;
        }
        at += 1 + length as usize;
        // A query is text, and ends with a zero.
        if first && *kind == b'Q' && bytes.get(at - 1).is_some_and(|&last| last != 0) {
            return false;
        }
    }
    at == payload
}

fn is_of(side: usize, kind: u8) -> bool {
    if side == SERVER { b"RSKZTDCEN123nstIAGHWdcVv".contains(&kind) } else { b"QPBDESCHFdcfpX".contains(&kind) }
}

/// A message of `side` may begin so.
pub(super) fn begins(side: usize, bytes: &[u8]) -> bool {
    let first: &[u8] = if side == SERVER { b"T12CEGHnt" } else { b"QPB" };
    bytes.first().is_some_and(|kind| first.contains(kind)) && be32(bytes, 1).is_some_and(is_sound)
}

impl Postgres {
    pub fn head(&mut self, side: usize, bytes: &[u8], asked: Option<u8>) -> Head {
        if side == SERVER && self.asked_to_encrypt {
            // One byte: yes, no, or an old server's error.
            self.asked_to_encrypt = false;
            self.encrypted = matches!(bytes.first(), Some(b'S' | b'G'));
            if matches!(bytes.first(), Some(b'S' | b'G' | b'N')) {
                return Head::Unit { bytes: 1, part: Part::CONTROL };
            }
        }
        if side == CLIENT && bytes.first() == Some(&0) {
            let (Some(length), Some(version)) = (be32(bytes, 0), be32(bytes, 4)) else { return Head::More };
            if !opens(bytes) {
                return Head::Bad;
            }
            self.opening = true;
            self.asked_to_encrypt = matches!(version, SSL | GSS);
            return Head::Unit { bytes: u64::from(length), part: Part::CONTROL };
        }
        let (Some(&kind), Some(length)) = (bytes.first(), be32(bytes, 1)) else { return Head::More };
        if !is_of(side, kind) || !is_sound(length) {
            return Head::Bad;
        }
        let part = if side == SERVER { self.said(kind, asked) } else { self.asks(kind) };
        Head::Unit { bytes: 1 + u64::from(length), part }
    }

    fn asks(&mut self, kind: u8) -> Part {
        let request = Part::message(0);
        // Whoever asks has been told that the server is ready.
        self.opening &= kind == b'p';
        match kind {
            _ if self.opening => Part::CONTROL,
            // Copied rows go with the query that asked for them; the end of a connection asks for nothing.
            b'd' | b'c' | b'f' | b'X' | b'p' => Part::CONTROL,
            b'Q' | b'S' | b'F' => Part { ends: true, ..request },
            b'H' => Part { ends: true, note: FLUSHED, ..request },
            _ => request,
        }
    }

    fn said(&mut self, kind: u8, asked: Option<u8>) -> Part {
        if self.opening {
            self.opening = kind != b'Z';
            return Part::CONTROL;
        }
        match kind {
            // Settings that changed, notices and notifications come unasked.
            b'S' | b'N' | b'A' => Part::CONTROL,
            // What a Flush hands over ends with the description of rows that was asked for.
            b'T' | b'n' | b'E' if asked == Some(FLUSHED) => Part { ends: true, ..Part::message(0) },
            b'Z' => Part { ends: true, ..Part::message(0) },
            _ => Part::message(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, length: u32) -> Vec<u8> {
        [&[kind], &length.to_be_bytes()[..], &vec![0; length.min(64) as usize - 4]].concat()
    }

    #[test]
    fn a_packet_is_a_clients_where_its_messages_fill_it() {
        let whole = [message(b'P', 20), message(b'B', 12), message(b'S', 4)].concat();
        assert!(is_client(&whole, whole.len()) && is_client(&whole[..30], whole.len()));
        assert!(!is_client(&whole, whole.len() - 1) && !is_client(&message(b'D', 9), 10));
        let startup = [&[0, 0, 0, 12, 0, 3, 0, 0], &b"abc"[..], &[0]].concat();
        assert!(is_client(&startup, 12) && !is_client(&startup, 11));
    }

    #[test]
    fn a_message_of_256_mebibytes_is_none() {
        let of = |length: u32| Postgres::default().head(SERVER, &message(b'D', length), None);
        assert!(matches!(of((1 << 28) - 1), Head::Unit { .. }));
        assert_eq!(of(1 << 28), Head::Bad);
    }
}
