//! Redis' protocol, RESP 2 and 3: lines and strings of told length, in arrays.

use super::{Head, Part, SERVER};
use serde::{Deserialize, Serialize};

/// Longer lines, and deeper arrays, are not RESP.
const LINE: usize = 1 << 16;
/// Arrays within arrays.
const DEEPEST: usize = 32;

/// Per direction: elements that are missing in the arrays that have begun, the innermost last.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Resp {
    left: [Vec<u64>; 2],
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
    }

    /// One line, with the string that it announces.
    pub fn head(&mut self, side: usize, bytes: &[u8]) -> Head {
        let left = &mut self.left[side];
        let Some(line) = bytes.iter().take(LINE).position(|&b| b == b'\n') else {
            return if bytes.len() > LINE { Head::Bad } else { Head::More };
        };
        let (kind, text) = (bytes[0], bytes[..line].trim_ascii_end().get(1..).unwrap_or(&[]));
        let number = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        let line = line as u64 + 1;
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
        Head::Unit { bytes: length, part: Part { ends: left.is_empty(), ..Part::message(0) } }
    }
}
