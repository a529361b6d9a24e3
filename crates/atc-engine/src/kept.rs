//! What is known of the instances of a kind while a process serves them: each object as it was shown last, what is remembered
//! between its runs, and whether a new state of it is an edit or the echo of our own writes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use atc_api::{ResourceRef, names};
use serde_json::Value;

use crate::instance::{InstanceMemory, InstanceReport};
use crate::memory::{AppliedChildren, Memory, Verdicts};
use crate::recall::{Recall, Recalled};
use crate::status::Ours;

/// One instance.
#[derive(Debug)]
pub struct Kept {
    object: RwLock<Arc<Value>>,
    /// Hash of what the object says, for telling an edit from an echo of our own writes.
    said: Mutex<u64>,
    /// Held by the one run that is on.
    pub memory: tokio::sync::Mutex<InstanceMemory>,
    /// Our part of its status after the last run; `None` where that did not write it as it should be.
    ours: Mutex<Option<Ours>>,
    applied: AppliedChildren,
    verdicts: Verdicts,
    recall: Recall,
}

impl Kept {
    /// One that the watch has just shown, and the dry runs that passed for it before it was stored.
    pub fn new(object: Value, verdicts: Verdicts) -> Self {
        let mut memory = InstanceMemory::default();
        memory.release.verdicts = verdicts.clone();
        Self {
            said: Mutex::new(fingerprint(&object)),
            object: RwLock::new(Arc::new(object)),
            applied: memory.release.applied.clone(),
            verdicts,
            memory: tokio::sync::Mutex::new(memory),
            ours: Mutex::default(),
            recall: Recall::default(),
        }
    }

    /// The object as the watch showed it last.
    pub fn object(&self) -> Arc<Value> {
        self.object
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The same for a run that begins, with what ends its flight early.
    pub fn begin(&self) -> (Arc<Value>, Recalled) {
        let object = self.object.read().unwrap_or_else(PoisonError::into_inner);
        (object.clone(), self.recall.watched())
    }

    /// Whether this is one of its children.
    pub fn made(&self, reference: &ResourceRef) -> bool {
        self.applied.fingerprint(reference).is_some()
    }

    /// A memory for an admission review: it shares what was applied and which dry runs passed.
    pub fn review_memory(&self) -> Memory {
        Memory::for_review(self.applied.clone(), self.verdicts.clone())
    }

    /// Takes the state that our own write made, so that the next run need not wait for the watch to tell it.
    fn stored(&self, mut object: Value) {
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

    /// Takes what a run left: the object as it stored it, and our part of the status.
    pub fn settle(&self, report: InstanceReport) {
        if let Some(stored) = report.stored {
            self.stored(stored);
        }
        *lock(&self.ours) = report.ours;
    }

    /// Whether this is a state of the same object, and not of another one of its name.
    pub fn is(&self, object: &Value) -> bool {
        self.object()["metadata"]["uid"] == object["metadata"]["uid"]
    }

    /// Whether others changed our part of the status. While a run is on that is not known: its own writes are on their way.
    pub fn is_overwritten(&self) -> bool {
        if self.memory.try_lock().is_err() {
            return false;
        }
        let object = self.object();
        let is_lost = |ours: &Ours| !ours.stands_in(&object["status"]);
        lock(&self.ours).as_ref().is_some_and(is_lost)
            && object["metadata"]["deletionTimestamp"].is_null()
    }

    /// Takes a newer state as the watch shows it; whether it says something else than the one before. A flight that runs for
    /// what is no longer asked for is ended.
    pub fn update(&self, object: Value) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let now = fingerprint(&object);
        let changed = std::mem::replace(&mut *said, now) != now;
        let mut place = self.object.write().unwrap_or_else(PoisonError::into_inner);
        if changed && !object["metadata"]["deletionTimestamp"].is_null() {
            self.recall.gone();
        } else if changed && asks(&place) != asks(&object) {
            self.recall.edited();
        }
        // The watch may still be on its way to what we stored ourselves.
        let mut let_go = false;
        if version(&object) >= version(&place) {
            let_go = lost(&place, &object, names::FINALIZER_INSTANCE);
            *place = Arc::new(object);
        }
        changed || let_go
    }
}

/// The instances of one kind.
#[derive(Debug, Default)]
pub struct Instances(Mutex<HashMap<ResourceRef, Arc<Kept>>>);

impl Instances {
    /// One of them.
    pub fn get(&self, reference: &ResourceRef) -> Option<Arc<Kept>> {
        lock(&self.0).get(reference).cloned()
    }

    /// All of them.
    pub fn references(&self) -> Vec<ResourceRef> {
        lock(&self.0).keys().cloned().collect()
    }

    /// Takes a state as the watch shows it. Gives the instance, and whether it is to be evaluated, since it is new or says
    /// something else; where not, others may have changed our part of its status. `verdicts` are for one that is new.
    pub fn upsert(
        &self,
        reference: &ResourceRef,
        object: Value,
        verdicts: impl FnOnce() -> Verdicts,
    ) -> (Arc<Kept>, bool) {
        if let Some(known) = self.get(reference).filter(|known| known.is(&object)) {
            let edited = known.update(object);
            return (known, edited);
        }
        let kept = Arc::new(Kept::new(object, verdicts()));
        let before = lock(&self.0).insert(reference.clone(), kept.clone());
        if let Some(before) = before {
            before.recall.gone();
        }
        (kept, true)
    }

    /// Forgets one.
    pub fn remove(&self, reference: &ResourceRef) {
        let gone = lock(&self.0).remove(reference);
        if let Some(gone) = gone {
            gone.recall.gone();
        }
    }

    /// How they are evaluated has changed: flights that run as before are ended. Whoever says so has all evaluated again.
    pub fn outdate(&self) {
        for kept in lock(&self.0).values() {
            kept.recall.edited();
        }
    }
}

/// Whether a finalizer of ours was taken off by somebody else: it is put back, or nobody would clean up.
pub fn lost(before: &Value, now: &Value, finalizer: &str) -> bool {
    let has = |object: &Value| {
        let all = object["metadata"]["finalizers"].as_array();
        all.is_some_and(|all| all.iter().any(|one| one == finalizer))
    };
    has(before) && !has(now) && now["metadata"]["deletionTimestamp"].is_null()
}

/// What an object asks of its flight: all that it says but for its metadata, and its overrides.
fn asks(object: &Value) -> (u64, [&Value; 2]) {
    let mut rest = significant(object);
    if let Value::Object(fields) = &mut rest {
        fields.shift_remove("metadata");
    }
    let annotations = &object["metadata"]["annotations"];
    let overrides = [
        names::ANNOTATION_OVERRIDE_FLIGHT,
        names::ANNOTATION_OVERRIDE_MODE,
    ];
    (hash(&rest), overrides.map(|name| &annotations[name]))
}

/// Hash of what an object says: all but status, owners, finalizers and what only the server writes.
pub fn fingerprint(object: &Value) -> u64 {
    hash(&significant(object))
}

/// The resourceVersion as a number; larger is later.
fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// Hash of what a value says, whatever the order of its keys.
pub fn hash(value: &Value) -> u64 {
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

/// An object without status and without the metadata that says nothing of what is wanted.
pub fn significant(object: &Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(fields) = &mut object {
        fields.shift_remove("status");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            for field in [
                "resourceVersion",
                "generation",
                "managedFields",
                "finalizers",
                "ownerReferences",
                "creationTimestamp",
                "uid",
                "selfLink",
            ] {
                metadata.shift_remove(field);
            }
            metadata.retain(|_, value| {
                !matches!(value, Value::Null) && value.as_object().is_none_or(|map| !map.is_empty())
            });
        }
    }
    object
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let instance = Kept::new(object(1, json!([]), Value::Null), Verdicts::default());
        assert!(!instance.update(object(2, held.clone(), Value::Null)));
        assert!(instance.update(object(3, json!(["other"]), Value::Null)));
        assert!(!instance.update(object(4, json!(["other"]), Value::Null)));
        assert!(!instance.update(object(5, held.clone(), Value::Null)));
        // Ours goes last when it is removed.
        assert!(instance.update(object(6, held, json!("t"))));
        assert!(!instance.update(object(7, json!([]), json!("t"))));
    }

    #[test]
    fn what_is_asked_for_is_all_but_metadata_and_the_overrides() {
        let object = json!({ "metadata": { "name": "a", "annotations": { "other": "1" } }, "spec": { "x": 1 } });
        let check = |pointer: &str, value: Value, expect: bool| {
            let mut edited = object.clone();
            edited.pointer_mut(pointer).expect("there")["new"] = value;
            assert_eq!(asks(&object) != asks(&edited), expect, "{pointer}");
        };
        check("", json!(1), true);
        check("/spec", json!(1), true);
        check("/metadata", json!(1), false);
        check("/metadata/annotations", json!("1"), false);
        for name in [
            names::ANNOTATION_OVERRIDE_FLIGHT,
            names::ANNOTATION_OVERRIDE_MODE,
        ] {
            let mut edited = object.clone();
            edited["metadata"]["annotations"][name] = "x".into();
            assert_ne!(asks(&object), asks(&edited), "{name}");
        }
    }

    #[test]
    fn another_object_of_the_same_name_is_new() {
        let reference = ResourceRef::new("n", "x.dev", "App", "a");
        let object = |uid: &str, version: u32, spec: u32| json!({ "metadata": { "name": "a", "uid": uid, "resourceVersion": version.to_string() }, "spec": spec });
        let instances = Instances::default();
        let shown = |object: Value| instances.upsert(&reference, object, Verdicts::default);
        let (first, is_new) = shown(object("u", 1, 1));
        assert!(is_new);
        let (same, edited) = shown(object("u", 2, 1));
        assert!(Arc::ptr_eq(&first, &same) && !edited);
        let (same, edited) = shown(object("u", 3, 2));
        assert!(Arc::ptr_eq(&first, &same) && edited);
        let (other, is_new) = shown(object("v", 4, 2));
        assert!(!Arc::ptr_eq(&first, &other) && is_new);
        assert_eq!(instances.references(), std::slice::from_ref(&reference));
        instances.remove(&reference);
        assert!(instances.get(&reference).is_none());
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
