//! Several requests in flight on one connection: which answer ends where.
//!
//! TCP has no messages. A request that is sent while the answer before is on its way ends a run of the answer somewhere in its middle, and requests that
//! are sent while no answer comes look like one. Where a connection asks and answers in equal sizes, the sums tell: what was asked is a whole
//! number of requests, and what was answered is as many answers, to the byte. Where they differ, the ends of the applications' writes may tell
//! ([`Write`]). Nothing is changed where neither does.

use crate::exchange::Exchange;
use crate::{Call, Connection, Direction, Front, Stretch, Write, WriteCounts};

/// A connection shows its sizes in so many requests that were answered before the next.
const SHOWN: usize = 3;

/// PSH tells messages apart if so many requests show it,
const SHOWN_BY_WRITES: u32 = 3;
/// and was something else in at most one of so many cases.
const ODD: u32 = 10;

/// Whether the ends of writes on these connections are ends of messages.
pub(crate) fn writes_tell(connections: impl Iterator<Item = Connection>) -> bool {
    let (shown, apart, odd) = connections.fold((0_u32, 0_u32, 0_u32), |(shown, apart, odd), c| {
        (shown.saturating_add(c.writes.shown), apart.saturating_add(c.writes.apart), odd.saturating_add(c.writes.odd))
    });
    shown >= SHOWN_BY_WRITES && odd.saturating_mul(ODD) <= shown.saturating_add(apart).saturating_add(odd)
}

/// Of so many requests of a connection none was seen to be answered alone or told apart: where the ends of writes tell messages, they were in flight
/// together up to the end of the capture, and their ends and those of the answers are not equally many.
pub(crate) fn tell_nothing(writes: WriteCounts, requests: usize) -> bool {
    (writes.shown, writes.apart, writes.odd) == (0, 0, 0) && requests >= SHOWN
}

/// What the ends of writes show, as counts that add up.
pub(crate) fn ends(writes: WriteCounts) -> [u64; 4] {
    [writes.shown, writes.apart, writes.odd, writes.several].map(u64::from)
}

/// Where several requests of an unknown protocol are under way on a connection and answered in any order: how often, of how many times. More than one
/// request has ended in these, and now and then as many as answers have, as parts of one request never do; but mostly the ends are no messages.
pub(crate) fn are_mixed([shown, apart, odd, several]: [u64; 4]) -> Option<(u64, u64)> {
    let (mixed, of) = (apart + several, shown + apart + odd);
    let often = |count: u64| count * u64::from(ODD) > of;
    (often(odd) && often(mixed) && apart >= u64::from(SHOWN_BY_WRITES)).then_some((mixed, of))
}

/// Puts what was read by the connection's protocol in the place of the turns that it looks like.
pub(crate) fn by_protocol(exchanges: Vec<Exchange>, stretches: &[Stretch]) -> Vec<Exchange> {
    if stretches.is_empty() {
        return exchanges;
    }
    let number = |e: &Exchange| e.pieces.map_or(u32::MAX, |(_, _, turn)| turn);
    // An answer that waits behind another one says nothing of its server's time.
    let alone = exchanges.iter().filter(|e| !e.overlapped).filter_map(|e| e.service);
    let alone = alone.filter(|_| stretches.iter().all(|s| s.calls.is_empty()));
    let seen = stretches.iter().flat_map(|s| &s.calls).filter_map(|call| call.service_ns);
    let mut served: Vec<u64> = alone.chain(seen).collect();
    served.sort_unstable();
    let service = served.get(served.len() / 2).copied();
    let mut all: Vec<Exchange> = Vec::with_capacity(exchanges.len());
    let mut left = stretches.iter().peekable();
    let mut replaced: Option<&Stretch> = None;
    for exchange in exchanges {
        let turn = number(&exchange);
        if replaced.is_some_and(|s| turn - s.turn < s.turns) {
            continue;
        }
        replaced = None;
        while let Some(stretch) = left.next_if(|s| s.turn <= turn) {
            let first = (turn - stretch.turn < stretch.turns).then_some(&exchange);
            read(stretch, first, service, &mut all);
            replaced = first.map(|_| stretch).or(replaced);
        }
        if replaced.is_none() {
            all.push(exchange);
        }
    }
    left.for_each(|stretch| read(stretch, None, service, &mut all));
    all
}

/// The calls of a stretch, of which `first` is the first turn.
fn read(stretch: &Stretch, first: Option<&Exchange>, service: Option<u64>, all: &mut Vec<Exchange>) {
    // Up to when the calls before were under way.
    let mut until = 0;
    for (n, call) in stretch.calls.iter().enumerate() {
        let &Call { request_start_ns, response_end_ns, .. } = call;
        let first = first.filter(|_| n == 0);
        all.push(Exchange {
            request_start: Some(request_start_ns),
            request_end: Some(call.request_end_ns),
            request_bytes: call.request_bytes,
            waited: first.and_then(|first| first.waited),
            response_start: call.response_start_ns,
            response_end: response_end_ns,
            response_bytes: call.response_bytes,
            service: call.service_ns.or(service),
            overlapped: first.map_or(request_start_ns < until, |first| first.overlapped),
            told: true,
            delivered: call.delivered_ns,
            unsure: call.unsure_ns,
            given_up: call.given_up_ns,
            front: first.map_or(Front::default(), |first| first.front),
            queued: first.and_then(|first| first.queued),
            pieces: None,
        });
        until = until.max(response_end_ns.unwrap_or(u64::MAX));
    }
}

/// Separates the exchanges of one connection that were in flight together by the ends of writes.
pub(crate) fn by_writes(exchanges: Vec<Exchange>, writes: &[Write]) -> Vec<Exchange> {
    if writes.is_empty() {
        return exchanges;
    }
    let number = |e: &Exchange| e.pieces.map_or(u32::MAX, |(_, _, turn)| turn);
    let stretch = |e: &Exchange| {
        let turn = number(e);
        writes
            .partition_point(|w| w.turn <= turn)
            .checked_sub(1)
            .map(|at| &writes[at])
            .filter(|w| turn - w.turn < w.turns)
    };
    let alone = exchanges.iter().filter(|e| !e.overlapped && stretch(e).is_none());
    // An answer that waits behind another one says nothing of its server's time.
    let mut served: Vec<u64> = alone.filter_map(|e| e.service).collect();
    served.sort_unstable();
    let service = served.get(served.len() / 2).copied();
    let mut separated = Vec::with_capacity(exchanges.len() + writes.len() / 2);
    let mut chain: Vec<Exchange> = Vec::new();
    for exchange in exchanges {
        let of = |e: &Exchange| stretch(e).map(|w| w.turn);
        if chain.first().is_some_and(|first| of(first).is_none() || of(first) != of(&exchange)) {
            separated.extend(apart(std::mem::take(&mut chain), writes, service));
        }
        chain.push(exchange);
    }
    separated.extend(apart(chain, writes, service));
    separated
}

/// The requests of a stretch one by one, if its bytes end where its last writes do.
fn apart(chain: Vec<Exchange>, writes: &[Write], service: Option<u64>) -> Vec<Exchange> {
    let Some((first, (_, _, turn))) = chain.first().and_then(|e| Some((e, e.pieces?))) else { return chain };
    let ends = |direction: Direction| -> Vec<&Write> {
        let from = writes.partition_point(|w| w.turn < turn);
        writes[from..].iter().take_while(|w| w.turn == turn).filter(|w| w.direction == direction).collect()
    };
    let (asked, answered) = (ends(Direction::ToServer), ends(Direction::ToClient));
    let (Some(last_asked), Some(last_answered)) = (asked.last(), answered.last()) else { return chain };
    let sum = |bytes: fn(&Exchange) -> u64| chain.iter().map(bytes).sum::<u64>();
    let from = last_asked.to.checked_sub(sum(|e| e.request_bytes)).filter(|&from| from < asked[0].to);
    let back = last_answered.to.checked_sub(sum(|e| e.response_bytes)).filter(|&from| from < answered[0].to);
    let (Some(mut asked_from), Some(mut answered_from)) = (from, back) else { return chain };
    // What the last answer took from the tap on.
    let come =
        chain.iter().rev().find_map(|e| e.delivered.map(|at| (at.saturating_sub(last_answered.at_ns), e.unsure)));
    let mut separated: Vec<Exchange> = Vec::with_capacity(asked.len());
    for (ask, answer) in asked.iter().zip(&answered) {
        let begins = separated.is_empty();
        separated.push(Exchange {
            request_start: if begins { first.request_start } else { Some(ask.start_ns) },
            request_end: Some(ask.at_ns),
            request_bytes: ask.to - asked_from,
            waited: first.waited.filter(|_| begins),
            response_start: first.response_start,
            response_end: Some(answer.at_ns),
            response_bytes: answer.to - answered_from,
            service,
            overlapped: first.overlapped || !begins,
            told: true,
            delivered: come.map(|(later, _)| answer.at_ns.saturating_add(later)),
            unsure: come.map_or(0, |(_, unsure)| unsure),
            given_up: None,
            front: if begins { first.front } else { Front::default() },
            queued: first.queued.filter(|_| begins),
            pieces: None,
        });
        (asked_from, answered_from) = (ask.to, answer.to);
    }
    separated
}

/// Puts the bounds of messages right in the exchanges of one connection that were in flight together.
pub(crate) fn separate(exchanges: Vec<Exchange>) -> Vec<Exchange> {
    let ended = |n: usize| exchanges.get(n + 1).is_none_or(|next: &Exchange| !next.overlapped);
    let alone = || exchanges.iter().enumerate().filter(|&(n, e)| !e.overlapped && ended(n)).map(|(_, e)| e);
    let (Some(asks), Some(answers)) = (most(alone().map(|e| e.request_bytes)), most(alone().map(|e| e.response_bytes)))
    else {
        return exchanges;
    };
    if exchanges.iter().all(|e| !e.overlapped && e.request_bytes == asks && e.response_bytes == answers) {
        return exchanges;
    }
    // An answer that waits behind another one says nothing of its server's time.
    let usual = |e: &&Exchange| e.request_bytes == asks && e.response_bytes == answers;
    let mut served: Vec<u64> = alone().filter(usual).filter_map(|e| e.service).collect();
    served.sort_unstable();
    let sizes = Sizes { asks, answers, service: served.get(served.len() / 2).copied() };
    let mut separated = Vec::with_capacity(exchanges.len());
    let mut chain: Vec<Exchange> = Vec::new();
    for mut exchange in exchanges {
        if let [before] = chain.as_slice()
            && sizes.ended_in(before, &exchange)
        {
            exchange.overlapped = true;
        }
        if !exchange.overlapped {
            separated.extend(sizes.each(std::mem::take(&mut chain)));
        }
        chain.push(exchange);
    }
    separated.extend(sizes.each(chain));
    separated
}

/// The size of more than half of the messages that there are.
fn most(sizes: impl Iterator<Item = u64>) -> Option<u64> {
    let mut sizes: Vec<u64> = sizes.collect();
    sizes.sort_unstable();
    let size = *sizes.get(sizes.len() / 2)?;
    let equal = sizes.iter().filter(|&&s| s == size).count();
    (size > 0 && equal >= SHOWN && 2 * equal > sizes.len()).then_some(size)
}

/// What a connection asks and answers, and how long its server takes.
struct Sizes {
    asks: u64,
    answers: u64,
    service: Option<u64>,
}

impl Sizes {
    /// The end of an answer was lost and came after the next request, though nothing of it was there to see as the request left: it is short by what
    /// the next one is longer.
    fn ended_in(&self, before: &Exchange, next: &Exchange) -> bool {
        let Sizes { asks, answers, .. } = *self;
        let requests = next.request_bytes / asks;
        !before.overlapped
            && before.request_bytes == asks
            && before.response_bytes < answers
            && next.request_bytes == requests * asks
            && before.response_bytes + next.response_bytes == (1 + requests) * answers
    }

    /// The requests of a chain one by one, each with its answer, if the sums say that they are of these sizes.
    fn each(&self, chain: Vec<Exchange>) -> Vec<Exchange> {
        let Sizes { asks, answers, service } = *self;
        // A request that came in one packet is one request.
        let whole = |e: &Exchange| match (e.request_start, e.request_end) {
            _ if e.request_bytes == asks => true,
            (Some(start), Some(end)) => end > start && e.request_bytes > 0 && e.request_bytes.is_multiple_of(asks),
            _ => false,
        };
        let requests: u64 = chain.iter().map(|e| e.request_bytes / asks).sum();
        let answered: u64 = chain.iter().map(|e| e.response_bytes).sum();
        let right = |e: &Exchange| e.request_bytes == asks && e.response_bytes == answers;
        if chain.iter().all(right) {
            return chain.into_iter().map(|e| Exchange { told: true, ..e }).collect();
        }
        if requests < 2 || !chain.iter().all(whole) || answered != requests * answers {
            return chain;
        }
        let delivered = chain.iter().rev().find_map(|e| e.delivered.map(|at| (at, e.unsure)));
        let mut separated: Vec<Exchange> = Vec::with_capacity(requests as usize);
        for exchange in chain {
            let count = exchange.request_bytes / asks;
            for n in 0..count {
                let start = exchange.request_start.zip(exchange.request_end);
                // When those between the first and the last left is not known; that they did so evenly is a guess.
                let at = start.map(|(start, end)| start + (end - start) * n / (count - 1).max(1));
                separated.push(Exchange {
                    request_start: at,
                    request_end: at,
                    request_bytes: asks,
                    waited: exchange.waited.filter(|_| n == 0),
                    response_start: exchange.response_start,
                    response_end: exchange.response_end,
                    response_bytes: answers,
                    service,
                    overlapped: exchange.overlapped || n > 0,
                    told: true,
                    delivered: None,
                    unsure: 0,
                    given_up: None,
                    front: exchange.front,
                    queued: exchange.queued,
                    pieces: None,
                });
            }
        }
        if let (Some(last), Some((at, unsure))) = (separated.last_mut(), delivered) {
            (last.delivered, last.unsure) = (Some(at), unsure);
        }
        separated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn exchange(asked_ms: u64, until_ms: u64, request_bytes: u64, response_bytes: u64, overlapped: bool) -> Exchange {
        Exchange {
            request_start: Some(asked_ms * MS),
            request_end: Some(until_ms * MS),
            request_bytes,
            response_bytes,
            overlapped,
            delivered: Some((until_ms + 1) * MS),
            ..Exchange::default()
        }
    }

    fn plain(asked_ms: u64) -> Exchange {
        exchange(asked_ms, asked_ms, 100, 8_000, false)
    }

    fn told(exchanges: &[Exchange]) -> Vec<(u64, u64, u64, bool)> {
        let row = |e: &Exchange| (e.request_start.unwrap() / MS, e.request_bytes, e.response_bytes, e.overlapped);
        exchanges.iter().map(row).collect()
    }

    #[test]
    fn requests_that_wait_behind_a_lost_answer_are_told_apart_by_their_sums() {
        // The answer to the second was lost but for 2920 bytes; eleven requests went out before its rest came, with the answers to all of them.
        let mut lost = vec![plain(0), plain(100), plain(200), exchange(300, 300, 100, 2_920, false)];
        lost.push(exchange(400, 1_400, 1_100, 93_080, true));
        lost.push(plain(1_500));
        let separated = told(&separate(lost));
        let waiting = (0..11).map(|n| (400 + 100 * n, 100, 8_000, true));
        let mut expected: Vec<(u64, u64, u64, bool)> = [0, 100, 200, 300].map(|at| (at, 100, 8_000, false)).into();
        expected.extend(waiting);
        expected.push((1_500, 100, 8_000, false));
        assert_eq!(separated, expected);
    }

    #[test]
    fn an_answer_whose_end_came_after_the_next_request_is_short_by_what_that_one_is_longer() {
        let after = |late: [Exchange; 2]| {
            let mut all = vec![plain(0), plain(10), plain(20)];
            all.extend(late);
            all.push(plain(60));
            told(&separate(all))
        };
        let of = |short, long| [exchange(30, 30, 100, short, false), exchange(40, 40, 100, long, false)];
        let right = |overlapped| [(30, 100, 8_000, false), (40, 100, 8_000, overlapped), (60, 100, 8_000, false)];
        assert_eq!(after(of(7_712, 8_288))[3..], right(true));
        assert_eq!(after(of(8_000, 8_000))[3..], right(false));
        // Requests that left while the end was missing and nothing else came, in one silence.
        let three = after([exchange(30, 30, 100, 7_712, false), exchange(40, 50, 200, 16_288, false)]);
        let apart = [(30, false), (40, true), (50, true), (60, false)];
        assert_eq!(three[3..], apart.map(|(at, overlapped)| (at, 100, 8_000, overlapped)));
        // Answers of other sizes are what they are.
        assert_eq!(
            after(of(7_712, 8_287))[3..],
            [(30, 100, 7_712, false), (40, 100, 8_287, false), (60, 100, 8_000, false)]
        );
        assert_eq!(
            after(of(8_288, 7_712))[3..],
            [(30, 100, 8_288, false), (40, 100, 7_712, false), (60, 100, 8_000, false)]
        );
    }

    #[test]
    fn only_the_last_of_those_in_flight_is_known_to_have_come() {
        let all = vec![plain(0), plain(10), plain(20), exchange(30, 50, 200, 16_000, false)];
        let separated = separate(all);
        let delivered: Vec<Option<u64>> = separated.iter().skip(3).map(|e| e.delivered).collect();
        assert_eq!(delivered, [None, Some(51 * MS)]);
    }

    #[test]
    fn an_answer_that_waited_behind_another_one_does_not_make_its_server_slow() {
        let mut all: Vec<Exchange> = [0, 10, 20].map(plain).into();
        all.push(exchange(30, 50, 200, 16_000, false));
        for (exchange, service) in all.iter_mut().zip([3, 5, 4, 900]) {
            exchange.service = Some(service);
        }
        let served: Vec<Option<u64>> = separate(all).iter().map(|e| e.service).collect();
        assert_eq!(served, [3, 5, 4, 4, 4].map(Some));
    }

    #[test]
    fn a_connection_whose_ends_never_fit_tells_nothing() {
        let counts = |shown, apart, odd| WriteCounts { shown, apart, odd, unasked: 1, several: 0 };
        assert!(tell_nothing(counts(0, 0, 0), 3));
        assert!(!tell_nothing(counts(0, 0, 0), 2), "cut short");
        let told = [counts(1, 0, 0), counts(0, 1, 0), counts(0, 0, 1)];
        assert!(told.iter().all(|&counts| !tell_nothing(counts, 30)));
    }

    #[test]
    fn several_requests_are_under_way_where_ends_of_several_are_mostly_no_messages() {
        assert_eq!(are_mixed([113, 90, 552, 240]), Some((330, 755)));
        assert_eq!(are_mixed([113, 2, 552, 240]), None, "requests in parts");
        assert_eq!(are_mixed([113, 20, 552, 40]), None, "answers in parts");
        assert_eq!(are_mixed([900, 90, 110, 90]), None, "the ends tell messages");
    }

    #[test]
    fn sums_that_do_not_fit_change_nothing() {
        for odd in [
            exchange(30, 50, 200, 15_999, false),
            exchange(30, 50, 150, 16_000, false),
            // One packet is one request, however large.
            exchange(30, 30, 200, 16_000, false),
        ] {
            let before = (odd.request_bytes, odd.response_bytes);
            let separated = separate(vec![plain(0), plain(10), plain(20), odd]);
            assert_eq!(
                (separated[3].request_bytes, separated[3].response_bytes, separated.len()),
                (before.0, before.1, 4)
            );
        }
        // Two that were answered before the next show no size.
        assert_eq!(separate(vec![plain(0), plain(10), exchange(30, 50, 200, 16_000, false)]).len(), 3);
    }

    #[test]
    fn ends_of_writes_tell_messages_where_at_most_one_in_ten_is_something_else() {
        let tell = |shown: u32| {
            let of = |shown, odd| Connection {
                writes: WriteCounts { shown, odd, ..WriteCounts::default() },
                ..crate::connections::tests::connection(0, 0)
            };
            writes_tell([of(shown, 0), of(0, 1)].into_iter())
        };
        assert_eq!((tell(9), tell(8)), (true, false));
    }
}
