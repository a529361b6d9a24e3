//! One watch: list in pages, watch from there, and start again whatever happens, for as long as it is wanted.
//!
//! Written out instead of taken from kube's `watcher`, since the tracker needs what that keeps to itself: the version
//! of a list, the moment of its first page, and bookmarks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use atc_api::GroupKind;
use futures::{Stream, TryStreamExt};
use kube::Client;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::Request;
use kube::core::gvk::GroupVersionKind;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::backoff::Backoff;
use crate::dependency::Resource;
use crate::health::{Fault, FaultKind, WatchState};
use crate::wire::{Object, Page};

/// Objects in a page of a list, as in client-go: bounds what one answer takes (about 1 KiB an object).
const PAGE: u32 = 500;
/// Longest wait for one page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for a turn to list; after it the list is made without. See [`LISTS_AT_ONCE`].
const TURN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pages that are read at the same time, over all kinds: bounds memory at the start, when every kind is listed.
pub(crate) const LISTS_AT_ONCE: usize = 8;
/// Longest wait for a watch to be accepted.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The server is asked to end each watch after a time between these (seconds), so that they do not all end together.
const WATCH_SECONDS: std::ops::RangeInclusive<u32> = 35..=45;
/// A watch that the server has not ended by then is dead: a connection that has gone silent is noticed after 50 s at
/// most.
const WATCH_MARGIN: Duration = Duration::from_secs(5);
/// A watch that has lived so long, or has shown something, was alive: the next one starts at once.
const ALIVE: Duration = Duration::from_secs(5);
/// After so many failures in a row a watch is not resumed but begun again with a list.
const RESUMES: u32 = 3;
/// A kind that the API server does not know is not asked for more often, whoever wants it.
const NUDGE: Duration = Duration::from_secs(1);
/// Metadata only; servers that can't do that may send the whole, of which no more is read.
const ACCEPT_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const ACCEPT_WATCH: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Whom a watch tells. All of it returns at once.
pub(crate) trait Feed: Send + Sync + 'static {
    /// How to watch a kind now; `None` if nobody wants it.
    fn resource(&self, kind: &GroupKind) -> Option<Resource>;
    fn list_begins(&self, kind: &GroupKind, version: &str) -> u64;
    fn listed(&self, kind: &GroupKind, listing: u64, objects: &[Object]);
    fn list_ends(&self, kind: &GroupKind, listing: u64, version: &str);
    fn changed(&self, kind: &GroupKind, object: &Object);
    fn deleted(&self, kind: &GroupKind, object: &Object);
    fn passed(&self, kind: &GroupKind, version: &str);
    fn kind_gone(&self, kind: &GroupKind);
}

/// What others may know of a watch, and how they wake it.
#[derive(Debug)]
pub(crate) struct Shared {
    status: Mutex<Status>,
    nudge: Notify,
}

#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) state: WatchState,
    pub(crate) synced: bool,
    /// When the server last answered.
    pub(crate) contact: Instant,
    pub(crate) failures: u32,
    pub(crate) fault: Option<Fault>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        let status = Status {
            state: WatchState::Listing,
            synced: false,
            contact: Instant::now(),
            failures: 0,
            fault: None,
        };
        Self {
            status: Mutex::new(status),
            nudge: Notify::new(),
        }
    }

    pub(crate) fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If it waits for a kind to come (back), it looks now.
    pub(crate) fn nudge(&self) {
        if self.status().state == WatchState::Gone {
            self.nudge.notify_one();
        }
    }

    fn contact(&self) {
        self.status().contact = Instant::now();
    }
}

/// One watch, before it runs.
pub(crate) struct Watch {
    pub(crate) client: Client,
    pub(crate) kind: GroupKind,
    pub(crate) feed: Weak<dyn Feed>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) lists: Arc<Semaphore>,
}

/// Why an attempt ended.
enum End {
    /// Nobody listens any more.
    Unwanted,
    Fault(Fault),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Watch {
    /// Runs until nobody listens any more or the task is aborted.
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::default();
        let Ok(mut resource) = self.wanted() else {
            return;
        };
        let mut version: Option<String> = None;
        loop {
            let end = match &mut version {
                None => self
                    .list(&resource)
                    .await
                    .map(|listed| version = Some(listed)),
                Some(version) => self.watch(&resource, version, &mut backoff).await,
            };
            let Err(end) = end else { continue };
            let End::Fault(fault) = end else { return };
            match fault.kind {
                FaultKind::Expired => {
                    version = None;
                    if backoff.failures() == 0 {
                        // The ordinary case: the watch was alive. A list at once, the wait if that does not help.
                        backoff.next(0.0);
                        tracing::debug!(kind = %self.kind, "watch too old, listing again");
                        continue;
                    }
                }
                FaultKind::NoSuchKind => {
                    let Ok(now) = self.wanted() else { return };
                    let was_watching = version.take().is_some();
                    if was_watching || now != resource {
                        // Does a list say so too? Is there another version?
                        resource = now;
                        if backoff.failures() == 0 {
                            backoff.next(0.0);
                            continue;
                        }
                    } else if self.gone().is_err() {
                        return;
                    }
                }
                FaultKind::Forbidden | FaultKind::NotWatchable => version = None,
                _ if backoff.failures() >= RESUMES => version = None,
                _ => {}
            }
            self.pause(&mut backoff, fault).await;
        }
    }

    fn feed(&self) -> Result<Arc<dyn Feed>, End> {
        self.feed.upgrade().ok_or(End::Unwanted)
    }

    fn wanted(&self) -> Result<Resource, End> {
        self.feed()?.resource(&self.kind).ok_or(End::Unwanted)
    }

    /// Reads a list to its end. Returns its version.
    async fn list(&self, resource: &Resource) -> Result<String, End> {
        {
            let mut status = self.shared.status();
            if status.state == WatchState::Watching {
                status.state = WatchState::Listing;
            }
        }
        let mut params = ListParams {
            limit: Some(PAGE),
            ..ListParams::default()
        };
        let mut listing = None;
        loop {
            let page = self.page(resource, &params).await?;
            self.shared.contact();
            let version = page.metadata.resource_version;
            if version.is_empty() {
                return Err(
                    Fault::new(FaultKind::NotWatchable, "the list has no resourceVersion").into(),
                );
            }
            let feed = self.feed()?;
            let number = *listing.get_or_insert_with(|| feed.list_begins(&self.kind, &version));
            feed.listed(&self.kind, number, &page.items);
            if page.metadata.next.is_empty() {
                feed.list_ends(&self.kind, number, &version);
                let mut status = self.shared.status();
                status.synced = true;
                return Ok(version);
            }
            params.continue_token = Some(page.metadata.next);
        }
    }

    async fn page(&self, resource: &Resource, params: &ListParams) -> Result<Page, Fault> {
        // The turn bounds memory, not time: behind eight servers that hang nobody waits long.
        let turn = timeout(TURN_TIMEOUT, self.lists.acquire()).await;
        let mut request = Request::new(url(resource))
            .list_metadata(params)
            .map_err(|error| unbuildable(&error))?;
        if let Ok(accept) = ACCEPT_LIST.parse() {
            request.headers_mut().insert("accept", accept);
        }
        let text = timeout(PAGE_TIMEOUT, self.client.request_text(request))
            .await
            .map_err(|_| late(PAGE_TIMEOUT))?;
        let text = text.map_err(|error| Fault::of(&error))?;
        let page = serde_json::from_str(&text).map_err(|error| Fault::of_json(&error));
        drop(turn);
        page
    }

    /// Watches from `version`, which moves along, until the server ends it.
    async fn watch(
        &self,
        resource: &Resource,
        version: &mut String,
        backoff: &mut Backoff,
    ) -> Result<(), End> {
        let seconds = rand::random_range(WATCH_SECONDS);
        let params = WatchParams {
            timeout: Some(seconds),
            bookmarks: true,
            ..WatchParams::default()
        };
        let mut request = Request::new(url(resource))
            .watch_metadata(&params, version)
            .map_err(|error| unbuildable(&error))?;
        if let Ok(accept) = ACCEPT_WATCH.parse() {
            request.headers_mut().insert("accept", accept);
        }
        let begun = Instant::now();
        let deadline = begun + Duration::from_secs(seconds.into()) + WATCH_MARGIN;
        let stream = timeout(START_TIMEOUT, self.client.request_events::<Object>(request)).await;
        let stream = stream
            .map_err(|_| late(START_TIMEOUT))?
            .map_err(|error| Fault::of(&error))?;
        self.recovered(backoff);
        let mut shown = false;
        let end = self.events(stream, deadline, version, &mut shown).await;
        if shown || begun.elapsed() >= ALIVE {
            backoff.reset();
        } else if end.is_ok() {
            return Err(Fault::new(
                FaultKind::Server,
                "the watch was closed as soon as it was begun",
            )
            .into());
        }
        end
    }

    async fn events(
        &self,
        stream: impl Stream<Item = kube::Result<WatchEvent<Object>>>,
        deadline: Instant,
        version: &mut String,
        shown: &mut bool,
    ) -> Result<(), End> {
        let mut stream = std::pin::pin!(stream);
        loop {
            let Ok(event) = timeout_at(deadline, stream.try_next()).await else {
                return Err(Fault::new(
                    FaultKind::Unreachable,
                    "nothing more came, not even the end",
                )
                .into());
            };
            let event = event.map_err(|error| Fault::of(&error))?;
            self.shared.contact();
            let Some(event) = event else { return Ok(()) };
            *shown |= !matches!(event, WatchEvent::Error(_));
            self.event(event, version)?;
        }
    }

    fn event(&self, event: WatchEvent<Object>, version: &mut String) -> Result<(), End> {
        let feed = self.feed()?;
        let passed = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                feed.changed(&self.kind, &object);
                object.metadata.resource_version
            }
            WatchEvent::Deleted(object) => {
                feed.deleted(&self.kind, &object);
                object.metadata.resource_version
            }
            WatchEvent::Bookmark(bookmark) => {
                feed.passed(&self.kind, &bookmark.metadata.resource_version);
                bookmark.metadata.resource_version
            }
            WatchEvent::Error(status) => return Err(Fault::of_status(&status).into()),
        };
        if passed.is_empty() {
            return Err(
                Fault::new(FaultKind::Unreadable, "an event has no resourceVersion").into(),
            );
        }
        *version = passed;
        Ok(())
    }

    /// The server accepted a watch.
    fn recovered(&self, backoff: &Backoff) {
        let mut status = self.shared.status();
        if status.state == WatchState::Failing || status.fault.is_some() {
            tracing::info!(kind = %self.kind, failures = backoff.failures(), "watch is back");
        }
        *status = Status {
            state: WatchState::Watching,
            synced: status.synced,
            contact: Instant::now(),
            failures: 0,
            fault: None,
        };
    }

    fn gone(&self) -> Result<(), End> {
        self.feed()?.kind_gone(&self.kind);
        let mut status = self.shared.status();
        if status.state != WatchState::Gone {
            tracing::info!(kind = %self.kind, "the api server does not know this kind");
        }
        status.state = WatchState::Gone;
        status.synced = false;
        status.contact = Instant::now();
        Ok(())
    }

    /// Notes the fault and waits.
    async fn pause(&self, backoff: &mut Backoff, fault: Fault) {
        let wait = backoff.next(rand::random());
        let gone = {
            let mut status = self.shared.status();
            let gone = fault.kind == FaultKind::NoSuchKind && status.state == WatchState::Gone;
            if !gone {
                let known = status
                    .fault
                    .as_ref()
                    .is_some_and(|known| known.kind == fault.kind);
                if known {
                    tracing::debug!(kind = %self.kind, error = %fault, wait = ?wait, "watch still failing");
                } else {
                    tracing::warn!(kind = %self.kind, error = %fault, wait = ?wait, "watch failed");
                }
                status.state = WatchState::Failing;
            }
            if matches!(fault.kind, FaultKind::Forbidden | FaultKind::NotWatchable) {
                // A clear answer, if not the one that was hoped for.
                status.contact = Instant::now();
                status.synced = false;
            }
            status.failures = backoff.failures();
            status.fault = Some(fault);
            gone
        };
        if gone {
            sleep(NUDGE.min(wait)).await;
            let _ = timeout(wait.saturating_sub(NUDGE), self.shared.nudge.notified()).await;
        } else {
            sleep(wait).await;
        }
    }
}

fn url(resource: &Resource) -> String {
    let Resource {
        group_kind,
        version,
        plural,
    } = resource;
    let kind = GroupVersionKind::gvk(&group_kind.group, version, &group_kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    <DynamicObject as kube::Resource>::url_path(&resource, None)
}

fn unbuildable(error: &kube::core::request::Error) -> Fault {
    Fault::new(
        FaultKind::NotWatchable,
        &format!("no request can be made: {error}"),
    )
}

fn late(limit: Duration) -> Fault {
    Fault::new(
        FaultKind::Unreachable,
        &format!("no answer within {limit:?}"),
    )
}
