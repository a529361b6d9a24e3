//! Fields of others that become ours, and those that do not.

use serde_json::json;

use super::*;

fn entry(manager: &str, operation: &str, fields: impl Into<Value>) -> Value {
    let fields = fields.into();
    json!({ "manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields })
}

/// The fields of the entries by manager and operation.
fn fields(managed: Option<&Value>) -> Value {
    let mut all = Map::new();
    for entry in managed.into_iter().filter_map(Value::as_array).flatten() {
        let name = format!(
            "{} {}",
            entry["manager"].as_str().expect("a manager"),
            entry["operation"].as_str().expect("an operation")
        );
        all.insert(name, entry["fieldsV1"].clone());
    }
    Value::Object(all)
}

#[test]
fn what_was_applied_by_the_client_becomes_ours() {
    let ours = entry("yoke", "Apply", json!({ "f:data": { "f:a": {} } }));
    let other = entry("other", "Update", json!({ "f:data": { "f:o": {} } }));
    let kubectl = |fields: Value| entry("kubectl-client-side-apply", "Update", fields);
    let check = |managed: Value, expect: Value| {
        let got = adopted(&managed, "yoke");
        assert_eq!(fields(got.as_ref()), expect, "{managed}");
    };
    let legacy = json!({ "f:data": { ".": {}, "f:a": {}, "f:legacy": {} }, "f:metadata": { "f:annotations": {} } });
    check(
        json!([ours, kubectl(legacy.clone()), other]),
        json!({
            "yoke Apply": { "f:data": { ".": {}, "f:a": {}, "f:legacy": {} }, "f:metadata": { "f:annotations": {} } },
            "other Update": { "f:data": { "f:o": {} } },
        }),
    );
    // What an object had before anybody applied it.
    check(
        json!([
            ours,
            entry("before-first-apply", "Update", json!({ "f:x": {} }))
        ]),
        json!({ "yoke Apply": { "f:data": { "f:a": {} }, "f:x": {} } }),
    );
    // An entry of another API version says nothing that we could own, and goes.
    let mut foreign = kubectl(json!({ "f:y": {} }));
    foreign["apiVersion"] = "v2".into();
    check(
        json!([ours, foreign]),
        json!({ "yoke Apply": { "f:data": { "f:a": {} } } }),
    );
    // Nothing to take, or nobody to take it.
    check(json!([ours, other]), json!({}));
    check(json!([kubectl(legacy.clone())]), json!({}));
    let mut status = kubectl(legacy.clone());
    status["subresource"] = "status".into();
    check(json!([ours, status]), json!({}));
    check(
        json!([ours, entry("kubectl-client-side-apply", "Apply", legacy)]),
        json!({}),
    );
    check(Value::Null, json!({}));
}

fn ports(items: &[(&str, u16)]) -> Value {
    let items: Vec<Value> = items
        .iter()
        .map(|(name, port)| json!({ "name": name, "port": port }))
        .collect();
    json!({ "spec": { "ports": items } })
}

/// A manager's ports.
fn owns(ports: &[u16]) -> Value {
    let mut list = Map::new();
    list.insert(".".into(), json!({}));
    for port in ports {
        list.insert(
            format!("k:{{\"port\":{port},\"protocol\":\"TCP\"}}"),
            json!({ ".": {}, "f:name": {}, "f:port": {} }),
        );
    }
    json!({ "f:spec": { "f:ports": list } })
}

/// The ports that an entry of managed fields names.
fn owned(fields: &Value) -> Vec<u64> {
    let list = fields["f:spec"]["f:ports"].as_object();
    let keys = list.into_iter().flat_map(Map::keys);
    keys.filter_map(parse_key)
        .filter_map(|(_, key)| key["port"].as_u64())
        .collect()
}

#[test]
fn what_stands_in_the_place_of_ours_becomes_ours() {
    let check = |ours: &[u16],
                 theirs: &[u16],
                 wanted: &Value,
                 recorded: Option<&Value>,
                 expect: Option<(&[u64], &[u64])>| {
        let managed = json!([
            entry("yoke", "Apply", owns(ours)),
            entry("editor", "Update", owns(theirs)),
            entry("istio", "Apply", owns(&[15000])),
        ]);
        let got = reclaimed(&managed, "yoke", wanted, recorded);
        let what = format!("{ours:?} {theirs:?} {wanted}");
        let Some((ours, theirs)) = expect else {
            assert_eq!(got, None, "{what}");
            return;
        };
        let got = fields(got.as_ref());
        assert_eq!(owned(&got["yoke Apply"]), ours, "{what}");
        assert_eq!(owned(&got["editor Update"]), theirs, "{what}");
        assert_eq!(owned(&got["istio Apply"]), [15000], "{what}");
    };
    let http = ports(&[("http", 80)]);
    let both = ports(&[("http", 80), ("admin", 81)]);
    // Our port was given another number.
    check(&[], &[8080], &http, None, Some((&[8080], &[])));
    check(&[], &[8080], &http, Some(&http), Some((&[8080], &[])));
    check(&[81], &[8080], &both, Some(&both), Some((&[81, 8080], &[])));
    // Somebody added one, and ours is there: theirs.
    check(&[80], &[9090], &http, None, None);
    check(&[80], &[9090], &http, Some(&http), None);
    // We add one, and somebody added another: only if the two do not go together.
    check(&[80], &[9090], &both, Some(&http), None);
    check(&[80], &[9090], &both, None, Some((&[80, 9090], &[])));
    // We want none, or they have none.
    check(&[80], &[80], &http, None, None);
    check(&[80], &[9090], &json!({ "spec": {} }), None, None);
}

#[test]
fn lists_within_entries_are_found_too() {
    let container = |ports: Value| json!({ "f:spec": { "f:containers": { "k:{\"name\":\"c\"}": { ".": {}, "f:ports": ports } } } });
    let managed = json!([
        entry("yoke", "Apply", container(json!({ ".": {} }))),
        entry(
            "editor",
            "Update",
            container(json!({ "k:{\"containerPort\":8080}": { ".": {} } }))
        ),
    ]);
    let wanted =
        json!({ "spec": { "containers": [{ "name": "c", "ports": [{ "containerPort": 80 }] }] } });
    let got = reclaimed(&managed, "yoke", &wanted, Some(&wanted));
    let got = fields(got.as_ref());
    let path =
        "/yoke Apply/f:spec/f:containers/k:{\"name\":\"c\"}/f:ports/k:{\"containerPort\":8080}";
    assert!(got.pointer(path).is_some(), "{got}");
    let left = &got["editor Update"]["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"];
    assert_eq!(*left, json!({ ".": {} }), "no empty field is left");
    // The container itself is gone, and another one is there: the same a floor up.
    let renamed = json!([
        entry("yoke", "Apply", json!({ "f:spec": {} })),
        entry(
            "editor",
            "Update",
            json!({ "f:spec": { "f:containers": { "k:{\"name\":\"d\"}": {} } } })
        ),
    ]);
    let got = reclaimed(&renamed, "yoke", &wanted, Some(&wanted));
    let got = fields(got.as_ref());
    assert_eq!(got["editor Update"], Value::Null, "nothing is left of it");
}

#[test]
fn lists_of_objects_are_told() {
    for (value, expect) in [
        (json!({ "data": { "k": "v" } }), false),
        (json!({ "metadata": { "finalizers": ["a"] } }), false),
        (json!({ "spec": { "ports": [] } }), false),
        (json!({ "spec": { "ports": [{ "port": 80 }] } }), true),
        (json!({ "a": [[{ "b": 1 }]] }), true),
    ] {
        assert_eq!(has_entries(&value), expect, "{value}");
    }
}
