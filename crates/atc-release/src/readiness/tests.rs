//! The table of kinds.

use serde_json::json;

use super::*;

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
        "failed: no progress: ProgressDeadlineExceeded: has timed out progressing",
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
            check(&object(api_version, kind, spec, status), expect)
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
fn stateful_sets() {
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
        )
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
        "failed: it has failed: Evicted: low on memory",
    );
}

#[test]
fn jobs() {
    let case = |status: &Value, expect: &str| {
        check(&object("batch/v1", "Job", &json!({}), status), expect)
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
    case(
        &conditions(&[("Failed", "True")]),
        "failed: it has failed: Why: because",
    );
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
            check(&object(api_version, kind, &json!({}), status), expect)
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
        )
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
    check(
        &owned(
            &json!({ "apiVersion": "other.dev/v1", "kind": "Airway" }),
            &json!({}),
        ),
        "ready",
    );
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
        ("policy/v1", "PodDisruptionBudget"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("networking.k8s.io/v1", "Ingress"),
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

fn service(spec: &Value) -> Value {
    object("v1", "Service", spec, &json!({}))
}

fn slice(ready: &[Value]) -> Value {
    let endpoints: Vec<_> = ready
        .iter()
        .map(|ready| json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": ready } }))
        .collect();
    json!({ "metadata": { "name": "x-abc", "namespace": "ns" }, "endpoints": endpoints })
}

/// Reads what is asked for from these slices and Pods; tells how many lists that took.
fn read(live: &Value, slices: &[Value], pods: &[Value]) -> (Judgement, usize) {
    let list = |related: Vec<Related>| -> Vec<Found> {
        let objects = |related: &Related| {
            if related.kind == "Pod" {
                pods.to_vec()
            } else {
                slices.to_vec()
            }
        };
        related
            .into_iter()
            .map(|related| Found {
                objects: objects(&related),
                related,
            })
            .collect()
    };
    let mut found = list(related(live));
    let more = list(further(live, &found));
    found.extend(more);
    (judge(live, &found), found.len())
}

#[test]
fn services() {
    let selecting = service(&json!({ "selector": { "app": "x", "tier": "web" } }));
    let asked = related(&selecting);
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (
            asked[0].api_version,
            asked[0].kind,
            asked[0].namespace.as_str()
        ),
        ("discovery.k8s.io/v1", "EndpointSlice", "ns")
    );
    assert_eq!(asked[0].selector, "kubernetes.io/service-name=x");

    let case = |slices: &[Value], pods: &[Value], expect: &str, lists: usize, look_again: bool| {
        let (judgement, read) = read(&selecting, slices, pods);
        let (kind, words) = expect.split_once(": ").unwrap_or((expect, ""));
        assert_eq!(
            judgement.verdict.is_ready(),
            kind == "ready",
            "{judgement:?}"
        );
        assert!(
            judgement.verdict.why().unwrap_or_default().contains(words),
            "{judgement:?}"
        );
        assert_eq!(
            (read, judgement.look_again),
            (lists, look_again),
            "{judgement:?}"
        );
        assert_eq!(judgement.depends_on.len(), slices.len());
    };
    let pod = json!({ "metadata": { "name": "p" } });
    case(&[slice(&[json!(true)])], &[], "ready", 1, false);
    case(
        &[slice(&[json!(false)]), slice(&[json!(false), json!(true)])],
        &[],
        "ready",
        1,
        false,
    );
    // An endpoint that does not say so is ready, as the API has it.
    case(&[slice(&[json!(null)])], &[], "ready", 1, false);
    case(&[], &[], "progress: no EndpointSlice yet", 1, true);
    case(
        &[slice(&[json!(false)])],
        std::slice::from_ref(&pod),
        "progress: none of its endpoints is ready",
        2,
        true,
    );
    // Pods without addresses are in no slice.
    case(
        &[slice(&[])],
        &[pod],
        "progress: none of its endpoints",
        2,
        true,
    );
    // Scaled to 0 (P-06).
    case(&[slice(&[])], &[], "ready", 2, false);
    let (judgement, _) = read(&selecting, &[slice(&[json!(true)])], &[]);
    assert_eq!(
        judgement.depends_on[0].to_string(),
        "ns/EndpointSlice.discovery.k8s.io:x-abc"
    );
    let more = further(
        &selecting,
        &[Found {
            related: asked[0].clone(),
            objects: vec![slice(&[])],
        }],
    );
    assert_eq!(
        (
            more[0].api_version,
            more[0].kind,
            more[0].selector.as_str(),
            more[0].limit
        ),
        ("v1", "Pod", "app=x,tier=web", Some(1))
    );

    // No endpoints of their own, ever (P-06).
    for spec in [
        json!({ "type": "ExternalName", "externalName": "example.com" }),
        json!({ "ports": [{ "port": 80 }] }),
        json!({ "selector": {} }),
        json!({ "type": "ExternalName", "selector": { "a": "b" } }),
    ] {
        let (judgement, lists) = read(&service(&spec), &[], &[]);
        assert_eq!((judgement, lists), (Verdict::Ready.into(), 0), "{spec}");
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
        ("", "ConfigMap", false),
        ("", "Secret", false),
        ("rbac.authorization.k8s.io", "Role", false),
        ("batch", "CronJob", false),
    ] {
        assert_eq!(has_verdict(group, kind), expect, "{kind}");
    }
}
