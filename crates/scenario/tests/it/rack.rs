//! A capture on a rack.

use fanin_capture::{Release as Waits, Round, Rounds};
use fanin_scenario::replay::{Connection, Follows, Stages, Turn};
use fanin_scenario::{Override, Rack, Replay};
use fanin_sim::spec::Release;
use fanin_units::{Duration, Rate, Time};
use smallvec::SmallVec;
use std::fmt::Write as _;

const RACK: &str = "[rack]\nrate = \"1Gbps\"\ndelay = \"25us\"\nbuffer = \"100p\"\nmark = \"20p\"\n";

fn turn(start: Time, think: Duration, request: u64, pieces: &[(Duration, u64)]) -> Turn {
    let pieces = pieces.iter().map(|&(pause, bytes)| (Follows::Delivered(pause), bytes)).collect();
    Turn { start, think, request, service: Duration::us(300), pieces, overlapped: false, release: None }
}

fn replay() -> Replay {
    let connection = |server: u32, opened: bool| Connection {
        server,
        number: server + 4,
        start: Time::ZERO + Duration::ms(1),
        opened,
        writes_at_once: opened,
        upstream: false,
        turns: SmallVec::from_vec(vec![
            turn(Time::ZERO + Duration::ms(1), Duration::ZERO, 200, &[(Duration::ZERO, 40_000)]),
            turn(Time::ZERO + Duration::ms(9), Duration::ms(2), 0, &[(Duration::ZERO, 1000), (Duration::ms(3), 500)]),
        ]),
    };
    Replay {
        source: "test".to_owned(),
        servers: vec!["10.0.0.1".to_owned(), "10.0.0.2".to_owned()],
        connections: vec![connection(0, true), connection(1, false)],
        rounds: Rounds::default(),
        stages: Stages::default(),
    }
}

#[test]
fn turns_keep_their_order_their_think_times_and_their_pauses() {
    let plan = quiet().plan(&replay(), "newreno", 1, false).unwrap();
    let spec = &plan.spec;
    assert_eq!((spec.flows.len(), spec.messages.len(), plan.responses.len()), (4, 8, 4));
    let [request, response, first, last] = &spec.messages[..4] else { panic!() };
    assert_eq!(request.release, Release::At(Time::ZERO + Duration::ms(1)));
    assert_eq!(response.release, Release::After(request.completes.unwrap(), Duration::us(300)));
    // The server speaks unasked: think time and service time add up.
    assert_eq!(first.release, Release::After(response.completes.unwrap(), Duration::us(2300)));
    assert_eq!(last.release, Release::After(first.completes.unwrap(), Duration::ms(3)));
    let second = &plan.responses[1];
    assert_eq!((second.connection, second.number, second.bytes), (4, 1, 1500));
    assert_eq!((second.first.0, second.last.0, second.request), (2, 3, None));
    // Only the connection whose opening the capture saw begins with a handshake.
    let handshake = |n: usize| spec.transports[spec.flows[n].transport as usize].stack.handshake;
    assert!(handshake(0) && !handshake(2));
    assert_eq!(spec.nodes[2].name, "10.0.0.1");
    assert_eq!(spec.links[plan.port.index()].rate, Rate::gbps(1));
}

#[test]
fn what_goes_straight_on_waits_for_no_delivery() {
    let mut replay = replay();
    replay.connections[0].turns[0].pieces =
        [(Follows::Delivered(Duration::ZERO), 200), (Follows::Written(Duration::us(40)), 39_800)].into_iter().collect();
    let plan = quiet().plan(&replay, "newreno", 1, false).unwrap();
    let [request, header, body] = &plan.spec.messages[..3] else { panic!() };
    let asked = request.completes.unwrap();
    assert_eq!((header.release, header.bytes), (Release::After(asked, Duration::us(300)), 200));
    assert_eq!((body.release, body.bytes), (Release::After(asked, Duration::us(340)), 39_800));
    // One response, which ends with its body; what the server says next waits for that.
    let response = &plan.responses[0];
    assert_eq!((response.first.0, response.last.0, response.bytes), (1, 2, 40_000));
    assert_eq!(plan.spec.messages[3].release, Release::After(body.completes.unwrap(), Duration::us(2300)));
}

#[test]
fn a_call_that_was_given_up_is_over_when_its_caller_had_waited_for_so_long() {
    let mut replay = replay();
    let turn = &mut replay.connections[0].turns[0];
    (turn.pieces, turn.service) = (std::iter::empty().collect(), Duration::ms(20));
    let plan = quiet().plan(&replay, "newreno", 1, false).unwrap();
    let [request, over, next] = &plan.spec.messages[..3] else { panic!() };
    assert_eq!((over.bytes, over.release), (0, Release::After(request.completes.unwrap(), Duration::ms(20))));
    // What comes next on the connection waits for that, and no response is counted.
    assert_eq!(next.release, Release::After(over.completes.unwrap(), Duration::us(2300)));
    assert_eq!(plan.responses.len(), 3);
    let results = fanin_sim::run(&plan.spec, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let done = |message: usize| results.messages.row(message).done_ps.unwrap();
    assert_eq!(done(1) - done(0), Duration::ms(20).ps());
}

/// The first connection of [`replay`], opened 120 us before its first request.
fn opened_before(writes_at_once: bool, release: Option<Waits>) -> Replay {
    let mut replay = replay();
    let connection = &mut replay.connections[0];
    connection.start = Time::ZERO + Duration::us(880);
    connection.writes_at_once = writes_at_once;
    connection.turns[0].release = release;
    replay
}

fn quiet() -> Rack {
    Rack::from_text(
        &format!("{RACK}[stack]\nprofile = \"rfc\"\nhandshake_ack = true\n[replay]\njitter = \"0s\""),
        "rack.toml",
    )
    .unwrap()
}

#[test]
fn the_first_request_leaves_with_the_last_acknowledgement_of_its_handshake() {
    let opened = Time::ZERO + Duration::us(880);
    let plan = quiet().plan(&opened_before(true, None), "newreno", 1, false).unwrap();
    // Handed over with the SYN, and no message without bytes opens the connection before it.
    assert_eq!((plan.spec.messages[0].release, plan.spec.messages[0].bytes), (Release::At(opened), 200));
    let sent = |plan: &fanin_scenario::RackPlan, message: usize| {
        let results = fanin_sim::run(&plan.spec, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
        results.messages.row(message).first_send_ps.unwrap()
    };
    // A SYN of 62 bytes and its answer on four links of 1 Gb/s and 25 us: the round trip, however long the one of the capture was.
    let took = sent(&plan, 0) - opened.since(Time::ZERO).ps();
    assert!((100_000_000..105_000_000).contains(&took), "{took}");
    // One that came by itself, later, keeps its time; a message without bytes opens the connection.
    let plan = quiet().plan(&opened_before(false, None), "newreno", 1, false).unwrap();
    assert_eq!((plan.spec.messages[0].release, plan.spec.messages[0].bytes), (Release::At(opened), 0));
    assert_eq!(sent(&plan, 1), Duration::ms(1).ps());
}

#[test]
fn a_connection_that_is_opened_for_a_request_is_opened_by_what_releases_that_request() {
    let wait = |delay_ns: u64| Some(Waits::Answer { connection: 1, message: 0, delay_ns });
    let plan = quiet().plan(&opened_before(true, wait(500_000)), "newreno", 1, false).unwrap();
    // The SYN left 380 us after the answer, and the request 120 us later.
    let first = &plan.spec.messages[0];
    assert!(matches!(first.release, Release::After(_, pause) if pause == Duration::us(380)), "{:?}", first.release);
    // One that had been opened before that answer came is opened at its time.
    let plan = quiet().plan(&opened_before(true, wait(50_000)), "newreno", 1, false).unwrap();
    assert_eq!(plan.spec.messages[0].bytes, 0);
}

#[test]
fn the_time_that_a_host_takes_for_a_packet_is_not_replayed_twice() {
    let noisy =
        Rack::from_text(&format!("{RACK}[stack]\nsend_jitter = \"10us\"\n[replay]\njitter = \"0s\""), "rack.toml");
    let plan = noisy.unwrap().plan(&replay(), "newreno", 1, false).unwrap();
    let [request, response, ..] = &plan.spec.messages[..] else { panic!() };
    assert_eq!(response.release, Release::After(request.completes.unwrap(), Duration::us(295)));
}

#[test]
fn a_timer_that_does_not_wait_for_answers_is_replayed_by_its_times_alone() {
    let mut replay = replay();
    let released = |replay: &Replay| quiet().plan(replay, "newreno", 1, false).unwrap().spec.messages[2].release;
    replay.connections[0].turns[1].release = Some(Waits::Clock { regardless: false });
    assert!(matches!(released(&replay), Release::NotBefore(at, _) if at == Time::ZERO + Duration::ms(9)));
    replay.connections[0].turns[1].release = Some(Waits::Clock { regardless: true });
    assert_eq!(released(&replay), Release::At(Time::ZERO + Duration::ms(9)));
}

#[test]
fn an_overlapping_turn_does_not_wait_for_the_response_before() {
    let mut replay = replay();
    replay.connections[0].turns[1].overlapped = true;
    let rack = Rack::from_text(&format!("{RACK}[replay]\njitter = \"0s\""), "rack.toml").unwrap();
    let plan = rack.plan(&replay, "newreno", 1, false).unwrap();
    assert_eq!(plan.spec.messages[2].release, Release::At(Time::ZERO + Duration::ms(9)));
}

#[test]
fn requests_of_a_round_keep_their_order_and_their_spacing_whatever_the_jitter() {
    let mut together = replay();
    for (connection, delay_us) in together.connections.iter_mut().zip([2_000, 2_003]) {
        let (from, delay_ns) = ((connection.server, 0), delay_us * 1_000);
        let second = &mut connection.turns[1];
        (second.request, second.release) = (200, Some(Waits::Round { round: 0, answers: 2, delay_ns }));
        together.rounds.resize(2, Round::default());
        together.rounds[0].requests.push(from);
        together.rounds[1].requests.push((from.0, 1));
    }
    let rack = Rack::from_text(&format!("{RACK}[replay]\njitter = \"20us\""), "rack.toml").unwrap();
    let late = |seed: u64| -> Vec<Duration> {
        let plan = rack.plan(&together, "newreno", seed, false).unwrap();
        let asked: Vec<_> = plan
            .rounds
            .iter()
            .nth(1)
            .unwrap()
            .requests
            .iter()
            .map(|&m| plan.spec.messages[m.index()].release)
            .collect();
        let pause = |release: &Release| if let Release::After(_, pause) = release { *pause } else { panic!() };
        asked.iter().map(pause).collect()
    };
    for seed in 1..20 {
        assert_eq!(late(seed)[1], late(seed)[0] + Duration::us(3));
    }
    assert_ne!(late(1)[0], late(2)[0], "a round as a whole is late by chance");
}

#[test]
fn seeds_differ_in_the_jitter_alone_and_a_hash_covers_all_else() {
    let rack = Rack::from_text(RACK, "rack.toml").unwrap();
    // The first request on the connection that was open before the capture.
    let release = |seed: u64| match rack.plan(&replay(), "newreno", seed, false).unwrap().spec.messages[4].release {
        Release::At(time) => time.since(Time::ZERO + Duration::ms(1)),
        Release::After(..) | Release::NotBefore(..) => panic!(),
    };
    assert_eq!(release(1), release(1));
    assert_ne!(release(1), release(2));
    assert!((1..100).all(|seed| release(seed) < Duration::us(20)));
    let hash = |rack: &Rack, cc: &str| rack.hash(&replay(), cc).unwrap();
    assert_eq!(
        hash(&rack, "newreno"),
        hash(&Rack::from_text(&format!("# the same\n{RACK}"), "other.toml").unwrap(), "newreno")
    );
    assert_ne!(hash(&rack, "newreno"), hash(&rack, "reno"));
    let changed = rack.clone().with(&[Override::set("rack.buffer=101p").unwrap()]).unwrap();
    assert_ne!(hash(&rack, "newreno"), hash(&changed, "newreno"));
}

#[test]
fn every_response_of_a_replay_is_delivered() {
    let rack = Rack::from_text(RACK, "rack.toml").unwrap();
    let plan = rack.plan(&replay(), "newreno", 1, true).unwrap();
    let results = fanin_sim::run(&plan.spec, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(results.complete);
    for response in &plan.responses {
        let (first, last) =
            (&results.messages.row(response.first.index()), &results.messages.row(response.last.index()));
        assert!(last.done_ps.unwrap() > first.release_ps.unwrap());
    }
    assert!(!results.traces.queue.time_ps.is_empty() && !results.traces.window.time_ps.is_empty());
}

#[test]
fn a_rack_is_answered_with_one_clear_sentence() {
    let mut shown = String::new();
    for text in [
        "",
        "[rack]",
        "[rack]\nrate = \"0bps\"\ndelay = \"25us\"\nbuffer = \"100p\"",
        "[rack]\nrate = \"1Gbps\"\ndelay = \"-1us\"\nbuffer = \"100p\"",
        "[rack]\nrate = \"1Gbps\"\ndelay = \"1us\"\nbuffer = \"20p\"\nmark = \"65p\"",
        "[rack]\nrate = \"1Gbps\"\ndelay = \"1us\"\nbufer = \"20p\"",
        "[rack]\nrate = \"1Gbps\"\ndelay = \"1us\"\nbuffer = \"20p\"\nsenders = 4",
        "[topology]\nrate = \"1Gbps\"",
        "rack = 3",
        &format!("{RACK}[stack]\nprofile = \"bsd\""),
        &format!("{RACK}[cc]\nname = \"dctcp\""),
        &format!("{RACK}[replay]\njitter = 20"),
        &format!("{RACK}[replay]\nduration = \"0s\""),
    ] {
        let _ = writeln!(shown, "{text}\n  {}\n", Rack::from_text(text, "rack.toml").unwrap_err());
    }
    let rack = Rack::from_text(RACK, "rack.toml").unwrap();
    let _ = writeln!(shown, "--cc newrino\n  {}\n", rack.plan(&replay(), "newrino", 1, false).unwrap_err());
    let _ = writeln!(
        shown,
        "--set rack.rate=fast\n  {}",
        rack.with(&[Override::set("rack.rate=fast").unwrap()]).unwrap_err()
    );
    insta::assert_snapshot!(shown);
}

#[test]
fn what_a_rack_and_an_algorithm_are_refused_for_does_not_depend_on_the_traffic() {
    let rack = Rack::from_text(RACK, "rack.toml").unwrap();
    for cc in ["reno", "gss+dctcp", "newrino", "dctcp+"] {
        let planned = rack.plan(&replay(), cc, 1, false).map(drop).map_err(|e| e.to_string());
        assert_eq!(rack.accept(cc).map_err(|e| e.to_string()), planned, "{cc}");
    }
    assert!(rack.accept("reno").is_ok() && rack.accept("newrino").is_err());
}

#[test]
fn other_times_of_servers_are_replayed_as_the_other_workload_has_them() {
    let mut capture = captured();
    assert!(!capture.bounds_some() && capture.otherwise().is_none());
    let message = &mut capture.connections[1].messages[0];
    // As far from the one bound as it is from the other: 20 us of 10 to 110 us becomes 100 us.
    (message.service_ns, message.service_between_ns) = (20_000, Some((10_000, 110_000)));
    let other = capture.otherwise().unwrap();
    assert_eq!(other.connections[1].messages[0].service_ns, 100_000);
    let moved = Replay::from(&capture).otherwise(&capture);
    assert_eq!(moved, Replay::from(&other));
    assert_eq!(moved.connections[1].turns[0].service, Duration::us(100));
}

#[test]
fn the_shipped_rack_is_one() {
    let rack = Rack::from_file(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rack.toml")).unwrap();
    assert!(rack.marks().unwrap());
}

/// A real capture: five servers, 201 responses each, with the client's own log beside it.
const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/pcap/http_spt_then_lpt_5to1");

fn captured() -> fanin_capture::Workload {
    let path = format!("{CAPTURE}.pcap");
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    fanin_capture::analyse(path.as_ref(), &fanin_capture::Options::default(), go_on).unwrap().workload(None).unwrap()
}

#[test]
fn a_real_capture_is_replayed_response_by_response() {
    let log = std::fs::read_to_string(format!("{CAPTURE}_responses.csv")).unwrap();
    let mut logged: Vec<u64> = log.lines().skip(1).map(|row| row.split(',').nth(9).unwrap().parse().unwrap()).collect();
    let replay = Replay::from(&captured());
    let rack = Rack::from_text(RACK, "rack.toml").unwrap();
    let plan = rack.plan(&replay, "newreno", 1, false).unwrap();
    let mut planned: Vec<u64> = plan.responses.iter().map(|r| r.bytes).collect();
    logged.sort_unstable();
    planned.sort_unstable();
    assert_eq!(planned, logged);

    let results = fanin_sim::run(&plan.spec, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(results.complete);
    // The think times are the capture's, so the replay takes about as long as it did.
    let span = replay.span().as_secs();
    let end = results.end_ps as f64 / 1e12;
    assert!((0.9 * span..1.3 * span).contains(&end), "{end} s for a capture of {span} s");
}

#[test]
fn a_workload_file_is_replayed_in_a_scenario() {
    let file = std::env::temp_dir().join(format!("fanin-replay-{}.json", std::process::id()));
    captured().write(&file).unwrap();
    let text = format!("[topology]\nsenders = 5\n[[workload]]\nkind = \"replay\"\nfile = \"{}\"", file.display());
    let spec = fanin_scenario::Scenario::from_text(&text, "replay").and_then(|s| s.plan(1));
    std::fs::remove_file(&file).unwrap();
    let spec = spec.unwrap();
    let rack =
        Rack::from_text(RACK, "rack.toml").unwrap().plan(&Replay::from(&captured()), "newreno", 1, false).unwrap();
    let sizes = |messages: &[fanin_sim::spec::Message]| messages.iter().map(|m| m.bytes).collect::<Vec<_>>();
    assert_eq!(sizes(&spec.messages), sizes(&rack.spec.messages));
    assert!(spec.stop_when_done);
}

/// The shipped capture's traffic as a workload file, in a scenario on `topology` with `keys` in its workload.
fn on(topology: &str, keys: &str) -> Result<(fanin_sim::spec::Spec, Vec<fanin_scenario::Warning>), String> {
    let name: String = format!("{topology}{keys}").bytes().map(|b| format!("{b:x}")).collect::<String>();
    let digest = name.bytes().fold(7_u64, |sum, b| sum.wrapping_mul(31).wrapping_add(u64::from(b)));
    let file = std::env::temp_dir().join(format!("fanin-places-{}-{digest}.json", std::process::id()));
    captured().write(&file).unwrap();
    let text =
        format!("[topology]\n{topology}\n[[workload]]\nkind = \"replay\"\nfile = \"{}\"\n{keys}", file.display());
    let plan = fanin_scenario::Scenario::from_text(&text, "replay").and_then(|s| s.plan_with_notes(1));
    std::fs::remove_file(&file).unwrap();
    plan.map_err(|e| e.to_string())
}

const LEAVES: &str = "kind = \"leaf_spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 5";

/// Names of the hosts that send answers, in the order of the flows.
fn senders(spec: &fanin_sim::spec::Spec) -> Vec<String> {
    let mut found = Vec::new();
    for flow in &spec.flows {
        let name = &spec.nodes[flow.src.index()].name;
        if spec.nodes[flow.dst.index()].name == "h9" && !found.contains(name) {
            found.push(name.clone());
        }
    }
    found.sort();
    found
}

#[test]
fn servers_are_placed_by_their_addresses() {
    let servers = captured().servers;
    let each: Vec<String> = (1..).zip(&servers).map(|(n, server)| format!("h{n} = \"{server}\"")).collect();
    let keys = format!("to = \"h9\"\nhosts = {{ {} }}", each.join(", "));
    let (spec, notes) = on(LEAVES, &keys).unwrap();
    assert_eq!(notes, []);
    let names: Vec<String> = (1..=servers.len()).map(|n| format!("h{n}")).collect();
    assert_eq!(senders(&spec), names);

    // All on one host, by a pattern, because the file says so: nothing was assumed.
    let (spec, notes) = on(LEAVES, "to = \"h9\"\nhosts = { h6 = \"*\" }").unwrap();
    assert_eq!((senders(&spec), notes), (vec!["h6".to_owned()], vec![]));
}

#[test]
fn an_assumed_place_is_said() {
    let kinds = |topology: &str, keys: &str| -> Vec<&str> {
        on(topology, keys).unwrap().1.iter().map(fanin_scenario::Warning::kind).collect()
    };
    let servers = captured().servers;
    assert_eq!(servers.len(), 5, "the texts below count on it");
    assert_eq!(kinds("senders = 5", ""), Vec::<&str>::new(), "hosts of a star are alike");
    assert_eq!(kinds("kind = \"dumbbell\"\npairs = 5", "to = \"r1\""), Vec::<&str>::new(), "and those of one side");
    assert_eq!(kinds(LEAVES, "to = \"h9\"\nfrom = [\"h0\", \"h1\", \"h2\", \"h3\", \"h4\"]"), Vec::<&str>::new());
    assert_eq!(kinds(LEAVES, "to = \"h9\""), ["assumed-places"]);
    assert_eq!(kinds("senders = 3", ""), ["shared-hosts"]);
    let (_, notes) = on(LEAVES, "to = \"h9\"\nfrom = [\"h7\", \"h1\"]").unwrap();
    let says: Vec<String> = notes.iter().map(ToString::to_string).collect();
    assert!(says[0].starts_with("5 servers of the capture share 2 hosts:"), "{}", says[0]);
    let first = format!("{} on h7, {} on h1, {} on h7", servers[0], servers[1], servers[2]);
    assert!(says[1].contains(&first) && says[1].contains("and 1 more"), "{}", says[1]);
}

#[test]
fn a_wrong_place_is_refused() {
    let server = captured().servers[0];
    let cases = [
        (format!("hosts = {{ h1 = \"{server}\" }}"), "no host stands for"),
        ("hosts = { h1 = \"*\", h2 = \"10.9.9.9\" }".to_owned(), "the capture has no server `10.9.9.9`; it has "),
        (format!("hosts = {{ h1 = \"*\", h2 = \"{server}\" }}"), "is on `h1` and on `h2`"),
        ("hosts = { x1 = \"*\" }".to_owned(), "no host is named `x1`"),
        ("hosts = { h9 = \"*\" }".to_owned(), "`h9` is the receiver"),
        ("hosts = \"h1\"".to_owned(), "it is text; write `hosts = { h1 = \"10.0.0.2\" }`"),
        ("from = \"h1\"\nhosts = { h1 = \"*\" }".to_owned(), "remove one of the two"),
    ];
    for (keys, says) in cases {
        let error = on(LEAVES, &format!("to = \"h9\"\n{keys}")).unwrap_err();
        assert!(error.contains(says), "{keys}: {error}");
    }
}
