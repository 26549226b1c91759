//! Who waits for what, as the workload file says it.

use crate::Workload;
use serde::{Deserialize, Serialize, Serializer};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The event that releases a request, and how long after it. A message without one follows the response before it on its own connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase", deny_unknown_fields)]
pub enum Release {
    /// So many answers of a round have arrived.
    Round {
        /// Position in [`Workload::rounds`].
        round: u32,
        /// How many answers are waited for.
        answers: u32,
        /// The pause after the last of them.
        delay_ns: u64,
    },
    /// A response on another connection (or this one) has arrived.
    Answer {
        /// Position in [`Workload::connections`].
        connection: u32,
        /// Position in its messages.
        message: u32,
        /// The pause after it.
        delay_ns: u64,
    },
    /// Another request was sent.
    Request {
        /// Position in [`Workload::connections`].
        connection: u32,
        /// Position in its messages.
        message: u32,
        /// The time from that request to this one.
        delay_ns: u64,
    },
    /// Nothing that was seen: it is sent at its `start_ns`, or when the response before on its connection has arrived, if that is later.
    Clock {
        /// It does not wait for that response: a timer was seen to send requests whose connections had not been answered.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        regardless: bool,
    },
}

/// Rounds that a workload and what is replayed of it have in common: of a million connections they take 0.2 GB. A change of shared ones is a copy's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Round>")]
pub struct Rounds(Arc<Vec<Round>>);

impl From<Vec<Round>> for Rounds {
    fn from(rounds: Vec<Round>) -> Rounds {
        Rounds(Arc::new(rounds))
    }
}

impl Deref for Rounds {
    type Target = Vec<Round>;

    fn deref(&self) -> &Vec<Round> {
        &self.0
    }
}

impl DerefMut for Rounds {
    fn deref_mut(&mut self) -> &mut Vec<Round> {
        Arc::make_mut(&mut self.0)
    }
}

impl<'a> IntoIterator for &'a Rounds {
    type Item = &'a Round;
    type IntoIter = std::slice::Iter<'a, Round>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Rounds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Requests that left together, as (connection, message): positions in [`Workload::connections`] and in its messages.
///
/// Where the requests of the application are known, `requests` is what leaves first and `answers` is all that it caused, stages and all. One without
/// `requests` is no round: messages inside a request wait for so many of its answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Position in [`Workload::companies`].
    #[serde(rename = "group", alias = "company")]
    pub company: u32,
    /// The requests, in the order in which they left.
    pub requests: Vec<(u32, u32)>,
    /// The messages whose responses complete the round, where they are not those of the requests: a request may come in several messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<(u32, u32)>,
    /// So many of the answers complete it, where who asked goes on without the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<u32>,
    /// When the first connection was opened for it, from the start of the capture, where that is before its first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_ns: Option<u64>,
    /// From there, or from the first request, to the last answer that completes it, in the capture. For readers: a replay takes its own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ns: Option<u64>,
}

impl Round {
    /// It only says what releases messages inside a request.
    pub fn is_gate(&self) -> bool {
        self.requests.is_empty()
    }

    /// The messages whose responses complete the round.
    pub fn answers(&self) -> &[(u32, u32)] {
        if self.answers.is_empty() { &self.requests } else { &self.answers }
    }
}

/// Connections that are asked together, or one that is asked alone, and what its requests were found to wait for. For readers: a replay
/// follows the messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Company {
    /// Positions in [`Workload::connections`].
    pub connections: Vec<u32>,
    /// Hosts at the other end of them.
    pub servers: u32,
    /// These connections were opened by clients of the aggregator: what it sends there answers them.
    pub upstream: bool,
    /// Rounds; 0 when each connection goes its own way.
    pub rounds: u64,
    /// Requests in all, without what a timer sends on their connections beside them: health checks, heartbeats.
    pub requests: u64,
    /// From the first to the last request of a round.
    pub spread: Delay,
    /// What released how many requests, after which delay.
    pub released_by: Vec<Edge>,
}

/// One kind of cause and its delays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// `answers` of the round before, `inside` (answers of the same request), `own-answer`, `others-answers` or `others-requests` of another company, `timer`, `nothing` that was seen.
    pub event: String,
    /// How many of a round's answers: `all`, `all but 2`, `majority` or `first`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The other company: a position in [`Workload::companies`].
    #[serde(default, rename = "group", alias = "company", skip_serializing_if = "Option::is_none")]
    pub company: Option<u32>,
    /// Requests it released.
    pub requests: u64,
    /// From the event to the first request of the round; of a timer, its period.
    pub delay: Delay,
}

/// A distribution in three numbers; all zero when there is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// A tenth is shorter.
    pub p10_ns: u64,
    /// Half is shorter.
    pub median_ns: u64,
    /// A tenth is longer.
    pub p90_ns: u64,
}

impl Delay {
    /// Of measured delays.
    pub(crate) fn of(delays: &[u64]) -> Delay {
        let mut sorted = delays.to_vec();
        sorted.sort_unstable();
        let at = |q: f64| sorted.get(((sorted.len().saturating_sub(1)) as f64 * q) as usize).copied().unwrap_or(0);
        Delay { p10_ns: at(0.1), median_ns: at(0.5), p90_ns: at(0.9) }
    }
}

/// How many answers of the round before release the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Waits {
    All,
    AllBut(u32),
    Majority,
    First,
}

/// What [`Edge::event`] calls requests that left by a clock of their own.
pub(crate) const TIMER: &str = "timer";
/// And the own response before.
pub(crate) const OWN_ANSWER: &str = "own-answer";

/// Why a request was sent when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Answers(Waits),
    OwnAnswer,
    Inside,
    OthersAnswers(u32),
    OthersRequests(u32),
    Timer,
    Nothing,
}

impl Reason {
    /// For the file.
    pub fn told(self, delays: &[u64]) -> Edge {
        let (event, waits_for, company) = match self {
            Reason::Answers(Waits::All) => ("answers", Some("all".to_owned()), None),
            Reason::Answers(Waits::AllBut(late)) => ("answers", Some(format!("all but {late}")), None),
            Reason::Answers(Waits::Majority) => ("answers", Some("majority".to_owned()), None),
            Reason::Answers(Waits::First) => ("answers", Some("first".to_owned()), None),
            Reason::OwnAnswer => (OWN_ANSWER, None, None),
            Reason::Inside => ("inside", None, None),
            Reason::OthersAnswers(company) => ("others-answers", None, Some(company)),
            Reason::OthersRequests(company) => ("others-requests", None, Some(company)),
            Reason::Timer => (TIMER, None, None),
            Reason::Nothing => ("nothing", None, None),
        };
        Edge { event: event.to_owned(), waits_for, company, requests: delays.len() as u64, delay: Delay::of(delays) }
    }
}

impl Workload {
    /// Everything that a release or a round refers to exists, and nothing waits for itself.
    pub(crate) fn check_waiting(&self) -> Result<(), String> {
        let exists = |c: u32, m: u32, what: &str| match self.connections.get(c as usize) {
            None => Err(format!("{what} names connection {c} of {}", self.connections.len())),
            Some(connection) if m as usize >= connection.messages.len() => {
                Err(format!("{what} names message {m} of {} of connection {c}", connection.messages.len()))
            }
            Some(_) => Ok(()),
        };
        for (i, round) in self.rounds.iter().enumerate() {
            for &(c, m) in round.requests.iter().chain(&round.answers) {
                exists(c, m, &format!("rounds[{i}]"))?;
            }
        }
        for (c, connection) in self.connections.iter().enumerate() {
            for (m, message) in connection.messages.iter().enumerate() {
                let what = format!("connections[{c}].messages[{m}].release");
                match message.release {
                    Some(Release::Round { round, answers, .. }) => {
                        let of = self.rounds.get(round as usize).map(|r| r.answers().len());
                        let of = of.ok_or_else(|| format!("{what} names round {round} of {}", self.rounds.len()))?;
                        if answers == 0 || answers as usize > of {
                            return Err(format!("{what} waits for {answers} of {of} answers of round {round}"));
                        }
                    }
                    Some(
                        Release::Answer { connection, message, .. } | Release::Request { connection, message, .. },
                    ) => {
                        exists(connection, message, &what)?;
                    }
                    Some(Release::Clock { .. }) | None => {}
                }
            }
        }
        self.check_cycles()
    }

    /// Takes away, again and again, the messages that wait for none that is left.
    fn check_cycles(&self) -> Result<(), String> {
        let mut first = Vec::with_capacity(self.connections.len());
        let mut count = 0_usize;
        for connection in &self.connections {
            first.push(count);
            count += connection.messages.len();
        }
        let number = |c: u32, m: u32| first[c as usize] + m as usize;
        // Rounds come after the messages: a message waits for a round, and a round for all its answers.
        let mut waits = vec![0_u32; count + self.rounds.len()];
        let mut before: Vec<(usize, usize)> = Vec::new();
        for (i, round) in self.rounds.iter().enumerate() {
            before.extend(round.answers().iter().map(|&(c, m)| (number(c, m), count + i)));
        }
        for (c, connection) in self.connections.iter().enumerate() {
            for (m, message) in connection.messages.iter().enumerate() {
                let me = number(c as u32, m as u32);
                match message.release {
                    Some(Release::Round { round, .. }) => before.push((count + round as usize, me)),
                    Some(
                        Release::Answer { connection, message, .. } | Release::Request { connection, message, .. },
                    ) => {
                        before.push((number(connection, message), me));
                    }
                    Some(Release::Clock { regardless: false }) | None if m > 0 && !message.overlapped => {
                        before.push((me - 1, me));
                    }
                    Some(Release::Clock { .. }) | None => {}
                }
            }
        }
        before.sort_unstable();
        for &(_, after) in &before {
            waits[after] += 1;
        }
        let mut free: Vec<usize> = (0..waits.len()).filter(|&n| waits[n] == 0).collect();
        let mut taken = 0;
        while let Some(n) = free.pop() {
            taken += 1;
            let from = before.partition_point(|&(b, _)| b < n);
            for &(_, after) in before[from..].iter().take_while(|&&(b, _)| b == n) {
                waits[after] -= 1;
                if waits[after] == 0 {
                    free.push(after);
                }
            }
        }
        if taken == waits.len() {
            return Ok(());
        }
        let stuck = waits[..count].iter().position(|&w| w > 0).unwrap_or(0);
        let c = first.partition_point(|&f| f <= stuck) - 1;
        Err(format!("connections[{c}].messages[{}] waits for itself, by way of what it waits for", stuck - first[c]))
    }
}
