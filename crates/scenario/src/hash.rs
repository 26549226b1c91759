//! A stable hash of everything that decides a run's results.
//!
//! It is taken of the resolved plan, so that comments, order and spelling do not matter, and a changed default or a changed
//! distribution file does. Every field is named here: one that is added to the plan does not compile until it is.

use fanin_cc::Args;
use fanin_sim::hosts::{HOST_KNOBS, HostModel};
use fanin_sim::knobs::KNOBS;
use fanin_sim::spec::{
    Cbr, Flow, Gate, GateEvent, Link, Message, Node, NodeKind, Queue, Release, Routing, Spec, TraceSpec, TransportSpec,
};
use fanin_units::QueueLimit;
use sha2::{Digest, Sha256};

/// 16 hexadecimal digits. The seed and what is recorded do not count.
pub(crate) fn spec(spec: &Spec) -> String {
    fed(spec).hex(8)
}

/// Identifies the results of one run: 32 hexadecimal digits of everything that the engine is given, seed and recording included. Two plans
/// of equal identity give equal results on the same engine.
///
/// ```
/// use fanin_scenario::{Scenario, identity};
/// let text = "[topology]\n[[workload]]\nkind = \"incast\"\nbytes = \"64KB\"";
/// let with = |text: &str, seed| identity(&Scenario::from_text(text, "example").unwrap().plan(seed).unwrap());
/// assert_eq!(with(text, 1), with(&format!("# a comment\n{text}"), 1));
/// assert_ne!(with(text, 1), with(text, 2));
/// assert_ne!(with(text, 1), with(&format!("{text}\n[measure]\nthroughput = \"1ms\""), 1));
/// ```
pub fn identity(spec: &Spec) -> String {
    let mut feed = fed(spec);
    feed.number(spec.seed);
    feed.text(&format!("{:?}", spec.trace));
    feed.hex(16)
}

fn fed(spec: &Spec) -> Feed {
    let Spec {
        nodes,
        links,
        hosts,
        routing,
        transports,
        flows,
        messages,
        barriers,
        gates,
        cbr,
        end,
        stop_when_done,
        seed: _,
        trace,
    } = spec;
    let TraceSpec {
        classes,
        queues: _,
        queue_interval: _,
        windows: _,
        packets: _,
        slowest: _,
        most: _,
        internals: _,
        throughput_interval: _,
        drops_and_marks: _,
    } = trace;
    let mut feed = Feed(Sha256::new());
    feed.text(concat!("fanin ", env!("CARGO_PKG_VERSION")));
    feed.all(nodes, Feed::node);
    feed.all(links, Feed::link);
    feed.number(match routing {
        Routing::FlowHash => 0,
        Routing::Spray => 1,
        Routing::EqualLength => 2,
        Routing::Lowest => 3,
    });
    // Plans of the time before hosts cost something keep their hashes.
    if *hosts != HostModel::ideal() {
        feed.text("hosts");
        HOST_KNOBS.iter().for_each(|knob| feed.text(&(knob.get)(hosts)));
    }
    feed.all(transports, Feed::transport);
    feed.all(flows, Feed::flow);
    feed.all(messages, Feed::message);
    feed.number(u64::from(*barriers));
    if !gates.is_empty() {
        feed.all(gates, Feed::gate);
    }
    feed.all(cbr, Feed::cbr);
    feed.number(end.ps());
    feed.number(u64::from(*stop_when_done));
    feed.all(classes, |feed, name| feed.text(name));
    feed
}

struct Feed(Sha256);

impl Feed {
    fn hex(self, bytes: usize) -> String {
        self.0.finalize().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
    }
    fn number(&mut self, n: u64) {
        self.0.update(n.to_le_bytes());
    }
    fn real(&mut self, x: f64) {
        self.number(x.to_bits());
    }
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }
    fn option(&mut self, n: Option<u64>) {
        self.number(u64::from(n.is_some()));
        self.number(n.unwrap_or(0));
    }
    fn all<T>(&mut self, items: &[T], each: fn(&mut Feed, &T)) {
        self.number(items.len() as u64);
        for item in items {
            each(self, item);
        }
    }

    fn gate(&mut self, gate: &Gate) {
        let Gate { barrier, of, need, event } = gate;
        self.number(u64::from(barrier.0));
        self.all(of, |feed, message| feed.number(u64::from(message.0)));
        self.number(u64::from(*need));
        self.number(u64::from(*event == GateEvent::Released));
    }
    fn node(&mut self, node: &Node) {
        let Node { name, kind, processing, shared_buffer } = node;
        self.text(name);
        self.number(u64::from(*kind == NodeKind::Switch));
        self.number(processing.ps());
        self.option(shared_buffer.map(|b| b.size.get()));
        self.real(shared_buffer.map_or(0.0, |b| b.alpha));
    }
    fn link(&mut self, link: &Link) {
        let Link { from, to, rate, delay, queue } = link;
        for n in [u64::from(from.0), u64::from(to.0), rate.bps(), delay.ps()] {
            self.number(n);
        }
        let Queue { limit, mark_above, discipline, args } = queue;
        self.limit(*limit);
        self.limit(*mark_above);
        self.text(discipline.name);
        self.args(args);
    }
    fn limit(&mut self, limit: Option<QueueLimit>) {
        match limit {
            None => self.number(0),
            Some(QueueLimit::Packets(n)) => {
                self.number(1);
                self.number(u64::from(n));
            }
            Some(QueueLimit::Bytes(b)) => {
                self.number(2);
                self.number(b.get());
            }
        }
    }
    fn args(&mut self, args: &Args) {
        self.number(args.names().count() as u64);
        for (name, value) in args.iter() {
            self.text(name);
            self.text(&value.to_string());
        }
    }
    fn transport(&mut self, transport: &TransportSpec) {
        let TransportSpec { cc, args, stack } = transport;
        self.text(cc.name());
        // A name that is no algorithm is refused before anything is hashed.
        let version = cc.fingerprint();
        if !version.is_empty() {
            self.text(&version);
        }
        self.args(args);
        for knob in KNOBS {
            self.text(&(knob.get)(stack));
        }
    }
    fn flow(&mut self, flow: &Flow) {
        let Flow { src, dst, transport, class, reverse, open, stop } = flow;
        for n in [src.0, dst.0, *transport, u32::from(*class)] {
            self.number(u64::from(n));
        }
        self.option(reverse.map(|f| u64::from(f.0)));
        if let Some(open) = open.get() {
            self.text("open");
            self.number(open.ps());
        }
        self.option(stop.get().map(|t| t.ps()));
    }
    fn message(&mut self, message: &Message) {
        let Message { flow, bytes, release, deadline, class, completes } = message;
        self.number(u64::from(flow.0));
        self.number(*bytes);
        match release {
            Release::At(time) => {
                self.number(0);
                self.number(time.ps());
            }
            Release::After(barrier, pause) => {
                self.number(1);
                self.number(u64::from(barrier.0));
                self.number(pause.ps());
            }
            Release::NotBefore(time, barrier) => {
                self.number(2);
                self.number(u64::from(barrier.0));
                self.number(time.ps());
            }
        }
        self.option(deadline.map(|d| d.ps()));
        self.number(u64::from(*class));
        self.option(completes.map(|b| u64::from(b.0)));
    }
    fn cbr(&mut self, source: &Cbr) {
        let Cbr { src, dst, rate, packet, start, stop, class } = source;
        let numbers =
            [u64::from(src.0), u64::from(dst.0), rate.bps(), packet.get(), start.ps(), stop.ps(), u64::from(*class)];
        for n in numbers {
            self.number(n);
        }
    }
}
