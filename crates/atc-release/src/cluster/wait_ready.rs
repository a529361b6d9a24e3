//! Waiting until objects are ready: watches tell when to look, a slow poll covers what no watch shows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};

use super::judge::Judged;
use super::{Cluster, ClusterError};
use crate::object::Object;
use crate::readiness::Verdict;

/// Watches at once for one wait; objects of further kinds and namespaces are only polled. Each watch is a connection.
const MAX_WATCHES: usize = 16;
/// Shortest time between two looks, so that a burst of changes is one look.
const SETTLE: Duration = Duration::from_millis(25);

/// Longest time between two looks at an object whose readiness rests on others, which are not watched here: the
/// EndpointSlices of a Service. Two small reads each.
const UNSEEN: Duration = Duration::from_millis(250);

/// How long to wait, and how often to look without being told.
#[derive(Clone, Copy, Debug)]
pub struct WaitOptions {
    /// Most time for all objects together. Every object is looked at once even if it is zero. Default 30 s.
    pub limit: Duration,
    /// Time between two looks when no watch shows a change. Default 2 s, as in the existing tool; at least 25 ms.
    pub poll: Duration,
}

impl Default for WaitOptions {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(30),
            poll: Duration::from_secs(2),
        }
    }
}

/// An object that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready {
    /// Its canonical name.
    pub object: String,
    /// What it lacks, in one line.
    pub why: String,
}

/// Why the wait ended without all objects being ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time was up.
    #[error("not ready within {limit:?}: {}", list(objects))]
    Late {
        /// The limit.
        limit: Duration,
        /// What is not ready, in the order of the objects; never empty.
        objects: Vec<Unready>,
    },
    /// Objects failed for good: waiting longer is of no use.
    #[error("failed: {}", list(objects))]
    Failed {
        /// What failed, in the order of the objects; never empty.
        objects: Vec<Unready>,
    },
    /// An object can't be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

fn list(objects: &[Unready]) -> String {
    let one = |unready: &Unready| format!("{}: {}", unready.object, unready.why);
    objects.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Indices of objects that changed.
type Changes = SelectAll<BoxStream<'static, usize>>;

impl Cluster {
    /// Waits until all these objects are ready; `progress` is told what is not, whenever that changes. Returns the
    /// objects as they were when they were found ready.
    ///
    /// # Errors
    /// [`WaitError::Failed`] as soon as one has failed for good, [`WaitError::Late`] when the time is up. Objects that
    /// can't be read for a passing reason count as not ready.
    pub async fn wait_ready(
        &self,
        objects: &[&Object],
        options: WaitOptions,
        mut progress: impl FnMut(&[Unready]),
    ) -> Result<Vec<Judged>, WaitError> {
        let deadline = Instant::now() + options.limit;
        let mut judged: Vec<Option<Judged>> = vec![None; objects.len()];
        let mut due: BTreeSet<usize> = (0..objects.len()).collect();
        let mut told = Vec::new();
        let mut changes = None;
        loop {
            self.look_at(objects, &due, &mut judged).await?;
            let unready = unready(objects, &judged);
            if unready.is_empty() {
                return Ok(judged.into_iter().flatten().collect());
            }
            if unready != told {
                progress(&unready);
                told = unready;
            }
            let now = Instant::now();
            if now >= deadline {
                return Err(WaitError::Late {
                    limit: options.limit,
                    objects: told,
                });
            }
            if changes.is_none() {
                changes = Some(self.changes(objects, &judged).await);
            }
            tokio::time::sleep(SETTLE.min(deadline - now)).await;
            let pause = pause(&judged, options.poll)
                .min(deadline.saturating_duration_since(Instant::now()));
            due = next_changes(changes.as_mut(), pause).await;
            if due.is_empty() {
                due = (0..objects.len()).collect();
            }
            due.retain(|index| {
                judged
                    .get(*index)
                    .is_some_and(|judged| !is_ready(judged.as_ref()))
            });
        }
    }

    /// Looks at the due objects.
    async fn look_at(
        &self,
        objects: &[&Object],
        due: &BTreeSet<usize>,
        judged: &mut [Option<Judged>],
    ) -> Result<(), WaitError> {
        let wanted: Vec<&Object> = due
            .iter()
            .filter_map(|index| objects.get(*index).copied())
            .collect();
        let mut failed = Vec::new();
        for (index, look) in due.iter().zip(self.look_all(&wanted).await) {
            let look = match look {
                Ok(look) => look,
                Err(error) if error.kind().is_transient() => Judged {
                    live: None,
                    judgement: Verdict::InProgress(error.to_string()).into(),
                },
                Err(error) => return Err(error.into()),
            };
            if let (Verdict::Failed(why), Some(object)) =
                (&look.judgement.verdict, objects.get(*index))
            {
                failed.push(Unready {
                    object: object.canonical(),
                    why: why.clone(),
                });
            }
            if let Some(place) = judged.get_mut(*index) {
                *place = Some(look);
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(WaitError::Failed { objects: failed })
        }
    }

    /// Watches of the kinds and namespaces of what is not ready yet.
    async fn changes(&self, objects: &[&Object], judged: &[Option<Judged>]) -> Changes {
        let mut groups: BTreeMap<(&str, &str, &str), BTreeMap<String, usize>> = BTreeMap::new();
        for (index, object) in objects
            .iter()
            .enumerate()
            .filter(|(index, _)| !is_ready(judged.get(*index).and_then(Option::as_ref)))
        {
            let key = (
                object.api_version(),
                object.kind(),
                object.namespace().unwrap_or_default(),
            );
            groups
                .entry(key)
                .or_default()
                .insert(object.name().to_owned(), index);
        }
        let mut changes = SelectAll::new();
        for ((api_version, kind, namespace), names) in groups.into_iter().take(MAX_WATCHES) {
            // Without a mapping there is nothing to watch; the poll goes on.
            if let Ok(mapping) = self.mapping(api_version, kind).await {
                let resource = ApiResource {
                    group: mapping.group,
                    version: mapping.version,
                    api_version: api_version.to_owned(),
                    kind: kind.to_owned(),
                    plural: mapping.plural,
                };
                changes.push(self.watch(&resource, namespace, names));
            }
        }
        changes
    }

    /// Metadata changes of the named objects, as their indices.
    fn watch(
        &self,
        resource: &ApiResource,
        namespace: &str,
        names: BTreeMap<String, usize>,
    ) -> BoxStream<'static, usize> {
        let client = self.client().clone();
        let api: Api<PartialObjectMeta<DynamicObject>> = if namespace.is_empty() {
            Api::all_with(client, resource)
        } else {
            Api::namespaced_with(client, namespace, resource)
        };
        // One object is asked for by name, which narrow permissions allow too.
        let mut config = watcher::Config::default();
        if let (1, Some(name)) = (names.len(), names.keys().next()) {
            config = config.fields(&format!("metadata.name={name}"));
        }
        let changed =
            move |event: Result<Event<PartialObjectMeta<DynamicObject>>, watcher::Error>| {
                let index = match event {
                    Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) => {
                        object
                            .metadata
                            .name
                            .and_then(|name| names.get(&name).copied())
                    }
                    // A watch that fails comes back by itself; meanwhile the poll goes on.
                    Ok(Event::Init | Event::InitDone) | Err(_) => None,
                };
                std::future::ready(index)
            };
        watcher::watcher(api, config)
            .default_backoff()
            .filter_map(changed)
            .boxed()
    }
}

/// The objects that changed, as soon as there is one; none when the pause is over first.
async fn next_changes(changes: Option<&mut Changes>, pause: Duration) -> BTreeSet<usize> {
    let mut due = BTreeSet::new();
    let Some(changes) = changes.filter(|changes| !changes.is_empty()) else {
        tokio::time::sleep(pause).await;
        return due;
    };
    if let Ok(Some(first)) = tokio::time::timeout(pause, changes.next()).await {
        due.insert(first);
        while let Some(Some(more)) = changes.next().now_or_never() {
            due.insert(more);
        }
    }
    due
}

/// How long to wait for a change before looking again.
fn pause(judged: &[Option<Judged>], poll: Duration) -> Duration {
    let unseen = |judged: &Judged| {
        let judgement = &judged.judgement;
        !judgement.verdict.is_ready() && (judgement.look_again || !judgement.depends_on.is_empty())
    };
    let soon = judged.iter().flatten().any(unseen);
    if soon { poll.min(UNSEEN) } else { poll }.max(SETTLE)
}

fn is_ready(judged: Option<&Judged>) -> bool {
    judged.is_some_and(|judged| judged.judgement.verdict.is_ready())
}

fn unready(objects: &[&Object], judged: &[Option<Judged>]) -> Vec<Unready> {
    let one = |(object, judged): (&&Object, &Option<Judged>)| {
        let why = match judged {
            Some(judged) => judged.judgement.verdict.why()?.to_owned(),
            None => "it was not looked at".to_owned(),
        };
        Some(Unready {
            object: object.canonical(),
            why,
        })
    };
    objects.iter().zip(judged).filter_map(one).collect()
}
