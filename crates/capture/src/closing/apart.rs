//! Requests that stand apart, by the rule of [`crate::release::stand_apart`].

use super::Places;
use crate::release::{Standing, stand_apart};
use crate::stages::Request;

impl Places<'_> {
    /// How many requests a company has, if they stand apart; else 0.
    pub(super) fn apart(&self, company: u32) -> u64 {
        let mut mine: Vec<&Request> = self.requests.iter().filter(|request| request.company == company).collect();
        mine.sort_unstable_by_key(|request| request.begin_ns);
        let standing = |request: &&Request| {
            let places = self.in_order(request)?;
            // While nothing was missing.
            let waits = places.iter().skip(1).filter_map(|&(place, had)| self.asked(place).checked_sub(had)).collect();
            let again = self.workload.servers_of(request).len() < places.len();
            Some(Standing { begin: request.begin_ns, end: self.end(request)?, waits, again })
        };
        if stand_apart(mine.iter().map(standing)) { mine.len() as u64 } else { 0 }
    }
}
