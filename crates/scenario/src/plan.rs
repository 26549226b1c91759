//! A run under construction: what workloads add to it.

use crate::draw::Draw;
use crate::error::ScenarioError;
use crate::net::Net;
use crate::reader::Reader;
use crate::warnings::Warning;
use fanin_sim::rng::Stream;
use fanin_sim::spec::{BarrierId, Cbr, Flow, FlowId, Gate, Message, MessageId, NodeId, Release, TransportSpec};
use fanin_units::{Duration, MaybeTime, Time};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Class of all requests: what the answers' completion times are about must not be mixed with them.
pub const REQUEST_CLASS: &str = "request";

/// More messages than this in one workload are a mistake: they would take some gigabytes.
const MAX_MESSAGES: u64 = 20_000_000;

/// Everything workloads have added so far.
pub(crate) struct Draft {
    pub net: Net,
    pub transports: Vec<TransportSpec>,
    pub flows: Vec<Flow>,
    pub messages: Vec<Message>,
    pub barriers: u32,
    pub gates: Vec<Gate>,
    pub cbr: Vec<Cbr>,
    pub classes: Vec<String>,
    pub seed: u64,
    pub end: Time,
    /// What workloads assumed, for the user to know.
    pub notes: Vec<Warning>,
    /// Positions of classes, and of transports by a hash of what they say: a scenario may have thousands of either.
    class_at: HashMap<String, u16>,
    transports_at: HashMap<u64, Vec<u32>>,
}

impl Draft {
    pub fn new(net: Net, seed: u64, end: Time) -> Draft {
        Draft {
            net,
            transports: Vec::new(),
            flows: Vec::new(),
            messages: Vec::new(),
            barriers: 0,
            gates: Vec::new(),
            cbr: Vec::new(),
            classes: Vec::new(),
            seed,
            end,
            notes: Vec::new(),
            class_at: HashMap::new(),
            transports_at: HashMap::new(),
        }
    }

    /// Number of a class, made if it is new.
    pub fn class(&mut self, name: &str) -> u16 {
        if let Some(&at) = self.class_at.get(name) {
            return at;
        }
        let at = self.classes.len() as u16;
        self.classes.push(name.to_owned());
        self.class_at.insert(name.to_owned(), at);
        at
    }

    /// Position of a transport; equal ones are one.
    pub fn transport(&mut self, transport: TransportSpec) -> u32 {
        let same = |t: &TransportSpec| t.cc == transport.cc && t.args == transport.args && t.stack == transport.stack;
        let mut hasher = DefaultHasher::new();
        format!("{} {:?} {:?}", transport.cc, transport.args, transport.stack).hash(&mut hasher);
        let alike = self.transports_at.entry(hasher.finish()).or_default();
        if let Some(&at) = alike.iter().find(|&&at| same(&self.transports[at as usize])) {
            return at;
        }
        let at = self.transports.len() as u32;
        alike.push(at);
        self.transports.push(transport);
        at
    }

    pub fn barrier(&mut self) -> BarrierId {
        self.barriers += 1;
        BarrierId(self.barriers - 1)
    }
}

/// One `[[workload]]` being built: the plan, and what all workloads have in common.
pub(crate) struct Workload<'a> {
    pub plan: &'a mut Draft,
    /// Position in the file; names the random streams.
    pub index: usize,
    pub transport: u32,
    pub class: u16,
    pub start: Time,
    pub deadline: Option<(Draw, Stream)>,
}

impl Workload<'_> {
    /// The random stream of a component of this workload, number `n`.
    pub fn stream(&self, component: &str, n: u64) -> Stream {
        Stream::new(self.plan.seed, &format!("workload {} {component}", self.index), n)
    }

    pub fn flow(&mut self, src: NodeId, dst: NodeId) -> FlowId {
        self.flow_of(src, dst, self.class)
    }

    fn flow_of(&mut self, src: NodeId, dst: NodeId, class: u16) -> FlowId {
        self.plan.flows.push(Flow {
            src,
            dst,
            transport: self.transport,
            class,
            reverse: None,
            open: MaybeTime::NONE,
            stop: MaybeTime::NONE,
        });
        FlowId(self.plan.flows.len() as u32 - 1)
    }

    /// Two flows of one connection: requests from client to server, and answers back.
    pub fn connection(&mut self, client: NodeId, server: NodeId) -> (FlowId, FlowId) {
        let class = self.plan.class(REQUEST_CLASS);
        let (there, back) = (self.flow_of(client, server, class), self.flow(server, client));
        self.plan.flows[there.index()].reverse = Some(back);
        self.plan.flows[back.index()].reverse = Some(there);
        (there, back)
    }

    pub fn message(&mut self, flow: FlowId, bytes: u64, release: Release, completes: Option<BarrierId>) -> MessageId {
        let deadline = match &mut self.deadline {
            Some((draw, stream)) if bytes != Message::UNLIMITED => Some(draw.time(stream)),
            _ => None,
        };
        let class = self.class;
        self.add(Message { flow, bytes, release, deadline, class, completes })
    }

    /// A request: in a class of its own, without a deadline.
    pub fn request(&mut self, flow: FlowId, bytes: u64, release: Release, completes: BarrierId) -> MessageId {
        let class = self.plan.class(REQUEST_CLASS);
        self.add(Message { flow, bytes, release, deadline: None, class, completes: Some(completes) })
    }

    fn add(&mut self, message: Message) -> MessageId {
        self.plan.messages.push(message);
        MessageId(self.plan.messages.len() as u32 - 1)
    }

    /// A request and the answer to it, `service` after the request has arrived; without a request, the answer at `release`.
    pub fn ask(
        &mut self,
        (there, back): (Option<(FlowId, u64)>, FlowId),
        bytes: u64,
        release: Release,
        service: Duration,
        completes: Option<BarrierId>,
    ) -> MessageId {
        match there {
            Some((flow, size)) => {
                let asked = self.plan.barrier();
                self.request(flow, size, release, asked);
                self.message(back, bytes, Release::After(asked, service), completes)
            }
            None => {
                let release = match release {
                    Release::At(time) => Release::At(time + service),
                    Release::After(barrier, pause) => Release::After(barrier, pause + service),
                    Release::NotBefore(time, barrier) => Release::NotBefore(time + service, barrier),
                };
                self.message(back, bytes, release, completes)
            }
        }
    }

    /// Sending hosts.
    pub fn from(&self, reader: &Reader<'_>) -> Result<Vec<NodeId>, ScenarioError> {
        self.plan.net.select(reader, "from", self.plan.net.default_from)
    }

    /// Receiving hosts.
    pub fn to(&self, reader: &Reader<'_>) -> Result<Vec<NodeId>, ScenarioError> {
        self.plan.net.select(reader, "to", self.plan.net.default_to)
    }

    /// The one receiver.
    pub fn one_receiver(&self, reader: &Reader<'_>) -> Result<NodeId, ScenarioError> {
        let to = self.to(reader)?;
        let &[receiver] = to.as_slice() else {
            let first = to.first().map_or("client", |h| self.plan.net.nodes[h.index()].name.as_str());
            let message = format!(
                "this workload has one receiver, and `to` names {} hosts; name one, as in `to = \"{first}\"`",
                to.len()
            );
            return Err(reader.refuse("to", message));
        };
        Ok(receiver)
    }

    /// Senders and the one receiver; the receiver is never among the senders.
    pub fn many_to_one(&self, reader: &Reader<'_>) -> Result<(Vec<NodeId>, NodeId), ScenarioError> {
        let receiver = self.one_receiver(reader)?;
        let senders: Vec<NodeId> = self.from(reader)?.into_iter().filter(|&h| h != receiver).collect();
        if senders.is_empty() {
            return Err(reader.refuse("from", "the only sender is the receiver itself"));
        }
        Ok((senders, receiver))
    }

    /// Who sends to whom, by `pattern`: all to one receiver or each to the receiver at its position, or at random.
    pub fn pairs(&self, reader: &Reader<'_>) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
        match reader.get::<String>("pattern")?.as_str() {
            "random" => self.random_pairs(reader),
            "permutation" => self.permutation(reader),
            _ => self.fixed_pairs(reader),
        }
    }

    fn fixed_pairs(&self, reader: &Reader<'_>) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
        let to = self.to(reader)?;
        if to.len() == 1 {
            let (senders, receiver) = self.many_to_one(reader)?;
            return Ok(senders.into_iter().map(|s| (s, receiver)).collect());
        }
        let from = self.from(reader)?;
        if from.len() != to.len() {
            let message = format!(
                "{} senders and {} receivers make no pairs; name one receiver or as many as senders",
                from.len(),
                to.len()
            );
            return Err(reader.refuse("to", message));
        }
        match from.iter().zip(&to).find(|(a, b)| a == b) {
            Some((a, _)) => {
                let name = &self.plan.net.nodes[a.index()].name;
                Err(reader
                    .refuse("to", format!("`{name}` would send to itself; name different hosts in `from` and `to`")))
            }
            None => Ok(from.into_iter().zip(to).collect()),
        }
    }

    /// Each sender has a receiver of its own choice, never itself.
    fn random_pairs(&self, reader: &Reader<'_>) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
        let (from, to) = self.all_or_named(reader)?;
        let pick = |n: usize, src: NodeId| {
            let others: Vec<NodeId> = to.iter().copied().filter(|&h| h != src).collect();
            others.get(self.stream("receiver", n as u64).below(others.len() as u64) as usize).map(|&dst| (src, dst))
        };
        let pairs: Option<Vec<_>> = from.iter().enumerate().map(|(n, &src)| pick(n, src)).collect();
        pairs.ok_or_else(|| reader.refuse("to", "the only receiver is one of the senders"))
    }

    /// A random cycle through all hosts: each sends to one and receives from one.
    fn permutation(&self, reader: &Reader<'_>) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
        if reader.has("to") {
            return Err(reader.refuse("to", "a permutation is among the hosts of `from`; remove `to`"));
        }
        let (mut hosts, _) = self.all_or_named(reader)?;
        if hosts.len() < 2 {
            return Err(reader.refuse("from", "a permutation needs at least two hosts"));
        }
        let mut stream = self.stream("permutation", 0);
        for i in (1..hosts.len()).rev() {
            hosts.swap(i, stream.below(i as u64 + 1) as usize);
        }
        Ok((0..hosts.len()).map(|i| (hosts[i], hosts[(i + 1) % hosts.len()])).collect())
    }

    /// Senders and receivers of workloads that are not about one receiver: all hosts unless named.
    pub fn all_or_named(&self, reader: &Reader<'_>) -> Result<(Vec<NodeId>, Vec<NodeId>), ScenarioError> {
        let all = crate::topology::ALL;
        Ok((self.plan.net.select(reader, "from", all)?, self.plan.net.select(reader, "to", all)?))
    }

    /// Refuses more messages than a machine can hold; `key` is what multiplied them.
    pub fn room_for(&self, reader: &Reader<'_>, key: &str, messages: &[u64]) -> Result<(), ScenarioError> {
        let wanted = messages.iter().fold(1_u64, |product, &n| product.saturating_mul(n));
        if wanted > MAX_MESSAGES {
            let message = format!("this makes {wanted} messages, and {MAX_MESSAGES} are the most; use fewer");
            return Err(reader.refuse(key, message));
        }
        Ok(())
    }

    /// The time of a key; it must lie within the run.
    pub fn within(&self, reader: &Reader<'_>, key: &str, time: Time) -> Result<Time, ScenarioError> {
        if time < self.plan.end {
            return Ok(time);
        }
        Err(reader.refuse(key, format!("it is {time}, but the run ends at {} (`run.duration`)", self.plan.end)))
    }

    /// The optional end of a transfer; it must come after its start.
    pub fn stop(&self, reader: &Reader<'_>, key: &str, start: Time) -> Result<Option<Time>, ScenarioError> {
        match reader.opt::<Duration>(key)? {
            Some(stop) if Time::ZERO + stop <= start => {
                Err(reader.refuse(key, format!("it is {stop}, not after the start at {start}")))
            }
            stop => Ok(stop.map(|s| Time::ZERO + s)),
        }
    }
}
