//! The only list of workloads: a new one is a file here and a line below.

use crate::error::{ScenarioError, nearest};
use crate::keys::{Key, Kind};
use crate::plan::{Plan, Workload};
use crate::reader::{Context, Reader};
use crate::transport;
use crate::tree::Node;
use fanin_sim::spec::TransportSpec;
use fanin_units::{Duration, Time};

mod http_on_off;
mod incast;
mod long;
mod replay;

/// Every workload, in the order `fanin list workload` shows them.
pub static WORKLOADS: &[WorkloadKind] = &[incast::WORKLOAD, long::WORKLOAD, http_on_off::WORKLOAD, replay::WORKLOAD];

/// One registry line.
pub struct WorkloadKind {
    /// As written in `kind = "..."`.
    pub name: &'static str,
    /// One line for `fanin list workload`.
    pub title: &'static str,
    /// Who used it.
    pub source: &'static str,
    /// Its own keys, beside the common ones.
    pub keys: &'static [Key],
    pub(crate) build: fn(&Reader<'_>, &mut Workload<'_>) -> Result<(), ScenarioError>,
}

/// `kind`, and the keys of every workload.
pub static COMMON: &[Key] = &[
    Key::text("kind", "which workload").required(),
    Key::text("class", "name of this workload's flows and messages in results; its kind unless set"),
    Key::texts("from", "senders: names of hosts or groups, `*` stands for anything; the topology's senders unless set"),
    Key::texts("to", "receivers, likewise; the topology's receiver unless set"),
    Key::time("start", "when it begins").default("0s"),
    Key::times("deadline", "time after its release by which a message should be delivered (D2TCP); none unless set"),
    Key::of("cc", Kind::Cc, "another algorithm for this workload alone, with its parameters"),
    Key::of("stack", Kind::Stack, "other knobs for this workload alone"),
];

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
    plan: &mut Plan,
) -> Result<(), ScenarioError> {
    let path = format!("workload[{index}]");
    let kind = crate::scenario::kind_of(context, &path, Some(node), None, |name| {
        find(name).ok_or_else(|| (nearest(name, WORKLOADS.iter().map(|w| w.name)), "workload"))
    })?;
    let reader = Reader::new(context, path, Some(node), &[COMMON, kind.keys])?;
    reader.opt::<String>("kind")?;
    let (cc, stack) = (reader.node("cc"), reader.node("stack"));
    let spec = if cc.is_some() || stack.is_some() {
        let stack = transport::stack(context, &reader.key_path("stack"), stack, &default.0.stack)?;
        // Without a `cc` of its own it has the scenario's, whose errors belong to `[cc]`.
        let (path, node) = if cc.is_some() { (reader.key_path("cc"), cc) } else { ("cc".to_owned(), default.1) };
        transport::transport(context, &path, node, stack)?
    } else {
        default.0.clone()
    };
    let class = reader.or("class", kind.name.to_owned())?;
    let start = Time::ZERO + reader.get::<Duration>("start")?;
    let transport = plan.transport(spec);
    let class = plan.class(&class);
    let mut workload = Workload { plan, index, transport, class, start, deadline: None };
    workload.within(&reader, "start", start)?;
    let stream = workload.stream("deadline", 0);
    workload.deadline = reader.opt("deadline")?.map(|draw| (draw, stream));
    (kind.build)(&reader, &mut workload)?;
    reader.finish()
}
