//! Full watches of one kind: Airways, and the instances of an Airway. Upserts and removals, in order, for ever.
//!
//! A relist after a gap is turned into removals of what went meanwhile. Each watch has its own jittered backoff; the
//! server ends each watch after [`WATCH_SECONDS`], so a silent connection is noticed within a minute.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use atc_api::ResourceRef;
use atc_engine::release::cluster::Mapping;
use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The server ends a watch after so many seconds; the client gives up on a silent one 5 s later.
pub(crate) const WATCH_SECONDS: u32 = 45;
/// Objects a page of a list.
const PAGE: u32 = 500;
/// The first retry of a broken watch comes after this time.
const BACKOFF_MIN: Duration = Duration::from_millis(200);
/// No retry of a broken watch is further off than this: a kind whose CRD comes back is served within seconds.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// What a watch tells.
pub(crate) trait Sink: Send + Sync {
    /// The object is there, in this state.
    fn upsert(&self, reference: ResourceRef, object: Value);
    /// It is gone.
    fn remove(&self, reference: &ResourceRef);
    /// A complete list has been told.
    fn synced(&self);
    /// The watch was alive at this moment.
    fn alive(&self, at: Instant);
}

/// Watches all objects of a kind until cancelled.
pub(crate) async fn run(
    client: kube::Client,
    mapping: Mapping,
    sink: &dyn Sink,
    stop: CancellationToken,
) {
    let resource = ApiResource {
        group: mapping.group.clone(),
        version: mapping.version.clone(),
        api_version: mapping.api_version(),
        kind: mapping.kind.clone(),
        plural: mapping.plural.clone(),
    };
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let config = watcher::Config::default()
        .timeout(WATCH_SECONDS)
        .page_size(PAGE);
    let backoff = watcher::ExponentialBackoff::from(
        backon::ExponentialBuilder::default()
            .with_min_delay(BACKOFF_MIN)
            .with_max_delay(BACKOFF_MAX)
            .without_max_times()
            .with_jitter(),
    );
    let mut stream = std::pin::pin!(watcher(api, config).backoff(backoff));
    let mut known: HashSet<ResourceRef> = HashSet::new();
    let mut listed: Option<HashSet<ResourceRef>> = None;
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = stream.next() => event,
        };
        let event = match event {
            None => return,
            Some(Err(error)) => {
                tracing::warn!(kind = mapping.kind, group = mapping.group, error = %atc_engine::error::chain(&error), "watch broke, trying again");
                continue;
            }
            Some(Ok(event)) => event,
        };
        sink.alive(Instant::now());
        match event {
            Event::Init => listed = Some(HashSet::new()),
            Event::InitApply(object) => {
                if let Some((reference, value)) = told(&mapping, object) {
                    if let Some(listed) = &mut listed {
                        listed.insert(reference.clone());
                    }
                    known.insert(reference.clone());
                    sink.upsert(reference, value);
                }
            }
            Event::InitDone => {
                let listed = listed.take().unwrap_or_default();
                for gone in known.difference(&listed) {
                    sink.remove(gone);
                }
                known = listed;
                sink.synced();
            }
            Event::Apply(object) => {
                if let Some((reference, value)) = told(&mapping, object) {
                    known.insert(reference.clone());
                    sink.upsert(reference, value);
                }
            }
            Event::Delete(object) => {
                let reference = reference(&mapping, &object);
                known.remove(&reference);
                sink.remove(&reference);
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
