//! A rack to replay a capture on: `rack.toml` of `fanin compare`.

use crate::error::{Place, ScenarioError, nearest};
use crate::net::Net;
use crate::plan::{Draft, REQUEST_CLASS, Workload};
use crate::reader::{Context, Reader};
use crate::replay::{Added, Replay, ReplayedResponse, ReplayedRounds, ReplayedTree};
use crate::topology::{self, link_keys, link_params};
use crate::tree::{Item, Node, Override, Table, parse};
use crate::warnings::{Warning, starving};
use crate::{hash, hosts, scenario, transport};
use fanin_cc::algorithms::ALGORITHMS;
use fanin_sim::resolved_stack;
use fanin_sim::spec::{FlowId, LinkId, NodeId, SlowestSpec, Spec, TraceSpec, TransportSpec};
use fanin_sim::stack::Nagle;
use fanin_units::{Domain, Duration, Rate, Setting, Time};
use std::path::{Path, PathBuf};

/// The endpoint of a rack that does not say: a rack's hosts run Linux.
pub const RACK_PROFILE: &str = "linux";

/// Class of the replayed responses.
pub const RESPONSE_CLASS: &str = "response";

/// What a replay records of the queue to the aggregator and of the senders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// Totals alone.
    Nothing,
    /// What a report shows: the queue, the windows, and the packets of the slowest responses.
    Report,
    /// The queue, its packets, the windows, and what algorithms tell of themselves.
    All,
}

impl From<bool> for Record {
    fn from(all: bool) -> Record {
        if all { Record::All } else { Record::Nothing }
    }
}

/// Responses of a replay whose packets a report shows: the slowest.
pub const SLOWEST: usize = 3;

/// Rows that a report's traces of a queue, and of windows, have at most: more than a picture shows.
pub const TRACED_ROWS: usize = 1_000_000;

/// A parsed rack file with its overrides.
#[derive(Clone, Debug)]
pub struct Rack {
    file: String,
    folder: PathBuf,
    root: Table,
}

/// One replay, ready to run.
#[derive(Clone, Debug)]
pub struct RackPlan {
    /// For the engine.
    pub spec: Spec,
    /// The port to the aggregator: the one that fills.
    pub port: LinkId,
    /// Where each response of the capture went.
    pub responses: Vec<ReplayedResponse>,
    /// Where each round of the capture went.
    pub rounds: ReplayedRounds,
    /// Where each stage of a request went.
    pub stages: ReplayedRounds,
    /// Where each request tree of the capture went.
    pub trees: Vec<ReplayedTree>,
}

impl RackPlan {
    /// The same traffic with the connections of `servers` as `other` has them: hosts that are not moved to a new algorithm yet. Both plans
    /// are of one replay and seed; the network is that of `self`.
    #[must_use]
    pub fn mixed(mut self, other: &RackPlan, servers: &[String]) -> RackPlan {
        let offset = self.spec.transports.len() as u32;
        self.spec.transports.extend(other.spec.transports.iter().cloned());
        let stays = |node: NodeId| self.spec.nodes.get(node.index()).is_some_and(|n| servers.contains(&n.name));
        let staying: Vec<bool> = self.spec.flows.iter().map(|f| stays(f.src) || stays(f.dst)).collect();
        for ((flow, was), stays) in self.spec.flows.iter_mut().zip(&other.spec.flows).zip(staying) {
            if stays {
                flow.transport = was.transport + offset;
            }
        }
        self
    }
}

/// Keys of the document.
pub static ROOT: &[Setting] = &[
    Setting::of("rack", Domain::Tables(RACK), "the switch and its links"),
    scenario::HOSTS,
    Setting::of("stack", Domain::Stack, "the endpoint: a profile, and any knob; Linux unless set"),
    Setting::of("cc", Domain::Cc, "parameters for whichever algorithm has them; the names come with `--cc`"),
    Setting::of("replay", Domain::Tables(REPLAY), "how the capture is replayed"),
];

const RECEIVER: [Setting; 4] = link_keys!("receiver_", "the link between switch and aggregator");

/// Keys of `[rack]`.
pub static RACK: &[Setting] = &[
    Setting::rate("rate", "rate of every link").required(),
    Setting::time(
        "delay",
        "delay of every link, one way; the base round trip is four times this, so put a quarter of what ping says",
    )
    .required(),
    // Not `required`: a rack has one or the other, which the reader sees to.
    Setting::queue(
        "buffer",
        "drop-tail limit of every switch port, in packets or bytes; this or `shared_buffer` must be there",
    )
    .positive(),
    topology::MARK,
    topology::QUEUE,
    topology::HOST_BUFFER,
    topology::PROCESSING,
    topology::SHARED[0],
    topology::SHARED[1],
    RECEIVER[0],
    RECEIVER[1],
    RECEIVER[2],
    RECEIVER[3],
];

/// Keys of `[replay]`.
pub static REPLAY: &[Setting] = &[
    Setting::time("jitter", "each release is late by a random time, uniform on [0, this): what seeds differ in")
        .default("2us"),
    Setting::time("duration", "the run ends here at the latest; ten times the capture and a minute unless set")
        .positive(),
];

impl Rack {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ScenarioError`] when the file cannot be read or is not a rack.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Rack, ScenarioError> {
        let path = path.as_ref();
        let text = scenario::read_text(path)?;
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        Rack { root: parse(&text, &path.display().to_string())?, file: path.display().to_string(), folder }.checked()
    }

    /// Reads text; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`ScenarioError`] when it is not a rack.
    pub fn from_text(text: &str, name: &str) -> Result<Rack, ScenarioError> {
        Rack { root: parse(text, name)?, file: name.to_owned(), folder: PathBuf::new() }.checked()
    }

    /// The rack with its relative paths starting from `folder`, as those of a file start from the file's.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Rack {
        self.folder = folder.into();
        self
    }

    /// The rack with changes on top. `--cc` and `--seed` are not part of a rack: [`Rack::plan`] takes them.
    ///
    /// # Errors
    /// [`ScenarioError`] when the result is not a rack.
    pub fn with(mut self, overrides: &[Override]) -> Result<Rack, ScenarioError> {
        for change in overrides {
            if let Override::Set { .. } = change {
                change.apply(&mut self.root)?;
            }
        }
        self.checked()
    }

    /// Everything that does not depend on the replay is refused here, before anything runs.
    fn checked(self) -> Result<Rack, ScenarioError> {
        self.accept(transport::DEFAULT_CC)?;
        Ok(self)
    }

    /// Whether replays can be planned under the algorithm `cc`. What can be wrong does not depend on the traffic, which takes half a minute to plan for a
    /// million connections.
    ///
    /// # Errors
    /// As [`Rack::plan`] of any replay.
    pub fn accept(&self, cc: &str) -> Result<(), ScenarioError> {
        self.plan(&Replay::default(), cc, 1, false).map(drop)
    }

    /// Its name in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What `[rack]` says, changes included: key and value as it would be written.
    pub fn facts(&self) -> Vec<(String, String)> {
        match self.root.get("rack") {
            Some(Node { item: Item::Table(table), .. }) => {
                table.entries.iter().map(|e| (e.key.clone(), e.node.item.show())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The rates of the links between servers and switch, and between switch and aggregator.
    ///
    /// # Errors
    /// As [`Rack::plan`].
    pub fn rates(&self) -> Result<(Rate, Rate), ScenarioError> {
        let context = Context { file: &self.file, folder: &self.folder };
        let reader = Reader::new(context, "rack", self.root.get("rack"), &[RACK])?;
        let servers: Rate = reader.get("rate")?;
        Ok((servers, reader.or("receiver_rate", servers)?))
    }

    /// Jiffies per second of its hosts (`stack.hz`), which RTO floors, delayed ACKs and CUBIC's kernel form count in.
    ///
    /// # Errors
    /// As [`Rack::plan`].
    pub fn hz(&self) -> Result<u32, ScenarioError> {
        let context = Context { file: &self.file, folder: &self.folder };
        Ok(self.transport(context, transport::DEFAULT_CC)?.stack.hz)
    }

    /// Its hosts acknowledge every packet of the algorithm `cc`: the algorithm lives on RTT samples, and `stack.route_quickack` is on.
    ///
    /// # Errors
    /// As [`Rack::plan`].
    pub fn acknowledges_every_packet(&self, cc: &str) -> Result<bool, ScenarioError> {
        let context = Context { file: &self.file, folder: &self.folder };
        let transport = self.transport(context, cc)?;
        let asked = resolved_stack(&transport).is_ok_and(|stack| stack.delack_segments == 1);
        Ok(asked && transport.stack.delack_segments > 1)
    }

    /// Its switch marks: algorithms that need ECN get it.
    ///
    /// # Errors
    /// As [`Rack::plan`].
    pub fn marks(&self) -> Result<bool, ScenarioError> {
        let node = self.root.get("rack");
        let has = |key: &str| matches!(node, Some(Node { item: Item::Table(t), .. }) if t.get(key).is_some());
        Ok(has("mark") || has("receiver_mark") || has("queue"))
    }

    /// `replay` on this rack under the algorithm `cc`. `record` says what of the queue to the aggregator and of the senders is recorded.
    ///
    /// # Errors
    /// [`ScenarioError`] for what is wrong with the rack or the algorithm's name.
    pub fn plan(
        &self,
        replay: &Replay,
        cc: &str,
        seed: u64,
        record: impl Into<Record>,
    ) -> Result<RackPlan, ScenarioError> {
        let record = record.into();
        let context = Context { file: &self.file, folder: &self.folder };
        let root = Node { place: Place::Nowhere, item: Item::Table(self.root.clone()) };
        Reader::new(context, "", Some(&root), &[ROOT])?;
        let hosts = hosts::read(context, self.root.get("hosts"))?;
        let transport = self.transport(context, cc)?;
        let options = Reader::new(context, "replay", self.root.get("replay"), &[REPLAY])?;
        let jitter: Duration = options.get("jitter")?;
        let end = options.or::<Duration>("duration", replay.span() * 10 + Duration::s(60))?;
        options.finish()?;

        let net = self.net(context, replay)?;
        let client = net.groups[1].1[0];
        let servers = net.groups[0].1.clone();
        let mut plan = Draft::new(net, seed, Time::ZERO + end);
        let class = plan.class(RESPONSE_CLASS);
        plan.class(REQUEST_CLASS);
        let transport = plan.transport(transport);
        let mut workload = Workload { plan: &mut plan, index: 0, transport, class, start: Time::ZERO, deadline: None };
        let added = if replay.connections.is_empty() {
            Added::default()
        } else {
            replay.add(&mut workload, &servers, client, jitter)
        };
        // The first cable is the aggregator's, its first direction the one from the switch.
        let port = LinkId(0);
        let of_class =
            |c: u16| (0..plan.flows.len() as u32).map(FlowId).filter(|f| plan.flows[f.index()].class == c).collect();
        let Added { responses, rounds, stages, trees } = added;
        let answers = || responses.iter().map(|r| (r.first, r.last)).collect();
        let (traced, all) = (record != Record::Nothing, record == Record::All);
        let trace = TraceSpec {
            classes: plan.classes.clone(),
            queues: if traced { vec![port] } else { Vec::new() },
            windows: if traced { of_class(class) } else { Vec::new() },
            internals: all,
            packets: if traced { vec![port] } else { Vec::new() },
            slowest: (traced && !all).then(|| SlowestSpec { most: SLOWEST, answers: answers() }),
            most: (traced && !all).then_some(TRACED_ROWS),
            ..TraceSpec::default()
        };
        let spec = scenario::finish(plan, hosts, trace, true);
        Ok(RackPlan { spec, port, responses, rounds, stages, trees })
    }

    /// Stable hash of everything that decides the results of `replay` on this rack under `cc`, the seed aside.
    ///
    /// # Errors
    /// As [`Rack::plan`].
    pub fn hash(&self, replay: &Replay, cc: &str) -> Result<String, ScenarioError> {
        Ok(hash::spec(&self.plan(replay, cc, 0, false)?.spec))
    }

    /// [`Rack::hash`], and what [`starving`](crate::starving) says of the same plan.
    ///
    /// # Errors
    /// As [`Rack::plan`].
    pub fn check(&self, replay: &Replay, cc: &str) -> Result<(String, Vec<Warning>), ScenarioError> {
        let spec = self.plan(replay, cc, 0, false)?.spec;
        Ok((hash::spec(&spec), starving(&spec)))
    }

    fn net(&self, context: Context<'_>, replay: &Replay) -> Result<Net, ScenarioError> {
        let node = self.root.get("rack");
        if node.is_none() {
            return Err(ScenarioError::new(
                "scenario::missing-key",
                "there is no `[rack]`: a rack file has one with rate, delay and buffer",
            )
            .at(&self.file, &Place::Nowhere, ""));
        }
        let reader = Reader::new(context, "rack", node, &[RACK])?;
        let common = topology::common(&reader)?;
        let servers = link_params(&reader, "", None)?;
        let aggregator = link_params(&reader, "receiver_", Some(&servers))?;
        reader.finish()?;
        let mut net = Net::new(&common);
        let switch = net.switch("switch", &common);
        let client = net.host("client");
        net.cable(switch, client, &aggregator, &common);
        let names = if replay.servers.is_empty() { vec!["server".to_owned()] } else { replay.servers.clone() };
        let hosts: Vec<_> = names.into_iter().map(|name| net.host(name)).collect();
        for &host in &hosts {
            net.cable(host, switch, &servers, &common);
        }
        net.group("senders", hosts);
        net.group("receiver", vec![client]);
        Ok(net)
    }

    /// `[cc]` holds parameters of any algorithm; those of the one in question apply.
    fn transport(&self, context: Context<'_>, cc: &str) -> Result<TransportSpec, ScenarioError> {
        let base = fanin_sim::knobs::profile(RACK_PROFILE).map_or_else(scenario::default_stack, |p| (p.stack)());
        let mut stack = transport::stack(context, "stack", self.root.get("stack"), &base)?;
        let sets_nagle =
            |node: &Node| matches!(&node.item, Item::Table(t) if t.entries.iter().any(|e| e.key == "nagle"));
        if !self.root.get("stack").is_some_and(sets_nagle) {
            // The capture shows when the application's bytes left: servers set TCP_NODELAY, and a stall that Nagle added here would
            // be nowhere in it.
            stack.nagle = Nagle::Off;
        }
        let parts =
            fanin_cc::registry::parts(cc).map_err(|e| ScenarioError::new("scenario::unknown-cc", e.to_string()))?;
        let mut own = Table::default();
        let place = Place::CommandLine(format!("--cc {cc}"));
        own.insert("name", Node { place: place.clone(), item: Item::Text(cc.to_owned()) });
        match self.root.get("cc") {
            None => {}
            Some(Node { item: Item::Table(table), .. }) => {
                for entry in &table.entries {
                    let known = || ALGORITHMS.iter().flat_map(|a| a.params.iter().map(|p| p.name));
                    if !known().any(|p| p == entry.key) {
                        return Err(ScenarioError::new("scenario::unknown-key", "no algorithm has such a parameter")
                            .at(&self.file, &entry.place, format!("cc.{}", entry.key))
                            .nearest(nearest(&entry.key, known())));
                    }
                    if parts.iter().any(|a| a.params.iter().any(|p| p.name == entry.key)) {
                        own.insert(&entry.key, entry.node.clone());
                    }
                }
            }
            Some(other) => {
                return Err(ScenarioError::new(
                    "scenario::wrong-kind",
                    format!("it is {}, not a table", other.item.what()),
                )
                .at(&self.file, &other.place, "cc"));
            }
        }
        transport::transport(context, "cc", Some(&Node { place, item: Item::Table(own) }), stack)
    }
}
