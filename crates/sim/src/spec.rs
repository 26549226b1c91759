//! What a run is made of, fully resolved: `fanin-scenario` writes it, the engine reads it, nothing in it is a default.

use crate::host::model::HostModel;
use crate::stack::Stack;
use fanin_cc::{Args, Composition};
use fanin_switch::disciplines::{DROP_TAIL, Discipline};
use fanin_units::{Bytes, Duration, MaybeTime, QueueLimit, Rate, Time};
use smallvec::SmallVec;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);
        impl $name {
            /// Position in the table of its kind.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A host or switch: position in [`Spec::nodes`].
    NodeId
}
id! {
    /// A directed link with the output port that feeds it: position in [`Spec::links`].
    LinkId
}
id! {
    /// A one-way byte stream: position in [`Spec::flows`].
    FlowId
}
id! {
    /// A message of a flow: position in [`Spec::messages`].
    MessageId
}
id! {
    /// A barrier: position in the count given by [`Spec::barriers`].
    BarrierId
}

/// One simulation.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Hosts and switches.
    pub nodes: Vec<Node>,
    /// Directed links; a cable is two of them.
    pub links: Vec<Link>,
    /// What every host is made of and costs.
    pub hosts: HostModel,
    /// How packets find their way.
    pub routing: Routing,
    /// TCP stacks, each with its algorithm; flows refer to one.
    pub transports: Vec<TransportSpec>,
    /// One-way byte streams.
    pub flows: Vec<Flow>,
    /// What the applications send, in any order.
    pub messages: Vec<Message>,
    /// How many barriers there are. A barrier opens when every message with `completes == it` is delivered, or as its gate says.
    pub barriers: u32,
    /// Barriers that open otherwise.
    pub gates: Vec<Gate>,
    /// Unresponsive background traffic.
    pub cbr: Vec<Cbr>,
    /// The run stops here at the latest.
    pub end: Time,
    /// Stop as soon as every message of finite size is delivered.
    pub stop_when_done: bool,
    /// Seed of all random streams.
    pub seed: u64,
    /// What to record.
    pub trace: TraceSpec,
}

impl Spec {
    /// By node: applications send it more than it sends, as they do an aggregator.
    pub fn receiving_hosts(&self) -> Vec<bool> {
        let mut balance = vec![0_i128; self.nodes.len()];
        for message in &self.messages {
            let flow = &self.flows[message.flow.index()];
            balance[flow.dst.index()] += i128::from(message.bytes);
            balance[flow.src.index()] -= i128::from(message.bytes);
        }
        balance.into_iter().map(|bytes| bytes > 0).collect()
    }
}

/// A host or a switch.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name in results.
    pub name: String,
    /// Hosts end connections; switches forward.
    pub kind: NodeKind,
    /// Added to every packet a switch forwards, between its arrival and its output port.
    pub processing: Duration,
    /// A buffer that all output ports of the switch share, instead of a limit per port.
    pub shared_buffer: Option<SharedBuffer>,
}

/// What a node does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// Ends connections.
    Host,
    /// Forwards.
    Switch,
}

/// Dynamic thresholds (Choudhury and Hahne): a port may hold at most `alpha` times the free part of the common buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SharedBuffer {
    /// Common buffer.
    pub size: Bytes,
    /// Share of the free buffer that one port may take.
    pub alpha: f64,
}

/// A directed link and the output port that feeds it.
#[derive(Clone, Debug)]
pub struct Link {
    /// Sender's side.
    pub from: NodeId,
    /// Receiver's side.
    pub to: NodeId,
    /// Bits per second on the wire.
    pub rate: Rate,
    /// Propagation.
    pub delay: Duration,
    /// Buffer and its rules.
    pub queue: Queue,
}

/// An output port's buffer. The packet in transmission occupies the buffer until its last bit has left.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Drop what would exceed this; `None` is unlimited (hosts).
    pub limit: Option<QueueLimit>,
    /// Mark an ECN-capable packet when the queue with it exceeds this (DCTCP's K).
    pub mark_above: Option<QueueLimit>,
    /// The discipline, drop-tail unless said.
    pub discipline: &'static Discipline,
    /// Settings of the discipline.
    pub args: Args,
}

impl Queue {
    /// First in, first out, drop-tail, no marking.
    pub fn drop_tail(limit: Option<QueueLimit>) -> Queue {
        Queue { limit, mark_above: None, discipline: &DROP_TAIL, args: Args::default() }
    }
}

/// How packets choose among equally short paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Routing {
    /// A hash of flow and seed picks one path per flow and direction (ECMP).
    FlowHash,
    /// Every packet draws its path (packet spraying).
    Spray,
    /// Every path goes through the core, so that all are equally long (TCPRand's related work).
    EqualLength,
    /// The lowest-numbered next hop of those on a shortest path, always: ns-2's static routes (`RouteLogic::compute_routes`).
    Lowest,
}

/// A stack and its congestion control.
#[derive(Clone, Debug)]
pub struct TransportSpec {
    /// The algorithm.
    pub cc: Composition,
    /// Its settings.
    pub args: Args,
    /// The endpoint's knobs.
    pub stack: Stack,
}

/// A one-way byte stream; a request/response connection is two of them in opposite directions.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Sending host.
    pub src: NodeId,
    /// Receiving host.
    pub dst: NodeId,
    /// Position in [`Spec::transports`].
    pub transport: u32,
    /// Group in reports (`short`, `S1`, `background`): position in [`Spec::trace`]'s class names.
    pub class: u16,
    /// The opposite direction of the same connection.
    pub reverse: Option<FlowId>,
    /// The connection is opened then, before anything is sent; with the first message unless set.
    pub open: MaybeTime,
    /// Sends nothing new from here on.
    pub stop: MaybeTime,
}

/// A replay of a million connections has two million.
const _: () = assert!(size_of::<Flow>() <= 40);

/// Something an application sends on a flow.
#[derive(Clone, Debug)]
pub struct Message {
    /// On this flow, after the messages released earlier.
    pub flow: FlowId,
    /// Payload; [`Message::UNLIMITED`] never ends.
    pub bytes: u64,
    /// When the application hands it to TCP.
    pub release: Release,
    /// Should be delivered so long after its release (D2TCP).
    pub deadline: Option<Duration>,
    /// Group in reports.
    pub class: u16,
    /// Delivering it counts towards this barrier.
    pub completes: Option<BarrierId>,
}

impl Message {
    /// A long-lived transfer.
    pub const UNLIMITED: u64 = u64::MAX;
}

/// When an application hands a message to TCP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Release {
    /// At this time.
    At(Time),
    /// So long after the barrier opened.
    After(BarrierId, Duration),
    /// At this time, or when the barrier opens if that is later.
    NotBefore(Time, BarrierId),
}

impl Release {
    /// The same so much later; what waits for a time or a barrier is later only if the time is.
    pub fn later(self, by: Duration) -> Release {
        match self {
            Release::At(time) => Release::At(time + by),
            Release::After(barrier, delay) => Release::After(barrier, delay + by),
            Release::NotBefore(time, barrier) => Release::NotBefore(time + by, barrier),
        }
    }
}

/// A barrier that opens when some of several messages have come so far. No message `completes` it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// What opens.
    pub barrier: BarrierId,
    /// The messages.
    pub of: SmallVec<[MessageId; 4]>,
    /// How many of them it takes.
    pub need: u32,
    /// How far they must have come.
    pub event: GateEvent,
}

/// What a gate waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateEvent {
    /// The message is delivered.
    Delivered,
    /// The application hands the message to TCP.
    Released,
}

/// Unresponsive constant-bit-rate datagrams.
#[derive(Clone, Debug)]
pub struct Cbr {
    /// Sending host.
    pub src: NodeId,
    /// Receiving host.
    pub dst: NodeId,
    /// Wire bits per second.
    pub rate: Rate,
    /// Bytes of a packet on the wire.
    pub packet: Bytes,
    /// First packet.
    pub start: Time,
    /// None from here on.
    pub stop: Time,
    /// Group in reports.
    pub class: u16,
}

/// Answers whose packets explain most.
#[derive(Clone, Debug)]
pub struct SlowestSpec {
    /// Of how many answers events are kept: those that took longest, of equal ones the first.
    pub most: usize,
    /// Per answer its first and its last message, both on one flow.
    pub answers: Vec<(MessageId, MessageId)>,
}

/// What to record. Empty records nothing and costs nothing.
#[derive(Clone, Debug, Default)]
pub struct TraceSpec {
    /// Names of the classes that flows and messages refer to.
    pub classes: Vec<String>,
    /// Queue length of these ports.
    pub queues: Vec<LinkId>,
    /// Sample queues at this interval; `None` records every change.
    pub queue_interval: Option<Duration>,
    /// cwnd, ssthresh, srtt and state of these flows.
    pub windows: Vec<FlowId>,
    /// What their algorithms tell of themselves, too.
    pub internals: bool,
    /// Every packet event at these ports.
    pub packets: Vec<LinkId>,
    /// Of those, the events of the slowest answers alone, in a run that is one part.
    pub slowest: Option<SlowestSpec>,
    /// At most so many rows of queues, and of windows, in a run that is one part: an envelope that keeps peaks; `None` keeps all.
    pub most: Option<usize>,
    /// Delivered bytes per flow in intervals of this length.
    pub throughput_interval: Option<Duration>,
    /// Every drop and every mark.
    pub drops_and_marks: bool,
}
