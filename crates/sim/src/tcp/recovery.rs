//! Finding and repairing losses, and the reactions to ECN-Echo and timeouts: everything that moves the state machine.

use super::delivered::Delivered;
use super::fack::Fack;
use super::prr::Prr;
use super::rack::Rack;
use super::sender::Sender;
use super::undo::Undo;
use super::uplink::Uplink;
use crate::packet::Packet;
use crate::stack::{EcnMode, Stack};
use fanin_cc::{Cause, RecoveryKind, State};

/// What an ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    /// It acknowledged new data.
    pub advanced: bool,
    /// It acknowledged new data, came with data or opened the window: no duplicate (`FLAG_NOT_DUP`).
    pub news: bool,
    /// It may mean a loss, or the state is no longer Open (`tcp_ack_is_dubious`).
    pub dubious: bool,
    /// It reported data beyond a hole for the first time.
    pub sacked: bool,
    /// It echoed congestion.
    pub ece: bool,
    /// Segments that were declared lost because of it.
    pub lost: u32,
    /// Segments that it tells of for the first time, as the stack counts them.
    pub newly_delivered: u32,
    /// What had arrived.
    pub delivered: Delivered,
}

/// What Linux's recovery has beside the state machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Linux {
    pub prr: Prr,
    pub rack: Rack,
    pub fack: Fack,
    pub undo: Undo,
    /// Without SACK and with FACK: duplicate ACKs that mean loss, once order has been seen to break (`tp->reordering`).
    pub reordering: u32,
}

/// State of loss recovery.
#[derive(Clone, Debug)]
pub struct Recovery {
    pub(super) kind: RecoveryKind,
    /// Without SACK, duplicate ACKs stand for selective ones (`tcp_is_reno`).
    pub(super) plain: bool,
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
    pub(super) partial_acks: u32,
    /// New segments sent on the first duplicate ACKs.
    limited_sent: u32,
    /// RFC 6675's one rescue retransmission of this recovery was used.
    rescued: bool,
    /// What only Linux's recovery needs. Boxed: other connections, idle ones above all, are smaller without it.
    pub(super) linux: Option<Box<Linux>>,
    /// When the reordering timer or tail-loss probe is due, ps.
    pub timer_at: u64,
}

impl Recovery {
    /// For a connection that repairs losses this way. `own_window`: the algorithm sets its window in every state, as the kernel's
    /// `cong_control` does, so no PRR.
    pub fn new(kind: RecoveryKind, own_window: bool, stack: &Stack) -> Recovery {
        let plain = stack.dupacks_deliver && !kind.uses_sack();
        Recovery {
            kind,
            plain,
            own_window,
            ecn_end: None,
            dup_acks: 0,
            high: 0,
            recover: None,
            inflation: 0.0,
            partial_acks: 0,
            limited_sent: 0,
            rescued: false,
            linux: (kind.is_linux() || plain)
                .then(|| Box::new(Linux { reordering: stack.dup_thresh, ..Linux::default() })),
            timer_at: u64::MAX,
        }
    }

    /// Selective acknowledgements are in use.
    pub fn uses_sack(&self) -> bool {
        self.kind.uses_sack()
    }

    pub(super) fn uses_prr(&self) -> bool {
        self.linux.is_some() && !self.own_window
    }

    /// Segments declared lost may be retransmitted as the window allows.
    #[inline]
    pub fn resends(&self, state: State) -> bool {
        if self.linux.as_ref().is_some_and(|l| l.undo.tries_new_data()) {
            return false;
        }
        state == State::Loss || (state == State::Recovery && (self.uses_sack() || self.plain))
    }

    /// The window in force, packets.
    #[inline]
    pub fn allowance(&self, state: State, cwnd: f64, stack: &Stack) -> f64 {
        if state == State::Open {
            return cwnd;
        }
        match state {
            // RFC 6937: PRR says what may be in flight (`tcp_cwnd_reduction`).
            State::Recovery | State::Cwr if self.uses_prr() => self.linux.as_ref().map_or(cwnd, |l| l.prr.window()),
            // RFC 5681 section 3.2 steps 3 and 4: each duplicate ACK inflates the window by a segment.
            State::Recovery if !self.uses_sack() && !self.plain => (cwnd + self.inflation).max(1.0),
            // RFC 3042: one new segment on each of the first duplicate ACKs.
            State::Disorder if !self.uses_sack() && !self.plain && stack.limited_transmit => {
                cwnd + f64::from(self.dup_acks.min(stack.dup_thresh - 1))
            }
            State::Open | State::Disorder | State::Cwr | State::Recovery | State::Loss => cwnd,
        }
    }

    /// Whether an ACK of new data up to `una` ends a recovery.
    pub fn ends_at(&self, una: u64) -> bool {
        // RFC 6582 section 3.2 step 3: a full acknowledgement covers `recover`; RFC 5681's Reno leaves with the first new ACK.
        if self.plain { una > self.high } else { una >= self.high || self.kind == RecoveryKind::Reno }
    }

    /// Whether an ACK of new data up to `una` ends CWR. Linux waits for data beyond that window (`tcp_fastretrans_alert`), so that a
    /// connection that falls silent meanwhile goes on with what PRR left of its window.
    pub fn cwr_ends_at(&self, una: u64) -> bool {
        una > self.high || (una == self.high && self.linux.is_none())
    }

    /// Segments sent by limited transmit since the last new ACK.
    pub fn limited_transmitted(&self) -> u32 {
        self.limited_sent
    }

    /// A new segment left.
    #[inline]
    pub fn note_new_segment(&mut self, state: State) {
        if state == State::Disorder && self.dup_acks > 0 {
            self.limited_sent += 1;
        }
    }

    /// A segment left, new or not.
    pub fn note_sent(&mut self) {
        if let Some(linux) = &mut self.linux {
            linux.prr.note_sent();
        }
    }

    /// Whether an ACK of new data restarts the retransmission timer.
    pub fn restarts_timer(&self, state: State) -> bool {
        // RFC 6582 section 3.2: the impatient variant restarts the timer on the first partial ACK alone.
        !(state == State::Recovery && self.kind == RecoveryKind::NewReno && self.partial_acks > 1)
    }

    fn forget_duplicates(&mut self) {
        self.dup_acks = 0;
        self.limited_sent = 0;
    }
}

impl Sender {
    /// Updates what is known to be lost; returns how many segments were newly declared so.
    #[inline]
    pub(super) fn find_losses(&mut self, advanced: bool, sacked: bool, dubious: bool, d: &Delivered, now: u64) -> u32 {
        if advanced {
            self.recovery.forget_duplicates();
        }
        if self.recovery.plain && advanced {
            return self.take_duplicates(d);
        }
        if !self.recovery.uses_sack() {
            return 0;
        }
        if self.recovery.kind == RecoveryKind::Rack {
            return self.detect_by_time(d, dubious, now);
        }
        if self.recovery.kind == RecoveryKind::Fack {
            return self.detect_by_distance(d, advanced);
        }
        let stack = &self.config.stack;
        if sacked { self.board.detect_losses(stack.dup_thresh, stack.mss, self.config.needs.segment_sizes) } else { 0 }
    }

    /// Nothing is or was amiss: [`Self::react`] would do nothing.
    #[inline]
    pub(super) fn is_undisturbed(&self, summary: &AckSummary) -> bool {
        let AckSummary { advanced, sacked, ece, .. } = *summary;
        self.state == State::Open && advanced && !sacked && !ece && self.recovery.linux.is_none()
    }

    /// Moves the state machine after an ACK and tells congestion control.
    pub(super) fn react(&mut self, ack: &Packet, summary: &AckSummary, net: &mut Uplink<'_>) {
        let linux = self.recovery.linux.is_some();
        if summary.ece {
            self.keep_reduction();
        }
        if linux && self.undo_if_spurious(ack, summary, net) {
            return;
        }
        let mut summary = *summary;
        match self.state {
            _ if self.recovery.plain => summary.lost += self.react_without_sack(&summary, net),
            State::Open | State::Disorder | State::Cwr => self.watch_for_loss(&summary, net),
            State::Recovery => self.on_ack_in_recovery(&summary, net),
            State::Loss => {
                // All that was outstanding at the timeout is acknowledged (`tcp_process_loss`).
                if self.una >= self.recovery.high {
                    self.end_repair();
                    if self.recovery.own_window {
                        self.notify_cc(net.now, |cc, conn| cc.on_recovered(conn, None));
                    }
                    self.set_state(State::Open, net);
                    self.go_on_with(&summary, net);
                } else if self.recovery.lost_again() {
                    self.enter_recovery(net);
                }
            }
        }
        // Linux asks the state alone: a recovery may end within the window of data that was answered already.
        let new_window = linux || self.recovery.ecn_end.is_none_or(|end| self.una > end);
        if summary.ece && new_window && matches!(self.state, State::Open | State::Disorder) {
            self.reduce_for_ecn(net);
        }
        if matches!(self.state, State::Recovery | State::Cwr) && self.recovery.uses_prr() {
            self.proportional_rate(&summary);
        }
        if self.recovery.kind == RecoveryKind::Rack {
            self.end_tail_probe(ack, &summary, net);
        }
    }

    fn watch_for_loss(&mut self, summary: &AckSummary, net: &mut Uplink<'_>) {
        let AckSummary { advanced, sacked, .. } = *summary;
        let linux = self.recovery.linux.is_some();
        if !advanced {
            self.recovery.dup_acks += 1;
        }
        match self.state {
            // By `keep_open`, below.
            _ if linux => {}
            State::Open if !advanced => self.set_state(State::Disorder, net),
            State::Disorder if advanced && self.board.sacked() == 0 => self.set_state(State::Open, net),
            _ => {}
        }
        let enough = self.recovery.dup_acks >= self.config.stack.dup_thresh;
        let lost = match self.recovery.kind {
            RecoveryKind::Reno | RecoveryKind::NewReno => {
                !advanced
                    // RFC 6582 section 3.2 step 2: the third duplicate ACK, above what the last recovery covered.
                    && self.recovery.dup_acks == self.config.stack.dup_thresh
                    && self.recovery.recover.is_none_or(|r| self.una > r)
            }
            // RFC 6675 section 5 step 4: DupAcks >= DupThresh, or IsLost(HighACK + 1).
            RecoveryKind::Sack => (sacked || !advanced) && (enough || self.board.front().is_some_and(|s| s.lost)),
            // Also what was sent again and has not arrived yet (`tcp_time_to_recover`).
            RecoveryKind::Fack | RecoveryKind::Rack => self.board.lost() > 0,
        };
        if lost {
            self.enter_recovery(net);
        } else if linux && summary.dubious && !summary.ece {
            // An echo leads to CWR (`tcp_try_to_open`).
            self.keep_open(net);
        }
    }

    /// Open while nothing is out of order, lost or sent again, otherwise Disorder (`tcp_try_keep_open`).
    pub(super) fn keep_open(&mut self, net: &mut Uplink<'_>) {
        let orderly =
            self.board.sacked() == 0 && self.board.lost() == 0 && !self.board.any_retransmission_outstanding();
        let state = if orderly { State::Open } else { State::Disorder };
        if self.state != State::Cwr && self.state != state {
            self.set_state(state, net);
        }
    }

    pub(super) fn enter_recovery(&mut self, net: &mut Uplink<'_>) {
        let prior = self.control.cwnd;
        // ECN and loss in one window of data count once (RFC 3168 section 6.1.2; RFC 8257 section 3.5).
        if self.state == State::Cwr {
            self.stay_in_cwr(net);
        } else {
            self.notify_cc(net.now, |cc, conn| cc.on_congestion(conn, Cause::Loss));
            self.start_prr(prior);
            self.queue_cwr();
        }
        self.counters.fast_recoveries += 1;
        self.start_undo();
        // What ECN reduced already is not taken back (`tcp_enter_recovery`).
        if self.state == State::Cwr {
            self.keep_reduction();
        }
        // Linux's recovery that follows an ECN reduction ends with that one's window (`tcp_init_cwnd_reduction`).
        if self.recovery.linux.is_none() || self.state != State::Cwr {
            self.recovery.high = self.nxt;
        }
        if self.recovery.kind == RecoveryKind::NewReno || !self.config.stack.repeat_recovery {
            self.recovery.recover = Some(self.nxt);
        }
        // RFC 5681 section 3.2 step 3: ssthresh and the duplicates that started it.
        self.recovery.inflation = f64::from(self.recovery.dup_acks);
        self.recovery.partial_acks = 0;
        self.recovery.rescued = false;
        self.set_state(State::Recovery, net);
        self.rtt.cancel_timing();
        self.start_rto(net.now);
        match self.recovery.kind {
            // What is lost goes as the window and pacing allow (`tcp_xmit_retransmit_queue`).
            _ if self.recovery.linux.is_some() => {}
            RecoveryKind::Reno | RecoveryKind::NewReno => self.resend_front(net),
            RecoveryKind::Sack | RecoveryKind::Fack | RecoveryKind::Rack => {
                // RFC 6675 section 5 step 4.3: the first lost segment goes at once.
                if self.board.next_lost().is_none()
                    && let Some(front) = self.board.front()
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

    fn resend_front(&mut self, net: &mut Uplink<'_>) {
        if !self.board.is_empty() {
            self.resend(0, net);
        }
    }

    fn on_ack_in_recovery(&mut self, summary: &AckSummary, net: &mut Uplink<'_>) {
        let d = &summary.delivered;
        if !summary.advanced {
            self.recovery.dup_acks += 1;
            if !self.recovery.uses_sack() {
                // Step 4: a segment more for each further duplicate.
                self.recovery.inflation += 1.0;
            }
            return;
        }
        if self.recovery.ends_at(self.una) {
            self.leave_recovery(net);
            return self.go_on_with(summary, net);
        }
        if self.recovery.kind == RecoveryKind::NewReno {
            // RFC 6582 section 3.2 step 3, partial ACK: deflate by what was acknowledged, add one segment, resend the next hole.
            self.recovery.partial_acks += 1;
            let acked = if self.config.byte_window {
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

    fn leave_recovery(&mut self, net: &mut Uplink<'_>) {
        self.recovery.inflation = 0.0;
        self.recovery.forget_duplicates();
        // RFC 6582 section 3.2 step 3: no burst on the way out. NS2 (exit_recovery_fix_ 0) simply deflates.
        let limit = (self.recovery.kind == RecoveryKind::NewReno && self.config.stack.exit_to_flight)
            .then(|| self.in_flight().max(1.0) + 1.0);
        self.end_repair();
        self.notify_cc(net.now, |cc, conn| cc.on_recovered(conn, limit));
        self.end_reduction(net.now);
        self.set_state(State::Open, net);
    }

    /// The ACK that ended a repair is judged like any: what is lost beyond that window of data begins the next (`tcp_fastretrans_alert`).
    fn go_on_with(&mut self, summary: &AckSummary, net: &mut Uplink<'_>) {
        if !self.recovery.kind.is_linux() {
            return;
        }
        if self.board.sacked() > 0 {
            self.set_state(State::Disorder, net);
        }
        self.watch_for_loss(summary, net);
    }

    fn reduce_for_ecn(&mut self, net: &mut Uplink<'_>) {
        let prior = self.control.cwnd;
        self.notify_cc(net.now, |cc, conn| cc.on_congestion(conn, Cause::Ecn));
        self.counters.ecn_reductions += 1;
        self.forget_undo();
        // RFC 3168 section 6.1.2: at most one reduction per window of data.
        self.recovery.high = self.nxt;
        self.recovery.ecn_end = Some(self.nxt);
        self.start_prr(prior);
        self.request_cwr();
        self.set_state(State::Cwr, net);
    }

    /// Linux says with the next new segment that the window was reduced, whatever reduced it (`tcp_ecn_queue_cwr`).
    fn queue_cwr(&mut self) {
        if self.recovery.linux.is_some() && self.config.stack.ecn != EcnMode::Off {
            self.request_cwr();
        }
    }

    /// A retransmission timeout: go back to the first unacknowledged segment and slow-start.
    pub(super) fn on_rto(&mut self, repeated: bool, net: &mut Uplink<'_>) {
        // Linux reduces once for a recovery and the timeout that ends it (`tcp_enter_loss`).
        let within = matches!(self.state, State::Cwr | State::Recovery) && self.una < self.recovery.high;
        let reduced = repeated || (self.recovery.linux.is_some() && within);
        let settled = self.config.needs.settled_acks;
        if !settled {
            self.notify_cc(net.now, |cc, conn| cc.on_congestion(conn, Cause::Timeout { repeated: reduced }));
        }
        if self.recovery.linux.is_some() {
            self.linux_times_out(repeated, reduced, net.now);
        } else {
            // RFC 6675 section 5.1, RFC 5681 section 3.1: after a timeout all that is outstanding counts as lost.
            self.board.lose_all();
        }
        if settled {
            self.notify_cc(net.now, |cc, conn| cc.on_congestion(conn, Cause::Timeout { repeated: reduced }));
        }
        if self.recovery.linux.is_some() {
            self.set_cwnd_after_rto(net.now);
            self.queue_cwr();
        }
        self.recovery.forget_duplicates();
        self.recovery.inflation = 0.0;
        self.recovery.high = self.nxt;
        self.recovery.recover = Some(self.nxt);
        self.recovery.timer_at = u64::MAX;
        self.set_state(State::Loss, net);
        if self.board.pipe() > 0 {
            // What is not given up fills the window of one; the first segment goes all the same (`tcp_retransmit_timer`).
            self.resend_front(net);
        }
    }

    /// RFC 6675 NextSeg rules 3 and 4, once nothing known lost and nothing new may leave. Linux 3.2 had the first (`tcp_can_forward_retransmit`).
    pub(super) fn resend_in_doubt(&mut self, net: &mut Uplink<'_>) -> bool {
        if self.state != State::Recovery || !matches!(self.recovery.kind, RecoveryKind::Sack | RecoveryKind::Fack) {
            return false;
        }
        let full = self.config.stack.mss;
        if !self.window_has_room(full) {
            return false;
        }
        // Rule 3: a hole below the highest SACK, lost or not.
        if let Some(index) = self.board.next_hole() {
            self.resend(index, net);
            return true;
        }
        // Rule 4: once per recovery the highest outstanding segment.
        if !self.recovery.rescued && self.recovery.kind == RecoveryKind::Sack {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_stays_in_cwr_until_data_beyond_its_window_is_acknowledged() {
        let ends = |kind, una| Recovery { high: 1000, ..Recovery::new(kind, false, &Stack::rfc()) }.cwr_ends_at(una);
        assert_eq!([999, 1000, 1001].map(|una| ends(RecoveryKind::Rack, una)), [false, false, true]);
        assert_eq!([999, 1000, 1001].map(|una| ends(RecoveryKind::Sack, una)), [false, true, true]);
    }
}
