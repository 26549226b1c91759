//! HTTP/1.x (RFC 9112): heads by `httparse`, bodies by content-length or chunks.

use super::{Head, Part, SERVER};
use serde::{Deserialize, Serialize};

/// More header fields than this are no message: nginx and Apache take a hundred at most.
const FIELDS: usize = 128;

/// What a request says about the body of its response.
pub(super) const NO_BODY: u8 = 1;
pub(super) const TUNNEL: u8 = 2;

const METHODS: [&[u8]; 15] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
    b"PROPFIND ",
    b"PROPPATCH ",
    b"MKCOL ",
    b"REPORT ",
    b"SEARCH ",
    b"PURGE ",
];

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Http1 {
    /// Per direction: in the chunks of a body.
    chunks: [bool; 2],
    /// The server agreed to another protocol, or opened a tunnel: what follows is no HTTP.
    pub over: bool,
    /// By `101 Switching Protocols`: in clear text that is WebSocket (RFC 6455, section 4.2.2), since nothing else is upgraded to (RFC 9113, section 3.1).
    pub upgraded: bool,
}

/// A message of `side` may begin so, as far as the bytes go.
pub(super) fn begins(side: usize, bytes: &[u8]) -> bool {
    let fits = |word: &[u8]| !bytes.is_empty() && bytes.iter().zip(word).all(|(a, b)| a == b);
    if side == SERVER { fits(b"HTTP/1.") } else { METHODS.iter().any(|word| fits(word)) }
}

impl Http1 {
    pub fn resynchronise(&mut self, side: usize) {
        self.chunks[side] = false;
    }

    pub fn head(&mut self, side: usize, bytes: &[u8], asked: Option<u8>) -> Head {
        if self.chunks[side] {
            return self.chunk(side, bytes);
        }
        match bytes {
            // RFC 9112, section 2.2: an empty line in front of a request is ignored.
            [b'\r', b'\n', ..] => return Head::Unit { bytes: 2, part: Part::CONTROL },
            [b'\r'] => return Head::More,
            _ if !begins(side, bytes) => return Head::Bad,
            _ => {}
        }
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let (parsed, note, bodiless) = if side == SERVER {
            let mut head = httparse::Response::new(&mut fields);
            let parsed = head.parse(bytes);
            let code = head.code.unwrap_or(0);
            // Not the answer yet; 101 ends HTTP on this connection (RFC 9110, section 15.2).
            if code == 101 && parsed.is_ok() {
                (self.over, self.upgraded) = (true, true);
            }
            match (parsed, code) {
                (Ok(httparse::Status::Complete(length)), 101) => {
                    return Head::Unit { bytes: length as u64, part: Part { ends: true, ..Part::message(0) } };
                }
                (Ok(httparse::Status::Complete(length)), 100..=199) => {
                    return Head::Unit { bytes: length as u64, part: Part::CONTROL };
                }
                _ => {}
            }
            if let (Ok(httparse::Status::Complete(length)), 200..=299, Some(TUNNEL)) = (parsed, code, asked) {
                self.over = true;
                return Head::Unit { bytes: length as u64, part: Part { ends: true, ..Part::message(0) } };
            }
            (parsed, 0, matches!(code, 204 | 304) || asked == Some(NO_BODY))
        } else {
            let mut head = httparse::Request::new(&mut fields);
            let parsed = head.parse(bytes);
            let note = match head.method {
                Some("HEAD") => NO_BODY,
                Some("CONNECT") => TUNNEL,
                _ => 0,
            };
            (parsed, note, false)
        };
        let length = match parsed {
            Ok(httparse::Status::Complete(length)) => length as u64,
            Ok(httparse::Status::Partial) => return Head::More,
            Err(_) => return Head::Bad,
        };
        let field = |name: &str| {
            let found = fields.iter().take_while(|f| !f.name.is_empty()).find(|f| f.name.eq_ignore_ascii_case(name));
            found.map(|f| f.value.trim_ascii())
        };
        let part = Part { note, ..Part::message(0) };
        let whole = |body: u64| Head::Unit { bytes: length + body, part: Part { ends: true, ..part } };
        if bodiless {
            return whole(0);
        }
        if field("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().ends_with(b"chunked")) {
            self.chunks[side] = true;
            return Head::Unit { bytes: length, part };
        }
        match field("content-length").map(|value| std::str::from_utf8(value).ok().and_then(|v| v.parse::<u64>().ok())) {
            Some(Some(body)) => whole(body.min(u64::MAX >> 8)),
            Some(None) => Head::Bad,
            None if side == SERVER => Head::Rest(part),
            None => whole(0),
        }
    }

    fn chunk(&mut self, side: usize, bytes: &[u8]) -> Head {
        let part = Part::message(0);
        match httparse::parse_chunk_size(bytes) {
            Ok(httparse::Status::Complete((line, 0))) => {
                let rest = &bytes[line..];
                let end = match rest {
                    [b'\r', b'\n', ..] => Some(2),
                    _ => rest.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4),
                };
                let Some(end) = end else { return Head::More };
                self.chunks[side] = false;
                Head::Unit { bytes: (line + end) as u64, part: Part { ends: true, ..part } }
            }
            Ok(httparse::Status::Complete((line, size))) => {
                Head::Unit { bytes: line as u64 + size.min(u64::MAX >> 8) + 2, part }
            }
            Ok(httparse::Status::Partial) => Head::More,
            Err(_) => Head::Bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_at_most_128_header_fields() {
        let head = |fields: usize| {
            let bytes = ["GET / HTTP/1.1\r\n", &"A: b\r\n".repeat(fields), "\r\n"].concat();
            Http1::default().head(super::super::CLIENT, bytes.as_bytes(), None)
        };
        assert!(matches!(head(128), Head::Unit { bytes: 786, .. }) && head(129) == Head::Bad);
    }
}
