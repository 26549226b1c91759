//! The sending side of a connection: when to send what, and the one state machine that tells congestion control what happened.

use super::recovery::Recovery;
use super::rtt::RttEstimator;
use super::scoreboard::{Delivered, Scoreboard, Segment};
use super::validation::{Restart, Situation, Validation};
use crate::net::Net;
use crate::packet::{Packet, flags};
use crate::results::FlowStats;
use crate::rng::Stream;
use crate::stack::{EcnMode, HalveBasis, Nagle, Stack, WindowUnit};
use crate::trace::WindowRow;
use fanin_cc::{
    Ack, CongestionControl, Conn, Control, Flavour, Gate, Message, Needs, Probe, RateSample, State, Window,
};
use fanin_units::{Bytes, Duration, Rate, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is the same for all connections of a transport.
#[derive(Debug)]
pub struct Config {
    /// The knobs, recovery and ECN resolved with what the algorithm needs.
    pub stack: Stack,
    /// What the algorithm needs.
    pub needs: Needs,
}

/// A message on its way out.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Its number in the run.
    pub id: u32,
    /// First byte in the stream.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// When it should be delivered, ps.
    pub deadline: Option<u64>,
    /// When its first byte was first sent, ps; reported to the application.
    pub first_send: Option<u64>,
}

/// Where the connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Closed,
    SynSent,
    Established,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub segments: u64,
    pub bytes_sent: u64,
    pub timeout_ps: u64,
    /// `u64::MAX` before it.
    pub first_send: u64,
    pub max_cwnd: f64,
    pub retransmissions: u32,
    pub fast_recoveries: u32,
    pub timeouts: u32,
    pub ece_acks: u32,
    pub ecn_reductions: u32,
    pub tail_probes: u32,
}

/// The sending endpoint of one flow.
#[derive(Debug)]
pub struct Sender {
    pub(super) flow: u32,
    /// Number of this sender's timer.
    timer: u32,
    /// The earliest entry in the calendar that still means something; `u64::MAX` when there is none.
    timer_at: u64,
    pub(super) config: Arc<Config>,
    cc: Box<dyn CongestionControl>,
    /// The algorithm's decision in force, read after every event it was told.
    pub(super) control: Control,
    phase: Phase,
    pub(super) board: Scoreboard,
    pub(super) una: u64,
    pub(super) nxt: u64,
    /// One past the last byte the application handed over.
    written: u64,
    /// Right edge of the receiver's window.
    edge: u64,
    messages: VecDeque<Outgoing>,
    /// Messages whose first byte was sent since the engine last asked.
    started: Vec<(u32, u64)>,
    stopped: bool,
    pub(super) state: State,
    pub(super) recovery: Recovery,
    pub(super) rtt: RttEstimator,
    pub(super) rto_at: u64,
    validation: Validation,
    /// Set CWR on the next new segment.
    cwr_pending: bool,
    /// Nothing leaves before these times: pacing; small queues.
    pace_at: u64,
    held_until: u64,
    /// The algorithm holds new segments until then, or until the next ACK.
    gate_until: u64,
    held_for_ack: bool,
    /// Data was sent since the engine last asked.
    sent_data: bool,
    /// The next segment's size, once the algorithm has drawn it.
    next_size: Option<u32>,
    /// End of the last segment smaller than the MSS (Minshall).
    small_end: u64,
    random: Option<Box<Stream>>,
    // Delivery rate (BBR): totals in segments, times in ps.
    pub(super) delivered: u64,
    pub(super) delivered_at: u64,
    first_sent_at: u64,
    app_limited_until: u64,
    pub(super) counters: Counters,
}

impl Sender {
    /// A connection's sender, before anything is sent.
    pub fn new(
        flow: u32,
        timer: u32,
        config: Arc<Config>,
        cc: Box<dyn CongestionControl>,
        random: Option<Stream>,
    ) -> Sender {
        let recovery = Recovery::new(config.stack.recovery, config.needs.own_idle);
        let validation = Validation::new(config.stack.cwnd_validation);
        let edge = config.stack.receive_window.get();
        Sender {
            flow,
            timer,
            timer_at: u64::MAX,
            config,
            control: cc.control(),
            cc,
            phase: Phase::Closed,
            board: Scoreboard::default(),
            una: 0,
            nxt: 0,
            written: 0,
            edge,
            messages: VecDeque::new(),
            started: Vec::new(),
            stopped: false,
            state: State::Open,
            recovery,
            rtt: RttEstimator::new(),
            rto_at: u64::MAX,
            validation,
            cwr_pending: false,
            pace_at: 0,
            held_until: 0,
            gate_until: 0,
            held_for_ack: false,
            sent_data: false,
            next_size: None,
            small_end: 0,
            random: random.map(Box::new),
            delivered: 0,
            delivered_at: 0,
            first_sent_at: 0,
            app_limited_until: 0,
            counters: Counters { first_send: u64::MAX, ..Counters::default() },
        }
    }

    // ---- the application's side -------------------------------------------------------------------------------------

    /// The first window that a receiver under control offers.
    pub fn limit_window(&mut self, bytes: u64) {
        self.edge = bytes;
    }

    /// Where the next message will start in the stream.
    pub fn write_position(&self) -> u64 {
        self.written
    }

    /// The application hands over a message.
    pub fn write(&mut self, id: u32, bytes: u64, deadline: Option<u64>, connected: bool, net: &mut Net) {
        let start = self.written;
        self.written = self.written.saturating_add(bytes);
        self.messages.push_back(Outgoing { id, start, end: self.written, deadline, first_send: None });
        match self.phase {
            Phase::Established => {}
            Phase::SynSent => return,
            Phase::Closed if self.config.stack.handshake && !connected => return self.connect(net),
            Phase::Closed => self.phase = Phase::Established,
        }
        self.pump(net);
        self.trace(net);
    }

    /// Nothing new is sent from now on.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.written = self.nxt;
    }

    /// The connection is open, or opening.
    pub fn is_connected(&self) -> bool {
        self.phase == Phase::Established
    }

    /// Messages whose first byte has been sent since the last call, with the time.
    pub fn take_started(&mut self) -> std::vec::Drain<'_, (u32, u64)> {
        self.started.drain(..)
    }

    /// Whether data was sent since the last call.
    pub fn take_sent_data(&mut self) -> bool {
        std::mem::take(&mut self.sent_data)
    }

    /// The opposite direction of this connection completed the handshake.
    pub fn opened_by_peer(&mut self) {
        if self.phase == Phase::Closed {
            self.phase = Phase::Established;
        }
    }

    fn connect(&mut self, net: &mut Net) {
        self.phase = Phase::SynSent;
        let ect =
            if self.config.stack.ect_on_control && self.config.stack.ecn != EcnMode::Off { flags::ECT } else { 0 };
        net.send(Packet {
            seq: 0,
            timestamp: net.now,
            sack: [0; 6],
            flow: self.flow,
            path: 0,
            len: 0,
            wire: self.config.stack.wire(0).get() as u16,
            flags: flags::SYN | ect,
            window: 0,
            id: 0,
        });
        self.rto_at = net.now.saturating_add(self.rtt.timer(&self.config.stack).ps());
        self.arm(net);
    }

    // ---- arrivals ---------------------------------------------------------------------------------------------------

    /// An ACK arrived.
    pub fn on_ack(&mut self, packet: &Packet, net: &mut Net) {
        self.edge = self.edge.max(packet.seq.saturating_add(u64::from(packet.window)));
        if packet.has(flags::SYN) {
            return self.on_syn_ack(packet, net);
        }
        if packet.seq < self.una || self.board.is_empty() {
            return;
        }
        let now = net.now;
        let advanced = packet.seq > self.una;
        let before = self.situation(now);
        let mut d = Delivered::default();
        if advanced {
            self.una = packet.seq;
            self.board.acknowledge(packet.seq, &mut d);
        }
        let sacked = self.recovery.uses_sack() && {
            let block = |i: usize| {
                let (l, r) = (u64::from(packet.sack[2 * i]), u64::from(packet.sack[2 * i + 1]));
                if r == 0 { (0, 0) } else { (packet.seq + l, packet.seq + r) }
            };
            self.board.sack([block(0), block(1), block(2)], &mut d)
        };
        let ece = packet.has(flags::ECE) && self.config.stack.ecn != EcnMode::Off;
        if ece {
            self.counters.ece_acks += 1;
        }
        let rtt = self.round_trip(packet, advanced, &d, now);
        if advanced {
            self.rtt.backoff = 0;
        }
        if self.state == State::Cwr && self.una >= self.recovery.high {
            self.set_state(State::Open, net);
        }
        let may_grow = self.may_grow(&before, advanced, ece, &d);
        let lost = self.find_losses(packet, advanced, sacked, &d, net);
        if d.segments > 0 {
            let rate = self.rate_sample(&d, now);
            let mut ack = Ack::of(0, self.config.stack.mss, self.una, rtt);
            ack.acked_bytes = d.acked_bytes;
            ack.acked_segments = d.acked_segments;
            ack.delivered_bytes = d.bytes;
            ack.delivered_segments = d.segments;
            ack.ece = ece;
            ack.may_grow = may_grow;
            ack.newly_lost = lost;
            ack.rate = rate;
            self.tell(now, |cc, conn| cc.on_ack(conn, &ack));
        }
        self.react(packet, advanced, ece, sacked, &d, net);
        self.held_for_ack = false;
        self.gate_until = 0;
        self.restart_rto(advanced, now);
        self.pump(net);
        self.trace(net);
    }

    fn on_syn_ack(&mut self, packet: &Packet, net: &mut Net) {
        if self.phase != Phase::SynSent {
            return;
        }
        self.phase = Phase::Established;
        if self.rtt.backoff == 0 {
            let rtt = Duration::from_ps(net.now - packet.timestamp);
            self.rtt.sample(rtt, self.una, self.nxt, &self.config.stack);
        } else {
            // RFC 5681 section 3.1: the loss of a SYN or SYN/ACK leaves an initial window of one segment.
            let one = Window { cwnd: 1.0, ssthresh: self.control.ssthresh };
            self.tell(net.now, |cc, conn| cc.on_restart(conn, Duration::ZERO, one));
        }
        self.rtt.backoff = 0;
        self.rto_at = u64::MAX;
        self.pump(net);
        self.trace(net);
    }

    /// The round-trip sample of this ACK, and its effect on the estimator.
    fn round_trip(&mut self, packet: &Packet, advanced: bool, d: &Delivered, now: u64) -> Option<Duration> {
        if !advanced || (!self.config.stack.timestamps && d.any_retransmitted) {
            return None;
        }
        let rtt = Duration::from_ps(now - packet.timestamp);
        self.rtt.sample(rtt, self.una, self.nxt, &self.config.stack);
        if self.config.stack.flavour != Flavour::Linux {
            return Some(rtt);
        }
        // Linux tells congestion control the round trip of the newest delivered segment (`ca_rtt_us`), which delayed ACKs inflate
        // least.
        d.newest.filter(|n| !n.ever_retransmitted).map(|n| Duration::from_ps(now - n.sent_at))
    }

    fn may_grow(&mut self, before: &Situation, advanced: bool, ece: bool, d: &Delivered) -> bool {
        if !advanced {
            return false;
        }
        let acked = d.acked_bytes as f64 / f64::from(self.config.stack.mss);
        let now_situation = Situation { una: self.una, srtt: self.rtt.srtt().ps(), ..*before };
        let valid = self.config.needs.own_idle || self.validation.on_ack(&now_situation, acked);
        valid
            && !ece
            && match self.state {
                State::Open | State::Disorder | State::Loss => true,
                State::Cwr => self.config.stack.grow_in_cwr,
                State::Recovery => false,
            }
    }

    fn rate_sample(&mut self, d: &Delivered, now: u64) -> Option<RateSample> {
        self.delivered += u64::from(d.segments);
        self.delivered_at = now;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let newest = d.newest.filter(|_| self.config.needs.rate_samples)?;
        self.first_sent_at = newest.sent_at;
        let sending = newest.sent_at - newest.first_sent_at;
        let acking = now - newest.delivered_at;
        Some(RateSample {
            delivered: (self.delivered - newest.delivered) as u32,
            prior_delivered: newest.delivered,
            total_delivered: self.delivered,
            interval: Duration::from_ps(sending.max(acking)),
            app_limited: newest.app_limited,
        })
    }

    /// RFC 6298 rules 5.2 and 5.3, and NewReno's impatience: after the first partial ACK the timer runs on (RFC 6582 section 3.2).
    fn restart_rto(&mut self, advanced: bool, now: u64) {
        if self.board.is_empty() {
            self.rto_at = u64::MAX;
        } else if advanced && self.recovery.restarts_timer(self.state) {
            self.rto_at = now.saturating_add(self.rtt.timer(&self.config.stack).ps());
        }
    }

    // ---- timers -----------------------------------------------------------------------------------------------------

    /// The calendar says that this sender's timer may be due.
    pub fn on_timer(&mut self, net: &mut Net) {
        if net.now != self.timer_at {
            return;
        }
        self.timer_at = u64::MAX;
        if self.rto_at <= net.now {
            self.on_timeout(net);
        } else {
            self.on_recovery_timer(net);
        }
        self.pump(net);
        self.arm(net);
        self.trace(net);
    }

    fn on_timeout(&mut self, net: &mut Net) {
        if self.phase == Phase::SynSent {
            self.counters.timeouts += 1;
            self.rtt.backoff += 1;
            return self.connect(net);
        }
        if self.board.is_empty() {
            self.rto_at = u64::MAX;
            return;
        }
        self.counters.timeouts += 1;
        self.counters.timeout_ps += net.now - self.validation.last_send().min(net.now);
        let repeated = self.rtt.backoff > 0;
        self.time_out(repeated, net);
        self.rtt.backoff += 1;
        self.rto_at = net.now.saturating_add(self.rtt.timer(&self.config.stack).ps());
        self.held_for_ack = false;
        self.gate_until = 0;
        self.held_until = 0;
        self.pace_at = net.now;
    }

    /// Makes sure the calendar holds an entry no later than the next deadline. A deadline that moves later costs nothing.
    pub(super) fn arm(&mut self, net: &mut Net) {
        let waits_to_send = if self.has_something_to_send() { self.not_before() } else { u64::MAX };
        let due =
            self.rto_at.min(self.recovery.timer_at).min(if waits_to_send > net.now { waits_to_send } else { u64::MAX });
        if due < self.timer_at {
            self.timer_at = due.max(net.now);
            net.calendar.schedule_timer(self.timer_at, self.timer);
        }
    }

    fn not_before(&self) -> u64 {
        if self.held_for_ack { u64::MAX } else { self.pace_at.max(self.held_until).max(self.gate_until) }
    }

    fn has_something_to_send(&self) -> bool {
        self.phase == Phase::Established && (self.board.pending() > 0 || self.nxt < self.written)
    }

    // ---- sending ----------------------------------------------------------------------------------------------------

    /// Sends whatever may leave now.
    pub(super) fn pump(&mut self, net: &mut Net) {
        if self.phase != Phase::Established {
            return;
        }
        let mut sent = 0;
        let burst = if self.config.stack.max_burst == 0 { u32::MAX } else { self.config.stack.max_burst };
        while sent < burst {
            if self.paced() && self.pace_at > net.now || self.host_is_busy(net) {
                break;
            }
            if self.board.pending() > 0 && self.recovery.resends(self.state) {
                if !self.resend_next_lost(net) {
                    break;
                }
            } else if !self.send_new(net) && !self.resend_in_doubt(net) {
                break;
            }
            sent += 1;
        }
        self.schedule_tail_probe(net);
        self.arm(net);
    }

    /// TCP small queues: waits until the host's own port has less than the limit left to send.
    fn host_is_busy(&mut self, net: &Net) -> bool {
        let limit = self.config.stack.small_queue.ps();
        if limit == 0 || !self.has_something_to_send() {
            return false;
        }
        let drained = net.host_port_free_at(self.flow).saturating_sub(limit);
        if drained > net.now {
            self.held_until = self.held_until.max(drained);
        }
        drained > net.now
    }

    fn resend_next_lost(&mut self, net: &mut Net) -> bool {
        let Some(index) = self.board.next_lost() else { return false };
        let len = self.board.get(index).len;
        if !self.window_has_room(len) {
            return false;
        }
        self.resend(index, net);
        true
    }

    /// Retransmits the segment at `index` whatever the window says.
    pub(super) fn resend(&mut self, index: usize, net: &mut Net) {
        let now = net.now;
        let app_limited = self.app_limited_until != 0;
        let s = self.board.retransmit(index, now);
        self.board.stamp(index, self.delivered, self.delivered_at, self.first_sent_at, app_limited);
        self.counters.retransmissions += 1;
        self.emit(s.seq, s.len, flags::RETRANSMISSION, net);
        if self.rto_at == u64::MAX {
            self.rto_at = now.saturating_add(self.rtt.timer(&self.config.stack).ps());
        }
    }

    fn send_new(&mut self, net: &mut Net) -> bool {
        if self.nxt >= self.written || self.board.pending() > 0 && self.recovery.resends(self.state) {
            return false;
        }
        if self.board.is_empty() && !self.config.needs.own_idle {
            let s = self.situation(net.now);
            if let Some(restart) = self.validation.on_start(&s) {
                self.restart(restart, net.now);
            }
        }
        let mut available = self.written - self.nxt;
        if !self.config.stack.merge_writes {
            let end = self.messages.front().map_or(self.written, |m| m.end);
            available = end - self.nxt;
        }
        // The window is looked at first: drawing a random size for a segment that cannot leave would waste the draw's meaning.
        let least = available.min(u64::from(self.next_size.unwrap_or(self.config.stack.mss))) as u32;
        if !self.window_has_room(least) {
            return false;
        }
        let full = self.segment_size(net.now);
        let len = available.min(u64::from(full)) as u32;
        if self.nxt + u64::from(len) > self.edge || self.nagle_holds(len, full) || !self.gate_opens(net) {
            return false;
        }
        self.next_size = None;
        // The algorithm may have lowered its window at the gate.
        if !self.window_has_room(len) {
            return false;
        }
        self.send_segment(len, full, net);
        true
    }

    /// Tells the receiver with the next new segment that the window was reduced (RFC 3168 section 6.1.2).
    pub(super) fn request_cwr(&mut self) {
        self.cwr_pending = true;
    }

    /// One new segment beyond the window, for a tail-loss probe; false if there is none or the receiver has no room.
    pub(super) fn probe_with_new_data(&mut self, net: &mut Net) -> bool {
        let full = self.config.stack.mss;
        let mut end = self.written;
        if !self.config.stack.merge_writes {
            end = self.messages.front().map_or(end, |m| m.end);
        }
        let len = (end - self.nxt).min(u64::from(full)) as u32;
        if len == 0 || self.nxt + u64::from(len) > self.edge {
            return false;
        }
        self.send_segment(len, full, net);
        true
    }

    fn send_segment(&mut self, len: u32, full: u32, net: &mut Net) {
        let now = net.now;
        if self.board.is_empty() {
            // A flight starts: its rate samples count from here (`tcp_rate_skb_sent`).
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let seq = self.nxt;
        self.board.push(Segment {
            seq,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            len,
            sacked: false,
            lost: false,
            retransmitted: false,
            ever_retransmitted: false,
            app_limited: self.app_limited_until != 0,
        });
        self.nxt += u64::from(len);
        if len < full {
            self.small_end = self.nxt;
        }
        let mut bits = 0;
        if std::mem::take(&mut self.cwr_pending) {
            bits |= flags::CWR;
        }
        while let Some(message) = self.messages.front_mut() {
            if message.first_send.is_none() && message.start < self.nxt {
                message.first_send = Some(now);
                self.started.push((message.id, now));
            }
            if message.end > self.nxt {
                break;
            }
            bits |= flags::PUSH;
            self.messages.pop_front();
        }
        // A message that starts inside this segment has started too.
        if let Some(message) = self.messages.front_mut()
            && message.first_send.is_none()
            && message.start < self.nxt
        {
            message.first_send = Some(now);
            self.started.push((message.id, now));
        }
        self.recovery.note_new_segment(self.state);
        self.emit(seq, len, bits, net);
        if self.rto_at == u64::MAX {
            self.rto_at = now.saturating_add(self.rtt.timer(&self.config.stack).ps());
        }
    }

    /// Puts a data segment on the wire.
    fn emit(&mut self, seq: u64, len: u32, bits: u16, net: &mut Net) {
        let now = net.now;
        let stack = &self.config.stack;
        let ect = stack.ecn != EcnMode::Off && (bits & flags::RETRANSMISSION == 0 || stack.ect_on_control);
        let wire = stack.wire(len);
        self.counters.segments += 1;
        self.counters.bytes_sent += u64::from(len);
        self.counters.first_send = self.counters.first_send.min(now);
        let packet = Packet {
            seq,
            timestamp: now,
            sack: [0; 6],
            flow: self.flow,
            path: 0,
            len: len as u16,
            wire: wire.get() as u16,
            flags: bits | if ect { flags::ECT } else { 0 },
            window: 0,
            id: 0,
        };
        let lag = self.random.as_mut().map_or(0, |r| r.below(self.config.stack.send_jitter.ps()));
        net.send_late(packet, lag);
        self.sent_data = true;
        if let Some(rate) = self.pacing_rate() {
            self.pace_at = self.pace_at.max(now).saturating_add((wire / rate).ps());
        }
        let s = self.situation(now);
        let limited = !self.window_has_room(stack_mss(&self.config));
        if let Some(restart) = self.validation.on_send(&s, limited)
            && !self.config.needs.own_idle
        {
            self.restart(restart, now);
        }
        self.recovery.note_sent(1);
    }

    fn restart(&mut self, restart: Restart, now: u64) {
        self.tell(now, |cc, conn| cc.on_restart(conn, Duration::from_ps(restart.idle), restart.window));
    }

    fn segment_size(&mut self, now: u64) -> u32 {
        if !self.config.needs.segment_sizes {
            return self.config.stack.mss;
        }
        if let Some(size) = self.next_size {
            return size;
        }
        let size = self.tell(now, |cc, conn| cc.segment_size(conn)).clamp(1, self.config.stack.mss);
        self.next_size = Some(size);
        size
    }

    fn nagle_holds(&self, len: u32, full: u32) -> bool {
        if len >= full {
            return false;
        }
        match self.config.stack.nagle {
            Nagle::Off => false,
            Nagle::Rfc896 => !self.board.is_empty(),
            Nagle::Minshall => self.small_end > self.una,
        }
    }

    /// Asks the algorithm (TRIM's probes and timers).
    fn gate_opens(&mut self, net: &mut Net) -> bool {
        let now = net.now;
        if self.held_for_ack || self.held_until > now || self.gate_until > now {
            return false;
        }
        if self.config.needs.send_hook {
            let since = (self.counters.segments > 0).then(|| Duration::from_ps(now - self.validation.last_send()));
            match self.tell(now, |cc, conn| cc.before_send(conn, since)) {
                Gate::Go => {}
                Gate::HoldUntil(time) if time.ps() > now => {
                    self.gate_until = time.ps();
                    return false;
                }
                Gate::HoldUntil(_) => return self.gate_opens(net),
                Gate::HoldForAck => {
                    self.held_for_ack = true;
                    return false;
                }
            }
        }
        true
    }

    // ---- windows ----------------------------------------------------------------------------------------------------

    /// Whether a segment of `len` bytes fits into the window in force.
    pub(super) fn window_has_room(&self, len: u32) -> bool {
        let window = self.window_in_force();
        if self.window_is_bytes() {
            let bytes = (window * f64::from(self.config.stack.mss)).floor();
            (self.board.pipe_bytes() + u64::from(len)) as f64 <= bytes
        } else {
            // The cast truncates and saturates.
            self.board.pipe() < window as u32
        }
    }

    fn window_is_bytes(&self) -> bool {
        self.config.needs.byte_window || self.config.stack.window_unit == WindowUnit::Bytes
    }

    /// cwnd, or what a recovery allows instead, in packets.
    pub(super) fn window_in_force(&self) -> f64 {
        let cwnd = self.control.cwnd;
        self.recovery.allowance(self.state, cwnd, self.in_flight(), &self.config.stack)
    }

    /// Packets outstanding, in the window's unit.
    pub(super) fn in_flight(&self) -> f64 {
        if self.window_is_bytes() {
            self.board.pipe_bytes() as f64 / f64::from(self.config.stack.mss)
        } else {
            f64::from(self.board.pipe())
        }
    }

    fn paced(&self) -> bool {
        self.config.stack.pacing || self.control.pacing.is_some()
    }

    /// The algorithm's rate, or Linux's 2.0 or 1.2 times cwnd per round trip (`tcp_update_pacing_rate`).
    fn pacing_rate(&self) -> Option<Rate> {
        let Control { cwnd, ssthresh, pacing } = self.control;
        if pacing.is_some() || !self.config.stack.pacing || self.rtt.srtt().is_zero() {
            return pacing;
        }
        let ratio = if cwnd < ssthresh / 2.0 { 2.0 } else { 1.2 };
        let packets = cwnd.max(f64::from(self.board.pipe()));
        let wire = self.config.stack.wire(self.config.stack.mss).get() as f64;
        Some(Rate::from_bps((ratio * packets * wire * 8.0 / self.rtt.srtt().as_secs()).max(1.0) as u64))
    }

    // ---- what others see --------------------------------------------------------------------------------------------

    pub(super) fn situation(&self, now: u64) -> Situation {
        let Control { cwnd, ssthresh, .. } = self.control;
        Situation {
            now,
            window: Window { cwnd, ssthresh },
            initial_window: self.config.stack.initial_window,
            in_flight: self.in_flight(),
            rto: self.rtt.timer(&self.config.stack).ps(),
            raw_rto: self.rtt.raw_rto(&self.config.stack).ps(),
            srtt: self.rtt.srtt().ps(),
            una: self.una,
            nxt: self.nxt,
        }
    }

    /// Tells the algorithm something, with the connection as it is, and reads its decision.
    pub(super) fn tell<R>(&mut self, now: u64, event: impl FnOnce(&mut dyn CongestionControl, &Conn) -> R) -> R {
        let conn = self.conn(now);
        let answer = event(self.cc.as_mut(), &conn);
        self.control = self.cc.control();
        answer
    }

    fn conn(&mut self, now: u64) -> Conn {
        let mut conn = Conn::new(self.config.stack.mss);
        conn.now = Time::from_ps(now);
        conn.srtt = self.rtt.srtt();
        conn.min_rtt = self.rtt.min();
        conn.snd_una = self.una;
        conn.snd_nxt = self.nxt;
        conn.in_flight = self.in_flight();
        conn.basis = self.basis();
        conn.cwnd_limited = self.validation.cwnd_limited(&self.situation(now));
        conn.state = self.state;
        conn.message = self.messages.front().map(|m| Message {
            unsent: m.end.saturating_sub(self.nxt.max(m.start)),
            sent: self.nxt.saturating_sub(m.start),
            deadline: m.deadline.map(Time::from_ps),
            start: m.start,
        });
        if self.config.needs.randomness {
            conn.uniform = self.random.as_mut().map_or(0.0, |r| r.uniform());
        }
        conn
    }

    /// What a loss halves, in packets.
    fn basis(&self) -> f64 {
        let stack = &self.config.stack;
        match stack.halve {
            HalveBasis::Flight => {
                let outstanding = if self.window_is_bytes() {
                    (self.nxt - self.una) as f64 / f64::from(stack.mss)
                } else {
                    f64::from(self.board.outstanding())
                };
                // RFC 5681 section 3.2: segments sent by limited transmit do not count. Nor does more than the window: in a recovery,
                // data that duplicate or selective ACKs let out is unacknowledged too, though as much has left the network.
                (outstanding - f64::from(self.recovery.limited_transmitted())).min(self.control.cwnd)
            }
            // NS2 halves the integer part: int(window / 2).
            HalveBasis::Window if stack.flavour == Flavour::Ns2 => 2.0 * (self.control.cwnd / 2.0).floor(),
            HalveBasis::Window => self.control.cwnd,
        }
    }

    pub(super) fn set_state(&mut self, state: State, net: &mut Net) {
        self.state = state;
        self.trace(net);
    }

    /// Writes a row if this flow is watched.
    pub(super) fn trace(&mut self, net: &mut Net) {
        let cwnd = self.control.cwnd;
        self.counters.max_cwnd = self.counters.max_cwnd.max(cwnd);
        if !net.trace.watches(self.flow) {
            return;
        }
        let row = WindowRow {
            cwnd: self.window_in_force(),
            ssthresh: self.control.ssthresh,
            in_flight: self.in_flight(),
            srtt: self.rtt.srtt().ps(),
            state: self.state as u8,
        };
        net.trace.window(net.now, self.flow, row);
        struct Writer<'a>(&'a mut Net, u32);
        impl Probe for Writer<'_> {
            fn value(&mut self, name: &'static str, value: f64) {
                self.0.trace.internal(self.0.now, self.1, name, value);
            }
        }
        self.cc.observe(&mut Writer(net, self.flow));
    }

    /// Marks the connection application-limited when the window is open and nothing is left to send (for rate samples).
    pub(super) fn note_app_limited(&mut self) {
        if self.config.needs.rate_samples && self.nxt >= self.written && self.board.pending() == 0 {
            self.app_limited_until = (self.delivered + u64::from(self.board.pipe())).max(1);
        }
    }

    /// Adds this sender's totals to a flow's row.
    pub fn report(&self, row: &mut FlowStats) {
        let c = &self.counters;
        row.segments = c.segments;
        row.bytes_sent = c.bytes_sent;
        row.bytes_acked = self.una;
        row.retransmissions = u64::from(c.retransmissions);
        row.fast_recoveries = u64::from(c.fast_recoveries);
        row.timeouts = u64::from(c.timeouts);
        row.timeout_ps = c.timeout_ps;
        row.ece_acks = u64::from(c.ece_acks);
        row.ecn_reductions = u64::from(c.ecn_reductions);
        row.tail_probes = u64::from(c.tail_probes);
        row.first_send_ps = (c.first_send != u64::MAX).then_some(c.first_send);
        row.cwnd = self.control.cwnd;
        row.max_cwnd = c.max_cwnd.max(row.cwnd);
        row.srtt_ps = self.rtt.srtt().ps();
        row.min_rtt_ps = self.rtt.min().ps();
    }

    /// Timeouts so far.
    pub fn timeouts(&self) -> u64 {
        u64::from(self.counters.timeouts)
    }

    /// Whether the path's bytes per segment fit a packet's 16-bit length.
    pub fn fits(stack: &Stack) -> bool {
        stack.wire(stack.mss) <= Bytes::new(u64::from(u16::MAX))
    }
}

fn stack_mss(config: &Config) -> u32 {
    config.stack.mss
}
