//! Messages and what they wait for: the same rules as in the simulator's applications.

use crate::plan::{Message, Plan, Release};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Who waits for what.
#[derive(Debug)]
pub struct Messages {
    /// Releases to come: time, message.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// Undelivered messages per barrier.
    left: Vec<u32>,
    /// Messages that wait for each barrier: delay, earliest time, message.
    waiting: Vec<Vec<(u64, u64, u32)>>,
    /// Barriers that a message counts towards when it is released, and when it is delivered.
    on_release: Vec<Vec<u32>>,
    on_delivery: Vec<Vec<u32>>,
    finite: usize,
    delivered: usize,
}

impl Messages {
    /// Of a plan that starts at `start`.
    pub fn new(plan: &Plan, start: u64) -> Messages {
        let mut messages = Messages {
            due: BinaryHeap::new(),
            left: vec![0; plan.barriers as usize],
            waiting: vec![Vec::new(); plan.barriers as usize],
            on_release: vec![Vec::new(); plan.messages.len()],
            on_delivery: plan.messages.iter().map(|m| m.completes.into_iter().collect()).collect(),
            finite: plan.messages.iter().filter(|m| m.bytes.is_some()).count(),
            delivered: 0,
        };
        for (number, Message { release, completes, .. }) in plan.messages.iter().enumerate() {
            match *release {
                Release::At(time) => messages.due.push(Reverse((start + time, number as u32))),
                Release::After(barrier, delay) => messages.waiting[barrier as usize].push((delay, 0, number as u32)),
                Release::NotBefore(time, barrier) => {
                    messages.waiting[barrier as usize].push((0, start + time, number as u32));
                }
            }
            if let Some(barrier) = *completes {
                messages.left[barrier as usize] += 1;
            }
        }
        for gate in &plan.gates {
            messages.left[gate.barrier as usize] = gate.need;
            for &message in &gate.of {
                let table = if gate.released { &mut messages.on_release } else { &mut messages.on_delivery };
                table[message as usize].push(gate.barrier);
            }
        }
        for barrier in 0..plan.barriers {
            if messages.left[barrier as usize] == 0 {
                messages.open(barrier, start);
            }
        }
        messages
    }

    /// When the next message is released.
    pub fn next(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((time, _))| *time)
    }

    /// The next message that is released by `now`.
    pub fn release(&mut self, now: u64) -> Option<u32> {
        let Reverse((time, message)) = *self.due.peek()?;
        if time > now {
            return None;
        }
        self.due.pop();
        for barrier in std::mem::take(&mut self.on_release[message as usize]) {
            self.count(barrier, now);
        }
        Some(message)
    }

    /// A message was delivered.
    pub fn complete(&mut self, message: u32, now: u64) {
        self.delivered += 1;
        for barrier in std::mem::take(&mut self.on_delivery[message as usize]) {
            self.count(barrier, now);
        }
    }

    /// One message more has done its part for a barrier.
    fn count(&mut self, barrier: u32, now: u64) {
        let left = &mut self.left[barrier as usize];
        match *left {
            // It has opened: it took fewer than there are.
            0 => {}
            1 => {
                *left = 0;
                self.open(barrier, now);
            }
            _ => *left -= 1,
        }
    }

    fn open(&mut self, barrier: u32, now: u64) {
        for (delay, earliest, message) in std::mem::take(&mut self.waiting[barrier as usize]) {
            self.due.push(Reverse((now.saturating_add(delay).max(earliest), message)));
        }
    }

    /// Every message of finite size is delivered.
    pub fn all_delivered(&self) -> bool {
        self.delivered == self.finite && self.finite > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Gate;

    fn message(release: Release, completes: Option<u32>) -> Message {
        Message { flow: 0, bytes: Some(1), release, completes, deadline_ns: None }
    }

    #[test]
    fn a_gate_takes_as_many_as_it_needs_and_no_more() {
        let sent = [message(Release::At(0), None), message(Release::At(0), None), message(Release::At(0), None)];
        let after = [message(Release::NotBefore(50, 0), None), message(Release::After(1, 4), None)];
        let gates = vec![
            Gate { barrier: 0, of: vec![0, 1, 2], need: 2, released: false },
            Gate { barrier: 1, of: vec![0, 1], need: 2, released: true },
        ];
        let plan = Plan { messages: [&sent[..], &after[..]].concat(), barriers: 2, gates, ..Plan::default() };
        let mut run = Messages::new(&plan, 100);
        assert_eq!(
            [run.release(100), run.release(100), run.release(100), run.release(100)],
            [Some(0), Some(1), Some(2), None]
        );
        assert_eq!(run.release(104), Some(4));
        run.complete(2, 110);
        assert_eq!(run.next(), None);
        run.complete(0, 120);
        assert_eq!(run.next(), Some(150));
        run.complete(1, 130);
        assert_eq!((run.release(150), run.next()), (Some(3), None));
    }

    #[test]
    fn a_barrier_opens_with_its_last_message_and_delays_count_from_there() {
        let first = [message(Release::At(0), Some(0)), message(Release::At(5), Some(0))];
        let messages =
            [&first[..], &[message(Release::After(0, 7), None), message(Release::After(1, 2), None)]].concat();
        let plan = Plan { messages, barriers: 2, ..Plan::default() };
        let mut run = Messages::new(&plan, 100);
        // Nothing completes barrier 1, so it is open from the start.
        assert_eq!((run.release(101), run.release(101)), (Some(0), None));
        assert_eq!((run.release(105), run.release(105), run.release(105)), (Some(3), Some(1), None));
        run.complete(0, 150);
        assert_eq!(run.next(), None);
        run.complete(1, 160);
        assert_eq!((run.next(), run.release(167)), (Some(167), Some(2)));
        run.complete(2, 170);
        assert!(!run.all_delivered());
        run.complete(3, 171);
        assert!(run.all_delivered());
    }
}
