//! What a review may take: a little less than the API server waits for it, so that a denial has our words.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// A review ends so long before the API server gives up on us: 1.5 s, for the way there and back.
const MARGIN: Duration = Duration::from_millis(1_500);

/// See the module's words. Shown as its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    /// For one run of a flight, and for what is fetched and compiled.
    pub(super) limit: Duration,
    /// For all of it.
    pub(super) deadline: Instant,
}

impl Time {
    /// Of a review that the API server began to wait for now, and waits so many seconds for.
    pub(super) fn of(timeout: u8, now: Instant) -> Self {
        let limit = Duration::from_secs(timeout.into()).saturating_sub(MARGIN);
        Self {
            limit,
            deadline: now + limit + MARGIN / 2,
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.limit.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::{AIRWAY_TIMEOUT, FLIGHT_TIMEOUT, INSTANCE_TIMEOUT};

    #[test]
    fn each_review_ends_before_the_api_server_gives_up() {
        let now = Instant::now();
        for (timeout, words) in [
            (AIRWAY_TIMEOUT, "28.5 s"),
            (FLIGHT_TIMEOUT, "28.5 s"),
            (INSTANCE_TIMEOUT, "8.5 s"),
        ] {
            let time = Time::of(timeout, now);
            assert_eq!(time.to_string(), words);
            let waits = Duration::from_secs(timeout.into());
            assert!(time.deadline > now + time.limit && time.deadline < now + waits);
        }
    }
}
