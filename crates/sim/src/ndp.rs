//! NDP: a sender pushes a first window and then sends one packet per PULL; the receiving host spaces its PULLs, for all flows together, as
//! far apart as its link takes for a packet. Switches that trim (`trimming`) let the receiver hear of every packet.
//!
//! *Source*: Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance" (SIGCOMM 2017),
//! section 3.2.
//!
//! *Departures* (docs/algorithms/ndp.md): one path per flow unless the scenario sprays; no header returns to its sender.

use crate::build::{AllPaths, setup_for};
use crate::endpoint::{Endpoint, Handed, Host, PerFlow};
use crate::engine::RunError;
use crate::net::Net;
use crate::packet::{Packet, flags};
use crate::results::FlowStats;
use crate::spec::{NodeId, Spec};
use crate::stack::Stack;
use crate::timer::Timer;
use fanin_cc::algorithms::ndp;
use std::collections::{BTreeMap, VecDeque};

/// What a packet of the receiver's says, in the first word of [`Packet::sack`].
mod says {
    /// The packet has arrived.
    pub const ACK: u32 = 0;
    /// Its header has arrived.
    pub const NACK: u32 = 1;
    /// Send; `seq` is how many packets have been asked for so far, so that a lost PULL costs nothing.
    pub const PULL: u32 = 2;
}

/// A sender that only waits for PULLs waits so many timeouts: the receiver knows of its packets.
const PATIENCE: u32 = 6;
/// A timeout doubles so many times at most.
const MOST_BACKOFF: u32 = 10;

/// All flows of this transport.
#[derive(Debug)]
pub struct Ndp {
    sources: PerFlow<Source>,
    sinks: PerFlow<Sink>,
    pacers: Vec<Pacer>,
}

/// Builds the flows that run over NDP; `mine` says which.
pub fn build(spec: &Spec, paths: &AllPaths, mine: &dyn Fn(u32) -> bool) -> Result<Box<dyn Endpoint>, RunError> {
    let flows = spec.flows.len();
    let mut ndp = Ndp { sources: PerFlow::new(flows, false), sinks: PerFlow::new(flows, false), pacers: Vec::new() };
    let mut pacers: BTreeMap<NodeId, usize> = BTreeMap::new();
    for (i, flow) in (0..).zip(&spec.flows).filter(|&(i, _)| mine(i)) {
        let transport = &spec.transports[flow.transport as usize];
        let stack = &transport.stack;
        let setup = setup_for(spec, stack, &paths[i as usize]);
        let built = transport.cc.build(&setup, &transport.args)?;
        let rto = transport.args.number(&ndp::RTO, stack.cc_profile).map_err(fanin_cc::BuildError::from)?;
        ndp.sources.push(i, Source::new(i, stack, built.sender.control().cwnd as u32, (rto * 1e12) as u64));
        let pacer = *pacers.entry(flow.dst).or_insert_with(|| {
            let rate = paths[i as usize].backward.first().map(|l| spec.links[l.index()].rate);
            let interval = rate.map_or(1, |rate| (stack.wire(stack.mss) / rate).ps().max(1));
            ndp.pacers.push(Pacer { flow: i, interval, turns: VecDeque::new(), next_at: 0, timer_at: u64::MAX });
            ndp.pacers.len() - 1
        });
        ndp.sinks.push(i, Sink::new(i, stack, pacer));
    }
    Ok(Box::new(ndp))
}

impl Endpoint for Ndp {
    fn on_packet(&mut self, packet: &Packet, host: &mut Host<'_>) {
        let flow = packet.flow;
        if packet.has(flags::ACK) {
            return self.sources[flow].on_answer(packet, host);
        }
        let sink = &mut self.sinks[flow];
        sink.on_data(packet, host);
        let pacer = sink.pacer;
        if sink.pulls > 0 && !sink.in_turn {
            sink.in_turn = true;
            self.pacers[pacer].turns.push_back(flow);
        }
        self.pace(pacer, host.net);
    }

    fn on_timer(&mut self, timer: Timer, host: &mut Host<'_>) {
        match timer {
            Timer::Source(flow) => self.sources[flow].on_timer(host),
            Timer::Sink(flow) => {
                let pacer = self.sinks[flow].pacer;
                if self.pacers[pacer].timer_at == host.net.now {
                    self.pacers[pacer].timer_at = u64::MAX;
                    self.pace(pacer, host.net);
                }
            }
            _ => {}
        }
    }

    fn stop(&mut self, flow: u32) {
        self.sources[flow].stop();
    }

    fn write(&mut self, message: Handed, host: &mut Host<'_>) {
        let source = &mut self.sources[message.flow];
        let end = source.written.saturating_add(message.bytes);
        let sink = &mut self.sinks[message.flow];
        sink.messages.push_back((end, message.id));
        host.app.promise(message.id, message.deadline, source.timeouts);
        source.write(message.id, end, host);
        if message.bytes == 0 {
            sink.report_complete(host);
        }
    }

    fn close(&mut self, flow: u32, row: &mut FlowStats) {
        if let Some(source) = self.sources.take(flow) {
            source.report(row);
        }
        if let Some(sink) = self.sinks.take(flow) {
            row.bytes_delivered = sink.next;
            row.last_delivery_ps = sink.last_delivery;
        }
    }
}

impl Ndp {
    /// Sends the PULLs that are due, one flow after the other.
    fn pace(&mut self, pacer: usize, net: &mut Net) {
        let pacer = &mut self.pacers[pacer];
        while pacer.next_at <= net.now
            && let Some(flow) = pacer.turns.pop_front()
        {
            let sink = &mut self.sinks[flow];
            if sink.pulls == 0 {
                sink.in_turn = false;
                continue;
            }
            sink.pull(net);
            pacer.next_at = net.now + pacer.interval;
            if sink.pulls > 0 {
                pacer.turns.push_back(flow);
            } else {
                sink.in_turn = false;
            }
        }
        if !pacer.turns.is_empty() && pacer.timer_at == u64::MAX {
            pacer.timer_at = pacer.next_at;
            net.calendar.schedule_timer(pacer.timer_at, Timer::Sink(pacer.flow));
        }
    }
}

/// Spaces the PULLs of one host.
#[derive(Debug)]
struct Pacer {
    /// The flow whose timer it uses.
    flow: u32,
    /// Time of a full packet on the host's link, ps.
    interval: u64,
    /// Flows that wait to pull.
    turns: VecDeque<u32>,
    next_at: u64,
    timer_at: u64,
}

/// What has become of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Unknown,
    Trimmed,
    Arrived,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: u64,
    len: u32,
    at: u64,
    fate: Fate,
}

/// The sending end of a flow.
#[derive(Debug)]
struct Source {
    flow: u32,
    mss: u32,
    header: u16,
    window: u32,
    rto: u64,
    written: u64,
    next: u64,
    /// Number and first byte of the messages of which nothing is sent.
    messages: VecDeque<(u32, u64)>,
    /// In order of sequence; the front has not arrived.
    out: VecDeque<Sent>,
    /// To be sent again, by sequence.
    again: VecDeque<u64>,
    /// Packets of unknown fate.
    unknown: u32,
    /// PULLs so far, and those still to come for packets that were answered.
    pulled: u64,
    owed: u64,
    due_at: u64,
    timer_at: u64,
    backoff: u32,
    timeouts: u32,
    timeout_ps: u64,
    segments: u64,
    bytes_sent: u64,
    retransmissions: u64,
    first_send: Option<u64>,
    last_send: u64,
    srtt: u64,
    min_rtt: u64,
}

impl Source {
    fn new(flow: u32, stack: &Stack, window: u32, rto: u64) -> Source {
        Source {
            flow,
            mss: stack.mss,
            header: stack.wire(0).get() as u16,
            window: window.max(1),
            rto,
            written: 0,
            next: 0,
            messages: VecDeque::new(),
            out: VecDeque::new(),
            again: VecDeque::new(),
            unknown: 0,
            pulled: 0,
            owed: 0,
            due_at: u64::MAX,
            timer_at: u64::MAX,
            backoff: 0,
            timeouts: 0,
            timeout_ps: 0,
            segments: 0,
            bytes_sent: 0,
            retransmissions: 0,
            first_send: None,
            last_send: 0,
            srtt: 0,
            min_rtt: 0,
        }
    }

    fn write(&mut self, id: u32, end: u64, host: &mut Host<'_>) {
        self.messages.push_back((id, self.written));
        self.written = end;
        self.push(host);
        self.arm(host.net);
    }

    fn stop(&mut self) {
        self.written = self.next;
    }

    /// A flow that nothing will pull begins with a first window.
    fn push(&mut self, host: &mut Host<'_>) {
        if self.unknown > 0 || self.owed > 0 || !self.again.is_empty() {
            return;
        }
        for _ in 0..self.window {
            if !self.send_new(host) {
                break;
            }
        }
    }

    fn on_answer(&mut self, packet: &Packet, host: &mut Host<'_>) {
        let now = host.net.now;
        self.backoff = 0;
        match packet.sack[0] {
            says::PULL => {
                let credit = packet.seq.saturating_sub(self.pulled);
                self.pulled += credit;
                self.owed = self.owed.saturating_sub(credit);
                for _ in 0..credit {
                    if !self.send_again(host) && !self.send_new(host) {
                        break;
                    }
                }
            }
            says::NACK => {
                self.owed += 1;
                self.judge(packet.seq, Fate::Trimmed);
            }
            _ => {
                self.owed += 1;
                self.measure(now - packet.timestamp);
                self.judge(packet.seq, Fate::Arrived);
            }
        }
        if packet.has(flags::PUSH) {
            // The receiver has all that it knows of and pulls no more.
            self.owed = 0;
        }
        self.push(host);
        self.due_at = match () {
            () if self.unknown > 0 => self.left_by(host.net) + self.rto,
            () if !self.again.is_empty() || self.owed > 0 && self.next < self.written => now + (self.rto << PATIENCE),
            () => u64::MAX,
        };
        self.arm(host.net);
    }

    /// Notes what has become of a packet, once.
    fn judge(&mut self, seq: u64, fate: Fate) {
        let index = self.out.partition_point(|s| s.seq < seq);
        let Some(sent) = self.out.get_mut(index).filter(|s| s.seq == seq) else { return };
        match (sent.fate, fate) {
            (Fate::Unknown, _) => self.unknown -= 1,
            // Sent again in vain.
            (Fate::Trimmed, Fate::Arrived) => self.again.retain(|&s| s != seq),
            _ => return,
        }
        sent.fate = fate;
        if fate == Fate::Trimmed {
            self.again.push_back(seq);
        }
        while self.out.front().is_some_and(|s| s.fate == Fate::Arrived) {
            self.out.pop_front();
        }
    }

    fn measure(&mut self, rtt: u64) {
        self.min_rtt = if self.min_rtt == 0 { rtt } else { self.min_rtt.min(rtt) };
        self.srtt = if self.srtt == 0 { rtt } else { (7 * self.srtt + rtt) / 8 };
    }

    fn send_new(&mut self, host: &mut Host<'_>) -> bool {
        let len = (self.written - self.next).min(u64::from(self.mss)) as u32;
        if len == 0 {
            return false;
        }
        let (seq, now) = (self.next, host.net.now);
        self.next += u64::from(len);
        self.out.push_back(Sent { seq, len, at: now, fate: Fate::Unknown });
        while let Some(&(id, start)) = self.messages.front()
            && start < self.next
        {
            host.app.started(id, now);
            self.messages.pop_front();
        }
        self.emit(seq, len, 0, host.net);
        true
    }

    fn send_again(&mut self, host: &mut Host<'_>) -> bool {
        let Some(seq) = self.again.pop_front() else { return false };
        let index = self.out.partition_point(|s| s.seq < seq);
        let Some(sent) = self.out.get_mut(index).filter(|s| s.seq == seq) else { return false };
        sent.fate = Fate::Unknown;
        sent.at = host.net.now;
        let len = sent.len;
        self.retransmissions += 1;
        self.emit(seq, len, flags::RETRANSMISSION, host.net);
        true
    }

    fn emit(&mut self, seq: u64, len: u32, bits: u16, net: &mut Net) {
        self.unknown += 1;
        self.segments += 1;
        self.bytes_sent += u64::from(len);
        self.first_send.get_or_insert(net.now);
        self.last_send = net.now;
        let last = if seq + u64::from(len) == self.written { flags::PUSH } else { 0 };
        net.send(Packet {
            seq,
            timestamp: net.now,
            flow: self.flow,
            len: len as u16,
            wire: self.header + len as u16,
            flags: flags::TRIMMABLE | bits | last,
            ..Packet::default()
        });
        self.due_at = self.left_by(net) + (self.rto << self.backoff);
    }

    /// When what this flow has sent has left its host: a packet that still waits there is not sent again, however short the timeout is.
    fn left_by(&self, net: &Net) -> u64 {
        net.now.max(net.host_port_free_at(self.flow))
    }

    fn on_timer(&mut self, host: &mut Host<'_>) {
        let now = host.net.now;
        if now != self.timer_at {
            return;
        }
        self.timer_at = u64::MAX;
        if self.due_at <= now {
            self.on_rto(host);
        }
        self.arm(host.net);
    }

    /// No answer: every packet of unknown fate counts as lost, and one is sent to hear from the receiver again.
    fn on_rto(&mut self, host: &mut Host<'_>) {
        let now = host.net.now;
        self.timeouts += 1;
        self.timeout_ps += now - self.last_send;
        host.app.timed_out(self.flow, now);
        self.backoff = (self.backoff + 1).min(MOST_BACKOFF);
        self.owed = 0;
        self.unknown = 0;
        for sent in self.out.iter_mut().filter(|s| s.fate == Fate::Unknown) {
            sent.fate = Fate::Trimmed;
            self.again.push_back(sent.seq);
        }
        self.due_at = u64::MAX;
        if !self.send_again(host) {
            self.push(host);
        }
    }

    fn arm(&mut self, net: &mut Net) {
        if self.due_at < self.timer_at {
            self.timer_at = self.due_at.max(net.now);
            net.calendar.schedule_timer(self.timer_at, Timer::Source(self.flow));
        }
    }

    fn report(&self, row: &mut FlowStats) {
        row.segments = self.segments;
        row.bytes_sent = self.bytes_sent;
        row.bytes_acked = self.out.front().map_or(self.next, |s| s.seq);
        row.retransmissions = self.retransmissions;
        row.timeouts = u64::from(self.timeouts);
        row.timeout_ps = self.timeout_ps;
        row.first_send_ps = self.first_send;
        row.cwnd = f64::from(self.window);
        row.max_cwnd = row.cwnd;
        row.srtt_ps = self.srtt;
        row.min_rtt_ps = self.min_rtt;
    }
}

/// The receiving end of a flow.
#[derive(Debug)]
struct Sink {
    flow: u32,
    header: u16,
    /// Which of the endpoint's pacers is this host's.
    pacer: usize,
    /// Next byte in order.
    next: u64,
    /// Runs of bytes beyond a hole, in order.
    ahead: BTreeMap<u64, u64>,
    /// One past the last byte that is known of, and whether the sender had no more then.
    end: u64,
    ends: bool,
    /// PULLs to send; they stand in the pacer's line; PULLs sent.
    pulls: u32,
    in_turn: bool,
    pulled: u64,
    /// End and number of the messages under way.
    messages: VecDeque<(u64, u32)>,
    last_delivery: Option<u64>,
}

impl Sink {
    fn new(flow: u32, stack: &Stack, pacer: usize) -> Sink {
        Sink {
            flow,
            header: stack.wire(0).get() as u16,
            pacer,
            next: 0,
            ahead: BTreeMap::new(),
            end: 0,
            ends: false,
            pulls: 0,
            in_turn: false,
            pulled: 0,
            messages: VecDeque::new(),
            last_delivery: None,
        }
    }

    /// A packet or its header arrived: answers at once, and asks for one more unless everything is here.
    fn on_data(&mut self, packet: &Packet, host: &mut Host<'_>) {
        let end = packet.seq + u64::from(packet.len);
        if end >= self.end {
            self.ends = packet.has(flags::PUSH);
            self.end = end;
        }
        let trimmed = packet.has(flags::TRIMMED);
        if !trimmed {
            self.take(packet.seq, end, host);
        }
        let complete = self.ends && self.next == self.end;
        self.pulls = if complete { 0 } else { self.pulls + 1 };
        let what = if trimmed { says::NACK } else { says::ACK };
        self.say(what, packet.seq, packet.timestamp, if complete { flags::PUSH } else { 0 }, host.net);
    }

    fn take(&mut self, start: u64, end: u64, host: &mut Host<'_>) {
        if end <= self.next {
            return;
        }
        let known = self.ahead.entry(start).or_insert(end);
        *known = end.max(*known);
        let before = self.next;
        while let Some(run) = self.ahead.first_entry()
            && *run.key() <= self.next
        {
            self.next = self.next.max(run.remove());
        }
        if self.next > before {
            let now = host.net.now;
            self.last_delivery = Some(now);
            host.net.trace.delivered(now, self.flow, self.next - before);
            self.report_complete(host);
        }
    }

    fn report_complete(&mut self, host: &mut Host<'_>) {
        while let Some(&(end, id)) = self.messages.front()
            && end <= self.next
        {
            self.messages.pop_front();
            host.delivered(id);
        }
    }

    fn pull(&mut self, net: &mut Net) {
        self.pulls -= 1;
        self.pulled += 1;
        self.say(says::PULL, self.pulled, 0, 0, net);
    }

    fn say(&self, what: u32, seq: u64, timestamp: u64, bits: u16, net: &mut Net) {
        net.send(Packet {
            seq,
            timestamp,
            sack: [what, 0, 0, 0, 0, 0],
            flow: self.flow,
            wire: self.header,
            flags: flags::ACK | flags::URGENT | bits,
            ..Packet::default()
        });
    }
}
