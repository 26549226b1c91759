//! What is allowed but probably not meant.

use fanin_cc::model::trim;
use fanin_cc::{Value, registry};
use fanin_sim::spec::{Link, Spec, TransportSpec};
use fanin_sim::stack::EcnMode;
use fanin_units::{Bytes, QueueLimit, Rate};
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
    /// TRIM's K is hardly above the RTT of an empty path.
    #[error(
        "`{cc}`: its delay threshold K of {k} leaves {queue:.1} packets of queue above the empty round trip of {rtt}{on}, as little as host \
         jitter makes; a larger K: `cc.trim_k = \"upper\"`, or `cc.trim_k = \"fixed\"` with `cc.trim_k_fixed`"
    )]
    DelayThresholdWithoutQueue {
        /// The algorithm.
        cc: String,
        /// Its threshold, with its unit.
        k: String,
        /// Packets of queue that K allows on the shortest such path.
        queue: f64,
        /// The round trip of the empty path, with its unit.
        rtt: String,
        /// Which flows, where not all.
        on: String,
    },
    /// TRIM's K is below the RTT of an empty path.
    #[error("{message}")]
    DelayThresholdBelowRtt {
        /// The algorithm.
        cc: String,
        /// What lies below what, and what to set instead.
        message: String,
    },
}

impl Warning {
    /// A stable name of its kind, such as `no-marks`.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The algorithm that it is about, if it is about one.
    pub fn cc(&self) -> Option<&str> {
        match self {
            Warning::NoMarks { cc }
            | Warning::DelayThresholdBelowRtt { cc, .. }
            | Warning::DelayThresholdWithoutQueue { cc, .. } => Some(cc),
            Warning::MarksIgnored { .. } | Warning::BufferBelowPacket { .. } | Warning::MarkAboveBuffer { .. } => None,
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
    found.extend(in_use(spec).filter_map(|(n, transport)| trim_without_a_queue(spec, n, transport)));
    found
}

/// Transports that no flow uses (a default that every workload replaces) do not count.
fn in_use(spec: &Spec) -> impl Iterator<Item = (u32, &TransportSpec)> {
    (0_u32..).zip(&spec.transports).filter(|(n, _)| spec.flows.iter().any(|f| f.transport == *n))
}

fn unheeded_marks(spec: &Spec) -> Vec<Warning> {
    let marking = spec.links.iter().any(|l| l.queue.mark_above.is_some() || l.queue.discipline == "red");
    let in_use: Vec<_> = in_use(spec).map(|(_, t)| t).collect();
    let needs = |cc: &str| registry::needs_switch(cc).unwrap_or(false);
    let mut found: Vec<Warning> = Vec::new();
    if !marking {
        for transport in in_use.iter().filter(|t| needs(&t.cc)) {
            found.push(Warning::NoMarks { cc: transport.cc.clone() });
        }
    }
    let step = spec.links.iter().any(|l| l.queue.mark_above.is_some());
    if step && !in_use.is_empty() && in_use.iter().all(|t| !needs(&t.cc) && t.stack.ecn == EcnMode::Off) {
        found.push(Warning::MarksIgnored { ccs: in_use.iter().map(|t| t.cc.clone()).collect() });
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

/// Packets of queue below which a note says that TRIM's threshold leaves next to none: host jitter and the bursts of a few windows of 2
/// are as large, so TRIM cuts its window while the path is all but empty.
const TRIM_LEAST_QUEUE: f64 = 5.0;

/// TRIM's threshold K below the round trip D of an empty path, where every ACK says "congested", or hardly above it. The paper's fallback
/// (equation 25) comes to the first where the buffer is smaller than C*D; so does a fixed threshold that is too small.
/// docs/algorithms/trim.md, "A trap in the guideline".
fn trim_without_a_queue(spec: &Spec, number: u32, transport: &TransportSpec) -> Option<Warning> {
    if transport.cc.split('+').next_back().map(str::trim) != Some("trim") {
        return None;
    }
    let value = |name: &str| transport.args.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
    let fixed = match value("trim_k_fixed") {
        Some(Value::Number(k)) if *k > 0.0 => Some(*k),
        _ => None,
    };
    let upper = matches!(value("trim_k"), Some(Value::Word(word)) if word == "upper");
    let full = transport.stack.wire(transport.stack.mss);
    let paths = fanin_sim::known_paths(spec).ok()?;
    let mine = spec.flows.iter().zip(&paths).filter(|(f, _)| f.transport == number);
    let (mut all, mut starved, mut short, mut worst) = (0, 0, 0, None);
    for (_, path) in mine {
        let (c, d, b) = (packets_per_second(path.rate, full), path.base_rtt.as_secs(), path.buffer_packets);
        let k = fixed.unwrap_or_else(|| {
            let interval = trim::KInterval::new(c, d, b);
            if upper { interval.upper } else { interval.lower_choice() }
        });
        all += 1;
        let queue = trim::queue_at(c, d, k);
        starved += i32::from(k < d);
        if queue < TRIM_LEAST_QUEUE {
            short += 1;
            if worst.is_none_or(|(w, _, _, _)| queue < w) {
                worst = Some((queue, k, path, c));
            }
        }
    }
    let (queue, k, path, c) = worst?;
    let d = path.base_rtt.as_secs();
    let on = |n: i32| if n == all { String::new() } else { format!(" on {n} of {all} flows") };
    if starved == 0 {
        return Some(Warning::DelayThresholdWithoutQueue {
            cc: transport.cc.clone(),
            k: time(k),
            queue,
            rtt: time(d),
            on: on(short),
        });
    }
    let on = on(starved);
    let what = format!(
        "`{}`: its delay threshold K of {} lies below the empty round trip of {}{on}, so windows sink to 2 even on an idle network",
        transport.cc,
        time(k),
        time(d)
    );
    let message = if fixed.is_some() {
        format!("{what}; set `cc.trim_k_fixed` above that round trip")
    } else {
        format!(
            "{what}: the bottleneck's buffer of {:.0} packets is smaller than C*D = {:.0}; give it {:.0} or more, or set \
             `cc.trim_k = \"fixed\"` and `cc.trim_k_fixed = \"{}\"` (equation 22)",
            path.buffer_packets,
            c * d,
            trim::buffer_needed(c, d).max(c * d).ceil(),
            time(trim::k_lower(c, d)).replace(' ', "")
        )
    };
    Some(Warning::DelayThresholdBelowRtt { cc: transport.cc.clone(), message })
}

fn packets_per_second(rate: Rate, full: Bytes) -> f64 {
    rate.bps() as f64 / (8.0 * full.get() as f64)
}

/// A time with three digits or so.
fn time(seconds: f64) -> String {
    match seconds * 1e6 {
        us if us < 100.0 => format!("{us:.1} us"),
        us if us < 10_000.0 => format!("{us:.0} us"),
        us => format!("{:.1} ms", us / 1e3),
    }
}
