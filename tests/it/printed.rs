//! Objects for flights to print, and a kind for some of them.

use serde_json::{Value, json};

/// A ConfigMap for a flight to print, in the namespace of its instance.
pub(crate) fn configmap(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

/// The same in a namespace.
pub(crate) fn configmap_in(namespace: &str, name: &str, data: Value) -> Value {
    let mut object = configmap(name, data);
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// A Deployment of pods that the fake node runs.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "none" }] },
            },
        },
    })
}

/// A Job whose pod the fake node completes.
pub(crate) fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "main", "image": "none" }],
        } } },
    })
}

/// A look-up of a core object's field by the flight `puppet`.
pub(crate) fn look(name: &str, kind: &str, namespace: &str, object: &str, path: &str) -> Value {
    json!({ "name": name, "kind": kind, "namespace": namespace, "object": object, "path": path })
}

/// A CRD of namespaced objects that may hold anything, in a group of its own.
pub(crate) fn free_crd(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.made.dev") },
        "spec": {
            "group": "made.dev",
            "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            } } }],
        },
    })
}
