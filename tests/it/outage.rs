//! An API server out of reach, busy or refusing; an atc that is stopped, started late, or without rights.

use std::{fs, time::Duration};

use atc_tests::{Atc, Fault, Proxy, eventually, is_ready};
use controlplane::Component;
use serde_json::{Value, json};

use crate::{
    solo::{Solo, plane},
    world::{AIRWAYS, CRDS, HOOKS, LIMIT, World, configmap, configmap_in, free_crd, look, text},
};

/// A kubeconfig of the atc's user, or of another, whose server is another one.
fn kubeconfig(name: &str, like: &std::path::Path, server: &str) -> String {
    let text = fs::read_to_string(like).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["clusters"][0]["cluster"]["server"] = server.into();
    let path = plane().folder().join(name);
    fs::write(&path, config.to_string()).unwrap();
    path.to_string_lossy().into_owned()
}

/// An atc behind a proxy.
pub(crate) async fn behind(solo: &Solo, proxy: &Proxy) -> Atc<'static> {
    let config = kubeconfig(
        "kubeconfig-proxy",
        &plane().atc_kubeconfig(),
        &proxy.server(),
    );
    solo.atc(&[("KUBE", &config)]).await
}

/// Copies a Secret of others, and has a child of its own.
fn copier(world: &World) -> Value {
    json!({
        "look": [look("x", "Secret", &world.ns, "src", "data.v")],
        "objects": [configmap("copy", json!({ "x": "${x}" })), configmap("own", json!({ "k": "1" }))],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_during_an_outage_is_acted_on_r11_r13_w6() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let proxy = Proxy::start(plane()).await.unwrap();
    let atc = behind(&solo, &proxy).await;
    let kind = solo.kind().await;
    world.put_secret("src", "one").await;
    kind.make("c", copier(world)).await;
    kind.make("d", json!({})).await;
    kind.make("e", json!({})).await;
    world.has("copy", json!({ "x": "b25l" })).await;

    proxy.fail("", Fault::Cut);
    proxy.cut_all();
    world.put_secret("src", "two").await;
    world.delete(&world.core("configmaps", "own")).await;
    kind.edit("d", json!({ "note": "edited" })).await;
    kind.create("n", &json!({ "note": "new" })).await.unwrap();
    world.delete(&kind.path("e")).await;
    // It notices, and tries again more than once.
    let before = proxy.requests().len();
    eventually(LIMIT, "it tries again and again", || async {
        Ok((proxy.requests().len() > before + 5).then_some(()))
    })
    .await;
    assert!(atc.clone().alive());
    assert_eq!(world.data("copy").await, json!({ "x": "b25l" }));
    assert_eq!(atc.get("/live").await.unwrap().0, 200);
    proxy.heal();
    world.has("copy", json!({ "x": "dHdv" })).await;
    world.has("own", json!({ "k": "1" })).await;
    world.has("d", json!({ "note": "edited" })).await;
    world.has("n", json!({ "note": "new" })).await;
    kind.gone("e").await;
    world.gone(&world.core("configmaps", "e")).await;
    for name in ["c", "d", "n"] {
        kind.ready(name).await;
    }

    // Watches that are refused as too old are begun anew, with what went between (HTTP 410).
    for number in 0..3 {
        proxy.fail_times("watch=true", Fault::Status(410, None), 4);
        proxy.cut_all();
        world.put_secret("src", &format!("value {number}")).await;
        world.delete(&world.core("configmaps", "own")).await;
        world.has("own", json!({ "k": "1" })).await;
        eventually(LIMIT, "the copy follows", || async {
            let secret = world.get(&world.core("secrets", "src")).await?;
            let copy = world.get(&world.core("configmaps", "copy")).await?;
            let (secret, copy) = (secret.unwrap_or_default(), copy.unwrap_or_default());
            Ok((copy["data"]["x"] == secret["data"]["v"]).then_some(()))
        })
        .await;
    }
    for name in ["c", "d", "n"] {
        kind.delete(name).await;
    }
    assert!(world.configmaps(&world.ns).await.is_empty());
    assert!(atc.clone().alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_server_is_asked_again_r95() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let proxy = Proxy::start(plane()).await.unwrap();
    let atc = behind(&solo, &proxy).await;
    let kind = solo.kind().await;
    kind.make("b", json!({ "note": "0" })).await;
    let faults = [
        Fault::Status(429, Some(1)),
        Fault::Status(500, None),
        Fault::Status(503, None),
        Fault::Cut,
        Fault::LoseAnswer,
        Fault::Delay(Duration::from_millis(300)),
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        for request in ["PATCH ", "POST ", "PUT ", "GET "] {
            proxy.fail_times(request, fault.clone(), 2);
        }
        let note = format!("{fault:?}");
        let name = format!("n{number}");
        kind.edit("b", json!({ "note": note })).await;
        kind.create(&name, &json!({ "note": note })).await.unwrap();
        world.has("b", json!({ "note": note })).await;
        world.has(&name, json!({ "note": note })).await;
        kind.ready("b").await;
        kind.ready(&name).await;
        proxy.heal();
        kind.delete(&name).await;
        world.gone(&world.core("configmaps", &name)).await;
    }
    // A lost answer made no second revision of anything.
    world.has_revisions(2).await;
    assert!(atc.clone().alive());
    kind.delete("b").await;
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_refused_prune_left_is_made_up_for_w19() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let proxy = Proxy::start(plane()).await.unwrap();
    let _atc = behind(&solo, &proxy).await;
    let kind = solo.kind().await;
    let spec = |names: &[&str]| {
        let objects = names
            .iter()
            .map(|name| configmap(name, json!({ "k": name })));
        json!({ "objects": objects.collect::<Vec<_>>() })
    };
    kind.make("p", spec(&["a", "b"])).await;
    let dropped = world.core("configmaps", "b");
    proxy.fail(&format!("DELETE {dropped}"), Fault::Status(403, None));
    kind.edit("p", spec(&["a"])).await;
    kind.says("p", "Error", "configmap/b").await;
    // Nor is it forgotten by an output that is compared with one that had dropped it.
    kind.edit("p", spec(&["a", "c"])).await;
    world.has("c", json!({ "k": "c" })).await;
    kind.says("p", "Error", "configmap/b").await;
    assert_eq!(world.configmaps(&world.ns).await, ["a", "b", "c"]);
    proxy.heal();
    world.gone(&dropped).await;
    kind.ready("p").await;
    kind.delete("p").await;
    assert!(world.configmaps(&world.ns).await.is_empty());
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_rights_it_lives_and_says_why_r25() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    // As on a cluster that never saw an atc.
    for name in ["atc-airway", "atc-flight"] {
        world.delete(&format!("{HOOKS}/{name}")).await;
    }
    let crds =
        ["airways", "flights", "clusterflights"].map(|name| format!("{CRDS}/{name}.yoke.cd"));
    if world.get(AIRWAYS).await.unwrap().is_some() {
        // Those of the other tests go first, and that needs an atc.
        let atc = solo.atc(&[]).await;
        for airway in world.cluster.api.list(AIRWAYS).await.unwrap() {
            let path = format!("{AIRWAYS}/{}", text(&airway["metadata"]["name"]));
            world.delete(&path).await;
            world.gone(&path).await;
        }
        atc.clone().terminate().unwrap();
    }
    for path in &crds {
        world.delete(path).await;
        world.gone(path).await;
    }
    let grant = async |name: &str, verbs: Value| {
        let base = "/apis/rbac.authorization.k8s.io/v1/cluster";
        let role = json!({ "metadata": { "name": name }, "rules": [{
            "apiGroups": ["*"], "resources": ["*"], "verbs": verbs,
        }] });
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "kind": "User", "name": "user", "apiGroup": "rbac.authorization.k8s.io" }],
        });
        world.post(&format!("{base}roles"), &role).await;
        world.post(&format!("{base}rolebindings"), &binding).await;
    };
    grant("poor", json!(["get", "list", "watch"])).await;
    let config = plane().user_kubeconfig().to_string_lossy().into_owned();
    let mut atc = solo.launch(&[("KUBE", &config)]);
    let why = eventually(LIMIT, "it says why it is not ready", || async {
        let (status, body) = atc.get("/ready").await?;
        assert_eq!(status, 503, "{body}");
        Ok(body.contains("forbidden").then_some(body))
    })
    .await;
    // Before there can be Flights, it is asked who may let them act as an account.
    assert!(
        why.contains("not installed") && why.contains("flight-accounts.yoke.cd"),
        "{why}"
    );
    assert_eq!(atc.get("/live").await.unwrap().0, 200);
    assert!(atc.alive());
    grant("rich", json!(["*"])).await;
    atc.wait_ready().await.unwrap();
    for path in &crds {
        assert!(world.get(path).await.unwrap().is_some());
    }
    let kind = solo.kind().await;
    kind.make("works", json!({ "note": "now" })).await;
    world.has("works", json!({ "note": "now" })).await;
    kind.delete("works").await;
    for name in ["poor", "rich"] {
        for what in ["roles", "rolebindings"] {
            world
                .delete(&format!(
                    "/apis/rbac.authorization.k8s.io/v1/cluster{what}/{name}"
                ))
                .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_it_and_leaves_nobody_waiting_r105() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    kind.make("a", json!({ "note": "1" })).await;
    // In the middle of a run, too.
    kind.create("busy", &json!({ "sleepMs": 3_000 }))
        .await
        .unwrap();
    kind.until("busy", "is taken up", |object| {
        object["metadata"]["finalizers"].is_array()
    })
    .await;
    let begin = std::time::Instant::now();
    let status = atc.terminate().unwrap();
    assert!(status.success(), "{status}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    let hooks = world.cluster.api.list(HOOKS).await.unwrap();
    let names: Vec<&str> = hooks.iter().map(|h| text(&h["metadata"]["name"])).collect();
    assert!(
        !names.iter().any(|name| name.starts_with("atc-")),
        "{names:?}"
    );
    // This one stays: it asks who may let a Flight act as an account, and no more.
    assert!(names.contains(&"flight-accounts.yoke.cd"), "{names:?}");
    // Nothing but our own kinds waits for it.
    let path = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    world.post(&path, &configmap("free", json!({}))).await;
    world
        .merge(
            &world.core("configmaps", "a"),
            &json!({ "data": { "hand": "made" } }),
        )
        .await;
    world.delete(&world.core("configmaps", "free")).await;
    atc.restart().await.unwrap();
    for name in ["atc-airway", "atc-flight"] {
        let hook = world.get(&format!("{HOOKS}/{name}")).await.unwrap();
        assert!(hook.is_some(), "{name}");
    }
    eventually(LIMIT, "an edit is taken", || async {
        kind.try_edit("a", json!({ "note": "2" })).await.map(Some)
    })
    .await;
    world.has("a", json!({ "note": "2" })).await;
    kind.make("b", json!({})).await;
    for name in ["a", "b", "busy"] {
        kind.delete(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_none_runs_is_put_right_r41_r45_r49_w9() {
    let solo = Solo::begin().await;
    let world = &solo.world;
    let files = atc_tests::FileServer::start().unwrap();
    let url = files.put("going.wasm", crate::world::module());
    let mut atc = solo.atc(&[]).await;
    let kind = solo.kind().await;
    let going = world
        .kind(
            atc_tests::AirwayBuilder::new("Going", &url)
                .dynamic()
                .cluster_scoped()
                .set("skipAdmissionWebhook", true),
        )
        .await;
    let path = format!("{CRDS}/gadgets.made.dev");
    world.post(CRDS, &free_crd("Gadget")).await;
    eventually(LIMIT, "gadgets are served", || async {
        world.get("/apis/made.dev/v1/gadgets").await
    })
    .await;
    let gadget =
        json!({ "apiVersion": "made.dev/v1", "kind": "Gadget", "metadata": { "name": "g" } });
    for name in ["deleted", "stripped", "bent", "lost"] {
        let mut objects = vec![configmap(name, json!({ "k": name }))];
        if name == "lost" {
            objects.push(gadget.clone());
        }
        kind.make(name, json!({ "objects": objects })).await;
    }
    let other = world.namespace().await;
    let far = json!([
        configmap_in(&world.ns, "far", json!({})),
        configmap_in(&other, "far", json!({}))
    ]);
    let name = format!("far-{other}");
    going.make(&name, json!({ "objects": far })).await;
    let paths = [&world.ns, &other].map(|ns| format!("/api/v1/namespaces/{ns}/configmaps/far"));
    let mut uids = Vec::new();
    for path in &paths {
        uids.push(world.get(path).await.unwrap().unwrap()["metadata"]["uid"].clone());
    }
    atc.kill();

    world.delete(&kind.path("deleted")).await;
    world.delete(&world.core("configmaps", "stripped")).await;
    world
        .merge(
            &world.core("configmaps", "bent"),
            &json!({ "data": { "k": "x" } }),
        )
        .await;
    world.delete(&path).await;
    world.gone(&path).await;
    world.delete(&kind.path("lost")).await;
    // The garbage collector looks at all owners anew: nothing of ours is lost to it.
    plane().stop_component(Component::ControllerManager);
    plane()
        .start_component(Component::ControllerManager)
        .unwrap();
    let stray = json!({ "metadata": { "name": "stray", "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "00000000-0000-0000-0000-000000000000",
    }] } });
    let configmaps = format!("/api/v1/namespaces/{other}/configmaps");
    world.post(&configmaps, &stray).await;
    world.gone(&format!("{configmaps}/stray")).await;
    // The module is nowhere any more, not even in the cache: what was made by it can be deleted all the same.
    files.remove("going.wasm");
    for entry in fs::read_dir(atc.cache()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    atc.restart().await.unwrap();
    kind.gone("deleted").await;
    world.gone(&world.core("configmaps", "deleted")).await;
    world.has("stripped", json!({ "k": "stripped" })).await;
    world.has("bent", json!({ "k": "bent" })).await;
    kind.gone("lost").await;
    world.gone(&world.core("configmaps", "lost")).await;
    for name in ["stripped", "bent"] {
        kind.ready(name).await;
    }
    for (path, uid) in paths.iter().zip(&uids) {
        let found = world.get(path).await.unwrap().unwrap();
        assert_eq!(found["metadata"]["uid"], *uid);
    }
    let events = world.cluster.api.list("/api/v1/events").await.unwrap();
    assert!(
        !events
            .iter()
            .any(|event| event["reason"] == "OwnerRefInvalidNamespace")
    );
    eventually(
        LIMIT,
        "the Airway says that its module is nowhere",
        || async {
            let airway = world.get(&going.airway_path()).await?.unwrap_or_default();
            Ok((!is_ready(&airway) && airway["status"].to_string().contains("404")).then_some(()))
        },
    )
    .await;
    going.delete(&name).await;
    for path in &paths {
        world.gone(path).await;
    }
    // Nor is its Airway held by a review of our own removal of its finalizer.
    going.finish().await;
    for name in ["stripped", "bent"] {
        kind.delete(name).await;
    }
    assert!(world.revisions().await.is_empty());
}
