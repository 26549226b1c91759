//! The findings, written down: the rounds, what releases each request, and how steadily it follows that.

use super::bursts::{Ask, Burst};
use super::candidates::{self, Choice, Kind, Streams};
use super::class::Class;
use super::clients::Clients;
use super::requests::{RARELY, Step};
use super::{Found, Talk};
use crate::waiting::{Company, Delay, Reason, Release, Round};
use std::collections::BTreeMap;

/// The findings while they are written down.
pub(super) struct Book<'a> {
    talks: &'a [Talk],
    asks: &'a [Ask],
    classes: &'a [Class],
    choices: &'a [Choice],
    found: Found,
    /// Numbers of rounds by class and burst.
    numbers: BTreeMap<(usize, usize), u32>,
    clients: Clients,
}

/// What requests of a class follow, and how long after.
#[derive(Default)]
struct Reasons(BTreeMap<Reason, Vec<u64>>);

impl Reasons {
    fn add(&mut self, reason: Reason, delay: u64) {
        self.0.entry(reason).or_default().push(delay);
    }

    /// The answer before on its own connection; the first request of a connection follows nothing.
    fn own_answer(&mut self, ask: &Ask) {
        match ask.own {
            Some(own) => self.add(Reason::OwnAnswer, ask.at - own),
            None => self.add(Reason::Nothing, 0),
        }
    }
}

impl<'a> Book<'a> {
    pub fn new(talks: &'a [Talk], asks: &'a [Ask], classes: &'a [Class], choices: &'a [Choice]) -> Book<'a> {
        let releases = talks.iter().map(|t| vec![None; t.times.len()]).collect();
        let found = Found { releases, ..Found::default() };
        Book { talks, asks, classes, choices, found, numbers: BTreeMap::new(), clients: Clients::default() }
    }

    /// All classes in their order, and what a timer sends on their connections.
    pub fn written(mut self, streams: &Streams, checks: &[Ask]) -> Found {
        self.clients = Clients::of(self.classes, self.choices, streams, self.talks);
        for n in 0..self.classes.len() {
            self.write(n, streams);
        }
        // Where its connection is busy a check takes another of the pool.
        checks.iter().for_each(|check| self.release(check, Release::Clock { regardless: true }));
        self.found
    }

    fn write(&mut self, n: usize, streams: &Streams) {
        let class = &self.classes[n];
        let together = self.asks_together(n) && !self.repeats_others(n);
        // A timer that once sent while an answer was missing does not wait for answers.
        let regardless = class.bursts.iter().flat_map(|b| &b.asks).any(|&ask| self.asks[ask as usize].overlapped);
        let by_clock = Release::Clock { regardless };
        let mut reasons = Reasons::default();
        for i in 0..class.bursts.len() {
            self.burst((n, i), together, by_clock, streams, &mut reasons);
        }
        self.steps(n, &mut reasons);
        self.rest(n, by_clock, &mut reasons);
        // From the first to the last message of each round.
        let several = class.bursts.iter().filter(|burst| together && burst.asks.len() > 1);
        let spread: Vec<u64> = several.map(|burst| self.spread(burst)).collect();
        self.found.companies.push(Company {
            connections: class.connections.clone(),
            servers: 0,
            upstream: class.upstream,
            rounds: if together { class.bursts.len() as u64 } else { 0 },
            requests: class.requests().iter().map(Vec::len).sum::<usize>() as u64,
            spread: Delay::of(&spread),
            released_by: reasons.0.into_iter().map(|(reason, delays)| reason.told(&delays)).collect(),
        });
    }

    /// Rounds are written down where asking together was found to mean something.
    fn asks_together(&self, n: usize) -> bool {
        let class = &self.classes[n];
        class.inside.is_some() || class.is_company() && !self.choices[n].alone()
    }

    /// What is asked now and then, a time after the requests of others, is a part of these: calls that are made once more, of other servers, where an
    /// answer is late.
    fn repeats_others(&self, n: usize) -> bool {
        let Some(Kind::OthersRequests(of)) = self.choices[n].mostly() else { return false };
        let few = self.classes[n].bursts.len() as f64 <= RARELY * self.classes[of].bursts.len() as f64;
        few && self.asks_together(of)
    }

    /// What releases the messages of burst `i` of class `n`.
    fn burst(
        &mut self,
        (n, i): (usize, usize),
        together: bool,
        by_clock: Release,
        streams: &Streams,
        reasons: &mut Reasons,
    ) {
        let (choice, burst) = (&self.choices[n], &self.classes[n].bursts[i]);
        if together {
            self.round(n, i);
        }
        let of_client = if self.classes[n].upstream {
            let ask = &self.asks[burst.asks[0] as usize];
            self.clients.waited_for(ask, choice, self.classes, self.talks)
        } else {
            self.clients.released(n, i)
        };
        let by_time = || {
            let kind = choice.of(i)?;
            Some((kind, streams.cause(kind, n, i, self.classes)?))
        };
        let cause = of_client.or_else(by_time);
        for &ask in &burst.asks {
            let ask = &self.asks[ask as usize];
            let release = match &cause {
                Some((kind, cause)) => {
                    // Delays are those of the first request of a round, but every request counts as explained.
                    let start = self.asks[burst.asks[0] as usize].at;
                    let delay = match kind {
                        Kind::Timer => choice.period(i).unwrap_or(0),
                        _ => start.saturating_sub(cause.at),
                    };
                    reasons.add(reason(*kind), delay);
                    // A timer asks on the clock of the capture, whatever has been answered.
                    if *kind == Kind::Timer { by_clock } else { self.after(cause, ask.sent) }
                }
                None if together => {
                    if choice.alone() {
                        reasons.own_answer(ask);
                    } else {
                        reasons.add(Reason::Nothing, 0);
                    }
                    Release::Clock { regardless: false }
                }
                None => {
                    reasons.own_answer(ask);
                    continue;
                }
            };
            self.release(ask, release);
        }
    }

    /// The messages inside the requests of a class.
    fn steps(&mut self, n: usize, reasons: &mut Reasons) {
        let mut gates = BTreeMap::new();
        for step in self.classes[n].inside.iter().flatten().flatten() {
            let ask = &self.asks[step.ask as usize];
            reasons.add(Reason::Inside, ask.at.saturating_sub(step.at));
            let release = self.inside(n, step, &mut gates);
            self.release(ask, release);
        }
    }

    /// The messages of a class that are in no burst of it.
    fn rest(&mut self, n: usize, by_clock: Release, reasons: &mut Reasons) {
        let class = &self.classes[n];
        for &ask in &class.rest {
            let ask = &self.asks[ask as usize];
            match self.choices[n].ticks().filter(|&period| class.on_a_tick(ask.at, period, self.asks)) {
                Some(period) => {
                    reasons.add(Reason::Timer, period);
                    self.release(ask, by_clock);
                }
                None => reasons.own_answer(ask),
            }
        }
    }

    fn release(&mut self, ask: &Ask, release: Release) {
        self.found.releases[ask.conn as usize][ask.msg as usize] = Some(release);
    }

    /// What releases a message inside its request. Several may wait for the same answers.
    fn inside(&mut self, class: usize, step: &Step, gates: &mut BTreeMap<Vec<u32>, u32>) -> Release {
        let place = |ask: u32| (self.asks[ask as usize].conn, self.asks[ask as usize].msg);
        let delay_ns = self.asks[step.ask as usize].sent.saturating_sub(step.at);
        match step.of.as_slice() {
            &[only] => {
                let (connection, message) = place(only);
                match step.need {
                    0 => Release::Request { connection, message, delay_ns },
                    _ => Release::Answer { connection, message, delay_ns },
                }
            }
            several => {
                let next = self.found.rounds.len() as u32;
                // What waits for the same answers shares one gate: else a stage of a thousand messages would repeat each
                // answer a thousand times.
                let round = *gates.entry(several.to_vec()).or_insert(next);
                if round == next {
                    let answers = several.iter().map(|&ask| place(ask)).collect();
                    let gate = Round { company: class as u32, answers, ..Round::default() };
                    self.found.rounds.push(gate);
                }
                Release::Round { round, answers: step.need, delay_ns }
            }
        }
    }

    fn spread(&self, burst: &Burst) -> u64 {
        let at = |ask: Option<&u32>| ask.map_or(0, |&a| self.asks[a as usize].at);
        at(burst.asks.last()) - at(burst.asks.first())
    }

    fn after(&mut self, cause: &candidates::Cause, sent: u64) -> Release {
        // To when it left, not to when it was decided: the handshake of a new connection is part of the delay.
        let delay_ns = sent.saturating_sub(cause.at);
        match cause.what {
            candidates::What::Round { class, burst, need } => {
                Release::Round { round: self.round(class, burst), answers: need, delay_ns }
            }
            candidates::What::Answer { conn, msg } => Release::Answer { connection: conn, message: msg, delay_ns },
            candidates::What::Request { conn, msg } => Release::Request { connection: conn, message: msg, delay_ns },
        }
    }

    /// The number of a round, which is written down when it is first spoken of.
    fn round(&mut self, class: usize, burst: usize) -> u32 {
        if let Some(&number) = self.numbers.get(&(class, burst)) {
            return number;
        }
        let number = self.found.rounds.len() as u32;
        self.numbers.insert((class, burst), number);
        let it = &self.classes[class];
        let requests: Vec<(u32, u32)> =
            it.bursts[burst].asks.iter().map(|&a| (self.asks[a as usize].conn, self.asks[a as usize].msg)).collect();
        let known = it.answers[burst].iter().chain(&it.spare[burst]);
        let answers: Vec<(u32, u32)> = known.map(|a| (a.conn, a.msg)).collect();
        let opened = it.opened(burst, self.asks);
        let start = opened.unwrap_or_else(|| it.start(burst, self.asks));
        // Who goes on when some of the answers have come has all that he waited for.
        let of = it.answers[burst].len();
        let need = self.choices[class].waited(of).unwrap_or(of);
        let last = need.checked_sub(1).map(|place| it.answers[burst][place].at).filter(|&at| at < u64::MAX);
        let waits_for = (need < answers.len()).then_some(need as u32);
        let mut sorted = (requests.clone(), answers.clone());
        sorted.0.sort_unstable();
        sorted.1.sort_unstable();
        // Answers to these very requests are not written down twice.
        let answers = if sorted.0 == sorted.1 { Vec::new() } else { answers };
        self.found.rounds.push(Round {
            company: class as u32,
            requests,
            answers,
            waits_for,
            opened_ns: opened,
            took_ns: last.map(|at| at.saturating_sub(start)),
        });
        number
    }
}

fn reason(kind: Kind) -> Reason {
    match kind {
        Kind::Answers(need) => Reason::Answers(need.late()),
        Kind::OthersAnswers(class) => Reason::OthersAnswers(class as u32),
        Kind::OthersRequests(class) => Reason::OthersRequests(class as u32),
        Kind::Timer => Reason::Timer,
    }
}
