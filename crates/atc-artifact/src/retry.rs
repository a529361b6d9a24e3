//! Trying again: what is tried again, after how long, and when that ends.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use tokio::time::Instant;

use crate::error::ArtifactError;
use crate::gate::Slot;
use crate::http::Limits;

/// How often a request is sent while its server is in trouble, the first time included, unless told otherwise: 3.
pub const DEFAULT_TRIES: u32 = 3;

/// The pause before the second try: 250 ms; each later one is four times as long. A restarting server needs a second
/// or so; whoever waits for an admission has ten.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// By how much a pause may be shorter than said: up to a quarter, so that many who failed together do not return so.
const JITTER: f64 = 0.25;

/// A failed try, and how long the server wants not to be asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ArtifactError,
    after: Option<Duration>,
}

impl From<ArtifactError> for Failure {
    fn from(error: ArtifactError) -> Self {
        Self { error, after: None }
    }
}

impl Failure {
    /// A server answered that it has no answer.
    pub(crate) fn answered(error: ArtifactError, headers: &HeaderMap) -> Self {
        let after = headers
            .get(RETRY_AFTER)
            .and_then(|value| retry_after(value.to_str().ok()?, SystemTime::now()));
        Self { error, after }
    }
}

/// Tries until it works, fails for good, or it is `end`. The place of the download is left between two tries.
pub(crate) async fn retry<T, Try>(
    limits: &Limits,
    end: Instant,
    location: &str,
    slot: Option<&Slot>,
    attempt: impl Fn() -> Try,
) -> Result<T, ArtifactError>
where
    Try: Future<Output = Result<T, Failure>>,
{
    let mut nth = 1;
    loop {
        let one = async {
            if let Some(slot) = slot {
                slot.take().await;
            }
            attempt().await
        };
        let result = tokio::time::timeout_at(end, one).await;
        let failure = match result {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(failure)) => failure,
            Err(_) => {
                return Err(ArtifactError::Timeout {
                    location: location.to_owned(),
                    limit: limits.total,
                });
            }
        };
        let left = end.saturating_duration_since(Instant::now());
        let Some(pause) = pause(&failure, nth, limits.tries, left, rand::random()) else {
            return Err(failure.error);
        };
        tracing::debug!(
            location,
            error = &failure.error as &dyn std::error::Error,
            pause_ms = pause.as_millis(),
            "trying again"
        );
        if let Some(slot) = slot {
            slot.leave();
        }
        tokio::time::sleep(pause).await;
        nth += 1;
    }
}

/// How long to wait after the `nth` try, or nothing if that was the last. `random` is between 0 and 1.
fn pause(failure: &Failure, nth: u32, tries: u32, left: Duration, random: f64) -> Option<Duration> {
    if nth >= tries || !failure.error.is_worth_another_try() {
        return None;
    }
    let usual = FIRST_PAUSE
        .saturating_mul(4_u32.saturating_pow(nth.saturating_sub(1)))
        .min(left)
        .mul_f64(1.0 - JITTER * random.clamp(0.0, 1.0));
    // Earlier than the server wants is of no use; later than the end neither.
    let pause = failure.after.map_or(usual, |after| after.max(usual));
    (pause < left).then_some(pause)
}

/// `Retry-After`: seconds, or a date.
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests;
