//! The webhook configurations as they stand in the cluster: written by the atc that began last, kept as it wrote them,
//! and those for everybody taken away with it.
//!
//! Each carries the stamp of the process that wrote it last: a turn, one more than that of all who had written before when
//! the process began, and a random word. Who wins is decided by it: a process takes over what has a smaller stamp or none,
//! and leaves what has a larger one to whoever wrote it, so that two never fight. Only what would not do for anybody (it
//! is gone, or asks for no review of what we serve) and stays so for [`GRACE`] is taken from a larger stamp: its process
//! is dead then, and all else that it wrote is taken, too. What is as it should be costs a read and no write.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use atc_api::names;
use atc_engine::error::chain;
use atc_engine::release::cluster::{
    ApplyOptions, Cluster, ClusterError, ErrorKind, LiveMeta, Mapping, Propagation,
};
use atc_engine::release::object::{Object, ObjectError};
use atc_engine::watch::{Dependencies, Dependency, Effect, Fingerprint, Role, Seen, Target};
use serde_json::Value;

use crate::bootstrap;
use crate::control::Control;
use crate::own_crds;
use crate::owner::Owner;
use crate::protect;

mod agree;

use agree::{agrees, does};

/// How long a configuration of a later process may be gone or useless before it is taken from it. 5 s: one that lives
/// puts it right within one.
const GRACE: Duration = Duration::from_secs(5);
/// The existing tool's configuration for all kinds of objects, and its webhook.
const OLD: &str = "atc-external-resources";
const OLD_WEBHOOK: &str = "external.resources.yoke.cd";
/// Tries to delete a configuration that others change meanwhile.
const TRIES: usize = 3;

/// Why a configuration does not stand.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HookError {
    /// What is to be applied is no object.
    #[error("can't make a webhook configuration")]
    Object(#[source] ObjectError),
    /// The API server refused.
    #[error("can't write webhook configuration \"{name}\"")]
    Cluster {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: ClusterError,
    },
    /// A CRD of ours can't be written as JSON.
    #[error("can't write a CustomResourceDefinition of ours as JSON")]
    Json(#[source] serde_json::Error),
    /// The API server refused one.
    #[error("can't put CustomResourceDefinition \"{name}\" back")]
    Crd {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: ClusterError,
    },
    /// The API server did not say which there are.
    #[error("can't list the webhook configurations")]
    List(#[source] ClusterError),
}

/// Who wrote a configuration last. The larger one began later.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    turn: u64,
    word: String,
}

impl Stamp {
    fn new(turn: u64) -> Self {
        Self {
            turn,
            word: format!("{:016x}", rand::random::<u64>()),
        }
    }

    /// The stamp on a configuration, if it bears one.
    fn of(live: &LiveMeta) -> Option<Self> {
        let (turn, word) = live
            .annotation(names::ANNOTATION_PROCESS)?
            .split_once('-')?;
        Some(Self {
            turn: turn.parse().ok()?,
            word: word.to_owned(),
        })
    }

    /// Whether a configuration bears it, in whatever turn of the same process.
    fn is_on(&self, live: &LiveMeta) -> bool {
        Self::of(live).is_some_and(|stamp| stamp.word == self.word)
    }
}

impl std::fmt::Display for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.turn, self.word)
    }
}

/// What is to be done about a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing.
    Leave,
    /// Write it.
    Write,
    /// It is another's to put right; ours, if it does not.
    Doubt,
}

/// What this process knows of the others.
#[derive(Debug)]
pub(crate) struct Hooks(Mutex<State>);

#[derive(Debug)]
struct State {
    us: Stamp,
    /// The largest stamp that was seen.
    latest: Option<Stamp>,
    /// Since when a configuration of a later process is of no use, by name. At most one for each Airway.
    doubts: HashMap<String, Instant>,
    /// Something was taken from a later process, and nobody has asked yet.
    taken: bool,
}

impl Default for Hooks {
    fn default() -> Self {
        Self(Mutex::new(State {
            us: Stamp::new(1),
            latest: None,
            doubts: HashMap::new(),
            taken: false,
        }))
    }
}

impl Hooks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stamp(&self) -> Stamp {
        self.lock().us.clone()
    }

    /// Takes a turn after all these.
    fn follow(&self, stamps: impl Iterator<Item = Stamp>) {
        let mut state = self.lock();
        let last = stamps.map(|stamp| stamp.turn).max().unwrap_or(0);
        state.us.turn = state.us.turn.max(last.saturating_add(1));
    }

    fn judge(&self, live: Option<&Value>, wanted: &Value, now: Instant) -> Step {
        self.lock().judge(live, wanted, now)
    }

    /// Whether a later process has the configurations, as far as is known.
    pub(crate) fn has_later(&self) -> bool {
        let state = self.lock();
        state.latest.as_ref().is_some_and(|other| *other > state.us)
    }

    /// Whether something was taken from a later process since this was asked last.
    fn has_taken(&self) -> bool {
        std::mem::take(&mut self.lock().taken)
    }
}

impl State {
    fn judge(&mut self, live: Option<&Value>, wanted: &Value, now: Instant) -> Step {
        let stamp = live.map(LiveMeta::of).as_ref().and_then(Stamp::of);
        if let Some(stamp) = stamp.as_ref().filter(|stamp| stamp.word != self.us.word) {
            self.latest = self.latest.take().max(Some(stamp.clone()));
        }
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let step = step(live, stamp.as_ref(), wanted, &self.us, self.latest.as_ref());
        if step != Step::Doubt {
            self.doubts.remove(name);
            return step;
        }
        let since = *self.doubts.entry(name.to_owned()).or_insert(now);
        if now.saturating_duration_since(since) < GRACE {
            return Step::Doubt;
        }
        // Whoever came after us is gone: what it left is ours from now on.
        self.doubts.remove(name);
        let last = self.latest.as_ref().map_or(0, |stamp| stamp.turn);
        self.us.turn = self.us.turn.max(last.saturating_add(1));
        self.taken = true;
        Step::Write
    }
}

fn step(
    live: Option<&Value>,
    stamp: Option<&Stamp>,
    wanted: &Value,
    us: &Stamp,
    latest: Option<&Stamp>,
) -> Step {
    let Some(live) = live else {
        return if latest.is_some_and(|other| other > us) {
            Step::Doubt
        } else {
            Step::Write
        };
    };
    match stamp {
        Some(stamp) if stamp.word == us.word && agrees(live, wanted) => Step::Leave,
        Some(stamp) if stamp.word != us.word && stamp > us => {
            if does(live, wanted) {
                Step::Leave
            } else {
                Step::Doubt
            }
        }
        _ => Step::Write,
    }
}

/// A configuration that was looked after.
pub(crate) struct Brought {
    /// As it is now: a change of it is to be looked at.
    pub(crate) seen: Dependency,
    /// When it is to be looked at again in any case.
    pub(crate) again: Option<Duration>,
    /// Whether it was not as it should be and had to be written.
    pub(crate) written: bool,
}

/// Where webhook configurations live in the API.
pub(crate) fn mapping() -> Mapping {
    Mapping {
        group: bootstrap::REGISTRATION.into(),
        version: "v1".into(),
        kind: "ValidatingWebhookConfiguration".into(),
        plural: "validatingwebhookconfigurations".into(),
        namespaced: false,
    }
}

/// Takes a turn after all atcs that have written configurations, and over what they protected. Before the first [`bring`].
pub(crate) async fn begin(control: &Control) -> Result<(), HookError> {
    let labels = format!("{}={}", names::LABEL_MANAGED_BY, names::MANAGED_BY_ATC);
    let cluster = control.engine.cluster();
    let there = cluster.list_metadata(&mapping(), None, Some(&labels)).await;
    let there = there.map_err(HookError::List)?;
    control.hooks.follow(there.iter().filter_map(Stamp::of));
    let name = names::WEBHOOK_RESOURCES;
    let live = cluster.get(&mapping(), "", name).await;
    let live = live.map_err(|source| HookError::Cluster {
        name: name.to_owned(),
        source,
    })?;
    control.protected.inherit(live.as_ref());
    replace_the_old(control).await
}

/// Takes away the configuration by which the existing tool's atc was told of every write in the cluster: each write would
/// go on asking us, who need no telling. (Its others bear the names of ours.)
async fn replace_the_old(control: &Control) -> Result<(), HookError> {
    let is_it = |live: &Value| live["webhooks"][0]["name"] == OLD_WEBHOOK;
    if take(control, OLD, is_it).await? {
        tracing::info!(
            name = OLD,
            "removed a webhook configuration of the existing tool"
        );
    }
    Ok(())
}

/// Sees to it that a configuration stands as wanted, or is left to a later process.
pub(crate) async fn bring(control: &Control, wanted: Value) -> Result<Brought, HookError> {
    let name = LiveMeta::of(&wanted).name().to_owned();
    let refused = |source| HookError::Cluster {
        name: name.clone(),
        source,
    };
    let cluster = control.engine.cluster();
    let live = cluster.get(&mapping(), "", &name).await.map_err(refused)?;
    let step = control.hooks.judge(live.as_ref(), &wanted, Instant::now());
    let (live, again) = match step {
        Step::Leave => (live, None),
        Step::Doubt => (live, Some(GRACE)),
        Step::Write => {
            let mut wanted = wanted;
            wanted["metadata"]["annotations"][names::ANNOTATION_PROCESS] =
                control.hooks.stamp().to_string().into();
            let written = write(cluster, &name, wanted).await?;
            tracing::info!(name, "wrote a webhook configuration");
            if control.hooks.has_taken() {
                // What else it has left still asks it, perhaps where nobody is any more.
                control.look_at_all("an atc that began later is gone");
            }
            (Some(written), None)
        }
    };
    let seen = live.map_or(Seen::Absent, |live| Seen::Present(Fingerprint::of(&live)));
    Ok(Brought {
        seen: tracked(&mapping(), &name, seen),
        again,
        written: step == Step::Write,
    })
}

/// Applies it; what others added to it, which an apply leaves, is taken off.
async fn write(cluster: &Cluster, name: &str, wanted: Value) -> Result<Value, HookError> {
    let refused = |source| HookError::Cluster {
        name: name.to_owned(),
        source,
    };
    let webhooks = wanted["webhooks"].clone();
    let object = Object::try_from(wanted).map_err(HookError::Object)?;
    let options = ApplyOptions {
        force: true,
        // As the existing tool, which does not force and may come back.
        manager: Some(names::MANAGER_ATC.to_owned()),
        ..ApplyOptions::default()
    };
    let applied = cluster.apply(&object, &options).await.map_err(refused)?;
    if agree::matches(&applied.live["webhooks"], &webhooks) {
        return Ok(applied.live);
    }
    let live = LiveMeta::of(&applied.live);
    cluster
        .replace_field(&mapping(), &live, "webhooks", &webhooks)
        .await
        .map_err(refused)
}

/// An object of the cluster's that we made and whose changes are to be told.
pub(crate) fn tracked(mapping: &Mapping, name: &str, seen: Seen) -> Dependency {
    Dependency {
        target: Target::new(
            mapping.reference("", name),
            &mapping.version,
            &mapping.plural,
        ),
        role: Role::Child {
            drift: Some(Effect::Evaluate),
            status: None,
        },
        seen,
    }
}

/// Looks after the configurations that stand as long as we run. Gives when to look again, should nothing tell of them.
pub(crate) async fn stand(control: &Control) -> Result<Option<Duration>, HookError> {
    let owner = Owner::Process;
    control.hub.begin(&owner);
    match bring_all(control).await {
        Ok(all) => {
            let again = all.iter().filter_map(|brought| brought.again).min();
            let seen: Vec<_> = all.into_iter().map(|brought| brought.seen).collect();
            control.hub.commit(&owner, seen);
            Ok(again)
        }
        Err(error) => {
            control.hub.fail(&owner, Dependencies::default());
            Err(error)
        }
    }
}

async fn bring_all(control: &Control) -> Result<Vec<Brought>, HookError> {
    let mut all = own_crds::stand(control).await?;
    for wanted in control.service.configurations() {
        all.push(bring(control, wanted).await?);
    }
    all.extend(protect::stand(control).await?);
    Ok(all)
}

/// Takes those of them that are ours away, so that nothing waits for a process that is gone.
pub(crate) async fn farewell(control: &Control) {
    for name in [
        bootstrap::AIRWAY_WEBHOOK,
        bootstrap::FLIGHT_WEBHOOK,
        names::WEBHOOK_RESOURCES,
    ] {
        if let Err(error) = leave(control, name).await {
            tracing::warn!(
                name,
                error = chain(&error),
                "can't remove a webhook configuration"
            );
        }
    }
}

/// Takes a configuration away, if this process wrote it last.
pub(crate) async fn leave(control: &Control, name: &str) -> Result<(), HookError> {
    let us = control.hooks.stamp();
    let ours = |live: &Value| us.is_on(&LiveMeta::of(live));
    take(control, name, ours).await.map(drop)
}

/// Takes a configuration away that nobody needs, unless a later process wrote it.
pub(crate) async fn clear(control: &Control, name: &str) -> Result<(), HookError> {
    let us = control.hooks.stamp();
    let not_later = |live: &Value| {
        let live = LiveMeta::of(live);
        us.is_on(&live) || Stamp::of(&live).is_none_or(|stamp| stamp < us)
    };
    take(control, name, not_later).await.map(drop)
}

/// Deletes a configuration that is there and may go. Gives whether it did.
async fn take(
    control: &Control,
    name: &str,
    may_go: impl Fn(&Value) -> bool,
) -> Result<bool, HookError> {
    let (cluster, mapping) = (control.engine.cluster(), mapping());
    let refused = |source| HookError::Cluster {
        name: name.to_owned(),
        source,
    };
    for tries in 1.. {
        let live = cluster.get(&mapping, "", name).await.map_err(refused)?;
        let Some(live) = live.filter(&may_go) else {
            return Ok(false);
        };
        let live = LiveMeta::of(&live);
        let (uid, version) = (live.uid(), Some(live.resource_version()));
        let background = Propagation::Background;
        match cluster
            .delete(&mapping, "", name, uid, version, background)
            .await
        {
            Err(error) if error.kind() == ErrorKind::Stale && tries < TRIES => {}
            other => return other.map(|_| true).map_err(refused),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
