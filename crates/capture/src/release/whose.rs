//! Whose a message is, where clients of the aggregator wait for their answers.
//!
//! Mostly one of them waits, and it is his. Of several it is the one for whom a message is due: as soon after his request, or after what happened last for
//! him, as messages follow where one waits alone, to a server that he is not asking already.

use super::bursts::Ask;
use super::requests::{LOOK_BACK, RARELY};
use super::steady::{RESOLUTION, median};
use super::{SEEN, Talk};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What a client asked the aggregator for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientRequest {
    /// When the aggregator had it.
    pub from: u64,
    /// When the answer left.
    pub to: u64,
    pub conn: u32,
    pub msg: u32,
}

impl ClientRequest {
    /// Something began and ended while the client waited.
    pub fn holds(&self, from: u64, to: u64) -> bool {
        self.from <= from + SEEN && to <= self.to + SEEN
    }
}

/// All that clients asked for and were answered.
pub(super) struct ClientRequests {
    /// In order of time.
    pub all: Vec<ClientRequest>,
    /// When the last of each and those before it was answered.
    until: Vec<u64>,
}

impl ClientRequests {
    pub fn of(talks: &[Talk], asks: &[Ask]) -> ClientRequests {
        let answers = asks.iter().filter(|ask| talks[ask.conn as usize].upstream && !ask.overlapped);
        let request = |answer: &Ask| {
            let msg = answer.msg.checked_sub(1)?;
            Some(ClientRequest { from: answer.own?, to: answer.at, conn: answer.conn, msg })
        };
        let mut all: Vec<ClientRequest> = answers.filter_map(request).collect();
        all.sort_unstable_by_key(|client| (client.from, client.to, client.conn, client.msg));
        let mut last = 0;
        let until = all.iter().map(|client| {
            last = last.max(client.to);
            last
        });
        let until = until.collect();
        ClientRequests { all, until }
    }

    /// How many clients wait, on average over the time in which any does.
    pub fn at_once(&self) -> f64 {
        let (mut sum, mut any, mut before) = (0_u64, 0_u64, 0_u64);
        for (client, &until) in self.all.iter().zip(&self.until) {
            sum += client.to - client.from;
            any += client.to.saturating_sub(client.from.max(before));
            before = until;
        }
        sum as f64 / any.max(1) as f64
    }

    /// Whether something began and ended while a client waited.
    pub fn any_holds(&self, from: u64, to: u64) -> bool {
        let begun = self.all.partition_point(|client| client.from <= from + SEEN);
        begun.checked_sub(1).is_some_and(|last| to <= self.until[last] + SEEN)
    }

    /// Those that wait at moments in order of time.
    pub fn open(&self) -> Open<'_> {
        Open { clients: &self.all, begun: 0, waiting: Vec::new() }
    }

    /// Of each of these messages the request that it is of; none where no client waits.
    pub fn whose(&self, mine: &[u32], asks: &[Ask]) -> Vec<Option<usize>> {
        let (mut first, mut next, mut again) = (Vec::new(), Vec::new(), 0);
        self.sorted(mine, asks, Usual::default(), |waiting| {
            if let &[alone] = waiting {
                if alone.begun { &mut next } else { &mut first }.push(alone.delay);
                again += usize::from(alone.asked != Asked::Not);
            }
        });
        let again = again as f64 > RARELY * next.len() as f64;
        let usual = Usual { first: median(&first), next: median(&next), again };
        self.sorted(mine, asks, usual, |_| ())
    }

    /// The same by what is usual; `look` sees the requests that each message may be of.
    fn sorted(&self, mine: &[u32], asks: &[Ask], usual: Usual, mut look: impl FnMut(&[Waiting])) -> Vec<Option<usize>> {
        let mut asked: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let mut open = self.open();
        let whose = |&n: &u32| {
            let ask = &asks[n as usize];
            let of = |&n: &usize| Waiting::of(n, &self.all[n], asked.get(&n).map_or(&[], Vec::as_slice), ask, asks);
            let mut waiting: Vec<Waiting> = open.at(ask.at).iter().map(of).collect();
            // An answer that comes when the client has his own was not waited for, unless all are so.
            let whole = |one: &Waiting| self.all[one.number].holds(ask.at, ask.at + ask.took());
            if waiting.iter().any(whole) {
                waiting.retain(whole);
            }
            // Who came first is served first.
            let first = waiting.iter().filter(|one| !one.begun).map(|one| one.number).min();
            waiting.retain(|one| one.begun || Some(one.number) == first);
            look(&waiting);
            let due = waiting.iter().min_by(|a, b| usual.order(a, b))?.number;
            asked.entry(due).or_default().push(n);
            Some(due)
        };
        mine.iter().map(whose).collect()
    }
}

/// Requests of clients that are not answered yet.
pub(super) struct Open<'a> {
    clients: &'a [ClientRequest],
    begun: usize,
    waiting: Vec<usize>,
}

impl Open<'_> {
    /// At this moment, by number; none before an earlier one.
    pub fn at(&mut self, at: u64) -> &[usize] {
        while self.clients.get(self.begun).is_some_and(|client| client.from <= at + SEEN) {
            self.waiting.push(self.begun);
            self.begun += 1;
        }
        self.waiting.retain(|&n| self.clients[n].to + SEEN >= at);
        &self.waiting
    }
}

/// How messages follow each other where one client waits alone.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    /// From the client's request to the first message.
    first: u64,
    /// From what happened last to the next message.
    next: u64,
    /// Servers that have answered are asked again.
    again: bool,
}

impl Usual {
    /// Before others comes who does not ask that server twice, and of these who has waited most nearly for as long as usual.
    fn order(self, a: &Waiting, b: &Waiting) -> Ordering {
        self.is_odd(a).cmp(&self.is_odd(b)).then_with(|| self.misfit(a).total_cmp(&self.misfit(b)))
    }

    fn is_odd(self, one: &Waiting) -> bool {
        match one.asked {
            Asked::Missing => true,
            Asked::Answered => !self.again,
            Asked::Not => false,
        }
    }

    /// Twice as long as usual is as far from that as half as long.
    fn misfit(self, one: &Waiting) -> f64 {
        let usual = if one.begun { self.next } else { self.first };
        ((one.delay as f64 + RESOLUTION) / (usual as f64 + RESOLUTION)).ln().abs()
    }
}

/// A client who waits as a message leaves.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: usize,
    /// Something was asked for him.
    begun: bool,
    /// Since what happened last for him.
    delay: u64,
    /// The server to which the message goes.
    asked: Asked,
}

/// Whether a server was asked for a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Not,
    Answered,
    Missing,
}

impl Waiting {
    /// `asked`: what was asked for him so far.
    fn of(number: usize, client: &ClientRequest, asked: &[u32], ask: &Ask, asks: &[Ask]) -> Waiting {
        let latest = || asked.iter().rev().take(LOOK_BACK).map(|&n| &asks[n as usize]);
        let events = latest().flat_map(|other| [Some(other.at), other.over()]).flatten();
        let last = events.filter(|&event| event <= ask.at + SEEN).max().unwrap_or(client.from);
        let same_server = latest().filter(|other| other.server == ask.server);
        Waiting {
            number,
            begun: !asked.is_empty(),
            delay: ask.at.saturating_sub(last),
            asked: match same_server.map(|other| other.is_missing(ask.at)).max() {
                None => Asked::Not,
                Some(false) => Asked::Answered,
                Some(true) => Asked::Missing,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// Whose each message is, of messages that leave at such times to such servers and are answered after 2 ms.
    fn whose(clients: &[(u64, u64)], messages: &[(u64, u32)]) -> Vec<Option<usize>> {
        let upstream =
            |conn: u32, (from, to): (u64, u64)| Ask { conn, msg: 1, at: to, own: Some(from), ..Ask::default() };
        let talks = vec![Talk { upstream: true, ..Talk::default() }; clients.len() + 1];
        let asks: Vec<Ask> = (0..).zip(clients).map(|(conn, &times)| upstream(conn, times)).collect();
        let told = ClientRequests::of(&talks, &asks);
        let message = |&(at, server): &(u64, u32)| Ask { at, server, answered: Some(at + 2 * MS), ..Ask::default() };
        let asks: Vec<Ask> = messages.iter().map(message).collect();
        told.whose(&(0..messages.len() as u32).collect::<Vec<u32>>(), &asks)
    }

    /// Ten clients alone, whose messages leave 300 us after each asks, to server 0; then two at once.
    fn after_ten(clients: [(u64, u64); 2], messages: &[(u64, u32)]) -> Vec<Option<usize>> {
        let alone = (0..10).map(|n| (n * 20 * MS, n * 20 * MS + 5 * MS));
        let late = |at: u64| 500 * MS + at;
        let all: Vec<(u64, u64)> = alone.chain(clients.map(|(from, to)| (late(from), late(to)))).collect();
        let first = (0..10).flat_map(|n| [(n * 20 * MS + 300 * US, 0), (n * 20 * MS + 320 * US, 1)]);
        let sent: Vec<(u64, u32)> = first.chain(messages.iter().map(|&(at, server)| (late(at), server))).collect();
        whose(&all, &sent)[20..].to_vec()
    }

    #[test]
    fn of_two_who_wait_he_is_asked_for_whose_message_is_due() {
        let clients = [(0, 9 * MS), (MS, 9 * MS)];
        let messages = [(300 * US, 0), (320 * US, 1), (1_300 * US, 2), (1_320 * US, 3)];
        assert_eq!(after_ten(clients, &messages), [Some(10), Some(10), Some(11), Some(11)]);
    }

    #[test]
    fn who_came_first_is_asked_for_first() {
        let clients = [(0, 9 * MS), (10 * US, 9 * MS)];
        assert_eq!(after_ten(clients, &[(300 * US, 0), (340 * US, 0)]), [Some(10), Some(11)]);
    }

    #[test]
    fn no_server_is_asked_twice_where_none_is_for_one_who_waits_alone() {
        let clients = [(0, 9 * MS), (2_200 * US, 9 * MS)];
        // 20 us after the message of the first, and 120 after the second one asked.
        assert_eq!(after_ten(clients, &[(2_300 * US, 0), (2_320 * US, 0)]), [Some(10), Some(11)]);
    }

    #[test]
    fn an_answer_that_comes_later_than_the_client_s_was_for_another() {
        let clients = [(0, 2_000 * US), (290 * US, 9 * MS)];
        assert_eq!(after_ten(clients, &[(300 * US, 0)]), [Some(11)]);
    }

    #[test]
    fn what_leaves_while_no_client_waits_is_of_none() {
        assert_eq!(after_ten([(0, 5 * MS), (6 * MS, 9 * MS)], &[(9_100 * US, 0)]), [None]);
    }
}
