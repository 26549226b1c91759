//! The applications: messages released in time or after barriers, and what becomes of them.

use crate::results::MessageStats;
use crate::spec::{Message, Release, Spec};

/// Progress of all messages of a run.
#[derive(Debug)]
pub struct Application {
    rows: Vec<MessageStats>,
    /// Messages released at fixed times, in order, and the next of them to schedule.
    timed: Vec<(u64, u32)>,
    next_timed: usize,
    /// Undelivered messages per barrier.
    left: Vec<u32>,
    /// Messages that wait for each barrier, with their delay.
    waiting: Vec<Vec<(u64, u32)>>,
    completes: Vec<Option<u32>>,
    /// Timeouts of the flow when the message was released.
    timeouts_before: Vec<u32>,
    delivered: u64,
    finite: u64,
    messages_of_timed: Vec<bool>,
}

impl Application {
    /// For the messages of a spec; `ideal` gives each its time on empty links.
    pub fn new(spec: &Spec, ideal: impl Fn(&Message) -> u64) -> Application {
        let mut timed = Vec::new();
        let mut waiting = vec![Vec::new(); spec.barriers as usize];
        let mut left = vec![0; spec.barriers as usize];
        for (i, m) in spec.messages.iter().enumerate() {
            match m.release {
                Release::At(t) => timed.push((t.ps(), i as u32)),
                Release::After(b, delay) => waiting[b.index()].push((delay.ps(), i as u32)),
            }
            if let Some(b) = m.completes {
                left[b.index()] += 1;
            }
        }
        timed.sort_unstable();
        let mut messages_of_timed = vec![false; spec.messages.len()];
        for &(_, i) in &timed {
            messages_of_timed[i as usize] = true;
        }
        Application {
            rows: spec
                .messages
                .iter()
                .map(|m| MessageStats {
                    flow: m.flow.0,
                    class: m.class,
                    bytes: m.bytes,
                    ideal_ps: ideal(m),
                    ..MessageStats::default()
                })
                .collect(),
            timed,
            next_timed: 0,
            left,
            waiting,
            completes: spec.messages.iter().map(|m| m.completes.map(|b| b.0)).collect(),
            timeouts_before: vec![0; spec.messages.len()],
            delivered: 0,
            finite: spec.messages.iter().filter(|m| m.bytes != Message::UNLIMITED).count() as u64,
            messages_of_timed,
        }
    }

    /// What to schedule before the run starts: the first timed message, and messages whose barrier has nothing to wait for.
    pub fn first_releases(&mut self) -> Vec<(u64, u32)> {
        let mut first: Vec<(u64, u32)> = self.timed.first().copied().into_iter().collect();
        self.next_timed = first.len();
        for (barrier, &left) in self.left.iter().enumerate() {
            if left == 0 {
                first.extend(self.waiting[barrier].iter().copied());
            }
        }
        first
    }

    /// A message is released; returns the next timed one to schedule.
    pub fn release(&mut self, message: u32, now: u64) -> Option<(u64, u32)> {
        self.rows[message as usize].release_ps = Some(now);
        if !self.messages_of_timed[message as usize] {
            return None;
        }
        let next = self.timed.get(self.next_timed).copied();
        self.next_timed += 1;
        next
    }

    /// Notes a released message's deadline and the timeouts its flow had before.
    pub fn promise(&mut self, message: u32, deadline: Option<u64>, timeouts: u64) {
        self.rows[message as usize].deadline_ps = deadline;
        self.timeouts_before[message as usize] = timeouts as u32;
    }

    /// The first byte of a message was sent.
    pub fn started(&mut self, message: u32, now: u64) {
        self.rows[message as usize].first_send_ps = Some(now);
    }

    /// A message was delivered; returns what its barrier releases.
    pub fn complete(&mut self, message: u32, now: u64, timeouts: u64) -> Vec<(u64, u32)> {
        let row = &mut self.rows[message as usize];
        row.done_ps = Some(now);
        row.timeouts = timeouts as u32 - self.timeouts_before[message as usize];
        self.delivered += 1;
        let Some(barrier) = self.completes[message as usize] else { return Vec::new() };
        let left = &mut self.left[barrier as usize];
        *left -= 1;
        if *left > 0 {
            return Vec::new();
        }
        self.waiting[barrier as usize].iter().map(|&(delay, m)| (now.saturating_add(delay), m)).collect()
    }

    /// Every finite message is delivered.
    pub fn is_done(&self) -> bool {
        self.delivered == self.finite && self.finite > 0
    }

    /// Finite messages delivered, and in all.
    pub fn delivered(&self) -> (u64, u64) {
        (self.delivered, self.finite)
    }

    /// The table of messages.
    pub fn into_rows(self) -> Vec<MessageStats> {
        self.rows
    }
}
