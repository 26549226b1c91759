//! Algorithms by name: `newreno`, `gss+dctcp`, `tcprand+cubic`.

use crate::algorithms::ALGORITHMS;
use crate::deploy::{Deployment, Place};
use crate::extension::{self, Extension};
use crate::{Args, CongestionControl, Param, ParamError, ReceiverControl, Setup, SlowStart, StandardSlowStart};
use thiserror::Error;

/// One registry line: everything the rest of fanin knows about an algorithm.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// The name people type.
    pub name: &'static str,
    /// One line for `fanin list cc`.
    pub title: &'static str,
    /// Paper and RFC.
    pub source: &'static str,
    /// It needs the switch to mark (ECN).
    pub needs_switch: bool,
    /// Where it can run on real hosts; empty: in the simulator alone.
    pub deploy: &'static [Place],
    /// Declared parameters.
    pub params: &'static [Param],
    /// What it is and how to make one.
    pub kind: Kind,
}

/// Makes a sender from constants, settings and a slow start.
pub type BuildSender = fn(&Setup, &Args, Box<dyn SlowStart>) -> Result<Box<dyn CongestionControl>, ParamError>;
/// Makes a slow start.
pub type BuildSlowStart = fn(&Setup, &Args) -> Result<Box<dyn SlowStart>, ParamError>;
/// Wraps a sender.
pub type BuildWrapper = fn(&Setup, &Args, Box<dyn CongestionControl>) -> Result<Box<dyn CongestionControl>, ParamError>;
/// Makes the receiving host's policy.
pub type BuildReceiver = fn(&Setup, &Args) -> Result<Box<dyn ReceiverControl>, ParamError>;

/// What an algorithm is.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A complete sender.
    Sender(BuildSender),
    /// A slow start for any sender: `gss+newreno`.
    SlowStart(BuildSlowStart),
    /// A layer around any sender: `tcprand+cubic`.
    Wrapper(BuildWrapper),
    /// A policy of the receiving host over ordinary senders (NewReno unless named: `ictcp+reno`).
    Receiver(BuildReceiver),
    /// A complete sender from outside this crate, found at run time (a Python class).
    Extension(&'static dyn Extension),
}

impl Kind {
    fn is_sender(&self) -> bool {
        matches!(self, Kind::Sender(_) | Kind::Extension(_))
    }
}

impl Algorithm {
    /// It can be used without a `+`.
    pub fn stands_alone(&self) -> bool {
        self.kind.is_sender() || matches!(self.kind, Kind::Receiver(_))
    }
}

/// A built algorithm: a sender, and the receiver's policy where there is one.
#[derive(Debug)]
pub struct Transport {
    /// The sender's policy.
    pub sender: Box<dyn CongestionControl>,
    /// Some part lives on RTT samples and needs every packet acknowledged.
    pub prompt_acks: bool,
}

/// Why a name or its settings are no algorithm.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum BuildError {
    /// No such name.
    #[error("no congestion control named `{name}`{}; `fanin list cc` shows all", did_you_mean(nearest))]
    UnknownName {
        /// The component that is not known.
        name: String,
        /// A registered name close to it.
        nearest: Option<&'static str>,
    },
    /// The parts do not compose.
    #[error("`{spec}` does not compose: {why}")]
    BadComposition {
        /// What was written.
        spec: String,
        /// What is wrong with it.
        why: String,
    },
    /// A parameter is unknown or out of range.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// An algorithm from outside this crate cannot be had.
    #[error("`{name}`: {why}")]
    Extension {
        /// As named.
        name: String,
        /// What its language says.
        why: String,
    },
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
}

/// The registered algorithm of this exact name.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|a| a.name == name)
}

/// Splits `gss+dctcp` into its registered parts, outermost first, the sender last.
///
/// # Errors
/// [`BuildError::UnknownName`] for a part that is not registered; [`BuildError::BadComposition`] where no sender or more than one stands.
pub fn parts(spec: &str) -> Result<Vec<&'static Algorithm>, BuildError> {
    let mut found = Vec::new();
    // `gss+dctcp@linux` and a path with a plus are one algorithm from outside.
    let whole = (spec.ends_with("@linux") || spec.ends_with(".c")).then(|| extension::find(spec)).transpose();
    if let Ok(Some(Some(algorithm))) = whole {
        return Ok(vec![algorithm]);
    }
    for name in spec.split('+').map(str::trim) {
        let algorithm = match find(name) {
            Some(registered) => Some(registered),
            None => extension::find(name)?,
        };
        found.push(algorithm.ok_or_else(|| BuildError::UnknownName { name: name.to_owned(), nearest: nearest(name) })?);
    }
    let bad = |why: &str| Err(BuildError::BadComposition { spec: spec.to_owned(), why: why.to_owned() });
    let count = |test: fn(&Kind) -> bool| found.iter().filter(|a| test(&a.kind)).count();
    let senders = count(Kind::is_sender);
    let receivers = count(|k| matches!(k, Kind::Receiver(_)));
    let slow_starts = count(|k| matches!(k, Kind::SlowStart(_)));
    match senders {
        0 if receivers == 0 => return bad("it names no sender; put one at the end, as in `gss+newreno`"),
        0 => found.push(find("newreno").expect("newreno is registered: a test looks")),
        1 if !found[found.len() - 1].kind.is_sender() => {
            return bad("the sender comes last, as in `gss+newreno`");
        }
        1 => {}
        _ => return bad("it names more than one sender"),
    }
    if receivers > 1 {
        return bad("it names more than one receiver policy");
    }
    if slow_starts > 1 {
        return bad("it names more than one slow start");
    }
    if slow_starts == 1 && found.iter().any(|a| matches!(a.kind, Kind::Extension(_))) {
        return bad("an algorithm from outside has its own slow start; name it alone");
    }
    Ok(found)
}

/// Builds the sender that `spec` names.
///
/// # Errors
/// [`BuildError`] for an unknown name, parts that do not compose, and parameters that no part declares or that are out of range.
pub fn build(spec: &str, setup: &Setup, args: &Args) -> Result<Transport, BuildError> {
    let parts = parts(spec)?;
    let known: Vec<&'static str> = parts.iter().flat_map(|a| a.params.iter().map(|p| p.name)).collect();
    if let Some(name) = args.names().find(|n| !known.contains(n)) {
        return Err(ParamError::Unknown { algorithm: spec.to_owned(), name: name.to_owned(), known }.into());
    }
    let mut slow_start: Box<dyn SlowStart> = Box::new(StandardSlowStart::new(setup.counting));
    for part in &parts {
        if let Kind::SlowStart(build) = part.kind {
            slow_start = build(setup, args)?;
        }
    }
    let paced_by_rtt = slow_start.needs_prompt_acks();
    let setup = &Setup { initial_window: slow_start.initial_window().unwrap_or(setup.initial_window), ..*setup };
    let mut layers = parts.iter().rev();
    let base = layers.next().map(|a| a.kind);
    let mut sender = match base {
        Some(Kind::Sender(build)) => build(setup, args, slow_start)?,
        Some(Kind::Extension(extension)) => {
            extension.build(setup, args).map_err(|why| BuildError::Extension { name: spec.to_owned(), why })?
        }
        _ => return Err(BuildError::BadComposition { spec: spec.to_owned(), why: "it names no sender".to_owned() }),
    };
    for layer in layers {
        if let Kind::Wrapper(build) = layer.kind {
            sender = build(setup, args, sender)?;
        }
    }
    let prompt_acks = paced_by_rtt || sender.needs().prompt_acks;
    Ok(Transport { sender, prompt_acks })
}

/// Builds the receiving host's policy that `spec` names, if it names one.
///
/// # Errors
/// As [`build`].
pub fn build_receiver(spec: &str, setup: &Setup, args: &Args) -> Result<Option<Box<dyn ReceiverControl>>, BuildError> {
    for part in parts(spec)? {
        if let Kind::Receiver(build) = part.kind {
            return Ok(Some(build(setup, args)?));
        }
    }
    Ok(None)
}

/// Whether any part of `spec` lives on RTT samples and needs every packet acknowledged.
///
/// # Errors
/// As [`build`], with every setting at its default.
pub fn needs_prompt_acks(spec: &str) -> Result<bool, BuildError> {
    Ok(build(spec, &Setup::default(), &Args::default())?.prompt_acks)
}

/// Whether any part of `spec` needs a marking switch.
///
/// # Errors
/// As [`parts`].
pub fn needs_switch(spec: &str) -> Result<bool, BuildError> {
    Ok(parts(spec)?.iter().any(|a| a.needs_switch))
}

/// Where all of `spec` together can run on real hosts.
///
/// ```
/// let trim = fanin_cc::registry::deployment("trim").unwrap();
/// assert_eq!(trim.twin, Some("fanin_trim"));
/// ```
///
/// # Errors
/// As [`parts`].
pub fn deployment(spec: &str) -> Result<Deployment, BuildError> {
    let parts: Vec<_> = parts(spec)?.iter().map(|a| (a.name, a.deploy)).collect();
    Ok(Deployment::of(&parts))
}

/// Identifies what the parts of `spec` from outside this crate do, so that results under one version are not taken for another's; empty
/// where there are none.
///
/// # Errors
/// As [`parts`].
pub fn fingerprint(spec: &str) -> Result<String, BuildError> {
    let versions = parts(spec)?
        .iter()
        .filter_map(|a| if let Kind::Extension(e) = a.kind { Some(e.version()) } else { None })
        .collect();
    Ok(versions)
}

/// The registered name closest to `name`, if one is close enough to have been meant.
fn nearest(name: &str) -> Option<&'static str> {
    ALGORITHMS
        .iter()
        .map(|a| (distance(name, a.name), a.name))
        .filter(|&(d, n)| d <= 2.max(n.len() / 3))
        // Of equally close ones the first registered.
        .min_by_key(|&(d, _)| d)
        .map(|(_, n)| n)
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &cb) in b.iter().enumerate() {
            let substitution = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_parameter_is_unique() {
        let mut names: Vec<_> = ALGORITHMS.iter().map(|a| a.name).collect();
        names.sort_unstable();
        let total = names.len();
        names.dedup();
        assert_eq!(names.len(), total);
        assert!(find("newreno").is_some());
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest_right_one() {
        let error = build("dtcp", &Setup::default(), &Args::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no congestion control named `dtcp`; did you mean `dctcp`?; `fanin list cc` shows all"
        );
    }

    #[test]
    fn every_sender_builds_with_its_defaults() {
        for algorithm in ALGORITHMS.iter().filter(|a| a.stands_alone()) {
            let transport = build(algorithm.name, &Setup::default(), &Args::default()).unwrap();
            assert!(transport.sender.control().cwnd >= 1.0, "{}", algorithm.name);
        }
    }
}
