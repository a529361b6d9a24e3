//! Back to an earlier revision: its objects are applied as they are recorded, what it lacks is removed, and it is the
//! active one again. There is no new revision.

use std::collections::HashSet;

use atc_api::ResourceRef;
use atc_release::decorate::Decoration;
use atc_release::history::{self, Head};
use atc_release::object::{Object, Stages};
use atc_release::plan::PruneOptions;

use crate::children::Child;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::{Hold, HoldRequest};
use crate::memory::Memory;
use crate::observer::NoObserver;
use crate::takeoff::{DryRun, Report, TakeoffRequest, Work, former};

/// A release to bring back to an earlier revision.
#[derive(Clone, Debug)]
pub struct DescentRequest {
    /// The release's full name.
    pub release: String,
    /// Its target namespace.
    pub namespace: String,
    /// Number of the revision: its position by creation, from 1.
    pub revision: usize,
    /// Whether CRDs and Namespaces that it lacks are deleted or let go of.
    pub prune: PruneOptions,
    /// How the release is held meanwhile.
    pub hold: HoldRequest,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct DescentReport {
    /// The objects of the revision.
    pub stages: Stages,
    /// Them again, as they were judged after the apply.
    pub children: Vec<Child>,
    /// Objects that were removed.
    pub pruned: Vec<ResourceRef>,
    /// Objects that were let go of.
    pub orphaned: Vec<ResourceRef>,
}

impl Engine {
    /// Makes the cluster hold what an earlier revision of a release says.
    ///
    /// *Guarantees*: those of a takeoff. No object is written before all were accepted by a dry run; one that belongs to
    /// others is not touched, nor is a field that others set; whoever is killed on the way loses nothing, since the
    /// revision names all that is made.
    ///
    /// *Caveats*: the number counts as it was when this was called. The active revision is refused unless a takeoff after
    /// it failed or was interrupted.
    pub async fn descend(&self, request: &DescentRequest) -> Result<DescentReport, EngineError> {
        let (release, namespace) = (&request.release, &request.namespace);
        // Nothing is written for what is not there.
        let heads = self.cluster().revisions(release, namespace).await;
        let heads = heads.map_err(|source| EngineError::record(release, source))?;
        let wanted = choose(request, &heads)?.secret.clone();
        let hold = self.claim(release, namespace, &request.hold).await?;
        let done = hold.during(self.restore(request, &wanted, &hold)).await;
        hold.end(done.is_ok()).await;
        done
    }

    async fn restore(
        &self,
        request: &DescentRequest,
        wanted: &str,
        hold: &Hold,
    ) -> Result<DescentReport, EngineError> {
        let revisions = self.revisions(&request.release, &request.namespace).await?;
        let Some(revision) = revisions
            .iter()
            .find(|revision| revision.head.secret == wanted)
            .cloned()
        else {
            return Err(no_revision(request, revisions.len()));
        };
        let is_active =
            history::active(&revisions).is_some_and(|active| active.head.secret == wanted);
        if is_active && !hold.was_interrupted() {
            return Err(EngineError::AlreadyActive {
                release: request.release.clone(),
                revision: request.revision,
            });
        }
        let stages = revision.stages;
        let mut memory = Memory {
            revisions: Some(revisions),
            ..Memory::default()
        };
        let takeoff = as_takeoff(request);
        let due: HashSet<ResourceRef> = stages.objects().map(Object::reference).collect();
        let expectations = self.check_ownership(&takeoff, &stages, &due).await?;
        self.dry_run(&takeoff, &stages, &due).await?;
        hold.begin(&stages, true).await?;
        let former = former(memory.history(), &due);
        let work = Work {
            due: &due,
            former: &former,
            expectations: &expectations,
            known: &[],
            observer: &NoObserver,
        };
        let mut report = Report::default();
        self.apply(&takeoff, &stages, &work, &mut memory, &mut report)
            .await?;
        self.activate(&request.release, &revision.head, &mut memory)
            .await?;
        self.prune(
            &takeoff,
            &stages,
            Some(hold),
            &mut memory,
            &NoObserver,
            &mut report,
        )
        .await?;
        Ok(DescentReport {
            stages,
            children: report.children,
            pruned: report.pruned,
            orphaned: report.orphaned,
        })
    }
}

/// The revision that is asked for.
fn choose<'a>(request: &DescentRequest, heads: &'a [Head]) -> Result<&'a Head, EngineError> {
    if heads.is_empty() {
        return Err(EngineError::NoRelease {
            release: request.release.clone(),
            namespace: request.namespace.clone(),
        });
    }
    let index = request.revision.checked_sub(1);
    index
        .and_then(|index| history::numbered(heads).get(index).copied())
        .ok_or_else(|| no_revision(request, heads.len()))
}

fn no_revision(request: &DescentRequest, revisions: usize) -> EngineError {
    EngineError::NoRevision {
        release: request.release.clone(),
        revision: request.revision,
        revisions,
    }
}

/// The same as a takeoff of what is recorded already, without any force.
fn as_takeoff(request: &DescentRequest) -> TakeoffRequest {
    TakeoffRequest {
        release: request.release.clone(),
        namespace: request.namespace.clone(),
        source_url: String::new(),
        source_checksum: String::new(),
        decoration: Decoration {
            release: request.release.clone(),
            namespace: request.namespace.clone(),
            ..Decoration::default()
        },
        force_conflicts: false,
        force_ownership: false,
        dry_run: DryRun::First,
        prune: request.prune,
        history_cap: None,
        hold: None,
    }
}
