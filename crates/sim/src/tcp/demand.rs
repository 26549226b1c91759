//! Ends of connections on demand: made when a connection is first used, given up when nothing can happen on it any more. Of a million
//! connections of a capture, few are open at once.

use super::ended::{AllEnded, Ended};
use super::endpoint::resolve;
use super::receiver::Receiver;
use super::sender::{Config, Sender};
use crate::build::{AllPaths, ack_time, setup_for};
use crate::endpoint::PerFlow;
use crate::engine::RunError;
use crate::host::clock::{Clock, in_jiffies};
use crate::net::Net;
use crate::results::FlowStats;
use crate::rng::Stream;
use crate::spec::{NodeId, Spec};
use fanin_cc::{BuildError, Setup};
use fanin_units::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// From so many flows on ends are made on demand. With fewer, memory is no matter, and an end is found without a look at a table.
pub const MANY_FLOWS: usize = 4_096;

/// So many connections on which nothing can happen any more are given up together: packets under way are looked through once for all.
const BATCH: usize = 1_024;

/// What ends of flows are made from.
#[derive(Debug)]
pub struct Maker<'a> {
    spec: &'a Spec,
    kinds: Vec<Kind>,
    /// By host: it is sent more than it sends. Empty where no stack asks.
    receives: Vec<bool>,
    /// By flow; [`NOT_MINE`] for flows whose ends are made elsewhere.
    kind_of: Vec<u32>,
}

/// Flows of one transport on one path.
#[derive(Debug)]
struct Kind {
    setup: Setup,
    /// Of hosts that send more than they are sent, and of those that are sent more (`Stack::receiver_min_rto`).
    configs: [Arc<Config>; 2],
    /// What an ACK takes on empty links.
    ack_time: Duration,
}

const NOT_MINE: u32 = u32::MAX;

/// A transport as one of its ends runs it.
fn at_end(config: &Config, receives: bool) -> Config {
    let mut config = config.clone();
    config.stack.min_rto = in_jiffies(config.stack.min_rto_of(receives), &config.stack);
    config
}

impl<'a> Maker<'a> {
    /// For those flows that `mine` names.
    ///
    /// # Errors
    /// When the algorithm of one cannot be built.
    pub fn new(spec: &'a Spec, paths: &AllPaths, mine: &dyn Fn(u32) -> bool) -> Result<Maker<'a>, RunError> {
        let asked = spec.transports.iter().any(|t| !t.stack.receiver_min_rto.is_zero());
        let receives = if asked { spec.receiving_hosts() } else { Vec::new() };
        let mut maker = Maker { spec, kinds: Vec::new(), receives, kind_of: vec![NOT_MINE; spec.flows.len()] };
        let mut configs: BTreeMap<u32, [Arc<Config>; 2]> = BTreeMap::new();
        // Equal paths are one in memory, so that where they stand tells them apart.
        let mut known: BTreeMap<(u32, usize, usize), u32> = BTreeMap::new();
        for (i, flow) in (0..).zip(&spec.flows).filter(|&(i, _)| mine(i)) {
            let path = &paths[i as usize];
            // Flows of one transport on one path differ in nothing that is kept here.
            let key = (flow.transport, path.forward.as_ptr() as usize, path.backward.as_ptr() as usize);
            if let Some(&kind) = known.get(&key) {
                maker.kind_of[i as usize] = kind;
                continue;
            }
            let transport = &spec.transports[flow.transport as usize];
            let setup = setup_for(spec, &transport.stack, path);
            let built = transport.cc.build(&setup, &transport.args)?;
            let configs = match configs.get(&flow.transport) {
                Some(configs) => configs.clone(),
                None => {
                    let config = resolve(transport, built.sender.needs(), built.quickack)?;
                    let both = [false, true].map(|receives| Arc::new(at_end(&config, receives)));
                    configs.insert(flow.transport, both.clone());
                    both
                }
            };
            let kind = maker.kinds.len() as u32;
            maker.kinds.push(Kind { setup, configs, ack_time: ack_time(spec, &transport.stack, path) });
            known.insert(key, kind);
            maker.kind_of[i as usize] = kind;
        }
        Ok(maker)
    }

    fn kind(&self, flow: u32) -> &Kind {
        &self.kinds[self.kind_of[flow as usize] as usize]
    }

    /// What a host does of a flow that it sends or is sent.
    fn config(&self, flow: u32, host: NodeId) -> &Arc<Config> {
        &self.kind(flow).configs[usize::from(self.receives.get(host.index()).is_some_and(|&r| r))]
    }

    fn clock(&self, config: &Config, host: NodeId) -> Clock {
        Clock::new(&config.stack, self.spec.seed, u64::from(host.0))
    }

    /// The sending end of a flow, before anything is sent.
    ///
    /// # Errors
    /// When its algorithm cannot be built.
    pub fn sender(&self, flow: u32) -> Result<Sender, BuildError> {
        let of = &self.spec.flows[flow as usize];
        let (setup, config) = (&self.kind(flow).setup, self.config(flow, of.src));
        let transport = &self.spec.transports[of.transport as usize];
        let built = transport.cc.build(setup, &transport.args)?;
        // A stream of random numbers per flow, named by its number: making an end later draws the same.
        let draws = config.needs.randomness || !config.stack.send_jitter.is_zero();
        let random = draws.then(|| Stream::new(self.spec.seed, "flow", u64::from(flow)));
        let clock = self.clock(config, of.src);
        Ok(Sender::new(flow, of.reverse.map(|r| r.0), config.clone(), clock, built.sender, random))
    }

    /// The receiving end of a flow, before anything has arrived.
    pub fn receiver(&self, flow: u32) -> Receiver {
        let of = &self.spec.flows[flow as usize];
        let (ack_time, config) = (self.kind(flow).ack_time, self.config(flow, of.dst));
        let jitters = !config.stack.send_jitter.is_zero();
        let random = jitters.then(|| Stream::new(self.spec.seed, "acks", u64::from(flow)));
        let clock = self.clock(config, of.dst);
        Receiver::new(flow, of.reverse.map(|r| r.0), config.clone(), clock, ack_time, random)
    }

    /// The opposite direction of a flow's connection.
    fn reverse(&self, flow: u32) -> Option<u32> {
        self.spec.flows[flow as usize].reverse.map(|r| r.0)
    }
}

/// Which ends are there.
#[derive(Debug)]
pub struct OnDemand<'a> {
    maker: Maker<'a>,
    /// Messages of each flow that are still to be handed over.
    unwritten: Vec<u32>,
    /// Flows on whose connections nothing can happen any more, as far as their ends know.
    over: Vec<u32>,
    /// Length of that list from which on it is looked through.
    enough: usize,
    ended: AllEnded,
}

impl<'a> OnDemand<'a> {
    /// No end is there.
    pub fn new(maker: Maker<'a>) -> OnDemand<'a> {
        let mut unwritten = vec![0; maker.spec.flows.len()];
        for message in &maker.spec.messages {
            unwritten[message.flow.index()] += 1;
        }
        let ended = AllEnded::new(unwritten.len());
        OnDemand { maker, unwritten, over: Vec::new(), enough: BATCH, ended }
    }

    /// The connection of a flow is used: its ends are made unless they are there.
    pub fn wake(&mut self, flow: u32, senders: &mut PerFlow<Sender>, receivers: &mut PerFlow<Receiver>) {
        if senders.get_mut(flow).is_some() {
            return;
        }
        // Both directions at once: data of the one carry ACKs of the other.
        for flow in [Some(flow), self.maker.reverse(flow)].into_iter().flatten() {
            let sender = self.maker.sender(flow).expect("the algorithm was built before, with the same setup");
            senders.push(flow, sender);
            receivers.push(flow, self.maker.receiver(flow));
        }
    }

    /// A message of a flow was handed over.
    pub fn written(&mut self, flow: u32) {
        self.unwritten[flow as usize] -= 1;
    }

    /// A timer of a flow has passed: if nothing can happen on its connection any more, its ends are given up soon.
    pub fn rest(&mut self, flow: u32, senders: &mut PerFlow<Sender>, receivers: &mut PerFlow<Receiver>, net: &Net) {
        if !self.is_over(flow, senders, receivers) {
            return;
        }
        // To look through all packets under way costs as much for one flow as for a thousand.
        self.over.push(flow);
        if self.over.len() < self.enough {
            return;
        }
        // A packet of an end that is gone would find nothing to arrive at.
        let under_way = net.store.flows();
        let is_under_way = |flow: u32| under_way.binary_search(&flow).is_ok();
        for flow in std::mem::take(&mut self.over) {
            let reverse = self.maker.reverse(flow);
            if is_under_way(flow) || reverse.is_some_and(is_under_way) {
                self.over.push(flow);
            } else if self.is_over(flow, senders, receivers) {
                self.give_up(flow, senders, receivers);
                if let Some(reverse) = reverse {
                    self.give_up(reverse, senders, receivers);
                }
            }
        }
        // Those that are left are looked at again together with as many new ones.
        self.enough = self.over.len() + BATCH;
    }

    /// Neither end of the flow's connection, of either direction, will do anything unless a packet comes.
    fn is_over(&self, flow: u32, senders: &PerFlow<Sender>, receivers: &PerFlow<Receiver>) -> bool {
        let is_over = |flow: u32| {
            // What is still to be written, opened or stopped is an event that will ask for these ends.
            let of = &self.maker.spec.flows[flow as usize];
            self.unwritten[flow as usize] == 0
                && of.open.get().is_none()
                && of.stop.get().is_none()
                && senders.get(flow).is_some_and(Sender::is_over)
                && receivers.get(flow).is_some_and(Receiver::is_over)
        };
        is_over(flow) && self.maker.reverse(flow).is_none_or(is_over)
    }

    fn give_up(&mut self, flow: u32, senders: &mut PerFlow<Sender>, receivers: &mut PerFlow<Receiver>) {
        if let (Some(sender), Some(receiver)) = (senders.take(flow), receivers.take(flow)) {
            let (delivered, last_delivery) = (receiver.delivered(), receiver.last_delivery());
            self.ended.add(flow, &Ended { sent: sender.totals(), delivered, last_delivery });
        }
    }

    /// Adds the totals of a flow whose ends are not there to its row.
    pub fn close(&mut self, flow: u32, row: &mut FlowStats) {
        if let Some(ended) = self.ended.get(flow) {
            ended.sent.report(row);
            (row.bytes_delivered, row.last_delivery_ps) = (ended.delivered, ended.last_delivery);
        // It was never used: what an end begins with.
        } else if let Ok(sender) = self.maker.sender(flow) {
            sender.totals().report(row);
        }
    }
}
