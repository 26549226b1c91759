//! Networks and runs that several tests use.

use fanin_cc::Args;
use fanin_sim::results::Results;
use fanin_sim::spec::*;
use fanin_sim::stack::Stack;
use fanin_units::{Duration, MaybeTime, QueueLimit, Rate, Time};
use std::ops::ControlFlow;

/// `n` senders, one switch, one receiver (node 0); the receiver's port is link 1.
pub fn star(n: u32, rate: Rate, delay: Duration, buffer: Option<QueueLimit>, mark: Option<QueueLimit>) -> Spec {
    let node = |name: String, kind| Node { name, kind, processing: Duration::ZERO, shared_buffer: None };
    let mut nodes = vec![node("client".into(), NodeKind::Host), node("switch".into(), NodeKind::Switch)];
    let mut links = Vec::new();
    let mut cable = |a: u32, b: u32, switch_to_host: Option<QueueLimit>| {
        // Host to switch first.
        links.push(Link { from: NodeId(a), to: NodeId(b), rate, delay, queue: Queue::drop_tail(None) });
        let mut queue = Queue::drop_tail(switch_to_host);
        queue.mark_above = mark;
        links.push(Link { from: NodeId(b), to: NodeId(a), rate, delay, queue });
    };
    cable(0, 1, buffer);
    for i in 0..n {
        nodes.push(node(format!("s{}", i + 1), NodeKind::Host));
        cable(2 + i, 1, buffer);
    }
    Spec {
        nodes,
        links,
        hosts: fanin_sim::hosts::HostModel::ideal(),
        routing: Routing::FlowHash,
        transports: Vec::new(),
        flows: Vec::new(),
        messages: Vec::new(),
        barriers: 0,
        gates: Vec::new(),
        cbr: Vec::new(),
        end: Time::ZERO + Duration::s(10),
        stop_when_done: true,
        seed: 1,
        trace: TraceSpec::default(),
    }
}

/// Gives every link but the client's this rate.
pub fn fast_access(spec: &mut Spec, rate: Rate) {
    for link in &mut spec.links[2..] {
        link.rate = rate;
    }
}

/// NS2's agents on connections that are open already: the first packet is data.
pub fn open_ns2() -> Stack {
    Stack { handshake: false, ..Stack::ns2() }
}

pub fn transport(spec: &mut Spec, cc: &str, stack: Stack) -> u32 {
    spec.transports.push(TransportSpec { cc: fanin_cc::registry::resolve(cc).unwrap(), args: Args::default(), stack });
    spec.transports.len() as u32 - 1
}

/// A flow from sender `i` (0-based) to the client.
pub fn flow(spec: &mut Spec, sender: u32, transport: u32) -> FlowId {
    spec.flows.push(Flow {
        src: NodeId(2 + sender),
        dst: NodeId(0),
        transport,
        class: 0,
        reverse: None,
        open: MaybeTime::NONE,
        stop: MaybeTime::NONE,
    });
    FlowId(spec.flows.len() as u32 - 1)
}

pub fn message(spec: &mut Spec, flow: FlowId, bytes: u64, at: Duration) -> MessageId {
    spec.messages.push(Message {
        flow,
        bytes,
        release: Release::At(Time::ZERO + at),
        deadline: None,
        class: 0,
        completes: None,
    });
    MessageId(spec.messages.len() as u32 - 1)
}

pub fn run(spec: &Spec) -> Results {
    fanin_sim::run(spec, &mut |_| ControlFlow::Continue(())).unwrap()
}
