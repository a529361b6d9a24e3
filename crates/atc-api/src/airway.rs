//! Airway: which flight makes the resources of a custom resource, and the CRD of that custom resource.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition,
};
use kube::{CustomResource, CustomResourceExt};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::duration::GoDuration;
use crate::flight::{ClusterFlight, Flight};
use crate::settings;
use crate::template::Template;

/// The three custom resources of group `yoke.cd` as the API server is to know them: Airway, Flight, ClusterFlight.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        complete(Airway::crd()),
        complete(Flight::crd()),
        complete(ClusterFlight::crd()),
    ]
}

/// Writes out what the API server would add by itself, so that what is installed and what is stored compare equal.
fn complete(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let names = &mut crd.spec.names;
    names
        .list_kind
        .get_or_insert_with(|| format!("{}List", names.kind));
    names.short_names = names.short_names.take().filter(|names| !names.is_empty());
    names.categories = names.categories.take().filter(|names| !names.is_empty());
    let none = || CustomResourceConversion {
        strategy: "None".to_owned(),
        webhook: None,
    };
    crd.spec.conversion.get_or_insert_with(none);
    crd
}

/// Turns a kind of your own into resources: it names the CRD to serve and the flight that is run for each object of it.
///
/// An Airway is named as its CRD is: plural.group.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "yoke.cd",
    version = "v1alpha1",
    kind = "Airway",
    plural = "airways",
    singular = "airway",
    status = "AirwayStatus",
    derive = "PartialEq",
    doc = "Turns a kind of your own into resources: it names the CRD to serve and the flight that is run for each object of it.",
    printcolumn = r#"{"name": "flight", "type": "string", "jsonPath": ".spec.wasmUrls.flight"}"#,
    printcolumn = r#"{"name": "mode", "type": "string", "jsonPath": ".spec.mode"}"#,
    printcolumn = r#"{"name": "cluster_access", "type": "boolean", "jsonPath": ".spec.clusterAccess"}"#,
    printcolumn = r#"{"name": "fix_drift_interval", "type": "string", "format": "date", "jsonPath": ".spec.fixDriftInterval"}"#,
    printcolumn = r#"{"name": "ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AirwaySpec {
    /// Where the WebAssembly modules are.
    pub wasm_urls: WasmUrls,
    /// Path inside the instance of what becomes the flight's input; empty: the whole object. A missing path gives null.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(extend("nullable" = true))]
    pub object_path: Vec<String>,
    /// Evaluate each instance again every so often, whatever happens. Absent or zero: only when something changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix_drift_interval: Option<GoDuration>,
    /// Whether the flight may look things up in the cluster: its own resources, and others that a matcher allows.
    #[serde(default, deserialize_with = "settings::null_as_default")]
    pub cluster_access: bool,
    /// What the flight may look up besides its own resources: namespace/Kind.group:name, where namespace and name may be left out and each part may be "*".
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(extend("nullable" = true))]
    pub resource_access_matchers: Vec<String>,
    /// Allow plain HTTP and unverified TLS to OCI registries.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "settings::is_false"
    )]
    #[schemars(extend("nullable" = true))]
    pub insecure: bool,
    /// Do not run the flight when an instance is written; the right to set overrides is still checked.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "settings::is_false"
    )]
    #[schemars(extend("nullable" = true))]
    pub skip_admission_webhook: bool,
    /// What happens when a resource of an instance, or something its flight has looked up, changes.
    #[serde(default, deserialize_with = "settings::null_as_default")]
    pub mode: AirwayMode,
    /// Revisions kept for each instance; 0: 2, negative: all.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "settings::is_zero"
    )]
    #[schemars(extend("nullable" = true))]
    pub history_cap_size: i64,
    /// The spec of the CustomResourceDefinition to serve.
    pub template: Template,
    /// What else is deleted, not only let go of, when it leaves an instance's resources.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "PruneOptions::is_default"
    )]
    #[schemars(extend("nullable" = true))]
    pub prune: PruneOptions,
    /// Memory of one run in MiB; 0: 4 GiB.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "settings::is_zero"
    )]
    #[schemars(extend("nullable" = true, "minimum" = 0))]
    pub max_memory_mib: i64,
    /// Time of one run; 0: 10s, negative: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
}

impl AirwaySpec {
    /// Revisions kept for each instance; `None` is all of them.
    pub fn history_cap(&self) -> Option<usize> {
        settings::history_cap(self.history_cap_size)
    }

    /// Time of one run, 10 s by default; `None` is no limit.
    pub fn time_limit(&self) -> Option<Duration> {
        settings::time_limit(self.timeout)
    }

    /// Memory of one run in bytes, 4 GiB by default and at most.
    pub fn memory_bytes(&self) -> u64 {
        settings::memory_bytes(self.max_memory_mib)
    }

    /// Every how often each instance is evaluated though nothing changed; `None` is never.
    pub fn drift_interval(&self) -> Option<Duration> {
        settings::drift_interval(self.fix_drift_interval)
    }
}

/// Where an Airway's WebAssembly modules are, and what they must be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WasmUrls {
    /// The flight: run for every instance, always on the storage version.
    pub flight: String,
    /// Hex SHA-256 of the uncompressed flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flight_checksum: Option<String>,
    /// The converter: turns instances of one version into another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converter: Option<String>,
    /// Hex SHA-256 of the uncompressed converter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converter_checksum: Option<String>,
}

/// What is deleted when it leaves the desired resources. Without it such objects stay and only lose their marks, since
/// others' data goes with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PruneOptions {
    /// Delete CustomResourceDefinitions, and with them all objects of their kinds.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "settings::is_false"
    )]
    #[schemars(extend("nullable" = true))]
    pub crds: bool,
    /// Delete Namespaces, and with them everything inside.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "settings::is_false"
    )]
    #[schemars(extend("nullable" = true))]
    pub namespaces: bool,
}

impl PruneOptions {
    /// Nothing more is deleted than without it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What a change of an instance's surroundings does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AirwayMode {
    /// Nothing: an instance is evaluated when it or its Airway changes.
    #[default]
    Standard,
    /// Changes of its resources by others are refused.
    Static,
    /// A change of any of its resources, or of anything its flight has looked up, evaluates the instance.
    Dynamic,
    /// A change of what its flight has looked up evaluates the instance.
    Subscription,
}

impl AirwayMode {
    /// All four.
    pub const ALL: [Self; 4] = [
        Self::Standard,
        Self::Static,
        Self::Dynamic,
        Self::Subscription,
    ];

    /// The word in `spec.mode` and in the override annotation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Subscription => "subscription",
        }
    }
}

impl fmt::Display for AirwayMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no mode: it is one of standard, static, dynamic and subscription")]
pub struct ParseModeError(String);

impl FromStr for AirwayMode {
    type Err = ParseModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| ParseModeError(text.to_owned()))
    }
}

impl JsonSchema for AirwayMode {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AirwayMode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::as_str) })
    }
}

/// What is known about an Airway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AirwayStatus {
    /// Only Ready is set: whether the kind is served and its instances are looked after.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(extend("nullable" = true, "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests;
