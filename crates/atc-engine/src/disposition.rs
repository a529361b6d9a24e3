//! What follows from a report or an error: nothing, a retry, or nothing until the input changes.

use std::time::{Duration, Instant};

/// When to come back to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Settled, or a change of what it depends on will wake it.
    Wait,
    /// Again after this time, whatever happens: a drift interval, or a server that named a time.
    After(Duration),
    /// Settled, but what instances make keeps it busy: changes of that are left alone for a while.
    Paced {
        /// For so long.
        pause: Duration,
        /// Again after this time, whatever happens.
        again: Option<Duration>,
    },
    /// It failed in a way that may pass: again after a growing delay, see [`backoff`].
    Retry,
    /// It failed in a way that only a change of its input mends.
    Terminal,
}

impl Disposition {
    /// The same where an evaluation is wanted every so often, whatever this one came to. What is tried again keeps the pauses of
    /// its backoff: those are the shorter ones at first, and later there is a reason for them.
    #[must_use]
    pub(crate) fn at_least_every(self, interval: Option<Duration>) -> Self {
        let Some(interval) = interval else {
            return self;
        };
        match self {
            Self::Wait | Self::Terminal => Self::After(interval),
            Self::After(pause) => Self::After(pause.min(interval)),
            Self::Paced { pause, again } => Self::Paced {
                pause,
                again: Some(again.map_or(interval, |again| again.min(interval))),
            },
            Self::Retry => Self::Retry,
        }
    }
}

/// The first retry comes after about one second, as in the existing tool.
pub const BACKOFF_BASE: Duration = Duration::from_secs(1);
/// No retry is further off than this: 15 minutes, as in the existing tool.
pub const BACKOFF_CAP: Duration = Duration::from_mins(15);

/// The delay before the retry that follows `failures` failures in a row (1 = the first).
///
/// Doubles from [`BACKOFF_BASE`], is capped at [`BACKOFF_CAP`] and never overflows; `jitter` between 0 and 1 spreads
/// it over ±10 % so that many that failed together do not come back together.
pub fn backoff(failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(20);
    let plain = BACKOFF_BASE.saturating_mul(1 << doublings).min(BACKOFF_CAP);
    let jitter = if jitter.is_finite() {
        jitter.clamp(0.0, 1.0)
    } else {
        0.5
    };
    plain.mul_f64(0.9 + 0.2 * jitter)
}

/// How long to stay away from what is looked at in vain since `since`: as long as that is so already, [`BACKOFF_BASE`] at
/// least and `most` at most. So the pauses double, however often it is looked at in between for other reasons.
pub(crate) fn pause(since: &mut Option<Instant>, now: Instant, most: Duration) -> Duration {
    let began = *since.get_or_insert(now);
    let vain = now.saturating_duration_since(began);
    vain.max(BACKOFF_BASE).min(most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn grows_and_is_capped() {
        assert_eq!(backoff(1, 0.5), Duration::from_secs(1));
        assert_eq!(backoff(2, 0.5), Duration::from_secs(2));
        assert_eq!(backoff(5, 0.5), Duration::from_secs(16));
        assert_eq!(backoff(u32::MAX, 0.5), BACKOFF_CAP);
    }

    #[test]
    fn an_interval_holds_for_all_that_is_not_tried_again() {
        let seconds = |seconds| Disposition::After(Duration::from_secs(seconds));
        let check = |of: Disposition, every: Option<u64>, expect: Disposition| {
            let found = of.at_least_every(every.map(Duration::from_secs));
            assert_eq!(found, expect, "{of:?} {every:?}");
        };
        for of in [Disposition::Wait, Disposition::Terminal] {
            check(of, Some(7), seconds(7));
            check(of, None, of);
        }
        check(seconds(9), Some(7), seconds(7));
        check(seconds(5), Some(7), seconds(5));
        check(seconds(5), None, seconds(5));
        check(Disposition::Retry, Some(7), Disposition::Retry);
        let paced = |again: Option<u64>| Disposition::Paced {
            pause: Duration::from_secs(1),
            again: again.map(Duration::from_secs),
        };
        check(paced(None), Some(7), paced(Some(7)));
        check(paced(Some(9)), Some(7), paced(Some(7)));
        check(paced(Some(5)), Some(7), paced(Some(5)));
        check(paced(Some(5)), None, paced(Some(5)));
    }

    #[test]
    fn what_stays_as_it_is_is_looked_at_ever_more_seldom() {
        let most = Duration::from_secs(20);
        let (mut now, mut since) = (Instant::now(), None);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = pause(&mut since, now, most);
            // Looks in between change nothing.
            assert_eq!(super::pause(&mut since, now, most), pause);
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [1, 1, 2, 4, 8, 16, 20, 20]);
        // It was as it should be in between.
        since = None;
        assert_eq!(pause(&mut since, now, most), BACKOFF_BASE);
    }

    proptest! {
        #[test]
        fn no_number_of_failures_makes_it_overflow_w3(failures: u32, jitter: f64) {
            let delay = backoff(failures, jitter);
            prop_assert!(delay >= BACKOFF_BASE.mul_f64(0.9) && delay <= BACKOFF_CAP.mul_f64(1.1));
            let next = backoff(failures.saturating_add(1), 0.5);
            prop_assert!(next >= backoff(failures, 0.5));
        }

        #[test]
        fn jitter_spreads_little(failures in 1..30_u32, jitter: f64) {
            let (plain, delay) = (backoff(failures, 0.5), backoff(failures, jitter));
            prop_assert!(delay.abs_diff(plain) <= plain.mul_f64(0.1001), "{delay:?}");
        }
    }
}
