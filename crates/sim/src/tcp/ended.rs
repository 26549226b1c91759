//! What is left of flows whose ends were given up: most counts of most flows are zero, and a million of them are kept until the run is over.

use super::sender::{Counters, Totals};
use fanin_units::Duration;

/// What is left of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub sent: Totals,
    pub delivered: u64,
    pub last_delivery: Option<u64>,
}

/// Numbers of an [`Ended`].
const NUMBERS: usize = 18;

/// The place of a flow of which nothing is left here.
const NOTHING: u32 = u32::MAX;

/// What is left of each flow: which of its numbers are not zero, and these in as few bytes as they take (LEB128). 45 bytes where a tree of
/// [`Ended`] takes 230.
#[derive(Debug)]
pub struct AllEnded {
    bytes: Vec<u8>,
    /// Where each flow's begin.
    places: Vec<u32>,
}

impl AllEnded {
    /// Nothing, of so many flows.
    pub fn new(flows: usize) -> AllEnded {
        AllEnded { bytes: Vec::new(), places: vec![NOTHING; flows] }
    }

    /// Notes what is left of a flow, instead of what was noted of it.
    pub fn add(&mut self, flow: u32, ended: &Ended) {
        let numbers = ended.numbers();
        // Bit n: number n is not zero, and is written.
        let there = numbers.iter().enumerate().fold(0_u64, |all, (n, &number)| all | u64::from(number != 0) << n);
        self.places[flow as usize] = u32::try_from(self.bytes.len()).expect("at most 20 million flows of 190 bytes");
        for number in std::iter::once(there).chain(numbers.into_iter().filter(|&number| number != 0)) {
            put(&mut self.bytes, number);
        }
    }

    /// What is left of a flow.
    pub fn get(&self, flow: u32) -> Option<Ended> {
        let place = self.places[flow as usize];
        let mut bytes = self.bytes.get(place as usize..).filter(|_| place != NOTHING)?.iter();
        let there = take(&mut bytes);
        let mut numbers = [0; NUMBERS];
        for (n, number) in numbers.iter_mut().enumerate() {
            if there >> n & 1 == 1 {
                *number = take(&mut bytes);
            }
        }
        Some(Ended::of(numbers))
    }
}

impl Ended {
    fn numbers(&self) -> [u64; NUMBERS] {
        let Totals { counters: c, acked, cwnd, srtt, min_rtt } = self.sent;
        [
            c.segments,
            c.bytes_sent,
            c.timeout_ps,
            // u64::MAX, nothing was ever sent, becomes 0, and any time one more.
            c.first_send.wrapping_add(1),
            bits(c.max_cwnd),
            u64::from(c.retransmissions),
            u64::from(c.fast_recoveries),
            u64::from(c.timeouts),
            u64::from(c.ece_acks),
            u64::from(c.ecn_reductions),
            u64::from(c.tail_probes),
            u64::from(c.undos),
            acked,
            bits(cwnd),
            srtt.ps(),
            min_rtt.ps().wrapping_add(1),
            self.delivered,
            self.last_delivery.map_or(0, |at| at.saturating_add(1)),
        ]
    }

    fn of(numbers: [u64; NUMBERS]) -> Ended {
        let [segments, bytes_sent, timeout_ps, first_send, max_cwnd, rest @ ..] = numbers;
        let [retransmissions, fast_recoveries, timeouts, ece_acks, ecn_reductions, tail_probes, undos, rest @ ..] =
            rest.map(|number| (number, number as u32));
        let [acked, cwnd, srtt, min_rtt, delivered, last_delivery] = rest.map(|(number, _)| number);
        let counters = Counters {
            segments,
            bytes_sent,
            timeout_ps,
            first_send: first_send.wrapping_sub(1),
            max_cwnd: real(max_cwnd),
            retransmissions: retransmissions.1,
            fast_recoveries: fast_recoveries.1,
            timeouts: timeouts.1,
            ece_acks: ece_acks.1,
            ecn_reductions: ecn_reductions.1,
            tail_probes: tail_probes.1,
            undos: undos.1,
        };
        let (srtt, min_rtt) = (Duration::from_ps(srtt), Duration::from_ps(min_rtt.wrapping_sub(1)));
        let sent = Totals { counters, acked, cwnd: real(cwnd), srtt, min_rtt };
        Ended { sent, delivered, last_delivery: last_delivery.checked_sub(1) }
    }
}

/// The bits of a real, the first byte last: of round numbers the other bytes are zero.
fn bits(real: f64) -> u64 {
    real.to_bits().swap_bytes()
}

fn real(bits: u64) -> f64 {
    f64::from_bits(bits.swap_bytes())
}

/// Seven bits in a byte, the least first; the eighth says that more follow.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    // 300 is 0xac 0x02: 300 = 2 x 128 + 44.
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut std::slice::Iter<'_, u8>) -> u64 {
    let mut number = 0;
    // Ten bytes at most, as 64 bits are ten groups of seven.
    for (n, &byte) in (0..).zip(bytes) {
        number |= u64::from(byte & 0x7f) << (7 * n);
        if byte < 0x80 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(n: u64) -> Ended {
        let counters = Counters {
            segments: n,
            bytes_sent: 1448 * n,
            timeout_ps: u64::MAX >> (n % 64),
            first_send: if n.is_multiple_of(2) { u64::MAX } else { n },
            max_cwnd: 10.0 / n as f64,
            retransmissions: u32::MAX,
            undos: n as u32,
            ..Counters::default()
        };
        let (srtt, min_rtt) = (Duration::from_ps(7 * n), Duration::from_ps(u64::MAX));
        let sent = Totals { counters, acked: n * n, cwnd: n as f64, srtt, min_rtt };
        Ended { sent, delivered: n % 7, last_delivery: (n > 50).then_some(n - 1) }
    }

    #[test]
    fn what_is_left_of_a_flow_is_what_was_noted() {
        let mut all = AllEnded::new(100);
        (1..100).for_each(|n| all.add(n, &some(u64::from(n))));
        for n in 1..100 {
            let (kept, noted) = (all.get(n).map(|e| e.numbers()), some(u64::from(n)).numbers());
            assert_eq!(kept, Some(noted));
            assert_eq!(format!("{:?}", all.get(n)), format!("{:?}", Some(some(u64::from(n)))));
        }
        assert!(all.get(0).is_none());
    }

    #[test]
    fn a_flow_of_one_segment_takes_no_more_than_fifty_bytes() {
        let counters = Counters {
            segments: 1,
            bytes_sent: 1448,
            first_send: 12_345_678_901_234,
            max_cwnd: 10.0,
            ..Counters::default()
        };
        let (srtt, min_rtt) = (Duration::from_ps(123_456_789), Duration::from_ps(120_000_000));
        let sent = Totals { counters, acked: 1448, cwnd: 11.0, srtt, min_rtt };
        let mut all = AllEnded::new(1);
        all.add(0, &Ended { sent, delivered: 1448, last_delivery: Some(12_345_690_000_000) });
        assert!(all.bytes.len() <= 50, "{}", all.bytes.len());
    }
}
