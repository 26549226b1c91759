//! Losses by time and tail-loss probes (RACK-TLP, RFC 8985).

use super::delivered::{Delivered, Evidence};
use super::recovery::{AckSummary, Recovery};
use super::rtt::ticked;
use super::sender::Sender;
use super::uplink::Uplink;
use crate::packet::{Packet, TICK_PS, flags};
use fanin_cc::{Cause, RecoveryKind, State};
use fanin_units::Duration;

/// Linux's least timer, `TCP_TIMEOUT_MIN_US`: 2 ms.
const TIMEOUT_MIN_PS: u64 = 2_000_000_000;

/// Recoveries for which a widened reordering window lasts (RFC 8985 section 6.2 step 4).
const PERSIST: u32 = 16;

/// The state of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// Transmission time and end of the most recently sent segment that was delivered, and its round trip.
    sent_at: u64,
    end: u64,
    rtt: u64,
    /// Something was delivered since losses were last looked for.
    advanced: bool,
    /// One past the highest byte delivered; an original delivered below it was overtaken.
    highest: u64,
    reordering: bool,
    /// Steps of a quarter of the least round trip that D-SACKs added to the reordering window, how many recoveries they last, and
    /// where the round trip ends in which the last one was added.
    window_steps: u32,
    persist: u32,
    round_end: u64,
    probe: Option<TailProbe>,
    /// When new data was last sent or acknowledged: a probe's time counts from there (`tcp_schedule_loss_probe`).
    active_at: u64,
    /// A retransmission is among what was last found lost (`FLAG_LOST_RETRANS`).
    lost_again: bool,
    /// The pending timer is a tail-loss probe, not the reordering timer.
    is_probe: bool,
}

/// A tail-loss probe that is out.
#[derive(Clone, Copy, Debug)]
struct TailProbe {
    /// `nxt` when it had been sent.
    end: u64,
    /// It repeated a segment.
    repeats: bool,
}

impl Rack {
    /// Segments that were not retransmitted and arrive below others have been overtaken (section 6.2 step 3).
    fn watch_order(&mut self, d: &Delivered) {
        self.reordering |= d.lowest_original < self.highest;
        self.highest = self.highest.max(d.highest);
    }

    /// A reduction was taken back: what is out is judged anew (`tcp_undo_cwnd_reduction`).
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// A reduction begins or is not to be taken back: the probe that is out means nothing any more.
    pub fn forget_probe(&mut self) {
        self.probe = None;
    }

    /// The round trip of the most recently sent segment that was delivered, ps.
    pub fn rtt(&self) -> u64 {
        self.rtt
    }

    /// The receiver says that it had this data already. False if that was the answer to a probe; else the reordering window was too small:
    /// it is widened by a step, once per round trip (section 6.2 step 4).
    pub fn note_duplicate(&mut self, una: u64, nxt: u64) -> bool {
        if self.probe.is_some_and(|p| p.repeats && una >= p.end) {
            return false;
        }
        if una >= self.round_end {
            self.window_steps = (self.window_steps + 1).min(254);
            self.round_end = nxt;
        }
        self.persist = PERSIST;
        true
    }

    /// A recovery ended: a widened window lasts for some of them.
    pub fn note_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.window_steps = 0;
        }
    }
}

impl Recovery {
    /// A retransmission after a timeout was lost: Linux goes on with a recovery (`tcp_fastretrans_alert`).
    pub(super) fn lost_again(&self) -> bool {
        self.linux.as_ref().is_some_and(|l| l.rack.lost_again)
    }

    /// New data was sent or acknowledged.
    pub(super) fn note_activity(&mut self, now: u64) {
        if let Some(linux) = &mut self.linux {
            linux.rack.active_at = now;
        }
    }

    /// RACK's state. Only connections that use it ask.
    fn rack(&mut self) -> &mut Rack {
        &mut self.linux.get_or_insert_default().rack
    }
}

impl Sender {
    /// What RACK needs to know before it is told what this ACK delivers: the least round trip without this ACK's, and the time stamp.
    pub(super) fn evidence_of(&self, ack: &Packet, now: u64) -> Evidence {
        let least = self.rtt.min();
        let doubted_after = if least.is_zero() { u64::MAX } else { ticked(now).saturating_sub(ticked(least.ps())) };
        let echoed = if self.config.stack.timestamps { ack.timestamp / TICK_PS } else { u64::MAX };
        Evidence::new(doubted_after, echoed)
    }

    /// A segment is lost when one sent later was delivered and a reordering window has passed. Linux looks only at ACKs that are `dubious`,
    /// and only if something was delivered since it last looked (`tcp_ack`, `tcp_rack_mark_lost`).
    pub(super) fn detect_by_time(&mut self, d: &Delivered, dubious: bool, now: u64) -> u32 {
        let advanced = d.acked_segments > 0;
        let rack = self.recovery.rack();
        rack.watch_order(d);
        rack.lost_again = false;
        // RFC 8985 section 6.2 step 2: RACK.segment is the one sent last of all that were delivered.
        if let Some((latest, sent_at)) = d.evidence.advance() {
            (rack.sent_at, rack.end) = latest.max((rack.sent_at, rack.end));
            rack.rtt = ticked(now) - sent_at;
            rack.advanced = true;
        }
        if dubious && std::mem::take(&mut rack.advanced) {
            return self.lose_by_time(now);
        }
        if advanced && !rack.is_probe {
            // The probe's or the retransmission timer takes this one's place (`tcp_set_xmit_timer`).
            self.recovery.timer_at = u64::MAX;
        }
        0
    }

    fn lose_by_time(&mut self, now: u64) -> u32 {
        let time = ticked(now);
        let rack = *self.recovery.rack();
        if rack.sent_at == 0 && rack.end == 0 {
            return 0;
        }
        // No reordering has been seen: no window once the duplicate threshold is reached or recovery is under way (section 6.2 step 4).
        let eager = !rack.reordering
            && ((matches!(self.state, State::Recovery | State::Loss) && self.una < self.recovery.high)
                || self.board.sacked() >= self.config.stack.dup_thresh);
        // Step 4: reo_wnd = min((steps + 1) min_RTT / 4, SRTT).
        let quarters = u64::from(rack.window_steps) + 1;
        let reorder = if eager { 0 } else { ticked((self.rtt.min().ps() / 4 * quarters).min(self.rtt.srtt().ps())) };
        let (mut lost, mut lost_again) = (0, false);
        let mut wait = 0;
        // What is judged is a buffer, by its end: of one that is acknowledged in part RACK may have taken the end before a probe cut it.
        let (mut until, mut end) = (0, 0);
        for index in 0..self.board.outstanding() as usize {
            let s = self.board.get(index);
            if s.sacked || (s.lost && !s.retransmitted) {
                continue;
            }
            // Of a long window most is SACKed, and need not be looked at.
            if index >= until {
                until = self.board.burst_until(index);
                end = self.board.get(until - 1).end();
            }
            let sent_at = ticked(s.sent_at);
            if (sent_at, end) >= (rack.sent_at, rack.end) {
                if !s.retransmitted {
                    // Later segments were sent later still.
                    break;
                }
                continue;
            }
            // Step 5: lost once xmit_ts + RACK.rtt + reo_wnd has passed; else the timer waits for that.
            let due = sent_at + rack.rtt + reorder;
            if due <= time {
                if self.board.lose(index) {
                    lost += 1;
                    lost_again |= s.retransmitted;
                }
            } else {
                wait = wait.max(due - time);
            }
        }
        self.recovery.rack().lost_again = lost_again;
        if wait > 0 {
            self.recovery.timer_at = self.clock.after(now, Duration::from_ps(wait + TIMEOUT_MIN_PS));
            self.recovery.rack().is_probe = false;
        } else if !self.recovery.rack().is_probe {
            self.recovery.timer_at = u64::MAX;
        }
        lost
    }

    /// The reordering timer or the tail-loss probe is due.
    pub(super) fn on_recovery_timer(&mut self, net: &mut Uplink<'_>) {
        if self.recovery.timer_at > net.now {
            return;
        }
        self.recovery.timer_at = u64::MAX;
        if self.board.is_empty() {
            return;
        }
        if !self.recovery.rack().is_probe {
            if self.lose_by_time(net.now) > 0 && self.state != State::Recovery {
                self.enter_recovery(net);
                self.send_one_segment();
            }
            return;
        }
        // Section 7.3: a new segment if there is one and the receiver allows it, else the last one again.
        self.recovery.rack().is_probe = false;
        self.counters.tail_probes += 1;
        let repeats = !self.probe_with_new_data(net);
        if repeats {
            let last = self.board.outstanding() as usize - 1;
            self.resend(last, net);
        }
        self.recovery.rack().probe = Some(TailProbe { end: self.nxt, repeats });
        self.start_rto(net.now);
    }

    /// Arms the probe after two round trips without an answer (section 7.2).
    pub(super) fn schedule_tail_probe(&mut self, net: &mut Uplink<'_>) {
        if self.recovery.kind != RecoveryKind::Rack {
            return;
        }
        // Section 7.2: no probe without data in flight, during recovery, behind another probe, or with SACKs to act on.
        let idle = self.board.is_empty()
            || !matches!(self.state, State::Open | State::Cwr)
            || self.recovery.rack().probe.is_some()
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
            2 * srtt + TIMEOUT_MIN_PS
        };
        let since = self.recovery.rack().active_at;
        let wait = self.paced_timer(Duration::from_ps(wait), since);
        self.recovery.timer_at = self.clock.after(since, wait).max(net.now + 1).min(self.rto_at);
        self.recovery.rack().is_probe = true;
    }

    /// The probe was answered: with new data always, as a repetition where the answer tells what became of it.
    pub(super) fn forget_probe(&mut self, told: bool) {
        let una = self.una;
        self.recovery.rack().probe.take_if(|probe| una >= probe.end && (told || !probe.repeats));
    }

    /// Section 7.4: an ACK of the probe ends the wait for it; a probe that repaired a loss costs one reduction (`tcp_process_tlp_ack`).
    pub(super) fn end_tail_probe(&mut self, ack: &Packet, summary: &AckSummary, net: &mut Uplink<'_>) {
        let Some(probe) = self.recovery.rack().probe else { return };
        if self.una < probe.end {
            return;
        }
        // More than the probe was acknowledged: it filled a hole at the end.
        let repaired = self.una > probe.end;
        let for_nothing = ack.has(flags::DSACK) || (!summary.news && !summary.sacked);
        self.forget_probe(for_nothing || repaired);
        let reduces = probe.repeats && repaired && !for_nothing;
        // Not in CWR, which ends at the latest where the data do that were out before the probe.
        if reduces && self.recovery.uses_prr() && matches!(self.state, State::Open | State::Disorder) {
            // Linux reduces by way of CWR, as for an echo, not by way of a recovery: DCTCP takes alpha's part, not half.
            let cause = if self.config.needs.dctcp_ecn { Cause::Ecn } else { Cause::Loss };
            self.notify_cc(net.now, |cc, conn| cc.on_congestion(conn, cause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_widened_reordering_window_grows_once_per_round_trip_and_lasts_sixteen_recoveries() {
        let mut rack = Rack::default();
        assert!(rack.note_duplicate(100, 200) && rack.note_duplicate(150, 250));
        assert_eq!(rack.window_steps, 1);
        assert!(rack.note_duplicate(200, 300));
        assert_eq!(rack.window_steps, 2);
        (0..15).for_each(|_| rack.note_recovered());
        assert_eq!(rack.window_steps, 2);
        rack.note_recovered();
        assert_eq!(rack.window_steps, 0);
    }

    #[test]
    fn the_answer_to_a_probe_that_repeats_data_widens_nothing() {
        let mut rack = Rack { probe: Some(TailProbe { end: 500, repeats: true }), ..Rack::default() };
        assert!(!rack.note_duplicate(500, 500));
        assert_eq!(rack.window_steps, 0);
    }

    #[test]
    fn an_original_that_arrives_below_others_was_overtaken() {
        let mut rack = Rack::default();
        rack.watch_order(&Delivered { lowest_original: 3000, highest: 3000, ..Delivered::default() });
        assert!(!rack.reordering);
        rack.watch_order(&Delivered { lowest_original: 1000, highest: 1000, ..Delivered::default() });
        assert!(rack.reordering);
    }
}
