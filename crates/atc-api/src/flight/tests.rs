use super::*;
use serde_json::json;

#[test]
fn both_kinds_survive_the_wire() {
    let spec = json!({
        "wasmUrl": "http://x/f.wasm", "checksum": "a", "input": "text",
        "inputObject": { "n": 9_123_456_789_012_345_678_u64, "list": [1, null] }, "args": ["-a"],
        "fixDriftInterval": "1s", "clusterAccess": true, "resourceAccessMatchers": ["Secret"], "insecure": true,
        "skipAdmissionWebhook": true, "historyCapSize": 3, "prune": { "crds": true }, "maxMemoryMib": 5,
        "timeout": "-1s",
    });
    let status = json!({
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"
        }],
        "inventory": [InventoryEntry::new(&"default/ConfigMap:basic".parse().unwrap(), "v1", true)],
    });
    let wire = |kind: &str| {
        json!({
            "apiVersion": "yoke.cd/v1alpha1", "kind": kind, "metadata": { "name": "f" }, "spec": spec,
            "status": status,
        })
    };
    let flight: Flight = serde_json::from_value(wire("Flight")).unwrap();
    let cluster_flight: ClusterFlight = serde_json::from_value(wire("ClusterFlight")).unwrap();
    assert_eq!(serde_json::to_value(&flight).unwrap(), wire("Flight"));
    assert_eq!(
        serde_json::to_value(&cluster_flight).unwrap(),
        wire("ClusterFlight")
    );
    assert_eq!(flight.spec, cluster_flight.spec);
    assert_eq!(flight.spec.time_limit(), None);
}

#[test]
fn all_but_the_url_may_be_absent_or_null() {
    let bare: FlightSpec = serde_json::from_value(json!({ "wasmUrl": "u" })).unwrap();
    assert_eq!(
        serde_json::to_value(&bare).unwrap(),
        json!({ "wasmUrl": "u", "clusterAccess": false })
    );
    let schema = &json!(Flight::crd())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        ["spec"];
    assert_eq!(schema["required"], json!(["wasmUrl"]));
    for (name, property) in schema["properties"].as_object().unwrap() {
        if name == "wasmUrl" {
            continue;
        }
        assert!(
            property["nullable"] == json!(true) || !property["default"].is_null(),
            "{name}"
        );
        let read: FlightSpec =
            serde_json::from_value(json!({ "wasmUrl": "u", name: null })).unwrap();
        assert_eq!(read, bare, "{name}");
    }
}

#[test]
fn input_is_text_or_object_or_nothing() {
    let check = |input: Option<&str>, object: &Value, expect: &str| {
        let spec = FlightSpec {
            input: input.map(str::to_owned),
            input_object: object.as_object().cloned(),
            ..FlightSpec::default()
        };
        assert_eq!(String::from_utf8(spec.stdin()).unwrap(), expect);
    };
    check(None, &Value::Null, "");
    check(Some("a: 1"), &json!({ "b": 2 }), "a: 1");
    check(Some(""), &json!({ "b": 2, "a": 1.0 }), r#"{"b":2,"a":1.0}"#);
    check(None, &json!({}), "{}");
}

#[test]
fn kinds_differ_in_name_and_scope_only() {
    let (mut ours, flight) = (json!(ClusterFlight::crd()), json!(Flight::crd()));
    assert_eq!(ours["metadata"]["name"], json!("clusterflights.yoke.cd"));
    assert_eq!(ours["spec"]["scope"], json!("Cluster"));
    assert_eq!(ours["spec"]["names"]["kind"], json!("ClusterFlight"));
    for pointer in ["/metadata", "/spec/scope", "/spec/names"] {
        *ours.pointer_mut(pointer).unwrap() = flight.pointer(pointer).unwrap().clone();
    }
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    for key in ["title", "description"] {
        ours.pointer_mut(schema).unwrap()[key] = flight.pointer(schema).unwrap()[key].clone();
    }
    assert_eq!(ours, flight);
    let resource = ClusterFlight::api_resource();
    assert_eq!(
        (resource.plural.as_str(), resource.api_version.as_str()),
        ("clusterflights", "yoke.cd/v1alpha1")
    );
    assert_eq!(
        ClusterFlight::new("a", FlightSpec::default())
            .meta()
            .name
            .as_deref(),
        Some("a")
    );
}

#[test]
fn inventory_entries_leave_the_group_out() {
    let entry = InventoryEntry::new(
        &ResourceRef::new("a", "apps", "Deployment", "web"),
        "apps/v1",
        false,
    );
    assert_eq!(
        (entry.resource.as_str(), entry.version.as_str()),
        ("a/Deployment.apps:web", "v1")
    );
}
