//! The sending side of a connection: what the application, ACKs and timers do to it. What leaves when is in `transmit.rs`, losses and
//! the state machine in `recovery.rs`.

use super::delivered::Delivered;
use super::rates::RateSampler;
use super::recovery::{AckSummary, Recovery};
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::tuning::first_window;
use super::uplink::Uplink;
use super::validation::Validation;
use crate::host::clock::Clock;
use crate::host::offload::Offload;
use crate::host::send_buffer::Socket;
use crate::host::small_queue::SmallQueue;
use crate::packet::{Packet, flags};
use crate::rng::Stream;
use crate::stack::{CcRtt, EcnMode, GrowAfterRecovery, Stack, WindowUnit};
use fanin_cc::{Ack, CongestionControl, Control, Needs, RecoveryKind, State};
use fanin_units::{Bytes, Duration};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is the same for all connections of a transport.
#[derive(Clone, Debug)]
pub struct Config {
    /// The knobs, recovery and ECN resolved with what the algorithm needs.
    pub stack: Stack,
    /// What the algorithm needs.
    pub needs: Needs,
    /// The window counts bytes.
    pub byte_window: bool,
    /// Bytes on the wire of a packet without payload.
    pub empty_wire: u16,
    /// Whether packets without payload, and retransmissions, are ECN-capable: [`flags::ECT`] or nothing.
    pub control_ect: u16,
}

impl Config {
    /// Bytes on the wire of a data packet, of all that the network or GRO has made one.
    pub fn wire_of(&self, packet: &Packet) -> u32 {
        let segments = u32::from(packet.len).div_ceil(self.stack.mss);
        if segments <= 1 {
            u32::from(packet.wire)
        } else {
            u32::from(packet.len) + segments * u32::from(self.empty_wire)
        }
    }

    /// Of a transport whose stack is resolved.
    pub fn new(stack: Stack, needs: Needs) -> Config {
        Config {
            byte_window: needs.byte_window || stack.window_unit == WindowUnit::Bytes,
            empty_wire: stack.wire(0).get() as u16,
            control_ect: if stack.control_is_ect() { flags::ECT } else { 0 },
            stack,
            needs,
        }
    }
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
pub(super) enum Phase {
    Closed,
    /// To be opened when the host has opened those before it.
    Queued,
    SynSent,
    /// The peer opens the connection; there is something to send as soon as it has.
    SynReceived,
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
    pub undos: u32,
}

/// A sender's totals.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    pub(super) counters: Counters,
    pub(super) acked: u64,
    pub(super) cwnd: f64,
    pub(super) srtt: Duration,
    pub(super) min_rtt: Duration,
}

/// The SACK blocks of an ACK as bytes of the stream; (0, 0) where there is none.
#[inline(always)]
fn sack_blocks(packet: &Packet) -> [(u64, u64); 3] {
    let block = |i: usize| {
        let (l, r) = (u64::from(packet.sack[2 * i]), u64::from(packet.sack[2 * i + 1]));
        if r == 0 { (0, 0) } else { (packet.seq + l, packet.seq + r) }
    };
    [block(0), block(1), block(2)]
}

/// Whether anything asks which of the delivered segments was sent last: RACK, the round trips that Linux tells, and rate samples.
fn needs_newest(config: &Config) -> bool {
    let stack = &config.stack;
    stack.recovery.is_linux()
        || stack.dupacks_deliver
        || stack.cc_rtt != CcRtt::Ack
        || stack.coarse_timestamps
        || config.needs.rate_samples
}

/// The sending endpoint of one flow.
#[derive(Debug)]
pub struct Sender {
    pub(super) flow: u32,
    /// The opposite direction of the same connection.
    pub(super) peer: Option<u32>,
    /// The earliest entry in the calendar that still means something; `u64::MAX` when there is none.
    pub(super) timer_at: u64,
    pub(super) config: Arc<Config>,
    pub(super) clock: Clock,
    pub(super) cc: Box<dyn CongestionControl>,
    /// The algorithm's decision in force, read after every event it was told.
    pub(super) control: Control,
    pub(super) phase: Phase,
    pub(super) board: Scoreboard,
    pub(super) una: u64,
    pub(super) nxt: u64,
    /// One past the last byte the application handed over.
    pub(super) written: u64,
    /// Right edge of the receiver's window, and the window that was told last (`snd_wnd`).
    pub(super) edge: u64,
    pub(super) told_window: u32,
    pub(super) messages: VecDeque<Outgoing>,
    /// From which byte on what was sent means something to the first message: its first byte has left, or its last.
    pub(super) message_due: u64,
    /// Messages whose first byte was sent since the engine last asked.
    pub(super) started: Vec<(u32, u64)>,
    pub(super) stopped: bool,
    pub(super) state: State,
    pub(super) recovery: Recovery,
    pub(super) rtt: RttEstimator,
    pub(super) rto_at: u64,
    pub(super) validation: Validation,
    /// After the last segment that left there was no room for another of full size.
    pub(super) window_is_full: bool,
    /// Set CWR on the next new segment.
    pub(super) cwr_pending: bool,
    /// Nothing leaves before these times: pacing; small queues.
    pub(super) pace_at: u64,
    pub(super) held_until: u64,
    pub(super) in_host: SmallQueue,
    /// Where the network card cuts: the write queue, with its socket.
    pub(super) offload: Option<Box<Offload>>,
    /// The socket where segments leave one by one; none takes all that is written.
    pub(super) plain_socket: Option<Socket>,
    /// What leaves as one packet began with CWR.
    pub(super) whole_cwr: bool,
    /// First unacknowledged byte when the timer last ended.
    pub(super) timed_out_at: u64,
    /// The algorithm holds new segments until then, or until the next ACK.
    pub(super) gate_until: u64,
    pub(super) held_for_ack: bool,
    /// The next segment's size, once the algorithm has drawn it.
    pub(super) next_size: Option<u32>,
    /// End of the last segment smaller than the MSS (Minshall).
    pub(super) small_end: u64,
    pub(super) random: Option<Box<Stream>>,
    /// Time stamp of what the other side sent last, as data echo it.
    pub(super) heard_tick: u32,
    /// For algorithms that ask for rate samples. Boxed: most do not.
    pub(super) rates: Option<Box<RateSampler>>,
    pub(super) counters: Counters,
}

impl Sender {
    /// A connection's sender, before anything is sent.
    pub fn new(
        flow: u32,
        peer: Option<u32>,
        config: Arc<Config>,
        clock: Clock,
        cc: Box<dyn CongestionControl>,
        random: Option<Stream>,
    ) -> Sender {
        let recovery = Recovery::new(config.stack.recovery, config.needs.controls_recovery, &config.stack);
        let validation = Validation::new(config.stack.cwnd_validation);
        let tuned = first_window(&config.stack);
        let edge = tuned.unwrap_or(config.stack.receive_window.get());
        let board = Scoreboard::new(needs_newest(&config));
        // Algorithms that draw the size of each segment hand them down one by one.
        let offloads = config.stack.tso && !config.needs.segment_sizes;
        let offload = offloads.then(|| Box::new(Offload::new(edge.min(u64::from(u16::MAX)))));
        let plain_socket = (tuned.is_some() && !offloads).then(Socket::default);
        let rates = config.needs.rate_samples.then(Box::default);
        Sender {
            flow,
            peer,
            timer_at: u64::MAX,
            config,
            clock,
            control: cc.control(),
            cc,
            phase: Phase::Closed,
            board,
            una: 0,
            nxt: 0,
            written: 0,
            edge,
            told_window: 0,
            messages: VecDeque::new(),
            message_due: u64::MAX,
            started: Vec::new(),
            stopped: false,
            state: State::Open,
            recovery,
            rtt: RttEstimator::new(),
            rto_at: u64::MAX,
            validation,
            window_is_full: false,
            cwr_pending: false,
            pace_at: 0,
            held_until: 0,
            in_host: SmallQueue::default(),
            offload,
            plain_socket,
            whole_cwr: false,
            timed_out_at: u64::MAX,
            gate_until: 0,
            held_for_ack: false,
            next_size: None,
            small_end: 0,
            random: random.map(Box::new),
            heard_tick: 0,
            rates,
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

    /// The application hands over a message. `opening`: the other side has begun to open the connection.
    pub fn write(&mut self, id: u32, bytes: u64, deadline: Option<u64>, opening: bool, net: &mut Uplink<'_>) {
        self.note_app_limited(net.now);
        let start = self.written;
        // A stream of bytes: where messages begin and end only this side and the other's application know.
        self.written = self.written.saturating_add(bytes);
        self.messages.push_back(Outgoing { id, start, end: self.written, deadline, first_send: None });
        self.expect_message();
        match self.phase {
            Phase::Established => {}
            // The handshake's end sends what waits.
            Phase::Queued | Phase::SynSent | Phase::SynReceived => return,
            Phase::Closed if self.config.stack.handshake && !opening => return self.connect(net),
            Phase::Closed if self.config.stack.handshake => {
                self.phase = Phase::SynReceived;
                self.start_rto(net.now);
                return self.arm(net);
            }
            Phase::Closed => self.phase = Phase::Established,
        }
        self.write_on(net);
        self.try_send(net);
        self.trace(net);
    }

    /// Nothing new is sent from now on.
    pub fn stop(&mut self) {
        // What has left is still acknowledged, and sent again where it is lost.
        self.stopped = true;
        self.written = self.nxt;
        if let Some(offload) = &mut self.offload {
            offload.stop(self.nxt);
        }
        if let Some(socket) = &mut self.plain_socket {
            socket.stop(self.nxt);
        }
    }

    /// The connection is open, or this side is opening it.
    pub fn is_opening(&self) -> bool {
        self.phase != Phase::Closed
    }

    /// Notes when the first message is to be looked at.
    pub(super) fn expect_message(&mut self) {
        self.message_due = self.messages.front().map_or(u64::MAX, |m| match m.first_send {
            None => m.end.min(m.start + 1),
            Some(_) => m.end,
        });
    }

    /// Something of this message, which was handed over, was never sent.
    pub fn has_unsent(&self, message: u32) -> bool {
        self.messages.iter().any(|m| m.id == message)
    }

    /// Whether [`Self::take_started`] has something to tell.
    #[inline]
    pub fn has_started(&self) -> bool {
        !self.started.is_empty()
    }

    /// Messages whose first byte has been sent since the last call, with the time.
    pub fn take_started(&mut self) -> std::vec::Drain<'_, (u32, u64)> {
        self.started.drain(..)
    }

    // ---- arrivals ---------------------------------------------------------------------------------------------------

    /// An ACK arrived.
    #[inline]
    pub fn on_ack(&mut self, packet: &Packet, net: &mut Uplink<'_>) {
        // TS.Recent: what data echo from now on (RFC 7323 section 4.3).
        self.heard_tick = packet.tick;
        // The largest right edge seen: a window does not shrink (RFC 9293 section 3.8.6).
        self.edge = self.edge.max(packet.seq.saturating_add(u64::from(packet.window)));
        if packet.has(flags::SYN) {
            self.told_window = packet.window;
            return self.on_syn_ack(packet, net);
        }
        let with_data = packet.has(flags::CARRIES_ACK);
        // Without a negotiation the bit means nothing (RFC 3168 section 6.1.1).
        let ece = packet.has(flags::ECE) && self.config.stack.ecn != EcnMode::Off;
        self.counters.ece_acks += u32::from(ece);
        if packet.has(flags::DSACK) {
            self.note_duplicate();
        }
        // An old ACK tells nothing more (`tcp_ack`).
        if packet.seq < self.una {
            return;
        }
        let advanced = packet.seq > self.una;
        let opens = self.opens_window(advanced || with_data, packet.window);
        // Nothing is outstanding: nothing to deliver, to lose or to time (`tcp_ack`, label no_queue).
        if self.board.is_empty() {
            if !with_data {
                self.note_empty_ack(net.now);
            }
            return self.hear_of_what_was_needless(packet, with_data || opens, net);
        }
        self.judge_ack(packet, ece, opens, net);
    }

    /// An ACK while data are outstanding, in the order of `tcp_ack`: what it delivers, its round trip, losses, the window, and what may leave.
    #[inline(always)]
    fn judge_ack(&mut self, packet: &Packet, ece: bool, opens: bool, net: &mut Uplink<'_>) {
        let (advanced, with_data) = (packet.seq > self.una, packet.has(flags::CARRIES_ACK));
        let now = net.now;
        // Before this ACK takes anything out of the network (`rate_sample.prior_in_flight`).
        let prior_in_flight = self.in_flight();
        let mut summary = AckSummary { advanced, ece, ..AckSummary::default() };
        let was_open = self.state == State::Open;
        let d = &mut summary.delivered;
        if self.recovery.kind == RecoveryKind::Rack {
            d.evidence = self.evidence_of(packet, now);
        }
        if advanced {
            // In order first, so that SACKs are looked for in what is left. Linux takes them the other way round; see `Evidence`.
            self.una = packet.seq;
            self.board.acknowledge(packet.seq, d);
            self.recovery.note_activity(now);
        }
        let sacked = self.recovery.uses_sack() && self.board.sack(sack_blocks(packet), d);
        if with_data && !advanced && !sacked {
            // Data that repeat an ACK are no duplicate ACK (RFC 5681 section 2).
            return;
        }
        let d = &summary.delivered;
        // `tcp_ack_update_rtt`, before losses are looked for: RACK's window is a share of the least round trip.
        let rtt = self.round_trip(packet, advanced, d, now);
        let answers_older = !advanced && self.sacks_what_is_older_than_the_front(d);
        if self.state == State::Cwr && self.recovery.cwr_ends_at(self.una) {
            // What was outstanding when the echo came has arrived (`tcp_fastretrans_alert`, TCP_CA_CWR).
            self.end_reduction(now);
            self.set_state(State::Open, net);
        }
        let may_grow = self.may_grow(advanced, ece, d, now);
        let delivered = self.newly_delivered(advanced, opens, d);
        // `tcp_ack_is_dubious`
        let news = advanced || with_data || opens;
        let alert = sacked || ece || packet.has(flags::DSACK);
        let dubious = !was_open || alert || !news;
        let lost = self.find_losses(advanced, sacked, dubious, d, net.now);
        let mut ack = Ack::of(0, self.config.stack.mss, self.una, rtt);
        // Acknowledged in order; delivered at all.
        (ack.acked_bytes, ack.acked_segments) = (d.acked_bytes, d.acked_segments);
        (ack.delivered_bytes, ack.delivered_segments) = (d.bytes, delivered);
        // Linux changes the state first, then the window.
        (ack.ece, ack.may_grow) = (ece, may_grow && !self.enters_recovery());
        (ack.newly_lost, ack.prior_in_flight) = (lost, prior_in_flight);
        ack.rate = self.rates.as_mut().and_then(|r| r.sample(d, now));
        ack.maybe_delayed = !alert && ack.rate.is_some_and(|rate| self.answers_lone_runt(d, rate));
        // `tcp_cong_control` stands behind `tcp_fastretrans_alert`: who needs the state as it is then is told last.
        let settled = self.config.needs.settled_acks;
        if d.segments == 0 {
            self.note_empty_ack(now);
        } else if !settled {
            self.notify_ack(now, &ack);
        }
        (summary.news, summary.dubious) = (news, dubious);
        (summary.sacked, summary.lost, summary.newly_delivered) = (sacked, lost, delivered);
        if !self.is_undisturbed(&summary) {
            self.react(packet, &summary, net);
        }
        if settled {
            self.notify_ack(now, &ack);
        }
        // An algorithm that held segments for an ACK, or until a time, is asked anew.
        self.held_for_ack = false;
        self.gate_until = 0;
        self.restart_rto(advanced || answers_older, now);
        self.try_send(net);
        // There was no new data for F-RTO: the repair goes on with retransmissions (RFC 5682 section 2.1, step 2b).
        if self.end_frto_step() {
            self.try_send(net);
        }
        self.trace(net);
    }

    /// Losses that were found begin a recovery, where Linux judges them (`tcp_fastretrans_alert`).
    #[inline]
    fn enters_recovery(&self) -> bool {
        self.recovery.linux.is_some()
            && self.board.lost() > 0
            && (self.state != State::Loss || self.recovery.lost_again() || self.una >= self.recovery.high)
    }

    /// An ACK of nothing new tells of a larger window: no duplicate ACK (`FLAG_WIN_UPDATE`). One with news tells the window in any case
    /// (`tcp_may_update_window`).
    fn opens_window(&mut self, news: bool, window: u32) -> bool {
        // RFC 9293 section 3.10.7.4: SND.WND as the latest segment tells it.
        let opens = window > self.told_window;
        if news || opens {
            self.told_window = window;
            if let Some(offload) = &mut self.offload {
                offload.note_window(u64::from(window));
            }
        }
        opens && !news
    }

    /// Segments that this ACK tells of for the first time. Without SACK Linux takes each duplicate ACK for one (`tcp_add_reno_sack`,
    /// `tcp_remove_reno_sacks`), so that the ACK that closes a hole does not count them again.
    fn newly_delivered(&mut self, advanced: bool, opens: bool, d: &Delivered) -> u32 {
        if !self.recovery.plain {
            d.segments
        } else if advanced {
            // Duplicate ACKs told of the others before.
            d.acked_segments.saturating_sub(self.board.sacked()).max(1)
        } else if self.counts_duplicates() && !opens {
            self.assume_delivery()
        } else {
            0
        }
    }

    #[inline]
    fn may_grow(&mut self, advanced: bool, ece: bool, d: &Delivered, now: u64) -> bool {
        if !advanced {
            return false;
        }
        let mut valid = true;
        if !self.config.needs.handles_idle {
            // RFC 2861 and RFC 7661: a window that was not used does not grow.
            self.validation.note_ack(now);
            if self.validation.judges_acks() {
                let acked = d.acked_bytes as f64 / f64::from(self.config.stack.mss);
                valid = self.validation.on_ack(&self.cwv_input(now), acked);
            }
        }
        // While a timeout is repaired an echo reduces nothing, and Linux grows on (`tcp_may_raise_cwnd`).
        let repairs = self.state == State::Loss && self.una < self.recovery.high;
        let reduces = ece && !(repairs && self.recovery.linux.is_some());
        valid
            && !reduces
            && match self.state {
                State::Open | State::Disorder | State::Loss => true,
                State::Cwr => self.config.stack.grow_in_cwr,
                // Linux changes the state first (`tcp_fastretrans_alert`), then the window: the ACK that ends a recovery counts.
                State::Recovery => self.grows_after_recovery() && self.recovery.ends_at(self.una),
            }
    }

    fn grows_after_recovery(&self) -> bool {
        match self.config.stack.grow_after_recovery {
            GrowAfterRecovery::Never => false,
            GrowAfterRecovery::WithoutSack => !self.recovery.uses_sack(),
            GrowAfterRecovery::Always => true,
        }
    }

    // ---- what others see --------------------------------------------------------------------------------------------

    /// Without another message or packet it does nothing more: all is acknowledged, and no timer runs.
    pub fn is_over(&self) -> bool {
        let (at_rest, told) = (self.timer_at == u64::MAX, self.started.is_empty() && self.messages.is_empty());
        at_rest
            && told
            && matches!(self.phase, Phase::Closed | Phase::Established)
            && self.board.is_empty()
            && self.una == self.written
    }

    pub(super) fn set_state(&mut self, state: State, net: &mut Uplink<'_>) {
        self.state = state;
        self.trace(net);
    }

    /// Smoothed round trip; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }

    /// The retransmission timer in force.
    pub fn rto(&self) -> Duration {
        self.rtt.timer(&self.config.stack)
    }

    /// Timeouts so far.
    pub fn timeouts(&self) -> u32 {
        self.counters.timeouts
    }

    /// Whether the path's bytes per segment fit a packet's 16-bit length.
    pub fn fits(stack: &Stack) -> bool {
        stack.wire(stack.mss) <= Bytes::new(u64::from(u16::MAX))
    }
}
