//! What is asked beside the requests: health checks, heartbeats, scrapes. They are no requests of the application's user.
//!
//! On connections of their own they make classes, which [`aside`] tells. On the service's own connections they are [`parted`] from its messages before
//! anything else is looked at: inside its requests they would be messages too many, and between them requests of their own.

use super::bursts::{Ask, TOGETHER};
use super::class::Class;
use super::groups::SHORTLY;
use super::steady::{Excess, RESOLUTION, between, cost};
use super::{SEEN, Talk, pools};
use std::collections::BTreeMap;

/// What is asked beside the requests is asked so many times less often,
pub(crate) const SELDOM: u64 = 10;
/// and answered with so many times fewer bytes,
pub(crate) const LITTLE: u64 = 50;
/// each time no more than fits in a packet.
pub(crate) const PACKET: u64 = 1_448;
/// What leaves together with messages of the service in at least this share of the times that chance leaves is a part of its requests.
const WITH_OTHERS: f64 = 0.5;
/// So much cheaper than by chance is a delay that a request of the service has: ten checks in each of seven servers differ by 1 from chance now and then.
const IN_PHASE: f64 = 1.5;

/// Parts messages that a timer sends on the service's own connections from those of the service; both in order of time.
pub(super) fn parted(asks: Vec<Ask>, talks: &[Talk]) -> (Vec<Ask>, Vec<Ask>) {
    let bytes = |n: &u32| talks[asks[*n as usize].conn as usize].times[asks[*n as usize].msg as usize].bytes;
    let sum = |all: &[u32]| all.iter().map(bytes).sum::<u64>();
    let mut of_server: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (n, ask) in (0..).zip(&asks).filter(|(_, ask)| !talks[ask.conn as usize].upstream) {
        of_server.entry(ask.server).or_default().push(n);
    }
    let mut small: Vec<Vec<u32>> = Vec::new();
    for mine in of_server.into_values() {
        let (mine, large): (Vec<u32>, Vec<u32>) = mine.into_iter().partition(|n| bytes(n) <= PACKET);
        if !mine.is_empty() && sum(&mine).saturating_mul(LITTLE) <= sum(&large) {
            small.push(mine);
        }
    }
    // A loop over the servers gets later and later in its period.
    let by_a_clock = pools::keeps_time(&begins(small.concat(), &asks), &asks);
    small.retain(|mine| by_a_clock || pools::keeps_time(mine, &asks));
    if small.is_empty() {
        return (asks, Vec::new());
    }
    // Now and then a check opens a connection, which nothing else takes.
    let of_service: Vec<bool> = talks.iter().map(|talk| talk.times.iter().any(|times| times.bytes > PACKET)).collect();
    let on_its = |n: &u32| of_service[asks[*n as usize].conn as usize];
    let mut checks: Vec<Vec<u32>> = small.into_iter().map(|mine| mine.into_iter().filter(on_its).collect()).collect();
    checks.retain(|all| !all.is_empty());
    let service = Service::of((0..).zip(&asks).filter(|(n, _)| bytes(n) > PACKET).map(|(_, ask)| ask));
    checks.retain(|each| !service.sends(each, &asks));
    let mut is_check = vec![false; asks.len()];
    checks.iter().flatten().for_each(|&n| is_check[n as usize] = true);
    without(&asks, &is_check)
}

/// Of messages of which each follows the one before at once, the first ones.
fn begins(mut all: Vec<u32>, asks: &[Ask]) -> Vec<u32> {
    all.sort_unstable();
    let mut over = 0;
    let begins = |n: &u32| {
        let ask = &asks[*n as usize];
        let begins = over == 0 || ask.at > over + SHORTLY;
        over = over.max(ask.over().unwrap_or(ask.at));
        begins
    };
    all.into_iter().filter(begins).collect()
}

/// What is no check, and the checks.
fn without(asks: &[Ask], is_check: &[bool]) -> (Vec<Ask>, Vec<Ask>) {
    let (checks, kept): (Vec<u32>, Vec<u32>) = (0..asks.len() as u32).partition(|&n| is_check[n as usize]);
    // Positions of requests that were given up move with them.
    let moved = |failed: u32| kept.binary_search(&failed).ok().map(|place| place as u32);
    let ask = |&n: &u32| {
        let ask = asks[n as usize];
        Ask { retries: ask.retries.and_then(moved), ..ask }
    };
    (kept.iter().map(ask).collect(), checks.iter().map(ask).collect())
}

/// When the service asks and is answered, in order.
struct Service {
    asked: Vec<u64>,
    answered: Vec<u64>,
}

impl Service {
    fn of<'a>(asks: impl Iterator<Item = &'a Ask>) -> Service {
        let (mut asked, mut answered): (Vec<u64>, Vec<Option<u64>>) = asks.map(|ask| (ask.at, ask.answered)).unzip();
        asked.sort_unstable();
        answered.sort_unstable();
        Service { asked, answered: answered.into_iter().flatten().collect() }
    }

    /// These messages leave when it asks, or in a phase with its requests.
    fn sends(&self, mine: &[u32], asks: &[Ask]) -> bool {
        let left: Vec<u64> = mine.iter().map(|&n| asks[n as usize].at).collect();
        let answered: Vec<u64> = mine.iter().filter_map(|&n| asks[n as usize].answered).collect();
        let moments: Vec<u64> = between(&left).collect();
        self.asks_with(&left, &moments).share >= WITH_OTHERS || self.is_in_phase(&left, &answered, &moments)
    }

    /// How much more often it asks when messages leave than at moments that have nothing to do with them.
    fn asks_with(&self, left: &[u64], moments: &[u64]) -> Excess {
        let asks_near = |at: &&u64| {
            let next = self.asked.partition_point(|&time| time + TOGETHER < **at);
            self.asked.get(next).is_some_and(|&time| time <= **at + TOGETHER)
        };
        let count = |times: &[u64]| times.iter().filter(asks_near).count();
        Excess::of(count(left), left.len(), count(moments), moments.len())
    }

    /// It asks so long after messages were answered, or was answered so long before they left, more steadily than around moments that have nothing to do with
    /// them: a slow application takes milliseconds from one call of a request to the next, and a user may pause for the same time each time.
    fn is_in_phase(&self, left: &[u64], answered: &[u64], moments: &[u64]) -> bool {
        let until = |at: &u64| {
            let next = self.asked.get(self.asked.partition_point(|&time| time + SEEN < *at));
            next.map(|next| next.saturating_sub(*at))
        };
        let since = |at: &u64| {
            let before = self.answered.partition_point(|&time| time <= *at + SEEN).checked_sub(1);
            before.map(|before| at.saturating_sub(self.answered[before]))
        };
        let steadier =
            |known: Vec<u64>, chance: Vec<u64>| cost(&chance, RESOLUTION) - cost(&known, RESOLUTION) >= IN_PHASE;
        steadier(answered.iter().filter_map(until).collect(), moments.iter().filter_map(until).collect())
            || steadier(left.iter().filter_map(since).collect(), moments.iter().filter_map(since).collect())
    }
}

/// What a class asks for.
struct Told {
    count: u64,
    bytes: u64,
    largest: u64,
}

/// Classes of several connections that are no requests of the application's user, beside others that are: asked by a timer, or a tenth as often, for a
/// fiftieth of the bytes, each answer no more than a packet. Health checks of several servers keep step with each other where their periods are the same.
pub(super) fn aside(classes: &[Class], talks: &[Talk], asks: &[Ask]) -> Vec<usize> {
    let told = |class: &Class| {
        let mine = class.requests();
        let bytes = |n: u32| {
            let ask = &asks[n as usize];
            talks[ask.conn as usize].times[ask.msg as usize].bytes
        };
        let each = || mine.iter().flatten().map(|&n| bytes(n));
        Told { count: each().count() as u64, bytes: each().sum(), largest: each().max().unwrap_or(0) }
    };
    let by_a_clock = |class: &Class| {
        let mut all = class.requests().concat();
        all.sort_unstable();
        pools::keeps_time(&all, asks)
    };
    let together: Vec<usize> = (0..classes.len()).filter(|&n| classes[n].is_company()).collect();
    let told: Vec<Told> = together.iter().map(|&n| told(&classes[n])).collect();
    // The service itself is what moves most bytes.
    let most = told.iter().map(|told| told.bytes).max().unwrap_or(0);
    let often = told.iter().filter(|told| told.bytes == most).map(|told| told.count).max().unwrap_or(0);
    let small = |told: &Told| told.bytes < most && told.bytes * LITTLE <= most && told.largest <= PACKET;
    let seldom = |n: usize, told: &Told| told.count * SELDOM <= often || by_a_clock(&classes[n]);
    together.into_iter().zip(&told).filter(|&(n, told)| small(told) && seldom(n, told)).map(|(n, _)| n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Times;
    use crate::release::bursts::{Burst, Company};

    /// A service of two connections that are asked `often` for `bytes` each, beside two that are asked 10 times for `less`: classes that are no
    /// requests of the user.
    fn beside(often: u32, bytes: u64, less: u64) -> Vec<usize> {
        let (mut talks, mut asks, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        for (count, bytes) in [(often, bytes), (10, less)] {
            let connections = [talks.len() as u32, talks.len() as u32 + 1];
            let mut bursts = vec![Burst { asks: Vec::new() }; count as usize];
            for conn in connections {
                let times = vec![Times { bytes, ..Times::default() }; count as usize];
                talks.push(Talk { server: conn, times, ..Talk::default() });
                for (msg, burst) in bursts.iter_mut().enumerate() {
                    burst.asks.push(asks.len() as u32);
                    asks.push(Ask { conn, msg: msg as u32, server: conn, ..Ask::default() });
                }
            }
            let company = Company { connections: connections.to_vec(), bursts, upstream: false };
            classes.push(Class::of(&company, &talks, &asks));
        }
        aside(&classes, &talks, &asks)
    }

    const MS: u64 = 1_000_000;

    /// Messages to one server each, (server, asked, bytes), small ones answered in 1 ms and others in 3: how many are parted from the others as checks.
    fn checks_of(mut messages: Vec<(usize, u64, u64)>) -> usize {
        messages.sort_unstable_by_key(|message| message.1);
        let mut talks: Vec<Talk> = (0..3).map(|server| Talk { server, ..Talk::default() }).collect();
        for &(server, asked, bytes) in &messages {
            let answered = Some(asked + if bytes <= PACKET { MS } else { 3 * MS });
            talks[server].times.push(Times { asked: Some(asked), answered, bytes, ..Times::default() });
        }
        let (service, checks) = parted(crate::release::bursts::asks(&talks), &talks);
        assert!(service.is_sorted_by_key(|ask| ask.at) && service.len() + checks.len() == messages.len());
        checks.len()
    }

    /// Ten checks, 200 ms from one to the next, beside a service that asks 40 times for so many bytes, with so many of the checks and else at times of its own.
    fn beside_a_service(bytes: u64, of_check: u64, with: u64) -> usize {
        let at = |n: u64| 100 * MS + n * 200 * MS;
        let checks = (0..10).map(|n| (0, at(n), of_check));
        let with =
            (0..10).map(move |n| (0, at(n) + if n < with { MS / 5 } else { 20 * MS + n * n * 37 % 70 * MS }, bytes));
        let others = (0..30).map(|n| (0, at(n / 3) + 100 * MS + n % 3 * 30 * MS + n * n * 7 % 25 * MS, bytes));
        checks_of(checks.chain(with).chain(others).collect())
    }

    #[test]
    fn what_a_timer_sends_on_the_service_s_own_connection_is_parted_from_it() {
        assert_eq!([400, 401].map(|of_check| beside_a_service(5_000, of_check, 0)), [10, 0]);
        assert_eq!([1_448, 1_449].map(|of_check| beside_a_service(90_000, of_check, 0)), [10, 0]);
    }

    #[test]
    fn what_leaves_with_the_service_six_times_of_ten_is_of_its_requests() {
        assert_eq!([5, 6].map(|with| beside_a_service(5_000, 100, with)), [10, 0]);
    }

    /// Sixty large answers for a user who pauses for nearly the same time each time, and a small one so long after each is asked for, and up to so much later,
    /// in milliseconds; or as many by a period of their own.
    fn of_a_steady_user(after: Option<(i64, u64)>) -> usize {
        let asked = |n: u64| 50 * MS + n * 40 * MS + n * n * 7 % 23 * MS / 10;
        let small = |n: u64| match after {
            Some((after, late)) => asked(n).saturating_add_signed(after * 1_000_000) + n * n * 11 % 41 * late * MS / 41,
            None => n * 41 * MS,
        };
        checks_of((0..60).flat_map(|n| [(0, asked(n), 20_000), (0, small(n), 100)]).collect())
    }

    #[test]
    fn a_call_of_a_slow_application_is_of_the_request_that_it_is_in_phase_with() {
        // It takes 2 ms and up to 4 more from one call of a request to the next.
        assert_eq!([Some((-7, 4)), Some((5, 4)), None].map(of_a_steady_user), [0, 0, 60]);
    }

    #[test]
    fn of_a_loop_over_servers_the_begin_keeps_time() {
        let mut messages: Vec<(usize, u64, u64)> = (0..120).map(|n| (n % 3, n as u64 * 17 * MS, 20_000)).collect();
        for n in 0..100 {
            let mut at = n * 20 * MS + 7 * MS;
            for server in 0..3 {
                messages.push((server, at, 20));
                at += MS + n * n * 7 % 41 * MS / 10 * 2 / 9;
            }
        }
        assert_eq!(checks_of(messages), 300);
    }

    #[test]
    fn a_small_answer_that_keeps_no_time_is_of_the_service() {
        let small = (0..10).map(|n| (0, n * 200 * MS + n * n * 37 % 190 * MS + 3 * MS, 100));
        let service = (0..40).map(|n| (0, n * 50 * MS, 5_000));
        assert_eq!(checks_of(small.chain(service).collect()), 0);
    }

    #[test]
    fn a_request_that_is_tried_anew_is_found_behind_checks() {
        let retried = |n: u32| Ask { conn: n, retries: (n == 3).then_some(2), ..Ask::default() };
        let (service, checks) = without(&[0, 1, 2, 3].map(retried), &[false, true, false, false]);
        assert_eq!((service.len(), checks[0].conn, service[2].retries), (3, 1, Some(1)));
    }

    #[test]
    fn a_health_check_asks_a_tenth_as_often_for_a_fiftieth_of_the_bytes() {
        assert_eq!((beside(100, 5_000, 100), beside(99, 50_000, 100)), (vec![1], vec![]));
        // 100 x 500 bytes are fifty times 10 x 100.
        assert_eq!((beside(100, 500, 100), beside(100, 499, 100)), (vec![1], vec![]));
    }

    #[test]
    fn a_health_check_that_keeps_time_may_be_asked_as_often_as_the_service() {
        let check = |every: fn(u64) -> u64| {
            let (mut talks, mut asks, mut classes) = (Vec::new(), Vec::new(), Vec::new());
            // Forty requests of a service at times of their own, and as many of the check.
            for (bytes, first) in [(5_000, 0), (100, 2)] {
                let mut bursts = vec![Burst { asks: Vec::new() }; 40];
                let mut at = 0;
                for (msg, burst) in bursts.iter_mut().enumerate() {
                    at += if first == 0 { 50_000_000 } else { every(msg as u64) };
                    for conn in [first, first + 1] {
                        burst.asks.push(asks.len() as u32);
                        asks.push(Ask { at, conn, msg: msg as u32, server: conn, ..Ask::default() });
                    }
                }
                for server in [first, first + 1] {
                    talks.push(Talk {
                        server,
                        times: vec![Times { bytes, ..Times::default() }; 40],
                        ..Talk::default()
                    });
                }
                let company = Company { connections: vec![first, first + 1], bursts, upstream: false };
                classes.push(Class::of(&company, &talks, &asks));
            }
            aside(&classes, &talks, &asks)
        };
        assert_eq!(check(|_| 200_000_000), [1]);
        assert!(check(|n| 20_000_000 + n * n * 7_919_000 % 300_000_000).is_empty(), "a user who pauses");
    }

    #[test]
    fn the_answer_of_a_health_check_fits_in_a_packet() {
        assert_eq!((beside(100, 1_000_000, 1_448), beside(100, 1_000_000, 1_449)), (vec![1], vec![]));
    }
}
