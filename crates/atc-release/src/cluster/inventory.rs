//! Many objects as they live by one list: how one learns whose they are before writing, and that nothing is to be written.

use std::collections::{HashMap, HashSet};

use atc_api::names;
use futures::FutureExt;

use super::apply::ApplyOptions;
use super::mapping::{Mapping, encode};
use super::read::Page;
use super::request::JSON;
use super::{Cluster, ClusterError, ErrorKind, LiveMeta, PAGE};
use crate::managed_fields;
use crate::object::Object;
use crate::ownership::{Owner, may_prune};

/// Objects of one kind in one namespace from which on one list takes the place of a read each. A list page of 64 objects
/// costs the API server about as much as ten reads.
const MANY: usize = 16;
/// How many times as many objects as are asked about one list may bring: a namespace that holds far more than the
/// release is read object by object.
const SPREAD: usize = 4;
/// Most objects of one list of metadata, some 2 MB.
const LIST_MAX: usize = 1000;

/// What a list told of a kind in a namespace.
struct Listed {
    found: HashMap<String, LiveMeta>,
    /// Nothing is there that was not listed.
    complete: bool,
}

/// API version, kind and namespace of an object: what one list can tell of.
pub(super) type Place<'a> = (&'a str, &'a str, &'a str);

/// What lists told of the places where many objects were asked for.
pub(super) struct Lists<'a>(HashMap<Place<'a>, Listed>);

/// What a list told of one object.
pub(super) enum Told {
    Absent,
    There(LiveMeta),
}

impl Told {
    pub(super) fn live(self) -> Option<LiveMeta> {
        match self {
            Self::Absent => None,
            Self::There(live) => Some(live),
        }
    }
}

impl Lists<'_> {
    /// An object as it lives; `None` if no list told.
    pub(super) fn look(&self, place: &Place<'_>, name: &str) -> Option<Told> {
        let list = self.0.get(place)?;
        match list.found.get(name) {
            Some(live) => Some(Told::There(live.clone())),
            None => list.complete.then_some(Told::Absent),
        }
    }
}

fn place(object: &Object) -> Place<'_> {
    (
        object.api_version(),
        object.kind(),
        object.namespace().unwrap_or_default(),
    )
}

/// The objects by their places, in their order.
fn by_place<'a>(objects: &[&'a Object]) -> HashMap<Place<'a>, Vec<&'a Object>> {
    let mut places: HashMap<Place<'_>, Vec<&Object>> = HashMap::new();
    for object in objects {
        places.entry(place(object)).or_default().push(object);
    }
    places
}

impl Cluster {
    /// The metadata of these objects as they live, in their order; `None` where there is no such object, or no such
    /// kind yet. Many objects of one kind and namespace are told by one list, if that is allowed.
    pub async fn metadata_of(
        &self,
        objects: &[&Object],
    ) -> Vec<Result<Option<LiveMeta>, ClusterError>> {
        let lists = self.lists(objects.iter().map(|object| place(object))).await;
        let lists = &lists;
        let looks = objects.iter().map(|object| {
            async move {
                match lists.look(&place(object), object.name()) {
                    Some(told) => Ok(told.live()),
                    None => self.metadata_or_none(object).await,
                }
            }
            .boxed()
        });
        self.breadth(looks.collect()).await
    }

    /// A list of each place that is named often.
    pub(super) async fn lists<'a>(&self, places: impl Iterator<Item = Place<'a>>) -> Lists<'a> {
        let mut counts: HashMap<Place<'_>, usize> = HashMap::new();
        for place in places {
            *counts.entry(place).or_default() += 1;
        }
        counts.retain(|_, count| *count >= MANY);
        let lists = counts.into_iter().map(|(place, count)| {
            async move { Some((place, self.listed(place, count).await?)) }.boxed()
        });
        let lists = self.breadth(lists.collect()).await;
        Lists(lists.into_iter().flatten().collect())
    }

    /// `None` when it cannot be listed, for whatever reason: each object is read then, and says what is wrong.
    async fn listed(
        &self,
        (api_version, kind, namespace): Place<'_>,
        count: usize,
    ) -> Option<Listed> {
        let mapping: Mapping = self.mapping(api_version, kind).await.ok()?;
        let limit = count.saturating_mul(SPREAD).min(LIST_MAX);
        let namespace = mapping.namespaced.then_some(namespace);
        let (items, complete) = self.first_metadata(&mapping, namespace, limit).await.ok()?;
        let found = items
            .into_iter()
            .map(|live| (live.name().to_owned(), live))
            .collect();
        Some(Listed { found, complete })
    }

    async fn metadata_or_none(&self, object: &Object) -> Result<Option<LiveMeta>, ClusterError> {
        let look = async {
            let mapping = self.mapping(object.api_version(), object.kind()).await?;
            let namespace = object.namespace().unwrap_or_default();
            self.metadata(&mapping, namespace, object.name()).await
        };
        match look.await {
            Err(error) if error.kind() == ErrorKind::NoSuchKind => Ok(None),
            other => other,
        }
    }

    /// Whether every one of these objects of the release `us` is there as an apply by `options` would leave it, to the
    /// last field and its manager.
    ///
    /// Each is asked for in a dry run. Of many in one place those are not of which a list shows that nothing is to be
    /// done, but for one: so that a webhook which would add something to all of them is met.
    ///
    /// *Caveats*: false where it cannot be told.
    pub async fn are_as_applied(
        &self,
        objects: &[&Object],
        us: &Owner,
        options: &ApplyOptions,
    ) -> bool {
        let mut asked = Vec::new();
        for (place, objects) in by_place(objects) {
            if objects.len() < MANY {
                asked.extend(objects);
                continue;
            }
            match self.unclear(place, &objects, us).await {
                Some(mut unclear) => {
                    if unclear.is_empty() {
                        unclear.extend(objects.first());
                    }
                    asked.extend(unclear);
                }
                None => return false,
            }
        }
        let looks = asked
            .into_iter()
            .map(|object| self.is_as_applied(object, us, options).boxed());
        self.all(looks.collect()).await
    }

    /// Those of which a list does not show that they are as they should be; `None` as soon as one is not.
    async fn unclear<'a>(
        &self,
        (api_version, kind, namespace): Place<'_>,
        objects: &[&'a Object],
        us: &Owner,
    ) -> Option<Vec<&'a Object>> {
        let Ok(mapping) = self.mapping(api_version, kind).await else {
            return None;
        };
        let namespace = mapping.namespaced.then_some(namespace);
        let mut wanted: HashMap<&str, &Object> = objects
            .iter()
            .map(|object| (object.name(), *object))
            .collect();
        let mut unclear = Vec::new();
        // What bears our label: the namespace may be full of others' objects.
        let label = objects.first()?.label(names::LABEL_MANAGED_BY);
        let selector = label.map_or_else(String::new, |label| {
            let selector = format!("{}={label}", names::LABEL_MANAGED_BY);
            format!("&labelSelector={}", encode(&selector))
        });
        let mut token = String::new();
        for _ in 0..objects.len().saturating_mul(SPREAD).div_ceil(PAGE) {
            let query = format!("limit={PAGE}{selector}{token}");
            let Ok(Page { items, next, .. }) = self.page(&mapping, namespace, &query, JSON).await
            else {
                // Each is read, and says what is wrong.
                return Some(objects.to_vec());
            };
            for live in items {
                let name = live["metadata"]["name"].as_str().unwrap_or_default();
                let Some(object) = wanted.remove(name) else {
                    continue;
                };
                if !is_standing(&live, us) {
                    return None;
                }
                let manager = &self.options().field_manager;
                if !managed_fields::is_same(&live, object.value(), manager) {
                    unclear.push(object);
                }
            }
            if next.is_empty() {
                // Not there, or without our label.
                return wanted.is_empty().then_some(unclear);
            }
            token = format!("&continue={}", encode(&next));
        }
        let left: HashSet<&str> = wanted.into_keys().collect();
        let left = objects.iter().filter(|object| left.contains(object.name()));
        unclear.extend(left);
        Some(unclear)
    }

    /// Whether a dry run of the object answers with the live one.
    async fn is_as_applied(&self, object: &Object, us: &Owner, options: &ApplyOptions) -> bool {
        let Ok(mapping) = self.mapping(object.api_version(), object.kind()).await else {
            return false;
        };
        let namespace = object.namespace().unwrap_or_default();
        let Ok(Some(live)) = self.get(&mapping, namespace, object.name()).await else {
            return false;
        };
        let options = ApplyOptions {
            dry_run: true,
            ..options.clone()
        };
        is_standing(&live, us)
            && self
                .apply(object, &options)
                .await
                .is_ok_and(|applied| applied.live == live)
    }
}

/// Whether a live object is the release's, and stays.
fn is_standing(live: &serde_json::Value, us: &Owner) -> bool {
    live["metadata"]["deletionTimestamp"].is_null() && may_prune(&live["metadata"], us)
}
