//! One Kubernetes object as a flight printed it, and the stages in which a release holds its objects.
//!
//! An [`Object`] is checked once, at the edge: whoever holds one knows that it has an API version, a kind and a name, and
//! that all of them may stand in a URL or a file name. Its `Debug` form is its name: contents may be secret.

use std::collections::BTreeMap;
use std::fmt;

use atc_api::{GroupKind, ResourceRef};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

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

/// Why a value is no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// It is a text, a number, a list.
    #[error("it is {0}, not an object")]
    NotAMap(&'static str),
    /// A field that every object has is absent, null or empty.
    #[error("it has no {field}{of}")]
    Missing {
        /// Dotted path.
        field: &'static str,
        /// `" (ConfigMap)"`: what is known of the object.
        of: String,
    },
    /// A field is of another type than Kubernetes wants.
    #[error("{field} is {found}, not {wanted}{of}")]
    WrongType {
        /// Dotted path.
        field: &'static str,
        /// What stands there.
        found: &'static str,
        /// What must stand there.
        wanted: &'static str,
        /// `" (ConfigMap \"a\")"`: what is known of the object.
        of: String,
    },
    /// A name that the server would make up: such an object could never be found again.
    #[error("metadata.generateName can't be used, a release needs a fixed metadata.name{of}")]
    GenerateName {
        /// `" (Job)"`: what is known of the object.
        of: String,
    },
    /// A text that can't be part of a URL.
    #[error("{field} \"{value}\" is not possible: {why}")]
    Illegal {
        /// Dotted path.
        field: &'static str,
        /// What stands there.
        value: String,
        /// The rule.
        why: &'static str,
    },
}

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

impl TryFrom<Value> for Object {
    type Error = ObjectError;

    fn try_from(value: Value) -> Result<Self, ObjectError> {
        let Value::Object(map) = &value else {
            return Err(ObjectError::NotAMap(type_name(&value)));
        };
        let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
        let name = map
            .get("metadata")
            .and_then(|metadata| metadata["name"].as_str())
            .unwrap_or_default();
        let of = || match (kind, name) {
            ("", "") => String::new(),
            (kind, "") => format!(" ({kind})"),
            ("", name) => format!(" (\"{name}\")"),
            (kind, name) => format!(" ({kind} \"{name}\")"),
        };
        let api_version = wanted_text(map.get("apiVersion"), "apiVersion", of)?;
        let kind_text = wanted_text(map.get("kind"), "kind", of)?;
        let null = Value::Null;
        let metadata = map.get("metadata").unwrap_or(&null);
        match metadata {
            Value::Null => {
                return Err(ObjectError::Missing {
                    field: "metadata.name",
                    of: of(),
                });
            }
            Value::Object(_) => (),
            other => {
                return Err(ObjectError::WrongType {
                    field: "metadata",
                    found: type_name(other),
                    wanted: "a map",
                    of: of(),
                });
            }
        }
        let has_name =
            !matches!(&metadata["name"], Value::Null) && metadata["name"].as_str() != Some("");
        if !has_name
            && metadata["generateName"]
                .as_str()
                .is_some_and(|name| !name.is_empty())
        {
            return Err(ObjectError::GenerateName { of: of() });
        }
        let name_text = wanted_text(metadata.get("name"), "metadata.name", of)?;
        check_api_version(api_version)?;
        check_word("kind", kind_text)?;
        check_segment("metadata.name", name_text)?;
        match &metadata["namespace"] {
            Value::Null => (),
            Value::String(namespace) if namespace.is_empty() => (),
            Value::String(namespace) => check_segment("metadata.namespace", namespace)?,
            other => {
                let found = type_name(other);
                return Err(ObjectError::WrongType {
                    field: "metadata.namespace",
                    found,
                    wanted: "a text",
                    of: of(),
                });
            }
        }
        for (key, field) in [
            ("labels", "metadata.labels"),
            ("annotations", "metadata.annotations"),
        ] {
            if !matches!(metadata[key], Value::Null | Value::Object(_)) {
                let found = type_name(&metadata[key]);
                return Err(ObjectError::WrongType {
                    field,
                    found,
                    wanted: "a map",
                    of: of(),
                });
            }
        }
        if !matches!(metadata["ownerReferences"], Value::Null | Value::Array(_)) {
            let found = type_name(&metadata["ownerReferences"]);
            return Err(ObjectError::WrongType {
                field: "metadata.ownerReferences",
                found,
                wanted: "a list",
                of: of(),
            });
        }
        Ok(Self(value))
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

fn wanted_text<'a>(
    value: Option<&'a Value>,
    field: &'static str,
    of: impl Fn() -> String,
) -> Result<&'a str, ObjectError> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        None | Some(Value::Null | Value::String(_)) => {
            Err(ObjectError::Missing { field, of: of() })
        }
        Some(other) => Err(ObjectError::WrongType {
            field,
            found: type_name(other),
            wanted: "a text",
            of: of(),
        }),
    }
}

fn check_api_version(text: &str) -> Result<(), ObjectError> {
    let parts: Vec<&str> = text.split('/').collect();
    let good = parts.len() <= 2 && parts.iter().all(|part| !part.is_empty() && is_word(part));
    if good {
        return Ok(());
    }
    Err(ObjectError::Illegal {
        field: "apiVersion",
        value: text.to_owned(),
        why: "it must be a version, or a group, a slash and a version",
    })
}

fn check_word(field: &'static str, text: &str) -> Result<(), ObjectError> {
    if is_word(text) {
        return Ok(());
    }
    Err(ObjectError::Illegal {
        field,
        value: text.to_owned(),
        why: "only letters, digits, '-' and '.' may stand there",
    })
}

fn is_word(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
        && text.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// Kubernetes' own rule for path segments (no `.`, `..`, `/`, `%`), and nothing that would end or split a URL.
fn check_segment(field: &'static str, text: &str) -> Result<(), ObjectError> {
    let why = if text == "." || text == ".." {
        "it can't be '.' or '..'"
    } else if let Some(bad) = text
        .chars()
        .find(|c| !c.is_ascii_graphic() || "/%?#\\".contains(*c))
    {
        if bad == '/' || bad == '%' {
            "it can't hold '/' or '%'"
        } else {
            "it holds a character that no name may hold"
        }
    } else {
        return Ok(());
    };
    Err(ObjectError::Illegal {
        field,
        value: text.escape_debug().collect(),
        why,
    })
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

/// The objects of a release, in the order in which they are made: stage by stage, all objects of a stage at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stages(Vec<Vec<Object>>);

impl Stages {
    /// These stages; empty ones vanish.
    pub fn new(stages: Vec<Vec<Object>>) -> Self {
        Self(
            stages
                .into_iter()
                .filter(|stage| !stage.is_empty())
                .collect(),
        )
    }

    /// The stages, first to be applied first.
    pub fn iter(&self) -> std::slice::Iter<'_, Vec<Object>> {
        self.0.iter()
    }

    /// All objects, stage by stage.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.0.iter().flatten()
    }

    /// All objects, stage by stage, to be changed.
    pub fn objects_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.0.iter_mut().flatten()
    }

    /// Number of stages.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    /// Number of objects in all stages.
    pub fn count(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Takes out every object that is `target`, in whatever API version it is given; stages that are then empty vanish.
    ///
    /// An object that says no namespace counts as of the target's namespace, and for a target without namespace the
    /// object's does not count: flights print their parent as it suits them.
    pub fn take(&mut self, target: &ResourceRef) -> Vec<Object> {
        let is_target = |object: &Object| {
            object.name() == target.name
                && object.group_kind() == target.group_kind
                && (target.namespace.is_empty()
                    || object
                        .namespace()
                        .is_none_or(|namespace| namespace == target.namespace))
        };
        let mut taken = Vec::new();
        for stage in &mut self.0 {
            let (hit, rest) = std::mem::take(stage).into_iter().partition(is_target);
            taken.extend(Vec::<Object>::from_iter(hit));
            *stage = rest;
        }
        self.0.retain(|stage| !stage.is_empty());
        taken
    }

    /// Whether both hold the same objects in the same stages; the order within a stage has no meaning, nor has that of keys.
    pub fn same_as(&self, other: &Self) -> bool {
        fn sorted(stage: &[Object]) -> Vec<&Object> {
            let mut stage: Vec<&Object> = stage.iter().collect();
            stage
                .sort_by_cached_key(|object| (object.reference(), object.api_version().to_owned()));
            stage
        }
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(one, two)| sorted(one) == sorted(two))
    }

    /// The `(apiVersion, kind)` pairs of all objects, each once, sorted: what to ask the cluster's discovery about.
    pub fn kinds(&self) -> Vec<(String, String)> {
        let kinds = self
            .objects()
            .map(|object| (object.api_version().to_owned(), object.kind().to_owned()));
        Vec::from_iter(std::collections::BTreeSet::from_iter(kinds))
    }
}

impl From<Stages> for Vec<Vec<Object>> {
    fn from(stages: Stages) -> Self {
        stages.0
    }
}

impl IntoIterator for Stages {
    type Item = Vec<Object>;
    type IntoIter = std::vec::IntoIter<Vec<Object>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Stages {
    type Item = &'a Vec<Object>;
    type IntoIter = std::slice::Iter<'a, Vec<Object>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests;
