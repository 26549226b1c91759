//! How long servers took to begin their answers, where the tap can tell it from what the network did.
//!
//! A tap at the aggregator sees an answer when it has come through the queue, behind the answers of others, or after its first packets were
//! lost and sent again. Replaying that as the server's own time would make it wait twice.

use crate::workload::Message;

/// If what came in meanwhile, at the fastest rate seen, takes up more than this share of the wait, the wait was in the queue.
const QUEUED: f64 = 0.7;

/// What is known of one wait for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub lost: bool,
    pub behind_bytes: u64,
}

/// Puts the service times right whose front was queued or lost: each becomes what the same server took the last time that it could be seen, or
/// the next time, or what all took in the middle.
pub(crate) fn unqueue(messages: &mut [(u32, Message, Wait)], receive_rate_bps: Option<u64>) {
    let hidden = |m: &Message, w: &Wait| {
        let queued = receive_rate_bps.is_some_and(|rate| {
            let transmitting_ns = w.behind_bytes as f64 * 8e9 / rate as f64;
            transmitting_ns > QUEUED * m.service_ns as f64
        });
        m.request_bytes > 0 && m.response_bytes > 0 && m.service_ns > 0 && (w.lost || queued)
    };
    let seen = |m: &Message, w: &Wait| m.request_bytes > 0 && m.response_bytes > 0 && !hidden(m, w);
    let mut all: Vec<u64> = messages.iter().filter(|(_, m, w)| seen(m, w)).map(|(_, m, _)| m.service_ns).collect();
    if all.is_empty() {
        return;
    }
    let middle = (all.len() - 1) / 2;
    let typical = *all.select_nth_unstable(middle).1;
    for connection in messages.chunk_by_mut(|a, b| a.0 == b.0) {
        let mut latest = connection.iter().find(|(_, m, w)| seen(m, w)).map_or(typical, |(_, m, _)| m.service_ns);
        for (_, message, wait) in connection.iter_mut() {
            if seen(message, wait) {
                latest = message.service_ns;
            } else if hidden(message, wait) {
                // Waiting only makes it longer.
                message.service_ns = message.service_ns.min(latest);
            }
        }
    }
}
