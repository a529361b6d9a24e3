//! The end of a release: everything its record names is removed, then the record.

use atc_api::ResourceRef;
use atc_release::cluster::{ClusterError, ErrorKind, Orphaned};
use atc_release::history::Revision;
use atc_release::object::Stages;
use atc_release::ownership::Owner;
use atc_release::plan::{self, Plan, PruneItem, PruneOptions};

use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::hold::{Hold, HoldRequest, is_without_namespace};

mod account;
mod maker;

/// A release to remove.
#[derive(Clone, Debug)]
pub struct MaydayRequest {
    /// The release's full name.
    pub release: String,
    /// Its target namespace.
    pub namespace: String,
    /// Whether CRDs and Namespaces are deleted or let go of.
    pub prune: PruneOptions,
    /// Whether nothing outside the target namespace is deleted: it is let go of, since whoever decides what the release is has
    /// no right to delete it.
    pub confined: bool,
    /// Whose the objects are, if their marks do not say the release's name and namespace.
    pub owner: Option<Owner>,
    /// Uid of the custom resource that owns the children, if one does; its references are taken off what is let go of.
    pub owner_uid: Option<String>,
    /// Hold the release meanwhile, see [`TakeoffRequest::hold`](crate::TakeoffRequest::hold).
    pub hold: Option<HoldRequest>,
    /// What the caller remembers of the release's revisions: removed as well, should the record be gone. A namespace that
    /// is deleted takes the record with it, in whatever order.
    pub remembered: Vec<Stages>,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct MaydayReport {
    /// Whether there was anything of the release: a revision, or what an interrupted takeoff left.
    pub existed: bool,
    /// Objects that were removed. Those that were gone before do not count.
    pub deleted: Vec<ResourceRef>,
    /// Objects that are somebody else's by now, or nobody's, and were left alone.
    pub not_ours: Vec<ResourceRef>,
    /// Objects that were let go of.
    pub orphaned: Vec<ResourceRef>,
}

/// Why something of what was to be removed is left.
#[derive(Debug)]
pub(crate) struct Unremoved {
    /// One line an object.
    failures: Vec<String>,
    /// Whether all of them were refused for want of a right, none by a webhook or a policy.
    forbidden: bool,
    /// Whether all of it is being removed, and nothing was refused.
    going: bool,
}

impl From<Unremoved> for EngineError {
    fn from(left: Unremoved) -> Self {
        if left.going {
            return Self::Going(left.failures.join("; "));
        }
        Self::Refused {
            step: "prune",
            failures: left.failures,
        }
    }
}

/// What became of what was to be removed.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    /// Deleted by us.
    pub(crate) deleted: Vec<ResourceRef>,
    /// Somebody else's by now, or nobody's: left alone.
    pub(crate) not_ours: Vec<ResourceRef>,
    /// Let go of.
    pub(crate) orphaned: Vec<ResourceRef>,
    /// Nothing more is to be done about these.
    pub(crate) settled: Vec<ResourceRef>,
}

impl Engine {
    /// Removes all that the record of a release names, in reverse stages, then the record.
    ///
    /// *Guarantees*: an object that is not the release's any more is left alone; the record stays until everything it
    /// names is gone, so a mayday that fails can be repeated.
    pub async fn mayday(&self, request: &MaydayRequest) -> Result<MaydayReport, EngineError> {
        let (release, namespace) = (&request.release, &request.namespace);
        let Some(wanted) = &request.hold else {
            return self.remove_release(request, None).await;
        };
        if !self.exists(release, namespace).await? {
            return Ok(MaydayReport::default());
        }
        let hold = match self.claim(release, namespace, wanted).await {
            Ok(hold) => hold,
            // Nobody can take off there either.
            Err(error) if is_without_namespace(&error) => {
                return self.remove_release(request, None).await;
            }
            Err(error) => return Err(error),
        };
        let done = hold.during(self.remove_release(request, Some(&hold))).await;
        hold.end(done.is_ok()).await;
        done
    }

    /// Whether there is anything of a release. Nothing is written to learn that.
    async fn exists(&self, release: &str, namespace: &str) -> Result<bool, EngineError> {
        let refused = |source| EngineError::record(release, source);
        let heads = self.cluster().revisions(release, namespace).await;
        if !heads.map_err(refused)?.is_empty() {
            return Ok(true);
        }
        let intent = self.cluster().intent(release, namespace).await;
        Ok(intent.map_err(refused)?.is_some())
    }

    async fn remove_release(
        &self,
        request: &MaydayRequest,
        hold: Option<&Hold>,
    ) -> Result<MaydayReport, EngineError> {
        let revisions = self.revisions(&request.release, &request.namespace).await?;
        let mut report = MaydayReport {
            existed: !revisions.is_empty() || hold.is_some_and(Hold::was_interrupted),
            ..MaydayReport::default()
        };
        let recorded = revisions.iter().map(|revision| &revision.stages);
        let previous: Vec<Stages> = recorded
            .chain(hold.map(Hold::leftover))
            .chain(&request.remembered)
            .cloned()
            .collect();
        let mut plan = plan::plan(Stages::default(), &previous, request.prune);
        if request.confined {
            plan = plan.confined_to(&request.namespace);
        }
        let named = || Owner::new(&request.namespace, &request.release);
        let us = request.owner.clone().unwrap_or_else(named);
        let owner_uid = request.owner_uid.as_deref();
        let removed = if self.reach().account().is_some() {
            self.carry_out_acting(&plan, &us, owner_uid).await?
        } else {
            self.carry_out(&plan, &us, owner_uid).await?
        };
        report.deleted = removed.deleted;
        report.not_ours = removed.not_ours;
        report.orphaned = removed.orphaned;
        for revision in &revisions {
            let deleted = self.cluster().delete_revision(&revision.head).await;
            deleted.map_err(|source| EngineError::record(&request.release, source))?;
        }
        Ok(report)
    }

    /// The revisions of a release with their objects; records of the old form are rewritten on the way.
    pub async fn revisions(
        &self,
        release: &str,
        namespace: &str,
    ) -> Result<Vec<Revision>, EngineError> {
        let refused = |source| EngineError::record(release, source);
        let mut revisions = self
            .cluster()
            .full_revisions(release, namespace)
            .await
            .map_err(refused)?;
        for revision in revisions
            .iter_mut()
            .filter(|revision| revision.head.old_form)
        {
            revision.head = self
                .cluster()
                .migrate_revision(&revision.head)
                .await
                .map_err(refused)?;
        }
        Ok(revisions)
    }

    /// Removes and lets go what a plan says; an error when anything of it is left.
    pub(crate) async fn carry_out(
        &self,
        plan: &Plan,
        us: &Owner,
        owner_uid: Option<&str>,
    ) -> Result<Removed, Unremoved> {
        let mut removed = Removed::default();
        let mut failures = Vec::new();
        let mut forbidden = true;
        let is_forbidden = |error: &ClusterError| error.kind() == ErrorKind::Forbidden;
        let wait = self.options().prune_wait;
        let pruned = self.reach().prune(&plan.prune, us, wait).await;
        removed
            .deleted
            .extend(pruned.gone.iter().map(|item| item.target.clone()));
        let left = pruned.not_ours.iter().map(|item| item.target.clone());
        removed.not_ours.extend(left);
        removed.settled.extend(
            pruned
                .gone
                .iter()
                .chain(&pruned.absent)
                .chain(&pruned.not_ours)
                .map(|item| item.target.clone()),
        );
        forbidden &= pruned.errors.iter().all(is_forbidden);
        failures.extend(pruned.errors.iter().map(|error| chain(error)));
        let mut going = failures.is_empty();
        if failures.is_empty() && !pruned.remaining.is_empty() {
            forbidden = false;
            let names: Vec<String> = pruned.remaining.iter().map(PruneItem::canonical).collect();
            failures.push(format!(
                "still there after {} s: {}",
                wait.as_secs(),
                names.join(", ")
            ));
        }
        if owner_uid.is_some() {
            // What is left alone must not go with us as ours by an owner reference.
            let left = self.reach().orphan_all(&pruned.not_ours, us, owner_uid);
            for error in left.await.into_iter().filter_map(Result::err) {
                forbidden &= is_forbidden(&error);
                going = false;
                failures.push(chain(&error));
            }
        }
        let answers = self.reach().orphan_all(&plan.orphan, us, owner_uid).await;
        for (item, answer) in plan.orphan.iter().zip(answers) {
            match answer {
                Ok(Orphaned::Released) => {
                    removed.orphaned.push(item.target.clone());
                    removed.settled.push(item.target.clone());
                }
                Ok(Orphaned::Gone | Orphaned::NotOurs) => removed.settled.push(item.target.clone()),
                Err(error) => {
                    forbidden &= is_forbidden(&error);
                    going = false;
                    failures.push(chain(&error));
                }
            }
        }
        if failures.is_empty() {
            Ok(removed)
        } else {
            Err(Unremoved {
                failures,
                forbidden,
                going,
            })
        }
    }
}
