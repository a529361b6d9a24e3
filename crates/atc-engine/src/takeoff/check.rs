//! What is asked before the first write: whose are the objects, and would the API server take them.

use std::collections::{HashMap, HashSet};

use atc_api::ResourceRef;
use atc_release::cluster::{ApplyOptions, Expect, Preview};
use atc_release::object::{Object, Stages};
use atc_release::ownership;

use super::apply::pick;
use super::record::is_covered;
use super::{DryRun, TakeoffRequest};
use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::memory::Memory;

impl Engine {
    /// Refuses what belongs to others; gives what the applies must find unchanged.
    pub(crate) async fn check_ownership(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
    ) -> Result<HashMap<ResourceRef, Expect>, EngineError> {
        let us = request.decoration.identity();
        let objects: Vec<&Object> = stages.objects().collect();
        let found = self.cluster().metadata_of(&objects).await;
        let mut expectations = HashMap::new();
        let mut failures = Vec::new();
        for (object, live) in objects.into_iter().zip(found) {
            match live {
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

    /// One dry run over all stages before anything is applied. Gives what could not be judged.
    pub(crate) async fn dry_run(
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
}

/// Whether a dry run can save anything: the apply of a single object is refused whole or not at all, and where the
/// record names that object already nothing is written before it.
pub(super) fn needs_dry_run(
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
