//! The capture checks what was read of it: do the requests close, and are they alike?
//!
//! A request *closes* when every message of it was answered in the capture, nothing in it waited for an answer that came later, and no message is
//! missing or of another request too. What breaks the last of these is no property of a capture: it is an error of the inference, a [`Faults`].

use crate::release::PACKET;
use crate::stages::{Place, Request};
use crate::waiting::{Release, Round};
use crate::workload::Workload;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// When an answer had come is known to this only: see `release::SEEN`, and twice that where two such times are compared.
const SEEN: u64 = 100_000;

/// What brings so many times fewer bytes than the rest of its request, and no more than a packet, brings hardly anything.
const HARDLY: u64 = 10;

/// What was read of one company, checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Closing {
    /// Position in [`Workload::companies`].
    #[serde(rename = "group")]
    pub company: u32,
    /// Requests, without those that the begin or the end of the capture cut off.
    pub requests: u64,
    /// Those that close.
    pub closed: u64,
    /// Messages of these requests.
    pub messages: u64,
    /// Messages of requests that close.
    pub closed_messages: u64,
    /// Requests that lack an answer in the capture.
    pub unanswered: u64,
    /// Those whose user goes on with some of their answers (a quorum), as they are read.
    pub partial: u64,
    /// Those that end with calls after all other answers, which bring hardly anything: their user may not wait for these.
    pub trailing: u64,
    /// The middle one of the shares of these requests' times that such calls take.
    pub trailing_share: f64,
    /// Those in which nothing was missing for longer than before most requests, while another one began, and then more was asked.
    pub interrupted: u64,
    /// Messages that leave together with others and are in no request that was found.
    pub unbound: u64,
    /// Messages that leave together with messages of other companies, where those are more than chance gives, or of requests that begin as soon as others
    /// are answered.
    pub beside: u64,
    /// Requests that lack a server that its others ask, or those of another company like it: connections to it may be missing in the capture.
    pub lacking: u64,
    /// Requests, where these stand apart: `closing/apart.rs`.
    pub apart: u64,
    /// Requests, where short and long pauses between them take turns: `closing/turns.rs`.
    pub in_turns: u64,
    /// Requests, where clients of the aggregator tell them: `closing/served.rs`.
    pub served: u64,
    /// What is an error of the inference.
    pub faults: Faults,
    /// Messages per request.
    pub messages_per_request: Spread,
    /// Messages with which a request begins: those that wait for none of it.
    pub first_messages: Spread,
    /// Connections that the messages of a request are on.
    pub connections_per_request: Spread,
    /// Servers per request.
    pub servers_per_request: Spread,
    /// Bytes per answer.
    pub answer_bytes: Spread,
}

/// Requests that cannot be what an application did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Faults {
    /// They have a message that another request has too.
    pub shared: u64,
    /// They last longer than their own messages, or shorter.
    pub longer: u64,
    /// A message of theirs left before the answers that it is said to have waited for.
    pub overlapping: u64,
    /// A message that waited for answers of theirs is in no request, or their own first message is not waited for.
    pub lost: u64,
}

impl Faults {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.shared + self.longer + self.overlapping + self.lost
    }
}

/// A distribution of counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The least, the middle, the largest of nine in ten, and the largest.
    pub min: u64,
    /// The middle.
    pub median: u64,
    /// Nine in ten are not larger.
    pub p90: u64,
    /// The largest.
    pub max: u64,
    /// The most frequent.
    pub usual: u64,
    /// The share that has it.
    pub usual_share: f64,
}

impl Spread {
    fn of(mut values: Vec<u64>) -> Spread {
        values.sort_unstable();
        let n = values.len();
        let at = |share: f64| values.get((n.saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(0);
        let (min, median, p90, max) = (at(0.0), at(0.5), at(0.9), at(1.0));
        let often = values.chunk_by(|a, b| a == b).max_by_key(|same| same.len());
        let (usual, times) = often.map_or((0, 0), |same| (same[0], same.len()));
        Spread { min, median, p90, max, usual, usual_share: times as f64 / n.max(1) as f64 }
    }
}

/// Whether a request closes, and why not.
#[derive(Clone, Copy, Default)]
struct State {
    unanswered: bool,
    shared: bool,
    longer: bool,
    overlapping: bool,
    lost: bool,
}

impl State {
    fn closes(self) -> bool {
        !(self.unanswered || self.shared || self.longer || self.overlapping || self.lost)
    }
}

impl Workload {
    /// What was read of each company that is asked in requests of several messages, or in messages that leave together without any request that was found.
    pub fn closings(&self) -> Vec<Closing> {
        let requests = self.requests();
        let places = Places::of(self, &requests);
        let (lost, unbound, beside) = (places.lost(), self.unbound(&requests), self.beside(&requests));
        let behind = self.behind(&requests);
        let asked: Vec<Vec<u32>> = requests.iter().map(|request| self.servers_of(request)).collect();
        let lacking = self.lacking(&requests, &asked);
        let halves = self.begun_before(&requests);
        let mut all: Vec<Closing> = Vec::new();
        for (n, &unbound) in (0..).zip(&unbound) {
            if self.companies[n as usize].rounds == 0 && unbound == 0 {
                continue;
            }
            // What no request was found for is explained by none.
            let mut closing = Closing { company: n, unbound, messages: unbound, ..Closing::default() };
            let (mut sizes, mut first, mut servers, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            let mut used = Vec::new();
            let mut trailing: Vec<f64> = Vec::new();
            let (begun, pause) = places.begun(n);
            for (number, request) in requests.iter().enumerate().filter(|(_, request)| request.company == n) {
                let state = State { lost: lost[number] || places.misses_its_first(request), ..places.state(request) };
                if state.unanswered && places.is_cut_off(request) || halves.contains(&number) {
                    continue;
                }
                let messages = request.messages().count() as u64;
                closing.requests += 1;
                closing.messages += messages;
                if state.closes() {
                    closing.closed += 1;
                    closing.closed_messages += messages;
                }
                closing.partial += u64::from(self.is_partial(request));
                closing.interrupted +=
                    u64::from(pause.is_some_and(|pause| places.is_interrupted(request, &begun, pause)));
                trailing.extend(places.trailing(request));
                closing.unanswered += u64::from(state.unanswered);
                closing.faults.shared += u64::from(state.shared);
                closing.faults.longer += u64::from(state.longer);
                closing.faults.overlapping += u64::from(state.overlapping);
                closing.faults.lost += u64::from(state.lost);
                sizes.push(messages);
                first.push(self.rounds[request.round as usize].requests.len() as u64);
                used.push(request.messages().map(|(c, _)| c).collect::<BTreeSet<u32>>().len() as u64);
                servers.push(asked[number].len() as u64);
                let answers =
                    request.messages().filter_map(|place| self.message(place)).filter(|answer| !answer.given_up);
                bytes.extend(answers.map(|answer| answer.response_bytes));
            }
            trailing.sort_unstable_by(f64::total_cmp);
            closing.trailing = trailing.len() as u64;
            closing.trailing_share = trailing.get(trailing.len() / 2).copied().unwrap_or(0.0);
            closing.beside = beside[n as usize].max(behind[n as usize]);
            closing.lacking = lacking[n as usize];
            closing.apart = places.apart(n);
            closing.in_turns = places.in_turns(n);
            closing.served = places.served(n);
            closing.messages_per_request = Spread::of(sizes);
            closing.first_messages = Spread::of(first);
            closing.connections_per_request = Spread::of(used);
            closing.servers_per_request = Spread::of(servers);
            closing.answer_bytes = Spread::of(bytes);
            all.push(closing);
        }
        all
    }
}

impl Workload {
    /// Takes the times from requests that began before the capture: it has no begin of theirs.
    pub(crate) fn forget_halves(&mut self) {
        if self.connections.iter().all(|connection| connection.opened) {
            return;
        }
        let requests = self.requests();
        for half in self.begun_before(&requests) {
            self.rounds[requests[half].round as usize].took_ns = None;
        }
    }

    /// The first request of each company, by number, if it began before the capture: its connections were open then, and most requests have more messages.
    fn begun_before(&self, requests: &[Request]) -> BTreeSet<usize> {
        let mut of: BTreeMap<u32, (usize, Vec<u64>)> = BTreeMap::new();
        for (number, request) in requests.iter().enumerate() {
            let (_, sizes) = of.entry(request.company).or_insert_with(|| (number, Vec::new()));
            sizes.push(request.messages().count() as u64);
        }
        let open = |company: u32| {
            let mut mine = self.companies[company as usize].connections.iter();
            mine.any(|&c| self.connections.get(c as usize).is_some_and(|c| !c.opened))
        };
        let half = |(company, (number, sizes)): (u32, (usize, Vec<u64>))| {
            let (size, usual) = (sizes[0], Spread::of(sizes));
            let fewer = size < usual.usual && 2.0 * usual.usual_share > 1.0;
            (fewer && open(company)).then_some(number)
        };
        of.into_iter().filter_map(half).collect()
    }

    /// The user went on with some of the answers to what he asked first: no hedge, whose answers are more than its first messages.
    fn is_partial(&self, request: &Request) -> bool {
        let round = &self.rounds[request.round as usize];
        round.waits_for.is_some_and(|need| (need as usize) < round.requests.len())
    }
}

/// Which request each message is of.
struct Places<'a> {
    workload: &'a Workload,
    requests: &'a [Request],
    /// By place, the requests; in order.
    of: Vec<(Place, u32)>,
}

impl<'a> Places<'a> {
    fn of(workload: &'a Workload, requests: &'a [Request]) -> Places<'a> {
        let numbered = (0..).zip(requests);
        let mut of: Vec<(Place, u32)> =
            numbered.flat_map(|(n, request)| request.messages().map(move |place| (place, n))).collect();
        of.sort_unstable();
        Places { workload, requests, of }
    }

    fn requests_of(&self, place: Place) -> &[(Place, u32)] {
        let from = self.of.partition_point(|&(at, _)| at < place);
        let count = self.of[from..].partition_point(|&(at, _)| at == place);
        &self.of[from..from + count]
    }

    fn asked(&self, place: Place) -> u64 {
        self.workload.message(place).map_or(0, |message| message.start_ns)
    }

    fn answered(&self, place: Place) -> Option<u64> {
        let message = self.workload.message(place)?;
        message.start_ns.checked_add(message.took_ns?)
    }

    /// When the last answer to a request had come.
    fn end(&self, request: &Request) -> Option<u64> {
        request.messages().filter_map(|place| self.answered(place)).max()
    }

    fn state(&self, request: &Request) -> State {
        let mut state = State::default();
        for place in request.messages() {
            state.shared |= self.requests_of(place).len() > 1;
            // Times of an application's threads are not those of its packets.
            state.overlapping |= !self.workload.traced && self.left_early(place);
        }
        let round = &self.workload.rounds[request.round as usize];
        let waited: Vec<Place> = match round.waits_for {
            Some(_) => round.answers().to_vec(),
            None => request.messages().filter(|&place| !self.given_up(round, place)).collect(),
        };
        let need = round.waits_for.map_or(waited.len(), |need| need as usize);
        state.unanswered = waited.iter().filter(|&&place| !self.lacks_its_answer(place)).count() < need;
        let mut came: Vec<u64> = waited.iter().filter_map(|&place| self.answered(place)).collect();
        came.sort_unstable();
        // A tap before the queue may not show when the last of an answer had come: then nothing says how long it took.
        let end = need.checked_sub(1).and_then(|last| came.get(last));
        let apart = |&end: &u64| {
            let own = end.saturating_sub(request.begin_ns);
            request.took_ns.is_none_or(|took| took.abs_diff(own) > SEEN)
        };
        state.longer = !self.workload.traced && end.is_some_and(apart);
        state
    }

    /// The application gave up waiting for its answer, and went on without it.
    fn given_up(&self, round: &Round, place: Place) -> bool {
        self.workload.message(place).is_some_and(|message| message.given_up) && !round.answers().contains(&place)
    }

    /// The places of a request in order of time, each with when all answers to those before it had come; none where one of these is missing.
    fn in_order(&self, request: &Request) -> Option<Vec<(Place, u64)>> {
        let mut places: Vec<Place> = request.messages().collect();
        places.sort_unstable_by_key(|&place| self.asked(place));
        let mut before = 0;
        let each = |place| {
            let had = before;
            before = before.max(self.answered(place)?);
            Some((place, had))
        };
        places.into_iter().map(each).collect()
    }

    /// When a company's requests begin and end, in order; without an end where no answer came.
    fn times(&self, company: u32) -> Vec<(u64, Option<u64>)> {
        let mine = self.requests.iter().filter(|request| request.company == company);
        let mut times: Vec<_> = mine.map(|request| (request.begin_ns, self.end(request))).collect();
        times.sort_unstable();
        times
    }

    /// When a company's requests begin, in order, and for how long nothing of them is missing before most that do so then.
    fn begun(&self, company: u32) -> (Vec<u64>, Option<u64>) {
        let mine = self.times(company);
        let mut until = u64::MAX;
        let mut pauses: Vec<u64> = Vec::new();
        for &(begin, end) in &mine {
            let end = end.unwrap_or(begin);
            pauses.extend(begin.checked_sub(until).filter(|&pause| pause > SEEN));
            until = if until == u64::MAX { end } else { until.max(end) };
        }
        pauses.sort_unstable();
        (mine.into_iter().map(|(begin, _)| begin).collect(), pauses.get(pauses.len() / 2).copied())
    }

    /// Nothing of a request was missing for longer than `pause`, while another one began, and then more of it was asked.
    fn is_interrupted(&self, request: &Request, begun: &[u64], pause: u64) -> bool {
        let places = self.in_order(request).unwrap_or_default();
        places.iter().skip(1).any(|&(place, had)| {
            let start = self.asked(place);
            let next = begun.get(begun.partition_point(|&begin| begin <= had));
            start.saturating_sub(had) > pause && next.is_some_and(|&begin| begin < start)
        })
    }

    /// The share of a request's time that its last calls take, where all else had been answered before these and they bring hardly anything. None: there are
    /// no such.
    fn trailing(&self, request: &Request) -> Option<f64> {
        let places = self.in_order(request)?;
        let message = |&(place, _): &(Place, u64)| self.workload.message(place);
        let waits = |each: &(Place, u64)| message(each).is_some_and(|m| m.start_ns + SEEN >= each.1);
        let first = places.iter().rposition(waits).filter(|&first| first > 1)?;
        let (rest, last) = places.split_at(first);
        let bytes = |of: &[(Place, u64)]| of.iter().filter_map(|each| Some(message(each)?.response_bytes)).sum::<u64>();
        let small = last.iter().all(|each| message(each).is_some_and(|m| m.response_bytes <= PACKET));
        let took = request.took_ns.filter(|&took| took > 0)?;
        let end = request.begin_ns + took;
        (small && bytes(last) * HARDLY <= bytes(rest)).then(|| end.saturating_sub(last[0].1) as f64 / took as f64)
    }

    /// The capture has none of its answer.
    fn lacks_its_answer(&self, place: Place) -> bool {
        self.workload.message(place).is_none_or(|m| m.took_ns.is_none() && m.response_bytes == 0)
    }

    /// It left before the answers that it is said to have waited for had come.
    fn left_early(&self, place: Place) -> bool {
        let Some(message) = self.workload.message(place) else { return false };
        let waited_for = match message.release {
            Some(Release::Answer { connection, message, .. }) => self.answered((connection, message)),
            Some(Release::Round { round, answers, .. }) => {
                let Some(round) = self.workload.rounds.get(round as usize) else { return false };
                let came: Option<Vec<u64>> = round.answers().iter().map(|&place| self.answered(place)).collect();
                let mut came = came.unwrap_or_default();
                came.sort_unstable();
                came.get((answers as usize).saturating_sub(1)).copied()
            }
            Some(Release::Request { .. } | Release::Clock { .. }) | None => None,
        };
        waited_for.is_some_and(|at| at > message.start_ns + SEEN)
    }

    /// Requests of which a message in no request waited for answers, as one inside does.
    fn lost(&self) -> Vec<bool> {
        let mut lost = vec![false; self.requests.len()];
        for (c, connection) in (0..).zip(&self.workload.connections) {
            for (m, message) in (0..).zip(&connection.messages) {
                let Some(Release::Round { round, .. }) = message.release else { continue };
                let gate = self.workload.rounds.get(round as usize).filter(|round| round.is_gate());
                let Some(&first) = gate.and_then(|gate| gate.answers().first()) else { continue };
                let mine = self.requests_of((c, m));
                for &(_, of) in self.requests_of(first) {
                    lost[of as usize] |= !mine.iter().any(|&(_, n)| n == of);
                }
            }
        }
        lost
    }

    /// What it begins with is not among what it waits for.
    fn misses_its_first(&self, request: &Request) -> bool {
        let Some(round) = self.workload.rounds.get(request.round as usize) else { return false };
        let mut answers = round.answers().to_vec();
        answers.sort_unstable();
        // The last message of a connection stands for those before it.
        let waited_for = |&(c, m): &Place| {
            answers.get(answers.partition_point(|&answer| answer < (c, m))).is_some_and(|&(on, _)| on == c)
        };
        !round.requests.iter().all(|place| waited_for(place) || self.given_up(round, *place))
    }

    /// The capture ended before its answers came: each that is missing is the last of its connection.
    fn is_cut_off(&self, request: &Request) -> bool {
        request.messages().filter(|&place| self.lacks_its_answer(place)).all(|(c, m)| {
            let connection = &self.workload.connections[c as usize];
            m as usize + 1 == connection.messages.len()
        })
    }
}

mod apart;
mod beside;
mod lacking;
mod served;
#[cfg(test)]
mod tests;
mod turns;
mod unbound;
