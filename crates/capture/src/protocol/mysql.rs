//! MySQL's protocol: packets of a length and a number, which begins at zero with each command of the client. It asks again once it has the answer.

use super::{Head, Part, SERVER};
use serde::{Deserialize, Serialize};

/// A client's capabilities: protocol 4.1, and TLS from here on.
const PROTOCOL_41: u32 = 0x200;
const SSL: u32 = 0x800;
/// The part of a handshake that comes before TLS.
const SSL_REQUEST: usize = 32;
/// Commands that have no answer: COM_QUIT, COM_STMT_SEND_LONG_DATA, COM_STMT_CLOSE.
const UNANSWERED: [u8; 3] = [0x01, 0x18, 0x19];
const QUERY: u8 = 0x03;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct MySql {
    /// The client has sent a command: what came before was the handshake.
    asked: bool,
    /// What follows is TLS.
    pub encrypted: bool,
}

struct Packet {
    length: u32,
    number: u8,
}

fn packet(bytes: &[u8]) -> Option<Packet> {
    let &[a, b, c, number] = bytes.first_chunk::<4>()?;
    Some(Packet { length: u32::from_le_bytes([a, b, c, 0]), number })
}

/// The answer to a server's greeting: capabilities, and 23 zero bytes.
pub(super) fn opens(bytes: &[u8]) -> bool {
    let Some(Packet { length, number: 1 }) = packet(bytes) else { return false };
    let capabilities = bytes.get(4..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b));
    let zeros = bytes.get(13..36).unwrap_or(&[]);
    length as usize >= SSL_REQUEST
        && capabilities & PROTOCOL_41 != 0
        && zeros.len() >= 8
        && zeros.iter().all(|&b| b == 0)
}

/// A client's packet begins so: with its part of the handshake, or with a query in text.
pub(super) fn is_client(bytes: &[u8], payload: usize) -> bool {
    let fits = packet(bytes).is_some_and(|p| p.length as usize + 4 == payload);
    let query = || matches!(bytes, [_, _, _, 0, QUERY, first, ..] if first.is_ascii_alphabetic());
    fits && (opens(bytes) || query())
}

/// A packet may begin so behind the end of a write: a command, or the first of an answer.
pub(super) fn begins(side: usize, bytes: &[u8]) -> bool {
    let first = if side == SERVER { 1 } else { 0 };
    packet(bytes).is_some_and(|p| p.number == first && p.length > 0)
}

impl MySql {
    pub fn head(&mut self, side: usize, bytes: &[u8]) -> Head {
        let Some(Packet { length, number }) = packet(bytes) else { return Head::More };
        let whole = |part| Head::Unit { bytes: 4 + u64::from(length), part };
        if side == SERVER {
            return whole(if self.asked { Part::message(0) } else { Part::CONTROL });
        }
        if number > 0 {
            // The handshake, or a file that a command asked for.
            if length as usize == SSL_REQUEST && opens(bytes) {
                let capabilities = bytes.get(4..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b));
                self.encrypted = capabilities & SSL != 0;
            }
            return whole(Part::CONTROL);
        }
        let Some(command) = bytes.get(4) else { return Head::More };
        if UNANSWERED.contains(command) {
            return whole(Part::CONTROL);
        }
        self.asked = true;
        whole(Part::message(0))
    }
}
