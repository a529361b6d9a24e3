use serde_json::json;

use super::*;
use crate::desired;

fn judge(schema: &Value, object: &Value) -> Judgement {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.x.dev" },
        "spec": { "group": "x.dev", "names": { "kind": "Widget" }, "versions": [
            { "name": "v1", "served": true, "schema": { "openAPIV3Schema": schema } },
            { "name": "v0", "served": false },
        ] },
    });
    let stages = desired::parse(json!([crd, object]).to_string().as_bytes()).unwrap();
    let definitions = Definitions::of(stages.objects());
    let widget = stages.objects().find(|object| object.kind() == "Widget");
    definitions.judge(widget.unwrap()).unwrap()
}

fn widget(spec: &Value) -> Value {
    json!({ "apiVersion": "x.dev/v1", "kind": "Widget", "metadata": { "name": "w" }, "spec": spec })
}

fn spec_schema(spec: &Value) -> Value {
    json!({ "type": "object", "required": ["spec", "status"], "properties": {
        "apiVersion": { "type": "string" }, "metadata": { "type": "object" },
        "spec": spec, "status": { "type": "object" },
    } })
}

/// One field `f` of this schema, with this value.
fn check(field: &Value, value: &Value, words: Option<&str>) {
    let schema = spec_schema(&json!({ "type": "object", "properties": { "f": field } }));
    let judgement = judge(&schema, &widget(&json!({ "f": value })));
    match words {
        None => assert_eq!(judgement.faults, Vec::<String>::new(), "{field} {value}"),
        Some(words) => {
            let [fault] = &judgement.faults[..] else {
                panic!("{field} {value}: {judgement:?}")
            };
            assert!(fault.starts_with("spec.f"), "{fault}");
            assert!(fault.contains(words), "{field} {value}: {fault}");
        }
    }
}

#[test]
fn values_are_held_against_their_schema() {
    check(&json!({ "type": "string" }), &json!("a"), None);
    check(&json!({ "type": "string" }), &json!(1), Some("string"));
    check(&json!({ "type": "integer" }), &json!(1), None);
    check(&json!({ "type": "integer" }), &json!(1.0), None);
    check(&json!({ "type": "integer" }), &json!(1.5), Some("integer"));
    check(&json!({ "type": "number" }), &json!(1), None);
    check(
        &json!({ "type": "string", "enum": ["a", "b"] }),
        &json!("b"),
        None,
    );
    check(
        &json!({ "type": "string", "enum": ["a", "b"] }),
        &json!("c"),
        Some("\"a\""),
    );
    check(
        &json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true }),
        &json!(2),
        None,
    );
    check(
        &json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true }),
        &json!(1),
        Some("1"),
    );
    check(
        &json!({ "type": "string", "pattern": "^[a-z]+$" }),
        &json!("ab"),
        None,
    );
    check(
        &json!({ "type": "string", "pattern": "^[a-z]+$" }),
        &json!("a1"),
        Some("^[a-z]+$"),
    );
    check(
        &json!({ "type": "array", "items": { "type": "string" } }),
        &json!(["a", 1]),
        Some("[1]"),
    );
    check(
        &json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } }),
        &json!(["a", "a"]),
        Some("unique"),
    );
    check(
        &json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
        &json!({ "x": "y" }),
        Some("spec.f.x"),
    );
    check(
        &json!({ "x-kubernetes-int-or-string": true }),
        &json!("80"),
        None,
    );
    check(
        &json!({ "x-kubernetes-int-or-string": true }),
        &json!(80),
        None,
    );
    check(
        &json!({ "x-kubernetes-int-or-string": true }),
        &json!(true),
        Some("integer"),
    );
    check(
        &json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        &json!({ "b": 1 }),
        None,
    );
    check(
        &json!({ "type": "object", "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        &json!({ "c": 1 }),
        Some("anyOf"),
    );
}

#[test]
fn nulls_and_defaults_are_as_the_server_takes_them() {
    let text = json!({ "type": "string" });
    check(&text, &json!(null), Some("string"));
    let nullable = json!({ "type": "string", "nullable": true });
    check(&nullable, &json!(null), None);
    let nullable = json!({ "type": "string", "nullable": true, "enum": ["a"] });
    check(&nullable, &json!(null), Some("\"a\""));
    let nullable = json!({ "type": "string", "nullable": true, "enum": ["a", null] });
    check(&nullable, &json!(null), None);
    for (further, wrong) in [
        (
            json!({ "anyOf": [{ "enum": ["a"] }, { "enum": ["b"] }] }),
            "c",
        ),
        (json!({ "allOf": [{ "enum": ["a"] }] }), "c"),
        (
            json!({ "oneOf": [{ "enum": ["a"] }, { "enum": ["b"] }] }),
            "c",
        ),
        (json!({ "not": { "enum": ["c", null] } }), "c"),
    ] {
        let mut nullable = further.clone();
        nullable["type"] = json!("string");
        nullable["nullable"] = json!(true);
        check(&nullable, &json!(null), None);
        check(&nullable, &json!("a"), None);
        check(&nullable, &json!(wrong), Some(""));
    }
    let defaulted = json!({ "type": "string", "default": "x" });
    check(&defaulted, &json!(null), None);
    let anything = json!({ "x-kubernetes-preserve-unknown-fields": true });
    check(&anything, &json!(null), None);
    let map = |inner: Value| json!({ "type": "object", "additionalProperties": inner });
    check(&map(text.clone()), &json!({ "a": null }), Some("string"));
    check(
        &map(json!({ "type": "string", "nullable": true })),
        &json!({ "a": null }),
        None,
    );
    let list = json!({ "type": "array", "items": text });
    check(&list, &json!([null]), Some("[0]"));
    let with =
        |inner: Value| json!({ "type": "object", "required": ["a"], "properties": { "a": inner } });
    for value in [json!({}), json!({ "a": null })] {
        check(&with(defaulted.clone()), &value, None);
        check(&with(text.clone()), &value, Some("a"));
    }
}

#[test]
fn fields_must_be_declared_where_any_is() {
    let unknown = json!({ "unknown": 1 });
    let words = Some("does not declare unknown");
    check(&json!({ "type": "object" }), &unknown, None);
    let declared = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    check(&declared, &unknown, words);
    let mut kept = declared.clone();
    kept["x-kubernetes-preserve-unknown-fields"] = true.into();
    check(&kept, &unknown, None);
    check(&kept, &json!({ "a": 1 }), Some("string"));
    let list = json!({ "type": "array", "items": declared });
    check(&list, &json!([{ "a": "b" }, unknown]), words);
    // Parts name only what they are about.
    let mut parts = declared.clone();
    parts["anyOf"] =
        json!([{ "properties": { "b": {} }, "required": ["b"] }, { "required": ["a"] }]);
    check(&parts, &json!({ "a": "b" }), None);
    let mut embedded = declared.clone();
    embedded["x-kubernetes-embedded-resource"] = true.into();
    let object = json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "x" }, "a": "b" });
    check(&embedded, &object, None);
    // The same of the whole object.
    let mut object = widget(&json!({}));
    object["top"] = json!(1);
    let judgement = judge(&spec_schema(&json!({ "type": "object" })), &object);
    assert_eq!(
        judgement.faults,
        ["the object: its schema does not declare top"]
    );
}

#[test]
fn what_is_missing_and_what_was_not_looked_at_is_said() {
    let schema = spec_schema(&json!({ "type": "object", "required": ["f"] }));
    let judgement = judge(&schema, &widget(&json!({})));
    assert_eq!(judgement.faults, ["spec: \"f\" is a required property"]);
    let schema = spec_schema(&json!({
        "type": "object", "x-kubernetes-validations": [{ "rule": "false" }],
        "properties": { "f": { "type": "string", "format": "date-time", "pattern": "(?<!a)b" } },
    }));
    let judgement = judge(&schema, &widget(&json!({ "f": "b" })));
    assert_eq!(judgement.faults, Vec::<String>::new());
    assert_eq!(judgement.unchecked.len(), 3, "{:?}", judgement.unchecked);
    // Of the status nothing is sent.
    let mut schema = spec_schema(&json!({ "type": "object" }));
    schema["properties"]["status"] = json!({ "x-kubernetes-validations": [{ "rule": "false" }] });
    let judgement = judge(&schema, &widget(&json!({})));
    assert_eq!(judgement, Judgement::default());
}

#[test]
fn a_version_that_is_not_served_is_wrong() {
    for version in ["v0", "v2"] {
        let mut object = widget(&json!({}));
        object["apiVersion"] = format!("x.dev/{version}").into();
        let judgement = judge(&json!({ "type": "object" }), &object);
        assert_eq!(
            judgement.faults,
            ["apiVersion: widgets.x.dev serves v1 only"]
        );
    }
}

#[test]
fn values_stay_out_of_the_words() {
    let schema = spec_schema(
        &json!({ "type": "object", "properties": { "f": { "type": "integer" }, "g": { "type": "string", "pattern": "^a$" } } }),
    );
    let judgement = judge(&schema, &widget(&json!({ "f": "hunter2", "g": "hunter2" })));
    assert_eq!(judgement.faults.len(), 2);
    assert!(
        !judgement.faults.join(" ").contains("hunter2"),
        "{judgement:?}"
    );
}

#[test]
fn faults_are_counted_out() {
    let schema =
        spec_schema(&json!({ "type": "object", "additionalProperties": { "type": "integer" } }));
    let fields: serde_json::Map<String, Value> =
        (0..100).map(|i| (format!("f{i}"), json!("no"))).collect();
    assert_eq!(
        judge(&schema, &widget(&Value::Object(fields))).faults.len(),
        MAX_FAULTS
    );
}

#[test]
fn schemas_that_are_none_are_left_to_the_server() {
    for schema in [
        json!(null),
        json!("x"),
        json!({ "type": "nonsense" }),
        json!({ "type": 1 }),
        json!({ "properties": [] }),
        json!({ "required": "spec" }),
        json!({ "allOf": [1, { "minimum": "x" }] }),
    ] {
        let judgement = judge(&schema, &widget(&json!({ "f": 1 })));
        assert_eq!(judgement.faults, Vec::<String>::new(), "{schema}");
    }
}
