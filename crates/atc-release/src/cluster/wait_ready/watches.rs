//! Watches of just what is waited for, for the time of one wait; a poll for what they do not show.
//!
//! Few objects of a kind are watched one by one, by name, which narrow rights allow too; many by one watch of their
//! namespace. What a verdict rests on (the EndpointSlices of a Service) is watched by its labels, metadata alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use kube::Resource;
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::core::DynamicResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event};
use serde_json::Value;

use super::super::mapping::Mapping;
use super::{Cluster, Due, Place};
use crate::readiness::{self, Which};

/// Watches at once for one wait; what is beyond is polled. Each watch is a connection.
const MAX_WATCHES: usize = 16;
/// Objects of one kind and namespace that are watched by name, each alone.
const FEW: usize = 2;
/// Shortest time between two looks, so that a burst of changes is one look.
const SETTLE: Duration = Duration::from_millis(25);
/// Everything is looked at so often, whatever the watches show: a connection may be dead without a word.
const SAFETY: Duration = Duration::from_secs(30);

/// What a watch tells.
enum Told {
    /// An object is like this.
    Shown(usize, Value),
    /// An object is gone.
    Gone(usize),
    /// What an object's verdict rests on changed.
    Moved(usize),
    /// The watch with this number has told all there is.
    Works(usize),
    /// It is broken, and comes back by itself.
    Broken(usize),
}

/// See the module's words.
pub(super) struct Watches {
    streams: SelectAll<BoxStream<'static, Told>>,
    /// Numbers of the watches that show an object and what it rests on; those without are only polled.
    watched_by: HashMap<usize, Vec<usize>>,
    /// Objects whose verdict also rests on something that no watch shows.
    polled: HashSet<usize>,
    /// Numbers of the watches that work at present.
    working: HashSet<usize>,
    poll: Duration,
    next_poll: Instant,
    next_all: Instant,
}

impl Watches {
    /// What is to be looked at, as soon as there is anything; nothing when the deadline comes first.
    pub(super) async fn next(
        &mut self,
        places: &[Place<'_>],
        deadline: Instant,
    ) -> Vec<(usize, Due)> {
        let settled = Instant::now() + SETTLE;
        tokio::time::sleep_until(settled.min(deadline).into()).await;
        let until = self.until(places).min(deadline);
        let mut due: BTreeMap<usize, Due> = BTreeMap::new();
        while due.is_empty() {
            let Ok(told) = tokio::time::timeout_at(until.into(), self.told()).await else {
                due.extend(self.poll(places));
                break;
            };
            self.note(told, &mut due);
            while let Some(Some(told)) = self.streams.next().now_or_never() {
                self.note(told, &mut due);
            }
            // What is ready is not looked at again.
            due.retain(|index, _| places.get(*index).is_some_and(|place| !place.is_ready()));
        }
        due.into_iter().collect()
    }

    /// The next word of any watch; never, where there is none.
    async fn told(&mut self) -> Told {
        match self.streams.next().await {
            Some(told) => told,
            None => std::future::pending().await,
        }
    }

    fn note(&mut self, told: Told, due: &mut BTreeMap<usize, Due>) {
        match told {
            Told::Shown(index, live) => {
                due.insert(index, Due::Shown(live));
            }
            Told::Gone(index) => {
                due.insert(index, Due::Gone);
            }
            Told::Moved(index) => {
                due.insert(index, Due::Look);
            }
            Told::Works(number) => {
                self.working.insert(number);
            }
            Told::Broken(number) => {
                self.working.remove(&number);
            }
        }
    }

    /// When something is looked at without a word of a watch.
    fn until(&self, places: &[Place<'_>]) -> Instant {
        let mut waiting = places.iter().enumerate().filter(|(_, p)| !p.is_ready());
        if waiting.any(|(index, place)| self.is_unseen(index, place)) {
            self.next_poll.min(self.next_all)
        } else {
            self.next_all
        }
    }

    /// What is to be looked at now that a pause is over.
    fn poll(&mut self, places: &[Place<'_>]) -> Vec<(usize, Due)> {
        let now = Instant::now();
        let all = now >= self.next_all;
        if all {
            self.next_all = now + SAFETY;
        }
        let polled = now >= self.next_poll;
        if polled {
            self.next_poll = now + self.poll;
        }
        let is_due = |(index, place): &(usize, &Place<'_>)| {
            !place.is_ready() && (all || polled && self.is_unseen(*index, place))
        };
        let waiting = places.iter().enumerate().filter(is_due);
        waiting.map(|(index, _)| (index, Due::Look)).collect()
    }

    /// Whether some watch that would show a change of the verdict is missing or broken.
    fn is_unseen(&self, index: usize, place: &Place<'_>) -> bool {
        let works = |number: &usize| self.working.contains(number);
        let watched = self.watched_by.get(&index);
        place.missed
            || self.polled.contains(&index)
            || watched.is_none_or(|numbers| !numbers.iter().all(works))
    }
}

impl Cluster {
    /// Watches of what is not ready.
    pub(super) async fn watches(&self, places: &[Place<'_>], poll: Duration) -> Watches {
        let now = Instant::now();
        let poll = poll.max(SETTLE);
        let mut watches = Watches {
            streams: SelectAll::new(),
            watched_by: HashMap::new(),
            polled: HashSet::new(),
            working: HashSet::new(),
            poll,
            next_poll: now + poll,
            next_all: now + SAFETY,
        };
        let waiting = || places.iter().enumerate().filter(|(_, p)| !p.is_ready());
        let mut groups: BTreeMap<(&str, &str, &str), BTreeMap<String, usize>> = BTreeMap::new();
        for (index, place) in waiting() {
            let object = place.object;
            let namespace = object.namespace().unwrap_or_default();
            let key = (object.api_version(), object.kind(), namespace);
            let names = groups.entry(key).or_default();
            names.insert(object.name().to_owned(), index);
        }
        for ((api_version, kind, namespace), names) in groups {
            // Without a mapping there is nothing to watch; the poll goes on.
            let Ok(mapping) = self.mapping(api_version, kind).await else {
                continue;
            };
            if names.len() <= FEW {
                for (name, index) in names {
                    let config = Config::default().fields(&format!("metadata.name={name}"));
                    let names = BTreeMap::from([(name, index)]);
                    watches.add_objects(self.api(&mapping, namespace), &mapping, config, names);
                }
            } else {
                let (api, config) = (self.api(&mapping, namespace), Config::default());
                watches.add_objects(api, &mapping, config, names);
            }
        }
        for (index, place) in waiting() {
            self.add_related(&mut watches, index, place).await;
        }
        watches
    }

    /// Watches of what the verdict on an object rests on.
    async fn add_related(&self, watches: &mut Watches, index: usize, place: &Place<'_>) {
        for related in readiness::related(place.object.value()) {
            match (
                &related.which,
                self.mapping(related.api_version, related.kind).await,
            ) {
                (Which::Labelled { selector, .. }, Ok(mapping)) => {
                    let api = self.api(&mapping, &related.namespace);
                    watches.add_related(api, Config::default().labels(selector), index);
                }
                // What is read by name is polled.
                _ => {
                    watches.polled.insert(index);
                }
            }
        }
    }

    /// The API of one namespace, or of a kind that has none.
    fn api<K>(&self, mapping: &Mapping, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        let resource = mapping.api_resource();
        let client = self.client().clone();
        if namespace.is_empty() {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, namespace, &resource)
        }
    }
}

impl Watches {
    /// The number of one more watch, if there may be one.
    fn number(&self) -> Option<usize> {
        (self.streams.len() < MAX_WATCHES).then_some(self.streams.len())
    }

    fn add_objects(
        &mut self,
        api: Api<DynamicObject>,
        mapping: &Mapping,
        config: Config,
        names: BTreeMap<String, usize>,
    ) {
        let Some(number) = self.number() else {
            return;
        };
        for index in names.values() {
            self.watched_by.entry(*index).or_default().push(number);
        }
        let types = (mapping.api_version(), mapping.kind.clone());
        let told = move |event: Result<Event<DynamicObject>, watcher::Error>| {
            let index = |object: &DynamicObject| {
                let name = object.metadata.name.as_ref()?;
                names.get(name).copied()
            };
            let told = match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => index(&object)
                    .and_then(|index| Some(Told::Shown(index, whole(&object, &types)?))),
                Ok(Event::Delete(object)) => index(&object).map(Told::Gone),
                Ok(Event::InitDone) => Some(Told::Works(number)),
                Ok(Event::Init) => None,
                Err(_) => Some(Told::Broken(number)),
            };
            std::future::ready(told)
        };
        let stream = watcher::watcher(api, config).default_backoff();
        self.streams.push(stream.filter_map(told).boxed());
    }

    fn add_related(
        &mut self,
        api: Api<PartialObjectMeta<DynamicObject>>,
        config: Config,
        index: usize,
    ) {
        let Some(number) = self.number() else {
            self.polled.insert(index);
            return;
        };
        self.watched_by.entry(index).or_default().push(number);
        let told = move |event: Result<Event<PartialObjectMeta<DynamicObject>>, watcher::Error>| {
            let told = match event {
                Ok(Event::Apply(_) | Event::InitApply(_) | Event::Delete(_)) => {
                    Some(Told::Moved(index))
                }
                Ok(Event::InitDone) => Some(Told::Works(number)),
                Ok(Event::Init) => None,
                Err(_) => Some(Told::Broken(number)),
            };
            std::future::ready(told)
        };
        let stream = watcher::watcher(api, config).default_backoff();
        self.streams.push(stream.filter_map(told).boxed());
    }
}

/// An object as the server gives it alone: in lists it says neither its API version nor its kind.
fn whole(object: &DynamicObject, types: &(String, String)) -> Option<Value> {
    let mut value = serde_json::to_value(object).ok()?;
    let (api_version, kind) = types;
    value["apiVersion"] = api_version.as_str().into();
    value["kind"] = kind.as_str().into();
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_of_lists_are_made_whole() {
        let listed = json!({ "metadata": { "name": "d" }, "spec": { "replicas": 1 } });
        let object: DynamicObject = serde_json::from_value(listed).unwrap();
        let types = ("apps/v1".to_owned(), "Deployment".to_owned());
        let value = whole(&object, &types).unwrap();
        assert_eq!(readiness::group_and_kind(&value), ("apps", "Deployment"));
        assert!(!readiness::judge(&value, &[]).verdict.is_ready());
    }
}
