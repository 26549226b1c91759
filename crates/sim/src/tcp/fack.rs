//! Losses by forward acknowledgement: what lies far enough below the highest selectively acknowledged segment is lost, whatever was reported
//! between. Linux found losses so up to 4.14, on connections on which no packet had overtaken another.
//!
//! *Source*: Mathis and Mahdavi, *Forward Acknowledgment: Refining TCP Congestion Control*, SIGCOMM 1996, section 2; `tcp_input.c` of Linux 3.2
//! (`tcp_update_scoreboard`, `tcp_mark_head_lost`, `tcp_mark_lost_retrans`, `tcp_update_reordering`).
//!
//! *Not modelled*: what counts as lost because it is older than the timeout (`tcp_head_timedout`), and F-RTO as it was before 3.10.

use super::delivered::Delivered;
use super::plain::MOST_REORDERING;
use super::recovery::Linux;
use super::sender::Sender;
use fanin_cc::State;

/// The state of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fack {
    /// One past the highest byte delivered: an original delivered below it was overtaken.
    highest: u64,
    /// Packets have overtaken each other: from then on what was reported counts, not how far it lies (`tcp_disable_fack`).
    off: bool,
}

impl Linux {
    /// An original was overtaken by so many segments (`tcp_update_reordering`).
    pub(super) fn note_overtaken(&mut self, by: u64) {
        self.reordering = self.reordering.max(by.min(MOST_REORDERING.into()) as u32);
        self.fack.off = true;
    }
}

impl Sender {
    /// Declares lost what this ACK shows to be; returns how many segments.
    pub(super) fn detect_by_distance(&mut self, d: &Delivered, advanced: bool) -> u32 {
        let mss = u64::from(self.config.stack.mss);
        let unrepaired = self.una < self.recovery.high;
        let repairs = self.state == State::Recovery && unrepaired;
        let Some(linux) = &mut self.recovery.linux else { return 0 };
        let overtaken = linux.fack.highest.saturating_sub(d.lowest_original);
        if overtaken > 0 {
            linux.note_overtaken(overtaken.div_ceil(mss));
        }
        linux.fack.highest = linux.fack.highest.max(d.highest);
        let (reordering, off) = (linux.reordering, linux.fack.off);
        if off {
            return self.board.detect_losses(reordering, self.config.stack.mss, true);
        }
        // A duplicate ACK while losses are repaired: the first hole is one, however near (`tcp_update_scoreboard`).
        let least = u32::from(repairs && !advanced);
        let lost = self.board.forward().saturating_sub(reordering).max(least);
        // What is sent while losses are repaired is judged when they are (`tcp_mark_head_lost`, `tcp_fastretrans_alert`).
        let end = if repairs || (self.state == State::Loss && unrepaired) { self.recovery.high } else { u64::MAX };
        self.board.lose_first(lost, end) + if repairs { self.board.lose_passed_retransmissions() } else { 0 }
    }
}
