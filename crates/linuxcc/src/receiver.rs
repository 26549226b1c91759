//! Policies of receiving hosts ([`fanin_cc::ReceiverControl`]) between a kernel's TCP and `fanin-cc`.
//!
//! As in the simulator a host has one policy for each algorithm, which knows all connections to it from the start. Data that arrive, and
//! what the application expects, are its events; a window and a time to hold the ACK are its answer.

use crate::Program;
use crate::event::{Answer, Noted};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use fanin_cc::{Advice, Arrival, BuildError, ReceiverControl, RoundTrips};
use fanin_units::{Duration, Time};
use serde::{Deserialize, Serialize};

/// What the timestamp option takes of a segment: Linux sends none above half of the largest window that it has seen, options included
/// (`tcp_bound_to_half_wnd`).
const STAMP_ROOM: u64 = 12;

/// A host and a port.
pub type Address = (u32, u16);

/// Receivers under control as the kernel is told them: written by `fanin-kernel`, read inside the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Receivers {
    /// One for each receiving host and algorithm.
    pub policies: Vec<Program>,
    /// Ends of connections that receive, in the order in which their policies know them.
    pub ends: Vec<End>,
}

/// A connection's receiving end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Where it is.
    pub local: Address,
    /// Who sends to it.
    pub remote: Address,
    /// Position of its policy.
    pub policy: u32,
    /// Round trip of a full segment through empty queues.
    pub base_rtt_ps: u64,
    /// The connection's random number on [0, 1).
    pub uniform: f64,
}

impl Receivers {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Plain data into growing memory: nothing in it can fail.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// What [`Receivers::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Option<Receivers> {
        postcard::from_bytes(bytes).ok()
    }

    /// The policies, which know all connections and the window that each begins with. None has anything to receive yet.
    ///
    /// # Errors
    /// As [`Program::build_receiver`]; also where an end names no policy.
    pub(crate) fn policies(&self) -> Result<Policies, BuildError> {
        let built: Result<Vec<_>, _> = self.policies.iter().map(Program::build_receiver).collect();
        let mut made = Policies { controls: built?, numbers: Vec::new() };
        let mut known: Vec<u32> = self.policies.iter().map(|_| 0).collect();
        for end in &self.ends {
            let number = known[end.policy as usize];
            known[end.policy as usize] += 1;
            made.numbers.push((end.policy as usize, number));
            let base_rtt = Duration::from_ps(end.base_rtt_ps);
            made.controls[end.policy as usize].on_open(Time::ZERO, number, base_rtt, end.uniform);
        }
        Ok(made)
    }
}

/// Policies, and of each end which is its policy and its number there.
#[derive(Debug)]
pub(crate) struct Policies {
    controls: Vec<Box<dyn ReceiverControl>>,
    numbers: Vec<(usize, u32)>,
}

impl Policies {
    /// Tells an end's policy.
    pub(crate) fn tell(&mut self, end: u32, now_ps: u64, event: &Event) -> Option<Advice> {
        let (policy, conn) = self.numbers[end as usize];
        let (control, now) = (&mut self.controls[policy], Time::from_ps(now_ps));
        match *event {
            Event::Rests => control.on_close(now, conn),
            Event::Expects => control.on_reopen(now, conn),
            Event::Data { mss, wire_bytes, payload_bytes, rtt_ps } => {
                let rtt = rtt_ps.map(Duration::from_ps);
                return Some(control.on_data(&Arrival { now, conn, mss, wire_bytes, payload_bytes, rtt }));
            }
        }
        None
    }

    pub(crate) fn ends(&self) -> usize {
        self.numbers.len()
    }
}

/// What a policy is told of one of its connections, after all are open.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// Nothing is outstanding or expected.
    Rests,
    /// The application expects data.
    Expects,
    /// Data arrived; with no bytes: what is the first window?
    Data {
        /// Payload of a full segment.
        mss: u32,
        /// What arrived, on the wire.
        wire_bytes: u32,
        /// New payload.
        payload_bytes: u32,
        /// A round trip that was measured with it.
        rtt_ps: Option<u64>,
    },
}

/// An event and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Position of the end.
    pub end: u32,
    /// Time of the run.
    pub now_ps: u64,
    /// What the policy was told.
    pub event: Event,
    /// Window in bytes, if it was asked.
    pub window: Answer,
    /// For how long the ACK is held, ps.
    pub delay_ps: u64,
}

/// The receivers of a running kernel.
#[derive(Debug)]
pub struct Controlled {
    policies: Policies,
    by_address: BTreeMap<(Address, Address), u32>,
    first: BTreeMap<Address, u32>,
    ends: Vec<Incoming>,
    notes: Option<Vec<u8>>,
}

/// One receiving end.
#[derive(Debug)]
struct Incoming {
    mss: u32,
    /// Bytes on the wire of a segment beside its payload.
    overhead: u32,
    /// When the run began, ns; until the application says so nothing arrives.
    zero_ns: u64,
    /// Offsets: what is in order, what the application expects, the right edge of what was offered.
    nxt: u64,
    expected: u64,
    edge: u64,
    window: u64,
    round_trips: RoundTrips,
    /// For how long the next ACK is to be held.
    delay: Duration,
    /// Until when the last one is.
    held_until_ns: u64,
}

impl Controlled {
    /// All ends, none of which has received anything. `trace`: keep notes.
    ///
    /// # Errors
    /// As [`Program::build_receiver`].
    pub fn new(receivers: &Receivers, trace: bool) -> Result<Controlled, BuildError> {
        let mut made = Controlled {
            policies: receivers.policies()?,
            by_address: BTreeMap::new(),
            first: BTreeMap::new(),
            ends: Vec::new(),
            notes: trace.then(Vec::new),
        };
        for (number, end) in (0..).zip(&receivers.ends) {
            let program = &receivers.policies[end.policy as usize];
            let (mss, overhead) = (program.mss, program.wire.saturating_sub(u64::from(program.mss)) as u32);
            let mut incoming = Incoming {
                mss,
                overhead,
                zero_ns: 0,
                nxt: 0,
                expected: 0,
                edge: 0,
                window: 0,
                round_trips: RoundTrips::default(),
                delay: Duration::ZERO,
                held_until_ns: 0,
            };
            let opening = Event::Data { mss, wire_bytes: 0, payload_bytes: 0, rtt_ps: None };
            incoming.window = made.tell(number, 0, opening).map_or(u64::MAX, |advice| advice.window);
            incoming.edge = incoming.window;
            let least = 2 * (u64::from(mss) + STAMP_ROOM);
            made.first.entry(end.local).or_insert(clamped(incoming.window.max(least)));
            made.by_address.insert((end.local, end.remote), number);
            made.ends.push(incoming);
        }
        for number in 0..made.ends.len() as u32 {
            made.tell(number, 0, Event::Rests);
        }
        Ok(made)
    }

    /// How many ends there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of the end at the first address whose peer is the second.
    pub fn find(&self, at: (Address, Address)) -> Option<u32> {
        self.by_address.get(&at).copied()
    }

    /// What SYN and SYN-ACK at this address offer, bytes. Two segments at least: Linux's senders send none above half of the largest window
    /// that they have seen.
    pub fn first_window(&self, at: Address) -> Option<u32> {
        self.first.get(&at).copied()
    }

    /// What an end is to advertise, bytes from what has arrived on. The kernel never moves the right edge back.
    pub fn window(&self, end: u32) -> u32 {
        clamped(self.ends[end as usize].window)
    }

    /// Its application expects data up to this offset. The run began at `zero_ns`.
    pub fn expect(&mut self, end: u32, now_ns: u64, zero_ns: u64, up_to: u64) {
        let incoming = &mut self.ends[end as usize];
        incoming.zero_ns = zero_ns;
        let rested = incoming.nxt >= incoming.expected;
        incoming.expected = up_to;
        if rested {
            self.tell(end, now_ns, Event::Expects);
        }
    }

    /// A segment arrived, after which `advanced` bytes more are in order; all of a duplicate was there before. It is acknowledged at once,
    /// or when [`Controlled::hold`] says.
    pub fn data(&mut self, end: u32, now_ns: u64, payload: u32, advanced: u32, duplicate: bool) {
        let incoming = &mut self.ends[end as usize];
        incoming.nxt += u64::from(advanced);
        let now = Time::from_ps(now_ns.saturating_mul(1000));
        let event = Event::Data {
            mss: incoming.mss,
            wire_bytes: payload + incoming.overhead,
            payload_bytes: if duplicate { 0 } else { payload },
            rtt_ps: incoming.round_trips.on_data(incoming.nxt, now).map(Duration::ps),
        };
        let Some(advice) = self.tell(end, now_ns, event) else { return };
        let incoming = &mut self.ends[end as usize];
        (incoming.window, incoming.delay) = (advice.window, advice.ack_delay);
        incoming.edge = incoming.edge.max(incoming.nxt.saturating_add(advice.window));
        incoming.round_trips.on_ack(incoming.nxt, incoming.edge, now + advice.ack_delay);
        if advanced > 0 && incoming.nxt >= incoming.expected {
            self.tell(end, now_ns, Event::Rests);
        }
    }

    /// Until when the ACK that is about to leave is held, ns; held ACKs leave in order.
    pub fn hold(&mut self, end: u32, now_ns: u64) -> Option<u64> {
        let incoming = &mut self.ends[end as usize];
        let delay = core::mem::take(&mut incoming.delay);
        let due = (now_ns + delay.ps().div_ceil(1000)).max(incoming.held_until_ns);
        (due > now_ns).then(|| {
            incoming.held_until_ns = due;
            due
        })
    }

    /// Notes since the last call.
    pub fn take_notes(&mut self) -> Option<Vec<u8>> {
        self.notes.as_mut().filter(|n| !n.is_empty()).map(core::mem::take)
    }

    fn tell(&mut self, end: u32, now_ns: u64, event: Event) -> Option<Advice> {
        let zero_ns = self.ends.get(end as usize).map_or(0, |e| e.zero_ns);
        let now_ps = now_ns.saturating_sub(zero_ns) * 1000;
        let advice = self.policies.tell(end, now_ps, &event);
        if let Some(notes) = &mut self.notes {
            let delay_ps = advice.map_or(0, |a| a.ack_delay.ps());
            let note = Note { end, now_ps, event, window: advice.map(|a| a.window), delay_ps };
            notes.extend_from_slice(&Noted::Receiver(note).write());
        }
        advice
    }
}

fn clamped(bytes: u64) -> u32 {
    // Windows have 30 bits at most.
    bytes.min(1 << 30) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Path;
    use crate::replay::replay;
    use alloc::borrow::ToOwned;
    use alloc::string::String;

    const MSS: u32 = 1448;
    const ZERO: u64 = 300_000_000;

    fn receivers(algorithm: &str, hosts: u32, senders: u32, uniform: f64) -> Receivers {
        let path = Path { rate_bps: 1_000_000_000, base_rtt_ps: 224_640_000, buffer_packets: 100.0 };
        let policy = Program {
            name: String::new(),
            algorithm: algorithm.to_owned(),
            settings: fanin_units::Args::default(),
            mss: MSS,
            wire: 1500,
            initial_window: 10.0,
            initial_ssthresh: f64::INFINITY,
            hz: 250,
            path: Some(path),
            seed: 1,
        };
        let ends = (0..hosts).flat_map(|host| {
            (0..senders).map(move |sender| End {
                local: (host, 5_000),
                remote: (100 + sender, 10_000),
                policy: host,
                base_rtt_ps: path.base_rtt_ps,
                uniform,
            })
        });
        Receivers { policies: (0..hosts).map(|_| policy.clone()).collect(), ends: ends.collect() }
    }

    fn iatcp(hosts: u32, senders: u32, uniform: f64) -> Controlled {
        Controlled::new(&receivers("iatcp", hosts, senders, uniform), true).unwrap()
    }

    #[test]
    fn each_host_has_a_policy_of_its_own_and_counts_its_own_connections() {
        let mut hosts = iatcp(2, 4, 0.0);
        // 18.7 packets of the pipe are five for each of four, at first and while all expect data.
        let [first, other] = [0, 1].map(|host| hosts.find(((host, 5_000), (100, 10_000))).unwrap());
        for end in 0..8 {
            hosts.expect(end, ZERO, ZERO, 1 << 20);
        }
        hosts.data(first, ZERO + 1_000, MSS, MSS, false);
        assert_eq!(hosts.window(first), 5 * MSS);
        // Three connections of the other host have all that was expected.
        for end in other + 1..other + 4 {
            hosts.data(end, ZERO + 2_000, MSS, 1 << 20, false);
        }
        hosts.data(first, ZERO + 3_000, MSS, MSS, false);
        hosts.data(other, ZERO + 3_000, MSS, MSS, false);
        assert_eq!((hosts.window(first), hosts.window(other)), (5 * MSS, 19 * MSS));
        assert_eq!(hosts.find(((0, 5_000), (200, 10_000))), None);
    }

    #[test]
    fn the_first_window_is_two_segments_at_least_and_the_next_the_policys() {
        let mut hosts = iatcp(1, 48, 0.0);
        assert_eq!(hosts.first_window((0, 5_000)), Some(2 * (MSS + 12)));
        hosts.expect(0, ZERO, ZERO, 1 << 20);
        hosts.data(0, ZERO + 1_000, MSS, MSS, false);
        assert_eq!(hosts.window(0), 19 * MSS);
        (1..48).for_each(|end| hosts.expect(end, ZERO, ZERO, 1 << 20));
        hosts.data(0, ZERO + 2_000, MSS, MSS, false);
        assert_eq!(hosts.window(0), MSS);
        assert_eq!(iatcp(1, 2, 0.0).first_window((0, 5_000)), Some(9 * MSS));
        assert_eq!(hosts.first_window((1, 5_000)), None);
    }

    #[test]
    fn a_held_ack_leaves_when_it_may_and_no_later_one_before_it() {
        let mut hosts = iatcp(1, 8, 0.5);
        (0..8).for_each(|end| hosts.expect(end, ZERO, ZERO, 1 << 20));
        let now = ZERO + 100_000;
        hosts.data(0, now, MSS, MSS, false);
        // Half of a period of 224.64 us, which 2 packets for each of eight do not fill.
        assert_eq!(hosts.hold(0, now), Some(now + 112_320));
        // An ACK of no new data, then one that may leave at once: neither overtakes it.
        assert_eq!(hosts.hold(0, now + 1_000), Some(now + 112_320));
        hosts.data(0, now + 12_000, MSS, MSS, false);
        assert_eq!(hosts.hold(0, now + 12_000), Some(now + 112_320));
        hosts.data(0, now + 200_000, MSS, MSS, false);
        assert_eq!(hosts.hold(0, now + 200_000), None);
    }

    #[test]
    fn the_same_events_give_the_same_windows() {
        for algorithm in ["iatcp", "ictcp"] {
            let told = receivers(algorithm, 2, 3, 0.25);
            let mut hosts = Controlled::new(&told, true).unwrap();
            let mut notes = Vec::new();
            (0..6).for_each(|end| hosts.expect(end, ZERO, ZERO, u64::from(end + 1) << 16));
            for step in 0..2_000_u64 {
                let end = (step * 7 % 6) as u32;
                hosts.data(end, ZERO + step * 12_000, MSS, MSS, step % 50 == 49);
            }
            notes.extend(hosts.take_notes().unwrap());
            let mut notes = Noted::read_all(&notes).unwrap();
            let found = replay(&[], &told, &notes);
            assert_eq!((found.sockets, found.difference), (6, None), "{algorithm}");
            assert!(found.acks >= 2_000 && found.events > found.acks);
            let windows = notes.iter().filter_map(|n| match n {
                Noted::Receiver(note) => note.window,
                Noted::Sender(_) => None,
            });
            assert!(windows.clone().min() < windows.max(), "{algorithm}");
            // One byte more in one answer is noticed.
            let answered = |n: &mut Noted| matches!(n, Noted::Receiver(note) if note.window.is_some());
            let last = notes.iter_mut().rev().find_map(|n| answered(n).then_some(n));
            if let Some(Noted::Receiver(Note { window: Some(bytes), .. })) = last {
                *bytes += 1;
            }
            assert!(replay(&[], &told, &notes).difference.is_some());
        }
    }

    #[test]
    fn a_round_trip_is_measured_where_the_simulator_measures_it() {
        let mut hosts = Controlled::new(&receivers("ictcp", 1, 1, 0.0), true).unwrap();
        hosts.expect(0, ZERO, ZERO, 1 << 20);
        // Two packets of window: the data that fill the first ACK's offer come 300 us after it.
        for (us, bytes) in [(100, MSS), (112, MSS), (400, MSS)] {
            hosts.data(0, ZERO + us * 1_000, bytes, bytes, false);
        }
        let notes = Noted::read_all(&hosts.take_notes().unwrap()).unwrap();
        let samples = notes.iter().filter_map(|n| match n {
            Noted::Receiver(Note { event: Event::Data { rtt_ps, .. }, .. }) => Some(*rtt_ps),
            _ => None,
        });
        assert_eq!(samples.collect::<Vec<_>>(), [None, None, None, Some(300_000_000)]);
    }
}
