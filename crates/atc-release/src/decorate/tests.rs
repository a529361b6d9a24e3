//! Tables: marks, namespaces, owners, refusals.

use serde_json::{Value, json};

use super::*;
use crate::ownership::may_prune;

/// A cluster that knows a few kinds.
fn scopes(api_version: &str, kind: &str) -> Option<bool> {
    match (api_version, kind) {
        ("v1", "ConfigMap" | "Secret") | ("apps/v1", "Deployment") => Some(true),
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => Some(false),
        _ => None,
    }
}

fn decoration() -> Decoration {
    Decoration {
        release: "r".into(),
        namespace: "ns".into(),
        managed_by: "yoke".into(),
        ..Decoration::default()
    }
}

fn stages(values: &[Value]) -> Stages {
    Stages::new(vec![
        values
            .iter()
            .map(|value| Object::try_from(value.clone()).unwrap())
            .collect(),
    ])
}

fn object(api_version: &str, kind: &str, metadata: &Value) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata })
}

fn cm(metadata: &Value) -> Value {
    object("v1", "ConfigMap", metadata)
}

fn one(value: &Value, decoration: &Decoration) -> Object {
    let stages = decorate(stages(std::slice::from_ref(value)), decoration, &scopes).unwrap();
    assert_eq!(stages.count(), 1);
    stages.objects().next().unwrap().clone()
}

fn refused(values: &[Value], decoration: &Decoration, words: &[&str]) {
    let message = decorate(stages(values), decoration, &scopes)
        .unwrap_err()
        .to_string();
    for word in words {
        assert!(message.contains(word), "{word} in {message}");
    }
}

#[test]
fn marks() {
    let check = |metadata: &Value, decoration: &Decoration, expect: &Value| {
        assert_eq!(one(&cm(metadata), decoration).metadata(), expect);
        // What is decorated stays as it is.
        assert_eq!(
            one(one(&cm(metadata), decoration).value(), decoration).metadata(),
            expect
        );
    };
    let annotations =
        json!({ "instance.atc.yoke.cd/release": "r", "instance.atc.yoke.cd/namespace": "ns" });
    let plain = json!({ "name": "a", "namespace": "ns", "labels": { "app.kubernetes.io/managed-by": "yoke" }, "annotations": annotations });
    check(&json!({ "name": "a" }), &decoration(), &plain);
    check(
        &json!({ "name": "a", "labels": null, "annotations": {}, "creationTimestamp": null, "uid": "u", "resourceVersion": "1", "managedFields": [{}] }),
        &decoration(),
        &plain,
    );
    // Over the flight's own, and over those of an object that it looked up.
    check(
        &json!({
            "name": "a", "namespace": "ns",
            "labels": { "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/yoke-release": "o", "app.kubernetes.io/yoke-release-namespace": "o" },
            "annotations": { "instance.atc.yoke.cd/release": "o", "instance.atc.yoke.cd/namespace": "o", "instance.atc.yoke.cd/instanceRef": "o/X:o" },
        }),
        &decoration(),
        &plain,
    );
    let mut with = plain.clone();
    with["labels"]["x"] = "".into();
    with["annotations"]["z"] = "w".into();
    check(
        &json!({ "name": "a", "labels": { "x": "" }, "annotations": { "z": "w" } }),
        &decoration(),
        &with,
    );
    let mut instance = plain.clone();
    instance["annotations"]["instance.atc.yoke.cd/instanceRef"] = "ns/App.x.dev:i".into();
    let of_instance = Decoration {
        instance_ref: Some(ResourceRef::new("ns", "x.dev", "App", "i")),
        ..decoration()
    };
    check(&json!({ "name": "a" }), &of_instance, &instance);
}

#[test]
fn a_childs_status_is_dropped() {
    let mut value = cm(&json!({ "name": "a" }));
    value["status"] = json!({ "conditions": [] });
    assert!(one(&value, &decoration()).value().get("status").is_none());
}

#[test]
fn namespaces() {
    let check = |value: &Value, expect: Option<&str>| {
        assert_eq!(one(value, &decoration()).namespace(), expect, "{value}");
    };
    check(&cm(&json!({ "name": "a" })), Some("ns"));
    check(&cm(&json!({ "name": "a", "namespace": "" })), Some("ns"));
    check(&cm(&json!({ "name": "a", "namespace": null })), Some("ns"));
    check(&cm(&json!({ "name": "a", "namespace": "ns" })), Some("ns"));
    // Cluster-scoped objects have none, whatever they say (R-51).
    for namespace in [json!("ns"), json!("other"), json!(null)] {
        let metadata = json!({ "name": "a", "namespace": namespace });
        check(
            &object("rbac.authorization.k8s.io/v1", "ClusterRole", &metadata),
            None,
        );
        check(&object("v1", "Namespace", &metadata), None);
        check(
            &object(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                &metadata,
            ),
            None,
        );
    }
    let crossing = Decoration {
        cross_namespace: true,
        ..decoration()
    };
    assert_eq!(
        one(
            &cm(&json!({ "name": "a", "namespace": "other" })),
            &crossing
        )
        .namespace(),
        Some("other")
    );
    assert_eq!(
        one(&cm(&json!({ "name": "a" })), &crossing).namespace(),
        Some("ns")
    );
}

#[test]
fn objects_outside_are_all_named() {
    let far = |name: &str, namespace: &str| cm(&json!({ "name": name, "namespace": namespace }));
    refused(
        &[
            cm(&json!({ "name": "here" })),
            far("two", "n2"),
            far("three", "n3"),
        ],
        &decoration(),
        &[
            "multiple namespaces",
            "\"ns\"",
            "n2/core/v1/configmap/two",
            "n3/core/v1/configmap/three",
            "lie outside",
        ],
    );
    refused(&[far("two", "n2")], &decoration(), &["lies outside"]);
    let many: Vec<Value> = (0..50)
        .map(|index| far(&format!("a{index}"), "n2"))
        .collect();
    refused(&many, &decoration(), &["configmap/a19\", 30 more"]);
}

fn crd(scope: &str, versions: &Value) -> Value {
    let mut crd = object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &json!({ "name": "widgets.x.dev" }),
    );
    crd["spec"] = json!({ "group": "x.dev", "scope": scope, "names": { "kind": "Widget", "plural": "widgets" }, "versions": versions });
    crd
}

#[test]
fn kinds_of_the_same_output() {
    let versions = json!([{ "name": "v1", "served": true, "storage": true }, { "name": "v1alpha1", "served": false }]);
    let widget = |version: &str| {
        object(
            &format!("x.dev/{version}"),
            "Widget",
            &json!({ "name": "w" }),
        )
    };
    let check = |scope: &str, expect: Option<&str>| {
        let stages = decorate(
            stages(&[widget("v1"), crd(scope, &versions)]),
            &decoration(),
            &scopes,
        )
        .unwrap();
        assert_eq!(
            stages
                .objects()
                .find(|object| object.kind() == "Widget")
                .unwrap()
                .namespace(),
            expect
        );
    };
    check("Namespaced", Some("ns"));
    check("Cluster", None);
    refused(
        &[widget("v1")],
        &decoration(),
        &["no such kind: Widget of x.dev/v1 (", "widget/w)"],
    );
    refused(
        &[widget("v1alpha1"), crd("Namespaced", &versions)],
        &decoration(),
        &[
            "no such kind",
            "Widget of x.dev/v1alpha1",
            "served by its definition: v1",
        ],
    );
    refused(
        &[widget("v1"), crd("Namespaced", &json!(null))],
        &decoration(),
        &["no such kind"],
    );
    refused(
        &[
            widget("v1"),
            object("y.dev/v1", "Other", &json!({ "name": "o" })),
        ],
        &decoration(),
        &["Widget of x.dev/v1", "Other of y.dev/v1"],
    );
}

#[test]
fn the_same_object_after_all() {
    let map = |metadata: Value, data: &str| {
        let mut map = cm(&metadata);
        map["data"] = json!({ "k": data });
        map
    };
    refused(
        &[
            map(json!({ "name": "a" }), "1"),
            map(json!({ "name": "a", "namespace": "ns" }), "2"),
        ],
        &decoration(),
        &["occurs twice", "ns/core/v1/configmap/a"],
    );
    let same = [
        map(json!({ "name": "a" }), "1"),
        map(json!({ "name": "b" }), "1"),
        map(json!({ "name": "a", "namespace": "ns" }), "1"),
    ];
    let made = decorate(stages(&same), &decoration(), &scopes).unwrap();
    let names: Vec<&str> = made.objects().map(Object::name).collect();
    assert_eq!(names, ["a", "b"]);
    let role = |namespace: &str| {
        object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            &json!({ "name": "a", "namespace": namespace }),
        )
    };
    let both = [role("one"), role("two")];
    let made = decorate(stages(&both), &decoration(), &scopes).unwrap();
    assert_eq!(made.count(), 1);
}

#[test]
fn owners() {
    let owner = OwnerReference {
        api_version: "x.dev/v1".into(),
        kind: "App".into(),
        name: "i".into(),
        uid: "u".into(),
        ..OwnerReference::default()
    };
    let references = json!([{ "apiVersion": "x.dev/v1", "kind": "App", "name": "i", "uid": "u" }]);
    let check = |owner_namespace: Option<&str>, value: &Value, expect: &Value| {
        let owner_namespace = owner_namespace.map(str::to_owned);
        let decoration = Decoration {
            owner: Some(owner.clone()),
            owner_namespace,
            cross_namespace: true,
            ..decoration()
        };
        assert_eq!(
            &one(value, &decoration).metadata()["ownerReferences"],
            expect,
            "{value}"
        );
    };
    let (here, far) = (
        cm(&json!({ "name": "a" })),
        cm(&json!({ "name": "a", "namespace": "other" })),
    );
    let (role, namespace) = (
        object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            &json!({ "name": "a" }),
        ),
        object("v1", "Namespace", &json!({ "name": "a" })),
    );
    // A namespaced owner owns in its own namespace only (R-49).
    for (value, expect) in [
        (&here, &references),
        (&far, &Value::Null),
        (&role, &Value::Null),
        (&namespace, &Value::Null),
    ] {
        check(Some("ns"), value, expect);
    }
    for value in [&here, &far, &role, &namespace] {
        check(None, value, &references);
    }
    let kept = json!({ "apiVersion": "y.dev/v1", "kind": "Y", "name": "y", "uid": "y" });
    check(
        Some("ns"),
        &cm(&json!({ "name": "a", "ownerReferences": [kept] })),
        &json!([kept, references[0]]),
    );
}

#[test]
fn who_is_confined_makes_nothing_cluster_scoped_and_nothing_that_gives_rights() {
    let confined = Decoration {
        confined: true,
        ..decoration()
    };
    let all = |_: &str, kind: &str| Some(kind != "Namespace");
    let made = |value: Value| decorate(stages(&[value]), &confined, &all);
    assert!(made(cm(&json!({ "name": "a" }))).is_ok());
    let rbac = "rbac.authorization.k8s.io/v1";
    let overriding =
        json!({ "name": "a", "annotations": { "overrides.yoke.cd/flight": "http://x/y" } });
    let plain = object("yoke.cd/v1alpha1", "Flight", &json!({ "name": "a" }));
    let mut acting = plain.clone();
    acting["spec"]["serviceAccountName"] = "admin".into();
    // It says itself that it acts as nobody: an account that somebody else gave it does not stay.
    for says in [Value::Null, json!({}), json!({ "serviceAccountName": "" })] {
        let mut flight = plain.clone();
        flight["spec"] = says.clone();
        let made = made(flight).unwrap();
        let spec = &made.objects().next().unwrap().value()["spec"];
        let expect = if says.is_null() {
            says
        } else {
            json!({ "serviceAccountName": "" })
        };
        assert_eq!(*spec, expect);
    }
    let mut token = object("v1", "Secret", &json!({ "name": "a" }));
    token["type"] = "Opaque".into();
    assert!(made(token.clone()).is_ok());
    let mut existing = token.clone();
    existing["type"].take();
    existing["metadata"]["annotations"] = json!({ "kubernetes.io/service-account.name": "admin" });
    token["type"] = "kubernetes.io/service-account-token".into();
    for beyond in [
        object(rbac, "Role", &json!({ "name": "a" })),
        object(rbac, "RoleBinding", &json!({ "name": "a" })),
        object("v1", "Namespace", &json!({ "name": "a" })),
        cm(&overriding),
        acting,
        token,
        existing,
    ] {
        let words = made(beyond).unwrap_err().to_string();
        assert!(
            words.contains("own namespace only") && words.contains("/a"),
            "{words}"
        );
    }
}

#[test]
fn references_to_flights_of_others_are_dropped() {
    let flight = |uid: &str| json!({ "apiVersion": "yoke.cd/v1alpha1", "kind": "Flight", "name": "f", "uid": uid });
    let other = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p" });
    let echoed = cm(&json!({ "name": "a", "ownerReferences": [flight("theirs"), other] }));
    let owners =
        |decoration: &Decoration| one(&echoed, decoration).metadata()["ownerReferences"].clone();
    assert_eq!(owners(&decoration()), json!([other]));
    let ours = Decoration {
        owner: Some(serde_json::from_value(flight("ours")).unwrap()),
        owner_namespace: Some("ns".into()),
        ..decoration()
    };
    assert_eq!(owners(&ours), json!([other, flight("ours")]));
    assert_eq!(ours.identity().flight.as_deref(), Some("ours"));
}

#[test]
fn what_can_have_no_reference_to_its_flight_names_it() {
    let flight =
        json!({ "apiVersion": "yoke.cd/v1alpha1", "kind": "Flight", "name": "f", "uid": "ours" });
    let forged = json!({ "name": "a", "annotations": { "atc.yoke.cd/flight": "theirs" } });
    let made = |kind: &str, decoration: &Decoration| {
        let version = if kind == "ClusterRole" {
            "rbac.authorization.k8s.io/v1"
        } else {
            "v1"
        };
        one(&object(version, kind, &forged), decoration)
    };
    let named = |object: &Object| object.annotation("atc.yoke.cd/flight").map(str::to_owned);
    let ours = Decoration {
        owner: Some(serde_json::from_value(flight).unwrap()),
        owner_namespace: Some("ns".into()),
        ..decoration()
    };
    let wide = made("ClusterRole", &ours);
    assert_eq!(named(&wide).as_deref(), Some("ours"));
    assert!(may_prune(wide.metadata(), &ours.identity()));
    assert!(!may_prune(wide.metadata(), &decoration().identity()));
    // The reference says it where there can be one, and nobody's word but ours counts.
    assert_eq!(named(&made("ConfigMap", &ours)), None);
    assert_eq!(named(&made("ClusterRole", &decoration())), None);
    let cluster_flight = Decoration {
        owner_namespace: None,
        ..ours
    };
    assert_eq!(named(&made("ClusterRole", &cluster_flight)), None);
}

#[test]
fn no_flight_prints_the_record_of_a_release() {
    let all = |_: &str, _: &str| Some(true);
    let made = |kind: &str, metadata: Value| {
        decorate(
            stages(&[object("v1", kind, &metadata)]),
            &decoration(),
            &all,
        )
    };
    for record in [
        json!({ "name": "yoke.0123456789ab" }),
        json!({ "name": "yoke-intent.0123456789abcdef" }),
        json!({ "name": "yoke-beat.0123456789abcdef" }),
        json!({ "name": "a", "labels": { "internal.yoke/kind": "revision" } }),
        json!({ "name": "a", "labels": { "atc.yoke.cd/kind": "intent" } }),
    ] {
        let words = made("Secret", record.clone()).unwrap_err().to_string();
        assert!(words.contains("record of a release"), "{record}: {words}");
        assert!(made("ConfigMap", record).is_ok());
    }
    for free in ["yoke", "yoke.", "yoke.web", "web.0123456789ab"] {
        assert!(made("Secret", json!({ "name": free })).is_ok(), "{free}");
    }
}

#[test]
fn no_flight_prints_what_is_the_atcs_own() {
    let secret = |namespace: &str, name: &str| {
        let metadata = json!({ "name": name, "namespace": namespace });
        object("v1", "Secret", &metadata)
    };
    let ours = Decoration {
        cross_namespace: true,
        reserved: vec![Object::try_from(secret("atc", "key")).unwrap().reference()],
        ..decoration()
    };
    let made = |value: Value| decorate(stages(&[value]), &ours, &scopes).map(drop);
    let error = made(secret("atc", "key")).unwrap_err().to_string();
    assert!(
        error.contains("secret/key") && error.contains("for the atc itself"),
        "{error}"
    );
    for free in [secret("ns", "key"), secret("atc", "other")] {
        assert_eq!(made(free), Ok(()));
    }
    let crd = |name: &str| {
        let version = "apiextensions.k8s.io/v1";
        let kind = "CustomResourceDefinition";
        object(version, kind, &json!({ "name": name }))
    };
    let ours = Decoration {
        reserved: vec![
            Object::try_from(crd("flights.yoke.cd"))
                .unwrap()
                .reference(),
        ],
        ..decoration()
    };
    let made = |value: Value| decorate(stages(&[value]), &ours, &scopes).map(drop);
    assert_eq!(made(crd("apps.example.dev")), Ok(()));
    // A namespace makes it no other object.
    let mut elsewhere = crd("flights.yoke.cd");
    elsewhere["metadata"]["namespace"] = "ns".into();
    for crd in [crd("flights.yoke.cd"), elsewhere] {
        let error = made(crd).unwrap_err().to_string();
        assert!(error.contains("leave it out"), "{error}");
    }
}
