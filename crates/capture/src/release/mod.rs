//! Who waits for what: for every request of the aggregator, the event that released it.
//!
//! The applications say nothing about it, but time does, as in the inference of dependencies from messages alone (WAP5, Reynolds et al. 2006;
//! //TRACE, Mesnier et al. 2007; vPath, Tak et al. 2009): the true cause is the one that the request follows after the steadiest delay, over
//! the whole capture. The candidates here are those of fan-in: the answers of the round before (all of them, or the k-th), the own response
//! before (the closed loop of Tmix's a-b-t model, Weigle et al. 2006), answers or requests of other connections (stages, hedged requests,
//! clients of the aggregator), and a timer. A delay is compared with the delay that a moment without any cause would have: what follows no
//! more steadily than that is not explained by it. See `docs/numbers.md` for what this cannot see.
//!
//! Everything is linear in requests but for sorting them.

mod bursts;
mod candidates;
mod class;
mod completed;
mod drawn;
mod even;
mod groups;
mod joined;
mod like;
#[cfg(test)]
mod patterns;
mod periods;
mod pools;
mod requests;
mod serial;
mod steady;
mod step;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waited;

use crate::waiting::{Company, Delay, Reason, Release, Round};
pub(crate) use bursts::TOGETHER;
use bursts::{Ask, Burst};
use candidates::{Choice, Kind, Streams};
use class::Class;
pub(crate) use class::{LITTLE, PACKET, SELDOM};
pub(crate) use groups::{BEYOND_CHANCE, FOLLOWS};
pub(crate) use requests::{IN_THE_VALLEY, VALLEY};
use std::collections::BTreeMap;
pub(crate) use steady::{Excess, by_chance, most_alike, quantile};
pub(crate) use step::IN_STEP;

/// Fewer rounds show no steadiness.
const LEAST_ROUNDS: usize = 4;
/// A burst to at least this share of a company is a full round of it.
const FULL: f64 = 0.75;
/// If full rounds hold at least this share of the requests, what is asked in between goes its own way.
const FULL_SHARE: f64 = 0.2;
/// If they hold at least this share, asking together is what these connections are for.
const NEARLY_ALL: f64 = 0.8;

/// Requests of which so many messages are in those of one size are what a user causes, and not what happened to come together.
const CLEAR: f64 = 0.5;

/// So much more than those that leave together.
const STEADIER: f64 = 0.02;

/// What leaves within this share of a timer's period of a tick leaves by the timer, though not with all the others.
pub(crate) const ON_A_TICK: f64 = 0.05;

/// When an answer had come is known to this only, in nanoseconds: a tap away from the aggregator sees its acknowledgement, after other requests and
/// after its host's time for it. What seems to come so little after a request may have released it.
const SEEN: u64 = 50_000;

/// One connection as the inference sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Talk {
    /// The aggregator is the server: its "requests" answer a client.
    pub upstream: bool,
    /// The host at the other end, by a number.
    pub server: u32,
    /// When it was opened, if that is in the capture,
    pub opened: Option<u64>,
    /// and when the aggregator closed it.
    pub closed: Option<u64>,
    /// Per message.
    pub times: Vec<Times>,
}

/// When the aggregator sent a request, and when it had all of the response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub asked: Option<u64>,
    pub answered: Option<u64>,
    /// The request was sent before the answer to the one before had come.
    pub overlapped: bool,
    /// By how much earlier the response may have come.
    pub unsure: u64,
    /// Of the response.
    pub bytes: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Per connection and message; none: the own response before.
    pub releases: Vec<Vec<Option<Release>>>,
    pub rounds: Vec<Round>,
    pub companies: Vec<Company>,
}

/// Infers who waits for what.
pub(crate) fn infer(talks: &[Talk]) -> Found {
    let asks = bursts::asks(talks);
    let companies = bursts::companies(talks, &asks);
    let (classes, streams, choices) = joined::stages(classes(talks, &asks, &companies), talks, &asks);
    let mut book = Book {
        asks: &asks,
        classes: &classes,
        choices: &choices,
        found: Found { releases: talks.iter().map(|t| vec![None; t.times.len()]).collect(), ..Found::default() },
        numbers: BTreeMap::new(),
    };
    for (n, (class, choice)) in classes.iter().zip(&choices).enumerate() {
        book.write(n, class, choice, &streams);
    }
    book.found
}

/// Groups whose requests are known, and companies of which that is not so.
fn classes(talks: &[Talk], asks: &[Ask], companies: &[bursts::Company]) -> Vec<Class> {
    let mut all: Vec<Class> = Vec::new();
    let mut taken = vec![false; talks.len()];
    let mut take = |group: &groups::Group| group.connections.iter().for_each(|&conn| taken[conn as usize] = true);
    let apart = |messages: Vec<u32>| {
        let alone = bursts::Company::alone(messages, asks);
        alone.iter().map(|company| Class::of(company, talks, asks)).collect::<Vec<_>>()
    };
    // Groups first: their messages tell requests of their own. What is left are companies.
    for group in &step::joined(pools::pools(groups::groups(talks, asks, companies), asks), asks) {
        match Told::of(group, talks, asks, companies) {
            Told::Requests(group, cut) => {
                take(&group);
                all.push(Class::of_requests(group.connections, &cut, talks, asks));
            }
            Told::EachByItself => {
                take(group);
                all.extend(apart(group.asks.clone()));
            }
            // Connections that met by chance may each tell.
            Told::Nothing if group.several => {
                for one in group.each(asks) {
                    if let Told::Requests(one, cut) = Told::of(&one, talks, asks, companies) {
                        take(&one);
                        all.push(Class::of_requests(one.connections, &cut, talks, asks));
                    }
                }
            }
            Told::AsCompanies | Told::Nothing => {}
        }
    }
    let left = companies.iter().filter_map(|company| company.without(&taken, asks));
    all.extend(left.map(|company| Class::of(&company, talks, asks)));
    let mut checks = Vec::new();
    for n in class::aside(&all, talks, asks) {
        checks.extend(apart(all[n].requests().concat()));
        all[n].connections.clear();
    }
    all.retain(|class| !class.connections.is_empty());
    all.extend(checks);
    for each in &mut all {
        if let Some(whole) = completed::class(each, talks, asks) {
            *each = whole;
        }
    }
    all.sort_by_key(|class| class.connections.first().copied());
    all
}

/// What a group tells.
enum Told {
    /// These requests of these connections.
    Requests(groups::Group, requests::Cut),
    /// Each connection asks again as soon as it was answered, whatever the others do.
    EachByItself,
    /// No more than what leaves together.
    AsCompanies,
    Nothing,
}

impl Told {
    fn of(group: &groups::Group, talks: &[Talk], asks: &[Ask], companies: &[bursts::Company]) -> Told {
        if !group.several && !group.is_one_chain(asks) {
            return Told::Nothing;
        }
        let (group, cut) = usual(group, asks);
        let told = requests::steadiness(&cut.requests);
        let alike = match group.several {
            true => told >= requests::STEADY,
            // That the calls of one chain are a user's requests is told by his pauses alone.
            false => told >= requests::STEADY && cut.valley && !cut.concurrent,
        };
        // Polls and transfers in parts: on each connection the next call follows its own answer, whatever others do.
        if !alike && group.goes_on_by_itself(asks) {
            return Told::EachByItself;
        }
        // What leaves together is what was known of these, unless each goes its own way.
        let company = match group.companies.as_slice() {
            &[only] => Some(Class::of(&companies[only as usize], talks, asks)),
            _ => None,
        };
        let steady = |class: &Class| if class.shown { requests::steadiness(&class.requests()) } else { 0.0 };
        let known = company.as_ref().map(steady);
        let surpassed = || company.as_ref().is_some_and(|class| class.is_surpassed(&cut.requests));
        let better = match known {
            Some(known) => told >= CLEAR && (is_steadier(told, known) || cut.valley && told >= known || surpassed()),
            None => told >= CLEAR || cut.valley,
        };
        let cut = match better {
            true if group.several || alike => Some(cut),
            _ if told.max(known.unwrap_or(0.0)) >= requests::STEADY => return Told::AsCompanies,
            _ => serial::requests(&group.asks, asks, !group.several)
                .map(|requests| requests::Cut { requests, ..Default::default() }),
        };
        match cut.filter(|cut| cut.requests.len() >= LEAST_ROUNDS) {
            Some(cut) => Told::Requests(group, cut),
            None => Told::Nothing,
        }
    }
}

/// Requests are so much steadier than what leaves together that they tell more.
fn is_steadier(told: f64, known: f64) -> bool {
    told > known + STEADIER
}

/// A group and its requests; where these are not steady, and are without some of its connections, without these.
fn usual(group: &groups::Group, asks: &[Ask]) -> (groups::Group, requests::Cut) {
    let cut = requests::cut(group, asks);
    let told = requests::steadiness(&cut.requests);
    // Some connections may be of no request: without them the others are steadier.
    if told < requests::STEADY
        && let Some(usual) = group.without_odd(asks)
    {
        let without = requests::cut(&usual, asks);
        if requests::steadiness(&without.requests) >= requests::STEADY.max(told + requests::STEADIER) {
            return (usual, without);
        }
    }
    (group.clone(), cut)
}

/// The findings while they are written down.
struct Book<'a> {
    asks: &'a [Ask],
    classes: &'a [Class],
    choices: &'a [Choice],
    found: Found,
    /// Numbers of rounds by class and burst.
    numbers: BTreeMap<(usize, usize), u32>,
}

impl Book<'_> {
    fn write(&mut self, n: usize, class: &Class, choice: &Choice, streams: &Streams) {
        // Rounds are written down where asking together was found to mean something.
        let together = class.inside.is_some() || class.is_company() && !choice.alone();
        let mut reasons: BTreeMap<Reason, Vec<u64>> = BTreeMap::new();
        let mut gates = BTreeMap::new();
        // A timer that once sent while an answer was missing does not wait for answers.
        let regardless = class.bursts.iter().flat_map(|b| &b.asks).any(|&ask| self.asks[ask as usize].overlapped);
        for (i, burst) in class.bursts.iter().enumerate() {
            if together {
                self.round(n, i);
            }
            let kind = if choice.alone() { None } else { choice.of(i) };
            let cause = kind.and_then(|kind| streams.cause(kind, n, i, self.classes).map(|cause| (kind, cause)));
            let start = self.asks[burst.asks[0] as usize].at;
            let reason = match (&cause, choice.alone()) {
                (Some((kind, _)), _) => reason(*kind),
                (None, false) if together => Reason::Nothing,
                (None, _) => Reason::OwnAnswer,
            };
            match &cause {
                Some((Kind::Timer, _)) => reasons.entry(reason).or_default().push(choice.period(i).unwrap_or(0)),
                Some((_, cause)) => reasons.entry(reason).or_default().push(start.saturating_sub(cause.at)),
                None => {
                    for ask in &burst.asks {
                        let ask = &self.asks[*ask as usize];
                        // The first request of a connection follows nothing.
                        match (reason, ask.own) {
                            (Reason::OwnAnswer, Some(own)) => {
                                reasons.entry(reason).or_default().push(ask.at - own);
                            }
                            _ => reasons.entry(Reason::Nothing).or_default().push(0),
                        }
                    }
                }
            }
            if let (Some(_), true) = (&cause, burst.asks.len() > 1) {
                // Delays are those of the first request of a round, but every request counts as explained.
                let known = reasons.entry(reason).or_default();
                let delay = known.last().copied().unwrap_or(0);
                known.extend(std::iter::repeat_n(delay, burst.asks.len() - 1));
            }
            if !together && cause.is_none() {
                continue;
            }
            for ask in burst.asks.clone() {
                let ask = self.asks[ask as usize];
                let release = match &cause {
                    None => Release::Clock { regardless: false },
                    // A timer asks on the clock of the capture, whatever has been answered.
                    Some((Kind::Timer, _)) => Release::Clock { regardless },
                    Some((_, cause)) => self.after(cause, ask.sent),
                };
                self.found.releases[ask.conn as usize][ask.msg as usize] = Some(release);
            }
        }
        for step in class.inside.iter().flatten().flatten() {
            let ask = self.asks[step.ask as usize];
            reasons.entry(Reason::Inside).or_default().push(ask.at.saturating_sub(step.at));
            self.found.releases[ask.conn as usize][ask.msg as usize] = Some(self.inside(n, step, &mut gates));
        }
        for &ask in &class.rest {
            let ask = self.asks[ask as usize];
            if let Some(period) = choice.ticks().filter(|&period| class.on_a_tick(ask.at, period, self.asks)) {
                let clock = Some(Release::Clock { regardless });
                self.found.releases[ask.conn as usize][ask.msg as usize] = clock;
                reasons.entry(Reason::Timer).or_default().push(period);
                continue;
            }
            match ask.own {
                Some(own) => reasons.entry(Reason::OwnAnswer).or_default().push(ask.at - own),
                None => reasons.entry(Reason::Nothing).or_default().push(0),
            }
        }
        // From the first to the last message of each round.
        let spread: Vec<u64> = if together {
            class.bursts.iter().filter(|b| b.asks.len() > 1).map(|b| self.spread(b)).collect()
        } else {
            Vec::new()
        };
        self.found.companies.push(Company {
            connections: class.connections.clone(),
            servers: 0,
            upstream: class.upstream,
            rounds: if together { class.bursts.len() as u64 } else { 0 },
            requests: class.requests().iter().map(Vec::len).sum::<usize>() as u64,
            spread: Delay::of(&spread),
            released_by: reasons.into_iter().map(|(reason, delays)| reason.told(&delays)).collect(),
        });
    }

    /// What releases a message inside its request. Several may wait for the same answers.
    fn inside(&mut self, class: usize, step: &requests::Step, gates: &mut BTreeMap<Vec<u32>, u32>) -> Release {
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
