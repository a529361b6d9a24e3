use serde_json::json;

use super::*;

/// An object as the server keeps it after we applied it: with a default, a field of somebody else and a status.
fn live() -> Value {
    json!({
        "apiVersion": "x.dev/v1", "kind": "Thing",
        "metadata": {
            "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "creationTimestamp": "t",
            "labels": { "ours": "1", "theirs": "2" },
            "managedFields": [
                {
                    "manager": "yoke", "operation": "Apply", "apiVersion": "x.dev/v1", "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:metadata": { "f:labels": { "f:ours": {} } },
                        "f:spec": {
                            "f:size": {}, "f:whole": {}, "f:empty": {},
                            "f:set": { "v:\"x\"": {}, "v:\"y\"": {} },
                            "f:ports": {
                                "k:{\"name\":\"one\"}": { ".": {}, "f:name": {}, "f:port": {} },
                                "k:{\"name\":\"two\"}": { ".": {}, "f:name": {}, "f:port": {} },
                            },
                        },
                    },
                },
                { "manager": "other", "operation": "Update", "apiVersion": "x.dev/v1", "fieldsType": "FieldsV1",
                    "fieldsV1": { "f:metadata": { "f:labels": { "f:theirs": {} } } } },
                { "manager": "yoke", "operation": "Apply", "apiVersion": "x.dev/v1", "fieldsType": "FieldsV1",
                    "subresource": "status", "fieldsV1": { "f:status": { "f:is": {} } } },
            ],
        },
        "spec": {
            "size": 1, "whole": { "a": [1, { "b": null }] }, "empty": {}, "set": ["x", "y"], "default": true,
            "ports": [{ "name": "one", "port": 1, "protocol": "TCP" }, { "name": "two", "port": 2 }],
        },
        "status": { "is": "fine" },
    })
}

/// What was applied.
fn desired() -> Value {
    json!({
        "apiVersion": "x.dev/v1", "kind": "Thing",
        "metadata": { "name": "a", "namespace": "n", "labels": { "ours": "1" } },
        "spec": {
            "size": 1, "whole": { "a": [1, { "b": null }] }, "empty": {}, "set": ["x", "y"],
            "ports": [{ "name": "one", "port": 1 }, { "name": "two", "port": 2 }],
        },
    })
}

#[test]
fn what_is_as_it_was_applied_is_the_same() {
    assert!(is_same(&live(), &desired(), "yoke"));
    assert!(!is_same(&live(), &desired(), "other"));
    let mut bare = live();
    bare["metadata"]["managedFields"] = Value::Null;
    assert!(!is_same(&bare, &desired(), "yoke"));
}

#[test]
fn whatever_is_wanted_otherwise_is_not() {
    let check = |path: &str, value: Value| {
        let mut desired = desired();
        let (parent, key) = path.rsplit_once('/').unwrap();
        desired.pointer_mut(parent).unwrap()[key] = value;
        assert!(!is_same(&live(), &desired, "yoke"), "{path}: {desired}");
    };
    check("/apiVersion", json!("x.dev/v2"));
    check("/kind", json!("Other"));
    check("/metadata/name", json!("b"));
    check("/metadata/namespace", json!("m"));
    check("/metadata/labels/ours", json!("2"));
    // There, but somebody else's: we would own it, too.
    check("/metadata/labels/theirs", json!("2"));
    check("/metadata/annotations", json!({}));
    check("/metadata/finalizers", json!(["f"]));
    check("/spec/size", json!(2));
    check("/spec/size", json!("1"));
    check("/spec/size", json!(1.0));
    check("/spec/size", Value::Null);
    check("/spec/default", json!(true));
    check("/spec/whole", json!({ "a": [1] }));
    check("/spec/empty", json!({ "a": 1 }));
    check("/spec/empty", Value::Null);
    check("/spec/set", json!(["x"]));
    check("/spec/set", json!(["y", "x"]));
    check("/spec/set", json!(["x", "x"]));
    check("/spec/set", json!(["x", "z"]));
    check("/spec/set", json!("x"));
    check("/spec/ports", json!([]));
    check("/spec/ports", json!([{ "name": "one", "port": 1 }]));
    check(
        "/spec/ports",
        json!([{ "name": "two", "port": 2 }, { "name": "one", "port": 1 }]),
    );
    check(
        "/spec/ports",
        json!([{ "name": "one", "port": 1 }, { "name": "two", "port": 3 }]),
    );
    check(
        "/spec/ports",
        json!([{ "name": "one", "port": 1 }, { "port": 2 }]),
    );
    check(
        "/spec/ports",
        json!([{ "name": "one", "port": 1, "protocol": "TCP" }, { "name": "two", "port": 2 }]),
    );
    check("/spec/ports", json!([1, 2]));
    check("/spec/ports", json!({ "one": 1, "two": 2 }));
}

#[test]
fn whatever_is_there_otherwise_is_not() {
    let check = |path: &str, value: Value| {
        let mut live = live();
        let (parent, key) = path.rsplit_once('/').unwrap();
        match live.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
            fields => fields[key] = value,
        }
        assert!(!is_same(&live, &desired(), "yoke"), "{path}: {live}");
    };
    check("/metadata/labels", json!({}));
    check("/metadata/labels/ours", json!("3"));
    check("/spec", Value::Null);
    check("/spec/size", json!(3));
    check("/spec/empty", json!({ "a": 1 }));
    check("/spec/whole/a", json!([1]));
    check("/spec/set", json!(["x", "y", "z"]));
    check("/spec/set", json!(["z", "x", "y"]));
    check("/spec/ports/1", json!({ "name": "two", "port": 9 }));
    check(
        "/spec/ports",
        json!([{ "name": "one", "port": 1 }, { "name": "two", "port": 2 }, { "name": "three" }]),
    );
    // Another one took a field over, or we owned one more: it would go.
    let ours = "/metadata/managedFields/0/fieldsV1";
    let spec = |name: &str| format!("{ours}/f:spec/{name}");
    check(&spec("f:more"), json!({}));
    check(&spec("f:size"), json!({ "f:a": {} }));
    check(&spec("f:size"), Value::Null);
    check(&spec("f:set"), json!({ "v:\"x\"": {} }));
    check(
        &spec("f:ports"),
        json!({ "k:{\"name\":\"one\"}": { ".": {}, "f:name": {}, "f:port": {} } }),
    );
    check(&format!("{ours}/f:metadata"), json!({}));
    check("/metadata/managedFields/0/apiVersion", json!("x.dev/v0"));
    check("/metadata/managedFields/0/manager", json!("other"));
    check("/metadata/managedFields/0/operation", json!("Update"));
    check("/metadata/managedFields/0/subresource", json!("scale"));
    let double = live()["metadata"]["managedFields"][0].clone();
    check("/metadata/managedFields/1", double);
}
