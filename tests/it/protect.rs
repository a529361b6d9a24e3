//! Mode `static`: what a release applied stays as it is, and nothing else is held up.

use anyhow::anyhow;
use atc_tests::{AirwayBuilder, Api, eventually};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::{
    solo::Solo,
    world::{HOOKS, Kind, LIMIT, SOON, World, configmap, deployment, puppet, text},
};

const MODE: &str = "overrides.yoke.cd/mode";

async fn stone(world: &World) -> Kind<'_> {
    let airway = AirwayBuilder::new("Stone", &puppet()).set("mode", "static");
    world.shared(airway).await
}

/// Creates an instance in mode `static` of a kind that is in another, and waits until it is ready.
async fn make_static(kind: &Kind<'_>, name: &str, spec: &Value) {
    let mut body = kind.airway.instance(name, spec);
    body["metadata"]["annotations"] = json!({ MODE: "static" });
    let path = kind.airway.path(&kind.world.ns);
    kind.world.post(&path, &body).await;
    kind.ready(name).await;
}

/// Waits until a change of an object is refused. It is asked for as a dry run: one that was stored is no change the next
/// time.
pub(crate) async fn is_refused(world: &World, path: &str) {
    let (path, edit) = (
        format!("{path}?dryRun=All"),
        json!({ "data": { "k": "w" } }),
    );
    eventually(LIMIT, &format!("{path} is protected"), || async {
        match world.cluster.api.merge(&path, &edit).await {
            Ok(_) => Err(anyhow!("it was taken")),
            Err(error) if error.to_string().contains("mode static") => Ok(Some(())),
            Err(error) => Err(error),
        }
    })
    .await;
}

/// The cluster's garbage collector.
async fn collector(world: &World) -> Api {
    let file = Kubeconfig::read_from(world.cluster.plane().kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await;
    let mut config = config.unwrap();
    config.proxy_url = None;
    let account = "system:serviceaccount:kube-system:generic-garbage-collector";
    config.auth_info.impersonate = Some(account.to_owned());
    Api::new(kube::Client::try_from(config).unwrap())
}

fn replicas(object: &Value) -> &Value {
    &object["spec"]["replicas"]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_applied_stays_and_all_else_may_change_w2_w7_w8() {
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
    // Nor by way of the status, which most kinds take with all of the metadata.
    let status = format!("{path}/status");
    for (metadata, words) in [
        (json!({ "labels": null }), ".metadata.labels"),
        (json!({ "annotations": null }), "annotations"),
        (json!({ "ownerReferences": null }), "ownerReferences"),
        (json!({ "managedFields": [{}] }), ".metadata.managedFields"),
    ] {
        let body = json!({ "metadata": metadata });
        match api.merge(&status, &body).await {
            Ok(after) => {
                let before = world.get(&path).await.unwrap().unwrap();
                for part in ["labels", "annotations", "ownerReferences"] {
                    assert_eq!(after["metadata"][part], before["metadata"][part], "{body}");
                }
                assert!(after["metadata"]["labels"].is_object(), "{body}");
                assert!(after["metadata"]["annotations"].is_object(), "{body}");
                assert!(after["metadata"]["ownerReferences"].is_array(), "{body}");
                let fields = after["metadata"]["managedFields"].to_string();
                assert!(fields.contains("\"manager\":\"yoke\""), "{fields}");
            }
            Err(error) => {
                let said = error.to_string();
                assert!(
                    said.starts_with("403") && said.contains(words),
                    "{body}: {said}"
                );
            }
        }
    }
    world
        .merge(&status, &json!({ "status": { "replicas": 2 } }))
        .await;
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
    // Marks that somebody wrote make no child.
    let mut forged = configmap("forged", json!({}));
    let marks = &world.get(&map).await.unwrap().unwrap()["metadata"];
    for field in ["labels", "annotations"] {
        forged["metadata"][field] = marks[field].clone();
    }
    let maps = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    world.post(&maps, &forged).await;
    world.delete(&format!("{maps}/forged")).await;
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
    eventually(SOON, "and undone", || async {
        let found = world.get(&path).await?.unwrap_or_default();
        Ok((replicas(&found) == 1).then_some(()))
    })
    .await;
    kind.delete("s").await;
    world.gone(&map).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_is_no_other_object_of_its_name_w36() {
    let world = World::new().await;
    let kind = stone(&world).await;
    let objects = json!({ "objects": [configmap("same", json!({ "k": "v" }))] });
    kind.make("n", objects).await;
    let child = world.core("configmaps", "same");
    is_refused(&world, &child).await;
    // In another namespace, once as anybody makes it and once with the very marks of the child.
    let found = world.get(&child).await.unwrap().unwrap();
    for marks in [json!({}), found["metadata"].clone()] {
        let other = world.namespace().await;
        let mut twin = configmap("same", json!({ "k": "other" }));
        for field in ["labels", "annotations"] {
            twin["metadata"][field] = marks[field].clone();
        }
        let path = format!("/api/v1/namespaces/{other}/configmaps");
        world.post(&path, &twin).await;
        let path = format!("{path}/same");
        world.merge(&path, &json!({ "data": { "k": "w" } })).await;
        world.delete(&path).await;
        world.gone(&path).await;
    }
    is_refused(&world, &child).await;
    kind.delete("n").await;
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
    make_static(&kind, "o", &json!({ "note": "x" })).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn what_no_webhook_is_asked_about_keeps_nobody_waiting() {
    let world = World::new().await;
    let kind = stone(&world).await;
    let name = format!("none-{}", world.ns);
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": name }, "webhooks": [],
    });
    kind.make("h", json!({ "objects": [hook] })).await;
    let edit = json!({ "metadata": { "labels": { "mine": "1" } } });
    world.merge(&format!("{HOOKS}/{name}"), &edit).await;
    kind.delete("h").await;
    world.gone(&format!("{HOOKS}/{name}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_protection_is_put_back_and_outlives_a_process() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    let objects = json!({ "objects": [configmap("a", json!({ "k": "v" }))] });
    make_static(&kind, "s", &objects).await;
    let (hook, map) = (
        format!("{HOOKS}/atc-resources"),
        world.core("configmaps", "a"),
    );
    is_refused(world, &map).await;

    world.delete(&hook).await;
    is_refused(world, &map).await;
    world.merge(&hook, &json!({ "webhooks": [] })).await;
    is_refused(world, &map).await;

    // One whose flight fails after a restart, and another that needs less.
    kind.edit("s", json!({ "fail": "not today" })).await;
    kind.says("s", "Error", "not today").await;
    atc.kill();
    atc.restart().await.unwrap();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "t" } });
    make_static(&kind, "t", &json!({ "objects": [secret] })).await;
    is_refused(world, &map).await;
    let secret = world.core("secrets", "t");
    let said = world.cluster.api.delete(&secret).await.unwrap_err();
    assert!(said.to_string().contains("may not be deleted"), "{said}");
    // One that ended in peace left nothing: the record says what to protect.
    atc.terminate().unwrap();
    assert_eq!(world.get(&hook).await.unwrap(), None);
    atc.restart().await.unwrap();
    is_refused(world, &map).await;

    // What a process left that was killed goes, too, once nobody needs it.
    kind.delete("s").await;
    atc.kill();
    atc.restart().await.unwrap();
    kind.delete("t").await;
    world.gone(&map).await;
    world.gone(&hook).await;
    assert!(atc.alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_gives_a_child_an_owner_or_seals_it() {
    let world = World::new().await;
    let kind = stone(&world).await;
    let api = &world.cluster.api;
    let collector = collector(&world).await;
    let name = format!("owned-{}", world.ns);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name }, "rules": [],
    });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } });
    let mut sealed = configmap("sealed", json!({ "k": "v" }));
    sealed["immutable"] = true.into();
    let objects = json!([configmap("c", json!({ "k": "v" })), secret, sealed, role]);
    kind.make("o", json!({ "objects": objects })).await;
    let map = world.core("configmaps", "c");
    let role = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");

    // With an owner that is not there the garbage collector would delete it.
    let owner = |name: &str, uid: &Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid });
    let none = owner("none", &json!("0b0b0b0b-0000-4000-8000-000000000000"));
    let with_owners = |owners: &[&Value]| json!({ "metadata": { "ownerReferences": owners } });
    let ours = world.get(&map).await.unwrap().unwrap()["metadata"]["ownerReferences"][0].clone();
    for (path, edit) in [
        (&role, with_owners(&[&none])),
        (&map, with_owners(&[&ours, &none])),
    ] {
        let said = api.merge(path, &edit).await.unwrap_err().to_string();
        assert!(said.contains("owner references"), "{said}");
        assert!(said.contains("mode static"), "{said}");
    }
    // The cluster's own controllers may; what they set stays.
    let other = world.configmap("kube-root-ca.crt").await.unwrap();
    let other = owner("kube-root-ca.crt", &other["metadata"]["uid"]);
    let both = with_owners(&[&ours, &other]);
    collector.merge(&map, &both).await.unwrap();
    let said = api.merge(&map, &with_owners(&[&ours])).await.unwrap_err();
    assert!(said.to_string().contains("owner references"), "{said}");

    // What is immutable its own release can't change either.
    for path in [&map, &world.core("secrets", "s")] {
        let seal = json!({ "immutable": true });
        let said = api.merge(path, &seal).await.unwrap_err().to_string();
        assert!(said.contains("immutable"), "{said}");
        assert!(said.contains("mode static"), "{said}");
        world.merge(path, &json!({ "immutable": false })).await;
    }
    let label = json!({ "metadata": { "labels": { "mine": "1" } } });
    world
        .merge(&world.core("configmaps", "sealed"), &label)
        .await;
    kind.delete("o").await;
    world.gone(&role).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_all_the_same_is_made_again() {
    let world = World::new().await;
    let kind = stone(&world).await;
    let objects = json!([configmap("back", json!({ "k": "v" }))]);
    kind.make("r", json!({ "objects": objects })).await;
    let child = world.core("configmaps", "back");
    is_refused(&world, &child).await;
    let collector = collector(&world).await;
    for _ in 0..2 {
        let before = world.get(&child).await.unwrap().unwrap();
        collector.delete(&child).await.unwrap();
        eventually(SOON, "it is back", || async {
            let now = world.get(&child).await?;
            let is_new = |now: &Value| now["metadata"]["uid"] != before["metadata"]["uid"];
            Ok(now.filter(is_new).map(|_| ()))
        })
        .await;
        world.has("back", json!({ "k": "v" })).await;
        kind.ready("r").await;
    }
    kind.delete("r").await;
    world.gone(&child).await;
}
