//! The service account that the release of a Flight acts as: is it there, and who is told when it comes or goes.
//!
//! The API server lets us act as an account that does not exist, by the rights that are bound to its name. Whoever deletes
//! an account means to end what is done by it, so that is asked for.

use atc_api::{Account, ResourceRef};
use atc_release::cluster::Mapping;
use atc_watch::{Dependency, Fingerprint, Role, Seen, Target};
use serde_json::json;

use super::{InstanceSettings, Subject};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::observer::Observer;

fn mapping() -> Mapping {
    Mapping {
        group: String::new(),
        version: "v1".into(),
        kind: "ServiceAccount".into(),
        plural: "serviceaccounts".into(),
        namespaced: true,
    }
}

fn target(account: &Account) -> Target {
    let mapping = mapping();
    let reference = ResourceRef::new(account.namespace(), "", &mapping.kind, account.name());
    Target::new(reference, &mapping.version, &mapping.plural)
}

impl Engine {
    /// The engine as the release of this subject reaches the cluster.
    pub(super) fn of(&self, subject: &Subject) -> Self {
        match subject.account() {
            Some(account) => self.acting_as(account.clone()),
            None => self.as_itself(),
        }
    }

    /// Looks whether the account is there that a release acts as. What is given wakes the instance when it comes or goes,
    /// also where it is not there now, which [`confirmed`] makes an error of.
    pub(super) async fn see_account(
        &self,
        settings: &InstanceSettings,
        observer: &dyn Observer,
    ) -> Result<Option<Dependency>, EngineError> {
        let Some(account) = settings.subject.account() else {
            return Ok(None);
        };
        let target = target(account);
        observer.interest(&target);
        let (namespace, name) = (account.namespace(), account.name());
        let live = self.cluster().metadata(&mapping(), namespace, name).await;
        let live = live.map_err(EngineError::cluster)?;
        let seen = live.map_or(Seen::Absent, |live| {
            Seen::Present(Fingerprint::of(&json!({ "metadata": live.value() })))
        });
        Ok(Some(Dependency {
            target,
            role: Role::Input,
            seen,
        }))
    }
}

/// An error where the account is not there.
pub(super) fn confirmed(
    settings: &InstanceSettings,
    account: Option<&Dependency>,
) -> Result<(), EngineError> {
    match (settings.subject.account(), account) {
        (Some(account), Some(found)) if found.seen == Seen::Absent => {
            Err(EngineError::NoAccount(account.clone()))
        }
        _ => Ok(()),
    }
}
