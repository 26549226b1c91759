//! What the environment sets.

use crate::records::Least;
use fanin_cc::model::tcprand::{Adaptive, NoRise};
use fanin_cc::{Args, Profile, Value, registry};

/// rMin; every other parameter has its own name with this prefix instead of `rand_`, in capitals.
const MIN: &str = "FANIN_TCPRAND_MIN";
const PREFIX: &str = "FANIN_TCPRAND_";
const SEED: &str = "FANIN_TCPRAND_SEED";

/// How sizes are found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// rMin, or the rule that finds it.
    pub least: Least,
    /// Of the random sizes.
    pub seed: u64,
}

impl Settings {
    /// Reads the variables, and says in a sentence each what cannot be used.
    ///
    /// Parameters are those of the simulator's `tcprand`, with the same ranges; what is unset or cannot be used has its default.
    ///
    /// ```
    /// use fanin_tcprand::{records::Least, settings::Settings};
    ///
    /// let set = |name: &str| (name == "FANIN_TCPRAND_MIN").then(|| "200".to_owned());
    /// assert_eq!(Settings::read(set).0.least, Least::Static(200.0));
    /// ```
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> (Settings, Vec<String>) {
        let (mut rule, mut r_min, mut faults) = (Adaptive::default(), 0.0, Vec::new());
        let parameters = registry::find("tcprand").map_or(&[][..], |algorithm| algorithm.params);
        // Linux counts its window in packets.
        for setting in parameters.iter().filter(|s| s.name != "rand_cwnd_unit") {
            let name = match setting.name {
                "rand_rmin" => MIN.to_owned(),
                other => PREFIX.to_owned() + &other.trim_start_matches("rand_").to_uppercase(),
            };
            let Some(text) = variable(&name) else { continue };
            let mut given = Args::default();
            given.set(
                setting.name,
                text.trim().parse().map_or_else(|_| Value::Word(text.trim().to_owned()), Value::Number),
            );
            let Ok(value) = given.value(setting, Profile::Linux) else {
                faults.push(format!("{name} is {text:?}; it must be {}: it keeps its default", setting.expects()));
                continue;
            };
            match (setting.name, value) {
                ("rand_rmin", Value::Number(bytes)) => r_min = bytes,
                ("rand_sigma2", Value::Number(x)) => rule.sigma2 = x,
                ("rand_mu", Value::Number(x)) => rule.mu = x,
                ("rand_v_tau", Value::Number(x)) => rule.v_tau = x,
                ("rand_v_omega", Value::Number(x)) => rule.v_omega = x,
                ("rand_theta", Value::Number(x)) => rule.theta = x,
                ("rand_no_rise", Value::Word(word)) if word == "full" => rule.no_rise = NoRise::Full,
                _ => {}
            }
        }
        let seed = variable(SEED).map_or(Ok(1), |text| text.trim().parse()).unwrap_or_else(|_| {
            faults.push(format!("{SEED} is no whole number: it keeps its default"));
            1
        });
        let least = if r_min > 0.0 { Least::Static(r_min) } else { Least::Adaptive(rule) };
        (Settings { least, seed }, faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> (Settings, Vec<String>) {
        Settings::read(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn every_parameter_of_the_simulators_algorithm_has_a_variable() {
        let all =
            [("SIGMA2", "2"), ("MU", "0"), ("V_TAU", "inf"), ("V_OMEGA", "0"), ("THETA", "50"), ("NO_RISE", "full")];
        let names: Vec<String> = all.iter().map(|(name, _)| PREFIX.to_owned() + name).collect();
        let set: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(all.iter().map(|(_, value)| *value)).collect();
        let (settings, faults) = read(&set);
        let rule =
            Adaptive { sigma2: 2.0, mu: 0.0, v_tau: f64::INFINITY, v_omega: 0.0, theta: 50.0, no_rise: NoRise::Full };
        assert_eq!((settings.least, faults), (Least::Adaptive(rule), vec![]));
        // rMin and the unit of the window are the two others.
        assert_eq!(registry::find("tcprand").unwrap().params.len(), all.len() + 2);
        assert_eq!(
            read(&[("FANIN_TCPRAND_SEED", "7")]).0,
            Settings { least: Least::Adaptive(Adaptive::default()), seed: 7 }
        );
    }

    #[test]
    fn a_value_that_cannot_be_used_is_a_sentence_and_changes_nothing() {
        for (name, value) in
            [("FANIN_TCPRAND_MU", "much"), ("FANIN_TCPRAND_V_TAU", "0.5"), ("FANIN_TCPRAND_SEED", "-1")]
        {
            let (settings, faults) = read(&[(name, value)]);
            assert_eq!(settings, read(&[]).0);
            assert!(faults.len() == 1 && faults[0].contains(name), "{faults:?}");
        }
    }
}
