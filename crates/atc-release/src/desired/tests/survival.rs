//! Values survive notation, record and text.

use super::*;

#[test]
fn notation_does_not_count() {
    let json = r#"{"kind":"ConfigMap","data":{"b":"2","a":"1"},"metadata":{"labels":{"x":""},"name":"a"},"apiVersion":"v1"}"#;
    let yaml = "apiVersion: v1\ndata:\n  a: '1'\n  b: \"2\"\nkind: ConfigMap\nmetadata:\n    name: a\n    labels: {x: ''}\n";
    let (json, yaml) = (
        parse(json.as_bytes()).unwrap(),
        parse(yaml.as_bytes()).unwrap(),
    );
    assert!(json.same_as(&yaml) && json == yaml);
    assert_eq!(
        json.objects().next().unwrap().hash(),
        yaml.objects().next().unwrap().hash()
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    /// No input panics, and what is accepted holds objects only.
    #[test]
    fn any_input_is_an_answer(parts in proptest::collection::vec(proptest::sample::select(&[
        "---\n", "\n", "{", "}", "[", "]", ": ", ",", "\"", "'", "|", "- ", "&a ", "*a ", "a", "1", "null", " ", "\t", "#",
        "...\n", "%YAML 1.2\n", "<<", "!!binary ", "kind", "apiVersion", "metadata: {name: a}\n", "\u{feff}", "\r\n", "\\", "?", A, YB,
    ][..]), 0..12)) {
        let _ = parse(parts.concat().as_bytes());
    }

    /// Whatever values an object has, JSON and YAML give the same, and so do record and text.
    #[test]
    fn values_survive(text in ".*", number in proptest::num::i64::ANY, float in -1e15..1e15f64, key in "[a-z<=~]{1,8}") {
        let value = json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "a" }, "s": { key: text }, "n": number, "f": float });
        let from_json = parse(value.to_string().as_bytes());
        if value.to_string().contains("\\u0000") || from_json.is_err() {
            return Ok(());
        }
        let from_json = from_json.unwrap();
        proptest::prop_assert_eq!(&from_json.objects().next().unwrap().value()["s"], &value["s"]);
        proptest::prop_assert_eq!(&from_json.objects().next().unwrap().value()["n"], &value["n"]);
        let yaml = crate::drift::yaml(&value).unwrap();
        proptest::prop_assert_eq!(parse(yaml.as_bytes()).unwrap(), from_json.clone(), "{}", yaml);
        let packed = crate::history::pack(&from_json).unwrap();
        proptest::prop_assert_eq!(crate::history::unpack("s", &packed).unwrap(), from_json);
    }
}
