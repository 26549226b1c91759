//! Services of many patterns, made up with seeds: the requests that are found must be those that were made.

use super::{Found, Release, Talk, Times, infer};
use crate::numbers::Numbers;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// How the messages of a request follow each other.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// All at once.
    Fan,
    /// At most so many at a time.
    Semaphore(usize),
    /// So many first, the others when these have answered.
    Stages(usize),
    /// The same servers again, a part of them, when all have answered.
    QueryThenFetch(usize),
    /// So many of the servers, drawn each time.
    Draw(usize),
    /// One server or more, drawn each time.
    Any,
    /// Each server so many times, one call after another on its connection.
    Row(usize),
    /// One server, drawn each time, up to so many times, one call after another.
    Pages(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pool {
    /// Each user has connections of its own.
    Own,
    /// A message takes any free connection to its server, or opens one.
    Shared,
    /// Each message opens a connection.
    New,
    /// The same, and all servers are behind one address.
    NewToOne,
}

#[derive(Clone, Copy, Debug)]
struct Service {
    servers: usize,
    shape: Shape,
    users: usize,
    pool: Pool,
    /// From the end of a request to the next of the user: at least, and mean of what comes on top.
    pause: (u64, u64),
    /// A stage or the next of a semaphore leaves so long after what it waits for: least and most.
    turn: (u64, u64),
    /// One thread sends all messages, after those of the requests before; one in three takes up to so long.
    held_up: u64,
    requests: usize,
    seed: u64,
}

/// A connection: its place, and when it is free.
struct Connections {
    talks: Vec<Talk>,
    free: Vec<u64>,
    of: Vec<(usize, usize)>,
}

impl Connections {
    fn ask(&mut self, service: &Service, user: usize, server: usize, asked: u64, answered: u64) {
        let mine = |&(of_user, of_server): &(usize, usize)| match service.pool {
            Pool::Own => (of_user, of_server) == (user, server),
            Pool::Shared => of_server == server,
            Pool::New | Pool::NewToOne => false,
        };
        let free = (0..self.of.len()).find(|&n| mine(&self.of[n]) && self.free[n] < asked);
        let conn = free.unwrap_or_else(|| {
            let address = if service.pool == Pool::NewToOne { 0 } else { server as u32 };
            self.talks.push(Talk { server: address, ..Talk::default() });
            self.free.push(0);
            self.of.push((user, server));
            self.of.len() - 1
        });
        self.free[conn] = answered;
        self.talks[conn].times.push(Times { asked: Some(asked), answered: Some(answered), ..Times::default() });
    }
}

impl Service {
    /// What a capture shows, and when each request began and ended.
    fn run(&self) -> (Vec<Talk>, Vec<(u64, u64)>) {
        let mut numbers = Numbers(self.seed);
        let mut made = Connections { talks: Vec::new(), free: Vec::new(), of: Vec::new() };
        let mut asks: Vec<(u64, u64, usize, usize)> = Vec::new();
        let mut requests = Vec::new();
        let mut sent = 0;
        let mut next: BinaryHeap<Reverse<(u64, usize)>> =
            (0..self.users).map(|user| Reverse((numbers.below(20 * MS), user))).collect();
        while let Some(Reverse((start, user))) = next.pop()
            && requests.len() < self.requests
        {
            let start = if self.held_up > 0 { start.max(sent) } else { start };
            let end = self.request(start, user, &mut numbers, &mut asks);
            sent = asks.last().map_or(0, |last| last.0) + 40 * US;
            requests.push((start, end));
            let (least, mean) = self.pause;
            next.push(Reverse((end + least + numbers.exponential(mean), user)));
        }
        asks.sort_unstable();
        for (asked, answered, user, server) in asks {
            made.ask(self, user, server, asked, answered);
        }
        (made.talks, requests)
    }

    fn request(&self, start: u64, user: usize, numbers: &mut Numbers, asks: &mut Vec<(u64, u64, usize, usize)>) -> u64 {
        let n = self.servers;
        let mut one = |at: u64, server: usize, numbers: &mut Numbers| {
            let answered = at + numbers.between(700 * US, 6 * MS);
            asks.push((at, answered, user, server));
            answered
        };
        let loop_over = |from: u64,
                         servers: std::ops::Range<usize>,
                         numbers: &mut Numbers,
                         one: &mut dyn FnMut(u64, usize, &mut Numbers) -> u64| {
            let mut at = from;
            let mut end = from;
            for server in servers {
                end = end.max(one(at, server, numbers));
                at += numbers.between(8 * US, 40 * US);
                if self.held_up > 0 && numbers.below(3) == 0 {
                    at += numbers.below(self.held_up);
                }
            }
            end
        };
        match self.shape {
            Shape::Fan => loop_over(start, 0..n, numbers, &mut one),
            Shape::Stages(first) => {
                let end = loop_over(start, 0..first, numbers, &mut one);
                let turn = numbers.between(self.turn.0, self.turn.1);
                loop_over(end + turn, first..n, numbers, &mut one)
            }
            Shape::QueryThenFetch(second) => {
                let end = loop_over(start, 0..n, numbers, &mut one);
                let turn = numbers.between(self.turn.0, self.turn.1);
                loop_over(end + turn, 0..second, numbers, &mut one)
            }
            Shape::Draw(count) => {
                let mut left: Vec<usize> = (0..n).collect();
                let (mut at, mut end) = (start, start);
                for _ in 0..count {
                    let server = left.remove(numbers.below(left.len() as u64) as usize);
                    end = end.max(one(at, server, numbers));
                    at += numbers.between(8 * US, 40 * US);
                }
                end
            }
            Shape::Any => {
                let count = 1 + numbers.below(n as u64) as usize;
                loop_over(start, 0..count, numbers, &mut one)
            }
            Shape::Row(calls) => {
                let mut end = start;
                for server in 0..n {
                    let mut at = start + server as u64 * 20 * US;
                    for _ in 0..calls {
                        let answered = one(at, server, numbers);
                        end = end.max(answered);
                        at = answered + numbers.between(self.turn.0, self.turn.1);
                    }
                }
                end
            }
            Shape::Pages(most) => {
                let (server, calls) = (numbers.below(n as u64) as usize, 1 + numbers.below(most as u64));
                let mut end = start;
                for call in 0..calls {
                    let turn = if call == 0 { 0 } else { numbers.between(self.turn.0, self.turn.1) };
                    end = one(end + turn, server, numbers);
                }
                end
            }
            Shape::Semaphore(width) => {
                let mut running: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
                let (mut at, mut end) = (start, start);
                for server in 0..n {
                    if running.len() == width {
                        let Some(Reverse(free)) = running.pop() else { break };
                        at = at.max(free + numbers.between(self.turn.0, self.turn.1));
                    }
                    let answered = one(at, server, numbers);
                    running.push(Reverse(answered));
                    end = end.max(answered);
                    at += numbers.between(8 * US, 40 * US);
                }
                end
            }
        }
    }
}

/// The durations of the requests that were found, in order.
fn found_times(found: &Found) -> Vec<u64> {
    let whole = found.rounds.iter().filter(|r| !r.is_gate() && found.companies[r.company as usize].rounds > 0);
    let mut times: Vec<u64> = whole.filter_map(|r| r.took_ns).collect();
    times.sort_unstable();
    times
}

/// None, or what is wrong.
fn wrong(service: &Service) -> Option<String> {
    let (talks, requests) = service.run();
    let times = found_times(&infer(&talks));
    let mut real: Vec<u64> = requests.iter().map(|(start, end)| end - start).collect();
    real.sort_unstable();
    let close = |a: usize, b: usize| a.abs_diff(b) as f64 <= (0.02 * b as f64).max(1.0);
    if !close(times.len(), real.len()) {
        return Some(format!("{service:?}: {} requests of {}", times.len(), real.len()));
    }
    for q in [0.5, 0.95] {
        let at = |times: &[u64]| times[((times.len() - 1) as f64 * q) as usize] as f64;
        let ratio = at(&times) / at(&real);
        if !(0.9..=1.1).contains(&ratio) {
            return Some(format!("{service:?}: {q} is {ratio:.2} of what it was"));
        }
    }
    None
}

const PLAIN: Service = Service {
    servers: 8,
    shape: Shape::Fan,
    users: 1,
    pool: Pool::Own,
    pause: (3 * MS, 5 * MS),
    turn: (40 * US, 200 * US),
    held_up: 0,
    requests: 150,
    seed: 1,
};

fn all_are_found(services: impl Iterator<Item = Service>) {
    let (mut failed, mut count) = (Vec::new(), 0);
    for service in services {
        count += 1;
        failed.extend(wrong(&service));
    }
    assert!(failed.is_empty(), "{} of {count} services:\n{}", failed.len(), failed.join("\n"));
}

fn seeds(services: Vec<Service>) -> impl Iterator<Item = Service> {
    services.into_iter().flat_map(|service| (1..=4).map(move |seed| Service { seed: seed * 7919, ..service }))
}

#[test]
fn a_semaphore_of_any_width_is_one_request() {
    let widths = [(4, 1), (9, 2), (12, 3), (12, 8), (24, 6), (40, 16)];
    let services = widths.map(|(servers, width)| Service { servers, shape: Shape::Semaphore(width), ..PLAIN });
    all_are_found(seeds(services.to_vec()));
}

#[test]
fn a_round_whose_answers_come_before_its_last_messages_leave_is_a_request_as_the_others() {
    let (mut talks, requests) = PLAIN.run();
    // The loop over the servers is held up once: each message leaves after the answer to the one before.
    let start = requests[70].0;
    for (asked, talk) in (0..).map(|k| start + k * 300 * US).zip(&mut talks) {
        talk.times[70] = Times { asked: Some(asked), answered: Some(asked + 150 * US), ..Times::default() };
    }
    assert_eq!(found_times(&infer(&talks)).len(), requests.len());
}

#[test]
fn a_call_that_comes_late_in_its_row_is_of_it_and_takes_no_other_row_along() {
    let (mut talks, requests) = Service { servers: 1, shape: Shape::Row(5), ..PLAIN }.run();
    // The aggregator stalls for 3 ms after the second of five calls.
    for times in &mut talks[0].times[352..] {
        *times = Times {
            asked: times.asked.map(|at| at + 3 * MS),
            answered: times.answered.map(|at| at + 3 * MS),
            ..*times
        };
    }
    assert_eq!(found_times(&infer(&talks)).len(), requests.len());
}

#[test]
fn stages_are_of_one_request() {
    let stages = [(12, 8), (12, 2), (5, 4), (30, 10)];
    let services = stages.map(|(servers, first)| Service { servers, shape: Shape::Stages(first), ..PLAIN });
    all_are_found(seeds(services.to_vec()));
}

#[test]
fn stages_that_the_application_computes_between_are_of_one_request() {
    let service = Service { shape: Shape::Stages(5), turn: (3 * MS, 3_300 * US), ..PLAIN };
    let several = Service { users: 3, pool: Pool::Shared, requests: 300, pause: (5 * MS, 30 * MS), ..service };
    all_are_found(seeds(vec![Service { pause: (2 * MS, 8 * MS), ..service }, several]));
}

#[test]
fn stages_between_which_the_application_computes_as_long_as_users_pause_are_told_by_their_order() {
    let service = Service { turn: (300 * US, 1_500 * US), pause: (1_300 * US, 5 * MS), requests: 200, ..PLAIN };
    let same_again = Service { shape: Shape::QueryThenFetch(8), ..service };
    let chain = Service { shape: Shape::Semaphore(1), servers: 4, ..service };
    let two_users = Service { users: 2, requests: 400, ..same_again };
    all_are_found(seeds(vec![same_again, chain, two_users]));
}

#[test]
fn requests_to_any_number_of_servers_are_found_where_one_user_asks() {
    let service = Service { shape: Shape::Any, requests: 200, ..PLAIN };
    let own = Service { users: 2, requests: 300, ..service };
    let pauses = [(3 * MS, 5 * MS), (2 * MS, 2 * MS)];
    all_are_found(seeds(pauses.map(|pause| Service { pause, ..service }).to_vec()).chain([own]));
}

#[test]
fn servers_that_are_asked_again_at_once_are_a_stage() {
    let stages = [(12, 3), (6, 6), (10, 1)];
    let services = stages.map(|(servers, again)| Service { servers, shape: Shape::QueryThenFetch(again), ..PLAIN });
    all_are_found(seeds(services.to_vec()));
}

#[test]
fn users_with_connections_of_their_own_do_not_disturb_each_other() {
    let mut services = Vec::new();
    for users in [2, 3, 5] {
        for shape in [Shape::Fan, Shape::Semaphore(3), Shape::Stages(5)] {
            services.push(Service { users, shape, requests: 100 * users, pause: (5 * MS, 10 * MS), ..PLAIN });
        }
    }
    all_are_found(seeds(services));
}

#[test]
fn two_users_of_one_pool_are_told_apart() {
    let pauses = [(5 * MS, 20 * MS), (0, 20 * MS), (10 * MS, 2 * MS)];
    let service = Service { users: 2, pool: Pool::Shared, requests: 300, ..PLAIN };
    all_are_found(seeds(pauses.map(|pause| Service { pause, ..service }).to_vec()));
}

#[test]
fn calls_one_after_another_on_a_connection_are_of_one_request() {
    let shapes = [(1, 5), (1, 3), (4, 3)];
    let services = shapes.map(|(servers, calls)| Service { servers, shape: Shape::Row(calls), ..PLAIN });
    all_are_found(seeds(services.to_vec()));
}

#[test]
fn users_that_draw_their_servers_are_told_apart_by_their_connections() {
    let draws = [(12, 2, 1), (6, 2, 3), (12, 3, 3), (12, 4, 2)];
    let services = draws.map(|(servers, count, users)| Service {
        servers,
        shape: Shape::Draw(count),
        users,
        requests: 100 * users,
        pause: (2 * MS, 40 * MS),
        ..PLAIN
    });
    all_are_found(seeds(services.to_vec()));
}

#[test]
fn servers_that_are_drawn_for_a_new_connection_each_are_of_one_request() {
    let draws = [(6, 3, 1), (8, 4, 2), (6, 2, 2)];
    let services = draws.map(|(servers, count, users)| Service {
        servers,
        shape: Shape::Draw(count),
        users,
        pool: Pool::New,
        requests: 150 * users,
        pause: (2 * MS, 10 * MS),
        ..PLAIN
    });
    all_are_found(seeds(services.to_vec()));
}

#[test]
fn four_users_of_one_pool_are_told_apart_by_what_a_request_is_like() {
    let service = Service { users: 4, pool: Pool::Shared, requests: 300, pause: (2 * MS, 16 * MS), ..PLAIN };
    let shapes = [(4, Shape::Fan), (4, Shape::Semaphore(1)), (6, Shape::Semaphore(2)), (8, Shape::Stages(4))];
    all_are_found(seeds(shapes.map(|(servers, shape)| Service { servers, shape, ..service }).to_vec()));
}

#[test]
fn an_interpreter_takes_longer_from_one_message_to_the_next_than_a_user_pauses() {
    let service = Service { users: 3, requests: 300, ..PLAIN };
    let mut services = Vec::new();
    for pool in [Pool::Shared, Pool::New] {
        for (held_up, pause) in [(4 * MS, 80 * MS), (8 * MS, 80 * MS)] {
            services.push(Service { held_up, pool, pause: (2 * MS, pause), ..service });
        }
    }
    all_are_found(seeds(services));
}

#[test]
fn two_users_of_one_pool_may_take_a_while_before_they_ask_again() {
    let service = Service { users: 2, pool: Pool::Shared, requests: 300, pause: (2 * MS, 24 * MS), ..PLAIN };
    let shape = Shape::QueryThenFetch(3);
    all_are_found(seeds(vec![Service { shape, turn: (600 * US, 1_000 * US), servers: 12, ..service }]));
}

#[test]
fn two_users_of_one_pool_may_ask_some_servers_again() {
    let service = Service { users: 2, pool: Pool::Shared, requests: 300, pause: (5 * MS, 60 * MS), ..PLAIN };
    let stages = [(4, 1), (8, 3)];
    let services = stages.map(|(servers, again)| Service { servers, shape: Shape::QueryThenFetch(again), ..service });
    all_are_found(seeds(services.to_vec()));
}

#[test]
fn polls_that_are_answered_at_once_are_no_requests_of_a_user() {
    let (mut talks, requests) = PLAIN.run();
    let mut numbers = Numbers(5);
    for server in 0..2 {
        let mut poll = Talk { server, ..Talk::default() };
        let mut at = 0;
        while at < requests[requests.len() - 1].1 {
            let answered = at + numbers.between(200 * US, 400 * US);
            poll.times.push(Times { asked: Some(at), answered: Some(answered), ..Times::default() });
            at = answered + numbers.between(30 * US, 150 * US);
        }
        talks.push(poll);
    }
    assert_eq!(found_times(&infer(&talks)).len(), requests.len());
}

#[test]
fn polls_that_are_asked_a_hundred_times_as_often_hide_no_request() {
    let (mut talks, requests) = Service { servers: 12, shape: Shape::Semaphore(5), ..PLAIN }.run();
    let (mut numbers, mut ended) = (Numbers(5), [0; 2]);
    for (server, ended) in ended.iter_mut().enumerate() {
        let mut poll = Talk { server: server as u32, ..Talk::default() };
        while *ended < requests[requests.len() - 1].1 {
            let asked = *ended + numbers.between(15 * US, 40 * US);
            *ended = asked + numbers.between(40 * US, 200 * US);
            poll.times.push(Times { asked: Some(asked), answered: Some(*ended), ..Times::default() });
        }
        talks.push(poll);
    }
    assert_eq!(found_times(&infer(&talks)).len(), requests.len());
}

#[test]
fn a_connection_for_each_message_hides_no_request() {
    let shapes = [Shape::Fan, Shape::Semaphore(3), Shape::Stages(5)];
    all_are_found(seeds(shapes.map(|shape| Service { shape, pool: Pool::New, ..PLAIN }).to_vec()));
}

#[test]
fn servers_behind_one_address_hide_no_request() {
    let shapes = [Shape::Fan, Shape::Stages(5)];
    all_are_found(seeds(shapes.map(|shape| Service { shape, pool: Pool::NewToOne, ..PLAIN }).to_vec()));
}

#[test]
fn one_call_after_another_to_a_server_are_a_request_however_many() {
    let pages = Service { servers: 4, shape: Shape::Pages(6), requests: 250, ..PLAIN };
    let two = Service { users: 2, requests: 400, ..pages };
    all_are_found(seeds([Service { pool: Pool::New, ..pages }, pages, two].to_vec()));
    let (talks, _) = pages.run();
    let found = infer(&talks);
    let by_a_clock = found.releases.concat().into_iter().filter(|r| matches!(r, Some(Release::Clock { .. })));
    // Each server's first request of all waits for nothing.
    assert!(by_a_clock.count() <= 4, "what follows its answer is sent by no timer");
}

#[test]
fn pauses_that_are_exponential_and_often_short_are_pauses_all_the_same() {
    let pauses = [(0, 5 * MS), (200 * US, 2 * MS), (0, 40 * MS)];
    all_are_found(seeds(pauses.map(|pause| Service { pause, ..PLAIN }).to_vec()));
}

#[test]
fn without_a_pause_what_repeats_is_a_request() {
    let shapes = [Shape::Fan, Shape::Semaphore(3), Shape::Stages(5), Shape::Semaphore(1)];
    all_are_found(seeds(shapes.map(|shape| Service { shape, pause: (60 * US, 40 * US), ..PLAIN }).to_vec()));
}
