//! Algorithms by name: `newreno`, `gss+dctcp`, `tcprand+cubic`.

use crate::algorithms::ALGORITHMS;
#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::{Deployment, Place};
use crate::extension::{self, Extension};
use crate::{
    Args, CongestionControl, PathKnowledge, Profile, ReceiverControl, Setting, SettingError, Setup, SlowStart,
    StandardSlowStart, nearest,
};
use core::fmt;
use fanin_units::Bytes;
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
    /// It needs the switch to mark (Linux's `TCP_CONG_NEEDS_ECN`).
    pub needs_ecn: bool,
    /// Where it can run on real hosts; empty: in the simulator alone.
    pub deploy: &'static [Place],
    /// Declared parameters.
    pub params: &'static [Setting],
    /// What it has to say about the paths that it is to run on.
    pub check: Option<Check>,
    /// What it is and how to make one.
    pub kind: Kind,
}

impl Algorithm {
    /// What most entries have: no marks, no parameters, nothing to say about paths, and a place in the simulator alone.
    ///
    /// ```
    /// use fanin_cc::{Algorithm, Kind, registry};
    /// let kind: Kind = registry::find("newreno").unwrap().kind;
    /// let entry = Algorithm { name: "mine", title: "Mine", source: "no paper", ..Algorithm::of(kind) };
    /// assert!(entry.params.is_empty() && !entry.needs_ecn);
    /// ```
    pub const fn of(kind: Kind) -> Algorithm {
        Algorithm { name: "", title: "", source: "", needs_ecn: false, deploy: &[], params: &[], check: None, kind }
    }
}

/// A setting that is allowed and probably not meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Caution {
    /// A stable name of its kind.
    pub kind: &'static str,
    /// A sentence.
    pub message: String,
}

/// Looks at an algorithm as it was named, the paths of its flows, the wire size of a full packet, and its settings.
pub type Check = fn(&str, &[PathKnowledge], Bytes, &Args) -> Option<Caution>;

/// Makes a sender from constants, settings and a slow start.
pub type BuildSender = fn(&Setup, &Args, Box<dyn SlowStart>) -> Result<Box<dyn CongestionControl>, SettingError>;
/// Makes a slow start.
pub type BuildSlowStart = fn(&Setup, &Args) -> Result<Box<dyn SlowStart>, SettingError>;
/// Wraps a sender.
pub type BuildWrapper =
    fn(&Setup, &Args, Box<dyn CongestionControl>) -> Result<Box<dyn CongestionControl>, SettingError>;
/// Makes the receiving host's policy.
pub type BuildReceiver = fn(&Setup, &Args) -> Result<Box<dyn ReceiverControl>, SettingError>;

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
    /// A transport of its own, which no part of this crate carries out ([`crate::Needs::endpoint`]).
    Endpoint(BuildSender),
    /// A complete sender from outside this crate, found at run time (a Python class).
    Extension(&'static dyn Extension),
}

impl Kind {
    fn is_sender(&self) -> bool {
        matches!(self, Kind::Sender(_) | Kind::Endpoint(_) | Kind::Extension(_))
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
    pub quickack: bool,
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
    Setting(#[from] SettingError),
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

/// An algorithm as it was named, `gss+dctcp`, with its registered parts: the name is looked up once.
#[derive(Clone)]
pub struct Composition {
    name: String,
    parts: Vec<&'static Algorithm>,
}

impl fmt::Debug for Composition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.name, f)
    }
}

impl fmt::Display for Composition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Composition {
    fn eq(&self, other: &Composition) -> bool {
        self.name == other.name
    }
}

impl Composition {
    /// As it was named.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parts, outermost first, the sender last.
    pub fn parts(&self) -> &[&'static Algorithm] {
        &self.parts
    }

    /// Some part needs a marking switch.
    pub fn needs_ecn(&self) -> bool {
        self.parts.iter().any(|a| a.needs_ecn)
    }

    /// Identifies what the parts from outside this crate do, so that results under one version are not taken for another's; empty where there
    /// are none.
    pub fn fingerprint(&self) -> String {
        self.parts
            .iter()
            .filter_map(|a| if let Kind::Extension(e) = a.kind { Some(e.version()) } else { None })
            .collect()
    }

    /// Parts whose code is not loaded into this process ([`Extension::is_stand_in`]): nothing may run.
    pub fn stand_ins(&self) -> impl Iterator<Item = &'static str> {
        self.parts.iter().filter(|a| matches!(a.kind, Kind::Extension(e) if e.is_stand_in())).map(|a| a.name)
    }

    /// Some part takes any parameter ([`Extension::takes_any_parameter`]).
    pub fn takes_any_parameter(&self) -> bool {
        self.parts.iter().any(|a| matches!(a.kind, Kind::Extension(e) if e.takes_any_parameter()))
    }

    /// Some part is a policy of the receiving host.
    pub fn has_receiver(&self) -> bool {
        self.parts.iter().any(|a| matches!(a.kind, Kind::Receiver(_)))
    }

    /// What its parts have to say about `paths`; `wire` is the size of a full packet.
    pub fn cautions(&self, paths: &[PathKnowledge], wire: Bytes, args: &Args) -> Vec<Caution> {
        self.parts.iter().filter_map(|a| a.check?(&self.name, paths, wire, args)).collect()
    }
}

/// Looks up the parts of `gss+dctcp`.
///
/// # Errors
/// [`BuildError::UnknownName`] for a part that is not registered; [`BuildError::BadComposition`] where no sender or more than one stands.
pub fn resolve(spec: &str) -> Result<Composition, BuildError> {
    Ok(Composition { name: spec.to_owned(), parts: parts(spec)? })
}

/// Splits `gss+dctcp` into its registered parts, outermost first, the sender last.
///
/// # Errors
/// [`BuildError::UnknownName`] for a part that is not registered; [`BuildError::BadComposition`] where no sender or more than one stands.
pub fn parts(spec: &str) -> Result<Vec<&'static Algorithm>, BuildError> {
    let mut found = Vec::new();
    // `gss+dctcp@linux` and a path with a plus are one algorithm from outside.
    let whole = (spec.ends_with("@linux") || spec.ends_with(".c")).then(|| extension::find(spec)).transpose();
    match whole {
        Ok(Some(Some(algorithm))) => return Ok(vec![algorithm]),
        // Without a plus it has no parts to look for: the code would be compiled and asked once more.
        Err(error) if !spec.contains('+') => return Err(error),
        _ => {}
    }
    for name in spec.split('+').map(str::trim) {
        let algorithm = match find(name) {
            Some(registered) => Some(registered),
            None => extension::find(name)?,
        };
        found.push(algorithm.ok_or_else(|| BuildError::UnknownName {
            name: name.to_owned(),
            nearest: nearest(name, ALGORITHMS.iter().map(|a| a.name)),
        })?);
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
    if found.len() > 1
        && let Some(alone) = found.iter().find(|a| matches!(a.kind, Kind::Endpoint(_)))
    {
        return bad(&format!("`{}` is a transport of its own; name it alone", alone.name));
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
    resolve(spec)?.build(setup, args)
}

impl Composition {
    /// Builds the sender.
    ///
    /// # Errors
    /// [`BuildError`] for parameters that no part declares or that are out of range.
    pub fn build(&self, setup: &Setup, args: &Args) -> Result<Transport, BuildError> {
        let (spec, parts) = (self.name.as_str(), &self.parts);
        let known: Vec<&'static str> = parts.iter().flat_map(|a| a.params.iter().map(|p| p.name)).collect();
        if let Some(name) = args.names().find(|n| !known.contains(n)).filter(|_| !self.takes_any_parameter()) {
            return Err(SettingError::Unknown { algorithm: spec.to_owned(), name: name.to_owned(), known }.into());
        }
        let mut slow_start: Box<dyn SlowStart> = Box::new(StandardSlowStart::new(setup.counting));
        for part in parts {
            if let Kind::SlowStart(build) = part.kind {
                slow_start = build(setup, args)?;
            }
        }
        let paced_by_rtt = slow_start.needs_quickack();
        let setup = &Setup { initial_window: slow_start.initial_window().unwrap_or(setup.initial_window), ..*setup };
        let mut layers = parts.iter().rev();
        let base = layers.next().map(|a| a.kind);
        let mut sender = match base {
            Some(Kind::Sender(build) | Kind::Endpoint(build)) => build(setup, args, slow_start)?,
            Some(Kind::Extension(extension)) => {
                extension.build(setup, args).map_err(|why| BuildError::Extension { name: spec.to_owned(), why })?
            }
            _ => {
                return Err(BuildError::BadComposition { spec: spec.to_owned(), why: "it names no sender".to_owned() });
            }
        };
        for layer in layers {
            if let Kind::Wrapper(build) = layer.kind {
                sender = build(setup, args, sender)?;
            }
        }
        let quickack = paced_by_rtt || sender.needs().quickack;
        Ok(Transport { sender, quickack })
    }

    /// Builds the receiving host's policy, if some part is one.
    ///
    /// # Errors
    /// As [`Composition::build`].
    pub fn build_receiver(&self, setup: &Setup, args: &Args) -> Result<Option<Box<dyn ReceiverControl>>, BuildError> {
        for part in &self.parts {
            if let Kind::Receiver(build) = part.kind {
                return Ok(Some(build(setup, args)?));
            }
        }
        Ok(None)
    }
}

/// Builds the receiving host's policy that `spec` names, if it names one.
///
/// # Errors
/// As [`build`].
pub fn build_receiver(spec: &str, setup: &Setup, args: &Args) -> Result<Option<Box<dyn ReceiverControl>>, BuildError> {
    resolve(spec)?.build_receiver(setup, args)
}

/// Whether any part of `spec`, as Linux runs it, lives on RTT samples and needs every packet acknowledged.
///
/// # Errors
/// As [`build`], with every setting at its default.
pub fn needs_quickack(spec: &str) -> Result<bool, BuildError> {
    let linux = Setup { profile: Profile::Linux, ..Setup::default() };
    Ok(build(spec, &linux, &Args::default())?.quickack)
}

/// Whether any part of `spec` needs a marking switch.
///
/// # Errors
/// As [`parts`].
pub fn needs_ecn(spec: &str) -> Result<bool, BuildError> {
    Ok(parts(spec)?.iter().any(|a| a.needs_ecn))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use fanin_units::{Duration, Rate};

    #[test]
    fn a_spec_needs_a_marking_switch_if_one_of_its_parts_does() {
        let needs = ["dctcp", "gss+dctcp", "gss+cubic", "cubic"].map(|spec| needs_ecn(spec).unwrap());
        assert_eq!(needs, [true, true, false, false]);
    }

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
    fn a_composition_needs_marks_where_a_part_does() {
        let needs = |spec: &str| resolve(spec).unwrap().needs_ecn();
        assert_eq!([needs("gss+dctcp"), needs("gss+cubic"), needs("dctcp")], [true, false, true]);
    }

    /// 10 Gbps and packets of 1500 B: C = 833,333 packets/s, and C*D = 83 packets at D = 100 us. A buffer of 20 is smaller; a fixed K of 103 us
    /// leaves (K - D) C = 2.5 packets, one of 110 us 8.3, which is no caution.
    #[test]
    fn a_composition_passes_on_what_its_parts_caution_of() {
        let path = PathKnowledge { rate: Rate::gbps(10), base_rtt: Duration::us(100), buffer_packets: 20.0 };
        let cautions = |args: &Args| resolve("trim").unwrap().cautions(&[path], Bytes::new(1500), args);
        let short = cautions(&Args::default());
        assert_eq!(short[0].kind, "delay-threshold-below-rtt");
        assert!(short[0].message.contains("buffer of 20 packets is smaller than C*D = 83"), "{}", short[0].message);
        let fixed = |k: f64| {
            let mut args = Args::default();
            args.set("trim_k_fixed", Value::Number(k));
            cautions(&args)
        };
        let small = fixed(103e-6);
        assert_eq!(small[0].kind, "delay-threshold-without-queue");
        assert!(small[0].message.contains("leaves 2.5 packets of queue"), "{}", small[0].message);
        assert!(fixed(110e-6).is_empty());
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
