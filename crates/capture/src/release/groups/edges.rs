//! Just inside and just outside of what joins connections to groups.

use super::*;
use crate::release::Times;

const MS: u64 = 1_000_000;

/// A connection to a server that is asked at these times and answers after so long.
fn talk(server: u32, asked: impl IntoIterator<Item = u64>, took: u64) -> Talk {
    let times = |at: u64| Times { asked: Some(at), answered: Some(at + took), ..Times::default() };
    Talk { server, times: asked.into_iter().map(times).collect(), ..Talk::default() }
}

/// Whether connections 0 and 1 are joined by one of the ways.
fn joins(talks: &[Talk], way: fn(&[Talk], &[Ask], &mut [u32])) -> bool {
    let mut root: Vec<u32> = (0..talks.len() as u32).collect();
    way(talks, &crate::release::bursts::asks(talks), &mut root);
    find(&mut root, 0) == find(&mut root, 1)
}

fn alone(asks: &[Ask]) -> Group {
    Group { connections: vec![0], asks: (0..asks.len() as u32).collect(), companies: Vec::new(), several: false }
}

/// Each asked as soon as the one before was answered.
#[test]
fn a_chain_has_three_messages_in_each_of_four_rounds() {
    let is_one = |count: u64| {
        let asks = crate::release::bursts::asks(&[talk(0, (0..count).map(|n| n * MS), MS)]);
        alone(&asks).is_one_chain(&asks)
    };
    assert_eq!((is_one(12), is_one(11)), (true, false));
}

/// Polled so long after each answer.
#[test]
fn a_chain_turns_from_an_answer_to_the_next_call_within_a_millisecond() {
    let is_one = |after: u64| {
        let asks = crate::release::bursts::asks(&[talk(0, (0..40).map(|n| n * (MS + after)), MS)]);
        alone(&asks).is_one_chain(&asks)
    };
    assert_eq!((is_one(1_000_000), is_one(1_000_001)), (true, false));
}

/// Of eleven messages the first follows none, and so many follow the answer before on their connection at once.
#[test]
fn a_connection_goes_on_by_itself_where_nine_of_ten_messages_follow_the_answer_before_at_once() {
    let by_itself = |at_once: u64| {
        let late = |n: u64| n.saturating_sub(at_once) * 50 * MS;
        let asks = crate::release::bursts::asks(&[talk(0, (0..11).map(|n| n * 2 * MS + late(n)), 2 * MS)]);
        alone(&asks).goes_on_by_itself(&asks)
    };
    assert_eq!((by_itself(9), by_itself(8)), (true, false));
}

#[test]
fn a_request_follows_what_came_a_millisecond_before_it() {
    let follows = |later: u64| {
        let events = [Event { at: MS, conn: 0, asked: false }, Event { at: MS + later, conn: 1, asked: true }];
        !preceded(&events, &[0, 1], None).0.is_empty()
    };
    assert_eq!((follows(1_000_000), follows(1_000_001)), (true, false));
}

/// A connection that is asked twelve times, one second apart, and one to the same server that is asked 100 us after it so many times, behind requests
/// of other connections to other servers.
fn comes_along(times: u64, between: u64) -> bool {
    let others = (0..between).map(|k| talk(2 + k as u32, (0..times).map(|n| n * 1_000 * MS + 50_000 + k), MS));
    let two = [talk(0, (0..12).map(|n| n * 1_000 * MS), MS), talk(0, (0..times).map(|n| n * 1_000 * MS + 100_000), MS)];
    joins(&two.into_iter().chain(others).collect::<Vec<_>>(), accompanied)
}

#[test]
fn a_connection_of_a_pool_that_comes_along_is_asked_a_third_as_often() {
    assert_eq!((comes_along(4, 0), comes_along(5, 0)), (true, false));
}

#[test]
fn sixteen_neighbours_in_time_are_looked_at() {
    assert_eq!((comes_along(4, 15), comes_along(4, 16)), (true, false));
}

/// Ten times between eleven requests, with nineteen moments in each.
#[test]
fn chance_is_tried_at_about_two_hundred_moments_of_each_lane() {
    let starts: Vec<(u64, u32)> = (0..11).map(|n| (n * MS, 7)).collect();
    assert_eq!(moments(&starts).len(), 190);
}

/// Of a hundred requests so many are asked 100 us after another connection was answered, and the others 50 ms after; it is asked each 100 ms.
#[test]
fn three_tenths_of_a_lane_s_requests_beyond_chance_show_whom_it_follows() {
    let follows = |count: u64| {
        let soon = |n: u64| if n < count { 100_000 } else { 50 * MS + n * 7_919 % MS };
        joins(
            &[talk(0, (0..100).map(|n| n * 100 * MS), MS), talk(1, (0..100).map(|n| n * 100 * MS + MS + soon(n)), MS)],
            link,
        )
    };
    assert_eq!((follows(33), follows(28)), (true, false));
}

/// A connection is asked each 2 ms and answers in 10 us: it had answered in the last millisecond for half of the time. Another one is asked so many
/// times, each time soon after such an answer: 12 of 12 are by chance with 3.5 standard deviations, 36 of 36 with 6.
#[test]
fn whom_a_lane_follows_is_beyond_chance_by_five_standard_deviations() {
    let follows = |count: u64| {
        let mine = (0..count).map(|n| n * 40 * MS + n % 7 * 2 * MS + 100_000);
        joins(&[talk(0, (0..count * 20).map(|n| n * 2 * MS), 10_000), talk(1, mine, 20_000)], link)
    };
    assert_eq!((follows(12), follows(36)), (false, true));
}
