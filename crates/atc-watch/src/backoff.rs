//! How long a watch waits before it tries again.

use std::time::Duration;

/// The first wait, before jitter.
const FIRST: Duration = Duration::from_millis(500);
/// No wait is longer: every watch is back within this time (and one attempt) after the API server is.
pub(crate) const CAP: Duration = Duration::from_secs(30);

/// Doubling waits of one watch, each between half and whole of 0.5 s, 1 s, 2 s … 30 s.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure and returns the wait after it. `random` is between 0 and 1.
    pub(crate) fn next(&mut self, random: f64) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.failures.min(10)).min(CAP);
        self.failures = self.failures.saturating_add(1);
        whole.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_cap_and_never_beyond() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..8).map(|_| backoff.next(1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        backoff.reset();
        assert_eq!(backoff.next(0.0), Duration::from_millis(250));
        backoff.failures = u32::MAX;
        assert_eq!(backoff.next(f64::MAX), CAP);
    }
}
