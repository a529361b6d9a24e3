//! Who waits for the atc when something is written, and who does not: by the clock, and as the API server itself counts.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use atc_tests::{AirwayBuilder, eventually};
use serde_json::{Value, json};

use crate::{
    protect::is_refused,
    solo::Solo,
    world::{AIRWAYS, CRDS, Kind, LIMIT, World, configmap, deployment, free_crd, job, puppet},
};

const MODE: &str = "overrides.yoke.cd/mode";
/// A write that nobody holds up: far below the time limit of any webhook, far above what a busy machine needs.
const AT_ONCE: Duration = Duration::from_secs(3);
/// The API server's own count of calls to webhooks for admission.
const COUNTER: &str = "apiserver_admission_webhook_admission_duration_seconds_count{";

/// How often the API server has asked each webhook.
pub(crate) async fn asked(world: &World) -> BTreeMap<String, f64> {
    let metrics = world.cluster.api.text("/metrics").await.unwrap();
    let mut asked = BTreeMap::new();
    for line in metrics.lines().filter(|line| line.starts_with(COUNTER)) {
        let name = line.split_once("{name=\"").unwrap().1;
        let name = name.split_once('"').unwrap().0;
        let count: f64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
        *asked.entry(name.to_owned()).or_default() += count;
    }
    asked
}

/// Objects that are nothing to the atc, each with the path of its collection.
fn ordinary(namespace: &str) -> Vec<(String, Value)> {
    let core = |plural: &str| format!("/api/v1/namespaces/{namespace}/{plural}");
    let of = |api: &str, kind: &str, more: Value| {
        let mut object =
            json!({ "apiVersion": api, "kind": kind, "metadata": { "name": "ordinary" } });
        for (key, value) in more.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let pod = json!({ "spec": {
        "automountServiceAccountToken": false, "containers": [{ "name": "main", "image": "none" }],
    } });
    let service = json!({ "spec": { "ports": [{ "port": 80 }] } });
    let apis = |group: &str, plural: &str| format!("/apis/{group}/namespaces/{namespace}/{plural}");
    vec![
        (core("configmaps"), configmap("ordinary", json!({}))),
        (core("secrets"), of("v1", "Secret", json!({}))),
        (core("services"), of("v1", "Service", service)),
        (
            core("serviceaccounts"),
            of("v1", "ServiceAccount", json!({})),
        ),
        (core("pods"), of("v1", "Pod", pod)),
        (apis("apps/v1", "deployments"), deployment("ordinary", 0)),
        (apis("batch/v1", "jobs"), job("ordinary")),
        (
            apis("coordination.k8s.io/v1", "leases"),
            of("coordination.k8s.io/v1", "Lease", json!({})),
        ),
        (
            apis("rbac.authorization.k8s.io/v1", "roles"),
            of("rbac.authorization.k8s.io/v1", "Role", json!({})),
        ),
        (
            apis("made.dev/v1", "bystanders"),
            of("made.dev/v1", "Bystander", json!({})),
        ),
    ]
}

/// Creates, changes and deletes each of them; nobody makes any of these wait.
async fn write_all(world: &World, namespace: &str) {
    let api = &world.cluster.api;
    let label = json!({ "metadata": { "labels": { "touched": "yes" } } });
    for (path, body) in ordinary(namespace) {
        let one = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
        // Pods wait for the ServiceAccount of a new namespace, which a controller makes.
        let (_, took) = eventually(LIMIT, &format!("{one} is made"), || async {
            let begin = Instant::now();
            let made = api.post(&path, &body).await?;
            Ok(Some((made, begin.elapsed())))
        })
        .await;
        assert!(took < AT_ONCE, "{one} took {took:?}");
        let begin = Instant::now();
        api.merge(&one, &label).await.unwrap();
        api.delete(&one).await.unwrap();
        assert!(begin.elapsed() < AT_ONCE, "{one}: {:?}", begin.elapsed());
    }
}

/// The CRD of a kind that has nothing to do with us.
async fn bystanders(world: &World) {
    world
        .cluster
        .api
        .delete(&format!("{CRDS}/bystanders.made.dev"))
        .await
        .unwrap();
    world.gone(&format!("{CRDS}/bystanders.made.dev")).await;
    world.post(CRDS, &free_crd("Bystander")).await;
    eventually(LIMIT, "bystanders are served", || async {
        world.get("/apis/made.dev/v1/bystanders").await
    })
    .await;
}

/// A kind whose instances are reviewed, and one of them in mode `static`, with a ConfigMap.
async fn reviewed<'a>(world: &'a World, name: &str) -> Kind<'a> {
    let kind = world.kind(AirwayBuilder::new(name, &puppet())).await;
    let spec = json!({ "objects": [configmap("kept", json!({ "k": "v" }))] });
    let mut fixed = kind.airway.instance("fixed", &spec);
    fixed["metadata"]["annotations"] = json!({ MODE: "static" });
    world.post(&kind.airway.path(&world.ns), &fixed).await;
    kind.ready("fixed").await;
    kind
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_other_kinds_ask_no_webhook_of_ours_w7() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let _atc = solo.atc(&[]).await;
    bystanders(world).await;
    let kind = reviewed(world, "Asked").await;
    let before = asked(world).await;
    kind.make("a", json!({ "note": "1" })).await;
    world
        .cluster
        .api
        .delete(&world.core("configmaps", "kept"))
        .await
        .unwrap_err();
    let after = asked(world).await;
    let moved = |name: &str| {
        let count = |asked: &BTreeMap<String, f64>| asked.get(name).copied().unwrap_or_default();
        count(&after) > count(&before)
    };
    assert!(moved("askeds.tests.atc.dev"), "{after:?}");
    assert!(
        after
            .keys()
            .any(|name| name.starts_with("resources") && moved(name)),
        "{after:?}"
    );

    write_all(world, &world.ns).await;
    let other = world.namespace().await;
    write_all(world, &other).await;
    assert_eq!(asked(world).await, after);
    kind.finish().await;
    world.delete(&format!("{CRDS}/bystanders.made.dev")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_writers_of_our_kinds_wait_for_an_atc_that_is_down_r105_w12() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    bystanders(world).await;
    let kind = reviewed(world, "Downed").await;
    kind.make("a", json!({ "note": "1" })).await;
    kind.make("b", json!({ "note": "1" })).await;
    atc.kill();

    // Its own namespace is where it would be started again.
    for namespace in [&*world.ns, &*world.namespace().await, "atc"] {
        write_all(world, namespace).await;
    }
    for (name, edit) in [("a", json!({ "note": "2" })), ("kept", json!({ "k": "w" }))] {
        let begin = Instant::now();
        let path = world.core("configmaps", name);
        world.merge(&path, &json!({ "data": edit })).await;
        assert!(begin.elapsed() < AT_ONCE, "{name}: {:?}", begin.elapsed());
    }
    let api = &world.cluster.api;
    let edit = json!({ "spec": { "note": "2" } });
    let airway = AirwayBuilder::new("Never", &puppet()).build();
    for answer in [
        kind.create("c", &json!({})).await,
        api.merge(&kind.path("a"), &edit).await,
        api.post(AIRWAYS, &airway).await,
    ] {
        let said = answer.unwrap_err().to_string();
        assert!(said.contains("failed calling webhook"), "{said}");
    }
    // What only says how it stands, and a deletion, are for later.
    let status = json!({ "status": { "seen": "yes" } });
    api.merge(&format!("{}/status", kind.path("b")), &status)
        .await
        .unwrap();
    world.delete(&kind.path("b")).await;

    // Nobody but the one who starts it has to do anything.
    atc.restart().await.unwrap();
    kind.gone("b").await;
    world.has("kept", json!({ "k": "v" })).await;
    eventually(LIMIT, "an edit is taken", || async {
        api.merge(&kind.path("a"), &edit).await.map(Some)
    })
    .await;
    world.has("a", json!({ "note": "2" })).await;
    kind.finish().await;
    world.delete(&format!("{CRDS}/bystanders.made.dev")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atc_that_hangs_holds_up_no_writer_of_what_other_kinds_have_made_w11() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let atc = solo.atc(&[]).await;
    let fixed = reviewed(world, "Still").await;
    let free = world
        .kind(AirwayBuilder::new("Unbound", &puppet()).set("skipAdmissionWebhook", true))
        .await;
    let made = json!([
        configmap("loose", json!({ "k": "v" })),
        configmap("dropped", json!({}))
    ]);
    free.make("a", json!({ "objects": made })).await;
    let api = &world.cluster.api;
    let (loose, kept) = (
        world.core("configmaps", "loose"),
        world.core("configmaps", "kept"),
    );
    let edit = json!({ "data": { "k": "w" } });
    is_refused(world, &kept).await;

    atc.process().signal("STOP").unwrap();
    let begin = Instant::now();
    let written = [
        api.merge(&loose, &edit).await.map(drop),
        api.delete(&world.core("configmaps", "dropped")).await,
    ];
    let took = begin.elapsed();
    // What is protected is asked about, and passes in the end: without that, nothing would have been waited for.
    let begin = Instant::now();
    let passed = api.merge(&format!("{kept}?dryRun=All"), &edit).await;
    let waited = begin.elapsed();
    atc.process().signal("CONT").unwrap();
    assert!(written.iter().all(Result::is_ok), "{written:?}");
    assert!(took < AT_ONCE, "{took:?}");
    passed.unwrap();
    assert!(waited >= AT_ONCE, "{waited:?}");

    // What an instance of the other kind makes in mode static is protected as soon as that is ready.
    is_refused(world, &kept).await;
    let spec = json!({ "objects": [configmap("tight", json!({ "k": "v" }))] });
    let mut tight = free.airway.instance("tight", &spec);
    tight["metadata"]["annotations"] = json!({ MODE: "static" });
    world.post(&free.airway.path(&world.ns), &tight).await;
    free.ready("tight").await;
    let tight = world.core("configmaps", "tight");
    let said = api.delete(&tight).await.unwrap_err().to_string();
    assert!(said.contains("may not be deleted"), "{said}");
    fixed.finish().await;
    free.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_holds_up_no_writer_of_a_child_w11() {
    let world = World::new().await;
    for (name, mode) in [("Unhurried", "dynamic"), ("Sedate", "static")] {
        let airway = AirwayBuilder::new(name, &puppet())
            .set("mode", mode)
            .set("skipAdmissionWebhook", true);
        let kind = world.kind(airway).await;
        let objects = json!([configmap("c", json!({ "k": "v" }))]);
        kind.make("a", json!({ "objects": objects })).await;
        let ran = world.runs(&kind, "a");
        kind.edit("a", json!({ "objects": objects, "sleepMs": 4_000 }))
            .await;
        // Some changes before its end, as fast as they go: of what the release has, and of what is others'.
        let path = world.core("configmaps", "c");
        let mut written = 0;
        while world.runs(&kind, "a") == ran {
            let field = if mode == "dynamic" { "k" } else { "mine" };
            let begin = Instant::now();
            let edit = json!({ "data": { field: written.to_string() } });
            world.merge(&path, &edit).await;
            assert!(begin.elapsed() < AT_ONCE, "{mode}: {:?}", begin.elapsed());
            written += 1;
        }
        assert!(written > 10, "{mode}: {written}");
        world.has("c", json!({ "k": "v" })).await;
        kind.edit("a", json!({ "objects": objects })).await;
        kind.finish().await;
    }
}
