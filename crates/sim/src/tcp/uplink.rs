//! The way out of a host, as the sending half of a connection sees it: the network, and the receiving halves whose ACKs its data carry.

use super::receiver::Receiver;
use crate::endpoint::PerFlow;
use crate::net::Net;
use crate::packet::Packet;
use std::ops::{Deref, DerefMut};

/// The network and all receivers; a sender touches that of its own connection.
#[derive(Debug)]
pub struct Uplink<'a> {
    /// Ports, paths, the calendar.
    pub net: &'a mut Net,
    /// By flow.
    pub receivers: &'a mut PerFlow<Receiver>,
}

impl Uplink<'_> {
    /// Lets the ACK for the data of `flow`, which come the other way, ride on a segment.
    pub(super) fn ride(&mut self, segment: &mut Packet, flow: u32) {
        self.receivers[flow].ride_on(segment, self.net.now);
    }
}

impl Deref for Uplink<'_> {
    type Target = Net;
    fn deref(&self) -> &Net {
        self.net
    }
}

impl DerefMut for Uplink<'_> {
    fn deref_mut(&mut self) -> &mut Net {
        self.net
    }
}
