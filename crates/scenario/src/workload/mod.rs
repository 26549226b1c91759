//! The only list of workloads: a new one is a file here and a line below.

use crate::error::{ScenarioError, nearest};
use crate::plan::{Draft, Workload};
use crate::reader::{Context, Reader};
use crate::transport;
use crate::tree::Node;
use fanin_sim::spec::TransportSpec;
use fanin_units::{Domain, Duration, Setting, Time};

mod bursts;
mod cbr;
mod convergence;
mod http_on_off;
mod incast;
mod long;
mod mapreduce;
mod outcast;
mod poisson;
mod replay;
mod web_search;

/// Every workload, in the order `fanin list workload` shows them.
pub static WORKLOADS: &[WorkloadKind] = &[
    incast::WORKLOAD,
    long::WORKLOAD,
    http_on_off::WORKLOAD,
    web_search::WORKLOAD,
    mapreduce::WORKLOAD,
    poisson::WORKLOAD,
    convergence::WORKLOAD,
    outcast::WORKLOAD,
    cbr::WORKLOAD,
    bursts::WORKLOAD,
    replay::WORKLOAD,
];

/// One registry line.
pub struct WorkloadKind {
    /// As written in `kind = "..."`.
    pub name: &'static str,
    /// One line for `fanin list workload`.
    pub title: &'static str,
    /// Who used it.
    pub source: &'static str,
    /// Its own keys, beside the common ones.
    pub keys: &'static [Setting],
    /// Its traffic is TCP: the keys of [`TCP`] apply.
    pub tcp: bool,
    /// Its flows are in one class, named by `class` or after the workload; otherwise it has several of its own.
    pub one_class: bool,
    pub(crate) build: fn(&Reader<'_>, &mut Workload<'_>) -> Result<(), ScenarioError>,
}

impl WorkloadKind {
    /// All keys that may stand in its table.
    pub fn all_keys(&self) -> Vec<&'static [Setting]> {
        if self.tcp { vec![COMMON, TCP, self.keys] } else { vec![COMMON, self.keys] }
    }
}

/// `kind`, and the keys of every workload.
pub static COMMON: &[Setting] = &[
    Setting::text("kind", "which workload").required(),
    Setting::text("class", "name of this workload's flows and messages in results; its kind unless set"),
    Setting::texts(
        "from",
        "senders: names of hosts or groups, `*` stands for anything; the topology's senders unless set",
    ),
    Setting::texts("to", "receivers, likewise; the topology's receiver unless set"),
    Setting::time("start", "when it begins").default("0s"),
];

/// Keys of every workload over TCP.
pub static TCP: &[Setting] = &[
    Setting::times(
        "deadline",
        "time after its release by which a message should be delivered (D2TCP); none unless set",
    ),
    Setting::of("cc", Domain::Cc, "another algorithm for this workload alone, with its parameters"),
    Setting::of("stack", Domain::Stack, "other knobs for this workload alone"),
];

/// Of workloads whose hosts answer at once.
pub(crate) const JITTER: Setting = Setting::time(
    "jitter",
    "each answer is delayed by a random time, uniform on [0, this); what kernel and card add is `stack.send_jitter`",
)
.default("0s");

/// For workloads that pair hosts.
pub(crate) const PATTERN: Setting = Setting::word(
    "pattern",
    &["fixed", "random", "permutation"],
    "who sends to whom: `from` to `to` as they stand, each sender to a random other host, or a random permutation of all hosts",
)
.default("fixed");

/// The registered workload of this exact name.
pub fn find(name: &str) -> Option<&'static WorkloadKind> {
    WORKLOADS.iter().find(|w| w.name == name)
}

/// Adds what one `[[workload]]` describes.
pub(crate) fn build(
    context: Context<'_>,
    index: usize,
    node: &Node,
    default: (&TransportSpec, Option<&Node>),
    plan: &mut Draft,
) -> Result<(), ScenarioError> {
    let path = format!("workload[{index}]");
    let kind = crate::scenario::kind_of(context, &path, Some(node), None, |name| {
        find(name).ok_or_else(|| (nearest(name, WORKLOADS.iter().map(|w| w.name)), "workload"))
    })?;
    let reader = Reader::new(context, path, Some(node), &kind.all_keys())?;
    reader.opt::<String>("kind")?;
    let spec = if kind.tcp { own_transport(&reader, default)? } else { default.0.clone() };
    let start = Time::ZERO + reader.get::<Duration>("start")?;
    let transport = plan.transport(spec);
    let class = if kind.one_class { plan.class(&reader.or("class", kind.name.to_owned())?) } else { 0 };
    let before = plan.messages.len();
    let mut workload = Workload { plan, index, transport, class, start, deadline: None };
    workload.within(&reader, "start", start)?;
    if kind.tcp {
        let stream = workload.stream("deadline", 0);
        workload.deadline = reader.opt("deadline")?.map(|draw| (draw, stream));
    }
    (kind.build)(&reader, &mut workload)?;
    if workload.deadline.is_some() && workload.plan.messages[before..].iter().all(|m| m.deadline.is_none()) {
        return Err(reader.refuse("deadline", "nothing here ends, so nothing can meet a deadline; remove it"));
    }
    reader.finish()
}

/// The scenario's algorithm and stack, or this workload's own.
fn own_transport(
    reader: &Reader<'_>,
    (default, default_cc): (&TransportSpec, Option<&Node>),
) -> Result<TransportSpec, ScenarioError> {
    let context = reader.context;
    let (cc, stack) = (reader.node("cc"), reader.node("stack"));
    if cc.is_none() && stack.is_none() {
        return Ok(default.clone());
    }
    let stack = transport::stack(context, &reader.key_path("stack"), stack, &default.stack)?;
    // Without a `cc` of its own it has the scenario's, whose errors belong to `[cc]`.
    let (path, node) = if cc.is_some() { (reader.key_path("cc"), cc) } else { ("cc".to_owned(), default_cc) };
    transport::transport(context, &path, node, stack)
}
