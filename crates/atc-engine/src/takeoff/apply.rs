//! The applies of a takeoff: stage by stage, each ready before the next.

use std::collections::{HashMap, HashSet};

use atc_api::ResourceRef;
use atc_release::cluster::{ApplyOptions, Expect, WaitOptions};
use atc_release::history::{NEVER_ACTIVE, Revision};
use atc_release::object::{Object, Stages};
use atc_watch::{Fingerprint, Target};
use serde_json::Value;

use super::check::was_changed;
use super::{Report, TakeoffRequest};
use crate::children::Child;
use crate::engine::{Engine, STAGE_WAIT};
use crate::error::{EngineError, chain};
use crate::memory::{Applied, Memory};
use crate::observer::{Observer, Progress};

/// What the applies of a takeoff go by.
pub(crate) struct Work<'a> {
    /// What is to be sent.
    pub(crate) due: &'a HashSet<ResourceRef>,
    /// What the release had before, see [`former`].
    pub(crate) former: &'a HashMap<ResourceRef, Object>,
    /// What the applies must find.
    pub(crate) expectations: &'a HashMap<ResourceRef, Expect>,
    /// Children that were judged before.
    pub(crate) known: &'a [Child],
    /// Who is told.
    pub(crate) observer: &'a dyn Observer,
}

impl Engine {
    /// Applies what is due. After a failure nothing of what was applied counts as remembered.
    pub(crate) async fn apply(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        work: &Work<'_>,
        memory: &mut Memory,
        report: &mut Report,
    ) -> Result<(), EngineError> {
        let applied = self
            .apply_stages(request, stages, work, memory, report)
            .await;
        if applied.is_err() {
            memory.applied.clear();
        }
        applied
    }

    async fn apply_stages(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        work: &Work<'_>,
        memory: &Memory,
        report: &mut Report,
    ) -> Result<(), EngineError> {
        let count = stages.len();
        for (at, stage) in stages.iter().enumerate() {
            let wanted = pick(stage, work.due);
            work.observer.progress(Progress::Applying {
                stage: at + 1,
                stages: count,
                objects: wanted.len(),
            });
            let live = self
                .send_stage(request, &wanted, work, memory, report)
                .await?;
            let first = report.children.len();
            self.judge_stage(request, stage, live, work, memory, report)
                .await?;
            self.wait_served(&wanted).await?;
            let limit = self.options().stage_wait;
            if at + 1 < count && !limit.is_zero() {
                let children = report.children.get_mut(first..).unwrap_or_default();
                let options = WaitOptions {
                    between: true,
                    ..WaitOptions::within(limit)
                };
                self.wait_ready(stage, children, &request.namespace, options, work.observer)
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

    /// Sends what is due of one stage, and remembers it. Gives what each is then; an error if any was refused.
    async fn send_stage(
        &self,
        request: &TakeoffRequest,
        wanted: &[Object],
        work: &Work<'_>,
        memory: &Memory,
        report: &mut Report,
    ) -> Result<HashMap<ResourceRef, Value>, EngineError> {
        let us = request.decoration.identity();
        self.show_interest(wanted, work.observer).await;
        // Whether somebody may have changed it since we applied it. A command remembers nothing and looks; a controller
        // knows, and one that has just started, which sends every child once, does not look at each before.
        let may_be_disturbed = |object: &Object| {
            let sent = self.signed(object.hash());
            request.hold.is_some() || memory.applied.was_sent(&object.reference(), &sent)
        };
        let options = |object: &Object| ApplyOptions {
            force: request.force_conflicts,
            // Who is confined takes no field off what others have made: an override, for example.
            adopt: !request.decoration.confined && !work.former.contains_key(&object.reference()),
            recorded: work
                .former
                .get(&object.reference())
                .filter(|_| request.force_conflicts)
                .filter(|_| may_be_disturbed(object))
                .cloned(),
            expect: work
                .expectations
                .get(&object.reference())
                .cloned()
                .unwrap_or_default(),
            ..ApplyOptions::default()
        };
        let answers = self.reach().apply_stage(wanted, &options).await;
        let mut live = HashMap::new();
        let mut failures = Vec::new();
        for (object, answer) in wanted.iter().zip(answers) {
            let expected = work.expectations.get(&object.reference());
            let answer = match answer {
                Err(error) if was_changed(&error, expected) => {
                    self.apply_anew(object, options(object), &us).await
                }
                other => other.map_err(|error| chain(&error)),
            };
            match answer {
                Ok(applied) => {
                    let fingerprint = Fingerprint::of(&applied.live);
                    memory.applied.insert(
                        object.reference(),
                        Applied {
                            sent: self.signed(object.hash()),
                            fingerprint,
                        },
                    );
                    report.written.push(object.reference());
                    live.insert(object.reference(), applied.live);
                }
                Err(words) => failures.push(words),
            }
        }
        if failures.is_empty() {
            return Ok(live);
        }
        Err(EngineError::Refused {
            step: "apply",
            failures,
        })
    }

    /// Tells the watches of what is about to be sent.
    async fn show_interest(&self, wanted: &[Object], observer: &dyn Observer) {
        for object in wanted {
            let mapping = self
                .cluster()
                .mapping(object.api_version(), object.kind())
                .await;
            // A kind that is not served is refused by the apply, with its words.
            if let Ok(mapping) = mapping {
                observer.interest(&Target::new(
                    object.reference(),
                    &mapping.version,
                    &mapping.plural,
                ));
            }
        }
    }

    /// Judges all of one stage: what was sent by what it is then, `live`, the rest by what is known or read.
    async fn judge_stage(
        &self,
        request: &TakeoffRequest,
        stage: &[Object],
        mut live: HashMap<ResourceRef, Value>,
        work: &Work<'_>,
        memory: &Memory,
        report: &mut Report,
    ) -> Result<(), EngineError> {
        let owner = request.decoration.identity();
        let sight = self.sight(&request.namespace, work.observer).of(owner);
        for object in stage {
            let live = live.remove(&object.reference());
            let child = self.child(object, live, work.known, memory, &sight).await?;
            report.children.push(child);
        }
        Ok(())
    }

    /// The objects that must be sent: changed since they were last sent, or disturbed since by others.
    pub(super) fn due(
        &self,
        stages: &Stages,
        memory: &Memory,
        observer: &dyn Observer,
    ) -> HashSet<ResourceRef> {
        let disturbed = |object: &&Object| {
            let reference = object.reference();
            let sent = self.signed(object.hash());
            let latest = observer.latest(&reference);
            !memory.applied.is_undisturbed(&reference, &sent, &latest)
        };
        let due = stages.objects().filter(disturbed);
        due.map(Object::reference).collect()
    }

    /// Waits until the kinds that a stage defines are served, the last stage included: whoever makes an object of such a
    /// kind next, in this takeoff or in another, finds it.
    pub(crate) async fn wait_served(&self, stage: &[Object]) -> Result<(), EngineError> {
        let limit = self.options().stage_wait.max(STAGE_WAIT);
        for crd in stage
            .iter()
            .filter(|object| object.kind() == "CustomResourceDefinition" && object.is_foundation())
        {
            let served = self.reach().wait_established(crd.name(), limit).await;
            served.map_err(|source| EngineError::Served {
                source: Box::new(source),
            })?;
        }
        Ok(())
    }
}

/// Of these objects, those that some revision had which ever was active, as they were recorded last: what the release had
/// before.
pub(crate) fn former(
    revisions: &[Revision],
    wanted: &HashSet<ResourceRef>,
) -> HashMap<ResourceRef, Object> {
    let mut active: Vec<&Revision> = revisions
        .iter()
        .filter(|revision| revision.head.active_at != NEVER_ACTIVE)
        .collect();
    active.sort_by_key(|revision| std::cmp::Reverse(revision.head.active_at));
    let mut former = HashMap::new();
    for object in active.iter().flat_map(|revision| revision.stages.objects()) {
        let reference = object.reference();
        if wanted.contains(&reference) {
            former.entry(reference).or_insert_with(|| object.clone());
        }
    }
    former
}

pub(super) fn pick(stage: &[Object], due: &HashSet<ResourceRef>) -> Vec<Object> {
    stage
        .iter()
        .filter(|object| due.contains(&object.reference()))
        .cloned()
        .collect()
}
