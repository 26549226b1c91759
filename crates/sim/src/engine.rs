//! A run: builds the network and endpoints of a [`Spec`], lets events happen in order, and collects the results.

use crate::app::Application;
use crate::calendar::Event;
use crate::net::Net;
use crate::packet::{Packet, flags};
use crate::results::Results;
use crate::spec::Spec;
use crate::tcp::{Receiver, Sender, Uplink};
use crate::trace::Tap;
use crate::{build, report};
use fanin_cc::{BuildError, ReceiverControl};
use fanin_switch::prefetch;
use fanin_units::Time;
use std::ops::ControlFlow;
use thiserror::Error;

/// Why a run could not start or did not finish.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RunError {
    /// The congestion control cannot be built.
    #[error(transparent)]
    CongestionControl(#[from] BuildError),
    /// No links lead from one host to another.
    #[error("there is no path from `{from}` to `{to}`; connect them in the topology")]
    NoPath {
        /// Sending host.
        from: String,
        /// Receiving host.
        to: String,
    },
    /// No such queue discipline.
    #[error("no queue discipline named `{name}`; `fanin list queue` shows all")]
    UnknownDiscipline {
        /// As named.
        name: String,
    },
    /// A setting of a queue discipline is unknown or out of range.
    #[error("queue of `{port}`: {error}")]
    Discipline {
        /// `from->to`.
        port: String,
        /// What is wrong.
        error: fanin_cc::ParamError,
    },
    /// Segments do not fit an IP packet.
    #[error("mss {mss} with headers does not fit into an IP packet of 65535 bytes; use a smaller mss")]
    SegmentTooLarge {
        /// As set.
        mss: u32,
    },
    /// The caller asked to stop.
    #[error("interrupted at {at} of the simulated time")]
    Interrupted {
        /// How far it had come.
        at: Time,
    },
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time so far.
    pub now: Time,
    /// When the run ends at the latest.
    pub end: Time,
    /// Packet-hops so far.
    pub packet_hops: u64,
    /// Finite messages delivered, and in all.
    pub messages: (u64, u64),
}

/// Receivers under one host's control.
#[derive(Debug)]
pub(crate) struct HostControl {
    pub policy: Box<dyn ReceiverControl>,
}

/// Everything that lives during a run.
pub(crate) struct Run<'a> {
    pub spec: &'a Spec,
    pub net: Net,
    pub senders: Vec<Sender>,
    pub receivers: Vec<Receiver>,
    /// Position in `controls` and number of the connection there, per flow.
    pub controlled: Vec<Option<(u32, u32)>>,
    pub controls: Vec<HostControl>,
    pub app: Application,
    pub cbr_sent: Vec<u64>,
    pub cbr_received: Vec<u64>,
    pub timers: TimerMap,
    /// Of traced ports, every so often.
    pub queue_samples: bool,
}

/// Which timer number belongs to whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimerMap {
    pub senders: u32,
    pub receivers: u32,
    pub messages: u32,
    pub cbr: u32,
    pub stops: u32,
    pub opens: u32,
    pub sampler: u32,
}

/// How many events pass between two looks at the progress callback.
const EVENTS_PER_LOOK: u64 = 1 << 18;

/// Runs a simulation; `progress` is asked now and then whether to go on.
///
/// # Errors
/// [`RunError`] when the spec names something that does not exist, or the caller interrupts.
pub fn run(spec: &Spec, progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Results, RunError> {
    let run = build::build(spec, progress)?;
    go(spec, run, progress)
}

/// As [`run`], and shows every packet event at every port to `tap`, which changes nothing in the results.
///
/// # Errors
/// As [`run`].
pub fn run_with_tap(
    spec: &Spec,
    tap: Box<dyn Tap>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Results, RunError> {
    let mut run = build::build(spec, progress)?;
    run.net.trace.connect(tap);
    go(spec, run, progress)
}

fn go(
    spec: &Spec,
    mut run: Run<'_>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Results, RunError> {
    run.start();
    let end = spec.end.ps();
    let mut events: u64 = 0;
    let mut stopped_at = end;
    while let Some((time, event)) = run.net.calendar.pop(end) {
        run.net.now = time;
        if let Some(packet) = run.net.look_ahead() {
            run.prefetch(packet);
        }
        match event {
            Event::Link(link) => {
                if let Some(packet) = run.net.arrive(link) {
                    run.deliver(&packet);
                }
            }
            Event::Timer(timer) => run.timer(timer),
        }
        if spec.stop_when_done && run.app.is_done() {
            stopped_at = time;
            break;
        }
        events += 1;
        if events.is_multiple_of(EVENTS_PER_LOOK) {
            let look = Progress {
                now: Time::from_ps(time),
                end: spec.end,
                packet_hops: run.net.hops,
                messages: run.app.delivered(),
            };
            if progress(look).is_break() {
                return Err(RunError::Interrupted { at: look.now });
            }
        }
    }
    run.net.now = stopped_at;
    Ok(report::report(run, stopped_at))
}

impl Run<'_> {
    /// Schedules what happens by itself.
    fn start(&mut self) {
        for (time, message) in self.app.first_releases() {
            self.net.calendar.schedule_timer(time, self.timers.messages + message);
        }
        for (i, cbr) in self.spec.cbr.iter().enumerate() {
            self.net.calendar.schedule_timer(cbr.start.ps(), self.timers.cbr + i as u32);
        }
        for (i, flow) in self.spec.flows.iter().enumerate() {
            if let Some(open) = flow.open {
                self.net.calendar.schedule_timer(open.ps(), self.timers.opens + i as u32);
            }
            if let Some(stop) = flow.stop {
                self.net.calendar.schedule_timer(stop.ps(), self.timers.stops + i as u32);
            }
        }
        if self.queue_samples {
            self.net.calendar.schedule_timer(0, self.timers.sampler);
        }
    }

    /// Starts to load the endpoint that a packet is about to reach.
    #[inline]
    fn prefetch(&self, packet: fanin_switch::Packet) {
        const LINES: usize = 12;
        let flow = packet.flow as usize;
        if packet.has(flags::DATAGRAM) {
        } else if packet.has(flags::ACK) {
            prefetch(&self.senders[flow], LINES);
        } else {
            prefetch(&self.receivers[flow], LINES);
        }
    }

    /// A packet reached its destination.
    #[inline]
    fn deliver(&mut self, packet: &Packet) {
        let flow = packet.flow as usize;
        if packet.has(flags::DATAGRAM) {
            self.cbr_received[flow] += 1;
        } else if packet.has(flags::ACK) {
            self.acknowledge(flow, packet);
        } else {
            self.receive(flow, packet);
            self.after_delivery(flow);
        }
    }

    /// Data arrived, or a handshake's first or last packet. The order is Linux's (`tcp_rcv_established`): the data count first, then what
    /// their ACK lets the host send, which may acknowledge them, and only then an ACK by itself.
    fn receive(&mut self, flow: usize, packet: &Packet) {
        match self.controlled[flow] {
            None => self.receivers[flow].on_data(packet, None, 0, &mut self.net),
            Some((control, conn)) => {
                let policy = self.controls[control as usize].policy.as_mut();
                self.receivers[flow].on_data(packet, Some(policy), conn, &mut self.net);
            }
        }
        if packet.has(flags::SYN) {
            return;
        }
        if let Some(peer) = self.spec.flows[flow].reverse {
            if let Some(rtt) = self.receivers[flow].take_opening(self.net.now) {
                let mut uplink = Uplink { net: &mut self.net, receivers: &mut self.receivers };
                self.senders[peer.index()].opened_by_peer(rtt, &mut uplink);
                self.after_sending(peer.index());
            }
            if let Some(ack) = packet.carried(peer.0) {
                self.acknowledge(peer.index(), &ack);
            }
        }
        self.receivers[flow].check_ack(&mut self.net);
    }

    /// An ACK for data of `flow` arrived.
    #[inline]
    fn acknowledge(&mut self, flow: usize, ack: &Packet) {
        self.senders[flow].on_ack(ack, &mut Uplink { net: &mut self.net, receivers: &mut self.receivers });
        self.after_sending(flow);
    }

    fn after_delivery(&mut self, flow: usize) {
        while let Some(message) = self.receivers[flow].take_complete() {
            let now = self.net.now;
            let timeouts = self.senders[flow].timeouts();
            for (time, next) in self.app.complete(message, now, timeouts) {
                self.net.calendar.schedule_timer(time, self.timers.messages + next);
            }
            if let Some((control, conn)) = self.controlled[flow]
                && self.receivers[flow].is_satisfied()
            {
                self.controls[control as usize].policy.on_close(Time::from_ps(now), conn);
            }
        }
    }

    #[inline]
    fn after_sending(&mut self, flow: usize) {
        for (message, time) in self.senders[flow].take_started() {
            self.app.started(message, time);
        }
    }

    fn timer(&mut self, timer: u32) {
        let t = self.timers;
        if timer >= t.sampler {
            self.sample_queues();
        } else if timer >= t.opens {
            let mut uplink = Uplink { net: &mut self.net, receivers: &mut self.receivers };
            self.senders[(timer - t.opens) as usize].open(&mut uplink);
        } else if timer >= t.stops {
            self.senders[(timer - t.stops) as usize].stop();
        } else if timer >= t.cbr {
            self.send_datagram((timer - t.cbr) as usize);
        } else if timer >= t.messages {
            self.release(timer - t.messages);
        } else if timer >= t.receivers {
            self.receivers[(timer - t.receivers) as usize].on_timer(&mut self.net);
        } else if timer >= t.senders {
            let flow = (timer - t.senders) as usize;
            self.senders[flow].on_timer(&mut Uplink { net: &mut self.net, receivers: &mut self.receivers });
            self.after_sending(flow);
        } else {
            self.net.port_free(timer - self.net.port_timers);
        }
    }

    /// The application hands a message to TCP.
    fn release(&mut self, message: u32) {
        let m = &self.spec.messages[message as usize];
        let now = self.net.now;
        for (time, next) in self.app.release(message, now) {
            self.net.calendar.schedule_timer(time, self.timers.messages + next);
        }
        let flow = m.flow.index();
        if self.spec.flows[flow].stop.is_some_and(|s| s.ps() <= now) {
            return;
        }
        if let Some((control, conn)) = self.controlled[flow]
            && self.receivers[flow].is_satisfied()
        {
            let policy = &mut self.controls[control as usize].policy;
            policy.on_reopen(Time::from_ps(now), conn);
        }
        let end = self.senders[flow].write_position().saturating_add(m.bytes);
        self.receivers[flow].expect(message, end);
        let opening = self.spec.flows[flow].reverse.is_some_and(|r| self.senders[r.index()].is_opening());
        let deadline = m.deadline.map(|d| now.saturating_add(d.ps()));
        self.app.promise(message, deadline, self.senders[flow].timeouts());
        let mut uplink = Uplink { net: &mut self.net, receivers: &mut self.receivers };
        self.senders[flow].write(message, m.bytes, deadline, opening, &mut uplink);
        self.after_sending(flow);
        if m.bytes == 0 {
            self.after_delivery(flow);
        }
    }

    fn send_datagram(&mut self, source: usize) {
        let cbr = &self.spec.cbr[source];
        if self.net.now >= cbr.stop.ps() {
            return;
        }
        self.cbr_sent[source] += 1;
        self.net.send_datagram(source as u32, self.senders.len() as u32, cbr.packet.get() as u16);
        let next = self.net.now + (cbr.packet / cbr.rate).ps().max(1);
        self.net.calendar.schedule_timer(next, self.timers.cbr + source as u32);
    }

    fn sample_queues(&mut self) {
        let now = self.net.now;
        for link in &self.spec.trace.queues {
            let (packets, bytes) = self.net.ports[link.index()].queue(now);
            let t = &mut self.net.trace.out.queue;
            t.time_ps.push(now);
            t.link.push(link.0);
            t.packets.push(packets);
            t.bytes.push(bytes);
        }
        if let Some(interval) = self.spec.trace.queue_interval {
            self.net.calendar.schedule_timer(now + interval.ps().max(1), self.timers.sampler);
        }
    }
}
