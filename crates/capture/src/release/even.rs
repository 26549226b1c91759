//! Requests that ask each server once, told by their order alone.
//!
//! A host that is busy, or an interpreter, takes milliseconds from one message of a request to the next, longer than a user's pause may be; then no time
//! tells where a request ends. But who asks each server once asks all of them equally often, and requests that queue for the same threads or the same
//! connections leave in the order in which they came: the message of a request to one server is that server's next in order, as it is the next of
//! each other server. Services that only happen to be asked as often drift apart, and where a message is missing, order slips.

use super::bursts::Ask;
use super::joined::FEWEST;
use super::like;
use super::requests::{AS_ONE, Cut, RARELY, Request, STEADY, VALLEY, odd, steadiness, usual};
use super::steady::median;
use super::{CLEAR, LEAST_ROUNDS, SEEN};

/// The messages to one server: when each was begun, and which it is.
type Asked = Vec<(u64, u32)>;

/// Requests by order in place of others, of which too many are odd; none where they are not known, or no better.
pub(super) fn cut(known: &Cut, mine: &[u32], asks: &[Ask]) -> Option<Cut> {
    let others = known.requests.as_slice();
    // Where each has one message, nothing is known.
    let shown = steadiness(others) > 0.0;
    let alike = shown && odd(others) as f64 <= AS_ONE * others.len() as f64;
    let servers = servers(mine, asks);
    // What a timer sends anew asks a server twice.
    if !known.late.is_empty() || alike && usual(others) >= Some(servers.len()) {
        return None;
    }
    let requests = of_servers(&servers, mine, asks)?;
    let cut = |requests| Cut { requests, concurrent: true, ..Cut::default() };
    if alike {
        // Requests that are alike and ask some of the servers, always the same together: stages.
        let stages = are_stages(others, &requests) && quick(&Pauses::of(&requests, mine, asks));
        return stages.then(|| cut(requests));
    }
    // Whose requests are known to be of several messages to each server does not ask each once.
    let parts = steadiness(others) >= CLEAR && usual(others) > usual(&requests);
    let better = (!shown || odd(&requests) < odd(others)) && steadiness(&requests) >= STEADY && !parts;
    better.then(|| cut(requests))
}

/// Whether nearly all of these are within one of the whole ones each.
fn are_stages(parts: &[Request], whole: &[Request]) -> bool {
    let mut of: Vec<(u32, usize)> =
        whole.iter().enumerate().flat_map(|(n, request)| request.iter().map(move |&ask| (ask, n))).collect();
    of.sort_unstable();
    let place = |ask: &u32| of.binary_search_by_key(ask, |&(ask, _)| ask).map(|place| of[place].1).ok();
    let inside = parts.iter().filter(|part| part.windows(2).all(|pair| place(&pair[0]) == place(&pair[1]))).count();
    inside as f64 >= STEADY * parts.len() as f64
}

/// The messages of a group by server, in order.
fn servers(mine: &[u32], asks: &[Ask]) -> Vec<Asked> {
    let mut of: Vec<(u32, u64, u32)> =
        mine.iter().map(|&n| (asks[n as usize].server, asks[n as usize].at, n)).collect();
    of.sort_unstable();
    of.chunk_by(|a, b| a.0 == b.0).map(|same| same.iter().map(|&(_, at, n)| (at, n)).collect()).collect()
}

/// The requests; none where servers are not asked equally often, or not in step.
fn of_servers(servers: &[Asked], mine: &[u32], asks: &[Ask]) -> Option<Vec<Request>> {
    let counts = || servers.iter().map(Vec::len);
    let (most, least) = (counts().max()?, counts().min()?);
    if servers.len() < 2 || least < FEWEST || (most - least) as f64 > (AS_ONE * most as f64).max(1.0) {
        return None;
    }
    // In step with the one that is asked first mostly.
    let first = servers.iter().min_by_key(|messages| (std::cmp::Reverse(messages.len()), messages[0].0))?;
    let mut all: Vec<Request> = Vec::new();
    for messages in servers {
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
    let whole = !like::some_will_do(&all, asks) && !like::are_parts(&all, asks) && !like::begin_together(&all, asks);
    (whole && !Pauses::of(&all, mine, asks).are_spanned()).then_some(all)
}

/// By how many messages the second server is ahead of the first where the capture begins; none: they are not in step, or not all the time.
fn lag(first: &Asked, second: &Asked) -> Option<i64> {
    let apart = |from: usize, to: usize, lag: i64| {
        let pair = |n: usize| Some(first.get(usize::try_from(n as i64 + lag).ok()?)?.0.abs_diff(second[n].0));
        median(&(from..to).filter_map(pair).collect::<Vec<u64>>())
    };
    let (most, all) = (LEAST_ROUNDS as i64, second.len());
    // The capture begins inside a request: some servers have been asked for it, and are a message behind.
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

/// Pauses in which nothing is missing, in order: whether a request goes on over it, and how long it is. Those of the first requests are left out, in
/// which an application warms up.
struct Pauses(Vec<(bool, u64)>);

impl Pauses {
    fn of(requests: &[Request], mine: &[u32], asks: &[Ask]) -> Pauses {
        // Of how many requests messages left both before this one and with it or later.
        let mut ends = vec![(0_usize, 0_usize); mine.len()];
        let place = |n: u32| mine.binary_search(&n).unwrap_or_default();
        for request in requests {
            ends[place(request[0])].0 += 1;
            ends[place(request[request.len() - 1])].1 += 1;
        }
        let (mut open, mut answered, mut all) = (0, 0, 0);
        let mut pauses: Vec<(bool, u64)> = Vec::new();
        for (&n, (begun, ended)) in mine.iter().zip(ends) {
            let ask = &asks[n as usize];
            if all > LEAST_ROUNDS && ask.at > answered + SEEN {
                pauses.push((open > 0, ask.at - answered));
            }
            (open, all) = (open + begun - ended, all + begun);
            answered = answered.max(ask.answered.unwrap_or(ask.at));
        }
        Pauses(pauses)
    }

    /// Those between requests, and those within.
    fn of_kind(&self, spanned: bool) -> Vec<u64> {
        self.0.iter().filter(|&&(kind, _)| kind == spanned).map(|&(_, pause)| pause).collect()
    }

    /// Whether requests go on over one pause after another, each longer than most between requests: then order slipped.
    fn are_spanned(&self) -> bool {
        let usual = median(&self.of_kind(false));
        let long: Vec<bool> = self.0.iter().filter(|&&(_, pause)| pause > usual).map(|&(spanned, _)| spanned).collect();
        long.windows(LEAST_ROUNDS).any(|run| run.iter().all(|&spanned| spanned))
    }
}

/// Whether pauses within requests are seldom as long as half of those between them: who asks now these servers and now those in turn, a request each,
/// pauses as long before the one as before the other.
fn quick(pauses: &Pauses) -> bool {
    let (within, usual) = (pauses.of_kind(true), median(&pauses.of_kind(false)));
    let long = within.iter().filter(|&&pause| pause > usual).count();
    within.len() >= FEWEST && long as f64 <= RARELY * within.len() as f64
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
        Some(
            of_servers(&servers(&all, &asks), &all, &asks)?
                .iter()
                .map(|request| request.iter().map(server).collect())
                .collect(),
        )
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
    fn an_application_that_asks_one_server_after_another_at_first_warms_up() {
        // Twice each server, 40 ms apart, before requests of two stages.
        let first = (0..4).flat_map(|k| [(k as u32, 40 * k, 40 * k + 2), (k as u32, 40 * k + 5, 40 * k + 7)]);
        let one =
            |n: u64| [(0, 0), (1, 0), (2, 8), (3, 8)].map(|(k, after)| (k, 400 + 60 * n + after, 404 + 60 * n + after));
        assert_eq!(found(first.chain((0..40).flat_map(one)).collect()).map(|all| all.len()), Some(42));
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

    /// Halves of requests, of which the second leaves after so many milliseconds, and the next request after 20 or more: how many requests they are.
    fn halves(pause: impl Fn(u64) -> u64, parts: impl Fn(u32) -> [u32; 2]) -> Option<usize> {
        let mut at = 0;
        let mut one = |n: u64| {
            let second = at + 4 + pause(n);
            let request = [(0, at, at + 4), (1, at, at + 4), (2, second, second + 4), (3, second, second + 4)];
            at = second + 4 + 20 + n * 7 % 13;
            request
        };
        let asks = asks(&(0..40).flat_map(&mut one).collect::<Vec<Message>>());
        let all: Vec<u32> = (0..160).collect();
        let known = Cut { requests: (0..80).map(|n| parts(n).to_vec()).collect(), ..Cut::default() };
        cut(&known, &all, &asks).map(|cut| cut.requests.len())
    }

    #[test]
    fn halves_that_follow_each_other_sooner_than_requests_do_are_stages() {
        let in_turn = |n: u32| [2 * n, 2 * n + 1];
        assert_eq!(halves(|n| 3 + n % 9, in_turn), Some(40));
        assert_eq!(halves(|n| 20 + n * 5 % 13, in_turn), None, "as long as between requests");
        let late = |count: u64| halves(move |n| if n % 9 == 5 && n < 9 * count { 40 } else { 3 }, in_turn);
        assert_eq!((late(3), late(4)), (Some(40), None), "one in ten of the 36 after the first may be late");
        assert_eq!(halves(|n| 3 + n % 9, |n| [n, n + 80]), None, "not within a request each");
    }
}
