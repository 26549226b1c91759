//! A scenario file, from text to a plan.

use crate::error::{Place, ScenarioError};
use crate::kind::looks_like_a_capture;
use crate::plan::Draft;
use crate::reader::{Context, FromNode, Reader};
use crate::tree::{Item, Node, Override, Table, parse};
use crate::warnings::Warning;
use crate::{hash, hosts, measure, topology, transport, workload};
use fanin_cc::Profile;
use fanin_sim::hosts::HostModel;
use fanin_sim::spec::{Message, Spec};
use fanin_sim::stack::{Coalesce, Stack};
use fanin_units::{Domain, Duration, Setting, Time};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A parsed scenario with its overrides. Names and values are checked by [`Scenario::plan`].
#[derive(Clone, Debug)]
pub struct Scenario {
    file: String,
    folder: PathBuf,
    root: Table,
}

/// Keys of the document.
pub static ROOT: &[Setting] = &[
    Setting::text("title", "one line for reports"),
    Setting::of("topology", Domain::Tables(topology::COMMON), "the network"),
    HOSTS,
    Setting::of("stack", Domain::Stack, "the endpoint: a profile, and any knob"),
    Setting::of("cc", Domain::Cc, "congestion control: `name`, and the algorithm's parameters beside it"),
    Setting::of("workload", Domain::Tables(workload::COMMON), "what the applications send; at least one"),
    Setting::of("run", Domain::Tables(RUN), "how long, and with which seeds"),
    Setting::of("measure", Domain::Tables(measure::KEYS), "what to record beside the totals"),
];

/// Of scenarios and racks.
pub const HOSTS: Setting = Setting::of(
    "hosts",
    Domain::Hosts,
    "what every host costs: interrupts, GRO, processors, the application; a preset, a file or a table",
);

/// Keys of `[run]`.
pub static RUN: &[Setting] = &[
    Setting::time("duration", "the run ends here at the latest").default("10s").positive(),
    Setting::count_to("seed", 0, i64::MAX as u64, "the one seed to run with; 1 unless set"),
    Setting::of("seeds", Domain::Seeds, "how many seeds, counted from 1, or a list of them, instead of `seed`"),
    Setting::flag(
        "stop_when_done",
        "stop as soon as every finite message is delivered; on unless something has no end",
    ),
];

/// More seeds than this are a mistake.
const MAX_SEEDS: u64 = 1_000_000;

/// Each may have an algorithm, a stack and a class of its own, of which there are 65,536 at most.
const MOST_WORKLOADS: usize = 10_000;

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ScenarioError`] when the file cannot be read or is not TOML.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Scenario, ScenarioError> {
        let path = path.as_ref();
        let text = read_text(path)?;
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        Ok(Scenario { root: parse(&text, &path.display().to_string())?, file: path.display().to_string(), folder })
    }

    /// Reads text; `name` stands for the file in messages. Relative paths in it start from the current folder.
    ///
    /// # Errors
    /// [`ScenarioError`] when it is not TOML.
    pub fn from_text(text: &str, name: &str) -> Result<Scenario, ScenarioError> {
        Ok(Scenario { root: parse(text, name)?, file: name.to_owned(), folder: PathBuf::new() })
    }

    /// The scenario with its relative paths starting from `folder`, as those of a file start from the file's.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Scenario {
        self.folder = folder.into();
        self
    }

    /// The scenario with changes on top, `--cc` and `--seed` before `--set`.
    ///
    /// # Errors
    /// [`ScenarioError`] when an override names something that cannot be set.
    pub fn with(mut self, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        let is_set = |o: &&Override| matches!(o, Override::Set { .. });
        for change in overrides.iter().filter(|o| !is_set(o)).chain(overrides.iter().filter(is_set)) {
            change.apply(&mut self.root)?;
        }
        Ok(self)
    }

    /// Its name in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    fn context(&self) -> Context<'_> {
        Context { file: &self.file, folder: &self.folder }
    }

    fn root(&self) -> Result<(Node, Context<'_>), ScenarioError> {
        let node = Node { place: Place::Nowhere, item: Item::Table(self.root.clone()) };
        Reader::new(self.context(), "", Some(&node), &[ROOT])?;
        Ok((node, self.context()))
    }

    /// One line for reports, if it has one.
    ///
    /// # Errors
    /// [`ScenarioError`] when it is not text.
    pub fn title(&self) -> Result<Option<String>, ScenarioError> {
        let (node, context) = self.root()?;
        Reader::new(context, "", Some(&node), &[ROOT])?.opt("title")
    }

    /// The seeds it asks for; at least one.
    ///
    /// # Errors
    /// [`ScenarioError`] when they are none, too many, or not whole numbers.
    pub fn seeds(&self) -> Result<Vec<u64>, ScenarioError> {
        let (_, context) = self.root()?;
        let run = Reader::new(context, "run", self.root.get("run"), &[RUN])?;
        seeds(&run)
    }

    /// Resolves everything for one seed.
    ///
    /// # Errors
    /// [`ScenarioError`] for the first thing that is unknown, unused, out of range or contradictory.
    pub fn plan(&self, seed: u64) -> Result<Spec, ScenarioError> {
        Ok(self.plan_with_notes(seed)?.0)
    }

    /// [`Scenario::plan`], and what its workloads assumed where the file is silent: beside [`warnings`](crate::warnings), for the user to know.
    ///
    /// # Errors
    /// As [`Scenario::plan`].
    pub fn plan_with_notes(&self, seed: u64) -> Result<(Spec, Vec<Warning>), ScenarioError> {
        let (node, context) = self.root()?;
        Reader::new(context, "", Some(&node), &[ROOT])?.opt::<String>("title")?;
        let net = topology::build(context, self.root.get("topology"))?;
        let hosts = hosts::read(context, self.root.get("hosts"))?;
        let base = default_stack();
        let stack = transport::stack(context, "stack", self.root.get("stack"), &base)?;
        let cc = self.root.get("cc");
        let default = transport::transport(context, "cc", cc, stack)?;

        let run = Reader::new(context, "run", self.root.get("run"), &[RUN])?;
        seeds(&run)?;
        let end = Time::ZERO + run.get::<Duration>("duration")?;
        let mut plan = Draft::new(net, seed, end);
        for (index, node) in self.workloads()?.iter().enumerate() {
            workload::build(context, index, node, (&default, cc), &mut plan)?;
        }
        let stop_when_done = stop_when_done(&run, &plan)?;
        run.finish()?;
        let trace = measure::read(context, self.root.get("measure"), &plan)?;
        let notes = std::mem::take(&mut plan.notes);
        Ok((finish(plan, hosts, trace, stop_when_done), notes))
    }

    /// A problem with the value of a key such as `stack.profile`, for rules that are not the scenario's own; where it stands, if the
    /// file or an override has it.
    pub fn problem(&self, key: &str, code: &'static str, message: impl Into<String>) -> ScenarioError {
        let mut place = Place::Nowhere;
        let mut table = Some(&self.root);
        for part in key.split('.') {
            let Some(node) = table.and_then(|t| t.get(part)) else { break };
            place = node.place.clone();
            table = if let Item::Table(inner) = &node.item { Some(inner) } else { None };
        }
        ScenarioError::new(code, message).at(&self.file, &place, key)
    }

    /// Stable hash of everything that decides the results, the seed aside: two scenarios with equal hashes give equal results for
    /// equal seeds. Comments, order and spelling do not count; defaults and distribution files do.
    ///
    /// # Errors
    /// As [`Scenario::plan`].
    pub fn hash(&self) -> Result<String, ScenarioError> {
        Ok(hash::spec(&self.plan(0)?))
    }

    fn workloads(&self) -> Result<&[Node], ScenarioError> {
        match self.root.get("workload") {
            Some(Node { item: Item::List(list), place }) if list.len() > MOST_WORKLOADS => Err(ScenarioError::new(
                "scenario::out-of-range",
                format!("{} of them, and {MOST_WORKLOADS} are the most; one workload may have many flows", list.len()),
            )
            .at(&self.file, place, "workload")),
            Some(Node { item: Item::List(list), .. }) if !list.is_empty() => Ok(list),
            Some(Node { item: Item::Table(_), place }) => Err(ScenarioError::new(
                "scenario::wrong-kind",
                "a workload is one of a list: write `[[workload]]` with two brackets",
            )
            .at(&self.file, place, "workload")),
            Some(Node { item: Item::List(_), place }) => Err(none().at(&self.file, place, "workload")),
            Some(Node { item, place }) => {
                Err(ScenarioError::new("scenario::wrong-kind", format!("it is {}", item.what()))
                    .at(&self.file, place, "workload")
                    .expected("tables headed `[[workload]]`"))
            }
            None => Err(none().at(&self.file, &Place::Nowhere, "")),
        }
    }
}

fn none() -> ScenarioError {
    ScenarioError::new(
        "scenario::missing-key",
        "there is no workload: add a `[[workload]]`; `fanin list workload` shows all kinds",
    )
}

/// The endpoint of a scenario that does not say.
pub(crate) fn default_stack() -> Stack {
    fanin_sim::knobs::profile(transport::DEFAULT_PROFILE).map_or_else(Stack::rfc, |p| (p.stack)())
}

/// What the engine runs.
pub(crate) fn finish(
    mut plan: Draft,
    hosts: HostModel,
    trace: fanin_sim::spec::TraceSpec,
    stop_when_done: bool,
) -> Spec {
    for transport in &mut plan.transports {
        let stack = &mut transport.stack;
        stack.tso |= hosts.tso && stack.cc_profile == Profile::Linux;
        // A card fills buffers of the receiver's own.
        if !hosts.is_ideal() && stack.coalesce == Coalesce::Acknowledged {
            stack.coalesce = Coalesce::Always;
        }
    }
    Spec {
        hosts,
        nodes: plan.net.nodes,
        links: plan.net.links,
        routing: plan.net.routing,
        transports: plan.transports,
        flows: plan.flows,
        messages: plan.messages,
        barriers: plan.barriers,
        gates: plan.gates,
        cbr: plan.cbr,
        end: plan.end,
        stop_when_done,
        seed: plan.seed,
        trace,
    }
}

fn seeds(run: &Reader<'_>) -> Result<Vec<u64>, ScenarioError> {
    let one = run.opt::<u64>("seed")?;
    let Some(node) = run.node("seeds") else { return Ok(vec![one.unwrap_or(1)]) };
    if one.is_some() {
        return Err(run.refuse("seeds", "`seed` is set too; remove one of the two"));
    }
    let count = |n: i64| u64::try_from(n).ok().filter(|n| (1..=MAX_SEEDS).contains(n));
    match &node.item {
        Item::Integer(n) => match count(*n) {
            Some(n) => Ok((1..=n).collect()),
            None => Err(run.refuse("seeds", format!("it is {n}; the number of seeds must be from 1 to {MAX_SEEDS}"))),
        },
        Item::List(list) if !list.is_empty() => {
            let key = Setting::count_to("seeds", 0, i64::MAX as u64, "");
            let seeds: Vec<u64> = list.iter().map(|n| u64::from_node(run, &key, n)).collect::<Result<_, _>>()?;
            let mut sorted = seeds.clone();
            sorted.sort_unstable();
            match sorted.windows(2).find(|w| w[0] == w[1]) {
                Some(w) => Err(run.refuse("seeds", format!("the seed {} is listed twice", w[0]))),
                None => Ok(seeds),
            }
        }
        Item::List(_) => Err(run.refuse("seeds", "the list is empty; name at least one seed")),
        huge @ Item::Huge(_) => {
            let what = huge.what();
            Err(run.refuse("seeds", format!("it is {what}; the number of seeds must be from 1 to {MAX_SEEDS}")))
        }
        other => Err(run
            .fail("seeds", "scenario::wrong-kind", format!("it is {}", other.what()))
            .expected(Domain::Seeds.expects())),
    }
}

fn stop_when_done(run: &Reader<'_>, plan: &Draft) -> Result<bool, ScenarioError> {
    let endless = plan.messages.iter().any(|m| m.bytes == Message::UNLIMITED) || !plan.cbr.is_empty();
    let finite = plan.messages.iter().any(|m| m.bytes != Message::UNLIMITED);
    match run.opt("stop_when_done")? {
        Some(true) if !finite => Err(run.refuse(
            "stop_when_done",
            "nothing here ever ends, so the run would stop at once; remove it, or give a workload `bytes`",
        )),
        Some(stop) => Ok(stop),
        None => Ok(finite && !endless),
    }
}

/// The registered thing that a table's `kind` names.
pub(crate) fn kind_of<T>(
    context: Context<'_>,
    path: &str,
    node: Option<&Node>,
    default: Option<&str>,
    find: impl Fn(&str) -> Result<&'static T, (Option<String>, &'static str)>,
) -> Result<&'static T, ScenarioError> {
    let table = match node {
        Some(Node { item: Item::Table(table), .. }) => Some(table),
        Some(other) => {
            return Err(ScenarioError::new(
                "scenario::wrong-kind",
                format!("it is {}, not a table", other.item.what()),
            )
            .at(context.file, &other.place, path));
        }
        None => None,
    };
    let entry = table.and_then(|t| t.get("kind"));
    let place = entry.or(node).map_or(&Place::Nowhere, |n| &n.place);
    let name = match (entry.map(|n| &n.item), default) {
        (Some(Item::Text(name)), _) => name.as_str(),
        (Some(other), _) => {
            return Err(ScenarioError::new("scenario::wrong-kind", format!("it is {}", other.what()))
                .at(context.file, place, format!("{path}.kind"))
                .expected("a name in quotes"));
        }
        (None, Some(default)) => default,
        (None, None) => {
            return Err(ScenarioError::new("scenario::missing-key", "`kind` must be set, as in `kind = \"incast\"`")
                .at(context.file, place, path));
        }
    };
    find(name).map_err(|(near, what)| {
        ScenarioError::new(
            "scenario::unknown-kind",
            format!("no {what} is named `{name}`; `fanin list {what}` shows all"),
        )
        .at(context.file, place, format!("{path}.kind"))
        .nearest(near)
    })
}

/// Bytes of a scenario, rack or sweep, at most: a device or a sparse file may have no end.
pub const MOST_TEXT: u64 = 16_000_000;

/// Text of a file, or a sentence about why not.
pub(crate) fn read_text(path: &Path) -> Result<String, ScenarioError> {
    let fail = |why: String| {
        Err(ScenarioError::new("scenario::file", why).at(&path.display().to_string(), &Place::Nowhere, ""))
    };
    if path.is_dir() {
        return fail("this is a folder; name the scenario file in it".to_owned());
    }
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return fail("it is no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let read = fanin_capture::open_text(path).and_then(|file| file.take(MOST_TEXT + 1).read_to_end(&mut bytes));
    match read.map(|_| bytes) {
        Err(e) => fail(format!("it cannot be read: {}", io_reason(&e))),
        Ok(bytes) if bytes.is_empty() => fail("the file is empty".to_owned()),
        Ok(bytes) if looks_like_a_capture(&bytes) => {
            fail("the file is no text but looks like a packet capture: `fanin compare CAPTURE` takes it".to_owned())
        }
        Ok(bytes) if bytes.len() as u64 > MOST_TEXT => {
            fail(format!("it is larger than {} MB, which no scenario is", MOST_TEXT / 1_000_000))
        }
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(_) => fail("the file is not text (UTF-8); save it as UTF-8".to_owned()),
        },
    }
}

/// The operating system's reason without its number.
pub(crate) fn io_reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
