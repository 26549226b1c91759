//! What packets that follow each other say of the link that they pass, of packets written by hand.

use super::*;
use crate::numbers::Numbers;

/// Packets of 1448 bytes that leave a link of `mbps` back to back in bursts of 32, each stamped late by up to `jitter` ns.
fn seen(mbps: u64, jitter: u64) -> Link {
    let mut links = Links::default();
    let each = (1448 + OVERHEAD) * 8_000 / mbps;
    let mut noise = Numbers(12_345);
    for burst in 0..100_u64 {
        for n in 0..32_u64 {
            let late = noise.below(jitter.max(1));
            let s = Segment { dst: Addr(7), payload: 1448, ..Segment::default() };
            links.data(&s, 1_448, burst * 50_000_000 + n * each + late);
        }
    }
    links.finish().remove(0)
}

/// Of 32 trains of 8 packets so many pass at 1 Gb/s, and the others slower, at rates that none shares.
fn usual(at_one_rate: u64) -> Vec<u64> {
    let (mut links, mut at, mut said) = (Links::default(), 1_000_000, Vec::new());
    let s = Segment { dst: Addr(7), payload: 1448, ..Segment::default() };
    for n in 0..=7 * 32_u64 {
        said.extend(links.data(&s, 1_448, at));
        at += if n / 7 < at_one_rate { 12_304 } else { 12_304 * (n / 7 - at_one_rate + 3) / 2 };
    }
    said
}

#[test]
fn the_rate_of_half_of_32_trains_is_the_link_s() {
    assert!(usual(15).is_empty());
    assert!(matches!(usual(16)[..], [bps] if bps.abs_diff(1_000_000_000) < 30_000_000), "{:?}", usual(16));
}

/// Full packets to one receiver, each with its sender and when it passed.
fn passed(packets: impl IntoIterator<Item = (u128, u64)>) -> Link {
    let (mut links, mut of_each) = (Links::default(), [Spacing::default(); 2]);
    for (sender, at) in packets {
        let s = Segment { src: Addr(sender), dst: Addr(7), payload: 1448, ..Segment::default() };
        links.data(&s, 1_448, at);
        if let Some(rate) = of_each[sender as usize].packet(s.payload, at, false, BURST) {
            links.sender(s.dst, rate);
        }
    }
    links.finish().remove(0)
}

#[test]
fn each_connection_tells_the_link_of_its_sender_however_many_others_come_between() {
    // Two senders at 500 Mb/s, one half a packet behind the other.
    let link = passed((0..400_u64).map(|n| (u128::from(n % 2), 1_000_000 + n * 12_304)));
    assert!((0.95..1.05).contains(&(link.rate_bps.unwrap() as f64 / 1e9)), "{:?}", link.rate_bps);
    assert!((0.95..1.05).contains(&(link.sender_rate_bps.unwrap() as f64 / 5e8)), "{:?}", link.sender_rate_bps);
    assert_eq!((link.sender_samples, link.sender_share), (56, 1.0));
}

#[test]
fn the_burst_of_a_token_bucket_after_each_pause_is_no_part_of_its_rate() {
    let mut spacing = Spacing::default();
    let told: Vec<_> = (0..100_u64)
        .flat_map(|answer| (0..11).map(move |n: u64| 5_000_000 * (answer + 1) + n.saturating_sub(2) * 24_608))
        .filter_map(|at| spacing.packet(1448, at, false, BURST))
        .collect();
    assert_eq!(told.len(), 100);
    assert!(told.iter().all(|rate| (rate / 5e8 - 1.0).abs() < 0.01), "{}", told[0]);
}

#[test]
fn back_to_back_packets_tell_the_rate_of_their_link() {
    for mbps in [100, 1_000, 10_000, 25_000] {
        let link = seen(mbps, 0);
        let found = link.rate_bps.unwrap() as f64 / 1e6;
        assert!((found / mbps as f64 - 1.0).abs() < 0.06, "{mbps}: {found}");
        assert!(link.share > 0.9);
    }
}

#[test]
fn the_rhythm_of_a_line_is_exact() {
    let (median, late) = seen(300, 0).rhythm_ns.unwrap();
    assert!(median.abs_diff(41_013) < 1_300 && late < 100, "{median} {late}");
}

#[test]
fn packets_of_two_servers_stand_as_far_apart_as_the_link_sets_them() {
    let mut whose = Numbers(7);
    let found = passed((0..6_400_u64).map(|n| (u128::from(whose.below(2)), 1_000_000 + n * 20_507))).pairs.unwrap();
    assert!(found.height > 3.0 && (found.rate_bps as f64 / 6e8 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn packets_of_two_servers_that_share_no_queue_stand_at_any_distance() {
    let (mut whose, mut at) = (Numbers(7), 1_000_000);
    let found = passed((0..6_400).map(|_| {
        at += 4_000 + whose.below(40_000);
        (u128::from(whose.below(2)), at)
    }));
    assert_eq!(found.pairs, None);
}

/// What packets of two servers 10 us apart tell, where so many of ten answers come as a link of 500 Mb/s lets them, and the others slower.
fn in_step(steady: u64) -> Option<Pairs> {
    let mut slower = Numbers(7);
    passed((0..400_u64).flat_map(|answer| {
        let each = 24_224 + if answer % 10 < steady { 0 } else { 6_000 + slower.below(24_000) };
        (0..200_u64).map(move |n| (u128::from(n % 2), 1_000_000 + answer * 7_000_000 + n / 2 * each + n % 2 * 10_000))
    }))
    .pairs
}

#[test]
fn links_of_the_servers_own_that_four_of_ten_trains_show_keep_their_packets_apart() {
    assert!(in_step(3).is_some());
    assert_eq!(in_step(6), None);
}

#[test]
fn servers_that_send_one_after_another_have_the_link_s_rate_each() {
    let found = passed((0..6_400_u64).map(|n| (u128::from(n / 16 % 2), 1_000_000 + n * 12_304))).pairs.unwrap();
    assert!((found.rate_bps as f64 / 1e9 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn a_packet_is_late_after_an_uncut_burst_by_what_it_comes_later_than_after_one_segment() {
    let (mut links, mut at) = (Links::default(), 1_000_000);
    for n in 0..2_400_u64 {
        // Every twelfth packet is two segments, after which the next one comes 7 us later.
        let whole = n % 12 == 11;
        let s = Segment { dst: Addr(7), payload: if whole { 2 * 1_448 } else { 1_448 }, ..Segment::default() };
        at += 12_304 * (1 + u64::from(whole)) + if n % 12 == 0 { 7_000 } else { 0 };
        links.data(&s, 1_448, at);
    }
    let link = links.finish().remove(0);
    assert!(
        matches!(link.after_burst_ns[..2], [None, Some(late)] if late.abs_diff(7_000) < 200),
        "{:?}",
        link.after_burst_ns
    );
}

#[test]
fn jitter_of_half_a_packet_does_not_hide_it() {
    let link = seen(1_000, 6_000);
    let found = link.rate_bps.unwrap() as f64 / 1e9;
    assert!((found - 1.0).abs() < 0.12, "{found}");
}

#[test]
fn small_packets_pauses_and_merged_ones_are_no_evidence() {
    let mut links = Links::default();
    let packet = |payload| Segment { dst: Addr(7), payload, ..Segment::default() };
    for n in 0..100 {
        links.data(&packet(400), 1_448, n * 1_000);
        links.data(&packet(1448), 1_448, n * 1_000 + 10);
        links.data(&packet(60_000), 1_448, n * 1_000 + 20);
    }
    for n in 100..200 {
        links.data(&packet(1448), 1_448, n * 3_000_000);
    }
    let link = links.finish().remove(0);
    assert_eq!((link.samples, link.rate_bps, link.merged_packets), (0, None, 100));
}

/// 100 Mb/s: 81 full packets in ten milliseconds, for a second; those of one interval come with the next.
#[test]
fn one_interval_of_a_stalled_host_is_no_rate() {
    let mut links = Links::default();
    for n in 0..8_100_u64 {
        let at = n * 10_000_000 / 81;
        let stalled = if at / INTERVAL == 40 { 41 * INTERVAL } else { at };
        links.data(&Segment { dst: Addr(7), payload: 1448, ..Segment::default() }, 1_448, stalled);
    }
    let found = links.finish().remove(0).busiest_bps as f64 / 1e6;
    assert!((found - 100.0).abs() < 2.0, "{found}");
}

/// Whether eight packets of this payload make a train, of which one comes after such a pause.
fn makes_a_train(payload: u32, pause: u64) -> bool {
    let mut spacing = Spacing::default();
    let at = (0..8).map(|n| 1_000_000 + n * 12_000 + if n < 4 { 0 } else { pause - 12_000 });
    at.filter_map(|at| spacing.packet(payload, at, false, 0)).count() == 1
}

#[test]
fn a_train_is_of_packets_with_a_thousand_bytes_or_more_and_has_no_pause_above_two_milliseconds() {
    assert!(makes_a_train(1_000, 2_000_000));
    assert!(!makes_a_train(999, 2_000_000) && !makes_a_train(1_000, 2_000_001));
}

#[test]
fn no_rate_below_a_megabit_is_told() {
    let told = |bps: f64| middle(bin(bps)) as f64 / 1e6;
    assert!((told(2e6) / 2.0 - 1.0).abs() < 0.03 && (told(2e5) - 1.0).abs() < 0.03);
}

#[test]
fn no_rate_above_a_terabit_is_told() {
    let told = middle(bin(f64::INFINITY)) as f64 / 1e12;
    assert!((1.0..1.05).contains(&told), "{told}");
}

#[test]
fn links_to_256_receivers_are_told() {
    let mut links = Links::default();
    for n in 0..300_u32 {
        links.data(&Segment { dst: Addr(n.into()), payload: 1_448, ..Segment::default() }, 1_448, u64::from(n));
    }
    assert_eq!(links.finish().len(), 256);
}
