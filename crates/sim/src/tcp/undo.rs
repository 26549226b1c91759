//! Taking back a reduction that turns out to have been a mistake: D-SACK (RFC 2883, 3708), Eifel (RFC 3522), F-RTO (RFC 5682).

use super::recovery::AckSummary;
use super::rtt::ticked;
use super::sender::Sender;
use super::uplink::Uplink;
use crate::packet::{Packet, TICK_PS, flags};
use fanin_cc::{RecoveryKind, State, Window};
use fanin_units::Duration;

/// What is known of the last reduction by loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    frto: Frto,
    /// Since the last reduction by loss: can it be taken back?
    state: Option<UndoState>,
}

/// F-RTO.
#[derive(Clone, Copy, Debug, Default)]
struct Frto {
    active: bool,
    /// This ACK lets new data out instead of retransmissions.
    tries_new_data: bool,
}

/// Retransmissions since a reduction (the kernel's `undo_marker`, `undo_retrans`).
#[derive(Clone, Copy, Debug, Default)]
struct UndoState {
    sent: u32,
    /// Not reported as duplicates.
    needed: u32,
    /// When the first of them left, ps.
    first_at: u64,
    /// The window comes back, too (the kernel's `prior_ssthresh` is not 0).
    restores: bool,
}

impl UndoState {
    /// Every retransmission was reported as a duplicate.
    fn all_were_duplicates(&self) -> bool {
        self.sent > 0 && self.needed == 0
    }
}

impl Undo {
    /// F-RTO lets new data out instead of retransmissions.
    pub fn tries_new_data(&self) -> bool {
        self.frto.tries_new_data
    }
}

impl Sender {
    /// A reduction by loss begins: retransmissions from here on are counted (`tcp_init_undo`).
    pub(super) fn start_undo(&mut self) {
        if let Some(linux) = &mut self.recovery.linux {
            linux.undo.state = Some(UndoState { restores: true, ..UndoState::default() });
            linux.rack.forget_probe();
        }
    }

    /// Congestion was echoed: the window stays reduced, whatever retransmissions turn out to be (`tcp_fastretrans_alert`, step A).
    pub(super) fn keep_reduction(&mut self) {
        if let Some(state) = self.recovery.linux.as_mut().and_then(|l| l.undo.state.as_mut()) {
            state.restores = false;
        }
    }

    /// A reduction that nothing takes back.
    pub(super) fn forget_undo(&mut self) {
        if let Some(linux) = &mut self.recovery.linux {
            linux.undo.state = None;
            linux.rack.forget_probe();
        }
    }

    /// A timeout: what was sent less than a round trip ago is not given up (`tcp_timeout_mark_lost`), and F-RTO may find out that nothing
    /// was lost, unless the timeout ended a recovery (`tcp_enter_loss`).
    pub(super) fn linux_times_out(&mut self, repeated: bool, reduced: bool, now: u64) {
        // `tcp_enter_loss`: not within a repair, but for the same segment again.
        let first = !matches!(self.state, State::Recovery | State::Loss);
        // In the order of `tcp_enter_loss`: without SACK there are no duplicates left to count.
        self.board.forget_assumed();
        self.narrow_reordering();
        if !reduced {
            self.start_undo();
        }
        let Some(linux) = &mut self.recovery.linux else { return };
        linux.rack.forget_probe();
        linux.undo.frto = Frto { active: first || repeated, tries_new_data: false };
        let rtt = linux.rack.rtt();
        // `tcp_rack_skb_timeout` with no reordering window: RACK.rtt - age > 0 is too young to be lost.
        self.board.lose_older_than(ticked(now).saturating_sub(rtt));
    }

    /// Linux's timeout leaves a window of one more than what it has not given up, so that the repair does not wait for that (`tcp_enter_loss`).
    pub(super) fn set_cwnd_after_rto(&mut self, now: u64) {
        // tcp_enter_loss: snd_cwnd = tcp_packets_in_flight + 1.
        let out = self.in_flight();
        if out > 0.0 {
            let window = Window { cwnd: out + 1.0, ssthresh: self.control.ssthresh };
            self.notify_cc(now, |cc, conn| cc.on_restart(conn, Duration::ZERO, window));
        }
    }

    /// A segment was sent again.
    pub(super) fn note_retransmission(&mut self, now: u64) {
        if let Some(state) = self.recovery.linux.as_mut().and_then(|l| l.undo.state.as_mut()) {
            if state.sent == 0 {
                state.first_at = now;
            }
            state.sent += 1;
            // `undo_retrans`: a DSACK takes one away.
            state.needed += 1;
        }
    }

    /// The receiver had this data already: a retransmission was not needed (RFC 2883), and the reordering window was too small.
    pub(super) fn note_duplicate(&mut self) {
        let (una, nxt) = (self.una, self.nxt);
        let Some(linux) = &mut self.recovery.linux else { return };
        if !linux.rack.note_duplicate(una, nxt) {
            return;
        }
        if let Some(state) = &mut linux.undo.state {
            state.needed = state.needed.saturating_sub(1);
        }
    }

    /// An ACK after everything was acknowledged: the answer to a retransmission that was not needed (`tcp_ack`, label no_queue).
    pub(super) fn hear_of_what_was_needless(&mut self, ack: &Packet, news: bool, net: &mut Uplink<'_>) {
        if self.recovery.linux.is_none() {
            return;
        }
        let duplicate = ack.has(flags::DSACK);
        if duplicate {
            self.undo_if_spurious(ack, &AckSummary::default(), net);
        }
        self.forget_probe(duplicate || !news);
    }

    /// Takes the last reduction back if this ACK shows that there was no loss; true if that ends recovery and nothing else is to be done.
    pub(super) fn undo_if_spurious(&mut self, ack: &Packet, summary: &AckSummary, net: &mut Uplink<'_>) -> bool {
        match self.state {
            State::Open | State::Disorder => {
                // `tcp_try_undo_dsack`: the window comes back though the recovery is over.
                if self.all_were_duplicates() {
                    self.undo(net.now);
                }
                false
            }
            State::Cwr => false,
            State::Recovery => {
                let partial = summary.advanced && self.una < self.recovery.high;
                // The answer to an original came back: the rest is under way too, once no retransmission is (`tcp_try_undo_partial`).
                let delayed = partial && self.answers_original(ack);
                if delayed && self.board.any_retransmission_outstanding() {
                    return true;
                }
                let spurious = delayed || self.all_were_duplicates();
                if spurious {
                    if delayed && self.recovery.kind == RecoveryKind::Fack {
                        // Sent again, and not lost: it was overtaken by all that is known to have arrived.
                        let by = u64::from(self.board.forward() + summary.delivered.acked_segments);
                        self.recovery.linux.iter_mut().for_each(|linux| linux.note_overtaken(by));
                    }
                    self.undo(net.now);
                    if delayed {
                        self.board.find_all();
                    }
                    self.set_state(State::Open, net);
                }
                spurious
            }
            State::Loss => {
                // `tcp_try_undo_loss`.
                let spurious = summary.advanced && (self.all_were_duplicates() || self.answers_original(ack));
                if spurious || self.frto_finds_original(summary) {
                    self.undo(net.now);
                    self.board.find_all();
                    self.set_state(State::Open, net);
                    return true;
                }
                false
            }
        }
    }

    /// RFC 5682 as `tcp_process_loss` has it; true if something was delivered that was sent before the timeout and not again.
    fn frto_finds_original(&mut self, summary: &AckSummary) -> bool {
        let (una, nxt, high) = (self.una, self.nxt, self.recovery.high);
        let has_new = self.unsent() > 0 && self.nxt < self.edge;
        let Some(linux) = &mut self.recovery.linux else { return false };
        if !linux.undo.frto.active {
            return false;
        }
        // Step 3b: sent before the timeout, once, and delivered now: the timeout was spurious.
        if summary.delivered.lowest_original <= high {
            return true;
        }
        // RFC 5682 section 3.1, step 3: new data has left; a duplicate ACK means that segments were lost after all.
        if nxt > high {
            if summary.sacked || !summary.advanced {
                linux.undo.frto.active = false;
            }
        // Step 2b: the first ACK after the timeout advanced, and not beyond all: two new segments go out instead of retransmissions.
        } else if summary.advanced && una < high {
            linux.undo.frto.tries_new_data = has_new;
            linux.undo.frto.active = has_new;
        }
        false
    }

    /// After sending: F-RTO's new data has left, or there was no room for any.
    pub(super) fn end_frto_step(&mut self) -> bool {
        let sent = self.nxt > self.recovery.high;
        let Some(linux) = &mut self.recovery.linux else { return false };
        if !std::mem::take(&mut linux.undo.frto.tries_new_data) {
            return false;
        }
        linux.undo.frto.active = sent;
        !sent
    }

    /// A recovery or timeout's repair ended without a sign of a mistake.
    pub(super) fn end_repair(&mut self) {
        if let Some(linux) = &mut self.recovery.linux {
            linux.rack.note_recovered();
        }
    }

    fn all_were_duplicates(&self) -> bool {
        self.recovery.linux.as_ref().and_then(|l| l.undo.state).is_some_and(|e| e.all_were_duplicates())
    }

    /// Eifel: the echoed timestamp is older than the first retransmission (`tcp_packet_delayed`), as far as Linux's clock can tell.
    fn answers_original(&self, ack: &Packet) -> bool {
        self.config.stack.timestamps
            && self
                .recovery
                .linux
                .as_ref()
                .and_then(|l| l.undo.state)
                .is_some_and(|e| e.sent > 0 && ack.timestamp / TICK_PS < e.first_at / TICK_PS)
    }

    fn undo(&mut self, now: u64) {
        let Some(linux) = &mut self.recovery.linux else { return };
        // `undo_marker` is cleared: a reduction is taken back once.
        let restores = linux.undo.state.take().is_some_and(|state| state.restores);
        linux.undo.frto = Frto::default();
        linux.rack.look_again();
        self.counters.undos += 1;
        if restores {
            // `tcp_ecn_withdraw_cwr`
            self.cwr_pending = false;
            self.notify_cc(now, |cc, conn| cc.on_undo(conn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduction_was_a_mistake_once_every_retransmission_was_a_duplicate() {
        let mut state = UndoState { sent: 2, needed: 2, ..UndoState::default() };
        assert!(!state.all_were_duplicates());
        state.needed -= 1;
        assert!(!state.all_were_duplicates());
        state.needed -= 1;
        assert!(state.all_were_duplicates());
        assert!(!UndoState::default().all_were_duplicates(), "nothing was sent again");
    }
}
