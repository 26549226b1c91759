//! When a timer that a host sets expires: exactly, or as the kernel's timer wheel has it.

use crate::rng::Stream;
use crate::stack::Stack;
use fanin_units::Duration;

const SECOND_PS: u64 = 1_000_000_000_000;
/// A level of the wheel covers so many steps of its own before the next takes over (`LVL_START`: LVL_SIZE - 1).
const LEVEL_STEPS: u64 = 63;
/// A step of a level is eight of the one below (`LVL_CLK_SHIFT`).
const LEVEL_SHIFT: u32 = 3;
const LEVELS: u32 = 9;

/// A span as a host counts it: in whole jiffies, rounded up, where its timers are the kernel's.
pub fn in_jiffies(span: Duration, stack: &Stack) -> Duration {
    Duration::from_ps(Clock { jiffy: jiffy(stack), phase: 0 }.rounded_up(span.ps()))
}

/// Length of a jiffy, ps; 0: timers are exact.
fn jiffy(stack: &Stack) -> u64 {
    if stack.timer_wheel { SECOND_PS / u64::from(stack.hz.max(1)) } else { 0 }
}

/// A host's clock for timers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Length of a jiffy, ps; 0: timers are exact.
    jiffy: u64,
    /// How far into a jiffy the host was when the run began.
    phase: u64,
}

impl Clock {
    /// Of a host whose timers are exact.
    pub const EXACT: Clock = Clock { jiffy: 0, phase: 0 };

    /// Of host number `host`, under the knobs of a stack. Hosts do not tick together unless `common_ticks` says so: each draws where it
    /// stands in a jiffy.
    pub fn new(stack: &Stack, seed: u64, host: u64) -> Clock {
        let jiffy = jiffy(stack);
        if jiffy == 0 || stack.common_ticks {
            return Clock { jiffy, phase: 0 };
        }
        Clock { jiffy, phase: Stream::new(seed, "jiffies", host).below(jiffy) }
    }

    /// The jiffy of `now` (ps); always the same of a host whose timers are exact.
    pub fn tick(self, now: u64) -> u64 {
        now.saturating_add(self.phase).checked_div(self.jiffy).unwrap_or(0)
    }

    /// The jiffies that have passed wholly when so much time has (ps), as a span (`nsecs_to_jiffies`); none where timers are exact.
    pub fn whole_jiffies(self, span: u64) -> Duration {
        Duration::from_ps(span - span.checked_rem(self.jiffy).unwrap_or(span))
    }

    /// The time between two moments (ps), as the host counts it: in jiffies that began in between (`tcp_jiffies32`).
    pub fn between(self, then: u64, now: u64) -> u64 {
        if self.jiffy == 0 { now - then } else { (self.tick(now) - self.tick(then)) * self.jiffy }
    }

    /// A span (ps) in whole jiffies, rounded up (`usecs_to_jiffies`).
    pub fn rounded_up(self, span: u64) -> u64 {
        if self.jiffy == 0 { span } else { span.div_ceil(self.jiffy).saturating_mul(self.jiffy) }
    }

    /// How much [`Self::between`] may say beyond what has passed, ps.
    pub fn step(self) -> u64 {
        self.jiffy
    }

    /// It ticks less than a thousand times a second, or its timers are exact.
    pub fn is_coarse(self) -> bool {
        self.jiffy == 0 || self.jiffy > SECOND_PS / 1000
    }

    /// When a timer set at `now` (ps) for `delay` expires: in jiffies, rounded up, and not before the wheel's slot is over
    /// (kernel/time/timer.c, `calc_wheel_index`).
    pub fn after(self, now: u64, delay: Duration) -> u64 {
        if self.jiffy == 0 {
            return now.saturating_add(delay.ps());
        }
        let jiffies = delay.ps().div_ceil(self.jiffy);
        let expires = now.saturating_add(self.phase) / self.jiffy + jiffies;
        let level = (0..LEVELS - 1).find(|l| jiffies < LEVEL_STEPS << (l * LEVEL_SHIFT)).unwrap_or(LEVELS - 1);
        let slot = ((expires >> (level * LEVEL_SHIFT)) + 1) << (level * LEVEL_SHIFT);
        slot.saturating_mul(self.jiffy).saturating_sub(self.phase).max(now + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hz: u32, now_us: u64, delay: Duration) -> f64 {
        let clock = Clock { jiffy: SECOND_PS / u64::from(hz), phase: 0 };
        clock.after(now_us * 1_000_000, delay) as f64 / 1e9
    }

    /// Measured with `ip route ... rto_min` at HZ=250: 2 ms gives 8 ms at most, 10 ms gives 16.
    #[test]
    fn timers_are_one_to_two_jiffies_late() {
        assert_eq!(at(250, 0, Duration::us(2200)), 8.0);
        assert_eq!(at(250, 3999, Duration::us(2200)), 8.0);
        assert_eq!(at(250, 0, Duration::us(10_200)), 16.0);
        assert_eq!(at(250, 0, Duration::us(200_300)), 208.0);
        assert_eq!(at(1000, 0, Duration::us(2300)), 4.0);
    }

    #[test]
    fn a_kernel_counts_the_floor_of_its_timeout_in_jiffies() {
        let linux = Stack::linux();
        assert_eq!(in_jiffies(Duration::ms(5), &linux), Duration::ms(8));
        assert_eq!(in_jiffies(Duration::ms(200), &linux), Duration::ms(200));
        assert_eq!(in_jiffies(Duration::ms(5), &Stack { hz: 1000, ..linux }), Duration::ms(5));
        assert_eq!(in_jiffies(Duration::us(5_500), &Stack::rfc()), Duration::us(5_500));
    }

    /// 250 jiffies are on the wheel's second level, whose step is eight jiffies.
    #[test]
    fn long_timers_are_coarser() {
        assert_eq!(at(250, 0, Duration::s(1)), 1024.0);
        assert_eq!(at(1000, 0, Duration::us(200_300)), 208.0);
    }

    #[test]
    fn time_passes_with_the_ticks() {
        let ms = |n: u64| n * SECOND_PS / 1000;
        let clock = Clock { jiffy: ms(4), phase: ms(3) };
        assert_eq!([ms(1) - 1, ms(1), ms(5)].map(|now| clock.between(0, now)), [0, ms(4), ms(8)]);
        assert_eq!([ms(8), ms(8) + 1].map(|span| clock.rounded_up(span)), [ms(8), ms(12)]);
        assert_eq!((Clock::EXACT.between(3, 10), Clock::EXACT.rounded_up(7)), (7, 7));
    }

    #[test]
    fn jiffies_that_are_not_over_do_not_count() {
        let clock = Clock { jiffy: SECOND_PS / 250, phase: 0 };
        let ms = |ms| Duration::ms(ms).ps();
        assert_eq!([3, 4, 11, 12].map(|n| clock.whole_jiffies(ms(n)).ps()), [0, ms(4), ms(8), ms(12)]);
        assert_eq!(Clock::EXACT.whole_jiffies(ms(12)), Duration::ZERO);
    }

    #[test]
    fn without_a_wheel_timers_are_exact() {
        let clock = Clock::new(&Stack::rfc(), 1, 0);
        assert_eq!(clock.after(5, Duration::us(1)), 1_000_005);
    }
}
