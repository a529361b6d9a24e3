//! Objects without a namespace, by their marks alone: for a release whose record went with its namespace. Not for anything
//! else: what a record names is found without asking for every kind there is.

use std::collections::HashSet;

use atc_api::names;
use futures::FutureExt;
use http::Method;
use serde::Deserialize;

use super::find::namespaces;
use super::mapping::Mapping;
use super::read::LiveMeta;
use super::request::Call;
use super::{Cluster, ClusterError, ErrorKind};
use crate::ownership::{Owner, owner_of};

/// Every kind of a server in one document (Kubernetes 1.30 and later).
const EVERY_KIND: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[derive(Deserialize)]
struct Groups {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Name,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct Name {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    #[serde(rename = "resource")]
    plural: String,
    response_kind: Option<Kind>,
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

impl Cluster {
    /// Whether a namespace is being deleted, or is gone.
    ///
    /// # Errors
    /// Whatever the read meets; not knowing is no answer.
    pub async fn is_leaving(&self, namespace: &str) -> Result<bool, ClusterError> {
        let found = self.metadata(&namespaces(), "", namespace).await?;
        Ok(found.is_none_or(|live| live.is_deleting()))
    }

    /// All objects without a namespace that releases managed by `manager` own, with their owners. A list for each kind
    /// that can be listed and deleted; kinds that we may not list could not have been made by us.
    ///
    /// # Errors
    /// When anything else can't be read: what is not known is not left out.
    pub async fn owned_cluster_objects(
        &self,
        manager: &str,
    ) -> Result<Vec<(Mapping, LiveMeta, Owner)>, ClusterError> {
        let mut kinds = Vec::new();
        for path in ["/api", "/apis"] {
            let path = Ok(path.to_owned());
            let call = Call::at("discover", Method::GET, "every kind".into(), false, path)?
                .accept(EVERY_KIND);
            let document = self.call(&call).await?.json(&call)?;
            let groups: Groups = serde_json::from_value(document)
                .map_err(|error| call.nonsense(error.to_string()))?;
            kinds.extend(without_namespace(groups));
        }
        let labels = format!("{}={manager}", names::LABEL_MANAGED_BY);
        let lists = kinds
            .iter()
            .map(|kind| self.list_metadata(kind, None, Some(&labels)).boxed());
        let answers = self.breadth(lists.collect()).await;
        let mut found = Vec::new();
        for (kind, answer) in kinds.iter().zip(answers) {
            match answer {
                Ok(objects) => found.extend(objects.into_iter().filter_map(|live| {
                    let owner = owner_of(live.value())?;
                    Some((kind.clone(), live, owner))
                })),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Forbidden | ErrorKind::NoSuchKind | ErrorKind::NotFound
                    ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// The kinds without a namespace that can be listed and deleted, each once, in the version that the server names first.
fn without_namespace(groups: Groups) -> Vec<Mapping> {
    let mut seen = HashSet::new();
    let mut kinds = Vec::new();
    for group in groups.items {
        for version in group.versions {
            for resource in version.resources {
                let can = |verb: &str| resource.verbs.iter().any(|one| one == verb);
                let Some(kind) = &resource.response_kind else {
                    continue;
                };
                let wanted = resource.scope == "Cluster" && can("list") && can("delete");
                if wanted && seen.insert((group.metadata.name.clone(), kind.kind.clone())) {
                    kinds.push(Mapping {
                        group: group.metadata.name.clone(),
                        version: version.version.clone(),
                        kind: kind.kind.clone(),
                        plural: resource.plural,
                        namespaced: false,
                    });
                }
            }
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_without_a_namespace_are_found_once() {
        let resource = |name: &str, kind: &str, scope: &str, verbs: &[&str]| {
            json!({ "resource": name, "responseKind": { "group": "", "version": "", "kind": kind },
                "scope": scope, "singularResource": name, "verbs": verbs })
        };
        let all = ["create", "delete", "list", "watch"];
        let groups = json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [
            { "metadata": {}, "versions": [{ "version": "v1", "freshness": "Current", "resources": [
                resource("namespaces", "Namespace", "Cluster", &all),
                resource("configmaps", "ConfigMap", "Namespaced", &all),
                resource("componentstatuses", "ComponentStatus", "Cluster", &["list"]),
            ] }] },
            { "metadata": { "name": "x.dev" }, "versions": [
                { "version": "v2", "resources": [resource("wides", "Wide", "Cluster", &all)] },
                { "version": "v1", "resources": [
                    resource("wides", "Wide", "Cluster", &all), resource("olds", "Old", "Cluster", &all),
                ] },
            ] },
            { "metadata": { "name": "broken.dev" }, "versions": [{ "version": "v1", "freshness": "Stale" }] },
        ] });
        let kinds =
            without_namespace(serde_json::from_value(groups).expect("as the server has it"));
        let named: Vec<String> = kinds
            .iter()
            .map(|kind| format!("{} {} {}", kind.api_version(), kind.kind, kind.plural))
            .collect();
        assert_eq!(
            named,
            [
                "v1 Namespace namespaces",
                "x.dev/v2 Wide wides",
                "x.dev/v1 Old olds"
            ]
        );
    }
}
