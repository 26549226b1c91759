//! HTTP/2 in clear text (RFC 9113), and gRPC on it: frames of 9 bytes and their payload, each of a stream.

use super::{CLIENT, Head, Part};
use serde::{Deserialize, Serialize};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADER: usize = 9;
/// Where a head says the frame's kind, behind its length.
const KIND: usize = 3;
/// Frames are 16 KiB at most unless their receiver allows more; no implementation in use allows more than this.
const LARGEST: u64 = 1 << 20;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 0x1;
/// Of a message of gRPC, in front of it: whether it is compressed, and its length (gRPC over HTTP/2, "Length-Prefixed-Message").
const PREFIX: usize = 5;
/// Of a part: it carries what an application says, not a head or an end alone.
pub(super) const SAYS: u8 = 1;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Http2 {
    /// The client's preface passed, or the connection is older than the capture.
    opened: bool,
}

struct Frame {
    length: u64,
    kind: u8,
    flags: u8,
    stream: u32,
}

fn frame(bytes: &[u8]) -> Option<Frame> {
    let &[a, b, c, kind, flags, s0, s1, s2, s3] = bytes.first_chunk::<HEADER>()?;
    let length = u64::from(u32::from_be_bytes([0, a, b, c]));
    Some(Frame { length, kind, flags, stream: u32::from_be_bytes([s0, s1, s2, s3]) })
}

impl Frame {
    /// A frame that RFC 9113, section 6, allows.
    fn is_sound(&self) -> bool {
        let Frame { length, kind, flags, stream } = *self;
        let (of_stream, of_connection) = (stream != 0 && stream >> 31 == 0, stream == 0);
        length <= LARGEST
            && match kind {
                DATA => of_stream && flags & !0x09 == 0,
                HEADERS => of_stream && flags & !0x2d == 0 && length > 0,
                2 => of_stream && length == 5 && flags == 0,
                RST_STREAM => of_stream && length == 4 && flags == 0,
                SETTINGS => of_connection && length.is_multiple_of(6) && flags & !0x01 == 0,
                PUSH_PROMISE => of_stream && flags & !0x0c == 0 && length >= 4,
                PING => of_connection && length == 8 && flags & !0x01 == 0,
                GOAWAY => of_connection && length >= 8 && flags == 0,
                WINDOW_UPDATE => stream >> 31 == 0 && length == 4 && flags == 0,
                CONTINUATION => of_stream && flags & !0x04 == 0,
                _ => false,
            }
    }

    /// It holds one message of gRPC and nothing else, by what it begins with.
    fn is_message(&self, payload: &[u8]) -> bool {
        let Some(&[compressed, a, b, c, d]) = payload.first_chunk::<PREFIX>() else { return false };
        let length = u64::from(u32::from_be_bytes([a, b, c, d]));
        self.kind == DATA && self.flags & !END_STREAM == 0 && compressed <= 1 && length + PREFIX as u64 == self.length
    }
}

/// A connection whose client's packet begins so is HTTP/2: by its preface, by the first frame of a request, or by a message of gRPC on a stream that was
/// opened before the capture began. Pings and windows may come before these.
pub(super) fn is_client(mut bytes: &[u8]) -> bool {
    let preface = bytes.len() >= PREFACE.len().min(16) && bytes.iter().zip(PREFACE).all(|(a, b)| a == b);
    let by_the_way = |f: &Frame| f.is_sound() && matches!(f.kind, PING | WINDOW_UPDATE);
    while let Some(f) = frame(bytes).filter(by_the_way) {
        bytes = bytes.get(HEADER + f.length as usize..).unwrap_or_default();
    }
    let of_stream = |f: &Frame| f.is_sound() && f.stream % 2 == 1 && f.length < 16_384;
    preface || frame(bytes).is_some_and(|f| of_stream(&f) && (f.kind == HEADERS || f.is_message(&bytes[HEADER..])))
}

/// A frame may begin so, of this stream; one that says nothing is more likely a part of something else. So is a push, which gRPC forbids and browsers
/// have given up: the head of a response's trailers without its first byte looks like one.
pub(super) fn begins(bytes: &[u8]) -> Option<u32> {
    let says = |f: &Frame| f.kind != PUSH_PROMISE && (f.kind != DATA || f.length > 0 || f.flags & END_STREAM != 0);
    frame(bytes).filter(|f| f.is_sound() && says(f)).map(|f| f.stream)
}

/// How many bytes a frame has of whose head the length and the kind are stored and no more, if it is the connection's own and of no message.
pub(super) fn cut(bytes: &[u8]) -> Option<u64> {
    if bytes.len() <= KIND {
        return None;
    }
    // What is not stored of its flags and its stream may be zero in each of these.
    let mut head = [0; HEADER];
    bytes.iter().zip(&mut head).for_each(|(&byte, place)| *place = byte);
    let own = |f: &Frame| matches!(f.kind, SETTINGS | PING | GOAWAY | WINDOW_UPDATE);
    frame(&head).filter(|f| own(f) && f.is_sound()).map(|f| HEADER as u64 + f.length)
}

impl Http2 {
    pub fn head(&mut self, side: usize, bytes: &[u8]) -> Head {
        if side == CLIENT && !self.opened {
            if bytes.iter().zip(PREFACE).all(|(a, b)| a == b) {
                if bytes.len() < PREFACE.len() {
                    return Head::More;
                }
                self.opened = true;
                return Head::Unit { bytes: PREFACE.len() as u64, part: Part::CONTROL };
            }
            self.opened = true;
        }
        let Some(frame) = frame(bytes) else { return Head::More };
        if !frame.is_sound() {
            return Head::Bad;
        }
        let part = match frame.kind {
            DATA | HEADERS | CONTINUATION => Part {
                ends: frame.kind != CONTINUATION && frame.flags & END_STREAM != 0,
                note: if frame.kind == DATA && frame.length > 0 { SAYS } else { 0 },
                ..Part::message(frame.stream)
            },
            RST_STREAM => Part { ends: true, aborts: true, ..Part::message(frame.stream) },
            _ => Part::CONTROL,
        };
        Head::Unit { bytes: HEADER as u64 + frame.length, part }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9113, section 6: a HEADERS frame may end its stream, end the headers, be padded and have a priority; DATA may end and be padded.
    #[test]
    fn a_frame_with_a_flag_that_its_kind_does_not_know_is_none() {
        let is_sound = |kind, flags| Frame { length: 8, kind, flags, stream: 1 }.is_sound();
        assert!([0x00, 0x01, 0x04, 0x08, 0x20, 0x2d].into_iter().all(|flags| is_sound(HEADERS, flags)));
        assert!([0x02, 0x10, 0x40, 0x80].into_iter().all(|flag| !is_sound(HEADERS, flag)));
        assert!([0x00, 0x01, 0x08, 0x09].into_iter().all(|flags| is_sound(DATA, flags)));
        assert!([0x02, 0x04, 0x20].into_iter().all(|flag| !is_sound(DATA, flag)));
    }

    #[test]
    fn length_and_kind_tell_the_frames_of_the_connection_itself() {
        let head = |length: u8, kind: u8| [0, 0, length, kind];
        assert_eq!(
            [(8, PING), (4, WINDOW_UPDATE), (12, SETTINGS), (5, WINDOW_UPDATE)].map(|(n, kind)| cut(&head(n, kind))),
            [Some(17), Some(13), Some(21), None]
        );
        assert!(cut(&[0, 0, 4]).is_none() && cut(&head(4, DATA)).is_none() && cut(&head(4, HEADERS)).is_none());
        // A ping is of no stream, as far as its stream is stored.
        assert_eq!((cut(&[0, 0, 8, PING, 0, 0]), cut(&[0, 0, 8, PING, 0, 1])), (Some(17), None));
    }
}
