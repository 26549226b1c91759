//! What a timer of the application asks.

use super::*;

#[test]
fn a_timer_that_polls_is_no_barrier() {
    let (mut made, mut numbers) = (Made::new(5), Numbers(13));
    for n in 0..40 {
        let services: Vec<u64> = (0..5).map(|_| 300 * US + numbers.below(6 * MS)).collect();
        made.round(0..5, n * 10 * MS + numbers.below(20 * US), |c| services[c]);
    }
    let found = made.infer();
    let company = company(&found, 0);
    let (edge, _) = main_edge(company);
    assert_eq!((edge.event.as_str(), company.rounds), ("timer", 40));
    assert!(edge.delay.median_ns.abs_diff(10 * MS) < 20 * US);
    assert!(found.releases.iter().flatten().all(|r| *r == Some(Release::Clock { regardless: false })));
}

#[test]
fn a_timer_whose_first_answers_come_as_steadily_is_still_a_timer() {
    let (mut made, mut numbers) = (Made::new(12), Numbers(41));
    for n in 0..20 {
        // The first answers come 450 us after every round began, the slowest after 1 to 9 ms.
        let services: Vec<u64> =
            (0..12).map(|c| if c == 0 { 450 * US } else { 900 * US + numbers.below(8 * MS) }).collect();
        made.round(0..12, n * 100 * MS + numbers.below(5 * US), |c| services[c]);
    }
    let found = made.infer();
    let (edge, share) = main_edge(company(&found, 0));
    assert_eq!((edge.event.as_str(), share > 0.94), ("timer", true), "{:?}", company(&found, 0));
}

#[test]
fn a_timer_of_whose_rounds_some_are_not_full_is_still_a_timer() {
    let (mut made, mut numbers) = (Made::new(12), Numbers(47));
    for n in 0..40 {
        let services: Vec<u64> =
            (0..12).map(|c| if c == 0 { 450 * US } else { 900 * US + numbers.below(8 * MS) }).collect();
        // Of every third round the tap has lost a request, so that the next full one comes two periods later.
        let lost = if n % 3 == 2 { 1 + n as usize % 11 } else { 12 };
        made.round((0..12).filter(|&c| c != lost), n * 100 * MS + numbers.below(15 * US), |c| services[c]);
        if n % 8 == 1 {
            made.ask(5, (n * 100 + 40) * MS, (n * 100 + 41) * MS);
        }
    }
    let found = made.infer();
    // What is asked between two ticks does not leave by the timer.
    let between = found.releases[5].iter().filter(|release| release.is_none()).count();
    assert_eq!(between, 5);
    let (edge, share) = main_edge(company(&found, 0));
    assert!(edge.event == "timer" && edge.delay.median_ns.abs_diff(100 * MS) < 20 * US, "{:?}", company(&found, 0));
    // The other requests of a round that is not full leave by the same timer.
    assert!(share > 0.94, "{share}");
}

#[test]
fn rounds_of_steady_length_are_no_timer_where_the_tap_knows_their_ends_to_a_part_of_a_millisecond() {
    let event = |unsure: u64| {
        let (mut made, mut numbers) = (Made::new(8), Numbers(53));
        let mut now = MS;
        for _ in 0..30 {
            // Nothing acknowledges the slowest answer, which is taken to come later than it does.
            let late = numbers.below(500 * US);
            let start = now;
            for c in 0..8 {
                let at = start + c * 10 * US;
                made.ask(c as usize, at, at + if c == 7 { 8 * MS + late } else { 3 * MS + c * 500 * US });
                made.talks[c as usize].times.last_mut().unwrap().unsure = unsure;
            }
            now = start + 70 * US + 8 * MS + 5 * MS + numbers.below(30 * US);
        }
        main_edge(company(&made.infer(), 0)).0.event.clone()
    };
    assert_eq!((event(0).as_str(), event(500 * US).as_str()), ("timer", "answers"));
}

#[test]
fn a_timer_that_was_seen_not_to_wait_for_an_answer_never_does() {
    let clocks = |slow: u64| {
        let (mut made, mut numbers) = (Made::new(5), Numbers(43));
        for n in 0..40 {
            let services: Vec<u64> = (0..5).map(|_| 300 * US + numbers.below(6 * MS)).collect();
            let slowest = |c: usize| if (c, n) == (2, 17) { slow } else { services[c] };
            made.round(0..5, n * 10 * MS + numbers.below(20 * US), slowest);
        }
        let found = made.infer();
        let timed = |r: &&Option<Release>| matches!(r, Some(Release::Clock { regardless: true }));
        (main_edge(company(&found, 0)).0.event.clone(), found.releases.iter().flatten().filter(timed).count())
    };
    assert_eq!(clocks(9 * MS), ("timer".to_owned(), 0));
    // All but the five that begin.
    assert_eq!(clocks(25 * MS), ("timer".to_owned(), 195));
}

/// A pool with a second connection to each server, which a check takes where the first is busy.
#[test]
fn checks_in_a_loop_on_the_service_s_own_connections_are_no_requests() {
    let (mut made, mut numbers, mut now, mut tick) = (Made::new(8), Numbers(23), MS, 40 * MS);
    made.talks.iter_mut().zip((0..4).cycle()).for_each(|(talk, server)| talk.server = server);
    let sized = |made: &mut Made, conn: usize, bytes: u64| made.talks[conn].times.last_mut().unwrap().bytes = bytes;
    for _ in 0..100 {
        let service: Vec<u64> = (0..4).map(|_| MS + numbers.below(4 * MS)).collect();
        let end = made.round(0..4, now, |c| service[c]);
        (0..4).for_each(|conn| sized(&mut made, conn, 20_000));
        now = end + 5 * MS + numbers.below(40 * MS);
        while tick < now {
            let first = if tick < end || tick + 2 * MS > now { 4 } else { 0 };
            for server in 0..4 {
                let asked = tick + server as u64 * 400 * US;
                made.ask(first + server, asked, asked + 200 * US);
                sized(&mut made, first + server, 150);
            }
            tick += 300 * MS;
        }
    }
    let found = made.infer();
    let sizes: Vec<usize> = found.rounds.iter().map(|round| round.requests.len()).collect();
    // On a connection that carries nothing else a check is a message of its own.
    let shared = (0..4).map(|conn| made.talks[conn].times.iter().filter(|times| times.bytes == 150).count());
    let by_clock = |release: &&Option<Release>| **release == Some(Release::Clock { regardless: true });
    let checks = found.releases.iter().flatten().filter(by_clock).count();
    assert_eq!((sizes, checks), (vec![4; 100], shared.sum()));
}

/// Each connection's heartbeats leave where no request is under way, and the capture begins in between.
#[test]
fn heartbeats_on_the_service_s_connections_are_no_requests() {
    let (mut made, mut numbers, mut now) = (Made::new(6), Numbers(29), 7 * MS);
    let mut beats: Vec<u64> = (0..6).map(|conn| conn * 3 * MS).collect();
    for _ in 0..75 {
        let service: Vec<u64> = (0..6).map(|_| MS + numbers.below(4 * MS)).collect();
        for (conn, service) in service.iter().enumerate() {
            while beats[conn] + 500 * US < now {
                made.ask(conn, beats[conn], beats[conn] + 150 * US);
                made.talks[conn].times.last_mut().unwrap().bytes = 20;
                beats[conn] += 20 * MS;
            }
            beats[conn] = beats[conn].max(now + service + 100 * US);
        }
        let end = made.round(0..6, now, |c| service[c]);
        made.talks.iter_mut().for_each(|talk| talk.times.last_mut().unwrap().bytes = 20_000);
        now = end + 30 * MS + numbers.below(40 * MS);
    }
    let sizes: Vec<usize> = made.infer().rounds.iter().map(|round| round.requests.len()).collect();
    assert_eq!(sizes, vec![6; 75]);
}
