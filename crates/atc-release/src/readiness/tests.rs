//! The table of kinds.

use serde_json::json;

use super::*;

mod resources;
mod services;
mod traffic;
mod workloads;

/// `ready`, `progress: words` or `failed: words`.
fn check(live: &Value, expect: &str) {
    check_with(live, &[], expect);
}

fn check_with(live: &Value, found: &[Found], expect: &str) {
    let verdict = judge(live, found).verdict;
    let (kind, words) = expect.split_once(": ").unwrap_or((expect, ""));
    let good = match &verdict {
        Verdict::Ready => kind == "ready",
        Verdict::InProgress(why) => kind == "progress" && why.contains(words),
        Verdict::Failed(why) => kind == "failed" && why.contains(words),
    };
    assert!(good, "{verdict:?} instead of {expect} for {live}");
}

fn object(api_version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": { "name": "x", "namespace": "ns", "generation": 2 },
        "spec": spec, "status": status,
    })
}

fn condition(kind: &str, status: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": "Why", "message": "because" })
}

fn conditions(conditions: &[(&str, &str)]) -> Value {
    json!({ "conditions": conditions.iter().map(|(kind, status)| condition(kind, status)).collect::<Vec<_>>() })
}

/// `base` with the fields of `over` laid over it.
fn with(base: &Value, over: &Value) -> Value {
    let mut value = base.clone();
    for (key, over) in over.as_object().unwrap() {
        value[key] = over.clone();
    }
    value
}

#[test]
fn pods() {
    let case =
        |status: &Value, expect: &str| check(&object("v1", "Pod", &json!({}), status), expect);
    case(
        &conditions(&[
            ("Initialized", "True"),
            ("ContainersReady", "True"),
            ("Ready", "True"),
        ]),
        "ready",
    );
    case(
        &conditions(&[
            ("Initialized", "True"),
            ("ContainersReady", "True"),
            ("Ready", "False"),
        ]),
        "progress: not Ready: Why: because",
    );
    case(
        &conditions(&[("Initialized", "True"), ("Ready", "True")]),
        "progress: not ContainersReady",
    );
    case(
        &conditions(&[("PodScheduled", "False"), ("Initialized", "False")]),
        "progress: not Initialized: Why: because",
    );
    // What a container waits for is said.
    let waiting = |list: &str, state: Value, last: Value| {
        let status = json!({ "name": "web", "state": state, "lastState": last });
        with(
            &conditions(&[("Initialized", "True"), ("ContainersReady", "False")]),
            &json!({ list: [{ "name": "first", "state": { "running": {} } }, status] }),
        )
    };
    let pull = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\"" } });
    case(
        &waiting("containerStatuses", pull.clone(), json!({})),
        "progress: not ContainersReady: container \"web\": ImagePullBackOff: Back-off pulling image \"x\"",
    );
    case(
        &waiting("initContainerStatuses", pull, json!({})),
        "progress: container \"web\": ImagePullBackOff",
    );
    case(
        &waiting(
            "containerStatuses",
            json!({ "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 10s" } }),
            json!({ "terminated": { "exitCode": 3, "reason": "Error" } }),
        ),
        "progress: container \"web\": CrashLoopBackOff: back-off 10s, last exit code 3: Error",
    );
    case(
        &waiting(
            "containerStatuses",
            json!({ "terminated": { "exitCode": 1, "reason": "Error" } }),
            json!({}),
        ),
        "progress: container \"web\" ended with exit code 1: Error",
    );
    case(
        &waiting(
            "containerStatuses",
            json!({ "waiting": { "reason": "ContainerCreating" } }),
            json!({}),
        ),
        "progress: not ContainersReady: Why: because",
    );
    case(&json!({}), "progress: not Initialized");
    case(
        &with(
            &conditions(&[("Ready", "False")]),
            &json!({ "phase": "Succeeded" }),
        ),
        "ready",
    );
    case(
        &json!({ "phase": "Failed", "reason": "Evicted", "message": "low on memory" }),
        "failed: Evicted: low on memory",
    );
}

#[test]
fn jobs() {
    let case = |status: &Value, expect: &str| {
        check(&object("batch/v1", "Job", &json!({}), status), expect);
    };
    case(&conditions(&[("Complete", "True")]), "ready");
    case(
        &conditions(&[("SuccessCriteriaMet", "True"), ("Complete", "True")]),
        "ready",
    );
    case(
        &conditions(&[("SuccessCriteriaMet", "True")]),
        "progress: not complete",
    );
    case(&conditions(&[("Failed", "True")]), "failed: Why: because");
    case(&conditions(&[("FailureTarget", "True")]), "failed: Why");
    case(
        &conditions(&[("Failed", "False")]),
        "progress: not complete",
    );
    case(&conditions(&[("Suspended", "True")]), "progress: suspended");
    case(
        &json!({ "active": 1, "failed": 2 }),
        "progress: 1 active, 0 succeeded, 2 failed",
    );
    case(&json!(null), "progress: not complete");
    check(
        &object("batch/v1", "CronJob", &json!({}), &json!({})),
        "ready",
    );
}

#[test]
fn kinds_with_one_condition() {
    for (api_version, kind, wanted) in [
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "Established",
        ),
        ("yoke.cd/v1alpha1", "Airway", "Ready"),
        ("yoke.cd/v1alpha1", "Flight", "Ready"),
        ("yoke.cd/v1alpha1", "ClusterFlight", "Ready"),
    ] {
        let case = |status: &Value, expect: &str| {
            check(&object(api_version, kind, &json!({}), status), expect);
        };
        case(&conditions(&[(wanted, "True")]), "ready");
        case(
            &conditions(&[(wanted, "False")]),
            &format!("progress: not {wanted}: Why: because"),
        );
        case(
            &conditions(&[(wanted, "Unknown")]),
            &format!("progress: not {wanted}"),
        );
        case(&json!({}), &format!("progress: whether it is {wanted}"));
        case(
            &json!({ "conditions": [with(&condition(wanted, "True"), &json!({ "observedGeneration": 2 }))] }),
            "ready",
        );
        case(
            &json!({ "conditions": [with(&condition(wanted, "True"), &json!({ "observedGeneration": 1 }))] }),
            "progress: whether",
        );
    }
    let crd = |status: &Value, expect: &str| {
        check(
            &object(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                &json!({}),
                status,
            ),
            expect,
        );
    };
    crd(
        &conditions(&[("NamesAccepted", "False"), ("Established", "False")]),
        "progress: names are not accepted: Why: because",
    );
    check(
        &object("v1", "Namespace", &json!({}), &json!({ "phase": "Active" })),
        "ready",
    );
    check(
        &object(
            "v1",
            "Namespace",
            &json!({}),
            &json!({ "phase": "Terminating" }),
        ),
        "progress: \"Terminating\", not Active",
    );
    check(
        &object("v1", "Namespace", &json!({}), &json!({})),
        "progress",
    );
}

#[test]
fn instances_of_airways() {
    let owned = |owner: &Value, status: &Value| {
        let mut live = object("x.dev/v1", "App", &json!({}), status);
        live["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "ConfigMap" }, owner]);
        live
    };
    let airway = json!({ "apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "name": "apps.x.dev", "uid": "u" });
    check(&owned(&airway, &conditions(&[("Ready", "True")])), "ready");
    check(
        &owned(&airway, &conditions(&[("Ready", "False")])),
        "progress: not Ready",
    );
    check(&owned(&airway, &json!({})), "progress: whether it is Ready");
    let other = json!({ "apiVersion": "other.dev/v1", "kind": "Airway" });
    check(&owned(&other, &json!({})), "ready");
    // Users' rules can't change what the atc says of them, nor the kinds of the table.
    assert!(is_fixed(&owned(&airway, &json!({}))));
    assert!(!is_fixed(&owned(&other, &json!({}))));
    // The CRD of an Airway is owned by it, too, and judged as a CRD.
    let mut crd = object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &json!({}),
        &conditions(&[("Established", "True")]),
    );
    crd["metadata"]["ownerReferences"] = json!([airway]);
    check(&crd, "ready");
}

#[test]
fn all_others_at_once() {
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "PersistentVolumeClaim"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("networking.k8s.io/v1", "Ingress"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("x.dev/v1", "Deployment"),
        ("x.dev/v1", "Service"),
    ] {
        check(
            &object(
                api_version,
                kind,
                &json!({}),
                &json!({ "phase": "Pending" }),
            ),
            "ready",
        );
        assert!(
            related(&object(
                api_version,
                kind,
                &json!({ "selector": { "a": "b" } }),
                &json!({})
            ))
            .is_empty()
        );
    }
}

#[test]
fn kinds_that_no_rule_changes() {
    for (api_version, kind, expect) in [
        ("v1", "Namespace", true),
        ("v1", "Pod", true),
        ("v1", "Service", true),
        ("apps/v1", "Deployment", true),
        ("apps/v1", "StatefulSet", true),
        ("apps/v1", "ReplicaSet", true),
        ("apps/v1", "DaemonSet", true),
        ("batch/v1", "Job", true),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", true),
        ("yoke.cd/v1alpha1", "Airway", true),
        ("yoke.cd/v1alpha1", "ClusterFlight", true),
        ("batch/v1", "CronJob", false),
        ("v1", "ConfigMap", false),
        ("networking.k8s.io/v1", "Ingress", false),
        ("x.dev/v1", "Deployment", false),
    ] {
        let live = object(api_version, kind, &json!({}), &json!({}));
        assert_eq!(is_fixed(&live), expect, "{kind}");
    }
}

#[test]
fn what_is_being_deleted_is_not_ready() {
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("batch/v1", "Job"),
        ("v1", "Service"),
        ("yoke.cd/v1alpha1", "Airway"),
    ] {
        let mut live = object(
            api_version,
            kind,
            &json!({}),
            &conditions(&[("Complete", "True"), ("Ready", "True")]),
        );
        live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        check(&live, "progress: it is being deleted");
    }
}

#[test]
fn words_are_one_bounded_line() {
    let failed = json!({ "type": "Failed", "status": "True", "message": format!("one\ntwo\u{1b}[0m{}", "x".repeat(5000)) });
    let Verdict::Failed(why) = judge(
        &object(
            "batch/v1",
            "Job",
            &json!({}),
            &json!({ "conditions": [failed] }),
        ),
        &[],
    )
    .verdict
    else {
        panic!("not failed");
    };
    assert!(why.contains("one two [0mxxx") && why.len() < 600, "{why}");
}

#[test]
fn kinds_with_verdicts() {
    for (group, kind, expect) in [
        ("apps", "Deployment", true),
        ("", "Service", true),
        ("batch", "Job", true),
        ("yoke.cd", "Airway", true),
        ("x.dev", "App", true),
        ("", "PersistentVolumeClaim", true),
        ("networking.k8s.io", "Ingress", true),
        ("gateway.networking.k8s.io", "Gateway", true),
        ("cluster.x-k8s.io", "Cluster", true),
        ("networking.k8s.io", "NetworkPolicy", false),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
            false,
        ),
        ("", "ConfigMap", false),
        ("", "Secret", false),
        ("rbac.authorization.k8s.io", "Role", false),
        ("batch", "CronJob", false),
    ] {
        assert_eq!(has_verdict(group, kind), expect, "{kind}");
    }
}
