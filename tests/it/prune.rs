//! What an instance no longer wants, what it leaves behind, and what it takes over.

use atc_tests::{AirwayBuilder, Atc, condition, eventually};
use serde_json::{Value, json};

use crate::world::{CRDS, LIMIT, World, configmap, deployment, free_crd, puppet, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_object_is_removed_and_others_stay() {
    let world = World::new().await;
    let kind = world.basic().await;
    let objects = |names: &[&str]| {
        let objects: Vec<Value> = names
            .iter()
            .map(|name| configmap(name, json!({})))
            .collect();
        json!({ "objects": objects })
    };
    kind.make("d", objects(&["one", "two"])).await;
    let one = world.configmap("one").await.unwrap();
    kind.edit("d", objects(&["one", "three"])).await;
    world.gone(&world.core("configmaps", "two")).await;
    world.has("three", json!({})).await;
    assert_eq!(world.configmap("one").await.unwrap(), one);
    // `[]` is an explicit nothing (R-55).
    kind.edit("d", objects(&[])).await;
    for name in ["one", "three"] {
        world.gone(&world.core("configmaps", name)).await;
    }
    kind.ready("d").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_record_names_is_pruned_r57() {
    let world = World::new().await;
    let kind = world.basic().await;
    kind.make(
        "p",
        json!({ "objects": [configmap("ours", json!({})), configmap("dropped", json!({}))] }),
    )
    .await;
    // Somebody's operator copies all our marks.
    let ours = world.configmap("ours").await.unwrap();
    let mut copied = configmap("copied", json!({ "by": "hand" }));
    copied["metadata"]["labels"] = ours["metadata"]["labels"].clone();
    copied["metadata"]["annotations"] = ours["metadata"]["annotations"].clone();
    let path = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    world.post(&path, &copied).await;
    kind.edit("p", json!({ "objects": [configmap("ours", json!({}))] }))
        .await;
    world.gone(&world.core("configmaps", "dropped")).await;
    kind.ready("p").await;
    kind.delete("p").await;
    world.gone(&world.core("configmaps", "ours")).await;
    assert_eq!(world.data("copied").await, json!({ "by": "hand" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_of_a_kind_is_no_other_object_r63() {
    let world = World::new().await;
    let kind = world.basic().await;
    let scaler = |version: &str| {
        json!({ "objects": [{
            "apiVersion": format!("autoscaling/{version}"),
            "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": "h" },
            "spec": {
                "minReplicas": 1, "maxReplicas": 2,
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
            },
        }] })
    };
    let path = format!(
        "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers/h",
        world.ns
    );
    kind.create("v", &scaler("v1")).await.unwrap();
    let before = eventually(LIMIT, "it is there", || async { world.get(&path).await }).await;
    kind.until("v", "has been evaluated", |object| {
        condition(object, "Ready").is_some()
    })
    .await;
    kind.edit("v", scaler("v2")).await;
    kind.until("v", "has been evaluated anew", |object| {
        condition(object, "Ready").is_some_and(|c| c["observedGeneration"] == 2)
    })
    .await;
    world.settle().await;
    let after = world.get(&path).await.unwrap().unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(after["metadata"]["deletionTimestamp"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn crds_and_namespaces_are_let_go_unless_asked_w20() {
    let world = World::new().await;
    let namespace = format!("made-{}", world.ns);
    let objects = json!([
        { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } },
        free_crd("Kept"),
    ]);
    let paths = [
        format!("/api/v1/namespaces/{namespace}"),
        format!("{CRDS}/kepts.made.dev"),
    ];
    let kind = world
        .kind(AirwayBuilder::new("Pruner", &puppet()).cluster_scoped())
        .await;
    let owner = kind.release("p");
    kind.make("p", json!({ "objects": objects })).await;
    for path in &paths {
        let made = world.get(path).await.unwrap().unwrap();
        let annotations = &made["metadata"]["annotations"];
        assert_eq!(annotations["instance.atc.yoke.cd/release"], owner, "{path}");
        assert_eq!(
            annotations["instance.atc.yoke.cd/namespace"], "default",
            "{path}"
        );
    }
    kind.delete("p").await;
    for path in &paths {
        let left = world.get(path).await.unwrap().unwrap();
        let metadata = left["metadata"].to_string();
        assert!(
            !metadata.contains("instance.atc.yoke.cd\"")
                && !left["metadata"]["annotations"]
                    .to_string()
                    .contains("atc.yoke")
        );
        assert!(
            left["metadata"]["ownerReferences"].is_null(),
            "{path}: {metadata}"
        );
        assert!(
            left["metadata"]["labels"]["app.kubernetes.io/managed-by"].is_null(),
            "{path}"
        );
        assert!(left["metadata"]["deletionTimestamp"].is_null(), "{path}");
    }
    // Taken over again, and dropped from the output: let go as well.
    kind.make("p", json!({ "objects": objects })).await;
    kind.edit("p", json!({ "objects": [] })).await;
    kind.ready("p").await;
    world.settle().await;
    for path in &paths {
        let left = world.get(path).await.unwrap().unwrap();
        assert!(
            left["metadata"]["annotations"]["instance.atc.yoke.cd/release"].is_null(),
            "{left}"
        );
    }
    kind.update(json!({ "prune": { "crds": true, "namespaces": true } }))
        .await;
    kind.edit("p", json!({ "objects": objects })).await;
    kind.ready("p").await;
    kind.delete("p").await;
    for path in &paths {
        world.gone(path).await;
    }
    kind.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_let_go_outlives_its_instance_whoever_has_it_w20() {
    let world = World::new().await;
    let kind = world.wide().await;
    let instance = format!("founder-{}", world.ns);
    let fates = [("gone", "Goner"), ("bare", "Barer"), ("taken", "Taker")];
    let mut objects = Vec::new();
    let mut paths = Vec::new();
    for (fate, made) in fates {
        let name = format!("{fate}-{}", world.ns);
        let crd = free_crd(made);
        paths.push([
            format!("/api/v1/namespaces/{name}"),
            format!("{CRDS}/{}", text(&crd["metadata"]["name"])),
        ]);
        let metadata = json!({ "name": name });
        objects.push(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
        objects.push(crd);
    }
    let founder = kind.make(&instance, json!({ "objects": objects })).await;
    for path in paths.iter().flatten() {
        let made = world.get(path).await.unwrap().unwrap();
        let owner = &made["metadata"]["ownerReferences"][0]["uid"];
        assert_eq!(*owner, founder["metadata"]["uid"], "{path}");
    }

    let (gone, bare, taken) = (&paths[0], &paths[1], &paths[2]);
    let (release, namespace) = (
        "instance.atc.yoke.cd/release",
        "instance.atc.yoke.cd/namespace",
    );
    for path in gone {
        world.delete(path).await;
        world.gone(path).await;
    }
    let annotate = |annotations: Value| json!({ "metadata": { "annotations": annotations } });
    for path in bare {
        world.merge(path, &annotate(json!({ release: null }))).await;
    }
    let theirs = json!({ release: "theirs", namespace: world.ns });
    for path in taken {
        world.merge(path, &annotate(theirs.clone())).await;
    }
    kind.delete(&instance).await;

    // With one reference left, the garbage collector would take them now, and all that is in them.
    for path in bare.iter().chain(taken) {
        let left = world.get(path).await.unwrap().unwrap();
        let metadata = &left["metadata"];
        assert!(metadata["ownerReferences"].is_null(), "{metadata}");
        assert!(metadata["deletionTimestamp"].is_null(), "{metadata}");
    }
    let managed = "app.kubernetes.io/managed-by";
    for path in bare {
        let metadata = &world.get(path).await.unwrap().unwrap()["metadata"];
        assert!(metadata["annotations"][namespace].is_null(), "{metadata}");
        assert!(metadata["labels"][managed].is_null(), "{metadata}");
    }
    for path in taken {
        let metadata = &world.get(path).await.unwrap().unwrap()["metadata"];
        assert_eq!(metadata["annotations"][release], "theirs");
        assert_eq!(metadata["annotations"][namespace], world.ns);
        assert_eq!(metadata["labels"][managed], "atc.yoke");
    }
    for path in bare.iter().chain(taken) {
        world.delete(path).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_object_writes_nothing_r73_r145() {
    let world = World::new().await;
    let kind = world.loose().await;
    let names = ["one", "two", "three", "Not_A_Name", "five"];
    let objects = names.map(|name| configmap(name, json!({})));
    kind.create("i", &json!({ "objects": objects }))
        .await
        .unwrap();
    kind.says("i", "Error", "Not_A_Name").await;
    assert!(world.configmaps(&world.ns).await.is_empty());
    assert!(world.revisions().await.is_empty());
    // In a later stage too: all stages are tried before the first is written.
    kind.edit(
        "i",
        json!({ "stages": [[objects[0]], [objects[1], objects[3]]] }),
    )
    .await;
    kind.until("i", "was evaluated anew", |object| {
        condition(object, "Ready").is_some_and(|c| c["observedGeneration"] == 2)
    })
    .await;
    assert!(world.configmaps(&world.ns).await.is_empty());
    kind.edit("i", json!({ "objects": [objects[0], objects[1]] }))
        .await;
    kind.ready("i").await;
    // An immutable field of one of them: the others are not half changed.
    let with = |objects: Vec<Value>| json!({ "objects": objects });
    let mut immutable = configmap("one", json!({ "k": "1" }));
    immutable["immutable"] = true.into();
    kind.edit(
        "i",
        with(vec![
            immutable.clone(),
            configmap("two", json!({ "k": "1" })),
        ]),
    )
    .await;
    kind.ready("i").await;
    immutable["data"]["k"] = "2".into();
    kind.edit(
        "i",
        with(vec![immutable, configmap("two", json!({ "k": "2" }))]),
    )
    .await;
    kind.says("i", "Error", "immutable").await;
    assert_eq!(world.data("two").await, json!({ "k": "1" }));
    kind.delete("i").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_kind_counts_as_gone_r41_r59_w21() {
    let world = World::new().await;
    let kind = world.basic().await;
    let crd = free_crd("Widget");
    world.post(CRDS, &crd).await;
    let widgets = format!("/apis/made.dev/v1/namespaces/{}/widgets", world.ns);
    eventually(LIMIT, "widgets are served", || async {
        world.get(&widgets).await
    })
    .await;
    let widget =
        json!({ "apiVersion": "made.dev/v1", "kind": "Widget", "metadata": { "name": "w" } });
    let objects = json!([widget, configmap("a", json!({}))]);
    for name in ["a", "b"] {
        let mut objects = objects.clone();
        objects[0]["metadata"]["name"] = name.into();
        objects[1]["metadata"]["name"] = name.into();
        kind.make(name, json!({ "objects": objects })).await;
    }
    let path = format!("{CRDS}/widgets.made.dev");
    world.delete(&path).await;
    world.gone(&path).await;
    // One is deleted, one no longer wants its widget.
    kind.edit("b", json!({ "objects": [configmap("b", json!({}))] }))
        .await;
    kind.ready("b").await;
    for name in ["a", "b"] {
        kind.delete(name).await;
        world.gone(&world.core("configmaps", name)).await;
    }
    assert!(world.revisions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_nobody_is_taken_over_r151() {
    let world = World::new().await;
    let kind = world.basic().await;
    let path = format!("/api/v1/namespaces/{}/configmaps", world.ns);
    world
        .post(&path, &configmap("old", json!({ "mine": "1" })))
        .await;
    kind.make(
        "a",
        json!({ "objects": [configmap("old", json!({ "k": "v" }))] }),
    )
    .await;
    assert_eq!(world.data("old").await, json!({ "mine": "1", "k": "v" }));
    // A second instance takes it over; the first leaves it alone from then on.
    kind.make(
        "b",
        json!({ "objects": [configmap("old", json!({ "k": "w" }))] }),
    )
    .await;
    let taken = world.configmap("old").await.unwrap();
    let owner = &taken["metadata"]["annotations"]["instance.atc.yoke.cd/release"];
    assert_eq!(*owner, kind.release("b"));
    kind.delete("a").await;
    let left = world.configmap("old").await.unwrap();
    assert_eq!(left["metadata"]["uid"], taken["metadata"]["uid"]);
    kind.delete("b").await;
    world.gone(&world.core("configmaps", "old")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_its_instances() {
    let world = World::new().await;
    let (basic, live) = (world.basic().await, world.live().await);
    basic.make("b", json!({})).await;
    live.make(
        "l",
        json!({ "objects": [configmap("l", json!({})), deployment("d", 1)] }),
    )
    .await;
    let path = format!("/api/v1/namespaces/{}", world.ns);
    world.delete(&path).await;
    basic.gone("b").await;
    live.gone("l").await;
    world.gone(&path).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_hangs_holds_nobody_up_r43() {
    let world = World::new().await;
    let stuck = World::new().await;
    let (there, here) = (stuck.live().await, world.live().await);
    there.make("s", json!({})).await;
    let finalizers = json!(["yoke.cd/mayday.flight", "tests.atc.dev/hold"]);
    stuck
        .merge(
            &there.path("s"),
            &json!({ "metadata": { "finalizers": finalizers } }),
        )
        .await;
    stuck
        .delete(&format!("/api/v1/namespaces/{}", stuck.ns))
        .await;
    there
        .until("s", "is let go by us", |object| {
            object["metadata"]["finalizers"] == json!(["tests.atc.dev/hold"])
        })
        .await;
    for number in 0..5 {
        here.make(&format!("g{number}"), json!({ "note": "1" }))
            .await;
    }
    for number in 0..5 {
        let name = format!("g{number}");
        here.edit(&name, json!({ "note": "2" })).await;
        world.has(&name, json!({ "note": "2" })).await;
    }
    let finalizers = json!({ "metadata": { "finalizers": null } });
    stuck.merge(&there.path("s"), &finalizers).await;
    stuck
        .gone(&format!("/api/v1/namespaces/{}", stuck.ns))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_names_never_collide_r67() {
    let world = World::new().await;
    let kind = world.basic().await;
    let long = |end: &str| format!("{}.{end}", ["n".repeat(60), "m".repeat(60)].join("."));
    for end in ["one", "two"] {
        kind.make(
            &long(end),
            json!({ "objects": [configmap(end, json!({ "k": end }))] }),
        )
        .await;
    }
    let revisions = world.revisions().await;
    let labels: std::collections::BTreeSet<&str> = revisions
        .iter()
        .map(|r| text(&r["metadata"]["labels"]["internal.yoke/release"]))
        .collect();
    assert_eq!((revisions.len(), labels.len()), (2, 2));
    kind.delete(&long("one")).await;
    world.gone(&world.core("configmaps", "one")).await;
    assert_eq!(world.data("two").await, json!({ "k": "two" }));
    kind.delete(&long("two")).await;
}

/// A ClusterRole that grants nothing, named after the test's namespace.
fn role(world: &World, name: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": format!("{}-{name}", world.ns) }, "rules": [],
    })
}

fn role_path(world: &World, name: &str) -> String {
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    format!("{roles}/{}-{name}", world.ns)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_is_removed_though_the_record_is_gone() {
    let world = World::new().await;
    let kind = world.basic().await;
    let make = |name: &str| json!({ "objects": [role(&world, name), configmap(name, json!({}))] });
    kind.make("a", make("a")).await;
    for name in world.revision_names().await {
        world.delete(&world.core("secrets", &name)).await;
    }
    kind.delete("a").await;
    world.gone(&role_path(&world, "a")).await;
    // A namespace that is deleted takes the records with it, in whatever order.
    let names = ["b", "c", "d", "e", "f"];
    for name in names {
        kind.make(name, make(name)).await;
    }
    let path = format!("/api/v1/namespaces/{}", world.ns);
    world.delete(&path).await;
    for name in names {
        kind.gone(name).await;
        world.gone(&role_path(&world, name)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_is_held_up_says_by_what_r61() {
    let world = World::new().await;
    let kind = world.kind(AirwayBuilder::new("Holdup", &puppet())).await;
    kind.make("h", json!({})).await;
    let hold = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    let child = world.core("configmaps", "h");
    world
        .merge(&child, &hold(json!(["tests.atc.dev/hold"])))
        .await;
    world.delete(&kind.path("h")).await;
    let words = kind.says("h", "Terminating", "still there after").await;
    assert!(words.contains("configmap/h"), "{words}");
    world.merge(&child, &hold(Value::Null)).await;
    kind.gone("h").await;
    // To wait is not to fail.
    let atc = Atc::shared(&world.cluster).await.unwrap();
    let (_, numbers) = atc.get("/metrics").await.unwrap();
    let of = kind.airway.name();
    let told = |result: &str| {
        numbers.contains(&format!(
            r#"atc_evaluations_total{{airway="{of}",result="{result}"}}"#
        ))
    };
    assert!(told("ok") && !told("failed"), "{numbers}");
    kind.finish().await;
}
