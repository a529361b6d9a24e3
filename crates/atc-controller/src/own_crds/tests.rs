use serde_json::json;

use super::*;

/// A CRD with another schema than ours, and all that we need.
fn other() -> Value {
    let properties =
        json!({ "spec": { "type": "object", "properties": { "new": { "type": "string" } } } });
    json!({ "spec": { "versions": [
        { "name": "v2", "served": true, "storage": false },
        {
            "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
        },
    ] } })
}

#[test]
fn ours_lack_nothing() {
    for crd in bootstrap::crds().unwrap() {
        assert_eq!(lacks(&crd), None, "{crd}");
    }
}

#[test]
fn what_no_version_of_us_can_work_without() {
    let schema = "/spec/versions/1/schema/openAPIV3Schema";
    let spec = format!("{schema}/properties/spec");
    let spec = spec.as_str();
    for (path, value, expect) in [
        (
            "/spec/versions/1/name",
            json!("v1beta1"),
            Some("our version no more"),
        ),
        ("/spec/versions", Value::Null, Some("our version no more")),
        ("/spec/versions/1/served", json!(false), Some("not served")),
        (
            "/spec/versions/1/storage",
            json!(false),
            Some("not the stored one"),
        ),
        (
            "/spec/versions/1/subresources",
            Value::Null,
            Some("subresource"),
        ),
        (
            "/spec/versions/1/subresources",
            json!({}),
            Some("subresource"),
        ),
        ("/spec/versions/1/schema", Value::Null, Some("spec")),
        (spec, Value::Null, Some("spec")),
        (spec, json!({ "type": "object" }), Some("spec")),
        (
            spec,
            json!({ "type": "object", "properties": {} }),
            Some("spec"),
        ),
        // Other versions of us: no reason to fight.
        ("/spec/versions/0", json!({ "name": "v3" }), None),
        (
            spec,
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            None,
        ),
        (spec, json!({ "properties": { "a": {} } }), None),
    ] {
        let mut crd = other();
        assert_eq!(lacks(&crd), None);
        *crd.pointer_mut(path).unwrap() = value.clone();
        let found = lacks(&crd);
        assert_eq!(
            found.is_some(),
            expect.is_some(),
            "{path} {value}: {found:?}"
        );
        let (found, expect) = (found.unwrap_or_default(), expect.unwrap_or_default());
        assert!(found.contains(expect), "{path} {value}: {found}");
    }
}

#[test]
fn one_version_is_stored_and_the_others_stay() {
    let ours =
        json!({ "spec": { "versions": [{ "name": "v1alpha1", "storage": true, "mark": 1 }] } });
    let check = |live: Value, expect: Value| {
        let live = json!({ "spec": { "versions": live } });
        assert_eq!(with_ours(&live, &ours), expect, "{live}");
    };
    let mine = json!({ "name": "v1alpha1", "storage": true, "mark": 1 });
    check(Value::Null, json!([mine]));
    check(
        json!([{ "name": "v1alpha1", "storage": false }]),
        json!([mine]),
    );
    check(
        json!([{ "name": "v2", "served": true, "storage": true }]),
        json!([mine, { "name": "v2", "served": true, "storage": false }]),
    );
}

#[test]
fn whoever_goes_on_overwriting_is_answered_ever_more_seldom() {
    let (crds, begin) = (OwnCrds::default(), Instant::now());
    let at = |seconds: u64| begin + Duration::from_secs(seconds);
    let wait = |seconds: u64| Err(Duration::from_secs(seconds));
    // Pauses of 1 s, 2 s, 4 s, each CRD's own.
    for (seconds, name, expect) in [
        (0, "a", Ok(())),
        (0, "a", wait(1)),
        (0, "b", Ok(())),
        (1, "a", Ok(())),
        (2, "a", wait(1)),
        (3, "a", Ok(())),
        (4, "a", wait(3)),
        (7, "a", Ok(())),
        // It stood for four times its pause of 8 s: from the beginning.
        (39, "a", Ok(())),
        (40, "a", Ok(())),
    ] {
        assert_eq!(
            crds.turn(name, at(seconds)),
            expect,
            "{name} at {seconds} s"
        );
    }
    let mut now = at(40);
    for _ in 0..20 {
        if let Err(pause) = crds.turn("a", now) {
            assert!(pause <= PAUSE_MAX, "{pause:?}");
            now += pause;
        }
    }
    assert_eq!(crds.turn("a", now), Err(PAUSE_MAX));
}
