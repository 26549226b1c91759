//! What may leave now: retransmissions first, then new data, as far as the window, the host, pacing, Nagle's rule and the algorithm allow.

use super::segment::Segment;
use super::sender::{Phase, Sender};
use super::uplink::Uplink;
use super::validation::{Restart, Rto};
use crate::host::{small_queue, work};
use crate::packet::{Packet, flags};
use crate::stack::{EcnMode, Nagle, RtoRestart, RttTiming};
use fanin_cc::{Control, Gate};
use fanin_units::{Bytes, Duration, Rate};

/// An algorithm that names a time which has passed is asked again at once, so often at most.
const MOST_ASKS: u32 = 16;
/// After that it is asked again a microsecond later.
const ASKED_IN_VAIN_PS: u64 = 1_000_000;

/// Which part of what the host hands to its network card at once a segment is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub first: bool,
    pub last: bool,
    /// The card cuts: what follows on a burst is done once.
    pub of_burst: bool,
    /// The burst crosses the network as one packet that begins with this byte.
    pub whole_from: Option<u64>,
}

impl Part {
    /// Segments leave one by one.
    pub const ALL: Part = Part { first: true, last: true, of_burst: false, whole_from: None };

    /// The last of several: Linux sets PSH on every burst, so that the receiver's card merges no further (`__tcp_transmit_skb`).
    fn ends_burst(self) -> bool {
        self.last && !self.first
    }
}

impl Sender {
    /// Sends whatever may leave now.
    pub(super) fn try_send(&mut self, net: &mut Uplink<'_>) {
        if self.offload.is_some() {
            return self.send_bursts(net);
        }
        if self.phase != Phase::Established {
            return;
        }
        let mut sent = 0;
        let burst = if self.config.stack.max_burst == 0 { u32::MAX } else { self.config.stack.max_burst };
        // Retransmissions before new data (RFC 6675 section 5 step C; `tcp_xmit_recovery`, then `tcp_push_pending_frames`).
        while sent < burst {
            let resends = self.board.pending() > 0 && self.recovery.resends(self.state);
            if self.paced() && self.pace_at > net.now || self.host_is_full(resends, net.now) {
                break;
            }
            // What the last segment found of a window that counts segments holds for the next one.
            let is_full = sent > 0 && self.window_is_full && !self.config.byte_window;
            let leaves = if resends {
                self.resend_next_lost(net)
            } else {
                !is_full && self.send_new(net) || self.resend_in_doubt(net)
            };
            if !leaves {
                break;
            }
            sent += 1;
        }
        self.check_space(net);
        self.schedule_tail_probe(net);
        self.arm(net);
    }

    /// TCP small queues: waits until the host has sent another of this connection's segments. Retransmissions wait for twice as many
    /// (`tcp_small_queue_check`).
    fn host_is_full(&mut self, resends: bool, now: u64) -> bool {
        let time = self.config.stack.tsq_limit;
        if time.is_zero() || !self.has_something_to_send() {
            return false;
        }
        if self.in_host.held(now) < small_queue::LEAST << usize::from(resends) {
            return false;
        }
        let (mss, share) = (self.config.stack.mss, self.payload_rate() * time.as_secs());
        let full = self.in_host.is_full(mss, u64::from(mss), share, self.paced(), resends);
        if full {
            self.held_until = self.held_until.max(self.in_host.next_departure());
        }
        full
    }

    fn resend_next_lost(&mut self, net: &mut Uplink<'_>) -> bool {
        let Some(index) = self.board.next_lost() else { return false };
        let len = self.board.get(index).len;
        if !self.window_has_room(len) {
            return false;
        }
        self.resend(index, net);
        true
    }

    /// Retransmits the segment at `index` whatever the window says.
    pub(super) fn resend(&mut self, index: usize, net: &mut Uplink<'_>) {
        self.resend_part(index, Part::ALL, net);
        if self.offload.is_some() {
            self.board.cut(index);
            self.board.cut(index + 1);
        }
    }

    /// The same of a segment that may be part of a burst.
    pub(super) fn resend_part(&mut self, index: usize, part: Part, net: &mut Uplink<'_>) {
        let now = net.now;
        let s = self.board.retransmit(index, now);
        if let Some(rates) = &self.rates {
            self.board.stamp(index, rates.snapshot());
        }
        self.counters.retransmissions += 1;
        self.note_retransmission(now);
        // What ends a message does so when it is sent again, too: its header is kept as it was (`tcp_retransmit_skb`).
        let push = if s.pushes || part.ends_burst() { flags::PUSH } else { 0 };
        self.emit(s.seq, s.len, flags::RETRANSMISSION | push, part, net);
        // Linux starts the timer anew whenever the first segment goes again (`tcp_xmit_retransmit_queue`).
        if self.rto_at == u64::MAX || (index == 0 && self.config.stack.rto_restart == RtoRestart::EveryAck) {
            self.start_rto(now);
        }
    }

    #[inline]
    fn send_new(&mut self, net: &mut Uplink<'_>) -> bool {
        let frontier = self.frontier();
        if self.nxt >= frontier || self.board.pending() > 0 && self.recovery.resends(self.state) {
            return false;
        }
        self.restart_after_idle(net.now);
        let mut available = frontier - self.nxt;
        if !self.config.stack.merge_writes {
            // NS-2's one-way agents join no two writes in a packet.
            let end = self.messages.front().map_or(frontier, |m| m.end.min(frontier));
            available = end - self.nxt;
        }
        // The window is looked at first: drawing a random size for a segment that cannot leave would waste the draw's meaning.
        let least = available.min(u64::from(self.next_size.unwrap_or(self.config.stack.mss))) as u32;
        if !self.window_has_room(least) {
            return false;
        }
        let full = self.segment_size(net.now);
        let len = available.min(u64::from(full)) as u32;
        // The receiver's window (RFC 9293 section 3.8.6), Nagle's rule and the algorithm have their say.
        if self.nxt + u64::from(len) > self.edge || self.nagle_holds(len, full) || !self.gate_opens(net) {
            return false;
        }
        self.next_size = None;
        // The algorithm may have lowered its window at the gate, or drawn a longer segment.
        let needs = &self.config.needs;
        if (needs.send_hook || needs.segment_sizes) && !self.window_has_room(len) {
            return false;
        }
        self.send_segment(len, full, Part::ALL, net);
        true
    }

    /// New data are to leave while nothing is outstanding.
    #[inline(always)]
    pub(super) fn restart_after_idle(&mut self, now: u64) {
        if self.board.is_empty() && !self.config.needs.handles_idle {
            let s = self.cwv_input(now);
            let (rtt, stack) = (&self.rtt, &self.config.stack);
            if let Some(restart) = self.validation.on_start(&s, || Rto::of(rtt, stack)) {
                self.restart(restart, now);
            }
        }
    }

    /// Tells the receiver with the next new segment that the window was reduced (RFC 3168 section 6.1.2).
    pub(super) fn request_cwr(&mut self) {
        self.cwr_pending = true;
    }

    /// One new segment beyond the window, for a tail-loss probe; false if there is none or the receiver has no room.
    pub(super) fn probe_with_new_data(&mut self, net: &mut Uplink<'_>) -> bool {
        if self.offload.is_some() {
            return self.probe_with_new_burst(net);
        }
        let full = self.config.stack.mss;
        let mut end = self.frontier();
        if !self.config.stack.merge_writes {
            end = self.messages.front().map_or(end, |m| m.end.min(end));
        }
        let len = (end - self.nxt).min(u64::from(full)) as u32;
        if len == 0 || self.nxt + u64::from(len) > self.edge {
            return false;
        }
        self.send_segment(len, full, Part::ALL, net);
        true
    }

    #[inline]
    pub(super) fn send_segment(&mut self, len: u32, full: u32, part: Part, net: &mut Uplink<'_>) {
        let now = net.now;
        let seq = self.nxt;
        let starts_flight = self.board.is_empty();
        let rate = self.rates.as_mut().map(|rates| {
            if starts_flight {
                rates.start_flight(now);
            }
            rates.snapshot()
        });
        self.nxt += u64::from(len);
        let pushes = self.nxt >= self.message_due && self.note_messages(now);
        self.board.push(Segment { pushes, starts_burst: part.first, ..Segment::new(seq, len, now) }, rate);
        if self.config.stack.rtt_timing == RttTiming::OneSegment {
            self.rtt.start_timing(self.nxt, now);
        }
        // Minshall: where the last small segment ends (`tcp_minshall_update`).
        if len < full {
            self.small_end = self.nxt;
        }
        let mut bits = if pushes || part.ends_burst() { flags::PUSH } else { 0 };
        // RFC 3168 section 6.1.2: CWR on the first new data after a reduction.
        if part.first && std::mem::take(&mut self.cwr_pending) {
            bits |= flags::CWR;
        }
        self.recovery.note_new_segment(self.state);
        self.recovery.note_activity(now);
        self.emit(seq, len, bits, part, net);
        // RFC 6298 rule 5.1: the timer starts with a segment unless it runs.
        if self.rto_at == u64::MAX {
            self.start_rto(now);
        }
    }

    /// Notes which messages began and ended with what was sent; whether one ended.
    fn note_messages(&mut self, now: u64) -> bool {
        let mut ended = false;
        while let Some(message) = self.messages.front_mut() {
            // A message begins when its first byte leaves, and ends with its last.
            if message.first_send.is_none() && message.start < self.nxt {
                message.first_send = Some(now);
                self.started.push((message.id, now));
            }
            if message.end > self.nxt {
                break;
            }
            ended = true;
            self.messages.pop_front();
        }
        self.expect_message();
        ended
    }

    /// Puts a data segment on the wire.
    #[inline(always)]
    fn emit(&mut self, seq: u64, len: u32, bits: u16, part: Part, net: &mut Uplink<'_>) {
        let now = net.now;
        let config = &*self.config;
        // RFC 3168: data are ECN-capable (section 6.1.1), retransmissions not (6.1.5), except where the stack says so.
        let ect = if bits & flags::RETRANSMISSION != 0 {
            config.control_ect
        } else if config.stack.ecn != EcnMode::Off {
            flags::ECT
        } else {
            0
        };
        let wire = config.stack.wire(len);
        self.counters.segments += 1;
        self.counters.bytes_sent += u64::from(len);
        self.counters.first_send = self.counters.first_send.min(now);
        if let Some(from) = part.whole_from {
            return self.emit_whole(from, seq + u64::from(len), bits | ect, part, net);
        }
        let packet = Packet {
            seq,
            timestamp: now,
            sack: [0; 6],
            flow: self.flow,
            len: len as u16,
            wire: wire.get() as u16,
            flags: bits | ect,
            window: 0,
            id: 0,
            tick: self.heard_tick,
        };
        self.put_on_wire(packet, part.first, net);
        if !self.config.stack.tsq_limit.is_zero() {
            self.in_host.push(net.host_port_free_at(self.flow));
        }
        if part.of_burst {
            return self.recovery.note_sent();
        }
        if let Some(rate) = self.pacing_rate() {
            self.pace_at = self.paced_until(now, (wire / rate).ps());
        }
        let s = self.cwv_input(now);
        // Window validation asks whether the window is the limit (RFC 7661; `tcp_cwnd_validate`).
        let limited = !self.window_has_room(self.config.stack.mss);
        self.window_is_full = limited;
        let (rtt, stack) = (&self.rtt, &self.config.stack);
        if let Some(restart) = self.validation.on_send(&s, limited, || Rto::of(rtt, stack))
            && !self.config.needs.handles_idle
        {
            self.restart(restart, now);
        }
        self.recovery.note_sent();
    }

    /// A segment of a burst that no card cuts: the last takes the others with it.
    #[inline(never)]
    fn emit_whole(&mut self, from: u64, end: u64, bits: u16, part: Part, net: &mut Uplink<'_>) {
        self.recovery.note_sent();
        // Only the first may say that the window was reduced.
        let cwr = self.whole_cwr && !part.first;
        self.whole_cwr = bits & flags::CWR != 0 || cwr;
        if !part.last {
            return;
        }
        let (stack, len) = (&self.config.stack, end - from);
        // Its bytes on the wire are those of its segments, with their headers.
        let segments = len.div_ceil(u64::from(stack.mss));
        let packet = Packet {
            seq: from,
            timestamp: net.now,
            sack: [0; 6],
            flow: self.flow,
            len: len as u16,
            wire: (len + segments * stack.wire(0).get()) as u16,
            flags: bits | if cwr { flags::CWR } else { 0 },
            window: 0,
            id: 0,
            tick: self.heard_tick,
        };
        let waits = !stack.tsq_limit.is_zero();
        self.put_on_wire(packet, true, net);
        for _ in 0..if waits { segments } else { 0 } {
            self.in_host.push(net.host_port_free_at(self.flow));
        }
    }

    /// A burst of so many bytes on the wire left.
    pub(super) fn after_burst(&mut self, wire: u64, now: u64) {
        if let Some(rate) = self.pacing_rate() {
            self.pace_at = self.paced_until(now, (Bytes::new(wire) / rate).ps());
        }
        self.validation.note_sent(now);
    }

    /// When the next segment may leave after one that left at `now` and takes `length` ps at the pacing rate (`tcp_update_skb_after_send`).
    fn paced_until(&self, now: u64, length: u64) -> u64 {
        let stack = &self.config.stack;
        if self.counters.segments < u64::from(stack.unpaced_segments) {
            return self.pace_at.max(now);
        }
        // What left late takes that off the next wait, at most half of it.
        let late = if stack.pacing_credit { now.saturating_sub(self.pace_at) } else { 0 };
        // len_ns -= min(len_ns / 2, credit), "take into account OS jitter".
        self.pace_at.max(now).saturating_add(length - late.min(length / 2))
    }

    #[inline(always)]
    pub(super) fn put_on_wire(&mut self, packet: Packet, lags: bool, net: &mut Uplink<'_>) {
        if let Some(peer) = self.peer {
            return self.put_on_wire_with_ack(packet, peer, lags, net);
        }
        if lags {
            net.send_late(packet, self.lag());
        } else {
            net.send(packet);
        }
    }

    /// Apart, so that a packet without an ACK is written where the network keeps it, and nowhere before.
    #[inline(never)]
    fn put_on_wire_with_ack(&mut self, mut packet: Packet, peer: u32, lags: bool, net: &mut Uplink<'_>) {
        net.ride(&mut packet, peer);
        if lags {
            net.send_late(packet, self.lag());
        } else {
            net.send(packet);
        }
    }

    /// How long the host takes for a packet, ps.
    #[inline(always)]
    pub(super) fn lag(&mut self) -> u64 {
        work::lag(&mut self.random, &self.config.stack)
    }

    pub(super) fn restart(&mut self, restart: Restart, now: u64) {
        self.notify_cc(now, |cc, conn| cc.on_restart(conn, Duration::from_ps(restart.idle), restart.window));
    }

    fn segment_size(&mut self, now: u64) -> u32 {
        if !self.config.needs.segment_sizes {
            return self.config.stack.mss;
        }
        if let Some(size) = self.next_size {
            return size;
        }
        let size = self.notify_cc(now, |cc, conn| cc.segment_size(conn)).clamp(1, self.config.stack.mss);
        self.next_size = Some(size);
        size
    }

    pub(super) fn nagle_holds(&self, len: u32, full: u32) -> bool {
        if len >= full {
            return false;
        }
        // RFC 896 waits while anything is unacknowledged, Minshall while a small segment is (`tcp_minshall_check`).
        match self.config.stack.nagle {
            Nagle::Off => false,
            Nagle::Rfc896 => !self.board.is_empty(),
            Nagle::Minshall => self.small_end > self.una,
        }
    }

    /// Asks the algorithm (TRIM's probes and timers).
    pub(super) fn gate_opens(&mut self, net: &mut Uplink<'_>) -> bool {
        let now = net.now;
        if self.held_for_ack || self.held_until > now || self.gate_until > now {
            return false;
        }
        if self.config.needs.send_hook {
            let since = (self.counters.segments > 0).then(|| Duration::from_ps(now - self.validation.last_send()));
            for _ in 0..MOST_ASKS {
                match self.notify_cc(now, |cc, conn| cc.before_send(conn, since)) {
                    Gate::Go => return true,
                    Gate::HoldUntil(time) if time.ps() > now => {
                        self.gate_until = time.ps();
                        return false;
                    }
                    // That time has passed: what does the algorithm say now?
                    Gate::HoldUntil(_) => {}
                    Gate::HoldForAck => {
                        self.held_for_ack = true;
                        return false;
                    }
                }
            }
            self.gate_until = now + ASKED_IN_VAIN_PS;
            return false;
        }
        true
    }

    pub(super) fn paced(&self) -> bool {
        self.config.stack.pacing || self.control.pacing.is_some()
    }

    /// The algorithm's rate, or Linux's 2.0 or 1.2 times cwnd per round trip (`tcp_update_pacing_rate`).
    fn pacing_rate(&self) -> Option<Rate> {
        let pacing = self.control.pacing;
        if pacing.is_some() || !self.config.stack.pacing || self.rtt.srtt().is_zero() {
            return pacing;
        }
        let wire = self.config.stack.wire(self.config.stack.mss).get() as f64;
        Some(Rate::from_bps((self.packets_per_second() * wire * 8.0).max(1.0) as u64))
    }

    /// `sk_pacing_rate`, which Linux keeps of connections that are not paced, too: bytes per second.
    pub(super) fn payload_rate(&self) -> f64 {
        match self.control.pacing {
            // An algorithm's is of bytes on the wire.
            Some(rate) => {
                let (mss, stack) = (self.config.stack.mss, &self.config.stack);
                rate.bps() as f64 / 8.0 * f64::from(mss) / stack.wire(mss).get() as f64
            }
            None if self.rtt.srtt().is_zero() => f64::INFINITY,
            None => self.packets_per_second() * f64::from(self.config.stack.mss),
        }
    }

    /// Linux's 2.0 or 1.2 times cwnd per round trip, or what is outstanding where that is more.
    fn packets_per_second(&self) -> f64 {
        let Control { cwnd, ssthresh, .. } = self.control;
        // tcp_pacing_ss_ratio (200 %) below half of ssthresh, else tcp_pacing_ca_ratio (120 %).
        let ratio = if cwnd < ssthresh / 2.0 { 2.0 } else { 1.2 };
        // 10 packets of 1448 bytes in 200 us: 145 MB/s in slow start, 87 MB/s after.
        ratio * cwnd.max(f64::from(self.board.outstanding())) / self.rtt.srtt().as_secs()
    }
}
