//! Delivery-rate samples, for algorithms that ask for them: `tcp_rate.c`, draft-cheng-iccrg-delivery-rate-estimation.

use super::delivered::Delivered;
use super::rtt::ticked;
use super::scoreboard::RateSnapshot;
use super::sender::Sender;
use fanin_cc::RateSample;
use fanin_units::Duration;

/// What is delivered on a connection: totals in segments, times in ps.
#[derive(Debug)]
pub(super) struct RateSampler {
    delivered: u64,
    delivered_at: u64,
    first_sent_at: u64,
    /// The application limits the connection until so many are delivered; 0: it does not.
    app_limited_until: u64,
}

impl Default for RateSampler {
    fn default() -> RateSampler {
        // The SYN counts as one.
        RateSampler { delivered: 1, delivered_at: 0, first_sent_at: 0, app_limited_until: 0 }
    }
}

impl RateSampler {
    /// A segment leaves and nothing was outstanding: samples count from here (`tcp_rate_skb_sent`).
    pub fn start_flight(&mut self, now: u64) {
        self.first_sent_at = now;
        self.delivered_at = now;
    }

    /// The application limits what is being delivered.
    pub fn app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// What the segment that leaves now must remember for its sample.
    pub fn snapshot(&self) -> RateSnapshot {
        RateSnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited(),
        }
    }

    /// The sample of an ACK, if it delivered something.
    pub fn sample(&mut self, d: &Delivered, now: u64) -> Option<RateSample> {
        if d.segments == 0 {
            return None;
        }
        self.delivered += u64::from(d.segments);
        self.delivered_at = now;
        // `tcp_rate_gen`: after(tp->delivered, tp->app_limited), "bubble is acked and gone".
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let (newest, rate) = (d.newest?, d.newest_rate?);
        // `tcp_rate_skb_delivered`: the next sample's sending time counts from the newest segment.
        self.first_sent_at = newest.sent_at;
        // Linux's times are whole microseconds, and their differences, too.
        let sending = ticked(newest.sent_at) - ticked(rate.first_sent_at);
        let acking = ticked(now) - ticked(rate.delivered_at);
        // max(snd_us, ack_us): ACKs that were held up and come together shorten the second, a burst the first.
        Some(RateSample {
            delivered: (self.delivered - rate.delivered) as u32,
            prior_delivered: rate.delivered,
            total_delivered: self.delivered,
            interval: Duration::from_ps(sending.max(acking)),
            app_limited: rate.app_limited,
        })
    }
}

impl Sender {
    /// What arrived is one segment shorter than the MSS, sent once, and nothing else did since it was sent (`tcp_clean_rtx_queue`).
    pub(super) fn answers_lone_runt(&self, d: &Delivered, rate: RateSample) -> bool {
        let lone = d.acked_segments == 1 && rate.delivered == 1 && self.board.sacked() == 0;
        lone && d.acked_bytes < u64::from(self.config.stack.mss) && !d.any_retransmitted
    }

    /// The application writes: it may have been the limit so far.
    pub(super) fn note_app_limited(&mut self, now: u64) {
        if self.rates.is_none() {
            return;
        }
        let before = Before {
            unsent: self.unsent(),
            lost: self.board.pending() > 0,
            in_host: self.in_host.held(now) > 0,
            has_room: self.in_flight() < self.control.cwnd,
        };
        let pipe = u64::from(self.board.pipe());
        if let Some(rates) = &mut self.rates
            && before.was_limited(self.config.stack.mss)
        {
            // tp->delivered + tcp_packets_in_flight(tp), or 1: 0 says that nothing limits.
            rates.app_limited_until = (rates.delivered + pipe).max(1);
        }
    }
}

/// What a sender had to do when its application wrote.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// Bytes that TCP has not sent.
    unsent: u64,
    /// Something lost was not sent again yet.
    lost: bool,
    /// Its host has something that has not left yet (`sk_wmem_alloc`).
    in_host: bool,
    /// The window was not full.
    has_room: bool,
}

impl Before {
    /// The application was the limit (`tcp_rate_check_app_limited`).
    fn was_limited(&self, mss: u32) -> bool {
        self.unsent < u64::from(mss) && !self.lost && !self.in_host && self.has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::segment::Segment;

    /// As in Linux, where the SYN was the first thing delivered: what leaves after the first ACK is not limited by the application.
    #[test]
    fn the_first_ack_ends_the_applications_limit() {
        let mut rates = RateSampler { app_limited_until: 1, ..RateSampler::default() };
        rates.start_flight(0);
        let sent = rates.snapshot();
        let newest = Some(Segment::new(0, 1000, 0));
        let d = Delivered { segments: 1, newest, newest_rate: Some(sent), ..Delivered::default() };
        assert!(rates.sample(&d, 1_000_000).unwrap().app_limited);
        assert!(!rates.snapshot().app_limited);
    }

    #[test]
    fn the_application_is_the_limit_where_nothing_waits_in_tcp_or_the_host_and_the_window_has_room() {
        let idle = Before { unsent: 999, lost: false, in_host: false, has_room: true };
        assert!(idle.was_limited(1000));
        assert!(!Before { unsent: 1000, ..idle }.was_limited(1000));
        assert!(!Before { lost: true, ..idle }.was_limited(1000));
        assert!(!Before { in_host: true, ..idle }.was_limited(1000));
        assert!(!Before { has_room: false, ..idle }.was_limited(1000));
    }
}
