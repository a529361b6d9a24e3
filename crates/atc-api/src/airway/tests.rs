use super::*;
use serde_json::{Value, json};

fn spec(extra: &Value) -> Value {
    let mut spec = json!({ "wasmUrls": { "flight": "f" }, "template": { "group": "accept.dev" } });
    for (key, value) in extra.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

fn read(extra: &Value) -> AirwaySpec {
    serde_json::from_value(spec(extra)).unwrap()
}

#[test]
fn crds_are_the_golden_ones() {
    let golden = include_str!("../../golden/crds.yaml");
    let documents = golden
        .split("---\n")
        .filter(|document| !document.is_empty());
    let golden: Vec<Value> = documents
        .map(|document| serde_json::from_str(document).unwrap())
        .collect();
    assert_eq!(
        json!(crds()),
        json!(golden),
        "if meant: cargo run -p atc-api --example crds > crates/atc-api/golden/crds.yaml"
    );
}

/// What a structural schema forbids, and what makes kubectl warn.
#[test]
fn schemas_are_structural() {
    fn walk(path: &str, schema: &Value) {
        let keeps_all = schema["x-kubernetes-preserve-unknown-fields"] == json!(true);
        assert!(
            schema["type"].is_string() || keeps_all,
            "{path} has no type"
        );
        for word in [
            "$ref",
            "oneOf",
            "anyOf",
            "allOf",
            "not",
            "definitions",
            "additionalProperties",
        ] {
            assert!(schema.get(word).is_none(), "{path} has {word}");
        }
        if let Some(format) = schema["format"].as_str() {
            assert!(
                ["int64", "date-time"].contains(&format),
                "{path} has format {format}"
            );
        }
        assert_eq!(
            schema["type"] == json!("array"),
            schema.get("items").is_some(),
            "{path}"
        );
        if let Some(items) = schema.get("items") {
            walk(&format!("{path}[]"), items);
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            walk(&format!("{path}.{name}"), property);
            let described = property["description"].is_string() || path.is_empty();
            assert!(
                described || property["x-kubernetes-preserve-unknown-fields"] == json!(true),
                "{path}.{name}"
            );
        }
    }
    for crd in crds() {
        walk(
            "",
            &json!(crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        );
    }
}

/// Each optional field takes `null`; each that is not in the schema's defaults stays absent when it was absent.
#[test]
fn absent_and_null_are_the_same() {
    let schema = &json!(Airway::crd())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        ["spec"];
    let required = schema["required"].as_array().unwrap();
    assert_eq!(*required, vec![json!("template"), json!("wasmUrls")]);
    let bare = read(&json!({}));
    for (name, property) in schema["properties"].as_object().unwrap() {
        if required.contains(&json!(name)) {
            continue;
        }
        assert!(
            property["nullable"] == json!(true) || !property["default"].is_null(),
            "{name}"
        );
        assert_eq!(read(&json!({ name: null })), bare, "{name}");
    }
    let written = serde_json::to_value(&bare).unwrap();
    assert_eq!(
        written,
        spec(&json!({ "mode": "standard", "clusterAccess": false }))
    );
}

#[test]
fn reads_every_field() {
    let full = spec(&json!({
        "wasmUrls": { "flight": "f", "flightChecksum": "a", "converter": "c", "converterChecksum": "b" },
        "objectPath": ["spec", "x"], "fixDriftInterval": "1m0s", "clusterAccess": true,
        "resourceAccessMatchers": ["*"], "insecure": true, "skipAdmissionWebhook": true, "mode": "subscription",
        "historyCapSize": -1, "prune": { "crds": true, "namespaces": true }, "maxMemoryMib": 64, "timeout": "30s",
    }));
    let read: AirwaySpec = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), full);
    assert_eq!(read.history_cap(), None);
    assert_eq!(read.time_limit(), Some(Duration::from_secs(30)));
    assert_eq!(read.memory_bytes(), 64 << 20);
    assert_eq!(read.drift_interval(), Some(Duration::from_mins(1)));
    let bare = self::read(&json!({ "fixDriftInterval": "0s" }));
    assert_eq!((bare.history_cap(), bare.drift_interval()), (Some(2), None));
    assert_eq!(
        (bare.time_limit(), bare.memory_bytes()),
        (Some(Duration::from_secs(10)), 4 << 30)
    );
}

#[test]
fn a_field_that_is_gone_is_passed_over() {
    assert_eq!(read(&json!({ "crossNamespace": true })), read(&json!({})));
}

#[test]
fn modes() {
    for mode in AirwayMode::ALL {
        assert_eq!(mode.to_string().parse(), Ok(mode));
        assert_eq!(json!(mode), json!(mode.as_str()));
    }
    for word in ["", "Dynamic", "loud"] {
        let error = word.parse::<AirwayMode>().unwrap_err().to_string();
        assert!(error.contains(&format!("{word:?} is no mode")), "{error}");
    }
}

#[test]
fn an_airway_survives_the_wire() {
    let wire = json!({
        "apiVersion": "yoke.cd/v1alpha1", "kind": "Airway",
        "metadata": { "name": "samples.accept.dev", "finalizers": ["yoke.cd/strip.airway"] },
        "spec": spec(&json!({ "mode": "dynamic", "clusterAccess": true })),
        "status": { "conditions": [{
            "type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 3
        }] },
    });
    let airway: Airway = serde_json::from_value(wire.clone()).unwrap();
    assert_eq!(serde_json::to_value(&airway).unwrap(), wire);
    for status in [json!({}), json!({ "conditions": null }), Value::Null] {
        let mut wire = wire.clone();
        wire["status"] = status;
        let airway: Airway = serde_json::from_value(wire).unwrap();
        assert!(airway.status.unwrap_or_default().conditions.is_empty());
    }
}
