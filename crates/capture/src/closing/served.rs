//! Requests that clients of the aggregator tell: each begins with what one client asked for, and the answer to him waits for it.

use super::Places;
use crate::release::AGREES;
use crate::stages::{Place, Request};
use crate::waiting::Release;
use std::collections::BTreeSet;

impl Places<'_> {
    /// How many requests a company has, if clients tell them; else 0.
    pub(super) fn served(&self, company: u32) -> u64 {
        let mine = || self.requests.iter().filter(|request| request.company == company);
        let clients: BTreeSet<Place> = mine().filter_map(|request| self.client_of(request)).collect();
        let all = mine().count();
        if clients.len() as f64 >= AGREES * all as f64 { all as u64 } else { 0 }
    }

    /// The message of the client that a request is of.
    fn client_of(&self, request: &Request) -> Option<Place> {
        let &first = self.workload.rounds[request.round as usize].requests.first()?;
        let Some(Release::Answer { connection, message, .. }) = self.workload.message(first)?.release else {
            return None;
        };
        let upstream = self.workload.connections.get(connection as usize)?.upstream;
        // A client's message is the answer to what he was told before; the next one on his connection answers it.
        let answer = self.workload.message((connection, message + 1))?;
        let waits = matches!(answer.release, Some(Release::Round { round, .. }) if round == request.round);
        (upstream && waits).then_some((connection, message))
    }
}
