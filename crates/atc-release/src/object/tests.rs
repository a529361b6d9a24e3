//! Tables: names, marks, what is stripped, what is the same.

use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    Object::try_from(value).unwrap()
}

fn named(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Object {
    object(
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "namespace": namespace } }),
    )
}

#[test]
fn names() {
    let check = |object: &Object, reference: &str, canonical: &str| {
        assert_eq!(object.reference().to_string(), reference);
        assert_eq!(object.canonical(), canonical);
    };
    check(
        &named("apps/v1", "Deployment", Some("ns"), "web"),
        "ns/Deployment.apps:web",
        "ns/apps/v1/deployment/web",
    );
    check(
        &named("v1", "Namespace", None, "x"),
        "/Namespace:x",
        "_/core/v1/namespace/x",
    );
    check(
        &named("v1", "Secret", Some(""), "x"),
        "/Secret:x",
        "_/core/v1/secret/x",
    );
    check(
        &named(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            None,
            "system:Admin",
        ),
        "/ClusterRole.rbac.authorization.k8s.io:system:Admin",
        "_/rbac.authorization.k8s.io/v1/clusterrole/system:admin",
    );
    let object = named("apps/v1", "Deployment", Some("ns"), "web");
    assert_eq!(
        (object.group(), object.version(), object.api_version()),
        ("apps", "v1", "apps/v1")
    );
    assert_eq!(named("v1", "Pod", None, "a").group(), "");
    assert!(
        named(
            "apiextensions.k8s.io/v1beta1",
            "CustomResourceDefinition",
            None,
            "a"
        )
        .is_foundation()
    );
    assert!(!named("x.dev/v1", "CustomResourceDefinition", None, "a").is_foundation());
    assert!(!named("x.dev/v1", "Namespace", None, "a").is_foundation());
}

#[test]
fn what_typed_go_programs_print_is_dropped() {
    let mut printed = object(json!({
        "apiVersion": "v1", "kind": "X",
        "metadata": {
            "name": "a", "creationTimestamp": null, "resourceVersion": "1", "uid": "u", "managedFields": [], "generation": 2,
            "selfLink": "/x", "namespace": "", "labels": null, "annotations": { "a": "", "b": null }, "ownerReferences": null,
            "generateName": "a-", "finalizers": ["f"],
        },
        "spec": { "template": { "metadata": { "creationTimestamp": null } }, "resources": {} },
        "status": {},
    }));
    printed.strip_server_fields();
    let want = json!({
        "apiVersion": "v1", "kind": "X",
        "metadata": { "name": "a", "annotations": { "a": "" }, "finalizers": ["f"] },
        "spec": { "template": { "metadata": { "creationTimestamp": null } }, "resources": {} },
    });
    assert_eq!(printed.value(), &want);
    let again = {
        let mut again = printed.clone();
        again.strip_server_fields();
        again
    };
    assert_eq!(again, printed);
}

#[test]
fn marks_and_owners() {
    let mut object = object(
        json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "a", "labels": null } }),
    );
    object.set_label("l", "1");
    object.set_label("l", "2");
    object.set_annotation("a", "1");
    object.remove_annotation("none");
    object.remove_label("none");
    assert_eq!(
        (object.label("l"), object.annotation("a"), object.label("x")),
        (Some("2"), Some("1"), None)
    );
    object.remove_label("l");
    assert_eq!(object.metadata()["labels"], json!({}));
    let owner = |name: &str, uid: &str| OwnerReference {
        api_version: "x.dev/v1".into(),
        kind: "App".into(),
        name: name.into(),
        uid: uid.into(),
        ..OwnerReference::default()
    };
    object.set_owner(&owner("one", "1"));
    object.set_owner(&owner("two", "2"));
    object.set_owner(&owner("renamed", "1"));
    let reference = |name: &str, uid: &str| json!({ "apiVersion": "x.dev/v1", "kind": "App", "name": name, "uid": uid });
    assert_eq!(
        object.metadata()["ownerReferences"],
        json!([reference("two", "2"), reference("renamed", "1")])
    );
    object.set_namespace(Some("n"));
    assert_eq!(object.namespace(), Some("n"));
    object.set_namespace(None);
    assert_eq!(object.namespace(), None);
    assert_eq!(object.remove("metadata"), None);
}

#[test]
fn hash_is_of_content() {
    let one = object(
        json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "a" }, "b": { "y": [1, 2], "x": "\"" } }),
    );
    let two = object(
        json!({ "b": { "x": "\"", "y": [1, 2] }, "metadata": { "name": "a" }, "kind": "X", "apiVersion": "v1" }),
    );
    assert_eq!(one.hash(), two.hash());
    for other in [
        json!({ "y": [2, 1], "x": "\"" }),
        json!({ "y": [1, 2], "x": "'" }),
        json!({ "y": [1, 2] }),
        json!(null),
    ] {
        let mut value = one.value().clone();
        value["b"] = other;
        assert_ne!(object(value).hash(), one.hash());
    }
    assert_eq!(one.hash().len(), 64);
}

#[test]
fn debug_tells_no_content() {
    let secret = object(
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "data": { "k": "hunter2" } }),
    );
    assert_eq!(format!("{secret:?}"), "Object(_/core/v1/secret/a)");
}

#[test]
fn the_parent_is_taken_out() {
    let parent = ResourceRef::new("ns", "x.dev", "App", "p");
    let check = |namespace: Option<&str>, target: &ResourceRef, taken: usize| {
        let other = named("v1", "ConfigMap", Some("ns"), "p");
        let mut stages = Stages::new(vec![
            vec![named("x.dev/v2", "App", namespace, "p")],
            vec![other.clone()],
        ]);
        assert_eq!(stages.take(target).len(), taken, "{namespace:?}");
        assert_eq!(stages.len(), 2 - taken);
        assert_eq!(stages.objects().last(), Some(&other));
    };
    check(Some("ns"), &parent, 1);
    check(None, &parent, 1);
    check(Some(""), &parent, 1);
    check(Some("other"), &parent, 0);
    check(Some("ns"), &ResourceRef::new("ns", "y.dev", "App", "p"), 0);
    check(Some("ns"), &ResourceRef::new("ns", "x.dev", "App", "q"), 0);
    check(None, &ResourceRef::new("", "x.dev", "App", "p"), 1);
    check(Some("ns"), &ResourceRef::new("", "x.dev", "App", "p"), 1);
}

#[test]
fn same_stages() {
    let (a, b) = (named("v1", "X", None, "a"), named("v1", "X", None, "b"));
    let stages = |stages: &[&[&Object]]| {
        Stages::new(
            stages
                .iter()
                .map(|stage| stage.iter().map(|object| (*object).clone()).collect())
                .collect(),
        )
    };
    let both = stages(&[&[&a, &b]]);
    assert!(both.same_as(&stages(&[&[&b, &a]])));
    assert!(both.same_as(&stages(&[&[], &[&a, &b], &[]])));
    assert!(!both.same_as(&stages(&[&[&a], &[&b]])));
    assert!(!both.same_as(&stages(&[&[&a]])));
    let mut changed = b.clone();
    changed.set_label("x", "");
    assert!(!both.same_as(&stages(&[&[&a, &changed]])));
    assert!(!both.same_as(&stages(&[&[&a, &named("v2", "X", None, "b")]])));
    assert!(Stages::default().same_as(&Stages::new(vec![vec![]])));
    assert_eq!(
        (both.count(), both.len(), both.kinds()),
        (2, 1, vec![("v1".to_owned(), "X".to_owned())])
    );
}

#[test]
fn rules_of_aggregated_roles_are_the_controllers_r31() {
    let check = |extra: &Value, kept: bool| {
        let mut value = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "a" }, "rules": [] });
        value["aggregationRule"] = extra.clone();
        let mut role = object(value);
        role.strip_server_fields();
        assert_eq!(role.value().get("rules").is_some(), kept, "{extra}");
    };
    check(
        &json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] }),
        false,
    );
    check(&json!(null), true);
}
