//! From the engine's packets to TCP headers.
//!
//! The engine's flows are one way, and its acknowledgements name the flow they acknowledge. On the wire a flow and its reverse are one
//! connection, so what a header says besides is what its sender knew when it sent it:
//!
//! * stream offset x is sequence number x + 1; a SYN has 0. Without a handshake the connection is one whose beginning was not captured.
//! * data carry the engine's ACK of the opposite direction; where it has none (one-way agents), that of the host's last pure ACK. A pure
//!   ACK has the next sequence number of its host's own stream.
//! * time stamps count microseconds from 1; echoes are those of the engine.
//! * SACK is there if the sender uses it. The engine flags a D-SACK without its range: the duplicates that arrived answer for it, in order.
//! * windows are scaled as the receive window needs. Where the receiver controls them they count 8 bytes, so that small ones are not 0.
//! * retransmissions are not ECN-capable (RFC 3168 section 6.1.5), unless `ect_on_control` says so: as the engine sends them.
//! * there is no FIN: the engine's connections stay open.
//!
//! Headers are as long as their options make them, whatever `stack.header` counts.

use fanin_capture::write::{Datagram, Ecn, Endpoint, Flags, Segment, TcpOptions};
use fanin_sim::packet::{Packet, flags};
use fanin_sim::spec::{NodeId, NodeKind, Spec};
use fanin_sim::{RunError, resolved_stack};
use fanin_units::Time;
use std::collections::{HashMap, VecDeque};

use super::acknowledges;

/// Connection number n has port 50000 + n at one end, and 40000 at the other; beyond 4000 connections the other end counts on.
const FIRST_PORT: u32 = 50_000;
const OTHER_PORT: u32 = 40_000;
const PORTS: u32 = 4_000;

/// Window shift of connections whose receiver decides: windows of single packets must not vanish.
const CONTROLLED_SHIFT: u8 = 3;
/// RFC 7323 section 2.3.
const LARGEST_SHIFT: u8 = 14;

/// The ECN bits of a packet as it is now.
pub fn ecn(packet: &Packet) -> Ecn {
    if packet.has(flags::CE) {
        Ecn::Ce
    } else if packet.has(flags::ECT) {
        Ecn::Ect0
    } else {
        Ecn::NotEct
    }
}

/// A packet as its sender wrote it, ECN aside.
#[derive(Clone, Debug)]
pub struct Sent {
    from: Endpoint,
    to: Endpoint,
    ip_id: u16,
    payload: u32,
    /// `None`: a datagram.
    tcp: Option<Tcp>,
}

#[derive(Clone, Debug)]
struct Tcp {
    seq: u32,
    ack: u32,
    flags: Flags,
    window: u16,
    timestamps: Option<(u32, u32)>,
    sack: [(u32, u32); 4],
    sacks: usize,
    /// Of a SYN: maximum segment size, window shift, SACK permitted.
    opening: Option<(u16, u8, bool)>,
}

impl Sent {
    /// The whole frame's length; `out` gets its headers.
    pub fn headers(&self, ecn: Ecn, out: &mut Vec<u8>) -> u32 {
        let Sent { from, to, ip_id, payload, .. } = *self;
        let Some(tcp) = &self.tcp else {
            return Datagram { from, to, ip_id, ecn, payload: payload as u16 }.headers(out);
        };
        let options = TcpOptions {
            mss: tcp.opening.map(|o| o.0),
            window_scale: tcp.opening.map(|o| o.1),
            sack_permitted: tcp.opening.is_some_and(|o| o.2),
            timestamps: tcp.timestamps,
            sack: &tcp.sack[..tcp.sacks],
        };
        let Tcp { seq, ack, flags, window, .. } = *tcp;
        Segment { from, to, seq, ack, flags, window, ecn, ip_id, options, payload }.headers(out)
    }
}

/// What a transport's connections agree on.
#[derive(Clone, Copy, Debug)]
struct Terms {
    mss: u16,
    timestamps: bool,
    sack: bool,
    shift: u8,
    round_up: bool,
    /// First window, bytes.
    window: u64,
}

/// All connections of a run.
#[derive(Debug)]
pub struct Connections {
    flows: Vec<FlowEnds>,
    datagrams: Vec<(Endpoint, Endpoint, NodeId)>,
    terms: Vec<Terms>,
    /// By number, made at its first packet.
    open: HashMap<u32, [Side; 2]>,
    datagram_ids: Vec<u16>,
}

/// Where a flow stands in its connection.
#[derive(Clone, Copy, Debug)]
struct FlowEnds {
    connection: u32,
    transport: u32,
    /// The sending side, 0 or 1.
    side: usize,
    src: NodeId,
    dst: NodeId,
    from: Endpoint,
    to: Endpoint,
}

/// What one end of a connection knows.
#[derive(Debug)]
struct Side {
    ip_id: u16,
    /// Bytes of its own stream that it has sent.
    sent: u64,
    /// Bytes of the other stream that it has acknowledged.
    acknowledged: u64,
    /// Its window field and the time stamp it echoes.
    window: u16,
    echo: u32,
    arrived: Arrived,
}

impl Connections {
    /// Of a run that has not begun.
    ///
    /// # Errors
    /// As the run itself.
    pub fn new(spec: &Spec) -> Result<Connections, RunError> {
        let mut host_numbers = vec![0; spec.nodes.len()];
        let hosts = spec.nodes.iter().enumerate().filter(|(_, n)| n.kind == NodeKind::Host);
        for (number, (node, _)) in hosts.enumerate() {
            host_numbers[node] = number as u32;
        }
        let end = |node: NodeId, port: u32| Endpoint::host(host_numbers[node.index()], port as u16);
        let ports = |n: u32| (FIRST_PORT + n % PORTS, OTHER_PORT + n / PORTS % 10_000);
        let flows = spec.flows.iter().enumerate().map(|(f, flow)| {
            let connection = flow.reverse.map_or(f as u32, |r| r.0.min(f as u32));
            let (first, other) = ports(connection);
            let is_first = connection == f as u32;
            let (from, to) = if is_first { (first, other) } else { (other, first) };
            FlowEnds {
                connection,
                transport: flow.transport,
                side: usize::from(!is_first),
                src: flow.src,
                dst: flow.dst,
                from: end(flow.src, from),
                to: end(flow.dst, to),
            }
        });
        let datagrams = spec.cbr.iter().enumerate().map(|(n, cbr)| {
            let (from, to) = ports(n as u32);
            (end(cbr.src, from), end(cbr.dst, to), cbr.dst)
        });
        let terms: Result<Vec<Terms>, RunError> = spec.transports.iter().map(Terms::of).collect();
        Ok(Connections {
            flows: flows.collect(),
            datagrams: datagrams.collect(),
            terms: terms?,
            open: HashMap::new(),
            datagram_ids: vec![0; spec.cbr.len()],
        })
    }

    /// Where a packet is going.
    pub fn destination(&self, packet: &Packet) -> NodeId {
        if packet.has(flags::DATAGRAM) {
            return self.datagrams[packet.flow as usize].2;
        }
        let flow = &self.flows[packet.flow as usize];
        if acknowledges(packet) { flow.src } else { flow.dst }
    }

    /// A host sends this packet now.
    pub fn send(&mut self, packet: &Packet, now: Time) -> Sent {
        if packet.has(flags::DATAGRAM) {
            let (from, to, _) = self.datagrams[packet.flow as usize];
            let id = &mut self.datagram_ids[packet.flow as usize];
            *id = id.wrapping_add(1);
            return Sent { from, to, ip_id: *id, payload: u32::from(packet.len), tcp: None };
        }
        let flow = self.flows[packet.flow as usize];
        let terms = self.terms[flow.transport as usize];
        let sides = self.open.entry(flow.connection).or_insert_with(|| [Side::new(&terms), Side::new(&terms)]);
        let back = acknowledges(packet);
        let me = &mut sides[if back { 1 - flow.side } else { flow.side }];
        me.ip_id = me.ip_id.wrapping_add(1);
        let (from, to) = if back { (flow.to, flow.from) } else { (flow.from, flow.to) };
        let tcp = match (packet.has(flags::SYN), back) {
            (true, _) => me.open(packet, back, &terms, now),
            (false, false) if packet.len == 0 => me.tcp(number(me.sent), Flags::NONE, &terms, now),
            (false, false) => me.data(packet, &terms, now),
            (false, true) => me.acknowledgement(packet, &terms, now),
        };
        Sent { from, to, ip_id: me.ip_id, payload: u32::from(packet.len), tcp: Some(tcp) }
    }

    /// A packet reached its destination.
    pub fn receive(&mut self, packet: &Packet, sent: &Sent) {
        let Some(tcp) = sent.tcp.as_ref().filter(|_| !packet.has(flags::DATAGRAM)) else { return };
        let flow = self.flows[packet.flow as usize];
        let Some(sides) = self.open.get_mut(&flow.connection) else { return };
        let me = &mut sides[if acknowledges(packet) { flow.side } else { 1 - flow.side }];
        if packet.has(flags::SYN) {
            me.echo = tcp.timestamps.map_or(0, |t| t.0);
        } else if !acknowledges(packet) && self.terms[flow.transport as usize].sack {
            me.arrived.add(packet.seq, packet.seq + u64::from(packet.len));
        }
    }
}

impl Terms {
    fn of(transport: &fanin_sim::spec::TransportSpec) -> Result<Terms, RunError> {
        let stack = resolved_stack(transport)?;
        let controlled = transport.cc.has_receiver();
        let window = stack.receive_window.get();
        let needed = (0..LARGEST_SHIFT).find(|s| window >> s <= u64::from(u16::MAX)).unwrap_or(LARGEST_SHIFT);
        let options = if stack.timestamps { 12 } else { 0 };
        Ok(Terms {
            // The option does not count other options (RFC 6691).
            mss: u16::try_from(stack.mss + options).unwrap_or(u16::MAX),
            timestamps: stack.timestamps,
            sack: stack.recovery.uses_sack(),
            shift: if controlled { CONTROLLED_SHIFT.min(needed) } else { needed },
            round_up: controlled,
            window,
        })
    }

    fn field(&self, window: u64) -> u16 {
        let whole = if self.round_up { window.div_ceil(1 << self.shift) } else { window >> self.shift };
        u16::try_from(whole).unwrap_or(u16::MAX)
    }
}

/// Microseconds from 1: 0 would mean that there is none.
fn stamp(ps: u64) -> u32 {
    (ps / 1_000_000) as u32 + 1
}

/// The low 32 bits of a stream offset as a sequence number.
fn number(offset: u64) -> u32 {
    (offset as u32).wrapping_add(1)
}

impl Side {
    fn new(terms: &Terms) -> Side {
        Side {
            ip_id: 0,
            sent: 0,
            acknowledged: 0,
            window: terms.field(terms.window),
            echo: 0,
            arrived: Arrived::default(),
        }
    }

    fn tcp(&self, seq: u32, flags: Flags, terms: &Terms, now: Time) -> Tcp {
        Tcp {
            seq,
            ack: number(self.acknowledged),
            flags: flags | Flags::ACK,
            window: self.window,
            timestamps: terms.timestamps.then(|| (stamp(now.ps()), self.echo)),
            sack: [(0, 0); 4],
            sacks: 0,
            opening: None,
        }
    }

    /// A SYN, or the answer to one.
    fn open(&mut self, packet: &Packet, answer: bool, terms: &Terms, now: Time) -> Tcp {
        if answer {
            self.echo = stamp(packet.timestamp);
        }
        let ecn = match (packet.has(flags::ECE), answer) {
            (false, _) => Flags::NONE,
            (true, false) => Flags::ECE | Flags::CWR,
            (true, true) => Flags::ECE,
        };
        let mut tcp = self.tcp(0, Flags::SYN | ecn, terms, now);
        if !answer {
            (tcp.flags, tcp.ack) = (Flags::SYN | ecn, 0);
            tcp.timestamps = terms.timestamps.then(|| (stamp(now.ps()), 0));
        }
        // A SYN's window is never scaled (RFC 7323 section 2.2).
        tcp.window = u16::try_from(terms.window).unwrap_or(u16::MAX);
        tcp.opening = Some((terms.mss, terms.shift, terms.sack));
        tcp
    }

    fn data(&mut self, packet: &Packet, terms: &Terms, now: Time) -> Tcp {
        self.sent = self.sent.max(packet.seq + u64::from(packet.len));
        let push = if packet.has(flags::PUSH) { Flags::PSH } else { Flags::NONE };
        let cwr = if packet.has(flags::CWR) { Flags::CWR } else { Flags::NONE };
        if let Some(ack) = packet.carried(packet.flow) {
            self.learn(&ack, terms);
        }
        let mut tcp = self.tcp(number(packet.seq), push | cwr | ece(packet), terms, now);
        if let Some(ack) = packet.carried(packet.flow) {
            self.report(&ack, terms, &mut tcp);
        }
        tcp
    }

    /// What the ACK of the opposite direction says, for this and later packets.
    fn learn(&mut self, ack: &Packet, terms: &Terms) {
        self.acknowledged = ack.seq;
        self.window = terms.field(u64::from(ack.window));
        // The engine's echo is 0 until something arrived in order: what a host echoes then is the SYN.
        if ack.timestamp > 0 || self.echo == 0 {
            self.echo = stamp(ack.timestamp);
        }
    }

    /// Its SACK blocks.
    fn report(&mut self, ack: &Packet, terms: &Terms, tcp: &mut Tcp) {
        if !terms.sack {
            return;
        }
        let duplicate = if ack.has(flags::DSACK) { self.arrived.duplicates.pop_front() } else { None };
        let others = ack.sack.chunks_exact(2).filter(|b| b[1] > 0);
        let others = others.map(|b| (ack.seq + u64::from(b[0]), ack.seq + u64::from(b[1])));
        for (slot, (start, end)) in tcp.sack.iter_mut().zip(duplicate.into_iter().chain(others)) {
            *slot = (number(start), number(end));
            tcp.sacks += 1;
        }
    }

    fn acknowledgement(&mut self, packet: &Packet, terms: &Terms, now: Time) -> Tcp {
        self.learn(packet, terms);
        let mut tcp = self.tcp(number(self.sent), ece(packet), terms, now);
        self.report(packet, terms, &mut tcp);
        tcp
    }
}

fn ece(packet: &Packet) -> Flags {
    if packet.has(flags::ECE) { Flags::ECE } else { Flags::NONE }
}

/// What arrived at one end, to know duplicates as the engine's receiver does.
#[derive(Debug, Default)]
struct Arrived {
    next: u64,
    /// Beyond `next`, apart and in order.
    ahead: Vec<(u64, u64)>,
    /// Not yet reported.
    duplicates: VecDeque<(u64, u64)>,
}

impl Arrived {
    fn add(&mut self, start: u64, end: u64) {
        if end <= self.next || self.ahead.iter().any(|&(s, e)| s <= start && end <= e) {
            self.duplicates.push_back((start, end));
            return;
        }
        if start <= self.next {
            self.next = end;
            let covered = self.ahead.iter().take_while(|r| r.0 <= self.next).count();
            if let Some(last) = self.ahead[..covered].last() {
                self.next = self.next.max(last.1);
            }
            self.ahead.drain(..covered);
            return;
        }
        let from = self.ahead.partition_point(|r| r.1 < start);
        let to = from + self.ahead[from..].iter().take_while(|r| r.0 <= end).count();
        let merged = self.ahead[from..to].iter().fold((start, end), |m, r| (m.0.min(r.0), m.1.max(r.1)));
        self.ahead.splice(from..to, [merged]);
    }
}
