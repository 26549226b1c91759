//! HyStart: slow start ends before the first loss, when ACKs have come in one train for as long as the path holds, or the round trip
//! has grown by an eighth.
//!
//! *Source*: `tcp_cubic.c` (`hystart_update`); Ha and Rhee, "Taming the elephants: New TCP slow start" (Computer Networks 55, 2011).
//!
//! *Departures* (docs/algorithms/hystart.md): the smallest round trip is kept for the connection's life, where the kernel forgets it
//! after a timeout; samples of the first second after a recovery count.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::{
    Ack, Algorithm, Args, Conn, Counting, Kind, Setting, SettingError, Setup, SlowStart, StandardSlowStart, Window,
};
use fanin_units::{Duration, Time};

pub(crate) const DETECT: Setting = Setting::choice("hystart_detect", &["both", "train", "delay"])
    .doc("tcp_cubic.c hystart_detect", "which test ends slow start: the length of the ACK train, the round trip, or either");
pub(crate) const LOW_WINDOW: Setting = Setting::parameter("hystart_low_window", 16.0, 1.0, 1e6)
    .unit("packets")
    .doc("tcp_cubic.c hystart_low_window", "no test below this window");
pub(crate) const PACED: Setting = Setting::switch("hystart_paced", false)
    .doc("tcp_cubic.c hystart_update", "data leave paced: a train may last a whole round trip, not half of one");

/// `hystart`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "hystart",
    title: "HyStart: leaves slow start by ACK trains or growing delay; as in hystart+cubic",
    source: "Ha and Rhee 2011; tcp_cubic.c",
    deploy: &[Place::With { sender: "cubic", kernel: true, name: "cubic" }],
    params: &[DETECT, LOW_WINDOW, PACED],
    ..Algorithm::of(Kind::SlowStart(|setup, args| {
        let standard = Box::new(StandardSlowStart::new(setup.counting));
        Ok(Box::new(HyStart::around(standard, setup, args)?))
    }))
}];

/// ACKs this close belong to one train.
const TRAIN_GAP: Duration = Duration::ms(2);
/// Samples of a round before its smallest says something.
const LEAST_SAMPLES: u32 = 8;
/// The round trip may grow by an eighth, within these bounds.
const DELAY_BOUNDS: (Duration, Duration) = (Duration::ms(4), Duration::ms(16));
/// Largest burst of segmentation offload (`sk_gso_max_size`), bytes: the receiver may hold four of them back.
const GSO_MAX: f64 = 65_536.0;
const ACK_DELAY_MOST: Duration = Duration::ms(1);

/// A slow start that knows when to stop; another one decides how fast it goes.
#[derive(Debug)]
pub struct HyStart {
    growth: Box<dyn SlowStart>,
    counting: Counting,
    train: bool,
    delay: bool,
    low_window: f64,
    paced: bool,
    delay_min: Option<Duration>,
    found: bool,
    round: Option<Round>,
}

/// One window of data.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Time,
    /// First byte not sent when it began.
    end: u64,
    /// Last ACK of the train.
    last_ack: Time,
    min_rtt: Option<Duration>,
    samples: u32,
}

impl HyStart {
    /// Watches over `growth`.
    ///
    /// # Errors
    /// [`SettingError::BadValue`] for a parameter outside its range.
    pub fn around(growth: Box<dyn SlowStart>, setup: &Setup, args: &Args) -> Result<HyStart, SettingError> {
        let detect = args.word(&DETECT, setup.profile)?;
        Ok(HyStart {
            growth,
            counting: setup.counting,
            train: detect != "delay",
            delay: detect != "train",
            low_window: args.number(&LOW_WINDOW, setup.profile)?,
            paced: args.flag(&PACED, setup.profile)?,
            delay_min: None,
            found: false,
            round: None,
        })
    }

    /// The slow start without the watch.
    pub fn into_inner(self) -> Box<dyn SlowStart> {
        self.growth
    }

    /// Whether slow start ends here (`hystart_update`).
    fn ends(&mut self, conn: &Conn, rtt: Duration, cwnd: f64) -> bool {
        let delay_min = self.delay_min.map_or(rtt, |d| d.min(rtt));
        self.delay_min = Some(delay_min);
        let fresh = Round { start: conn.now, end: conn.snd_nxt, last_ack: conn.now, min_rtt: None, samples: 0 };
        // `hystart_update` begins a round where snd_una has passed end_seq (`bictcp_hystart_reset`).
        let mut round = match self.round {
            Some(round) if conn.snd_una <= round.end => round,
            _ => fresh,
        };
        let mut ends = false;
        if cwnd >= self.low_window {
            if self.train && conn.now.since(round.last_ack) <= TRAIN_GAP {
                round.last_ack = conn.now;
                // HYSTART_ACK_TRAIN: a train ends slow start after half of delay_min + hystart_ack_delay(), and after all of it where
                // pacing may have delayed packets by half a round trip (sk_pacing_status).
                let whole = delay_min + ack_delay(conn, cwnd);
                let longest = if self.paced { whole } else { whole / 2 };
                ends = conn.now.since(round.start) > longest;
            }
            if self.delay {
                // HYSTART_DELAY: the least of eight samples or more is above delay_min + HYSTART_DELAY_THRESH(delay_min >> 3).
                let least = round.min_rtt.map_or(rtt, |m| m.min(rtt));
                round.min_rtt = Some(least);
                if round.samples < LEAST_SAMPLES {
                    round.samples += 1;
                } else {
                    // HYSTART_DELAY_THRESH at 200 us is its least, 4 ms: 5 MB of queue at 10 Gbps.
                    ends |= least > delay_min + (delay_min / 8).clamp(DELAY_BOUNDS.0, DELAY_BOUNDS.1);
                }
            }
        }
        self.round = Some(round);
        ends
    }
}

/// How long a receiver may hold an ACK back to merge segments: four bursts at the rate of slow start, at most 1 ms.
fn ack_delay(conn: &Conn, cwnd: f64) -> Duration {
    if conn.srtt.is_zero() {
        return ACK_DELAY_MOST;
    }
    // sk_pacing_rate in slow start is twice cwnd/srtt (`tcp_update_pacing_rate`, tcp_pacing_ss_ratio = 200).
    let rate = 2.0 * f64::from(conn.mss) * cwnd.max(conn.in_flight) / conn.srtt.as_secs();
    // Less than the millisecond where that rate is above 2.1 Gbps: 210 us at 10 Gbps.
    Duration::from_secs(4.0 * GSO_MAX / rate).min(ACK_DELAY_MOST)
}

impl SlowStart for HyStart {
    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, grow: bool) -> u32 {
        if let (Some(rtt), true, false) = (ack.rtt, window.in_slow_start(), self.found)
            && self.ends(conn, rtt, window.cwnd)
        {
            self.found = true;
            // `hystart_update`: tp->snd_ssthresh = tp->snd_cwnd.
            window.ssthresh = window.cwnd;
            self.growth.on_ack(conn, ack, window, false);
            // cwnd < ssthresh no longer holds in `cubictcp_cong_avoid`: the whole ACK counts for congestion avoidance.
            return if grow { self.counting.segments(ack) } else { 0 };
        }
        self.growth.on_ack(conn, ack, window, grow)
    }

    fn reset(&mut self, conn: &Conn) {
        self.found = false;
        self.round = None;
        self.growth.reset(conn);
    }

    fn needs_quickack(&self) -> bool {
        self.growth.needs_quickack()
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithms::testing::{Driver, set};
    use crate::{Args, Profile, Setup, Value};
    use fanin_units::Duration;

    fn sender(spec: &str, initial: f64, args: &Args) -> Driver {
        let setup = Setup { initial_window: initial, profile: Profile::Linux, ..Setup::default() };
        let mut s = Driver::new(spec, setup, args);
        s.conn.srtt = Duration::us(200);
        s
    }

    fn train(s: &mut Driver, acks: u32, gap: Duration, rtt: Duration) {
        for _ in 0..acks {
            s.wait(gap);
            s.ack(Some(rtt));
        }
    }

    #[test]
    fn a_train_longer_than_half_the_round_trip_ends_slow_start() {
        let mut s = sender("hystart+newreno", 40.0, &set("hystart_detect", Value::Word("train".into())));
        s.ack(Some(Duration::us(200)));
        let mut acks = 0;
        while s.cc.control().ssthresh.is_infinite() {
            train(&mut s, 1, Duration::us(12), Duration::us(200));
            acks += 1;
            assert!(acks < 40);
        }
        // Half of the round trip and of the time four offloaded bursts take at two windows per round trip, in us.
        let span = 12.0 * f64::from(acks);
        let cwnd = s.cc.control().ssthresh;
        let longest = |cwnd: f64| (200.0 + 4.0 * 65_536.0 * 200.0 / (2.0 * 1460.0 * cwnd)) / 2.0;
        assert!(span > longest(cwnd) && span - 12.0 <= longest(cwnd - 1.0), "{span} {cwnd}");
    }

    #[test]
    fn paced_data_may_take_the_whole_round_trip() {
        let exit = |paced| {
            let mut args = set("hystart_paced", Value::Flag(paced));
            args.set("hystart_detect", Value::Word("train".into()));
            let mut s = sender("hystart+newreno", 40.0, &args);
            s.ack(Some(Duration::us(200)));
            (0..40).take_while(|_| {
                train(&mut s, 1, Duration::us(12), Duration::us(200));
                s.cc.control().ssthresh.is_infinite()
            })
            .count()
        };
        assert!(exit(true) > exit(false));
    }

    #[test]
    fn acks_more_than_two_milliseconds_apart_are_no_train() {
        let mut s = sender("hystart+newreno", 40.0, &set("hystart_detect", Value::Word("train".into())));
        s.ack(Some(Duration::us(200)));
        train(&mut s, 39, Duration::us(2001), Duration::us(200));
        assert!(s.cc.control().ssthresh.is_infinite());
    }

    #[test]
    fn a_round_trip_of_four_milliseconds_more_ends_slow_start_after_eight_samples() {
        for (rtt, ends) in [(4200, false), (4201, true)] {
            let mut s = sender("hystart+newreno", 40.0, &set("hystart_detect", Value::Word("delay".into())));
            s.ack(Some(Duration::us(200)));
            // The rest of the first round, whose smallest sample is the idle path's.
            train(&mut s, 39, Duration::us(1), Duration::us(rtt));
            // The next ACK is beyond the first round's end and starts the second.
            train(&mut s, 8, Duration::us(1), Duration::us(rtt));
            assert!(s.cc.control().ssthresh.is_infinite());
            train(&mut s, 1, Duration::us(1), Duration::us(rtt));
            assert_eq!(s.cc.control().ssthresh.is_finite(), ends, "{rtt}");
        }
    }

    #[test]
    fn nothing_is_tested_below_sixteen_packets() {
        let mut s = sender("hystart+newreno", 2.0, &Args::default());
        s.ack(Some(Duration::us(200)));
        for _ in 0..12 {
            train(&mut s, 1, Duration::us(1900), Duration::ms(30));
        }
        assert_eq!(s.cc.control().cwnd, 15.0);
        assert!(s.cc.control().ssthresh.is_infinite());
    }

    #[test]
    fn cubic_under_linux_has_it_and_elsewhere_has_not() {
        for (profile, args, finds) in [
            (Profile::Linux, Args::default(), true),
            (Profile::Linux, set("cubic_hystart", Value::Flag(false)), false),
            (Profile::Rfc, Args::default(), false),
            (Profile::Rfc, set("cubic_hystart", Value::Flag(true)), true),
        ] {
            let mut s = Driver::new("cubic", Setup { initial_window: 40.0, profile, ..Setup::default() }, &args);
            s.conn.srtt = Duration::us(200);
            train(&mut s, 40, Duration::us(12), Duration::us(200));
            assert_eq!(s.cc.control().ssthresh.is_finite(), finds, "{profile:?}");
        }
    }
}
