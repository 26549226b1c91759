//! What is allowed but probably not meant.

use fanin_cc::Caution;
use fanin_sim::spec::{Link, Spec, TransportSpec};
use fanin_sim::stack::EcnMode;
use fanin_units::{Bytes, QueueLimit};
use strum::IntoStaticStr;

/// A setting that makes no difference to what runs, or that starves it. `Display` is the sentence for people.
#[derive(Clone, Debug, PartialEq, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// The algorithm acts on marks, and no port makes any.
    #[error("`{cc}` needs switches that mark, and none does: set `topology.mark`")]
    NoMarks {
        /// The algorithm.
        cc: String,
    },
    /// Ports mark, and no sender is ECN-capable.
    #[error(
        "switches mark, but no flow is ECN-capable: {} without `stack.ecn` {} marks", quoted(.ccs),
        if .ccs.len() == 1 { "ignores" } else { "ignore" }
    )]
    MarksIgnored {
        /// The algorithms in use.
        ccs: Vec<String>,
    },
    /// A buffer in bytes that holds no full packet.
    #[error("port {port}{} has a buffer of {buffer}, and a full packet is {packet}: none gets through", more(*.others))]
    BufferBelowPacket {
        /// The first such port.
        port: String,
        /// How many other ports are like it.
        others: usize,
        /// Its limit.
        buffer: QueueLimit,
        /// Wire size of a full packet.
        packet: Bytes,
    },
    /// A marking threshold that the buffer is too small to reach.
    #[error("port {port}{} marks above {mark}, but its buffer of {buffer} holds no more: nothing is ever marked", more(*.others))]
    MarkAboveBuffer {
        /// The first such port.
        port: String,
        /// How many other ports are like it.
        others: usize,
        /// Its marking threshold.
        mark: QueueLimit,
        /// Its limit.
        buffer: QueueLimit,
    },
    /// Nothing says which host of the network is which server of a replayed capture, and that makes a difference.
    #[error(
        "the capture's servers were put on hosts in the order in which it shows them: {places}; these hosts differ in their links, so say by address which is which, as in `hosts = {{ h1 = \"10.0.0.2\" }}`"
    )]
    AssumedPlaces {
        /// Which was put where; the first of them.
        places: String,
    },
    /// Several servers of a replayed capture share a host, and so its link.
    #[error(
        "{servers} servers of the capture share {hosts} host{}: several send through one link; give the network as many hosts as there are servers, or say in `hosts` which share one",
        if *.hosts == 1 { "" } else { "s" }
    )]
    SharedHosts {
        /// Servers in the capture.
        servers: usize,
        /// Hosts that stand for them.
        hosts: usize,
    },
    /// What the algorithm itself has to say about the paths that it is to run on.
    #[error("{}", caution.message)]
    Algorithm {
        /// The algorithm.
        cc: String,
        /// Its kind and its sentence.
        caution: Caution,
    },
}

impl Warning {
    /// A stable name of its kind, such as `no-marks`.
    pub fn kind(&self) -> &'static str {
        if let Warning::Algorithm { caution, .. } = self { caution.kind } else { self.into() }
    }

    /// The algorithm that it is about, if it is about one.
    pub fn cc(&self) -> Option<&str> {
        match self {
            Warning::NoMarks { cc } | Warning::Algorithm { cc, .. } => Some(cc),
            Warning::MarksIgnored { .. }
            | Warning::BufferBelowPacket { .. }
            | Warning::MarkAboveBuffer { .. }
            | Warning::AssumedPlaces { .. }
            | Warning::SharedHosts { .. } => None,
        }
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" (as {others} more)") }
}

/// Each setting that makes no difference to what runs, or that starves it.
///
/// ```
/// use fanin_scenario::{Scenario, warnings};
/// let text = "[topology]\nmark = \"20p\"\n[[workload]]\nkind = \"incast\"\nbytes = \"64KB\"";
/// let spec = Scenario::from_text(text, "example").unwrap().plan(1).unwrap();
/// let found = &warnings(&spec)[0];
/// assert_eq!(found.kind(), "marks-ignored");
/// assert_eq!(found.to_string(), "switches mark, but no flow is ECN-capable: `newreno` without `stack.ecn` ignores marks");
/// ```
pub fn warnings(spec: &Spec) -> Vec<Warning> {
    let mut found = unheeded_marks(spec);
    found.extend(starving(spec));
    found
}

/// The part of [`warnings`] that makes results worthless whatever they are compared with: nothing gets through, or hardly anything.
pub fn starving(spec: &Spec) -> Vec<Warning> {
    let mut found = blocked_ports(spec);
    let checked: Vec<_> = in_use(spec).filter(|(_, t)| t.cc.parts().iter().any(|part| part.check.is_some())).collect();
    // The paths are looked for only where an algorithm has something to say about them.
    let paths = if checked.is_empty() { Vec::new() } else { fanin_sim::known_paths(spec).unwrap_or_default() };
    for (number, transport) in checked {
        let mine: Vec<_> =
            spec.flows.iter().zip(&paths).filter(|(f, _)| f.transport == number).map(|(_, path)| *path).collect();
        let wire = transport.stack.wire(transport.stack.mss);
        let cautions = transport.cc.cautions(&mine, wire, &transport.args);
        found.extend(cautions.into_iter().map(|caution| Warning::Algorithm { cc: transport.cc.to_string(), caution }));
    }
    found
}

/// Transports that no flow uses (a default that every workload replaces) do not count.
fn in_use(spec: &Spec) -> impl Iterator<Item = (u32, &TransportSpec)> {
    (0_u32..).zip(&spec.transports).filter(|(n, _)| spec.flows.iter().any(|f| f.transport == *n))
}

fn unheeded_marks(spec: &Spec) -> Vec<Warning> {
    let marking = spec.links.iter().any(|l| l.queue.mark_above.is_some() || l.queue.discipline.marks);
    let in_use: Vec<_> = in_use(spec).map(|(_, t)| t).collect();
    let mut found: Vec<Warning> = Vec::new();
    if !marking {
        for transport in in_use.iter().filter(|t| t.cc.needs_ecn()) {
            found.push(Warning::NoMarks { cc: transport.cc.to_string() });
        }
    }
    let step = spec.links.iter().any(|l| l.queue.mark_above.is_some());
    if step && !in_use.is_empty() && in_use.iter().all(|t| !t.cc.needs_ecn() && t.stack.ecn == EcnMode::Off) {
        found.push(Warning::MarksIgnored { ccs: in_use.iter().map(|t| t.cc.to_string()).collect() });
    }
    found.dedup();
    found
}

/// Ports whose buffer in bytes holds no full packet, or no marked one; limits in the same unit are compared where they are read.
fn blocked_ports(spec: &Spec) -> Vec<Warning> {
    let Some(full) = in_use(spec).map(|(_, t)| t.stack.wire(t.stack.mss)).max() else { return Vec::new() };
    let mut found = Vec::new();
    let small = |l: &Link| matches!(l.queue.limit, Some(QueueLimit::Bytes(limit)) if limit < full);
    let (first, others) = first_and_others(spec, small);
    if let Some((link, buffer)) = first.and_then(|l| Some((l, l.queue.limit?))) {
        found.push(Warning::BufferBelowPacket { port: port(spec, link), others, buffer, packet: full });
    }
    let bytes = |limit: QueueLimit| match limit {
        QueueLimit::Packets(n) => full * u64::from(n),
        QueueLimit::Bytes(b) => b,
    };
    let unmarked = |l: &Link| match (l.queue.mark_above, l.queue.limit) {
        (Some(mark), Some(limit)) => bytes(mark) >= bytes(limit),
        _ => false,
    };
    let (first, others) = first_and_others(spec, unmarked);
    if let Some((link, mark, buffer)) = first.and_then(|l| Some((l, l.queue.mark_above?, l.queue.limit?))) {
        found.push(Warning::MarkAboveBuffer { port: port(spec, link), others, mark, buffer });
    }
    found
}

/// The first such link, and how many others there are.
fn first_and_others(spec: &Spec, is: impl Fn(&Link) -> bool) -> (Option<&Link>, usize) {
    let mut such = spec.links.iter().filter(|l| is(l));
    (such.next(), such.count())
}

fn port(spec: &Spec, link: &Link) -> String {
    format!("{}->{}", spec.nodes[link.from.index()].name, spec.nodes[link.to.index()].name)
}
