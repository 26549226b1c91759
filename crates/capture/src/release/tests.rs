//! Made-up captures of known structure, each with the graph that must be found.

mod timers;

use super::{Found, Talk, Times, infer};
use crate::numbers::Numbers;
use crate::waiting::{Company, Edge, Release, Round};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// Requests and answers of some connections, added in any order.
struct Made {
    talks: Vec<Talk>,
}

impl Made {
    fn new(connections: usize) -> Made {
        Made { talks: (0..connections as u32).map(|server| Talk { server, ..Talk::default() }).collect() }
    }

    fn ask(&mut self, conn: usize, asked: u64, answered: u64) -> u64 {
        let overlapped = self.talks[conn].times.last().and_then(|t| t.answered).is_some_and(|before| before > asked);
        self.talks[conn].times.push(Times {
            asked: Some(asked),
            answered: Some(answered),
            overlapped,
            ..Times::default()
        });
        answered
    }

    /// One round: `conns` asked from `start` on, 10 us apart; when the slowest had answered, each `service(conn)` after its request.
    fn round(&mut self, conns: impl Iterator<Item = usize>, start: u64, mut service: impl FnMut(usize) -> u64) -> u64 {
        let asks = conns.enumerate().map(|(n, conn)| (conn, start + n as u64 * 10 * US));
        let asks: Vec<(usize, u64)> = asks.collect();
        asks.into_iter().map(|(conn, at)| self.ask(conn, at, at + service(conn))).max().unwrap_or(start)
    }

    fn infer(&self) -> Found {
        infer(&self.talks)
    }
}

fn company(found: &Found, conn: u32) -> &Company {
    found.companies.iter().find(|c| c.connections.contains(&conn)).unwrap()
}

/// The cause of most of a company's requests, and the share of them that it explains.
fn main_edge(company: &Company) -> (&Edge, f64) {
    let edge = company.released_by.iter().max_by_key(|e| e.requests).unwrap();
    (edge, edge.requests as f64 / company.requests as f64)
}

#[test]
fn a_barrier_is_found_in_the_slowest_answer_of_every_round() {
    let (mut made, mut numbers) = (Made::new(8), Numbers(1));
    let mut now = MS;
    for _ in 0..30 {
        let services: Vec<u64> = (0..8).map(|_| 200 * US + numbers.below(MS)).collect();
        now = made.round(0..8, now, |c| services[c]) + 2 * MS;
    }
    let found = made.infer();
    assert_eq!(found.companies.len(), 1);
    let company = company(&found, 0);
    assert_eq!((company.rounds, company.requests, company.spread.median_ns), (30, 240, 70 * US));
    let (edge, share) = main_edge(company);
    assert_eq!(
        (edge.event.as_str(), edge.waits_for.as_deref(), edge.delay.median_ns),
        ("answers", Some("all"), 2 * MS)
    );
    assert!(share > 0.96, "all but the first round: {share}");
    // The third request of the second round leaves 20 us after the first.
    let round = found.rounds.iter().position(|r| r.requests[0] == (0, 0)).unwrap() as u32;
    assert_eq!(found.releases[2][1], Some(Release::Round { round, answers: 8, delay_ns: 2 * MS + 20 * US }));
    assert_eq!(found.releases[2][0], Some(Release::Clock { regardless: false }));
}

#[test]
fn one_server_that_is_always_slow_does_not_hide_the_barrier() {
    let mut made = Made::new(6);
    let mut now = 0;
    for n in 0..20 {
        now = made.round(0..6, now, |c| if c == 4 { 9 * MS } else { 300 * US + n * 7 * US }) + MS;
    }
    let found = made.infer();
    assert_eq!(main_edge(company(&found, 0)).0.waits_for.as_deref(), Some("all"));
    assert_eq!(company(&found, 4).connections.len(), 6);
}

#[test]
fn two_interleaved_groups_are_two_companies_with_rounds_of_their_own() {
    let (mut made, mut numbers) = (Made::new(9), Numbers(7));
    for (first, last, think) in [(0, 4, 3 * MS), (4, 9, 1_300 * US)] {
        let mut now = 0;
        for _ in 0..60 {
            let services: Vec<u64> = (0..9).map(|_| 300 * US + numbers.below(800 * US)).collect();
            now = made.round(first..last, now, |c| services[c]) + think;
        }
    }
    let found = made.infer();
    for (conn, size, think) in [(0, 4, 3 * MS), (8, 5, 1_300 * US)] {
        let company = company(&found, conn);
        let (edge, share) = main_edge(company);
        assert_eq!((company.connections.len(), company.rounds), (size, 60), "{company:?}");
        assert_eq!((edge.waits_for.as_deref(), edge.delay.median_ns), (Some("all"), think));
        assert!(share > 0.95, "{share}");
    }
}

#[test]
fn a_quorum_of_three_of_five_is_told_from_a_barrier() {
    let (mut made, mut numbers) = (Made::new(5), Numbers(3));
    let mut now = 0;
    for _ in 0..40 {
        let start = now;
        let mut answers: Vec<u64> = (0..5)
            .map(|c| {
                let at = start + c * 10 * US;
                made.ask(c as usize, at, at + 500 * US + numbers.below(3 * MS))
            })
            .collect();
        answers.sort_unstable();
        // Later answers have come when the next round starts, mostly: that is five milliseconds after the third.
        now = answers[2] + 5 * MS;
    }
    let found = made.infer();
    let (edge, _) = main_edge(company(&found, 0));
    assert_eq!(edge.event, "answers");
    assert!(["all but 2", "majority"].contains(&edge.waits_for.as_deref().unwrap()), "{edge:?}");
    assert_eq!(edge.delay.median_ns, 5 * MS);
    assert!(found.releases[0][1..].iter().all(|r| matches!(r, Some(Release::Round { answers: 3, .. }))));
}

#[test]
fn a_majority_is_more_than_half_of_an_even_or_odd_quorum() {
    use super::candidates::Need;
    let majority = |answers: usize| Need::Majority.of(answers);
    assert_eq!([1, 2, 3, 4, 5, 6, 7, 10].map(majority), [1, 2, 2, 3, 3, 4, 4, 6].map(Some));
    assert_eq!(majority(0), None);
    assert_eq!([1, 2, 3, 4].map(|answers| Need::AllBut(2).of(answers)), [None, None, Some(1), Some(2)]);
}

/// Six answers of ten are no `all but` that is tried, and half of them would be five.
#[test]
fn a_majority_of_ten_is_told_as_six_answers() {
    let (mut made, mut numbers) = (Made::new(10), Numbers(3));
    let mut now = 0;
    for _ in 0..60 {
        let start = now;
        let mut answers: Vec<u64> = (0..10)
            .map(|c| {
                let at = start + c * 10 * US;
                made.ask(c as usize, at, at + 500 * US + numbers.below(3 * MS))
            })
            .collect();
        answers.sort_unstable();
        now = answers[5] + 5 * MS;
    }
    let found = made.infer();
    let (edge, _) = main_edge(company(&found, 0));
    assert_eq!((edge.event.as_str(), edge.waits_for.as_deref()), ("answers", Some("majority")));
    assert_eq!(edge.delay.median_ns, 5 * MS);
    assert!(found.releases[0][1..].iter().all(|r| matches!(r, Some(Release::Round { answers: 6, .. }))));
}

#[test]
fn a_hedged_request_follows_the_request_that_was_not_answered_in_time() {
    let (mut made, mut numbers) = (Made::new(2), Numbers(11));
    let (mut now, mut hedges) = (0, 0);
    for n in 0..60 {
        let slow = n % 4 == 3;
        let service = if slow { 20 * MS + numbers.below(10 * MS) } else { 500 * US + numbers.below(4 * MS) };
        let answered = made.ask(0, now, now + service);
        if slow {
            hedges += 1;
            made.ask(1, now + 10 * MS, now + 10 * MS + 700 * US + numbers.below(MS));
        }
        now = answered + MS + numbers.below(20 * US);
    }
    let found = made.infer();
    let hedge = &found.releases[1];
    assert_eq!(hedge.len(), hedges);
    let after_request = |r: &Option<Release>| matches!(r, Some(Release::Request { connection: 0, delay_ns, .. }) if *delay_ns == 10 * MS);
    assert!(hedge[1..].iter().all(after_request), "{hedge:?}");
    assert_eq!(main_edge(company(&found, 1)).0.event, "others-requests");
    assert_eq!(main_edge(company(&found, 0)).0.event, "own-answer");
}

/// Sixty requests of four servers. In each fifth the last is late, another server is asked the same 10 ms after it, and when that has answered, 2 ms later, the
/// late call is given up; the user goes on so much after that.
fn with_calls_given_up(pause: u64) -> (Made, Found) {
    let (mut made, mut numbers, mut now) = (Made::new(5), Numbers(13), MS);
    for n in 0..60 {
        let asked = now + 30 * US;
        let service: Vec<u64> = (0..4).map(|_| MS + numbers.below(4 * MS)).collect();
        now = made.round(0..3, now, |c| service[c]).max(asked + service[3]);
        if n % 5 == 4 {
            now = made.ask(4, asked + 10 * MS, asked + 12 * MS) + 200 * US;
            let given_up = Times { asked: Some(asked), given_up: Some(now), ..Times::default() };
            made.talks[3].times.push(given_up);
        } else {
            made.ask(3, asked, asked + service[3]);
        }
        now += pause + numbers.below(20 * MS);
    }
    let found = made.infer();
    (made, found)
}

#[test]
fn a_request_ends_when_the_last_of_its_calls_is_answered_or_given_up() {
    let (made, found) = with_calls_given_up(20 * MS);
    let took: Vec<u64> = found.rounds.iter().filter_map(|round| round.took_ns).collect();
    let given_up = took.iter().filter(|&&took| took == 12_230 * US).count();
    assert_eq!((took.len(), given_up), (60, 12), "{took:?}");
    // What repeats a late call belongs to its request.
    assert_eq!((company(&found, 0).rounds, company(&found, 4).rounds), (60, 0));
    assert_eq!(made.talks[4].times.len(), 12);
}

#[test]
fn what_a_user_asks_next_tries_no_call_anew_that_was_given_up() {
    let (_, found) = with_calls_given_up(MS);
    let late = found.rounds.iter().filter(|round| round.took_ns == Some(12_230 * US)).count();
    assert_eq!((found.rounds.len(), late), (60, 12));
}

#[test]
fn a_call_that_is_given_up_when_its_user_asks_on_held_nothing_up() {
    let (mut made, mut numbers, mut now) = (Made::new(4), Numbers(5), MS);
    for n in 0..40 {
        let service: Vec<u64> = (0..4).map(|_| MS + numbers.below(4 * MS)).collect();
        let last = if n % 8 == 3 { 3 } else { 4 };
        let end = made.round(0..last, now, |c| service[c]);
        if last == 3 {
            let given_up = Some(now + 500 * MS);
            made.talks[3].times.push(Times { asked: Some(now + 30 * US), given_up, ..Times::default() });
        }
        now = end + 15 * MS + numbers.below(10 * MS);
    }
    let longest = made.infer().rounds.iter().filter_map(|round| round.took_ns).max();
    assert!(longest.is_some_and(|longest| longest < 6 * MS), "{longest:?}");
}

/// Streams of HTTP/2 on the one connection to a proxy.
#[test]
fn calls_that_are_under_way_together_on_one_connection_are_of_one_request() {
    let (mut made, mut numbers, mut now) = (Made::new(1), Numbers(17), MS);
    for _ in 0..60 {
        let service: Vec<u64> = (0..6).map(|_| MS + numbers.below(4 * MS)).collect();
        let mut call = 0;
        now = made.round([0; 6].into_iter(), now, |_| {
            call += 1;
            service[call - 1]
        });
        now += 3 * MS + numbers.below(40 * MS);
    }
    let found = made.infer();
    let sizes: Vec<usize> = found.rounds.iter().map(|round| round.requests.len()).collect();
    assert_eq!((company(&found, 0).rounds, sizes), (60, vec![6; 60]));
}

#[test]
fn stages_of_a_pipeline_wait_for_the_stage_before() {
    let (mut made, mut numbers) = (Made::new(9), Numbers(5));
    let mut now = 0;
    for _ in 0..40 {
        for (first, last, think) in [(0, 4, 4 * MS), (4, 8, 150 * US), (8, 9, 90 * US)] {
            let services: Vec<u64> = (0..9).map(|_| 400 * US + numbers.below(2 * MS)).collect();
            now = made.round(first..last, now + think, |c| services[c]);
        }
    }
    let found = made.infer();
    let company = company(&found, 0);
    assert_eq!((company.connections.len(), company.rounds, company.requests), (9, 40, 360));
    let (edge, _) = main_edge(company);
    assert_eq!(edge.event, "inside");
    let of_user = company.released_by.iter().find(|edge| edge.event == "answers").unwrap();
    assert_eq!((of_user.waits_for.as_deref(), of_user.delay.median_ns), (Some("all"), 4 * MS));
    let rounds: Vec<&Round> = found.rounds.iter().filter(|r| !r.is_gate()).collect();
    assert!(rounds.iter().all(|r| (r.requests.len(), r.answers().len()) == (4, 9)), "{rounds:?}");
    // The second stage waits for the four of the first, the third for the four of the second.
    for (conn, think) in [(4, 150 * US), (8, 90 * US)] {
        for release in &found.releases[conn] {
            let Some(Release::Round { round, answers: 4, delay_ns }) = *release else { panic!("{conn}: {release:?}") };
            assert_eq!((found.rounds[round as usize].answers().len(), delay_ns), (4, think));
        }
    }
}

#[test]
fn two_requests_that_take_turns_after_equal_pauses_are_two() {
    let (mut made, mut numbers) = (Made::new(8), Numbers(5));
    let mut now = 0;
    for _ in 0..60 {
        for first in [0, 4] {
            let services: Vec<u64> = (0..8).map(|_| 400 * US + numbers.below(2 * MS)).collect();
            now = made.round(first..first + 4, now + 10 * MS, |c| services[c]);
        }
    }
    let found = made.infer();
    assert_eq!([0, 4].map(|conn| company(&found, conn).rounds), [60, 60]);
}

#[test]
fn what_happens_often_is_not_the_cause_of_what_comes_at_any_time() {
    let (mut made, mut numbers) = (Made::new(9), Numbers(53));
    // Three servers are polled every millisecond, so that one of their answers comes shortly before anything.
    for n in 0..400 {
        made.round(0..3, n * MS, |c| 300 * US + c as u64 * 7 * US);
    }
    for conn in 3..9 {
        let mut now = numbers.below(MS);
        while now < 390 * MS {
            now = made.ask(conn, now, now + 200 * US) + MS + numbers.exponential(8 * MS);
        }
    }
    let found = made.infer();
    for conn in 3..9 {
        let edges: Vec<&str> = company(&found, conn).released_by.iter().map(|e| e.event.as_str()).collect();
        assert_eq!(edges, ["own-answer", "nothing"], "{conn}");
    }
}

#[test]
fn a_barrier_without_a_pause_is_found_by_a_tap_that_sees_answers_some_microseconds_late() {
    let (mut made, mut numbers) = (Made::new(10), Numbers(47));
    let mut now = MS;
    for _ in 0..12 {
        let services: Vec<u64> = (0..10).map(|_| 200 * US + numbers.below(MS)).collect();
        // The next round leaves at once, before the acknowledgement of the slowest answer has come to the tap.
        now = made.round(0..10, now, |c| services[c]) - numbers.below(30 * US);
    }
    for talk in &mut made.talks {
        talk.times.iter_mut().for_each(|t| t.overlapped = false);
    }
    let found = made.infer();
    let company = company(&found, 0);
    let (edge, share) = main_edge(company);
    assert_eq!((company.rounds, edge.event.as_str(), edge.waits_for.as_deref()), (12, "answers", Some("all")));
    assert!(share > 0.9 && edge.delay.p90_ns < 10 * US, "{edge:?}");
}

#[test]
fn think_times_that_are_random_and_long_keep_the_barrier_and_their_own_length() {
    let (mut made, mut numbers) = (Made::new(6), Numbers(17));
    let mut now = 0;
    for _ in 0..50 {
        let services: Vec<u64> = (0..6).map(|_| 300 * US + numbers.below(3 * MS)).collect();
        now = made.round(0..6, now, |c| services[c]) + MS + numbers.exponential(80 * MS);
    }
    let found = made.infer();
    let (edge, share) = main_edge(company(&found, 0));
    assert_eq!((edge.event.as_str(), edge.waits_for.as_deref()), ("answers", Some("all")), "{:?}", company(&found, 0));
    assert!(share > 0.95 && edge.delay.p90_ns > 100 * MS);
}

#[test]
fn connections_that_go_their_own_way_are_left_alone() {
    let (mut made, mut numbers) = (Made::new(8), Numbers(19));
    for conn in 0..8 {
        let mut now = numbers.below(MS);
        for _ in 0..200 {
            now = made.ask(conn, now, now + 200 * US + numbers.below(600 * US)) + numbers.exponential(MS);
        }
    }
    let found = made.infer();
    assert!(found.rounds.is_empty(), "{:?}", found.companies);
    assert!(found.releases.iter().flatten().all(Option::is_none));
}

#[test]
fn a_step_of_the_clock_changes_one_delay_and_no_edge() {
    let (mut made, mut numbers) = (Made::new(6), Numbers(23));
    let mut now = 0;
    for n in 0..30 {
        let services: Vec<u64> = (0..6).map(|_| 300 * US + numbers.below(3 * MS)).collect();
        let step = if n == 14 { 3_600_000 * MS } else { 0 };
        now = made.round(0..6, now, |c| services[c]) + 2 * MS + step;
    }
    let found = made.infer();
    let (edge, share) = main_edge(company(&found, 0));
    assert_eq!((edge.waits_for.as_deref(), edge.delay.median_ns), (Some("all"), 2 * MS));
    assert!(share > 0.96);
}

#[test]
fn a_request_in_several_messages_completes_its_round_with_the_last_of_them() {
    let (mut made, mut numbers) = (Made::new(5), Numbers(29));
    let mut now = 0;
    for _ in 0..30 {
        let start = now;
        let mut done = 0;
        for conn in 0..5 {
            let mut at = start + conn as u64 * 10 * US;
            for _ in 0..3 {
                at = made.ask(conn, at, at + 250 * US + numbers.below(3 * MS)) + 30 * US;
            }
            done = done.max(at - 30 * US);
        }
        now = done + 3 * MS;
    }
    let found = made.infer();
    let company = company(&found, 0);
    let edge = company.released_by.iter().find(|e| e.event == "answers").unwrap_or_else(|| {
        panic!("{:?} {:?}", found.companies, found.rounds.iter().map(|r| r.requests.len()).collect::<Vec<_>>())
    });
    assert_eq!((company.rounds, edge.waits_for.as_deref(), edge.delay.median_ns), (30, Some("all"), 3 * MS));
    // All that was asked and answered on the way is of the same request.
    let mut messages: Vec<u32> = found.rounds[0].answers().iter().map(|a| a.1).collect();
    messages.sort_unstable();
    assert_eq!(messages, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
}

#[test]
fn rounds_over_changing_servers_follow_the_round_before() {
    let (mut made, mut numbers) = (Made::new(10), Numbers(31));
    let mut now = 0;
    for _ in 0..100 {
        let mut conns: Vec<usize> = (0..10).collect();
        for i in 0..3 {
            conns.swap(i, i + numbers.below(10 - i as u64) as usize);
        }
        let services: Vec<u64> = (0..10).map(|_| 300 * US + numbers.below(2 * MS)).collect();
        now = made.round(conns.into_iter().take(3), now, |c| services[c]) + 1_500 * US;
    }
    let found = made.infer();
    let company = company(&found, 0);
    let (edge, share) = main_edge(company);
    assert_eq!((company.connections.len(), edge.waits_for.as_deref()), (10, Some("all")), "{company:?}");
    assert!(share > 0.95 && edge.delay.median_ns == 1_500 * US);
}

#[test]
fn a_client_of_the_aggregator_releases_its_fan_out_and_gets_its_answer_after_it() {
    let (mut made, mut numbers) = (Made::new(5), Numbers(37));
    made.talks[4].upstream = true;
    let mut now = MS;
    // The client's first request comes unasked.
    made.talks[4].times.push(Times { asked: None, answered: Some(now), ..Times::default() });
    for _ in 0..40 {
        let services: Vec<u64> = (0..4).map(|_| 300 * US + numbers.below(2 * MS)).collect();
        let done = made.round(0..4, now + 120 * US, |c| services[c]);
        // Answered 80 us later; the client asks again after a while of its own.
        now = made.ask(4, done + 80 * US, done + 80 * US + 5 * MS + numbers.exponential(30 * MS));
    }
    let found = made.infer();
    let (fan_out, share) = main_edge(company(&found, 0));
    assert_eq!(
        (fan_out.event.as_str(), fan_out.delay.median_ns),
        ("others-answers", 120 * US),
        "{:?}",
        found.companies
    );
    assert!(share > 0.95);
    let (answer, _) = main_edge(company(&found, 4));
    assert_eq!((answer.event.as_str(), answer.delay.median_ns), ("others-answers", 80 * US));
}

/// Two users who ask on a new connection each time, with fan-outs over four connections each; the answer leaves 80 us after these have come, but `early(n)`
/// nanoseconds before the tap is sure of that. How many answers are found to wait for a fan-out, and how many of these for the other user's.
fn answered_to_clients(early: impl Fn(u64) -> u64) -> (usize, usize) {
    let (mut made, mut numbers, mut whose) = (Made::new(8), Numbers(41), Vec::new());
    for user in 0..2 {
        let mut now = user * 7 * MS;
        for n in 0..60 {
            let services: Vec<u64> = (0..8).map(|_| MS + numbers.below(9 * MS)).collect();
            let conns = user as usize * 4..user as usize * 4 + 4;
            let end = made.round(conns.clone(), now + 300 * US, |c| services[c]);
            let slowest = conns.max_by_key(|&c| made.talks[c].times.last().unwrap().answered).unwrap();
            let last = made.talks[slowest].times.last_mut().unwrap();
            (last.answered, last.unsure) = (Some(end + early(n)), early(n));
            let asked = Times { asked: None, answered: Some(now), ..Times::default() };
            let answer = Times { asked: Some(end + 80 * US), ..Times::default() };
            whose.push(user as u32 * 4);
            made.talks.push(Talk { server: 9, upstream: true, times: vec![asked, answer], ..Talk::default() });
            now = end + MS + numbers.exponential(10 * MS);
        }
    }
    let found = made.infer();
    let of = |release: Option<Release>| match release {
        Some(Release::Round { round, .. }) => {
            Some(found.rounds[round as usize].requests.iter().map(|&(c, _)| c).min()?)
        }
        _ => None,
    };
    let waits: Vec<Option<u32>> = found.releases[8..].iter().map(|releases| of(releases[1])).collect();
    (
        waits.iter().flatten().count(),
        waits.iter().zip(whose).filter(|(waits, own)| waits.is_some_and(|w| w != *own)).count(),
    )
}

#[test]
fn each_client_s_answer_waits_for_his_own_fan_out_though_two_begin_and_end_together() {
    assert_eq!(answered_to_clients(|_| 0), (120, 0));
}

#[test]
fn an_answer_to_a_client_may_leave_before_the_tap_is_sure_that_its_fan_out_has_ended() {
    assert_eq!(answered_to_clients(|n| if n % 10 == 3 { 400 * US } else { 0 }), (120, 0));
}

#[test]
fn too_few_rounds_show_nothing() {
    let mut made = Made::new(4);
    let mut now = 0;
    for n in 0..3 {
        now = made.round(0..4, now, |c| 400 * US + c as u64 * n * 10 * US) + 2 * MS;
    }
    let found = made.infer();
    assert!(found.rounds.is_empty() && found.releases.iter().flatten().all(Option::is_none));
}

/// Each request asks two of four servers, on connections that it opens for that at once; each handshake takes 1 to 4 ms.
#[test]
fn a_message_whose_handshake_takes_long_is_of_the_request_that_its_connection_was_opened_for() {
    let (mut talks, mut numbers, mut now) = (Vec::new(), Numbers(3), MS);
    for _ in 0..80 {
        let (begin, first) = (now, numbers.below(4) as u32);
        let second = (first + 1 + numbers.below(3) as u32) % 4;
        for (k, server) in (0..).zip([first, second]) {
            let opened = begin + k * 50 * US;
            let asked = opened + MS + numbers.below(3 * MS);
            let answered = asked + 500 * US + numbers.below(MS);
            let times = vec![Times { asked: Some(asked), answered: Some(answered), ..Times::default() }];
            talks.push(Talk { server, opened: Some(opened), times, ..Talk::default() });
            now = now.max(answered);
        }
        now += 2 * MS + numbers.exponential(5 * MS);
    }
    let found = infer(&talks);
    let whole: Vec<&Round> = found.rounds.iter().filter(|round| !round.is_gate()).collect();
    assert_eq!(whole.len(), 80);
    assert!(whole.iter().all(|round| round.requests.len() == 2 && round.opened_ns.is_some()));
    // The replay waits until the message itself leaves, the handshake included.
    let second = &whole[1].requests;
    let sent = |&(conn, _): &(u32, u32)| talks[conn as usize].times[0].asked.unwrap();
    let end = whole[0].requests.iter().map(|&(conn, _)| talks[conn as usize].times[0].answered.unwrap()).max().unwrap();
    for place in second {
        let delay = match found.releases[place.0 as usize][0] {
            Some(Release::Round { delay_ns, .. }) => delay_ns,
            _ => 0,
        };
        assert_eq!(delay, sent(place) - end);
    }
}

#[test]
fn requests_that_are_two_hundredths_steadier_tell_more_than_what_leaves_together() {
    use super::is_steadier;
    assert!(is_steadier(0.93, 0.9) && !is_steadier(0.915, 0.9));
}
