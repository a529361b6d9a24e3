//! Waiting for the world to become what a test expects, or to stay as it is.

use std::{
    fmt::Debug,
    future::Future,
    time::{Duration, Instant},
};

use anyhow::Result;

/// Pause between two looks.
const EVERY: Duration = Duration::from_millis(30);

/// Looks again and again until `look` answers with something, and returns that. An error of `look` is no end: the
/// world may not be that far.
///
/// # Panics
///
/// When that did not happen within `limit`; `what` and the last error are in the message.
pub async fn eventually<T, F>(limit: Duration, what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<Option<T>>>,
{
    let begin = Instant::now();
    loop {
        let last = match look().await {
            Ok(Some(found)) => return found,
            Ok(None) => String::from("not so"),
            Err(error) => format!("{error:#}"),
        };
        assert!(
            begin.elapsed() < limit,
            "{what}: not within {limit:?}; last: {last}"
        );
        tokio::time::sleep(EVERY).await;
    }
}

/// Looks again and again for as long as `span`, and fails as soon as `look` answers with something.
///
/// # Panics
///
/// When it did, or could not be looked.
#[expect(clippy::panic, reason = "it is an assertion")]
pub async fn never<T: Debug, F>(span: Duration, what: &str, mut look: impl FnMut() -> F)
where
    F: Future<Output = Result<Option<T>>>,
{
    let begin = Instant::now();
    while begin.elapsed() < span {
        match look().await {
            Ok(None) => tokio::time::sleep(EVERY).await,
            Ok(Some(found)) => panic!("{what}: after {:?}: {found:?}", begin.elapsed()),
            Err(error) => panic!("{what}: {error:#}"),
        }
    }
}
