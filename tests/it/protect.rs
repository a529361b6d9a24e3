//! Mode `static`: what a release applied stays as it is, and nothing else is held up.

use atc_tests::{AirwayBuilder, eventually};
use serde_json::{Value, json};

use crate::world::{HOOKS, Kind, LIMIT, World, configmap, deployment, puppet, text};

const MODE: &str = "overrides.yoke.cd/mode";

async fn stone(world: &World) -> Kind<'_> {
    let airway = AirwayBuilder::new("Stone", &puppet()).set("mode", "static");
    world.shared(airway).await
}

fn replicas(object: &Value) -> &Value {
    &object["spec"]["replicas"]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_applied_stays_and_all_else_may_change_w2_w8() {
    let world = World::new().await;
    let kind = stone(&world).await;
    let api = &world.cluster.api;
    let objects = json!({ "objects": [deployment("d", 2), configmap("c", json!({ "k": "v" }))] });
    // Ready only when the probe was refused; the Deployment's controller gets its status through meanwhile.
    kind.make("s", objects).await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/d", world.ns);
    let map = world.core("configmaps", "c");

    let hook = world
        .get(&format!("{HOOKS}/atc-resources"))
        .await
        .unwrap()
        .unwrap();
    for webhook in hook["webhooks"].as_array().unwrap() {
        assert_eq!(webhook["failurePolicy"], "Ignore");
        for rule in webhook["rules"].as_array().unwrap() {
            assert_ne!(rule["resources"][0], "*");
            assert_ne!(rule["apiGroups"][0], "*");
        }
    }
    for (path, body, words) in [
        (
            &path,
            json!({ "spec": { "replicas": 8 } }),
            ".spec.replicas",
        ),
        (&map, json!({ "data": { "k": "w" } }), ".data.k"),
        (&map, json!({ "data": null }), ".data"),
        (
            &map,
            json!({ "metadata": { "annotations": { "instance.atc.yoke.cd/release": "x" } } }),
            "release",
        ),
        (
            &map,
            json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": null } } }),
            ".metadata.labels",
        ),
        (
            &map,
            json!({ "metadata": { "ownerReferences": [] } }),
            "ownerReferences",
        ),
        // Nothing changes, but afterwards nothing would be the release's.
        (
            &map,
            json!({ "metadata": { "managedFields": [{}] } }),
            ".metadata.managedFields",
        ),
    ] {
        let said = api.merge(path, &body).await.unwrap_err().to_string();
        assert!(
            said.starts_with("403") && said.contains(words),
            "{body}: {said}"
        );
        assert!(
            said.contains("mode static") && said.contains(MODE),
            "{said}"
        );
    }
    for path in [&path, &map] {
        let said = api.delete(path).await.unwrap_err().to_string();
        assert!(said.contains("may not be deleted"), "{said}");
    }
    let scale = |replicas: u32| json!({ "spec": { "replicas": replicas } });
    let said = api
        .merge(&format!("{path}/scale"), &scale(5))
        .await
        .unwrap_err()
        .to_string();
    assert!(said.contains("replicas"), "{said}");

    // Other fields, other managers, and other objects of the same kind.
    for body in [
        json!({ "metadata": { "labels": { "mine": "1" }, "annotations": { "note": "x" } } }),
        json!({ "data": { "other": "1" } }),
        json!({ "data": { "k": "v" } }),
    ] {
        world.merge(&map, &body).await;
    }
    world
        .merge(&path, &json!({ "spec": { "paused": true, "replicas": 2 } }))
        .await;
    world
        .merge(&path, &json!({ "spec": { "paused": false } }))
        .await;
    let foreign = format!("/apis/apps/v1/namespaces/{}/deployments", world.ns);
    world.post(&foreign, &deployment("foreign", 1)).await;
    world
        .merge(&format!("{foreign}/foreign/scale"), &scale(2))
        .await;
    world.delete(&format!("{foreign}/foreign")).await;
    let found = world.get(&path).await.unwrap().unwrap();
    assert_eq!(
        (replicas(&found), &found["metadata"]["deletionTimestamp"]),
        (&json!(2), &Value::Null)
    );

    // Its own flight changes it, and in another mode everybody may.
    kind.edit(
        "s",
        json!({ "objects": [deployment("d", 1), configmap("c", json!({ "k": "w" }))] }),
    )
    .await;
    world.has("c", json!({ "k": "w" })).await;
    kind.ready("s").await;
    let dynamic = json!({ "metadata": { "annotations": { MODE: "dynamic" } } });
    world.merge(&kind.path("s"), &dynamic).await;
    eventually(LIMIT, "the change is taken", || async {
        Ok(api
            .merge(&path, &json!({ "spec": { "replicas": 8 } }))
            .await
            .ok())
    })
    .await;
    eventually(LIMIT, "and undone", || async {
        let found = world.get(&path).await?.unwrap_or_default();
        Ok((replicas(&found) == 1).then_some(()))
    })
    .await;
    kind.delete("s").await;
    world.gone(&map).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_protected_goes_with_its_instance_and_its_namespace() {
    let world = World::new().await;
    let kind = stone(&world).await;
    kind.make(
        "one",
        json!({ "objects": [configmap("a", json!({ "k": "v" }))] }),
    )
    .await;
    world
        .cluster
        .api
        .delete(&world.core("configmaps", "a"))
        .await
        .unwrap_err();
    kind.delete("one").await;
    world.gone(&world.core("configmaps", "a")).await;

    let namespace = world.namespace().await;
    let mut body = kind.airway.instance(
        "two",
        &json!({ "objects": [configmap("b", json!({ "k": "v" }))] }),
    );
    body["metadata"]["namespace"] = namespace.clone().into();
    world.post(&kind.airway.path(&namespace), &body).await;
    let child = format!("/api/v1/namespaces/{namespace}/configmaps/b");
    eventually(LIMIT, "the child is there", || async {
        world.get(&child).await
    })
    .await;
    world
        .delete(&format!("/api/v1/namespaces/{namespace}"))
        .await;
    world.gone(&format!("/api/v1/namespaces/{namespace}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_makes_one_instance_static() {
    let world = World::new().await;
    let kind = world.basic().await;
    let mut body = kind.airway.instance("o", &json!({ "note": "x" }));
    body["metadata"]["annotations"] = json!({ MODE: "static" });
    world.post(&kind.airway.path(&world.ns), &body).await;
    kind.ready("o").await;
    let map = world.core("configmaps", "o");
    let edit = json!({ "data": { "note": "y" } });
    let said = world
        .cluster
        .api
        .merge(&map, &edit)
        .await
        .unwrap_err()
        .to_string();
    assert!(said.contains(".data.note"), "{said}");
    let free = json!({ "metadata": { "annotations": { MODE: null } } });
    world.merge(&kind.path("o"), &free).await;
    eventually(LIMIT, "it may be changed again", || async {
        Ok(world.cluster.api.merge(&map, &edit).await.ok())
    })
    .await;
    assert_eq!(text(&world.data("o").await["note"]), "y");
    kind.delete("o").await;
}
