//! One end of a connection.

use crate::log;
use crate::sys::{self, Deadlines};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Bytes of one write; all are zero.
static ZEROS: [u8; 65_536] = [0; 65_536];
/// Bytes of one read; they are not looked at.
const READ: usize = 1 << 24;

/// A socket, what it has to send, and what it expects.
#[derive(Debug, Default)]
pub struct End {
    pub fd: Option<OwnedFd>,
    /// Messages to write.
    to_send: VecDeque<Outgoing>,
    /// Messages to come: their number, and the bytes that have been read when they are complete.
    expected: VecDeque<(u32, u64)>,
    /// Where the last expected message ends.
    expected_to: u64,
    /// An endless one is to come, too.
    endless: bool,
    bytes_read: u64,
    /// Of the message that was written last.
    last_deadline: Option<u64>,
    lowat: u32,
    /// Events that epoll waits for.
    pub watched: u32,
    /// Closed on purpose: what the other end did is no error.
    pub ended: bool,
    /// What the socket had counted when the connection was open.
    opening: Option<Opening>,
}

/// What was sent again to open a connection, which is none of its data; and the expiries of the timer for the answer to a SYN, each of which goes
/// with one at the end that asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening {
    retransmissions: u32,
    timeouts: u32,
    timeout_ms: u32,
}

/// A message to write.
#[derive(Debug)]
struct Outgoing {
    /// Bytes that are left of it; none: it is endless.
    left: Option<u64>,
    /// Until when it should be delivered.
    deadline: Option<u64>,
    /// The kernel knows of it.
    told: bool,
}

/// How the kernel hears what applications know.
#[derive(Debug)]
pub enum Told {
    /// Not at all.
    Nothing,
    /// Deadlines, by a map of sockets.
    Map(Deadlines),
    /// By options of its own.
    Options,
}

impl End {
    /// A message to send, to be delivered by `deadline`.
    pub fn queue(&mut self, bytes: Option<u64>, deadline: Option<u64>) {
        self.to_send.push_back(Outgoing { left: bytes, deadline, told: false });
    }

    /// A message to come.
    pub fn expect(&mut self, message: u32, bytes: Option<u64>) {
        match bytes {
            Some(bytes) => {
                self.expected_to += bytes;
                self.expected.push_back((message, self.expected_to));
            }
            None => self.endless = true,
        }
    }

    /// Tells a kernel that asks what is to come in a run that began at `start`.
    pub fn tell_expected(&self, told: &Told, start: u64) -> io::Result<()> {
        match (told, &self.fd) {
            (Told::Options, Some(fd)) if self.endless => sys::expect(fd.as_raw_fd(), u64::MAX, start),
            (Told::Options, Some(fd)) if self.expected_to > 0 => sys::expect(fd.as_raw_fd(), self.expected_to, start),
            _ => Ok(()),
        }
    }

    /// The connection is open; an end that asked for it in the run keeps the expiries of its timer.
    pub fn note_opening(&mut self, asked: bool) {
        if self.opening.is_none()
            && let Some(info) = self.info()
        {
            let (timeouts, timeout_ms) = if asked { (0, 0) } else { (info.total_rto, info.total_rto_time) };
            self.opening = Some(Opening { retransmissions: info.total_retrans, timeouts, timeout_ms });
        }
    }

    /// The sender's half of a flow's row.
    pub fn write_row(&self, asked: bool, row: &mut log::Flow) {
        if let Some(info) = self.info() {
            info.write(asked, &self.opening.unwrap_or_default(), row);
        }
    }

    /// Something is left to send.
    pub fn has_more(&self) -> bool {
        !self.to_send.is_empty()
    }

    /// Writes what fits into the send buffer, and tells a congestion control that asks what deadline the message has.
    pub fn send(&mut self, told: &Told) -> io::Result<()> {
        let Some(fd) = self.fd.as_ref().map(AsRawFd::as_raw_fd) else { return Ok(()) };
        let Told::Map(map) = told else { return self.write(fd, matches!(told, Told::Options)) };
        if let Some(first) = self.to_send.front() {
            // What is written below leaves at once: it has to be known before.
            map.tell(fd, first.deadline, first.left.unwrap_or(u64::MAX >> 1))?;
        }
        let writing = !self.to_send.is_empty();
        let sent = self.write(fd, false);
        if sent.is_ok() && writing {
            // Of a message that is written whole the rest is what the kernel has not sent yet.
            let first = self.to_send.front().map(|m| (m.left, m.deadline));
            let (left, deadline) = first.unwrap_or((Some(0), self.last_deadline));
            map.tell(fd, deadline, left.unwrap_or(u64::MAX >> 1))?;
        }
        sent
    }

    /// `options`: tells of each message before its first byte.
    fn write(&mut self, fd: RawFd, options: bool) -> io::Result<()> {
        while let Some(Outgoing { left, deadline, told }) = self.to_send.front_mut() {
            if options && !*told {
                match sys::message(fd, left.unwrap_or(u64::MAX), *deadline) {
                    // It has no algorithm yet, nor could it send.
                    Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => return Ok(()),
                    other => other?,
                }
                *told = true;
            }
            let some = left.map_or(ZEROS.len(), |n| n.min(ZEROS.len() as u64) as usize);
            match sys::send(fd, &ZEROS[..some]) {
                Ok(written) => {
                    if let Some(left) = left {
                        *left -= written as u64;
                    }
                    // The buffer is full: the next call would only say so.
                    if written < some && *left != Some(0) {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if *left == Some(0) {
                self.last_deadline = *deadline;
                self.to_send.pop_front();
            }
        }
        Ok(())
    }

    /// Reads what has come; the messages that are complete with it go to `done`.
    pub fn read(&mut self, lowat: u32, done: &mut Vec<u32>) -> io::Result<()> {
        let Some(fd) = self.fd.as_ref().map(AsRawFd::as_raw_fd) else { return Ok(()) };
        match sys::discard(fd, READ) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => self.bytes_read += bytes as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        while let Some(&(message, end)) = self.expected.front().filter(|(_, end)| *end <= self.bytes_read) {
            debug_assert!(end <= self.expected_to);
            self.expected.pop_front();
            done.push(message);
        }
        self.wake_when(lowat)
    }

    /// To be woken only when there is something worth reading: a wake-up costs more than a packet.
    pub fn wake_when(&mut self, lowat: u32) -> io::Result<()> {
        let Some(fd) = &self.fd else { return Ok(()) };
        let wanted = match self.expected.front() {
            Some((_, end)) => (end - self.bytes_read).min(u64::from(lowat)) as u32,
            None => lowat,
        };
        if wanted != self.lowat {
            sys::set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, &wanted.to_ne_bytes())?;
            self.lowat = wanted;
        }
        Ok(())
    }

    /// Expiries of the retransmission timer so far.
    pub fn timeouts(&self) -> u32 {
        self.info().map_or(0, |i| i.total_rto)
    }

    /// The socket's `TCP_INFO`.
    pub fn info(&self) -> Option<Info> {
        self.fd.as_ref().and_then(|fd| sys::tcp_info(fd.as_raw_fd()).ok()).map(|bytes| Info::parse(&bytes))
    }
}

/// What is used of `struct tcp_info` (include/uapi/linux/tcp.h).
#[derive(Clone, Debug, Default)]
pub struct Info {
    rtt: u32,
    cwnd: u32,
    total_retrans: u32,
    bytes_acked: u64,
    min_rtt: u32,
    data_segs_out: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    total_rto: u32,
    total_rto_time: u32,
}

impl Info {
    fn parse(bytes: &[u8; 256]) -> Info {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Info {
            rtt: word(68),
            cwnd: word(80),
            total_retrans: word(100),
            bytes_acked: long(120),
            min_rtt: word(148),
            data_segs_out: word(156),
            delivered_ce: word(196),
            bytes_sent: long(200),
            // Linux 6.7 and later; zero before.
            total_rto: word(240) & 0xffff,
            total_rto_time: word(244),
        }
    }

    /// The sender's half of a flow's row, without what opened the connection.
    pub fn write(&self, from_client: bool, opening: &Opening, flow: &mut log::Flow) {
        // A connecting socket counts its SYN as an acknowledged byte (tcp_snd_una_update).
        flow.bytes_acked = self.bytes_acked.saturating_sub(u64::from(from_client));
        flow.bytes_sent = self.bytes_sent;
        flow.segments = u64::from(self.data_segs_out);
        flow.retransmissions = u64::from(self.total_retrans.saturating_sub(opening.retransmissions));
        flow.timeouts = u64::from(self.total_rto.saturating_sub(opening.timeouts));
        flow.timeout_ms = u64::from(self.total_rto_time.saturating_sub(opening.timeout_ms));
        flow.cwnd = self.cwnd;
        flow.srtt_us = self.rtt;
        flow.min_rtt_us = (self.min_rtt != u32::MAX).then_some(self.min_rtt);
        flow.delivered_ce = u64::from(self.delivered_ce);
    }
}
