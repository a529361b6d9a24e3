use proptest::prelude::*;
use serde_json::json;

use super::*;

#[expect(
    clippy::needless_pass_by_value,
    reason = "helpers of tests take what json! makes"
)]
fn deployment(spec: Value) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" }, "spec": spec })
}

fn live(mut object: Value) -> Value {
    object["status"] = json!({ "replicas": 3 });
    for (field, value) in [
        ("uid", json!("u")),
        ("resourceVersion", json!("7")),
        ("generation", json!(2)),
        ("creationTimestamp", json!("2026-01-01T00:00:00Z")),
        ("managedFields", json!([])),
    ] {
        object["metadata"][field] = value;
    }
    object
}

/// What is shown of both sides; none where nothing differs.
fn sides(found: Option<Difference>) -> Option<(Value, Value)> {
    found.map(|found| (found.expected, found.actual))
}

#[test]
fn what_the_server_adds_is_no_drift() {
    let recorded = deployment(json!({ "replicas": 1 }));
    let served = live(deployment(json!({ "replicas": 1, "paused": false })));
    let mut there = served.clone();
    there["metadata"]["resourceVersion"] = json!("8");
    there["metadata"]["generation"] = json!(3);
    there["status"] = json!({});
    for scope in [Scope::Recorded, Scope::Everything] {
        let found = by_server(&recorded, served.clone(), there.clone(), "yoke", scope);
        assert_eq!(found, None, "{scope:?}");
    }
    assert_eq!(by_fields(&recorded, there, Scope::Recorded), None);
}

#[test]
fn only_what_the_record_names_is_shown() {
    let recorded = deployment(json!({ "replicas": 1, "template": { "a": 1 } }));
    let served = deployment(
        json!({ "replicas": 1, "paused": false, "template": { "a": 1, "b": 2 }, "theirs": 1 }),
    );
    let mut there = served.clone();
    there["spec"]["replicas"] = json!(5);
    let found = by_server(
        &recorded,
        live(served),
        live(there.clone()),
        "yoke",
        Scope::Recorded,
    );
    let (expected, actual) = sides(found).unwrap();
    assert_eq!(expected, recorded);
    assert_eq!(
        actual,
        deployment(json!({ "replicas": 5, "template": { "a": 1 } }))
    );
    let found = by_fields(&recorded, live(there), Scope::Recorded);
    assert_eq!(sides(found), Some((expected, actual)));
}

#[test]
fn what_is_gone_is_shown() {
    let recorded =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1", "b": "2" } });
    let there = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1" } });
    for found in [
        by_server(
            &recorded,
            live(recorded.clone()),
            live(there.clone()),
            "yoke",
            Scope::Recorded,
        ),
        by_fields(&recorded, live(there), Scope::Recorded),
    ] {
        let (expected, actual) = sides(found).unwrap();
        assert_eq!(expected["data"], json!({ "a": "1", "b": "2" }));
        assert_eq!(actual["data"], json!({ "a": "1" }));
    }
}

#[test]
fn everything_has_what_others_added() {
    let recorded = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1" } });
    let mut there = live(json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1" } }));
    there["data"]["extra"] = json!("y");
    there["metadata"]["managedFields"] = json!([
        { "manager": "kubectl", "operation": "Update", "fieldsV1": { "f:data": { "f:extra": {} } } },
    ]);
    let found = |scope| by_server(&recorded, there.clone(), there.clone(), "yoke", scope);
    assert_eq!(found(Scope::Recorded), None);
    let (expected, actual) = sides(found(Scope::Everything)).unwrap();
    assert_eq!(expected["data"], json!({ "a": "1" }));
    assert_eq!(actual["data"], json!({ "a": "1", "extra": "y" }));
    let by_fields = by_fields(&recorded, there.clone(), Scope::Everything);
    assert_eq!(
        sides(by_fields).unwrap().1["data"],
        json!({ "a": "1", "extra": "y" })
    );
}

#[test]
fn items_are_told_apart_by_name() {
    let spec = |items: Value| deployment(json!({ "containers": items }));
    let recorded = spec(json!([{ "name": "a", "image": "one" }, { "name": "b", "image": "two" }]));
    let served = spec(json!([
        { "name": "injected", "image": "x" }, { "name": "a", "image": "one", "tty": false },
        { "name": "b", "image": "two" },
    ]));
    let there = spec(json!([
        { "name": "a", "image": "one", "tty": false }, { "name": "b", "image": "changed" },
        { "name": "injected", "image": "y" },
    ]));
    let found = by_server(&recorded, served, there.clone(), "yoke", Scope::Recorded);
    let (expected, actual) = sides(found).unwrap();
    assert_eq!(expected, recorded);
    let changed =
        spec(json!([{ "name": "a", "image": "one" }, { "name": "b", "image": "changed" }]));
    assert_eq!(actual, changed);
    let found = by_fields(&recorded, there, Scope::Recorded);
    assert_eq!(sides(found), Some((expected, actual)));
}

#[test]
fn lists_without_names_that_differ_stay_whole() {
    let ports = |items: Value| deployment(json!({ "ports": items, "x": 1 }));
    let recorded = ports(json!([{ "port": 80 }, { "port": 81 }]));
    let served = ports(json!([{ "port": 80, "p": "TCP" }, { "port": 81, "p": "TCP" }]));
    let moved = ports(json!([{ "port": 81, "p": "TCP" }, { "port": 80, "p": "UDP" }]));
    let found = by_server(
        &recorded,
        served.clone(),
        moved.clone(),
        "yoke",
        Scope::Recorded,
    );
    assert_eq!(sides(found), Some((served.clone(), moved)));
    let mut other = served.clone();
    other["spec"]["x"] = json!(2);
    let found = by_server(&recorded, served, other, "yoke", Scope::Recorded);
    assert_eq!(sides(found).unwrap().0, recorded);
}

#[test]
fn quantities_and_empty_fields_without_the_server_r37() {
    let resources = |cpu: Value| {
        deployment(
            json!({ "containers": [{ "name": "a", "resources": { "limits": { "cpu": cpu } } }],
            "empty": {}, "none": null, "off": false, "sizes": { "cpu": "1000m" } }),
        )
    };
    let there = |cpu: &str, size: &str| {
        live(deployment(
            json!({ "containers": [{ "name": "a", "resources": { "limits": { "cpu": cpu } } }],
            "sizes": { "cpu": size } }),
        ))
    };
    let found = |recorded: &Value, there| by_fields(recorded, there, Scope::Recorded);
    assert_eq!(found(&resources(json!("1000m")), there("1", "1000m")), None);
    assert_eq!(found(&resources(json!(1)), there("1", "1000m")), None);
    assert!(found(&resources(json!("1000m")), there("2", "1000m")).is_some());
    // Elsewhere the same text is only itself: a ConfigMap may hold it.
    assert!(found(&resources(json!("1000m")), there("1", "1")).is_some());
}

#[test]
fn lists_without_names_and_the_server() {
    let service =
        |ports: Value| json!({ "apiVersion": "v1", "kind": "Service", "spec": { "ports": ports } });
    let recorded = service(json!([{ "port": 80 }, { "port": 81 }]));
    let there = |second: u16| {
        service(json!([{ "port": 80, "protocol": "TCP" }, { "port": second, "protocol": "TCP" }]))
    };
    assert_eq!(by_fields(&recorded, live(there(81)), Scope::Recorded), None);
    let found = by_fields(&recorded, live(there(82)), Scope::Recorded);
    assert_eq!(
        sides(found).unwrap().1,
        service(json!([{ "port": 80 }, { "port": 82 }]))
    );
    let one = service(json!([{ "port": 80, "protocol": "TCP" }]));
    assert!(by_fields(&recorded, live(one), Scope::Recorded).is_some());
    let role = |rules: Value| json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules });
    let found = by_fields(&role(json!([])), live(role(Value::Null)), Scope::Recorded);
    assert_eq!(found, None);
}

#[test]
fn secrets_given_as_text() {
    let recorded = json!({ "apiVersion": "v1", "kind": "Secret", "stringData": { "k": "v" } });
    let there = live(
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": { "k": "dg==" } }),
    );
    assert_eq!(
        by_server(
            &recorded,
            there.clone(),
            there.clone(),
            "yoke",
            Scope::Recorded
        ),
        None
    );
    assert_eq!(by_fields(&recorded, there.clone(), Scope::Recorded), None);
    let mut other = there.clone();
    other["data"]["k"] = json!("dw==");
    let (expected, actual) =
        sides(by_server(&recorded, there, other, "yoke", Scope::Recorded)).unwrap();
    assert_eq!(
        (&expected["data"]["k"], &actual["data"]["k"]),
        (&json!("dg=="), &json!("dw=="))
    );
    assert_eq!(
        format!(
            "{:?}",
            Difference {
                expected: Value::Null,
                actual: Value::Null
            }
        ),
        "Difference { .. }"
    );
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]|name", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever three states look like: nothing panics, the same state never differs, and what is shown differs.
    #[test]
    fn any_three_states(recorded in json_value(), applied in json_value(), there in json_value()) {
        let object = |value| json!({ "apiVersion": "v1", "kind": "X", "metadata": {}, "spec": value });
        let (recorded, applied, there) = (object(recorded), object(applied), object(there));
        for scope in [Scope::Recorded, Scope::Everything] {
            let same = by_server(&recorded, there.clone(), there.clone(), "yoke", scope);
            prop_assert_eq!(same, None);
            let found = by_server(&recorded, applied.clone(), there.clone(), "yoke", scope);
            prop_assert!(found.is_none_or(|found| found.expected != found.actual));
        }
        prop_assert_eq!(by_fields(&there, there.clone(), Scope::Recorded), None);
    }
}
