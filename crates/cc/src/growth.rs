//! Turning ACKs into growth: the counting rules of RFC 5681, RFC 3465, Linux and ns-3, written once.

#[cfg(not(feature = "std"))]
use crate::bare::*;
use crate::{Ack, Conn, SlowStart, Window};

/// How much an ACK is worth (spec: the same traffic grows twice as fast under `per_ack` as under delayed ACKs with bytes).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counting {
    /// +1 per ACK in slow start, +1/cwnd in avoidance, whatever the ACK covers (NS2, RFC 5681 in packets).
    #[default]
    PerAck,
    /// Appropriate byte counting with limit L (RFC 3465): at most L segments per ACK.
    Abc {
        /// The limit in segments, 1 or 2.
        limit: u8,
    },
    /// Every covered segment counts; what slow start leaves spills into avoidance (`tcp_cong.c`).
    Linux,
    /// +1 per ACK in slow start; in avoidance max(1, mss*mss/cwnd) bytes per ACK (ns-3's `TcpNewReno`).
    Ns3,
}

/// Reno's slow start under a counting rule (RFC 5681 section 3.1).
#[derive(Clone, Debug)]
pub struct StandardSlowStart {
    counting: Counting,
}

impl StandardSlowStart {
    /// Slow start that counts as told.
    pub fn new(counting: Counting) -> StandardSlowStart {
        StandardSlowStart { counting }
    }
}

impl SlowStart for StandardSlowStart {
    fn on_ack(&mut self, _conn: &Conn, ack: &Ack, window: &mut Window, grow: bool) -> u32 {
        if !grow || ack.acked_bytes == 0 {
            return 0;
        }
        match self.counting {
            Counting::PerAck | Counting::Ns3 => {
                window.cwnd += 1.0;
                0
            }
            Counting::Abc { limit } => {
                window.cwnd += (f64::from(ack.acked_segments)).min(f64::from(limit));
                0
            }
            Counting::Linux => {
                let room = (window.ssthresh - window.cwnd).ceil();
                let segments = self.counting.segments(ack);
                let used = f64::from(segments).min(room);
                window.cwnd += used;
                segments - used as u32
            }
        }
    }

    fn reset(&mut self, _conn: &Conn) {}

    fn is_standard(&self) -> bool {
        true
    }
}

impl Counting {
    /// Segments of this ACK that can be worth something. Linux grows by what an ACK newly delivers, cumulatively or by SACK (`tcp_ack`
    /// hands `tcp_newly_delivered` to `tcp_cong_control`): the number that passes what SACK reported before, as when the hole of a
    /// timeout closes, must not open the window for all of it at once.
    ///
    /// ```
    /// let mut ack = fanin_cc::Ack::of(150, 1460, 150 * 1460, None);
    /// ack.delivered_segments = 1;
    /// assert_eq!(fanin_cc::Counting::Linux.segments(&ack), 1);
    /// assert_eq!(fanin_cc::Counting::PerAck.segments(&ack), 150);
    /// ```
    pub fn segments(self, ack: &Ack) -> u32 {
        match self {
            Counting::Linux => ack.delivered_segments,
            Counting::PerAck | Counting::Abc { .. } | Counting::Ns3 => ack.acked_segments,
        }
    }

    /// Segments that an ACK for `segments` is worth to a rule that grows per acknowledged packet.
    pub fn worth(self, segments: u32) -> f64 {
        match self {
            Counting::PerAck | Counting::Ns3 => f64::from(segments.min(1)),
            Counting::Abc { limit } => f64::from(segments.min(u32::from(limit))),
            Counting::Linux => f64::from(segments),
        }
    }
}

/// The kernel's credit towards the next packet of window (`tcp_cong_avoid_ai`): +1 once `needed` segments were acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credit(u64);

impl Credit {
    /// Grows cwnd for `segments` acknowledged at one packet per `needed`.
    ///
    /// ```
    /// let (mut cwnd, mut credit) = (10.0, fanin_cc::Credit::default());
    /// for _ in 0..19 { credit.grow(&mut cwnd, 10, 1); }
    /// assert_eq!(cwnd, 11.0);
    /// ```
    pub fn grow(&mut self, cwnd: &mut f64, needed: u64, segments: u32) {
        let needed = needed.max(1);
        // Credit from a time when more was needed is worth one packet, not several.
        if self.0 >= needed {
            self.0 = 0;
            *cwnd += 1.0;
        }
        self.0 += u64::from(segments);
        *cwnd += (self.0 / needed) as f64;
        self.0 %= needed;
    }
}

/// Additive increase of `step` packets per window under a counting rule.
#[derive(Clone, Debug)]
pub struct Avoidance {
    counting: Counting,
    /// Segments (Linux, ABC) acknowledged towards the next +1.
    credit: f64,
}

impl Avoidance {
    /// Avoidance that counts as told, starting without credit.
    pub fn new(counting: Counting) -> Avoidance {
        Avoidance { counting, credit: 0.0 }
    }

    /// Grows cwnd for an ACK worth `segments`, at `step` packets per window (1 for Reno).
    ///
    /// ```
    /// use fanin_cc::{Avoidance, Counting};
    /// let (mut cwnd, mut avoidance) = (10.0, Avoidance::new(Counting::PerAck));
    /// for _ in 0..10 { avoidance.grow(&mut cwnd, 1460, 1, 1.0); }
    /// assert!((cwnd - 10.958647968473018f64).abs() < 1e-9);
    /// ```
    pub fn grow(&mut self, cwnd: &mut f64, mss: u32, segments: u32, step: f64) {
        if segments == 0 {
            return;
        }
        match self.counting {
            Counting::PerAck => *cwnd += step / *cwnd,
            Counting::Ns3 => {
                let bytes = (f64::from(mss) / *cwnd).max(1.0).floor();
                *cwnd += step * bytes / f64::from(mss);
            }
            Counting::Abc { .. } | Counting::Linux => {
                // `tcp_cong_avoid_ai`: credit from a time when more was needed is worth one packet, not several.
                if self.counting == Counting::Linux && self.credit >= cwnd.floor().max(1.0) {
                    self.credit = 0.0;
                    *cwnd += 1.0;
                }
                self.credit += f64::from(segments) * step;
                let needed = cwnd.floor().max(1.0);
                if self.credit >= needed {
                    let whole = (self.credit / needed).floor();
                    self.credit -= whole * needed;
                    *cwnd += whole;
                }
            }
        }
    }

    /// Segments of this ACK that count.
    pub fn segments(&self, ack: &Ack) -> u32 {
        self.counting.segments(ack)
    }

    /// Forgets the credit, as after a reduction.
    pub fn reset(&mut self) {
        self.credit = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::testing::Driver;
    use crate::{Args, Cause, Profile, Setup};

    /// 1000 B of mss over a window of 10 packets: 100 bytes per ACK (ns-3's `CongestionAvoidance`).
    #[test]
    fn ns3_counts_whole_bytes_per_ack() {
        let (mut cwnd, mut avoidance) = (10.0, Avoidance::new(Counting::Ns3));
        avoidance.grow(&mut cwnd, 1000, 1, 1.0);
        assert_eq!(cwnd, 10.1);
    }

    /// `tcp_cong_avoid_ai`: 8 of 10 segments are credited when the window falls to 5. The next ACK makes it 6, and its segment is credit anew.
    #[test]
    fn credit_from_a_larger_window_is_worth_one_packet() {
        let (mut cwnd, mut avoidance) = (10.0, Avoidance::new(Counting::Linux));
        avoidance.grow(&mut cwnd, 1448, 8, 1.0);
        assert_eq!(cwnd, 10.0);
        cwnd = 5.0;
        avoidance.grow(&mut cwnd, 1448, 1, 1.0);
        assert_eq!(cwnd, 6.0);
        avoidance.grow(&mut cwnd, 1448, 4, 1.0);
        assert_eq!(cwnd, 6.0);
        avoidance.grow(&mut cwnd, 1448, 1, 1.0);
        assert_eq!(cwnd, 7.0);
    }

    /// 7 segments at a window of 3 are two packets and a credit of 1: at 5, three more do not make a packet, and a fourth does.
    #[test]
    fn an_ack_of_two_windows_grows_by_two_packets_and_keeps_the_rest() {
        let (mut cwnd, mut avoidance) = (3.0, Avoidance::new(Counting::Linux));
        avoidance.grow(&mut cwnd, 1448, 7, 1.0);
        assert_eq!(cwnd, 5.0);
        avoidance.grow(&mut cwnd, 1448, 3, 1.0);
        assert_eq!(cwnd, 5.0);
        avoidance.grow(&mut cwnd, 1448, 1, 1.0);
        assert_eq!(cwnd, 6.0);
    }

    /// A retransmission closes the hole below 149 segments that SACK had reported: one segment was delivered, so the kernel's window
    /// of 1 becomes 2, and a window above ssthresh hardly grows.
    #[test]
    fn linux_does_not_count_again_what_sack_reported() {
        for name in ["reno", "dctcp", "cubic", "bic", "vegas", "hystart+reno"] {
            let setup =
                Setup { initial_window: 200.0, profile: Profile::Linux, counting: Counting::Linux, ..Setup::default() };
            let mut s = Driver::new(name, setup, &Args::default());
            s.congestion(Cause::Timeout { repeated: false });
            assert_eq!(s.cc.control().cwnd, 1.0, "{name}");
            s.ack_with(150, |a| a.delivered_segments = 1);
            assert_eq!(s.cc.control().cwnd, 2.0, "{name}");
            s.congestion(Cause::Loss);
            assert_eq!(s.cc.control().cwnd, s.cc.control().ssthresh, "{name}");
            let before = s.cc.control().cwnd;
            s.ack_with(150, |a| a.delivered_segments = 1);
            assert!(s.cc.control().cwnd <= before + 1.0, "{name}: {before} {}", s.cc.control().cwnd);
        }
    }
}
