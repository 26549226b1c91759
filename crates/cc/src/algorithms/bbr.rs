//! BBR v1: models the path by its greatest recent delivery rate and its smallest recent round trip, paces at the one and keeps about
//! their product in flight; losses and marks are no signal.
//!
//! *Source*: Cardwell et al., "BBR: Congestion-Based Congestion Control" (ACM Queue 14, 2016); `tcp_bbr.c`, version 1.
//!
//! It is told of ACKs as `bbr_main` is: when the connection's state is settled, and of those that deliver nothing, too.

mod filter;
mod fixed;
mod longterm;
#[cfg(test)]
mod tests;

#[cfg(not(feature = "std"))]
use crate::bare::*;
use self::filter::{Aggregation, MaxRate};
use self::fixed::{Bw, Gain, UNIT, US_PER_S, at_us, bytes_per_second, delivered_in, packets_per_second, product, rate_of, us};
use self::longterm::{Event, Finding, LongTerm};
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
const HIGH_GAIN: Gain = UNIT * 2885 / 1000 + 1;
/// Drains in one round trip the queue that start-up made.
const DRAIN_GAIN: Gain = UNIT * 1000 / 2885;
const CYCLE: [Gain; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
const MIN_CWND: u64 = 4;
/// The round trip until one is known.
const NOMINAL_RTT_US: u64 = 1000;
/// A burst is as much as 1/1024 s at the pacing rate (`sk_pacing_shift`), at most 64 KB with headers and 127 segments, at least one segment
/// below 1.2 Mbps and two above (`bbr_tso_segs_goal`, `bbr_min_tso_segs`).
const BURSTS_PER_SECOND: u64 = 1024;
const BURST_BYTES: u64 = 65_536 - 1 - 320;
const BURST_SEGMENTS: u64 = 127;
const SINGLE_SEGMENT_BYTES: u64 = 1_200_000 / 8;
/// The pipe is full after so many rounds in which the rate did not grow by a quarter.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: Gain = UNIT * 5 / 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The sender.
#[derive(Debug)]
pub struct Bbr {
    min_rtt_window: Duration,
    probe_rtt_time: Duration,
    cwnd_gain_probing: Gain,
    quantum: u64,
    initial_window: u64,
    /// Bytes on the wire per byte of payload.
    wire_per_payload: f64,
    mss: u64,

    mode: Mode,
    cwnd: u64,
    ssthresh: Option<u64>,
    /// Bytes of payload per second.
    pacing: u64,
    has_seen_rtt: bool,
    /// Those of the last ACK, until the next one's are known.
    pacing_gain: Gain,
    cwnd_gain: Gain,

    bw: MaxRate,
    long_term: LongTerm,
    min_rtt_us: Option<u64>,
    min_rtt_at: Time,
    /// A round ends when a packet sent after this many were delivered is acknowledged.
    next_round: u64,
    round_start: bool,
    delivered: u64,
    /// When something was last delivered, or began to be outstanding (`delivered_mstamp`).
    delivered_us: u64,

    full_bw: Bw,
    full_rounds: u32,
    full: bool,

    phase: usize,
    phase_us: u64,

    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    /// Deliveries between which packets were sent on PROBE_RTT's small window: their rates say nothing.
    probe_rtt_span: Option<(u64, u64)>,
    idle_restart: bool,

    aggregation: Option<Aggregation>,

    /// Window to go back to after recovery or PROBE_RTT.
    prior_cwnd: u64,
    /// The connection's state at the last ACK that delivered something.
    prior_state: State,
    conserves: bool,
}

impl Bbr {
    fn new(setup: &Setup, args: &Args) -> Result<Bbr, SettingError> {
        let number = |param| args.number(param, setup.profile);
        let mut bbr = Bbr {
            min_rtt_window: Duration::from_secs(number(&MIN_RTT_WINDOW)?),
            probe_rtt_time: Duration::from_secs(number(&PROBE_RTT_TIME)?),
            cwnd_gain_probing: (number(&CWND_GAIN)? * UNIT as f64).round() as Gain,
            quantum: number(&QUANTUM)?.round() as u64,
            initial_window: setup.initial_window as u64,
            wire_per_payload: setup.wire.get() as f64 / f64::from(setup.mss),
            mss: u64::from(setup.mss),
            mode: Mode::Startup,
            cwnd: setup.initial_window as u64,
            ssthresh: None,
            pacing: 0,
            has_seen_rtt: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            bw: MaxRate::new(number(&BW_WINDOW)?.round() as u64),
            long_term: LongTerm::default(),
            min_rtt_us: None,
            min_rtt_at: Time::ZERO,
            next_round: 0,
            round_start: false,
            delivered: 0,
            delivered_us: 0,
            full_bw: 0,
            full_rounds: 0,
            full: false,
            phase: 0,
            phase_us: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            probe_rtt_span: None,
            idle_restart: false,
            aggregation: args.flag(&EXTRA_ACKED, setup.profile)?.then(Aggregation::default),
            prior_cwnd: 0,
            prior_state: State::Open,
            conserves: false,
        };
        bbr.set_first_pacing(NOMINAL_RTT_US);
        Ok(bbr)
    }

    // ---- the model ----------------------------------------------------------------------------------------------------

    /// Rate to pace at and size the window by: a policer's, if one was found.
    fn rate(&self) -> Bw {
        self.long_term.rate().unwrap_or(self.bw.get())
    }

    /// True if the sample is one (`bbr_update_bw`).
    fn update_rate(&mut self, conn: &Conn, ack: &Ack, rate: &RateSample) -> bool {
        let interval = us(rate.interval);
        // An interval shorter than the shortest round trip is a retransmission taken for its original (`tcp_rate_gen`).
        if interval == 0 || interval < us(conn.min_rtt) {
            return false;
        }
        // A round is over when a packet is acknowledged that left after it began (`bbr_update_bw`).
        if rate.prior_delivered >= self.next_round {
            self.next_round = rate.total_delivered;
            self.bw.next_round();
            self.round_start = true;
            self.conserves = false;
        }
        let app_limited = self.app_limited(rate);
        self.look_for_policer(conn, ack.newly_lost, app_limited);
        let sample = rate_of(u64::from(rate.delivered), interval);
        // A rate that the application limited counts only if the path did better with it.
        if !app_limited || sample >= self.bw.get() {
            self.bw.add(sample);
        }
        true
    }

    fn look_for_policer(&mut self, conn: &Conn, losses: u32, app_limited: bool) {
        let event = self.long_term_event(conn, losses, app_limited);
        match self.long_term.update(&event) {
            Finding::None => {}
            Finding::Policed => self.pacing_gain = UNIT,
            Finding::Expired => self.enter_probe_bw(conn),
        }
    }

    fn long_term_event(&self, conn: &Conn, losses: u32, app_limited: bool) -> Event {
        Event {
            delivered_us: self.delivered_us,
            losses,
            lost: conn.lost,
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
        // `bbr_check_full_bw_reached`: still growing by a quarter.
        if self.bw.get() >= self.full_bw * FULL_GROWTH / UNIT {
            self.full_bw = self.bw.get();
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
            self.full = self.full_rounds >= FULL_ROUNDS;
        }
    }

    fn update_min_rtt(&mut self, conn: &Conn, ack: &Ack) {
        // The handshake's round trip is the first (`bbr_init`).
        if self.min_rtt_us.is_none() && !conn.min_rtt.is_zero() {
            self.min_rtt_us = Some(us(conn.min_rtt));
            self.min_rtt_at = conn.now;
        }
        // `bbr_update_min_rtt`: the least of the window, or what comes first after it and holds no wait of the receiver.
        let expired = conn.now.since(self.min_rtt_at) > self.min_rtt_window && self.min_rtt_us.is_some();
        // The difference of two times in whole microseconds.
        let rtt = ack.rtt.map(|rtt| at_us(conn.now) - at_us(Time::from_ps(conn.now.ps().saturating_sub(rtt.ps()))));
        if let Some(rtt) = rtt
            && (expired && !ack.maybe_delayed || self.min_rtt_us.is_none_or(|m| rtt < m))
        {
            self.min_rtt_us = Some(rtt);
            self.min_rtt_at = conn.now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done = None;
            self.probe_rtt_span = Some((self.delivered, self.delivered));
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(conn);
        }
        if ack.rate.is_some() {
            self.idle_restart = false;
        }
    }

    /// At least the set time and one round with four packets or fewer in flight.
    fn probe_rtt(&mut self, conn: &Conn) {
        if let Some((_, until)) = &mut self.probe_rtt_span {
            *until = self.delivered + conn.in_flight as u64;
        }
        if self.probe_rtt_done.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.leave_probe_rtt(conn);
            }
        // The pipe is empty but for four packets: now for as long as is set, and a round of them.
        } else if conn.in_flight as u64 <= MIN_CWND {
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
        // `bbr_reset_probe_bw_mode` draws the phase before, `bbr_advance_cycle_phase` goes on from it.
        let back = ((conn.uniform * phases as f64) as usize).min(phases - 1);
        // 0 to 6 back from phase 0: never phase 1, which drains.
        self.phase = (CYCLE.len() - back) % CYCLE.len();
        self.phase_us = self.delivered_us;
    }

    fn update_phase(&mut self, conn: &Conn, ack: &Ack) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let lasted = self.min_rtt_us.is_some_and(|m| self.delivered_us - self.phase_us > m);
        let before_ack = self.in_network(conn, ack.prior_in_flight as u64);
        // `bbr_is_next_cycle_phase`: a cruising phase lasts a round trip, one above 1 until it filled the path to its gain or lost,
        // one below 1 until it drained to the product.
        let next = match self.pacing_gain {
            UNIT => lasted,
            gain if gain > UNIT => lasted && (ack.newly_lost > 0 || before_ack >= self.in_flight_at(gain)),
            _ => lasted || before_ack <= self.in_flight_at(UNIT),
        };
        if next {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_us = self.delivered_us;
        }
    }

    fn check_drain(&mut self, conn: &Conn) {
        // `bbr_check_drain`
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            self.ssthresh = Some(self.in_flight_at(UNIT));
        }
        if self.mode == Mode::Drain && self.in_network(conn, conn.in_flight as u64) <= self.in_flight_at(UNIT) {
            self.enter_probe_bw(conn);
        }
    }

    /// Of what is outstanding, what the network will still hold when pacing lets the next packet leave (`bbr_packets_in_net_at_edt`).
    fn in_network(&self, conn: &Conn, in_flight: u64) -> u64 {
        let leaving = if self.pacing_gain > UNIT { self.burst() } else { 0 };
        (in_flight + leaving).saturating_sub(delivered_in(self.rate(), us(conn.next_send.since(conn.now))))
    }

    fn update_gains(&mut self) {
        // `bbr_update_gains`
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw => {
                let policed = self.long_term.rate().is_some();
                (if policed { UNIT } else { CYCLE[self.phase] }, self.cwnd_gain_probing)
            }
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    // ---- the controls -------------------------------------------------------------------------------------------------

    /// `gain` bandwidth-delay products at a rate, in whole packets; the initial window before a round trip is known.
    fn product(&self, rate: Bw, gain: Gain) -> u64 {
        self.min_rtt_us.map_or(self.initial_window, |m| product(rate, m, gain))
    }

    /// Room for bursts in flight, even, and two more while probing.
    fn budget(&self, packets: u64) -> u64 {
        // `bbr_quantization_budget`
        let even = (packets + 3 * self.burst()).next_multiple_of(2);
        if self.mode == Mode::ProbeBw && self.phase == 0 { even + 2 } else { even }
    }

    /// What the host hands down at once, packets.
    fn burst(&self) -> u64 {
        if self.quantum > 0 {
            return self.quantum;
        }
        let bytes = (self.pacing / BURSTS_PER_SECOND).min(BURST_BYTES);
        // 1 Gbps sends 122 KB in that time, so that the bound counts: 45 segments of 1448 bytes.
        let least = if self.pacing < SINGLE_SEGMENT_BYTES { 1 } else { 2 };
        (bytes / self.mss).clamp(least, BURST_SEGMENTS)
    }

    fn in_flight_at(&self, gain: Gain) -> u64 {
        self.budget(self.product(self.bw.get(), gain))
    }

    fn set_pacing(&mut self, conn: &Conn, gain: Gain) {
        self.first_rtt(conn);
        // `bbr_set_pacing_rate`: until the pipe is full the rate only grows.
        let rate = bytes_per_second(self.rate(), self.mss, gain);
        if self.full || rate > self.pacing {
            self.pacing = rate;
        }
    }

    /// The initial rate, once a round trip (the handshake's, or the first packet's) is known.
    fn first_rtt(&mut self, conn: &Conn) {
        if !self.has_seen_rtt && !conn.srtt.is_zero() {
            self.has_seen_rtt = true;
            self.set_first_pacing(us(conn.srtt).max(1));
        }
    }

    fn set_first_pacing(&mut self, rtt_us: u64) {
        // `bbr_init_pacing_rate_from_rtt`: 10 packets of 1448 bytes in 1 ms at 739/256 and 99 % are 41 MB/s.
        self.pacing = bytes_per_second(rate_of(self.cwnd, rtt_us), self.mss, HIGH_GAIN);
    }

    fn set_cwnd(&mut self, conn: &Conn, ack: &Ack) {
        // `bbr_set_cwnd`
        let acked = u64::from(ack.delivered_segments);
        if acked > 0 && !self.recovers_or_restores(conn, ack, acked) {
            self.approach_target(acked);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_CWND);
        }
    }

    /// Losses come off the window; the first round of recovery sends what was delivered, and the end of repair restores the window
    /// (`bbr_set_cwnd_to_recover_or_restore`). True while packets are conserved.
    fn recovers_or_restores(&mut self, conn: &Conn, ack: &Ack, acked: u64) -> bool {
        self.cwnd = self.cwnd.saturating_sub(u64::from(ack.newly_lost)).max(1);
        let in_flight = conn.in_flight as u64 + acked;
        // Packet conservation for the first round of a recovery, and the old window when all is repaired.
        if conn.state == State::Recovery && self.prior_state != State::Recovery {
            self.conserves = true;
            self.next_round = self.delivered;
            self.cwnd = in_flight;
        } else if repairs(self.prior_state) && !repairs(conn.state) {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.conserves = false;
        }
        self.prior_state = conn.state;
        if self.conserves {
            self.cwnd = self.cwnd.max(in_flight);
        }
        self.conserves
    }

    fn approach_target(&mut self, acked: u64) {
        let rate = self.rate();
        let extra = self.aggregation.as_ref().filter(|_| self.full).map_or(0, |a| a.extra(rate));
        // A product of 18.72 at gain 2 is 38; 3 bursts of one packet and an even number: 42, and 44 in the first phase.
        let target = self.budget(self.product(rate, self.cwnd_gain) + extra);
        // With a full pipe the window is cut to its target; before, it grows by what is acknowledged.
        if self.full {
            self.cwnd = (self.cwnd + acked).min(target);
        } else if self.cwnd < target || self.delivered < self.initial_window {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(MIN_CWND);
    }

    fn save_cwnd(&mut self) {
        // `bbr_save_cwnd`: what is cut already is no window to go back to.
        let cut = repairs(self.prior_state) || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if cut { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }
}

fn repairs(state: State) -> bool {
    matches!(state, State::Recovery | State::Loss)
}

impl CongestionControl for Bbr {
    fn needs(&self) -> Needs {
        Needs {
            randomness: true,
            rate_samples: true,
            send_hook: true,
            handles_idle: true,
            controls_recovery: true,
            settled_acks: true,
            ..Needs::default()
        }
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack) {
        self.round_start = false;
        if ack.delivered_segments > 0 {
            self.delivered_us = at_us(conn.now);
        }
        if let Some(rate) = &ack.rate {
            self.delivered = rate.total_delivered;
            if self.update_rate(conn, ack, rate) {
                let (known, acked) = (self.rate(), u64::from(ack.delivered_segments));
                if let Some(aggregation) = &mut self.aggregation {
                    aggregation.update(self.delivered_us, acked, known, self.cwnd, self.round_start);
                }
            }
        }
        // `bbr_update_model`, in its order.
        self.update_phase(conn, ack);
        if let Some(rate) = &ack.rate {
            self.check_full(self.app_limited(rate));
        }
        self.check_drain(conn);
        self.update_min_rtt(conn, ack);
        self.update_gains();
        self.set_pacing(conn, self.pacing_gain);
        self.set_cwnd(conn, ack);
    }

    fn on_congestion(&mut self, conn: &Conn, cause: Cause) {
        // No window is reduced here (`bbr_ssthresh`).
        if !cause.is_repeated() {
            self.save_cwnd();
        }
        if let Cause::Timeout { .. } = cause {
            // What is not given up stays in flight (`tcp_enter_loss`), and a round ends (`bbr_set_state`).
            self.cwnd = self.cwnd.min(conn.in_flight as u64 + 1);
            self.prior_state = State::Loss;
            self.full_bw = 0;
            self.round_start = true;
            self.look_for_policer(conn, 1, false);
        }
    }

    /// The window comes back with the ACK, when it finds that the repair is over.
    fn on_undo(&mut self, conn: &Conn) {
        self.full_bw = 0;
        self.full_rounds = 0;
        let event = self.long_term_event(conn, 0, false);
        self.long_term.reset(&event);
    }

    fn on_restart(&mut self, _conn: &Conn, _idle: Duration, to: Window) {
        self.cwnd = to.cwnd as u64;
    }

    fn before_send(&mut self, conn: &Conn, _since_last: Option<Duration>) -> Gate {
        self.first_rtt(conn);
        if conn.snd_una == conn.snd_nxt {
            let now = at_us(conn.now);
            self.delivered_us = now;
            // `bbr_cwnd_event`, CA_EVENT_TX_START: after an idle time it paces at the rate of the path, no faster.
            if conn.app_limited && !self.idle_restart {
                self.idle_restart = true;
                if let Some(aggregation) = &mut self.aggregation {
                    aggregation.restart(now);
                }
                match self.mode {
                    Mode::ProbeBw => self.set_pacing(conn, UNIT),
                    Mode::ProbeRtt => self.leave_probe_rtt(conn),
                    Mode::Startup | Mode::Drain => {}
                }
            }
        }
        Gate::Go
    }

    fn control(&self) -> Control {
        let bps = (self.pacing * 8) as f64 * self.wire_per_payload;
        Control {
            cwnd: self.cwnd as f64,
            ssthresh: self.ssthresh.map_or(f64::INFINITY, |packets| packets as f64),
            pacing: Some(Rate::from_bps(bps.max(1.0) as u64)),
        }
    }

    fn observe(&self, probe: &mut dyn Probe) {
        probe.value("bbr_mode", f64::from(self.mode as u8));
        probe.value("bbr_bw_packets_per_s", packets_per_second(self.bw.get()));
        if let Some(min_rtt) = self.min_rtt_us {
            probe.value("bbr_min_rtt_s", min_rtt as f64 / US_PER_S as f64);
        }
        probe.value("bbr_pacing_gain", self.pacing_gain as f64 / UNIT as f64);
        probe.value("bbr_cwnd_gain", self.cwnd_gain as f64 / UNIT as f64);
        probe.value("bbr_pacing_bps", (self.pacing * 8) as f64 * self.wire_per_payload);
    }
}
