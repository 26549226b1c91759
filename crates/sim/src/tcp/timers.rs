//! When a sender acts without an ACK: its one entry in the calendar, the retransmission timer, and what a timeout does.

use super::sender::{Phase, Sender};
use super::uplink::Uplink;
use crate::stack::{LossBasis, RtoRestart};
use crate::timer::Timer;
use fanin_units::Duration;

impl Sender {
    /// The retransmission timer runs for one RTO from now.
    #[inline]
    pub(super) fn start_rto(&mut self, now: u64) {
        let rto = self.rtt.timer(&self.config.stack);
        self.rto_at = self.clock.after(now, self.paced_timer(rto, now).min(self.config.stack.max_rto.max(rto)));
    }

    /// A timer that waits longer by the whole jiffies for which pacing holds the next segment back (`tcp_pacing_delay`).
    #[inline]
    pub(super) fn paced_timer(&self, time: Duration, now: u64) -> Duration {
        if self.pace_at <= now { time } else { time + self.clock.whole_jiffies(self.pace_at - now) }
    }

    /// RFC 6298 rules 5.2 and 5.3, and NewReno's impatience: after the first partial ACK the timer runs on (RFC 6582 section 3.2). Linux is
    /// patient: every ACK of new data restarts it (`FLAG_SET_XMIT_TIMER`).
    #[inline]
    pub(super) fn restart_rto(&mut self, advanced: bool, now: u64) {
        if self.board.is_empty() {
            self.rto_at = u64::MAX;
        } else if advanced
            && (self.config.stack.rto_restart == RtoRestart::EveryAck || self.recovery.restarts_timer(self.state))
        {
            self.start_rto(now);
        }
    }

    /// The calendar says that this sender's timer may be due.
    pub fn on_timer(&mut self, net: &mut Uplink<'_>) {
        if net.now != self.timer_at {
            return;
        }
        self.timer_at = u64::MAX;
        // A probe that is due with the timeout goes first and starts the timer anew, as Linux's one timer does.
        self.on_recovery_timer(net);
        if self.rto_at <= net.now {
            self.on_timeout(net);
        }
        // An application that waited for the connection, or for room.
        if !self.waits_for_room() {
            self.write_on(net);
        }
        self.try_send(net);
        self.arm(net);
        self.trace(net);
    }

    fn on_timeout(&mut self, net: &mut Uplink<'_>) {
        if matches!(self.phase, Phase::Queued | Phase::SynSent | Phase::SynReceived) {
            return self.on_syn_timer(net);
        }
        if self.board.is_empty() {
            self.rto_at = u64::MAX;
            return;
        }
        self.counters.timeouts += 1;
        self.counters.timeout_ps += net.now - self.validation.last_send().min(net.now);
        // RFC 5681 section 3.1: ssthresh falls at the first timeout of a segment alone.
        let again = self.rtt.backoff > 0 && self.timed_out_at == self.una;
        self.timed_out_at = self.una;
        self.rtt.cancel_timing();
        // NS2 reduces each time.
        self.on_rto(again && self.config.stack.loss_basis != LossBasis::WholeWindow, net);
        // RFC 6298 rules 5.5 and 5.6: back off, start the timer again.
        self.rtt.backoff += 1;
        self.start_rto(net.now);
        self.held_for_ack = false;
        self.gate_until = 0;
        self.held_until = 0;
        self.pace_at = net.now;
    }

    /// Makes sure the calendar holds an entry no later than the next deadline. A deadline that moves later costs nothing.
    #[inline]
    pub(super) fn arm(&mut self, net: &mut Uplink<'_>) {
        let waits_to_send = if self.has_something_to_send() { self.not_before() } else { u64::MAX };
        let due =
            self.rto_at.min(self.recovery.timer_at).min(if waits_to_send > net.now { waits_to_send } else { u64::MAX });
        if due < self.timer_at {
            self.timer_at = due.max(net.now);
            net.calendar.schedule_timer(self.timer_at, Timer::Source(self.flow));
        }
    }

    fn not_before(&self) -> u64 {
        if self.held_for_ack { u64::MAX } else { self.pace_at.max(self.held_until).max(self.gate_until) }
    }

    pub(super) fn has_something_to_send(&self) -> bool {
        self.phase == Phase::Established && (self.board.pending() > 0 || self.unsent() > 0)
    }
}
