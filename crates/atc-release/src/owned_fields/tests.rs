use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "metadata": {
            "name": "d",
            "labels": {"ours": "1", "theirs": "2"},
            "finalizers": ["ours", "theirs"],
            "managedFields": [
                {"manager": "yoke", "operation": "Apply", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:ours": {}}, "f:finalizers": {"v:\"ours\"": {}}},
                    "f:spec": {
                        "f:replicas": {},
                        "f:selector": {},
                        "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:image": {}}},
                    },
                }},
                {"manager": "yoke", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}},
                {"manager": "other", "operation": "Apply", "fieldsV1": {"f:spec": {"f:paused": {}}}},
            ],
        },
        "spec": {
            "replicas": 2, "paused": false, "selector": {"app": "d"},
            "containers": [{"name": "a", "image": "i", "pull": "Always"}, {"name": "b", "image": "j"}],
        },
        "status": {"ready": 1},
    })
}

#[test]
fn what_is_the_managers_and_what_is_not() {
    let check = |change: &dyn Fn(&mut Value), expect: &[&str]| {
        let mut new = object();
        change(&mut new);
        assert_eq!(changed(&object(), &new, "yoke"), expect, "{new}");
    };
    check(&|_| {}, &[]);
    check(
        &|new| new["spec"]["replicas"] = json!(3),
        &[".spec.replicas"],
    );
    check(&|new| new["spec"]["paused"] = json!(true), &[]);
    check(&|new| new["spec"]["more"] = json!(true), &[]);
    check(&|new| new["status"]["ready"] = json!(0), &[]);
    check(
        &|new| new["spec"]["selector"]["x"] = json!("y"),
        &[".spec.selector"],
    );
    check(&|new| new["metadata"]["labels"]["theirs"] = json!("3"), &[]);
    check(
        &|new| new["metadata"]["labels"]["ours"] = json!("3"),
        &[".metadata.labels.ours"],
    );
    check(
        &|new| new["metadata"]["labels"] = Value::Null,
        &[".metadata.labels.ours"],
    );
    check(&|new| new["metadata"]["finalizers"] = json!(["ours"]), &[]);
    check(
        &|new| new["metadata"]["finalizers"] = json!(["theirs"]),
        &[".metadata.finalizers[]"],
    );
    check(
        &|new| new["spec"]["containers"][0]["pull"] = json!("Never"),
        &[],
    );
    check(
        &|new| new["spec"]["containers"][1]["image"] = json!("x"),
        &[],
    );
    check(
        &|new| new["spec"]["containers"][0]["image"] = json!("x"),
        &[".spec.containers[{\"name\":\"a\"}].image"],
    );
    check(
        &|new| new["spec"]["containers"] = json!([{"name": "b", "image": "j"}]),
        &[".spec.containers[{\"name\":\"a\"}]"],
    );
    // Order alone is no change of an entry with a key.
    check(
        &|new| new["spec"]["containers"].as_array_mut().unwrap().reverse(),
        &[],
    );
    check(
        &|new| new["spec"] = Value::Null,
        &[".spec.replicas", ".spec.selector", ".spec.containers"],
    );
}

#[test]
fn taking_fields_off_the_manager_is_a_change() {
    let check = |change: &dyn Fn(&mut Value), expect: &[&str]| {
        let mut new = object();
        change(&mut new["metadata"]["managedFields"]);
        assert_eq!(changed(&object(), &new, "yoke"), expect, "{new}");
    };
    let lost = [MANAGED];
    check(&|_| {}, &[]);
    check(&|managed| *managed = json!([]), &lost);
    check(&|managed| *managed = json!([{}]), &lost);
    check(&|managed| *managed = Value::Null, &lost);
    check(&|managed| managed[0]["manager"] = json!("other"), &lost);
    check(&|managed| managed[0]["operation"] = json!("Update"), &lost);
    check(
        &|managed| managed[0]["subresource"] = json!("status"),
        &lost,
    );
    check(&|managed| managed[0]["apiVersion"] = json!("v0"), &lost);
    let field = |managed: &mut Value, path: &str, fields: Option<Value>| {
        let (parent, key) = path.rsplit_once('/').unwrap();
        let fields_v1 = &mut managed[0]["fieldsV1"];
        let parent = fields_v1.pointer_mut(parent).unwrap();
        let parent = parent.as_object_mut().unwrap();
        match fields {
            Some(fields) => parent.insert(key.into(), fields),
            None => parent.shift_remove(key),
        };
    };
    let container = "/f:spec/f:containers/k:{\"name\":\"a\"}";
    for path in [
        "/f:spec/f:replicas",
        "/f:spec/f:containers",
        "/f:metadata/f:finalizers",
        &format!("{container}/f:image"),
    ] {
        check(&|managed| field(managed, path, None), &lost);
    }
    // What was held as a whole, by a part that is not there.
    let part = json!({ "f:none": {} });
    check(
        &|managed| field(managed, "/f:spec/f:selector", Some(part.clone())),
        &lost,
    );
    // The other way round holds more, and so does a further field.
    check(&|managed| field(managed, container, Some(json!({}))), &[]);
    check(
        &|managed| field(managed, "/f:spec/f:more", Some(json!({}))),
        &[],
    );
    check(
        &|managed| field(managed, &format!("{container}/."), None),
        &[],
    );
    check(&|managed| managed.as_array_mut().unwrap().truncate(1), &[]);
    check(&|managed| managed[2]["fieldsV1"] = json!({}), &[]);
    // Whoever changes a value gets the field with it: the value is told.
    let mut new = object();
    new["spec"]["replicas"] = json!(3);
    new["metadata"]["managedFields"] = json!([]);
    assert_eq!(changed(&object(), &new, "yoke"), [".spec.replicas"]);
}

#[test]
fn who_owns_a_field() {
    assert!(owns(&object(), &["spec", "replicas"], "yoke"));
    assert!(!owns(&object(), &["spec", "paused"], "yoke"));
    assert!(owns(&object(), &["spec", "paused"], "other"));
    assert!(!owns(&json!({}), &["spec"], "yoke"));
}

proptest::proptest! {
    #[test]
    fn no_input_panics(text in "[ -~]{0,40}", key in "(f:|k:|v:|i:)?[ -~]{0,10}") {
        let fields = json!({ key.clone(): { key: {} } });
        let value = serde_json::from_str(&text).unwrap_or(json!(text));
        let object = json!({"metadata": {"managedFields": [
            {"manager": "m", "operation": "Apply", "fieldsV1": fields},
        ]}, "spec": value});
        let _ = changed(&object, &value, "m");
        let _ = changed(&object, &object["spec"], "m");
    }
}
