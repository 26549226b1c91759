//! TLS (RFC 8446, RFC 5246): records of told length. What they hold is not readable, but handshakes, alerts and tickets are no requests, and a
//! message ends where a record does.

use super::{CLIENT, Head, Part, SERVER};
use serde::{Deserialize, Serialize};

const CHANGE_CIPHER: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
const CLIENT_HELLO: u8 = 1;
/// Records of TLS 1.3 whose lengths say what they are (RFC 8446, sections 4.4.4, 4.6.3 and 6): 16 bytes of the cipher's tag, one of the kind, and
/// "finished" by SHA-256 or SHA-384 with its header, an alert, or a new key.
const FINISHED: [u16; 2] = [4 + 32 + 17, 4 + 48 + 17];
const ENCRYPTED_ALERT: u16 = 2 + 17;
const KEY_UPDATE: u16 = 5 + 17;
/// A record's payload, and what encryption may add to it (RFC 5246, section 6.2.3).
const LARGEST: u16 = (1 << 14) + 2048;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Tls {
    /// The handshake's beginning is in the file.
    hello: bool,
    /// Handshake records of the client in the clear.
    flights: u32,
    /// The client has said that it is finished, so that what it sends next is its application's,
    finished: bool,
    /// or it has sent a certificate before that.
    certified: bool,
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
        let length = u16::from_be_bytes([a, b]);
        let again = bytes.get(5) == Some(&CLIENT_HELLO) && self.flights > 0;
        let part = if self.is_application(side, kind, length, again) { Part::message(0) } else { Part::CONTROL };
        Head::Unit { bytes: 5 + u64::from(length), part }
    }

    /// `again`: the server has asked for another hello (RFC 8446, section 4.1.4).
    fn is_application(&mut self, side: usize, kind: u8, length: u16, again: bool) -> bool {
        // TLS 1.3 encrypts its alerts and new keys too, and has no other records of these lengths; 1.2 has two flights of the client in the clear.
        let of_1_3 = self.flights < 2;
        match (side, kind) {
            (_, DATA) if of_1_3 && (length == ENCRYPTED_ALERT || length == KEY_UPDATE) => false,
            (CLIENT, HANDSHAKE) if again => false,
            (CLIENT, HANDSHAKE) => {
                self.flights += 1;
                self.hello |= self.flights == 1 && !self.asked;
                // TLS 1.2: its second flight in the clear ends with "finished", and its application goes next.
                self.finished |= self.flights > 1;
                false
            }
            // TLS 1.3 encrypts "finished", which looks like data, and before it a certificate.
            (CLIENT, DATA) if self.hello && !self.finished => {
                self.finished = FINISHED.contains(&length);
                self.certified = true;
                false
            }
            (CLIENT, DATA) => {
                self.asked = true;
                true
            }
            // Before the first request a server sends its part of the handshake, and tickets.
            (SERVER, DATA) => {
                // It had the client's certificate and "finished" in one record.
                self.finished |= self.certified;
                self.asked || !self.hello
            }
            (_, ALERT | CHANGE_CIPHER) => false,
            _ => false,
        }
    }
}
