//! One custom resource: finalizer, deletion, takeoff, status → report.
//!
//! A readable list of steps; each does one thing. Why the instance was woken never comes in here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atc_access::Read;
use atc_api::BoxFuture;
use atc_api::names;
use atc_release::cluster::{LiveMeta, MetadataEdit};
use atc_release::decorate::Decoration;
use atc_watch::Dependencies;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use crate::children::{self, Child};
use crate::disposition::{Disposition, pause};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::evaluate::{Evaluated, LoadedFlight};
use crate::memory::Memory;
use crate::observer::{InstanceObserver, NoObserver, Observer};
use crate::prepare;
use crate::recall::Recalled;
use crate::status::{Ours, Ready};
use crate::takeoff::{DryRun, Report, TakeoffRequest};

mod account;
mod cycle;
mod dependencies;
mod flying;
mod identity;
mod memory;
mod pace;
mod removal;
mod settings;
mod waiting;
mod writes;

use account::confirmed;
use dependencies::{dependencies, has_newer_input, inputs};
use identity::Identity;
pub(crate) use identity::release_of;
pub use identity::{home_of, release_name};
pub use memory::InstanceMemory;
use pace::Ran;
pub use settings::{Authority, InstanceSettings, Subject};
use waiting::{Onlooker, may_tell};

/// One instance to bring to its desired state.
pub struct InstanceRequest<'a> {
    /// As the watch shows it, with `apiVersion` and `kind`.
    pub object: &'a Value,
    /// How its kind is evaluated.
    pub settings: &'a InstanceSettings,
    /// Its flight; `None` while that could not be loaded, with the reason.
    pub flight: Result<&'a LoadedFlight, &'a str>,
    /// What keeps others from its children, where the mode wants it.
    pub protection: Option<&'a dyn Protection>,
    /// What ends its flight early.
    pub recalled: &'a Recalled,
}

/// Keeps others from changing the children of an instance in mode `static`.
pub trait Protection: Send + Sync {
    /// Protects these children. The error says why they are not protected yet: until then the instance is not ready.
    fn protect<'a>(&'a self, children: &'a [Child]) -> BoxFuture<'a, Result<(), String>>;
}

/// It is looked again whether children are protected after 1 s, doubling up to this: 32 s. The API server takes a second to
/// follow a webhook configuration; where it can't reach the webhook, or another one refuses the probe before, only somebody
/// who mends that makes a difference, and each look is a run of the flight.
const PROTECTION_PAUSE: Duration = Duration::from_secs(32);

/// How it went.
#[derive(Debug)]
pub struct InstanceReport {
    /// When to come back.
    pub disposition: Disposition,
    /// What was written, pruned, let go of.
    pub takeoff: Report,
    /// Why it failed, if it did. What goes, and is waited for, is no failure.
    pub failure: Option<String>,
    /// The instance is gone: its finalizer was removed.
    pub gone: bool,
    /// It is being deleted, and the API server does not let it go, since it does not fit the schema of its kind.
    pub unfit: bool,
    /// Its flight was ended before its time: nothing came of it, nothing was said, and another evaluation follows.
    pub recalled: bool,
    /// What it said about readiness.
    pub ready: Ready,
    /// The instance as it was last stored by us, if we wrote it.
    pub stored: Option<Value>,
    /// Our part of its status, if that is as it should be now.
    pub ours: Option<Ours>,
}

/// An evaluation that failed.
struct Failed {
    error: EngineError,
    /// What its flight had looked up by then: a change of that wakes the instance.
    reads: Vec<Read>,
    /// The status that its flight printed for its parent all the same.
    printed: Option<Value>,
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        Self {
            reads: error.reads().to_vec(),
            error,
            printed: None,
        }
    }
}

/// What a release of an instance is made from.
struct Context<'a> {
    settings: &'a InstanceSettings,
    flight: &'a LoadedFlight,
    object: &'a Value,
    /// Its children as last judged.
    known: &'a [Child],
}

impl Engine {
    /// Evaluates an instance and brings its children and its status to what the flight says.
    ///
    /// # Errors
    /// None: a failure is a condition of the instance and a [`Disposition`].
    pub async fn instance(
        &self,
        request: &InstanceRequest<'_>,
        memory: &mut InstanceMemory,
        observer: &dyn InstanceObserver,
    ) -> InstanceReport {
        let mut object = request.object.clone();
        let engine = self.of(&request.settings.subject);
        let result = engine.advance(request, &mut object, memory, observer).await;
        let mut report = match result {
            Ok(report) => report,
            Err(error) => {
                observer.fail(Dependencies::default());
                let report = InstanceReport::failed(&error);
                memory.fail(&report.ready, None);
                report
            }
        };
        if let Some(told) = memory.told.take() {
            object = told;
        }
        if report.gone {
            return report;
        }
        if LiveMeta::of(&object).resource_version()
            != LiveMeta::of(request.object).resource_version()
        {
            report.stored = Some(object.clone());
        }
        if report.recalled {
            return report;
        }
        if let Err(error) = self
            .write_status(request.settings, &mut object, memory, &mut report)
            .await
        {
            // A removal that others hold up is looked at as often as ever, whatever its status can say.
            let waits = matches!(report.disposition, Disposition::After(_));
            if !waits || !LiveMeta::of(&object).is_deleting() {
                report.disposition = Disposition::Retry;
            }
            report.failure.get_or_insert(error.chain());
        }
        // Without a flight nothing can be put right: whoever brings it wakes the instance.
        if request.flight.is_ok() && !LiveMeta::of(request.object).is_deleting() {
            let interval = request.settings.drift_interval;
            report.disposition = report.disposition.at_least_every(interval);
        }
        report
    }

    async fn advance(
        &self,
        request: &InstanceRequest<'_>,
        object: &mut Value,
        memory: &mut InstanceMemory,
        observer: &dyn InstanceObserver,
    ) -> Result<InstanceReport, EngineError> {
        if LiveMeta::of(object).is_deleting() {
            return self
                .remove(request.settings, object, memory, observer)
                .await;
        }
        if !self.hold(request.settings, object).await? {
            return Ok(InstanceReport::gone());
        }
        let flight = match request.flight {
            Ok(flight) => flight,
            Err(why) => {
                let ready = Ready::error(why);
                memory.fail(&ready, None);
                return Ok(InstanceReport::of(ready, Disposition::Wait));
            }
        };
        observer.begin();
        match self.fly(request, flight, object, memory, observer).await {
            Ok(report) => Ok(report),
            Err(Failed {
                error: EngineError::Recalled,
                ..
            }) => {
                observer.fail(Dependencies::default());
                Ok(InstanceReport::recalled())
            }
            Err(failed) => {
                let mut inputs = inputs(request.settings, &failed.reads, &memory.children);
                inputs.extend(memory.account.clone());
                observer.fail(inputs.into());
                let mut report = InstanceReport::failed(&failed.error);
                report.disposition =
                    removal::after_takeoff(&failed.error, &mut memory.left_over, Instant::now());
                memory.fail(&report.ready, failed.printed);
                Ok(report)
            }
        }
    }

    /// Sets finalizer and owner, in one call, where they are missing. False: the object is gone, nothing may be made.
    async fn hold(
        &self,
        settings: &InstanceSettings,
        object: &mut Value,
    ) -> Result<bool, EngineError> {
        let edit = MetadataEdit {
            add_finalizer: Some(names::FINALIZER_INSTANCE.into()),
            add_owner: settings.owner.clone(),
            ..MetadataEdit::default()
        };
        match self.edit(settings, object, &edit).await? {
            (Some(stored), _) => {
                *object = stored;
                Ok(true)
            }
            // It may have been set by a call of ours whose answer was lost.
            (None, seen) => Ok(seen.finalizers().contains(&names::FINALIZER_INSTANCE)),
        }
    }

    /// Flight → takeoff → children.
    async fn fly(
        &self,
        request: &InstanceRequest<'_>,
        flight: &LoadedFlight,
        object: &Value,
        memory: &mut InstanceMemory,
        observer: &dyn InstanceObserver,
    ) -> Result<InstanceReport, Failed> {
        let settings = request.settings;
        let began = Instant::now();
        let identity = Identity::of(object, settings)?;
        memory.account = self.see_account(settings, observer).await?;
        confirmed(settings, memory.account.as_ref())?;
        let mut told = None;
        let evaluated = self
            .run_telling(request, flight, object, memory, &mut told, observer)
            .await;
        memory.told.clone_from(&told);
        let evaluated = evaluated?;
        let object = told.as_ref().unwrap_or(object);
        if let Some(error) = evaluated.failure() {
            // What it says of its parent counts all the same.
            let printed = if settings.subject.is_flight() {
                None
            } else {
                prepare::parent_status_of_failure(&evaluated.outcome.stdout, &identity.reference)
            };
            return Err(Failed {
                error,
                reads: evaluated.reads,
                printed,
            });
        }
        let reads = evaluated.reads.clone();
        let failed = |error| Failed {
            error,
            reads: reads.clone(),
            printed: None,
        };
        self.confirm_record(
            &identity.record,
            identity.home,
            settings.drift_interval,
            &mut memory.release,
        )
        .await
        .map_err(failed)?;
        let context = Context {
            settings,
            flight,
            object,
            known: &memory.children,
        };
        let (onlooker, stage) = Onlooker::new(observer);
        let work = Box::pin(self.release(
            &context,
            &evaluated,
            &mut memory.release,
            &onlooker,
            DryRun::First,
        ));
        let (printed, mut news) = (memory.printed.as_ref(), None);
        let done = if may_tell(object, memory.failure.is_some(), printed) {
            self.telling(settings, object, printed, &mut news, stage, work)
                .await
        } else {
            work.await
        };
        if news.is_some() {
            memory.told = news;
        }
        let (takeoff, printed) = done.map_err(failed)?;
        memory.failure = None;
        memory.left_over = None;
        memory.children.clone_from(&takeoff.children);
        let printed = if settings.subject.is_flight() {
            Some(children::inventory(&memory.children))
        } else {
            printed
        };
        let says_anew = memory.printed != printed;
        memory.printed = printed;
        memory.reads = reads;
        let ran = Ran {
            settings,
            object,
            flight: &flight.sha256,
            reference: &identity.reference,
            writes: !takeoff.written.is_empty() || !takeoff.pruned.is_empty(),
            says_anew,
            began,
        };
        memory.keep_pace(&ran, observer);
        let (verdict, unprotected) = verdict(request, memory).await;
        observer.commit(dependencies(settings, memory));
        let settled = || memory.pace.disposition();
        let disposition = unprotected.map_or_else(settled, Disposition::After);
        Ok(InstanceReport {
            takeoff,
            ..InstanceReport::of(verdict, disposition)
        })
    }

    /// Makes the release of an instance from what its flight printed.
    async fn release(
        &self,
        context: &Context<'_>,
        evaluated: &Evaluated,
        memory: &mut Memory,
        observer: &dyn Observer,
        dry_run: DryRun,
    ) -> Result<(Report, Option<Value>), EngineError> {
        let Context {
            settings,
            flight,
            object,
            known,
        } = *context;
        let identity = Identity::of(object, settings)?;
        let is_flight = settings.subject.is_flight();
        let request = TakeoffRequest {
            release: identity.record.clone(),
            namespace: identity.home.to_owned(),
            source_url: flight.url.clone(),
            source_checksum: flight.sha1.clone(),
            decoration: Decoration {
                release: identity.release.clone(),
                namespace: identity.home.to_owned(),
                managed_by: names::MANAGED_BY_ATC.to_owned(),
                instance_ref: (!is_flight).then(|| identity.reference.clone()),
                owner: Some(OwnerReference {
                    api_version: settings.mapping.api_version(),
                    kind: settings.mapping.kind.clone(),
                    name: identity.name.to_owned(),
                    uid: identity.uid.to_owned(),
                    ..OwnerReference::default()
                }),
                owner_namespace: settings
                    .mapping
                    .namespaced
                    .then(|| identity.namespace.to_owned()),
                cross_namespace: !settings.mapping.namespaced,
                confined: settings.subject.is_confined(),
                reserved: self.options().reserved.clone(),
            },
            force_conflicts: true,
            force_ownership: true,
            dry_run,
            prune: settings.prune,
            history_cap: settings.history_cap,
            hold: None,
        };
        let prepared = self
            .prepare(
                &evaluated.outcome.stdout,
                Some(&identity.reference),
                &request.decoration,
            )
            .await?;
        cycle::refuse(&prepared.stages, object, settings)?;
        let report = self
            .takeoff_knowing(&request, &prepared, known, memory, observer)
            .await?;
        Ok((report, prepared.parent_status))
    }

    /// Would this object be accepted: the flight runs on it, and what it prints passes a dry run. Nothing is written.
    pub async fn review(
        &self,
        settings: &InstanceSettings,
        flight: &LoadedFlight,
        object: &Value,
        memory: &mut Memory,
        observer: &dyn Observer,
    ) -> Result<(), EngineError> {
        let engine = self.of(&settings.subject).reviewing();
        let account = engine.see_account(settings, observer).await?;
        confirmed(settings, account.as_ref())?;
        let evaluated = engine
            .run_instance(
                settings,
                flight,
                object,
                Arc::new(NoObserver),
                &Recalled::default(),
            )
            .await?;
        if let Some(failure) = evaluated.failure() {
            return Err(failure);
        }
        let context = Context {
            settings,
            flight,
            object,
            known: &[],
        };
        engine
            .release(&context, &evaluated, memory, observer, DryRun::Only)
            .await
            .map(drop)
    }

    /// Looks at the children again and writes the status; the flight does not run and nothing is applied.
    pub async fn look(
        &self,
        request: &InstanceRequest<'_>,
        memory: &mut InstanceMemory,
        observer: &dyn InstanceObserver,
    ) -> InstanceReport {
        if LiveMeta::of(request.object).is_deleting() {
            // Its status says how its removal goes.
            let disposition = removal::seen_going(&mut memory.children, observer);
            return InstanceReport::of(Ready::terminating("it is being removed"), disposition);
        }
        let mut object = request.object.clone();
        let engine = self.of(&request.settings.subject);
        observer.begin_look();
        let mut children = std::mem::take(&mut memory.children);
        let judged = match Identity::of(request.object, request.settings) {
            Ok(identity) => {
                let owner = identity.owner(request.settings);
                let sight = engine.sight(identity.home, observer).of(owner);
                engine.rejudge(&mut children, &sight).await
            }
            Err(error) => Err(error),
        };
        memory.children = children;
        let failure = memory.failure.clone();
        let mut report = match (judged, failure) {
            (Err(error), _) => {
                observer.fail(Dependencies::default());
                let mut report = InstanceReport::failed(&error);
                report.ready = memory.summary();
                report
            }
            (Ok(()), Some(failure)) => {
                observer.fail(Dependencies::default());
                InstanceReport {
                    failure: None,
                    ..InstanceReport::of(failure, Disposition::Wait)
                }
            }
            (Ok(()), None) => {
                if has_newer_input(request.settings, memory) {
                    // The flight has not seen this yet: what follows from it is not known, so nothing is said.
                    observer.commit(dependencies(request.settings, memory));
                    let ready = memory.summary();
                    return InstanceReport::of(ready, Disposition::Wait);
                }
                observer.commit(dependencies(request.settings, memory));
                if request.settings.subject.is_flight() {
                    memory.printed = Some(children::inventory(&memory.children));
                }
                let (ready, unprotected) = verdict(request, memory).await;
                InstanceReport::of(
                    ready,
                    unprotected.map_or(Disposition::Wait, Disposition::After),
                )
            }
        };
        if let Err(error) = self
            .write_status(request.settings, &mut object, memory, &mut report)
            .await
        {
            report.disposition = Disposition::Retry;
            report.failure.get_or_insert(error.chain());
        }
        report
    }
}

/// How the children stand; and when to look again, where they are not protected yet.
async fn verdict(
    request: &InstanceRequest<'_>,
    memory: &mut InstanceMemory,
) -> (Ready, Option<Duration>) {
    let ready = memory.summary();
    let protected = match request.protection {
        Some(protection) => protection.protect(&memory.children).await,
        None => Ok(()),
    };
    let Err(why) = protected else {
        memory.unprotected = None;
        return (ready, None);
    };
    let pause = pause(&mut memory.unprotected, Instant::now(), PROTECTION_PAUSE);
    let ready = if ready.status {
        Ready::in_progress(why)
    } else {
        ready
    };
    (ready, Some(pause))
}

impl InstanceReport {
    fn of(ready: Ready, disposition: Disposition) -> Self {
        Self {
            disposition,
            takeoff: Report::default(),
            failure: None,
            gone: false,
            recalled: false,
            unfit: false,
            ready,
            stored: None,
            ours: None,
        }
    }

    fn gone() -> Self {
        Self {
            gone: true,
            ..Self::of(Ready::terminating("it is gone"), Disposition::Wait)
        }
    }

    fn recalled() -> Self {
        let ready = Ready::in_progress("its flight was ended, and begins anew");
        Self {
            recalled: true,
            ..Self::of(ready, Disposition::Wait)
        }
    }

    fn failed(error: &EngineError) -> Self {
        let words = error.chain();
        match error {
            EngineError::Going(_) => Self::of(Ready::in_progress(words), error.disposition()),
            _ => Self {
                failure: Some(words.clone()),
                ..Self::of(Ready::error(words), error.disposition())
            },
        }
    }
}
