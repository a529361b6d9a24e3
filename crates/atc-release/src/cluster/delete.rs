//! Deleting one object, and letting one go without deleting it.

use atc_api::names;
use http::Method;
use serde_json::{Value, json};

use super::mapping::{Mapping, encode};
use super::read::LiveMeta;
use super::request::{Call, JSON, JSON_PATCH};
use super::{Cluster, ClusterError, ErrorKind};
use crate::ownership::{Owner, owner_of};

/// Tries of an orphaning whose object changes under it each time.
const MAX_ORPHAN_TRIES: u32 = 5;

/// Our marks among the labels.
const LABELS: [&str; 3] = [
    names::LABEL_MANAGED_BY,
    names::LABEL_OLD_RELEASE,
    names::LABEL_OLD_NAMESPACE,
];

/// Our marks among the annotations.
const ANNOTATIONS: [&str; 4] = [
    names::ANNOTATION_RELEASE,
    names::ANNOTATION_NAMESPACE,
    names::ANNOTATION_INSTANCE_REF,
    names::ANNOTATION_FLIGHT,
];

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
    /// The object belongs to somebody else, or to nobody: it was left as it is, but for owner references to ours.
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
    /// Of an object that is not `us`'s at the moment of the change no more is taken than those owner references: with one of
    /// them the garbage collector would delete it, whoever has it by then, as soon as that owner is gone. Marks that are not
    /// there are no error, nor is an object or a kind that is gone.
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
            let (marks, done) = match hold_on(&live, us, owner_uid) {
                Hold::Nothing => return Ok(Orphaned::NotOurs),
                Hold::Reference => (false, Orphaned::NotOurs),
                Hold::Marks => (true, Orphaned::Released),
            };
            let patch = strip(&live, marks, owner_uid);
            // By the field manager our own writes are told from others' as the same user.
            let query = format!("fieldManager={}", encode(&self.options().field_manager));
            let call = Call::object("release", Method::PATCH, mapping, namespace, name, "")?
                .query(&query)
                .body(JSON_PATCH, &patch);
            match self.patch(call, mapping).await {
                Ok(_) => return Ok(done),
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

/// What of ours an object has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Nothing.
    Nothing,
    /// An owner reference, and it is somebody else's.
    Reference,
    /// Marks: it is ours, or nobody's with an owner reference to ours, as when one of the marks was taken off by hand.
    Marks,
}

fn hold_on(live: &LiveMeta, us: &Owner, owner_uid: Option<&str>) -> Hold {
    let refers = |uid: &str| {
        live.owner_references()
            .iter()
            .any(|owner| owner["uid"] == uid)
    };
    let is_referred = owner_uid.is_some_and(refers);
    match owner_of(live.value()) {
        Some(owner) if owner == *us => Hold::Marks,
        Some(_) if is_referred => Hold::Reference,
        None if is_referred => Hold::Marks,
        _ => Hold::Nothing,
    }
}

/// The JSON patch that takes our owner references, and our marks if wanted, off this very object in this very state.
fn strip(live: &LiveMeta, marks: bool, owner_uid: Option<&str>) -> Value {
    let mut patch = vec![
        json!({ "op": "test", "path": "/metadata/uid", "value": live.uid() }),
        json!({ "op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version() }),
    ];
    let mut remove = |path: String| patch.push(json!({ "op": "remove", "path": path }));
    for key in LABELS {
        if marks && live.label(key).is_some() {
            remove(format!("/metadata/labels/{}", pointer(key)));
        }
    }
    for key in ANNOTATIONS {
        if marks && live.annotation(key).is_some() {
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
        assert_eq!(
            removed(&strip(&live, true, Some("a"))),
            [
                "/metadata/labels/app.kubernetes.io~1managed-by",
                "/metadata/annotations/instance.atc.yoke.cd~1release",
                "/metadata/ownerReferences/2",
                "/metadata/ownerReferences/0"
            ]
        );
        assert_eq!(
            removed(&strip(&live, false, Some("b"))),
            ["/metadata/ownerReferences/1"]
        );
        let bare = LiveMeta::of(&json!({"metadata": {"uid": "u", "resourceVersion": "5"}}));
        assert!(removed(&strip(&bare, true, None)).is_empty());
    }

    #[test]
    fn the_patch_is_for_that_object_in_that_state() {
        let live = LiveMeta::of(&json!({"metadata": {"uid": "u", "resourceVersion": "5"}}));
        for marks in [true, false] {
            let patch = strip(&live, marks, Some("a"));
            assert_eq!(
                patch,
                json!([
                    {"op": "test", "path": "/metadata/uid", "value": "u"},
                    {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
                ])
            );
        }
    }

    #[test]
    fn what_is_not_ours_loses_our_reference_alone_w20() {
        let us = Owner::new("n", "r");
        let release = |release: &str| json!({"instance.atc.yoke.cd/namespace": "n", "instance.atc.yoke.cd/release": release});
        let half = json!({"instance.atc.yoke.cd/namespace": "n"});
        let check = |annotations: &Value, owners: &[&str], expect: Hold| {
            let owners: Vec<Value> = owners.iter().map(|uid| json!({"uid": uid})).collect();
            let live = json!({"metadata": {"annotations": annotations, "ownerReferences": owners}});
            let hold = hold_on(&LiveMeta::of(&live), &us, Some("ours"));
            assert_eq!(hold, expect, "{live}");
        };
        for owners in [vec![], vec!["ours"], vec!["theirs"]] {
            check(&release("r"), &owners, Hold::Marks);
        }
        for annotations in [&half, &Value::Null] {
            check(annotations, &["theirs", "ours"], Hold::Marks);
            check(annotations, &["theirs"], Hold::Nothing);
        }
        check(&release("other"), &["theirs", "ours"], Hold::Reference);
        check(&release("other"), &["theirs"], Hold::Nothing);
        // Without an owner there is no reference of ours.
        let live = json!({"metadata": {"annotations": half, "ownerReferences": [{"uid": "ours"}]}});
        assert_eq!(hold_on(&LiveMeta::of(&live), &us, None), Hold::Nothing);
    }

    /// The paths that a patch removes.
    fn removed(patch: &Value) -> Vec<String> {
        patch
            .as_array()
            .into_iter()
            .flatten()
            .filter(|op| op["op"] == "remove")
            .map(|op| op["path"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}
