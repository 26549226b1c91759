//! TRIM through the trait, driven by events in the order a sender produces them.

use crate::model::{close, trim as model};
use crate::{Ack, Args, Cause, CongestionControl, Conn, Gate, PathKnowledge, Setup, State, Value, registry};
use fanin_units::{Duration, Rate, Time};

const MSS: u32 = 1460;

/// A sender that asks before each segment and remembers when it last sent.
struct Sender {
    cc: Box<dyn CongestionControl>,
    conn: Conn,
    last_sent: Option<Time>,
}

fn setup(cwnd: f64, ssthresh: f64, base: Duration) -> Setup {
    let path = PathKnowledge { rate: Rate::gbps(1), base_rtt: base, buffer_packets: 100.0 };
    Setup { initial_window: cwnd, initial_ssthresh: ssthresh, path: Some(path), ..Setup::default() }
}

fn args(settings: &[(&str, Value)]) -> Args {
    let mut args = Args::default();
    for (name, value) in settings {
        args.set(*name, value.clone());
    }
    args
}

fn word(w: &str) -> Value {
    Value::Word(w.to_owned())
}

fn quiet() -> (&'static str, Value) {
    ("trim_async", Value::Flag(false))
}

fn k_fixed(us: f64) -> [(&'static str, Value); 2] {
    [("trim_k", word("fixed")), ("trim_k_fixed", Value::Number(us * 1e-6))]
}

impl Sender {
    fn new(setup: &Setup, settings: &[(&str, Value)]) -> Sender {
        let cc = registry::build("trim", setup, &args(settings)).unwrap().sender;
        Sender { cc, conn: Conn::new(MSS), last_sent: None }
    }
    fn at(&mut self, us: u64) -> &mut Sender {
        self.conn.now = Time::ZERO + Duration::us(us);
        self
    }
    fn in_flight(&self) -> f64 {
        ((self.conn.snd_nxt - self.conn.snd_una) / u64::from(MSS)) as f64
    }
    /// Asks for one new segment and sends it if allowed.
    fn send(&mut self) -> Gate {
        self.conn.in_flight = self.in_flight();
        let gate = self.cc.before_send(&self.conn, self.last_sent.map(|t| self.conn.now - t));
        if gate == Gate::Go {
            self.conn.snd_nxt += u64::from(MSS);
            self.last_sent = Some(self.conn.now);
        }
        gate
    }
    /// Sends what window and algorithm allow, at most `most` segments; returns how many.
    fn send_up_to(&mut self, most: usize) -> usize {
        (0..most).take_while(|_| self.in_flight() < self.cwnd().floor() && self.send() == Gate::Go).count()
    }
    fn ack_segments(&mut self, n: u32, rtt_us: Option<u64>) -> f64 {
        self.conn.snd_una += u64::from(n) * u64::from(MSS);
        self.conn.in_flight = self.in_flight();
        self.cc.on_ack(&self.conn, &Ack::of(n, MSS, self.conn.snd_una, rtt_us.map(Duration::us)));
        self.cwnd()
    }
    fn ack(&mut self, rtt_us: u64) -> f64 {
        self.ack_segments(1, Some(rtt_us))
    }
    fn cwnd(&self) -> f64 {
        self.cc.control().cwnd
    }
    fn internal(&self, name: &str) -> f64 {
        struct Find<'a>(&'a str, f64);
        impl crate::Probe for Find<'_> {
            fn value(&mut self, name: &'static str, value: f64) {
                if name == self.0 {
                    self.1 = value;
                }
            }
        }
        let mut find = Find(name, f64::NAN);
        self.cc.observe(&mut find);
        find.1
    }
    /// A connection of window 30 in avoidance that has seen 260 us and then been silent, asking to start a train.
    fn before_train(base_us: u64, settings: &[(&str, Value)]) -> Sender {
        let mut s = Sender::new(&setup(30.0, 10.0, Duration::us(base_us)), settings);
        assert_eq!(s.send(), Gate::Go);
        s.ack_without_growth(260);
        s.at(10_000);
        s
    }
    fn ack_without_growth(&mut self, rtt_us: u64) {
        self.conn.snd_una += u64::from(MSS);
        let mut ack = Ack::of(1, MSS, self.conn.snd_una, Some(Duration::us(rtt_us)));
        ack.may_grow = false;
        self.cc.on_ack(&self.conn, &ack);
    }
}

#[test]
fn the_round_trip_is_smoothed_with_a_quarter() {
    let mut s = Sender::new(&setup(10.0, 5.0, Duration::us(225)), &[quiet()]);
    s.send_up_to(3);
    for rtt in [225, 240, 300] {
        s.ack(rtt);
    }
    close(s.internal("trim_smooth_rtt_s"), 246.5625e-6);
}

#[test]
fn delay_above_k_cuts_by_half_its_excess() {
    let mut s = Sender::new(&setup(20.0, 5.0, Duration::us(225)), &[&[quiet()], &k_fixed(300.0)[..]].concat());
    s.send_up_to(20);
    close(s.ack(400), 17.5);
}

#[test]
fn the_cut_comes_once_per_window_and_the_late_acks_do_not_grow() {
    let mut s = Sender::new(&setup(20.0, 5.0, Duration::us(225)), &[&[quiet()], &k_fixed(300.0)[..]].concat());
    s.send_up_to(20);
    for _ in 0..20 {
        close(s.ack(400), 17.5);
        s.send_up_to(1);
    }
    // The segment sent after the cut is acknowledged: the next cut.
    close(s.ack(400), 17.5 * 0.875);
}

#[test]
fn the_literal_cut_on_every_ack_stops_at_two() {
    let mut settings = vec![quiet(), ("trim_cut", word("per_ack"))];
    settings.extend(k_fixed(300.0));
    let mut s = Sender::new(&setup(20.0, 5.0, Duration::us(225)), &settings);
    s.send_up_to(20);
    let mut unfloored = 20.0;
    for _ in 0..20 {
        unfloored *= 0.875;
        close(s.ack(400), f64::max(unfloored, 2.0));
    }
    close(unfloored, 1.3841751754786051);
}

#[test]
fn a_cut_ends_slow_start_in_the_standard_reading() {
    let mut s = Sender::new(
        &setup(20.0, f64::INFINITY, Duration::us(225)),
        &[&[quiet()], &k_fixed(300.0)[..]].concat(),
    );
    s.send_up_to(20);
    assert_eq!(s.ack(225), 21.0);
    close(s.ack(400), 21.0 * 0.875);
    close(s.ack(225), 18.375 + 1.0 / 18.375);
}

#[test]
fn the_literal_growth_has_no_slow_start() {
    let settings = [quiet(), ("trim_growth", word("literal"))];
    let mut s = Sender::new(&setup(20.0, f64::INFINITY, Duration::us(225)), &settings);
    s.send_up_to(20);
    close(s.ack(225), 20.05);
}

#[test]
fn probes_on_time_give_back_the_window_less_the_delay() {
    let mut s = Sender::before_train(225, &[quiet()]);
    assert_eq!((s.send(), s.cwnd()), (Gate::Go, 2.0));
    assert_eq!(s.send(), Gate::Go);
    assert_eq!(s.send(), Gate::HoldForAck);
    s.at(10_240).ack(240);
    assert_eq!((s.cwnd(), s.send()), (2.0, Gate::HoldForAck));
    close(s.at(10_252).ack(252), 27.2);
    assert_eq!(s.send(), Gate::Go);
}

#[test]
fn probes_twice_as_late_as_the_base_leave_two_packets() {
    let mut s = Sender::new(&setup(30.0, 10.0, Duration::us(225)), &[quiet()]);
    s.send();
    s.ack_without_growth(500);
    s.at(10_000).send_up_to(2);
    s.ack(460);
    // On time (500 us was usual), but equation 1 says -1.333 packets.
    assert_eq!(s.ack(460), 2.0);
    close(model::resumed_window(30.0, 460e-6, 225e-6), -4.0 / 3.0);
}

#[test]
fn one_late_probe_is_enough_and_is_not_waited_for() {
    let mut s = Sender::before_train(225, &[quiet()]);
    assert_eq!(s.send_up_to(5), 2);
    assert_eq!(s.at(10_300).ack(261), 2.0);
    assert_eq!(s.send(), Gate::Go);
}

#[test]
fn the_mean_of_the_probes_is_a_switch() {
    let mut s = Sender::before_train(225, &[quiet(), ("trim_probe_test", word("mean"))]);
    assert_eq!(s.send_up_to(5), 2);
    s.at(10_240).ack(240);
    // 270 alone would be late; the mean of 255 is not.
    close(s.at(10_270).ack(270), 30.0 * (1.0 - 30.0 / 225.0));
}

#[test]
fn a_train_of_one_packet_is_a_probe_too() {
    let mut s = Sender::before_train(225, &[quiet()]);
    assert_eq!(s.send(), Gate::Go);
    close(s.at(10_240).ack(240), 28.0);
}

#[test]
fn a_probe_that_was_let_go_but_kept_back_is_not_counted_twice() {
    let mut s = Sender::before_train(225, &[quiet()]);
    for _ in 0..3 {
        assert_eq!(s.cc.before_send(&s.conn, Some(Duration::us(10_000))), Gate::Go);
    }
    assert_eq!(s.send_up_to(5), 2);
    s.at(10_240).ack(240);
    close(s.at(10_252).ack(252), 27.2);
}

#[test]
fn one_ack_for_both_probes_settles_both() {
    let mut s = Sender::before_train(225, &[quiet()]);
    s.send_up_to(2);
    close(s.at(10_252).ack_segments(2, Some(252)), 30.0 * (1.0 - 27.0 / 225.0));
}

#[test]
fn a_verdict_lowers_ssthresh_and_resuming_is_not_a_new_train() {
    let mut s = Sender::new(&setup(30.0, f64::INFINITY, Duration::us(225)), &[quiet()]);
    s.send();
    s.ack_without_growth(260);
    s.at(10_000).send_up_to(2);
    s.at(10_270).ack(270);
    assert_eq!((s.cwnd(), s.cc.control().ssthresh), (2.0, 2.0));
    // 270 us since the probes were sent, more than the smoothed 262.5 us.
    assert_eq!((s.send(), s.internal("trim_probing")), (Gate::Go, 0.0));
}

#[test]
fn a_gap_within_the_smoothed_round_trip_is_no_train_start() {
    let mut s = Sender::before_train(225, &[quiet()]);
    s.at(260);
    assert_eq!((s.send(), s.cwnd(), s.internal("trim_probing")), (Gate::Go, 30.0, 0.0));
    s.at(260 + 261);
    assert_eq!((s.send(), s.cwnd(), s.internal("trim_probing")), (Gate::Go, 2.0, 1.0));
}

#[test]
fn the_first_train_of_a_connection_is_not_probed() {
    let mut s = Sender::new(&setup(2.0, f64::INFINITY, Duration::us(225)), &[quiet()]);
    assert_eq!(s.at(5_000).send_up_to(9), 2);
    assert_eq!(s.internal("trim_probing"), 0.0);
}

/// A sender of window 10 in avoidance with four segments outstanding, of which one stays unacknowledged for 300 us.
fn within_a_train(settings: &[(&str, Value)]) -> Sender {
    let mut s = Sender::new(&setup(10.0, 5.0, Duration::us(225)), settings);
    s.send_up_to(1);
    s.ack_without_growth(225);
    assert_eq!(s.send_up_to(4), 4);
    s.at(300);
    s
}

#[test]
fn only_silence_starts_probing_when_the_trigger_is_idle_only() {
    let settings = [quiet(), ("trim_trigger", word("idle_only"))];
    let mut s = within_a_train(&settings);
    assert_eq!((s.send(), s.internal("trim_probing"), s.cwnd()), (Gate::Go, 0.0, 10.0));
    // The last ACK comes after a long round trip and lets a segment out at once: the application was not silent.
    s.at(2_000);
    for _ in 0..5 {
        s.ack_without_growth(225);
    }
    assert_eq!((s.send(), s.internal("trim_probing")), (Gate::Go, 0.0));
    // All is acknowledged, and nothing is sent for a while: shorter than the smoothed round trip, then longer.
    s.at(2_100).ack_without_growth(225);
    assert_eq!((s.at(2_200).send(), s.internal("trim_probing")), (Gate::Go, 0.0));
    s.at(2_300).ack_without_growth(225);
    assert_eq!((s.at(2_500).send(), s.internal("trim_probing"), s.cwnd()), (Gate::Go, 1.0, 2.0));
}

#[test]
fn any_gap_starts_probing_unless_told_otherwise() {
    let mut s = within_a_train(&[quiet()]);
    assert_eq!((s.send(), s.internal("trim_probing"), s.cwnd()), (Gate::HoldForAck, 1.0, 2.0));
}

#[test]
fn a_probe_may_be_late_by_its_own_serialisation_where_that_is_tolerated() {
    // A packet takes 12 us at 1 Gbps: probes of 260 and 272 us against a smoothed 260 us.
    for (tolerance, cwnd) in [(0.0, 2.0), (1.0, 30.0 * (1.0 - (266.0 - 225.0) / 225.0))] {
        let mut s = Sender::before_train(225, &[quiet(), ("trim_probe_tolerance", Value::Number(tolerance))]);
        assert_eq!(s.send_up_to(5), 2);
        s.at(10_260).ack(260);
        close(s.at(10_272).ack(272), cwnd);
    }
}

#[test]
fn the_tolerance_holds_for_the_gap_that_starts_a_train_too() {
    for (us, probing) in [(272, 0.0), (273, 1.0)] {
        let mut s = Sender::before_train(225, &[quiet(), ("trim_probe_tolerance", Value::Number(1.0))]);
        s.at(us);
        assert_eq!((s.send(), s.internal("trim_probing")), (Gate::Go, probing));
    }
}

#[test]
fn within_a_train_the_probes_wait_until_the_window_of_two_lets_them_out() {
    let mut s = Sender::new(&setup(10.0, 5.0, Duration::us(225)), &[quiet()]);
    s.send_up_to(1);
    s.ack_without_growth(225);
    assert_eq!(s.send_up_to(4), 4);
    // 300 us without a transmission while four segments are on the way.
    assert_eq!((s.at(300).send(), s.cwnd()), (Gate::HoldForAck, 2.0));
    for _ in 0..2 {
        assert_eq!((s.ack(230), s.send()), (2.0, Gate::HoldForAck));
    }
    assert_eq!((s.ack(230), s.send(), s.send()), (2.0, Gate::Go, Gate::HoldForAck));
    assert_eq!((s.ack(230), s.send(), s.send()), (2.0, Gate::Go, Gate::HoldForAck));
    s.ack(225);
    close(s.ack(225), 10.0);
}

#[test]
fn a_lost_probe_is_a_late_one() {
    for (cause, cwnd) in [(Cause::Loss, 2.0), (Cause::Timeout { repeated: false }, 1.0)] {
        let mut s = Sender::before_train(225, &[quiet()]);
        s.send_up_to(2);
        s.conn.loss_basis = 30.0;
        s.cc.on_congestion(&s.conn, cause);
        assert_eq!((s.cwnd(), s.internal("trim_probing")), (cwnd, 0.0));
        s.conn.state = State::Loss;
        assert_eq!(s.send(), Gate::Go);
    }
}

#[test]
fn a_retransmitted_probe_proves_nothing() {
    let mut s = Sender::before_train(225, &[quiet()]);
    s.send_up_to(2);
    assert_eq!(s.ack_segments(2, None), 2.0);
    assert_eq!(s.send(), Gate::Go);
}

#[test]
fn recovery_neither_cuts_for_delay_nor_probes() {
    let mut s = Sender::new(&setup(20.0, 5.0, Duration::us(225)), &[&[quiet()], &k_fixed(300.0)[..]].concat());
    s.send_up_to(20);
    s.conn.loss_basis = 20.0;
    s.cc.on_congestion(&s.conn, Cause::Loss);
    s.conn.state = State::Recovery;
    s.conn.snd_una += u64::from(MSS);
    let mut ack = Ack::of(1, MSS, s.conn.snd_una, Some(Duration::us(400)));
    ack.may_grow = false;
    s.cc.on_ack(&s.conn, &ack);
    assert_eq!(s.cwnd(), 10.0);
    assert_eq!((s.at(9_000).send(), s.internal("trim_probing")), (Gate::Go, 0.0));
}

#[test]
fn both_timers_wait_a_random_part_of_their_range() {
    let mut s = Sender::before_train(225, &[]);
    assert!(s.cc.needs().randomness && s.cc.needs().send_hook);
    // AD: half of the greatest round trip so far, 260 us.
    s.conn.uniform = 0.5;
    let at = Time::ZERO + Duration::us(10_130);
    assert_eq!((s.send(), s.send()), (Gate::HoldUntil(at), Gate::HoldUntil(at)));
    assert_eq!(s.at(10_129).send(), Gate::HoldUntil(at));
    assert_eq!((s.at(10_130).send(), s.send(), s.send()), (Gate::Go, Gate::Go, Gate::HoldForAck));
    // AS: N = 246 us x C / 2 = 10.25 probers, W = equation 1's window.
    s.at(10_370).ack(240);
    let w = s.at(10_382).ack(252);
    close(w, 27.2);
    let wait = Duration::from_secs(0.5 * model::as_upper(1e9 / 12_000.0, 10.25, w));
    let resumed = s.conn.now + wait;
    assert_eq!(s.send(), Gate::HoldUntil(resumed));
    // The end of the wait stands for a transmission: no new probe within a smoothed round trip of it.
    s.conn.now = resumed + Duration::us(200);
    assert_eq!((s.send(), s.internal("trim_probing")), (Gate::Go, 0.0));
}

#[test]
fn the_stream_timer_reaches_the_papers_maximum() {
    // min_RTT 221.4 us makes equation 1 give 27 of 30.375 for probes of 246 us: t_AS_max = 2.997 ms.
    let mut s = Sender::new(&setup(30.375, 10.0, Duration::from_secs(246e-6 / (1.0 + 1.0 / 9.0))), &[]);
    s.send();
    s.ack_without_growth(260);
    s.at(10_000).send_up_to(2);
    s.at(10_246).ack(246);
    s.conn.uniform = 1.0 - f64::EPSILON;
    close(s.ack(246), 27.0);
    let Gate::HoldUntil(until) = s.send() else { panic!("the train waits") };
    close((until - s.conn.now).as_secs(), 2.997e-3);
}

#[test]
fn k_is_the_lower_bound_and_follows_the_minimum_round_trip() {
    let mut s = Sender::new(&setup(10.0, 5.0, Duration::from_secs(224.64e-6)), &[quiet()]);
    close(s.internal("trim_k_s"), 314.4282380085278e-6);
    s.send_up_to(5);
    s.ack(300);
    close(s.internal("trim_k_s"), 314.4282380085278e-6);
    s.ack(200);
    close(s.internal("trim_k_s"), 273.4359353944899e-6);
}

#[test]
fn the_other_ends_of_k_are_switches() {
    let at = Duration::us(200);
    let upper = Sender::new(&setup(10.0, 5.0, at), &[("trim_k", word("upper"))]);
    close(upper.internal("trim_k_s"), 700e-6);
    let fixed = Sender::new(&setup(10.0, 5.0, at), &k_fixed(321.0));
    close(fixed.internal("trim_k_s"), 321e-6);
    let mut tight = setup(10.0, 5.0, at);
    tight.path = tight.path.map(|p| PathKnowledge { buffer_packets: 20.0, ..p });
    close(Sender::new(&tight, &[]).internal("trim_k_s"), model::k_upper(1e9 / 12_000.0, 200e-6, 20.0));
}

#[test]
fn a_measured_minimum_starts_at_the_first_sample() {
    let mut s = Sender::new(&setup(10.0, 5.0, Duration::us(200)), &[quiet(), ("trim_min_rtt", word("measured"))]);
    assert!(s.internal("trim_k_s").is_infinite());
    s.send_up_to(2);
    s.ack(260);
    close(s.internal("trim_min_rtt_s"), 260e-6);
    close(s.internal("trim_k_s"), model::k_lower(1e9 / 12_000.0, 260e-6));
}

#[test]
fn on_an_unknown_path_k_is_twice_the_measured_round_trip() {
    let mut s = Sender::new(&Setup { initial_window: 10.0, ..Setup::default() }, &[quiet()]);
    s.send_up_to(2);
    s.ack(200);
    close(s.internal("trim_k_s"), 400e-6);
}

#[test]
fn a_fixed_k_needs_a_value_and_a_value_needs_a_fixed_k() {
    for (settings, says) in [
        (vec![("trim_k", word("fixed"))], "parameter `trim_k_fixed` = 0: it must be above 0 s when `trim_k` is fixed"),
        (
            vec![("trim_k_fixed", Value::Number(0.001))],
            "parameter `trim_k_fixed` = 0.001: it must be left out unless `trim_k` is fixed",
        ),
    ] {
        let error = registry::build("trim", &Setup::default(), &args(&settings)).unwrap_err();
        assert_eq!(error.to_string(), says);
    }
}

#[test]
fn losses_and_timeouts_are_the_conventional_senders() {
    let mut s = Sender::new(&setup(20.0, 5.0, Duration::us(225)), &[quiet()]);
    s.send_up_to(20);
    s.conn.loss_basis = 20.0;
    s.cc.on_congestion(&s.conn, Cause::Loss);
    assert_eq!((s.cwnd(), s.cc.control().ssthresh), (10.0, 10.0));
    s.cc.on_congestion(&s.conn, Cause::Timeout { repeated: false });
    assert_eq!((s.cwnd(), s.cc.control().ssthresh), (1.0, 10.0));
}
