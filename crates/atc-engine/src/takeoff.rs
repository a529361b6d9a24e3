//! Output of a flight → plan → dry run → record → apply → prune → report.
//!
//! The order is the safety rule. No object is written before all have been parsed, decorated and (where asked) dry-run.
//! What is about to be made is written down *before* the first object is applied, and older revisions are dropped only
//! *after* the prune: whoever is killed in between leaves word of every object that may exist, and the next takeoff,
//! descent or mayday prunes by all of them. Where it is written down: in the intent of the release, if the request asks
//! to hold it; else, where there is one writer only, in the revision itself, ahead of its time.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use atc_api::ResourceRef;
use atc_release::cluster::Expect;
use atc_release::decorate::Decoration;
use atc_release::object::Object;
use atc_release::plan::PruneOptions;

use crate::children::{self, Child};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::{Hold, HoldRequest};
use crate::memory::Memory;
use crate::observer::Observer;
use crate::prepare::Prepared;
use crate::status::Ready;

mod apply;
mod check;
mod home;
mod prune;
mod record;
mod unchanged;

pub(crate) use apply::{Work, former};

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
    /// Hold the release meanwhile, so that nobody else who does works on it; not for a mere dry run. `None` where there
    /// is no other writer: it saves calls.
    pub hold: Option<HoldRequest>,
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
    /// What the server could not judge in the dry run.
    pub unjudged: Vec<Unjudged>,
}

/// An object that the server could not judge before it was applied: its kind or namespace is in the same output, or
/// entries of others must go first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// The object.
    pub object: ResourceRef,
    /// Why, and what was looked at in the server's place, in words.
    pub why: String,
}

impl Report {
    /// What the children say together: failed before in progress before ready. Of a takeoff that was held and found nothing
    /// to do, nothing is known of the children.
    pub fn ready(&self) -> Ready {
        children::summary(&self.children)
    }
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
        let Some(wanted) = request
            .hold
            .as_ref()
            .filter(|_| request.dry_run != DryRun::Only)
        else {
            return self
                .bring_about(request, prepared, known, memory, observer, None)
                .await;
        };
        if request.dry_run == DryRun::First && self.is_settled(request, &prepared.stages).await? {
            return Ok(Report::default());
        }
        self.make_home(request, prepared, memory, observer).await?;
        let hold = self
            .claim(&request.release, &request.namespace, wanted)
            .await?;
        // What was known of it is from before it was ours.
        memory.revisions = None;
        let work = self.bring_about(request, prepared, known, memory, observer, Some(&hold));
        let done = hold.during(work).await;
        hold.end(done.is_ok()).await;
        done
    }

    /// Asks what must be known before the first write; gives what the applies must find unchanged.
    async fn ask(
        &self,
        request: &TakeoffRequest,
        prepared: &Prepared,
        due: &HashSet<ResourceRef>,
        memory: &mut Memory,
        report: &mut Report,
    ) -> Result<HashMap<ResourceRef, Expect>, EngineError> {
        let stages = &prepared.stages;
        let expectations = self.check_ownership(request, stages, due).await?;
        self.read_revisions(request, memory).await?;
        if check::needs_dry_run(request, stages, due, memory) {
            let hash = self.signed(prepared.hash_of(due));
            if !memory.verdicts.passed(&hash, Instant::now()) {
                report.unjudged = self.dry_run(request, stages, due).await?;
                memory.verdicts.pass(hash, Instant::now());
            }
        }
        Ok(expectations)
    }

    async fn bring_about(
        &self,
        request: &TakeoffRequest,
        prepared: &Prepared,
        known: &[Child],
        memory: &mut Memory,
        observer: &dyn Observer,
        hold: Option<&Hold>,
    ) -> Result<Report, EngineError> {
        let stages = &prepared.stages;
        let due = self.due(stages, memory, observer);
        let mut report = Report::default();
        let expectations = self
            .ask(request, prepared, &due, memory, &mut report)
            .await?;
        let draft = Self::draft(request, stages, memory)?;
        if request.dry_run == DryRun::Only {
            return Ok(report);
        }

        self.clear_unfinished(request, stages, memory).await?;
        report.changed = draft.is_some();
        let former = former(memory.history(), &due);
        let draft = self.announce(stages, draft, memory, hold).await?;
        let work = Work {
            due: &due,
            former: &former,
            expectations: &expectations,
            known,
            observer,
        };
        self.apply(request, stages, &work, memory, &mut report)
            .await?;
        let is_new = self.settle(request, stages, draft, memory).await?;
        self.prune(request, stages, hold, memory, observer, &mut report)
            .await?;
        // As in the existing tool: what changes nothing takes nothing of the history.
        if is_new {
            self.cap(request, memory).await?;
        }
        memory
            .applied
            .retain(&stages.objects().map(Object::reference).collect());
        Ok(report)
    }
}
