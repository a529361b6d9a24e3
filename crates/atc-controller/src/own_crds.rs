//! Our own CRDs while we run: put back when somebody deletes one, or takes from it what no version of us can work without.
//! What others change in them otherwise is left until the next start, so that two versions of us never fight over them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use atc_api::names::VERSION;
use atc_engine::error::chain;
use atc_engine::release::cluster::{ApplyOptions, Cluster, ClusterError, ErrorKind, LiveMeta};
use atc_engine::release::object::Object;
use atc_engine::watch::{Fingerprint, Seen};
use serde_json::Value;

use crate::airway::crd_mapping;
use crate::bootstrap;
use crate::control::Control;
use crate::hooks::{Brought, HookError, tracked};

/// The first pause after a CRD was put back, or could not be. 1 s: it is not served at once either.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest: 5 min. Whoever goes on overwriting it costs both of us a write so often.
const PAUSE_MAX: Duration = Duration::from_mins(5);
/// A CRD that has stood for so many of its last pauses is put back at once again.
const CALM: u32 = 4;

/// How often our own CRDs had to be put back: one entry for each of them at most.
#[derive(Debug, Default)]
pub(crate) struct OwnCrds(Mutex<HashMap<String, Turn>>);

/// When a CRD was put back last, and how long that is enough for.
#[derive(Clone, Copy, Debug)]
struct Turn {
    at: Instant,
    pause: Duration,
}

impl OwnCrds {
    /// Takes a turn to put one back, or says how long there is none.
    fn turn(&self, name: &str, now: Instant) -> Result<(), Duration> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = turns.get(name).copied();
        let pause = match last {
            Some(last) => {
                let since = now.saturating_duration_since(last.at);
                if since < last.pause {
                    return Err(last.pause.saturating_sub(since));
                }
                if since < last.pause.saturating_mul(CALM) {
                    last.pause.saturating_mul(2).min(PAUSE_MAX)
                } else {
                    PAUSE
                }
            }
            None => PAUSE,
        };
        turns.insert(name.to_owned(), Turn { at: now, pause });
        Ok(())
    }
}

/// What a CRD of ours lacks that no version of us can work without; not what makes it another version's.
fn lacks(live: &Value) -> Option<&'static str> {
    let versions = live["spec"]["versions"].as_array();
    let mut versions = versions.into_iter().flatten();
    let Some(ours) = versions.find(|version| version["name"] == VERSION) else {
        return Some("it has our version no more");
    };
    if ours["served"] != true {
        return Some("our version is not served");
    }
    if ours["storage"] != true {
        return Some("our version is not the stored one");
    }
    if !ours["subresources"]["status"].is_object() {
        return Some("it has no subresource \"status\"");
    }
    let spec = &ours["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let fields = spec["properties"].as_object();
    let says = fields.is_some_and(|fields| !fields.is_empty())
        || spec["x-kubernetes-preserve-unknown-fields"] == true;
    (!says).then_some("its schema says nothing of \"spec\"")
}

/// The versions that a CRD has with ours in place of what is called so: that one is stored, and no other.
fn with_ours(live: &Value, ours: &Value) -> Value {
    let list = |crd: &Value| {
        crd["spec"]["versions"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let mut all = list(ours);
    for mut other in list(live) {
        if all.iter().all(|version| version["name"] != other["name"]) {
            other["storage"] = false.into();
            all.push(other);
        }
    }
    all.into()
}

/// Sees to it that they are there, and of use.
pub(crate) async fn stand(control: &Control) -> Result<Vec<Brought>, HookError> {
    let mut all = Vec::new();
    for value in bootstrap::crds().map_err(HookError::Json)? {
        let object = Object::try_from(value).map_err(HookError::Object)?;
        all.push(bring(control, &object).await?);
    }
    Ok(all)
}

async fn bring(control: &Control, ours: &Object) -> Result<Brought, HookError> {
    let (cluster, mapping, name) = (control.engine.cluster(), crd_mapping(), ours.name());
    let refused = |source| HookError::Crd {
        name: name.to_owned(),
        source,
    };
    let brought = |live: &Value, again: Option<Duration>, written: bool| Brought {
        seen: tracked(&mapping, name, Seen::Present(Fingerprint::of(live))),
        again,
        written,
    };
    let Some(live) = cluster.get(&mapping, "", name).await.map_err(refused)? else {
        let applied = apply(cluster, ours).await.map_err(refused)?;
        tracing::warn!(name, "put a CRD of ours back that was deleted");
        return Ok(brought(&applied, None, true));
    };
    let Some(why) = lacks(&live).filter(|_| !LiveMeta::of(&live).is_deleting()) else {
        return Ok(brought(&live, None, false));
    };
    if let Err(pause) = control.own_crds.turn(name, Instant::now()) {
        return Ok(brought(&live, Some(pause), false));
    }
    match put_back(cluster, ours, &live).await {
        Ok(now) => {
            tracing::warn!(
                name,
                why,
                "put a CRD of ours back that somebody had changed"
            );
            Ok(brought(&now, None, true))
        }
        // The webhooks stand all the same.
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(name, why, error, "can't put a CRD of ours back");
            Ok(brought(&live, Some(PAUSE), false))
        }
    }
}

/// Gives a CRD of ours what it lacks. What others added to it stays where it does no harm.
async fn put_back(cluster: &Cluster, ours: &Object, live: &Value) -> Result<Value, ClusterError> {
    let applied = match apply(cluster, ours).await {
        Ok(applied) if lacks(&applied).is_none() => return Ok(applied),
        Ok(applied) => applied,
        // Of two stored versions, for one.
        Err(error) if error.kind() == ErrorKind::Invalid => live.clone(),
        Err(error) => return Err(error),
    };
    let mut spec = applied["spec"].clone();
    spec["versions"] = with_ours(&applied, ours.value());
    let (mapping, meta) = (crd_mapping(), LiveMeta::of(&applied));
    cluster.replace_field(&mapping, &meta, "spec", &spec).await
}

async fn apply(cluster: &Cluster, ours: &Object) -> Result<Value, ClusterError> {
    let options = ApplyOptions {
        force: true,
        ..ApplyOptions::default()
    };
    Ok(cluster.apply(ours, &options).await?.live)
}

#[cfg(test)]
mod tests;
