//! A flight that prints what its instance hangs from: the Airway, or an instance whose child it is. Each would wait until
//! the other is ready, and at the end until the other is gone: for ever.
//!
//! An owner that somebody else has put on it, so that the instance goes with it, waits for nothing and does not count, unless
//! it is the one that manages the instance.

use atc_api::flight::is_flight;
use atc_api::{GroupKind, ResourceRef, names};
use atc_release::object::{Object, Stages};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;
use serde_json::Value;

use super::InstanceSettings;
use crate::error::EngineError;

/// Refuses an output with an owner of the instance in it. Owners of owners are theirs to refuse.
pub(super) fn refuse(
    stages: &Stages,
    object: &Value,
    settings: &InstanceSettings,
) -> Result<(), EngineError> {
    let parents = parents(&object["metadata"]);
    let owners: Vec<&OwnerReference> = settings.owner.iter().chain(&parents).collect();
    // Owners are in the namespace of what they own, or in none.
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let owns = |reference: &ResourceRef| {
        let reachable = reference.namespace.is_empty() || reference.namespace == namespace;
        reachable
            && owners.iter().any(|owner| {
                owner.name == reference.name
                    && GroupKind::of(&owner.api_version, &owner.kind) == reference.group_kind
            })
    };
    match stages.objects().map(Object::reference).find(owns) {
        Some(owner) => Err(EngineError::Cycle(owner)),
        None => Ok(()),
    }
}

/// The owners of an instance whose matter it is: a Flight, the instance that its marks name, whatever says that it controls it.
fn parents(metadata: &Value) -> Vec<OwnerReference> {
    let mark = &metadata["annotations"][names::ANNOTATION_INSTANCE_REF];
    let maker: Option<ResourceRef> = mark.as_str().and_then(|mark| mark.parse().ok());
    let owners = metadata["ownerReferences"].as_array();
    let is_parent = |owner: &Value| is_flight(owner) || owner["controller"] == true;
    let read = |owner: &Value| OwnerReference::deserialize(owner).ok();
    let made = |owner: &OwnerReference| {
        maker.as_ref().is_some_and(|maker| {
            maker.name == owner.name
                && maker.group_kind == GroupKind::of(&owner.api_version, &owner.kind)
        })
    };
    let owners = owners.into_iter().flatten();
    owners
        .filter_map(|owner| read(owner).filter(|read| is_parent(owner) || made(read)))
        .collect()
}

#[cfg(test)]
mod tests {
    use atc_release::desired;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_instance_hangs_from_is_no_child_of_it() {
        let mut settings = InstanceSettings::of::<atc_api::Flight>();
        settings.owner = Some(OwnerReference {
            api_version: "yoke.cd/v1alpha1".into(),
            kind: "Airway".into(),
            name: "apps.x.dev".into(),
            ..OwnerReference::default()
        });
        let owner = |kind: &str, name: &str, controller: Value| json!({ "apiVersion": "x.dev/v1", "kind": kind, "name": name, "uid": "u", "controller": controller });
        let mut object = json!({ "metadata": { "name": "a", "namespace": "n",
            "annotations": { "instance.atc.yoke.cd/instanceRef": "n/Site.x.dev:s" },
            "ownerReferences": [
                owner("Plan", "p", Value::Null), owner("Site", "s", Value::Null),
                owner("Site", "plain", false.into()), owner("Park", "managing", true.into()),
            ],
        } });
        let flight =
            json!({ "apiVersion": "yoke.cd/v1alpha1", "kind": "Flight", "name": "f", "uid": "u" });
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            owners.push(flight);
        }
        let check = |api: &str,
                     kind: &str,
                     namespace: Option<&str>,
                     name: &str,
                     expect: Option<&str>| {
            let printed = json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name, "namespace": namespace } });
            let stages = desired::parse(printed.to_string().as_bytes()).expect("parses");
            let found = refuse(&stages, &object, &settings).err();
            let found = found.map(|error| error.to_string());
            assert_eq!(found.is_some(), expect.is_some(), "{printed}: {found:?}");
            let words = expect.unwrap_or_default();
            assert!(found.unwrap_or_default().contains(words), "{printed}");
        };
        check(
            "yoke.cd/v1alpha1",
            "Airway",
            None,
            "apps.x.dev",
            Some("/Airway.yoke.cd:apps.x.dev"),
        );
        check("yoke.cd/v1alpha1", "Airway", None, "others.x.dev", None);
        // Whatever its version is called.
        check("x.dev/v2", "Site", Some("n"), "s", Some("n/Site.x.dev:s"));
        check("x.dev/v1", "Site", Some("other"), "s", None);
        check("y.dev/v1", "Site", Some("n"), "s", None);
        check("x.dev/v1", "Site", Some("n"), "t", None);
        check(
            "x.dev/v1",
            "Park",
            Some("n"),
            "managing",
            Some("n/Park.x.dev:managing"),
        );
        check(
            "yoke.cd/v1alpha1",
            "Flight",
            Some("n"),
            "f",
            Some("n/Flight.yoke.cd:f"),
        );
        // Whoever put these on it, they do not wait for it.
        check("x.dev/v1", "Plan", Some("n"), "p", None);
        check("x.dev/v1", "Site", Some("n"), "plain", None);
    }
}
