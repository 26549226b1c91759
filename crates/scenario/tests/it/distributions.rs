//! Samplers agree with their distributions, and loads with their targets.

use fanin_scenario::Scenario;
use fanin_scenario::distribution::{Dimension, Distribution, SHIPPED};
use fanin_sim::rng::Stream;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/distributions");

fn is_time(name: &str) -> bool {
    name.ends_with("_gap") || name.ends_with("_length")
}

fn shipped(name: &str) -> Distribution {
    let dimension = if is_time(name) { Dimension::Time } else { Dimension::Size };
    Distribution::load(name, Path::new(""), dimension).unwrap_or_else(|e| panic!("{e}"))
}

/// Columns of the index by distribution: name, interpolation, mean under that interpolation.
fn index() -> BTreeMap<String, (String, f64)> {
    let text = std::fs::read_to_string(format!("{FOLDER}/index.csv")).unwrap();
    // The first eight columns are plain.
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let entry = |row: Vec<&str>| {
        let column = match row[2] {
            "linear" => 5,
            "step" => 6,
            _ => 7,
        };
        (row[0].to_owned(), (row[2].to_owned(), row[column].parse().unwrap()))
    };
    rows.map(entry).collect()
}

#[test]
fn every_shipped_distribution_has_the_mean_its_source_gives() {
    let index = index();
    assert_eq!(index.len(), SHIPPED.len());
    for (name, text) in SHIPPED {
        let (interpolation, mean) = &index[*name];
        assert!(text.starts_with(&format!("# interpolation: {interpolation}\n")), "{name}");
        // The index gives microseconds for times.
        let unit = if is_time(name) { 1e6 } else { 1.0 };
        let ours = shipped(name).mean() / unit;
        assert!((ours / mean - 1.0).abs() < 1e-3, "{name}: {ours} and {mean}");
        let expected = shipped(name).expect(|x| x) / unit;
        assert!((expected / mean - 1.0).abs() < 1e-3, "{name}: {expected} and {mean}");
    }
}

#[test]
fn samples_follow_the_distribution_they_are_drawn_from() {
    const DRAWS: usize = 40_000;
    for (n, (name, _)) in SHIPPED.iter().enumerate() {
        let distribution = shipped(name);
        let mut stream = Stream::new(1, "test", n as u64);
        let mut draws: Vec<f64> = (0..DRAWS).map(|_| distribution.quantile(stream.uniform())).collect();
        draws.sort_by(f64::total_cmp);
        // Kolmogorov and Smirnov: the largest distance is below 1.95 / sqrt(n) in 999 of 1000 cases.
        let mut worst = 0.0_f64;
        for (i, &x) in draws.iter().enumerate() {
            // Where many draws are equal (an atom, a step), the last counts.
            if draws.get(i + 1) != Some(&x) {
                worst = worst.max((distribution.cdf(x) - (i + 1) as f64 / DRAWS as f64).abs());
            }
        }
        assert!(worst < 1.95 / (DRAWS as f64).sqrt(), "{name}: {worst}");
    }
}

#[test]
fn interpolation_is_by_hand() {
    let of = |how: &str| {
        let text = format!("# interpolation: {how}\nsize_bytes,cdf\n100,0\n400,0.5\n6400,1\n");
        Distribution::parse(&text, "hand.csv", Dimension::Size).unwrap()
    };
    let (linear, step, log) = (of("linear"), of("step"), of("loglinear"));
    assert_eq!((linear.quantile(0.25), step.quantile(0.25), log.quantile(0.25)), (250.0, 400.0, 200.0));
    assert_eq!((linear.quantile(0.75), step.quantile(0.75), log.quantile(0.75)), (3400.0, 6400.0, 1600.0));
    assert_eq!((linear.mean(), step.mean()), ((250.0 + 3400.0) / 2.0, (400.0 + 6400.0) / 2.0));
    assert!((log.mean() - (300.0 / 4.0_f64.ln() + 6000.0 / 16.0_f64.ln()) / 2.0).abs() < 1e-9);
    assert_eq!((linear.cdf(250.0), step.cdf(399.0), step.cdf(400.0)), (0.25, 0.0, 0.5));
}

#[test]
fn a_damaged_distribution_is_answered_with_its_line() {
    let mut shown = String::new();
    for text in [
        "",
        "size_bytes,cdf\n1,0\n2,1\n",
        "# interpolation: cubic\nsize_bytes,cdf\n1,0\n2,1\n",
        "# interpolation: linear\n1,0\n2,1\n",
        "# interpolation: linear\ngap_us,cdf\n1,0\n2,1\n",
        "# interpolation: linear\nsize_bytes,cdf\n1,0\n",
        "# interpolation: linear\nsize_bytes,cdf\n1,0\nmany,0.5\n2,1\n",
        "# interpolation: linear\nsize_bytes,cdf\n1,0\n5,0.5,7\n9,1\n",
        "# interpolation: linear\nsize_bytes,cdf\n1,0\n5,0.5\n4,1\n",
        "# interpolation: linear\nsize_bytes,cdf\n1,0\n5,0.5\n6,0.4\n9,1\n",
        "# interpolation: linear\nsize_bytes,cdf\n1,0\n5,50\n9,100\n",
        "# interpolation: linear\nsize_bytes,cdf\n1,0\n5,0.5\n9,0.9\n",
        "# interpolation: linear\nsize_bytes,cdf\n1,0.1\n5,0.5\n9,1\n",
        "# interpolation: loglinear\nsize_bytes,cdf\n0,0\n5,0.5\n9,1\n",
        "# interpolation: linear\nsize_bytes,cdf\n-1,0\n9,1\n",
        "# interpolation: linear\nsize_bytes,cdf\nNaN,0\n9,1\n",
    ] {
        let error = Distribution::parse(text, "sizes.csv", Dimension::Size).unwrap_err();
        let _ = writeln!(shown, "{text}  {error}\n");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn the_offered_load_is_within_two_per_cent_of_its_target() {
    // Sizes with light tails, so that the mean of some ten thousand flows is close to the distribution's.
    for (pattern, load, links) in [("", 0.3, 8.0), ("", 0.8, 8.0), ("to_one = true", 0.6, 1.0)] {
        let text = format!(
            "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nrate = \"1Gbps\"\n[run]\nduration = \"20s\"\n\
             [[workload]]\nkind = \"poisson\"\nload = {load}\nsize = \"trim_http_train_size\"\n{pattern}"
        );
        let spec = Scenario::from_text(&text, "load").unwrap().plan(1).unwrap();
        let wire: u64 = spec.messages.iter().map(|m| m.bytes + m.bytes.div_ceil(1460) * 40).sum();
        let offered = wire as f64 * 8.0 / (20.0 * 1e9 * links);
        assert!(spec.messages.len() > 10_000);
        assert!((offered / load - 1.0).abs() < 0.02, "{pattern}: {offered} instead of {load}");
        // Arrivals fill the whole run, and every host takes part.
        let sources: std::collections::BTreeSet<u32> = spec.flows.iter().map(|f| f.src.0).collect();
        assert_eq!(sources.len(), if links == 1.0 { 7 } else { 8 });
        assert!(spec.flows.iter().all(|f| f.src != f.dst));
    }
}

#[test]
fn flows_are_classed_by_their_size() {
    let text = "[[workload]]\nkind = \"poisson\"\nload = 0.5\nshort_below = \"20KB\"\nlong_from = \"2MB\"";
    let spec = Scenario::from_text(text, "classes").unwrap().plan(1).unwrap();
    assert_eq!(spec.trace.classes, ["short", "mid", "long"]);
    for message in &spec.messages {
        let class = match message.bytes {
            0..20_000 => 0,
            20_000..2_000_000 => 1,
            _ => 2,
        };
        assert_eq!(message.class, class);
    }
}
