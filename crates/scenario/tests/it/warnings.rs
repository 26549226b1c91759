//! What is allowed but probably not meant is said in one sentence each.

use fanin_scenario::{Rack, Replay, Scenario, starving};
use fanin_sim::spec::Spec;

/// The warnings as people read them.
fn warnings(spec: &Spec) -> Vec<String> {
    fanin_scenario::warnings(spec).iter().map(ToString::to_string).collect()
}

const INCAST: &str = "\n[[workload]]\nkind = \"incast\"\nbytes = \"64KB\"\n";

fn plan(text: &str) -> Spec {
    Scenario::from_text(&format!("{text}{INCAST}"), "test").and_then(|s| s.plan(1)).unwrap_or_else(|e| panic!("{e}"))
}

/// 10 Gbps and four links of 75 us: 300 us, 2.4 us of serialisation of 1500 B at two ports and 64 ns of an ACK's 40 B are a round trip
/// of 302.464 us, in which 252.05 packets of 1500 B go out.
const LONG: &str = "[topology]\nrate = \"10Gbps\"\ndelay = \"75us\"\n";

#[test]
fn trim_behind_a_buffer_smaller_than_the_path_is_warned_of_with_its_numbers() {
    let text = format!("{LONG}buffer = \"100p\"\n[cc]\nname = \"trim\"\n");
    // Equation 25: (100 + 252.05) / 2 packets at 10 Gbps are 211.2 us. Equation 22: (sqrt(504.1) - 1)^2 = 460.2 packets, 552.2 us.
    // Equation 28: 3 * 252.05 - 4 * sqrt(504.1) + 2 = 668.3 packets.
    assert_eq!(
        warnings(&plan(&text)),
        [
            "`trim`: its delay threshold K of 211 us lies below the empty round trip of 302 us, so windows sink to 2 even on an idle network: \
          the bottleneck's buffer of 100 packets is smaller than C*D = 252; give it 669 or more, or set `cc.trim_k = \"fixed\"` and \
          `cc.trim_k_fixed = \"552us\"` (equation 22)"
        ]
    );
}

#[test]
fn the_advice_against_the_trap_ends_it() {
    for cure in [
        format!("{LONG}buffer = \"669p\"\n[cc]\nname = \"trim\"\n"),
        format!("{LONG}buffer = \"100p\"\n[cc]\nname = \"trim\"\ntrim_k = \"fixed\"\ntrim_k_fixed = \"552us\"\n"),
        format!("{LONG}buffer = \"100p\"\n[cc]\nname = \"newreno\"\n"),
    ] {
        assert_eq!(warnings(&plan(&cure)), [""; 0], "{cure}");
    }
}

#[test]
fn a_threshold_that_leaves_next_to_no_queue_is_noted_with_its_packets() {
    // From C*D on the fallback is no trap, though the interval is still empty: K - D = (253 - 252.05) / 2 packets at 10 Gbps.
    let told = warnings(&plan(&format!("{LONG}buffer = \"253p\"\n[cc]\nname = \"trim\"\n")));
    let noted = "`trim`: its delay threshold K of 303 us leaves 0.5 packets of queue above the empty round trip of 302 us, as little as \
                 host jitter makes; a larger K: `cc.trim_k = \"upper\"`, or `cc.trim_k = \"fixed\"` with `cc.trim_k_fixed`";
    assert_eq!(told, [noted]);
    // 5 packets of 1.2 us more than 302.464 us, and one less.
    let fixed = |k: &str| {
        warnings(&plan(&format!("{LONG}[cc]\nname = \"trim\"\ntrim_k = \"fixed\"\ntrim_k_fixed = \"{k}\"\n"))).len()
    };
    assert_eq!((fixed("308.4us"), fixed("308.5us")), (1, 0));
}

#[test]
fn a_fixed_threshold_below_the_empty_path_and_the_upper_choice_are_the_same_trap() {
    let fixed = format!("{LONG}[cc]\nname = \"trim\"\ntrim_k = \"fixed\"\ntrim_k_fixed = \"50us\"\n");
    assert_eq!(
        warnings(&plan(&fixed)),
        [
            "`trim`: its delay threshold K of 50.0 us lies below the empty round trip of 302 us, so windows sink to 2 even on an idle network; \
          set `cc.trim_k_fixed` above that round trip"
        ]
    );
    let upper =
        format!("{LONG}buffer = \"100p\"\n[cc]\nname = \"tcprand+trim\"\ntrim_k = \"upper\"\nrand_rmin = \"100B\"\n");
    let told = warnings(&plan(&upper));
    assert!(told.len() == 1 && told[0].starts_with("`tcprand+trim`: its delay threshold K of 211 us"), "{told:?}");
}

#[test]
fn a_window_on_an_idle_network_stays_at_two_in_the_trap_and_grows_out_of_it() {
    let largest = |cc: &str| {
        let text = format!(
            "{LONG}senders = 1\nbuffer = \"100p\"\n[cc]\nname = \"trim\"\n{cc}[run]\nduration = \"50ms\"\n\
             [[workload]]\nkind = \"long\"\n"
        );
        let spec = Scenario::from_text(&text, "test").and_then(|s| s.plan(1)).unwrap_or_else(|e| panic!("{e}"));
        let results =
            fanin_sim::run(&spec, &mut |_| std::ops::ControlFlow::Continue(())).unwrap_or_else(|e| panic!("{e}"));
        results.flows.row(0).max_cwnd
    };
    assert_eq!(largest(""), 2.0);
    assert!(largest("trim_k = \"fixed\"\ntrim_k_fixed = \"552us\"\n") > 200.0);
}

#[test]
fn a_buffer_below_one_packet_and_marks_above_the_buffer_are_told() {
    assert_eq!(
        warnings(&plan("[topology]\nsenders = 3\nbuffer = \"1KB\"")),
        ["port switch->client (as 3 more) has a buffer of 1KB, and a full packet is 1.5KB: none gets through"]
    );
    let mixed = plan("[topology]\nsenders = 1\nbuffer = \"20p\"\nmark = \"64KB\"\n[cc]\nname = \"dctcp\"");
    assert_eq!(
        warnings(&mixed),
        [
            "port switch->client (as 1 more) marks above 64KB, but its buffer of 20p holds no more: nothing is ever marked"
        ]
    );
}

#[test]
fn a_rack_says_what_starves_the_replay_but_not_that_an_algorithm_ignores_its_marks() {
    let nothing = Replay::default();
    let rack = Rack::from_text("[rack]\nrate = \"1Gbps\"\ndelay = \"5us\"\nbuffer = \"100p\"\nmark = \"20p\"", "rack");
    let spec = rack.and_then(|r| r.plan(&nothing, "newreno", 1, false)).unwrap_or_else(|e| panic!("{e}")).spec;
    assert_eq!(starving(&spec), []);
}

#[test]
fn a_warning_has_a_kind_and_names_the_algorithm_that_it_is_about() {
    let told = fanin_scenario::warnings(&plan("[cc]\nname = \"dctcp\"\n"));
    assert_eq!(told.iter().map(|w| (w.kind(), w.cc())).collect::<Vec<_>>(), [("no-marks", Some("dctcp"))]);
}
