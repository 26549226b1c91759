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

mod ahead;
mod apart;
mod book;
mod bursts;
mod candidates;
mod checks;
mod class;
mod clients;
mod completed;
mod counted;
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
mod served;
mod steady;
mod step;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waited;
mod whose;

use crate::waiting::{Company, Release, Round};
pub(crate) use apart::{Standing, stand_apart};
use book::Book;
use bursts::Ask;
pub(crate) use bursts::TOGETHER;
pub(crate) use checks::{LITTLE, PACKET, SELDOM};
use class::Class;
pub(crate) use groups::{BEYOND_CHANCE, FOLLOWS};
use requests::By;
pub(crate) use served::AGREES;
pub(crate) use steady::{Excess, between, by_chance, most_alike, quantile};
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
    /// When it was opened, if that is in the capture.
    pub opened: Option<u64>,
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
    /// When the aggregator gave up waiting for the response, which had not come.
    pub given_up: Option<u64>,
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
    let (asks, checks) = checks::parted(bursts::asks(talks), talks);
    let companies = bursts::companies(talks, &asks);
    let classes = ahead::joined(classes(talks, &asks, &companies), talks, &asks);
    let told = joined::stages(classes, talks, &asks);
    let served = served::instead(&told.0, &told.2, &companies, talks, &asks);
    let (classes, streams, choices) = served.map_or(told, |classes| joined::stages(classes, talks, &asks));
    Book::new(talks, &asks, &classes, &choices).written(&streams, &checks)
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
    for n in checks::aside(&all, talks, asks) {
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
            false => told >= requests::STEADY && cut.told.is_some() && !cut.concurrent,
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
            Some(known) => {
                let by_pauses = match cut.told {
                    Some(By::Valley) => told >= known,
                    Some(By::Order) => true,
                    None => false,
                };
                told >= CLEAR && (by_pauses || is_steadier(told, known) || surpassed())
            }
            None => told >= CLEAR || cut.told.is_some(),
        };
        let cut = match better {
            true if group.several || alike => Some(cut),
            _ if told.max(known.unwrap_or(0.0)) >= requests::STEADY => return Told::AsCompanies,
            _ => serial::requests(&group.asks, asks, !group.several)
                .map(|requests| requests::Cut { requests, ..Default::default() })
                .or_else(|| {
                    Some(cut).filter(|cut| group.several && !cut.concurrent && apart::do_stand(&cut.requests, asks))
                }),
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
    let steadier = requests::STEADY.max(told + requests::STEADIER);
    if steadier <= 1.0
        && let Some(usual) = group.without_odd(asks)
    {
        let without = requests::cut(&usual, asks);
        if requests::steadiness(&without.requests) >= steadier {
            return (usual, without);
        }
    }
    (group.clone(), cut)
}
