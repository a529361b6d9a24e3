//! Instances that wait for what does not come, or that fail: they say so, nobody polls for them, none is forgotten.

use atc_tests::{AirwayBuilder, Fault, Proxy, eventually};
use serde_json::{Value, json};

use crate::outage::behind;
use crate::solo::{Solo, plane};
use crate::world::{LIMIT, World, configmap, job, puppet};

const INSTANCES: usize = 40;

/// A Pod that nobody runs: there is no scheduler here.
fn pod(name: &str) -> Value {
    let container = json!({ "name": "main", "image": "none" });
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [container] },
    })
}

/// Says what a kubelet would say.
async fn run(world: &World, name: &str) {
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    let conditions = conditions.map(|kind| json!({ "type": kind, "status": "True" }));
    let status = json!({ "status": { "phase": "Running", "conditions": conditions } });
    let path = format!("{}/status", world.core("pods", name));
    world.merge(&path, &status).await;
}

/// That the atc asks for nothing any more but to be told.
async fn silent(world: &World) {
    let quiet = tokio::time::timeout(LIMIT, world.settle()).await;
    assert!(quiet.is_ok(), "somebody polls");
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_wait_cost_nothing_r159() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    let account = world.core("serviceaccounts", "default");
    eventually(LIMIT, "Pods may be made", || world.get(&account)).await;
    let names: Vec<String> = (0..INSTANCES).map(|number| format!("w{number}")).collect();
    for name in &names {
        let spec = json!({ "objects": [pod(name)] });
        kind.create(name, &spec).await.unwrap();
    }
    for name in &names {
        kind.says(name, "InProgress", &format!("Pod/{name}")).await;
    }
    silent(world).await;
    // Half of them go while they wait, and one gets what it waits for.
    let (left, gone) = names.split_at(INSTANCES / 2);
    for name in gone {
        world.delete(&kind.path(name)).await;
    }
    for name in gone {
        kind.gone(name).await;
        world.gone(&world.core("pods", name)).await;
    }
    run(world, &left[0]).await;
    kind.ready(&left[0]).await;
    silent(world).await;
    // Whoever starts anew waits on for the rest.
    atc.kill();
    run(world, &left[1]).await;
    atc.restart().await.unwrap();
    kind.ready(&left[1]).await;
    silent(world).await;
    for name in &left[2..] {
        kind.says(name, "InProgress", &format!("Pod/{name}")).await;
        run(world, name).await;
    }
    for name in left {
        kind.ready(name).await;
    }
    silent(world).await;
    for name in left {
        world.delete(&kind.path(name)).await;
    }
    for name in left {
        kind.gone(name).await;
    }
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_template_requires_of_a_status_keeps_no_failure_back() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Demanding", &puppet()).set("skipAdmissionWebhook", true);
    let kind = world
        .kind_with(airway, |airway| {
            let version = &mut airway["spec"]["template"]["versions"][0];
            let schema = &mut version["schema"]["openAPIV3Schema"];
            schema["properties"]["status"]["required"] = json!(["phase"]);
        })
        .await;
    kind.create("d", &json!({ "fail": "not today" }))
        .await
        .unwrap();
    kind.says("d", "Error", "not today").await;
    kind.edit("d", json!({ "status": { "phase": "up" } })).await;
    assert_eq!(kind.ready("d").await["status"]["phase"], "up");
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_is_too_large_is_refused_and_drift_is_mended() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Vast", &puppet())
        .set("fixDriftInterval", "1s")
        .set("skipAdmissionWebhook", true);
    let kind = world.kind(airway).await;
    // One is larger than any status may be; the other, with the spec that it is copied from, than the store takes.
    for (name, size, why) in [
        ("any", 1_100_000, "1048576 is the most"),
        ("both", 900_000, "too large"),
    ] {
        let child = configmap(name, json!({ "k": "v" }));
        let spec = json!({ "objects": [child], "status": { "msg": "x".repeat(size) } });
        kind.create(name, &spec).await.unwrap();
        let words = "the status that the flight printed is refused: ";
        let message = kind.says(name, "Error", words).await;
        assert!(message.contains(why), "{message}");
        let path = world.core("configmaps", name);
        world.merge(&path, &json!({ "data": { "k": "x" } })).await;
        world.has(name, json!({ "k": "v" })).await;
        assert_eq!(kind.says(name, "Error", words).await, message);
        kind.delete(name).await;
    }
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_others_refuse_proves_no_protection() {
    let world = World::new().await;
    let name = format!("no-probes-{}", world.ns);
    // It refuses the probes of limits in this namespace before any webhook is asked.
    let policy = json!({
        "metadata": { "name": name },
        "spec": {
            "matchConstraints": {
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": world.ns } },
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                    "resources": ["limitranges"],
                }],
            },
            "matchConditions": [{
                "name": "a-probe",
                "expression": "has(request.options) && has(request.options.fieldManager) \
                    && request.options.fieldManager == 'yoke.cd/probe'",
            }],
            "validations": [{ "expression": "false", "message": "nobody probes here" }],
        },
    });
    let binding = json!({
        "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    world.post(policies, &policy).await;
    world.post(bindings, &binding).await;
    let limits = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": name },
            "spec": { "limits": [{ "type": "Pod", "max": { "cpu": "1" } }] },
        })
    };
    let all = format!("/api/v1/namespaces/{}/limitranges", world.ns);
    world.post(&all, &limits("bait")).await;
    let probe = format!("{all}/bait?dryRun=All&fieldManager=yoke.cd%2Fprobe");
    eventually(LIMIT, "probes are refused", || async {
        let refused = world.cluster.api.merge(&probe, &json!({})).await.err();
        let words = refused.map(|error| error.to_string()).unwrap_or_default();
        Ok(words.contains("nobody probes here").then_some(()))
    })
    .await;
    let airway = AirwayBuilder::new("Exposed", &puppet()).set("mode", "static");
    let kind = world.kind(airway).await;
    let spec = json!({ "objects": [limits("p")] });
    kind.create("p", &spec).await.unwrap();
    let words = "can't see whether objects of kind LimitRange are protected";
    kind.says("p", "InProgress", words).await;
    assert!(world.get(&format!("{all}/p")).await.unwrap().is_some());
    // It is ready when a probe came through, and not before.
    world.delete(&format!("{bindings}/{name}")).await;
    world.delete(&format!("{policies}/{name}")).await;
    kind.ready("p").await;
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_others_kept_from_being_written_is_written_later() {
    let solo = Solo::begin().await;
    let proxy = Proxy::start(plane()).await.unwrap();
    let atc = behind(&solo, &proxy).await;
    let kind = solo.kind().await;
    // As often as it is tried on a newer state: each time somebody else was quicker.
    let write = format!("/{}/k/status", kind.airway.plural());
    proxy.fail_times(&write, Fault::Status(409, None), 5);
    kind.create("k", &json!({ "status": { "msg": "there" } }))
        .await
        .unwrap();
    assert_eq!(kind.ready("k").await["status"]["msg"], "there");
    let requests = proxy.requests();
    let tries = requests.iter().filter(|line| line.contains(&write)).count();
    assert!(tries > 5, "{tries}");
    assert!(atc.clone().alive());
    kind.delete("k").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_says_how_many_are_ready_and_what_it_waits_for() {
    let world = World::new().await;
    let kind = world.basic().await;
    let spec = json!({ "objects": [configmap("a", json!({})), suspended("b"), configmap("c", json!({}))] });
    kind.create("h", &spec).await.unwrap();
    let message = kind.says("h", "InProgress", "Job/b: ").await;
    assert!(message.starts_with("2 of 3 ready: Job/b: "), "{message}");
    kind.delete("h").await;
}

/// A Job that nobody begins.
fn suspended(name: &str) -> Value {
    let mut job = job(name);
    job["spec"]["suspend"] = true.into();
    job
}
