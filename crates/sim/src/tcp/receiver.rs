//! The receiving side: reassembly, acknowledgements, ECN echo, advertised window.

use super::full_segment::{Ends, FullSegment};
use super::handshake::Opening;
use super::reassembly::Reassembly;
use super::sender::Config;
use super::tuning::{ReceiveBuffer, first_window};
use crate::host::clock::Clock;
use crate::host::work;
use crate::net::Net;
use crate::packet::{Packet, TICK_PS, flags};
use crate::rng::Stream;
use crate::stack::EcnMode;
use crate::timer::Timer;
use fanin_cc::{Arrival, ReceiverControl, RoundTrips};
use fanin_units::{Duration, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Duplicate ACKs that Linux sends at once before it merges them (`TCP_FASTRETRANS_THRESH`).
const DUPACKS_AT_ONCE: u8 = 3;

/// Linux's merging of ACKs of data ahead of a hole (`__tcp_ack_snd_check`).
#[derive(Debug)]
struct Merged {
    /// ACKs that wait to be one.
    acks: u32,
    /// When it is due; `u64::MAX` if none waits.
    due: u64,
    /// ACKs sent at once since the hole is where it is.
    at_once: u8,
    /// The byte that was missing then.
    hole: u64,
}

/// What receiver control needs.
#[derive(Debug)]
struct Metering {
    /// Which of the endpoint's policies decides, and this connection's number there.
    control: u32,
    conn: u32,
    /// ACKs held back: due time and the ACK.
    held: VecDeque<(u64, Packet)>,
    round_trips: RoundTrips,
}

/// The receiving endpoint of one flow.
#[derive(Debug)]
pub struct Receiver {
    pub(super) flow: u32,
    /// The opposite direction of the same connection.
    peer: Option<u32>,
    timer_at: u64,
    pub(super) config: Arc<Config>,
    clock: Clock,
    pub(super) arrived: Reassembly,
    /// One past the last byte of each message that is under way, with its number.
    messages: VecDeque<(u64, u32)>,
    /// Where the first of `messages` ends; `u64::MAX` if there is none.
    pub(super) first_end: u64,
    /// Bytes the application expects in all.
    expected: u64,
    /// Segments not acknowledged yet.
    pending: u32,
    ack_at: u64,
    merged: Merged,
    pub(super) quick_left: u32,
    /// What has arrived is to be acknowledged at once, with a D-SACK, or held back for receiver control.
    now: bool,
    dsack: bool,
    delay: Duration,
    /// The host answers soon after data arrives, so that its data carry the ACK (Linux's pingpong mode).
    interactive: bool,
    /// What is taken for a full segment.
    full: FullSegment,
    /// Since the last ACK the end of what an application wrote has come (`ICSK_ACK_PUSHED`), and behind it a short segment (`ICSK_ACK_PUSHED2`).
    pushed: bool,
    pushed_again: bool,
    /// What that asks for has been read, or is about to be.
    ends_read: bool,
    /// The application reads what has come when the host is done with it, and acknowledges it then.
    pub(super) reads: bool,
    pub(super) opening: Opening,
    /// The round trip that the handshake showed this side, which is all that the host of a flow without an opposite direction ever measures
    /// as a sender; zero if it is not known.
    opened_in: Duration,
    /// Echoed in the next ACK: the timestamp of the segment that will advance it (RFC 7323 section 4.3).
    ts_recent: u64,
    pub(super) last_ack_sent: u64,
    /// DCTCP: CE of the last segment. RFC 3168: ECE until CWR.
    ce: bool,
    /// Right edge advertised so far.
    pub(super) edge: u64,
    pub(super) window: u64,
    /// Where the buffer is tuned: what decides about the window.
    pub(super) buffer: Option<Box<ReceiveBuffer>>,
    /// For receivers under control. Boxed: few are.
    metering: Option<Box<Metering>>,
    /// When data last arrived, in order or not.
    last_arrival: u64,
    random: Option<Box<Stream>>,
    last_delivery: Option<u64>,
}

impl Receiver {
    /// A connection's receiver, before anything arrived.
    pub fn new(
        flow: u32,
        peer: Option<u32>,
        config: Arc<Config>,
        clock: Clock,
        ack_time: Duration,
        random: Option<Stream>,
    ) -> Receiver {
        let buffer = ReceiveBuffer::of(&config.stack, ack_time);
        let window = first_window(&config.stack).unwrap_or(config.stack.receive_window.get());
        let full = FullSegment::new(&config.stack);
        let quick_left = if config.stack.delack_bytes { 0 } else { config.stack.initial_quickacks };
        Receiver {
            flow,
            peer,
            timer_at: u64::MAX,
            config,
            clock,
            arrived: Reassembly::default(),
            messages: VecDeque::new(),
            first_end: u64::MAX,
            expected: 0,
            pending: 0,
            ack_at: u64::MAX,
            merged: Merged { acks: 0, due: u64::MAX, at_once: 0, hole: 0 },
            quick_left,
            now: false,
            dsack: false,
            delay: Duration::ZERO,
            interactive: false,
            full,
            pushed: false,
            pushed_again: false,
            ends_read: false,
            reads: false,
            opening: Opening::Closed,
            opened_in: Duration::ZERO,
            ts_recent: 0,
            last_ack_sent: 0,
            ce: false,
            edge: window,
            window,
            buffer,
            metering: None,
            last_arrival: 0,
            random: random.map(Box::new),
            last_delivery: None,
        }
    }

    /// A message was written: its last byte ends at `end` of the stream.
    pub fn expect(&mut self, id: u32, end: u64) {
        self.messages.push_back((end, id));
        self.first_end = self.first_end.min(end);
        self.expected = end;
    }

    /// Bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.arrived.nxt
    }

    /// When data was last delivered in order, ps.
    pub fn last_delivery(&self) -> Option<u64> {
        self.last_delivery
    }

    /// Everything the application expects has arrived.
    pub fn is_satisfied(&self) -> bool {
        self.arrived.nxt >= self.expected
    }

    /// Whether [`Self::take_complete`] has something to tell.
    #[inline]
    pub fn has_complete(&self) -> bool {
        self.first_end <= self.arrived.nxt
    }

    /// Without another message or packet it does nothing more: all was delivered and acknowledged, and no timer runs.
    pub fn is_over(&self) -> bool {
        let acknowledged = self.pending == 0 && self.merged.acks == 0 && self.arrived.is_whole();
        self.timer_at == u64::MAX && acknowledged && self.messages.is_empty() && self.metering.is_none()
    }

    /// The message that ended with the bytes delivered so far, if one did; call until `None`.
    #[inline]
    pub fn take_complete(&mut self) -> Option<u32> {
        if !self.has_complete() {
            return None;
        }
        let (_, id) = self.messages.pop_front()?;
        self.first_end = self.messages.front().map_or(u64::MAX, |m| m.0);
        Some(id)
    }

    /// The opposite direction of the same connection.
    pub fn peer(&self) -> Option<u32> {
        self.peer
    }

    /// Which policy decides about this connection, and the connection's number there; `None` if none does.
    pub fn controlled(&self) -> Option<(u32, u32)> {
        self.metering.as_ref().map(|m| (m.control, m.conn))
    }

    /// Puts the connection under the control of a policy, which has decided about its first window.
    pub fn control(&mut self, control: u32, conn: u32, window: u64) {
        self.metering =
            Some(Box::new(Metering { control, conn, held: VecDeque::new(), round_trips: RoundTrips::default() }));
        self.buffer = None;
        self.window = window;
        self.edge = self.arrived.nxt + window;
    }

    /// A packet of this flow arrived; [`Self::check_ack`] acknowledges it. `rto` is the timer of what the host sends on this connection, if it
    /// does; `controls` are the endpoint's policies.
    pub fn on_data(
        &mut self,
        packet: &Packet,
        rto: impl FnOnce() -> Option<Duration>,
        controls: &mut [Box<dyn ReceiverControl>],
        net: &mut Net,
    ) {
        if packet.has(flags::SYN) {
            return self.answer_syn(packet, net);
        }
        if packet.len == 0 {
            return;
        }
        let stack = &self.config.stack;
        let ce = packet.has(flags::CE) && stack.ecn != EcnMode::Off;
        self.now |= stack.ack_on_cwr && packet.has(flags::CWR);
        self.echo_congestion(packet, ce, net);
        let end = packet.seq + u64::from(packet.len);
        // RFC 7323 section 4.3: TS.Recent is that of the segment which the last ACK waited for.
        if packet.seq <= self.last_ack_sent && end > self.last_ack_sent {
            self.ts_recent = packet.timestamp;
        }
        let before = self.arrived.nxt;
        // RFC 9293 section 3.10.7.4: in order is what begins at RCV.NXT.
        let in_order = packet.seq == before && self.arrived.is_whole();
        let old = end <= before;
        // What had arrived before is told by D-SACK (RFC 2883).
        let duplicate = !in_order && (old || self.arrived.holds(packet.seq, end));
        if in_order {
            self.arrived.nxt = end;
        } else {
            // Another SACK block: the merged ACKs tell of those before it first.
            if self.merged.acks > 0 && self.arrived.is_another_block(packet.seq, end) {
                self.acknowledge(net);
            }
            self.arrived.add(packet.seq, end);
        }
        if self.arrived.nxt > before {
            self.last_delivery = Some(net.now);
            net.trace.delivered(net.now, self.flow, self.arrived.nxt - before);
        }
        if self.metering.is_some() {
            self.tell_policy(packet, duplicate, controls, net.now);
        }
        // More than one full segment is acknowledged at once, however many packets bring it (`__tcp_ack_snd_check`).
        let merged = u32::from(packet.len) > self.config.stack.mss;
        self.pending += if merged { self.config.stack.delack_segments } else { 1 };
        self.measure(packet, old);
        self.dsack |= duplicate;
        // A filled hole is told at once (RFC 5681 section 4.2); of data ahead of one Linux merges the ACKs.
        self.now |=
            if self.merges() { self.arrived.nxt > before && !in_order && self.arrived.is_whole() } else { !in_order };
        self.note_arrival(old, self.arrived.nxt > before && packet.has(flags::PUSH), rto, net.now);
        // Data out of order must give duplicate ACKs where there is no SACK.
        let tells = packet.seq == before || self.config.stack.recovery.uses_sack();
        if !old && tells && self.buffer.is_some() {
            self.tune(packet, before, net);
        }
        // What an application wrote is acknowledged when the one here has read all of it, which waits for enough to read (`__tcp_cleanup_rbuf`).
        let ends = self.pushed_again || (self.pushed && !self.interactive);
        match &self.buffer {
            None => self.now |= ends,
            Some(buffer) => self.ends_read = ends && buffer.is_read(),
        }
    }

    /// Tells the host's policy for this connection, and does as it says.
    #[inline(never)]
    fn tell_policy(&mut self, packet: &Packet, duplicate: bool, controls: &mut [Box<dyn ReceiverControl>], now: u64) {
        let Some((control, conn)) = self.controlled() else { return };
        let (nxt, now) = (self.arrived.nxt, Time::from_ps(now));
        let advice = controls[control as usize].on_data(&Arrival {
            now,
            conn,
            mss: self.config.stack.mss,
            wire_bytes: self.config.wire_of(packet),
            payload_bytes: if duplicate { 0 } else { u32::from(packet.len) },
            rtt: self.metering.as_mut().and_then(|m| m.round_trips.on_data(nxt, now)),
        });
        self.window = advice.window;
        self.delay = advice.ack_delay;
        // A policy that meters ACKs must see them leave: a delayed ACK would wait for the packet that the ACK is to release.
        self.now = true;
    }

    /// Linux looks at how long segments are (`tcp_event_data_recv`): the first brings quick ACKs.
    fn measure(&mut self, packet: &Packet, old: bool) {
        let stack = &self.config.stack;
        if !stack.delack_bytes || old {
            return;
        }
        let ends = self.full.measure(u32::from(packet.len).min(stack.mss), packet.has(flags::PUSH));
        self.pushed_again |= self.pushed && ends == Ends::Short;
        self.pushed |= stack.pingpong && ends != Ends::No;
        if self.last_arrival == 0 {
            self.quick_left = self.initial_quickacks();
        }
    }

    fn initial_quickacks(&self) -> u32 {
        let most = self.config.stack.initial_quickacks;
        if self.config.stack.delack_bytes {
            self.quick_left.max(self.full.initial_quickacks(self.edge.saturating_sub(self.last_ack_sent), most))
        } else {
            most
        }
    }

    /// A packet of a flow without an opposite direction arrived: the first after the SYN ends the handshake.
    #[inline]
    pub fn note_opening(&mut self, packet: &Packet, now: u64) {
        if self.opening != Opening::Open
            && let Some(Some(rtt)) = self.take_opening(packet, now)
        {
            self.opened_in = rtt;
        }
    }

    /// What this side has measured of the round trip if it never sends data.
    pub fn opened_in(&self) -> Duration {
        self.opened_in
    }

    fn merges(&self) -> bool {
        self.config.stack.comp_sack_nr > 0 && self.config.stack.recovery.uses_sack()
    }

    /// Linux's judgement whether ACKs should wait (`tcp_event_data_recv`, `tcp_enter_quickack_mode`, `tcp_cleanup_rbuf`): quick ACKs after a
    /// gap longer than its RTO, and after data that had been delivered before, which also end the interactive mode; outside of that the
    /// end of what an application wrote is acknowledged when the application here reads it, which takes no time in a simulation.
    fn note_arrival(&mut self, old: bool, ends_write: bool, rto: impl FnOnce() -> Option<Duration>, now: u64) {
        let stack = &self.config.stack;
        let since = now - self.last_arrival;
        // `tcp_event_data_recv`: m > icsk_rto, of which the floor is a part.
        let timer = || rto().unwrap_or(self.opened_in + stack.min_rto);
        let gap = since > stack.min_rto.ps() && since > timer().ps();
        self.last_arrival = now;
        self.now |= stack.pingpong && !stack.delack_bytes && ends_write && !self.interactive;
        if gap || old {
            self.quick_left = self.initial_quickacks();
        }
        if old {
            self.interactive = false;
        }
    }

    /// Acknowledges what has arrived unless data have done so: now, or when the delayed ACK is due (`__tcp_ack_snd_check`). `round_trip`
    /// is what the host has measured on this connection; only merged ACKs ask for it.
    #[inline]
    pub fn check_ack(&mut self, round_trip: impl FnOnce() -> Duration, net: &mut Net) {
        if self.pending == 0 {
            return;
        }
        // `tcp_in_quickack_mode`: quick ACKs are left, and the connection is not interactive.
        let quick = self.quick_left > 0 && !self.interactive;
        if self.now || quick {
            self.acknowledge(net);
        } else if !self.arrived.is_whole() && self.merges() {
            self.merge(round_trip, net);
        } else if self.is_due() && !self.waits_for_reader() {
            self.acknowledge(net);
        } else if self.is_due() || self.ends_read {
            self.acknowledge_when_read(net);
        } else if self.ack_at == u64::MAX {
            // RFC 1122 section 4.2.3.2: a delayed ACK leaves in time all the same.
            self.ack_at = self.clock.after(net.now, self.config.stack.longest_delack());
            self.arm(net);
        }
    }

    /// So much has come since the last ACK that the next is not delayed: segments, or more bytes than all but one of them have.
    fn is_due(&self) -> bool {
        let stack = &self.config.stack;
        if stack.delack_bytes && stack.delack_segments > 1 {
            // `__tcp_ack_snd_check`: rcv_nxt - rcv_wup > icsk_ack.rcv_mss.
            let bytes = u64::from(stack.delack_segments - 1) * u64::from(self.full.size);
            return self.arrived.nxt - self.last_ack_sent > bytes;
        }
        // RFC 1122 section 4.2.3.2, RFC 5681 section 4.2: an ACK at least for every second full segment.
        self.pending >= stack.delack_segments
    }

    /// Data ahead of a hole: the first ACKs leave at once, so that the sender finds the loss; those after them wait to be one.
    #[inline(never)]
    fn merge(&mut self, round_trip: impl FnOnce() -> Duration, net: &mut Net) {
        let stack = &self.config.stack;
        let advanced = self.arrived.nxt - self.last_ack_sent > u64::from(self.full.size);
        // `__tcp_ack_snd_check`: more than rcv_mss of new data, or compressed_ack at tcp_comp_sack_nr.
        if advanced || self.merged.acks >= stack.comp_sack_nr {
            return self.acknowledge(net);
        }
        // compressed_ack_rcv_nxt: at another hole dup_ack_counter begins anew.
        if self.merged.hole != self.arrived.nxt {
            self.merged.hole = self.arrived.nxt;
            self.merged.at_once = 0;
        }
        if self.merged.at_once < DUPACKS_AT_ONCE {
            self.merged.at_once += 1;
            return self.acknowledge(net);
        }
        self.merged.acks += 1;
        if self.merged.due == u64::MAX {
            // A twentieth of the lesser of what this host knows of the round trip as a receiver and as a sender.
            let (told, seen) = (round_trip().ps(), self.buffer.as_ref().map(|b| b.round_trip().ps()));
            let rtt = seen.map_or(told, |seen| if told > 0 { seen.min(told) } else { seen });
            // delay = min(tcp_comp_sack_delay_ns, rtt / 20), and the timer's slack.
            let wait = stack.comp_sack_delay.ps().min(rtt / 20);
            self.merged.due = net.now + wait + stack.comp_sack_slack.ps();
            self.arm(net);
        }
    }

    /// The host sends data on the same connection the other way, with the ACK in them. Where the receiver controls when its ACKs leave, they
    /// leave alone.
    pub fn ride_on(&mut self, data: &mut Packet, now: u64) {
        let stack = &self.config.stack;
        if !stack.two_way || self.metering.is_some() {
            return;
        }
        if data.len > 0 && stack.pingpong && now - self.last_arrival < stack.delack_timeout.ps() {
            // `tcp_event_data_sent`: a reply within the delayed ACK's time.
            self.interactive |= self.arrived.nxt > 0;
        }
        let ack = self.ack(now);
        data.carry(&ack);
    }

    /// The calendar says that the delayed ACK or a held one may be due.
    pub fn on_timer(&mut self, net: &mut Net) {
        if net.now != self.timer_at {
            return;
        }
        self.timer_at = u64::MAX;
        if self.read_at() <= net.now {
            self.reads = false;
            if self.pending > 0 {
                self.acknowledge_read(net);
            }
        }
        while let Some(metering) = &mut self.metering
            && let Some(&(due, ack)) = metering.held.front()
            && due <= net.now
        {
            metering.held.pop_front();
            let lag = self.lag();
            net.send_late(ack, lag);
        }
        if self.merged.due <= net.now {
            // `tcp_compressed_ack_kick`
            self.acknowledge(net);
        }
        if self.ack_at <= net.now && self.pending > 0 {
            // No answer came (`tcp_delack_timer_handler`).
            self.interactive = false;
            self.acknowledge(net);
        }
        self.arm(net);
    }

    pub(super) fn arm(&mut self, net: &mut Net) {
        let held = self.metering.as_ref().and_then(|m| m.held.front()).map_or(u64::MAX, |h| h.0);
        let due = held.min(self.ack_at).min(self.merged.due).min(self.read_at());
        if due < self.timer_at {
            self.timer_at = due.max(net.now);
            net.calendar.schedule_timer(self.timer_at, Timer::Sink(self.flow));
        }
    }

    /// RFC 8257 section 3.2 (one bit of state, an immediate ACK on every change) or RFC 3168 section 6.1.3 (ECE until CWR).
    fn echo_congestion(&mut self, packet: &Packet, ce: bool, net: &mut Net) {
        match self.config.stack.ecn {
            EcnMode::Off => {}
            EcnMode::Classic => {
                // RFC 3168 section 6.1.3: ECE on every ACK from CE to CWR.
                if packet.has(flags::CWR) {
                    self.ce = false;
                }
                self.ce |= ce;
            }
            EcnMode::Dctcp => {
                // RFC 8257 section 3.2: where CE changes, what came before is acknowledged with the old bit, and this at once.
                if ce != self.ce {
                    if self.pending > 0 {
                        self.acknowledge(net);
                    }
                    self.ce = ce;
                    self.now = true;
                }
            }
        }
    }

    /// Sends an ACK by itself.
    pub(super) fn acknowledge(&mut self, net: &mut Net) {
        if self.metering.is_some() {
            return self.acknowledge_metered(net);
        }
        let lag = self.lag();
        net.send_late(self.ack(net.now), lag);
    }

    /// The same under receiver control, which may hold it back.
    #[inline(never)]
    fn acknowledge_metered(&mut self, net: &mut Net) {
        let delay = std::mem::take(&mut self.delay);
        if let Some(metering) = &mut self.metering {
            let edge = self.edge.max(self.arrived.nxt.saturating_add(self.window));
            metering.round_trips.on_ack(self.arrived.nxt, edge, Time::from_ps(net.now) + delay);
        }
        let ack = self.ack(net.now);
        if let Some(metering) = &mut self.metering
            && !(delay.is_zero() && metering.held.is_empty())
        {
            // Held ACKs leave in order.
            // A cumulative ACK that overtook another would make its delay void.
            let due = (net.now + delay.ps()).max(metering.held.back().map_or(0, |h| h.0));
            metering.held.push_back((due, ack));
            return self.arm(net);
        }
        let lag = self.lag();
        net.send_late(ack, lag);
    }

    /// How long the host takes for a packet, ps.
    pub(super) fn lag(&mut self) -> u64 {
        work::lag(&mut self.random, &self.config.stack)
    }

    /// What the receiver has to say now; nothing waits for an ACK any more.
    #[inline(always)]
    fn ack(&mut self, now: u64) -> Packet {
        if self.pending > 0 {
            // `tcp_dec_quickack_mode`.
            self.quick_left = self.quick_left.saturating_sub(1);
        }
        self.pending = 0;
        self.ack_at = u64::MAX;
        self.merged.acks = 0;
        self.merged.due = u64::MAX;
        self.now = false;
        self.pushed = false;
        self.pushed_again = false;
        self.ends_read = false;
        self.catch_up(now);
        // The right edge of the window never moves back (RFC 9293 section 3.8.6).
        self.edge = self.edge.max(self.arrived.nxt.saturating_add(self.window));
        self.last_ack_sent = self.arrived.nxt;
        if let Some(buffer) = &mut self.buffer {
            self.edge = self.arrived.nxt + buffer.told(self.edge - self.arrived.nxt);
            buffer.note_ack(self.arrived.nxt, now);
        }
        let ece = if self.ce { flags::ECE } else { 0 };
        let duplicate = std::mem::take(&mut self.dsack);
        let dsack = if duplicate { flags::DSACK } else { 0 };
        let sack = self.sack_blocks();
        Packet {
            seq: self.arrived.nxt,
            timestamp: self.ts_recent,
            sack,
            flow: self.flow,
            len: 0,
            // SACK blocks are options (`tcp_established_options`).
            wire: self.config.empty_wire + self.config.stack.sack_bytes(&sack, duplicate),
            flags: flags::ACK | ece | self.config.control_ect | dsack,
            window: u32::try_from(self.edge - self.arrived.nxt).unwrap_or(u32::MAX),
            id: 0,
            tick: (now / TICK_PS) as u32,
        }
    }

    /// The three most recent runs ahead of the hole, relative to the acknowledgement number.
    #[inline]
    fn sack_blocks(&self) -> [u32; 6] {
        if self.arrived.is_whole() || !self.config.stack.recovery.uses_sack() {
            return [0; 6];
        }
        self.arrived.most_recent_blocks()
    }
}
