//! Overrides by annotation: who may set them, what they do, and what follows when they can't be had.

use atc_tests::{AirwayBuilder, Api, FileServer};
use serde_json::{Value, json};

use crate::versions;
use crate::world::{Kind, World, configmap, puppet, text};

pub(crate) const FLIGHT: &str = "overrides.yoke.cd/flight";
const MODE: &str = "overrides.yoke.cd/mode";

/// A flight that prints one ConfigMap, `two`, whatever its input is; or that fails with these words.
fn other(fails: Option<&str>) -> Vec<u8> {
    let words = fails.map_or_else(
        || json!([configmap("two", json!({ "variant": "two" }))]).to_string(),
        str::to_owned,
    );
    let (descriptor, code) = if fails.is_some() { (2, 1) } else { (1, 0) };
    let length = words.len();
    let words = words.replace('\\', "\\\\").replace('"', "\\\"");
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (data (i32.const 16) "{words}")
            (func (export "_start")
                (i32.store (i32.const 0) (i32.const 16))
                (i32.store (i32.const 4) (i32.const {length}))
                (drop (call $write (i32.const {descriptor}) (i32.const 0) (i32.const 1) (i32.const 8)))
                (call $exit (i32.const {code}))))"#
    );
    wat::parse_str(text).unwrap()
}

/// An instance with annotations; it may be refused.
async fn create(
    kind: &Kind<'_>,
    api: &Api,
    name: &str,
    annotations: Value,
    spec: Value,
) -> anyhow::Result<Value> {
    let mut body = kind.airway.instance(name, &spec);
    body["metadata"]["annotations"] = annotations;
    api.post(&kind.airway.path(&kind.world.ns), &body).await
}

async fn annotate(
    kind: &Kind<'_>,
    api: &Api,
    name: &str,
    annotations: Value,
) -> anyhow::Result<Value> {
    let body = json!({ "metadata": { "annotations": annotations } });
    api.merge(&kind.path(name), &body).await
}

/// Lets the user of the tests do this in the cluster, by an RBAC rule of this name.
async fn allow(world: &World, name: &str, rule: Value) {
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let cluster_role = json!({ "metadata": { "name": name }, "rules": [rule] });
    world
        .post(&format!("{group}/clusterroles"), &cluster_role)
        .await;
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "user" }],
    });
    world
        .post(&format!("{group}/clusterrolebindings"), &binding)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flight_of_its_own_is_reviewed_and_runs() {
    let world = World::new().await;
    let kind = world.basic().await;
    let files = FileServer::start().unwrap();
    files.put("two.wasm", other(None));
    files.put("bad.wasm", other(Some("not like this")));
    let api = &world.cluster.api;

    let refused = create(
        &kind,
        api,
        "o",
        json!({ FLIGHT: files.url("bad.wasm") }),
        json!({}),
    )
    .await;
    assert!(refused.unwrap_err().to_string().contains("not like this"));
    let missing = create(
        &kind,
        api,
        "o",
        json!({ FLIGHT: files.url("none.wasm") }),
        json!({}),
    )
    .await;
    assert!(missing.unwrap_err().to_string().contains("404"));
    let nonsense = create(&kind, api, "o", json!({ FLIGHT: "ftp://x/y" }), json!({})).await;
    let nonsense = nonsense.unwrap_err().to_string();
    assert!(nonsense.contains(FLIGHT), "{nonsense}");

    kind.make("o", json!({ "note": "one" })).await;
    world.has("o", json!({ "note": "one" })).await;
    annotate(&kind, api, "o", json!({ FLIGHT: files.url("two.wasm") }))
        .await
        .unwrap();
    world.has("two", json!({ "variant": "two" })).await;
    world.gone(&world.core("configmaps", "o")).await;
    kind.ready("o").await;
    // Without it the Airway's flight counts again.
    annotate(&kind, api, "o", json!({ FLIGHT: null }))
        .await
        .unwrap();
    world.has("o", json!({ "note": "one" })).await;
    world.gone(&world.core("configmaps", "two")).await;
    kind.delete("o").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_takes_the_right_to_update_airways_w4() {
    let world = World::new().await;
    let kind = world.basic().await;
    let user = Api::new(world.cluster.user().await.unwrap());
    let rule = json!({ "apiGroups": ["tests.atc.dev"], "resources": ["*"], "verbs": ["*"] });
    allow(&world, &format!("instances-{}", world.ns), rule).await;
    let refused = |answer: anyhow::Result<Value>| {
        let words = answer.unwrap_err().to_string();
        assert!(
            words.contains("403") && words.contains("update airways.yoke.cd"),
            "{words}"
        );
    };
    // RBAC takes a moment to be known.
    atc_tests::eventually(
        crate::world::LIMIT,
        "the user may make instances",
        || async {
            let made = create(&kind, &user, "u", json!({}), json!({ "note": "x" })).await;
            Ok(made.is_ok().then_some(()))
        },
    )
    .await;
    for annotations in [json!({ MODE: "dynamic" }), json!({ FLIGHT: puppet() })] {
        refused(create(&kind, &user, "v", annotations.clone(), json!({})).await);
        refused(annotate(&kind, &user, "u", annotations).await);
    }
    // Through a version that is only served, too, and through the stored one.
    let files = FileServer::start().unwrap();
    let two = versions::kind(&world, "Doubled", &versions::converter(&files)).await;
    two.make("w", json!({ "note": "x" })).await;
    for annotations in [json!({ MODE: "dynamic" }), json!({ FLIGHT: puppet() })] {
        refused(create(&two, &user, "v", annotations.clone(), json!({})).await);
        let edit = json!({ "metadata": { "annotations": annotations } });
        let path = two.path("w");
        for path in [&path, &versions::in_v2(&path)] {
            refused(user.merge(path, &edit).await);
        }
    }
    two.finish().await;
    annotate(&kind, &world.cluster.api, "u", json!({ MODE: "dynamic" }))
        .await
        .unwrap();
    refused(annotate(&kind, &user, "u", json!({ MODE: "standard" })).await);
    refused(annotate(&kind, &user, "u", json!({ MODE: null })).await);
    // Whoever may not change it may still change all else.
    user.merge(&kind.path("u"), &json!({ "spec": { "note": "y" } }))
        .await
        .unwrap();

    let name = format!("airways-{}", world.ns);
    let rule = json!({ "apiGroups": ["yoke.cd"], "resources": ["airways"], "verbs": ["update"], "resourceNames": [kind.airway.name()] });
    allow(&world, &name, rule).await;
    atc_tests::eventually(crate::world::LIMIT, "the user may override", || async {
        Ok(annotate(&kind, &user, "u", json!({ MODE: null }))
            .await
            .is_ok()
            .then_some(()))
    })
    .await;
    for kind in ["clusterrolebindings", "clusterroles"] {
        for name in [&name, &format!("instances-{}", world.ns)] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{name}");
            world.delete(&path).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_of_its_own_counts_at_once() {
    let world = World::new().await;
    let kind = world.basic().await;
    let api = &world.cluster.api;
    kind.make("m", json!({ "note": "x" })).await;
    // In mode standard nobody puts it back; with the override that very change does.
    world.delete(&world.core("configmaps", "m")).await;
    annotate(&kind, api, "m", json!({ MODE: "dynamic" }))
        .await
        .unwrap();
    world.has_soon("m", json!({ "note": "x" })).await;
    kind.ready("m").await;
    world.settle().await;
    world.delete(&world.core("configmaps", "m")).await;
    world.has_soon("m", json!({ "note": "x" })).await;
    // A word that is no mode counts for nothing.
    create(
        &kind,
        api,
        "n",
        json!({ MODE: "sometimes" }),
        json!({ "note": "n" }),
    )
    .await
    .unwrap();
    kind.ready("n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_cannot_be_had_is_said_and_tried_again_r45() {
    let world = World::new().await;
    let airway = AirwayBuilder::new("Loosely", &puppet()).set("skipAdmissionWebhook", true);
    let kind = world.kind(airway).await;
    let files = FileServer::start().unwrap();
    let url = files.url("later.wasm");
    let api = &world.cluster.api;
    for name in ["a", "b"] {
        create(&kind, api, name, json!({ FLIGHT: url }), json!({}))
            .await
            .unwrap();
        let said = kind.says(name, "Error", "404").await;
        assert!(said.contains("later.wasm"), "{said}");
    }
    kind.delete("b").await;
    files.put("later.wasm", other(None));
    world.has("two", json!({ "variant": "two" })).await;
    let ready = kind.ready("a").await;
    assert_eq!(text(&ready["metadata"]["annotations"][FLIGHT]), url);
    kind.finish().await;
}
