//! Messages of requests that leave together with messages of other groups: the groups are parts of one request, whose messages were not joined.
//!
//! Services of their own meet by chance. Where they meet more often, one loop of the application asks the servers of both.

use crate::release::{BEYOND_CHANCE, Excess, IN_STEP, TOGETHER, by_chance};
use crate::waiting::Company;
use crate::workload::Workload;

/// With fewer messages on either side a share says nothing.
const FEWEST: usize = 20;

impl Workload {
    /// Of each company, how many of its messages leave together with messages of others; 0 where chance gives about as many.
    pub(super) fn beside(&self) -> Vec<u64> {
        let asked = |company: &Company| {
            let connections = company.connections.iter().filter_map(|&c| self.connections.get(c as usize));
            let messages = connections.flat_map(|c| &c.messages).filter(|message| message.request_bytes > 0);
            let mut starts: Vec<u64> = messages.map(|message| message.start_ns).collect();
            starts.sort_unstable();
            starts
        };
        let mine: Vec<Vec<u64>> =
            self.companies.iter().map(|company| if company.upstream { Vec::new() } else { asked(company) }).collect();
        let of_each = mine.iter().enumerate();
        let mut all: Vec<(u64, usize)> =
            of_each.flat_map(|(n, starts)| starts.iter().map(move |&at| (at, n))).collect();
        all.sort_unstable();
        let met = |n: usize| self.companies[n].rounds > 0;
        mine.iter().enumerate().map(|(n, starts)| if met(n) { in_step(n, starts, &all) } else { 0 }).collect()
    }
}

/// How many messages of one company leave together with others', of all messages in order of time.
fn in_step(company: usize, mine: &[u64], all: &[(u64, usize)]) -> u64 {
    if mine.len() < FEWEST || all.len() - mine.len() < FEWEST {
        return 0;
    }
    let near = |at: u64| {
        let from = all.partition_point(|&(other, _)| other + TOGETHER < at);
        all[from..].iter().take_while(|&&(other, _)| other <= at + TOGETHER).any(|&(_, of)| of != company)
    };
    let together = mine.iter().filter(|&&at| near(at)).count();
    let moments = mine.windows(2).enumerate().map(|(n, pair)| by_chance(n, pair[0], pair[1]));
    let by_chance = moments.filter(|&at| near(at)).count();
    let excess = Excess::of(together, mine.len(), by_chance, mine.len() - 1);
    if excess.share >= IN_STEP && excess.deviations >= BEYOND_CHANCE { together as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A company of so many messages, one each 10 ms, and another of which so many leave so long after one of these, and the others at times of their own.
    fn beside(count: u64, together: u64, after: u64) -> u64 {
        let mine: Vec<u64> = (0..count).map(|n| n * 10_000_000).collect();
        let mut all: Vec<(u64, usize)> = mine.iter().map(|&at| (at, 0)).collect();
        let alone = |n: u64| 1_000_000 + n * 37_000 % 7_400_000;
        all.extend((0..count).map(|n| (n * 10_000_000 + if n < together { after } else { alone(n) }, 1)));
        all.sort_unstable();
        in_step(0, &mine, &all)
    }

    #[test]
    fn messages_that_leave_together_more_often_than_chance_gives_are_in_step() {
        let together = |count| beside(200, count, 100_000);
        assert_eq!((together(0), together(100), together(200)), (0, 100, 200));
    }

    #[test]
    fn half_a_millisecond_apart_is_together() {
        assert_eq!((beside(200, 200, 500_000), beside(200, 200, 501_000)), (200, 0));
    }

    #[test]
    fn a_tenth_of_what_chance_leaves_is_in_step() {
        assert_eq!((beside(2_000, 340, 100_000), beside(2_000, 420, 100_000)), (0, 420));
    }

    #[test]
    fn twenty_messages_show_a_step() {
        assert_eq!((beside(19, 19, 100_000), beside(20, 20, 100_000)), (0, 20));
    }
}
