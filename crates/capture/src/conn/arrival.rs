//! When what the tap sees was sent and when it arrives: the queue in front of the receiver lies between the two.

use super::run::PayloadRun;
use super::{Conn, INITIAL_WINDOW};
use crate::Stretch;
use crate::arrivals::Arrivals;
use crate::decode::Segment;

impl Conn {
    /// When the receiver of `run` had all of it, as far as the tap can tell, and by how much earlier it may have had it.
    pub(super) fn delivered(&self, run: &PayloadRun) -> Option<(u64, u64)> {
        let way = self.dirs[run.dir].half.way();
        Some(way.had(run.end?, run.acked_at.filter(|_| !run.acked_by_the_way), run.ack_queued))
    }

    /// The times of calls at the applications, as far as the tap can tell.
    pub(super) fn timed(&self, mut stretch: Stretch) -> Stretch {
        stretch.connection = self.id;
        let asked = self.dirs[self.client].half.echo().unwrap_or(0);
        let way = self.dirs[1 - self.client].half.way();
        for call in &mut stretch.calls {
            // What was acknowledged before has its time.
            if let (None, Some(end)) = (call.delivered_ns, call.response_end_ns) {
                let (had, unsure) = way.had(end, None, 0);
                (call.delivered_ns, call.unsure_ns) = (Some(had), unsure);
            }
            // The request was on its way to the server for a part of that.
            call.service_ns = call.service_ns.map(|waited| waited.saturating_sub(asked));
        }
        stretch
    }

    /// What is known by now of when the first packet of the run in progress entered the queue, and of what links took for it.
    #[inline]
    pub(super) fn recall_front(&mut self, arrivals: &Arrivals) {
        if let Some(run) = &mut self.run
            && let Some(front) = run.front
            && let Some(latest) = arrivals.latest(self.hosts[1 - run.dir], front)
        {
            run.entered_by = latest;
        }
        // The link's rate may not have been known when the packet came.
        if let Some(run) = &mut self.run {
            run.size_drag = arrivals.drag_ns(self.hosts[1 - run.dir], run.first_payload);
        }
    }

    /// The earliest that the data of `d` which just came can have entered the queue in front of its receiver: its sender's link took its time for
    /// what the run has brought since its first packet. The latest, if its sender sent it without waiting for an acknowledgement, is a bound for
    /// what came since the packet before it.
    #[inline]
    pub(super) fn entered(&mut self, d: usize, at: u64, arrivals: &mut Arrivals) -> u64 {
        let (host, turnaround) = (self.hosts[1 - d], self.dirs[1 - d].half.least());
        let Some(run) = self.run.as_mut().filter(|r| r.dir == d && r.end == Some(at)) else { return 0 };
        let since = arrivals.time_for(host, (run.to - run.from).saturating_sub(run.first_bytes));
        let dir = &self.dirs[d];
        if let (Some(start), Some(before), Some(turnaround)) = (run.start, run.before, turnaround) {
            let sent = run.to - run.from;
            if at - start < turnaround {
                run.burst = sent;
            }
            if sent <= run.burst.max(unasked(dir.unasked, dir.stats.largest_segment)) {
                arrivals.follows(host, self.id, sent - run.sent, at - before);
                let later = arrivals.sent_in(host, sent.saturating_sub(run.first_bytes));
                arrivals.entered_by(host, before, run.entered_by + later);
            }
        }
        (run.before, run.sent) = (Some(at), run.to - run.from);
        run.entered + since
    }

    /// If `s` is an acknowledgement by itself of the run in progress: for how long it may have been in the queue in front of its receiver, behind the data
    /// of others.
    #[inline]
    pub(super) fn may_have_queued(&self, s: &Segment, d: usize, at: u64, arrivals: &Arrivals) -> u64 {
        let waited_for = self.run.as_ref().is_some_and(|r| r.dir == 1 - d && r.acked_at.is_none());
        if s.payload > 0 || !waited_for { 0 } else { at - arrivals.earliest(self.hosts[1 - d], 0, at) }
    }

    /// The sender of `d` has a reason to send less from now on.
    #[inline]
    pub(super) fn slowed(&mut self, d: usize) {
        self.dirs[d].unasked = Some(0);
        if let Some(run) = self.run.as_mut().filter(|r| r.dir == d) {
            run.slowed = true;
        }
    }
}

/// Bytes that a sender sends without waiting for an acknowledgement, by what it is `known` to and by its largest segment.
#[inline]
fn unasked(known: Option<u64>, segment: u32) -> u64 {
    known.unwrap_or(u64::MAX).min(INITIAL_WINDOW * u64::from(segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_sender_sends_ten_segments_unless_it_had_a_reason_to_send_less() {
        assert_eq!([None, Some(2_896), Some(100_000)].map(|known| unasked(known, 1_448)), [14_480, 2_896, 14_480]);
    }
}
