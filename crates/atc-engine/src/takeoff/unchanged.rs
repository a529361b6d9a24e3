//! Whether a takeoff would change anything at all: asked before the release is held, so that nothing is written for nothing.

use atc_release::cluster::ApplyOptions;
use atc_release::history::{self, Revision};
use atc_release::object::{Object, Stages};
use atc_release::ownership::may_prune;
use atc_release::plan;
use futures::future::join_all;

use super::TakeoffRequest;
use crate::engine::Engine;
use crate::error::EngineError;

impl Engine {
    /// Whether the release is settled and as it is wanted: nobody works on it and nobody was interrupted, its active revision
    /// says the same, every object is as an apply would leave it, nothing is left to remove.
    ///
    /// *Caveats*: false where it cannot be told. Whatever is wrong is said by the takeoff that follows.
    pub(super) async fn is_settled(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
    ) -> Result<bool, EngineError> {
        let (release, namespace) = (&request.release, &request.namespace);
        let failed = |source| EngineError::record(release, source);
        let cluster = self.cluster();
        let revisions = cluster
            .full_revisions(release, namespace)
            .await
            .map_err(failed)?;
        if !history::active(&revisions).is_some_and(|active| active.stages.same_as(stages))
            || revisions.iter().any(|revision| revision.head.old_form)
            || history::check_pin(&request.source_url, &request.source_checksum, &revisions)
                .is_err()
            || cluster
                .intent(release, namespace)
                .await
                .map_err(failed)?
                .is_some()
        {
            return Ok(false);
        }
        let us = request.decoration.identity();
        let objects: Vec<&Object> = stages.objects().collect();
        let options = ApplyOptions {
            force: request.force_conflicts,
            ..ApplyOptions::default()
        };
        Ok(!self.is_anything_left(request, stages, revisions).await
            && self.reach().are_as_applied(&objects, &us, &options).await)
    }

    /// Whether an earlier revision has an object that is still ours and not wanted any more.
    async fn is_anything_left(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        revisions: Vec<Revision>,
    ) -> bool {
        let previous: Vec<Stages> = revisions
            .into_iter()
            .map(|revision| revision.stages)
            .collect();
        let plan = plan::plan(stages.clone(), &previous, request.prune);
        let us = request.decoration.identity();
        let looks = plan
            .prune
            .iter()
            .flatten()
            .chain(&plan.orphan)
            .map(|item| self.reach().live_item(item));
        let found = join_all(looks).await;
        found.iter().any(|found| match found {
            Ok(live) => live
                .as_ref()
                .is_some_and(|live| may_prune(live.value(), &us)),
            Err(_) => true,
        })
    }
}
