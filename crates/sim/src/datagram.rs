//! Unresponsive datagrams at a constant rate: background traffic.

use crate::endpoint::{Endpoint, Handed, Host};
use crate::packet::{Packet, flags};
use crate::results::CbrStats;
use crate::spec::Cbr;
use crate::timer::Timer;

/// IP and UDP headers of a datagram.
const HEADER: u16 = 28;

/// All sources and their destinations.
#[derive(Debug)]
pub struct Datagrams<'a> {
    sources: &'a [Cbr],
    /// Their ways stand behind those of so many flows.
    flows: u32,
    sent: Vec<u64>,
    received: Vec<u64>,
}

impl Datagrams<'_> {
    /// The sources of a run with so many flows.
    pub fn new(sources: &[Cbr], flows: u32) -> Datagrams<'_> {
        Datagrams { sources, flows, sent: vec![0; sources.len()], received: vec![0; sources.len()] }
    }
}

impl Endpoint for Datagrams<'_> {
    fn on_packet(&mut self, packet: &Packet, _host: &mut Host<'_>) {
        self.received[packet.flow as usize] += 1;
    }

    fn on_timer(&mut self, timer: Timer, host: &mut Host<'_>) {
        let Timer::Datagram(number) = timer else { return };
        let source = &self.sources[number as usize];
        let net = &mut *host.net;
        if net.now >= source.stop.ps() {
            return;
        }
        self.sent[number as usize] += 1;
        let wire = source.packet.get() as u16;
        let packet = Packet {
            timestamp: net.now,
            flow: number,
            len: wire.saturating_sub(HEADER),
            wire,
            flags: flags::DATAGRAM,
            ..Packet::default()
        };
        net.send_by(self.flows + number, packet);
        let next = net.now + (source.packet / source.rate).ps().max(1);
        net.calendar.schedule_timer(next, timer);
    }

    fn write(&mut self, _message: Handed, _host: &mut Host<'_>) {}

    fn close_source(&self, source: u32, row: &mut CbrStats) {
        row.sent += self.sent[source as usize];
        row.received += self.received[source as usize];
    }
}
