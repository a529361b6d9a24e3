//! Mode `static`: which kinds are protected, and whether the API server enforces it yet.
//!
//! The webhook for that covers only kinds that instances in mode `static` really have made. An instance is ready when a dry
//! run, made in the name of a field manager that is used for nothing else, was refused by that very webhook.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use atc_api::{BoxFuture, names};
use atc_engine::children::Child;
use atc_engine::error::chain;
use atc_engine::instance::Protection;
use atc_engine::release::cluster::{ErrorKind, Mapping};

use crate::bootstrap::ProtectedKind;
use crate::control::Control;
use crate::hooks;
use crate::owner::Owner;

/// What a probe is answered with.
pub(crate) const PROBED: &str = "this dry run only shows that the protection is in force";

/// The kinds that are protected, and for whom.
#[derive(Debug, Default)]
pub(crate) struct Protected {
    table: Mutex<Table>,
    /// Held while the configuration is written.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Table {
    by_owner: HashMap<Owner, BTreeSet<ProtectedKind>>,
    /// What the configuration covers.
    written: BTreeSet<ProtectedKind>,
    /// What a probe has shown to be enforced.
    in_force: BTreeSet<ProtectedKind>,
}

impl Table {
    fn wanted(&self) -> BTreeSet<ProtectedKind> {
        self.by_owner.values().flatten().cloned().collect()
    }
}

impl Protected {
    fn table<T>(&self, with: impl FnOnce(&mut Table) -> T) -> T {
        with(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the configuration covers; nothing when there is none.
    pub(crate) fn written(&self) -> BTreeSet<ProtectedKind> {
        self.table(|table| table.written.clone())
    }
}

fn kind_of(child: &Child) -> ProtectedKind {
    ProtectedKind {
        group: child.target.reference.group_kind.group.clone(),
        version: child.target.version.clone(),
        plural: child.target.plural.clone(),
        namespaced: child.namespaced,
    }
}

fn mapping_of(child: &Child) -> Mapping {
    let kind = kind_of(child);
    Mapping {
        group: kind.group,
        version: kind.version,
        kind: child.target.reference.group_kind.kind.clone(),
        plural: kind.plural,
        namespaced: kind.namespaced,
    }
}

/// The protection of one instance.
pub(crate) struct Guard<'a> {
    pub(crate) control: &'a Control,
    pub(crate) owner: &'a Owner,
}

impl Protection for Guard<'_> {
    fn protect<'a>(&'a self, children: &'a [Child]) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let kinds: BTreeSet<ProtectedKind> = children.iter().map(kind_of).collect();
            let protected = &self.control.protected;
            protected.table(|table| table.by_owner.insert(self.owner.clone(), kinds.clone()));
            let _turn = protected.writing.lock().await;
            write(self.control).await?;
            for child in children {
                let kind = kind_of(child);
                if protected.table(|table| table.in_force.contains(&kind)) {
                    continue;
                }
                probe(self.control, child).await?;
                protected.table(|table| table.in_force.insert(kind));
            }
            Ok(())
        })
    }
}

/// An instance is in mode `static` no more, or gone.
pub(crate) async fn release(control: &Control, owner: &Owner) {
    let protected = &control.protected;
    if protected
        .table(|table| table.by_owner.remove(owner))
        .is_none()
    {
        return;
    }
    let _turn = protected.writing.lock().await;
    if let Err(error) = write(control).await {
        // What is covered beyond need harms nobody: it is decided by the instance's mode.
        tracing::warn!(error, "can't narrow the protection of resources");
    }
}

/// The same for an instance that nobody evaluates any more.
pub(crate) fn forget(control: &Arc<Control>, owner: &Owner) {
    if control
        .protected
        .table(|table| table.by_owner.contains_key(owner))
    {
        let (control, owner) = (control.clone(), owner.clone());
        tokio::spawn(async move { release(&control, &owner).await });
    }
}

/// Makes the configuration cover what is wanted.
async fn write(control: &Control) -> Result<(), String> {
    let protected = &control.protected;
    let wanted = protected.table(|table| table.wanted());
    if protected.written() == wanted {
        return Ok(());
    }
    let done = if wanted.is_empty() {
        hooks::leave(control, names::WEBHOOK_RESOURCES).await
    } else {
        let configuration = control.service.of_protected(&wanted);
        hooks::bring(control, configuration).await.map(drop)
    };
    done.map_err(|error| chain(&error))?;
    protected.table(|table| {
        table.in_force.retain(|kind| wanted.contains(kind));
        table.written = wanted;
    });
    Ok(())
}

/// Whether a change of a child by anybody else would come to us.
async fn probe(control: &Control, child: &Child) -> Result<(), String> {
    let reference = &child.target.reference;
    let kind = &reference.group_kind;
    let cluster = control.engine.cluster();
    let asked = cluster
        .probe(
            &mapping_of(child),
            &reference.namespace,
            &reference.name,
            names::MANAGER_PROBE,
        )
        .await;
    match asked {
        Err(error) if error.kind() == ErrorKind::Denied && chain(&error).contains(PROBED) => Ok(()),
        Ok(()) => Err(format!(
            "the API server does not protect objects of kind {kind} yet"
        )),
        Err(error) => Err(format!(
            "can't see whether objects of kind {kind} are protected: {}",
            chain(&error)
        )),
    }
}
