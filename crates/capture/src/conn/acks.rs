//! What a connection learns from an acknowledgement.

use super::Conn;
use crate::decode::{Segment, flag};

impl Conn {
    /// What `s` acknowledges of the other direction; by how much a round trip that it ends exceeds the shortest.
    #[inline]
    pub(super) fn acknowledge(&mut self, s: &Segment, d: usize, at: u64, queued: u64) -> Option<u64> {
        let scale = match (self.dirs[0].stats.window_scale, self.dirs[1].stats.window_scale) {
            (Some(_), Some(_)) if s.flags & flag::SYN == 0 => self.dirs[d].stats.window_scale.unwrap_or(0),
            _ => 0,
        };
        let opened_both = self.handshake.syns > 0 && self.handshake.synacks > 0;
        let full = u64::from(self.largest_packet(1 - d, s));
        let (dir, peer) = match &mut self.dirs {
            [a, b] if d == 0 => (a, b),
            [a, b] => (b, a),
        };
        let window = u64::from(s.window) << scale;
        let segment = u64::from(peer.stats.largest_segment);
        let opened = dir.window_exact && dir.window < segment && window >= segment;
        let before = peer.seq.acked();
        let news = peer.seq.ack(s.ack);
        let twice = s.twice.map(|(from, to)| (peer.seq.place_of(from), peer.seq.place_of(to)));
        if let Some((from, to)) = twice {
            peer.needless[1] += 1;
            peer.reordered[1] += u64::from(peer.repeats_what_was_overtaken(from, to));
        }
        // A receiver that held its word back for more than a full segment was stalled, and had nothing yet.
        let twice = twice.filter(|_| peer.seq.acked() - before <= full);
        let mut excess = None;
        let by_itself = s.payload == 0 && s.flags & flag::FIN == 0;
        if news {
            peer.acknowledged = peer.seq.acked() - before;
            excess = peer.half.acknowledged(peer.seq.acked(), at, by_itself);
            peer.clocking.acknowledged(peer.seq.acked(), at, peer.seq.in_flight());
        } else if s.payload == 0
            && s.flags & (flag::SYN | flag::FIN | flag::RST) == 0
            && s.ack == dir.last_ack
            && s.window == dir.last_window
            // A closed window repeats itself for its own reasons.
            && s.window > 0
            && peer.seq.in_flight() > 0
        {
            dir.stats.duplicate_acks += 1;
            if s.twice.is_none() {
                peer.misses(peer.seq.acked());
            }
        }
        if news || opened {
            peer.progress = at;
        }
        if news && s.flags & (flag::FIN | flag::RST) == 0 {
            // What comes after its FIN is refused by who closed the connection, and taken by who only has nothing more to say (shutdown(2)).
            dir.stats.closed_ns = None;
        }
        if news && d == self.client {
            let acked = peer.seq.acked();
            self.reader.acknowledged(acked, peer.half.passed_at(acked), at, by_itself, twice, peer.half.way());
        }
        (dir.window, dir.window_exact) = (window, opened_both || window == 0);
        (dir.last_ack, dir.last_window) = (s.ack, s.window);
        if let Some(run) = self.run.as_mut().filter(|r| r.dir == 1 - d && r.acked_at.is_none())
            && self.dirs[1 - d].seq.acked() >= run.to
        {
            let first = run.again.and_then(|again| again.needless(twice));
            run.end = first.or(run.end);
            (run.acked_at, run.ack_queued) = (Some(at), queued);
            run.acked_by_the_way = s.flags & flag::FIN != 0 || first.is_some();
        }
        excess
    }
}
