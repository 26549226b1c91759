//! What became of a replay: when each response, each round and each request tree of the capture was asked for and done in a run.

use crate::replay::{ReplayedResponse, ReplayedRounds, ReplayedTree};
use fanin_sim::results::Results;
use fanin_sim::spec::MessageId;

/// A response in a run; times in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponseTimes {
    /// When the application wrote its first piece; none: never.
    pub release_ps: Option<u64>,
    /// When its last piece was delivered; none: not within the run.
    pub done_ps: Option<u64>,
    /// Timeouts during its pieces.
    pub timeouts: u32,
}

/// A round in a run; times in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTimes {
    /// Its number in the capture.
    pub round: u32,
    /// The company that was asked.
    pub company: u32,
    /// How many were asked.
    pub requests: u32,
    /// The first release of a request.
    pub release_ps: Option<u64>,
    /// The delivery of the last answer that completes it; none: one that it waits for is missing.
    pub done_ps: Option<u64>,
}

/// Every response, in order.
pub fn response_times(responses: &[ReplayedResponse], results: &Results) -> Vec<ResponseTimes> {
    let times = responses.iter().map(|response| {
        // A response may be written in several pieces, which are consecutive messages.
        let of = |id: MessageId| results.messages.get(id.index());
        let Some(last) = of(response.last) else {
            return ResponseTimes { release_ps: None, done_ps: None, timeouts: 0 };
        };
        let pieces = (response.first.index()..=response.last.index()).filter_map(|n| results.messages.get(n));
        ResponseTimes {
            release_ps: of(response.first).and_then(|m| m.release_ps),
            done_ps: last.done_ps,
            timeouts: pieces.map(|m| m.timeouts).sum(),
        }
    });
    times.collect()
}

/// Every round that has a message.
pub fn round_times(rounds: &ReplayedRounds, results: &Results) -> Vec<RoundTimes> {
    let of = |id: &MessageId| results.messages.get(id.index());
    let numbered = (0..).zip(rounds.iter()).filter(|(_, r)| !(r.requests.is_empty() && r.answers.is_empty()));
    let times = numbered.map(|(round, members)| RoundTimes {
        round,
        company: members.company,
        requests: members.requests.len() as u32,
        release_ps: members.requests.iter().filter_map(|id| of(id)?.release_ps).min(),
        done_ps: nth(members.answers.iter().map(|id| of(id)?.done_ps), members.waits_for),
    });
    times.collect()
}

/// Per request tree, when the client wrote its request and when it had the answer, in picoseconds; none: not within the run.
pub fn tree_times(trees: &[ReplayedTree], results: &Results) -> Vec<(Option<u64>, Option<u64>)> {
    let of = |id: MessageId| results.messages.get(id.index());
    trees.iter().map(|t| (of(t.request).and_then(|m| m.release_ps), of(t.answer).and_then(|m| m.done_ps))).collect()
}

/// Per flow, the number of the connection in the capture that it carries responses of.
pub fn connections(responses: &[ReplayedResponse], flows: usize) -> Vec<Option<u32>> {
    let mut connections = vec![None; flows];
    for response in responses {
        connections[response.flow.index()].get_or_insert(response.connection);
    }
    connections
}

/// When so many of several things were done, or all; none where that is missing, or there are none.
fn nth(times: impl Iterator<Item = Option<u64>>, count: Option<u32>) -> Option<u64> {
    let mut sorted: Vec<u64> = times.map(|time| time.unwrap_or(u64::MAX)).collect();
    sorted.sort_unstable();
    let place = count.map_or(sorted.len(), |count| sorted.len().min(count as usize)).checked_sub(1)?;
    Some(sorted[place]).filter(|&time| time < u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_sim::results::MessageStats;
    use fanin_sim::spec::FlowId;

    fn message(release_ps: u64, done_ps: Option<u64>, timeouts: u32) -> MessageStats {
        MessageStats { release_ps: Some(release_ps), done_ps, timeouts, ..MessageStats::default() }
    }

    fn response(connection: u32, flow: u32, first: u32, last: u32) -> ReplayedResponse {
        let (first, last) = (MessageId(first), MessageId(last));
        ReplayedResponse { connection, server: 0, number: 0, flow: FlowId(flow), request: None, first, last, bytes: 1 }
    }

    fn results() -> Results {
        let messages =
            vec![message(4, Some(9), 0), message(10, Some(20), 1), message(15, Some(40), 2), message(50, None, 4)];
        Results { messages: messages.into_iter().collect(), ..Results::default() }
    }

    #[test]
    fn a_response_lasts_from_its_first_piece_to_its_last() {
        let whole = ResponseTimes { release_ps: Some(10), done_ps: Some(40), timeouts: 3 };
        let unfinished = ResponseTimes { release_ps: Some(50), done_ps: None, timeouts: 4 };
        let responses = [response(7, 0, 1, 2), response(7, 0, 3, 3)];
        assert_eq!(response_times(&responses, &results()), [whole, unfinished]);
    }

    #[test]
    fn a_round_is_done_with_its_last_answer_or_not_at_all() {
        let whole = RoundTimes { round: 0, company: 0, requests: 1, release_ps: Some(4), done_ps: Some(40) };
        let unfinished = RoundTimes { round: 2, company: 1, requests: 2, release_ps: Some(4), done_ps: None };
        let ids = |ids: &'static [u32]| ids.iter().map(|&id| MessageId(id));
        let mut rounds = ReplayedRounds::default();
        rounds.add(0, None, ids(&[0]), ids(&[1, 2]));
        rounds.add(0, None, ids(&[]), ids(&[]));
        rounds.add(1, None, ids(&[0, 1]), ids(&[2, 3]));
        assert_eq!(round_times(&rounds, &results()), [whole, unfinished]);
        let mut one_will_do = ReplayedRounds::default();
        one_will_do.add(1, Some(1), ids(&[0, 1]), ids(&[2, 3]));
        assert_eq!(round_times(&one_will_do, &results()), [RoundTimes { round: 0, done_ps: Some(40), ..unfinished }]);
    }

    #[test]
    fn a_tree_lasts_from_the_clients_request_to_the_aggregators_answer() {
        let tree = |request: u32, answer: u32| ReplayedTree {
            connection: 3,
            turn: 1,
            request: MessageId(request),
            answer: MessageId(answer),
        };
        assert_eq!(tree_times(&[tree(0, 2), tree(1, 3)], &results()), [(Some(4), Some(40)), (Some(10), None)]);
    }

    #[test]
    fn a_flow_of_requests_is_of_no_connection() {
        assert_eq!(connections(&[response(7, 1, 0, 0), response(7, 1, 1, 1)], 2), [None, Some(7)]);
    }
}
