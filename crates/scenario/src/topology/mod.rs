//! The only list of topologies: a new one is a file here and a line below.

use crate::error::{ScenarioError, nearest};
use crate::net::{Common, LinkParams, Net};
use crate::reader::Reader;
use crate::transport::params;
use crate::tree::{Item, Node};
use fanin_sim::queue;
use fanin_sim::spec::{Queue, Routing, SharedBuffer};
use fanin_units::{Bytes, Domain, Duration, QueueLimit, Rate, Setting};

mod custom;
mod dctcp_multihop;
mod dumbbell;
mod fat_tree;
mod leaf_spine;
mod multihop;
mod star;
mod testbed;

/// Every topology, in the order `fanin list topology` shows them.
pub static TOPOLOGIES: &[Topology] = &[
    star::TOPOLOGY,
    dumbbell::TOPOLOGY,
    multihop::TOPOLOGY,
    dctcp_multihop::TOPOLOGY,
    testbed::TOPOLOGY,
    leaf_spine::TOPOLOGY,
    fat_tree::TOPOLOGY,
    custom::TOPOLOGY,
];

/// One registry line.
pub struct Topology {
    /// As written in `kind = "..."`.
    pub name: &'static str,
    /// One line for `fanin list topology`.
    pub title: &'static str,
    /// Who used it.
    pub source: &'static str,
    /// Named hosts, groups and ports.
    pub names: &'static str,
    /// Its own keys, beside the common ones.
    pub keys: &'static [Setting],
    pub(crate) build: fn(&Reader<'_>, &Common) -> Result<Net, ScenarioError>,
}

/// Which topology.
pub static KIND: &[Setting] =
    &[Setting::text("kind", "which topology; `fanin list topology` shows all").default("star")];

/// The keys of every topology.
pub static COMMON: &[Setting] = &[
    Setting::rate("rate", "rate of every link").default("1Gbps"),
    Setting::time("delay", "propagation delay of every link, one way").default("50us"),
    Setting::queue("buffer", "drop-tail limit of every switch port, in packets or bytes").default("100p").positive(),
    MARK,
    QUEUE,
    HOST_BUFFER,
    PROCESSING,
    SHARED[0],
    SHARED[1],
];

pub(crate) const MARK: Setting = Setting::queue(
    "mark",
    "mark ECN-capable packets when a switch port's queue exceeds this (DCTCP's K); off unless set",
)
.positive();
pub(crate) const QUEUE: Setting = Setting::of(
    "queue",
    Domain::Discipline,
    "another discipline at every switch port, with its parameters; drop-tail unless set",
);
pub(crate) const HOST_BUFFER: Setting =
    Setting::queue("host_buffer", "limit of a host's own port; unlimited unless set").positive();
pub(crate) const PROCESSING: Setting =
    Setting::time("processing", "added to every packet a switch forwards").default("0s");
pub(crate) const SHARED: [Setting; 2] = [
    Setting::size("shared_buffer", "a buffer that all ports of a switch share, instead of `buffer` per port")
        .positive(),
    Setting::number(
        "shared_alpha",
        0.001,
        1e6,
        "share of the free shared buffer that one port may take (dynamic threshold)",
    )
    .default("1"),
];

/// For topologies with more than one path.
pub(crate) const ROUTING: Setting = Setting::word(
    "routing",
    &["flow-hash", "spray", "equal-length", "lowest"],
    "ECMP by a hash of the flow, a path per packet, always through the core (equally long paths), or always the lowest-numbered next hop (ns-2's static routes)",
)
.default("flow-hash");

/// Group of all hosts, in every topology.
pub(crate) const ALL: &str = "hosts";

/// The registered topology of this exact name.
pub fn find(name: &str) -> Option<&'static Topology> {
    TOPOLOGIES.iter().find(|t| t.name == name)
}

/// Builds what `[topology]` describes.
pub(crate) fn build(context: crate::reader::Context<'_>, node: Option<&Node>) -> Result<Net, ScenarioError> {
    let kind = crate::scenario::kind_of(context, "topology", node, KIND[0].default_text(), |name| {
        find(name).ok_or_else(|| (nearest(name, TOPOLOGIES.iter().map(|t| t.name)), "topology"))
    })?;
    let reader = Reader::new(context, "topology", node, &[KIND, COMMON, kind.keys])?;
    reader.opt::<String>("kind")?;
    let common = common(&reader)?;
    let mut net = (kind.build)(&reader, &common)?;
    reader.finish()?;
    net.group(ALL, net.hosts());
    check_names(&reader, &net)?;
    Ok(net)
}

pub(crate) fn common(reader: &Reader<'_>) -> Result<Common, ScenarioError> {
    let routing = if reader.declares("routing") { reader.get("routing")? } else { String::new() };
    let shared_buffer = match reader.opt::<Bytes>("shared_buffer")? {
        Some(size) => Some(SharedBuffer { size, alpha: reader.get("shared_alpha")? }),
        None => None,
    };
    if shared_buffer.is_some() && reader.has("buffer") {
        return Err(reader
            .refuse("buffer", "with `shared_buffer` the ports have no limits of their own; remove one of the two"));
    }
    Ok(Common {
        processing: reader.get("processing")?,
        shared_buffer,
        host_queue: Queue::drop_tail(reader.opt("host_buffer")?),
        routing: match routing.as_str() {
            "spray" => Routing::Spray,
            "equal-length" => Routing::EqualLength,
            "lowest" => Routing::Lowest,
            _ => Routing::FlowHash,
        },
    })
}

/// Rate, delay and switch queue from `<prefix>rate`, `<prefix>delay`, `<prefix>buffer`, `<prefix>mark`; what is not set is as in
/// `base`, the link of the unprefixed keys.
pub(crate) fn link_params(
    reader: &Reader<'_>,
    prefix: &str,
    base: Option<&LinkParams>,
) -> Result<LinkParams, ScenarioError> {
    let key = |name: &str| format!("{prefix}{name}");
    let Some(base) = base else {
        let limit = if reader.has("shared_buffer") { None } else { Some(reader.get("buffer")?) };
        let mut queue = Queue::drop_tail(limit);
        queue.mark_above = reader.opt("mark")?;
        discipline(reader, &mut queue)?;
        check_mark(reader, "mark", &queue)?;
        return Ok(LinkParams { rate: reader.get("rate")?, delay: reader.get("delay")?, queue });
    };
    let mut link = base.clone();
    link.rate = reader.or::<Rate>(&key("rate"), link.rate)?;
    link.delay = reader.or::<Duration>(&key("delay"), link.delay)?;
    let (buffer, mark) = (key("buffer"), key("mark"));
    if let Some(limit) = reader.opt::<QueueLimit>(&buffer)? {
        if reader.has("shared_buffer") {
            return Err(reader
                .refuse(&buffer, "with `shared_buffer` the ports have no limits of their own; remove one of the two"));
        }
        link.queue.limit = Some(limit);
    }
    if let Some(k) = reader.opt::<QueueLimit>(&mark)? {
        link.queue.mark_above = Some(k);
    }
    check_mark(reader, if reader.has(&mark) { &mark } else { &buffer }, &link.queue)?;
    Ok(link)
}

/// The keys that [`link_params`] reads for a prefix.
macro_rules! link_keys {
    ($prefix:literal, $what:literal) => {
        [
            fanin_units::Setting::rate(concat!($prefix, "rate"), concat!("rate of ", $what, "; as `rate` unless set")),
            fanin_units::Setting::time(
                concat!($prefix, "delay"),
                concat!("delay of ", $what, "; as `delay` unless set"),
            ),
            fanin_units::Setting::queue(
                concat!($prefix, "buffer"),
                concat!("drop-tail limit at ", $what, "; as `buffer` unless set"),
            )
            .positive(),
            fanin_units::Setting::queue(concat!($prefix, "mark"), concat!("K at ", $what, "; as `mark` unless set"))
                .positive(),
        ]
    };
}
pub(crate) use link_keys;

fn check_mark(reader: &Reader<'_>, key: &str, queue: &Queue) -> Result<(), ScenarioError> {
    let above = match (queue.mark_above, queue.limit) {
        (Some(QueueLimit::Packets(k)), Some(QueueLimit::Packets(limit))) => k >= limit,
        (Some(QueueLimit::Bytes(k)), Some(QueueLimit::Bytes(limit))) => k >= limit,
        _ => false,
    };
    match (above, queue.mark_above, queue.limit) {
        (true, Some(mark), Some(limit)) => Err(reader.refuse(
            key,
            format!("the marking threshold of {mark} must lie below the buffer of {limit}, or nothing is ever marked"),
        )),
        _ => Ok(()),
    }
}

fn discipline(reader: &Reader<'_>, queue: &mut Queue) -> Result<(), ScenarioError> {
    let Some(node) = reader.node("queue") else { return Ok(()) };
    let path = reader.key_path("queue");
    let Item::Table(table) = &node.item else {
        return Err(reader
            .fail("queue", "scenario::wrong-kind", format!("it is {}", node.item.what()))
            .expected(Domain::Discipline.expects()));
    };
    let (name, place) = match table.get("name") {
        Some(Node { item: Item::Text(name), place }) => (name, place),
        Some(other) => {
            return Err(ScenarioError::new("scenario::wrong-kind", format!("it is {}", other.item.what()))
                .at(reader.context.file, &other.place, format!("{path}.name"))
                .expected("the name of a discipline in quotes"));
        }
        None => {
            return Err(reader
                .fail("queue", "scenario::missing-key", "`name` must be set: which discipline")
                .expected(Domain::Discipline.expects()));
        }
    };
    let Some(found) = queue::find(name) else {
        let names = || queue::DISCIPLINES.iter().map(|d| d.name);
        let near = nearest(name, names());
        let message =
            format!("no queue discipline is named `{name}`; there are {}", names().collect::<Vec<_>>().join(", "));
        return Err(ScenarioError::new("scenario::unknown-queue", message)
            .at(reader.context.file, place, format!("{path}.name"))
            .nearest(near));
    };
    queue.discipline = found;
    queue.args = params(reader.context, &path, table, &[("queue", name, found.params)], fanin_cc::Profile::Rfc)?;
    let port = queue::Context { rate: Rate::gbps(1), random: fanin_sim::rng::Stream::new(0, "check", 0) };
    let problem = match found.build {
        queue::Build::Plain => None,
        queue::Build::Admission(build) => build(&port, &queue.args).err(),
        queue::Build::Scheduler(build) => build(&port, &queue.args).err(),
    };
    problem.map_or(Ok(()), |e| Err(reader.refuse("queue", e.to_string())))
}

fn check_names(reader: &Reader<'_>, net: &Net) -> Result<(), ScenarioError> {
    let mut names: Vec<&str> = net.nodes.iter().map(|n| n.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|w| w[0] == w[1]) {
        Some(w) => Err(reader.fail_here("scenario::not-possible", format!("two nodes are named `{}`", w[0]))),
        None => Ok(()),
    }
}
