//! BBR v1: models the path by its greatest recent delivery rate and its smallest recent round trip, paces at the one and keeps about
//! their product in flight; losses and marks are no signal.
//!
//! *Source*: Cardwell et al., "BBR: Congestion-Based Congestion Control" (ACM Queue 14, 2016); `tcp_bbr.c`, version 1.
//!
//! *Departures* (docs/algorithms/bbr.md): real numbers for the kernel's fixed point.

mod filter;
mod longterm;
#[cfg(test)]
mod tests;

#[cfg(not(feature = "std"))]
use crate::bare::*;
use self::filter::{Aggregation, MaxRate};
use self::longterm::{Event, LongTerm};
use crate::deploy::Place;
use crate::{
    Ack, Algorithm, Args, Cause, CongestionControl, Conn, Control, Gate, Kind, Needs, Setting, SettingError, Probe,
    RateSample, Setup, State, Window,
};
use fanin_units::{Duration, Rate, Time};

const BW_WINDOW: Setting = Setting::parameter("bbr_bw_window", 10.0, 1.0, 1000.0)
    .unit("round trips")
    .doc("tcp_bbr.c bbr_bw_rtts", "how long a delivery rate counts");
const MIN_RTT_WINDOW: Setting = Setting::parameter("bbr_min_rtt_window", 10.0, 0.001, 3600.0)
    .unit("s")
    .doc("tcp_bbr.c bbr_min_rtt_win_sec", "how long a smallest round trip counts before the pipe is emptied to find another");
const PROBE_RTT_TIME: Setting = Setting::parameter("bbr_probe_rtt_time", 0.2, 0.0, 10.0)
    .unit("s")
    .doc("tcp_bbr.c bbr_probe_rtt_mode_ms", "how long the pipe is kept empty for that");
const CWND_GAIN: Setting = Setting::parameter("bbr_cwnd_gain", 2.0, 1.0, 10.0)
    .doc("tcp_bbr.c bbr_cwnd_gain", "window in bandwidth-delay products while probing for bandwidth");
const QUANTUM: Setting = Setting::parameter("bbr_send_quantum", 1.0, 0.0, 127.0)
    .unit("packets")
    .linux(0.0)
    .doc(
        "tcp_bbr.c bbr_tso_segs_goal",
        "burst of the host; three bursts more than the product may be in flight. 0: a millisecond of data at the pacing rate, as the kernel has it",
    );
const EXTRA_ACKED: Setting = Setting::switch("bbr_extra_acked", false)
    .linux(1.0)
    .doc("tcp_bbr.c bbr_update_ack_aggregation", "allow for ACKs that come in bunches (kernels from 5.1)");

/// `bbr`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "bbr",
    title: "BBR v1: paces at the measured rate of the bottleneck",
    source: "Cardwell et al., ACM Queue 2016; tcp_bbr.c",
    deploy: &[Place::Kernel("bbr")],
    params: &[BW_WINDOW, MIN_RTT_WINDOW, PROBE_RTT_TIME, CWND_GAIN, QUANTUM, EXTRA_ACKED],
    ..Algorithm::of(Kind::Sender(|setup, args, _slow_start| Ok(Box::new(Bbr::new(setup, args)?))))
}];

/// 2/ln 2: doubles the delivery rate every round trip.
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// Drains in one round trip the queue that start-up made.
const DRAIN_GAIN: f64 = 88.0 / 256.0;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Paces a little below the estimate, so that queues drain.
const MARGIN: f64 = 0.99;
const MIN_CWND: f64 = 4.0;
/// A burst is as much as 1/1024 s at the pacing rate (`sk_pacing_shift`), at most 64 KB with headers and 127 segments, at least one segment
/// below 1.2 Mbps and two above (`bbr_tso_segs_goal`, `bbr_min_tso_segs`).
const BURSTS_PER_SECOND: f64 = 1024.0;
const BURST_BYTES: f64 = (65_536 - 1 - 320) as f64;
const BURST_SEGMENTS: f64 = 127.0;
const SINGLE_SEGMENT_BPS: f64 = 1.2e6;
/// The pipe is full after so many rounds in which the rate did not grow by a quarter.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The sender. Rates are packets per second.
#[derive(Debug)]
pub struct Bbr {
    min_rtt_window: Duration,
    probe_rtt_time: Duration,
    cwnd_gain: f64,
    quantum: f64,
    initial_window: f64,
    wire_bits: f64,
    mss: f64,

    mode: Mode,
    cwnd: f64,
    ssthresh: f64,
    /// Packets per second.
    pacing: f64,
    has_seen_rtt: bool,

    bw: MaxRate,
    long_term: LongTerm,
    /// Packets declared lost.
    lost: u64,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    /// A round ends when a packet sent after this many were delivered is acknowledged.
    next_round: u64,
    round_start: bool,
    delivered: u64,

    full_bw: f64,
    full_rounds: u32,
    full: bool,

    phase: usize,
    phase_at: Time,

    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    /// Deliveries between which packets were sent on PROBE_RTT's small window: their rates say nothing.
    probe_rtt_span: Option<(u64, u64)>,
    idle_restart: bool,

    aggregation: Option<Aggregation>,

    /// Window to go back to after recovery or PROBE_RTT.
    prior_cwnd: f64,
    prior_state: State,
    conserve: bool,
    /// The last ACK, if it delivered something.
    last_ack: Option<LastAck>,
    /// A repair ended and no ACK has come since: what held within it.
    ended: Option<Ended>,
}

/// An ACK that the algorithm hears of before the state changes: Linux changes the state first.
#[derive(Clone, Copy, Debug)]
struct LastAck {
    at: Time,
    /// The window before it, less what it found lost.
    cwnd: f64,
    lost: f64,
    acked: f64,
}

/// `tcp_bbr.c` learns the state with each ACK, when it is settled: a repair that begins with the ACK that ended another is the same one to it.
#[derive(Clone, Copy, Debug)]
struct Ended {
    cwnd: f64,
    conserve: bool,
    state: State,
}

impl Bbr {
    fn new(setup: &Setup, args: &Args) -> Result<Bbr, SettingError> {
        let number = |param| args.number(param, setup.profile);
        let initial_window = setup.initial_window;
        Ok(Bbr {
            min_rtt_window: Duration::from_secs(number(&MIN_RTT_WINDOW)?),
            probe_rtt_time: Duration::from_secs(number(&PROBE_RTT_TIME)?),
            cwnd_gain: number(&CWND_GAIN)?,
            quantum: number(&QUANTUM)?.round(),
            initial_window,
            wire_bits: setup.wire.get() as f64 * 8.0,
            mss: f64::from(setup.mss),
            mode: Mode::Startup,
            cwnd: initial_window,
            ssthresh: f64::INFINITY,
            // A round trip of 1 ms until one is known.
            pacing: MARGIN * HIGH_GAIN * initial_window / 1e-3,
            has_seen_rtt: false,
            bw: MaxRate::new(number(&BW_WINDOW)?.round() as u64),
            long_term: LongTerm::default(),
            lost: 0,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            next_round: 0,
            round_start: false,
            delivered: 0,
            full_bw: 0.0,
            full_rounds: 0,
            full: false,
            phase: 0,
            phase_at: Time::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            probe_rtt_span: None,
            idle_restart: false,
            aggregation: args.flag(&EXTRA_ACKED, setup.profile)?.then(Aggregation::default),
            prior_cwnd: 0.0,
            prior_state: State::Open,
            conserve: false,
            last_ack: None,
            ended: None,
        })
    }

    // ---- the model ----------------------------------------------------------------------------------------------------

    /// Rate to pace at and size the window by: a policer's, if one was found.
    fn rate(&self) -> f64 {
        self.long_term.rate().unwrap_or(self.bw.get())
    }

    /// True if the sample is one (`bbr_update_bw`).
    fn update_rate(&mut self, conn: &Conn, ack: &Ack, rate: &RateSample) -> bool {
        self.delivered = rate.total_delivered;
        // An interval shorter than the shortest round trip is a retransmission taken for its original (`tcp_rate_gen`).
        if rate.delivered == 0 || rate.interval.is_zero() || rate.interval < conn.min_rtt {
            return false;
        }
        if rate.prior_delivered >= self.next_round {
            self.next_round = rate.total_delivered;
            self.bw.next_round();
            self.round_start = true;
            self.conserve = false;
        }
        let event = self.long_term_event(conn, ack.newly_lost, self.app_limited(rate));
        if self.long_term.update(&event) {
            self.enter_probe_bw(conn);
        }
        let sample = f64::from(rate.delivered) / rate.interval.as_secs();
        if !self.app_limited(rate) || sample >= self.bw.get() {
            self.bw.add(sample);
        }
        true
    }

    fn long_term_event(&self, conn: &Conn, losses: u32, app_limited: bool) -> Event {
        Event {
            now: conn.now,
            losses,
            lost: self.lost,
            delivered: self.delivered,
            app_limited,
            round_start: self.round_start,
            probes_bandwidth: self.mode == Mode::ProbeBw,
            mss: self.mss,
        }
    }

    fn app_limited(&self, rate: &RateSample) -> bool {
        let on_small_window =
            |(from, until): (u64, u64)| rate.prior_delivered >= from && rate.prior_delivered <= until;
        rate.app_limited || self.probe_rtt_span.is_some_and(on_small_window)
    }

    fn check_full(&mut self, app_limited: bool) {
        if self.full || !self.round_start || app_limited {
            return;
        }
        if self.bw.get() >= self.full_bw * FULL_GROWTH {
            self.full_bw = self.bw.get();
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
            self.full = self.full_rounds >= FULL_ROUNDS;
        }
    }

    fn update_min_rtt(&mut self, conn: &Conn, ack: &Ack) {
        // The handshake's round trip is the first (`bbr_init`).
        if self.min_rtt.is_none() && !conn.min_rtt.is_zero() {
            self.min_rtt = Some(conn.min_rtt);
            self.min_rtt_at = conn.now;
        }
        let expired = conn.now.since(self.min_rtt_at) > self.min_rtt_window && self.min_rtt.is_some();
        if let Some(rtt) = ack.rtt
            && (expired || self.min_rtt.is_none_or(|m| rtt < m))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = conn.now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(self.cwnd);
            self.probe_rtt_done = None;
            self.probe_rtt_span = Some((self.delivered, self.delivered));
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(conn);
        }
        if ack.delivered_segments > 0 {
            self.idle_restart = false;
        }
    }

    /// At least the set time and one round with four packets or fewer in flight.
    fn probe_rtt(&mut self, conn: &Conn) {
        if let Some((_, until)) = &mut self.probe_rtt_span {
            *until = self.delivered + conn.in_flight.max(0.0) as u64;
        }
        if self.probe_rtt_done.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.leave_probe_rtt(conn);
            }
        } else if conn.in_flight <= MIN_CWND {
            self.probe_rtt_done = Some(conn.now + self.probe_rtt_time);
            self.probe_rtt_round_done = false;
            self.next_round = self.delivered;
        }
    }

    fn leave_probe_rtt(&mut self, conn: &Conn) {
        if self.probe_rtt_done.is_some_and(|done| conn.now > done) {
            self.min_rtt_at = conn.now;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            if self.full { self.enter_probe_bw(conn) } else { self.mode = Mode::Startup }
        }
    }

    // ---- the modes ----------------------------------------------------------------------------------------------------

    /// Any phase but the one that drains.
    fn enter_probe_bw(&mut self, conn: &Conn) {
        self.mode = Mode::ProbeBw;
        let phases = CYCLE.len() - 1;
        let back = ((conn.uniform * phases as f64) as usize).min(phases - 1);
        self.phase = (CYCLE.len() - back) % CYCLE.len();
        self.phase_at = conn.now;
    }

    fn update_phase(&mut self, conn: &Conn, ack: &Ack) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let lasted = self.min_rtt.is_some_and(|m| conn.now.since(self.phase_at) > m);
        let gain = self.gains().0;
        let before_ack = conn.in_flight + f64::from(ack.delivered_segments) + f64::from(ack.newly_lost);
        let before_ack = self.in_network(conn, before_ack, gain);
        let next = if gain > 1.0 {
            lasted && (ack.newly_lost > 0 || before_ack >= self.in_flight_at(gain))
        } else if gain < 1.0 {
            lasted || before_ack <= self.in_flight_at(1.0)
        } else {
            lasted
        };
        if next {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_at = conn.now;
        }
    }

    fn check_drain(&mut self, conn: &Conn) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            self.ssthresh = self.in_flight_at(1.0);
        }
        if self.mode == Mode::Drain && self.in_network(conn, conn.in_flight, DRAIN_GAIN) <= self.in_flight_at(1.0) {
            self.enter_probe_bw(conn);
        }
    }

    /// Of what is outstanding, what the network will still hold when pacing lets the next packet leave (`bbr_packets_in_net_at_edt`).
    fn in_network(&self, conn: &Conn, in_flight: f64, gain: f64) -> f64 {
        let ahead = conn.next_send.since(conn.now).as_secs();
        let leaving = if gain > 1.0 { self.burst() } else { 0.0 };
        (in_flight + leaving - (self.rate() * ahead).floor()).max(0.0)
    }

    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw => {
                (if self.long_term.rate().is_some() { 1.0 } else { CYCLE[self.phase] }, self.cwnd_gain)
            }
            Mode::ProbeRtt => (1.0, 1.0),
        }
    }

    // ---- the controls -------------------------------------------------------------------------------------------------

    /// `gain` bandwidth-delay products at a rate, in whole packets; the initial window before a round trip is known.
    fn product(&self, rate: f64, gain: f64) -> f64 {
        self.min_rtt.map_or(self.initial_window, |m| (gain * rate * m.as_secs()).ceil())
    }

    /// Room for bursts in flight, even, and two more while probing.
    fn budget(&self, packets: f64) -> f64 {
        let even = ((packets + 3.0 * self.burst()) / 2.0).ceil() * 2.0;
        if self.mode == Mode::ProbeBw && self.phase == 0 { even + 2.0 } else { even }
    }

    /// What the host hands down at once, packets.
    fn burst(&self) -> f64 {
        if self.quantum > 0.0 {
            return self.quantum;
        }
        let bps = self.pacing * self.wire_bits;
        let bytes = (bps / 8.0 / BURSTS_PER_SECOND).min(BURST_BYTES);
        let least = if bps < SINGLE_SEGMENT_BPS { 1.0 } else { 2.0 };
        (bytes / self.mss).floor().clamp(least, BURST_SEGMENTS)
    }

    fn in_flight_at(&self, gain: f64) -> f64 {
        self.budget(self.product(self.bw.get(), gain))
    }

    fn set_pacing(&mut self, conn: &Conn, gain: f64) {
        self.first_rtt(conn);
        let rate = MARGIN * gain * self.rate();
        if self.full || rate > self.pacing {
            self.pacing = rate;
        }
    }

    /// The initial rate, once a round trip (the handshake's, or the first packet's) is known.
    fn first_rtt(&mut self, conn: &Conn) {
        if !self.has_seen_rtt && !conn.srtt.is_zero() {
            self.has_seen_rtt = true;
            self.pacing = MARGIN * HIGH_GAIN * self.cwnd / conn.srtt.as_secs();
        }
    }

    fn set_cwnd(&mut self, conn: &Conn, ack: &Ack, gain: f64) {
        let acked = f64::from(ack.delivered_segments);
        let lost = f64::from(ack.newly_lost);
        let left = (self.cwnd - lost).max(1.0);
        self.last_ack = (acked > 0.0).then_some(LastAck { at: conn.now, cwnd: left, lost, acked });
        if acked > 0.0 {
            self.cwnd = left;
            if !self.conserves(conn, acked) {
                self.approach_target(acked, gain);
            }
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_CWND);
        }
    }

    fn approach_target(&mut self, acked: f64, gain: f64) {
        let extra = self.aggregation.as_ref().filter(|_| self.full).map_or(0.0, |a| a.extra(self.rate()));
        let target = self.budget(self.product(self.rate(), gain) + extra);
        if self.full {
            self.cwnd = (self.cwnd + acked).min(target);
        } else if self.cwnd < target || (self.delivered as f64) < self.initial_window {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(MIN_CWND);
    }

    /// The first round of recovery sends what was delivered, and the end of repair restores the window.
    fn conserves(&mut self, conn: &Conn, acked: f64) -> bool {
        let repairing = |s| matches!(s, State::Recovery | State::Loss);
        if repairing(self.prior_state) && !repairing(conn.state) {
            self.restore_cwnd();
        } else if conn.state == State::Recovery && self.prior_state != State::Recovery {
            self.begin_recovery(conn, acked);
        }
        if self.conserve {
            self.cwnd = self.cwnd.max(conn.in_flight + acked);
        }
        self.conserve
    }

    fn save_cwnd(&mut self, cwnd: f64) {
        let fresh = !matches!(self.prior_state, State::Recovery | State::Loss) && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if fresh { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// A round of packet conservation begins.
    fn begin_recovery(&mut self, conn: &Conn, acked: f64) {
        self.prior_state = State::Recovery;
        self.conserve = true;
        self.next_round = self.delivered;
        self.cwnd = (conn.in_flight + acked).clamp(1.0, self.cwnd);
    }

    /// Another repair begins with the ACK that ended the last one: window and conservation go on as they were within it.
    fn go_on_repairing(&mut self) {
        if let Some(ended) = self.ended.take() {
            (self.cwnd, self.conserve, self.prior_state) = (ended.cwnd.min(self.cwnd), ended.conserve, ended.state);
        }
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.conserve = false;
        self.prior_state = State::Open;
    }

    /// The repair is over with this ACK, which enlarges the restored window as any.
    fn end_repair(&mut self, now: Time) {
        let this_ack = self.last_ack.filter(|ack| ack.at == now);
        if let Some(ack) = this_ack {
            self.cwnd = ack.cwnd;
        }
        self.restore_cwnd();
        if let Some(ack) = this_ack {
            self.approach_target(ack.acked, self.gains().1);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_CWND);
        }
    }
}

impl CongestionControl for Bbr {
    fn needs(&self) -> Needs {
        Needs { randomness: true, rate_samples: true, send_hook: true, own_idle: true, ..Needs::default() }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        self.round_start = false;
        self.ended = None;
        self.lost += u64::from(ack.newly_lost);
        if let Some(rate) = &ack.rate
            && self.update_rate(conn, ack, rate)
        {
            let known = self.rate();
            if let Some(aggregation) = &mut self.aggregation {
                let acked = f64::from(ack.delivered_segments);
                aggregation.update(conn.now, acked, known, self.cwnd, self.round_start);
            }
        }
        self.update_phase(conn, ack);
        if let Some(rate) = &ack.rate {
            self.check_full(self.app_limited(rate));
        }
        self.check_drain(conn);
        self.update_min_rtt(conn, ack);
        let (pacing_gain, cwnd_gain) = self.gains();
        self.set_pacing(conn, pacing_gain);
        self.set_cwnd(conn, ack, cwnd_gain);
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        match cause {
            Cause::Ecn => {}
            Cause::Loss => {
                self.go_on_repairing();
                // Linux changes the state before the algorithm hears of the ACK: the window to go back to has not lost anything yet
                // (`bbr_ssthresh`). What the reordering timer finds lost changes no window before the next ACK.
                let this_ack = self.last_ack.filter(|ack| ack.at == conn.now);
                self.save_cwnd(this_ack.map_or(self.cwnd, |ack| ack.cwnd + ack.lost));
                if let Some(ack) = this_ack
                    && self.prior_state != State::Recovery
                {
                    self.begin_recovery(conn, ack.acked);
                }
            }
            Cause::Timeout { .. } => {
                self.save_cwnd(self.cwnd);
                self.prior_state = State::Loss;
                self.conserve = false;
                self.full_bw = 0.0;
                self.cwnd = 1.0;
                // What is in flight is given up, and a round ends (`bbr_set_state`).
                self.round_start = true;
                self.lost += conn.in_flight as u64;
                let event = self.long_term_event(conn, 1, false);
                if self.long_term.update(&event) {
                    self.enter_probe_bw(conn);
                }
            }
        }
    }

    fn on_recovered(&mut self, conn: &Conn, _limit: Option<f64>) {
        self.ended = Some(Ended { cwnd: self.cwnd, conserve: self.conserve, state: self.prior_state });
        // Pacing keeps the restored window from leaving in a burst.
        self.end_repair(conn.now);
    }

    fn on_undo(&mut self, conn: &Conn) {
        self.full_bw = 0.0;
        self.full_rounds = 0;
        let event = self.long_term_event(conn, 0, false);
        self.long_term.reset(&event);
        self.end_repair(conn.now);
    }

    fn on_restart(&mut self, _conn: &Conn, _idle: Duration, to: Window) {
        self.cwnd = to.cwnd;
    }

    fn before_send(&mut self, conn: &Conn, _since_last: Option<Duration>) -> Gate {
        self.first_rtt(conn);
        let starts_flight = conn.snd_una == conn.snd_nxt && self.delivered > 0;
        if starts_flight && !self.idle_restart {
            self.idle_restart = true;
            if let Some(aggregation) = &mut self.aggregation {
                aggregation.restart(conn.now);
            }
            match self.mode {
                Mode::ProbeBw => self.set_pacing(conn, 1.0),
                Mode::ProbeRtt => self.leave_probe_rtt(conn),
                Mode::Startup | Mode::Drain => {}
            }
        }
        Gate::Go
    }

    fn control(&self) -> Control {
        let pacing = Rate::from_bps((self.pacing * self.wire_bits).max(1.0) as u64);
        Control { cwnd: self.cwnd, ssthresh: self.ssthresh, pacing: Some(pacing) }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        let (pacing_gain, cwnd_gain) = self.gains();
        probe.value("bbr_mode", f64::from(self.mode as u8));
        probe.value("bbr_bw_packets_per_s", self.bw.get());
        if let Some(min_rtt) = self.min_rtt {
            probe.value("bbr_min_rtt_s", min_rtt.as_secs());
        }
        probe.value("bbr_pacing_gain", pacing_gain);
        probe.value("bbr_cwnd_gain", cwnd_gain);
        probe.value("bbr_pacing_bps", self.pacing * self.wire_bits);
    }
}
