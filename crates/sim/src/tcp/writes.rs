//! How an application writes into a socket that has so much memory, and on as ACKs give it back (`tcp_sendmsg_locked`). Where the network card
//! cuts it writes in calls, which decide where the buffers end that `bursts.rs` sends.

use super::bursts::Asks;
use super::sender::{Phase, Sender};
use super::uplink::Uplink;
use crate::host::send_buffer::{Held, Socket};
use crate::timer::Timer;

/// Bytes of one call, as fanin's player on the virtual kernel and many programs have it.
const CALL: u64 = 65_536;
/// The send buffer holds so many windows (`tcp_sndbuf_expand`), under BBR one more (`bbr_sndbuf_expand`).
const WINDOWS: u64 = 2;

impl Sender {
    /// The application writes what it has handed over, as far as the socket has room; then it sleeps.
    pub(super) fn write_on(&mut self, net: &mut Uplink<'_>) {
        if self.phase != Phase::Established {
            return;
        }
        // `tcp_init_buffer_space`
        if self.frontier() == 0 {
            self.expand_buffer();
        }
        if self.plain_socket.is_some() {
            return self.write_segments(net.now);
        }
        while let Some((start, end)) = self.next_call() {
            if !self.call(start, end, net) {
                return;
            }
        }
    }

    /// The same where segments leave one by one.
    fn write_segments(&mut self, now: u64) {
        if self.frontier() == self.written {
            return;
        }
        self.note_app_limited(now);
        let (held, end) = (self.held(), self.written);
        if let Some(socket) = &mut self.plain_socket {
            socket.fill(held, end);
        }
    }

    /// What the application writes next with one call, which holds bytes of one message: from where, and where the call ends.
    fn next_call(&self) -> Option<(u64, u64)> {
        let from = self.offload.as_ref()?.socket.frontier;
        // The first message whose end is not written yet: one without bytes is passed over.
        let message = self.messages.get(self.messages.partition_point(|m| m.end <= from))?;
        let end = message.end.min(from.saturating_add(CALL)).min(self.written);
        (from < end).then_some((from, end))
    }

    /// One call; false if the socket has no room for all of it.
    fn call(&mut self, start: u64, end: u64, net: &mut Uplink<'_>) -> bool {
        self.note_app_limited(net.now);
        let (mss, una) = (self.config.stack.mss, self.una);
        // NS-2's one-way agents join no two writes in a packet.
        let mut apart = !self.config.stack.merge_writes && self.messages.iter().any(|m| m.start == start);
        let Some(goal) = self.offload.as_ref().map(|offload| offload.buffer(mss)) else { return false };
        loop {
            let Some(offload) = &mut self.offload else { return false };
            if !offload.fill(una, self.nxt, end, goal, apart) {
                // wait_for_space: tcp_push(TCP_NAGLE_PUSH) if this call has copied any, then sk_stream_wait_memory.
                if offload.socket.frontier > start {
                    offload.mark_push();
                    self.send_as_asked(Asks::ForAllNow, net);
                }
                return false;
            }
            apart = false;
            if offload.socket.frontier == end {
                break;
            }
            // forced_push: __tcp_push_pending_frames(TCP_NAGLE_PUSH); else tcp_push_one if this is the send head.
            if offload.must_push() {
                offload.mark_push();
                self.send_as_asked(Asks::ForAllNow, net);
            } else if offload.is_last() {
                self.send_as_asked(Asks::ForOne, net);
            }
        }
        if let Some(offload) = &mut self.offload {
            offload.mark_push();
        }
        // What the next call writes may join the last buffer.
        if end < self.written && !self.corks(goal, net.now) {
            self.send_as_asked(Asks::ForAll, net);
        }
        true
    }

    /// The last buffer waits for what is written next while the host holds more of this connection than it (`tcp_should_autocork`).
    fn corks(&mut self, goal: u64, now: u64) -> bool {
        let last = self.offload.as_ref().map_or(0, |offload| offload.last(self.nxt));
        // skb->len < size_goal, something is outstanding, and sk_wmem_alloc is above the buffer's own truesize.
        last < goal && !self.board.is_empty() && self.in_host.holds_more_than(self.config.stack.mss, last, now)
    }

    /// Looks whether ACKs, or what has left, have made room (`tcp_check_space`). The application runs, and writes, when what is done now is over.
    pub(super) fn check_space(&mut self, net: &mut Uplink<'_>) {
        if !self.waits_for_room() {
            return;
        }
        // `tcp_should_expand_sndbuf`
        if self.in_flight() < self.window_in_force() {
            self.expand_buffer();
        }
        let held = match &mut self.offload {
            Some(offload) => offload.held(self.una),
            None => self.held().memory(self.frontier()),
        };
        if self.socket_mut().is_some_and(|socket| socket.wakes(held)) && net.now < self.timer_at {
            self.timer_at = net.now;
            net.calendar.schedule_timer(self.timer_at, Timer::Source(self.flow));
        }
    }

    fn expand_buffer(&mut self) {
        let (window, mss) = (self.window_in_force(), self.config.stack.mss);
        let windows = WINDOWS + u64::from(self.control.pacing.is_some());
        if let Some(socket) = self.socket_mut() {
            socket.expand(windows, window, mss);
        }
    }

    /// What a plain socket holds.
    fn held(&self) -> Held {
        // Without SACK the scoreboard counts what duplicate ACKs let it assume.
        let sacked = if self.recovery.uses_sack() { self.board.sacked() } else { 0 };
        Held { acked: self.una, sacked, mss: self.config.stack.mss }
    }

    #[inline]
    fn socket(&self) -> Option<&Socket> {
        self.plain_socket.as_ref().or(self.offload.as_ref().map(|offload| &offload.socket))
    }

    fn socket_mut(&mut self) -> Option<&mut Socket> {
        self.plain_socket.as_mut().or(self.offload.as_mut().map(|offload| &mut offload.socket))
    }

    /// The application sleeps until the socket has room.
    #[inline]
    pub(super) fn waits_for_room(&self) -> bool {
        self.socket().is_some_and(Socket::waits)
    }

    /// One past the last byte that TCP has.
    #[inline]
    pub(super) fn frontier(&self) -> u64 {
        self.socket().map_or(self.written, |socket| socket.frontier)
    }

    /// Bytes that TCP has and has not sent yet.
    pub(super) fn unsent(&self) -> u64 {
        self.frontier() - self.nxt
    }
}
