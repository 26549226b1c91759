//! Headers of TCP packets into a pcap file, for `fanin compare`: bounded in time and size, without payload, without root once it has begun.

use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::pseudonyms::Pseudonyms;
use fanin_testbed::ring::{Received, Ring, Taken};
use libc::sock_filter;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most bytes of headers: Ethernet, IP with options or an IPv6 header, TCP with options.
const HEADERS: usize = 14 + 60 + 60;
/// A pcap file with nanoseconds; and the link type of Ethernet.
const MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
/// `nobody` of every distribution.
const NOBODY: u32 = 65534;

/// What is captured.
pub struct Capture<'a> {
    /// The file.
    pub file: &'a Path,
    /// The network device, by number; and whether it is the loopback, on which every packet is seen twice.
    pub device: i32,
    /// See `device`.
    pub is_loopback: bool,
    /// How long at most.
    pub limit: Duration,
    /// Bytes of the file at most.
    pub bytes: u64,
    /// The last packets are kept, and not the first; in memory until the end.
    pub last: bool,
    /// Addresses are replaced.
    pub pseudonyms: Option<Pseudonyms>,
}

/// Captures until the time is over, the file is full, or a signal interrupts.
pub fn run(mut capture: Capture<'_>, interrupt: &Interrupt) -> Result<Value, Error> {
    let taken = Taken { device: Some(capture.device), filter: HEADERS_OF_TCP };
    let mut ring = Ring::open(HEADERS, &taken).map_err(Error::kernel("a socket for packets"))?;
    let file = File::create(capture.file).map_err(Error::file(capture.file))?;
    give_up_root().map_err(Error::kernel("giving up root"))?;
    let mut out = Out { file: BufWriter::new(file), kept: VecDeque::new(), bytes: 24, packets: 0 };
    out.begin().map_err(Error::file(capture.file))?;
    let began = Instant::now();
    let mut dropped = 0;
    let ended = loop {
        while let Some(packet) = ring.peek() {
            if !(capture.is_loopback && packet.is_outgoing) {
                let record = record(&packet, capture.pseudonyms.as_mut());
                out.add(record, capture.last.then_some(capture.bytes)).map_err(Error::file(capture.file))?;
            }
            ring.pop();
            if !capture.last && out.bytes >= capture.bytes {
                break;
            }
        }
        dropped += ring.drops().map_err(Error::kernel("counting packets"))?;
        match () {
            () if !capture.last && out.bytes >= capture.bytes => break "size",
            () if interrupt.came() => break "interrupt",
            () if began.elapsed() >= capture.limit => break "time",
            () => wait(&ring, Duration::from_millis(50)),
        }
    };
    out.finish().map_err(Error::file(capture.file))?;
    Ok(json!({
        "file": capture.file, "packets": out.packets, "bytes": out.bytes, "dropped": dropped, "ended": ended,
        "seconds": began.elapsed().as_secs_f64(), "addresses": capture.pseudonyms.map(|p| p.count()),
    }))
}

/// Until packets come, or so long.
fn wait(ring: &Ring, most: Duration) {
    let time = rustix::fs::Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
    let _ = poll(&mut [PollFd::from_borrowed_fd(borrowed(ring), PollFlags::IN)], Some(&time));
}

#[allow(unsafe_code)]
fn borrowed(ring: &Ring) -> BorrowedFd<'_> {
    // SAFETY: the ring owns the descriptor and outlives the borrow.
    unsafe { BorrowedFd::borrow_raw(ring.fd()) }
}

/// What opens sockets is no longer needed. This process has one thread, so the thread's identity is its own.
fn give_up_root() -> std::io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    set_no_new_privs(true)?;
    Ok(())
}

/// The file, or what will be in it.
struct Out {
    file: BufWriter<File>,
    kept: VecDeque<Vec<u8>>,
    bytes: u64,
    packets: u64,
}

impl Out {
    fn begin(&mut self) -> std::io::Result<()> {
        let mut head = Vec::with_capacity(24);
        head.extend(MAGIC.to_le_bytes());
        head.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        head.extend((HEADERS as u32).to_le_bytes());
        head.extend(ETHERNET.to_le_bytes());
        self.file.write_all(&head)
    }

    /// `last`: bytes of the last packets to keep.
    fn add(&mut self, record: Vec<u8>, last: Option<u64>) -> std::io::Result<()> {
        self.bytes += record.len() as u64;
        self.packets += 1;
        let Some(most) = last else { return self.file.write_all(&record) };
        self.kept.push_back(record);
        while self.bytes > most {
            let Some(first) = self.kept.pop_front() else { break };
            self.bytes -= first.len() as u64;
            self.packets -= 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> std::io::Result<()> {
        for record in self.kept.drain(..) {
            self.file.write_all(&record)?;
        }
        self.file.flush()
    }
}

/// A packet as it stands in the file.
fn record(packet: &Received<'_>, pseudonyms: Option<&mut Pseudonyms>) -> Vec<u8> {
    let mut record = Vec::with_capacity(16 + packet.frame.len());
    for number in [
        (packet.time_ns / 1_000_000_000) as u32,
        (packet.time_ns % 1_000_000_000) as u32,
        packet.frame.len() as u32,
        packet.length,
    ] {
        record.extend(number.to_le_bytes());
    }
    record.extend(packet.frame);
    if let Some(pseudonyms) = pseudonyms {
        pseudonyms.replace(&mut record[16..]);
    }
    record
}

const LD_H: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LD_B: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const LD_B_X: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_IND) as u16;
const LDX_HEADER: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const HAS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const SHIFT: u16 = (libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K) as u16;
const PLUS_X: u16 = (libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X) as u16;
const PLUS: u16 = (libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K) as u16;
const GO_ON: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const ANSWER_A: u16 = (libc::BPF_RET | libc::BPF_A) as u16;
const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const fn op(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// How many bytes of an Ethernet frame are headers, where it holds TCP; else none of it. The kernel takes VLAN tags off before.
const HEADERS_OF_TCP: &[sock_filter] = &[
    op(LD_H, 12),
    jump(IS, 0x0800, 0, 10),
    // IPv4: TCP, and the first fragment.
    op(LD_B, 23),
    jump(IS, 6, 0, 17),
    op(LD_H, 20),
    jump(HAS, 0x1fff, 15, 0),
    // X: bytes of the IP header. The upper half of byte 12 of TCP's header has its length in words.
    op(LDX_HEADER, 14),
    op(LD_B_X, 14 + 12),
    op(AND, 0xf0),
    op(SHIFT, 2),
    op(PLUS_X, 0),
    op(GO_ON, 7),
    // IPv6 without extension headers.
    jump(IS, 0x86dd, 0, 8),
    op(LD_B, 20),
    jump(IS, 6, 0, 6),
    op(LD_B, 54 + 12),
    op(AND, 0xf0),
    op(SHIFT, 2),
    op(PLUS, 40),
    op(PLUS, 14),
    op(ANSWER_A, 0),
    op(ANSWER, 0),
];
