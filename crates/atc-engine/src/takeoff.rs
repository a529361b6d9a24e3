//! Output of a flight → plan → dry run → record → apply → prune → report.
//!
//! The order is the safety rule. Nothing is written before every object has been parsed, decorated and (where asked)
//! dry-run. The revision is recorded *before* the first object is applied and older ones are dropped only *after* the
//! prune: whoever is killed in between leaves a record that names every object that may exist, and the next takeoff
//! or mayday prunes by all of them.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use atc_api::ResourceRef;
use atc_release::cluster::{ApplyOptions, ClusterError, ErrorKind, Expect, Preview};
use atc_release::decorate::Decoration;
use atc_release::object::{Object, Stages};
use atc_release::ownership::{self, Owner};
use atc_release::plan::{self, Plan, PruneOptions};
use atc_watch::{Fingerprint, Target};

use crate::children::Child;
use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::memory::{Applied, Memory};
use crate::observer::{Observer, Progress};
use crate::prepare::Prepared;

mod record;

use record::is_covered;

/// What is done about a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRun {
    /// First a dry run of all, then the writes. The default. Left out where one known object is all there is to write.
    First,
    /// Only the dry run; nothing is written or recorded.
    Only,
    /// No dry run.
    Skip,
}

/// A release to bring about.
#[derive(Clone, Debug)]
pub struct TakeoffRequest {
    /// The release's full name, as its record has it.
    pub release: String,
    /// The target namespace, where the record lives.
    pub namespace: String,
    /// Where the flight came from; empty for none.
    pub source_url: String,
    /// Hex SHA-1 of its module; empty for none.
    pub source_checksum: String,
    /// Marks, owner and scope of the children.
    pub decoration: Decoration,
    /// Take fields that another manager set.
    pub force_conflicts: bool,
    /// Take objects of nobody or of another release.
    pub force_ownership: bool,
    /// Whether and how to dry-run.
    pub dry_run: DryRun,
    /// Whether CRDs and Namespaces are deleted or let go of.
    pub prune: PruneOptions,
    /// Revisions to keep; `None` keeps all.
    pub history_cap: Option<usize>,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Every child, with the verdict on it where it was judged.
    pub children: Vec<Child>,
    /// Objects that were written, by name.
    pub written: Vec<ResourceRef>,
    /// Objects that were removed.
    pub pruned: Vec<ResourceRef>,
    /// Objects that were let go of.
    pub orphaned: Vec<ResourceRef>,
    /// Whether a revision was recorded: the desired state is not the last one.
    pub changed: bool,
    /// What a dry run could not judge, because its kind or namespace is in the same output.
    pub unjudged: Vec<ResourceRef>,
}

/// What the applies of a takeoff go by.
struct Work<'a> {
    due: &'a HashSet<ResourceRef>,
    expectations: &'a HashMap<ResourceRef, Expect>,
    known: &'a [Child],
    observer: &'a dyn Observer,
}

impl Engine {
    /// Makes the cluster hold exactly what `prepared` says, with history.
    ///
    /// *Guarantees*: nothing is written if any object is refused by the dry run; an object that another release owns is
    /// not touched unless asked; nothing is pruned that the record does not name or that is not ours any more; whoever
    /// is killed on the way leaves a record that names all that may exist.
    pub async fn takeoff(
        &self,
        request: &TakeoffRequest,
        prepared: &Prepared,
        memory: &mut Memory,
        observer: &dyn Observer,
    ) -> Result<Report, EngineError> {
        self.takeoff_knowing(request, prepared, &[], memory, observer)
            .await
    }

    /// The same for a release whose children were judged before.
    pub(crate) async fn takeoff_knowing(
        &self,
        request: &TakeoffRequest,
        prepared: &Prepared,
        known: &[Child],
        memory: &mut Memory,
        observer: &dyn Observer,
    ) -> Result<Report, EngineError> {
        let stages = &prepared.stages;
        let due = due(stages, memory, observer);
        let expectations = if request.force_ownership {
            HashMap::new()
        } else {
            self.check_ownership(request, stages).await?
        };
        self.read_revisions(request, memory).await?;
        let mut report = Report::default();
        if needs_dry_run(request, stages, &due, memory) {
            let hash = prepared.hash_of(&due);
            if !memory.verdicts.passed(&hash, Instant::now()) {
                report.unjudged = self.dry_run(request, stages, &due).await?;
                memory.verdicts.pass(hash, Instant::now());
            }
        }
        let draft = Self::draft(request, stages, memory)?;
        if request.dry_run == DryRun::Only {
            return Ok(report);
        }

        self.clear_unfinished(request, stages, memory).await?;
        let grows = draft.is_some() && !is_covered(stages, memory.history());
        report.changed = draft.is_some();
        let mut draft = draft;
        if grows && let Some(revision) = draft.take() {
            self.store(revision, memory).await?;
        }
        let work = Work {
            due: &due,
            expectations: &expectations,
            known,
            observer,
        };
        if let Err(error) = self
            .apply(request, stages, &work, memory, &mut report)
            .await
        {
            // What was applied before the failure may not be as remembered.
            memory.applied.clear();
            return Err(error);
        }
        self.settle(request, stages, draft, memory).await?;
        self.prune(request, stages, memory, observer, &mut report)
            .await?;
        self.cap(request, memory).await?;
        let live: HashSet<ResourceRef> = stages.objects().map(Object::reference).collect();
        memory.applied.retain(&live);
        Ok(report)
    }

    /// Refuses what belongs to others; gives what the applies must find unchanged.
    async fn check_ownership(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
    ) -> Result<HashMap<ResourceRef, Expect>, EngineError> {
        let us = Owner::new(&request.namespace, &request.release);
        let checks = stages
            .objects()
            .map(|object| async move { (object, self.live_metadata(object).await) });
        let results = futures::future::join_all(checks).await;
        let mut expectations = HashMap::new();
        let mut failures = Vec::new();
        for (object, live) in results {
            match live {
                Err(error) if error.kind() == ErrorKind::NoSuchKind => {}
                Err(error) => failures.push(chain(&error)),
                Ok(None) => {
                    expectations.insert(object.reference(), Expect::Absent);
                }
                Ok(Some(live)) => {
                    match ownership::may_take(&object.canonical(), Some(live.value()), &us, false) {
                        Ok(()) => {}
                        Err(error) => failures.push(chain(&error)),
                    }
                }
            }
        }
        if failures.is_empty() {
            return Ok(expectations);
        }
        Err(EngineError::Refused {
            step: "ownership",
            failures,
        })
    }

    async fn live_metadata(
        &self,
        object: &Object,
    ) -> Result<Option<atc_release::cluster::LiveMeta>, ClusterError> {
        let mapping = self
            .cluster()
            .mapping(object.api_version(), object.kind())
            .await?;
        self.cluster()
            .metadata(
                &mapping,
                object.namespace().unwrap_or_default(),
                object.name(),
            )
            .await
    }

    /// One dry run over all stages before anything is applied. Gives what could not be judged.
    async fn dry_run(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        due: &HashSet<ResourceRef>,
    ) -> Result<Vec<ResourceRef>, EngineError> {
        let wanted: Vec<Vec<Object>> = stages.iter().map(|stage| pick(stage, due)).collect();
        let options = |_: &Object| ApplyOptions {
            force: request.force_conflicts,
            ..ApplyOptions::default()
        };
        let mut unjudged = Vec::new();
        let mut failures = Vec::new();
        for (object, preview) in wanted.iter().flatten().zip(
            self.cluster()
                .preview(&wanted, options)
                .await
                .into_iter()
                .flatten(),
        ) {
            match preview {
                Preview::Accepted(_) => {}
                Preview::Unjudged(_) => unjudged.push(object.reference()),
                Preview::Refused(error) => failures.push(chain(&error)),
            }
        }
        if failures.is_empty() {
            Ok(unjudged)
        } else {
            Err(EngineError::Refused {
                step: "dry run",
                failures,
            })
        }
    }

    async fn apply(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        work: &Work<'_>,
        memory: &mut Memory,
        report: &mut Report,
    ) -> Result<(), EngineError> {
        let count = stages.len();
        let sight = self.sight(&request.namespace, work.observer);
        for (at, stage) in stages.iter().enumerate() {
            let wanted = pick(stage, work.due);
            work.observer.progress(Progress::Applying {
                stage: at + 1,
                stages: count,
                objects: wanted.len(),
            });
            for object in &wanted {
                let mapping = self
                    .cluster()
                    .mapping(object.api_version(), object.kind())
                    .await;
                // A kind that is not served is refused by the apply, with its words.
                if let Ok(mapping) = mapping {
                    work.observer.interest(&Target::new(
                        object.reference(),
                        &mapping.version,
                        &mapping.plural,
                    ));
                }
            }
            let options = |object: &Object| ApplyOptions {
                force: request.force_conflicts,
                expect: work
                    .expectations
                    .get(&object.reference())
                    .cloned()
                    .unwrap_or_default(),
                ..ApplyOptions::default()
            };
            let answers = self.cluster().apply_stage(&wanted, options).await;
            let mut live = HashMap::new();
            let mut failures = Vec::new();
            for (object, answer) in wanted.iter().zip(answers) {
                match answer {
                    Ok(applied) => {
                        let fingerprint = Fingerprint::of(&applied.live);
                        memory.applied.insert(
                            object.reference(),
                            Applied {
                                sent: object.hash(),
                                fingerprint,
                            },
                        );
                        report.written.push(object.reference());
                        live.insert(object.reference(), applied.live);
                    }
                    Err(error) => failures.push(chain(&error)),
                }
            }
            if !failures.is_empty() {
                return Err(EngineError::Refused {
                    step: "apply",
                    failures,
                });
            }
            let first = report.children.len();
            for object in stage {
                let live = live.remove(&object.reference());
                let child = self.child(object, live, work.known, memory, &sight).await?;
                report.children.push(child);
            }
            self.wait_served(&wanted).await?;
            if at + 1 < count {
                let limit = self.options().stage_wait;
                let children = report.children.get_mut(first..).unwrap_or_default();
                self.wait_ready(stage, children, &request.namespace, limit, work.observer)
                    .await
                    .map_err(|source| EngineError::Stage {
                        stage: at + 1,
                        stages: count,
                        source: Box::new(source),
                    })?;
            }
        }
        Ok(())
    }

    /// Waits until the kinds that a stage defines are served, the last stage included: whoever makes an object of such a
    /// kind next, in this takeoff or in another, finds it.
    pub(crate) async fn wait_served(&self, stage: &[Object]) -> Result<(), EngineError> {
        for crd in stage
            .iter()
            .filter(|object| object.kind() == "CustomResourceDefinition" && object.is_foundation())
        {
            let served = self
                .cluster()
                .wait_established(crd.name(), self.options().stage_wait)
                .await;
            served.map_err(|source| EngineError::Served {
                source: Box::new(source),
            })?;
        }
        Ok(())
    }

    /// Removes what the record names and the output does not.
    async fn prune(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        memory: &mut Memory,
        observer: &dyn Observer,
        report: &mut Report,
    ) -> Result<(), EngineError> {
        let previous: Vec<Stages> = memory
            .history()
            .iter()
            .map(|revision| revision.stages.clone())
            .collect();
        let plan = without(
            plan::plan(stages.clone(), &previous, request.prune),
            &memory.gone,
        );
        if plan.prune.is_empty() && plan.orphan.is_empty() {
            return Ok(());
        }
        observer.progress(Progress::Removing {
            objects: plan.prune.iter().map(Vec::len).sum(),
        });
        let us = Owner::new(&request.namespace, &request.release);
        let owner_uid = request
            .decoration
            .owner
            .as_ref()
            .map(|owner| owner.uid.as_str());
        let removed = self.carry_out(&plan, &us, owner_uid).await?;
        memory.gone.extend(removed.settled);
        report.pruned = removed.deleted;
        report.orphaned = removed.orphaned;
        Ok(())
    }
}

/// Whether a dry run can save anything: the apply of a single object is refused whole or not at all, and where the
/// record names that object already nothing is written before it.
fn needs_dry_run(
    request: &TakeoffRequest,
    stages: &Stages,
    due: &HashSet<ResourceRef>,
    memory: &Memory,
) -> bool {
    match request.dry_run {
        DryRun::Skip => false,
        DryRun::Only => !due.is_empty(),
        DryRun::First => due.len() > 1 || !(due.is_empty() || is_covered(stages, memory.history())),
    }
}

/// The objects that must be sent: changed since they were last sent, or disturbed since by others.
fn due(stages: &Stages, memory: &Memory, observer: &dyn Observer) -> HashSet<ResourceRef> {
    let undisturbed = |object: &&Object| {
        let reference = object.reference();
        !memory
            .applied
            .is_undisturbed(&reference, &object.hash(), &observer.latest(&reference))
    };
    stages
        .objects()
        .filter(undisturbed)
        .map(Object::reference)
        .collect()
}

fn pick(stage: &[Object], due: &HashSet<ResourceRef>) -> Vec<Object> {
    stage
        .iter()
        .filter(|object| due.contains(&object.reference()))
        .cloned()
        .collect()
}

/// The plan without what is known to be gone.
fn without(mut plan: Plan, gone: &HashSet<ResourceRef>) -> Plan {
    for stage in &mut plan.prune {
        stage.retain(|item| !gone.contains(&item.target));
    }
    plan.prune.retain(|stage| !stage.is_empty());
    plan.orphan.retain(|item| !gone.contains(&item.target));
    plan
}
