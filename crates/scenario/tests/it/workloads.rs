//! What workloads put into a plan, and what the engine makes of it.

use fanin_scenario::{Override, Scenario};
use fanin_sim::spec::{Message, Release, Spec};
use fanin_units::{Duration, Time};

fn plan(text: &str, seed: u64) -> Spec {
    Scenario::from_text(text, "test.toml").unwrap().plan(seed).unwrap_or_else(|e| panic!("{e}"))
}

fn example(name: &str) -> Scenario {
    Scenario::from_file(format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn at(message: &Message) -> Time {
    match message.release {
        Release::At(time) => time,
        Release::After(..) | Release::NotBefore(..) => panic!("{message:?} waits for a barrier"),
    }
}

#[test]
fn an_incast_round_begins_when_every_answer_of_the_round_before_is_complete() {
    let spec =
        plan("[topology]\nsenders = 3\n[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nrounds = 2\ngap = \"1ms\"", 1);
    assert_eq!((spec.flows.len(), spec.messages.len(), spec.barriers), (3, 6, 2));
    let first = spec.messages[0].completes.unwrap();
    assert!(spec.messages[..3].iter().all(|m| m.release == Release::At(Time::ZERO) && m.completes == Some(first)));
    assert!(spec.messages[3..].iter().all(|m| m.release == Release::After(first, Duration::ms(1))));
    assert!(spec.stop_when_done);
}

#[test]
fn without_a_barrier_each_sender_goes_on_by_itself() {
    let spec = plan(
        "[topology]\nsenders = 3\n[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nrounds = 2\nbarrier = false",
        1,
    );
    for sender in 0..3 {
        let mine: Vec<&Message> = spec.messages.iter().filter(|m| m.flow.index() == sender).collect();
        assert_eq!(mine[1].release, Release::After(mine[0].completes.unwrap(), Duration::ZERO));
    }
}

#[test]
fn a_requested_answer_is_released_by_the_arrival_of_its_request() {
    let spec = plan("[topology]\nsenders = 2\n[[workload]]\nkind = \"incast\"\ntotal = \"3KB\"\nrequest = \"100B\"", 1);
    assert_eq!(spec.flows.len(), 4);
    let (ask, answer) = (&spec.messages[0], &spec.messages[1]);
    assert_eq!((ask.bytes, answer.bytes), (100, 1500));
    assert_eq!(answer.release, Release::After(ask.completes.unwrap(), Duration::ZERO));
    let (there, back) = (&spec.flows[ask.flow.index()], &spec.flows[answer.flow.index()]);
    assert_eq!((there.src, there.dst), (back.dst, back.src));
    assert_eq!(there.reverse, Some(answer.flow));
    assert_eq!(spec.trace.classes[usize::from(there.class)], "request");
}

#[test]
fn adding_a_workload_never_changes_what_another_draws() {
    let one = "[[workload]]\nkind = \"http_on_off\"\nresponses = 5\n";
    let two = format!("{one}[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\njitter = \"1ms\"\n");
    let (alone, both) = (plan(one, 7), plan(&two, 7));
    let draws = |spec: &Spec| spec.messages[..40].iter().map(|m| (m.bytes, m.release)).collect::<Vec<_>>();
    assert_eq!(draws(&alone), draws(&both));
    assert_ne!(draws(&alone), draws(&plan(one, 8)));
}

#[test]
fn http_responses_follow_each_other_at_the_drawn_gaps() {
    let spec = example("http_on_off.toml").plan(3).unwrap();
    assert_eq!((spec.flows.len(), spec.messages.len()), (5, 5 * 201));
    let responses: Vec<&Message> = spec.messages.iter().filter(|m| m.class == 0).collect();
    assert!(responses.iter().all(|m| (2000..=10_000).contains(&m.bytes) && at(m) >= Time::ZERO + Duration::ms(100)));
    let mean = responses.iter().map(|m| m.bytes as f64).sum::<f64>() / responses.len() as f64;
    // 1000 draws, uniform with deviation 2309: three standard errors are 219.
    assert!((mean - 6000.0).abs() < 219.0, "{mean}");
    let last = responses.iter().filter(|m| m.flow.index() == 0).map(|m| at(m)).max().unwrap();
    // 200 gaps of mean 1 ms: three standard deviations are 42 ms.
    assert!((last.as_secs() - 0.3).abs() < 0.042, "{last}");
    let trains: Vec<&Message> = spec.messages.iter().filter(|m| m.class == 1).collect();
    assert!(trains.len() == 5 && trains.iter().all(|m| m.bytes == 256_000 && at(m) == Time::ZERO + Duration::ms(500)));
}

#[test]
fn the_base_case_opens_a_connection_for_every_response() {
    let scenario = example("http_on_off.toml").with(&[Override::set("workload.new_connection=true").unwrap()]).unwrap();
    let spec = scenario.plan(3).unwrap();
    assert_eq!(spec.flows.len(), 5 * 201);
    assert!(spec.flows.iter().all(|f| spec.transports[f.transport as usize].stack.handshake));
}

#[test]
fn small_responses_and_a_train_together_carry_the_total() {
    let text = "[[workload]]\nkind = \"http_on_off\"\nresponses = 9\nsize = { uniform = [\"2KB\", \"6KB\"] }\ntotal = \"1MB\"\ntrain_start = \"500ms\"";
    let spec = plan(text, 1);
    for flow in 0..8 {
        let sum: u64 = spec.messages.iter().filter(|m| m.flow.index() == flow).map(|m| m.bytes).sum();
        assert_eq!(sum, 1_000_000);
    }
}

#[test]
fn a_workload_may_have_its_own_algorithm_and_knobs() {
    let text = "[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\n[[workload]]\nkind = \"long\"\n[workload.cc]\nname = \"reno\"\n[workload.stack]\nmss = 500";
    let spec = plan(text, 1);
    let of = |n: usize| &spec.transports[spec.flows[n].transport as usize];
    assert_eq!((of(0).cc.name(), of(0).stack.mss), ("newreno", 1460));
    assert_eq!((of(8).cc.name(), of(8).stack.mss), ("reno", 500));
    assert!(!spec.stop_when_done, "something has no end");
}

#[test]
fn trims_windows_grow_by_one_for_every_acknowledged_packet_of_the_small_responses() {
    // spec 1.10: with one ACK per packet and no window validation cwnd = 2 + packets sent, about 2 + 200 * 4.6.
    let scenario = example("http_on_off.toml").with(&[Override::set("run.duration=490ms").unwrap()]);
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenario.plan(1).unwrap_err().key, "workload[0].train_start");
    let text = "[topology]\nsenders = 5\n[[workload]]\nkind = \"http_on_off\"\nstart = \"100ms\"\nsize = { uniform = [\"2KB\", \"10KB\"] }\ngap = { exponential = \"1ms\" }\n[cc]\nname = \"reno\"\n[run]\nduration = \"2s\"\nstop_when_done = false";
    let spec = plan(text, 1);
    let results = fanin_sim::run(&spec, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    for (n, flow) in results.flows.iter().enumerate() {
        let packets: u64 = spec.messages.iter().filter(|m| m.flow.index() == n).map(|m| m.bytes.div_ceil(1460)).sum();
        assert_eq!(flow.cwnd, 2.0 + packets as f64);
    }
}

#[test]
fn connections_of_an_incast_open_at_first_use_before_the_rounds_or_anew_for_each() {
    let with = |open: &str| {
        let text = format!(
            "[topology]\nsenders = 3\n[[workload]]\nkind = \"incast\"\nbytes = \"1KB\"\nrequest = \"100B\"\nrounds = 2\n{open}"
        );
        plan(&text, 1)
    };
    let first_use = with("");
    assert!(first_use.flows.len() == 6 && first_use.flows.iter().all(|f| f.open.get().is_none()));
    let before = with("open = \"before\"\nlead = \"2ms\"");
    // The client asks, so it opens.
    let opened: Vec<bool> = before.flows.iter().map(|f| f.open.get() == Some(Time::ZERO)).collect();
    assert_eq!(opened, [true, false, true, false, true, false]);
    assert_eq!(at(&before.messages[0]), Time::ZERO + Duration::ms(2));
    let anew = with("open = \"each-round\"");
    assert_eq!(anew.flows.len(), 12);
    assert!(anew.messages[6].flow.index() >= 6);
}

#[test]
fn queries_and_units_open_their_connections_as_an_incast_does() {
    for rest in [
        "kind = \"web_search\"\nqueries = 2",
        "kind = \"web_search\"\nqueries = 2\ninterval = \"1ms\"",
        "kind = \"mapreduce\"\nrounds = 2",
    ] {
        let with = |open: &str| plan(&format!("[topology]\nsenders = 3\n[[workload]]\n{rest}\n{open}"), 1);
        let first_use = with("");
        assert!(first_use.flows.len() == 6 && first_use.flows.iter().all(|f| f.open.get().is_none()), "{rest}");
        let before = with("open = \"before\"\nlead = \"2ms\"");
        let opened: Vec<bool> = before.flows.iter().map(|f| f.open.get() == Some(Time::ZERO)).collect();
        assert_eq!(opened, [true, false, true, false, true, false], "{rest}");
        assert_eq!(at(&before.messages[0]), Time::ZERO + Duration::ms(2), "{rest}");
        let anew = with("open = \"each-round\"");
        assert_eq!(anew.flows.len(), 12, "{rest}");
        assert!(anew.messages.iter().all(|m| anew.messages.iter().filter(|o| o.flow == m.flow).count() == 1), "{rest}");
    }
}
