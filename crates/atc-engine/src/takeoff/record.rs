//! The record of a takeoff: what is written down before the first apply, what becomes the active revision, what is dropped.
//!
//! While a takeoff is on, its revisions and its intent name every object that may exist: whoever is killed loses none.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use atc_api::ResourceRef;
use atc_release::history::{self, Head, NEVER_ACTIVE, Revision};
use atc_release::object::{Object, Stages};
use jiff::{SignedDuration, Timestamp};

use super::TakeoffRequest;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::Hold;
use crate::memory::Memory;

/// Records of takeoffs that did not finish, beyond which a new one first tidies up after them. Each may take 1 MiB of
/// the cluster's store.
const UNFINISHED_MAX: usize = 4;
/// A record that nobody but us writes is looked at again after this time, when the release is evaluated. 5 min: it costs a
/// list, and a record that is deleted by hand is missed by nobody in the meantime.
const RECORD_LIFE: Duration = Duration::from_mins(5);
/// The smallest step of the times in a record.
const NANOSECOND: SignedDuration = SignedDuration::from_nanos(1);

impl Engine {
    /// The revisions, unless they are known.
    pub(super) async fn read_revisions(
        &self,
        request: &TakeoffRequest,
        memory: &mut Memory,
    ) -> Result<(), EngineError> {
        if memory.revisions.is_none() {
            memory.revisions = Some(self.revisions(&request.release, &request.namespace).await?);
            memory.confirmed = Some(Instant::now());
        }
        Ok(())
    }

    /// Looks whether the record is still in the cluster as it is remembered, if that was not looked at for
    /// [`RECORD_LIFE`], or for the time after which whoever asks wants drift to be seen. If it is not, it is forgotten,
    /// and so read and, where revisions are missing, written anew.
    pub(crate) async fn confirm_record(
        &self,
        release: &str,
        namespace: &str,
        every: Option<Duration>,
        memory: &mut Memory,
    ) -> Result<(), EngineError> {
        let life = every.map_or(RECORD_LIFE, |every| every.min(RECORD_LIFE));
        let Some(known) = &memory.revisions else {
            return Ok(());
        };
        if memory.confirmed.is_some_and(|at| at.elapsed() < life) {
            return Ok(());
        }
        let heads = self.cluster().revisions(release, namespace).await;
        let heads = heads.map_err(|source| EngineError::record(release, source))?;
        let there: HashSet<&str> = heads.iter().map(|head| head.secret.as_str()).collect();
        let ours: HashSet<&str> = known.iter().map(|one| one.head.secret.as_str()).collect();
        memory.confirmed = Some(Instant::now());
        if there != ours {
            tracing::info!(release, namespace, "the record is not as it was left");
            memory.revisions = None;
        }
        Ok(())
    }

    /// The revision to record, or `None` when the active one says the same.
    ///
    /// # Errors
    /// A record that does not fit, or a pinned source whose content changed: before anything is written.
    pub(super) fn draft(
        request: &TakeoffRequest,
        stages: &Stages,
        memory: &Memory,
    ) -> Result<Option<Revision>, EngineError> {
        let refused = |source| EngineError::History {
            release: request.release.clone(),
            source: Box::new(source),
        };
        let revisions = memory.history();
        history::check_pin(&request.source_url, &request.source_checksum, revisions)
            .map_err(refused)?;
        match history::active(revisions) {
            Some(active) if active.stages.same_as(stages) => return Ok(None),
            None if stages.is_empty() && revisions.is_empty() => return Ok(None),
            _ => {}
        }
        if let Some(unfinished) = revisions
            .iter()
            .find(|r| r.head.active_at == NEVER_ACTIVE && r.stages.same_as(stages))
        {
            return Ok(Some(unfinished.clone()));
        }
        let mut revision = Revision::new(
            &request.release,
            &request.namespace,
            stages.clone(),
            rand::random(),
            moment(revisions),
        );
        revision.head.source_url.clone_from(&request.source_url);
        revision
            .head
            .source_checksum
            .clone_from(&request.source_checksum);
        revision.to_secret().map_err(refused)?;
        Ok(Some(revision))
    }

    /// Takeoffs that failed again and again with ever other objects leave a record each; beyond [`UNFINISHED_MAX`] what
    /// they alone name is removed, then they are.
    pub(super) async fn clear_unfinished(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        memory: &mut Memory,
    ) -> Result<(), EngineError> {
        let (unfinished, finished): (Vec<&Revision>, Vec<&Revision>) = memory
            .history()
            .iter()
            .partition(|revision| revision.head.active_at == NEVER_ACTIVE);
        if unfinished.len() <= UNFINISHED_MAX {
            return Ok(());
        }
        let wanted = finished
            .iter()
            .flat_map(|revision| revision.stages.iter().cloned());
        let wanted = Stages::new(stages.iter().cloned().chain(wanted).collect());
        let previous: Vec<Stages> = unfinished.iter().map(|r| r.stages.clone()).collect();
        let heads: Vec<Head> = unfinished
            .iter()
            .map(|revision| revision.head.clone())
            .collect();
        let us = request.decoration.identity();
        let owner_uid = request
            .decoration
            .owner
            .as_ref()
            .map(|owner| owner.uid.as_str());
        self.carry_out(&request.plan(wanted, &previous), &us, owner_uid)
            .await?;
        for head in heads {
            self.drop_revision(request, &head, memory).await?;
        }
        Ok(())
    }

    async fn drop_revision(
        &self,
        request: &TakeoffRequest,
        head: &Head,
        memory: &mut Memory,
    ) -> Result<(), EngineError> {
        let deleted = self.cluster().delete_revision(head).await;
        deleted.map_err(|source| EngineError::record(&request.release, source))?;
        if let Some(revisions) = &mut memory.revisions {
            revisions.retain(|revision| revision.head.secret != head.secret);
        }
        Ok(())
    }

    /// Sees to it that every object is named in the cluster before it is made: by the intent where there is one, else by
    /// the revision. Gives what is still to be recorded.
    pub(super) async fn announce(
        &self,
        stages: &Stages,
        draft: Option<Revision>,
        memory: &mut Memory,
        hold: Option<&Hold>,
    ) -> Result<Option<Revision>, EngineError> {
        let known = is_covered(stages, memory.history());
        if let Some(hold) = hold {
            hold.begin(stages, known).await?;
            return Ok(draft);
        }
        match draft {
            Some(revision) if !known => {
                self.store(revision, memory).await?;
                Ok(None)
            }
            draft => Ok(draft),
        }
    }

    /// Records a revision that is not active yet, unless it is there from an earlier try.
    async fn store(&self, mut revision: Revision, memory: &mut Memory) -> Result<(), EngineError> {
        if revision.head.uid.is_some() {
            return Ok(());
        }
        // The first revision of a release is active at once: there is no other that could be.
        if !memory.history().is_empty() {
            revision.head.active_at = NEVER_ACTIVE;
        }
        self.create(revision, memory).await
    }

    async fn create(&self, revision: Revision, memory: &mut Memory) -> Result<(), EngineError> {
        let mut known = memory.revisions.take().unwrap_or_default();
        let release = &revision.head.release;
        let head = self
            .cluster()
            .create_revision(&revision)
            .await
            .map_err(|source| EngineError::record(release, source))?;
        known.push(Revision {
            head,
            stages: revision.stages,
        });
        memory.revisions = Some(known);
        // What an older revision holds may live again by our own doing.
        memory.gone.clear();
        Ok(())
    }

    /// Makes the record of what was applied the active one. Gives whether it was not yet.
    pub(super) async fn settle(
        &self,
        request: &TakeoffRequest,
        stages: &Stages,
        draft: Option<Revision>,
        memory: &mut Memory,
    ) -> Result<bool, EngineError> {
        if let Some(mut revision) = draft
            && revision.head.uid.is_none()
        {
            revision.head.active_at = moment(memory.history());
            return self.create(revision, memory).await.map(|()| true);
        }
        if history::active(memory.history()).is_some_and(|active| active.stages.same_as(stages)) {
            return Ok(false);
        }
        let unfinished = memory
            .history()
            .iter()
            .find(|r| r.head.active_at == NEVER_ACTIVE && r.stages.same_as(stages))
            .map(|revision| revision.head.clone());
        if let Some(head) = unfinished {
            self.activate(&request.release, &head, memory).await?;
        }
        Ok(true)
    }

    /// Makes a recorded revision the active one.
    pub(crate) async fn activate(
        &self,
        release: &str,
        head: &Head,
        memory: &mut Memory,
    ) -> Result<(), EngineError> {
        let activated = self
            .cluster()
            .activate_revision(head, moment(memory.history()))
            .await
            .map_err(|source| EngineError::record(release, source))?;
        tracing::trace!(release, "revision is active");
        let known = memory.revisions.iter_mut().flatten();
        for revision in known.filter(|revision| revision.head.secret == head.secret) {
            revision.head = activated.clone();
        }
        Ok(())
    }

    /// Drops the revisions beyond the cap; only after all that they alone name is gone.
    pub(super) async fn cap(
        &self,
        request: &TakeoffRequest,
        memory: &mut Memory,
    ) -> Result<(), EngineError> {
        let Some(cap) = request.history_cap.and_then(|cap| i64::try_from(cap).ok()) else {
            return Ok(());
        };
        let beyond: Vec<Head> = history::beyond_cap(memory.history(), cap)
            .into_iter()
            .map(|revision| revision.head.clone())
            .collect();
        for head in beyond {
            self.drop_revision(request, &head, memory).await?;
        }
        Ok(())
    }
}

/// Whether every object is named by some revision already, so that a kill before the new record loses none.
pub(super) fn is_covered(stages: &Stages, revisions: &[Revision]) -> bool {
    let known: HashSet<ResourceRef> = revisions
        .iter()
        .flat_map(|revision| revision.stages.objects())
        .map(Object::reference)
        .collect();
    stages
        .objects()
        .all(|object| known.contains(&object.reference()))
}

/// Now, but later than anything that was recorded: by another clock, perhaps. What comes last is the active one.
fn moment(revisions: &[Revision]) -> Timestamp {
    let latest = revisions
        .iter()
        .map(|revision| revision.head.created_at.max(revision.head.active_at))
        .max();
    let next = latest.and_then(|latest| latest.checked_add(NANOSECOND).ok());
    Timestamp::now().max(next.unwrap_or(Timestamp::MIN))
}
