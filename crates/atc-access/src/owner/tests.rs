use super::*;
use serde_json::json;

fn check(metadata: &Value, expect: Option<&str>) {
    let object = json!({ "metadata": metadata });
    assert_eq!(
        Owner::of(&object).map(|owner| owner.to_string()).as_deref(),
        expect,
        "{metadata}"
    );
}

#[test]
fn marks() {
    let (release, namespace) = (
        "instance.atc.yoke.cd/release",
        "instance.atc.yoke.cd/namespace",
    );
    let (old_release, old_namespace) = (
        "app.kubernetes.io/yoke-release",
        "app.kubernetes.io/yoke-release-namespace",
    );
    let new = json!({ release: "web", namespace: "prod" });
    let old = json!({ old_release: "old", old_namespace: "before" });
    check(&json!({ "annotations": new }), Some("prod/web"));
    check(&json!({ "labels": old }), Some("before/old"));
    check(
        &json!({ "annotations": new, "labels": old }),
        Some("prod/web"),
    );
    check(
        &json!({ "annotations": { release: "web" }, "labels": old }),
        Some("before/old"),
    );
    // Half a pair is nobody, and halves of two pairs are not joined.
    check(&json!({ "annotations": { release: "web" } }), None);
    check(&json!({ "annotations": { namespace: "prod" } }), None);
    check(
        &json!({ "annotations": { release: "web" }, "labels": { old_namespace: "prod" } }),
        None,
    );
    check(
        &json!({ "annotations": { release: "", namespace: "prod" } }),
        None,
    );
    check(
        &json!({ "annotations": { release: "web", namespace: "" } }),
        None,
    );
    check(
        &json!({ "annotations": { release: 1, namespace: "prod" } }),
        None,
    );
    // The marks count where they belong only.
    check(&json!({ "labels": new }), None);
    check(&json!({ "annotations": old }), None);
    check(&json!({ "annotations": null, "labels": [] }), None);
    check(&json!({}), None);
    assert_eq!(Owner::of(&Value::Null), None);
    assert_eq!(Owner::of(&json!({ "annotations": new })), None);
}
