//! Just inside and just outside of what tells requests.

use super::*;

const MS: u64 = 1_000_000;

/// A message to a server of its own number.
fn ask(at: u64, conn: u32, took: u64) -> Ask {
    Ask { at, sent: at, conn, server: conn, answered: Some(at + took), ..Ask::default() }
}

#[test]
fn a_stage_follows_within_500_us() {
    let requests =
        |later: u64| joined(&[vec![0], vec![1]], &[ask(0, 0, MS), ask(MS + later, 1, MS)], |_, _| true).len();
    assert_eq!((requests(500_000), requests(500_001)), (1, 2));
}

/// Two users of one pool of four servers: requests that run beside each other are all of four messages.
#[test]
fn requests_beside_each_other_must_be_a_twentieth_steadier() {
    let mut asks = Vec::new();
    for n in 0..40 {
        for (user, began) in [(0, n * 30 * MS), (1, n * 30 * MS + 2 * MS + n * 7_919 % MS)] {
            asks.extend((0..4).map(|server| Ask {
                conn: user * 4 + server,
                server,
                ..ask(began + u64::from(server) * 1_000, server, 5 * MS + u64::from(server) * 100_000)
            }));
        }
    }
    asks.sort_unstable_by_key(|ask| ask.at);
    let mine: Vec<u32> = (0..asks.len() as u32).collect();
    let found = |told: f64| side_by_side(told, &mine, &asks).is_some();
    assert_eq!((found(0.94), found(0.96)), (true, false));
}

/// A request of three messages whose answers are missing for a long time, so many others of three, and a message alone.
#[test]
fn a_timer_s_message_is_of_one_of_the_last_sixteen_requests() {
    let late = |others: u64| {
        let (mut asks, mut requests) = (Vec::new(), Vec::new());
        let mut add = |at: u64, count: u32, took: u64| {
            requests.push((asks.len() as u32..asks.len() as u32 + count).collect::<Request>());
            asks.extend((0..count).map(|conn| ask(at, conn, took)));
        };
        add(0, 3, 1_000 * MS);
        (0..others).for_each(|n| add((n + 1) * 10 * MS, 3, MS));
        add(500 * MS, 1, MS);
        hedged(requests, &asks).1.len()
    };
    assert_eq!((late(15), late(16)), (1, 0));
}

/// Ten requests of three messages, of which the last of so many leaves a millisecond later, while answers are missing.
#[test]
fn messages_that_leave_late_in_half_of_the_requests_wait_for_some_answers() {
    let how = |late: u64| {
        let (mut asks, mut requests) = (Vec::new(), Vec::<Request>::new());
        for n in 0..10 {
            requests.push((0..3).map(|k| asks.len() as u32 + k).collect());
            let held = |k: u32| if k == 2 && n < late { MS } else { 0 };
            asks.extend((0..3).map(|k| ask(n * 50 * MS + u64::from(k) * 10_000 + held(k), k, 10 * MS)));
        }
        inside(&requests, &asks)
    };
    assert_eq!((how(5), how(4)), (Inside::Early, Inside::Stages));
}

/// A request of seven messages, at most two at a time. Five follow the first two: so many while another answer is missing, the others alone.
#[test]
fn a_semaphore_is_full_again_after_six_of_ten_messages() {
    let how = |full: u64| {
        let mut asks = vec![ask(0, 0, full * 2 * MS + MS + MS / 2), ask(0, 1, MS)];
        asks.extend((1..=5).map(|n| ask(n * 2 * MS, 1 + n as u32, MS)));
        inside(&[(0..7).collect()], &asks)
    };
    assert_eq!(how(3), Inside::Semaphore(2));
    assert_ne!(how(2), Inside::Semaphore(2));
}

/// A hundred messages, two at a time, each for 10 ms, the second half a turn behind the first.
#[test]
fn a_semaphore_s_next_message_waits_for_answers_of_the_last_64() {
    let asks: Vec<Ask> = (0..100).map(|n| ask(n * 5 * MS, n as u32, 10 * MS - 100_000)).collect();
    let request: Request = (0..100).collect();
    let (first, steps) = steps(&request, &asks, Inside::Semaphore(2), &[]);
    assert_eq!((first, steps.len()), (2, 98));
    assert_eq!(steps.iter().map(|step| step.of.len()).max(), Some(64));
}
