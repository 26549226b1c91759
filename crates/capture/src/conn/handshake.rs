//! The handshake: who is the client, what options were offered, and the two halves of the round trip.

use super::Conn;
use crate::decode::{Segment, flag};
use serde::{Deserialize, Serialize};

/// When the packets of a handshake passed, how many there were, and what its two halves took.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Handshake {
    pub(super) syn: Option<u64>,
    pub(super) syns: u32,
    pub(super) synack: Option<u64>,
    pub(super) synacks: u32,
    pub(super) server: Option<u64>,
    pub(super) client: Option<u64>,
}

impl Conn {
    /// A SYN or a SYN/ACK: what its options say, which end is the client, and the server's half of the round trip.
    pub(super) fn syn(&mut self, s: &Segment, d: usize, at: u64) {
        let dir = &mut self.dirs[d];
        dir.seq.syn(s.seq);
        dir.stats.mss_option = dir.stats.mss_option.or(s.mss);
        dir.stats.window_scale = dir.stats.window_scale.or(s.window_scale);
        dir.stats.sack_option |= s.sack;
        dir.stats.timestamps_option |= s.timestamps;
        dir.stats.ect_syn |= s.ect;
        let answer = s.flags & flag::ACK != 0;
        if !self.role_known && self.run.is_none() {
            self.client = if answer { 1 - d } else { d };
            (self.role_known, self.role_sure) = (true, true);
        }
        let h = &mut self.handshake;
        if answer {
            // The acknowledgement of a SYN that was not seen places its sender exactly.
            self.dirs[1 - d].seq.syn(s.ack.wrapping_sub(1));
            h.synacks += 1;
            h.synack = Some(at);
            if let (Some(syn), 1, 1) = (h.syn, h.syns, h.synacks) {
                h.server = Some(at - syn);
                self.dirs[1 - d].half.handshake(at - syn);
            }
        } else {
            h.syns += 1;
            h.syn = Some(at);
        }
    }

    /// The first packet of the client after the SYN/ACK ends the handshake.
    #[inline]
    pub(super) fn handshake_ends(&mut self, d: usize, at: u64) {
        let h = &mut self.handshake;
        if let (Some(synack), None, 1, true) = (h.synack, h.client, h.synacks, d == self.client) {
            h.client = Some(at - synack);
            self.dirs[1 - d].half.handshake(at - synack);
        }
    }
}
