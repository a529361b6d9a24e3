//! Deleting one object, and letting one go without deleting it.

use atc_api::names;
use http::Method;
use serde_json::{Value, json};

use super::mapping::Mapping;
use super::read::LiveMeta;
use super::request::{Call, JSON, JSON_PATCH};
use super::{Cluster, ClusterError, ErrorKind};
use crate::ownership::{Owner, owner_of};

/// Tries of an orphaning whose object changes under it each time.
const MAX_ORPHAN_TRIES: u32 = 5;

/// What happens to what the deleted object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// It is deleted first; the object stays until then.
    Foreground,
    /// The object goes at once, the rest afterwards.
    Background,
}

/// What a delete came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// There is no such object (any more): it went at once, was gone already, was replaced by another of its name, or
    /// its kind is not served.
    Gone,
    /// The deletion has begun; finalizers hold the object.
    Pending,
}

/// What an orphaning came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphaned {
    /// Our marks are off.
    Released,
    /// There is no such object, or no such kind.
    Gone,
    /// The object belongs to somebody else, or to nobody: it was left as it is.
    NotOurs,
}

impl Cluster {
    /// Deletes the object with this uid. An object of the same name with another uid is never touched.
    ///
    /// With `resource_version` the object must be as it was seen, too.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] only with `resource_version`; [`ErrorKind::Forbidden`], ….
    pub async fn delete(
        &self,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
        uid: &str,
        resource_version: Option<&str>,
        propagation: Propagation,
    ) -> Result<Deleted, ClusterError> {
        let policy = match propagation {
            Propagation::Foreground => "Foreground",
            Propagation::Background => "Background",
        };
        let mut preconditions = json!({ "uid": uid });
        if let Some(resource_version) = resource_version {
            preconditions["resourceVersion"] = resource_version.into();
        }
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy, "preconditions": preconditions });
        let call = Call::object("delete", Method::DELETE, mapping, namespace, name, "")?
            .body(JSON, &options);
        let error = match self.known(self.call(&call).await, mapping) {
            Ok(answer) => {
                // The object itself, marked as going, or a Status that says it went.
                let left = answer.json(&call)?;
                let pending = left["kind"] != "Status" && LiveMeta::of(&left).is_deleting();
                return Ok(if pending {
                    Deleted::Pending
                } else {
                    Deleted::Gone
                });
            }
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NoSuchKind => Ok(Deleted::Gone),
            // Another uid, another resourceVersion, or a namespace that is being emptied already.
            ErrorKind::Stale => match self.metadata(mapping, namespace, name).await {
                Ok(Some(live)) if live.uid() == uid && live.is_deleting() => Ok(Deleted::Pending),
                Ok(Some(live)) if live.uid() == uid => Err(error),
                Ok(_) => Ok(Deleted::Gone),
                Err(error) if error.kind() == ErrorKind::NoSuchKind => Ok(Deleted::Gone),
                Err(error) => Err(error),
            },
            _ => Err(error),
        }
    }

    /// Takes our marks off an object, so that it lives on as nobody's: the managed-by label, the annotations that name
    /// release, namespace, instance and Flight, the old labels, and the owner references to `owner_uid`.
    ///
    /// Nothing happens unless the object is `us`'s at the moment of the change; marks that are not there are no error,
    /// nor is an object or a kind that is gone.
    pub async fn orphan(
        &self,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
        us: &Owner,
        owner_uid: Option<&str>,
    ) -> Result<Orphaned, ClusterError> {
        let mut tries = 1;
        loop {
            let live = match self.metadata(mapping, namespace, name).await {
                Ok(Some(live)) => live,
                Ok(None) => return Ok(Orphaned::Gone),
                Err(error) if error.kind() == ErrorKind::NoSuchKind => return Ok(Orphaned::Gone),
                Err(error) => return Err(error),
            };
            if owner_of(live.value()).as_ref() != Some(us) {
                return Ok(Orphaned::NotOurs);
            }
            let patch = strip_marks(&live, owner_uid);
            let call = Call::object("release", Method::PATCH, mapping, namespace, name, "")?
                .body(JSON_PATCH, &patch);
            match self.patch(call, mapping).await {
                Ok(_) => return Ok(Orphaned::Released),
                Err(error) => match error.kind() {
                    ErrorKind::NotFound | ErrorKind::NoSuchKind => return Ok(Orphaned::Gone),
                    // A test failed (which the server calls invalid), so look again.
                    ErrorKind::Stale | ErrorKind::Invalid if tries < MAX_ORPHAN_TRIES => tries += 1,
                    _ => return Err(error),
                },
            }
        }
    }
}

/// The JSON patch that takes our marks off this very object in this very state.
fn strip_marks(live: &LiveMeta, owner_uid: Option<&str>) -> Value {
    let mut patch = vec![
        json!({ "op": "test", "path": "/metadata/uid", "value": live.uid() }),
        json!({ "op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version() }),
    ];
    let mut remove = |path: String| patch.push(json!({ "op": "remove", "path": path }));
    for key in [
        names::LABEL_MANAGED_BY,
        names::LABEL_OLD_RELEASE,
        names::LABEL_OLD_NAMESPACE,
    ] {
        if live.label(key).is_some() {
            remove(format!("/metadata/labels/{}", pointer(key)));
        }
    }
    for key in [
        names::ANNOTATION_RELEASE,
        names::ANNOTATION_NAMESPACE,
        names::ANNOTATION_INSTANCE_REF,
        names::ANNOTATION_FLIGHT,
    ] {
        if live.annotation(key).is_some() {
            remove(format!("/metadata/annotations/{}", pointer(key)));
        }
    }
    if let Some(owner_uid) = owner_uid {
        // From the end, so that the places before stay where they are.
        for (index, owner) in live.owner_references().iter().enumerate().rev() {
            if owner["uid"] == owner_uid {
                remove(format!("/metadata/ownerReferences/{index}"));
            }
        }
    }
    Value::Array(patch)
}

/// A key as a part of a JSON pointer.
fn pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_only_what_is_there() {
        let live = LiveMeta::of(&json!({"metadata": {"uid": "u", "resourceVersion": "5",
            "labels": {"app.kubernetes.io/managed-by": "yoke", "x": "y"},
            "annotations": {"instance.atc.yoke.cd/release": "r"},
            "ownerReferences": [{"uid": "a"}, {"uid": "b"}, {"uid": "a"}]}}));
        let paths = |patch: &Value| -> Vec<String> {
            patch
                .as_array()
                .into_iter()
                .flatten()
                .filter(|op| op["op"] == "remove")
                .map(|op| op["path"].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        assert_eq!(
            paths(&strip_marks(&live, Some("a"))),
            [
                "/metadata/labels/app.kubernetes.io~1managed-by",
                "/metadata/annotations/instance.atc.yoke.cd~1release",
                "/metadata/ownerReferences/2",
                "/metadata/ownerReferences/0"
            ]
        );
        let bare = LiveMeta::of(&json!({"metadata": {"uid": "u", "resourceVersion": "5"}}));
        assert!(paths(&strip_marks(&bare, None)).is_empty());
    }
}
