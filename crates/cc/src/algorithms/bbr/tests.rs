use super::*;
use crate::algorithms::testing::{Driver, set};
use crate::model::close;
use crate::{Profile, Value};

const MSS: u64 = 1460;
const MIN_RTT_US: f64 = 224.64;

/// A path of 1 Gbps and 224.64 us with an endless buffer, on which this sender is alone: what is in flight beyond the product waits.
struct Path {
    s: Driver,
    delivered: u64,
    /// When the link is done with the last packet sent, and for each outstanding packet: when sent, ACK time, delivered then.
    link_free: f64,
    outstanding: std::collections::VecDeque<(f64, f64, u64, f64)>,
    clock: f64,
    pace_at: f64,
    last_delivery: f64,
    uniform: f64,
    unlimited: bool,
    /// ACKs come at multiples of this many seconds, if it is not 0.
    bunch: f64,
}

const PER_PACKET: f64 = 12e-6;

impl Path {
    fn new(args: &Args) -> Path {
        Path::with(Setup { initial_window: 10.0, ..Setup::default() }, args)
    }

    fn with(setup: Setup, args: &Args) -> Path {
        let mut s = Driver::new("bbr", setup, args);
        s.conn.snd_nxt = 0;
        Path {
            s,
            delivered: 0,
            link_free: 0.0,
            outstanding: Default::default(),
            clock: 0.0,
            pace_at: 0.0,
            last_delivery: 0.0,
            uniform: 0.0,
            unlimited: true,
            bunch: 0.0,
        }
    }

    fn conn(&mut self) {
        self.s.at(self.clock);
        self.s.conn.in_flight = self.outstanding.len() as f64;
        self.s.conn.loss_basis = self.s.cc.control().cwnd;
        self.s.conn.uniform = self.uniform;
    }

    /// The next thing that happens: a packet leaves, or an ACK comes.
    fn step(&mut self) {
        let control = self.s.cc.control();
        let room = self.unlimited && (self.outstanding.len() as f64) < control.cwnd.floor();
        let send_at = self.pace_at.max(self.clock);
        let ack_at = self.outstanding.front().map(|o| o.1);
        if room && ack_at.is_none_or(|a| send_at <= a) {
            self.clock = send_at;
            self.conn();
            self.s.cc.before_send(&self.s.conn, None);
            if self.outstanding.is_empty() {
                self.last_delivery = self.clock;
            }
            let rate = self.s.cc.control().pacing.unwrap().bps() as f64;
            self.pace_at = self.clock + 12000.0 / rate;
            self.link_free = self.link_free.max(self.clock) + PER_PACKET;
            let mut ack = self.link_free - PER_PACKET + MIN_RTT_US * 1e-6;
            if self.bunch > 0.0 {
                ack = (ack / self.bunch).ceil() * self.bunch;
            }
            self.outstanding.push_back((self.clock, ack, self.delivered, self.last_delivery));
            self.s.conn.snd_nxt += MSS;
        } else if let Some((sent, at, delivered, delivered_at)) = self.outstanding.pop_front() {
            self.clock = at;
            self.delivered += 1;
            let rtt = Duration::from_secs(at - sent);
            if self.s.conn.min_rtt.is_zero() || rtt < self.s.conn.min_rtt {
                self.s.conn.min_rtt = rtt;
            }
            self.s.conn.srtt = rtt;
            self.s.conn.snd_una += MSS;
            self.conn();
            let mut ack = Ack::of(1, MSS as u32, self.s.conn.snd_una, Some(rtt));
            ack.prior_in_flight = self.outstanding.len() as f64 + 1.0;
            ack.rate = Some(RateSample {
                delivered: (self.delivered - delivered) as u32,
                prior_delivered: delivered,
                total_delivered: self.delivered,
                interval: Duration::from_secs(at - delivered_at),
                app_limited: false,
            });
            self.last_delivery = at;
            self.s.cc.on_ack(&self.s.conn, &ack);
        } else {
            self.clock = send_at;
        }
    }

    /// An ACK of one packet that gives no sample, with so much in flight after it.
    fn ack(&mut self, newly_lost: u32, in_flight: f64) {
        let mut ack = Ack::of(1, MSS as u32, self.s.conn.snd_una + MSS, None);
        ack.newly_lost = newly_lost;
        ack.prior_in_flight = in_flight + 1.0;
        self.s.conn.in_flight = in_flight;
        self.s.cc.on_ack(&self.s.conn, &ack);
    }

    fn run(&mut self, until: f64) {
        while self.clock < until {
            self.step();
        }
    }

    /// Until an ACK has just come.
    fn run_to_ack(&mut self) {
        let before = self.delivered;
        while self.delivered == before {
            self.step();
        }
    }

    fn run_while(&mut self, go: impl Fn(&Driver) -> bool) {
        for _ in 0..200_000 {
            if !go(&self.s) {
                return;
            }
            self.step();
        }
        panic!("still so after 200000 steps");
    }

    fn seen(&self, name: &str) -> f64 {
        self.s.observed(name)
    }

    /// A recovery begins.
    fn begin_recovery(&mut self) {
        self.s.cc.on_congestion(&self.s.conn, Cause::Loss);
        self.s.conn.state = State::Recovery;
    }

    fn cwnd(&self) -> f64 {
        self.s.cc.control().cwnd
    }
}

fn mode(s: &Driver) -> f64 {
    s.observed("bbr_mode")
}

#[test]
fn the_kernels_gains() {
    assert_eq!((HIGH_GAIN, DRAIN_GAIN, CYCLE[0], CYCLE[1]), (739, 88, 320, 192));
}

#[test]
fn the_model_finds_rate_and_round_trip_and_goes_from_startup_over_drain_to_probing() {
    let mut p = Path::new(&Args::default());
    p.run_while(|s| mode(s) == 0.0);
    // The pipe is full at 58 packets: three bandwidth-delay products of 18.72 and the budget for bursts.
    assert_eq!(p.cwnd(), 58.0);
    close(p.seen("bbr_pacing_gain"), 0.34375);
    // The first packet of the connection saw the empty path.
    close(p.seen("bbr_min_rtt_s"), MIN_RTT_US.floor() * 1e-6);
    assert!((p.seen("bbr_bw_packets_per_s") / 83_333.333 - 1.0).abs() < 1e-6);
    p.run_while(|s| mode(s) == 1.0);
    assert_eq!(mode(&p.s), 2.0);
    // ceil(18.72) = 19, and 3, made even.
    assert_eq!(p.s.cc.control().ssthresh, 22.0);
    assert!(p.outstanding.len() as f64 <= 22.0);
}

#[test]
fn probing_keeps_42_packets_and_44_in_the_phase_that_asks_for_more() {
    let mut p = Path::new(&Args::default());
    p.run_while(|s| mode(s) != 2.0);
    p.run(p.clock + 5e-3);
    let mut windows = Vec::new();
    for _ in 0..2000 {
        p.step();
        windows.push((p.seen("bbr_pacing_gain"), p.cwnd()));
    }
    assert!(windows.contains(&(1.25, 44.0)), "{windows:?}");
    assert!(windows.iter().all(|&(gain, cwnd)| cwnd <= if gain == 1.25 { 44.0 } else { 42.0 }));
    assert!(windows.contains(&(1.0, 42.0)), "{windows:?}");
    for gain in [1.25, 0.75, 1.0] {
        p.run_while(|s| s.observed("bbr_pacing_gain") != gain);
        let bps = p.s.cc.control().pacing.unwrap().bps() as f64;
        assert!((bps / (0.99 * gain * 1e9) - 1.0).abs() < 1e-6, "{gain}: {bps}");
    }
}

#[test]
fn the_burst_budget_follows_the_quantum() {
    let mut p = Path::new(&set("bbr_send_quantum", Value::Number(2.0)));
    p.run_while(|s| mode(s) == 0.0);
    // 54 + 6.
    assert_eq!(p.cwnd(), 60.0);
}

#[test]
fn probing_never_begins_with_the_phase_that_drains() {
    for i in 0..70 {
        let mut p = Path::new(&Args::default());
        p.uniform = f64::from(i) / 70.0;
        p.run_while(|s| mode(s) != 2.0);
        let expected = if i < 10 { 1.25 } else { 1.0 };
        assert_eq!(p.seen("bbr_pacing_gain"), expected, "{i}");
    }
}

/// On the wire, with packets of 1500 bytes: 2.887 times ten of them in a round trip, less a hundredth.
fn first_rate(rtt_us: u64) -> u64 {
    let payload = bytes_per_second(rate_of(10, rtt_us), MSS, HIGH_GAIN);
    let real = 0.99 * 2.886_718_75 * 10.0 * 1460.0 / (rtt_us as f64 * 1e-6);
    assert!((payload as f64 / real - 1.0).abs() < 1e-5, "{payload}, {real}");
    ((payload * 8) as f64 * 1500.0 / 1460.0) as u64
}

#[test]
fn the_first_rate_is_the_initial_window_in_a_round_trip() {
    let p = Path::new(&Args::default());
    assert_eq!(p.s.cc.control().pacing.unwrap().bps(), first_rate(1000));
    let mut p = Path::new(&Args::default());
    p.s.conn.srtt = Duration::us(200);
    p.step();
    assert_eq!(p.s.cc.control().pacing.unwrap().bps(), first_rate(200));
}

#[test]
fn every_ten_seconds_the_pipe_is_emptied_for_200_milliseconds() {
    let mut args = set("bbr_min_rtt_window", Value::Number(0.1));
    args.set("bbr_probe_rtt_time", Value::Number(0.02));
    let mut p = Path::new(&args);
    p.run_while(|s| mode(s) != 2.0);
    p.run_while(|s| mode(s) != 3.0);
    let began = p.clock;
    assert!(began > 0.1 && p.cwnd() == 4.0);
    p.run_while(|s| mode(s) == 3.0);
    assert!(p.clock - began > 0.02 && p.clock - began < 0.022, "{}", p.clock - began);
    assert!(p.cwnd() >= 42.0, "{}", p.cwnd());
    // The small window's rates did not enter the model.
    assert!((p.seen("bbr_bw_packets_per_s") / 83_333.333 - 1.0).abs() < 1e-6);
    p.run(p.clock + 2e-3);
    assert!((p.seen("bbr_bw_packets_per_s") / 83_333.333 - 1.0).abs() < 1e-6);
    // By default not before ten seconds.
    let mut p = Path::new(&Args::default());
    p.run(1.0);
    assert_eq!(mode(&p.s), 2.0);
}

/// It may hold a wait of the receiver (`rs->is_ack_delayed`).
#[test]
fn an_ack_that_may_be_delayed_tells_no_least_round_trip_after_the_window_of_the_last() {
    for (maybe_delayed, expected) in [(true, MIN_RTT_US.floor() * 1e-6), (false, 0.04)] {
        let mut p = Path::new(&set("bbr_min_rtt_window", Value::Number(0.1)));
        p.run(0.05);
        p.s.conn.now += Duration::ms(200);
        let ack = Ack { maybe_delayed, ..Ack::of(1, MSS as u32, p.s.conn.snd_una, Some(Duration::ms(40))) };
        p.s.cc.on_ack(&p.s.conn, &ack);
        close(p.seen("bbr_min_rtt_s"), expected);
    }
}

#[test]
fn a_loss_conserves_packets_for_a_round_and_is_then_forgotten() {
    let mut p = Path::new(&Args::default());
    p.run_while(|s| mode(s) != 2.0);
    p.run(p.clock + 5e-3);
    p.run_to_ack();
    let (before, flight) = (p.cwnd(), p.s.conn.in_flight);
    p.begin_recovery();
    p.ack(0, flight);
    assert_eq!(p.cwnd(), flight + 1.0);
    p.ack(0, flight - 1.0);
    assert_eq!(p.cwnd(), flight + 1.0);
    p.s.conn.state = State::Open;
    p.ack(0, flight);
    assert!(p.cwnd() >= before);
}

#[test]
fn after_a_timeout_the_window_is_one_and_comes_back_when_all_is_repaired() {
    let mut p = Path::new(&Args::default());
    p.run_while(|s| mode(s) != 2.0);
    p.run(p.clock + 5e-3);
    let before = p.cwnd();
    p.conn();
    p.s.conn.in_flight = 0.0;
    p.s.cc.on_congestion(&p.s.conn, Cause::Timeout { repeated: false });
    p.s.cc.on_congestion(&p.s.conn, Cause::Timeout { repeated: true });
    assert_eq!(p.cwnd(), 1.0);
    p.s.conn.state = State::Loss;
    p.run_while(|s| s.cc.control().cwnd == 1.0);
    assert!(p.cwnd() >= 4.0 && p.cwnd() < before);
    p.s.conn.state = State::Open;
    p.run_while(|s| s.cc.control().cwnd < 40.0);
    assert!(p.cwnd() >= before.min(42.0));
}

#[test]
fn losses_found_come_off_the_window_and_marks_do_nothing() {
    let mut p = Path::new(&Args::default());
    p.run_while(|s| mode(s) != 2.0);
    p.conn();
    let before = p.s.cc.control();
    p.s.cc.on_congestion(&p.s.conn, Cause::Ecn);
    assert_eq!(p.s.cc.control(), before);
    // And one more for what was delivered.
    p.s.conn.state = State::Disorder;
    p.ack(6, 5.0);
    assert_eq!(p.cwnd(), before.cwnd - 5.0);
}

#[test]
fn an_idle_connection_comes_back_at_the_estimated_rate() {
    let mut p = Path::new(&Args::default());
    p.run_while(|s| mode(s) != 2.0);
    p.run(p.clock + 5e-3);
    p.run_while(|s| s.observed("bbr_pacing_gain") != 1.25);
    p.unlimited = false;
    p.s.conn.app_limited = true;
    while !p.outstanding.is_empty() {
        p.step();
    }
    p.clock += 0.5;
    p.unlimited = true;
    let window = p.cwnd();
    p.step();
    let bps = p.s.cc.control().pacing.unwrap().bps() as f64;
    assert!((bps / 0.99e9 - 1.0).abs() < 5e-3, "{bps}");
    assert_eq!(p.cwnd(), window);
}

#[test]
fn linux_allows_for_bunched_acks() {
    let window = |profile| {
        let mut p = Path::with(Setup { initial_window: 10.0, profile, ..Setup::default() }, &Args::default());
        p.bunch = 120e-6;
        p.run_while(|s| mode(s) != 2.0);
        p.run(p.clock + 20e-3);
        p.cwnd() - (2.0 * p.seen("bbr_bw_packets_per_s") * p.seen("bbr_min_rtt_s")).ceil()
    };
    // The budget for bursts, made even, and in one phase two more.
    assert!(window(Profile::Rfc) <= 6.0);
    assert!(window(Profile::Linux) >= 10.0);
}

#[test]
fn the_handshakes_round_trip_is_the_first() {
    let mut p = Path::new(&Args::default());
    let handshake = Duration::us(100);
    p.s.conn.min_rtt = handshake;
    p.run(2.0 * MIN_RTT_US * 1e-6);
    close(p.seen("bbr_min_rtt_s"), handshake.as_secs());
}

#[test]
fn a_sample_shorter_than_any_round_trip_ends_no_round() {
    let mut p = Path::new(&Args::default());
    p.run_while(|s| mode(s) == 0.0);
    let before = p.seen("bbr_bw_packets_per_s");
    let mut ack = Ack::of(1, MSS as u32, p.s.conn.snd_una, None);
    let interval = p.s.conn.min_rtt / 2;
    let (delivered, prior) = (1000, p.delivered);
    let total_delivered = prior + u64::from(delivered);
    ack.rate = Some(RateSample { delivered, prior_delivered: prior, total_delivered, interval, app_limited: false });
    p.s.cc.on_ack(&p.s.conn, &ack);
    close(p.seen("bbr_bw_packets_per_s"), before);
}

/// Losses go on: the ACK that ends one recovery begins the next (`bbr_set_cwnd_to_recover_or_restore` sees one recovery).
#[test]
fn a_recovery_that_begins_as_another_ends_goes_on_without_a_round_of_conservation() {
    let mut p = Path::new(&Args::default());
    p.run(0.02);
    p.run_to_ack();
    let before = p.cwnd();
    p.s.cc.on_congestion(&p.s.conn, Cause::Loss);
    // More than a round trip later conservation is over, and the window as great as before.
    p.s.conn.state = State::Recovery;
    p.run(0.022);
    assert_eq!(p.cwnd(), before);
    p.s.cc.on_recovered(&p.s.conn, None);
    p.s.cc.on_congestion(&p.s.conn, Cause::Loss);
    p.ack(0, 3.0);
    assert_eq!(p.cwnd(), before);
    // After an ACK in between it is a new one, which begins with what is in flight.
    p.s.cc.on_recovered(&p.s.conn, None);
    p.s.conn.state = State::Open;
    p.run(0.0221);
    p.run_to_ack();
    p.begin_recovery();
    p.ack(0, 3.0);
    assert_eq!(p.cwnd(), 4.0);
}

/// `bbr_ssthresh` is asked before `bbr_main` takes the losses off: nine packets lost leave all to go back to.
#[test]
fn the_window_to_go_back_to_is_that_before_the_losses() {
    let mut p = Path::new(&Args::default());
    p.run(0.02);
    let before = p.cwnd();
    p.conn();
    p.begin_recovery();
    p.ack(9, before - 20.0);
    assert_eq!(p.cwnd(), before - 19.0);
    p.s.conn.state = State::Open;
    p.ack(0, before - 20.0);
    assert_eq!(p.cwnd(), before);
}

/// The first window of a recovery is what is in flight and was delivered, also where that is more than the window was.
#[test]
fn a_recovery_begins_with_what_is_in_flight() {
    let mut p = Path::new(&Args::default());
    p.run(0.02);
    let before = p.cwnd();
    p.conn();
    p.begin_recovery();
    p.ack(1, before + 5.0);
    assert_eq!(p.cwnd(), before + 6.0);
}

/// What the reordering timer finds changes the window with the next ACK (`tcp_rack_reo_timeout` calls no `cong_control`).
#[test]
fn losses_that_a_timer_finds_cut_the_window_with_the_next_ack() {
    let mut p = Path::new(&Args::default());
    p.run(0.02);
    let before = p.cwnd();
    p.clock += 1e-6;
    p.conn();
    p.s.conn.in_flight = 5.0;
    p.s.cc.on_congestion(&p.s.conn, Cause::Loss);
    assert_eq!(p.cwnd(), before);
    p.s.conn.state = State::Recovery;
    p.ack(0, 5.0);
    assert_eq!(p.cwnd(), 6.0);
}

/// A loss's repair that ends by an undo goes back to the window as any, with the ACK that shows it; without a repair there is nothing to go
/// back from (`bbr_undo_cwnd`).
#[test]
fn an_undo_outside_of_a_repair_changes_no_window() {
    let mut p = Path::new(&Args::default());
    p.run(0.02);
    p.conn();
    let before = p.cwnd();
    p.begin_recovery();
    p.ack(9, 10.0);
    p.s.cc.on_undo(&p.s.conn);
    assert_eq!(p.cwnd(), 11.0);
    p.s.conn.state = State::Open;
    p.ack(0, 10.0);
    assert_eq!(p.cwnd(), before);
}

/// A timeout within the first round of a recovery conserves packets on: `bbr_set_state` clears nothing.
#[test]
fn a_timeout_leaves_what_is_not_given_up_and_goes_on_conserving() {
    let mut p = Path::new(&Args::default());
    p.run(0.02);
    p.conn();
    p.begin_recovery();
    p.ack(9, 10.0);
    p.s.conn.in_flight = 2.0;
    p.s.cc.on_congestion(&p.s.conn, Cause::Timeout { repeated: true });
    assert_eq!(p.cwnd(), 3.0);
    p.s.conn.state = State::Loss;
    p.ack(0, 2.0);
    assert_eq!(p.cwnd(), 3.0);
}
