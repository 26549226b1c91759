//! BBR's numbers as `tcp_bbr.c` has them: whole microseconds, packets and bytes, rates in 2^-24 packets per microsecond, gains in 256ths. What
//! falls off when they are rounded always falls to the same side, and the greatest of many samples is kept: it adds up.

use fanin_units::{Duration, Time};

/// A rate in 2^-24 packets per microsecond (`BW_SCALE`).
pub(super) type Bw = u64;
const BW_SCALE: u32 = 24;

/// A gain in 256ths (`BBR_UNIT`).
pub(super) type Gain = u64;
pub(super) const UNIT: Gain = 256;

pub(super) const US_PER_S: u64 = 1_000_000;
const PS_PER_US: u64 = 1_000_000;
/// Paces a little below the estimate, so that queues drain.
const MARGIN_PERCENT: u64 = 1;

pub(super) fn us(span: Duration) -> u64 {
    // Truncated, as every time that tcp_mstamp_refresh takes is (div_u64 by NSEC_PER_USEC).
    span.ps() / PS_PER_US
}

/// A time on the sender's clock (`tcp_mstamp`).
pub(super) fn at_us(time: Time) -> u64 {
    time.ps() / PS_PER_US
}

/// So many packets in that time, which is not zero.
pub(super) fn rate_of(packets: u64, us: u64) -> Bw {
    // `bbr_update_bw`: delivered * BW_UNIT / interval_us. A packet in 12 us, 1 Gbps of 1500 bytes, is 1,398,101.
    (packets << BW_SCALE) / us
}

/// Whole packets in that time.
pub(super) fn delivered_in(bw: Bw, us: u64) -> u64 {
    ((u128::from(bw) * u128::from(us)) >> BW_SCALE) as u64
}

/// `gain` times what is delivered in that time, rounded up (`bbr_bdp`).
pub(super) fn product(bw: Bw, us: u64, gain: Gain) -> u64 {
    // `bbr_bdp`: (((bw * rtt_us * gain) >> BBR_SCALE) + BW_UNIT - 1) / BW_UNIT; at that rate 224 us hold 18.7, so 19.
    let scaled = (u128::from(bw) * u128::from(us) * u128::from(gain)) >> UNIT.ilog2();
    // No division: a kernel has none of this width.
    ((scaled + (1 << BW_SCALE) - 1) >> BW_SCALE) as u64
}

/// Payload per second (`bbr_rate_bytes_per_sec`).
pub(super) fn bytes_per_second(bw: Bw, mss: u64, gain: Gain) -> u64 {
    // In this order: each shift drops what the kernel drops. A rate of 1,398,101 and 1448 bytes are 119.5 MB/s.
    let scaled = (u128::from(bw) * u128::from(mss) * u128::from(gain)) >> UNIT.ilog2();
    ((scaled * u128::from(US_PER_S / 100 * (100 - MARGIN_PERCENT))) >> BW_SCALE) as u64
}

/// For people.
pub(super) fn packets_per_second(bw: Bw) -> f64 {
    bw as f64 / f64::from(1 << BW_SCALE) * US_PER_S as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet per 12 us is 2^24/12 = 1398101.33: what falls off keeps ten packets in 120 us from becoming eleven.
    #[test]
    fn a_product_is_rounded_up_from_a_rate_that_was_rounded_down() {
        let bw = rate_of(1, 12);
        assert_eq!(bw, 1_398_101);
        assert_eq!((product(bw, 120, UNIT), product(bw, 121, UNIT), product(bw, 120, 2 * UNIT)), (10, 11, 20));
        assert_eq!(delivered_in(bw, 120), 9);
        assert_eq!(bytes_per_second(bw, 1448, UNIT), 119_459_971);
    }
}
