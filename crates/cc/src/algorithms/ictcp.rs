//! ICTCP: the receiving host measures what its link has left and lets each connection's advertised window grow into that, by how
//! much of its present window the connection really uses.
//!
//! *Source*: Wu et al., CoNEXT 2010 and ToN 2013, which were not available: read from two public ports and their comments, the Linux
//! module of github.com/baiwei0427/TCP-Incast and github.com/abha224/Implementation-of-ICTCP-in-ns3. Where the ports differ from each
//! other the paper's form, as the comments quote it, is taken.
//!
//! *Departures*: everything is decided when data arrives; there is no timer. An increase found due in the measuring half of a slot
//! waits for the other half, since a connection whose intervals keep step with the slots would never grow otherwise. Connections
//! with long round trips are controlled like all others.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use super::iatcp::capacity;
use crate::deploy::Place;
use crate::{Advice, Algorithm, Args, Arrival, Kind, Setting, SettingError, ReceiverControl, Setup};
use fanin_units::{Duration, Time};

const CAPACITY: Setting = Setting::parameter("ictcp_capacity", 0.0, 0.0, 1e15)
    .unit("bit/s")
    .doc("both ports", "rate of the host's link; 0 takes the path's bottleneck");
const SHARE: Setting =
    Setting::parameter("ictcp_share", 0.9, 0.01, 1.0).doc("both ports", "part of the capacity that may be given out");
const BETA: Setting = Setting::parameter("ictcp_beta", 0.75, 0.0, 1.0)
    .doc("ns-3 port", "weight of the past in the measured throughput (another port has 0.2)");
const GAMMA1: Setting = Setting::parameter("ictcp_gamma1", 0.1, 0.0, 1.0)
    .doc("both ports", "unused part of the expected throughput up to which a window grows");
const GAMMA2: Setting = Setting::parameter("ictcp_gamma2", 0.5, 0.0, 1.0)
    .doc("both ports", "unused part of the expected throughput from which a window shrinks");
const PATIENCE: Setting = Setting::parameter("ictcp_patience", 3.0, 1.0, 1000.0)
    .unit("intervals")
    .doc("ns-3 port", "intervals in a row that must be unused before a window shrinks (a port has 1)");
const FAIR_BELOW: Setting = Setting::parameter("ictcp_fair_below", 0.2, 0.0, 1.0)
    .doc("Linux port", "part of the capacity below which windows above the average are cut");
const MIN_WINDOW: Setting = Setting::parameter("ictcp_min_window", 2.0, 1.0, 1e6)
    .unit("packets")
    .doc("both ports", "first and least window of a connection");

/// `ictcp`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "ictcp",
    title: "ICTCP: the receiver grows advertised windows into the bandwidth it has left",
    source: "Wu, Feng, Guo, Zhang, CoNEXT 2010",
    deploy: &[Place::ReceiverShim],
    params: &[CAPACITY, SHARE, BETA, GAMMA1, GAMMA2, PATIENCE, FAIR_BELOW, MIN_WINDOW],
    ..Algorithm::of(Kind::Receiver(|setup, args| Ok(Box::new(IcTcp::new(setup, args)?))))
}];

/// One receiving host.
#[derive(Debug)]
pub struct IcTcp {
    parameters: Parameters,
    slot: Slot,
    conns: Vec<Incoming>,
}

#[derive(Clone, Copy, Debug)]
struct Parameters {
    /// Link rate in bit/s.
    c: f64,
    share: f64,
    beta: f64,
    gamma1: f64,
    gamma2: f64,
    patience: u32,
    fair_below: f64,
    /// Bytes.
    min_window: f64,
    /// Bytes.
    mss: f64,
}

/// Two halves of length T: the first measures the bandwidth left, the second gives it out.
#[derive(Clone, Copy, Debug)]
struct Slot {
    start: Time,
    half: Duration,
    /// Bytes that arrived in the first half.
    bytes: u64,
    /// The first half is over and was evaluated.
    measured: bool,
    /// Bandwidth left at the last measurement, bit/s.
    available: f64,
    /// What of it is not given out yet, bit/s.
    quota: f64,
    /// Mean window of the active connections at that measurement, bytes.
    average: f64,
}

/// One incoming connection.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    active: bool,
    /// Advertised window in bytes.
    window: f64,
    /// Receiver slow start: the window may double.
    slow_start: bool,
    /// Smoothed round trip in seconds.
    rtt: f64,
    /// Start of the control interval of two round trips; only the second is measured.
    interval: Time,
    /// Bytes measured in it.
    bytes: u64,
    /// Measured throughput, bit/s.
    measured: f64,
    /// Intervals in a row with most of the window unused.
    unused: u32,
    /// The last interval asked for more.
    wants_more: bool,
    /// Bytes on the wire in this slot: the connection's weight in T.
    slot_bytes: u64,
}

/// Weight of a new round-trip sample at the receiver, as in RFC 6298.
const RTT_WEIGHT: f64 = 1.0 / 8.0;

impl IcTcp {
    fn new(setup: &Setup, args: &Args) -> Result<IcTcp, SettingError> {
        let number = |param| args.number(param, setup.profile);
        let mss = f64::from(setup.mss);
        let parameters = Parameters {
            c: capacity(setup, args, &CAPACITY)?,
            share: number(&SHARE)?,
            beta: number(&BETA)?,
            gamma1: number(&GAMMA1)?,
            gamma2: number(&GAMMA2)?,
            patience: number(&PATIENCE)? as u32,
            fair_below: number(&FAIR_BELOW)?,
            min_window: number(&MIN_WINDOW)? * mss,
            mss,
        };
        let slot = Slot {
            start: Time::ZERO,
            half: Duration::ZERO,
            bytes: 0,
            measured: false,
            available: 0.0,
            quota: 0.0,
            average: 0.0,
        };
        Ok(IcTcp { parameters, slot, conns: Vec::new() })
    }

    fn entry(&mut self, conn: u32) -> &mut Incoming {
        let index = conn as usize;
        if index >= self.conns.len() {
            self.conns.resize(index + 1, Incoming::new(self.parameters.min_window));
        }
        &mut self.conns[index]
    }

    /// Moves the slot to `now`.
    fn advance_slot(&mut self, now: Time) {
        let Slot { start, half, .. } = self.slot;
        // Slots of 2T follow each other.
        let end = start + half * 2;
        if now >= end {
            let half = Duration::from_secs(self.weighted_rtt());
            // A slot follows the last one, unless it would have passed in silence too.
            let start = if now < end + half * 2 { end } else { now };
            self.slot = Slot { start, half, bytes: 0, measured: false, ..self.slot };
            self.conns.iter_mut().for_each(|c| c.slot_bytes = 0);
        }
        if !self.slot.measured && now >= self.slot.start + self.slot.half {
            // BW_A = max(0, share C - BW_T), BW_T the rate of all that came in the first half.
            // 1 Gbps with 500 Mbps coming in: 0.9 x 1000 - 500 = 400 Mbps to give out.
            let total = 8.0 * self.slot.bytes as f64 / self.slot.half.as_secs();
            self.slot.available = (self.parameters.share * self.parameters.c - total).max(0.0);
            self.slot.quota = self.slot.available;
            let open = self.conns.iter().filter(|c| c.active);
            self.slot.average = open.clone().map(|c| c.window).sum::<f64>() / (open.count().max(1) as f64);
            self.slot.measured = true;
        }
    }

    /// T in seconds: round trips weighted by traffic in the last slot, or their mean where there was none.
    fn weighted_rtt(&self) -> f64 {
        let (mut sum, mut weights, mut plain, mut count) = (0.0, 0.0, 0.0, 0.0);
        for c in self.conns.iter().filter(|c| c.active) {
            // T is the mean round trip weighted by traffic: the rate of what comes is seen over a typical one.
            sum += c.slot_bytes as f64 * c.rtt;
            weights += c.slot_bytes as f64;
            plain += c.rtt;
            count += 1.0;
        }
        if weights > 0.0 {
            sum / weights
        } else if count > 0.0 {
            plain / count
        } else {
            MIN_RTT
        }
    }

    /// End of a control interval; the fairness cut comes first.
    fn evaluate(&mut self, index: usize) {
        let parameters = self.parameters;
        // Fairness (`ICTCP/` of the Linux port): where less than a fifth of the link is left, windows above the mean lose a packet.
        let scarce = self.slot.measured && self.slot.available < parameters.fair_below * parameters.c;
        let conn = &mut self.conns[index];
        let unused = conn.measure(parameters.beta);
        conn.wants_more = false;
        if scarce && conn.window > self.slot.average && conn.shrink(&parameters) {
            // Its rate, MSS/RTT, is there for others again.
            self.slot.quota += 8.0 * parameters.mss / conn.rtt;
            conn.unused = 0;
            return;
        }
        // d <= gamma1, or less than a packet unused: grow. d > gamma2 in several intervals in a row: shrink. Between: keep.
        // 8 packets of 1460 bytes in 300 us are b_e = 311 Mbps: b_m = 240 has d = 0.23, kept; 310 has 0.005, grown.
        conn.wants_more = unused <= parameters.gamma1 || unused <= parameters.mss / conn.window;
        conn.unused = if unused > parameters.gamma2 { conn.unused + 1 } else { 0 };
        if !conn.wants_more && conn.unused >= parameters.patience {
            conn.shrink(&parameters);
            conn.unused = 0;
        }
    }

    /// Grows a window that asked for it, as far as the quota of the slot's second half goes.
    fn grow(&mut self, index: usize, now: Time) {
        let (parameters, slot) = (self.parameters, &mut self.slot);
        let conn = &mut self.conns[index];
        if !conn.wants_more || !slot.measured {
            return;
        }
        let rate = |bytes: f64| 8.0 * bytes / conn.rtt;
        // A window may double while the quota holds what that adds, window/RTT; then a packet at a time.
        if conn.slow_start && slot.quota < rate(conn.window) {
            conn.slow_start = false;
        }
        let step = if conn.slow_start { conn.window } else { parameters.mss };
        if slot.quota < rate(step) {
            return;
        }
        slot.quota -= rate(step);
        conn.window += step;
        conn.wants_more = false;
        conn.begin_interval(now);
    }
}

/// A round trip is never taken to be shorter, in seconds: rates are divided by it.
const MIN_RTT: f64 = 1e-6;

impl Incoming {
    fn new(window: f64) -> Incoming {
        Incoming {
            active: false,
            window,
            slow_start: true,
            rtt: MIN_RTT,
            interval: Time::ZERO,
            bytes: 0,
            measured: 0.0,
            unused: 0,
            wants_more: false,
            slot_bytes: 0,
        }
    }

    fn begin_interval(&mut self, now: Time) {
        self.interval = now;
        self.bytes = 0;
    }

    /// Updates the measured throughput from the interval's bytes and returns the unused part of the expected one.
    fn measure(&mut self, beta: f64) -> f64 {
        // b_m = max(b_s, beta b_m + (1 - beta) b_s): it follows a rise at once and a fall slowly.
        let sample = 8.0 * self.bytes as f64 / self.rtt;
        self.measured = sample.max(beta * self.measured + (1.0 - beta) * sample);
        // b_e = max(b_m, rwnd/RTT), and d = (b_e - b_m)/b_e.
        let expected = self.measured.max(8.0 * self.window / self.rtt);
        (expected - self.measured) / expected
    }

    /// One packet less, if the floor allows; ends receiver slow start.
    fn shrink(&mut self, parameters: &Parameters) -> bool {
        // rwnd - MSS, not below the least window: as arrivals move it, the window's right edge does not move back.
        if self.window - parameters.mss < parameters.min_window {
            return false;
        }
        self.window -= parameters.mss;
        self.slow_start = false;
        true
    }
}

impl ReceiverControl for IcTcp {
    fn on_open(&mut self, now: Time, conn: u32, base_rtt: Duration, _uniform: f64) {
        let window = self.parameters.min_window;
        *self.entry(conn) = Incoming {
            active: true,
            rtt: base_rtt.as_secs().max(MIN_RTT),
            interval: now,
            ..Incoming::new(window)
        };
    }

    fn on_close(&mut self, _now: Time, conn: u32) {
        self.entry(conn).active = false;
    }

    fn on_reopen(&mut self, now: Time, conn: u32) {
        let entry = self.entry(conn);
        entry.active = true;
        // What was measured before the silence says nothing about use now.
        (entry.measured, entry.unused, entry.wants_more) = (0.0, 0, false);
        entry.begin_interval(now);
    }

    fn on_data(&mut self, arrival: &Arrival) -> Advice {
        let now = arrival.now;
        self.advance_slot(now);
        if !self.slot.measured {
            self.slot.bytes += u64::from(arrival.wire_bytes);
        }
        let index = arrival.conn as usize;
        let conn = self.entry(arrival.conn);
        conn.slot_bytes += u64::from(arrival.wire_bytes);
        if let Some(sample) = arrival.rtt {
            // RFC 6298: SRTT + (R - SRTT)/8.
            conn.rtt += RTT_WEIGHT * (sample.as_secs().max(MIN_RTT) - conn.rtt);
        }
        let rtt = Duration::from_secs(conn.rtt);
        if conn.active && now >= conn.interval + rtt * 2 {
            self.evaluate(index);
            self.conns[index].begin_interval(now);
        }
        if self.conns[index].active {
            self.grow(index, now);
        }
        let conn = &mut self.conns[index];
        if now >= conn.interval + rtt {
            // b_s: what comes in the second round trip of an interval of two.
            conn.bytes += u64::from(arrival.payload_bytes);
        }
        Advice { window: conn.window as u64, ack_delay: Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::close;
    use crate::{PathKnowledge, Value, registry};
    use fanin_units::Rate;

    const MSS: u32 = 1460;
    const RTT: Duration = Duration::us(300);

    fn setup() -> Setup {
        let path = PathKnowledge { rate: Rate::gbps(1), base_rtt: RTT, buffer_packets: 100.0 };
        Setup { path: Some(path), ..Setup::default() }
    }

    fn host(settings: &[(&str, f64)]) -> IcTcp {
        let mut args = Args::default();
        for &(name, value) in settings {
            args.set(name, Value::Number(value));
        }
        IcTcp::new(&setup(), &args).unwrap()
    }

    fn data(host: &mut IcTcp, conn: u32, us: f64, bytes: u32) -> u64 {
        let arrival = Arrival {
            now: Time::ZERO + Duration::from_secs(us * 1e-6),
            conn,
            mss: MSS,
            wire_bytes: bytes,
            payload_bytes: bytes,
            rtt: None,
        };
        host.on_data(&arrival).window
    }

    /// One connection with 8 packets of window, 100 Mbps measured, and `rate` in the measured round trip of its interval.
    fn interval_of(rate: f64) -> IcTcp {
        let mut h = host(&[]);
        h.on_open(Time::ZERO, 0, RTT, 0.0);
        (h.conns[0].window, h.conns[0].measured, h.conns[0].slow_start) = (8.0 * 1460.0, 100e6, false);
        data(&mut h, 0, 350.0, (rate * 300e-6 / 8.0).round() as u32);
        h
    }

    #[test]
    fn expected_and_measured_throughput_are_those_of_the_table() {
        for (rate, unused) in
            [(160e6, 0.48630136986301375), (240e6, 0.2294520547945206), (310e6, 0.004708904109589104)]
        {
            let mut h = interval_of(rate);
            let conn = &mut h.conns[0];
            close(8.0 * conn.window / conn.rtt, 311466666.6666667);
            let d = conn.measure(0.75);
            close(conn.measured, rate);
            assert!((d - unused).abs() < 1e-9, "{d}");
        }
    }

    #[test]
    fn a_slow_sample_is_smoothed_and_a_fast_one_counts_at_once() {
        let mut conn = Incoming { rtt: 300e-6, measured: 100e6, ..Incoming::new(8.0 * 1460.0) };
        conn.measure(0.75);
        close(conn.measured, 75e6);
        conn.bytes = 6_000;
        conn.measure(0.75);
        close(conn.measured, 160e6);
    }

    #[test]
    fn a_used_window_grows_by_a_packet_and_pays_for_it() {
        for (rate, window) in [(160e6, 8), (240e6, 8), (310e6, 9)] {
            let mut h = interval_of(rate);
            // The third half-slot gives out what the first measured: nothing arrived in it.
            assert_eq!(data(&mut h, 0, 950.0, 0), window * 1460, "{rate}");
            let paid = h.slot.available - h.slot.quota;
            close(paid + 1.0, if window == 9 { 38933333.333333336 + 1.0 } else { 1.0 });
        }
    }

    #[test]
    fn slow_start_doubles_while_the_quota_lasts() {
        let mut h = interval_of(310e6);
        h.conns[0].slow_start = true;
        assert_eq!(data(&mut h, 0, 950.0, 0), 16 * 1460);
        close(h.slot.available - h.slot.quota, 311466666.6666667);
        let mut h = interval_of(310e6);
        h.conns[0].slow_start = true;
        // 650 Mbps in the measuring half leave 250: not enough to double, enough for a packet.
        h.on_open(Time::ZERO, 1, RTT, 0.0);
        data(&mut h, 1, 610.0, 24_375);
        assert_eq!(data(&mut h, 0, 950.0, 0), 9 * 1460);
        close(h.slot.available, 250e6);
        assert!(!h.conns[0].slow_start);
    }

    #[test]
    fn the_bandwidth_left_is_what_the_measuring_half_did_not_use() {
        let mut h = host(&[]);
        h.on_open(Time::ZERO, 0, RTT, 0.0);
        data(&mut h, 0, 1_000.0, 18_750);
        data(&mut h, 0, 1_300.0, 0);
        // 18750 bytes in 300 us are 500 Mbps.
        close(h.slot.available, 400e6);
        assert!(h.slot.available >= 0.2 * h.parameters.c);
    }

    #[test]
    fn an_increase_due_in_the_measuring_half_waits_for_the_other() {
        let mut h = interval_of(310e6);
        // Slots start at 0 and 600 us: at 620 us the interval is over, but the slot is measuring.
        assert_eq!(data(&mut h, 0, 620.0, 0), 8 * 1460);
        assert_eq!(data(&mut h, 0, 890.0, 0), 8 * 1460);
        assert_eq!(data(&mut h, 0, 901.0, 0), 9 * 1460);
        assert_eq!(data(&mut h, 0, 902.0, 0), 9 * 1460);
    }

    #[test]
    fn three_unused_intervals_take_a_packet() {
        let mut h = host(&[]);
        h.on_open(Time::ZERO, 0, RTT, 0.0);
        h.conns[0].window = 8.0 * 1460.0;
        let windows: Vec<u64> = (1..=7).map(|i| data(&mut h, 0, 610.0 * f64::from(i), 10) / 1460).collect();
        assert_eq!(windows, [8, 8, 7, 7, 7, 6, 6]);
        assert!(!h.conns[0].slow_start);
        let mut impatient = host(&[("ictcp_patience", 1.0)]);
        impatient.on_open(Time::ZERO, 0, RTT, 0.0);
        impatient.conns[0].window = 8.0 * 1460.0;
        assert_eq!(data(&mut impatient, 0, 610.0, 10), 7 * 1460);
    }

    #[test]
    fn a_window_never_falls_below_two_packets() {
        let mut h = host(&[]);
        h.on_open(Time::ZERO, 0, RTT, 0.0);
        for i in 1..=20 {
            assert_eq!(data(&mut h, 0, 610.0 * f64::from(i), 0), 2 * 1460);
        }
    }

    #[test]
    fn when_bandwidth_is_scarce_windows_above_the_average_are_cut() {
        for (bytes, window) in [(30_000, 11), (18_750, 12)] {
            let mut h = host(&[]);
            h.on_open(Time::ZERO, 0, RTT, 0.0);
            h.on_open(Time::ZERO, 1, RTT, 0.0);
            h.conns[0].window = 12.0 * 1460.0;
            (h.conns[1].window, h.conns[0].measured) = (4.0 * 1460.0, 200e6);
            data(&mut h, 1, 350.0, 100);
            // 800 or 500 Mbps measured from 600 to 900 us.
            data(&mut h, 1, 610.0, bytes);
            assert_eq!(data(&mut h, 0, 910.0, 0) / 1460, window, "{bytes}");
            let returned = h.slot.quota - h.slot.available;
            close(returned + 1.0, if window == 11 { 38933333.333333336 + 1.0 } else { 1.0 });
        }
    }

    #[test]
    fn a_new_connection_starts_with_two_packets() {
        let mut h = registry::build_receiver("ictcp", &setup(), &Args::default()).unwrap().unwrap();
        h.on_open(Time::ZERO, 3, RTT, 0.0);
        let arrival =
            Arrival { now: Time::ZERO, conn: 3, mss: MSS, wire_bytes: 40, payload_bytes: 0, rtt: Some(RTT) };
        assert_eq!(h.on_data(&arrival), Advice { window: 2 * 1460, ack_delay: Duration::ZERO });
    }

    #[test]
    fn a_lone_sender_that_uses_its_window_reaches_nine_tenths_of_the_link() {
        let mut h = host(&[]);
        h.on_open(Time::ZERO, 0, RTT, 0.0);
        let mut window = 2 * 1460;
        let mut now = 0.0;
        for _ in 0..200 {
            // The sender answers each round trip with the whole window, packet after packet at line rate.
            let packets = window / 1460;
            for i in 0..packets {
                window = data(&mut h, 0, now + 12.0 * i as f64, MSS);
            }
            now += f64::max(300.0, 12.0 * packets as f64);
        }
        let rate = 8.0 * window as f64 / 300e-6;
        assert!((0.8e9..=1.0e9).contains(&rate), "{rate}");
    }
}
