//! What a Flight leaves whose finalizer was taken off by hand. The garbage collector removes what names it as its owner; the
//! record is left, and of a Flight with an account what lies in no namespace.
//!
//! That is let go of, not removed: nobody knows any more whether its account may delete it, and whoever may write Flights could
//! have us do what it may not. The log names it.

use atc_api::flight::owning_flight;
use atc_api::{ResourceRef, names};
use atc_engine::instance::home_of;
use atc_engine::release::cluster::{Mapping, Orphaned};
use atc_engine::release::history::Revision;
use atc_engine::release::object::{Object, Stages};
use atc_engine::release::ownership::Owner;
use atc_engine::release::plan::{PruneItem, PruneOptions, plan};

use super::LeftoverError;
use crate::control::Control;
use crate::flights;

/// Whether the instances of a kind are Flights.
pub(super) fn is_one(mapping: &Mapping) -> bool {
    mapping.group == names::GROUP && flights::is_kind(&mapping.kind)
}

/// Lets go of what its record names in no namespace, then removes the record.
pub(super) async fn let_go(
    control: &Control,
    target: &ResourceRef,
    revisions: &[Revision],
) -> Result<(), LeftoverError> {
    let release = target.to_string();
    let home = home_of(&target.namespace);
    let Some(uids) = uids(revisions, target) else {
        tracing::warn!(
            release,
            namespace = home,
            "a release that bears the name of a Flight's that is not there was not made by an atc; it is left alone"
        );
        return Ok(());
    };
    let cluster = control.engine.cluster();
    let items = in_no_namespace(revisions);
    let mut left = Vec::new();
    for uid in &uids {
        let owner = Owner::new(home, &target.name).of_flight(Some(uid));
        let answers = cluster.orphan_all(&items, &owner, None).await;
        for (item, answer) in items.iter().zip(answers) {
            match answer {
                Ok(Orphaned::Released) => left.push(item.canonical()),
                Ok(Orphaned::Gone | Orphaned::NotOurs) => {}
                Err(error) => return Err(LeftoverError::LetGo(release, error)),
            }
        }
    }
    for revision in revisions {
        let deleted = cluster.delete_revision(&revision.head).await;
        deleted.map_err(|error| LeftoverError::Record(release.clone(), error))?;
    }
    if left.is_empty() {
        tracing::info!(
            release,
            namespace = home,
            "removed the record of a Flight that is gone"
        );
    } else {
        tracing::warn!(
            release,
            namespace = home,
            objects = left.join(" "),
            "a Flight that is gone without its removal has left these; they are nobody's now, delete them by hand"
        );
    }
    Ok(())
}

/// The uids of the Flights of this name that made what the record names. `None` unless each object, one at least, was made by
/// an atc for one of them.
fn uids(revisions: &[Revision], target: &ResourceRef) -> Option<Vec<String>> {
    let uid = |object: &Object| {
        let ours = object.label(names::LABEL_MANAGED_BY) == Some(names::MANAGED_BY_ATC)
            && object.annotation(names::ANNOTATION_RELEASE) == Some(&target.name)
            && object.annotation(names::ANNOTATION_NAMESPACE) == Some(home_of(&target.namespace));
        let uid = owning_flight(object.metadata()).filter(|_| ours);
        uid.map(str::to_owned)
    };
    let objects = revisions
        .iter()
        .flat_map(|revision| revision.stages.objects());
    let mut uids = objects.map(uid).collect::<Option<Vec<String>>>()?;
    uids.sort_unstable();
    uids.dedup();
    (!uids.is_empty()).then_some(uids)
}

/// What a record names in no namespace.
fn in_no_namespace(revisions: &[Revision]) -> Vec<PruneItem> {
    let recorded: Vec<Stages> = revisions
        .iter()
        .map(|revision| revision.stages.clone())
        .collect();
    let plan = plan(Stages::default(), &recorded, PruneOptions::ALL);
    let items = plan.prune.into_iter().flatten();
    items
        .filter(|item| item.target.namespace.is_empty())
        .collect()
}
