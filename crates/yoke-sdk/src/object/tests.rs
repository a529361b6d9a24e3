//! What is taken from an object, and what is left alone.

use super::*;
use crate::parse_input;

#[test]
fn unknown_fields_and_missing_ones_are_fine() {
    #[derive(Deserialize)]
    struct Spec {
        size: u32,
    }
    let text = br#"{"apiVersion":"a/v1","kind":"A","metadata":{"name":"x","managedFields":[]},"spec":{"size":3,"y":1},"z":2}"#;
    let object: Object<Spec> = parse_input(text).unwrap();
    assert_eq!(
        (
            object.spec.size,
            object.metadata.namespace.as_str(),
            object.status
        ),
        (3, "", None)
    );
    assert_eq!(object.metadata.generation, None);
}

#[test]
fn a_parent_of_cluster_scope_has_no_namespace() {
    let text = br#"{"apiVersion":"a/v1","kind":"A","metadata":{"name":"x","uid":"u","labels":{"l":"v"}},"spec":null}"#;
    let object: Object = parse_input(text).unwrap();
    assert_eq!(
        object.with_status(json!({}))["metadata"],
        json!({ "name": "x" })
    );
}

#[test]
fn what_does_not_fit_is_an_error_that_says_where() {
    use std::error::Error as _;
    let error = parse_input::<Object>(br#"{"apiVersion":"a/v1","kind":3}"#).unwrap_err();
    assert!(error.source().unwrap().to_string().contains("line 1"));
    assert!(parse_input::<Object>(b"").is_err());
}
