use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Fingerprint;

fn parse(text: &str) -> Object {
    serde_json::from_str(text).unwrap()
}

#[test]
fn reads_what_the_api_server_sends() {
    let object = parse(
        r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"db","namespace":"default",
        "uid":"u","resourceVersion":"12","generation":2,"creationTimestamp":"2026-01-01T00:00:00Z",
        "deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"b":"2","a":"1"},"managedFields":[{"manager":"x"}]}}"#,
    );
    let metadata = object.metadata;
    assert_eq!(
        (
            metadata.name.as_str(),
            metadata.namespace.as_str(),
            metadata.uid.as_str()
        ),
        ("db", "default", "u")
    );
    assert_eq!(
        (metadata.resource_version.as_str(), metadata.generation),
        ("12", Some(2))
    );
    assert!(metadata.deletion_timestamp);
    assert_eq!(
        metadata.labels.pairs,
        [("b".into(), "2".into()), ("a".into(), "1".into())]
    );
}

#[test]
fn what_is_of_a_wrong_type_is_absent() {
    for wrong in [
        "null",
        "7",
        "-7",
        "1.5",
        "1e99",
        "true",
        "[]",
        "[{}]",
        "{}",
        r#"{"a":{"b":[1]}}"#,
        "18446744073709551615",
    ] {
        let text = format!(
            r#"{{"spec":{wrong},"metadata":{{"uid":{wrong},"resourceVersion":{wrong},"labels":{wrong},
            "annotations":{wrong},"deletionTimestamp":{wrong},"finalizers":{wrong},"name":"x"}}}}"#
        );
        let metadata = parse(&text).metadata;
        assert_eq!(
            (metadata.name.as_str(), metadata.uid.as_str()),
            ("x", ""),
            "{wrong}"
        );
        assert!(!metadata.deletion_timestamp);
        assert!(metadata.labels.pairs.is_empty(), "{wrong}");
    }
    let metadata = parse(r#"{"metadata":{"generation":"3","labels":{"a":1,"b":"2"}}}"#).metadata;
    assert_eq!(metadata.generation, None);
    assert_eq!(metadata.labels.pairs, [("b".into(), "2".into())]);
}

#[test]
fn pages() {
    let page: Page = serde_json::from_str(
        r#"{"metadata":{"resourceVersion":"9","continue":"abc","remainingItemCount":3},"items":[{"metadata":{"name":"a"}}]}"#,
    )
    .unwrap();
    assert_eq!(
        (
            page.metadata.resource_version.as_str(),
            page.metadata.next.as_str()
        ),
        ("9", "abc")
    );
    assert_eq!(page.items.len(), 1);
    let page: Page =
        serde_json::from_str(r#"{"metadata":{"resourceVersion":"9"},"items":null}"#).unwrap();
    assert!(page.items.is_empty() && page.metadata.next.is_empty());
}

#[test]
fn metadata_counts_whatever_its_order() {
    let hash = |metadata: Value| Fingerprint::of(&json!({ "metadata": metadata })).meta_hash;
    let base = hash(json!({"labels": {"a": "1", "b": "2"}, "finalizers": ["x", "y"]}));
    assert_eq!(
        base,
        hash(json!({"finalizers": ["x", "y"], "labels": {"b": "2", "a": "1"}, "annotations": {}}))
    );
    assert_eq!(
        base,
        hash(
            json!({"labels": {"a": "1", "b": "2"}, "finalizers": ["x", "y"], "annotations": null})
        )
    );
    for other in [
        json!({"labels": {"a": "2", "b": "1"}, "finalizers": ["x", "y"]}),
        json!({"labels": {"a": "1"}, "finalizers": ["x", "y"]}),
        json!({"annotations": {"a": "1", "b": "2"}, "finalizers": ["x", "y"]}),
        json!({"labels": {"a": "1", "b": "2"}, "finalizers": ["y", "x"]}),
        json!({"labels": {"a": "1", "b": "2"}, "ownerReferences": ["x", "y"]}),
        json!({"labels": {"a": "1", "b": "2"}, "finalizers": ["x", "y"], "ownerReferences": [{"uid": "u", "controller": true}]}),
        json!({}),
    ] {
        assert_ne!(base, hash(other.clone()), "{other}");
    }
    let revision = json!({"annotations": {"a": "1", "deployment.kubernetes.io/revision": "2"}});
    assert_eq!(hash(revision), hash(json!({"annotations": {"a": "1"}})));
    assert_ne!(
        hash(json!({"ownerReferences": [{"uid": "u", "controller": true}]})),
        hash(json!({"ownerReferences": [{"uid": "u", "controller": false}]})),
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,8}|generation|labels|uid", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn text_and_value_give_the_same_and_nothing_fails(metadata in prop::collection::btree_map(
        "name|uid|generation|resourceVersion|labels|annotations|ownerReferences|finalizers|deletionTimestamp|x", any_json(), 0..6
    )) {
        let object = json!({ "metadata": metadata });
        let parsed = parse(&object.to_string());
        prop_assert_eq!(Fingerprint::of_metadata(&parsed.metadata), Fingerprint::of(&object));
    }
}
