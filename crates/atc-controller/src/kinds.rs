//! What is known of each Airway and its instances while the process runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use atc_api::{ResourceRef, names};
use atc_engine::instance::InstanceSettings;
use atc_engine::kept::{Instances, fingerprint, lost};
pub(crate) use atc_engine::kept::{Kept as Instance, hash};
use atc_engine::memory::{AppliedChildren, Memory, Verdicts};
use atc_engine::{LoadedFlight, release::cluster::Mapping};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::held::Held;
use crate::modules::Converter;

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

/// An Airway's running part.
#[derive(Debug)]
pub(crate) struct Kind {
    airway: RwLock<Arc<Value>>,
    said: Mutex<u64>,
    setup: RwLock<Option<Arc<Setup>>>,
    /// Whether the setup was changed in a way that its instances may come out differently, and they were not told yet.
    due: AtomicBool,
    instances: Instances,
    /// Those that are being deleted and are still there.
    pub(crate) held: Held,
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
            due: AtomicBool::new(false),
            instances: Instances::default(),
            held: Held::default(),
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

    /// Serves instances in another way from now on. Where their results may differ, all are [due](Self::take_due).
    pub(crate) fn set_setup(&self, setup: Setup) {
        let mut place = self.setup.write().unwrap_or_else(PoisonError::into_inner);
        let differs = place.as_ref().is_none_or(|before| {
            before.spec != setup.spec
                || before.flight.as_ref().map(|f| &f.sha256).ok()
                    != setup.flight.as_ref().map(|f| &f.sha256).ok()
        });
        *place = Some(Arc::new(setup));
        self.due.fetch_or(differs, Ordering::AcqRel);
    }

    /// Takes the note that all instances are to be evaluated; whether there was one. It stays until somebody does so,
    /// whatever fails between the change and that.
    pub(crate) fn take_due(&self) -> bool {
        self.due.swap(false, Ordering::AcqRel)
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

    /// Whether instances are watched.
    pub(crate) fn is_watched(&self) -> bool {
        let watch = lock(&self.watch);
        watch.as_ref().is_some_and(|now| !now.stop.is_cancelled())
    }

    /// Ends the watch of instances.
    pub(crate) fn stop(&self) {
        if let Some(watch) = lock(&self.watch).take() {
            watch.stop.cancel();
        }
    }

    /// Takes an instance's newer state; whether it is new or says something else.
    pub(crate) fn upsert(&self, reference: &ResourceRef, object: Value) -> (Arc<Instance>, bool) {
        let reviewed = || lock(&self.reviewed).remove(reference).unwrap_or_default();
        self.instances.upsert(reference, object, reviewed)
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
        self.instances.remove(reference);
    }

    /// Ends flights that run as instances were served before. Whoever says so has all evaluated again.
    pub(crate) fn outdate(&self) {
        self.instances.outdate();
    }

    /// An instance.
    pub(crate) fn instance(&self, reference: &ResourceRef) -> Option<Arc<Instance>> {
        self.instances.get(reference)
    }

    /// All instances.
    pub(crate) fn references(&self) -> Vec<ResourceRef> {
        self.instances.references()
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
