//! What Linux's endpoint does beside the state machine of `recovery.rs`: proportional rate reduction (RFC 6937), losses by time and tail-loss
//! probes (RACK-TLP, RFC 8985), and taking back what turns out to have been a mistake (D-SACK, RFC 2883 and 3708; Eifel, RFC 3522;
//! F-RTO, RFC 5682).

use super::recovery::{News, Recovery};
use super::scoreboard::Delivered;
use super::sender::Sender;
use super::uplink::Uplink;
use crate::packet::{Packet, flags};
use fanin_cc::{Cause, RecoveryKind, State};
use fanin_units::Duration;

/// Linux's least timer, `TCP_TIMEOUT_MIN_US`: 2 ms.
const TIMEOUT_MIN_PS: u64 = 2_000_000_000;
/// Linux's timestamps tick once a millisecond.
const TIMESTAMP_TICK_PS: u64 = 1_000_000_000;
/// Recoveries for which a widened reordering window lasts (RFC 8985 section 6.2 step 4).
const PERSIST: u32 = 16;

/// The state of all of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Linux {
    pub prr: Prr,
    pub rack: Rack,
    pub frto: Frto,
    /// Since the last reduction by loss: can it be taken back?
    episode: Option<Episode>,
}

/// Proportional rate reduction, packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    prior_cwnd: f64,
    ssthresh: f64,
    delivered: f64,
    pub out: f64,
    /// What may be outstanding now.
    pub window: f64,
}

/// RACK-TLP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// Transmission time and end of the most recently sent segment that was delivered, and its round trip.
    sent_at: u64,
    end: u64,
    rtt: u64,
    /// One past the highest byte delivered; an original delivered below it was overtaken.
    highest: u64,
    reordering: bool,
    /// Steps of a quarter of the least round trip that D-SACKs added to the reordering window, how many recoveries they last, and
    /// where the round trip ends in which the last one was added.
    window_steps: u32,
    persist: u32,
    round_end: u64,
    probe: Option<Probe>,
    /// When new data was last sent or acknowledged: a probe's time counts from there (`tcp_schedule_loss_probe`).
    active_at: u64,
    /// The pending timer is a tail-loss probe, not the reordering timer.
    is_probe: bool,
}

/// A tail-loss probe that is out.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// `nxt` when it had been sent.
    end: u64,
    /// It repeated a segment.
    repeats: bool,
}

/// F-RTO.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frto {
    active: bool,
    /// This ACK lets new data out instead of retransmissions.
    pub tries_new_data: bool,
}

/// Retransmissions since a reduction.
#[derive(Clone, Copy, Debug, Default)]
struct Episode {
    sent: u32,
    /// Not reported as duplicates.
    needed: u32,
    /// When the first of them left, ps.
    first_at: u64,
}

impl Rack {
    /// Segments that were not retransmitted and arrive below others have been overtaken (section 6.2 step 3).
    fn watch_order(&mut self, d: &Delivered) {
        self.reordering |= d.lowest_original < self.highest;
        self.highest = self.highest.max(d.highest);
    }
}

impl Recovery {
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
    // ---- proportional rate reduction --------------------------------------------------------------------------------

    pub(super) fn start_prr(&mut self, prior_cwnd: f64) {
        let ssthresh = self.control.ssthresh.min(self.control.cwnd);
        let window = self.in_flight().max(1.0);
        let Some(linux) = &mut self.recovery.linux else { return };
        linux.prr = Prr { prior_cwnd: prior_cwnd.max(1.0), ssthresh, delivered: 0.0, out: 0.0, window };
    }

    /// RFC 6937 as `tcp_cwnd_reduction` has it: sndcnt for this ACK, on top of what is in flight.
    pub(super) fn proportional_rate(&mut self, news: &News) {
        if news.delivered.segments == 0 {
            return;
        }
        let in_flight = self.in_flight();
        let Some(linux) = &mut self.recovery.linux else { return };
        let p = &mut linux.prr;
        p.delivered += f64::from(news.delivered.segments);
        let delta = p.ssthresh - in_flight;
        let mut allowed = if delta < 0.0 {
            (p.ssthresh * p.delivered / p.prior_cwnd).ceil() - p.out
        } else {
            let bonus = if news.advanced && news.lost == 0 { 1.0 } else { 0.0 };
            delta.min((p.delivered - p.out).max(f64::from(news.delivered.segments)) + bonus)
        };
        allowed = allowed.max(if p.out == 0.0 { 1.0 } else { 0.0 });
        p.window = in_flight + allowed;
    }

    // ---- RACK-TLP (RFC 8985) ----------------------------------------------------------------------------------------

    /// A segment is lost when one sent later was delivered and a reordering window has passed.
    pub(super) fn detect_by_time(&mut self, d: &Delivered, now: u64) -> u32 {
        self.recovery.rack().watch_order(d);
        if let Some(newest) = d.newest {
            let rack = self.recovery.rack();
            let rtt = now - newest.sent_at;
            // A retransmission acknowledged sooner than any round trip was spurious: not evidence (section 6.2 step 2). Of a
            // connection with few samples this rules out some that were not, in Linux too (`tcp_rack_advance`).
            let believable = !newest.ever_retransmitted || rtt >= self.rtt.min().ps();
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
        let eager = !rack.reordering
            && (matches!(self.state, State::Recovery | State::Loss)
                || self.board.sacked() >= self.config.stack.dup_thresh);
        let quarters = u64::from(rack.window_steps) + 1;
        let reorder = if eager { 0 } else { (self.rtt.min().ps() / 4 * quarters).min(self.rtt.srtt().ps()) };
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
            if self.lose_by_time(net.now) > 0 && !matches!(self.state, State::Recovery | State::Loss) {
                self.enter_recovery(net);
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
        self.recovery.rack().probe = Some(Probe { end: self.nxt, repeats });
        self.start_rto(net.now);
    }

    /// Arms the probe after two round trips without an answer (section 7.2).
    pub(super) fn schedule_tail_probe(&mut self, net: &mut Uplink<'_>) {
        if self.recovery.kind != RecoveryKind::Rack {
            return;
        }
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
        self.recovery.timer_at = self.clock.after(since, Duration::from_ps(wait)).max(net.now + 1).min(self.rto_at);
        self.recovery.rack().is_probe = true;
    }

    /// Section 7.4: an ACK of the probe ends the episode; a probe that repaired a loss costs one reduction (`tcp_process_tlp_ack`).
    pub(super) fn end_tail_probe(&mut self, ack: &Packet, news: &News, net: &mut Uplink<'_>) {
        let Some(probe) = self.recovery.rack().probe else { return };
        if self.una < probe.end {
            return;
        }
        let repaired = self.una > probe.end;
        let for_nothing = ack.has(flags::DSACK) || (!news.advanced && !news.sacked);
        if !probe.repeats || for_nothing || repaired {
            self.recovery.rack().probe = None;
        }
        let reduces = probe.repeats && repaired && !for_nothing;
        if reduces && self.recovery.uses_prr() && matches!(self.state, State::Open | State::Disorder) {
            self.tell(net.now, |cc, conn| cc.on_congestion(conn, Cause::Loss));
        }
    }

    // ---- mistakes ---------------------------------------------------------------------------------------------------

    /// A reduction by loss begins: retransmissions from here on are counted (`tcp_init_undo`).
    pub(super) fn start_episode(&mut self) {
        if let Some(linux) = &mut self.recovery.linux {
            linux.episode = Some(Episode::default());
            linux.rack.probe = None;
        }
    }

    /// A reduction that nothing takes back.
    pub(super) fn forget_episode(&mut self) {
        if let Some(linux) = &mut self.recovery.linux {
            linux.episode = None;
            linux.rack.probe = None;
        }
    }

    /// A timeout: what was sent less than a round trip ago is not given up (`tcp_timeout_mark_lost`), and F-RTO may find out that nothing
    /// was lost, unless the timeout ended a recovery (`tcp_enter_loss`).
    pub(super) fn linux_times_out(&mut self, repeated: bool, reduced: bool, now: u64) {
        if !reduced {
            self.start_episode();
        }
        let in_recovery = self.state == State::Recovery;
        let Some(linux) = &mut self.recovery.linux else { return };
        linux.rack.probe = None;
        linux.frto = Frto { active: !in_recovery || repeated, tries_new_data: false };
        let rtt = linux.rack.rtt;
        self.board.lose_older_than(now.saturating_sub(rtt));
    }

    /// A segment was sent again.
    pub(super) fn note_retransmission(&mut self, now: u64) {
        if let Some(episode) = self.recovery.linux.as_mut().and_then(|l| l.episode.as_mut()) {
            if episode.sent == 0 {
                episode.first_at = now;
            }
            episode.sent += 1;
            episode.needed += 1;
        }
    }

    /// The receiver had this data already: a retransmission was not needed (RFC 2883), and the reordering window was too small.
    pub(super) fn note_duplicate(&mut self) {
        let (una, nxt) = (self.una, self.nxt);
        let Some(linux) = &mut self.recovery.linux else { return };
        if linux.rack.probe.is_some_and(|p| p.repeats && una >= p.end) {
            return;
        }
        if let Some(episode) = &mut linux.episode {
            episode.needed = episode.needed.saturating_sub(1);
        }
        if una >= linux.rack.round_end {
            linux.rack.window_steps = (linux.rack.window_steps + 1).min(254);
            linux.rack.round_end = nxt;
        }
        linux.rack.persist = PERSIST;
    }

    /// Takes the last reduction back if this ACK shows that there was no loss; true if that ends recovery and nothing else is to be done.
    pub(super) fn undo_if_spurious(&mut self, ack: &Packet, news: &News, net: &mut Uplink<'_>) -> bool {
        match self.state {
            State::Open | State::Disorder => {
                if self.all_were_duplicates() {
                    self.undo(net.now);
                }
                false
            }
            State::Cwr => false,
            State::Recovery => {
                let partial = news.advanced && self.una < self.recovery.high;
                // The answer to an original came back: the rest is under way too, once no retransmission is (`tcp_try_undo_partial`).
                let delayed = partial && self.answers_original(ack);
                if delayed && self.board.any_retransmission_outstanding() {
                    return true;
                }
                let spurious = delayed || self.all_were_duplicates();
                if spurious {
                    self.undo(net.now);
                    if delayed {
                        self.board.find_all();
                    }
                    self.set_state(State::Open, net);
                }
                spurious
            }
            State::Loss => {
                let spurious = news.advanced && (self.all_were_duplicates() || self.answers_original(ack));
                if spurious || self.frto_finds_original(news) {
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
    fn frto_finds_original(&mut self, news: &News) -> bool {
        let (una, nxt, high) = (self.una, self.nxt, self.recovery.high);
        let has_new = self.nxt < self.written && self.nxt < self.edge;
        let Some(linux) = &mut self.recovery.linux else { return false };
        if !linux.frto.active {
            return false;
        }
        if news.delivered.lowest_original <= high {
            return true;
        }
        if nxt > high {
            if news.sacked || !news.advanced {
                linux.frto.active = false;
            }
        } else if news.advanced && una < high {
            linux.frto.tries_new_data = has_new;
            linux.frto.active = has_new;
        }
        false
    }

    /// After the pump: F-RTO's new data has left, or there was no room for any.
    pub(super) fn end_frto_step(&mut self) -> bool {
        let sent = self.nxt > self.recovery.high;
        let Some(linux) = &mut self.recovery.linux else { return false };
        if !std::mem::take(&mut linux.frto.tries_new_data) {
            return false;
        }
        linux.frto.active = sent;
        !sent
    }

    /// A recovery or timeout's repair ended without a sign of a mistake.
    pub(super) fn close_episode(&mut self) {
        if let Some(linux) = &mut self.recovery.linux {
            linux.rack.persist = linux.rack.persist.saturating_sub(1);
            if linux.rack.persist == 0 {
                linux.rack.window_steps = 0;
            }
        }
    }

    fn all_were_duplicates(&self) -> bool {
        self.recovery.linux.as_ref().and_then(|l| l.episode).is_some_and(|e| e.sent > 0 && e.needed == 0)
    }

    /// Eifel: the echoed timestamp is older than the first retransmission (`tcp_packet_delayed`), as far as Linux's clock can tell.
    fn answers_original(&self, ack: &Packet) -> bool {
        self.config.stack.timestamps
            && self
                .recovery
                .linux
                .as_ref()
                .and_then(|l| l.episode)
                .is_some_and(|e| e.sent > 0 && ack.timestamp / TIMESTAMP_TICK_PS < e.first_at / TIMESTAMP_TICK_PS)
    }

    fn undo(&mut self, now: u64) {
        if let Some(linux) = &mut self.recovery.linux {
            linux.episode = None;
            linux.frto = Frto::default();
        }
        self.counters.undone += 1;
        self.tell(now, |cc, conn| cc.on_undo(conn));
    }
}
