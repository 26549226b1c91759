//! Points in time and lengths of time, in whole picoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use serde::{Deserialize, Serialize};

/// A point in simulated time: picoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

/// A point in time, or none: in the eight bytes of a time, where `Option<Time>` takes sixteen. [`Time::NEVER`] is none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MaybeTime(Time);

/// A length of time in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(u64);

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// Picoseconds since the start.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Seconds since the start, as a real number (for output, never for arithmetic on events).
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
    /// Time elapsed since `earlier`, zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl MaybeTime {
    /// No time.
    pub const NONE: MaybeTime = MaybeTime(Time::NEVER);

    /// It, if there is one.
    pub fn get(self) -> Option<Time> {
        (self.0 != Time::NEVER).then_some(self.0)
    }
}

impl From<Option<Time>> for MaybeTime {
    fn from(time: Option<Time>) -> MaybeTime {
        MaybeTime(time.unwrap_or(Time::NEVER))
    }
}
impl From<Time> for MaybeTime {
    fn from(time: Time) -> MaybeTime {
        MaybeTime(time)
    }
}
impl fmt::Debug for MaybeTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// Longer than any run.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `n` picoseconds.
    pub const fn from_ps(n: u64) -> Duration {
        Duration(n)
    }
    /// `n` nanoseconds.
    pub const fn ns(n: u64) -> Duration {
        Duration(n * PS_PER_NS)
    }
    /// `n` microseconds.
    pub const fn us(n: u64) -> Duration {
        Duration(n * PS_PER_US)
    }
    /// `n` milliseconds.
    pub const fn ms(n: u64) -> Duration {
        Duration(n * PS_PER_MS)
    }
    /// `n` seconds.
    pub const fn s(n: u64) -> Duration {
        Duration(n * PS_PER_S)
    }
    /// The nearest whole picosecond to `seconds`; negative and NaN become zero, too large becomes [`Duration::MAX`].
    pub fn from_secs(seconds: f64) -> Duration {
        Duration(libm::round(seconds * PS_PER_S as f64) as u64)
    }
    /// Picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Seconds, as a real number.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
    /// True for zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The sum, or [`Duration::MAX`] where it would not fit.
    pub const fn saturating_add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
    /// The product, or [`Duration::MAX`] where it would not fit.
    pub const fn saturating_mul(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub<Time> for Time {
    type Output = Duration;
    /// Time elapsed; zero rather than a wrap-around when the right side is later.
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}
impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, d: Duration) -> Time {
        Time(self.0.saturating_sub(d.0))
    }
}
impl Add for Duration {
    type Output = Duration;
    fn add(self, d: Duration) -> Duration {
        self.saturating_add(d)
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub for Duration {
    type Output = Duration;
    fn sub(self, d: Duration) -> Duration {
        Duration(self.0.saturating_sub(d.0))
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, d: Duration) {
        *self = *self - d;
    }
}
impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, n: u64) -> Duration {
        self.saturating_mul(n)
    }
}
impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, n: u64) -> Duration {
        Duration(self.0 / n)
    }
}
impl Div for Duration {
    type Output = f64;
    fn div(self, d: Duration) -> f64 {
        self.0 as f64 / d.0 as f64
    }
}

impl fmt::Display for Duration {
    /// The largest unit in which the value has no needless digits: `50us`, `1.5ms`, `12ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0 => return f.write_str("0s"),
            n if n >= PS_PER_S => (PS_PER_S, "s"),
            n if n >= PS_PER_MS => (PS_PER_MS, "ms"),
            n if n >= PS_PER_US => (PS_PER_US, "us"),
            n if n >= PS_PER_NS => (PS_PER_NS, "ns"),
            _ => (1, "ps"),
        };
        write!(f, "{}{name}", self.0 as f64 / unit as f64)
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Duration(self.0), f)
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_difference_of_times_never_wraps() {
        assert_eq!(Time::from_ps(5) - Time::from_ps(9), Duration::ZERO);
        assert_eq!(Time::NEVER + Duration::s(1), Time::NEVER);
    }

    #[test]
    fn a_time_that_may_be_missing_takes_eight_bytes_and_never_is_none() {
        assert_eq!((size_of::<MaybeTime>(), size_of::<Option<Time>>()), (8, 16));
        for time in [None, Some(Time::ZERO), Some(Time::from_ps(u64::MAX - 1))] {
            assert_eq!(MaybeTime::from(time).get(), time);
        }
        assert_eq!(MaybeTime::from(Time::NEVER).get(), None);
    }

    #[test]
    fn durations_print_in_the_unit_a_person_would_choose() {
        assert_eq!(Duration::us(50).to_string(), "50us");
        assert_eq!(Duration::us(1500).to_string(), "1.5ms");
        assert_eq!(Duration::from_secs(0.000224).to_string(), "224us");
    }
}
