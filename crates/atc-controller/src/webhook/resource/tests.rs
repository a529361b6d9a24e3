use atc_api::GroupKind;
use serde_json::json;

use super::*;
use crate::kinds::Kind;

fn request(username: &str, group: &str, plural: &str) -> Request {
    let request = json!({
        "uid": "u", "operation": "DELETE", "userInfo": { "username": username },
        "resource": { "group": group, "version": "v1", "resource": plural },
    });
    serde_json::from_value(request).unwrap()
}

#[test]
fn who_may_delete_for_the_cluster() {
    let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
    for (username, group, plural, may) in [
        (collector, "apps", "deployments", true),
        ("system:kube-controller-manager", "", "configmaps", true),
        ("system:kube-scheduler", "", "pods", true),
        ("system:kube-scheduler", "", "configmaps", false),
        ("system:kube-scheduler", "metrics.k8s.io", "pods", false),
        ("system:serviceaccount:kube:x", "", "pods", false),
        ("admin", "", "pods", false),
    ] {
        let found = is_cluster(&request(username, group, plural));
        assert_eq!(found, may, "{username} {group} {plural}");
    }
}

#[test]
fn marks_alone_make_no_child() {
    let group_kind = GroupKind {
        group: "x.dev".into(),
        kind: "App".into(),
    };
    let target = ResourceRef::new("n", &group_kind.group, &group_kind.kind, "a");
    let kind = Kind::new(Value::Null);
    kind.upsert(
        &target,
        json!({ "metadata": { "name": "a", "uid": "mine" } }),
    );
    let instance = kind.instance(&target).unwrap();
    let object = |uid: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "d", "namespace": "n", "ownerReferences": [{ "uid": "x" }, { "uid": uid }],
                "annotations": { names::ANNOTATION_INSTANCE_REF: target.to_string() },
            },
        })
    };
    assert!(is_child(&instance, &object("mine")));
    assert!(!is_child(&instance, &object("other")));
    let expect = ResourceRef::new("n", "apps", "Deployment", "d");
    assert_eq!(reference(&object("x")), Some(expect));
    assert_eq!(reference(&json!({ "kind": "Deployment" })), None);
}

#[test]
fn who_an_object_belongs_to_is_all_of_its_owner_references() {
    let object = |owners: &Value| json!({ "metadata": { "name": "a", "ownerReferences": owners } });
    let owner = |name: &str, uid: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid });
    let (a, b) = (owner("a", "1"), owner("b", "2"));
    let mut blocking = a.clone();
    blocking["blockOwnerDeletion"] = true.into();
    for (old, new, expect) in [
        (Value::Null, json!([]), false),
        (Value::Null, json!([a]), true),
        (json!([a]), Value::Null, true),
        (json!([a, b]), json!([b, a]), false),
        (json!([a]), json!([blocking]), false),
        (json!([a]), json!([owner("a", "2")]), true),
        (json!([a]), json!([owner("gone", "1")]), true),
    ] {
        let found = owners_differ(&object(&old), &object(&new));
        assert_eq!(found, expect, "{old} {new}");
    }
}

#[test]
fn what_can_be_made_immutable() {
    let object = |version: &str, kind: &str, immutable: &Value| json!({ "apiVersion": version, "kind": kind, "immutable": immutable });
    for (version, kind, old, new, expect) in [
        ("v1", "ConfigMap", Value::Null, json!(true), true),
        ("v1", "Secret", json!(false), json!(true), true),
        ("v1", "Secret", json!(true), json!(true), false),
        ("v1", "ConfigMap", Value::Null, json!(false), false),
        ("v1", "Service", Value::Null, json!(true), false),
        ("x.dev/v1", "Secret", Value::Null, json!(true), false),
    ] {
        let of = |immutable: &Value| object(version, kind, immutable);
        assert_eq!(
            is_sealed(&of(&old), &of(&new)),
            expect,
            "{version} {kind} {old} {new}"
        );
    }
}
