//! Made-up captures in which a user waits for all answers or for some of them.

use super::{Found, Talk, Times, infer};
use crate::numbers::Numbers;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
const SERVERS: usize = 8;

/// What a capture shows of 100 requests to all servers, of which servers take up to `slow` and now and then much more, and what each took until so many answers had come; `pause`
/// after these.
fn run(waits_for: usize, slow: u64, mut pause: impl FnMut(usize, &mut Numbers) -> u64) -> (Found, Vec<u64>) {
    let mut talks: Vec<Talk> = (0..SERVERS as u32).map(|server| Talk { server, ..Talk::default() }).collect();
    let (mut numbers, mut now, mut took) = (Numbers(7), MS, Vec::new());
    for n in 0..100 {
        let mut ends: Vec<u64> = Vec::new();
        for (server, talk) in (0..).zip(&mut talks) {
            let at = now + server * 10 * US;
            let held = if numbers.below(16) == 0 { 40 * MS + numbers.below(20 * MS) } else { 0 };
            let end = at + MS + numbers.below(slow) + held;
            let overlapped = talk.times.last().and_then(|t| t.answered).is_some_and(|before| before > at);
            talk.times.push(Times { asked: Some(at), answered: Some(end), overlapped, ..Times::default() });
            ends.push(end);
        }
        ends.sort_unstable();
        took.push(ends[waits_for - 1] - now);
        now = ends[waits_for - 1] + pause(n, &mut numbers);
    }
    (infer(&talks), took)
}

/// What the requests took, and of how many it is said that some answers complete them.
fn read(found: &Found) -> (Vec<u64>, usize) {
    let mut all: Vec<_> = found.rounds.iter().filter(|round| !round.is_gate()).collect();
    all.sort_by_key(|round| round.requests.iter().map(|&(_, message)| message).min());
    let some = all.iter().filter(|round| round.waits_for.is_some()).count();
    (all.iter().filter_map(|round| round.took_ns).collect(), some)
}

#[test]
fn who_pauses_after_the_fifth_of_eight_answers_waits_for_five() {
    let (found, took) = run(5, 30 * MS, |_, numbers| 100 * MS + numbers.exponential(5 * MS));
    assert_eq!(read(&found), (took, 100));
}

#[test]
fn who_pauses_after_all_answers_waits_for_all_though_he_is_quick_now_and_then() {
    // Less than a millisecond quicker, in one of twenty requests: by more than the last answer but one mostly comes before the last.
    let quick = |n: usize| if n.is_multiple_of(20) { 1_500 * US } else { 0 };
    let (found, took) = run(SERVERS, 2 * MS, |n, numbers| 5 * MS + numbers.below(100 * US) - quick(n));
    assert_eq!(read(&found), (took, 0));
    let (found, took) = run(SERVERS, 2 * MS, |_, numbers| 5 * MS + numbers.exponential(10 * MS));
    assert_eq!(read(&found), (took, 0), "an exponential pause");
}
