//! Airways for tests.

use serde_json::{Map, Value, json};

/// The group of kinds that tests make.
const GROUP: &str = "tests.atc.dev";

/// Builds an Airway whose kind has free fields under `spec` and a free status with conditions.
#[derive(Debug, Clone)]
pub struct AirwayBuilder {
    kind: String,
    spec: Map<String, Value>,
    scope: &'static str,
    properties: Vec<String>,
}

impl AirwayBuilder {
    /// An Airway for `kind`, whose instances are made by the module at `flight` (URL or path). Kinds are not in a
    /// namespace: name yours after the test.
    pub fn new(kind: &str, flight: &str) -> Self {
        let spec = json!({ "wasmUrls": { "flight": flight }, "mode": "standard" });
        let spec = spec.as_object().cloned().unwrap_or_default();
        Self {
            kind: kind.to_owned(),
            spec,
            scope: "Namespaced",
            properties: vec!["note".into()],
        }
    }

    /// In mode `dynamic`, with access to the cluster.
    #[must_use]
    pub fn dynamic(self) -> Self {
        self.set("mode", "dynamic").set("clusterAccess", true)
    }

    /// With access to the cluster and what these matchers allow beyond own resources.
    #[must_use]
    pub fn access(self, matchers: &[&str]) -> Self {
        self.set("clusterAccess", true)
            .set("resourceAccessMatchers", json!(matchers))
    }

    /// With instances that belong to no namespace.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.scope = "Cluster";
        self
    }

    /// With a string field under `spec` that the schema names.
    #[must_use]
    pub fn property(mut self, name: &str) -> Self {
        self.properties.push(name.to_owned());
        self
    }

    /// With any other field of the Airway's spec.
    #[must_use]
    pub fn set(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.spec.insert(field.to_owned(), value.into());
        self
    }

    /// Plural of the kind.
    pub fn plural(&self) -> String {
        format!("{}s", self.kind.to_lowercase())
    }

    /// Name of the Airway and of its CRD.
    pub fn name(&self) -> String {
        format!("{}.{GROUP}", self.plural())
    }

    /// `apiVersion` of the instances.
    pub fn api_version(&self) -> String {
        format!("{GROUP}/v1")
    }

    /// Path of the instances in a namespace, or of all when they belong to none.
    pub fn path(&self, namespace: &str) -> String {
        if self.scope == "Cluster" {
            return format!("/apis/{GROUP}/v1/{}", self.plural());
        }
        format!("/apis/{GROUP}/v1/namespaces/{namespace}/{}", self.plural())
    }

    /// An instance.
    pub fn instance(&self, name: &str, spec: &Value) -> Value {
        json!({ "apiVersion": self.api_version(), "kind": self.kind, "metadata": { "name": name }, "spec": spec })
    }

    /// The Airway.
    pub fn build(&self) -> Value {
        let properties: Map<String, Value> = self
            .properties
            .iter()
            .map(|name| (name.clone(), json!({ "type": "string" })))
            .collect();
        let strings: Map<String, Value> =
            ["type", "status", "reason", "message", "lastTransitionTime"]
                .map(|name| (name.to_owned(), json!({ "type": "string" })))
                .into_iter()
                .collect();
        let mut condition = json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": strings,
        });
        condition["properties"]["observedGeneration"] = json!({ "type": "integer" });
        let free = |properties: Value| json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties });
        let schema = json!({
            "type": "object",
            "properties": {
                "spec": free(Value::Object(properties)),
                "status": free(json!({ "conditions": { "type": "array", "items": condition } })),
            },
        });
        let mut spec = self.spec.clone();
        let template = json!({
            "group": GROUP,
            "scope": self.scope,
            "names": { "plural": self.plural(), "singular": self.kind.to_lowercase(), "kind": self.kind },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        });
        spec.insert("template".into(), template);
        json!({
            "apiVersion": "yoke.cd/v1alpha1",
            "kind": "Airway",
            "metadata": { "name": self.name() },
            "spec": spec,
        })
    }
}
