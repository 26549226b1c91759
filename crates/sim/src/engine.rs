//! A run: builds the network and endpoints of a [`Spec`], lets events happen in order, and collects the results.

use crate::app::Application;
use crate::calendar::Event;
use crate::datagram::Datagrams;
use crate::endpoint::{Endpoint, Handed, Host};
use crate::net::Net;
use crate::packet::{Packet, flags};
use crate::results::Results;
use crate::spec::Spec;
use crate::tcp::Tcp;
use crate::timer::Timer;
use crate::trace::Tap;
use crate::{build, report};
use fanin_cc::BuildError;
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
    /// A setting of a queue discipline is unknown or out of range.
    #[error("queue of `{port}`: {error}")]
    Discipline {
        /// `from->to`.
        port: String,
        /// What is wrong.
        error: fanin_cc::SettingError,
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

/// Everything that lives during a run.
pub(crate) struct Run<'a> {
    pub spec: &'a Spec,
    pub net: Net,
    pub endpoints: Endpoints<'a>,
    pub app: Application,
    /// Of traced ports, every so often.
    pub queue_samples: bool,
}

/// Who understands which packets.
pub(crate) struct Endpoints<'a> {
    datagrams: Datagrams<'a>,
    flows: Tcp,
}

impl<'a> Endpoints<'a> {
    pub fn new(datagrams: Datagrams<'a>, flows: Tcp) -> Endpoints<'a> {
        Endpoints { datagrams, flows }
    }

    /// Whose a packet is.
    #[inline]
    fn of_packet(&mut self, bits: u16) -> &mut dyn Endpoint {
        if bits & flags::DATAGRAM != 0 { &mut self.datagrams } else { &mut self.flows }
    }

    /// Whose a flow is.
    pub fn of_flow(&mut self, _flow: u32) -> &mut dyn Endpoint {
        &mut self.flows
    }

    /// Whose the background traffic is.
    pub fn of_datagrams(&mut self) -> &mut dyn Endpoint {
        &mut self.datagrams
    }
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
            run.endpoints.of_packet(packet.flags).prefetch(packet);
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
        let calendar = &mut self.net.calendar;
        for (time, message) in self.app.first_releases() {
            calendar.schedule_timer(time, Timer::Message(message));
        }
        for (i, cbr) in (0..).zip(&self.spec.cbr) {
            calendar.schedule_timer(cbr.start.ps(), Timer::Datagram(i));
        }
        for (i, flow) in (0..).zip(&self.spec.flows) {
            if let Some(open) = flow.open {
                calendar.schedule_timer(open.ps(), Timer::Open(i));
            }
            if let Some(stop) = flow.stop {
                calendar.schedule_timer(stop.ps(), Timer::Stop(i));
            }
        }
        if self.queue_samples {
            calendar.schedule_timer(0, Timer::Sample);
        }
    }

    /// A packet has reached its destination.
    #[inline]
    fn deliver(&mut self, packet: &Packet) {
        let host = &mut Host { net: &mut self.net, app: &mut self.app };
        self.endpoints.of_packet(packet.flags).on_packet(packet, host);
    }

    fn timer(&mut self, timer: Timer) {
        let host = &mut Host { net: &mut self.net, app: &mut self.app };
        match timer {
            Timer::Port(link) => self.net.port_free(link),
            Timer::Source(flow) | Timer::Sink(flow) => self.endpoints.of_flow(flow).on_timer(timer, host),
            Timer::Message(message) => self.release(message),
            Timer::Datagram(_) => self.endpoints.of_datagrams().on_timer(timer, host),
            Timer::Stop(flow) => self.endpoints.of_flow(flow).stop(flow),
            Timer::Open(flow) => self.endpoints.of_flow(flow).open(flow, host),
            Timer::Sample => self.sample_queues(),
        }
    }

    /// The application hands over a message.
    fn release(&mut self, message: u32) {
        let m = &self.spec.messages[message as usize];
        let now = self.net.now;
        for (time, next) in self.app.release(message, now) {
            self.net.calendar.schedule_timer(time, Timer::Message(next));
        }
        if self.spec.flows[m.flow.index()].stop.is_some_and(|s| s.ps() <= now) {
            return;
        }
        let deadline = m.deadline.map(|d| now.saturating_add(d.ps()));
        let handed = Handed { id: message, flow: m.flow.0, bytes: m.bytes, deadline };
        let host = &mut Host { net: &mut self.net, app: &mut self.app };
        self.endpoints.of_flow(m.flow.0).write(handed, host);
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
            self.net.calendar.schedule_timer(now + interval.ps().max(1), Timer::Sample);
        }
    }
}
