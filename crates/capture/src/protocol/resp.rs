//! Redis' protocol, RESP 2 and 3: lines and strings of told length, in arrays.

use super::{Head, Part, SERVER};
use serde::{Deserialize, Serialize};

/// Longer lines, and deeper arrays, are not RESP.
const LINE: usize = 1 << 16;
/// Arrays within arrays.
const DEEPEST: usize = 32;

/// What a request says of its response: commands from MULTI to EXEC in one write, of which each is answered QUEUED until EXEC gives all results.
const TRANSACTION: u8 = 1;

/// Per direction: elements that are missing in the arrays that have begun, the innermost last.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Resp {
    left: [Vec<u64>; 2],
    /// The client's next string is the name of a command.
    names: bool,
    /// The client's command is part of a transaction that goes on.
    transaction: bool,
    /// The server has answered a transaction's MULTI.
    begun: bool,
}

/// A message of `side` may begin so.
pub(super) fn begins(side: usize, bytes: &[u8]) -> bool {
    match bytes {
        [b'*', rest @ ..] => rest.first().is_none_or(|b| b.is_ascii_digit() || *b == b'-'),
        [b'+' | b'-' | b':' | b'$' | b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'>', ..] => {
            side == SERVER
        }
        _ => false,
    }
}

/// A client's command: an array of strings.
pub(super) fn is_client(bytes: &[u8]) -> bool {
    let Some(line) = bytes.iter().take(8).position(|&b| b == b'\r') else { return false };
    let digits = &bytes[1.min(line)..line];
    bytes.first() == Some(&b'*')
        && !digits.is_empty()
        && digits.iter().all(u8::is_ascii_digit)
        && bytes.get(line..line + 3).is_some_and(|next| next == b"\r\n$")
}

impl Resp {
    pub fn resynchronise(&mut self, side: usize) {
        self.left[side].clear();
        if side == SERVER {
            self.begun = false;
        } else {
            (self.names, self.transaction) = (false, false);
        }
    }

    /// One line, with the string that it announces. `asked`: what the request says of this response.
    pub fn head(&mut self, side: usize, bytes: &[u8], asked: Option<u8>) -> Head {
        let left = &mut self.left[side];
        let Some(line) = bytes.iter().take(LINE).position(|&b| b == b'\n') else {
            return if bytes.len() > LINE { Head::Bad } else { Head::More };
        };
        let (kind, text) = (bytes[0], bytes[..line].trim_ascii_end().get(1..).unwrap_or(&[]));
        let number = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        let (string, line) = (&bytes[line + 1..], line as u64 + 1);
        let (length, elements) = match kind {
            b'$' | b'!' | b'=' => match number() {
                Some(count @ 0..) => (line + count as u64 + 2, 0),
                Some(_) => (line, 0),
                None => return Head::Bad,
            },
            b'*' | b'~' | b'>' | b'%' => match number() {
                Some(count @ 0..=0xff_ffff) => (line, count as u64 * if kind == b'%' { 2 } else { 1 }),
                Some(i64::MIN..=-1) => (line, 0),
                _ => return Head::Bad,
            },
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' if side == SERVER || !left.is_empty() => (line, 0),
            _ => return Head::Bad,
        };
        if let Some(missing) = left.last_mut() {
            *missing -= 1;
        }
        if elements > 0 {
            left.push(elements);
        } else {
            while left.last() == Some(&0) {
                left.pop();
            }
        }
        if left.len() > DEEPEST {
            return Head::Bad;
        }
        let whole = left.is_empty();
        let goes_on = if side == SERVER {
            whole && asked == Some(TRANSACTION) && self.is_queued(bytes)
        } else {
            self.is_in_transaction(string, kind == b'*', bytes.len() as u64 > length)
        };
        let note = if side != SERVER && goes_on { TRANSACTION } else { 0 };
        Head::Unit { bytes: length, part: Part { ends: whole && !goes_on, note, ..Part::message(0) } }
    }

    /// The command goes on with others to EXEC. A MULTI that is written alone is a request of its own: its client waits for each answer.
    fn is_in_transaction(&mut self, string: &[u8], array: bool, more: bool) -> bool {
        let is = |name: &[u8]| string.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        if self.names && is(b"MULTI\r\n") {
            self.transaction = more;
        } else if self.names && (is(b"EXEC\r\n") || is(b"DISCARD\r\n")) {
            self.transaction = false;
        }
        self.names = array;
        self.transaction
    }

    /// The answer to MULTI, or to a command that waits for EXEC.
    fn is_queued(&mut self, line: &[u8]) -> bool {
        let first = !std::mem::replace(&mut self.begun, true);
        let goes_on = line.starts_with(b"+QUEUED\r\n") || first && line.starts_with(b"+OK\r\n");
        self.begun &= goes_on;
        goes_on
    }
}
