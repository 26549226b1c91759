//! Requests that cannot have been mixed up, however many messages they have: each begins when nothing of its group is missing, after a pause that is longer
//! by far than any inside requests, and none asks a server twice, as two that were taken for one would.

use super::bursts::{Ask, TOGETHER};
use super::joined::FEWEST;
use super::quantile;
use super::requests::{IN_THE_VALLEY, Request, VALLEY};

/// A request as the rule looks at it.
pub(crate) struct Standing {
    pub begin: u64,
    /// When its last answer had come.
    pub end: u64,
    /// Of each message but the first that left when nothing before it was missing: for how long nothing was.
    pub waits: Vec<u64>,
    /// It asks a server twice.
    pub again: bool,
}

/// Whether requests, in order of their begins, stand apart. None: an answer of it is not in the capture.
pub(crate) fn stand_apart(requests: impl Iterator<Item = Option<Standing>>) -> bool {
    let (mut inside, mut pauses, mut ended) = (Vec::new(), Vec::new(), None::<u64>);
    let (mut count, mut odd) = (0_usize, 0_usize);
    for request in requests {
        count += 1;
        let Some(Standing { begin, end, waits, again }) = request else {
            odd += 1;
            continue;
        };
        inside.extend(waits);
        match ended.map(|ended| begin.checked_sub(ended)) {
            Some(Some(pause)) => pauses.push(pause),
            Some(None) => odd += 1,
            None => {}
        }
        odd += usize::from(again);
        ended = ended.max(Some(end));
    }
    if count < FEWEST || odd as f64 > IN_THE_VALLEY * count as f64 || pauses.is_empty() {
        return false;
    }
    let longest = quantile(&inside, 1.0 - IN_THE_VALLEY).max(TOGETHER);
    quantile(&pauses, IN_THE_VALLEY) as f64 >= VALLEY * longest as f64
}

/// Whether requests of one group do.
pub(super) fn do_stand(requests: &[Request], asks: &[Ask]) -> bool {
    let standing = |request: &Request| {
        let mine = || request.iter().map(|&n| &asks[n as usize]);
        let mut servers: Vec<u32> = mine().map(|ask| ask.server).collect();
        servers.sort_unstable();
        servers.dedup();
        let (mut end, mut waits) = (0, Vec::new());
        for (place, ask) in mine().enumerate() {
            waits.extend(ask.at.checked_sub(end).filter(|_| place > 0));
            end = end.max(ask.over()?);
        }
        Some(Standing { begin: mine().next()?.at, end, waits, again: servers.len() < request.len() })
    };
    stand_apart(requests.iter().map(standing))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// So many requests of one to seven servers, each answered after 1 to 3 ms; a stage of three more follows each, half a millisecond later, and the next
    /// request so long after the last answer.
    fn standing(count: u64, pause: u64, also: impl Fn(&mut Vec<Ask>)) -> bool {
        let (mut asks, mut requests, mut now) = (Vec::<Ask>::new(), Vec::new(), MS);
        for n in 0..count {
            let from = asks.len();
            for stage in [0..1 + n * 5 % 7, 7..10] {
                let ask = |server: u64| Ask {
                    at: now + server * 10_000,
                    answered: Some(now + MS + server * 200_000),
                    server: server as u32,
                    ..Ask::default()
                };
                asks.extend(stage.map(ask));
                now = asks.iter().filter_map(|ask| ask.answered).max().unwrap_or(0) + MS / 2;
            }
            requests.push((from as u32..asks.len() as u32).collect::<Request>());
            now += pause - MS / 2;
        }
        also(&mut asks);
        do_stand(&requests, &asks)
    }

    #[test]
    fn requests_of_any_size_stand_apart_after_pauses_three_times_as_long_as_inside() {
        // The stage leaves 570 us after the last answer: its first server is number 7.
        let alone = |pause| standing(40, pause, |_| ());
        assert_eq!((alone(1_709_000), alone(1_711_000)), (false, true));
    }

    #[test]
    fn twenty_requests_show_that_they_stand_apart() {
        assert_eq!((standing(19, 5 * MS, |_| ()), standing(20, 5 * MS, |_| ())), (false, true));
    }

    #[test]
    fn what_asks_a_server_twice_may_be_two_requests() {
        let again = |times: usize| {
            standing(50, 5 * MS, |asks| {
                asks.iter_mut().filter(|ask| ask.server == 9).take(times).for_each(|ask| ask.server = 8)
            })
        };
        // Up to 4 % may do so.
        assert_eq!((again(2), again(3)), (true, false));
    }
}
