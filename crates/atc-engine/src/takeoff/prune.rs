//! The prune of a takeoff: what the record names and the output does not.

use std::collections::HashSet;

use atc_api::ResourceRef;
use atc_release::object::Stages;
use atc_release::plan::{self, Plan};

use super::{Report, TakeoffRequest};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::Hold;
use crate::memory::Memory;
use crate::observer::{Observer, Progress};

impl Engine {
    /// Removes what the record names and the output does not.
    pub(crate) async fn prune(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        hold: Option<&Hold>,
        memory: &mut Memory,
        observer: &dyn Observer,
        report: &mut Report,
    ) -> Result<(), EngineError> {
        let recorded = memory.history().iter().map(|revision| &revision.stages);
        let previous: Vec<Stages> = recorded.chain(hold.map(Hold::leftover)).cloned().collect();
        let plan = request.plan(stages.clone(), &previous);
        let plan = without(plan, &memory.gone);
        if plan.prune.is_empty() && plan.orphan.is_empty() {
            return Ok(());
        }
        observer.progress(Progress::Removing {
            objects: plan.prune.iter().map(Vec::len).sum(),
        });
        let us = request.decoration.identity();
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

impl TakeoffRequest {
    /// What is to be removed of these stages. Who is confined may have had other rights when they were made, and has none to
    /// delete elsewhere now.
    pub(super) fn plan(&self, wanted: Stages, previous: &[Stages]) -> Plan {
        let plan = plan::plan(wanted, previous, self.prune);
        if self.decoration.confined {
            plan.confined_to(&self.namespace)
        } else {
            plan
        }
    }
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
