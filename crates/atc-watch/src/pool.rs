//! One watch for each kind, each a task with a backoff of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use atc_api::GroupKind;
use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::watch::{Feed, LISTS_AT_ONCE, Shared, Status, Watch};

/// The running watches. A kind that is asked for again and again is watched once.
pub(crate) struct WatchPool {
    client: Client,
    runtime: Handle,
    lists: Arc<Semaphore>,
    running: Mutex<HashMap<GroupKind, Running>>,
}

struct Running {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl WatchPool {
    pub(crate) fn new(client: Client, runtime: Handle) -> Self {
        let lists = Arc::new(Semaphore::new(LISTS_AT_ONCE));
        Self {
            client,
            runtime,
            lists,
            running: Mutex::new(HashMap::new()),
        }
    }

    /// Starts the watch of a kind, unless it runs. If it waits for the kind to come (back), it looks at once.
    pub(crate) fn ensure(&self, kind: &GroupKind, feed: &Weak<dyn Feed>) {
        let mut running = self.running();
        if let Some(watch) = running.get(kind)
            && !watch.task.is_finished()
        {
            watch.shared.nudge();
            return;
        }
        let shared = Arc::new(Shared::new());
        let watch = Watch {
            client: self.client.clone(),
            kind: kind.clone(),
            feed: feed.clone(),
            shared: Arc::clone(&shared),
            lists: Arc::clone(&self.lists),
        };
        tracing::debug!(%kind, "watch begins");
        let task = self.runtime.spawn(watch.run());
        running.insert(kind.clone(), Running { shared, task });
    }

    /// Starts a watch again whose task has ended, which only a fault of this program can bring about.
    pub(crate) fn restart_if_dead(&self, kind: &GroupKind, feed: &Weak<dyn Feed>) {
        let dead = self
            .running()
            .get(kind)
            .is_none_or(|watch| watch.task.is_finished());
        if dead {
            tracing::error!(%kind, "a watch had ended by itself");
            self.ensure(kind, feed);
        }
    }

    /// If the watch of this kind waits for the kind to come (back), it looks at once.
    pub(crate) fn nudge(&self, kind: &GroupKind) {
        if let Some(watch) = self.running().get(kind) {
            watch.shared.nudge();
        }
    }

    pub(crate) fn stop(&self, kind: &GroupKind) {
        if self.running().remove(kind).is_some() {
            tracing::debug!(%kind, "watch ends, nobody needs it");
        }
    }

    pub(crate) fn status(&self, kind: &GroupKind) -> Option<Status> {
        self.running()
            .get(kind)
            .map(|watch| watch.shared.status().clone())
    }

    pub(crate) fn kinds(&self) -> Vec<GroupKind> {
        self.running().keys().cloned().collect()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<GroupKind, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
