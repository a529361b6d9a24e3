//! Waiting until objects are ready, and users' own rules of readiness.

use std::time::{Duration, Instant};

use atc_tests::{Cluster, Fault, Proxy, Yoke, YokeOutput, eventually};
use serde_json::{Value, json};

use crate::solo::Solo;
use crate::world::{CRDS, LIMIT, World, deployment, free_crd, job};

const LABEL: &str = "resource.yoke.cd/readiness";

/// A namespace in which no atc has a hand and the controllers are at work: a wait with a limit must not measure their
/// start.
async fn world() -> World {
    let world = World::on(Cluster::shared().await).await;
    eventually(LIMIT, "the controllers are at work", || async {
        world.get(&world.core("serviceaccounts", "default")).await
    })
    .await;
    world
}

/// Runs `takeoff` in the test's namespace.
async fn takeoff(world: &World, yoke: &Yoke, flags: &[&str], objects: &Value) -> YokeOutput {
    let mut arguments = vec!["takeoff", "-namespace", &world.ns];
    arguments.extend(flags);
    arguments.push("r");
    yoke.with_input(&arguments, &objects.to_string())
        .await
        .unwrap()
}

/// Asserts that it failed with these words.
fn assert_fails(ran: &YokeOutput, words: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    for words in words {
        assert!(ran.stderr.contains(words), "{words:?} in {}", ran.stderr);
    }
}

fn assert_succeeds(ran: &YokeOutput) {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// Makes a kind of free objects and waits until it is served.
async fn kind(world: &World, kind: &str) {
    world.post(CRDS, &free_crd(kind)).await;
    let path = format!("/apis/made.dev/v1/{}s", kind.to_lowercase());
    eventually(LIMIT, "the kind is served", || async {
        Ok(world.get(&path).await?.map(|_| ()))
    })
    .await;
}

/// An object of such a kind.
fn made(kind: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "made.dev/v1", "kind": kind, "metadata": { "name": "a" }, "spec": spec })
}

/// Creates a ConfigMap of rules.
async fn rules(world: &World, namespace: &str, sort: &str, data: Value) -> Value {
    let body = json!({ "metadata": { "name": "rules", "labels": { LABEL: sort } }, "data": data });
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    world.post(&path, &body).await
}

/// A Deployment whose Pods fit no node.
fn stuck(name: &str) -> Value {
    let mut stuck = deployment(name, 1);
    stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
    stuck
}

/// The command line behind a proxy. The folder holds its kubeconfig.
async fn behind_proxy(world: &World) -> (Yoke, Proxy, tempfile::TempDir) {
    let plane = world.cluster.plane();
    let proxy = Proxy::start(plane).await.unwrap();
    let file = std::fs::read_to_string(plane.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&file).unwrap();
    config["clusters"][0]["cluster"]["server"] = proxy.server().into();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    (Yoke::new(plane).unwrap().kubeconfig(path), proxy, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_wait_says_what_pods_and_events_say_r157() {
    let world = world().await;
    let yoke = Yoke::new(world.cluster.plane()).unwrap();
    let ran = takeoff(&world, &yoke, &["-wait", "15s"], &stuck("stuck")).await;
    let words = [
        "deployment/stuck",
        "within 15s",
        "descent",
        "Unschedulable",
        "Pod \"stuck-",
    ];
    assert_fails(&ran, &words);
    // The message itself is one line, what is known besides stands below it.
    let line = ran.stderr.lines().find(|line| line.starts_with("error: "));
    assert!(!line.unwrap().contains("Unschedulable"), "{}", ran.stderr);
    // Between stages too.
    let mut failing = job("failing");
    failing["spec"]["activeDeadlineSeconds"] = 1.into();
    failing["spec"]["template"]["spec"]["nodeSelector"] = json!({ "no": "such" });
    let stages = json!([[failing], [deployment("after", 1)]]);
    let ran = takeoff(&world, &yoke, &[], &stages).await;
    assert_fails(&ran, &["stage 1 of 2", "job/failing", "DeadlineExceeded"]);
    let after = format!("/apis/apps/v1/namespaces/{}/deployments/after", world.ns);
    assert!(world.get(&after).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_meanwhile_is_said() {
    let world = world().await;
    let yoke = Yoke::new(world.cluster.plane()).unwrap();
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/d", world.ns);
    let delete = async {
        eventually(LIMIT, "it is there and seen", || async {
            let found = world.get(&path).await?.unwrap_or_default();
            Ok((found["status"]["observedGeneration"] == 1).then_some(()))
        })
        .await;
        world.delete(&path).await;
    };
    let objects = stuck("d");
    let flags = ["-wait", "60s"];
    let (ran, ()) = tokio::join!(takeoff(&world, &yoke, &flags, &objects), delete);
    assert_fails(&ran, &["deployment/d", "deleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_tell_and_a_poll_stands_in_for_them() {
    let world = world().await;
    let (yoke, proxy, _folder) = behind_proxy(&world).await;
    // The end of the Job is seen long before the next look that is due without a word.
    let begun = Instant::now();
    let ran = takeoff(
        &world,
        &yoke,
        &["-wait", "60s", "-poll", "50s"],
        &job("told"),
    )
    .await;
    assert_succeeds(&ran);
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "{:?}",
        begun.elapsed()
    );
    let asked = proxy.requests();
    let reads = asked
        .iter()
        .filter(|line| line.starts_with("GET") && line.contains("/jobs/told"));
    assert_eq!(reads.count(), 1, "only the look at whose it is: {asked:#?}");
    // Rights for single objects are enough.
    let lists = |line: &&String| line.contains("/jobs?") && !line.contains("metadata.name");
    assert_eq!(asked.iter().find(lists), None);
    // Where nothing may be watched, it is looked at.
    proxy.fail("fieldSelector", Fault::Status(403, None));
    let ran = takeoff(
        &world,
        &yoke,
        &["-wait", "60s", "-poll", "200ms"],
        &job("polled"),
    )
    .await;
    assert_succeeds(&ran);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_the_releases_namespace_count_w25() {
    let world = world().await;
    let yoke = Yoke::new(world.cluster.plane()).unwrap();
    kind(&world, "Dial").await;
    let low = made("Dial", &json!({ "level": "low" }));
    let high = made("Dial", &json!({ "level": "high" }));
    let load = ["-load-custom-readiness", "-wait", "2s"];
    let script = "return function(o) return o.spec.level == 'high' end";
    // In somebody else's namespace it says nothing here.
    let other = world.namespace().await;
    rules(&world, &other, "lua", json!({ "Dial.made.dev": script })).await;
    assert_succeeds(&takeoff(&world, &yoke, &load, &low).await);
    rules(&world, &world.ns, "lua", json!({ "Dial.made.dev": script })).await;
    let ran = takeoff(&world, &yoke, &load, &low).await;
    assert_fails(&ran, &["dial/a", "readiness script", "rules", "not ready"]);
    // Only where it is asked for.
    assert_succeeds(&takeoff(&world, &yoke, &["-wait", "2s"], &low).await);
    assert_succeeds(&takeoff(&world, &yoke, &load, &high).await);
    world.delete(&format!("{CRDS}/dials.made.dev")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_mean_harm_end_with_words() {
    let world = world().await;
    let yoke = Yoke::new(world.cluster.plane()).unwrap();
    kind(&world, "Trap").await;
    let trap = made("Trap", &json!({}));
    for (script, words) in [
        (
            "return function() while true do pcall(function() while true do end end) end end",
            "runs too long",
        ),
        (
            "return function() local s = 'x' while true do s = s .. s end end",
            "MiB of memory",
        ),
        ("return function() return 'yes' end", "returns a string"),
        (
            "return function() os.exit(0) end",
            "nil value (global 'os')",
        ),
        ("nonsense", "no Lua"),
    ] {
        rules(&world, &world.ns, "lua", json!({ "_.made.dev": script })).await;
        let flags = ["-load-custom-readiness", "-wait", "1ms"];
        let ran = takeoff(&world, &yoke, &flags, &trap).await;
        assert_fails(&ran, &["trap/a", &format!("{}/rules", world.ns), words]);
        world.delete(&world.core("configmaps", "rules")).await;
    }
    world.delete(&format!("{CRDS}/traps.made.dev")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_waited_for() {
    let world = world().await;
    let yoke = Yoke::new(world.cluster.plane()).unwrap();
    kind(&world, "Lamp").await;
    rules(
        &world,
        &world.ns,
        "conditions",
        json!({ "Lamp.made.dev": "Lit Warm" }),
    )
    .await;
    let path = format!("/apis/made.dev/v1/namespaces/{}/lamps/a", world.ns);
    let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": "R", "message": "still dark" });
    let lamp = made("Lamp", &json!({}));
    let light = async {
        eventually(LIMIT, "it is there", || async { world.get(&path).await }).await;
        let both = json!([condition("Lit", "True"), condition("Warm", "True")]);
        world
            .merge(&path, &json!({ "status": { "conditions": both } }))
            .await;
    };
    let flags = ["-load-custom-readiness", "-wait", "60s", "-poll", "50s"];
    let (ran, ()) = tokio::join!(takeoff(&world, &yoke, &flags, &lamp), light);
    assert_succeeds(&ran);
    let dark = json!([condition("Lit", "True"), condition("Warm", "False")]);
    world
        .merge(&path, &json!({ "status": { "conditions": dark } }))
        .await;
    let flags = ["-load-custom-readiness", "-wait", "1s"];
    let ran = takeoff(&world, &yoke, &flags, &lamp).await;
    assert_fails(&ran, &["lamp/a", "not Warm", "still dark"]);
    // Without a rule its own word Ready counts, for the present generation only.
    let stale = json!({ "type": "Ready", "status": "True", "reason": "R", "message": "m", "observedGeneration": 99 });
    world
        .merge(&path, &json!({ "status": { "conditions": [stale] } }))
        .await;
    let ran = takeoff(&world, &yoke, &["-wait", "1s"], &lamp).await;
    assert_fails(&ran, &["lamp/a", "whether it is Ready"]);
    world.delete(&format!("{CRDS}/lamps.made.dev")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_follow_the_rules() {
    let world = World::new().await;
    kind(&world, "Gate").await;
    let instances = world.basic().await;
    let spec = json!({ "objects": [made("Gate", &json!({ "open": true }))] });
    instances.make("g", spec).await;
    let other = world.namespace().await;
    let closed = json!({ "Gate.made.dev": "return function(o) return o.spec.open == false end" });
    let open = json!({ "Gate.made.dev": "return function(o) return o.spec.open end" });
    rules(&world, &world.ns, "lua", closed).await;
    instances
        .says("g", "InProgress", "Gate/a: the readiness script")
        .await;
    let path = world.core("configmaps", "rules");
    world.merge(&path, &json!({ "data": open })).await;
    instances.ready("g").await;
    // A script that breaks is an instance that is not ready; one without a label is no rule.
    let broken = json!({ "Gate.made.dev": "return function(o) error('broken') end" });
    world.merge(&path, &json!({ "data": broken })).await;
    instances.says("g", "InProgress", "broken").await;
    world
        .merge(&path, &json!({ "metadata": { "labels": { LABEL: null } } }))
        .await;
    instances.ready("g").await;
    // Somebody else's rules change nothing and ask for nothing.
    world.settle().await;
    let before = instances.instance("g").await;
    let closed = json!({ "Gate.made.dev": "return function() return false end" });
    rules(&world, &other, "lua", closed).await;
    world.settle().await;
    assert_eq!(instances.instance("g").await, before);
    instances.delete("g").await;
    world.delete(&format!("{CRDS}/gates.made.dev")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_the_atcs_namespace_count_for_all_unless_they_are_disabled() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    kind(world, "Tap").await;
    let closed = json!({ "_.made.dev": "return function() return false end" });
    let body =
        json!({ "metadata": { "name": "taps", "labels": { LABEL: "lua" } }, "data": closed });
    let path = "/api/v1/namespaces/atc/configmaps";
    let mut atc = solo.atc(&[]).await;
    let instances = solo.kind().await;
    world.post(path, &body).await;
    let spec = json!({ "objects": [made("Tap", &json!({}))] });
    instances.create("t", &spec).await.unwrap();
    instances.says("t", "InProgress", "atc/taps").await;
    // The command line finds out where the atc is.
    let yoke = Yoke::new(world.cluster.plane()).unwrap();
    let mut tap = made("Tap", &json!({}));
    tap["metadata"]["name"] = "b".into();
    let flags = ["-load-custom-readiness", "-wait", "1ms"];
    let ran = takeoff(world, &yoke, &flags, &tap).await;
    assert_fails(&ran, &["tap/b", "atc/taps"]);
    // From its start on it knows them: nothing is said and taken back.
    world.settle().await;
    let before = instances.instance("t").await;
    atc.restart().await.unwrap();
    world.settle().await;
    assert_eq!(instances.instance("t").await, before);
    atc.terminate().unwrap();
    let mut atc = solo.atc(&[("DISABLE_CUSTOM_READINESS", "true")]).await;
    let instances = solo.kind().await;
    let merged = json!({ "metadata": { "annotations": { "touched": "yes" } } });
    world.merge(&instances.path("t"), &merged).await;
    instances.ready("t").await;
    instances.delete("t").await;
    world.delete(&format!("{path}/taps")).await;
    world.delete(&format!("{CRDS}/taps.made.dev")).await;
    atc.terminate().unwrap();
}
