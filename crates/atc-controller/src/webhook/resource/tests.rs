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
