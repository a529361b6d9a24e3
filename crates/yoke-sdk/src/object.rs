//! A resource as a flight gets it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A resource with a `spec` and perhaps a `status`, and whatever else is not looked at: what a flight gets as its input.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object<Spec = Value, Status = Value> {
    /// `example.com/v1` for example.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Name, namespace and the like.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: Spec,
    /// What was said about it last.
    #[serde(default = "none")]
    pub status: Option<Status>,
}

/// The part of an object's metadata that flights usually need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The name.
    pub name: String,
    /// The namespace; empty for kinds that live in none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The identity given by the API server; empty before the object is stored, as at admission.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Counts changes of the spec; not there before the object is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl<Spec, Status> Object<Spec, Status> {
    /// The object with this status and without a spec: printed among the resources, it becomes the status of the instance
    /// that the flight runs for, if that is an instance of an Airway. Elsewhere it would be applied as a resource.
    ///
    /// Without a condition `Ready` in it the host judges readiness by the children; see [`not_ready`](Self::not_ready).
    ///
    /// ```
    /// # use yoke_sdk::{Object, json};
    /// # let input = br#"{"apiVersion":"example.com/v1","kind":"App","metadata":{"name":"a","namespace":"team"},"spec":{}}"#;
    /// let app: Object = yoke_sdk::parse_input(input).unwrap();
    /// assert_eq!(
    ///     app.with_status(json!({ "msg": "waiting" })),
    ///     json!({
    ///         "apiVersion": "example.com/v1",
    ///         "kind": "App",
    ///         "metadata": { "name": "a", "namespace": "team" },
    ///         "status": { "msg": "waiting" },
    ///     })
    /// );
    /// ```
    pub fn with_status(&self, status: impl Into<Value>) -> Value {
        let metadata = Metadata {
            name: self.metadata.name.clone(),
            namespace: self.metadata.namespace.clone(),
            ..Metadata::default()
        };
        json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": metadata,
            "status": status.into(),
        })
    }

    /// A condition `Ready` that is False, for a status: the instance is not ready, whatever its children are. For a flight
    /// that waits for something, which it has looked up and which it does not print.
    ///
    /// `reason` is one word for programs, `Waiting` for example; `message` is for people.
    ///
    /// ```
    /// # use yoke_sdk::{Object, json};
    /// # let input = br#"{"apiVersion":"example.com/v1","kind":"App","metadata":{"name":"a","generation":2},"spec":{}}"#;
    /// let app: Object = yoke_sdk::parse_input(input).unwrap();
    /// let msg = "waiting for Secret a-db";
    /// let printed = app.with_status(json!({ "msg": msg, "conditions": [app.not_ready("Waiting", msg)] }));
    /// assert_eq!(
    ///     printed["status"]["conditions"][0],
    ///     json!({
    ///         "type": "Ready",
    ///         "status": "False",
    ///         "reason": "Waiting",
    ///         "message": "waiting for Secret a-db",
    ///         "observedGeneration": 2,
    ///     })
    /// );
    /// ```
    pub fn not_ready(&self, reason: &str, message: &str) -> Value {
        let mut condition = json!({
            "type": "Ready",
            "status": "False",
            "reason": reason,
            "message": message,
        });
        // There is none at admission.
        if let Some(generation) = self.metadata.generation {
            condition["observedGeneration"] = generation.into();
        }
        condition
    }
}

fn none<T>() -> Option<T> {
    None
}

#[cfg(test)]
mod tests;
