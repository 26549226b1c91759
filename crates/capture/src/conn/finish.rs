//! A connection's row when the capture is over.

use super::Conn;
use crate::fitness::Quality;
use crate::{Connection, Sink};

impl Conn {
    /// What it shows of the capture itself.
    pub fn quality(&self) -> Quality {
        let of = |d: usize| &self.dirs[d];
        Quality {
            acks: [0, 1].map(|d| if of(d).unnumbered { [0, 0] } else { of(d).counted }),
            clocks: [0, 1].map(|d| of(d).clock.ran()),
        }
    }

    /// A data packet of this connection is one of an older one, `original`, under other addresses.
    pub fn translates(&mut self, original: u32) {
        self.translated = (self.translated.0 + 1, original);
    }

    /// The capture is over.
    pub fn finish(mut self, sink: &mut dyn Sink) -> Connection {
        self.end_run(sink);
        if let Some(request) = self.request.take() {
            self.tell_turn(Some(&request), None, sink);
        }
        let writes = self.writes.finish(self.id, self.turns, sink);
        let (last, messages) = self.reader.finish(self.turns);
        if let Some(stretch) = last {
            sink.stretch(self.timed(stretch));
        }
        for dir in &mut self.dirs {
            if let Some(train) = dir.train.take() {
                sink.train(train);
            }
        }
        let stats = |d: usize| {
            let mut n = self.dirs[d].stats;
            let half = self.dirs[d].half;
            let seen = self.dirs[d].clocking.counts();
            (n.releases, n.prompted_releases, n.unprompted_releases) = (seen.releases, seen.prompted, seen.unprompted);
            (n.backoffs, n.backoffs_over_half, n.backoffs_small) = (seen.backoffs, seen.kept_over_half, seen.kept_most);
            n.missing_bytes = self.dirs[d].seq.missing();
            // A receiver that speaks of what came twice speaks of what it had acknowledged too.
            let [acked, told] = self.dirs[d].needless;
            n.held_up_packets = self.dirs[d].held_up;
            n.spurious_packets = acked.max(told).min(n.retransmitted_packets + n.refilled_packets);
            let [acked, told] = self.dirs[d].reordered;
            n.overtaken_packets = acked.max(told).min(n.spurious_packets);
            n.rtt_samples = half.samples();
            n.min_rtt_ns = half.least().map(|behind| behind + self.dirs[1 - d].half.least().unwrap_or(0));
            n.smoothed_rtt_ns = self.smoothed_rtt(d);
            n.max_rtt_ns = half.most().map(|behind| behind + self.dirs[1 - d].half.least().unwrap_or(0));
            n
        };
        let (translated, original) = self.translated;
        let data: u64 = self.dirs.iter().map(|d| d.stats.data_packets).sum();
        let (c, h) = (self.client, &self.handshake);
        let once = h.syns == 1 && h.synacks == 1;
        let server = h.server.filter(|_| once);
        let client = h.client.filter(|_| once);
        Connection {
            connection: self.id,
            client_ip: self.ends[c].0.ip(),
            client_port: self.ends[c].1,
            server_ip: self.ends[1 - c].0.ip(),
            server_port: self.ends[1 - c].1,
            start_ns: self.start,
            end_ns: self.end,
            handshake_seen: h.syns > 0 && h.synacks > 0,
            handshake_rtt_ns: server.zip(client).map(|(s, c)| s + c),
            handshake_server_ns: server,
            handshake_client_ns: client,
            turns: self.turns,
            writes,
            messages,
            copy_of: (translated > 0 && 2 * translated >= data).then_some(original),
            to_server: stats(c),
            to_client: stats(1 - c),
        }
    }
}
