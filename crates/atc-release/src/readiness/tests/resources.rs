//! Claims, budgets, autoscalers, and custom resources of any kind.

use super::*;

#[test]
fn claims_r155() {
    let claim = |spec: &Value, phase: Value| {
        object(
            "v1",
            "PersistentVolumeClaim",
            spec,
            &json!({ "phase": phase }),
        )
    };
    let class = |mode: &str, provisioner: &str| json!({ "metadata": { "name": "fast" }, "volumeBindingMode": mode, "provisioner": provisioner });
    let case = |live: &Value, classes: &[Value], expect: &str| {
        let found: Vec<Found> = related(live)
            .into_iter()
            .map(|related| Found {
                objects: classes.to_vec(),
                related,
            })
            .collect();
        check_with(live, &found, expect);
    };
    let fast = json!({ "storageClassName": "fast" });
    let at_once = class("Immediate", "disks.example.dev");
    case(&claim(&fast, "Bound".into()), &[], "ready");
    case(&claim(&fast, "Lost".into()), &[], "failed: is lost");
    let pending = claim(&fast, "Pending".into());
    case(
        &pending,
        std::slice::from_ref(&at_once),
        "progress: storage class \"fast\"",
    );
    case(
        &claim(&fast, Value::Null),
        &[at_once],
        "progress: no volume yet",
    );
    // A stage does not wait for what needs the Pod of a later one.
    case(
        &pending,
        &[class("WaitForFirstConsumer", "disks.example.dev")],
        "ready",
    );
    // Nor for what somebody makes by hand.
    case(
        &pending,
        &[class("Immediate", "kubernetes.io/no-provisioner")],
        "ready",
    );
    case(&pending, &[], "ready");
    case(&claim(&json!({}), "Pending".into()), &[], "ready");
    case(
        &claim(&json!({ "volumeName": "pv" }), "Pending".into()),
        &[],
        "progress: volume \"pv\"",
    );
    let asked = &related(&pending)[0];
    assert_eq!(
        (asked.kind, &asked.which),
        ("StorageClass", &Which::Named("fast".into()))
    );
    assert!(related(&claim(&fast, "Bound".into())).is_empty());
    assert!(related(&claim(&json!({}), "Pending".into())).is_empty());
}

#[test]
fn disruption_budgets() {
    let case = |status: &Value, expect: &str| {
        let live = object("policy/v1", "PodDisruptionBudget", &json!({}), status);
        check(&live, expect);
    };
    let condition = |reason: &str| json!({ "type": "DisruptionAllowed", "status": "False", "reason": reason, "message": "no" });
    let observed =
        |reason: &str| json!({ "observedGeneration": 2, "conditions": [condition(reason)] });
    case(
        &json!({ "observedGeneration": 1 }),
        "progress: generation 2",
    );
    case(&json!({}), "progress: generation 2");
    case(&json!({ "observedGeneration": 2 }), "ready");
    // Unhealthy Pods are the Pods' matter.
    case(&observed("InsufficientPods"), "ready");
    case(
        &observed("SyncFailed"),
        "progress: can't be kept to: SyncFailed: no",
    );
}

#[test]
fn autoscalers() {
    let case = |status: &Value, expect: &str| {
        let live = object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            &json!({}),
            status,
        );
        check(&live, expect);
    };
    let condition = |kind: &str, reason: &str| json!({ "conditions": [{ "type": kind, "status": "False", "reason": reason, "message": "no" }] });
    case(&json!({}), "ready");
    case(
        &json!({ "observedGeneration": 1 }),
        "progress: generation 2",
    );
    case(
        &conditions(&[("AbleToScale", "True"), ("ScalingActive", "True")]),
        "ready",
    );
    case(
        &condition("AbleToScale", "FailedGetScale"),
        "progress: can't scale: FailedGetScale: no",
    );
    case(
        &condition("ScalingActive", "InvalidSelector"),
        "progress: can't scale: InvalidSelector",
    );
    // No figures yet, or none wanted.
    case(
        &condition("ScalingActive", "FailedGetResourceMetric"),
        "ready",
    );
    case(&condition("ScalingActive", "ScalingDisabled"), "ready");
}

#[test]
fn custom_resources() {
    let case = |status: &Value, expect: &str| {
        check(&object("x.dev/v1", "App", &json!({}), status), expect);
    };
    case(&json!(null), "ready");
    case(&json!({ "phase": "Pending", "conditions": [] }), "ready");
    case(
        &json!({ "observedGeneration": 1 }),
        "progress: generation 2 is not observed yet",
    );
    case(&json!({ "observedGeneration": 2 }), "ready");
    case(&json!({ "observedGeneration": "v1" }), "ready");
    for kind in ["Ready", "Available"] {
        case(&conditions(&[(kind, "True")]), "ready");
        case(
            &conditions(&[(kind, "False")]),
            &format!("progress: it is not {kind}: Why: because"),
        );
        case(&conditions(&[(kind, "Unknown")]), "progress");
        let old = with(
            &condition(kind, "True"),
            &json!({ "observedGeneration": 1 }),
        );
        case(&json!({ "conditions": [old] }), "progress: whether it is");
        let new = with(
            &condition(kind, "True"),
            &json!({ "observedGeneration": 2 }),
        );
        case(&json!({ "conditions": [new] }), "ready");
    }
    case(
        &conditions(&[("Available", "False"), ("Ready", "True")]),
        "ready",
    );
    case(
        &conditions(&[("Stalled", "True"), ("Ready", "False")]),
        "failed: Why: because",
    );
    case(
        &conditions(&[("Stalled", "False"), ("Ready", "True")]),
        "ready",
    );
    case(
        &conditions(&[("Reconciling", "True"), ("Ready", "True")]),
        "progress: reconciling: Why",
    );
    case(
        &conditions(&[("Reconciling", "False"), ("Ready", "True")]),
        "ready",
    );
    case(
        &conditions(&[("Succeeded", "Unknown")]),
        "progress: not Succeeded",
    );
    case(
        &conditions(&[("Succeeded", "False")]),
        "failed: Why: because",
    );
    case(&conditions(&[("Succeeded", "True")]), "ready");
    // Other words say nothing.
    case(
        &conditions(&[("Degraded", "True"), ("Synced", "False")]),
        "ready",
    );
}

#[test]
fn conditions_of_users_rules() {
    let live = |status: &Value| object("x.dev/v1", "App", &json!({}), status);
    let kinds = ["Synced".to_owned(), "Healthy".to_owned()];
    let verdict = |status: &Value| all_true(&live(status), &kinds);
    assert_eq!(
        verdict(&conditions(&[("Synced", "True"), ("Healthy", "True")])),
        Verdict::Ready
    );
    let one = verdict(&conditions(&[("Synced", "True"), ("Healthy", "False")]));
    assert_eq!(one.why(), Some("it is not Healthy: Why: because"));
    let none = verdict(&json!({}));
    assert_eq!(none.why(), Some("it does not say yet whether it is Synced"));
    assert_eq!(all_true(&live(&json!({})), &[]), Verdict::Ready);
}
