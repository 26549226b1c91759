//! What the applications logged themselves is the judge of what the capture analysis says they did.

use crate::common::{csv, run};
use fanin_capture::{Analysis, Turn, Warning};
use std::collections::HashMap;

/// The turns of each connection in order, by server address and client port.
fn turns(a: &Analysis) -> HashMap<(String, String), Vec<Turn>> {
    let mut all: HashMap<_, Vec<Turn>> = HashMap::new();
    for c in a.connections.iter() {
        let mut mine: Vec<Turn> = a.turns.iter().filter(|t| t.connection == c.connection).copied().collect();
        mine.sort_by_key(|t| t.turn);
        all.insert((c.server_ip.to_string(), c.client_port.to_string()), mine);
    }
    all
}

fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn every_http_response_has_the_bytes_and_times_its_client_logged() {
    for (capture, log) in [
        ("http_onoff_8to1.pcap.gz", "http_onoff_8to1_responses.csv"),
        ("http_onoff_8to1_client.pcap.gz", "http_onoff_8to1_responses.csv"),
        ("http_spt_then_lpt_5to1.pcap", "http_spt_then_lpt_5to1_responses.csv"),
    ] {
        let a = run(capture).unwrap();
        let turns = turns(&a);
        let truth = csv(log);
        assert_eq!(truth.len(), a.turns.len(), "{capture}");
        let (mut think, mut before) = (Vec::new(), HashMap::new());
        for row in &truth {
            let number = |column: &str| row[column].parse::<i64>().unwrap();
            let key = (row["server_ip"].clone(), row["client_port"].clone());
            let turn = &turns[&key][number("seq") as usize];
            let place = format!("{capture}: {} response {}", key.0, row["seq"]);
            assert_eq!(turn.request_bytes as i64, number("request_bytes"), "{place}");
            assert_eq!(turn.response_bytes as i64, number("response_bytes"), "{place}");
            assert_eq!(turn.missing_bytes, 0, "{place}");
            // The tap sees a request after the client's clock read, and response bytes before the client read them.
            let at = |ns: Option<u64>| a.summary.start_epoch_ns + ns.unwrap() as i64;
            assert!(at(turn.request_start_ns) >= number("t_request_ns"), "{place}");
            assert!(at(turn.response_start_ns) <= number("t_first_byte_ns"), "{place}");
            assert!(at(turn.response_end_ns) <= number("t_end_ns"), "{place}");
            if let Some(ended) = before.insert(key, number("t_end_ns")) {
                think.push(turn.think_ns.unwrap() as i64 - (number("t_request_ns") - ended));
            }
        }
        // Think times come out within tens of microseconds of the client's own, though the tap is elsewhere. (Median: single ones are off by
        // as much as the client's process waited for a processor.)
        let off = median(think);
        assert!(off.abs() < 50_000, "{capture}: think times are off by {off} ns in the median");
    }
}

#[test]
fn every_memcached_reply_has_the_bytes_its_client_logged_timeouts_or_not() {
    for (capture, log) in [
        ("memcached_incast_8to1.pcap.gz", "memcached_incast_8to1_responses.csv"),
        ("memcached_incast_8to1_newreno.pcap.gz", "memcached_incast_8to1_newreno_responses.csv"),
        ("memcached_incast_8to1_newreno_client.pcap.gz", "memcached_incast_8to1_newreno_responses.csv"),
    ] {
        let a = run(capture).unwrap();
        let turns = turns(&a);
        let truth = csv(log);
        let rounds = truth.len() / 8;
        for row in &truth {
            let mine = &turns[&(row["server_ip"].clone(), row["client_port"].clone())];
            // A few `set` commands come before the logged rounds.
            let turn = &mine[mine.len() - rounds + row["round"].parse::<usize>().unwrap()];
            let place = format!("{capture}: {} round {}", row["server_ip"], row["round"]);
            assert_eq!(turn.response_bytes, row["resp_bytes"].parse::<u64>().unwrap(), "{place}");
            let end = a.summary.start_epoch_ns + turn.response_end_ns.unwrap() as i64;
            assert!(end <= row["t_end_ns"].parse::<i64>().unwrap(), "{place}");
        }
    }
}

#[test]
fn a_retransmission_timeout_is_neither_think_time_nor_a_pause() {
    for capture in ["memcached_incast_8to1_newreno.pcap.gz", "memcached_incast_8to1_newreno_client.pcap.gz"] {
        let a = run(capture).unwrap();
        let stalled =
            a.turns.iter().filter(|t| t.response_end_ns.unwrap() - t.response_start_ns.unwrap() > 200_000_000);
        assert!(stalled.count() >= 8, "{capture} is known for its 200 ms timeouts");
        let longest = a.bursts.iter().map(|b| b.pause_ns).max().unwrap_or(0);
        assert!(longest < 10_000_000, "{capture}: a pause of {longest} ns");
        // The client sleeps 5 ms between rounds and waits for all servers, those in timeout included; a server never thinks that long.
        assert!(a.turns.iter().all(|t| t.service_ns.unwrap() < 50_000_000), "{capture}");
    }
}

#[test]
fn servers_that_never_pause_have_hardly_any_pauses_wherever_the_run_was_captured() {
    for pair in [
        ["http_onoff_8to1.pcap.gz", "http_onoff_8to1_client.pcap.gz"],
        ["memcached_incast_8to1_newreno.pcap.gz", "memcached_incast_8to1_newreno_client.pcap.gz"],
        ["virtual_kernel/incast12_cubic_1g.switch.pcap.gz", "virtual_kernel/incast12_cubic_1g.client.pcap.gz"],
        ["virtual_kernel/incast6_dctcp_1g.switch.pcap.gz", "virtual_kernel/incast6_dctcp_1g.client.pcap.gz"],
        ["virtual_kernel/incast20_reno_1g.switch.pcap.gz", "virtual_kernel/incast20_reno_1g.client.pcap.gz"],
    ] {
        for capture in pair {
            let a = run(capture).unwrap();
            let pauses = a.bursts.iter().filter(|burst| burst.pause_ns > 0).count();
            assert!(100 * pauses <= a.turns.len(), "{capture}: {pauses} pauses in {} responses", a.turns.len());
        }
    }
}

#[test]
fn a_segment_dropped_behind_the_tap_is_retransmitted_and_one_dropped_before_it_is_refilled() {
    let before = run("http_onoff_8to1.pcap.gz").unwrap();
    let behind = run("http_onoff_8to1_client.pcap.gz").unwrap();
    for (switch, client) in before.connections.iter().zip(behind.connections.iter()) {
        let (switch, client) = (&switch.to_client, &client.to_client);
        assert!(switch.retransmitted_packets > 0 && switch.refilled_packets == 0);
        assert!(client.refilled_packets > 0);
        assert_eq!(switch.unique_bytes, client.unique_bytes, "the application sent the same");
        assert!(switch.payload_bytes > client.payload_bytes, "both copies pass the switch, one reaches the client");
    }
}

#[test]
fn a_segment_missing_from_the_capture_is_counted_in_its_response_all_the_same() {
    let a = run("zeek_http_1000_requests_one_dropped_response.pcap.gz").unwrap();
    assert_eq!(a.turns.len(), 1000);
    let holes: Vec<&Turn> = a.turns.iter().filter(|t| t.missing_bytes > 0).collect();
    assert_eq!(holes.len(), 1);
    // The header's segment of 238 bytes is not in the file, the body is: as long as any other response.
    assert_eq!((holes[0].response_bytes, holes[0].missing_bytes), (853, 238));
    assert!(a.turns.iter().filter(|t| t.response_bytes == 853).count() > 900);
    assert!(a.warnings.iter().any(|w| matches!(w, Warning::MissingData { connections: 1, .. })));
}

/// Drops every packet of one response from the file.
#[test]
fn a_response_missing_from_the_capture_is_a_turn_known_from_the_next_requests_acknowledgement() {
    let name = "formats/same400_le_usec.pcap";
    let whole = run(name).unwrap();
    let lost = whole.turns.iter().find(|t| (t.connection, t.turn) == (2, 3)).unwrap();
    let server: std::net::Ipv4Addr = whole.connections.get(2).unwrap().server_ip.to_string().parse().unwrap();
    let file = std::fs::read(crate::common::data().join(name)).unwrap();
    let (head, mut rest) = file.split_at(24);
    let mut cut = head.to_vec();
    while !rest.is_empty() {
        let word = |i: usize| u32::from_le_bytes(rest[i..i + 4].try_into().unwrap());
        let at = i64::from(word(0)) * 1_000_000_000 + i64::from(word(4)) * 1_000 - whole.summary.start_epoch_ns;
        let (record, next) = rest.split_at(16 + word(8) as usize);
        let within = (lost.response_start_ns.unwrap()..=lost.response_end_ns.unwrap()).contains(&(at as u64));
        // The sender's address, behind record, Ethernet and twelve bytes of IP header.
        if !(within && record[42..46] == server.octets()) {
            cut.extend(record);
        }
        rest = next;
    }
    let found = crate::common::run_bytes(&cut).unwrap();
    assert!(found.summary.packets < whole.summary.packets);
    for (was, is) in whole.turns.iter().zip(&found.turns) {
        if (was.connection, was.turn) == (2, 3) {
            assert_eq!((is.response_start_ns, is.missing_bytes), (None, was.response_bytes));
        }
        assert_eq!((is.request_bytes, is.response_bytes), (was.request_bytes, was.response_bytes));
    }
}

#[test]
fn one_direction_alone_still_shows_the_turns() {
    let one = run("formats/one_direction.pcap").unwrap();
    let both = run("http_spt_then_lpt_5to1.pcap").unwrap();
    let responses = |a: &Analysis, c: u32| -> Vec<u64> {
        let mut mine: Vec<&Turn> = a.turns.iter().filter(|t| t.connection == c).collect();
        mine.sort_by_key(|t| t.turn);
        mine.iter().map(|t| t.response_bytes).filter(|&b| b > 0).collect()
    };
    for c in one.connections.iter() {
        let twin = both.connections.iter().find(|t| t.client_port == c.client_port).unwrap();
        let (part, whole) = (responses(&one, c.connection), responses(&both, twin.connection));
        assert!(part.len() > 20);
        // The last one may be cut by the end of the excerpt.
        assert_eq!(part[..part.len() - 1], whole[..part.len() - 1]);
        assert_eq!(c.to_client.unique_bytes, part.iter().sum::<u64>());
    }
    assert!(one.warnings.iter().any(|w| matches!(w, Warning::OneSided { connections: 5, of: 5 })));
}

#[test]
fn a_handshake_seen_at_the_switch_splits_into_its_two_halves() {
    let a = run("http_onoff_8to1.pcap.gz").unwrap();
    for c in a.connections.iter() {
        let (whole, parts) = (c.handshake_rtt_ns, c.handshake_server_ns.zip(c.handshake_client_ns));
        assert_eq!(whole, parts.map(|(s, c)| s + c));
        assert!(
            (20_000..100_000).contains(&whole.unwrap()),
            "an unloaded round trip is 20 to 100 us, not {whole:?} ns"
        );
        assert_eq!((c.to_client.window_scale, c.to_client.mss_option), (Some(10), Some(1460)));
        assert_eq!((c.to_client.syn, c.to_server.syn), (1, 1));
    }
}

#[test]
fn the_aggregator_is_the_one_that_receives_most_from_most() {
    for (capture, ip) in [
        ("http_onoff_8to1.pcap.gz", "10.77.0.1"),
        ("memcached_incast_8to1_newreno_client.pcap.gz", "10.77.0.1"),
        ("zeek_http_bro_org.pcap", "10.0.2.15"),
        ("formats/one_direction.pcap", "10.77.0.1"),
        ("formats/midstream_no_syn.pcap", "10.77.0.1"),
    ] {
        let a = run(capture).unwrap();
        assert_eq!(a.hosts[0].ip.to_string(), ip, "{capture}");
    }
}
