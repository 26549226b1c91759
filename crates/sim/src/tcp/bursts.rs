//! What may leave now where the network card cuts: TCP hands it bursts (`tcp_write_xmit`, `tcp_xmit_retransmit_queue`). Segment by segment it
//! is in `transmit.rs`; how long a burst should be in `host/offload.rs`.

use super::sender::{Phase, Sender};
use super::transmit::Part;
use super::uplink::Uplink;
use super::validation::Rto;
use crate::host::offload::{Chance, Verdict, Waiting, goal, quota};
use fanin_cc::State;

/// Who asks for bursts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asks {
    /// All that may leave.
    ForAll,
    /// The same, though Nagle's rule would hold the last (`TCP_NAGLE_PUSH`): an application that has written much, or has no room for more.
    ForAllNow,
    /// An application that has filled its first buffer and goes on writing: for one, which waits for nothing (`tcp_push_one`).
    ForOne,
    /// A tail-loss probe: for one, though the window be full.
    ToProbe,
}

impl Asks {
    fn for_all(self) -> bool {
        matches!(self, Asks::ForAll | Asks::ForAllNow)
    }
}

impl Sender {
    /// Sends whatever may leave now.
    pub(super) fn send_bursts(&mut self, net: &mut Uplink<'_>) {
        self.send_as_asked(Asks::ForAll, net);
        self.check_space(net);
        self.schedule_tail_probe(net);
        self.arm(net);
    }

    /// One burst of new data for a tail-loss probe; false if there is nothing or the receiver has no room.
    pub(super) fn probe_with_new_burst(&mut self, net: &mut Uplink<'_>) -> bool {
        let before = self.nxt;
        self.send_as_asked(Asks::ToProbe, net);
        self.nxt > before
    }

    pub(super) fn send_as_asked(&mut self, asks: Asks, net: &mut Uplink<'_>) {
        if self.phase != Phase::Established {
            return;
        }
        let most = self.burst_goal();
        let mut left = if self.config.stack.max_burst == 0 { u32::MAX } else { self.config.stack.max_burst };
        let (mut sent, mut waits) = (false, false);
        // As segment by segment: what is lost first, then new data.
        while left > 0 {
            if self.paced() && self.pace_at > net.now && asks != Asks::ToProbe {
                break;
            }
            let most = most.min(left);
            let resends = asks.for_all() && self.board.pending() > 0 && self.recovery.resends(self.state);
            let segments = if resends {
                self.resend_burst(most, net)
            } else {
                match self.send_new_burst(most, asks, &mut waits, net) {
                    0 => u32::from(asks.for_all() && self.resend_in_doubt(net)),
                    segments => segments,
                }
            };
            if segments == 0 {
                break;
            }
            sent = true;
            left -= segments;
            if !asks.for_all() {
                break;
            }
        }
        self.judge_use(sent, waits, net.now);
    }

    /// Whether the window is used, once for all that left (`tcp_cwnd_validate`). `waits`: the window is why a burst waits.
    fn judge_use(&mut self, sent: bool, waits: bool, now: u64) {
        let limited = waits || !self.window_has_room(self.config.stack.mss);
        self.window_is_full = limited;
        if !sent && !limited {
            return;
        }
        let s = self.cwv_input(now);
        let (rtt, stack) = (&self.rtt, &self.config.stack);
        if let Some(restart) = self.validation.note_use(&s, limited, || Rto::of(rtt, stack))
            && !self.config.needs.handles_idle
        {
            self.restart(restart, now);
        }
    }

    fn burst_goal(&self) -> u32 {
        let paces = self.control.pacing.is_some();
        goal(self.config.stack.mss, self.payload_rate(), self.rtt.min().ps(), paces)
    }

    /// Segments that the window lets out at once.
    fn burst_quota(&self) -> u32 {
        let in_flight = if self.config.byte_window {
            self.board.pipe_bytes().div_ceil(u64::from(self.config.stack.mss)) as f64
        } else {
            f64::from(self.board.pipe())
        };
        // `tcp_cwnd_test`: min(cwnd - in_flight, max(cwnd >> 1, 1)), so that two bursts at least are under way.
        quota(self.window_in_force(), in_flight)
    }

    /// How many segments of new data left as one burst of at most `most`.
    fn send_new_burst(&mut self, most: u32, asks: Asks, waits: &mut bool, net: &mut Uplink<'_>) -> u32 {
        if self.unsent() == 0 || asks.for_all() && self.board.pending() > 0 && self.recovery.resends(self.state) {
            return 0;
        }
        self.restart_after_idle(net.now);
        let least = u32::from(asks == Asks::ToProbe);
        // `tcp_write_xmit`, push_one = 2: "Force out a loss probe pkt", though the window be full.
        let room = self.burst_quota().max(least).min(most);
        let Some(len) = self.burst_of(room, most, asks, waits, net.now) else { return 0 };
        self.cut_buffer(len);
        if self.host_holds_enough(len, false, net.now) || !self.gate_opens(net) {
            return 0;
        }
        // The algorithm may have lowered its window at the gate.
        let room = if self.config.needs.send_hook { self.burst_quota().max(least) } else { room };
        let len = len.min(u64::from(room) * u64::from(self.config.stack.mss));
        self.cut_buffer(len);
        self.send_burst(len, net)
    }

    /// The first buffer is as long as the burst that it is to leave as.
    fn cut_buffer(&mut self, len: u64) {
        let end = self.nxt + len;
        if let Some(offload) = &mut self.offload {
            offload.cut(end);
        }
    }

    /// Bytes of the next burst, of at most `room` segments where `most` are wanted; `None` if none may leave.
    fn burst_of(&mut self, room: u32, most: u32, asks: Asks, waits: &mut bool, now: u64) -> Option<u64> {
        let mss = self.config.stack.mss;
        let message = if self.config.stack.merge_writes { None } else { self.messages.front() };
        let border = message.map_or(u64::MAX, |m| m.end);
        let whole = u64::from(mss);
        let max = u64::from(room) * whole;
        let offload = self.offload.as_mut()?;
        let first = offload.grow(self.nxt, max, border);
        let is_last = offload.is_last() || self.nxt + first == border;
        // `tcp_snd_wnd_test`: the first segment of a burst must fit into the receiver's window.
        let open = self.edge.saturating_sub(self.nxt);
        if room == 0 || first == 0 || open < first.min(whole) {
            return None;
        }
        // A single segment asks Nagle (`tcp_nagle_test`), a longer burst whether to wait (`tcp_tso_should_defer`).
        if first <= whole {
            let held = asks == Asks::ForAll && is_last && self.nagle_holds(first as u32, mss);
            return (!held).then_some(first);
        }
        if asks.for_all() {
            let waiting = Waiting { first, is_last };
            // `tcp_tso_should_defer`: a burst that would soon be longer waits.
            if let Verdict::Wait { cwnd_limited } = self.chance(waiting, open, most, now).judge() {
                *waits |= cwnd_limited;
                return None;
            }
        }
        if max <= open && !is_last {
            return Some(max.min(first));
        }
        let needed = first.min(open);
        if max <= needed {
            return Some(max);
        }
        // `tcp_mss_split_point`: whole segments, and the last short one unless Nagle holds it, though more be behind it.
        let partial = needed % whole;
        let held = partial > 0 && asks == Asks::ForAll && self.nagle_holds(partial as u32, mss);
        Some(if held { needed - partial } else { needed })
    }

    fn chance(&self, waiting: Waiting, open: u64, most: u32, now: u64) -> Chance {
        let mss = u64::from(self.config.stack.mss);
        let window = self.window_in_force().max(0.0) as u64;
        let in_flight = self.in_flight().max(0.0) as u64;
        // tp->snd_wnd; before an ACK has told it, what is left of the first window.
        let told = if self.told_window > 0 { u64::from(self.told_window) } else { self.edge - self.una };
        Chance {
            now,
            window: window * mss,
            free: window.saturating_sub(in_flight) * mss,
            told,
            open,
            wanted: u64::from(most) * mss,
            waiting,
            last_send: self.validation.last_send().max(self.pace_at),
            front_sent: self.board.front().map(|s| s.sent_at),
            srtt: self.rtt.srtt().ps(),
            recovers: matches!(self.state, State::Recovery | State::Loss),
        }
    }

    /// Sends so many bytes of new data as one burst; its segments.
    fn send_burst(&mut self, len: u64, net: &mut Uplink<'_>) -> u32 {
        let mss = self.config.stack.mss;
        let (mut left, mut segments, mut wire) = (len, 0, 0);
        let whole_from = self.crosses_whole(len).then_some(self.nxt);
        while left > 0 {
            let size = left.min(u64::from(mss)) as u32;
            left -= u64::from(size);
            self.send_segment(
                size,
                mss,
                Part { first: segments == 0, last: left == 0, of_burst: true, whole_from },
                net,
            );
            wire += self.config.stack.wire(size).get();
            segments += 1;
        }
        if let Some(offload) = &mut self.offload {
            offload.note_sent(self.nxt);
        }
        self.after_burst(wire, net.now);
        self.check_space(net);
        segments
    }

    /// Sends again, as one burst, lost segments that left as one and follow each other; how many.
    fn resend_burst(&mut self, most: u32, net: &mut Uplink<'_>) -> u32 {
        let Some(first) = self.board.next_lost() else { return 0 };
        let mss = self.config.stack.mss;
        if !self.window_has_room(self.board.get(first).len) {
            return 0;
        }
        // segs = snd_cwnd - packets_in_flight, and at most tcp_tso_segs.
        let room = (self.window_in_force() - self.in_flight()).max(1.0) as u32;
        // `tcp_xmit_retransmit_queue`: buffer by buffer, each as much as the window lets out.
        let count = self.board.lost_run(first, room.min(most));
        if self.host_holds_enough(u64::from(count) * u64::from(mss), true, net.now) {
            return 0;
        }
        let bytes: u64 = (0..count).map(|i| u64::from(self.board.get(first + i as usize).len)).sum();
        let whole_from = self.crosses_whole(bytes).then(|| self.board.get(first).seq);
        let mut wire = 0;
        for i in 0..count {
            let index = first + i as usize;
            wire += self.config.stack.wire(self.board.get(index).len).get();
            self.resend_part(index, Part { first: i == 0, last: i + 1 == count, of_burst: true, whole_from }, net);
        }
        self.board.cut(first + count as usize);
        self.after_burst(wire, net.now);
        count
    }

    /// No card cuts a burst of so many bytes (`stack.tso_whole`).
    fn crosses_whole(&self, bytes: u64) -> bool {
        let stack = &self.config.stack;
        let segments = bytes.div_ceil(u64::from(stack.mss));
        let wire = bytes + segments * stack.wire(0).get();
        segments > 1 && wire <= u64::from(stack.longest_whole())
    }

    /// TCP small queues, in bursts: one of so many bytes waits until the host has sent more of this connection (`tcp_small_queue_check`).
    fn host_holds_enough(&mut self, bytes: u64, resends: bool, now: u64) -> bool {
        // Each burst is judged anew: an ACK may have made it long enough to leave now (the limit is twice its memory).
        self.held_until = 0;
        let time = self.config.stack.tsq_limit;
        if time.is_zero() || self.in_host.held(now) == 0 {
            return false;
        }
        // limit = max(2 truesize, sk_pacing_rate >> sk_pacing_shift), twice that for what is sent again (factor 1).
        let share = self.payload_rate() * time.as_secs();
        let full = self.in_host.is_full(self.config.stack.mss, bytes, share, self.paced(), resends);
        // What is alone there goes at once.
        if !full || self.board.is_one_burst() {
            return false;
        }
        self.held_until = self.held_until.max(self.in_host.next_departure());
        true
    }
}
