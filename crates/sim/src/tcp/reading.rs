//! When the application of a receiver with a tuned buffer reads, and what is acknowledged before or after that (`__tcp_ack_snd_check`,
//! `__tcp_cleanup_rbuf`). It runs when the softirq is over that brought the data: all segments of one poll are with TCP by then, and ACKs that they
//! asked for have left, with the window that was free before the reading.

use super::receiver::Receiver;
use super::tuning::Segment;
use crate::net::Net;
use crate::packet::Packet;

impl Receiver {
    /// The receive buffer follows what arrives; while the window grows each segment is acknowledged at once (`tcp_grow_window`).
    pub(super) fn tune(&mut self, packet: &Packet, before: u64, net: &Net) {
        let now = net.now;
        let read_at = net.hosts.as_ref().map_or(now, |hosts| hosts.reads_until(packet.flow, now));
        let ahead = self.arrived.bytes_ahead();
        let window = self.edge.saturating_sub(self.last_ack_sent);
        let Some(buffer) = &mut self.buffer else { return };
        let segment = Segment {
            len: u64::from(packet.len),
            in_order: packet.seq == before,
            echo: packet.tick,
            nxt: self.arrived.nxt,
            ahead,
            complete: self.first_end <= self.arrived.nxt,
            window,
            now,
            read_at,
        };
        // `tcp_grow_window`: icsk_ack.quick |= 1.
        if buffer.on_segment(&segment) {
            self.quick_left |= 1;
        }
        self.window = buffer.window(ahead);
    }

    /// An ACK is due whose window is smaller than the one told last, because the application has not read what it now can: it leaves when that is
    /// read ("right edge of window advances far enough").
    pub(super) fn waits_for_reader(&self) -> bool {
        let Some(buffer) = self.buffer.as_ref().filter(|buffer| buffer.reads_at().is_some()) else { return false };
        // __tcp_select_window(sk) >= tp->rcv_wnd does not hold: "tcp_recvmsg() will send ACK otherwise".
        buffer.told(buffer.window(self.arrived.bytes_ahead())) < self.edge.saturating_sub(self.last_ack_sent)
    }

    /// The application reads and acknowledges what has come: at once, or on a host that costs something when that is done with the poll and the
    /// application awake (`tcp_recvmsg`, `__tcp_cleanup_rbuf`).
    pub(super) fn acknowledge_when_read(&mut self, net: &mut Net) {
        if net.hosts.is_none() {
            return self.acknowledge_read(net);
        }
        self.reads = true;
        self.arm(net);
    }

    /// When the application reads what an ACK waits for, ps; `u64::MAX` if none does.
    pub(super) fn read_at(&self) -> u64 {
        let soon = || self.buffer.as_ref().and_then(|buffer| buffer.reads_at()).unwrap_or(0);
        if self.reads { soon() } else { u64::MAX }
    }

    pub(super) fn acknowledge_read(&mut self, net: &mut Net) {
        if let Some(buffer) = &mut self.buffer {
            buffer.read(net.now);
            self.window = buffer.window(self.arrived.bytes_ahead());
        }
        self.acknowledge(net);
    }

    /// Before an ACK leaves: what was there to read before `now` is read.
    #[inline]
    pub(super) fn catch_up(&mut self, now: u64) {
        if let Some(buffer) = &mut self.buffer
            && buffer.read_before(now)
        {
            self.window = buffer.window(self.arrived.bytes_ahead());
        }
    }
}
