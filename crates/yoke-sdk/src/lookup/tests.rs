//! Every state, and what it becomes.

use super::*;
use crate::Value;

fn answer(state: u32, body: &str) -> Result<Option<Value>, LookupError> {
    read(
        &Answer {
            state,
            body: body.into(),
        },
        "ConfigMap",
        "team/a",
    )
}

#[test]
fn states_become_values_and_errors() {
    assert_eq!(
        answer(0, "{\"a\":1}").unwrap(),
        Some(serde_json::json!({ "a": 1 }))
    );
    assert_eq!(answer(3, "no such thing").unwrap(), None);
    assert!(matches!(answer(1, "x"), Err(LookupError::FeatureNotGranted(words)) if words == "x"));
    assert_eq!(answer(1, "x").unwrap_err().to_string(), "x");
    assert!(matches!(answer(2, "x"), Err(LookupError::Other(words)) if words == "x"));
    assert!(matches!(
        answer(4, "x"),
        Err(LookupError::Unauthenticated(_))
    ));
    assert!(matches!(
        answer(5, "forbidden: x"),
        Err(LookupError::Forbidden(_))
    ));
    assert!(matches!(answer(99, "x"), Err(LookupError::Other(_))));
    assert_eq!(
        answer(0, "").unwrap_err().to_string(),
        "cannot read ConfigMap \"team/a\" as wanted"
    );
}

#[test]
fn a_mapping_is_read_with_its_capital_keys() {
    let body = r#"{"Group":"apps","Version":"v1","Kind":"Deployment","Resource":"deployments","Namespaced":true}"#;
    let mapping: Mapping = read(
        &Answer {
            state: 0,
            body: body.into(),
        },
        "Deployment",
        "apps",
    )
    .unwrap()
    .unwrap();
    assert_eq!(
        (mapping.resource.as_str(), mapping.namespaced),
        ("deployments", true)
    );
}

#[test]
fn outside_a_host_there_is_nobody_to_ask() {
    assert!(matches!(
        lookup_as::<Value>("v1", "Secret", "", "a"),
        Err(LookupError::OutsideHost)
    ));
    assert!(matches!(
        rest_mapping("apps", "Deployment"),
        Err(LookupError::OutsideHost)
    ));
}
