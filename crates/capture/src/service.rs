//! How long servers took to begin their answers, where the tap can tell it from what the network did.
//!
//! A tap at the aggregator sees an answer when it has come through the queue, behind the answers of others, or after its first packets were
//! lost and sent again. Replaying that as the server's own time would make it wait twice.

use crate::workload::Message;

/// If data had come to the aggregator without a break for more than this share of the wait, some of the wait may have been in the queue.
const QUEUED: f64 = 0.1;

/// What is known of one wait for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub lost: bool,
    pub busy_ns: u64,
}

impl Wait {
    /// The least that the server can have taken of `wait_ns`: the answer was in the queue no longer than data came without a break.
    fn least(&self, wait_ns: u64) -> u64 {
        if self.lost { 0 } else { wait_ns.saturating_sub(self.busy_ns) }
    }
}

/// Puts the service times right whose front was queued or lost: each becomes what the same server took the last time that it could be seen (or
/// the next time, or what all took in the middle), as far as that agrees with what was seen of it.
pub(crate) fn unqueue(messages: &mut [(u32, Message, Wait)]) {
    let asked = |m: &Message| m.request_bytes > 0 && m.response_bytes > 0;
    let seen = |m: &Message, w: &Wait| asked(m) && !w.lost && w.busy_ns as f64 <= QUEUED * m.service_ns as f64;
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
            } else if asked(message) {
                message.service_ns = latest.clamp(wait.least(message.service_ns), message.service_ns);
            }
        }
    }
}
