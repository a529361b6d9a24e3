//! What makes Pods.

use super::*;

#[test]
fn deployments() {
    let rolled_out = json!({
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "conditions": [condition("Available", "True")],
    });
    let case = |spec: &Value, over: &Value, expect: &str| {
        check(
            &object("apps/v1", "Deployment", spec, &with(&rolled_out, over)),
            expect,
        );
    };
    let three = json!({ "replicas": 3 });
    case(&three, &json!({}), "ready");
    case(
        &three,
        &json!({ "observedGeneration": 1 }),
        "progress: generation 2 is not observed yet, only 1",
    );
    case(
        &three,
        &json!({ "updatedReplicas": 1 }),
        "progress: 1 of 3 pods are updated",
    );
    case(
        &three,
        &json!({ "replicas": 4 }),
        "progress: 4 of 3 pods exist",
    );
    case(
        &three,
        &json!({ "readyReplicas": null }),
        "progress: 0 of 3 pods are ready",
    );
    case(
        &three,
        &json!({ "availableReplicas": 2 }),
        "progress: 2 of 3 pods are available",
    );
    case(
        &three,
        &json!({ "conditions": [condition("Available", "False")] }),
        "progress: not Available: Why: because",
    );
    case(
        &three,
        &json!({ "conditions": null }),
        "progress: whether it is Available",
    );
    case(
        &json!({}),
        &json!({ "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1 }),
        "ready",
    );
    case(
        &json!({ "replicas": 5 }),
        &json!({}),
        "progress: 3 of 5 pods are updated",
    );
    check(
        &object(
            "apps/v1",
            "Deployment",
            &json!({ "replicas": 0 }),
            &json!({ "observedGeneration": 2 }),
        ),
        "ready",
    );
    check(
        &object(
            "apps/v1",
            "Deployment",
            &json!({ "replicas": 0 }),
            &json!({ "observedGeneration": 2, "replicas": 1 }),
        ),
        "progress: 1 of 0 pods exist",
    );
    check(
        &object("apps/v1", "Deployment", &three, &json!(null)),
        "progress: generation 2 is not observed",
    );
}

#[test]
fn deployments_that_do_not_move_r153_r157() {
    let rolled_out = json!({
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "conditions": [condition("Available", "True")],
    });
    let case = |spec: &Value, over: &Value, expect: &str| {
        check(
            &object("apps/v1", "Deployment", spec, &with(&rolled_out, over)),
            expect,
        );
    };
    let three = json!({ "replicas": 3 });
    // Paused: only what is rolled out is ready.
    case(
        &json!({ "replicas": 3, "paused": true }),
        &json!({}),
        "ready",
    );
    case(
        &json!({ "replicas": 3, "paused": true }),
        &json!({ "updatedReplicas": 0 }),
        "progress: paused",
    );
    // Past its deadline it has failed, with the words of the condition; not so what an older generation says.
    let late = json!({ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "has timed out progressing" });
    case(
        &three,
        &json!({ "updatedReplicas": 1, "conditions": [late] }),
        "failed: ProgressDeadlineExceeded: has timed out progressing",
    );
    case(
        &three,
        &json!({ "updatedReplicas": 1, "observedGeneration": 1, "conditions": [late] }),
        "progress: generation 2",
    );
    case(
        &three,
        &json!({ "updatedReplicas": 1, "conditions": [with(&late, &json!({ "observedGeneration": 1 }))] }),
        "progress: 1 of 3 pods",
    );
    case(
        &three,
        &json!({ "updatedReplicas": 1, "conditions": [condition("ReplicaFailure", "True")] }),
        "progress: can't be made: Why: because",
    );
}

#[test]
fn replica_sets() {
    for (api_version, kind) in [("apps/v1", "ReplicaSet"), ("v1", "ReplicationController")] {
        let case = |spec: &Value, status: &Value, expect: &str| {
            check(&object(api_version, kind, spec, status), expect);
        };
        let two = json!({ "observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2 });
        case(&json!({ "replicas": 2 }), &two, "ready");
        case(
            &json!({ "replicas": 2 }),
            &with(&two, &json!({ "readyReplicas": 1 })),
            "progress: 1 of 2 pods are ready",
        );
        case(
            &json!({ "replicas": 2 }),
            &with(&two, &json!({ "observedGeneration": 1 })),
            "progress: generation 2",
        );
        case(
            &json!({ "replicas": 1 }),
            &two,
            "progress: 2 of 1 pods exist",
        );
        case(
            &json!({ "replicas": 0 }),
            &json!({ "observedGeneration": 2, "replicas": 0 }),
            "ready",
        );
    }
}

#[test]
fn stateful_sets_r153() {
    let done = json!({
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "currentRevision": "a", "updateRevision": "a",
    });
    let case = |spec: &Value, over: &Value, expect: &str| {
        check(
            &object(
                "apps/v1",
                "StatefulSet",
                &with(&json!({ "replicas": 3 }), spec),
                &with(&done, over),
            ),
            expect,
        );
    };
    let updating = |updated: i64| json!({ "updatedReplicas": updated, "updateRevision": "b" });
    let partition = |partition: i64| json!({ "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": partition } } });
    case(&json!({}), &json!({}), "ready");
    case(&json!({}), &json!({ "updatedReplicas": null }), "ready");
    case(
        &json!({}),
        &updating(2),
        "progress: 2 of 3 pods are updated",
    );
    case(
        &json!({}),
        &json!({ "observedGeneration": 1 }),
        "progress: generation 2",
    );
    case(
        &json!({}),
        &json!({ "readyReplicas": 2 }),
        "progress: 2 of 3 pods are ready",
    );
    case(
        &json!({}),
        &json!({ "availableReplicas": 2 }),
        "progress: 2 of 3 pods are available",
    );
    case(
        &json!({ "replicas": 2 }),
        &json!({}),
        "progress: 3 of 2 pods exist",
    );
    case(
        &json!({ "replicas": 0 }),
        &json!({ "replicas": 0, "updatedReplicas": 0, "readyReplicas": 0, "availableReplicas": 0 }),
        "ready",
    );
    case(&partition(1), &updating(2), "ready");
    case(
        &partition(1),
        &updating(1),
        "progress: 1 of 2 pods are updated",
    );
    case(&partition(5), &updating(0), "ready");
    case(
        &partition(1),
        &with(&updating(2), &json!({ "readyReplicas": 2 })),
        "progress: 2 of 3 pods are ready",
    );
    case(
        &json!({ "updateStrategy": { "type": "OnDelete" } }),
        &updating(0),
        "ready",
    );
}

#[test]
fn daemon_sets() {
    let done = json!({
        "observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": 2,
        "numberReady": 2, "numberAvailable": 2,
    });
    let case = |spec: &Value, over: &Value, expect: &str| {
        check(
            &object("apps/v1", "DaemonSet", spec, &with(&done, over)),
            expect,
        );
    };
    case(&json!({}), &json!({}), "ready");
    case(
        &json!({}),
        &json!({ "observedGeneration": 1 }),
        "progress: generation 2",
    );
    case(
        &json!({}),
        &json!({ "currentNumberScheduled": 1 }),
        "progress: 1 of 2 pods are scheduled",
    );
    case(
        &json!({}),
        &json!({ "updatedNumberScheduled": 1 }),
        "progress: 1 of 2 pods are updated",
    );
    case(
        &json!({}),
        &json!({ "numberReady": 1 }),
        "progress: 1 of 2 pods are ready",
    );
    case(
        &json!({}),
        &json!({ "numberAvailable": null }),
        "progress: 0 of 2 pods are available",
    );
    case(
        &json!({ "updateStrategy": { "type": "OnDelete" } }),
        &json!({ "updatedNumberScheduled": 0 }),
        "ready",
    );
    check(
        &object(
            "apps/v1",
            "DaemonSet",
            &json!({}),
            &json!({ "observedGeneration": 2 }),
        ),
        "ready",
    );
}
