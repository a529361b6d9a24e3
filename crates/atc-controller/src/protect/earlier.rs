//! What earlier processes protected: their configuration is taken over as it is found, and let go of once each instance in
//! mode `static` has said what it needs.
//!
//! One whose flight fails does not come so far. What it needs is read from its record.
//!
//! *Caveats*: while an Airway can't be served, its instances can't be told: what is covered stays so.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atc_api::ResourceRef;
use atc_engine::error::chain;
use atc_engine::instance::{home_of, release_name};
use atc_engine::release::cluster::{ClusterError, ErrorKind, RevisionError};
use serde_json::Value;

use super::{kind_of, protects, put, write};
use crate::bootstrap::{ProtectedKind, Protection};
use crate::control::Control;
use crate::flights;
use crate::kinds::{Kind, Setup};
use crate::owner::Owner;

/// How often it is looked whether all instances have said what they need, until they have. 10 s: nearly all have by then,
/// and a record is read for each other one.
const SETTLE: Duration = Duration::from_secs(10);

/// Why an instance's record does not say what to protect.
#[derive(Debug, thiserror::Error)]
enum RecallError {
    #[error("can't read its record")]
    Record(#[source] RevisionError),
    #[error("can't ask which kinds there are")]
    Kinds(#[source] ClusterError),
}

/// What a configuration of ours covers; what it says otherwise is not ours.
pub(super) fn covered(configuration: &Value) -> Protection {
    let webhooks = configuration["webhooks"].as_array();
    let rules = webhooks.into_iter().flatten();
    let rules = rules.filter_map(|webhook| webhook["rules"].as_array());
    let kind = |rule: &Value| {
        let first = |field: &str| Some(rule[field][0].as_str()?.to_owned());
        let kind = ProtectedKind {
            group: first("apiGroups")?,
            version: first("apiVersions")?,
            plural: first("resources")?,
            namespaced: rule["scope"] == "Namespaced",
        };
        let is_ours = [&kind.group, &kind.version, &kind.plural]
            .into_iter()
            .all(|text| !text.contains(['*', '/']));
        is_ours.then_some(kind)
    };
    Protection::read(configuration, rules.flatten().filter_map(kind).collect())
}

/// An instance in mode `static` that has not said what it needs.
struct Silent {
    airway: Arc<str>,
    kind: Arc<Kind>,
    setup: Arc<Setup>,
    target: ResourceRef,
}

impl Silent {
    fn owner(&self) -> Owner {
        Owner::Instance {
            airway: self.airway.clone(),
            target: self.target.clone(),
        }
    }
}

/// Ends when no instance needs what an earlier process left.
pub(crate) async fn settle(control: Arc<Control>) {
    loop {
        tokio::select! {
            () = control.stop.cancelled() => return,
            () = tokio::time::sleep(SETTLE) => {}
        }
        let (silent, all) = silent(&control);
        let mut done = all;
        for one in silent {
            if let Err(error) = recall(&control, &one).await {
                done = false;
                tracing::warn!(
                    instance = %one.target,
                    error = chain(&error),
                    "can't tell what of an instance in mode static is to be protected; it is tried again"
                );
            }
        }
        let settled = if done {
            let_go(&control).await
        } else {
            write(&control).await
        };
        match settled {
            Ok(()) if done => return,
            Ok(()) => {}
            Err(error) => tracing::warn!(error, "can't write the protection of resources"),
        }
    }
}

/// The instances in mode `static` that have not said what they need, of the Airways that are served; and whether those are
/// all.
fn silent(control: &Control) -> (Vec<Silent>, bool) {
    let mut all = control.health.ready(Instant::now(), None).is_ok();
    let mut found = Vec::new();
    for (airway, kind) in control.kinds.all() {
        if flights::is_kind(&airway) {
            continue;
        }
        let Some(setup) = kind.setup().filter(|_| kind.is_listed()) else {
            all = false;
            continue;
        };
        for target in kind.references() {
            let instance = kind.instance(&target);
            let one = Silent {
                airway: airway.clone(),
                kind: kind.clone(),
                setup: setup.clone(),
                target,
            };
            if instance.is_some_and(|instance| protects(&setup, &instance.object()))
                && !control.protected.has_said(&one.owner())
            {
                found.push(one);
            }
        }
    }
    (found, all)
}

/// Has an instance say what it needs by its record: the kinds of all objects there.
async fn recall(control: &Control, one: &Silent) -> Result<(), RecallError> {
    let (mapping, cluster) = (&one.setup.settings.mapping, control.engine.cluster());
    let (namespace, name) = (&one.target.namespace, &one.target.name);
    let release = release_name(mapping, namespace, name);
    let revisions = cluster.full_revisions(&release, home_of(namespace)).await;
    let revisions = revisions.map_err(RecallError::Record)?;
    let objects = revisions
        .iter()
        .flat_map(|revision| revision.stages.objects());
    let recorded: BTreeSet<_> = objects
        .map(|object| (object.api_version(), object.kind()))
        .collect();
    let mut kinds = BTreeSet::new();
    for (version, kind) in recorded {
        match cluster.mapping(version, kind).await {
            Ok(mapping) => kinds.extend(kind_of(mapping)),
            Err(error) if error.kind() == ErrorKind::NoSuchKind => {}
            Err(error) => return Err(RecallError::Kinds(error)),
        }
    }
    control.protected.said_first(one.owner(), kinds);
    if one.kind.instance(&one.target).is_none() {
        super::release(control, &one.owner()).await;
    }
    Ok(())
}

/// Covers what instances need and no more.
async fn let_go(control: &Control) -> Result<(), String> {
    let protected = &control.protected;
    let Some(inherited) = protected.table(|table| table.inherited.clone()) else {
        return write(control).await;
    };
    let _turn = protected.writing.lock().await;
    protected.table(|table| table.inherited = None);
    let put = put(control).await;
    if put.is_err() {
        protected.table(|table| table.inherited = Some(inherited));
    }
    put
}
