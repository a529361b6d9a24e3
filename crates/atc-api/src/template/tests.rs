use super::*;
use serde_json::json;

fn template(value: &Value) -> Template {
    serde_json::from_value(value.clone()).unwrap()
}

fn sample() -> Value {
    json!({
        "group": "accept.dev", "scope": "Namespaced",
        "names": { "plural": "samples", "kind": "Sample" },
        "versions": [
            { "name": "v1", "served": true, "storage": false },
            { "name": "v2", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } },
        ],
    })
}

#[test]
fn names_its_parts() {
    let template = template(&sample());
    assert_eq!(
        (template.group(), template.kind(), template.plural()),
        ("accept.dev", "Sample", "samples")
    );
    assert_eq!(template.crd_name(), "samples.accept.dev");
    assert!(template.is_namespaced());
    let names: Vec<_> = template
        .versions()
        .map(|v| (v.name(), v.is_served(), v.is_storage()))
        .collect();
    assert_eq!(names, [("v1", true, false), ("v2", true, true)]);
    let stored = template.storage_version().unwrap();
    assert_eq!(
        (stored.name(), stored.schema()),
        ("v2", Some(&json!({ "type": "object" })))
    );
}

#[test]
fn storage_is_one_version_or_none() {
    let check = |storage: [Value; 2], expect: Option<&str>| {
        let mut value = sample();
        for (i, storage) in storage.into_iter().enumerate() {
            value["versions"][i]["storage"] = storage;
        }
        assert_eq!(
            template(&value)
                .storage_version()
                .map(TemplateVersion::name),
            expect
        );
    };
    check([json!(true), json!(false)], Some("v1"));
    check([json!(false), json!(false)], None);
    check([json!(true), json!(true)], None);
    check([json!("true"), json!(null)], None);
}

#[test]
fn odd_shapes_are_empty_not_fatal() {
    for odd in [
        json!({}),
        json!({ "names": [], "versions": {}, "group": 1 }),
        json!({ "versions": [1, null, []] }),
    ] {
        let template = template(&odd);
        assert_eq!(
            (
                template.group(),
                template.kind(),
                template.crd_name().as_str()
            ),
            ("", "", ".")
        );
        assert_eq!(template.versions().count(), 0);
        assert_eq!(Value::Object(template.to_spec()), odd);
    }
    assert!(serde_json::from_value::<Template>(json!([])).is_err());
}

#[test]
fn keeps_every_word() {
    let text = r#"{"versions":[{"schema":{"openAPIV3Schema":{"x-own":{"n":9123456789012345678,"f":1.0},"default":{"a":null},"additionalProperties":false}}}],"later":{"b":1,"a":2}}"#;
    let template: Template = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&template).unwrap(), text);
    assert_eq!(serde_json::to_string(&template.to_spec()).unwrap(), text);
}

#[test]
fn a_bundle_of_numbers_becomes_base64() {
    let check = |bundle: Value, expect: Value| {
        let mut spec = sample();
        spec["conversion"] = json!({ "webhook": { "clientConfig": { "caBundle": bundle } } });
        let sent = template(&spec).to_spec();
        assert_eq!(
            sent["conversion"]["webhook"]["clientConfig"]["caBundle"],
            expect
        );
    };
    check(json!([97, 98, 99]), json!("YWJj"));
    check(json!([]), json!(""));
    check(json!("YWJj"), json!("YWJj"));
    check(json!([256]), json!([256]));
    check(json!([-1, "a"]), json!([-1, "a"]));
}
