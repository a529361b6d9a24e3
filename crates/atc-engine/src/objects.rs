//! Full watches of one kind: Airways, the instances of an Airway, ConfigMaps of readiness rules, the pull Secret. Upserts and removals, in order, for ever.
//!
//! A list, then a watch from its version; what went in a gap is told as a removal by the next list. Each watch has its
//! own jittered backoff. The server ends each watch after [`WATCH_SECONDS`], and a connection that says nothing for
//! [`IDLE`] is given up, so a dead one is noticed within a minute; each renewal counts as a sign of life.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use atc_api::ResourceRef;
use atc_release::cluster::Mapping;
use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::error::chain;

/// The server ends a watch after so many seconds.
const WATCH_SECONDS: u32 = 45;
/// A watch that has told nothing for so long, not even its end, is dead.
const IDLE: Duration = Duration::from_secs(55);
/// A page of a list may take so long.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Objects a page of a list.
const PAGE: u32 = 500;
/// The first retry of a broken watch comes after this time.
const BACKOFF_MIN: Duration = Duration::from_millis(200);
/// A watch that ends in less time counts as broken, whatever it said: a proxy may take it and close it at once.
const BRIEF: Duration = Duration::from_secs(5);
/// No retry of a broken watch is further off than this: a kind whose CRD comes back is served within seconds.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// What a watch tells.
pub trait Sink: Send + Sync {
    /// The object is there, in this state.
    fn upsert(&self, reference: ResourceRef, object: Value);
    /// It is gone.
    fn remove(&self, reference: &ResourceRef);
    /// A complete list has been told.
    fn synced(&self);
    /// The API server answered at this moment.
    fn alive(&self, at: Instant);
    /// What was told by a watch before this one, and is held as being there. What of it a complete list does not show is
    /// told as gone: nobody told of what went between the two watches.
    fn held(&self) -> Vec<ResourceRef> {
        Vec::new()
    }
}

/// Why a watch has to begin anew.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("can't list")]
    List(#[source] kube::Error),
    #[error("can't watch")]
    Watch(#[source] kube::Error),
    #[error("the version to go on from is too old")]
    Expired,
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
}

struct ObjectWatch<'a> {
    api: Api<DynamicObject>,
    mapping: Mapping,
    only: Only<'a>,
    sink: &'a dyn Sink,
    /// What has been told as being there.
    known: HashSet<ResourceRef>,
    /// Where the watch goes on; `None`: a list is due.
    version: Option<String>,
}

/// Which objects of a kind are watched.
#[derive(Clone, Copy, Debug)]
pub enum Only<'a> {
    /// All.
    All,
    /// Those with these labels (a selector).
    Labels(&'a str),
    /// The one with this name.
    Named {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
}

impl Only<'_> {
    fn api(self, client: kube::Client, mapping: &Mapping) -> Api<DynamicObject> {
        let resource = mapping.api_resource();
        match self {
            Self::All | Self::Labels(_) => Api::all_with(client, &resource),
            Self::Named { namespace, .. } => Api::namespaced_with(client, namespace, &resource),
        }
    }

    fn labels(self) -> Option<String> {
        match self {
            Self::Labels(labels) => Some(labels.to_owned()),
            Self::All | Self::Named { .. } => None,
        }
    }

    fn fields(self) -> Option<String> {
        match self {
            Self::Named { name, .. } => Some(format!("metadata.name={name}")),
            Self::All | Self::Labels(_) => None,
        }
    }
}

/// Watches objects of a kind until cancelled.
pub async fn run(
    client: kube::Client,
    mapping: Mapping,
    only: Only<'_>,
    sink: &dyn Sink,
    stop: CancellationToken,
) {
    let mut watch = ObjectWatch {
        api: only.api(client, &mapping),
        mapping,
        only,
        sink,
        known: HashSet::new(),
        version: None,
    };
    let mut pause = BACKOFF_MIN;
    loop {
        let begun = Instant::now();
        let round = tokio::select! {
            () = stop.cancelled() => return,
            round = watch.round() => round,
        };
        let (kind, group) = (&watch.mapping.kind, &watch.mapping.group);
        match round {
            Ok(()) if begun.elapsed() >= BRIEF => {
                pause = BACKOFF_MIN;
                continue;
            }
            Ok(()) => tracing::debug!(kind, group, "a watch ended as soon as it was begun"),
            Err(broken) => {
                tracing::warn!(
                    kind,
                    group,
                    error = chain(&broken),
                    "a watch broke, beginning anew"
                );
                if !matches!(broken, Broken::Silent(_)) {
                    watch.version = None;
                }
            }
        }
        let wait = pause.mul_f64(0.5 + rand::random::<f64>() / 2.0);
        pause = (pause * 2).min(BACKOFF_MAX);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

impl ObjectWatch<'_> {
    /// One list where one is due, then one watch to its end.
    async fn round(&mut self) -> Result<(), Broken> {
        let version = match self.version.take() {
            Some(version) => version,
            None => self.list().await?,
        };
        let result = self.follow(version).await;
        if let Err(Broken::Expired) = result {
            // Nothing is wrong: the next round lists.
            self.version = None;
            return Ok(());
        }
        result
    }

    /// Tells all there is, and what is there no more. Gives the version of the list.
    async fn list(&mut self) -> Result<String, Broken> {
        let mut listed = HashSet::new();
        let mut params = ListParams {
            label_selector: self.only.labels(),
            field_selector: self.only.fields(),
            ..ListParams::default().limit(PAGE)
        };
        loop {
            let page = timeout(LIST_TIMEOUT, self.api.list(&params))
                .await
                .map_err(|_| Broken::Silent(LIST_TIMEOUT))?
                .map_err(Broken::List)?;
            self.sink.alive(Instant::now());
            for object in page.items {
                if let Some((reference, value)) = told(&self.mapping, object) {
                    listed.insert(reference.clone());
                    self.known.insert(reference.clone());
                    self.sink.upsert(reference, value);
                }
            }
            match page.metadata.continue_ {
                Some(token) if !token.is_empty() => params = params.continue_token(&token),
                _ => {
                    self.known.extend(self.sink.held());
                    for gone in self.known.difference(&listed) {
                        self.sink.remove(gone);
                    }
                    self.known = listed;
                    self.sink.synced();
                    return Ok(page.metadata.resource_version.unwrap_or_default());
                }
            }
        }
    }

    /// Tells what changes from this version on, until the server ends the watch.
    async fn follow(&mut self, mut version: String) -> Result<(), Broken> {
        let params = WatchParams {
            label_selector: self.only.labels(),
            field_selector: self.only.fields(),
            ..WatchParams::default().timeout(WATCH_SECONDS)
        };
        let stream = timeout(LIST_TIMEOUT, self.api.watch(&params, &version))
            .await
            .map_err(|_| Broken::Silent(LIST_TIMEOUT))?
            .map_err(Broken::Watch)?;
        self.sink.alive(Instant::now());
        let mut stream = std::pin::pin!(stream.into_stream());
        loop {
            let next = timeout(IDLE, stream.next()).await;
            let event = match next {
                Err(_) => {
                    self.version = Some(version);
                    return Err(Broken::Silent(IDLE));
                }
                Ok(None) => {
                    self.version = Some(version);
                    return Ok(());
                }
                Ok(Some(event)) => event.map_err(Broken::Watch)?,
            };
            self.sink.alive(Instant::now());
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    version = object.metadata.resource_version.clone().unwrap_or(version);
                    if let Some((reference, value)) = told(&self.mapping, object) {
                        self.known.insert(reference.clone());
                        self.sink.upsert(reference, value);
                    }
                }
                WatchEvent::Deleted(object) => {
                    version = object.metadata.resource_version.clone().unwrap_or(version);
                    let reference = reference(&self.mapping, &object);
                    self.known.remove(&reference);
                    self.sink.remove(&reference);
                }
                WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                WatchEvent::Error(status) if status.code == 410 => return Err(Broken::Expired),
                WatchEvent::Error(status) => {
                    return Err(Broken::Watch(kube::Error::Api(status)));
                }
            }
        }
    }
}

fn reference(mapping: &Mapping, object: &DynamicObject) -> ResourceRef {
    let metadata = &object.metadata;
    mapping.reference(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// The object as JSON, with `apiVersion` and `kind`, without `managedFields` (half of its memory, of no use here).
fn told(mapping: &Mapping, mut object: DynamicObject) -> Option<(ResourceRef, Value)> {
    object.metadata.managed_fields = None;
    let reference = reference(mapping, &object);
    match serde_json::to_value(&object) {
        Ok(mut value) => {
            value["apiVersion"] = mapping.api_version().into();
            value["kind"] = mapping.kind.clone().into();
            Some((reference, value))
        }
        Err(error) => {
            tracing::error!(object = %reference, %error, "an object can't be written as JSON and is left out");
            None
        }
    }
}
