//! Each way in which a request does not close, and each fault, from a workload written by hand.

use super::*;
use crate::{Company, Delay, Edge, Message, ReplayConnection, Round};
use smallvec::SmallVec;
use std::path::Path;

/// Two servers asked together, twice: at 0 and at 10 ms, each answered after 1 and 2 ms; the second request follows the first by 8 ms.
fn twice() -> Workload {
    let message = |at: u64, took: u64, release: &str| {
        format!(
            r#"{{"start_ns":{at},"think_ns":0,"request_bytes":100,"service_ns":0,"response_bytes":1000,"pieces":[{{"pause_ns":0,"bytes":1000}}],"took_ns":{took},"overlapped":false,"release":{release}}}"#
        )
    };
    let after = r#"{"by":"round","round":0,"answers":2,"delay_ns":8000000}"#;
    let clock = r#"{"by":"clock"}"#;
    let connection = |n: u64| {
        let (first, second) = (message(0, (n + 1) * 1_000_000, clock), message(10_000_000, (n + 1) * 1_000_000, after));
        format!(r#"{{"server":{n},"connection":{n},"start_ns":0,"opened":true,"messages":[{first},{second}]}}"#)
    };
    let delay = r#"{"p10_ns":0,"median_ns":0,"p90_ns":0}"#;
    let text = format!(
        r#"{{"format":"fanin-workload","version":2,"source":"by hand","aggregator":"10.0.0.9","servers":["10.0.0.1","10.0.0.2"],
        "connections":[{},{}],"rounds":[{{"company":0,"requests":[[0,0],[1,0]],"took_ns":2000000}},{{"company":0,"requests":[[0,1],[1,1]],"took_ns":2000000}}],
        "companies":[{{"connections":[0,1],"servers":2,"upstream":false,"rounds":2,"requests":4,"spread":{delay},"released_by":[]}}]}}"#,
        connection(0),
        connection(1)
    );
    Workload::parse(&text, Path::new("by hand")).unwrap()
}

fn closing(workload: &Workload) -> Closing {
    let all = workload.closings();
    assert_eq!(all.len(), 1);
    all[0].clone()
}

#[test]
fn every_kind_of_fault_counts() {
    assert_eq!(Faults { shared: 1, longer: 2, overlapping: 4, lost: 8 }.count(), 15);
}

#[test]
fn a_request_whose_messages_are_all_answered_closes() {
    let found = closing(&twice());
    assert_eq!((found.requests, found.closed, found.messages, found.closed_messages), (2, 2, 4, 4));
    assert_eq!(found.faults, Faults::default());
    let two = Spread { min: 2, median: 2, p90: 2, max: 2, usual: 2, usual_share: 1.0 };
    assert_eq!((found.messages_per_request, found.servers_per_request), (two, two));
}

/// An acknowledgement says when an answer had come, to 50 us at either end.
#[test]
fn a_request_may_last_100_us_longer_than_its_messages() {
    let longer = |took: u64| {
        let mut workload = twice();
        workload.rounds[0].took_ns = Some(took);
        closing(&workload).faults.longer
    };
    assert_eq!((longer(2_100_000), longer(2_100_001)), (0, 1));
    assert_eq!((longer(1_900_000), longer(1_899_999)), (0, 1));
}

#[test]
fn a_request_without_an_answer_does_not_close_unless_the_capture_ended() {
    let unanswered = |m: usize| {
        let mut workload = twice();
        let message = &mut workload.connections[1].messages[m];
        (message.took_ns, message.response_bytes) = (None, 0);
        message.pieces.clear();
        workload.rounds[m].took_ns = None;
        workload
    };
    let mut workload = unanswered(0);
    let found = closing(&workload);
    assert_eq!((found.requests, found.closed, found.closed_messages, found.unanswered), (2, 1, 2, 1));
    assert_eq!(found.faults.count(), 0, "no error of the inference");

    let found = closing(&unanswered(1));
    assert_eq!((found.requests, found.closed), (1, 1), "the last one was cut off");

    // Its answer is there, and only when all of it had come is not.
    workload.connections[1].messages[0].response_bytes = 1000;
    assert_eq!((closing(&workload).closed, closing(&workload).faults.count()), (2, 0));
}

/// Of the first request one message left before the capture began, in which its connections were open already, or opened.
#[test]
fn a_request_that_began_before_the_capture_is_left_out() {
    let requests = |opened: bool, whole: u64| {
        let mut workload = twice();
        for _ in 0..whole {
            for connection in &mut workload.connections {
                let mut again = connection.messages[1].clone();
                again.start_ns += 10_000_000 * (connection.messages.len() as u64 - 1);
                connection.messages.push(again);
            }
            let m = workload.connections[0].messages.len() as u32 - 1;
            let next = Round { requests: vec![(0, m), (1, m)], ..workload.rounds[1].clone() };
            workload.rounds.push(next);
        }
        workload.rounds[0].requests = vec![(1, 0)];
        workload.connections.iter_mut().for_each(|connection| connection.opened = opened);
        let found = closing(&workload);
        (found.requests, found.messages_per_request.min)
    };
    assert_eq!((requests(false, 2), requests(true, 2)), ((3, 2), (4, 1)));
}

#[test]
fn a_request_that_lasts_longer_than_its_messages_is_a_fault() {
    let mut workload = twice();
    workload.rounds[0].took_ns = Some(9_000_000);
    assert_eq!(closing(&workload).faults, Faults { longer: 1, ..Faults::default() });
    // The application's own time is in its traces, and not on the wire.
    workload.traced = true;
    assert_eq!(closing(&workload).faults, Faults::default());
}

#[test]
fn a_message_of_two_requests_is_a_fault_of_both() {
    let mut workload = twice();
    workload.rounds[0].answers = vec![(0, 0), (1, 0), (0, 1)];
    workload.rounds[0].took_ns = Some(11_000_000);
    let found = closing(&workload);
    assert_eq!((found.faults.shared, found.closed), (2, 0));
}

#[test]
fn a_message_that_left_before_what_it_waited_for_is_a_fault() {
    let mut workload = twice();
    for connection in &mut workload.connections {
        connection.messages[1].start_ns = 1_500_000;
    }
    assert_eq!(closing(&workload).faults, Faults { overlapping: 1, ..Faults::default() });
}

#[test]
fn a_message_that_waits_inside_a_request_and_is_in_none_is_a_fault() {
    let mut workload = twice();
    // A gate inside of the first request, and the second message of connection 0 waits for it, in no request.
    let gate = crate::Round { answers: vec![(0, 0), (1, 0)], ..crate::Round::default() };
    workload.rounds.push(gate);
    workload.rounds[1].requests = vec![(1, 1)];
    workload.connections[0].messages[1].release = Some(Release::Round { round: 2, answers: 1, delay_ns: 0 });
    let found = closing(&workload);
    assert_eq!((found.faults.lost, found.closed), (1, 1));
    // And one whose own first message is not waited for.
    let mut workload = twice();
    workload.rounds[0].answers = vec![(1, 0)];
    assert_eq!(closing(&workload).faults.lost, 1);
}

#[test]
fn stages_are_what_waited_for_the_same_answers() {
    let mut workload = twice();
    let gate = crate::Round { answers: vec![(0, 0), (1, 0)], ..crate::Round::default() };
    *workload.rounds = vec![
        crate::Round {
            company: 0,
            requests: vec![(0, 0), (1, 0)],
            answers: vec![(0, 0), (0, 1), (1, 0), (1, 1)],
            took_ns: Some(12_000_000),
            ..crate::Round::default()
        },
        gate,
    ];
    for connection in &mut workload.connections {
        connection.messages[1].release = Some(Release::Round { round: 1, answers: 2, delay_ns: 8_000_000 });
    }
    let requests = workload.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].stages, [vec![(0, 0), (1, 0)], vec![(0, 1), (1, 1)]]);
    assert_eq!(closing(&workload).closed, 1);
}

#[test]
fn a_request_that_goes_on_with_some_of_its_answers_is_partial_and_one_with_a_hedge_is_not() {
    let mut workload = twice();
    workload.rounds[0].answers = workload.rounds[0].requests.clone();
    (workload.rounds[0].waits_for, workload.rounds[0].took_ns) = (Some(1), Some(1_000_000));
    assert_eq!((closing(&workload).partial, closing(&workload).closed), (1, 2));
    (workload.rounds[0].waits_for, workload.rounds[0].took_ns) = (Some(2), Some(2_000_000));
    assert_eq!(closing(&workload).partial, 0);
}

fn loose(apart: impl Fn(u64) -> u64) -> Workload {
    loose_times(40, apart)
}

/// So many times each of two servers, `apart` from each other, in no request; each answered after a millisecond.
fn loose_times(times: u64, apart: impl Fn(u64) -> u64) -> Workload {
    let mut workload = twice();
    workload.rounds.clear();
    workload.companies[0].rounds = 0;
    for (c, connection) in workload.connections.iter_mut().enumerate() {
        let one = Message { release: None, took_ns: Some(1_000_000), ..connection.messages[0].clone() };
        let at = |n: u64| n * 20_000_000 + if c == 0 { 0 } else { apart(n) };
        connection.messages = (0..times).map(|n| Message { start_ns: at(n), ..one.clone() }).collect();
    }
    workload
}

#[test]
fn messages_that_leave_together_and_are_in_no_request_are_unbound_and_those_that_meet_by_chance_are_not() {
    let found = closing(&loose(|n| 20_000 + n * 1_000));
    assert_eq!((found.unbound, found.messages, found.closed_messages, found.requests), (80, 80, 0, 0));
    // Half a millisecond is together, and more is not, unless it is as long each time: then those are told that follow.
    assert_eq!([500_000, 500_001].map(|later| closing(&loose(|_| later)).unbound), [80, 40]);
    assert_eq!(loose(|n| 500_001 + n * 250_000).closings(), []);
    // Spread evenly over the time between: 38 of 40 meet nothing.
    assert_eq!(loose(|n| n * 500_000).closings(), []);
    assert_eq!(closing(&loose_times(10, |_| 20_000)).unbound, 20);
    assert_eq!(loose_times(9, |_| 20_000).closings(), [], "too few to say");
    // Health checks that keep step, beside a thousand requests.
    let mut beside = loose(|_| 20_000);
    let many = |connection: &ReplayConnection| {
        let one = Message { response_bytes: 100_000, ..connection.messages[0].clone() };
        let messages = (0..500).map(|n| Message { start_ns: n * 1_000_000, ..one.clone() }).collect();
        ReplayConnection { messages, ..connection.clone() }
    };
    let more: Vec<ReplayConnection> = beside.connections.iter().map(many).collect();
    beside.connections.extend(more);
    beside.companies.push(Company { connections: vec![2, 3], rounds: 500, ..beside.companies[0].clone() });
    let round =
        |n: u32| Round { company: 1, requests: vec![(2, n), (3, n)], took_ns: Some(1_000_000), ..Round::default() };
    *beside.rounds = (0..500).map(round).collect();
    assert_eq!(closing(&beside).unbound, 0);
    assert_eq!(closing(&beside).requests, 500);
}

#[test]
fn messages_that_follow_their_own_answers_by_a_clock_are_bound_to_no_request() {
    // Each connection by itself: nine in ten of the pauses are within so many nanoseconds of 19 ms.
    let unbound = |spread: u64| {
        let mut workload = loose(|_| 20_000);
        let delay = Delay { p10_ns: 19_000_000, median_ns: 19_000_000, p90_ns: 19_000_000 + spread };
        let edge =
            |event: &str, requests| Edge { event: event.to_owned(), waits_for: None, company: None, requests, delay };
        let of = workload.companies[0].clone();
        let company = |connection: u32| {
            let released_by = vec![edge("own-answer", 39), edge("nothing", 1)];
            Company { connections: vec![connection], released_by, ..of.clone() }
        };
        workload.companies = vec![company(0), company(1)];
        workload.closings().iter().map(|closing| closing.unbound).sum::<u64>()
    };
    // A twentieth of 19 ms.
    assert_eq!((unbound(950_000), unbound(950_001)), (0, 80));
}

/// A request of two answers of so many bytes, and of a third one when both have come, of so many.
fn with_a_last_call(bytes: u64, last: u64) -> Closing {
    let mut workload = twice();
    workload.rounds.truncate(1);
    workload.rounds[0].answers = vec![(0, 0), (1, 0), (1, 1)];
    workload.rounds[0].took_ns = Some(4_000_000);
    workload.connections[0].messages.truncate(1);
    workload.connections.iter_mut().for_each(|c| c.messages[0].response_bytes = bytes);
    let third = &mut workload.connections[1].messages[1];
    (third.start_ns, third.response_bytes) = (2_000_000, last);
    third.release = Some(Release::Round { round: 1, answers: 2, delay_ns: 0 });
    let gate = crate::Round { answers: vec![(0, 0), (1, 0)], ..crate::Round::default() };
    workload.rounds.push(gate);
    closing(&workload)
}

#[test]
fn a_last_call_that_brings_a_tenth_and_no_more_than_a_packet_may_not_be_waited_for() {
    let told = |bytes, last| (with_a_last_call(bytes, last).trailing, with_a_last_call(bytes, last).trailing_share);
    assert_eq!((told(5_000, 1_000), told(4_999, 1_000)), ((1, 0.5), (0, 0.0)));
    assert_eq!((told(100_000, 1_448).0, told(100_000, 1_449).0), (1, 0));
    assert_eq!(closing(&twice()).trailing, 0);
}

#[test]
fn a_request_in_which_nothing_is_missing_for_longer_than_before_others_is_interrupted() {
    // Requests begin at 0 and 10 ms, and one at 20 ms whose second server is asked so long after the first has answered; a fourth one begins in the meantime.
    let after = |ns: u64, fourth: u64| {
        let mut workload = twice();
        let (second, third) = (20_000_000, 22_000_000 + ns);
        for (c, connection) in workload.connections.iter_mut().enumerate() {
            let at = |start_ns: u64| Message { start_ns, took_ns: Some(2_000_000), ..connection.messages[1].clone() };
            let last = Message { release: None, ..at(if c == 0 { second } else { third }) };
            connection.messages.push(last);
        }
        let release = Some(Release::Answer { connection: 0, message: 2, delay_ns: ns });
        workload.connections[1].messages[2].release = release;
        let more = Message { start_ns: fourth, release: None, ..workload.connections[0].messages[2].clone() };
        workload.connections[0].messages.push(more);
        let took_ns = Some(third + 2_000_000 - second);
        let answers = vec![(0, 2), (1, 2)];
        workload.rounds.push(Round { requests: vec![(0, 2)], answers, took_ns, ..Round::default() });
        workload.rounds.push(Round { requests: vec![(0, 3)], took_ns: Some(2_000_000), ..Round::default() });
        (closing(&workload).requests, closing(&workload).interrupted)
    };
    assert_eq!((after(8_000_000, 25_000_000), after(8_000_001, 25_000_000)), ((4, 0), (4, 1)));
    assert_eq!(after(8_000_001, 35_000_000), (4, 0), "none began in the meantime: the application computed");
}

/// Two users of a service of three servers, 20 requests each.
#[test]
fn a_user_without_a_connection_that_the_other_has_lacks_a_server_in_all_his_requests() {
    let template = twice();
    let (mut workload, message) = (template.clone(), template.connections[0].messages[0].clone());
    workload.servers.push("10.0.0.3".parse().unwrap());
    let connection = |place: usize| ReplayConnection {
        server: [0, 1, 2, 0, 1][place],
        connection: place as u32,
        messages: (0..20).map(|n| Message { start_ns: n * 10_000_000, ..message.clone() }).collect(),
        ..template.connections[0].clone()
    };
    workload.connections = (0..5).map(connection).collect();
    let users = [vec![0, 1, 2], vec![3, 4]];
    let company = |mine: &Vec<u32>| Company { connections: mine.clone(), rounds: 20, ..template.companies[0].clone() };
    workload.companies = users.iter().map(company).collect();
    let round = |n: u32| {
        let of = |(company, mine): (u32, &Vec<u32>)| Round {
            company,
            requests: mine.iter().map(|&c| (c, n)).collect(),
            ..Round::default()
        };
        (0..).zip(&users).map(of).collect::<Vec<_>>()
    };
    *workload.rounds = (0..20).flat_map(round).collect();
    let lacking = |workload: &Workload| workload.closings().iter().map(|c| c.lacking).collect::<Vec<_>>();
    assert_eq!(lacking(&workload), [0, 20]);
    workload.rounds.truncate(38);
    assert_eq!(lacking(&workload), [0, 0], "nineteen requests tell nothing");
}

/// Two groups of four connections, asked within 0.9 ms in each of 200 requests; 60 of those of the second begin with one of the first.
fn two_groups(same_servers: bool) -> Vec<u64> {
    let mut workload = twice();
    let (connection, company) = (workload.connections[0].clone(), workload.companies[0].clone());
    let mut message = connection.messages[0].clone();
    (workload.connections, *workload.rounds, workload.companies) = (Vec::new(), Vec::new(), Vec::new());
    workload.servers = (1..=8).map(|n| [10, 0, 0, n].into()).collect();
    let begin = |n: u64| n * 20_000_000 + n * n * 7_919 % 9_000_000;
    for group in 0..2_u32 {
        let other = |n: u64| {
            if group == 0 {
                0
            } else if n < 60 {
                60_000
            } else {
                10_000_000
            }
        };
        for k in 0..4_u32 {
            let server = if same_servers { k } else { 4 * group + k };
            let mut of = ReplayConnection { server, messages: SmallVec::new(), ..connection.clone() };
            for n in 0..200 {
                message.start_ns = begin(n) + other(n) + u64::from(k) * 300_000;
                of.messages.push(message.clone());
            }
            workload.connections.push(of);
        }
        let of = 4 * group..4 * group + 4;
        let round =
            |n: u32| Round { company: group, requests: of.clone().map(|c| (c, n)).collect(), ..Round::default() };
        workload.rounds.extend((0..200).map(round));
        workload.companies.push(Company { connections: of.clone().collect(), rounds: 200, ..company.clone() });
    }
    workload.closings().iter().map(|found| found.beside).collect()
}

#[test]
fn groups_whose_requests_begin_together_are_parts_of_one_request_unless_they_ask_the_same_servers() {
    assert_eq!((two_groups(false), two_groups(true)), (vec![240, 240], vec![0, 0]));
}

/// A connection that is asked 200 times, and two that are asked together 40 times, of which so many leave so long after an answer to the first.
fn behind(following: u64, delay_ns: u64) -> Vec<u64> {
    let mut workload = twice();
    let (connection, company) = (workload.connections[0].clone(), workload.companies[0].clone());
    let mut message = connection.messages[0].clone();
    (workload.connections, *workload.rounds) = (Vec::new(), Vec::new());
    let mut asked = |times: u64, at: &dyn Fn(u64) -> u64, release: &dyn Fn(u64) -> Option<crate::Release>| {
        let each = |n: u64| {
            (message.start_ns, message.release) = (at(n), release(n));
            message.clone()
        };
        workload.connections.push(ReplayConnection {
            server: workload.connections.len() as u32,
            messages: (0..times).map(each).collect(),
            ..connection.clone()
        });
    };
    asked(200, &|n| n * 20_000_000, &|_| None);
    let after = |n: u64| crate::Release::Answer { connection: 0, message: 4 * n as u32, delay_ns };
    for _ in 0..2 {
        asked(40, &|n| n * 80_000_000 + 7_000_000, &|n| (n < following).then(|| after(n)));
    }
    workload.companies = vec![
        Company { connections: vec![0], rounds: 0, ..company.clone() },
        Company { connections: vec![1, 2], rounds: 40, ..company },
    ];
    let round = |n: u32| Round { company: 1, requests: vec![(1, n), (2, n)], ..Round::default() };
    *workload.rounds = (0..40).map(round).collect();
    workload.closings().iter().map(|found| found.beside).collect()
}

#[test]
fn requests_that_begin_as_a_call_of_none_is_answered_are_the_next_stage_of_it() {
    assert_eq!([19, 20, 40].map(|following| behind(following, 300_000)), [[0], [40], [80]]);
    assert_eq!([500_000, 12_000_000].map(|delay| behind(40, delay)), [[80], [80]], "a busy event loop");
}

/// Forty requests, each with a message to the first server and, so many microseconds after its answer, with one to each of 1 to 3 others; the next one
/// `pause` us after the last answer. So many ask their last server twice. How many stand apart.
fn apart(inside: u64, pause: u64, twice_asked: u32) -> u64 {
    const US: u64 = 1_000;
    let mut workload = twice();
    let message = Message { took_ns: Some(1_000 * US), release: None, ..workload.connections[0].messages[0].clone() };
    let connection = ReplayConnection { messages: SmallVec::new(), ..workload.connections[0].clone() };
    workload.servers = (1..=4).map(|n| [10, 0, 0, n].into()).collect();
    workload.connections = (0..4).map(|server| ReplayConnection { server, ..connection.clone() }).collect();
    workload.rounds.clear();
    let mut at = 0;
    for n in 0..40 {
        let mut places = Vec::new();
        let mut ask = |server: u32, start_ns: u64| {
            let messages = &mut workload.connections[server as usize].messages;
            places.push((server, messages.len() as u32));
            messages.push(Message { start_ns, ..message.clone() });
        };
        ask(0, at);
        let last = 1 + n % 3;
        (1..=last).for_each(|server| ask(server, at + (1_000 + inside) * US));
        let mut end = at + (2_000 + inside) * US;
        if n < twice_asked {
            ask(last, end);
            end += 1_000 * US;
        }
        let (requests, answers) = (vec![places[0]], places);
        workload.rounds.push(Round { requests, answers, took_ns: Some(end - at), ..Round::default() });
        at = end + pause * US;
    }
    let connections = (0..4).collect();
    workload.companies[0] = Company { connections, servers: 4, rounds: 40, ..workload.companies[0].clone() };
    closing(&workload).apart
}

#[test]
fn requests_of_any_size_stand_apart_where_pauses_are_three_times_as_long_as_inside_them() {
    assert_eq!((apart(1_000, 3_000, 0), apart(1_000, 2_999, 0)), (40, 0));
    assert_eq!((apart(100, 1_500, 0), apart(100, 1_499, 0)), (40, 0), "what is asked within 0.5 ms is asked at once");
}

#[test]
fn a_server_that_is_asked_twice_may_be_of_two_requests() {
    assert_eq!((apart(200, 5_000, 1), apart(200, 5_000, 2)), (40, 0));
}

/// The two requests of [`twice`], each released by what a client asks for, where the answer to him waits for as many of them.
#[test]
fn clients_tell_requests_that_their_answers_wait_for() {
    let served = |answers_wait: usize| {
        let mut workload = twice();
        let mut client = workload.connections[0].clone();
        client.upstream = true;
        client.messages.insert(0, client.messages[0].clone());
        for (m, message) in client.messages.iter_mut().skip(1).take(answers_wait).enumerate() {
            message.release = Some(Release::Round { round: m as u32, answers: 2, delay_ns: 1_000 });
        }
        workload.connections.push(client);
        for connection in &mut workload.connections[..2] {
            for (m, message) in (0..).zip(&mut connection.messages) {
                message.release = Some(Release::Answer { connection: 2, message: m, delay_ns: 1_000 });
            }
        }
        closing(&workload).served
    };
    assert_eq!((served(2), served(1)), (2, 0));
}
