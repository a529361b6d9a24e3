//! Modes: what wakes an instance, what does not, and that a settled one is silent.

use std::time::{Duration, Instant};

use atc_tests::{AirwayBuilder, condition, eventually, is_ready, never};
use serde_json::{Value, json};

use crate::world::{LIMIT, SOON, World, configmap, deployment, look, puppet, text};

/// How long nothing may happen where nothing shall.
const QUIET: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn dynamic_mends_what_others_change() {
    let world = World::new().await;
    let kind = world.live().await;
    let mut marked = configmap("a", json!({ "k": "1" }));
    marked["metadata"]["labels"] = json!({ "l": "ours" });
    kind.make(
        "m",
        json!({ "objects": [marked, configmap("b", json!({ "k": "1" }))] }),
    )
    .await;
    let path = world.core("configmaps", "a");
    for _ in 0..3 {
        world
            .merge(&path, &json!({ "data": { "k": "9", "more": "x" } }))
            .await;
        world.has_soon("a", json!({ "k": "1" })).await;
        world.delete(&world.core("configmaps", "b")).await;
        world.has_soon("b", json!({ "k": "1" })).await;
    }
    // What others add is theirs; what they take by force, or of our marks, is ours again (R-29).
    assert_eq!(world.data("a").await["more"], "x");
    let forced = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": "forced" },
    });
    world.cluster.api.apply(&path, &forced).await.unwrap();
    world.has_soon("a", json!({ "k": "1" })).await;
    let marks = json!({ "metadata": {
        "labels": { "l": null, "app.kubernetes.io/managed-by": "me" },
        "annotations": { "instance.atc.yoke.cd/instanceRef": null },
    } });
    world.merge(&path, &marks).await;
    eventually(SOON, "the marks are back", || async {
        let metadata = world.get(&path).await?.unwrap_or_default()["metadata"].clone();
        let back = metadata["labels"]["l"] == "ours"
            && metadata["labels"]["app.kubernetes.io/managed-by"] == "atc.yoke"
            && metadata["annotations"]["instance.atc.yoke.cd/instanceRef"].is_string();
        Ok(back.then_some(()))
    })
    .await;
    assert_eq!(world.revisions().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_others_is_followed() {
    let world = World::new().await;
    let kind = world.live().await;
    world.put_secret("src", "one").await;
    let spec = json!({
        "look": [look("v", "Secret", &world.ns, "src", "metadata.resourceVersion"), look("x", "Secret", &world.ns, "src", "data.v")],
        "objects": [configmap("copy", json!({ "x": "${x}" }))],
    });
    kind.make("c", spec).await;
    world.has("copy", json!({ "x": "b25l" })).await;
    for (value, encoded) in [("two", "dHdv"), ("three", "dGhyZWU=")] {
        world.put_secret("src", value).await;
        world.has_soon("copy", json!({ "x": encoded })).await;
    }
    kind.ready("c").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_comes_and_goes_and_comes_r17() {
    let world = World::new().await;
    let kind = world.live().await;
    let mut source = look("x", "Secret", &world.ns, "db", "data.v");
    source["default"] = "nothing".into();
    let spec = json!({
        "look": [source],
        "objects": [{ "when": "x", "object": configmap("c", json!({ "x": "${x}" })) }],
        "status": { "msg": "found ${x}" },
    });
    kind.make("t", spec).await;
    assert!(world.configmap("c").await.is_none());
    for (value, encoded) in [("one", "b25l"), ("two", "dHdv")] {
        world.put_secret("db", value).await;
        world.has_soon("c", json!({ "x": encoded })).await;
        kind.until("t", "says what it found", |object| {
            object["status"]["msg"] == format!("found {encoded}")
        })
        .await;
        world.delete(&world.core("secrets", "db")).await;
        world.gone_soon(&world.core("configmaps", "c")).await;
        kind.until("t", "says that there is nothing", |object| {
            object["status"]["msg"] == "found nothing" && is_ready(object)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_child_may_be_the_input() {
    let world = World::new().await;
    let kind = world.live().await;
    let mut knob = look("n", "ConfigMap", &world.ns, "knob", "data.n");
    knob["default"] = "2".into();
    let spec = json!({
        "look": [knob],
        "objects": [configmap("knob", json!({ "n": "${n}" })), configmap("follows", json!({ "n": "${n}" }))],
    });
    kind.make("k", spec).await;
    world.has("follows", json!({ "n": "2" })).await;
    // The run that made `knob` is followed by one that has read it. What that one applies would undo an edit that falls
    // between its look-up and its apply, as with any writer that forces.
    world.settle().await;
    world
        .merge(
            &world.core("configmaps", "knob"),
            &json!({ "data": { "n": "7" } }),
        )
        .await;
    world.has_soon("follows", json!({ "n": "7" })).await;
    world.settle().await;
    assert_eq!(world.data("knob").await, json!({ "n": "7" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_child_is_followed() {
    let world = World::new().await;
    let kind = world.live().await;
    let mut source = look(
        "n",
        "Deployment",
        &world.ns,
        "d",
        "status.availableReplicas",
    );
    source["apiVersion"] = "apps/v1".into();
    source["default"] = "0".into();
    let spec = json!({ "look": [source], "objects": [deployment("d", 2)], "status": { "available": "${n}" } });
    kind.create("r", &spec).await.unwrap();
    kind.until("r", "has two replicas and is ready", |object| {
        object["status"]["available"] == "2" && is_ready(object)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscription_follows_what_was_looked_up() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Reader", &puppet())
        .set("mode", "subscription")
        .access(&[&format!("{}/ConfigMap:ext", world.ns)]);
    let kind = world.kind(airway).await;
    let external = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    world
        .post(&external, &configmap("ext", json!({ "v": "one" })))
        .await;
    let spec = json!({
        "look": [
            look("s", "ConfigMap", &world.ns, "subscribed", "data.v"),
            look("x", "ConfigMap", &world.ns, "ext", "data.v"),
        ],
        "objects": [configmap("subscribed", json!({ "v": "1" })), configmap("standard", json!({ "v": "${x}" }))],
    });
    kind.make("r", spec).await;
    world.has("standard", json!({ "v": "one" })).await;
    world.settle().await;
    let standard = world.core("configmaps", "standard");
    world.delete(&standard).await;
    never(
        QUIET,
        "it was not looked up, and yet it is back",
        || async { world.get(&standard).await },
    )
    .await;
    world.delete(&world.core("configmaps", "subscribed")).await;
    world.has_soon("subscribed", json!({ "v": "1" })).await;
    world.has_soon("standard", json!({ "v": "one" })).await;
    world
        .merge(
            &world.core("configmaps", "ext"),
            &json!({ "data": { "v": "two" } }),
        )
        .await;
    world.has_soon("standard", json!({ "v": "two" })).await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_follows_nothing_but_its_instance() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Plain", &puppet()).access(&["Secret"]);
    let kind = world.kind(airway).await;
    world.put_secret("src", "one").await;
    let mut spec = json!({
        "look": [look("x", "Secret", &world.ns, "src", "data.v")],
        "objects": [configmap("copy", json!({ "x": "${x}" })), configmap("gone", json!({}))],
    });
    kind.make("p", spec.clone()).await;
    world.settle().await;
    let runs = world.runs(&kind, "p");
    world.put_secret("src", "two").await;
    let copy = world.core("configmaps", "copy");
    world
        .merge(&copy, &json!({ "data": { "x": "mine" } }))
        .await;
    world.delete(&world.core("configmaps", "gone")).await;
    never(QUIET, "somebody put things right", || async {
        let gone = world.get(&world.core("configmaps", "gone")).await?;
        let copy = world.get(&copy).await?.unwrap_or_default();
        Ok((gone.is_some() || copy["data"]["x"] != "mine").then_some(()))
    })
    .await;
    assert_eq!(world.runs(&kind, "p"), runs);
    spec["other"] = 1.into();
    kind.edit("p", spec).await;
    world.has_soon("copy", json!({ "x": "dHdv" })).await;
    world.has_soon("gone", json!({})).await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_instance_is_silent_r01_r05_r07_w16() {
    let world = World::new().await;
    let kind = world.live().await;
    let mut empty = configmap("empty", json!({}));
    empty["metadata"]["labels"] = json!({ "a": "" });
    empty["metadata"]["annotations"] = json!({});
    let mut computed = deployment("d", 2);
    computed["metadata"]["annotations"] = json!({ "sum": "abc" });
    // As typed Go programs print it.
    computed["metadata"]["creationTimestamp"] = Value::Null;
    computed["status"] = json!({});
    computed["spec"]["strategy"] = json!({});
    computed["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
    computed["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({});
    kind.make("echo", json!({ "status": { "msg": "ok" } }))
        .await;
    kind.make("empty", json!({ "objects": [empty] })).await;
    kind.make("typed", json!({ "objects": [computed] })).await;
    kind.make(
        "dice",
        json!({ "objects": [configmap("dice", json!({ "now": "${now}" }))] }),
    )
    .await;
    let names = ["echo", "empty", "typed", "dice"];
    world.settle().await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/d", world.ns);
    let state = async || {
        let mut state = vec![world.get(&path).await.unwrap().unwrap()];
        for name in names {
            state.push(kind.instance(name).await);
        }
        let versions = state
            .iter()
            .map(|one| text(&one["metadata"]["resourceVersion"]).to_owned());
        versions.collect::<Vec<_>>()
    };
    let before = (state().await, names.map(|name| world.runs(&kind, name)));
    // Once at admission, once after it: what we write ourselves is no reason.
    assert_eq!(before.1, [2; 4]);
    let mut audit = world.cluster.audit();
    tokio::time::sleep(QUIET).await;
    let calls = audit.calls().await.unwrap();
    let mine: Vec<_> = calls
        .iter()
        .filter(|call| world.is_mine(call) && call.verb != "watch")
        .collect();
    assert!(mine.is_empty(), "{mine:#?}");
    let after = (state().await, names.map(|name| world.runs(&kind, name)));
    assert_eq!(after, before);
    let deployment = world.get(&path).await.unwrap().unwrap();
    assert_eq!(deployment["metadata"]["generation"], 1);

    // Another run of the same is no change: one revision each, nothing written.
    let revisions = world.revision_names().await;
    let child = world.configmap("empty").await.unwrap();
    let mut spec = kind.instance("empty").await["spec"].clone();
    spec["other"] = 1.into();
    kind.edit("empty", spec).await;
    kind.ready("empty").await;
    assert_eq!(world.configmap("empty").await.unwrap(), child);
    assert_eq!(world.revision_names().await, revisions);
    assert_eq!(revisions.len(), names.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_is_coalesced_r03() {
    let world = World::new().await;
    let kind = world.live().await;
    let child = |name: &str| {
        let mut child = configmap(name, json!({}));
        child["metadata"]["annotations"] = json!({ "want": "ours" });
        json!({ "objects": [child] })
    };
    for name in ["noisy", "idle", "calm"] {
        kind.make(name, child(name)).await;
    }
    world.settle().await;
    let version = |object: Value| object["metadata"]["resourceVersion"].clone();
    let mut idle = Vec::new();
    for name in ["idle", "calm"] {
        idle.push(version(kind.instance(name).await));
    }
    let before = world.runs(&kind, "noisy");
    let path = world.core("configmaps", "noisy");
    let begin = Instant::now();
    for number in 0..60 {
        let want = json!({ "metadata": { "annotations": { "want": number.to_string() } } });
        world.merge(&path, &want).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    eventually(SOON, "the last word is ours", || async {
        let found = world.get(&path).await?.unwrap_or_default();
        Ok((found["metadata"]["annotations"]["want"] == "ours").then_some(()))
    })
    .await;
    let seconds = usize::try_from(begin.elapsed().as_secs()).unwrap();
    world.settle().await;
    let runs = world.runs(&kind, "noisy") - before;
    // A settled instance may be woken by its children 5 times at once, and once a second from then on. Two more: the second
    // that has begun when the clock stops, and a wake that waits for its turn then.
    let most = 5 + seconds + 2;
    assert!((1..=most).contains(&runs), "{runs} runs, not {most}");
    for (name, before) in ["idle", "calm"].iter().zip(idle) {
        assert_eq!(version(kind.instance(name).await), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_stored_wakes_nobody_w6() {
    let world = World::new().await;
    let kind = world.live().await;
    world.put_secret("src", "one").await;
    let spec = json!({
        "look": [look("x", "Secret", &world.ns, "src", "data.v")],
        "objects": [configmap("copy", json!({ "x": "${x}" }))],
    });
    kind.make("c", spec).await;
    world.settle().await;
    let runs = world.runs(&kind, "c");
    let path = world.core("secrets", "src");
    let edit = json!({ "stringData": { "v": "two" } });
    world.merge(&format!("{path}?dryRun=All"), &edit).await;
    // The type of a Secret never changes.
    let mut refused = edit.clone();
    refused["type"] = "tests.atc.dev/other".into();
    let refused = world.cluster.api.merge(&path, &refused).await.unwrap_err();
    assert!(refused.to_string().contains("immutable"), "{refused}");
    never(QUIET, "it ran again", || async {
        let now = world.runs(&kind, "c");
        Ok((now > runs).then_some(now))
    })
    .await;
    // The same, stored.
    world.merge(&path, &edit).await;
    world.has_soon("copy", json!({ "x": "dHdv" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_during_a_run_make_one_more_r15() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Slow", &puppet()).set("skipAdmissionWebhook", true);
    let kind = world.kind(airway).await;
    let spec = |note: &str| json!({ "sleepMs": 1500, "note": note, "status": { "ran": "${now}" } });
    kind.create("s", &spec("0")).await.unwrap();
    // Its finalizer comes right before its first run.
    kind.until("s", "is taken up", |object| {
        object["metadata"]["finalizers"].is_array()
    })
    .await;
    for note in ["1", "2", "3"] {
        kind.edit("s", spec(note)).await;
    }
    world.has("s", json!({ "note": "3" })).await;
    kind.ready("s").await;
    world.settle().await;
    assert_eq!(world.runs(&kind, "s"), 2);
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_the_output_is_no_change_r09() {
    let world = World::new().await;
    let kind = world.live().await;
    let forms = [
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"f"},"data":{"a":"1","b":"2"}}"#,
        "[ {\"data\": {\"b\": \"2\",\n \"a\": \"1\"},\n \"metadata\": {\"name\": \"f\"}, \"kind\": \"ConfigMap\", \"apiVersion\": \"v1\"}, ]",
        "kind: ConfigMap\ndata:\n  b: '2'\n  a: \"1\"\napiVersion: v1\nmetadata: {name: f, namespace: ${namespace}}\n",
        "\u{feff}---\r\n# the same\r\nkind: ConfigMap\r\napiVersion: v1\r\nmetadata:\r\n  name: f\r\ndata: &d\r\n  a: '1'\r\n  b: '2'\r\n---\r\n",
        "[[],[{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"f\",\"creationTimestamp\":null},\"data\":{\"a\":\"1\",\"b\":\"2\"}}]}]]",
    ];
    kind.make("f", json!({ "raw": forms[0] })).await;
    let (child, revisions) = (world.configmap("f").await, world.revision_names().await);
    assert!(child.is_some());
    for form in &forms[1..] {
        kind.edit("f", json!({ "raw": form })).await;
        kind.ready("f").await;
        assert_eq!(world.revision_names().await, revisions, "{form}");
        assert_eq!(world.configmap("f").await, child, "{form}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn matchers_gate_what_may_be_looked_up() {
    let world = World::new().await;
    let (a, b) = (world.namespace().await, world.namespace().await);
    for namespace in [&a, &b] {
        let secret = json!({ "metadata": { "name": "s" }, "stringData": { "v": "x" } });
        world
            .post(&format!("/api/v1/namespaces/{namespace}/secrets"), &secret)
            .await;
    }
    let spec = json!({
        "look": [look("x", "Secret", &a, "s", "data.v"), look("y", "Secret", &b, "s", "data.v")],
        "objects": [configmap("got", json!({ "x": "${x}", "y": "${y}" }))],
    });
    let airway = AirwayBuilder::new("Gate", &puppet()).set("resourceAccessMatchers", json!(["*"]));
    let kind = world.kind(airway).await;
    let refused = async |words: &str| {
        eventually(LIMIT, &format!("refused with {words:?}"), || async {
            let error = kind.create("g", &spec).await.err();
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            if error.contains(words) {
                Ok(Some(error))
            } else {
                Err(anyhow::anyhow!("{error}"))
            }
        })
        .await
    };
    // Without access no matcher counts (state 1), without a matcher no access (state 5).
    refused("access to the cluster is not granted").await;
    let tables: [(&[&str], &str); 6] = [
        (&[], &a),
        (&["ConfigMap", "Secret.apps", "secret", "/"], &a),
        (&[&format!("{b}/Secret"), "default/*"], &a),
        (&[&format!("{a}/Secret:other"), &format!("{b}/*")], &a),
        (&[&format!("{a}/Secret:s")], &b),
        (&[&format!("{a}/*"), &format!("{b}/ConfigMap")], &b),
    ];
    for (matchers, namespace) in tables {
        kind.update(json!({ "clusterAccess": true, "resourceAccessMatchers": matchers }))
            .await;
        let error = refused(&format!("{namespace}/Secret:s")).await;
        assert!(error.contains("forbidden"), "{matchers:?}: {error}");
    }
    for matchers in [
        json!(["*"]),
        json!(["Secret"]),
        json!([format!("{a}/*"), format!("{b}/Secret:s")]),
    ] {
        kind.update(json!({ "resourceAccessMatchers": matchers }))
            .await;
        eventually(LIMIT, "it is taken", || async {
            kind.create("g", &spec).await.map(Some)
        })
        .await;
        kind.ready("g").await;
        world.has("got", json!({ "x": "eA==", "y": "eA==" })).await;
        kind.delete("g").await;
    }
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_run_keeps_its_look_ups() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Sick", &puppet())
        .dynamic()
        .access(&["Secret"])
        .set("skipAdmissionWebhook", true);
    let kind = world.kind(airway).await;
    world.put_secret("src", "bad").await;
    let spec = json!({
        "look": [look("x", "Secret", &world.ns, "src", "data.v")],
        "objects": [configmap("c", json!({ "x": "${x}" }))],
        "exitIf": { "x": "YmFk" },
    });
    kind.create("s", &spec).await.unwrap();
    kind.says("s", "Error", "x is YmFk").await;
    assert!(world.configmap("c").await.is_none());
    // No need to wait for the backoff: its input has changed.
    world.put_secret("src", "good").await;
    world.has_soon("c", json!({ "x": "Z29vZA==" })).await;
    kind.ready("s").await;
    // And the other way: children stay as they were.
    world.put_secret("src", "bad").await;
    kind.says("s", "Error", "x is YmFk").await;
    assert_eq!(world.data("c").await, json!({ "x": "Z29vZA==" }));
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_group_harms_nobody_else_r97() {
    let world = World::new().await;
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    let service = json!({
        "metadata": { "name": "v1.nobody.tests.atc.dev" },
        "spec": {
            "group": "nobody.tests.atc.dev", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
            "insecureSkipTLSVerify": true, "service": { "namespace": world.ns, "name": "nobody" },
        },
    });
    world.post(path, &service).await;
    let kind = world.live().await;
    let nobody = json!({ "apiVersion": "nobody.tests.atc.dev/v1", "kind": "Nobody", "metadata": { "name": "n" } });
    let error = kind
        .create("n", &json!({ "objects": [nobody] }))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("nobody.tests.atc.dev"),
        "{error}"
    );
    kind.make(
        "s",
        json!({ "objects": [configmap("c", json!({ "k": "1" })), deployment("d", 1)] }),
    )
    .await;
    world.delete(&world.core("configmaps", "c")).await;
    world.has_soon("c", json!({ "k": "1" })).await;
    let ready = condition(&kind.ready("s").await, "Ready").cloned();
    assert_eq!(ready.unwrap()["reason"], "Ready");
    world
        .delete(&format!("{path}/v1.nobody.tests.atc.dev"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_said_though_the_flight_said_ready_before() {
    let world = World::new().await;
    let kind = world.loose().await;
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "Custom", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let good = json!({
        "objects": [configmap("c", json!({}))],
        "status": { "msg": "up", "conditions": [ready] },
    });
    kind.make("r", good.clone()).await;
    kind.edit("r", json!({ "fail": "the moon is wrong" })).await;
    kind.says("r", "Error", "the moon is wrong").await;
    // Nor does a look at its children take that back, or another try.
    world.delete(&world.core("configmaps", "c")).await;
    let mut audit = world.cluster.audit();
    world.settle().await;
    let calls = audit.calls().await.unwrap();
    let of_status = |call: &atc_tests::Call| {
        world.is_mine(call) && call.writes() && call.resource.ends_with("/status")
    };
    assert!(!calls.iter().any(of_status));
    let failed = kind.instance("r").await;
    assert_eq!(condition(&failed, "Ready").unwrap()["reason"], "Error");
    assert_eq!(failed["status"]["msg"], "up");
    kind.edit("r", good).await;
    kind.says("r", "Custom", "m").await;
    kind.delete("r").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_mended_though_the_status_is_refused() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Unfit", &puppet())
        .set("fixDriftInterval", "300ms")
        .set("skipAdmissionWebhook", true);
    let kind = world.kind(airway).await;
    let unfit = json!({ "conditions": [{ "type": "Half" }] });
    let objects = json!([configmap("c", json!({ "k": "v" }))]);
    let spec = json!({ "objects": objects, "status": unfit });
    kind.create("u", &spec).await.unwrap();
    let words = "the status that the flight printed is refused";
    kind.says("u", "Error", words).await;
    let path = world.core("configmaps", "c");
    for _ in 0..2 {
        world.merge(&path, &json!({ "data": { "k": "x" } })).await;
        world.has("c", json!({ "k": "v" })).await;
    }
    kind.says("u", "Error", words).await;
    kind.finish().await;
}
