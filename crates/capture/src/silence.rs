//! Whether time stamps leap forward: whether nothing is in the file for longer than TCP is silent.

/// What is not acknowledged is sent again sooner: Linux waits for two minutes at most (`TCP_RTO_MAX`), others for 64 s.
const REPEATED: u64 = 240_000_000_000;
/// Firewalls and translators forget a connection that was silent for so long (`nf_conntrack_tcp_timeout_established`), so that no capture waits for one.
const FORGOTTEN: u64 = 432_000_000_000_000;

/// Stretches of the capture without a segment.
#[derive(Default)]
pub(crate) struct Silence {
    last: u64,
    /// When the last one began that was longer than [`REPEATED`], and how long it was.
    long: Option<(u64, u64)>,
    /// The longest that TCP cannot have been silent for, ns; zero: none.
    pub leap: u64,
}

impl Silence {
    /// A segment; they come in order of time.
    #[inline]
    pub fn segment(&mut self, at: u64) {
        let silent = at - self.last;
        if silent > REPEATED {
            self.long = Some((self.last, silent));
            if silent > FORGOTTEN {
                self.leap = self.leap.max(silent);
            }
        }
        self.last = at;
    }

    /// A segment of a connection whose last one passed at `before`, when it had so many bytes under way.
    #[inline]
    pub fn goes_on(&mut self, before: u64, in_flight: impl FnOnce() -> u64) {
        if let Some((from, silent)) = self.long
            && before <= from
            && in_flight() > 0
        {
            self.leap = self.leap.max(silent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The leap that is found where all is silent for so many seconds, while so many bytes are under way.
    fn leap(seconds: u64, in_flight: u64) -> u64 {
        let mut silence = Silence::default();
        for at in [0, 5, 5 + seconds, 6 + seconds] {
            silence.segment(at * SECOND);
            silence.goes_on(at.min(5) * SECOND, || in_flight);
        }
        silence.leap / SECOND
    }

    #[test]
    fn four_minutes_without_a_repetition_are_none_and_five_days_are_none_whatever_was_under_way() {
        assert_eq!([leap(240, 1), leap(241, 0)], [0, 0]);
        assert_eq!(leap(241, 1), 241);
        assert_eq!([leap(432_000, 0), leap(432_001, 0)], [0, 432_001]);
        assert_eq!(leap(20 * 365 * 86_400, 0), 20 * 365 * 86_400);
    }

    #[test]
    fn a_connection_that_was_silent_while_others_spoke_may_have_lost_its_last_acknowledgement_at_the_tap() {
        let mut silence = Silence::default();
        for at in 0..1_000 {
            silence.segment(at * SECOND);
        }
        silence.goes_on(0, || 1);
        assert_eq!(silence.leap, 0);
        silence.segment(2_000 * SECOND);
        silence.goes_on(1_500 * SECOND, || 1);
        assert_eq!(silence.leap, 0, "it began after the silence");
        silence.goes_on(999 * SECOND, || 1);
        assert_eq!(silence.leap, 1_001 * SECOND);
    }
}
