//! ● When a call is worth another try, and after how long.
//!
//! Every call of this module may be repeated: reads, server-side apply, deletes that name a uid, patches that carry a
//! `resourceVersion` or a `test`, and creates that tolerate "already exists". A repeat after a lost answer at worst
//! meets its own first try.

use std::time::Duration;

/// First delay of a failure for which the server named none; doubles each time.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Longest delay that is not the server's own.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// Tries after the first one when the server named no delay: about 3 s in all, then the caller's own backoff is better.
const MAX_BLIND_RETRIES: u32 = 5;
/// Tries after the first one when a call ran into its time limit: a dead connection is left once, not for ever.
const MAX_TIMEOUT_RETRIES: u32 = 1;
/// A delay that the server asks for beyond this is answered by giving up, with the delay in the error.
pub(super) const MAX_TOLD_DELAY: Duration = Duration::from_secs(30);
/// Most that is added to a delay which the server named, so that callers who were refused together do not return
/// together.
const TOLD_JITTER: Duration = Duration::from_millis(250);

/// Why a try failed, as far as a retry is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server is busy or away (429, 503, 504, a webhook that could not be called), and perhaps said for how long.
    Busy(Option<Duration>),
    /// The connection could not be made, or broke.
    Connection,
    /// The call passed its time limit.
    TimedOut,
    /// An answer that another try would not change.
    Final,
}

/// How long to wait before the next try; `None` when there is to be none.
///
/// `retries` were made already, `spent` is the time since the first try, `patience` bounds that time, `chance` is a
/// random number in `0.0..1.0`.
pub(super) fn delay(
    failure: Failure,
    retries: u32,
    spent: Duration,
    patience: Duration,
    chance: f64,
) -> Option<Duration> {
    let wait = match failure {
        Failure::Final => return None,
        Failure::TimedOut if retries >= MAX_TIMEOUT_RETRIES => return None,
        Failure::Busy(Some(told)) if told > MAX_TOLD_DELAY => return None,
        Failure::Busy(Some(told)) => told + TOLD_JITTER.mul_f64(chance.clamp(0.0, 1.0)),
        Failure::Busy(None) | Failure::Connection | Failure::TimedOut => {
            if retries >= MAX_BLIND_RETRIES {
                return None;
            }
            let full = FIRST_DELAY
                .saturating_mul(1 << retries.min(10))
                .min(MAX_DELAY);
            full.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
        }
    };
    (spent.saturating_add(wait) <= patience).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(90);

    fn check(
        failure: Failure,
        retries: u32,
        spent: u64,
        expect: Option<&std::ops::RangeInclusive<u64>>,
    ) {
        for chance in [0.0, 0.5, 0.999] {
            let got = delay(
                failure,
                retries,
                Duration::from_secs(spent),
                PATIENCE,
                chance,
            );
            match expect {
                None => assert_eq!(got, None, "{failure:?} {retries} {spent}"),
                Some(range) => {
                    let ms = u64::try_from(got.expect("a retry").as_millis()).expect("small");
                    assert!(range.contains(&ms), "{failure:?} {retries}: {ms} ms");
                }
            }
        }
    }

    #[test]
    fn delays() {
        check(Failure::Final, 0, 0, None);
        check(Failure::Connection, 0, 0, Some(&(50..=100)));
        check(Failure::Connection, 3, 1, Some(&(400..=800)));
        check(Failure::Connection, 4, 1, Some(&(800..=1600)));
        check(Failure::Busy(None), 5, 3, None);
        check(Failure::TimedOut, 0, 30, Some(&(50..=100)));
        check(Failure::TimedOut, 1, 60, None);
        check(
            Failure::Busy(Some(Duration::from_secs(7))),
            8,
            60,
            Some(&(7000..=7250)),
        );
        check(Failure::Busy(Some(Duration::from_secs(7))), 8, 84, None);
        check(Failure::Busy(Some(Duration::from_secs(31))), 0, 0, None);
        check(
            Failure::Busy(Some(Duration::ZERO)),
            u32::MAX,
            0,
            Some(&(0..=250)),
        );
    }
}
