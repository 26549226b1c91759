//! How a connection opens: SYN, the answer to it, and the last packet; what both sides learn of each other from them.

use super::receiver::Receiver;
use super::rtt::elapsed;
use super::sender::{Config, Phase, Sender};
use super::uplink::Uplink;
use crate::net::Net;
use crate::packet::{Packet, TICK_PS, flags};
use crate::stack::{EcnMode, Stack};
use crate::timer::Timer;
use fanin_cc::{Needs, Window};
use fanin_units::Duration;
use std::sync::Arc;

/// What became of the handshake on the side that answers it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Opening {
    /// No SYN yet.
    Closed,
    /// Answered.
    Answered {
        /// When, ps; `None`: more than once, so that the answer's ACK is no RTT sample (Karn).
        at: Option<u64>,
        /// The time stamp of the first SYN, which Linux's answers to all of them echo (`req->ts_recent`).
        asked: u64,
    },
    /// A packet after the SYN has arrived.
    Open,
}

impl Config {
    /// The same for a connection that was opened without ECN.
    fn without_ecn(&self) -> Config {
        Config::new(Stack { ecn: EcnMode::Off, ..self.stack.clone() }, Needs { dctcp_ecn: false, ..self.needs })
    }

    /// What a packet of the handshake says of ECN: a SYN asks for it, the answer grants it.
    fn ecn_offer(&self) -> u16 {
        if self.stack.ecn == EcnMode::Off { 0 } else { flags::ECE }
    }
}

fn forgo_ecn(config: &mut Arc<Config>) {
    if config.stack.ecn != EcnMode::Off {
        *config = Arc::new(config.without_ecn());
    }
}

/// The round trip as a time stamp of then tells it, where nothing else does (`tcp_rtt_tsopt_us`).
pub(super) fn coarse_round_trip(now: u64, then: u64) -> Duration {
    // `tcp_rtt_tsopt_us`: delta in ticks of a millisecond, at least min_delta = 1.
    Duration::from_ps((now / TICK_PS).saturating_sub(then / TICK_PS).max(1) * TICK_PS)
}

impl Sender {
    /// The application connects before it has anything to say.
    pub fn open(&mut self, net: &mut Uplink<'_>) {
        if self.phase == Phase::Closed && self.config.stack.handshake {
            self.connect(net);
        }
    }

    /// Opens the connection once the host has opened those before it.
    pub(super) fn connect(&mut self, net: &mut Uplink<'_>) {
        let turn = net.turn_to_connect(self.flow, self.config.stack.connect_time);
        if turn <= net.now {
            return self.send_syn(net);
        }
        self.phase = Phase::Queued;
        self.rto_at = turn;
        self.arm(net);
    }

    fn send_syn(&mut self, net: &mut Uplink<'_>) {
        self.phase = Phase::SynSent;
        let now = net.now;
        let lag = self.lag();
        // `tcp_ecn_clear_syn`
        let gives_up = self.syns_lost() > 0 && self.config.stack.ecn_fallback;
        let offer = if gives_up { 0 } else { self.config.ecn_offer() };
        let syn = Packet {
            seq: 0,
            timestamp: now,
            flow: self.flow,
            wire: self.config.empty_wire + self.config.stack.syn_bytes(),
            flags: flags::SYN | self.config.control_ect | offer,
            ..Packet::default()
        };
        net.send_late(syn, lag);
        self.start_rto(net.now);
        self.arm(net);
    }

    /// Timeouts of a connection that is not open yet.
    fn syns_lost(&self) -> u32 {
        self.counters.timeouts
    }

    /// It is this connection's turn to be opened, or no answer to the SYN came in time.
    pub(super) fn on_syn_timer(&mut self, net: &mut Uplink<'_>) {
        if self.phase == Phase::Queued {
            return self.send_syn(net);
        }
        self.counters.timeouts += 1;
        // tcp_syn_linear_timeouts: the first ones do not back off.
        if self.syns_lost() > self.config.stack.syn_linear_timeouts {
            self.rtt.backoff += 1;
        }
        self.send_syn(net);
    }

    pub(super) fn on_syn_ack(&mut self, packet: &Packet, net: &mut Uplink<'_>) {
        if self.phase != Phase::SynSent {
            return;
        }
        // A SYN/ACK ends the handshake for the side that asked.
        self.phase = Phase::Established;
        // RFC 3168 section 6.1.1: without ECE in the answer the connection has no ECN.
        if !packet.has(flags::ECE) {
            self.forgo_ecn();
            if let Some(peer) = self.peer {
                net.receivers[peer].forgo_ecn();
            }
        }
        let stack = &self.config.stack;
        // Karn: no sample of a SYN that was sent again; its time stamp tells whole milliseconds.
        if self.syns_lost() == 0 {
            let rtt = elapsed(packet.timestamp, net.now, stack);
            self.rtt.sample(rtt, self.una, self.nxt, stack);
        } else if stack.timestamps && stack.coarse_timestamps {
            self.rtt.sample(coarse_round_trip(net.now, packet.timestamp), self.una, self.nxt, stack);
        }
        if self.syns_lost() > self.config.stack.free_syn_losses {
            // RFC 5681 section 3.1: the loss of a SYN or SYN/ACK leaves an initial window of one segment.
            // `tcp_init_transfer` allows one: the first timeout is 1 s (RFC 6298), where RFC 5681 had 3 s in mind.
            let one = Window { cwnd: 1.0, ssthresh: self.control.ssthresh };
            self.notify_cc(net.now, |cc, conn| cc.on_restart(conn, Duration::ZERO, one));
        }
        self.rtt.backoff = 0;
        self.rto_at = u64::MAX;
        if self.config.stack.handshake_ack {
            self.complete_handshake(net);
        }
        if net.hosts.is_some() {
            // The application that waits for the connection runs, and writes, when the poll that brought the SYN/ACK is over.
            self.timer_at = net.now;
            return net.calendar.schedule_timer(self.timer_at, Timer::Source(self.flow));
        }
        self.write_on(net);
        self.try_send(net);
        self.trace(net);
    }

    /// The last packet of a handshake, when nothing else carries it.
    fn complete_handshake(&mut self, net: &mut Uplink<'_>) {
        let packet = Packet {
            seq: 0,
            timestamp: net.now,
            sack: [0; 6],
            flow: self.flow,
            len: 0,
            wire: self.config.empty_wire,
            flags: flags::EMPTY | self.config.control_ect,
            window: 0,
            id: 0,
            tick: self.heard_tick,
        };
        self.put_on_wire(packet, true, net);
    }

    /// The first packet after the SYN arrived from the other side, `rtt` after the SYN/ACK had left: the first sample of a passive opener
    /// (RFC 6298 section 2; `tcp_synack_rtt_meas`).
    pub fn opened_by_peer(&mut self, rtt: Option<Duration>, net: &mut Uplink<'_>) {
        if self.phase == Phase::Established {
            return;
        }
        let waiting = self.phase == Phase::SynReceived;
        self.phase = Phase::Established;
        self.rtt.backoff = 0;
        self.rto_at = u64::MAX;
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt, self.una, self.nxt, &self.config.stack);
        }
        if waiting {
            self.write_on(net);
            self.try_send(net);
            self.trace(net);
        }
    }

    /// The connection was opened without ECN. Under DCTCP it goes on as Reno's: no mark comes any more (`dctcp_reno`).
    pub fn forgo_ecn(&mut self) {
        forgo_ecn(&mut self.config);
    }
}

impl Receiver {
    /// The connection was opened without ECN.
    pub fn forgo_ecn(&mut self) {
        forgo_ecn(&mut self.config);
    }

    /// It has ECN, as far as this side knows.
    pub fn has_ecn(&self) -> bool {
        self.config.stack.ecn != EcnMode::Off
    }

    pub(super) fn answer_syn(&mut self, packet: &Packet, net: &mut Net) {
        let mut echo = packet.timestamp;
        self.opening = match self.opening {
            Opening::Closed => {
                // The first SYN decides (`tcp_ecn_create_request`).
                if !packet.has(flags::ECE) {
                    self.forgo_ecn();
                }
                Opening::Answered { at: Some(net.now), asked: packet.timestamp }
            }
            Opening::Answered { asked, .. } => {
                if self.config.stack.coarse_timestamps {
                    echo = asked;
                }
                // Karn: from here on a time stamp alone tells which of the answers an ACK is for.
                Opening::Answered { at: None, asked }
            }
            Opening::Open => Opening::Open,
        };
        let answer = Packet {
            timestamp: echo,
            flow: self.flow,
            wire: self.config.empty_wire + self.config.stack.syn_bytes(),
            flags: flags::SYN | flags::ACK | self.config.control_ect | self.config.ecn_offer(),
            window: u32::try_from(self.window).unwrap_or(u32::MAX),
            tick: (net.now / TICK_PS) as u32,
            ..Packet::default()
        };
        let lag = self.lag();
        net.send_late(answer, lag);
    }

    /// Once, when the first packet after the SYN arrives: the round trip from SYN/ACK to there, if it is known. After several answers the
    /// packet's time stamp tells of which it was the ACK.
    pub fn take_opening(&mut self, packet: &Packet, now: u64) -> Option<Option<Duration>> {
        let stack = &self.config.stack;
        let sample = match self.opening {
            Opening::Open => return None,
            Opening::Closed => None,
            Opening::Answered { at: Some(at), .. } => Some(elapsed(at, now, stack)),
            Opening::Answered { at: None, .. } => (stack.timestamps && stack.coarse_timestamps)
                .then(|| coarse_round_trip(now, u64::from(packet.tick) * TICK_PS)),
        };
        self.opening = Opening::Open;
        Some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_stamp_tells_whole_milliseconds_and_at_least_one() {
        let ms = |now, then| coarse_round_trip(now, then).as_secs() * 1e3;
        assert_eq!(ms(5_100_000_000, 5_050_000_000), 1.0);
        assert_eq!(ms(6_010_000_000, 4_990_000_000), 2.0);
    }
}
