//! Mode `static`: which kinds are protected, and whether the API server enforces it yet.
//!
//! The webhook for that covers only kinds that instances in mode `static` really have made, and of those only objects whose
//! mark names an instance of a kind that has some in that mode. An instance is ready when a dry run, made in the name of a
//! field manager that is used for nothing else, was refused by that very webhook.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use atc_api::{AirwayMode, BoxFuture, names};
use atc_engine::children::Child;
use atc_engine::error::chain;
use atc_engine::instance::Protection as Protecting;
use atc_engine::release::cluster::{ClusterError, ErrorKind, LiveMeta, Mapping};
use serde_json::Value;

use crate::bootstrap::{ProtectedKind, Protection, REGISTRATION, RESOURCES};
use crate::control::Control;
use crate::hooks::{self, Brought, HookError};
use crate::kinds::Setup;
use crate::overrides::Overrides;
use crate::owner::Owner;

mod earlier;

pub(crate) use earlier::settle;

/// What a probe is answered with.
pub(crate) const PROBED: &str = "this dry run only shows that the protection is in force";

/// The kinds that are protected, and for whom.
#[derive(Debug, Default)]
pub(crate) struct Protected {
    table: Mutex<Table>,
    /// Held while the configuration is written. Never while it is probed: a probe that is not refused would hold up all.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Table {
    by_owner: HashMap<Owner, BTreeSet<ProtectedKind>>,
    /// What the configuration covered that was there when the process began, until all instances have said what they need.
    inherited: Option<Protection>,
    /// What the configuration covers.
    written: Protection,
    /// What a probe has shown to be enforced.
    in_force: BTreeSet<Covered>,
    /// How often the configuration was found gone or edited: a probe from before proves nothing.
    losses: u64,
}

/// What one probe shows: objects of a kind that instances of another have made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Covered {
    kind: ProtectedKind,
    maker: String,
}

impl Covered {
    fn by(&self, protection: &Protection) -> bool {
        let makers = &protection.makers;
        protection.kinds.contains(&self.kind)
            && (protection.any_maker || makers.contains(&self.maker))
    }
}

/// The kind of an owner as its objects' marks name it; empty for what is no instance, which marks nothing.
fn maker(owner: &Owner) -> String {
    match owner {
        Owner::Instance { target, .. } => target.group_kind.to_string(),
        Owner::Process | Owner::Airway(_) => String::new(),
    }
}

impl Table {
    fn wanted(&self) -> Protection {
        let mut wanted = self.inherited.clone().unwrap_or_default();
        for (owner, kinds) in &self.by_owner {
            if !kinds.is_empty() {
                wanted.kinds.extend(kinds.iter().cloned());
                wanted.makers.insert(maker(owner));
            }
        }
        wanted
    }

    /// Takes a probe's word, unless the configuration was lost since.
    fn proven(&mut self, covered: Covered, losses: u64) {
        if self.losses == losses && covered.by(&self.written) {
            self.in_force.insert(covered);
        }
    }

    /// The configuration was not as we had left it.
    fn lost(&mut self) {
        self.losses += 1;
        self.in_force.clear();
    }
}

impl Protected {
    fn table<T>(&self, with: impl FnOnce(&mut Table) -> T) -> T {
        with(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes over what an earlier process left in the cluster, before the first instance is evaluated.
    pub(crate) fn inherit(&self, configuration: Option<&Value>) {
        let inherited = configuration.map(earlier::covered);
        self.table(|table| {
            table.written = inherited.clone().unwrap_or_default();
            table.inherited = inherited;
        });
    }

    /// Whether it is known which kinds an instance has made.
    fn has_said(&self, owner: &Owner) -> bool {
        self.table(|table| table.by_owner.contains_key(owner))
    }

    /// Takes which kinds an instance has made, unless it has said so itself.
    fn said_first(&self, owner: Owner, kinds: BTreeSet<ProtectedKind>) {
        self.table(|table| {
            table.by_owner.entry(owner).or_insert(kinds);
        });
    }
}

/// Whether an instance of an Airway protects its children.
pub(crate) fn protects(setup: &Setup, instance: &Value) -> bool {
    let mode = Overrides::of(instance).mode.unwrap_or(setup.settings.mode);
    mode == AirwayMode::Static && !LiveMeta::of(instance).is_deleting()
}

/// How a kind is protected; `None` where that can't be.
fn kind_of(mapping: Mapping) -> Option<ProtectedKind> {
    (mapping.group != REGISTRATION).then_some(ProtectedKind {
        group: mapping.group,
        version: mapping.version,
        plural: mapping.plural,
        namespaced: mapping.namespaced,
    })
}

/// The protection of one instance.
pub(crate) struct Guard<'a> {
    pub(crate) control: &'a Control,
    pub(crate) owner: &'a Owner,
}

impl Protecting for Guard<'_> {
    fn protect<'a>(&'a self, children: &'a [Child]) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let kinds: BTreeSet<ProtectedKind> = children
                .iter()
                .filter_map(|child| kind_of(child.mapping()))
                .collect();
            let protected = &self.control.protected;
            protected.table(|table| table.by_owner.insert(self.owner.clone(), kinds));
            write(self.control).await?;
            for child in children {
                let Some(kind) = kind_of(child.mapping()) else {
                    continue;
                };
                let maker = maker(self.owner);
                let covered = Covered { kind, maker };
                let (known, losses) =
                    protected.table(|table| (table.in_force.contains(&covered), table.losses));
                if known {
                    continue;
                }
                probe(self.control, child).await?;
                protected.table(|table| table.proven(covered, losses));
            }
            Ok(())
        })
    }
}

/// An instance is in mode `static` no more, or gone.
pub(crate) async fn release(control: &Control, owner: &Owner) {
    let protected = &control.protected;
    let known = protected.table(|table| table.by_owner.remove(owner));
    if known.is_none() {
        return;
    }
    if let Err(error) = write(control).await {
        // What is covered beyond need harms nobody: it is decided by the instance's mode.
        tracing::warn!(error, "can't narrow the protection of resources");
    }
}

/// The same for an instance that nobody evaluates any more.
pub(crate) fn forget(control: &Arc<Control>, owner: &Owner) {
    if control.protected.has_said(owner) {
        let (control, owner) = (control.clone(), owner.clone());
        tokio::spawn(async move { release(&control, &owner).await });
    }
}

/// Makes the configuration cover what is wanted.
async fn write(control: &Control) -> Result<(), String> {
    let protected = &control.protected;
    let _turn = protected.writing.lock().await;
    if protected.table(|table| table.written == table.wanted()) {
        return Ok(());
    }
    put(control).await
}

/// The same, whatever we know of it. In the turn of whoever holds `writing`.
async fn put(control: &Control) -> Result<(), String> {
    let protected = &control.protected;
    let wanted = protected.table(|table| table.wanted());
    let done = if wanted.kinds.is_empty() {
        hooks::clear(control, names::WEBHOOK_RESOURCES).await
    } else {
        let configuration = control.service.of_protected(&wanted);
        hooks::bring(control, configuration).await.map(drop)
    };
    done.map_err(|error| chain(&error))?;
    protected.table(|table| {
        table.in_force.retain(|covered| covered.by(&wanted));
        table.written = wanted;
    });
    // It is looked after with the others from now on.
    control.edited(&Owner::Process, "the kinds that mode static protects");
    Ok(())
}

/// Sees to it that the configuration stands as it was written, if there is one.
pub(crate) async fn stand(control: &Control) -> Result<Option<Brought>, HookError> {
    let protected = &control.protected;
    let _turn = protected.writing.lock().await;
    let written = protected.table(|table| table.written.clone());
    if written.kinds.is_empty() {
        return Ok(None);
    }
    let brought = hooks::bring(control, control.service.of_protected(&written)).await?;
    if brought.written {
        protected.table(Table::lost);
    }
    Ok(Some(brought))
}

/// Whether a change of a child by anybody else would come to us.
async fn probe(control: &Control, child: &Child) -> Result<(), String> {
    let reference = &child.target.reference;
    let kind = &reference.group_kind;
    let cluster = control.engine.cluster();
    let asked = cluster
        .probe(
            &child.mapping(),
            &reference.namespace,
            &reference.name,
            names::MANAGER_PROBE,
        )
        .await;
    match asked {
        Err(error) if is_ours(&error) => Ok(()),
        Ok(()) => Err(format!(
            "the API server does not protect objects of kind {kind} yet"
        )),
        Err(error) => Err(format!(
            "can't see whether objects of kind {kind} are protected: {}",
            chain(&error)
        )),
    }
}

/// Whether our webhook refused. By its name: of what is said of a Secret nothing else is left.
fn is_ours(error: &ClusterError) -> bool {
    error.kind() == ErrorKind::Denied && chain(error).contains(&format!("\"{RESOURCES}\" denied"))
}

#[cfg(test)]
mod tests;
