//! Fields that others set, and what a takeoff makes of them.

use serde_json::{Value, json};

use crate::terminal::Cli;
use crate::world::{configmap, deployment, text};

#[tokio::test(flavor = "multi_thread")]
async fn what_client_side_apply_set_becomes_ours_r33() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let all = json!({ "a": "1", "legacy": "2" });
    let mut applied = configmap("a", all.clone());
    applied["metadata"]["annotations"] =
        json!({ "kubectl.kubernetes.io/last-applied-configuration": applied.to_string() });
    let path = format!(
        "/api/v1/namespaces/{}/configmaps?fieldManager=kubectl-client-side-apply",
        world.ns
    );
    world.post(&path, &applied).await;
    let adopt = ["takeoff", "-force-ownership", "r"];
    cli.ok(&adopt, &json!([configmap("a", all)])).await;
    let managers = async || {
        let found = world.configmap("a").await.unwrap();
        let fields = found["metadata"]["managedFields"].as_array().unwrap();
        let names = fields.iter().map(|one| text(&one["manager"]).to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(managers().await, ["yoke"]);
    let annotations = world.configmap("a").await.unwrap()["metadata"]["annotations"].to_string();
    assert!(!annotations.contains("last-applied"), "{annotations}");
    let without = json!([configmap("a", json!({ "a": "1" }))]);
    cli.ok(&["takeoff", "r"], &without).await;
    assert_eq!(world.data("a").await, json!({ "a": "1" }));
    // What comes from there later is somebody's who works beside us.
    let more = json!({ "data": { "theirs": "3" } });
    let path = format!(
        "{}?fieldManager=kubectl-client-side-apply",
        world.core("configmaps", "a")
    );
    world.merge(&path, &more).await;
    cli.ok(
        &["takeoff", "r"],
        &json!([configmap("a", json!({ "a": "4" }))]),
    )
    .await;
    assert_eq!(world.data("a").await, json!({ "a": "4", "theirs": "3" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_were_given_other_keys_are_put_right_r35() {
    let cli = Cli::new().await;
    let world = &cli.world;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s" },
        "spec": { "ports": [{ "name": "http", "port": 80 }], "selector": { "a": "b" } },
    });
    let mut pods = deployment("d", 0);
    pods["spec"]["template"]["spec"]["containers"][0]["ports"] = json!([{ "containerPort": 80 }]);
    let all = json!([service, pods]);
    cli.ok(&["takeoff", "r"], &all).await;
    let edit = async |path: &str, place: &str, key: &str| {
        let mut live = world.get(path).await.unwrap().unwrap();
        live.pointer_mut(place).unwrap()[key] = 8080.into();
        // Its controller may write its status in between.
        live["metadata"]["resourceVersion"] = Value::Null;
        let path = format!("{path}?fieldManager=kubectl-edit");
        world.cluster.api.put(&path, &live).await.unwrap();
    };
    let services = world.core("services", "s");
    let deployments = format!("/apis/apps/v1/namespaces/{}/deployments/d", world.ns);
    let port = "/spec/ports/0";
    let container = "/spec/template/spec/containers/0/ports/0";
    edit(&services, port, "port").await;
    edit(&deployments, container, "containerPort").await;
    // A sidecar that somebody added stays.
    let mut live = world.get(&deployments).await.unwrap().unwrap();
    let containers = live["spec"]["template"]["spec"]["containers"].as_array_mut();
    containers
        .unwrap()
        .push(json!({ "name": "sidecar", "image": "i" }));
    live["metadata"]["resourceVersion"] = Value::Null;
    let path = format!("{deployments}?fieldManager=kubectl-edit");
    world.cluster.api.put(&path, &live).await.unwrap();
    cli.ok(&["takeoff", "-force-conflicts", "r"], &all).await;
    let live = world.get(&services).await.unwrap().unwrap();
    assert_eq!(live["spec"]["ports"].as_array().unwrap().len(), 1, "{live}");
    assert_eq!(live.pointer(port).unwrap()["port"], 80);
    let live = world.get(&deployments).await.unwrap().unwrap();
    let containers = &live["spec"]["template"]["spec"]["containers"];
    assert_eq!(
        containers[0]["ports"].as_array().unwrap().len(),
        1,
        "{live}"
    );
    assert_eq!(live.pointer(container).unwrap()["containerPort"], 80);
    assert_eq!(containers[1]["name"], "sidecar");
    cli.ok(&["mayday", "r"], &Value::Null).await;
}
