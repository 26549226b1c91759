//! What ends a packet's way. The engine knows hosts and packets; an [`Endpoint`] knows what they say to each other.

use crate::app::Application;
use crate::build::AllPaths;
use crate::engine::RunError;
use crate::ndp;
use crate::net::Net;
use crate::packet::Packet;
use crate::results::{CbrStats, FlowStats};
use crate::spec::{Message, Spec};
use crate::timer::Timer;
use fanin_switch::Packet as PacketHandle;
use std::ops::{Index, IndexMut};

/// What an endpoint sees of its host: the network below, the applications above.
#[derive(Debug)]
pub struct Host<'a> {
    /// Ports, paths, the clock and the calendar.
    pub net: &'a mut Net,
    /// Is told what was sent and delivered.
    pub app: &'a mut Application,
    /// What they send, as the plan has it.
    pub messages: &'a [Message],
}

impl Host<'_> {
    /// All of a message is there for its application.
    pub fn delivered(&mut self, message: u32) {
        let Some(hosts) = &mut self.net.hosts else { return self.read(message) };
        let (at, host) = hosts.read(self.messages[message as usize].flow.0, message, self.net.now);
        self.net.calendar.schedule_timer(at, Timer::Read(host));
    }

    /// The application has read a message; what waited for it is released.
    pub fn read(&mut self, message: u32) {
        self.net.trace.completed(self.net.now, message, self.messages[message as usize].flow.0);
        for (time, next) in self.app.complete(self.messages, message, self.net.now) {
            self.net.calendar.schedule_timer(time, Timer::Message(next));
        }
    }
}

/// A message as an application hands it over.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    /// Its number in the run.
    pub id: u32,
    /// On this flow.
    pub flow: u32,
    /// Payload.
    pub bytes: u64,
    /// When it should be delivered, ps.
    pub deadline: Option<u64>,
}

/// The transports beside TCP, by the name that [`fanin_cc::Needs::endpoint`] has: a new one is a file and a line here.
pub static TRANSPORTS: &[(&str, Build)] = &[("ndp", ndp::build)];

/// Makes the endpoint of those flows that it is to run.
pub type Build = fn(&Spec, &AllPaths, &dyn Fn(u32) -> bool) -> Result<Box<dyn Endpoint>, RunError>;

/// One transport: both ends of all its flows.
///
/// It is one object for all hosts, not one per connection: the ends of a kind stand in one array, where the engine can prefetch them,
/// and a call through the trait costs one indirect jump per packet.
pub trait Endpoint: std::fmt::Debug + Send {
    /// Starts to load the state that a packet will need which arrives soon.
    fn prefetch(&self, _packet: PacketHandle) {}
    /// A packet has reached its destination.
    fn on_packet(&mut self, packet: &Packet, host: &mut Host<'_>);
    /// A timer of this endpoint's may be due: who set several checks whether this one still means something.
    fn on_timer(&mut self, timer: Timer, host: &mut Host<'_>);
    /// The application opens a flow's connection before it has anything to send.
    fn open(&mut self, _flow: u32, _host: &mut Host<'_>) {}
    /// A flow sends nothing new from now on.
    fn stop(&mut self, _flow: u32) {}
    /// The application hands over a message.
    fn write(&mut self, message: Handed, host: &mut Host<'_>);
    /// A message of a flow that ends here was handed over where the flow begins, which is elsewhere: its last byte ends at `end`.
    fn expect(&mut self, _flow: u32, _message: u32, _end: u64) {}
    /// Whether something of this message, which was handed over, was never sent.
    fn is_unsent(&self, _flow: u32, _message: u32) -> bool {
        false
    }
    /// Adds a flow's totals to its row and gives the flow up: both together would not fit into memory for a million of them. Called from
    /// the last flow to the first.
    fn close(&mut self, _flow: u32, _row: &mut FlowStats) {}
    /// Adds the totals of a source of datagrams to its row.
    fn close_source(&self, _source: u32, _row: &mut CbrStats) {}
}

/// A value for each flow that ends here, found by the flow's number.
#[derive(Debug)]
pub struct PerFlow<T> {
    values: Vec<T>,
    /// Where the value of each flow stands; `None` if every flow has one.
    places: Option<Vec<u32>>,
    /// Whose each value is, where `places` says where.
    owners: Vec<u32>,
}

/// The place of a flow that does not end here.
const ELSEWHERE: u32 = u32::MAX;

impl<T> PerFlow<T> {
    /// No value yet, of `flows` flows. `all`: every flow will have one.
    pub fn new(flows: usize, all: bool) -> PerFlow<T> {
        let values = if all { Vec::with_capacity(flows) } else { Vec::new() };
        PerFlow { values, places: (!all).then(|| vec![ELSEWHERE; flows]), owners: Vec::new() }
    }

    /// Adds the value of a flow; in the order of their numbers, if every flow has one.
    pub fn push(&mut self, flow: u32, value: T) {
        if let Some(places) = &mut self.places {
            places[flow as usize] = self.values.len() as u32;
            self.owners.push(flow);
        }
        self.values.push(value);
    }

    /// The value of a flow, if it is here.
    pub fn get_mut(&mut self, flow: u32) -> Option<&mut T> {
        let place = self.place(flow);
        self.values.get_mut(place)
    }

    /// The value of a flow, if it is here.
    pub fn get(&self, flow: u32) -> Option<&T> {
        self.values.get(self.place(flow))
    }

    /// Takes a flow's value out, if it is here. Where every flow has one, the last is taken first.
    pub fn take(&mut self, flow: u32) -> Option<T> {
        /// Memory goes back in steps of so many values.
        const CHUNK: usize = 1 << 16;
        let place = self.place(flow);
        if place >= self.values.len() {
            return None;
        }
        let value = self.values.swap_remove(place);
        if let Some(places) = &mut self.places {
            places[flow as usize] = ELSEWHERE;
            self.owners.swap_remove(place);
            if let Some(&moved) = self.owners.get(place) {
                places[moved as usize] = place as u32;
            }
        }
        if self.values.len().is_multiple_of(CHUNK) {
            self.values.shrink_to_fit();
        }
        Some(value)
    }

    #[inline]
    fn place(&self, flow: u32) -> usize {
        match &self.places {
            None => flow as usize,
            Some(places) => places[flow as usize] as usize,
        }
    }
}

impl<T> Index<u32> for PerFlow<T> {
    type Output = T;
    #[inline]
    fn index(&self, flow: u32) -> &T {
        &self.values[self.place(flow)]
    }
}

impl<T> IndexMut<u32> for PerFlow<T> {
    #[inline]
    fn index_mut(&mut self, flow: u32) -> &mut T {
        let place = self.place(flow);
        &mut self.values[place]
    }
}
