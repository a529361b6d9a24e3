//! An Airway that is being deleted: its instances first, with the CRD, then itself.

use std::sync::Arc;
use std::time::Duration;

use atc_api::names;
use atc_engine::disposition::Disposition;
use atc_engine::error::chain;
use atc_engine::release::cluster::{Deleted, ErrorKind, LiveMeta, MetadataEdit, Propagation};
use atc_engine::status::Ready;
use atc_engine::watch::{Fingerprint, Seen};
use serde_json::{Value, json};

use super::loosen::loosen;
use super::{AirwayError, Outcome, adopt, crd_mapping, mapping, tracked_crd};
use crate::control::Control;
use crate::hooks;
use crate::kinds::Kind;
use crate::owner::Owner;

/// While a CRD goes, it is looked at again at least this often, should no event tell of it.
const GOING: Duration = Duration::from_secs(5);

/// One turn of it; nothing once all is gone.
pub(super) async fn going(
    control: &Arc<Control>,
    kind: &Arc<Kind>,
    name: &Arc<str>,
    object: &Value,
) -> Option<Outcome> {
    adopt(control, kind, name, object).await;
    match remove(control, kind, object).await {
        Ok(None) => None,
        Ok(Some(crd)) => Some(waiting(control, kind, name, object, crd).await),
        Err(error) => Some(Outcome {
            ready: Ready::terminating(chain(&error)),
            disposition: error.disposition(),
            dependencies: Vec::new(),
        }),
    }
}

/// What is said while the CRD goes, and what is done for instances that its schema holds back.
async fn waiting(
    control: &Arc<Control>,
    kind: &Kind,
    name: &Arc<str>,
    object: &Value,
    crd: Fingerprint,
) -> Outcome {
    let left = kind.is_listed().then(|| kind.references().len());
    let mut words = kind.held.waiting(left);
    let seen = match loosen(control, kind, object).await {
        Ok(None) => crd,
        Ok(Some(loose)) => {
            for target in kind.held.unfit() {
                let owner = Owner::Instance {
                    airway: name.clone(),
                    target,
                };
                control.edited(&owner, format!("Airway {name}"));
            }
            Fingerprint::of(&loose)
        }
        Err(error) => {
            let why = chain(&error);
            tracing::warn!(airway = %name, error = why, "instances can't be let go");
            words = format!("{words}; {why}");
            crd
        }
    };
    Outcome {
        ready: Ready::terminating(words),
        disposition: Disposition::After(GOING),
        dependencies: vec![tracked_crd(name, Seen::Present(seen))],
    }
}

/// Removes what the Airway made. Gives the CRD that is still going, or nothing when all is gone and the Airway was let go.
async fn remove(
    control: &Control,
    kind: &Kind,
    object: &Value,
) -> Result<Option<Fingerprint>, AirwayError> {
    let live = LiveMeta::of(object);
    let name = live.name();
    let cluster = control.engine.cluster();
    let refused = |what| move |source| AirwayError::Cluster { what, source };
    if !live.finalizers().contains(&names::FINALIZER_AIRWAY) {
        kind.stop();
        return Ok(None);
    }
    let ours = |meta: &LiveMeta| {
        meta.owner_references()
            .iter()
            .any(|owner| owner["uid"] == live.uid())
    };
    let hooks = hooks::mapping();
    if let Some(hook) = cluster
        .metadata(&hooks, "", name)
        .await
        .map_err(refused("a look at its webhook configuration"))?
        && ours(&hook)
    {
        cluster
            .delete(&hooks, "", name, hook.uid(), None, Propagation::Background)
            .await
            .map_err(refused("the removal of its webhook configuration"))?;
    }
    let crds = crd_mapping();
    if let Some(crd) = cluster
        .metadata(&crds, "", name)
        .await
        .map_err(refused("a look at its CustomResourceDefinition"))?
        && ours(&crd)
    {
        let deleted = if crd.is_deleting() {
            Deleted::Pending
        } else {
            cluster
                .delete(&crds, "", name, crd.uid(), None, Propagation::Foreground)
                .await
                .map_err(refused("the removal of its CustomResourceDefinition"))?
        };
        if deleted == Deleted::Pending {
            return Ok(Some(Fingerprint::of(&json!({ "metadata": crd.value() }))));
        }
    }
    let edit = MetadataEdit {
        remove_finalizer: Some(names::FINALIZER_AIRWAY.into()),
        ..MetadataEdit::default()
    };
    match cluster.edit_metadata(&mapping(), &live, &edit).await {
        Ok(_) => {}
        // Our status write moved it on: the watch brings the newer one and this is done again.
        Err(error) if error.kind() == ErrorKind::Stale => {
            let now = cluster
                .metadata(&mapping(), "", name)
                .await
                .map_err(refused("a look at it"))?;
            if let Some(now) = now.filter(|now| now.uid() == live.uid()) {
                cluster
                    .edit_metadata(&mapping(), &now, &edit)
                    .await
                    .map_err(refused("the removal of its finalizer"))?;
            }
        }
        Err(error) => return Err(refused("the removal of its finalizer")(error)),
    }
    kind.stop();
    Ok(None)
}
