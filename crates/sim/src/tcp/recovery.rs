//! Finding and repairing losses, and the reactions to ECN-Echo and timeouts: everything that moves the state machine.

use super::scoreboard::Delivered;
use super::sender::Sender;
use crate::net::Net;
use crate::packet::{Packet, flags};
use crate::stack::Stack;
use fanin_cc::{Cause, Flavour, RecoveryKind, State};

/// Linux's least timer, `TCP_TIMEOUT_MIN_US`: 2 ms.
const PROBE_TIMEOUT_MIN_PS: u64 = 2_000_000_000;

/// State of loss recovery.
#[derive(Clone, Debug)]
pub struct Recovery {
    kind: RecoveryKind,
    own_window: bool,
    /// End of the window of data that an ECN reduction answered: only an ACK beyond it can tell of new congestion.
    ecn_end: Option<u64>,
    dup_acks: u32,
    /// Recovery, CWR and loss repair end when this byte is acknowledged. Set when they start.
    pub high: u64,
    /// RFC 6582's `recover`, set by a recovery or a timeout: duplicate ACKs start a recovery only above it.
    recover: Option<u64>,
    /// NewReno's temporary inflation of the window, packets.
    inflation: f64,
    /// Partial ACKs seen in this recovery.
    partial_acks: u32,
    /// New segments sent on the first duplicate ACKs.
    limited_sent: u32,
    /// RFC 6675's one rescue retransmission of this recovery was used.
    rescued: bool,
    /// PRR and RACK, for the connections that use them.
    linux: Option<Box<Linux>>,
    /// When the reordering timer or tail-loss probe is due, ps.
    pub timer_at: u64,
}

/// What only Linux's recovery needs. Boxed: other connections, idle ones above all, are smaller without it.
#[derive(Clone, Copy, Debug, Default)]
struct Linux {
    prr: Prr,
    rack: Rack,
}

/// Proportional rate reduction (RFC 6937), packets.
#[derive(Clone, Copy, Debug, Default)]
struct Prr {
    prior_cwnd: f64,
    ssthresh: f64,
    delivered: f64,
    out: f64,
    /// What may be outstanding now.
    window: f64,
}

/// RACK-TLP (RFC 8985).
#[derive(Clone, Copy, Debug, Default)]
struct Rack {
    /// Transmission time and end of the most recently sent segment that was delivered, and its round trip.
    sent_at: u64,
    end: u64,
    rtt: u64,
    /// A tail-loss probe is out: `high` when it was sent.
    probe_end: Option<u64>,
    /// The pending timer is a tail-loss probe, not the reordering timer.
    is_probe: bool,
}

impl Recovery {
    /// For a connection that repairs losses this way. `own_window`: the algorithm sets its window in every state, as the kernel's
    /// `cong_control` does, so no PRR.
    pub fn new(kind: RecoveryKind, own_window: bool) -> Recovery {
        Recovery {
            kind,
            own_window,
            ecn_end: None,
            dup_acks: 0,
            high: 0,
            recover: None,
            inflation: 0.0,
            partial_acks: 0,
            limited_sent: 0,
            rescued: false,
            linux: (kind == RecoveryKind::Rack).then(Box::default),
            timer_at: u64::MAX,
        }
    }

    /// Selective acknowledgements are in use.
    pub fn uses_sack(&self) -> bool {
        self.kind.uses_sack()
    }

    fn uses_prr(&self) -> bool {
        self.kind == RecoveryKind::Rack && !self.own_window
    }

    /// Segments declared lost may be retransmitted as the window allows.
    pub fn resends(&self, state: State) -> bool {
        state == State::Loss || (state == State::Recovery && self.uses_sack())
    }

    /// The window in force, packets.
    pub fn allowance(&self, state: State, cwnd: f64, stack: &Stack) -> f64 {
        match state {
            State::Recovery | State::Cwr if self.uses_prr() => self.linux.as_ref().map_or(cwnd, |l| l.prr.window),
            State::Recovery if !self.uses_sack() => (cwnd + self.inflation).max(1.0),
            State::Disorder if !self.uses_sack() && stack.limited_transmit => {
                cwnd + f64::from(self.dup_acks.min(stack.dup_thresh - 1))
            }
            State::Open | State::Disorder | State::Cwr | State::Recovery | State::Loss => cwnd,
        }
    }

    /// Segments sent by limited transmit since the last new ACK.
    pub fn limited_transmitted(&self) -> u32 {
        self.limited_sent
    }

    /// A new segment left.
    pub fn note_new_segment(&mut self, state: State) {
        if state == State::Disorder && self.dup_acks > 0 && !self.uses_sack() {
            self.limited_sent += 1;
        }
    }

    /// A segment left, new or not.
    pub fn note_sent(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.prr.out += 1.0;
        }
    }

    /// Whether an ACK of new data restarts the retransmission timer.
    pub fn restarts_timer(&self, state: State) -> bool {
        !(state == State::Recovery && self.kind == RecoveryKind::NewReno && self.partial_acks > 1)
    }

    /// RACK's state. Only connections that use it ask.
    fn rack(&mut self) -> &mut Rack {
        &mut self.linux.get_or_insert_default().rack
    }

    fn forget_duplicates(&mut self) {
        self.dup_acks = 0;
        self.limited_sent = 0;
    }
}

impl Sender {
    /// Updates what is known to be lost; returns how many segments were newly declared so.
    pub(super) fn find_losses(&mut self, advanced: bool, sacked: bool, d: &Delivered, net: &mut Net) -> u32 {
        if advanced {
            self.recovery.forget_duplicates();
        }
        if !self.recovery.uses_sack() {
            return 0;
        }
        let stack = &self.config.stack;
        let mut lost = 0;
        if sacked {
            lost += self.board.detect_losses(stack.dup_thresh, stack.mss, self.config.needs.segment_sizes);
        }
        if self.recovery.kind == RecoveryKind::Rack {
            lost += self.detect_by_time(d, net.now);
        }
        lost
    }

    /// Moves the state machine after an ACK and tells congestion control.
    pub(super) fn react(
        &mut self,
        ack: &Packet,
        advanced: bool,
        ece: bool,
        sacked: bool,
        d: &Delivered,
        net: &mut Net,
    ) {
        match self.state {
            State::Open | State::Disorder | State::Cwr => self.watch_for_loss(advanced, sacked, net),
            State::Recovery => self.on_ack_in_recovery(advanced, d, net),
            State::Loss => {
                if self.una >= self.recovery.high {
                    self.set_state(State::Open, net);
                }
            }
        }
        let new_window = self.recovery.ecn_end.is_none_or(|end| self.una > end);
        if ece && new_window && matches!(self.state, State::Open | State::Disorder) {
            self.reduce_for_ecn(net);
        }
        if matches!(self.state, State::Recovery | State::Cwr) && self.recovery.uses_prr() {
            self.proportional_rate(advanced, d);
        }
        if self.recovery.kind == RecoveryKind::Rack {
            self.end_tail_probe(ack);
        }
    }

    fn watch_for_loss(&mut self, advanced: bool, sacked: bool, net: &mut Net) {
        if advanced {
            if self.state == State::Disorder && self.board.sacked() == 0 {
                self.set_state(State::Open, net);
            }
        } else {
            self.recovery.dup_acks += 1;
            if self.state == State::Open {
                self.set_state(State::Disorder, net);
            }
        }
        let enough = self.recovery.dup_acks >= self.config.stack.dup_thresh;
        let lost = match self.recovery.kind {
            RecoveryKind::Reno | RecoveryKind::NewReno => {
                !advanced
                    && self.recovery.dup_acks == self.config.stack.dup_thresh
                    && self.recovery.recover.is_none_or(|r| self.una > r)
            }
            RecoveryKind::Sack => (sacked || !advanced) && (enough || self.board.front().is_some_and(|s| s.lost)),
            RecoveryKind::Rack => self.board.pending() > 0 || (sacked && enough && self.board.sacked() >= 3),
        };
        if lost {
            self.enter_recovery(net);
        }
    }

    fn enter_recovery(&mut self, net: &mut Net) {
        let stack_prior = self.control.cwnd;
        // ECN and loss in one window of data count once (RFC 3168 section 6.1.2; RFC 8257 section 3.5).
        if self.state != State::Cwr {
            self.tell(net.now, |cc, conn| cc.on_congestion(conn, Cause::Loss));
            self.start_prr(stack_prior);
        }
        self.counters.fast_recoveries += 1;
        self.recovery.high = self.nxt;
        if self.recovery.kind == RecoveryKind::NewReno {
            self.recovery.recover = Some(self.nxt);
        }
        self.recovery.inflation = f64::from(self.recovery.dup_acks);
        self.recovery.partial_acks = 0;
        self.recovery.rescued = false;
        self.set_state(State::Recovery, net);
        self.start_rto(net.now);
        match self.recovery.kind {
            RecoveryKind::Reno | RecoveryKind::NewReno => self.resend_front(net),
            RecoveryKind::Sack | RecoveryKind::Rack => {
                // RFC 6675 section 5 step 4.3: the first lost segment goes at once.
                if self.board.next_lost().is_none()
                    && let Some(front) = self.board.front().copied()
                    && !front.sacked
                    && !front.retransmitted
                {
                    self.board.lose(0);
                }
                if let Some(index) = self.board.next_lost() {
                    self.resend(index, net);
                }
            }
        }
    }

    fn resend_front(&mut self, net: &mut Net) {
        if !self.board.is_empty() {
            self.resend(0, net);
        }
    }

    fn on_ack_in_recovery(&mut self, advanced: bool, d: &Delivered, net: &mut Net) {
        if !advanced {
            self.recovery.dup_acks += 1;
            if !self.recovery.uses_sack() {
                self.recovery.inflation += 1.0;
            }
            return;
        }
        let done = self.una >= self.recovery.high || self.recovery.kind == RecoveryKind::Reno;
        if done {
            return self.leave_recovery(net);
        }
        if self.recovery.kind == RecoveryKind::NewReno {
            // RFC 6582 section 3.2 step 3, partial ACK: deflate by what was acknowledged, add one segment, resend the next hole.
            self.recovery.partial_acks += 1;
            let acked = if self.window_is_bytes() {
                d.acked_bytes as f64 / f64::from(self.config.stack.mss)
            } else {
                f64::from(d.acked_segments)
            };
            let cwnd = self.control.cwnd;
            let deflated = self.recovery.inflation - acked + if acked >= 1.0 { 1.0 } else { 0.0 };
            self.recovery.inflation = deflated.max(1.0 - cwnd);
            self.resend_front(net);
        }
    }

    fn leave_recovery(&mut self, net: &mut Net) {
        self.recovery.inflation = 0.0;
        self.recovery.forget_duplicates();
        // RFC 6582 section 3.2 step 3: no burst on the way out. NS2 (exit_recovery_fix_ 0) simply deflates.
        let limit = (self.recovery.kind == RecoveryKind::NewReno && self.config.stack.flavour != Flavour::Ns2)
            .then(|| self.in_flight().max(1.0) + 1.0);
        self.tell(net.now, |cc, conn| cc.on_recovered(conn, limit));
        self.set_state(State::Open, net);
    }

    fn reduce_for_ecn(&mut self, net: &mut Net) {
        let prior = self.control.cwnd;
        self.tell(net.now, |cc, conn| cc.on_congestion(conn, Cause::Ecn));
        self.counters.ecn_reductions += 1;
        self.recovery.high = self.nxt;
        self.recovery.ecn_end = Some(self.nxt);
        self.start_prr(prior);
        self.request_cwr();
        self.set_state(State::Cwr, net);
    }

    /// A retransmission timeout: go back to the first unacknowledged segment and slow-start.
    pub(super) fn time_out(&mut self, repeated: bool, net: &mut Net) {
        self.tell(net.now, |cc, conn| cc.on_congestion(conn, Cause::Timeout { repeated }));
        self.board.lose_all();
        self.recovery.forget_duplicates();
        self.recovery.inflation = 0.0;
        self.recovery.high = self.nxt;
        self.recovery.recover = Some(self.nxt);
        self.recovery.timer_at = u64::MAX;
        if let Some(linux) = &mut self.recovery.linux {
            linux.rack.probe_end = None;
        }
        self.set_state(State::Loss, net);
    }

    /// RFC 6675 NextSeg rules 3 and 4, once nothing known lost and nothing new may leave.
    pub(super) fn resend_in_doubt(&mut self, net: &mut Net) -> bool {
        if self.state != State::Recovery || self.recovery.kind != RecoveryKind::Sack {
            return false;
        }
        let full = self.config.stack.mss;
        if !self.window_has_room(full) {
            return false;
        }
        if let Some(index) = self.board.next_hole() {
            self.resend(index, net);
            return true;
        }
        if !self.recovery.rescued {
            self.recovery.rescued = true;
            if let Some(index) = self.board.highest_unsacked_below(self.recovery.high)
                && !self.board.get(index).retransmitted
            {
                self.resend(index, net);
                return true;
            }
        }
        false
    }

    // ---- proportional rate reduction --------------------------------------------------------------------------------

    fn start_prr(&mut self, prior_cwnd: f64) {
        let ssthresh = self.control.ssthresh.min(self.control.cwnd);
        let window = self.in_flight().max(1.0);
        let Some(linux) = &mut self.recovery.linux else { return };
        linux.prr = Prr { prior_cwnd: prior_cwnd.max(1.0), ssthresh, delivered: 0.0, out: 0.0, window };
    }

    /// RFC 6937 as `tcp_cwnd_reduction` has it: sndcnt for this ACK, on top of what is in flight.
    fn proportional_rate(&mut self, advanced: bool, d: &Delivered) {
        if d.segments == 0 {
            return;
        }
        let in_flight = self.in_flight();
        let newly_lost = self.board.pending() > 0;
        let Some(linux) = &mut self.recovery.linux else { return };
        let p = &mut linux.prr;
        p.delivered += f64::from(d.segments);
        let delta = p.ssthresh - in_flight;
        let mut allowed = if delta < 0.0 {
            (p.ssthresh * p.delivered / p.prior_cwnd).ceil() - p.out
        } else {
            let bonus = if advanced && !newly_lost { 1.0 } else { 0.0 };
            delta.min((p.delivered - p.out).max(f64::from(d.segments)) + bonus)
        };
        allowed = allowed.max(if p.out == 0.0 { 1.0 } else { 0.0 });
        p.window = in_flight + allowed;
    }

    // ---- RACK-TLP (RFC 8985) ----------------------------------------------------------------------------------------

    /// A segment is lost when one sent later was delivered and a reordering window has passed.
    fn detect_by_time(&mut self, d: &Delivered, now: u64) -> u32 {
        if let Some(newest) = d.newest {
            let rack = self.recovery.rack();
            let rtt = now - newest.sent_at;
            // A retransmission acknowledged sooner than any round trip was spurious: not evidence (section 6.2 step 2). With few samples
            // the least one still holds both hosts' jitter.
            let least = self.rtt.min() - self.config.stack.send_jitter * 2;
            let believable = !newest.ever_retransmitted || rtt >= least.ps();
            if believable && (newest.sent_at, newest.end()) > (rack.sent_at, rack.end) {
                rack.sent_at = newest.sent_at;
                rack.end = newest.end();
                rack.rtt = rtt;
            }
        }
        self.lose_by_time(now)
    }

    fn lose_by_time(&mut self, now: u64) -> u32 {
        let rack = *self.recovery.rack();
        if rack.sent_at == 0 && rack.end == 0 {
            return 0;
        }
        // No reordering has been seen: no window once the duplicate threshold is reached or recovery is under way (section 6.2 step 4).
        let eager = self.state == State::Recovery
            || self.state == State::Loss
            || self.board.sacked() >= self.config.stack.dup_thresh;
        let reorder = if eager { 0 } else { (self.rtt.min().ps() / 4).min(self.rtt.srtt().ps()) };
        let mut lost = 0;
        let mut wait = 0;
        for index in 0..self.board.outstanding() as usize {
            let s = *self.board.get(index);
            if s.sacked || (s.lost && !s.retransmitted) {
                continue;
            }
            if (s.sent_at, s.end()) >= (rack.sent_at, rack.end) {
                if !s.retransmitted {
                    // Later segments were sent later still.
                    break;
                }
                continue;
            }
            let due = s.sent_at + rack.rtt + reorder;
            if due <= now {
                lost += u32::from(self.board.lose(index));
            } else {
                wait = wait.max(due - now);
            }
        }
        if wait > 0 {
            self.recovery.timer_at = now + wait;
            self.recovery.rack().is_probe = false;
        } else if !self.recovery.rack().is_probe {
            self.recovery.timer_at = u64::MAX;
        }
        lost
    }

    /// The reordering timer or the tail-loss probe is due.
    pub(super) fn on_recovery_timer(&mut self, net: &mut Net) {
        if self.recovery.timer_at > net.now {
            return;
        }
        self.recovery.timer_at = u64::MAX;
        if self.board.is_empty() {
            return;
        }
        if !self.recovery.rack().is_probe {
            if self.lose_by_time(net.now) > 0 && !matches!(self.state, State::Recovery | State::Loss) {
                self.enter_recovery(net);
            }
            return;
        }
        // Section 7.3: a new segment if there is one and the receiver allows it, else the last one again.
        self.recovery.rack().is_probe = false;
        self.recovery.rack().probe_end = Some(self.nxt);
        self.counters.tail_probes += 1;
        if !self.probe_with_new_data(net) {
            let last = self.board.outstanding() as usize - 1;
            self.resend(last, net);
        }
        self.start_rto(net.now);
    }

    /// Arms the probe after two round trips without an answer (section 7.2).
    pub(super) fn schedule_tail_probe(&mut self, net: &mut Net) {
        self.note_app_limited();
        if self.recovery.kind != RecoveryKind::Rack {
            return;
        }
        let idle = self.board.is_empty()
            || !matches!(self.state, State::Open | State::Cwr)
            || self.recovery.rack().probe_end.is_some()
            || self.board.sacked() > 0;
        if idle {
            if self.recovery.rack().is_probe {
                self.recovery.rack().is_probe = false;
                self.recovery.timer_at = u64::MAX;
            }
            return;
        }
        if self.recovery.timer_at != u64::MAX && !self.recovery.rack().is_probe {
            return;
        }
        let srtt = self.rtt.srtt().ps();
        let stack = &self.config.stack;
        let wait = if srtt == 0 {
            stack.initial_rto.ps()
        } else if self.board.outstanding() == 1 {
            // A lone segment's ACK may be delayed: Linux waits its RTO floor on top.
            2 * srtt + stack.min_rto.ps()
        } else {
            2 * srtt + PROBE_TIMEOUT_MIN_PS
        };
        let last_sent = self.board.back().map_or(net.now, |s| s.sent_at);
        self.recovery.timer_at = (last_sent + wait).max(net.now + 1).min(self.rto_at);
        self.recovery.rack().is_probe = true;
    }

    /// Section 7.4: an ACK of the probe ends the episode; a probe that repaired a loss costs one reduction.
    fn end_tail_probe(&mut self, ack: &Packet) {
        if let Some(end) = self.recovery.rack().probe_end
            && (self.una >= end || ack.has(flags::DSACK))
        {
            self.recovery.rack().probe_end = None;
        }
    }
}
