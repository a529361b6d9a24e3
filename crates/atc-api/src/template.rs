//! The CRD that an Airway serves: kept as it was written, with names for the parts that others need.
//!
//! It is no k8s-openapi type on purpose: that one drops what it does not know, and a schema may hold anything.

use std::borrow::Cow;

use k8s_openapi::ByteString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A CustomResourceDefinitionSpec, word for word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(Map<String, Value>);

impl Template {
    /// The API group of the kind.
    pub fn group(&self) -> &str {
        text(self.0.get("group"))
    }

    /// The kind.
    pub fn kind(&self) -> &str {
        self.name("kind")
    }

    /// The plural, as in the URL.
    pub fn plural(&self) -> &str {
        self.name("plural")
    }

    /// Whether instances live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        text(self.0.get("scope")) == "Namespaced"
    }

    /// `<plural>.<group>`: what both the CRD and its Airway are named.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural(), self.group())
    }

    /// The versions, as they are written.
    pub fn versions(&self) -> impl Iterator<Item = TemplateVersion<'_>> {
        let versions = self.0.get("versions").and_then(Value::as_array);
        versions
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .map(TemplateVersion)
    }

    /// The version that is stored; `None` unless there is exactly one.
    pub fn storage_version(&self) -> Option<TemplateVersion<'_>> {
        let mut stored = self.versions().filter(|version| version.is_storage());
        stored.next().filter(|_| stored.next().is_none())
    }

    /// The whole as a map, to change it and to send it.
    ///
    /// A `caBundle` that is a list of numbers (the old schema wanted it so) is written as base64 text, which is what
    /// the API server wants.
    pub fn to_spec(&self) -> Map<String, Value> {
        let mut spec = self.0.clone();
        let bundle = spec
            .get_mut("conversion")
            .and_then(|v| v.pointer_mut("/webhook/clientConfig/caBundle"));
        if let Some(bundle) = bundle
            && let Some(text) = bytes(bundle)
        {
            *bundle = text;
        }
        spec
    }

    fn name(&self, key: &str) -> &str {
        text(self.0.get("names").and_then(|names| names.get(key)))
    }
}

impl From<Map<String, Value>> for Template {
    fn from(spec: Map<String, Value>) -> Self {
        Self(spec)
    }
}

/// One version of a template.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TemplateVersion<'a>(&'a Map<String, Value>);

impl<'a> TemplateVersion<'a> {
    /// `v1` for example.
    pub fn name(self) -> &'a str {
        text(self.0.get("name"))
    }

    /// Whether the API server offers it.
    pub fn is_served(self) -> bool {
        self.flag("served")
    }

    /// Whether objects are stored in it.
    pub fn is_storage(self) -> bool {
        self.flag("storage")
    }

    /// Its openAPIV3Schema.
    pub fn schema(self) -> Option<&'a Value> {
        self.0
            .get("schema")?
            .get("openAPIV3Schema")
            .filter(|schema| !schema.is_null())
    }

    fn flag(self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or_default()
    }
}

/// A string, or the empty one.
fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// A list of bytes as base64 text; `None` for anything else.
fn bytes(value: &Value) -> Option<Value> {
    let numbers = value.as_array()?.iter();
    let bytes = numbers
        .map(|n| n.as_u64().and_then(|n| u8::try_from(n).ok()))
        .collect::<Option<_>>()?;
    serde_json::to_value(ByteString(bytes)).ok()
}

impl JsonSchema for Template {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Template".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = json_schema!({
            "type": "object",
            "description": "What the kind is called.",
            "required": ["kind", "plural"],
            "properties": {
                "categories": strings("Groups of kinds it is part of, \"all\" for example."),
                "kind": { "type": "string", "description": "The kind, CamelCase and singular." },
                "listKind": optional("string", "The kind of a list; default: the kind and \"List\"."),
                "plural": { "type": "string", "description": "The plural in lower case, as in the URL." },
                "shortNames": strings("Short names for the command line."),
                "singular": optional("string", "The singular in lower case; default: the kind in lower case."),
            },
        });
        json_schema!({
            "type": "object",
            "required": ["group", "names", "scope", "versions"],
            "properties": {
                "conversion": conversion(),
                "group": { "type": "string", "description": "The API group of the kind." },
                "names": names,
                "preserveUnknownFields": optional("boolean", "Only false is of use; true is refused by the API server."),
                "scope": { "type": "string", "description": "Namespaced or Cluster." },
                "versions": {
                    "type": "array",
                    "description": "The versions; exactly one is stored.",
                    "items": version(),
                },
            },
        })
    }
}

/// A scalar that may be absent or null.
fn optional(kind: &str, description: &str) -> Value {
    serde_json::json!({ "type": kind, "nullable": true, "description": description })
}

/// A list of strings that may be absent or null.
fn strings(description: &str) -> Value {
    let items = serde_json::json!({ "type": "string" });
    serde_json::json!({ "type": "array", "nullable": true, "description": description, "items": items })
}

/// One entry of `versions`.
fn version() -> Schema {
    json_schema!({
        "type": "object",
        "required": ["name", "served", "storage"],
        "properties": {
            "additionalPrinterColumns": {
                "type": "array",
                "nullable": true,
                "description": "Columns of kubectl get.",
                "items": {
                    "type": "object",
                    "required": ["jsonPath", "name", "type"],
                    "properties": {
                        "description": optional("string", "For people."),
                        "format": optional("string", "An OpenAPI format of the type."),
                        "jsonPath": { "type": "string", "description": "Where the value is." },
                        "name": { "type": "string", "description": "The heading." },
                        "priority": optional("integer", "Above 0: only in wide output."),
                        "type": { "type": "string", "description": "The OpenAPI type." },
                    },
                },
            },
            "deprecated": optional("boolean", "Warn whoever uses it."),
            "deprecationWarning": optional("string", "The warning's text."),
            "name": { "type": "string", "description": "v1 for example." },
            "schema": {
                "type": "object",
                "nullable": true,
                "description": "How objects are checked; default: any object.",
                "properties": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "nullable": true,
                        "description": "A structural OpenAPI schema. A status is added where there is none.",
                        "x-kubernetes-preserve-unknown-fields": true,
                    },
                },
            },
            "selectableFields": {
                "type": "array",
                "nullable": true,
                "description": "Fields by which objects can be selected.",
                "items": {
                    "type": "object",
                    "required": ["jsonPath"],
                    "properties": { "jsonPath": { "type": "string", "description": "Where the field is." } },
                },
            },
            "served": { "type": "boolean", "description": "Whether the API server offers it." },
            "storage": { "type": "boolean", "description": "Whether objects are stored in it." },
            "subresources": subresources(),
        },
    })
}

fn subresources() -> Value {
    serde_json::json!({
        "type": "object",
        "nullable": true,
        "description": "Subresources; status is always there.",
        "properties": {
            "scale": {
                "type": "object",
                "nullable": true,
                "description": "Makes kubectl scale and autoscalers work.",
                "required": ["specReplicasPath", "statusReplicasPath"],
                "properties": {
                    "labelSelectorPath": optional("string", "Where the selector of pods is."),
                    "specReplicasPath": { "type": "string", "description": "Where the wanted number is." },
                    "statusReplicasPath": { "type": "string", "description": "Where the present number is." },
                },
            },
            "status": {
                "type": "object",
                "nullable": true,
                "description": "Status is written apart from the rest.",
                "x-kubernetes-preserve-unknown-fields": true,
            },
        },
    })
}

fn conversion() -> Value {
    let any = "x-kubernetes-preserve-unknown-fields";
    serde_json::json!({
        "type": "object",
        "nullable": true,
        "description": "How versions become one another; set by the controller where the Airway has a converter.",
        "required": ["strategy"],
        "properties": {
            "strategy": { "type": "string", "description": "None or Webhook." },
            "webhook": {
                "type": "object",
                "nullable": true,
                "description": "Whom to ask.",
                "required": ["conversionReviewVersions"],
                "properties": {
                    "clientConfig": {
                        "type": "object",
                        "nullable": true,
                        "description": "Where it is.",
                        "properties": {
                            "caBundle": { any: true, "description": "PEM in base64, or a list of its bytes." },
                            "service": {
                                "type": "object",
                                "nullable": true,
                                "description": "A Service of this cluster.",
                                "required": ["name", "namespace"],
                                "properties": {
                                    "name": { "type": "string", "description": "The Service's name." },
                                    "namespace": { "type": "string", "description": "The Service's namespace." },
                                    "path": optional("string", "The URL's path."),
                                    "port": optional("integer", "The Service's port; default: 443."),
                                },
                            },
                            "url": optional("string", "Its URL, instead of a Service."),
                        },
                    },
                    "conversionReviewVersions": {
                        "type": "array",
                        "description": "Versions of ConversionReview that it understands, the preferred one first.",
                        "items": { "type": "string" },
                    },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests;
