//! The declared table of stack knobs: what people write under `[stack]`, what it stands for, and how it reaches [`Stack`].
//!
//! One line per field of [`Stack`]: a field without a line does not compile.

use crate::stack::{
    CcRtt, Coalesce, CwndValidation, EcnMode, EctOnControl, GrowAfterRecovery, LossBasis, Nagle, RtoRestart, RttTiming,
    Stack, WindowUnit,
};
use fanin_cc::{Counting, Profile, RecoveryKind};
use fanin_units::{Bytes, Domain, Duration, Setting};
use std::ops::Deref;

/// One knob: a setting with a place in `T`. Its default is the profile's.
pub struct Knob<T = Stack> {
    pub(crate) setting: Setting,
    /// Its value, as it would be written.
    pub get: fn(&T) -> String,
    /// Sets it from text; the error says what would be accepted.
    ///
    /// # Errors
    /// One clause without the knob's name.
    pub set: fn(&mut T, &str) -> Result<(), String>,
}

impl<T> Deref for Knob<T> {
    type Target = Setting;
    fn deref(&self) -> &Setting {
        &self.setting
    }
}

/// The named sets of knobs: name, what it is, and its values.
pub static PROFILES: &[StackProfile] = &[
    StackProfile {
        name: "ns2",
        title: "NS2's one-way agents, as in the TRIM, GSS and DCVegas papers",
        stack: Stack::ns2,
    },
    StackProfile { name: "rfc", title: "RFC 5681, 6582, 6675, 6298, 3042 and 7661 as written", stack: Stack::rfc },
    StackProfile { name: "linux", title: "a current Linux kernel with its default settings", stack: Stack::linux },
];

/// A named set of knobs.
pub struct StackProfile {
    /// As written in `profile = "..."`.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// Its values.
    pub stack: fn() -> Stack,
}

/// A type of field.
pub(crate) trait Field: Sized {
    fn parse(text: &str, domain: Domain) -> Result<Self, String>;
    fn print(&self) -> String;
}

impl Field for u32 {
    fn parse(text: &str, domain: Domain) -> Result<u32, String> {
        let (min, max) = match domain {
            Domain::Count { min, max } => (min, max),
            _ => (0, u64::from(u32::MAX)),
        };
        match text.parse::<u64>() {
            Ok(n) if (min..=max).contains(&n) => {
                u32::try_from(n).map_err(|_| format!("it must be at most {}", u32::MAX))
            }
            _ => Err(format!("it must be a whole number from {min} to {max}")),
        }
    }
    fn print(&self) -> String {
        self.to_string()
    }
}

impl Field for f64 {
    fn parse(text: &str, domain: Domain) -> Result<f64, String> {
        let min = if let Domain::Number { min, .. } = domain { min } else { f64::NEG_INFINITY };
        match text.parse::<f64>() {
            Ok(x) if x >= min => Ok(x),
            _ => Err(format!("it must be a number, at least {min}")),
        }
    }
    fn print(&self) -> String {
        self.to_string()
    }
}

impl Field for bool {
    fn parse(text: &str, _domain: Domain) -> Result<bool, String> {
        text.parse().map_err(|_| "it must be true or false".to_owned())
    }
    fn print(&self) -> String {
        self.to_string()
    }
}

macro_rules! quantities {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn parse(text: &str, _domain: Domain) -> Result<$type, String> {
                text.parse().map_err(|e: fanin_units::ParseUnitError| e.to_string())
            }
            fn print(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
quantities!(Duration, Bytes);

macro_rules! words {
    ($($type:ty { $($word:literal => $value:expr),* $(,)? })*) => {$(
        impl Field for $type {
            fn parse(text: &str, _domain: Domain) -> Result<$type, String> {
                match text {
                    $($word => Ok($value),)*
                    _ => Err(format!("it must be one of {}", Self::WORDS.join(", "))),
                }
            }
            fn print(&self) -> String {
                let known: &[($type, &str)] = &[$(($value, $word)),*];
                known.iter().find(|(v, _)| v == self).map_or_else(|| format!("{self:?}"), |(_, w)| (*w).to_owned())
            }
        }
        impl Words for $type {
            const WORDS: &'static [&'static str] = &[$($word),*];
        }
    )*};
}

/// A choice and its spellings.
trait Words {
    const WORDS: &'static [&'static str];
}

words! {
    WindowUnit { "packets" => WindowUnit::Packets, "bytes" => WindowUnit::Bytes }
    Counting {
        "per-ack" => Counting::PerAck,
        "abc1" => Counting::Abc { limit: 1 },
        "abc2" => Counting::Abc { limit: 2 },
        "linux" => Counting::Linux,
        "ns3" => Counting::Ns3,
    }
    RecoveryKind {
        "reno" => RecoveryKind::Reno,
        "newreno" => RecoveryKind::NewReno,
        "sack" => RecoveryKind::Sack,
        "fack" => RecoveryKind::Fack,
        "rack" => RecoveryKind::Rack,
    }
    LossBasis {
        "flight" => LossBasis::Flight,
        "window" => LossBasis::Window,
        "whole-window" => LossBasis::WholeWindow,
    }
    Profile { "rfc" => Profile::Rfc, "ns2" => Profile::Ns2, "linux" => Profile::Linux }
    Coalesce { "never" => Coalesce::Never, "acknowledged" => Coalesce::Acknowledged, "always" => Coalesce::Always }
    CcRtt { "ack" => CcRtt::Ack, "newest" => CcRtt::Newest }
    GrowAfterRecovery {
        "never" => GrowAfterRecovery::Never,
        "without-sack" => GrowAfterRecovery::WithoutSack,
        "always" => GrowAfterRecovery::Always,
    }
    RttTiming { "each-ack" => RttTiming::EachAck, "one-segment" => RttTiming::OneSegment }
    RtoRestart { "impatient" => RtoRestart::Impatient, "every-ack" => RtoRestart::EveryAck }
    Nagle { "off" => Nagle::Off, "rfc896" => Nagle::Rfc896, "minshall" => Nagle::Minshall }
    EcnMode { "off" => EcnMode::Off, "classic" => EcnMode::Classic, "dctcp" => EcnMode::Dctcp }
    EctOnControl { "never" => EctOnControl::Never, "dctcp" => EctOnControl::Dctcp, "always" => EctOnControl::Always }
    CwndValidation {
        "none" => CwndValidation::None,
        "rfc5681" => CwndValidation::Rfc5681,
        "rfc2861" => CwndValidation::Rfc2861,
        "rfc7661" => CwndValidation::Rfc7661,
        "ns2-oneway" => CwndValidation::Ns2Oneway,
        "ns2-full" => CwndValidation::Ns2Full,
        "linux" => CwndValidation::Linux,
        "linux-keep" => CwndValidation::LinuxKeep,
    }
}

pub(crate) const FLAG: Domain = Domain::Flag;
pub(crate) const TIME: Domain = Domain::Time;
const SIZE: Domain = Domain::Size;
pub(crate) const fn count(min: u64, max: u64) -> Domain {
    Domain::Count { min, max }
}
const fn number(min: f64) -> Domain {
    Domain::Number { min, max: f64::INFINITY }
}
const fn word<T: Words>() -> Domain {
    Domain::Word(T::WORDS)
}

/// Declares the table of what can be set of a type: a line for each of its fields.
macro_rules! knobs {
    ($(#[$doc:meta])* $table:ident of $type:ident { $($field:ident: $domain:expr, $help:literal;)* }) => {
        $(#[$doc])*
        pub static $table: &[Knob<$type>] = &[$(Knob {
            setting: Setting::of(stringify!($field), $domain, $help),
            get: |all| Field::print(&all.$field),
            set: |all, text| {
                all.$field = Field::parse(text, $domain)?;
                Ok(())
            },
        }),*];

        /// Fails to compile when the type has a field without a line above.
        #[allow(dead_code)]
        fn every_field_has_a_knob(all: &$type) {
            let $type { $($field: _),* } = all;
        }
    };
}
pub(crate) use knobs;

knobs! {
    /// Every knob, in the order `fanin list stack` shows them.
    KNOBS of Stack {
        cc_profile: word::<Profile>(), "whose defaults algorithms take; under linux `reno` is the kernel's module";
        cc_rtt: word::<CcRtt>(), "the round trip that algorithms are told: by the ACK's time stamp, or of the newest segment delivered (ca_rtt_us)";
        mss: count(1, 65_495), "Payload of a full segment in bytes; 1460 on Ethernet, 1448 where timestamps take 12 bytes";
        header: SIZE, "IP and TCP headers with options, on data and ACKs; 40B without options, 52B with timestamps";
        option_bytes: FLAG, "an ACK is 4 bytes longer than header, and 8 for each block of SACK; a SYN 8 (Linux); else all take header (NS2)";
        frame_overhead: SIZE, "link-layer bytes per frame; 38B on Ethernet with FCS, preamble and gap, 0B in the papers' simulators";
        initial_window: number(1.0), "initial window in segments: 2 in NS2, 3 by RFC 5681, 10 by RFC 6928 and in Linux";
        initial_ssthresh: number(1.0), "initial slow-start threshold in segments; NS2's window_ does this too";
        window_unit: word::<WindowUnit>(), "whether cwnd and flight count segments (Linux, NS2) or bytes (RFC 5681, ns-3)";
        counting: word::<Counting>(), "how an ACK becomes growth: per-ack (NS2), abc1 or abc2 (RFC 3465), linux (tcp_cong.c), ns3";
        recovery: word::<RecoveryKind>(), "how losses are found and repaired, unless the algorithm says: RFC 5681, 6582, 6675, FACK (Linux 3.2) or 8985, the last two with 6937";
        loss_basis: word::<LossBasis>(), "what a loss halves: the flight (RFC 5681 equation 4), the window (Linux), or the window with ssthresh in whole packets, at each timeout anew (NS2)";
        dupacks_deliver: FLAG, "without SACK each duplicate ACK counts as a delivered segment (tcp_add_reno_sack)";
        grow_after_recovery: word::<GrowAfterRecovery>(), "whether the ACK that ends a recovery enlarges the window: never, without-sack (NS2), or always (Linux)";
        repeat_recovery: FLAG, "Reno may begin a second recovery within one window of data (RFC 5681); in NS2 not (bugFix_), NewReno never (RFC 6582)";
        rto_restart: word::<RtoRestart>(), "when ACKs of new data restart the timer in NewReno's recovery: impatient (only the first partial ACK, RFC 6582 section 3.2) or every-ack (Linux)";
        exit_to_flight: FLAG, "NewReno leaves a recovery with a window of at most the flight and one segment (RFC 6582 section 3.2 step 3); NS2 does not";
        dup_thresh: count(1, 300), "duplicate ACKs that mean loss (RFC 5681: 3; Linux: tcp_reordering)";
        limited_transmit: FLAG, "one new segment on each of the first two duplicate ACKs (RFC 3042; NS2's singledup_)";
        delack_segments: count(1, 1000), "full segments per ACK: 1 acknowledges every packet (NS2's TCPSink), 2 is RFC 1122's delayed ACK";
        delack_bytes: FLAG, "an ACK waits for more bytes than delack_segments - 1 full segments have (rcv_mss, __tcp_ack_snd_check), and for the application's read of a shorter one (ICSK_ACK_PUSHED); else for delack_segments segments";
        delack_timeout: TIME, "longest an ACK is delayed: 40ms in Linux, 100ms in NS2's DelAck, 200ms in BSD, at most 500ms by RFC 1122";
        delack_below_rto: FLAG, "a host delays an ACK by at most a jiffy less than its own RTO floor (tcp_delack_max: Linux 6.7 for a route's rto_min, 6.11 for tcp_rto_min_us)";
        route_quickack: FLAG, "receivers acknowledge every packet of algorithms that live on RTT samples (ip route ... quickack 1)";
        initial_quickacks: count(0, 1_000_000), "segments acknowledged at once when a connection begins (Linux quick-ACK mode: 16)";
        comp_sack_nr: count(0, 255), "ACKs of data ahead of a hole, after the third, that are merged into one (Linux: tcp_comp_sack_nr, 44); 0 sends each";
        comp_sack_delay: TIME, "longest that merged ACKs wait: a twentieth of the round trip, and at most this (tcp_comp_sack_delay_ns: 1ms)";
        comp_sack_slack: TIME, "how much later a merged ACK leaves (tcp_comp_sack_slack_ns: 100us)";
        ack_on_cwr: FLAG, "a segment with CWR is acknowledged at once (tcp_ecn_accept_cwr)";
        two_way: FLAG, "data carry the ACK of the opposite direction (RFC 9293); false: NS2's one-way agents";
        pingpong: FLAG, "Linux's interactive mode: once a host has answered within delack_timeout, its ACKs wait for its next answer";
        nagle: word::<Nagle>(), "holding small segments: off (TCP_NODELAY), rfc896, or minshall as in Linux";
        receive_window: SIZE, "receive window; with receive_buffer the most that the buffer becomes (Linux: tcp_rmem's maximum, 6MiB)";
        receive_buffer: SIZE, "receive buffer that a connection starts with and enlarges by what arrives (Linux: tcp_rmem's default, 131072B); 0B: the window is receive_window";
        read_size: SIZE, "an application reads when so many bytes have come, or its message is complete (SO_RCVLOWAT); 0B: it reads each segment";
        coalesce: word::<Coalesce>(), "which segments that wait to be read become one buffer (tcp_try_coalesce): never, acknowledged (behind one that the sender has given up: virtual networks), or always (a network card's)";
        min_rto: TIME, "floor of the retransmission timer: 1s by RFC 6298, 200ms in Linux and NS2";
        receiver_min_rto: TIME, "the same on hosts that are sent more than they send, such as the aggregator; 0s: min_rto";
        max_rto: TIME, "ceiling of the retransmission timer: 60s by RFC 6298 and in NS2, 120s in Linux";
        initial_rto: TIME, "retransmission timer before the first sample: 1s by RFC 6298, 3s in NS2";
        clock_granularity: TIME, "G of RFC 6298, and the tick that quantise_rtt rounds to (NS2's tcpTick_: 10ms)";
        hz: count(24, 10_000), "jiffies per second of the kernel (CONFIG_HZ): its timers under timer_wheel, and CUBIC's kernel form; 250 in Debian, 1000 in RHEL and Fedora";
        timer_wheel: FLAG, "TCP's timers count in jiffies and expire on the kernel's timer wheel: up to two jiffies late, later where they are longer than 62";
        tso: FLAG, "segmentation offload: TCP hands up to 64 KB at once to the network card (tcp_tso_autosize, tcp_tso_should_defer); PSH ends each burst";
        tso_whole: SIZE, "with tso: bursts up to this size on the wire cross the network uncut, as one packet, as between containers of one machine (tbf_enqueue); 0B: network cards cut all";
        common_ticks: FLAG, "the hosts' timer ticks come at the same instants, as in the virtual kernel; else each host draws where it stands in a tick";
        quantise_rtt: FLAG, "round RTT samples up to whole clock ticks, as NS2 does";
        linux_rto: FLAG, "RTO = SRTT + max(4*mdev, min_rto) with the windowed maximum of the deviation (tcp_rtt_estimator), from a clock of microseconds";
        timestamps: FLAG, "a valid RTT sample from every ACK, also of retransmissions (RFC 7323)";
        coarse_timestamps: FLAG, "round trips of what was sent again are whole milliseconds, at least one (tcp_rtt_tsopt_us)";
        rtt_timing: word::<RttTiming>(), "what the retransmission timer learns from: each-ack, or one-segment at a time, whose ACK also ends its back-off (RFC 6298 section 3; NS2 without timestamps_)";
        ecn: word::<EcnMode>(), "ECN unless the algorithm needs DCTCP's: off, classic (RFC 3168; Linux tcp_ecn=1), dctcp (RFC 8257)";
        ecn_fallback: FLAG, "a SYN that is sent again asks for no ECN (tcp_ecn_fallback)";
        ect_on_control: word::<EctOnControl>(), "ECT on SYN, pure ACKs and retransmissions too: never (RFC 3168), dctcp (where the algorithm needs ECN, as in Linux), always";
        cwnd_validation: word::<CwndValidation>(), "idle and application-limited periods; linux-keep is linux with tcp_slow_start_after_idle = 0";
        handshake: FLAG, "handshake before the first data: SYN and SYN/ACK take a round trip (in NS2 `syn_` with `delay_growth_`)";
        connect_time: TIME, "time between connections that a host opens at one instant (1us: the virtual kernel; a loop over connect: 4 to 9us)";
        syn_linear_timeouts: count(0, 255), "timeouts of a SYN after which the timer is not doubled (Linux: tcp_syn_linear_timeouts, 4)";
        free_syn_losses: count(0, 100), "SYNs that may be lost before a connection begins with a window of one segment: 0 by RFC 5681 section 3.1, 1 in Linux (tcp_init_transfer)";
        handshake_ack: FLAG, "the handshake's last ACK leaves by itself, ahead of the data (Linux, ns-3), not with the first data";
        merge_writes: FLAG, "a segment may join bytes of different application writes (byte streams do, NS2's one-way agents do not)";
        max_burst: count(0, 1_000_000), "most segments sent in answer to one ACK; 0 is unlimited (NS2's maxburst_)";
        send_jitter: TIME, "random processing time of each packet in its sender, uniform on [0, this), order kept (NS2's overhead_; Linux: interrupts, softirqs)";
        clock_error_ppm: number(0.0), "every link's rate is off by a random part, uniform on plus or minus this many ppm; equal clocks let one flow hold a full queue for ever (IEEE 802.3 allows 100)";
        bucket_latency: TIME, "with tso_whole: every link is a token bucket of that size (tc-tbf), whose timer lets a packet out so much late on average; 0s: links send at their rate, in exact rhythm";
        tsq_limit: TIME, "a flow waits while its host has two of its segments and what its pacing rate sends in this time, 1 MiB at most unless it is paced (TCP small queues, 1/1024 s); 0s: unlimited";
        pacing: FLAG, "pace algorithms that do not ask for it at 2.0 or 1.2 times cwnd/srtt (Linux with the fq qdisc)";
        unpaced_segments: count(0, 1_000_000), "first data segments of a connection that pacing does not hold (tcp_update_skb_after_send: 10)";
        pacing_credit: FLAG, "a segment that leaves late shortens the next wait by as much, at most by half (tcp_update_skb_after_send)";
        grow_in_cwr: FLAG, "cwnd may grow between an ECN reduction and the end of that window; Linux does not, NS2 does";
    }
}

/// The knob of this exact name.
pub fn find(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|k| k.name == name)
}

/// Knobs by the names that they had in earlier versions, and as they are called now.
static RENAMED: &[(&str, &str)] = &[
    ("ack_every", "delack_segments"),
    ("ack_timeout", "delack_timeout"),
    ("halve", "loss_basis"),
    ("prompt_acks", "route_quickack"),
    ("quick_acks", "initial_quickacks"),
    ("quickack", "route_quickack"),
    ("small_queue", "tsq_limit"),
];

/// The present name of a knob that had this one.
pub fn renamed(name: &str) -> Option<&'static str> {
    RENAMED.iter().find(|r| r.0 == name).map(|r| r.1)
}

/// The profile of this exact name.
pub fn profile(name: &str) -> Option<&'static StackProfile> {
    PROFILES.iter().find(|p| p.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_reads_back_what_it_prints_in_every_profile() {
        for profile in PROFILES {
            let stack = (profile.stack)();
            for knob in KNOBS {
                let mut copy = stack.clone();
                (knob.set)(&mut copy, &(knob.get)(&stack)).unwrap();
                assert_eq!(copy, stack, "{} of {}", knob.name, profile.name);
            }
        }
    }

    #[test]
    fn old_names_lead_to_knobs_of_today() {
        for (old, new) in RENAMED {
            assert!(find(old).is_none() && find(new).is_some(), "{old} -> {new}");
        }
    }

    #[test]
    fn a_value_outside_the_domain_is_refused_with_the_domain() {
        let says = |knob: &str, text: &str| (find(knob).unwrap().set)(&mut Stack::ns2(), text).unwrap_err();
        assert_eq!(says("mss", "70000"), "it must be a whole number from 1 to 65495");
        assert_eq!(says("initial_window", "0"), "it must be a number, at least 1");
        assert_eq!(says("nagle", "on"), "it must be one of off, rfc896, minshall");
    }
}
