//! Releases of instances that are not there any more: somebody took our finalizer off, or forced them away, and nobody
//! cleaned up. The cluster's garbage collector has removed the children that name the instance as their owner; the record
//! and what lies in no namespace are left. Records without an instance are found and removed like any release.
//!
//! Flights have a way of their own, see `flight`.
//!
//! *Guarantees*: nothing is removed because something could not be read: the API server must say that there is no such
//! instance, and every object of the record must say that an atc made it for that instance. It is done in the
//! instance's turn of the queue, so that one that comes back is evaluated after it.
//!
//! *Caveats*: only for kinds whose Airway is served; a record that names no object stays.

use std::sync::Arc;
use std::time::Duration;

use atc_api::{ResourceRef, names};
use atc_engine::error::chain;
use atc_engine::instance::{home_of, release_name};
use atc_engine::release::cluster::{ClusterError, Mapping, RevisionError};
use atc_engine::release::history::Revision;
use atc_engine::release::object::Object;
use atc_engine::watch::Effect;
use atc_engine::{Disposition, EngineError, MaydayRequest};
use serde_json::Value;

use crate::control::Control;
use crate::kinds::{Kind, Setup};
use crate::owner::Owner;
use crate::queue::Cause;

mod flight;

/// The first look comes so long after the instances of a kind were listed, so that one look serves all kinds.
const GATHER: Duration = Duration::from_secs(3);
/// Then one comes this often: what it looks for comes about by hand, and it lists all records.
const EVERY: Duration = Duration::from_hours(1);

/// Why a release is not removed.
#[derive(Debug, thiserror::Error)]
enum LeftoverError {
    #[error("can't tell whether the instance is there")]
    Instance(#[source] ClusterError),
    #[error("can't read the record of release \"{0}\"")]
    Record(String, #[source] RevisionError),
    #[error("can't remove release \"{0}\"")]
    Remove(String, #[source] EngineError),
    #[error("can't let go of what release \"{0}\" has in no namespace")]
    LetGo(String, #[source] ClusterError),
}

/// Looks for them until the process stops.
pub(crate) async fn follow(control: Arc<Control>) {
    loop {
        tokio::select! {
            () = control.stop.cancelled() => return,
            () = control.listed.notified() => tokio::time::sleep(GATHER).await,
            () = tokio::time::sleep(EVERY) => {}
        }
        if let Err(error) = look(&control).await {
            tracing::warn!(
                error = chain(&error),
                "can't look for releases of instances that are gone; it is tried again within the hour"
            );
        }
    }
}

/// Finds records without an instance, and has each looked at in its turn.
async fn look(control: &Control) -> Result<(), ClusterError> {
    let kinds: Vec<_> = control
        .kinds
        .all()
        .into_iter()
        .filter(|(_, kind)| kind.is_listed())
        .collect();
    if kinds.is_empty() {
        return Ok(());
    }
    let found = control
        .engine
        .cluster()
        .find_revisions(None, None, home_of(""))
        .await?;
    for (airway, kind) in kinds {
        let Some(setup) = kind.setup() else { continue };
        for head in &found.heads {
            let mapping = &setup.settings.mapping;
            let Some(target) = instance_of(mapping, &head.namespace, &head.release) else {
                continue;
            };
            if kind.instance(&target).is_none() {
                kind.miss(&target);
                let what = format!("the record of {target}, which is gone");
                let airway = airway.clone();
                let owner = Owner::Instance { airway, target };
                control
                    .queue
                    .push(&owner, Effect::Evaluate, Cause::Edit(what));
            }
        }
    }
    Ok(())
}

/// The instance of a kind that a release would be of, by its name and the namespace of its record.
fn instance_of(mapping: &Mapping, home: &str, release: &str) -> Option<ResourceRef> {
    let namespace = if mapping.namespaced { home } else { "" };
    let name = release.strip_prefix(&record_name(mapping, namespace, ""))?;
    (!name.is_empty() && home_of(namespace) == home).then(|| mapping.reference(namespace, name))
}

/// The release of an instance as its record has it.
fn record_name(mapping: &Mapping, namespace: &str, name: &str) -> String {
    if flight::is_one(mapping) {
        mapping.reference(namespace, name).to_string()
    } else {
        release_name(mapping, namespace, name)
    }
}

/// The turn of an instance that is not known: if a record of it was found, that is removed.
pub(crate) async fn remove(
    control: &Control,
    kind: &Kind,
    setup: &Setup,
    target: &ResourceRef,
) -> Disposition {
    if !kind.take_missed(target) {
        return Disposition::Wait;
    }
    match try_remove(control, setup, target).await {
        Ok(()) => Disposition::Wait,
        Err(error) => {
            kind.miss(target);
            let instance = target.to_string();
            tracing::warn!(
                instance,
                error = chain(&error),
                "can't remove what an instance left that is gone; it is tried again"
            );
            Disposition::Retry
        }
    }
}

async fn try_remove(
    control: &Control,
    setup: &Setup,
    target: &ResourceRef,
) -> Result<(), LeftoverError> {
    let (mapping, engine) = (&setup.settings.mapping, &control.engine);
    let live = engine
        .cluster()
        .get(mapping, &target.namespace, &target.name)
        .await
        .map_err(LeftoverError::Instance)?;
    if live.is_some() {
        return Ok(());
    }
    let release = record_name(mapping, &target.namespace, &target.name);
    let home = home_of(&target.namespace);
    let revisions = engine.cluster().full_revisions(&release, home).await;
    let revisions = revisions.map_err(|error| LeftoverError::Record(release.clone(), error))?;
    if revisions.is_empty() {
        // It was on its way out when it was found.
        return Ok(());
    }
    if flight::is_one(mapping) {
        return flight::let_go(control, target, &revisions).await;
    }
    let Some(marks) = marks(&revisions, target) else {
        tracing::warn!(
            release,
            namespace = home,
            "a release that bears the name of an instance's that is not there was not made by an atc; it is left alone"
        );
        return Ok(());
    };
    let removed = engine
        .mayday(&MaydayRequest {
            confined: false,
            release: release.clone(),
            namespace: home.to_owned(),
            prune: setup.settings.prune,
            owner: None,
            owner_uid: marks.owner_uid,
            hold: None,
            remembered: Vec::new(),
        })
        .await
        .map_err(|error| LeftoverError::Remove(release.clone(), error))?;
    let names: Vec<_> = removed.deleted.iter().map(ToString::to_string).collect();
    tracing::info!(
        release,
        namespace = home,
        removed = names.join(" "),
        "removed what an instance left that is gone"
    );
    Ok(())
}

/// What the record of an instance's release says of its owner.
struct Marks {
    owner_uid: Option<String>,
}

/// `None` unless each object of the record, one at least, was made by an atc for this instance.
fn marks(revisions: &[Revision], target: &ResourceRef) -> Option<Marks> {
    let reference = target.to_string();
    let objects = || {
        revisions
            .iter()
            .flat_map(|revision| revision.stages.objects())
    };
    let is_ours = |object: &Object| {
        object.label(names::LABEL_MANAGED_BY) == Some(names::MANAGED_BY_ATC)
            && object.annotation(names::ANNOTATION_INSTANCE_REF) == Some(&reference)
    };
    if objects().next().is_none() || !objects().all(is_ours) {
        return None;
    }
    let owner = |object: &Object| {
        let owners = object.metadata()["ownerReferences"].as_array()?.clone();
        let ours =
            |owner: &Value| owner["kind"] == target.group_kind.kind && owner["name"] == target.name;
        let found = owners.into_iter().find(ours)?;
        Some(found["uid"].as_str()?.to_owned())
    };
    Some(Marks {
        owner_uid: objects().find_map(owner),
    })
}

#[cfg(test)]
mod tests;
