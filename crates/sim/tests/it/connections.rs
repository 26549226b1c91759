//! Two directions of one connection: requests and responses, with the ACKs that the data of either carry.

use crate::common::*;
use fanin_cc::Value;
use fanin_sim::packet::flags;
use fanin_sim::queue;
use fanin_sim::results::Results;
use fanin_sim::spec::*;
use fanin_sim::stack::Stack;
use fanin_units::{Bytes, Duration, QueueLimit, Rate, Time};

/// A client's requests to `n` servers and their responses of `bytes`, `rounds` times, each round when the one before is complete.
fn requests(n: u32, stack: Stack, bytes: u64, rounds: u32, buffer: Option<QueueLimit>) -> Spec {
    let mut spec = star(n, Rate::gbps(1), Duration::us(10), buffer, None);
    let t = transport(&mut spec, "reno", stack);
    for i in 0..n {
        let response = flow(&mut spec, i, t);
        let request = Flow { src: NodeId(0), dst: NodeId(2 + i), reverse: Some(response), ..spec.flows[0].clone() };
        spec.flows.push(request);
        spec.flows[response.index()].reverse = Some(FlowId(response.0 + 1));
    }
    let barrier = |spec: &mut Spec| {
        spec.barriers += 1;
        BarrierId(spec.barriers - 1)
    };
    let mut before: Option<BarrierId> = None;
    for _ in 0..rounds {
        let done = barrier(&mut spec);
        for i in 0..n {
            let asked = barrier(&mut spec);
            let release = before.map_or(Release::At(Time::ZERO), |b| Release::After(b, Duration::us(100)));
            let message = |flow, bytes, release, completes| Message {
                flow: FlowId(flow),
                bytes,
                release,
                deadline: None,
                class: 0,
                completes: Some(completes),
            };
            spec.messages.push(message(2 * i + 1, 100, release, asked));
            spec.messages.push(message(2 * i, bytes, Release::After(asked, Duration::ZERO), done));
        }
        before = Some(done);
    }
    spec
}

/// When a link took pure ACKs, ps.
fn pure_acks(r: &Results, link: u32) -> Vec<u64> {
    let p = &r.traces.packets;
    (0..p.time_ps.len())
        .filter(|&i| p.link[i] == link && p.event[i] == 0 && p.flags[i] & (flags::ACK | flags::SYN) == flags::ACK)
        .map(|i| p.time_ps[i])
        .collect()
}

/// Pure ACKs that servers send to the client, as link 1 carries them.
fn pure_acks_to_client(r: &Results) -> usize {
    pure_acks(r, 1).len()
}

/// Linux samples SYN/ACK to ACK, so that a server that loses its whole first response probes after two round trips and 2 ms, not after
/// the second that RFC 6298 sets before the first sample.
#[test]
fn a_server_that_loses_its_first_response_knows_the_round_trip() {
    let mut spec = requests(1, Stack::linux(), 3000, 1, None);
    spec.links[2].queue.discipline = queue::find("lossy").unwrap();
    spec.links[2].queue.args.set("loss_of", Value::Word("1,2,3".to_owned()));
    let r = run(&spec);
    assert!(r.complete && r.flows.row(0).drops == 3, "{:?}", r.flows.row(0));
    let done = r.messages.row(1).done_ps.unwrap();
    assert!(done > Duration::ms(2).ps() && done < Duration::ms(30).ps(), "{done}");
}

/// Once a server has answered, the ACKs of requests ride on its responses: of ten requests the first alone, which quick ACKs answer.
#[test]
fn a_response_carries_the_ack_of_its_request() {
    let acks = |stack: Stack| {
        let mut spec = requests(1, stack, 3000, 10, None);
        spec.trace.packets = vec![LinkId(1)];
        let r = run(&spec);
        assert!(r.complete);
        pure_acks_to_client(&r)
    };
    assert_eq!(acks(Stack::linux()), 1);
    assert_eq!(acks(Stack::rfc()), 0);
    // One-way agents: each direction has a sink of its own.
    assert_eq!(acks(open_ns2()), 10);
}

/// A pure ACK for each request takes a place in the queue that responses share: 48 senders of two segments fit 100 places, with an ACK each
/// they do not.
#[test]
fn acks_of_requests_take_no_places_from_responses() {
    let lost = |stack: Stack| {
        let stack = Stack { send_jitter: Duration::ZERO, clock_error_ppm: 0.0, ..stack };
        let r = run(&requests(48, stack, 2 * 1448, 20, Some(QueueLimit::Packets(100))));
        assert!(r.complete);
        r.flows.iter().map(|f| f.drops).sum::<u64>()
    };
    // Quick ACKs answer the first requests by themselves, in the first round.
    let (linux, one_way) = (lost(Stack::linux()), lost(Stack { two_way: false, pingpong: false, ..Stack::linux() }));
    assert!(linux < 48 && one_way > 10 * linux, "{linux} {one_way}");
}

/// Linux's `dctcp` ends a window of alpha at each request (`in_ack_event`), and at the ACK of each response of one segment.
#[test]
fn a_request_ends_a_window_of_dctcps_alpha() {
    let mut spec = requests(1, Stack { delack_segments: 1, ..Stack::linux() }, 1000, 3, None);
    spec.transports[0].cc = fanin_cc::registry::resolve("dctcp").unwrap();
    spec.trace.windows.push(FlowId(0));
    spec.trace.internals = true;
    let r = run(&spec);
    assert!(r.complete);
    let t = &r.traces.internals;
    let mut alphas: Vec<f64> =
        (0..t.name.len()).filter(|&i| t.name[i] == "dctcp_alpha").map(|i| t.value[i] * 1024.0).collect();
    alphas.dedup();
    // By a sixteenth at three requests and at the ACKs of the first two responses, as each response leaves.
    assert_eq!(alphas, [960.0, 900.0, 844.0, 792.0, 743.0]);
}

/// `bbr_update_min_rtt`: when the least round trip is out of date, the next one takes its place; not that of a lone segment shorter than the MSS, whose
/// ACK the receiver may have delayed (`FLAG_ACK_MAYBE_DELAYED`).
#[test]
fn bbr_takes_no_answer_to_a_lone_short_segment_for_its_next_least_round_trip() {
    let least_us = |bytes: u64| {
        let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
        let t = transport(&mut spec, "bbr", Stack::linux());
        spec.transports[0].args.set("bbr_min_rtt_window", Value::Number(0.1));
        let f = flow(&mut spec, 0, t);
        for i in 0..10 {
            message(&mut spec, f, bytes, Duration::ms(60 * i));
        }
        spec.trace.windows.push(f);
        spec.trace.internals = true;
        let t = run(&spec).traces.internals;
        let told = (0..t.name.len()).filter(|&i| t.name[i] == "bbr_min_rtt_s");
        let mut values: Vec<u64> = told.map(|i| (t.value[i] * 1e6).round() as u64).collect();
        values.dedup();
        values
    };
    // The handshake's, and no other; whereas the answers to a full segment are longer, and take its place.
    assert_eq!(least_us(1447), [211]);
    let full = least_us(1448);
    assert!(full.len() > 2 && full.iter().all(|&us| (211..250).contains(&us)), "{full:?}");
}

/// Of 29 segments behind a lost one, Linux acknowledges three at once and the others together, 100 us after the fourth where the receiver has seen
/// no round trip yet, unless a run of them ends (`__tcp_ack_snd_check`, `tcp_comp_sack_nr`).
#[test]
fn acks_of_data_behind_a_hole_are_merged_after_the_third() {
    let times = |comp_sack_nr: u32| {
        let steady = Stack { send_jitter: Duration::ZERO, clock_error_ppm: 0.0, ..Stack::linux() };
        let stack = Stack { comp_sack_nr, initial_window: 30.0, initial_quickacks: 0, ..steady };
        let mut spec = requests(1, stack, 30 * 1448, 1, None);
        spec.links[2].queue.discipline = queue::find("lossy").unwrap();
        spec.links[2].queue.args.set("loss_of", Value::Word("1".to_owned()));
        spec.trace.packets = vec![LinkId(0)];
        let r = run(&spec);
        assert!(r.complete && r.flows.row(0).drops == 1 && r.flows.row(0).timeouts == 0, "{:?}", r.flows.row(0));
        pure_acks(&r, 0)
    };
    let (each, merged) = (times(0), times(44));
    // One for each of 29 segments, one for the repaired hole.
    assert_eq!(each.len(), 30, "{each:?}");
    assert!(merged.len() < 12, "{merged:?}");
    assert_eq!(each[..3], merged[..3]);
    assert_eq!(merged[3] - each[3], Duration::us(100).ps());
    // No more than `comp_sack_nr` are one.
    assert!(times(4).len() > merged.len());
}

/// ... and a twentieth of the round trip more: where a host only receives, and measures nothing else, that of the handshake.
#[test]
fn merged_acks_wait_for_a_twentieth_of_the_round_trip() {
    let times = |comp_sack_nr: u32| {
        let stack =
            Stack { comp_sack_nr, initial_window: 30.0, initial_quickacks: 0, delack_segments: 1, ..Stack::linux() };
        // A window that grows is told at once.
        let stack = Stack { send_jitter: Duration::ZERO, clock_error_ppm: 0.0, receive_buffer: Bytes::ZERO, ..stack };
        let mut spec = star(1, Rate::gbps(1), Duration::ms(1), None, None);
        spec.links[1].queue.discipline = queue::find("lossy").unwrap();
        spec.links[1].queue.args.set("loss_of", Value::Word("50".to_owned()));
        let t = transport(&mut spec, "reno", stack);
        let f = flow(&mut spec, 0, t);
        message(&mut spec, f, 200 * 1448, Duration::ZERO);
        spec.trace.packets = vec![LinkId(0)];
        pure_acks(&run(&spec), 0)
    };
    let (each, merged) = (times(0), times(44));
    let first = each.iter().zip(&merged).position(|(a, b)| a != b).expect("some wait");
    // Round trips of 4 ms.
    let wait = Duration::from_ps(merged[first] - each[first]);
    assert!(wait > Duration::us(299) && wait < Duration::us(305), "{wait}");
}

/// Minshall's rule waits for the ACK of the last small segment. That ACK may be lost in the full queue: the response tells the same.
#[test]
fn a_lost_pure_ack_does_not_hold_the_next_request() {
    let slow_behind = |stack: Stack, buffer: u32| {
        let r = run(&requests(8, stack, 64_000, 40, Some(QueueLimit::Packets(buffer))));
        assert!(r.complete);
        let late =
            |m: &fanin_sim::results::MessageStats| m.done_ps.unwrap() - m.release_ps.unwrap() > Duration::ms(30).ps();
        r.messages.iter().step_by(2).filter(|m| late(m)).count()
    };
    let slow = |stack: Stack| {
        [20, 25, 30, 35, 40, 45, 50, 60].iter().map(|&buffer| slow_behind(stack.clone(), buffer)).sum::<usize>()
    };
    assert_eq!(slow(Stack::linux()), 0);
    assert!(slow(Stack { two_way: false, pingpong: false, ..Stack::linux() }) > 0);
}

/// Segments that a server sends again in 40 lone answers, 20 ms between one and the next request, with these floors at the two ends.
fn sent_again(server: Duration, aggregator: Duration, delack_below_rto: bool) -> u64 {
    let stack = Stack {
        min_rto: server,
        receiver_min_rto: aggregator,
        delack_below_rto,
        initial_quickacks: 0,
        ..Stack::linux()
    };
    let mut spec = requests(1, stack, 1000, 40, None);
    for message in &mut spec.messages {
        if let Release::After(_, pause) = &mut message.release
            && !pause.is_zero()
        {
            *pause = Duration::ms(20);
        }
    }
    let r = run(&spec);
    assert!(r.complete && r.flows.row(0).drops == 0, "{:?}", r.flows.row(0));
    r.flows.row(0).segments - 40
}

/// An aggregator that answers soon lets its ACKs wait for its next request, 40 ms (`TCP_DELACK_MIN`): a server's timer of 5 ms does not wait so
/// long. With its own floor as low it waits a jiffy less than that (`tcp_delack_max`).
#[test]
fn a_low_floor_at_the_servers_alone_sends_answers_again_and_at_both_ends_does_not() {
    let (usual, low) = (Duration::ms(200), Duration::ms(5));
    assert_eq!(sent_again(usual, Duration::ZERO, true), 0);
    assert!(sent_again(low, usual, true) > 30, "{}", sent_again(low, usual, true));
    assert_eq!(sent_again(low, low, true), 0);
    assert_eq!(sent_again(low, Duration::ZERO, true), 0, "unless said, both ends have one floor");
    assert!(sent_again(low, Duration::ZERO, false) > 30, "kernels before 6.7 hold ACKs whatever the floor");
}

/// Both directions full of data: ACKs ride but for those that come while small queues hold data back, and none counts as a duplicate.
#[test]
fn data_both_ways_need_hardly_any_pure_acks_and_no_repair() {
    let mut spec = star(1, Rate::gbps(1), Duration::us(10), None, None);
    // A window that grows is told at once.
    let t = transport(&mut spec, "reno", Stack { receive_buffer: Bytes::ZERO, ..Stack::linux() });
    let there = flow(&mut spec, 0, t);
    spec.flows.push(Flow { src: NodeId(0), dst: NodeId(2), reverse: Some(there), ..spec.flows[0].clone() });
    spec.flows[0].reverse = Some(FlowId(1));
    message(&mut spec, there, 2_000_000, Duration::ZERO);
    message(&mut spec, FlowId(1), 2_000_000, Duration::ZERO);
    spec.trace.packets = vec![LinkId(1)];
    let r = run(&spec);
    assert!(r.complete);
    assert!(r.flows.iter().all(|f| f.retransmissions == 0 && f.timeouts == 0), "{:?}", r.flows);
    // Alone, every second segment would be acknowledged by a packet of its own.
    let (acks, data) = (pure_acks_to_client(&r), 2_000_000 / 1448);
    assert!(acks < data / 4, "{acks} of {data}");
}

/// A connection opened ahead of time answers a handshake earlier than one that opens with its first message.
#[test]
fn a_connection_opened_before_its_first_message_saves_the_handshake() {
    let done = |open: Option<Time>| {
        let mut spec = star(1, Rate::gbps(1), Duration::us(50), None, None);
        let t =
            transport(&mut spec, "reno", Stack { send_jitter: Duration::ZERO, clock_error_ppm: 0.0, ..Stack::linux() });
        let f = flow(&mut spec, 0, t);
        spec.flows[0].open = open.into();
        message(&mut spec, f, 1000, Duration::ms(10));
        run(&spec).messages.row(0).done_ps.unwrap()
    };
    // SYN, SYN/ACK and ACK: a round trip of 4 hops of 50 us, and three packets of 52 bytes on two links each, but for the last that overlaps.
    let saved = done(None) - done(Some(Time::ZERO));
    assert!((Duration::us(200).ps()..Duration::us(204).ps()).contains(&saved), "{saved}");
}

/// From 4096 flows on both ends of a connection are made when it is first used and given up when nothing can happen on it any more: with some
/// unused flows on top, 2000 connections that open one after another, and meet in a queue that loses packets, leave what they leave without.
#[test]
fn ends_that_come_and_go_leave_what_lasting_ones_do() {
    let mut spec = requests(8, Stack::linux(), 20_000, 1, Some(QueueLimit::Packets(12)));
    let (eight, messages) = (spec.flows.clone(), spec.messages.clone());
    (spec.flows, spec.messages, spec.barriers) = (Vec::new(), Vec::new(), 0);
    for wave in 0..250_u32 {
        let (first, barriers) = (spec.flows.len() as u32, spec.barriers);
        for flow in &eight {
            spec.flows.push(Flow { reverse: flow.reverse.map(|r| FlowId(first + r.0)), ..flow.clone() });
        }
        // Every third wave speaks again after its timers have run out.
        for later in [0, 3_000].into_iter().take(if wave % 3 == 0 { 2 } else { 1 }) {
            let barriers = barriers + 17 * u32::from(later > 0);
            let shifted = |b: BarrierId| BarrierId(barriers + b.0);
            for message in &messages {
                let release = match message.release {
                    Release::After(barrier, delay) => Release::After(shifted(barrier), delay),
                    _ => Release::At(Time::ZERO + Duration::ms(u64::from(20 * wave) + later)),
                };
                let flow = FlowId(first + message.flow.0);
                let completes = message.completes.map(shifted);
                spec.messages.push(Message { flow, release, completes, ..message.clone() });
            }
            spec.barriers = barriers + 17;
        }
    }
    spec.end = Time::ZERO + Duration::s(60);
    spec.stop_when_done = false;
    spec.trace.windows = (0..64).map(FlowId).collect();
    let lasting = run(&spec);
    assert!(lasting.complete && lasting.flows.len() == 4_000);
    assert!(lasting.flows.iter().any(|f| f.timeouts > 0) && lasting.flows.iter().any(|f| f.retransmissions > 0));
    for _ in 0..100 {
        spec.flows.push(Flow { reverse: None, ..eight[0].clone() });
    }
    let mut coming = run(&spec);
    assert_eq!(coming.flows.len(), 4_100);
    coming.flows = coming.flows.iter().take(4_000).collect();
    let all = |r: &Results| format!("{:?} {:?} {:?} {:?} {}", r.flows, r.messages, r.ports, r.traces, r.packet_hops);
    assert!(all(&lasting) == all(&coming), "they differ");
}
