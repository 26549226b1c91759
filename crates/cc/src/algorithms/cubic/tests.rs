use crate::algorithms::testing::{Driver, set};
use crate::model::close;
use crate::{Args, Cause, Counting, Profile, GrowthCurve, Setup, Value};
use fanin_units::Duration;

/// In congestion avoidance at `cwnd`, counting segments as Linux does.
fn at(cwnd: f64, form: &str) -> Driver {
    let setup =
        Setup { initial_window: cwnd, initial_ssthresh: cwnd, counting: Counting::Linux, ..Setup::default() };
    Driver::new("cubic", setup, &set("cubic_form", Value::Word(form.into())))
}

fn cwnd(s: &Driver) -> f64 {
    s.cc.control().cwnd
}

/// Grows by slow start to `cwnd`, loses there, and says what is remembered and left.
fn loss(s: &mut Driver, cwnd: f64) -> (f64, f64) {
    s.restart(cwnd, cwnd);
    s.congestion(Cause::Loss);
    (s.observed("cubic_w_max"), s.cc.control().ssthresh)
}

#[test]
fn the_curve_starts_at_the_epochs_window_and_passes_the_last_maximum() {
    let mut s = at(100.0, "rfc");
    s.congestion(Cause::Loss);
    assert_eq!(cwnd(&s), 70.0);
    s.ack_with(70, |_| {});
    close(s.observed("cubic_k_s"), 4.217163326508746);
    close(s.observed("cubic_w"), 70.00000000000001);
    // The AIMD estimate is ahead at once: one window of ACKs at 70 packets.
    close(s.observed("cubic_w_est"), 70.52941176470588);
    close(cwnd(&s), 70.52941176470588);
    assert_eq!(s.cc.growth_curve(), GrowthCurve::Towards { start: 70.0, w_max: 100.0 });
    for (t, w) in [(1.0, 86.68076383512988), (2.0, 95.64033568663878), (4.0, 99.99590343879358), (6.0, 102.26670325646442)]
    {
        s.at(t);
        // A whole window in one ACK takes the window to the curve.
        s.ack_with(110, |_| {});
        close(s.observed("cubic_w"), w);
        close(cwnd(&s), w);
    }
}

#[test]
fn the_target_is_one_round_trip_ahead() {
    let mut s = at(100.0, "rfc");
    s.conn.srtt = Duration::us(225);
    s.congestion(Cause::Loss);
    s.ack_with(1, |_| {});
    s.at(1.0);
    s.ack_with(80, |_| {});
    close(cwnd(&s), 86.68355817745652);
}

#[test]
fn each_acknowledged_packet_closes_its_share_of_the_gap() {
    let mut s = at(100.0, "rfc");
    s.congestion(Cause::Loss);
    s.ack_with(1, |_| {});
    let before = cwnd(&s);
    s.at(1.0);
    s.ack_with(1, |_| {});
    close(cwnd(&s), before + (86.68076383512988 - before) / before);
    // Never faster than by half per window.
    let before = cwnd(&s);
    s.at(60.0);
    s.ack_with(1, |_| {});
    close(cwnd(&s), before + 0.5);
}

#[test]
fn beyond_the_last_maximum_the_estimate_grows_as_reno() {
    let mut s = at(100.0, "rfc");
    s.congestion(Cause::Loss);
    for _ in 0..60 {
        s.ack_with(cwnd(&s).floor() as u32, |_| {});
    }
    let w_est = s.observed("cubic_w_est");
    assert!(w_est > 100.0, "{w_est}");
    close(cwnd(&s), w_est);
    let before = cwnd(&s);
    s.ack_with(50, |_| {});
    close(s.observed("cubic_w_est"), w_est + 50.0 / before);
}

#[test]
fn a_loss_below_the_last_maximum_aims_lower() {
    let mut s = at(100.0, "rfc");
    assert_eq!(loss(&mut s, 100.0), (100.0, 70.0));
    let (w_max, ssthresh) = loss(&mut s, 90.0);
    close(w_max, 76.5);
    close(ssthresh, 63.0);
    assert_eq!(loss(&mut s, 2.0).1, 2.0);
}

#[test]
fn what_a_loss_leaves_is_a_part_of_the_basis() {
    let mut s = at(100.0, "rfc");
    s.conn.loss_basis = 50.0;
    s.congestion(Cause::Loss);
    assert_eq!((cwnd(&s), s.cc.control().ssthresh), (35.0, 35.0));
    // A mark counts as a loss.
    s.conn.loss_basis = 20.0;
    s.congestion(Cause::Ecn);
    assert_eq!(cwnd(&s), 14.0);
}

#[test]
fn after_a_timeout_the_curve_begins_anew_where_avoidance_does() {
    let mut s = at(100.0, "rfc");
    s.congestion(Cause::Timeout { repeated: false });
    assert_eq!((cwnd(&s), s.cc.control().ssthresh), (1.0, 70.0));
    assert_eq!(s.cc.growth_curve(), GrowthCurve::Undefined);
    s.congestion(Cause::Timeout { repeated: true });
    assert_eq!(s.cc.control().ssthresh, 70.0);
    s.ack_with(69, |_| {});
    assert_eq!(cwnd(&s), 70.0);
    s.ack_with(1, |_| {});
    assert_eq!(s.observed("cubic_k_s"), 0.0);
    assert_eq!(s.observed("cubic_w_max"), 70.0);
}

#[test]
fn the_clock_of_the_curve_stops_while_nothing_is_outstanding() {
    let mut s = at(100.0, "rfc");
    s.congestion(Cause::Loss);
    s.ack_with(1, |a| a.rtt = Some(Duration::us(200)));
    // Everything is acknowledged and the application sends nothing for nine seconds.
    s.conn.snd_una = s.conn.snd_nxt;
    s.at(1.0);
    s.cc.on_ack(&s.conn, &crate::Ack::of(1, 1460, s.conn.snd_una, Some(Duration::us(200))));
    s.at(10.0);
    s.ack_with(1, |a| a.rtt = Some(Duration::us(200)));
    close(s.observed("cubic_w"), super::w_cubic(0.4, 100.0, 4.217163326508746, 1.0002));
}

#[test]
fn a_spurious_reduction_gives_window_and_curve_back() {
    let mut s = at(100.0, "rfc");
    loss(&mut s, 100.0);
    s.ack_with(1, |_| {});
    let before = (cwnd(&s), s.cc.control().ssthresh, s.cc.growth_curve());
    s.congestion(Cause::Timeout { repeated: false });
    s.cc.on_undo(&s.conn);
    assert_eq!((cwnd(&s), s.cc.control().ssthresh, s.cc.growth_curve()), before);
}

#[test]
fn without_a_loss_there_is_no_epoch_to_tell() {
    let mut s = Driver::new("cubic", Setup::default(), &Args::default());
    s.ack(None);
    assert_eq!(s.cc.growth_curve(), GrowthCurve::Undefined);
}

#[test]
fn the_kernels_integers_remember_and_leave_what_the_kernel_does() {
    let mut s = at(100.0, "linux");
    assert_eq!(loss(&mut s, 100.0), (100.0, 70.0));
    assert_eq!(loss(&mut s, 90.0), (76.0, 63.0));
    let mut s = at(10.0, "linux");
    assert_eq!(loss(&mut s, 10.0), (10.0, 7.0));
    let mut s = at(2.0, "linux");
    assert_eq!(loss(&mut s, 2.0), (2.0, 2.0));
}

#[test]
fn the_kernels_curve_passes_71_88_96_100_102() {
    let mut s = at(100.0, "linux");
    s.congestion(Cause::Loss);
    s.restart(71.0, 70.0);
    for (t, target) in [(0.0, 71.0), (1.0, 88.0), (2.0, 96.0), (4.0, 100.0), (6.0, 102.0)] {
        s.at(t);
        s.ack(None);
        assert_eq!(s.observed("cubic_target"), target, "{t}");
    }
    assert_eq!(s.observed("cubic_k_s") * 1024.0, 4271.0);
    assert_eq!(s.cc.growth_curve(), GrowthCurve::Towards { start: 71.0, w_max: 100.0 });
}

/// `cubictcp_acked` discards samples of the first second of an epoch. A smallest round trip of 1 s reads the curve a second ahead: at
/// 1.05 s, 100 - 0.4 (4.17 - 2.05)^3 = 96.2 packets, of which the kernel makes 97, instead of 88.
#[test]
fn the_kernel_takes_no_round_trip_of_an_epochs_first_second_for_the_smallest() {
    let target = |sampled_at: f64| {
        let mut s = at(100.0, "linux");
        s.congestion(Cause::Loss);
        s.restart(71.0, 70.0);
        s.ack(None);
        s.at(sampled_at);
        s.ack_with(1, |a| a.rtt = Some(Duration::s(1)));
        s.restart(72.0, 70.0);
        s.at(1.05);
        s.ack(None);
        s.observed("cubic_target")
    };
    assert_eq!((target(0.5), target(0.999)), (88.0, 88.0));
    assert_eq!((target(1.0), target(1.01)), (97.0, 97.0));
}

/// `bictcp_update` counts time in jiffies: 1.0035 s are 250 of 4 ms, and 1003 of 1 ms. There the curve to 10,000 rises by 414 packets
/// per second (1.2 (K - t)^2 with K = 19.57 s).
#[test]
fn the_kernels_curve_is_read_once_per_jiffy() {
    let target = |hz: u32| {
        let setup = Setup { initial_window: 10_000.0, initial_ssthresh: 10_000.0, hz, ..Setup::default() };
        let setup = Setup { counting: Counting::Linux, ..setup };
        let mut s = Driver::new("cubic", setup, &set("cubic_form", Value::Word("linux".into())));
        s.congestion(Cause::Loss);
        s.restart(7001.0, 7000.0);
        s.ack(None);
        s.at(1.0035);
        s.ack(None);
        s.observed("cubic_target")
    };
    assert_eq!((target(250), target(1000)), (7444.0, 7446.0));
}

#[test]
fn the_kernels_aimd_estimate_grows_every_131_packets_at_a_window_of_70() {
    for (acked, w_est) in [(131, 70.0), (132, 71.0)] {
        let mut s = at(100.0, "linux");
        s.congestion(Cause::Loss);
        s.ack(None);
        s.ack_with(acked - 2, |_| {});
        s.restart(70.0, 70.0);
        // While the window stands the estimate is looked at once in a 32nd of a second.
        s.at(0.05);
        s.ack(None);
        assert_eq!(s.observed("cubic_w_est"), w_est);
    }
}

#[test]
fn before_any_loss_the_kernel_adds_a_packet_every_twenty() {
    let mut s = at(100.0, "linux");
    for _ in 0..19 {
        s.ack(None);
    }
    assert_eq!(cwnd(&s), 100.0);
    s.ack(None);
    assert_eq!(cwnd(&s), 101.0);
}

#[test]
fn linux_takes_the_kernels_form_unless_told() {
    let setup = |profile| Setup { initial_window: 101.0, initial_ssthresh: 50.0, profile, ..Setup::default() };
    let mut linux = Driver::new("cubic", setup(Profile::Linux), &Args::default());
    let mut rfc = Driver::new("cubic", setup(Profile::Linux), &set("cubic_form", Value::Word("rfc".into())));
    linux.congestion(Cause::Loss);
    rfc.congestion(Cause::Loss);
    assert_eq!(cwnd(&linux), 70.0);
    close(cwnd(&rfc), 70.7);
}
