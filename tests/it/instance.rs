//! Instances: marks, records, scope, status, readiness, history, drift.

use std::{collections::BTreeSet, time::Duration};

use atc_tests::{AirwayBuilder, condition, eventually, never};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, configmap, configmap_in, deployment, job, puppet, text};

#[tokio::test(flavor = "multi_thread")]
async fn marks_owners_and_the_record() {
    let world = World::new().await;
    let kind = world.basic().await;
    let object = kind.make("m", json!({ "note": "hello" })).await;
    let (ns, release) = (&world.ns, kind.release("m"));
    assert_eq!(
        object["metadata"]["finalizers"],
        json!(["yoke.cd/mayday.flight"])
    );
    let owners = object["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!(
        (&owners[0]["kind"], &owners[0]["name"]),
        (&json!("Airway"), &json!(kind.airway.name()))
    );

    // An object without a namespace lands in the instance's; the flight is told where it is and who it is.
    let child = world.configmap("m").await.unwrap();
    let (metadata, data) = (&child["metadata"], &child["data"]);
    assert_eq!(data["release"], release);
    assert_eq!(data["namespace"], *ns);
    assert_eq!(data["note"], "hello");
    assert!(text(&data["version"]).starts_with('v'), "{data}");
    assert_eq!(
        metadata["labels"]["app.kubernetes.io/managed-by"],
        "atc.yoke"
    );
    let annotations = &metadata["annotations"];
    assert_eq!(annotations["instance.atc.yoke.cd/release"], release);
    assert_eq!(annotations["instance.atc.yoke.cd/namespace"], *ns);
    assert_eq!(
        annotations["instance.atc.yoke.cd/instanceRef"],
        format!("{ns}/Basic.tests.atc.dev:m")
    );
    let owners = metadata["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0]["kind"], "Basic");
    assert_eq!(owners[0]["apiVersion"], "tests.atc.dev/v1");
    assert_eq!(owners[0]["uid"], object["metadata"]["uid"]);

    let revisions = world.revisions().await;
    assert_eq!(revisions.len(), 1);
    let revision = &revisions[0];
    let (labels, annotations) = (
        &revision["metadata"]["labels"],
        &revision["metadata"]["annotations"],
    );
    let name = text(&revision["metadata"]["name"]);
    let id = name.strip_prefix("yoke.").unwrap();
    assert!(
        id.len() == 12 && id.chars().all(|c| c.is_ascii_hexdigit()),
        "{name}"
    );
    assert_eq!(text(&labels["internal.yoke/release"]).len(), 40);
    assert_eq!(annotations["internal.yoke/release-name"], release);
    assert_eq!(annotations["internal.yoke/source-url"], puppet());
    assert_eq!(
        text(&annotations["internal.yoke/source-checksum"]).len(),
        40
    );
    assert_eq!(annotations["internal.yoke/resources"], "1");
    assert!(text(&annotations["internal.yoke/created-at"]).starts_with("20"));
    assert!(text(&annotations["internal.yoke/active-at"]).starts_with("20"));
    assert!(
        text(&revision["data"]["resources"]).starts_with("H4sI"),
        "gzip in base64"
    );

    kind.delete("m").await;
    world.gone(&world.core("configmaps", "m")).await;
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespaced_instance_stays_in_its_namespace_r53() {
    let world = World::new().await;
    let other = world.namespace().await;
    let spec =
        json!({ "objects": [configmap("x", json!({})), configmap_in(&other, "x", json!({}))] });
    let error = world
        .basic()
        .await
        .create("x", &spec)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("basics.tests.atc.dev") && error.contains(&other),
        "{error}"
    );
    let loose = world.loose().await;
    loose.create("x", &spec).await.unwrap();
    loose.says("x", "Error", &other).await;
    for namespace in [&world.ns, &other] {
        assert!(world.configmaps(namespace).await.is_empty());
    }
    assert!(world.revisions().await.is_empty());
    loose.delete("x").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_scoped_instance_writes_to_two_namespaces_r49() {
    let world = World::new().await;
    let kind = world.wide().await;
    let (a, b) = (&world.ns, world.namespace().await);
    let name = format!("w-{a}");
    let objects = json!([
        configmap_in(a, "w", json!({ "in": "a" })),
        configmap_in(&b, "w", json!({ "in": "b" }))
    ]);
    let object = kind.make(&name, json!({ "objects": objects })).await;
    for namespace in [a, &b] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/w");
        let child = world.get(&path).await.unwrap().unwrap();
        let annotations = &child["metadata"]["annotations"];
        assert_eq!(
            annotations["instance.atc.yoke.cd/release"],
            kind.release(&name)
        );
        assert_eq!(annotations["instance.atc.yoke.cd/namespace"], "default");
        // An owner without a namespace may own anything; one with a namespace would be taken for lost elsewhere.
        for owner in child["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten()
        {
            assert_eq!(owner["uid"], object["metadata"]["uid"]);
        }
    }
    kind.delete(&name).await;
    for namespace in [a, &b] {
        world
            .gone(&format!("/api/v1/namespaces/{namespace}/configmaps/w"))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_scoped_object_with_a_namespace_r51() {
    let world = World::new().await;
    let kind = world.basic().await;
    let name = format!("role-{}", world.ns);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name, "namespace": world.ns }, "rules": [],
    });
    kind.make("c", json!({ "objects": [role] })).await;
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
    let made = world.get(&path).await.unwrap().unwrap();
    assert!(made["metadata"]["ownerReferences"].is_null(), "{made}");
    kind.edit(
        "c",
        json!({ "objects": [role, configmap("more", json!({}))] }),
    )
    .await;
    kind.ready("c").await;
    let same = world.get(&path).await.unwrap().unwrap();
    assert_eq!(same["metadata"]["uid"], made["metadata"]["uid"]);
    kind.delete("c").await;
    world.gone(&path).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_part_of_the_instance_is_the_input() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Pathy", &puppet()).set("objectPath", json!(["spec", "inner"]));
    let kind = world.kind(airway).await;
    let inner = json!({ "objects": [configmap("seen", json!({}))] });
    kind.make("p", json!({ "note": "outside", "inner": inner }))
        .await;
    assert_eq!(world.configmaps(&world.ns).await, ["seen"]);
    let error = kind
        .create("q", &json!({ "inner": { "fail": "from within" } }))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("from within"), "{error}");
    kind.finish().await;
}

fn mark(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flight_sets_the_status() {
    let world = World::new().await;
    let kind = world.basic().await;
    // Nothing but the parent; a field and a condition of its own beside ours.
    let status = json!({ "msg": "hello", "old": 1, "conditions": [mark("Warm", "True", "Yes")] });
    let object = kind
        .make("s", json!({ "objects": [], "status": status }))
        .await;
    let kinds = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().unwrap();
        let kinds = conditions.iter().map(|c| text(&c["type"]).to_owned());
        kinds.collect::<BTreeSet<String>>()
    };
    assert_eq!(object["status"]["msg"], "hello");
    assert_eq!(kinds(&object), ["Ready", "Warm"].map(String::from).into());
    // The status is the whole of it, conditions are merged by type.
    let status = json!({ "msg": "bye", "conditions": [mark("Painted", "False", "Wet")] });
    kind.edit("s", json!({ "objects": [], "status": status }))
        .await;
    let object = kind
        .until("s", "says bye", |object| object["status"]["msg"] == "bye")
        .await;
    assert!(object["status"]["old"].is_null(), "{object:#}");
    assert_eq!(
        kinds(&object),
        ["Painted", "Ready", "Warm"].map(String::from).into()
    );
    // A Ready of the flight's own is kept as it is.
    let status = json!({ "conditions": [mark("Ready", "False", "Custom")] });
    kind.edit(
        "s",
        json!({ "objects": [configmap("c", json!({}))], "status": status }),
    )
    .await;
    kind.says("s", "Custom", "m").await;
    world.has("c", json!({})).await;
    world.settle().await;
    let ready = condition(&kind.instance("s").await, "Ready")
        .unwrap()
        .clone();
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("Custom"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_keeps_children_and_tells_the_status() {
    let world = World::new().await;
    let kind = world.loose().await;
    kind.make(
        "f",
        json!({ "objects": [configmap("c", json!({ "k": "1" }))] }),
    )
    .await;
    let before = world.configmap("c").await.unwrap();
    let revisions = world.revision_names().await;
    let failed =
        json!({ "objects": [], "status": { "msg": "not yet" }, "exit": "the moon is wrong" });
    kind.edit("f", failed).await;
    let message = kind.says("f", "Error", "the moon is wrong").await;
    assert!(message.contains("exit_code(1)"), "{message}");
    assert_eq!(kind.instance("f").await["status"]["msg"], "not yet");
    assert_eq!(world.configmap("c").await.unwrap(), before);
    assert_eq!(world.revision_names().await, revisions);
    // It recovers with the next edit.
    kind.edit(
        "f",
        json!({ "objects": [configmap("c", json!({ "k": "2" }))] }),
    )
    .await;
    kind.ready("f").await;
    assert_eq!(world.data("c").await, json!({ "k": "2" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_without_its_namespace_is_the_parent_w36() {
    let world = World::new().await;
    let kind = world.basic().await;
    let child = configmap("c", json!({ "k": "v" }));
    let mut parent = kind
        .airway
        .instance("p", &json!({ "note": "of the flight" }));
    parent["status"] = json!({ "said": "hello" });
    parent["metadata"]["labels"] = json!({ "not": "applied" });
    kind.create("p", &json!({ "objects": [child, parent] }))
        .await
        .unwrap();
    let made = kind
        .until("p", "has its status", |object| {
            object["status"]["said"] == "hello"
        })
        .await;
    // Nothing of it but the status was taken, and it is no child of its own.
    assert_eq!(made["metadata"]["labels"], Value::Null);
    assert_eq!(made["spec"]["note"], Value::Null);
    let managers = made["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("\"manager\":\"yoke\""), "{managers}");
    kind.edit("p", json!({ "objects": [child] })).await;
    kind.ready("p").await;
    assert_eq!(
        kind.instance("p").await["metadata"]["uid"],
        made["metadata"]["uid"]
    );
    kind.delete("p").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_refuses_with_all_errors() {
    let world = World::new().await;
    let kind = world.basic().await;
    let mut bad = deployment("d", 1);
    bad["spec"]["replicas"] = (-5).into();
    bad["metadata"]["labels"] = json!({ "l": "not valid!" });
    let error = kind.create("x", &json!({ "objects": [bad] })).await;
    let error = error.unwrap_err().to_string();
    for words in [
        "webhook \"basics.tests.atc.dev\" denied",
        "replicas",
        "not valid!",
    ] {
        assert!(error.contains(words), "{words:?} in {error}");
    }
    let error = kind
        .create("x", &json!({ "fail": "replicas must be odd" }))
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("replicas must be odd"), "{error}");
    kind.make("y", json!({ "note": "good" })).await;
    let error = kind.try_edit("y", json!({ "fail": "nope" })).await;
    assert!(error.unwrap_err().to_string().contains("nope"));
    assert_eq!(kind.instance("y").await["spec"], json!({ "note": "good" }));
    assert_eq!(world.configmaps(&world.ns).await, ["y"]);
    assert_eq!(world.revisions().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_too_long_is_denied_by_us_r113() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Sluggish", &puppet()).set("timeout", "30ms");
    let kind = world.kind(airway).await;
    let error = kind.create("t", &json!({ "sleepMs": 60_000 })).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("denied the request") && error.contains("30ms"),
        "{error}"
    );
    assert!(error.contains(&kind.airway.name()), "{error}");
    // A limit beyond the webhook's own makes no failed call of the webhook.
    kind.update(json!({ "timeout": "40s" })).await;
    let error = kind.create("t", &json!({ "sleepMs": 60_000 })).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("denied the request") && !error.contains("failed calling webhook"),
        "{error}"
    );
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_follows_a_job_w1() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Working", &puppet()).set("fixDriftInterval", "1s");
    let kind = world.kind(airway).await;
    let spec = |suspend: bool| {
        let mut job = job("j");
        job["spec"]["suspend"] = suspend.into();
        json!({ "objects": [job] })
    };
    kind.create("j", &spec(true)).await.unwrap();
    kind.says("j", "InProgress", "Job/j: it is suspended").await;
    // Evaluations that find nothing to do judge it as the first one did.
    let runs = world.runs(&kind, "j");
    eventually(LIMIT, "it ran three times more", || async {
        let object = kind.instance("j").await;
        let ready = condition(&object, "Ready").unwrap();
        assert_eq!(ready["reason"], "InProgress", "{ready}");
        Ok((world.runs(&kind, "j") >= runs + 3).then_some(()))
    })
    .await;
    kind.edit("j", spec(false)).await;
    kind.ready("j").await;
    let path = format!("/apis/batch/v1/namespaces/{}/jobs/j", world.ns);
    let job = world.get(&path).await.unwrap().unwrap();
    assert_eq!(job["status"]["succeeded"], 1);
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_job_is_an_error() {
    let world = World::new().await;
    let kind = world.basic().await;
    let mut job = job("doomed");
    job["spec"]["activeDeadlineSeconds"] = 1.into();
    job["spec"]["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
    kind.create("j", &json!({ "objects": [job, configmap("c", json!({}))] }))
        .await
        .unwrap();
    let message = kind.says("j", "Error", "Job/doomed failed: ").await;
    assert!(
        message.contains("DeadlineExceeded") || message.contains("deadline"),
        "{message}"
    );
    let ready = condition(&kind.instance("j").await, "Ready")
        .unwrap()
        .clone();
    assert_eq!(ready["status"], "False");
    assert!(world.configmap("c").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_wait_for_each_other() {
    let world = World::new().await;
    let kind = world.basic().await;
    let mut suspended = job("first");
    suspended["spec"]["suspend"] = true.into();
    let stages = json!([[suspended], [configmap("second", json!({}))]]);
    kind.create("s", &json!({ "stages": stages }))
        .await
        .unwrap();
    let path = format!("/apis/batch/v1/namespaces/{}/jobs/first", world.ns);
    eventually(LIMIT, "the first stage is there", || async {
        world.get(&path).await
    })
    .await;
    let second = world.core("configmaps", "second");
    never(Duration::from_secs(2), "the second is", || async {
        world.get(&second).await
    })
    .await;
    // That it waits is said meanwhile.
    let words = "stage 1 of 2: waiting for Job/first: ";
    kind.says("s", "InProgress", words).await;
    world
        .merge(&path, &json!({ "spec": { "suspend": false } }))
        .await;
    kind.ready("s").await;
    let first = world.get(&path).await.unwrap().unwrap();
    let second = world.get(&second).await.unwrap().unwrap();
    assert!(
        text(&first["status"]["completionTime"]) <= text(&second["metadata"]["creationTimestamp"])
    );
    kind.delete("s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drift_interval_mends_without_revisions() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Drifting", &puppet()).set("fixDriftInterval", "300ms");
    let kind = world.kind(airway).await;
    let objects = json!([configmap("c", json!({ "k": "v" })), deployment("d", 2)]);
    kind.make("d", json!({ "objects": objects })).await;
    let revisions = world.revision_names().await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/d", world.ns);
    world
        .merge(&path, &json!({ "spec": { "replicas": 1 } }))
        .await;
    world
        .merge(
            &world.core("configmaps", "c"),
            &json!({ "data": { "k": "x" } }),
        )
        .await;
    eventually(LIMIT, "the replicas are back", || async {
        let found = world.get(&path).await?.unwrap_or_default();
        Ok((found["spec"]["replicas"] == 2).then_some(()))
    })
    .await;
    world.has("c", json!({ "k": "v" })).await;
    world.delete(&world.core("configmaps", "c")).await;
    world.has("c", json!({ "k": "v" })).await;
    eventually(LIMIT, "the Deployment is whole again", || async {
        let found = world.get(&path).await?.unwrap_or_default();
        let seen = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        Ok((seen && found["status"]["availableReplicas"] == 2).then_some(()))
    })
    .await;
    // Runs that change nothing record nothing and write no status. The first may still have seen a Pod come.
    let runs = world.runs(&kind, "d");
    eventually(LIMIT, "it ran twice more", || async {
        Ok((world.runs(&kind, "d") >= runs + 2).then_some(()))
    })
    .await;
    let runs = world.runs(&kind, "d");
    let version = kind.ready("d").await["metadata"]["resourceVersion"].clone();
    eventually(LIMIT, "it ran three times more", || async {
        Ok((world.runs(&kind, "d") >= runs + 3).then_some(()))
    })
    .await;
    assert_eq!(world.revision_names().await, revisions);
    assert_eq!(
        kind.instance("d").await["metadata"]["resourceVersion"],
        version
    );
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_is_capped() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Historic", &puppet())).await;
    let count = |number: usize| {
        let world = &world;
        eventually(
            LIMIT,
            "as many revisions as the cap says",
            move || async move {
                let found = world.revisions().await.len();
                Ok((found == number).then_some(()))
            },
        )
    };
    kind.make("h", json!({ "note": "0" })).await;
    for number in 1..4 {
        kind.edit("h", json!({ "note": number.to_string() })).await;
        kind.ready("h").await;
    }
    // Two, unless said otherwise.
    count(2).await;
    // Going back is a change like any other.
    kind.edit("h", json!({ "note": "2" })).await;
    kind.ready("h").await;
    count(2).await;
    kind.update(json!({ "historyCapSize": 3 })).await;
    kind.edit("h", json!({ "note": "4" })).await;
    kind.ready("h").await;
    kind.edit("h", json!({ "note": "5" })).await;
    kind.ready("h").await;
    count(3).await;
    // An edit that makes the same resources makes no revision.
    let revisions = world.revision_names().await;
    kind.edit("h", json!({ "note": "5", "other": true })).await;
    kind.ready("h").await;
    world.settle().await;
    assert_eq!(world.revision_names().await, revisions);
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_does_not_fit_is_said() {
    let world = World::new().await;
    let kind = world.loose().await;
    let unfit = json!({ "conditions": [{ "type": "Half" }] });
    kind.create("s", &json!({ "status": unfit })).await.unwrap();
    kind.says(
        "s",
        "Error",
        "the status that the flight printed is refused",
    )
    .await;
    let fit = json!({ "status": { "words": "whole" } });
    kind.edit("s", fit).await;
    let object = kind.ready("s").await;
    assert_eq!(object["status"]["words"], "whole");
    kind.delete("s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_can_be_none_is_said() {
    let world = World::new().await;
    let kind = world.loose().await;
    let fit = json!({ "status": { "words": "whole" } });
    kind.make("n", fit.clone()).await;
    for (status, words) in [
        (json!("x"), "status is a text, and must be an object"),
        (
            json!({ "words": "half", "conditions": "nope" }),
            "status.conditions is a text, and must be a list",
        ),
    ] {
        kind.edit("n", json!({ "status": status })).await;
        kind.says("n", "Error", words).await;
        // What was printed well before stays.
        assert_eq!(kind.instance("n").await["status"]["words"], "whole");
    }
    kind.edit("n", fit).await;
    kind.ready("n").await;
    kind.delete("n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finalizer_taken_off_by_hand_is_put_back() {
    let world = World::new().await;
    let kind = world.basic().await;
    kind.make("f", json!({})).await;
    let bare = json!({ "metadata": { "finalizers": null } });
    world.merge(&kind.path("f"), &bare).await;
    kind.until("f", "has its finalizer again", |object| {
        object["metadata"]["finalizers"] == json!(["yoke.cd/mayday.flight"])
    })
    .await;
    kind.delete("f").await;
    assert!(world.configmap("f").await.is_none());
}
