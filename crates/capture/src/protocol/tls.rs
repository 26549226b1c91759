//! TLS (RFC 8446, RFC 5246): records of told length. What they hold is not readable, but handshakes, alerts and tickets are no requests, and a
//! message ends where a record does.

use super::{CLIENT, Head, Part, SERVER};
use serde::{Deserialize, Serialize};

const CHANGE_CIPHER: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
/// A record's payload, and what encryption may add to it (RFC 5246, section 6.2.3).
const LARGEST: u16 = (1 << 14) + 2048;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Tls {
    /// The handshake's beginning is in the file.
    hello: bool,
    /// Handshake records of the client in the clear.
    flights: u32,
    /// The client has said that it is finished, so that what it sends next is its application's.
    finished: bool,
    /// Its application has asked something.
    asked: bool,
}

/// A record may begin so.
pub(super) fn begins(bytes: &[u8]) -> bool {
    matches!(bytes, [CHANGE_CIPHER..=DATA, 3, 0..=4, a, b, ..] if (1..=LARGEST).contains(&u16::from_be_bytes([*a, *b])))
}

impl Tls {
    pub fn head(&mut self, side: usize, bytes: &[u8]) -> Head {
        let Some(&[kind, _, _, a, b]) = bytes.first_chunk::<5>() else { return Head::More };
        if !begins(bytes) {
            return Head::Bad;
        }
        let part = if self.is_application(side, kind) { Part::message(0) } else { Part::CONTROL };
        Head::Unit { bytes: 5 + u64::from(u16::from_be_bytes([a, b])), part }
    }

    fn is_application(&mut self, side: usize, kind: u8) -> bool {
        match (side, kind) {
            (CLIENT, HANDSHAKE) => {
                self.flights += 1;
                self.hello |= self.flights == 1 && !self.asked;
                // TLS 1.2: its second flight in the clear ends with "finished", and its application goes next.
                self.finished |= self.flights > 1;
                false
            }
            // TLS 1.3 encrypts "finished": it is the first that looks like data.
            (CLIENT, DATA) if self.hello && !self.finished => {
                self.finished = true;
                false
            }
            (CLIENT, DATA) => {
                self.asked = true;
                true
            }
            // Before the first request a server sends its part of the handshake, and tickets.
            (SERVER, DATA) => self.asked || !self.hello,
            (_, ALERT | CHANGE_CIPHER) => false,
            _ => false,
        }
    }
}
