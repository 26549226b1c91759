//! From a [`Spec`] to a network and endpoints that can run.

use crate::app::Application;
use crate::calendar::Calendar;
use crate::engine::{Endpoints, Progress, Run, RunError};
use crate::host::machines::Machines;
use crate::host::work::Opening;
use crate::net::{FlowCounters, INSIDE, MANY_PORTS, Net, PathSet, Split};
use crate::partition::{Here, Partition};
use crate::queue::{Build, Context};
use crate::rng::Stream;
use crate::routing::{END, Router};
use crate::spec::{Flow, Link, LinkId, Message, NodeId, Routing, Spec};
use crate::stack::Stack;
use crate::store::PacketPool;
use crate::trace::Tracer;
use fanin_cc::{PathKnowledge, SettingError, Setup};
use fanin_switch::{Order, Port, SharedBuffer};
use fanin_units::{Bytes, Duration, QueueLimit, Rate, Time};
use std::collections::HashMap;
use std::ops::{ControlFlow, Index};
use std::sync::Arc;

/// The caller's callback.
type Asked<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// How many flows get their paths between two looks at it.
const PATHS_PER_LOOK: usize = 256;

/// Builds everything; nothing is scheduled yet.
///
/// `progress` is asked now and then whether to go on, as during the run: large networks take seconds.
pub(crate) fn build<'a>(spec: &'a Spec, progress: Asked<'_>) -> Result<Run<'a>, RunError> {
    let (tables, flows) = Paths::make(spec, progress)?.shared();
    part(spec, &flows, &tables, Here::ALL)
}

/// Builds each part of a network that is cut; and how long what happens in one of them is without effect on another, ps.
pub(crate) fn build_parts<'a>(
    spec: &'a Spec,
    partition: &'a Partition,
    progress: Asked<'_>,
) -> Result<(Vec<Run<'a>>, u64), RunError> {
    let (tables, flows) = Paths::make(spec, progress)?.shared();
    let all = (0..partition.parts).map(|n| part(spec, &flows, &tables, Here { partition: Some(partition), part: n }));
    let mut runs = all.collect::<Result<Vec<_>, _>>()?;
    let shortest = spec.transports.iter().map(|t| t.stack.wire(0)).chain(spec.cbr.iter().map(|c| c.packet)).min();
    let shortest = shortest.map_or(1, |bytes| bytes.get() as u16);
    let crossing = |link: &&Link| partition.of(link.from) != partition.of(link.to);
    let look_ahead = (0..)
        .zip(&spec.links)
        .filter(|(_, link)| crossing(link))
        .map(|(i, link): (usize, _)| runs[partition.of(link.from)].net.ports[i].earliest_arrival(0, shortest))
        .min()
        .unwrap_or(u64::MAX);
    for run in &mut runs {
        run.watch_unsent(|flow| {
            let delay = |l: &LinkId| hop_delay(spec, &spec.links[l.index()]).ps();
            flows[flow].forward.iter().map(delay).sum::<u64>() >= look_ahead
        });
    }
    Ok((runs, look_ahead))
}

fn part<'a>(spec: &'a Spec, paths: &AllPaths, tables: &Tables, here: Here<'a>) -> Result<Run<'a>, RunError> {
    let mut net = network(spec, tables, here)?;
    let queue_samples = spec.trace.queue_interval.is_some() && !spec.trace.queues.is_empty();
    if !queue_samples {
        for link in spec.trace.queues.iter().filter(|l| here.has(spec.links[l.index()].from)) {
            net.ports[link.index()].record_changes();
        }
    }
    let endpoints = Endpoints::build(spec, paths, here)?;
    net.hosts = Machines::new(spec, &endpoints.are_tcp());
    let ideal = |m: &Message| ideal_time(spec, m, &paths[m.flow.index()]);
    let app = Application::new(spec, ideal, |m| here.has(spec.flows[m.flow.index()].src));
    Ok(Run { spec, here, net, endpoints, app, queue_samples, unsent: Vec::new() })
}

/// The tables of paths, which all parts of a run read.
struct Tables {
    paths: Arc<[u32]>,
    choices: Arc<[u32]>,
    ways: Arc<[[PathSet; 2]]>,
}

/// Links of a flow's first path in each direction.
#[derive(Clone, Debug)]
pub(crate) struct FlowPaths {
    pub forward: Arc<[LinkId]>,
    pub backward: Arc<[LinkId]>,
}

/// Those of every flow. Flows between the same hosts share theirs: two million of a capture's connections are between a few pairs.
#[derive(Debug, Default)]
pub(crate) struct AllPaths {
    distinct: Vec<FlowPaths>,
    /// By flow, positions in `distinct`.
    of: Vec<u32>,
}

impl AllPaths {
    pub fn iter(&self) -> impl Iterator<Item = &FlowPaths> {
        self.of.iter().map(|&at| &self.distinct[at as usize])
    }
}

impl Index<usize> for AllPaths {
    type Output = FlowPaths;
    fn index(&self, flow: usize) -> &FlowPaths {
        &self.distinct[self.of[flow] as usize]
    }
}

/// The ways between two hosts, and the links of the first.
type Found = (PathSet, Arc<[LinkId]>);

struct Paths {
    table: Vec<u32>,
    choices: Vec<u32>,
    ways: Vec<[PathSet; 2]>,
    flows: AllPaths,
}

impl Paths {
    /// What the run reads, and what it is built from.
    fn shared(self) -> (Tables, AllPaths) {
        let tables = Tables { paths: self.table.into(), choices: self.choices.into(), ways: self.ways.into() };
        (tables, self.flows)
    }

    fn make(spec: &Spec, progress: Asked<'_>) -> Result<Paths, RunError> {
        let mut router = Router::new(&spec.nodes, &spec.links, spec.routing, spec.seed);
        let mut made = Paths { table: Vec::new(), choices: Vec::new(), ways: Vec::new(), flows: AllPaths::default() };
        // Equal paths are one in memory, so that where they stand tells them apart.
        let mut known: HashMap<[usize; 2], u32> = HashMap::new();
        let mut starts: HashMap<Vec<LinkId>, (u32, Arc<[LinkId]>)> = HashMap::new();
        let mut ranges: HashMap<(NodeId, NodeId), Found> = HashMap::new();
        let mut way = |made: &mut Paths, from: NodeId, to: NodeId, key: u64| -> Result<Found, RunError> {
            let no_path = || RunError::NoPath {
                from: spec.nodes[from.index()].name.clone(),
                to: spec.nodes[to.index()].name.clone(),
            };
            let mut add = |made: &mut Paths, path: Vec<LinkId>| -> (u32, Arc<[LinkId]>) {
                if let Some(known) = starts.get(&path) {
                    return known.clone();
                }
                let start = made.table.len() as u32;
                made.table.extend(path.iter().map(|l| l.0));
                made.table.push(END);
                let links: Arc<[LinkId]> = path.as_slice().into();
                starts.insert(path, (start, links.clone()));
                (start, links)
            };
            // Hosts may have a hundred thousand connections, and mostly have one path.
            if let Some(known) = ranges.get(&(from, to)) {
                return Ok(known.clone());
            }
            if spec.routing != Routing::Spray {
                let path = router.path(from, to, key).filter(|p| !p.is_empty()).ok_or_else(no_path)?;
                let (first, links) = add(made, path);
                let way = (PathSet { first, count: 1 }, links);
                if !router.key_decided() {
                    ranges.insert((from, to), way.clone());
                }
                return Ok(way);
            }
            let first = made.choices.len() as u32;
            let mut shown = None;
            for path in router.all_paths(from, to) {
                let (start, links) = add(made, path);
                made.choices.push(start);
                shown.get_or_insert(links);
            }
            let links = shown.filter(|l| !l.is_empty()).ok_or_else(no_path)?;
            let ways = (PathSet { first, count: made.choices.len() as u32 - first }, links);
            ranges.insert((from, to), ways.clone());
            Ok(ways)
        };
        for (i, flow) in spec.flows.iter().enumerate() {
            let look = Progress { now: Time::ZERO, end: spec.end, packet_hops: 0, messages: (0, 0) };
            if i.is_multiple_of(PATHS_PER_LOOK) && progress(look).is_break() {
                return Err(RunError::Interrupted { at: Time::ZERO });
            }
            let (forward, there) = way(&mut made, flow.src, flow.dst, 2 * i as u64)?;
            // What a host sends on one connection has one 5-tuple, data and ACKs alike.
            let key = flow.reverse.map_or(2 * i as u64 + 1, |r| 2 * u64::from(r.0));
            let (backward, back) = way(&mut made, flow.dst, flow.src, key)?;
            made.ways.push([forward, backward]);
            let AllPaths { distinct, of } = &mut made.flows;
            of.push(*known.entry([&there, &back].map(|path| path.as_ptr() as usize)).or_insert_with(|| {
                distinct.push(FlowPaths { forward: there.clone(), backward: back.clone() });
                distinct.len() as u32 - 1
            }));
        }
        for (i, cbr) in spec.cbr.iter().enumerate() {
            let (ways, _) = way(&mut made, cbr.src, cbr.dst, u64::MAX - i as u64)?;
            made.ways.push([ways, PathSet::default()]);
        }
        Ok(made)
    }
}

/// By which part a link's clock is fast, from the seed (`stack.clock_error_ppm`).
pub fn clock_error(spec: &Spec, link: usize) -> f64 {
    // Hosts and switches serve all transports, so the worst clock that one of them asks for counts.
    let most = spec.transports.iter().map(|t| t.stack.clock_error_ppm).fold(0.0, f64::max) * 1e-6;
    if most > 0.0 { most * (2.0 * Stream::new(spec.seed, "clock", link as u64).uniform() - 1.0) } else { 0.0 }
}

/// What shapes a link in place of its line.
pub struct Bucket {
    /// Bytes that it holds.
    pub size: u16,
    /// What its timer is late by, on average.
    pub latency_ps: u64,
    /// What the stream that draws this starts from.
    pub seed: [u8; 16],
}

/// The token bucket of a link (`stack.bucket_latency`); none where no transport has them.
pub fn token_bucket(spec: &Spec, link: usize) -> Option<Bucket> {
    // As with clocks, all share the links, and the worst counts.
    let stacks = spec.transports.iter().map(|t| &t.stack);
    let shaped = stacks.filter(|s| s.longest_whole() > 0 && !s.bucket_latency.is_zero());
    let stack = shaped.max_by_key(|s| s.bucket_latency)?;
    Some(Bucket {
        size: stack.longest_whole(),
        latency_ps: stack.bucket_latency.ps(),
        seed: Stream::seed(spec.seed, "bucket", link as u64),
    })
}

fn network(spec: &Spec, tables: &Tables, here: Here<'_>) -> Result<Net, RunError> {
    let mut ports = Vec::with_capacity(spec.links.len());
    for (i, link) in spec.links.iter().enumerate() {
        // A switch's processing time is constant per switch, so it only lengthens the links that lead to it.
        let processing = match spec.nodes[link.to.index()].kind {
            crate::spec::NodeKind::Switch => spec.nodes[link.to.index()].processing,
            crate::spec::NodeKind::Host => Duration::ZERO,
        };
        let shared = spec.nodes[link.from.index()].shared_buffer.is_some();
        let limit = if shared { None } else { link.queue.limit };
        if !here.has(link.from) {
            // Only what others put on the link is seen here.
            ports.push(Port::new(link.rate, (link.delay + processing).ps(), None, None, Order::Fifo));
            continue;
        }
        let order = order(spec, link, i)?;
        let mut port = Port::new(link.rate, (link.delay + processing).ps(), limit, link.queue.mark_above, order);
        let clock_error = clock_error(spec, i);
        if clock_error != 0.0 {
            port.set_clock_error(clock_error);
        }
        if let Some(bucket) = token_bucket(spec, i) {
            port.shape(bucket.size, bucket.latency_ps, Stream::from_seed(bucket.seed));
        }
        ports.push(port);
    }
    let (pools, pool_of) = shared_buffers(spec, here);
    let (spacing, horizon) = event_density(spec);
    let mut trace = Tracer::new(spec);
    if here.partition.is_some() {
        trace.note_places();
    }
    Ok(Net {
        now: 0,
        calendar: Calendar::new(ports.len(), spacing, horizon, spec.seed),
        ports,
        store: PacketPool::default(),
        paths: tables.paths.clone(),
        choices: tables.choices.clone(),
        spray: (spec.routing == Routing::Spray).then(|| Stream::new(spec.seed, "spray", 0)),
        ways: tables.ways.clone(),
        flows: vec![FlowCounters::default(); spec.flows.len()],
        datagram_drops: vec![0; spec.cbr.len()],
        pools,
        pool_of,
        plain: false,
        hops: 0,
        created: 0,
        arrived: 0,
        open_runs: 0,
        opening: Opening::default(),
        hosts: None,
        split: here.partition.map(|partition| split(spec, partition, here.part)),
        trace,
    })
}

/// The buffers that a switch's ports share, and which of them each link has.
fn shared_buffers(spec: &Spec, here: Here<'_>) -> (Vec<SharedBuffer>, Vec<Option<u32>>) {
    let mut pools = Vec::new();
    let mut pool_of = vec![None; spec.links.len()];
    for (n, node) in spec.nodes.iter().enumerate() {
        let Some(shared) = node.shared_buffer.filter(|_| here.has(NodeId(n as u32))) else { continue };
        let own: Vec<u32> =
            (0..spec.links.len() as u32).filter(|&l| spec.links[l as usize].from.index() == n).collect();
        for &l in &own {
            pool_of[l as usize] = Some(pools.len() as u32);
        }
        pools.push(SharedBuffer::new(own, shared.size.get(), shared.alpha));
    }
    (pools, pool_of)
}

fn split(spec: &Spec, partition: &Partition, part: usize) -> Box<Split> {
    let beyond = |link: &Link| {
        let (from, to) = (partition.of(link.from), partition.of(link.to));
        if from == part && to != part { to as u32 } else { INSIDE }
    };
    Box::new(Split {
        beyond: spec.links.iter().map(beyond).collect(),
        sinks: spec.flows.iter().map(|f| partition.of(f.dst) as u32).collect(),
        outgoing: vec![Vec::new(); partition.parts],
        handed: vec![0; spec.links.len()],
        drops: Vec::new(),
    })
}

fn order(spec: &Spec, link: &Link, number: usize) -> Result<Order, RunError> {
    let found = link.queue.discipline;
    let bad = |error| RunError::Discipline { port: port_name(spec, link), error };
    let known: Vec<&'static str> = found.params.iter().map(|p| p.name).collect();
    if let Some(name) = link.queue.args.names().find(|n| !known.contains(n)) {
        return Err(bad(SettingError::Unknown { algorithm: found.name.to_owned(), name: name.to_owned(), known }));
    }
    let context = Context { rate: link.rate, random: Stream::new(spec.seed, "queue", number as u64) };
    match found.build {
        Build::Plain => Ok(Order::Fifo),
        Build::Admission(make) => make(&context, &link.queue.args).map(Order::Admission).map_err(bad),
        Build::Scheduler(make) => make(&context, &link.queue.args).map(Order::Scheduler).map_err(bad),
    }
}

/// `from->to`.
pub(crate) fn port_name(spec: &Spec, link: &Link) -> String {
    format!("{}->{}", spec.nodes[link.from.index()].name, spec.nodes[link.to.index()].name)
}

/// A guess at the time between events, and the longest usual time until a link's next arrival; ps.
fn event_density(spec: &Spec) -> (u64, u64) {
    let wire = Bytes::new(1500);
    let busy: f64 = spec.links.iter().map(|l| 1.0 / (wire / l.rate).ps().max(1) as f64).sum();
    // Empty buckets cost next to nothing (a bit each), full ones must be sorted: as if all ports were busy.
    // With many ports the engine looks several events ahead, within a bucket.
    let events = if spec.links.len() < MANY_PORTS { 5.0 } else { 40.0 };
    let spacing = if busy > 0.0 { (events / busy) as u64 } else { 1 };
    let horizon = spec.links.iter().map(|l| (l.delay + wire / l.rate).ps()).max().unwrap_or(1);
    (spacing.clamp(1, 1_000_000_000), horizon)
}

/// Makes each port's discipline once: whether all take their settings.
///
/// # Errors
/// [`RunError::Discipline`] for the first that does not.
pub fn check_disciplines(spec: &Spec) -> Result<(), RunError> {
    spec.links.iter().enumerate().try_for_each(|(number, link)| order(spec, link, number).map(drop))
}

/// What each flow's algorithm is told of its path.
///
/// # Errors
/// As [`crate::run`].
pub fn known_paths(spec: &Spec) -> Result<Vec<PathKnowledge>, RunError> {
    let paths = Paths::make(spec, &mut |_| ControlFlow::Continue(()))?;
    let of =
        |(flow, path): (&Flow, &FlowPaths)| path_knowledge(spec, &spec.transports[flow.transport as usize].stack, path);
    Ok(spec.flows.iter().zip(paths.flows.iter()).map(of).collect())
}

/// The links that each flow's data and its acknowledgements cross, then those of each source of datagrams (nothing comes back).
///
/// # Errors
/// As [`crate::run`].
pub fn routes(spec: &Spec) -> Result<Vec<[Vec<LinkId>; 2]>, RunError> {
    let paths = Paths::make(spec, &mut |_| ControlFlow::Continue(()))?;
    let mut routes: Vec<[Vec<LinkId>; 2]> =
        paths.flows.iter().map(|f| [f.forward.to_vec(), f.backward.to_vec()]).collect();
    for [way, _] in &paths.ways[spec.flows.len()..] {
        let first = if spec.routing == Routing::Spray { paths.choices[way.first as usize] } else { way.first };
        let links = paths.table[first as usize..].iter().take_while(|&&l| l != END).map(|&l| LinkId(l)).collect();
        routes.push([links, Vec::new()]);
    }
    Ok(routes)
}

/// What each message would take alone on empty links, without slow start or losses; ps.
///
/// # Errors
/// As [`crate::run`].
pub fn ideal_times(spec: &Spec) -> Result<Vec<u64>, RunError> {
    let paths = Paths::make(spec, &mut |_| ControlFlow::Continue(()))?;
    Ok(spec.messages.iter().map(|m| ideal_time(spec, m, &paths.flows[m.flow.index()])).collect())
}

/// The round trip of one full segment on empty links.
pub(crate) fn base_rtt(spec: &Spec, flow: u32, paths: &FlowPaths) -> Duration {
    let transport = spec.flows[flow as usize].transport;
    path_knowledge(spec, &spec.transports[transport as usize].stack, paths).base_rtt
}

/// What an algorithm is told when it is built.
pub(crate) fn setup_for(spec: &Spec, stack: &Stack, paths: &FlowPaths) -> Setup {
    Setup { path: Some(path_knowledge(spec, stack, paths)), ..setup_of(stack) }
}

/// The same before its path is known.
pub(crate) fn setup_of(stack: &Stack) -> Setup {
    Setup {
        mss: stack.mss,
        wire: stack.wire(stack.mss),
        initial_window: stack.initial_window,
        initial_ssthresh: stack.initial_ssthresh,
        counting: stack.counting,
        hz: stack.hz,
        profile: stack.cc_profile,
        path: None,
    }
}

/// What an operator could know: the slowest port on the way with its buffer, and the round trip of one full segment.
fn path_knowledge(spec: &Spec, stack: &Stack, paths: &FlowPaths) -> PathKnowledge {
    let full = stack.wire(stack.mss);
    let link = |l: &LinkId| &spec.links[l.index()];
    // The slowest port on the way, a sender's own included; of equally slow ones the last with a limited buffer, where fan-in meets.
    // (Taking the slowest switch port instead starves TRIM where that port's buffer is below C*D: its fallback K_UB is then less than
    // the empty round trip. papers/trim/README.md.)
    let bottleneck = paths.forward.iter().map(link).reduce(|best, l| {
        let better = l.rate < best.rate || (l.rate == best.rate && l.queue.limit.is_some());
        if better { l } else { best }
    });
    let buffer_packets = match bottleneck.and_then(|l| l.queue.limit) {
        Some(QueueLimit::Packets(n)) => f64::from(n),
        Some(QueueLimit::Bytes(b)) => b.get() as f64 / full.get() as f64,
        None => bottleneck
            .and_then(|l| spec.nodes[l.from.index()].shared_buffer)
            .map_or(f64::INFINITY, |s| s.size.get() as f64 / full.get() as f64),
    };
    PathKnowledge {
        rate: bottleneck.map_or(Rate::gbps(1), |l| l.rate),
        base_rtt: one_way(spec, &paths.forward, full) + ack_time(spec, stack, paths),
        buffer_packets,
    }
}

/// What an ACK takes on empty links.
pub(crate) fn ack_time(spec: &Spec, stack: &Stack, paths: &FlowPaths) -> Duration {
    one_way(spec, &paths.backward, stack.wire(0))
}

fn one_way(spec: &Spec, links: &[LinkId], wire: Bytes) -> Duration {
    let links = links.iter().map(|l| &spec.links[l.index()]);
    links.fold(Duration::ZERO, |sum, link| sum + wire / link.rate + hop_delay(spec, link))
}

fn hop_delay(spec: &Spec, link: &Link) -> Duration {
    match spec.nodes[link.to.index()].kind {
        crate::spec::NodeKind::Switch => link.delay + spec.nodes[link.to.index()].processing,
        crate::spec::NodeKind::Host => link.delay,
    }
}

/// What a message would take alone on empty links without slow start: its bytes through the slowest link, the last packet through
/// the others, and the delays.
fn ideal_time(spec: &Spec, message: &Message, paths: &FlowPaths) -> u64 {
    if message.bytes == Message::UNLIMITED || message.bytes == 0 {
        return 0;
    }
    let flow: &Flow = &spec.flows[message.flow.index()];
    let stack = &spec.transports[flow.transport as usize].stack;
    let mss = u64::from(stack.mss);
    let packets = message.bytes.div_ceil(mss);
    let last = (message.bytes - (packets - 1) * mss) as u32;
    let slowest = paths.forward.iter().map(|l| spec.links[l.index()].rate).min().unwrap_or(Rate::gbps(1));
    let full = Duration::from_ps((stack.wire(stack.mss) / slowest).ps());
    let mut time = full * (packets - 1);
    for l in paths.forward.iter() {
        let link = &spec.links[l.index()];
        time += stack.wire(last) / link.rate + hop_delay(spec, link);
    }
    time.ps()
}
