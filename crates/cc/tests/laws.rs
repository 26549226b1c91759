//! Laws that every registered algorithm keeps, whatever its sender tells it within the trait's contract.
#![allow(clippy::unwrap_used)]

use fanin_cc::algorithms::ALGORITHMS;
use fanin_cc::{
    Ack, Algorithm, Args, BuildError, Cause, CongestionControl, Conn, Control, Counting, Domain, Gate, Kind, Message,
    Needs, PathKnowledge, Profile, RateSample, SettingError, Setup, State, Value, Window, registry,
};
use fanin_units::{Bytes, Duration, Rate};
use proptest::prelude::*;
use std::collections::VecDeque;

const MSS: u32 = 1460;

fn setup(profile: Profile) -> Setup {
    let counting = match profile {
        Profile::Ns2 => Counting::PerAck,
        Profile::Rfc => Counting::Abc { limit: 1 },
        Profile::Linux => Counting::Linux,
    };
    Setup {
        mss: MSS,
        wire: Bytes::new(1500),
        initial_window: if profile == Profile::Linux { 10.0 } else { 2.0 },
        counting,
        profile,
        path: Some(PathKnowledge { rate: Rate::gbps(1), base_rtt: Duration::us(225), buffer_packets: 100.0 }),
        ..Setup::default()
    }
}

const PROFILES: [Profile; 3] = [Profile::Rfc, Profile::Ns2, Profile::Linux];

/// Every sender alone, behind every slow start, and in every wrapper that accepts it as it is.
fn senders() -> Vec<String> {
    let of = |test: fn(&Kind) -> bool| ALGORITHMS.iter().filter(move |a| test(&a.kind)).map(|a| a.name);
    let mut specs: Vec<String> = of(|k| matches!(k, Kind::Sender(_) | Kind::Receiver(_))).map(str::to_owned).collect();
    for sender in of(|k| matches!(k, Kind::Sender(_))) {
        for layer in of(|k| matches!(k, Kind::SlowStart(_) | Kind::Wrapper(_))) {
            let spec = format!("{layer}+{sender}");
            match registry::build(&spec, &setup(Profile::Rfc), &Args::default()) {
                Ok(_) => specs.push(spec),
                // A wrapper whose defaults do not suit this sender says so; anything else is a defect.
                Err(BuildError::Setting(_)) if matches!(registry::find(layer).unwrap().kind, Kind::Wrapper(_)) => {}
                Err(error) => panic!("{spec}: {error}"),
            }
        }
    }
    specs
}

fn layer_is_used(name: &str) -> bool {
    senders().iter().any(|s| s.starts_with(&format!("{name}+")))
}

/// What a sender may see next.
#[derive(Clone, Copy, Debug)]
enum Event {
    Ack { segments: usize, rtt_us: Option<u64>, ece: bool, grow: bool, gap_us: u64, lost: u32 },
    Loss,
    Timeout,
    Undo,
    Restart { part: f64 },
    Idle { ms: u64 },
    Message { unsent: u64, deadline_us: Option<u64> },
}

fn event() -> impl Strategy<Value = Event> {
    let ack = (1usize..4, proptest::option::weighted(0.95, 50u64..3000), 0..10u8, 0..10u8, 0u64..300, 0..40u32);
    prop_oneof![
        40 => ack.prop_map(|(segments, rtt_us, ece, grow, gap_us, lost)| Event::Ack {
            segments,
            rtt_us,
            ece: ece == 0,
            grow: grow > 0,
            gap_us,
            lost: lost.saturating_sub(37),
        }),
        2 => Just(Event::Loss),
        1 => Just(Event::Timeout),
        1 => Just(Event::Undo),
        1 => (0.1f64..=1.0).prop_map(|part| Event::Restart { part }),
        1 => (1u64..3000).prop_map(|ms| Event::Idle { ms }),
        1 => (0u64..2_000_000, proptest::option::of(0u64..5000))
            .prop_map(|(unsent, deadline_us)| Event::Message { unsent, deadline_us }),
    ]
}

/// Keeps the trait's contract: one reduction per window, `on_ack` before `on_congestion`, growth forbidden where it is.
struct Sender {
    spec: String,
    cc: Box<dyn CongestionControl>,
    needs: Needs,
    conn: Conn,
    outstanding: VecDeque<u32>,
    /// End of the window that CWR, recovery or loss repair lasts for.
    until: u64,
    timed_out: bool,
    delivered: u64,
    sent_any: bool,
    draw: u64,
}

impl Sender {
    fn new(spec: &str, profile: Profile) -> Sender {
        let cc = registry::build(spec, &setup(profile), &Args::default()).unwrap().sender;
        let needs = cc.needs();
        let mut sender = Sender {
            spec: spec.to_owned(),
            cc,
            needs,
            conn: Conn::new(MSS),
            outstanding: VecDeque::new(),
            until: 0,
            timed_out: false,
            delivered: 0,
            sent_any: false,
            draw: 1,
        };
        sender.fill();
        sender
    }

    fn refresh(&mut self) {
        self.conn.in_flight = self.outstanding.len() as f64;
        self.conn.loss_basis = self.cc.control().cwnd;
        if self.needs.randomness {
            self.draw = self.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.conn.uniform = (self.draw >> 11) as f64 / (1u64 << 53) as f64;
        }
    }

    fn fill(&mut self) {
        // Since the last packet: what an application paused, and what the algorithm then held.
        let mut since_last = Duration::us(400);
        while (self.outstanding.len() as f64) < self.cc.control().cwnd.floor().min(500.0) {
            self.refresh();
            let size = if self.needs.segment_sizes { self.cc.segment_size(&self.conn) } else { MSS };
            assert!((1..=MSS).contains(&size), "segment of {size} bytes");
            if self.needs.send_hook {
                match self.cc.before_send(&self.conn, self.sent_any.then_some(since_last)) {
                    Gate::Go => {}
                    Gate::HoldUntil(_) | Gate::HoldForAck if !self.outstanding.is_empty() => return,
                    Gate::HoldUntil(at) => {
                        assert!(at > self.conn.now, "{}: held until a time gone by", self.spec);
                        since_last += at - self.conn.now;
                        self.conn.now = at;
                        continue;
                    }
                    Gate::HoldForAck => panic!("{}: held for an ACK with nothing outstanding", self.spec),
                }
                if (self.outstanding.len() as f64) >= self.cc.control().cwnd.floor() {
                    return;
                }
            }
            self.sent_any = true;
            self.outstanding.push_back(size);
            self.conn.snd_nxt += u64::from(size);
        }
    }

    fn acknowledge(&mut self, segments: usize, rtt: Option<Duration>, ece: bool, grow: bool, lost: u32) {
        let segments = segments.min(self.outstanding.len());
        let flight = self.outstanding.len();
        let bytes: u64 = self.outstanding.drain(..segments).map(u64::from).sum();
        if segments == 0 {
            return;
        }
        self.conn.snd_una += bytes;
        self.timed_out = false;
        if let Some(rtt) = rtt {
            let srtt = self.conn.srtt;
            self.conn.srtt = if srtt.is_zero() { rtt } else { (srtt * 7 + rtt) / 8 };
            self.conn.min_rtt = if self.conn.min_rtt.is_zero() { rtt } else { self.conn.min_rtt.min(rtt) };
        }
        let repaired = self.conn.snd_una >= self.until;
        if repaired && self.conn.state == State::Cwr {
            self.conn.state = State::Open;
        }
        self.delivered += segments as u64;
        self.refresh();
        let mut ack = Ack::of(segments as u32, MSS, self.conn.snd_una, rtt);
        ack.acked_bytes = bytes;
        ack.delivered_bytes = bytes;
        ack.ece = ece;
        ack.may_grow = grow && !ece && matches!(self.conn.state, State::Open | State::Loss);
        ack.newly_lost = if self.conn.state == State::Recovery { lost } else { 0 };
        ack.rate = rtt.filter(|_| self.needs.rate_samples).map(|rtt| RateSample {
            delivered: flight as u32,
            prior_delivered: self.delivered.saturating_sub(flight as u64),
            total_delivered: self.delivered,
            interval: rtt,
            app_limited: !grow,
        });
        self.cc.on_ack(&self.conn, &ack);
        match self.conn.state {
            State::Recovery if repaired => {
                self.cc.on_recovered(&self.conn, Some(self.conn.in_flight.max(1.0) + 1.0));
                self.conn.state = State::Open;
            }
            State::Loss if repaired => self.conn.state = State::Open,
            State::Open if ece => {
                self.reduce(Cause::Ecn);
                self.conn.state = State::Cwr;
                self.until = self.conn.snd_nxt;
            }
            _ => {}
        }
    }

    /// No growth in `on_congestion`, and one reduction per call at most to a window that can still send.
    fn reduce(&mut self, cause: Cause) {
        self.refresh();
        let before = self.cc.control();
        self.cc.on_congestion(&self.conn, cause);
        let after = self.cc.control();
        assert!(
            after.cwnd <= before.cwnd,
            "{}: {cause:?} raised cwnd from {} to {}",
            self.spec,
            before.cwnd,
            after.cwnd
        );
        if cause == (Cause::Timeout { repeated: true }) {
            assert_eq!(after.ssthresh, before.ssthresh, "{}: a repeated timeout moved ssthresh", self.spec);
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ack { segments, rtt_us, ece, grow, gap_us, lost } => {
                self.conn.now += Duration::us(gap_us);
                self.acknowledge(segments, rtt_us.map(Duration::us), ece, grow, lost);
            }
            Event::Loss if matches!(self.conn.state, State::Open | State::Cwr) => {
                if self.conn.state == State::Open {
                    self.reduce(Cause::Loss);
                }
                self.conn.state = State::Recovery;
                self.until = self.conn.snd_nxt;
            }
            Event::Loss => {}
            Event::Timeout => {
                self.conn.now += Duration::ms(200);
                self.reduce(Cause::Timeout { repeated: self.timed_out });
                self.timed_out = true;
                self.conn.state = State::Loss;
                self.until = self.conn.snd_nxt;
            }
            Event::Undo => self.cc.on_undo(&self.conn),
            Event::Restart { part } => {
                let Control { cwnd, ssthresh, .. } = self.cc.control();
                let to = Window { cwnd: (cwnd * part).max(1.0), ssthresh: ssthresh.max(0.75 * cwnd) };
                self.refresh();
                self.cc.on_restart(&self.conn, Duration::ms(300), to);
            }
            Event::Idle { ms } => {
                self.acknowledge(usize::MAX, Some(Duration::us(225)), false, false, 0);
                self.conn.now += Duration::ms(ms);
            }
            Event::Message { unsent, deadline_us } => {
                let deadline = deadline_us.map(|us| self.conn.now + Duration::us(us));
                self.conn.message = Some(Message { unsent, sent: 0, deadline, start: self.conn.snd_nxt });
            }
        }
        self.fill();
    }

    fn check(&self) -> Result<Control, String> {
        let control = self.cc.control();
        if !(control.cwnd.is_finite() && control.cwnd >= 1.0) {
            return Err(format!("cwnd is {}", control.cwnd));
        }
        if control.ssthresh.is_nan() || control.ssthresh < 1.0 {
            return Err(format!("ssthresh is {}", control.ssthresh));
        }
        if control.pacing.is_some_and(|rate| rate.bps() == 0) {
            return Err("paces at nothing".to_owned());
        }
        Ok(control)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_window_stays_finite_and_sends_at_least_one_packet_and_no_reduction_raises_it(
        events in proptest::collection::vec(event(), 1..400),
    ) {
        for spec in senders() {
            for profile in PROFILES {
                let mut sender = Sender::new(&spec, profile);
                for (i, &event) in events.iter().enumerate() {
                    sender.take(event);
                    let checked = sender.check();
                    prop_assert!(checked.is_ok(), "{} ({:?}) after event {}, {:?}: {:?}", spec, profile, i, event, checked);
                }
            }
        }
    }

    /// A mistaken loss, and timeouts for it, cost nothing once they are taken back.
    #[test]
    fn an_undo_gives_the_whole_window_back(rounds in 1..40usize, timeouts in 0..4u32, by_timeout: bool) {
        for spec in senders() {
            for profile in PROFILES {
                let mut s = Sender::new(&spec, profile);
                if s.needs.settled_acks {
                    // The window comes back with the ACK that finds the repair over; it has a test of its own.
                    continue;
                }
                for _ in 0..rounds {
                    s.take(Event::Ack { segments: 2, rtt_us: Some(300), ece: false, grow: true, gap_us: 100, lost: 0 });
                }
                let before = s.cc.control();
                s.reduce(if by_timeout { Cause::Timeout { repeated: false } } else { Cause::Loss });
                s.conn.state = if by_timeout { State::Loss } else { State::Recovery };
                for _ in 0..timeouts {
                    s.reduce(Cause::Timeout { repeated: true });
                    s.conn.state = State::Loss;
                }
                s.cc.on_undo(&s.conn);
                let after = s.cc.control();
                prop_assert!(
                    after.cwnd >= before.cwnd && after.ssthresh >= before.ssthresh,
                    "{spec} ({profile:?}): {before:?}, after the undo {after:?}"
                );
            }
        }
    }

    #[test]
    fn the_same_events_give_the_same_windows(events in proptest::collection::vec(event(), 1..200)) {
        for spec in senders() {
            let run = || {
                let mut sender = Sender::new(&spec, Profile::Linux);
                events.iter().map(|&e| { sender.take(e); sender.cc.control() }).collect::<Vec<_>>()
            };
            prop_assert_eq!(run(), run(), "{}", spec);
        }
    }

    #[test]
    fn one_more_mark_never_leaves_a_larger_window(
        marks in proptest::collection::vec(0..20usize, 1..8),
        tested in 0..20usize,
        extra in 0..19usize,
        unsent in 0u64..500_000,
        deadline_us in 100u64..5000,
    ) {
        for algorithm in ALGORITHMS.iter().filter(|a| a.needs_ecn) {
            for profile in PROFILES {
                let run = |more: bool| {
                    let mut s = Windows::new(algorithm.name, profile);
                    for &marked in &marks {
                        s.window(|i| i < marked, true);
                    }
                    s.window(|_| false, true);
                    let now = s.conn.now;
                    s.conn.message =
                        Some(Message { unsent, sent: 0, deadline: Some(now + Duration::us(deadline_us)), start: 0 });
                    // The last ACK reacts to the fraction it completes itself: it is the next window's.
                    s.window(|i| i != 19 && (i < tested || (more && i == extra)), false);
                    let at_once = s.cc.control().cwnd;
                    s.window(|_| false, false);
                    s.cc.on_congestion(&s.conn, Cause::Ecn);
                    (at_once, s.cc.control().cwnd)
                };
                let (fewer, more) = (run(false), run(true));
                let slack = 1.0 + 1e-12;
                prop_assert!(
                    more.0 <= fewer.0 * slack && more.1 <= fewer.1 * slack,
                    "{} ({:?}): {:?} with one mark more, {:?} without", algorithm.name, profile, more, fewer
                );
            }
        }
    }
}

/// Windows of 20 ACKs whatever cwnd is, so that marks alone tell two runs apart.
struct Windows {
    cc: Box<dyn CongestionControl>,
    conn: Conn,
    cwr_until: u64,
}

impl Windows {
    fn new(name: &str, profile: Profile) -> Windows {
        let setup = Setup { initial_window: 64.0, initial_ssthresh: 32.0, ..setup(profile) };
        let mut conn = Conn::new(MSS);
        conn.srtt = Duration::us(225);
        Windows { cc: registry::build(name, &setup, &Args::default()).unwrap().sender, conn, cwr_until: 0 }
    }

    fn window(&mut self, marked: impl Fn(usize) -> bool, grow: bool) {
        self.conn.snd_nxt = self.conn.snd_una + 20 * u64::from(MSS);
        for i in 0..20 {
            self.conn.snd_una += u64::from(MSS);
            if i == 19 {
                // The next window is on its way when the last ACK of this one comes.
                self.conn.snd_nxt += 20 * u64::from(MSS);
            }
            self.conn.now += Duration::us(11);
            self.conn.loss_basis = self.cc.control().cwnd;
            let mut ack = Ack::of(1, MSS, self.conn.snd_una, Some(Duration::us(225)));
            ack.ece = marked(i);
            let in_cwr = self.conn.snd_una < self.cwr_until;
            ack.may_grow = grow && !ack.ece && !in_cwr;
            self.cc.on_ack(&self.conn, &ack);
            if ack.ece && !in_cwr {
                self.cc.on_congestion(&self.conn, Cause::Ecn);
                self.cwr_until = self.conn.snd_nxt;
            }
        }
    }
}

/// Linux hands a rate sample to `cong_control` alone, which sets the window in every state (tcp_input.c, `tcp_cong_control`): an algorithm that asked
/// for samples and left recovery to the stack would have them in the simulator and not in the kernel.
#[test]
fn who_asks_for_rate_samples_controls_recovery_as_in_linux() {
    let asking: Vec<_> = senders().into_iter().filter(|s| Sender::new(s, Profile::Linux).needs.rate_samples).collect();
    assert!(!asking.is_empty());
    for spec in asking {
        let needs = Sender::new(&spec, Profile::Linux).needs;
        assert!(needs.controls_recovery && needs.settled_acks, "{spec}");
    }
}

/// RFC 5681 equation 4. Swift counts on windows below one packet (its paper's section 3.1), and its ssthresh is its window.
#[test]
fn a_reduction_leaves_ssthresh_of_at_least_two_segments() {
    for spec in senders().into_iter().filter(|spec| !spec.ends_with("swift")) {
        for profile in PROFILES {
            for (window, cause) in (1..=3)
                .flat_map(|window| [Cause::Loss, Cause::Timeout { repeated: false }].map(|cause| (window, cause)))
            {
                let setup = Setup { initial_window: f64::from(window), ..setup(profile) };
                let mut cc = registry::build(&spec, &setup, &Args::default()).unwrap().sender;
                let mut conn = Conn::new(MSS);
                conn.loss_basis = cc.control().cwnd;
                cc.on_congestion(&conn, cause);
                let ssthresh = cc.control().ssthresh;
                assert!(ssthresh >= 2.0, "{spec} ({profile:?}): {cause:?} at {window} leaves ssthresh {ssthresh}");
            }
        }
    }
}

/// A spec in which the algorithm's parameters are declared.
fn spec_of(algorithm: &Algorithm) -> String {
    match algorithm.kind {
        Kind::Sender(_) | Kind::Endpoint(_) | Kind::Receiver(_) | Kind::Extension(_) => algorithm.name.to_owned(),
        Kind::SlowStart(_) => format!("{}+newreno", algorithm.name),
        Kind::Wrapper(_) => {
            let prefix = format!("{}+", algorithm.name);
            senders()
                .into_iter()
                .find(|s| s.starts_with(&prefix))
                .expect("every wrapper suits some sender: a test looks")
        }
    }
}

fn build_both(spec: &str, profile: Profile, name: &str, value: Value) -> Result<(), BuildError> {
    let mut args = Args::default();
    args.set(name, value);
    registry::build(spec, &setup(profile), &args)?;
    registry::build_receiver(spec, &setup(profile), &args).map(|_| ())
}

#[test]
fn every_slow_start_and_wrapper_suits_some_sender() {
    for algorithm in ALGORITHMS.iter().filter(|a| !a.stands_alone()) {
        assert!(layer_is_used(algorithm.name), "{}", algorithm.name);
    }
}

#[test]
fn every_parameter_is_accepted_within_its_domain_and_rejected_outside() {
    for algorithm in ALGORITHMS.iter() {
        let spec = spec_of(algorithm);
        let names: Vec<&str> = registry::parts(&spec).unwrap().iter().flat_map(|a| a.params).map(|p| p.name).collect();
        for param in algorithm.params {
            for profile in PROFILES {
                let set = |value: Value| build_both(&spec, profile, param.name, value);
                let accepted = |value: Value| match set(value.clone()) {
                    Ok(()) => {}
                    // At an end of its range a parameter may contradict another one's default; the message must name that one.
                    Err(BuildError::Setting(SettingError::BadValue { name, expected, .. }))
                        if names.iter().any(|&other| other != name && expected.contains(other)) => {}
                    Err(error) => panic!("{spec} ({profile:?}): {} = {value}: {error}", param.name),
                };
                let rejected = |value: Value| {
                    let error = set(value.clone()).expect_err(&format!("{spec}: {} = {value}", param.name));
                    assert!(error.to_string().contains(param.name), "{error}");
                };
                let default = param.default_under(profile);
                set(default.clone()).unwrap_or_else(|e| panic!("{spec} ({profile:?}): default of {}: {e}", param.name));
                rejected(Value::Word("no such word".to_owned()));
                match param.domain {
                    Domain::Number { min, max } => {
                        accepted(Value::Number(min));
                        accepted(Value::Number(max));
                        rejected(Value::Number(f64::NAN));
                        rejected(Value::Flag(true));
                        if min.is_finite() {
                            rejected(Value::Number(min - min.abs().max(1.0)));
                        }
                        if max.is_finite() {
                            rejected(Value::Number(max + max.abs().max(1.0)));
                        }
                    }
                    Domain::Flag => {
                        accepted(Value::Flag(true));
                        accepted(Value::Flag(false));
                        rejected(Value::Number(1.0));
                    }
                    Domain::Word(words) => {
                        for word in words {
                            accepted(Value::Word((*word).to_owned()));
                        }
                        rejected(Value::Flag(true));
                    }
                    other => unreachable!("an algorithm has no parameter of {other:?}"),
                }
                assert!(!param.source.is_empty() && !param.help.is_empty(), "{} says who and what", param.name);
            }
        }
    }
}

#[test]
fn an_unknown_parameter_is_rejected_by_every_algorithm() {
    for algorithm in ALGORITHMS.iter() {
        let error = build_both(&spec_of(algorithm), Profile::Rfc, "no_such_parameter", Value::Flag(true)).unwrap_err();
        assert!(matches!(error, BuildError::Setting(SettingError::Unknown { .. })), "{error}");
    }
}
