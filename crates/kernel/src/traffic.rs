//! The record of a run: every packet that a host sent, and what each port did with it.

use crate::KernelError;
use fanin_fabric::Sender;
use fanin_fabric::record::{self, Fate, Hop, Record};
use std::ops::Range;

/// A packet, with the parts of its headers that results need.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Position in the fabric's connections.
    pub connection: u32,
    /// From the end that listens.
    pub backward: bool,
    /// When its host sent it; ps of the kernel's clock.
    pub time: u64,
    /// Length of the IP packet.
    pub length: u32,
    /// Payload of the transport.
    pub payload: u32,
    /// Its headers from IP on, as a part of [`Traffic::bytes`].
    pub headers: Range<usize>,
    /// The sending socket just before.
    pub sender: Option<Sender>,
    /// Sequence and acknowledgement number and flags of TCP; none: a datagram.
    pub tcp: Option<Tcp>,
}

/// Of a TCP header.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    pub seq: u32,
    pub ack: u32,
    /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    pub window: u16,
    /// Time-stamp value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack: [u32; 6],
}

/// Everything recorded.
#[derive(Debug)]
pub struct Traffic {
    pub bytes: Vec<u8>,
    pub packets: Vec<Packet>,
    pub hops: Vec<Hop>,
}

impl Traffic {
    /// From the record's bytes.
    ///
    /// # Errors
    /// [`KernelError::Record`] when they are cut or do not make sense.
    pub fn parse(bytes: Vec<u8>) -> Result<Traffic, KernelError> {
        let (mut packets, mut hops) = (Vec::new(), Vec::new());
        let mut rest = bytes.as_slice();
        while let Some(record) = record::read(&mut rest) {
            match record {
                Record::Sent(sent, headers) => {
                    let end = bytes.len() - rest.len();
                    packets.push(Packet {
                        connection: sent.connection,
                        backward: sent.backward,
                        time: sent.time_ps,
                        length: sent.length,
                        payload: sent.length.saturating_sub(headers.len() as u32),
                        headers: end - headers.len()..end,
                        sender: sent.sender,
                        tcp: Tcp::parse(headers),
                    });
                }
                Record::Hop(hop) => {
                    if hop.packet as usize >= packets.len() {
                        return Err(KernelError::Record(format!("packet {} was never sent", hop.packet)));
                    }
                    hops.push(hop);
                }
            }
        }
        match rest.len() {
            0 => Ok(Traffic { bytes, packets, hops }),
            left => Err(KernelError::Record(format!("its last {left} bytes are no record"))),
        }
    }

    /// Gives each hop of a packet that was not dropped there with its arrival at the link's far end, given the links' delays in ps.
    pub fn arrivals<'a>(&'a self, delays: &'a [u64]) -> impl Iterator<Item = (u64, &'a Hop)> + 'a {
        let taken = self.hops.iter().filter(|h| h.fate != Fate::Dropped);
        taken.map(|h| (h.departure_ps + delays.get(usize::from(h.link)).copied().unwrap_or(0), h))
    }
}

impl Tcp {
    /// SYN, ACK, ECE.
    pub const SYN: u8 = 2;
    pub const ACK: u8 = 16;
    pub const ECE: u8 = 64;

    fn parse(ip: &[u8]) -> Option<Tcp> {
        let header = 4 * usize::from(*ip.first()? & 15);
        if *ip.get(9)? != 6 {
            return None;
        }
        let tcp = ip.get(header..)?;
        let word = |at: usize| Some(u32::from_be_bytes(tcp.get(at..at + 4)?.try_into().ok()?));
        let mut made = Tcp {
            seq: word(4)?,
            ack: word(8)?,
            flags: *tcp.get(13)?,
            window: (word(12)? & 0xffff) as u16,
            timestamps: None,
            sack: [0; 6],
        };
        let length = (4 * usize::from(*tcp.get(12)? >> 4)).min(tcp.len());
        let mut at = 20;
        while at < length && tcp[at] != 0 {
            if tcp[at] == 1 {
                at += 1;
                continue;
            }
            let size = usize::from(*tcp.get(at + 1)?).max(2);
            match (tcp[at], size) {
                (8, 10) => made.timestamps = Some((word(at + 2)?, word(at + 6)?)),
                (5, _) => {
                    for (slot, block) in made.sack.iter_mut().zip((at + 2..at + size).step_by(4)) {
                        *slot = word(block).unwrap_or(0).wrapping_sub(made.ack);
                    }
                }
                _ => {}
            }
            at += size;
        }
        Some(made)
    }

    /// Opens a connection.
    pub fn is_syn(&self) -> bool {
        self.flags & Tcp::SYN != 0
    }
}
