//! What takes a host's processor time.

use crate::rng::Stream;
use crate::stack::Stack;
use fanin_units::Duration;
use std::collections::BTreeMap;

/// How long a host takes for a packet that leaves, ps (`stack.send_jitter`). `random` is the stream of the flow's end that sends it.
#[inline(always)]
pub fn lag(random: &mut Option<Box<Stream>>, stack: &Stack) -> u64 {
    random.as_mut().map_or(0, |r| r.below(stack.send_jitter.ps()))
}

/// Hosts that open connections do so one after the other.
#[derive(Debug, Default)]
pub struct Opening {
    /// Until when each is busy with it, by the port of the host, ps.
    busy_until: BTreeMap<usize, u64>,
}

impl Opening {
    /// When the host at `port` gets to opening another connection, ps, if it is asked `now`; each takes it `time` (`stack.connect_time`).
    pub fn turn(&mut self, port: usize, now: u64, time: Duration) -> u64 {
        let idle_at = self.busy_until.entry(port).or_insert(0);
        let turn = now.max(*idle_at);
        *idle_at = turn + time.ps();
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_one_host_open_one_after_the_other() {
        let (mut opening, time) = (Opening::default(), Duration::from_ps(10));
        assert_eq!([0, 0, 5, 50].map(|now| opening.turn(1, now, time)), [0, 10, 20, 50]);
        assert_eq!(opening.turn(2, 55, time), 55);
    }
}
