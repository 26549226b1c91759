//! A receive queue of a host's network card, and the processor that serves it: interrupts, NAPI polls, GRO, and what IP and TCP take.
//!
//! *Source*: Linux 6.12 `net/core/dev.c` (`net_rx_action`, `napi_complete_done`, `napi_watchdog`), `ethtool -C`.
//!
//! *Departures*: interrupts, softirqs and the application of one processor take turns in the order in which they ask; `ksoftirqd` and the
//! scheduler's time slices are left out. A poll that has used its budget is followed by another at once.

use super::clock::Clock;
use super::gro::Gro;
use super::model::HostModel;
use crate::packet::{Packet, flags};
use std::collections::VecDeque;

/// A packet that the card holds, as far as the host knows it.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    pub packet: Packet,
    /// Its connection, both directions.
    pub connection: u32,
    /// Its transport is one that GRO knows.
    pub merges: bool,
}

/// What the processor does with the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing: interrupts are on.
    Idle,
    /// The card interrupts then, ps.
    Armed(u64),
    /// It polls, and has something done then, ps.
    Polling(u64),
}

/// A receive queue.
#[derive(Debug)]
pub struct Queue {
    clock: Clock,
    ring: VecDeque<Arrived>,
    gro: Gro,
    /// Segments that IP and TCP have not begun with.
    up: VecDeque<Packet>,
    /// The one that is ready at the end of [`Phase::Polling`].
    ready: Option<Packet>,
    phase: Phase,
    /// Packets that this poll may still take, and whether it has taken any.
    left: u32,
    worked: bool,
    /// It ends, and GRO held something when it began to end, so that the watchdog follows.
    flushes: bool,
    last_interrupt: Option<u64>,
    /// When a poll begins without an interrupt (`gro_flush_timeout`), ps; `u64::MAX` if no timer runs.
    flush_at: u64,
    /// Until when the processor is busy, ps.
    pub busy_until: u64,
}

impl Queue {
    /// Of a host whose jiffies this clock counts.
    pub fn new(clock: Clock) -> Queue {
        Queue {
            clock,
            ring: VecDeque::new(),
            gro: Gro::default(),
            up: VecDeque::new(),
            ready: None,
            phase: Phase::Idle,
            left: 0,
            worked: false,
            flushes: false,
            last_interrupt: None,
            flush_at: u64::MAX,
            busy_until: 0,
        }
    }

    /// A packet has come; when the queue's timer is to be set, ps, if it is. An error: the ring is full.
    pub fn arrive(&mut self, arrived: Arrived, model: &HostModel, now: u64) -> Result<Option<u64>, Packet> {
        if self.ring.len() >= model.ring as usize {
            return Err(arrived.packet);
        }
        self.ring.push_back(arrived);
        let waits = |at: u64| at.max(self.last_interrupt.map_or(0, |last| last + model.interrupt_gap.ps()));
        let full = model.interrupt_frames > 0 && self.ring.len() >= model.interrupt_frames as usize;
        let interrupt = match self.phase {
            Phase::Polling(_) => return Ok(None),
            Phase::Idle if full => waits(now),
            Phase::Idle => waits(now + model.interrupt_delay.ps()),
            Phase::Armed(at) if full && waits(now) < at => waits(now),
            Phase::Armed(_) => return Ok(None),
        };
        self.phase = Phase::Armed(interrupt);
        Ok(Some(interrupt))
    }

    /// The queue's timer has come: the segment that TCP is to get now, if one is ready. [`Self::go_on`] follows.
    pub fn on_timer(&mut self, model: &HostModel, now: u64) -> Due {
        // While a poll is under way the watchdog finds nothing to do.
        let watchdog = self.flush_at == now;
        if watchdog {
            self.flush_at = u64::MAX;
        }
        match self.phase {
            Phase::Polling(at) if at == now => Due::Now(self.ready.take()),
            Phase::Armed(at) if at == now => {
                self.last_interrupt = Some(now);
                self.begin(model, now);
                Due::Now(None)
            }
            // `napi_watchdog`: a poll like any other; it lets everything go if it finds nothing new.
            Phase::Idle | Phase::Armed(_) if watchdog => {
                self.begin(model, now);
                Due::Now(None)
            }
            _ => Due::No,
        }
    }

    fn begin(&mut self, model: &HostModel, now: u64) {
        self.busy_until = self.busy_until.max(now) + model.interrupt_time.ps();
        self.left = model.napi_budget;
        self.worked = false;
        self.phase = Phase::Polling(now);
    }

    /// The processor goes on with the queue, after what TCP did; when the queue's timer is to be set, ps, if it is.
    pub fn go_on(&mut self, model: &HostModel, now: u64) -> Option<u64> {
        let mut time = self.busy_until.max(now);
        // What comes until then is in the ring only then.
        if time == now {
            time = self.take(model, now);
        }
        self.busy_until = time;
        match self.phase {
            Phase::Polling(_) => {
                self.phase = Phase::Polling(time);
                Some(time)
            }
            _ => (self.flush_at != u64::MAX).then_some(self.flush_at),
        }
    }

    /// Takes packets until a segment is ready or time has passed; until when the processor is busy with it, ps.
    fn take(&mut self, model: &HostModel, now: u64) -> u64 {
        let mut time = now;
        loop {
            if let Some(segment) = self.up.pop_front() {
                let ack = segment.has(flags::ACK);
                self.ready = Some(segment);
                return time + if ack { model.ack_time } else { model.segment_time }.ps();
            }
            if self.left > 0
                && let Some(Arrived { packet, connection, merges }) = self.ring.pop_front()
            {
                (self.left, self.worked) = (self.left - 1, true);
                time += model.packet_time.ps();
                let tick = self.clock.tick(now);
                self.gro.receive(packet, connection, merges && model.gro, tick, &mut self.up);
            } else if time > now {
                return time;
            } else if self.left == 0 {
                // The budget is used: another poll begins, and what was handed up goes, and what waits, too; with many ticks a second only
                // what has waited for one (`__napi_poll`).
                (self.left, self.worked) = (model.napi_budget, false);
                self.gro.flush((!self.clock.is_coarse()).then(|| self.clock.tick(now)), &mut self.up);
                self.gro.end_batch(&mut self.up);
            } else if !self.complete(model, now) {
                return time;
            }
        }
    }

    /// The ring is empty: `napi_complete_done`. Whether segments went up, after which it is called again.
    fn complete(&mut self, model: &HostModel, now: u64) -> bool {
        let timeout = model.gro_flush_timeout.ps();
        let watched = timeout > 0 && self.worked && (self.gro.holds() || self.flushes);
        self.flushes = watched;
        self.gro.flush(watched.then(|| self.clock.tick(now)), &mut self.up);
        self.gro.end_batch(&mut self.up);
        if !self.up.is_empty() {
            return true;
        }
        self.phase = Phase::Idle;
        self.flushes = false;
        if watched {
            self.flush_at = now + timeout;
        }
        false
    }
}

/// Whether a timer still means something, and what is ready.
#[derive(Debug)]
pub enum Due {
    No,
    Now(Option<Packet>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use fanin_units::Duration;

    const US: u64 = 1_000_000;

    /// Of a host of so many jiffies a second, which stands at the beginning of one.
    fn clock(hz: u32) -> Clock {
        Clock::new(&Stack { hz, common_ticks: true, ..Stack::linux() }, 1, 0)
    }

    fn model() -> HostModel {
        HostModel {
            gro: true,
            packet_time: Duration::us(1),
            segment_time: Duration::us(2),
            ack_time: Duration::us(1),
            ..HostModel::ideal()
        }
    }

    fn segment(number: u64) -> Arrived {
        let packet = Packet { seq: number * 1000, len: 1000, wire: 1040, ..Packet::default() };
        Arrived { packet, connection: 0, merges: true }
    }

    /// Segments that reach TCP of packets that come then (us): when (us), and their length in thousands.
    fn run(model: &HostModel, arrivals: &[(u64, Arrived)]) -> Vec<(u64, u16)> {
        run_at(250, model, arrivals)
    }

    /// The same where the host ticks so often a second.
    fn run_at(hz: u32, model: &HostModel, arrivals: &[(u64, Arrived)]) -> Vec<(u64, u16)> {
        let (mut queue, mut got) = (Queue::new(clock(hz)), Vec::new());
        let mut timers: std::collections::BTreeSet<u64> = std::collections::BTreeSet::new();
        let mut arrivals = arrivals.iter().copied().peekable();
        loop {
            let timer = timers.first().copied().unwrap_or(u64::MAX);
            if let Some((at, arrived)) = arrivals.next_if(|a| a.0 * US <= timer) {
                timers.extend(queue.arrive(arrived, model, at * US).unwrap());
                continue;
            }
            let Some(now) = timers.pop_first() else { return got };
            if let Due::Now(segment) = queue.on_timer(model, now) {
                got.extend(segment.map(|s| (now / US, s.len / 1000)));
                timers.extend(queue.go_on(model, now));
            }
        }
    }

    /// The first packet takes 1 us of the driver, finds the second there, then the queue empty: 2 us later TCP has both.
    #[test]
    fn what_comes_while_the_processor_polls_is_part_of_the_poll() {
        assert_eq!(run(&model(), &[(0, segment(0)), (1, segment(1)), (9, segment(2))]), [(4, 2), (12, 1)]);
    }

    #[test]
    fn interrupts_wait_for_a_time_or_for_a_number_of_frames() {
        let delayed = HostModel { interrupt_delay: Duration::us(10), ..model() };
        assert_eq!(run(&delayed, &[(0, segment(0)), (5, segment(1))]), [(14, 2)]);
        let frames = HostModel { interrupt_frames: 2, ..delayed };
        assert_eq!(run(&frames, &[(0, segment(0)), (5, segment(1))]), [(9, 2)]);
    }

    #[test]
    fn a_second_interrupt_waits_for_the_gap() {
        let gap = HostModel { interrupt_gap: Duration::us(50), ..model() };
        assert_eq!(run(&gap, &[(0, segment(0)), (10, segment(1)), (60, segment(2))]), [(3, 1), (53, 1), (103, 1)]);
    }

    #[test]
    fn merged_segments_wait_for_more_until_the_flush_timeout() {
        let waits = HostModel { gro_flush_timeout: Duration::us(20), ..model() };
        assert_eq!(run(&waits, &[(0, segment(0)), (10, segment(1))]), [(33, 2)]);
    }

    /// `__napi_poll`: "If HZ < 1000, flush all packets".
    #[test]
    fn a_used_budget_ends_what_is_merged_unless_the_host_ticks_a_thousand_times_a_second() {
        let two = HostModel { napi_budget: 2, interrupt_delay: Duration::us(1), ..model() };
        let arrivals = [0, 1, 2].map(|number| (0, segment(number)));
        assert_eq!(run_at(250, &two, &arrivals), [(5, 2), (8, 1)]);
        assert_eq!(run_at(1000, &two, &arrivals), [(6, 3)]);
    }

    /// A jiffy of 4 ms ends while the first segment waits: the next poll lets it go, and the second waits for its own timer.
    #[test]
    fn what_has_waited_for_a_jiffy_goes_with_the_next_poll() {
        let waits = HostModel { gro_flush_timeout: Duration::us(100), packet_time: Duration::ZERO, ..model() };
        let other = Arrived { connection: 1, ..segment(1) };
        assert_eq!(run(&waits, &[(3950, segment(0)), (4010, other)]), [(4012, 1), (4114, 1)]);
    }

    /// `napi_watchdog` is not stopped by an interrupt whose poll leaves nothing to wait for.
    #[test]
    fn the_watchdog_polls_what_waits_for_an_interrupt() {
        let waits = HostModel {
            gro_flush_timeout: Duration::us(100),
            interrupt_delay: Duration::us(50),
            packet_time: Duration::ZERO,
            segment_time: Duration::ZERO,
            ..model()
        };
        let mut push = segment(1);
        push.packet.flags = flags::PUSH;
        let arrivals = [(0, segment(0)), (60, push), (140, segment(2)), (1000, segment(3))];
        assert_eq!(run(&waits, &arrivals), [(110, 2), (250, 1), (1150, 1)]);
    }

    /// With a budget of one packet what is handed up goes after each.
    #[test]
    fn a_used_budget_lets_what_was_handed_up_go() {
        let push = |number| {
            let mut arrived = segment(number);
            arrived.packet.flags = flags::PUSH;
            arrived
        };
        let arrivals = [(0, push(0)), (0, push(1)), (0, push(2))];
        let last =
            |budget| run(&HostModel { napi_budget: budget, interrupt_delay: Duration::us(1), ..model() }, &arrivals);
        assert_eq!(last(64), [(6, 1), (8, 1), (10, 1)]);
        assert_eq!(last(1), [(4, 1), (7, 1), (10, 1)]);
    }

    #[test]
    fn a_full_ring_drops() {
        let (mut queue, model) = (Queue::new(clock(250)), HostModel { ring: 1, ..model() });
        assert!(queue.arrive(segment(0), &model, 0).is_ok());
        assert_eq!(queue.arrive(segment(1), &model, 0).unwrap_err().seq, 1000);
    }
}
