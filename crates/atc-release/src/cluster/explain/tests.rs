use serde_json::json;

use super::*;

#[test]
fn selectors() {
    let case = |api_version: &str, kind: &str, selector: Value, expect: Option<&str>| {
        let live =
            json!({ "apiVersion": api_version, "kind": kind, "spec": { "selector": selector } });
        assert_eq!(super::selector(&live).as_deref(), expect, "{kind}");
    };
    let labels = json!({ "matchLabels": { "a": "1", "b": "2" } });
    case("apps/v1", "Deployment", labels.clone(), Some("a=1,b=2"));
    case("batch/v1", "Job", labels.clone(), Some("a=1,b=2"));
    case(
        "v1",
        "ReplicationController",
        json!({ "a": "1" }),
        Some("a=1"),
    );
    case("apps/v1", "Deployment", json!({}), None);
    case("v1", "PersistentVolumeClaim", labels.clone(), None);
    case("x.dev/v1", "App", labels, None);
}

#[test]
fn events_are_one_bounded_line() {
    let event = json!({
        "involvedObject": { "kind": "ReplicaSet", "name": "web-1" }, "reason": "FailedCreate", "count": 7,
        "message": format!("quota\nexceeded {}", "x".repeat(5000)),
    });
    let lines = told(vec![event]);
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(
        line.starts_with("event of ReplicaSet \"web-1\": FailedCreate: quota exceeded xxx"),
        "{line}"
    );
    assert!(
        line.ends_with(" (seen 7 times)") && line.len() < 700,
        "{line}"
    );
}

#[test]
fn the_same_in_several_events_is_told_once() {
    let event = |name: &str, second: u32, count: Option<u32>| {
        json!({
            "involvedObject": { "kind": "Job", "name": name }, "reason": "Failed", "message": "no", "count": count,
            "lastTimestamp": format!("2026-01-01T00:00:0{second}Z"),
        })
    };
    let events = vec![
        event("a", 3, Some(2)),
        event("a", 1, None),
        event("b", 2, Some(1)),
    ];
    let line = |name: &str| format!("event of Job \"{name}\": Failed: no");
    assert_eq!(
        told(events),
        [line("b"), format!("{} (seen 3 times)", line("a"))]
    );
}

#[test]
fn events_in_the_order_of_their_last_time() {
    let mut events = [
        json!({ "lastTimestamp": "2026-01-01T00:00:02Z" }),
        json!({ "eventTime": "2026-01-01T00:00:01.500000Z", "lastTimestamp": null }),
        json!({ "series": { "lastObservedTime": "2026-01-01T00:00:03.000000Z" }, "lastTimestamp": "2026-01-01T00:00:00Z" }),
        json!({ "metadata": { "creationTimestamp": "2026-01-01T00:00:01Z" } }),
    ];
    events.sort_by_key(last_seen);
    let times: Vec<String> = events.iter().map(last_seen).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(
        times[0].ends_with("01") && times[3].contains("03"),
        "{times:?}"
    );
}
