//! Airway → the CustomResourceDefinition of its kind, as a value.
//!
//! What a template lacks for the controller's sake is added (the status subresource, `status.conditions`); what it says
//! is kept, `scale` and other subresources included.

use std::collections::BTreeMap;

use atc_api::Airway;
use atc_api::names::{self, GROUP, VERSION};
use serde_json::{Map, Value, json};

use crate::bootstrap::WebhookService;

/// Why a template gives no CRD. Each names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The Airway must bear its CRD's name.
    #[error(
        "metadata.name is \"{name}\" but must be \"{wanted}\", the plural and group of spec.template"
    )]
    Name {
        /// The Airway's.
        name: String,
        /// `<plural>.<group>`.
        wanted: String,
    },
    /// The atc itself has something of that name.
    #[error(
        "metadata.name \"{0}\" is that of something of the atc's own; name another plural or another group in spec.template"
    )]
    Reserved(String),
    /// Exactly one version must be stored.
    #[error(
        "spec.template.versions has {count} versions with storage: true, but must have exactly one"
    )]
    Storage {
        /// How many say so.
        count: usize,
    },
    /// What is stored must also be offered: instances are read, written and reviewed in the stored version.
    #[error("spec.template.versions: \"{version}\" is stored, so it must be served, too")]
    Unserved {
        /// Its name.
        version: String,
    },
    /// A part is not of the form that it must have.
    #[error("spec.template.{path} {why}")]
    Shape {
        /// Dotted path below the template.
        path: String,
        /// What is wrong.
        why: String,
    },
}

/// Names of CRDs of ours, and of a webhook configuration that is called like one: that of an Airway has the Airway's name.
const RESERVED: [&str; 4] = [
    "airways.yoke.cd",
    "flights.yoke.cd",
    "clusterflights.yoke.cd",
    names::WEBHOOK_ACCOUNTS,
];

/// What a kind is called, from an Airway's template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServedKind {
    /// API group.
    pub group: String,
    /// The stored version: what the flight sees.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural, as in URLs.
    pub plural: String,
    /// Whether instances live in namespaces.
    pub namespaced: bool,
    /// The served versions that have a `scale` subresource, each with the path of its number of replicas: `.spec.replicas`.
    pub scales: BTreeMap<String, String>,
}

fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    path.iter()
        .try_fold(value, |value, key| value.get(key))?
        .as_str()
}

fn shape(path: impl Into<String>, why: impl Into<String>) -> TemplateError {
    TemplateError::Shape {
        path: path.into(),
        why: why.into(),
    }
}

/// What the template calls its kind.
pub fn served_kind(template: &Value) -> Result<ServedKind, TemplateError> {
    let need = |path: &[&str]| {
        text(template, path)
            .map(str::to_owned)
            .ok_or_else(|| shape(path.join("."), "is missing or no text"))
    };
    let versions = template
        .get("versions")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let stored: Vec<&Value> = versions
        .iter()
        .filter(|v| v.get("storage") == Some(&Value::Bool(true)))
        .collect();
    let [stored] = stored.as_slice() else {
        return Err(TemplateError::Storage {
            count: stored.len(),
        });
    };
    let version = text(stored, &["name"])
        .ok_or_else(|| shape("versions", "has a version without a name"))?
        .to_owned();
    if stored.get("served") != Some(&Value::Bool(true)) {
        return Err(TemplateError::Unserved { version });
    }
    Ok(ServedKind {
        group: need(&["group"])?,
        version,
        kind: need(&["names", "kind"])?,
        plural: need(&["names", "plural"])?,
        namespaced: need(&["scope"])? == "Namespaced",
        scales: versions.iter().filter_map(scale_of).collect(),
    })
}

/// Name and path of replicas of a version that is served and has a `scale`.
fn scale_of(version: &Value) -> Option<(String, String)> {
    let path = text(version, &["subresources", "scale", "specReplicasPath"])?;
    let served = version.get("served") == Some(&Value::Bool(true));
    served
        .then(|| text(version, &["name"]))
        .flatten()
        .map(|name| (name.to_owned(), path.to_owned()))
}

/// The CRD to apply for an Airway. Where that has a converter, `service` is asked for conversions.
///
/// # Errors
/// The template can't be made one; the message names the field.
pub fn of_airway(
    airway: &Airway,
    template: &Value,
    service: &WebhookService,
) -> Result<Value, TemplateError> {
    let served = served_kind(template)?;
    let name = airway.metadata.name.clone().unwrap_or_default();
    let wanted = format!("{}.{}", served.plural, served.group);
    if name != wanted {
        return Err(TemplateError::Name { name, wanted });
    }
    if RESERVED.contains(&&*name) {
        return Err(TemplateError::Reserved(name));
    }
    let mut spec = template.clone();
    for (at, version) in spec
        .get_mut("versions")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .enumerate()
    {
        complete_version(version, at)?;
    }
    let converter = airway.spec.wasm_urls.converter.as_deref();
    if converter.is_some_and(|url| !url.is_empty()) {
        spec["conversion"] = service.conversion(&name);
    }
    let uid = airway.metadata.uid.as_deref().unwrap_or_default();
    Ok(definition(&name, uid, &spec))
}

/// The CRD of an Airway, with this `spec`.
pub(crate) fn definition(name: &str, uid: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": name,
            "annotations": { (names::ANNOTATION_AIRWAY): name },
            "ownerReferences": [{
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": "Airway",
                "name": name,
                "uid": uid,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    })
}

/// A CRD's `spec` that takes whatever is stored already. Selectable fields go with the schema, where they must be declared.
pub(crate) fn without_schema(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
    let versions = versions.into_iter().flatten();
    for version in versions.filter_map(Value::as_object_mut) {
        let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        version.insert("schema".into(), json!({ "openAPIV3Schema": free }));
        version.shift_remove("selectableFields");
    }
    spec
}

fn object_at<'a>(
    parent: &'a mut Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<&'a mut Map<String, Value>, TemplateError> {
    let value = parent.entry(key.to_owned()).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value
        .as_object_mut()
        .ok_or_else(|| shape(path, "is no object"))
}

fn complete_version(version: &mut Value, at: usize) -> Result<(), TemplateError> {
    let path = format!("versions[{at}]");
    let version = version
        .as_object_mut()
        .ok_or_else(|| shape(&*path, "is no object"))?;
    let subresources = object_at(version, "subresources", &format!("{path}.subresources"))?;
    subresources.insert("status".into(), json!({}));
    let schema = object_at(version, "schema", &format!("{path}.schema"))?;
    let path = format!("{path}.schema.openAPIV3Schema");
    let root = object_at(schema, "openAPIV3Schema", &path)?;
    root.entry("type").or_insert_with(|| "object".into());
    // Whoever creates an instance cannot set its status.
    no_longer_required(root, |name| name == "status");
    let properties = object_at(root, "properties", &format!("{path}.properties"))?;
    let path = format!("{path}.properties.status");
    let status = object_at(properties, "status", &path)?;
    match status.get("type") {
        None => {
            status.insert("type".into(), "object".into());
        }
        Some(kind) if kind == "object" => {}
        Some(kind) => {
            return Err(shape(
                format!("{path}.type"),
                format!("is {kind} but must be \"object\""),
            ));
        }
    }
    // What the controller says does not wait until a flight has printed its part: of a failure, for one, before any did.
    no_longer_required(status, |_| true);
    let fields = object_at(status, "properties", &format!("{path}.properties"))?;
    match fields.get("conditions") {
        None => {
            fields.insert("conditions".into(), conditions_schema());
            Ok(())
        }
        Some(present) => conditions_fit(present, &format!("{path}.properties.conditions")),
    }
}

/// Takes these fields out of what an object schema requires.
fn no_longer_required(schema: &mut Map<String, Value>, which: impl Fn(&Value) -> bool) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !which(name));
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
}

/// The schema of a condition list, as the existing tool adds it.
pub fn conditions_schema() -> Value {
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {"type": "string"},
                "status": {"type": "string"},
                "reason": {"type": "string"},
                "message": {"type": "string"},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "observedGeneration": {"type": "integer", "format": "int64"},
            },
        },
    })
}

/// Whether a list of conditions as the controller writes it can be stored there.
fn conditions_fit(schema: &Value, path: &str) -> Result<(), TemplateError> {
    let keeps = |value: &Value| {
        value.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
    };
    if keeps(schema) && schema.get("type").is_none() {
        return Ok(());
    }
    if text(schema, &["type"]) != Some("array") {
        return Err(shape(format!("{path}.type"), "must be \"array\""));
    }
    let items = schema.get("items").unwrap_or(&Value::Null);
    if keeps(items) {
        return Ok(());
    }
    if text(items, &["type"]) != Some("object") {
        return Err(shape(format!("{path}.items.type"), "must be \"object\""));
    }
    for (field, kind) in [
        ("type", "string"),
        ("status", "string"),
        ("reason", "string"),
        ("message", "string"),
        ("lastTransitionTime", "string"),
        ("observedGeneration", "integer"),
    ] {
        if text(items, &["properties", field, "type"]) != Some(kind) {
            return Err(shape(
                format!("{path}.items.properties.{field}"),
                format!("is missing or of another type than \"{kind}\""),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_required_neither_as_a_whole_nor_in_parts() {
        let check = |schema: Value, root: Value, status: Value| {
            let mut version = json!({ "name": "v1", "schema": { "openAPIV3Schema": schema } });
            complete_version(&mut version, 0).expect("a schema");
            let made = &version["schema"]["openAPIV3Schema"];
            assert_eq!(made["required"], root, "{made}");
            let of_status = &made["properties"]["status"];
            assert_eq!(of_status["required"], status, "{made}");
            assert_eq!(of_status["properties"]["conditions"], conditions_schema());
            // What is inside of a field of it is its own matter.
            let nested =
                |schema: &Value| schema.pointer("/properties/status/properties/at").cloned();
            assert_eq!(nested(made), nested(&schema), "{made}");
        };
        let at = json!({ "type": "object", "required": ["x"], "properties": { "x": { "type": "string" } } });
        check(
            json!({
                "type": "object",
                "required": ["spec", "status"],
                "properties": { "spec": { "type": "object" }, "status": {
                    "type": "object", "required": ["phase", "conditions"],
                    "properties": { "phase": { "type": "string" }, "at": at },
                } },
            }),
            json!(["spec"]),
            Value::Null,
        );
        check(json!({ "required": ["status"] }), Value::Null, Value::Null);
        check(Value::Null, Value::Null, Value::Null);
    }

    #[test]
    fn without_its_schema_a_crd_keeps_what_needs_none() {
        let scale = json!({ "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" });
        let version = |name: &str, schema: Value| {
            json!({
                "name": name, "served": true, "storage": name == "v1", "schema": { "openAPIV3Schema": schema },
                "subresources": { "status": {}, "scale": scale },
                "additionalPrinterColumns": [{ "name": "N", "type": "integer", "jsonPath": ".spec.n" }],
            })
        };
        let spec = |schema: &Value| {
            json!({
                "group": "x.dev", "scope": "Namespaced", "names": { "plural": "apps", "kind": "App" },
                "conversion": { "strategy": "None" },
                "versions": [version("v1", schema.clone()), version("v2", schema.clone())],
            })
        };
        let narrow = json!({
            "type": "object", "required": ["spec"], "x-kubernetes-validations": [{ "rule": "false" }],
            "properties": { "spec": { "type": "object", "properties": { "n": { "type": "integer", "maximum": 1 } } } },
        });
        let mut before = spec(&narrow);
        before["versions"][0]["selectableFields"] = json!([{ "jsonPath": ".spec.n" }]);
        let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        assert_eq!(without_schema(&before), spec(&free));
        assert_eq!(without_schema(&spec(&free)), spec(&free));
    }
}
