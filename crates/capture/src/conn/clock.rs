//! The sender's own clock, as its time stamps tell it (RFC 7323): how long it really was silent, wherever its packets were held up since.

use crate::sent::TICK;
use serde::{Deserialize, Serialize};

/// The clock's rate is not known before so many of its ticks have passed.
const FEWEST_TICKS: u32 = 50;

/// A sender's clock beside the tap's.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Clock {
    /// The first and the last time stamp on data, and when they passed the tap.
    first: Option<(u32, u64)>,
    last: Option<(u32, u64)>,
}

impl Clock {
    /// Data with the time stamp `stamp` passed.
    #[inline]
    pub fn passed(&mut self, stamp: u32, at: u64) {
        self.first.get_or_insert((stamp, at));
        self.last = Some((stamp, at));
    }

    /// How much later than its tick what has the time stamp `stamp` passed, where a tick is a [`TICK`] and the first one was at zero.
    #[inline]
    pub fn late(&self, stamp: u32, at: u64) -> Option<i64> {
        let (first, _) = self.first?;
        Some(at as i64 - i64::from(stamp.wrapping_sub(first) as i32) * TICK as i64)
    }

    /// Ticks of the sender's clock, and the nanoseconds that they took by the tap's.
    pub fn ran(&self) -> Option<(u32, u64)> {
        let ((first, began), (last, at)) = self.first.zip(self.last)?;
        let ticks = last.wrapping_sub(first);
        ((FEWEST_TICKS..1 << 31).contains(&ticks) && at > began).then(|| (ticks, at - began))
    }

    /// For how long, at most, the sender was silent before it sent what has the time stamp `stamp`. None where its clock's rate is not known.
    #[inline]
    pub fn silent_for(&self, stamp: u32) -> Option<u64> {
        let ((first, began), (last, at)) = self.first.zip(self.last)?;
        let ticks = last.wrapping_sub(first);
        if !(FEWEST_TICKS..1 << 31).contains(&ticks) || at <= began {
            return None;
        }
        let since = stamp.wrapping_sub(last);
        // A tick more: it may have sent just after one and just before another.
        (since < 1 << 31).then(|| (u128::from(at - began) * (u128::from(since) + 1) / u128::from(ticks)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_time_once_the_rate_is_known() {
        let mut clock = Clock::default();
        clock.passed(u32::MAX - 9, 0);
        clock.passed(0, 10_000_000);
        assert_eq!(clock.silent_for(3), None);
        clock.passed(90, 100_000_000);
        assert_eq!(clock.silent_for(90), Some(1_000_000));
        assert_eq!(clock.silent_for(95), Some(6_000_000));
        assert_eq!(clock.silent_for(80), None, "a copy of something older");
    }

    /// RFC 7323 section 5.2: of 32 bits, half are later than a time stamp.
    #[test]
    fn a_time_stamp_that_is_later_by_half_of_all_is_earlier() {
        let mut clock = Clock::default();
        clock.passed(0, 0);
        clock.passed(100, 100);
        let half = 1_u32 << 31;
        assert_eq!([half + 99, half + 100].map(|stamp| clock.silent_for(stamp)), [Some(u64::from(half)), None]);
    }

    /// The rate of a clock of milliseconds that is read to one tick is known to 2 % after 50 of them.
    #[test]
    fn fifty_ticks_show_a_rate_and_fewer_do_not() {
        let after = |ticks: u32| {
            let mut clock = Clock::default();
            clock.passed(7, 0);
            clock.passed(7 + ticks, u64::from(ticks) * 1_000_000);
            (clock.silent_for(7 + ticks), clock.ran())
        };
        assert_eq!(after(49), (None, None));
        assert_eq!(after(50), (Some(1_000_000), Some((50, 50_000_000))));
    }
}
