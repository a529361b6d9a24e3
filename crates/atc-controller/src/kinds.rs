//! What is known of each Airway and its instances while the process runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use atc_api::{ResourceRef, names};
use atc_engine::instance::{InstanceMemory, InstanceSettings};
use atc_engine::memory::{AppliedChildren, Memory, Verdicts};
use atc_engine::status::Ours;
use atc_engine::{LoadedFlight, release::cluster::Mapping};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::modules::Converter;
use crate::webhook::review::significant;

/// How an Airway's instances are served at present.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Settings of every evaluation.
    pub(crate) settings: InstanceSettings,
    /// The flight, or why there is none.
    pub(crate) flight: Result<LoadedFlight, String>,
    /// The converter, where the Airway has one. While a new one can't be had, the one before is used.
    pub(crate) converter: Option<Converter>,
    /// Whether admission lets every instance pass.
    pub(crate) skip_admission: bool,
    /// The versions with a `scale` subresource, each with the path of its number of replicas.
    pub(crate) scales: BTreeMap<String, String>,
    /// Whether registries may be asked over plain HTTP or without a look at their certificates.
    pub(crate) insecure: bool,
    /// Hash of the Airway's spec: a change of it evaluates every instance.
    pub(crate) spec: u64,
}

/// One instance.
#[derive(Debug)]
pub(crate) struct Instance {
    object: RwLock<Arc<Value>>,
    /// Hash of what the object says, for telling an edit from an echo of our own writes.
    said: Mutex<u64>,
    /// Held by the one run that is on.
    pub(crate) memory: tokio::sync::Mutex<InstanceMemory>,
    /// Our part of its status after the last run; `None` where that did not write it as it should be.
    ours: Mutex<Option<Ours>>,
    applied: AppliedChildren,
    verdicts: Verdicts,
}

impl Instance {
    fn new(object: Value, verdicts: Verdicts) -> Self {
        let mut memory = InstanceMemory::default();
        memory.release.verdicts = verdicts.clone();
        Self {
            said: Mutex::new(fingerprint(&object)),
            object: RwLock::new(Arc::new(object)),
            applied: memory.release.applied.clone(),
            verdicts,
            memory: tokio::sync::Mutex::new(memory),
            ours: Mutex::default(),
        }
    }

    /// The object as the watch showed it last.
    pub(crate) fn object(&self) -> Arc<Value> {
        self.object
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether this is one of its children.
    pub(crate) fn made(&self, reference: &ResourceRef) -> bool {
        self.applied.fingerprint(reference).is_some()
    }

    /// A memory for an admission review: it shares what was applied and which dry runs passed.
    pub(crate) fn review_memory(&self) -> Memory {
        Memory::for_review(self.applied.clone(), self.verdicts.clone())
    }

    /// Takes the state that our own write made, so that the next run need not wait for the watch to tell it.
    pub(crate) fn stored(&self, mut object: Value) {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.shift_remove("managedFields");
        }
        let mut place = self.object.write().unwrap_or_else(PoisonError::into_inner);
        if version(&object) > version(&place)
            && object["metadata"]["uid"] == place["metadata"]["uid"]
        {
            *place = Arc::new(object);
        }
    }

    /// Takes our part of the status, as the run that is on leaves it.
    pub(crate) fn settled(&self, ours: Option<Ours>) {
        *lock(&self.ours) = ours;
    }

    /// Whether others changed our part of the status. While a run is on that is not known: its own writes are on their way.
    pub(crate) fn is_overwritten(&self) -> bool {
        if self.memory.try_lock().is_err() {
            return false;
        }
        let object = self.object();
        let is_lost = |ours: &Ours| !ours.stands_in(&object["status"]);
        lock(&self.ours).as_ref().is_some_and(is_lost)
            && object["metadata"]["deletionTimestamp"].is_null()
    }

    /// Takes a newer state; whether it says something else than the one before.
    fn update(&self, object: Value) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let now = fingerprint(&object);
        let mut place = self.object.write().unwrap_or_else(PoisonError::into_inner);
        // The watch may still be on its way to what we stored ourselves.
        let mut let_go = false;
        if version(&object) >= version(&place) {
            let_go = lost(&place, &object, names::FINALIZER_INSTANCE);
            *place = Arc::new(object);
        }
        std::mem::replace(&mut *said, now) != now || let_go
    }
}

/// Whether a finalizer of ours was taken off by somebody else: it is put back, or nobody would clean up.
fn lost(before: &Value, now: &Value, finalizer: &str) -> bool {
    let has = |object: &Value| {
        let all = object["metadata"]["finalizers"].as_array();
        all.is_some_and(|all| all.iter().any(|one| one == finalizer))
    };
    has(before) && !has(now) && now["metadata"]["deletionTimestamp"].is_null()
}

/// Hash of what an object says: all but status, owners, finalizers and what only the server writes.
fn fingerprint(object: &Value) -> u64 {
    hash(&significant(object))
}

/// The resourceVersion as a number; larger is later.
fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// Hash of what a value says, whatever the order of its keys.
pub(crate) fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(value, &mut hasher);
    hasher.finish()
}

fn feed(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            (b'{', entries.len()).hash(hasher);
            for (key, value) in entries {
                key.hash(hasher);
                feed(value, hasher);
            }
        }
        Value::Array(list) => {
            (b'[', list.len()).hash(hasher);
            for value in list {
                feed(value, hasher);
            }
        }
        scalar => scalar.hash(hasher),
    }
}

/// An Airway's running part.
#[derive(Debug)]
pub(crate) struct Kind {
    airway: RwLock<Arc<Value>>,
    said: Mutex<u64>,
    setup: RwLock<Option<Arc<Setup>>>,
    instances: Mutex<HashMap<ResourceRef, Arc<Instance>>>,
    /// Dry runs that passed for objects that are not stored yet, by instance.
    reviewed: Mutex<HashMap<ResourceRef, Verdicts>>,
    watch: Mutex<Option<Watch>>,
    /// Whether all instances have been told once.
    listed: AtomicBool,
    /// Instances that are not there and have a record.
    missed: Mutex<HashSet<ResourceRef>>,
}

#[derive(Debug)]
struct Watch {
    mapping: Mapping,
    crd_uid: String,
    stop: CancellationToken,
}

/// Reviews of creations that are remembered for one kind. Entries are taken by the creation that follows; what was
/// refused afterwards stays until the map is full and is dropped whole then.
const REVIEWED_MAX: usize = 4_096;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kind {
    pub(crate) fn new(airway: Value) -> Self {
        Self {
            said: Mutex::new(fingerprint(&airway)),
            airway: RwLock::new(Arc::new(airway)),
            setup: RwLock::new(None),
            instances: Mutex::default(),
            reviewed: Mutex::default(),
            watch: Mutex::default(),
            listed: AtomicBool::new(false),
            missed: Mutex::default(),
        }
    }

    /// The Airway as the watch showed it last.
    pub(crate) fn airway(&self) -> Arc<Value> {
        self.airway
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes a newer state of the Airway; whether it says something else.
    pub(crate) fn update(&self, airway: Value) -> bool {
        let mut said = lock(&self.said);
        let now = fingerprint(&airway);
        let mut place = self.airway.write().unwrap_or_else(PoisonError::into_inner);
        let let_go = lost(&place, &airway, names::FINALIZER_AIRWAY);
        *place = Arc::new(airway);
        std::mem::replace(&mut *said, now) != now || let_go
    }

    /// How instances are served, once the Airway was set up.
    pub(crate) fn setup(&self) -> Option<Arc<Setup>> {
        self.setup
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Serves instances in another way from now on; whether their results may differ.
    pub(crate) fn set_setup(&self, setup: Setup) -> bool {
        let mut place = self.setup.write().unwrap_or_else(PoisonError::into_inner);
        let differs = place.as_ref().is_none_or(|before| {
            before.spec != setup.spec
                || before.flight.as_ref().map(|f| &f.sha256).ok()
                    != setup.flight.as_ref().map(|f| &f.sha256).ok()
        });
        *place = Some(Arc::new(setup));
        differs
    }

    /// Starts to watch instances under this token, unless they are watched already through the same CRD.
    pub(crate) fn watch(
        &self,
        mapping: &Mapping,
        crd_uid: &str,
        parent: &CancellationToken,
    ) -> Option<CancellationToken> {
        let mut watch = lock(&self.watch);
        if watch.as_ref().is_some_and(|now| {
            now.mapping == *mapping && now.crd_uid == crd_uid && !now.stop.is_cancelled()
        }) {
            return None;
        }
        let stop = parent.child_token();
        let fresh = Watch {
            mapping: mapping.clone(),
            crd_uid: crd_uid.to_owned(),
            stop: stop.clone(),
        };
        if let Some(old) = watch.replace(fresh) {
            old.stop.cancel();
        }
        Some(stop)
    }

    /// Ends the watch of instances.
    pub(crate) fn stop(&self) {
        if let Some(watch) = lock(&self.watch).take() {
            watch.stop.cancel();
        }
    }

    /// Takes an instance's newer state; whether it is new or says something else.
    pub(crate) fn upsert(&self, reference: &ResourceRef, object: Value) -> bool {
        let known = lock(&self.instances).get(reference).cloned();
        match known {
            Some(instance) if instance.object()["metadata"]["uid"] == object["metadata"]["uid"] => {
                instance.update(object)
            }
            _ => {
                let verdicts = lock(&self.reviewed).remove(reference).unwrap_or_default();
                lock(&self.instances)
                    .insert(reference.clone(), Arc::new(Instance::new(object, verdicts)));
                true
            }
        }
    }

    /// All instances have been told; whether that is news.
    pub(crate) fn listed(&self) -> bool {
        !self.listed.swap(true, Ordering::AcqRel)
    }

    /// Whether all instances have been told once.
    pub(crate) fn is_listed(&self) -> bool {
        self.listed.load(Ordering::Acquire)
    }

    /// Notes an instance that is not there and has a record.
    pub(crate) fn miss(&self, reference: &ResourceRef) {
        lock(&self.missed).insert(reference.clone());
    }

    /// Takes such a note away; whether there was one.
    pub(crate) fn take_missed(&self, reference: &ResourceRef) -> bool {
        lock(&self.missed).remove(reference)
    }

    /// Forgets an instance.
    pub(crate) fn remove(&self, reference: &ResourceRef) {
        lock(&self.instances).remove(reference);
    }

    /// An instance.
    pub(crate) fn instance(&self, reference: &ResourceRef) -> Option<Arc<Instance>> {
        lock(&self.instances).get(reference).cloned()
    }

    /// All instances.
    pub(crate) fn references(&self) -> Vec<ResourceRef> {
        lock(&self.instances).keys().cloned().collect()
    }

    /// A memory for reviewing an instance, stored or not.
    pub(crate) fn review_memory(&self, reference: &ResourceRef) -> Memory {
        if let Some(instance) = self.instance(reference) {
            return instance.review_memory();
        }
        let mut reviewed = lock(&self.reviewed);
        if reviewed.len() >= REVIEWED_MAX {
            reviewed.clear();
        }
        let verdicts = reviewed.entry(reference.clone()).or_default().clone();
        Memory::for_review(AppliedChildren::default(), verdicts)
    }
}

/// All Airways, by name.
#[derive(Debug, Default)]
pub(crate) struct Kinds(RwLock<HashMap<Arc<str>, Arc<Kind>>>);

impl Kinds {
    pub(crate) fn get(&self, airway: &str) -> Option<Arc<Kind>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(airway)
            .cloned()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<(Arc<str>, Arc<Kind>)> {
        let kinds = self.0.read().unwrap_or_else(PoisonError::into_inner);
        kinds
            .iter()
            .map(|(name, kind)| (name.clone(), kind.clone()))
            .collect()
    }

    /// Takes an Airway's newer state; whether it is new or says something else.
    pub(crate) fn upsert(&self, name: &Arc<str>, airway: Value) -> bool {
        if let Some(kind) = self.get(name) {
            return kind.update(airway);
        }
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.clone(), Arc::new(Kind::new(airway)));
        true
    }

    pub(crate) fn remove(&self, name: &str) -> Option<Arc<Kind>> {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_finalizer_that_others_took_off_is_news() {
        let object = |version: u32, finalizers: Value, gone: Value| {
            json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": version.to_string(),
                "finalizers": finalizers, "deletionTimestamp": gone } })
        };
        let held = json!([names::FINALIZER_INSTANCE, "other"]);
        let instance = Instance::new(object(1, json!([]), Value::Null), Verdicts::default());
        assert!(!instance.update(object(2, held.clone(), Value::Null)));
        assert!(instance.update(object(3, json!(["other"]), Value::Null)));
        assert!(!instance.update(object(4, json!(["other"]), Value::Null)));
        assert!(!instance.update(object(5, held.clone(), Value::Null)));
        // Ours goes last when it is removed.
        assert!(instance.update(object(6, held, json!("t"))));
        assert!(!instance.update(object(7, json!([]), json!("t"))));
    }

    #[test]
    fn an_echo_of_our_own_write_says_nothing_new() {
        let told = json!({
            "apiVersion": "x.dev/v1",
            "kind": "App",
            "metadata": { "creationTimestamp": "t", "generation": 1, "name": "a", "namespace": "n", "uid": "u" },
            "spec": { "b": [1, { "x": null }], "a": "1" },
        });
        let mut echo = told.clone();
        echo["metadata"] = json!({
            "creationTimestamp": "t", "finalizers": ["f"], "generation": 1, "name": "a", "namespace": "n",
            "ownerReferences": [{ "uid": "o" }], "resourceVersion": "2", "uid": "u",
        });
        echo["status"] = json!({ "conditions": [] });
        assert_eq!(fingerprint(&told), fingerprint(&echo));
        let differs = |pointer: &str, value: Value| {
            let mut edited = echo.clone();
            *edited.pointer_mut(pointer).expect("there") = value;
            assert_ne!(fingerprint(&told), fingerprint(&edited), "{pointer}");
        };
        differs("/spec/a", json!(1));
        differs("/spec/b", json!([{ "x": null }, 1]));
        differs("/spec/b/1/x", json!({}));
        differs("/metadata/name", json!("b"));
        let reordered = json!({ "a": "1", "b": [1, { "x": null }] });
        assert_eq!(hash(&told["spec"]), hash(&reordered));
        assert_ne!(hash(&json!(["a", "b"])), hash(&json!([["a"], "b"])));
    }
}
