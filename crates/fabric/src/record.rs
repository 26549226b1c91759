//! What is written about packets: one record when a host sends one, one for each port it is offered to.
//!
//! Little-endian, no padding. Whoever reads them knows the links' delays, and so when each packet arrived.

use alloc::vec::Vec;

const SENT: u8 = 1;
const HOP: u8 = 2;
const SENT_BYTES: usize = 48;
const HOP_BYTES: usize = 24;

/// A host gave a packet to the network. Packets are numbered in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Position in the network's connections.
    pub connection: u32,
    /// From the server to the client.
    pub backward: bool,
    /// Length of the IP packet.
    pub length: u32,
    /// When, ps.
    pub time_ps: u64,
    /// The sending socket's state just then; a handshake has none yet.
    pub sender: Option<crate::Sender>,
}

/// What a port did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Number of the packet.
    pub packet: u32,
    /// Position in the network's links.
    pub link: u16,
    /// Taken, marked or dropped.
    pub fate: Fate,
    /// When it was offered, ps.
    pub time_ps: u64,
    /// When its last bit leaves, ps; of a dropped packet, when it was offered.
    pub departure_ps: u64,
}

/// What becomes of a packet at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Taken into the queue.
    Accepted = 0,
    /// Not taken.
    Dropped = 1,
    /// Taken and marked CE.
    Marked = 2,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A packet, and its headers from IP on.
    Sent(Sent, &'a [u8]),
    /// A port.
    Hop(Hop),
}

/// Appends a packet's record.
pub(crate) fn write_sent(out: &mut Vec<u8>, sent: &Sent, headers: &[u8]) {
    let headers = &headers[..headers.len().min(255)];
    let sender = sent.sender.unwrap_or_default();
    let bits = u8::from(sent.backward) | u8::from(sent.sender.is_some()) << 1;
    out.extend_from_slice(&[SENT, headers.len() as u8, bits, sender.state]);
    out.extend_from_slice(&sent.connection.to_le_bytes());
    out.extend_from_slice(&sent.time_ps.to_le_bytes());
    for word in [sent.length, sender.cwnd, sender.ssthresh, sender.in_flight, sender.srtt_us, 0, 0, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(headers);
}

/// Appends a port's record.
pub(crate) fn write_hop(out: &mut Vec<u8>, hop: &Hop) {
    out.extend_from_slice(&[HOP, hop.fate as u8]);
    out.extend_from_slice(&hop.link.to_le_bytes());
    out.extend_from_slice(&hop.packet.to_le_bytes());
    out.extend_from_slice(&hop.time_ps.to_le_bytes());
    out.extend_from_slice(&hop.departure_ps.to_le_bytes());
}

/// Takes the first record off; `None` at the end, and where the bytes are cut or are no records: then some are left.
pub fn read<'a>(bytes: &mut &'a [u8]) -> Option<Record<'a>> {
    let at = *bytes;
    match *at.first()? {
        SENT => {
            let length = SENT_BYTES + usize::from(*at.get(1)?);
            let record = at.get(..length)?;
            let sender = crate::Sender {
                state: record[3],
                cwnd: word(record, 20),
                ssthresh: word(record, 24),
                in_flight: word(record, 28),
                srtt_us: word(record, 32),
            };
            let sent = Sent {
                connection: word(record, 4),
                backward: record[2] & 1 != 0,
                length: word(record, 16),
                time_ps: long(record, 8),
                sender: (record[2] & 2 != 0).then_some(sender),
            };
            *bytes = &at[length..];
            Some(Record::Sent(sent, &record[SENT_BYTES..]))
        }
        HOP => {
            let record = at.get(..HOP_BYTES)?;
            let fate = [Fate::Accepted, Fate::Dropped, Fate::Marked].get(usize::from(record[1])).copied()?;
            *bytes = &at[HOP_BYTES..];
            Some(Record::Hop(Hop {
                packet: word(record, 4),
                link: u16::from_le_bytes([record[2], record[3]]),
                fate,
                time_ps: long(record, 8),
                departure_ps: long(record, 16),
            }))
        }
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_as_written_and_a_cut_one_is_left() {
        let sender = crate::Sender { cwnd: 10, ssthresh: 7, in_flight: 3, srtt_us: 120, state: 4 };
        let sent = Sent { connection: 5, backward: true, length: 1500, time_ps: u64::MAX - 1, sender: Some(sender) };
        let hop = Hop { packet: 9, link: 513, fate: Fate::Marked, time_ps: 1 << 40, departure_ps: (1 << 40) + 7 };
        let mut out = Vec::new();
        write_sent(&mut out, &sent, b"headers");
        write_hop(&mut out, &hop);
        write_sent(&mut out, &Sent::default(), b"");
        let mut rest = &out[..out.len() - 1];
        assert_eq!(read(&mut rest), Some(Record::Sent(sent, b"headers")));
        assert_eq!(read(&mut rest), Some(Record::Hop(hop)));
        assert_eq!(read(&mut rest), None);
        assert_eq!(rest.len(), SENT_BYTES - 1);
    }
}
