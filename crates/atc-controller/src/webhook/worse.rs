//! The review of an edit of nothing but metadata: it is refused only if the object was good before and is not with it. What
//! was wrong before, as when the flight is another one by now, is no reason to refuse a label.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

/// The object is tried so long with the edit before it is tried without. 0.5 s: nearly all are done by then and need no second
/// run, and a second one has all its time, too, before the API server gives up.
const HEAD_START: Duration = Duration::from_millis(500);

/// Whether the object with the edit is as good as it was. The error says what is wrong with it now; `None`: that it was not
/// known in time.
///
/// Both are tried side by side, so that a flight that hangs with and without the edit leaves time to see it do so.
pub(super) async fn refuse<E>(
    now: impl Future<Output = Result<(), E>>,
    before: impl Future<Output = Result<(), E>>,
    deadline: Instant,
) -> Result<(), Option<E>> {
    let mut now = pin!(in_time(now, deadline));
    let mut before = pin!(in_time(before, deadline));
    let mut answer = timeout(HEAD_START, &mut now).await.ok();
    if answer.is_none() {
        tokio::select! {
            known = &mut now => answer = Some(known),
            known = &mut before => {
                // It was bad before: whatever it is now is no news.
                return if known.is_ok() { now.await } else { Ok(()) };
            }
        }
    }
    let Some(Err(why)) = answer else {
        return Ok(());
    };
    match before.await {
        Ok(()) => Err(why),
        Err(_) => Ok(()),
    }
}

async fn in_time<E>(
    tried: impl Future<Output = Result<(), E>>,
    deadline: Instant,
) -> Result<(), Option<E>> {
    match timeout_at(deadline, tried).await {
        Ok(answer) => answer.map_err(Some),
        Err(_) => Err(None),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::sleep;

    use super::*;

    type Answer = Result<(), &'static str>;

    const LIMIT: Duration = Duration::from_secs(8);
    const FINE: Answer = Ok(());
    const BAD: Answer = Err("bad");
    /// Milliseconds.
    const NEVER: u64 = 100_000;

    #[tokio::test(start_paused = true)]
    async fn only_what_was_good_can_become_worse() {
        let tried = |(after, answer): (u64, Answer)| async move {
            sleep(Duration::from_millis(after)).await;
            answer
        };
        let check = async |now: (u64, Answer),
                           before: (u64, Answer),
                           expect: Result<(), Option<&'static str>>,
                           within: u64| {
            let begin = Instant::now();
            let found = refuse(tried(now), tried(before), begin + LIMIT).await;
            let took = begin.elapsed();
            assert_eq!(found, expect, "{now:?} {before:?}");
            assert!(
                took <= Duration::from_millis(within + 5),
                "{now:?} {before:?}: {took:?}"
            );
        };
        // It is good: nothing else counts.
        check((10, FINE), (0, BAD), Ok(()), 10).await;
        check((10, FINE), (NEVER, FINE), Ok(()), 10).await;
        check((3_000, FINE), (10, FINE), Ok(()), 3_000).await;
        check((3_000, FINE), (NEVER, FINE), Ok(()), 3_000).await;
        // It was bad already: that is known without waiting for more.
        check((10, BAD), (10, BAD), Ok(()), 20).await;
        check((3_000, BAD), (10, BAD), Ok(()), 510).await;
        check((NEVER, FINE), (10, BAD), Ok(()), 510).await;
        // It was good, and is not any more.
        check((10, BAD), (10, FINE), Err(Some("bad")), 20).await;
        check((10, BAD), (7_000, FINE), Err(Some("bad")), 7_010).await;
        check((3_000, BAD), (10, FINE), Err(Some("bad")), 3_000).await;
        check((NEVER, FINE), (10, FINE), Err(None), 8_000).await;
        check((NEVER, FINE), (7_000, FINE), Err(None), 8_000).await;
        // It hangs, and did so before.
        check((NEVER, FINE), (NEVER, FINE), Ok(()), 8_000).await;
        check((10, BAD), (NEVER, FINE), Ok(()), 8_000).await;
        check((7_900, BAD), (7_450, BAD), Ok(()), 7_950).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_good_at_once_is_tried_once() {
        let tried = Cell::new(false);
        let second = async {
            tried.set(true);
            FINE
        };
        let begin = Instant::now();
        let first = async {
            sleep(HEAD_START / 2).await;
            FINE
        };
        assert_eq!(refuse(first, second, begin + LIMIT).await, Ok(()));
        assert!(!tried.get(), "nothing is to be compared");
    }
}
