//! Instances of an Airway's kind: their watch, their runs.

use std::sync::Arc;
use std::time::Instant;

use atc_api::{AirwayMode, ResourceRef};
use atc_engine::Recalled;
use atc_engine::convert;
use atc_engine::disposition::Disposition;
use atc_engine::error::chain;
use atc_engine::instance::{InstanceMemory, InstanceReport, InstanceRequest, Protection};
use atc_engine::observer::Watched;
use atc_engine::release::cluster::{LiveMeta, Mapping};
use atc_engine::watch::Effect;
use serde_json::Value;

use crate::control::Control;
use crate::flights;
use crate::held::Hold;
use crate::kinds::{Instance, Kind, Setup};
use crate::leftovers;
use crate::objects::{self, Only, Sink};
use crate::overrides::{self, Load};
use crate::owner::Owner;
use crate::protect::{self, Guard};
use crate::queue::{Cause, Work};

/// Watches the instances, if they are not watched already; else evaluates all of them where they may come out differently
/// than when they were evaluated last. A watch that begins has each of them evaluated anyway.
pub(crate) fn serve(
    control: &Arc<Control>,
    kind: &Arc<Kind>,
    airway: &Arc<str>,
    mapping: &Mapping,
    crd_uid: &str,
) {
    let due = kind.take_due();
    if let Some(stop) = kind.watch(mapping, crd_uid, &control.stop) {
        tracing::info!(%airway, version = mapping.version, "watching instances");
        let (control, kind, airway, mapping) = (
            control.clone(),
            kind.clone(),
            airway.clone(),
            mapping.clone(),
        );
        tokio::spawn(async move {
            let client = control.engine.cluster().client().clone();
            let sink = InstanceSink {
                control,
                kind,
                airway,
            };
            objects::run(client, mapping, Only::All, &sink, stop).await;
        });
    } else if due {
        evaluate_all(control, kind, airway);
    }
}

/// Has all instances evaluated, since they may come out differently. Flights that run as before, and for long, are ended.
pub(crate) fn evaluate_all(control: &Control, kind: &Kind, airway: &Arc<str>) {
    for target in kind.references() {
        control.edited(
            &Owner::Instance {
                airway: airway.clone(),
                target,
            },
            format!("Airway {airway}"),
        );
    }
    kind.outdate();
}

struct InstanceSink {
    control: Arc<Control>,
    kind: Arc<Kind>,
    airway: Arc<str>,
}

impl InstanceSink {
    fn owner(&self, target: &ResourceRef) -> Owner {
        Owner::Instance {
            airway: self.airway.clone(),
            target: target.clone(),
        }
    }
}

impl Sink for InstanceSink {
    fn upsert(&self, reference: ResourceRef, object: Value) {
        let owner = self.owner(&reference);
        let (instance, edited) = self.kind.upsert(&reference, object);
        if edited {
            self.control.edited(&owner, reference.to_string());
        } else {
            look_again(&self.control, &owner, &instance);
        }
    }

    fn remove(&self, reference: &ResourceRef) {
        let owner = self.owner(reference);
        self.kind.remove(reference);
        note(&self.control, &self.kind, &self.airway, reference, None);
        protect::forget(&self.control, &owner);
        self.control.queue.forget(&owner);
        self.control.hub.forget(&owner);
    }

    fn synced(&self) {
        if self.kind.listed() {
            self.control.listed.notify_one();
        }
    }

    fn alive(&self, _: Instant) {}

    /// The watch is another one where the CRD is, or its stored version.
    fn held(&self) -> Vec<ResourceRef> {
        self.kind.references()
    }
}

/// Has the status of an instance written again, if others changed what we said there.
fn look_again(control: &Control, owner: &Owner, instance: &Instance) {
    if instance.is_overwritten() {
        let cause = Cause::Status(owner.to_string());
        control.queue.push(owner, Effect::StatusOnly, cause);
    }
}

/// One run of an instance.
pub(crate) async fn run(
    control: &Arc<Control>,
    airway: &Arc<str>,
    target: &ResourceRef,
    work: &Work,
) -> Disposition {
    let owner = Owner::Instance {
        airway: airway.clone(),
        target: target.clone(),
    };
    let known = control
        .kinds
        .get(airway)
        .and_then(|kind| Some((kind.setup()?, kind)));
    let Some((setup, kind)) = known else {
        forget(control, &owner, airway, target);
        return Disposition::Wait;
    };
    let Some(instance) = kind.instance(target) else {
        let left = leftovers::remove(control, &kind, &setup, target).await;
        if left == Disposition::Wait {
            forget(control, &owner, airway, target);
        } else {
            control.hub.forget(&owner);
        }
        return left;
    };
    let started = Instant::now();
    let mut memory = instance.memory.lock().await;
    let (object, recalled) = instance.begin();
    // It may have been set up anew while another run was waited for: that is no reason to end this one.
    let setup = kind.setup().unwrap_or(setup);
    let object = match convertible(control, &setup.settings.mapping, object).await {
        Ok(object) => object,
        Err(error) => {
            tracing::warn!(instance = %target, error, "instance can't be converted");
            return Disposition::Retry;
        }
    };
    let begun = Begun {
        object: &object,
        recalled: &recalled,
    };
    let report = evaluate(control, &owner, &setup, begun, &mut memory, work).await;
    log(target, work, &report, started);
    if work.effect == Effect::Evaluate && control.kinds.get(airway).is_some() {
        let failed = report.failure.is_some();
        control.metrics.evaluated(airway, failed, started.elapsed());
        // It may have gone in between: its numbers must not come back.
        if control.kinds.get(airway).is_none() {
            control.metrics.forget(airway);
        }
    }
    let (gone, disposition) = (report.gone, report.disposition);
    if work.effect == Effect::Evaluate {
        let hold = hold_of(&object, &report);
        note(control, &kind, airway, target, hold);
    }
    instance.settle(report);
    drop(memory);
    // What was shown during the run was not compared.
    look_again(control, &owner, &instance);
    // Whoever went during the run must leave nothing behind by its end.
    let there = control
        .kinds
        .get(airway)
        .is_some_and(|kind| kind.instance(target).is_some());
    if gone || !there {
        protect::release(control, &owner).await;
        control.hub.forget(&owner);
    }
    disposition
}

/// What holds an instance that is being deleted, by its run.
fn hold_of(object: &Value, report: &InstanceReport) -> Option<Hold> {
    let waits = LiveMeta::of(object).is_deleting() && !report.gone;
    waits.then(|| Hold {
        why: report.ready.message.clone(),
        unfit: report.unfit,
    })
}

/// Notes what holds an instance, or that nothing does, and tells its Airway where that has something to do or say about it.
fn note(
    control: &Control,
    kind: &Kind,
    airway: &Arc<str>,
    target: &ResourceRef,
    hold: Option<Hold>,
) {
    if kind.held.note(target, hold) && !flights::is_kind(airway) {
        control.edited(&Owner::Airway(airway.clone()), target.to_string());
    }
}

/// Keeps nothing of an instance that is not known when its run ends.
fn forget(control: &Control, owner: &Owner, airway: &str, target: &ResourceRef) {
    control.hub.forget(owner);
    control.queue.forget(owner);
    // One that came meanwhile had asked for its run, perhaps before that was forgotten.
    let kind = control.kinds.get(airway);
    if kind.is_some_and(|kind| kind.instance(target).is_some()) {
        control.edited(owner, target.to_string());
    }
}

/// What a run begins with.
#[derive(Clone, Copy)]
struct Begun<'a> {
    object: &'a Value,
    /// What ends its flight early.
    recalled: &'a Recalled,
}

/// Evaluates an instance, or looks at its status, by what it and its Airway say.
async fn evaluate(
    control: &Arc<Control>,
    owner: &Owner,
    setup: &Setup,
    begun: Begun<'_>,
    memory: &mut InstanceMemory,
    work: &Work,
) -> InstanceReport {
    let Begun { object, recalled } = begun;
    let observer = Watched::new(control.hub.clone(), owner.clone());
    let runs = work.effect == Effect::Evaluate && !LiveMeta::of(object).is_deleting();
    let load = if runs { Load::Cached } else { Load::Not };
    let served = overrides::served(control, setup, object, load).await;
    let guard = Guard { control, owner };
    let is_static = served.settings.mode == AirwayMode::Static;
    if !is_static {
        protect::release(control, owner).await;
    }
    let request = InstanceRequest {
        object,
        settings: &served.settings,
        flight: match &served.flight {
            Ok(flight) => Ok(flight),
            Err(why) => Err(why),
        },
        protection: is_static.then_some(&guard as &dyn Protection),
        recalled,
    };
    let mut report = match work.effect {
        Effect::Evaluate => control.engine.instance(&request, memory, &observer).await,
        Effect::StatusOnly => control.engine.look(&request, memory, &observer).await,
    };
    let unserved = runs && served.overridden && served.flight.is_err();
    if unserved && report.disposition == Disposition::Wait {
        // An Airway whose flight comes tells its instances; nobody tells of one that an instance names itself.
        report.disposition = Disposition::Retry;
    }
    report
}

/// The object, read anew if it could not be converted when the watch showed it: no event tells that it can be by now. As
/// long as it can't, nothing of it is evaluated or written. One that is on its way out need not be understood.
async fn convertible(
    control: &Control,
    mapping: &Mapping,
    object: Arc<Value>,
) -> Result<Arc<Value>, String> {
    let live = LiveMeta::of(&object);
    if live.is_deleting() || convert::mark(&object).is_none() {
        return Ok(object);
    }
    let cluster = control.engine.cluster();
    let read = cluster.get(mapping, live.namespace(), live.name()).await;
    match read.map_err(|error| chain(&error))? {
        Some(now) => match convert::mark(&now) {
            Some(why) if !LiveMeta::of(&now).is_deleting() => Err(why.to_owned()),
            _ => Ok(Arc::new(now)),
        },
        None => Ok(object.clone()),
    }
}

/// One line a run: what woke it, what it did, how it stands. Debug level for runs that did nothing.
fn log(target: &ResourceRef, work: &Work, report: &InstanceReport, started: Instant) {
    let names = |list: &[ResourceRef]| {
        list.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (instance, woken_by) = (target.to_string(), work.cause.to_string());
    let takeoff = &report.takeoff;
    match &report.failure {
        Some(error) => tracing::warn!(instance, woken_by, elapsed_ms, error, "instance failed"),
        None if report.recalled => tracing::info!(
            instance,
            woken_by,
            elapsed_ms,
            "flight ended, since its instance was changed or deleted meanwhile"
        ),
        None if takeoff.written.is_empty()
            && takeoff.pruned.is_empty()
            && takeoff.orphaned.is_empty()
            && report.stored.is_none()
            && !report.gone =>
        {
            tracing::debug!(
                instance,
                woken_by,
                elapsed_ms,
                "instance is as it should be"
            );
        }
        None => tracing::info!(
            instance,
            woken_by,
            elapsed_ms,
            applied = names(&takeoff.written),
            pruned = names(&takeoff.pruned),
            orphaned = names(&takeoff.orphaned),
            ready = report.ready.reason,
            said = report.ready.message,
            gone = report.gone,
            "instance evaluated"
        ),
    }
}
