//! The profiles of [`Stack`](crate::stack::Stack), policy by policy: who does what, with the text or function that says so.
//!
//! A profile states every field of every policy. What two profiles share is stated twice: a field that one of them forgets does not compile.

use crate::stack::{
    AckPolicy, CcRtt, Coalesce, CwndValidation, EcnMode, EcnPolicy, EctOnControl, GrowAfterRecovery, LossBasis, Nagle,
    NoisePolicy, OpeningPolicy, PacingPolicy, Policies, ReceiverPolicy, RecoveryPolicy, RtoRestart, RttTiming,
    SegmentPolicy, TimerPolicy, WindowPolicy, WindowUnit,
};
use fanin_cc::{Counting, Profile, RecoveryKind};
use fanin_units::{Bytes, Duration};

/// NS2's one-way agents.
pub(crate) fn ns2() -> Policies {
    Policies {
        segments: SegmentPolicy {
            mss: 1460,
            header: Bytes::new(40),
            option_bytes: false,
            frame_overhead: Bytes::ZERO,
            nagle: Nagle::Off,
            merge_writes: false,
            max_burst: 0,
            tso: false,
            tso_whole: Bytes::ZERO,
        },
        opening: OpeningPolicy {
            // `syn_` and `delay_growth_` are on: a packet of 40 bytes goes ahead, and the initial window waits for its ACK.
            handshake: true,
            connect_time: Duration::ZERO,
            syn_linear_timeouts: 0,
            free_syn_losses: 0,
            handshake_ack: false,
        },
        window: WindowPolicy {
            cc_profile: Profile::Ns2,
            initial_window: 2.0,
            initial_ssthresh: f64::INFINITY,
            window_unit: WindowUnit::Packets,
            counting: Counting::PerAck,
            cwnd_validation: CwndValidation::None,
        },
        pacing: PacingPolicy { pacing: false, unpaced_segments: 0, pacing_credit: false, tsq_limit: Duration::ZERO },
        recovery: RecoveryPolicy {
            recovery: RecoveryKind::NewReno,
            // `slowdown` of tcp.cc.
            loss_basis: LossBasis::WholeWindow,
            dupacks_deliver: false,
            grow_after_recovery: GrowAfterRecovery::WithoutSack,
            repeat_recovery: false,
            rto_restart: RtoRestart::Impatient,
            exit_to_flight: false,
            dup_thresh: 3,
            limited_transmit: true,
        },
        timers: TimerPolicy {
            cc_rtt: CcRtt::Ack,
            timestamps: true,
            coarse_timestamps: false,
            rtt_timing: RttTiming::OneSegment,
            quantise_rtt: false,
            clock_granularity: Duration::us(1),
            linux_rto: false,
            min_rto: Duration::ms(200),
            receiver_min_rto: Duration::ZERO,
            max_rto: Duration::s(60),
            initial_rto: Duration::s(3),
            hz: 250,
            timer_wheel: false,
        },
        acks: AckPolicy {
            two_way: false,
            delack_segments: 1,
            delack_bytes: false,
            delack_timeout: Duration::ms(100),
            delack_below_rto: false,
            route_quickack: true,
            initial_quickacks: 0,
            pingpong: false,
            ack_on_cwr: false,
            comp_sack_nr: 0,
            comp_sack_delay: Duration::ms(1),
            comp_sack_slack: Duration::us(100),
        },
        receiver: ReceiverPolicy {
            receive_window: Bytes::mb(1000),
            receive_buffer: Bytes::ZERO,
            read_size: Bytes::ZERO,
            coalesce: Coalesce::Never,
        },
        ecn: EcnPolicy {
            ecn: EcnMode::Off,
            ecn_fallback: false,
            ect_on_control: EctOnControl::Never,
            grow_in_cwr: true,
        },
        noise: NoisePolicy {
            common_ticks: false,
            send_jitter: Duration::ZERO,
            clock_error_ppm: 0.0,
            bucket_latency: Duration::ZERO,
        },
    }
}

/// RFC 5681, 6582, 6675, 6298, 3042 and 7661.
pub(crate) fn rfc() -> Policies {
    Policies {
        segments: SegmentPolicy {
            mss: 1460,
            header: Bytes::new(40),
            option_bytes: false,
            frame_overhead: Bytes::ZERO,
            nagle: Nagle::Off,
            merge_writes: true,
            max_burst: 0,
            tso: false,
            tso_whole: Bytes::ZERO,
        },
        opening: OpeningPolicy {
            handshake: true,
            connect_time: Duration::ZERO,
            syn_linear_timeouts: 0,
            free_syn_losses: 0,
            handshake_ack: true,
        },
        window: WindowPolicy {
            cc_profile: Profile::Rfc,
            // RFC 5681 section 3.1: three segments where 1095 < SMSS <= 2190.
            initial_window: 3.0,
            initial_ssthresh: f64::INFINITY,
            window_unit: WindowUnit::Bytes,
            counting: Counting::Abc { limit: 1 },
            cwnd_validation: CwndValidation::Rfc7661,
        },
        pacing: PacingPolicy { pacing: false, unpaced_segments: 0, pacing_credit: false, tsq_limit: Duration::ZERO },
        recovery: RecoveryPolicy {
            // RFC 6675.
            recovery: RecoveryKind::Sack,
            // RFC 5681 equation 4.
            loss_basis: LossBasis::Flight,
            dupacks_deliver: false,
            grow_after_recovery: GrowAfterRecovery::Never,
            repeat_recovery: true,
            rto_restart: RtoRestart::Impatient,
            // RFC 6582 section 3.2 step 3.
            exit_to_flight: true,
            dup_thresh: 3,
            // RFC 3042.
            limited_transmit: true,
        },
        timers: TimerPolicy {
            cc_rtt: CcRtt::Ack,
            timestamps: true,
            coarse_timestamps: false,
            rtt_timing: RttTiming::EachAck,
            quantise_rtt: false,
            clock_granularity: Duration::us(1),
            linux_rto: false,
            // RFC 6298 section 2.4.
            min_rto: Duration::s(1),
            receiver_min_rto: Duration::ZERO,
            max_rto: Duration::s(60),
            initial_rto: Duration::s(1),
            hz: 250,
            timer_wheel: false,
        },
        acks: AckPolicy {
            two_way: true,
            delack_segments: 2,
            delack_bytes: false,
            delack_timeout: Duration::ms(200),
            delack_below_rto: false,
            route_quickack: true,
            initial_quickacks: 0,
            pingpong: false,
            ack_on_cwr: false,
            comp_sack_nr: 0,
            comp_sack_delay: Duration::ms(1),
            comp_sack_slack: Duration::us(100),
        },
        receiver: ReceiverPolicy {
            receive_window: Bytes::mb(1000),
            receive_buffer: Bytes::ZERO,
            read_size: Bytes::ZERO,
            coalesce: Coalesce::Never,
        },
        ecn: EcnPolicy {
            ecn: EcnMode::Off,
            ecn_fallback: false,
            ect_on_control: EctOnControl::Never,
            grow_in_cwr: true,
        },
        noise: NoisePolicy {
            common_ticks: false,
            send_jitter: Duration::ZERO,
            clock_error_ppm: 0.0,
            bucket_latency: Duration::ZERO,
        },
    }
}

/// A current Linux kernel with its default settings.
pub(crate) fn linux() -> Policies {
    Policies {
        segments: SegmentPolicy {
            // Timestamps take 12 bytes of every segment.
            mss: 1448,
            header: Bytes::new(52),
            option_bytes: true,
            frame_overhead: Bytes::ZERO,
            nagle: Nagle::Minshall,
            merge_writes: true,
            max_burst: 0,
            tso: false,
            tso_whole: Bytes::ZERO,
        },
        opening: OpeningPolicy {
            handshake: true,
            // What the virtual kernel takes. On a real machine socket and connect took 9 us, 4 of them without the packet.
            connect_time: Duration::us(1),
            syn_linear_timeouts: 4,
            free_syn_losses: 1,
            handshake_ack: true,
        },
        window: WindowPolicy {
            cc_profile: Profile::Linux,
            initial_window: 10.0,
            initial_ssthresh: f64::INFINITY,
            window_unit: WindowUnit::Packets,
            counting: Counting::Linux,
            cwnd_validation: CwndValidation::Linux,
        },
        pacing: PacingPolicy {
            pacing: false,
            // sch_fq lets an initial window go, and internal pacing follows it.
            unpaced_segments: 10,
            pacing_credit: true,
            // sk_pacing_shift 10: 1/1024 s.
            tsq_limit: Duration::from_ps(976_562_500),
        },
        recovery: RecoveryPolicy {
            recovery: RecoveryKind::Rack,
            loss_basis: LossBasis::Window,
            dupacks_deliver: true,
            grow_after_recovery: GrowAfterRecovery::Always,
            repeat_recovery: true,
            rto_restart: RtoRestart::EveryAck,
            exit_to_flight: true,
            dup_thresh: 3,
            limited_transmit: true,
        },
        timers: TimerPolicy {
            cc_rtt: CcRtt::Newest,
            timestamps: true,
            coarse_timestamps: true,
            rtt_timing: RttTiming::EachAck,
            quantise_rtt: false,
            clock_granularity: Duration::us(1),
            linux_rto: true,
            min_rto: Duration::ms(200),
            receiver_min_rto: Duration::ZERO,
            max_rto: Duration::s(120),
            initial_rto: Duration::s(1),
            hz: 250,
            timer_wheel: true,
        },
        acks: AckPolicy {
            two_way: true,
            delack_segments: 2,
            delack_bytes: true,
            delack_timeout: Duration::ms(40),
            delack_below_rto: true,
            route_quickack: true,
            initial_quickacks: 16,
            pingpong: true,
            ack_on_cwr: true,
            comp_sack_nr: 44,
            comp_sack_delay: Duration::ms(1),
            comp_sack_slack: Duration::us(100),
        },
        receiver: ReceiverPolicy {
            receive_window: Bytes::new(6 * 1024 * 1024),
            receive_buffer: Bytes::new(131_072),
            // What the player on the virtual kernel sets; a busy application reads as much.
            read_size: Bytes::new(16_384),
            coalesce: Coalesce::Acknowledged,
        },
        ecn: EcnPolicy {
            ecn: EcnMode::Off,
            ecn_fallback: true,
            ect_on_control: EctOnControl::Dctcp,
            grow_in_cwr: false,
        },
        noise: NoisePolicy {
            common_ticks: false,
            // Interrupts and softirqs. Without it packets of hosts with equal links keep an exact rhythm, and a drop-tail port can lock
            // one of them out for whole windows (Floyd and Jacobson 1991: a service time of jitter removes the phase effect).
            send_jitter: Duration::us(10),
            // IEEE 802.3 allows 100 ppm; quartz oscillators of network cards are within 50.
            clock_error_ppm: 50.0,
            bucket_latency: Duration::ZERO,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::{KNOBS, profile};
    use crate::stack::Stack;

    /// Names of the knobs in which two stacks differ.
    fn apart(one: &Stack, other: &Stack) -> Vec<&'static str> {
        KNOBS.iter().filter(|knob| (knob.get)(one) != (knob.get)(other)).map(|knob| knob.name).collect()
    }

    /// Linux with one policy of NS2's.
    fn exchanged(policy: &str) -> Policies {
        let (mut stack, ns2) = (linux(), ns2());
        match policy {
            "segments" => stack.segments = ns2.segments,
            "opening" => stack.opening = ns2.opening,
            "window" => stack.window = ns2.window,
            "pacing" => stack.pacing = ns2.pacing,
            "recovery" => stack.recovery = ns2.recovery,
            "timers" => stack.timers = ns2.timers,
            "acks" => stack.acks = ns2.acks,
            "receiver" => stack.receiver = ns2.receiver,
            "ecn" => stack.ecn = ns2.ecn,
            "noise" => stack.noise = ns2.noise,
            _ => panic!("{policy}"),
        }
        stack
    }

    #[test]
    fn another_policy_changes_its_own_settings_alone() {
        for (policy, settings) in Policies::KNOBS {
            let changed = apart(&Stack::from(exchanged(policy)), &Stack::linux());
            assert!(!changed.is_empty(), "{policy}");
            assert!(changed.iter().all(|knob| settings.contains(knob)), "{policy}: {changed:?}");
        }
    }

    #[test]
    fn a_stack_of_all_policies_of_a_profile_is_that_profile() {
        for (name, policies) in [("ns2", ns2()), ("rfc", rfc()), ("linux", linux())] {
            assert_eq!(apart(&Stack::from(policies), &(profile(name).unwrap().stack)()), [""; 0], "{name}");
        }
    }

    #[test]
    fn each_knob_is_a_setting_of_one_policy() {
        let mut settings: Vec<_> = Policies::KNOBS.iter().flat_map(|(_, settings)| *settings).copied().collect();
        let mut knobs: Vec<_> = KNOBS.iter().map(|knob| knob.name).collect();
        settings.sort_unstable();
        knobs.sort_unstable();
        assert_eq!(settings, knobs);
    }

    /// CONTRIBUTING.md: an effect of hosts costs nothing in profiles `rfc` and `ns2`.
    #[test]
    fn hosts_of_the_papers_simulators_have_no_clocks_buffers_or_cards() {
        for policies in [ns2(), rfc()] {
            let (noise, receiver, timers) = (policies.noise, policies.receiver, policies.timers);
            assert!(noise.send_jitter.is_zero() && noise.clock_error_ppm == 0.0 && !timers.timer_wheel);
            assert!(receiver.receive_buffer == Bytes::ZERO && !policies.segments.tso);
            assert!(policies.pacing.tsq_limit.is_zero() && policies.opening.connect_time.is_zero());
        }
    }

    #[test]
    fn a_loss_halves_the_flight_by_rfc_5681_and_the_window_in_linux_and_ns2() {
        let basis = [rfc(), linux(), ns2()].map(|policies| policies.recovery.loss_basis);
        assert_eq!(basis, [LossBasis::Flight, LossBasis::Window, LossBasis::WholeWindow]);
    }

    /// RFC 6298 section 2.4 asks for a second; Linux's `TCP_RTO_MIN` is 200 ms above the smoothed round trip.
    #[test]
    fn the_floor_of_the_timer_is_a_second_by_the_rfc_and_200_ms_above_the_round_trip_in_linux() {
        let (rfc, linux) = (rfc().timers, linux().timers);
        assert_eq!((rfc.min_rto, rfc.linux_rto), (Duration::s(1), false));
        assert_eq!((linux.min_rto, linux.linux_rto), (Duration::ms(200), true));
    }

    #[test]
    fn linux_acknowledges_two_full_segments_by_their_bytes_and_ns2_each_packet() {
        let (linux, ns2) = (linux().acks, ns2().acks);
        assert_eq!((linux.delack_segments, linux.delack_bytes, linux.two_way), (2, true, true));
        assert_eq!((ns2.delack_segments, ns2.delack_bytes, ns2.two_way), (1, false, false));
    }

    #[test]
    fn linux_keeps_a_window_reduced_by_ecn_until_its_end_and_marks_control_packets_for_dctcp_alone() {
        let (linux, rfc) = (linux().ecn, rfc().ecn);
        assert_eq!((linux.grow_in_cwr, linux.ect_on_control), (false, EctOnControl::Dctcp));
        assert_eq!((rfc.grow_in_cwr, rfc.ect_on_control), (true, EctOnControl::Never));
    }

    #[test]
    fn an_idle_window_decays_by_rfc_7661_is_tested_by_linux_and_stays_in_ns2() {
        let kept = [rfc(), linux(), ns2()].map(|policies| policies.window.cwnd_validation);
        assert_eq!(kept, [CwndValidation::Rfc7661, CwndValidation::Linux, CwndValidation::None]);
    }

    #[test]
    fn linux_with_timestamps_carries_twelve_bytes_less_per_segment_in_packets_of_the_same_size() {
        let size = |s: SegmentPolicy| u64::from(s.mss) + s.header.get();
        assert_eq!([size(ns2().segments), size(rfc().segments), size(linux().segments)], [1500; 3]);
    }
}
