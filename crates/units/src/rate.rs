//! Speeds of links and senders.

use crate::{Bytes, Duration};
use core::fmt;
use core::ops::Mul;
use serde::{Deserialize, Serialize};

/// Bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(u64);

impl Rate {
    /// `n` bits per second.
    pub const fn from_bps(n: u64) -> Rate {
        Rate(n)
    }
    /// `n` megabits per second.
    pub const fn mbps(n: u64) -> Rate {
        Rate(n * 1_000_000)
    }
    /// `n` gigabits per second.
    pub const fn gbps(n: u64) -> Rate {
        Rate(n * 1_000_000_000)
    }
    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
}

impl Mul<Duration> for Rate {
    type Output = Bytes;
    /// What fits into `d` at this rate, rounded down.
    fn mul(self, d: Duration) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(d.ps()) / 8_000_000_000_000;
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            n if n >= 1_000_000_000 => (1_000_000_000, "Gbps"),
            n if n >= 1_000_000 => (1_000_000, "Mbps"),
            n if n >= 1_000 => (1_000, "kbps"),
            _ => (1, "bps"),
        };
        write!(f, "{}{name}", self.0 as f64 / f64::from(unit))
    }
}
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_times_a_time_is_what_fits() {
        assert_eq!(Rate::gbps(1) * Duration::us(12), Bytes::new(1500));
    }
}
