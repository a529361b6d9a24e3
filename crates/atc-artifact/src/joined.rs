//! Work that is done once, however many ask for it at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};

use crate::memory::lock;

/// What is under way, by what it is for.
pub(crate) struct Joined<T: Clone>(Mutex<HashMap<String, Running<T>>>);

/// Work under way; it gives nothing where its task was ended.
type Running<T> = Shared<BoxFuture<'static, Option<T>>>;

impl<T: Clone> Default for Joined<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> std::fmt::Debug for Joined<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Joined").finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> Joined<T> {
    /// Joins the work for `key` that is under way, or begins it; neither where nobody is at it and there is something
    /// `instead`, which is then the error. Gives nothing where the process is stopping, or the work panicked.
    ///
    /// The work runs on a task of its own, so that it outlives whoever asked first.
    pub(crate) async fn join_or_start<I, W>(
        self: &Arc<Self>,
        key: &str,
        instead: impl FnOnce() -> Option<I>,
        work: impl FnOnce() -> W,
    ) -> Result<Option<T>, I>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let result = self.enter(key, instead, work)?.await;
        if result.is_none() {
            // Its task may have been dropped before it could take itself off the list.
            lock(&self.0).remove(key);
        }
        Ok(result)
    }

    /// Whether nothing is under way.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    fn enter<I, W>(
        self: &Arc<Self>,
        key: &str,
        instead: impl FnOnce() -> Option<I>,
        work: impl FnOnce() -> W,
    ) -> Result<Running<T>, I>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let mut all = lock(&self.0);
        if let Some(running) = all.get(key) {
            return Ok(running.clone());
        }
        if let Some(instead) = instead() {
            return Err(instead);
        }
        let (work, end) = (work(), (Arc::clone(self), key.to_owned()));
        let task = tokio::spawn(async move {
            // Also when the work panics: who asks next must not join what is over.
            let _entered = Entered(end.0, end.1);
            work.await
        });
        let running = task.map(Result::ok).boxed().shared();
        all.insert(key.to_owned(), running.clone());
        Ok(running)
    }
}

/// Takes work off the list when it ends, in whatever way.
struct Entered<T: Clone>(Arc<Joined<T>>, String);

impl<T: Clone> Drop for Entered<T> {
    fn drop(&mut self) {
        lock(&self.0.0).remove(&self.1);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn nothing() -> Option<Infallible> {
        None
    }

    #[tokio::test]
    async fn many_get_the_result_of_one() {
        let (joined, count) = (Arc::new(Joined::default()), Arc::new(AtomicU32::new(0)));
        let ask = async |key: &'static str| {
            let count = Arc::clone(&count);
            let work = || async move {
                tokio::task::yield_now().await;
                count.fetch_add(1, Ordering::Relaxed)
            };
            let Ok(result) = joined.join_or_start(key, nothing, work).await;
            result
        };
        let all = tokio::join!(ask("a"), ask("a"), ask("a"));
        assert_eq!(all, (Some(0), Some(0), Some(0)));
        // It is over: the next one begins anew.
        assert_eq!(ask("a").await, Some(1));
        let (a, b) = tokio::join!(ask("a"), ask("b"));
        assert_ne!(a, b, "each for its own");
        assert!(joined.is_empty());
        let instead = joined
            .join_or_start("a", || Some("there"), async || 7)
            .await;
        assert_eq!(instead, Err("there"));
    }

    #[tokio::test]
    async fn who_gives_up_ends_nothing_and_a_panic_is_no_trap() {
        let joined = Arc::new(Joined::default());
        let (end, ended) = tokio::sync::oneshot::channel::<u32>();
        let first = joined.join_or_start("a", nothing, || async move { ended.await.unwrap() });
        let mut first = Box::pin(first);
        assert!(futures::poll!(&mut first).is_pending());
        drop(first);
        let second = joined.join_or_start("a", nothing, async || 0);
        end.send(5).unwrap();
        assert_eq!(second.await, Ok(Some(5)));
        let broken = joined.join_or_start("a", nothing, || async { panic!("on purpose") });
        assert_eq!(broken.await, Ok(None));
        assert_eq!(
            joined.join_or_start("a", nothing, async || 6).await,
            Ok(Some(6))
        );
    }
}
