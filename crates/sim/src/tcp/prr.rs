//! Proportional rate reduction (RFC 6937): while a recovery or an ECN reduction lasts, how much may be outstanding follows from what is
//! delivered.

use super::recovery::AckSummary;
use super::sender::Sender;
use super::uplink::Uplink;
use fanin_cc::Window;
use fanin_units::Duration;

/// The state of one reduction, packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    prior_cwnd: f64,
    ssthresh: f64,
    delivered: f64,
    out: f64,
    window: f64,
}

impl Prr {
    /// A reduction from `prior_cwnd` to `ssthresh` begins with so much in flight.
    fn start(prior_cwnd: f64, ssthresh: f64, in_flight: f64) -> Prr {
        Prr { prior_cwnd: prior_cwnd.max(1.0), ssthresh, delivered: 0.0, out: 0.0, window: in_flight.max(1.0) }
    }

    /// What may be outstanding now.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// A segment left, new or not.
    pub fn note_sent(&mut self) {
        self.out += 1.0;
    }

    /// RFC 6937 as `tcp_cwnd_reduction` has it: sndcnt for this ACK, on top of what is in flight.
    fn on_ack(&mut self, in_flight: f64, delivered: f64, repairs: bool) {
        self.delivered += delivered;
        // `tcp_cwnd_reduction`: delta = ssthresh - packets in flight.
        let delta = self.ssthresh - in_flight;
        let mut allowed = if delta < 0.0 {
            // RFC 6937 section 3: sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out.
            // From 20 to 10, 4 delivered and 1 sent: ceil(40/20) - 1 = 1 more.
            (self.ssthresh * self.delivered / self.prior_cwnd).ceil() - self.out
        } else {
            // At or below ssthresh: as slow start where una advances without another loss (PRR-SSRB), else packet conservation (PRR-CRB).
            let bonus = if repairs { 1.0 } else { 0.0 };
            delta.min((self.delivered - self.out).max(delivered) + bonus)
        };
        // The first segment of a recovery, the fast retransmission, leaves in any case.
        allowed = allowed.max(if self.out == 0.0 { 1.0 } else { 0.0 });
        self.window = in_flight + allowed;
    }
}

impl Sender {
    pub(super) fn start_prr(&mut self, prior_cwnd: f64) {
        let Window { cwnd, ssthresh } = self.window().after_reduction();
        let in_flight = self.in_flight();
        if let Some(linux) = &mut self.recovery.linux {
            linux.prr = Prr::start(prior_cwnd, ssthresh.min(cwnd), in_flight);
        }
    }

    /// A reduction ends, which leaves the algorithm two segments at least.
    pub(super) fn end_reduction(&mut self, now: u64) {
        let window = self.window().after_reduction();
        if self.recovery.uses_prr() && window != self.window() {
            self.notify_cc(now, |cc, conn| cc.on_restart(conn, Duration::ZERO, window));
        }
    }

    /// Nothing arrived, but time told of losses: one segment goes out for them (`tcp_rack_reo_timeout`).
    pub(super) fn send_one_segment(&mut self) {
        let in_flight = self.in_flight();
        if let Some(linux) = &mut self.recovery.linux {
            // tcp_cwnd_reduction(sk, 1, lost, 0): as if one segment had been delivered, and una had not moved.
            linux.prr.on_ack(in_flight, 1.0, false);
        }
    }

    /// Losses within the window of data that an ECN reduction answered: the reduction goes on, unless the algorithm asks for more
    /// (`tcp_enter_recovery`, `dctcp_state`).
    pub(super) fn stay_in_cwr(&mut self, net: &mut Uplink<'_>) {
        let window = self.window_in_force();
        self.notify_cc(net.now, |cc, conn| cc.on_loss_in_cwr(conn, window));
        let ssthresh = self.control.ssthresh;
        if let Some(linux) = &mut self.recovery.linux {
            // tcp_init_cwnd_reduction is not run again: prr_delivered and prr_out count from the echo on.
            linux.prr.ssthresh = ssthresh.min(linux.prr.ssthresh);
        }
    }

    pub(super) fn proportional_rate(&mut self, summary: &AckSummary) {
        let delivered = summary.newly_delivered;
        if delivered == 0 {
            return;
        }
        let in_flight = self.in_flight();
        if let Some(linux) = &mut self.recovery.linux {
            linux.prr.on_ack(in_flight, f64::from(delivered), summary.advanced && summary.lost == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 section 3.2: 20 packets out, ssthresh 10: one packet for every two that arrive, until 10 are out.
    #[test]
    fn half_of_what_arrives_is_sent_while_more_than_ssthresh_is_out() {
        let mut prr = Prr::start(20.0, 10.0, 19.0);
        let (mut in_flight, mut sent) = (19.0, 0);
        for _ in 0..18 {
            in_flight -= 1.0;
            prr.on_ack(in_flight, 1.0, false);
            while prr.window() > in_flight {
                prr.note_sent();
                in_flight += 1.0;
                sent += 1;
            }
        }
        assert_eq!((sent, in_flight), (9, 10.0));
    }

    /// Section 3.1, PRR-SSRB: after heavy losses the window grows back to ssthresh as in slow start, by one more per ACK that repairs.
    #[test]
    fn below_ssthresh_it_sends_what_was_delivered_and_one_more_for_repairs() {
        let mut prr = Prr::start(20.0, 10.0, 4.0);
        prr.note_sent();
        prr.on_ack(3.0, 1.0, true);
        assert_eq!(prr.window(), 5.0);
        prr.on_ack(9.0, 3.0, false);
        assert_eq!(prr.window(), 10.0);
    }

    #[test]
    fn the_first_segment_of_a_recovery_may_always_leave() {
        let mut prr = Prr::start(20.0, 10.0, 19.0);
        prr.on_ack(19.0, 0.0, false);
        assert_eq!(prr.window(), 20.0);
    }
}
