//! The window in force, and what an algorithm is told of the connection when it is asked.

use super::sender::Sender;
use super::validation::CwvInput;
use crate::packet::Packet;
use crate::stack::LossBasis;
use fanin_cc::{Ack, CongestionControl, Conn, Message, Window};
use fanin_units::Time;

impl Sender {
    /// Whether a segment of `len` bytes fits into the window in force.
    #[inline]
    pub(super) fn window_has_room(&self, len: u32) -> bool {
        // RFC 6675 section 5: a segment may leave while cwnd - pipe has room for it.
        let window = self.window_in_force();
        if self.config.byte_window {
            let bytes = (window * f64::from(self.config.stack.mss)).floor();
            (self.board.pipe_bytes() + u64::from(len)) as f64 <= bytes
        } else {
            f64::from(self.board.pipe()) + 1.0 <= window
        }
    }

    /// cwnd, or what a recovery allows instead, in packets.
    #[inline]
    pub(super) fn window_in_force(&self) -> f64 {
        let cwnd = self.control.cwnd;
        self.recovery.allowance(self.state, cwnd, &self.config.stack)
    }

    /// Packets outstanding, in the window's unit.
    #[inline]
    pub(super) fn in_flight(&self) -> f64 {
        if self.config.byte_window {
            self.board.pipe_bytes() as f64 / f64::from(self.config.stack.mss)
        } else {
            f64::from(self.board.pipe())
        }
    }

    pub(super) fn window(&self) -> Window {
        Window { cwnd: self.control.cwnd, ssthresh: self.control.ssthresh }
    }

    #[inline]
    pub(super) fn cwv_input(&self, now: u64) -> CwvInput {
        CwvInput {
            now,
            clock: self.clock,
            window: self.window(),
            initial_window: self.config.stack.initial_window,
            in_flight: self.in_flight(),
            srtt: self.rtt.srtt().ps(),
            una: self.una,
            nxt: self.nxt,
        }
    }

    /// Tells the algorithm something, with the connection as it is, and reads its decision.
    #[inline]
    pub(super) fn notify_cc<R>(&mut self, now: u64, event: impl FnOnce(&mut dyn CongestionControl, &Conn) -> R) -> R {
        let conn = self.conn_apart(now);
        let answer = event(self.cc.as_mut(), &conn);
        self.control = self.cc.control();
        answer
    }

    /// Tells it of an ACK: [`Self::notify_cc`] of what happens most.
    #[inline(always)]
    pub(super) fn notify_ack(&mut self, now: u64, ack: &Ack) {
        let conn = self.conn(now);
        self.cc.on_ack(&conn, ack);
        self.control = self.cc.control();
    }

    /// Data arrived, with this ACK. Linux looks at an ACK that data repeat only off its fast path (`tcp_rcv_established`). While nothing is
    /// outstanding that is where they go: the socket holds no memory then, so that each segment asks for some (`sk_forward_alloc`).
    #[inline]
    pub fn on_peers_data(&mut self, ack: &Packet, now: u64) {
        if self.config.needs.empty_acks && self.board.is_empty() && ack.seq >= self.una {
            self.note_empty_ack(now);
        }
    }

    /// Tells it of an ACK that delivers nothing, if it wants to know.
    pub(super) fn note_empty_ack(&mut self, now: u64) {
        if self.config.needs.empty_acks {
            self.notify_cc(now, |cc, conn| cc.on_empty_ack(conn));
        }
    }

    #[inline(never)]
    fn conn_apart(&mut self, now: u64) -> Conn {
        self.conn(now)
    }

    #[inline(always)]
    fn conn(&mut self, now: u64) -> Conn {
        let mut conn = Conn::new(self.config.stack.mss);
        conn.now = Time::from_ps(now);
        conn.srtt = self.rtt.srtt();
        conn.min_rtt = self.rtt.min();
        conn.snd_una = self.una;
        conn.snd_nxt = self.nxt;
        conn.in_flight = self.in_flight();
        conn.loss_basis = self.loss_basis();
        conn.lost = self.board.lost_in_all();
        conn.keeps_fraction = self.config.stack.loss_basis == LossBasis::WholeWindow;
        conn.cwnd_limited = self.validation.cwnd_limited(self.window());
        conn.app_limited = self.rates.as_ref().is_some_and(|rates| rates.app_limited());
        conn.state = self.state;
        conn.message = self.messages.front().map(|m| Message {
            // From the next byte to send on, or from the message's own first byte while one before it is being sent.
            unsent: m.end.saturating_sub(self.nxt.max(m.start)),
            sent: self.nxt.saturating_sub(m.start),
            deadline: m.deadline.map(Time::from_ps),
            start: m.start,
        });
        conn.next_send = Time::from_ps(self.pace_at);
        if self.config.needs.randomness {
            // One draw for each event, used or not: what an algorithm draws does not depend on what it did before.
            conn.uniform = self.random.as_mut().map_or(0.0, |r| r.uniform());
        }
        conn
    }

    /// What a loss halves, in packets.
    fn loss_basis(&self) -> f64 {
        let stack = &self.config.stack;
        match stack.loss_basis {
            LossBasis::Flight => {
                let outstanding = if self.config.byte_window {
                    (self.nxt - self.una) as f64 / f64::from(stack.mss)
                } else {
                    f64::from(self.board.outstanding())
                };
                // RFC 5681 section 3.2: segments sent by limited transmit do not count. Nor does more than the window: in a recovery,
                // data that duplicate or selective ACKs let out is unacknowledged too, though as much has left the network.
                (outstanding - f64::from(self.recovery.limited_transmitted())).min(self.control.cwnd)
            }
            // The cast truncates; windows are not negative.
            // ns-2: int(windowd() / 2), which the algorithm gets when it halves this.
            LossBasis::WholeWindow => 2.0 * (self.control.cwnd / 2.0) as i64 as f64,
            // `tcp_reno_ssthresh` takes half of snd_cwnd, not of what is in flight.
            LossBasis::Window => self.control.cwnd,
        }
    }
}
