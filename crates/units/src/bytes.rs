//! Amounts of data.

use crate::{Duration, Rate};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Bytes = Bytes(0);

    /// `n` bytes.
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }
    /// `n` kilobytes of 1000 B.
    pub const fn kb(n: u64) -> Bytes {
        Bytes(n * 1_000)
    }
    /// `n` kibibytes of 1024 B.
    pub const fn kib(n: u64) -> Bytes {
        Bytes(n * 1_024)
    }
    /// `n` megabytes of 10^6 B.
    pub const fn mb(n: u64) -> Bytes {
        Bytes(n * 1_000_000)
    }
    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// How many pieces of at most `piece` bytes this takes; zero bytes take none.
    pub const fn segments(self, piece: u32) -> u64 {
        self.0.div_ceil(piece as u64)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, o: Bytes) -> Bytes {
        Bytes(self.0 + o.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, o: Bytes) {
        self.0 += o.0;
    }
}
impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, o: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(o.0))
    }
}
impl SubAssign for Bytes {
    fn sub_assign(&mut self, o: Bytes) {
        *self = *self - o;
    }
}
impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, n: u64) -> Bytes {
        Bytes(self.0 * n)
    }
}
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}
impl Div<Rate> for Bytes {
    type Output = Duration;
    /// Serialisation time, rounded up to the next picosecond so that no port ever exceeds its rate.
    fn div(self, rate: Rate) -> Duration {
        let ps = (u128::from(self.0) * 8 * 1_000_000_000_000).div_ceil(u128::from(rate.bps()));
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            n if n >= 1_000_000_000 => (1_000_000_000, "GB"),
            n if n >= 1_000_000 => (1_000_000, "MB"),
            n if n >= 1_000 => (1_000, "KB"),
            _ => (1, "B"),
        };
        write!(f, "{}{name}", self.0 as f64 / f64::from(unit))
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_time_is_rounded_up() {
        assert_eq!(Bytes::new(1500) / Rate::gbps(1), Duration::us(12));
        assert_eq!((Bytes::new(1) / Rate::from_bps(3)).ps(), 2_666_666_666_667);
    }
}
