//! One Kubernetes object as a flight printed it, and the stages in which a release holds its objects.
//!
//! An [`Object`] is checked once, at the edge: whoever holds one knows that it has an API version, a kind and a name, and
//! that all of them may stand in a URL or a file name. Its `Debug` form is its name: contents may be secret.

use std::collections::BTreeMap;
use std::fmt;

use atc_api::flight::is_flight;
use atc_api::{GroupKind, ResourceRef, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

mod check;
mod stages;

pub use check::ObjectError;
pub use stages::Stages;

/// What a metadata field that only the server sets is called; it never comes from us.
///
/// `generation` and `selfLink` stand beside the four that the existing tool drops, since typed Go programs print them too.
const SERVER_FIELDS: [&str; 6] = [
    "creationTimestamp",
    "resourceVersion",
    "uid",
    "managedFields",
    "generation",
    "selfLink",
];

/// A Kubernetes object: a map with `apiVersion`, `kind` and `metadata.name`.
///
/// Two are equal when their JSON is, whatever the order of keys.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub struct Object(Value);

impl Object {
    /// `apiVersion`: `apps/v1`, or `v1` for core kinds.
    pub fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    /// `kind`: `Deployment`.
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// API group; empty for core.
    pub fn group(&self) -> &str {
        self.api_version()
            .rsplit_once('/')
            .map_or("", |(group, _)| group)
    }

    /// API version without its group: `v1`.
    pub fn version(&self) -> &str {
        version_of(self.api_version())
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// `metadata.namespace`; an empty one counts as none.
    pub fn namespace(&self) -> Option<&str> {
        self.0["metadata"]["namespace"]
            .as_str()
            .filter(|namespace| !namespace.is_empty())
    }

    /// Kind and group.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group(), self.kind())
    }

    /// How the object is named in marks, matchers and inventories: without its version, so that it stays the same object
    /// when its `apiVersion` moves on.
    pub fn reference(&self) -> ResourceRef {
        ResourceRef::new(
            self.namespace().unwrap_or_default(),
            self.group(),
            self.kind(),
            self.name(),
        )
    }

    /// How the object is named in messages, diffs and files, see [`canonical`].
    pub fn canonical(&self) -> String {
        canonical(&self.reference(), self.version())
    }

    /// The value of a label, if it is a text.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0["metadata"]["labels"][key].as_str()
    }

    /// The value of an annotation, if it is a text.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0["metadata"]["annotations"][key].as_str()
    }

    /// `metadata`, always a map.
    pub fn metadata(&self) -> &Value {
        &self.0["metadata"]
    }

    /// `status`, null if there is none.
    pub fn status(&self) -> &Value {
        &self.0["status"]
    }

    /// The whole object.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The whole object, given away.
    pub fn into_value(self) -> Value {
        self.0
    }

    /// Whether other objects may need this one to exist first: a Namespace or a CustomResourceDefinition.
    pub fn is_foundation(&self) -> bool {
        is_foundation(self.group(), self.kind())
    }

    /// Sets or, with `None`, removes `metadata.namespace`.
    pub fn set_namespace(&mut self, namespace: Option<&str>) {
        match namespace {
            Some(namespace) => self.0["metadata"]["namespace"] = namespace.into(),
            None => self.remove_metadata("namespace"),
        }
    }

    /// Sets a label, over any value it has.
    pub fn set_label(&mut self, key: &str, value: &str) {
        self.0["metadata"]["labels"][key] = value.into();
    }

    /// Sets an annotation, over any value it has.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        self.0["metadata"]["annotations"][key] = value.into();
    }

    /// Removes a label; the map stays, even if it is then empty.
    pub fn remove_label(&mut self, key: &str) {
        if let Some(labels) = self.0["metadata"]
            .get_mut("labels")
            .and_then(Value::as_object_mut)
        {
            labels.shift_remove(key);
        }
    }

    /// Removes an annotation; the map stays, even if it is then empty.
    pub fn remove_annotation(&mut self, key: &str) {
        if let Some(annotations) = self.0["metadata"]
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.shift_remove(key);
        }
    }

    /// Makes `owner` an owner of the object: a reference with its uid is replaced, the others stay.
    pub fn set_owner(&mut self, owner: &OwnerReference) {
        let mut reference = json!({
            "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid,
        });
        if let Some(controller) = owner.controller {
            reference["controller"] = controller.into();
        }
        if let Some(block) = owner.block_owner_deletion {
            reference["blockOwnerDeletion"] = block.into();
        }
        let mut owners = match self.0["metadata"]["ownerReferences"].take() {
            Value::Array(owners) => owners,
            _ => Vec::new(),
        };
        owners.retain(|other| other["uid"] != reference["uid"]);
        owners.push(reference);
        self.0["metadata"]["ownerReferences"] = owners.into();
    }

    /// Whether it is a Flight.
    pub fn is_flight(&self) -> bool {
        self.group() == names::GROUP && self.kind() == "Flight"
    }

    /// Whether, as a Flight or ClusterFlight, it acts as an account.
    pub(crate) fn names_account(&self) -> bool {
        let name = &self.0["spec"]["serviceAccountName"];
        !(name.is_null() || name == "")
    }

    /// Has a Flight say that it acts as no account, so that none which somebody else gave it stays.
    pub(crate) fn name_no_account(&mut self) {
        if let Some(spec) = self.0.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("serviceAccountName".to_owned(), Value::from(""));
        }
    }

    /// Drops the references to Flights and ClusterFlights, but for one with this uid.
    pub fn drop_flights_of_others(&mut self, ours: Option<&str>) {
        if let Some(owners) = self.0["metadata"]
            .get_mut("ownerReferences")
            .and_then(Value::as_array_mut)
        {
            owners.retain(|owner| !is_flight(owner) || owner["uid"].as_str() == ours);
        }
    }

    /// Drops a top-level field, `status` for example, and gives it back.
    pub fn remove(&mut self, field: &str) -> Option<Value> {
        match field {
            "apiVersion" | "kind" | "metadata" => None,
            _ => self.0.as_object_mut()?.shift_remove(field),
        }
    }

    /// Drops what only the server sets: `status`, the server's metadata, and the `rules` of an aggregated ClusterRole, which
    /// a controller fills in. An empty `metadata.namespace` goes too, and metadata, labels and annotations that are null.
    ///
    /// Typed Go programs print `status: {}` and `creationTimestamp: null`, and `rules: []` or `null` beside an
    /// `aggregationRule`; sent as they are they would be fields that we own, and take from the controller for ever.
    pub fn strip_server_fields(&mut self) {
        self.remove("status");
        if let Some(metadata) = self.0["metadata"].as_object_mut() {
            metadata.retain(|field, value| {
                let dropped = SERVER_FIELDS.contains(&field.as_str())
                    || field == "generateName"
                    || value.is_null()
                    || field == "namespace" && value.as_str() == Some("");
                !dropped
            });
            for map in ["labels", "annotations"] {
                if let Some(map) = metadata.get_mut(map).and_then(Value::as_object_mut) {
                    map.retain(|_, value| !value.is_null());
                }
            }
        }
        let is_role = self.kind() == "ClusterRole" && self.group() == "rbac.authorization.k8s.io";
        if is_role && !self.0["aggregationRule"].is_null() {
            self.remove("rules");
        }
    }

    /// Hex SHA-256 of the object's JSON with sorted keys: equal for equal objects, whatever the order of their keys.
    pub fn hash(&self) -> String {
        let mut bytes = Vec::new();
        write_sorted(&self.0, &mut bytes);
        hex::encode(Sha256::digest(&bytes))
    }

    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    fn remove_metadata(&mut self, field: &str) {
        if let Some(metadata) = self.0["metadata"].as_object_mut() {
            metadata.shift_remove(field);
        }
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        object.0
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({})", self.canonical())
    }
}

/// What a value is, in words for a message.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// API version without its group: `v1` of `apps/v1`.
pub fn version_of(api_version: &str) -> &str {
    api_version
        .rsplit_once('/')
        .map_or(api_version, |(_, version)| version)
}

/// Whether other objects may need one of this kind to exist first: `Namespace` of core, `CustomResourceDefinition` of
/// `apiextensions.k8s.io`.
pub fn is_foundation(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

/// How an object is named in messages, diffs and files: lower case `<namespace or _>/<group or core>/<version>/<kind>/<name>`.
///
/// `default/apps/v1/deployment/web`; `_/core/v1/namespace/x`. `version` is without its group.
pub fn canonical(reference: &ResourceRef, version: &str) -> String {
    canonical_parts(reference, version).join("/")
}

/// The five parts of [`canonical`].
pub fn canonical_parts(reference: &ResourceRef, version: &str) -> [String; 5] {
    let or = |text: &str, default: &str| {
        if text.is_empty() {
            default.to_owned()
        } else {
            text.to_lowercase()
        }
    };
    [
        or(&reference.namespace, "_"),
        or(&reference.group_kind.group, "core"),
        version.to_lowercase(),
        reference.group_kind.kind.to_lowercase(),
        reference.name.to_lowercase(),
    ]
}

/// JSON with sorted keys and no spaces.
fn write_sorted(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            out.push(b'{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend(Value::from(key.as_str()).to_string().into_bytes());
                out.push(b':');
                write_sorted(value, out);
            }
            out.push(b'}');
        }
        Value::Array(list) => {
            out.push(b'[');
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_sorted(value, out);
            }
            out.push(b']');
        }
        scalar => out.extend(scalar.to_string().into_bytes()),
    }
}

#[cfg(test)]
mod tests;
