//! The applications: messages released in time or after barriers, and what becomes of them.

use crate::results::{MessageStats, Messages};
use crate::spec::{BarrierId, GateEvent, Message, Release, Spec};

/// Progress of all messages of a run. What the plan says of them is not kept again: `messages` of its methods are the plan's.
#[derive(Debug, Default)]
pub struct Application {
    courses: Vec<Course>,
    /// Of each message, what it takes on empty links.
    ideal_ps: Vec<u64>,
    /// Of each message, if one has a deadline.
    deadlines: Vec<u64>,
    /// Messages released at fixed times, in order, and the next of them to schedule.
    timed: Vec<(u64, u32)>,
    next_timed: usize,
    /// Undelivered messages per barrier.
    left: Vec<u32>,
    waiting: Waiters,
    /// What each message's delivery and release count towards besides.
    delivery_gates: Gates,
    release_gates: Gates,
    /// Timeouts of the flow when the message was released.
    timeouts_before: Vec<u32>,
    /// Every timeout: its flow and when.
    timeouts: Vec<(u32, u64)>,
    delivered: u64,
    finite: u64,
    messages_of_timed: Vec<bool>,
}

/// No time: what has not happened, or a deadline that there is none of.
const NEVER: u64 = u64::MAX;

/// When what became of a message. A replay has millions of them, so nothing is here that the plan has.
#[derive(Clone, Copy, Debug)]
struct Course {
    release_ps: u64,
    first_send_ps: u64,
    done_ps: u64,
}

/// A time, where there is one.
fn time(ps: u64) -> Option<u64> {
    Some(ps).filter(|&ps| ps != NEVER)
}

/// The barrier that a message waits for, if it waits for one.
fn awaited(message: &Message) -> Option<BarrierId> {
    match message.release {
        Release::At(_) => None,
        Release::After(barrier, _) | Release::NotBefore(_, barrier) => Some(barrier),
    }
}

/// When a message is released whose barrier opens at `now`.
fn due(release: Release, now: u64) -> u64 {
    match release {
        Release::At(at) => at.ps(),
        Release::After(_, delay) => now.saturating_add(delay.ps()),
        Release::NotBefore(at, _) => now.max(at.ps()),
    }
}

/// Messages that wait, barrier by barrier in one piece: a replay has millions of both. How they wait stands in the plan.
#[derive(Debug, Default)]
struct Waiters {
    all: Vec<u32>,
    /// Where those of each barrier begin, and the end.
    first: Vec<u32>,
}

impl Waiters {
    fn new(spec: &Spec) -> Waiters {
        let waiting = (0..).zip(&spec.messages).filter_map(|(number, m)| awaited(m).map(|barrier| (barrier, number)));
        let mut first = vec![0; spec.barriers as usize + 1];
        waiting.clone().for_each(|(barrier, _)| first[barrier.index() + 1] += 1);
        for n in 1..first.len() {
            first[n] += first[n - 1];
        }
        let mut all = vec![0; first.last().map_or(0, |&end| end as usize)];
        let mut next = first.clone();
        for (barrier, number) in waiting {
            let place = &mut next[barrier.index()];
            all[*place as usize] = number;
            *place += 1;
        }
        Waiters { all, first }
    }

    /// What a barrier that opens at `now` releases, and when.
    fn released(&self, messages: &[Message], barrier: BarrierId, now: u64) -> impl Iterator<Item = (u64, u32)> {
        let [from, to] = [0, 1].map(|n| self.first[barrier.index() + n] as usize);
        self.all[from..to].iter().map(move |&number| (due(messages[number as usize].release, now), number))
    }
}

/// Barriers by message.
#[derive(Debug, Default)]
struct Gates {
    /// (message, barrier), in order.
    of: Vec<(u32, BarrierId)>,
}

impl Gates {
    fn new(spec: &Spec, event: GateEvent) -> Gates {
        let gates = spec.gates.iter().filter(|g| g.event == event);
        let mut of: Vec<(u32, BarrierId)> = gates.flat_map(|g| g.of.iter().map(|m| (m.0, g.barrier))).collect();
        of.sort_unstable();
        Gates { of }
    }

    fn range(&self, message: u32) -> std::ops::Range<usize> {
        let from = self.of.partition_point(|&(m, _)| m < message);
        from..from + self.of[from..].partition_point(|&(m, _)| m == message)
    }
}

impl Application {
    /// For the messages of a spec; `ideal` gives each its time on empty links.
    /// `mine` says which the run releases.
    pub fn new(spec: &Spec, ideal: impl Fn(&Message) -> u64, mine: impl Fn(&Message) -> bool) -> Application {
        let mut timed = Vec::new();
        let mut left = vec![0; spec.barriers as usize];
        for (i, m) in spec.messages.iter().enumerate() {
            if let Release::At(t) = m.release
                && mine(m)
            {
                timed.push((t.ps(), i as u32));
            }
            if let Some(b) = m.completes {
                left[b.index()] += 1;
            }
        }
        for gate in &spec.gates {
            left[gate.barrier.index()] = gate.need;
        }
        timed.sort_unstable();
        let mut messages_of_timed = vec![false; spec.messages.len()];
        for &(_, i) in &timed {
            messages_of_timed[i as usize] = true;
        }
        Application {
            courses: vec![Course { release_ps: NEVER, first_send_ps: NEVER, done_ps: NEVER }; spec.messages.len()],
            ideal_ps: spec.messages.iter().map(ideal).collect(),
            deadlines: Vec::new(),
            timed,
            next_timed: 0,
            left,
            waiting: Waiters::new(spec),
            delivery_gates: Gates::new(spec, GateEvent::Delivered),
            release_gates: Gates::new(spec, GateEvent::Released),
            timeouts_before: vec![0; spec.messages.len()],
            timeouts: Vec::new(),
            delivered: 0,
            finite: spec.messages.iter().filter(|m| m.bytes != Message::UNLIMITED).count() as u64,
            messages_of_timed,
        }
    }

    /// What to schedule before the run starts: the first timed message, and messages whose barrier has nothing to wait for.
    pub fn first_releases(&mut self, messages: &[Message]) -> Vec<(u64, u32)> {
        let mut first: Vec<(u64, u32)> = self.timed.first().copied().into_iter().collect();
        self.next_timed = first.len();
        for (barrier, _) in (0..).zip(&self.left).filter(|(_, left)| **left == 0) {
            first.extend(self.waiting.released(messages, BarrierId(barrier), 0));
        }
        first
    }

    /// A message is released; returns what to schedule: the next timed one, and what its gates release.
    pub fn release(&mut self, messages: &[Message], message: u32, now: u64) -> Vec<(u64, u32)> {
        self.courses[message as usize].release_ps = now;
        let mut next = Vec::new();
        for n in self.release_gates.range(message) {
            let barrier = self.release_gates.of[n].1;
            self.count(messages, barrier, now, &mut next);
        }
        if self.messages_of_timed[message as usize] {
            next.extend(self.timed.get(self.next_timed).copied());
            self.next_timed += 1;
        }
        next
    }

    /// Notes a released message's deadline and the timeouts its flow had before.
    pub fn promise(&mut self, message: u32, deadline: Option<u64>, timeouts: u32) {
        if let Some(deadline) = deadline {
            self.deadlines.resize(self.courses.len(), NEVER);
            self.deadlines[message as usize] = deadline;
        }
        self.timeouts_before[message as usize] = timeouts;
    }

    /// The first byte of a message was sent.
    pub fn started(&mut self, message: u32, now: u64) {
        self.courses[message as usize].first_send_ps = now;
    }

    /// A flow had a retransmission timeout.
    pub fn timed_out(&mut self, flow: u32, now: u64) {
        self.timeouts.push((flow, now));
    }

    /// A message was delivered; returns what its barrier releases.
    pub fn complete(&mut self, messages: &[Message], message: u32, now: u64) -> Vec<(u64, u32)> {
        self.courses[message as usize].done_ps = now;
        self.delivered += 1;
        let mut released = Vec::new();
        if let Some(barrier) = messages[message as usize].completes {
            self.count(messages, barrier, now, &mut released);
        }
        for n in self.delivery_gates.range(message) {
            let barrier = self.delivery_gates.of[n].1;
            self.count(messages, barrier, now, &mut released);
        }
        released
    }

    /// One message more has done its part for a barrier; when it was the last that it takes, what waits there is released.
    fn count(&mut self, messages: &[Message], barrier: BarrierId, now: u64, released: &mut Vec<(u64, u32)>) {
        let left = &mut self.left[barrier.index()];
        if *left == 0 {
            // It has opened: it took fewer than there are.
            return;
        }
        *left -= 1;
        if *left == 0 {
            released.extend(self.waiting.released(messages, barrier, now));
        }
    }

    /// Every finite message is delivered.
    pub fn is_done(&self) -> bool {
        self.delivered == self.finite && self.finite > 0
    }

    /// Whether a message has been handed over.
    pub fn is_released(&self, message: u32) -> bool {
        self.courses[message as usize].release_ps != NEVER
    }

    /// Takes over what another part of the run knows.
    pub fn absorb(&mut self, other: Application) {
        // What happened, happened in one of them.
        for (course, theirs) in self.courses.iter_mut().zip(other.courses) {
            course.release_ps = course.release_ps.min(theirs.release_ps);
            course.first_send_ps = course.first_send_ps.min(theirs.first_send_ps);
            course.done_ps = course.done_ps.min(theirs.done_ps);
        }
        if self.deadlines.len() < other.deadlines.len() {
            self.deadlines.resize(other.deadlines.len(), NEVER);
        }
        for (deadline, theirs) in self.deadlines.iter_mut().zip(other.deadlines) {
            *deadline = theirs.min(*deadline);
        }
        for (before, theirs) in self.timeouts_before.iter_mut().zip(other.timeouts_before) {
            *before += theirs;
        }
        self.timeouts.extend(other.timeouts);
        self.delivered += other.delivered;
    }

    /// Finite messages delivered, and in all.
    pub fn delivered(&self) -> (u64, u64) {
        (self.delivered, self.finite)
    }

    /// The table of messages.
    pub fn into_rows(mut self, spec: &Spec) -> Messages {
        self.timeouts.sort_unstable();
        // Nothing is released any more; what that took has room for the rows.
        (self.timed, self.waiting) = Default::default();
        (self.delivery_gates, self.release_gates) = Default::default();
        let mut rows = Messages::with_capacity(self.courses.len());
        for (n, (message, course)) in spec.messages.iter().zip(&self.courses).enumerate() {
            rows.push(MessageStats {
                flow: message.flow.0,
                class: message.class,
                bytes: message.bytes,
                release_ps: time(course.release_ps),
                first_send_ps: time(course.first_send_ps),
                done_ps: time(course.done_ps),
                deadline_ps: self.deadlines.get(n).and_then(|&at| time(at)),
                ideal_ps: self.ideal_ps[n],
                timeouts: self.timeouts_of(message.flow.0, course, self.timeouts_before[n]),
            });
        }
        rows
    }

    /// Timeouts of a flow between a message's release and its delivery, where `before` its release there were so many.
    fn timeouts_of(&self, flow: u32, course: &Course, before: u32) -> u32 {
        // What arrives at an instant arrives before the timers of that instant.
        if course.done_ps == NEVER || course.release_ps >= course.done_ps {
            return 0;
        }
        let until = |time| self.timeouts.partition_point(|&t| t < (flow, time));
        ((until(course.done_ps) - until(0)) as u32).saturating_sub(before)
    }
}
