//! Whose fan-out is whose, where clients of the aggregator release them.
//!
//! Two clients may ask within the time that the aggregator takes to begin its fan-out, and two fan-outs may end within the time that it takes to answer: the
//! last event before each is then the same for both. But each fan-out is of one client's message, and the answer to that client waits for it.

use super::bursts::Ask;
use super::candidates::{Cause, Choice, Kind, Need, Streams, What};
use super::class::Class;
use super::{SEEN, Talk};
use std::collections::BTreeMap;

/// Fan-outs and the clients' messages that release them.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// By class and burst.
    messages: BTreeMap<(usize, usize), (Kind, Cause)>,
    /// By connection and message of the client.
    fan_outs: BTreeMap<(u32, u32), Vec<(usize, usize)>>,
}

impl Clients {
    /// Of each fan-out the message that released it, if it is known, else that which came about as long before it as usual and has released none of its class.
    pub fn of(classes: &[Class], choices: &[Choice], streams: &Streams, talks: &[Talk]) -> Clients {
        let mut found = Clients::default();
        found.known(classes, talks);
        let others = |&(n, _): &(usize, &Choice)| classes[n].is_company() && classes[n].served.is_none();
        for (n, choice) in choices.iter().enumerate().filter(others) {
            let mut taken: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
            for i in 0..classes[n].bursts.len() {
                // That no message came since the fan-out before says only that two had come by then.
                let kind = choice.of(i).or(choice.mostly());
                let Some(kind @ Kind::OthersAnswers(client)) = kind else { continue };
                if !classes[client].upstream {
                    continue;
                }
                let (messages, start) = (&streams.answers[client], streams.starts[n][i]);
                let taken = taken.entry(client).or_insert_with(|| vec![false; messages.len()]);
                let Some((usual, longest)) = choice.usually(kind) else { continue };
                let earliest = start.saturating_sub(longest);
                let lately = messages.partition_point(|m| m.at < earliest)..messages.partition_point(|m| m.at < start);
                let unusual = |&place: &usize| (start - messages[place].at).abs_diff(usual);
                if let Some(place) = lately.filter(|&place| !taken[place]).min_by_key(unusual) {
                    taken[place] = true;
                    found.add((n, i), kind, messages[place]);
                }
            }
        }
        found
    }

    /// Requests that their clients told.
    fn known(&mut self, classes: &[Class], talks: &[Talk]) {
        let numbered = || classes.iter().enumerate();
        let upstream = numbered().filter(|(_, class)| class.upstream);
        let client: BTreeMap<u32, usize> =
            upstream.flat_map(|(n, class)| class.connections.iter().map(move |&conn| (conn, n))).collect();
        for (n, class) in numbered() {
            for (i, &(conn, msg)) in class.served.iter().flatten().enumerate() {
                let at = talks[conn as usize].times[msg as usize].answered;
                if let (Some(&client), Some(at)) = (client.get(&conn), at) {
                    self.add((n, i), Kind::OthersAnswers(client), Cause { at, what: What::Answer { conn, msg } });
                }
            }
        }
    }

    fn add(&mut self, fan_out: (usize, usize), kind: Kind, message: Cause) {
        if let What::Answer { conn, msg } = message.what {
            self.fan_outs.entry((conn, msg)).or_default().push(fan_out);
        }
        self.messages.insert(fan_out, (kind, message));
    }

    /// What released burst `i` of class `n`.
    pub fn released(&self, n: usize, i: usize) -> Option<(Kind, Cause)> {
        self.messages.get(&(n, i)).copied()
    }

    /// What an answer to a client waits for, if that is one fan-out. Where answers usually follow fan-outs, those that do so later wait for another stage.
    pub fn waited_for(
        &self,
        answer: &Ask,
        choice: &Choice,
        classes: &[Class],
        talks: &[Talk],
    ) -> Option<(Kind, Cause)> {
        let &[(class, burst)] = self.fan_outs.get(&(answer.conn, answer.msg.checked_sub(1)?))?.as_slice() else {
            return None;
        };
        let (at, need) = classes[class].answered(burst, Need::AllBut(0))?;
        // The tap may know no better when the last of it had come.
        let last = classes[class].answers[burst].last()?;
        let unsure = talks[last.conn as usize].times[last.msg as usize].unsure;
        let cause = Cause { at: at.min(answer.at), what: What::Round { class, burst, need } };
        let kind = Kind::OthersAnswers(class);
        if classes[class].served.is_some() {
            return Some((kind, cause));
        }
        let soon = choice.usually(kind).map_or(choice.alone(), |(_, longest)| answer.at - cause.at <= longest);
        (soon && at.saturating_sub(unsure) <= answer.at + SEEN).then_some((kind, cause))
    }
}
