//! Work on a release with its lock, where the flag asks for it.

use std::time::Duration;

use atc_engine::release::cluster::{Cluster, LOCK_RENEWAL, Lock};

use crate::interrupt::Interrupt;
use crate::{holder, render};

/// How long giving the lock back may take; then it is left to run out.
const UNLOCK_LIMIT: Duration = Duration::from_secs(10);

/// A release, and who works on it.
pub(super) struct Scope<'a> {
    pub(super) verb: &'static str,
    pub(super) release: &'a str,
    pub(super) namespace: &'a str,
    /// Whether the lock is wanted.
    pub(super) lock: bool,
}

/// Does the work, which ends by itself at an interrupt; meanwhile the lock is held, if wanted.
pub(super) async fn run<T>(
    cluster: &Cluster,
    interrupt: &Interrupt,
    scope: &Scope<'_>,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let _holding = interrupt.hold();
    if !scope.lock {
        return work.await;
    }
    let who = holder::words(scope.verb);
    let lock = cluster.lock(scope.release, scope.namespace, &who).await?;
    let result = tokio::select! {
        result = work => result,
        never = renew(cluster, &lock) => match never {},
    };
    match tokio::time::timeout(UNLOCK_LIMIT, cluster.unlock(&lock)).await {
        Ok(Ok(())) => {}
        _ => render::warning(format!(
            "the lock of {} could not be given back: `yoke unlatch` removes it",
            super::named(scope.release, scope.namespace)
        )),
    }
    result
}

/// Renews the lock for as long as it is asked. One that is gone, or cannot be renewed now, stops nobody: it is a sign for
/// others, and the claim on the release is what keeps them away.
async fn renew(cluster: &Cluster, lock: &Lock) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(LOCK_RENEWAL).await;
        if let Err(error) = cluster.renew_lock(lock).await {
            tracing::debug!(%error, "the lock was not renewed");
        }
    }
}
