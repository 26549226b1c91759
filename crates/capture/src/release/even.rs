//! Requests that ask each server once, told by their order alone.
//!
//! A host that is busy, or an interpreter, takes milliseconds from one message of a request to the next, longer than a user's pause may be; then no time
//! tells where a request ends. But who asks each server once asks all of them equally often, and requests that queue for the same threads or the same
//! connections leave in the order in which they came: the message of a request to one server is that server's next in order, as it is the next of
//! each other server. Services that only happen to be asked as often drift apart, and where a message is missing, order slips.

use super::bursts::Ask;
use super::joined::FEWEST;
use super::like;
use super::requests::{AS_ONE, Cut, Request, STEADY, VALLEY, odd, steadiness, usual};
use super::steady::median;
use super::{CLEAR, LEAST_ROUNDS, SEEN};

/// The messages to one server: when each was begun, and which it is.
type Asked = Vec<(u64, u32)>;

/// Requests by order in place of others, of which too many are odd; none where they are not known, or no better.
pub(super) fn cut(known: &Cut, mine: &[u32], asks: &[Ask]) -> Option<Cut> {
    let others = known.requests.as_slice();
    // What a timer sends anew asks a server twice.
    if !known.late.is_empty() || odd(others) as f64 <= AS_ONE * others.len() as f64 {
        return None;
    }
    let requests = requests(mine, asks)?;
    // Whose requests are known to be of several messages to each server does not ask each once.
    let parts = steadiness(others) >= CLEAR && usual(others) > usual(&requests);
    let better = odd(&requests) < odd(others) && steadiness(&requests) >= STEADY && !parts;
    better.then(|| Cut { requests, concurrent: true, valley: false, late: Vec::new() })
}

/// The requests; none where servers are not asked equally often, or not in step.
pub(super) fn requests(mine: &[u32], asks: &[Ask]) -> Option<Vec<Request>> {
    let mut of: Vec<(u32, u64, u32)> =
        mine.iter().map(|&n| (asks[n as usize].server, asks[n as usize].began(), n)).collect();
    of.sort_unstable();
    let servers: Vec<Asked> =
        of.chunk_by(|a, b| a.0 == b.0).map(|same| same.iter().map(|&(_, at, n)| (at, n)).collect()).collect();
    let counts = || servers.iter().map(Vec::len);
    let (most, least) = (counts().max()?, counts().min()?);
    if servers.len() < 2 || least < FEWEST || (most - least) as f64 > (AS_ONE * most as f64).max(1.0) {
        return None;
    }
    // In step with the one that is asked first mostly.
    let first = servers.iter().min_by_key(|messages| (std::cmp::Reverse(messages.len()), messages[0].0))?;
    let mut all: Vec<Request> = Vec::new();
    for messages in &servers {
        let lag = lag(first, messages)?;
        for (n, &(_, ask)) in messages.iter().enumerate() {
            let place = (n as i64 + lag + LEAST_ROUNDS as i64) as usize;
            if all.len() <= place {
                all.resize_with(place + 1, Vec::new);
            }
            all[place].push(ask);
        }
    }
    all.retain(|request| !request.is_empty());
    all.iter_mut().for_each(|request| request.sort_unstable());
    all.sort_unstable_by_key(|request| request[0]);
    // Who goes on without the last answers asks in the same order, and no pause ends his requests.
    let whole = !like::some_will_do(&all, asks) && !like::are_parts(&all, asks);
    (whole && !span_pauses(&all, mine, asks)).then_some(all)
}

/// By how many messages the second server is ahead of the first where the capture begins; none: they are not in step, or not all the time.
fn lag(first: &Asked, second: &Asked) -> Option<i64> {
    let apart = |from: usize, to: usize, lag: i64| {
        let pair = |n: usize| Some(first.get(usize::try_from(n as i64 + lag).ok()?)?.0.abs_diff(second[n].0));
        median(&(from..to).filter_map(pair).collect::<Vec<u64>>())
    };
    let (most, all) = (LEAST_ROUNDS as i64, second.len());
    let lag = (-most..=most).min_by_key(|&lag| (apart(0, all, lag), lag.abs()))?;
    let further = apart(0, all, lag - 2).min(apart(0, all, lag + 2));
    if VALLEY * apart(0, all, lag) as f64 > further as f64 {
        return None;
    }
    // What is missing puts all after it out of step, and a server that is slow for a while does not.
    let parts = (all / FEWEST).min(LEAST_ROUNDS);
    let in_step = |part: usize| {
        let (from, to) = (part * all / parts, (part + 1) * all / parts);
        let next = apart(from, to, lag - 1).min(apart(from, to, lag + 1));
        apart(from, to, lag) as f64 <= VALLEY * next as f64
    };
    (0..parts).all(in_step).then_some(lag)
}

/// Whether requests go on over one pause after another in which nothing is missing, each longer than most between requests: then order slipped.
fn span_pauses(requests: &[Request], mine: &[u32], asks: &[Ask]) -> bool {
    // Of how many requests messages left both before this one and with it or later.
    let mut ends = vec![(0_usize, 0_usize); mine.len()];
    let place = |n: u32| mine.binary_search(&n).unwrap_or_default();
    for request in requests {
        ends[place(request[0])].0 += 1;
        ends[place(request[request.len() - 1])].1 += 1;
    }
    let (mut open, mut answered) = (0, 0);
    let mut pauses: Vec<(bool, u64)> = Vec::new();
    for (&n, (begun, ended)) in mine.iter().zip(ends) {
        let ask = &asks[n as usize];
        if n != mine[0] && ask.at > answered + SEEN {
            pauses.push((open > 0, ask.at - answered));
        }
        open = open + begun - ended;
        answered = answered.max(ask.answered.unwrap_or(ask.at));
    }
    let between: Vec<u64> = pauses.iter().filter(|(spanned, _)| !spanned).map(|&(_, pause)| pause).collect();
    let usual = median(&between);
    let long: Vec<bool> = pauses.iter().filter(|&&(_, pause)| pause > usual).map(|&(spanned, _)| spanned).collect();
    long.windows(LEAST_ROUNDS).any(|run| run.iter().all(|&spanned| spanned))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A message: its server, and when it leaves and is answered, in milliseconds.
    type Message = (u32, u64, u64);

    fn asks(messages: &[Message]) -> Vec<Ask> {
        let ask = |&(server, at, answered): &Message| Ask {
            at: at * MS,
            answered: Some(answered * MS),
            server,
            conn: server,
            ..Ask::default()
        };
        messages.iter().map(ask).collect()
    }

    fn found(mut messages: Vec<Message>) -> Option<Vec<Vec<u32>>> {
        messages.sort_by_key(|&(_, at, _)| at);
        let asks = asks(&messages);
        let all: Vec<u32> = (0..asks.len() as u32).collect();
        let server = |&n: &u32| asks[n as usize].server;
        Some(requests(&all, &asks)?.iter().map(|request| request.iter().map(server).collect()).collect())
    }

    /// So many requests 60 ms apart, each of four messages that leave 7 ms apart. A message is answered after 4 ms, the last one after so many.
    fn slow_loop(count: u64, last: u64) -> Vec<Message> {
        let message = move |n: u64, k: u64| {
            let at = 60 * n + 7 * k;
            (k as u32, at, at + if k == 3 { last } else { 4 })
        };
        (0..count).flat_map(|n| (0..4).map(move |k| message(n, k))).collect()
    }

    #[test]
    fn messages_that_leave_milliseconds_apart_are_of_one_request_where_each_server_is_asked_once() {
        assert_eq!(found(slow_loop(40, 4)), Some(vec![vec![0, 1, 2, 3]; 40]));
        assert!(found(slow_loop(19, 4)).is_none(), "fewer than twenty tell nothing");
    }

    #[test]
    fn two_users_whose_messages_queue_for_one_thread_are_told_by_order() {
        let request = |begin: u64| (0..4).map(move |k| (k as u32, begin + 2 * k, begin + 2 * k + 20));
        let both =
            (0..40).flat_map(|n| [60 * n, 60 * n + if n % 3 == 0 { 14 } else { 34 }]).flat_map(request).collect();
        assert_eq!(found(both), Some(vec![vec![0, 1, 2, 3]; 80]));
    }

    #[test]
    fn order_that_slips_where_one_message_is_missing_and_another_is_over_tells_nothing() {
        let slips = |from: u64, to: u64| {
            let mut messages = slow_loop(40, 4);
            // The third server lacks the message of one request, and has one more in a later one.
            messages.retain(|&(server, at, _)| (server, at / 60) != (2, from));
            messages.push((2, to * 60 + 15, to * 60 + 17));
            found(messages).is_none()
        };
        assert!(slips(10, 20) && slips(10, 39) && slips(1, 30));
    }

    #[test]
    fn servers_that_are_not_asked_equally_often_are_not_asked_once_by_each_request() {
        let fewer = |count: u64| {
            let mut messages = slow_loop(500, 4);
            messages.retain(|&(server, at, _)| server != 2 || at / 60 < 500 - count);
            found(messages).is_none()
        };
        assert!(!fewer(5) && fewer(6), "one in a hundred");
    }

    #[test]
    fn services_that_happen_to_be_asked_as_often_drift_apart() {
        let alone = |server: u32| {
            let every = 40 + u64::from(server);
            (0..60).map(move |n| (server, n * every, n * every + 4))
        };
        assert_eq!(found((0..4).flat_map(alone).collect()), None);
    }

    #[test]
    fn who_goes_on_without_the_last_answer_is_told_by_no_order() {
        assert!(found(slow_loop(40, 30)).is_some() && found(slow_loop(40, 50)).is_none());
    }

    #[test]
    fn order_is_not_asked_where_others_are_steady_or_ask_each_server_twice() {
        let messages = slow_loop(40, 4);
        let asks = asks(&messages);
        let all: Vec<u32> = (0..160).collect();
        let known = |requests: Vec<Request>| Cut { requests, ..Cut::default() };
        // Requests of so many messages, of which the second is parted in two.
        let told = |size: usize| {
            let mut others: Vec<Request> = all.chunks(size).map(<[u32]>::to_vec).collect();
            let rest = others[1].split_off(1);
            others.push(rest);
            cut(&known(others), &all, &asks).map(|cut| cut.requests.len())
        };
        assert_eq!((told(4), told(8)), (Some(40), None));
        assert!(cut(&known(all.chunks(4).map(<[u32]>::to_vec).collect()), &all, &asks).is_none());
    }
}
