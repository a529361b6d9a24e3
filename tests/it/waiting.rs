//! Instances that wait for what does not come, or that fail: they say so, nobody polls for them, none is forgotten.

use atc_tests::{AirwayBuilder, eventually};
use serde_json::{Value, json};

use crate::solo::Solo;
use crate::world::{LIMIT, World, puppet};

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
