//! Flight and ClusterFlight: a release that is described by one object, without a kind of one's own.

use std::borrow::Cow;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ClusterResourceScope, crd::CustomResourceExt};
use kube::{CustomResource, Resource};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::airway::{AirwayMode, PruneOptions};
use crate::condition::Condition;
use crate::duration::GoDuration;
use crate::resource_ref::ResourceRef;
use crate::{names, settings};

/// Runs a flight on a given input and keeps its resources in the cluster. A Flight writes to its own namespace only.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "yoke.cd",
    version = "v1alpha1",
    kind = "Flight",
    plural = "flights",
    singular = "flight",
    namespaced,
    status = "FlightStatus",
    derive = "PartialEq",
    doc = "Runs a flight on a given input and keeps its resources in the Flight's namespace.",
    printcolumn = r#"{"name": "flight", "type": "string", "jsonPath": ".spec.wasmUrl"}"#,
    printcolumn = r#"{"name": "cluster_access", "type": "boolean", "jsonPath": ".spec.clusterAccess"}"#,
    printcolumn = r#"{"name": "fix_drift_interval", "type": "string", "format": "date", "jsonPath": ".spec.fixDriftInterval"}"#,
    printcolumn = r#"{"name": "ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct FlightSpec {
    /// Where the WebAssembly module is.
    pub wasm_url: String,
    /// Hex SHA-256 of the uncompressed module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The flight's input as text; wins over inputObject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The flight's input as an object; it gets it as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub input_object: Option<Map<String, Value>>,
    /// Arguments of the flight, after its name.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(extend("nullable" = true))]
    pub args: Vec<String>,
    /// Service account that the release acts as in the cluster: what it looks up, applies and removes is bounded by the rights of that account. Of a Flight one of its own namespace, of a ClusterFlight namespace/name. Ours; the existing tool has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// What happens when a resource of the release, or something its flight has looked up, changes. Ours; the existing tool has no modes for flights.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "settings::is_default"
    )]
    #[schemars(schema_with = "mode")]
    pub mode: AirwayMode,
    /// Evaluate again every so often, whatever happens. Absent or zero: only when something changes.
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
    /// Kept for manifests of the existing tool, which never reads it; nor is it read here.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "settings::is_false"
    )]
    #[schemars(extend("nullable" = true))]
    pub skip_admission_webhook: bool,
    /// Revisions kept; 0: 2, negative: all.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "settings::is_zero"
    )]
    #[schemars(extend("nullable" = true))]
    pub history_cap_size: i64,
    /// What else is deleted, not only let go of, when it leaves the flight's output.
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

impl FlightSpec {
    /// Revisions kept; `None` is all of them.
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

    /// Every how often it is evaluated though nothing changed; `None` is never.
    pub fn drift_interval(&self) -> Option<Duration> {
        settings::drift_interval(self.fix_drift_interval)
    }

    /// What the flight reads from stdin: `input` if it is there and not empty, else `inputObject` as JSON, else nothing.
    pub fn stdin(&self) -> Vec<u8> {
        match (&self.input, &self.input_object) {
            (Some(input), _) if !input.is_empty() => input.clone().into_bytes(),
            (_, Some(object)) => serde_json::to_vec(object).unwrap_or_default(),
            (_, None) => Vec::new(),
        }
    }
}

/// What is known about a Flight or ClusterFlight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlightStatus {
    /// Only Ready is set: whether all resources are there and ready.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(extend("nullable" = true, "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The resources of the release.
    #[serde(
        default,
        deserialize_with = "settings::null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(extend("nullable" = true))]
    pub inventory: Vec<InventoryEntry>,
}

/// One resource of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryEntry {
    /// namespace/Kind.group:name
    pub resource: String,
    /// API version without its group.
    pub version: String,
    /// Whether it is ready.
    pub ready: bool,
}

impl InventoryEntry {
    /// The entry of an object; of its `api_version` only the version is kept.
    pub fn new(target: &ResourceRef, api_version: &str, ready: bool) -> Self {
        let version = api_version
            .rsplit_once('/')
            .map_or(api_version, |(_, version)| version);
        Self {
            resource: target.to_string(),
            version: version.to_owned(),
            ready,
        }
    }
}

/// The uid of the Flight or ClusterFlight that owns an object, by the object's `metadata`: by its owner reference, or, on
/// an object that can have none to it, by an annotation. Releases of the command line may have the same name in the same
/// namespace; this tells whose an object is.
pub fn owning_flight(metadata: &Value) -> Option<&str> {
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    let flight = owners.and_then(|owners| owners.iter().find(|owner| is_flight(owner)));
    let uid = match flight {
        Some(owner) => owner["uid"].as_str(),
        None => metadata["annotations"][names::ANNOTATION_FLIGHT].as_str(),
    };
    uid.filter(|uid| !uid.is_empty())
}

/// Whether an owner reference is to a Flight or ClusterFlight.
pub fn is_flight(owner: &Value) -> bool {
    let api = owner["apiVersion"].as_str();
    api.and_then(|text| text.split_once('/'))
        .is_some_and(|(group, _)| group == names::GROUP)
        && matches!(owner["kind"].as_str(), Some("Flight" | "ClusterFlight"))
}

/// The modes that a Flight may have, `standard` by default.
fn mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "nullable": true, "enum": ["standard", "dynamic", "subscription"] })
}

/// An object that may hold anything.
fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true })
}

/// Runs a flight on a given input and keeps its resources in the cluster, in whatever namespaces they are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ClusterFlight {
    /// Name, labels and the like; no namespace.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The same as a Flight's.
    pub spec: FlightSpec,
    /// The same as a Flight's.
    #[serde(default)]
    pub status: Option<FlightStatus>,
}

impl ClusterFlight {
    /// A ClusterFlight of that name without a status.
    pub fn new(name: &str, spec: FlightSpec) -> Self {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        Self {
            metadata,
            spec,
            status: None,
        }
    }
}

impl Serialize for ClusterFlight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = 4 + usize::from(self.status.is_some());
        let mut object = serializer.serialize_struct("ClusterFlight", fields)?;
        object.serialize_field("apiVersion", &Self::api_version(&()))?;
        object.serialize_field("kind", &Self::kind(&()))?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        if let Some(status) = &self.status {
            object.serialize_field("status", status)?;
        }
        object.end()
    }
}

impl Resource for ClusterFlight {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "ClusterFlight".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        names::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        names::VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "clusterflights".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl CustomResourceExt for ClusterFlight {
    fn crd() -> CustomResourceDefinition {
        let mut crd = Flight::crd();
        crd.metadata.name = Some(Self::crd_name().to_owned());
        "Cluster".clone_into(&mut crd.spec.scope);
        "ClusterFlight".clone_into(&mut crd.spec.names.kind);
        "clusterflights".clone_into(&mut crd.spec.names.plural);
        crd.spec.names.singular = Some("clusterflight".to_owned());
        let schemas = crd
            .spec
            .versions
            .iter_mut()
            .filter_map(|version| version.schema.as_mut());
        for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
            schema.title = Some("ClusterFlight".to_owned());
            schema.description = Some(
                "Runs a flight on a given input and keeps its resources in the cluster.".to_owned(),
            );
        }
        crd
    }

    fn crd_name() -> &'static str {
        "clusterflights.yoke.cd"
    }

    fn api_resource() -> kube::core::dynamic::ApiResource {
        kube::core::dynamic::ApiResource::erase::<Self>(&())
    }

    fn shortnames() -> &'static [&'static str] {
        &[]
    }
}

#[cfg(test)]
mod tests;
