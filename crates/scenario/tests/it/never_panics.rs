//! Whatever is written, the answer is a plan or a sentence.

use fanin_scenario::distribution::{Dimension, Distribution};
use fanin_scenario::{Rack, Scenario};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const TOKENS: &[&str] = &[
    "-1",
    "0",
    "1",
    "3",
    "inf",
    "nan",
    "1e308",
    "-0.0",
    "9223372036854775807",
    "\"\"",
    "\"1e30s\"",
    "\"18000000TB\"",
    "\"18446744073709551615ps\"",
    "\"0.0001bps\"",
    "\"4294967295p\"",
    "\"1ps\"",
    "\"1B\"",
    "\"s1\"",
    "\"*\"",
    "\"client\"",
    "\"senders\"",
    "[]",
    "[1]",
    "{}",
    "true",
    "false",
    "{ uniform = [\"1B\", \"2B\"] }",
    "{ exponential = \"1us\" }",
    "\"websearch_pfabric\"",
    "\"trim_http_train_gap\"",
    "2020-01-01",
    "\"µs\"",
    "\"é\"",
    "[[1]]",
    "\"newreno\"",
    "\"star\"",
    "\"long\"",
];

fn examples() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    // Those that are quick to plan.
    let names = [
        "incast",
        "dumbbell",
        "trim_multihop",
        "gss_web_search",
        "gss_mapreduce",
        "trim_queue",
        "deadlines",
        "graph",
        "mixed",
    ];
    names.iter().map(|n| std::fs::read_to_string(format!("{folder}/{n}.toml")).unwrap()).collect()
}

/// Replaces the value of the `line`-th setting.
fn with_value(text: &str, line: usize, token: &str) -> String {
    let settings = text.lines().filter(|l| l.contains(" = ")).count();
    let mut n = 0;
    let lines = text.lines().map(|l| match l.split_once(" = ") {
        Some((key, _)) => {
            n += 1;
            if n - 1 == line % settings { format!("{key} = {token}") } else { l.to_owned() }
        }
        None => l.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(11), ..ProptestConfig::default() })]

    #[test]
    fn a_scenario_with_a_strange_value_is_planned_or_refused(example in 0usize..9, line in 0usize..40, token in 0usize..TOKENS.len()) {
        let text = with_value(&examples()[example], line, TOKENS[token]);
        if let Ok(scenario) = Scenario::from_text(&text, "strange.toml") {
            let refused = scenario.plan(1).err().map(|e| e.to_string());
            prop_assert!(refused.is_none_or(|message| message.contains("strange.toml") || message.contains("trim_") || message.contains("websearch")));
        }
    }

    #[test]
    fn any_text_is_a_scenario_a_rack_and_a_distribution_or_refused(text in "(?s).{0,200}") {
        let _ = Scenario::from_text(&text, "any").and_then(|s| s.plan(1));
        let _ = Rack::from_text(&text, "any");
        let _ = Distribution::parse(&text, "any", Dimension::Size);
    }

    #[test]
    fn a_cut_scenario_is_planned_or_refused(example in 0usize..9, at in 0usize..2000) {
        let text = &examples()[example];
        let mut at = at % text.len();
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let _ = Scenario::from_text(&text[..at], "cut.toml").and_then(|s| s.plan(1));
    }
}
