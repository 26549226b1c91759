//! TCP as the engine sees it: the senders and receivers of all connections, and who hears of what.

use super::demand::{MANY_FLOWS, Maker, OnDemand};
use super::receiver::Receiver;
use super::sender::{Config, Sender};
use super::uplink::Uplink;
use crate::build::{AllPaths, base_rtt, setup_for, setup_of};
use crate::endpoint::{Endpoint, Handed, Host, PerFlow};
use crate::engine::RunError;
use crate::packet::{Packet, flags};
use crate::partition::Here;
use crate::results::FlowStats;
use crate::rng::Stream;
use crate::spec::{NodeId, Spec, TransportSpec};
use crate::stack::{EcnMode, Stack};
use crate::timer::Timer;
use fanin_cc::{Arrival, Needs, Profile, ReceiverControl};
use fanin_switch::{Packet as PacketHandle, prefetch};
use fanin_units::Time;
use std::collections::BTreeMap;

/// Both ends of every connection.
#[derive(Debug)]
pub struct Tcp<'a> {
    senders: PerFlow<Sender>,
    receivers: PerFlow<Receiver>,
    /// What decides for the receivers of one host, where an algorithm does.
    controls: Vec<Box<dyn ReceiverControl>>,
    /// Where ends are there only while they are needed.
    on_demand: Option<OnDemand<'a>>,
}

impl<'a> Tcp<'a> {
    /// Of those flows that `mine` names; `all`: it names all.
    pub fn build(
        spec: &'a Spec,
        paths: &AllPaths,
        here: Here<'_>,
        all: bool,
        mine: &dyn Fn(u32) -> bool,
    ) -> Result<Tcp<'a>, RunError> {
        let flows = spec.flows.len();
        let all = all && here.partition.is_none();
        let here_too = |i: u32| {
            let flow = &spec.flows[i as usize];
            mine(i) && (here.has(flow.src) || here.has(flow.dst))
        };
        let maker = Maker::new(spec, paths, &here_too)?;
        // A policy counts the connections of its host: their ends have to be there before the run begins.
        if here.partition.is_none() && flows >= MANY_FLOWS && !spec.transports.iter().any(controls_receivers) {
            let (senders, receivers) = (PerFlow::new(flows, false), PerFlow::new(flows, false));
            return Ok(Tcp { senders, receivers, controls: Vec::new(), on_demand: Some(OnDemand::new(maker)) });
        }
        let (senders, receivers) = (PerFlow::new(flows, all), PerFlow::new(flows, all));
        let mut tcp = Tcp { senders, receivers, controls: Vec::new(), on_demand: None };
        for (i, flow) in (0..).zip(&spec.flows).filter(|&(i, _)| here_too(i)) {
            if here.has(flow.src) {
                tcp.senders.push(i, maker.sender(i)?);
            }
            if here.has(flow.dst) {
                tcp.receivers.push(i, maker.receiver(i));
            }
        }
        if here.partition.is_none() {
            tcp.control_receivers(spec, paths, mine)?;
        }
        Ok(tcp)
    }

    /// One policy per receiving host and transport. All connections open before any asks for its first window, then rest until their first
    /// message.
    fn control_receivers(&mut self, spec: &Spec, paths: &AllPaths, mine: &dyn Fn(u32) -> bool) -> Result<(), RunError> {
        let mut controlled: Vec<(u32, u32, u32)> = Vec::new();
        let mut known: BTreeMap<(NodeId, u32), (u32, u32)> = BTreeMap::new();
        for (i, flow) in (0..).zip(&spec.flows).filter(|&(i, _)| mine(i)) {
            let transport = &spec.transports[flow.transport as usize];
            let slot = match known.get_mut(&(flow.dst, flow.transport)) {
                Some(slot) => slot,
                None => {
                    let setup = setup_for(spec, &transport.stack, &paths[i as usize]);
                    let Some(policy) = transport.cc.build_receiver(&setup, &transport.args)? else {
                        continue;
                    };
                    self.controls.push(policy);
                    known.entry((flow.dst, flow.transport)).or_insert((self.controls.len() as u32 - 1, 0))
                }
            };
            let (control, conn) = *slot;
            slot.1 += 1;
            let mut random = Stream::new(spec.seed, "receiver", u64::from(i));
            let base = base_rtt(spec, i, &paths[i as usize]);
            self.controls[control as usize].on_open(Time::ZERO, conn, base, random.uniform());
            controlled.push((i, control, conn));
        }
        for &(i, control, conn) in &controlled {
            let stack = &spec.transports[spec.flows[i as usize].transport as usize].stack;
            // The first window is the policy's answer to an arrival of nothing.
            let opening = Arrival { now: Time::ZERO, conn, mss: stack.mss, wire_bytes: 0, payload_bytes: 0, rtt: None };
            let window = self.controls[control as usize].on_data(&opening).window.max(least_first_window(stack));
            self.receivers[i].control(control, conn, window);
            self.senders[i].limit_window(window);
        }
        for &(_, control, conn) in &controlled {
            self.controls[control as usize].on_close(Time::ZERO, conn);
        }
        Ok(())
    }

    /// The connection of a flow is used.
    fn wake(&mut self, flow: u32) {
        if let Some(on_demand) = &mut self.on_demand {
            on_demand.wake(flow, &mut self.senders, &mut self.receivers);
        }
    }

    /// Data arrived, or a handshake's first or last packet. The order is Linux's (`tcp_rcv_established`): the data count first, then what
    /// their ACK lets the host send, which may acknowledge them, and only then an ACK by itself.
    #[inline]
    fn receive(&mut self, packet: &Packet, host: &mut Host<'_>) {
        let receiver = &mut self.receivers[packet.flow];
        let peer = receiver.peer();
        // `tcp_data_queue`
        receiver.on_data(packet, || peer.map(|p| self.senders[p].rto()), &mut self.controls, host.net);
        let completes = receiver.has_complete();
        if packet.has(flags::SYN) {
            // ECN is both ends' or none's (RFC 3168 section 6.1.1.1).
            if let (false, Some(peer)) = (receiver.has_ecn(), peer) {
                self.senders[peer].forgo_ecn();
            }
        } else {
            if let Some(peer) = peer {
                self.receive_of_peer(peer, packet, host);
            } else {
                receiver.note_opening(packet, host.net.now);
                let rtt = receiver.opened_in();
                receiver.check_ack(|| rtt, host.net);
            }
        }
        if completes {
            self.after_delivery(packet.flow, host);
        }
    }

    /// The rest of that where the receiving host may send on the same connection.
    fn receive_of_peer(&mut self, peer: u32, packet: &Packet, host: &mut Host<'_>) {
        let opening = self.receivers[packet.flow].take_opening(packet, host.net.now);
        if let Some(rtt) = opening {
            let mut uplink = Uplink { net: host.net, receivers: &mut self.receivers };
            self.senders[peer].opened_by_peer(rtt, &mut uplink);
            self.after_sending(peer, host);
        }
        if let Some(ack) = packet.carried(peer) {
            // Linux sets the algorithm up after the handshake's last packet (`tcp_init_transfer`).
            if opening.is_none() {
                self.senders[peer].on_peers_data(&ack, host.net.now);
            }
            // `tcp_ack` of a segment with data, then `tcp_data_snd_check`.
            self.acknowledge(&ack, host);
        }
        self.receivers[packet.flow].check_ack(|| self.senders[peer].srtt(), host.net);
    }

    /// An ACK arrived.
    #[inline]
    fn acknowledge(&mut self, ack: &Packet, host: &mut Host<'_>) {
        let sender = &mut self.senders[ack.flow];
        sender.on_ack(ack, &mut Uplink { net: host.net, receivers: &mut self.receivers });
        if sender.has_started() {
            self.after_sending(ack.flow, host);
        }
    }

    #[inline(never)]
    fn after_delivery(&mut self, flow: u32, host: &mut Host<'_>) {
        let receiver = &mut self.receivers[flow];
        // One packet may end several messages.
        while let Some(message) = receiver.take_complete() {
            host.delivered(message);
            if let Some((control, conn)) = receiver.controlled()
                && receiver.is_satisfied()
            {
                self.controls[control as usize].on_close(Time::from_ps(host.net.now), conn);
            }
        }
    }

    fn after_sending(&mut self, flow: u32, host: &mut Host<'_>) {
        for (message, time) in self.senders[flow].take_started() {
            host.app.started(message, time);
        }
    }
}

impl Endpoint for Tcp<'_> {
    #[inline]
    fn prefetch(&self, packet: PacketHandle) {
        const LINES: usize = 12;
        if packet.has(flags::ACK) {
            self.senders.get(packet.flow).inspect(|sender| prefetch(*sender, LINES));
        } else {
            self.receivers.get(packet.flow).inspect(|receiver| prefetch(*receiver, LINES));
        }
    }

    #[inline]
    fn on_packet(&mut self, packet: &Packet, host: &mut Host<'_>) {
        if packet.has(flags::ACK) {
            self.acknowledge(packet, host);
        } else {
            self.receive(packet, host);
        }
    }

    fn on_timer(&mut self, timer: Timer, host: &mut Host<'_>) {
        match timer {
            Timer::Source(flow) => {
                // A connection that was given up may have an entry in the calendar that means nothing.
                let Some(sender) = self.senders.get_mut(flow) else { return };
                let before = sender.timeouts();
                sender.on_timer(&mut Uplink { net: host.net, receivers: &mut self.receivers });
                // Applications count timeouts of their answers.
                if sender.timeouts() > before {
                    host.app.timed_out(flow, host.net.now);
                }
                self.after_sending(flow, host);
            }
            Timer::Sink(flow) => {
                if let Some(receiver) = self.receivers.get_mut(flow) {
                    receiver.on_timer(host.net);
                }
            }
            _ => return,
        }
        if let (Some(on_demand), Timer::Source(flow) | Timer::Sink(flow)) = (&mut self.on_demand, timer) {
            on_demand.rest(flow, &mut self.senders, &mut self.receivers, host.net);
        }
    }

    fn open(&mut self, flow: u32, host: &mut Host<'_>) {
        self.wake(flow);
        self.senders[flow].open(&mut Uplink { net: host.net, receivers: &mut self.receivers });
    }

    fn stop(&mut self, flow: u32) {
        if let Some(sender) = self.senders.get_mut(flow) {
            sender.stop();
        }
    }

    fn write(&mut self, message: Handed, host: &mut Host<'_>) {
        let Handed { id, flow, bytes, deadline } = message;
        self.wake(flow);
        if let Some(on_demand) = &mut self.on_demand {
            on_demand.written(flow);
        }
        // Messages follow each other in one stream of bytes: this one ends so far behind what was written before.
        let end = self.senders[flow].write_position().saturating_add(bytes);
        let mut opening = false;
        if let Some(receiver) = self.receivers.get_mut(flow) {
            if let Some((control, conn)) = receiver.controlled()
                && receiver.is_satisfied()
            {
                self.controls[control as usize].on_reopen(Time::from_ps(host.net.now), conn);
            }
            receiver.expect(id, end);
            opening = receiver.peer().is_some_and(|r| self.senders[r].is_opening());
        } else {
            host.net.announce(flow, id, end);
        }
        host.app.promise(id, deadline, self.senders[flow].timeouts());
        let mut uplink = Uplink { net: host.net, receivers: &mut self.receivers };
        self.senders[flow].write(id, bytes, deadline, opening, &mut uplink);
        self.after_sending(flow, host);
        // No packet will come for a message without bytes: it is complete as it is written.
        if bytes == 0 {
            self.after_delivery(flow, host);
        }
    }

    fn expect(&mut self, flow: u32, message: u32, end: u64) {
        self.receivers[flow].expect(message, end);
    }

    fn is_unsent(&self, flow: u32, message: u32) -> bool {
        self.senders[flow].has_unsent(message)
    }

    fn close(&mut self, flow: u32, row: &mut FlowStats) {
        if let Some(on_demand) = &mut self.on_demand
            && self.senders.get(flow).is_none()
        {
            return on_demand.close(flow, row);
        }
        if let Some(sender) = self.senders.take(flow) {
            sender.totals().report(row);
        }
        if let Some(receiver) = self.receivers.take(flow) {
            row.bytes_delivered = receiver.delivered();
            row.last_delivery_ps = receiver.last_delivery();
        }
    }
}

/// Linux sends no segment above half of the largest window that it has seen (`tcp_bound_to_half_wnd`): for whole ones it must have been offered
/// two, whatever the windows are that follow.
fn least_first_window(stack: &Stack) -> u64 {
    if stack.cc_profile == Profile::Linux { 2 * u64::from(stack.mss) } else { 0 }
}

/// An algorithm decides for the receivers, which all open before the run begins.
fn controls_receivers(transport: &TransportSpec) -> bool {
    !matches!(transport.cc.build_receiver(&setup_of(&transport.stack), &transport.args), Ok(None))
}

/// A transport's stack as its endpoints run it: with the recovery, ECN and acknowledgements that its algorithm asks for.
///
/// # Errors
/// As [`crate::run`].
pub fn resolved_stack(transport: &TransportSpec) -> Result<Stack, RunError> {
    // What an algorithm needs of its host depends on the profile, not on the path: the kernel's Vegas lives with delayed ACKs, NS2's does not.
    let built = transport.cc.build(&setup_of(&transport.stack), &transport.args)?;
    Ok(resolve(transport, built.sender.needs(), built.quickack)?.stack)
}

pub(super) fn resolve(transport: &TransportSpec, needs: Needs, quickack: bool) -> Result<Config, RunError> {
    let mut stack = transport.stack.clone();
    if quickack && stack.route_quickack {
        stack.delack_segments = 1;
    }
    if needs.dctcp_ecn {
        stack.ecn = EcnMode::Dctcp;
    }
    if let Some(recovery) = needs.recovery {
        stack.recovery = recovery;
    }
    if !Sender::fits(&stack) {
        return Err(RunError::SegmentTooLarge { mss: stack.mss });
    }
    Ok(Config::new(stack, needs))
}
