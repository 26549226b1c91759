//! IA-TCP: the receiving host knows its link and how many connections feed it, gives each the same share of the pipe as its
//! advertised window, and holds ACKs when even one packet each would be too much.
//!
//! *Source*: "A Delay-Based TCP for Data Center Networks", section II-C, equations 3 and 4, which describes it; the original paper
//! (ICC 2012) was not available. The formulas are in [`crate::model::iatcp`].
//!
//! *Departures*: windows are the nearest whole number of packets, at least one (`iatcp_round`); a first ACK is held for up to one
//! period more, and the ACKs of the same connection that follow are not sent before it, since a later cumulative ACK would make its
//! delay void.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::deploy::Place;
use crate::model::iatcp::Rounding;
use crate::model::{iatcp as model, packets_per_second};
use crate::{Advice, Algorithm, Args, Arrival, Kind, Setting, SettingError, ReceiverControl, Setup};
use fanin_units::{Duration, Time};

const CAPACITY: Setting = Setting::parameter("iatcp_capacity", 0.0, 0.0, 1e15)
    .unit("bit/s")
    .doc("equation 4", "rate that the host's connections share; 0 takes the path's bottleneck");
const ROUND: Setting = Setting::choice("iatcp_round", &["nearest", "down", "up"])
    .doc("equation 4", "how a connection's share becomes whole packets, at least one");
const SPREAD: Setting = Setting::switch("iatcp_spread_first", true)
    .doc("figure 1", "hold each connection's first ACK for a random part of a period");

/// `iatcp`.
pub const ALGORITHMS: &[Algorithm] = &[Algorithm {
    name: "iatcp",
    title: "IA-TCP: the receiver shares the pipe out as advertised windows and paces ACKs",
    source: "Hwang, Yoo, Choi, ICC 2012, as described by Chan and Chang",
    deploy: &[Place::ReceiverShim],
    params: &[CAPACITY, ROUND, SPREAD],
    ..Algorithm::of(Kind::Receiver(|setup, args| Ok(Box::new(IaTcp::new(setup, args)?))))
}];

/// One receiving host.
#[derive(Debug)]
pub struct IaTcp {
    /// Link capacity in packets/s.
    c: f64,
    rounding: Rounding,
    spread_first: bool,
    conns: Vec<Incoming>,
    /// How many share the link: the active ones, or all that were opened while none is, since they may all start now.
    n: u32,
    /// Smallest base round trip of those in seconds (equation 4's RTTmin).
    rtt_min: f64,
}

/// One incoming connection.
#[derive(Clone, Debug, Default)]
struct Incoming {
    opened: bool,
    active: bool,
    base_rtt: Duration,
    /// Random share of a period that the first ACK waits.
    uniform: f64,
    /// When the first ACK leaves; set by the first data.
    first_ack: Option<Time>,
}

impl IaTcp {
    fn new(setup: &Setup, args: &Args) -> Result<IaTcp, SettingError> {
        let capacity = capacity(setup, args, &CAPACITY)?;
        Ok(IaTcp {
            c: packets_per_second(capacity, setup.wire.get() as f64),
            rounding: match args.word(&ROUND, setup.profile)?.as_str() {
                "down" => Rounding::Down,
                "up" => Rounding::Up,
                _ => Rounding::Nearest,
            },
            spread_first: args.flag(&SPREAD, setup.profile)?,
            conns: Vec::new(),
            n: 1,
            rtt_min: 0.0,
        })
    }

    fn entry(&mut self, conn: u32) -> &mut Incoming {
        let index = conn as usize;
        if index >= self.conns.len() {
            self.conns.resize(index + 1, Incoming::default());
        }
        &mut self.conns[index]
    }

    fn set_active(&mut self, conn: u32, active: bool) {
        self.entry(conn).active = active;
        // n and RTTmin of equation 4 are those of the connections that share the link now.
        let any = self.conns.iter().any(|c| c.active);
        let sharing = self.conns.iter().filter(|c| if any { c.active } else { c.opened });
        self.n = sharing.clone().count().max(1) as u32;
        self.rtt_min = sharing.map(|c| c.base_rtt).min().unwrap_or(Duration::ZERO).as_secs();
    }
}

/// The capacity a receiver policy works with, in bit/s: its parameter, or the path's.
pub(super) fn capacity(setup: &Setup, args: &Args, param: &'static Setting) -> Result<f64, SettingError> {
    let set = args.number(param, setup.profile)?;
    match setup.path {
        _ if set > 0.0 => Ok(set),
        Some(path) => Ok(path.rate.bps() as f64),
        None => Err(SettingError::BadValue {
            name: param.name,
            value: set.to_string(),
            expected: "the rate of the host's link in bit/s, since nothing is known of the path".to_owned(),
        }),
    }
}

impl ReceiverControl for IaTcp {
    fn on_open(&mut self, _now: Time, conn: u32, base_rtt: Duration, uniform: f64) {
        *self.entry(conn) = Incoming { opened: true, active: true, base_rtt, uniform, first_ack: None };
        self.set_active(conn, true);
    }

    fn on_close(&mut self, _now: Time, conn: u32) {
        self.set_active(conn, false);
    }

    fn on_reopen(&mut self, _now: Time, conn: u32) {
        self.set_active(conn, true);
    }

    fn on_data(&mut self, arrival: &Arrival) -> Advice {
        let (n, rtt_min) = (f64::from(self.n), self.rtt_min);
        // Equation 4: each of n connections gets 1/n of what the link holds in the shortest round trip, C RTTmin / n.
        // 1 Gbps of 1500 bytes and 224.64 us: n = 8 shares 2.34 packets each, n = 64 only 0.29, which becomes 1.
        let packets = model::window(self.c, rtt_min, n, self.rounding);
        let window = packets as u64 * u64::from(arrival.mss);
        // Equation 3: where whole packets are more than that share, ACKs wait until n windows take n w / C seconds.
        // n = 64 at 1 packet takes 768 us, so that ACKs wait for the 543.36 us beyond RTTmin.
        let delay = model::ack_delay(self.c, rtt_min, n, packets);
        if arrival.payload_bytes == 0 {
            return Advice { window, ack_delay: Duration::ZERO };
        }
        // Figure 1: connections that begin together are set apart by a random part of a period, RTTmin and the delay.
        let spread = if self.spread_first { rtt_min + delay } else { 0.0 };
        let entry = self.entry(arrival.conn);
        let uniform = entry.uniform;
        let regular = arrival.now + Duration::from_secs(delay);
        let first = *entry.first_ack.get_or_insert_with(|| regular + Duration::from_secs(uniform * spread));
        // No later ACK passes the first one: it would acknowledge what that one does.
        Advice { window, ack_delay: regular.max(first) - arrival.now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::close;
    use crate::{PathKnowledge, Value, registry};
    use fanin_units::Rate;

    const MSS: u32 = 1460;

    fn setup() -> Setup {
        let path = PathKnowledge {
            rate: Rate::gbps(1),
            base_rtt: Duration::from_secs(224.64e-6),
            buffer_packets: 100.0,
        };
        Setup { path: Some(path), ..Setup::default() }
    }

    fn host(connections: u32, uniform: f64) -> Box<dyn ReceiverControl> {
        let mut host = registry::build_receiver("iatcp", &setup(), &Args::default()).unwrap().unwrap();
        for conn in 0..connections {
            host.on_open(Time::ZERO, conn, Duration::from_secs(224.64e-6), uniform);
        }
        host
    }

    fn data(conn: u32, us: u64, payload: u32) -> Arrival {
        Arrival {
            now: Time::ZERO + Duration::us(us),
            conn,
            mss: MSS,
            wire_bytes: payload + 40,
            payload_bytes: payload,
            rtt: None,
        }
    }

    #[test]
    fn eight_connections_get_two_packets_each_and_prompt_acks() {
        let mut host = host(8, 0.0);
        assert_eq!(host.on_data(&data(3, 100, MSS)), Advice { window: 2 * 1460, ack_delay: Duration::ZERO });
    }

    #[test]
    fn sixty_four_connections_get_one_packet_and_held_acks() {
        let mut host = host(64, 0.0);
        let advice = host.on_data(&data(0, 100, MSS));
        assert_eq!(advice.window, 1460);
        close(advice.ack_delay.as_secs(), 543.36e-6);
    }

    #[test]
    fn how_a_share_is_rounded_is_a_switch() {
        // 4.68 packets each; five need 240 us, 15.36 us more than the round trip.
        for (round, packets, delay_us) in [("nearest", 5, 15.36), ("down", 4, 0.0), ("up", 5, 15.36)] {
            let mut args = Args::default();
            args.set("iatcp_round", Value::Word(round.to_owned()));
            let mut host = registry::build_receiver("iatcp", &setup(), &args).unwrap().unwrap();
            (0..4).for_each(|conn| host.on_open(Time::ZERO, conn, Duration::from_secs(224.64e-6), 0.0));
            let advice = host.on_data(&data(0, 0, MSS));
            assert_eq!((advice.window, advice.ack_delay), (packets * 1460, Duration::from_secs(delay_us * 1e-6)));
        }
    }

    #[test]
    fn the_first_ack_waits_a_random_part_of_a_period_and_later_ones_do_not_overtake_it() {
        let mut host = host(8, 0.5);
        let half = 224.64e-6 / 2.0;
        close(host.on_data(&data(0, 100, MSS)).ack_delay.as_secs(), half);
        close(host.on_data(&data(0, 112, MSS)).ack_delay.as_secs(), half - 12e-6);
        assert!(host.on_data(&data(0, 400, MSS)).ack_delay.is_zero());
    }

    #[test]
    fn the_period_includes_the_delay_of_every_ack() {
        let mut host = host(64, 0.5);
        close(host.on_data(&data(0, 0, MSS)).ack_delay.as_secs(), 543.36e-6 + 0.5 * 768e-6);
        close(host.on_data(&data(0, 2_000, MSS)).ack_delay.as_secs(), 543.36e-6);
    }

    #[test]
    fn the_first_ack_is_prompt_when_it_need_not_be_spread() {
        let mut args = Args::default();
        args.set("iatcp_spread_first", Value::Flag(false));
        let mut host = registry::build_receiver("iatcp", &setup(), &args).unwrap().unwrap();
        // 16.25 packets, so 16.
        host.on_open(Time::ZERO, 0, Duration::us(195), 0.9);
        assert!(host.on_data(&data(0, 0, MSS)).ack_delay.is_zero());
    }

    #[test]
    fn shares_change_as_connections_close_and_open_again() {
        let mut host = host(8, 0.0);
        for conn in 4..8 {
            host.on_close(Time::ZERO, conn);
            host.on_close(Time::ZERO, conn);
        }
        assert_eq!(host.on_data(&data(0, 100, MSS)).window, 5 * 1460);
        host.on_reopen(Time::ZERO, 7);
        assert_eq!(host.on_data(&data(0, 100, MSS)).window, 4 * 1460);
    }

    #[test]
    fn before_anybody_starts_all_that_are_open_are_counted() {
        let mut host = host(8, 0.0);
        (0..8).for_each(|conn| host.on_close(Time::ZERO, conn));
        assert_eq!(host.on_data(&data(0, 0, 0)).window, 2 * 1460);
        host.on_reopen(Time::ZERO, 0);
        assert_eq!(host.on_data(&data(0, 0, 0)).window, 19 * 1460);
    }

    #[test]
    fn the_smallest_round_trip_of_the_open_connections_counts() {
        let mut host = host(4, 0.0);
        host.on_open(Time::ZERO, 4, Duration::us(120), 0.0);
        // 83333 x 120 us / 5 = 2.
        assert_eq!(host.on_data(&data(0, 100, MSS)).window, 2 * 1460);
        host.on_close(Time::ZERO, 4);
        assert_eq!(host.on_data(&data(0, 100, MSS)).window, 5 * 1460);
    }

    #[test]
    fn an_opening_is_answered_at_once_with_the_window() {
        let mut host = host(64, 0.9);
        assert_eq!(host.on_data(&data(5, 0, 0)), Advice { window: 1460, ack_delay: Duration::ZERO });
    }

    #[test]
    fn a_set_capacity_replaces_the_paths_and_none_at_all_is_an_error() {
        let mut args = Args::default();
        args.set("iatcp_capacity", Value::Number(10e9));
        let mut host = registry::build_receiver("iatcp", &Setup::default(), &args).unwrap().unwrap();
        host.on_open(Time::ZERO, 0, Duration::us(120), 0.0);
        assert_eq!(host.on_data(&data(0, 0, MSS)).window, 100 * 1460);
        let error = registry::build_receiver("iatcp", &Setup::default(), &Args::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "parameter `iatcp_capacity` = 0: it must be the rate of the host's link in bit/s, since nothing is known of \
             the path"
        );
    }
}
