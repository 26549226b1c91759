//! Each reason at its threshold: on one side of it nothing is said, on the other it is.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// A thousand data packets in either direction, and nothing amiss.
fn whole() -> Measured {
    Measured {
        bytes: [1_000_000, 0],
        data_packets: 1_000,
        sided: [1_000_000, 0],
        acks: [1_000, 0],
        ..Measured::default()
    }
}

fn stamps(ns: i64, many: i64) -> Resolution {
    let mut seen = Resolution::default();
    // Differences of three and five ticks: what they have in common is one.
    (0..=many).for_each(|n| seen.stamp((n * 3 + (n & 1) * 2) * ns));
    seen
}

fn kinds(measured: Measured, counted: Counted, resolution: Resolution) -> Vec<&'static str> {
    measured.judged(counted, resolution).reasons.iter().map(|reason| reason.kind).collect()
}

fn of(measured: Measured) -> Vec<&'static str> {
    kinds(measured, Counted { packets: 2_000, ..Counted::default() }, stamps(1_000, 1_000))
}

#[test]
fn a_whole_capture_is_fit() {
    let found = whole().judged(Counted { packets: 2_000, ..Counted::default() }, stamps(1_000, 1_000));
    assert_eq!((found.verdict, found.advisable, found.line.as_str()), (Verdict::Fit, true, "fit to judge"));
    assert_eq!(found.resolution_ns, Some(1_000));
}

#[test]
fn one_time_for_all_is_none() {
    let one = |many| {
        let mut seen = Resolution::default();
        (0..many).for_each(|_| seen.stamp(7));
        seen
    };
    let counted = Counted { packets: 2_000, ..Counted::default() };
    assert_eq!(whole().judged(counted, one(40)).fit_for, [Aspect::Sizes]);
    assert_eq!(kinds(whole(), counted, one(40)), ["stopped-clock"]);
    assert_eq!(kinds(whole(), counted, one(39)), [""; 0], "too few to say");
}

#[test]
fn three_in_a_thousand_bytes_missing_hide_losses_and_a_quarter_hides_all() {
    let lacking = |missing| Measured { bytes: [1_000_000 - missing, missing], ..whole() };
    assert_eq!(of(lacking(2_900)), [""; 0]);
    assert_eq!(of(lacking(3_100)), ["payload-missing"]);
    let judged = |missing| lacking(missing).judged(Counted::default(), stamps(1_000, 1_000));
    assert_eq!(judged(245_000).fit_for, [Aspect::Sizes, Aspect::Times]);
    assert_eq!(judged(255_000).verdict, Verdict::Unfit);
    assert_eq!(of(Measured { data_packets: 39, ..lacking(500_000) }), [""; 0], "too few to say");
    assert_eq!(of(Measured { data_packets: 40, ..lacking(500_000) }), ["payload-missing"]);
}

#[test]
fn three_in_a_thousand_packets_dropped_hide_losses_and_one_in_a_hundred_hides_requests() {
    let judged = |dropped| {
        let counted = Counted { packets: 2_000, in_file: 10_000 - dropped, dropped, ..Counted::default() };
        whole().judged(counted, stamps(1_000, 1_000))
    };
    assert_eq!((judged(29).verdict, judged(29).dropped_packets), (Verdict::Fit, 29));
    assert_eq!(judged(30).fit_for, [Aspect::Sizes, Aspect::Times]);
    assert_eq!(judged(99).fit_for, [Aspect::Sizes, Aspect::Times]);
    assert_eq!(judged(100).fit_for, [Aspect::Sizes]);
}

#[test]
fn a_clock_of_fifty_microseconds_hides_the_rack_and_one_of_a_millisecond_the_times() {
    let judged = |ns| whole().judged(Counted::default(), stamps(ns, 1_000));
    assert_eq!(judged(49_000).verdict, Verdict::Fit);
    assert_eq!(judged(50_000).fit_for, [Aspect::Sizes, Aspect::Times, Aspect::Losses]);
    assert!(judged(999_000).advisable);
    assert_eq!(judged(1_000_000).fit_for, [Aspect::Sizes]);
    assert_eq!(kinds(whole(), Counted::default(), stamps(10_000_000, 39)), [""; 0], "too few to say");
}

#[test]
fn a_clock_that_is_a_hundredth_off_is_wrong_and_one_that_no_system_has_too() {
    let at = |rates: &[f64]| of(Measured { rates: rates.to_vec(), ..whole() });
    assert_eq!(at(&[1_009.0; 3]), [""; 0]);
    assert_eq!(at(&[1_011.0; 3]), ["wrong-clock"]);
    assert_eq!(at(&[1_000.0, 1_000.0, 1_100.0]), [""; 0], "one host's own");
    assert_eq!(at(&[1_110.0; 4]), ["wrong-clock"]);
    assert_eq!(at(&[500.0; 4]), ["wrong-clock"]);
    let speed =
        |rate| Measured { rates: vec![rate], ..whole() }.judged(Counted::default(), stamps(1_000, 9)).clock_speed;
    assert_eq!((speed(1_125.0).is_some(), speed(1_145.0)), (true, None));
    assert_eq!(at(&[500.0; 3]), [""; 0], "too few agree");
    assert_eq!(at(&[500.0, 500.0, 500.0, 520.0, 540.0, 560.0]), [""; 0], "they do not agree");
}

#[test]
fn hosts_clocks_are_compared_over_five_seconds() {
    let rates = |ns| {
        let mut measured = Measured::default();
        let clocks = [Some(((ns / 500_000) as u32, ns)), None];
        measured.clocks(&Quality { clocks, ..Quality::default() });
        measured.rates
    };
    assert_eq!(rates(5 * SECOND - 1), [0.0; 0]);
    assert_eq!(rates(5 * SECOND), [2_000.0]);
}

#[test]
fn half_of_the_acknowledgements_missing_are_a_filter_and_a_tenth_are_hosts_that_count_otherwise() {
    let thinned = |seen, missing| of(Measured { acks: [seen, missing], ..whole() });
    assert_eq!(thinned(560, 440), [""; 0]);
    assert_eq!(thinned(540, 460), ["acknowledgements-missing"]);
    assert_eq!(thinned(99, 500), [""; 0], "too few to say");
    assert_eq!(thinned(100, 500), ["acknowledgements-missing"]);
    let answered = |data, bare| of(Measured { answered: [data, bare], ..whole() });
    assert_eq!(answered(2_000, 9), [""; 0]);
    assert_eq!(answered(2_001, 9), ["acknowledgements-missing"]);
}

#[test]
fn four_data_packets_for_each_packet_of_the_other_side_may_be_requests_and_their_answers() {
    let answered = |data: u64| {
        let mut connection = crate::connections::tests::connection(0, 0);
        connection.to_client.data_packets = data;
        connection.to_server.packets = 100;
        let mut measured = Measured::default();
        measured.add(&Quality::default(), &connection);
        measured.answered
    };
    assert_eq!((answered(400), answered(401)), ([0, 0], [401, 100]));
}

/// 700 bytes to the server, 10 of them missing, and 300 to the client.
#[test]
fn a_connection_has_one_direction_where_no_packet_of_either_is_in_the_file() {
    let sided = |[to_server, to_client]: [u64; 2]| {
        let mut connection = crate::connections::tests::connection(0, 0);
        (connection.to_server.packets, connection.to_client.packets) = (to_server, to_client);
        (connection.to_server.unique_bytes, connection.to_server.missing_bytes) = (690, 10);
        connection.to_client.unique_bytes = 300;
        let mut measured = Measured::default();
        measured.add(&Quality::default(), &connection);
        measured.sided
    };
    assert_eq!([[1, 1], [1, 0], [0, 1]].map(sided), [[1_000, 0], [1_000, 1_000], [1_000, 1_000]]);
}

#[test]
fn a_tenth_of_the_payload_on_one_direction_or_under_two_addresses_is_too_much() {
    let sided = |one| of(Measured { sided: [1_000_000, one], ..whole() });
    assert_eq!(sided(99_000), [""; 0]);
    assert_eq!(sided(101_000), ["one-direction"]);
    let counted = |translated| Counted { packets: 2_000, translated, ..Counted::default() };
    assert_eq!(kinds(whole(), counted(99), stamps(1_000, 1_000)), [""; 0]);
    assert_eq!(kinds(whole(), counted(101), stamps(1_000, 1_000)), ["translated-copies"]);
}

#[test]
fn a_hundredth_of_the_packets_cut_or_late_and_any_step_back_spoil_it() {
    let counted = |cut, late, jumps| {
        let counted = Counted { packets: 2_000, cut, late, jumps, ..Counted::default() };
        kinds(whole(), counted, stamps(1_000, 1_000))
    };
    assert_eq!(counted(19, 19, 0), [""; 0]);
    assert_eq!(counted(21, 0, 0), ["headers-cut"]);
    assert_eq!(counted(0, 21, 0), ["too-late"]);
    assert_eq!(counted(0, 0, 1), ["clock-steps"]);
    let leap = Counted { packets: 2_000, leap: 300 * SECOND, ..Counted::default() };
    let found = whole().judged(leap, stamps(1_000, 1_000));
    assert_eq!((found.reasons[0].kind, found.fit_for.as_slice()), ("clock-steps", [Aspect::Sizes].as_slice()));
    assert!(found.line.contains("went forward by 300 s at once"), "{}", found.line);
}
