//! Linux's recovery of a connection without SACK: duplicate ACKs stand for selective ones of segments unknown, the first segment is lost
//! when there are enough of them, and proportional rate reduction sends.
//!
//! *Source*: `tcp_input.c` (`tcp_fastretrans_alert` with `tcp_is_reno`, `tcp_add_reno_sack`, `tcp_remove_reno_sacks`,
//! `tcp_check_reno_reordering`, `tcp_is_non_sack_preventing_reopen`), `tcp_recovery.c` (`tcp_newreno_mark_lost`).

use super::delivered::Delivered;
use super::recovery::AckSummary;
use super::sender::Sender;
use super::uplink::Uplink;
use fanin_cc::State;

/// `tcp_max_reordering`.
pub(super) const MOST_REORDERING: u32 = 300;

impl Sender {
    /// Data were acknowledged: one segment closed the hole, duplicate ACKs told of the others before.
    pub(super) fn take_duplicates(&mut self, d: &Delivered) -> u32 {
        // `tcp_remove_reno_sacks`: one ACK closed the hole, so sacked_out falls by acked - 1; then the check of order.
        if !self.board.take_assumed(d.acked_segments) {
            self.widen_reordering(d.acked_segments);
        }
        0
    }

    /// A duplicate ACK; how many segments it tells of (`tcp_add_reno_sack`).
    pub(super) fn assume_delivery(&mut self) -> u32 {
        let before = self.board.sacked();
        if !self.board.assume_delivered() {
            self.widen_reordering(0);
        }
        self.board.sacked().saturating_sub(before)
    }

    /// More duplicate ACKs than segments that can have left: they came out of order (`tcp_check_reno_reordering`).
    fn widen_reordering(&mut self, acked: u32) {
        // min(packets_out + acked, sysctl_tcp_max_reordering).
        let reordering = (self.board.outstanding() + acked).min(MOST_REORDERING);
        if let Some(linux) = &mut self.recovery.linux {
            linux.reordering = reordering;
        }
    }

    /// A timeout after many duplicate ACKs: they were not out of order after all (`tcp_enter_loss`).
    pub(super) fn narrow_reordering(&mut self) {
        let enough = self.config.stack.dup_thresh;
        let disorderly = matches!(self.state, State::Open | State::Disorder) && self.board.sacked() >= enough;
        if let Some(linux) = self.recovery.linux.as_mut().filter(|_| disorderly) {
            linux.reordering = linux.reordering.min(enough);
        }
    }

    /// Whether a duplicate ACK counts as a delivery in this state (`tcp_fastretrans_alert`, `tcp_process_loss`).
    pub(super) fn counts_duplicates(&self) -> bool {
        match self.state {
            State::Open | State::Disorder | State::Cwr => true,
            // The window of data is repaired, and nothing beyond it acknowledged: the state is held.
            State::Recovery => self.una < self.recovery.high,
            // `tcp_process_loss`: once F-RTO has sent new data a duplicate ACK means that some of these arrived.
            State::Loss => self.una < self.recovery.high && self.nxt > self.recovery.high,
        }
    }

    /// The state machine; `summary` has the delivery of a duplicate ACK already. How many segments it declares lost: an ACK that finds the next
    /// hole lets no segment more out than it delivers (`tcp_cwnd_reduction`).
    pub(super) fn react_without_sack(&mut self, summary: &AckSummary, net: &mut Uplink<'_>) -> u32 {
        let mut lost = 0;
        match self.state {
            State::Open | State::Disorder | State::Cwr => {
                let linux = self.recovery.linux.as_ref();
                let enough = linux.map_or(self.config.stack.dup_thresh, |l| l.reordering);
                // `tcp_fastretrans_alert`, every other state: tcp_reset_reno_sack at an ACK of new data.
                if summary.advanced {
                    self.board.forget_assumed();
                }
                // `tcp_newreno_mark_lost`: as many duplicate ACKs as order was seen to break by, three at first.
                if self.board.sacked() >= enough {
                    lost = self.board.lose_front();
                }
                if self.board.pending() > 0 {
                    self.enter_recovery(net);
                    return lost;
                }
                self.keep_open(net);
            }
            State::Recovery if self.una >= self.recovery.high => {
                self.board.forget_assumed();
                // `tcp_is_non_sack_preventing_reopen`: at una = high_seq late duplicates would begin another recovery.
                if self.recovery.ends_at(self.una) {
                    self.end_repair();
                    self.notify_cc(net.now, |cc, conn| cc.on_recovered(conn, None));
                    self.set_state(State::Open, net);
                }
            }
            State::Recovery if summary.advanced => {
                self.recovery.partial_acks += 1;
                // A partial ACK: the segment at una is the next hole (RFC 6582 section 3.2 step 3).
                lost = self.board.lose_front();
            }
            State::Recovery => {}
            State::Loss => {
                if self.recovery.ends_at(self.una) {
                    self.end_repair();
                    self.set_state(State::Open, net);
                } else if summary.advanced && self.nxt <= self.recovery.high {
                    self.board.forget_assumed();
                }
            }
        }
        lost
    }
}
