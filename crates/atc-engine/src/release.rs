//! The door for programs whose own code makes the resources: operators, installers, tests.
//!
//! A [`Release`] is all that most of them need: resources in, and the cluster holds exactly these. It is what `yoke` and the
//! atc do with the output of a flight, without a flight: all resources are refused or none, what is no longer wanted goes,
//! nothing is written where nothing changed, whoever is killed in the middle loses nothing, and `yoke blackbox`, `yoke
//! turbulence` and `yoke mayday` know it.
//!
//! The front page of this crate shows one from its first takeoff to its mayday. A custom resource's release is
//! [`Release::of`], and [`Release::report`] writes its status; `docs/examples/operator` is a whole operator of under 100
//! lines around them.
//!
//! The parts that a release is made of are the modules below, and each can be used alone: [`desired`] reads resources,
//! [`plan`] says what is to be done, [`cluster`] does it, [`history`] keeps the revisions, [`readiness`] judges, [`drift`]
//! compares.

use std::time::Duration;

use atc_api::names;
use atc_api::settings::DEFAULT_HISTORY_CAP;
use atc_release::cluster::{ErrorKind, LiveMeta, Mapping, WaitOptions};
use atc_release::decorate::Decoration;
use atc_release::drift::DiffOptions;
use atc_release::history::Revision;
use atc_release::object::Object;
use atc_release::plan::PruneOptions;
use kube::Resource;
use serde::Serialize;

use crate::clock;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::instance::{home_of, release_name};
use crate::mayday::{MaydayReport, MaydayRequest};
use crate::memory::Memory;
use crate::observer::NoObserver;
use crate::prepare::Prepared;
use crate::status::{self, Ready};
use crate::takeoff::{DryRun, Report, TakeoffRequest};

pub use atc_release::*;

/// Resources under one name, with history. Cheap to make; nothing is asked of the cluster until something is to be done.
///
/// Resources come as whatever serialises to what a flight may print: a list of objects, typed or JSON (`json!([deployment,
/// service])` joins them), or a list of such lists, stages each of which is ready before the next is begun. An empty list
/// is an explicit nothing.
///
/// *Caveats*: a release has one writer at a time, as an operator with leader election is. Two that work on one side by side
/// are kept apart by [`TakeoffRequest::hold`], for which the [`Engine`] is called itself.
#[derive(Clone)]
pub struct Release {
    engine: Engine,
    request: TakeoffRequest,
}

impl Release {
    /// The release of this name in this namespace, where its record lives and its resources are made that say no other.
    ///
    /// A field that another field manager has set, and an object that the release did not make, are refused.
    pub fn new(engine: &Engine, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let (namespace, release) = (namespace.into(), name.into());
        let decoration = Decoration {
            release: release.clone(),
            namespace: namespace.clone(),
            managed_by: names::MANAGED_BY_YOKE.to_owned(),
            ..Decoration::default()
        };
        let request = TakeoffRequest {
            release,
            namespace,
            source_url: String::new(),
            source_checksum: String::new(),
            decoration,
            force_conflicts: false,
            force_ownership: false,
            dry_run: DryRun::First,
            prune: PruneOptions::default(),
            history_cap: Some(DEFAULT_HISTORY_CAP),
            hold: None,
        };
        Self {
            engine: engine.clone(),
            request,
        }
    }

    /// The release of a custom resource as it is in the cluster: in its namespace (`default` for one of cluster scope, which
    /// may write to all), named `<group>.<Kind>[.<namespace>].<name>`, as the atc does.
    ///
    /// The custom resource owns what is made in its namespace, so that kube's `Controller::owns` wakes for it and nothing is
    /// left behind. Fields that others set are taken back.
    ///
    /// # Errors
    /// [`EngineError::Incomplete`] for an object that is not from the cluster.
    pub fn of<K>(engine: &Engine, owner: &K) -> Result<Self, EngineError>
    where
        K: Resource<DynamicType: Default>,
    {
        let reference = owner.controller_owner_ref(&K::DynamicType::default());
        let reference = reference.ok_or(EngineError::Incomplete("metadata.uid"))?;
        let namespace = owner.meta().namespace.clone();
        let home = namespace.clone().unwrap_or_default();
        let name = release_name(&mapping(owner), &home, &reference.name);
        let mut release = Self::new(engine, home_of(&home), name);
        release.request.force_conflicts = true;
        release.request.decoration.cross_namespace = namespace.is_none();
        release.request.decoration.owner_namespace = namespace;
        release.request.decoration.owner = Some(reference);
        Ok(release)
    }

    /// Its full name.
    pub fn name(&self) -> &str {
        &self.request.release
    }

    /// How the resources differ from the active revision: a unified diff of YAML, empty where nothing differs. The content of
    /// Secrets is hidden.
    pub async fn diff(&self, resources: &impl Serialize) -> Result<String, EngineError> {
        let next = self.prepare(resources).await?.stages;
        let active = self.active().await?;
        let current = active.map(|active| active.stages).unwrap_or_default();
        drift::diff(&current, &next, &DiffOptions::default())
            .map_err(|source| EngineError::Diff { source })
    }

    /// Makes the cluster hold exactly these resources.
    ///
    /// *Guarantees*: those of [`Engine::takeoff`]. [`Report::ready`] says how they stand; nobody is waited for but a stage
    /// that others follow.
    pub async fn takeoff(&self, resources: &impl Serialize) -> Result<Report, EngineError> {
        let prepared = self.prepare(resources).await?;
        self.engine
            .takeoff(
                &self.request,
                &prepared,
                &mut Memory::default(),
                &NoObserver,
            )
            .await
    }

    /// Writes how the release of a custom resource stands into its status, as the condition `Ready`; the rest of the status
    /// stays. Nothing is written that is there already, so this wakes nobody for nothing.
    ///
    /// *Caveats*: nothing is written over a newer state of the object, either. Whoever watches it comes again for that.
    pub async fn report<K>(&self, owner: &K, ready: &Ready) -> Result<(), EngineError>
    where
        K: Resource<DynamicType: Default> + Serialize,
    {
        let object =
            serde_json::to_value(owner).map_err(|source| EngineError::Resources { source })?;
        let live = LiveMeta::of(&object);
        let now = clock::now();
        let generation = live.generation().unwrap_or_default();
        let Some(status) = status::next(&object["status"], None, ready, generation, &now) else {
            return Ok(());
        };
        let written = self
            .engine
            .cluster()
            .replace_status(
                &mapping(owner),
                live.namespace(),
                live.name(),
                &status,
                live.resource_version(),
            )
            .await;
        match written {
            Err(error) if matches!(error.kind(), ErrorKind::Stale | ErrorKind::NotFound) => Ok(()),
            other => other.map(drop).map_err(EngineError::cluster),
        }
    }

    /// Waits until all resources of the active revision are ready, at most this long. Without a revision there is nothing to
    /// wait for.
    ///
    /// # Errors
    /// [`EngineError::Stage`], as soon as one has failed for good and when the time is up, with names and reasons.
    pub async fn wait(&self, limit: Duration) -> Result<(), EngineError> {
        let Some(active) = self.active().await? else {
            return Ok(());
        };
        let namespace = &self.request.namespace;
        let objects: Vec<Object> = active.stages.objects().cloned().collect();
        let sight = self.engine.sight(namespace, &NoObserver);
        let memory = Memory::default();
        let looks = objects
            .iter()
            .map(|object| self.engine.child(object, None, &[], &memory, &sight));
        let mut children = futures::future::try_join_all(looks).await?;
        let count = active.stages.len();
        let options = WaitOptions::within(limit);
        self.engine
            .wait_ready(&objects, &mut children, namespace, options, &NoObserver)
            .await
            .map_err(|source| EngineError::Stage {
                stage: count,
                stages: count,
                source: Box::new(source),
            })
    }

    /// Removes all that the release has made, in reverse stages, then its record. CustomResourceDefinitions and Namespaces
    /// are let go of and stay.
    ///
    /// # Errors
    /// Also when something is not gone within [`EngineOptions::prune_wait`](crate::EngineOptions::prune_wait); the record
    /// stays then, and the next call goes on.
    pub async fn mayday(&self) -> Result<MaydayReport, EngineError> {
        let request = MaydayRequest {
            confined: false,
            release: self.request.release.clone(),
            namespace: self.request.namespace.clone(),
            prune: self.request.prune,
            owner: Some(self.request.decoration.identity()),
            owner_uid: self
                .request
                .decoration
                .owner
                .as_ref()
                .map(|owner| owner.uid.clone()),
            hold: None,
            remembered: Vec::new(),
        };
        self.engine.mayday(&request).await
    }

    async fn prepare(&self, resources: &impl Serialize) -> Result<Prepared, EngineError> {
        let text =
            serde_json::to_vec(resources).map_err(|source| EngineError::Resources { source })?;
        self.engine
            .prepare(&text, None, &self.request.decoration)
            .await
    }

    async fn active(&self) -> Result<Option<Revision>, EngineError> {
        let (name, namespace) = (&self.request.release, &self.request.namespace);
        let revisions = self.engine.revisions(name, namespace).await?;
        Ok(history::active(&revisions).cloned())
    }
}

/// The kind of a custom resource.
fn mapping<K>(object: &K) -> Mapping
where
    K: Resource<DynamicType: Default>,
{
    let kind = K::DynamicType::default();
    Mapping {
        group: K::group(&kind).into_owned(),
        version: K::version(&kind).into_owned(),
        kind: K::kind(&kind).into_owned(),
        plural: K::plural(&kind).into_owned(),
        namespaced: object.meta().namespace.is_some(),
    }
}
