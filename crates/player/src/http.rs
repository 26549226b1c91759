//! HTTP/1.1 instead of bare messages: the client's half of keep-alive connections to a real server, such as nginx.
//!
//! A message from the end that connects is a request, and the one that it releases on the same connection is the response: `GET /BYTES`, whose
//! body has that many. A connection has one request under way; the next one waits for its response.

use crate::plan::{Plan, Release};
use crate::sys;
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

/// Longest header of a response.
const HEADER: usize = 8_192;
/// Bytes of one read of a body; they are not looked at.
const READ: usize = 1 << 24;

/// A request and its response, as positions in the plan's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub request: u32,
    pub response: u32,
}

/// For each message that is a request, its response.
///
/// # Errors
/// A sentence: some message is neither.
pub fn exchanges(plan: &Plan) -> Result<Vec<Option<Exchange>>, String> {
    let mut completing: Vec<Vec<u32>> = vec![Vec::new(); plan.barriers as usize];
    for (number, message) in plan.messages.iter().enumerate() {
        message.completes.into_iter().for_each(|b| completing[b as usize].push(number as u32));
    }
    let mut found = vec![None; plan.messages.len()];
    for (number, message) in plan.messages.iter().enumerate() {
        let flow = &plan.flows[message.flow as usize];
        if flow.from_client {
            continue;
        }
        let of_it = |&&m: &&u32| {
            let asked = &plan.flows[plan.messages[m as usize].flow as usize];
            asked.from_client && asked.connection == flow.connection
        };
        let request = match message.release {
            Release::After(barrier, 0) => match completing[barrier as usize].as_slice() {
                [one] => Some(one).filter(of_it),
                _ => None,
            },
            _ => None,
        };
        let Some(&request) = request else {
            return Err(format!(
                "message {number} does not answer at once a request of its connection, and HTTP has nothing else; give the workload a \
                 request, and no think time at the server"
            ));
        };
        found[request as usize] = Some(Exchange { request, response: number as u32 });
    }
    // A message of nothing only opens its connection.
    let without = plan
        .messages
        .iter()
        .zip(&found)
        .position(|(m, e)| plan.flows[m.flow as usize].from_client && e.is_none() && m.bytes != Some(0));
    match without {
        Some(number) => Err(format!("message {number} has no response, and HTTP answers every request")),
        None => Ok(found),
    }
}

/// What a client's read has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// The first bytes of a response: its request has been read.
    Begun(u32),
    /// The last ones.
    Complete(u32),
}

/// The client's side of one connection.
#[derive(Debug, Default)]
pub struct Client {
    /// What is still to be written of the present request.
    text: Vec<u8>,
    written: usize,
    /// Requests that wait for the one under way: exchange, bytes of the response, bytes of the request.
    waiting: VecDeque<(Exchange, u64, u64)>,
    under_way: Option<(Exchange, u64)>,
    header: Vec<u8>,
    /// What is still to come of the present response's body; none: its header is not complete.
    body: Option<u64>,
}

impl Client {
    /// A request of `length` bytes, if that is enough for one, for a response of `bytes`.
    pub fn ask(&mut self, exchange: Exchange, bytes: u64, length: u64) {
        self.waiting.push_back((exchange, bytes, length));
        self.begin();
    }

    fn begin(&mut self) {
        if self.under_way.is_some() {
            return;
        }
        if let Some((exchange, bytes, length)) = self.waiting.pop_front() {
            self.under_way = Some((exchange, bytes));
            (self.text, self.written) = (request(bytes, length), 0);
        }
    }

    /// Something is left to write.
    pub fn has_more(&self) -> bool {
        self.written < self.text.len()
    }

    /// Writes what fits into the send buffer.
    pub fn send(&mut self, fd: RawFd) -> io::Result<()> {
        while self.has_more() {
            match sys::send(fd, &self.text[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// What the system says, or that the server did not answer with 200 and the bytes that were asked for.
    pub fn read(&mut self, fd: RawFd, came: &mut Vec<Came>) -> io::Result<()> {
        loop {
            let Some(left) = self.body else {
                if !self.read_header(fd, came)? {
                    return Ok(());
                }
                continue;
            };
            if left > 0 {
                match sys::discard(fd, READ.min(left as usize)) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(bytes) => self.body = Some(left - bytes as u64),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(error),
                }
                continue;
            }
            self.body = None;
            if let Some((exchange, _)) = self.under_way.take() {
                came.push(Came::Complete(exchange.response));
            }
            self.begin();
            self.send(fd)?;
        }
    }

    /// Takes of the stream what belongs to a header, and nothing behind it; true when the header is complete.
    fn read_header(&mut self, fd: RawFd, came: &mut Vec<Came>) -> io::Result<bool> {
        let mut bytes = [0_u8; HEADER];
        let seen = match sys::peek(fd, &mut bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(seen) => seen,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let fault = |why: &str| io::Error::other(format!("the HTTP server {why}"));
        let Some((exchange, expected)) = self.under_way else { return Err(fault("answered without a request")) };
        if self.header.is_empty() {
            came.push(Came::Begun(exchange.request));
        }
        let before = self.header.len();
        self.header.extend_from_slice(&bytes[..seen]);
        let end = self.header.windows(4).position(|w| w == b"\r\n\r\n").map(|at| at + 4);
        if end.is_none() && self.header.len() > HEADER {
            return Err(fault("sent a header of more than 8 KB"));
        }
        sys::discard(fd, end.map_or(seen, |end| end - before))?;
        let Some(end) = end else { return Ok(false) };
        let text = String::from_utf8_lossy(&self.header[..end]).into_owned();
        self.header.clear();
        let length = text.lines().find_map(|l| {
            let (name, value) = l.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
        });
        let status = text.lines().next().unwrap_or_default();
        if status.split(' ').nth(1) != Some("200") || length != Some(expected) {
            return Err(fault(&format!("answered `{status}` with {length:?} bytes and not {expected}")));
        }
        self.body = Some(expected);
        Ok(true)
    }
}

/// The text of a request, filled up to `length` bytes by a header that means nothing.
fn request(bytes: u64, length: u64) -> Vec<u8> {
    let bare = format!("GET /{bytes} HTTP/1.1\r\nHost: fanin\r\n");
    let missing = (length as usize).saturating_sub(bare.len() + 2);
    let fill = missing.checked_sub(5).map_or_else(String::new, |n| format!("X: {}\r\n", "x".repeat(n)));
    format!("{bare}{fill}\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Flow, Message};

    fn plan(second: Release) -> Plan {
        let flow = |from_client| Flow { connection: 0, from_client, stop_ns: None };
        let message =
            |flow, release, completes| Message { flow, bytes: Some(100), release, completes, deadline_ns: None };
        Plan {
            flows: vec![flow(true), flow(false)],
            messages: vec![message(0, Release::At(0), Some(0)), message(1, second, None)],
            barriers: 1,
            ..Plan::default()
        }
    }

    #[test]
    fn a_request_has_the_length_asked_for() {
        for length in [60, 100, 1000] {
            assert_eq!(request(32_000, length).len() as u64, length);
        }
        assert!(request(1, 0).ends_with(b"\r\n\r\n"));
    }

    #[test]
    fn what_does_not_answer_a_request_at_once_is_refused() {
        let found = exchanges(&plan(Release::After(0, 0))).unwrap();
        assert_eq!(found, [Some(Exchange { request: 0, response: 1 }), None]);
        assert!(exchanges(&plan(Release::At(5))).unwrap_err().starts_with("message 1 does not answer"));
        assert!(exchanges(&plan(Release::After(0, 7))).is_err());
        let alone = Plan { messages: plan(Release::At(0)).messages[..1].to_vec(), ..plan(Release::At(0)) };
        assert!(exchanges(&alone).unwrap_err().contains("message 0 has no response"));
        let mut opening = alone;
        opening.messages[0].bytes = Some(0);
        assert_eq!(exchanges(&opening).unwrap(), [None]);
    }

    #[test]
    fn responses_are_told_apart_whatever_pieces_they_come_in() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_nodelay(true).unwrap();
        let (mut ours, mut came) = (Client::default(), Vec::new());
        ours.ask(Exchange { request: 0, response: 1 }, 5, 0);
        ours.ask(Exchange { request: 2, response: 3 }, 0, 0);
        ours.send(client.as_raw_fd()).unwrap();
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcdeHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        for byte in text {
            server.write_all(&[*byte]).unwrap();
            // Until the byte has come.
            while sys::peek(client.as_raw_fd(), &mut [0]).is_err() {}
            ours.read(client.as_raw_fd(), &mut came).unwrap();
        }
        assert_eq!(came, [Came::Begun(0), Came::Complete(1), Came::Begun(2), Came::Complete(3)]);
        ours.ask(Exchange { request: 4, response: 5 }, 9, 0);
        server.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n").unwrap();
        while sys::peek(client.as_raw_fd(), &mut [0]).is_err() {}
        let error = ours.read(client.as_raw_fd(), &mut came).unwrap_err();
        assert!(error.to_string().contains("404 Not Found"));
    }
}
