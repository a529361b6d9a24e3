//! The review of a change to a resource of an instance in mode `static`.
//!
//! What the release applied stays as it is; what the API server, controllers and other managers own may change. Decided
//! from memory, but for `scale`, whose object says nothing of the one that is scaled.

use atc_api::{AirwayMode, ResourceRef, names};
use atc_engine::error::chain;
use atc_engine::release::cluster::{LiveMeta, Mapping};
use atc_engine::release::owned_fields;
use serde_json::Value;

use super::review::{Decision, Request};
use crate::control::Control;
use crate::overrides::Overrides;
use crate::protect::PROBED;

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
    let changed = owned_fields::changed(old, &request.object, names::MANAGER_YOKE);
    if changed.is_empty() {
        Decision::Allow
    } else {
        let words = format!("these fields may not be changed: {}", changed.join(", "));
        refused(&instance, &words)
    }
}

fn refused(instance: &ResourceRef, what: &str) -> Decision {
    Decision::forbidden(format!(
        "{what}; it belongs to {instance}, which is in mode static: change that, or set its annotation {} to another mode",
        names::ANNOTATION_OVERRIDE_MODE
    ))
}

/// The instance in mode `static` that an object belongs to.
fn protector(control: &Control, object: &Value) -> Option<ResourceRef> {
    let mark = &object["metadata"]["annotations"][names::ANNOTATION_INSTANCE_REF];
    let reference: ResourceRef = mark.as_str()?.parse().ok()?;
    let kinds = control.kinds.all();
    let (setup, instance) = kinds.iter().find_map(|(_, kind)| {
        let setup = kind.setup()?;
        let mapping = &setup.settings.mapping;
        let is_of = mapping.group == reference.group_kind.group
            && mapping.kind == reference.group_kind.kind;
        is_of.then(|| Some((setup, kind.instance(&reference)?)))?
    })?;
    let live = instance.object();
    let mode = Overrides::of(&live).mode.unwrap_or(setup.settings.mode);
    let protects = mode == AirwayMode::Static && !LiveMeta::of(&live).is_deleting();
    protects.then_some(reference)
}

/// Whether the cluster itself asks: the garbage collector, and whoever empties a namespace.
fn is_cluster(request: &Request) -> bool {
    let name = request.user_info.username.as_deref().unwrap_or_default();
    name.starts_with("system:serviceaccount:kube-system:")
        || name == "system:kube-controller-manager"
}

/// `kubectl scale` and autoscalers: the number counts if the release applied it.
async fn scale(control: &Control, request: &Request) -> Decision {
    if request.old_object["spec"]["replicas"] == request.object["spec"]["replicas"] {
        return Decision::Allow;
    }
    let resource = &request.resource;
    let mapping = Mapping {
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.plural.clone(),
        plural: resource.plural.clone(),
        namespaced: !request.namespace.is_empty(),
    };
    let found = control
        .engine
        .cluster()
        .get(&mapping, &request.namespace, &request.name)
        .await;
    let object = match found {
        Ok(Some(object)) => object,
        Ok(None) => return Decision::Allow,
        Err(error) => {
            return Decision::unavailable(format!(
                "can't see whose {} \"{}\" is: {}",
                resource.plural,
                request.name,
                chain(&error)
            ));
        }
    };
    match protector(control, &object) {
        Some(instance) if owns_replicas(&object) => {
            refused(&instance, "its number of replicas may not be changed")
        }
        _ => Decision::Allow,
    }
}

/// Whether the release applied the number of replicas: at `spec.replicas`, where all built-in kinds and nearly all others
/// have it.
fn owns_replicas(object: &Value) -> bool {
    owned_fields::owns(object, &["spec", "replicas"], names::MANAGER_YOKE)
}
