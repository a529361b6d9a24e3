//! The end of an instance: its children go, then its finalizer.
//!
//! It acts as the account that the release acts as; what that may not remove, since it is gone or has lost its rights, is
//! removed as ourselves, so that no removal waits for an account.

use atc_api::names;
use atc_release::cluster::{LiveMeta, MetadataEdit};
use atc_watch::Dependencies;
use serde_json::Value;

use super::identity::Identity;
use super::{InstanceMemory, InstanceReport, InstanceSettings};
use crate::disposition::Disposition;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::mayday::{MaydayReport, MaydayRequest};
use crate::observer::InstanceObserver;
use crate::status::Ready;
use crate::takeoff::Report;

impl Engine {
    /// Removes the children, then lets the object go.
    pub(super) async fn remove(
        &self,
        settings: &InstanceSettings,
        object: &Value,
        memory: &InstanceMemory,
        observer: &dyn InstanceObserver,
    ) -> Result<InstanceReport, EngineError> {
        let identity = Identity::of(object, settings)?;
        let live = LiveMeta::of(object);
        if !live.finalizers().contains(&names::FINALIZER_INSTANCE) {
            return Ok(InstanceReport::gone());
        }
        observer.begin();
        let removed = match self.remove_children(settings, &identity, memory).await {
            Ok(removed) => removed,
            Err(error) => {
                observer.fail(Dependencies::default());
                let words = format!("can't remove its resources: {}", error.chain());
                let waits = matches!(error, EngineError::Going(_));
                return Ok(InstanceReport {
                    failure: (!waits).then(|| words.clone()),
                    ..InstanceReport::of(Ready::terminating(words), Disposition::Retry)
                });
            }
        };
        let edit = MetadataEdit {
            remove_finalizer: Some(names::FINALIZER_INSTANCE.into()),
            ..MetadataEdit::default()
        };
        self.edit(settings, object, &edit).await?;
        let takeoff = Report {
            pruned: removed.deleted,
            orphaned: removed.orphaned,
            ..Report::default()
        };
        Ok(InstanceReport {
            takeoff,
            ..InstanceReport::gone()
        })
    }

    /// Removes all that the record names, and what is remembered of it; where nothing is, and the namespace is on its way
    /// out and may have taken the record with it, what bears the marks of the release.
    async fn remove_children(
        &self,
        settings: &InstanceSettings,
        identity: &Identity<'_>,
        memory: &InstanceMemory,
    ) -> Result<MaydayReport, EngineError> {
        let home = identity.home;
        let history = memory.release.history().iter();
        let mut remembered: Vec<_> = history.map(|revision| revision.stages.clone()).collect();
        if settings.mapping.namespaced && memory.release.revisions.is_none() {
            remembered.push(self.strays(&identity.owner(settings)).await?);
        }
        let request = MaydayRequest {
            release: identity.record.clone(),
            namespace: home.to_owned(),
            owner: Some(identity.owner(settings)),
            prune: settings.prune,
            confined: settings.subject.is_confined(),
            owner_uid: Some(identity.uid.to_owned()),
            remembered,
            hold: None,
        };
        self.mayday(&request).await
    }
}
