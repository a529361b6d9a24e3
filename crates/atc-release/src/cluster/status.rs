//! Status, finalizers and owner references of a custom resource: each one call, none over a change of somebody else.

use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use super::mapping::{Mapping, encode};
use super::read::LiveMeta;
use super::request::{Call, JSON_PATCH, MERGE_PATCH};
use super::{Cluster, ClusterError, ErrorKind};

/// A change of an object's finalizers and owner references, made in one call.
#[derive(Clone, Debug, Default)]
pub struct MetadataEdit {
    /// A finalizer that must be there.
    pub add_finalizer: Option<String>,
    /// A finalizer that must not be there.
    pub remove_finalizer: Option<String>,
    /// An owner that must be there; told apart by its uid.
    pub add_owner: Option<OwnerReference>,
}

impl MetadataEdit {
    /// The merge patch that makes this change to an object, or `None` when there is nothing to change.
    fn patch(&self, live: &LiveMeta) -> Option<Value> {
        let before = live.finalizers();
        let mut finalizers: Vec<&str> = before
            .iter()
            .copied()
            .filter(|f| Some(*f) != self.remove_finalizer.as_deref())
            .collect();
        if let Some(add) = self
            .add_finalizer
            .as_deref()
            .filter(|add| !before.contains(add))
        {
            finalizers.push(add);
        }
        let mut metadata = json!({ "uid": live.uid(), "resourceVersion": live.resource_version() });
        let mut changed = false;
        if finalizers != before {
            metadata["finalizers"] = json!(finalizers);
            changed = true;
        }
        if let Some(owner) = &self.add_owner
            && !live
                .owner_references()
                .iter()
                .any(|o| o["uid"] == owner.uid.as_str())
        {
            let mut owners = live.owner_references().to_vec();
            owners.push(json!(owner));
            metadata["ownerReferences"] = Value::Array(owners);
            changed = true;
        }
        changed.then(|| json!({ "metadata": metadata }))
    }
}

impl Cluster {
    /// Replaces the status of an object, whole, if the object is still at this resourceVersion. Returns the object.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] when the object changed meanwhile, [`ErrorKind::NotFound`] when it is gone.
    pub async fn replace_status(
        &self,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
        status: &Value,
        resource_version: &str,
    ) -> Result<Value, ClusterError> {
        let patch = replacement("/status", status, resource_version);
        let call = Call::object(
            "write the status of",
            Method::PATCH,
            mapping,
            namespace,
            name,
            "/status",
        )?;
        self.patch(
            call.query(&self.as_status_manager())
                .body(JSON_PATCH, &patch),
            mapping,
        )
        .await
    }

    /// Changes finalizers and owner references of an object, if it is still as `live` says. Returns the object as it is
    /// then, or `None` when nothing had to be changed or the object is gone (the last finalizer was removed).
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] when the object changed meanwhile.
    pub async fn edit_metadata(
        &self,
        mapping: &Mapping,
        live: &LiveMeta,
        edit: &MetadataEdit,
    ) -> Result<Option<Value>, ClusterError> {
        let Some(patch) = edit.patch(live) else {
            return Ok(None);
        };
        let call = Call::object(
            "set the finalizers of",
            Method::PATCH,
            mapping,
            live.namespace(),
            live.name(),
            "",
        )?;
        match self
            .patch(
                call.query(&self.as_status_manager())
                    .body(MERGE_PATCH, &patch),
                mapping,
            )
            .await
        {
            Ok(object) => Ok(Some(object)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NoSuchKind) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces a field at the top of an object, whole, if the object is still as `live` says. Returns the object. For what
    /// others added to a field of ours: an apply leaves that.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] when the object changed meanwhile, [`ErrorKind::NotFound`] when it is gone.
    pub async fn replace_field(
        &self,
        mapping: &Mapping,
        live: &LiveMeta,
        field: &str,
        value: &Value,
    ) -> Result<Value, ClusterError> {
        let call = Call::object(
            "write",
            Method::PATCH,
            mapping,
            live.namespace(),
            live.name(),
            "",
        )?;
        let patch = replacement(&format!("/{field}"), value, live.resource_version());
        self.patch(
            call.query(&self.as_status_manager())
                .body(JSON_PATCH, &patch),
            mapping,
        )
        .await
    }

    fn as_status_manager(&self) -> String {
        format!(
            "fieldManager={}",
            encode(&self.inner.options.status_manager)
        )
    }

    /// Sends a patch and returns the object that it made.
    pub(super) async fn patch(&self, call: Call, mapping: &Mapping) -> Result<Value, ClusterError> {
        self.known(self.call(&call).await, mapping)?.json(&call)
    }
}

/// `add` replaces what is there, so fields that are no more go away, as a merge would not have it. Setting the
/// resourceVersion (rather than testing it) makes a lost race a conflict, not an "invalid".
fn replacement(path: &str, value: &Value, resource_version: &str) -> Value {
    json!([
        { "op": "add", "path": "/metadata/resourceVersion", "value": resource_version },
        { "op": "add", "path": path, "value": value },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> LiveMeta {
        LiveMeta::of(
            &json!({"metadata": {"uid": "u", "resourceVersion": "7", "finalizers": ["other", "ours"],
            "ownerReferences": [{"uid": "o1"}]}}),
        )
    }

    fn owner(uid: &str) -> OwnerReference {
        OwnerReference {
            uid: uid.into(),
            ..OwnerReference::default()
        }
    }

    #[test]
    fn patches() {
        let check = |edit: MetadataEdit, expect: Option<Value>| {
            let got = edit.patch(&live()).map(|p| p["metadata"].clone());
            assert_eq!(
                got.as_ref().map(|m| (
                    m.get("finalizers").cloned(),
                    m["ownerReferences"].as_array().map(Vec::len)
                )),
                expect.map(|e| (
                    e.get("finalizers").cloned(),
                    e["ownerReferences"].as_array().map(Vec::len)
                ))
            );
            if let Some(got) = got {
                assert_eq!(
                    (got["uid"].as_str(), got["resourceVersion"].as_str()),
                    (Some("u"), Some("7"))
                );
            }
        };
        check(MetadataEdit::default(), None);
        check(
            MetadataEdit {
                add_finalizer: Some("ours".into()),
                add_owner: Some(owner("o1")),
                ..Default::default()
            },
            None,
        );
        check(
            MetadataEdit {
                remove_finalizer: Some("absent".into()),
                ..Default::default()
            },
            None,
        );
        check(
            MetadataEdit {
                remove_finalizer: Some("ours".into()),
                ..Default::default()
            },
            Some(json!({"finalizers": ["other"]})),
        );
        check(
            MetadataEdit {
                add_finalizer: Some("new".into()),
                add_owner: Some(owner("o2")),
                ..Default::default()
            },
            Some(json!({"finalizers": ["other", "ours", "new"], "ownerReferences": [1, 2]})),
        );
    }
}
