//! The review of a change to a resource of an instance in mode `static`.
//!
//! What the release applied stays as it is; what the API server, controllers and other managers own may change. Decided
//! from memory, but for `scale`, whose object says nothing of the one that is scaled. What can't be decided passes, as it
//! does while the atc is away.

use std::collections::BTreeSet;
use std::time::Duration;

use atc_api::{ResourceRef, names};
use atc_engine::error::chain;
use atc_engine::release::cluster::LiveMeta;
use atc_engine::release::owned_fields;
use serde_json::Value;

use super::review::{Decision, Request};
use crate::control::Control;
use crate::flights;
use crate::kinds::Instance;
use crate::protect::{self, PROBED};

/// How long the object of a `scale` may take to be read. 1 s: every scaling of an object of that kind waits for it, whoever
/// it belongs to.
const SCALED: Duration = Duration::from_secs(1);

/// Whether a change may be stored.
pub(crate) async fn decide(control: &Control, request: &Request) -> Decision {
    if request.options["fieldManager"] == names::MANAGER_PROBE {
        return Decision::forbidden(PROBED);
    }
    if request.sub_resource == "scale" {
        return scale(control, request).await;
    }
    let old = &request.old_object;
    let Some(instance) = protector(control, old) else {
        return Decision::Allow;
    };
    if LiveMeta::of(old).is_deleting() {
        return Decision::Allow;
    }
    if request.operation == "DELETE" {
        return if is_cluster(request) {
            Decision::Allow
        } else {
            refused(&instance, "it may not be deleted")
        };
    }
    let new = &request.object;
    let changed = owned_fields::changed(old, new, names::MANAGER_YOKE);
    if !changed.is_empty() {
        let words = format!("these fields may not be changed: {}", changed.join(", "));
        return refused(&instance, &words);
    }
    if owners_differ(old, new) && !is_cluster(request) {
        return refused(
            &instance,
            "its owner references may not be added to or taken off: with an owner that goes, or is not there, the cluster would delete it",
        );
    }
    if is_sealed(old, new) {
        return refused(
            &instance,
            "it may not be made immutable: its release could not change it any more",
        );
    }
    Decision::Allow
}

/// Whether a write adds an owner, takes one off, or makes one another.
fn owners_differ(old: &Value, new: &Value) -> bool {
    let owners = |object: &Value| -> BTreeSet<[String; 4]> {
        let text =
            |owner: &Value, field: &str| owner[field].as_str().unwrap_or_default().to_owned();
        let all = object["metadata"]["ownerReferences"].as_array();
        let all = all.into_iter().flatten();
        all.map(|owner| ["apiVersion", "kind", "name", "uid"].map(|field| text(owner, field)))
            .collect()
    };
    owners(old) != owners(new)
}

/// Whether a write makes a ConfigMap or Secret immutable. One that its release has made so is that before.
fn is_sealed(old: &Value, new: &Value) -> bool {
    let kinds = [Some("ConfigMap"), Some("Secret")];
    let can_be = new["apiVersion"] == "v1" && kinds.contains(&new["kind"].as_str());
    can_be && new["immutable"] == true && old["immutable"] != true
}

fn refused(instance: &ResourceRef, what: &str) -> Decision {
    Decision::forbidden(format!(
        "{what}; it belongs to {instance}, which is in mode static: change that, or set its annotation {} to another mode",
        names::ANNOTATION_OVERRIDE_MODE
    ))
}

/// The instance in mode `static` that an object belongs to. The marks on it alone prove nothing: anybody can write them.
fn protector(control: &Control, object: &Value) -> Option<ResourceRef> {
    let mark = &object["metadata"]["annotations"][names::ANNOTATION_INSTANCE_REF];
    let reference: ResourceRef = mark.as_str()?.parse().ok()?;
    let airways = control.kinds.all().into_iter();
    let mut airways = airways.filter(|(name, _)| !flights::is_kind(name));
    let (setup, instance) = airways.find_map(|(_, kind)| {
        let setup = kind.setup()?;
        let mapping = &setup.settings.mapping;
        let is_of = mapping.group == reference.group_kind.group
            && mapping.kind == reference.group_kind.kind;
        is_of.then(|| Some((setup, kind.instance(&reference)?)))?
    })?;
    (protect::protects(&setup, &instance.object()) && is_child(&instance, object))
        .then_some(reference)
}

/// Whether an instance made an object: it applied it, or, where it has not been evaluated yet since we began, it owns it.
fn is_child(instance: &Instance, object: &Value) -> bool {
    let (parent, live) = (instance.object(), LiveMeta::of(object));
    let uid = parent["metadata"]["uid"].as_str();
    let mut owners = live.owner_references().iter();
    uid.is_some_and(|uid| owners.any(|owner| owner["uid"] == uid))
        || reference(object).is_some_and(|reference| instance.made(&reference))
}

fn reference(object: &Value) -> Option<ResourceRef> {
    let (live, version) = (LiveMeta::of(object), object["apiVersion"].as_str()?);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kind = object["kind"].as_str()?;
    Some(ResourceRef::new(live.namespace(), group, kind, live.name()))
}

/// Whether the cluster itself asks: its controllers, the garbage collector and whoever empties a namespace among them, which
/// have accounts in `kube-system`, and the scheduler, which makes room for more important Pods.
fn is_cluster(request: &Request) -> bool {
    let name = request.user_info.username.as_deref().unwrap_or_default();
    let (group, plural) = (&request.resource.group, &request.resource.plural);
    name.starts_with("system:serviceaccount:kube-system:")
        || name == "system:kube-controller-manager"
        || (name == "system:kube-scheduler" && group.is_empty() && plural == "pods")
}

/// `kubectl scale` and autoscalers: the number counts if the release applied it.
async fn scale(control: &Control, request: &Request) -> Decision {
    if request.old_object["spec"]["replicas"] == request.object["spec"]["replicas"] {
        return Decision::Allow;
    }
    let mapping = request.resource.kindless(!request.namespace.is_empty());
    let cluster = control.engine.cluster();
    let read = cluster.get(&mapping, &request.namespace, &request.name);
    let object = match tokio::time::timeout(SCALED, read).await {
        Ok(Ok(Some(object))) => object,
        Ok(Ok(None)) => return Decision::Allow,
        Ok(Err(error)) => return undecided(request, &chain(&error)),
        Err(_) => return undecided(request, "the API server does not say so in time"),
    };
    match protector(control, &object) {
        Some(instance) if owns_replicas(&object) => {
            refused(&instance, "its number of replicas may not be changed")
        }
        _ => Decision::Allow,
    }
}

/// Lets a scaling pass of which can't be told whether it may.
fn undecided(request: &Request, error: &str) -> Decision {
    let (kind, namespace, name) = (&request.resource.plural, &request.namespace, &request.name);
    tracing::warn!(
        kind,
        namespace,
        name,
        error,
        "can't see whose object is scaled: it is let pass"
    );
    Decision::Allow
}

/// Whether the release applied the number of replicas: at `spec.replicas`, where all built-in kinds and nearly all others
/// have it.
fn owns_replicas(object: &Value) -> bool {
    owned_fields::owns(object, &["spec", "replicas"], names::MANAGER_YOKE)
}

#[cfg(test)]
mod tests;
