//! A request of the application's user, with its messages by stage.

use crate::waiting::Release;
use crate::workload::{Message, Workload};
use std::collections::BTreeMap;

/// A message as (connection, message): positions in [`Workload::connections`] and in its messages.
pub type Place = (u32, u32);

/// All messages of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Position in [`Workload::rounds`].
    pub round: u32,
    /// Position in [`Workload::companies`].
    pub company: u32,
    /// When its first message left, or its connection was opened for it, from the start of the capture.
    pub begin_ns: u64,
    /// From there to the last answer that completes it; none where that is not in the capture.
    pub took_ns: Option<u64>,
    /// Its messages. A *stage* is what left together: what waited for the same answers of this request, or, in the first stage, for none of them.
    pub stages: Vec<Vec<Place>>,
}

impl Request {
    /// Its messages in order of stage.
    pub fn messages(&self) -> impl Iterator<Item = Place> + '_ {
        self.stages.iter().flatten().copied()
    }
}

/// What the messages of one stage wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Outside,
    Answers { round: u32, need: u32 },
    Answer(Place),
}

impl Workload {
    /// Requests of the companies that ask several servers, in order of their begin.
    pub fn requests(&self) -> Vec<Request> {
        let mut all: Vec<Request> = (0..)
            .zip(&self.rounds)
            .filter(|(_, round)| !round.is_gate() && self.asks_together(round.company))
            .map(|(number, round)| {
                let begin_ns = round.requests.iter().filter_map(|&place| Some(self.message(place)?.start_ns)).min();
                Request {
                    round: number,
                    company: round.company,
                    begin_ns: round.opened_ns.or(begin_ns).unwrap_or(0),
                    took_ns: round.took_ns,
                    stages: self.stages(&round.requests, round.answers()),
                }
            })
            .collect();
        all.sort_by_key(|request| (request.begin_ns, request.round));
        all
    }

    fn asks_together(&self, company: u32) -> bool {
        self.companies.get(company as usize).is_some_and(|company| company.rounds > 0)
    }

    /// The message there, if there is one.
    pub fn message(&self, (connection, message): Place) -> Option<&Message> {
        self.connections.get(connection as usize)?.messages.get(message as usize)
    }

    /// The messages of a request by what they waited for, in order of the first of each.
    fn stages(&self, first: &[Place], answers: &[Place]) -> Vec<Vec<Place>> {
        let mut members: Vec<Place> = first.iter().chain(answers).copied().collect();
        members.sort_unstable();
        // Where a request comes in several messages on a connection, and only the last answer is waited for, it stands for those between.
        let between = |pair: &[Place]| (pair[0].1..pair[1].1).skip(1).map(move |m| (pair[0].0, m)).collect::<Vec<_>>();
        let stands = |pair: &&[Place]| first.contains(&pair[0]) && !answers.contains(&pair[0]);
        let same = members.windows(2).filter(|pair| pair[0].0 == pair[1].0).filter(stands);
        let more: Vec<Place> = same.flat_map(between).collect();
        members.extend(more);
        members.sort_unstable();
        members.dedup();
        members.sort_by_key(|&place| self.message(place).map_or(0, |m| m.start_ns));
        let mut number: BTreeMap<Cause, usize> = BTreeMap::new();
        let mut of: BTreeMap<Place, usize> = BTreeMap::new();
        let mut stages: Vec<Vec<Place>> = Vec::new();
        for place in members {
            let release = self.message(place).and_then(|m| m.release).filter(|_| !first.contains(&place));
            let cause = match release {
                Some(Release::Round { round, answers, .. }) => Cause::Answers { round, need: answers },
                Some(Release::Answer { connection, message, .. }) => Cause::Answer((connection, message)),
                // It leaves a time after another, whatever has been answered: with what that one left with.
                Some(Release::Request { connection, message, .. }) => {
                    let with = of.get(&(connection, message)).copied().unwrap_or(0);
                    if let Some(stage) = stages.get_mut(with) {
                        stage.push(place);
                        of.insert(place, with);
                        continue;
                    }
                    Cause::Outside
                }
                None if place.1 > 0 && !first.contains(&place) => Cause::Answer((place.0, place.1 - 1)),
                Some(Release::Clock { .. }) | None => Cause::Outside,
            };
            let stage = *number.entry(cause).or_insert(stages.len());
            if stage == stages.len() {
                stages.push(Vec::new());
            }
            stages[stage].push(place);
            of.insert(place, stage);
        }
        stages
    }
}
