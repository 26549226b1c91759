//! Requests that clients of the aggregator tell: all that it asks while one of them waits for his answer.
//!
//! Where clients are in the capture, they say when a user's request begins and ends, whatever it has inside: a cache's hit of one message, a query of as many
//! as it happens to need, stages with the application's own work between them. What the messages alone tell is kept where it agrees with the clients: it
//! knows of late copies, timers and quorums.

use super::Talk;
use super::bursts::{Ask, Company};
use super::candidates::{Choice, Kind};
use super::class::{Answer, Class};
use super::groups::{BEYOND_CHANCE, FOLLOWS};
use super::joined::FEWEST;
use super::requests::{Cut, RARELY, Request};
use super::steady::{Excess, between};
use super::whose::{ClientRequest, ClientRequests};
use std::collections::{BTreeMap, BTreeSet};

/// Where so many of the requests that were found are each one client's, that is what they are.
pub(crate) const AGREES: f64 = 0.99;
/// With more clients waiting at once than this, on average, the time says too little of whose a message is.
const AT_ONCE: f64 = 2.0;

/// The classes as clients tell them; none where they tell nothing, or nothing else than was found.
pub(super) fn instead(
    found: &[Class],
    choices: &[Choice],
    companies: &[Company],
    talks: &[Talk],
    asks: &[Ask],
) -> Option<Vec<Class>> {
    let clients = ClientRequests::of(talks, asks);
    if clients.all.len() < FEWEST || clients.at_once() > AT_ONCE {
        return None;
    }
    let timed = found.iter().zip(choices).filter(|(_, choice)| choice.mostly() == Some(Kind::Timer));
    let timed: BTreeSet<u32> = timed.flat_map(|(class, _)| &class.connections).copied().collect();
    let mine = caused(&clients, &timed, talks, asks)?;
    if cuts(found, &mine, asks) || agree(found, mine.len(), &clients, talks, asks) {
        return None;
    }
    let whole = class(&clients, &mine, talks, asks)?;
    let mut taken = vec![false; talks.len()];
    let mut take = |class: &Class| class.connections.iter().for_each(|&conn| taken[conn as usize] = true);
    take(&whole);
    let connections: BTreeSet<u32> = whole.connections.iter().copied().collect();
    let others = found.iter().filter(|class| class.connections.iter().all(|conn| !connections.contains(conn)));
    let mut all: Vec<Class> = others.cloned().collect();
    all.iter().for_each(take);
    let left = companies.iter().filter_map(|company| company.without(&taken, asks));
    all.extend(left.map(|company| Class::of(&company, talks, asks)));
    all.push(whole);
    all.sort_by_key(|class| class.connections.first().copied());
    Some(all)
}

/// Of these messages, each client's as one request; what leaves while no client waits is in none.
fn class(clients: &ClientRequests, mine: &[u32], talks: &[Talk], asks: &[Ask]) -> Option<Class> {
    let mut requests: BTreeMap<usize, Request> = BTreeMap::new();
    let mut rest = Vec::new();
    for (&n, whose) in mine.iter().zip(clients.whose(mine, asks)) {
        match whose {
            Some(whose) => requests.entry(whose).or_default().push(n),
            None => rest.push(n),
        }
    }
    let mut told: Vec<(Request, ClientRequest)> =
        requests.into_iter().map(|(whose, request)| (request, clients.all[whose])).collect();
    told.sort_unstable_by_key(|(request, _)| request[0]);
    let (requests, of): (Vec<Request>, Vec<ClientRequest>) = told.into_iter().unzip();
    let cut = Cut {
        requests,
        concurrent: of.windows(2).any(|pair| pair[1].from < pair[0].to),
        until: of.iter().map(|client| client.to).collect(),
        ..Cut::default()
    };
    let connections: BTreeSet<u32> = mine.iter().map(|&n| asks[n as usize].conn).collect();
    let served = Some(of.iter().map(|client| (client.conn, client.msg)).collect());
    let whole = || Class { rest, served, ..Class::of_requests(connections.into_iter().collect(), &cut, talks, asks) };
    (cut.requests.len() >= FEWEST).then(whole)
}

/// The messages on connections of which clients' requests are the cause, in order of time; none where they are that of no more than chance gives.
fn caused(clients: &ClientRequests, timed: &BTreeSet<u32>, talks: &[Talk], asks: &[Ask]) -> Option<Vec<u32>> {
    // Connections with few messages are known by their servers.
    let key = |conn: u32| match &talks[conn as usize] {
        few if few.times.len() < FEWEST => (few.server, true),
        _ => (conn, false),
    };
    let mut all: BTreeMap<(u32, bool), Vec<u32>> = BTreeMap::new();
    for (n, ask) in (0..).zip(asks) {
        if !talks[ask.conn as usize].upstream {
            all.entry(key(ask.conn)).or_default().push(n);
        }
    }
    // Moments that have nothing to do with clients are inside now and then, and nearly always where these wait most of the time.
    let inside = |of: &[u32]| {
        let is_inside = |at: u64, n: u32| clients.any_holds(at, at + asks[n as usize].took());
        let times: Vec<u64> = of.iter().map(|&n| asks[n as usize].at).collect();
        let count = times.iter().zip(of).filter(|&(&at, &n)| is_inside(at, n)).count();
        let met = between(&times).zip(of).filter(|&(at, &n)| is_inside(at, n)).count();
        (count as f64 / of.len() as f64, Excess::of(count, of.len(), met, of.len().saturating_sub(1)))
    };
    all.retain(|_, of| {
        let (share, excess) = inside(of);
        // Some may leave when the client has his answer: what was missing in a cache is written to it. What seems to be a timer's must be more than chance.
        let beyond_chance = excess.share >= FOLLOWS && excess.deviations >= BEYOND_CHANCE;
        beyond_chance || share >= 1.0 - RARELY && of.iter().all(|&n| !timed.contains(&asks[n as usize].conn))
    });
    let mut caused: Vec<u32> = all.into_values().flatten().collect();
    caused.sort_unstable();
    if caused.len() < FEWEST {
        return None;
    }
    let (share, excess) = inside(&caused);
    (share >= 1.0 - RARELY && excess.deviations >= BEYOND_CHANCE).then_some(caused)
}

/// Whether connections that are asked together have messages that clients cause, and others: what is asked goes on while the answer is sent, and when that
/// begins says little.
fn cuts(found: &[Class], mine: &[u32], asks: &[Ask]) -> bool {
    let connections: BTreeSet<u32> = mine.iter().map(|&n| asks[n as usize].conn).collect();
    found.iter().filter(|class| class.is_company()).any(|class| {
        let (all, taken) = class.requests().iter().flatten().fold((0, 0), |(all, taken), &n| {
            (all + 1, taken + usize::from(connections.contains(&asks[n as usize].conn)))
        });
        taken > 0 && (taken as f64) < (1.0 - RARELY) * f64::from(all)
    })
}

/// Whether the requests that were found have nearly all of the messages that clients cause, and are each within one of a client.
fn agree(found: &[Class], caused: usize, clients: &ClientRequests, talks: &[Talk], asks: &[Ask]) -> bool {
    let (mut requests, mut messages): (Vec<(u64, u64)>, usize) = (Vec::new(), 0);
    for class in found.iter().filter(|class| class.is_company()) {
        messages += class.requests().iter().map(Vec::len).sum::<usize>() - class.rest.len();
        for i in 0..class.bursts.len() {
            let start = class.start(i, asks);
            let unsure = |answer: &Answer| talks[answer.conn as usize].times[answer.msg as usize].unsure;
            let known = class.answers[i].iter().filter(|answer| answer.at < u64::MAX);
            requests.push((start, known.map(|answer| answer.at.saturating_sub(unsure(answer))).max().unwrap_or(start)));
        }
    }
    requests.sort_unstable();
    let mut taken = vec![false; clients.all.len()];
    let (mut agree, mut open) = (0, clients.open());
    for &(from, to) in &requests {
        let free = |&n: &usize| !taken[n] && clients.all[n].holds(from, to);
        // The client who is answered first: another one may have the next request.
        if let Some(n) = open.at(from).iter().copied().filter(free).min_by_key(|&n| clients.all[n].to) {
            (taken[n], agree) = (true, agree + 1);
        }
    }
    messages as f64 >= (1.0 - RARELY) * caused as f64 && agree as f64 >= AGREES * requests.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;
    use crate::release::{Found, Times, infer};

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    /// Servers of each user.
    const SERVERS: usize = 6;

    /// An aggregator whose users ask on connections of their own, and what was asked for each of their requests.
    struct Made {
        talks: Vec<Talk>,
        requests: Vec<Vec<(u32, u32)>>,
    }

    impl Made {
        fn new(users: usize) -> Made {
            let server = |n: usize| Talk { server: (n % SERVERS) as u32, ..Talk::default() };
            let mut talks: Vec<Talk> = (0..users * SERVERS).map(server).collect();
            talks.extend((0..users).map(|_| Talk { server: SERVERS as u32, upstream: true, ..Talk::default() }));
            Made { talks, requests: Vec::new() }
        }

        /// A request of a user that comes now: his messages, by server, when each leaves and is answered; when he has his answer.
        fn serve(&mut self, user: usize, now: u64, messages: &[(usize, u64, u64)], answered: u64) {
            let client = self.talks.len() - self.talks.iter().filter(|talk| talk.upstream).count() + user;
            let mut request = Vec::new();
            for &(server, asked, answered) in messages {
                let conn = user * SERVERS + server;
                request.push((conn as u32, self.talks[conn].times.len() as u32));
                let times = Times { asked: Some(asked), answered: Some(answered), ..Times::default() };
                self.talks[conn].times.push(times);
            }
            let times = &mut self.talks[client].times;
            match times.last_mut() {
                Some(last) => last.answered = Some(now),
                None => times.push(Times { answered: Some(now), ..Times::default() }),
            }
            times.push(Times { asked: Some(answered), ..Times::default() });
            self.requests.push(request);
        }

        /// How many of the requests were found as they were made.
        fn known(&mut self) -> usize {
            let sorted = |places: &[(u32, u32)]| {
                let mut all = places.to_vec();
                all.sort_unstable();
                all
            };
            let found = infer(&self.talks);
            let rounds = found.rounds.iter().filter(|round| !round.is_gate());
            let found: BTreeSet<Vec<(u32, u32)>> = rounds.map(|round| sorted(round.answers())).collect();
            self.requests.iter().filter(|request| found.contains(&sorted(request))).count()
        }
    }

    /// Users who ask at the same moments, each for one to five messages in a row, with the application's work of up to 4 ms before each.
    fn rows(users: usize) -> Made {
        let (mut made, mut numbers) = (Made::new(users), Numbers(47));
        for user in 0..users {
            for n in 1..=100 {
                let mut now = n * 60 * MS + numbers.below(MS);
                let (came, mut messages) = (now, Vec::new());
                for _ in 0..=numbers.below(5) {
                    let asked = now + 100 * US + numbers.below(4 * MS);
                    now = asked + 300 * US + numbers.below(2 * MS);
                    messages.push((numbers.below(SERVERS as u64) as usize, asked, now));
                }
                now += 80 * US;
                made.serve(user, came, &messages, now);
            }
        }
        made
    }

    #[test]
    fn a_client_tells_requests_of_any_number_of_messages() {
        assert_eq!(rows(1).known(), 100);
    }

    #[test]
    fn at_most_two_clients_at_once_tell_requests() {
        let told = |users: usize| {
            let mut made = rows(users);
            made.known() as f64 / made.requests.len() as f64
        };
        // Calls in a row by two who always ask at the same moments are the hardest to tell apart.
        assert!(told(2) > 0.3 && told(4) == 0.0, "{} and {}", told(2), told(4));
    }

    /// A client who asks for a fan-out over six servers two hundred times, and `early` times has his answer before one of these; the tap is sure of the others'
    /// only so much later.
    fn fan_outs(early: u64, unsure: u64) -> Found {
        let (mut made, mut numbers, mut now) = (Made::new(1), Numbers(53), MS);
        for n in 0..200 {
            let asked = |server: usize| now + 200 * US + 10 * US * server as u64;
            let mut messages: Vec<(usize, u64, u64)> =
                (0..SERVERS).map(|n| (n, asked(n), asked(n) + MS + numbers.below(4 * MS))).collect();
            let last = messages.iter().map(|&(.., answered)| answered).max().unwrap();
            if n * early / 200 != (n + 1) * early / 200 {
                messages[2].2 = last + 300 * US;
            }
            made.serve(0, now, &messages, last + 100 * US);
            for (server, _, answered) in messages {
                if answered <= last {
                    let times = made.talks[server].times.last_mut().unwrap();
                    (times.answered, times.unsure) = (Some(answered + unsure), unsure);
                }
            }
            now = last + 20 * MS + numbers.exponential(20 * MS);
        }
        infer(&made.talks)
    }

    #[test]
    fn requests_of_which_99_in_a_hundred_are_one_client_s_each_are_kept() {
        assert_eq!((partial(2, 0), partial(3, 0)), (0, 3));
    }

    #[test]
    fn an_answer_of_which_the_tap_is_sure_when_the_client_has_his_own_may_have_come_before() {
        assert_eq!(partial(10, 500 * US), 10);
    }

    /// How many requests are complete without some answer: one for which the client did not wait.
    fn partial(early: u64, unsure: u64) -> usize {
        fan_outs(early, unsure).rounds.iter().filter(|round| round.waits_for.is_some()).count()
    }

    /// The answer begins when the first of the messages is answered, and what follows is asked while it is sent.
    #[test]
    fn a_client_whose_answer_begins_before_the_messages_are_asked_tells_nothing() {
        let (mut made, mut numbers, mut now) = (Made::new(1), Numbers(59), MS);
        for _ in 0..150 {
            let (came, mut messages) = (now, Vec::new());
            for server in 0..SERVERS {
                let asked = now + 100 * US;
                now = asked + 300 * US + numbers.below(2 * MS);
                messages.push((server, asked, now));
            }
            let begins = messages[0].2 + 50 * US;
            made.serve(0, came, &messages, begins);
            now += 20 * MS + numbers.exponential(20 * MS);
        }
        assert_eq!(made.known(), 150);
    }
}
