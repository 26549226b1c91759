//! A run: builds the network and endpoints of a [`Spec`], lets events happen in order, and collects the results.

use crate::app::Application;
use crate::build::{AllPaths, setup_of};
use crate::calendar::Event;
use crate::datagram::Datagrams;
use crate::endpoint::{Build, Endpoint, Handed, Host, TRANSPORTS};
use crate::host::receive::Due;
use crate::net::{Mail, Net};
use crate::packet::flags;
use crate::partition::Here;
use crate::results::Results;
use crate::spec::{Message, Spec};
use crate::tcp::Tcp;
use crate::timer::Timer;
use crate::trace::Tap;
use crate::{build, report};
use fanin_cc::BuildError;
use fanin_switch::Packet as PacketHandle;
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
    /// Samples of queues fill the memory.
    #[error(
        "more than {MOST_SAMPLES} samples of queues by {at} of the simulated time; take a longer `measure.queue_interval`, fewer `measure.queues` or a shorter `run.duration`"
    )]
    TooManySamples {
        /// When there were so many.
        at: Time,
    },
    /// The caller asked to stop.
    #[error("interrupted at {at} of the simulated time")]
    Interrupted {
        /// How far it had come.
        at: Time,
    },
}

/// A row takes 24 bytes here and as many as a frame: these 2.4 GB.
pub(crate) const MOST_SAMPLES: usize = 50_000_000;

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
    /// The part of the network that it simulates.
    pub here: Here<'a>,
    pub net: Net,
    pub endpoints: Endpoints<'a>,
    pub app: Application,
    /// Of traced ports, every so often.
    pub queue_samples: bool,
    /// Messages, the last first, of which something may be unsent; watched where several parts must know when to stop.
    pub unsent: Vec<u32>,
}

/// Who understands which packets.
pub(crate) struct Endpoints<'a> {
    spec: &'a Spec,
    datagrams: Datagrams<'a>,
    /// TCP, then the others that the plan asks for.
    transports: Vec<Box<dyn Endpoint + 'a>>,
    /// Position of each of the plan's transports in `transports`.
    places: Vec<usize>,
}

impl<'a> Endpoints<'a> {
    /// For all flows and sources of a plan.
    pub fn build(spec: &'a Spec, paths: &AllPaths, here: Here<'_>) -> Result<Endpoints<'a>, RunError> {
        let mut others: Vec<&(&str, Build)> = Vec::new();
        let mut places = Vec::with_capacity(spec.transports.len());
        for transport in &spec.transports {
            let built = transport.cc.build(&setup_of(&transport.stack), &transport.args)?;
            let other = built.sender.needs().endpoint.and_then(|name| TRANSPORTS.iter().find(|t| t.0 == name));
            places.push(other.map_or(0, |other| {
                let known = others.iter().position(|o| o.0 == other.0);
                1 + known.unwrap_or_else(|| {
                    others.push(other);
                    others.len() - 1
                })
            }));
        }
        let is = |place: usize| {
            let places = &places;
            move |flow: u32| places[spec.flows[flow as usize].transport as usize] == place
        };
        let tcp = Tcp::build(spec, paths, here, others.is_empty(), &is(0))?;
        let mut transports: Vec<Box<dyn Endpoint + 'a>> = vec![Box::new(tcp)];
        for (place, (_, build)) in (1..).zip(others) {
            transports.push(build(spec, paths, &is(place))?);
        }
        Ok(Endpoints { spec, datagrams: Datagrams::new(&spec.cbr, spec.flows.len() as u32), transports, places })
    }

    /// Which of the plan's transports are TCP.
    pub fn are_tcp(&self) -> Vec<bool> {
        self.places.iter().map(|&place| place == 0).collect()
    }

    /// Whose a packet is.
    #[inline]
    fn of_packet(&mut self, packet: u16, flow: u32) -> &mut (dyn Endpoint + 'a) {
        if packet & flags::DATAGRAM != 0 { &mut self.datagrams } else { self.of_flow(flow) }
    }

    /// Whose a flow is.
    #[inline]
    pub fn of_flow(&mut self, flow: u32) -> &mut (dyn Endpoint + 'a) {
        let place = match self.transports.len() {
            1 => 0,
            _ => self.places[self.spec.flows[flow as usize].transport as usize],
        };
        self.transports[place].as_mut()
    }

    /// Whose the background traffic is.
    pub fn of_datagrams(&mut self) -> &mut (dyn Endpoint + 'a) {
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
    let stopped_at = loop {
        let stopped = run.some_events(end, spec.stop_when_done);
        run.check_samples()?;
        if let Some(stopped_at) = stopped {
            break stopped_at;
        }
        run.pack_changes();
        let look = Progress {
            now: Time::from_ps(run.net.now),
            end: spec.end,
            packet_hops: run.net.hops,
            messages: run.app.delivered(),
        };
        if progress(look).is_break() {
            return Err(RunError::Interrupted { at: look.now });
        }
    };
    run.net.now = stopped_at;
    Ok(report::report(vec![run], None, stopped_at))
}

impl Run<'_> {
    /// Schedules what happens by itself.
    pub fn start(&mut self) {
        self.net.plain = self.net.is_plain();
        let (calendar, here) = (&mut self.net.calendar, self.here);
        for (time, message) in self.app.first_releases(&self.spec.messages) {
            calendar.schedule_timer(time, Timer::Message(message));
        }
        for (i, cbr) in (0..).zip(&self.spec.cbr).filter(|(_, cbr)| here.has(cbr.src)) {
            calendar.schedule_timer(cbr.start.ps(), Timer::Datagram(i));
        }
        for (i, flow) in (0..).zip(&self.spec.flows).filter(|(_, flow)| here.has(flow.src)) {
            if let Some(open) = flow.open.get() {
                calendar.schedule_timer(open.ps(), Timer::Open(i));
            }
            if let Some(stop) = flow.stop.get() {
                calendar.schedule_timer(stop.ps(), Timer::Stop(i));
            }
        }
        if self.queue_samples {
            calendar.schedule_timer(0, Timer::Sample);
        }
    }

    /// As many events as pass between two looks; when the run ended, ps, if it did: at `end`, or with the delivery of the last message.
    fn some_events(&mut self, end: u64, until_done: bool) -> Option<u64> {
        if self.net.plain && !self.net.is_large() {
            self.some_of::<true>(end, until_done)
        } else {
            self.some_of::<false>(end, until_done)
        }
    }

    /// The same. `PLAIN`: the network is, and small, so that no event needs to ask.
    fn some_of<const PLAIN: bool>(&mut self, end: u64, until_done: bool) -> Option<u64> {
        for _ in 0..EVENTS_PER_LOOK {
            let Some((time, event)) = self.net.calendar.pop(end) else { return Some(end) };
            // Only what an endpoint or a timer does can deliver the last message.
            if self.happen::<PLAIN>(time, event) && until_done && self.app.is_done() {
                return Some(time);
            }
        }
        None
    }

    /// Takes the changes of traced queues from their ports, where not all of them are kept.
    fn pack_changes(&mut self) {
        if let Some(thinned) = self.net.trace.thinned() {
            for link in &self.spec.trace.queues {
                if let Some(changes) = self.net.ports[link.index()].take_changes() {
                    thinned.queue(link.0, &changes);
                }
            }
        }
    }

    /// Everything until `horizon`, ps, that included: one part's share of a run.
    pub fn window(&mut self, horizon: u64) {
        while let Some((time, event)) = self.net.calendar.pop(horizon) {
            self.net.trace.place = self.net.calendar.place(time, event);
            let _ = self.happen::<false>(time, event);
        }
    }

    /// The next event, which is at `time`.
    pub fn one_event(&mut self, time: u64) {
        if let Some((time, event)) = self.net.calendar.pop(time) {
            self.net.trace.place = self.net.calendar.place(time, event);
            let _ = self.happen::<false>(time, event);
        }
    }

    /// What other parts have told.
    pub fn take_in(&mut self, mail: Vec<Mail>) {
        for letter in mail {
            match letter {
                Mail::Packet { arrival, link, path, packet } => self.net.take_over(arrival, link, path, packet),
                Mail::Message { flow, id, end } => self.endpoints.of_flow(flow).expect(flow, id, end),
            }
        }
    }

    /// Watches the messages that are sent from here, on flows whose way is `long` enough.
    pub fn watch_unsent(&mut self, long: impl Fn(usize) -> bool) {
        let mine = |m: &Message| self.here.has(self.spec.flows[m.flow.index()].src) && m.bytes != Message::UNLIMITED;
        let watched = (0..).zip(&self.spec.messages).filter(|(_, m)| mine(m) && long(m.flow.index()));
        let mut unsent: Vec<u32> = watched.map(|(i, _)| i).collect();
        unsent.reverse();
        self.unsent = unsent;
    }

    /// Whether some watched message is not handed over yet, or something of it was never sent.
    pub fn has_unsent(&mut self) -> bool {
        while let Some(&message) = self.unsent.last() {
            let flow = self.spec.messages[message as usize].flow.0;
            if !self.app.is_released(message) || self.endpoints.of_flow(flow).is_unsent(flow, message) {
                return true;
            }
            self.unsent.pop();
        }
        false
    }

    /// Lets one event happen; whether more came of it than a packet that was passed on.
    #[inline(always)]
    fn happen<const PLAIN: bool>(&mut self, time: u64, event: Event) -> bool {
        self.net.now = time;
        if !PLAIN
            && self.net.is_large()
            && let Some(packet) = self.net.look_ahead()
        {
            self.endpoints.of_packet(packet.flags, packet.flow).prefetch(packet);
        }
        match event {
            Event::Link(link) => {
                let Some(packet) = self.net.arrive::<PLAIN>(link) else { return false };
                if !PLAIN && self.net.hosts.is_some() {
                    self.arrive_at_host(link, packet);
                    return false;
                }
                self.deliver(packet);
            }
            Event::Timer(timer) => self.timer(timer),
        }
        true
    }

    /// A packet has reached its destination.
    #[inline(always)]
    fn deliver(&mut self, packet: PacketHandle) {
        let packet = self.net.take(packet);
        let host = &mut Host { net: &mut self.net, app: &mut self.app, messages: &self.spec.messages };
        self.endpoints.of_packet(packet.flags, packet.flow).on_packet(&packet, host);
    }

    /// A packet has reached the network card of its host.
    #[inline(never)]
    fn arrive_at_host(&mut self, link: u32, packet: PacketHandle) {
        let packet = self.net.take(packet);
        let Some(hosts) = &mut self.net.hosts else { return };
        match hosts.arrive(packet, self.net.now) {
            Ok(Some((at, queue))) => self.net.calendar.schedule_timer(at, Timer::Receive(queue)),
            Ok(None) => {}
            Err(packet) => self.net.overrun(link, &packet),
        }
    }

    /// A host goes on with one of its receive queues.
    fn receive(&mut self, queue: u32) {
        let now = self.net.now;
        loop {
            let Some(Due::Now(packet)) = self.net.hosts.as_mut().map(|hosts| hosts.on_timer(queue, now)) else {
                return;
            };
            if let Some(packet) = packet {
                let host = &mut Host { net: &mut self.net, app: &mut self.app, messages: &self.spec.messages };
                self.endpoints.of_packet(packet.flags, packet.flow).on_packet(&packet, host);
            }
            match self.net.hosts.as_mut().and_then(|hosts| hosts.go_on(queue, now)) {
                // Applications run when the poll is over.
                Some(at) if at == now => {}
                Some(at) => return self.net.calendar.schedule_timer(at, Timer::Receive(queue)),
                None => return,
            }
        }
    }

    /// The application of a host has read something.
    fn read(&mut self, host: u32) {
        let now = self.net.now;
        while let Some(message) = self.net.hosts.as_mut().and_then(|hosts| hosts.take_read(host, now)) {
            Host { net: &mut self.net, app: &mut self.app, messages: &self.spec.messages }.read(message);
        }
    }

    #[inline(never)]
    fn timer(&mut self, timer: Timer) {
        let host = &mut Host { net: &mut self.net, app: &mut self.app, messages: &self.spec.messages };
        match timer {
            Timer::Port(link) => self.net.port_free(link),
            Timer::Source(flow) | Timer::Sink(flow) => self.endpoints.of_flow(flow).on_timer(timer, host),
            Timer::Message(message) => self.release(message),
            Timer::Datagram(_) => self.endpoints.of_datagrams().on_timer(timer, host),
            Timer::Stop(flow) => self.endpoints.of_flow(flow).stop(flow),
            Timer::Open(flow) => self.endpoints.of_flow(flow).open(flow, host),
            Timer::Sample => self.sample_queues(),
            Timer::Receive(queue) => self.receive(queue),
            Timer::Read(host) => self.read(host),
        }
    }

    /// The application hands over a message.
    fn release(&mut self, message: u32) {
        let m = &self.spec.messages[message as usize];
        let now = self.net.now;
        self.net.trace.released(now, message, m.flow.0);
        for (time, next) in self.app.release(&self.spec.messages, message, now) {
            self.net.calendar.schedule_timer(time, Timer::Message(next));
        }
        if self.spec.flows[m.flow.index()].stop.get().is_some_and(|s| s.ps() <= now) {
            return;
        }
        let deadline = m.deadline.map(|d| now.saturating_add(d.ps()));
        let handed = Handed { id: message, flow: m.flow.0, bytes: m.bytes, deadline };
        let host = &mut Host { net: &mut self.net, app: &mut self.app, messages: &self.spec.messages };
        self.endpoints.of_flow(m.flow.0).write(handed, host);
    }

    /// Whether sampling had to end.
    pub fn check_samples(&self) -> Result<(), RunError> {
        match self.net.trace.out.queue.time_ps.last() {
            Some(&last) if self.queue_samples && self.has_all_samples() => {
                Err(RunError::TooManySamples { at: Time::from_ps(last) })
            }
            _ => Ok(()),
        }
    }

    fn has_all_samples(&self) -> bool {
        self.net.trace.out.queue.time_ps.len() > MOST_SAMPLES
    }

    fn sample_queues(&mut self) {
        let now = self.net.now;
        if self.has_all_samples() {
            return;
        }
        for link in self.spec.trace.queues.iter().filter(|l| self.here.has(self.spec.links[l.index()].from)) {
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
