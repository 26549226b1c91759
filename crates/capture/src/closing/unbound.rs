//! Messages that belong to no request, though they leave together: something in the application binds them, and it was not found.
//!
//! Connections that go their own way meet by chance. Messages that leave with others more often than chance gives are of requests whose ends are not
//! known, so that neither their count nor their times are.

use crate::release::{BEYOND_CHANCE, Excess, FOLLOWS, LITTLE, ON_A_TICK, SELDOM, TOGETHER, by_chance};
use crate::stages::Request;
use crate::waiting::{Company, Edge, OWN_ANSWER};
use crate::workload::Workload;

/// With fewer messages a share says nothing.
pub(super) const FEWEST: usize = 20;

/// A message in no request.
#[derive(Clone, Copy)]
struct Loose {
    at: u64,
    conn: u32,
    company: usize,
    /// When the next one on its connection leaves.
    next: Option<u64>,
    /// It follows the answer before on its connection, as soon as a loop over servers asks the next: as in a poll or a transfer.
    goes_on: bool,
}

impl Workload {
    /// Of each company, how many messages of it are in no request and yet leave together with others like them.
    ///
    /// None of those that are few beside the requests, as health checks are, and none of those that keep time after their own answers: these keep step where
    /// their periods are the same.
    pub(super) fn unbound(&self, requests: &[Request]) -> Vec<u64> {
        let mut counts = vec![0_u64; self.companies.len()];
        let (loose, matter) = self.loose(requests);
        let mine: Vec<&Loose> = loose.iter().filter(|message| !message.goes_on).collect();
        if mine.len() < FEWEST || !matter {
            return counts;
        }
        let near = |at: u64, conn: u32| {
            let from = loose.partition_point(|other| other.at + TOGETHER < at);
            loose[from..].iter().take_while(|other| other.at <= at + TOGETHER).any(|other| other.conn != conn)
        };
        let together: Vec<&&Loose> = mine.iter().filter(|message| near(message.at, message.conn)).collect();
        let moments = mine.iter().enumerate().filter_map(|(n, message)| {
            message.next.map(|next| (by_chance(n, message.at, next.max(message.at)), message.conn))
        });
        let (mut tried, mut met) = (0_usize, 0_usize);
        for (at, conn) in moments {
            tried += 1;
            met += usize::from(near(at, conn));
        }
        let excess = Excess::of(together.len(), mine.len(), met, tried);
        if excess.share >= FOLLOWS && excess.deviations >= BEYOND_CHANCE {
            together.iter().for_each(|message| counts[message.company] += 1);
        }
        counts
    }

    /// Messages to servers that are in no request, in order of time, and whether they are more than a little beside those that are: health checks are not.
    fn loose(&self, requests: &[Request]) -> (Vec<Loose>, bool) {
        let mut bound: Vec<Vec<bool>> = self.connections.iter().map(|c| vec![false; c.messages.len()]).collect();
        requests.iter().flat_map(Request::messages).for_each(|(c, m)| bound[c as usize][m as usize] = true);
        let mut all: Vec<Loose> = Vec::new();
        let (mut of_requests, mut of_others) = ((0_u64, 0_u64), (0_u64, 0_u64));
        for (n, company) in self.companies.iter().enumerate().filter(|(_, company)| !company.upstream) {
            let by_a_clock = keeps_time(company);
            for &c in &company.connections {
                let Some(connection) = self.connections.get(c as usize) else { continue };
                let asked: Vec<usize> =
                    (0..connection.messages.len()).filter(|&m| connection.messages[m].request_bytes > 0).collect();
                let mut answered: Option<u64> = None;
                for (place, &m) in asked.iter().enumerate() {
                    let message = &connection.messages[m];
                    let at = message.start_ns;
                    let goes_on = answered.is_some_and(|before| at.abs_diff(before) <= TOGETHER);
                    answered = message.took_ns.map(|took| at.saturating_add(took));
                    let next = asked.get(place + 1).map(|&next| connection.messages[next].start_ns);
                    let is_bound = bound[c as usize][m];
                    let sum = if is_bound { &mut of_requests } else { &mut of_others };
                    (sum.0, sum.1) = (sum.0 + 1, sum.1.saturating_add(message.response_bytes));
                    if !is_bound && !by_a_clock {
                        all.push(Loose { at, conn: c, company: n, next, goes_on });
                    }
                }
            }
        }
        all.sort_unstable_by_key(|message| message.at);
        let matter =
            of_others.0.saturating_mul(SELDOM) > of_requests.0 || of_others.1.saturating_mul(LITTLE) > of_requests.1;
        (all, matter)
    }
}

/// Each message follows the answer before on its connection after about the same time, as a check does whose application sleeps in between: what it waits
/// for is known.
fn keeps_time(company: &Company) -> bool {
    let own = |edge: &&Edge| edge.event == OWN_ANSWER;
    // The first message of a connection follows nothing that was seen.
    let others: u64 = company.released_by.iter().filter(|edge| !own(edge)).map(|edge| edge.requests).sum();
    let steady = |edge: &Edge| {
        let spread = edge.delay.p90_ns.saturating_sub(edge.delay.p10_ns);
        edge.delay.median_ns > TOGETHER && spread as f64 <= ON_A_TICK * edge.delay.median_ns as f64
    };
    let edge = company.released_by.iter().find(own);
    company.rounds == 0 && others <= company.connections.len() as u64 && edge.is_some_and(steady)
}
