//! The endpoint's knobs and the named sets of them: honest about which TCP it is.
//!
//! Every knob is declared once, in [`crate::knobs::KNOBS`], with what it means and who says so; profiles are values for them.

use crate::policies;
use fanin_cc::{Counting, Profile, RecoveryKind};
use fanin_units::{Bytes, Duration};

/// Declares a stack by its policies: each is a type of its own, of which every profile states every field, and [`Stack`] has them all side by side.
macro_rules! policies {
    ($(#[$of:meta])* $stack:ident; $($(#[$doc:meta])* $policy:ident: $type:ident { $($(#[$about:meta])* $field:ident: $value:ty,)* })*) => {
        $(#[$of])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $stack {
            $($($(#[$about])* pub $field: $value,)*)*
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq)]
            pub struct $type {
                $($(#[$about])* pub $field: $value,)*
            }
        )*

        /// What a profile is composed of.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Policies {
            $($(#[$doc])* pub $policy: $type,)*
        }

        impl Policies {
            /// Each policy, and the knobs that are its settings.
            pub const KNOBS: &[(&str, &[&str])] = &[$((stringify!($policy), &[$(stringify!($field)),*])),*];
        }

        impl From<Policies> for $stack {
            fn from(policies: Policies) -> $stack {
                $(let $type { $($field),* } = policies.$policy;)*
                $stack { $($($field),*),* }
            }
        }
    };
}

policies! {
    /// All knobs of a TCP endpoint: what its policies say, side by side.
    Stack;
    /// What a segment is, and how many go to the network card at once.
    segments: SegmentPolicy {
        /// Payload of a full segment.
        mss: u32,
        /// IP and TCP headers with options, on data and on ACKs.
        header: Bytes,
        /// A packet without data is as long as its options: a SYN, and an ACK with selective acknowledgements, more than `header`.
        option_bytes: bool,
        /// Link-layer bytes per frame (Ethernet header, FCS, preamble, gap: 38).
        frame_overhead: Bytes,
        /// Holding small segments.
        nagle: Nagle,
        /// Segments may join bytes of different application writes.
        merge_writes: bool,
        /// Most segments sent in answer to one ACK (NS2's burst limit in recovery is separate); 0 is unlimited.
        max_burst: u32,
        /// TCP hands many segments at once to the network card, which cuts them (TSO).
        tso: bool,
        /// Bursts of several segments up to this size on the wire cross the network as one packet; zero where network cards cut all.
        tso_whole: Bytes,
    }
    /// How a connection is opened.
    opening: OpeningPolicy {
        /// Three-way handshake before the first data.
        handshake: bool,
        /// What a host takes to open a connection: those that it opens at one instant follow each other so.
        connect_time: Duration,
        /// So many timeouts of a SYN are not backed off from.
        syn_linear_timeouts: u32,
        /// So many SYNs may be lost before a connection begins with a window of one segment.
        free_syn_losses: u32,
        /// The handshake's last ACK leaves by itself, ahead of the data.
        handshake_ack: bool,
    }
    /// What the congestion window counts, begins with and grows by, and what silence makes of it.
    window: WindowPolicy {
        /// Whose defaults an algorithm's parameters take, and whose algorithm `reno` is: the kernel's module or RFC 5681's sender.
        cc_profile: Profile,
        /// Initial window in segments.
        initial_window: f64,
        /// Initial slow-start threshold in segments.
        initial_ssthresh: f64,
        /// The window counts packets or bytes.
        window_unit: WindowUnit,
        /// Turning ACKs into growth.
        counting: Counting,
        /// Idle and application-limited periods.
        cwnd_validation: CwndValidation,
    }
    /// What holds segments back that the window allows.
    pacing: PacingPolicy {
        /// Pace an algorithm that does not ask for it at Linux's 2.0/1.2 x cwnd/srtt.
        pacing: bool,
        /// The first data segments of a connection that pacing does not hold.
        unpaced_segments: u32,
        /// A segment that leaves later than pacing allows shortens the wait after it by as much, at most by half.
        pacing_credit: bool,
        /// A flow waits while its host has two of its segments and what its pacing rate sends in this time; zero is unlimited (TCP small queues).
        tsq_limit: Duration,
    }
    /// How losses are found and repaired, and what they do to the window.
    recovery: RecoveryPolicy {
        /// Finding and repairing losses, unless the algorithm's name says.
        recovery: RecoveryKind,
        /// What a loss halves.
        loss_basis: LossBasis,
        /// Without SACK each duplicate ACK counts as a delivered segment, which the ACK that closes the hole does not count again.
        dupacks_deliver: bool,
        /// The ACK that ends a recovery enlarges the window.
        grow_after_recovery: GrowAfterRecovery,
        /// Reno may begin a second recovery within one window of data.
        repeat_recovery: bool,
        /// When an ACK of new data restarts the retransmission timer in a recovery.
        rto_restart: RtoRestart,
        /// NewReno leaves a recovery with at most the flight and one segment more as its window.
        exit_to_flight: bool,
        /// Duplicate ACKs that mean loss.
        dup_thresh: u32,
        /// One new segment on each of the first two duplicate ACKs (RFC 3042).
        limited_transmit: bool,
    }
    /// What round trips are learned from, and the retransmission timer.
    timers: TimerPolicy {
        /// The round trip that the algorithm is told.
        cc_rtt: CcRtt,
        /// Timestamps: a sample from every ACK, also of retransmissions.
        timestamps: bool,
        /// Where only a timestamp tells the round trip, after a retransmission, it is so many whole milliseconds, at least one.
        coarse_timestamps: bool,
        /// What the retransmission timer learns round trips from.
        rtt_timing: RttTiming,
        /// Round RTT samples up to whole clock ticks (NS2's tcpTick_).
        quantise_rtt: bool,
        /// G of RFC 6298, and the grid RTT samples are rounded to when `quantise_rtt` is set.
        clock_granularity: Duration,
        /// RTO = SRTT + max(4*mdev, min_rto) with the deviation's windowed maximum (Linux) instead of max(min_rto, SRTT + 4*RTTVAR).
        linux_rto: bool,
        /// Floor of the retransmission timer.
        min_rto: Duration,
        /// The same of hosts that are sent more than they send; zero where it is `min_rto`.
        receiver_min_rto: Duration,
        /// Ceiling of the retransmission timer.
        max_rto: Duration,
        /// Timer before the first sample.
        initial_rto: Duration,
        /// Jiffies per second of the kernel (CONFIG_HZ).
        hz: u32,
        /// Timers count in jiffies and expire when the kernel's timer wheel gets to them.
        timer_wheel: bool,
    }
    /// When a receiver acknowledges.
    acks: AckPolicy {
        /// Data carry the ACK of the opposite direction of their connection.
        two_way: bool,
        /// Segments per ACK; 1 acknowledges every packet.
        delack_segments: u32,
        /// Segments that do not delay an ACK are counted by their bytes, those of a full one being what the receiver takes for it (`rcv_mss`).
        delack_bytes: bool,
        /// Longest an ACK is delayed.
        delack_timeout: Duration,
        /// An ACK is delayed by a jiffy less than the host's own retransmission timer at least waits (`tcp_delack_max`).
        delack_below_rto: bool,
        /// Receivers acknowledge every packet of algorithms that live on RTT samples, whatever `delack_segments` says.
        route_quickack: bool,
        /// Segments acknowledged at once at the start of a connection (Linux quick-ACK mode).
        initial_quickacks: u32,
        /// ACKs of a host that answers at once wait for the answer; else the end of what an application wrote is acknowledged at once.
        pingpong: bool,
        /// A segment that tells of a reduced window (CWR) is acknowledged at once.
        ack_on_cwr: bool,
        /// Most ACKs of data ahead of a hole that Linux merges into one; 0 sends each (`tcp_comp_sack_nr`).
        comp_sack_nr: u32,
        /// Longest that the first of them waits; a twentieth of the round trip if that is less (`tcp_comp_sack_delay_ns`).
        comp_sack_delay: Duration,
        /// How much later the kernel's timer may go off (`tcp_comp_sack_slack_ns`).
        comp_sack_slack: Duration,
    }
    /// The receive window and its buffer.
    receiver: ReceiverPolicy {
        /// Receive window; where the buffer is tuned, the most that the buffer becomes.
        receive_window: Bytes,
        /// The receive buffer that Linux starts with and tunes (`tcp_rmem`, `tcp_moderate_rcvbuf`); zero where the window is fixed.
        receive_buffer: Bytes,
        /// An application reads when so many bytes have come, or its message is complete.
        read_size: Bytes,
        /// Which segments in the receive queue become one buffer.
        coalesce: Coalesce,
    }
    /// Explicit congestion notification.
    ecn: EcnPolicy {
        /// ECN as the endpoint does it, unless the algorithm needs DCTCP's.
        ecn: EcnMode,
        /// A SYN that is sent again asks for no ECN, and the connection does without.
        ecn_fallback: bool,
        /// ECT also on SYN, pure ACKs and retransmissions.
        ect_on_control: EctOnControl,
        /// cwnd may grow between an ECN reduction and the end of that window of data (not on ACKs with ECE themselves).
        grow_in_cwr: bool,
    }
    /// How far hosts are from equal and exact.
    noise: NoisePolicy {
        /// All hosts tick at the same instants, from the run's begin on.
        common_ticks: bool,
        /// Random processing time of each packet in the host that sends it, uniform on [0, this); order and rate are kept (NS2's overhead_).
        send_jitter: Duration,
        /// Every link sends at a rate that is off by a random part of this size, parts per million: no two clocks are equal.
        clock_error_ppm: f64,
        /// With `tso_whole`: every link is a token bucket of that size, whose timer is late by this on average; zero where links are lines.
        bucket_latency: Duration,
    }
}

impl Stack {
    /// What NS2's one-way agents do, and the TRIM, GSS and DCVegas papers rest on.
    ///
    /// RTT samples are exact: with NS2's default 10 ms tick every delay-based algorithm of the papers would be blind
    /// (`quantise_rtt` and `clock_granularity` bring the tick back).
    pub fn ns2() -> Stack {
        Stack::from(policies::ns2())
    }

    /// RFC 5681, 6582, 6675, 6298, 3042, 7661 as written.
    pub fn rfc() -> Stack {
        Stack::from(policies::rfc())
    }

    /// What a current Linux kernel does with its default settings.
    pub fn linux() -> Stack {
        Stack::from(policies::linux())
    }

    /// SYN, pure ACKs and retransmissions are ECN-capable.
    pub fn control_is_ect(&self) -> bool {
        match self.ect_on_control {
            EctOnControl::Never => false,
            EctOnControl::Dctcp => self.ecn == EcnMode::Dctcp,
            EctOnControl::Always => self.ecn != EcnMode::Off,
        }
    }

    /// Bytes on the wire of the longest burst that no card cuts; zero where all are cut, or there are none.
    pub fn longest_whole(&self) -> u16 {
        if self.tso { self.tso_whole.get().min(u64::from(u16::MAX)) as u16 } else { 0 }
    }

    /// Floor of the retransmission timer of a host that is sent more than it sends, or of one that is not.
    pub fn min_rto_of(&self, receives: bool) -> Duration {
        if receives && !self.receiver_min_rto.is_zero() { self.receiver_min_rto } else { self.min_rto }
    }

    /// Longest that a host delays an ACK, whose own timer's floor is `min_rto`: 40 ms (`TCP_DELACK_MIN`), or a jiffy less than that floor,
    /// at least one (tcp_output.c, `tcp_delack_max`: of a route's `rto_min` since Linux 6.7, of `tcp_rto_min_us` since 6.11).
    pub fn longest_delack(&self) -> Duration {
        if !self.delack_below_rto {
            return self.delack_timeout;
        }
        let jiffy = Duration::s(1) / u64::from(self.hz.max(1));
        self.delack_timeout.min((self.min_rto - jiffy).max(jiffy))
    }

    /// Bytes on the wire of a segment with `payload` bytes.
    pub fn wire(&self, payload: u32) -> Bytes {
        Bytes::new(u64::from(payload)) + self.header + self.frame_overhead
    }

    /// What an ACK's selective acknowledgements add: two bytes of the option, two of padding, eight for each block (RFC 2018 section 3). A block
    /// that tells of a duplicate comes first (RFC 2883), and there is room for three beside a time stamp.
    #[inline]
    pub fn sack_bytes(&self, blocks: &[u32; 6], duplicate: bool) -> u16 {
        if !self.option_bytes {
            return 0;
        }
        let ahead = blocks.chunks_exact(2).filter(|block| block[1] > 0).count();
        match (ahead + usize::from(duplicate)).min(3) {
            0 => 0,
            count => 4 + 8 * count as u16,
        }
    }

    /// What the options of a SYN are longer than those of other packets: its segment size, that it takes selective acknowledgements, and the
    /// scale of its window, beside the time stamp that `header` counts.
    pub fn syn_bytes(&self) -> u16 {
        if self.option_bytes { 8 } else { 0 }
    }
}

/// What cwnd and flight count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowUnit {
    /// Segments, whatever their size (Linux, NS2).
    Packets,
    /// Bytes (RFC 5681, ns-3).
    Bytes,
}

/// What a loss or timeout halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossBasis {
    /// The data outstanding (RFC 5681 equation 4).
    Flight,
    /// The window (Linux).
    Window,
    /// The window, of whose half ssthresh takes the whole part and cwnd all, also where the timer ends again for the same segment (`slowdown`
    /// in NS2's `tcp.cc`).
    WholeWindow,
}

/// Which segments in the receive queue become one buffer, whose reading is counted at once (`tcp_try_coalesce`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coalesce {
    /// None.
    Never,
    /// Those behind one that the sender has given up. A virtual network hands on the sender's own buffers, to which nothing may be added before
    /// (`skb_cloned`).
    Acknowledged,
    /// All: a network card fills buffers of the receiver's own.
    Always,
}

/// Whether the ACK that ends a recovery enlarges the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrowAfterRecovery {
    /// It does not.
    Never,
    /// With NewReno and Reno it does (NS2's `recv_newack_helper`), with SACK not.
    WithoutSack,
    /// It does: the state changes first, then the window (Linux).
    Always,
}

/// What the retransmission timer learns round trips from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RttTiming {
    /// Every ACK of new data (RFC 7323 with timestamps).
    EachAck,
    /// One segment at a time; its ACK also ends the back-off of the timer (Karn; NS2 without `timestamps_`).
    OneSegment,
}

/// The round trip that an algorithm is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CcRtt {
    /// The time stamp's echo: of the oldest segment that the ACK answers.
    Ack,
    /// Of the newest segment that the ACK delivers, which delayed ACKs inflate least (Linux's `ca_rtt_us`).
    Newest,
}

/// When an ACK of new data restarts the retransmission timer in a recovery of NewReno's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoRestart {
    /// After the first partial ACK the timer runs on (RFC 6582 section 3.2).
    Impatient,
    /// Always (RFC 6582's slow-but-steady variant; Linux's `FLAG_SET_XMIT_TIMER`); as in Linux also when the first segment goes again, and at
    /// SACKs for what was sent before it last did.
    EveryAck,
}

/// Holding small segments back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nagle {
    /// Never.
    Off,
    /// While anything is unacknowledged (RFC 896).
    Rfc896,
    /// Only while a small segment is unacknowledged (Minshall, Linux).
    Minshall,
}

/// The endpoint's use of ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnMode {
    /// Not negotiated.
    Off,
    /// RFC 3168: ECE until CWR.
    Classic,
    /// RFC 8257: ECE mirrors CE.
    Dctcp,
}

/// ECT on what RFC 3168 sends without it: SYN, pure ACKs, retransmissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EctOnControl {
    /// RFC 3168 sections 6.1.1, 6.1.4 and 6.1.5.
    Never,
    /// Where the algorithm needs ECN, as Linux has it for DCTCP (`tcp_ecn_send`, `INET_ECN_xmit` while `tcp_ca_needs_ecn`).
    Dctcp,
    /// Wherever ECN is in use.
    Always,
}

/// What happens to cwnd in idle and application-limited periods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CwndValidation {
    /// Nothing: kept through idleness, grown by every ACK.
    None,
    /// Back to the initial window after one RTO of silence (RFC 5681 section 4.1).
    Rfc5681,
    /// Halved per RTO of silence, decays while application-limited (RFC 2861).
    Rfc2861,
    /// No growth while not validated; kept for five minutes (RFC 7661).
    Rfc7661,
    /// cwnd 1 after a timer expires with nothing outstanding (NS2's one-way agents with slow_start_restart_).
    Ns2Oneway,
    /// Initial window after a silence longer than the raw RTO estimate (NS2's FullTcp).
    Ns2Full,
    /// Linux: cwnd-limited test and slow-start-after-idle.
    Linux,
    /// The same with `tcp_slow_start_after_idle = 0`: the cwnd-limited test alone.
    LinuxKeep,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_grows_by_a_dozen_bytes_and_eight_for_each_further_block() {
        let linux = Stack::linux();
        let blocks = |n: usize| core::array::from_fn(|i| if i < 2 * n { 1448 * (i as u32 + 1) } else { 0 });
        assert_eq!([0, 1, 2, 3].map(|n| linux.sack_bytes(&blocks(n), false)), [0, 12, 20, 28]);
        // The block that tells of a duplicate takes a place, and there are three.
        assert_eq!([0, 1, 3].map(|n| linux.sack_bytes(&blocks(n), true)), [12, 20, 28]);
        assert_eq!((Stack::ns2().sack_bytes(&blocks(3), true), Stack::ns2().syn_bytes()), (0, 0));
    }
}
